//! What the queue keeps of the locks, under its latch: how requests are counted, or queued, and who
//! may run.

use kiln_platform::sync::Arc;
use kiln_storage::epoch::Participant;

use super::VllState;
use super::contention::{BitArrays, position};
use crate::access::planned_locking::PlannedLocking;
use crate::shared::locks::counters::{
    Counted, CounterLocks, Counters, is_barred, request, withdraw,
};
use crate::shared::planning::{Footprint, PlannedAhead};

/// What a transaction asks of a ledger.
pub type DemandOf<L> = <<L as Ledger>::Access as PlannedAhead>::Demand;

/// The locks, as the queue of transactions knows them. All methods are called under the queue's
/// latch.
pub trait Ledger: Send + Sized + 'static {
    /// What runs the attempts.
    type Access: PlannedAhead;
    /// What analyses contention.
    type Analysis: Analysis<DemandOf<Self>>;

    /// Whether a transaction's requests are taken back when it leaves the queue; else its attempt
    /// does.
    const TAKES_BACK: bool;

    /// How the locks that were granted to the transaction of an entry are held.
    fn held(txn: u32) -> <Self::Access as PlannedAhead>::Held;

    /// The access of a worker.
    fn access(shared: &Arc<VllState<Self>>, participant: Participant) -> Self::Access;

    /// Makes all requests of the transaction of an entry; whether all are granted at once.
    fn request(&mut self, txn: u32, demand: &DemandOf<Self>) -> bool;

    /// Takes them back.
    fn withdraw(&mut self, demand: &DemandOf<Self>);

    /// Whether nothing that was taken outside of the queue, or unplanned, is in the way.
    fn is_left_to(&self, demand: &DemandOf<Self>) -> bool;
}

/// Selective contention analysis (VLL §2.6): which locks the transactions that were scanned so far
/// want.
pub trait Analysis<D>: Send {
    /// What is kept of a demand until that changes.
    type Marks: Default + Send;

    /// No transactions.
    fn new() -> Self;

    /// Adds a transaction; whether it has nothing in common with those before it.
    fn add(&mut self, demand: &D, marks: &mut Self::Marks) -> bool;

    /// Forgets all transactions.
    fn clear(&mut self);

    /// Forgets a former demand.
    fn forget(marks: &mut Self::Marks);
}

/// None: no scheduler asks.
impl<D> Analysis<D> for () {
    type Marks = ();

    fn new() {}

    fn add(&mut self, _: &D, (): &mut ()) -> bool {
        false
    }

    fn clear(&mut self) {}

    fn forget((): &mut ()) {}
}

/// The counters are beside the records, or in an array: a transaction lets go without the latch.
impl<C: Counters + 'static> Ledger for C {
    type Access = PlannedLocking<CounterLocks<C>>;
    type Analysis = BitArrays;

    const TAKES_BACK: bool = false;

    fn held(_: u32) -> Counted {
        Counted::Planned
    }

    fn access(shared: &Arc<VllState<C>>, participant: Participant) -> Self::Access {
        let counters = shared.queue.with_ledger(|ledger| ledger.clone());
        PlannedLocking::new(
            participant,
            CounterLocks::new(counters, !shared.queue.takes_back()),
        )
    }

    #[inline]
    fn request(&mut self, _: u32, demand: &Footprint) -> bool {
        let mut is_free = true;
        for claim in demand.iter() {
            is_free &= request(self, claim);
        }
        is_free
    }

    fn withdraw(&mut self, demand: &Footprint) {
        for claim in demand.iter() {
            withdraw(self, claim);
        }
    }

    #[inline]
    fn is_left_to(&self, demand: &Footprint) -> bool {
        !demand.iter().any(|claim| is_barred(self, claim))
    }
}

impl Analysis<Footprint> for BitArrays {
    type Marks = Vec<u32>;

    fn new() -> BitArrays {
        BitArrays::new()
    }

    fn add(&mut self, demand: &Footprint, marks: &mut Vec<u32>) -> bool {
        // Hashed when the analysis meets the transaction for the first time.
        if marks.is_empty() {
            marks.extend(demand.iter().map(position));
        }
        BitArrays::add(self, marks)
    }

    fn clear(&mut self) {
        BitArrays::clear(self);
    }

    fn forget(marks: &mut Vec<u32>) {
        marks.clear();
    }
}
