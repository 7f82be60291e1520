//! The order of JSONB values, and which contains which.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::reader::{Json, Node};

/// PostgreSQL's order: objects are above arrays, and these above booleans, numbers, strings and
/// `null`; of two arrays or objects the one with more elements is above. At the top, an empty array
/// is below what is neither. Both are canonical.
pub fn compare(left: &Json<'_>, right: &Json<'_>) -> Ordering {
    let is_empty = |value: &Json<'_>| value.elements().is_some_and(<[_]>::is_empty);
    let is_single = |value: &Json<'_>| !matches!(value.node, Node::Array(_) | Node::Object(_));
    if is_empty(left) && is_single(right) {
        return Ordering::Less;
    }
    if is_single(left) && is_empty(right) {
        return Ordering::Greater;
    }
    order(left, right)
}

/// The order of two canonical texts; see [`compare`].
pub fn compare_texts(left: &str, right: &str) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    match (super::read(left), super::read(right)) {
        (Ok(one), Ok(other)) => compare(&one, &other),
        _ => left.cmp(right),
    }
}

/// A text that is the same for all canonical texts that [`compare_texts`] calls equal: numbers have
/// no zeros at their end.
pub fn normal_form(text: &str) -> Cow<'_, str> {
    if !text.contains('.') {
        return Cow::Borrowed(text);
    }
    let Ok(value) = super::read(text) else {
        return Cow::Borrowed(text);
    };
    let mut normal = String::with_capacity(text.len());
    append_normal(&value, &mut normal);
    Cow::Owned(normal)
}

fn append_normal(value: &Json<'_>, out: &mut String) {
    match &value.node {
        Node::Number => match value.text.split_once('.') {
            Some((whole, fraction)) => {
                let fraction = fraction.trim_end_matches('0');
                let is_zero = fraction.is_empty() && whole.trim_start_matches('-') == "0";
                out.push_str(if is_zero { "0" } else { whole });
                if !fraction.is_empty() {
                    out.push('.');
                    out.push_str(fraction);
                }
            }
            None => out.push_str(value.text),
        },
        Node::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                append_normal(element, out);
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (at, (key, member)) in members.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                out.push('"');
                out.push_str(key);
                out.push_str("\": ");
                append_normal(member, out);
            }
            out.push('}');
        }
        Node::Null | Node::Boolean(_) | Node::String(_) => out.push_str(value.text),
    }
}

fn order(left: &Json<'_>, right: &Json<'_>) -> Ordering {
    match (&left.node, &right.node) {
        (Node::Boolean(left), Node::Boolean(right)) => left.cmp(right),
        (Node::Number, Node::Number) => compare_numbers(left.text, right.text),
        (Node::String(left), Node::String(right)) => compare_strings(left, right),
        (Node::Array(left), Node::Array(right)) => left.len().cmp(&right.len()).then_with(|| {
            let mut each = left
                .iter()
                .zip(right)
                .map(|(left, right)| order(left, right));
            each.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (Node::Object(left), Node::Object(right)) => left.len().cmp(&right.len()).then_with(|| {
            let mut each = left.iter().zip(right).map(|(left, right)| {
                let keys = compare_strings(left.0, right.0);
                keys.then_with(|| order(&left.1, &right.1))
            });
            each.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Json<'_>) -> u8 {
    match value.node {
        Node::Null => 0,
        Node::String(_) => 1,
        Node::Number => 2,
        Node::Boolean(_) => 3,
        Node::Array(_) => 4,
        Node::Object(_) => 5,
    }
}

/// By the bytes of what they say: canonical strings have no escape that could not be read.
fn compare_strings(left: &str, right: &str) -> Ordering {
    let read = |raw| super::unescape(raw).unwrap_or_default();
    match left.contains('\\') || right.contains('\\') {
        false => left.cmp(right),
        true => read(left).cmp(&read(right)),
    }
}

/// Two numbers that are written out.
fn compare_numbers(left: &str, right: &str) -> Ordering {
    let split = |text: &str| {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits.to_owned()),
            None => (false, text.to_owned()),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((whole, fraction)) => {
                (whole.to_owned(), fraction.trim_end_matches('0').to_owned())
            }
            None => (digits, String::new()),
        };
        (is_negative, whole, fraction)
    };
    let ((left_negative, left_whole, left_fraction), (right_negative, right_whole, right_fraction)) =
        (split(left), split(right));
    let size = || {
        let whole = left_whole.len().cmp(&right_whole.len());
        whole
            .then_with(|| left_whole.cmp(&right_whole))
            .then_with(|| left_fraction.cmp(&right_fraction))
    };
    match (left_negative, right_negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => size(),
        (true, true) => size().reverse(),
    }
}

/// `left @> right`: whether all of `right` is somewhere in `left`, at the same depth. Both are
/// canonical.
pub fn contains(left: &Json<'_>, right: &Json<'_>) -> bool {
    match (&left.node, &right.node) {
        (Node::Array(elements), Node::Array(wanted)) => wanted
            .iter()
            .all(|wanted| elements.iter().any(|one| holds(one, wanted))),
        (Node::Array(_), Node::Object(_)) => false,
        // An array contains a value that is neither, at the top alone.
        (Node::Array(elements), _) => elements.iter().any(|one| holds(one, right)),
        _ => holds(left, right),
    }
}

fn holds(left: &Json<'_>, right: &Json<'_>) -> bool {
    match (&left.node, &right.node) {
        (Node::Object(members), Node::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            let mut members = members.iter();
            members.any(|(own, value)| own == key && holds(value, wanted))
        }),
        (Node::Array(elements), Node::Array(wanted)) => wanted
            .iter()
            .all(|wanted| elements.iter().any(|one| holds(one, wanted))),
        (Node::Object(_) | Node::Array(_), _) | (_, Node::Object(_) | Node::Array(_)) => false,
        _ => order(left, right).is_eq(),
    }
}
