//! Direct: a call runs at once, on the worker that has it, and is repeated until it ends.
//!
//! The scheduler of all protocols that need to know nothing before they run. A failed attempt waits
//! for a random time that doubles with each failure (STO §4.1) and starts again with the same
//! arguments, so that a caller never hears "please retry". The waits are there so that attempts do
//! not fail each other: a read-only one that has no locks fails no other, and goes on almost at
//! once.

mod scheduler;
mod statements;

use kiln_history::Moment;
use kiln_platform::random::Random;
use kiln_platform::spin::Backoff;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::GoesOn;
use kiln_procedure::{AbortCause, Access, Arguments, Executor, Frame, Interrupt, Program, Stop};
use kiln_storage::epoch::Epochs;

use statements::Open;

use crate::batches::BatchStatistics;
use crate::factors::{AbortMechanism, Factors, Regulation};
use crate::phases::{Phase, Phased};
use crate::shared::core_slots::CoreSlot;
use crate::shared::recorder::{Observation, Recorded, Recorder};
use crate::shared::unwinding;
use crate::{AnswerWriter, Counted, Counters, Outcome, broken_down};

/// One worker's scheduler over one access.
pub struct Direct<A> {
    access: A,
    frame: Frame,
    backoff: Backoff,
    counters: Arc<Counters>,
    /// What had been counted when counting began anew.
    counted_before: Counted,
    batches: BatchStatistics,
    open: Open,
    factors: Factors,
    /// Whether the last call was given up, and is repeated next.
    was_given_up: bool,
    /// Where more workers than cores share core slots.
    core_slot: Option<CoreSlot>,
    /// What says whether a worker broke down.
    epochs: Option<Epochs>,
    /// How long it has waited for another core slot in the midst of calls, in nanoseconds.
    outside_ns: u64,
}

/// Attempts that fail before the worker looks at the clock: contention, not starvation.
const ATTEMPTS_BEFORE_STARVING: u32 = 8;

/// Attempts that may fail in one core slot; the waits after these are long.
const ATTEMPTS_IN_CORE_SLOT: u32 = 14;

/// How an attempt ended.
pub(crate) enum End {
    /// Its effects are there.
    Committed,
    /// It is repeated.
    Aborted(AbortCause),
    /// The procedure raised.
    Rejected,
}

/// How an attempt has ended that nothing but its reads can fail.
impl From<Result<(), AbortCause>> for End {
    fn from(confirmed: Result<(), AbortCause>) -> End {
        confirmed.map_or_else(End::Aborted, |()| End::Rejected)
    }
}

impl<A: Access + Phased + Recorded> Direct<A> {
    /// Runs calls over `access`; the waits between attempts are drawn from `random`.
    pub fn new(mut access: A, random: Random) -> Direct<A> {
        let counters = Arc::<Counters>::default();
        access.count_in(&counters);
        Direct {
            access,
            frame: Frame::new(),
            backoff: Backoff::new(random),
            counters,
            counted_before: Counted::default(),
            batches: BatchStatistics::default(),
            open: Open::default(),
            factors: Factors::default(),
            was_given_up: false,
            core_slot: None,
            epochs: None,
            outside_ns: 0,
        }
    }

