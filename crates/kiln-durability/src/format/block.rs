//! Blocks of the log: what is written to it at a time, for all commits of a group of log epochs.
//!
//! # Layout
//!
//! A block starts at a multiple of [`ALIGNMENT`] of its segment's file, and is filled up with zeros
//! to the next one.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | `KILNBLOK` |
//! | 8 | 2 | the [format's version](super::FORMAT_VERSION) |
//! | 10 | 2 | the sum of 1 if the group goes on in the next block, and 2 if it began in an earlier one |
//! | 12 | 4 | bytes of the payload |
//! | 16 | 16 | the database's id |
//! | 32 | 8 | the number of the segment |
//! | 40 | 8 | the number of the block, from 1 on, one more than that of the block before it in the log |
//! | 48 | 8 | the first log epoch of the group |
//! | 56 | 8 | the last one |
//! | 64 | 8 | *durable through*: when this block was written, that block and all before it were known to be on disk; the last one of a group |
//! | 72 | 8 | the checksum of the block before, 0 where there is none |
//! | 80 | 8 | when it was written, in microseconds since 1970 |
//! | 88 | 8 | the checksum: CRC-64/XZ of the bytes 0 to 87 and of the payload |
//! | 96 | | the payload |
//!
//! The payloads of a group's blocks, one after the other, are its [entries](super::entry); an entry
//! may begin in one block and end in a later one. All blocks of a group name the same log epochs.
//! No commit of a group is acknowledged before its last block is on disk: a group without its last
//! block is cut off with the rest of the log.
//!
//! # What tells a block from other bytes
//!
//! A segment is zeros before it is written, or the blocks of an older segment whose file is used
//! again. Zeros have no magic; an older block has another segment's number. A block that was
//! written by halves, or that the disk has changed, has another checksum. A block of another log of
//! the same database, such as a log that was restored and went on, does not have the checksum of
//! the block before: each block continues a [`Chain`].
//!
//! A block whose reading fails was on disk before exactly if a later block says so. So *durable
//! through* is what tells damage from the torn end of a log.

use super::{COUNTER_MAX, DatabaseId, FORMAT_VERSION, checksum};

/// Where blocks begin, in bytes: what a direct write is a multiple of.
pub const ALIGNMENT: usize = 4096;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 96;

/// The longest payload, in bytes. A group that is longer has several blocks.
pub const PAYLOAD_MAX: usize = 4 << 20;

const MAGIC: [u8; 8] = *b"KILNBLOK";

/// What a block says of itself, apart from what [`Chain`] gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHeader {
    /// Its number in the log, from 1 on.
    pub number: u64,
    /// The log epochs of its group: the first one and the last one.
    pub epochs: (u64, u64),
    /// Whether the group goes on in the next block.
    pub goes_on: bool,
    /// Whether the group began in an earlier block.
    pub goes_back: bool,
    /// The last block of the last group that was on disk when this block was written; 0 for none.
    pub durable_through: u64,
    /// When it was written, in microseconds since 1970.
    pub written_us: i64,
    /// Its checksum.
    pub checksum: u64,
}

/// A block that was read and is what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// What it says of itself.
    pub header: BlockHeader,
    /// The checksum that the block before it has, as this one says.
    pub before: u64,
    /// Its entries.
    pub payload: &'a [u8],
}

impl Block<'_> {
    /// Bytes of the file that it takes.
    pub fn bytes(&self) -> usize {
        bytes_of(self.payload.len())
    }
}

/// Bytes of a file that a block with such a payload takes.
pub fn bytes_of(payload: usize) -> usize {
    (HEADER_BYTES + payload).next_multiple_of(ALIGNMENT)
}

/// Bytes of a file that the block takes with which `bytes` begin, as it says itself; one page where
/// there is none, or its length cannot be.
pub fn claimed_bytes(bytes: &[u8]) -> usize {
    let length = bytes.get(12..16).filter(|_| bytes.starts_with(&MAGIC));
    let length = length.map_or(0, |it| u32::from_le_bytes(it.try_into().expect("4 bytes")));
    match length as usize {
        length if length <= PAYLOAD_MAX => bytes_of(length),
        _ => ALIGNMENT,
    }
}

/// Why bytes are not a block of the log that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFault {
    /// The bytes end before the block does.
    CutOff,
    /// There is nothing: the header is zeros.
    Nothing,
    /// They do not begin as a block does.
    NotABlock,
    /// Another version of Kiln wrote it: this format.
    Format(u16),
    /// It is of another database, as it says.
    OtherDatabase,
    /// It is of another segment, as it says, with this number: of one whose file was used again.
    OtherSegment(u64),
    /// What it says of its length or of its numbers cannot be.
    Length,
    /// It is not what was written.
    Checksum,
    /// It is a whole block of this segment, and not the one that continues the chain: this number.
    NotNext(u64),
}

