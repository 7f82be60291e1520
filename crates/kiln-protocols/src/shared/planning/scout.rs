//! Makes reconnaissances: in one go, or in parts, each where its records are looked at.

use kiln_procedure::executor::Ran;
use kiln_procedure::{Arguments, Executor, Frame, Program, Stop};

use super::findings::Findings;
use super::footprint::{Claim, Footprint};
use super::reconnaissance::{Planned, Reconnaissance, Remembered, Whereabouts};

/// A reconnaissance that takes longer than this many nanoseconds ends where it is: what it read may
/// keep it in a loop that the procedure itself would leave.
const RECONNAISSANCE_MAX_NS: u64 = 50_000_000;

/// What makes reconnaissances, in memory that is used again.
pub struct Scout {
    frame: Frame,
    remembered: Remembered,
    /// What its plans are to say.
    planned: Planned,
}

impl Scout {
    /// One whose plans are such.
    pub fn new(planned: Planned) -> Scout {
        Scout {
            frame: Frame::new(),
            remembered: Remembered::default(),
            planned,
        }
    }

    /// Collects what a reconnaissance meets.
    #[inline]
    fn meet(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        footprint: &mut Footprint,
        findings: &mut Findings,
    ) {
        self.frame.begin_within(RECONNAISSANCE_MAX_NS);
        let mut access =
            Reconnaissance::new(footprint, findings, &mut self.remembered, self.planned);
        // However it ends: what it met is the plan, and the worker that runs the call guards it.
        let _ = Executor::run(
            program.reconnaissance(),
            &mut access,
            &mut self.frame,
            arguments,
        );
    }

    /// Plans a call: what its reconnaissance meets in the epoch `epoch`, and `missed`.
    #[inline]
    pub fn plan(
        &mut self,
        (program, arguments): (&Program, &Arguments),
        epoch: u64,
        missed: &[Claim],
        footprint: &mut Footprint,
        findings: &mut Findings,
    ) {
        footprint.clear();
        findings.start(epoch);
        self.meet(program, arguments, footprint, findings);
        self.add(missed, footprint, findings);
    }

    /// Adds claims, and makes of all what locks are taken by.
    #[inline]
    pub fn add(&self, missed: &[Claim], footprint: &mut Footprint, findings: &mut Findings) {
        for claim in missed {
            match self.planned.is_in_words {
                true => footprint.add_word(claim.record, claim.exclusive, claim.finding),
                false => footprint.add(*claim),
            };
        }
        match self.planned.is_in_any_order {
            true => footprint.unite(findings),
            false => footprint.order(findings),
        }
    }

    /// As [`Scout::plan`], as far as the call's records are at `whereabouts`. Says where the plan
    /// is gone on with, by [`Scout::go_on`], or that it is made.
    pub fn set_out(
        &mut self,
        (program, arguments): (&Program, &Arguments),
        whereabouts: impl Whereabouts,
        epoch: u64,
        missed: &[Claim],
        (footprint, findings): (&mut Footprint, &mut Findings),
    ) -> Option<u16> {
        footprint.clear();
        findings.start(epoch);
        self.remembered.clear();
        self.frame.begin_within(RECONNAISSANCE_MAX_NS);
        let plan = (footprint, findings);
        let program = program.reconnaissance();
        let next = self.meet_part(whereabouts, missed, plan, false, |access, frame| {
            Executor::run_part(program, access, frame, arguments)
        });
        self.frame.note_run(program);
        next
    }

    /// Goes on with what [`Scout::set_out`] has begun, with the same memory.
    pub fn go_on(
        &mut self,
        program: &Program,
        whereabouts: impl Whereabouts,
        missed: &[Claim],
        plan: (&mut Footprint, &mut Findings),
    ) -> Option<u16> {
        let program = program.reconnaissance();
        self.frame.note_reads(program);
        plan.0.note_reads();
        plan.1.note_reads();
        let next = self.meet_part(whereabouts, missed, plan, true, |access, frame| {
            Executor::resume(program, access, frame)
        });
        self.frame.note_run(program);
        next
    }

    /// Collects what a part of a reconnaissance meets, which `run` runs.
    #[inline(always)]
    fn meet_part<W: Whereabouts>(
        &mut self,
        whereabouts: W,
        missed: &[Claim],
        (footprint, findings): (&mut Footprint, &mut Findings),
        has_arrived: bool,
        run: impl FnOnce(&mut Reconnaissance<'_, W>, &mut Frame) -> Result<Ran, Stop>,
    ) -> Option<u16> {
        let parts = (&mut *footprint, &mut *findings, &mut self.remembered);
        let mut access = Reconnaissance::at(whereabouts, parts, self.planned, has_arrived);
        let ran = run(&mut access, &mut self.frame);
        let next = access.leaving_for();
        // However else it ends: what it met is the plan, as in `meet`.
        match (ran, next) {
            (Ok(Ran::Away), Some(next)) => {
                footprint.note_writes();
                findings.note_writes();
                Some(next)
            }
            _ => {
                self.add(missed, footprint, findings);
                None
            }
        }
    }
}
