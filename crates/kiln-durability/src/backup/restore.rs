//! Making a data directory from a backup.

use std::path::Path;

use kiln_platform::disk::{Directory, Kind};
use kiln_platform::time;
use kiln_storage::error::{Error, Result, SqlState};

use super::write::{LIST, check_log, read_log};
use super::{BackupList, CHECKPOINTS, LOG, Meter, Watch, clear, damage, subdirectory, sync};
use crate::directory::{NewDataDirectory, name_of_checkpoint, refused};
use crate::format::segment_name;
use crate::log::Position;
use crate::manifest::{CheckpointEntry, MANIFEST_BYTES_MAX, Manifest};
use crate::{DataDirectory, damaged, disk_error, moment_text};

/// What was restored.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// What was in the backup.
    pub list: BackupList,
    /// Bytes of the files that were made.
    pub bytes: u64,
    /// When the last group was written that was restored, in microseconds since 1970; `None` where
    /// the log is empty.
    pub last_us: Option<i64>,
    /// How many groups of commits were left out.
    pub groups_left_out: u64,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
}

/// Makes a data directory at `target`, where nothing is or an empty directory, from the backup at
/// `path`. With `to_us`, in microseconds since 1970, without what was written to the log after that
/// time. Reads all of the backup before it makes anything; leaves nothing when it fails. `holder`
/// is a line about this process.
///
/// # Errors
/// 55000 when `target` is not empty, or `path` is no backup; XX001 for a backup that is damaged,
/// naming the file; 22023 for a time from which the backup has nothing; the disk's.
pub fn restore(
    path: &Path,
    target: &Path,
    to_us: Option<i64>,
    holder: &str,
    watch: Watch<'_>,
) -> Result<RestoreReport> {
    let began_ns = time::now_ns();
    crate::check_is_free(target)?;
    let root = Directory::open(path).map_err(|error| refused(&error))?;
    let backup = Backup::open(root)?;
    let mut meter = Meter::new(watch, 2 * backup.list.bytes());
    backup.verify(&mut meter)?;
    let end = backup.end(to_us)?;
    let made = DataDirectory::begin(target, holder)
        .and_then(|new| backup.make(new, end.position, &mut meter));
    if let Err(error) = made {
        // Another process may have taken the directory, which was empty: then what is in it belongs
        // to that one.
        const TAKEN: [SqlState; 2] = [
            SqlState::OBJECT_IN_USE,
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        ];
        if !TAKEN.contains(&error.state()) {
            clear(target);
        }
        return Err(error);
    }
    Ok(RestoreReport {
        bytes: meter.done - backup.list.bytes(),
        last_us: end.last_us,
        groups_left_out: end.groups_left_out,
        list: backup.list,
        elapsed_ns: time::now_ns() - began_ns,
    })
}

struct Backup {
    list: BackupList,
    log: Directory,
    /// That of the checkpoint, if there is one.
    checkpoint: Option<(CheckpointEntry, Directory)>,
}

/// Up to where a log is restored.
struct End {
    position: Position,
    last_us: Option<i64>,
    groups_left_out: u64,
}

impl Backup {
    fn open(root: Directory) -> Result<Backup> {
        let list = read_list(&root)?;
        let log = subdirectory(&root, LOG)?;
        let checkpoint = match list.checkpoint.clone() {
            None => None,
            Some(checkpoint) => {
                let checkpoints = subdirectory(&root, CHECKPOINTS)?;
                let directory = subdirectory(&checkpoints, &name_of_checkpoint(checkpoint.number))?;
                Some((checkpoint, directory))
            }
        };
        Ok(Backup {
            list,
            log,
            checkpoint,
        })
    }

    /// The segment with which the log begins.
    fn first_segment(&self) -> u64 {
        match &self.list.checkpoint {
            Some(checkpoint) => checkpoint.segment,
            None => Position::start(self.list.database).segment,
        }
    }

    /// Checks length and checksum of all files.
    fn verify(&self, meter: &mut Meter<'_>) -> Result<()> {
        let checkpoint = self.checkpoint.iter().flat_map(|(checkpoint, directory)| {
            let files = checkpoint.files.iter();
            files.map(move |it| (directory, it.name.to_string(), it.bytes, it.checksum))
        });
        let segments = self.list.segments.iter();
        let segments =
            segments.map(|it| (&self.log, segment_name(it.number), it.bytes, it.checksum));
        for (directory, name, bytes, checksum) in checkpoint.chain(segments) {
            let file = super::open(directory, &name)?;
            let length = file.len().map_err(|error| disk_error(&error))?;
            if length != bytes {
                let fault = format!("it has {length} bytes, and BACKUP says {bytes}");
                return Err(damage(&file, &fault));
            }
            if meter.read(&file, bytes, |_, _| Ok(()))? != checksum {
                return Err(damage(&file, "its checksum is not the one in BACKUP"));
            }
        }
        Ok(())
    }

