//! A transaction in flight: what travels from the worker that drew it to the one that runs it.

use std::cell::UnsafeCell;

use kiln_platform::atomic::{AtomicBool, Ordering};

use super::ledger::{Analysis, DemandOf, Ledger};
use crate::canary::Canary;
use crate::schedule::in_flight::{Carrier, InFlight, Own};
use crate::shared::planning::{ClaimOf, Demand};

/// A transaction's entry in the queue, and which of its users it means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueEntry {
    pub node: u32,
    pub sequence: u64,
}

/// What a transaction asks for. Not changed while it is in the queue, where others look at it.
pub(super) struct Plan<L: Ledger> {
    pub demand: DemandOf<L>,
    /// What the contention analysis keeps of it, made when that first meets the transaction (VLL
    /// §2.6). Touched under the queue's latch alone, or when the transaction is not in the queue.
    marks: UnsafeCell<<L::Analysis as Analysis<DemandOf<L>>>::Marks>,
    /// Whether its transaction lingers in the queue.
    lingers: AtomicBool,
}

// SAFETY: a thread uses the cell under the queue's latch, or has the plan to itself.
unsafe impl<L: Ledger> Sync for Plan<L> {}

impl<L: Ledger> Default for Plan<L> {
    fn default() -> Plan<L> {
        Plan {
            demand: Default::default(),
            marks: UnsafeCell::default(),
            lingers: AtomicBool::new(false),
        }
    }
}

impl<L: Ledger> Plan<L> {
    /// What it asks for, looked at by a thread that need not have made the plan.
    #[inline(always)]
    pub fn wanted(&self) -> &DemandOf<L> {
        self.demand.note_reads();
        &self.demand
    }

    /// The plan was made anew.
    pub fn changed(&mut self) {
        // The positions of a former transaction would hide what this one asks for.
        if !Canary::ScaHashReused.sings() {
            L::Analysis::forget(self.marks.get_mut());
        }
    }

    /// Its transaction comes to the queue.
    pub fn enters(&mut self) {
        *self.lingers.get_mut() = false;
    }

    /// Its transaction has ended, and stays in the queue for a while.
    #[inline]
    pub fn linger(&self) {
        // Release pairs with the acquire below: who goes past it sees what it has done.
        self.lingers.store(true, Ordering::Release);
    }

    /// Whether its transaction lingers.
    #[inline]
    pub fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Acquire)
    }

    /// Adds the transaction to those that a contention analysis has scanned; whether it has nothing
    /// in common with them.
    ///
    /// # Safety
    /// The caller has the latch of the queue that the plan's transaction is in.
    pub unsafe fn add_to(&self, analysis: &mut L::Analysis) -> bool {
        // SAFETY: the caller has the latch of the queue that the transaction is in, so no other
        // thread uses the cell.
        let marks = unsafe { &mut *self.marks.get() };
        analysis.add(self.wanted(), marks)
    }
}

/// Where a transaction is, under a lock manager that is a thread of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// At its worker.
    Home,
    /// As `Home`; in the queue for statements, which its worker alone can run.
    Statements,
    /// On its way to the manager, for its locks.
    Asks,
    /// On its way back, with its locks.
    Granted,
    /// On its way back, as the queue was full.
    Refused,
    /// On its way back, as its time was over.
    Expired,
    /// On its way back, as statements have what it wants, and those behind it would wait for their
    /// client as well.
    Barred,
    /// It has run, and is on its way to the manager to leave the queue.
    Ends,
    /// On its way back, for good.
    Done,
}

/// A call in flight, with its entry in the queue.
pub(super) struct Context<L: Ledger> {
    pub flight: InFlight<ClaimOf<L::Access>>,
    /// Pointed to by the queue while the transaction is in it.
    pub plan: Own<Plan<L>>,
    /// The worker that drew it.
    pub home: u32,
    /// Whether the plan is made, and no attempt has failed by it.
    pub is_planned: bool,
    pub entry: QueueEntry,
    pub stage: Stage,
    /// Whether statements had what it wants when it was in the queue, and may have it still.
    pub was_barred: bool,
}

impl<L: Ledger> Context<L> {
    pub fn new(home: u32) -> Box<Context<L>> {
        let mut plan = Own::new(Plan::<L>::default());
        plan.demand.clear();
        Box::new(Context {
            flight: InFlight::default(),
            plan,
            home,
            is_planned: false,
            entry: QueueEntry::default(),
            stage: Stage::Home,
            was_barred: false,
        })
    }
}

impl<L: Ledger> Carrier for Context<L> {
    type Claim = ClaimOf<L::Access>;

    #[inline(always)]
    fn flight(&self) -> &InFlight<ClaimOf<L::Access>> {
        &self.flight
    }

    #[inline(always)]
    fn flight_mut(&mut self) -> &mut InFlight<ClaimOf<L::Access>> {
        &mut self.flight
    }
}
