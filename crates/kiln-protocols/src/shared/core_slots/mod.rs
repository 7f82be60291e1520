//! Core slots: with more workers than cores, one worker of each core is inside of a call.
//!
//! A worker that loses its core in the middle of a call keeps what it has locked, and all others
//! fail at that, or wait for it, for as long as it takes the system to come back to it: some
//! milliseconds for each other thread that wants the core. So with more workers than cores
//! throughput falls, whatever the protocol: locks are waited for, optimistic attempts are repeated
//! in vain, calls that starve ask to be alone. With as many workers inside as there are cores, each
//! keeps its core. Those outside hold nothing that another worker could wait for.
//!
//! Each core has one slot, and the workers that are pinned to it hand it to each other: two slots
//! on one core would share it while another core has nothing to do. Workers that are not pinned are
//! dealt out to the cores.
//!
//! Where fewer cores do more (`working.rs`) the others rest: a worker that has its core slots there
//! waits for the slot of a core that works, and moves to it. Pinned threads go home as soon as
//! their core works again; the system places threads that are not pinned.
//!
//! A worker has its core slot for a slice of time and call by call: in between it leaves the core
//! slot free, so that a worker without calls keeps no other one out, and takes it again without a
//! switch. When the time is over, or when it has nothing to do, it hands the turn to the worker
//! that has waited longest. No worker waits without looking around: the first in the queue takes a
//! core slot that is free, and none waits past the deadline of its call; it goes inside without a
//! core slot then. A core slot that was not handed on for `WAIT_MAX_NS` is taken from its holder,
//! which is in a call that takes long: the slot goes round without it, so that the calls of others
//! wait for a long call once. While the slot goes round each waiter will have it, and to go inside
//! would only make the round longer, for all. The others sleep until they can expect to have been
//! handed the core slot. Each look of theirs interrupts the holder in the middle of a call, and
//! with it the workers on other cores that wait for its locks.
//!
//! A slice is twenty-four times as long as a hand-over costs, so that these cost a twenty-fifth of
//! the time. The one who is handed a core slot runs within some ten microseconds on a core of its
//! own, but has its own memory in no cache: plans, images, the records of its last calls; that
//! costs more than the hand-over, and decides `SLICE_NS`. With as many as 32 workers a core each
//! waits for a tenth of a second now and then, one call of some hundreds; with more of them, or on
//! a core that works for others too, slices are shorter. Where other processes want the cores as
//! well, a hand-over takes milliseconds, and slices are longer.
//!
//! A worker that has a core slot uses the core's arena in place of its own
//! ([`arena`](kiln_storage::epoch::Participant::arena)): cells that the one before it has freed,
//! and what that one has retired. Else all that a worker retires would wait for its next core slot,
//! and the arenas of many workers for theirs, in no cache.
//!
//! Transactions of several statements take no core slots: they last as long as their client thinks.
//! A call that waits for what such a transaction has locked would keep its core slot for nothing,
//! and a few of these calls would keep all other workers out. So a call whose core slot others want
//! ends its attempt after a wait of `WAIT_IN_CORE_SLOT_NS` ([`CoreSlots::is_awaited`]), lets its
//! locks go, hands the core slot on and repeats the attempt in its next core slot.

mod core_slot;
mod working;

use std::collections::VecDeque;
use std::mem;

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, Thread};
use kiln_platform::time;
use kiln_storage::table::WORKERS_MAX;

use working::Working;

pub use core_slot::CoreSlot;

/// How long a worker has its core slot at least while others wait, in nanoseconds, unless
/// [`ROUND_MAX_NS`] allows less. Trials on virtual cores take a millisecond, and turns are handed
/// on in the midst of them.
const SLICE_NS: u64 = if cfg!(kiln_sim) { 20_000 } else { 3_000_000 };
/// How long at most.
const SLICE_MAX_NS: u64 = 10_000_000;
/// How much longer than a hand-over takes.
const SLICE_PER_HAND_OVER: u64 = 24;
/// How long it takes at most, as far as slices decide that, until all who wait have had their core
/// slot.
const ROUND_MAX_NS: u64 = 100_000_000;
/// How long a call waits for the locks of others in a core slot that other workers want, in
/// nanoseconds. A lock holder that runs lets them go sooner; one that does not run has no use for
/// the core slot either.
pub(crate) const WAIT_IN_CORE_SLOT_NS: u64 = if cfg!(kiln_sim) { 40_000 } else { 1_000_000 };

/// A core's slot, on cache lines of its own.
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

/// A worker, as those see it that hand core slots on.
struct Waiter {
    /// The core whose slot it was handed, or `NO_CORE`.
    handed: AtomicU32,
    /// The core where it takes core slots when all work.
    home: AtomicU32,
    thread: Mutex<Option<Thread>>,
}

