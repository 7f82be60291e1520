//! From a record to its position in an attempt's set.

use kiln_platform::memory;
use kiln_storage::record::RecordRef;

/// A small hash table, open-addressed and at most half full; empty slots hold 0.
pub struct RecordMap {
    slots: Vec<(u64, u32)>,
    used: usize,
}

impl Default for RecordMap {
    fn default() -> RecordMap {
        RecordMap {
            slots: vec![(0, 0); Self::SLOTS_MIN],
            used: 0,
        }
    }
}

impl RecordMap {
    const SLOTS_MIN: usize = 64;
    /// A larger table is given back when it is cleared.
    const SLOTS_KEPT: usize = 4096;

    #[inline(always)]
    fn start(&self, address: u64) -> usize {
        // Records are at least sixteen bytes apart; the multiplication spreads slab strides.
        let hash = memory::hash(address);
        (hash >> 40) as usize & (self.slots.len() - 1)
    }

    /// The position noted for `record`.
    #[inline(always)]
    pub fn get(&self, record: RecordRef) -> Option<u32> {
        if self.used == 0 {
            return None;
        }
        let address = record.address();
        let mut at = self.start(address);
        loop {
            match self.slots[at] {
                (known, position) if known == address => return Some(position),
                (0, _) => return None,
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
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
        let mut at = self.start(record.address());
        loop {
            match &mut self.slots[at] {
                (known, noted) if *known == record.address() => {
                    *noted = position;
                    return true;
                }
                (0, _) => return false,
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    #[inline]
    fn place(&mut self, address: u64, position: u32) {
        let mut at = self.start(address);
        while self.slots[at].0 != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = (address, position);
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![(0, 0); self.slots.len() * 2];
        for (address, position) in std::mem::replace(&mut self.slots, larger) {
            if address != 0 {
                self.place(address, position);
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
        if self.slots.len() > Self::SLOTS_KEPT {
            self.slots = vec![(0, 0); Self::SLOTS_MIN];
        } else {
            self.slots.fill((0, 0));
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
