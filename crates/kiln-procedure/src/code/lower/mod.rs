//! From the step tree to flat code.

mod conditional;
mod constants;
mod deferral;
mod jumps;
mod operation;
mod scalar;

use super::*;
use constants::RareConstants;

use crate::analysis::Analysis;
use crate::names::{Use, for_each_step, step_registers};
use crate::procedure::Procedure;

/// A position that is known once the code there is.
#[derive(Clone, Copy)]
struct Pending(usize);

/// A loop around the step that is being lowered.
struct Loop {
    /// Where its next iteration begins.
    again: Pending,
    /// Behind it.
    end: Pending,
    /// Whether its body is run by a call.
    is_called: bool,
}

struct Lowering<'a> {
    procedure: &'a Procedure,
    analysis: &'a Analysis,
    code: Code,
    /// How often each register is read.
    reads: Vec<u32>,
    loops: Vec<Loop>,
    /// The positions of pending labels; jumps hold the number of their label until the end.
    labels: Vec<Option<Label>>,
    /// The last position that a jump leads to: what is behind may not be merged with what is
    /// before.
    landed: usize,
    /// The constants that fit into their registers.
    constants: Vec<(Reg, Slot)>,
    /// Where rare constants are put into their registers.
    rare: RareConstants,
    /// The number of the next hidden register.
    hidden: usize,
    /// What that was where the innermost protected region began.
    reserved: usize,
    /// The look-ups that a prefetch before makes too, with where the frame has what it finds and
    /// their ordinals.
    foreseen: Vec<(OpId, usize, Option<u16>)>,
    /// The variables and first values of the counting loops around the step.
    counted: Vec<(Reg, Reg)>,
    /// The operations that have changed, if the code is that of a restoration.
    changed: Option<&'a OpSet>,
}

impl Code {
    /// Lowers a procedure.
    ///
    /// # Panics
    /// When the procedure breaks a rule of the IR; [`verify`](crate::verify::verify) finds out.
    pub fn of(procedure: &Procedure, analysis: &Analysis) -> Code {
        Lowering::of(procedure, analysis, None).lowered()
    }

    /// Lowers what a restoration leaves of a program, in which these operations have changed. The
    /// program itself puts its constants into their registers.
    pub(crate) fn part_of(procedure: &Procedure, analysis: &Analysis, changed: &OpSet) -> Code {
        let mut code = Lowering::of(procedure, analysis, Some(changed)).lowered();
        (code.constants, code.byte_constants) = Default::default();
        (code.constant_bytes, code.other_constants) = Default::default();
        code
    }
}

impl<'a> Lowering<'a> {
    fn of(
        procedure: &'a Procedure,
        analysis: &'a Analysis,
        changed: Option<&'a OpSet>,
    ) -> Lowering<'a> {
        let mut reads = vec![0; procedure.registers.len()];
        for_each_step(&procedure.body, &mut |step| {
            step_registers(step, &mut |register, usage| {
                if usage == Use::Read {
                    reads[register.0 as usize] += 1;
                }
            });
        });
        Lowering {
            procedure,
            analysis,
            code: Code {
                registers: procedure.registers.len(),
                ..Code::default()
            },
            reads,
            loops: Vec::new(),
            labels: Vec::new(),
            landed: 0,
            constants: Vec::new(),
            rare: match changed {
                None => RareConstants::of(procedure, analysis),
                Some(_) => RareConstants::default(),
            },
            hidden: procedure.registers.len(),
            reserved: procedure.registers.len(),
            foreseen: Vec::new(),
            counted: Vec::new(),
            changed,
        }
    }

    fn lowered(mut self) -> Code {
        self.constants();
        self.block(&self.procedure.body);
        self.emit(Op::Return);
        self.finish()
    }
}

/// Appends to a table and gives the number.
fn number<T>(table: &mut Vec<T>, value: T) -> u32 {
    table.push(value);
    table.len() as u32 - 1
}

/// The constant in a register, if it is one that fits there.
fn known(constants: &[(Reg, Slot)], register: Reg) -> Option<Slot> {
    let mut constants = constants.iter();
    let (_, slot) = constants.find(|(constant, _)| *constant == register)?;
    Some(*slot)
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
        self.procedure.tables[table.0 as usize].clone()
    }

    fn block(&mut self, steps: &[Step]) {
        let mut done = 0;
        for (position, step) in steps.iter().enumerate() {
            let analysis = self.analysis;
            if let Step::Update { op, .. } = step
                && let Some(update) = analysis.deferral_of(*op)
            {
                let region = position - update.elided.len();
                debug_assert!(region >= done, "regions do not overlap");
                for step in &steps[done..region] {
                    self.step(step);
                }
                self.deferrable(update, &steps[region..position], step);
                done = position + 1;
            }
        }
        let mut steps = steps[done..].iter();
        while let Some(step) = steps.next() {
            match step {
                Step::Prefetch {
                    first,
                    last,
                    lookups,
                    meets_all: true,
                } => {
                    let Some(Step::ForRange { body, .. }) = steps.next() else {
                        unreachable!("a loop follows its prefetch");
                    };
                    self.prefetch((*first, *last), lookups, body);
                }
                step => self.step(step),
            }
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
                self.iterations(again, end, false, body);
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
                self.iterations(again, end, false, body);
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
                self.iterations(again, end, false, body);
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
            Step::Notify { channel, payload } => self.emit(Op::Notify {
                channel: *channel,
                payload: *payload,
            }),
            Step::RaiseAgain { region } => self.emit(Op::RaiseAgain { region: *region }),
            _ => self.operation(step),
        }
    }

    /// The body of a loop.
    fn iterations(&mut self, again: Pending, end: Pending, is_called: bool, body: &[Step]) {
        self.loops.push(Loop {
            again,
            end,
            is_called,
        });
        self.block(body);
        self.loops.pop();
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
}
