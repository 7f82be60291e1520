//! Where a row's columns lie, and how a column is read and written.
//!
//! A row is a sequence of 64-bit words that are only touched by relaxed atomic accesses, so that
//! an optimistic reader may look at a row that is being changed: it reads garbage, never
//! undefined behaviour, and finds out by the record's tid. Columns are packed by size — eight
//! bytes first, then four, two, one, the NULL bits, and last the byte strings — so that the
//! numbers that transactions update share the cache line of the header, and a row costs little
//! more than its raw bytes.
//!
//! A byte string lies in the row: a length (one byte, or two) and room for `capacity` bytes.
//! A longer one is *spilled*: the length is all ones and the first eight bytes point to a
//! [`Blob`], which is immutable and reclaimed by epochs. A pointer read optimistically must not
//! be followed before the tid says that it was not torn; hence the two steps
//! [`ColumnAccess::load`] and [`resolve`].
//!
//! A NUMERIC lies there as its mantissa where its type bounds that to 18 digits, and else as the
//! two words of its slot. A number with more digits than those hold is spilled, too: the upper word
//! says so, and the lower one points to its bytes. NaN has a mantissa that no number of the type
//! has.

mod reading;
mod values;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::plain;
use kiln_platform::words;

use crate::schema::{Column, ColumnId, ColumnSet};
use crate::slot::{Heap, LONG, Slot};
use crate::types::{CatalogType, DataType};

pub use reading::is_possible;
use values::ValueFormat;

/// A byte string too long for its row: a length and the bytes, allocated by [`Blob::new`].
pub struct Blob {
    length: usize,
}

impl Blob {
    fn allocation(length: usize) -> Layout {
        Layout::from_size_align(size_of::<Blob>() + length, align_of::<Blob>())
            .expect("a byte string is shorter than the address space")
    }

    /// A blob with a copy of `bytes`.
    pub fn new(bytes: &[u8]) -> NonNull<Blob> {
        let allocation = Blob::allocation(bytes.len());
        // SAFETY: the size is not zero, as it contains the length field.
        let raw = unsafe { alloc(allocation) }.cast::<Blob>();
        let Some(blob) = NonNull::new(raw) else {
            handle_alloc_error(allocation)
        };
        // SAFETY: the allocation has room for the length and, behind it, `bytes`.
        unsafe {
            blob.write(Blob {
                length: bytes.len(),
            });
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), raw.add(1).cast(), bytes.len());
            plain::writes(Blob::bytes(blob));
        }
        blob
    }

    /// The bytes.
    ///
    /// # Safety
    /// `blob` was made by [`Blob::new`] and is not freed while the result lives.
    pub unsafe fn bytes<'a>(blob: NonNull<Blob>) -> &'a [u8] {
        // SAFETY: [`Blob::new`] initialised the length and the bytes behind it, and the caller
        // keeps the blob allocated while the result lives.
        unsafe { std::slice::from_raw_parts(blob.as_ptr().add(1).cast(), (*blob.as_ptr()).length) }
    }

    /// The bytes that come back when it is freed.
    ///
    /// # Safety
    /// `blob` was made by [`Blob::new`] and is not freed.
    pub unsafe fn bytes_allocated(blob: NonNull<Blob>) -> usize {
        // SAFETY: [`Blob::new`] initialised the length, and the blob is not freed.
        size_of::<Blob>() + unsafe { (*blob.as_ptr()).length }
    }

    /// Frees it.
    ///
    /// # Safety
    /// `blob` was made by [`Blob::new`], and no thread reads it any more.
    pub unsafe fn free(blob: NonNull<Blob>) {
        // SAFETY: [`Blob::new`] allocated the blob with this layout; it is freed once, here.
        unsafe {
            let allocation = Blob::allocation((*blob.as_ptr()).length);
            dealloc(blob.as_ptr().cast(), allocation);
        }
    }
}

/// How a column's value lies in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// BOOLEAN.
    One,
    /// SMALLINT.
    Two,
    /// INTEGER, DATE.
    Four,
    /// BIGINT, timestamps, and doubles by their bits.
    Eight,
    /// NUMERIC of at most 9 digits: the mantissa.
    Decimal4 { scale: u8 },
    /// NUMERIC of at most 18 digits.
    Decimal8 { scale: u8 },
    /// Any other NUMERIC: the two words of its slot.
    Decimal16,
    /// A byte string; `wide` lengths take two bytes.
    Bytes { capacity: u16, wide: bool },
}

