//! The list of the queue: nodes in an array, linked in the order of the requests, and what is
//! counted under the latch.

use std::mem::offset_of;

use kiln_platform::plain;

use crate::schedule::vll::context::{Context, Plan, QueueEntry};
use crate::schedule::vll::ledger::Ledger;
use crate::schedule::vll::limit::Limit;
use crate::shared::locks::counters::BesideRecords;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// Nodes are touched under the latch alone, so they do not have cache lines of their own: those of
/// the transactions that run are few, and side by side mostly.
#[repr(align(32))]
pub(super) struct Node<L: Ledger> {
    pub(super) previous: u32,
    pub(super) next: u32,
    /// Counts the node's users.
    pub(super) sequence: u64,
    /// The transaction while it waits.
    pub(super) waiting: Option<Box<Context<L>>>,
    /// Of the transaction while it is in the queue.
    plan: *const Plan<L>,
}

impl<L: Ledger> Node<L> {
    /// Shows what its transaction asks for, which comes into the queue.
    #[inline]
    pub(super) fn show(&mut self, plan: &Plan<L>) {
        self.plan = plan;
    }

    /// What its transaction asks for.
    #[inline]
    pub(super) fn plan(&self) -> &Plan<L> {
        // SAFETY: there from `show` until `unlink`. While its transaction is in the queue a plan
        // stays where it is, and its worker does not change it.
        let plan = unsafe { self.plan.as_ref() };
        plan.expect("a node in the list has a transaction")
    }
}

/// A node that the caller looks at.
#[inline(always)]
pub(super) fn node<L: Ledger>(nodes: &[Node<L>], number: u32) -> &Node<L> {
    let node = &nodes[number as usize];
    plain::reads_one(node);
    node
}

/// A node that the caller changes.
#[inline(always)]
pub(super) fn node_mut<L: Ledger>(nodes: &mut [Node<L>], number: u32) -> &mut Node<L> {
    let node = &mut nodes[number as usize];
    plain::reads_one(&raw const *node);
    plain::writes_one(&raw const *node);
    node
}

/// What each critical section uses comes first, in the cache line that the latch itself is in.
#[repr(C)]
pub(super) struct List<L: Ledger> {
    pub(super) nodes: Box<[Node<L>]>,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) free: u32,
    pub(super) length: u32,
    pub(super) waiting: u32,
    /// Whether a worker wants to be alone: no transaction comes in.
    pub(super) is_alone: bool,
    /// Transactions that have left.
    pub(super) departures: u64,
    pub(super) limit: Limit,
    pub(super) ledger: L,
    /// Transactions of several statements that are open outside of the queue.
    pub(super) open: usize,
    /// The first one, if it waits for a transaction outside, and since when.
    pub(super) barred: Option<(QueueEntry, u64)>,
}

const _: () = assert!(
    offset_of!(List<BesideRecords>, limit) + Limit::HOT_BYTES <= 56,
    "with the latch it is a cache line"
);

// SAFETY: the plans are looked at under the latch, and their transactions are in the queue then.
unsafe impl<L: Ledger> Send for List<L> {}

impl<L: Ledger> List<L> {
    /// Without transactions, with room for so many.
    pub(super) fn new(ledger: L, capacity: usize) -> List<L> {
        let node = |number: usize| Node {
            previous: NONE,
            next: if number + 1 < capacity {
                number as u32 + 1
            } else {
                NONE
            },
            sequence: 0,
            waiting: None,
            plan: std::ptr::null(),
        };
        List {
            nodes: (0..capacity).map(node).collect(),
            first: NONE,
            last: NONE,
            free: if capacity > 0 { 0 } else { NONE },
            length: 0,
            waiting: 0,
            is_alone: false,
            departures: 0,
            limit: Limit::new(),
            ledger,
            open: 0,
            barred: None,
        }
    }

    /// Takes one out that lingers, unless another worker has done so already.
    #[inline]
    pub(super) fn unlink_lingering(&mut self, entry: QueueEntry) {
        if node(&self.nodes, entry.node).sequence == entry.sequence {
            self.unlink(entry);
            self.limit.ended();
        }
    }

    /// Where a transaction waits, or wants to be alone, takes those out that linger at the head;
    /// returns whether there were any.
    #[inline]
    pub(super) fn pass_lingering(&mut self) -> bool {
        let before = self.departures;
        while (self.waiting > 0 || self.is_alone) && self.first != NONE {
            let node = node(&self.nodes, self.first);
            if node.waiting.is_some() || !node.plan().lingers() {
                break;
            }
            let (node, sequence) = (self.first, node.sequence);
            self.unlink_lingering(QueueEntry { node, sequence });
        }
        self.departures > before
    }

    #[inline]
    pub(super) fn unlink(&mut self, entry: QueueEntry) {
        let node = node_mut(&mut self.nodes, entry.node);
        debug_assert!(node.sequence == entry.sequence && node.waiting.is_none());
        let (previous, next) = (node.previous, node.next);
        node.plan = std::ptr::null();
        // A worker that names its entry later names no transaction.
        node.sequence += 1;
        node.next = std::mem::replace(&mut self.free, entry.node);
        match previous {
            NONE => self.first = next,
            previous => node_mut(&mut self.nodes, previous).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => node_mut(&mut self.nodes, next).previous = previous,
        }
        self.length -= 1;
        self.departures += 1;
    }
}
