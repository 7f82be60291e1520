//! The locks of one attempt: queues in the records' `aux` words.
//!
//! They stand for the paper's *MOCC Queuing Lock* (§5): readers and writers come first to be served
//! first, each waits at a word of its own, and a request can be given up while it waits. The queues
//! are those of the lock manager ([`locks`](crate::shared::locks)), without overtaking. MQL links a
//! request to the tail of its queue by one exchange, and finds its way out of half-linked
//! neighbours when it is given up; here a bit of the word is a latch over a few instructions, under
//! which requests come and go.
//!
//! A lock is a cell's and not a record's: a cell may be locked while it is free, and may be made a
//! record then. The new record keeps its cell's `aux`, and the lock's holder has the lock of the
//! new record now.

use kiln_platform::spin;
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use crate::shared::locks::deadlock::Patient;
use crate::shared::locks::{Alarms, BesideBits, Locks as _, QueuedLocks, RequestRef, Taken};
use crate::shared::optimistic::record_lock::Mode;
use crate::shared::optimistic::{CLAIMED, LOCK_SPINS_MAX};
use crate::shared::record_map::RecordMap;

/// A lock that the attempt holds, or has held.
struct Held {
    record: RecordRef,
    request: RequestRef,
    /// How, if it still does.
    mode: Option<Mode>,
}

/// The locks of one worker's attempt.
pub(super) struct Locks {
    queues: QueuedLocks<BesideBits<CLAIMED>, Patient>,
    /// Each record once.
    held: Vec<Held>,
    by_record: RecordMap,
    /// The greatest address among the records that are held; 0 without any.
    highest: u64,
}

impl Locks {
    /// For the worker with this number, which no other worker has that uses the same `alarms`.
    pub fn new(alarms: Alarms, worker: u32) -> Locks {
        Locks {
            queues: QueuedLocks::new(BesideBits, Patient, alarms, worker),
            held: Vec::new(),
            by_record: RecordMap::default(),
            highest: 0,
        }
    }

    /// The next attempts wait for no lock past `deadline_ns`.
    pub fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.queues.begin_call(deadline_ns);
    }

    /// The greatest address among the records that are held; 0 without any.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// How the attempt holds `record`.
    #[inline]
    fn mode(&self, record: RecordRef) -> Option<Mode> {
        let position = self.by_record.get(record)?;
        self.held[position as usize].mode
    }

    /// Asks for the lock in a mode in which the attempt does not have it.
    fn ask(
        &mut self,
        record: RecordRef,
        own: Option<Mode>,
        wanted: Mode,
    ) -> Result<Taken<RequestRef>, AbortCause> {
        match own {
            None => self.queues.take(record, wanted == Mode::Exclusive),
            Some(_) => {
                let position = self.by_record.get(record).expect("it is held");
                let request = self.held[position as usize].request;
                self.queues.upgrade(record, request)
            }
        }
    }

    /// Takes the lock in at least this mode if it is there at once or in a moment, or keeps what
    /// the attempt has and says no.
    #[inline]
    pub fn try_hold(&mut self, record: RecordRef, wanted: Mode) -> bool {
        let own = self.mode(record);
        if own >= Some(wanted) {
            return true;
        }
        let request = match self.ask(record, own, wanted) {
            Ok(Taken::Now(request)) => request,
            Ok(Taken::Later(request)) => {
                let is_granted = spin::until(LOCK_SPINS_MAX, || self.queues.is_granted(request));
                if !is_granted && !self.queues.leave(record, request) {
                    return false;
                }
                request
            }
            Err(_) => return false,
        };
        self.note(record, request, wanted);
        true
    }

    /// Takes the lock in at least this mode, and waits for it: all that the attempt holds lies
    /// below.
    ///
    /// # Errors
    /// Why the attempt fails instead: another one has kept the lock for too long.
    pub fn hold(&mut self, record: RecordRef, wanted: Mode) -> Result<(), AbortCause> {
        debug_assert!(record.address() > self.highest, "there is an order");
        let request = match self.ask(record, None, wanted)? {
            Taken::Now(request) => request,
            Taken::Later(request) => {
                self.queues.wait(record, request)?;
                request
            }
        };
        self.note(record, request, wanted);
        Ok(())
    }

    fn note(&mut self, record: RecordRef, request: RequestRef, mode: Mode) {
        let held = Held {
            record,
            request,
            mode: Some(mode),
        };
        match self.by_record.get(record) {
            Some(position) => self.held[position as usize] = held,
            None => {
                self.by_record.insert(record, self.held.len() as u32);
                self.held.push(held);
            }
        }
        self.highest = self.highest.max(record.address());
    }

    /// Lets go of one record, if it is held.
    pub fn release(&mut self, record: RecordRef) {
        self.release_if(|held| held == record);
    }

    /// Lets go of all records at `address` and above.
    pub fn release_from(&mut self, address: u64) {
        self.release_if(|held| held.address() >= address);
    }

    #[cold]
    fn release_if(&mut self, goes: impl Fn(RecordRef) -> bool) {
        self.highest = 0;
        for held in &mut self.held {
            let Some(mode) = held.mode else { continue };
            if goes(held.record) {
                held.mode = None;
                let is_exclusive = mode == Mode::Exclusive;
                self.queues.release(held.record, held.request, is_exclusive);
            } else {
                self.highest = self.highest.max(held.record.address());
            }
        }
    }

    /// Lets go of everything.
    #[inline]
    pub fn release_all(&mut self) {
        if self.held.is_empty() {
            return;
        }
        for held in self.held.drain(..) {
            if let Some(mode) = held.mode {
                let is_exclusive = mode == Mode::Exclusive;
                self.queues.release(held.record, held.request, is_exclusive);
            }
        }
        self.by_record.clear();
        self.highest = 0;
    }
}
