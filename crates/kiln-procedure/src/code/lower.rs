//! From the step tree to flat code.

use super::*;
use kiln_storage::types::Value;

use crate::analysis::names::{Use, for_each_step, step_registers};
use crate::frame::push_value;
use crate::program::Program;

/// A position that is known once the code there is.
#[derive(Clone, Copy)]
struct Pending(usize);

/// A loop around the step that is being lowered.
struct Loop {
    /// Where its next turn begins.
    again: Pending,
    /// Behind it.
    end: Pending,
    /// Whether its body is run by a call.
    is_called: bool,
}

/// A conditional that is one jump over a table.
struct Cases<'s> {
    source: Reg,
    /// Each constant with the branch that it leads to.
    branches: Vec<(i64, &'s [Step])>,
    /// The branch of all else, NULL too.
    otherwise: &'s [Step],
}

/// From how many branches on a table is worth it.
const SWITCH_MIN: usize = 4;

/// The constants of a table lie within this.
const SWITCH_MAX: i64 = 256;

struct Lowering<'a> {
    program: &'a Program,
    code: Code,
    /// How often each register is read.
    reads: Vec<u32>,
    loops: Vec<Loop>,
    /// The positions of pending labels; jumps hold the number of their label until the end.
    labels: Vec<Option<Label>>,
    /// The last position that a jump leads to: what is behind may not be merged with what is
    /// before.
    landed: usize,
    /// The number of the next hidden register.
    hidden: usize,
    /// The look-ups that a prefetch before makes too, with the places of what it finds.
    foreseen: Vec<(OpId, usize)>,
    /// The variables and first values of the counting loops around the step.
    counted: Vec<(Reg, Reg)>,
}

impl Code {
    /// Lowers a program.
    ///
    /// # Panics
    /// When the program breaks a rule of the IR; [`verify`](crate::verify::verify) finds out.
    pub fn of(program: &Program) -> Code {
        let mut reads = vec![0; program.registers.len()];
        for_each_step(&program.body, &mut |step| {
            step_registers(step, &mut |register, usage| {
                if usage == Use::Read {
                    reads[register.0 as usize] += 1;
                }
            });
        });
        let mut lowering = Lowering {
            program,
            code: Code {
                registers: program.registers.len(),
                ..Code::default()
            },
            reads,
            loops: Vec::new(),
            labels: Vec::new(),
            landed: 0,
            hidden: program.registers.len(),
            foreseen: Vec::new(),
            counted: Vec::new(),
        };
        lowering.constants();
        lowering.block(&program.body);
        lowering.emit(Op::Return);
        lowering.finish()
    }
}

/// Appends to a table and gives the number.
fn number<T>(table: &mut Vec<T>, value: T) -> u32 {
    table.push(value);
    table.len() as u32 - 1
}

