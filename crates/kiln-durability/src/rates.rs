//! Rates: how fast a recovery reads, from which the time of the next one is estimated.
//!
//! A data directory keeps them as one thread would have them, as the next recovery may have another
//! number of threads. With the same number an estimate is what was measured; with another one it
//! rests on how recoveries scale as a rule.

use kiln_platform::thread;

/// How fast a recovery reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryRates {
    /// Bytes of checkpoints a second.
    pub checkpoint_bytes_per_s: u64,
    /// Bytes of log a second.
    pub log_bytes_per_s: u64,
}

impl Default for RecoveryRates {
    /// What one core of a virtual machine of 2024 does with a log of TPC-C: a recovery measures its
    /// own.
    fn default() -> RecoveryRates {
        RecoveryRates {
            checkpoint_bytes_per_s: 100_000_000,
            log_bytes_per_s: 105_000_000,
        }
    }
}

/// The part of a recovery's work that one thread does while the others wait: it reads files, and
/// looks at their checksums.
const ALONE: f64 = 0.3;

/// How many times as fast as one thread so many are, as a rule, on the cores of this machine.
fn speedup(threads: usize) -> f64 {
    let threads = threads.clamp(1, thread::available_cores().max(1));
    1.0 / (ALONE + (1.0 - ALONE) / threads as f64)
}

impl RecoveryRates {
    /// These rates of one thread, for so many.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> RecoveryRates {
        self.times(speedup(threads))
    }

    /// These rates, which so many threads have, for one.
    #[must_use]
    pub fn of_one_thread(self, threads: usize) -> RecoveryRates {
        self.times(1.0 / speedup(threads))
    }

    fn times(self, factor: f64) -> RecoveryRates {
        let rate = |rate: u64| ((rate as f64 * factor).round() as u64).max(1);
        RecoveryRates {
            checkpoint_bytes_per_s: rate(self.checkpoint_bytes_per_s),
            log_bytes_per_s: rate(self.log_bytes_per_s),
        }
    }

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
    /// How fast one thread would have been, where it read enough to tell; else how fast it was in
    /// former ones.
    pub rates: RecoveryRates,
    /// How long it was estimated to take when it began, in microseconds.
    pub estimated_us: u64,
    /// How long it took, in microseconds.
    pub elapsed_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_same_again_with_as_many_threads_and_not_far_off_with_others() {
        let measured = RecoveryRates {
            checkpoint_bytes_per_s: 123_456_789,
            log_bytes_per_s: 98_765_432,
        };
        for threads in [1, 2, 3, 7, 16, 1_000] {
            let again = measured.of_one_thread(threads).with_threads(threads);
            let near = |left: u64, right: u64| left.abs_diff(right) < 10;
            assert!(
                near(again.log_bytes_per_s, measured.log_bytes_per_s),
                "{again:?}"
            );
            let one = measured.of_one_thread(threads);
            assert!(one.log_bytes_per_s <= measured.log_bytes_per_s, "{one:?}");
            assert!(
                4 * one.log_bytes_per_s > measured.log_bytes_per_s,
                "{one:?}"
            );
        }
        assert_eq!(measured.with_threads(1), measured);
    }
}
