//! Timestamps: where they come from, and who still uses which.
//!
//! # The source
//!
//! One shared counter, as in MSTO (STO §2.2): a transaction that commits adds one and has its
//! timestamp. Cicada's loosely synchronised clocks do without that line, at the price of timestamps
//! that do not follow real time: a client would have to wait for the clocks to pass its last commit
//! before it sees it from another worker, and the order of transactions would no longer be strict.
//! The counter is touched once a commit of a writer, so it is the bottleneck only where
//! transactions are far shorter than any procedure here; should it become one, this file alone has
//! to change.
//!
//! # Who uses which
//!
//! Each worker shows two words to the others, on cache lines of its own:
//!
//! - *committing*: the timestamp that it commits at, from before it has it until all its versions
//!   are decided. Between, it shows a bound below.
//! - *reading*: the timestamp of the snapshot that it reads, likewise from before it is fixed.
//!
//! **Snapshots.** A snapshot at `R` has all versions up to `R`, so no writer may commit at `R` or
//! below any more. A reader takes `R` from the counter and waits until no worker shows a smaller or
//! equal timestamp: a worker that got one before the counter was read had shown its bound before
//! that, and the counter's modification order hands it on. What had committed before the reader
//! began is in its snapshot, so snapshots are as strict as the rest.
//!
//! **The horizon.** Versions that no snapshot can have any more are let go. A worker that looks for
//! them reads the counter and then the words of all workers, a full fence between; a reader shows a
//! bound and then reads the counter, a full fence between. So either its bound is seen, or its
//! snapshot is at least as new as the counter was.
//!
//! # Snapshots that lag
//!
//! With `+lagging` a reader waits for no worker. It takes the newest timestamp up to which
//! everything is decided: the counter, or just before the oldest timestamp that a worker shows.
//! That is the global read timestamp of MSTO (STO §2.2, Figure 2). What has committed before the
//! reader began may be missing, so the order is not strict.
//!
//! Such a snapshot is older than the counter, and the horizon may not rely on that. A shared word,
//! *decided*, only grows: up to it everything was decided at some time, and so is for ever. A
//! worker that computes a horizon finds out what is decided, raises the word, and then looks at
//! what readers show, a full fence between. A reader shows the word as its bound and then takes a
//! snapshot that is not before the word as it is then, a full fence between. So either its bound is
//! seen, or its snapshot is not before the horizon. The word also holds where a worker shows a
//! bound that it has read long ago.

use kiln_platform::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use kiln_platform::memory::name_range;
use kiln_platform::spin::Spinner;
use kiln_storage::record::Tid;

use crate::canary::Canary;

/// What a worker shows when it does neither.
const IDLE: u64 = u64::MAX;

/// Marks a bound below a timestamp that is not known yet. Timestamps are versions of records and
/// have the bits of those.
const BOUND: u64 = 1 << 62;
const _: () = assert!(Tid::VERSION < BOUND);

/// One worker's words. Those who begin a snapshot look at what all others commit, so that is not
/// among what changes with each snapshot.
struct Slot {
    committing: Padded,
    reading: Padded,
}

/// A word on cache lines of its own.
#[repr(align(128))]
struct Padded(AtomicU64);

/// The timestamps of a database; see the module's documentation.
pub struct Clock {
    counter: Padded,
    /// Up to here everything is decided, where snapshots lag.
    decided: Padded,
    lags: bool,
    slots: Box<[Slot]>,
    /// Slots at and above this position were never used.
    used: AtomicUsize,
}

/// Which versions are still wanted, as of some moment.
#[derive(Default)]
pub struct Horizon {
    /// Timestamps at which workers read or commit, in ascending order.
    active: Vec<u64>,
    /// Others may read at any timestamp from here on.
    open: u64,
    /// No worker reads, or will read, at a smaller timestamp.
    floor: u64,
    /// The oldest snapshot or the bound of one; `u64::MAX` when there is none.
    oldest_snapshot: u64,
}