impl Lowering<'_> {
    fn emit(&mut self, op: Op) {
        self.code.ops.push(op);
    }

    fn label(&mut self) -> Pending {
        self.labels.push(None);
        Pending(self.labels.len() - 1)
    }

    /// A label as jumps hold it until the end.
    fn to(&self, label: Pending) -> Label {
        label.0 as Label
    }

    /// The label's position is here.
    fn land(&mut self, label: Pending) {
        self.landed = self.code.ops.len();
        self.labels[label.0] = Some(self.landed as Label);
    }

    /// Hidden registers, one after the other, for the time of a loop.
    fn hidden(&mut self, count: usize) -> Reg {
        let first = self.hidden;
        self.hidden += count;
        self.code.registers = self.code.registers.max(self.hidden);
        Reg(u16::try_from(first).expect("the IR's limits leave room for hidden registers"))
    }

    fn table(&self, table: TableRef) -> Arc<Table> {
        self.program.tables[table.0 as usize].clone()
    }

    /// Sorts the constants by how they get into their registers.
    fn constants(&mut self) {
        for constant in &self.program.constants {
            let (register, code) = (constant.register, &mut self.code);
            let heap = &mut code.constant_bytes;
            match &constant.value {
                Value::Array(_) => code.other_constants.push(constant.clone()),
                Value::Text(_) | Value::Bytea(_) | Value::Uuid(_) | Value::Interval(_) => {
                    let slot = push_value(heap, &constant.value);
                    code.byte_constants.push((register, slot));
                }
                value => code.constants.push((register, push_value(heap, value))),
            }
        }
    }

    /// Gives all jumps the positions that they lead to, past jumps that are certain.
    fn finish(mut self) -> Code {
        self.resolve();
        self.shorten();
        self.code
    }

    /// Leads jumps to where the jump at their end leads.
    fn shorten(&mut self) {
        let lands = |at: usize| self.labels.contains(&Some(at as Label));
        let ops = &mut self.code.ops;
        for at in 0..ops.len() {
            // `Move` of TRUE or FALSE and then a jump to where that is asked.
            if at > 0
                && let Op::Jump { to } = ops[at]
                && let Op::Move { target, source } = ops[at - 1]
                && let Op::JumpIf {
                    when,
                    condition,
                    to: further,
                } = ops[to as usize]
                && condition == target
                && !lands(at)
            {
                let mut constants = self.code.constants.iter();
                let known = constants.find(|(register, _)| *register == source);
                if let Some((_, value)) = known {
                    let jumps = value.is_true() == when;
                    let to = if jumps { further } else { to + 1 };
                    ops[at] = Op::Jump { to };
                }
            }
            // Two questions with the same answer, one behind the other.
            if let Op::JumpIf {
                when,
                condition,
                to,
            } = ops[at]
                && let Op::JumpIf {
                    when: again,
                    condition: known,
                    to: further,
                } = ops[to as usize]
                && condition == known
            {
                let to = if when == again { further } else { to + 1 };
                ops[at] = Op::JumpIf {
                    when,
                    condition,
                    to,
                };
            }
        }
    }

    fn resolve(&mut self) {
        let switches = self.code.switches.iter_mut();
        for to in switches.flat_map(|switch| &mut switch.to) {
            *to = self.labels[*to as usize].expect("every label has its position");
        }
        for op in &mut self.code.ops {
            if let Op::Jump { to }
            | Op::JumpIf { to, .. }
            | Op::JumpIfFalse { to, .. }
            | Op::JumpIfIntegers { to, .. }
            | Op::JumpIfNull { to, .. }
            | Op::JumpIfAnyNull { to, .. }
            | Op::Again { to }
            | Op::CountFrom { to, .. }
            | Op::CountOn { to, .. }
            | Op::EachFrom { to, .. }
            | Op::EachOn { to, .. }
            | Op::Unwind { to, .. }
            | Op::Lookup { to, .. }
            | Op::Scan { to, .. }
            | Op::ForBuffer { to, .. } = op
            {
                *to = self.labels[*to as usize].expect("every label has its position");
            }
        }
    }

    fn block(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Scalar(instruction) => self.scalar(instruction),
            Step::If {
                condition,
                then,
                otherwise,
            } => self.conditional(*condition, then, otherwise),
            Step::Loop {
                before,
                condition,
                body,
            } => {
                let (start, end) = (self.label(), self.label());
                self.land(start);
                self.block(before);
                if let Some(condition) = condition {
                    self.jump_if(*condition, false, end);
                }
                let again = self.label();
                self.turns(again, end, false, body);
                self.land(again);
                self.emit(Op::Again { to: self.to(start) });
                self.land(end);
            }
            Step::ForRange {
                variable,
                first,
                last,
                step,
                reverse,
                body,
            } => {
                let (variable, reverse, state) = (*variable, *reverse, self.hidden(3));
                let (start, again, end) = (self.label(), self.label(), self.label());
                self.emit(Op::CountFrom {
                    first: *first,
                    last: *last,
                    step: *step,
                    state,
                    variable,
                    reverse,
                    to: self.to(end),
                });
                self.land(start);
                self.counted.push((variable, *first));
                self.turns(again, end, false, body);
                self.counted.pop();
                self.land(again);
                self.emit(Op::CountOn {
                    state,
                    variable,
                    reverse,
                    to: self.to(start),
                });
                self.land(end);
                self.hidden -= 3;
            }
            Step::ForEach {
                variable,
                array,
                body,
            } => {
                let (variable, state) = (*variable, self.hidden(2));
                let (start, again, end) = (self.label(), self.label(), self.label());
                self.emit(Op::EachFrom {
                    array: *array,
                    state,
                    variable,
                    to: self.to(end),
                });
                self.land(start);
                self.turns(again, end, false, body);
                self.land(again);
                self.emit(Op::EachOn {
                    state,
                    variable,
                    to: self.to(start),
                });
                self.land(end);
                self.hidden -= 2;
            }
            Step::Exit { depth } => self.leave(*depth, |target| target.end, true),
            Step::Continue { depth } => self.leave(*depth, |target| target.again, false),
            Step::Return => self.emit(Op::Return),
            Step::Raise { error } => {
                let failure = number(&mut self.code.failures, (**error).clone());
                self.emit(Op::Raise { failure });
            }
            Step::Notice { level, error } => {
                let notice = number(&mut self.code.notices, (level, (**error).clone()));
                self.emit(Op::Notice { notice });
            }
            _ => self.operation(step),
        }
    }

    fn operation(&mut self, step: &Step) {
        match step {
            Step::Prefetch {
                first,
                last,
                lookups,
            } => {
                let lookups = lookups.iter().map(|lookup| {
                    let place = self.code.sightings;
                    self.code.sightings += PREFETCH_TURNS_MAX;
                    if lookup.is_certain {
                        self.foreseen.push((lookup.op, place));
                    }
                    PrefetchedLookup {
                        table: self.table(lookup.table),
                        index: lookup.index as usize,
                        key: lookup.key.clone(),
                        lines: lookup.lines,
                        place,
                    }
                });
                let lookups = lookups.collect();
                let prefetch = Prefetch {
                    first: *first,
                    last: *last,
                    lookups,
                };
                let prefetch = number(&mut self.code.prefetches, prefetch);
                self.emit(Op::Prefetch { prefetch });
            }
            Step::Lookup {
                op,
                table,
                index,
                key,
                record,
                found,
                intent,
                ..
            } => {
                let lookup = Lookup {
                    table: self.table(*table),
                    index: *index as usize,
                    key: key.clone(),
                    record: *record,
                    found: *found,
                    intent: *intent,
                    foreseen: self.foreseen(*op),
                };
                let lookup = number(&mut self.code.lookups, lookup);
                // A conditional on `found` behind it may lead elsewhere.
                let next = self.label();
                let to = self.to(next);
                self.emit(Op::Lookup { lookup, to });
                self.labels[next.0] = Some(self.code.ops.len() as Label);
            }
            Step::Scan {
                table,
                index,
                range,
                reverse,
                record,
                intent,
                body,
                ..
            } => {
                let scan = Scan {
                    table: self.table(*table),
                    index: *index as usize,
                    range: (**range).clone(),
                    reverse: *reverse,
                    record: *record,
                    intent: *intent,
                };
                let scan = number(&mut self.code.scans, scan);
                let end = self.label();
                self.emit(Op::Scan {
                    scan,
                    to: self.to(end),
                });
                self.called(end, body);
            }
            Step::Read {
                table,
                record,
                columns,
                ..
            } => {
                let columns = self.columns(*table, *record, columns);
                let read = number(&mut self.code.reads, columns);
                self.emit(Op::Read { read });
            }
            Step::Update {
                table,
                record,
                columns,
                ..
            } => {
                let columns = self.columns(*table, *record, columns);
                let update = number(&mut self.code.updates, columns);
                self.emit(Op::Update { update });
            }
            Step::Insert {
                table,
                values,
                record,
                conflict,
                ..
            } => {
                let insert = Insert {
                    table: self.table(*table),
                    values: values.clone(),
                    record: *record,
                    conflict: *conflict,
                };
                let insert = number(&mut self.code.inserts, insert);
                self.emit(Op::Insert { insert });
            }
            Step::Delete { table, record, .. } => self.emit(Op::Delete {
                table: *table,
                record: *record,
            }),
            Step::SaveRecord { target, record } => self.emit(Op::SaveRecord {
                target: *target,
                record: *record,
            }),
            Step::RestoreRecord { record, source } => self.emit(Op::RestoreRecord {
                record: *record,
                source: *source,
            }),
            Step::ForBuffer {
                buffer,
                matching,
                row,
                body,
            } => {
                let walk = Walk {
                    buffer: *buffer,
                    width: self.program.buffers[buffer.0 as usize],
                    matching: matching.clone(),
                    row: row.clone(),
                };
                let walk = number(&mut self.code.walks, walk);
                let end = self.label();
                self.emit(Op::ForBuffer {
                    walk,
                    to: self.to(end),
                });
                self.called(end, body);
            }
            Step::Emit { row } => {
                let row = number(&mut self.code.emits, row.clone());
                self.emit(Op::Emit { row });
            }
            _ => self.rows(step),
        }
    }

    /// Where a prefetch before the loop around notes what it finds for a look-up.
    fn foreseen(&self, op: OpId) -> Option<Foreseen> {
        let (_, place) = self.foreseen.iter().find(|(known, _)| *known == op)?;
        let (turn, first) = *self.counted.last()?;
        Some(Foreseen {
            place: *place,
            turn,
            first,
        })
    }

    fn rows(&mut self, step: &Step) {
        let width = |buffer: &BufferId| self.program.buffers[buffer.0 as usize];
        let rows = match step {
            Step::BufferClear { buffer } => Rows::Clear { buffer: *buffer },
            Step::BufferPush { buffer, row } => Rows::Push {
                buffer: *buffer,
                row: row.clone(),
            },
            Step::BufferPushDistinct {
                buffer,
                row,
                classes,
                added,
            } => Rows::PushDistinct {
                buffer: *buffer,
                row: row.clone(),
                classes: classes.clone(),
                added: *added,
            },
            Step::BufferSort { buffer, by } => Rows::Sort {
                buffer: *buffer,
                width: width(buffer),
                by: by.clone(),
            },
            Step::BufferCount { buffer, target } => Rows::Count {
                buffer: *buffer,
                width: width(buffer),
                target: *target,
            },
            other => unreachable!("{other:?} is lowered elsewhere"),
        };
        let rows = number(&mut self.code.rows, rows);
        self.emit(Op::Rows { rows });
    }

    fn columns(&self, table: TableRef, record: RecordReg, columns: &[(ColumnId, Reg)]) -> Columns {
        Columns {
            table: self.table(table),
            record,
            columns: columns.into(),
        }
    }

    /// The body of a loop.
    fn turns(&mut self, again: Pending, end: Pending, is_called: bool, body: &[Step]) {
        self.loops.push(Loop {
            again,
            end,
            is_called,
        });
        self.block(body);
        self.loops.pop();
    }

    /// A body that is run by a call.
    fn called(&mut self, end: Pending, body: &[Step]) {
        let again = self.label();
        self.landed = self.code.ops.len();
        self.turns(again, end, true, body);
        self.land(again);
        self.emit(Op::EndTurn);
        self.land(end);
    }

    /// Leaves the body of the loop `depth` levels out, and with `whole` also that loop.
    fn leave(&mut self, depth: u16, target: impl Fn(&Loop) -> Pending, whole: bool) {
        let position = self.loops.len() - 1 - depth as usize;
        let inner = &self.loops[position + !whole as usize..];
        let bodies = inner.iter().filter(|inner| inner.is_called).count() as u32;
        let to = self.to(target(&self.loops[position]));
        self.emit(match bodies {
            0 => Op::Jump { to },
            _ => Op::Unwind { bodies, to },
        });
    }

    fn conditional(&mut self, condition: Reg, then: &[Step], otherwise: &[Step]) {
        if let Some(cases) = self.cases(condition, then, otherwise) {
            return self.switch(cases);
        }
        let end = self.label();
        if then.is_empty() {
            self.jump_if(condition, true, end);
            self.block(otherwise);
        } else if otherwise.is_empty() {
            self.jump_if(condition, false, end);
            self.block(then);
        } else {
            let other = self.label();
            self.jump_if(condition, false, other);
            self.block(then);
            self.emit(Op::Jump { to: self.to(end) });
            self.land(other);
            self.block(otherwise);
        }
        self.land(end);
    }

    /// The branches of a conditional that compares one integer with one constant after the other.
    /// The comparison with the first is the op before.
    fn cases<'s>(
        &self,
        condition: Reg,
        then: &'s [Step],
        otherwise: &'s [Step],
    ) -> Option<Cases<'s>> {
        let Some(Op::CompareIntegers {
            accepts,
            target,
            left,
            right,
        }) = self.code.ops.last()
        else {
            return None;
        };
        let first = Instruction::Compare {
            op: Comparison::Equal,
            class: Class::Integer,
            target: *target,
            left: *left,
            right: *right,
        };
        if *accepts != Accepts::of(Comparison::Equal) || self.landed == self.code.ops.len() {
            return None;
        }
        let mut cases = Cases {
            source: *left,
            branches: Vec::new(),
            otherwise: &[],
        };
        let (mut comparison, mut condition) = (&first, condition);
        let (mut then, mut otherwise) = (then, otherwise);
        while let Some(constant) = self.case(comparison, condition, cases.source) {
            let known = cases.branches.iter().any(|(known, _)| *known == constant);
            if !known {
                cases.branches.push((constant, then));
            }
            cases.otherwise = otherwise;
            let [
                Step::Scalar(next),
                Step::If {
                    condition: next_condition,
                    then: next_then,
                    otherwise: next_otherwise,
                },
            ] = otherwise
            else {
                break;
            };
            (comparison, condition) = (next, *next_condition);
            (then, otherwise) = (next_then, next_otherwise);
        }
        let constants = || cases.branches.iter().map(|(constant, _)| *constant);
        let (least, greatest) = (constants().min()?, constants().max()?);
        let is_dense = greatest.checked_sub(least)? < SWITCH_MAX;
        (is_dense && cases.branches.len() >= SWITCH_MIN).then_some(cases)
    }

    /// The constant with which the instruction compares `source` for equality, if it does and
    /// has no other purpose than to decide `condition`.
    fn case(&self, instruction: &Instruction, condition: Reg, source: Reg) -> Option<i64> {
        match instruction {
            Instruction::Compare {
                op: Comparison::Equal,
                class: Class::Integer,
                target,
                left,
                right,
            } if *left == source
                && *target == condition
                && *target != source
                && self.reads[target.0 as usize] == 1 =>
            {
                let mut constants = self.code.constants.iter();
                let (_, value) = constants.find(|(register, _)| register == right)?;
                (!value.is_null()).then(|| value.as_i64())
            }
            _ => None,
        }
    }

    fn switch(&mut self, cases: Cases<'_>) {
        // The comparison with the first constant.
        self.code.ops.pop();
        let (end, other) = (self.label(), self.label());
        let constants = || cases.branches.iter().map(|(constant, _)| *constant);
        let least = constants().min().unwrap_or(0);
        let greatest = constants().max().unwrap_or(0);
        let count = (greatest - least + 1) as usize;
        let table = Switch {
            least,
            to: vec![self.to(other); count],
        };
        let table = number(&mut self.code.switches, table);
        self.emit(Op::Switch {
            source: cases.source,
            table,
        });
        self.land(other);
        self.block(cases.otherwise);
        for (constant, then) in &cases.branches {
            self.emit(Op::Jump { to: self.to(end) });
            let label = self.label();
            self.land(label);
            let to = self.to(label);
            self.code.switches[table as usize].to[(constant - least) as usize] = to;
            self.block(then);
        }
        self.land(end);
    }

    /// Jumps when whether the condition is TRUE is `when`; together with the op that computed the
    /// condition, where that one has no other purpose.
    fn jump_if(&mut self, condition: Reg, when: bool, label: Pending) {
        let to = self.to(label);
        let only_here = self.reads[condition.0 as usize] == 1;
        let follows = self.landed < self.code.ops.len();
        let merged = match self.code.ops.last_mut().filter(|_| follows) {
            // The register is written all the same: others may read it.
            Some(Op::Lookup {
                lookup,
                to: missing,
            }) if !when && self.code.lookups[*lookup as usize].found == condition => {
                *missing = to;
                return;
            }
            Some(Op::CompareIntegers {
                accepts,
                target,
                left,
                right,
            }) if only_here && *target == condition => Some(Op::JumpIfIntegers {
                when,
                accepts: *accepts,
                left: *left,
                right: *right,
                to,
            }),
            Some(Op::IsNull {
                target,
                source,
                negated,
            }) if only_here && *target == condition => Some(Op::JumpIfNull {
                when: when != *negated,
                source: *source,
                to,
            }),
            Some(Op::Scalar { instruction }) if only_here => {
                match &self.code.instructions[*instruction as usize] {
                    Instruction::Not { target, source } if *target == condition => {
                        Some(Op::JumpIfFalse {
                            when,
                            condition: *source,
                            to,
                        })
                    }
                    Instruction::AnyNull { target, sources } if *target == condition => {
                        let registers = number(&mut self.code.register_lists, sources.clone());
                        Some(Op::JumpIfAnyNull {
                            when,
                            registers,
                            to,
                        })
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let alone = Op::JumpIf {
            when,
            condition,
            to,
        };
        if merged.is_some() {
            self.code.ops.pop();
        }
        self.emit(merged.unwrap_or(alone));
    }

    fn scalar(&mut self, instruction: &Instruction) {
        let op = match *instruction {
            Instruction::Move { target, source } => Op::Move { target, source },
            Instruction::SetNull { target } => Op::SetNull { target },
            Instruction::Integer {
                op: Arithmetic::Add,
                width,
                target,
                left,
                right,
            } => Op::Add {
                width,
                target,
                left,
                right,
            },
            Instruction::Integer {
                op: Arithmetic::Subtract,
                width,
                target,
                left,
                right,
            } => Op::Subtract {
                width,
                target,
                left,
                right,
            },
            Instruction::Integer {
                op: Arithmetic::Multiply,
                width,
                target,
                left,
                right,
            } => Op::Multiply {
                width,
                target,
                left,
                right,
            },
            Instruction::Decimal {
                op,
                target,
                left,
                right,
            } => Op::Decimal {
                op,
                target,
                left,
                right,
            },
            Instruction::Compare {
                op,
                class: Class::Integer,
                target,
                left,
                right,
            } if !matches!(op, Comparison::Distinct | Comparison::NotDistinct) => {
                Op::CompareIntegers {
                    accepts: Accepts::of(op),
                    target,
                    left,
                    right,
                }
            }
            Instruction::IsNull {
                target,
                source,
                negated,
            } => Op::IsNull {
                target,
                source,
                negated,
            },
            Instruction::CheckWidth {
                width,
                target,
                source,
            } => Op::CheckWidth {
                width,
                target,
                source,
            },
            Instruction::IntegerToDecimal { target, source } => {
                Op::IntegerToDecimal { target, source }
            }
            Instruction::Rescale {
                target,
                source,
                precision,
                scale,
            } => Op::Rescale {
                target,
                source,
                precision,
                scale,
            },
            Instruction::Element {
                target,
                array,
                index,
            } => Op::Element {
                target,
                array,
                index,
            },
            Instruction::Require {
                condition,
                null_fails,
                ref error,
            } => Op::Require {
                condition,
                null_fails,
                failure: number(&mut self.code.failures, (**error).clone()),
            },
            Instruction::RequireNotNull { source, ref error } => Op::RequireNotNull {
                source,
                failure: number(&mut self.code.failures, (**error).clone()),
            },
            Instruction::Call {
                function,
                target,
                ref arguments,
                ..
            } => {
                let call = Call {
                    function,
                    target,
                    arguments: arguments.clone(),
                };
                Op::Call {
                    call: number(&mut self.code.calls, call),
                }
            }
            ref other => Op::Scalar {
                instruction: number(&mut self.code.instructions, other.clone()),
            },
        };
        self.emit(op);
    }
}
