//! Scanning: the blocks of a log one after the other, and where it ends.
//!
//! A log ends where the next block of its chain is neither after the last one nor at the start of the next segment. That is the end
//! that a crash leaves, unless a later block says that the missing one was on disk (*durable through*): then the log is
//! damaged, and nothing is recovered from it.
//!
//! A process that was killed leaves the cache whole, so that what is read may not be on disk. [`Scan::end`] syncs it before anything
//! rests on it.

use kiln_platform::disk::Directory;
use kiln_storage::error::{Error, Result, SqlState};

use crate::error::{damaged, disk_error};
use crate::format::block::{self, ALIGNMENT, Block, BlockHeader};
use crate::format::{BlockFault, Chain, DatabaseId, segment_name, segment_number};
use crate::log::Position;

/// Where a scan begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Whose log it is.
    pub database: DatabaseId,
    /// The first segment.
    pub segment: u64,
    /// The chain before the segment's first block; `None` where the log before it was removed: then that block is believed.
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

/// A log that is being read.
pub struct Scan {
    directory: Directory,
    database: DatabaseId,
    /// The segments that are there, from the first one on.
    segments: Vec<(u64, u64)>,
    /// Which of them is read.
    at: usize,
    /// Its content.
    bytes: Vec<u8>,
    chain: Option<Chain>,
    offset: usize,
    /// After the last group that is whole.
    position: Position,
    /// Bytes of the segments before the present one.
    passed: u64,
    cut: Option<String>,
}

impl Scan {
    /// Opens the log in `directory`, which this has for itself.
    ///
    /// # Errors
    /// The disk's; XX001 when the first segment is not there, but later ones are.
    pub fn open(directory: Directory, start: Start) -> Result<Scan> {
        let entries = directory.list().map_err(|error| disk_error(&error))?;
        let numbered = entries.iter().filter(|entry| !entry.is_directory);
        let numbered =
            numbered.filter_map(|entry| Some((segment_number(&entry.name)?, entry.bytes)));
        let mut segments: Vec<(u64, u64)> = numbered
            .filter(|(number, _)| *number >= start.segment)
            .collect();
        segments.sort_unstable();
        let is_begun = segments
            .first()
            .is_some_and(|(first, _)| *first == start.segment);
        let is_new = start.chain.is_some_and(|chain| chain.last == 0);
        if !(is_begun || segments.is_empty() && is_new) {
            let path = directory.path().join(segment_name(start.segment));
            let message = format!("the log has lost its segment {}", path.display());
            return Err(damaged(message).with_hint(HINT));
        }
        let mut scan = Scan {
            directory,
            database: start.database,
            segments,
            at: 0,
            bytes: Vec::new(),
            chain: start.chain,
            offset: 0,
            position: Position {
                chain: start.chain.unwrap_or(Chain::new(start.database)),
                segment: start.segment,
                offset: 0,
                epoch: 0,
            },
            passed: 0,
            cut: None,
        };
        if is_begun {
            scan.bytes = scan.load(0)?;
        }
        Ok(scan)
    }

    /// Bytes read so far, and bytes of all segments.
    pub fn progress(&self) -> (u64, u64) {
        let all = self.segments.iter().map(|(_, bytes)| bytes);
        (self.passed + self.offset as u64, all.sum())
    }

