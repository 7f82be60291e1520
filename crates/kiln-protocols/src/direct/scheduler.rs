//! Direct, as any worker is seen: its scheduler, and what runs the attempts under all schedulers.

use kiln_platform::spin::Spinner;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::{AbortCause, Access, Arguments, Frame, Interrupt, Program, Stop};
use kiln_storage::epoch::Epochs;
use kiln_storage::journal::Journal;

use super::Direct;
use crate::batches::BatchStatistics;
use crate::factors::Factors;
use crate::phases::Phased;
use crate::scheduler::{Attempts, Scheduler};
use crate::serve::{Call, Calls, Next};
use crate::shared::core_slots::CoreSlot;
use crate::shared::recorder::{Observation, Recorded};
use crate::{AnswerWriter, Counters, Outcome, Statistics};

impl<A: Access + Phased + Recorded + Send> Scheduler for Direct<A> {
    fn attempts(&mut self) -> &mut dyn Attempts {
        self
    }

    // Not inlined: it is large, and serving calls it as well.
    #[inline(never)]
    fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome> {
        Direct::call(self, program, arguments, deadline_ns, patience_ns, answer)
    }

    fn is_pipelined(&self) -> bool {
        false
    }

    /// One after the other.
    fn serve(&mut self, calls: &mut dyn Calls) {
        let mut call = Call::default();
        let mut spinner = Spinner::default();
        loop {
            call.is_history_full = Direct::is_history_full(self);
            call.answer = None;
            match calls.next(&mut call) {
                Next::Call => {}
                nothing => {
                    Direct::give_way(self);
                    if nothing == Next::Pause {
                        return;
                    }
                    spinner.spin();
                    continue;
                }
            }
            let Some(program) = &call.program else {
                unreachable!("a call that was drawn has a program")
            };
            let (arguments, answer) = (&call.arguments, call.answer.as_ref());
            let outcome = Scheduler::call(self, program, arguments, call.deadline_ns, None, answer);
            let outcome = outcome.expect("a call without a limit to its patience is not given up");
            calls.ended(&call, outcome, &self.frame);
        }
    }

    fn begin(&mut self) -> bool {
        Direct::begin(self)
    }

    fn commit(&mut self) -> Result<(), AbortCause> {
        Direct::commit(self)
    }

    fn roll_back(&mut self) {
        Direct::roll_back(self);
    }

    fn frame(&self) -> &Frame {
        &self.frame
    }
}

impl<A: Access + Phased + Recorded> Attempts for Direct<A> {
    fn set_up(&mut self, factors: Factors, core_slot: CoreSlot, epochs: Epochs) {
        self.factors = factors;
        self.core_slot = Some(core_slot);
        self.epochs = Some(epochs);
    }

    fn observe(&mut self, observation: Option<&Observation>) {
        Direct::observe(self, observation);
    }

    fn is_history_full(&mut self) -> bool {
        Direct::is_history_full(self)
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.access.attach(journal);
    }

    fn limit(&mut self, deadline_ns: Option<u64>, interrupt: Option<&Interrupt>) {
        self.frame.deadline_ns = deadline_ns;
        self.frame.interrupt = interrupt.cloned();
    }

    fn set_transaction_began(&mut self, began_us: i64) {
        self.frame.memory.heap.transaction_began_us = Some(began_us);
    }

    fn run(&mut self, program: &Arc<Program>, arguments: &Arguments) -> Result<(), Stop> {
        Direct::run(self, program, arguments)
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        Direct::confirm(self)
    }

    fn back_off(&mut self, deadline_ns: Option<u64>) {
        Direct::back_off(self, deadline_ns);
    }

    fn programs(&self) -> &[Arc<Program>] {
        &self.open.programs
    }

    fn end_transaction(&mut self) {
        Direct::end_transaction(self);
    }

    fn give_way(&mut self) {
        Direct::give_way(self);
    }

    fn counters(&self) -> &Arc<Counters> {
        Direct::counters(self)
    }

    fn statistics(&mut self) -> Statistics {
        let mut statistics = Statistics {
            phase_cycles: self.access.phases().cycles(),
            ..Statistics::default()
        };
        let counted = self.counters.read();
        counted.since(&self.counted_before, &mut statistics);
        if self.batches != BatchStatistics::default() {
            statistics.batches = self.batches.in_nanoseconds(time::cycles_per_us());
        }
        self.access.add_counts(&mut statistics);
        statistics
    }

    fn reset_statistics(&mut self) {
        self.counted_before = self.counters.read();
        self.batches = BatchStatistics::default();
        self.access.phases().reset();
        self.access.reset_counts();
    }
}
