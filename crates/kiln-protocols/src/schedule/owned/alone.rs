//! Alone: while a worker keeps all others out, to divide the locks anew or to run a call that
//! starves.

use kiln_platform::schedule::point;
use kiln_platform::time;

use super::context::Context;
use super::roles::Division;
use super::{Owned, PartitionTable};
use crate::canary::Canary;
use crate::schedule::in_flight::{Idle, Solitude};
use crate::serve::Calls;

impl<T: PartitionTable> Owned<T> {
    /// Divides the locks anew, if it is time for that: in several steps, as those who have locks
    /// need partitions that are looked after.
    pub(super) fn divide(&mut self, role: u32) {
        let shared = &self.shared;
        let Some((division, limit)) = self.division else {
            let Some(division) = shared.other_division() else {
                return;
            };
            if shared.claim_alone(self.number) {
                self.division = Some((division, time::now_ns() + Solitude::WAIT_NS));
            }
            return;
        };
        let is_in_use = self.running > 0 || !shared.is_alone(self.number);
        if !is_in_use || matches!(division, Division::Slots) && Canary::DividedInUse.sings() {
            point("owned.divided");
            shared.divide(division);
            self.give_up_division();
        } else if role != 1 || time::now_ns() >= limit {
            // A client of a block is thinking; there is another count.
            self.give_up_division();
        }
    }

    /// Lets the others in again.
    pub(super) fn give_up_division(&mut self) {
        if self.division.take().is_some() {
            self.shared.end_alone();
        }
    }

    /// Goes on with what it has in flight, and with what partitions have to do, until `is_done`.
    fn go_on(&mut self, calls: &mut dyn Calls, mut is_done: impl FnMut(&mut Owned<T>) -> bool) {
        let mut idle = Idle::default();
        while !is_done(self) && !self.direct.is_broken() {
            let mut has_done = self.run_granted(calls);
            has_done |= self.reap();
            has_done |= self.control(None);
            match has_done {
                true => idle = Idle::default(),
                false => {
                    self.withdraw(false);
                    idle.pause();
                }
            }
        }
    }

    /// Runs a transaction that keeps failing while all others are kept out. Whether that was to be
    /// had.
    #[cold]
    pub(super) fn run_alone(&mut self, context: Context<T>, calls: &mut dyn Calls) -> bool {
        if !self.shared.claim_alone(self.number) {
            self.home.ready.push(context);
            return false;
        }
        let limit = time::now_ns() + Solitude::WAIT_NS;
        let mut is_alone = false;
        self.go_on(calls, |worker| {
            is_alone = worker.running == 0 && worker.shared.is_alone(worker.number);
            is_alone || time::now_ns() >= limit
        });
        self.shared.solitude.asked(is_alone);
        if !is_alone {
            // A client of a block is thinking; the call goes on among the others.
            self.shared.end_alone();
            self.home.ready.push(context);
            return false;
        }
        // Whatever else failed waits until this one has ended.
        let others = std::mem::take(&mut self.home.ready);
        let parked = std::mem::take(&mut self.home.parked);
        let mut next = Some(context);
        while let Some(context) = next.take() {
            self.start(context, calls);
            self.go_on(calls, |worker| worker.running == 0);
            if self.direct.is_broken() {
                break;
            }
            next = self.home.ready.pop().or_else(|| self.home.parked.pop());
        }
        self.home.ready.extend(others);
        self.home.parked.extend(parked);
        self.shared.end_alone();
        true
    }
}
