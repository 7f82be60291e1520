//! Reading a checkpoint's files.

use std::fmt::Display;
use std::path::Path;

use kiln_platform::disk::{Directory, File, Kind};
use kiln_storage::bytes::{Reader as Bytes, read_string};
use kiln_storage::error::{Error, Result};
use kiln_storage::schema::TableId;

use super::{BLOCK_HEADER_BYTES, BlockHeader, FILE_HEADER_BYTES, HeaderFault, Identity};
use crate::directory::name_of_checkpoint;
use crate::format::{Checksum, DatabaseId, FORMAT_VERSION, checksum};
use crate::manifest::{CheckpointEntry, FileEntry, FileName};
use crate::{damaged, damaged_in, disk_error};

const HINT: &str = "Start from an older checkpoint, or restore the data directory from a backup.";

/// Reads a checkpoint that a manifest names. Several threads may read its files at a time.
#[derive(Debug)]
pub struct Reader {
    directory: Directory,
    database: DatabaseId,
    entry: CheckpointEntry,
}

impl Reader {
    /// Opens the checkpoint that `entry` describes.
    ///
    /// # Errors
    /// XX001 when it is not there; the disk's.
    pub fn open(
        checkpoints: &Directory,
        database: DatabaseId,
        entry: CheckpointEntry,
    ) -> Result<Reader> {
        let name = name_of_checkpoint(entry.number);
        let directory = checkpoints.subdirectory(&name);
        Ok(Reader {
            directory: directory
                .map_err(|error| missing(&error, &checkpoints.path().join(&name)))?,
            database,
            entry,
        })
    }

    /// What the manifest says of it.
    pub fn entry(&self) -> &CheckpointEntry {
        &self.entry
    }

    /// The files of rows: table and part of each.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, u32)> + '_ {
        self.entry.files.iter().filter_map(|file| match file.name {
            FileName::Catalog => None,
            FileName::Table { table, part } => Some((table, part)),
        })
    }

    /// The error for a catalog that was read and cannot be rebuilt: it names the catalog's file.
    pub fn damage_of_catalog(&self, error: Error) -> Error {
        let path = self.directory.path().join(FileName::Catalog.to_string());
        damaged_in(path.display(), error)
    }

    /// Reads the catalog.
    ///
    /// # Errors
    /// XX001 when it is not what was written; the disk's.
    pub fn catalog(&self) -> Result<String> {
        let mut file = self.file(FileName::Catalog)?;
        let mut texts = Vec::new();
        while let Some(rows) = file.next_block()? {
            texts.extend(rows.map(<[u8]>::to_vec));
        }
        let text = match <[Vec<u8>; 1]>::try_from(texts) {
            Ok([text]) => String::from_utf8(text).ok(),
            Err(_) => None,
        };
        text.ok_or_else(|| damage(file.file.path(), "it is not one text"))
    }

    /// Opens a file of rows of a table.
    ///
    /// # Errors
    /// XX001 when it is not what was written, as far as its header and its length say; the disk's.
    pub fn table(&self, table: TableId, part: u32) -> Result<RowsReader> {
        self.file(FileName::Table { table, part })
    }

    fn file(&self, name: FileName) -> Result<RowsReader> {
        let path = self.directory.path().join(name.to_string());
        let mut files = self.entry.files.iter();
        let Some(entry) = files.find(|file| file.name == name) else {
            return Err(damage(&path, "the manifest does not name it"));
        };
        let file = self.directory.open_file(&name.to_string());
        let file = file.map_err(|error| missing(&error, &path))?;
        let identity = Identity {
            database: self.database,
            checkpoint: self.entry.number,
            name,
        };
        RowsReader::new(file, identity, *entry)
    }
}

/// The error for a file that is damaged.
fn damage(path: &Path, fault: impl Display) -> Error {
    damaged(format!("{} is damaged: {fault}", path.display())).with_hint(HINT)
}

/// The error for a file that the manifest names, and that could not be opened.
fn missing(error: &kiln_platform::disk::Error, path: &Path) -> Error {
    match error.kind() {
        Kind::NotFound | Kind::NotADirectory | Kind::IsADirectory => {
            let path = path.display();
            damaged(format!("{path} is missing, and the manifest names it")).with_hint(HINT)
        }
        _ => disk_error(error),
    }
}

/// Reads a file of a checkpoint, block by block.
#[derive(Debug)]
pub struct RowsReader {
    file: File,
    entry: FileEntry,
    header_checksum: u64,
    checksum: Checksum,
    /// Where the next block is.
    offset: u64,
    blocks: u64,
    rows: u64,
    is_at_end: bool,
    payload: Vec<u8>,
}

impl RowsReader {
    fn new(file: File, identity: Identity, entry: FileEntry) -> Result<RowsReader> {
        let length = file.len().map_err(|error| disk_error(&error))?;
        if length != entry.bytes {
            let fault = format!("it has {length} of {} bytes", entry.bytes);
            return Err(damage(file.path(), fault));
        }
        let mut header = [0; FILE_HEADER_BYTES];
        let read = file.read_at(0, &mut header);
        let read = read.map_err(|error| disk_error(&error))?;
        let checked = super::check_header(&header[..read], &identity);
        let header_checksum = checked.map_err(|fault| match fault {
            HeaderFault::Damaged(fault) => damage(file.path(), fault),
            HeaderFault::Other(fault) => damage(file.path(), fault),
            HeaderFault::Format(version) => Error::unsupported(format!(
                "{} has format {version}, and this Kiln reads format {FORMAT_VERSION}",
                file.path().display()
            )),
        })?;
        let mut checksum = Checksum::default();
        checksum.add(&header);
        Ok(RowsReader {
            file,
            entry,
            header_checksum,
            checksum,
            offset: FILE_HEADER_BYTES as u64,
            blocks: 0,
            rows: 0,
            is_at_end: false,
            payload: Vec::new(),
        })
    }

