//! Reading a segment through a window that moves over it.

use kiln_platform::disk::{Directory, File};
use kiln_storage::error::Result;

use crate::error::disk_error;
use crate::format::block::{self, ALIGNMENT};
use crate::format::segment_name;

/// Bytes of a read; more where a block is longer.
const READ_BYTES: u64 = 4 << 20;

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
        let file = file.map_err(|error| disk_error(&error))?;
        let bytes = file.len().map_err(|error| disk_error(&error))?;
        Ok(SegmentReader {
            number,
            bytes,
            file,
            window: Vec::new(),
            start: 0,
        })
    }

    /// The bytes from `offset` on: at least all of the block that is there, if one is, as far as the file has them.
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