impl Storage {
    fn of(data_type: &DataType) -> Storage {
        match data_type {
            DataType::Boolean => Storage::One,
            DataType::SmallInt => Storage::Two,
            DataType::Integer | DataType::Date => Storage::Four,
            DataType::BigInt
            | DataType::Timestamp(_)
            | DataType::TimestampTz(_)
            | DataType::Time(_)
            | DataType::Enum(_)
            | DataType::Double => Storage::Eight,
            DataType::Numeric { precision_scale } => match bounded_number(*precision_scale) {
                Some((..=9, scale)) => Storage::Decimal4 { scale },
                Some((_, scale)) => Storage::Decimal8 { scale },
                None => Storage::Decimal16,
            },
            DataType::Uuid => Storage::bytes(16),
            DataType::Char(length) => Storage::characters(*length),
            DataType::VarChar(Some(length)) => Storage::characters(*length),
            DataType::VarChar(None)
            | DataType::Text
            | DataType::Bytea
            | DataType::Array(_)
            | DataType::Row(_) => Storage::bytes(23),
            DataType::Interval(_) => Storage::bytes(16),
            DataType::Catalog(CatalogType::Real | CatalogType::Oid | CatalogType::Xid) => {
                Storage::Eight
            }
            DataType::Catalog(CatalogType::Char) => Storage::characters(1),
            DataType::Catalog(catalog) if catalog.is_json() || catalog.is_string() => {
                Storage::bytes(23)
            }
            DataType::Catalog(_) => {
                unreachable!("columns of type {data_type} are refused when a table is created")
            }
        }
    }

    /// Room for `length` characters if they are ASCII; one or two characters always fit.
    fn characters(length: u32) -> Storage {
        match length {
            0 | 1 => Storage::bytes(4),
            2..=1024 => Storage::bytes((length as u16).max(8)),
            // Longer limits are rarely reached: keep the row small and spill what is long.
            _ => Storage::bytes(63),
        }
    }

    fn bytes(capacity: u16) -> Storage {
        Storage::Bytes {
            capacity,
            wide: capacity >= 255,
        }
    }

    /// The alignment and size in bytes.
    fn shape(self) -> (usize, usize) {
        match self {
            Storage::One => (1, 1),
            Storage::Two => (2, 2),
            Storage::Four | Storage::Decimal4 { .. } => (4, 4),
            Storage::Eight | Storage::Decimal8 { .. } => (8, 8),
            Storage::Decimal16 => (8, 16),
            Storage::Bytes {
                capacity,
                wide: false,
            } => (1, 1 + capacity as usize),
            Storage::Bytes {
                capacity,
                wide: true,
            } => (2, 2 + capacity as usize),
        }
    }
}

/// Digits and scale of a NUMERIC type whose numbers have a mantissa of at most 18 digits at one
/// scale that a [`Decimal`](crate::types::Decimal) has.
pub(crate) fn bounded_number(precision_scale: Option<(u16, i16)>) -> Option<(u16, u8)> {
    let (precision, scale) = precision_scale?;
    let scale = u8::try_from(scale).ok().filter(|scale| *scale < 64)?;
    (precision <= 18).then_some((precision, scale))
}

/// Reads and writes one column of a row.
#[derive(Clone, Copy, Debug)]
pub struct ColumnAccess {
    storage: Storage,
    /// The offset of its first byte.
    offset: u32,
    /// The number of its NULL bit, counted from the row's first bit; `u32::MAX` when the column
    /// is NOT NULL.
    null_bit: u32,
}

/// The bit of the upper word of a loaded slot whose lower word is a [`Blob`] pointer not yet
/// followed; no value of any type has it.
const SPILLED: u64 = 2;

/// The upper word of a NUMERIC that is spilled, in its row as well.
const SPILLED_NUMBER: u64 = SPILLED | LONG;

/// Whether `slot`, just loaded, must be passed through [`resolve`].
#[inline(always)]
pub fn is_spilled(slot: Slot) -> bool {
    slot.words().1 & SPILLED != 0
}

/// Whether one of several slots, just loaded, must be passed through [`resolve`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AnySpilled {
    /// The upper words of the slots.
    bits: u64,
}

impl AnySpilled {
    /// Another one was loaded.
    #[inline(always)]
    pub fn note(&mut self, slot: Slot) {
        self.bits |= slot.words().1;
    }

