//! SQL/JSON paths over JSONB: `@?`, `@@` and the functions `jsonb_path_…`.
//!
//! Evaluation follows the SQL standard as PostgreSQL does it (its documentation, "The SQL/JSON Path
//! Language"): in lax mode arrays are unwrapped where an accessor wants an item, items are taken for
//! arrays of one where it wants an array, and what is not there is nothing; in strict mode each of
//! these is an error. An error within a predicate makes it unknown.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::json::path::{
    JsonPath, Method, Operator, Step, canonical_path, read_path,
};
use kiln_storage::types::json::{Json, Node, quote, read, unescape};
use kiln_storage::types::{CatalogType, Decimal};

use super::array::check_elements;
use super::cast::strict;
use super::json::member;
use super::regex::is_like_regex;
use super::{Function, Named, Signature, Ty};

/// Why nothing came of it.
enum Failure {
    /// The path does not fit the value: unknown in a predicate, nothing where errors are silent.
    Misfit(Error),
    /// The path itself cannot be computed.
    Broken(Error),
}

impl Failure {
    #[cold]
    fn misfit(state: &str, message: impl Into<String>) -> Failure {
        let state = SqlState::parse(state).unwrap_or(SqlState::INVALID_PARAMETER_VALUE);
        Failure::Misfit(Error::new(state, message.into()))
    }
}

type Outcome<T> = std::result::Result<T, Failure>;

/// Whether more items are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Enough,
}

/// A truth value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Truth {
    True,
    False,
    Unknown,
}

impl From<bool> for Truth {
    fn from(value: bool) -> Truth {
        match value {
            true => Truth::True,
            false => Truth::False,
        }
    }
}

/// An item: a part of the value, or what was computed.
#[derive(Clone)]
enum Item<'j> {
    Part(&'j Json<'j>),
    Null,
    Boolean(bool),
    Number(Decimal),
    Text(String),
}

/// What a scalar item is.
enum Scalar {
    Null,
    Boolean(bool),
    Number(Decimal),
    Text(String),
}

/// Takes items.
type Sink<'s, 'j> = dyn FnMut(Item<'j>) -> Outcome<Flow> + 's;

impl<'j> Item<'j> {
    fn elements(&self) -> Option<&'j [Json<'j>]> {
        match self {
            Item::Part(part) => part.elements(),
            _ => None,
        }
    }

    fn members(&self) -> Option<&'j [(&'j str, Json<'j>)]> {
        match self {
            Item::Part(part) => part.members(),
            _ => None,
        }
    }

    /// What is in an array or object.
    fn children(&self) -> Option<Vec<&'j Json<'j>>> {
        match (self.elements(), self.members()) {
            (Some(elements), _) => Some(elements.iter().collect()),
            (_, Some(members)) => Some(members.iter().map(|(_, value)| value).collect()),
            _ => None,
        }
    }

    /// `None` for an array or object.
    fn scalar(&self) -> Outcome<Option<Scalar>> {
        Ok(Some(match self {
            Item::Null => Scalar::Null,
            Item::Boolean(value) => Scalar::Boolean(*value),
            Item::Number(number) => Scalar::Number(*number),
            Item::Text(text) => Scalar::Text(text.clone()),
            Item::Part(part) => match &part.node {
                Node::Null => Scalar::Null,
                Node::Boolean(value) => Scalar::Boolean(*value),
                Node::Number => Scalar::Number(Decimal::parse(part.text).map_err(Failure::Misfit)?),
                Node::String(raw) => {
                    Scalar::Text(unescape(raw).map_err(Failure::Broken)?.into_owned())
                }
                Node::Array(_) | Node::Object(_) => return Ok(None),
            },
        }))
    }

    fn number(&self) -> Outcome<Option<Decimal>> {
        let is_number = match self {
            Item::Number(_) => true,
            Item::Part(part) => matches!(part.node, Node::Number),
            _ => false,
        };
        Ok(match is_number {
            true => match self.scalar()? {
                Some(Scalar::Number(number)) => Some(number),
                _ => None,
            },
            false => None,
        })
    }

    fn type_name(&self) -> &'static str {
        match self {
            Item::Part(part) => part.type_name(),
            Item::Null => "null",
            Item::Boolean(_) => "boolean",
            Item::Number(_) => "number",
            Item::Text(_) => "string",
        }
    }

    /// As JSONB.
    fn write(&self, out: &mut String) {
        match self {
            Item::Part(part) => out.push_str(part.text),
            Item::Null => out.push_str("null"),
            Item::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            Item::Number(number) => out.push_str(&number.to_string()),
            Item::Text(text) => quote(text, out),
        }
    }
}

