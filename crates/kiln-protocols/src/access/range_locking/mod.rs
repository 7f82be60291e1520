//! Strict two-phase locking of ranges of keys, planned: no lock on a record, and no gap to be
//! compared.
//!
//! Source: K. Ren, A. Thomson, D. J. Abadi, *VLL: a lock manager redesign for main memory database
//! systems*, VLDB Journal 24, 2015: §2.7 (VLLR). The locks themselves are the business of a
//! [`RangeManager`].
//!
//! # The idea
//!
//! A transaction locks the keys that it looks up and the ranges that it scans, shared or
//! exclusively, and of a record that it changes the keys in all key spaces of the table
//! ([`ranges`](crate::shared::ranges) says which). A transaction that has the lock of a key in one
//! space so relies on the record with all that is in it, or on there being none: no other can
//! change, remove or insert a record without the exclusive locks of its keys.
//!
//! # Phases
//!
//! | phase | where |
//! |---|---|
//! | plan: a reconnaissance that collects ranges | `plan_ahead`, `plan`, and `shared/ranges` |
//! | the scheduler takes the locks, or the manager, and the attempt waits | `schedule/ranges` |
//! | run in place, with an undo log; each key and range is compared with what is held | `claim` |
//! | commit: new tids, entries of deleted records go; then the scheduler lets the locks go | `commit` |
//!
//! What was not planned is taken if that needs no wait; else the attempt ends (`footprint_miss`),
//! and the next plan has it.
//!
//! # Invariants
//!
//! - A record's words and tid, and the entries of its keys, change only under the exclusive locks
//!   of all its keys, or before any index has it.
//! - An entry that is met under a lock is of a record whose transaction has ended, or the attempt's
//!   own.
//! - `aux` is 0 for every record.
//!
//! # Which anomalies are excluded, and how
//!
//! All: no transaction reads a key, or finds that it is not there, while another one that writes it
//! has not ended, and all locks are held to the end. Phantoms as well: a range is locked whether
//! there are records in it or not.

mod ranges;

use kiln_history::Log;
use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, Planning, Recalled, Recording, Remembering, Scanning, Sought,
    Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Arguments, Halt, Handle, Program, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::NodeVersion;
use kiln_storage::journal::Journal;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, EntryKey, IndexScan, Table};

use ranges::Ranges;

use crate::canary::Canary;
use crate::phases::{Phase, Phased, Phases};
use crate::shared::in_place::{InPlace, refused_update};
use crate::shared::links;
use crate::shared::planning::{Demand, Findings, PlannedAhead};
use crate::shared::ranges::{RangeClaim, RangeManager, RangePlan, RangePlanner};
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;

/// The note of a handle whose record is there to be read.
const SHARED: u32 = 0;
/// The note of a handle all of whose record's keys are held exclusively.
const EXCLUSIVE: u32 = 1;

/// The access of one worker; see the module's documentation.
pub struct RangeLocking<M: RangeManager> {
    in_place: InPlace,
    ranges: Ranges<M>,
    planner: RangePlanner,
    /// What the plan has found.
    findings: Findings,
    /// The newest version met.
    newest: Tid,
    phases: Phases,
}

/// The most fields of a key.
const MAX_FIELDS: usize = kiln_storage::schema::COLUMNS_MAX + 1;

impl<M: RangeManager> RangeLocking<M> {
    /// An access for the worker that `participant` stands for, with this side of the locks.
    pub fn new(participant: Participant, manager: M) -> RangeLocking<M> {
        RangeLocking {
            in_place: InPlace::new(participant),
            ranges: Ranges::new(manager),
            planner: RangePlanner::default(),
            findings: Findings::default(),
            newest: Tid(0),
            phases: Phases::default(),
        }
    }

    /// Meets a record of which a key is held.
    #[inline]
    fn meet(&mut self, record: RecordRef, note: u32) -> Visit {
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() {
            return Visit::Dead;
        }
        self.newest = self.newest.max(Tid(tid.version()));
        match tid.is_absent() {
            true => Visit::Absent,
            false => Visit::Present(Handle { record, note }),
        }
    }

    /// Makes sure that the record of a handle may be changed.
    #[inline]
    fn make_exclusive(&mut self, table: &Table, handle: &mut Handle) -> Result<(), AbortCause> {
        if handle.note != EXCLUSIVE {
            self.ranges.claim_keys(table, handle.record)?;
            handle.note = EXCLUSIVE;
        }
        Ok(())
    }

    /// The record that has a unique key already, which is held exclusively.
    fn taken(
        &mut self,
        table: &Table,
        index: usize,
        other: RecordRef,
        key: &EntryKey,
    ) -> Result<Handle, AbortCause> {
        match self.meet(other, SHARED) {
            Visit::Present(handle)
                if (self.in_place.changes()).is_found(table, index, key, other) =>
            {
                Ok(handle)
            }
            // The attempt itself is moving it.
            _ => Err(AbortCause::KeyInTransit),
        }
    }

