//! Rows kept within a run, and rows that go out.

use kiln_storage::slot::{Memory, Slot};

use super::{Executor, Flow};
use crate::access::Access;
use crate::buffer::combine;
use crate::frame::{self, Frame};
use crate::ir::*;

impl<'a, A: Access> Executor<'a, A> {
    pub(super) fn push(&mut self, buffer: BufferId, row: &[Reg]) {
        let Frame {
            buffers, memory, ..
        } = &mut *self.frame;
        let rows = &mut buffers[buffer.0 as usize].rows;
        rows.extend(row.iter().map(|register| memory.slots[register.0 as usize]));
    }

    pub(super) fn count(&self, buffer: BufferId) -> Slot {
        let width = self.program.buffers[buffer.0 as usize].max(1);
        let rows = self.frame.buffers[buffer.0 as usize].rows.len() / width;
        Slot::from_i64(rows as i64)
    }

    pub(super) fn emit(&mut self, row: &[Reg]) {
        let Frame {
            result,
            result_rows,
            memory,
            ..
        } = &mut *self.frame;
        result.extend(row.iter().map(|register| memory.slots[register.0 as usize]));
        *result_rows += 1;
    }

    /// Runs `body` for each row of a buffer.
    pub(super) fn for_buffer(&mut self, buffer: BufferId, row: &[Reg], body: &'a [Step]) -> Flow {
        let width = self.program.buffers[buffer.0 as usize];
        let mut position = 0;
        // The body may append; rows appended meanwhile are visited too.
        while position + width <= self.frame.buffers[buffer.0 as usize].rows.len() {
            for (column, register) in row.iter().enumerate() {
                let slot = self.frame.buffers[buffer.0 as usize].rows[position + column];
                self.set(*register, slot);
            }
            position += width;
            after_body!(self, self.block(body));
        }
        Flow::Next
    }

    /// Runs `body` for each row of a buffer that has these values.
    pub(super) fn for_matching(
        &mut self,
        buffer: BufferId,
        matching: &[Match],
        row: &[Reg],
        body: &'a [Step],
    ) -> Flow {
        let width = self.program.buffers[buffer.0 as usize];
        let mut values = [Slot::NULL; MATCHES_MAX];
        let values = &mut values[..matching.len()];
        for (value, one) in values.iter_mut().zip(matching) {
            *value = self.get(one.value);
            if value.is_null() {
                return Flow::Next;
            }
        }
        let Frame {
            buffers, memory, ..
        } = &mut *self.frame;
        let mut walk = buffers[buffer.0 as usize].matches(width, matching, values, &memory.heap);
        loop {
            let Frame {
                buffers, memory, ..
            } = &mut *self.frame;
            let rows = &buffers[buffer.0 as usize];
            let next = rows.next_match(&mut walk, width, matching, values, &memory.heap);
            let Some(at) = next else { break };
            for (column, register) in row.iter().enumerate() {
                memory.slots[register.0 as usize] = rows.rows[at * width + column];
            }
            after_body!(self, self.block(body));
        }
        Flow::Next
    }

    pub(super) fn push_distinct(
        &mut self,
        buffer: BufferId,
        row: &[Reg],
        classes: &[Class],
    ) -> bool {
        let Frame {
            buffers,
            memory: Memory { slots, heap },
            ..
        } = &mut *self.frame;
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

    pub(super) fn sort(&mut self, buffer: BufferId, by: &[SortKey]) {
        let width = self.program.buffers[buffer.0 as usize];
        let Frame {
            buffers, memory, ..
        } = &mut *self.frame;
        let buffer = &mut buffers[buffer.0 as usize];
        let rows = &buffer.rows;
        if width == 0 || rows.len() <= width {
            return;
        }
        let mut order: Vec<u32> = (0..(rows.len() / width) as u32).collect();
        order.sort_by(|&a, &b| {
            for key in by {
                let column = key.column as usize;
                let (a, b) = (
                    rows[a as usize * width + column],
                    rows[b as usize * width + column],
                );
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
        });
        let sorted: Vec<Slot> = order
            .iter()
            .flat_map(|&row| &rows[row as usize * width..(row as usize + 1) * width])
            .copied()
            .collect();
        buffer.replace(sorted);
    }
}
