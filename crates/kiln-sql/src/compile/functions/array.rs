//! Arrays.

use std::cmp::Ordering;

use kiln_procedure::frame::compare;
use kiln_procedure::ir::{Class, Comparison};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};

use super::cast::strict;
use super::{Named, signatures};

/// The most elements of an array.
const ELEMENTS_MAX: usize = 1 << 26;

pub(super) fn check_elements(count: usize) -> Result<()> {
    if count > ELEMENTS_MAX {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"),
        ));
    }
    Ok(())
}

fn length(heap: &Heap, array: Slot) -> Slot {
    Slot::from_i64(heap.array(array).len() as i64)
}

fn first_dimension(heap: &Heap, array: Slot, dimension: Slot, value: usize) -> Slot {
    if dimension.as_i64() != 1 || heap.array(array).is_empty() {
        return Slot::NULL;
    }
    Slot::from_i64(value as i64)
}

/// Whether two slots of one unknown element type hold the same value: every type but NUMERIC and
/// the ones in the heap compares by its words. The class tells.
pub(super) fn same(heap: &Heap, class: Class, left: Slot, right: Slot) -> bool {
    match (left.is_null(), right.is_null()) {
        (false, false) => compare(heap, class, left, right).is_eq(),
        (left, right) => left == right,
    }
}

/// Declares for each class a builtin over values, or over arrays whose elements are of that class.
macro_rules! by_class {
    (@each $text:literal, $($function:ident $class:ident),*) => {
        $(fn $function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
            run(heap, Class::$class, arguments)
        })*
        /// The builtin for a class.
        pub(in super::super) fn of(class: Class) -> Named {
            match class {
                $(Class::$class => (concat!($text, "_", stringify!($function)), $function),)*
            }
        }
    };
    ($name:ident, $text:literal, |$heap:ident, $class:ident, $arguments:ident| $body:expr) => {
        pub(super) mod $name {
            use super::*;
            fn run($heap: &mut Heap, $class: Class, $arguments: &[Slot]) -> Result<Slot> {
                $body
            }
            by_class!(@each $text, integer Integer, decimal Decimal, double Double, bytes Bytes,
                interval Interval, json Json, integers Integers, decimals Decimals, doubles Doubles, texts Texts,
                intervals Intervals, row Row, rows Rows);
        }
    };
}

pub(super) use by_class;

/// `= ANY` with its three values: whether one element is equal, NULL when that is unknown.
macro_rules! quantified {
    ($($name:ident, $text:literal, $accept:expr;)*) => {
        $(by_class!($name, $text, |heap, class, arguments| {
            let [left, array] = arguments else { return Ok(Slot::NULL) };
            if array.is_null() {
                return Ok(Slot::NULL);
            }
            let accept: fn(Ordering) -> bool = $accept;
            let elements = heap.array(*array);
            let mut unknown = false;
            for element in elements {
                if left.is_null() || element.is_null() {
                    unknown = true;
                } else if accept(compare(heap, class, *left, *element)) {
                    return Ok(Slot::TRUE);
                }
            }
            Ok(if unknown { Slot::NULL } else { Slot::FALSE })
        });)*
    };
}

quantified! {
    any_equal, "any_eq", |order| order.is_eq();
    any_not_equal, "any_ne", |order| order.is_ne();
    any_less, "any_lt", |order| order.is_lt();
    any_less_or_equal, "any_le", |order| order.is_le();
    any_greater, "any_gt", |order| order.is_gt();
    any_greater_or_equal, "any_ge", |order| order.is_ge();
}

/// `left <comparison> ANY (array)`.
pub(in super::super) fn any_of(comparison: Comparison, class: Class) -> Option<Named> {
    Some(match comparison {
        Comparison::Equal => any_equal::of(class),
        Comparison::NotEqual => any_not_equal::of(class),
        Comparison::Less => any_less::of(class),
        Comparison::LessOrEqual => any_less_or_equal::of(class),
        Comparison::Greater => any_greater::of(class),
        Comparison::GreaterOrEqual => any_greater_or_equal::of(class),
        Comparison::Distinct | Comparison::NotDistinct => return None,
    })
}