    /// Lets go of what the attempt took: all, or what it took besides its plan.
    fn release_all(&mut self) {
        let ranges = &mut self.ranges;
        ranges.manager.release();
        ranges.held.clear();
        ranges.has_statements = false;
        self.findings.clear();
        self.newest = Tid(0);
    }
}

impl<M: RangeManager> Access for RangeLocking<M> {
    #[inline]
    fn begin(&mut self) {
        self.in_place.participant.enter();
        // Where attempts plan, that is what the next one plans besides.
        if !M::TAKES_PLANS {
            self.ranges.missed.clear();
        }
    }

    #[inline]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        _: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        let note = match intent {
            Intent::Write => EXCLUSIVE,
            Intent::Read => SHARED,
        };
        let visit = self.meet(record, note);
        // In the only space of its table it was found by the key that is held.
        if let Visit::Present(_) = visit
            && intent == Intent::Write
            && table.key_spaces().len() > 1
        {
            self.ranges.claim_keys(table, record)?;
        }
        Ok(visit)
    }

    #[inline(always)]
    fn guard(&mut self, _: &Table, _: usize, _: NodeVersion) -> Result<(), AbortCause> {
        // A transaction that fills the gap needs the lock of the key, or range, that was asked for.
        Ok(())
    }

    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
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
        self.make_exclusive(table, handle)?;
        let changed: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        if table.indexed_columns().intersects(changed) {
            self.claim_new_keys(table, handle.record, (columns, changed), memory)?;
        }
        let refused = (self.in_place).update(table, handle.record, columns, memory, |_| Ok(()))?;
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
        charge(Work::Record);
        let ranges = &mut self.ranges;
        // Its row is made, with the number that it may have for a key, and no other transaction can
        // see it yet.
        let created = |record| ranges.claim_keys(table, record);
        let inserted = (self.in_place).insert(table, values, memory, Some(0), created, |_| Ok(()));
        let (index, other) = match inserted? {
            Ok(record) => {
                let note = EXCLUSIVE;
                return Ok(Inserted::New(Handle { record, note }));
            }
            Err(in_the_way) => in_the_way,
        };
        let key = links::key_of(table, index, values, memory)?;
        if index == 0 && self.in_place.has_deleted(other) {
            let revived = (self.in_place).revive(table, other, values, memory, |_| Ok(()))?;
            return Ok(match revived {
                None => Inserted::New(Handle {
                    record: other,
                    note: EXCLUSIVE,
                }),
                Some((index, other)) => {
                    let key = links::key_of(table, index, values, memory)?;
                    let handle = self.taken(table, index, other, &key)?;
                    Inserted::Exists { index, handle }
                }
            });
        }
        let handle = self.taken(table, index, other, &key)?;
        Ok(Inserted::Exists { index, handle })
    }

    #[inline]
    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
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
        Ok((self.in_place).bring_back(table, handle.record, values, memory, |_| Ok(()))?)
    }

    #[inline]
    fn commit(&mut self) -> Result<(), Stop> {
        point("ranges.executed");
        self.phases.enter(Phase::Install);
        self.in_place.commit(self.newest);
        point("ranges.written");
        self.release_all();
        self.in_place.finish();
        Ok(())
    }

    #[inline]
    fn confirm(&mut self) -> Result<(), AbortCause> {
        Ok(())
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
        let ranges = &mut self.ranges;
        if ranges.has_statements {
            ranges.missed.extend_from_slice(ranges.held.claims());
        }
        self.release_all();
        self.in_place.finish();
    }
}

impl<M: RangeManager> Planning for RangeLocking<M> {
    #[inline]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.ranges.manager.begin_call(deadline_ns);
    }

    #[inline(always)]
    fn end_call(&mut self) {
        self.ranges.missed.clear();
    }

    fn plan(&mut self, program: &Program, arguments: &Arguments) -> Result<(), AbortCause> {
        if !M::TAKES_PLANS {
            return Ok(());
        }
        self.phases.enter(Phase::Plan);
        let epoch = self.in_place.participant.epoch();
        let Ranges {
            manager,
            held,
            missed,
            ..
        } = &mut self.ranges;
        let findings = (&mut self.findings, epoch);
        (self.planner).plan(program, arguments, missed, held, findings);
        point("ranges.planned");
        self.phases.enter(Phase::Lock);
        let taken = manager.take_plan(held);
        self.phases.enter(Phase::Execute);
        taken
    }

    /// What its last attempt met is taken now; what is not to be had is met unplanned.
    fn plan_statements(&mut self) {
        let ranges = &mut self.ranges;
        ranges.has_statements = true;
        if M::TAKES_PLANS && !ranges.missed.is_empty() {
            ranges.held.clear();
            for claim in ranges.missed.drain(..) {
                ranges.held.claim(claim);
            }
            ranges.held.arrange();
            if ranges.manager.take_plan(&ranges.held).is_err() {
                ranges.manager.release();
                ranges.held.clear();
            }
        }
    }
}

