//! One worker's part in the core slots: it enters one, leaves it, and waits for it.

use std::mem;

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::{Arc, lock};
use kiln_platform::thread;
use kiln_platform::time;
use kiln_storage::epoch::{Epochs, Participant};

use super::{CoreSlots, NO_CORE, NO_WORKER, Slots, working};

/// How long the first in the queue sleeps before it looks for a core slot that was left free. Each
/// look interrupts the holder of the core slot, so it sleeps twice as long each time that it finds
/// none, but never longer than the others.
const LOOK_NS: u64 = 200_000;
/// How long the others sleep at least. They do for a slice for each that is before them, and
/// `SLICES_LATER` more: then they are handed the core slot before they look. A first waiter that
/// goes without being handed the core slot tells the next, and so does a holder that hands it on
/// early; but they are not told if the worker that was handed it soon leaves it free.
const SLEEP_NS: u64 = 5_000_000;
const SLICES_LATER: u64 = 2;
/// How long the first one waits before it looks again at a core slot that it has found free, and
/// how often it must be so: most are free between two calls of a worker that goes on with them.
const LOOK_AGAIN_NS: u64 = 20_000;
const LOOKS: u32 = 3;
/// So many looks at the clock in a slice are enough, but between two of them there are no more
/// calls than this.
const LOOKS_IN_SLICE: u32 = 64;
const STRIDE_MAX: u32 = 16;
/// Where cores rest, a worker that has waited so long, and for so many slices, for a core slot that
/// is not handed on lets all cores work.
const STUCK_NS: u64 = if cfg!(kiln_sim) { 100_000 } else { 20_000_000 };
const STUCK_SLICES: u64 = 4;
/// The longest wait for a core slot that is not handed on, in nanoseconds.
const WAIT_MAX_NS: u64 = 50_000_000;

/// One worker's part in them.
pub struct CoreSlot {
    shared: Arc<Slots>,
    /// For the arena of the core.
    epochs: Epochs,
    worker: u32,
    /// The core where it takes core slots when all work, and that where it has them now.
    home: usize,
    core: usize,
    /// The number of cores at work for which that is so; 0 if it is for none that it knows.
    seen: u32,
    is_held: bool,
    /// When it was got last from another worker, or after a wait.
    since_ns: u64,
    /// Whether its time was over when it was looked last.
    has_lasted: bool,
    /// The calls of the worker that had ended when others were told last.
    told: u64,
    /// How often it was asked whether the core slot is over, in all of it and since the last look
    /// at the clock.
    asked: u32,
    unlooked: u32,
    /// So often it is asked for each look.
    stride: u32,
}

impl CoreSlot {
    /// For the worker that `participant` stands for, which has another number than all that share
    /// the core slots.
    pub fn new(shared: &CoreSlots, participant: &Participant) -> CoreSlot {
        let worker = participant.slot() as u32;
        shared.0.workers.fetch_add(1, Ordering::Relaxed);
        let home = worker as usize % shared.0.cores.len();
        CoreSlot {
            shared: shared.0.clone(),
            epochs: participant.epochs().clone(),
            worker,
            home,
            core: home,
            seen: 0,
            is_held: false,
            since_ns: 0,
            has_lasted: false,
            told: 0,
            asked: 0,
            unlooked: 0,
            stride: 1,
        }
    }

    /// Whether there are more workers than cores.
    #[inline]
    fn is_needed(&self) -> bool {
        // A worker that comes later makes the others take core slots from their next calls on.
        self.shared.workers.load(Ordering::Relaxed) as usize > self.shared.cores.len()
    }

    /// Waits for a core slot, but not past `deadline_ns`.
    #[inline]
    pub fn enter(&mut self, deadline_ns: Option<u64>) {
        if self.is_needed() {
            self.is_held = self.is_there() && self.shared.cores[self.core].take_free(self.worker)
                || self.wait(deadline_ns);
            if self.is_held {
                // SAFETY: the worker does nothing else at this time. A worker that still has the
                // memory has not left its core slot.
                unsafe { self.epochs.lend(self.worker as usize, self.core) };
            }
        } else if self.core != self.home {
            self.move_to(self.home);
        }
    }

    /// Whether it has its core slots where it had them last.
    #[inline]
    fn is_there(&mut self) -> bool {
        self.shared.working.number() == self.seen || self.look_around()
    }

    /// The same, where another number of cores works than it has seen.
    #[cold]
    fn look_around(&mut self) -> bool {
        let number = self.shared.working.number();
        let is_there = working::working_core(self.home, number) == self.core;
        self.seen = if is_there { number } else { 0 };
        is_there
    }

