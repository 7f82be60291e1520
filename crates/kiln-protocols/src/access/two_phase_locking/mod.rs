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
//! are held to the end; commit gives the written records a new tid and lets go
//! ([`locked`]).
//!
//! What a lock is, where it is and what happens when it cannot be had is the business of
//! [`Locks`]: the locks are its four queued kinds and the compact word, and the protocol is the
//! same with each. Accesses that know their records beforehand are others: `access/planned_locking`
//! and its like.
//!
//! # Phantoms
//!
//! Locks on records do not cover gaps. Each leaf or bucket that a scan or a failed look-up relied
//! on is noted with its version and checked at commit, while all locks are held: if no entry
//! came in since, the scans are still true at the commit point, and so is everything that is
//! locked. The papers' 2PL has no range queries; this is our addition.
//!
//! # Order
//!
//! Locks are taken in the order in which the procedure meets its records; that this may end in a
//! deadlock is the deadlock policy's problem (`shared/locks/deadlock/`). No latch is held while
//! waiting.

pub(crate) mod registration;

use kiln_history::Log;
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, Planning, Recording, Remembering, Scanning, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Halt, Handle, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::NodeVersion;
use kiln_storage::journal::Journal;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};

use crate::canary::Canary;
use crate::phases::{Phase, Phased, Phases};
use crate::shared::locked::{self, Locked, Locking, visit_of};
use crate::shared::locks::{LockWords, Locks, QueuedLocks};
use crate::shared::planning::Claim;
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;

/// The access of one worker; see the module's documentation.
pub struct TwoPhaseLocking<L: Locks> {
    locked: Locked<L>,
}

/// Two-phase locking that aborts instead of waiting, with the compact lock beside the record.
pub type NoWait = TwoPhaseLocking<LockWords>;

/// Two-phase locking whose locks are queues at the placement `P`, with the deadlock policy `H`.
pub type Queued<P, H> = TwoPhaseLocking<QueuedLocks<P, H>>;

impl<L: Locks> TwoPhaseLocking<L> {
    /// An access for the worker that `participant` stands for, with this side of the locks.
    pub fn new(participant: Participant, manager: L) -> TwoPhaseLocking<L> {
        TwoPhaseLocking {
            locked: Locked::new(participant, manager),
        }
    }
}

impl<L: Locks> Locking for TwoPhaseLocking<L> {
    type Locks = L;

    #[inline(always)]
    fn locked(&mut self) -> &mut Locked<L> {
        &mut self.locked
    }

    #[inline(always)]
    fn lock(&mut self, table: &Table, record: RecordRef, intent: Intent) -> Result<Visit, Halt> {
        let exclusive = intent == Intent::Write;
        let claim = Claim::new(table, record, exclusive, false);
        let locked = &mut self.locked;
        let note = match locked.locks.find::<L::Naming>(claim) {
            Some(note) => {
                if exclusive {
                    locked.upgrade(record, note, |_, _, cause| cause)?;
                }
                note
            }
            None => {
                let taken = locked.take(claim)?;
                match locked.hold(claim, taken)? {
                    Some(note) => note,
                    None => return Ok(Visit::Dead),
                }
            }
        };
        Ok(visit_of(record, note))
    }

    #[inline(always)]
    fn make_exclusive(&mut self, _: &Table, handle: &Handle) -> Result<(), AbortCause> {
        (self.locked).upgrade(handle.record, handle.note, |_, _, cause| cause)
    }

    #[inline(always)]
    fn hold_new(&mut self, table: &Table, record: RecordRef, held: L::Held) -> u32 {
        let claim = Claim::new(table, record, true, false);
        self.locked.locks.hold_new::<L::Naming>(claim, held)
    }

    fn note_of_deleted(&mut self, table: &Table, record: RecordRef) -> u32 {
        let claim = Claim::new(table, record, true, false);
        let note = self.locked.locks.find::<L::Naming>(claim);
        note.expect("what was deleted is locked")
    }
}

impl<L: Locks> Access for TwoPhaseLocking<L> {
    #[inline]
    fn begin(&mut self) {
        self.locked.in_place.participant.enter();
        self.locked.manager.begin();
    }

    #[inline(always)]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        _: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        self.lock(table, record, intent)
    }

    #[inline]
    fn guard(&mut self, _: &Table, _: usize, node: NodeVersion) -> Result<(), AbortCause> {
        self.locked.nodes.guard(node)
    }

    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        (self.locked.in_place).read(table, handle.record, columns, memory);
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
        self.update_row(table, handle, columns, memory)
    }

    #[inline]
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        self.insert_row(table, values, memory)
    }

    #[inline]
    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
        Ok(self.delete_row(table, handle)?)
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        Ok(self.bring_row_back(table, handle, values, memory)?)
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        !self.locked.in_place.changes().is_empty()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        (self.locked.in_place.changes()).resolve(table, index, entry)
    }

    #[inline]
    fn commit(&mut self) -> Result<(), Stop> {
        point("2pl.executed");
        self.locked.phases.enter(Phase::Validate);
        self.locked.confirm_read()?;
        let write = |attempt: &mut Self, newest| attempt.locked.in_place.commit(newest);
        locked::install(self, write, |attempt| attempt.locked.release_all());
        self.locked.in_place.finish();
        Ok(())
    }

    #[inline]
    fn confirm(&mut self) -> Result<(), AbortCause> {
        self.locked.confirm_read()
    }

    fn roll_back(&mut self) {
        self.locked.in_place.roll_back();
        self.locked.release_all();
        self.locked.in_place.finish();
    }
}

impl<L: Locks> Planning for TwoPhaseLocking<L> {
    #[inline]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.locked.manager.begin_call(deadline_ns);
    }
}

impl<L: Locks> Recording for TwoPhaseLocking<L> {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.locked.in_place.recorder.log()
    }
}

impl<L: Locks> Flawed for TwoPhaseLocking<L> {
    fn forgets_change(&mut self) -> bool {
        Canary::ChangeNotTakenBack.sings()
    }
}

impl<L: Locks> Recorded for TwoPhaseLocking<L> {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.locked.in_place.recorder
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.locked.in_place.attach(journal);
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        Some(self.locked.in_place.reporter())
    }
}

impl<L: Locks> Phased for TwoPhaseLocking<L> {
    fn phases(&mut self) -> &mut Phases {
        &mut self.locked.phases
    }
}

impl<L: Locks> Remembering for TwoPhaseLocking<L> {}
impl<L: Locks> Scanning for TwoPhaseLocking<L> {}
impl<L: Locks> Travelling for TwoPhaseLocking<L> {}
impl<L: Locks> Deferring for TwoPhaseLocking<L> {}
