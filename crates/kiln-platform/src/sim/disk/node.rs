//! Files and directories: what processes see, what is on the medium, and the changes between the
//! two.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::{Content, pieces};

/// A file or a directory, whatever its name.
pub(super) type NodeNumber = u64;

/// Something that has a name.
#[derive(Clone, Debug)]
pub(super) enum Node {
    File(FileNode),
    Directory(DirectoryNode),
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileNode {
    /// What reads see.
    pub(super) cache: Content,
    /// What is on the medium.
    pub(super) durable: Content,
    /// What makes the cache of the medium, in the order in which it was done.
    pub(super) pending: Vec<FileChange>,
    /// The bytes of data in `pending`.
    pub(super) pending_bytes: usize,
    /// The bytes of the disk that it takes, in whole blocks.
    pub(super) room: u64,
    /// The handle that has its lock.
    pub(super) locked_by: Option<u64>,
    pub(super) handles: u32,
    /// Whether processes see it under a name.
    pub(super) is_linked: bool,
}

/// A write to a file, or a change of its length.
#[derive(Clone, Debug)]
pub(super) struct FileChange {
    pub(super) sequence: u64,
    /// Offset and data.
    pub(super) write: Option<(u64, Arc<[u8]>)>,
    /// How long the file is at least, or exactly if this cuts it. None once that is on the medium.
    pub(super) length: Option<u64>,
    pub(super) cuts: bool,
}

/// A block as it was on the medium before it was overwritten.
pub(super) struct Overwritten {
    pub(super) block: u64,
    pub(super) content: Box<super::content::Block>,
}

impl FileNode {
    /// A change that was made just now: what reads see from here on.
    pub(super) fn change(&mut self, change: FileChange) {
        if let Some((offset, bytes)) = &change.write {
            self.cache.grow(offset + bytes.len() as u64);
            self.cache.write(*offset, bytes);
            self.pending_bytes += bytes.len();
        } else if let Some(length) = change.length {
            self.cache.set_len(length);
        }
        self.pending.push(change);
    }

    /// Brings the changes before `sequence` to the medium.
    pub(super) fn sync(&mut self, before: u64, overwritten: &mut Vec<Overwritten>) {
        let later = self
            .pending
            .partition_point(|change| change.sequence < before);
        for change in self.pending.drain(..later).collect::<Vec<_>>() {
            self.apply(&change, overwritten);
        }
    }

    /// Brings one change to the medium, and of earlier ones what cannot stay behind: the length,
    /// and what lies below it.
    pub(super) fn sync_one(&mut self, sequence: u64, overwritten: &mut Vec<Overwritten>) {
        let is_it = |change: &FileChange| change.sequence == sequence;
        let Some(mut at) = self.pending.iter().position(is_it) else {
            return;
        };
        if let Some(cut) = self.pending[..=at].iter().rposition(|change| change.cuts) {
            let before = self.pending[cut].sequence + 1;
            self.sync(before, overwritten);
            match at > cut {
                true => at -= cut + 1,
                false => return,
            }
        }
        let range = |change: &FileChange| {
            let (offset, bytes) = change.write.as_ref()?;
            Some((*offset, offset + bytes.len() as u64))
        };
        let written = range(&self.pending[at]);
        for change in &mut self.pending[..at] {
            self.durable.grow(change.length.take().unwrap_or(0));
        }
        let mut kept = Vec::new();
        let mut applied = Vec::new();
        for change in self.pending.drain(..=at) {
            let overlaps = match (range(&change), written) {
                (Some((start, end)), Some((from, to))) => start < to && from < end,
                _ => change.sequence == sequence,
            };
            match overlaps {
                true => applied.push(change),
                false if change.write.is_some() => kept.push(change),
                false => {}
            }
        }
        self.pending.splice(0..0, kept);
        for change in applied {
            self.apply(&change, overwritten);
        }
    }

    /// The medium gets one change, which is not pending any more.
    fn apply(&mut self, change: &FileChange, overwritten: &mut Vec<Overwritten>) {
        match change.length {
            Some(length) if change.cuts => self.durable.set_len(length),
            Some(length) => self.durable.grow(length),
            None => {}
        }
        if let Some((offset, bytes)) = &change.write {
            self.pending_bytes -= bytes.len();
            self.write_durable(*offset, bytes, overwritten);
        }
    }

    /// Writes to the medium alone, and tells what was there.
    pub(super) fn write_durable(
        &mut self,
        offset: u64,
        bytes: &[u8],
        overwritten: &mut Vec<Overwritten>,
    ) {
        let before = |(number, ..): (u64, usize, usize, usize)| Overwritten {
            block: number,
            content: Box::new(*self.durable.block(number)),
        };
        let old: Vec<Overwritten> = pieces(offset, bytes.len()).map(before).collect();
        self.durable.write(offset, bytes);
        let changed = |old: &Overwritten| *old.content != *self.durable.block(old.block);
        overwritten.extend(old.into_iter().filter(changed));
        self.durable.share(&self.cache, offset, bytes.len());
    }

    /// Nothing is pending any more: what was is forgotten.
    pub(super) fn forget_pending(&mut self) {
        self.pending.clear();
        self.pending_bytes = 0;
    }
}

/// A directory.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectoryNode {
    /// What processes see.
    pub(super) cache: BTreeMap<String, NodeNumber>,
    /// What is on the medium.
    pub(super) durable: BTreeMap<String, NodeNumber>,
    /// What makes the cache of the medium, in the order in which it was done.
    pub(super) pending: Vec<EntryChange>,
    pub(super) handles: u32,
    pub(super) is_linked: bool,
}

/// A node has another name from here on, or none; what had that name has it no more.
#[derive(Clone, Debug)]
pub(super) struct EntryChange {
    pub(super) sequence: u64,
    pub(super) node: NodeNumber,
    pub(super) name: Option<String>,
}

impl DirectoryNode {
    pub(super) fn change(&mut self, change: EntryChange) {
        rename(&mut self.cache, &change);
        self.pending.push(change);
    }

    /// Brings the changes before `sequence` to the medium.
    pub(super) fn sync(&mut self, before: u64) {
        let later = self
            .pending
            .partition_point(|change| change.sequence < before);
        for change in self.pending.drain(..later) {
            rename(&mut self.durable, &change);
        }
    }
}

/// Makes one change of entries.
pub(super) fn rename(entries: &mut BTreeMap<String, NodeNumber>, change: &EntryChange) {
    entries.retain(|_, node| *node != change.node);
    if let Some(name) = &change.name {
        entries.insert(name.clone(), change.node);
    }
}
