//! The files of checkpoints.
//!
//! A checkpoint has a directory with a file `catalog`, and for each table any number of files
//! `table-<number>-<part>`, in which each row is once. What a row's bytes are is not determined
//! here; that of the catalog is one row, its text.
//!
//! # A file
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | `KILNCHKP` |
//! | 8 | 4 | the [format's version](crate::format::FORMAT_VERSION) |
//! | 12 | 4 | 1 for the catalog, 2 for rows of a table |
//! | 16 | 16 | the database's id |
//! | 32 | 8 | the number of the checkpoint |
//! | 40 | 4 | the number of the table, 0 for the catalog |
//! | 44 | 4 | the part, 0 for the catalog |
//! | 48 | 8 | the checksum: CRC-64/XZ of the bytes 0 to 47 |
//! | 56 | | blocks without gaps, the last of which has no rows; the file ends with it |
//!
//! # A block
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `ROWS`, or `LAST` |
//! | 4 | 4 | bytes of the payload, 0 in the last block |
//! | 8 | 8 | the number of the block in its file, from 1 on |
//! | 16 | 8 | how many rows are in the payload; in the last block, how many are in the file |
//! | 24 | 8 | CRC-64/XZ of the payload |
//! | 32 | 8 | the checksum: CRC-64/XZ of the checksum in the file's header and of the bytes 0 to 31 |
//! | 40 | | the payload: of each row its length in 4 bytes, and its bytes |
//!
//! A payload has at most [`BLOCK_BYTES_MAX`] bytes, or one row that is longer.
//!
//! # What tells a file from other bytes
//!
//! The reader believes a length when the checksum of its header is right, so that damage costs no
//! memory. The checksum of the file's header, in that of each block, ties blocks to their file;
//! their numbers and the last block show what is missing. The manifest has the checksum of the
//! whole file, and tells it from one that another attempt at the same checkpoint wrote.

mod reader;
mod writer;

pub use reader::{Block, Reader, Rows, RowsReader};
pub use writer::{RowsWriter, Writer, Written};

use kiln_storage::bytes::Reader as Bytes;

use crate::format::{DatabaseId, FORMAT_VERSION, checksum};
use crate::manifest::FileName;

/// The longest payload of a block, in bytes, unless it is of one row.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

/// The longest row, in bytes.
pub const ROW_BYTES_MAX: usize = u32::MAX as usize - 4;

const FILE_HEADER_BYTES: usize = 56;
const BLOCK_HEADER_BYTES: usize = 40;

const MAGIC: [u8; 8] = *b"KILNCHKP";
const ROWS: [u8; 4] = *b"ROWS";
const LAST: [u8; 4] = *b"LAST";

/// Which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    database: DatabaseId,
    checkpoint: u64,
    name: FileName,
}

/// Kind, table and part.
fn numbers_of(name: FileName) -> [u32; 3] {
    match name {
        FileName::Catalog => [1, 0, 0],
        FileName::Table { table, part } => [2, table.0, part],
    }
}

impl Identity {
    /// The header of the file, and its checksum.
    fn header(&self) -> ([u8; FILE_HEADER_BYTES], u64) {
        let [kind, table, part] = numbers_of(self.name);
        let mut header = [0; FILE_HEADER_BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            header[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&MAGIC);
        put(&u32::from(FORMAT_VERSION).to_le_bytes());
        put(&kind.to_le_bytes());
        put(&self.database.0);
        put(&self.checkpoint.to_le_bytes());
        put(&table.to_le_bytes());
        put(&part.to_le_bytes());
        let sum = checksum([&header[..FILE_HEADER_BYTES - 8]]);
        header[FILE_HEADER_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
        (header, sum)
    }
}

/// Why a file's header is not the one that was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HeaderFault {
    /// It is not what was written.
    Damaged(&'static str),
    /// It is the header of another file.
    Other(String),
    /// Another version of Kiln wrote it: this format.
    Format(u32),
}

/// Checks that these bytes are the header of this file. Returns its checksum.
fn check_header(bytes: &[u8], expected: &Identity) -> Result<u64, HeaderFault> {
    let bytes: &[u8; FILE_HEADER_BYTES] =
        (bytes.first_chunk()).ok_or(HeaderFault::Damaged("its header is cut off"))?;
    if bytes[..8] != MAGIC {
        return Err(HeaderFault::Damaged("it is no file of a checkpoint"));
    }
    let content = &bytes[..FILE_HEADER_BYTES - 8];
    let sum = checksum([content]);
    if bytes[FILE_HEADER_BYTES - 8..] != sum.to_le_bytes() {
        let fault = "the checksum of its header is wrong";
        return Err(HeaderFault::Damaged(fault));
    }
    let mut remaining_bytes = Bytes::new(&content[8..]);
    let mut number = |bytes| remaining_bytes.number(bytes).unwrap_or_default();
    let version = number(4) as u32;
    if version != u32::from(FORMAT_VERSION) {
        return Err(HeaderFault::Format(version));
    }
    let (header, sum) = expected.header();
    if *bytes == header {
        return Ok(sum);
    }
    let kind = number(4);
    let database = &content[16..32];
    let _ = (number(8), number(8));
    let (checkpoint, table, part) = (number(8), number(4), number(4));
    Err(HeaderFault::Other(match database {
        other if *other != expected.database.0 => "it is of another database".to_owned(),
        _ if checkpoint != expected.checkpoint => format!("it is of checkpoint {checkpoint}"),
        _ => match kind {
            1 => "it is a catalog".to_owned(),
            _ => format!("it is part {part} of table {table}"),
        },
    }))
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockHeader {
    is_last: bool,
    payload_bytes: u32,
    number: u64,
    rows: u64,
    payload_checksum: u64,
}

impl BlockHeader {
    /// Its bytes in the file whose header has this checksum.
    fn to_bytes(self, of_file: u64) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(if self.is_last { &LAST } else { &ROWS });
        bytes[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.rows.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.payload_checksum.to_le_bytes());
        let sum = checksum([&of_file.to_le_bytes()[..], &bytes[..32]]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads its bytes; `None` when they are not those of a block of this file.
    fn read(bytes: &[u8; BLOCK_HEADER_BYTES], of_file: u64) -> Option<BlockHeader> {
        let mut reader = Bytes::new(bytes);
        let kind = reader.take(4).ok()?;
        let mut number = |bytes| reader.number(bytes).ok();
        let header = BlockHeader {
            is_last: kind == LAST,
            payload_bytes: number(4)? as u32,
            number: number(8)?,
            rows: number(8)?,
            payload_checksum: number(8)?,
        };
        (header.to_bytes(of_file) == *bytes).then_some(header)
    }
}
