//! Random programs over few keys and variables.

use kiln_platform::random::Random;
use kiln_procedure::ir::*;
use kiln_procedure::procedure::{Parameter, Procedure, ResultShape};
use kiln_storage::schema::ColumnId;
use kiln_storage::types::{DataType, Value};

use super::interpreter::*;
use super::support;

pub(super) struct Generator {
    pub(super) random: Random,
    pub(super) program: Procedure,
    /// Registers that may be read here; the first three of those after the constants are
    /// variables, which may be assigned.
    readable: Vec<Reg>,
    variables: Vec<Reg>,
    /// Registers of TRUE, FALSE, and a variable that says how the last look-up went, as `FOUND`
    /// does.
    truths: [Reg; 2],
    flag: Reg,
    /// Records that were found and not deleted by this path.
    found: Vec<RecordReg>,
    /// The loops around the next step, and whether each runs one iteration only.
    loops: Vec<bool>,
    steps_left: usize,
    /// Whether there are protected regions.
    protects: bool,
}

impl Generator {
    pub(super) fn new(
        seed: u64,
        table: &kiln_platform::sync::Arc<kiln_storage::table::Table>,
        protects: bool,
    ) -> Generator {
        let parameters: Vec<Parameter> = (0..2)
            .map(|number| Parameter {
                name: format!("p{number}"),
                data_type: DataType::Integer,
                register: Reg(number),
            })
            .collect();
        let program = Procedure {
            name: "random".to_owned(),
            registers: parameters
                .iter()
                .map(|known| known.data_type.clone())
                .collect(),
            parameters,
            result: ResultShape {
                columns: [("value".to_owned(), DataType::Integer)].into(),
            },
            tables: vec![table.clone()],
            ..Procedure::default()
        };
        let mut generator = Generator {
            random: Random::from_seed(seed),
            program,
            readable: vec![Reg(0), Reg(1)],
            variables: Vec::new(),
            truths: [Reg(0); 2],
            flag: Reg(0),
            found: Vec::new(),
            loops: Vec::new(),
            steps_left: 40,
            protects,
        };
        for value in 0..2 {
            let register = generator.register(DataType::Integer);
            let value = Value::Integer(value);
            generator
                .program
                .constants
                .push(Constant { register, value });
            generator.readable.push(register);
        }
        generator.truths = [false, true].map(|truth| {
            let register = generator.register(DataType::Boolean);
            let value = Value::Boolean(truth);
            generator
                .program
                .constants
                .push(Constant { register, value });
            register
        });
        generator.flag = generator.register(DataType::Boolean);
        let mut body = vec![generator.set_flag(false)];
        for _ in 0..3 {
            let (target, source) = (generator.register(DataType::Integer), generator.any());
            body.push(Step::Scalar(Instruction::Move { target, source }));
            generator.variables.push(target);
            generator.readable.push(target);
        }
        generator.block(&mut body, 6);
        generator.program.body = body;
        generator
    }

    fn register(&mut self, data_type: DataType) -> Reg {
        self.program.registers.push(data_type);
        Reg(self.program.registers.len() as u16 - 1)
    }

    fn record(&mut self) -> RecordReg {
        self.program.records += 1;
        RecordReg(self.program.records as u16 - 1)
    }

    fn op(&mut self, kind: OperationKind) -> OpId {
        let table = self.program.tables[0].id();
        self.program.operations.push(Operation {
            kind,
            table,
            position: None,
        });
        OpId(self.program.operations.len() as u16 - 1)
    }

    fn any(&mut self) -> Reg {
        self.readable[self.random.below(self.readable.len())]
    }

    /// A block of some steps, after which only what was readable before is.
    fn inner(&mut self, steps: usize) -> Block {
        let (readable, found) = (self.readable.len(), self.found.clone());
        let mut block = Vec::new();
        self.block(&mut block, steps);
        self.readable.truncate(readable);
        // A record that the block deleted is not used again.
        self.found.retain(|record| found.contains(record));
        block
    }

    fn body(&mut self, steps: usize, once: bool) -> Block {
        self.loops.push(once);
        // What an iteration deletes is gone in the next, so a body uses its own records only.
        let found = std::mem::take(&mut self.found);
        let block = self.inner(steps);
        self.found = found;
        self.loops.pop();
        // What the body deletes behind our back is gone behind it too.
        if deletes(&block) {
            self.found.clear();
        }
        block
    }

