//! Keys as indexes see them: a fixed number of words whose order is the key order.

use std::cmp::Ordering as Order;
use std::fmt::Debug;

use kiln_platform::atomic::{AtomicU64, Ordering};

/// A fixed-size, totally ordered key.
///
/// Invariant: keys compare like their stored words from the first to the last, so that the top
/// bits of a key are the top bits of its first word.
pub trait Key: Copy + Ord + Eq + Debug + Send + Sync + 'static {
    /// The number of words of a stored key.
    const WORDS: usize;
    /// The least key.
    const MIN: Self;
    /// The greatest key.
    const MAX: Self;

    /// Reads a key from [`Key::WORDS`] words. While a writer is at work the result may be a
    /// mixture of two keys; the node's version tells.
    fn load(words: &[AtomicU64]) -> Self;

    /// Writes the key to [`Key::WORDS`] words.
    fn store(&self, words: &[AtomicU64]);

    /// Appends the key's bytes, which compare as the keys do.
    fn append_bytes(&self, bytes: &mut Vec<u8>);

    /// A hash of the key; all 64 bits are well mixed.
    fn hash(&self) -> u64;

    /// The first 64 bits of the key.
    fn top(&self) -> u64;

    /// The key with all bits below the top `prefix_bits` cleared: the least key of its prefix.
    fn prefix(&self, prefix_bits: u32) -> Self;

    /// The least key of the next prefix, or `None` when this key's prefix is the last.
    fn prefix_successor(&self, prefix_bits: u32) -> Option<Self>;

    /// How much neighbouring keys are apart by their [leads](Key::lead); 0 when they may share one.
    const LEAD_STEP: u128;

    /// The key's first 128 bits, zeroes after those of a shorter one: leads compare as their keys
    /// do, if they differ.
    fn lead(&self) -> u128;

    /// Compares a stored key with this one.
    #[inline]
    fn compare_stored(&self, words: &[AtomicU64]) -> Order {
        Self::load(words).cmp(self)
    }

    /// Whether a stored key equals this one.
    #[inline]
    fn equals_stored(&self, words: &[AtomicU64]) -> bool {
        Self::load(words) == *self
    }
}

/// Multiplies to 128 bits and folds the halves together, which mixes every bit of both factors
/// into every bit of the result.
#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ (product >> 64) as u64
}

/// Odd constants with about as many ones as zeros: digits of the golden ratio and of square roots.
const MIX: [u64; 3] = [
    0x9e37_79b9_7f4a_7c15,
    0x6a09_e667_f3bc_c909,
    0xbb67_ae85_84ca_a73b,
];

impl Key for u64 {
    const WORDS: usize = 1;
    const MIN: Self = u64::MIN;
    const MAX: Self = u64::MAX;
    const LEAD_STEP: u128 = 1 << 64;

    #[inline(always)]
    fn lead(&self) -> u128 {
        u128::from(*self) << 64
    }

    #[inline]
    fn load(words: &[AtomicU64]) -> Self {
        words[0].load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, words: &[AtomicU64]) {
        words[0].store(*self, Ordering::Relaxed);
    }

    fn append_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_be_bytes());
    }

    #[inline]
    fn hash(&self) -> u64 {
        fold(fold(self ^ MIX[1], MIX[0]) ^ MIX[1], MIX[2])
    }

    #[inline]
    fn top(&self) -> u64 {
        *self
    }

    #[inline]
    fn prefix(&self, prefix_bits: u32) -> Self {
        match prefix_bits {
            0 => 0,
            64.. => *self,
            bits => self >> (64 - bits) << (64 - bits),
        }
    }

    #[inline]
    fn prefix_successor(&self, prefix_bits: u32) -> Option<Self> {
        match prefix_bits {
            0 => None,
            bits => self.prefix(bits).checked_add(1 << (64 - bits.min(64))),
        }
    }
}

impl Key for u128 {
    const WORDS: usize = 2;
    const MIN: Self = u128::MIN;
    const MAX: Self = u128::MAX;
    const LEAD_STEP: u128 = 1;

    #[inline(always)]
    fn lead(&self) -> u128 {
        *self
    }

    #[inline]
    fn load(words: &[AtomicU64]) -> Self {
        let high = words[0].load(Ordering::Relaxed);
        let low = words[1].load(Ordering::Relaxed);
        u128::from(high) << 64 | u128::from(low)
    }

    #[inline]
    fn store(&self, words: &[AtomicU64]) {
        words[0].store((self >> 64) as u64, Ordering::Relaxed);
        words[1].store(*self as u64, Ordering::Relaxed);
    }

    fn append_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_be_bytes());
    }

    #[inline]
    fn hash(&self) -> u64 {
        let (high, low) = ((self >> 64) as u64, *self as u64);
        fold(fold(low ^ MIX[1], MIX[0]) ^ high ^ MIX[1], MIX[2])
    }

    #[inline]
    fn top(&self) -> u64 {
        (self >> 64) as u64
    }

    #[inline]
    fn prefix(&self, prefix_bits: u32) -> Self {
        match prefix_bits {
            0 => 0,
            128.. => *self,
            bits => self >> (128 - bits) << (128 - bits),
        }
    }

    #[inline]
    fn prefix_successor(&self, prefix_bits: u32) -> Option<Self> {
        match prefix_bits {
            0 => None,
            bits => self.prefix(bits).checked_add(1 << (128 - bits.min(128))),
        }
    }
}

