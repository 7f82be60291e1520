//! Backups: a checkpoint and the log after it, in a directory of their own, from which a data
//! directory can be made again.
//!
//! | entry | holds |
//! |---|---|
//! | `BACKUP` | the [`BackupList`]: what is in the backup, with the checksum of each file |
//! | `log/` | the segments from that of the checkpoint on, up to the end of the log |
//! | `checkpoints/` | the directory of the checkpoint, if there was one |
//!
//! The list is written last, after all files are durable: a directory without it is no backup. A
//! backup has no manifest, so that no database is opened in it, which would change it.
//!
//! # Restoring to a time
//!
//! Each block of the log says when it was written, before any of its commits was acknowledged. A
//! [restoration](restore) up to a time leaves out all groups after the last one that was written
//! until then: what was acknowledged before the time is there, and what began after it is not.
//! Blocks that are left out are not copied, so that they cannot come back: the restored log goes on
//! with others in their place.

mod list;
mod restore;
mod write;

use std::path::Path;

use kiln_platform::disk::{self, Directory, File, Kind};
use kiln_storage::error::{Error, Result};

pub use list::{BackupList, SegmentEntry};
pub use restore::{RestoreReport, restore};
pub use write::{BackupReport, Source, back_up_closed, write};

use crate::directory::refused;
use crate::format::Checksum;
use crate::{damaged, disk_error};

/// What is told how many bytes are done, and how many there are.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64);

const LOG: &str = "log";
const CHECKPOINTS: &str = "checkpoints";

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes between two syncs of a file: one sync of all its bytes would keep the device from other
/// writes for long.
const SYNC_BYTES: u64 = 8 << 20;

/// How far reading and copying are.
struct Meter<'a> {
    watch: Watch<'a>,
    done: u64,
    all: u64,
    piece: Vec<u8>,
}

impl Meter<'_> {
    fn new(watch: Watch<'_>, all: u64) -> Meter<'_> {
        Meter {
            watch,
            done: 0,
            all,
            piece: vec![0; PIECE_BYTES],
        }
    }

    /// Reads the first bytes of a file and gives them to `each`, with their offset, piece by piece.
    /// Returns their checksum.
    ///
    /// # Errors
    /// XX001 when the file has less; the disk's, and those of `each`.
    fn read(
        &mut self,
        file: &File,
        bytes: u64,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let (mut checksum, mut at) = (Checksum::default(), 0);
        while at < bytes {
            let wanted = (bytes - at).min(self.piece.len() as u64) as usize;
            let read = file.read_at(at, &mut self.piece[..wanted]);
            let read = read.map_err(|error| disk_error(&error))?;
            if read < wanted {
                let end = at + read as u64;
                return Err(damage(file, &format!("it has {end} of {bytes} bytes")));
            }
            let piece = &self.piece[..read];
            checksum.add(piece);
            each(at, piece)?;
            at += read as u64;
            self.done += read as u64;
            (self.watch)(self.done, self.all);
        }
        Ok(checksum.value())
    }

    /// Copies the first bytes of the file `name`, and makes the copy durable, but for its entry.
    /// Returns their checksum.
    ///
    /// # Errors
    /// As [`Meter::read`]; XX001 when the file is not there.
    fn copy(&mut self, from: &Directory, to: &Directory, name: &str, bytes: u64) -> Result<u64> {
        let file = open(from, name)?;
        let copy = to.create_file(name).map_err(|error| refused(&error))?;
        let mut synced = 0;
        let checksum = self.read(&file, bytes, |at, piece| {
            let mut write = || {
                copy.write_at(at, piece)?;
                if at + piece.len() as u64 - synced >= SYNC_BYTES {
                    synced = at + piece.len() as u64;
                    copy.sync()?;
                }
                Ok(())
            };
            write().map_err(|error| refused(&error))
        })?;
        copy.sync().map_err(|error| refused(&error))?;
        Ok(checksum)
    }
}

/// Opens a file that has to be there.
fn open(directory: &Directory, name: &str) -> Result<File> {
    directory
        .open_file(name)
        .map_err(|error| match error.kind() {
            Kind::NotFound | Kind::IsADirectory => {
                let path = directory.path().join(name);
                damaged(format!("{} is missing", path.display())).with_hint(DAMAGED)
            }
            _ => refused(&error),
        })
}

/// Opens a directory that has to be there.
fn subdirectory(directory: &Directory, name: &str) -> Result<Directory> {
    directory
        .subdirectory(name)
        .map_err(|error| match error.kind() {
            Kind::NotFound | Kind::NotADirectory => {
                let path = directory.path().join(name);
                damaged(format!("the directory {} is missing", path.display())).with_hint(DAMAGED)
            }
            _ => refused(&error),
        })
}

/// What can be done when a file is not what was written.
const DAMAGED: &str = "Use another backup, or another copy of this one.";

fn damage(file: &File, fault: &str) -> Error {
    damaged(format!("{} is damaged: {fault}", file.path().display())).with_hint(DAMAGED)
}

/// Removes all that is in the directory at `path`, as far as that can be done: what could not be
/// completed is to leave nothing behind. Opens the directory anew, as a handle whose change or sync
/// has failed refuses all others.
fn clear(path: &Path) {
    let Ok(directory) = Directory::open(path) else {
        return;
    };
    for entry in directory.list().unwrap_or_default() {
        let _ = match entry.is_directory {
            true => {
                clear(&path.join(&entry.name));
                directory.remove_directory(&entry.name)
            }
            false => directory.remove_file(&entry.name),
        };
    }
}

/// Makes the entries of directories durable.
fn sync<'d>(directories: impl IntoIterator<Item = &'d Directory>) -> Result<()> {
    let mut directories = directories.into_iter();
    let synced: disk::Result<()> = directories.try_for_each(Directory::sync);
    synced.map_err(|error| refused(&error))
}
