//! Slots: the registers of a running procedure, and the heap that holds what does not fit in one.
//!
//! A slot is sixteen bytes without a type tag: the compiled procedure knows the type of each of
//! its registers. The low bit of the upper word says NULL, whatever the type:
//!
//! | type | lower word | upper word |
//! |---|---|---|
//! | integers, DATE, TIMESTAMP | the value, sign-extended | 0 |
//! | BOOLEAN | 0 or 1 | 0 |
//! | DOUBLE PRECISION | its bits | 0 |
//! | NUMERIC | lower mantissa | scale in bits 8–15, upper mantissa in bits 16–63 |
//! | NUMERIC, long | offset into the heap's bytes | 4, and the length in bits 8–39 |
//! | NUMERIC, NaN and the infinities | which of them | 4 |
//! | text, BYTEA, UUID, INTERVAL, rows | offset into the heap's bytes | length in bits 8–39 |
//! | arrays | offset into the heap's elements | length in bits 8–39 |
//! | any, NULL | 0 | 1 |
//!
//! A number that two words hold is never long, so that two slots with the same digits and scale are
//! of the same form.

pub(crate) mod packed;
pub mod row;

use std::ptr::slice_from_raw_parts;

use kiln_platform::atomic::prefetch_plain;
use kiln_platform::plain;
use kiln_platform::sync::Arc;

use crate::deferral::{ConstraintModes, Surroundings};
use crate::error::{Error, SqlState};
use crate::sequence::Draws;
use crate::types::{Decimal, Interval, Number};

pub use packed::Packing;

/// Stands behind an array where it can grow. No element is like it.
const ROOM: Slot = Slot {
    lo: u64::MAX,
    hi: u64::MAX,
};

/// The bit of the upper word of a NUMERIC that is no [`Decimal`].
pub(crate) const LONG: u64 = 4;

/// Elements from which on an array that is copied gets room.
const ROOM_FROM: usize = 8;

/// One register's content; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Slot {
    lo: u64,
    hi: u64,
}

const _: () = assert!(size_of::<Slot>() == 16);

impl Slot {
    /// NULL of every type.
    pub const NULL: Slot = Slot { lo: 0, hi: 1 };
    /// SQL's TRUE.
    pub const TRUE: Slot = Slot { lo: 1, hi: 0 };
    /// SQL's FALSE.
    pub const FALSE: Slot = Slot { lo: 0, hi: 0 };

    /// A slot from its two words.
    #[inline(always)]
    pub const fn from_words(lo: u64, hi: u64) -> Slot {
        Slot { lo, hi }
    }

    /// The two words.
    #[inline(always)]
    pub const fn words(self) -> (u64, u64) {
        (self.lo, self.hi)
    }

