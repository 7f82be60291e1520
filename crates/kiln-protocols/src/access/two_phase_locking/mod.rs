//! Strict two-phase locking: without waiting, or with one of three ways to handle deadlocks; with the
//! locks beside the records, or in a lock table.
//!
//! Sources: ORTHRUS §4 (wait-for graph, wait-die, dreadlocks; the lock table with a latch per bucket),
//! STRIFE §5.3 and healing §5 (THEDB-2PL) for no-wait, all after Yu et al., *Staring into the Abyss*,
//! PVLDB 8, 2014.
//!
//! # The idea
//!
//! An attempt takes the shared lock of each record it meets, the exclusive one where the analysis of
//! the procedure says that it will write (so that two transactions that read and then write the same
//! record do not both start by sharing it). It writes in place, with an undo log. All locks are held
//! to the end; commit gives the written records a new tid and lets go.
//!
//! What a lock is, where it is and what happens when it cannot be had is the business of
//! [`Locks`]: the locks are its four queued kinds and the compact word, and the protocol is the
//! same with each.
//!
//! # Planned
//!
//! Where the locks are *planned* ([`Locks::PLANNED`]) an attempt first finds out which records it will meet
//! and takes their locks all together; then it runs as any other, and finds its records locked. See
//! [`planning`](crate::shared::planning) for the plan and [`planned`](crate::shared::locks::planned) for
//! who waits for whom.
//!
//! Where the data are divided into *parts* ([`Locks::DIVIDED`]) claims say the part that their records belong to, as
//! that decides where a lock is; it is compared when the record is met. A lock may cover a whole table
//! that every partition has, or all that is in a partition ([`Locks::COARSE`]).
//!
//! Where attempts *travel* ([`Locks::TRAVELS`]) the worker that runs one changes: each operation is done where its
//! record is. All that an attempt has is put aside in between ([`Parked`]); its locks were taken before it set out.
//!
//! # Phantoms
//!
//! Locks on records do not cover gaps. Each leaf or bucket that a scan or a failed look-up relied
//! on is noted with its version and checked at commit, while all locks are held: if no entry
//! came in since, the scans are still true at the commit point, and so is everything that is
//! locked. The papers' 2PL has no range queries; this is our addition.
//!
//! # Invariants
//!
//! - A record's words and tid change only under its exclusive lock, or before any index has it.
//! - A new record is locked exclusively by its transaction from before it is in an index.
//! - Every lock in the list is held, each record once, in the mode noted.
//! - An attempt that waits has changed nothing that is not locked: others may meet what it inserted, and
//!   wait for it.
//! - `aux` is 0 for every record in an index when no transaction runs.
//!
//! # Order
//!
//! Locks are taken in the order in which the procedure meets its records; that this may end in a
//! deadlock is the handling's problem (`shared/locks/handling/`). No latch is held while waiting.

mod deferral;

use kiln_history::{Log, Version};
use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{Inserted, Recalled, Sought, Visit};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Arguments, Handle, Program, Stop, Updater};
use kiln_storage::epoch::Participant;
use kiln_storage::error::Error;
use kiln_storage::index::NodeVersion;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, EntryKey, Part, Table};

use deferral::Deferral;

use crate::access::serial::refused_update;
use crate::canary::Canary;
use crate::phases::{Phase, Phased, Phases};
use crate::shared::in_place::{Done, InPlace};
use crate::shared::links;
use crate::shared::locks::{LockWords, Locks, QueuedLocks, Taken};
use crate::shared::node_set::NodeSet;
use crate::shared::planning::{Claim, Findings, Footprint, PlannedAhead, Planner};
use crate::shared::record_map::RecordMap;
use crate::shared::recorder::{Recorded, Recorder};

/// The note of a handle whose record a canary did not lock.
const NOT_LOCKED: u32 = u32::MAX;
/// The note of a handle whose record was granted without a lock, to be read.
const GRANTED: u32 = u32::MAX - 1;
/// As [`GRANTED`], to be written.
const GRANTED_EXCLUSIVE: u32 = u32::MAX - 2;
/// The note of a handle whose record is covered by the lock of a partition.
const COVERED: u32 = u32::MAX - 3;

/// A lock that the attempt holds.
#[derive(Clone, Copy)]
struct Held<H> {
    record: RecordRef,
    held: H,
    exclusive: bool,
    part: Part,
}

/// The locks that an attempt holds.
struct HeldLocks<H> {
    all: Vec<Held<H>>,
    /// From a record to its lock.
    by_record: RecordMap,
    /// Of all locks, those before this one are in the map; the others are put there when it is asked.
    named: usize,
    /// The locks of whole tables.
    of_tables: Vec<u32>,
}

