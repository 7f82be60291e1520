//! A small interpreter of the IR over a toy table.

use kiln_procedure::Procedure;
use kiln_procedure::analysis::names::for_each_step;
use kiln_procedure::ir::*;
use kiln_storage::types::Value;

/// Columns a and b are the primary key; c is unique and may be NULL; d is neither.
pub(super) const COLUMNS: usize = 4;
pub(super) const UNIQUE: [&[usize]; 2] = [&[0, 1], &[2]];

pub(super) type Number = Option<i64>;
pub(super) type Row = [Number; COLUMNS];

/// Where control goes after a step.
enum Flow {
    Next,
    Exit(u16),
    Continue(u16),
    Return,
    Raise,
}

struct Run {
    registers: Vec<Number>,
    records: Vec<Option<usize>>,
    /// Rows by their handle; `None` when deleted.
    rows: Vec<Option<Row>>,
    emitted: Vec<Vec<Number>>,
    /// Steps that may still run.
    fuel: u32,
    /// What the notes of the program have said: the row before, by its handle.
    noted: Vec<(usize, Before)>,
    /// Whether the program has notes; else a region keeps all rows.
    has_notes: bool,
}

/// What a row was before a change.
enum Before {
    Columns(Vec<(usize, Number)>),
    Row(Option<Row>),
}

/// What a run did: the rows emitted, whether it raised, and the rows left unless it did.
pub(super) type Effect = (Vec<Vec<Number>>, bool, Vec<Row>);

/// Runs a program; `None` when it takes more than so many steps.
pub(super) fn run(
    program: &Procedure,
    arguments: &[Number],
    rows: &[Row],
    fuel: u32,
) -> Option<Effect> {
    let mut registers = vec![None; program.registers.len()];
    registers[..arguments.len()].copy_from_slice(arguments);
    for constant in &program.constants {
        registers[constant.register.0 as usize] = match constant.value {
            Value::Integer(value) => Some(value.into()),
            Value::BigInt(value) => Some(value),
            Value::Boolean(value) => Some(value.into()),
            _ => None,
        };
    }
    let mut run = Run {
        registers,
        records: vec![None; program.records],
        rows: rows.iter().copied().map(Some).collect(),
        emitted: Vec::new(),
        fuel,
        noted: Vec::new(),
        has_notes: false,
    };
    for_each_step(&program.body, &mut |step| {
        run.has_notes |= matches!(step, Step::NoteUndo { .. });
    });
    let raised = matches!(run.block(&program.body), Flow::Raise);
    if run.fuel == 0 {
        return None;
    }
    let mut left: Vec<Row> = run.rows.into_iter().flatten().collect();
    left.sort_unstable();
    if raised {
        left.clear();
    }
    Some((run.emitted, raised, left))
}

impl Run {
    fn get(&self, register: Reg) -> Number {
        self.registers[register.0 as usize]
    }

    fn set(&mut self, register: Reg, value: Number) {
        self.registers[register.0 as usize] = value;
    }

    fn handle(&self, record: RecordReg) -> usize {
        self.records[record.0 as usize].expect("the record was found")
    }

    fn block(&mut self, block: &[Step]) -> Flow {
        for step in block {
            match self.step(step) {
                Flow::Next => {}
                flow => return flow,
            }
        }
        Flow::Next
    }

    /// Runs one iteration; `Some` when the loop is left.
    fn iteration(&mut self, body: &[Step]) -> Option<Flow> {
        match self.block(body) {
            Flow::Next | Flow::Continue(0) => None,
            Flow::Exit(0) => Some(Flow::Next),
            Flow::Exit(depth) => Some(Flow::Exit(depth - 1)),
            Flow::Continue(depth) => Some(Flow::Continue(depth - 1)),
            flow => Some(flow),
        }
    }

    /// The row with these values in the columns of a unique index.
    fn find(&self, index: usize, key: &[Number]) -> Option<usize> {
        if key.contains(&None) {
            return None;
        }
        self.rows.iter().position(|row| {
            let columns = UNIQUE[index].iter();
            row.is_some_and(|row| {
                columns
                    .zip(key)
                    .all(|(column, value)| row[*column] == *value)
            })
        })
    }

    fn violates(&self, row: &Row, own: Option<usize>) -> bool {
        (0..UNIQUE.len()).any(|index| {
            let key: Vec<Number> = UNIQUE[index].iter().map(|column| row[*column]).collect();
            self.find(index, &key)
                .is_some_and(|found| Some(found) != own)
        })
    }

    /// A protected region: by its notes if there are any, else by a copy of all rows.
    fn protect(&mut self, caught: Reg, body: &[Step]) -> Flow {
        self.set(caught, Some(0));
        let (rows, notes) = (self.rows.clone(), self.noted.len());
        match self.iteration(body) {
            None => Flow::Next,
            Some(Flow::Raise) => {
                self.set(caught, Some(1));
                if !self.has_notes {
                    let inserted = self.rows.len() - rows.len();
                    self.rows = rows;
                    self.rows.extend((0..inserted).map(|_| None));
                }
                for (handle, before) in self.noted.split_off(notes).into_iter().rev() {
                    match before {
                        Before::Row(row) => self.rows[handle] = row,
                        Before::Columns(columns) => {
                            let row = self.rows[handle].as_mut().expect("it is brought back");
                            for (column, value) in columns {
                                row[column] = value;
                            }
                        }
                    }
                }
                Flow::Next
            }
            Some(flow) => flow,
        }
    }

