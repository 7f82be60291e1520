//! Updates deferred to the commit (STO §6.1).
//!
//! A record that the attempt found and of which it observes nothing but that it is there may have
//! got newer versions by its commit: its pending version goes in front of whichever is the newest
//! then, if that is decided and older than the attempt's timestamp. Between validation and decision
//! the updaters run on the version below the pending one, to which no transaction can add another,
//! and fill its image.
//!
//! # Why the version is not left a delta
//!
//! MSTO links the updater itself, as a *delta version*, and lets the first reader flatten it. An
//! updater of SQL may raise: nearly all arithmetic may overflow, and CHECKs move into updaters.
//! Whether it does has to be known before its transaction commits, and for that its record has to
//! be looked at, and the updater run, then. So the delta is flattened by its own transaction, while
//! it is pending, and no reader ever meets one. What is kept of the idea is what removes the
//! conflicts: nothing is observed before the commit, and of two that update a record one after the
//! other both commit. Given up is that a delta with a smaller timestamp may go below a newer
//! version; that would change what the newer one's transaction was told.

use kiln_history::Version;
use kiln_procedure::executor::record_deferred;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Handle, Stop, Updater};
use kiln_storage::error::Error;
use kiln_storage::layout::{is_spilled, resolve};
use kiln_storage::schema::ColumnSet;
use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::execute::take_node;
use super::version::{NodeRef, source};
use super::{Mvcc, WriteKind};
use crate::canary::Canary;
use crate::shared::recorder::object;
use crate::shared::updates::Running;

impl Mvcc {
    /// Keeps an update for the commit.
    pub(super) fn keep_pending(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        updater: &Updater,
        operands: &[Reg],
        memory: &Memory,
    ) -> Result<(), Stop> {
        self.follow(handle);
        let position = self.write_for(table, *handle, WriteKind::Update);
        self.updates.keep(position, updater, operands, memory);
        let write = &mut self.writes[position];
        write.pending = write.pending.union(updater.columns_written());
        write.pending_read = write.pending_read.union(updater.columns_read());
        if write.kind == WriteKind::Insert {
            // No other transaction has the record.
            return self.apply_updates(position);
        }
        if write.node.is_none() {
            let words = table.layout().words();
            write.node = Some(take_node(&self.shared.pools, words, &self.participant)?);
        }
        if Canary::UpdaterOnStaleValue.sings() {
            let (last, item) = (self.updates.len() - 1, self.writes[position].item);
            self.run_pending(last, Some(self.items[item as usize].node))?;
        }
        Ok(())
    }

    /// Runs the updaters of the record behind `handle` before its columns are read.
    #[inline(always)]
    pub(super) fn apply_for_read(
        &mut self,
        handle: Handle,
        columns: ColumnSet,
    ) -> Result<(), Stop> {
        match self.written.get(handle.record) {
            Some(write) if self.writes[write as usize].pending.intersects(columns) => {
                self.apply_updates(write as usize)
            }
            _ => Ok(()),
        }
    }

    /// Runs the updaters of the record behind `handle` before its columns are written. A record
    /// that may move is read as a whole.
    pub(super) fn apply_for_write(
        &mut self,
        table: &Table,
        handle: Handle,
        columns: ColumnSet,
    ) -> Result<(), Stop> {
        let Some(write) = self.written.get(handle.record) else {
            return Ok(());
        };
        let super::Write {
            pending,
            pending_read,
            ..
        } = &self.writes[write as usize];
        let concerned = pending.union(*pending_read).intersects(columns)
            || table.indexed_columns().intersects(columns);
        match concerned {
            true => self.apply_updates(write as usize),
            false => Ok(()),
        }
    }

    /// Runs the updaters of a write.
    #[cold]
    pub(super) fn apply_updates(&mut self, position: usize) -> Result<(), Stop> {
        for at in 0..self.updates.len() {
            if self.updates.waiting(at) == Some(position) {
                self.run_early(at)?;
            }
        }
        let write = &mut self.writes[position];
        write.pending = ColumnSet::EMPTY;
        write.pending_read = ColumnSet::EMPTY;
        Ok(())
    }