by_class!(greatest_of, "greatest", |heap, class, arguments| {
    let known = arguments
        .iter()
        .copied()
        .filter(|argument| !argument.is_null());
    let greatest = known.reduce(|best, next| {
        if compare(heap, class, next, best).is_gt() {
            next
        } else {
            best
        }
    });
    Ok(greatest.unwrap_or(Slot::NULL))
});

by_class!(least_of, "least", |heap, class, arguments| {
    let known = arguments
        .iter()
        .copied()
        .filter(|argument| !argument.is_null());
    let least = known.reduce(|best, next| {
        if compare(heap, class, next, best).is_lt() {
            next
        } else {
            best
        }
    });
    Ok(least.unwrap_or(Slot::NULL))
});

/// GREATEST or LEAST of any number of arguments.
pub(in super::super) fn extreme(class: Class, greatest: bool) -> Named {
    if greatest {
        greatest_of::of(class)
    } else {
        least_of::of(class)
    }
}

/// `ARRAY[…]`: the arguments as elements.
pub(in super::super) const fn construct_array() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        Ok(heap.push_array(arguments))
    }
    ("array", function)
}

/// `array_append` and `array || element`: a NULL array counts as empty.
pub(in super::super) const fn array_append() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        match arguments {
            [array, element] if array.is_null() => Ok(heap.push_array(&[*element])),
            [array, element] => {
                check_elements(heap.array(*array).len())?;
                Ok(heap.array_append(*array, *element))
            }
            _ => Ok(Slot::NULL),
        }
    }
    ("array_append", function)
}

/// `array_prepend` and `element || array`.
pub(in super::super) const fn array_prepend() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        match arguments {
            [element, array] if array.is_null() => Ok(heap.push_array(&[*element])),
            [element, array] => {
                check_elements(heap.array(*array).len())?;
                let mut elements = vec![*element];
                elements.extend_from_slice(heap.array(*array));
                Ok(heap.push_array(&elements))
            }
            _ => Ok(Slot::NULL),
        }
    }
    ("array_prepend", function)
}

/// `array_cat` and `array || array`.
pub(in super::super) const fn array_concat() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        match arguments {
            [left, right] if left.is_null() => Ok(*right),
            [left, right] if right.is_null() => Ok(*left),
            [left, right] => {
                check_elements(heap.array(*left).len() + heap.array(*right).len())?;
                let mut elements = heap.array(*left).to_vec();
                elements.extend_from_slice(heap.array(*right));
                Ok(heap.push_array(&elements))
            }
            _ => Ok(Slot::NULL),
        }
    }
    ("array_cat", function)
}

/// The array with the element at an index (from 1) replaced: what `variable[i] := value` stores.
/// An element behind the last extends the array; a NULL array counts as empty.
pub(crate) fn array_set() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        set_element(heap, arguments, true)
    }
    ("array_set", function)
}

/// As [`array_set`], for a column: what PostgreSQL would store as an array that begins at another
/// number is refused.
pub(in super::super) fn array_set_in_row() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        set_element(heap, arguments, false)
    }
    ("array_set_in_row", function)
}

fn set_element(heap: &mut Heap, arguments: &[Slot], may_skip: bool) -> Result<Slot> {
    let [array, index, element] = arguments else {
        return Ok(Slot::NULL);
    };
    if index.is_null() {
        return Err(null_subscript());
    }
    let array = if array.is_null() {
        heap.push_array(&[])
    } else {
        *array
    };
    let length = heap.array(array).len();
    let at = match usize::try_from(index.as_i64() - 1) {
        Ok(at) if may_skip || at == 0 || length > 0 => at,
        _ => return Err(begins_elsewhere()),
    };
    if at < length {
        return Ok(heap.array_replace(array, at, *element));
    }
    check_elements(at)?;
    let mut extended = array;
    for _ in length..at {
        extended = heap.array_append(extended, Slot::NULL);
    }
    Ok(heap.array_append(extended, *element))
}

