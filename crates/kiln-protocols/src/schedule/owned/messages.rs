//! Messages about demands: what they say, where they go, and what a partition does with them.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::sync::lock;

use super::partition::Core;
use super::{Demand, OwnedState, PartitionTable};
use crate::canary::Canary;
use crate::shared::ring::Ring;

/// The lowest bit of a message: give the locks back.
pub(super) const RELEASE: u64 = 1;
/// The next bit: let it not wait any more, if it waits here.
pub(super) const WITHDRAW: u64 = 2;
/// The next bit: do what its transaction has to do here.
pub(super) const ACT: u64 = 4;
/// What is no part of a demand's address.
pub(super) const MARKS: u64 = RELEASE | WITHDRAW | ACT;

impl<T: PartitionTable> OwnedState<T> {
    /// A message has come to a partition, whose latch the caller has.
    #[inline]
    pub(super) fn handle(&self, core: &mut Core<T>, message: u64) {
        let demand = (message & !MARKS) as *mut Demand;
        if T::OWNERS_RUN && message & ACT != 0 {
            return core.ready.push_back(demand);
        }
        let number = core.number;
        let mut granted = |demand| self.advance(number, demand);
        // SAFETY: a message is about a demand that waits for its answer, at an address that stays;
        // the caller has the partition's latch. Of a demand that is elsewhere at this time only
        // those fields are touched that no thread changes.
        unsafe {
            Demand::note_reads(demand);
            let (requests, spans) = ((*demand).first, &(*demand).spans);
            let own = spans.iter().find(|span| span.partition == number);
            let span = *own.expect("a demand is known where it goes");
            if message & (RELEASE | WITHDRAW) == 0 {
                if (*demand).is_withdrawn() {
                    (*demand).give_up();
                    granted(demand);
                } else if core.table.acquire_span(demand, span, &mut granted) {
                    granted(demand);
                }
                return;
            }
            if message & RELEASE != 0 {
                if T::OWNERS_RUN {
                    Demand::install(demand, span);
                }
                core.table.release_span(requests, span, &mut granted);
            } else if core.table.withdraw_span(requests, span, &mut granted) {
                (*demand).give_up();
                granted(demand);
            }
            // Release pairs with the acquire of the worker that uses the demand again.
            (*demand).holds.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// A demand has all its locks of a partition, whose latch the caller has: it goes on to the
    /// next one, or back to its worker, as it does if it was given up.
    pub(super) fn advance(&self, from: u16, demand: *mut Demand) {
        if T::SEQUENCED {
            return self.answer(from, demand);
        }
        // SAFETY: the demand is the caller's until the message is sent.
        if unsafe { (*demand).is_given_up() } {
            return self.send_home(from, demand);
        }
        // SAFETY: as above.
        let (next, home) = unsafe {
            Demand::note_progress(demand);
            let demand = &mut *demand;
            demand.stage += 1;
            (demand.spans.get(demand.stage).copied(), demand.home)
        };
        let Some(span) = next else {
            if T::OWNERS_RUN {
                // SAFETY: as above.
                let first_stop = unsafe { (*demand).first_stop };
                return self.pass_on(from, first_stop, demand, ACT);
            }
            return self.send(&self.channels[home as usize].granted[from as usize], demand);
        };
        self.send(
            &self.partitions[span.partition as usize].forwarded[from as usize],
            demand,
        );
    }

    /// As [`OwnedState::advance`], of a demand that has come to all its partitions: the last one
    /// that answers sends it home.
    pub(super) fn answer(&self, from: u16, demand: *mut Demand) {
        // SAFETY: the demand waits for the answer of this partition; behind the last answer it is
        // the caller's.
        unsafe {
            // Acquire and release: the last partition knows what all have done.
            if (*demand).awaited.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            if !(*demand).is_given_up() {
                (*demand).stage = (*demand).spans.len();
                Demand::note_progress(demand);
            }
        }
        self.send_home(from, demand);
    }

    /// Gives a demand of several partitions its place in the order of all, and so in the queues of
    /// its partitions.
    ///
    /// # Safety
    /// The demand is the caller's, and was not sent anywhere.
    pub(super) unsafe fn sequence(&self, demand: *mut Demand) {
        // SAFETY: the demand is the caller's. Its spans stay as they are until the last partition
        // has answered, which it cannot before the demand has come there.
        let (spans, count) = unsafe { ((*demand).spans.as_ptr(), (*demand).spans.len()) };
        let mut order = Some(lock(&self.sequencer.0));
        for at in 0..count {
            // SAFETY: as above.
            let partition = unsafe { (*spans.add(at)).partition };
            let ring = &self.partitions[partition as usize].sequenced;
            let ring = ring.as_ref().expect("transactions are sequenced");
            self.send(ring, demand);
            if Canary::OutOfSequence.sings() {
                drop(order.take());
                point("owned.sequencing");
                order = Some(lock(&self.sequencer.0));
            }
        }
        drop(order);
    }

    /// Asks for the locks of a demand that was made in a partition, whose latch the caller has.
    /// Whether it has them all and its transaction begins there; else it is sent on.
    ///
    /// # Safety
    /// The demand is the caller's, and its passenger's plan is made.
    pub(super) unsafe fn ask(&self, core: &mut Core<T>, demand: *mut Demand) -> bool {
        let number = core.number;
        // SAFETY: the demand is the caller's; once it is sent on it is not touched any more.
        unsafe {
            let (spans, first_stop) = (&(*demand).spans, (*demand).first_stop);
            let is_single = spans.len() <= 1 && first_stop == number;
            match spans.first().copied() {
                None if is_single => return true,
                None => self.pass_on(number, first_stop, demand, ACT),
                Some(first) if first.partition != number => {
                    self.pass_on(number, first.partition, demand, 0);
                }
                Some(first) => {
                    let mut granted = |demand| self.advance(number, demand);
                    if core.table.acquire_span(demand, first, &mut granted) {
                        if is_single && !(*demand).is_given_up() {
                            (*demand).stage = 1;
                            return true;
                        }
                        granted(demand);
                    }
                }
            }
        }
        false
    }

    /// Sends a demand from a partition, whose latch the caller has, to any other one, or itself.
    pub(super) fn pass_on(&self, from: u16, to: u16, demand: *mut Demand, what: u64) {
        let ring = &self.partitions[to as usize].forwarded[from as usize];
        let has_room = ring.push(demand as u64 | what);
        assert!(has_room, "a ring has room for all demands");
    }

    /// Sends a demand back to its worker, from the partition at which it ends.
    pub(super) fn send_home(&self, from: u16, demand: *mut Demand) {
        // SAFETY: the demand is the caller's until the message is sent.
        let home = unsafe { (*demand).home };
        self.send(&self.channels[home as usize].granted[from as usize], demand);
    }

    pub(super) fn send(&self, ring: &Ring, demand: *mut Demand) {
        let has_room = ring.push(demand as u64);
        assert!(has_room, "a ring has room for all demands");
    }
}
