//! Buffers: what workers have committed and the log has not written yet.
//!
//! Each worker has a buffer of its own. It appends to it inside its window of the log epoch, under
//! a mutex that only the log's thread takes besides, once a group, for the moment of an exchange.

use kiln_platform::atomic::{AtomicU64, AtomicUsize, Ordering};
use kiln_platform::sync::{Mutex, lock};
use kiln_storage::journal::{CallAnswer, Commit};

use crate::format::entry;

/// Bytes for which a worker that starts has room.
const FIRST_BYTES: usize = 64 << 10;
/// Memory of a buffer is used again up to this size.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// A worker adds the growth of its buffer to the count of pending bytes in steps of this many.
const COUNTED_BYTES: usize = 32 << 10;

/// The buffers of all workers.
pub(super) struct Buffers {
    slots: Box<[Slot]>,
    /// Slots at and above this position were never used.
    used: AtomicUsize,
    /// Bytes that wait or are being written, but for less than [`COUNTED_BYTES`] a worker.
    pending: AtomicU64,
}

/// Cache lines of its own (two, because processors fetch lines in pairs).
#[derive(Default)]
#[repr(align(128))]
struct Slot {
    /// The log epoch of the last entry that was appended.
    newest: AtomicU64,
    buffer: Mutex<Buffer>,
}

/// Entries, in the order of their log epochs.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    entries: u64,
    /// The log epoch of the last entry, and where the first one of that log epoch begins.
    newest: u64,
    newest_from: usize,
    /// How many entries come before that, and the log epoch of the last of them.
    entries_before: u64,
    before: u64,
    /// How many of the bytes are in `pending`.
    counted: usize,
}

/// What a group consists of.
#[derive(Default)]
pub(super) struct Group {
    /// Entries, in pieces.
    pub pieces: Vec<Vec<u8>>,
    /// How many entries.
    pub entries: u64,
    /// How many of the bytes are in `pending`.
    counted: u64,
    /// Memory for other pieces.
    spare: Vec<Vec<u8>>,
}

impl Group {
    /// Bytes of the entries.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }
}

impl Buffer {
    /// Notes that entries of this log epoch follow.
    #[inline]
    fn begin(&mut self, epoch: u64) {
        debug_assert!(self.newest <= epoch, "epochs of a worker only grow");
        if self.newest != epoch {
            (self.before, self.newest) = (self.newest, epoch);
            (self.newest_from, self.entries_before) = (self.bytes.len(), self.entries);
        }
        self.entries += 1;
    }

    /// Where the entries of log epochs after `through` begin, and how many entries come before.
    fn split(&self, through: u64) -> (usize, u64) {
        if self.newest <= through {
            (self.bytes.len(), self.entries)
        } else if self.before <= through {
            (self.newest_from, self.entries_before)
        } else {
            // Two log epochs were closed since: rare, as a group is taken as soon as one is.
            entry::split(&self.bytes, through)
        }
    }
}

impl Buffers {
    /// For workers whose numbers are below `workers`.
    pub fn new(workers: usize) -> Buffers {
        Buffers {
            slots: (0..workers).map(|_| Slot::default()).collect(),
            used: AtomicUsize::new(0),
            pending: AtomicU64::new(0),
        }
    }

    /// Makes room for a worker that starts.
    pub fn join(&self, worker: usize) {
        // Release pairs with the acquire in `used`, although the worker's first window orders the
        // two as well.
        self.used.fetch_max(worker + 1, Ordering::Release);
        let bytes = &mut lock(&self.slots[worker].buffer).bytes;
        bytes.reserve(FIRST_BYTES.saturating_sub(bytes.len()));
    }

    fn used(&self) -> &[Slot] {
        &self.slots[..self.used.load(Ordering::Acquire)]
    }

    /// Appends a commit of the worker, which is inside its window, or its call, and the answer of
    /// the call if that has a key.
    #[inline]
    pub fn append_commit(&self, worker: usize, commit: &Commit<'_>) {
        let epoch = commit.epoch.0;
        self.append(worker, epoch, |bytes| match commit.command {
            Some(call) => {
                let changes = commit.changes.len() as u32;
                entry::append_command(bytes, epoch, commit.order, changes, call);
            }
            None => {
                let start = entry::begin_commit(bytes, epoch);
                commit.append(bytes);
                entry::end(bytes, start);
            }
        });
        if let Some(answer) = &commit.answer {
            self.append_answer(worker, epoch, answer);
        }
    }

    /// As another entry of the same epoch: the group that has one of the two has both.
    #[cold]
    fn append_answer(&self, worker: usize, epoch: u64, answer: &CallAnswer<'_>) {
        self.append(worker, epoch, |bytes| {
            entry::append_outcome(bytes, epoch, answer.key, answer.bytes);
        });
    }

    /// Appends one entry of this log epoch; the worker is inside its window.
    #[inline]
    pub fn append(&self, worker: usize, epoch: u64, append: impl FnOnce(&mut Vec<u8>)) {
        let slot = &self.slots[worker];
        let mut buffer = lock(&slot.buffer);
        buffer.begin(epoch);
        append(&mut buffer.bytes);
        // Release pairs with the acquire in `newest`: a transaction that meets what this one writes
        // sees the epoch.
        slot.newest.store(epoch, Ordering::Release);
        if buffer.bytes.len() >= buffer.counted + COUNTED_BYTES {
            let grown = buffer.bytes.len() - std::mem::replace(&mut buffer.counted, 0);
            buffer.counted = buffer.bytes.len();
            // Relaxed: the count orders nothing.
            self.pending.fetch_add(grown as u64, Ordering::Relaxed);
        }
    }

