//! Extent: how much of a log there is to read, found without reading all of it.

use kiln_platform::disk::{Directory, Kind};
use kiln_storage::error::Result;

use super::segment::{SegmentReader, segments_from};
use crate::error::disk_error;
use crate::format::block::{self, BlockHeader};
use crate::format::{DatabaseId, segment_name};

/// The last block of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogEnd {
    /// Its segment.
    pub segment: u64,
    /// Where in that it ends.
    pub offset: u64,
    /// What it says of itself.
    pub header: BlockHeader,
}

/// The segments of a log, and its last block.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The numbers of the segments, in their order, and the bytes of each file, used or not.
    pub segments: Vec<(u64, u64)>,
    /// `None` when there is no block.
    pub end: Option<LogEnd>,
}

impl Extent {
    /// Finds the last block of the log in `directory` from the segment `first` on. A process may
    /// write it meanwhile: then these are the figures of a moment. Reads one segment, and of those
    /// that are made ahead their beginning: the blocks of a segment are one after the other from
    /// its start on, and segments after the one that is written have none.
    ///
    /// # Errors
    /// The disk's.
    pub fn find(directory: &Directory, database: DatabaseId, first: u64) -> Result<Extent> {
        let segments = segments_from(directory, first)?;
        let mut end = None;
        for &(segment, _) in segments.iter().rev() {
            let file = match directory.open_file(&segment_name(segment)) {
                // A database that is open has given it up.
                Err(error) if *error.kind() == Kind::NotFound => continue,
                other => other.map_err(|error| disk_error(&error))?,
            };
            end = last_block(SegmentReader::new(file, segment)?, database)?;
            if end.is_some() {
                break;
            }
        }
        Ok(Extent { segments, end })
    }

    /// Bytes up to the end of the last block, from the start of the segment `first` on.
    pub fn bytes_from(&self, first: u64) -> u64 {
        let Some(end) = self.end.filter(|end| end.segment >= first) else {
            return 0;
        };
        let segments = self.segments.iter();
        let before = segments.filter(|(number, _)| (first..end.segment).contains(number));
        before.map(|(_, bytes)| bytes).sum::<u64>() + end.offset
    }
}

/// The last block of a segment; `None` when it has none.
fn last_block(mut segment: SegmentReader, database: DatabaseId) -> Result<Option<LogEnd>> {
    let mut end: Option<LogEnd> = None;
    loop {
        let offset = end.map_or(0, |end| end.offset);
        let next = end.map(|end| end.header.number + 1);
        let number = segment.number;
        match block::read(segment.at(offset)?, database, number) {
            Ok(block) if next.is_none_or(|next| next == block.header.number) => {
                end = Some(LogEnd {
                    segment: number,
                    offset: offset + block.bytes() as u64,
                    header: block.header,
                });
            }
            _ => return Ok(end),
        }
    }
}
