//! Functions of arrays that look for elements.

use kiln_procedure::ir::Class;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};

use super::array::{by_class, same};
use super::cast::Named;

by_class!(position_in, "array_position", |heap, class, arguments| {
    let [array, wanted, rest @ ..] = arguments else {
        return Ok(Slot::NULL);
    };
    if array.is_null() {
        return Ok(Slot::NULL);
    }
    let first = match rest {
        [start] if start.is_null() => {
            let message = "initial position must not be null";
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        [start] => start.as_i64().max(1) as usize - 1,
        _ => 0,
    };
    let elements = heap.array(*array).iter().enumerate().skip(first);
    let mut found = elements.filter(|(_, element)| same(heap, class, **element, *wanted));
    Ok(found
        .next()
        .map_or(Slot::NULL, |(index, _)| Slot::from_i64(index as i64 + 1)))
});

by_class!(positions_in, "array_positions", |heap, class, arguments| {
    let [array, wanted] = arguments else {
        return Ok(Slot::NULL);
    };
    if array.is_null() {
        return Ok(Slot::NULL);
    }
    let elements = heap.array(*array).iter().zip(1..);
    let found = elements.filter(|(element, _)| same(heap, class, **element, *wanted));
    let positions: Vec<i64> = found.map(|(_, position)| position).collect();
    Ok(heap.push_integers(&positions))
});

by_class!(remove_from, "array_remove", |heap, class, arguments| {
    let [array, unwanted] = arguments else {
        return Ok(Slot::NULL);
    };
    if array.is_null() {
        return Ok(Slot::NULL);
    }
    let elements = heap.array(*array).iter().copied();
    let kept = elements.filter(|element| !same(heap, class, *element, *unwanted));
    let kept: Vec<Slot> = kept.collect();
    Ok(heap.push_array(&kept))
});

by_class!(replaced_in, "array_replace", |heap, class, arguments| {
    let [array, from, to] = arguments else {
        return Ok(Slot::NULL);
    };
    if array.is_null() {
        return Ok(Slot::NULL);
    }
    let elements = heap.array(*array).iter().copied();
    let replaced = elements.map(|element| match same(heap, class, element, *from) {
        true => *to,
        false => element,
    });
    let replaced: Vec<Slot> = replaced.collect();
    Ok(heap.push_array(&replaced))
});

/// Whether an element that is not NULL is among those of an array.
fn is_among(heap: &Heap, class: Class, element: Slot, array: Slot) -> bool {
    let mut others = heap.array(array).iter();
    !element.is_null() && others.any(|other| same(heap, class, element, *other))
}

by_class!(contains, "arraycontains", |heap, class, arguments| {
    let [whole, part] = arguments else {
        return Ok(Slot::NULL);
    };
    if Slot::either_null(*whole, *part) {
        return Ok(Slot::NULL);
    }
    let mut elements = heap.array(*part).iter();
    let is_there = |element: &Slot| is_among(heap, class, *element, *whole);
    Ok(Slot::from_bool(elements.all(is_there)))
});

by_class!(overlaps, "arrayoverlap", |heap, class, arguments| {
    let [left, right] = arguments else {
        return Ok(Slot::NULL);
    };
    if Slot::either_null(*left, *right) {
        return Ok(Slot::NULL);
    }
    let mut elements = heap.array(*left).iter();
    let is_there = |element: &Slot| is_among(heap, class, *element, *right);
    Ok(Slot::from_bool(elements.any(is_there)))
});

/// `array_position`.
pub(in super::super) fn array_position(class: Class) -> Named {
    position_in::of(class)
}

/// `array_positions`.
pub(in super::super) fn array_positions(class: Class) -> Named {
    positions_in::of(class)
}

/// `array_remove`.
pub(in super::super) fn array_remove(class: Class) -> Named {
    remove_from::of(class)
}

/// `array_replace`.
pub(in super::super) fn array_replace(class: Class) -> Named {
    replaced_in::of(class)
}

/// Whether an array has all elements of another one.
pub(in super::super) fn array_contains(class: Class) -> Named {
    contains::of(class)
}

/// Whether two arrays have a common element.
pub(in super::super) fn array_overlaps(class: Class) -> Named {
    overlaps::of(class)
}
