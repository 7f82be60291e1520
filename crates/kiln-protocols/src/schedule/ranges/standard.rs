//! A traditional lock manager of ranges (VLL §3.4.1, “Standard Range Lock Manager”): `range-map`.
//!
//! A [map](RangeMap) under a latch of its own. A worker asks for all ranges of its transaction in
//! one critical section and, if it has not got them all, waits outside of it until a worker that
//! lets go of its ranges says so.
//!
//! In each queue transactions are in the order of their critical sections, so none waits in a
//! circle. What a plan has missed is taken if it is free, and not waited for.

use kiln_platform::schedule::point;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_procedure::AbortCause;

use super::map::{Keys, RangeMap};
use super::signals::Signals;
use crate::shared::core_slots::CoreSlots;
use crate::shared::ranges::{RangeClaim, RangeManager, RangePlan};

/// The map with its latch.
#[derive(Default)]
#[repr(align(128))]
struct Latched(Mutex<RangeMap>);

/// The locks of all workers.
pub struct MapLocks {
    map: Latched,
    signals: Signals,
}

impl MapLocks {
    /// For workers that share these core slots.
    pub fn new(core_slots: CoreSlots) -> MapLocks {
        MapLocks {
            map: Latched::default(),
            signals: Signals::new(core_slots),
        }
    }
}

/// A worker's side of the locks. Its number is that of its transaction.
pub struct MapSide {
    locks: Arc<MapLocks>,
    worker: u32,
    deadline_ns: Option<u64>,
    /// What the attempt has asked for.
    claims: Vec<RangeClaim>,
    /// The workers that have all their locks because of what this one lets go.
    granted: Vec<u32>,
}

impl MapSide {
    /// The side of the worker with this number.
    pub fn new(locks: Arc<MapLocks>, worker: u32) -> MapSide {
        MapSide {
            locks,
            worker,
            deadline_ns: None,
            claims: Vec::new(),
            granted: Vec::new(),
        }
    }
}

impl RangeManager for MapSide {
    type Naming = Keys;
    const TAKES_PLANS: bool = true;

    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.deadline_ns = deadline_ns;
    }

    fn take_plan(&mut self, plan: &RangePlan<Keys>) -> Result<(), AbortCause> {
        let (locks, worker) = (&*self.locks, self.worker);
        self.claims.extend_from_slice(plan.claims());
        let mut map = lock(&locks.map.0);
        for claim in plan.claims() {
            map.add(worker, claim);
        }
        if map.has_all(worker) {
            return Ok(());
        }
        locks.signals.clear(worker);
        drop(map);
        point("ranges.waits");
        let waited = locks.signals.wait(worker, self.deadline_ns);
        // It may have got them at the last moment; else they are taken back with all that the
        // attempt has.
        waited.or_else(|cause| match lock(&locks.map.0).has_all(worker) {
            true => Ok(()),
            false => Err(cause),
        })
    }

    fn take(&mut self, claim: &RangeClaim) -> bool {
        // The last ones first: what is asked for again was most often asked for just before.
        let mut known = self.claims.iter().rev().take(64);
        if known.any(|known| known.covers(claim)) {
            return true;
        }
        let worker = self.worker;
        let mut map = lock(&self.locks.map.0);
        let is_free = map.is_free(|other| other != worker, claim);
        if is_free {
            map.add(worker, claim);
            self.claims.push(*claim);
        }
        is_free
    }

    fn release(&mut self) {
        if self.claims.is_empty() {
            return;
        }
        let mut map = lock(&self.locks.map.0);
        for claim in self.claims.drain(..) {
            map.take_back(self.worker, &claim, &mut self.granted);
        }
        drop(map);
        for worker in self.granted.drain(..) {
            self.locks.signals.grant(worker);
        }
    }
}
