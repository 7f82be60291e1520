//! Reading a manifest's text.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use kiln_storage::error::Error;

use super::{CheckpointEntry, FileEntry, Manifest};
use crate::damaged;
use crate::format::{COUNTER_MAX, DatabaseId, FORMAT_VERSION, checksum};
use crate::rates::{RecoveryRates, RecoveryRecord};

/// `checksum `, 16 digits, and the end of the line.
const CHECKSUM_LINE_BYTES: usize = 9 + 16 + 1;

type Result<T> = std::result::Result<T, Refusal>;

/// Why a manifest is not read.
pub(crate) enum Refusal {
    /// It is not what was written.
    Damaged(String),
    /// A newer Kiln wrote it.
    Newer { version: u32, writer: String },
}

/// Reads the bytes of a manifest.
pub(super) fn read(bytes: &[u8]) -> Result<Manifest> {
    let manifest = Lines::begin(bytes, "kiln manifest")?.manifest()?;
    match manifest.fault() {
        None => Ok(manifest),
        Some(fault) => Err(Refusal::Damaged(fault)),
    }
}

/// A number as it is written: without leading zeros or a plus sign.
pub(crate) fn number<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    let number: T = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// A number of which a database does not come to the highest ones.
fn counter(text: &str) -> Option<u64> {
    number(text).filter(|it| *it <= COUNTER_MAX)
}

/// A number of 64 bits as hexadecimal digits.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    let number = u64::from_str_radix(text, 16).ok()?;
    (format!("{number:016x}") == text).then_some(number)
}

impl Refusal {
    /// The error for the file at `path`, with what can be done about damage.
    pub fn error(self, path: &Path, hint: &'static str) -> Error {
        let path = path.display();
        match self {
            Refusal::Damaged(fault) => {
                damaged(format!("{path} is damaged: {fault}")).with_hint(hint)
            }
            Refusal::Newer { version, writer } => Error::unsupported(format!(
                "{path} has format {version}, and this Kiln reads format {FORMAT_VERSION}"
            ))
            .with_detail(format!("Kiln {writer} wrote it."))
            .with_hint("Use that Kiln, or a later one."),
        }
    }
}

/// The lines of a text that are still to be read.
pub(crate) struct Lines<'a> {
    rest: &'a str,
    /// How many have been read.
    number: usize,
}

impl<'a> Lines<'a> {
    /// The lines of a text with a checksum at its end, after the first two: these are `name` with
    /// the version of the format, and the version of the Kiln that wrote it.
    pub fn begin(bytes: &'a [u8], name: &str) -> Result<Lines<'a>> {
        let damaged = |fault: &str| Refusal::Damaged(fault.to_owned());
        if bytes.is_empty() {
            return Err(damaged("it is empty"));
        }
        let content = bytes.len().checked_sub(CHECKSUM_LINE_BYTES);
        let (content, last) = bytes.split_at(content.unwrap_or_default());
        if !last.starts_with(b"checksum ") || !last.ends_with(b"\n") {
            return Err(damaged("it does not end with its checksum"));
        }
        if last != format!("checksum {:016x}\n", checksum([content])).as_bytes() {
            return Err(damaged("its checksum is not that of its content"));
        }
        let text = std::str::from_utf8(content).map_err(|_| damaged("it is no text"))?;
        let mut lines = Lines {
            rest: text,
            number: 0,
        };
        let version: u32 = lines.number(name)?;
        let writer = lines.word("written-by")?;
        if version > u32::from(FORMAT_VERSION) {
            let writer = writer.to_owned();
            return Err(Refusal::Newer { version, writer });
        }
        if version != u32::from(FORMAT_VERSION) {
            return Err(Refusal::Damaged(format!("there is no format {version}")));
        }
        Ok(lines)
    }

    /// Whether all lines are read.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Whether the next line begins so.
    pub fn is_next(&self, name: &str) -> bool {
        let after = self.rest.strip_prefix(name);
        after.is_some_and(|after| after.starts_with(' '))
    }

    pub fn refuse<T>(&self, name: &str) -> Result<T> {
        let (line, name) = (self.number, name.trim_start());
        Err(Refusal::Damaged(format!(
            "line {line} is not a line `{name}` as it is written"
        )))
    }

    /// What the next line has after `name`, which it begins with.
    pub fn line(&mut self, name: &str) -> Result<&'a str> {
        self.number += 1;
        let Some((line, rest)) = self.rest.split_once('\n').filter(|_| self.is_next(name)) else {
            return self.refuse(name);
        };
        self.rest = rest;
        Ok(&line[name.len() + 1..])
    }

