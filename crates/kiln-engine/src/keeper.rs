//! The keeper: a thread that writes a checkpoint when a recovery would take too long, and leaves a
//! remark in the data directory when the database takes no changes any more.

use kiln_durability::RecoveryRates;
use kiln_durability::log::Log;
use kiln_durability::moment_text;
use kiln_platform::atomic::Ordering;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::{thread, time};
use kiln_storage::error::Result;

use crate::checkpoint::{CheckpointReport, write_checkpoint};
use crate::durability::ReadOnly;
use crate::engine::Engine;
use crate::metrics::CheckpointMetrics;
use crate::shared::Shared;

/// How often it looks.
const LOOK_NS: u64 = 100_000_000;
/// Nanoseconds for which it waits after a checkpoint that failed.
const RETRY_NS: u64 = 10_000_000_000;
/// It writes none for a log that is shorter.
const LOG_BYTES_MIN: u64 = 16 << 20;

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
    fn is_due(&self, log: &Log, target_s: u64, log_bytes_max: u64) -> bool {
        if target_s == 0 {
            return false;
        }
        let (log_bytes, seconds) = self.estimate(log);
        // One whose rows alone take longer is not written again for each few bytes of log.
        let least = LOG_BYTES_MIN.max(lock(&self.state).checkpoint_bytes / 2);
        log_bytes >= least && seconds > target_s as f64 || log_bytes >= log_bytes_max
    }
}

impl Engine {
    /// The seconds that a recovery of the data directory would take, as estimated from its bytes
    /// and the rates of the last recovery that could tell; `None` without a data directory.
    pub fn recovery_estimate_s(&self) -> Option<f64> {
        let log = self.log()?;
        Some(self.inner().kept.estimate(log).1)
    }

    /// Says what a recovery has read, and how fast, from which the next one is estimated.
    pub fn set_recovered(&self, rates: RecoveryRates, checkpoint_bytes: u64, log_bytes: u64) {
        let kept = &self.inner().kept;
        kept.set_recovered(rates, checkpoint_bytes, log_bytes);
    }

    /// The last checkpoint that was written by itself since the database was opened, or why it
    /// could not be.
    pub fn last_checkpoint(&self) -> Option<Result<CheckpointReport>> {
        lock(&self.inner().kept.state).last.clone()
    }
}

/// The keeper's life: until the database is closed.
pub(crate) fn keep(inner: &Arc<Shared>) {
    let (target_s, bytes_max) = (
        inner.options.recovery_target_s,
        inner.options.checkpoint_log_bytes,
    );
    let mut next_ns = 0;
    let mut remarked = None;
    while !inner.is_stopping() {
        thread::park_for(LOOK_NS);
        let Some(log) = inner.log() else {
            return;
        };
        if log.refuses() {
            let read_only = inner.read_only();
            if remarked != read_only {
                remarked = read_only;
                inner.remark(remarked.as_ref());
            }
            continue;
        }
        if time::now_ns() < next_ns || !inner.kept.is_due(log, target_s, bytes_max) {
            continue;
        }
        let written = write_checkpoint(inner);
        if written.is_err() {
            next_ns = time::now_ns() + RETRY_NS;
        }
        lock(&inner.kept.state).last = Some(written);
    }
}

impl Shared {
    /// Leaves a remark in the data directory. The disk may refuse that as well: then there is none.
    fn remark(&self, read_only: Option<&ReadOnly>) {
        let directory = lock(&self.data_directory).clone();
        if let (Some(directory), Some(read_only)) = (directory, read_only) {
            let when = moment_text(time::wall_clock_us());
            let _ = directory.remark(&format!("{read_only}, since {when}"));
        }
    }

    /// Whether the database is being closed.
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
