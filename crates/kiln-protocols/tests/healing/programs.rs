//! Random programs: they follow keys from row to row, and have conditionals, loops, scans that are
//! left early, all kinds of writes, rows that are inserted late and errors that depend on what was
//! read.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::SqlState;
use kiln_storage::types::{DataType, Value};

use super::database::*;

/// Parameters of a program.
pub(super) const PARAMETERS: usize = 6;

/// Makes the same program for both databases.
pub(super) fn program(database: &Database, seed: u64, operations: usize) -> Arc<Program> {
    let parameters = (0..PARAMETERS).map(|at| (format!("p{at}"), DataType::Integer));
    let mut maker = Maker {
        b: ProgramBuilder::new("random", parameters),
        items: TableRef(0),
        log: TableRef(0),
        random: Random::from_seed(seed),
        depth: 0,
        is_plain: false,
    };
    maker.is_plain = maker.random.below(2) == 0;
    maker.items = maker.b.table(&database.items);
    maker.log = maker.b.table(&database.log);
    let start = maker.number(1);
    maker.steps(operations, start);
    maker.b.returns(vec![("seen".to_owned(), DataType::BigInt)]);
    Arc::new(maker.b.finish())
}

struct Maker {
    b: ProgramBuilder,
    items: TableRef,
    log: TableRef,
    random: Random,
    depth: u32,
    /// Whether it leaves the indexes of the items as they are, and so can be restored by parts.
    is_plain: bool,
}

impl Maker {
    fn number(&mut self, value: i64) -> Reg {
        self.b.constant(DataType::BigInt, Value::BigInt(value))
    }

    fn compute(&mut self, op: Arithmetic, left: Reg, right: Reg) -> Reg {
        let target = self.b.register(DataType::BigInt);
        self.b.scalar(Instruction::Integer {
            op,
            width: Width::Eight,
            target,
            left,
            right,
        });
        target
    }

    /// A key: a parameter, or what was read last.
    fn key(&mut self, value: Reg) -> Reg {
        if self.random.below(2) == 0 {
            let parameter = self.random.below(PARAMETERS);
            return self.b.parameter(parameter);
        }
        let keys = self.number(KEYS as i64);
        let rest = self.compute(Arithmetic::Remainder, value, keys);
        let target = self.b.register(DataType::Integer);
        self.b.scalar(Instruction::CheckWidth {
            width: Width::Four,
            target,
            source: rest,
        });
        target
    }

    /// Whether a number that was read is below a constant.
    fn condition(&mut self, value: Reg) -> Reg {
        let bound = self.random.between(-2, 8);
        let (target, right) = (self.b.register(DataType::Boolean), self.number(bound));
        self.b.scalar(Instruction::Compare {
            op: Comparison::Less,
            class: Class::Integer,
            target,
            left: value,
            right,
        });
        target
    }

    fn failure(state: SqlState) -> Box<Failure> {
        Box::new(Failure {
            state,
            message: "no".to_owned(),
            arguments: [].into(),
            detail: None,
            hint: None,
            subject: None,
            position: None,
        })
    }

    /// Appends steps. `value` is what was read last; it holds a value on all ways here.
    fn steps(&mut self, count: usize, mut value: Reg) {
        for _ in 0..count {
            value = self.step(value);
        }
    }

    fn step(&mut self, value: Reg) -> Reg {
        // What comes after may depend on what happens in a branch.
        let next = self.b.register(DataType::BigInt);
        self.b.scalar(Instruction::Move {
            target: next,
            source: value,
        });
        match self.random.below(20) {
            0..10 => self.look_up(value, next),
            10..13 => self.scan(value, next),
            13 | 14 if self.depth < 2 => {
                let condition = self.condition(value);
                let count = 1 + self.random.below(2);
                self.depth += 1;
                self.b.open();
                self.steps(count, next);
                let then = self.b.close();
                self.b.open();
                self.steps(1, next);
                let otherwise = self.b.close();
                self.depth -= 1;
                self.b.push(Step::If {
                    condition,
                    then,
                    otherwise,
                });
            }
            15 if self.depth < 2 => self.repeat(next),
            16 if self.is_plain => self.look_up(value, next),
            16 => self.insert(value),
            17 => {
                let code = self.key(value);
                let row = self.row(value, code);
                self.b.insert(self.log, &row, None, None);
            }
            18 => {
                let condition = self.condition(value);
                let condition = self.random.below(3).eq(&0).then_some(condition);
                if let Some(condition) = condition {
                    self.b.scalar(Instruction::Require {
                        condition,
                        null_fails: false,
                        error: Maker::failure(SqlState::CHECK_VIOLATION),
                    });
                }
            }
            _ => self.b.push(Step::Emit {
                row: [value].into(),
            }),
        }
        next
    }