    /// Whether it is time to leave the turn to a waiter, or to wait for one. `ended` calls of the
    /// worker have ended.
    #[inline]
    pub fn is_over(&mut self, ended: u64) -> bool {
        match self.is_held {
            true => self.is_awaited() && (self.has_lasted(ended) || !self.is_there()),
            false => self.is_needed(),
        }
    }

    #[inline]
    fn is_awaited(&self) -> bool {
        self.shared.cores[self.core].waiting.load(Ordering::Relaxed) > 0
    }

    /// Looks whether the slice is over. Where calls are short that costs as much as a tenth of one,
    /// and is not done after each.
    #[inline]
    fn has_lasted(&mut self, ended: u64) -> bool {
        self.asked += 1;
        self.unlooked += 1;
        if !self.has_lasted && self.unlooked >= self.stride {
            self.look(ended);
        }
        self.has_lasted
    }

    fn look(&mut self, ended: u64) {
        self.unlooked = 0;
        let now = time::now_ns();
        self.tell(ended, now);
        let slice_ns = &self.shared.cores[self.core].slice_ns;
        self.has_lasted = now - self.since_ns >= slice_ns.load(Ordering::Relaxed);
        if self.has_lasted {
            self.stride = (mem::take(&mut self.asked) / LOOKS_IN_SLICE).clamp(1, STRIDE_MAX);
        }
    }

    /// Tells how many calls have ended.
    fn tell(&mut self, ended: u64, now_ns: u64) {
        // The worker's count may have begun anew.
        let calls = ended.saturating_sub(mem::replace(&mut self.told, ended));
        let shared = &self.shared;
        (shared.working).tell(calls, now_ns, |number| shared.put_to_work(number, now_ns));
    }

    /// Leaves the core slot free, or to a waiter when its time is over. `ended` calls of the worker
    /// have ended.
    #[inline]
    pub fn leave(&mut self, ended: u64) {
        self.leave_if(|core_slot| core_slot.has_lasted(ended));
    }

    /// Leaves the turn to a waiter: the worker does nothing for some time. It may have left the
    /// core slot free already, and told no waiter.
    #[inline]
    pub fn give_way(&mut self) {
        if self.is_held {
            self.leave_if(|_| true);
        } else if self.is_awaited() && self.is_there() {
            self.offer_free();
        }
    }

    #[cold]
    fn offer_free(&self) {
        let core = &self.shared.cores[self.core];
        if core.take_free(self.worker)
            && !self.shared.hand_on(self.core, self.worker, self.since_ns)
        {
            core.release(self.worker);
        }
    }

    #[inline]
    fn leave_if(&mut self, is_over: impl FnOnce(&mut CoreSlot) -> bool) {
        if mem::take(&mut self.is_held) {
            // SAFETY: as in `enter`.
            unsafe { self.epochs.take_back(self.worker as usize) };
            if !self.is_needed() {
                self.clear_arena();
            }
            // In this order: it may be this worker that lets another number of cores work.
            let hands_on = self.is_awaited() && (is_over(self) || !self.is_there());
            if !hands_on || !self.shared.hand_on(self.core, self.worker, self.since_ns) {
                self.shared.cores[self.core].release(self.worker);
            }
        }
    }

    /// Leaves what waits in the core's arena to all, as no worker takes core slots any more.
    #[cold]
    fn clear_arena(&self) {
        self.epochs.clear_lent(self.core);
    }

    /// Takes core slots there from now on. The system places a thread that is not pinned.
    #[cold]
    fn move_to(&mut self, core: usize) {
        (self.core, self.seen) = (core, 0);
        thread::move_to_core((core != self.home).then_some(core));
    }

