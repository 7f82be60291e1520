//! The blocks of a checkpoint, as the threads take them that restore its rows.

use kiln_durability::checkpoint::{Block, Reader, RowsReader};
use kiln_storage::error::Result;
use kiln_storage::schema::TableId;

/// Blocks that each thread restores between two pauses: 8 MiB at most, but for longer rows.
const BLOCKS_PER_THREAD: usize = 8;

/// The blocks of all files of a checkpoint, one file after the other.
pub(super) struct Blocks<'a> {
    reader: &'a Reader,
    /// Files that are not begun, the next one last.
    files: Vec<(TableId, u32)>,
    file: Option<(TableId, RowsReader)>,
    /// Bytes of the files before the present one.
    passed: u64,
    /// Blocks from pause to pause, and until the next one.
    blocks: usize,
    left: usize,
}

impl<'a> Blocks<'a> {
    /// All blocks of this checkpoint, for so many threads.
    pub fn of(reader: &'a Reader, threads: usize) -> Blocks<'a> {
        let blocks = threads * BLOCKS_PER_THREAD;
        let mut files: Vec<_> = reader.tables().collect();
        files.reverse();
        Blocks {
            reader,
            files,
            file: None,
            passed: 0,
            blocks,
            left: blocks,
        }
    }

    /// Puts the next block into `block` and returns its table; `None` when it is time for a pause,
    /// or all are read.
    ///
    /// # Errors
    /// Those of [`RowsReader::next_block`].
    pub fn next(&mut self, block: &mut Block) -> Result<Option<TableId>> {
        while self.left > 0 {
            let Some((table, file)) = &mut self.file else {
                let Some((table, part)) = self.files.pop() else {
                    return Ok(None);
                };
                self.file = Some((table, self.reader.table(table, part)?));
                continue;
            };
            if file.take_block(block)? {
                self.left -= 1;
                return Ok(Some(*table));
            }
            self.passed += file.bytes_read();
            self.file = None;
        }
        Ok(None)
    }

    /// Goes on after a pause; false when all are read.
    pub fn go_on(&mut self) -> bool {
        self.left = self.blocks;
        self.file.is_some() || !self.files.is_empty()
    }

    /// Bytes that were read of all files.
    pub fn bytes_read(&self) -> u64 {
        let file = self.file.as_ref();
        self.passed + file.map_or(0, |(_, file)| file.bytes_read())
    }
}
