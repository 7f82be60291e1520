//! Frames of windows: where they begin and end, and what they exclude.
//!
//! The ends of frames only move on from row to row of a partition. Those at an offset that counts
//! groups of equal rows, or values, are looked for from where the last row's were.

use kiln_procedure::ir::{
    Arithmetic, BufferId, Class, Comparison, Failure, Instruction, Reg, Step,
};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::WindowFrameUnits;

use super::Compiler;
use super::bound::{Definition, FrameBound, Offset, PlacedCall};
use super::functions::in_range::{DESCENDING, NULLS_FIRST, STARTS, SUBTRACTS};
use crate::parse::Exclusion;

/// The positions of a row's neighbours, counted from 1.
#[derive(Clone, Copy)]
pub(super) struct Neighbours {
    /// The row.
    pub at: Reg,
    /// The first and the last row of its partition.
    pub first: Reg,
    pub last: Reg,
    /// The first and the last row that are equal to it in the order.
    pub first_peer: Reg,
    pub last_peer: Reg,
    /// How many different rows the partition has up to it.
    pub distinct: Reg,
}

/// The sorted rows.
pub(super) struct Rows {
    pub buffer: BufferId,
    pub types: Vec<DataType>,
}

/// An end of frames that is looked for.
#[derive(Clone, Copy)]
pub(super) struct Pointer {
    /// The first row of the frame, or the first one behind it.
    at: Reg,
    /// Which of the partition's groups of equal rows that belongs to.
    group: Reg,
}

/// The ends of a call's frames that are looked for, and the offsets of both ends.
#[derive(Clone, Copy, Default)]
pub(super) struct Pointers {
    start: Option<Pointer>,
    end: Option<Pointer>,
    offsets: [Option<Reg>; 2],
}

/// The row at hand, and what its frames are found by.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub rows: &'a Rows,
    pub definition: &'a Definition,
    pub row: &'a [Reg],
    pub neighbours: Neighbours,
}

