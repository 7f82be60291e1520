//! How long statements take, by their command, and calls by their procedure.

use std::collections::BTreeMap;

use kiln_platform::counter::Counter;
use kiln_platform::sync::{Arc, RwLock};

/// The bounds of the buckets, in nanoseconds.
pub const BOUNDS_NS: [u64; 16] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
];

/// Procedures that are counted apart; those that are called first. All others are one.
const PROCEDURES_MAX: usize = 100;

/// The name of these.
const OTHER: &str = "other";

/// Commands that are counted apart.
const COMMANDS: [&str; 8] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "CALL", "COMMIT", "COPY", OTHER,
];

/// Durations by size.
#[derive(Debug, Default)]
pub struct Histogram {
    /// The last one is of what exceeds all bounds.
    buckets: [Counter; BOUNDS_NS.len() + 1],
    sum_ns: Counter,
}

impl Histogram {
    fn add(&self, elapsed_ns: u64) {
        let bucket = BOUNDS_NS.partition_point(|bound_ns| *bound_ns < elapsed_ns);
        self.buckets[bucket].add_shared(1);
        self.sum_ns.add_shared(elapsed_ns);
    }

    /// How many durations are in each bucket, and behind those of [`BOUNDS_NS`] those that exceed
    /// all.
    pub fn counts(&self) -> [u64; BOUNDS_NS.len() + 1] {
        std::array::from_fn(|bucket| self.buckets[bucket].get())
    }

    /// Their sum in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.get()
    }
}

/// The durations of all statements.
#[derive(Debug, Default)]
pub struct Durations {
    commands: [Histogram; COMMANDS.len()],
    procedures: RwLock<BTreeMap<Box<str>, Arc<Histogram>>>,
}

impl Durations {
    /// Adds a statement of this command that has ended, which called this procedure if it was a
    /// CALL.
    pub fn add(&self, command: &str, procedure: Option<&str>, elapsed_ns: u64) {
        let position = COMMANDS.iter().position(|known| *known == command);
        self.commands[position.unwrap_or(COMMANDS.len() - 1)].add(elapsed_ns);
        if let Some(procedure) = procedure {
            self.add_call(procedure, elapsed_ns);
        }
    }

    fn add_call(&self, name: &str, elapsed_ns: u64) {
        let procedures = self.procedures.read();
        let known = procedures.unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(histogram) = known.get(name) {
            return histogram.add(elapsed_ns);
        }
        drop(known);
        let procedures = self.procedures.write();
        let mut known = procedures.unwrap_or_else(|poisoned| poisoned.into_inner());
        let name = match known.len() < PROCEDURES_MAX {
            true => name,
            false => OTHER,
        };
        known.entry(name.into()).or_default().add(elapsed_ns);
    }

    /// Those of each command that there was.
    pub fn by_command(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let commands = COMMANDS.into_iter().zip(&self.commands);
        commands.filter(|(_, histogram)| histogram.counts() != [0; BOUNDS_NS.len() + 1])
    }

    /// Those of the calls of each procedure that was called.
    pub fn by_procedure(&self) -> Vec<(Box<str>, Arc<Histogram>)> {
        let procedures = self.procedures.read();
        let known = procedures.unwrap_or_else(|poisoned| poisoned.into_inner());
        let pairs = known.iter();
        pairs.map(|(name, it)| (name.clone(), it.clone())).collect()
    }
}

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_the_bucket_whose_bound_they_do_not_exceed() {
        let histogram = Histogram::default();
        for elapsed_ns in [
            0,
            50_000,
            50_001,
            10_000_000_000,
            10_000_000_001,
            u64::MAX / 2,
        ] {
            histogram.add(elapsed_ns);
        }
        let counts = histogram.counts();
        assert_eq!((counts[0], counts[1]), (2, 1));
        assert_eq!(counts[BOUNDS_NS.len() - 1..], [1, 2]);
        assert_eq!(counts.iter().sum::<u64>(), 6);
    }

    #[test]
    fn procedures_beyond_the_most_are_one() {
        let durations = Durations::default();
        for number in 0..3 * PROCEDURES_MAX {
            durations.add_call(&format!("procedure_{number}"), 1);
        }
        let by_procedure = durations.by_procedure();
        assert_eq!(by_procedure.len(), PROCEDURES_MAX + 1);
        let other = by_procedure.iter().find(|(name, _)| **name == *OTHER);
        let other = other.map(|(_, histogram)| histogram.counts()[0]);
        assert_eq!(other, Some(2 * PROCEDURES_MAX as u64));
    }
}
