//! Value numbering over the step tree.
//!
//! Every register has at each point of the program a *number*: two registers with one number hold
//! the same slot. A write gives a new number, a move the source's, and a computation the number of
//! the same computation on the same numbers, where some register still has that. Record registers
//! have *versions* in the same way. Beside these, a state keeps what operations have found out:
//! which keys were looked up into which record, which columns of which record hold the value of
//! which number, and which records are surely there.
//!
//! Where two paths meet, what both agree on survives. A loop's body starts from what was before the
//! loop less everything that any iteration may change, and what an iteration found out ends with
//! it; so a fact always speaks of the current iteration of every loop around it. A loop that is
//! left at the end of its first iteration (front ends make such loops of labelled blocks) is
//! followed as a block.

use std::collections::{BTreeMap, BTreeSet};

use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::types::{DataType, Value};

use super::effects::{Effects, TableEffects, table_effects};
use super::expressions::{Expression, Expressions, Number};
use crate::ir::*;
use crate::names::{
    Use, for_each_step, step_blocks, step_record, step_record_read_mut, step_registers,
    step_registers_mut,
};
use crate::procedure::Procedure;

type Version = u32;

/// A key that was looked up.
#[derive(Clone, Debug, PartialEq)]
struct KnownLookup {
    table: TableRef,
    /// The columns of the key in ascending order, and the numbers of their values.
    key: Vec<(ColumnId, Number)>,
    record: (RecordReg, Version),
    /// The number of the register that says whether it was found.
    found: Number,
}

/// A column of a record whose value is known.
#[derive(Clone, Debug, PartialEq)]
struct KnownColumn {
    table: TableRef,
    record: (RecordReg, Version),
    column: ColumnId,
    number: Number,
    /// Whether the register holds the very slot that a read would give. Else the two compare as
    /// equal in an index, which is less: 1.0 equals 1.00.
    exact: bool,
}

/// What is known at a point of the program.
#[derive(Clone)]
struct State {
    registers: Vec<Number>,
    records: Vec<Version>,
    lookups: Vec<KnownLookup>,
    columns: Vec<KnownColumn>,
    /// Records that were met, and not deleted since.
    present: Vec<(TableRef, RecordReg, Version)>,
}

impl State {
    fn apply(&mut self, table: TableRef, effects: TableEffects) {
        let TableEffects {
            inserts,
            deletes,
            updates,
        } = effects;
        self.lookups.retain(|lookup| {
            let touched = lookup
                .key
                .iter()
                .any(|(column, _)| updates.contains(*column));
            lookup.table != table || !(inserts || deletes || touched)
        });
        self.columns
            .retain(|known| known.table != table || !(deletes || updates.contains(known.column)));
        self.present
            .retain(|(other, ..)| *other != table || !deletes);
    }
}

struct Numbering<'a> {
    procedure: &'a mut Procedure,
    /// For each number, the register that had it first.
    leaders: Vec<Reg>,
    next_version: Version,
    /// How many steps write each record register.
    record_writes: Vec<u32>,
    /// What stands for the records of look-ups that were merged.
    renamed: Vec<Option<RecordReg>>,
    /// For each open loop, innermost last: what is known at its exits, if it is followed.
    exits: Vec<Option<Exits>>,
    /// The columns of each table that the program updates anywhere.
    updated: BTreeMap<TableRef, ColumnSet>,
    /// The register that holds TRUE; `None` when there is no room for one.
    always: Option<Reg>,
    /// What was computed.
    expressions: Expressions,
}

/// What is known where a followed loop is left; `None` when it was not left yet.
#[derive(Default)]
struct Exits(Option<State>);