    /// A line with one word.
    fn word(&mut self, name: &str) -> Result<&'a str> {
        let word = self.line(name)?;
        match word.is_empty() || word.contains(|it: char| it.is_whitespace()) {
            true => self.refuse(name),
            false => Ok(word),
        }
    }

    /// A line with one number.
    pub fn number<T: FromStr + fmt::Display>(&mut self, name: &str) -> Result<T> {
        let line = self.line(name)?;
        number(line).map_or_else(|| self.refuse(name), Ok)
    }

    /// A line with the number of a segment, a checkpoint or a log epoch.
    fn counter(&mut self, name: &str) -> Result<u64> {
        let line = self.line(name)?;
        counter(line).map_or_else(|| self.refuse(name), Ok)
    }

    /// A line with the id of a database.
    pub fn database(&mut self) -> Result<DatabaseId> {
        let database = self.line("database")?;
        let id = u128::from_str_radix(database, 16).unwrap_or_default();
        let id = DatabaseId(id.to_be_bytes());
        match id.to_string() == database {
            true => Ok(id),
            false => self.refuse("database"),
        }
    }

    fn manifest(&mut self) -> Result<Manifest> {
        let mut manifest = Manifest {
            database: self.database()?,
            created_us: self.number("created")?,
            first_segment: self.counter("first-segment")?,
            recovery: match self.is_next("recovery") {
                true => Some(self.recovery()?),
                false => None,
            },
            checkpoints: Vec::new(),
        };
        while !self.is_at_end() {
            manifest.checkpoints.push(self.checkpoint()?);
        }
        Ok(manifest)
    }

    fn recovery(&mut self) -> Result<RecoveryRecord> {
        let numbers = self.line("recovery")?.split(' ').map(number);
        let numbers: Option<Vec<u64>> = numbers.collect();
        let Some(Ok(numbers)) = numbers.map(<[u64; 4]>::try_from) else {
            return self.refuse("recovery");
        };
        let [
            checkpoint_bytes_per_s,
            log_bytes_per_s,
            estimated_us,
            elapsed_us,
        ] = numbers;
        Ok(RecoveryRecord {
            rates: RecoveryRates {
                checkpoint_bytes_per_s,
                log_bytes_per_s,
            },
            estimated_us,
            elapsed_us,
        })
    }

    pub fn checkpoint(&mut self) -> Result<CheckpointEntry> {
        let checkpoint = self.counter("checkpoint")?;
        let epochs = self.line("  epochs")?.split_once(' ');
        let epochs = epochs.and_then(|(start, end)| Some((counter(start)?, counter(end)?)));
        let (start_epoch, end_epoch) = match epochs {
            Some(epochs) => epochs,
            None => return self.refuse("  epochs"),
        };
        Ok(CheckpointEntry {
            number: checkpoint,
            start_epoch,
            end_epoch,
            segment: self.counter("  segment")?,
            catalog: self.number("  catalog")?,
            written_us: self.number("  written")?,
            rows: self.number("  rows")?,
            files: self.files()?,
        })
    }

    fn files(&mut self) -> Result<Vec<FileEntry>> {
        let mut files = Vec::new();
        while self.is_next("  file") {
            let mut words = self.line("  file")?.split(' ');
            let mut word = || words.next().unwrap_or_default();
            let (name, bytes, checksum) = (word().parse(), number(word()), hexadecimal(word()));
            match (name, bytes, checksum, words.next()) {
                (Ok(name), Some(bytes), Some(checksum), None) => files.push(FileEntry {
                    name,
                    bytes,
                    checksum,
                }),
                _ => return self.refuse("  file"),
            }
        }
        Ok(files)
    }
}
