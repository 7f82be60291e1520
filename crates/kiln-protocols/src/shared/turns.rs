//! Taking turns: with more workers than cores, one worker of each core is inside of a call.
//!
//! A worker that loses its core in the middle of a call keeps what it has locked, and all others fail at
//! that, or wait for it, for as long as it takes the system to come back to it: some milliseconds for each
//! other thread that wants the core. So with more workers than cores throughput falls, whatever the protocol:
//! locks are waited for, optimistic attempts are repeated in vain, calls that starve ask to be alone. With as
//! many workers inside as there are cores, each keeps its core. Those outside hold nothing that anybody could
//! wait for.
//!
//! Each core has one turn, and the workers that are pinned to it hand it to each other: two that had turns on one
//! core would share it while another core has nothing to do. Workers that are not pinned are dealt out to the cores.
//!
//! A worker has its turn for a slice of time and call by call: in between it leaves the turn free, so that one
//! that has no calls keeps nobody out, and takes it again without a switch. When the time is over, it hands
//! the turn to whoever has waited longest. Nobody waits without looking around: the first of those who
//! wait takes a turn that is free, and nobody waits past the deadline of its call, or when the turn was not handed on for
//! `WAIT_MAX_NS`; it goes inside without a turn then. While the turn goes round whoever waits will have it, and to go inside would only make
//! the round longer, for all. The others sleep until they can expect to have been handed the turn, as each look
//! of theirs interrupts the one that has it in the middle of a call, and whoever waits for its locks on another core with it.
//!
//! A slice is twenty-four times as long as a hand-over costs, so that these cost a twenty-fifth of the time. The one who is handed a turn
//! runs within some ten microseconds on a core of its own, but has its own memory in no cache: plans, images, the records of its last
//! calls; that costs more than the hand-over, and decides `SLICE_NS`. With as many as 32 workers a core each waits for a tenth of a
//! second now and then, one call of some hundreds. Where other processes want the cores as well, a hand-over takes milliseconds, and
//! slices are longer.
//!
//! Whoever has a turn uses the core's memory in place of its own ([`Participant::memory`]): cells that the one before it has freed, and
//! what that one has retired. Else all that a worker retires would wait for its next turn, and the memory of many workers for
//! theirs, in no cache.
//!
//! Transactions of several statements take no turns: they last as long as their client thinks.

use std::collections::VecDeque;
use std::mem;

use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, Thread};
use kiln_platform::time;
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::table::WORKERS_MAX;

/// How long a worker has its turn at least while others wait, in nanoseconds, unless [`ROUND_MAX_NS`] allows less. Trials on
/// virtual cores take a millisecond, and turns are handed on in the midst of them.
const SLICE_NS: u64 = if cfg!(kiln_sim) { 20_000 } else { 3_000_000 };
/// How long at most.
const SLICE_MAX_NS: u64 = 10_000_000;
/// How much longer than a hand-over takes.
const SLICE_PER_HAND_OVER: u64 = 24;
/// How long it takes at most, as far as slices decide that, until all who wait have had their turn.
const ROUND_MAX_NS: u64 = 100_000_000;
/// How long the first of those who wait sleeps before it looks for a turn that was left free. Each look interrupts whoever has
/// the turn, so it sleeps twice as long each time that it finds none, but never longer than the others.
const LOOK_NS: u64 = 200_000;
/// How long the others sleep at least. They do for a slice for each who is before them, and so many more: then they are handed the turn
/// before they look. Whoever was the first and goes without being handed the turn tells the next, and so does whoever hands it
/// on early; but nobody does if the one who was handed it soon leaves it free.
const SLEEP_NS: u64 = 5_000_000;
const SLICES_LATER: u64 = 2;
/// How long the first one waits before it looks again at a turn that it has found free, and how often it must be so: most are
/// free between two calls of a worker that goes on with them.
const LOOK_AGAIN_NS: u64 = 20_000;
const LOOKS: u32 = 3;
/// So many looks at the clock in a slice are enough, but between two of them there are no more calls than this.
const LOOKS_IN_SLICE: u32 = 64;
const STRIDE_MAX: u32 = 16;
/// The longest wait for a turn that nobody hands on, in nanoseconds.
const WAIT_MAX_NS: u64 = 200_000_000;

/// The turn of a core, on cache lines of its own.
#[repr(align(128))]
struct Core {
    /// Whether nobody has it.
    is_free: AtomicBool,
    /// The length of `queue`.
    waiting: AtomicU32,
    /// When it was handed on last, of [`time::now_ns`].
    handed_on_ns: AtomicU64,
    /// How long a slice is.
    slice_ns: AtomicU64,
    queue: Mutex<VecDeque<u32>>,
}

struct Turns {
    cores: Box<[Core]>,
    /// Workers that may want turns.
    workers: AtomicU32,
    /// By worker: whether it was handed a turn, and its thread.
    handed: Box<[(AtomicBool, Mutex<Option<Thread>>)]>,
}