impl std::fmt::Display for BlockFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BlockFault::CutOff => f.write_str("the file ends within it"),
            BlockFault::Nothing => f.write_str("there are zeros in its place"),
            BlockFault::NotABlock => f.write_str("something else is in its place"),
            BlockFault::Format(version) => write!(f, "it has format {version}"),
            BlockFault::OtherDatabase => f.write_str("another database's block is in its place"),
            BlockFault::OtherSegment(other) => {
                write!(f, "a block of segment {other} is in its place")
            }
            BlockFault::Length => f.write_str("its header cannot be"),
            BlockFault::Checksum => f.write_str("its checksum is not that of its content"),
            BlockFault::NotNext(number) => {
                write!(
                    f,
                    "block {number}, which does not continue the log, is in its place"
                )
            }
        }
    }
}

/// Where the log goes on: what the next block's number is, and what it says of the block before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The database whose log it is.
    pub database: DatabaseId,
    /// The number of the last block; 0 before the first one.
    pub last: u64,
    /// Its checksum; 0 before the first one.
    pub checksum: u64,
}

impl Chain {
    /// Before the first block of a database's log.
    pub fn new(database: DatabaseId) -> Chain {
        Chain {
            database,
            last: 0,
            checksum: 0,
        }
    }

    /// Makes `bytes` the next block, in this segment: they have room for the header, and the
    /// payload of `length` bytes after it, and go on to the end of the block. `header` has the
    /// epochs, *durable through* and the time; the rest of it is determined here. Returns the
    /// header as it was written.
    ///
    /// # Panics
    /// When there are not as many bytes as the block takes, or the payload is longer than
    /// [`PAYLOAD_MAX`].
    pub fn seal(
        &mut self,
        bytes: &mut [u8],
        length: usize,
        segment: u64,
        header: BlockHeader,
    ) -> BlockHeader {
        assert!(bytes.len() == bytes_of(length) && length <= PAYLOAD_MAX);
        let mut header = BlockHeader {
            number: self.last + 1,
            ..header
        };
        let (head, rest) = bytes.split_at_mut(HEADER_BYTES);
        let (payload, padding) = rest.split_at_mut(length);
        padding.fill(0);
        let mut at = 0;
        let mut put = |field: &[u8]| {
            head[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&MAGIC);
        put(&FORMAT_VERSION.to_le_bytes());
        let flags = u16::from(header.goes_on) | u16::from(header.goes_back) << 1;
        put(&flags.to_le_bytes());
        put(&(length as u32).to_le_bytes());
        put(&self.database.0);
        for number in [
            segment,
            header.number,
            header.epochs.0,
            header.epochs.1,
            header.durable_through,
            self.checksum,
            header.written_us as u64,
        ] {
            put(&number.to_le_bytes());
        }
        header.checksum = checksum([&head[..HEADER_BYTES - 8], payload]);
        head[HEADER_BYTES - 8..].copy_from_slice(&header.checksum.to_le_bytes());
        (self.last, self.checksum) = (header.number, header.checksum);
        header
    }

    /// Reads the next block, at the start of `bytes`, which are of this segment.
    ///
    /// # Errors
    /// Why they do not begin with it.
    pub fn next<'a>(&mut self, bytes: &'a [u8], segment: u64) -> Result<Block<'a>, BlockFault> {
        let block = read(bytes, self.database, segment)?;
        if block.header.number != self.last + 1 || block.before != self.checksum {
            return Err(BlockFault::NotNext(block.header.number));
        }
        (self.last, self.checksum) = (block.header.number, block.header.checksum);
        Ok(block)
    }
}

