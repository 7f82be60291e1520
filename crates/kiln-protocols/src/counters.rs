//! What one worker counts, for all to read at any time.

use kiln_platform::counter::Counter;
use kiln_procedure::AbortCause;
use kiln_storage::error::SqlState;

use crate::{Outcome, Statistics};

/// The classes of SQLSTATE that PostgreSQL assigns (appendix A of its manual) and rejections are
/// counted by.
const CLASSES: [&str; 42] = [
    "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "20", "21", "22", "23", "24",
    "25", "26", "27", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44",
    "53", "54", "55", "57", "58", "72", "F0", "HV", "P0", "XX",
];

/// The name under which all other classes are counted: those that `RAISE … USING ERRCODE` makes up.
pub const OTHER_CLASS: &str = "other";

/// Counts of one worker. It alone adds to them, on cache lines that no other worker writes.
#[repr(align(128))]
#[derive(Debug)]
pub struct Counters {
    committed: Counter,
    rejected: Counter,
    expired: Counter,
    healings: Counter,
    aborts: [Counter; AbortCause::ALL.len()],
    /// Rejections, by the position of their class in [`CLASSES`]; behind those all others.
    classes: [Counter; CLASSES.len() + 1],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            committed: Counter::default(),
            rejected: Counter::default(),
            expired: Counter::default(),
            healings: Counter::default(),
            aborts: Default::default(),
            classes: std::array::from_fn(|_| Counter::default()),
        }
    }
}

impl Counters {
    /// Counts a transaction that committed.
    #[inline(always)]
    pub fn count_commit(&self) {
        self.committed.add(1);
    }

    /// Counts a transaction whose procedure raised an error of this state.
    #[cold]
    pub fn count_rejection(&self, state: SqlState) {
        self.rejected.add(1);
        let class = CLASSES.iter().position(|known| *known == state.class());
        self.classes[class.unwrap_or(CLASSES.len())].add(1);
    }

    /// Counts a transaction whose deadline passed.
    #[cold]
    pub fn count_expiry(&self) {
        self.expired.add(1);
    }

    /// Counts a transaction that ended so.
    #[inline]
    pub fn count(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Committed => self.count_commit(),
            Outcome::Rejected(error) => self.count_rejection(error.state()),
            Outcome::Expired => self.count_expiry(),
        }
    }

    /// Counts a failed attempt.
    #[inline]
    pub fn count_abort(&self, cause: AbortCause) {
        self.aborts[cause.number()].add(1);
    }

    /// Counts a run that restored an attempt.
    #[inline]
    pub fn count_healing(&self) {
        self.healings.add(1);
    }

    /// Transactions that have come to an end.
    #[inline(always)]
    pub fn ended(&self) -> u64 {
        self.committed.get() + self.rejected.get() + self.expired.get()
    }

    /// What was counted until now. While the worker runs, the numbers may be of different moments.
    pub fn read(&self) -> Counted {
        let classes = CLASSES.into_iter().chain([OTHER_CLASS]);
        let classes = classes
            .zip(&self.classes)
            .map(|(class, it)| (class, it.get()));
        Counted {
            committed: self.committed.get(),
            rejected: self.rejected.get(),
            expired: self.expired.get(),
            healings: self.healings.get(),
            aborts: std::array::from_fn(|cause| self.aborts[cause].get()),
            rejected_by_class: classes.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// What workers have counted; see [`Counters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counted {
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that raised.
    pub rejected: u64,
    /// Transactions whose deadline passed.
    pub expired: u64,
    /// Runs of procedures that restored an attempt, under [`Protocol::Healing`](crate::Protocol).
    pub healings: u64,
    /// Failed attempts, by cause, in the order of [`AbortCause::ALL`].
    pub aborts: [u64; AbortCause::ALL.len()],
    /// Transactions that raised, by class of their SQLSTATE: those classes of which there were any.
    /// Classes that PostgreSQL does not know are [`OTHER_CLASS`].
    pub rejected_by_class: Vec<(&'static str, u64)>,
}

impl Counted {
    /// Adds what another worker has counted.
    pub fn add(&mut self, other: &Counted) {
        self.committed += other.committed;
        self.rejected += other.rejected;
        self.expired += other.expired;
        self.healings += other.healings;
        for (sum, count) in self.aborts.iter_mut().zip(other.aborts) {
            *sum += count;
        }
        for &(class, count) in &other.rejected_by_class {
            match (self.rejected_by_class.iter_mut()).find(|(known, _)| *known == class) {
                Some((_, sum)) => *sum += count,
                None => self.rejected_by_class.push((class, count)),
            }
        }
    }

    /// Puts what was counted after `earlier` into a worker's statistics.
    pub(crate) fn since(&self, earlier: &Counted, statistics: &mut Statistics) {
        statistics.committed = self.committed - earlier.committed;
        statistics.rejected = self.rejected - earlier.rejected;
        statistics.expired = self.expired - earlier.expired;
        let aborts = self.aborts.iter().zip(earlier.aborts);
        for (count, (now, before)) in statistics.aborts.iter_mut().zip(aborts) {
            *count = now - before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_are_counted_by_class() {
        let counters = Counters::default();
        counters.count_commit();
        for state in ["23505", "23503", "P0001", "K0001", "ZZZZZ"] {
            counters.count_rejection(SqlState::parse(state).expect("it is a state"));
        }
        counters.count_abort(AbortCause::Phantom);
        let mut counted = counters.read();
        assert_eq!((counted.committed, counted.rejected), (1, 5));
        assert_eq!(counters.ended(), 6);
        let expected = [("23", 2), ("P0", 1), (OTHER_CLASS, 2)];
        assert_eq!(counted.rejected_by_class, expected);
        assert_eq!(counted.aborts[AbortCause::Phantom.number()], 1);
        let mut twice = Counted::default();
        twice.add(&counted);
        twice.add(&counted);
        counted
            .rejected_by_class
            .iter_mut()
            .for_each(|it| it.1 *= 2);
        assert_eq!(twice.rejected_by_class, counted.rejected_by_class);
        assert_eq!(twice.committed, 2);
    }
}
