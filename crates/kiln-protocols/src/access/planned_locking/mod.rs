//! Strict two-phase locking whose locks are planned: an attempt first finds out which records it
//! will meet, and takes their locks all together; then it runs, and finds its records locked.
//!
//! Sources: ORTHRUS §3.2 (all locks in one order, before the transaction runs), VLL §2 (all
//! requests in one critical section), STRIFE §5.3; whose locks they are, and who waits for whom,
//! see [`planned`](crate::shared::locks::planned). A scheduler may take them in the attempt's stead
//! ([`PlannedAhead`](crate::shared::planning::PlannedAhead)).
//!
//! # Phases
//!
//! | phase | where |
//! |---|---|
//! | plan: a reconnaissance that collects records | [`planning`](crate::shared::planning) |
//! | take all locks, or hold those that a scheduler has taken | `shared/locked/plan.rs`, `ahead.rs` |
//! | run in place, with an undo log | here, and `shared/locked` |
//! | commit: gaps are checked, new tids, locks go | `access.rs` |
//!
//! What was not planned is taken if that needs no wait; else the attempt ends (`footprint_miss`),
//! and the next plan has it. Gaps are guarded by versions, as under two-phase locking.
//!
//! Where the data are divided into *parts* ([`ByPart`](crate::shared::locks::ByPart)) claims say the part that their
//! records belong to, as that decides where a lock is; it is compared when the record is met. A
//! lock may cover a whole table that every partition has.
//!
//! Where attempts *travel* ([`TravellingLocks`](crate::shared::locks::TravellingLocks)) the worker that runs one changes: each operation is
//! done where its record is (`journey.rs`). All that an attempt has is put aside in between
//! ([`Parked`]); its locks were taken before it set out.
//!
//! Where locks are by *column group* ([`Locks::GROUPS`](crate::shared::locks::Locks::GROUPS)) a record has two, and a lock is known by
//! its name (`groups.rs`).
//!
//! # Which anomalies are excluded, and how
//!
//! All: each record is locked before it is read, in the plan or when it is met, and locks are held
//! to the end.

mod access;
mod ahead;
mod groups;
mod journey;
pub(crate) mod registration;

use kiln_platform::atomic::Ordering;
use kiln_procedure::access::Visit;
use kiln_procedure::ir::Intent;
use kiln_procedure::{AbortCause, Halt, Handle};
use kiln_storage::epoch::Participant;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::table::Table;

use journey::{Journey, PendingTids};

pub use journey::Parked;

use crate::canary::Canary;
use crate::shared::locked::plan::LockPlan;
use crate::shared::locked::{Locked, Locking, NOT_LOCKED, record_of, visit_of};
use crate::shared::locks::{Naming, PlannedLocks};
use crate::shared::planning::{Claim, Extent, Planned};

/// The access of one worker; see the module's documentation.
pub struct PlannedLocking<L: PlannedLocks> {
    locked: Locked<L>,
    plan: LockPlan,
    /// Where attempts travel.
    journey: Journey,
    pending_tids: PendingTids,
}

impl<L: PlannedLocks> PlannedLocking<L> {
    /// An access for the worker that `participant` stands for, with this side of the locks.
    pub fn new(participant: Participant, manager: L) -> PlannedLocking<L> {
        let locked = Locked::new(participant, manager);
        PlannedLocking {
            plan: LockPlan::new(Planned {
                is_divided: L::Naming::BY_PART,
                is_run_soon: true,
                keeps_scans: !L::TRAVELS,
                by_group: locked.by_group(),
                is_in_words: L::MAY_BE_IN_WORDS && locked.has_handles(),
                ..L::planned()
            }),
            locked,
            journey: Journey::default(),
            pending_tids: PendingTids::default(),
        }
    }

    /// The worker's side of the locks, for a scheduler that decides what attempts may touch.
    #[inline(always)]
    pub(crate) fn manager(&mut self) -> &mut L {
        &mut self.locked.manager
    }

