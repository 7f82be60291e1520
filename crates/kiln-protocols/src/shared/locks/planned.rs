//! Locks that are taken all together, before the transaction runs.
//!
//! | kind | takes them | source |
//! |---|---|---|
//! | [`Sorted`] | in the order of the records' addresses, and waits for each | ORTHRUS §3.2, STRIFE §5.3 |
//! | [`Atomic`] | by requests that are all placed in one critical section, then waits | VLL §3.2 |
//! | [`AllOrNone`] | at once, or fails with the first that is not to be had | STRIFE §5.3 |
//!
//! A transaction waits for its locks before it has any effect, and one that runs waits for nothing:
//! a record that was not planned is taken if that is possible at once, else the attempt ends. So no
//! transactions wait in a circle. With `Sorted` a waiter holds only locks of lower addresses, and
//! waits for a transaction that runs, or that waits for a higher one; so does one that overtakes
//! it. With `Atomic` there is an order of all transactions, that of their critical sections, in
//! which each waits for earlier ones alone: locks go to those that wait in the order of the
//! requests, and none overtakes.

use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use super::deadlock::{DeadlockPolicy, Ordered, Patient};
use super::placement::Placement;
use super::request::RequestRef;
use super::{ByPlannedRecord, LockWords, Locks, PlannedLocks, QueuedLocks, Taken, TravellingLocks};
use crate::shared::planning::Claim;

/// What the transaction missed: another one holds what it did not plan.
const MISS: AbortCause = AbortCause::FootprintMiss;

/// Takes a lock if that needs no wait.
fn take_free<P: Placement, H: DeadlockPolicy>(
    locks: &mut QueuedLocks<P, H>,
    record: RecordRef,
    exclusive: bool,
) -> Result<Taken<RequestRef>, AbortCause> {
    match locks.take(record, exclusive).map_err(|_| MISS)? {
        Taken::Now(request) => Ok(Taken::Now(request)),
        Taken::Later(request) => {
            let granted = locks.give_up(record, request, MISS);
            granted.map(|()| Taken::Now(request))
        }
    }
}

/// Makes a shared lock exclusive if that needs no wait.
fn upgrade_free<P: Placement, H: DeadlockPolicy>(
    locks: &mut QueuedLocks<P, H>,
    record: RecordRef,
    held: RequestRef,
) -> Result<Taken<RequestRef>, AbortCause> {
    match locks.upgrade(record, held).map_err(|_| MISS)? {
        Taken::Now(request) => Ok(Taken::Now(request)),
        Taken::Later(request) => {
            let granted = locks.give_up(record, request, MISS);
            granted.map(|()| Taken::Now(request))
        }
    }
}

/// Locks that may lie by column group where they are planned.
pub trait GroupedLocks: Locks {
    /// See [`Locks::GROUPS`].
    const MAY_BE_GROUPED: bool = false;

    /// See [`Locks::by_group`].
    #[inline(always)]
    fn are_grouped(&self) -> bool {
        false
    }
}

impl GroupedLocks for LockWords {}

impl<P: Placement, H: DeadlockPolicy> GroupedLocks for QueuedLocks<P, H> {
    const MAY_BE_GROUPED: bool = P::GROUPS;

    #[inline(always)]
    fn are_grouped(&self) -> bool {
        self.placement.by_group()
    }
}

/// The methods of [`Locks`] that are those of the locks inside.
macro_rules! as_inside {
    ($($inside:tt)+) => {
        fn begin_call(&mut self, deadline_ns: Option<u64>) {
            self.$($inside)+.begin_call(deadline_ns);
        }

        #[inline(always)]
        fn begin(&mut self) {
            self.$($inside)+.begin();
        }

        #[inline(always)]
        fn by_group(&self) -> bool {
            self.$($inside)+.are_grouped()
        }

        #[inline]
        fn take_new(&mut self, record: RecordRef) -> Result<Self::Held, AbortCause> {
            self.$($inside)+.take_new(record)
        }

        fn wait(&mut self, record: RecordRef, held: Self::Held) -> Result<(), AbortCause> {
            self.$($inside)+.wait(record, held)
        }

        #[inline]
        fn release(&mut self, record: RecordRef, held: Self::Held, exclusive: bool) {
            self.$($inside)+.release(record, held, exclusive);
        }
    };
}

/// Locks taken in one order by all; see the module's documentation.
pub struct Sorted<P>(pub QueuedLocks<P, Ordered>);

impl<P: Placement> Locks for Sorted<P> {
    type Held = RequestRef;
    type Naming = ByPlannedRecord;
    const NEW_AUX: Option<u64> = Some(0);
    const GROUPS: bool = P::GROUPS;

    as_inside!(0);

