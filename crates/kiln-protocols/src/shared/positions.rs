//! Positions of a list's elements, found by hash once the list is long.

use std::ops::Range;

/// An open-addressed hash table beside a list that its owner keeps. A short list has no table: its
/// elements are searched one by one, which costs less than a hash. The table compares nothing
/// itself: it gives the positions of the elements that may have a hash, and the owner looks at
/// these elements.
#[derive(Default)]
pub struct Positions {
    /// `EMPTY`, `GONE`, or a position and one. At most half of them are not empty.
    slots: Vec<u32>,
    /// How many slots are not empty.
    filled: usize,
}

const EMPTY: u32 = 0;
/// The slot of an element that has left the list: searches go on behind it.
const GONE: u32 = u32::MAX;

impl Positions {
    /// Lists up to this length are searched element by element.
    pub const SEARCHED_MAX: usize = 16;
    /// A larger table is given back when it is cleared.
    const SLOTS_KEPT_MAX: usize = 4096;

    fn start(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    /// The positions of all elements of a list of this length that have a hash, and of others.
    #[inline]
    pub fn candidates(&self, len: usize, hash: impl FnOnce() -> u64) -> Candidates<'_> {
        Candidates {
            slots: &self.slots,
            at: match self.slots.is_empty() {
                true => 0,
                false => self.start(hash()),
            },
            list: 0..len,
        }
    }

    /// Notes the last element of a list that has grown to this length. `hash_of` gives the hash of
    /// an element, and none for one that is not to be found.
    #[inline]
    pub fn append(&mut self, len: usize, hash_of: impl Fn(usize) -> Option<u64>) {
        self.note(len - 1, len, hash_of);
    }

    /// Notes an element of a list of this length that was forgotten, with the hash that it has now.
    #[inline]
    pub fn note(&mut self, position: usize, len: usize, hash_of: impl Fn(usize) -> Option<u64>) {
        if self.slots.is_empty() && len <= Self::SEARCHED_MAX {
            return;
        }
        if (self.filled + 1) * 2 > self.slots.len() {
            self.rebuild(len, hash_of);
        } else if let Some(hash) = hash_of(position) {
            self.put(hash, position);
        }
    }

    #[cold]
    fn rebuild(&mut self, len: usize, hash_of: impl Fn(usize) -> Option<u64>) {
        let slots = (len * 4).next_power_of_two();
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        self.filled = 0;
        for position in 0..len {
            if let Some(hash) = hash_of(position) {
                self.put(hash, position);
            }
        }
    }

    fn put(&mut self, hash: u64, position: usize) {
        let mut at = self.start(hash);
        while !matches!(self.slots[at], EMPTY | GONE) {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.filled += usize::from(self.slots[at] == EMPTY);
        self.slots[at] = position as u32 + 1;
    }

    /// Forgets an element that was noted with this hash.
    pub fn forget(&mut self, hash: u64, position: usize) {
        self.replace(hash, position, GONE);
    }

    /// Notes that an element with this hash has moved in the list.
    pub fn relocate(&mut self, hash: u64, from: usize, to: usize) {
        self.replace(hash, from, to as u32 + 1);
    }

    fn replace(&mut self, hash: u64, position: usize, slot: u32) {
        if self.slots.is_empty() {
            return;
        }
        let mut at = self.start(hash);
        while self.slots[at] != position as u32 + 1 {
            assert_ne!(self.slots[at], EMPTY, "position {position} is not noted");
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    /// Forgets all elements.
    #[inline]
    pub fn clear(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        self.filled = 0;
        match self.slots.len() > Self::SLOTS_KEPT_MAX {
            true => self.slots = Vec::new(),
            false => self.slots.clear(),
        }
    }
}

/// See [`Positions::candidates`].
#[derive(Clone)]
pub struct Candidates<'a> {
    slots: &'a [u32],
    at: usize,
    /// What is left of the list, where there is no table.
    list: Range<usize>,
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.slots.is_empty() {
            return self.list.next();
        }
        loop {
            let slot = self.slots[self.at];
            self.at = (self.at + 1) & (self.slots.len() - 1);
            match slot {
                EMPTY => return None,
                GONE => {}
                found => return Some(found as usize - 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements come and go, many with the same hash; the table agrees with a search of the list,
    /// and looks at few elements.
    #[test]
    fn finds_what_is_in_the_list() {
        let mut random = kiln_platform::random::Random::from_seed(7);
        let hash = |element: u64| (element / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut list: Vec<u64> = Vec::new();
        let mut positions = Positions::default();
        for step in 0..20_000 {
            let element = random.below(2_000) as u64;
            let found = positions
                .candidates(list.len(), || hash(element))
                .find(|&at| list[at] == element);
            assert_eq!(
                found,
                list.iter().position(|&known| known == element),
                "{step}"
            );
            match found {
                None => {
                    list.push(element);
                    positions.append(list.len(), |at| Some(hash(list[at])));
                }
                Some(at) => {
                    list.swap_remove(at);
                    positions.forget(hash(element), at);
                    if at < list.len() {
                        positions.relocate(hash(list[at]), list.len(), at);
                    }
                }
            }
        }
        assert!(list.len() > 500);
        let looked_at = list
            .iter()
            .map(|&element| positions.candidates(list.len(), || hash(element)).count());
        assert!(looked_at.sum::<usize>() < 20 * list.len());
        positions.clear();
        assert_eq!(positions.candidates(0, || 0).next(), None);
    }
}
