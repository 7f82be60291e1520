//! Versions: the nodes of a record's chain, the words that lead to them, and the memory they are
//! from.
//!
//! ```text
//!  record                    node                     node
//!  ┌──────┬──────┬─────┐     ┌──────────────┬─────┐   ┌──────────────┬─────┐
//!  │ tid  │ aux ─┼─────┼───► │ wts 9        │image│   │ wts 7        │image│
//!  │ wts 4│      │ row │     │ next ────────┼─────┼─► │ next 0       │     │
//!  └──────┴──────┴─────┘     └──────────────┴─────┘   └──────────────┴─────┘
//!   the inlined version: the oldest                    0 leads to the row
//! ```
//!
//! A node has the columns that its transaction changed; the others are those of the versions before
//! it, down to the row. `aux` is one of
//!
//! | form | meaning |
//! |---|---|
//! | 0 | there is only the row, and no attempt has validated a read of it |
//! | `rts << 3 \| 1` | there is only the row, read up to `rts` |
//! | an address | the newest node; with [`LATCHED`] while a worker shortens the chain, with [`WAITING`] when a worker has noted to shorten it |

use std::cell::Cell;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_storage::epoch::Participant;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnSet;
use kiln_storage::slab::{OutOfMemory, Slab};
use kiln_storage::table::Table;

/// The form of `aux` without nodes.
const READ_UP_TO: u64 = 1;
/// A worker shortens the chain: no other one changes `aux`.
pub(super) const LATCHED: u64 = 2;
/// A worker has noted to shorten the chain when a snapshot has ended.
pub(super) const WAITING: u64 = 4;
const FLAGS: u64 = 7;
const SHIFT: u32 = 3;

/// `aux` of a record without nodes that was read up to `rts`.
#[inline(always)]
pub(super) fn read_up_to(rts: u64) -> u64 {
    rts << SHIFT | READ_UP_TO
}

/// What `aux` says.
#[derive(Clone, Copy)]
pub(super) enum Head {
    /// There is only the row, and it was read up to this timestamp.
    Row(u64),
    /// The newest version.
    Chain(NodeRef),
}

/// Reads `aux`'s content.
#[inline(always)]
pub(super) fn head(aux: u64) -> Head {
    if aux & READ_UP_TO != 0 || aux == 0 {
        return Head::Row(aux >> SHIFT);
    }
    // SAFETY: every other value is the address of a node with flags in its low bits, not zero.
    let node = unsafe { NonNull::new_unchecked((aux & !FLAGS) as *mut Node) };
    Head::Chain(NodeRef(node))
}

/// The state of a version, and what it is.
pub(super) mod status {
    /// Its transaction is not decided.
    pub const PENDING: u64 = 0;
    /// It is there for good.
    pub const COMMITTED: u64 = 1;
    /// It never was.
    pub const ABORTED: u64 = 2;
    /// The bits of the state.
    pub const STATE: u64 = 3;
    /// The record has no row in this version.
    pub const ABSENT: u64 = 4;
    /// The node's image is a list of the records that had the record's keys before.
    pub const LINKS: u64 = 8;
    /// Split columns of the table are written in this version, or the record is deleted;
    /// see `split.rs`.
    pub const SPLIT: u64 = 16;
}

/// Said of [`Node::read_until`] when the node is going: a reader that raises it looks again.
pub(super) const CLOSED: u64 = u64::MAX;

/// A version; its image follows in memory.
#[repr(C)]
pub(super) struct Node {
    /// The timestamp of its transaction: never changed once others can see the node.
    wts: Cell<u64>,
    /// The next older node, or 0 for the row.
    next: AtomicU64,
    /// The greatest timestamp at which the newest committed version was validated: this one once it
    /// is committed, the one below while it is pending.
    read_until: AtomicU64,
    /// State and kind; see [`status`].
    status: AtomicU64,
    /// The columns in the image; never changed once others can see the node.
    columns: Cell<ColumnSet>,
    /// Which pool it is from.
    class: u32,
    /// Pairs in the list that is its image, with [`status::LINKS`].
    links: Cell<u32>,
}

/// Words of a node without its image.
const HEADER_WORDS: usize = size_of::<Node>() / 8;

/// A reference to a node: good inside the epoch in which it was found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeRef(NonNull<Node>);

// SAFETY: what others may see of a node is atomic or not changed any more.
unsafe impl Send for NodeRef {}

impl NodeRef {
    #[inline(always)]
    fn node<'a>(self) -> &'a Node {
        // SAFETY: by the type's documentation the node is not reused yet.
        unsafe { self.0.as_ref() }
    }

    /// The address, as `aux` and `next` hold it.
    #[inline(always)]
    pub fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// The words of its image.
    #[inline(always)]
    pub fn image<'a>(self, words: usize) -> &'a [AtomicU64] {
        // SAFETY: the node was made with room for the words of a row of its table, and they are
        // only accessed as atomics.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(1).cast(), words) }
    }

