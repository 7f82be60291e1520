//! What a crash leaves.

use std::collections::BTreeSet;
use std::fmt;

use super::super::queue::Dice;
use super::content::{Content, SECTOR_BYTES, sectors};
use super::node::{FileNode, Node, rename};
use super::state::State;
use crate::disk::BLOCK_BYTES;

/// Which changes survive a crash, of those that no sync had made durable when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Survivors {
    /// All: the system had just written them. What a killed process leaves is [`Disk::restart`]'s.
    ///
    /// [`Disk::restart`]: super::Disk::restart
    All,
    /// None.
    None,
    /// All but the one of this number, from 0, in the order in which they were made; see
    /// [`Disk::unsynced`].
    ///
    /// [`Disk::unsynced`]: super::Disk::unsynced
    AllBut(usize),
    /// Any. Each write survives as a whole or not at all.
    Any,
    /// Any pieces of this many bytes of each write, 512 or 4,096. The length of a file is one that
    /// it had.
    Torn {
        /// What the disk writes as a whole.
        piece_bytes: usize,
    },
    /// The lengths of files and the entries of directories, and no data.
    Lengths,
}

/// Which changes of a directory's entries survive, where any may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entries {
    /// The first ones, up to any.
    InOrder,
    /// Any.
    Any,
}

/// What a file has where it grew and the data did not survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tail {
    /// Zeros.
    Zeros,
    /// What the disk held there before, for another file.
    Garbage,
}

/// What a crash leaves: see [`Disk::power_on`](super::Disk::power_on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Which changes survive.
    pub survivors: Survivors,
    /// Which changes of entries, where any may.
    pub entries: Entries,
    /// What files have where they grew and the data did not survive.
    pub tail: Tail,
}

impl Crash {
    /// One of each kind. [`Survivors::AllBut`] is not among them: it goes over all changes.
    pub const KINDS: [Crash; 12] = {
        use Survivors as S;
        const fn crash(survivors: Survivors, entries: Entries, tail: Tail) -> Crash {
            Crash {
                survivors,
                entries,
                tail,
            }
        }
        const SECTORS: Survivors = S::Torn { piece_bytes: 512 };
        const PAGES: Survivors = S::Torn { piece_bytes: 4_096 };
        [
            crash(S::All, Entries::InOrder, Tail::Zeros),
            crash(S::None, Entries::InOrder, Tail::Zeros),
            crash(S::Any, Entries::InOrder, Tail::Zeros),
            crash(S::Any, Entries::Any, Tail::Zeros),
            crash(S::Any, Entries::Any, Tail::Garbage),
            crash(SECTORS, Entries::InOrder, Tail::Zeros),
            crash(SECTORS, Entries::Any, Tail::Zeros),
            crash(SECTORS, Entries::Any, Tail::Garbage),
            crash(PAGES, Entries::InOrder, Tail::Zeros),
            crash(PAGES, Entries::Any, Tail::Garbage),
            crash(S::Lengths, Entries::Any, Tail::Zeros),
            crash(S::Lengths, Entries::Any, Tail::Garbage),
        ]
    };

    /// Any entries where any survive, and zeros where data is missing.
    pub const fn new(survivors: Survivors) -> Crash {
        Crash {
            survivors,
            entries: Entries::Any,
            tail: Tail::Zeros,
        }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.survivors {
            Survivors::All => f.write_str("all survives"),
            Survivors::None => f.write_str("what was synced survives"),
            Survivors::AllBut(number) => write!(f, "all but change {number} survives"),
            Survivors::Any => f.write_str("any changes survive"),
            Survivors::Torn { piece_bytes } => {
                write!(f, "any pieces of {piece_bytes} bytes survive")
            }
            Survivors::Lengths => f.write_str("lengths and entries survive"),
        }?;
        if self.entries == Entries::InOrder {
            f.write_str(", entries in order")?;
        }
        match self.tail {
            Tail::Zeros => Ok(()),
            Tail::Garbage => f.write_str(", garbage where data is missing"),
        }
    }
}

/// How much of a write survives.
#[derive(Clone, Copy)]
enum Part {
    All,
    Nothing,
    /// Any pieces of so many bytes.
    Pieces(usize),
}

