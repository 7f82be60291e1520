//! Transactions that travel from owner to owner: what is done with the records of a partition is
//! done by its owner.
//!
//! A call is a *passenger* of its demand, and so is its plan. The worker that draws it looks no
//! record up: it sends the demand to the partition of the first record that the call's arguments
//! name ([`Owners`]). That owner plans the call as far as the records are its own, and sends it on;
//! so the plan flows from owner to owner until it is made.
//!
//! When all its locks are granted, the demand is sent to the partition of the first record, and
//! *ready* there. The owner runs the transaction until the next operation belongs to another
//! partition, and sends it on; so it flows along the operations of its procedure. Where it ends,
//! that owner commits or undoes it, and sends its locks back and the demand home. One that is
//! planned, locked and run in one partition is sent there and home.
//!
//! Who runs it uses its own access, into which what the attempt has so far is exchanged
//! ([`Parked`]). Memory is that of the worker that runs; the epoch is held by the worker that drew
//! the call, for all its transactions: it begins no other one in an epoch that is not the newest
//! any more, until it can enter that.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_procedure::executor::Ran;
use kiln_storage::table::Part;

use super::locks::{GrantedLocks, Held};
use super::messages::{ACT, RELEASE};
use super::partition::Core;
use super::{Demand, OwnedState, PartitionTable};
use crate::access::planned_locking::{Parked, PlannedLocking};
use crate::canary::Canary;
use crate::direct::Direct;
use crate::phases::{Phased, Phases};
use crate::schedule::in_flight::InFlight;
use crate::shared::planning::{Footprint, Planned, Scout, Whereabouts};

/// A call in flight, apart from its demand.
pub(super) struct Passenger<T: PartitionTable> {
    pub flight: InFlight,
    pub footprint: Footprint,
    /// What plans it.
    scout: Scout,
    /// What its attempt has, between two partitions.
    pub parked: Parked<GrantedLocks<T>>,
    pub stage: Stage,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its plan has begun.
    Plan,
    /// Its plan is made.
    Planned,
    /// Its attempt has begun.
    UnderWay,
}

impl<T: PartitionTable> Default for Passenger<T> {
    fn default() -> Passenger<T> {
        Passenger {
            flight: InFlight::default(),
            footprint: Footprint::default(),
            scout: Scout::new(Planned {
                is_divided: true,
                is_run_soon: true,
                ..Planned::default()
            }),
            parked: Parked::default(),
            stage: Stage::Planned,
        }
    }
}

impl<T: PartitionTable> Passenger<T> {
    /// Plans it as far as its records are at `whereabouts`: from its beginning, with the epoch that
    /// its worker holds, or from where the plan has left off. Says where that goes on, or that it
    /// is made.
    pub fn plan(
        &mut self,
        phases: &mut Phases,
        whereabouts: Owners<'_, T>,
        begins: Option<u64>,
    ) -> Option<u16> {
        self.stage = Stage::Plan;
        let (scout, footprint) = (&mut self.scout, &mut self.footprint);
        (self.flight).plan_part(phases, scout, whereabouts, begins, footprint)
    }
}

/// Where a plan is made: at the owner of a partition, or where none of the data are.
pub(super) struct Owners<'a, T> {
    shared: &'a OwnedState<T>,
    here: Option<u16>,
}

impl<'a, T> Owners<'a, T> {
    /// At no owner.
    pub fn of_none(shared: &'a OwnedState<T>) -> Owners<'a, T> {
        Owners { shared, here: None }
    }
}

impl<T: PartitionTable> Whereabouts for Owners<'_, T> {
    const TRAVELS: bool = true;

    /// Tables that every partition has are anywhere.
    #[inline(always)]
    fn elsewhere(&self, part: Part) -> Option<u16> {
        if part.is_replicated() {
            return None;
        }
        let partition = self.shared.partition_of(part) as u16;
        (self.here != Some(partition)).then_some(partition)
    }

    fn is_outside(&self) -> bool {
        self.here.is_none()
    }
}

/// Plans or runs the transaction of `demand` as far as it belongs to a partition, as the
/// partition's owner: the caller has its latch.
///
/// # Safety
/// The demand was sent to be planned or run here, so that this thread alone may use it and its
/// passenger, which is a [`Passenger<T>`].
pub(super) unsafe fn act<T: PartitionTable>(
    shared: &OwnedState<T>,
    core: &mut Core<T>,
    direct: &mut Direct<PlannedLocking<GrantedLocks<T>>>,
    demand: *mut Demand,
) {
    // SAFETY: the caller says that the demand was sent to be planned or run here, so this thread
    // alone uses it and its passenger, whose type is this one.
    unsafe {
        Demand::note_reads(demand);
        let passenger = &mut *(*demand).passenger.cast::<Passenger<T>>();
        if passenger.stage != Stage::Plan || plan(shared, core, direct, demand, passenger) {
            run(shared, core, direct, demand, passenger);
        }
    }
}