/// The turns of all workers that share something; clones are the same.
#[derive(Clone)]
pub struct SharedTurns(Arc<Turns>);

impl Default for SharedTurns {
    fn default() -> SharedTurns {
        let core = |_| Core {
            is_free: AtomicBool::new(true),
            waiting: AtomicU32::new(0),
            handed_on_ns: AtomicU64::new(0),
            slice_ns: AtomicU64::new(SLICE_NS),
            queue: Mutex::new(VecDeque::with_capacity(WORKERS_MAX)),
        };
        SharedTurns(Arc::new(Turns {
            cores: (0..thread::available_cores()).map(core).collect(),
            workers: AtomicU32::new(0),
            handed: (0..WORKERS_MAX)
                .map(|_| (AtomicBool::new(false), Mutex::new(None)))
                .collect(),
        }))
    }
}

impl SharedTurns {
    /// Whether there are fewer workers than cores.
    #[inline]
    pub fn has_core_to_spare(&self) -> bool {
        // Relaxed: whoever comes later or goes is seen some time later.
        (self.0.workers.load(Ordering::Relaxed) as usize) < self.0.cores.len()
    }
}

/// One worker's part in them.
pub struct Turn {
    shared: Arc<Turns>,
    /// For the memory of the core.
    epochs: Epochs,
    worker: u32,
    /// The core whose turn it takes.
    core: usize,
    is_held: bool,
    /// When it was got last from somebody else, or after a wait.
    since_ns: u64,
    /// How often it was asked whether the turn is over, in all of it and since the last look at the clock.
    asked: u32,
    unlooked: u32,
    /// So often it is asked for each look.
    stride: u32,
}

impl Turn {
    /// For the worker that `participant` stands for, which has another number than all that share the turns.
    pub fn new(shared: &SharedTurns, participant: &Participant) -> Turn {
        let worker = participant.slot() as u32;
        shared.0.workers.fetch_add(1, Ordering::Relaxed);
        Turn {
            shared: shared.0.clone(),
            epochs: participant.epochs().clone(),
            worker,
            core: worker as usize % shared.0.cores.len(),
            is_held: false,
            since_ns: 0,
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
            self.is_held = self.shared.cores[self.core].take_free() || self.wait(deadline_ns);
            if self.is_held {
                // SAFETY: the worker does nothing else at this time. Who has the memory still, if anybody, has not left its turn.
                unsafe { self.epochs.lend(self.worker as usize, self.core) };
            }
        }
    }

    /// Whether it is time to leave the turn to somebody who waits, or to wait for one.
    #[inline]
    pub fn is_over(&mut self) -> bool {
        match self.is_held {
            true => {
                let waiting = &self.shared.cores[self.core].waiting;
                waiting.load(Ordering::Relaxed) > 0 && self.has_lasted()
            }
            false => self.is_needed(),
        }
    }

    #[inline]
    fn has_lasted(&mut self) -> bool {
        self.asked += 1;
        self.unlooked += 1;
        self.unlooked >= self.stride && self.look()
    }

    /// Looks whether the slice is over. Where calls are short that costs as much as a tenth of one, and is not done after each.
    fn look(&mut self) -> bool {
        self.unlooked = 0;
        let slice_ns = &self.shared.cores[self.core].slice_ns;
        let is_over = time::now_ns() - self.since_ns >= slice_ns.load(Ordering::Relaxed);
        if is_over {
            self.stride = (mem::take(&mut self.asked) / LOOKS_IN_SLICE).clamp(1, STRIDE_MAX);
        }
        is_over
    }

    /// Leaves the turn free, or to somebody who waits when its time is over.
    #[inline]
    pub fn leave(&mut self) {
        self.leave_if(Turn::has_lasted);
    }

    /// Leaves the turn to somebody who waits: the worker does nothing for some time.
    pub fn give_way(&mut self) {
        self.leave_if(|_| true);
    }