    /// Bytes of the file that were read.
    pub fn bytes_read(&self) -> u64 {
        self.offset
    }

    /// Reads the next block, whole; `None` at the end of the file, when all of it is what was
    /// written.
    ///
    /// # Errors
    /// XX001 for what was never written, with file, block and offset; the disk's. After an error
    /// there are no more blocks.
    pub fn next_block(&mut self) -> Result<Option<Rows<'_>>> {
        if self.is_at_end {
            return Ok(None);
        }
        // Until all is right.
        self.is_at_end = true;
        let start = self.offset;
        let mut head = [0; BLOCK_HEADER_BYTES];
        self.read(start, &mut head)?;
        let Some(header) = BlockHeader::read(&head, self.header_checksum) else {
            return Err(self.damage(start, "the checksum of its header is wrong"));
        };
        if header.number != self.blocks + 1 {
            let fault = format!("it is block {}", header.number);
            return Err(self.damage(start, fault));
        }
        let (length, at) = (header.payload_bytes, start + BLOCK_HEADER_BYTES as u64);
        if u64::from(length) > self.entry.bytes - at {
            return Err(self.damage(start, format!("its {length} bytes are cut off")));
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(length as usize, 0);
        let read = self.read(at, &mut payload);
        self.payload = payload;
        read?;
        if checksum([&self.payload[..]]) != header.payload_checksum {
            return Err(self.damage(start, "the checksum of its rows is wrong"));
        }
        self.checksum.add(&head);
        self.checksum.add(&self.payload);
        self.offset = at + u64::from(length);
        if header.is_last {
            return self.end(start, &header).map(|()| None);
        }
        if count_rows(&self.payload) != Some(header.rows) {
            let fault = format!("it does not have {} rows", header.rows);
            return Err(self.damage(start, fault));
        }
        self.blocks += 1;
        self.rows += header.rows;
        self.is_at_end = false;
        Ok(Some(Rows {
            reader: Bytes::new(&self.payload),
        }))
    }

    /// Puts the next block into `block`, so that another thread can have it, as
    /// [`RowsReader::next_block`] reads it; false at the end of the file.
    ///
    /// # Errors
    /// Those of [`RowsReader::next_block`].
    pub fn take_block(&mut self, block: &mut Block) -> Result<bool> {
        let offset = self.offset;
        if self.next_block()?.is_none() {
            return Ok(false);
        }
        std::mem::swap(&mut self.payload, &mut block.payload);
        let (path, number) = (self.file.path().display(), self.blocks);
        block.place = format!("{path} in a row of block {number}, at offset {offset},");
        Ok(true)
    }

    /// Checks what the last block says, and what the manifest says of the whole file.
    fn end(&self, start: u64, header: &BlockHeader) -> Result<()> {
        let (rows, expected) = (self.rows, header.rows);
        if rows != expected || !self.payload.is_empty() {
            let fault = format!("the blocks before it have {rows} of {expected} rows");
            return Err(self.damage(start, fault));
        }
        if self.offset != self.entry.bytes {
            return Err(self.damage(start, "bytes follow the last block"));
        }
        match self.checksum.value() == self.entry.checksum {
            true => Ok(()),
            false => Err(damage(
                self.file.path(),
                "its checksum is not the one in the manifest",
            )),
        }
    }

    /// Fills `buffer` from `offset` on, for the block that is read.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let read = self.file.read_at(offset, buffer);
        let read = read.map_err(|error| disk_error(&error))?;
        let end = offset.checked_add(read as u64);
        match read == buffer.len() && end.is_some_and(|end| end <= self.entry.bytes) {
            true => Ok(()),
            false => Err(self.damage(offset, "the file ends before it")),
        }
    }

    /// The error for the block that is read.
    fn damage(&self, offset: u64, fault: impl Display) -> Error {
        let block = self.blocks + 1;
        let fault = format!("block {block} at offset {offset}: {fault}");
        damage(self.file.path(), fault)
    }
}

/// How many rows a payload has; `None` when it does not end with one.
fn count_rows(payload: &[u8]) -> Option<u64> {
    let mut reader = Bytes::new(payload);
    let mut rows = 0;
    while !reader.rest().is_empty() {
        read_string(&mut reader).ok()?;
        rows += 1;
    }
    Some(rows)
}

/// A block of rows that was taken out of its file.
#[derive(Clone, Debug, Default)]
pub struct Block {
    payload: Vec<u8>,
    place: String,
}

impl Block {
    /// Its rows, one after the other.
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            reader: Bytes::new(&self.payload),
        }
    }

    /// The error for a row of this block that was read and cannot be put back: it names the place
    /// of the block.
    pub fn damage(&self, error: Error) -> Error {
        damaged_in(&self.place, error)
    }
}

/// The rows of a block, one after the other.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    reader: Bytes<'a>,
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        // At the end there is no length; before it all are right, as they were counted.
        read_string(&mut self.reader).ok()
    }
}
