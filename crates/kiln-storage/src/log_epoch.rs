//! Log epochs: which commits a group of redo records has.
//!
//! The reclamation epoch ([`crate::epoch`]) cannot number log groups: an open transaction holds it
//! up. A *log epoch* is held up by a worker only while that worker reports and installs one commit.
//!
//! # Definitions
//!
//! - The *current* log epoch `E` starts at 1 and grows by one with each [`LogEpochs::close`].
//! - A worker's *window* lasts from [`LogEpochs::enter`] to [`LogEpochs::leave`]. The worker has
//!   *published* the log epoch that `enter` returned, and its commit is *of* that epoch.
//! - A commit opens its window after nothing can refuse it any more, while it holds its records
//!   exclusively, and before another transaction can see any of its writes. It reports what it
//!   writes, installs it, and leaves.
//!
//! # What holds, and why
//!
//! 1. **After `close` has returned `E`, no window of an epoch up to `E` is open or opens.** `enter`
//!    publishes `e` and then reads the counter again, until it reads the `e` that it published;
//!    `close` adds to the counter and then reads the slots. All four are sequentially consistent.
//!    Either the publication of `e <= E` comes before the addition: then `close` reads it, or a
//!    later one of the same slot, and waits while it is up to `E`. Or it comes after the addition:
//!    then the second reading returns more than `E`, and `e` is published anew.
//! 2. **Epochs follow reads-from and write-write order.** `T2` reads or replaces a version that
//!    `T1` wrote. It met the version after `T1` made it visible, so after `T1` read its epoch from
//!    the counter, and `T2` opens its own window later still. The counter only grows, and readings
//!    that happen one after the other see it grow (coherence), so `T2`'s epoch is at least `T1`'s.
//!    The same is true of a `T2` that finds a key gone that `T1` deleted: the entry goes inside
//!    `T1`'s window. Hence the commits of all epochs up to any `E` are closed under both orders.
//! 3. **What a transaction has observed is of epochs up to [`LogEpochs::current`], read after it
//!    was decided or confirmed**, its own commit included: by the argument of 2, with that reading
//!    in the place of `T2`'s window.
//!
//! A worker that panics inside its window leaves it as the panic unwinds, so that `close` returns;
//! the database takes no further transactions then.

use std::fmt;

