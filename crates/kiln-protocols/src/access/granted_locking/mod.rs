//! Writing in place what a scheduler has granted: an attempt has its records to itself, and takes
//! no lock; without a grant it locks them, planned, as in `access/planned_locking`.
//!
//! Source: STRIFE §3.2, §5.3: clusters of transactions run without locks, and what is left of a
//! batch runs with locks, without waiting.
//!
//! # With a grant
//!
//! Each record that is met is compared with what is granted ([`GrantingLocks::is_granted`]); one that is
//! not ends the attempt (`footprint_miss`), and the next plan has it. Records to which all
//! transactions of a batch only add may be granted to several at once: their updates are left to
//! the commits, which lock them for themselves (`deferral.rs`).
//!
//! Gaps are guarded by versions in both cases, as under two-phase locking.

mod access;
mod ahead;
mod deferral;

use kiln_platform::atomic::Ordering;
use kiln_procedure::access::Visit;
use kiln_procedure::ir::Intent;
use kiln_procedure::{AbortCause, Halt, Handle};
use kiln_storage::epoch::Participant;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::table::Table;

use deferral::Deferral;

use crate::canary::Canary;
use crate::shared::locked::plan::LockPlan;
use crate::shared::locked::{Locked, Locking, NOT_LOCKED, visit_of};
use crate::shared::locks::GrantingLocks;
use crate::shared::planning::{Claim, Planned};

/// The note of a handle whose record was granted without a lock, to be read.
const GRANTED: u32 = u32::MAX - 1;
/// As [`GRANTED`], to be written.
const GRANTED_EXCLUSIVE: u32 = u32::MAX - 2;

/// The access of one worker; see the module's documentation.
pub struct GrantedLocking<L: GrantingLocks> {
    locked: Locked<L>,
    plan: LockPlan,
    /// Updates deferred to the commit.
    deferral: Deferral,
}

impl<L: GrantingLocks> GrantedLocking<L> {
    /// An access for the worker that `participant` stands for, with this side of the locks.
    pub fn new(participant: Participant, manager: L) -> GrantedLocking<L> {
        let planned = Planned {
            marks_deferred: manager.leaves_updates(),
            keeps_scans: true,
            ..L::planned()
        };
        GrantedLocking {
            locked: Locked::new(participant, manager),
            plan: LockPlan::new(planned),
            deferral: Deferral::default(),
        }
    }

    /// The worker's side of the locks, for a scheduler that decides what attempts may touch.
    #[inline(always)]
    pub(crate) fn manager(&mut self) -> &mut L {
        &mut self.locked.manager
    }

    /// Meets a record that needs no lock, if it was granted.
    #[inline(always)]
    fn visit_granted(&mut self, claim: Claim) -> Result<Visit, AbortCause> {
        let Claim {
            record, exclusive, ..
        } = claim;
        if let Err(cause) = self.locked.manager.is_granted(record, exclusive) {
            return Err(self.missed(claim, cause));
        }
        if Tid(record.tid().load(Ordering::Relaxed)).is_dead() {
            return Ok(Visit::Dead);
        }
        self.locked.meet(record);
        let note = match exclusive {
            true => GRANTED_EXCLUSIVE,
            false => GRANTED,
        };
        Ok(visit_of(record, note))
    }

    /// Meets a record that is granted, or locks it; by the lock at the position `known`, if that is
    /// known.
    #[inline(always)]
    fn lock_known(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        known: Option<u32>,
    ) -> Result<Visit, AbortCause> {
        let exclusive = intent == Intent::Write;
        let claim = Claim::new(table, record, exclusive, false);
        if self.locked.manager.has_grant() {
            return self.visit_granted(claim);
        }
        let Some(note) = known.or_else(|| self.locked.locks.find::<L::Naming>(claim)) else {
            return self.take_unplanned(claim);
        };
        if Tid(record.tid().load(Ordering::Relaxed)).is_dead() {
            // It was planned, and is not there any more.
            return Ok(Visit::Dead);
        }
        if exclusive {
            self.upgrade(record, note)?;
        }
        Ok(visit_of(record, note))
    }

    /// Locks a record that was not planned.
    fn take_unplanned(&mut self, claim: Claim) -> Result<Visit, AbortCause> {
        let record = claim.record;
        let taken = match self.locked.take(claim) {
            Ok(taken) => taken,
            Err(_) if Canary::FootprintMissIgnored.sings() && !claim.exclusive => {
                let note = NOT_LOCKED;
                return Ok(Visit::Present(Handle { record, note }));
            }
            Err(cause) => return Err(self.missed(claim, cause)),
        };
        Ok(match self.locked.hold(claim, taken)? {
            Some(note) => visit_of(record, note),
            None => Visit::Dead,
        })
    }

    #[inline(always)]
    fn upgrade(&mut self, record: RecordRef, note: u32) -> Result<(), AbortCause> {
        let plan = &mut self.plan;
        (self.locked).upgrade(record, note, |participant, claim, cause| {
            plan.missed(participant, claim, cause)
        })
    }

    /// Notes what the next plan needs besides, and gives the cause on.
    #[cold]
    fn missed(&mut self, claim: Claim, cause: AbortCause) -> AbortCause {
        (self.plan).missed(&self.locked.in_place.participant, claim, cause)
    }

    #[inline(always)]
    fn release_all(&mut self) {
        self.locked.release_all();
        if !self.deferral.is_unused() {
            self.release_deferred();
        }
        self.plan.end();
    }
}

impl<L: GrantingLocks> Locking for GrantedLocking<L> {
    type Locks = L;

    #[inline(always)]
    fn locked(&mut self) -> &mut Locked<L> {
        &mut self.locked
    }

    #[inline(always)]
    fn lock(&mut self, table: &Table, record: RecordRef, intent: Intent) -> Result<Visit, Halt> {
        Ok(self.lock_known(table, record, intent, None)?)
    }

    #[inline(always)]
    fn make_exclusive(&mut self, table: &Table, handle: &Handle) -> Result<(), AbortCause> {
        let Handle { record, note } = *handle;
        if Deferral::is_deferred(handle) {
            return self.miss_deferred(table, handle);
        }
        match note {
            GRANTED_EXCLUSIVE => Ok(()),
            GRANTED => match self.locked.manager.is_granted(record, true) {
                Ok(()) => Ok(()),
                Err(cause) => Err(self.missed(Claim::new(table, record, true, false), cause)),
            },
            _ => self.upgrade(record, note),
        }
    }

    #[inline(always)]
    fn hold_new(&mut self, table: &Table, record: RecordRef, held: L::Held) -> u32 {
        let claim = Claim::new(table, record, true, false);
        match self.locked.manager.has_grant() {
            true => GRANTED_EXCLUSIVE,
            false => self.locked.locks.hold_new::<L::Naming>(claim, held),
        }
    }

    fn note_of_deleted(&mut self, table: &Table, record: RecordRef) -> u32 {
        let claim = Claim::new(table, record, true, false);
        match self.locked.locks.find::<L::Naming>(claim) {
            Some(note) => note,
            None if self.locked.manager.has_grant() => GRANTED_EXCLUSIVE,
            None => unreachable!("what was deleted is locked"),
        }
    }
}
