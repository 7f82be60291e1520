//! Rows kept within a run, and rows that go out.

use kiln_storage::slot::{Memory, Slot};

use super::{Executor, Leave};
use crate::access::Access;
use crate::buffer::{Matches, combine};
use crate::code::{Label, Rows, Walk};
use crate::frame::{self, Frame};
use crate::ir::*;
use crate::journey::{Level, Matching};

impl<'a, A: Access> Executor<'a, A> {
    /// Runs `body` for the rows of a buffer. [`Leave::Iteration`] says that it went to the last.
    pub(super) fn for_buffer(&mut self, walk: &Walk, body: Label) -> Leave {
        if !walk.matching.is_empty() {
            return self.for_matching(walk, body);
        }
        self.for_rows(walk, body, 0)
    }

    /// As [`Executor::for_buffer`], from the row at `position` on.
    pub(super) fn for_rows(&mut self, walk: &Walk, body: Label, mut position: usize) -> Leave {
        let (buffer, width) = (walk.buffer.0 as usize, walk.width);
        // The body may append; rows appended meanwhile are visited too.
        while position + width <= self.frame.buffers[buffer].rows.len() {
            for (column, register) in walk.row.iter().enumerate() {
                let slot = self.frame.buffers[buffer].rows[position + column];
                self.set(*register, slot);
            }
            position += width;
            if let Some(leave) = self.iteration(body) {
                if A::TRAVELS && leave == Leave::Away {
                    self.away_in(Level::Rows { body, position });
                }
                return leave;
            }
        }
        Leave::Iteration
    }

    /// Runs `body` for each row of a buffer that has certain values.
    fn for_matching(&mut self, walk: &Walk, body: Label) -> Leave {
        let (width, matching) = (walk.width, &*walk.matching);
        let mut values = [Slot::NULL; MATCHES_MAX];
        let values = &mut values[..matching.len()];
        for (value, one) in values.iter_mut().zip(matching) {
            *value = self.get(one.value);
            if value.is_null() {
                return Leave::Iteration;
            }
        }
        let Frame {
            buffers, memory, ..
        } = &mut *self.frame;
        let buffer = walk.buffer.0 as usize;
        let position = buffers[buffer].matches(width, matching, values, &memory.heap);
        self.for_matches(walk, body, position, values)
    }

    /// Runs `body` for each row that a walk still comes to.
    pub(super) fn for_matches(
        &mut self,
        walk: &Walk,
        body: Label,
        mut position: Matches,
        values: &[Slot],
    ) -> Leave {
        let (width, matching) = (walk.width, &*walk.matching);
        let buffer = walk.buffer.0 as usize;
        loop {
            let Frame {
                buffers, memory, ..
            } = &mut *self.frame;
            let rows = &buffers[buffer];
            let next = rows.next_match(&mut position, width, matching, values, &memory.heap);
            let Some(at) = next else {
                return Leave::Iteration;
            };
            for (column, register) in walk.row.iter().enumerate() {
                memory.slots[register.0 as usize] = rows.rows[at * width + column];
            }
            if let Some(leave) = self.iteration(body) {
                if A::TRAVELS && leave == Leave::Away {
                    let matching = Matching::new(position, values);
                    self.away_in(Level::Matching { body, matching });
                }
                return leave;
            }
        }
    }
}

