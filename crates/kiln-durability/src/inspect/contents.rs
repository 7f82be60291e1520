//! What is in the log and in the checkpoints of a data directory.

use kiln_platform::disk::Directory;
use kiln_storage::error::{Error, Result, SqlState};

use crate::DataDirectory;
use crate::backup::Watch;
use crate::checkpoint::Reader;
use crate::disk_error;
use crate::format::block::{BlockHeader, bytes_of};
use crate::log::Position;
use crate::manifest::{CheckpointEntry, FileName};
use crate::recovery::{Groups, Scan, Start};

/// What is in a log.
#[derive(Clone, Debug)]
pub struct LogSummary {
    /// The segments that have blocks, in their order.
    pub segments: Vec<SegmentSummary>,
    /// Its groups.
    pub groups: u64,
    /// Bytes of its blocks.
    pub bytes: u64,
    /// Where it goes on, as far as it could be read.
    pub end: Option<Position>,
    /// What is behind its end, in words, if it is not simply the end: what was being written in a
    /// crash.
    pub cut: Option<String>,
    /// Why it could not be read further.
    pub damage: Option<Error>,
}

impl LogSummary {
    /// How many blocks it has.
    pub fn blocks(&self) -> u64 {
        let blocks = |it: &SegmentSummary| it.last.number - it.first.number + 1;
        self.segments.iter().map(blocks).sum()
    }

    fn add(&mut self, groups: &Groups) {
        for block in groups.blocks() {
            self.bytes += bytes_of(block.payload_bytes) as u64;
            let used_bytes = block.offset + bytes_of(block.payload_bytes) as u64;
            match self.segments.last_mut() {
                Some(segment) if segment.number == block.segment => {
                    segment.last = block.header;
                    segment.used_bytes = used_bytes;
                }
                _ => self.segments.push(SegmentSummary {
                    number: block.segment,
                    used_bytes,
                    first: block.header,
                    last: block.header,
                }),
            }
        }
    }
}

/// What is in a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentSummary {
    /// Its number.
    pub number: u64,
    /// Bytes up to the end of its last block.
    pub used_bytes: u64,
    /// Its first block.
    pub first: BlockHeader,
    /// Its last block.
    pub last: BlockHeader,
}

/// Reads all of the log that the manifest keeps, and gives each group to `each`, up to the first
/// that is damaged or for which `each` returns an error.
pub fn read_log(
    directory: &DataDirectory,
    watch: Watch<'_>,
    mut each: impl FnMut(&Groups) -> Result<()>,
) -> LogSummary {
    let mut summary = LogSummary {
        segments: Vec::new(),
        groups: 0,
        bytes: 0,
        end: None,
        cut: None,
        damage: None,
    };
    let mut read = || {
        let manifest = directory.manifest();
        let log = Directory::open(directory.log().path()).map_err(|error| disk_error(&error))?;
        let start = Start::of(manifest.database, manifest.first_segment);
        let mut groups = Groups::new(Scan::open(log, start)?);
        while groups.advance()? {
            summary.add(&groups);
            summary.groups += 1;
            summary.end = Some(groups.position());
            let (done, all) = groups.progress();
            watch(done, all);
            each(&groups)?;
        }
        summary.cut = groups.cut().map(str::to_owned);
        summary.end = Some(groups.position());
        Ok(())
    };
    let read: Result<()> = read();
    summary.damage = read.err();
    summary
}

/// What is in a file of a checkpoint.
#[derive(Clone, Debug)]
pub struct FileSummary {
    /// Its name.
    pub name: FileName,
    /// Its length, as the manifest has it.
    pub bytes: u64,
    /// How many rows could be read.
    pub rows: u64,
    /// Why no more could be.
    pub damage: Option<Error>,
}

/// Reads all files of a checkpoint, and says after each how many bytes of them are done.
///
/// # Errors
/// 42704 when the manifest has no checkpoint of this number; XX001 when its directory is missing;
/// the disk's.
pub fn read_checkpoint(
    directory: &DataDirectory,
    number: u64,
    watch: Watch<'_>,
) -> Result<Vec<FileSummary>> {
    let manifest = directory.manifest();
    let mut checkpoints = manifest.checkpoints.iter();
    let entry = checkpoints.find(|it| it.number == number).ok_or_else(|| {
        let path = directory.path().display();
        let numbers: Vec<String> = (manifest.checkpoints.iter())
            .map(|it| it.number.to_string())
            .collect();
        let message = match numbers.is_empty() {
            true => format!("{path} has no checkpoints"),
            false => format!(
                "{path} has checkpoints {}, not {number}",
                numbers.join(" and ")
            ),
        };
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    })?;
    read_files(directory, entry, watch)
}

pub(super) fn read_files(
    directory: &DataDirectory,
    entry: &CheckpointEntry,
    watch: Watch<'_>,
) -> Result<Vec<FileSummary>> {
    let database = directory.manifest().database;
    let reader = Reader::open(directory.checkpoints(), database, entry.clone())?;
    let (mut done, all) = (0, entry.bytes());
    let mut files = Vec::new();
    for file in &entry.files {
        let mut rows = 0;
        let read = match file.name {
            FileName::Catalog => reader.catalog().map(drop),
            FileName::Table { table, part } => reader.table(table, part).and_then(|mut file| {
                while let Some(block) = file.next_block()? {
                    rows += block.count() as u64;
                }
                Ok(())
            }),
        };
        done += file.bytes;
        watch(done, all);
        files.push(FileSummary {
            name: file.name,
            bytes: file.bytes,
            rows,
            damage: read.err(),
        });
    }
    Ok(files)
}
