//! Functions that change a JSONB value.
//!
//! The new value is written as a text, and is canonical again once it was read.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::CatalogType;
use kiln_storage::types::json::{Json, Node, canonical, quote, read, unescape};

use super::array::check_elements;
use super::cast::strict;
use super::json::{given, place, refused, texts};
use super::{Function, Named, Signature, Ty};

/// What happens at the end of a path.
#[derive(Clone, Copy)]
enum Change<'a> {
    /// A value takes the place; `create` where there is none yet.
    Set { value: &'a str, create: bool },
    /// A value is put before or behind an element, or becomes a new member.
    Insert { value: &'a str, after: bool },
    /// The place goes.
    Delete,
}

/// Writes a list with brackets.
struct List<'o> {
    out: &'o mut String,
    close: char,
    is_begun: bool,
}

impl<'o> List<'o> {
    fn array(out: &'o mut String) -> List<'o> {
        out.push('[');
        List {
            out,
            close: ']',
            is_begun: false,
        }
    }

    fn object(out: &'o mut String) -> List<'o> {
        out.push('{');
        List {
            out,
            close: '}',
            is_begun: false,
        }
    }

    /// Where the next entry is written.
    fn next(&mut self) -> &mut String {
        if std::mem::replace(&mut self.is_begun, true) {
            self.out.push(',');
        }
        self.out
    }

    fn member(&mut self, raw: &str) -> &mut String {
        let out = self.next();
        out.push('"');
        out.push_str(raw);
        out.push_str("\":");
        out
    }

    fn end(self) {
        self.out.push(self.close);
    }
}

/// Writes `value` with a change at the end of `path`, whose first step is number `depth`.
fn write_changed(
    value: &Json<'_>,
    path: &[&str],
    depth: usize,
    change: Change<'_>,
    out: &mut String,
) -> Result<()> {
    let Some((step, rest)) = path.split_first() else {
        out.push_str(value.text);
        return Ok(());
    };
    match &value.node {
        Node::Object(members) => object_changed(members, step, rest, depth, change, out),
        Node::Array(elements) => array_changed(elements, step, rest, depth, change, out),
        _ => {
            out.push_str(value.text);
            Ok(())
        }
    }
}

fn object_changed(
    members: &[(&str, Json<'_>)],
    step: &str,
    rest: &[&str],
    depth: usize,
    change: Change<'_>,
    out: &mut String,
) -> Result<()> {
    let mut list = List::object(out);
    let mut is_there = false;
    for (raw, member) in members {
        if unescape(raw)? != step {
            list.member(raw).push_str(member.text);
            continue;
        }
        is_there = true;
        match change {
            _ if !rest.is_empty() => {
                write_changed(member, rest, depth + 1, change, list.member(raw))?;
            }
            Change::Set { value, .. } => list.member(raw).push_str(value),
            Change::Delete => {}
            Change::Insert { .. } => {
                let hint = "Try using the function jsonb_set to replace key value.";
                return Err(refused("cannot replace existing key").with_hint(hint));
            }
        }
    }
    match change {
        Change::Set {
            value,
            create: true,
        }
        | Change::Insert { value, .. }
            if !is_there && rest.is_empty() =>
        {
            let out = list.next();
            quote(step, out);
            out.push(':');
            out.push_str(value);
        }
        _ => {}
    }
    list.end();
    Ok(())
}

fn array_changed(
    elements: &[Json<'_>],
    step: &str,
    rest: &[&str],
    depth: usize,
    change: Change<'_>,
    out: &mut String,
) -> Result<()> {
    let position = step_number(step, depth)?;
    let at = place(elements.len(), position);
    let mut list = List::array(out);
    // A place before the first element, or behind the last one.
    let added = match change {
        Change::Set {
            value,
            create: true,
        }
        | Change::Insert { value, .. }
            if at.is_none() && rest.is_empty() =>
        {
            Some(value)
        }
        _ => None,
    };
    if let Some(value) = added.filter(|_| position < 0) {
        list.next().push_str(value);
    }
    for (number, element) in elements.iter().enumerate() {
        if Some(number) != at {
            list.next().push_str(element.text);
            continue;
        }
        match change {
            _ if !rest.is_empty() => {
                write_changed(element, rest, depth + 1, change, list.next())?;
            }
            Change::Set { value, .. } => list.next().push_str(value),
            Change::Insert {
                value,
                after: false,
            } => {
                list.next().push_str(value);
                list.next().push_str(element.text);
            }
            Change::Insert { value, after: true } => {
                list.next().push_str(element.text);
                list.next().push_str(value);
            }
            Change::Delete => {}
        }
    }
    if let Some(value) = added.filter(|_| position >= 0) {
        list.next().push_str(value);
    }
    list.end();
    Ok(())
}

/// The value with a change at the end of a path.
fn changed(heap: &mut Heap, value: Slot, path: Slot, change: Change<'_>) -> Result<Slot> {
    let text = {
        let value = read(heap.str(value))?;
        let action = match change {
            Change::Delete => "delete path",
            _ => "set path",
        };
        if value.elements().is_none() && value.members().is_none() {
            return Err(refused(format!("cannot {action} in scalar")));
        }
        let is_empty = value.elements().is_some_and(|elements| elements.is_empty())
            || value.members().is_some_and(|members| members.is_empty());
        let adds = !matches!(change, Change::Delete | Change::Set { create: false, .. });
        if is_empty && !adds {
            let text = value.text.to_owned();
            return given(heap, Some(text));
        }
        let Some(path) = texts(heap, path) else {
            let steps = heap.array(path).iter();
            let number = steps.take_while(|step| !step.is_null()).count() + 1;
            let message = format!("path element at position {number} is null");
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let mut text = String::new();
        write_changed(&value, &path, 0, change, &mut text)?;
        canonical(&text)?
    };
    given(heap, Some(text))
}

fn set(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let [value, path, new, create] = arguments else {
        return Err(Error::internal("jsonb_set takes four arguments"));
    };
    let new = heap.str(*new).to_owned();
    let create = create.as_bool();
    changed(
        heap,
        *value,
        *path,
        Change::Set {
            value: &new,
            create,
        },
    )
}

fn insert(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let [value, path, new, after] = arguments else {
        return Err(Error::internal("jsonb_insert takes four arguments"));
    };
    let new = heap.str(*new).to_owned();
    let after = after.as_bool();
    changed(heap, *value, *path, Change::Insert { value: &new, after })
}

/// `value[path[0]][path[1]]… = new`: as `jsonb_set`, but with all that is missing on the way: an
/// array for a number, with nulls before its element, and else an object. A NULL `value` is an
/// empty array where `is_of_array` says so, or an empty object.
pub(in super::super) const JSONB_WITH_PART: Named = ("jsonb_with_part", with_part);

fn with_part(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let [value, path, new, is_of_array] = arguments else {
        return Err(Error::internal("jsonb_with_part takes four arguments"));
    };
    let text = {
        let text = match (value.is_null(), is_of_array.as_bool()) {
            (true, true) => "[]",
            (true, false) => "{}",
            (false, _) => heap.str(*value),
        };
        let new = if new.is_null() {
            "null"
        } else {
            heap.str(*new)
        };
        let Some(path) = texts(heap, *path) else {
            let message = "jsonb subscript in assignment must not be null";
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let mut changed = String::new();
        write_part(&read(text)?, &path, 0, new, &mut changed)?;
        canonical(&changed)?
    };
    given(heap, Some(text))
}

/// Writes `value` with `new` at the place that the path from step number `depth` on leads to.
fn write_part(
    value: &Json<'_>,
    path: &[&str],
    depth: usize,
    new: &str,
    out: &mut String,
) -> Result<()> {
    let Some(step) = path.get(depth) else {
        out.push_str(new);
        return Ok(());
    };
    match &value.node {
        Node::Object(members) => {
            let mut list = List::object(out);
            let mut is_there = false;
            for (raw, member) in members {
                let out = list.member(raw);
                if unescape(raw)? == *step {
                    is_there = true;
                    write_part(member, path, depth + 1, new, out)?;
                } else {
                    out.push_str(member.text);
                }
            }
            if !is_there {
                let out = list.next();
                quote(step, out);
                out.push(':');
                write_missing(&path[depth + 1..], new, out)?;
            }
            list.end();
        }
        Node::Array(elements) => {
            let position = step_number(step, depth)?;
            let first = -i64::try_from(elements.len()).unwrap_or(i64::MAX);
            if position < first {
                let number = depth + 1;
                let message =
                    format!("path element at position {number} is out of range: {position}");
                return Err(refused(message));
            }
            let position = if position < 0 {
                position - first
            } else {
                position
            };
            let at = usize::try_from(position).unwrap_or(usize::MAX);
            check_elements(at)?;
            let mut list = List::array(out);
            for (number, element) in elements.iter().enumerate() {
                let out = list.next();
                match number == at {
                    true => write_part(element, path, depth + 1, new, out)?,
                    false => out.push_str(element.text),
                }
            }
            if at >= elements.len() {
                (elements.len()..at).for_each(|_| list.next().push_str("null"));
                write_missing(&path[depth + 1..], new, list.next())?;
            }
            list.end();
        }
        _ => {
            let detail = "The path assumes key is a composite object, but it is a scalar value.";
            return Err(refused("cannot replace existing key").with_detail(detail));
        }
    }
    Ok(())
}

/// Writes what is missing on the way to `new`.
fn write_missing(path: &[&str], new: &str, out: &mut String) -> Result<()> {
    let Some((step, rest)) = path.split_first() else {
        out.push_str(new);
        return Ok(());
    };
    match step.parse::<i32>() {
        Ok(position) => {
            let nulls = usize::try_from(position).unwrap_or_default();
            check_elements(nulls)?;
            let mut list = List::array(out);
            (0..nulls).for_each(|_| list.next().push_str("null"));
            write_missing(rest, new, list.next())?;
            list.end();
        }
        Err(_) => {
            let mut list = List::object(out);
            let out = list.next();
            quote(step, out);
            out.push(':');
            write_missing(rest, new, out)?;
            list.end();
        }
    }
    Ok(())
}

/// The number that a step into an array is.
fn step_number(step: &str, depth: usize) -> Result<i64> {
    step.parse().map_err(|_| {
        let number = depth + 1;
        let message = format!("path element at position {number} is not an integer: \"{step}\"");
        Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })
}

/// An object without some members, or an array without the strings that are the same.
fn without_keys(value: &Json<'_>, keys: &[&str]) -> Result<String> {
    let mut out = String::new();
    match &value.node {
        Node::Object(members) => {
            let mut list = List::object(&mut out);
            for (raw, member) in members {
                if !keys.contains(&&*unescape(raw)?) {
                    list.member(raw).push_str(member.text);
                }
            }
            list.end();
        }
        Node::Array(elements) => {
            let mut list = List::array(&mut out);
            for element in elements {
                let is_out = match &element.node {
                    Node::String(raw) => keys.contains(&&*unescape(raw)?),
                    _ => false,
                };
                if !is_out {
                    list.next().push_str(element.text);
                }
            }
            list.end();
        }
        _ => return Err(refused("cannot delete from scalar")),
    }
    canonical(&out)
}

fn without_element(value: &Json<'_>, position: i64) -> Result<String> {
    let elements = match &value.node {
        Node::Array(elements) => elements,
        Node::Object(_) => return Err(refused("cannot delete from object using integer index")),
        _ => return Err(refused("cannot delete from scalar")),
    };
    let at = place(elements.len(), position);
    let mut out = String::new();
    let mut list = List::array(&mut out);
    for (number, element) in elements.iter().enumerate() {
        if Some(number) != at {
            list.next().push_str(element.text);
        }
    }
    list.end();
    canonical(&out)
}

/// Two objects as one, or all elements of both; a value that is no array counts as one element.
fn joined(left: &Json<'_>, right: &Json<'_>) -> Result<String> {
    let mut out = String::new();
    if let (Some(left), Some(right)) = (left.members(), right.members()) {
        let mut list = List::object(&mut out);
        for (raw, member) in left.iter().chain(right) {
            list.member(raw).push_str(member.text);
        }
        list.end();
        return canonical(&out);
    }
    let mut list = List::array(&mut out);
    for side in [left, right] {
        match side.elements() {
            Some(elements) => elements
                .iter()
                .for_each(|one| list.next().push_str(one.text)),
            None => list.next().push_str(side.text),
        }
    }
    list.end();
    canonical(&out)
}

strict! {
    SET_OR_CREATE = "jsonb_set", |heap, value, path, new| {
        set(heap, &[value, path, new, Slot::TRUE])
    };
    SET = "jsonb_set", |heap, value, path, new, create| set(heap, &[value, path, new, create]);
    INSERT_BEFORE = "jsonb_insert", |heap, value, path, new| {
        insert(heap, &[value, path, new, Slot::FALSE])
    };
    INSERT = "jsonb_insert", |heap, value, path, new, after| insert(heap, &[value, path, new, after]);
    DELETE_KEY = "jsonb_delete", |heap, value, key| {
        let text = without_keys(&read(heap.str(value))?, &[heap.str(key)])?;
        given(heap, Some(text))
    };
    DELETE_KEYS = "jsonb_delete", |heap, value, keys| {
        let keys = heap.array(keys).iter().filter(|key| !key.is_null());
        let keys: Vec<&str> = keys.map(|key| heap.str(*key)).collect();
        let text = without_keys(&read(heap.str(value))?, &keys)?;
        given(heap, Some(text))
    };
    DELETE_ELEMENT = "jsonb_delete", |heap, value, position| {
        let text = without_element(&read(heap.str(value))?, position.as_i64())?;
        given(heap, Some(text))
    };
    DELETE_PATH = "jsonb_delete_path", |heap, value, path| changed(heap, value, path, Change::Delete);
    CONCATENATE = "jsonb_concat", |heap, left, right| {
        let text = joined(&read(heap.str(left))?, &read(heap.str(right))?)?;
        given(heap, Some(text))
    };
}

const JSONB: Ty = Ty::Catalog(CatalogType::Jsonb);

const fn of(name: &'static str, arguments: &'static [Ty], named: Named) -> Signature {
    Signature {
        name,
        arguments,
        result: JSONB,
        function: Function::Scalar(named.1),
        volatile: false,
    }
}

pub(super) static SIGNATURES: &[Signature] = &[
    of("||", &[JSONB, JSONB], CONCATENATE),
    of("-", &[JSONB, Ty::Text], DELETE_KEY),
    of("-", &[JSONB, Ty::Int4], DELETE_ELEMENT),
    of("-", &[JSONB, Ty::TextArray], DELETE_KEYS),
    of("#-", &[JSONB, Ty::TextArray], DELETE_PATH),
    of("jsonb_concat", &[JSONB, JSONB], CONCATENATE),
    of("jsonb_delete", &[JSONB, Ty::Text], DELETE_KEY),
    of("jsonb_delete", &[JSONB, Ty::Int4], DELETE_ELEMENT),
    of("jsonb_delete", &[JSONB, Ty::TextArray], DELETE_KEYS),
    of("jsonb_delete_path", &[JSONB, Ty::TextArray], DELETE_PATH),
    of("jsonb_set", &[JSONB, Ty::TextArray, JSONB], SET_OR_CREATE),
    of(
        "jsonb_set",
        &[JSONB, Ty::TextArray, JSONB, Ty::Boolean],
        SET,
    ),
    of(
        "jsonb_insert",
        &[JSONB, Ty::TextArray, JSONB],
        INSERT_BEFORE,
    ),
    of(
        "jsonb_insert",
        &[JSONB, Ty::TextArray, JSONB, Ty::Boolean],
        INSERT,
    ),
];
