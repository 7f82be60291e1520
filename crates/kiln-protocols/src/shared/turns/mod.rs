//! Taking turns: with more workers than cores, one worker of each core is inside of a call.
//!
//! A worker that loses its core in the middle of a call keeps what it has locked, and all others
//! fail at that, or wait for it, for as long as it takes the system to come back to it: some
//! milliseconds for each other thread that wants the core. So with more workers than cores
//! throughput falls, whatever the protocol: locks are waited for, optimistic attempts are repeated
//! in vain, calls that starve ask to be alone. With as many workers inside as there are cores, each
//! keeps its core. Those outside hold nothing that another worker could wait for.
//!
//! Each core has one turn, and the workers that are pinned to it hand it to each other: two that
//! had turns on one core would share it while another core has nothing to do. Workers that are not
//! pinned are dealt out to the cores.
//!
//! Where fewer cores do more (`working.rs`) the others rest: a worker that has its turns there
//! waits for the turn of a core that works, and moves to it. Pinned threads go home as soon as
//! their core works again; the system places threads that are not pinned.
//!
//! A worker has its turn for a slice of time and call by call: in between it leaves the turn free,
//! so that a worker without calls keeps no other one out, and takes it again without a switch. When
//! the time is over, or when it has nothing to do, it hands the turn to the worker that has waited
//! longest. No worker waits without looking around: the first in the queue takes a turn that is
//! free, and none waits past the deadline of its call; it goes inside without a turn then. A turn
//! that was not handed on for `WAIT_MAX_NS` is taken from its holder, which is in a call that takes
//! long: the turn goes round without it, so that the calls of others wait for a long call once.
//! While the turn goes round each waiter will have it, and to go inside would only make the round
//! longer, for all. The others sleep until they can expect to have been handed the turn. Each look
//! of theirs interrupts the holder in the middle of a call, and with it the workers on other cores
//! that wait for its locks.
//!
//! A slice is twenty-four times as long as a hand-over costs, so that these cost a twenty-fifth of
//! the time. The one who is handed a turn runs within some ten microseconds on a core of its own,
//! but has its own memory in no cache: plans, images, the records of its last calls; that costs
//! more than the hand-over, and decides `SLICE_NS`. With as many as 32 workers a core each waits
//! for a tenth of a second now and then, one call of some hundreds; with more of them, or on a core
//! that works for others too, slices are shorter. Where other processes want the cores as well, a
//! hand-over takes milliseconds, and slices are longer.
//!
//! A worker that has a turn uses the core's memory in place of its own ([`Participant::memory`]):
//! cells that the one before it has freed, and what that one has retired. Else all that a worker
//! retires would wait for its next turn, and the memory of many workers for theirs, in no cache.
//!
//! Transactions of several statements take no turns: they last as long as their client thinks. A
//! call that waits for what such a transaction has locked would keep its turn for nothing, and a
//! few of these calls would keep all other workers out. So a call whose turn others want ends its
//! attempt after a wait of `WAIT_IN_TURN_NS` ([`SharedTurns::is_awaited`]), lets its locks go,
//! hands the turn on and repeats the attempt in its next turn.

mod working;

use std::collections::VecDeque;
use std::mem;

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, Thread};
use kiln_platform::time;
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::table::WORKERS_MAX;

use working::Working;

/// How long a worker has its turn at least while others wait, in nanoseconds, unless
/// [`ROUND_MAX_NS`] allows less. Trials on virtual cores take a millisecond, and turns are handed
/// on in the midst of them.
const SLICE_NS: u64 = if cfg!(kiln_sim) { 20_000 } else { 3_000_000 };
/// How long at most.
const SLICE_MAX_NS: u64 = 10_000_000;
/// How much longer than a hand-over takes.
const SLICE_PER_HAND_OVER: u64 = 24;
/// How long it takes at most, as far as slices decide that, until all who wait have had their turn.
const ROUND_MAX_NS: u64 = 100_000_000;
/// How long the first in the queue sleeps before it looks for a turn that was left free. Each look
/// interrupts the holder of the turn, so it sleeps twice as long each time that it finds none, but
/// never longer than the others.
const LOOK_NS: u64 = 200_000;
/// How long the others sleep at least. They do for a slice for each that is before them, and
/// `SLICES_LATER` more: then they are handed the turn before they look. A first waiter that goes
/// without being handed the turn tells the next, and so does a holder that hands it on early; but
/// they are not told if the worker that was handed it soon leaves it free.
const SLEEP_NS: u64 = 5_000_000;
const SLICES_LATER: u64 = 2;
/// How long the first one waits before it looks again at a turn that it has found free, and how
/// often it must be so: most are free between two calls of a worker that goes on with them.
const LOOK_AGAIN_NS: u64 = 20_000;
const LOOKS: u32 = 3;
/// So many looks at the clock in a slice are enough, but between two of them there are no more
/// calls than this.
const LOOKS_IN_SLICE: u32 = 64;
const STRIDE_MAX: u32 = 16;
/// Where cores rest, a worker that has waited so long, and for so many slices, for a turn that is
/// not handed on lets all cores work.
const STUCK_NS: u64 = if cfg!(kiln_sim) { 100_000 } else { 20_000_000 };
const STUCK_SLICES: u64 = 4;
/// How long a call waits for the locks of others in a turn that other workers want, in nanoseconds.
/// A lock holder that runs lets them go sooner; one that does not run has no use for the turn
/// either.
pub(crate) const WAIT_IN_TURN_NS: u64 = if cfg!(kiln_sim) { 40_000 } else { 1_000_000 };
/// The longest wait for a turn that is not handed on, in nanoseconds.
const WAIT_MAX_NS: u64 = 50_000_000;