    /// Appends the payload of the next block and returns its header; `None` at the end of the log.
    ///
    /// # Errors
    /// The disk's; XX001 when the log is damaged, 0A000 when a newer Kiln has written it.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Result<Option<BlockHeader>> {
        if self.segments.is_empty() {
            return Ok(None);
        }
        let fault = match self.read(&self.bytes[self.offset..], self.segments[self.at].0) {
            Ok((block, chain)) => {
                payload.extend_from_slice(block.payload);
                let (length, header) = (block.bytes(), block.header);
                (self.chain, self.offset) = (Some(chain), self.offset + length);
                return Ok(Some(header));
            }
            Err(fault) => fault,
        };
        let number = self.segments[self.at].0;
        if let Some(&(next, _)) = self.segments.get(self.at + 1)
            && next == number + 1
        {
            let bytes = self.load(self.at + 1)?;
            if let Ok((block, chain)) = self.read(&bytes, next) {
                payload.extend_from_slice(block.payload);
                let (length, header) = (block.bytes(), block.header);
                self.passed += self.segments[self.at].1;
                (self.chain, self.offset) = (Some(chain), length);
                (self.at, self.bytes) = (self.at + 1, bytes);
                return Ok(Some(header));
            }
        }
        self.check_end(fault)?;
        Ok(None)
    }

    /// The block at the start of `bytes` of a segment, if it is the next one, and the chain after it.
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        segment: u64,
    ) -> std::result::Result<(Block<'a>, Chain), BlockFault> {
        let mut chain = match self.chain {
            Some(chain) => chain,
            None => {
                let first = block::read(bytes, self.database, segment)?;
                Chain {
                    database: self.database,
                    last: first.header.number - 1,
                    checksum: first.before,
                }
            }
        };
        let block = chain.next(bytes, segment)?;
        Ok((block, chain))
    }

    /// Notes that the blocks read so far are whole groups, up to the log epoch of the last one.
    pub fn complete(&mut self, epoch: u64) {
        if let Some(chain) = self.chain {
            self.position = Position {
                chain,
                segment: self.segments[self.at].0,
                offset: self.offset as u64,
                epoch,
            };
        }
    }

    /// The segment and the offset in it up to which blocks were read.
    pub fn place(&self) -> (u64, u64) {
        let number = self.segments.get(self.at).map(|(number, _)| *number);
        (number.unwrap_or(self.position.segment), self.offset as u64)
    }

    /// After the last group that [`Scan::complete`] was told of, or at the beginning.
    pub fn position(&self) -> Position {
        self.position
    }

    /// As [`End::cut`], after [`Scan::next`] has returned `None`.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// The content of a segment.
    fn load(&self, at: usize) -> Result<Vec<u8>> {
        let (number, length) = self.segments[at];
        let file = self.directory.open_file(&segment_name(number));
        let file = file.map_err(|error| disk_error(&error))?;
        let mut bytes = vec![0; length as usize];
        let read = file.read_at(0, &mut bytes);
        bytes.truncate(read.map_err(|error| disk_error(&error))?);
        Ok(bytes)
    }

    /// Checks that no later block says that the missing one was on disk.
    fn check_end(&mut self, fault: BlockFault) -> Result<()> {
        let number = self.segments[self.at].0;
        let missing = self.chain.map_or(1, |chain| chain.last + 1);
        let place = self.directory.path().join(segment_name(number));
        let place = format!("{} at offset {}", place.display(), self.offset);
        if let BlockFault::Format(version) = fault {
            let message =
                format!("{place} has a block of format {version}, which this Kiln does not know");
            let error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(
                error.with_hint("Open the database with the Kiln that wrote it, or a newer one.")
            );
        }
        if self.chain.is_none() {
            let message = format!("the log is damaged: it does not begin at {place} ({fault})");
            return Err(damaged(message).with_hint(HINT));
        }
        let mut promise = self.promise_in(&self.bytes, self.offset, number, missing);
        for later in self.at + 1..self.segments.len() {
            if promise.is_some() {
                break;
            }
            let bytes = self.load(later)?;
            promise = self.promise_in(&bytes, 0, self.segments[later].0, missing);
        }
        if let Some((segment, offset, header)) = promise {
            let message = format!(
                "the log is damaged: block {missing} is missing from {place} ({fault}), but block {} at offset \
                 {offset} of segment {segment} says that it was on disk",
                header.number,
            );
            return Err(damaged(message).with_hint(HINT));
        }
        if fault != BlockFault::Nothing && fault != BlockFault::CutOff {
            self.cut = Some(format!("{place}: {fault}"));
        }
        Ok(())
    }

    /// A block from `offset` on that says that the missing one was on disk.
    fn promise_in(
        &self,
        bytes: &[u8],
        offset: usize,
        segment: u64,
        missing: u64,
    ) -> Option<(u64, usize, BlockHeader)> {
        let places = (offset..bytes.len()).step_by(ALIGNMENT);
        places.into_iter().find_map(|place| {
            let block = block::read(&bytes[place..], self.database, segment).ok()?;
            let header = block.header;
            (header.durable_through >= missing).then_some((segment, place, header))
        })
    }

    /// Where the log goes on, after [`Scan::next`] has returned `None`. What was read is on disk when this returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn end(self) -> Result<End> {
        let failed = |error| disk_error(&error);
        // Blocks before those of the last two segments are said to be on disk by later ones.
        let last = self.segments.iter().take(self.at + 1).rev().take(2);
        for (number, _) in last {
            let file = self.directory.open_file_to_write(&segment_name(*number));
            file.and_then(|file| file.sync()).map_err(failed)?;
        }
        self.directory.sync().map_err(failed)?;
        Ok(End {
            position: self.position,
            cut: self.cut,
        })
    }
}

const HINT: &str = "Keep the files as they are, and restore the database from a backup.";
