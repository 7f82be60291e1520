//! The manifest: what of a data directory belongs to its database.
//!
//! # Form
//!
//! A text in UTF-8, each line ended by one line feed. Words are separated by one space; numbers are
//! decimal, without leading zeros; checksums have 16 hexadecimal digits, and lower-case letters.
//!
//! | line | says |
//! |---|---|
//! | `kiln manifest 1` | the version of all formats of the directory |
//! | `written-by 0.1.0` | the version of the Kiln that wrote the manifest |
//! | `database <32 hexadecimal digits>` | the database's id, which is in all its files |
//! | `created <number>` | when the directory was made, in microseconds since 1970 |
//! | `first-segment <number>` | the segment with which the log that is kept begins |
//! | `recovery <number> <number> <number> <number>` | of the last recovery that read enough to tell, if there was one: bytes of checkpoints and of log that it read in a second; how long it was estimated to take, and how long it took, in microseconds |
//! | `checkpoint <number>` | a checkpoint begins, with the lines below; there are at most two, the older one first |
//! | `  epochs <number> <number>` | the log epoch from which on the log is replayed, and the one before whose end all rows were read |
//! | `  segment <number>` | the segment in which that replay begins |
//! | `  catalog <number>` | the version of the catalog in it |
//! | `  written <number>` | when it was complete, in microseconds since 1970 |
//! | `  rows <number>` | how many rows are in its files |
//! | `  file <name> <number> <checksum>` | one of its files, with its bytes and the checksum of these; any number of such lines, no name twice |
//! | `checksum <checksum>` | CRC-64/XZ of all bytes before this line |
//!
//! The first two lines and the last one are the same in all versions, so that each Kiln can say of
//! a newer directory that it is newer.

mod read;

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::path::Path;
use std::str::FromStr;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::TableId;

pub(crate) use self::read::{Lines, Refusal, hexadecimal, number};
use crate::format::{COUNTER_MAX, DatabaseId, FORMAT_VERSION, checksum};
use crate::rates::{RecoveryRates, RecoveryRecord};

/// The longest manifest, in bytes: room for half a million files.
pub const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// How many checkpoints a database keeps.
pub const CHECKPOINTS_MAX: usize = 2;

pub(crate) const RESTORE: &str = "Restore the data directory from a backup.";

/// What of a data directory belongs to its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// In all its files.
    pub database: DatabaseId,
    /// When the directory was made, in microseconds since 1970.
    pub created_us: i64,
    /// The segment with which the log that is kept begins.
    pub first_segment: u64,
    /// The last recovery that read enough to tell how fast it is.
    pub recovery: Option<RecoveryRecord>,
    /// At most [`CHECKPOINTS_MAX`], the older one first.
    pub checkpoints: Vec<CheckpointEntry>,
}

/// A checkpoint that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointEntry {
    /// Its number; a later checkpoint has a higher one.
    pub number: u64,
    /// The log is replayed from this log epoch on.
    pub start_epoch: u64,
    /// All rows were read before this log epoch was closed: without the log up to it the checkpoint
    /// is of no use. The one before the start where nothing was committed while the rows were read.
    pub end_epoch: u64,
    /// The segment in which the replay begins.
    pub segment: u64,
    /// The version of the catalog that is in it.
    pub catalog: u64,
    /// When it was complete, in microseconds since 1970.
    pub written_us: i64,
    /// How many rows are in its files.
    pub rows: u64,
    /// Its files.
    pub files: Vec<FileEntry>,
}

impl CheckpointEntry {
    /// The bytes of its files.
    pub fn bytes(&self) -> u64 {
        let bytes = self.files.iter().map(|file| file.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Whether a log whose last log epoch is this one has all that the rows need.
    pub fn is_covered_by(&self, epoch: u64) -> bool {
        epoch >= self.end_epoch || self.end_epoch < self.start_epoch
    }
}

/// A file of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name.
    pub name: FileName,
    /// Its length.
    pub bytes: u64,
    /// CRC-64/XZ of all its bytes.
    pub checksum: u64,
}

/// The name of a file of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// `catalog`: the written catalog.
    Catalog,
    /// `table-<number>-<part>`: rows of a table.
    Table {
        /// The table.
        table: TableId,
        /// Tells the files of one table apart.
        part: u32,
    },
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Catalog => f.write_str("catalog"),
            FileName::Table { table, part } => write!(f, "table-{}-{part}", table.0),
        }
    }
}

/// No file of a checkpoint has such a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAFileName;

impl FromStr for FileName {
    type Err = NotAFileName;

    fn from_str(text: &str) -> std::result::Result<FileName, NotAFileName> {
        if text == "catalog" {
            return Ok(FileName::Catalog);
        }
        let numbers = text
            .strip_prefix("table-")
            .and_then(|it| it.split_once('-'));
        let (table, part) = numbers.ok_or(NotAFileName)?;
        Ok(FileName::Table {
            table: TableId(read::number(table).ok_or(NotAFileName)?),
            part: read::number(part).ok_or(NotAFileName)?,
        })
    }
}