/// The turn of a core, on cache lines of its own.
#[repr(align(128))]
struct Core {
    /// The worker that has it, or [`NO_WORKER`].
    holder: AtomicU32,
    /// How many wait for it. Where the core rests, one: it is to be left.
    waiting: AtomicU32,
    /// When it was handed on last, of [`time::now_ns`].
    handed_on_ns: AtomicU64,
    /// How long a slice is.
    slice_ns: AtomicU64,
}

/// A worker, as those see it who hand turns on.
struct Waiter {
    /// The core whose turn it was handed, or `NO_CORE`.
    handed: AtomicU32,
    /// The core where it has turns when all work.
    home: AtomicU32,
    thread: Mutex<Option<Thread>>,
}

const NO_CORE: u32 = u32::MAX;
const NO_WORKER: u32 = u32::MAX;

/// Who waits for the turn of each core. All of it has room for all workers.
struct Queues {
    /// By core; those who have waited longest first.
    of: Box<[VecDeque<u32>]>,
    /// Workers that are dealt out, with their places before, and those that are to be woken.
    dealt: Vec<(usize, u32)>,
}

struct Turns {
    working: Working,
    /// Workers that may want turns.
    workers: AtomicU32,
    cores: Box<[Core]>,
    /// Under one lock, as workers wait elsewhere when fewer or more cores work; it is taken some
    /// times in a slice.
    queues: Mutex<Queues>,
    waiters: Box<[Waiter]>,
}

/// The turns of all workers that share something; clones are the same.
#[derive(Clone)]
pub struct SharedTurns(Arc<Turns>);

impl Default for SharedTurns {
    fn default() -> SharedTurns {
        SharedTurns::of(thread::available_cores())
    }
}

impl SharedTurns {
    fn of(cores: usize) -> SharedTurns {
        let core = |_| Core {
            holder: AtomicU32::new(NO_WORKER),
            waiting: AtomicU32::new(0),
            handed_on_ns: AtomicU64::new(0),
            slice_ns: AtomicU64::new(SLICE_NS),
        };
        let waiter = |_| Waiter {
            handed: AtomicU32::new(NO_CORE),
            home: AtomicU32::new(0),
            thread: Mutex::new(None),
        };
        SharedTurns(Arc::new(Turns {
            working: Working::new(cores),
            workers: AtomicU32::new(0),
            cores: (0..cores).map(core).collect(),
            queues: Mutex::new(Queues {
                of: (0..cores)
                    .map(|_| VecDeque::with_capacity(WORKERS_MAX))
                    .collect(),
                dealt: Vec::with_capacity(WORKERS_MAX),
            }),
            waiters: (0..WORKERS_MAX).map(waiter).collect(),
        }))
    }

    /// Whether there are fewer workers than cores.
    #[inline]
    pub fn has_core_to_spare(&self) -> bool {
        // Relaxed: a worker that comes later or goes is seen some time later.
        (self.0.workers.load(Ordering::Relaxed) as usize) < self.0.cores.len()
    }

    /// Whether this worker has a turn that another worker waits for.
    pub fn is_awaited(&self, worker: u32) -> bool {
        // Relaxed: a worker that sees it late keeps its turn a little longer.
        let mut cores = self.0.cores.iter();
        cores.any(|core| {
            core.holder.load(Ordering::Relaxed) == worker
                && core.waiting.load(Ordering::Relaxed) > 0
        })
    }
}