    /// Whether this is NULL.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.hi & 1 != 0
    }

    /// NUMERIC's NaN. Its lower word is one that no column of at most 18 digits has, and so is the
    /// lower half of that for columns of at most 9.
    pub const NAN: Slot = Slot {
        lo: 0x8000_0000_8000_0000,
        hi: LONG,
    };
    /// NUMERIC's Infinity.
    pub const INFINITY: Slot = Slot { lo: 1, hi: LONG };
    /// NUMERIC's -Infinity.
    pub const NEGATIVE_INFINITY: Slot = Slot { lo: 0, hi: LONG };

    /// Whether this, a NUMERIC, is no [`Decimal`] but a number with more digits, NaN or infinite.
    #[inline(always)]
    pub const fn is_long(self) -> bool {
        self.hi & LONG != 0
    }

    /// Whether this, of any type, is a NUMERIC with digits in the heap.
    #[inline(always)]
    pub const fn is_long_in_heap(self) -> bool {
        self.hi & LONG != 0 && self.hi >> 8 != 0
    }

    /// Whether bytes in the heap are a part of this, a value of a type of byte strings or of
    /// another one, arrays apart: then these are copied where it is kept for longer than they.
    #[inline(always)]
    pub const fn has_bytes(self, is_byte_string: bool) -> bool {
        match is_byte_string {
            true => !self.is_null(),
            false => self.is_long_in_heap(),
        }
    }

    /// Whether this, a NUMERIC, is NULL or no [`Decimal`].
    #[inline(always)]
    pub const fn is_null_or_long(self) -> bool {
        self.hi & (LONG | 1) != 0
    }

    /// Whether one of the two, NUMERICs, is no [`Decimal`].
    #[inline(always)]
    pub const fn either_long(a: Slot, b: Slot) -> bool {
        (a.hi | b.hi) & LONG != 0
    }

    /// Whether this is TRUE, and neither FALSE nor NULL.
    #[inline(always)]
    pub const fn is_true(self) -> bool {
        self.lo & !self.hi & 1 != 0
    }

    /// Whether this is FALSE, and neither TRUE nor NULL.
    #[inline(always)]
    pub const fn is_false(self) -> bool {
        !(self.lo | self.hi) & 1 != 0
    }

    /// Whether one of the two is NULL: the test before most strict functions.
    #[inline(always)]
    pub const fn either_null(a: Slot, b: Slot) -> bool {
        (a.hi | b.hi) & 1 != 0
    }

    /// An integer, a date (days) or a timestamp (microseconds).
    #[inline(always)]
    pub const fn from_i64(value: i64) -> Slot {
        Slot {
            lo: value as u64,
            hi: 0,
        }
    }

    /// The integer, date or timestamp; meaningless when NULL.
    #[inline(always)]
    pub const fn as_i64(self) -> i64 {
        self.lo as i64
    }

    /// A boolean.
    #[inline(always)]
    pub const fn from_bool(value: bool) -> Slot {
        Slot {
            lo: value as u64,
            hi: 0,
        }
    }

    /// The boolean; meaningless when NULL.
    #[inline(always)]
    pub const fn as_bool(self) -> bool {
        self.lo != 0
    }

    /// A double.
    #[inline(always)]
    pub const fn from_f64(value: f64) -> Slot {
        Slot {
            lo: value.to_bits(),
            hi: 0,
        }
    }

    /// The double; meaningless when NULL.
    #[inline(always)]
    pub const fn as_f64(self) -> f64 {
        f64::from_bits(self.lo)
    }

    /// An exact number.
    #[inline(always)]
    pub fn from_decimal(value: Decimal) -> Slot {
        let (lo, hi) = value.pack();
        Slot { lo, hi }
    }

    /// The exact number; meaningless when NULL or [long](Slot::is_long).
    #[inline(always)]
    pub fn as_decimal(self) -> Decimal {
        Decimal::unpack(self.lo, self.hi)
    }

    /// A stretch of the heap: bytes or elements.
    #[inline(always)]
    pub const fn from_span(offset: u32, length: u32) -> Slot {
        Slot {
            lo: offset as u64,
            hi: (length as u64) << 8,
        }
    }

    /// The same stretch of bytes where these lie `offset` further on; see
    /// [`Heap::append_bytes_of`].
    #[inline(always)]
    pub const fn moved_by(self, offset: u32) -> Slot {
        Slot {
            lo: self.lo + offset as u64,
            hi: self.hi,
        }
    }

    /// Offset and length of a stretch of the heap; meaningless when NULL.
    #[inline(always)]
    pub const fn span(self) -> (usize, usize) {
        (self.lo as u32 as usize, (self.hi >> 8) as u32 as usize)
    }
}

/// The variable-length values of one running procedure: bytes (text, BYTEA, UUID, INTERVAL) and
/// array elements. Values are appended and never change; the whole heap is cleared at once.
#[derive(Clone, Debug)]
pub struct Heap {
    bytes: Vec<u8>,
    elements: Vec<Slot>,
    /// When the transaction began, in microseconds since 1970-01-01 00:00:00 UTC, for functions
    /// that tell the time; `None` when it began with the procedure.
    pub transaction_began_us: Option<i64>,
    /// What the procedure is a part of, if it is not alone and in the default style.
    pub surroundings: Option<Arc<Surroundings>>,
    /// What functions went through since the limits were looked at, in bytes.
    work: u32,
    /// The most of it; `u32::MAX` where there is none.
    work_max: u32,
}

