//! The list: what is in a backup.
//!
//! # Form
//!
//! A text in the form of a [manifest](crate::Manifest).
//!
//! | line | says |
//! |---|---|
//! | `kiln backup 1` | the version of all formats of the backup |
//! | `written-by 0.1.0` | the version of the Kiln that wrote it |
//! | `database <32 hexadecimal digits>` | the database's id |
//! | `created <number>` | when its data directory was made, in microseconds since 1970 |
//! | `taken <number>` | all that was acknowledged until then is in the backup; in microseconds since 1970 |
//! | `end <number> <number>` | the last block of the log and its last log epoch; zeros where there is none |
//! | `checkpoint <number>` | with the lines of a manifest; left out where there is none |
//! | `segment <number> <number> <checksum>` | a segment of the log, with its bytes and the checksum of these; in their order, without gaps |
//! | `checksum <checksum>` | CRC-64/XZ of all bytes before this line |

use std::fmt;
use std::path::Path;

use kiln_storage::error::{Error, Result};

use crate::format::{DatabaseId, FORMAT_VERSION};
use crate::manifest::{CheckpointEntry, Lines, Refusal, hexadecimal, number, sealed};

/// What is in a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupList {
    /// The database's id.
    pub database: DatabaseId,
    /// When its data directory was made, in microseconds since 1970.
    pub created_us: i64,
    /// All that was acknowledged until then is in the backup; in microseconds since 1970.
    pub taken_us: i64,
    /// The last block of the log; 0 where there is none.
    pub last_block: u64,
    /// Its last log epoch.
    pub last_epoch: u64,
    /// The checkpoint from which a recovery begins; where there is none the log is there from its
    /// beginning.
    pub checkpoint: Option<CheckpointEntry>,
    /// The segments, in their order and without gaps.
    pub segments: Vec<SegmentEntry>,
}

/// A segment of the log in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Its number.
    pub number: u64,
    /// How many bytes of it there are.
    pub bytes: u64,
    /// CRC-64/XZ of them.
    pub checksum: u64,
}

impl BackupList {
    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        let segments = self.segments.iter().map(|it| it.bytes);
        let checkpoint = self.checkpoint.iter().map(CheckpointEntry::bytes);
        segments.chain(checkpoint).fold(0, u64::saturating_add)
    }

    /// The bytes of its file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        sealed(self.to_string()).into_bytes()
    }

    /// Reads the bytes of the file at `path`.
    ///
    /// # Errors
    /// XX001 for bytes that are not those that were written, 0A000 for those of a newer Kiln; both
    /// name `path`.
    pub fn read(bytes: &[u8], path: &Path) -> Result<BackupList> {
        read(bytes).map_err(|refusal| -> Error { refusal.error(path, super::DAMAGED) })
    }
}

impl fmt::Display for BackupList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kiln backup {FORMAT_VERSION}")?;
        writeln!(f, "written-by {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(f, "database {}", self.database)?;
        writeln!(f, "created {}", self.created_us)?;
        writeln!(f, "taken {}", self.taken_us)?;
        writeln!(f, "end {} {}", self.last_block, self.last_epoch)?;
        if let Some(checkpoint) = &self.checkpoint {
            write!(f, "{checkpoint}")?;
        }
        for SegmentEntry {
            number,
            bytes,
            checksum,
        } in &self.segments
        {
            writeln!(f, "segment {number} {bytes} {checksum:016x}")?;
        }
        Ok(())
    }
}