    #[inline(always)]
    pub fn wts(self) -> u64 {
        self.node().wts.get()
    }

    /// Sets the timestamp of a node that no other worker can see yet.
    #[inline(always)]
    pub fn set_wts(self, wts: u64) {
        self.node().wts.set(wts);
    }

    #[inline(always)]
    pub fn columns(self) -> ColumnSet {
        self.node().columns.get()
    }

    /// Sets the columns of a node that no other worker can see yet.
    #[inline(always)]
    pub fn set_columns(self, columns: ColumnSet) {
        self.node().columns.set(columns);
    }

    /// The next older node; `None` stands for the row.
    #[inline(always)]
    pub fn next(self) -> Option<NodeRef> {
        // Acquire pairs with the release in `set_next`: where the row is next, it has all that was
        // copied from the nodes that were.
        let next = self.node().next.load(Ordering::Acquire);
        NonNull::new(next as *mut Node).map(NodeRef)
    }

    #[inline(always)]
    pub fn set_next(self, next: Option<NodeRef>) {
        let next = next.map_or(0, NodeRef::address);
        self.node().next.store(next, Ordering::Release);
    }

    #[inline(always)]
    pub fn read_until(self) -> &'static AtomicU64 {
        // SAFETY: as for the node; callers use it inside the epoch.
        unsafe { &(*self.0.as_ptr()).read_until }
    }

    /// The state and the kind.
    #[inline(always)]
    pub fn status(self) -> u64 {
        // Acquire pairs with the release in `set_status`: a committed version's content is there.
        self.node().status.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub fn set_status(self, status: u64) {
        self.node().status.store(status, Ordering::Release);
    }

    /// Whether the record has no row in this version.
    #[inline(always)]
    pub fn is_absent(self) -> bool {
        self.status() & status::ABSENT != 0
    }

    /// The record that had the key in the index at `index` before this one, if there was one.
    pub fn link(self, index: usize) -> Option<RecordRef> {
        self.links()
            .find_map(|(position, record)| (position == index).then_some(record))
    }

    /// The indexes in which the record took a key over, and from whom.
    pub fn links(self) -> impl Iterator<Item = (usize, RecordRef)> {
        let pairs = match self.status() & status::LINKS {
            0 => 0,
            _ => self.node().links.get() as usize,
        };
        self.image(2 * pairs).chunks_exact(2).map(|pair| {
            let (index, address) = (
                pair[0].load(Ordering::Relaxed),
                pair[1].load(Ordering::Relaxed),
            );
            // SAFETY: `set_links` stored the address of a record.
            (index as usize, unsafe { RecordRef::from_address(address) })
        })
    }

    /// Lists the records that had the record's keys, in a node that no other worker can see yet.
    pub fn set_links(self, links: impl Iterator<Item = (usize, RecordRef)>, room: usize) {
        let image = self.image(2 * room);
        let mut count = 0;
        for (pair, (index, record)) in image.chunks_exact(2).zip(links) {
            pair[0].store(index as u64, Ordering::Relaxed);
            pair[1].store(record.address(), Ordering::Relaxed);
            count += 1;
        }
        self.node().links.set(count);
    }
}

/// The memory of nodes, by size, per worker: no allocator in the steady state.
pub(super) struct Pools(Box<[Slab]>);

/// The sizes of nodes in words: two for each power of two.
const fn class_words(class: usize) -> usize {
    let base = 16 << (class / 2);
    base + base / 2 * (class % 2)
}

/// Enough for a row of 64 KiB.
const CLASSES: usize = 20;
const _: () = assert!(class_words(CLASSES - 1) >= (64 << 10) / 8 + HEADER_WORDS);

impl Pools {
    pub fn new(arenas: usize) -> Pools {
        let slab = |class| Slab::named(class_words(class) * 8, arenas, "mvcc.version");
        Pools((0..CLASSES).map(slab).collect())
    }

    /// A pending node with room for an image of `words` words, for the worker that `participant`
    /// stands for.
    #[inline]
    pub fn take(&self, words: usize, participant: &Participant) -> Result<NodeRef, OutOfMemory> {
        let wanted = words + HEADER_WORDS;
        let octave = (wanted.max(16).next_power_of_two() / 16).trailing_zeros() as usize;
        // The power of two below, or one and a half of that, may do.
        let mut class = (2 * octave).saturating_sub(1);
        if class_words(class) < wanted {
            class += 1;
        }
        // SAFETY: the arena that the participant uses is this worker's alone.
        let cell = unsafe { self.0[class].alloc(participant.arena())? };
        let node = NodeRef(cell.cast());
        // SAFETY: the cell is this worker's, large enough, and aligned to eight bytes; each worker
        // that knew an earlier node in it has left its epoch.
        unsafe {
            node.0.write(Node {
                wts: Cell::new(0),
                next: AtomicU64::new(0),
                read_until: AtomicU64::new(0),
                status: AtomicU64::new(status::PENDING),
                columns: Cell::new(ColumnSet::EMPTY),
                class: class as u32,
                links: Cell::new(0),
            });
        }
        Ok(node)
    }

