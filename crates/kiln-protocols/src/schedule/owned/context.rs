//! A call in flight, with what it demands of the partitions, and who may use the two.
//!
//! Both stay where they are. While locks are on their way, partitions have the demand, and where
//! their owners run transactions also the rest; when it has run, partitions may still give its
//! locks back. So a worker has a call in flight as one of three types:
//!
//! ```text
//!            ask                come_back                 leave              gather
//!  Context ───────► Waiting ───────────────► Context ──────────────► Leaving ───────► Context
//!                           └──────────── where owners have run it ────────┘
//! ```

use kiln_platform::atomic::Ordering;
use kiln_platform::time;
use kiln_procedure::Interrupt;

use super::travel::Passenger;
use super::{Demand, PartitionTable};
use crate::schedule::in_flight::{Carrier, InFlight, Lent, Own};
use crate::shared::planning::Claim;

/// At its worker, which alone uses it.
pub(super) struct Context<T: PartitionTable> {
    pub passenger: Own<Passenger<T>>,
    pub demand: Own<Demand>,
    known: Known,
}

/// Its locks are on their way, or owners of partitions plan or run it.
pub(super) struct Waiting<T: PartitionTable> {
    passenger: Lent<Passenger<T>>,
    demand: Lent<Demand>,
    known: Known,
}

/// It has run, and partitions may have some of its locks.
pub(super) struct Leaving<T: PartitionTable> {
    passenger: Own<Passenger<T>>,
    demand: Lent<Demand>,
    known: Known,
}

/// What its worker may look at wherever it is: the call's.
#[derive(Default)]
struct Known {
    deadline_ns: Option<u64>,
    ticket: u64,
    interrupt: Option<Interrupt>,
}

/// What has come back with a message.
pub(super) enum Returned<T: PartitionTable> {
    /// The demand is through with its partitions, or was given up.
    Through(Context<T>),
    /// Owners have run the transaction, and give its locks back.
    HasRun(Leaving<T>),
}

impl<T: PartitionTable> Context<T> {
    /// For a call of this worker.
    pub fn new(worker: u32) -> Context<T> {
        let mut demand = Own::of(Demand::new(worker));
        let passenger = Own::new(Passenger::default());
        demand.passenger = passenger.as_ptr().cast();
        Context {
            passenger,
            demand,
            known: Known::default(),
        }
    }

    /// A call was drawn.
    pub fn note_call(&mut self) {
        let (known, call) = (&mut self.known, &self.passenger.flight.call);
        (known.deadline_ns, known.ticket) = (call.deadline_ns, call.ticket);
        known.interrupt.clone_from(&call.interrupt);
    }

    /// What the call is known by.
    pub fn ticket(&self) -> u64 {
        self.known.ticket
    }

    /// Lends it to the partitions: the demand is in the message that the caller sends next.
    #[inline]
    pub fn ask(self) -> (Waiting<T>, *mut Demand) {
        let (passenger, _) = self.passenger.lend();
        let (demand, loan) = self.demand.lend();
        let waiting = Waiting {
            passenger,
            demand,
            known: self.known,
        };
        (waiting, loan.as_ptr())
    }

    /// Lends the demand to the partitions that give its locks back: those that `holds` counts.
    #[inline]
    pub fn leave(self) -> (Leaving<T>, *mut Demand) {
        let (demand, loan) = self.demand.lend();
        let leaving = Leaving {
            passenger: self.passenger,
            demand,
            known: self.known,
        };
        (leaving, loan.as_ptr())
    }
}

impl<T: PartitionTable> Carrier for Context<T> {
    type Claim = Claim;

    #[inline(always)]
    fn flight(&self) -> &InFlight {
        &self.passenger.flight
    }

    #[inline(always)]
    fn flight_mut(&mut self) -> &mut InFlight {
        &mut self.passenger.flight
    }
}

impl<T: PartitionTable> Waiting<T> {
    /// What the call is known by.
    pub fn ticket(&self) -> u64 {
        self.known.ticket
    }

    /// Whether a message is about it.
    #[inline(always)]
    pub fn is(&self, message: u64) -> bool {
        self.demand.as_ptr() as u64 == message
    }

    /// Whether its call's time is over.
    pub fn is_expired(&self) -> bool {
        let known = &self.known;
        let interrupt = known.interrupt.as_ref();
        interrupt.is_some_and(Interrupt::is_canceled)
            || (known.deadline_ns).is_some_and(|deadline| time::now_ns() >= deadline)
    }

    /// What it demands, for the worker that withdraws it, if it may; partitions use the demand at
    /// the same time.
    pub fn withdrawable(&self) -> Option<&Demand> {
        // SAFETY: the memory stays; looked at are an atomic, and the spans once that says that they
        // are made, which no thread changes until the demand is back.
        let demand = unsafe { &*self.demand.as_ptr() };
        demand.may_be_withdrawn().then_some(demand)
    }

    /// Takes back what a message has brought, and whether the demand has waited for a lock.
    ///
    /// # Safety
    /// The message [is](Waiting::is) about it, and has come to its worker.
    #[inline]
    pub unsafe fn come_back(self) -> (Returned<T>, bool) {
        // SAFETY: with the message the demand and its passenger are this thread's again, but for
        // requests that are being given back; those are counted in `holds`.
        let (passenger, demand) = unsafe {
            Demand::note_reads(self.demand.as_ptr());
            (self.passenger.returned(), self.demand.returned())
        };
        let (has_run, has_waited) = (demand.has_run, demand.has_waited);
        let context = Context {
            passenger,
            demand,
            known: self.known,
        };
        let returned = match T::OWNERS_RUN && has_run {
            true => Returned::HasRun(context.leave().0),
            false => Returned::Through(context),
        };
        (returned, has_waited)
    }
}

impl<T: PartitionTable> Leaving<T> {
    /// What the call is known by.
    pub fn ticket(&self) -> u64 {
        self.known.ticket
    }

    /// The call, which no partition looks at.
    pub fn flight(&self) -> &InFlight {
        &self.passenger.flight
    }

    /// The same, to be told.
    pub fn flight_mut(&mut self) -> &mut InFlight {
        &mut self.passenger.flight
    }

    /// Whether all its locks are given back.
    #[inline]
    pub fn is_over(&self) -> bool {
        // SAFETY: the memory stays, and the counter is an atomic.
        let holds = unsafe { &(*self.demand.as_ptr()).holds };
        // Acquire pairs with the release in `handle`: no partition looks at the demand any more.
        holds.0.load(Ordering::Acquire) == 0
    }

    /// Takes it back.
    ///
    /// # Panics
    /// When it is not [over](Leaving::is_over).
    #[inline]
    pub fn gather(self) -> Context<T> {
        assert!(self.is_over(), "partitions have locks of it");
        Context {
            passenger: self.passenger,
            // SAFETY: no partition has locks of it, or will hear of it.
            demand: unsafe { self.demand.returned() },
            known: self.known,
        }
    }
}
