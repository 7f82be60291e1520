//! Locks on ranges of keys: counters under the latch of a queue of transactions, or a lock manager
//! with latches of its own.
//!
//! Source: K. Ren, A. Thomson, D. J. Abadi, *VLL: a lock manager redesign for main memory database
//! systems*, VLDB Journal 24, 2015: §2.7 VLLR, §3.4.1 the two lock managers that it is compared
//! with.
//!
//! What is locked, and how ranges become nodes of a hierarchy of prefixes:
//! [`ranges`](crate::shared::ranges). How attempts run:
//! [`range_locking`](crate::access::range_locking).
//!
//! | protocol | its locks | who runs when |
//! |---|---|---|
//! | `vllr`, `vllr-sca` | `counters.rs`: each node counts its requests in four modes, and names no transaction | [`vll`](super::vll), with its queue |
//! | `range-map` | `standard.rs`, `map.rs`: an ordered map of ranges, cut into fragments where they overlap, each with a queue; one latch | a worker waits for its locks, then runs |
//! | `range-hierarchical` | `hierarchical.rs`: a hash table of the nodes, each with requests in four modes; a latch for each bucket | as `range-map` |

mod counters;
mod hierarchical;
mod map;
mod queues;
pub(crate) mod registration;
mod signals;
mod standard;

use kiln_platform::sync::Arc;
use kiln_storage::table::WORKERS_MAX;

use super::vll::{IN_FLIGHT_MAX, Ledger, VllState};
use crate::shared::ranges::{Naming, RangeClaim, RangeManager, RangePlan};

pub use counters::PrefixCounters;
pub use hierarchical::{HierarchicalLocks, HierarchicalSide};
pub use standard::{MapLocks, MapSide};

/// Locks on ranges, for attempts that meet what they did not plan. An attempt's transaction is
/// known by its place in the queue, or as its worker's.
pub trait RangeLedger: Ledger {
    /// What an attempt has taken.
    type Own: OwnRanges<Self::Naming>;
    /// How nodes are named.
    type Naming: Naming;

    /// Takes a claim, if no transaction has to be waited for; under the queue's latch.
    fn take(&mut self, own: &mut Self::Own, txn: u32, claim: &RangeClaim) -> bool;

    /// Lets all go that was taken; under the queue's latch.
    fn release(&mut self, own: &mut Self::Own, txn: u32);
}

/// What an attempt has taken besides its plan.
pub trait OwnRanges<N>: Default + Send {
    /// An attempt has begun, which holds what it planned.
    fn hold(&mut self, plan: &RangePlan<N>);

    /// Whether there is anything of a claim that the attempt does not have; asked before it is
    /// taken.
    fn wants(&mut self, claim: &RangeClaim) -> bool;

    /// Whether nothing was taken.
    fn is_empty(&self) -> bool;

    /// The attempt has ended.
    fn forget(&mut self);
}

/// Transactions in the queue have lower numbers; those of statements have that of their worker
/// above.
const STATEMENTS: u32 = (WORKERS_MAX * IN_FLIGHT_MAX) as u32;

/// One worker's side of locks that are kept in a queue.
pub struct QueueSide<L: RangeLedger> {
    shared: Arc<VllState<L>>,
    own: L::Own,
    /// The attempt's transaction.
    txn: u32,
    /// That of the worker's statements.
    statements: u32,
}

impl<L: RangeLedger> QueueSide<L> {
    /// The side of the worker with this number.
    pub fn new(shared: Arc<VllState<L>>, worker: u32) -> QueueSide<L> {
        let statements = STATEMENTS + worker;
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
            (self.shared).with_ledger(|ledger| ledger.release(own, txn));
        }
        self.own.forget();
        self.txn = self.statements;
    }
}
