//! Runs that travel from thread to thread.
//!
//! Where an access says of an operation that it belongs to another thread ([`Halt::Leaves`]) the
//! executor leaves off before it. What is left is in the frame: the registers, the place in the
//! code, and of each loop inside of which the run was, where it has got to. [`Executor::resume`]
//! goes on there, on whatever thread; the operation is begun anew, as it had done nothing yet.
//!
//! Loops that are jumps keep their state in registers. Scans and loops over buffers are functions
//! here that run their bodies: each puts itself on the frame's list of *levels* as it is left, the
//! innermost one first.

use kiln_storage::table::Entry;

use super::{Executor, Leave, Stopped};
use crate::access::{Access, Halt, Stop, Visit};
use crate::arguments::Arguments;
use crate::code::{Label, Op, Scan};
use crate::frame::Frame;
use crate::journey::{Level, ScanLevel};
use crate::program::Program;

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// The procedure is over.
    Ended,
    /// It goes on elsewhere, with [`Executor::resume`].
    Away,
}

impl<'a, A: Access> Executor<'a, A> {
    /// As [`Executor::run`], for attempts that travel.
    ///
    /// # Errors
    /// Those of [`Executor::run`].
    pub fn run_part(
        program: &'a Program,
        access: &'a mut A,
        frame: &'a mut Frame,
        arguments: &Arguments,
    ) -> Result<Ran, Stop> {
        frame.prepare(program, arguments);
        let mut executor = Executor::new(program, access, frame);
        let leave = executor.run_from(0);
        executor.ran(leave)
    }

    /// Goes on with a run of `program` in `frame` that has returned [`Ran::Away`].
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub fn resume(
        program: &'a Program,
        access: &'a mut A,
        frame: &'a mut Frame,
    ) -> Result<Ran, Stop> {
        let mut executor = Executor::new(program, access, frame);
        let leave = executor.go_on();
        executor.ran(leave)
    }

    fn ran(&mut self, leave: Leave) -> Result<Ran, Stop> {
        match leave {
            Leave::Stop => Err(self.stopped()),
            Leave::Away => Ok(Ran::Away),
            _ => Ok(Ran::Ended),
        }
    }