    fn block(&mut self, block: &mut Block, steps: usize) {
        for _ in 0..steps {
            if self.steps_left == 0 {
                return;
            }
            self.steps_left -= 1;
            self.step(block);
        }
    }

    fn set_flag(&self, truth: bool) -> Step {
        let (target, source) = (self.flag, self.truths[truth as usize]);
        Step::Scalar(Instruction::Move { target, source })
    }

    /// A test of some values for NULL, as of those for NOT NULL columns: then a look at each.
    fn test_for_null(&mut self, block: &mut Block) {
        let mut sources: Vec<Reg> = (0..1 + self.random.below(4)).map(|_| self.any()).collect();
        // What is computed from one of them is NULL when that is.
        if self.random.percent(50.0) {
            let target = self.register(DataType::Integer);
            let (op, width) = (Arithmetic::Add, Width::Four);
            block.push(Step::Scalar(Instruction::Integer {
                op,
                width,
                target,
                left: sources[0],
                right: self.any(),
            }));
            sources.push(target);
        }
        let requirements = sources.iter().map(|source| {
            Step::Scalar(Instruction::RequireNotNull {
                source: *source,
                error: support::failure("NULL"),
            })
        });
        let then: Block = requirements.collect();
        if self.random.percent(30.0) {
            return block.extend(then);
        }
        let condition = self.register(DataType::Boolean);
        block.push(Step::Scalar(Instruction::AnyNull {
            target: condition,
            sources: sources.into(),
        }));
        block.push(Step::If {
            condition,
            then,
            otherwise: Vec::new(),
        });
    }

    fn condition(&mut self, block: &mut Block) -> Reg {
        let target = self.register(DataType::Boolean);
        let (left, right) = (self.any(), self.any());
        let instruction = match self.random.below(12) {
            0 | 1 => Some(Instruction::IsNull {
                target,
                source: left,
                negated: self.random.percent(50.0),
            }),
            2 => Some(Instruction::AnyNull {
                target,
                sources: [left, right, self.any()].into(),
            }),
            3 => {
                let source = self.condition(block);
                Some(Instruction::Not { target, source })
            }
            4 => {
                let (left, right) = (self.condition(block), self.condition(block));
                Some(Instruction::And {
                    target,
                    left,
                    right,
                })
            }
            5 => {
                let (left, right) = (self.condition(block), self.condition(block));
                Some(Instruction::Or {
                    target,
                    left,
                    right,
                })
            }
            6 | 7 => Some(Instruction::Move {
                target,
                source: self.flag,
            }),
            _ => None,
        };
        if let Some(instruction) = instruction {
            block.push(Step::Scalar(instruction));
            return target;
        }
        let (op, class) = (Comparison::Less, Class::Integer);
        block.push(Step::Scalar(Instruction::Compare {
            op,
            class,
            target,
            left,
            right,
        }));
        target
    }

    fn use_record(&mut self, block: &mut Block, record: RecordReg) {
        let table = TableRef(0);
        let column = ColumnId(self.random.below(COLUMNS) as u16);
        match self.random.below(6) {
            0 => {
                let op = self.op(OperationKind::Update);
                let columns = [(column, self.any())].into();
                block.push(Step::Update {
                    op,
                    table,
                    record,
                    columns,
                });
            }
            1 => {
                let op = self.op(OperationKind::Delete);
                block.push(Step::Delete { op, table, record });
                // Other handles may be of the same record.
                self.found.clear();
            }
            _ => {
                let op = self.op(OperationKind::Read);
                let target = self.register(DataType::Integer);
                block.push(Step::Read {
                    op,
                    table,
                    record,
                    columns: [(column, target)].into(),
                });
                self.readable.push(target);
                if self.random.percent(40.0) {
                    let variable = self.variables[self.random.below(self.variables.len())];
                    block.push(Step::Scalar(Instruction::Move {
                        target: variable,
                        source: target,
                    }));
                }
                if self.random.percent(60.0) {
                    block.push(Step::Emit {
                        row: [target].into(),
                    });
                }
            }
        }
    }

