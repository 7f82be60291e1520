//! Histories in files.
//!
//! ```text
//! "KILNHIST"  version (4 B)   section*   end section
//!
//! section:  tag (4 B)   bytes of content (8 B)   content   CRC-32 of tag, length and content (4 B)
//! ```
//!
//! Numbers are little-endian. The sections are, in this order: the names, the objects, a log for
//! each worker, and an empty one that marks the end, so that a file that was cut off is found out.
//! A text is its length in bytes (4 B) and its UTF-8; a list is its length (4 B) and its elements.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;

use kiln_platform::file;

use crate::event::Object;
use crate::history::{History, ObjectName, TableNames};

const MAGIC: [u8; 8] = *b"KILNHIST";
const VERSION: u32 = 1;

const NAMES: [u8; 4] = *b"name";
const OBJECTS: [u8; 4] = *b"objs";
const LOG: [u8; 4] = *b"log ";
const END: [u8; 4] = *b"end ";

/// The largest section other than a log, in bytes.
const NAMES_BYTES_MAX: u64 = 1 << 32;
/// Bytes that are read and written at a time.
const CHUNK: usize = 1 << 16;

/// Why a file is no history.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The system cannot read or write it.
    System(io::Error),
    /// It does not start as a history does.
    NotAHistory,
    /// It was written by another version of Kiln.
    UnknownVersion(u32),
    /// It ends too early.
    CutOff {
        /// Where, in bytes from the start.
        at: u64,
        /// What should have been there.
        what: &'static str,
    },
    /// Its content is not what was written.
    Checksum {
        /// Where the section starts, in bytes from the start.
        at: u64,
        /// Which section.
        section: &'static str,
    },
    /// It contains what no history contains.
    Malformed {
        /// Where the section starts, in bytes from the start.
        at: u64,
        /// What is wrong.
        reason: &'static str,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::System(error) => error.fmt(formatter),
            FileError::NotAHistory => formatter.write_str("not a history file"),
            FileError::UnknownVersion(version) => write!(
                formatter,
                "a history of format version {version}; this program reads version {VERSION}"
            ),
            FileError::CutOff { at, what } => {
                write!(formatter, "the file is cut off at byte {at}, in {what}")
            }
            FileError::Checksum { at, section } => write!(
                formatter,
                "the checksum of {section} at byte {at} is wrong: the file was damaged"
            ),
            FileError::Malformed { at, reason } => {
                write!(formatter, "malformed section at byte {at}: {reason}")
            }
        }
    }
}

impl std::error::Error for FileError {}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::System(error)
    }
}