    /// A loop whose length depends on what was read.
    fn repeat(&mut self, next: Reg) {
        let four = self.number(4);
        let (first, one) = (self.number(0), self.number(1));
        let last = self.compute(Arithmetic::Remainder, next, four);
        let variable = self.b.register(DataType::BigInt);
        self.depth += 1;
        self.b.open();
        let sum = self.compute(Arithmetic::Add, next, variable);
        self.b.scalar(Instruction::Move {
            target: next,
            source: sum,
        });
        self.look_up(next, next);
        if self.random.below(2) == 0 {
            let condition = self.condition(next);
            self.b.push(Step::If {
                condition,
                then: vec![Step::Exit { depth: 0 }],
                otherwise: Vec::new(),
            });
        }
        let body = self.b.close();
        self.depth -= 1;
        self.b.push(Step::ForRange {
            variable,
            first,
            last,
            step: one,
            reverse: false,
            body,
        });
    }

    fn row(&mut self, value: Reg, code: Reg) -> [Reg; 5] {
        let note = self
            .b
            .constant(DataType::Text, Value::Text("new".to_owned()));
        let key = self.key(value);
        [key, code, value, value, note]
    }

    fn insert(&mut self, value: Reg) {
        let code = self.key(value);
        let row = self.row(value, code);
        if self.random.below(4) == 0 {
            self.b.insert(self.items, &row, None, None);
            return;
        }
        let inserted = self.b.register(DataType::Boolean);
        let conflict = Conflict {
            index: None,
            inserted,
        };
        let item = self.b.insert(self.items, &row, Some(conflict), None);
        self.b.open();
        self.b.update(self.items, item, &[(RIGHT, value)], None);
        let otherwise = self.b.close();
        self.b.push(Step::If {
            condition: inserted,
            then: Vec::new(),
            otherwise,
        });
    }

    fn look_up(&mut self, value: Reg, next: Reg) {
        let index = [BY_ID, BY_ID_HASHED, BY_CODE][self.random.below(3)];
        let key = self.key(value);
        let (item, found) = self.b.lookup(self.items, index, &[key], None);
        self.b.open();
        self.touch(item, next);
        let then = self.b.close();
        self.b.push(Step::If {
            condition: found,
            then,
            otherwise: Vec::new(),
        });
    }

    fn scan(&mut self, value: Reg, next: Reg) {
        let record = self.b.record();
        let key = self.key(value);
        let bound = Some(Bound {
            value: key,
            inclusive: self.random.below(2) == 0,
        });
        let (index, range) = match self.random.below(4) {
            0 => (BY_LEFT, Range::default()),
            1 => (
                BY_CODE,
                Range {
                    lower: bound,
                    ..Range::default()
                },
            ),
            2 => (
                BY_ID,
                Range {
                    upper: bound,
                    ..Range::default()
                },
            ),
            _ => (BY_ID, Range::default()),
        };
        let reverse = self.random.below(2) == 0;
        self.b.open();
        let seen = self.b.read(self.items, record, &[RIGHT], None)[0];
        let sum = self.compute(Arithmetic::Add, next, seen);
        self.b.scalar(Instruction::Move {
            target: next,
            source: sum,
        });
        if self.random.below(2) == 0 {
            self.b.update(self.items, record, &[(RIGHT, sum)], None);
        }
        match self.random.below(3) {
            0 => self.b.push(Step::Exit { depth: 0 }),
            1 => {
                let condition = self.condition(sum);
                self.b.push(Step::If {
                    condition,
                    then: vec![Step::Exit { depth: 0 }],
                    otherwise: Vec::new(),
                });
            }
            _ => {}
        }
        let body = self.b.close();
        self.b
            .scan(self.items, index, range, reverse, record, body, None);
    }

    /// Does something with a row that was found.
    fn touch(&mut self, item: RecordReg, next: Reg) {
        let is_plain = self.is_plain;
        let column = [LEFT, RIGHT][self.random.below(2)];
        let column = if is_plain { RIGHT } else { column };
        match self.random.below(10) {
            0..6 => {
                let seen = self.b.read(self.items, item, &[column], None)[0];
                let sum = self.compute(Arithmetic::Add, next, seen);
                let hundred = self.number(100);
                let sum = self.compute(Arithmetic::Remainder, sum, hundred);
                self.b.scalar(Instruction::Move {
                    target: next,
                    source: sum,
                });
                if self.random.below(3) > 0 {
                    self.b.update(self.items, item, &[(column, sum)], None);
                }
            }
            6 => self.b.update(self.items, item, &[(RIGHT, next)], None),
            7 if !is_plain => {
                let code = self.key(next);
                self.b.update(self.items, item, &[(CODE, code)], None);
            }
            8 if !is_plain => {
                let note = self.b.read(self.items, item, &[NOTE], None)[0];
                self.b
                    .update(self.items, item, &[(NOTE, note), (LEFT, next)], None);
            }
            7 | 8 => {
                let note = self.b.read(self.items, item, &[NOTE, LEFT], None);
                self.b.update(self.items, item, &[(NOTE, note[0])], None);
                self.b.scalar(Instruction::Move {
                    target: next,
                    source: note[1],
                });
            }
            _ => self.b.delete(self.items, item, None),
        }
    }
}