/// An attempt that no worker runs at present, where attempts travel ([`Locks::TRAVELS`]).
pub struct Parked<L: Locks> {
    /// What it has done, and its part in an observation.
    pub done: Done,
    locks: HeldLocks<L::Held>,
    nodes: NodeSet,
    newest: Tid,
    findings: Findings,
}

impl<L: Locks> Default for Parked<L> {
    fn default() -> Parked<L> {
        Parked {
            done: Done::default(),
            locks: HeldLocks::default(),
            nodes: NodeSet::default(),
            newest: Tid(0),
            findings: Findings::default(),
        }
    }
}

// SAFETY: locks, nodes and findings are pointers that only whoever runs the attempt follows.
unsafe impl<L: Locks> Send for Parked<L> {}

/// Of an attempt that travels: where it is, as far as the access has to know.
#[derive(Default)]
struct Journey {
    /// Whether the attempt is another worker's, which holds its epoch.
    is_guest: bool,
    /// Whether it has come for an operation that is not done yet: it does not leave before that.
    has_arrived: bool,
    /// The partition to which it wants to go.
    leaving_for: Option<u16>,
}

/// The tid of an attempt that travels, for the records whose owners are to store it.
#[derive(Default)]
struct Left {
    tid: u64,
    records: Vec<(RecordRef, u16)>,
}

/// The access of one worker; see the module's documentation.
pub struct TwoPhaseLocking<L: Locks> {
    in_place: InPlace,
    manager: L,
    locks: HeldLocks<L::Held>,
    nodes: NodeSet,
    /// The newest version met.
    newest: Tid,
    phases: Phases,
    /// Where locks are planned.
    planner: Option<Box<Planner>>,
    /// Whether the attempt has several statements, of which nobody knows the next.
    has_statements: bool,
    /// Whether the attempt missed something, so that the next one of the same call begins in the same
    /// epoch: what was missed is still there then, to be planned.
    stays: bool,
    /// Where attempts travel.
    journey: Journey,
    left: Left,
    /// Where updates are left to the commit.
    deferral: Deferral,
}

/// Two-phase locking that aborts instead of waiting, with the compact lock beside the record.
pub type NoWait = TwoPhaseLocking<LockWords>;

/// Two-phase locking whose locks are queues at the placement `P`, with the deadlock handling `H`.
pub type Queued<P, H> = TwoPhaseLocking<QueuedLocks<P, H>>;

impl<L: Locks> TwoPhaseLocking<L> {
    /// An access for the worker that `participant` stands for, with this side of the locks.
    pub fn new(participant: Participant, manager: L) -> TwoPhaseLocking<L> {
        let mut planner = Planner::new(L::DIVIDED);
        planner.marks_left = L::DEFERS && manager.leaves_updates();
        TwoPhaseLocking {
            in_place: InPlace::new(participant),
            manager,
            locks: HeldLocks::default(),
            nodes: NodeSet::default(),
            newest: Tid(0),
            phases: Phases::default(),
            planner: L::PLANNED.then(|| Box::new(planner)),
            has_statements: false,
            stays: false,
            journey: Journey::default(),
            left: Left::default(),
            deferral: Deferral::default(),
        }
    }

    /// Enters the epoch for all attempts of the worker that travel from now on, until
    /// [`TwoPhaseLocking::leave_epoch`]. It is entered anew only when none does any more.
    pub fn enter_epoch(&mut self) {
        self.in_place.participant.enter();
    }

    /// Whether the epoch that was entered is not the newest any more: nobody should begin in it.
    pub fn is_epoch_over(&self) -> bool {
        let participant = &self.in_place.participant;
        participant.epoch() != participant.epochs().current()
    }

    /// See [`TwoPhaseLocking::enter_epoch`].
    pub fn leave_epoch(&mut self) {
        self.in_place.leave_epoch();
    }

    /// Takes over an attempt that travels: to do an operation for which it `has_arrived`, or from its beginning.
    pub fn take_over(&mut self, parked: &mut Parked<L>, has_arrived: bool) {
        self.exchange(parked);
        self.journey = Journey {
            is_guest: true,
            has_arrived,
            leaving_for: None,
        };
    }

    /// Puts the attempt aside that [`TwoPhaseLocking::take_over`] has brought; the partition to which it goes, if it does.
    pub fn put_aside(&mut self, parked: &mut Parked<L>) -> Option<u16> {
        self.exchange(parked);
        std::mem::take(&mut self.journey).leaving_for
    }

    /// Hands out the records that the attempt has written in other partitions than that where it committed, with these, and
    /// the tid that they get.
    pub fn take_left(&mut self, mut each: impl FnMut(RecordRef, u16, u64)) {
        let tid = self.left.tid;
        for (record, partition) in self.left.records.drain(..) {
            each(record, partition, tid);
        }
    }

