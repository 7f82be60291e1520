//! Damage to what is on the medium, done from outside of runs: what a disk does that lies.

use std::fmt;
use std::io;

use super::super::queue::Dice;
use super::content::Block;
use super::door::Disk;
use super::node::NodeNumber;
use super::state::State;
use crate::disk::BLOCK_BYTES;

/// A damage. Blocks have [`BLOCK_BYTES`] bytes and are counted from the start of their file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// A bit has the other value.
    FlippedBit {
        /// The file.
        path: String,
        /// Which byte.
        offset: u64,
        /// Which bit of it, from 0, the lowest one.
        bit: u8,
    },
    /// Two blocks of a file have changed places.
    SwappedBlocks {
        /// The file.
        path: String,
        /// One.
        first: u64,
        /// The other.
        second: u64,
    },
    /// A block has the content that it had before it was overwritten last: the write was lost.
    StaleBlock {
        /// The file.
        path: String,
        /// Which block.
        block: u64,
    },
    /// A block has the content of another one, which was written to the wrong place as well.
    DuplicatedBlock {
        /// The file that the content comes from.
        from: String,
        /// Which block of it.
        from_block: u64,
        /// The file that is damaged.
        path: String,
        /// Which block of it.
        block: u64,
    },
}

impl Damage {
    /// The file that is damaged.
    pub fn path(&self) -> &str {
        match self {
            Damage::FlippedBit { path, .. }
            | Damage::SwappedBlocks { path, .. }
            | Damage::StaleBlock { path, .. }
            | Damage::DuplicatedBlock { path, .. } => path,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::FlippedBit { path, offset, bit } => {
                write!(f, "bit {bit} of byte {offset} of {path} is flipped")
            }
            Damage::SwappedBlocks {
                path,
                first,
                second,
            } => write!(f, "blocks {first} and {second} of {path} are swapped"),
            Damage::StaleBlock { path, block } => {
                write!(f, "block {block} of {path} is as before its last write")
            }
            Damage::DuplicatedBlock {
                from,
                from_block,
                path,
                block,
            } => write!(
                f,
                "block {block} of {path} is a copy of block {from_block} of {from}"
            ),
        }
    }
}

impl Disk {
    /// Overwrites bytes of the file at `path`, on the medium and in the cache; the file grows if it
    /// ends before.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn overwrite(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.with(|state| {
            let node = state.file_at(path)?;
            let file = state.file(node)?;
            for content in [&mut file.cache, &mut file.durable] {
                content.grow(offset + bytes.len() as u64);
                content.write(offset, bytes);
            }
            Ok(())
        })
    }

    /// Does a damage. Says whether the file reads otherwise now: it does not if two swapped blocks
    /// are equal, or nothing is known of what a block held before.
    ///
    /// # Errors
    /// When there is no such file, or no such place in it.
    pub fn damage(&self, damage: &Damage) -> io::Result<bool> {
        self.with(|state| state.damage(damage))
    }

    /// Does a damage to one of the files whose paths `may_be` takes, as `seed` determines: each
    /// kind as likely as the others, where it makes a difference. None if there is no content to be
    /// damaged.
    pub fn damage_at_random(&self, seed: u64, may_be: impl Fn(&str) -> bool) -> Option<Damage> {
        self.with(|state| {
            let mut dice = Dice::new(seed);
            let files = state.files().into_iter();
            let files: Vec<_> = files
                .filter(|(path, _, bytes)| *bytes > 0 && may_be(path))
                .collect();
            if files.is_empty() {
                return None;
            }
            // Some kinds are not possible everywhere, and a flipped bit is.
            for _ in 0..32 {
                let damage = state.draw_damage(&files, &mut dice)?;
                if state.damage(&damage).unwrap_or(false) {
                    return Some(damage);
                }
            }
            let (path, _, bytes) = &files[dice.below(files.len())];
            let damage = flipped_bit(path, *bytes, &mut dice);
            state.damage(&damage).ok().map(|_| damage)
        })
    }
}

