//! Writing a backup.

use std::path::Path;

use kiln_platform::disk::Directory;
use kiln_platform::time;
use kiln_storage::error::{Error, Result};

use super::{BackupList, CHECKPOINTS, LOG, Meter, SegmentEntry, Watch, clear, sync};
use crate::directory::{create_empty, name_of_checkpoint, refused};
use crate::format::{DatabaseId, segment_name};
use crate::log::Position;
use crate::manifest::CheckpointEntry;
use crate::recovery::{Groups, Scan, Start};
use crate::{DataDirectory, damaged, disk_error};

/// The list while the backup is being written: its exclusive creation claims the directory.
const LIST_NEW: &str = "BACKUP.new";
pub(super) const LIST: &str = "BACKUP";

/// What is to be copied. None of it may be removed or used again meanwhile.
#[derive(Debug)]
pub struct Source<'a> {
    /// Where it is.
    pub directory: &'a DataDirectory,
    /// The checkpoint; without one the log is copied from its beginning.
    pub checkpoint: Option<CheckpointEntry>,
    /// Where the log ends: all before it is on disk.
    pub end: Position,
    /// All that was acknowledged until then is before the end; in microseconds since 1970.
    pub taken_us: i64,
}

/// What was backed up.
#[derive(Clone, Debug)]
pub struct BackupReport {
    /// What is in the backup.
    pub list: BackupList,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
}

/// Copies a database that no process has open. `holder` is a line about this process.
///
/// # Errors
/// Those of [`DataDirectory::open_existing`] and of [`write`](fn@write).
pub fn back_up_closed(
    path: &Path,
    target: &Path,
    holder: &str,
    watch: Watch<'_>,
) -> Result<BackupReport> {
    let directory = DataDirectory::open_existing(path, holder)?;
    crate::check_is_free(target)?;
    let manifest = directory.manifest();
    let checkpoint = manifest.checkpoints.last().cloned();
    let segment = checkpoint
        .as_ref()
        .map_or(manifest.first_segment, |it| it.segment);
    let mut groups = read_log(directory.log(), manifest.database, segment)?;
    while groups.advance()? {}
    let end = groups.position();
    if let Some(checkpoint) = &checkpoint
        && !checkpoint.is_covered_by(end.epoch)
    {
        let log = directory.log().path().display();
        let message = format!("{log} ends before all that the last checkpoint needs of it");
        return Err(damaged(message).with_hint(crate::manifest::RESTORE));
    }
    let source = Source {
        directory: &directory,
        checkpoint,
        end,
        taken_us: time::wall_clock_us(),
    };
    write(&source, target, watch)
}

/// Writes a backup to `target`, where nothing is or an empty directory. Leaves nothing there when
/// it fails. What was copied is checked: it is what was written, as far as checksums can say.
///
/// # Errors
/// 55000 when `target` is not empty; XX001 for files of the source that are damaged; the disk's.
pub fn write(source: &Source<'_>, target: &Path, watch: Watch<'_>) -> Result<BackupReport> {
    let began_ns = time::now_ns();
    let root = create_empty(target)?;
    let failed = |error| refused(&error);
    let list = root.create_file(LIST_NEW).map_err(failed)?;
    let written = copy(source, &root, watch).and_then(|content| {
        let write = || {
            list.write_at(0, &content.to_bytes())?;
            list.sync()?;
            root.rename(LIST_NEW, LIST)?;
            root.sync()
        };
        write().map_err(failed)?;
        Ok(content)
    });
    drop(list);
    match written {
        Ok(list) => Ok(BackupReport {
            list,
            elapsed_ns: time::now_ns() - began_ns,
        }),
        Err(error) => {
            clear(target);
            Err(error)
        }
    }
}

/// Copies all files, durably. Returns what they are.
fn copy(source: &Source<'_>, root: &Directory, watch: Watch<'_>) -> Result<BackupList> {
    let failed = |error| refused(&error);
    let manifest = source.directory.manifest();
    let first = match &source.checkpoint {
        Some(checkpoint) => checkpoint.segment,
        None => Position::start(manifest.database).segment,
    };
    let segments = segments(source, first)?;
    let mut list = BackupList {
        database: manifest.database,
        created_us: manifest.created_us,
        taken_us: source.taken_us,
        last_block: source.end.chain.last,
        last_epoch: source.end.epoch,
        checkpoint: source.checkpoint.clone(),
        segments,
    };
    let mut meter = Meter::new(watch, list.bytes());
    let checkpoints = root.create_subdirectory(CHECKPOINTS).map_err(failed)?;
    if let Some(checkpoint) = &source.checkpoint {
        let name = name_of_checkpoint(checkpoint.number);
        let from = super::subdirectory(source.directory.checkpoints(), &name)?;
        let to = checkpoints.create_subdirectory(&name).map_err(failed)?;
        checkpoint.copy(&from, &to, &mut meter)?;
    }
    let log = root.create_subdirectory(LOG).map_err(failed)?;
    for segment in &mut list.segments {
        let name = segment_name(segment.number);
        segment.checksum = meter.copy(source.directory.log(), &log, &name, segment.bytes)?;
    }
    sync([&checkpoints, &log, root])?;
    check_log(&log, manifest.database, first, source.end)?;
    Ok(list)
}

/// The segments from the first one to the end, with their lengths.
fn segments(source: &Source<'_>, first: u64) -> Result<Vec<SegmentEntry>> {
    let end = source.end;
    if end.chain.last == 0 {
        return Ok(Vec::new());
    }
    let entry = |number| {
        let bytes = match number == end.segment {
            true => end.offset,
            false => {
                let file = super::open(source.directory.log(), &segment_name(number))?;
                file.len().map_err(|error| disk_error(&error))?
            }
        };
        Ok(SegmentEntry {
            number,
            bytes,
            checksum: 0,
        })
    };
    (first..=end.segment).map(entry).collect()
}

pub(super) fn read_log(log: &Directory, database: DatabaseId, segment: u64) -> Result<Groups> {
    let log = Directory::open(log.path()).map_err(|error| disk_error(&error))?;
    Ok(Groups::new(Scan::open(log, Start::of(database, segment))?))
}

/// Checks that a copy is the log up to this end.
pub(super) fn check_log(
    log: &Directory,
    database: DatabaseId,
    first: u64,
    end: Position,
) -> Result<()> {
    let mut groups = read_log(log, database, first)?;
    while groups.advance()? {}
    match groups.position().chain == end.chain {
        true => Ok(()),
        false => Err(not_copied(log)),
    }
}

fn not_copied(log: &Directory) -> Error {
    let log = log.path().display();
    damaged(format!(
        "{log} does not have all blocks of the log that was copied"
    ))
    .with_hint("Check the data directory and its disk: `kiln data check`.")
}