    /// Whether a worker broke down: what this one waits for may never come.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.epochs.as_ref().is_some_and(Epochs::is_broken)
    }

    /// Waits for the worker's core slot.
    #[inline(always)]
    pub(crate) fn enter_core_slot(&mut self) {
        if let Some(core_slot) = &mut self.core_slot {
            core_slot.enter(self.frame.deadline_ns);
        }
    }

    /// Whether it is time to leave the turn to a worker that waits, or to wait for one.
    #[inline(always)]
    pub(crate) fn is_core_slot_over(&mut self) -> bool {
        let ended = self.counters.ended();
        (self.core_slot.as_mut()).is_some_and(|core_slot| core_slot.is_over(ended))
    }

    /// As [`Direct::enter_core_slot`], but not past `deadline_ns`.
    pub(crate) fn enter_core_slot_until(&mut self, deadline_ns: Option<u64>) {
        if let Some(core_slot) = &mut self.core_slot {
            core_slot.enter(deadline_ns);
        }
    }

    /// What may ask the next call to end.
    pub(crate) fn interrupt(&self) -> Option<&Interrupt> {
        self.frame.interrupt.as_ref()
    }

    /// Leaves the turn to a worker that waits: this one has nothing to do.
    pub(crate) fn give_way(&mut self) {
        if let Some(core_slot) = &mut self.core_slot {
            core_slot.give_way();
        }
    }

    /// Ends the worker's core slot, or leaves it free for a moment.
    #[inline(always)]
    pub(crate) fn leave_core_slot(&mut self) {
        if let Some(core_slot) = &mut self.core_slot {
            core_slot.leave(self.counters.ended());
        }
    }

    /// Records histories for `observation` from now on, or none. No transaction is open.
    pub fn observe(&mut self, observation: Option<&Observation>) {
        self.access.recorder().observe(observation);
    }

    /// Whether the history has no room for another call.
    pub fn is_history_full(&mut self) -> bool {
        self.access.recorder().is_full()
    }

    /// The access, for a scheduler that runs attempts itself.
    #[inline(always)]
    pub(crate) fn access(&mut self) -> &mut A {
        &mut self.access
    }

    /// What the worker counts, for all to read at any time; a scheduler that runs attempts itself
    /// counts there as well.
    #[inline(always)]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Records how an attempt ended.
    #[inline(always)]
    pub(crate) fn record_end(&mut self, end: End) {
        let recorder = self.access.recorder();
        if recorder.log().is_some() {
            recorder.end(|log| match end {
                End::Committed => log.commit(),
                End::Aborted(cause) => log.abort(cause.number() as u32),
                End::Rejected => log.reject(),
            });
        }
    }

    /// Runs a call to its end; `arguments` are bound to `program`. The rows that it emitted are in
    /// [`Direct::frame`] until the next call. Gives up, with `None`, when attempts have failed for
    /// longer than `patience_ns`, or one has waited for a lock in vain: nothing of the call is left
    /// then, but the next call is taken for the same one. What the call wrote is reported with its
    /// answer, if it has one.
    pub fn call(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome> {
        debug_assert_eq!(self.backoff.attempts(), 0, "the last transaction is over");
        self.frame.deadline_ns = deadline_ns;
        self.frame.memory.heap.transaction_began_us = None;
        let invoked = self.access.recorder().now();
        // The same call again, when the last one was given up.
        if !std::mem::take(&mut self.was_given_up) {
            self.access.begin_call(deadline_ns);
        }
        self.enter_core_slot();
        self.access.phases().start();
        let (mut failing_since, mut has_waited_long) = (None, false);
        let read_only = program.analysis.is_read_only();
        let outcome = loop {
            if self.frame.is_over() {
                self.counters.count_expiry();
                break Outcome::Expired;
            }
            if self.backoff.attempts() > 0 && self.is_broken() {
                break Outcome::Rejected(broken_down());
            }
            if (self.backoff.attempts() >= ATTEMPTS_BEFORE_STARVING || has_waited_long)
                && let Some(patience_ns) = patience_ns
            {
                // Waiting for core slots is not failing.
                let now = time::now_ns() - self.outside_ns;
                let since = *failing_since.get_or_insert(now);
                if now - since >= patience_ns || has_waited_long {
                    self.end_transaction();
                    self.access.phases().stop();
                    self.leave_core_slot();
                    self.was_given_up = true;
                    return None;
                }
            }
            charge(Work::Begin);
            self.access.prepare(self.backoff.attempts());
            match read_only {
                true => self.access.begin_read_only(),
                false => self.access.begin(),
            }
            if let Some(invoked) = invoked {
                self.access.recorder().begin(&program.name, invoked);
            }
            match self.attempt(program, arguments, invoked, answer) {
                Ok(()) => {
                    self.record_end(End::Committed);
                    self.counters.count_commit();
                    break Outcome::Committed;
                }
                Err(Stop::Abort(cause)) => {
                    // As long as ten attempts of others, and longer than any caller's patience at
                    // first.
                    has_waited_long = cause == AbortCause::LockTimeout;
                    self.retreat(cause, read_only);
                }
                Err(Stop::Raise(error)) => {
                    charge(Work::Reject);
                    let confirmed = self.access.confirm_raise(error);
                    self.access.phases().enter(Phase::Abort);
                    self.access.roll_back();
                    let error = match confirmed {
                        Ok(error) => error,
                        Err(cause) => {
                            self.record_end(End::Aborted(cause));
                            self.wait(cause, read_only);
                            continue;
                        }
                    };
                    self.record_end(End::Rejected);
                    if self.frame.is_over() {
                        self.counters.count_expiry();
                        break Outcome::Expired;
                    }
                    self.counters.count_rejection(error.state());
                    break Outcome::Rejected(error);
                }
            }
        };
        self.end_transaction();
        self.access.phases().stop();
        self.leave_core_slot();
        Some(outcome)
    }

    #[inline(always)]
    fn attempt(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        invoked: Option<Moment>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Result<(), Stop> {
        let mut attempt = || {
            self.access.plan(program, arguments)?;
            let mut part = None;
            loop {
                let (access, frame) = (&mut self.access, &mut self.frame);
                let run = match part.take() {
                    None => Executor::run(program, access, frame, arguments),
                    Some(part) => Executor::restore(program, part, access, frame),
                };
                let ended = run.and_then(|()| {
                    charge(Work::Commit);
                    let access = &mut self.access;
                    set_call(access, program, arguments, &self.frame, answer);
                    self.access.commit()
                });
                let Err(stop) = ended else { return Ok(()) };
                match self.access.goes_on(program, &stop) {
                    GoesOn::No => return Err(stop),
                    GoesOn::Restored(restoration) => part = Some(restoration),
                    GoesOn::Again => {
                        if let Some(invoked) = invoked {
                            run_again(self.access.recorder(), &program.name, invoked, &stop);
                        }
                    }
                }
            }
        };
        let ended = match self.factors.abort_mechanism {
            AbortMechanism::Return => attempt(),
            AbortMechanism::Unwind => unwinding::catch(attempt),
        };
        forget_call(&mut self.access);
        ended
    }

    /// Undoes a failed attempt and waits before the next.
    #[cold]
    fn retreat(&mut self, cause: AbortCause, read_only: bool) {
        charge(Work::Abort);
        self.access.phases().enter(Phase::Abort);
        self.access.roll_back();
        self.record_end(End::Aborted(cause));
        self.wait(cause, read_only);
    }

    #[cold]
    fn wait(&mut self, cause: AbortCause, read_only: bool) {
        self.counters.count_abort(cause);
        if cause == AbortCause::FootprintMiss {
            // The next plan has what this one missed, and waits for it.
            self.backoff.skip();
            return self.access.phases().enter(Phase::Execute);
        }
        self.access.phases().enter(Phase::Wait);
        // What only reads without a lock is in no other attempt's way: the longer it waited, the
        // fewer attempts it would have.
        let is_harmless =
            read_only && matches!(cause, AbortCause::ReadValidation | AbortCause::Phantom);
        // The first waits are shorter than that for another core slot, but other workers want this
        // one.
        let leaves_core_slot =
            self.backoff.attempts() >= ATTEMPTS_IN_CORE_SLOT || cause == AbortCause::GaveWay;
        if leaves_core_slot && let Some(core_slot) = &mut self.core_slot {
            core_slot.give_way();
        }
        match is_harmless && self.factors.regulation == Regulation::Backoff {
            true => self.backoff.wait_shortly(),
            false => self.back_off(self.frame.deadline_ns),
        }
        if leaves_core_slot {
            let left = time::now_ns();
            self.enter_core_slot();
            self.outside_ns += time::now_ns() - left;
        }
        self.access.phases().enter(Phase::Execute);
    }

    /// The transaction is over: it has committed, was rejected or given up, its time has passed, or
    /// its client has abandoned it. Whatever its attempts left for later attempts ends here, under
    /// all protocols, and the next transaction of this worker starts afresh. No attempt is open.
    #[inline]
    pub fn end_transaction(&mut self) {
        self.backoff.reset();
        self.access.end_call();
        self.open.end();
    }

    /// Counts a failed attempt and waits, not past `deadline_ns`; for callers that repeat a
    /// transaction of several statements.
    pub fn back_off(&mut self, deadline_ns: Option<u64>) {
        match self.factors.regulation {
            Regulation::Backoff => self.backoff.wait(deadline_ns),
            Regulation::None => self.backoff.skip(),
        }
    }

    /// The memory of the last run, with the rows that it emitted.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// What is counted of batches, for a scheduler that makes some; times are in cycles.
    #[inline]
    pub(crate) fn batches(&mut self) -> &mut BatchStatistics {
        &mut self.batches
    }
}

/// An attempt of a call has run to its end and is about to commit: what is reported of the call is
/// written.
#[inline]
pub(crate) fn set_call(
    access: &mut impl Recorded,
    program: &Program,
    arguments: &Arguments,
    frame: &Frame,
    answer: Option<&Arc<dyn AnswerWriter>>,
) {
    if let Some(reporter) = access.reporter() {
        reporter.set_call(program, arguments, frame, answer);
    }
}

/// The attempt has ended.
#[inline]
pub(crate) fn forget_call(access: &mut impl Recorded) {
    if let Some(reporter) = access.reporter() {
        reporter.forget_call();
    }
}

/// Records that an attempt runs its program again: to a history these are two attempts, of which
/// the first has no effect.
#[cold]
fn run_again(recorder: &mut Recorder, procedure: &str, invoked: Moment, stop: &Stop) {
    let cause = match stop {
        Stop::Abort(cause) => *cause,
        Stop::Raise(_) => AbortCause::ReadValidation,
    };
    recorder.end(|log| log.abort(cause.number() as u32));
    recorder.begin(procedure, invoked);
}
