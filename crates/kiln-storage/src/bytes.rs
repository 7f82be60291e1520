//! Bytes of a log: written without a check for each value, read with one.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::words;

use crate::error::{Error, Result, SqlState};

/// Appends values to a vector, within its capacity. Room is made sure of for many values at once:
/// what is put after [`Writer::begin`] takes at most what that was told, apart from [extra
/// bytes](Writer::has_extra_room).
///
/// Each value is written as a whole word of which the next value overwrites what is too much, so
/// that values of all sizes take the same few instructions. Functions that are not inlined take a
/// writer and give it back, so that it stays in registers where they are not called.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    /// Behind the last byte that was put.
    end: *mut u8,
    /// Behind the last byte that may be put at present.
    bound: *mut u8,
    /// Behind the last byte that may ever be put.
    limit: *mut u8,
    is_full: bool,
    target: PhantomData<&'a mut [u8]>,
}

impl<'a> Writer<'a> {
    /// A put writes at most this many bytes more than it puts: a target has to have room for them,
    /// too.
    pub(crate) const SLACK_BYTES: usize = 16;

    /// A writer that puts bytes at the beginning of `target`.
    #[inline]
    pub(crate) fn new(target: &'a mut [MaybeUninit<u8>]) -> Writer<'a> {
        let room = target.len().saturating_sub(Writer::SLACK_BYTES);
        let end = target.as_mut_ptr().cast::<u8>();
        Writer {
            end,
            bound: end,
            // SAFETY: there are at least so many bytes.
            limit: unsafe { end.add(room) },
            is_full: false,
            target: PhantomData,
        }
    }

    /// The address behind the last byte that was put, if there was room for everything.
    #[inline]
    pub(crate) fn end(&self) -> Option<usize> {
        (!self.is_full).then(|| self.end.addr())
    }

    /// Whether there is room for this many bytes, which may be put then. Once there is not, nothing
    /// is kept.
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

    /// Whether there is room for this many further bytes, which the caller may put then. Once there
    /// is not, the writer keeps nothing.
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
    /// The caller has reserved room for them, as [`Writer::begin`] says.
    #[inline(always)]
    pub(crate) unsafe fn put(&mut self, word: u64, bytes: usize) {
        self.check(bytes);
        // SAFETY: the caller reserved room for the bytes, and behind the room there is slack for a
        // word.
        unsafe {
            self.end.cast::<u64>().write_unaligned(word.to_le());
            self.end = self.end.add(bytes);
        }
    }

    /// Puts such words, one after the other.
    ///
    /// # Safety
    /// The caller has reserved room for them, as [`Writer::begin`] says.
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
    /// The caller has reserved room for them, as [`Writer::begin`] says.
    #[inline]
    pub(crate) unsafe fn put_bytes(&mut self, bytes: &[u8]) {
        self.check(bytes.len());
        // SAFETY: the caller reserved room for the bytes. The writer borrows the target
        // exclusively, so `bytes` lie elsewhere.
        unsafe {
            self.end
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.end = self.end.add(bytes.len());
        }
    }

    /// Puts `length` bytes of a row, from the offset `start` on.
    ///
    /// # Safety
    /// The caller has reserved room for them, as [`Writer::begin`] says. The row has all words
    /// of these bytes.
    #[inline(always)]
    pub(crate) unsafe fn put_words(&mut self, row: &[AtomicU64], start: usize, length: usize) {
        self.check(length);
        debug_assert!(start / 8 < row.len() && start + length <= row.len() * 8);
        let skip = start % 8;
        // SAFETY: the caller passes a row that has all words of these bytes, and reserved room for
        // `length` bytes. Each word that is written begins before the last of these bytes, or is
        // the first, so it ends within the room and the slack.
        unsafe {
            let mut from = row.as_ptr().add(start / 8);
            let mut to = self.end;
            self.end = to.add(length);
            let word = words::read_one(&*from) >> (skip * 8);
            to.cast::<u64>().write_unaligned(word.to_le());
            to = to.add(8 - skip);
            while to < self.end {
                from = from.add(1);
                let word = words::read_one(&*from);
                to.cast::<u64>().write_unaligned(word.to_le());
                to = to.add(8);
            }
        }
    }

    /// Puts the first `length` bytes of a row; reads as many as are in a whole number of pairs of
    /// words.
    ///
    /// # Safety
    /// The caller has reserved room for them, as [`Writer::begin`] says. The row has all words
    /// of these pairs, and there is at least one pair.
    #[inline(always)]
    pub(crate) unsafe fn put_pairs(&mut self, row: &[AtomicU64], length: usize) {
        self.check(length);
        debug_assert!(length > 0 && length.next_multiple_of(16) <= row.len() * 8);
        // SAFETY: the caller passes a row that has all words of these pairs, and reserved room for
        // `length` bytes. Each pair that is written begins before the last of these bytes, so it
        // ends within the room and the slack.
        unsafe {
            let mut from = row.as_ptr();
            let mut to = self.end;
            self.end = to.add(length);
            while to < self.end {
                let (low, high) = (words::read_one(&*from), words::read_one(&*from.add(1)));
                to.cast::<u64>().write_unaligned(low.to_le());
                to.cast::<u64>().add(1).write_unaligned(high.to_le());
                (from, to) = (from.add(2), to.add(16));
            }
        }
    }
}

/// Reads from bytes of which nothing is known.
#[derive(Clone, Debug)]
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
    #[inline(always)]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.bytes.split_at_checked(count) {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(taken)
            }
            None => Err(self.too_short(count)),
        }
    }

    /// The next `bytes` bytes as a number, at most eight, little-endian.
    ///
    /// # Errors
    /// XX001 when there are fewer.
    #[inline(always)]
    pub fn number(&mut self, bytes: usize) -> Result<u64> {
        match self.bytes.first_chunk() {
            Some(word) => {
                self.bytes = &self.bytes[bytes..];
                let above = u64::MAX.checked_shl(8 * bytes as u32).unwrap_or(0);
                Ok(u64::from_le_bytes(*word) & !above)
            }
            None => self.number_at_end(bytes),
        }
    }

    /// As [`Reader::number`], where fewer than eight bytes are left.
    fn number_at_end(&mut self, bytes: usize) -> Result<u64> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(word))
    }

    #[cold]
    fn too_short(&self, count: usize) -> Error {
        corrupt(format!("{} of {count} bytes are there", self.bytes.len()))
    }
}

/// Appends a byte string after its length in 4 bytes.
///
/// # Panics
/// When it has 4 GiB or more; no value has.
pub fn append_string(target: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a value has less than 4 GiB");
    target.extend_from_slice(&length.to_le_bytes());
    target.extend_from_slice(bytes);
}

/// Reads a byte string that [`append_string`] has appended.
///
/// # Errors
/// XX001 when the bytes do not hold one.
pub fn read_string<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let length = reader.number(4)? as usize;
    reader.take(length)
}

/// Reads a text that [`append_string`] has appended.
///
/// # Errors
/// XX001 when the bytes do not hold one.
pub fn read_text<'a>(reader: &mut Reader<'a>) -> Result<&'a str> {
    let text = std::str::from_utf8(read_string(reader)?);
    text.map_err(|_| corrupt("no text has such bytes"))
}

/// XX001: what was read was never written.
#[cold]
pub fn corrupt(what: impl std::fmt::Display) -> Error {
    let message = format!("a record of a log is damaged: {what}");
    Error::new(SqlState::DATA_CORRUPTED, message)
}