    /// Waits in the queue; whether that brought a core slot.
    #[cold]
    fn wait(&mut self, deadline_ns: Option<u64>) -> bool {
        let shared = self.shared.clone();
        // Its thread may have been pinned, or be another one, since it was here last.
        if let Some(core) = thread::pinned_core() {
            self.home = core % shared.cores.len();
        }
        let waiter = &shared.waiters[self.worker as usize];
        *lock(&waiter.thread) = Some(thread::current());
        waiter.home.store(self.home as u32, Ordering::Relaxed);
        shared.change(self.home, |_, queue| queue.push_back(self.worker));
        let since = time::now_ns();
        let deadline = deadline_ns.map_or(u64::MAX, |deadline| deadline.max(since));
        let mut look_ns = LOOK_NS;
        let mut found_free = 0;
        loop {
            let now = time::now_ns();
            // Under the lock no worker hands anything to this one, and it waits where it is looked
            // for.
            let (state, next, is_stuck) = shared.change(self.home, |at, queue| {
                let core = &shared.cores[at];
                let handed = waiter.handed.swap(NO_CORE, Ordering::Relaxed);
                if handed != NO_CORE {
                    shared.cores[handed as usize].learn(now);
                    return (Wait::CoreSlot(handed as usize), None, false);
                }
                let place = queue.iter().position(|&worker| worker == self.worker);
                let ahead = place.expect("a waiter is in the queue") as u64;
                let is_free = core.holder.load(Ordering::Relaxed) == NO_WORKER;
                found_free = if is_free { found_free + 1 } else { 0 };
                let moved = core.handed_on_ns.load(Ordering::Relaxed).max(since);
                let latest = deadline.min(moved + WAIT_MAX_NS);
                let takes = match now >= moved + WAIT_MAX_NS {
                    // The holder is in a call that takes long, or has no core. The slot goes round
                    // without it.
                    true => {
                        core.holder.store(self.worker, Ordering::Relaxed);
                        core.handed_on_ns.store(now, Ordering::Relaxed);
                        true
                    }
                    false => ahead == 0 && found_free >= LOOKS && core.take_free(self.worker),
                };
                if takes || now >= latest {
                    queue.retain(|worker| *worker != self.worker);
                    let next = queue.front().copied().filter(|_| ahead == 0);
                    let state = if takes {
                        Wait::CoreSlot(at)
                    } else {
                        Wait::Over
                    };
                    return (state, next, false);
                }
                let slice_ns = core.slice_ns.load(Ordering::Relaxed);
                let is_stuck = now.saturating_sub(moved) >= STUCK_NS.max(slice_ns * STUCK_SLICES);
                let longest = match (ahead, is_free) {
                    (0, true) => LOOK_AGAIN_NS,
                    (0, false) => {
                        let twice_ns = SLEEP_NS.min(look_ns * 2);
                        mem::replace(&mut look_ns, twice_ns)
                    }
                    _ => ((ahead + SLICES_LATER) * slice_ns).max(SLEEP_NS),
                };
                (Wait::Sleep(longest.min(latest - now)), None, is_stuck)
            });
            if is_stuck {
                (shared.working).let_all_work(now, |number| shared.put_to_work(number, now));
            }
            if let Some(next) = next {
                shared.wake(next);
            }
            if let Wait::Sleep(longest) = state {
                thread::park_for(longest);
                continue;
            }
            (self.since_ns, self.has_lasted, self.asked) = (now, false, 0);
            if let Wait::CoreSlot(core) = state {
                self.move_to(core);
            }
            return matches!(state, Wait::CoreSlot(_));
        }
    }
}

/// What becomes of a waiter.
enum Wait {
    /// It has the slot of this core.
    CoreSlot(usize),
    /// It has waited for too long, and has none.
    Over,
    /// It sleeps so long, in nanoseconds, and looks again.
    Sleep(u64),
}