/// The array with other elements between two numbers (from 1): what `array[low:high] = …` stores.
/// Before each number stands whether it was given.
pub(in super::super) fn array_set_slice() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        let [array, has_low, low, has_high, high, source] = arguments else {
            return Ok(Slot::NULL);
        };
        if low.is_null() || high.is_null() {
            return Err(null_subscript());
        }
        let array = match array.is_null() {
            true => heap.push_array(&[]),
            false => *array,
        };
        if source.is_null() {
            return Ok(array);
        }
        let length = heap.array(array).len() as i64;
        let (has_low, has_high) = (has_low.as_bool(), has_high.as_bool());
        if length == 0 && !(has_low && has_high) {
            let message = "array slice subscript must provide both boundaries";
            let detail = "When assigning to a slice of an empty array value, slice boundaries must be \
                          fully specified.";
            return Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message).with_detail(detail));
        }
        let low = if has_low { low.as_i64() } else { 1 };
        let high = if has_high { high.as_i64() } else { length };
        if low > high {
            let message = "upper bound cannot be less than lower bound";
            return Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        check_elements(usize::try_from(high - low).unwrap_or(usize::MAX))?;
        let count = usize::try_from(high - low + 1).unwrap_or_default();
        if heap.array(*source).len() < count {
            let message = "source array too small";
            return Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        if low < 1 || (length == 0 && low != 1) {
            return Err(begins_elsewhere());
        }
        let from = usize::try_from(low - 1).unwrap_or_default();
        check_elements(from + count)?;
        let mut elements = heap.array(array).to_vec();
        if elements.len() < from + count {
            elements.resize(from + count, Slot::NULL);
        }
        elements[from..from + count].copy_from_slice(&heap.array(*source)[..count]);
        Ok(heap.push_array(&elements))
    }
    ("array_set_slice", function)
}

#[cold]
fn null_subscript() -> Error {
    let message = "array subscript in assignment must not be null";
    Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
}

#[cold]
fn begins_elsewhere() -> Error {
    Error::unsupported("an array that begins at another number than 1 is not supported")
}

/// `array[low:high]`; either bound may be NULL for an open end when the call has been given a
/// flag that says so.
pub(in super::super) fn array_slice() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        let [array, low, high] = arguments else {
            return Ok(Slot::NULL);
        };
        if array.is_null() || low.is_null() || high.is_null() {
            return Ok(Slot::NULL);
        }
        let length = heap.array(*array).len() as i64;
        let from = low.as_i64().max(1) - 1;
        let to = high.as_i64().min(length);
        if from >= to {
            return Ok(heap.push_array(&[]));
        }
        let elements = heap.array(*array)[from as usize..to as usize].to_vec();
        Ok(heap.push_array(&elements))
    }
    ("array_slice", function)
}

strict! {
    CARDINALITY = "cardinality", |heap, array| Ok(length(heap, array));
    ARRAY_LENGTH = "array_length", |heap, array, dimension| {
        let count = heap.array(array).len();
        Ok(first_dimension(heap, array, dimension, count))
    };
    ARRAY_UPPER = "array_upper", |heap, array, dimension| {
        let count = heap.array(array).len();
        Ok(first_dimension(heap, array, dimension, count))
    };
    ARRAY_LOWER = "array_lower", |heap, array, dimension| {
        Ok(first_dimension(heap, array, dimension, 1))
    };
    ARRAY_DIMS = "array_dims", |heap, array| {
        let count = heap.array(array).len();
        match count {
            0 => Ok(Slot::NULL),
            _ => Ok(heap.push_str(&format!("[1:{count}]"))),
        }
    };
    TRIM_ARRAY = "trim_array", |heap, array, count| {
        let (offset, length) = array.span();
        let kept = usize::try_from(count.as_i64()).ok().and_then(|count| length.checked_sub(count));
        match kept {
            Some(kept) => Ok(Slot::from_span(offset as u32, kept as u32)),
            None => Err(Error::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                format!("number of elements to trim must be between 0 and {length}"),
            )),
        }
    };
    ARRAY_NDIMS = "array_ndims", |heap, array| {
        Ok(first_dimension(heap, array, Slot::from_i64(1), 1))
    };
    ARRAY_TO_STRING = "array_to_string", |heap, array, delimiter| {
        let mut joined = Vec::new();
        for (index, element) in
            heap.array(array).iter().filter(|element| !element.is_null()).enumerate()
        {
            if index > 0 {
                joined.extend_from_slice(heap.bytes(delimiter));
            }
            joined.extend_from_slice(heap.bytes(*element));
            super::check_length(joined.len())?;
        }
        Ok(heap.push_bytes(&joined))
    };
}