/// One worker's part in them.
pub struct Turn {
    shared: Arc<Turns>,
    /// For the memory of the core.
    epochs: Epochs,
    worker: u32,
    /// The core where it has turns when all work, and that where it has them now.
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
    /// How often it was asked whether the turn is over, in all of it and since the last look at the
    /// clock.
    asked: u32,
    unlooked: u32,
    /// So often it is asked for each look.
    stride: u32,
}

impl Turn {
    /// For the worker that `participant` stands for, which has another number than all that share
    /// the turns.
    pub fn new(shared: &SharedTurns, participant: &Participant) -> Turn {
        let worker = participant.slot() as u32;
        shared.0.workers.fetch_add(1, Ordering::Relaxed);
        let home = worker as usize % shared.0.cores.len();
        Turn {
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
        // A worker that comes later makes the others take turns from their next calls on.
        self.shared.workers.load(Ordering::Relaxed) as usize > self.shared.cores.len()
    }

    /// Waits for a turn, but not past `deadline_ns`.
    #[inline]
    pub fn enter(&mut self, deadline_ns: Option<u64>) {
        if self.is_needed() {
            self.is_held = self.is_there() && self.shared.cores[self.core].take_free(self.worker)
                || self.wait(deadline_ns);
            if self.is_held {
                // SAFETY: the worker does nothing else at this time. A worker that still has the
                // memory has not left its turn.
                unsafe { self.epochs.lend(self.worker as usize, self.core) };
            }
        } else if self.core != self.home {
            self.move_to(self.home);
        }
    }

    /// Whether it has its turns where it had them last.
    #[inline]
    fn is_there(&mut self) -> bool {
        self.shared.working.number() == self.seen || self.look_around()
    }

    /// The same, where another number of cores works than it has seen.
    #[cold]
    fn look_around(&mut self) -> bool {
        let number = self.shared.working.number();
        let is_there = working::place(self.home, number) == self.core;
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

    /// Leaves the turn free, or to a waiter when its time is over. `ended` calls of the worker have
    /// ended.
    #[inline]
    pub fn leave(&mut self, ended: u64) {
        self.leave_if(|turn| turn.has_lasted(ended));
    }

    /// Leaves the turn to a waiter: the worker does nothing for some time. It may have left the
    /// turn free already, and told no waiter.
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
    fn leave_if(&mut self, is_over: impl FnOnce(&mut Turn) -> bool) {
        if mem::take(&mut self.is_held) {
            // SAFETY: as in `enter`.
            unsafe { self.epochs.take_back(self.worker as usize) };
            if !self.is_needed() {
                self.clear_memory();
            }
            // In this order: it may be this worker that lets another number of cores work.
            let hands_on = self.is_awaited() && (is_over(self) || !self.is_there());
            if !hands_on || !self.shared.hand_on(self.core, self.worker, self.since_ns) {
                self.shared.cores[self.core].release(self.worker);
            }
        }
    }

    /// Leaves what waits in the core's memory to all, as no worker takes turns any more.
    #[cold]
    fn clear_memory(&self) {
        self.epochs.clear_lent(self.core);
    }

    /// Has its turns there from now on. The system places a thread that is not pinned.
    #[cold]
    fn move_to(&mut self, core: usize) {
        (self.core, self.seen) = (core, 0);
        thread::move_to_core((core != self.home).then_some(core));
    }

    /// Waits in the queue; whether that brought a turn.
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
                    return (Wait::Turn(handed as usize), None, false);
                }
                let place = queue.iter().position(|&worker| worker == self.worker);
                let ahead = place.expect("a waiter is in the queue") as u64;
                let is_free = core.holder.load(Ordering::Relaxed) == NO_WORKER;
                found_free = if is_free { found_free + 1 } else { 0 };
                let moved = core.handed_on_ns.load(Ordering::Relaxed).max(since);
                let latest = deadline.min(moved + WAIT_MAX_NS);
                let takes = match now >= moved + WAIT_MAX_NS {
                    // The holder is in a call that takes long, or has no core. The turn goes round
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
                    let state = if takes { Wait::Turn(at) } else { Wait::Over };
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
            if let Wait::Turn(core) = state {
                self.move_to(core);
            }
            return matches!(state, Wait::Turn(_));
        }
    }
}