fn read(bytes: &[u8]) -> std::result::Result<BackupList, Refusal> {
    let mut lines = Lines::begin(bytes, "kiln backup")?;
    let mut list = BackupList {
        database: lines.database()?,
        created_us: lines.number("created")?,
        taken_us: lines.number("taken")?,
        last_block: 0,
        last_epoch: 0,
        checkpoint: None,
        segments: Vec::new(),
    };
    let end = lines.line("end")?.split_once(' ');
    let end = end.and_then(|(block, epoch)| Some((number(block)?, number(epoch)?)));
    match end {
        Some((block, epoch)) => (list.last_block, list.last_epoch) = (block, epoch),
        None => return lines.refuse("end"),
    }
    if lines.is_next("checkpoint") {
        list.checkpoint = Some(lines.checkpoint()?);
    }
    while !lines.is_at_end() {
        let line = lines.line("segment")?;
        let words: Vec<&str> = line.split(' ').collect();
        let segment = match words[..] {
            [segment, bytes, checksum] => (|| {
                Some(SegmentEntry {
                    number: number(segment)?,
                    bytes: number(bytes)?,
                    checksum: hexadecimal(checksum)?,
                })
            })(),
            _ => None,
        };
        match segment {
            Some(segment) => list.segments.push(segment),
            None => return lines.refuse("segment"),
        }
    }
    let first = list.checkpoint.as_ref().map_or(1, |it| it.segment);
    let numbers = list.segments.iter().map(|it| it.number);
    match numbers.eq((first..).take(list.segments.len())) {
        true => Ok(list),
        false => Err(Refusal::Damaged(
            "its segments are not those after the checkpoint".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;

    use super::*;

    fn list() -> BackupList {
        BackupList {
            database: DatabaseId(*b"sixteen bytes..."),
            created_us: -7,
            taken_us: 9,
            last_block: 77,
            last_epoch: 99,
            checkpoint: Some(CheckpointEntry {
                number: 3,
                start_epoch: 1,
                end_epoch: 2,
                segment: 5,
                catalog: 6,
                written_us: 7,
                rows: 8,
                files: Vec::new(),
            }),
            segments: (5..8)
                .map(|number| SegmentEntry {
                    number,
                    bytes: number * 10,
                    checksum: number << 50,
                })
                .collect(),
        }
    }

    fn again(list: &BackupList) -> Result<BackupList> {
        BackupList::read(&list.to_bytes(), Path::new("there/BACKUP"))
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let mut list = list();
        assert_eq!(again(&list).as_ref(), Ok(&list));
        assert_eq!(list.bytes(), 180);
        (list.checkpoint, list.segments) = (None, Vec::new());
        assert_eq!(again(&list).as_ref(), Ok(&list));
    }

    #[test]
    fn every_bit_of_a_list_counts_and_segments_have_no_gaps() {
        let mut bytes = list().to_bytes();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(
                BackupList::read(&bytes, Path::new("BACKUP")).is_err(),
                "{bit}"
            );
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let mut other = list();
        other.segments.remove(1);
        let error = again(&other).expect_err("one is missing");
        assert!(error.message().contains("there/BACKUP"), "{error}");
        other.segments.clear();
        other.checkpoint = None;
        other.segments.push(list().segments[0]);
        again(&other).expect_err("the log does not begin");
    }

    #[test]
    fn a_list_that_was_never_written_so_is_refused_or_read_as_it_is() {
        let words = [
            "0",
            "-1",
            "7",
            "18446744073709551615",
            "\n",
            " ",
            "end",
            "segment",
            "  file",
        ];
        let whole = list().to_string();
        let mut read = 0;
        for seed in 0..5_000 {
            let mut random = Random::from_seed(seed);
            let mut text = whole.clone();
            for _ in 0..=random.below(2) {
                let from = random.below(text.len());
                let to = (from + random.below(22)).min(text.len());
                text.replace_range(from..to, words[random.below(words.len())]);
            }
            let path = Path::new("there/BACKUP");
            match BackupList::read(sealed(text.clone()).as_bytes(), path) {
                Ok(list) => {
                    read += 1;
                    let form = list.to_string();
                    let after_writer = |text: &str| text.splitn(3, '\n').last().map(str::to_owned);
                    assert_eq!(after_writer(&form), after_writer(&text), "seed {seed}");
                }
                Err(error) => assert!(error.message().contains("there/BACKUP"), "{seed}: {error}"),
            }
        }
        assert!(read > 0, "none is read");
    }
}
