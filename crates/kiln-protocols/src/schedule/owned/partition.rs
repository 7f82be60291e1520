//! A partition, which one thread uses at a time, and who looks after it.

use std::cell::UnsafeCell;
use std::collections::VecDeque;

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::spin::Spinner;
use kiln_storage::table::WORKERS_MAX;

use super::inbox::Inbox;
use super::{Demand, IN_FLIGHT_MAX, OwnedState, PartitionTable};
use crate::shared::ring::Ring;

/// A part of the locks.
#[repr(align(128))]
pub(super) struct Partition<T> {
    latch: AtomicBool,
    /// Whether something is ready that no worker has run.
    has_ready: AtomicBool,
    core: UnsafeCell<Core<T>>,
    /// By partition: demands that come from there.
    pub(super) forwarded: Box<[Ring]>,
    /// Demands of several partitions in the order of all, where they come to all at once; who puts
    /// one in holds the sequencer.
    pub(super) sequenced: Option<Ring>,
}

// SAFETY: the core is used under the latch.
unsafe impl<T> Sync for Partition<T> {}
// SAFETY: the core's pointers lead to demands, which may be used by any thread in its turn.
unsafe impl<T> Send for Partition<T> {}

/// What is used under a partition's latch.
pub(super) struct Core<T> {
    pub(super) number: u16,
    pub(super) table: T,
    /// Transactions that have something to do here, where they travel.
    pub(super) ready: VecDeque<*mut Demand>,
}

/// Runs what is ready in a partition, whose latch the caller has.
pub(super) type Act<T> = fn(&OwnedState<T>, &mut Core<T>, *mut Demand);

/// For who cannot run what is ready, and leaves it to others.
pub(super) const fn nobody<T>() -> Option<Act<T>> {
    None
}

impl<T: PartitionTable> OwnedState<T> {
    /// Uses a partition, when no other thread does.
    pub(super) fn with_partition<R>(
        &self,
        number: u16,
        body: impl FnOnce(&OwnedState<T>, &mut Core<T>) -> R,
    ) -> R {
        let partition = &self.partitions[number as usize];
        let mut spinner = Spinner::default();
        while !partition.try_latch() {
            spinner.spin();
        }
        let _latched = Latched(partition);
        // SAFETY: under the latch.
        body(self, unsafe { &mut *partition.core.get() })
    }

    /// Works off the messages of a partition, unless another thread does at this time, and runs
    /// what is ready there, if the caller does that. Whether there was anything.
    pub(super) fn work_off(
        &self,
        number: usize,
        act: &mut Option<impl FnMut(&OwnedState<T>, &mut Core<T>, *mut Demand)>,
    ) -> bool {
        let partition = &self.partitions[number];
        if !partition.try_latch() {
            return false;
        }
        let _latched = Latched(partition);
        // SAFETY: under the latch.
        let core = unsafe { &mut *partition.core.get() };
        let mut inbox = Inbox::default();
        let mut handle = |message| self.handle(core, message);
        for ring in partition.sequenced.iter().chain(&partition.forwarded) {
            inbox.look(ring, &mut handle);
        }
        for worker in self.present() {
            inbox.look(&self.channels[worker].requests[number], &mut handle);
        }
        let mut has_done = inbox.finish(&mut handle);
        if T::OWNERS_RUN
            && let Some(act) = act
        {
            while let Some(demand) = core.ready.pop_front() {
                act(self, core, demand);
                has_done = true;
            }
        }
        // Relaxed, written under the latch: who sees it late comes again.
        let has_ready = !core.ready.is_empty();
        if partition.has_ready.load(Ordering::Relaxed) != has_ready {
            partition.has_ready.store(has_ready, Ordering::Relaxed);
        }
        has_done
    }

    /// Whether there seems to be something to do in a partition. Where there is not, its latch
    /// stays in the caches that have it.
    #[inline]
    pub(super) fn seems_wanted(&self, number: usize) -> bool {
        let partition = &self.partitions[number];
        // Relaxed: a hint.
        partition.has_ready.load(Ordering::Relaxed)
            || (partition.sequenced.iter())
                .chain(&partition.forwarded)
                .any(Ring::seems_filled)
            || (self.present()).any(|worker| self.channels[worker].requests[number].seems_filled())
    }

    /// Does what the controller with this number has to do; whether there was anything.
    pub(super) fn control(
        &self,
        controller: usize,
        mut act: Option<impl FnMut(&OwnedState<T>, &mut Core<T>, *mut Demand)>,
    ) -> bool {
        let controllers = (self.controllers.load(Ordering::Relaxed) as usize).max(1);
        let mut has_done = false;
        // Numbers that divide data mostly begin with 1: with as many workers as partitions, that
        // one is the first worker's.
        let controller = match T::OWNERS_RUN {
            true => (controller + 1) % controllers,
            false => controller,
        };
        for partition in (controller..self.partitions()).step_by(controllers) {
            has_done |= self.work_off(partition, &mut act);
        }
        has_done
    }

    /// Looks after all partitions, for who would wait else.
    pub(super) fn control_all(
        &self,
        mut act: Option<impl FnMut(&OwnedState<T>, &mut Core<T>, *mut Demand)>,
    ) -> bool {
        let mut has_done = false;
        for partition in 0..self.partitions() {
            has_done |= self.seems_wanted(partition) && self.work_off(partition, &mut act);
        }
        has_done
    }
}

/// A partition whose latch the thread has; lets go when dropped, also when a transaction panics
/// that the thread runs there.
struct Latched<'a, T>(&'a Partition<T>);

impl<T> Drop for Latched<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlatch();
    }
}

impl<T: PartitionTable> Partition<T> {
    /// The partition with this number of `count`, with its `table`.
    pub(super) fn new(number: usize, count: usize, table: T) -> Partition<T> {
        let ring = || Ring::new(WORKERS_MAX * IN_FLIGHT_MAX);
        // Only from lower numbers, or, where transactions travel, from all.
        let senders = if T::OWNERS_RUN { count } else { number };
        Partition {
            latch: AtomicBool::new(false),
            has_ready: AtomicBool::new(false),
            core: UnsafeCell::new(Core {
                number: number as u16,
                table,
                ready: VecDeque::new(),
            }),
            forwarded: (0..senders).map(|_| ring()).collect(),
            sequenced: T::SEQUENCED.then(ring),
        }
    }
}

impl<T> Partition<T> {
    #[inline]
    fn try_latch(&self) -> bool {
        // Acquire pairs with the release in `unlatch`.
        !self.latch.load(Ordering::Relaxed) && !self.latch.swap(true, Ordering::Acquire)
    }

    #[inline]
    fn unlatch(&self) {
        self.latch.store(false, Ordering::Release);
    }
}
