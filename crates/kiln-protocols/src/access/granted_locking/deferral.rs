//! Updates deferred to the commit (STO §6.1) of records that no lock is held of while the
//! transaction runs: where a scheduler grants records to attempts.
//!
//! Records to which all transactions only add are *left*: no transaction looks at them before the
//! locks that are spoken of here are gone. An attempt meets such a record, keeps what is to be done
//! with it, and has it locked from its commit on:
//!
//! 1. all that it met are locked, in the order of their addresses;
//! 2. what was read is confirmed;
//! 3. updaters run in place, in the order of the procedure, and the first that raises decides;
//! 4. versions are advanced, then the locks go.
//!
//! So an attempt has all its records to itself at one moment, that after the first step, whatever
//! others did with them before.
//!
//! An update of a record that the attempt has to itself anyway is run where it stands.

use kiln_history::Version;
use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_procedure::access::Visit;
use kiln_procedure::executor::record_deferred;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Handle, Stop, Updater};
use kiln_storage::error::Error;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::GrantedLocking;
use crate::phases::Phase;
use crate::shared::locked::Locking;
use crate::shared::locks::GrantingLocks;
use crate::shared::planning::Claim;
use crate::shared::updates::{Running, Updates};

/// Notes of handles to records that are left, from here on: their positions.
const FIRST: u32 = 1 << 31;
/// Records that are left in one attempt at most; what goes beyond is missed.
const MET_MAX: usize = 1 << 16;

/// A record that is left, as it was met.
struct Met {
    record: RecordRef,
    table: *const Table,
    tid: Tid,
}

/// What an attempt has left to its commit.
#[derive(Default)]
pub(super) struct Deferral {
    met: Vec<Met>,
    /// Positions in `met`, in the order of the records' addresses; each record once.
    order: Vec<u32>,
    /// How many records of `order` are locked.
    locked: usize,
    updates: Updates,
    /// Whether the locks are held and what was read is confirmed.
    is_confirmed: bool,
}

// SAFETY: only the thread that runs the attempt follows the tables, while they are kept.
unsafe impl Send for Deferral {}

impl Deferral {
    /// The position that the note of a handle says, if its record is left.
    #[inline(always)]
    fn position(note: u32) -> Option<usize> {
        let position = note.checked_sub(FIRST)? as usize;
        (position < MET_MAX).then_some(position)
    }

    /// Whether a handle is to a record that is left.
    #[inline(always)]
    pub fn is_deferred(handle: &Handle) -> bool {
        Deferral::position(handle.note).is_some()
    }

    /// The version with which the record of a handle was met, if it is left.
    pub fn version_of(&self, handle: &Handle) -> Option<Version> {
        let met = &self.met[Deferral::position(handle.note)?];
        Some(Version(met.tid.version()))
    }

    /// Whether no record is left.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.met.is_empty()
    }

    /// Whether there is nothing to be forgotten.
    #[inline(always)]
    pub fn is_unused(&self) -> bool {
        self.met.is_empty() && self.updates.is_empty()
    }
}

impl<L: GrantingLocks> GrantedLocking<L> {
    /// Meets a record that all only add to; none if the record is not left, and met as any other.
    #[inline]
    pub(super) fn meet_deferred(&mut self, table: &Table, record: RecordRef) -> Option<Visit> {
        let position = self.deferral.met.len();
        if position >= MET_MAX || !self.locked.manager.is_deferred(record) {
            return None;
        }
        // Acquire pairs with the release store of the version: what the history says of the row is
        // of that one.
        let tid = Tid(record.tid().load(Ordering::Acquire));
        if tid.is_dead() {
            return Some(Visit::Dead);
        }
        if tid.is_absent() {
            return None;
        }
        self.deferral.met.push(Met { record, table, tid });
        let note = FIRST + position as u32;
        Some(Visit::Present(Handle { record, note }))
    }

    /// Keeps an update for the commit, or runs it now if its record is the attempt's.
    pub(super) fn keep_deferred(
        &mut self,
        table: &Table,
        handle: &Handle,
        updater: &Updater,
        operands: &[Reg],
        memory: &Memory,
    ) -> Result<(), Stop> {
        let updates = &mut self.deferral.updates;
        if let Some(position) = Deferral::position(handle.note) {
            updates.keep(position, updater, operands, memory);
            return Ok(());
        }
        self.make_exclusive(table, handle)?;
        let updates = &mut self.deferral.updates;
        let at = updates.len();
        updates.keep(usize::MAX, updater, operands, memory);
        let done = self.run_updater(at, table, handle.record);
        if done.is_err() {
            // It is not kept: what raises now raises before those that are.
            self.deferral.updates.truncate(at);
        }
        done
    }

