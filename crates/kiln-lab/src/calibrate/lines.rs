//! Cache lines to measure with.

use kiln_platform::atomic::{AtomicU64, Ordering, prefetch};
use kiln_platform::memory::Region;

/// The words of a cache line.
const WORDS: usize = 8;

/// A power of two of cache lines on huge pages. The first word of each names the first word of the
/// line that follows it in one cycle through all of them; the second is free to be written.
pub(super) struct Lines {
    region: Region,
    count: u64,
}

impl Lines {
    /// Lines that fill `bytes`, a power of two of at least a kibibyte.
    ///
    /// # Errors
    /// The operating system's error when the memory is not to be had.
    pub(super) fn of(bytes: usize) -> std::io::Result<Lines> {
        assert!(bytes.is_power_of_two() && bytes >= 1024, "{bytes} bytes");
        let lines = Lines {
            region: Region::map(bytes)?,
            count: (bytes / 64) as u64,
        };
        for line in 0..lines.count {
            let following = lines.following(line) * WORDS as u64;
            lines.link(line).store(following, Ordering::Relaxed);
        }
        Ok(lines)
    }

    /// The line after `line`. A linear congruential sequence whose multiplier is 1 modulo 4 and
    /// whose increment is odd passes through every number below a power of two, in an order that no
    /// prefetcher guesses, and is made without a random access to the lines.
    #[inline(always)]
    pub(super) fn following(&self, line: u64) -> u64 {
        line.wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F)
            & (self.count - 1)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The word at a distance from the first one.
    #[inline(always)]
    fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset < self.count * WORDS as u64);
        let words = self.region.start().as_ptr().cast::<AtomicU64>();
        // SAFETY: the region is mapped and zeroed while `self` lives, `offset` is below its length
        // in words by the assertion, it is aligned to a page, and it is used as atomics only.
        unsafe { &*words.add(offset as usize) }
    }

    /// The word that names the next line.
    #[inline(always)]
    pub(super) fn link(&self, line: u64) -> &AtomicU64 {
        self.word(line * WORDS as u64)
    }

    /// The word that is free.
    #[inline(always)]
    pub(super) fn payload(&self, line: u64) -> &AtomicU64 {
        self.word(line * WORDS as u64 + 1)
    }

    /// Follows `steps` links from line `start` on, each load waiting for the one before. Returns
    /// the line where it ends.
    #[inline(never)]
    pub(super) fn chase(&self, start: u64, steps: u64) -> u64 {
        let follow = |word, _| self.word(word).load(Ordering::Relaxed);
        (0..steps).fold(start * WORDS as u64, follow) / WORDS as u64
    }

    /// The same by atomic additions of nothing, which need the line exclusively.
    #[inline(never)]
    pub(super) fn chase_exclusively(&self, start: u64, steps: u64) -> u64 {
        // A compiler that knew the addend would make it a load and a fence.
        let nothing = std::hint::black_box(0);
        let follow = |word, _| self.word(word).fetch_add(nothing, Ordering::Relaxed);
        (0..steps).fold(start * WORDS as u64, follow) / WORDS as u64
    }

    /// Reads `batches` times `size` lines, prefetching each batch first. Which lines they are does
    /// not depend on what is read. Returns a sum, so that the loads happen.
    #[inline(never)]
    pub(super) fn read_prefetched(&self, start: u64, batches: u64, size: u64) -> u64 {
        let (mut line, mut sum) = (start, 0);
        for _ in 0..batches {
            let first = line;
            for _ in 0..size {
                prefetch(self.link(line));
                line = self.following(line);
            }
            line = first;
            for _ in 0..size {
                sum ^= self.link(line).load(Ordering::Relaxed);
                line = self.following(line);
            }
        }
        sum
    }

    /// Writes the free word of every line, in order.
    #[inline(never)]
    pub(super) fn write_all(&self, value: u64) {
        for line in 0..self.count {
            self.payload(line).store(value, Ordering::Relaxed);
        }
    }

    /// Reads every line, in order.
    #[inline(never)]
    pub(super) fn read_all(&self) -> u64 {
        (0..self.count).fold(0, |sum, line| {
            sum ^ self.payload(line).load(Ordering::Relaxed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_pass_through_every_line_once() {
        for bytes in [1 << 10, 1 << 15, 1 << 20] {
            let lines = Lines::of(bytes).expect("a little memory is to be had");
            let mut seen = vec![false; lines.count() as usize];
            let mut line = 0;
            for _ in 0..lines.count() {
                assert!(
                    !std::mem::replace(&mut seen[line as usize], true),
                    "{line} twice"
                );
                line = lines.chase(line, 1);
            }
            assert_eq!(line, 0, "the cycle closes");
            assert_eq!(lines.chase_exclusively(0, lines.count()), 0);
        }
    }

    #[test]
    fn writing_the_free_words_leaves_the_links_alone() {
        let lines = Lines::of(4096).expect("a little memory is to be had");
        lines.write_all(3);
        assert_eq!(lines.payload(63).load(Ordering::Relaxed), 3);
        assert_eq!(lines.read_all(), 0, "an even number of threes");
        assert_eq!(lines.chase(0, 64), 0);
        assert_eq!(lines.read_prefetched(0, 4, 16), {
            (0..64).fold(0, |sum, line| sum ^ (lines.following(line) * WORDS as u64))
        });
    }
}
