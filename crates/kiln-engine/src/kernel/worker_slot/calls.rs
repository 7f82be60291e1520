//! Calls on a worker slot: alone in the end, if they starve.

use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_procedure::{Arguments, Program};
use kiln_protocols::{AnswerWriter, Outcome};

use super::WorkerSlot;

/// A call whose attempts fail for so long is helped.
const PATIENCE_NS: u64 = 50_000_000;
/// How long the others may take to let it be alone, in nanoseconds. They are held up meanwhile, so
/// it is a tenth of the patience.
pub(crate) const ALONE_WAIT_NS: u64 = 5_000_000;
/// A call that starves stands aside for so long at most while a change of the catalog waits, and
/// looks so often whether it still does.
const STAND_BY_NS: u64 = 1_000_000_000;
const STAND_BY_LOOK_NS: u64 = 500_000;

impl WorkerSlot {
    /// Runs a whole call; the arguments are bound to the program, and the worker slot is entered.
    /// What it wrote is reported with its answer, if it has one.
    #[inline(always)]
    pub fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Outcome {
        if let Err(error) = self.check_log(program) {
            return Outcome::Rejected(error);
        }
        let patience = Some(PATIENCE_NS);
        let ended = self
            .inside(|worker| worker.try_call(program, arguments, deadline_ns, patience, answer));
        let outcome = match ended {
            Some(outcome) => outcome,
            None => self.call_alone(program, arguments, deadline_ns, answer),
        };
        if let Outcome::Committed = outcome {
            count(self.number, program);
        }
        outcome
    }

    /// Runs a call that starves: the gate keeps the other transactions out for its time, so that no
    /// call is repeated for ever. While the gate cannot be shut, because the catalog is being
    /// changed or others stay inside, the call goes on trying among them.
    #[cold]
    fn call_alone(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Outcome {
        loop {
            self.stand_by(program, deadline_ns);
            let inner = self.inner.clone();
            let alone = inner.gate.shut_around(self.number, ALONE_WAIT_NS);
            let patience = match &alone {
                Some(_) => None,
                // Not for longer than the first time: a change of the catalog may wait for it.
                None => Some(PATIENCE_NS),
            };
            let ended = self.inside(|worker| {
                worker.try_call(program, arguments, deadline_ns, patience, answer)
            });
            if let Some(outcome) = ended {
                return outcome;
            }
        }
    }

    /// Stands aside between two attempts of a call that starves, if a change of the catalog waits:
    /// what the call waits for may be an open block, and the change need not wait for that. The
    /// call's tables stay as they are.
    #[cold]
    fn stand_by(&mut self, program: &Program, deadline_ns: Option<u64>) {
        // Where one transaction runs at a time none is in its way.
        if self.single || !self.inner.gate.is_wanted() {
            return;
        }
        let blocks = &self.inner.blocks;
        blocks.hold_tables(self.number, self.user, &program.tables);
        self.step_aside();
        let latest_ns = time::now_ns() + STAND_BY_NS;
        let latest_ns = deadline_ns.map_or(latest_ns, |deadline| deadline.min(latest_ns));
        while self.inner.gate.is_wanted() && time::now_ns() < latest_ns {
            thread::park_for(STAND_BY_LOOK_NS);
        }
        // Without a limit it waits until the gate is open. The call itself sees when its time is
        // over.
        let _ = self.resume(None);
        self.forget_tables();
    }
}

/// Counts a call of a program that has committed on a worker slot, if it is a stored procedure's.
#[inline(always)]
pub(super) fn count(worker_slot: usize, program: &Program) {
    if let Some(calls) = program.calls.get() {
        calls.add(worker_slot, 1);
    }
}
