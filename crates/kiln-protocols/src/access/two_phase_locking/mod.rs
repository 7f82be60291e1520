//! Strict two-phase locking: without waiting, or with one of three ways to handle deadlocks; with
//! the locks beside the records, or in a lock table.
//!
//! Sources: ORTHRUS §4 (wait-for graph, wait-die, dreadlocks; the lock table with a latch per
//! bucket), STRIFE §5.3 and healing §5 (THEDB-2PL) for no-wait, all after Yu et al., *Staring into
//! the Abyss*, PVLDB 8, 2014.
//!
//! # The idea
//!
//! An attempt takes the shared lock of each record it meets, the exclusive one where the analysis
//! of the procedure says that it will write (so that two transactions that read and then write the
//! same record do not both start by sharing it). It writes in place, with an undo log. All locks
//! are held to the end; commit gives the written records a new tid and lets go.
//!
//! What a lock is, where it is and what happens when it cannot be had is the business of
//! [`Locks`]: the locks are its four queued kinds and the compact word, and the protocol is the
//! same with each.
//!
//! # Planned
//!
//! Where the locks are *planned* ([`Locks::PLANNED`]) an attempt first finds out which records it
//! will meet and takes their locks all together; then it runs as any other, and finds its records
//! locked. See [`planning`](crate::shared::planning) for the plan and
//! [`planned`](crate::shared::locks::planned) for who waits for whom.
//!
//! Where the data are divided into *parts* ([`Locks::DIVIDED`]) claims say the part that their
//! records belong to, as that decides where a lock is; it is compared when the record is met. A
//! lock may cover a whole table that every partition has, or all that is in a partition
//! ([`Locks::COARSE`]).
//!
//! Where attempts *travel* ([`Locks::TRAVELS`]) the worker that runs one changes: each operation is
//! done where its record is. All that an attempt has is put aside in between ([`Parked`]); its
//! locks were taken before it set out.
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
//! - An attempt that waits has changed nothing that is not locked: others may meet what it
//!   inserted, and wait for it.
//! - `aux` is 0 for every record in an index when no transaction runs.
//!
//! # Order
//!
//! Locks are taken in the order in which the procedure meets its records; that this may end in a
//! deadlock is the handling's problem (`shared/locks/handling/`). No latch is held while waiting.

mod deferral;
mod held;
mod journey;
mod plan;
pub(crate) mod registration;

use kiln_history::{Log, Version};
use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, KeptScan, Planning, Recalled, Recording, Remembering, Scanning,
    Sought, SoughtScan, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Arguments, Halt, Handle, Program, Stop, Updater};
use kiln_storage::epoch::Participant;
use kiln_storage::error::Error;
use kiln_storage::index::{LeafBatch, NodeVersion};
use kiln_storage::journal::Journal;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, EntryKey, IndexScan, Table};

use deferral::Deferral;
use held::HeldLocks;
use journey::{Journey, Left};

pub use journey::Parked;

use crate::canary::Canary;
use crate::phases::{Phase, Phased, Phases};
use crate::shared::in_place::InPlace;
use crate::shared::in_place::refused_update;
use crate::shared::links;
use crate::shared::locks::{LockWords, Locks, QueuedLocks, Step, Taken};
use crate::shared::node_set::NodeSet;
use crate::shared::planning::scans::Scans;
use crate::shared::planning::{Claim, Findings, Planned, Planner};
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;

