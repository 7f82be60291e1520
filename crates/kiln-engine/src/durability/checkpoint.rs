//! Checkpoints: the rows of all tables, so that a recovery need not read the log from its
//! beginning.
//!
//! A checkpoint is *fuzzy*: it reads some rows at a time, while no transaction runs, and lets the
//! others go on in between. Rows that were read at different times fit together when the log is
//! replayed over them from the log epoch on that was current before the first one was read: its
//! after-images win ([`kiln_storage::restore::Mismatch::Ignored`]).
//!
//! Why while no transaction runs: protocols that update in place have words in rows that are not
//! committed, and multi-version ones keep the version that a snapshot wants. With the gate shut the
//! rows of a table are up to date once it is settled. An open block that waits for its client may
//! be in that state for long: a table that it has used is read after it has ended.

use std::collections::BTreeMap;

use kiln_durability::checkpoint::{RowsWriter, Writer};
use kiln_durability::log::Log;
use kiln_durability::{CHECKPOINTS_MAX, CheckpointEntry, DataDirectory};
use kiln_platform::atomic::Ordering;
use kiln_platform::sync::{Arc, MutexGuard, lock};
use kiln_platform::{thread, time};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::index::LeafBatch;
use kiln_storage::journal::{CommandOrder, Journal};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::record::Tid;
use kiln_storage::restore::append_stored_row;
use kiln_storage::schema::TableId;
use kiln_storage::table::{Entry, EntryKey, Table};

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::errors;
use crate::kernel::{Beside, CLOSING, CheckpointReport, EngineInner};

/// Nanoseconds for which transactions are held up at a time.
const MOMENT_NS: u64 = 500_000;
/// After each moment they run for this many times as long.
const PAUSE_PER_MOMENT: u64 = 8;
/// Rows that are read before the clock is looked at.
const ROWS_PER_LOOK: usize = 64;
/// Nanoseconds after which a table that open blocks use is tried again.
const RETRY_NS: u64 = 2_000_000;

impl Engine {
    /// Writes a checkpoint of the data directory, and drops the part of the log and the checkpoint
    /// that are not needed any more: the last two checkpoints are kept. Transactions go on
    /// meanwhile, but for moments of half a millisecond; so do changes of the catalog. Waits for
    /// open blocks that idle, as far as they have used tables.
    ///
    /// # Errors
    /// 55000 without a data directory; 57P01 when the database is closed meanwhile; 53100 and 58030
    /// for what the disk refuses: the database goes on with the checkpoints that it has.
    pub fn checkpoint(&self) -> Result<CheckpointReport> {
        write_checkpoint(self.inner())
    }
}

pub(crate) fn write_checkpoint(inner: &EngineInner) -> Result<CheckpointReport> {
    with_checkpoint(inner, |_, report| Ok(report))
}

/// Writes a checkpoint and calls `then`, until whose end no other is written: neither this
/// checkpoint nor the log after it goes.
pub(crate) fn with_checkpoint<T>(
    inner: &EngineInner,
    then: impl FnOnce(&DataDirectory, CheckpointReport) -> Result<T>,
) -> Result<T> {
    let directory = lock(&inner.data_directory).clone();
    let directory = directory.ok_or_else(|| {
        let message = "a database without a data directory has no checkpoints";
        Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
    })?;
    // One at a time.
    let _checkpointing = lock(&inner.checkpointing);
    let checkpoint = Checkpoint {
        inner,
        directory: &directory,
        held_ns: 0,
        held_max_ns: 0,
    };
    let written = checkpoint.write();
    inner.kept.count_checkpoint(&written);
    then(&directory, written?)
}

struct Checkpoint<'a> {
    inner: &'a EngineInner,
    directory: &'a DataDirectory,
    held_ns: u64,
    held_max_ns: u64,
}

