//! Reading a segment through a window that moves over it.

use kiln_platform::disk::{Directory, File};
use kiln_storage::error::Result;

use crate::error::disk_error;
use crate::format::block::{self, ALIGNMENT};
use crate::format::{segment_name, segment_number};

/// Bytes of a read; more where a block is longer.
const READ_BYTES: u64 = 4 << 20;

/// The numbers of the segments in a log's directory from `first` on, in their order, and the bytes
/// of each.
///
/// # Errors
/// The disk's.
pub(super) fn segments_from(directory: &Directory, first: u64) -> Result<Vec<(u64, u64)>> {
    let entries = directory.list().map_err(|error| disk_error(&error))?;
    let files = entries.iter().filter(|entry| !entry.is_directory);
    let numbered = files.filter_map(|entry| Some((segment_number(&entry.name)?, entry.bytes)));
    let mut segments: Vec<(u64, u64)> = numbered.filter(|(number, _)| *number >= first).collect();
    segments.sort_unstable();
    Ok(segments)
}

/// A segment that is read from its start on, with a part of it in memory.
pub(super) struct SegmentReader {
    pub number: u64,
    /// The length of the file.
    pub bytes: u64,
    file: File,
    /// What is in memory, and from where on it is.
    window: Vec<u8>,
    start: u64,
}

impl SegmentReader {
    /// Opens a segment.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(directory: &Directory, number: u64) -> Result<SegmentReader> {
        let file = directory.open_file(&segment_name(number));
        SegmentReader::new(file.map_err(|error| disk_error(&error))?, number)
    }

    /// Reads this file, which is the segment `number`.
    ///
    /// # Errors
    /// The disk's.
    pub fn new(file: File, number: u64) -> Result<SegmentReader> {
        let bytes = file.len().map_err(|error| disk_error(&error))?;
        Ok(SegmentReader {
            number,
            bytes,
            file,
            window: Vec::new(),
            start: 0,
        })
    }

    /// The bytes from `offset` on: at least all of the block that is there, if one is, as far as
    /// the file has them.
    ///
    /// # Errors
    /// The disk's.
    pub fn at(&mut self, offset: u64) -> Result<&[u8]> {
        self.load(offset, ALIGNMENT as u64)?;
        let wanted = block::claimed_bytes(self.loaded(offset)) as u64;
        self.load(offset, wanted)?;
        Ok(self.loaded(offset))
    }

    fn loaded(&self, offset: u64) -> &[u8] {
        let skipped = self.window.len().min((offset - self.start) as usize);
        &self.window[skipped..]
    }

    /// Has so many bytes from `offset` on in memory, as far as the file has them.
    fn load(&mut self, offset: u64, wanted: u64) -> Result<()> {
        let left = self.bytes.saturating_sub(offset);
        let end = offset + wanted.min(left);
        let loaded = self.start..=self.start + self.window.len() as u64;
        if loaded.contains(&offset) && loaded.contains(&end) {
            return Ok(());
        }
        let length = wanted.max(READ_BYTES).min(left) as usize;
        self.window.resize(length, 0);
        let read = self.file.read_at(offset, &mut self.window);
        self.window
            .truncate(read.map_err(|error| disk_error(&error))?);
        self.start = offset;
        Ok(())
    }
}
