//! The two kinds of index: [`HashIndex`] for points, [`OrderedIndex`] for points and ranges.
//!
//! Both map a [`Key`] to a non-zero word, the address of a record, and may be used by any number
//! of threads through a shared reference. Readers never write to shared memory: they read a node
//! between two looks at its version (optimistic lock coupling; Leis et al., DaMoN 2016). Writers
//! latch the nodes that they change, for a few instructions.
//!
//! # Phantoms
//!
//! A lookup that misses, and each leaf of a scan, yields a [`NodeVersion`]: the guard of a gap in
//! the key space (Silo §4.6). While it [is current](NodeVersion::is_current), no key has been
//! inserted into that gap. A transaction keeps its guards until commit; its own insertions move
//! them on, for which [`InsertEffect`] says what changed.
//!
//! # Memory
//!
//! An index keeps its nodes until it is dropped and reuses them only as nodes of the same kind, and
//! node versions only ever grow. So a reader that follows an outdated address still reads a node,
//! finds its version changed, and starts again: neither readers nor removals need an epoch for the
//! sake of the *index*. The records that payloads point to do need one: a reader follows a payload
//! only inside an epoch.

mod hash;
mod key;
mod ordered;
mod pool;
mod version;

use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering};

pub use hash::HashIndex;
pub use key::{ByteKey, Key};
pub use ordered::{Cursor, FANOUT, LeafBatch, OrderedIndex};
pub use version::NodeVersion;

/// What a point lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The payload of the key.
    Found(u64),
    /// The key was not there, and stays absent while the guard is current.
    Missing(NodeVersion),
}

/// Where a look-up found a key: good for as long as its node stays as it was.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// The payload that was found.
    payload: u64,
    /// The version word of the node, and the whole word as it was.
    node: NonNull<AtomicU64>,
    seen: u64,
}

// SAFETY: the pointer is the address of an atomic word, see `NodeVersion`.
unsafe impl Send for Sighting {}

impl Sighting {
    /// The payload was found in the node with this version word, which was `seen`.
    #[inline(always)]
    fn new(payload: u64, node: &AtomicU64, seen: u64) -> Sighting {
        Sighting {
            payload,
            node: NonNull::from(node),
            seen,
        }
    }

    /// The payload that was found; what a look-up would find now may be another.
    #[inline(always)]
    pub fn seen_payload(&self) -> u64 {
        self.payload
    }

    /// The payload that a look-up of the key would find now, if that is certain. The index must
    /// still exist.
    #[inline(always)]
    pub fn payload(&self) -> Option<u64> {
        // SAFETY: the node belongs to a living index, which never gives nodes back.
        let word = unsafe { self.node.as_ref() };
        // Acquire as in a look-up: what the payload leads to is at least as new as the node.
        (word.load(Ordering::Acquire) == self.seen).then_some(self.payload)
    }
}

/// What an insertion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// The key is new.
    Inserted(InsertEffect),
    /// The key was there already, with this payload; nothing changed.
    Exists(u64),
}

/// What became of an entry that was to be removed without a change of guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// There was none.
    Missing,
    /// It is gone.
    Done,
    /// It is gone, and its node is empty and stays.
    Emptied,
}

/// How an insertion changed the guards around its key (Silo §4.6).
///
/// A transaction that holds `node` at `before` replaces that by `after` and, when there are
/// `splits`, adds those: they cover what `node` covered before. If it holds `node` at another
/// version, another transaction inserted there, and it cannot commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsertEffect {
    /// The version word of the node that the key belonged to before the insertion.
    pub node: NonNull<AtomicU64>,
    /// What a guard taken just before the insertion had observed.
    pub before: u64,
    /// What a guard taken just after it observes.
    pub after: u64,
    /// The guards of the new siblings that took over parts of the node's key range. A split makes
    /// one; cutting out the range of a new prefix makes up to two.
    pub splits: [Option<NodeVersion>; 2],
}

// SAFETY: the pointer is the address of an atomic word, see `NodeVersion`.
unsafe impl Send for InsertEffect {}