    fn step(&mut self, step: &Step) -> Flow {
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 {
            return Flow::Return;
        }
        match step {
            Step::Scalar(instruction) => match instruction {
                Instruction::Move { target, source } => self.set(*target, self.get(*source)),
                Instruction::Integer {
                    target,
                    left,
                    right,
                    ..
                } => {
                    let sum = self.get(*left).zip(self.get(*right));
                    self.set(*target, sum.map(|(left, right)| (left + right) % 4));
                }
                Instruction::Compare {
                    target,
                    left,
                    right,
                    ..
                } => {
                    let both = self.get(*left).zip(self.get(*right));
                    self.set(*target, both.map(|(left, right)| (left < right).into()));
                }
                Instruction::Not { target, source } => {
                    self.set(*target, self.get(*source).map(|value| 1 - value));
                }
                Instruction::And {
                    target,
                    left,
                    right,
                } => {
                    let (left, right) = (self.get(*left), self.get(*right));
                    let and = match (left, right) {
                        (Some(0), _) | (_, Some(0)) => Some(0),
                        _ => left.and(right),
                    };
                    self.set(*target, and);
                }
                Instruction::Or {
                    target,
                    left,
                    right,
                } => {
                    let (left, right) = (self.get(*left), self.get(*right));
                    let or = match (left, right) {
                        (Some(1), _) | (_, Some(1)) => Some(1),
                        _ => left.and(right),
                    };
                    self.set(*target, or);
                }
                Instruction::SetNull { target } => self.set(*target, None),
                Instruction::IsNull {
                    target,
                    source,
                    negated,
                } => {
                    let is_null = self.get(*source).is_none();
                    self.set(*target, Some((is_null != *negated).into()));
                }
                Instruction::AnyNull { target, sources } => {
                    let any = sources.iter().any(|source| self.get(*source).is_none());
                    self.set(*target, Some(any.into()));
                }
                Instruction::RequireNotNull { source, .. } => {
                    if self.get(*source).is_none() {
                        return Flow::Raise;
                    }
                }
                other => unreachable!("{other:?} is not generated"),
            },
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let taken = if self.get(*condition) == Some(1) {
                    then
                } else {
                    otherwise
                };
                return self.block(taken);
            }
            Step::Loop { body, .. } => loop {
                if let Some(flow) = self.iteration(body) {
                    return flow;
                }
            },
            Step::ForRange {
                variable,
                first,
                last,
                body,
                ..
            } => {
                let (first, last) = (self.get(*first), self.get(*last));
                for value in first.expect("not NULL")..=last.expect("not NULL") {
                    self.set(*variable, Some(value));
                    if let Some(flow) = self.iteration(body) {
                        return flow;
                    }
                }
            }
            Step::Exit { depth } => return Flow::Exit(*depth),
            Step::Continue { depth } => return Flow::Continue(*depth),
            Step::Return => return Flow::Return,
            Step::Raise { .. } => return Flow::Raise,
            Step::Lookup {
                index,
                key,
                record,
                found,
                ..
            } => {
                let key: Vec<Number> = key.iter().map(|register| self.get(*register)).collect();
                let row = self.find(*index as usize, &key);
                if row.is_some() {
                    self.records[record.0 as usize] = row;
                }
                self.set(*found, Some(row.is_some().into()));
            }
            Step::Scan {
                range,
                record,
                body,
                ..
            } => {
                // The entries that were there at the start, also of rows whose key changes.
                let prefix = self.get(range.prefix[0]);
                let mut entries: Vec<(Row, usize)> = Vec::new();
                for (handle, row) in self.rows.iter().enumerate() {
                    if let Some(row) = row
                        && prefix.is_some()
                        && row[0] == prefix
                    {
                        entries.push((*row, handle));
                    }
                }
                entries.sort_unstable();
                for (_, handle) in entries {
                    if self.rows[handle].is_none() {
                        continue;
                    }
                    self.records[record.0 as usize] = Some(handle);
                    if let Some(flow) = self.iteration(body) {
                        return flow;
                    }
                }
            }
            Step::Read {
                record, columns, ..
            } => {
                let row = self.rows[self.handle(*record)];
                for (column, register) in columns {
                    self.set(*register, row.expect("not deleted")[column.index()]);
                }
            }
            Step::Update {
                record, columns, ..
            } => {
                let handle = self.handle(*record);
                let mut row = self.rows[handle].expect("not deleted");
                for (column, register) in columns {
                    row[column.index()] = self.get(*register);
                }
                if row[..2].contains(&None) || self.violates(&row, Some(handle)) {
                    return Flow::Raise;
                }
                self.rows[handle] = Some(row);
            }
            Step::Insert { values, record, .. } => {
                let row: Row = std::array::from_fn(|column| self.get(values[column]));
                if row[..2].contains(&None) || self.violates(&row, None) {
                    return Flow::Raise;
                }
                self.records[record.0 as usize] = Some(self.rows.len());
                self.rows.push(Some(row));
            }
            Step::Delete { record, .. } => {
                let handle = self.handle(*record);
                self.rows[handle] = None;
            }
            Step::Protect { caught, body, .. } => return self.protect(*caught, body),
            Step::RaiseAgain { .. } => return Flow::Raise,
            Step::NoteUndo { record, undo, .. } => {
                let before = match undo {
                    Undo::Update(columns) => {
                        let columns = columns.iter();
                        let old =
                            columns.map(|(column, register)| (column.index(), self.get(*register)));
                        Before::Columns(old.collect())
                    }
                    Undo::Insert => Before::Row(None),
                    Undo::Delete(values) => {
                        let row = std::array::from_fn(|column| self.get(values[column]));
                        Before::Row(Some(row))
                    }
                };
                self.noted.push((self.handle(*record), before));
            }
            Step::Emit { row } => {
                let row = row.iter().map(|register| self.get(*register)).collect();
                self.emitted.push(row);
            }
            other => unreachable!("{other:?} is not generated"),
        }
        Flow::Next
    }
}
