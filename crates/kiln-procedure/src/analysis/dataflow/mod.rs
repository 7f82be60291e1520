//! The abstract run of a program that finds its dependencies.
//!
//! Each register carries the set of operations whose results it was computed from, with no other
//! operation between; a step that is an operation turns the sets of what it takes into
//! dependencies and starts new sets of its own. Branches join by union, loops repeat until
//! nothing new arrives at their head, so every flow of every run is in some set.
//!
//! Which operations *decide* that a step runs is kept beside: those of the conditions, bounds and
//! scans around it, and those that decided an EXIT, CONTINUE or RETURN before it. What a branch or
//! a loop assigns depends on them once the branch or the loop is left.

mod columns;
mod loops;
mod sets;

use std::collections::BTreeMap;

use kiln_storage::schema::{ColumnId, ColumnSet};

use super::{Analysis, Dependency, DependencyKinds, Footprint, OperationFacts};
use crate::ir::*;
use crate::names::{Use, for_each_step, step_record, step_registers};
use crate::procedure::Procedure;
use columns::{columns_of, indexed_columns};
use sets::{NONE, SetId, Sets};

/// Where a value, or a record's handle, comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flow {
    /// The operations that it was computed from or chosen by.
    from: SetId,
    /// For handles: the operations that found the record.
    found_by: SetId,
}

/// What is known of a buffer's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rows {
    columns: Vec<Flow>,
    /// What decides how many rows there are, which, and in which order.
    chosen_by: SetId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    registers: Vec<Flow>,
    records: Vec<Flow>,
    buffers: Vec<Rows>,
    /// The writing operations that may have run.
    written: SetId,
}

/// An open loop, or a protected region.
#[derive(Default)]
struct Loop {
    is_region: bool,
    /// What decides its iterations, apart from EXIT and CONTINUE.
    iterations: SetId,
    /// What decided an EXIT, CONTINUE or RETURN out of an iteration.
    escapes: SetId,
    /// The states where it is left by EXIT.
    exits: Option<State>,
    /// The states where a next iteration is begun by CONTINUE.
    continues: Option<State>,
}

/// What is gathered for one operation.
#[derive(Clone, Copy, Default)]
struct Gathered {
    /// What the registers of its own key come from.
    key: SetId,
    /// Which operations found its record.
    found_by: SetId,
    repeats: bool,
}

struct Dataflow<'a> {
    procedure: &'a Procedure,
    sets: Sets,
    /// By the operation that takes and the one that gives.
    edges: BTreeMap<(OpId, OpId), DependencyKinds>,
    /// The columns that each operation writes.
    columns_written: Vec<ColumnSet>,
    gathered: Vec<Gathered>,
    /// What was known at the head of each loop when it was last left, and what decided its
    /// iterations and its escapes; by the address of its step.
    // Ordered, so that the order in which it is dropped does not depend on where the process lies
    // in memory.
    heads: BTreeMap<*const Step, (State, SetId, SetId)>,
    /// What decides the conditionals around the step.
    conditions: Vec<SetId>,
    /// The loops around the step, innermost last.
    loops: Vec<Loop>,
    /// What decided a RETURN before the step.
    returns: SetId,
    /// What decided the error that each protected region caught.
    raised: Vec<SetId>,
}

