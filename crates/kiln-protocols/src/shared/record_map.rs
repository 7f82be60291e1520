//! From a record to its position in an attempt's set.

use kiln_platform::memory;
use kiln_storage::record::RecordRef;

/// A small hash table, open-addressed and at most half full. Each slot says in which round it was
/// filled, so that forgetting everything is to begin another round.
pub struct RecordMap {
    slots: Vec<NotedRecord>,
    used: usize,
    round: u32,
}

/// A slot: the position of the record at `address`, if it is of this round.
#[derive(Clone, Copy, Default)]
struct NotedRecord {
    address: u64,
    position: u32,
    round: u32,
}

impl Default for RecordMap {
    fn default() -> RecordMap {
        RecordMap {
            slots: vec![NotedRecord::default(); Self::SLOTS_MIN],
            used: 0,
            round: 1,
        }
    }
}

impl RecordMap {
    const SLOTS_MIN: usize = 64;
    /// A larger table is given back when it is cleared.
    const SLOTS_KEPT: usize = 4096;

    /// Where the record at `address` is noted, or else the empty slot where it would be.
    #[inline(always)]
    fn slot_of(&self, address: u64) -> usize {
        // Records are at least sixteen bytes apart; the multiplication spreads slab strides.
        let mask = self.slots.len() - 1;
        let mut at = (memory::hash(address) >> 40) as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.address == address || slot.round != self.round {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The position noted for `record`.
    #[inline(always)]
    pub fn get(&self, record: RecordRef) -> Option<u32> {
        if self.used == 0 {
            return None;
        }
        let slot = self.slots[self.slot_of(record.address())];
        (slot.round == self.round).then_some(slot.position)
    }

    /// Notes the position of `record`, which was not noted before.
    #[inline]
    pub fn insert(&mut self, record: RecordRef, position: u32) {
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.place(record.address(), position);
        self.used += 1;
    }

    /// Notes another position of `record`, if it was noted; whether it was.
    #[inline]
    pub fn replace(&mut self, record: RecordRef, position: u32) -> bool {
        let at = self.slot_of(record.address());
        let slot = &mut self.slots[at];
        if slot.round != self.round {
            return false;
        }
        slot.position = position;
        true
    }

    #[inline]
    fn place(&mut self, address: u64, position: u32) {
        let at = self.slot_of(address);
        self.slots[at] = NotedRecord {
            address,
            position,
            round: self.round,
        };
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![NotedRecord::default(); self.slots.len() * 2];
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot.round == self.round {
                self.place(slot.address, slot.position);
            }
        }
    }

    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        if self.used == 0 {
            return;
        }
        self.used = 0;
        self.round = self.round.wrapping_add(1);
        if self.slots.len() > Self::SLOTS_KEPT || self.round == 0 {
            // After so many rounds, one that was long ago would look like this one.
            *self = RecordMap::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_noted_also_after_growing() {
        let record = |number: u64| {
            // SAFETY: the map only compares addresses.
            unsafe { RecordRef::from_address(0x10_0000 + number * 48) }
        };
        let mut map = RecordMap::default();
        for round in [10, 5_000, 100] {
            for number in 0..round {
                assert_eq!(map.get(record(number)), None);
                map.insert(record(number), number as u32);
            }
            assert!((0..round).all(|number| map.get(record(number)) == Some(number as u32)));
            assert_eq!(map.get(record(round)), None);
            map.clear();
            assert_eq!(map.get(record(1)), None);
        }
    }
}
