//! Scanning: the blocks of a log one after the other, and where it ends.
//!
//! A log ends where the next block of its chain is neither after the last one nor at the start of
//! the next segment. That is the end that a crash leaves, unless a later block says that the
//! missing one was on disk (*durable through*): then the log is damaged, and nothing is recovered
//! from it. So each place behind the end where a block may be is looked at. A crash leaves neither
//! blocks of a later format there, nor another database's, nor blocks of another segment but of
//! those whose files were used again, which come before all that are read: these are refused as
//! well.
//!
//! A process that was killed leaves the cache whole, so that what is read may not be on disk. A
//! sync alone does not bring it there: if one has failed before the kill, the system takes these
//! pages for written. [`Scan::end`] writes the blocks again that no later one calls durable, and
//! syncs them, before anything rests on them.

use kiln_platform::disk::{self, Directory, File};
use kiln_storage::error::{Error, Result, SqlState};

use super::segment::{SegmentReader, segments_from};
use crate::canary::Canary;
use crate::error::{damaged, disk_error};
use crate::format::block::{self, ALIGNMENT, Block, BlockHeader};
use crate::format::{BlockFault, Chain, DatabaseId, FORMAT_VERSION, segment_name};
use crate::log::Position;

/// Bytes that are read and written again at a time.
const COPIED_BYTES: u64 = 1 << 20;

/// Where a scan begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The database whose log it is.
    pub database: DatabaseId,
    /// The first segment.
    pub segment: u64,
    /// The chain before the segment's first block; `None` where the log before it was removed: then
    /// that block, which must be there, is believed.
    pub chain: Option<Chain>,
}

impl Start {
    /// At the beginning of a segment that a manifest names.
    pub fn of(database: DatabaseId, segment: u64) -> Start {
        let is_whole = segment == Position::start(database).segment;
        Start {
            database,
            segment,
            chain: is_whole.then(|| Chain::new(database)),
        }
    }
}

/// How a log ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Where it goes on: after the last group that is whole.
    pub position: Position,
    /// What is behind that, in words, if it is not simply the end.
    pub cut: Option<String>,
}

/// Where blocks begin of which no later one says that they were on disk.
#[derive(Clone, Copy, Default)]
struct Uncovered {
    /// The first one.
    block: u64,
    /// In which of the segments it is, and where.
    at: usize,
    offset: u64,
}

/// A log that is being read.
pub struct Scan {
    directory: Directory,
    database: DatabaseId,
    /// The segment with which it began.
    first: u64,
    /// The segments that are there, from the first one on, with their lengths.
    segments: Vec<(u64, u64)>,
    /// Which of them is read.
    at: usize,
    /// `None` if there is none.
    reader: Option<SegmentReader>,
    chain: Option<Chain>,
    offset: u64,
    /// After the last group that is whole.
    position: Position,
    /// Bytes of the segments before the present one.
    passed: u64,
    /// The first block that no later one calls durable.
    uncovered: Uncovered,
    cut: Option<String>,
}

impl Scan {
    /// Opens the log in `directory`, which this has for itself.
    ///
    /// # Errors
    /// The disk's; XX001 when the first segment is not there, but later ones are.
    pub fn open(directory: Directory, start: Start) -> Result<Scan> {
        let segments = segments_from(&directory, start.segment)?;
        let first = segments.first();
        let is_begun = first.is_some_and(|(first, _)| *first == start.segment);
        let is_new = start.chain.is_some_and(|chain| chain.last == 0);
        if !(is_begun || segments.is_empty() && is_new) {
            let path = directory.path().join(segment_name(start.segment));
            let message = format!("the log has lost its segment {}", path.display());
            return Err(damaged(message).with_hint(HINT));
        }
        let reader = match is_begun {
            true => Some(SegmentReader::open(&directory, start.segment)?),
            false => None,
        };
        Ok(Scan {
            directory,
            database: start.database,
            first: start.segment,
            segments,
            at: 0,
            reader,
            chain: start.chain,
            offset: 0,
            position: Position {
                chain: start.chain.unwrap_or(Chain::new(start.database)),
                segment: start.segment,
                offset: 0,
                epoch: 0,
            },
            passed: 0,
            uncovered: Uncovered::default(),
            cut: None,
        })
    }

    /// Bytes read so far, and bytes of all segments.
    pub fn progress(&self) -> (u64, u64) {
        let all = self.segments.iter().map(|(_, bytes)| bytes);
        (self.passed + self.offset, all.sum())
    }

