//! The state of a simulated disk, and what each operation does to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

use super::super::queue::Dice;
use super::content::{Block, FILE_BYTES_MAX, SECTOR_BYTES};
use super::door::{Moment, Options, PowerCut};
use super::faults::{Fault, Faults};
use super::node::{
    DirectoryNode, EntryChange, FileChange, FileNode, Node, NodeNumber, Overwritten,
};
use super::operation::{After, Plan};
use crate::disk::{BLOCK_BYTES, Entry};

/// The directory that is always there.
pub(super) const ROOT: NodeNumber = 0;
/// Blocks whose former content is known, over the whole disk.
const OVERWRITTEN_MAX: usize = 256;

/// A block of a file, as it was.
#[derive(Clone)]
pub(super) struct Former {
    pub(super) node: NodeNumber,
    pub(super) block: u64,
    pub(super) content: Arc<Block>,
}

/// A disk as it was at a moment of an operation.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) operation: u64,
    pub(super) moment: Moment,
    pub(super) state: Box<State>,
}

/// A disk: what is on the medium, what is only in the cache, and what is to go wrong.
#[derive(Clone)]
pub(super) struct State {
    pub(super) options: Options,
    pub(super) dice: Dice,
    pub(super) nodes: BTreeMap<NodeNumber, Node>,
    pub(super) next_node: NodeNumber,
    /// The number of the next change to a file or directory.
    pub(super) sequence: u64,
    pub(super) next_handle: u64,
    /// Counts the runs that had the disk: a handle of an earlier one is void.
    pub(super) process: u64,
    pub(super) is_in_use: bool,
    /// Operations begun.
    pub(super) operations: u64,
    pub(super) power_cut: Option<PowerCut>,
    pub(super) crash_at: Option<(u64, Option<Moment>)>,
    pub(super) faults: Faults,
    /// What the power's going would leave at each moment, while that is filmed.
    pub(super) film: Option<Vec<Frame>>,
    pub(super) former: VecDeque<Former>,
}

