//! Records: a sixteen-byte header and the row's words.
//!
//! The header is the same under every protocol, so that a running database can change its
//! protocol between epochs:
//!
//! - `tid`: lock bit, absent bit, dead bit, and the version: the epoch and sequence number of the
//!   transaction that wrote it last (Silo §4.2). Every protocol advances it on every write, and a
//!   cell that is used again for another record keeps counting where it was: the versions of a cell
//!   only grow while its table lives, so that a cell and a version name one state.
//! - `aux`: belongs to the protocol that runs (2PL's lock word, TicToc's rts, VLL's counters, …).
//!   It is 0 whenever no transaction runs.
//!
//! A record is *absent* when its key has no row: a placeholder, an insert not yet committed, or a
//! delete. It is *dead* once it has been, or is about to be, taken out of the indexes: a
//! transaction that meets a dead record looks its key up again.

use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, prefetch};

/// The content of a record's `tid` word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tid(pub u64);

impl Tid {
    /// A writer is installing.
    pub const LOCKED: u64 = 1 << 63;
    /// There is no row.
    pub const ABSENT: u64 = 1 << 62;
    /// The record has left, or is leaving, the indexes.
    pub const DEAD: u64 = 1 << 61;
    /// The version's bits: epoch above, sequence below.
    pub const VERSION: u64 = Tid::DEAD - 1;
    /// The bits of the sequence number within an epoch.
    pub const SEQUENCE_BITS: u32 = 24;

    /// Whether a writer is installing.
    #[inline(always)]
    pub const fn is_locked(self) -> bool {
        self.0 & Tid::LOCKED != 0
    }

    /// Whether there is no row.
    #[inline(always)]
    pub const fn is_absent(self) -> bool {
        self.0 & Tid::ABSENT != 0
    }

    /// Whether the record has left, or is leaving, the indexes.
    #[inline(always)]
    pub const fn is_dead(self) -> bool {
        self.0 & Tid::DEAD != 0
    }

    /// The version alone.
    #[inline(always)]
    pub const fn version(self) -> u64 {
        self.0 & Tid::VERSION
    }

    /// The smallest version above `self` (and all that was read or written) in `epoch`.
    #[inline(always)]
    pub const fn next_in(self, epoch: u64) -> Tid {
        let next = self.version() + 1;
        let first = epoch << Tid::SEQUENCE_BITS;
        Tid(if next > first { next } else { first })
    }

    /// The epoch that the version was written in.
    pub const fn epoch(self) -> u64 {
        self.version() >> Tid::SEQUENCE_BITS
    }
}

/// The header; the row's words follow it in memory.
#[repr(C)]
pub struct Record {
    tid: AtomicU64,
    aux: AtomicU64,
}

/// The header's size.
pub const HEADER_BYTES: usize = 16;

const _: () = assert!(size_of::<Record>() == HEADER_BYTES);

/// Words of eight bytes of a cell, a bit each from its first; those beyond the first kibibyte are
/// left out.
///
/// Cells are aligned to words and not to cache lines, so which lines a column is in depends on the
/// record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words(u128);

impl Words {
    /// Those of the header.
    pub const HEADER: Words = Words((1 << (HEADER_BYTES / 8)) - 1);

    /// With those that have the bytes from `start` to `end`, counted from the beginning of the row.
    #[must_use]
    pub fn with_bytes(self, (start, end): (usize, usize)) -> Words {
        let words = (start + HEADER_BYTES) / 8..(end + HEADER_BYTES).div_ceil(8);
        let bits = words.map(|word| 1_u128.checked_shl(word as u32).unwrap_or(0));
        Words(bits.fold(self.0, |all, bit| all | bit))
    }

    /// Those of both.
    #[must_use]
    pub const fn union(self, other: Words) -> Words {
        Words(self.0 | other.0)
    }

    /// The cache lines that they are in at this record, a bit each from the line of its first byte.
    #[inline(always)]
    pub fn lines_at(self, record: RecordRef) -> u16 {
        let shifted = self.0 << (record.address() % LINE_BYTES / 8);
        lines_of(shifted as u64) as u16 | (lines_of((shifted >> 64) as u64) as u16) << 8
    }
}

