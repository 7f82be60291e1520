//! A worker's side of the locks: it has none, but what its transaction was granted.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::Arc;
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use super::Shared;
use super::partition::Request;
use crate::shared::locks::{Locks, Taken, soon};
use crate::shared::planning::Claim;

/// What the transaction missed: it was granted nothing but its plan.
const MISS: AbortCause = AbortCause::FootprintMiss;

/// The `aux` of a record whose transaction has not ended. Nobody has its lock, as nobody knew it; whoever
/// is granted that meanwhile starts again.
const FRESH: u64 = 1;

/// How a lock is held.
#[derive(Clone, Copy)]
pub enum Held {
    /// It was granted before the run; whoever gave it takes it back.
    Granted,
    /// The record is the transaction's own.
    New,
    /// A statement took it.
    Taken(*mut Request),
}

/// See the module's documentation.
pub struct GrantedLocks {
    shared: Arc<Shared>,
    /// Whether the attempt has several statements, which take what is free from the partitions themselves.
    has_statements: bool,
    /// Requests that no lock has.
    #[expect(
        clippy::vec_box,
        reason = "queues point to requests, which must not move"
    )]
    pool: Vec<Box<Request>>,
}

// SAFETY: requests are used by the worker that has them, or under a partition's latch.
unsafe impl Send for GrantedLocks {}

impl GrantedLocks {
    pub fn new(shared: Arc<Shared>) -> GrantedLocks {
        GrantedLocks {
            shared,
            has_statements: false,
            pool: Vec::new(),
        }
    }

    /// Takes a lock from its partition if nobody has it or waits for it, and its record is no fresh one.
    fn take_free(&mut self, claim: Claim) -> Option<*mut Request> {
        let request = Request::new(claim, std::ptr::null_mut());
        let request = match self.pool.pop() {
            Some(mut unused) => {
                *unused = request;
                unused
            }
            None => Box::new(request),
        };
        let request = Box::into_raw(request);
        let is_granted = self.shared.with_partition_of(claim.record, |shared, core| {
            // SAFETY: the request stays where it is until it is released; the latch makes the caller the
            // owner of the partition.
            unsafe {
                let is_granted = core.table.acquire(request);
                if !is_granted {
                    core.table
                        .release(request, &mut |demand| shared.advance(core.number, demand));
                }
                is_granted
            }
        });
        if !is_granted {
            // SAFETY: it came from a box, and no lock has it.
            self.pool.push(unsafe { Box::from_raw(request) });
            return None;
        }
        if self.admits(claim.record, Held::Granted).is_err() {
            self.give_back(claim.record, request);
            return None;
        }
        Some(request)
    }

    fn give_back(&mut self, record: RecordRef, request: *mut Request) {
        self.shared.with_partition_of(record, |shared, core| {
            // SAFETY: as in `take_free`.
            unsafe {
                core.table
                    .release(request, &mut |demand| shared.advance(core.number, demand));
            }
        });
        // SAFETY: it came from a box, and no lock has it any more.
        self.pool.push(unsafe { Box::from_raw(request) });
    }
}

impl Locks for GrantedLocks {
    type Held = Held;
    const NEW_AUX: Option<u64> = Some(FRESH);
    const PLANNED: bool = true;

    fn begin(&mut self) {
        self.has_statements = false;
    }

    fn take(&mut self, record: RecordRef, exclusive: bool) -> Result<Taken<Held>, AbortCause> {
        if !self.has_statements {
            return Err(MISS);
        }
        let claim = Claim { record, exclusive };
        match soon(|| self.take_free(claim)) {
            Some(request) => Ok(Taken::Now(Held::Taken(request))),
            None => Err(MISS),
        }
    }

    #[inline(always)]
    fn take_new(&mut self, _: RecordRef) -> Result<Held, AbortCause> {
        Ok(Held::New)
    }

    fn upgrade(&mut self, record: RecordRef, held: Held) -> Result<Taken<Held>, AbortCause> {
        let Held::Taken(shared) = held else {
            return Err(MISS);
        };
        let upgraded = self.shared.with_partition_of(record, |_, core| {
            // SAFETY: as in `take_free`.
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

    #[inline(always)]
    fn admits(&self, record: RecordRef, held: Held) -> Result<(), AbortCause> {
        // Acquire pairs with the release below: what the record's maker did is visible.
        match held {
            Held::Granted if record.aux().load(Ordering::Acquire) == FRESH => {
                Err(AbortCause::KeyInTransit)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn release(&mut self, record: RecordRef, held: Held, _: bool) {
        match held {
            Held::Granted => {}
            // Release: see `admits`.
            Held::New => record.aux().store(0, Ordering::Release),
            Held::Taken(request) => self.give_back(record, request),
        }
    }

    /// What of it is free: for transactions of several statements, which do not wait.
    fn take_all(
        &mut self,
        claims: &[Claim],
        mut hold: impl FnMut(Claim, Held),
    ) -> Result<(), AbortCause> {
        self.has_statements = true;
        for &claim in claims {
            if let Some(request) = self.take_free(claim) {
                hold(claim, Held::Taken(request));
            }
        }
        Ok(())
    }
}
