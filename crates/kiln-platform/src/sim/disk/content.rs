//! The bytes of a file: blocks, of which those of zeros are not kept, and a length.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::BLOCK_BYTES;

/// What a disk writes as a whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;
/// No file is longer; the same as on ext4.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 44;

pub(super) type Block = [u8; BLOCK_BYTES];
static ZEROS: Block = [0; BLOCK_BYTES];

/// What a file holds, in the cache or on the medium. A copy shares the blocks.
///
/// Blocks may hold bytes beyond the length while a crash is worked out, where data got to the
/// medium before the length did; at all other times those bytes are zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    blocks: BTreeMap<u64, Arc<Block>>,
    len: u64,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Makes it `len` bytes long. What is cut off is gone.
    pub(super) fn set_len(&mut self, len: u64) {
        self.len = len;
        self.cut();
    }

    /// Makes it at least `len` bytes long, whatever lies there.
    pub(super) fn grow(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    /// Forgets what lies beyond the length.
    pub(super) fn cut(&mut self) {
        let (last, inside) = place(self.len);
        if inside == 0 {
            self.blocks.split_off(&last);
            return;
        }
        self.blocks.split_off(&(last + 1));
        if let Some(block) = self.blocks.get(&last) {
            let mut block = **block;
            block[inside..].fill(0);
            self.put(last, &block);
        }
    }

    /// Fills `buffer` from `offset` on; how many bytes there are.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let there = self.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        for (number, inside, start, end) in pieces(offset, there) {
            let block = self.block(number);
            buffer[start..end].copy_from_slice(&block[inside..inside + end - start]);
        }
        there
    }

    /// Writes `bytes` at `offset`. The length stays as it is.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (number, inside, start, end) in pieces(offset, bytes.len()) {
            if end - start == BLOCK_BYTES {
                let mut block = ZEROS;
                block.copy_from_slice(&bytes[start..end]);
                self.put(number, &block);
            } else {
                let mut block = *self.block(number);
                block[inside..inside + end - start].copy_from_slice(&bytes[start..end]);
                self.put(number, &block);
            }
        }
    }

    pub(super) fn block(&self, number: u64) -> &Block {
        self.blocks.get(&number).map_or(&ZEROS, |block| block)
    }

    pub(super) fn put(&mut self, number: u64, block: &Block) {
        if *block == ZEROS {
            self.blocks.remove(&number);
        } else if self.block(number) != block {
            self.blocks.insert(number, Arc::new(*block));
        }
    }

    /// Shares with `other` the memory of the blocks from `offset` on that are equal in both.
    pub(super) fn share(&mut self, other: &Content, offset: u64, bytes: usize) {
        for (number, ..) in pieces(offset, bytes) {
            if let (Some(mine), Some(theirs)) =
                (self.blocks.get_mut(&number), other.blocks.get(&number))
                && mine == theirs
            {
                *mine = theirs.clone();
            }
        }
    }

    /// How many blocks its length has, kept or not.
    pub(super) fn block_count(&self) -> u64 {
        self.len.div_ceil(BLOCK_BYTES as u64)
    }

    /// The blocks that hold something else than zeros.
    pub(super) fn kept(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.keys().copied()
    }
}

/// The block of an offset, and the place inside of it.
fn place(offset: u64) -> (u64, usize) {
    let block = BLOCK_BYTES as u64;
    (offset / block, (offset % block) as usize)
}

/// Cuts `bytes` bytes at `offset` at the limits of blocks: block, place in it, start and end in the
/// bytes.
pub(super) fn pieces(
    offset: u64,
    bytes: usize,
) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let (number, inside) = place(offset + start as u64);
        let length = (bytes - start).min(BLOCK_BYTES - inside);
        let piece = (number, inside, start, start + length);
        start += length;
        (length > 0).then_some(piece)
    })
}

/// Cuts `bytes` bytes at `offset` at the limits of sectors: start and end in the bytes.
pub(super) fn sectors(
    offset: u64,
    bytes: usize,
    sector_bytes: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let inside = ((offset + start as u64) % sector_bytes as u64) as usize;
        let length = (bytes - start).min(sector_bytes - inside);
        let sector = (start, start + length);
        start += length;
        (length > 0).then_some(sector)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_not_kept_and_what_is_cut_is_gone() {
        let mut content = Content::default();
        content.grow(20_000);
        content.write(0, &[0; 20_000]);
        assert_eq!(content.kept().count(), 0);
        content.write(4_000, &[7; 9_000]);
        assert_eq!(content.kept().collect::<Vec<_>>(), [0, 1, 2, 3]);
        content.set_len(5_000);
        content.set_len(20_000);
        let mut bytes = [1; 20_000];
        assert_eq!(content.read(0, &mut bytes), 20_000);
        assert!(bytes[..4_000].iter().all(|byte| *byte == 0));
        assert!(bytes[4_000..5_000].iter().all(|byte| *byte == 7));
        assert!(bytes[5_000..].iter().all(|byte| *byte == 0));
        assert_eq!(content.read(19_999, &mut bytes), 1);
        assert_eq!(content.read(30_000, &mut bytes), 0);
        content.write(4_000, &[0; 1_000]);
        assert_eq!(content.kept().count(), 0);
    }
}
