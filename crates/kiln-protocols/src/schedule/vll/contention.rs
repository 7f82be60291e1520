//! The bit arrays of the selective contention analysis (VLL §2.6).

use crate::shared::planning::{Claim, groups};

/// Bits of each array: 100 kB, so that both fit into a second-level cache.
const BITS: u64 = 819_200;

/// The position of a claim in the arrays, with the lowest bit for exclusive ones.
pub(super) fn position(claim: Claim) -> u32 {
    let position = ((groups::hash(claim.record.address()) >> 32) * BITS) >> 32;
    (position as u32) << 1 | u32::from(claim.exclusive)
}

/// Which records, by hash, the transactions scanned so far write (`D_X`) and read (`D_S`).
pub struct BitArrays {
    exclusive: Box<[u64]>,
    shared: Box<[u64]>,
    /// The words that are not 0. The paper starts each time with arrays of zeroes; here only what
    /// was set is reset, as queues are short.
    dirty: Vec<u32>,
}

impl BitArrays {
    pub fn new() -> BitArrays {
        let zeroes = || vec![0; (BITS / 64) as usize].into_boxed_slice();
        BitArrays {
            exclusive: zeroes(),
            shared: zeroes(),
            dirty: Vec::new(),
        }
    }

    /// Adds a transaction; whether it has nothing in common with those before it.
    pub fn add(&mut self, positions: &[u32]) -> bool {
        let mut is_clear = true;
        for &position in positions {
            let (word, bit) = ((position >> 7) as usize, 1_u64 << (position >> 1 & 63));
            let exclusive = position & 1 != 0;
            is_clear &= self.exclusive[word] & bit == 0;
            is_clear &= !exclusive || self.shared[word] & bit == 0;
        }
        // After all were looked at: two of its own that hash to one place are no conflict.
        for &position in positions {
            let (word, bit) = ((position >> 7) as usize, 1_u64 << (position >> 1 & 63));
            match position & 1 {
                0 => self.shared[word] |= bit,
                _ => self.exclusive[word] |= bit,
            }
            self.dirty.push(word as u32);
        }
        is_clear
    }

    /// Forgets all transactions.
    pub fn clear(&mut self) {
        for word in self.dirty.drain(..) {
            self.exclusive[word as usize] = 0;
            self.shared[word as usize] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_clear_of_those_before_it_or_not() {
        let mut arrays = BitArrays::new();
        let (shared, exclusive) = (|at: u32| at << 1, |at: u32| at << 1 | 1);
        assert!(arrays.add(&[shared(5), exclusive(70), exclusive(70)]));
        assert!(arrays.add(&[shared(5), shared(6), exclusive(819_199)]));
        assert!(!arrays.add(&[exclusive(5)]), "it was read");
        assert!(!arrays.add(&[shared(70)]), "it was written");
        assert!(!arrays.add(&[shared(9), exclusive(819_199)]));
        assert!(!arrays.add(&[shared(5)]), "one before writes it by now");
        assert!(arrays.add(&[shared(6)]));
        arrays.clear();
        assert!(arrays.add(&[exclusive(5), exclusive(70)]));
    }
}