    /// Appends the payload of the next block and returns its header; `None` at the end of the log.
    ///
    /// # Errors
    /// The disk's; XX001 when the log is damaged, 0A000 when a newer Kiln has written it.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Result<Option<BlockHeader>> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        let number = reader.number;
        let bytes = reader.at(self.offset)?;
        let fault = match follow(self.chain, self.database, bytes, number) {
            Ok((block, chain)) => {
                let header = block.header;
                payload.extend_from_slice(block.payload);
                let bytes = block.bytes() as u64;
                self.advance(&header, chain, bytes);
                return Ok(Some(header));
            }
            Err(fault) => fault,
        };
        // A log whose first block is missing does not begin with a later one.
        let has_next = self.chain.is_some() && self.number_of(self.at + 1) == Some(number + 1);
        if has_next {
            let mut next = SegmentReader::open(&self.directory, number + 1)?;
            if let Ok((block, chain)) = follow(self.chain, self.database, next.at(0)?, number + 1) {
                let header = block.header;
                payload.extend_from_slice(block.payload);
                self.passed += self.segments[self.at].1;
                let bytes = block.bytes() as u64;
                (self.at, self.offset) = (self.at + 1, 0);
                self.reader = Some(next);
                self.advance(&header, chain, bytes);
                return Ok(Some(header));
            }
        }
        if Canary::TornBlockSkipped.sings()
            && let Some(header) = self.skip(payload)?
        {
            return Ok(Some(header));
        }
        self.check_end(fault)?;
        Ok(None)
    }

    /// What no recovery may do: the next whole block of the segment, whatever it continues.
    fn skip(&mut self, payload: &mut Vec<u8>) -> Result<Option<BlockHeader>> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        let (number, end) = (reader.number, reader.bytes);
        let places = (self.offset..end).step_by(ALIGNMENT).skip(1);
        for place in places {
            let Ok(block) = block::read(reader.at(place)?, self.database, number) else {
                continue;
            };
            payload.extend_from_slice(block.payload);
            let header = block.header;
            self.offset = place + block.bytes() as u64;
            self.chain = Some(Chain {
                database: self.database,
                last: header.number,
                checksum: header.checksum,
            });
            return Ok(Some(header));
        }
        Ok(None)
    }

    fn number_of(&self, at: usize) -> Option<u64> {
        self.segments.get(at).map(|(number, _)| *number)
    }

    /// Goes on after the next block of the present segment.
    fn advance(&mut self, header: &BlockHeader, chain: Chain, bytes: u64) {
        self.chain = Some(chain);
        if header.durable_through >= self.uncovered.block {
            self.uncovered = Uncovered {
                block: header.number,
                at: self.at,
                offset: self.offset,
            };
        }
        self.offset += bytes;
    }

    /// Notes that the blocks read so far are whole groups, up to the log epoch of the last one.
    pub fn complete(&mut self, epoch: u64) {
        if let Some(chain) = self.chain {
            self.position = Position {
                chain,
                segment: self.segments[self.at].0,
                offset: self.offset,
                epoch,
            };
        }
    }

    /// The segment and the offset in it up to which blocks were read.
    pub fn reached(&self) -> (u64, u64) {
        let number = self.number_of(self.at);
        (number.unwrap_or(self.position.segment), self.offset)
    }

    /// After the last group that [`Scan::complete`] was told of, or at the beginning.
    pub fn position(&self) -> Position {
        self.position
    }

    /// As [`End::cut`], after [`Scan::next`] has returned `None`.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Where a block is or should be, in words.
    pub fn place(&self, segment: u64, offset: u64) -> String {
        let path = self.directory.path().join(segment_name(segment));
        format!("{} at offset {offset}", path.display())
    }

    /// Checks that nothing behind the end says that the missing block was on disk.
    fn check_end(&mut self, fault: BlockFault) -> Result<()> {
        let number = self.segments[self.at].0;
        let place = self.place(number, self.offset);
        let mut reader = self.reader.take();
        for at in self.at..self.segments.len() {
            let from = if at == self.at { self.offset } else { 0 };
            let mut reader = match reader.take() {
                Some(reader) => reader,
                None => SegmentReader::open(&self.directory, self.segments[at].0)?,
            };
            self.check_rest(&mut reader, from, fault)?;
        }
        let Some(chain) = self.chain else {
            let message = format!("the log has lost its first block, in {place}: {fault}");
            return Err(damaged(message).with_hint(HINT));
        };
        let is_torn = match fault {
            BlockFault::CutOff => self.offset < self.segments[self.at].1,
            BlockFault::Checksum | BlockFault::Length | BlockFault::NotABlock => true,
            _ => false,
        };
        if is_torn {
            self.cut = Some(format!("{place}: {fault}"));
        } else if chain != self.position.chain {
            let from = self.place(self.position.segment, self.position.offset);
            self.cut = Some(format!("{from}: the last block of a group was not written"));
        }
        Ok(())
    }

    /// Checks a segment from an offset behind the end on.
    fn check_rest(&self, reader: &mut SegmentReader, from: u64, fault: BlockFault) -> Result<()> {
        let (number, mut offset) = (reader.number, from);
        while offset < reader.bytes {
            let bytes = reader.at(offset)?;
            let read = block::read(bytes, self.database, number).map(|block| block.header);
            offset += match read {
                Ok(header) => {
                    self.check_promise(&header, (number, offset), fault)?;
                    block::claimed_bytes(bytes)
                }
                Err(BlockFault::Format(version)) if version > FORMAT_VERSION => {
                    let place = self.place(number, offset);
                    return Err(newer(&format!("{place} has a block of format {version}")));
                }
                Err(BlockFault::OtherDatabase) => {
                    let place = self.place(number, offset);
                    let message = format!("{place} has a block of another database");
                    return Err(damaged(message).with_hint(HINT));
                }
                // A file is used again when its segment comes before all that a recovery reads.
                Err(BlockFault::OtherSegment(other)) if other >= self.first => {
                    let place = self.place(number, offset);
                    let message = format!(
                        "the log is damaged: {place} has a block of segment {other}, as if the file \
                         had another name"
                    );
                    return Err(damaged(message).with_hint(HINT));
                }
                // Their checksum is right, and so is their length.
                Err(BlockFault::OtherSegment(_) | BlockFault::Format(_)) => {
                    block::claimed_bytes(bytes)
                }
                Err(_) => ALIGNMENT,
            } as u64;
        }
        Ok(())
    }

    /// Checks that a block behind the end does not say that the missing one was on disk.
    fn check_promise(
        &self,
        later: &BlockHeader,
        (segment, offset): (u64, u64),
        fault: BlockFault,
    ) -> Result<()> {
        let Some(missing) = self.chain.map(|chain| chain.last + 1) else {
            return Ok(());
        };
        if later.durable_through < missing {
            return Ok(());
        }
        let number = self.segments[self.at].0;
        let after = match self.number_of(self.at + 1) {
            Some(next) if next != number + 1 => {
                let path = self.directory.path().join(segment_name(number + 1));
                format!(", and {} is not there", path.display())
            }
            _ => String::new(),
        };
        let message = format!(
            "the log is damaged: block {missing} is missing from {} ({fault}){after}; but block {}, \
             in {}, says that it was on disk",
            self.place(number, self.offset),
            later.number,
            self.place(segment, offset),
        );
        Err(damaged(message).with_hint(HINT))
    }

    /// Where the log goes on, after [`Scan::next`] has returned `None`. What was read is on disk
    /// when this returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn end(self) -> Result<End> {
        let failed = |error| disk_error(&error);
        let uncovered = self.uncovered;
        let read = self.segments.iter().take(self.at + 1);
        for (at, (number, bytes)) in read.enumerate().skip(uncovered.at) {
            let from = if at == uncovered.at {
                uncovered.offset
            } else {
                0
            };
            let to = if at == self.at { self.offset } else { *bytes };
            let file = self.directory.open_file_to_write(&segment_name(*number));
            file.and_then(|file| write_again(&file, from, to))
                .map_err(failed)?;
        }
        self.directory.sync().map_err(failed)?;
        Ok(End {
            position: self.position,
            cut: self.cut,
        })
    }
}

