//! What an index holds: entries, and the keys under which they are.

use crate::index::{ByteKey, Key, NodeVersion};
use crate::key::KeyWidth;
use crate::record::RecordRef;

/// What an index holds for a key: a record, and whether it is only moving there.
///
/// An update of indexed columns gives its record an entry under the new key at once, but a
/// *moving* one until it commits. Other transactions that meet a moving entry fail; the
/// transaction itself finds its record there, and ignores the entry under the old key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub(super) u64);

impl Entry {
    /// Records are eight-byte-aligned, so that the lowest bit of their address is free.
    const MOVING: u64 = 1;

    /// The entry of a record that has the key.
    #[inline(always)]
    pub fn of(record: RecordRef) -> Entry {
        Entry(record.address())
    }

    /// The entry of a record that gets the key when its transaction commits.
    pub fn moving(record: RecordRef) -> Entry {
        Entry(record.address() | Entry::MOVING)
    }

    /// The entry that an index's payload stands for.
    ///
    /// # Safety
    /// The payload is of an index whose table lives.
    #[inline(always)]
    pub unsafe fn from_payload(payload: u64) -> Entry {
        Entry(payload)
    }

    /// Whether the record only gets the key when its transaction commits.
    #[inline(always)]
    pub fn is_moving(self) -> bool {
        self.0 & Entry::MOVING != 0
    }

    /// The record.
    #[inline(always)]
    pub fn record(self) -> RecordRef {
        // SAFETY: entries are made from records, or from payloads whose table lives.
        unsafe { RecordRef::from_address(self.0 & !Entry::MOVING) }
    }
}

/// The result of a look-up in an index.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// The entry with the key; its record may be absent or dead.
    Entry(Entry),
    /// No record has the key; the node's version guards that.
    Missing(NodeVersion),
    /// No record can have the key (NULL, or outside the type's range).
    Never,
}

/// A key taken out of its record, for entries that must go later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKey {
    /// A packed key of 64 bits.
    Word(u64),
    /// A packed key of 128 bits.
    DoubleWord(u128),
    /// A byte key of 64 bytes.
    Bytes64(ByteKey<8>),
    /// A byte key of 256 bytes.
    Bytes256(Box<ByteKey<32>>),
}

impl EntryKey {
    /// The key as bytes that compare as the keys of its index do.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            EntryKey::Word(key) => bytes_of(key),
            EntryKey::DoubleWord(key) => bytes_of(key),
            EntryKey::Bytes64(key) => bytes_of(key),
            EntryKey::Bytes256(key) => bytes_of(&**key),
        }
    }

    /// A hash of the key; all 64 bits are well mixed.
    pub fn hash(&self) -> u64 {
        match self {
            EntryKey::Word(key) => Key::hash(key),
            EntryKey::DoubleWord(key) => Key::hash(key),
            EntryKey::Bytes64(key) => Key::hash(key),
            EntryKey::Bytes256(key) => Key::hash(&**key),
        }
    }

    /// The key of an index with keys of this width, from such bytes; `None` when there are more or
    /// fewer.
    pub fn from_bytes(width: KeyWidth, bytes: &[u8]) -> Option<EntryKey> {
        Some(match width {
            KeyWidth::Word => EntryKey::Word(u64::from_be_bytes(bytes.try_into().ok()?)),
            KeyWidth::DoubleWord => {
                EntryKey::DoubleWord(u128::from_be_bytes(bytes.try_into().ok()?))
            }
            KeyWidth::Bytes64 => EntryKey::Bytes64(byte_key(bytes)?),
            KeyWidth::Bytes256 => EntryKey::Bytes256(Box::new(byte_key(bytes)?)),
        })
    }
}

fn byte_key<const WORDS: usize>(bytes: &[u8]) -> Option<ByteKey<WORDS>> {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: &[[u8; 8]; WORDS] = words.try_into().ok()?;
    rest.is_empty()
        .then(|| ByteKey(words.map(u64::from_be_bytes)))
}

/// The key as bytes that compare as keys do.
pub(super) fn bytes_of<K: Key>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(K::WORDS * 8);
    key.append_bytes(&mut bytes);
    bytes
}
