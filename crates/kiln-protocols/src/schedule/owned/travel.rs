//! Transactions that travel from owner to owner: what is done with the records of a partition is done by its owner.
//!
//! A transaction is a *passenger* of its demand. When all its locks are granted, the demand is sent to the partition of
//! the first record, and *ready* there. The owner runs the transaction until the next operation belongs to another
//! partition, and sends it on; so it flows along the operations of its procedure. Where it ends, that owner commits or
//! undoes it, and sends its locks back and the demand home.
//!
//! Who runs it uses its own access, into which what the attempt has so far is exchanged
//! ([`Parked`]). Memory is that of the worker that runs; the epoch is held by the worker that drew the call, for all its
//! transactions: it begins no other one in an epoch that is not the newest any more, until it can enter that.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_procedure::executor::Ran;

use super::locks::{GrantedLocks, Held};
use super::{ACT, Core, Demand, PartitionTable, RELEASE, Shared};
use crate::access::two_phase_locking::{Parked, TwoPhaseLocking};
use crate::canary::Canary;
use crate::schedule::direct::Direct;
use crate::schedule::in_flight::InFlight;
use crate::shared::planning::Footprint;

/// A call in flight, apart from its demand.
pub(super) struct Passenger<T: PartitionTable> {
    pub flight: InFlight,
    pub footprint: Footprint,
    /// What its attempt has, between two partitions.
    pub parked: Parked<GrantedLocks<T>>,
    /// Whether its attempt has begun.
    pub is_under_way: bool,
}

impl<T: PartitionTable> Default for Passenger<T> {
    fn default() -> Passenger<T> {
        Passenger {
            flight: InFlight::default(),
            footprint: Footprint::default(),
            parked: Parked::default(),
            is_under_way: false,
        }
    }
}

/// Runs the transaction of `demand` as far as it belongs to a partition, as the partition's owner: the caller has its latch.
///
/// # Safety
/// The demand was sent to be run here, so that this thread alone may use it and its passenger, which is a
/// [`Passenger<T>`].
pub(super) unsafe fn act<T: PartitionTable>(
    shared: &Shared<T>,
    core: &mut Core<T>,
    direct: &mut Direct<TwoPhaseLocking<GrantedLocks<T>>>,
    demand: *mut Demand,
) {
    // SAFETY: by the contract.
    let passenger = unsafe { &mut *(*demand).passenger.cast::<Passenger<T>>() };
    // SAFETY: by the contract.
    unsafe { Demand::note_reads(demand) };
    let Passenger {
        flight,
        footprint,
        parked,
        is_under_way,
    } = passenger;
    let goes_on = std::mem::replace(is_under_way, true);
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
    // SAFETY: by the contract.
    access.take_left(|record, partition, tid| unsafe {
        (*demand).set_written(record, partition, tid);
    });
    match (ran, next) {
        (Ran::Away, Some(partition)) => {
            if Canary::LocksLeftBehind.sings() {
                // SAFETY: by the contract; the locks are all granted.
                unsafe { let_go_here(shared, core, demand) };
            }
            point("owned.travels");
            shared.pass_on(core.number, partition, demand, ACT);
        }
        (Ran::Away, None) => unreachable!("a transaction leaves for a partition"),
        // SAFETY: by the contract.
        (Ran::Ended, _) => unsafe { arrive(shared, core, demand) },
    }
}

/// A flaw: takes back the locks that a transaction has here, which goes on elsewhere.
///
/// # Safety
/// As for [`act`].
#[cold]
unsafe fn let_go_here<T: PartitionTable>(
    shared: &Shared<T>,
    core: &mut Core<T>,
    demand: *mut Demand,
) {
    // SAFETY: by the contract.
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
unsafe fn arrive<T: PartitionTable>(shared: &Shared<T>, core: &mut Core<T>, demand: *mut Demand) {
    // SAFETY: by the contract; of the spans nobody changes anything before its worker uses the demand again, which it does not
    // before it has the demand, and all locks are given back.
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
            // Release: as in `Shared::handle`.
            (*demand).holds.0.fetch_sub(1, Ordering::Release);
        }
    }
    shared.send_home(core.number, demand);
}
