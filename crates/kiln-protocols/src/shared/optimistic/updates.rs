//! Updates deferred to the commit (STO §6.1).
//!
//! An attempt keeps an updater and its operands, and runs it when it has locked the record: what
//! the updater reads is what it replaces, so the attempt did not have to observe it. In the order
//! of the procedure, so that the error reported is the first.
//!
//! When the attempt itself reads a column that is pending, or writes one that an updater takes, the
//! updaters of that record run there and then on what the record holds, which is observed then.

use kiln_history::Version;
use kiln_procedure::executor::record_deferred;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Handle, Stop, Updater};
use kiln_storage::error::Error;
use kiln_storage::layout::{is_spilled, resolve};
use kiln_storage::record::Tid;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::{Commit, Optimistic, WriteKind};
use crate::canary::Canary;
use crate::shared::updates::Running;

impl<C: Commit> Optimistic<C> {
    /// Keeps an update for the commit.
    pub(super) fn keep_pending(
        &mut self,
        table: &Table,
        handle: &Handle,
        updater: &Updater,
        operands: &[Reg],
        memory: &Memory,
    ) -> Result<(), Stop> {
        let position = self.write_for(table, *handle, WriteKind::Update);
        self.updates.keep(position, updater, operands, memory);
        let write = &mut self.writes[position];
        write.pending = write.pending.union(updater.columns_written());
        write.pending_read = write.pending_read.union(updater.columns_read());
        if Canary::UpdaterOnStaleValue.sings() {
            let last = self.updates.len() - 1;
            self.run_pending(last, false)?;
        }
        Ok(())
    }

    /// Runs the updaters of the record behind `handle`, if one writes a column that is going to be
    /// read.
    ///
    /// # Errors
    /// An [`AbortCause`], or the error of an updater that raises.
    #[inline(always)]
    pub fn apply_for_read(
        &mut self,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
    ) -> Result<(), Stop> {
        if self.updates.is_empty() {
            return Ok(());
        }
        let read = columns.iter().map(|&(column, _)| column).collect();
        self.apply_touching(handle, read, false)
    }

    /// The error that an update deferred to the commit has raised, when that is why the commit
    /// failed.
    pub fn take_raised(&mut self) -> Option<Error> {
        self.updates.take_raised()
    }

    /// Runs the updaters of the record behind `handle`, if one writes or reads a column of
    /// `columns`.
    #[inline(always)]
    pub(super) fn apply_touching(
        &mut self,
        handle: &Handle,
        columns: ColumnSet,
        is_written: bool,
    ) -> Result<(), Stop> {
        if self.updates.is_empty() {
            return Ok(());
        }
        let Some(position) = self.written.get(handle.record) else {
            return Ok(());
        };
        let write = &self.writes[position as usize];
        let concerned = match is_written {
            true => write.pending.union(write.pending_read),
            false => write.pending,
        };
        match concerned.intersects(columns) {
            true => self.apply_updates(position),
            false => Ok(()),
        }
    }

    /// Runs the updaters of a write.
    #[cold]
    pub(super) fn apply_updates(&mut self, position: u32) -> Result<(), Stop> {
        for at in 0..self.updates.len() {
            if self.updates.waiting(at) == Some(position as usize) {
                self.run_early(at, position as usize)?;
            }
        }
        let write = &mut self.writes[position as usize];
        write.pending = ColumnSet::EMPTY;
        write.pending_read = ColumnSet::EMPTY;
        Ok(())
    }

    /// Runs an updater before the commit, on what is observed now.
    #[cold]
    fn run_early(&mut self, at: usize, position: usize) -> Result<(), Stop> {
        let item = self.writes[position].item;
        if self.items[item as usize].is_split() {
            self.widen(item)?;
        }
        C::observe_whole(&mut self.items[item as usize].note);
        let done = self.run_pending(at, true);
        if let Err(Stop::Raise(_)) = &done {
            // What comes behind it in the procedure would not have come to run.
            self.updates.truncate(at);
        }
        done
    }

