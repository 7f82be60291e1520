//! Look-ups in advance: what several look-ups will touch is fetched while none waits for it.
//!
//! Two rounds, since a record is known only when its index entry has been read: the first packs the
//! keys and asks for the entries, the second reads these and says which records they name.

use super::entry::EntryKey;
use super::index::{Index, Map, with_key};
use crate::index::{HashIndex, Key, Sighting};
use crate::key::PackedKey;
use crate::slot::{Heap, Slot};

/// A key of at most 128 bits that the first round has packed; `None` when it has not.
pub type SightKey = Option<u128>;

impl Index {
    /// The first round for look-ups of so many keys, the values of each given by `values`: starts
    /// to fetch what they will touch first, and appends a key for each.
    #[inline]
    pub fn prefetch_each<I: Iterator<Item = Slot>>(
        &self,
        heap: &Heap,
        count: usize,
        values: impl Fn(usize) -> I,
        keys: &mut Vec<SightKey>,
    ) {
        match &*self.map {
            Map::HashWord(map) => {
                keys.extend((0..count).map(|at| self.ask(map, heap, values(at)).map(u128::from)));
            }
            Map::HashDoubleWord(map) => {
                keys.extend((0..count).map(|at| self.ask(map, heap, values(at))));
            }
            Map::HashBytes64(map) => {
                for at in 0..count {
                    self.ask(map, heap, values(at));
                }
                keys.extend(std::iter::repeat_n(None, count));
            }
            // The path to an ordered entry is read in the second round.
            _ => keys.extend(std::iter::repeat_n(None, count)),
        }
    }

    /// Starts to fetch what a look-up of one key will touch first, if the index is a hash index
    /// with keys of at most 64 bytes.
    #[inline]
    pub fn prefetch(&self, heap: &Heap, values: impl Iterator<Item = Slot>) {
        match &*self.map {
            Map::HashWord(map) => {
                self.ask(map, heap, values);
            }
            Map::HashDoubleWord(map) => {
                self.ask(map, heap, values);
            }
            Map::HashBytes64(map) => {
                self.ask(map, heap, values);
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn ask<K: PackedKey>(
        &self,
        map: &HashIndex<K>,
        heap: &Heap,
        values: impl Iterator<Item = Slot>,
    ) -> Option<K> {
        let key = self.layout.point(heap, values).ok()?;
        map.prefetch(&key);
        Some(key)
    }

    /// The second round for the same look-ups: finds the entry that each would find, not for
    /// certain, and tells `met` where.
    #[inline]
    pub fn sight_each<I: Iterator<Item = Slot>>(
        &self,
        heap: &Heap,
        keys: &[SightKey],
        values: impl Fn(usize) -> I,
        mut met: impl FnMut(usize, Option<Sighting>),
    ) {
        match &*self.map {
            Map::HashWord(map) => each(keys, map, |key| key as u64, met),
            Map::HashDoubleWord(map) => each(keys, map, |key| key, met),
            _ => {
                for at in 0..keys.len() {
                    let key = self.point_key(heap, values(at));
                    met(at, key.and_then(|key| self.sight(&key)));
                }
            }
        }
    }

    fn sight(&self, key: &EntryKey) -> Option<Sighting> {
        with_key!(self, key, map, key => map.sight(key))
    }
}

#[inline(always)]
fn each<K: Key>(
    keys: &[SightKey],
    map: &HashIndex<K>,
    key: impl Fn(u128) -> K,
    mut met: impl FnMut(usize, Option<Sighting>),
) {
    for (at, packed) in keys.iter().enumerate() {
        met(at, packed.and_then(|packed| map.sight(&key(packed))));
    }
}