    fn step(&mut self, block: &mut Block) {
        let table = TableRef(0);
        let choice = self.random.below(if self.protects { 30 } else { 25 });
        if choice < 4 && !self.found.is_empty() {
            let record = self.found[self.random.below(self.found.len())];
            return self.use_record(block, record);
        }
        match choice {
            0..=9 => {
                let index = self.random.below(2) as u16;
                let key: Vec<Reg> = UNIQUE[index as usize].iter().map(|_| self.any()).collect();
                let (op, record) = (self.op(OperationKind::Lookup), self.record());
                let (found, intent) = (self.register(DataType::Boolean), Intent::Read);
                let key = key.into();
                block.push(Step::Lookup {
                    op,
                    table,
                    index,
                    key,
                    record,
                    found,
                    intent,
                });
                if self.random.percent(40.0) {
                    // What is not found ends this path.
                    let end = match self.random.below(3) {
                        0 if !self.loops.is_empty() => {
                            let depth = self.random.below(self.loops.len()) as u16;
                            Step::Exit { depth }
                        }
                        1 => Step::Raise {
                            error: support::failure("not found"),
                        },
                        _ => Step::Return,
                    };
                    let (then, otherwise) = (Vec::new(), vec![end]);
                    block.push(Step::If {
                        condition: found,
                        then,
                        otherwise,
                    });
                    self.found.push(record);
                    return self.use_record(block, record);
                }
                let known = self.found.clone();
                self.found.push(record);
                let readable = self.readable.len();
                let (tells, mut then) = (self.random.percent(50.0), Vec::new());
                let variable = self.variables[self.random.below(self.variables.len())];
                self.use_record(&mut then, record);
                self.block(&mut then, 1);
                self.readable.truncate(readable);
                let after_then = std::mem::replace(&mut self.found, known);
                let mut otherwise = self.inner(1);
                if tells {
                    then.push(self.set_flag(true));
                    // As SELECT INTO does.
                    let target = variable;
                    otherwise.push(Step::Scalar(Instruction::SetNull { target }));
                    otherwise.push(self.set_flag(false));
                }
                self.found.retain(|record| after_then.contains(record));
                block.push(Step::If {
                    condition: found,
                    then,
                    otherwise,
                });
            }
            10 | 11 => {
                let target = self.variables[self.random.below(self.variables.len())];
                let source = self.any();
                if self.random.percent(60.0) {
                    block.push(Step::Scalar(Instruction::Move { target, source }));
                } else {
                    let (left, right) = (source, self.any());
                    let (op, width) = (Arithmetic::Add, Width::Four);
                    block.push(Step::Scalar(Instruction::Integer {
                        op,
                        width,
                        target,
                        left,
                        right,
                    }));
                }
            }
            12 => {
                let op = self.op(OperationKind::Insert);
                let values: Vec<Reg> = (0..COLUMNS).map(|_| self.any()).collect();
                let (record, values) = (self.record(), values.into());
                block.push(Step::Insert {
                    op,
                    table,
                    values,
                    record,
                    conflict: None,
                });
            }
            13 | 14 => {
                let condition = self.condition(block);
                let known = self.found.clone();
                let then = self.inner(2);
                let after_then = std::mem::replace(&mut self.found, known);
                let otherwise = self.inner(2);
                self.found.retain(|record| after_then.contains(record));
                block.push(Step::If {
                    condition,
                    then,
                    otherwise,
                });
            }
            15 => {
                let (variable, step) = (self.register(DataType::Integer), Reg(3));
                self.readable.push(variable);
                let body = self.body(4, false);
                self.readable.retain(|register| *register != variable);
                let (first, last, reverse) = (Reg(2), Reg(3), false);
                block.push(Step::ForRange {
                    variable,
                    first,
                    last,
                    step,
                    reverse,
                    body,
                });
            }
            16 | 17 => {
                let (record, prefix) = (self.record(), self.any());
                let op = self.op(OperationKind::Scan);
                self.loops.push(false);
                let outer = std::mem::replace(&mut self.found, vec![record]);
                let body = self.inner(4);
                self.found = outer;
                self.loops.pop();
                if deletes(&body) {
                    self.found.clear();
                }
                let range = Box::new(Range {
                    prefix: [prefix].into(),
                    ..Range::default()
                });
                let (index, reverse, intent) = (0, false, Intent::Read);
                block.push(Step::Scan {
                    op,
                    table,
                    index,
                    range,
                    reverse,
                    record,
                    intent,
                    body,
                });
            }
            18 => {
                let mut body = self.body(4, true);
                body.push(Step::Exit { depth: 0 });
                block.push(Step::Loop {
                    before: Vec::new(),
                    condition: None,
                    body,
                });
            }
            19 | 20 => self.test_for_null(block),
            21 => {
                let target = self.variables[self.random.below(self.variables.len())];
                block.push(Step::Scalar(Instruction::SetNull { target }));
            }
            22 => {
                // IF NOT FOUND THEN RAISE
                let (target, source) = (self.register(DataType::Boolean), self.flag);
                block.push(Step::Scalar(Instruction::Not { target, source }));
                let then = vec![Step::Raise {
                    error: support::failure("not found"),
                }];
                block.push(Step::If {
                    condition: target,
                    then,
                    otherwise: Vec::new(),
                });
            }
            23 => {
                // A CASE whose value is assigned.
                let (condition, source) = (self.condition(block), self.register(DataType::Integer));
                let mut branch = || {
                    let mut branch = self.inner(1);
                    let (op, width) = (Arithmetic::Add, Width::Four);
                    let (left, right) = (self.any(), self.any());
                    branch.push(Step::Scalar(Instruction::Integer {
                        op,
                        width,
                        target: source,
                        left,
                        right,
                    }));
                    branch
                };
                let (then, otherwise) = (branch(), branch());
                block.push(Step::If {
                    condition,
                    then,
                    otherwise,
                });
                if self.random.percent(50.0) {
                    self.block(block, 2);
                }
                let target = self.variables[self.random.below(self.variables.len())];
                block.push(Step::Scalar(Instruction::Move { target, source }));
            }
            25.. => self.protect(block),
            _ if !self.loops.is_empty() => {
                let condition = self.condition(block);
                let depth = self.random.below(self.loops.len()) as u16;
                // CONTINUE would make a loop of one iteration one without end.
                let once = self.loops[self.loops.len() - 1 - depth as usize];
                let then = if once || self.random.percent(50.0) {
                    vec![Step::Exit { depth }]
                } else {
                    vec![Step::Continue { depth }]
                };
                block.push(Step::If {
                    condition,
                    then,
                    otherwise: Vec::new(),
                });
            }
            _ => {
                let row = [self.any()].into();
                block.push(Step::Emit { row });
            }
        }
    }
}

