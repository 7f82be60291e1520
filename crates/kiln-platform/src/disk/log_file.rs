//! A file whose writes are durable when they return.

use std::io;
use std::path::Path;

use super::buffer::{AlignedBuffer, BLOCK_BYTES};
use super::error::{Operation, Result};
use super::file::{File, write_all};
use crate::atomic::{AtomicU8, Ordering};
use crate::backend::disk::RawFile;

/// What makes the writes of a [`LogFile`] durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurableBy {
    /// Each write is one system call past the cache (`O_DIRECT|O_DSYNC`).
    DirectWrite,
    /// Each write goes through the cache, and a sync follows. So where the file system refuses
    /// direct I/O.
    Sync,
}

/// Direct, but no write has shown yet that the file system means it.
const UNPROVEN: u8 = 0;
const DIRECT: u8 = 1;
const SYNCED: u8 = 2;

/// A file for a log: [`LogFile::write_durably`] returns when the data is durable.
///
/// Made by [`Directory::open_log_file`](super::Directory::open_log_file) of a file that is there,
/// which should be [allocated](File::allocate) and synced before: a write that makes the file
/// longer has metadata to write as well.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    mode: AtomicU8,
    /// What offsets and lengths have to be multiples of.
    block_bytes: usize,
}

impl LogFile {
    /// A file opened for direct I/O, if `direct`, else through the cache.
    pub(super) fn new(file: File, direct: bool) -> LogFile {
        let block_bytes = match file.raw().direct_alignment() {
            Some(alignment) if direct => BLOCK_BYTES.max(alignment.offset),
            _ => BLOCK_BYTES,
        };
        LogFile {
            file,
            mode: AtomicU8::new(if direct { UNPROVEN } else { SYNCED }),
            block_bytes,
        }
    }

    /// Whether direct writes from an [`AlignedBuffer`] to this file can work at all, as far as the
    /// system tells.
    pub(super) fn can_be_direct(raw: &RawFile) -> bool {
        match raw.direct_alignment() {
            Some(alignment) => alignment.memory > 0 && alignment.memory <= BLOCK_BYTES,
            None => true,
        }
    }

    /// The path under which it was opened.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// What makes its writes durable. The first write may still change it from
    /// [`DurableBy::DirectWrite`].
    pub fn durable_by(&self) -> DurableBy {
        // Relaxed: either way of writing is right at any time.
        match self.mode.load(Ordering::Relaxed) {
            SYNCED => DurableBy::Sync,
            _ => DurableBy::DirectWrite,
        }
    }

    /// What offsets and lengths of writes have to be multiples of: [`BLOCK_BYTES`], or a larger
    /// unit of the device.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Writes what `buffer` holds at `offset`. It is durable when this returns.
    ///
    /// # Errors
    /// The system's, and then any sectors of it may have been written; those of an earlier write
    /// that failed.
    ///
    /// # Panics
    /// When the offset or the length is no multiple of [`LogFile::block_bytes`].
    pub fn write_durably(&self, offset: u64, buffer: &AlignedBuffer) -> Result<()> {
        let (bytes, block) = (buffer.as_slice(), self.block_bytes);
        assert!(
            offset.is_multiple_of(block as u64) && bytes.len().is_multiple_of(block),
            "{} bytes at {offset} are not whole blocks of {block}",
            bytes.len()
        );
        if bytes.is_empty() {
            // A write of nothing would prove nothing about direct writes.
            return self.file.change(Operation::Write, || Ok(()));
        }
        // Relaxed, here and below: as in `durable_by`.
        if self.mode.load(Ordering::Relaxed) != SYNCED {
            let written = self.file.change(Operation::Write, || {
                match write_all(self.file.raw(), offset, bytes, |done| done / block * block) {
                    Ok(()) => Ok(true),
                    Err(error) if self.is_refusal(&error) => {
                        self.file.raw().give_up_direct()?;
                        Ok(false)
                    }
                    Err(error) => Err(error),
                }
            })?;
            let mode = if written { DIRECT } else { SYNCED };
            let _ =
                self.mode
                    .compare_exchange(UNPROVEN, mode, Ordering::Relaxed, Ordering::Relaxed);
            if written {
                return Ok(());
            }
        }
        self.file.write_at(offset, bytes)?;
        self.file.sync()
    }

    /// Whether `error` says that the file system takes no direct writes although it let the file be
    /// opened for them: no direct write has succeeded, and this one is aligned.
    fn is_refusal(&self, error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::EINVAL) && self.mode.load(Ordering::Relaxed) != DIRECT
    }
}