/// Merges look-ups and reads, and propagates copies.
pub(super) fn run(procedure: &mut Procedure) {
    // Programs that name what does not exist are for verification to refuse.
    if !numbers_in_range(procedure) {
        return;
    }
    let mut record_writes = vec![0; procedure.records];
    for_each_step(&procedure.body, &mut |step| {
        if let Some((record, Use::Write)) = step_record(step) {
            record_writes[record.0 as usize] += 1;
        }
    });
    let mut updated: BTreeMap<TableRef, ColumnSet> = BTreeMap::new();
    for_each_step(&procedure.body, &mut |step| {
        if let Some((table, effects)) = table_effects(step) {
            let columns = updated.entry(table).or_default();
            *columns = columns.union(effects.updates);
        }
    });
    let (always, made) = constant_true(procedure);
    let state = State {
        registers: (0..procedure.registers.len() as Number).collect(),
        records: vec![0; procedure.records],
        lookups: Vec::new(),
        columns: Vec::new(),
        present: Vec::new(),
    };
    let mut numbering = Numbering {
        leaders: (0..procedure.registers.len())
            .map(|register| Reg(register as u16))
            .collect(),
        next_version: 1,
        record_writes,
        renamed: vec![None; procedure.records],
        exits: Vec::new(),
        always,
        updated,
        expressions: Expressions::default(),
        procedure,
    };
    let mut body = std::mem::take(&mut numbering.procedure.body);
    numbering.block(&mut body, state);
    numbering.procedure.body = body;
    if made {
        drop_unread_constant(procedure);
    }
}

/// The register of the constant TRUE, and whether it had to be made.
fn constant_true(procedure: &mut Procedure) -> (Option<Reg>, bool) {
    let known = procedure.constants.iter().find(|constant| {
        let data_type = procedure.registers.get(constant.register.0 as usize);
        constant.value == Value::Boolean(true) && data_type == Some(&DataType::Boolean)
    });
    if let Some(constant) = known {
        return (Some(constant.register), false);
    }
    let Ok(number) = u16::try_from(procedure.registers.len()) else {
        return (None, false);
    };
    let register = Reg(number);
    procedure.registers.push(DataType::Boolean);
    procedure.constants.push(Constant {
        register,
        value: Value::Boolean(true),
    });
    (Some(register), true)
}

/// Removes the constant that [`constant_true`] made, the last register, if it is not read.
fn drop_unread_constant(procedure: &mut Procedure) {
    let last = procedure.registers.len() - 1;
    let mut is_read = false;
    for_each_step(&procedure.body, &mut |step| {
        step_registers(step, &mut |register, _| {
            is_read |= register.0 as usize == last
        });
    });
    if !is_read {
        procedure.registers.pop();
        procedure.constants.pop();
    }
}

pub(super) fn numbers_in_range(procedure: &Procedure) -> bool {
    let constants = procedure.constants.iter();
    let mut registers = constants.map(|constant| constant.register.0 as usize);
    let mut in_range = registers.all(|register| register < procedure.registers.len())
        && leaves_loops(&procedure.body, 0);
    for_each_step(&procedure.body, &mut |step| {
        step_registers(step, &mut |register, _| {
            in_range &= (register.0 as usize) < procedure.registers.len();
        });
        in_range &=
            step_record(step).is_none_or(|(record, _)| (record.0 as usize) < procedure.records);
        in_range &= match step {
            Step::Lookup { table, index, .. } | Step::Scan { table, index, .. } => procedure
                .tables
                .get(table.0 as usize)
                .is_some_and(|table| (*index as usize) < table.indexes().len()),
            Step::Read { table, columns, .. } | Step::Update { table, columns, .. } => {
                procedure.tables.get(table.0 as usize).is_some_and(|table| {
                    let width = table.schema().columns.len();
                    columns.iter().all(|(column, _)| column.index() < width)
                })
            }
            _ => true,
        };
    });
    in_range
}

/// Whether every EXIT and CONTINUE is in the loop that it names; so many are around the block.
fn leaves_loops(block: &[Step], loops: usize) -> bool {
    block.iter().all(|step| match step {
        Step::Exit { depth } | Step::Continue { depth } => (*depth as usize) < loops,
        Step::If {
            then, otherwise, ..
        } => leaves_loops(then, loops) && leaves_loops(otherwise, loops),
        // The block before a loop's condition must not be left.
        Step::Loop { before, body, .. } => leaves_loops(before, 0) && leaves_loops(body, loops + 1),
        _ => {
            let mut blocks = step_blocks(step).into_iter();
            blocks.all(|block| leaves_loops(block, loops + 1))
        }
    })
}