    /// Takes back a node that no other worker has seen.
    pub fn give_back(&self, node: NodeRef, participant: &Participant) {
        let class = node.node().class as usize;
        // SAFETY: the memory is this worker's; the node was taken and is not in any chain.
        unsafe { self.0[class].free(participant.arena(), node.0.cast()) };
    }

    /// Takes back a node that no chain leads to any more, once no worker can look at it.
    pub fn retire(&self, node: NodeRef, participant: &Participant) {
        let class = node.node().class as usize;
        // SAFETY: no chain leads to the node, and it is retired once; the pools are given to the
        // epochs before they go.
        unsafe { participant.retire(self.0[class].retired(node.0.cast())) };
    }

    /// Bytes taken from the system.
    pub fn bytes_reserved(&self) -> usize {
        self.0.iter().map(Slab::bytes_reserved).sum()
    }

    /// Nodes in use, those that wait for their epoch included. Exact when no transaction runs.
    pub fn nodes_in_use(&self) -> usize {
        self.0.iter().map(Slab::cells_in_use).sum()
    }
}

/// The version of a record that a snapshot has.
#[derive(Clone, Copy)]
pub(super) enum Visible {
    /// The row's.
    Row(u64),
    /// A node's.
    Node(NodeRef),
    /// The row did not exist: as of this version.
    Absent(u64),
    /// The record did not exist.
    Nothing,
    /// The row's version is newer than any timestamp of the clock: from before the protocol was in
    /// force.
    Foreign(u64),
}

/// The newest version of `record` up to `snapshot`, at or before which all is decided; `now` is
/// asked for the clock's newest timestamp when there is none.
#[inline]
pub(super) fn visible(record: RecordRef, snapshot: u64, now: impl Fn() -> u64) -> Visible {
    // Acquire pairs with the releases of those who link a node or unlink all.
    let aux = record.aux().load(Ordering::Acquire);
    if let Head::Chain(newest) = head(aux) {
        let mut node = Some(newest);
        while let Some(this) = node {
            if this.wts() <= snapshot && this.status() & status::STATE == status::COMMITTED {
                return match this.is_absent() {
                    true => Visible::Absent(this.wts()),
                    false => Visible::Node(this),
                };
            }
            node = this.next();
        }
    }
    // Acquire pairs with the release that ends a change of the row.
    let tid = Tid(record.tid().load(Ordering::Acquire));
    match tid.version() <= snapshot {
        true if tid.is_absent() => Visible::Absent(tid.version()),
        true => Visible::Row(tid.version()),
        false if tid.is_absent() || tid.version() <= now() => Visible::Nothing,
        false => Visible::Foreign(tid.version()),
    }
}

/// The words that hold `column` in the version of `node`: its image, an older one's, or the row.
#[inline(always)]
pub(super) fn source<'a>(
    table: &Table,
    record: RecordRef,
    mut node: Option<NodeRef>,
    column: kiln_storage::schema::ColumnId,
) -> &'a [AtomicU64] {
    while let Some(this) = node {
        if this.columns().contains(column) {
            return this.image(table.layout().words());
        }
        node = this.next();
    }
    table.row(record)
}

#[cfg(test)]
mod tests {
    use kiln_storage::epoch::Epochs;

    use super::*;

    #[test]
    fn nodes_have_room_for_any_row_and_come_back() {
        let epochs = Epochs::new(1);
        let participant = epochs.register().expect("a slot is free");
        let pools = Pools::new(1);
        for words in (1..200).chain([1000, 8190]) {
            let node = pools.take(words, &participant).expect("memory");
            let class = node.node().class as usize;
            let room = class_words(class) - HEADER_WORDS;
            assert!(room >= words, "{words} words in {room}");
            assert!(
                class == 0 || class_words(class - 1) < words + HEADER_WORDS,
                "{words} words in class {class}"
            );
            node.image(words)[words - 1].store(7, Ordering::Relaxed);
            assert_eq!(node.address() & FLAGS, 0);
            pools.give_back(node, &participant);
        }
        assert_eq!(pools.nodes_in_use(), 0);
    }

    #[test]
    fn aux_says_what_it_was_told() {
        for rts in [1, 77, Tid::VERSION] {
            assert!(matches!(head(read_up_to(rts)), Head::Row(known) if known == rts));
        }
        assert!(matches!(head(0), Head::Row(0)));
    }
}
