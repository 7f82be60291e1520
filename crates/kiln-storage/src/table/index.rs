//! One index of a table: a map of one kind and key width behind one type.

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::Arc;

use super::entry::{Entry, EntryKey, Found};
use crate::epoch::Participant;
use crate::error::{Error, Result, SqlState};
use crate::index::{
    ByteKey, HashIndex, Insertion, Key, Lookup, NodeVersion, OrderedIndex, Withdrawal,
};
use crate::key::{KeyField, KeyLayout, KeyWidth};
use crate::record::RecordRef;
use crate::schema::{ColumnId, ColumnSet, IndexDefinition, IndexKind};
use crate::slot::{Heap, Slot};

/// The map behind an index, by kind and key width.
pub(super) enum Map {
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
    ($any:expr, $map:ident => $body:expr) => {
        match &*$any {
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
pub(super) use with_key;

/// The lead of a key of a map, which says of which type the key is.
trait LeadOf<K: Key> {
    #[inline(always)]
    fn lead_of(&self, key: K) -> Option<u128> {
        Some(key.lead())
    }
}

impl<K: Key> LeadOf<K> for HashIndex<K> {}
impl<K: Key> LeadOf<K> for OrderedIndex<K> {}

impl Map {
    /// Calls `visit` for each payload.
    pub(super) fn for_each(&self, mut visit: impl FnMut(u64)) {
        for_any_map!(self, map => map.for_each(|_, payload| visit(payload)));
    }
}

/// An index of a table.
pub struct Index {
    pub(super) definition: IndexDefinition,
    pub(super) layout: KeyLayout,
    /// All columns of its key, the suffix included.
    columns: ColumnSet,
    /// Shared with the table's successors; see [`Table::is_superseded`].
    pub(super) map: Arc<Map>,
    /// Whether an entry has ever moved: see [`Index::moves`].
    moves: AtomicBool,
}

impl Index {
    /// An empty index, with room for `expected` entries; `split_by` is the column that divides the
    /// table's rows, if one does.
    pub(super) fn new(
        definition: IndexDefinition,
        layout: KeyLayout,
        expected: usize,
        split_by: Option<ColumnId>,
    ) -> Index {
        let split_at = split_by.and_then(|column| layout.end_of(column));
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
            (IndexKind::SplitHash, width) => match (width, split_at) {
                (KeyWidth::Word, Some(at)) => Map::HashWord(HashIndex::split_by(expected, at)),
                (KeyWidth::DoubleWord, Some(at)) => {
                    Map::HashDoubleWord(HashIndex::split_by(expected, at))
                }
                (KeyWidth::Bytes64, Some(at)) => {
                    Map::HashBytes64(HashIndex::split_by(expected, at))
                }
                (KeyWidth::Bytes256, Some(at)) => {
                    Map::HashBytes256(HashIndex::split_by(expected, at))
                }
                (KeyWidth::Word, None) => Map::HashWord(HashIndex::with_capacity(expected)),
                (KeyWidth::DoubleWord, None) => {
                    Map::HashDoubleWord(HashIndex::with_capacity(expected))
                }
                (KeyWidth::Bytes64, None) => Map::HashBytes64(HashIndex::with_capacity(expected)),
                (KeyWidth::Bytes256, None) => Map::HashBytes256(HashIndex::with_capacity(expected)),
            },
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
    pub(super) fn share(&self) -> Index {
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
        for_any_map!(self.map, map => match self.layout.point(heap, values) {
            Ok(key) => found(map.get(&key)),
            Err(_) => Found::Never,
        })
    }

    /// Finds the record that is in the way of a row whose indexed columns have `values`; the index
    /// supports look-ups.
    pub fn get_in_way(&self, heap: &Heap, values: impl Iterator<Item = Slot>) -> Found {
        for_any_map!(self.map, map => match self.layout.row_point(heap, values) {
            Ok(key) => match map.get(&key) {
                Lookup::Found(payload) => Found::Entry(Entry(payload)),
                Lookup::Missing(version) => Found::Missing(version),
            },
            Err(_) => Found::Never,
        })
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
        for_any_map!(self.map, map => {
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

    /// The first 128 bits of the key that a look-up of `values` looks for; see [`Key::lead`].
    /// `None` when there can be no such key.
    #[inline(always)]
    pub fn point_lead(&self, heap: &Heap, values: impl Iterator<Item = Slot>) -> Option<u128> {
        for_any_map!(self.map, map => map.lead_of(self.layout.point(heap, values).ok()?))
    }

    /// The first 128 bits of the key of the entry with these field values; `None` when it is longer
    /// than a key may be.
    #[inline(always)]
    pub fn entry_lead(
        &self,
        heap: &Heap,
        value: impl Fn(usize, &KeyField) -> Slot,
    ) -> Option<u128> {
        for_any_map!(self.map, map => map.lead_of(self.layout.entry(heap, value).ok()?))
    }

    /// Adds an entry by its key.
    pub fn insert_key(&self, key: &EntryKey, entry: Entry, participant: &Participant) -> Insertion {
        with_key!(self, key, map, key => map.insert(key, entry.0, participant))
    }

    /// Removes an entry by its key, if it is this one. Returns whether it was.
    pub fn remove_key(&self, key: &EntryKey, entry: Entry, participant: &Participant) -> bool {
        with_key!(self, key, map, key => map.remove(key, entry.0, participant))
    }

    /// Removes an entry by its key, if it is this one, for a transaction that goes on and may guard
    /// the entry's node: no guard fails by that. A node that is empty then stays, until
    /// [`Index::unlink_empty_node`].
    pub fn withdraw_key(
        &self,
        key: &EntryKey,
        entry: Entry,
        participant: &Participant,
    ) -> Withdrawal {
        with_key!(self, key, map, key => map.withdraw(key, entry.0, participant))
    }

    /// Takes the node of this key out of the index, if it is empty.
    pub fn unlink_empty_node(&self, key: &EntryKey, participant: &Participant) {
        with_key!(self, key, map, key => map.unlink_empty_leaf(key, participant));
    }

    /// Removes the entry of a record that has moved to another key, if it is this one. Returns
    /// whether it was. Scans that have met it cannot be confirmed any more.
    pub fn remove_moved_key(
        &self,
        key: &EntryKey,
        entry: Entry,
        participant: &Participant,
    ) -> bool {
        with_key!(self, key, map, key => map.remove_moved(key, entry.0, participant))
    }

    /// Replaces the entry of a record that has moved to another key, if it is `old`. Returns
    /// whether it was. Scans that have met it cannot be confirmed any more.
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

    /// Starts to fetch what [`Index::find_key`] will look at last for this key.
    #[inline]
    pub fn prefetch_key(&self, key: &EntryKey) {
        with_key!(self, key, map, key => map.prefetch(key));
    }

    /// The guard of the gap that there is in place of an entry with this key.
    ///
    /// # Errors
    /// The entry, if there is one.
    pub fn guard_key(&self, key: &EntryKey) -> std::result::Result<NodeVersion, Entry> {
        let lookup = with_key!(self, key, map, key => map.get(key));
        match lookup {
            Lookup::Found(payload) => Err(Entry(payload)),
            Lookup::Missing(version) => Ok(version),
        }
    }

    /// Whether entries of this index move from key to key. Then a record that a look-up led to may
    /// have moved between the look-up and the first look at its tid: a transaction that sees the
    /// tid with which the record moved sees this flag as well, and looks the key up again.
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

    /// The error for a key of too many bytes.
    pub(super) fn key_too_long(&self) -> Error {
        let bytes_max = match self.layout.width() {
            // Only numbers without a precision come to have more.
            KeyWidth::Bytes64 => 64,
            _ => 256,
        };
        Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "a key of index \"{}\" is longer than {bytes_max} bytes",
                self.definition.name
            ),
        )
        .with_hint("Index shorter columns, or a hash of the value.")
    }

    /// Calls `visit` for each entry; concurrent changes may or may not be seen.
    pub fn for_each(&self, mut visit: impl FnMut(RecordRef)) {
        self.map.for_each(|payload| visit(Entry(payload).record()))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        for_any_map!(self.map, map => map.len())
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory it takes.
    pub fn bytes(&self) -> usize {
        for_any_map!(self.map, map => map.bytes())
    }

    /// What lies at `address` if it is in the index's memory, in words for reports: it searches.
    pub fn part_at(&self, address: usize) -> Option<String> {
        let root = Arc::as_ptr(&self.map).addr();
        match (root..root + size_of::<Map>()).contains(&address) {
            true => Some("root".to_owned()),
            false => for_any_map!(self.map, map => map.part_at(address)),
        }
    }
}