impl Numbering<'_> {
    /// Rewrites a block; `None` when its end is never reached. Steps that are never reached are
    /// dropped.
    fn block(&mut self, block: &mut Block, state: State) -> Option<State> {
        let mut rewritten = Vec::with_capacity(block.len());
        let end = self.steps(std::mem::take(block), state, &mut rewritten);
        *block = rewritten;
        end
    }

    fn steps(&mut self, steps: Block, state: State, out: &mut Block) -> Option<State> {
        let mut state = state;
        for step in steps {
            state = self.step(step, state, out)?;
        }
        Some(state)
    }

    fn write(&mut self, state: &mut State, register: Reg) {
        state.registers[register.0 as usize] = self.leaders.len() as Number;
        self.leaders.push(register);
    }

    fn write_record(&mut self, state: &mut State, record: RecordReg) -> Version {
        let version = self.next_version;
        self.next_version += 1;
        state.records[record.0 as usize] = version;
        version
    }

    fn number(&self, state: &State, register: Reg) -> Number {
        state.registers[register.0 as usize]
    }

    /// The register that had the number of `register` first, if it still has it.
    fn leader(&self, state: &State, register: Reg) -> Reg {
        let number = self.number(state, register);
        self.holder(state, number).unwrap_or(register)
    }

    fn holder(&self, state: &State, number: Number) -> Option<Reg> {
        let leader = self.leaders[number as usize];
        (self.number(state, leader) == number).then_some(leader)
    }

    /// Replaces the registers that a step reads by their leaders, and the records by those that
    /// stand for them.
    fn propagate(&self, state: &State, step: &mut Step) {
        let is_loop = matches!(step, Step::Loop { .. });
        step_registers_mut(step, &mut |register, usage| {
            if usage == Use::Read && !is_loop {
                *register = self.leader(state, *register);
            }
        });
        if let Some(record) = step_record_read_mut(step)
            && let Some(stands_for) = self.renamed[record.0 as usize]
        {
            *record = stands_for;
        }
    }

    /// What is known where two paths meet.
    fn join(&mut self, left: Option<State>, right: Option<State>) -> Option<State> {
        let (mut left, right) = match (left, right) {
            (Some(left), Some(right)) => (left, right),
            (one, None) | (None, one) => return one,
        };
        for position in 0..left.registers.len() {
            if left.registers[position] != right.registers[position] {
                self.write(&mut left, Reg(position as u16));
            }
        }
        for position in 0..left.records.len() {
            if left.records[position] != right.records[position] {
                self.write_record(&mut left, RecordReg(position as u16));
            }
        }
        left.lookups.retain(|known| right.lookups.contains(known));
        left.columns.retain(|known| right.columns.contains(known));
        left.present.retain(|known| right.present.contains(known));
        Some(left)
    }

    /// Forgets what `effects` may change.
    fn forget(&mut self, state: &mut State, effects: &Effects) {
        for register in &effects.registers {
            self.write(state, *register);
        }
        for record in &effects.records {
            self.write_record(state, *record);
        }
        for (table, effects) in &effects.tables {
            state.apply(*table, *effects);
        }
    }

    fn step(&mut self, step: Step, state: State, out: &mut Block) -> Option<State> {
        let (mut step, mut state) = (step, state);
        self.propagate(&state, &mut step);
        // A scan's prefix has the values from before its first iteration.
        let prefix: Vec<Number> = match &step {
            Step::Scan { range, .. } => range
                .prefix
                .iter()
                .map(|register| self.number(&state, *register))
                .collect(),
            _ => Vec::new(),
        };
        // Everything that any iteration of a loop may change is forgotten before its first.
        let followed = matches!(
            &step,
            Step::Loop { before, condition: None, body } if before.is_empty() && runs_once(body)
        );
        if !followed && !matches!(step, Step::If { .. }) && has_blocks(&step) {
            self.forget(&mut state, &Effects::of(&step));
        }
        match step {
            Step::If {
                condition,
                mut then,
                mut otherwise,
            } => {
                if self.always == Some(condition) {
                    return self.steps(then, state, out);
                }
                let after_then = self.block(&mut then, state.clone());
                let after_otherwise = self.block(&mut otherwise, state);
                out.push(Step::If {
                    condition,
                    then,
                    otherwise,
                });
                self.join(after_then, after_otherwise)
            }
            Step::Loop {
                before,
                condition: None,
                mut body,
            } if followed => {
                self.exits.push(Some(Exits::default()));
                self.block(&mut body, state);
                let exits = self.exits.pop().flatten();
                out.push(Step::Loop {
                    before,
                    condition: None,
                    body,
                });
                exits.and_then(|exits| exits.0)
            }
            Step::Loop {
                mut before,
                condition,
                mut body,
            } => {
                self.exits.push(None);
                let mut condition = condition;
                if let Some(inside) = self.block(&mut before, state.clone()) {
                    condition = condition.map(|register| self.leader(&inside, register));
                    self.block(&mut body, inside);
                } else {
                    // The body is never reached; it goes, so that its operations do too.
                    body.clear();
                }
                self.exits.pop();
                out.push(Step::Loop {
                    before,
                    condition,
                    body,
                });
                Some(state)
            }
            Step::ForRange { .. }
            | Step::ForEach { .. }
            | Step::ForBuffer { .. }
            | Step::Protect { .. } => {
                self.exits.push(None);
                let inside = state.clone();
                if let Step::ForRange { body, .. }
                | Step::ForEach { body, .. }
                | Step::ForBuffer { body, .. }
                | Step::Protect { body, .. } = &mut step
                {
                    self.block(body, inside);
                }
                self.exits.pop();
                out.push(step);
                Some(state)
            }
            Step::Scan {
                op,
                table,
                index,
                range,
                reverse,
                record,
                intent,
                mut body,
            } => {
                self.exits.push(None);
                let mut inside = state.clone();
                let version = self.write_record(&mut inside, record);
                inside.present.push((table, record, version));
                let columns = self.key_columns(table, index);
                let key = columns.into_iter().zip(prefix);
                self.learn_key(&mut inside, table, (record, version), key);
                self.block(&mut body, inside);
                self.exits.pop();
                out.push(Step::Scan {
                    op,
                    table,
                    index,
                    range,
                    reverse,
                    record,
                    intent,
                    body,
                });
                Some(state)
            }
            Step::Exit { depth } => {
                out.push(step);
                let target = self.exits.len().checked_sub(depth as usize + 1);
                if let Some(target) = target
                    && let Some(Exits(known)) = &mut self.exits[target]
                {
                    let known = known.take();
                    let joined = self.join(known, Some(state));
                    self.exits[target] = Some(Exits(joined));
                }
                None
            }
            Step::Continue { .. } | Step::Return | Step::Raise { .. } | Step::RaiseAgain { .. } => {
                out.push(step);
                None
            }
            Step::Lookup { .. } => {
                self.lookup(step, &mut state, out);
                Some(state)
            }
            Step::Read { .. } => {
                self.read(step, &mut state, out);
                Some(state)
            }
            Step::Scalar(Instruction::Move { target, source }) => {
                let number = self.number(&state, source);
                let same = self.number(&state, target) == number;
                state.registers[target.0 as usize] = number;
                // A move of what is there already does nothing.
                if !same {
                    out.push(Step::Scalar(Instruction::Move { target, source }));
                }
                Some(state)
            }
            Step::Scalar(instruction) => {
                self.compute(instruction, &mut state, out);
                Some(state)
            }
            step => {
                self.plain(&step, &mut state);
                out.push(step);
                Some(state)
            }
        }
    }

    /// A computation; one that was made already and did not raise is not made again.
    fn compute(&mut self, instruction: Instruction, state: &mut State, out: &mut Block) {
        let expression = Expression::of(&instruction, |register| self.number(state, register));
        if let Some((expression, target)) = &expression
            && let Some(number) = self.expressions.number(expression)
            && let Some(source) = self.holder(state, number)
            && self.same_type(source, *target)
        {
            state.registers[target.0 as usize] = number;
            if source != *target {
                let target = *target;
                out.push(Step::Scalar(Instruction::Move { target, source }));
            }
            return;
        }
        let step = Step::Scalar(instruction);
        self.plain(&step, state);
        out.push(step);
        if let Some((expression, target)) = expression {
            let number = self.number(state, target);
            self.expressions.learn(expression, number);
        }
    }

    /// A step without blocks whose effect is what it names.
    fn plain(&mut self, step: &Step, state: &mut State) {
        step_registers(step, &mut |register, usage| {
            if usage == Use::Write {
                self.write(state, *register);
            }
        });
        if let Some((record, Use::Write)) = step_record(step) {
            self.write_record(state, record);
        }
        if let Some((table, effects)) = table_effects(step) {
            state.apply(table, effects);
        }
        if let Step::Update {
            table,
            record,
            columns,
            ..
        } = step
        {
            let record = (*record, state.records[record.0 as usize]);
            state.present.push((*table, record.0, record.1));
            for (column, register) in columns {
                if self.reads_back(*table, *column) {
                    let (table, column, number) = (*table, *column, self.number(state, *register));
                    state.columns.push(KnownColumn {
                        table,
                        record,
                        column,
                        number,
                        exact: true,
                    });
                }
            }
        }
    }

    /// Whether a column gives back the very value that was written: not NUMERIC, which takes the
    /// column's scale, nor CHAR, which loses its blanks.
    fn reads_back(&self, table: TableRef, column: ColumnId) -> bool {
        let schema = self.procedure.tables[table.0 as usize].schema();
        let data_type = &schema.columns[column.index()].data_type;
        !matches!(data_type, DataType::Numeric { .. } | DataType::Char(_))
    }

    /// Notes that a record was found by this key. Not for columns that the program updates
    /// somewhere: an index may lead to a record by a key that it had before.
    fn learn_key(
        &self,
        state: &mut State,
        table: TableRef,
        record: (RecordReg, Version),
        key: impl Iterator<Item = (ColumnId, Number)>,
    ) {
        let updated = self.updated.get(&table).copied().unwrap_or_default();
        for (column, number) in key.filter(|(column, _)| !updated.contains(*column)) {
            state.columns.push(KnownColumn {
                table,
                record,
                column,
                number,
                exact: false,
            });
        }
    }

    fn key_columns(&self, table: TableRef, index: u16) -> Vec<ColumnId> {
        let index = &self.procedure.tables[table.0 as usize].indexes()[index as usize];
        index.definition().columns.clone()
    }

    fn lookup(&mut self, step: Step, state: &mut State, out: &mut Block) {
        let Step::Lookup {
            op,
            table,
            index,
            key,
            record,
            found,
            intent,
        } = step
        else {
            unreachable!("called with look-ups");
        };
        let columns = self.key_columns(table, index);
        let mut known_key: Vec<(ColumnId, Number)> = columns
            .into_iter()
            .zip(key.iter().map(|register| self.number(state, *register)))
            .collect();
        known_key.sort_unstable();
        if self.record_writes[record.0 as usize] == 1
            && let Some((known, found_number)) = self.known_record(state, table, &known_key)
            && let Some(source) = self.holder(state, found_number)
        {
            self.renamed[record.0 as usize] = Some(known);
            state.registers[found.0 as usize] = found_number;
            if source != found {
                out.push(Step::Scalar(Instruction::Move {
                    target: found,
                    source,
                }));
            }
            return;
        }
        let version = self.write_record(state, record);
        self.write(state, found);
        self.learn_key(state, table, (record, version), known_key.iter().copied());
        let (record_version, number) = ((record, version), self.number(state, found));
        let known = KnownLookup {
            table,
            key: known_key,
            record: record_version,
            found: number,
        };
        state.lookups.push(known);
        out.push(Step::Lookup {
            op,
            table,
            index,
            key,
            record,
            found,
            intent,
        });
    }

    /// The record with this unique key, and the number of what says whether it was found.
    fn known_record(
        &self,
        state: &State,
        table: TableRef,
        key: &[(ColumnId, Number)],
    ) -> Option<(RecordReg, Number)> {
        let usable = |record: RecordReg, version: Version| {
            self.record_writes[record.0 as usize] == 1
                && state.records[record.0 as usize] == version
        };
        let repeated = state.lookups.iter().find(|known| {
            known.table == table && known.key == key && usable(known.record.0, known.record.1)
        });
        if let Some(known) = repeated {
            return Some((known.record.0, known.found));
        }
        // A NULL equals no key, while a column may be NULL.
        let schema = self.procedure.tables[table.0 as usize].schema();
        if key
            .iter()
            .any(|(column, _)| !schema.columns[column.index()].not_null)
        {
            return None;
        }
        let met = state.present.iter().find(|(of, record, version)| {
            *of == table
                && usable(*record, *version)
                && key.iter().all(|(column, number)| {
                    state.columns.iter().any(|known| {
                        known.record == (*record, *version)
                            && known.column == *column
                            && known.number == *number
                    })
                })
        });
        let (_, record, _) = *met?;
        Some((record, self.number(state, self.always?)))
    }

    fn read(&mut self, step: Step, state: &mut State, out: &mut Block) {
        let Step::Read {
            op,
            table,
            record,
            columns,
        } = step
        else {
            unreachable!("called with reads");
        };
        let version = state.records[record.0 as usize];
        state.present.push((table, record, version));
        let targets: BTreeSet<Reg> = columns.iter().map(|(_, register)| *register).collect();
        let distinct = targets.len() == columns.len();
        // What is known is moved before the rest is read, which may overwrite where it is.
        let mut rest = Vec::with_capacity(columns.len());
        for (column, target) in columns {
            let known = state.columns.iter().find(|known| {
                known.exact && known.record == (record, version) && known.column == column
            });
            let holder = known.and_then(|known| self.holder(state, known.number));
            match holder {
                Some(source) if distinct && self.same_type(source, target) => {
                    state.registers[target.0 as usize] = self.number(state, source);
                    if source != target {
                        out.push(Step::Scalar(Instruction::Move { target, source }));
                    }
                }
                _ => rest.push((column, target)),
            }
        }
        for (column, target) in &rest {
            self.write(state, *target);
            let (column, number) = (*column, self.number(state, *target));
            let record = (record, version);
            state.columns.push(KnownColumn {
                table,
                record,
                column,
                number,
                exact: true,
            });
        }
        if !rest.is_empty() {
            out.push(Step::Read {
                op,
                table,
                record,
                columns: rest.into(),
            });
        }
    }

    fn same_type(&self, left: Reg, right: Reg) -> bool {
        self.procedure.registers[left.0 as usize] == self.procedure.registers[right.0 as usize]
    }
}

/// Whether a step has blocks and so is a loop or a conditional.
pub(super) fn has_blocks(step: &Step) -> bool {
    matches!(
        step,
        Step::If { .. }
            | Step::Loop { .. }
            | Step::ForRange { .. }
            | Step::ForEach { .. }
            | Step::ForBuffer { .. }
            | Step::Scan { .. }
            | Step::Protect { .. }
    )
}

/// Whether a loop with this body and no condition runs one iteration only: it ends with an EXIT,
/// and nothing in it goes on with a next iteration.
pub(super) fn runs_once(body: &[Step]) -> bool {
    fn continues(block: &[Step], loops: u16) -> bool {
        block.iter().any(|step| {
            let inside = loops + !matches!(step, Step::If { .. }) as u16;
            matches!(step, Step::Continue { depth } if *depth == loops)
                || step_blocks(step)
                    .iter()
                    .any(|block| continues(block, inside))
        })
    }
    matches!(body.last(), Some(Step::Exit { depth: 0 })) && !continues(body, 0)
}
