//! A traditional lock manager of the prefix hierarchy (VLL §3.4.1, “Hierarchical Lock Manager”): `range-hierarchical`.
//!
//! A hash table from nodes to queues of requests. It locks the nodes that `vllr` counts, intentions on all nodes above included,
//! and so has as many queues to enter and to leave as that has counters. Locks vanish with their last request.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::Arc;
use kiln_storage::epoch::Participant;
use kiln_storage::table::WORKERS_MAX;

use super::queues::{NONE, Queue, Queues, Word, is_of_statements};
use super::{QueueSide, RangeLedger, Taken};
use crate::access::range_locking::RangeLocking;
use crate::schedule::vll::{IN_FLIGHT_MAX, Ledger, SharedVll};
use crate::shared::ranges::nodes::{Modes, Node, Path};
use crate::shared::ranges::plan::{Naming, Request, merge};
use crate::shared::ranges::{RangeClaim, RangePlan};

/// Nodes are known by sixty bits of their hashes.
pub struct Hashes;

impl Naming for Hashes {
    const BY_NODES: bool = true;

    #[inline(always)]
    fn name(node: Node) -> u64 {
        node.hash >> 4
    }
}

/// A node that somebody wants.
struct Lock {
    name: AtomicU64,
    /// The next lock of its bucket, or the next free one.
    next: Word,
    /// The first request.
    queue: Word,
}

impl Lock {
    // Relaxed, as where it is stored: the latch orders them.
    #[inline(always)]
    fn name(&self) -> u64 {
        self.name.load(Ordering::Relaxed)
    }
}

/// The lock table, in its place under the queue's latch.
pub struct HierarchicalLocks {
    /// By hash: the first lock.
    buckets: Box<[Word]>,
    locks: Vec<Lock>,
    free: u32,
    queues: Queues,
}

impl Default for HierarchicalLocks {
    fn default() -> HierarchicalLocks {
        HierarchicalLocks {
            buckets: (0..1 << HierarchicalLocks::BUCKET_BITS)
                .map(|_| Word::new(NONE))
                .collect(),
            locks: Vec::with_capacity(WORKERS_MAX * IN_FLIGHT_MAX),
            free: NONE,
            queues: Queues::default(),
        }
    }
}

impl HierarchicalLocks {
    /// The number of buckets as a power of two, as many as the traditional lock table has.
    const BUCKET_BITS: u32 = 15;

    #[inline(always)]
    fn bucket(name: u64) -> usize {
        (name >> (60 - HierarchicalLocks::BUCKET_BITS)) as usize
    }

    /// The lock of a node that somebody wants.
    #[inline]
    fn find(&self, name: u64) -> Option<u32> {
        let mut at = self.buckets[HierarchicalLocks::bucket(name)].get();
        while at != NONE {
            let lock = &self.locks[at as usize];
            if lock.name() == name {
                return Some(at);
            }
            at = lock.next.get();
        }
        None
    }

    /// The lock of a node.
    #[inline]
    fn make(&mut self, name: u64) -> u32 {
        if let Some(known) = self.find(name) {
            return known;
        }
        let bucket = &self.buckets[HierarchicalLocks::bucket(name)];
        let at = match self.free {
            NONE => {
                self.locks.push(Lock {
                    name: AtomicU64::new(name),
                    next: Word::new(bucket.get()),
                    queue: Word::new(NONE),
                });
                self.locks.len() as u32 - 1
            }
            free => {
                let lock = &self.locks[free as usize];
                self.free = lock.next.get();
                lock.name.store(name, Ordering::Relaxed);
                lock.next.set(bucket.get());
                free
            }
        };
        bucket.set(at);
        at
    }

    /// Whether none of these has, or waits for, a node in a way that is in the way.
    fn is_free(&self, of: impl Fn(u32) -> bool, request: &Request) -> bool {
        self.find(request.name()).is_none_or(|at| {
            let queue = Queue::at(self.locks[at as usize].queue.get());
            !self.queues.is_taken(queue, of, request.modes())
        })
    }

    fn add(&mut self, txn: u32, request: Request) {
        let at = self.make(request.name());
        let lock = &self.locks[at as usize];
        let mut queue = Queue::at(lock.queue.get());
        self.queues.request(&mut queue, txn, request.modes());
        lock.queue.set(queue.first());
    }

    fn remove(&mut self, txn: u32, name: u64, granted: &mut Vec<u32>) {
        let Some(at) = self.find(name) else {
            return;
        };
        let lock = &self.locks[at as usize];
        let mut queue = Queue::at(lock.queue.get());
        self.queues.withdraw(&mut queue, txn, granted);
        lock.queue.set(queue.first());
        if !queue.is_empty() {
            return;
        }
        let mut place = &self.buckets[HierarchicalLocks::bucket(name)];
        while place.get() != at {
            place = &self.locks[place.get() as usize].next;
        }
        place.set(lock.next.get());
        lock.next.set(self.free);
        self.free = at;
    }
}

impl Ledger for HierarchicalLocks {
    type Access = RangeLocking<QueueSide<HierarchicalLocks>>;
    type Analysis = ();

    const TAKES_BACK: bool = true;
    const HANDS_OVER: bool = true;

    fn held(txn: u32) -> u32 {
        txn
    }

    fn access(shared: &Arc<SharedVll<Self>>, participant: Participant) -> Self::Access {
        let side = QueueSide::new(shared.clone(), participant.slot() as u32);
        RangeLocking::new(participant, side)
    }

    fn request(&mut self, txn: u32, demand: &RangePlan<Hashes>) -> bool {
        for request in demand.requests() {
            self.add(txn, *request);
        }
        self.queues.has_all(txn)
    }

    fn withdraw(&mut self, txn: u32, demand: &RangePlan<Hashes>, granted: &mut Vec<u32>) {
        for request in demand.requests() {
            self.remove(txn, request.name(), granted);
        }
    }

    fn is_left_to(&self, demand: &RangePlan<Hashes>) -> bool {
        let mut requests = demand.requests().iter();
        requests.all(|request| self.is_free(is_of_statements, request))
    }
}

impl RangeLedger for HierarchicalLocks {
    type Own = Taken;
    type Naming = Hashes;

    fn take(&mut self, own: &mut Taken, txn: u32, claim: &RangeClaim) -> bool {
        nodes(claim, &mut own.nodes);
        let mut wanted = own.nodes.iter();
        let is_free = wanted.all(|request| self.is_free(|other| other != txn, request));
        if is_free {
            for request in &own.nodes {
                self.add(txn, *request);
            }
            own.claims.push(*claim);
        }
        is_free
    }

    fn release(&mut self, own: &mut Taken, txn: u32, granted: &mut Vec<u32>) {
        for claim in own.claims.drain(..) {
            nodes(&claim, &mut own.nodes);
            for request in &own.nodes {
                self.remove(txn, request.name(), granted);
            }
        }
    }
}

/// The nodes that a claim asks for.
fn nodes(claim: &RangeClaim, nodes: &mut Vec<Request>) {
    nodes.clear();
    Path::default().nodes_of(&claim.widened(), |node, modes: Modes| {
        nodes.push(Request::new(Hashes::name(node), modes));
    });
    merge(nodes);
}