    /// Up to where the log is to be restored.
    fn end(&self, to_us: Option<i64>) -> Result<End> {
        if let Some(to_us) = to_us
            && to_us > self.list.taken_us
        {
            let (to, taken) = (moment_text(to_us), moment_text(self.list.taken_us));
            let message =
                format!("the backup was taken at {taken}, and cannot be restored to {to}");
            return Err(impossible(message, "Restore all of it, or a later backup."));
        }
        let start = Position::start(self.list.database);
        let mut end = End {
            position: start,
            last_us: None,
            groups_left_out: 0,
        };
        let mut last = start;
        let needed = self.list.checkpoint.as_ref();
        // When the group was written that the checkpoint needs last.
        let mut earliest_us = self.list.created_us;
        let mut groups = match self.list.last_block {
            0 => None,
            _ => Some(read_log(
                &self.log,
                self.list.database,
                self.first_segment(),
            )?),
        };
        while let Some(groups) = &mut groups
            && groups.advance()?
        {
            last = groups.position();
            let written_us = groups.blocks().last().map_or(0, |it| it.header.written_us);
            let first = groups.blocks().first().map_or(0, |it| it.header.epochs.0);
            let has_entries = groups.blocks().iter().any(|it| it.payload_bytes > 0);
            if has_entries && needed.is_some_and(|it| first <= it.end_epoch) {
                earliest_us = written_us;
            }
            end.groups_left_out += u64::from(has_entries);
            if to_us.is_none_or(|to_us| written_us <= to_us) {
                end = End {
                    position: last,
                    last_us: Some(written_us),
                    groups_left_out: 0,
                };
            }
        }
        if last.chain.last != self.list.last_block
            || needed.is_some_and(|it| !it.is_covered_by(last.epoch))
        {
            let log = self.log.path().display();
            let fault = format!(
                "{log} is damaged: it ends before block {}",
                self.list.last_block
            );
            return Err(damaged(fault).with_hint(super::DAMAGED));
        }
        match to_us {
            Some(to_us) if to_us < earliest_us => {
                let (to, earliest) = (moment_text(to_us), moment_text(earliest_us));
                let message = format!(
                    "the backup cannot be restored to {to}: the earliest possible time is {earliest}"
                );
                Err(impossible(
                    message,
                    "Restore an older backup, or name a later time.",
                ))
            }
            _ => Ok(end),
        }
    }

    /// Makes the data directory, with the log up to `end`.
    fn make(&self, new: NewDataDirectory, end: Position, meter: &mut Meter<'_>) -> Result<()> {
        let failed = |error| refused(&error);
        if let Some((checkpoint, from)) = &self.checkpoint {
            let name = name_of_checkpoint(checkpoint.number);
            let to = new.checkpoints.create_subdirectory(&name).map_err(failed)?;
            checkpoint.copy(from, &to, meter)?;
        }
        for segment in &self.list.segments {
            let bytes = match segment.number.cmp(&end.segment) {
                std::cmp::Ordering::Less => segment.bytes,
                std::cmp::Ordering::Equal => end.offset,
                std::cmp::Ordering::Greater => break,
            };
            let name = segment_name(segment.number);
            let checksum = meter.copy(&self.log, &new.log, &name, bytes)?;
            if bytes == segment.bytes && checksum != segment.checksum {
                let file = super::open(&self.log, &name)?;
                return Err(damage(&file, "its checksum is not the one in BACKUP"));
            }
        }
        sync([&new.checkpoints, &new.log])?;
        if end.chain.last > 0 {
            check_log(&new.log, self.list.database, self.first_segment(), end)?;
        }
        let manifest = Manifest {
            database: self.list.database,
            created_us: time::wall_clock_us(),
            first_segment: self.first_segment(),
            // Of the machine where the backup was taken.
            recovery: None,
            checkpoints: self.list.checkpoint.iter().cloned().collect(),
        };
        new.finish(manifest).map(drop)
    }
}

fn impossible(message: String, hint: &'static str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint)
}

fn read_list(root: &Directory) -> Result<BackupList> {
    let file = root.open_file(LIST).map_err(|error| match error.kind() {
        Kind::NotFound | Kind::IsADirectory => {
            let message = format!(
                "{} is no backup: it has no file {LIST}",
                root.path().display()
            );
            Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_hint("A backup that was interrupted has none: take another one.")
        }
        _ => refused(&error),
    })?;
    let failed = |error| disk_error(&error);
    let length = file.len().map_err(failed)?;
    if length > MANIFEST_BYTES_MAX {
        return Err(damage(&file, &format!("no list has {length} bytes")));
    }
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(0, &mut bytes).map_err(failed)?;
    BackupList::read(&bytes[..read], file.path())
}

impl CheckpointEntry {
    /// Copies its files, durably, and checks that they are what was written.
    pub(super) fn copy(
        &self,
        from: &Directory,
        to: &Directory,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        for file in &self.files {
            let name = file.name.to_string();
            if meter.copy(from, to, &name, file.bytes)? != file.checksum {
                let file = super::open(from, &name)?;
                return Err(damage(
                    &file,
                    "its checksum is not the one that was written",
                ));
            }
        }
        sync([to])
    }
}
