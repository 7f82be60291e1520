//! Rates: how fast a recovery reads, from which the time of the next one is estimated.

/// How fast a recovery reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryRates {
    /// Bytes of checkpoints a second.
    pub checkpoint_bytes_per_s: u64,
    /// Bytes of log a second.
    pub log_bytes_per_s: u64,
}

impl Default for RecoveryRates {
    /// What one core of a virtual machine of 2024 does: a recovery measures its own.
    fn default() -> RecoveryRates {
        RecoveryRates {
            checkpoint_bytes_per_s: 100_000_000,
            log_bytes_per_s: 150_000_000,
        }
    }
}

impl RecoveryRates {
    /// The seconds that reading takes at these rates.
    pub fn seconds(&self, checkpoint_bytes: u64, log_bytes: u64) -> f64 {
        let seconds = |bytes: u64, rate: u64| bytes as f64 / rate.max(1) as f64;
        seconds(checkpoint_bytes, self.checkpoint_bytes_per_s)
            + seconds(log_bytes, self.log_bytes_per_s)
    }
}

/// What a database keeps of its last recovery, so that the next one is estimated from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryRecord {
    /// How fast it was, where it read enough to tell; else how fast former ones were.
    pub rates: RecoveryRates,
    /// How long it was estimated to take when it began, in microseconds.
    pub estimated_us: u64,
    /// How long it took, in microseconds.
    pub elapsed_us: u64,
}