    #[inline(always)]
    fn exchange(&mut self, parked: &mut Parked<L>) {
        self.in_place.exchange(&mut parked.done);
        std::mem::swap(&mut self.locks, &mut parked.locks);
        std::mem::swap(&mut self.nodes, &mut parked.nodes);
        std::mem::swap(&mut self.newest, &mut parked.newest);
        if let Some(planner) = &mut self.planner {
            std::mem::swap(&mut planner.findings, &mut parked.findings);
        }
    }

    /// Whether records of a part are to be touched where the attempt is.
    ///
    /// # Errors
    /// When they are not: it is on its way then ([`Access::leaves`]).
    #[inline(always)]
    fn stay(&mut self, part: Part) -> Result<(), AbortCause> {
        if L::TRAVELS
            && !self.journey.has_arrived
            && let Some(partition) = self.manager.elsewhere(part)
        {
            self.journey.leaving_for = Some(partition);
            return Err(AbortCause::FootprintMiss);
        }
        Ok(())
    }

    /// As [`TwoPhaseLocking::stay`], for a record that was met.
    #[inline(always)]
    fn stay_with(&mut self, table: &Table, handle: &Handle) -> Result<(), AbortCause> {
        if L::TRAVELS && !self.journey.has_arrived {
            let part = match self.locks.all.get(handle.note as usize) {
                Some(lock) => lock.part,
                None => table.part_of(handle.record),
            };
            self.stay(part)?;
        }
        Ok(())
    }