    fn take(
        &mut self,
        record: RecordRef,
        exclusive: bool,
    ) -> Result<Taken<RequestRef>, AbortCause> {
        take_free(&mut self.0, record, exclusive)
    }

    fn upgrade(
        &mut self,
        record: RecordRef,
        held: RequestRef,
    ) -> Result<Taken<RequestRef>, AbortCause> {
        upgrade_free(&mut self.0, record, held)
    }
}

impl<P: Placement> PlannedLocks for Sorted<P> {
    #[inline]
    fn take_all(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        mut hold: impl FnMut(Claim, RequestRef),
    ) -> Result<(), AbortCause> {
        for claim in claims {
            let request = match self.0.take(claim.record, claim.exclusive)? {
                Taken::Now(request) => request,
                Taken::Later(request) => {
                    self.0.wait(claim.record, request)?;
                    request
                }
            };
            hold(claim, request);
        }
        Ok(())
    }
}

impl<P: Placement> TravellingLocks for Sorted<P> {}

/// Locks whose requests are placed all at once; see the module's documentation.
pub struct Atomic<P> {
    locks: QueuedLocks<P, Patient>,
    section: CriticalSection,
    /// The requests of the claims that are being taken.
    requests: Vec<(Claim, Taken<RequestRef>)>,
}

/// The critical section of all workers that use [`Atomic`] locks; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct CriticalSection(Arc<Mutex<()>>);

impl<P: Placement> Atomic<P> {
    /// One worker's side of locks that share `section`.
    pub fn new(locks: QueuedLocks<P, Patient>, section: CriticalSection) -> Atomic<P> {
        Atomic {
            locks,
            section,
            requests: Vec::new(),
        }
    }
}

impl<P: Placement> Locks for Atomic<P> {
    type Held = RequestRef;
    type Naming = ByPlannedRecord;
    const NEW_AUX: Option<u64> = Some(0);
    const GROUPS: bool = P::GROUPS;

    as_inside!(locks);

    fn take(
        &mut self,
        record: RecordRef,
        exclusive: bool,
    ) -> Result<Taken<RequestRef>, AbortCause> {
        take_free(&mut self.locks, record, exclusive)
    }

    fn upgrade(
        &mut self,
        record: RecordRef,
        held: RequestRef,
    ) -> Result<Taken<RequestRef>, AbortCause> {
        upgrade_free(&mut self.locks, record, held)
    }
}

impl<P: Placement> PlannedLocks for Atomic<P> {
    fn take_all(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        mut hold: impl FnMut(Claim, RequestRef),
    ) -> Result<(), AbortCause> {
        self.requests.clear();
        let section = lock(&self.section.0);
        let mut placed = Ok(());
        for claim in claims {
            match self.locks.take(claim.record, claim.exclusive) {
                Ok(taken) => self.requests.push((claim, taken)),
                Err(cause) => {
                    placed = Err(cause);
                    break;
                }
            }
        }
        drop(section);
        for &(claim, taken) in &self.requests {
            match (taken, placed) {
                (Taken::Now(request), _) => hold(claim, request),
                (Taken::Later(request), Ok(())) => {
                    placed = self.locks.wait(claim.record, request);
                    if placed.is_ok() {
                        hold(claim, request);
                    }
                }
                (Taken::Later(request), Err(_)) => self.locks.abandon(claim.record, request),
            }
        }
        placed
    }
}

impl<P: Placement> TravellingLocks for Atomic<P> {}

/// Locks that are all had at once, or none; see the module's documentation.
pub struct AllOrNone<L>(pub L);

impl<L: GroupedLocks> Locks for AllOrNone<L> {
    type Held = L::Held;
    type Naming = ByPlannedRecord;
    const NEW_AUX: Option<u64> = L::NEW_AUX;
    const GROUPS: bool = L::MAY_BE_GROUPED;

    as_inside!(0);

    fn take(
        &mut self,
        record: RecordRef,
        exclusive: bool,
    ) -> Result<Taken<Self::Held>, AbortCause> {
        self.0.take(record, exclusive).map_err(|_| MISS)
    }

    fn upgrade(
        &mut self,
        record: RecordRef,
        held: Self::Held,
    ) -> Result<Taken<Self::Held>, AbortCause> {
        self.0.upgrade(record, held).map_err(|_| MISS)
    }
}

impl<L: GroupedLocks> PlannedLocks for AllOrNone<L> {
    #[inline]
    fn take_all(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        mut hold: impl FnMut(Claim, Self::Held),
    ) -> Result<(), AbortCause> {
        for claim in claims {
            match self.0.take(claim.record, claim.exclusive)? {
                Taken::Now(held) => hold(claim, held),
                Taken::Later(_) => unreachable!("these locks are refused, not waited for"),
            }
        }
        Ok(())
    }
}

impl<L: GroupedLocks> TravellingLocks for AllOrNone<L> {}
