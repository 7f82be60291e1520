//! Scans over ranges of ordered indexes.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::entry::{EntryKey, bytes_of};
use super::index::{Index, Map};
use crate::error::{Error, Result, SqlState};
use crate::index::{ByteKey, Cursor, Key, LeafBatch};
use crate::key::{KeyFault, PackedKey};
use crate::slot::{Heap, Slot};

/// The slot values of the fields of a range: how many leading columns are fixed, and the bounds
/// on the next one.
#[derive(Clone, Copy, Debug)]
pub struct RangeValues<'a> {
    /// The values of the leading key columns.
    pub prefix: &'a [Slot],
    /// The lower bound on the next column and whether it is inclusive.
    pub lower: Option<(Slot, bool)>,
    /// The upper bound on the next column and whether it is inclusive.
    pub upper: Option<(Slot, bool)>,
}

impl Index {
    /// A scan over the entries in `range`; `None` when the range is empty whatever is stored.
    /// Numbers between two keys widen the range: callers filter by the predicate itself.
    ///
    /// # Errors
    /// 54000 when a bound is longer than a key may be, 0A000 when the index is not ordered.
    pub fn scan(
        &self,
        heap: &Heap,
        range: RangeValues<'_>,
        reverse: bool,
    ) -> Result<Option<IndexScan<'_>>> {
        Ok(match &*self.map {
            Map::OrderedWord(map) => self
                .bounds(heap, range)?
                .map(|(low, high)| IndexScan::Word(map.cursor(low, high, reverse))),
            Map::OrderedDoubleWord(map) => self
                .bounds(heap, range)?
                .map(|(low, high)| IndexScan::DoubleWord(map.cursor(low, high, reverse))),
            Map::OrderedBytes64(map) => self
                .bounds(heap, range)?
                .map(|(low, high)| IndexScan::Bytes64(map.cursor(low, high, reverse))),
            Map::OrderedBytes256(map) => self
                .bounds(heap, range)?
                .map(|(low, high)| IndexScan::Bytes256(Box::new(map.cursor(low, high, reverse)))),
            _ => {
                return Err(Error::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("index \"{}\" is not ordered", self.definition.name),
                ));
            }
        })
    }

    /// A scan over the entries after the one with this key, or over all of them; the index is
    /// ordered.
    ///
    /// # Panics
    /// When it is not, or its keys have another width.
    pub fn entries_after(&self, after: Option<&EntryKey>) -> IndexScan<'_> {
        fn low<K>(after: Option<K>) -> Bound<K> {
            after.map_or(Unbounded, Excluded)
        }
        macro_rules! key {
            ($variant:ident) => {
                after.map(|key| match key {
                    EntryKey::$variant(key) => key.clone(),
                    _ => panic!("a key of another index"),
                })
            };
        }
        match &*self.map {
            Map::OrderedWord(map) => IndexScan::Word(map.cursor(low(key!(Word)), Unbounded, false)),
            Map::OrderedDoubleWord(map) => {
                IndexScan::DoubleWord(map.cursor(low(key!(DoubleWord)), Unbounded, false))
            }
            Map::OrderedBytes64(map) => {
                IndexScan::Bytes64(map.cursor(low(key!(Bytes64)), Unbounded, false))
            }
            Map::OrderedBytes256(map) => {
                let low = low(key!(Bytes256).map(|key| *key));
                IndexScan::Bytes256(Box::new(map.cursor(low, Unbounded, false)))
            }
            _ => panic!("index \"{}\" is not ordered", self.definition.name),
        }
    }

    fn bounds<K: PackedKey>(
        &self,
        heap: &Heap,
        range: RangeValues<'_>,
    ) -> Result<Option<(Bound<K>, Bound<K>)>> {
        let prefix = || range.prefix.iter().copied();
        let (whole_low, whole_high) = match (
            self.layout.prefix::<K>(heap, prefix(), false),
            self.layout.prefix::<K>(heap, prefix(), true),
        ) {
            (Ok(low), Ok(high)) => (low, high),
            // No stored text is that long, so no entry has this prefix.
            _ => return Ok(None),
        };
        let low = match range.lower {
            None => Included(whole_low),
            Some((value, inclusive)) => {
                let values = || prefix().chain([value]);
                let bound = self.layout.prefix::<K>(heap, values(), !inclusive);
                match bound {
                    Ok(key) if inclusive => Included(key),
                    Ok(key) => Excluded(key),
                    Err(KeyFault::Null | KeyFault::Above) => return Ok(None),
                    Err(KeyFault::Below | KeyFault::Between) => Included(whole_low),
                    Err(KeyFault::TooLong) => return Err(self.key_too_long()),
                }
            }
        };
        let high = match range.upper {
            None if range.lower.is_none() => Included(whole_high),
            // A comparison with NULL is not true, so a bounded range excludes NULLs.
            None => Included(self.without_nulls(heap, range.prefix, whole_high)),
            Some((value, inclusive)) => {
                let values = || prefix().chain([value]);
                match self.layout.prefix::<K>(heap, values(), inclusive) {
                    Ok(key) if inclusive => Included(key),
                    Ok(key) => Excluded(key),
                    Err(KeyFault::Null | KeyFault::Below) => return Ok(None),
                    Err(KeyFault::Above | KeyFault::Between) => {
                        Included(self.without_nulls(heap, range.prefix, whole_high))
                    }
                    Err(KeyFault::TooLong) => return Err(self.key_too_long()),
                }
            }
        };
        Ok(Some((low, high)))
    }

    fn without_nulls<K: PackedKey>(&self, heap: &Heap, prefix: &[Slot], otherwise: K) -> K {
        let key = self
            .layout
            .prefix_not_null::<K>(heap, prefix.iter().copied());
        key.unwrap_or(otherwise)
    }
}