    /// As [`TwoPhaseLocking::stay`], for a row that is to be inserted.
    #[inline(always)]
    fn stay_to_insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &Memory,
    ) -> Result<(), AbortCause> {
        if L::TRAVELS
            && let Some(column) = table.schema().partition_column()
        {
            let slot = memory.slots[values[column.index()].0 as usize];
            if !slot.is_null() {
                self.stay(Part::of_value(slot.as_i64()))?;
            }
        }
        Ok(())
    }

    /// The finding at which the attempt is, to go back to if it leaves.
    #[inline(always)]
    fn finding(&self) -> usize {
        match &self.planner {
            Some(planner) if L::TRAVELS => planner.findings.position(),
            _ => 0,
        }
    }

    /// A look-up has failed that began at a finding.
    #[inline(always)]
    fn go_back(&mut self, finding: usize) {
        if L::TRAVELS
            && let Some(planner) = &mut self.planner
        {
            planner.findings.go_back(finding);
        }
    }

    /// Commits what was written here, and notes what others have to.
    fn commit_by_owners(&mut self, newest: Tid) {
        let (manager, left) = (&self.manager, &mut self.left);
        self.in_place.commit_leaving(newest, |table, record, tid| {
            // A record that is gone, or going, is finished here.
            let is_there = !Tid(record.tid().load(Ordering::Relaxed)).is_absent();
            let elsewhere = manager.elsewhere(table.part_of(record));
            if let Some(partition) = elsewhere.filter(|_| is_there) {
                left.tid = tid.0;
                left.records.push((record, partition));
                return true;
            }
            false
        });
    }

    /// Ends the attempt: its locks are gone.
    #[inline(always)]
    fn finish(&mut self) {
        match L::TRAVELS && self.journey.is_guest {
            true => self.in_place.clear(),
            false => self.in_place.finish(),
        }
    }

    /// Plans a call that runs later: what its reconnaissance meets, and what its failed attempts missed.
    /// The epoch is left again, so that nobody may follow the footprint's references.
    pub fn plan_ahead(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        missed: &[Claim],
        footprint: &mut Footprint,
        findings: &mut Findings,
    ) {
        let Some(planner) = &mut self.planner else {
            unreachable!("locks that are not planned are not planned ahead")
        };
        // Where attempts travel the epoch is held until they have ended.
        if !L::TRAVELS {
            self.in_place.participant.enter();
        }
        let epoch = self.in_place.participant.epoch();
        planner.forget();
        planner.plan(program, arguments, epoch);
        if !L::TRAVELS {
            self.in_place.participant.leave();
        }
        planner.swap_plan(footprint, findings);
        planner.findings.clear();
        for &claim in missed {
            footprint.add(claim);
        }
        footprint.order(findings);
    }

    /// Takes over what was found when the call was planned that now runs in the epoch that has begun: before
    /// [`TwoPhaseLocking::hold_ahead`].
    #[inline]
    pub fn follow(&mut self, findings: &mut Findings) {
        if let Some(planner) = &mut self.planner {
            std::mem::swap(&mut planner.findings, findings);
            if !L::TRAVELS {
                planner.findings.keep_of(self.in_place.participant.epoch());
            }
        }
    }

    /// Notes locks that a scheduler has taken for the attempt that has begun.
    #[inline]
    pub fn hold_ahead(&mut self, claims: &[Claim], held: L::Held) {
        let Some(planner) = &mut self.planner else {
            unreachable!("locks that are not planned are not held ahead")
        };
        for &claim in claims {
            // Else it is met by the owner of its partition.
            if !L::TRAVELS {
                let tid = Tid(claim.record.tid().load(Ordering::Relaxed));
                self.newest = self.newest.max(Tid(tid.version()));
            }
            let note = self.locks.hold::<L>(claim, held);
            planner.findings.held(claim.finding, note);
        }
    }

    /// The worker's side of the locks, for a scheduler that decides what attempts may touch.
    #[inline(always)]
    pub(crate) fn manager(&mut self) -> &mut L {
        &mut self.manager
    }

    /// Hands out what the attempt missed; it is about to be rolled back. It leaves its epoch then, as what
    /// was missed is known by its address alone from now on.
    #[cold]
    pub fn take_missed(&mut self, missed: &mut Vec<Claim>) {
        self.stays = false;
        if let Some(planner) = &mut self.planner {
            planner.take_missed(missed);
        }
    }

    /// Takes the locks of the plan that `plan` makes of the worker's epoch.
    fn take_planned(&mut self, plan: impl FnOnce(&mut Planner, u64)) -> Result<(), AbortCause> {
        let Some(planner) = &mut self.planner else {
            return Ok(());
        };
        self.phases.enter(Phase::Plan);
        plan(planner, self.in_place.participant.epoch());
        point("planned.planned");
        self.phases.enter(Phase::Lock);
        let (locks, newest) = (&mut self.locks, &mut self.newest);
        let (footprint, findings) = planner.parts();
        let taken = self.manager.take_all(footprint.claims(), |claim, held| {
            let tid = Tid(claim.record.tid().load(Ordering::Relaxed));
            *newest = (*newest).max(Tid(tid.version()));
            let note = locks.hold::<L>(claim, held);
            findings.held(claim.finding, note);
        });
        point("planned.locked");
        self.phases.enter(Phase::Execute);
        taken
    }

    /// Notes what the next plan needs besides.
    #[cold]
    fn missed<T>(&mut self, claim: Claim, cause: AbortCause) -> Result<T, AbortCause> {
        if let Some(planner) = &mut self.planner {
            planner.miss(claim, self.in_place.participant.epoch());
            self.stays = !self.has_statements;
        }
        Err(cause)
    }

    /// Waits for a lock unless it is there.
    #[inline(always)]
    fn wait(&mut self, record: RecordRef, taken: Taken<L::Held>) -> Result<L::Held, AbortCause> {
        match taken {
            Taken::Now(held) => Ok(held),
            Taken::Later(held) => {
                self.phases.enter(Phase::Lock);
                let waited = self.manager.wait(record, held);
                self.phases.enter(Phase::Execute);
                waited.map(|()| held)
            }
        }
    }

    /// Makes sure that the record of a handle is held exclusively.
    #[inline(always)]
    fn make_exclusive(&mut self, table: &Table, handle: &Handle) -> Result<(), AbortCause> {
        let Handle { record, note } = *handle;
        if L::DEFERS && Deferral::is_left(handle) {
            return self.miss_left(table, handle);
        }
        if L::GRANTS && note == GRANTED_EXCLUSIVE {
            return Ok(());
        }
        if L::GRANTS && note == GRANTED {
            return match self.manager.is_granted(record, true) {
                Ok(()) => Ok(()),
                Err(cause) => self.missed(Claim::new(table, record, true, L::DIVIDED), cause),
            };
        }
        if L::COARSE && note == COVERED {
            return self.cover(Claim::new(table, record, true, true));
        }
        self.upgrade(record, note)
    }

    /// Makes sure that the lock at `note`, which covers `record`, is exclusive.
    #[inline(always)]
    fn upgrade(&mut self, record: RecordRef, note: u32) -> Result<(), AbortCause> {
        if Canary::FootprintMissIgnored.sings() && note == NOT_LOCKED {
            // Two that write the same record would break more than the history.
            return Err(AbortCause::WriteLock);
        }
        let lock = self.locks.all[note as usize];
        if !lock.exclusive {
            let claim = Claim {
                record,
                exclusive: true,
                is_left: false,
                part: lock.part,
                finding: Findings::NO_FINDING,
            };
            let taken = match self.manager.upgrade(lock.record, lock.held) {
                Ok(taken) => taken,
                Err(cause) => return self.missed(claim, cause),
            };
            let held = self.wait(lock.record, taken)?;
            let lock = &mut self.locks.all[note as usize];
            (lock.held, lock.exclusive) = (held, true);
        }
        Ok(())
    }

    /// Meets a record that needs no lock, if it was granted.
    #[inline(always)]
    fn visit_granted(&mut self, claim: Claim) -> Result<Visit, AbortCause> {
        let Claim {
            record, exclusive, ..
        } = claim;
        if let Err(cause) = self.manager.is_granted(record, exclusive) {
            return self.missed(claim, cause);
        }
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() {
            return Ok(Visit::Dead);
        }
        self.newest = self.newest.max(Tid(tid.version()));
        let note = match exclusive {
            true => GRANTED_EXCLUSIVE,
            false => GRANTED,
        };
        Ok(match tid.is_absent() {
            true => Visit::Absent,
            false => Visit::Present(Handle { record, note }),
        })
    }

    /// Makes sure that the lock of a partition covers a record.
    #[inline(always)]
    fn cover(&mut self, claim: Claim) -> Result<(), AbortCause> {
        let is_ignored = Canary::PartitionGuardIgnored.sings() && !claim.exclusive;
        if is_ignored || self.manager.covers(claim.part, claim.exclusive) {
            return Ok(());
        }
        match self.manager.take_claim(claim) {
            Ok(taken) => {
                let held = self.wait(claim.record, taken)?;
                self.locks.hold::<L>(claim, held);
                Ok(())
            }
            Err(cause) => self.missed(claim, cause),
        }
    }

    /// Locks a record, or finds that it is locked already: by the lock at the position `known`, if that is known.
    #[inline(always)]
    fn lock(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        known: Option<u32>,
    ) -> Result<Visit, AbortCause> {
        let exclusive = intent == Intent::Write;
        if L::TRAVELS && !self.journey.has_arrived {
            // Before the row is looked at.
            let part = match known {
                Some(note) => self.locks.all[note as usize].part,
                None => table.part_of(record),
            };
            self.stay(part)?;
        }
        let claim = Claim::new(table, record, exclusive, L::DIVIDED);
        if L::GRANTS && self.manager.has_grant() {
            return self.visit_granted(claim);
        }
        // Where a lock may be that of a table, or the record's part another one by now, it is looked for.
        let held = match known {
            Some(note) if !L::DIVIDED => Some(note),
            _ => self.locks.find::<L>(claim),
        };
        let note = match held {
            Some(note) => {
                // It was planned, and is not there any more.
                if L::PLANNED {
                    self.manager
                        .admits(record, self.locks.all[note as usize].held)?;
                    if Tid(record.tid().load(Ordering::Relaxed)).is_dead() {
                        return Ok(Visit::Dead);
                    }
                }
                if L::DIVIDED {
                    self.meet(record);
                }
                if exclusive {
                    self.upgrade(record, note)?;
                }
                note
            }
            None if L::COARSE => {
                self.cover(claim)?;
                self.manager.admits_covered(record)?;
                if Tid(record.tid().load(Ordering::Relaxed)).is_dead() {
                    return Ok(Visit::Dead);
                }
                self.meet(record);
                COVERED
            }
            None => {
                let taken = match self.manager.take_claim(claim) {
                    Ok(taken) => taken,
                    Err(_) if Canary::FootprintMissIgnored.sings() && L::PLANNED && !exclusive => {
                        return Ok(Visit::Present(Handle {
                            record,
                            note: NOT_LOCKED,
                        }));
                    }
                    Err(cause) => return self.missed(claim, cause),
                };
                let held = self.wait(record, taken)?;
                let tid = Tid(record.tid().load(Ordering::Relaxed));
                if tid.is_dead() {
                    self.manager.release(record, held, exclusive);
                    return Ok(Visit::Dead);
                }
                self.meet(record);
                self.locks.hold::<L>(claim, held)
            }
        };
        let absent = Tid(record.tid().load(Ordering::Relaxed)).is_absent();
        Ok(if absent {
            Visit::Absent
        } else {
            Visit::Present(Handle { record, note })
        })
    }

    /// Notes the version of a record that is locked.
    #[inline(always)]
    fn meet(&mut self, record: RecordRef) {
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        self.newest = self.newest.max(Tid(tid.version()));
    }

    /// Whether the gaps that were relied on are still there.
    #[inline(always)]
    fn confirm_read(&self) -> Result<(), AbortCause> {
        if self.nodes.is_empty() {
            return Ok(());
        }
        // Sequentially consistent: of two attempts that each insert into a gap that the other
        // relies on, one sees the other's insertion here.
        fence(Ordering::SeqCst);
        if self.nodes.is_current() {
            Ok(())
        } else {
            Err(AbortCause::Phantom)
        }
    }

    fn release_all(&mut self) {
        if L::COARSE {
            // New records first: who gets their partition finds them finished.
            self.locks.all.reverse();
        }
        for lock in self.locks.all.drain(..) {
            self.manager.release(lock.record, lock.held, lock.exclusive);
        }
        self.manager.released_all();
        if L::DEFERS && !self.deferral.is_unused() {
            self.release_left();
        }
        self.locks.by_record.clear();
        self.locks.named = 0;
        if L::PLANNED
            && let Some(planner) = &mut self.planner
        {
            planner.findings.clear();
        }
        self.locks.of_tables.clear();
        self.nodes.clear();
        self.newest = Tid(0);
        self.has_statements = false;
    }

    /// The record that has a unique key already, now shared by the attempt.
    fn taken(
        &mut self,
        table: &Table,
        index: usize,
        other: RecordRef,
        key: &EntryKey,
    ) -> Result<Handle, AbortCause> {
        match self.lock(table, other, Intent::Read, None)? {
            Visit::Present(handle)
                if (self.in_place.changes()).is_found(table, index, key, other) =>
            {
                Ok(handle)
            }
            // It is leaving, or went on to another key before it was met.
            _ => Err(AbortCause::KeyInTransit),
        }
    }
}