fn flipped_bit(path: &str, bytes: u64, dice: &mut Dice) -> Damage {
    Damage::FlippedBit {
        path: path.to_owned(),
        offset: dice.below(bytes as usize) as u64,
        bit: dice.below(8) as u8,
    }
}

impl State {
    fn draw_damage(
        &mut self,
        files: &[(String, NodeNumber, u64)],
        dice: &mut Dice,
    ) -> Option<Damage> {
        let (path, node, bytes) = files[dice.below(files.len())].clone();
        let block_of = |state: &mut State, node, path: &str, dice: &mut Dice| {
            let content = &state.file(node).ok()?.durable;
            // Blocks that hold something, mostly.
            let kept: Vec<u64> = content.kept().collect();
            let block = match kept.is_empty() || dice.below(4) == 0 {
                true => dice.below(content.block_count() as usize) as u64,
                false => kept[dice.below(kept.len())],
            };
            Some((path.to_owned(), block))
        };
        Some(match dice.below(4) {
            0 => flipped_bit(&path, bytes, dice),
            1 => {
                let (path, first) = block_of(self, node, &path, dice)?;
                let (path, second) = block_of(self, node, &path, dice)?;
                Damage::SwappedBlocks {
                    path,
                    first,
                    second,
                }
            }
            2 => {
                let of_file = self.former.iter().filter(|former| former.node == node);
                let of_file: Vec<u64> = of_file.map(|former| former.block).collect();
                if of_file.is_empty() {
                    return Some(flipped_bit(&path, bytes, dice));
                }
                let block = of_file[dice.below(of_file.len())];
                Damage::StaleBlock { path, block }
            }
            _ => {
                let (other, other_node, _) = files[dice.below(files.len())].clone();
                let (from, from_block) = block_of(self, other_node, &other, dice)?;
                let (path, block) = block_of(self, node, &path, dice)?;
                Damage::DuplicatedBlock {
                    from,
                    from_block,
                    path,
                    block,
                }
            }
        })
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<bool> {
        let node = self.file_at(damage.path())?;
        Ok(match damage {
            Damage::FlippedBit { offset, bit, .. } => {
                let at = (*offset % BLOCK_BYTES as u64) as usize;
                let number = *offset / BLOCK_BYTES as u64;
                let mut block = self.block(node, number)?;
                block[at] ^= 1 << (bit & 7);
                self.put(node, number, &block)?
            }
            Damage::SwappedBlocks { first, second, .. } => {
                let (one, other) = (self.block(node, *first)?, self.block(node, *second)?);
                let changed = self.put(node, *first, &other)?;
                self.put(node, *second, &one)? || changed
            }
            Damage::StaleBlock { block, .. } => {
                self.block(node, *block)?;
                let mut of_block = self.former.iter().rev();
                let found = of_block.find(|former| former.node == node && former.block == *block);
                match found.map(|former| *former.content) {
                    Some(content) => self.put(node, *block, &content)?,
                    None => false,
                }
            }
            Damage::DuplicatedBlock {
                from,
                from_block,
                block,
                ..
            } => {
                let from = self.file_at(from)?;
                let content = self.block(from, *from_block)?;
                self.put(node, *block, &content)?
            }
        })
    }

    /// A block of a file on the medium.
    fn block(&mut self, node: NodeNumber, number: u64) -> io::Result<Block> {
        let content = &self.file(node)?.durable;
        match number < content.block_count() {
            true => Ok(*content.block(number)),
            false => Err(io::Error::other(format!("the file has no block {number}"))),
        }
    }

    /// Puts a block on the medium and into the cache. Says whether the file holds something else
    /// now.
    fn put(&mut self, node: NodeNumber, number: u64, block: &Block) -> io::Result<bool> {
        self.block(node, number)?;
        let file = self.file(node)?;
        let before = file.durable.clone();
        for content in [&mut file.cache, &mut file.durable] {
            content.put(number, block);
            content.cut();
        }
        Ok(file.durable != before)
    }
}
