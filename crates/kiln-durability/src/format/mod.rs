//! The bytes of the files.
//!
//! All numbers are little-endian. A *log* is a sequence of [blocks](block) in files of equal size,
//! the *segments*; a block's payload is a sequence of [entries](entry), and is complete or not
//! there at all. What is read back is covered by checksums, and everything here takes bytes from
//! outside: it returns what is wrong with them, and never panics.

pub mod block;
pub mod entry;
mod segment;

use std::fmt;

pub use block::{Block, BlockFault, BlockHeader, Chain};
pub use segment::{segment_name, segment_number};

/// The version of all formats, which changes with any of them. A directory of a newer one is
/// refused.
pub const FORMAT_VERSION: u16 = 1;

/// The highest number of a block, a segment, a checkpoint or a log epoch that is read: a database
/// that counts a thousand million of them a second comes to it after 292 years. So no sum with such
/// a number overflows.
pub(crate) const COUNTER_MAX: u64 = i64::MAX as u64;

/// What a database's files have in common, drawn when its directory is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DatabaseId(pub [u8; 16]);

/// 32 hexadecimal digits.
impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// CRC-64/XZ of some pieces of bytes, one after the other.
pub(crate) fn checksum<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut checksum = Checksum::default();
    for piece in pieces {
        checksum.add(piece);
    }
    checksum.value()
}

/// CRC-64/XZ of bytes that come piece by piece.
#[derive(Default)]
pub(crate) struct Checksum(crc64fast::Digest);

impl Checksum {
    /// Adds the next bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The checksum of all bytes so far.
    pub(crate) fn value(&self) -> u64 {
        self.0.sum64()
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checksum({:016x})", self.value())
    }
}