#[cold]
fn too_many_steps() -> Failure {
    let message = "the evaluation of a jsonpath takes too many steps";
    Failure::Broken(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

/// What an evaluation looks at.
struct Context<'j> {
    is_lax: bool,
    /// Whether what is not there is nothing, and no error.
    ignores_structure: bool,
    root: &'j Json<'j>,
    variables: Option<&'j Json<'j>>,
    current: Item<'j>,
    /// The elements of the array of the innermost subscript.
    innermost: i64,
    /// How many steps may still be made: a path of a few words can ask for hours, and
    /// nothing ends a function before its time.
    steps_left: usize,
}

/// The steps that an evaluation may make over no value at all, and for each byte of one.
const STEPS_MAX: usize = 1 << 20;
const STEPS_PER_BYTE: usize = 8;

impl<'j> Context<'j> {
    /// Applies steps to an item: the first one, with arrays unwrapped where `unwraps` says so, and
    /// the rest to what that gives.
    fn run(
        &mut self,
        steps: &[Step],
        item: Item<'j>,
        unwraps: bool,
        sink: &mut Sink<'_, 'j>,
    ) -> Outcome<Flow> {
        let Some((step, rest)) = steps.split_first() else {
            return sink(item);
        };
        self.steps_left = self.steps_left.checked_sub(1).ok_or_else(too_many_steps)?;
        match step {
            Step::Null => self.next(rest, Item::Null, sink),
            Step::Boolean(value) => self.next(rest, Item::Boolean(*value), sink),
            Step::Number(text) => {
                let number = Decimal::parse(text).map_err(Failure::Broken)?;
                self.next(rest, Item::Number(number), sink)
            }
            Step::Text(text) => self.next(rest, Item::Text(text.clone()), sink),
            Step::Variable(name) => {
                let item = match self.variables {
                    // Those of the operators, which are given none.
                    None => Item::Null,
                    Some(variables) => match member(variables, name).map_err(Failure::Broken)? {
                        Some(found) => Item::Part(found),
                        None => {
                            let message = format!("could not find jsonpath variable \"{name}\"");
                            let error = Error::new(SqlState::UNDEFINED_OBJECT, message);
                            return Err(Failure::Broken(error));
                        }
                    },
                };
                self.next(rest, item, sink)
            }
            Step::Root => self.next(rest, Item::Part(self.root), sink),
            Step::Current => self.next(rest, self.current.clone(), sink),
            Step::Last => {
                let last = Decimal::from_i64(self.innermost - 1);
                self.next(rest, Item::Number(last), sink)
            }
            Step::Binary(operator, left, right) if operator.is_arithmetic() => {
                let number = self.arithmetic(*operator, left, right, &item)?;
                self.next(rest, Item::Number(number), sink)
            }
            Step::Sign(negates, of) => {
                let mut operands = Vec::new();
                self.collect(of, item, true, &mut operands)?;
                for operand in operands {
                    let Some(number) = operand.number()? else {
                        let sign = if *negates { "-" } else { "+" };
                        return Err(Failure::misfit(
                            "2203B",
                            format!(
                                "operand of unary jsonpath operator {sign} is not a numeric value"
                            ),
                        ));
                    };
                    let number = if *negates { -number } else { number };
                    if self.next(rest, Item::Number(number), sink)? == Flow::Enough {
                        return Ok(Flow::Enough);
                    }
                }
                Ok(Flow::On)
            }
            step if step.is_predicate() => {
                let truth = self.truth(step, &item)?;
                let value = match truth {
                    Truth::Unknown => Item::Null,
                    truth => Item::Boolean(truth == Truth::True),
                };
                self.next(rest, value, sink)
            }
            Step::Filter(of) => {
                if unwraps && item.elements().is_some() {
                    return self.unwrapped(steps, &item, sink);
                }
                let outer = std::mem::replace(&mut self.current, item.clone());
                let truth = self.truth_of(of, &item);
                self.current = outer;
                match truth? {
                    Truth::True => self.next(rest, item, sink),
                    _ => Ok(Flow::On),
                }
            }
            Step::AnyElement => match item.elements() {
                Some(elements) => self.each(rest, elements.iter().collect(), self.is_lax, sink),
                None if self.is_lax => self.next(rest, item, sink),
                None => self.missing(
                    "22039",
                    "jsonpath wildcard array accessor can only be applied to an array",
                ),
            },
            Step::AnyMember => match item.members() {
                Some(members) => {
                    let values = members.iter().map(|(_, value)| value);
                    self.each(rest, values.collect(), self.is_lax, sink)
                }
                None if unwraps && item.elements().is_some() => self.unwrapped(steps, &item, sink),
                None => self.missing(
                    "2203C",
                    "jsonpath wildcard member accessor can only be applied to an object",
                ),
            },
            Step::Member(key) => {
                let is_object = item.members().is_some();
                match &item {
                    Item::Part(part) if is_object => {
                        match member(part, key).map_err(Failure::Broken)? {
                            Some(found) => self.next(rest, Item::Part(found), sink),
                            None => self.missing(
                                "2203A",
                                format!("JSON object does not contain key \"{key}\""),
                            ),
                        }
                    }
                    _ if unwraps && item.elements().is_some() => self.unwrapped(steps, &item, sink),
                    _ => self.missing(
                        "2203A",
                        "jsonpath member accessor can only be applied to an object",
                    ),
                }
            }
            Step::Elements(subscripts) => {
                let elements = item.elements();
                if elements.is_none() && !self.is_lax {
                    return self.missing(
                        "22039",
                        "jsonpath array accessor can only be applied to an array",
                    );
                }
                let size = elements.map_or(1, |elements| elements.len() as i64);
                let outer = std::mem::replace(&mut self.innermost, size);
                let flow = self.subscripted(subscripts, rest, &item, size, sink);
                self.innermost = outer;
                flow
            }
            Step::Levels { first, last } => {
                if *first == Some(0) {
                    let flow = self.ignoring(|context| context.next(rest, item.clone(), sink))?;
                    if flow == Flow::Enough {
                        return Ok(flow);
                    }
                }
                match item.children() {
                    Some(children) => self.levels(rest, children, 1, (*first, *last), sink),
                    None => Ok(Flow::On),
                }
            }
            Step::Method(method) => self.method(*method, steps, item, unwraps, sink),
            // What is a predicate was met before.
            _ => Ok(Flow::On),
        }
    }

    /// Applies the steps that are left.
    fn next(&mut self, rest: &[Step], item: Item<'j>, sink: &mut Sink<'_, 'j>) -> Outcome<Flow> {
        let unwraps = self.is_lax;
        self.run(rest, item, unwraps, sink)
    }

    /// Nothing, or an error where the structure counts.
    fn missing(&self, state: &str, message: impl Into<String>) -> Outcome<Flow> {
        match self.ignores_structure {
            true => Ok(Flow::On),
            false => Err(Failure::misfit(state, message)),
        }
    }

    fn ignoring<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.ignores_structure, true);
        let result = run(self);
        self.ignores_structure = before;
        result
    }

    /// Applies steps to each of several values.
    fn each(
        &mut self,
        steps: &[Step],
        values: Vec<&'j Json<'j>>,
        unwraps: bool,
        sink: &mut Sink<'_, 'j>,
    ) -> Outcome<Flow> {
        for value in values {
            if self.run(steps, Item::Part(value), unwraps, sink)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    /// Applies steps to the elements of an array in its place.
    fn unwrapped(
        &mut self,
        steps: &[Step],
        array: &Item<'j>,
        sink: &mut Sink<'_, 'j>,
    ) -> Outcome<Flow> {
        let elements = array.elements().unwrap_or_default();
        self.each(steps, elements.iter().collect(), false, sink)
    }

    /// `.**`: what is below, from the first to the last level.
    fn levels(
        &mut self,
        rest: &[Step],
        values: Vec<&'j Json<'j>>,
        level: u32,
        (first, last): (Option<u32>, Option<u32>),
        sink: &mut Sink<'_, 'j>,
    ) -> Outcome<Flow> {
        if last.is_some_and(|last| level > last) {
            return Ok(Flow::On);
        }
        for value in values {
            let item = Item::Part(value);
            let children = item.children();
            let is_meant = match first {
                Some(first) => level >= first,
                // The leaves alone.
                None => last.is_none() && children.is_none(),
            };
            if is_meant {
                let flow = self.ignoring(|context| context.next(rest, item, sink))?;
                if flow == Flow::Enough {
                    return Ok(flow);
                }
            }
            if let Some(children) = children
                && last.is_none_or(|last| level < last)
                && self.levels(rest, children, level + 1, (first, last), sink)? == Flow::Enough
            {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    fn subscripted(
        &mut self,
        subscripts: &[(Vec<Step>, Option<Vec<Step>>)],
        rest: &[Step],
        item: &Item<'j>,
        size: i64,
        sink: &mut Sink<'_, 'j>,
    ) -> Outcome<Flow> {
        for (from, to) in subscripts {
            let first = self.subscript(from, item)?;
            let last = match to {
                Some(to) => self.subscript(to, item)?,
                None => first,
            };
            if !self.ignores_structure && (first < 0 || first > last || last >= size) {
                let message = "jsonpath array subscript is out of bounds";
                return Err(Failure::misfit("22033", message));
            }
            for at in first.max(0)..=last.min(size - 1) {
                let part = match item.elements() {
                    Some(elements) => Item::Part(&elements[at as usize]),
                    None => item.clone(),
                };
                if self.next(rest, part, sink)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
            }
        }
        Ok(Flow::On)
    }

    fn subscript(&mut self, steps: &[Step], item: &Item<'j>) -> Outcome<i64> {
        let mut found = Vec::new();
        let unwraps = self.is_lax;
        self.run(steps, item.clone(), unwraps, &mut |item| {
            found.push(item);
            Ok(Flow::On)
        })?;
        let number = match found.as_slice() {
            [only] => only.number()?,
            _ => None,
        };
        let Some(number) = number else {
            let message = "jsonpath array subscript is not a single numeric value";
            return Err(Failure::misfit("22033", message));
        };
        let whole = number.trunc(0).and_then(Decimal::to_i32);
        whole.map(i64::from).map_err(|_| {
            let message = "jsonpath array subscript is out of integer range";
            Failure::misfit("22033", message)
        })
    }

    /// The items of steps; with `unwraps`, in lax mode, the elements of arrays among them.
    fn collect(
        &mut self,
        steps: &[Step],
        item: Item<'j>,
        unwraps: bool,
        into: &mut Vec<Item<'j>>,
    ) -> Outcome<()> {
        let unwraps = unwraps && self.is_lax;
        let is_lax = self.is_lax;
        self.run(steps, item, is_lax, &mut |item| {
            match item.elements().filter(|_| unwraps) {
                Some(elements) => into.extend(elements.iter().map(Item::Part)),
                None => into.push(item),
            }
            Ok(Flow::On)
        })?;
        Ok(())
    }

    fn arithmetic(
        &mut self,
        operator: Operator,
        left: &[Step],
        right: &[Step],
        item: &Item<'j>,
    ) -> Outcome<Decimal> {
        let mut operand = |steps: &[Step], side: &str| {
            let mut found = Vec::new();
            self.collect(steps, item.clone(), true, &mut found)?;
            let number = match found.as_slice() {
                [only] => only.number()?,
                _ => None,
            };
            number.ok_or_else(|| {
                let symbol = operator.symbol();
                let message = format!(
                    "{side} operand of jsonpath operator {symbol} is not a single numeric value"
                );
                Failure::misfit("22038", message)
            })
        };
        let (left, right) = (operand(left, "left")?, operand(right, "right")?);
        let result = match operator {
            Operator::Add => left.try_add(right),
            Operator::Subtract => left.try_sub(right),
            Operator::Multiply => left.try_mul(right),
            Operator::Divide => left.try_div(right),
            _ => left.try_rem(right),
        };
        result.map_err(Failure::Misfit)
    }

    fn method(
        &mut self,
        method: Method,
        steps: &[Step],
        item: Item<'j>,
        unwraps: bool,
        sink: &mut Sink<'_, 'j>,
    ) -> Outcome<Flow> {
        let rest = &steps[1..];
        let result = match method {
            Method::Type => Item::Text(item.type_name().to_owned()),
            Method::Size => match item.elements() {
                Some(elements) => Item::Number(Decimal::from_i64(elements.len() as i64)),
                None if self.is_lax => Item::Number(Decimal::ONE),
                None => {
                    return self.missing(
                        "22039",
                        "jsonpath item method .size() can only be applied to an array",
                    );
                }
            },
            _ if unwraps && item.elements().is_some() => return self.unwrapped(steps, &item, sink),
            Method::Double => Item::Number(double(&item)?),
            _ => {
                let Some(number) = item.number()? else {
                    let name = method.name();
                    return Err(Failure::misfit(
                        "22036",
                        format!(
                            "jsonpath item method .{name}() can only be applied to a numeric value"
                        ),
                    ));
                };
                let result = match method {
                    Method::Abs => Ok(number.abs()),
                    Method::Floor => number.floor(),
                    _ => number.ceil(),
                };
                Item::Number(result.map_err(Failure::Misfit)?)
            }
        };
        self.next(rest, result, sink)
    }

    /// The truth of a predicate.
    fn truth_of(&mut self, steps: &[Step], item: &Item<'j>) -> Outcome<Truth> {
        match steps {
            [predicate] => self.truth(predicate, item),
            _ => Ok(Truth::Unknown),
        }
    }

    fn truth(&mut self, predicate: &Step, item: &Item<'j>) -> Outcome<Truth> {
        match predicate {
            Step::Binary(Operator::And, left, right) => {
                let first = self.truth_of(left, item)?;
                if first == Truth::False {
                    return Ok(first);
                }
                let second = self.truth_of(right, item)?;
                Ok(if second == Truth::True { first } else { second })
            }
            Step::Binary(Operator::Or, left, right) => {
                let first = self.truth_of(left, item)?;
                if first == Truth::True {
                    return Ok(first);
                }
                let second = self.truth_of(right, item)?;
                Ok(if second == Truth::False {
                    first
                } else {
                    second
                })
            }
            Step::Not(of) => Ok(match self.truth_of(of, item)? {
                Truth::True => Truth::False,
                Truth::False => Truth::True,
                Truth::Unknown => Truth::Unknown,
            }),
            Step::IsUnknown(of) => Ok((self.truth_of(of, item)? == Truth::Unknown).into()),
            Step::Exists(of) => {
                let is_lax = self.is_lax;
                let mut is_there = false;
                // In strict mode all are computed, as an error among them makes it unknown.
                let flow = self.run(of, item.clone(), is_lax, &mut |_| {
                    is_there = true;
                    Ok(if is_lax { Flow::Enough } else { Flow::On })
                });
                match flow {
                    Ok(_) => Ok(is_there.into()),
                    Err(Failure::Misfit(_)) => Ok(Truth::Unknown),
                    Err(broken) => Err(broken),
                }
            }
            Step::LikeRegex {
                subject,
                pattern,
                flags,
            } => self.any_pair(
                subject,
                None,
                item,
                &mut |subject, _| match subject.scalar()? {
                    Some(Scalar::Text(text)) => is_like_regex(&text, pattern, flags)
                        .map(Truth::from)
                        .map_err(Failure::Broken),
                    _ => Ok(Truth::Unknown),
                },
            ),
            Step::Binary(Operator::StartsWith, subject, initial) => self.any_pair(
                subject,
                Some((initial, false)),
                item,
                &mut |one, other| match (one.scalar()?, other.scalar()?) {
                    (Some(Scalar::Text(text)), Some(Scalar::Text(initial))) => {
                        Ok(text.starts_with(&initial).into())
                    }
                    _ => Ok(Truth::Unknown),
                },
            ),
            Step::Binary(operator, left, right) => {
                self.any_pair(left, Some((right, true)), item, &mut |one, other| {
                    compared(*operator, one, other)
                })
            }
            _ => Ok(Truth::Unknown),
        }
    }

    /// Whether a predicate holds for a pair of items.
    fn any_pair(
        &mut self,
        left: &[Step],
        right: Option<(&[Step], bool)>,
        item: &Item<'j>,
        holds: &mut dyn FnMut(&Item<'j>, &Item<'j>) -> Outcome<Truth>,
    ) -> Outcome<Truth> {
        let mut sides = [Vec::new(), Vec::new()];
        let wanted = [Some((left, true)), right];
        for (side, wanted) in sides.iter_mut().zip(wanted) {
            match wanted {
                None => side.push(Item::Null),
                Some((steps, unwraps)) => match self.collect(steps, item.clone(), unwraps, side) {
                    Ok(()) => {}
                    Err(Failure::Misfit(_)) => return Ok(Truth::Unknown),
                    Err(broken) => return Err(broken),
                },
            }
        }
        let (mut is_found, mut is_unknown) = (false, false);
        let [lefts, rights] = &sides;
        for left in lefts {
            for right in rights {
                let truth = match holds(left, right) {
                    Err(Failure::Misfit(_)) => Truth::Unknown,
                    truth => truth?,
                };
                match truth {
                    Truth::Unknown if !self.is_lax => return Ok(Truth::Unknown),
                    Truth::Unknown => is_unknown = true,
                    Truth::True if self.is_lax => return Ok(Truth::True),
                    Truth::True => is_found = true,
                    Truth::False => {}
                }
            }
        }
        Ok(match (is_found, is_unknown) {
            (true, _) => Truth::True,
            (false, true) => Truth::Unknown,
            (false, false) => Truth::False,
        })
    }
}

/// The number of an item that says a DOUBLE PRECISION.
fn double(item: &Item<'_>) -> Outcome<Decimal> {
    let (number, of) = match item.scalar()? {
        Some(Scalar::Number(number)) => {
            let is_finite = number.to_f64().is_finite();
            if is_finite {
                return Ok(number);
            }
            (
                None,
                "numeric argument of jsonpath item method .double() is out of range for type double precision",
            )
        }
        Some(Scalar::Text(text)) => {
            let number = kiln_storage::types::double::parse_double(&text).ok();
            let number = number.filter(|number| number.is_finite());
            let number = number.and_then(|number| Decimal::from_f64(number).ok());
            (
                number,
                "string argument of jsonpath item method .double() is not a valid representation of a double precision number",
            )
        }
        _ => (
            None,
            "jsonpath item method .double() can only be applied to a string or numeric value",
        ),
    };
    number.ok_or_else(|| Failure::misfit("22036", of))
}

/// The comparison of two items: of different types, and of arrays and objects, it is unknown.
fn compared(operator: Operator, left: &Item<'_>, right: &Item<'_>) -> Outcome<Truth> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let (one, other) = (left.scalar()?, right.scalar()?);
    let is_null = |scalar: &Option<Scalar>| matches!(scalar, Some(Scalar::Null));
    let order = match (&one, &other) {
        (Some(Scalar::Null), Some(Scalar::Null)) => Equal,
        (Some(Scalar::Boolean(a)), Some(Scalar::Boolean(b))) => a.cmp(b),
        (Some(Scalar::Number(a)), Some(Scalar::Number(b))) => a.cmp(b),
        (Some(Scalar::Text(a)), Some(Scalar::Text(b))) => a.cmp(b),
        _ if is_null(&one) || is_null(&other) => {
            return Ok((operator == Operator::NotEqual).into());
        }
        _ => return Ok(Truth::Unknown),
    };
    Ok(Truth::from(match operator {
        Operator::Equal => order == Equal,
        Operator::NotEqual => order != Equal,
        Operator::Less => order == Less,
        Operator::LessOrEqual => order != Greater,
        Operator::Greater => order == Greater,
        _ => order != Less,
    }))
}

/// What is asked of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Exists,
    Match,
    All,
    Array,
    First,
}

/// The items of a path in a value.
///
/// # Errors
/// Those of the path, of which those about the value's structure are kept apart.
fn found<'j>(
    path: &JsonPath,
    value: &'j Json<'j>,
    variables: Option<&'j Json<'j>>,
    most: usize,
) -> Result<(Vec<Item<'j>>, Option<Error>)> {
    if variables.is_some_and(|variables| variables.members().is_none()) {
        let message = "\"vars\" argument is not an object";
        let detail = "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_detail(detail));
    }
    let mut context = Context {
        is_lax: path.is_lax,
        ignores_structure: path.is_lax,
        root: value,
        variables,
        current: Item::Part(value),
        innermost: -1,
        steps_left: STEPS_MAX.saturating_add(value.text.len().saturating_mul(STEPS_PER_BYTE)),
    };
    let mut items = Vec::new();
    let unwraps = path.is_lax;
    let flow = context.run(&path.steps, Item::Part(value), unwraps, &mut |item| {
        items.push(item);
        Ok(if items.len() >= most {
            Flow::Enough
        } else {
            Flow::On
        })
    });
    match flow {
        Ok(_) => Ok((items, None)),
        Err(Failure::Misfit(error)) => Ok((items, Some(error))),
        Err(Failure::Broken(error)) => Err(error),
    }
}

/// A call with a value, a path, and perhaps variables and whether errors are silent.
fn call(heap: &mut Heap, arguments: &[Slot], asked: Asked, is_operator: bool) -> Result<Slot> {
    if arguments.iter().any(|argument| argument.is_null()) {
        return Ok(Slot::NULL);
    }
    let (value, path) = match arguments {
        [value, path, ..] => (*value, *path),
        _ => return Err(Error::internal("a path without a value")),
    };
    heap.spend(value.span().1.saturating_mul(STEPS_PER_BYTE))?;
    let is_silent = is_operator || arguments.get(3).is_some_and(|silent| silent.as_bool());
    let texts: Vec<String> = {
        let path = read_path(heap.str(path))?;
        let value = read(heap.str(value))?;
        let variables = match arguments.get(2) {
            Some(variables) => Some(read(heap.str(*variables))?),
            None if is_operator => None,
            None => Some(read("{}")?),
        };
        // In strict mode an error behind the first item counts.
        let most = match asked {
            Asked::Exists if path.is_lax => 1,
            _ => usize::MAX,
        };
        let (items, error) = found(&path, &value, variables.as_ref(), most)?;
        if let Some(error) = error {
            if !is_silent {
                return Err(error);
            }
            if matches!(asked, Asked::Exists | Asked::Match) {
                return Ok(Slot::NULL);
            }
        }
        match asked {
            Asked::Exists => return Ok(Slot::from_bool(!items.is_empty())),
            Asked::Match => return matched(&items, is_silent),
            _ => {}
        }
        let texts = items.iter().map(|item| {
            let mut out = String::new();
            item.write(&mut out);
            out
        });
        texts.collect()
    };
    match asked {
        Asked::First => Ok(match texts.first() {
            Some(text) => heap.push_str(text),
            None => Slot::NULL,
        }),
        Asked::Array => Ok(heap.push_str(&format!("[{}]", texts.join(", ")))),
        _ => {
            check_elements(texts.len())?;
            let slots: Vec<Slot> = texts.iter().map(|text| heap.push_str(text)).collect();
            Ok(heap.push_array(&slots))
        }
    }
}

/// The truth value that is the only item.
fn matched(items: &[Item<'_>], is_silent: bool) -> Result<Slot> {
    let only = match items {
        [only] => match only.scalar() {
            Ok(scalar) => scalar,
            Err(Failure::Misfit(error) | Failure::Broken(error)) => return Err(error),
        },
        _ => None,
    };
    match only {
        Some(Scalar::Boolean(value)) => Ok(Slot::from_bool(value)),
        Some(Scalar::Null) => Ok(Slot::NULL),
        _ if is_silent => Ok(Slot::NULL),
        _ => {
            let state = SqlState::parse("22038").unwrap_or(SqlState::INVALID_PARAMETER_VALUE);
            Err(Error::new(state, "single boolean result is expected"))
        }
    }
}

const EXISTS: Named = ("jsonb_path_exists", |heap, arguments| {
    call(heap, arguments, Asked::Exists, false)
});
const EXISTS_OPERATOR: Named = ("jsonb_path_exists_opr", |heap, arguments| {
    call(heap, arguments, Asked::Exists, true)
});
const MATCH: Named = ("jsonb_path_match", |heap, arguments| {
    call(heap, arguments, Asked::Match, false)
});
const MATCH_OPERATOR: Named = ("jsonb_path_match_opr", |heap, arguments| {
    call(heap, arguments, Asked::Match, true)
});
const QUERY: Named = ("jsonb_path_query", |heap, arguments| {
    call(heap, arguments, Asked::All, false)
});
const QUERY_ARRAY: Named = ("jsonb_path_query_array", |heap, arguments| {
    call(heap, arguments, Asked::Array, false)
});
const QUERY_FIRST: Named = ("jsonb_path_query_first", |heap, arguments| {
    call(heap, arguments, Asked::First, false)
});

strict! {
    /// A path, read and written again.
    TEXT_TO_JSONPATH = "jsonpath", |heap, text| {
        let path = canonical_path(heap.str(text))?;
        Ok(heap.push_str(&path))
    };
}

const JSONB: Ty = Ty::Catalog(CatalogType::Jsonb);
const PATH: Ty = Ty::Catalog(CatalogType::JsonPath);

const fn of(name: &'static str, arguments: &'static [Ty], result: Ty, named: Named) -> Signature {
    Signature {
        name,
        arguments,
        result,
        function: Function::Scalar(named.1),
        volatile: false,
    }
}

/// The three forms of a function.
macro_rules! forms {
    ($($name:literal -> $result:expr, $named:expr;)*) => {
        &[
            of("@?", &[JSONB, PATH], Ty::Boolean, EXISTS_OPERATOR),
            of("@@", &[JSONB, PATH], Ty::Boolean, MATCH_OPERATOR),
            $(
                of($name, &[JSONB, PATH], $result, $named),
                of($name, &[JSONB, PATH, JSONB], $result, $named),
                of($name, &[JSONB, PATH, JSONB, Ty::Boolean], $result, $named),
            )*
        ]
    };
}

pub(super) static SIGNATURES: &[Signature] = forms! {
    "jsonb_path_exists" -> Ty::Boolean, EXISTS;
    "jsonb_path_match" -> Ty::Boolean, MATCH;
    "jsonb_path_query" -> Ty::JsonbArray, QUERY;
    "jsonb_path_query_array" -> JSONB, QUERY_ARRAY;
    "jsonb_path_query_first" -> JSONB, QUERY_FIRST;
};
