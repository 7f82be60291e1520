//! Dates and row numbers that calls bring along, so that a procedure has the same effect wherever
//! it runs.

use kiln_platform::time;

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400 * 1_000_000;

/// The date of populations, and where logical clocks begin: 2026-01-01, in microseconds since
/// 2000-01-01.
pub(crate) const START: i64 = 9_497 * DAY;

/// Row numbers that are new: to the population, to other workers, and to other runs on the same
/// database, which would draw the same numbers again from the same seed.
#[derive(Debug)]
pub(crate) struct FreshNumbers {
    next: i64,
}

impl FreshNumbers {
    /// Workers that have numbers of their own.
    const WORKERS: i64 = 1 << 12;

    /// The numbers of worker `worker` in a run that begins now.
    ///
    /// They count up from the time in microseconds. A call takes longer than one, so that the
    /// numbers of one run end before those of the next begin.
    pub(crate) fn new(worker: usize) -> FreshNumbers {
        let begin_us = (time::now_ns() / 1_000) as i64;
        FreshNumbers {
            next: (1 << 40) + begin_us * Self::WORKERS + worker as i64 % Self::WORKERS,
        }
    }

    /// A number that no row has.
    pub(crate) fn next(&mut self) -> i64 {
        let number = self.next;
        self.next += Self::WORKERS;
        number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_are_new() {
        let mut seen = BTreeSet::new();
        for _run in 0..3 {
            let mut workers: Vec<_> = (0..5).map(FreshNumbers::new).collect();
            for _call in 0..100 {
                for worker in &mut workers {
                    let number = worker.next();
                    assert!(number >= 1 << 40 && seen.insert(number), "{number}");
                }
            }
            kiln_platform::thread::sleep(1_000_000);
        }
    }
}
