//! A file that is read, written and synced at offsets.

use std::io;
use std::path::{Path, PathBuf};

use super::error::{Error, Operation, Result};
use super::poison::Poison;
use crate::backend::disk::RawFile;

/// How many bytes of zeros [`Allocation::step`] writes at a time.
const PIECE_BYTES: usize = 1 << 20;
static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// An open file. Closed when dropped, which makes nothing durable.
///
/// Threads may share it. After a change or a sync that failed it refuses all others; see the
/// module's documentation.
#[derive(Debug)]
pub struct File {
    raw: RawFile,
    path: PathBuf,
    poison: Poison,
}

impl File {
    pub(super) fn new(raw: RawFile, path: PathBuf) -> File {
        File {
            raw,
            path,
            poison: Poison::default(),
        }
    }

    /// The path under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length in bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn len(&self) -> Result<u64> {
        let len = self.raw.len();
        len.map_err(|error| self.error(Operation::Inspect, &error))
    }

    /// Whether the length is 0.
    ///
    /// # Errors
    /// The system's.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file, or makes it longer by bytes that read as zeros and have no room on the disk
    /// yet.
    ///
    /// # Errors
    /// The system's; those of an earlier change or sync that failed.
    pub fn set_len(&self, bytes: u64) -> Result<()> {
        self.change(Operation::SetLength, || {
            check_end(bytes, 0)?;
            self.raw.set_len(bytes)
        })
    }

    /// Fills `buffer` with the bytes from `offset` on. Returns how many there are: less than the
    /// buffer has room for only if the file ends there.
    ///
    /// # Errors
    /// The system's.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if check_end(offset, buffer.len()).is_err() {
            return Ok(0);
        }
        let mut done = 0;
        while done < buffer.len() {
            match self
                .raw
                .read_some(offset + done as u64, &mut buffer[done..])
            {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(Operation::Read, &error)),
            }
        }
        Ok(done)
    }

    /// Writes all of `bytes` from `offset` on; a file that ends before grows.
    ///
    /// # Errors
    /// The system's, and then any part may have been written; those of an earlier change or sync
    /// that failed.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.change(Operation::Write, || {
            check_end(offset, bytes.len())?;
            write_all(&self.raw, offset, bytes, |done| done)
        })
    }

    /// Makes the data and the length durable, as `fdatasync` does. The file's entry is its
    /// directory's.
    ///
    /// # Errors
    /// The system's, and then it is not known what is durable; those of an earlier change or sync
    /// that failed.
    pub fn sync(&self) -> Result<()> {
        self.poison.sync(|| {
            let synced = self.raw.sync();
            synced.map_err(|error| self.error(Operation::Sync, &error))
        })
    }

    /// Begins to make the file `bytes` long with room on the disk for all of it: reserves that room
    /// and returns what fills it with zeros, from the present end on. When that is done and synced,
    /// an overwrite changes no metadata, so that a durable one costs the device nothing but the
    /// data.
    ///
    /// ```no_run
    /// # fn allocate(directory: &kiln_platform::disk::Directory) -> kiln_platform::disk::Result<()> {
    /// let segment = directory.create_file("segment")?;
    /// let mut allocation = segment.allocate(64 << 20)?;
    /// while !allocation.step()? {
    ///     kiln_platform::thread::sleep(1_000_000);
    /// }
    /// segment.sync()
    /// # }
    /// ```
    ///
    /// An allocation that was given up goes on where it ended: the length says how far it came.
    ///
    /// # Errors
    /// The system's; those of an earlier change or sync that failed.
    pub fn allocate(&self, bytes: u64) -> Result<Allocation<'_>> {
        self.poison.check()?;
        let next = self.len()?;
        if next < bytes {
            self.change(Operation::Allocate, || {
                uninterrupted(|| self.raw.reserve(next, bytes - next))
            })?;
        }
        Ok(Allocation {
            file: self,
            next,
            end: bytes,
        })
    }

    pub(super) fn raw(&self) -> &RawFile {
        &self.raw
    }

    pub(super) fn error(&self, operation: Operation, error: &io::Error) -> Error {
        Error::new(operation, &self.path, error)
    }

    /// Makes a change unless an earlier change or sync has failed.
    pub(super) fn change<T>(
        &self,
        operation: Operation,
        change: impl FnOnce() -> io::Result<T>,
    ) -> Result<T> {
        self.poison
            .change(|| change().map_err(|error| self.error(operation, &error)))
    }
}

/// A file's room being filled with zeros, a piece at a time; made by [`File::allocate`].
#[derive(Debug)]
pub struct Allocation<'a> {
    file: &'a File,
    next: u64,
    end: u64,
}

impl Allocation<'_> {
    /// Writes the next piece, at most a mebibyte. Returns whether it was the last.
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub fn step(&mut self) -> Result<bool> {
        if self.next < self.end {
            let bytes = (self.end - self.next).min(PIECE_BYTES as u64);
            self.file.write_at(self.next, &ZEROS[..bytes as usize])?;
            self.next += bytes;
        }
        Ok(self.next >= self.end)
    }

    /// How many bytes are still to be written.
    pub fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }
}

/// Refuses what no file is long enough for. The system takes such offsets for negative ones, and
/// says that the request makes no sense.
fn check_end(offset: u64, bytes: usize) -> io::Result<()> {
    let end = offset.checked_add(bytes as u64);
    match end.is_some_and(|end| i64::try_from(end).is_ok()) {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::EFBIG)),
    }
}

/// Writes all of `bytes`. After a short write it goes on where `resume` says for the number of
/// bytes written.
///
/// # Errors
/// The system's, and `WriteZero` when nothing was gained.
pub(super) fn write_all(
    raw: &RawFile,
    offset: u64,
    bytes: &[u8],
    resume: impl Fn(usize) -> usize,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let written = uninterrupted(|| raw.write_some(offset + done as u64, &bytes[done..]))?;
        let next = match done + written == bytes.len() {
            true => bytes.len(),
            false => resume(done + written),
        };
        if next <= done {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                format!("the system wrote {written} of {} bytes", bytes.len() - done),
            ));
        }
        done = next;
    }
    Ok(())
}

/// Repeats `call` while a signal interrupts it.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