    /// Whether one of them must be.
    #[inline(always)]
    pub fn is_any(self) -> bool {
        self.bits & SPILLED != 0
    }
}

/// Follows a spilled slot's pointer and copies its bytes into the heap.
///
/// # Safety
/// `slot` was loaded from a row whose tid did not change meanwhile, and the calling worker has
/// been inside its epoch since before.
pub unsafe fn resolve(slot: Slot, heap: &mut Heap) -> Slot {
    let blob = slot.words().0 as *mut Blob;
    let blob = NonNull::new(blob).expect("a spilled column has a pointer");
    // SAFETY: the row was stable, so this is a pointer that `store` wrote; the epoch keeps it.
    let bytes = unsafe { Blob::bytes(blob) };
    plain::reads(bytes);
    match slot.is_long() {
        false => heap.push_bytes(bytes),
        true => heap.push_number_bytes(bytes),
    }
}

impl ColumnAccess {
    #[inline(always)]
    fn word(&self) -> (usize, u32) {
        (self.offset as usize / 8, self.offset % 8 * 8)
    }

    #[inline(always)]
    fn is_null(&self, row: &[AtomicU64]) -> bool {
        self.null_bit != u32::MAX && {
            let word = words::read_one(&row[self.null_bit as usize / 64]);
            word >> (self.null_bit % 64) & 1 != 0
        }
    }

    /// The offsets of its first byte and of the byte after its last, in the row.
    #[inline]
    pub fn byte_range(&self) -> (usize, usize) {
        let start = self.offset as usize;
        (start, start + self.storage.shape().1)
    }

    /// Whether the column may point to a [`Blob`].
    fn may_spill(&self) -> bool {
        match self.storage {
            Storage::Bytes { capacity, .. } => capacity > 8,
            storage => storage == Storage::Decimal16,
        }
    }

    fn is_nullable(&self) -> bool {
        self.null_bit != u32::MAX
    }

    fn is_byte_string(&self) -> bool {
        matches!(self.storage, Storage::Bytes { .. })
    }

    /// Reads the column. Byte strings are copied into `heap`; a result for which [`is_spilled`]
    /// holds needs [`resolve`] once the row is known to be stable. A row that is being changed
    /// gives any value, never a fault.
    #[inline(always)]
    pub fn load(&self, row: &[AtomicU64], heap: &mut Heap) -> Slot {
        if self.is_null(row) {
            return Slot::NULL;
        }
        let (at, shift) = self.word();
        let word = words::read_one(&row[at]);
        match self.storage {
            Storage::One => Slot::from_i64((word >> shift & 1) as i64),
            Storage::Two => Slot::from_i64((word >> shift) as i16 as i64),
            Storage::Four => Slot::from_i64((word >> shift) as i32 as i64),
            Storage::Eight => Slot::from_words(word, 0),
            Storage::Decimal4 { scale } => decimal4_slot((word >> shift) as i32, scale),
            Storage::Decimal8 { scale } => decimal8_slot(word as i64, scale),
            Storage::Decimal16 => {
                let upper = words::read_one(&row[at + 1]);
                match upper & SPILLED_NUMBER {
                    // The low byte is the flags' place; a torn read must not set them.
                    0 => Slot::from_words(word, upper & !0xff),
                    flags => Slot::from_words(word, LONG | flags),
                }
            }
            Storage::Bytes { capacity, wide } => {
                let (length, spilled, start) = self.length(word >> shift, wide);
                if spilled {
                    return Slot::from_words(self.pointer(row, start), SPILLED);
                }
                let length = length.min(capacity as usize);
                if length == 0 {
                    return Slot::from_span(0, 0);
                }
                let (first, last) = (start / 8, (start + length - 1) / 8);
                let bytes = heap.raw_bytes();
                let offset = bytes.len() + start % 8;
                words::append_bytes(&row[first..=last], bytes);
                // What follows the string in its last word is not part of the heap, so that the
                // string ends where the heap ends and can grow in place.
                bytes.truncate(offset + length);
                Slot::from_span(offset as u32, length as u32)
            }
        }
    }

    /// Reads a column of an integer type, a date or a timestamp; 0 for NULL.
    #[inline(always)]
    pub fn load_integer(&self, row: &[AtomicU64]) -> i64 {
        if self.is_null(row) {
            return 0;
        }
        let (at, shift) = self.word();
        let word = words::read_one(&row[at]);
        match self.storage {
            Storage::Two => (word >> shift) as i16 as i64,
            Storage::Four => (word >> shift) as i32 as i64,
            _ => word as i64,
        }
    }