impl<H> Default for HeldLocks<H> {
    fn default() -> HeldLocks<H> {
        HeldLocks {
            all: Vec::new(),
            by_record: RecordMap::default(),
            named: 0,
            of_tables: Vec::new(),
        }
    }
}

impl<H: Copy> HeldLocks<H> {
    /// Notes a lock that is held.
    #[inline(always)]
    fn hold<L: Locks>(&mut self, claim: Claim, held: H) -> u32 {
        let note = self.all.len() as u32;
        self.push(claim, held);
        if L::COARSE || !L::DIVIDED {
            // It is known by what it covers; or named when a record is asked for.
        } else if claim.part.is_replicated() {
            self.of_tables.push(note);
        } else {
            self.name::<L>(claim.record, note);
        }
        note
    }

    /// Notes the lock of a new record, which nobody else knows.
    #[inline(always)]
    fn hold_new<L: Locks>(&mut self, claim: Claim, held: H) -> u32 {
        let note = self.all.len() as u32;
        self.push(claim, held);
        if L::DIVIDED {
            self.name::<L>(claim.record, note);
        }
        note
    }

    #[inline(always)]
    fn push(&mut self, claim: Claim, held: H) {
        self.all.push(Held {
            record: claim.record,
            held,
            exclusive: claim.exclusive,
            part: claim.part,
        });
    }