impl Compiler<'_> {
    /// Computes the offsets of frames.
    pub(super) fn emit_offsets(&mut self, offsets: &[Offset]) -> Result<Vec<Reg>> {
        let mut registers = Vec::with_capacity(offsets.len());
        for offset in offsets {
            let register = self.emit(&offset.value)?;
            let what = if offset.ends { "ending" } else { "starting" };
            self.require_offset(register, what, offset.counts);
            registers.push(register);
        }
        Ok(registers)
    }

    /// What looks for the ends of a call's frames.
    pub(super) fn pointers(&mut self, call: &PlacedCall, offsets: &[Reg]) -> Pointers {
        let frame = &call.call.window.frame;
        let counts_rows = frame.units == WindowFrameUnits::Rows;
        let mut pointer = |bound: &FrameBound| {
            let is_moving = !counts_rows && bound.offset().is_some();
            is_moving.then(|| Pointer {
                at: self.zero(),
                group: self.zero(),
            })
        };
        Pointers {
            start: pointer(&frame.start),
            end: pointer(&frame.end),
            offsets: call.offsets.map(|at| at.map(|at| offsets[at])),
        }
    }

    /// Begins at the first row of a partition.
    pub(super) fn reset_pointers(&mut self, pointers: Pointers, first: Reg) {
        let one = self.number(1);
        for pointer in pointers.start.into_iter().chain(pointers.end) {
            self.set(pointer.at, first);
            self.set(pointer.group, one);
        }
    }

    /// The first and the last row of a frame; it is empty when they are the wrong way round.
    pub(super) fn frame(
        &mut self,
        call: &PlacedCall,
        place: Place<'_>,
        pointers: Pointers,
    ) -> Result<(Reg, Reg)> {
        let frame = &call.call.window.frame;
        let neighbours = place.neighbours;
        let (current_first, current_last) = match frame.units {
            WindowFrameUnits::Rows => (neighbours.at, neighbours.at),
            _ => (neighbours.first_peer, neighbours.last_peer),
        };
        let first = self.builder.register(DataType::BigInt);
        let last = self.builder.register(DataType::BigInt);
        match pointers.start {
            Some(pointer) => {
                self.look_for(call, place, (pointer, pointers.offsets[0]), 0)?;
                self.set(first, pointer.at);
            }
            None => {
                let offset = (&frame.start, pointers.offsets[0]);
                self.frame_bound(offset, neighbours, current_first, first);
            }
        }
        match pointers.end {
            Some(pointer) => {
                self.look_for(call, place, (pointer, pointers.offsets[1]), 1)?;
                let one = self.number(1);
                self.computed_into(Arithmetic::Subtract, last, pointer.at, one);
            }
            None => {
                let offset = (&frame.end, pointers.offsets[1]);
                self.frame_bound(offset, neighbours, current_last, last);
            }
        }
        self.limit(first, Comparison::Less, neighbours.first);
        self.limit(last, Comparison::Greater, neighbours.last);
        Ok((first, last))
    }

    fn require_offset(&mut self, offset: Reg, what: &str, counts: bool) {
        self.builder.scalar(Instruction::RequireNotNull {
            source: offset,
            error: failure(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!("frame {what} offset must not be null"),
            ),
        });
        if !counts {
            return;
        }
        let zero = self.number(0);
        let condition = self.compared(Comparison::GreaterOrEqual, offset, zero);
        self.builder.scalar(Instruction::Require {
            condition,
            null_fails: true,
            error: failure(
                SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
                format!("frame {what} offset must not be negative"),
            ),
        });
    }

    /// Sets `target` to an end that follows from the row's neighbours.
    fn frame_bound(
        &mut self,
        (bound, offset): (&FrameBound, Option<Reg>),
        neighbours: Neighbours,
        current: Reg,
        target: Reg,
    ) {
        let op = match bound {
            FrameBound::First => return self.set(target, neighbours.first),
            FrameBound::Last => return self.set(target, neighbours.last),
            FrameBound::Current => return self.set(target, current),
            FrameBound::Preceding(_) => Arithmetic::Subtract,
            FrameBound::Following(_) => Arithmetic::Add,
        };
        let Some(offset) = offset else {
            return;
        };
        let distance = self.distance(offset);
        self.computed_into(op, target, current, distance);
    }

    /// An offset that is counted, as far as it makes a difference.
    fn distance(&mut self, offset: Reg) -> Reg {
        // No frame is longer than this, and so no sum too large.
        let most = self.number(i64::MAX / 4);
        let distance = self.builder.register(DataType::BigInt);
        self.set(distance, offset);
        self.limit(distance, Comparison::Greater, most);
        distance
    }

    /// Moves a pointer on to the end of the row's frame.
    fn look_for(
        &mut self,
        call: &PlacedCall,
        place: Place<'_>,
        (pointer, offset): (Pointer, Option<Reg>),
        end: usize,
    ) -> Result<()> {
        let Some(offset) = offset else {
            return Ok(());
        };
        let frame = &call.call.window.frame;
        let bound = if end == 0 { &frame.start } else { &frame.end };
        let precedes = matches!(bound, FrameBound::Preceding(_));
        let last = place.neighbours.last;
        let Some((name, function)) = frame.in_range else {
            return self.look_for_group(place, pointer, offset, precedes, end);
        };
        let Some(&(column, descending, nulls_first)) = place.definition.order.first() else {
            return Ok(());
        };
        let mut flags = 0;
        for (flag, is_set) in [
            (SUBTRACTS, precedes),
            (DESCENDING, descending),
            (NULLS_FIRST, nulls_first),
            (STARTS, end == 0),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        let flags = self.number(flags);
        self.open_ir_loop();
        let is_behind = self.compared(Comparison::Greater, pointer.at, last);
        self.exit_if(is_behind);
        let other = self.read_row(place.rows, pointer.at);
        let found = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::Call {
            function,
            name,
            target: found,
            arguments: [other[column], place.row[column], offset, flags].into(),
        });
        self.exit_if(found);
        self.increment(pointer.at);
        self.close_endless();
        Ok(())
    }

    /// Moves a pointer on by groups of equal rows.
    fn look_for_group(
        &mut self,
        place: Place<'_>,
        pointer: Pointer,
        offset: Reg,
        precedes: bool,
        end: usize,
    ) -> Result<()> {
        let op = match precedes {
            true => Arithmetic::Subtract,
            false => Arithmetic::Add,
        };
        let distance = self.distance(offset);
        let wanted = self.computed(op, place.neighbours.distinct, distance);
        let reached = match end {
            0 => Comparison::GreaterOrEqual,
            _ => Comparison::Greater,
        };
        let last = place.neighbours.last;
        self.open_ir_loop();
        let is_behind = self.compared(Comparison::Greater, pointer.at, last);
        self.exit_if(is_behind);
        let is_reached = self.compared(reached, pointer.group, wanted);
        self.exit_if(is_reached);
        let row = self.read_row(place.rows, pointer.at);
        let last_peer = self.builder.register(DataType::BigInt);
        let keys: Vec<usize> = place
            .definition
            .order
            .iter()
            .map(|(key, ..)| *key)
            .collect();
        let result = self.run_to_last(place.rows, &keys, &row, pointer.at, last_peer, last);
        let one = self.number(1);
        self.computed_into(Arithmetic::Add, pointer.at, last_peer, one);
        self.increment(pointer.group);
        self.close_endless();
        result
    }

    /// Whether a row is among those that the frame excludes, if it excludes any.
    pub(super) fn is_excluded(
        &mut self,
        call: &PlacedCall,
        at: Reg,
        neighbours: Neighbours,
    ) -> Option<Reg> {
        let is_current = |compiler: &mut Self, op| compiler.compared(op, at, neighbours.at);
        match call.call.window.frame.exclusion {
            Exclusion::Nothing => None,
            Exclusion::CurrentRow => Some(is_current(self, Comparison::Equal)),
            Exclusion::Group => {
                Some(self.is_within(at, neighbours.first_peer, neighbours.last_peer))
            }
            Exclusion::Ties => {
                let left = self.is_within(at, neighbours.first_peer, neighbours.last_peer);
                let right = is_current(self, Comparison::NotEqual);
                let target = self.builder.register(DataType::Boolean);
                self.builder.scalar(Instruction::And {
                    target,
                    left,
                    right,
                });
                Some(target)
            }
        }
    }

    /// Moves a position that was counted from the first row of a frame on by the rows that the
    /// frame excludes before it (`WinGetFuncArgInFrame` of PostgreSQL).
    pub(super) fn skip_from_start(
        &mut self,
        call: &PlacedCall,
        at: Reg,
        (first, _): (Reg, Reg),
        neighbours: Neighbours,
    ) -> Reg {
        let exclusion = call.call.window.frame.exclusion;
        let (low, high) = match exclusion {
            Exclusion::Nothing => return at,
            Exclusion::CurrentRow => (neighbours.at, neighbours.at),
            _ => (neighbours.first_peer, neighbours.last_peer),
        };
        let result = self.builder.register(DataType::BigInt);
        self.set(result, at);
        let is_behind = self.compared(Comparison::GreaterOrEqual, at, low);
        let is_in_frame = self.compared(Comparison::GreaterOrEqual, high, first);
        self.open();
        self.open();
        let overlap = self.builder.register(DataType::BigInt);
        self.set(overlap, low);
        self.limit(overlap, Comparison::Less, first);
        if exclusion == Exclusion::Ties {
            let others = self.computed(Arithmetic::Subtract, high, overlap);
            self.computed_into(Arithmetic::Add, result, at, others);
            let is_current = self.compared(Comparison::Equal, at, overlap);
            self.open();
            self.set(result, neighbours.at);
            self.close_if(is_current);
        } else {
            let excluded = self.length(overlap, high);
            self.computed_into(Arithmetic::Add, result, at, excluded);
        }
        self.close_if(is_in_frame);
        self.close_if(is_behind);
        result
    }

    /// The last row of a frame that it does not exclude, as PostgreSQL finds it.
    pub(super) fn skip_from_end(
        &mut self,
        call: &PlacedCall,
        (_, last): (Reg, Reg),
        neighbours: Neighbours,
    ) -> Reg {
        let exclusion = call.call.window.frame.exclusion;
        let (low, high) = match exclusion {
            Exclusion::Nothing => return last,
            Exclusion::CurrentRow => (neighbours.at, neighbours.at),
            _ => (neighbours.first_peer, neighbours.last_peer),
        };
        let result = self.builder.register(DataType::BigInt);
        self.set(result, last);
        let is_before = self.compared(Comparison::LessOrEqual, last, high);
        let is_in_frame = self.compared(Comparison::LessOrEqual, low, last);
        self.open();
        self.open();
        if exclusion == Exclusion::Ties {
            // The last row of the frame is one of the group, and the row itself stays.
            self.set(result, neighbours.at);
        } else {
            let excluded = self.length(low, last);
            self.computed_into(Arithmetic::Subtract, result, last, excluded);
        }
        self.close_if(is_in_frame);
        self.close_if(is_before);
        result
    }

    pub(super) fn number(&mut self, number: i64) -> Reg {
        self.builder
            .constant(DataType::BigInt, Value::BigInt(number))
    }

    /// `value := bound` where `value <comparison> bound`.
    pub(super) fn limit(&mut self, value: Reg, comparison: Comparison, bound: Reg) {
        let exceeds = self.compared(comparison, value, bound);
        self.open();
        self.set(value, bound);
        self.close_if(exceeds);
    }

    pub(super) fn is_within(&mut self, at: Reg, first: Reg, last: Reg) -> Reg {
        let left = self.compared(Comparison::GreaterOrEqual, at, first);
        let right = self.compared(Comparison::LessOrEqual, at, last);
        let target = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::And {
            target,
            left,
            right,
        });
        target
    }

    pub(super) fn compared(&mut self, op: Comparison, left: Reg, right: Reg) -> Reg {
        let target = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::Compare {
            op,
            class: Class::Integer,
            target,
            left,
            right,
        });
        target
    }

    pub(super) fn set(&mut self, target: Reg, source: Reg) {
        self.builder.scalar(Instruction::Move { target, source });
    }

    /// Leaves the innermost loop where `condition` is TRUE.
    pub(super) fn exit_if(&mut self, condition: Reg) {
        self.open();
        self.builder.push(Step::Exit { depth: 0 });
        self.close_if(condition);
    }
}

pub(super) fn failure(state: SqlState, message: String) -> Box<Failure> {
    Box::new(Failure {
        state,
        message,
        arguments: Box::default(),
        detail: None,
        hint: None,
        subject: None,
        position: None,
    })
}
