//! The memory of an index: nodes of one size that stay nodes of that size until the index dies.

use std::ptr::{NonNull, null_mut};

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::{Mutex, lock};

use super::version;
use crate::slab::Chunks;

/// A pool of nodes. Word 0 of each node is a version word; everything is accessed atomically,
/// because a reader with an outdated address may look at a node at any time.
pub(super) struct Pool {
    node_bytes: usize,
    shards: Box<[Shard]>,
    chunks: Chunks,
}

/// Free nodes, on cache lines of their own: few workers, mostly one, share a shard's mutex.
#[repr(align(128))]
struct Shard(Mutex<Nodes>);

struct Nodes {
    free: *mut AtomicU64,
    bump: *mut u8,
    left: usize,
    next_chunk_bytes: usize,
}

// SAFETY: the pointers lead into the pool's chunks.
unsafe impl Send for Nodes {}

impl Pool {
    const SHARDS: usize = 16;
    const FIRST_CHUNK_BYTES: usize = 4 << 10;
    const CHUNK_BYTES_MAX: usize = 256 << 10;

    /// A pool of nodes of `node_bytes` bytes, a multiple of 64.
    pub(super) fn new(node_bytes: usize) -> Pool {
        assert!(node_bytes.is_multiple_of(64), "nodes are whole cache lines");
        let shards = (0..Self::SHARDS)
            .map(|_| {
                Shard(Mutex::new(Nodes {
                    free: null_mut(),
                    bump: null_mut(),
                    left: 0,
                    next_chunk_bytes: Self::FIRST_CHUNK_BYTES.max(node_bytes),
                }))
            })
            .collect();
        Pool {
            node_bytes,
            shards,
            chunks: Chunks::new(),
        }
    }

    /// A node, already latched, with the version it had before; the rest is zero or left over.
    /// `slot` is the caller's participant slot, and picks the shard.
    ///
    /// # Panics
    /// When the system has no more memory: an index cannot go on without its node.
    pub(super) fn alloc(&self, slot: usize) -> (NonNull<AtomicU64>, u64) {
        let mut nodes = lock(&self.shard(slot).0);
        let node = if let Some(node) = NonNull::new(nodes.free) {
            nodes.free = self.link(node).load(Ordering::Relaxed) as *mut AtomicU64;
            node
        } else {
            if nodes.left < self.node_bytes {
                if let Some(node) = self.steal(&mut nodes) {
                    return self.latched(node);
                }
                let bytes = nodes.next_chunk_bytes;
                let chunk = self.chunks.take(bytes).expect("memory for index nodes");
                nodes.bump = chunk.as_ptr();
                nodes.left = bytes;
                nodes.next_chunk_bytes =
                    (bytes * 2).min(Self::CHUNK_BYTES_MAX.max(self.node_bytes));
            }
            let node = nodes.bump;
            // SAFETY: `left` bytes from `bump` on are ours, and at least one node.
            nodes.bump = unsafe { node.add(self.node_bytes) };
            nodes.left -= self.node_bytes;
            NonNull::new(node.cast()).expect("chunks are not at address 0")
        };
        drop(nodes);
        self.latched(node)
    }

    fn latched(&self, node: NonNull<AtomicU64>) -> (NonNull<AtomicU64>, u64) {
        // SAFETY: the node is in the pool's memory and its first word is a version word.
        let seen = version::latch_unlinked(unsafe { node.as_ref() });
        (node, seen)
    }

    /// Takes the free nodes of another shard over, all but one, which it returns. The worker that
    /// removes entries may be another one than inserts them, and its shard would have all nodes in
    /// the end.
    #[cold]
    fn steal(&self, nodes: &mut Nodes) -> Option<NonNull<AtomicU64>> {
        for shard in &self.shards {
            // The caller's own shard is among them, and locked. A thread that tries another shard
            // waits for no lock.
            if let Ok(mut other) = shard.0.try_lock()
                && let Some(node) = NonNull::new(std::mem::replace(&mut other.free, null_mut()))
            {
                nodes.free = self.link(node).load(Ordering::Relaxed) as *mut AtomicU64;
                return Some(node);
            }
        }
        None
    }

    /// Takes back a node that is unlinked and unlatched, its version raised since it was linked.
    pub(super) fn free(&self, slot: usize, node: NonNull<AtomicU64>) {
        let mut nodes = lock(&self.shard(slot).0);
        // Latched while the link is written over what an outdated reader may be reading.
        // SAFETY: the node is in the pool's memory and its first word is a version word.
        let word = unsafe { node.as_ref() };
        let seen = version::latch_unlinked(word);
        self.link(node).store(nodes.free as u64, Ordering::Relaxed);
        version::unlatch_changed(word, seen);
        nodes.free = node.as_ptr();
    }

    /// Memory that is never given back on its own, zeroed, aligned to cache lines.
    ///
    /// # Panics
    /// When the system has no more memory.
    pub(super) fn take(&self, bytes: usize) -> NonNull<AtomicU64> {
        self.chunks.take(bytes).expect("memory for an index").cast()
    }

    /// Bytes taken from the system, used or not.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.bytes_reserved()
    }

    /// The number of the node that `address` is in, in the order of allocation, and the distance
    /// from its start, if it is in the pool's memory.
    pub(super) fn node_at(&self, address: usize) -> Option<(usize, usize)> {
        let (start, before) = self.chunks.chunk_of(address)?;
        let offset = before + (address - start);
        Some((offset / self.node_bytes, offset % self.node_bytes))
    }

    /// The last word of a free node, which holds the address of the next. The words before it
    /// keep their values, so that an outdated reader still finds a count that is in bounds.
    fn link(&self, node: NonNull<AtomicU64>) -> &AtomicU64 {
        // SAFETY: nodes are `node_bytes` long and live as long as the pool.
        unsafe { node.add(self.node_bytes / 8 - 1).as_ref() }
    }

    fn shard(&self, slot: usize) -> &Shard {
        &self.shards[slot % Self::SHARDS]
    }
}