impl Default for Heap {
    fn default() -> Heap {
        Heap::with_work_max(u32::MAX)
    }
}

/// A position in a [`Heap`] to go back to.
#[derive(Clone, Copy, Debug)]
pub struct HeapMark {
    bytes: usize,
    elements: usize,
}

#[cold]
fn too_long() -> Error {
    Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "the function takes too long to be computed here",
    )
}

impl Heap {
    /// When deferrable constraints are checked, for a procedure that is a part of a larger
    /// transaction.
    pub fn constraint_modes(&self) -> Option<&Arc<ConstraintModes>> {
        self.surroundings.as_ref()?.constraint_modes.as_ref()
    }

    /// How the session writes texts, as [`Style::bytes_of`](crate::types::Style::bytes_of) has it;
    /// nothing for the default.
    pub fn style(&self) -> Option<&Arc<[u8]>> {
        self.surroundings.as_ref()?.style.as_ref()
    }

    /// What one procedure may hold at a time; the executor checks it in every loop.
    pub const LIMIT_BYTES: usize = 1 << 30;

    /// What functions may go through between two looks at the limits, in bytes: a millisecond.
    const WORK_PER_CHECK: u32 = 1 << 20;

    /// Of a small heap: the values of a short transaction take less.
    const SMALL_BYTES: usize = 4 << 10;

    /// An empty heap.
    pub fn new() -> Heap {
        Heap::default()
    }

    /// An empty heap for functions that go through so many bytes at most.
    pub fn with_work_max(bytes: u32) -> Heap {
        Heap {
            bytes: Vec::new(),
            elements: Vec::new(),
            transaction_began_us: None,
            surroundings: None,
            work: 0,
            work_max: bytes,
        }
    }

    /// A function is about to work as long as one that goes through so many bytes. The executor
    /// weighs what functions take and return; a function says so itself where it works longer.
    ///
    /// # Errors
    /// 54000 where the heap has a limit and this is more.
    #[inline]
    pub fn spend(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.work = self.work.saturating_add(bytes);
        match self.work > self.work_max {
            true => Err(too_long()),
            false => Ok(()),
        }
    }

    /// Whether functions went through so much that it is time to look at the limits.
    #[inline(always)]
    pub fn has_worked_long(&self) -> bool {
        self.work >= Heap::WORK_PER_CHECK
    }

    /// Whether no value in it is so long that going through it takes long: what loops do with such
    /// values is counted by their iterations.
    #[inline(always)]
    pub fn is_small(&self) -> bool {
        self.used_bytes() <= Heap::SMALL_BYTES
    }

    /// The limits were looked at.
    #[inline]
    pub fn forget_work(&mut self) {
        self.work = 0;
    }

    /// Asks for the memory that other values will be kept in, at most so many bytes of each kind.
    #[inline]
    pub fn fetch_room(&self, bytes_max: usize) {
        let bytes = slice_from_raw_parts(self.bytes.as_ptr(), self.bytes.capacity());
        prefetch_plain(bytes, bytes_max);
        let elements = slice_from_raw_parts(self.elements.as_ptr(), self.elements.capacity());
        prefetch_plain(elements, bytes_max);
    }

    /// Asks for its memory, at most so many bytes of each kind, before it is used.
    #[inline]
    pub fn fetch(&self, bytes_max: usize) {
        prefetch_plain(self.bytes.as_slice(), bytes_max);
        prefetch_plain(self.elements.as_slice(), bytes_max);
    }

    /// Tells virtual cores that the calling thread reads its values, which another one may have
    /// written.
    #[inline(always)]
    pub fn note_reads(&self) {
        plain::reads(self.bytes.as_slice());
        plain::reads(self.elements.as_slice());
    }