impl Drop for CoreSlot {
    fn drop(&mut self) {
        self.give_way();
        if self.core != self.home {
            self.move_to(self.home);
        }
        let left = self.shared.workers.fetch_sub(1, Ordering::Relaxed) as usize - 1;
        if left == self.shared.cores.len() {
            // No worker takes core slots from now on.
            (0..left).for_each(|core| self.epochs.clear_lent(core));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use kiln_platform::atomic::AtomicU32;

    use super::*;
    use crate::shared::core_slots::Waiter;

    /// Of so many workers.
    fn core_slots(shared: &CoreSlots, workers: u32) -> Vec<CoreSlot> {
        let epochs = Epochs::new(workers as usize);
        let participants: Vec<Participant> = (0..workers)
            .map(|_| epochs.register().expect("there is room"))
            .collect();
        (participants.iter())
            .map(|participant| CoreSlot::new(shared, participant))
            .collect()
    }

    #[test]
    fn never_more_are_inside_than_there_are_core_slots_and_all_get_one() {
        all_have_core_slots(CoreSlots::default(), None);
    }

    #[test]
    fn all_get_one_while_fewer_and_more_cores_work() {
        all_have_core_slots(CoreSlots::of(4), Some([1, 4, 2, 3]));
    }

    /// Many workers share core slots, while one of them lets these numbers of cores work, one after
    /// the other.
    fn all_have_core_slots(shared: CoreSlots, numbers: Option<[u32; 4]>) {
        let cores = shared.0.cores.len() as u32;
        let workers = cores + 6;
        let (inside, most, taken) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        let calls = if cfg!(miri) { 20 } else { 2_000 };
        let core_slots = core_slots(&shared, workers);
        thread::scope(|scope| {
            for (worker, mut core_slot) in core_slots.into_iter().enumerate() {
                let (inside, most, taken) = (&inside, &most, &taken);
                scope.spawn(move || {
                    for call in 0..calls {
                        if let (0, Some(numbers)) = (worker, numbers) {
                            let number = numbers[call % numbers.len()];
                            core_slot.shared.put_to_work(number, time::now_ns());
                        }
                        core_slot.enter(None);
                        if core_slot.is_held {
                            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            thread::pause(100);
                            let holder = &core_slot.shared.cores[core_slot.core].holder;
                            // From a thread that the system lets wait for long.
                            let is_taken = holder.load(Ordering::SeqCst) != core_slot.worker;
                            taken.fetch_add(u32::from(is_taken), Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                        core_slot.leave(0);
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= cores + taken.load(Ordering::SeqCst));
        for core in &shared.0.cores {
            assert_eq!(core.holder.load(Ordering::SeqCst), NO_WORKER);
        }
        let handed = |waiter: &Waiter| waiter.handed.load(Ordering::SeqCst) != NO_CORE;
        assert!(!shared.0.waiters.iter().any(handed));
        assert!(lock(&shared.0.queues).of.iter().all(VecDeque::is_empty));
    }

    #[test]
    fn a_call_that_takes_long_keeps_nobody_out_where_cores_rest() {
        let shared = CoreSlots::of(2);
        let mut core_slots = core_slots(&shared, 3);
        shared.0.put_to_work(1, time::now_ns());
        core_slots[0].enter(None);
        assert!(core_slots[0].is_held);
        // Its own core is the one that rests.
        core_slots[1].enter(None);
        assert!(core_slots[1].is_held);
        assert_eq!((shared.0.working.number(), core_slots[1].core), (2, 1));
    }

    #[test]
    fn a_call_that_takes_long_keeps_others_waiting_once() {
        let shared = CoreSlots::of(1);
        let mut core_slots = core_slots(&shared, 3);
        let [long, short, other] = &mut core_slots[..] else {
            unreachable!("there are three")
        };
        long.enter(None);
        let begun = time::now_ns();
        for _ in 0..20 {
            short.enter(None);
            assert!(short.is_held, "the slot goes round without the long call");
            short.leave(0);
        }
        assert!(time::now_ns() - begun < 10 * WAIT_MAX_NS);
        // The long call has no turn to leave to others, and none to leave free.
        short.enter(None);
        long.leave(0);
        let deadline = time::now_ns() + 1_000_000;
        other.enter(Some(deadline));
        assert!(!other.is_held);
        other.leave(0);
        short.leave(0);
        long.enter(None);
        assert!(long.is_held);
    }

    #[test]
    fn a_core_slot_is_awaited_while_another_worker_waits_for_it() {
        let shared = CoreSlots::of(1);
        let mut core_slots = core_slots(&shared, 2);
        let [holder, waiter] = &mut core_slots[..] else {
            unreachable!("there are two")
        };
        holder.enter(None);
        let (holding, waiting) = (holder.worker, waiter.worker);
        assert!(!shared.is_awaited(holding));
        thread::scope(|scope| {
            scope.spawn(|| {
                waiter.enter(None);
                waiter.leave(0);
            });
            // Until it waits; its own core slot is nothing that others want.
            while !shared.is_awaited(holding) {
                thread::yield_now();
            }
            assert!(!shared.is_awaited(waiting));
            holder.leave(0);
        });
        assert!(!shared.is_awaited(holding) && !shared.is_awaited(waiting));
    }

    #[test]
    fn nobody_waits_past_a_deadline() {
        let shared = CoreSlots::default();
        let count = shared.0.cores.len() as u32 + 1;
        let mut core_slots = core_slots(&shared, count);
        let (last, others) = core_slots.split_last_mut().expect("there are some");
        for core_slot in others {
            core_slot.enter(None);
            assert!(core_slot.is_held);
        }
        last.enter(Some(time::now_ns() + 1_000_000));
        assert!(!last.is_held);
        assert!(lock(&shared.0.queues).of[0].is_empty());
    }
}
