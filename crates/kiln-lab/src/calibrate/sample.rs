//! Repeated measurements of one duration.

use kiln_platform::time;

/// What several rounds measured, in nanoseconds per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The shortest round.
    pub least: f64,
    /// The round that a quarter of the rounds are not longer than. Disturbances by other programs
    /// make rounds longer and never shorter, so this is taken for the machine's own time: it
    /// forgives one disturbed round in two, and unlike the shortest it needs more than one lucky
    /// round.
    pub quartile: f64,
    /// The middle round.
    pub median: f64,
}

impl Sample {
    /// What `rounds` came to.
    ///
    /// # Panics
    /// When there was no round.
    pub fn of(mut rounds: Vec<f64>) -> Sample {
        assert!(!rounds.is_empty(), "nothing was measured");
        rounds.sort_by(f64::total_cmp);
        Sample {
            least: rounds[0],
            quartile: rounds[(rounds.len() - 1) / 4],
            median: rounds[(rounds.len() - 1) / 2],
        }
    }

    /// Runs `body` in `rounds` rounds after one that does not count; each does `operations` of what
    /// is measured.
    pub(super) fn measure(rounds: usize, operations: u64, mut body: impl FnMut()) -> Sample {
        body();
        let round = |_| {
            let start = time::now_ns();
            body();
            (time::now_ns() - start) as f64 / operations as f64
        };
        Sample::of((0..rounds).map(round).collect())
    }

    /// Every figure less `nanoseconds`, and no less than 0.
    pub(super) fn less(self, nanoseconds: f64) -> Sample {
        Sample {
            least: (self.least - nanoseconds).max(0.0),
            quartile: (self.quartile - nanoseconds).max(0.0),
            median: (self.median - nanoseconds).max(0.0),
        }
    }

    /// The quartile in whole picoseconds.
    pub fn picoseconds(&self) -> u64 {
        (self.quartile * 1_000.0).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_forgive_disturbed_rounds() {
        let sample = Sample::of(vec![90.0, 10.0, 12.0, 11.0, 70.0]);
        assert_eq!(
            (sample.least, sample.quartile, sample.median),
            (10.0, 11.0, 12.0)
        );
        assert_eq!(Sample::of(vec![3.5]).median, 3.5);
        assert_eq!(sample.less(10.5).least, 0.0);
        assert_eq!(sample.picoseconds(), 11_000);
    }

    #[test]
    fn longer_work_measures_longer() {
        let spin = |turns: u64| {
            Sample::measure(5, 1, || {
                for turn in 0..turns {
                    std::hint::black_box(turn);
                }
            })
        };
        assert!(spin(1_000_000).least > spin(1_000).least);
    }
}
