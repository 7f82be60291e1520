//! Writing in place under locks that are held to the end: what all accesses share that lock the
//! records they meet.
//!
//! [`Locked`] is what an attempt has: its locks, its changes, and the gaps that it relies on. How
//! it comes to hold the lock of a record is the business of the access, which says so as
//! [`Locking`]: it takes the lock when it meets the record, or has planned it, or was granted the
//! record.
//!
//! # Invariants
//!
//! - A record's words and tid change only under its exclusive lock, or before any index has it.
//! - A new record is locked exclusively by its transaction from before it is in an index.
//! - Every lock in the list is held, each record once, in the mode noted.
//! - An attempt that waits has changed nothing that is not locked: others may meet what it
//!   inserted, and wait for it.
//! - `aux` is 0 for every record in an index when no transaction runs.

mod groups;
pub mod plan;

use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{Inserted, Visit};
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Halt, Handle, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{EntryKey, Table};

pub use crate::shared::locks::HeldLocks;
pub use groups::record_of;

use crate::canary::Canary;
use crate::phases::{Phase, Phases};
use crate::shared::in_place::{InPlace, refused_update};
use crate::shared::links;
use crate::shared::locks::{Locks, Naming, Step, Taken};
use crate::shared::node_set::NodeSet;
use crate::shared::planning::groups::unwritten_of;
use crate::shared::planning::{Claim, Extent, Findings};

/// The note of a handle whose record a canary did not lock.
pub const NOT_LOCKED: u32 = u32::MAX;

/// What an attempt has that locks records and writes them in place.
pub struct Locked<L: Locks> {
    /// Its changes.
    pub in_place: InPlace,
    /// The worker's side of the locks.
    pub manager: L,
    /// The locks that it holds.
    pub locks: HeldLocks<L::Held>,
    /// The gaps that it relies on.
    pub nodes: NodeSet,
    /// The newest version met.
    pub newest: Tid,
    /// Where it spends its time.
    pub phases: Phases,
}

impl<L: Locks> Locked<L> {
    /// Nothing yet, for the worker that `participant` stands for, with this side of the locks.
    pub fn new(participant: Participant, manager: L) -> Locked<L> {
        Locked {
            in_place: InPlace::new(participant),
            manager,
            locks: HeldLocks::default(),
            nodes: NodeSet::default(),
            newest: Tid(0),
            phases: Phases::default(),
        }
    }