    #[inline(always)]
    fn name<L: Locks>(&mut self, record: RecordRef, note: u32) {
        // A new record may be where one was that is planned: its own lock is the one that counts.
        if !L::PLANNED || !self.by_record.replace(record, note) {
            self.by_record.insert(record, note);
        }
    }

    /// The lock of a record, or of its whole table.
    #[inline(always)]
    fn find<L: Locks>(&mut self, claim: Claim) -> Option<u32> {
        if !L::DIVIDED {
            while let Some(lock) = self.all.get(self.named) {
                self.name::<L>(lock.record, self.named as u32);
                self.named += 1;
            }
            return self.by_record.get(claim.record);
        }
        let found = self.by_record.get(claim.record);
        match found {
            // Its cell may have had a row of another part when the lock was planned.
            Some(note) if self.all[note as usize].part == claim.part => Some(note),
            None if L::COARSE || !claim.part.is_replicated() => None,
            _ => self.find_among_all(claim),
        }
    }

    /// The lock of a record that was planned with several parts, or of its whole table.
    fn find_among_all(&self, claim: Claim) -> Option<u32> {
        let is_its = |lock: &Held<H>| {
            lock.part == claim.part && (lock.part.is_replicated() || lock.record == claim.record)
        };
        if claim.part.is_replicated() {
            let mut tables = self.of_tables.iter().copied();
            return tables.find(|note| is_its(&self.all[*note as usize]));
        }
        let position = self.all.iter().position(is_its)?;
        Some(position as u32)
    }
}

impl<L: Locks> Access for TwoPhaseLocking<L> {
    const TRAVELS: bool = L::TRAVELS;

    #[inline(always)]
    fn leaves(&mut self) -> bool {
        self.journey.leaving_for.is_some()
    }

    #[inline(always)]
    fn has_done(&mut self) {
        self.journey.has_arrived = false;
    }

    #[inline(always)]
    fn prepare(&mut self, failures: u32) {
        if let Some(planner) = &mut self.planner
            && failures == 0
        {
            planner.forget();
        }
    }