    /// Locks a record, or finds that it is locked already: by the lock at the position `known`, if
    /// that is known. `extent` says which of its locks.
    #[inline(always)]
    fn lock_known(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        extent: Extent,
        known: Option<u32>,
    ) -> Result<Visit, Halt> {
        if L::TRAVELS && !self.journey.has_arrived {
            // Before the row is looked at.
            let part = match known {
                Some(note) => self.locked.locks.all[note as usize].part,
                None => table.part_of(record),
            };
            self.stay(part)?;
        }
        let exclusive = intent == Intent::Write;
        let mut claim = L::Naming::claim(table, record, exclusive);
        if self.locked.by_group() {
            claim = claim.within(extent);
        }
        let visit = self.lock_claimed(record, claim, known)?;
        let takes_both = extent == Extent::Both && self.locked.has_unwritten(table);
        if takes_both && !matches!(visit, Visit::Dead) {
            self.lock_unwritten(table, record)?;
        }
        Ok(visit)
    }

    /// Takes the lock of a record that a claim names, or finds that it is held.
    #[inline(always)]
    fn lock_claimed(
        &mut self,
        record: RecordRef,
        claim: Claim,
        known: Option<u32>,
    ) -> Result<Visit, Halt> {
        let known = known.filter(|&note| !L::Naming::BY_PART && self.is_asked(note, claim));
        let (locked, plan) = (&mut self.locked, &mut self.plan);
        // Where a lock may be that of a table, or the record's part another one by now, it is
        // looked for.
        let held = match known {
            Some(note) => Some(note),
            None => locked.locks.find::<L::Naming>(claim),
        };
        let Some(note) = held else {
            return self.take_unplanned(claim);
        };
        let held = locked.locks.all[note as usize].held;
        locked.manager.admits(record, held)?;
        if Tid(record.tid().load(Ordering::Relaxed)).is_dead() {
            // It was planned, and is not there any more.
            return Ok(Visit::Dead);
        }
        if L::Naming::BY_PART {
            locked.meet(record);
        }
        if claim.exclusive {
            locked.upgrade(record, note, |participant, claim, cause| {
                plan.missed(participant, claim, cause)
            })?;
        }
        Ok(visit_of(record, note))
    }

    /// Locks a record that was not planned.
    #[inline(always)]
    fn take_unplanned(&mut self, claim: Claim) -> Result<Visit, Halt> {
        let record = record_of::<L>(claim.record);
        let taken = match self.locked.take(claim) {
            Ok(taken) => taken,
            Err(_) if Canary::FootprintMissIgnored.sings() && !claim.exclusive => {
                let note = NOT_LOCKED;
                return Ok(Visit::Present(Handle { record, note }));
            }
            Err(cause) => {
                let participant = &self.locked.in_place.participant;
                return Err(self.plan.missed(participant, claim, cause).into());
            }
        };
        Ok(match self.locked.hold(claim, taken)? {
            Some(note) => visit_of(record, note),
            None => Visit::Dead,
        })
    }

    /// Makes the changes final: here, or each where its record is.
    #[inline(always)]
    fn write(&mut self, newest: Tid) {
        match L::TRAVELS && self.journey.is_guest {
            true => self.commit_by_owners(newest),
            false => self.locked.in_place.commit(newest),
        }
    }

    #[inline(always)]
    fn release_all(&mut self) {
        self.locked.release_all();
        self.plan.end();
    }

    /// Ends the attempt: its locks are gone.
    #[inline(always)]
    fn finish(&mut self) {
        match L::TRAVELS && self.journey.is_guest {
            true => self.locked.in_place.clear(),
            false => self.locked.in_place.finish(),
        }
    }
}

impl<L: PlannedLocks> Locking for PlannedLocking<L> {
    type Locks = L;

    #[inline(always)]
    fn locked(&mut self) -> &mut Locked<L> {
        &mut self.locked
    }

    #[inline(always)]
    fn lock(&mut self, table: &Table, record: RecordRef, intent: Intent) -> Result<Visit, Halt> {
        self.lock_known(table, record, intent, Extent::Record, None)
    }

    #[inline(always)]
    fn make_exclusive(&mut self, _: &Table, handle: &Handle) -> Result<(), AbortCause> {
        let plan = &mut self.plan;
        (self.locked).upgrade(handle.record, handle.note, |participant, claim, cause| {
            plan.missed(participant, claim, cause)
        })
    }

    #[inline(always)]
    fn hold_new(&mut self, table: &Table, record: RecordRef, held: L::Held) -> u32 {
        let claim = L::Naming::claim(table, record, true);
        self.locked.locks.hold_new::<L::Naming>(claim, held)
    }

    fn note_of_deleted(&mut self, table: &Table, record: RecordRef) -> u32 {
        let claim = L::Naming::claim(table, record, true);
        let note = self.locked.locks.find::<L::Naming>(claim);
        note.expect("what was deleted is locked")
    }
}
