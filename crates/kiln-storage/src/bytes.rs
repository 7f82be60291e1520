//! Bytes of a log: written without a check for each value, read with one.

use kiln_platform::atomic::AtomicU64;
use kiln_platform::words;

use crate::error::{Error, Result, SqlState};

/// Appends values to a vector, within its capacity. Room is made sure of for many values at once: what is put after
/// [`Writer::begin`] takes at most what that was told, apart from [extra bytes](Writer::has_extra_room).
///
/// Each value is written as a whole word of which the next value overwrites what is too much, so that values of all sizes
/// take the same few instructions.
pub(crate) struct Writer<'a> {
    target: &'a mut Vec<u8>,
    /// Behind the last byte that was put.
    end: *mut u8,
    /// Behind the last byte that may be put at present.
    bound: *mut u8,
    /// Behind the last byte that may ever be put.
    limit: *mut u8,
    is_full: bool,
}

impl<'a> Writer<'a> {
    /// A put writes at most this many bytes more than it puts: a vector has to have room for them, too.
    pub(crate) const SLACK_BYTES: usize = 8;

    /// A writer that puts bytes behind those that `target` has.
    #[inline]
    pub(crate) fn new(target: &'a mut Vec<u8>) -> Writer<'a> {
        let spare = target.spare_capacity_mut();
        let room = spare.len().saturating_sub(Writer::SLACK_BYTES);
        let end = spare.as_mut_ptr().cast::<u8>();
        Writer {
            target,
            end,
            bound: end,
            // SAFETY: there are at least so many bytes in the allocation.
            limit: unsafe { end.add(room) },
            is_full: false,
        }
    }

    /// Whether there is room for this many bytes, which may be put then. Once there is not, nothing is kept.
    #[inline(always)]
    pub(crate) fn begin(&mut self, bytes: usize) -> bool {
        if self.limit.addr() - self.end.addr() < bytes {
            self.is_full = true;
            return false;
        }
        // SAFETY: that is up to the limit.
        self.bound = unsafe { self.end.add(bytes) };
        true
    }

    /// Whether there is room for this many bytes besides, which may be put then. Once there is not, nothing is kept.
    pub(crate) fn has_extra_room(&mut self, bytes: usize) -> bool {
        if self.limit.addr() - self.bound.addr() < bytes {
            self.is_full = true;
            return false;
        }
        // SAFETY: that is up to the limit.
        self.bound = unsafe { self.bound.add(bytes) };
        true
    }

    #[inline(always)]
    fn check(&self, bytes: usize) {
        debug_assert!(
            self.end.addr() + bytes <= self.bound.addr(),
            "{bytes} bytes do not fit into {}",
            self.bound.addr() - self.end.addr()
        );
    }

    /// Puts the lowest `bytes` bytes of a word, at most eight, little-endian.
    ///
    /// # Safety
    /// It may be put: see [`Writer::begin`].
    #[inline(always)]
    pub(crate) unsafe fn put(&mut self, word: u64, bytes: usize) {
        self.check(bytes);
        // SAFETY: by the contract the bytes are within the capacity, and behind them there is slack for a word.
        unsafe {
            self.end.cast::<u64>().write_unaligned(word.to_le());
            self.end = self.end.add(bytes);
        }
    }

    /// Puts such words, one after the other.
    ///
    /// # Safety
    /// They may be put: see [`Writer::begin`].
    #[inline(always)]
    pub(crate) unsafe fn put_all(&mut self, values: impl Iterator<Item = (u64, usize)>) {
        // Not in memory that the bytes could be part of, for all that the compiler knows.
        let mut end = self.end;
        for (word, bytes) in values {
            debug_assert!(end.addr() + bytes <= self.bound.addr(), "no room");
            // SAFETY: as for `put`.
            unsafe {
                end.cast::<u64>().write_unaligned(word.to_le());
                end = end.add(bytes);
            }
        }
        self.end = end;
    }

    /// Puts bytes.
    ///
    /// # Safety
    /// It may be put: see [`Writer::begin`].
    #[inline]
    pub(crate) unsafe fn put_bytes(&mut self, bytes: &[u8]) {
        self.check(bytes.len());
        // SAFETY: by the contract the bytes are within the capacity; the target is borrowed exclusively, so `bytes` lie elsewhere.
        unsafe {
            self.end
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.end = self.end.add(bytes.len());
        }
    }

    /// Puts `length` bytes of a row, from the offset `start` on.
    ///
    /// # Safety
    /// It may be put: see [`Writer::begin`].
    #[inline(always)]
    pub(crate) unsafe fn put_words(&mut self, row: &[AtomicU64], start: usize, length: usize) {
        self.check(length);
        let (first, skip) = (start / 8, start % 8);
        let words = &row[first..(start + length).div_ceil(8).max(first + 1)];
        let mut to = self.end;
        // SAFETY: by the contract `length` bytes are within the capacity, and the slack: each word that is written
        // begins before the last of these bytes, or is the first.
        unsafe {
            self.end = to.add(length);
            let word = words::read_one(&words[0]) >> (skip * 8);
            to.cast::<u64>().write_unaligned(word.to_le());
            to = to.add(8 - skip);
            let (pairs, last) = words[1..].as_chunks::<2>();
            for [low, high] in pairs {
                let (low, high) = (words::read_one(low), words::read_one(high));
                to.cast::<u64>().write_unaligned(low.to_le());
                to.cast::<u64>().add(1).write_unaligned(high.to_le());
                to = to.add(16);
            }
            if let [last] = last {
                to.cast::<u64>()
                    .write_unaligned(words::read_one(last).to_le());
            }
        }
    }

    /// Makes what was put part of the vector, if there was room for everything; returns whether there was.
    #[inline]
    pub(crate) fn finish(self) -> bool {
        if self.is_full {
            return false;
        }
        let length = self.end.addr() - self.target.as_ptr().addr();
        // SAFETY: the bytes up to the end were put, within the capacity.
        unsafe { self.target.set_len(length) };
        true
    }
}

/// Reads from bytes of which nothing is known.
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the first of these bytes on.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    /// The bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// XX001 when there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            let left = self.bytes.len();
            return Err(corrupt(format!("{left} of {count} bytes are there")));
        };
        self.bytes = rest;
        Ok(taken)
    }

    /// The next `bytes` bytes as a number, at most eight, little-endian.
    ///
    /// # Errors
    /// XX001 when there are fewer.
    pub fn number(&mut self, bytes: usize) -> Result<u64> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(word))
    }
}

/// XX001: what was read was never written.
pub(crate) fn corrupt(what: impl std::fmt::Display) -> Error {
    let message = format!("a record of a log is damaged: {what}");
    Error::new(SqlState::DATA_CORRUPTED, message)
}
