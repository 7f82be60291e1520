//! Aggregates over frames that move on, where what two stretches of rows have accumulated can be put
//! together: such a frame takes in each of its rows twice at most, however long it is.
//!
//! ```text
//!            first            mid              last
//!   ─ ─ ─ ─ ───┼───────────────┼────────────────┼──
//!              ├── kept ───────┤├── front ──────┤
//! ```
//!
//! `kept` has what the rows from any of them to `mid` have accumulated, and `front` goes on with the
//! rows behind `mid`. Once the frame has left all of `kept`, the rows of `front` become the next.

use kiln_procedure::ir::{Arithmetic, BufferId, Comparison, Reg, Step};
use kiln_storage::error::Result;
use kiln_storage::types::DataType;

use super::Compiler;
use super::aggregate::{Inputs, State};
use super::bound::{FrameBound, PlacedCall, WindowFunction};
use super::framed::Rows;
use crate::parse::Exclusion;

/// An aggregate over frames.
pub(super) struct Accumulation<'c> {
    pub call: &'c PlacedCall,
    pub state: State,
    /// The last row that it has taken in.
    pub done: Reg,
    pub sliding: Option<Sliding>,
}

impl Accumulation<'_> {
    /// Whether the next row's frame has all that this one's has.
    pub fn goes_on(&self) -> bool {
        let frame = &self.call.call.window.frame;
        matches!(frame.start, FrameBound::First) && frame.exclusion == Exclusion::Nothing
    }

    /// What it takes from a row.
    pub fn inputs(&self, row: &[Reg]) -> Inputs {
        let [argument, delimiter, filter] = self.call.aggregated.map(|at| at.map(|at| row[at]));
        Inputs {
            argument,
            delimiter,
            filter,
            order: self.call.sorted_by.iter().map(|at| row[*at]).collect(),
            never_null: false,
            keys: Vec::new(),
        }
    }
}

/// What a moving frame has accumulated, beside what it goes on with.
pub(super) struct Sliding {
    kept: BufferId,
    /// The last row of those that are kept.
    mid: Reg,
    /// One row, and all rows.
    one: State,
    all: State,
}

impl Compiler<'_> {
    /// What the frames of a call need, if it is an aggregate that can be put together.
    pub(super) fn sliding(&mut self, call: &PlacedCall) -> Option<Sliding> {
        let frame = &call.call.window.frame;
        let WindowFunction::Aggregate(aggregate) = &call.call.function else {
            return None;
        };
        let moves = !matches!(frame.start, FrameBound::First);
        if !moves || frame.exclusion != Exclusion::Nothing || !aggregate.combines() {
            return None;
        }
        let (one, all) = (
            self.aggregate_state(aggregate, 0),
            self.aggregate_state(aggregate, 0),
        );
        for state in [&one, &all] {
            self.aggregate_start(state);
        }
        let kept = self.builder.buffer(one.registers().count());
        self.builder.push(Step::BufferClear { buffer: kept });
        Some(Sliding {
            kept,
            mid: self.zero(),
            one,
            all,
        })
    }

    /// Begins with a partition; `before` is the row before it.
    pub(super) fn reset_sliding(&mut self, sliding: &Sliding, before: Reg) {
        let buffer = sliding.kept;
        self.builder.push(Step::BufferClear { buffer });
        self.set(sliding.mid, before);
    }

    /// The aggregate of the rows from `first` to `last`.
    pub(super) fn slide_to(
        &mut self,
        rows: &Rows,
        accumulation: &Accumulation<'_>,
        sliding: &Sliding,
        first: Reg,
        last: Reg,
    ) -> Result<Reg> {
        let Sliding {
            kept,
            mid,
            one,
            all,
        } = sliding;
        let step = self.number(1);
        let is_used_up = self.compared(Comparison::Greater, first, *mid);
        self.open();
        let result = self.keep_front(rows, accumulation, sliding, first);
        self.close_if(is_used_up);
        result?;
        self.take_in(rows, accumulation, last, None)?;
        self.aggregate_start(all);
        let has_kept = self.compared(Comparison::LessOrEqual, first, *mid);
        self.open();
        let place = self.computed(Arithmetic::Subtract, *mid, first);
        let place = self.computed(Arithmetic::Add, place, step);
        self.builder.push(Step::BufferRow {
            buffer: *kept,
            at: place,
            row: one.registers().collect(),
        });
        self.merge_states(all, one);
        self.close_if(has_kept);
        self.merge_states(all, &accumulation.state);
        Ok(self.aggregate_result(all))
    }

    /// Keeps what the rows from `first` on have accumulated, from each of them on.
    fn keep_front(
        &mut self,
        rows: &Rows,
        accumulation: &Accumulation<'_>,
        sliding: &Sliding,
        first: Reg,
    ) -> Result<()> {
        let Sliding {
            kept,
            mid,
            one,
            all,
        } = sliding;
        let done = accumulation.done;
        self.builder.push(Step::BufferClear { buffer: *kept });
        // Rows before the frame are never looked at again.
        let step = self.number(1);
        let before = self.computed(Arithmetic::Subtract, first, step);
        self.limit(done, Comparison::Less, before);
        self.aggregate_start(all);
        let at = self.builder.register(DataType::BigInt);
        self.open_ir_loop();
        let row = self.read_row(rows, at);
        self.aggregate_start(one);
        let result = self.aggregate_step(one, &accumulation.inputs(&row));
        self.merge_states(one, all);
        let registers: Vec<Reg> = one.registers().collect();
        let copies: Vec<Reg> = all.registers().collect();
        for (target, source) in copies.iter().zip(&registers) {
            self.set(*target, *source);
        }
        self.builder.push(Step::BufferPush {
            buffer: *kept,
            row: registers.into(),
        });
        let body = self.close_ir_loop();
        self.builder.push(Step::ForRange {
            variable: at,
            first: done,
            last: first,
            step,
            reverse: true,
            body,
        });
        self.set(*mid, done);
        self.aggregate_start(&accumulation.state);
        result
    }

    fn merge_states(&mut self, into: &State, other: &State) {
        let registers: Vec<Reg> = other.registers().collect();
        self.aggregate_merge(into, &registers);
    }
}
