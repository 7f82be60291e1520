//! The checkpointer: a thread that writes a checkpoint when a recovery would take too long, and
//! leaves a remark in the data directory when the database takes no changes any more.

use kiln_durability::{RecoveryRates, moment_text};
use kiln_platform::atomic::Ordering;
use kiln_platform::sync::{Arc, lock};
use kiln_platform::{thread, time};
use kiln_storage::error::Result;

use super::checkpoint::write_checkpoint;
use crate::engine::Engine;
use crate::kernel::{CheckpointReport, EngineInner, ReadOnly};

/// How often it looks.
const LOOK_NS: u64 = 100_000_000;
/// Nanoseconds for which it waits after a checkpoint that failed.
const RETRY_NS: u64 = 10_000_000_000;

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
        self.inner().kept.last()
    }
}

/// The checkpointer's life: until the database is closed.
pub(crate) fn keep(inner: &Arc<EngineInner>) {
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
        inner.kept.set_last(written);
    }
}

impl EngineInner {
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