/// A key of `8 * W` bytes as big-endian words, so that the order of the words is the order of the
/// bytes (`memcmp`). The encoder of a shorter byte string pads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteKey<const W: usize>(pub [u64; W]);

impl<const W: usize> Key for ByteKey<W> {
    const WORDS: usize = W;
    const MIN: Self = ByteKey([0; W]);
    const MAX: Self = ByteKey([u64::MAX; W]);
    const LEAD_STEP: u128 = 0;

    fn lead(&self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }

    #[inline]
    fn load(words: &[AtomicU64]) -> Self {
        ByteKey(std::array::from_fn(|word| {
            words[word].load(Ordering::Relaxed)
        }))
    }

    #[inline]
    fn store(&self, words: &[AtomicU64]) {
        for (to, from) in words.iter().zip(self.0) {
            to.store(from, Ordering::Relaxed);
        }
    }

    fn append_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.iter().flat_map(|word| word.to_be_bytes()));
    }

    #[inline]
    fn hash(&self) -> u64 {
        let mixed = self
            .0
            .iter()
            .fold(MIX[1], |hash, word| fold(hash ^ word ^ MIX[2], MIX[0]));
        fold(mixed ^ MIX[1], MIX[2])
    }

    #[inline]
    fn top(&self) -> u64 {
        self.0[0]
    }

    fn prefix(&self, prefix_bits: u32) -> Self {
        let mut words = self.0;
        let mut bits = prefix_bits;
        for word in &mut words {
            *word = word.prefix(bits);
            bits = bits.saturating_sub(64);
        }
        ByteKey(words)
    }

    fn prefix_successor(&self, prefix_bits: u32) -> Option<Self> {
        let bits = prefix_bits.min(64 * W as u32);
        if bits == 0 {
            return None;
        }
        // Adds one at the lowest bit of the prefix and carries upwards.
        let mut words = self.prefix(bits).0;
        let mut word = (bits as usize - 1) / 64;
        let mut add = 1_u64 << (63 - (bits - 1) % 64);
        loop {
            let (sum, carry) = words[word].overflowing_add(add);
            words[word] = sum;
            if !carry {
                return Some(ByteKey(words));
            }
            if word == 0 {
                return None;
            }
            (word, add) = (word - 1, 1);
        }
    }

    #[inline]
    fn compare_stored(&self, words: &[AtomicU64]) -> Order {
        for (stored, own) in words.iter().zip(&self.0) {
            match stored.load(Ordering::Relaxed).cmp(own) {
                Order::Equal => {}
                unequal => return unequal,
            }
        }
        Order::Equal
    }

    #[inline]
    fn equals_stored(&self, words: &[AtomicU64]) -> bool {
        self.compare_stored(words) == Order::Equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_their_successors() {
        assert_eq!(0x1234_u64.prefix(56), 0x1200);
        assert_eq!(0x1234_u64.prefix_successor(56), Some(0x1300));
        assert_eq!(u64::MAX.prefix_successor(56), None);
        assert_eq!(7_u64.prefix_successor(64), Some(8));
        assert_eq!(7_u64.prefix_successor(0), None);
        assert_eq!((5_u128 << 64 | 9).prefix(64), 5 << 64);
        assert_eq!((5_u128 << 64 | 9).prefix_successor(64), Some(6 << 64));
        assert_eq!((5_u128 << 64 | 9).prefix_successor(128), Some(5 << 64 | 10));
        let key = ByteKey([3, u64::MAX, 17]);
        assert_eq!(key.prefix(128), ByteKey([3, u64::MAX, 0]));
        assert_eq!(key.prefix_successor(128), Some(ByteKey([4, 0, 0])));
        assert_eq!(key.prefix_successor(64), Some(ByteKey([4, 0, 0])));
        assert_eq!(key.prefix_successor(500), Some(ByteKey([3, u64::MAX, 18])));
        assert_eq!(ByteKey::<3>::MAX.prefix_successor(70), None);
    }

    #[test]
    fn hashes_of_consecutive_keys_spread_over_high_and_low_bits() {
        // 4096 keys into 4096 boxes by either end of the hash: a random function leaves about
        // 1507 boxes empty (a share of 1/e), with a standard deviation of about 20. Fewer is fine.
        let empty = |boxes: &dyn Fn(u64) -> u64| {
            let mut used = vec![false; 4096];
            (0..4096).for_each(|key| used[boxes(key) as usize] = true);
            used.iter().filter(|&&used| !used).count()
        };
        for empty in [
            empty(&|key| Key::hash(&key) >> 52),
            empty(&|key| Key::hash(&key) & 4095),
            empty(&|key| Key::hash(&(u128::from(key) << 64)) >> 52),
            empty(&|key| Key::hash(&u128::from(key << 32)) & 4095),
            empty(&|key| Key::hash(&ByteKey([7, key, 0])) >> 52),
            empty(&|key| Key::hash(&ByteKey([key << 40, 1, 0])) & 4095),
        ] {
            assert!(empty < 1_700, "{empty} of 4096 boxes empty");
        }
    }
}
