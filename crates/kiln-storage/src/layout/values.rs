//! A row's values as bytes that do not depend on where its columns lie in memory: the form that
//! goes to a log.
//!
//! | part | bytes |
//! |---|---|
//! | *set* of columns | a bit for each column of the table, in as few bytes as have room for them |
//! | fixed-size value | little-endian: BOOLEAN 1, SMALLINT 2, INTEGER and DATE 4, BIGINT, timestamps and doubles 8; of a NUMERIC the mantissa, in 4 bytes for at most 9 digits and in 8 for at most 18, else the two words of its slot, or of a *long number* the length of its bytes and the word 6 |
//! | byte string | its length in 4 bytes, and the bytes: all texts, BYTEA, UUID |
//! | *long number* | its bytes, as [`Number`](crate::types::Number) has them |
//! | *values* of a set | in the table's order; before that of a column that may be NULL a byte: 0 if it is, and then there is no value, else 1; a long number's bytes follow the two words |
//! | *row* | the row number, 8 bytes, if the table has no primary key; the fixed-size values, first those of 8 and 16 bytes, then of 4, of 2 and of 1, each in the table's order, where the bytes of a NULL mean nothing; a bit for each column that may be NULL, in the table's order, in as few bytes as have room for them; the long numbers; the byte strings that are not NULL |
//!
//! A row has all but its byte strings in this order in memory as well, so that these are copied as
//! words.

use std::cmp::Reverse;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::words;

use super::{Blob, ColumnAccess, RowLayout, SPILLED_NUMBER, Storage};
use crate::bytes::Writer;
use crate::schema::{ColumnId, ColumnSet};

/// Where a value is read that has a fixed size of at most eight bytes and is never NULL: its word,
/// the bits before it in that, and its bytes. Others have no bytes here.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldLocation {
    word: u16,
    shift: u8,
    pub(super) bytes: u8,
}

/// What writing values takes, worked out once for each layout.
#[derive(Clone, Debug)]
pub(super) struct ValueFormat {
    pub(super) locations: Box<[FieldLocation]>,
    pub(super) nullable: ColumnSet,
    /// Those of the first 64 columns that have a location in `locations`.
    pub(super) plain: u64,
    /// The fixed-size columns, and those of byte strings, in the order of a whole row.
    pub(super) fixed: Box<[ColumnId]>,
    pub(super) strings: Box<[(ColumnId, ColumnAccess)]>,
    /// The fixed-size columns that cannot have all values that their bytes can.
    pub(super) checked: Box<[ColumnId]>,
    /// The fixed-size columns that may have long numbers, in the order of a whole row.
    pub(super) numbers: Box<[(ColumnId, ColumnAccess)]>,
    /// The bytes of a whole row before its byte strings.
    pub(super) head_bytes: usize,
    /// Whether a row has all words of the pairs in which these lie, and no long numbers.
    head_in_pairs: bool,
    pub(super) set_bytes: usize,
    /// What a set with its values takes at most, or a row, without spilled byte strings.
    bytes_max: usize,
}

impl ValueFormat {
    pub(super) fn new(columns: &[ColumnAccess], has_row_number: bool, words: usize) -> ValueFormat {
        let locations: Box<[FieldLocation]> = columns
            .iter()
            .map(|column| {
                let bytes = column.storage.shape().1;
                let is_plain = !column.is_byte_string() && bytes <= 8 && !column.is_nullable();
                FieldLocation {
                    word: (column.offset / 8) as u16,
                    shift: (column.offset % 8 * 8) as u8,
                    bytes: if is_plain { bytes as u8 } else { 0 },
                }
            })
            .collect();
        let plain = locations.iter().take(64).enumerate();
        let plain = plain.fold(0, |set, (at, location)| {
            set | u64::from(location.bytes > 0) << at
        });
        let ids = (0..columns.len() as u16).map(ColumnId);
        let access = |id: ColumnId| &columns[id.index()];
        let (strings, mut fixed): (Vec<ColumnId>, Vec<ColumnId>) =
            ids.clone().partition(|id| access(*id).is_byte_string());
        fixed.sort_by_key(|id| Reverse(access(*id).storage.shape().0));
        let checked = fixed.iter().copied().filter(|id| {
            !matches!(
                access(*id).storage,
                Storage::Two | Storage::Four | Storage::Eight
            )
        });
        let checked = checked.collect();
        let numbers = fixed.iter().map(|id| (*id, *access(*id)));
        let numbers: Box<[_]> = numbers.filter(|(_, access)| access.may_spill()).collect();
        let nullable: ColumnSet = ids.filter(|id| access(*id).is_nullable()).collect();
        let bytes_of = |ids: &[ColumnId]| -> usize {
            ids.iter().map(|id| access(*id).storage.shape().1).sum()
        };
        let head_bytes =
            8 * usize::from(has_row_number) + bytes_of(&fixed) + nullable.len().div_ceil(8);
        let set_bytes = columns.len().div_ceil(8);
        let string_bytes = 4 * strings.len() + bytes_of(&strings);
        ValueFormat {
            locations,
            nullable,
            plain,
            fixed: fixed.into(),
            checked,
            head_in_pairs: numbers.is_empty()
                && head_bytes > 0
                && head_bytes.next_multiple_of(16) <= words * 8,
            numbers,
            strings: strings.iter().map(|id| (*id, *access(*id))).collect(),
            head_bytes,
            set_bytes,
            bytes_max: head_bytes + string_bytes + set_bytes + nullable.len(),
        }
    }