/// Does what `rows` says with a buffer.
pub(super) fn rows(frame: &mut Frame, rows: &Rows) {
    match rows {
        Rows::Clear { buffer } => frame.buffers[buffer.0 as usize].clear(),
        Rows::Fill {
            buffer,
            rows,
            arguments,
        } => {
            let Frame {
                buffers,
                memory: Memory { slots, heap, .. },
                ..
            } = frame;
            let buffer = &mut buffers[buffer.0 as usize];
            let arguments = arguments.iter().map(|register| slots[register.0 as usize]);
            let arguments: Vec<Slot> = arguments.collect();
            buffer.clear();
            rows.append_to(heap, &arguments, &mut buffer.rows);
        }
        Rows::Push { buffer, row } => {
            let rows = &mut frame.buffers[buffer.0 as usize].rows;
            let slots = &frame.memory.slots;
            rows.extend(row.iter().map(|register| slots[register.0 as usize]));
        }
        Rows::PushDistinct {
            buffer,
            row,
            classes,
            added,
        } => {
            let is_new = push_distinct(frame, *buffer, row, classes);
            frame.memory.slots[added.0 as usize] = Slot::from_bool(is_new);
        }
        Rows::Sort { buffer, width, by } => sort(frame, *buffer, *width, by),
        Rows::Count {
            buffer,
            width,
            target,
        } => {
            let rows = frame.buffers[buffer.0 as usize].rows.len() / (*width).max(1);
            frame.memory.slots[target.0 as usize] = Slot::from_i64(rows as i64);
        }
        Rows::At { buffer, at, row } => {
            let at = frame.memory.slots[at.0 as usize];
            let from = match at.is_null() {
                true => None,
                false => usize::try_from(at.as_i64().wrapping_sub(1)).ok(),
            };
            let from = from.and_then(|at| at.checked_mul(row.len()));
            let rows = &frame.buffers[buffer.0 as usize].rows;
            let found = from.and_then(|from| rows.get(from..from.checked_add(row.len())?));
            for (column, register) in row.iter().enumerate() {
                let slot = found.map_or(Slot::NULL, |found| found[column]);
                frame.memory.slots[register.0 as usize] = slot;
            }
        }
    }
}

/// Appends a row to the result.
pub(super) fn emit(frame: &mut Frame, row: &[Reg]) {
    let slots = &frame.memory.slots;
    let row = row.iter().map(|register| slots[register.0 as usize]);
    frame.result.extend(row);
    frame.result_rows += 1;
}

/// Appends a row unless an equal one is there; says whether it did.
fn push_distinct(frame: &mut Frame, buffer: BufferId, row: &[Reg], classes: &[Class]) -> bool {
    let Frame {
        buffers,
        memory: Memory { slots, heap, .. },
        ..
    } = frame;
    let buffer = &mut buffers[buffer.0 as usize];
    let width = row.len();
    let rows = &mut buffer.rows;
    let position = rows.len() / width.max(1);
    rows.extend(row.iter().map(|register| slots[register.0 as usize]));
    let (old, new) = rows.split_at(position * width);
    let hash_row = |row: &[Slot]| {
        row.iter().zip(classes).fold(0_u64, |state, (slot, class)| {
            combine(state, frame::hash(heap, *class, *slot))
        })
    };
    let old_row = |at: usize| &old[at * width..(at + 1) * width];
    let equals = |at: usize| {
        old_row(at)
            .iter()
            .zip(new)
            .zip(classes)
            .all(|((a, b), class)| match (a.is_null(), b.is_null()) {
                (false, false) => frame::compare(heap, *class, *a, *b).is_eq(),
                (a, b) => a == b,
            })
    };
    let known = buffer
        .distinct
        .find_or_note(hash_row(new), position, equals, |at| hash_row(old_row(at)));
    if known.is_some() {
        rows.truncate(position * width);
    }
    known.is_none()
}

fn sort(frame: &mut Frame, buffer: BufferId, width: usize, by: &[SortKey]) {
    let Frame {
        buffers, memory, ..
    } = frame;
    let buffer = &mut buffers[buffer.0 as usize];
    let rows = &buffer.rows;
    if width == 0 || rows.len() <= width {
        return;
    }
    let row = |at: u32| &rows[at as usize * width..][..width];
    let compare = |a: u32, b: u32| {
        for key in by {
            let column = key.column as usize;
            let (a, b) = (row(a)[column], row(b)[column]);
            let ordering = match (a.is_null(), b.is_null()) {
                (false, false) => {
                    let ordering = frame::compare(&memory.heap, key.class, a, b);
                    if key.descending {
                        ordering.reverse()
                    } else {
                        ordering
                    }
                }
                (a, b) if key.nulls_first => b.cmp(&a),
                (a, b) => a.cmp(&b),
            };
            if ordering.is_ne() {
                return ordering;
            }
        }
        std::cmp::Ordering::Equal
    };
    let count = (rows.len() / width) as u32;
    // Rows that come by an index are in its order already: then nothing is copied.
    if (1..count).all(|at| compare(at - 1, at).is_le()) {
        return;
    }
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by(|&a, &b| compare(a, b));
    let mut sorted = Vec::with_capacity(rows.len());
    order
        .iter()
        .for_each(|&at| sorted.extend_from_slice(row(at)));
    buffer.replace(sorted);
}
