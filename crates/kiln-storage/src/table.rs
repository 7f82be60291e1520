//! Tables: a schema, the memory of its records, and its indexes.

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};

use crate::epoch::Participant;
use crate::error::{Error, Result, SqlState};
use crate::index::{
    ByteKey, Cursor, HashIndex, Insertion, Key, LeafBatch, Lookup, NodeVersion, OrderedIndex,
    Sighting,
};
use crate::key::{KeyFault, KeyField, KeyLayout, KeyWidth, PackedKey, ROW_NUMBER_SLOT_BITS};
use crate::layout::RowLayout;
use crate::record::{HEADER_BYTES, RecordRef, Tid};
use crate::schema::{
    ColumnId, ColumnSet, IndexDefinition, IndexKind, KEY_COLUMNS_MAX, TableId, TableSchema,
};
use crate::slab::Slab;
use crate::slot::{Heap, Slot};

/// The map behind an index, by kind and key width.
enum Map {
    HashWord(HashIndex<u64>),
    HashDoubleWord(HashIndex<u128>),
    HashBytes64(HashIndex<ByteKey<8>>),
    HashBytes256(HashIndex<ByteKey<32>>),
    OrderedWord(OrderedIndex<u64>),
    OrderedDoubleWord(OrderedIndex<u128>),
    OrderedBytes64(OrderedIndex<ByteKey<8>>),
    OrderedBytes256(OrderedIndex<ByteKey<32>>),
}

/// Runs one expression for whichever map is there; `$map` is the map.
macro_rules! for_any_map {
    ($index:expr, $map:ident => $body:expr) => {
        match &*$index.map {
            Map::HashWord($map) => $body,
            Map::HashDoubleWord($map) => $body,
            Map::HashBytes64($map) => $body,
            Map::HashBytes256($map) => $body,
            Map::OrderedWord($map) => $body,
            Map::OrderedDoubleWord($map) => $body,
            Map::OrderedBytes64($map) => $body,
            Map::OrderedBytes256($map) => $body,
        }
    };
}

/// Runs one expression for the map and the key that belong together.
macro_rules! with_key {
    ($index:expr, $key:expr, $map:ident, $inner:ident => $body:expr) => {
        match (&*$index.map, $key) {
            (Map::HashWord($map), EntryKey::Word($inner)) => $body,
            (Map::HashDoubleWord($map), EntryKey::DoubleWord($inner)) => $body,
            (Map::HashBytes64($map), EntryKey::Bytes64($inner)) => $body,
            (Map::HashBytes256($map), EntryKey::Bytes256($inner)) => $body,
            (Map::OrderedWord($map), EntryKey::Word($inner)) => $body,
            (Map::OrderedDoubleWord($map), EntryKey::DoubleWord($inner)) => $body,
            (Map::OrderedBytes64($map), EntryKey::Bytes64($inner)) => $body,
            (Map::OrderedBytes256($map), EntryKey::Bytes256($inner)) => $body,
            _ => unreachable!("a key of index {} has its width", $index.definition.name),
        }
    };
}

/// What an index holds for a key: a record, and whether it is only moving there.
///
/// An update of indexed columns gives its record an entry under the new key at once, but a
/// *moving* one until it commits. Other transactions that meet a moving entry fail; the
/// transaction itself finds its record there, and ignores the entry under the old key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// Records are eight-byte-aligned, so that the lowest bit of their address is free.
    const MOVING: u64 = 1;

    /// The entry of a record that has the key.
    #[inline(always)]
    pub fn of(record: RecordRef) -> Entry {
        Entry(record.address())
    }

    /// The entry of a record that gets the key when its transaction commits.
    pub fn moving(record: RecordRef) -> Entry {
        Entry(record.address() | Entry::MOVING)
    }

    /// The entry that an index's payload stands for.
    ///
    /// # Safety
    /// The payload is of an index whose table lives.
    #[inline(always)]
    pub unsafe fn from_payload(payload: u64) -> Entry {
        Entry(payload)
    }

    /// Whether the record only gets the key when its transaction commits.
    #[inline(always)]
    pub fn is_moving(self) -> bool {
        self.0 & Entry::MOVING != 0
    }

    /// The record.
    #[inline(always)]
    pub fn record(self) -> RecordRef {
        // SAFETY: entries are made from records, or from payloads whose table lives.
        unsafe { RecordRef::from_address(self.0 & !Entry::MOVING) }
    }
}

