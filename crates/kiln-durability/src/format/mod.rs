//! The bytes of the files.
//!
//! All numbers are little-endian. A *log* is a sequence of [blocks](block) in files of equal size, the
//! *segments*; a block's payload is a sequence of [entries](entry), and is complete or not there at all. What is read back
//! is covered by checksums, and everything here takes bytes from outside: it returns what is wrong with them, and never panics.

pub mod block;
pub mod entry;

pub use block::{Block, BlockFault, BlockHeader, Chain};

/// The version of all formats, which changes with any of them. A directory of a newer one is refused.
pub const FORMAT_VERSION: u32 = 1;

/// What a database's files have in common, drawn when its directory is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DatabaseId(pub [u8; 16]);

/// CRC-64/XZ of some pieces of bytes, one after the other.
pub(crate) fn checksum<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut digest = crc64fast::Digest::new();
    for piece in pieces {
        digest.write(piece);
    }
    digest.sum64()
}