    /// Length, whether it is spilled, and the offset of the first byte behind the length.
    #[inline(always)]
    fn length(&self, prefix: u64, wide: bool) -> (usize, bool, usize) {
        if wide {
            let length = prefix as u16;
            (
                length as usize,
                length == u16::MAX,
                self.offset as usize + 2,
            )
        } else {
            let length = prefix as u8;
            (length as usize, length == u8::MAX, self.offset as usize + 1)
        }
    }

    /// The eight bytes from `start` on as one number.
    fn pointer(&self, row: &[AtomicU64], start: usize) -> u64 {
        let (at, shift) = (start / 8, start % 8 * 8);
        let low = words::read_one(&row[at]) >> shift;
        match shift {
            0 => low,
            _ => low | words::read_one(&row[at + 1]) << (64 - shift),
        }
    }

    /// Writes the column; the caller alone may write the row. A byte string longer than the
    /// column's room is put into a new [`Blob`]; the blob that was there before is not freed.
    #[inline(always)]
    pub fn store(&self, row: &[AtomicU64], slot: Slot, heap: &Heap) {
        if self.null_bit != u32::MAX {
            let bit = 1 << (self.null_bit % 64);
            let word = &row[self.null_bit as usize / 64];
            let old = words::read_one(word);
            words::write_one(
                word,
                if slot.is_null() {
                    old | bit
                } else {
                    old & !bit
                },
            );
            if slot.is_null() {
                return;
            }
        }
        debug_assert!(
            !slot.is_null(),
            "NULL in a NOT NULL column at offset {}",
            self.offset
        );
        let (at, shift) = self.word();
        match self.storage {
            Storage::One => merge(&row[at], slot.words().0 << shift, 0xff << shift),
            Storage::Two => merge(
                &row[at],
                (slot.words().0 & 0xffff) << shift,
                0xffff << shift,
            ),
            Storage::Four => {
                merge(
                    &row[at],
                    (slot.words().0 & 0xffff_ffff) << shift,
                    0xffff_ffff << shift,
                );
            }
            Storage::Eight => words::write_one(&row[at], slot.words().0),
            Storage::Decimal4 { .. } => {
                merge(
                    &row[at],
                    (slot.words().0 & 0xffff_ffff) << shift,
                    0xffff_ffff << shift,
                );
            }
            Storage::Decimal8 { .. } => words::write_one(&row[at], slot.words().0),
            Storage::Decimal16 => {
                let (lo, hi) = match slot.is_long_in_heap() {
                    false => slot.words(),
                    true => spilled_number(heap.bytes(slot)),
                };
                words::write(&row[at..at + 2], &[lo, hi]);
            }
            Storage::Bytes { .. } => self.store_bytes(row, heap.bytes(slot)),
        }
    }

    fn store_bytes(&self, row: &[AtomicU64], bytes: &[u8]) {
        let Storage::Bytes { capacity, wide } = self.storage else {
            unreachable!("only byte strings have bytes")
        };
        let (at, shift) = self.word();
        let (spilled, room) = (bytes.len() > capacity as usize, if wide { 2 } else { 1 });
        let (mask, length) = if wide {
            (
                0xffff,
                if spilled {
                    u16::MAX as u64
                } else {
                    bytes.len() as u64
                },
            )
        } else {
            (
                0xff,
                if spilled {
                    u8::MAX as u64
                } else {
                    bytes.len() as u64
                },
            )
        };
        merge(&row[at], length << shift, mask << shift);
        let start = self.offset as usize + room;
        if spilled {
            let pointer = Blob::new(bytes).as_ptr() as u64;
            write_bytes(row, start, &pointer.to_le_bytes());
        } else {
            write_bytes(row, start, bytes);
        }
    }

    /// The blob that the column points to; the row must be stable.
    pub fn blob(&self, row: &[AtomicU64]) -> Option<NonNull<Blob>> {
        let (at, shift) = self.word();
        let wide = match self.storage {
            Storage::Bytes { wide, .. } => wide,
            Storage::Decimal16 if self.is_null(row) => return None,
            Storage::Decimal16 => {
                let is_spilled = words::read_one(&row[at + 1]) & SPILLED != 0;
                let pointer = is_spilled.then(|| words::read_one(&row[at]));
                return pointer.and_then(|pointer| NonNull::new(pointer as *mut Blob));
            }
            _ => return None,
        };
        if self.is_null(row) {
            return None;
        }
        let (_, spilled, start) = self.length(words::read_one(&row[at]) >> shift, wide);
        if spilled {
            NonNull::new(self.pointer(row, start) as *mut Blob)
        } else {
            None
        }
    }