/// Goes on with a plan. Whether it is made, all locks are had, and the transaction begins here.
///
/// # Safety
/// As for [`act`].
unsafe fn plan<T: PartitionTable>(
    shared: &OwnedState<T>,
    core: &mut Core<T>,
    direct: &mut Direct<PlannedLocking<GrantedLocks<T>>>,
    demand: *mut Demand,
    passenger: &mut Passenger<T>,
) -> bool {
    let whereabouts = Owners {
        shared,
        here: Some(core.number),
    };
    let access = direct.access();
    point("owned.plans");
    if let Some(next) = passenger.plan(access.phases(), whereabouts, None) {
        shared.pass_on(core.number, next, demand, ACT);
        return false;
    }
    point("owned.planned");
    passenger.stage = Stage::Planned;
    let planner = access.manager().worker();
    // SAFETY: this thread alone uses the demand, as the caller says, and the plan is made.
    unsafe {
        shared.demand(planner, passenger.footprint.claims(), &mut *demand);
        shared.ask(core, demand)
    }
}

/// Runs a transaction, which has all its locks, as far as it belongs here.
///
/// # Safety
/// As for [`act`].
unsafe fn run<T: PartitionTable>(
    shared: &OwnedState<T>,
    core: &mut Core<T>,
    direct: &mut Direct<PlannedLocking<GrantedLocks<T>>>,
    demand: *mut Demand,
    passenger: &mut Passenger<T>,
) {
    let Passenger {
        flight,
        footprint,
        parked,
        stage,
        ..
    } = passenger;
    let goes_on = std::mem::replace(stage, Stage::UnderWay) == Stage::UnderWay;
    let access = direct.access();
    access.take_over(parked, goes_on);
    access.manager().set_here(Some(core.number));
    point("owned.acts");
    let ran = match goes_on {
        true => flight.go_on(direct),
        false => flight.set_out(direct, footprint, Held::Granted),
    };
    let access = direct.access();
    access.manager().set_here(None);
    let next = access.put_aside(parked);
    // SAFETY: this thread alone uses the demand, as the caller says.
    access.take_pending_tids(|record, partition, tid| unsafe {
        (*demand).set_written(record, partition, tid);
    });
    match (ran, next) {
        (Ran::Away, Some(partition)) => {
            if Canary::LocksLeftBehind.sings() {
                // SAFETY: this thread alone uses the demand, whose locks are all granted.
                unsafe { let_go_here(shared, core, demand) };
            }
            point("owned.travels");
            shared.pass_on(core.number, partition, demand, ACT);
        }
        (Ran::Away, None) => unreachable!("a transaction leaves for a partition"),
        // SAFETY: this thread alone uses the demand, as the caller says.
        (Ran::Ended, _) => unsafe { arrive(shared, core, demand) },
    }
}

/// A flaw: takes back the locks that a transaction has here, which goes on elsewhere.
///
/// # Safety
/// As for [`act`].
#[cold]
unsafe fn let_go_here<T: PartitionTable>(
    shared: &OwnedState<T>,
    core: &mut Core<T>,
    demand: *mut Demand,
) {
    // SAFETY: this thread alone uses the demand, as the caller says, and has the partition's latch.
    unsafe {
        let spans = &mut (*demand).spans;
        let mut spans = spans.iter_mut();
        if let Some(span) = spans.find(|span| span.partition == core.number) {
            let number = core.number;
            let mut granted = |demand| shared.advance(number, demand);
            core.table
                .release_span((*demand).first, *span, &mut granted);
            // Nothing is given back a second time.
            span.end = span.start;
        }
    }
}

/// Sends the locks of a transaction that has ended back to the partitions, and the demand home.
///
/// # Safety
/// As for [`act`].
unsafe fn arrive<T: PartitionTable>(
    shared: &OwnedState<T>,
    core: &mut Core<T>,
    demand: *mut Demand,
) {
    // SAFETY: this thread has the demand, as the caller says; no thread changes its spans before
    // its worker uses it again, which it does not before it has the demand, and all locks are given
    // back.
    unsafe {
        (*demand).has_run = true;
        let spans = &(*demand).spans;
        let count = spans.len() as u32;
        // Relaxed: the messages synchronize.
        (*demand).holds.0.fetch_add(count, Ordering::Relaxed);
        for &span in spans {
            if span.partition != core.number {
                shared.pass_on(core.number, span.partition, demand, RELEASE);
                continue;
            }
            let number = core.number;
            let mut granted = |demand| shared.advance(number, demand);
            core.table.release_span((*demand).first, span, &mut granted);
            // Release: as in `OwnedState::handle`.
            (*demand).holds.0.fetch_sub(1, Ordering::Release);
        }
    }
    shared.send_home(core.number, demand);
}
