//! What is done with demands that have come back: the runs, and the ways home.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_procedure::AbortCause;

use super::context::{Context, Returned};
use super::locks::Held;
use super::messages::{RELEASE, WITHDRAW};
use super::{Owned, PartitionTable};
use crate::schedule::in_flight::InFlight;
use crate::serve::Calls;

impl<T: PartitionTable> Owned<T> {
    /// Runs the transactions that have their locks.
    pub(super) fn run_granted(&mut self, calls: &mut dyn Calls) -> bool {
        let mut has_done = false;
        for partition in 0..self.shared.partitions() {
            while let Some(message) =
                self.shared.channels[self.number as usize].granted[partition].pop()
            {
                has_done = true;
                self.come_back(message, calls);
            }
        }
        has_done
    }

    /// An answer has come to what this worker has asked for.
    fn come_back(&mut self, message: u64, calls: &mut dyn Calls) {
        let position = (self.waiting.iter()).position(|waiting| waiting.is(message));
        let position = position.expect("an answer is about a demand that waits");
        let waiting = self.waiting.swap_remove(position);
        // SAFETY: the message is about it, and is the answer.
        let (returned, has_waited) = unsafe { waiting.come_back() };
        self.limit.granted(has_waited);
        point("owned.granted");
        match returned {
            Returned::HasRun(mut leaving) => {
                self.tell(leaving.flight_mut(), calls);
                self.leaving.push(leaving);
            }
            Returned::Through(context) => match context.demand.is_through() {
                true => self.run_one(context, calls),
                false => self.fail(context, calls),
            },
        }
    }

    /// A demand was given up: its time is over, its wait was in vain, or a statement has what it
    /// wants.
    fn fail(&mut self, mut context: Context<T>, calls: &mut dyn Calls) {
        let flight = &mut context.passenger.flight;
        let cause = match context.demand.is_withdrawn() {
            true if flight.expires() => AbortCause::LockTimeout,
            true => {
                flight.give_up();
                AbortCause::GaveWay
            }
            false => {
                flight.failures += 1;
                AbortCause::LockTimeout
            }
        };
        self.direct.counters().count_abort(cause);
        self.leave(context, calls);
    }

    /// Makes an attempt with the locks that were granted.
    pub(super) fn run_one(&mut self, mut context: Context<T>, calls: &mut dyn Calls) {
        let passenger = &mut *context.passenger;
        passenger
            .flight
            .attempt(&mut self.direct, &passenger.footprint, Held::Granted);
        self.leave(context, calls);
    }

    /// Tells how a call has ended, if it has.
    fn tell(&mut self, flight: &mut InFlight, calls: &mut dyn Calls) {
        flight.tell(&mut self.direct, calls);
        if flight.has_ended {
            self.shared.count_ended(self.number);
        }
    }

    /// Tells how a call has ended, if it has, and gives back what was granted.
    fn leave(&mut self, mut context: Context<T>, calls: &mut dyn Calls) {
        self.tell(&mut context.passenger.flight, calls);
        // Those at which a withdrawn one did not wait any more, or never arrived, have nothing of
        // it.
        let held = context.demand.held(T::SEQUENCED);
        // Relaxed: the messages synchronize. Some may still answer that they have heard of a
        // withdrawal.
        let holds = &context.demand.holds.0;
        holds.fetch_add(held.count_ones(), Ordering::Relaxed);
        let spans = context.demand.spans.as_ptr();
        let (leaving, demand) = context.leave();
        self.leaving.push(leaving);
        let message = demand as u64 | RELEASE;
        for at in (0..u64::BITS as usize).filter(|at| held >> at & 1 != 0) {
            // SAFETY: the demand stays where it is, and no thread changes its spans before all is
            // given back; the counter cannot be 0 before the last message of this loop.
            self.send(unsafe { (*spans.add(at)).partition }, message);
        }
    }

    /// Takes contexts whose locks are all given back for others, or for their next attempt.
    pub(super) fn reap(&mut self) -> bool {
        let mut has_done = false;
        let mut at = 0;
        while at < self.leaving.len() {
            if !self.leaving[at].is_over() {
                at += 1;
                continue;
            }
            has_done = true;
            let context = self.leaving.swap_remove(at).gather();
            self.running -= 1;
            if T::OWNERS_RUN && self.running == 0 {
                self.direct.access().leave_epoch();
            }
            self.shared.leave(self.number, self.running);
            self.home.keep(context, &self.shared.blocks);
        }
        has_done
    }

    /// Withdraws demands that wait although the time of their calls is over, as the lock holder may
    /// be a client that thinks; or all demands, where a wait is in vain. Their calls are parked
    /// then.
    pub(super) fn withdraw(&mut self, is_in_vain: bool) {
        for waiting in &self.waiting {
            let Some(demand) = waiting.withdrawable() else {
                continue;
            };
            if !is_in_vain && !waiting.is_expired() {
                continue;
            }
            demand.withdraw();
            let message = std::ptr::from_ref(demand) as u64 | WITHDRAW;
            for span in &demand.spans {
                self.send(span.partition, message);
            }
        }
    }
}