    /// Whether a row has a long number.
    #[inline]
    fn has_long(&self, row: &[AtomicU64]) -> bool {
        let mut numbers = self.numbers.iter();
        numbers.any(|(_, access)| access.blob(row).is_some())
    }

    /// The columns that are NULL in a row whose bytes begin with these, of which there are enough.
    #[inline]
    pub(super) fn nulls_of(&self, head: &[u8]) -> ColumnSet {
        let mut bits = [0; 16];
        let bytes = self.nullable.len().div_ceil(8);
        bits[..bytes].copy_from_slice(&head[self.head_bytes - bytes..self.head_bytes]);
        let bits = u128::from_le_bytes(bits);
        if bits == 0 {
            return ColumnSet::EMPTY;
        }
        let nullable = self.nullable.iter().enumerate();
        nullable
            .filter(|(at, _)| bits >> at & 1 != 0)
            .map(|(_, column)| column)
            .collect()
    }
}

impl RowLayout {
    /// What a set of columns and its values take at most, or a row, without spilled byte strings.
    #[inline(always)]
    pub(crate) fn values_bytes_max(&self) -> usize {
        self.values.bytes_max
    }

    /// What the byte strings to which `columns` of a stable row point take besides.
    pub(crate) fn spilled_bytes(&self, columns: ColumnSet, row: &[AtomicU64]) -> usize {
        // SAFETY: the row is stable, so its blobs live.
        let lengths = (self.blobs(columns, row)).map(|blob| 4 + unsafe { Blob::bytes(blob) }.len());
        lengths.sum()
    }

    /// Puts a set of columns.
    ///
    /// # Safety
    /// As many bytes may be put.
    #[inline(always)]
    pub(crate) unsafe fn put_set(&self, columns: ColumnSet, writer: &mut Writer<'_>) {
        let [low, high] = columns.to_words();
        let bytes = self.values.set_bytes;
        // SAFETY: as of the caller.
        unsafe {
            match bytes {
                ..=8 => writer.put(low, bytes),
                _ => {
                    writer.put(low, 8);
                    writer.put(high, bytes - 8);
                }
            }
        }
    }

    /// Puts the values of `columns` of a row or an image.
    ///
    /// # Safety
    /// [`RowLayout::values_bytes_max`] bytes may be put. The columns, and the words, are of this
    /// layout; the words are stable, and the blobs that they point to live.
    #[inline(always)]
    pub(crate) unsafe fn put_values(
        &self,
        columns: ColumnSet,
        words: &[AtomicU64],
        writer: &mut Writer<'_>,
    ) {
        let format = &self.values;
        let [mut rest, high] = columns.to_words();
        if rest & !format.plain | high != 0 {
            // SAFETY: as of the caller.
            *writer = unsafe { self.put_values_from(columns, |_| words, *writer) };
            return;
        }
        let (locations, words) = (format.locations.as_ptr(), words.as_ptr());
        let values = std::iter::from_fn(|| {
            let at = rest.trailing_zeros() as usize;
            (rest != 0).then(|| {
                rest &= rest - 1;
                // SAFETY: as of the caller: the column is one of this layout, and so are the words.
                unsafe {
                    let location = *locations.add(at);
                    let word = words::read_one(&*words.add(location.word as usize));
                    (word >> location.shift, location.bytes as usize)
                }
            })
        });
        // SAFETY: as of the caller.
        unsafe { writer.put_all(values) };
    }