impl History {
    /// Writes the history to a file, replacing what was there.
    ///
    /// # Errors
    /// The system's, with the path in its message.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let mut file = file::create(path)?;
        self.write_to(&mut file)?;
        file.flush()?;
        Ok(())
    }

    /// Reads a history from a file. Events are checked when a caller reads the logs.
    ///
    /// # Errors
    /// The system's, with the path in its message, and what is wrong with the file and where.
    pub fn load(path: &Path) -> Result<History, FileError> {
        match History::read_from(&mut file::open(path)?) {
            Err(FileError::System(error)) => {
                let message = format!("{}: {error}", path.display());
                Err(io::Error::new(error.kind(), message).into())
            }
            result => result,
        }
    }

    /// Writes the history in a file's format.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_to(&self, writer: &mut impl Write) -> Result<(), FileError> {
        writer.write_all(&MAGIC)?;
        writer.write_all(&VERSION.to_le_bytes())?;

        let mut content = Vec::new();
        push_text(&mut content, &self.protocol);
        push_text(&mut content, &self.workload);
        push_texts(&mut content, &self.procedures);
        push_texts(&mut content, &self.causes);
        push_length(&mut content, self.tables.len());
        for table in &self.tables {
            push_text(&mut content, &table.name);
            push_texts(&mut content, &table.columns);
            push_texts(&mut content, &table.indexes);
        }
        write_section(writer, NAMES, &content)?;

        content.clear();
        push_length(&mut content, self.objects.len());
        for object in &self.objects {
            content.extend_from_slice(&object.object.0.to_le_bytes());
            content.extend_from_slice(&object.table.to_le_bytes());
            push_text(&mut content, &object.name);
        }
        write_section(writer, OBJECTS, &content)?;

        for words in &self.logs {
            let head = section_head(LOG, words.len() as u64 * 8);
            writer.write_all(&head)?;
            let mut checksum = crc32fast::Hasher::new();
            checksum.update(&head);
            for words in words.chunks(CHUNK / 8) {
                content.clear();
                content.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                checksum.update(&content);
                writer.write_all(&content)?;
            }
            writer.write_all(&checksum.finalize().to_le_bytes())?;
        }
        write_section(writer, END, &[])
    }

    /// Reads a history in a file's format, up to its end.
    ///
    /// # Errors
    /// The reader's, and what is wrong with the content and where.
    pub fn read_from(reader: &mut impl Read) -> Result<History, FileError> {
        let mut source = Source { reader, at: 0 };
        let mut magic = [0; 8];
        match source.fill(&mut magic, "its first bytes") {
            Ok(()) if magic == MAGIC => {}
            Ok(()) | Err(FileError::CutOff { .. }) => return Err(FileError::NotAHistory),
            Err(error) => return Err(error),
        }
        let mut version = [0; 4];
        source.fill(&mut version, "the format's version")?;
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            return Err(FileError::UnknownVersion(version));
        }

        let mut history = History::default();
        let (at, content) = source.section(NAMES, "the names")?;
        let mut fields = Fields {
            bytes: &content,
            at,
        };
        history.protocol = fields.text()?;
        history.workload = fields.text()?;
        history.procedures = fields.texts()?;
        history.causes = fields.texts()?;
        // The shortest table is three lengths.
        for _ in 0..fields.length(12)? {
            history.tables.push(TableNames {
                name: fields.text()?,
                columns: fields.texts()?,
                indexes: fields.texts()?,
            });
        }
        fields.finish()?;

        let (at, content) = source.section(OBJECTS, "the objects")?;
        let mut fields = Fields {
            bytes: &content,
            at,
        };
        for _ in 0..fields.length(16)? {
            history.objects.push(ObjectName {
                object: Object(u64::from_le_bytes(fields.array()?)),
                table: u32::from_le_bytes(fields.array()?),
                name: fields.text()?,
            });
        }
        fields.finish()?;

        while let Some(words) = source.log()? {
            history.logs.push(words);
        }
        let at = source.at;
        match source.reader.read(&mut [0])? {
            0 => Ok(history),
            _ => Err(FileError::Malformed {
                at,
                reason: "something follows the end",
            }),
        }
    }
}

fn push_length(content: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("names are fewer than 2^32");
    content.extend_from_slice(&length.to_le_bytes());
}

fn push_text(content: &mut Vec<u8>, text: &str) {
    push_length(content, text.len());
    content.extend_from_slice(text.as_bytes());
}

fn push_texts(content: &mut Vec<u8>, texts: &[String]) {
    push_length(content, texts.len());
    for text in texts {
        push_text(content, text);
    }
}

fn section_head(tag: [u8; 4], length: u64) -> [u8; 12] {
    let mut head = [0; 12];
    head[..4].copy_from_slice(&tag);
    head[4..].copy_from_slice(&length.to_le_bytes());
    head
}

fn write_section(writer: &mut impl Write, tag: [u8; 4], content: &[u8]) -> Result<(), FileError> {
    let head = section_head(tag, content.len() as u64);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&head);
    checksum.update(content);
    writer.write_all(&head)?;
    writer.write_all(content)?;
    writer.write_all(&checksum.finalize().to_le_bytes())?;
    Ok(())
}

/// A reader that knows how far it is.
struct Source<'a, R> {
    reader: &'a mut R,
    at: u64,
}

