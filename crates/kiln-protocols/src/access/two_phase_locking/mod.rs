//! Strict two-phase locking with a lock word beside each record and no waiting.
//!
//! Source: the 2PL NO-WAIT of STRIFE §5.3 and of healing §5 (THEDB-2PL), after Yu et al.,
//! *Staring into the Abyss*, PVLDB 8, 2014: a lock that cannot be had at once aborts the
//! transaction, so there is no deadlock to detect and no queue to keep.
//!
//! # The idea
//!
//! A record's `aux` word is its lock (`lock.rs`): free, shared by a number of readers, or held by
//! one writer. An attempt takes the shared lock of each record it meets, the exclusive one where
//! the analysis of the procedure says that it will write (so that two transactions that read and
//! then write the same record do not both start by sharing it). It writes in place, with an undo
//! log. All locks are held to the end; commit gives the written records a new tid and lets go.
//!
//! # Phantoms
//!
//! Locks on records do not cover gaps. Each leaf or bucket that a scan or a failed look-up relied
//! on is noted with its version and checked at commit, while all locks are held: if no entry
//! came in since, the scans are still true at the commit point, and so is everything that is
//! locked. The paper's 2PL has no range queries; this is our addition.
//!
//! # Invariants
//!
//! - A record's words and tid change only under its exclusive lock, or before any index has it.
//! - A new record is locked exclusively by its transaction from before it is in an index.
//! - Every lock in the list is held, each record once, in the mode noted.
//! - `aux` is 0 for every record when no transaction runs.

mod lock;

use kiln_history::Log;
use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{Inserted, Visit};
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Handle, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::NodeVersion;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, EntryKey, Table};

use crate::access::serial::refused_update;
use crate::canary::Canary;
use crate::phases::{Phase, Phased, Phases};
use crate::shared::in_place::InPlace;
use crate::shared::links;
use crate::shared::node_set::NodeSet;
use crate::shared::record_map::RecordMap;
use crate::shared::recorder::{Recorded, Recorder};

/// A lock that the attempt holds.
struct Held {
    record: RecordRef,
    exclusive: bool,
}

/// The access of one worker; see the module's documentation.
pub struct NoWait {
    in_place: InPlace,
    locks: Vec<Held>,
    /// From a record to its lock.
    locked: RecordMap,
    nodes: NodeSet,
    /// The newest version met.
    newest: Tid,
    phases: Phases,
}

impl NoWait {
    /// An access for the worker that `participant` stands for.
    pub fn new(participant: Participant) -> NoWait {
        NoWait {
            in_place: InPlace::new(participant),
            locks: Vec::new(),
            locked: RecordMap::default(),
            nodes: NodeSet::default(),
            newest: Tid(0),
            phases: Phases::default(),
        }
    }

    #[inline(always)]
    fn hold(&mut self, record: RecordRef, exclusive: bool) -> u32 {
        let note = self.locks.len() as u32;
        self.locks.push(Held { record, exclusive });
        self.locked.insert(record, note);
        note
    }

    /// Makes sure that the lock at `note` is exclusive.
    #[inline(always)]
    fn make_exclusive(&mut self, note: u32) -> Result<(), AbortCause> {
        let held = &mut self.locks[note as usize];
        if !held.exclusive {
            let taken = match shares_without_lock() {
                true => lock::take(held.record),
                false => lock::upgrade(held.record),
            };
            if !taken {
                return Err(AbortCause::WriteLock);
            }
            held.exclusive = true;
        }
        Ok(())
    }