/// Reads a block of a segment, wherever in the log it is.
///
/// # Errors
/// Why the bytes do not begin with one.
pub fn read(bytes: &[u8], database: DatabaseId, segment: u64) -> Result<Block<'_>, BlockFault> {
    let head: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(BlockFault::CutOff)?;
    let number_at = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    let short_at = |at: usize| u16::from_le_bytes(head[at..at + 2].try_into().expect("2 bytes"));
    if head[..8] != MAGIC {
        let is_zero = head.iter().all(|byte| *byte == 0);
        return Err(match is_zero {
            true => BlockFault::Nothing,
            false => BlockFault::NotABlock,
        });
    }
    // The next fields may be damaged themselves: what they say is believed once the checksum is
    // right, where it can be told.
    let (version, flags) = (short_at(8), short_at(10));
    let length = u32::from_le_bytes(head[12..16].try_into().expect("4 bytes")) as usize;
    let whole = bytes.get(HEADER_BYTES..).and_then(|it| it.get(..length));
    let is_right = whole.is_some_and(|payload| {
        checksum([&head[..HEADER_BYTES - 8], payload]) == number_at(HEADER_BYTES - 8)
    });
    if !is_right {
        return Err(match length > PAYLOAD_MAX {
            true => BlockFault::Length,
            false if whole.is_none() => BlockFault::CutOff,
            false => BlockFault::Checksum,
        });
    }
    if version != FORMAT_VERSION {
        return Err(BlockFault::Format(version));
    }
    if head[16..32] != database.0 {
        return Err(BlockFault::OtherDatabase);
    }
    if number_at(32) != segment {
        return Err(BlockFault::OtherSegment(number_at(32)));
    }
    let padding = bytes.get(HEADER_BYTES + length..bytes_of(length));
    if padding.is_none_or(|padding| padding.iter().any(|byte| *byte != 0)) {
        return Err(BlockFault::Checksum);
    }
    let header = BlockHeader {
        number: number_at(40),
        epochs: (number_at(48), number_at(56)),
        goes_on: flags & 1 != 0,
        goes_back: flags & 2 != 0,
        durable_through: number_at(64),
        written_us: number_at(80) as i64,
        checksum: number_at(88),
    };
    let counters = [header.number, header.epochs.1, header.durable_through];
    let can_be = length <= PAYLOAD_MAX
        && flags <= 3
        && header.number > 0
        && header.epochs.0 <= header.epochs.1
        && counters.iter().all(|it| *it <= COUNTER_MAX);
    if !can_be {
        return Err(BlockFault::Length);
    }
    Ok(Block {
        header,
        before: number_at(72),
        payload: &bytes[HEADER_BYTES..HEADER_BYTES + length],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: DatabaseId = DatabaseId(*b"sixteen bytes...");

    /// A sealed block with this payload, continuing `chain`.
    fn sealed(chain: &mut Chain, segment: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xEE; bytes_of(payload.len())];
        bytes[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
        let header = BlockHeader {
            epochs: (7, 9),
            goes_on: payload.len() > 5_000,
            goes_back: payload.len() == 1,
            durable_through: chain.last,
            written_us: -5,
            ..BlockHeader::default()
        };
        let number = chain.last + 1;
        let header = chain.seal(&mut bytes, payload.len(), segment, header);
        assert_eq!(header.number, number);
        bytes
    }

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let mut writing = Chain::new(DATABASE);
        let mut reading = writing;
        for length in [0, 1, 4_000, 4_001, 9_000] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let bytes = sealed(&mut writing, 3, &payload);
            assert!(bytes.len().is_multiple_of(ALIGNMENT));
            let block = reading.next(&bytes, 3).expect("it is whole");
            assert_eq!(block.payload, payload);
            assert_eq!(block.header.epochs, (7, 9));
            assert_eq!(block.header.goes_on, length > 5_000);
            assert_eq!(block.header.goes_back, length == 1);
            assert_eq!((block.header.written_us, block.bytes()), (-5, bytes.len()));
            assert_eq!(reading, writing);
        }
    }

    #[test]
    fn every_bit_of_a_block_counts() {
        let mut chain = Chain::new(DATABASE);
        let mut bytes = sealed(&mut chain, 1, b"what was promised");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Chain::new(DATABASE).next(&bytes, 1).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(Chain::new(DATABASE).next(&bytes, 1).is_ok());
    }

    #[test]
    fn a_block_that_was_cut_off_is_none() {
        let mut chain = Chain::new(DATABASE);
        let bytes = sealed(&mut chain, 1, &[1; 5_000]);
        for length in (0..bytes.len()).step_by(256) {
            let fault = read(&bytes[..length], DATABASE, 1).expect_err("it is not whole");
            assert!(matches!(fault, BlockFault::CutOff | BlockFault::Checksum));
            // The rest of the sectors was never written.
            let mut torn = bytes[..length].to_vec();
            torn.resize(bytes.len(), 0);
            let is_whole = torn == bytes;
            assert_eq!(read(&torn, DATABASE, 1).is_ok(), is_whole, "{length}");
        }
    }

    #[test]
    fn blocks_of_other_logs_are_told_apart() {
        let (mut chain, mut other) = (Chain::new(DATABASE), Chain::new(DATABASE));
        let first = sealed(&mut chain, 1, b"first");
        let second = sealed(&mut chain, 2, b"second");
        sealed(&mut other, 1, b"another first");
        assert_eq!(read(&[0; 4096], DATABASE, 1), Err(BlockFault::Nothing));
        assert_eq!(read(&[7; 4096], DATABASE, 1), Err(BlockFault::NotABlock));
        let of = |database| read(&first, database, 1).map(|_| ());
        assert_eq!(of(DatabaseId([0; 16])), Err(BlockFault::OtherDatabase));
        let fault = read(&second, DATABASE, 1).expect_err("it is of segment 2");
        assert_eq!(fault, BlockFault::OtherSegment(2));
        // It has the number that is expected, and continues another log.
        assert_eq!(other.next(&second, 2), Err(BlockFault::NotNext(2)));
        assert_eq!(
            Chain::new(DATABASE).next(&second, 2),
            Err(BlockFault::NotNext(2))
        );
    }
}