impl<M: RangeManager> Remembering for RangeLocking<M> {
    #[inline(always)]
    fn recalls(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Locks the key, and meets the record that the plan has found for it: no other transaction has
    /// taken it away since, unless it was gone before, or the attempt itself has deleted it.
    #[inline]
    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        let index = &sought.table.indexes()[sought.index];
        let values = sought.key.iter();
        let values = values.map(|register| memory.slots[register.0 as usize]);
        if let Some(point) = index.point_lead(&memory.heap, values) {
            let space = sought.table.key_space_of(sought.index);
            let exclusive = sought.intent == Intent::Write;
            (self.ranges).claim(sought.table, space, (point, point), exclusive)?;
        }
        let Some((record, _)) = self.findings.recall(sought, memory) else {
            return Ok(None);
        };
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() || tid.is_absent() || index.moves() {
            return Ok(None);
        }
        Ok(
            match self.visit(sought.table, record, sought.intent, sought.observed)? {
                Visit::Present(handle) => Some(Recalled::Found(handle)),
                _ => None,
            },
        )
    }
}

impl<M: RangeManager> Scanning for RangeLocking<M> {
    fn begins_scan(
        &mut self,
        table: &Table,
        index: usize,
        scan: &IndexScan<'_>,
        intent: Intent,
    ) -> Result<(), AbortCause> {
        let Some(points) = scan.leads() else {
            return Ok(());
        };
        if Canary::RangeNotLocked.sings() && intent == Intent::Read {
            return Ok(());
        }
        let space = table.key_space_of(index);
        let claimed = (self.ranges).claim(table, space, points, intent == Intent::Write);
        point("ranges.scan");
        claimed
    }
}

impl<M: RangeManager> Recording for RangeLocking<M> {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.in_place.recorder.log()
    }
}

impl<M: RangeManager> Travelling for RangeLocking<M> {}
impl<M: RangeManager> Deferring for RangeLocking<M> {}
impl<M: RangeManager> Flawed for RangeLocking<M> {}

impl<M: RangeManager> RangeLocking<M> {
    /// Makes sure that the keys that a record gets are held exclusively.
    #[cold]
    fn claim_new_keys(
        &mut self,
        table: &Table,
        record: RecordRef,
        (columns, changed): (&[(ColumnId, Reg)], ColumnSet),
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        for (position, space) in table.key_spaces().iter().enumerate() {
            let index = &table.indexes()[space.index];
            if !index.columns().intersects(changed) {
                continue;
            }
            let heap = &mut memory.heap;
            let mut values = [Slot::NULL; MAX_FIELDS];
            for (value, field) in values.iter_mut().zip(index.key_layout().fields()) {
                let mut updates = columns.iter();
                let update = updates.find(|(column, _)| Some(*column) == field.column);
                *value = match update {
                    Some((_, register)) => memory.slots[register.0 as usize],
                    None => table.field_value(field, table.row(record), heap),
                };
            }
            if let Some(point) = index.entry_lead(heap, |at, _| values[at]) {
                (self.ranges).claim(table, position, (point, point), true)?;
            }
        }
        Ok(())
    }
}

impl<M: RangeManager> PlannedAhead for RangeLocking<M> {
    type Demand = RangePlan<M::Naming>;
    /// The transaction's number.
    type Held = u32;

    fn plan_ahead(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        missed: &[RangeClaim],
        demand: &mut RangePlan<M::Naming>,
        findings: &mut Findings,
    ) {
        self.in_place.participant.enter();
        let epoch = self.in_place.participant.epoch();
        (self.planner).plan(program, arguments, missed, demand, (findings, epoch));
        self.in_place.participant.leave();
    }

    #[inline]
    fn follow(&mut self, findings: &mut Findings) {
        std::mem::swap(&mut self.findings, findings);
        self.findings.keep_of(self.in_place.participant.epoch());
    }

    #[inline]
    fn hold_ahead(&mut self, demand: &RangePlan<M::Naming>, txn: u32) {
        self.ranges.held.copy_from(demand);
        self.ranges.manager.hold(demand, txn);
    }

    #[cold]
    fn take_missed(&mut self, missed: &mut Vec<RangeClaim>) {
        missed.append(&mut self.ranges.missed);
    }
}

impl<M: RangeManager> Recorded for RangeLocking<M> {
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

impl<M: RangeManager> Phased for RangeLocking<M> {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