use kiln_platform::atomic::{AtomicU64, AtomicUsize, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::spin::Spinner;
use kiln_platform::sync::Arc;

/// A log epoch. Those of commits are numbered from 1; 0 comes before all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogEpoch(pub u64);

impl fmt::Display for LogEpoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What a slot shows outside of windows.
const OUTSIDE: u64 = 0;

/// A word on cache lines of its own (two, because processors fetch lines in pairs).
#[repr(align(128))]
struct CachePadded(AtomicU64);

struct Shared {
    current: CachePadded,
    /// What each worker has published, or [`OUTSIDE`].
    slots: Box<[CachePadded]>,
    /// Slots at and above this position were never used.
    used: AtomicUsize,
}

/// The counter of log epochs and the windows of workers; a cheap handle, clones share one counter.
#[derive(Clone)]
pub struct LogEpochs {
    shared: Arc<Shared>,
}

impl LogEpochs {
    /// A counter at 1, for workers whose numbers are below `workers`.
    pub fn new(workers: usize) -> LogEpochs {
        let slots = (0..workers).map(|_| CachePadded(AtomicU64::new(OUTSIDE)));
        let epochs = LogEpochs {
            shared: Arc::new(Shared {
                current: CachePadded(AtomicU64::new(1)),
                slots: slots.collect(),
                used: AtomicUsize::new(0),
            }),
        };
        let address = std::ptr::from_ref(&epochs.shared.current).addr();
        name_range(address, size_of::<CachePadded>(), || "log epoch".to_owned());
        epochs
    }

    /// The current log epoch: an upper bound of the epochs of all that the caller has observed.
    #[inline(always)]
    pub fn current(&self) -> LogEpoch {
        // Acquire pairs with the addition in `close`: a caller that sees the new epoch comes after
        // what the closer did before.
        LogEpoch(self.shared.current.0.load(Ordering::Acquire))
    }

    /// Goes on after this log epoch, if it has not come as far; no window is open.
    pub fn start_after(&self, epoch: LogEpoch) {
        // Sequentially consistent, as in `close`.
        self.shared
            .current
            .0
            .fetch_max(epoch.0 + 1, Ordering::SeqCst);
    }

    /// Makes room for the windows of this worker; called before its first one.
    pub fn join(&self, worker: usize) {
        assert!(
            worker < self.shared.slots.len(),
            "worker {worker} of {} has no slot",
            self.shared.slots.len()
        );
        // Sequentially consistent, and before the worker publishes anything: a `close` that has to
        // see a publication sees this as well.
        self.shared.used.fetch_max(worker + 1, Ordering::SeqCst);
    }

    /// Opens the window of `worker`, which has none open, and returns its epoch.
    #[inline]
    pub fn enter(&self, worker: usize) -> LogEpoch {
        let shared = &*self.shared;
        let slot = &shared.slots[worker].0;
        let mut epoch = shared.current.0.load(Ordering::Relaxed);
        loop {
            // Both sequentially consistent, as is what `close` does: see 1 of the module's
            // documentation.
            slot.swap(epoch, Ordering::SeqCst);
            let now = shared.current.0.load(Ordering::SeqCst);
            if now == epoch {
                return LogEpoch(epoch);
            }
            epoch = now;
        }
    }

    /// Closes the window of `worker`, if it is open.
    #[inline]
    pub fn leave(&self, worker: usize) {
        // Release pairs with the loads in `close`: the report, and what was installed, come before.
        self.shared.slots[worker]
            .0
            .store(OUTSIDE, Ordering::Release);
    }

    /// Begins the next epoch, waits for the windows of the former one and of those before it, and
    /// returns the former one: all its commits are reported and installed. Waits for no
    /// transaction, and for no other call of this.
    pub fn close(&self) -> LogEpoch {
        let shared = &*self.shared;
        let closed = shared.current.0.fetch_add(1, Ordering::SeqCst);
        let used = shared.used.load(Ordering::SeqCst);
        for slot in &shared.slots[..used] {
            let mut spinner = Spinner::default();
            loop {
                // Sequentially consistent: see 1 of the module's documentation. Also acquires what
                // `leave` released.
                let published = slot.0.load(Ordering::SeqCst);
                if published == OUTSIDE || published > closed {
                    break;
                }
                spinner.spin();
            }
        }
        LogEpoch(closed)
    }
}

impl fmt::Debug for LogEpochs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LogEpochs")
            .field("current", &self.current())
            .field("workers_max", &self.shared.slots.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::atomic::AtomicBool;
    use kiln_platform::thread;

    use super::*;

    const WORKERS: usize = 3;

    /// Workers commit to one record, one after the other; another thread closes epochs. What a
    /// worker has in its hands stands for its report.
    fn commit_and_close(commits: u64) {
        let epochs = &LogEpochs::new(WORKERS + 1);
        // The record: whether it is locked, and the epoch of its last writer.
        let (locked, written_in) = (&AtomicBool::new(false), &AtomicU64::new(0));
        let (closed, working) = (&AtomicU64::new(0), &AtomicUsize::new(WORKERS));
        thread::scope(|scope| {
            for worker in 0..WORKERS {
                scope.spawn(move || {
                    epochs.join(worker);
                    for _ in 0..commits {
                        let mut spinner = Spinner::default();
                        while locked.swap(true, Ordering::Acquire) {
                            spinner.spin();
                        }
                        let epoch = epochs.enter(worker).0;
                        // Relaxed: only the lock's holder writes.
                        let former = written_in.load(Ordering::Relaxed);
                        assert!(former <= epoch, "a writer of {epoch} after one of {former}");
                        written_in.store(epoch, Ordering::Relaxed);
                        locked.store(false, Ordering::Release);
                        // Relaxed: it is enough that it cannot be read from the future.
                        let gone = closed.load(Ordering::Relaxed);
                        assert!(gone < epoch, "a report of {epoch} after {gone} was closed");
                        epochs.leave(worker);
                        assert!(epochs.current().0 >= epoch);
                    }
                    working.fetch_sub(1, Ordering::Release);
                });
            }
            while working.load(Ordering::Acquire) > 0 {
                let epoch = epochs.close().0;
                closed.store(epoch, Ordering::Relaxed);
                thread::yield_now();
            }
        });
        assert_eq!(epochs.close().0, closed.load(Ordering::Relaxed) + 1);
    }

    #[cfg(not(kiln_sim))]
    #[test]
    fn nothing_is_reported_of_a_closed_epoch_and_epochs_follow_writes() {
        commit_and_close(if cfg!(miri) { 20 } else { 20_000 });
    }

    #[cfg(kiln_sim)]
    #[test]
    fn nothing_is_reported_of_a_closed_epoch_and_epochs_follow_writes() {
        use kiln_platform::sim::{self, Config, Schedule};
        for seed in 0..300 {
            let schedule = match seed % 2 {
                0 => Schedule::Random,
                _ => Schedule::Pct {
                    depth: 3,
                    steps: 500,
                },
            };
            let mut config = Config::new(schedule, seed);
            config.cores = 2 + seed as usize % 3;
            sim::run(&config, || commit_and_close(8)).expect("no thread fails");
        }
    }

    #[test]
    fn closing_waits_for_a_window_and_for_nothing_else() {
        let epochs = LogEpochs::new(2);
        epochs.join(1);
        assert_eq!(epochs.enter(1), LogEpoch(1));
        epochs.leave(1);
        assert_eq!(
            (epochs.close(), epochs.current()),
            (LogEpoch(1), LogEpoch(2))
        );
        assert_eq!(epochs.enter(1), LogEpoch(2));
        thread::scope(|scope| {
            let closer = scope.spawn(|| epochs.close());
            while epochs.current() == LogEpoch(2) {
                thread::yield_now();
            }
            // The closer has begun the next epoch, and waits for the window alone.
            thread::sleep(2_000_000);
            epochs.leave(1);
            assert_eq!(closer.join().expect("it closes"), LogEpoch(2));
        });
    }
}