    /// Runs an updater and puts the new values into the image. The record is locked by this
    /// attempt, or else what is read is observed.
    fn run_pending(&mut self, at: usize, observes: bool) -> Result<(), Stop> {
        let Running {
            write: position,
            updater,
            mut memory,
        } = self.updates.begin(at);
        let write = &self.writes[position];
        let (table, record, item) = (write.table(), write.record, write.item);
        let handle = Handle { record, note: item };
        let read = match observes {
            true => self.load(table, &handle, updater.inputs(), &mut memory),
            false => {
                self.load_held(position, updater, &mut memory);
                Ok(())
            }
        };
        let done = match read {
            Ok(()) => updater.run(&mut memory).map_err(Stop::Raise),
            Err(cause) => Err(Stop::Abort(cause)),
        };
        if done.is_ok() {
            let version = Version(Tid(self.items[item as usize].observed).version());
            if let Some(log) = self.recorder.log() {
                // Whichever operation ran last: no restoration takes it back alone.
                log.operation(u16::MAX);
                record_deferred(log, table, record, version, updater, &memory);
            }
            self.keep(table, &handle, updater.outputs(), &memory);
        }
        self.updates.end(at, memory, done.is_ok());
        done
    }

    /// Reads an updater's inputs from a record that the attempt has locked.
    fn load_held(&self, position: usize, updater: &Updater, memory: &mut Memory) {
        let write = &self.writes[position];
        let (layout, row) = (write.table().layout(), write.table().row(write.record));
        for &(column, register) in updater.inputs() {
            let from = match write.columns.contains(column) {
                true => write.image(),
                false => row,
            };
            let mut slot = layout.column(column).load(from, &mut memory.heap);
            if is_spilled(slot) {
                // SAFETY: no other attempt writes a record that this one has locked, and an image
                // is the attempt's own.
                slot = unsafe { resolve(slot, &mut memory.heap) };
            }
            memory.slots[register.0 as usize] = slot;
        }
    }

    /// Runs all updaters that are left; all written records are locked, and everything that was
    /// read is validated. When one raises, the locks are released.
    ///
    /// # Errors
    /// An [`AbortCause`] that stands for the error, which the updates give.
    #[inline]
    pub fn run_updates(&mut self) -> Result<(), AbortCause> {
        for at in 0..self.updates.len() {
            if self.updates.waiting(at).is_none() {
                continue;
            }
            if let Err(Stop::Raise(error)) = self.run_pending(at, false) {
                self.unlock_tids();
                return Err(self.updates.raise_confirmed(error));
            }
        }
        Ok(())
    }

    /// Whether updates wait for the commit.
    pub fn has_deferred_updates(&self) -> bool {
        (0..self.updates.len()).any(|at| self.updates.waiting(at).is_some())
    }

    /// Runs the updaters that are left, in an attempt that has raised an error: all its records are
    /// locked, and what was read is validated. When one raises, those behind it would not have come
    /// to run, and [`take_raised`](Optimistic::take_raised) gives its error.
    #[cold]
    pub fn raise_of_deferred_updates(&mut self) {
        for at in 0..self.updates.len() {
            if self.updates.waiting(at).is_some()
                && let Err(Stop::Raise(error)) = self.run_pending(at, false)
            {
                self.updates.raise_confirmed(error);
                return;
            }
        }
    }

    /// The error to be reported when the procedure raised `error`: the first in its order.
    pub(super) fn first_error(&mut self, error: Error) -> Result<Error, AbortCause> {
        if self.updates.is_confirmed() {
            return Ok(error);
        }
        let mut first = error;
        let mut at = 0;
        while at < self.updates.len() {
            if let Some(position) = self.updates.waiting(at) {
                match self.run_early(at, position) {
                    Ok(()) => {}
                    Err(Stop::Raise(error)) => first = error,
                    Err(Stop::Abort(cause)) => return Err(cause),
                }
            }
            at += 1;
        }
        C::confirm(self)?;
        Ok(first)
    }
}