    #[inline]
    fn leave_if(&mut self, is_over: impl FnOnce(&mut Turn) -> bool) {
        if mem::take(&mut self.is_held) {
            // SAFETY: as in `enter`.
            unsafe { self.epochs.take_back(self.worker as usize) };
            if !self.is_needed() {
                self.clear_memory();
            }
            let is_awaited = self.shared.cores[self.core].waiting.load(Ordering::Relaxed) > 0;
            let hands_on = is_awaited && is_over(self);
            let core = &self.shared.cores[self.core];
            if !hands_on || !self.shared.hand_on(core, self.since_ns) {
                // Nothing is handed on with a turn: relaxed.
                core.is_free.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Leaves what waits in the core's memory to all, as nobody takes turns any more.
    #[cold]
    fn clear_memory(&self) {
        self.epochs.clear_lent(self.core);
    }

    /// Waits in the queue; whether that brought a turn.
    #[cold]
    fn wait(&mut self, deadline_ns: Option<u64>) -> bool {
        let shared = &*self.shared;
        // Its thread may have been pinned, or be another one, since it was here last.
        if let Some(core) = thread::pinned_core() {
            self.core = core % shared.cores.len();
        }
        let core = &shared.cores[self.core];
        let (handed, thread) = &shared.handed[self.worker as usize];
        *lock(thread) = Some(thread::current());
        core.change(|queue| queue.push_back(self.worker));
        let now = time::now_ns();
        let deadline = deadline_ns.map_or(u64::MAX, |deadline| deadline.max(now));
        let since = now;
        let mut look_ns = LOOK_NS;
        let mut found_free = 0;
        loop {
            let now = time::now_ns();
            let (mut ahead, mut next) = (0, None);
            let moved = core.handed_on_ns.load(Ordering::Relaxed).max(since);
            let latest = deadline.min(moved + WAIT_MAX_NS);
            let is_free = core.is_free.load(Ordering::Relaxed);
            found_free = if is_free { found_free + 1 } else { 0 };
            // Under the lock nobody hands anything to this worker.
            let ended = core.change(|queue| {
                if handed.swap(false, Ordering::Relaxed) {
                    core.learn(now);
                    return Some(true);
                }
                ahead = queue
                    .iter()
                    .take_while(|&&worker| worker != self.worker)
                    .count() as u64;
                let takes = ahead == 0 && found_free >= LOOKS && core.take_free();
                if takes || now >= latest {
                    queue.retain(|worker| *worker != self.worker);
                    next = queue.front().copied().filter(|_| ahead == 0);
                    return Some(takes);
                }
                None
            });
            if let Some(next) = next {
                shared.wake(next);
            }
            if let Some(is_held) = ended {
                (self.since_ns, self.asked) = (now, 0);
                return is_held;
            }
            let longest = match (ahead, is_free) {
                (0, true) => LOOK_AGAIN_NS,
                (0, false) => look_ns,
                _ => ((ahead + SLICES_LATER) * core.slice_ns.load(Ordering::Relaxed)).max(SLEEP_NS),
            };
            if ahead == 0 && !is_free {
                look_ns = SLEEP_NS.min(look_ns * 2);
            }
            thread::park_for(longest.min(latest.saturating_sub(now)));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
        let left = self.shared.workers.fetch_sub(1, Ordering::Relaxed) as usize - 1;
        if left == self.shared.cores.len() {
            // Nobody takes turns from now on.
            (0..left).for_each(|core| self.epochs.clear_lent(core));
        }
    }
}

impl Core {
    #[inline]
    fn take_free(&self) -> bool {
        self.is_free.load(Ordering::Relaxed) && self.is_free.swap(false, Ordering::Relaxed)
    }

    fn change<T>(&self, body: impl FnOnce(&mut VecDeque<u32>) -> T) -> T {
        let mut queue = lock(&self.queue);
        let result = body(&mut queue);
        self.waiting.store(queue.len() as u32, Ordering::Relaxed);
        result
    }

    /// Somebody runs now who was handed the turn: adjusts the slice.
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
    /// Hands the turn that was had since `since_ns` to whoever has waited longest, if anybody waits.
    #[cold]
    fn hand_on(&self, core: &Core, since_ns: u64) -> bool {
        let now = time::now_ns();
        let is_early = now - since_ns < core.slice_ns.load(Ordering::Relaxed);
        let mut first = None;
        let next = core.change(|queue| {
            let next = queue.pop_front()?;
            self.handed[next as usize].0.store(true, Ordering::Relaxed);
            core.handed_on_ns.store(now, Ordering::Relaxed);
            first = queue.front().copied().filter(|_| is_early);
            Some(next)
        });
        // The first of those who are left has counted on longer turns.
        for worker in first.into_iter().chain(next) {
            self.wake(worker);
        }
        next.is_some()
    }

    fn wake(&self, worker: u32) {
        // Not under the lock: whoever is woken may get the core at once, and wants the lock when it waits again.
        let thread = lock(&self.handed[worker as usize].1).clone();
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
        let shared = SharedTurns::default();
        let cores = shared.0.cores.len() as u32;
        let workers = cores + 6;
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        let calls = if cfg!(miri) { 20 } else { 2_000 };
        let turns = turns(&shared, workers);
        thread::scope(|scope| {
            for mut turn in turns {
                let (inside, most) = (&inside, &most);
                scope.spawn(move || {
                    for _ in 0..calls {
                        turn.enter(None);
                        if turn.is_held {
                            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            thread::pause(100);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                        turn.leave();
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= cores);
        for core in &shared.0.cores {
            assert!(core.is_free.load(Ordering::SeqCst));
            assert!(lock(&core.queue).is_empty());
        }
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
        assert!(lock(&shared.0.cores[0].queue).is_empty());
    }
}
