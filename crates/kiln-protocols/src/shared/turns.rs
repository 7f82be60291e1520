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
//! wait takes a turn that is free, and nobody waits past the deadline of its call, or longer than
//! `WAIT_MAX_NS`; it goes inside without a turn then. The others sleep, as each look of theirs would interrupt the one that has the turn.
//!
//! A slice is twenty-four times as long as a hand-over costs, so that these cost a twenty-fifth of the time. The one who is handed a turn
//! runs within some ten microseconds on a core of its own, but has its own memory in no cache: plans, images, the records of its last
//! calls. With slices of 0.4 ms 64 workers of `lock-sorted` did 14 % less than with 1.6 ms, from which some seventy
//! microseconds a slice follow, and `SLICE_NS`. Where other processes want the cores as well, a hand-over takes milliseconds, and
//! slices are longer.
//!
//! Transactions of several statements take no turns: they last as long as their client thinks.

use std::collections::VecDeque;

use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, Thread};
use kiln_platform::time;
use kiln_storage::table::WORKERS_MAX;

/// How long a worker has its turn at least while others wait, in nanoseconds, unless [`ROUND_MAX_NS`] allows less.
const SLICE_NS: u64 = 1_600_000;
/// How long at most.
const SLICE_MAX_NS: u64 = 10_000_000;
/// How much longer than a hand-over takes.
const SLICE_PER_HAND_OVER: u64 = 24;
/// How long it takes at most, as far as slices decide that, until all who wait have had their turn.
const ROUND_MAX_NS: u64 = 100_000_000;
/// How long the first of those who wait sleeps before it looks for a turn that was left free. Each look interrupts whoever has
/// the turn, so it sleeps twice as long each time that it finds none, but never longer than the others.
const LOOK_NS: u64 = 200_000;
/// How long the others sleep at least and at most; they do for a slice for each who is before them. Whoever was the first and goes
/// without being handed the turn tells the next; but nobody does if the one who was handed it soon leaves it free.
const SLEEP_NS: u64 = 5_000_000;
const SLEEP_MAX_NS: u64 = 20_000_000;
/// How long the first one waits before it looks again at a turn that it has found free, and how often it must be so: most are
/// free between two calls of a worker that goes on with them.
const LOOK_AGAIN_NS: u64 = 20_000;
const LOOKS: u32 = 3;
/// The longest wait for a turn, in nanoseconds.
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

/// One worker's part in them.
pub struct Turn {
    shared: Arc<Turns>,
    worker: u32,
    /// The core whose turn it takes.
    core: usize,
    is_held: bool,
    /// When it was got last from somebody else, or after a wait.
    since_ns: u64,
}

impl Turn {
    /// For the worker with this number, which no other worker has that shares the turns.
    pub fn new(shared: &SharedTurns, worker: u32) -> Turn {
        shared.0.workers.fetch_add(1, Ordering::Relaxed);
        Turn {
            shared: shared.0.clone(),
            worker,
            core: worker as usize % shared.0.cores.len(),
            is_held: false,
            since_ns: 0,
        }
    }

    /// Whether there are more workers than cores.
    #[inline]
    fn is_needed(&self) -> bool {
        // A worker that comes later makes the others take turns from their next calls on.
        self.shared.workers.load(Ordering::Relaxed) as usize > self.shared.cores.len()
    }

    /// Whether others wait for the turn that it has; or whether it has none although turns are taken.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        match self.is_held {
            true => self.shared.cores[self.core].waiting.load(Ordering::Relaxed) > 0,
            false => self.is_needed(),
        }
    }

    /// Waits for a turn, but not past `deadline_ns`.
    #[inline]
    pub fn enter(&mut self, deadline_ns: Option<u64>) {
        if self.is_needed() {
            self.is_held = self.shared.cores[self.core].take_free() || self.wait(deadline_ns);
        }
    }

    /// Leaves the turn free, or to somebody who waits when its time is over.
    #[inline]
    pub fn leave(&mut self) {
        self.leave_if(|turn| {
            let slice_ns = &turn.shared.cores[turn.core].slice_ns;
            time::now_ns() - turn.since_ns >= slice_ns.load(Ordering::Relaxed)
        });
    }

    /// Leaves the turn to somebody who waits: the worker does nothing for some time.
    pub fn give_way(&mut self) {
        self.leave_if(|_| true);
    }

    #[inline]
    fn leave_if(&mut self, is_over: impl FnOnce(&Turn) -> bool) {
        if std::mem::take(&mut self.is_held) {
            let core = &self.shared.cores[self.core];
            if core.waiting.load(Ordering::Relaxed) == 0
                || !is_over(self)
                || !self.shared.hand_on(core)
            {
                // Nothing is handed on with a turn: relaxed.
                core.is_free.store(true, Ordering::Relaxed);
            }
        }
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
        let latest = deadline_ns.map_or(u64::MAX, |deadline| deadline.max(now));
        let latest = latest.min(now + WAIT_MAX_NS);
        let mut look_ns = LOOK_NS;
        let mut found_free = 0;
        loop {
            let now = time::now_ns();
            let (mut ahead, mut next) = (0, None);
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
                self.since_ns = now;
                return is_held;
            }
            let longest = match (ahead, is_free) {
                (0, true) => LOOK_AGAIN_NS,
                (0, false) => look_ns,
                _ => (ahead * core.slice_ns.load(Ordering::Relaxed)).clamp(SLEEP_NS, SLEEP_MAX_NS),
            };
            if ahead == 0 && !is_free {
                look_ns = SLEEP_NS.min(look_ns * 2);
            }
            thread::park_for(longest.min(latest - now));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
        self.shared.workers.fetch_sub(1, Ordering::Relaxed);
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
    /// Hands the turn to whoever has waited longest, if anybody waits.
    #[cold]
    fn hand_on(&self, core: &Core) -> bool {
        let next = core.change(|queue| {
            let next = queue.pop_front()?;
            self.handed[next as usize].0.store(true, Ordering::Relaxed);
            core.handed_on_ns.store(time::now_ns(), Ordering::Relaxed);
            Some(next)
        });
        if let Some(next) = next {
            self.wake(next);
        }
        next.is_some()
    }

    fn wake(&self, worker: u32) {
        if let Some(thread) = &*lock(&self.handed[worker as usize].1) {
            thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_are_inside_than_there_are_turns_and_all_get_one() {
        let shared = SharedTurns::default();
        let cores = shared.0.cores.len() as u32;
        let workers = cores + 6;
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        let calls = if cfg!(miri) { 20 } else { 2_000 };
        let turns: Vec<Turn> = (0..workers)
            .map(|worker| Turn::new(&shared, worker))
            .collect();
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
        let mut turns: Vec<Turn> = (0..count)
            .map(|worker| Turn::new(&shared, worker))
            .collect();
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