impl State {
    /// The changes that no sync has made durable, in the order in which they were made.
    pub(super) fn unsynced(&self) -> Vec<u64> {
        let mut found: Vec<u64> = Vec::new();
        for node in self.nodes.values() {
            match node {
                Node::File(file) => found.extend(file.pending.iter().map(|c| c.sequence)),
                Node::Directory(directory) => {
                    found.extend(directory.pending.iter().map(|c| c.sequence));
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// Makes the disk what a crash leaves of it.
    pub(super) fn crash(&mut self, crash: &Crash, seed: u64) {
        let mut dice = Dice::new(seed);
        let dropped = match crash.survivors {
            Survivors::AllBut(number) => self.unsynced().get(number).copied(),
            _ => None,
        };
        for node in self.nodes.values_mut() {
            match node {
                Node::File(file) => crash_file(file, crash, dropped, &mut dice),
                Node::Directory(directory) => {
                    let kept = dice.below(directory.pending.len() + 1);
                    for (at, change) in directory.pending.drain(..).enumerate() {
                        let survives = match crash.survivors {
                            Survivors::All | Survivors::Lengths => true,
                            Survivors::None => false,
                            Survivors::AllBut(_) => Some(change.sequence) != dropped,
                            Survivors::Any | Survivors::Torn { .. } => match crash.entries {
                                Entries::InOrder => at < kept,
                                Entries::Any => dice.below(2) == 0,
                            },
                        };
                        if survives {
                            rename(&mut directory.durable, &change);
                        }
                    }
                    directory.cache = directory.durable.clone();
                }
            }
        }
        self.relink();
        self.sweep();
    }
}

fn crash_file(file: &mut FileNode, crash: &Crash, dropped: Option<u64>, dice: &mut Dice) {
    let changes = std::mem::take(&mut file.pending);
    let lengths = dice.below(changes.len() + 1);
    // What lies below was written before, so that it holds no garbage.
    let mut filled = file.durable.len();
    let mut survived = BTreeSet::new();
    for (at, change) in changes.into_iter().enumerate() {
        let (length, part) = match crash.survivors {
            Survivors::All => (true, Part::All),
            Survivors::None => (false, Part::Nothing),
            Survivors::AllBut(_) if Some(change.sequence) == dropped => (false, Part::Nothing),
            Survivors::AllBut(_) => (true, Part::All),
            Survivors::Any if dice.below(2) == 0 => (true, Part::All),
            Survivors::Any => (false, Part::Nothing),
            Survivors::Torn { piece_bytes } => (at < lengths, torn(piece_bytes, dice)),
            Survivors::Lengths => (true, Part::Nothing),
        };
        if let (true, Some(length)) = (length, change.length) {
            if change.cuts {
                file.durable.set_len(length);
                filled = filled.min(length);
                survived.retain(|sector| sector * (SECTOR_BYTES as u64) < length);
            } else {
                file.durable.grow(length);
            }
        }
        let Some((offset, bytes)) = change.write else {
            continue;
        };
        let piece_bytes = match part {
            Part::Pieces(piece_bytes) => piece_bytes,
            _ => SECTOR_BYTES,
        };
        for (start, end) in sectors(offset, bytes.len(), piece_bytes) {
            let survives = match part {
                Part::All => true,
                Part::Nothing => false,
                Part::Pieces(_) => dice.below(2) == 0,
            };
            let first = offset + start as u64;
            if survives {
                file.durable.write(first, &bytes[start..end]);
                let last = offset + end as u64 - 1;
                let sector = SECTOR_BYTES as u64;
                survived.extend(first / sector..=last / sector);
            } else if crash.tail == Tail::Garbage {
                let first = first.max(filled);
                let count = (offset + end as u64).saturating_sub(first) as usize;
                garble(&mut file.durable, first, count, &survived, dice);
            }
        }
    }
    file.durable.cut();
    file.cache = file.durable.clone();
    file.forget_pending();
    let room = file.durable.len().next_multiple_of(BLOCK_BYTES as u64);
    file.room = file.room.min(room);
}

/// Some writes survive as a whole, others not at all, most in part.
fn torn(piece_bytes: usize, dice: &mut Dice) -> Part {
    match dice.below(4) {
        0 => Part::All,
        1 => Part::Nothing,
        _ => Part::Pieces(piece_bytes),
    }
}

/// Fills with garbage what is in no sector that survived.
fn garble(
    content: &mut Content,
    offset: u64,
    bytes: usize,
    survived: &BTreeSet<u64>,
    dice: &mut Dice,
) {
    for (start, end) in sectors(offset, bytes, SECTOR_BYTES) {
        let first = offset + start as u64;
        if !survived.contains(&(first / SECTOR_BYTES as u64)) {
            let garbage: Vec<u8> = (start..end).map(|_| dice.next() as u8).collect();
            content.write(first, &garbage);
        }
    }
}