impl<'a> Checkpoint<'a> {
    fn write(mut self) -> Result<CheckpointReport> {
        let began_ns = time::now_ns();
        let inner = self.inner;
        let Some(log) = inner.log() else {
            return Err(Error::internal("a data directory has no log"));
        };
        inner.check_log_takes_changes()?;
        // What is of the log epoch or later ones is in this segment or later ones.
        let segment = log.segment();
        let (written_before, end) = (log.written_bytes(), log.end());
        let log_bytes_before = match end.segment == segment {
            true => end.offset,
            false => 0,
        };
        let (start_epoch, catalog, values_only, _former) = self.begin()?;
        let written = catalog.written()?;
        let manifest = self.directory.manifest();
        let number = manifest
            .checkpoints
            .last()
            .map_or(1, |last| last.number + 1);
        self.directory.remove_leftovers()?;
        let checkpoints = self.directory.checkpoints();
        let writer = Writer::create(checkpoints, manifest.database, number)?;
        writer.catalog(&written.to_string(), |_| {})?;
        // Answers are in no table: they go into the log anew.
        inner.idempotency.note_all();
        for (_, table) in catalog.tables() {
            self.write_table(&writer, table.id())?;
            if let Some(kept) = &mut *rewritten(inner) {
                kept.remove(&table.id());
            }
        }
        let files = writer.finish()?;
        // Whatever was read is on disk with the log up to here.
        let end_epoch = self.end(values_only, log)?;
        log.wait(end_epoch)?;
        let rows = files.rows;
        let entry = CheckpointEntry {
            number,
            start_epoch: start_epoch.0,
            // Before the start when nothing was committed meanwhile.
            end_epoch: end_epoch.0.max(start_epoch.0.saturating_sub(1)),
            segment,
            catalog: catalog.version(),
            written_us: time::wall_clock_us(),
            rows,
            files: files.files,
        };
        let bytes = entry.bytes();
        self.publish(entry)?;
        inner
            .kept
            .set_checkpoint(bytes, written_before, log_bytes_before);
        Ok(CheckpointReport {
            number,
            start_epoch,
            rows,
            bytes,
            elapsed_ns: time::now_ns() - began_ns,
            held_ns: self.held_ns,
            held_max_ns: self.held_max_ns,
            recovery_estimate_s: inner.kept.estimate(log).1,
        })
    }

    /// The log epoch with which the checkpoint begins, and the catalog. No change of the catalog is
    /// under way between the two: those that the catalog has are of earlier log epochs, and all
    /// others are made again. From that log epoch on the log has no calls.
    fn begin(&self) -> Result<(LogEpoch, Arc<Catalog>, ValuesOnly, FormerRows<'a>)> {
        let inner = self.inner;
        let deadline_ns = inner.change_deadline();
        let _alone = inner.shut_gate_for_change(Beside::Blocks, deadline_ns)?;
        let values_only = ValuesOnly::begin(inner.journal());
        if values_only.is_needed() {
            // The log epoch has no call from before.
            inner.log_epochs.close();
        }
        let former = FormerRows::keep(inner);
        Ok((
            inner.log_epochs.current(),
            inner.catalog(),
            values_only,
            former,
        ))
    }

    /// All rows were read. Returns the last log epoch of which anything was logged meanwhile; later
    /// ones may have calls again.
    fn end(&self, values_only: ValuesOnly, log: &Log) -> Result<LogEpoch> {
        let inner = self.inner;
        while values_only.is_needed() {
            match inner.shut_gate_for_change(Beside::Blocks, inner.change_deadline()) {
                Ok(_alone) => {
                    drop(values_only);
                    inner.log_epochs.close();
                    return Ok(log.newest());
                }
                // A transaction runs for long: the checkpoint has time.
                Err(error) if error.state() == SqlState::LOCK_NOT_AVAILABLE => {}
                Err(error) => return Err(error),
            }
        }
        Ok(log.newest())
    }

    /// Puts the checkpoint into force, and gives up what only older ones need.
    fn publish(&self, entry: CheckpointEntry) -> Result<()> {
        let mut manifest = (*self.directory.manifest()).clone();
        manifest.checkpoints.push(entry);
        if manifest.checkpoints.len() > CHECKPOINTS_MAX {
            manifest.checkpoints.remove(0);
        }
        if manifest.checkpoints.len() == CHECKPOINTS_MAX {
            manifest.first_segment = manifest.checkpoints[0].segment;
        }
        let first = manifest.first_segment;
        self.directory.publish(manifest)?;
        self.directory.remove_leftovers()?;
        if let Some(log) = self.inner.log() {
            log.retire_before(first);
        }
        Ok(())
    }

    fn write_table(&mut self, writer: &Writer, table: TableId) -> Result<()> {
        let mut file = writer.table(table, 0, |_| {})?;
        let mut reading = Reading::default();
        while !reading.is_done {
            if self.inner.gate.state() & CLOSING != 0 {
                return Err(errors::closing());
            }
            let held_ns = self.read_some(table, &mut reading)?;
            reading.write_to(&mut file)?;
            thread::sleep(match held_ns {
                0 => RETRY_NS,
                _ => held_ns * PAUSE_PER_MOMENT,
            });
        }
        file.finish()
    }

