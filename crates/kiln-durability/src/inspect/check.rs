//! Checking that all files of a data directory are what was written.

use std::path::Path;

use kiln_platform::time;
use kiln_storage::error::{Error, Result, SqlState};

use super::contents::{read_files, read_log};
use crate::backup::Watch;
use crate::manifest::{CheckpointEntry, RESTORE};
use crate::recovery::Groups;
use crate::{DataDirectory, damaged};

/// What a check has looked at, and what it has found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Checkpoints that were read.
    pub checkpoints: u64,
    /// Files of them.
    pub files: u64,
    /// Rows in these.
    pub rows: u64,
    /// Segments of the log with blocks.
    pub segments: u64,
    /// Blocks of the log.
    pub blocks: u64,
    /// Entries of the log: commits, changes of the catalog, outcomes of calls.
    pub entries: u64,
    /// Bytes of all that was read.
    pub bytes: u64,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// What is damaged: the message names the file and the place, the hint what can be done.
    pub damages: Vec<Error>,
    /// What is no damage, and good to know.
    pub notes: Vec<String>,
}

/// Reads all that the manifest of the data directory at `path` names, which no other process may
/// have open. `holder` is a line about this process.
///
/// # Errors
/// Those of [`DataDirectory::open_existing`], but for damage, which is reported.
pub fn check(path: &Path, holder: &str, watch: Watch<'_>) -> Result<CheckReport> {
    let began_ns = time::now_ns();
    let mut report = CheckReport::default();
    match DataDirectory::open_existing(path, holder) {
        Ok(directory) => report.check(&directory, watch),
        Err(error) if error.state() == SqlState::DATA_CORRUPTED => report.damages.push(error),
        Err(error) => return Err(error),
    }
    report.elapsed_ns = time::now_ns() - began_ns;
    Ok(report)
}

impl CheckReport {
    fn check(&mut self, directory: &DataDirectory, watch: Watch<'_>) {
        self.notes.extend_from_slice(directory.warnings());
        let manifest = directory.manifest();
        let bytes: u64 = manifest
            .checkpoints
            .iter()
            .map(CheckpointEntry::bytes)
            .sum();
        let mut before = 0;
        for checkpoint in &manifest.checkpoints {
            self.check_checkpoint(directory, checkpoint, &mut |done, _| {
                watch(before + done, bytes);
            });
            before += checkpoint.bytes();
        }
        let mut watch_log = |done, all| watch(bytes + done, bytes + all);
        let mut last_epoch = 0;
        let log = read_log(directory, &mut watch_log, |groups| {
            self.check_group(groups, &mut last_epoch)
        });
        self.segments = log.segments.len() as u64;
        self.blocks = log.blocks();
        self.bytes += log.bytes;
        let path = directory.log().path().display();
        self.notes.extend(log.cut.map(|cut| {
            format!(
                "the log ends at {cut}. A crash leaves that, of what was not acknowledged, and it is cut \
                 off when the database is opened"
            )
        }));
        if let Some(damage) = log.damage {
            return self.damages.push(damage);
        }
        let end = log.end.map_or(0, |end| end.epoch);
        for checkpoint in &manifest.checkpoints {
            if !checkpoint.is_covered_by(end) {
                let (number, epoch) = (checkpoint.number, checkpoint.end_epoch);
                let fault = format!(
                    "{path} ends with log epoch {end}, and checkpoint {number} needs it up to {epoch}"
                );
                self.damages.push(damaged(fault).with_hint(RESTORE));
            }
        }
    }

    fn check_checkpoint(
        &mut self,
        directory: &DataDirectory,
        checkpoint: &CheckpointEntry,
        watch: Watch<'_>,
    ) {
        self.checkpoints += 1;
        let files = match read_files(directory, checkpoint, watch) {
            Ok(files) => files,
            Err(error) => return self.damages.push(error),
        };
        let rows: u64 = files.iter().map(|file| file.rows).sum();
        let is_whole = files.iter().all(|file| file.damage.is_none());
        if is_whole && rows != checkpoint.rows {
            let (number, expected) = (checkpoint.number, checkpoint.rows);
            let fault =
                format!("checkpoint {number} has {rows} rows, and the manifest says {expected}");
            self.damages.push(damaged(fault).with_hint(RESTORE));
        }
        self.files += files.len() as u64;
        self.rows += rows;
        self.bytes += checkpoint.bytes();
        self.damages
            .extend(files.into_iter().filter_map(|file| file.damage));
    }

    /// Checks what the checksums of blocks do not say.
    fn check_group(&mut self, groups: &Groups, last_epoch: &mut u64) -> Result<()> {
        let (Some(first), Some(last)) = (groups.blocks().first(), groups.blocks().last()) else {
            return Ok(());
        };
        let (number, segment, offset) = (first.header.number, first.segment, first.offset);
        let fault = |fault: String| {
            let message = format!(
                "the log is damaged: the group in block {number} at offset {offset} of segment {segment} {fault}"
            );
            Err(damaged(message).with_hint(RESTORE))
        };
        let epochs = first.header.epochs;
        let mut blocks = groups.blocks().iter();
        if blocks.any(|block| block.header.epochs != epochs) {
            return fault("has blocks of other log epochs".to_owned());
        }
        // An empty block, which says that the one before it is on disk, is of its log epoch.
        let is_after = match last.payload_bytes {
            0 => epochs.1 >= *last_epoch,
            _ => epochs.0 > *last_epoch,
        };
        if !is_after {
            return fault(format!("is of log epochs that came before, {epochs:?}"));
        }
        *last_epoch = epochs.1;
        for entry in groups.entries().into_iter().flatten() {
            match entry {
                Ok(entry) if (epochs.0..=epochs.1).contains(&entry.epoch()) => self.entries += 1,
                Ok(entry) => {
                    let epoch = entry.epoch();
                    return fault(format!("has an entry of log epoch {epoch}"));
                }
                Err(_) => return fault("has something that is no entry".to_owned()),
            }
        }
        Ok(())
    }
}