/// The result of a look-up in an index.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// The entry with the key; its record may be absent or dead.
    Entry(Entry),
    /// No record has the key; the node's version guards that.
    Missing(NodeVersion),
    /// No record can have the key (NULL, or outside the type's range).
    Never,
}

/// A key taken out of its record, for entries that must go later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKey {
    /// A packed key of 64 bits.
    Word(u64),
    /// A packed key of 128 bits.
    DoubleWord(u128),
    /// A byte key of 64 bytes.
    Bytes64(ByteKey<8>),
    /// A byte key of 256 bytes.
    Bytes256(Box<ByteKey<32>>),
}

impl EntryKey {
    /// The key as bytes that compare as the keys of its index do.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            EntryKey::Word(key) => bytes_of(key),
            EntryKey::DoubleWord(key) => bytes_of(key),
            EntryKey::Bytes64(key) => bytes_of(key),
            EntryKey::Bytes256(key) => bytes_of(&**key),
        }
    }
}

fn bytes_of<K: Key>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(K::WORDS * 8);
    key.append_bytes(&mut bytes);
    bytes
}

/// An index of a table.
pub struct Index {
    definition: IndexDefinition,
    layout: KeyLayout,
    /// All columns of its key, the suffix included.
    columns: ColumnSet,
    /// Shared with the table's successors; see [`Table::is_superseded`].
    map: Arc<Map>,
    /// Whether an entry has ever moved: see [`Index::moves`].
    moves: AtomicBool,
}

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
    fn new(definition: IndexDefinition, layout: KeyLayout, expected: usize) -> Index {
        let map = match (definition.kind, layout.width()) {
            (IndexKind::Hash, KeyWidth::Word) => Map::HashWord(HashIndex::with_capacity(expected)),
            (IndexKind::Hash, KeyWidth::DoubleWord) => {
                Map::HashDoubleWord(HashIndex::with_capacity(expected))
            }
            (IndexKind::Hash, KeyWidth::Bytes64) => {
                Map::HashBytes64(HashIndex::with_capacity(expected))
            }
            (IndexKind::Hash, KeyWidth::Bytes256) => {
                Map::HashBytes256(HashIndex::with_capacity(expected))
            }
            (IndexKind::Ordered { partition_columns }, width) => {
                let bits = layout.prefix_bits(partition_columns);
                match width {
                    KeyWidth::Word => Map::OrderedWord(OrderedIndex::with_prefix_bits(bits)),
                    KeyWidth::DoubleWord => {
                        Map::OrderedDoubleWord(OrderedIndex::with_prefix_bits(bits))
                    }
                    KeyWidth::Bytes64 => Map::OrderedBytes64(OrderedIndex::with_prefix_bits(bits)),
                    KeyWidth::Bytes256 => {
                        Map::OrderedBytes256(OrderedIndex::with_prefix_bits(bits))
                    }
                }
            }
        };
        let columns = layout
            .fields()
            .iter()
            .filter_map(|field| field.column)
            .collect();
        Index {
            definition,
            layout,
            columns,
            map: Arc::new(map),
            moves: AtomicBool::new(false),
        }
    }

    /// The same index, entries and all, for a successor of its table.
    fn share(&self) -> Index {
        Index {
            definition: self.definition.clone(),
            layout: self.layout.clone(),
            columns: self.columns,
            map: self.map.clone(),
            // No transaction runs, so none has met an entry that an earlier one moves.
            moves: AtomicBool::new(false),
        }
    }

    /// All columns of its key, also those that only make it unique.
    #[inline(always)]
    pub fn columns(&self) -> ColumnSet {
        self.columns
    }

    /// The index as declared.
    #[inline(always)]
    pub fn definition(&self) -> &IndexDefinition {
        &self.definition
    }

    /// How its keys are packed.
    pub fn key_layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// Whether a key can be looked up whole: it is unique, and its columns make its whole key.
    pub fn supports_lookup(&self) -> bool {
        self.definition.unique && self.layout.is_unique_by_columns()
    }

    /// Whether it can be scanned.
    pub fn is_ordered(&self) -> bool {
        matches!(self.definition.kind, IndexKind::Ordered { .. })
    }

    /// Finds the record whose indexed columns have `values`; the index supports look-ups.
    #[inline(always)]
    pub fn get(&self, heap: &Heap, values: impl Iterator<Item = Slot>) -> Found {
        #[inline(always)]
        fn found(lookup: Lookup) -> Found {
            match lookup {
                Lookup::Found(payload) => Found::Entry(Entry(payload)),
                Lookup::Missing(version) => Found::Missing(version),
            }
        }
        for_any_map!(self, map => match self.layout.point(heap, values) {
            Ok(key) => found(map.get(&key)),
            Err(_) => Found::Never,
        })
    }

    /// Fetches what a look-up of `values` will touch first, and gives the key. Nothing is done for
    /// keys longer than 64 bytes.
    #[inline]
    pub fn prefetch(&self, heap: &Heap, values: impl Iterator<Item = Slot>) -> Option<EntryKey> {
        match &*self.map {
            Map::HashWord(map) => {
                let key = self.layout.point(heap, values).ok()?;
                map.prefetch(&key);
                Some(EntryKey::Word(key))
            }
            Map::HashDoubleWord(map) => {
                let key = self.layout.point(heap, values).ok()?;
                map.prefetch(&key);
                Some(EntryKey::DoubleWord(key))
            }
            Map::HashBytes64(map) => {
                let key = self.layout.point(heap, values).ok()?;
                map.prefetch(&key);
                Some(EntryKey::Bytes64(key))
            }
            _ if self.layout.width() != KeyWidth::Bytes256 => self.point_key(heap, values),
            _ => None,
        }
    }

    /// Finds the entry that a look-up of the key would find, and notes where; not for certain.
    #[inline]
    pub fn sight(&self, key: &EntryKey) -> Option<Sighting> {
        with_key!(self, key, map, key => map.sight(key))
    }

    /// Adds an entry for `record`, whose fields have the values that `value` gives.
    ///
    /// # Errors
    /// 54000 when the key is longer than a key may be.
    #[inline(always)]
    pub fn insert(
        &self,
        heap: &Heap,
        value: impl Fn(usize, &KeyField) -> Slot,
        record: RecordRef,
        participant: &Participant,
    ) -> Result<Insertion> {
        for_any_map!(self, map => {
            let key = self.layout.entry(heap, value).map_err(|_| self.key_too_long())?;
            Ok(map.insert(&key, record.address(), participant))
        })
    }

    /// The key of the entry with these field values.
    ///
    /// # Errors
    /// 54000 when the key is longer than a key may be.
    pub fn entry_key(
        &self,
        heap: &Heap,
        value: impl Fn(usize, &KeyField) -> Slot,
    ) -> Result<EntryKey> {
        let fault = |_| self.key_too_long();
        Ok(match self.layout.width() {
            KeyWidth::Word => EntryKey::Word(self.layout.entry(heap, value).map_err(fault)?),
            KeyWidth::DoubleWord => {
                EntryKey::DoubleWord(self.layout.entry(heap, value).map_err(fault)?)
            }
            KeyWidth::Bytes64 => EntryKey::Bytes64(self.layout.entry(heap, value).map_err(fault)?),
            KeyWidth::Bytes256 => {
                EntryKey::Bytes256(Box::new(self.layout.entry(heap, value).map_err(fault)?))
            }
        })
    }

    /// The key that a look-up of `values` looks for; `None` when there can be no such key.
    pub fn point_key(&self, heap: &Heap, values: impl Iterator<Item = Slot>) -> Option<EntryKey> {
        Some(match self.layout.width() {
            KeyWidth::Word => EntryKey::Word(self.layout.point(heap, values).ok()?),
            KeyWidth::DoubleWord => EntryKey::DoubleWord(self.layout.point(heap, values).ok()?),
            KeyWidth::Bytes64 => EntryKey::Bytes64(self.layout.point(heap, values).ok()?),
            KeyWidth::Bytes256 => {
                EntryKey::Bytes256(Box::new(self.layout.point(heap, values).ok()?))
            }
        })
    }

    /// Adds an entry by its key.
    pub fn insert_key(&self, key: &EntryKey, entry: Entry, participant: &Participant) -> Insertion {
        with_key!(self, key, map, key => map.insert(key, entry.0, participant))
    }

    /// Removes an entry by its key, if it is this one. Returns whether it was.
    pub fn remove_key(&self, key: &EntryKey, entry: Entry, participant: &Participant) -> bool {
        with_key!(self, key, map, key => map.remove(key, entry.0, participant))
    }

    /// Removes the entry of a record that has moved to another key, if it is this one. Returns whether
    /// it was. Scans that have met it cannot be confirmed any more.
    pub fn remove_moved_key(
        &self,
        key: &EntryKey,
        entry: Entry,
        participant: &Participant,
    ) -> bool {
        with_key!(self, key, map, key => map.remove_moved(key, entry.0, participant))
    }

    /// Replaces the entry of a record that has moved to another key, if it is `old`. Returns whether it
    /// was. Scans that have met it cannot be confirmed any more.
    pub fn replace_moved_key(&self, key: &EntryKey, old: Entry, new: Entry) -> bool {
        with_key!(self, key, map, key => map.replace_moved(key, old.0, new.0))
    }

    /// The entry with this key.
    pub fn find_key(&self, key: &EntryKey) -> Option<Entry> {
        let lookup = with_key!(self, key, map, key => map.get(key));
        match lookup {
            Lookup::Found(payload) => Some(Entry(payload)),
            Lookup::Missing(_) => None,
        }
    }

    /// Whether entries of this index move from key to key. Then a record that a look-up led to may have
    /// moved between the look-up and the first look at its tid: whoever sees the tid with which it
    /// moved sees this as well, and looks the key up again.
    #[inline(always)]
    pub fn moves(&self) -> bool {
        // Relaxed: ordered by the record's tid or lock, which is read before and written after.
        self.moves.load(Ordering::Relaxed)
    }

    /// Says that an entry is about to move.
    pub fn set_moves(&self) {
        if !self.moves() {
            self.moves.store(true, Ordering::Relaxed);
        }
    }

    /// Replaces an entry by its key, if it is `old`. Returns whether it was.
    pub fn replace_key(&self, key: &EntryKey, old: Entry, new: Entry) -> bool {
        with_key!(self, key, map, key => map.replace(key, old.0, new.0))
    }

    /// Removes the entry of `record` with these field values.
    #[inline(always)]
    pub fn remove(
        &self,
        heap: &Heap,
        value: impl Fn(usize, &KeyField) -> Slot,
        record: RecordRef,
        participant: &Participant,
    ) -> bool {
        for_any_map!(self, map => match self.layout.entry(heap, value) {
            Ok(key) => map.remove(&key, record.address(), participant),
            Err(_) => false,
        })
    }

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

    fn bounds<K: PackedKey>(
        &self,
        heap: &Heap,
        range: RangeValues<'_>,
    ) -> Result<Option<(std::ops::Bound<K>, std::ops::Bound<K>)>> {
        use std::ops::Bound::{Excluded, Included};
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

    fn key_too_long(&self) -> Error {
        Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "a key of index \"{}\" is longer than 256 bytes",
                self.definition.name
            ),
        )
        .with_hint("Index shorter columns, or a hash of the value.")
    }

    /// Calls `visit` for each entry; concurrent changes may or may not be seen.
    pub fn for_each(&self, mut visit: impl FnMut(RecordRef)) {
        for_any_map!(self, map => map.for_each(|_, payload| visit(Entry(payload).record())))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        for_any_map!(self, map => map.len())
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory it takes.
    pub fn bytes(&self) -> usize {
        for_any_map!(self, map => map.bytes())
    }

    /// What lies at `address` if it is in the index's memory, in words for reports: it searches.
    pub fn part_at(&self, address: usize) -> Option<String> {
        let root = Arc::as_ptr(&self.map).addr();
        match (root..root + size_of::<Map>()).contains(&address) {
            true => Some("root".to_owned()),
            false => for_any_map!(self, map => map.part_at(address)),
        }
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

    /// The key of the entry at `position` of the last batch, as [`EntryKey::to_bytes`] gives it.
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

/// Both bounds inclusive, as bytes.
fn bounds_of<K: Key>((low, high): (std::ops::Bound<K>, std::ops::Bound<K>)) -> (Vec<u8>, Vec<u8>) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
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

/// How many workers may have memory of a table of their own.
pub const WORKERS_MAX: usize = 128;

/// A counter on a cache line of its own.
#[repr(align(64))]
struct PaddedCounter(AtomicU64);

/// The records of a table, shared by the table and its successors.
struct Rows {
    slab: Slab,
    row_numbers: Box<[PaddedCounter]>,
    /// The columns whose values may be kept outside the row, and how to find these.
    layout: RowLayout,
    /// The first index of the newest successor: it names every row.
    newest: Mutex<Arc<Map>>,
}

impl Drop for Rows {
    fn drop(&mut self) {
        // The slab's memory goes as a whole; only what rows point to must be freed one by one.
        let layout = &self.layout;
        if layout.spilling().is_empty() {
            return;
        }
        let newest = lock(&self.newest);
        let free = |address| {
            // SAFETY: the address is that of a record of this table. No table is left that has
            // these rows, so nobody reads them or their blobs.
            unsafe {
                let record = RecordRef::from_address(address);
                for blob in layout.blobs(layout.spilling(), record.row(layout.words())) {
                    crate::layout::Blob::free(blob);
                }
            }
        };
        match &**newest {
            Map::HashWord(map) => map.for_each(|_, address| free(address)),
            Map::HashDoubleWord(map) => map.for_each(|_, address| free(address)),
            Map::HashBytes64(map) => map.for_each(|_, address| free(address)),
            Map::HashBytes256(map) => map.for_each(|_, address| free(address)),
            Map::OrderedWord(map) => map.for_each(|_, address| free(address)),
            Map::OrderedDoubleWord(map) => map.for_each(|_, address| free(address)),
            Map::OrderedBytes64(map) => map.for_each(|_, address| free(address)),
            Map::OrderedBytes256(map) => map.for_each(|_, address| free(address)),
        }
    }
}

/// A table. The first index is always ordered: over the primary key, or over a hidden row number.
///
/// A table never changes its shape. What changes it in SQL makes a *successor* that shares the
/// rows and the indexes that stay ([`Table::with_index`], [`Table::with_rebuilt_index`],
/// [`Table::without_index`]); the predecessor is then [superseded](Table::supersede), and nothing
/// that was compiled for it may run any more, as it would leave the successor's indexes behind.
pub struct Table {
    id: TableId,
    schema: TableSchema,
    layout: RowLayout,
    indexes: Vec<Index>,
    indexed_columns: ColumnSet,
    rows: Arc<Rows>,
    superseded: AtomicBool,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({}, {})", self.id.0, self.schema.name)
    }
}

impl Table {
    /// An empty table with these indexes besides the first.
    ///
    /// # Errors
    /// 54011 when it has too many columns; 54000 when a row would be longer than 64 KiB.
    pub fn new(
        id: TableId,
        schema: TableSchema,
        primary_partition_columns: usize,
        secondary: Vec<IndexDefinition>,
    ) -> Result<Table> {
        if schema.columns.len() > crate::schema::COLUMNS_MAX {
            return Err(Error::new(
                SqlState::TOO_MANY_COLUMNS,
                format!(
                    "tables can have at most {} columns",
                    crate::schema::COLUMNS_MAX
                ),
            ));
        }
        check_key_columns(schema.primary_key.len())?;
        secondary
            .iter()
            .try_for_each(|index| check_key_columns(index.columns.len()))?;
        let numbered = schema.primary_key.is_empty();
        let layout = RowLayout::new(&schema.columns, numbered);
        let cell_bytes = HEADER_BYTES + layout.words() * 8;
        if cell_bytes > 64 << 10 {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "a row of table \"{}\" would take {cell_bytes} bytes",
                    schema.name
                ),
            )
            .with_hint("Rows take at most 65536 bytes; use TEXT for long columns."));
        }
        let primary = if numbered {
            let definition = IndexDefinition {
                name: format!("{}_row_number", schema.name),
                columns: Vec::new(),
                unique: true,
                constraint: true,
                // Each worker numbers its rows in a range of its own: its inserts meet no other's.
                kind: IndexKind::Ordered {
                    partition_columns: 0,
                },
            };
            Index::new(definition, KeyLayout::of_row_numbers(), 0)
        } else {
            let key = &schema.primary_key;
            let key_layout = KeyLayout::new(&schema.columns, key, &[], false, true);
            let definition = IndexDefinition {
                name: schema
                    .primary_key_name
                    .clone()
                    .unwrap_or_else(|| format!("{}_pkey", schema.name)),
                columns: key.clone(),
                unique: true,
                constraint: true,
                kind: IndexKind::Ordered {
                    partition_columns: primary_partition_columns,
                },
            };
            Index::new(definition, key_layout, 0)
        };
        let rows = Rows {
            slab: Slab::new(cell_bytes, WORKERS_MAX),
            row_numbers: (0..WORKERS_MAX)
                .map(|_| PaddedCounter(AtomicU64::new(0)))
                .collect(),
            layout: layout.clone(),
            newest: Mutex::new(primary.map.clone()),
        };
        let mut table = Table {
            id,
            schema,
            layout,
            indexed_columns: primary.columns,
            indexes: vec![primary],
            rows: Arc::new(rows),
            superseded: AtomicBool::new(false),
        };
        for definition in secondary {
            let index = table.empty_index(definition, 0);
            table.indexed_columns = table.indexed_columns.union(index.columns);
            table.indexes.push(index);
        }
        Ok(table)
    }

    fn empty_index(&self, definition: IndexDefinition, expected: usize) -> Index {
        let layout = KeyLayout::new(
            &self.schema.columns,
            &definition.columns,
            &self.schema.primary_key,
            self.schema.primary_key.is_empty(),
            definition.unique,
        );
        Index::new(definition, layout, expected)
    }

    /// A table with the same rows and these indexes.
    fn successor(&self, indexes: Vec<Index>) -> Table {
        let columns = indexes.iter().map(|index| index.columns);
        Table {
            id: self.id,
            schema: self.schema.clone(),
            layout: self.layout.clone(),
            indexed_columns: columns.fold(ColumnSet::EMPTY, ColumnSet::union),
            indexes,
            rows: self.rows.clone(),
            superseded: AtomicBool::new(false),
        }
    }

    /// A successor with one more index, the last one, filled from the present rows. Nobody
    /// changes the rows meanwhile.
    ///
    /// # Errors
    /// 23505 when the index is unique and the rows are not; 54000 when a key is too long.
    pub fn with_index(
        &self,
        definition: IndexDefinition,
        participant: &Participant,
    ) -> Result<Table> {
        check_key_columns(definition.columns.len())?;
        let index = self.empty_index(definition, self.indexes[0].len());
        self.fill(&index, participant)?;
        let shared = self.indexes.iter().map(Index::share);
        Ok(self.successor(shared.chain([index]).collect()))
    }

    /// A successor whose index at `position` is built anew with another kind. Nobody changes the
    /// rows meanwhile.
    ///
    /// # Errors
    /// None that the present index would not have raised.
    pub fn with_rebuilt_index(
        &self,
        position: usize,
        kind: IndexKind,
        participant: &Participant,
    ) -> Result<Table> {
        let old = &self.indexes[position];
        let definition = IndexDefinition {
            kind,
            ..old.definition.clone()
        };
        let index = if position == 0 && self.schema.primary_key.is_empty() {
            Index::new(definition, KeyLayout::of_row_numbers(), 0)
        } else {
            self.empty_index(definition, old.len())
        };
        self.fill(&index, participant)?;
        let mut indexes: Vec<Index> = self.indexes.iter().map(Index::share).collect();
        indexes[position] = index;
        Ok(self.successor(indexes))
    }

    /// A successor without the index called `name`; `None` when there is no such index besides
    /// the first.
    pub fn without_index(&self, name: &str) -> Option<Table> {
        let position = self
            .indexes
            .iter()
            .skip(1)
            .position(|index| index.definition.name == name);
        let mut indexes: Vec<Index> = self.indexes.iter().map(Index::share).collect();
        indexes.remove(position? + 1);
        Some(self.successor(indexes))
    }

    /// Says that `successor` has taken this table's place, or that it was dropped. No transaction
    /// runs meanwhile.
    pub fn supersede(&self, successor: Option<&Table>) {
        if let Some(successor) = successor {
            *lock(&self.rows.newest) = successor.indexes[0].map.clone();
        }
        // Relaxed: whoever looks synchronises with the end of the time without transactions.
        self.superseded.store(true, Ordering::Relaxed);
    }

    /// Whether another table has taken this one's place, or it was dropped: programs that name it
    /// must be compiled again. Does not change while a transaction runs.
    #[inline(always)]
    pub fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Relaxed)
    }

    fn fill(&self, index: &Index, participant: &Participant) -> Result<()> {
        let mut result = Ok(());
        let mut heap = Heap::new();
        self.indexes[0].for_each(|record| {
            let absent = Tid(record.tid().load(Ordering::Acquire)).is_absent();
            if result.is_err() || absent {
                return;
            }
            heap.clear();
            let row = self.row(record);
            result = self.entry_key_of(index, row, &mut heap).and_then(|key| {
                match index.insert_key(&key, Entry::of(record), participant) {
                    Insertion::Inserted(_) => Ok(()),
                    Insertion::Exists(_) => Err(Error::new(
                        SqlState::UNIQUE_VIOLATION,
                        format!(
                            "could not create unique index \"{}\"",
                            index.definition.name
                        ),
                    )
                    .with_constraint(&index.definition.name)),
                }
            });
        });
        result
    }

    /// The key that `index` has for a row; the row is stable, or the caller validates it.
    ///
    /// # Errors
    /// 54000 when the key is longer than a key may be.
    pub fn entry_key_of(
        &self,
        index: &Index,
        row: &[AtomicU64],
        heap: &mut Heap,
    ) -> Result<EntryKey> {
        let mut values = [Slot::NULL; crate::schema::COLUMNS_MAX + 1];
        for (position, field) in index.layout.fields().iter().enumerate() {
            values[position] = self.field_value(field, row, heap);
        }
        index.entry_key(heap, |position, _| values[position])
    }

    /// The value of a key field in a stable row.
    pub fn field_value(&self, field: &KeyField, row: &[AtomicU64], heap: &mut Heap) -> Slot {
        match field.column {
            Some(column) => self.column_value(column, row, heap),
            None => {
                let access = self
                    .layout
                    .row_number()
                    .expect("a numbered table has row numbers");
                access.load(row, heap)
            }
        }
    }

    /// The value of a column in a stable row.
    pub fn column_value(&self, column: ColumnId, row: &[AtomicU64], heap: &mut Heap) -> Slot {
        let slot = self.layout.column(column).load(row, heap);
        if crate::layout::is_spilled(slot) {
            // SAFETY: the row is stable, so the pointer is live.
            return unsafe { crate::layout::resolve(slot, heap) };
        }
        slot
    }

    /// The table's number.
    #[inline(always)]
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The table as declared.
    #[inline(always)]
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// How its rows lie in memory.
    #[inline(always)]
    pub fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// Its indexes; the first is ordered and over the primary key or the row number.
    #[inline(always)]
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// The columns of all its indexes: an update of one of them moves entries.
    #[inline(always)]
    pub fn indexed_columns(&self) -> ColumnSet {
        self.indexed_columns
    }

    /// The memory of its records.
    #[inline(always)]
    pub fn slab(&self) -> &Slab {
        &self.rows.slab
    }

    /// A record's row.
    #[inline(always)]
    pub fn row<'a>(&self, record: RecordRef) -> &'a [AtomicU64] {
        // SAFETY: the record is of this table, whose rows have this many words.
        unsafe { record.row(self.layout.words()) }
    }

    /// The next row number of the worker in `slot`, for tables without a primary key.
    #[inline]
    pub fn next_row_number(&self, slot: usize) -> i64 {
        // Only the slot's worker counts here, so that relaxed load and store would do as well;
        // the addition keeps the numbers unique also when a slot changes hands.
        let number = self.rows.row_numbers[slot]
            .0
            .fetch_add(1, Ordering::Relaxed);
        (slot as i64) << (64 - ROW_NUMBER_SLOT_BITS) | number as i64
    }

    /// The bytes that the values of all present rows take, as if each were stored alone, and
    /// their number. Nobody changes the table meanwhile.
    pub fn raw_bytes(&self) -> (usize, usize) {
        let (mut bytes, mut rows) = (0, 0);
        self.indexes[0].for_each(|record| {
            if !Tid(record.tid().load(Ordering::Acquire)).is_absent() {
                let row = self.row(record);
                bytes += self
                    .layout
                    .columns()
                    .iter()
                    .map(|access| access.raw_bytes(row))
                    .sum::<usize>();
                rows += 1;
            }
        });
        (bytes, rows)
    }
}

/// Refuses keys of too many columns.
fn check_key_columns(columns: usize) -> Result<()> {
    if columns <= KEY_COLUMNS_MAX {
        return Ok(());
    }
    let message = format!("cannot use more than {KEY_COLUMNS_MAX} columns in an index");
    Err(Error::new(SqlState::TOO_MANY_COLUMNS, message))
}