    /// Copies the column from one row of this layout to another, a blob's pointer included. The
    /// caller alone may write `to`, and `from` is stable.
    #[inline(always)]
    pub fn copy(&self, from: &[AtomicU64], to: &[AtomicU64]) {
        if self.null_bit != u32::MAX {
            let (word, bit) = (self.null_bit as usize / 64, 1 << (self.null_bit % 64));
            merge(&to[word], words::read_one(&from[word]) & bit, bit);
        }
        let (at, shift) = self.word();
        let word = words::read_one(&from[at]);
        match self.storage {
            Storage::One => merge(&to[at], word & (0xff << shift), 0xff << shift),
            Storage::Two => merge(&to[at], word & (0xffff << shift), 0xffff << shift),
            Storage::Four | Storage::Decimal4 { .. } => {
                merge(&to[at], word & (0xffff_ffff << shift), 0xffff_ffff << shift);
            }
            Storage::Eight | Storage::Decimal8 { .. } => words::write_one(&to[at], word),
            Storage::Decimal16 => {
                words::write_one(&to[at], word);
                words::write_one(&to[at + 1], words::read_one(&from[at + 1]));
            }
            Storage::Bytes { capacity, wide } => {
                let (length, spilled, start) = self.length(word >> shift, wide);
                let used = if spilled {
                    8
                } else {
                    length.min(capacity as usize)
                };
                copy_bytes(from, to, self.offset as usize, start + used);
            }
        }
    }

    /// Whether the column is the same in two rows of this layout. Two blobs are never the same, as
    /// following their pointers takes more than looking at rows that may be changing.
    pub fn is_same(&self, left: &[AtomicU64], right: &[AtomicU64]) -> bool {
        let is_null = self.is_null(left);
        if is_null || self.is_null(right) {
            return is_null && self.is_null(right);
        }
        let (at, shift) = self.word();
        let (word, other) = (words::read_one(&left[at]), words::read_one(&right[at]));
        let differs = word ^ other;
        match self.storage {
            Storage::One => differs >> shift & 0xff == 0,
            Storage::Two => differs >> shift & 0xffff == 0,
            Storage::Four | Storage::Decimal4 { .. } => differs >> shift & 0xffff_ffff == 0,
            Storage::Eight | Storage::Decimal8 { .. } => differs == 0,
            Storage::Decimal16 => {
                let upper = words::read_one(&left[at + 1]);
                differs == 0 && upper == words::read_one(&right[at + 1]) && upper & SPILLED == 0
            }
            Storage::Bytes { capacity, wide } => {
                let (length, spilled, start) = self.length(word >> shift, wide);
                let (other_length, other_spilled, _) = self.length(other >> shift, wide);
                if spilled || other_spilled || length != other_length {
                    return false;
                }
                let end = start + length.min(capacity as usize);
                (start / 8..end.div_ceil(8)).all(|word| {
                    let (first, last) = (start.max(word * 8), end.min(word * 8 + 8));
                    let mask = byte_mask(first - word * 8, last - word * 8);
                    (words::read_one(&left[word]) ^ words::read_one(&right[word])) & mask == 0
                })
            }
        }
    }

    /// The bytes that the present value takes, were it stored alone: what "raw bytes" means when
    /// memory is compared.
    pub fn raw_bytes(&self, row: &[AtomicU64]) -> usize {
        let Storage::Bytes { wide, .. } = self.storage else {
            // SAFETY: callers measure rows that no thread changes, so the pointer is live.
            let spilled = self
                .blob(row)
                .map(|blob| unsafe { Blob::bytes(blob) }.len());
            return self.storage.shape().1 + spilled.unwrap_or(0);
        };
        if self.is_null(row) {
            return 0;
        }
        let (at, shift) = self.word();
        match self.length(words::read_one(&row[at]) >> shift, wide) {
            (length, false, _) => length,
            // SAFETY: callers measure rows that no thread changes, so the pointer is live.
            (_, true, _) => self
                .blob(row)
                .map_or(0, |blob| unsafe { Blob::bytes(blob) }.len()),
        }
    }
}