impl<R: Read> Source<'_, R> {
    fn fill(&mut self, bytes: &mut [u8], what: &'static str) -> Result<(), FileError> {
        match self.reader.read_exact(bytes) {
            Ok(()) => {
                self.at += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(FileError::CutOff { at: self.at, what })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A section's tag and length; the checksum has seen both.
    fn head(&mut self, what: &'static str) -> Result<([u8; 4], u64, crc32fast::Hasher), FileError> {
        let mut head = [0; 12];
        self.fill(&mut head, what)?;
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&head);
        let [a, b, c, d, length @ ..] = head;
        Ok(([a, b, c, d], u64::from_le_bytes(length), checksum))
    }

    fn verify(
        &mut self,
        at: u64,
        section: &'static str,
        checksum: crc32fast::Hasher,
    ) -> Result<(), FileError> {
        let mut stored = [0; 4];
        self.fill(&mut stored, section)?;
        match u32::from_le_bytes(stored) == checksum.finalize() {
            true => Ok(()),
            false => Err(FileError::Checksum { at, section }),
        }
    }

    /// The content of a section of names, and where it starts.
    fn section(&mut self, tag: [u8; 4], what: &'static str) -> Result<(u64, Vec<u8>), FileError> {
        let at = self.at;
        let (found, length, mut checksum) = self.head(what)?;
        if found != tag {
            let reason = "another section belongs here";
            return Err(FileError::Malformed { at, reason });
        }
        if length > NAMES_BYTES_MAX {
            let reason = "its length is absurd";
            return Err(FileError::Malformed { at, reason });
        }
        let mut content = Vec::new();
        self.chunks(length, what, |chunk| {
            checksum.update(chunk);
            content.extend_from_slice(chunk);
        })?;
        self.verify(at, what, checksum)?;
        Ok((at, content))
    }

    /// The next log's words, or none at the end.
    fn log(&mut self) -> Result<Option<Vec<u64>>, FileError> {
        let (at, what) = (self.at, "a log");
        let (tag, length, mut checksum) = self.head(what)?;
        match tag {
            END if length == 0 => {
                self.verify(at, "the end", checksum)?;
                return Ok(None);
            }
            LOG if length % 8 == 0 => {}
            LOG => {
                let reason = "a log that is not made of words";
                return Err(FileError::Malformed { at, reason });
            }
            _ => {
                let reason = "another section belongs here";
                return Err(FileError::Malformed { at, reason });
            }
        }
        let mut words = Vec::new();
        self.chunks(length, what, |chunk| {
            checksum.update(chunk);
            let (chunk, _) = chunk.as_chunks();
            words.extend(chunk.iter().map(|word| u64::from_le_bytes(*word)));
        })?;
        self.verify(at, what, checksum)?;
        Ok(Some(words))
    }

    /// Gives out `length` bytes, in pieces of whole words but for the last: a length that the
    /// file does not have costs no memory.
    fn chunks(
        &mut self,
        length: u64,
        what: &'static str,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), FileError> {
        let mut buffer = vec![0; CHUNK];
        let mut left = length;
        while left > 0 {
            let piece = left.min(CHUNK as u64) as usize;
            self.fill(&mut buffer[..piece], what)?;
            take(&buffer[..piece]);
            left -= piece as u64;
        }
        Ok(())
    }
}

/// The fields of a section of names.
struct Fields<'a> {
    bytes: &'a [u8],
    /// Where the section starts.
    at: u64,
}

impl Fields<'_> {
    fn malformed(&self, reason: &'static str) -> FileError {
        FileError::Malformed {
            at: self.at,
            reason,
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FileError> {
        let Some((array, rest)) = self.bytes.split_first_chunk() else {
            return Err(self.malformed("it ends within a field"));
        };
        self.bytes = rest;
        Ok(*array)
    }

    /// The length of a list whose elements have so many bytes at least.
    fn length(&mut self, bytes_min: usize) -> Result<usize, FileError> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        match length.checked_mul(bytes_min) {
            Some(bytes) if bytes <= self.bytes.len() => Ok(length),
            _ => Err(self.malformed("a list is longer than its section")),
        }
    }

    fn text(&mut self) -> Result<String, FileError> {
        let length = self.length(1)?;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        match std::str::from_utf8(text) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.malformed("a name is not UTF-8")),
        }
    }

    fn texts(&mut self) -> Result<Vec<String>, FileError> {
        (0..self.length(4)?).map(|_| self.text()).collect()
    }

    fn finish(self) -> Result<(), FileError> {
        match self.bytes.is_empty() {
            true => Ok(()),
            false => Err(self.malformed("something follows its fields")),
        }
    }
}

#[cfg(test)]
mod tests;
