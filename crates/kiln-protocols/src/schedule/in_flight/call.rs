//! A call in flight: what a scheduler keeps of a call that is planned now and run later, and the
//! attempt that runs it with locks that its scheduler has taken for it.

use std::mem::offset_of;

use kiln_history::Moment;
use kiln_platform::plain;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_platform::work::{Work, charge};
use kiln_procedure::executor::Ran;
use kiln_procedure::{Access, Executor, Frame, Interrupt, Program, Stop};

use super::parking::{self, Blocks, Parked};
use crate::Outcome;
use crate::direct::{Direct, End, forget_call, set_call};
use crate::phases::{Phase, Phased, Phases};
use crate::serve::{Call, Calls, Next};
use crate::shared::planning::{
    Claim, Demand, Findings, Footprint, PlannedAhead, Scout, Whereabouts,
};
use crate::shared::recorder::Recorded;

/// A call in flight. A worker has some of them and uses them again and again; in the steady state
/// nothing is allocated. Its plans consist of such claims.
///
/// What most attempts use comes first, so that little of it is moved between the caches of the core
/// that plans and the one that runs it.
#[repr(C)]
pub(crate) struct InFlight<C = Claim> {
    pub call: Call,
    /// The call's program, which the call keeps.
    program: *const Program,
    /// What its plan has found.
    findings: Findings,
    invoked: Option<Moment>,
    /// Attempts that have failed.
    pub failures: u32,
    /// Whether its caller was told how it ended.
    pub has_ended: bool,
    /// There when it has ended, until its caller is told.
    pub outcome: Option<Outcome>,
    pub frame: Frame,
    /// What failed attempts missed.
    missed: Vec<C>,
    parked: Parked,
}

// SAFETY: the call keeps its program until it has ended, whichever worker runs it; records are
// followed only by an attempt that holds them, inside of an epoch.
unsafe impl<C: Send> Send for InFlight<C> {}

impl<C> Default for InFlight<C> {
    fn default() -> InFlight<C> {
        InFlight {
            call: Call::default(),
            program: std::ptr::null(),
            findings: Findings::default(),
            invoked: None,
            failures: 0,
            has_ended: false,
            outcome: None,
            frame: Frame::new(),
            missed: Vec::new(),
            parked: Parked::default(),
        }
    }
}

impl<C> InFlight<C> {
    /// Lets go of the program of the last call, which has ended.
    pub fn forget_program(&mut self) {
        self.program = std::ptr::null();
        self.call.program = None;
    }

    /// Draws a call, if there is one.
    pub fn draw<A: Access + Phased + Recorded>(
        &mut self,
        calls: &mut dyn Calls,
        direct: &mut Direct<A>,
    ) -> Next {
        self.call.is_history_full = direct.is_history_full();
        (self.call.interrupt, self.call.answer) = (None, None);
        let next = calls.next(&mut self.call);
        if next == Next::Call {
            let Some(program) = &self.call.program else {
                unreachable!("a call that was drawn has a program")
            };
            self.program = Arc::as_ptr(program);
            self.missed.clear();
            self.failures = 0;
            self.outcome = None;
            self.has_ended = false;
            self.invoked = direct.access().recorder().now();
            plain::writes(self.used());
            self.call.arguments.note_writes();
        }
        next
    }

    /// The memory of it that most attempts use, apart from what it refers to.
    fn used(&self) -> *const [u8] {
        let start = std::ptr::from_ref(self).cast::<u8>();
        std::ptr::slice_from_raw_parts(start, InFlight::<C>::USED_BYTES)
    }

    /// The program of the call that was drawn.
    fn program<'a>(&self) -> &'a Program {
        // SAFETY: set when the call was drawn, and kept until it has ended.
        unsafe { &*self.program }
    }

    /// Whether its time is over, or it was asked to end.
    pub fn is_expired(&self) -> bool {
        let deadline = self.call.deadline_ns;
        self.is_canceled() || deadline.is_some_and(|deadline| time::now_ns() >= deadline)
    }

    /// Ends it if its time is over, before it has left anything in the database; whether it is.
    pub fn expires(&mut self) -> bool {
        let is_expired = self.is_expired();
        if is_expired {
            self.outcome = Some(Outcome::Expired);
        }
        is_expired
    }

    /// Whether it was asked to end.
    pub fn is_canceled(&self) -> bool {
        let interrupt = self.call.interrupt.as_ref();
        interrupt.is_some_and(Interrupt::is_canceled)
    }

    /// As [`Parked::look`], before its next attempt is planned.
    #[inline]
    pub fn look(&mut self, blocks: &Blocks) {
        self.parked.look(blocks);
    }

    /// As [`Parked::park`], after its attempt has failed.
    pub fn park(&mut self, blocks: &Blocks) -> bool {
        self.parked.park(self.failures, blocks)
    }

