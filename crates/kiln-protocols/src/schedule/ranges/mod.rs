//! Locks on ranges of keys, kept under the latch of a queue of transactions: [`vll`](super::vll) with other locks.
//!
//! Source: K. Ren, A. Thomson, D. J. Abadi, *VLL: a lock manager redesign for main memory database systems*, VLDB
//! Journal 24, 2015: §2.7 VLLR, §3.4.1 the two lock managers that it is compared with.
//!
//! What is locked, and how ranges become nodes of a hierarchy of prefixes: [`ranges`](crate::shared::ranges). How attempts
//! run: [`range_locking`](crate::access::range_locking). Who runs when: [`vll`](super::vll).
//!
//! | protocol | its locks |
//! |---|---|
//! | `vllr`, `vllr-sca` | `counters.rs`: each node counts its requests in four modes; nobody is named |
//! | `range-map` | `map.rs`: an ordered map of ranges, cut into fragments where they overlap, each with a queue |
//! | `range-hierarchical` | `hierarchical.rs`: a hash table of the nodes, each with a queue of requests in four modes |
//!
//! The latter two name who waits for whom, so whoever leaves says who has all its locks now; of `vllr`, as of `vll`, the
//! first in the queue may run. All requests are made, and taken back, under the queue's latch in all three.

mod counters;
mod hierarchical;
mod map;
mod queues;
pub(crate) mod registration;

use kiln_platform::sync::Arc;

use super::vll::{Ledger, SharedVll};
use crate::shared::ranges::plan::Request;
use crate::shared::ranges::{Naming, RangeClaim, RangeManager, RangePlan};

pub use counters::PrefixCounters;
pub use hierarchical::HierarchicalLocks;
pub use map::RangeMap;

/// Locks on ranges, for attempts that meet what they did not plan. An attempt's transaction is known by its place in the queue, or
/// as its worker's.
pub trait RangeLedger: Ledger {
    /// What an attempt has taken.
    type Own: OwnRanges<Self::Naming>;
    /// How nodes are named.
    type Naming: Naming;

    /// Takes a claim, if nobody has to be waited for; under the queue's latch.
    fn take(&mut self, own: &mut Self::Own, txn: u32, claim: &RangeClaim) -> bool;

    /// Lets all go that was taken; under the queue's latch. `granted` as in [`Ledger::withdraw`].
    fn release(&mut self, own: &mut Self::Own, txn: u32, granted: &mut Vec<u32>);
}

/// What an attempt has taken besides its plan.
pub trait OwnRanges<N>: Default + Send {
    /// An attempt has begun, which holds what it planned.
    fn hold(&mut self, plan: &RangePlan<N>);

    /// Whether there is anything of a claim that the attempt does not have; asked before it is taken.
    fn wants(&mut self, claim: &RangeClaim) -> bool;

    /// Whether nothing was taken.
    fn is_empty(&self) -> bool;

    /// The attempt has ended.
    fn forget(&mut self);
}

/// What was taken, where it has to be named to be given back.
#[derive(Default)]
pub struct Taken {
    claims: Vec<RangeClaim>,
    /// For the nodes of one claim.
    nodes: Vec<Request>,
}

impl<N> OwnRanges<N> for Taken {
    fn hold(&mut self, _: &RangePlan<N>) {}

    fn wants(&mut self, claim: &RangeClaim) -> bool {
        // The last ones first: what is asked for again was most often asked for just before.
        !(self.claims.iter().rev().take(64)).any(|taken| taken.covers(claim))
    }

    fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    fn forget(&mut self) {}
}

/// One worker's side of locks that are kept in a queue.
pub struct QueueSide<L: RangeLedger> {
    shared: Arc<SharedVll<L>>,
    own: L::Own,
    /// The attempt's transaction.
    txn: u32,
    /// That of the worker's statements.
    statements: u32,
}

impl<L: RangeLedger> QueueSide<L> {
    /// The side of the worker with this number.
    pub fn new(shared: Arc<SharedVll<L>>, worker: u32) -> QueueSide<L> {
        let statements = queues::STATEMENTS + worker;
        QueueSide {
            shared,
            own: L::Own::default(),
            txn: statements,
            statements,
        }
    }
}

impl<L: RangeLedger> RangeManager for QueueSide<L> {
    type Naming = L::Naming;

    #[inline]
    fn hold(&mut self, plan: &RangePlan<L::Naming>, txn: u32) {
        self.own.hold(plan);
        self.txn = txn;
    }

    fn take(&mut self, claim: &RangeClaim) -> bool {
        let (own, txn) = (&mut self.own, self.txn);
        !own.wants(claim) || (self.shared).with_ledger(|ledger| ledger.take(own, txn, claim))
    }

    #[inline]
    fn release(&mut self) {
        let (own, txn) = (&mut self.own, self.txn);
        if !own.is_empty() {
            (self.shared).release(|ledger, granted| ledger.release(own, txn, granted));
        }
        self.own.forget();
        self.txn = self.statements;
    }
}