/// Writes what a file has from one offset to another once more, and syncs it.
fn write_again(file: &File, mut from: u64, to: u64) -> disk::Result<()> {
    let mut buffer = vec![0; (to - from).min(COPIED_BYTES) as usize];
    while from < to {
        let length = (to - from).min(COPIED_BYTES) as usize;
        let read = file.read_at(from, &mut buffer[..length])?;
        if read == 0 {
            break;
        }
        file.write_at(from, &buffer[..read])?;
        from += read as u64;
    }
    file.sync()
}

/// The block at the start of `bytes` of a segment, if it is the next one, and the chain after it.
fn follow(
    chain: Option<Chain>,
    database: DatabaseId,
    bytes: &[u8],
    segment: u64,
) -> std::result::Result<(Block<'_>, Chain), BlockFault> {
    let mut chain = match chain {
        Some(chain) => chain,
        None => {
            let first = block::read(bytes, database, segment)?;
            Chain {
                database,
                last: first.header.number - 1,
                checksum: first.before,
            }
        }
    };
    let block = chain.next(bytes, segment)?;
    Ok((block, chain))
}

#[cold]
fn newer(what: &str) -> Error {
    let message = format!("{what}, which this Kiln does not know");
    let error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    error.with_hint("Open the database with the Kiln that wrote it, or a newer one.")
}

const HINT: &str = "Keep the files as they are, and restore the database from a backup.";