/// The system's error of this number.
pub(super) fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl State {
    pub(super) fn new(options: Options) -> State {
        let root = DirectoryNode {
            is_linked: true,
            ..DirectoryNode::default()
        };
        State {
            dice: Dice::new(options.seed),
            options,
            nodes: BTreeMap::from([(ROOT, Node::Directory(root))]),
            next_node: ROOT + 1,
            sequence: 0,
            next_handle: 0,
            process: 0,
            is_in_use: false,
            operations: 0,
            power_cut: None,
            crash_at: None,
            faults: Faults::default(),
            film: None,
            former: VecDeque::new(),
        }
    }

    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(super) fn directory(&mut self, node: NodeNumber) -> io::Result<&mut DirectoryNode> {
        match self.nodes.get_mut(&node) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(error(libc::ENOTDIR)),
            None => Err(error(libc::ENOENT)),
        }
    }

    pub(super) fn file(&mut self, node: NodeNumber) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(error(libc::EISDIR)),
            None => Err(error(libc::ENOENT)),
        }
    }

    pub(super) fn entry(&mut self, directory: NodeNumber, name: &str) -> io::Result<NodeNumber> {
        let entries = &self.directory(directory)?.cache;
        entries
            .get(name)
            .copied()
            .ok_or_else(|| error(libc::ENOENT))
    }

    /// The node at a path, given as its names.
    pub(super) fn find(&mut self, names: &[String]) -> io::Result<NodeNumber> {
        names
            .iter()
            .try_fold(ROOT, |directory, name| self.entry(directory, name))
    }

    fn is_directory(&self, node: NodeNumber) -> bool {
        matches!(self.nodes.get(&node), Some(Node::Directory(_)))
    }

    /// Gives `node` the name `name` in a directory, or none.
    fn name(
        &mut self,
        directory: NodeNumber,
        node: NodeNumber,
        name: Option<&str>,
    ) -> io::Result<()> {
        let sequence = self.next_sequence();
        self.directory(directory)?.change(EntryChange {
            sequence,
            node,
            name: name.map(str::to_owned),
        });
        self.relink();
        Ok(())
    }

    /// Makes a node under a name that is free.
    pub(super) fn make(
        &mut self,
        directory: NodeNumber,
        name: &str,
        node: Node,
        plan: &Plan,
    ) -> io::Result<NodeNumber> {
        match self.entry(directory, name) {
            Ok(_) => return Err(error(libc::EEXIST)),
            Err(missing) if missing.raw_os_error() == Some(libc::ENOENT) => {}
            Err(other) => return Err(other),
        }
        let is_linked = self.directory(directory)?.is_linked;
        if !is_linked {
            return Err(error(libc::ENOENT));
        }
        if plan.fault == Some(Fault::Full) {
            return Err(error(libc::ENOSPC));
        }
        let number = self.next_node;
        self.next_node += 1;
        self.nodes.insert(number, node);
        self.name(directory, number, Some(name))?;
        Ok(number)
    }

    pub(super) fn rename(&mut self, directory: NodeNumber, from: &str, to: &str) -> io::Result<()> {
        let node = self.entry(directory, from)?;
        let replaced = self.entry(directory, to).ok();
        if replaced == Some(node) {
            return Ok(());
        }
        if let Some(replaced) = replaced {
            match (self.is_directory(node), self.is_directory(replaced)) {
                (true, false) => return Err(error(libc::ENOTDIR)),
                (false, true) => return Err(error(libc::EISDIR)),
                (true, true) if !self.directory(replaced)?.cache.is_empty() => {
                    return Err(error(libc::ENOTEMPTY));
                }
                _ => {}
            }
        }
        self.name(directory, node, Some(to))
    }

    pub(super) fn remove(
        &mut self,
        directory: NodeNumber,
        name: &str,
        wants_directory: bool,
    ) -> io::Result<()> {
        let node = self.entry(directory, name)?;
        match wants_directory {
            true if !self.directory(node)?.cache.is_empty() => {
                return Err(error(libc::ENOTEMPTY));
            }
            false => _ = self.file(node)?,
            true => {}
        }
        self.name(directory, node, None)
    }

    pub(super) fn list(&mut self, directory: NodeNumber) -> io::Result<Vec<Entry>> {
        let entries = self.directory(directory)?.cache.clone();
        let entry = |(name, node): (String, NodeNumber)| Entry {
            is_directory: self.is_directory(node),
            bytes: self.file(node).map_or(0, |file| file.cache.len()),
            name,
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    /// Reads; the system may give less than was asked for.
    pub(super) fn read(
        &mut self,
        node: NodeNumber,
        offset: u64,
        buffer: &mut [u8],
        plan: &Plan,
    ) -> io::Result<usize> {
        let bytes = match plan.fault {
            Some(Fault::Read) => return Err(error(libc::EIO)),
            Some(Fault::Short) if buffer.len() > 1 => 1 + self.dice.below(buffer.len() - 1),
            _ => buffer.len(),
        };
        Ok(self.file(node)?.cache.read(offset, &mut buffer[..bytes]))
    }

    /// Writes to the cache; the system may take less than was asked for. A `durable` write takes
    /// whole blocks. Gives how many bytes it took, and the number of the change.
    pub(super) fn write(
        &mut self,
        node: NodeNumber,
        offset: u64,
        bytes: &[u8],
        durable: bool,
        plan: &Plan,
    ) -> io::Result<(usize, u64)> {
        let unit = if durable { BLOCK_BYTES } else { 1 };
        if offset >= FILE_BYTES_MAX {
            return Err(error(libc::EFBIG));
        }
        if plan.fault == Some(Fault::Full) {
            return Err(error(libc::ENOSPC));
        }
        let mut taken = bytes.len().min((FILE_BYTES_MAX - offset) as usize);
        let room = self.room_for(node, offset + taken as u64)?;
        taken = taken.min(room.saturating_sub(offset) as usize) / unit * unit;
        if taken == 0 && !bytes.is_empty() {
            return Err(error(libc::ENOSPC));
        }
        let fails = plan.fault == Some(Fault::Write);
        if fails || plan.is_cut {
            let sectors = taken / SECTOR_BYTES;
            taken = self.dice.below(sectors + 1) * SECTOR_BYTES;
        } else if plan.fault == Some(Fault::Short) && taken > unit {
            taken = (1 + self.dice.below(taken / unit - 1)) * unit;
        }
        let sequence = self.next_sequence();
        if taken > 0 {
            let end = offset + taken as u64;
            let file = self.file(node)?;
            file.room = file.room.max(end.next_multiple_of(BLOCK_BYTES as u64));
            file.change(FileChange {
                sequence,
                write: Some((offset, Arc::from(&bytes[..taken]))),
                length: Some(end),
                cuts: false,
            });
            self.write_back(node)?;
        }
        match fails {
            true => Err(error(libc::EIO)),
            false => Ok((taken, sequence)),
        }
    }

    /// Up to where the file could take room, if that is before `end`; else `end`.
    fn room_for(&mut self, node: NodeNumber, end: u64) -> io::Result<u64> {
        let free = self.free_bytes();
        let room = self.file(node)?.room;
        Ok(end.min(room.saturating_add(free)))
    }

    /// A cache that holds too many changes writes the oldest to the medium, as systems do.
    fn write_back(&mut self, node: NodeNumber) -> io::Result<()> {
        let most = self.options.cached_bytes_max;
        let mut overwritten = Vec::new();
        let file = self.file(node)?;
        while file.pending_bytes > most && !file.pending.is_empty() {
            let before = file.pending[0].sequence + 1;
            file.sync(before, &mut overwritten);
        }
        self.remember(node, overwritten);
        Ok(())
    }

    pub(super) fn set_len(&mut self, node: NodeNumber, len: u64) -> io::Result<()> {
        if len > FILE_BYTES_MAX {
            return Err(error(libc::EFBIG));
        }
        let sequence = self.next_sequence();
        let file = self.file(node)?;
        let cuts = len < file.cache.len();
        if len != file.cache.len() {
            file.change(FileChange {
                sequence,
                write: None,
                length: Some(len),
                cuts,
            });
        }
        file.room = match cuts {
            true => file.room.min(len.next_multiple_of(BLOCK_BYTES as u64)),
            false => file.room,
        };
        Ok(())
    }

    pub(super) fn reserve(
        &mut self,
        node: NodeNumber,
        offset: u64,
        bytes: u64,
        plan: &Plan,
    ) -> io::Result<()> {
        let end = offset.saturating_add(bytes);
        if end > FILE_BYTES_MAX {
            return Err(error(libc::EFBIG));
        }
        let end = end.next_multiple_of(BLOCK_BYTES as u64);
        if plan.fault == Some(Fault::Full) || self.room_for(node, end)? < end {
            return Err(error(libc::ENOSPC));
        }
        let file = self.file(node)?;
        file.room = file.room.max(end);
        Ok(())
    }

    pub(super) fn free_bytes(&self) -> u64 {
        let used = self.nodes.values().map(|node| match node {
            Node::File(file) if file.is_linked || file.handles > 0 => file.room,
            _ => 0,
        });
        self.options.capacity_bytes.saturating_sub(used.sum())
    }

    /// Begins a sync: what has to be done when the medium has written. A sync that fails has done
    /// all that it does.
    pub(super) fn start_sync(&mut self, node: NodeNumber, plan: &Plan) -> io::Result<After> {
        let before = self.sequence + 1;
        let loses = match plan.fault {
            Some(Fault::SyncKeepsCache) => false,
            Some(Fault::SyncLosesCache) => true,
            _ => return Ok(After::Sync { node, before }),
        };
        self.complete_partly(&After::Sync { node, before });
        match self.nodes.get_mut(&node) {
            Some(Node::File(file)) => {
                file.forget_pending();
                file.durable.cut();
                if loses {
                    file.cache = file.durable.clone();
                }
            }
            // File systems journal entries, and do not take for written what the journal has not
            // got.
            Some(Node::Directory(directory)) if loses => {
                directory.pending.clear();
                directory.cache = directory.durable.clone();
            }
            Some(Node::Directory(_)) | None => {}
        }
        self.relink();
        Err(error(libc::EIO))
    }

    /// How many bytes a sync would write.
    pub(super) fn unsynced_bytes(&self, node: NodeNumber) -> u64 {
        match self.nodes.get(&node) {
            Some(Node::File(file)) => file.pending_bytes as u64,
            _ => 0,
        }
    }

    /// The medium has done its part of an operation.
    pub(super) fn complete(&mut self, after: &After) {
        let mut overwritten = Vec::new();
        let node = match *after {
            After::Nothing => return,
            After::Sync { node, before } => {
                match self.nodes.get_mut(&node) {
                    Some(Node::File(file)) => file.sync(before, &mut overwritten),
                    Some(Node::Directory(directory)) => {
                        directory.sync(before);
                        self.sweep();
                    }
                    None => {}
                }
                node
            }
            After::Write { node, sequence } => {
                if let Ok(file) = self.file(node) {
                    file.sync_one(sequence, &mut overwritten);
                }
                node
            }
        };
        self.remember(node, overwritten);
    }

    /// The medium has done some of its part: of a sync any of the writes, of a directory's any of
    /// the first changes. What it has done of a write, the crash decides.
    pub(super) fn complete_partly(&mut self, after: &After) {
        let After::Sync { node, before } = *after else {
            return;
        };
        let mut overwritten = Vec::new();
        match self.nodes.get_mut(&node) {
            Some(Node::File(file)) => {
                let pending = file.pending.iter().map(|change| change.sequence);
                let pending: Vec<u64> = pending.filter(|sequence| *sequence < before).collect();
                for sequence in pending {
                    if self.dice.below(2) == 0 {
                        file.sync_one(sequence, &mut overwritten);
                    }
                }
            }
            Some(Node::Directory(directory)) => {
                let changes = self.dice.below(directory.pending.len() + 1);
                let last = directory.pending[..changes].last();
                let up_to = last.map_or(0, |change| change.sequence + 1);
                directory.sync(up_to.min(before));
            }
            None => {}
        }
        self.remember(node, overwritten);
    }

    /// Keeps what blocks held before, for damage.
    pub(super) fn remember(&mut self, node: NodeNumber, overwritten: Vec<Overwritten>) {
        for Overwritten { block, content } in overwritten {
            if self.former.len() == OVERWRITTEN_MAX {
                self.former.pop_front();
            }
            let content = Arc::from(content);
            self.former.push_back(Former {
                node,
                block,
                content,
            });
        }
    }

    /// Finds out which nodes processes see.
    pub(super) fn relink(&mut self) {
        let mut linked = BTreeSet::from([ROOT]);
        for node in self.nodes.values() {
            if let Node::Directory(directory) = node {
                linked.extend(directory.cache.values().copied());
            }
        }
        for (number, node) in &mut self.nodes {
            match node {
                Node::File(file) => file.is_linked = linked.contains(number),
                Node::Directory(directory) => directory.is_linked = linked.contains(number),
            }
        }
    }

    /// Frees the nodes that no name leads to, on the medium or in the cache, and no handle.
    pub(super) fn sweep(&mut self) {
        loop {
            let mut named = BTreeSet::from([ROOT]);
            for node in self.nodes.values() {
                if let Node::Directory(directory) = node {
                    named.extend(directory.cache.values().copied());
                    named.extend(directory.durable.values().copied());
                    named.extend(directory.pending.iter().map(|change| change.node));
                }
            }
            let before = self.nodes.len();
            self.nodes.retain(|number, node| {
                let handles = match node {
                    Node::File(file) => file.handles,
                    Node::Directory(directory) => directory.handles,
                };
                handles > 0 || named.contains(number)
            });
            if self.nodes.len() == before {
                break;
            }
        }
        let nodes = &self.nodes;
        self.former
            .retain(|former| nodes.contains_key(&former.node));
    }
}