/// Analyses a verified program.
pub(super) fn analyse(procedure: &Procedure) -> Analysis {
    let mut columns_written = vec![ColumnSet::EMPTY; procedure.operations.len()];
    for_each_step(&procedure.body, &mut |step| {
        if let Some((op, _, [_, _, written])) = columns_of(procedure, step) {
            columns_written[op.0 as usize] = written;
        }
    });
    let mut dataflow = Dataflow {
        procedure,
        columns_written,
        sets: Sets::new(),
        edges: BTreeMap::new(),
        gathered: vec![Gathered::default(); procedure.operations.len()],
        heads: BTreeMap::new(),
        conditions: Vec::new(),
        loops: Vec::new(),
        returns: NONE,
        raised: vec![NONE; procedure.regions],
    };
    let rows = |width: &usize| Rows {
        columns: vec![Flow::default(); *width],
        chosen_by: NONE,
    };
    let state = State {
        registers: vec![Flow::default(); procedure.registers.len()],
        records: vec![Flow::default(); procedure.records],
        buffers: procedure.buffers.iter().map(rows).collect(),
        written: NONE,
    };
    dataflow.block(&procedure.body, state);
    let dependencies = dataflow
        .edges
        .iter()
        .map(|((to, from), kinds)| Dependency {
            from: *from,
            to: *to,
            kinds: *kinds,
        })
        .collect();
    let mut operations: Vec<Option<OperationFacts>> = vec![None; procedure.operations.len()];
    for_each_step(&procedure.body, &mut |step| {
        if let Some((op, facts)) = dataflow.facts(step) {
            operations[op.0 as usize] = Some(facts);
        }
    });
    let operations = operations
        .into_iter()
        .map(|facts| facts.expect("every operation of a verified program has a step"))
        .collect();
    Analysis {
        operations,
        dependencies,
        ..Analysis::default()
    }
}