/// The parts of a text between delimiters, its letters where the delimiter is NULL. A part that is
/// the same as the third argument, if there is one, is NULL.
pub(in super::super) const fn string_to_array() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        let [text, delimiter, rest @ ..] = arguments else {
            return Err(Error::internal(
                "string_to_array takes a text and a delimiter",
            ));
        };
        if text.is_null() {
            return Ok(Slot::NULL);
        }
        let whole = heap.str(*text).to_owned();
        let null = rest.first().filter(|null| !null.is_null());
        let null = null.map(|null| heap.str(*null).to_owned());
        let parts: Vec<String> = match (whole.as_str(), delimiter.is_null()) {
            ("", _) => Vec::new(),
            (whole, true) => whole.chars().map(String::from).collect(),
            (whole, false) => match heap.str(*delimiter) {
                "" => vec![whole.to_owned()],
                delimiter => whole.split(delimiter).map(str::to_owned).collect(),
            },
        };
        check_elements(parts.len())?;
        let elements: Vec<Slot> = parts
            .into_iter()
            .map(|part| match null.as_ref() == Some(&part) {
                true => Slot::NULL,
                false => heap.push_str(&part),
            })
            .collect();
        Ok(heap.push_array(&elements))
    }
    ("string_to_array", function)
}

/// `array_to_string` with a text for NULL elements, which may be NULL itself.
const fn array_to_string_with_nulls() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        let [array, delimiter, instead] = arguments else {
            return Ok(Slot::NULL);
        };
        if array.is_null() || delimiter.is_null() {
            return Ok(Slot::NULL);
        }
        let mut joined = Vec::new();
        let mut is_first = true;
        for element in heap.array(*array) {
            let element = match element.is_null() {
                true => *instead,
                false => *element,
            };
            if element.is_null() {
                continue;
            }
            if !is_first {
                joined.extend_from_slice(heap.bytes(*delimiter));
            }
            is_first = false;
            joined.extend_from_slice(heap.bytes(element));
            super::check_length(joined.len())?;
        }
        Ok(heap.push_bytes(&joined))
    }
    ("array_to_string_with_nulls", function)
}

/// The values of an aggregate in its own order: the arguments are the values, arrays of what they
/// are sorted by, and how, see [`order_of`].
pub(in super::super) fn sorted_values() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        let Some((values, order)) = sorted(heap, arguments)? else {
            return Ok(Slot::NULL);
        };
        let values: Vec<Slot> = order.into_iter().map(|at| values[at]).collect();
        Ok(heap.push_array(&values))
    }
    ("sorted_values", function)
}

/// The texts of `string_agg` in its own order, with the delimiters that are the second argument; a
/// NULL delimiter counts as empty.
pub(in super::super) fn sorted_texts() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        let [values, delimiters, keys @ ..] = arguments else {
            return Ok(Slot::NULL);
        };
        if values.is_null() {
            return Ok(Slot::NULL);
        }
        let delimiters = heap.array(*delimiters).to_vec();
        let arguments: Vec<Slot> = std::iter::once(*values)
            .chain(keys.iter().copied())
            .collect();
        let Some((values, order)) = sorted(heap, &arguments)? else {
            return Ok(Slot::NULL);
        };
        let mut joined = Vec::new();
        for (place, at) in order.into_iter().enumerate() {
            if place > 0 && !delimiters[at].is_null() {
                joined.extend_from_slice(heap.bytes(delimiters[at]));
            }
            joined.extend_from_slice(heap.bytes(values[at]));
            super::check_length(joined.len())?;
        }
        Ok(heap.push_bytes(&joined))
    }
    ("sorted_texts", function)
}