/// What becomes of a waiter.
enum Wait {
    /// It has the turn of this core.
    Turn(usize),
    /// It has waited for too long, and has none.
    Over,
    /// It sleeps so long, in nanoseconds, and looks again.
    Sleep(u64),
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.give_way();
        if self.core != self.home {
            self.move_to(self.home);
        }
        let left = self.shared.workers.fetch_sub(1, Ordering::Relaxed) as usize - 1;
        if left == self.shared.cores.len() {
            // No worker takes turns from now on.
            (0..left).for_each(|core| self.epochs.clear_lent(core));
        }
    }
}

impl Core {
    // Nothing is handed on with a turn: relaxed.
    #[inline]
    fn take_free(&self, worker: u32) -> bool {
        let taken = || {
            let (free, relaxed) = (NO_WORKER, Ordering::Relaxed);
            self.holder.compare_exchange(free, worker, relaxed, relaxed)
        };
        self.holder.load(Ordering::Relaxed) == NO_WORKER && taken().is_ok()
    }

    /// Leaves the turn free, unless it was taken from this worker.
    #[inline]
    fn release(&self, worker: u32) {
        let (free, relaxed) = (NO_WORKER, Ordering::Relaxed);
        let _ = self.holder.compare_exchange(worker, free, relaxed, relaxed);
    }

    /// A worker that was handed the turn runs now: adjusts the slice.
    fn learn(&self, now_ns: u64) {
        let taken_ns = now_ns.saturating_sub(self.handed_on_ns.load(Ordering::Relaxed));
        let wanted_ns = taken_ns.saturating_mul(SLICE_PER_HAND_OVER);
        let slice_ns = self.slice_ns.load(Ordering::Relaxed);
        let slice_ns = (slice_ns * 7 + wanted_ns.min(SLICE_MAX_NS * 8)) / 8;
        let waiting = u64::from(self.waiting.load(Ordering::Relaxed));
        let most = SLICE_MAX_NS.min(ROUND_MAX_NS / (waiting + 1));
        let slice_ns = slice_ns.max(SLICE_NS).min(most);
        self.slice_ns.store(slice_ns, Ordering::Relaxed);
    }
}

impl Turns {
    /// Changes the queue in which the workers at home on this core wait; `body` is told which
    /// core's queue that is.
    fn change<T>(&self, home: usize, body: impl FnOnce(usize, &mut VecDeque<u32>) -> T) -> T {
        let mut queues = lock(&self.queues);
        let at = self.working.place_of(home);
        let queue = &mut queues.of[at];
        let result = body(at, queue);
        let waiting = queue.len() as u32;
        self.cores[at].waiting.store(waiting, Ordering::Relaxed);
        result
    }

    /// Hands the core's turn to the worker that has waited longest in its queue.
    fn hand(&self, core: usize, queue: &mut VecDeque<u32>, now_ns: u64) -> Option<u32> {
        let next = queue.pop_front()?;
        let waiter = &self.waiters[next as usize];
        waiter.handed.store(core as u32, Ordering::Relaxed);
        let core = &self.cores[core];
        core.holder.store(next, Ordering::Relaxed);
        core.handed_on_ns.store(now_ns, Ordering::Relaxed);
        Some(next)
    }

    /// Hands the turn that `holder` has had since `since_ns` to the worker that has waited longest,
    /// if one waits, the core works and the turn was not taken from the holder.
    #[cold]
    fn hand_on(&self, core: usize, holder: u32, since_ns: u64) -> bool {
        let now = time::now_ns();
        let is_early = now - since_ns < self.cores[core].slice_ns.load(Ordering::Relaxed);
        let (next, first) = self.change(core, |at, queue| {
            // Under the lock no worker takes the turn from the holder.
            if at != core || self.cores[core].holder.load(Ordering::Relaxed) != holder {
                return (None, None);
            }
            let next = self.hand(core, queue, now);
            // The first of those who are left has counted on longer turns.
            (next, queue.front().copied().filter(|_| is_early))
        });
        for worker in first.into_iter().chain(next) {
            self.wake(worker);
        }
        next.is_some()
    }

