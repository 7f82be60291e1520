//! Restoring (§4.2.2): whether an attempt is, by a part of its program (`dependents.rs`) or by all
//! of it, and what is counted of that.
//!
//! When all of the program runs again, each operation whose inputs are the same gives from the
//! cache what it gave. Conditions, loops and errors that follow need no treatment of their own;
//! what is paid for it is that what the program only computes is computed again.

use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_procedure::access::{GoesOn, Recalled, Sought, Visit};
use kiln_procedure::ir::OpId;
use kiln_procedure::{AbortCause, Access, Halt, Handle, Program, Restoration, Stop};
use kiln_storage::slot::Memory;

use super::Healing;
use super::cache::Outcome;
use super::dependents::{Part, Rerun};
use super::undisturbed::Calm;
use crate::Statistics;
use crate::phases::Phase;

/// How often an attempt is restored at most. Each time it holds more of what it reads, so that more
/// than a few need records that come and go.
pub(super) const ROUNDS_MAX: u32 = 32;

impl Healing {
    /// Whether a restoration may mend what stopped the attempt.
    pub(super) fn may_restore(&mut self, stop: &Stop) -> bool {
        let asks = std::mem::take(&mut self.asks);
        match stop {
            Stop::Abort(AbortCause::ReadValidation | AbortCause::Phantom) => {}
            Stop::Abort(_) if asks => {}
            Stop::Abort(_) => return false,
            // An update that was deferred to the commit.
            Stop::Raise(_) if self.is_confirmed => return false,
            Stop::Raise(_) => {
                if let Some(decided) = self.decide_raise() {
                    self.is_confirmed = decided.is_ok();
                    return false;
                }
            }
        }
        self.round < ROUNDS_MAX
    }

    /// Prepares another run of the program, or of a part of it.
    pub(super) fn restore<'p>(&mut self, program: &'p Program, stop: &Stop) -> GoesOn<'p> {
        self.sets.phases.enter(Phase::Restore);
        self.round += 1;
        self.has_restored = false;
        let was_calm = std::mem::take(&mut self.is_calm);
        if was_calm {
            self.late.is_on = self.late.is_allowed;
        }
        self.copies_reads = self.keeps_copies();
        self.rest();
        let part = self.restored_part(program, stop, was_calm);
        self.counters.has_restored(program, part);
        let goes_on = match part {
            Ok(part) => GoesOn::Restored(part),
            Err(_) => {
                self.prepare_rerun();
                GoesOn::Again
            }
        };
        point("healing.restores");
        goes_on
    }

    /// Prepares a run of the whole program.
    fn prepare_rerun(&mut self) {
        self.part = Part::default();
        self.has_linked = false;
        self.spare_late();
        for write in &self.sets.writes {
            // An attempt that waits for a row that never was must not wait for this one.
            if write.inserts() {
                self.sets.protocol.locks.release(write.record);
            }
        }
        std::mem::swap(&mut self.known, &mut self.sets.items);
        self.sets.take_back();
        self.known_by_record.clear();
        for (item, position) in self.known.iter().zip(0..) {
            if !self.known_by_record.replace(item.record, position) {
                self.known_by_record.insert(item.record, position);
            }
        }
        self.copies.begin_again();
        self.cache.begin_again();
    }

    /// Looks a key up in the access cache.
    pub(super) fn look_back(
        &mut self,
        sought: &Sought<'_>,
        memory: &Memory,
    ) -> Result<Option<Recalled>, Halt> {
        if sought.is_known {
            return Ok(self.repeat(sought.op));
        }
        self.cache.begin(sought, memory);
        if self.round == 0 {
            return Ok(None);
        }
        let recalled = match self.cache.recall() {
            // Where entries move, what they led to need not be what they lead to.
            Some(outcome) if !self.moves_entries() => self.meet_recalled(sought, outcome)?,
            _ => None,
        };
        match recalled {
            Some(_) => {
                self.cache.end();
                self.sets.protocol.under_way = None;
            }
            // After a run that kept nothing it is not known what has to be restored.
            None if self.cache.knows_nothing() => {}
            None => self.counters.restored(Some(sought.op)),
        }
        Ok(recalled)
    }

    /// A look-up leads where it led.
    fn repeat(&mut self, op: OpId) -> Option<Recalled> {
        self.sets.protocol.under_way = None;
        Some(match self.cache.repeat(op)? {
            Outcome::Record(record, note, true) => Recalled::Found(Handle { record, note }),
            Outcome::Record(record, _, false) => Recalled::Absent(record),
            Outcome::Gap(_) | Outcome::Nothing => Recalled::Missing,
        })
    }

    fn meet_recalled(
        &mut self,
        sought: &Sought<'_>,
        outcome: Outcome,
    ) -> Result<Option<Recalled>, Halt> {
        let index = &sought.table.indexes()[sought.index];
        match outcome {
            Outcome::Record(record, ..) if !index.moves() => {
                let (table, intent, observed) = (sought.table, sought.intent, sought.observed);
                let visit = self.visit(table, record, intent, observed)?;
                // A transaction that saw the tid with which a record has moved sees that.
                Ok(match visit {
                    _ if index.moves() => None,
                    Visit::Present(handle) => Some(Recalled::Found(handle)),
                    Visit::Absent => Some(Recalled::Absent(record)),
                    Visit::Dead => None,
                })
            }
            Outcome::Gap(node) if node.is_current() => {
                self.rely_on_node(node)?;
                Ok(Some(Recalled::Missing))
            }
            _ => Ok(None),
        }
    }
}