/// The note of a handle whose record a canary did not lock.
const NOT_LOCKED: u32 = u32::MAX;
/// The note of a handle whose record was granted without a lock, to be read.
const GRANTED: u32 = u32::MAX - 1;
/// As [`GRANTED`], to be written.
const GRANTED_EXCLUSIVE: u32 = u32::MAX - 2;
/// The note of a handle whose record is covered by the lock of a partition.
const COVERED: u32 = u32::MAX - 3;

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
    /// Whether the attempt has several statements, of which the next one is unknown.
    has_statements: bool,
    /// Whether the attempt missed something, so that the next one of the same call begins in the
    /// same epoch: what was missed is still there then, to be planned.
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
        let planner = Planner::new(Planned {
            is_divided: L::DIVIDED,
            marks_left: L::DEFERS && manager.leaves_updates(),
            is_in_any_order: !L::ORDERED,
            is_run_soon: !L::GRANTS,
            keeps_scans: !L::TRAVELS,
        });
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

    /// Ends the attempt: its locks are gone.
    #[inline(always)]
    fn finish(&mut self) {
        match L::TRAVELS && self.journey.is_guest {
            true => self.in_place.clear(),
            false => self.in_place.finish(),
        }
    }

    /// The worker's side of the locks, for a scheduler that decides what attempts may touch.
    #[inline(always)]
    pub(crate) fn manager(&mut self) -> &mut L {
        &mut self.manager
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
            let taken = self.manager.upgrade(lock.record, lock.held);
            let taken = taken.or_else(|cause| {
                let step = Step::Upgrade(lock.held);
                let locks = &mut self.locks;
                let taken = locks.take_beside(&mut self.manager, lock.record, step, cause);
                taken.map(Taken::Now)
            });
            let taken = match taken {
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

    /// Locks a record, or finds that it is locked already: by the lock at the position `known`, if
    /// that is known.
    #[inline(always)]
    fn lock(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        known: Option<u32>,
    ) -> Result<Visit, Halt> {
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
            return Ok(self.visit_granted(claim)?);
        }
        // Where a lock may be that of a table, or the record's part another one by now, it is
        // looked for.
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
                let taken = self.manager.take_claim(claim);
                let taken = taken.or_else(|cause| {
                    let (locks, step) = (&mut self.locks, Step::Take { exclusive });
                    let taken = locks.take_beside(&mut self.manager, record, step, cause);
                    taken.map(Taken::Now)
                });
                let taken = match taken {
                    Ok(taken) => taken,
                    Err(_) if Canary::FootprintMissIgnored.sings() && L::PLANNED && !exclusive => {
                        return Ok(Visit::Present(Handle {
                            record,
                            note: NOT_LOCKED,
                        }));
                    }
                    Err(cause) => return Ok(self.missed(claim, cause)?),
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

    /// Guards what the plan has read of a range, if that is what is there still.
    fn recall_scan(
        scans: &mut Scans,
        nodes: &mut NodeSet,
        sought: &SoughtScan<'_>,
        memory: &Memory,
    ) -> Result<KeptScan, AbortCause> {
        let Some(scan) = scans.recall(sought, memory) else {
            return Ok(KeptScan::No);
        };
        let (leaf, mut versions) = scans.leaves(scan);
        if Canary::ScanOutdated.sings() {
            return Ok(KeptScan::Known { scan, leaf });
        }
        if sought.table.indexes()[sought.index].moves() || !versions.all(|leaf| leaf.is_current()) {
            return Ok(KeptScan::No);
        }
        for version in scans.leaves(scan).1 {
            nodes.guard(version)?;
        }
        Ok(KeptScan::Known { scan, leaf })
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
        self.locks.forget_sharing();
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
    ) -> Result<Handle, Halt> {
        match self.lock(table, other, Intent::Read, None)? {
            Visit::Present(handle)
                if (self.in_place.changes()).is_found(table, index, key, other) =>
            {
                Ok(handle)
            }
            // It is leaving, or went on to another key before it was met.
            _ => Err(AbortCause::KeyInTransit.into()),
        }
    }
}

impl<L: Locks> Access for TwoPhaseLocking<L> {
    #[inline]
    fn begin(&mut self) {
        if !std::mem::take(&mut self.stays) && !self.journey.is_guest {
            self.in_place.participant.enter();
        }
        self.manager.begin();
    }

    #[inline(always)]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        if L::DEFERS
            && observed.is_left
            && self.manager.defers()
            && let Some(visit) = self.meet_left(table, record)
        {
            return Ok(visit);
        }
        let finding = self.finding();
        let known = match &mut self.planner {
            Some(planner) if L::PLANNED => planner.findings.lock_of(record),
            _ => None,
        };
        let visit = self.lock(table, record, intent, known);
        visit.inspect_err(|_| self.go_back(finding))
    }

    #[inline]
    fn guard(&mut self, _: &Table, _: usize, node: NodeVersion) -> Result<(), AbortCause> {
        self.nodes.guard(node)
    }

    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        if L::DEFERS && Deferral::is_left(handle) {
            return Ok(self.miss_left(table, handle)?);
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
    ) -> Result<(), Halt> {
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
        Err(refused_update(table, index, handle.record, columns, memory).into())
    }

    #[inline]
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        self.stay_to_insert(table, values, memory)?;
        charge(Work::Record);
        let (nodes, manager, locks) = (&mut self.nodes, &mut self.manager, &mut self.locks);
        let mut new = None;
        let created = |record| {
            let taken = manager.take_new(record);
            let taken =
                taken.or_else(|cause| locks.take_beside(manager, record, Step::TakeNew, cause));
            new = Some((record, taken?));
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
                // A transaction that met it meanwhile finds it dead.
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
    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
        self.stay_with(table, handle)?;
        self.make_exclusive(table, handle)?;
        self.in_place.delete(table, handle.record);
        Ok(())
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.stay_with(table, handle)?;
        let nodes = &mut self.nodes;
        let record = handle.record;
        Ok(
            (self.in_place).bring_back(table, record, values, memory, |touched| {
                Ok(nodes.touched(touched)?)
            })?,
        )
    }

    #[inline]
    fn commit(&mut self) -> Result<(), Stop> {
        point("2pl.executed");
        if L::DEFERS && !self.deferral.is_empty() {
            self.settle_left()?;
            point("strife.left-written");
        }
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
        self.in_place.report_late();
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
}

impl<L: Locks> Planning for TwoPhaseLocking<L> {
    #[inline]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.manager.begin_call(deadline_ns);
    }

    #[inline]
    fn end_call(&mut self) {
        if std::mem::take(&mut self.stays) {
            self.in_place.participant.leave();
        }
        if let Some(planner) = &mut self.planner {
            planner.forget();
        }
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
}

impl<L: Locks> Remembering for TwoPhaseLocking<L> {
    /// What the plan has found for this key is what is there: its lock is held, so that no other
    /// transaction has taken it away since; unless it was gone before, or the attempt itself has
    /// deleted it.
    #[inline(always)]
    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        if !L::PLANNED {
            return Ok(None);
        }
        let finding = self.finding();
        let Some(planner) = &mut self.planner else {
            return Ok(None);
        };
        let Some((record, known)) = planner.findings.recall(sought, memory) else {
            self.stay_to_seek(sought, memory)?;
            return Ok(None);
        };
        charge(Work::Record);
        let left = match L::DEFERS && sought.observed.is_left && self.manager.defers() {
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
        // Looked at when the lock is held: a transaction that has moved the record before has said
        // so.
        let moves = sought.table.indexes()[sought.index].moves();
        let moves = moves && !Canary::FindingOutdated.sings();
        Ok(match visit {
            Visit::Present(handle) if !moves => Some(Recalled::Found(handle)),
            _ => None,
        })
    }

    /// As [`TwoPhaseLocking::recall`]: an entry that has moved away since has said so.
    #[inline(always)]
    fn seek_scan(
        &mut self,
        sought: &SoughtScan<'_>,
        memory: &Memory,
    ) -> Result<KeptScan, AbortCause> {
        match &mut self.planner {
            Some(planner) if L::PLANNED => {
                let scans = &mut planner.findings.scans;
                Self::recall_scan(scans, &mut self.nodes, sought, memory)
            }
            _ => Ok(KeptScan::No),
        }
    }

    #[inline(always)]
    fn recall_leaf(&mut self, leaf: &mut u16, batch: &mut LeafBatch) -> bool {
        let planner = self.planner.as_ref();
        L::PLANNED && planner.is_some_and(|planner| planner.findings.scans.recall_leaf(leaf, batch))
    }

    #[inline(always)]
    fn rest_of_scan(&mut self, scan: u16) -> Option<IndexScan<'static>> {
        self.planner.as_mut()?.findings.scans.rest(scan)
    }

    #[inline(always)]
    fn recalls(&self) -> bool {
        let mut planner = self.planner.iter();
        L::PLANNED && planner.any(|planner| !planner.findings.is_empty())
    }
}

impl<L: Locks> Travelling for TwoPhaseLocking<L> {
    const TRAVELS: bool = L::TRAVELS;

    #[inline(always)]
    fn has_done(&mut self) {
        self.journey.has_arrived = false;
    }

    #[inline(always)]
    fn seeks_range(&mut self, table: &Table, index: usize, prefix: &[Slot]) -> Result<(), Halt> {
        match table.part_of_range(index, prefix) {
            Some(part) => self.stay(part),
            None => Ok(()),
        }
    }
}

impl<L: Locks> Deferring for TwoPhaseLocking<L> {
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

    #[inline]
    fn confirm_raise(&mut self, error: Error) -> Result<Error, AbortCause> {
        match L::DEFERS && !self.deferral.is_empty() {
            true => self.first_error(error),
            false => self.confirm().map(|()| error),
        }
    }
}

impl<L: Locks> Recording for TwoPhaseLocking<L> {
    fn version_of(&self, handle: &Handle) -> Version {
        let left = match L::DEFERS {
            true => self.deferral.version_of(handle),
            false => None,
        };
        left.unwrap_or_else(|| Version(Tid(handle.record.tid().load(Ordering::Relaxed)).version()))
    }

    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.in_place.recorder.log()
    }
}

impl<L: Locks> Flawed for TwoPhaseLocking<L> {
    fn forgets_change(&mut self) -> bool {
        Canary::ChangeNotTakenBack.sings()
    }
}

impl<L: Locks> Scanning for TwoPhaseLocking<L> {}

impl<L: Locks> Recorded for TwoPhaseLocking<L> {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.in_place.recorder
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.in_place.attach(journal);
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        Some(self.in_place.reporter())
    }
}

impl<L: Locks> Phased for TwoPhaseLocking<L> {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