    /// Its attempt has failed, as its scheduler gave up the wait for what a block has: enough
    /// failures to be parked.
    pub fn give_up(&mut self) {
        self.failures = self.failures.max(parking::FAILURES - 1) + 1;
    }

    /// As [`Parked::pause`], which is a failure.
    pub fn pause(&mut self) {
        self.failures += 1;
        self.parked.pause(self.failures);
    }

    /// Hands the call back, which is parked: there is nothing of it in the database.
    pub fn hand_back(&mut self, calls: &mut dyn Calls) {
        self.has_ended = true;
        calls.take_back(&mut self.call);
    }

    /// Whether there is a reason to try it again, or to give it up, after it was parked.
    pub fn may_go_on(&self, blocks: &Blocks, now_ns: u64) -> bool {
        let deadline = self.call.deadline_ns;
        self.parked.is_over(blocks, now_ns) || deadline.is_some_and(|deadline| now_ns >= deadline)
    }

    /// Finds its footprint.
    pub fn plan<A>(&mut self, direct: &mut Direct<A>, demand: &mut A::Demand)
    where
        A: PlannedAhead<Demand: Demand<Claim = C>>,
    {
        let access = direct.access();
        access.phases().start();
        access.phases().enter(Phase::Plan);
        access.plan_ahead(
            self.program(),
            &self.call.arguments,
            &self.missed,
            demand,
            &mut self.findings,
        );
        self.findings.note_writes();
        demand.note_writes();
        access.phases().stop();
    }

    /// One attempt, which has the locks of `demand`, each held as `held`, and lets them go. Then
    /// there is an outcome, or it is to be planned again. One that waited past its deadline does
    /// nothing but let go.
    pub fn attempt<A>(&mut self, direct: &mut Direct<A>, demand: &A::Demand, held: A::Held)
    where
        A: PlannedAhead<Demand: Demand<Claim = C>>,
    {
        if !self.begin(direct, demand, held) {
            return;
        }
        self.frame
            .begin(self.call.deadline_ns, self.call.interrupt.as_ref());
        let program = self.program();
        let access = direct.access();
        let ran = Executor::run(program, access, &mut self.frame, &self.call.arguments);
        self.frame.note_run(program);
        self.conclude(direct, ran, None);
    }

    /// As [`InFlight::attempt`], in a frame that is used for one call after the other. The call's
    /// own has the result.
    pub fn attempt_in<A>(
        &mut self,
        frame: &mut Frame,
        direct: &mut Direct<A>,
        demand: &A::Demand,
        held: A::Held,
    ) where
        A: PlannedAhead<Demand: Demand<Claim = C>>,
    {
        if !self.begin(direct, demand, held) {
            self.frame.silence();
            return;
        }
        frame.begin(self.call.deadline_ns, self.call.interrupt.as_ref());
        let program = self.program();
        let access = direct.access();
        let ran = Executor::run(program, access, frame, &self.call.arguments);
        self.conclude(direct, ran, Some(frame));
        self.frame.take_result(frame, program);
    }

    /// What its failed attempts have missed.
    #[inline]
    pub fn missed(&self) -> &[C] {
        &self.missed
    }

    /// Asks for the memory in which the next call will be kept with its plan.
    #[inline]
    pub fn fetch_room(&self) {
        self.call.arguments.fetch_room();
        self.findings.fetch_room();
    }

    /// Bytes of it that most attempts use: all but what the results of larger ones are kept in.
    pub const USED_BYTES: usize = offset_of!(InFlight<C>, frame) + Frame::RESULT_BYTES;

    /// Asks for the memory that a run needs of it.
    #[inline]
    pub fn fetch(&self) {
        self.call.arguments.fetch();
        self.findings.fetch();
    }

    /// Asks for what the run will touch of the records that the plan has found.
    #[inline]
    pub fn fetch_records(&self) {
        self.findings.fetch_records();
    }

    /// As [`InFlight::attempt`], as far as it can be done where its first part is; whether it has
    /// ended.
    pub fn set_out<A>(&mut self, direct: &mut Direct<A>, demand: &A::Demand, held: A::Held) -> Ran
    where
        A: PlannedAhead<Demand: Demand<Claim = C>>,
    {
        if !self.begin(direct, demand, held) {
            return Ran::Ended;
        }
        self.frame
            .begin(self.call.deadline_ns, self.call.interrupt.as_ref());
        let program = self.program();
        let access = direct.access();
        let ran = Executor::run_part(program, access, &mut self.frame, &self.call.arguments);
        self.frame.note_run(program);
        self.conclude_part(direct, ran)
    }

    /// Goes on with what [`InFlight::set_out`] has begun; whether it has ended.
    pub fn go_on<A>(&mut self, direct: &mut Direct<A>) -> Ran
    where
        A: PlannedAhead<Demand: Demand<Claim = C>>,
    {
        let program = self.program();
        let access = direct.access();
        access.phases().start();
        plain::reads(self.used());
        self.frame.note_reads(program);
        let ran = Executor::resume(program, access, &mut self.frame);
        self.frame.note_run(program);
        self.conclude_part(direct, ran)
    }