/// Procedures that a worker counts one by one. Those that it meets later are counted as one, so
/// that a program which makes procedures as it goes cannot fill its memory.
const PROCEDURES_MAX: usize = 256;

/// The name of the procedures beyond the most.
const OTHERS: &str = "(other procedures)";

/// What was restored.
#[derive(Default)]
pub(super) struct Counters {
    /// Runs of programs, or of parts of them, to restore an attempt.
    healings: u64,
    /// Where they are counted for all to read.
    pub shared: Arc<crate::Counters>,
    /// The operations that these ran again, and those of the programs.
    run_again: u64,
    run_again_of: u64,
    /// Runs of whole programs by reason, in the order of [`Rerun::ALL`].
    reruns: [u64; Rerun::ALL.len()],
    /// How often locks were given up for one below them.
    pub let_go: u64,
    /// By procedure.
    procedures: Vec<Restored>,
    /// The position of the one that ran last.
    last: usize,
    /// Whether that one runs now.
    runs_program: bool,
    /// Of what has no program: closures, and statements that come one by one.
    statements: Calm,
}

/// What was restored of one procedure.
struct Restored {
    name: String,
    /// The line of each operation, and how often it was restored. At the end those that are not
    /// known.
    operations: Vec<(u32, u64)>,
    /// Of each of them, how often an attempt failed there, by cause.
    aborts: Vec<[u64; AbortCause::ALL.len()]>,
    calm: Calm,
}

impl Counters {
    /// An attempt begins. Until [`Counters::runs`] names a program it has none.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.runs_program = false;
    }

    /// A program is about to run.
    #[inline]
    pub fn runs(&mut self, program: &Program) {
        self.runs_program = true;
        let present = self.procedures.get(self.last);
        if !present.is_some_and(|restored| restored.is_of(program)) {
            self.change(program);
        }
    }

    #[cold]
    fn change(&mut self, program: &Program) {
        let mut known = self.procedures.iter();
        let known = known.position(|restored| restored.is_of(program));
        self.last = known.unwrap_or_else(|| match self.procedures.len() {
            ..PROCEDURES_MAX => {
                let lines = program.operations.iter();
                let lines = lines.map(|operation| operation.position.map_or(0, |(line, _)| line));
                self.add(&program.name, lines.chain([0]).collect())
            }
            PROCEDURES_MAX => self.add(OTHERS, vec![0]),
            _ => PROCEDURES_MAX,
        });
    }

    /// Starts counting a procedure whose operations are in these lines, and returns its position.
    fn add(&mut self, name: &str, lines: Vec<u32>) -> usize {
        self.procedures.push(Restored {
            name: name.to_owned(),
            aborts: vec![[0; AbortCause::ALL.len()]; lines.len()],
            operations: lines.into_iter().map(|line| (line, 0)).collect(),
            calm: Calm::default(),
        });
        self.procedures.len() - 1
    }

    /// Whether the attempts of what runs are left alone.
    #[inline(always)]
    pub fn calm(&mut self) -> &mut Calm {
        match self.runs_program {
            true => &mut self.procedures[self.last].calm,
            false => &mut self.statements,
        }
    }

    /// The counters of the procedure that runs, if one does.
    fn present(&mut self) -> Option<&mut Restored> {
        match self.runs_program {
            true => self.procedures.get_mut(self.last),
            false => None,
        }
    }

    /// The program, or a part of it, is about to run again.
    pub fn has_restored(&mut self, program: &Program, part: Result<&Restoration, Rerun>) {
        let all = program.operations.len();
        self.healings += 1;
        self.shared.count_healing();
        self.run_again_of += all as u64;
        self.run_again += match part {
            Ok(part) => part.runs.len(),
            Err(reason) => {
                self.reruns[reason as usize] += 1;
                all
            }
        } as u64;
    }

    /// The operation that is under way gave something else than before.
    #[cold]
    pub fn restored(&mut self, op: Option<OpId>) {
        let Some(restored) = self.present() else {
            return;
        };
        let last = restored.operations.len() - 1;
        let operation = op.map_or(last, |op| op.0 as usize);
        restored.operations[operation.min(last)].1 += 1;
    }

    /// An attempt has failed, at an operation that is known or not.
    #[cold]
    pub fn aborted(&mut self, op: Option<OpId>, cause: AbortCause) {
        let Some(Restored { aborts, .. }) = self.present() else {
            return;
        };
        let last = aborts.len() - 1;
        let operation = op.map_or(last, |op| op.0 as usize);
        aborts[operation.min(last)][cause.number()] += 1;
    }

    /// Adds them to a worker's counters.
    pub fn add_to(&self, statistics: &mut Statistics) {
        statistics.healings += self.healings;
        statistics.run_again += self.run_again;
        statistics.run_again_of += self.run_again_of;
        for (reason, &count) in Rerun::ALL.iter().zip(&self.reruns) {
            if count > 0 {
                *statistics.reruns.entry(reason.name()).or_default() += count;
            }
        }
        statistics.locks_let_go += self.let_go;
        for restored in &self.procedures {
            for &(line, count) in restored.operations.iter().filter(|(_, count)| *count > 0) {
                let place = (restored.name.clone(), line);
                *statistics.restored.entry(place).or_default() += count;
            }
            for (&(line, _), causes) in restored.operations.iter().zip(&restored.aborts) {
                for (cause, &count) in AbortCause::ALL.iter().zip(causes) {
                    if count > 0 {
                        let place = (restored.name.clone(), line, cause.name());
                        *statistics.failed.entry(place).or_default() += count;
                    }
                }
            }
        }
    }

    /// Starts counting anew. Which procedures are left alone stays known.
    pub fn reset(&mut self) {
        self.healings = 0;
        (self.run_again, self.run_again_of) = (0, 0);
        self.reruns.fill(0);
        self.let_go = 0;
        for restored in &mut self.procedures {
            restored
                .operations
                .iter_mut()
                .for_each(|(_, count)| *count = 0);
            restored.aborts.iter_mut().for_each(|causes| causes.fill(0));
        }
    }
}

