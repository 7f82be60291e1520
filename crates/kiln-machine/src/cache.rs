//! Tag arrays: which lines a cache has room for.

use crate::preset::CacheShape;

/// A way that holds nothing.
const EMPTY: u32 = u32::MAX;

/// A set-associative cache's tags with least-recently-used replacement.
///
/// Only capacity is decided here. Whether a tag's content is still valid is the line's matter
/// (`Line::holds`): an invalidated line's tag stays until it ages out, which costs a way for a
/// while and saves touching every sharer's tags at each write.
///
/// Invariant: a set's ways are in the order of their last use, the latest first.
pub(crate) struct Tags {
    ways: usize,
    sets: u32,
    tags: Vec<u32>,
}

impl Tags {
    pub(crate) fn new(shape: CacheShape) -> Tags {
        let sets = (shape.lines() / shape.ways).max(1);
        Tags {
            ways: shape.ways,
            sets: u32::try_from(sets).expect("a cache has fewer than 2^32 sets"),
            tags: vec![EMPTY; sets * shape.ways],
        }
    }

    /// The set of a line. Lines are numbered densely, so the odd multiplier only breaks up strides; a
    /// product's high half maps to any number of sets, also one that is no power of two.
    #[inline(always)]
    fn set(&mut self, line: u32) -> &mut [u32] {
        let scrambled = line.wrapping_mul(0x9E37_79B1);
        let set = (u64::from(scrambled) * u64::from(self.sets)) >> 32;
        let start = set as usize * self.ways;
        &mut self.tags[start..start + self.ways]
    }

    /// Marks `line` as used last. Returns whether it was there.
    #[inline(always)]
    pub(crate) fn touch(&mut self, line: u32) -> bool {
        let set = self.set(line);
        if set[0] == line {
            return true;
        }
        match set.iter().position(|&tag| tag == line) {
            Some(way) => {
                set.copy_within(..way, 1);
                set[0] = line;
                true
            }
            None => false,
        }
    }

    /// Makes room for `line` and marks it as used last. Returns the line that gave way, if one did.
    #[inline]
    pub(crate) fn insert(&mut self, line: u32) -> Option<u32> {
        if self.touch(line) {
            return None;
        }
        let set = self.set(line);
        let last = set.len() - 1;
        let victim = set[last];
        set.copy_within(..last, 1);
        set[0] = line;
        (victim != EMPTY).then_some(victim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_gives_way() {
        let mut tags = Tags::new(CacheShape {
            bytes: 4 * 64,
            ways: 4,
        });
        for line in 0..4 {
            assert_eq!(tags.insert(line), None);
        }
        assert!(tags.touch(0));
        assert_eq!(tags.insert(4), Some(1));
        assert!(tags.touch(0) && !tags.touch(1));
        assert_eq!(tags.insert(0), None);
        assert_eq!(tags.insert(5), Some(2));
    }

    #[test]
    fn as_many_lines_as_there_is_room_for_mostly_stay() {
        let shape = CacheShape {
            bytes: 48 << 10,
            ways: 12,
        };
        let mut tags = Tags::new(shape);
        let lines = shape.lines() as u32;
        let evicted = (0..lines)
            .filter(|&line| tags.insert(line).is_some())
            .count();
        assert!(
            evicted < shape.lines() / 20,
            "{evicted} of {lines} gave way"
        );
    }
}