/// A scan in progress. It holds no latch between two calls.
pub enum IndexScan<'a> {
    /// Over 64-bit keys.
    Word(Cursor<'a, u64>),
    /// Over 128-bit keys.
    DoubleWord(Cursor<'a, u128>),
    /// Over byte keys of 64 bytes.
    Bytes64(Cursor<'a, ByteKey<8>>),
    /// Over byte keys of 256 bytes; boxed, so that the others are quick to move.
    Bytes256(Box<Cursor<'a, ByteKey<32>>>),
}

impl IndexScan<'_> {
    /// Fetches the next leaf's entries in the range; `false` at the end.
    #[inline(always)]
    pub fn next_leaf(&mut self, batch: &mut LeafBatch) -> bool {
        match self {
            IndexScan::Word(cursor) => cursor.next_leaf(batch),
            IndexScan::DoubleWord(cursor) => cursor.next_leaf(batch),
            IndexScan::Bytes64(cursor) => cursor.next_leaf(batch),
            IndexScan::Bytes256(cursor) => cursor.next_leaf(batch),
        }
    }

    /// Keeps the keys of each batch from now on, for [`IndexScan::key`].
    pub fn keep_keys(&mut self) {
        match self {
            IndexScan::Word(cursor) => cursor.keep_keys(),
            IndexScan::DoubleWord(cursor) => cursor.keep_keys(),
            IndexScan::Bytes64(cursor) => cursor.keep_keys(),
            IndexScan::Bytes256(cursor) => cursor.keep_keys(),
        }
    }

    /// The key of the entry at `position` of the last batch, as
    /// [`EntryKey::to_bytes`](super::EntryKey::to_bytes) gives it.
    ///
    /// # Panics
    /// When there is no such entry, or keys are not kept.
    pub fn key(&self, position: usize) -> Vec<u8> {
        match self {
            IndexScan::Word(cursor) => bytes_of(&cursor.keys()[position]),
            IndexScan::DoubleWord(cursor) => bytes_of(&cursor.keys()[position]),
            IndexScan::Bytes64(cursor) => bytes_of(&cursor.keys()[position]),
            IndexScan::Bytes256(cursor) => bytes_of(&cursor.keys()[position]),
        }
    }

    /// The first and the last key that the rest of the scan looks at, by their [leads](Key::lead);
    /// `None` when there can be none between them.
    pub fn leads(&self) -> Option<(u128, u128)> {
        let (first, last) = match self {
            IndexScan::Word(cursor) => leads_of(cursor.bounds()),
            IndexScan::DoubleWord(cursor) => leads_of(cursor.bounds()),
            IndexScan::Bytes64(cursor) => leads_of(cursor.bounds()),
            IndexScan::Bytes256(cursor) => leads_of(cursor.bounds()),
        }?;
        (first <= last).then_some((first, last))
    }

    /// The first and the last key that the rest of the scan looks at, as bytes.
    pub fn bounds(&self) -> (Vec<u8>, Vec<u8>) {
        match self {
            IndexScan::Word(cursor) => bounds_of(cursor.bounds()),
            IndexScan::DoubleWord(cursor) => bounds_of(cursor.bounds()),
            IndexScan::Bytes64(cursor) => bounds_of(cursor.bounds()),
            IndexScan::Bytes256(cursor) => bounds_of(cursor.bounds()),
        }
    }
}

/// Both bounds inclusive, by their leads; where keys may share one the bound itself is inside.
fn leads_of<K: Key>((low, high): (Bound<K>, Bound<K>)) -> Option<(u128, u128)> {
    let low = match low {
        Unbounded => 0,
        Included(key) => key.lead(),
        Excluded(key) => key.lead().checked_add(K::LEAD_STEP)?,
    };
    let high = match high {
        Unbounded => u128::MAX,
        Included(key) => key.lead(),
        Excluded(key) => key.lead().checked_sub(K::LEAD_STEP)?,
    };
    Some((low, high))
}

/// Both bounds inclusive, as bytes.
fn bounds_of<K: Key>((low, high): (Bound<K>, Bound<K>)) -> (Vec<u8>, Vec<u8>) {
    let low = match low {
        Unbounded => bytes_of(&K::MIN),
        Included(key) => bytes_of(&key),
        // Of the greatest key there is no successor; then the range is empty, which the greatest
        // key as its first one comes close to.
        Excluded(key) => bytes_of(&key.prefix_successor(K::WORDS as u32 * 64).unwrap_or(K::MAX)),
    };
    let high = match high {
        Unbounded => bytes_of(&K::MAX),
        Included(key) => bytes_of(&key),
        Excluded(key) => {
            let mut bytes = bytes_of(&key);
            // One less: trailing zeroes borrow.
            for byte in bytes.iter_mut().rev() {
                let (less, borrowed) = byte.overflowing_sub(1);
                *byte = less;
                if !borrowed {
                    break;
                }
            }
            bytes
        }
    };
    (low, high)
}