impl Restored {
    fn is_of(&self, program: &Program) -> bool {
        self.name == program.name && self.operations.len() == program.operations.len() + 1
    }
}

#[cfg(test)]
mod tests {
    use kiln_procedure::access::Planning;
    use kiln_procedure::{Access, Arguments, ProgramBuilder};
    use kiln_storage::epoch::Epochs;

    use super::*;
    use crate::factors::HealingFactors;

    #[test]
    fn statements_and_procedures_are_calm_apart() {
        let epochs = Epochs::new(1);
        let participant = epochs.register().expect("a slot is free");
        let mut healing = Healing::new(participant, HealingFactors::default(), false);
        let program = ProgramBuilder::new("procedure", []).finish();
        let runs_procedure = |healing: &mut Healing| {
            healing.begin_call(None);
            healing.begin();
            let arguments = Arguments::from_values(&[]);
            (healing.plan(&program, &arguments)).expect("nothing is planned");
        };
        let runs_statements = |healing: &mut Healing| {
            healing.begin_call(None);
            healing.begin();
            healing.plan_statements();
        };
        let ends = |healing: &mut Healing, is_disturbed: bool| {
            if is_disturbed {
                healing.counters.calm().is_disturbed();
            }
            healing.commit().expect("the attempt is alone");
        };

        // Disturbed statements leave the procedure calm …
        runs_procedure(&mut healing);
        ends(&mut healing, false);
        runs_statements(&mut healing);
        ends(&mut healing, true);
        runs_procedure(&mut healing);
        assert!(healing.counters.calm().is_calm());
        ends(&mut healing, true);
        // … and a disturbed procedure does not keep statements from becoming so again.
        for _ in 0..100 {
            runs_statements(&mut healing);
            ends(&mut healing, false);
        }
        runs_statements(&mut healing);
        assert!(healing.counters.calm().is_calm());
        ends(&mut healing, false);
        runs_procedure(&mut healing);
        assert!(!healing.counters.calm().is_calm());
        ends(&mut healing, false);
    }

    #[test]
    fn procedures_beyond_the_most_are_counted_as_one() {
        let mut counters = Counters::default();
        for number in 0..PROCEDURES_MAX + 3 {
            let program = ProgramBuilder::new(&format!("procedure_{number}"), []).finish();
            counters.runs(&program);
            counters.restored(None);
        }
        assert_eq!(counters.procedures.len(), PROCEDURES_MAX + 1);
        let mut statistics = Statistics::default();
        counters.add_to(&mut statistics);
        assert_eq!(statistics.restored_total(), PROCEDURES_MAX as u64 + 3);
        let of_others = statistics.restored.get(&(OTHERS.to_owned(), 0));
        assert_eq!(of_others, Some(&3));
    }
}