/// How [`sorted_values`] sorts: three letters a key, its class, its direction, and where NULLs are.
pub(in super::super) fn order_of(keys: &[(Class, bool, bool)]) -> String {
    let mut text = String::with_capacity(keys.len() * 3);
    for (class, descending, nulls_first) in keys {
        text.push(match class {
            Class::Integer => 'i',
            Class::Decimal => 'n',
            Class::Double => 'd',
            Class::Bytes => 'b',
            Class::Interval => 't',
            Class::Json => 'j',
            Class::Integers => 'I',
            Class::Decimals => 'N',
            Class::Doubles => 'D',
            Class::Texts => 'B',
            Class::Intervals => 'T',
            Class::Row => 'r',
            Class::Rows => 'R',
        });
        text.push(if *descending { '>' } else { '<' });
        text.push(if *nulls_first { 'f' } else { 'l' });
    }
    text
}

/// The values, and the positions in which they are in order; `None` without values.
fn sorted(heap: &Heap, arguments: &[Slot]) -> Result<Option<(Vec<Slot>, Vec<usize>)>> {
    let [values, keys @ .., order] = arguments else {
        return Err(Error::internal("sorted values without an order"));
    };
    if values.is_null() {
        return Ok(None);
    }
    let letters: Vec<char> = heap.str(*order).chars().collect();
    let mut by = Vec::with_capacity(keys.len());
    for (key, letters) in keys.iter().zip(letters.chunks(3)) {
        let class = match letters[0] {
            'i' => Class::Integer,
            'n' => Class::Decimal,
            'd' => Class::Double,
            'b' => Class::Bytes,
            'I' => Class::Integers,
            'N' => Class::Decimals,
            'D' => Class::Doubles,
            'B' => Class::Texts,
            'T' => Class::Intervals,
            'j' => Class::Json,
            'r' => Class::Row,
            'R' => Class::Rows,
            _ => Class::Interval,
        };
        by.push((
            heap.array(*key),
            class,
            letters[1] == '>',
            letters[2] == 'f',
        ));
    }
    let values = heap.array(*values).to_vec();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| {
        let keys = by.iter().map(|(keys, class, descending, nulls_first)| {
            let (one, other) = (keys[one], keys[other]);
            match (one.is_null(), other.is_null()) {
                (false, false) => {
                    let order = compare(heap, *class, one, other);
                    if *descending { order.reverse() } else { order }
                }
                (one, other) if *nulls_first => other.cmp(&one),
                (one, other) => one.cmp(&other),
            }
        });
        keys.fold(Ordering::Equal, Ordering::then)
    });
    Ok(Some((values, order)))
}

signatures! {
    "cardinality"(AnyArray) -> Int4 = CARDINALITY;
    "array_length"(AnyArray, Int4) -> Int4 = ARRAY_LENGTH;
    "array_upper"(AnyArray, Int4) -> Int4 = ARRAY_UPPER;
    "array_lower"(AnyArray, Int4) -> Int4 = ARRAY_LOWER;
    "array_ndims"(AnyArray) -> Int4 = ARRAY_NDIMS;
    "array_dims"(AnyArray) -> Text = ARRAY_DIMS;
    "trim_array"(AnyArray, Int4) -> AnyArray = TRIM_ARRAY;
    "array_append"(AnyArray, AnyElement) -> AnyArray = array_append();
    "array_prepend"(AnyElement, AnyArray) -> AnyArray = array_prepend();
    "array_cat"(AnyArray, AnyArray) -> AnyArray = array_concat();
    "string_to_array"(Text, Text) -> TextArray = string_to_array();
    "string_to_array"(Text, Text, Text) -> TextArray = string_to_array();
    "array_to_string"(TextArray, Text) -> Text = ARRAY_TO_STRING;
    "array_to_string"(TextArray, Text, Text) -> Text = array_to_string_with_nulls();
}
