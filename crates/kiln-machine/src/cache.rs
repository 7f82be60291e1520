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

    /// The set of a line. Lines are numbered densely, so the odd multiplier only breaks up strides;
    /// a product's high half maps to any number of sets, also one that is no power of two.
    #[inline(always)]
    fn set(&mut self, line: u32) -> &mut [u32] {
        let scrambled = line.wrapping_mul(0x9E37_79B1);
        let set = (u64::from(scrambled) * u64::from(self.sets)) >> 32;
        let start = set as usize * self.ways;
        &mut self.tags[start..start + self.ways]
    }

    /// Marks `line` as used last, and makes room for it if it was not there.
    #[inline(always)]
    pub(crate) fn use_line(&mut self, line: u32) -> Use {
        let set = self.set(line);
        // One pass: each way takes its predecessor's tag, until the line's own place is found.
        let mut carried = line;
        for way in set {
            std::mem::swap(way, &mut carried);
            if carried == line {
                return Use::Present;
            }
        }
        match carried {
            EMPTY => Use::Room,
            victim => Use::Evicted(victim),
        }
    }
}

/// What using a line in a cache met with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It was there.
    Present,
    /// It was not there, and nothing had to give way.
    Room,
    /// It was not there, and this line gave way.
    Evicted(u32),
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
            assert_eq!(tags.use_line(line), Use::Room);
        }
        assert_eq!(tags.use_line(0), Use::Present);
        assert_eq!(tags.use_line(0), Use::Present);
        assert_eq!(tags.use_line(4), Use::Evicted(1));
        assert_eq!(tags.use_line(0), Use::Present);
        assert_eq!(tags.use_line(5), Use::Evicted(2));
        assert_eq!(tags.use_line(1), Use::Evicted(3));
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
            .filter(|&line| matches!(tags.use_line(line), Use::Evicted(_)))
            .count();
        assert!(
            evicted < shape.lines() / 20,
            "{evicted} of {lines} gave way"
        );
    }
}