/// Which of its eight bytes have a bit that is set.
#[inline(always)]
const fn lines_of(mut words: u64) -> u8 {
    words |= words >> 4;
    words |= words >> 2;
    words |= words >> 1;
    // The lowest bit of each byte, gathered in the highest byte.
    ((words & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

const LINE_BYTES: u64 = 64;

/// A reference to a record of a table.
///
/// Record memory is never returned to the system while its table lives, so the header and the
/// words can be accessed through any reference ever made; whether they still mean the same record
/// is what the tid and the epochs are for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecordRef(NonNull<Record>);

// SAFETY: a record is atomics only; see the type's documentation for its lifetime.
unsafe impl Send for RecordRef {}
// SAFETY: as above.
unsafe impl Sync for RecordRef {}

impl RecordRef {
    /// The record at `cell`.
    ///
    /// # Safety
    /// `cell` is an eight-byte-aligned cell of a table's slab with room for the header and the
    /// table's row, and the reference is not used after the table is dropped.
    #[inline(always)]
    pub const unsafe fn from_cell(cell: NonNull<u8>) -> RecordRef {
        RecordRef(cell.cast())
    }

    /// The record whose [`RecordRef::address`] is `address`.
    ///
    /// # Safety
    /// `address` came from [`RecordRef::address`] of a record whose table lives.
    #[inline(always)]
    pub const unsafe fn from_address(address: u64) -> RecordRef {
        // SAFETY: addresses of records are not null.
        RecordRef(unsafe { NonNull::new_unchecked(address as *mut Record) })
    }

    /// The address, as indexes hold it; identifies the record among all.
    #[inline(always)]
    pub fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// Asks for cache lines of it, a bit each from that of its first byte ([`Words::lines_at`]).
    #[inline(always)]
    pub fn fetch(self, mut lines: u16) {
        let start = self.0.as_ptr() as *const u8;
        let start = start.map_addr(|address| address & !(LINE_BYTES as usize - 1));
        while lines != 0 {
            let line = lines.trailing_zeros() as usize;
            prefetch(start.wrapping_add(line * LINE_BYTES as usize));
            lines &= lines - 1;
        }
    }

    /// The cell in the slab.
    pub fn cell(self) -> NonNull<u8> {
        self.0.cast()
    }

    /// The tid word; see [`Tid`].
    #[inline(always)]
    pub fn tid<'a>(self) -> &'a AtomicU64 {
        // SAFETY: by the type's documentation the header is mapped while the table lives, and
        // callers do not outlive it.
        unsafe { &(*self.0.as_ptr()).tid }
    }

    /// The running protocol's word.
    #[inline(always)]
    pub fn aux<'a>(self) -> &'a AtomicU64 {
        // SAFETY: as for `tid`.
        unsafe { &(*self.0.as_ptr()).aux }
    }

    /// The row's words.
    ///
    /// # Safety
    /// `words` is at most the number of words of the record's table.
    #[inline(always)]
    pub unsafe fn row<'a>(self, words: usize) -> &'a [AtomicU64] {
        // SAFETY: the words follow the header in the cell, and are only accessed as atomics.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(1).cast(), words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_bytes_wherever_the_cell_is() {
        let ranges = [(0, 8), (150, 158), (151, 153), (400, 440), (900, 1000)];
        for address in (1 << 20..(1 << 20) + 64).step_by(8) {
            // SAFETY: no code follows the address.
            let record = unsafe { RecordRef::from_address(address) };
            let first = address / LINE_BYTES;
            let line_of =
                |byte: usize| (address + (HEADER_BYTES + byte) as u64) / LINE_BYTES - first;
            // The second word of the header may be in the next line.
            let mut expected = 1_u16 | 1 << ((address + 8) / LINE_BYTES - first);
            let mut words = Words::HEADER;
            assert_eq!(words.lines_at(record), expected, "{address}");
            for (start, end) in ranges {
                words = words.with_bytes((start, end));
                for byte in start..end {
                    let word = (HEADER_BYTES + byte) / 8 + (address % LINE_BYTES / 8) as usize;
                    if word < 128 {
                        expected |= 1 << line_of(byte);
                    }
                }
                assert_eq!(words.lines_at(record), expected, "{address} {start}");
            }
        }
    }
}
