//! Numbers of workers: sets of them, and numbers that are packed with others into a word.

use kiln_storage::table::WORKERS_MAX;

/// The low bits of a word that hold a worker's number, beside an age or an attempt's number.
pub const WORKER_BITS: u32 = WORKERS_MAX.ilog2();

const _: () = assert!(WORKERS_MAX.is_power_of_two());

/// The worker in the low bits of a word.
#[inline(always)]
pub fn worker_in(word: u64) -> usize {
    word as usize & (WORKERS_MAX - 1)
}

/// A set of workers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct WorkerSet([u64; WORKERS_MAX / 64]);

impl WorkerSet {
    /// Adds a worker.
    ///
    /// # Panics
    /// When its number is not below [`WORKERS_MAX`].
    #[inline(always)]
    pub fn insert(&mut self, worker: usize) {
        self.0[worker / 64] |= 1 << (worker % 64);
    }

    /// Whether the worker is in it; its number is below [`WORKERS_MAX`].
    #[inline(always)]
    pub fn contains(&self, worker: usize) -> bool {
        self.0[worker / 64] & 1 << (worker % 64) != 0
    }

    /// Whether there is none in it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORKERS_MAX / 64]
    }

    /// Its workers, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(word, bits)| {
            let next = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
            let lefts = std::iter::successors(Some(bits).filter(|bits| *bits != 0), next);
            lefts.map(move |left| word * 64 + left.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_the_first_worker_and_the_last() {
        let mut set = WorkerSet::default();
        assert!(set.is_empty());
        let workers = [0, 1, 63, 64, 127, 128, 191, 200, WORKERS_MAX - 1];
        workers.iter().for_each(|worker| set.insert(*worker));
        assert!(!set.is_empty());
        assert!(set.iter().eq(workers));
        for worker in 0..WORKERS_MAX {
            assert_eq!(set.contains(worker), workers.contains(&worker), "{worker}");
        }
    }

    #[test]
    fn a_number_comes_back_out_of_its_word() {
        for worker in [0, 127, 128, WORKERS_MAX - 1] {
            assert_eq!(worker_in(7 << WORKER_BITS | worker as u64), worker);
        }
    }
}