    /// Reads rows of a table for a moment. Returns for how long that held transactions up; 0 when
    /// open blocks are in the way.
    fn read_some(&mut self, table: TableId, reading: &mut Reading) -> Result<u64> {
        let inner = self.inner;
        let deadline_ns = inner.change_deadline();
        let alone = match inner.shut_gate_for_change(Beside::Blocks, deadline_ns) {
            Ok(alone) => alone,
            // A transaction runs for long: the checkpoint has time.
            Err(error) if error.state() == SqlState::LOCK_NOT_AVAILABLE => return Ok(0),
            Err(error) => return Err(error),
        };
        if inner.blocks.user_of(&[table], None).is_some() {
            return Ok(0);
        }
        let began_ns = time::now_ns();
        let former = || rewritten(inner).as_ref()?.get(&table).cloned();
        match inner.catalog().table_by_id(table) {
            Some(found) => {
                inner.settle_table(table);
                reading.read(found, began_ns + MOMENT_NS);
            }
            None => match former() {
                // A recovery makes the change again, with all the rows that there were.
                Some(found) => reading.read(&found, began_ns + MOMENT_NS),
                // The log says that it was dropped, or emptied.
                None => reading.is_done = true,
            },
        }
        drop(alone);
        let held_ns = time::now_ns() - began_ns;
        self.held_ns += held_ns;
        self.held_max_ns = self.held_max_ns.max(held_ns);
        Ok(held_ns.max(1))
    }
}

/// While there is this, the rows of tables are kept that a change puts into another layout.
struct FormerRows<'a>(&'a EngineInner);

impl FormerRows<'_> {
    fn keep(inner: &EngineInner) -> FormerRows<'_> {
        *rewritten(inner) = Some(BTreeMap::new());
        FormerRows(inner)
    }
}

impl Drop for FormerRows<'_> {
    fn drop(&mut self) {
        *rewritten(self.0) = None;
    }
}

fn rewritten(inner: &EngineInner) -> MutexGuard<'_, Option<BTreeMap<TableId, Arc<Table>>>> {
    lock(&inner.rewritten)
}

/// While there is this the log gets values only: a call that is made again on rows that are not of
/// one moment does something else. It comes and goes while no transaction runs, unless the
/// checkpoint fails: then nothing begins with it.
struct ValuesOnly(Option<Arc<CommandOrder>>);

impl ValuesOnly {
    fn begin(journal: Option<Journal>) -> ValuesOnly {
        let commands = journal.and_then(|journal| journal.commands().cloned());
        if let Some(commands) = &commands {
            commands.set_paused(true);
        }
        ValuesOnly(commands)
    }

    /// Whether the log would have calls without this.
    fn is_needed(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for ValuesOnly {
    fn drop(&mut self) {
        if let Some(commands) = &self.0 {
            commands.set_paused(false);
        }
    }
}

/// A table that is being read.
#[derive(Default)]
struct Reading {
    /// The key of the last row that was read.
    last: Option<EntryKey>,
    is_done: bool,
    /// Rows, one after the other, and where each one ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Reading {
    /// Reads rows until a time; no transaction runs, and the rows are up to date.
    fn read(&mut self, table: &Arc<Table>, until_ns: u64) {
        let index = &table.indexes()[0];
        let mut scan = index.entries_after(self.last.as_ref());
        scan.keep_keys();
        let mut batch = LeafBatch::new();
        let mut looked_at = 0;
        while scan.next_leaf(&mut batch) {
            for payload in batch.payloads() {
                // SAFETY: the payload is of the table's index.
                let record = unsafe { Entry::from_payload(*payload) }.record();
                // Relaxed: the gate has ordered what transactions did before.
                if !Tid(record.tid().load(Ordering::Relaxed)).is_absent() {
                    // SAFETY: the record is of this table and has a row; no transaction runs.
                    unsafe { append_stored_row(table, record, &mut self.bytes) };
                    self.ends.push(self.bytes.len());
                }
            }
            looked_at += batch.payloads().len();
            if looked_at >= ROWS_PER_LOOK && time::now_ns() >= until_ns {
                let key = scan.key(batch.payloads().len() - 1);
                self.last = EntryKey::from_bytes(index.key_layout().width(), &key);
                return;
            }
        }
        self.is_done = true;
    }

    fn write_to<P: FnMut(u64)>(&mut self, file: &mut RowsWriter<'_, P>) -> Result<()> {
        let mut start = 0;
        for end in self.ends.drain(..) {
            file.row(&self.bytes[start..end])?;
            start = end;
        }
        self.bytes.clear();
        Ok(())
    }
}