    /// Puts values that may be of any type; `words` says in which words that of a column lies.
    ///
    /// # Safety
    /// As for [`RowLayout::put_values`].
    #[inline(never)]
    pub(crate) unsafe fn put_values_from<'a, 'w>(
        &self,
        columns: ColumnSet,
        words: impl Fn(ColumnId) -> &'a [AtomicU64],
        mut writer: Writer<'w>,
    ) -> Writer<'w> {
        for column in columns.iter() {
            let (access, words) = (self.column(column), words(column));
            // SAFETY: as of the caller.
            unsafe {
                if access.is_nullable() {
                    writer.put(u64::from(!access.is_null(words)), 1);
                }
                match access.storage {
                    Storage::Bytes { .. } => put_string(access, words, &mut writer),
                    _ if access.is_null(words) => {}
                    storage => {
                        match long_number(access, words) {
                            Some(number) => put_number_words(number, &mut writer),
                            None => {
                                let bytes = storage.shape().1;
                                writer.put_words(words, access.byte_range().0, bytes);
                            }
                        }
                        put_number(access, words, &mut writer);
                    }
                }
            }
        }
        writer
    }

    /// Puts a whole row.
    ///
    /// # Safety
    /// As for [`RowLayout::put_values`].
    #[inline(always)]
    pub(crate) unsafe fn put_row(&self, row: &[AtomicU64], writer: &mut Writer<'_>) {
        let format = &self.values;
        // SAFETY: as of the caller.
        unsafe {
            match format.head_in_pairs {
                true => writer.put_pairs(row, format.head_bytes),
                false if format.has_long(row) => {
                    *writer = self.put_row_from(row, |_| row, *writer);
                    return;
                }
                false => writer.put_words(row, 0, format.head_bytes),
            }
            for (_, access) in &format.strings {
                put_string(access, row, writer);
            }
        }
    }

    /// Puts a whole row, some of whose values lie elsewhere.
    ///
    /// # Safety
    /// As for [`RowLayout::put_values`]; `row` has the row number.
    #[inline(never)]
    pub(crate) unsafe fn put_row_from<'a, 'w>(
        &self,
        row: &[AtomicU64],
        words: impl Fn(ColumnId) -> &'a [AtomicU64],
        mut writer: Writer<'w>,
    ) -> Writer<'w> {
        let format = &self.values;
        let mut nulls = 0_u128;
        for (at, column) in format.nullable.iter().enumerate() {
            nulls |= u128::from(self.column(column).is_null(words(column))) << at;
        }
        let null_bytes = format.nullable.len().div_ceil(8);
        // SAFETY: as of the caller.
        unsafe {
            if self.row_number.is_some() {
                writer.put_words(row, 0, 8);
            }
            for column in &format.fixed {
                let (access, words) = (self.column(*column), words(*column));
                match long_number(access, words) {
                    Some(number) => put_number_words(number, &mut writer),
                    None => {
                        let (start, end) = access.byte_range();
                        writer.put_words(words, start, end - start);
                    }
                }
            }
            writer.put(nulls as u64, null_bytes.min(8));
            writer.put((nulls >> 64) as u64, null_bytes.saturating_sub(8));
            for (column, access) in &format.numbers {
                put_number(access, words(*column), &mut writer);
            }
            for (column, access) in &format.strings {
                put_string(access, words(*column), &mut writer);
            }
        }
        writer
    }
}

/// The bytes of a long number that a column of no byte strings points to.
///
/// # Safety
/// As for [`RowLayout::put_values`].
unsafe fn long_number<'w>(access: &ColumnAccess, words: &'w [AtomicU64]) -> Option<&'w [u8]> {
    let blob = access.blob(words)?;
    // SAFETY: as of the caller: the words are stable, so the pointer is whole and its blob lives.
    Some(unsafe { Blob::bytes(blob) })
}

/// Puts what stands for a long number among fixed-size values.
///
/// # Safety
/// 16 bytes may be put.
unsafe fn put_number_words(number: &[u8], writer: &mut Writer<'_>) {
    // SAFETY: as of the caller.
    unsafe {
        writer.put(number.len() as u64, 8);
        writer.put(SPILLED_NUMBER, 8);
    }
}

/// Puts the bytes of a long number, if a column has one.
///
/// # Safety
/// As for [`RowLayout::put_values`].
unsafe fn put_number(access: &ColumnAccess, words: &[AtomicU64], writer: &mut Writer<'_>) {
    // SAFETY: as of the caller.
    if let Some(bytes) = unsafe { long_number(access, words) }
        && writer.has_extra_room(bytes.len())
    {
        // SAFETY: as was just found.
        unsafe { writer.put_bytes(bytes) };
    }
}

/// Puts a byte string, if it is not NULL.
///
/// # Safety
/// As for [`RowLayout::put_values`]; the column is one of byte strings.
#[inline(always)]
unsafe fn put_string(access: &ColumnAccess, words: &[AtomicU64], writer: &mut Writer<'_>) {
    let Storage::Bytes { capacity, wide } = access.storage else {
        unreachable!("only byte strings have a length")
    };
    if access.is_null(words) {
        return;
    }
    let (at, shift) = access.word();
    let (length, spilled, start) = access.length(words::read_one(&words[at]) >> shift, wide);
    // SAFETY: as of the caller.
    unsafe {
        if spilled {
            *writer = put_blob(access, words, *writer);
            return;
        }
        let length = length.min(capacity as usize);
        writer.put(length as u64, 4);
        writer.put_words(words, start, length);
    }
}

/// Puts a spilled byte string.
///
/// # Safety
/// As for [`RowLayout::put_values`].
#[cold]
#[inline(never)]
unsafe fn put_blob<'w>(
    access: &ColumnAccess,
    words: &[AtomicU64],
    mut writer: Writer<'w>,
) -> Writer<'w> {
    let blob = access.blob(words).expect("a spilled column has a pointer");
    // SAFETY: as of the caller: the words are stable, so the pointer is whole and its blob lives.
    let bytes = unsafe { Blob::bytes(blob) };
    if writer.has_extra_room(4 + bytes.len()) {
        // SAFETY: as was just found.
        unsafe {
            writer.put(bytes.len() as u64, 4);
            writer.put_bytes(bytes);
        }
    }
    writer
}
