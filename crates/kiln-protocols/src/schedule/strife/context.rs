//! A call in flight, as a batch has it.

use std::mem::offset_of;

use kiln_platform::atomic::prefetch_plain;

use crate::schedule::in_flight::{Carrier, InFlight};
use crate::shared::planning::{Claim, Findings, Footprint};

/// A call in flight, and its place in a batch. Who has it changes from stage to stage: the worker
/// that drew it while it is in no batch, else the worker that has taken the item that it belongs
/// to.
///
/// A batch's contexts are more than a core's cache has, and half of them, or more, were last in
/// another core's. So their lines are asked for some transactions ahead wherever one goes through
/// them.
#[repr(C, align(64))]
pub(super) struct Context {
    /// Data nodes of its records, those that it writes first. Once FUSE has made one cluster of
    /// them, one is enough.
    pub nodes: Vec<u32>,
    /// Whether the data nodes of what it only reads are among them.
    pub is_resolved: bool,
    /// Whether the footprint is that of the call.
    pub is_planned: bool,
    /// Whether there is anything that it only reads.
    pub reads: bool,
    /// Whether it has labelled records that were left then.
    pub leaves: bool,
    /// Whether it runs with locks.
    pub is_residual: bool,
    pub footprint: Footprint,
    pub flight: InFlight,
}

impl Context {
    pub fn new() -> Context {
        let mut footprint = Footprint::default();
        footprint.clear();
        Context {
            flight: InFlight::default(),
            footprint,
            nodes: Vec::new(),
            is_resolved: false,
            is_planned: false,
            reads: false,
            leaves: false,
            is_residual: false,
        }
    }

    /// Adds what its attempts have missed to its plan.
    #[cold]
    pub fn plan_missed(&mut self) {
        for &claim in self.flight.missed() {
            self.footprint.add(claim);
        }
        self.footprint.order(&mut Findings::default());
    }

    /// Asks for the memory in which the next call will be kept with its plan.
    #[inline]
    pub fn fetch_room(&self) {
        self.flight.fetch_room();
        self.footprint.fetch_room();
    }
}

impl Carrier for Context {
    type Claim = Claim;

    #[inline(always)]
    fn flight(&self) -> &InFlight {
        &self.flight
    }

    #[inline(always)]
    fn flight_mut(&mut self) -> &mut InFlight {
        &mut self.flight
    }
}

/// Bytes of a context that the analysis uses, the first ones.
pub(super) const ANALYSED_BYTES: usize = 64;
/// Bytes of a context that most calls use.
pub(super) const USED_BYTES: usize = offset_of!(Context, flight) + InFlight::<Claim>::USED_BYTES;

/// What the analysis uses of a context, apart from what that refers to.
#[inline]
pub(super) fn analysed(context: *const Context) -> *const [u8] {
    std::ptr::slice_from_raw_parts(context.cast::<u8>(), ANALYSED_BYTES)
}

/// Asks for the first so many bytes of a context.
#[inline]
pub(super) fn fetch_context(context: *const Context, bytes: usize) {
    let memory = context.cast::<u8>();
    prefetch_plain(std::ptr::slice_from_raw_parts(memory, bytes), bytes);
}