    fn conclude_part<A>(&mut self, direct: &mut Direct<A>, ran: Result<Ran, Stop>) -> Ran
    where
        A: PlannedAhead<Demand: Demand<Claim = C>>,
    {
        if let Ok(Ran::Away) = ran {
            direct.access().phases().stop();
            return Ran::Away;
        }
        self.conclude(direct, ran.map(|_| ()), None);
        Ran::Ended
    }

    /// Begins an attempt, which has its locks; false when it did nothing but let go.
    fn begin<A>(&mut self, direct: &mut Direct<A>, demand: &A::Demand, held: A::Held) -> bool
    where
        A: PlannedAhead<Demand: Demand<Claim = C>>,
    {
        charge(Work::Begin);
        plain::reads(self.used());
        self.call.arguments.note_reads();
        self.findings.note_reads();
        demand.note_reads();
        let program = self.program();
        let access = direct.access();
        if self.is_expired() {
            access.begin();
            access.hold_ahead(demand, held);
            access.roll_back();
            self.outcome = Some(Outcome::Expired);
            return false;
        }
        access.phases().start();
        access.begin_call(self.call.deadline_ns);
        match program.analysis.is_read_only() {
            true => access.begin_read_only(),
            false => access.begin(),
        }
        if let Some(invoked) = self.invoked.or_else(|| access.recorder().now()) {
            access.recorder().begin(&program.name, invoked);
        }
        access.follow(&mut self.findings);
        access.hold_ahead(demand, held);
        true
    }

    /// Commits or undoes an attempt that has run, in `frame` or in the call's own.
    fn conclude<A>(&mut self, direct: &mut Direct<A>, ran: Result<(), Stop>, frame: Option<&Frame>)
    where
        A: PlannedAhead<Demand: Demand<Claim = C>>,
    {
        let access = direct.access();
        if ran.is_ok() {
            let Call {
                arguments, answer, ..
            } = &self.call;
            let (program, frame) = (self.program(), frame.unwrap_or(&self.frame));
            set_call(access, program, arguments, frame, answer.as_ref());
        }
        let ran = ran.and_then(|()| {
            charge(Work::Commit);
            access.commit()
        });
        forget_call(access);
        let ended = match ran {
            Ok(()) => Ok(Outcome::Committed),
            Err(Stop::Abort(cause)) => {
                charge(Work::Abort);
                Err(cause)
            }
            Err(Stop::Raise(error)) => {
                charge(Work::Reject);
                access.confirm_raise(error).map(Outcome::Rejected)
            }
        };
        if !matches!(ended, Ok(Outcome::Committed)) {
            access.phases().enter(Phase::Abort);
            access.take_missed(&mut self.missed);
            access.roll_back();
        }
        access.phases().stop();
        match ended {
            Ok(Outcome::Committed) => {
                direct.record_end(End::Committed);
                self.outcome = Some(Outcome::Committed);
            }
            Ok(outcome) => {
                direct.record_end(End::Rejected);
                self.outcome = match self.is_expired() {
                    true => Some(Outcome::Expired),
                    false => Some(outcome),
                };
            }
            Err(cause) => {
                direct.record_end(End::Aborted(cause));
                direct.counters().count_abort(cause);
                self.failures += 1;
            }
        }
        plain::writes(self.used());
    }

    /// Tells the caller how it has ended, if it has. `direct` is of the worker that drew it: a
    /// worker's figures are those of its own calls.
    pub fn tell<A: Access + Phased + Recorded>(
        &mut self,
        direct: &mut Direct<A>,
        calls: &mut dyn Calls,
    ) {
        plain::reads(self.used());
        if let Some(outcome) = self.outcome.take() {
            self.has_ended = true;
            direct.counters().count(&outcome);
            calls.ended(&self.call, outcome, &self.frame);
        }
    }
}

impl InFlight {
    /// Plans a call whose plan travels, as far as its records are at `whereabouts`: from its
    /// beginning, with the epoch that the worker holds which drew it, or, without one, from where
    /// it has left off. Says where it goes on, or that it is made.
    pub fn plan_part(
        &mut self,
        phases: &mut Phases,
        scout: &mut Scout,
        whereabouts: impl Whereabouts,
        begins: Option<u64>,
        footprint: &mut Footprint,
    ) -> Option<u16> {
        phases.start();
        phases.enter(Phase::Plan);
        let (program, missed) = (self.program(), &self.missed);
        let plan = (footprint, &mut self.findings);
        let next = match begins {
            Some(epoch) => {
                let call = (program, &self.call.arguments);
                scout.set_out(call, whereabouts, epoch, missed, plan)
            }
            None => scout.go_on(program, whereabouts, missed, plan),
        };
        phases.stop();
        next
    }
}