impl Horizon {
    /// The horizon when no transaction runs: only the newest versions are wanted.
    pub fn alone() -> Horizon {
        Horizon {
            active: Vec::new(),
            open: u64::MAX,
            floor: u64::MAX,
            oldest_snapshot: u64::MAX,
        }
    }

    /// Whether no snapshot wants what came before a version of this timestamp.
    #[inline]
    pub fn has_passed(&self, timestamp: u64) -> bool {
        timestamp <= self.floor
    }

    /// Whether a snapshot may want a version that was the newest `from` a timestamp until before
    /// another.
    pub fn wants(&self, from: u64, until: u64) -> bool {
        if until > self.open {
            return true;
        }
        let first = self.active.partition_point(|active| *active < from);
        self.active.get(first).is_some_and(|active| *active < until)
    }

    /// As if all transactions read the newest versions alone.
    pub fn forget_who_reads(&mut self) {
        self.active.clear();
        self.floor = u64::MAX;
    }

    /// Whether all snapshots were begun after the counter was at `stamp`.
    pub fn is_older_than_snapshots(&self, stamp: u64) -> bool {
        stamp < self.oldest_snapshot
    }
}

impl Clock {
    /// A clock at 0 for workers below `workers`, whose snapshots lag or wait.
    pub fn new(workers: usize, lags: bool) -> Clock {
        let slot = |_| Slot {
            committing: Padded(AtomicU64::new(IDLE)),
            reading: Padded(AtomicU64::new(IDLE)),
        };
        Clock {
            counter: Padded(AtomicU64::new(0)),
            decided: Padded(AtomicU64::new(0)),
            lags,
            slots: (0..workers).map(slot).collect(),
            used: AtomicUsize::new(0),
        }
    }

    /// Makes room for what `worker` shows.
    pub fn join(&self, worker: usize) {
        // Here, as the clock has come to stay where it is.
        let address = std::ptr::from_ref(&self.counter).addr();
        name_range(address, size_of::<Padded>(), || "mvcc.clock".to_owned());
        // Sequentially consistent, and before the worker shows anything: a worker that looks
        // afterwards looks at its slot.
        self.used.fetch_max(worker + 1, Ordering::SeqCst);
    }