/// The words of a NUMERIC with these bytes.
#[cold]
fn spilled_number(bytes: &[u8]) -> (u64, u64) {
    (Blob::new(bytes).as_ptr() as u64, SPILLED_NUMBER)
}

/// A NUMERIC of at most 9 digits.
#[inline(always)]
fn decimal4_slot(mantissa: i32, scale: u8) -> Slot {
    const NAN: i32 = Slot::NAN.words().0 as i32;
    match mantissa {
        NAN => nan(),
        _ => decimal_slot(mantissa.into(), scale),
    }
}

/// A NUMERIC of at most 18 digits.
#[inline(always)]
fn decimal8_slot(mantissa: i64, scale: u8) -> Slot {
    const NAN: i64 = Slot::NAN.words().0 as i64;
    match mantissa {
        NAN => nan(),
        _ => decimal_slot(mantissa, scale),
    }
}

/// Kept out of the code of those that load numbers.
#[cold]
#[inline(never)]
fn nan() -> Slot {
    Slot::NAN
}

#[inline(always)]
fn decimal_slot(mantissa: i64, scale: u8) -> Slot {
    // The packed form of a number whose mantissa fits a word: its upper part is the sign.
    let hi = ((mantissa >> 63) as u64) << 16 | (scale as u64) << 8;
    Slot::from_words(mantissa as u64, hi)
}

/// Replaces the bits of `mask`. No other thread writes the word: a writer holds the row.
#[inline(always)]
fn merge(word: &AtomicU64, bits: u64, mask: u64) {
    words::write_one(word, words::read_one(word) & !mask | bits);
}

/// Writes `bytes` at a byte offset.
fn write_bytes(row: &[AtomicU64], offset: usize, bytes: &[u8]) {
    let (mut at, skip) = (offset / 8, offset % 8);
    let (first, rest) = bytes.split_at(if skip == 0 {
        0
    } else {
        bytes.len().min(8 - skip)
    });
    if !first.is_empty() {
        let mask = byte_mask(skip, skip + first.len());
        merge(&row[at], few_bytes(first) << (skip * 8), mask);
        at += 1;
    }
    let mut words = rest.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().expect("a chunk has eight bytes");
        words::write_one(&row[at], u64::from_le_bytes(word));
        at += 1;
    }
    let last = words.remainder();
    if !last.is_empty() {
        merge(&row[at], few_bytes(last), byte_mask(0, last.len()));
    }
}

