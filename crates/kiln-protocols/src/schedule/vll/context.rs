//! A transaction in flight: what travels from the worker that drew it to the one that runs it.

use std::cell::UnsafeCell;

use kiln_history::Moment;
use kiln_procedure::{Frame, Program};

use crate::serve::Call;
use crate::shared::planning::{Claim, Footprint};
use crate::{Outcome, canary::Canary};

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

/// A call in flight with all that its attempts need. A worker has some of them and uses them again and
/// again; in the steady state nothing is allocated.
pub(super) struct Context {
    pub call: Call,
    /// The call's program: kept by the call, or by the caller who waits for its end.
    pub program: *const Program,
    pub frame: Frame,
    /// Pointed to by the queue while the transaction is in it.
    pub plan: Box<Plan>,
    /// What failed attempts missed.
    pub missed: Vec<Claim>,
    /// The worker that drew it.
    pub home: u32,
    /// Attempts that have failed.
    pub failures: u32,
    /// Whether the plan is made, and no attempt has failed by it.
    pub is_planned: bool,
    pub invoked: Option<Moment>,
    /// There when it has ended.
    pub outcome: Option<Outcome>,
    /// Whether its caller knows how it ended.
    pub has_ended: bool,
    pub place: Place,
    pub stage: Stage,
}

// SAFETY: the program is kept until the call has ended, whoever runs it; records are followed only by an
// attempt that holds them, inside of an epoch.
unsafe impl Send for Context {}

impl Context {
    pub fn new(home: u32) -> Box<Context> {
        let mut plan = Box::<Plan>::default();
        plan.footprint.clear();
        Box::new(Context {
            call: Call::default(),
            program: std::ptr::null(),
            frame: Frame::new(),
            plan,
            missed: Vec::new(),
            home,
            failures: 0,
            is_planned: false,
            invoked: None,
            outcome: None,
            has_ended: false,
            place: Place::default(),
            stage: Stage::Home,
        })
    }

    /// The program of the call that was drawn.
    pub fn program<'a>(&self) -> &'a Program {
        // SAFETY: set when the call was drawn, and kept until it has ended.
        unsafe { &*self.program }
    }
}