impl Generator {
    /// A protected region, and what is done when it has caught an error.
    fn protect(&mut self, block: &mut Block) {
        let region = RegionId(self.program.regions as u16);
        self.program.regions += 1;
        let body = self.body(6, true);
        let caught = self.register(DataType::BigInt);
        block.push(Step::Protect {
            region,
            handlers: [[Condition::Others].into()].into(),
            caught,
            body,
        });
        let condition = self.register(DataType::Boolean);
        block.push(Step::Scalar(Instruction::Compare {
            op: Comparison::Less,
            class: Class::Integer,
            target: condition,
            left: Reg(2),
            right: caught,
        }));
        let known = self.found.clone();
        let mut then = self.inner(2);
        let row = [self.variables[self.random.below(self.variables.len())]].into();
        then.push(Step::Emit { row });
        if self.random.percent(10.0) {
            then.push(Step::RaiseAgain { region });
        }
        let after_then = std::mem::replace(&mut self.found, known);
        let otherwise = self.inner(1);
        self.found.retain(|record| after_then.contains(record));
        block.push(Step::If {
            condition,
            then,
            otherwise,
        });
    }
}

fn deletes(block: &[Step]) -> bool {
    block.iter().any(|step| match step {
        Step::Delete { .. } => true,
        Step::If {
            then, otherwise, ..
        } => deletes(then) || deletes(otherwise),
        Step::Loop { body, .. }
        | Step::ForRange { body, .. }
        | Step::Scan { body, .. }
        | Step::Protect { body, .. } => deletes(body),
        _ => false,
    })
}
