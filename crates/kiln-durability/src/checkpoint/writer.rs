//! Writing a checkpoint's files.

use kiln_platform::disk::{Directory, File};
use kiln_platform::sync::{Mutex, lock};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::TableId;

use super::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, Identity, ROW_BYTES_MAX};
use crate::directory::{name_of_checkpoint, refused};
use crate::format::{Checksum, DatabaseId, checksum};
use crate::manifest::{FileEntry, FileName};

/// Bytes between two syncs of a file: one sync of all its bytes would keep the device from the log
/// for long.
const SYNC_BYTES: u64 = 8 << 20;

/// Writes a checkpoint, whose files several threads may write at a time. Nothing of it counts
/// before a manifest names it.
#[derive(Debug)]
pub struct Writer {
    directory: Directory,
    database: DatabaseId,
    number: u64,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    begun: usize,
    files: Vec<FileEntry>,
    rows: u64,
}

/// What was written, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The files, by their names.
    pub files: Vec<FileEntry>,
    /// How many rows of tables are in them.
    pub rows: u64,
}

impl Writer {
    /// Begins the checkpoint of this number, of which there are no files yet. Only
    /// [`DataDirectory::remove_leftovers`] removes those of an attempt that failed: it knows
    /// whether a manifest may name them.
    ///
    /// [`DataDirectory::remove_leftovers`]: crate::DataDirectory::remove_leftovers
    ///
    /// # Errors
    /// The disk's.
    pub fn create(checkpoints: &Directory, database: DatabaseId, number: u64) -> Result<Writer> {
        let directory = checkpoints.create_subdirectory(&name_of_checkpoint(number));
        let directory = directory.map_err(|error| refused(&error))?;
        Ok(Writer {
            directory,
            database,
            number,
            progress: Mutex::default(),
        })
    }

    /// Writes the catalog.
    ///
    /// # Errors
    /// The disk's, for instance when it was written before; 54000 for 4 GiB.
    pub fn catalog(&self, text: &str, pace: impl FnMut(u64)) -> Result<()> {
        let mut file = self.file(FileName::Catalog, pace)?;
        file.row(text.as_bytes())?;
        file.finish()
    }

    /// Begins a file of rows of a table. `pace` is called after each write, with the bytes written;
    /// it may sleep, to leave the device to others.
    ///
    /// # Errors
    /// The disk's, for instance when there was such a part before.
    pub fn table<P: FnMut(u64)>(
        &self,
        table: TableId,
        part: u32,
        pace: P,
    ) -> Result<RowsWriter<'_, P>> {
        self.file(FileName::Table { table, part }, pace)
    }

    fn file<P: FnMut(u64)>(&self, name: FileName, pace: P) -> Result<RowsWriter<'_, P>> {
        lock(&self.progress).begun += 1;
        let file = self.directory.create_file(&name.to_string());
        let identity = Identity {
            database: self.database,
            checkpoint: self.number,
            name,
        };
        let (header, header_checksum) = identity.header();
        let mut writer = RowsWriter {
            checkpoint: self,
            name,
            file: file.map_err(|error| refused(&error))?,
            header_checksum,
            checksum: Checksum::default(),
            offset: 0,
            synced: 0,
            blocks: 0,
            rows: 0,
            block_rows: 0,
            block: Vec::new(),
            pace,
        };
        writer.write(&header)?;
        writer.begin_block();
        Ok(writer)
    }

    /// Makes the directory durable, after its files: a manifest may name them when this returns.
    ///
    /// # Errors
    /// XX000 when a file was begun and not finished, or there is no catalog; the disk's.
    pub fn finish(self) -> Result<Written> {
        let mut progress = lock(&self.progress);
        progress.files.sort_by_key(|file| file.name);
        let mut files = progress.files.iter();
        if progress.begun != progress.files.len() {
            let (begun, finished) = (progress.begun, progress.files.len());
            let fault = format!("{finished} of {begun} files of a checkpoint were finished");
            return Err(Error::internal(fault));
        }
        if files.next().map(|file| file.name) != Some(FileName::Catalog) {
            return Err(Error::internal("a checkpoint has no catalog"));
        }
        (self.directory.sync()).map_err(|error| refused(&error))?;
        Ok(Written {
            files: std::mem::take(&mut progress.files),
            rows: progress.rows,
        })
    }
}

/// Writes a file of a checkpoint.
#[derive(Debug)]
pub struct RowsWriter<'a, P> {
    checkpoint: &'a Writer,
    name: FileName,
    file: File,
    header_checksum: u64,
    checksum: Checksum,
    /// Where the next block goes.
    offset: u64,
    /// Up to where the file is synced.
    synced: u64,
    blocks: u64,
    rows: u64,
    block_rows: u64,
    /// Room for its header, and the rows in it.
    block: Vec<u8>,
    pace: P,
}

impl<P: FnMut(u64)> RowsWriter<'_, P> {
    /// Appends a row.
    ///
    /// # Errors
    /// 54000 when it is longer than [`ROW_BYTES_MAX`]; the disk's, and then the file cannot be
    /// finished.
    pub fn row(&mut self, row: &[u8]) -> Result<()> {
        if row.len() > ROW_BYTES_MAX {
            let message = format!("a row of {} bytes is too long", row.len());
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let payload = self.block.len() - BLOCK_HEADER_BYTES;
        if self.block_rows > 0 && payload + 4 + row.len() > BLOCK_BYTES_MAX {
            self.write_block(false)?;
        }
        self.block
            .extend_from_slice(&(row.len() as u32).to_le_bytes());
        self.block.extend_from_slice(row);
        self.block_rows += 1;
        self.rows += 1;
        Ok(())
    }

    /// Writes what is left, and makes the file durable.
    ///
    /// # Errors
    /// The disk's.
    pub fn finish(mut self) -> Result<()> {
        if self.block_rows > 0 {
            self.write_block(false)?;
        }
        self.write_block(true)?;
        self.sync()?;
        let mut progress = lock(&self.checkpoint.progress);
        progress.files.push(FileEntry {
            name: self.name,
            bytes: self.offset,
            checksum: self.checksum.value(),
        });
        if self.name != FileName::Catalog {
            progress.rows += self.rows;
        }
        Ok(())
    }

    /// Empties the block, but for the room of its header. A long row leaves no long buffer behind.
    fn begin_block(&mut self) {
        self.block.clear();
        self.block.shrink_to(BLOCK_HEADER_BYTES + BLOCK_BYTES_MAX);
        self.block.resize(BLOCK_HEADER_BYTES, 0);
        self.block_rows = 0;
    }

    fn write_block(&mut self, is_last: bool) -> Result<()> {
        self.blocks += 1;
        let (head, payload) = self.block.split_at_mut(BLOCK_HEADER_BYTES);
        let header = BlockHeader {
            is_last,
            payload_bytes: payload.len() as u32,
            number: self.blocks,
            rows: if is_last { self.rows } else { self.block_rows },
            payload_checksum: checksum([&*payload]),
        };
        head.copy_from_slice(&header.to_bytes(self.header_checksum));
        let block = std::mem::take(&mut self.block);
        let written = self.write(&block);
        self.block = block;
        self.begin_block();
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_at(self.offset, bytes);
        written.map_err(|error| refused(&error))?;
        self.checksum.add(bytes);
        self.offset += bytes.len() as u64;
        if self.offset - self.synced >= SYNC_BYTES {
            self.sync()?;
        }
        (self.pace)(bytes.len() as u64);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(|error| refused(&error))?;
        self.synced = self.offset;
        Ok(())
    }
}