    /// The op at `at` was not done: the attempt is over, or the op is begun anew elsewhere.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_before(&mut self, at: Label) -> Leave {
        if !self.leaves() {
            return Leave::Stop;
        }
        self.frame.journey.at = at;
        Leave::Away
    }

    /// Whether an operation was not done as the attempt travels.
    #[cold]
    pub(super) fn leaves(&mut self) -> bool {
        let leaves = matches!(self.halt, Some(Halt::Leaves));
        if leaves {
            self.halt = None;
        }
        leaves
    }

    /// Notes that the run was left inside of a loop.
    #[cold]
    #[inline(never)]
    pub(super) fn away_in(&mut self, level: Level) {
        self.frame.journey.levels.push(level);
    }

    /// Goes on from where the run has left off: inside of the outermost loop that is noted, then
    /// behind it.
    fn go_on(&mut self) -> Leave {
        let Some(level) = self.frame.journey.levels.pop() else {
            let at = self.frame.journey.at;
            return self.run_from(at);
        };
        let body = match &level {
            Level::Scan(scan) => scan.body,
            Level::Rows { body, .. }
            | Level::Matching { body, .. }
            | Level::Foreseen { body, .. } => *body,
            Level::Region(region) => region.body,
        };
        let code = self.code;
        let (leave, behind) = match (&self.ops[body as usize - 1], level) {
            (Op::Scan { scan, to }, Level::Scan(level)) => {
                let scan = &code.scans[*scan as usize];
                let left = self.scan_from(scan, body, level);
                (left.unwrap_or(Leave::Stop), *to)
            }
            (Op::Protect { protect, to }, Level::Region(region)) => {
                let protect = &code.protects[*protect as usize];
                (self.protect_from(protect, region, Self::go_on), *to)
            }
            (
                Op::Prefetch { prefetch },
                Level::Foreseen {
                    iteration, lookup, ..
                },
            ) => {
                let prefetch = &code.prefetches[*prefetch as usize];
                (self.meet_from(prefetch, body, iteration, lookup), body)
            }
            (Op::ForBuffer { walk, to }, level) => {
                let walk = &code.walks[*walk as usize];
                let inside = self.go_on();
                let leave = match (self.after_iteration(inside), level) {
                    (Some(Leave::Away), level) => {
                        self.away_in(level);
                        Leave::Away
                    }
                    (Some(leave), _) => leave,
                    (None, Level::Rows { position, .. }) => self.for_rows(walk, body, position),
                    (None, Level::Matching { matching, .. }) => {
                        let values = matching.values();
                        self.for_matches(walk, body, matching.position, values)
                    }
                    (None, Level::Scan(_) | Level::Foreseen { .. } | Level::Region(_)) => {
                        unreachable!("the op is a loop over rows")
                    }
                };
                (leave, *to)
            }
            _ => unreachable!("a loop is noted with the body behind its op"),
        };
        match leave {
            Leave::Iteration => self.run_from(behind),
            Leave::Unwind { bodies: 0, to } => self.run_from(to),
            leave => leave,
        }
    }

    /// Runs `body` for each record of a range that is left, as
    /// [`Executor::scan`] does where attempts do not travel.
    pub(super) fn scan_from(
        &mut self,
        scan: &'a Scan,
        body: Label,
        mut level: ScanLevel,
    ) -> Result<Leave, Stopped> {
        let table = &*scan.table;
        let place = (table, scan.index);
        loop {
            while level.position < level.batch.count {
                let leave = match level.is_in_iteration {
                    true => {
                        let inside = self.go_on();
                        self.after_iteration(inside)
                    }
                    false => {
                        // SAFETY: the payload is of an index of a living table.
                        let entry =
                            unsafe { Entry::from_payload(level.batch.payloads[level.position]) };
                        self.access.scans(scan.op);
                        let met = self.meet(table, scan.index, entry, scan.intent, &scan.observed);
                        let visit = match met {
                            Ok(visit) => visit,
                            Err(stopped) => {
                                if self.leave_before(body - 1) == Leave::Away {
                                    self.away_in(Level::Scan(level));
                                    return Ok(Leave::Away);
                                }
                                self.end_range(scan, &level, None);
                                return Err(stopped);
                            }
                        };
                        self.access.has_done();
                        if let Some(range) = level.range {
                            self.record_met(range, place, entry, visit);
                        }
                        match visit {
                            Visit::Present(handle) => {
                                self.set_handle(scan.record, handle);
                                self.iteration(body)
                            }
                            _ => None,
                        }
                    }
                };
                match leave {
                    None => {
                        level.is_in_iteration = false;
                        level.position += 1;
                    }
                    Some(Leave::Away) => {
                        level.is_in_iteration = true;
                        self.away_in(Level::Scan(level));
                        return Ok(Leave::Away);
                    }
                    Some(leave) => {
                        self.end_range(scan, &level, Some(level.position));
                        return Ok(leave);
                    }
                }
            }
            if !level.cursor.next_leaf(&mut level.batch) {
                self.end_range(scan, &level, None);
                return Ok(Leave::Iteration);
            }
            level.position = 0;
            let guarded = self.access.guard(table, scan.index, level.batch.version);
            if let Err(stopped) = self.noted(guarded) {
                self.end_range(scan, &level, None);
                return Err(stopped);
            }
        }
    }

    fn end_range(&mut self, scan: &Scan, level: &ScanLevel, left_at: Option<usize>) {
        if let Some(range) = level.range {
            let key = left_at.map(|position| level.cursor.key(position));
            self.record_range_end(range, key.as_deref(), scan.reverse);
        }
    }
}