    /// Lets so many cores work. Those who wait are dealt out to them, and have those turns that are
    /// free.
    #[cold]
    fn put_to_work(&self, number: u32, now_ns: u64) {
        let mut locked = lock(&self.queues);
        self.working.set_number(number);
        let mut dealt = mem::take(&mut locked.dealt);
        let queues = &mut locked.of;
        for queue in queues.iter_mut() {
            dealt.extend(queue.drain(..).enumerate());
        }
        // From each queue in its order, and from all of them in turn; places differ within one.
        dealt.sort_unstable();
        for (_, worker) in dealt.drain(..) {
            let home = self.waiters[worker as usize].home.load(Ordering::Relaxed);
            queues[self.working.place_of(home as usize)].push_back(worker);
        }
        for (at, (core, queue)) in self.cores.iter().zip(queues.iter_mut()).enumerate() {
            if let Some(&next) = queue.front()
                && core.take_free(next)
            {
                let handed = self.hand(at, queue, now_ns);
                dealt.extend(handed.map(|worker| (at, worker)));
            }
            let waiting = match self.working.rests(at) {
                true => 1,
                false => queue.len() as u32,
            };
            core.waiting.store(waiting, Ordering::Relaxed);
        }
        drop(locked);
        for (_, worker) in dealt.drain(..) {
            self.wake(worker);
        }
        lock(&self.queues).dealt = dealt;
    }

    fn wake(&self, worker: u32) {
        // Not under the lock: the woken worker may get the core at once, and wants the lock when it
        // waits again.
        let thread = lock(&self.waiters[worker as usize].thread).clone();
        if let Some(thread) = thread {
            thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many workers.
    fn turns(shared: &SharedTurns, workers: u32) -> Vec<Turn> {
        let epochs = Epochs::new(workers as usize);
        let participants: Vec<Participant> = (0..workers)
            .map(|_| epochs.register().expect("there is room"))
            .collect();
        (participants.iter())
            .map(|participant| Turn::new(shared, participant))
            .collect()
    }

    #[test]
    fn never_more_are_inside_than_there_are_turns_and_all_get_one() {
        all_have_turns(SharedTurns::default(), None);
    }

    #[test]
    fn all_get_one_while_fewer_and_more_cores_work() {
        all_have_turns(SharedTurns::of(4), Some([1, 4, 2, 3]));
    }

    /// Many workers have turns, while one of them lets these numbers of cores work, one after the
    /// other.
    fn all_have_turns(shared: SharedTurns, numbers: Option<[u32; 4]>) {
        let cores = shared.0.cores.len() as u32;
        let workers = cores + 6;
        let (inside, most, taken) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        let calls = if cfg!(miri) { 20 } else { 2_000 };
        let turns = turns(&shared, workers);
        thread::scope(|scope| {
            for (worker, mut turn) in turns.into_iter().enumerate() {
                let (inside, most, taken) = (&inside, &most, &taken);
                scope.spawn(move || {
                    for call in 0..calls {
                        if let (0, Some(numbers)) = (worker, numbers) {
                            let number = numbers[call % numbers.len()];
                            turn.shared.put_to_work(number, time::now_ns());
                        }
                        turn.enter(None);
                        if turn.is_held {
                            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            thread::pause(100);
                            let holder = &turn.shared.cores[turn.core].holder;
                            // From a thread that the system lets wait for long.
                            let is_taken = holder.load(Ordering::SeqCst) != turn.worker;
                            taken.fetch_add(u32::from(is_taken), Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                        turn.leave(0);
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
        let shared = SharedTurns::of(2);
        let mut turns = turns(&shared, 3);
        shared.0.put_to_work(1, time::now_ns());
        turns[0].enter(None);
        assert!(turns[0].is_held);
        // Its own core is the one that rests.
        turns[1].enter(None);
        assert!(turns[1].is_held);
        assert_eq!((shared.0.working.number(), turns[1].core), (2, 1));
    }

    #[test]
    fn a_call_that_takes_long_keeps_others_waiting_once() {
        let shared = SharedTurns::of(1);
        let mut turns = turns(&shared, 3);
        let [long, short, other] = &mut turns[..] else {
            unreachable!("there are three")
        };
        long.enter(None);
        let begun = time::now_ns();
        for _ in 0..20 {
            short.enter(None);
            assert!(short.is_held, "the turn goes round without the long call");
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
    fn a_turn_is_awaited_while_another_worker_waits_for_it() {
        let shared = SharedTurns::of(1);
        let mut turns = turns(&shared, 2);
        let [holder, waiter] = &mut turns[..] else {
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
            // Until it waits; its own turn is nothing that others want.
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
        let shared = SharedTurns::default();
        let count = shared.0.cores.len() as u32 + 1;
        let mut turns = turns(&shared, count);
        let (last, others) = turns.split_last_mut().expect("there are some");
        for turn in others {
            turn.enter(None);
            assert!(turn.is_held);
        }
        last.enter(Some(time::now_ns() + 1_000_000));
        assert!(!last.is_held);
        assert!(lock(&shared.0.queues).of[0].is_empty());
    }
}