    /// Locks a record, or finds that it is locked already.
    #[inline(always)]
    fn lock(&mut self, record: RecordRef, intent: Intent) -> Result<Visit, AbortCause> {
        let note = match self.locked.get(record) {
            Some(note) => {
                if intent == Intent::Write {
                    self.make_exclusive(note)?;
                }
                note
            }
            None => {
                match intent {
                    Intent::Read if Canary::SharedLockSkipped.sings() => {}
                    Intent::Read if !lock::share(record) => return Err(AbortCause::ReadLock),
                    Intent::Write if !lock::take(record) => return Err(AbortCause::WriteLock),
                    Intent::Read if Canary::SharedLockReleasedEarly.sings() => {
                        lock::release(record, false);
                    }
                    _ => {}
                }
                let tid = Tid(record.tid().load(Ordering::Relaxed));
                if tid.is_dead() {
                    let_go(record, intent == Intent::Write);
                    return Ok(Visit::Dead);
                }
                self.newest = self.newest.max(Tid(tid.version()));
                self.hold(record, intent == Intent::Write)
            }
        };
        let absent = Tid(record.tid().load(Ordering::Relaxed)).is_absent();
        Ok(if absent {
            Visit::Absent
        } else {
            Visit::Present(Handle { record, note })
        })
    }

    fn release_all(&mut self) {
        for held in self.locks.drain(..) {
            let_go(held.record, held.exclusive);
        }
        self.locked.clear();
        self.nodes.clear();
        self.newest = Tid(0);
    }

    /// The record that has a unique key already, now shared by the attempt.
    fn taken(
        &mut self,
        table: &Table,
        index: usize,
        other: RecordRef,
        key: &EntryKey,
    ) -> Result<Handle, AbortCause> {
        match self.lock(other, Intent::Read)? {
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

/// Releases a lock that the attempt holds.
#[inline(always)]
fn let_go(record: RecordRef, exclusive: bool) {
    if exclusive || !shares_without_lock() {
        lock::release(record, exclusive);
    }
}

/// Whether a canary keeps no lock on what is only read.
#[inline(always)]
fn shares_without_lock() -> bool {
    Canary::SharedLockSkipped.sings() || Canary::SharedLockReleasedEarly.sings()
}

impl Access for NoWait {
    #[inline]
    fn begin(&mut self) {
        self.in_place.participant.enter();
    }

    #[inline(always)]
    fn visit(&mut self, _: &Table, record: RecordRef, intent: Intent) -> Result<Visit, AbortCause> {
        charge(Work::Record);
        self.lock(record, intent)
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
        self.make_exclusive(handle.note)?;
        let nodes = &mut self.nodes;
        let refused = self
            .in_place
            .update(table, handle.record, columns, memory, |effect| {
                Ok(nodes.inserted(effect)?)
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
        charge(Work::Record);
        let nodes = &mut self.nodes;
        let inserted = self
            .in_place
            .insert(table, values, memory, lock::EXCLUSIVE, |effect| {
                Ok(nodes.inserted(effect)?)
            })?;
        let (index, other) = match inserted {
            Ok(record) => {
                let note = self.hold(record, true);
                return Ok(Inserted::New(Handle { record, note }));
            }
            Err(in_the_way) => in_the_way,
        };
        let own = self.locked.get(other);
        if let Some(note) = own
            && index == 0
            && self.in_place.has_deleted(other)
        {
            let nodes = &mut self.nodes;
            let refused = self
                .in_place
                .revive(table, other, values, memory, |effect| {
                    Ok(nodes.inserted(effect)?)
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
        self.make_exclusive(handle.note)?;
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
        self.in_place.commit(newest);
        point("2pl.written");
        self.release_all();
        point("2pl.released");
        self.in_place.finish();
        Ok(())
    }

    #[inline]
    fn confirm(&mut self) -> Result<(), AbortCause> {
        // Sequentially consistent: of two attempts that each insert into a gap that the other
        // relies on, one sees the other's insertion here.
        fence(Ordering::SeqCst);
        if self.nodes.is_current() {
            Ok(())
        } else {
            Err(AbortCause::Phantom)
        }
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
        self.release_all();
        self.in_place.finish();
    }

    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.in_place.recorder.log()
    }
}

impl Recorded for NoWait {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.in_place.recorder
    }
}

impl Phased for NoWait {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