impl Dataflow<'_> {
    fn facts(&self, step: &Step) -> Option<(OpId, OperationFacts)> {
        let (op, _, [key_columns, columns_read, columns_written]) =
            columns_of(self.procedure, step)?;
        let gathered = self.gathered[op.0 as usize];
        let found_by = self.sets.get(gathered.found_by);
        let keys = found_by
            .iter()
            .map(|found_by| self.gathered[found_by.0 as usize].key);
        let needed = keys
            .chain([gathered.key])
            .filter_map(|key| self.sets.get(key).first())
            .min();
        let footprint = match needed {
            None => Footprint::FromArguments,
            Some(op) => Footprint::NeedsReconnaissance { because_of: *op },
        };
        let facts = OperationFacts {
            kind: self.procedure.operations[op.0 as usize].kind,
            key_columns,
            columns_read,
            columns_written,
            found_by: found_by.to_vec(),
            repeats: gathered.repeats,
            footprint,
        };
        Some((op, facts))
    }

    fn depends(&mut self, op: OpId, on: SetId, kind: DependencyKinds) {
        for from in self.sets.get(on) {
            let kinds = self.edges.entry((op, *from)).or_default();
            *kinds = kinds.union(kind);
        }
    }

    /// What decides that the present step runs.
    fn control(&mut self) -> SetId {
        let mut control = self.returns;
        for position in 0..self.conditions.len() {
            control = self.sets.union(control, self.conditions[position]);
        }
        for position in 0..self.loops.len() {
            let Loop {
                iterations,
                escapes,
                ..
            } = self.loops[position];
            control = self.sets.union(control, iterations);
            control = self.sets.union(control, escapes);
        }
        control
    }

    fn join_flow(&mut self, left: Flow, right: Flow) -> Flow {
        Flow {
            from: self.sets.union(left.from, right.from),
            found_by: self.sets.union(left.found_by, right.found_by),
        }
    }

    fn join(&mut self, left: Option<State>, right: Option<State>) -> Option<State> {
        let (mut left, right) = match (left, right) {
            (Some(left), Some(right)) => (left, right),
            (one, None) | (None, one) => return one,
        };
        for (flow, other) in left.registers.iter_mut().zip(&right.registers) {
            *flow = self.join_flow(*flow, *other);
        }
        for (flow, other) in left.records.iter_mut().zip(&right.records) {
            *flow = self.join_flow(*flow, *other);
        }
        for (rows, other) in left.buffers.iter_mut().zip(&right.buffers) {
            for (flow, other) in rows.columns.iter_mut().zip(&other.columns) {
                *flow = self.join_flow(*flow, *other);
            }
            rows.chosen_by = self.sets.union(rows.chosen_by, other.chosen_by);
        }
        left.written = self.sets.union(left.written, right.written);
        Some(left)
    }

    /// Makes everything that `step` may assign depend on `deciders`.
    fn decided(&mut self, state: &mut State, step: &Step, deciders: SetId) {
        if deciders == NONE {
            return;
        }
        for_each_step(std::slice::from_ref(step), &mut |step| {
            step_registers(step, &mut |register, usage| {
                if usage == Use::Write {
                    let flow = &mut state.registers[register.0 as usize];
                    flow.from = self.sets.union(flow.from, deciders);
                }
            });
            if let Some((record, Use::Write)) = step_record(step) {
                let flow = &mut state.records[record.0 as usize];
                flow.from = self.sets.union(flow.from, deciders);
            }
        });
    }

    fn block(&mut self, block: &[Step], state: State) -> Option<State> {
        let mut state = state;
        for step in block {
            state = self.step(step, state)?;
        }
        Some(state)
    }

    /// What a list of registers comes from.
    fn union_of<'r>(
        &mut self,
        state: &State,
        registers: impl IntoIterator<Item = &'r Reg>,
    ) -> SetId {
        let mut union = NONE;
        for register in registers {
            union = self
                .sets
                .union(union, state.registers[register.0 as usize].from);
        }
        union
    }

    fn step(&mut self, step: &Step, state: State) -> Option<State> {
        let mut state = state;
        match step {
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let deciders = state.registers[condition.0 as usize].from;
                self.conditions.push(deciders);
                let then = self.block(then, state.clone());
                let otherwise = self.block(otherwise, state);
                self.conditions.pop();
                let both = then.is_some() && otherwise.is_some();
                let mut joined = self.join(then, otherwise)?;
                // Behind a branch that ended, the other one was certainly taken.
                if both {
                    self.decided(&mut joined, step, deciders);
                }
                Some(joined)
            }
            Step::Loop { .. }
            | Step::ForRange { .. }
            | Step::ForEach { .. }
            | Step::ForBuffer { .. }
            | Step::Scan { .. } => self.repeat(step, state),
            Step::Protect {
                region,
                caught,
                body,
                ..
            } => Some(self.protect(step, (*region, *caught), body, state)),
            Step::Exit { depth } | Step::Continue { depth } => {
                let control = self.control();
                let target = self.loops.len() - 1 - *depth as usize;
                for position in target..self.loops.len() {
                    let escapes = self.loops[position].escapes;
                    self.loops[position].escapes = self.sets.union(escapes, control);
                }
                let is_exit = matches!(step, Step::Exit { .. });
                let at_target = &mut self.loops[target];
                let known = if is_exit {
                    at_target.exits.take()
                } else {
                    at_target.continues.take()
                };
                let joined = self.join(known, Some(state));
                let at_target = &mut self.loops[target];
                if is_exit {
                    at_target.exits = joined;
                } else {
                    at_target.continues = joined;
                }
                None
            }
            Step::Return => {
                let control = self.control();
                self.returns = self.sets.union(self.returns, control);
                None
            }
            Step::Raise { .. } | Step::RaiseAgain { .. } => None,
            _ => {
                self.plain(step, &mut state);
                Some(state)
            }
        }
    }

    /// Notes an operation that finds records by a key, at the start of its step.
    fn finds(&mut self, op: OpId, key: SetId, step: &Step, state: &State) {
        self.depends(op, key, DependencyKinds::KEY);
        self.runs(op, step, state);
        let known = self.gathered[op.0 as usize].key;
        self.gathered[op.0 as usize].key = self.sets.union(known, key);
    }

    /// Notes what decides that an operation runs, and which earlier writes it may see.
    fn runs(&mut self, op: OpId, step: &Step, state: &State) {
        let control = self.control();
        self.depends(op, control, DependencyKinds::CONTROL);
        let repeats = self.loops.iter().any(|open| !open.is_region);
        self.gathered[op.0 as usize].repeats |= repeats;
        let Some((_, table, [keys, reads, _])) = columns_of(self.procedure, step) else {
            return;
        };
        let table = self.procedure.tables[table.0 as usize].id();
        for write in self.sets.get(state.written).to_vec() {
            let operation = &self.procedure.operations[write.0 as usize];
            if operation.table != table {
                continue;
            }
            let written = self.columns_written[write.0 as usize];
            let seen = match (step, operation.kind) {
                (Step::Lookup { .. } | Step::Scan { .. }, OperationKind::Update) => {
                    written.intersects(keys)
                }
                (Step::Lookup { .. } | Step::Scan { .. }, _) => true,
                (Step::Read { .. }, OperationKind::Update | OperationKind::Insert) => {
                    written.intersects(reads)
                }
                (
                    Step::Insert {
                        conflict: Some(_), ..
                    },
                    OperationKind::Update,
                ) => written.intersects(keys),
                (
                    Step::Insert {
                        conflict: Some(_), ..
                    },
                    _,
                ) => true,
                _ => false,
            };
            if seen {
                let kinds = self.edges.entry((op, write)).or_default();
                *kinds = kinds.union(DependencyKinds::OWN_WRITE);
            }
        }
    }

    /// Notes an operation on a record found before.
    fn works_on(&mut self, op: OpId, record: RecordReg, step: &Step, state: &State) {
        let Flow { from, found_by } = state.records[record.0 as usize];
        self.depends(op, from, DependencyKinds::KEY);
        self.runs(op, step, state);
        let known = self.gathered[op.0 as usize].found_by;
        self.gathered[op.0 as usize].found_by = self.sets.union(known, found_by);
    }

    /// Notes the values that an operation writes.
    fn writes(
        &mut self,
        op: OpId,
        columns: impl Iterator<Item = (ColumnId, Reg)>,
        indexed: ColumnSet,
        state: &mut State,
    ) {
        for (column, register) in columns {
            let from = state.registers[register.0 as usize].from;
            if indexed.contains(column) {
                self.depends(op, from, DependencyKinds::KEY);
                let known = self.gathered[op.0 as usize].key;
                self.gathered[op.0 as usize].key = self.sets.union(known, from);
            } else {
                self.depends(op, from, DependencyKinds::VALUE);
            }
        }
        self.has_written(op, state);
    }

    fn has_written(&mut self, op: OpId, state: &mut State) {
        let single = self.sets.single(op);
        state.written = self.sets.union(state.written, single);
    }

    /// A step without blocks that goes on to the next.
    fn plain(&mut self, step: &Step, state: &mut State) {
        match step {
            Step::Scalar(Instruction::Move { target, source }) => {
                state.registers[target.0 as usize] = state.registers[source.0 as usize];
            }
            Step::Lookup {
                op,
                key,
                record,
                found,
                ..
            } => {
                let from = self.union_of(state, key);
                self.finds(*op, from, step, state);
                let from = self.sets.single(*op);
                state.records[record.0 as usize] = Flow {
                    from,
                    found_by: from,
                };
                state.registers[found.0 as usize] = Flow {
                    from,
                    found_by: NONE,
                };
            }
            Step::Read {
                op,
                record,
                columns,
                ..
            } => {
                self.works_on(*op, *record, step, state);
                let from = self.sets.single(*op);
                for (_, register) in columns {
                    state.registers[register.0 as usize] = Flow {
                        from,
                        found_by: NONE,
                    };
                }
            }
            Step::Update {
                op,
                table,
                record,
                columns,
            } => {
                self.works_on(*op, *record, step, state);
                let indexed = indexed_columns(self.procedure, *table);
                self.writes(*op, columns.iter().copied(), indexed, state);
            }
            Step::Delete { op, record, .. } => {
                self.works_on(*op, *record, step, state);
                self.has_written(*op, state);
            }
            Step::Insert {
                op,
                table,
                values,
                record,
                conflict,
            } => {
                self.runs(*op, step, state);
                let indexed = indexed_columns(self.procedure, *table);
                let columns = values
                    .iter()
                    .enumerate()
                    .map(|(at, value)| (ColumnId(at as u16), *value));
                self.writes(*op, columns, indexed, state);
                let from = self.sets.single(*op);
                state.records[record.0 as usize] = Flow {
                    from,
                    found_by: from,
                };
                if let Some(Conflict { inserted, .. }) = conflict {
                    state.registers[inserted.0 as usize] = Flow {
                        from,
                        found_by: NONE,
                    };
                }
            }
            Step::SaveRecord { target, record } => {
                state.registers[target.0 as usize] = state.records[record.0 as usize];
            }
            Step::RestoreRecord { record, source } => {
                state.records[record.0 as usize] = state.registers[source.0 as usize];
            }
            Step::BufferClear { buffer } | Step::BufferFill { buffer, .. } => {
                let chosen_by = self.control();
                let rows = &mut state.buffers[buffer.0 as usize];
                rows.columns.fill(Flow::default());
                rows.chosen_by = chosen_by;
            }
            Step::BufferPush { buffer, row } => self.push(state, *buffer, row),
            Step::BufferPushDistinct {
                buffer, row, added, ..
            } => {
                // Whether it is added depends on this row and on those that are there.
                let mut from = self.union_of(state, row);
                for flow in state.buffers[buffer.0 as usize].columns.clone() {
                    from = self.sets.union(from, flow.from);
                }
                self.push(state, *buffer, row);
                let rows = &mut state.buffers[buffer.0 as usize];
                rows.chosen_by = self.sets.union(rows.chosen_by, from);
                let from = rows.chosen_by;
                state.registers[added.0 as usize] = Flow {
                    from,
                    found_by: NONE,
                };
            }
            Step::BufferSort { buffer, by } => {
                let rows = &mut state.buffers[buffer.0 as usize];
                for key in by {
                    let from = rows.columns[key.column as usize].from;
                    rows.chosen_by = self.sets.union(rows.chosen_by, from);
                }
            }
            Step::BufferCount { buffer, target } => {
                let from = state.buffers[buffer.0 as usize].chosen_by;
                state.registers[target.0 as usize] = Flow {
                    from,
                    found_by: NONE,
                };
            }
            Step::BufferRow { buffer, at, row } => {
                let at = state.registers[at.0 as usize].from;
                let chosen_by = state.buffers[buffer.0 as usize].chosen_by;
                let chosen_by = self.sets.union(chosen_by, at);
                for (column, register) in row.iter().enumerate() {
                    let column = state.buffers[buffer.0 as usize].columns[column];
                    state.registers[register.0 as usize] = Flow {
                        from: self.sets.union(column.from, chosen_by),
                        found_by: NONE,
                    };
                }
            }
            Step::Diagnose { region, target, .. } => {
                let from = self.raised[region.0 as usize];
                state.registers[target.0 as usize] = Flow {
                    from,
                    found_by: NONE,
                };
            }
            step => {
                let (mut from, mut targets) = (NONE, Vec::new());
                step_registers(step, &mut |register, usage| match usage {
                    Use::Read => {
                        let flow = state.registers[register.0 as usize];
                        from = self.sets.union(from, flow.from);
                    }
                    Use::Write => targets.push(*register),
                });
                for target in targets {
                    state.registers[target.0 as usize] = Flow {
                        from,
                        found_by: NONE,
                    };
                }
            }
        }
    }

    fn push(&mut self, state: &mut State, buffer: BufferId, row: &[Reg]) {
        let control = self.control();
        let rows = &mut state.buffers[buffer.0 as usize];
        rows.chosen_by = self.sets.union(rows.chosen_by, control);
        for (column, register) in row.iter().enumerate() {
            let (known, flow) = (
                state.buffers[buffer.0 as usize].columns[column],
                state.registers[register.0 as usize],
            );
            state.buffers[buffer.0 as usize].columns[column] = self.join_flow(known, flow);
        }
    }
}