impl Manifest {
    /// The manifest of a new database without a checkpoint, whose log begins with segment 1.
    pub fn new(database: DatabaseId, created_us: i64) -> Manifest {
        Manifest {
            database,
            created_us,
            first_segment: 1,
            recovery: None,
            checkpoints: Vec::new(),
        }
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// XX000 when no data directory can have such a manifest; 54000 when it is longer than
    /// [`MANIFEST_BYTES_MAX`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if let Some(fault) = self.fault() {
            return Err(Error::internal(format!(
                "no manifest can be written: {fault}"
            )));
        }
        let text = sealed(self.to_string());
        if text.len() as u64 > MANIFEST_BYTES_MAX {
            let state = SqlState::PROGRAM_LIMIT_EXCEEDED;
            let files: usize = self.checkpoints.iter().map(|it| it.files.len()).sum();
            let message = format!("a manifest with {files} files is too long");
            return Err(Error::new(state, message));
        }
        Ok(text.into_bytes())
    }

    /// Reads the bytes of the file at `path`.
    ///
    /// # Errors
    /// XX001 for bytes that are not those that were written, 0A000 for those of a newer Kiln; both
    /// name `path`.
    pub fn read(bytes: &[u8], path: &Path) -> Result<Manifest> {
        read::read(bytes).map_err(|refusal| refusal.error(path, RESTORE))
    }

    /// How fast recoveries with so many threads are: after the last one that could tell, or what is
    /// usual.
    pub fn recovery_rates(&self, threads: usize) -> RecoveryRates {
        let rates = self.recovery.map(|it| it.rates).unwrap_or_default();
        rates.with_threads(threads)
    }

    /// Why no data directory can have such a manifest.
    fn fault(&self) -> Option<String> {
        let rates = self.recovery.map(|it| it.rates).unwrap_or_default();
        if rates.checkpoint_bytes_per_s == 0 || rates.log_bytes_per_s == 0 {
            return Some("a recovery never ends at its rates".to_owned());
        }
        let mut files = self.checkpoints.iter().flat_map(|it| &it.files);
        let bytes = files.try_fold(0_u64, |sum, file| sum.checked_add(file.bytes));
        if bytes.is_none_or(|bytes| bytes > COUNTER_MAX) {
            return Some("its files have more bytes than a disk has".to_owned());
        }
        let count = self.checkpoints.len();
        if count > CHECKPOINTS_MAX {
            return Some(format!("it names {count} checkpoints"));
        }
        if !self
            .checkpoints
            .is_sorted_by(|one, next| one.number < next.number)
        {
            return Some("its checkpoints are not in the order of their numbers".to_owned());
        }
        self.checkpoints.iter().find_map(|checkpoint| {
            let number = checkpoint.number;
            let (start, end) = (checkpoint.start_epoch, checkpoint.end_epoch);
            if start > end.saturating_add(1) {
                return Some(format!("checkpoint {number} starts after its end"));
            }
            if checkpoint.segment < self.first_segment {
                let segment = checkpoint.segment;
                return Some(format!(
                    "checkpoint {number} needs segment {segment}, which is not kept"
                ));
            }
            let mut names = BTreeSet::new();
            let mut files = checkpoint.files.iter();
            let repeated = files.find(|file| !names.insert(file.name))?;
            Some(format!("checkpoint {number} has {} twice", repeated.name))
        })
    }
}

/// The text with the line of its checksum.
pub(crate) fn sealed(mut text: String) -> String {
    let sum = checksum([text.as_bytes()]);
    let _ = writeln!(text, "checksum {sum:016x}");
    text
}

/// All but the last line.
impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kiln manifest {FORMAT_VERSION}")?;
        writeln!(f, "written-by {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(f, "database {}", self.database)?;
        writeln!(f, "created {}", self.created_us)?;
        writeln!(f, "first-segment {}", self.first_segment)?;
        if let Some(RecoveryRecord {
            rates,
            estimated_us,
            elapsed_us,
        }) = self.recovery
        {
            let RecoveryRates {
                checkpoint_bytes_per_s,
                log_bytes_per_s,
            } = rates;
            let rates = format!("{checkpoint_bytes_per_s} {log_bytes_per_s}");
            writeln!(f, "recovery {rates} {estimated_us} {elapsed_us}")?;
        }
        self.checkpoints.iter().try_for_each(|it| write!(f, "{it}"))
    }
}

/// Its lines in a manifest.
impl fmt::Display for CheckpointEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without `..`: what is added to an entry has to be written, too.
        let CheckpointEntry {
            number,
            start_epoch,
            end_epoch,
            segment,
            catalog,
            written_us,
            rows,
            files,
        } = self;
        writeln!(f, "checkpoint {number}")?;
        writeln!(f, "  epochs {start_epoch} {end_epoch}")?;
        writeln!(f, "  segment {segment}")?;
        writeln!(f, "  catalog {catalog}")?;
        writeln!(f, "  written {written_us}")?;
        writeln!(f, "  rows {rows}")?;
        for FileEntry {
            name,
            bytes,
            checksum,
        } in files
        {
            writeln!(f, "  file {name} {bytes} {checksum:016x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