    /// As [`Heap::note_reads`], of values that the thread has written and others will read.
    #[inline(always)]
    pub fn note_writes(&self) {
        plain::writes(self.bytes.as_slice());
        plain::writes(self.elements.as_slice());
    }

    /// Forgets everything and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.elements.clear();
    }

    /// The present end, for [`Heap::release`].
    #[inline(always)]
    pub fn mark(&self) -> HeapMark {
        HeapMark {
            bytes: self.bytes.len(),
            elements: self.elements.len(),
        }
    }

    /// Forgets what was appended since `mark`; slots that point there become meaningless.
    #[inline(always)]
    pub fn release(&mut self, mark: HeapMark) {
        self.bytes.truncate(mark.bytes);
        self.elements.truncate(mark.elements);
    }

    /// The bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.bytes.len() + self.elements.len() * size_of::<Slot>()
    }

    /// Appends `bytes`.
    ///
    /// # Panics
    /// Past 4 GiB; callers keep to [`Heap::LIMIT_BYTES`].
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Slot {
        let offset = self.bytes.len();
        assert!(
            offset + bytes.len() <= u32::MAX as usize,
            "a procedure's heap passed 4 GiB"
        );
        self.bytes.extend_from_slice(bytes);
        Slot::from_span(offset as u32, bytes.len() as u32)
    }

    /// Whether so many bytes more have room.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= u32::MAX as usize
    }

    /// Appends `text`.
    #[inline]
    pub fn push_str(&mut self, text: &str) -> Slot {
        self.push_bytes(text.as_bytes())
    }

    /// Lets `write` append bytes and returns the stretch they take.
    #[inline]
    pub fn build_bytes<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Slot, E> {
        let offset = self.bytes.len();
        write(&mut self.bytes)?;
        let end = self.bytes.len();
        assert!(
            offset <= end && end <= u32::MAX as usize,
            "a procedure's heap passed 4 GiB"
        );
        Ok(Slot::from_span(offset as u32, (end - offset) as u32))
    }

    /// Appends the concatenation of two stretches of this heap.
    pub fn concat(&mut self, left: Slot, right: Slot) -> Slot {
        let ((a, a_len), (b, b_len)) = (left.span(), right.span());
        let offset = self.bytes.len();
        if a + a_len == offset {
            // The left part is the last thing appended: grow it in place, so that building a text
            // piece by piece is linear. Its old slot stays valid, as it ends where it ended.
            self.bytes.extend_from_within(b..b + b_len);
            return Slot::from_span(a as u32, (a_len + b_len) as u32);
        }
        self.bytes.extend_from_within(a..a + a_len);
        self.bytes.extend_from_within(b..b + b_len);
        assert!(
            self.bytes.len() <= u32::MAX as usize,
            "a procedure's heap passed 4 GiB"
        );
        Slot::from_span(offset as u32, (a_len + b_len) as u32)
    }

    /// The bytes of a text, BYTEA, UUID or INTERVAL slot that is not NULL.
    #[inline(always)]
    pub fn bytes(&self, slot: Slot) -> &[u8] {
        let (offset, length) = slot.span();
        &self.bytes[offset..offset + length]
    }

    /// The text of a slot that is not NULL.
    ///
    /// # Panics
    /// When the bytes are not UTF-8: text is checked where it enters the database.
    #[inline]
    pub fn str(&self, slot: Slot) -> &str {
        std::str::from_utf8(self.bytes(slot)).expect("text in a slot is valid UTF-8")
    }

    /// Puts a number there, in its slot where that has room.
    pub fn push_number(&mut self, number: &Number) -> Slot {
        match number {
            Number::NaN => Slot::NAN,
            Number::Infinity => Slot::INFINITY,
            Number::NegativeInfinity => Slot::NEGATIVE_INFINITY,
            Number::Finite(_) => match number.to_decimal() {
                Some(decimal) => Slot::from_decimal(decimal),
                None => self.push_long_number(|bytes| number.append_bytes_to(bytes)),
            },
        }
    }

    fn push_long_number(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Slot {
        let offset = self.bytes.len();
        append(&mut self.bytes);
        let end = self.bytes.len();
        assert!(end <= u32::MAX as usize, "a procedure's heap passed 4 GiB");
        let Slot { lo, hi } = Slot::from_span(offset as u32, (end - offset) as u32);
        Slot { lo, hi: hi | LONG }
    }

    /// Puts a long number there whose bytes are known to be one's.
    pub(crate) fn push_number_bytes(&mut self, number: &[u8]) -> Slot {
        self.push_long_number(|bytes| bytes.extend_from_slice(number))
    }

    /// The number of a NUMERIC slot that is not NULL.
    ///
    /// A reader of a row that is being changed may have an upper word without its lower one: it
    /// gets some number or other.
    pub fn number(&self, slot: Slot) -> Number {
        if !slot.is_long() {
            return Number::from(slot.as_decimal());
        }
        match slot {
            _ if slot.is_long_in_heap() => {
                Number::from_bytes(self.bytes(slot)).unwrap_or(Number::NaN)
            }
            Slot::INFINITY => Number::Infinity,
            Slot::NEGATIVE_INFINITY => Number::NegativeInfinity,
            _ => Number::NaN,
        }
    }

    /// Appends the bytes of a slot of `other`, a byte string or a NUMERIC with bytes: the value is
    /// this heap's then.
    pub fn push_copy(&mut self, slot: Slot, other: &Heap) -> Slot {
        let copy = self.push_bytes(other.bytes(slot));
        Slot {
            lo: copy.lo,
            hi: copy.hi | slot.hi & LONG,
        }
    }

    /// Appends an array of integers.
    #[inline]
    pub fn push_integers(&mut self, values: &[i64]) -> Slot {
        let offset = self.elements.len();
        self.elements
            .extend(values.iter().map(|&value| Slot::from_i64(value)));
        Slot::from_span(offset as u32, values.len() as u32)
    }

    /// Copies the whole of `image` in; slots that point into it are valid here too.
    ///
    /// # Panics
    /// When this heap is not empty.
    #[inline]
    pub fn append_image(&mut self, image: &Heap) {
        assert!(
            self.bytes.is_empty() && self.elements.is_empty(),
            "an image fills an empty heap"
        );
        self.bytes.extend_from_slice(&image.bytes);
        self.elements.extend_from_slice(&image.elements);
    }

    /// Appends the bytes of `other`, and says how much further on they lie here.
    ///
    /// # Panics
    /// Past 4 GiB; callers keep to [`Heap::LIMIT_BYTES`].
    #[inline]
    pub fn append_bytes_of(&mut self, other: &Heap) -> u32 {
        let offset = u32::try_from(self.bytes.len()).expect("a procedure's heap passed 4 GiB");
        self.bytes.extend_from_slice(&other.bytes);
        offset
    }

    /// Appends an array of `elements`.
    #[inline]
    pub fn push_array(&mut self, elements: &[Slot]) -> Slot {
        let offset = self.elements.len();
        self.elements.extend_from_slice(elements);
        Slot::from_span(offset as u32, elements.len() as u32)
    }

    /// The elements of an array slot that is not NULL.
    #[inline(always)]
    pub fn array(&self, slot: Slot) -> &[Slot] {
        let (offset, length) = slot.span();
        &self.elements[offset..offset + length]
    }

    /// The element at `position` (from 0) of an array slot that is not NULL; `None` outside.
    #[inline(always)]
    pub fn element(&self, array: Slot, position: usize) -> Option<Slot> {
        let (offset, length) = array.span();
        (position < length).then(|| self.elements[offset + position])
    }

    /// A new array: `array` with `element` appended. Arrays that grow in turn, an element at a
    /// time, take time and memory linear in their lengths: one that has to be copied gets room for
    /// as many elements again.
    pub fn array_append(&mut self, array: Slot, element: Slot) -> Slot {
        let (offset, length) = array.span();
        let end = offset + length;
        if end == self.elements.len() {
            self.elements.push(element);
            return Slot::from_span(offset as u32, length as u32 + 1);
        }
        // Another array with the same elements may have taken the room: then there is none.
        if self.elements[end] == ROOM {
            self.elements[end] = element;
            return Slot::from_span(offset as u32, length as u32 + 1);
        }
        let start = self.elements.len();
        self.elements.extend_from_within(offset..end);
        self.elements.push(element);
        if length >= ROOM_FROM {
            let with_room = self.elements.len() + length;
            self.elements.resize(with_room, ROOM);
        }
        Slot::from_span(start as u32, length as u32 + 1)
    }

    /// A new array: `array` with the element at `position` (from 0) replaced.
    ///
    /// # Panics
    /// When `position` is outside the array.
    pub fn array_replace(&mut self, array: Slot, position: usize, element: Slot) -> Slot {
        let (offset, length) = array.span();
        assert!(
            position < length,
            "position {position} in an array of {length}"
        );
        let start = self.elements.len();
        self.elements.extend_from_within(offset..offset + length);
        self.elements[start + position] = element;
        Slot::from_span(start as u32, length as u32)
    }

    /// Appends an interval: sixteen bytes, little-endian months, days, microseconds.
    pub fn push_interval(&mut self, interval: Interval) -> Slot {
        let mut bytes = [0; 16];
        bytes[0..4].copy_from_slice(&interval.months.to_le_bytes());
        bytes[4..8].copy_from_slice(&interval.days.to_le_bytes());
        bytes[8..16].copy_from_slice(&interval.microseconds.to_le_bytes());
        self.push_bytes(&bytes)
    }

    /// The interval of a slot that is not NULL.
    pub fn interval(&self, slot: Slot) -> Interval {
        let bytes: &[u8; 16] = self
            .bytes(slot)
            .try_into()
            .expect("an interval has 16 bytes");
        let word = |at: usize| {
            i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut microseconds = [0; 8];
        microseconds.copy_from_slice(&bytes[8..16]);
        Interval {
            months: word(0),
            days: word(4),
            microseconds: i64::from_le_bytes(microseconds),
        }
    }

    /// The raw bytes, for a record's columns to be copied in.
    #[inline(always)]
    pub(crate) fn raw_bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// The memory of one running procedure: registers, heap, and what it has drawn from sequences.
#[derive(Default, Debug)]
pub struct Memory {
    /// The registers.
    pub slots: Vec<Slot>,
    /// Variable-length values.
    pub heap: Heap,
    /// What the call has drawn from sequences, if it is one that draws.
    pub draws: Option<Arc<Draws>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_grow_in_turn_take_room_linear_in_their_lengths() {
        let mut heap = Heap::default();
        let mut arrays = [heap.push_array(&[]); 3];
        for number in 0..10_000 {
            for array in &mut arrays {
                *array = heap.array_append(*array, Slot::from_i64(number));
            }
        }
        for array in arrays {
            let numbers = heap.array(array).iter().map(|it| it.as_i64());
            assert!(numbers.eq(0..10_000));
        }
        assert!(
            heap.elements.len() < 3 * 5 * 10_000,
            "{}",
            heap.elements.len()
        );
    }

    #[test]
    fn arrays_with_the_same_beginning_do_not_share_their_ends() {
        let mut heap = Heap::default();
        let numbers: Vec<Slot> = (0..20).map(Slot::from_i64).collect();
        let first = heap.push_array(&numbers);
        heap.push_array(&numbers);
        // A copy with room behind it, of which three arrays would like to have the first element.
        let copied = heap.array_append(first, Slot::NULL);
        let ends = [1, 2, 3].map(|end| heap.array_append(copied, Slot::from_i64(end)));
        for (array, end) in ends.into_iter().zip([1, 2, 3]) {
            assert_eq!(heap.array(array).len(), 22);
            assert_eq!(heap.element(array, 21), Some(Slot::from_i64(end)));
        }
        assert_eq!(heap.array(copied).len(), 21);
    }
}
