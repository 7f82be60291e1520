//! Key spaces: the keys of a table's indexes as points and intervals, for protocols that lock
//! ranges of them.
//!
//! A *point* is a key's [lead](crate::index::Key::lead), its first 128 bits. Longer keys may share
//! a point: then a lock of one is a lock of the other. Indexes of the same columns have one space,
//! even if they differ otherwise. A space is divided by the *cuts*, numbers of leading bits: points
//! with the same bits before a cut have a prefix in common.

use super::index::Index;

/// The most cuts of a space.
pub const CUTS_MAX: usize = 15;

/// Numbers of leading bits, in ascending order; the last one names points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts {
    count: u8,
    bits: [u8; CUTS_MAX],
}

impl Cuts {
    /// These cuts, after one of no bits if a scan is possible; of too many the first ones are left
    /// out.
    fn new(cuts: &[u32], is_scanned: bool) -> Cuts {
        let mut bits = [0; CUTS_MAX];
        let root = usize::from(is_scanned);
        let kept = match is_scanned {
            true => &cuts[cuts.len().saturating_sub(CUTS_MAX - 1)..],
            // Without scans each request is for one key.
            false => &cuts[cuts.len() - 1..],
        };
        for (place, cut) in bits[root..].iter_mut().zip(kept) {
            *place = *cut as u8;
        }
        Cuts {
            count: (root + kept.len()) as u8,
            bits,
        }
    }

    /// The cuts.
    #[inline(always)]
    pub fn bits(&self) -> &[u8] {
        &self.bits[..self.count as usize]
    }
}

/// The keys of one or several indexes of a table.
#[derive(Clone, Copy, Debug)]
pub struct KeySpace {
    /// The position of the first of its indexes: all have the same keys.
    pub index: usize,
    /// Where points are cut into prefixes.
    pub cuts: Cuts,
}

/// The key spaces of a table.
#[derive(Debug, Default)]
pub(super) struct KeySpaces {
    pub all: Vec<KeySpace>,
    /// By index.
    pub of_index: Vec<usize>,
}

impl KeySpaces {
    pub fn of(indexes: &[Index]) -> KeySpaces {
        let mut spaces = KeySpaces::default();
        let keys = |index: &Index| {
            (
                index.definition().columns.clone(),
                index.definition().unique,
                index.definition().nulls_equal,
            )
        };
        for (position, index) in indexes.iter().enumerate() {
            let is_same = |known: &KeySpace| keys(&indexes[known.index]) == keys(index);
            let known = spaces.all.iter().position(is_same);
            let space = known.unwrap_or_else(|| {
                let same = indexes.iter().filter(|other| keys(other) == keys(index));
                let is_scanned = same.clone().any(Index::is_ordered);
                let cuts = Cuts::new(&index.key_layout().cuts(), is_scanned);
                spaces.all.push(KeySpace {
                    index: position,
                    cuts,
                });
                spaces.all.len() - 1
            });
            spaces.of_index.push(space);
        }
        spaces
    }
}
