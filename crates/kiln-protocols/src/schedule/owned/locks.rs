//! A worker's side of the locks: it has none, but what its transaction was granted.

use kiln_platform::sync::Arc;
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use kiln_storage::table::Part;

use super::partition::nobody;
use super::{OwnedState, PartitionTable, Request};
use crate::shared::locks::{Locks, PlannedLocks, Taken, TravellingLocks, fresh, soon};
use crate::shared::planning::{Claim, groups};

/// What the transaction missed: it was granted nothing but its plan.
const MISS: AbortCause = AbortCause::FootprintMiss;

/// How a lock is held.
#[derive(Clone, Copy)]
pub enum Held {
    /// It was granted before the run; the partition that gave it takes it back.
    Granted,
    /// The record is the transaction's own.
    New,
    /// A statement took it.
    Taken(*mut Request),
}

/// See the module's documentation.
pub struct GrantedLocks<T> {
    shared: Arc<OwnedState<T>>,
    worker: u32,
    /// Whether the attempt has several statements, which take what is free from the partitions
    /// themselves.
    has_statements: bool,
    /// The partition whose owner the worker is while it runs an attempt that travels.
    here: Option<u16>,
    /// Requests that no lock has.
    #[expect(
        clippy::vec_box,
        reason = "queues point to requests, which must not move"
    )]
    pool: Vec<Box<Request>>,
}

// SAFETY: requests are used by the worker that has them, or under a partition's latch.
unsafe impl<T> Send for GrantedLocks<T> {}

impl<T: PartitionTable> GrantedLocks<T> {
    pub fn new(shared: Arc<OwnedState<T>>, worker: u32) -> GrantedLocks<T> {
        GrantedLocks {
            shared,
            worker,
            has_statements: false,
            here: None,
            pool: Vec::new(),
        }
    }

    /// The worker whose side it is.
    pub fn worker(&self) -> u32 {
        self.worker
    }

    /// The attempt that is run now, or none, is where this partition is.
    pub fn set_here(&mut self, partition: Option<u16>) {
        self.here = partition;
    }

    /// Takes a lock from its partition, or of a table from all that are wanted, if no transaction
    /// has it or waits for it, and its record is no fresh one.
    fn take_free(&mut self, claim: Claim) -> Option<*mut Request> {
        let mut first = std::ptr::null_mut();
        for partition in self.shared.partitions_of(claim) {
            match self.take_free_in(claim, partition as u16) {
                Some(request) => {
                    // SAFETY: it is this worker's; partitions do not look at its siblings.
                    unsafe { (*request).sibling = first };
                    first = request;
                }
                None => {
                    self.give_back(first);
                    return None;
                }
            }
        }
        if fresh::admit(groups::record_of(claim.record)).is_err() {
            self.give_back(first);
            return None;
        }
        Some(first)
    }

    fn take_free_in(&mut self, claim: Claim, partition: u16) -> Option<*mut Request> {
        let mut request = Request::new(claim, partition, std::ptr::null_mut());
        request.place = self.worker;
        let request = match self.pool.pop() {
            Some(mut unused) => {
                *unused = request;
                unused
            }
            None => Box::new(request),
        };
        let request = Box::into_raw(request);
        let is_granted = self.shared.with_partition(partition, |shared, core| {
            // SAFETY: the request stays where it is until it is released; the latch makes the
            // caller the owner of the partition.
            unsafe {
                let number = core.number;
                let mut granted = |demand| shared.advance(number, demand);
                core.table.take_free(request, &mut granted)
            }
        });
        if !is_granted {
            // SAFETY: it came from a box, and no lock has it.
            self.pool.push(unsafe { Box::from_raw(request) });
        }
        is_granted.then_some(request)
    }

    /// Gives a request and its siblings back, if there are any.
    fn give_back(&mut self, mut request: *mut Request) {
        while !request.is_null() {
            // SAFETY: it came from a box, and is this worker's.
            let (partition, next) = unsafe { ((*request).partition.into(), (*request).sibling) };
            self.shared.with_partition(partition, |shared, core| {
                // SAFETY: as in `take_free_in`.
                unsafe {
                    let number = core.number;
                    let mut granted = |demand| shared.advance(number, demand);
                    core.table.give_back(request, &mut granted);
                }
            });
            // SAFETY: it came from a box, and no lock has it any more.
            self.pool.push(unsafe { Box::from_raw(request) });
            request = next;
        }
    }
}