    /// Workers at and above this number have never joined.
    pub fn workers(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    /// The newest timestamp.
    #[inline]
    pub fn now(&self) -> u64 {
        self.counter.0.load(Ordering::SeqCst)
    }

    /// Makes all further timestamps greater than this one.
    pub fn raise(&self, timestamp: u64) {
        self.counter.0.fetch_max(timestamp, Ordering::SeqCst);
    }

    /// A new timestamp for `worker` to commit at.
    #[inline]
    pub fn begin_commit(&self, worker: usize) -> u64 {
        let slot = &self.slots[worker];
        let bound = self.counter.0.load(Ordering::Relaxed);
        slot.committing.0.store(bound | BOUND, Ordering::Relaxed);
        // Sequentially consistent: the bound shown above comes with the new value to each worker
        // that reads it, and all that this attempt has put into indexes comes before the timestamp:
        // see the node set in the module's documentation of `mvcc`.
        let timestamp = self.counter.0.fetch_add(1, Ordering::SeqCst) + 1;
        slot.committing.0.store(timestamp, Ordering::Release);
        timestamp
    }

    /// Ends what `worker` began with [`Clock::begin_commit`].
    #[inline]
    pub fn end_commit(&self, worker: usize) {
        // Release pairs with the acquire in `begin_reading`: all versions are decided.
        self.slots[worker]
            .committing
            .0
            .store(IDLE, Ordering::Release);
    }

    /// Fixes a snapshot for `worker`: everything up to the timestamp returned is decided.
    pub fn begin_reading(&self, worker: usize) -> u64 {
        match self.lags {
            true => self.take_decided(worker),
            false => self.await_present(worker),
        }
    }

    /// Fixes a snapshot of what is decided.
    fn take_decided(&self, worker: usize) -> u64 {
        let slot = &self.slots[worker];
        let bound = self.decided.0.load(Ordering::Acquire);
        slot.reading.0.store(bound | BOUND, Ordering::Relaxed);
        // Pairs with the fence in `look`: if that has not seen the bound, its word is seen here.
        fence(Ordering::SeqCst);
        let snapshot = self.find_decided();
        slot.reading.0.store(snapshot, Ordering::Release);
        snapshot
    }

    /// The newest timestamp up to which everything is decided, now or by the word.
    fn find_decided(&self) -> u64 {
        // Acquire: the decisions come with the word.
        let known = self.decided.0.load(Ordering::Acquire);
        let now = self.counter.0.load(Ordering::SeqCst);
        let used = self.used.load(Ordering::SeqCst);
        if Canary::SnapshotNotAwaited.sings() {
            return now;
        }
        let shown = (self.slots[..used].iter())
            // Acquire pairs with the release in `end_commit`.
            .map(|slot| decided_before(slot.committing.0.load(Ordering::Acquire)));
        shown.fold(now, u64::min).max(known)
    }

    /// Raises the word to what is decided.
    pub fn note_decided(&self) {
        if self.lags {
            // Acquire and release: the decisions that others have seen, and those that were seen
            // here.
            (self.decided.0).fetch_max(self.find_decided(), Ordering::AcqRel);
        }
    }

    /// Fixes a snapshot at the counter, and returns when everything up to there is decided.
    fn await_present(&self, worker: usize) -> u64 {
        let slot = &self.slots[worker];
        let bound = self.counter.0.load(Ordering::Relaxed);
        slot.reading.0.store(bound | BOUND, Ordering::Relaxed);
        // Pairs with the fence in `look`.
        fence(Ordering::SeqCst);
        let snapshot = self.counter.0.load(Ordering::SeqCst);
        slot.reading.0.store(snapshot, Ordering::Release);
        if Canary::SnapshotNotAwaited.sings() {
            return snapshot;
        }
        let used = self.used.load(Ordering::SeqCst);
        for other in &self.slots[..used] {
            let mut spinner = Spinner::default();
            // Acquire pairs with the release in `end_commit`.
            while commits_within(other.committing.0.load(Ordering::Acquire), snapshot) {
                spinner.spin();
            }
        }
        snapshot
    }

    /// Ends what `worker` began with [`Clock::begin_reading`].
    #[inline]
    pub fn end_reading(&self, worker: usize) {
        // Release pairs with the acquire in `look`: the reader looks at no version any more.
        self.slots[worker].reading.0.store(IDLE, Ordering::Release);
    }

    /// Whether a transaction reads a snapshot.
    pub fn has_snapshots(&self) -> bool {
        let used = self.used.load(Ordering::SeqCst);
        let mut slots = self.slots[..used].iter();
        slots.any(|slot| slot.reading.0.load(Ordering::Acquire) != IDLE)
    }

    /// Finds out which versions are still wanted.
    pub fn look(&self, horizon: &mut Horizon) {
        let now = match self.lags {
            true => {
                self.note_decided();
                self.decided.0.load(Ordering::Acquire)
            }
            false => self.now(),
        };
        // Pairs with the fences where a snapshot begins; see the module's documentation.
        fence(Ordering::SeqCst);
        horizon.active.clear();
        horizon.open = now;
        horizon.oldest_snapshot = u64::MAX;
        let used = self.used.load(Ordering::SeqCst);
        for slot in &self.slots[..used] {
            // Acquire pairs with the releases when they end.
            let reading = slot.reading.0.load(Ordering::Acquire);
            let committing = slot.committing.0.load(Ordering::Acquire);
            if reading != IDLE {
                horizon.oldest_snapshot = horizon.oldest_snapshot.min(reading & !BOUND);
            }
            // A transaction that commits validates what it read at its timestamp: it does without,
            // but only by failing.
            for shown in [reading, committing] {
                match shown {
                    IDLE => {}
                    bound if bound & BOUND != 0 => {
                        horizon.open = horizon.open.min(bound & !BOUND);
                    }
                    timestamp => horizon.active.push(timestamp),
                }
            }
        }
        horizon.active.sort_unstable();
        let first = horizon.active.first().copied().unwrap_or(u64::MAX);
        horizon.floor = first.min(horizon.open);
    }
}

/// Whether a worker that shows `committing` may still commit at `snapshot` or before.
#[inline]
fn commits_within(committing: u64, snapshot: u64) -> bool {
    match committing {
        IDLE => false,
        bound if bound & BOUND != 0 => bound & !BOUND < snapshot,
        timestamp => timestamp <= snapshot,
    }
}

/// Up to where a worker that shows `committing` has decided what it commits.
#[inline]
fn decided_before(committing: u64) -> u64 {
    match committing {
        IDLE => u64::MAX,
        bound if bound & BOUND != 0 => bound & !BOUND,
        timestamp => timestamp - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_keeps_what_somebody_may_read() {
        let clock = Clock::new(4, false);
        (0..4).for_each(|worker| clock.join(worker));
        clock.raise(10);
        let snapshot = clock.begin_reading(0);
        assert_eq!(snapshot, 10);
        for _ in 0..5 {
            clock.begin_commit(1);
            clock.end_commit(1);
        }
        let mut horizon = Horizon::default();
        clock.look(&mut horizon);
        assert!(horizon.has_passed(10) && !horizon.has_passed(11));
        assert!(horizon.wants(7, 11), "the reader's version");
        assert!(!horizon.wants(11, 12), "between the reader and the present");
        assert!(horizon.wants(15, 16), "the newest");
        assert!(horizon.is_older_than_snapshots(9) && !horizon.is_older_than_snapshots(10));
        let timestamp = clock.begin_commit(2);
        clock.look(&mut horizon);
        assert!(horizon.wants(15, timestamp + 1), "validated against");
        clock.end_reading(0);
        clock.end_commit(2);
        clock.look(&mut horizon);
        assert!(horizon.has_passed(timestamp));
    }

    #[test]
    fn a_snapshot_waits_for_those_who_commit_before_it() {
        assert!(commits_within(5, 5) && !commits_within(6, 5));
        assert!(commits_within(4 | BOUND, 5) && !commits_within(5 | BOUND, 5));
        assert!(!commits_within(IDLE, 5));
    }

    #[test]
    fn a_snapshot_that_lags_is_before_those_who_commit() {
        let clock = Clock::new(3, true);
        (0..3).for_each(|worker| clock.join(worker));
        clock.raise(10);
        let timestamp = clock.begin_commit(1);
        clock.begin_commit(2);
        clock.end_commit(2);
        assert_eq!(clock.begin_reading(0), timestamp - 1);
        let mut horizon = Horizon::default();
        clock.look(&mut horizon);
        assert!(horizon.has_passed(timestamp - 1) && !horizon.has_passed(timestamp));
        clock.end_reading(0);
        // Without the reader, too: another one would begin there.
        clock.look(&mut horizon);
        assert!(!horizon.has_passed(timestamp));
        clock.end_commit(1);
        clock.look(&mut horizon);
        assert!(horizon.has_passed(timestamp + 1));
        assert_eq!(clock.begin_reading(0), timestamp + 1);
    }

    #[test]
    fn what_is_decided_stays_so_whoever_shows_an_old_bound() {
        let clock = Clock::new(2, true);
        (0..2).for_each(|worker| clock.join(worker));
        clock.raise(10);
        clock.note_decided();
        // A worker that has read the counter long ago; its timestamp will be a new one.
        let slot = &clock.slots[1];
        slot.committing.0.store(3 | BOUND, Ordering::Relaxed);
        assert_eq!(clock.begin_reading(0), 10);
        let mut horizon = Horizon::default();
        clock.look(&mut horizon);
        assert!(
            horizon.wants(2, 4),
            "no look lets go of more than it has to"
        );
    }
}