/// Fewer than eight bytes as the lowest of a word; those above are 0.
#[inline(always)]
fn few_bytes(bytes: &[u8]) -> u64 {
    match bytes.len() {
        // Two halves that overlap.
        length @ 4..8 => {
            let half = |start: usize| {
                let half = bytes[start..start + 4].try_into();
                u64::from(u32::from_le_bytes(half.expect("a half has four bytes")))
            };
            half(0) | half(length - 4) << ((length - 4) * 8)
        }
        _ => bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Copies the bytes from `start` to `end` (excluded) between rows.
fn copy_bytes(from: &[AtomicU64], to: &[AtomicU64], start: usize, end: usize) {
    let mut at = start;
    while at < end {
        let (word, skip) = (at / 8, at % 8);
        let stop = (end - word * 8).min(8);
        let bits = words::read_one(&from[word]);
        if stop - skip == 8 {
            words::write_one(&to[word], bits);
        } else {
            let mask = byte_mask(skip, stop);
            merge(&to[word], bits & mask, mask);
        }
        at = word * 8 + stop;
    }
}

/// The bits of the bytes from `start` to `end` (excluded) of a word.
fn byte_mask(start: usize, end: usize) -> u64 {
    let upto = if end == 8 {
        u64::MAX
    } else {
        (1 << (end * 8)) - 1
    };
    upto & !((1 << (start * 8)) - 1)
}

/// The layout of a table's rows.
#[derive(Clone, Debug)]
pub struct RowLayout {
    columns: Box<[ColumnAccess]>,
    all: ColumnSet,
    words: usize,
    spilling: ColumnSet,
    byte_strings: ColumnSet,
    row_number: Option<ColumnAccess>,
    values: ValueFormat,
}

impl RowLayout {
    /// The layout for `columns`; with `row_number`, rows have a hidden BIGINT that numbers them.
    pub fn new(columns: &[Column], row_number: bool) -> RowLayout {
        let storages: Vec<Storage> = columns
            .iter()
            .map(|column| Storage::of(&column.data_type))
            .collect();
        let mut offsets = vec![0; columns.len()];
        let mut end = 0;
        let row_number = row_number.then(|| {
            end = 8;
            ColumnAccess {
                storage: Storage::Eight,
                offset: 0,
                null_bit: u32::MAX,
            }
        });
        let is_bytes = |storage: &Storage| matches!(storage, Storage::Bytes { .. });
        for alignment in [8, 4, 2, 1] {
            for (position, storage) in storages.iter().enumerate() {
                if !is_bytes(storage) && storage.shape().0 == alignment {
                    offsets[position] = end;
                    end += storage.shape().1;
                }
            }
        }
        let null_bits_start = end * 8;
        let nullable = columns.iter().filter(|column| !column.not_null).count();
        end += nullable.div_ceil(8);
        for (position, storage) in storages.iter().enumerate() {
            if is_bytes(storage) {
                let (alignment, size) = storage.shape();
                offsets[position] = usize::next_multiple_of(end, alignment);
                end = offsets[position] + size;
            }
        }
        let mut next_null_bit = null_bits_start as u32;
        let accesses: Box<[ColumnAccess]> = columns
            .iter()
            .zip(storages)
            .zip(offsets)
            .map(|((column, storage), offset)| {
                let null_bit = if column.not_null {
                    u32::MAX
                } else {
                    next_null_bit
                };
                next_null_bit += !column.not_null as u32;
                ColumnAccess {
                    storage,
                    offset: offset as u32,
                    null_bit,
                }
            })
            .collect();
        let columns_that = |is_so: fn(&ColumnAccess) -> bool| -> ColumnSet {
            (0..accesses.len())
                .filter(|&position| is_so(&accesses[position]))
                .map(|position| ColumnId(position as u16))
                .collect()
        };
        let spilling = columns_that(ColumnAccess::may_spill);
        let byte_strings = columns_that(ColumnAccess::is_byte_string);
        let words = end.div_ceil(8).max(1);
        RowLayout {
            all: ColumnSet::first(accesses.len()),
            values: ValueFormat::new(&accesses, row_number.is_some(), words),
            columns: accesses,
            words,
            spilling,
            byte_strings,
            row_number,
        }
    }

    /// Words in a row.
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The access to one column.
    #[inline(always)]
    pub fn column(&self, column: ColumnId) -> &ColumnAccess {
        &self.columns[column.index()]
    }

    /// The accesses to all columns, in table order.
    pub fn columns(&self) -> &[ColumnAccess] {
        &self.columns
    }

    /// All columns.
    #[inline(always)]
    pub fn all(&self) -> ColumnSet {
        self.all
    }

    /// The columns that may point to blobs.
    #[inline(always)]
    pub fn spilling(&self) -> ColumnSet {
        self.spilling
    }

    /// The columns whose values are byte strings, which take more than one word: what a reader sees
    /// of one that is being changed need not be a value at all.
    #[inline(always)]
    pub fn byte_strings(&self) -> ColumnSet {
        self.byte_strings
    }

    /// The hidden row number of tables without a primary key.
    #[inline(always)]
    pub fn row_number(&self) -> Option<&ColumnAccess> {
        self.row_number.as_ref()
    }

    /// Copies `columns` from one row to another; see [`ColumnAccess::copy`].
    #[inline(always)]
    pub fn copy(&self, columns: ColumnSet, from: &[AtomicU64], to: &[AtomicU64]) {
        for column in columns.iter() {
            self.column(column).copy(from, to);
        }
    }

    /// Whether `columns` are the same in two rows; see [`ColumnAccess::is_same`].
    pub fn is_same(&self, columns: ColumnSet, left: &[AtomicU64], right: &[AtomicU64]) -> bool {
        (columns.iter()).all(|column| self.column(column).is_same(left, right))
    }

    /// The blobs that `columns` of a stable row point to.
    pub fn blobs<'a>(
        &'a self,
        columns: ColumnSet,
        row: &'a [AtomicU64],
    ) -> impl Iterator<Item = NonNull<Blob>> + 'a {
        let columns = ColumnSet::intersection(columns, self.spilling);
        columns
            .iter()
            .filter_map(move |column| self.column(column).blob(row))
    }
}
