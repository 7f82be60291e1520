//! A call in flight: what a scheduler keeps of a call that is planned now and run later, and the attempt
//! that runs it with locks that somebody has taken for it.

use kiln_history::Moment;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_platform::work::{Work, charge};
use kiln_procedure::{Access, Arguments, Executor, Frame, Program, Stop};

use crate::Outcome;
use crate::access::two_phase_locking::TwoPhaseLocking;
use crate::phases::{Phase, Phased};
use crate::schedule::direct::{Direct, End};
use crate::serve::{Call, Calls, Next};
use crate::shared::locks::Locks;
use crate::shared::planning::{Claim, Footprint};
use crate::shared::recorder::Recorded;

/// A call in flight. A worker has some of them and uses them again and again; in the steady state nothing
/// is allocated.
pub(crate) struct InFlight {
    pub call: Call,
    /// The call's program: kept by the call, or by the caller who waits for its end.
    program: *const Program,
    pub frame: Frame,
    pub footprint: Footprint,
    /// What failed attempts missed.
    missed: Vec<Claim>,
    /// Attempts that have failed.
    pub failures: u32,
    invoked: Option<Moment>,
    /// There when it has ended.
    pub outcome: Option<Outcome>,
    /// Whether its caller knows how it ended.
    pub has_ended: bool,
}

// SAFETY: the program is kept until the call has ended, whoever runs it; records are followed only by an
// attempt that holds them, inside of an epoch.
unsafe impl Send for InFlight {}

impl Default for InFlight {
    fn default() -> InFlight {
        InFlight {
            call: Call::default(),
            program: std::ptr::null(),
            frame: Frame::new(),
            footprint: Footprint::default(),
            missed: Vec::new(),
            failures: 0,
            invoked: None,
            outcome: None,
            has_ended: false,
        }
    }
}

impl InFlight {
    /// The call was drawn. Its program is `single`, which the caller keeps, or the call's own.
    pub fn drawn<L: Locks>(
        &mut self,
        single: *const Program,
        direct: &mut Direct<TwoPhaseLocking<L>>,
    ) {
        self.program = match &self.call.program {
            Some(program) if single.is_null() => Arc::as_ptr(program),
            _ => single,
        };
        self.missed.clear();
        self.failures = 0;
        self.outcome = None;
        self.has_ended = false;
        self.invoked = direct.access().recorder().now();
    }

    /// The program of the call that was drawn.
    pub fn program<'a>(&self) -> &'a Program {
        // SAFETY: set when the call was drawn, and kept until it has ended.
        unsafe { &*self.program }
    }

    /// Whether its time is over; then that is its outcome.
    pub fn is_expired<L: Locks>(&mut self, direct: &mut Direct<TwoPhaseLocking<L>>) -> bool {
        let deadline = self.call.deadline_ns;
        let is_over = deadline.is_some_and(|deadline| time::now_ns() >= deadline);
        if is_over {
            direct.counted().expired += 1;
            self.outcome = Some(Outcome::Expired);
        }
        is_over
    }

    /// Finds its footprint.
    pub fn plan<L: Locks>(&mut self, direct: &mut Direct<TwoPhaseLocking<L>>) {
        let program = self.program();
        let access = direct.access();
        access.phases().start();
        access.phases().enter(Phase::Plan);
        let arguments = &self.call.arguments;
        access.plan_ahead(program, arguments, &self.missed, &mut self.footprint);
        access.phases().stop();
    }

    /// One attempt, which has the locks of its footprint. There is an outcome, or it is planned again.
    pub fn attempt<L: Locks>(&mut self, direct: &mut Direct<TwoPhaseLocking<L>>, held: L::Held) {
        charge(Work::Begin);
        let program = self.program();
        let deadline_ns = self.call.deadline_ns;
        self.frame.deadline_ns = deadline_ns;
        self.frame.memory.heap.transaction_began_us = None;
        let access = direct.access();
        access.phases().start();
        access.begin_call(deadline_ns);
        match program.analysis.is_read_only() {
            true => access.begin_read_only(),
            false => access.begin(),
        }
        if let Some(invoked) = self.invoked.or_else(|| access.recorder().now()) {
            access.recorder().begin(&program.name, invoked);
        }
        access.hold_ahead(self.footprint.claims(), held);
        let ran = Executor::run(program, access, &mut self.frame, &self.call.arguments);
        let ran = ran.and_then(|()| {
            charge(Work::Commit);
            access.commit_or_raise()
        });
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
                direct.counted().committed += 1;
                self.outcome = Some(Outcome::Committed);
            }
            Ok(outcome) => {
                direct.record_end(End::Rejected);
                if !self.is_expired(direct) {
                    direct.counted().rejected += 1;
                    self.outcome = Some(outcome);
                }
            }
            Err(cause) => {
                direct.record_end(End::Aborted(cause));
                direct.counted().count_abort(cause);
                self.failures += 1;
            }
        }
    }
}

/// One call, whose caller waits for it.
pub(crate) struct Single<'a> {
    pub arguments: &'a Arguments,
    pub deadline_ns: Option<u64>,
    pub is_drawn: bool,
    pub outcome: Option<Outcome>,
}

impl Calls for Single<'_> {
    fn next(&mut self, call: &mut Call) -> Next {
        if std::mem::replace(&mut self.is_drawn, true) {
            return Next::Pause;
        }
        call.arguments.copy_from(self.arguments);
        (call.deadline_ns, call.ticket) = (self.deadline_ns, 0);
        Next::Call
    }

    fn is_over(&mut self) -> bool {
        self.is_drawn
    }

    fn ended(&mut self, _: u64, outcome: Outcome, _: &Frame) {
        self.outcome = Some(outcome);
    }
}