    /// Waits for a lock unless it is there.
    #[inline(always)]
    pub fn wait(
        &mut self,
        record: RecordRef,
        taken: Taken<L::Held>,
    ) -> Result<L::Held, AbortCause> {
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

    /// Asks for a lock on a record of which the attempt has none.
    #[inline(always)]
    pub fn take(&mut self, claim: Claim) -> Result<Taken<L::Held>, AbortCause> {
        let taken = self.manager.take_claim(claim);
        taken.or_else(|cause| {
            let exclusive = claim.exclusive;
            let (locks, step) = (&mut self.locks, Step::Take { exclusive });
            let taken = locks.take_beside(&mut self.manager, claim.record, step, cause);
            taken.map(Taken::Now)
        })
    }

    /// Meets a record whose lock was asked for, when it is held; the lock's position in the list.
    /// `None` for a dead record, whose lock is let go again.
    #[inline(always)]
    pub fn hold(&mut self, claim: Claim, taken: Taken<L::Held>) -> Result<Option<u32>, AbortCause> {
        let record = record_of::<L>(claim.record);
        let held = self.wait(claim.record, taken)?;
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() {
            self.manager.release(claim.record, held, claim.exclusive);
            return Ok(None);
        }
        self.meet(record);
        Ok(Some(self.locks.hold::<L::Naming>(claim, held)))
    }

    /// Makes sure that the lock at `note`, which covers `record`, is exclusive. When it cannot be
    /// had, `missed` hears of it, and says why the attempt fails.
    #[inline(always)]
    pub fn upgrade(
        &mut self,
        record: RecordRef,
        note: u32,
        missed: impl FnOnce(&Participant, Claim, AbortCause) -> AbortCause,
    ) -> Result<(), AbortCause> {
        if Canary::FootprintMissIgnored.sings() && note == NOT_LOCKED {
            // Two that write the same record would break more than the history.
            return Err(AbortCause::WriteLock);
        }
        let lock = self.locks.all[note as usize];
        if !lock.exclusive {
            let taken = self.manager.upgrade(lock.record, lock.held);
            let taken = taken.or_else(|cause| {
                let step = Step::Upgrade(lock.held);
                let locks = &mut self.locks;
                let taken = locks.take_beside(&mut self.manager, lock.record, step, cause);
                taken.map(Taken::Now)
            });
            let taken = match taken {
                Ok(taken) => taken,
                Err(cause) => {
                    let claim = Claim {
                        record: if self.by_group() { lock.record } else { record },
                        exclusive: true,
                        is_deferred: false,
                        part: lock.part,
                        finding: Findings::NO_FINDING,
                    };
                    return Err(missed(&self.in_place.participant, claim, cause));
                }
            };
            let held = self.wait(lock.record, taken)?;
            let lock = &mut self.locks.all[note as usize];
            (lock.held, lock.exclusive) = (held, true);
        }
        Ok(())
    }

    /// Notes the version of a record that is locked, and returns its tid.
    #[inline(always)]
    pub fn meet(&mut self, record: RecordRef) -> Tid {
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        self.newest = self.newest.max(Tid(tid.version()));
        tid
    }

    /// Whether who holds a planned lock may touch its record without another look: each record has
    /// one lock, which says nothing else.
    #[inline(always)]
    pub fn has_handles(&self) -> bool {
        !L::Naming::BY_PART && !self.by_group()
    }

    /// Whether the gaps that were relied on are still there.
    ///
    /// # Errors
    /// [`AbortCause::Phantom`] when one is not.
    #[inline(always)]
    pub fn confirm_read(&self) -> Result<(), AbortCause> {
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

    /// Lets all locks go, and forgets what was met.
    #[inline(always)]
    pub fn release_all(&mut self) {
        for lock in self.locks.all.drain(..) {
            self.manager.release(lock.record, lock.held, lock.exclusive);
        }
        self.manager.released_all();
        self.locks.forget();
        self.nodes.clear();
        self.newest = Tid(0);
    }
}

/// What was met of a record that is locked, by the lock at `note`.
#[inline(always)]
pub fn visit_of(record: RecordRef, note: u32) -> Visit {
    match Tid(record.tid().load(Ordering::Relaxed)).is_absent() {
        true => Visit::Absent,
        false => Visit::Present(Handle { record, note }),
    }
}

/// How an access knows the locks that its attempts hold.
type NamingOf<A> = <<A as Locking>::Locks as Locks>::Naming;

/// How an access comes to hold the locks of the records that it works on; what it does with them
/// follows.
pub trait Locking: Sized {
    /// Its locks.
    type Locks: Locks;

    /// What the attempt has.
    fn locked(&mut self) -> &mut Locked<Self::Locks>;

    /// Locks a record that the attempt meets, or finds that it has it already.
    ///
    /// # Errors
    /// An [`AbortCause`] when the record is not to be had; [`Halt::Leaves`] where it is another
    /// thread's.
    fn lock(&mut self, table: &Table, record: RecordRef, intent: Intent) -> Result<Visit, Halt>;

    /// Makes sure that the record of a handle is held exclusively.
    ///
    /// # Errors
    /// An [`AbortCause`] when it is not to be had.
    fn make_exclusive(&mut self, table: &Table, handle: &Handle) -> Result<(), AbortCause>;

    /// Notes the lock of a new record; the note for its handle.
    fn hold_new(
        &mut self,
        table: &Table,
        record: RecordRef,
        held: <Self::Locks as Locks>::Held,
    ) -> u32;

    /// The note for a handle of a record that the attempt has deleted.
    fn note_of_deleted(&mut self, table: &Table, record: RecordRef) -> u32;

    /// Writes columns of a record.
    ///
    /// # Errors
    /// As [`Access::update`](kiln_procedure::Access::update).
    #[inline(always)]
    fn update_row(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.make_exclusive(table, handle)?;
        let Locked {
            in_place, nodes, ..
        } = self.locked();
        let record = handle.record;
        let refused = in_place.update(table, record, columns, memory, |touched| {
            Ok(nodes.touched(touched)?)
        })?;
        let Some((index, other)) = refused else {
            return Ok(());
        };
        let key = InPlace::new_key(table, index, record, columns, memory)?;
        self.taken(table, index, other, &key)?;
        Err(refused_update(table, index, record, columns, memory).into())
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// As [`Access::insert`](kiln_procedure::Access::insert).
    #[inline(always)]
    fn insert_row(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        charge(Work::Record);
        let has_unwritten = self.locked().has_unwritten(table);
        let Locked {
            in_place,
            nodes,
            manager,
            locks,
            ..
        } = self.locked();
        let (mut new, mut unwritten) = (None, None);
        let created = |record| {
            let mut take = |name| {
                let taken = manager.take_new(name);
                taken.or_else(|cause| locks.take_beside(manager, name, Step::TakeNew, cause))
            };
            new = Some((record, take(record)?));
            if has_unwritten {
                unwritten = Some(take(unwritten_of(record))?);
            }
            Ok(())
        };
        let aux = <Self::Locks as Locks>::NEW_AUX;
        let inserted = in_place.insert(table, values, memory, aux, created, |touched| {
            Ok(nodes.touched(touched)?)
        });
        let (index, other) = match (inserted, new) {
            (Ok(Ok(record)), Some((_, held))) => {
                let note = self.hold_new(table, record, held);
                if let Some(held) = unwritten {
                    let claim = NamingOf::<Self>::claim(table, record, true);
                    let claim = claim.within(Extent::Unwritten);
                    (self.locked().locks).hold_new::<NamingOf<Self>>(claim, held);
                }
                return Ok(Inserted::New(Handle { record, note }));
            }
            (refused, new) => {
                // A transaction that met it meanwhile finds it dead.
                if let Some((record, held)) = new {
                    if let Some(held) = unwritten {
                        manager.release(unwritten_of(record), held, true);
                    }
                    manager.release(record, held, true);
                }
                match refused? {
                    Ok(record) => unreachable!("{record:?} is new, and was not locked"),
                    Err(in_the_way) => in_the_way,
                }
            }
        };
        if index == 0 && self.locked().in_place.has_deleted(other) {
            return self.revive_row(table, other, values, memory);
        }
        let key = links::key_of(table, index, values, memory)?;
        let handle = self.taken(table, index, other, &key)?;
        Ok(Inserted::Exists { index, handle })
    }

    /// Inserts a row over one that the attempt has deleted.
    ///
    /// # Errors
    /// As [`Access::insert`](kiln_procedure::Access::insert).
    fn revive_row(
        &mut self,
        table: &Table,
        record: RecordRef,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        let note = self.note_of_deleted(table, record);
        let Locked {
            in_place, nodes, ..
        } = self.locked();
        let refused = in_place.revive(table, record, values, memory, |touched| {
            Ok(nodes.touched(touched)?)
        })?;
        let Some((index, other)) = refused else {
            return Ok(Inserted::New(Handle { record, note }));
        };
        let key = links::key_of(table, index, values, memory)?;
        let handle = self.taken(table, index, other, &key)?;
        Ok(Inserted::Exists { index, handle })
    }

    /// Deletes a record.
    ///
    /// # Errors
    /// An [`AbortCause`] when it is not to be had.
    #[inline(always)]
    fn delete_row(&mut self, table: &Table, handle: &Handle) -> Result<(), AbortCause> {
        self.make_exclusive(table, handle)?;
        self.locked().in_place.delete(table, handle.record);
        Ok(())
    }

    /// Brings a row back that the attempt has deleted.
    ///
    /// # Errors
    /// As [`Access::bring_back`](kiln_procedure::Access::bring_back).
    fn bring_row_back(
        &mut self,
        table: &Table,
        handle: &Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        let Locked {
            in_place, nodes, ..
        } = self.locked();
        in_place.bring_back(table, handle.record, values, memory, |touched| {
            Ok(nodes.touched(touched)?)
        })
    }

    /// The record that has a unique key already, now shared by the attempt.
    ///
    /// # Errors
    /// Those of [`Locking::lock`]; [`AbortCause::KeyInTransit`] when the record is leaving.
    fn taken(
        &mut self,
        table: &Table,
        index: usize,
        other: RecordRef,
        key: &EntryKey,
    ) -> Result<Handle, Halt> {
        match self.lock(table, other, Intent::Read)? {
            Visit::Present(handle)
                if (self.locked().in_place.changes()).is_found(table, index, key, other) =>
            {
                Ok(handle)
            }
            // It is leaving, or went on to another key before it was met.
            _ => Err(AbortCause::KeyInTransit.into()),
        }
    }
}

/// Installs what an attempt has written by `write`, and lets its locks go by `release`; what it has
/// read is confirmed.
#[inline(always)]
pub fn install<A: Locking>(
    attempt: &mut A,
    write: impl FnOnce(&mut A, Tid),
    release: impl Fn(&mut A),
) {
    point("2pl.validated");
    let locked = attempt.locked();
    locked.phases.enter(Phase::Install);
    let newest = locked.newest;
    if Canary::ReleasedBeforeInstall.sings() {
        release(attempt);
    }
    write(attempt, newest);
    point("2pl.written");
    release(attempt);
    point("2pl.released");
    attempt.locked().in_place.report_late();
}
