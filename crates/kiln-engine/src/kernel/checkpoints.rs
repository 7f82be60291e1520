//! What is known of checkpoints: how many there were, and what a recovery from the last one would
//! have to read.

use kiln_durability::RecoveryRates;
use kiln_durability::log::Log;
use kiln_platform::sync::{Mutex, lock};
use kiln_storage::error::{Error, Result};
use kiln_storage::log_epoch::LogEpoch;

/// It writes none for a log that is shorter.
const LOG_BYTES_MIN: u64 = 16 << 20;

/// What a checkpoint has written.
#[derive(Clone, Debug)]
pub struct CheckpointReport {
    /// Its number.
    pub number: u64,
    /// The log epoch from which on a recovery replays the log.
    pub start_epoch: LogEpoch,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// For how much of that transactions were held up, in nanoseconds.
    pub held_ns: u64,
    /// And for how long at a time at most.
    pub held_max_ns: u64,
    /// The seconds that a recovery would take now, as estimated.
    pub recovery_estimate_s: f64,
}

/// Checkpoints of the data directory.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckpointMetrics {
    /// How many were written since the database was opened.
    pub written: u64,
    /// How many failed since then.
    pub failed: u64,
    /// Why the last one failed that did.
    pub last_failure: Option<Error>,
    /// The last one that was written since then.
    pub last: Option<CheckpointReport>,
    /// When the last one was complete, also an earlier process's, in microseconds since 1970.
    pub last_written_us: Option<i64>,
}

/// What checkpoints and the log amount to.
#[derive(Default)]
pub(crate) struct Kept {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rates: RecoveryRates,
    /// Bytes of the last checkpoint.
    checkpoint_bytes: u64,
    /// Bytes of the log that a recovery reads besides those that were written since the log was
    /// opened.
    log_bytes_before: u64,
    /// Bytes that had been written since then when the last checkpoint began.
    written_before: u64,
    /// The last checkpoint, or why there is none.
    last: Option<Result<CheckpointReport>>,
    /// Checkpoints since the database was opened, those asked for included.
    counted: CheckpointMetrics,
}

impl Kept {
    /// What a recovery has read, and how fast.
    pub fn set_recovered(&self, rates: RecoveryRates, checkpoint_bytes: u64, log_bytes: u64) {
        let mut state = lock(&self.state);
        (state.rates, state.checkpoint_bytes) = (rates, checkpoint_bytes);
        state.log_bytes_before = log_bytes;
    }

    /// A checkpoint with this many bytes has begun when `written_before` bytes had been written to
    /// the log, of which a recovery reads the last `log_bytes_before`: those in the segment in
    /// which it begins.
    pub fn set_checkpoint(&self, bytes: u64, written_before: u64, log_bytes_before: u64) {
        let mut state = lock(&self.state);
        (state.checkpoint_bytes, state.written_before) = (bytes, written_before);
        state.log_bytes_before = log_bytes_before;
    }

    /// Bytes of the log that a recovery reads, and the seconds that a recovery would take.
    pub fn estimate(&self, log: &Log) -> (u64, f64) {
        let state = lock(&self.state);
        let written = log.written_bytes() - state.written_before;
        let log_bytes = state.log_bytes_before + written;
        let seconds = state.rates.seconds(state.checkpoint_bytes, log_bytes);
        (log_bytes, seconds)
    }

    /// Counts a checkpoint that was written, or was not.
    pub fn count_checkpoint(&self, written: &Result<CheckpointReport>) {
        let counted = &mut lock(&self.state).counted;
        match written {
            Ok(report) => {
                counted.written += 1;
                counted.last = Some(report.clone());
            }
            Err(error) => {
                counted.failed += 1;
                counted.last_failure = Some(error.clone());
            }
        }
    }

    /// What was counted of checkpoints; the last one in the data directory was complete then.
    pub fn metrics(&self, last_written_us: Option<i64>) -> CheckpointMetrics {
        CheckpointMetrics {
            last_written_us,
            ..lock(&self.state).counted.clone()
        }
    }

    /// Whether a checkpoint is due.
    pub fn is_due(&self, log: &Log, target_s: u64, log_bytes_max: u64) -> bool {
        if target_s == 0 {
            return false;
        }
        let (log_bytes, seconds) = self.estimate(log);
        // One whose rows alone take longer is not written again for each few bytes of log.
        let least = LOG_BYTES_MIN.max(lock(&self.state).checkpoint_bytes / 2);
        log_bytes >= least && seconds > target_s as f64 || log_bytes >= log_bytes_max
    }

    /// The checkpointer has written a checkpoint, or could not.
    pub fn set_last(&self, written: Result<CheckpointReport>) {
        lock(&self.state).last = Some(written);
    }

    /// The last checkpoint of the checkpointer, or why there is none.
    pub fn last(&self) -> Option<Result<CheckpointReport>> {
        lock(&self.state).last.clone()
    }
}
