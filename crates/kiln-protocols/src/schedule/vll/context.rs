//! A transaction in flight: what travels from the worker that drew it to the one that runs it.

use std::cell::UnsafeCell;

use crate::canary::Canary;
use crate::schedule::in_flight::InFlight;
use crate::shared::planning::{Claim, Footprint};

/// The place of a transaction in the queue, and which of its users it means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub node: u32,
    pub sequence: u64,
}

/// What a transaction asks for. Not changed while it is in the queue, where others look at it.
#[derive(Default)]
pub(super) struct Plan {
    pub footprint: Footprint,
    /// The claims' positions in the bit arrays of the contention analysis, with the lowest bit for
    /// exclusive ones; made when that first meets the transaction (VLL §2.6). Touched under the queue's
    /// latch alone, or when the transaction is not in the queue.
    positions: UnsafeCell<Vec<u32>>,
}

// SAFETY: the cell is used under the queue's latch, or by whoever has the plan to itself.
unsafe impl Sync for Plan {}

impl Plan {
    /// The plan was made anew.
    pub fn changed(&mut self) {
        // The positions of a former transaction would hide what this one asks for.
        if !Canary::ScaHashReused.sings() {
            self.positions.get_mut().clear();
        }
    }

    /// The positions, made by `position` if they are not there.
    ///
    /// # Safety
    /// The caller has the latch of the queue that the plan's transaction is in, and keeps it as long as
    /// the result.
    pub unsafe fn positions(&self, position: impl Fn(Claim) -> u32) -> &[u32] {
        // SAFETY: by the contract nobody else uses the cell.
        let positions = unsafe { &mut *self.positions.get() };
        if positions.is_empty() {
            positions.extend(self.footprint.claims().iter().map(|&claim| position(claim)));
        }
        positions
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
    /// It has run, and is on its way to the manager to leave the queue.
    Ends,
    /// On its way back, for good.
    Left,
}

/// A call in flight, with its place in the queue.
pub(super) struct Context {
    pub flight: InFlight,
    /// Pointed to by the queue while the transaction is in it.
    pub plan: Box<Plan>,
    /// The worker that drew it.
    pub home: u32,
    /// Whether the plan is made, and no attempt has failed by it.
    pub is_planned: bool,
    pub place: Place,
    pub stage: Stage,
}

impl Context {
    pub fn new(home: u32) -> Box<Context> {
        let mut plan = Box::<Plan>::default();
        plan.footprint.clear();
        Box::new(Context {
            flight: InFlight::default(),
            plan,
            home,
            is_planned: false,
            place: Place::default(),
            stage: Stage::Home,
        })
    }
}