    #[inline]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.manager.begin_call(deadline_ns);
    }

    fn end_call(&mut self) {
        if std::mem::take(&mut self.stays) {
            self.in_place.participant.leave();
        }
    }

    #[inline]
    fn begin(&mut self) {
        if !std::mem::take(&mut self.stays) && !self.journey.is_guest {
            self.in_place.participant.enter();
        }
        self.manager.begin();
    }

    #[inline(always)]
    fn plan(&mut self, program: &Program, arguments: &Arguments) -> Result<(), AbortCause> {
        match L::PLANNED {
            true => self.take_planned(|planner, epoch| planner.plan(program, arguments, epoch)),
            false => Ok(()),
        }
    }

    fn plan_statements(&mut self) {
        self.has_statements = true;
        // What is not to be had now is met unplanned.
        let _ = self.take_planned(Planner::plan_again);
    }

    /// What the plan has found for this key is what is there: its lock is held, so that nobody has taken it away
    /// since; unless it was gone before, or the attempt itself has deleted it.
    #[inline(always)]
    fn recall(
        &mut self,
        sought: &Sought<'_>,
        memory: &Memory,
    ) -> Result<Option<Recalled>, AbortCause> {
        if !L::PLANNED {
            return Ok(None);
        }
        let finding = self.finding();
        let Some(planner) = &mut self.planner else {
            return Ok(None);
        };
        let Some((record, known)) = planner.findings.recall(sought, memory) else {
            return Ok(None);
        };
        charge(Work::Record);
        let left = match L::DEFERS && sought.is_left && self.manager.defers() {
            true => self.meet_left(sought.table, record),
            false => None,
        };
        let visit = match left {
            Some(visit) => visit,
            None => {
                let visit = self.lock(sought.table, record, sought.intent, known);
                visit.inspect_err(|_| self.go_back(finding))?
            }
        };
        // Looked at when the lock is held: whoever has moved the record before has said so.
        let moves = sought.table.indexes()[sought.index].moves();
        let moves = moves && !Canary::FindingOutdated.sings();
        Ok(match visit {
            Visit::Present(handle) if !moves => Some(Recalled::Found(handle)),
            _ => None,
        })
    }

    #[inline(always)]
    fn recalls(&self) -> bool {
        let mut planner = self.planner.iter();
        L::PLANNED && planner.any(|planner| !planner.findings.is_empty())
    }

    #[inline(always)]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
    ) -> Result<Visit, AbortCause> {
        charge(Work::Record);
        let finding = self.finding();
        let known = match &mut self.planner {
            Some(planner) if L::PLANNED => planner.findings.lock_of(record),
            _ => None,
        };
        let visit = self.lock(table, record, intent, known);
        visit.inspect_err(|_| self.go_back(finding))
    }

    #[inline(always)]
    fn visit_for(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: Observed,
    ) -> Result<Visit, AbortCause> {
        if L::DEFERS
            && observed.is_left
            && self.manager.defers()
            && let Some(visit) = self.meet_left(table, record)
        {
            charge(Work::Record);
            return Ok(visit);
        }
        self.visit(table, record, intent)
    }

    #[inline(always)]
    fn defers(&self) -> bool {
        L::DEFERS && self.manager.defers()
    }

    #[inline]
    fn defer(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        updater: &Updater,
        operands: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        charge(Work::Record);
        self.keep_left(table, handle, updater, operands, memory)
    }

    #[inline(always)]
    fn commit_or_raise(&mut self) -> Result<(), Stop> {
        if L::DEFERS && !self.deferral.is_empty() {
            point("2pl.executed");
            self.settle_left()?;
        }
        Ok(self.commit()?)
    }

    #[inline]
    fn confirm_raise(&mut self, error: Error) -> Result<Error, AbortCause> {
        match L::DEFERS && !self.deferral.is_empty() {
            true => self.first_error(error),
            false => self.confirm().map(|()| error),
        }
    }

    fn version_of(&self, handle: &Handle) -> Version {
        let left = match L::DEFERS {
            true => self.deferral.version_of(handle),
            false => None,
        };
        left.unwrap_or_else(|| Version(Tid(handle.record.tid().load(Ordering::Relaxed)).version()))
    }

    #[inline]
    fn guard(&mut self, node: NodeVersion) -> Result<(), AbortCause> {
        self.nodes.guard(node)
    }

    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        if L::DEFERS && Deferral::is_left(handle) {
            return self.miss_left(table, handle);
        }
        self.stay_with(table, handle)?;
        self.in_place.read(table, handle.record, columns, memory);
        Ok(())
    }

    #[inline]
    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        self.stay_with(table, handle)?;
        self.make_exclusive(table, handle)?;
        let nodes = &mut self.nodes;
        let refused = self
            .in_place
            .update(table, handle.record, columns, memory, |touched| {
                Ok(nodes.touched(touched)?)
            })?;
        let Some((index, other)) = refused else {
            return Ok(());
        };
        let key = InPlace::new_key(table, index, handle.record, columns, memory)?;
        self.taken(table, index, other, &key)?;
        Err(refused_update(table, index, handle.record, columns, memory))
    }

    #[inline]
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Stop> {
        self.stay_to_insert(table, values, memory)?;
        charge(Work::Record);
        let (nodes, manager) = (&mut self.nodes, &mut self.manager);
        let mut new = None;
        let created = |record| {
            new = Some((record, manager.take_new(record)?));
            Ok(())
        };
        let inserted =
            self.in_place
                .insert(table, values, memory, L::NEW_AUX, created, |touched| {
                    Ok(nodes.touched(touched)?)
                });
        let (index, other) = match (inserted, new) {
            (Ok(Ok(record)), Some((_, held))) => {
                let claim = Claim::new(table, record, true, L::DIVIDED);
                let note = match L::GRANTS && self.manager.has_grant() {
                    true => GRANTED_EXCLUSIVE,
                    false => self.locks.hold_new::<L>(claim, held),
                };
                return Ok(Inserted::New(Handle { record, note }));
            }
            (refused, new) => {
                // Whoever met it meanwhile finds it dead.
                if let Some((record, held)) = new {
                    self.manager.release(record, held, true);
                }
                match refused? {
                    Ok(record) => unreachable!("{record:?} is new, and was not locked"),
                    Err(in_the_way) => in_the_way,
                }
            }
        };
        if index == 0 && self.in_place.has_deleted(other) {
            let claim = Claim::new(table, other, true, L::DIVIDED);
            let note = match self.locks.find::<L>(claim) {
                Some(note) => note,
                None if L::GRANTS && self.manager.has_grant() => GRANTED_EXCLUSIVE,
                None if L::COARSE => COVERED,
                None => unreachable!("what was deleted is locked"),
            };
            let nodes = &mut self.nodes;
            let refused = self
                .in_place
                .revive(table, other, values, memory, |touched| {
                    Ok(nodes.touched(touched)?)
                })?;
            if let Some((index, other)) = refused {
                let key = links::key_of(table, index, values, memory)?;
                let handle = self.taken(table, index, other, &key)?;
                return Ok(Inserted::Exists { index, handle });
            }
            return Ok(Inserted::New(Handle {
                record: other,
                note,
            }));
        }
        let key = links::key_of(table, index, values, memory)?;
        let handle = self.taken(table, index, other, &key)?;
        Ok(Inserted::Exists { index, handle })
    }

    #[inline]
    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Stop> {
        self.stay_with(table, handle)?;
        self.make_exclusive(table, handle)?;
        self.in_place.delete(table, handle.record);
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<(), AbortCause> {
        point("2pl.executed");
        self.phases.enter(Phase::Validate);
        self.confirm()?;
        point("2pl.validated");
        self.phases.enter(Phase::Install);
        let newest = self.newest;
        if Canary::ReleasedBeforeInstall.sings() {
            self.release_all();
        }
        match L::TRAVELS && self.journey.is_guest {
            true => self.commit_by_owners(newest),
            false => self.in_place.commit(newest),
        }
        point("2pl.written");
        self.release_all();
        point("2pl.released");
        self.finish();
        Ok(())
    }

    #[inline]
    fn confirm(&mut self) -> Result<(), AbortCause> {
        self.confirm_read()
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        !self.in_place.changes().is_empty()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        self.in_place.changes().resolve(table, index, entry)
    }

    fn roll_back(&mut self) {
        self.in_place.roll_back();
        if let Some(planner) = &mut self.planner
            && self.has_statements
        {
            let epoch = self.in_place.participant.epoch();
            for lock in &self.locks.all {
                let claim = Claim {
                    record: lock.record,
                    exclusive: lock.exclusive,
                    is_left: false,
                    part: lock.part,
                    finding: Findings::NO_FINDING,
                };
                planner.miss(claim, epoch);
            }
        }
        self.release_all();
        match self.stays {
            true => self.in_place.clear(),
            false => self.finish(),
        }
    }

    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.in_place.recorder.log()
    }
}

impl<L: Locks> PlannedAhead for TwoPhaseLocking<L> {
    type Demand = Footprint;
    type Held = L::Held;

    fn plan_ahead(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        missed: &[Claim],
        demand: &mut Footprint,
        findings: &mut Findings,
    ) {
        TwoPhaseLocking::plan_ahead(self, program, arguments, missed, demand, findings);
    }

    #[inline]
    fn follow(&mut self, findings: &mut Findings) {
        TwoPhaseLocking::follow(self, findings);
    }

    #[inline]
    fn hold_ahead(&mut self, demand: &Footprint, held: L::Held) {
        TwoPhaseLocking::hold_ahead(self, demand.claims(), held);
    }

    #[cold]
    fn take_missed(&mut self, missed: &mut Vec<Claim>) {
        TwoPhaseLocking::take_missed(self, missed);
    }
}

impl<L: Locks> Recorded for TwoPhaseLocking<L> {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.in_place.recorder
    }
}

impl<L: Locks> Phased for TwoPhaseLocking<L> {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