    /// Runs an updater before the commit, on what is observed now.
    #[cold]
    fn run_early(&mut self, at: usize) -> Result<(), Stop> {
        let done = self.run_pending(at, None);
        if let Err(Stop::Raise(_)) = &done {
            // What comes behind it in the procedure would not have come to run.
            self.updates.truncate(at);
        }
        done
    }

    /// Runs an updater and puts the new values into the image of its version: on the version below
    /// that, `Some(below)` at the commit, or else on what is observed.
    fn run_pending(&mut self, at: usize, below: Option<Option<NodeRef>>) -> Result<(), Stop> {
        let Running {
            write: position,
            updater,
            mut memory,
        } = self.updates.begin(at);
        let write = &self.writes[position];
        let (table, record, item) = (write.table(), write.record, write.item);
        let handle = Handle { record, note: item };
        let read = match below {
            None => self.load(table, &handle, updater.inputs(), &mut memory),
            Some(below) => {
                self.load_below(position, below, updater, &mut memory);
                Ok(())
            }
        };
        let mut done = match read {
            Ok(()) => updater.run(&mut memory).map_err(Stop::Raise),
            Err(cause) => Err(Stop::Abort(cause)),
        };
        if done.is_ok() {
            let version = Version(self.items[item as usize].version);
            if let Some(log) = self.recorder.log() {
                record_deferred(log, table, record, version, updater, &memory);
            }
            let written = updater.columns_written();
            done = self.keep(table, handle, updater.outputs(), written, &memory);
        }
        self.updates.end(at, memory, done.is_ok());
        done
    }

    /// Reads an updater's inputs from the version below a pending one of the attempt's.
    fn load_below(
        &self,
        position: usize,
        below: Option<NodeRef>,
        updater: &Updater,
        memory: &mut Memory,
    ) {
        let write = &self.writes[position];
        let (table, layout) = (write.table(), write.table().layout());
        for &(column, register) in updater.inputs() {
            let from = match write.node {
                Some(node) if write.columns.contains(column) => node.image(layout.words()),
                _ => source(table, write.record, below, column),
            };
            let mut slot = layout.column(column).load(from, &mut memory.heap);
            if is_spilled(slot) {
                // SAFETY: no worker shortens a chain whose first version is pending, so neither the
                // row nor a node changes; an image is the attempt's own until it commits.
                slot = unsafe { resolve(slot, &mut memory.heap) };
            }
            memory.slots[register.0 as usize] = slot;
        }
    }

    /// Runs all updaters that are left; all versions are inserted, and everything that was read is
    /// validated.
    ///
    /// # Errors
    /// An [`AbortCause`] that stands for the error, which the updates give.
    #[inline]
    pub(super) fn run_updates(&mut self) -> Result<(), AbortCause> {
        for at in 0..self.updates.len() {
            let Some(position) = self.updates.waiting(at) else {
                continue;
            };
            let node = self.writes[position].node.expect("taken with the update");
            match self.run_pending(at, Some(node.next())) {
                Ok(()) => {}
                Err(Stop::Raise(error)) => return Err(self.updates.raise_confirmed(error)),
                Err(Stop::Abort(cause)) => return Err(cause),
            }
        }
        Ok(())
    }

    /// The error to be reported when the procedure raised `error`: the first in its order.
    pub(super) fn first_error(&mut self, error: Error) -> Result<Error, AbortCause> {
        if self.updates.is_confirmed() {
            return Ok(error);
        }
        let mut first = error;
        let mut at = 0;
        while at < self.updates.len() {
            if self.updates.waiting(at).is_some() {
                match self.run_early(at) {
                    Ok(()) => {}
                    Err(Stop::Raise(error)) => first = error,
                    Err(Stop::Abort(cause)) => return Err(cause),
                }
            }
            at += 1;
        }
        self.confirm_reads()?;
        Ok(first)
    }

    /// Has an item rely on the version in front of which the attempt has inserted its own. What was
    /// observed of the record, that it is there, is as true of it.
    pub(super) fn rely_on(&mut self, item: u32, version: u64, node: Option<NodeRef>) {
        let item = &mut self.items[item as usize];
        if item.version != version {
            let former = Version(std::mem::replace(&mut item.version, version));
            if let Some(log) = self.recorder.log() {
                log.read_moves(object(item.record), former, Version(version));
            }
        }
        item.node = node;
    }
}
