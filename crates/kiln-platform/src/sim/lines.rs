//! Cache lines: their numbers in the order of first touch, and the names of what lies in them.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::space::{LINE_BYTES, Space};

/// The lines that a run has touched.
#[derive(Default)]
pub(super) struct Lines {
    /// Addresses of the lines, by their number.
    addresses: Vec<usize>,
    /// Numbers of lines that are not in the space; those in it keep their number there.
    outside: HashMap<usize, u32, BuildHasherDefault<LineHasher>>,
    /// Names of memory: by start, the bytes and the name.
    names: BTreeMap<usize, (usize, String)>,
}

/// Mixes a line's address; the standard hasher would be slower and differ between runs.
#[derive(Default)]
struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, value: usize) {
        let mixed = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

impl Lines {
    /// The number of the line at `address`, in the order of first touch.
    #[inline(always)]
    pub(super) fn number(&mut self, space: &mut Space, address: usize) -> u32 {
        if let Some(line) = space.line_of(address) {
            let known = *space.name(line);
            if known != 0 {
                return known - 1;
            }
            self.addresses.push(space.line_address(line));
            *space.name(line) = self.addresses.len() as u32;
            return self.addresses.len() as u32 - 1;
        }
        let line = address / LINE_BYTES;
        *self.outside.entry(line).or_insert_with(|| {
            self.addresses.push(line * LINE_BYTES);
            self.addresses.len() as u32 - 1
        })
    }

    /// How many lines were touched.
    pub(super) fn len(&self) -> usize {
        self.addresses.len()
    }

    /// The address of the line with this number.
    pub(super) fn address(&self, number: u32) -> usize {
        self.addresses[number as usize]
    }

    /// Gives a range of addresses a name.
    pub(super) fn name_range(&mut self, address: usize, bytes: usize, name: String) {
        self.names.insert(address, (bytes, name));
    }

    /// The registered name of `address`; of ranges within ranges, the one that starts last.
    pub(super) fn name_of(&self, address: usize) -> Option<String> {
        /// The most ranges that are searched between an object's start and the address.
        const SEARCHED_MAX: usize = 512;
        let before = self.names.range(..=address).rev().take(SEARCHED_MAX);
        let mut around = before.filter(|(start, (bytes, _))| address - **start < *bytes);
        around.next().map(|(_, (_, name))| name.clone())
    }

    /// Takes the numbers back from the space.
    pub(super) fn forget(self, space: &mut Space) {
        for address in self.addresses {
            if let Some(line) = space.line_of(address) {
                *space.name(line) = 0;
            }
        }
    }
}
