//! What one worker counts.

use std::collections::BTreeMap;

use kiln_procedure::AbortCause;

use crate::batches::BatchStatistics;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Running the procedure: its steps, its look-ups and scans, reads and buffered writes.
    Execute,
    /// Finding out which records the procedure will meet.
    Plan,
    /// Taking locks at commit, or all of them before the run; else waiting for a lock.
    Lock,
    /// Validating what was read.
    Validate,
    /// Running the procedure again over what its last run kept.
    Restore,
    /// Installing writes, releasing locks, unlinking.
    Install,
    /// Undoing a failed or rejected attempt.
    Abort,
    /// Waiting before the next attempt.
    Wait,
}

impl Phase {
    /// All phases, by their numbers.
    pub const ALL: [Phase; 8] = [
        Phase::Execute,
        Phase::Plan,
        Phase::Lock,
        Phase::Validate,
        Phase::Restore,
        Phase::Install,
        Phase::Abort,
        Phase::Wait,
    ];

    /// A short name for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Execute => "execute",
            Phase::Plan => "plan",
            Phase::Lock => "lock",
            Phase::Validate => "validate",
            Phase::Restore => "restore",
            Phase::Install => "install",
            Phase::Abort => "abort",
            Phase::Wait => "wait",
        }
    }
}

/// Counters of one worker, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions whose procedure raised.
    pub rejected: u64,
    /// Transactions whose deadline passed.
    pub expired: u64,
    /// Failed attempts, by cause, in the order of [`AbortCause::ALL`].
    pub aborts: [u64; AbortCause::ALL.len()],
    /// Runs of procedures, or of parts of them, that restored an attempt under
    /// [`Protocol::Healing`](crate::Protocol).
    pub healings: u64,
    /// Operations of procedures that these ran again: of parts those that are in them.
    pub run_again: u64,
    /// Operations of the procedures, counted as often.
    pub run_again_of: u64,
    /// How often all of a procedure ran again, by the reason why no part of it would do.
    pub reruns: BTreeMap<&'static str, u64>,
    /// Operations that gave something else in such a run, by procedure and the line of their
    /// statement, which is 0 for those that have none.
    pub restored: BTreeMap<(String, u32), u64>,
    /// How often an attempt under [`Protocol::Healing`](crate::Protocol) let go of locks to wait
    /// for one that comes before them.
    pub locks_let_go: u64,
    /// Failed attempts under that protocol, by procedure, line and cause. The line is 0 where it is
    /// not known at which statement.
    pub failed: BTreeMap<(String, u32, &'static str), u64>,
    /// Cycles of the measured transactions, by phase, in the order of [`Phase::ALL`].
    pub phase_cycles: [u64; Phase::ALL.len()],
    /// Batches of calls, where there are any.
    pub batches: BatchStatistics,
}

/// Versions of records that are kept outside of their rows, those that wait for their epoch
/// included. Exact when no transaction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// How many there are.
    pub count: usize,
    /// Bytes taken from the system for them, used or not.
    pub bytes: usize,
}

impl Statistics {
    /// Transactions that have come to an end.
    #[inline]
    pub fn ended(&self) -> u64 {
        self.committed + self.rejected + self.expired
    }

    /// Failed attempts of all causes.
    pub fn aborts_total(&self) -> u64 {
        self.aborts.iter().sum()
    }

    /// The part of their procedures' operations that restorations ran again, from 0 to 1.
    pub fn run_again_share(&self) -> f64 {
        self.run_again as f64 / self.run_again_of.max(1) as f64
    }

    /// Operations that were restored.
    pub fn restored_total(&self) -> u64 {
        self.restored.values().sum()
    }

    /// Adds another worker's counters.
    pub fn add(&mut self, other: &Statistics) {
        self.committed += other.committed;
        self.rejected += other.rejected;
        self.expired += other.expired;
        for (sum, value) in self.aborts.iter_mut().zip(other.aborts) {
            *sum += value;
        }
        self.healings += other.healings;
        self.run_again += other.run_again;
        self.run_again_of += other.run_again_of;
        for (reason, count) in &other.reruns {
            *self.reruns.entry(*reason).or_default() += count;
        }
        for (place, count) in &other.restored {
            *self.restored.entry(place.clone()).or_default() += count;
        }
        self.locks_let_go += other.locks_let_go;
        for (place, count) in &other.failed {
            *self.failed.entry(place.clone()).or_default() += count;
        }
        for (sum, value) in self.phase_cycles.iter_mut().zip(other.phase_cycles) {
            *sum += value;
        }
        self.batches.add(&other.batches);
    }
}