    /// Runs the updater at a position on a record that the attempt holds.
    fn run_updater(&mut self, at: usize, table: &Table, record: RecordRef) -> Result<(), Stop> {
        let Running {
            updater,
            mut memory,
            ..
        } = self.deferral.updates.begin(at);
        (self.locked.in_place).read(table, record, updater.inputs(), &mut memory);
        let mut done = updater.run(&mut memory).map_err(Stop::Raise);
        if done.is_ok() {
            let version = Version(Tid(record.tid().load(Ordering::Relaxed)).version());
            if let Some(log) = self.locked.in_place.recorder.log() {
                record_deferred(log, table, record, version, updater, &memory);
            }
            let columns = updater.outputs();
            let written =
                (self.locked.in_place).update(table, record, columns, &mut memory, |_| Ok(()));
            done = written.map(|refused| debug_assert!(refused.is_none(), "no index is concerned"));
        }
        self.deferral.updates.end(at, memory, done.is_ok());
        done
    }

    /// Locks all that is left, confirms what was read, and runs the updaters.
    ///
    /// # Errors
    /// An [`AbortCause`]; or the error of the first updater that raises, which needs no other
    /// confirmation.
    pub(super) fn apply_deferred(&mut self) -> Result<(), Stop> {
        self.lock_deferred()?;
        point("strife.left-locked");
        self.locked.confirm_read()?;
        self.deferral.is_confirmed = true;
        for at in 0..self.deferral.updates.len() {
            let Some(position) = self.deferral.updates.waiting(at) else {
                continue;
            };
            let Met { record, table, .. } = self.deferral.met[position];
            // SAFETY: the engine keeps a table while a transaction that uses it runs.
            self.run_updater(at, unsafe { &*table }, record)?;
        }
        Ok(())
    }

    /// The error to be reported when the procedure raised `error`: that of an updater kept before
    /// it, if one raises.
    #[cold]
    pub(super) fn first_error(&mut self, error: Error) -> Result<Error, AbortCause> {
        if self.deferral.is_confirmed {
            return Ok(error);
        }
        match self.apply_deferred() {
            Ok(()) => Ok(error),
            Err(Stop::Raise(first)) => Ok(first),
            Err(Stop::Abort(cause)) => Err(cause),
        }
    }

    /// Locks all that is left, in order.
    fn lock_deferred(&mut self) -> Result<(), AbortCause> {
        let Deferral {
            met, order, locked, ..
        } = &mut self.deferral;
        if met.is_empty() {
            return Ok(());
        }
        self.locked.phases.enter(Phase::Lock);
        order.clear();
        order.extend(0..met.len() as u32);
        order.sort_unstable_by_key(|&at| met[at as usize].record.address());
        order.dedup_by_key(|at| met[*at as usize].record);
        for &at in order.iter() {
            let record = met[at as usize].record;
            self.locked.manager.take_deferred(record)?;
            *locked += 1;
            let tid = Tid(record.tid().load(Ordering::Relaxed));
            self.locked.newest = self.locked.newest.max(Tid(tid.version()));
        }
        // The look-ups count as of now.
        for met in met.iter() {
            let tid = Tid(met.record.tid().load(Ordering::Relaxed));
            if tid.version() != met.tid.version() {
                self.locked
                    .in_place
                    .recorder
                    .read_moves(met.record, met.tid, tid);
            }
        }
        self.locked.phases.enter(Phase::Validate);
        Ok(())
    }

    /// Lets all go that was left; the rows are as they stay.
    #[inline]
    pub(super) fn release_deferred(&mut self) {
        let Deferral {
            met,
            order,
            locked,
            updates,
            is_confirmed,
        } = &mut self.deferral;
        for &at in &order[..*locked] {
            self.locked
                .manager
                .release_deferred(met[at as usize].record);
        }
        (*locked, *is_confirmed) = (0, false);
        met.clear();
        updates.clear();
    }

    /// A record that is left was to be read, or written at once.
    #[cold]
    pub(super) fn miss_deferred<T>(
        &mut self,
        table: &Table,
        handle: &Handle,
    ) -> Result<T, AbortCause> {
        let claim = Claim::new(table, handle.record, true, false);
        Err(self.missed(claim, AbortCause::FootprintMiss))
    }
}