/// The core of no core slot.
const NO_CORE: u32 = u32::MAX;
/// The holder of a core slot that is free.
const NO_WORKER: u32 = u32::MAX;

/// Who waits for the slot of each core. All of it has room for all workers.
struct Queues {
    /// By core; those who have waited longest first.
    of: Box<[VecDeque<u32>]>,
    /// Workers that are dealt out, with their places before, and those that are to be woken.
    dealt: Vec<(usize, u32)>,
}

struct Slots {
    working: Working,
    /// Workers that may want core slots.
    workers: AtomicU32,
    cores: Box<[Core]>,
    /// Under one lock, as workers wait elsewhere when fewer or more cores work; it is taken some
    /// times in a slice.
    queues: Mutex<Queues>,
    waiters: Box<[Waiter]>,
}

/// The core slots of all workers that share something; clones are the same.
#[derive(Clone)]
pub struct CoreSlots(Arc<Slots>);

impl Default for CoreSlots {
    fn default() -> CoreSlots {
        CoreSlots::of(thread::available_cores())
    }
}

impl CoreSlots {
    fn of(cores: usize) -> CoreSlots {
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
        CoreSlots(Arc::new(Slots {
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

    /// Whether this worker has a core slot that another worker waits for.
    pub fn is_awaited(&self, worker: u32) -> bool {
        // Relaxed: a worker that sees it late keeps its core slot a little longer.
        let mut cores = self.0.cores.iter();
        cores.any(|core| {
            core.holder.load(Ordering::Relaxed) == worker
                && core.waiting.load(Ordering::Relaxed) > 0
        })
    }
}

impl Core {
    // Nothing is handed on with a core slot: relaxed.
    #[inline]
    fn take_free(&self, worker: u32) -> bool {
        let taken = || {
            let (free, relaxed) = (NO_WORKER, Ordering::Relaxed);
            self.holder.compare_exchange(free, worker, relaxed, relaxed)
        };
        self.holder.load(Ordering::Relaxed) == NO_WORKER && taken().is_ok()
    }

    /// Leaves the core slot free, unless it was taken from this worker.
    #[inline]
    fn release(&self, worker: u32) {
        let (free, relaxed) = (NO_WORKER, Ordering::Relaxed);
        let _ = self.holder.compare_exchange(worker, free, relaxed, relaxed);
    }

    /// A worker that was handed the core slot runs now: adjusts the slice.
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

impl Slots {
    /// Changes the queue in which the workers at home on this core wait; `body` is told which
    /// core's queue that is.
    fn change<T>(&self, home: usize, body: impl FnOnce(usize, &mut VecDeque<u32>) -> T) -> T {
        let mut queues = lock(&self.queues);
        let at = self.working.working_core_of(home);
        let queue = &mut queues.of[at];
        let result = body(at, queue);
        let waiting = queue.len() as u32;
        self.cores[at].waiting.store(waiting, Ordering::Relaxed);
        result
    }

    /// Hands the core's slot to the worker that has waited longest in its queue.
    fn hand(&self, core: usize, queue: &mut VecDeque<u32>, now_ns: u64) -> Option<u32> {
        let next = queue.pop_front()?;
        let waiter = &self.waiters[next as usize];
        waiter.handed.store(core as u32, Ordering::Relaxed);
        let core = &self.cores[core];
        core.holder.store(next, Ordering::Relaxed);
        core.handed_on_ns.store(now_ns, Ordering::Relaxed);
        Some(next)
    }

    /// Hands the core slot that `holder` has had since `since_ns` to the worker that has waited
    /// longest, if one waits, the core works and the core slot was not taken from the holder.
    #[cold]
    fn hand_on(&self, core: usize, holder: u32, since_ns: u64) -> bool {
        let now = time::now_ns();
        let is_early = now - since_ns < self.cores[core].slice_ns.load(Ordering::Relaxed);
        let (next, first) = self.change(core, |at, queue| {
            // Under the lock no worker takes the core slot from the holder.
            if at != core || self.cores[core].holder.load(Ordering::Relaxed) != holder {
                return (None, None);
            }
            let next = self.hand(core, queue, now);
            // The first of those who are left has counted on longer core slots.
            (next, queue.front().copied().filter(|_| is_early))
        });
        for worker in first.into_iter().chain(next) {
            self.wake(worker);
        }
        next.is_some()
    }

    /// Lets so many cores work. Those who wait are dealt out to them, and have those core slots
    /// that are free.
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
            queues[self.working.working_core_of(home as usize)].push_back(worker);
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