impl<T: PartitionTable> Locks for GrantedLocks<T> {
    type Held = Held;
    type Naming = T::Naming;
    const NEW_AUX: Option<u64> = Some(fresh::FRESH);
    // Owners that run transactions find the records that were written by their requests.
    const GROUPS: bool = !T::OWNERS_RUN;

    #[inline(always)]
    fn by_group(&self) -> bool {
        self.shared.by_group
    }

    fn begin(&mut self) {
        self.has_statements = false;
    }

    fn take(&mut self, _: RecordRef, _: bool) -> Result<Taken<Held>, AbortCause> {
        unreachable!("locks are taken with the part of the data that they are in")
    }

    fn take_claim(&mut self, claim: Claim) -> Result<Taken<Held>, AbortCause> {
        // An attempt that travels has been granted its plan. Its worker has this partition's latch,
        // and may have run a statement before.
        if !self.has_statements || self.here.is_some() {
            return Err(MISS);
        }
        let taken = soon(|| {
            let taken = self.take_free(claim);
            if taken.is_none() {
                // What ended calls give back may be on its way, and no other worker here to take
                // it.
                self.shared.control_all(nobody::<T>());
            }
            taken
        });
        match taken {
            Some(request) => Ok(Taken::Now(Held::Taken(request))),
            None => Err(MISS),
        }
    }

    #[inline(always)]
    fn take_new(&mut self, _: RecordRef) -> Result<Held, AbortCause> {
        Ok(Held::New)
    }

    fn upgrade(&mut self, _: RecordRef, held: Held) -> Result<Taken<Held>, AbortCause> {
        let Held::Taken(shared) = held else {
            return Err(MISS);
        };
        // SAFETY: the request is this worker's.
        let (partition, is_table) =
            unsafe { ((*shared).partition.into(), (*shared).is_of_table()) };
        // One that shares a table has it in one partition only.
        let upgraded = !is_table
            && self.shared.with_partition(partition, |_, core| {
                // SAFETY: as in `take_free_in`.
                unsafe { core.table.upgrade(shared) }
            });
        match upgraded {
            true => Ok(Taken::Now(held)),
            false => Err(MISS),
        }
    }

    fn wait(&mut self, _: RecordRef, _: Held) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline]
    fn release(&mut self, record: RecordRef, held: Held, _: bool) {
        match held {
            Held::Granted => {}
            // The mark is that of all locks of the record.
            Held::New if groups::is_unwritten(record) => {}
            Held::New => fresh::finish(record),
            Held::Taken(request) => self.give_back(request),
        }
    }
}

impl<T: PartitionTable> PlannedLocks for GrantedLocks<T> {
    /// Its demands are made of lists of claims.
    const MAY_BE_IN_WORDS: bool = false;

    #[inline(always)]
    fn admits(&self, record: RecordRef, held: Held) -> Result<(), AbortCause> {
        match held {
            Held::New => Ok(()),
            Held::Granted | Held::Taken(_) => fresh::admit(record),
        }
    }

    /// What of it is free: for transactions of several statements, which do not wait.
    fn take_all(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        mut hold: impl FnMut(Claim, Held),
    ) -> Result<(), AbortCause> {
        self.has_statements = true;
        for claim in claims {
            if let Some(request) = self.take_free(claim) {
                hold(claim, Held::Taken(request));
            }
        }
        Ok(())
    }
}

impl<T: PartitionTable> TravellingLocks for GrantedLocks<T> {
    const TRAVELS: bool = T::OWNERS_RUN;

    /// Tables that every partition has are anywhere.
    #[inline(always)]
    fn elsewhere(&self, part: Part) -> Option<u16> {
        let here = self.here?;
        let partition = self.shared.partition_of(part) as u16;
        (partition != here && !part.is_replicated()).then_some(partition)
    }
}