    /// The last log epoch of which anything was appended. A transaction that has observed what
    /// another one wrote finds at least the other's.
    pub fn newest(&self) -> u64 {
        let newest = self.used().iter();
        newest
            .map(|slot| slot.newest.load(Ordering::Acquire))
            .max()
            .unwrap_or_default()
    }

    /// Bytes that wait or are being written, roughly.
    #[inline(always)]
    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    /// The entries of the group are written: it is empty, and its memory is used again.
    pub fn recycle(&self, group: &mut Group) {
        // Relaxed: the count orders nothing.
        self.pending.fetch_sub(group.counted, Ordering::Relaxed);
        (group.entries, group.counted) = (0, 0);
        for mut piece in group.pieces.drain(..) {
            piece.clear();
            if piece.capacity() <= KEPT_BYTES_MAX {
                group.spare.push(piece);
            }
        }
    }

    /// Takes the entries of all log epochs up to `through`, which is closed, into `group`, which is
    /// empty.
    pub fn take(&self, through: u64, group: &mut Group) {
        let mut used = 0;
        for slot in self.used() {
            used += 1;
            let fresh = group.spare.pop().unwrap_or_default();
            if let Some(unused) = slot.take(through, fresh, group) {
                group.spare.push(unused);
            }
        }
        // As much as the next group needs, and no more than that.
        group.spare.truncate(used);
    }
}

impl Slot {
    /// Moves entries up to `through` into the group, and leaves `fresh` in their place; else gives
    /// it back.
    fn take(&self, through: u64, mut fresh: Vec<u8>, group: &mut Group) -> Option<Vec<u8>> {
        // Acquire: the window of whatever belongs into the group is closed, so it is seen.
        if self.newest.load(Ordering::Acquire) == 0 {
            return Some(fresh);
        }
        let mut buffer = lock(&self.buffer);
        let (end, entries) = buffer.split(through);
        if end == 0 {
            return Some(fresh);
        }
        fresh.extend_from_slice(&buffer.bytes[end..]);
        let mut piece = std::mem::replace(&mut buffer.bytes, fresh);
        piece.truncate(end);
        group.entries += entries;
        group.counted += buffer.counted as u64;
        group.pieces.push(piece);
        buffer.counted = 0;
        buffer.entries -= entries;
        buffer.newest_from = buffer.newest_from.saturating_sub(end);
        buffer.entries_before = buffer.entries_before.saturating_sub(entries);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::entry::{Entries, Entry};

    /// Appends a statement to the buffer of a worker, whose text is its number.
    fn append(buffers: &Buffers, worker: usize, epoch: u64, number: u64) {
        buffers.append(worker, epoch, |bytes| {
            entry::append_statement(bytes, epoch, &number.to_string());
        });
    }

    fn read(group: &Group) -> Vec<(u64, u64)> {
        let entries = group.pieces.iter().flat_map(|piece| Entries::new(piece));
        let read = entries.map(|entry| match entry {
            Ok(Entry::Statement { epoch, text }) => (epoch, text.parse().expect("a number")),
            other => panic!("{other:?}"),
        });
        read.collect()
    }

    #[test]
    fn a_group_has_what_is_of_closed_epochs_and_the_rest_waits() {
        let buffers = Buffers::new(3);
        buffers.join(0);
        buffers.join(2);
        let mut group = Group::default();
        buffers.recycle(&mut group);
        buffers.take(4, &mut group);
        assert_eq!((group.entries, group.bytes()), (0, 0));
        for (worker, epoch, number) in [
            (0, 5, 1),
            (0, 5, 2),
            (0, 6, 3),
            (2, 6, 4),
            (2, 8, 5),
            (2, 9, 6),
        ] {
            append(&buffers, worker, epoch, number);
        }
        assert_eq!(buffers.newest(), 9);
        buffers.recycle(&mut group);
        buffers.take(5, &mut group);
        assert_eq!((read(&group), group.entries), (vec![(5, 1), (5, 2)], 2));
        buffers.recycle(&mut group);
        buffers.take(6, &mut group);
        assert_eq!((read(&group), group.entries), (vec![(6, 3), (6, 4)], 2));
        append(&buffers, 0, 9, 7);
        buffers.recycle(&mut group);
        buffers.take(8, &mut group);
        assert_eq!((read(&group), group.entries), (vec![(8, 5)], 1));
        buffers.recycle(&mut group);
        buffers.take(9, &mut group);
        assert_eq!((read(&group), group.entries), (vec![(9, 7), (9, 6)], 2));
        buffers.recycle(&mut group);
        buffers.take(10, &mut group);
        assert_eq!((group.entries, group.bytes()), (0, 0));
    }

    #[test]
    fn what_waits_and_what_is_written_is_counted() {
        let buffers = Buffers::new(1);
        buffers.join(0);
        let mut group = Group::default();
        for epoch in 1..4 {
            let text = "x".repeat(COUNTED_BYTES);
            buffers.append(0, epoch, |bytes| {
                entry::append_statement(bytes, epoch, &text);
            });
        }
        assert!(buffers.pending() >= 3 * COUNTED_BYTES as u64);
        buffers.recycle(&mut group);
        buffers.take(2, &mut group);
        append(&buffers, 0, 4, 1);
        // Those of the group are being written, and count.
        assert!(buffers.pending() >= 3 * COUNTED_BYTES as u64);
        buffers.recycle(&mut group);
        buffers.take(4, &mut group);
        buffers.recycle(&mut group);
        assert_eq!(buffers.pending(), 0);
    }
}
