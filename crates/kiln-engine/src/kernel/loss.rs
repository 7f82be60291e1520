//! Loss: what is in memory and may not be on disk, once a write of the log has failed.
//!
//! No change begins from then on ([`EngineInner::check_log`]), and nothing becomes durable any
//! more. Transactions that only read go on where they can: the log hands over the entries that are
//! not known to be on disk, and the tables that these change are *lost*. A transaction all of whose
//! tables are others has seen what is on disk, and what a restart finds again: commits that a
//! recovery has or has not, whichever the disk decides, are of no row that it can have read. One
//! that uses a lost table is refused.
//!
//! A change of the catalog that is not on disk loses each table that it made, changed or removed,
//! and those that its procedures use.
//!
//! Lost are tables and not rows, because no transaction keeps a list of what it has read.

use std::collections::{BTreeMap, BTreeSet};

use kiln_durability::format::entry::{self, Entry, NotAnEntry};
use kiln_durability::log::Log;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_procedure::Program;
use kiln_storage::bytes::Reader;
use kiln_storage::error::{Error, Result};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::redo::read_commit;
use kiln_storage::schema::TableId;
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;

use super::inner::EngineInner;
use super::logged_call::LoggedCall;
use crate::catalog::Catalog;
use crate::errors::read_only;
use crate::observed::Observed;

/// What may be lost.
#[derive(Default)]
pub(crate) struct Loss {
    /// Changes of the catalog that are not known to be on disk. Few: each is there while its maker
    /// waits.
    changes: Mutex<Vec<Change>>,
    lost: Mutex<Lost>,
}

/// A change of the catalog.
struct Change {
    epoch: LogEpoch,
    before: Arc<Catalog>,
    after: Arc<Catalog>,
}

#[derive(Default)]
struct Lost {
    /// The names of lost tables.
    tables: BTreeMap<TableId, String>,
    /// Whether the catalog itself may be another one after a restart.
    has_changed_catalog: bool,
    /// Whether there are entries of which it is not known what they change.
    is_unknown: bool,
}

impl Lost {
    fn add(&mut self, table: &Table) {
        let name = || table.schema().name.clone();
        self.tables.entry(table.id()).or_insert_with(name);
    }

    fn add_change(&mut self, Change { before, after, .. }: &Change) {
        self.has_changed_catalog = true;
        for (one, other) in [(before, after), (after, before)] {
            let is_in_other = |table: &Arc<Table>| {
                let same = other.table(&table.schema().name);
                same.is_some_and(|same| Arc::ptr_eq(same, table))
            };
            for (_, table) in one.tables().filter(|(_, table)| !is_in_other(table)) {
                self.add(table);
            }
            for procedure in one.procedures() {
                let same = other.procedure(procedure.name());
                if !same.is_some_and(|same| Arc::ptr_eq(same, procedure)) {
                    let tables = procedure.program().tables.iter();
                    tables.for_each(|table| self.add(table));
                }
            }
        }
    }

    /// The first of these tables that is lost.
    fn first_of<'a>(&self, mut tables: impl Iterator<Item = &'a Arc<Table>>) -> Option<&'a str> {
        let lost = tables.find(|it| self.is_unknown || self.tables.contains_key(&it.id()));
        lost.map(|table| table.schema().name.as_str())
    }
}

impl EngineInner {
    /// Notes a change of the catalog that was logged in this epoch, before it comes into force; no
    /// transaction runs.
    pub fn note_change(&self, epoch: LogEpoch, before: Arc<Catalog>, after: Arc<Catalog>) {
        if self.log().is_some() {
            let change = Change {
                epoch,
                before,
                after,
            };
            lock(&self.loss.changes).push(change);
        }
    }

    /// The change of the catalog that was logged in this epoch is on disk.
    pub fn forget_change(&self, epoch: LogEpoch) {
        lock(&self.loss.changes).retain(|change| change.epoch != epoch);
    }

    /// Waits until the changes are on disk that have made the present catalog.
    ///
    /// # Errors
    /// 53100 and 58030 when they will not be.
    pub fn await_catalog(&self) -> Result<()> {
        let last = lock(&self.loss.changes).last().map(|change| change.epoch);
        last.map_or(Ok(()), |epoch| self.await_durable(epoch))
    }

    /// Decides which log epoch must be on disk before the client hears the outcome of a
    /// transaction, or which error the client gets instead. The transaction has run these programs,
    /// and is over but for the answer, to a client that waits for the disk. `rejection` says why it
    /// had no effects, if so.
    #[inline(always)]
    pub fn outcome_for_client<T>(
        &self,
        outcome: Observed<T>,
        programs: &[Arc<Program>],
        rejection: impl Fn(&T) -> Option<&Error>,
    ) -> Observed<T> {
        match self.log() {
            Some(log) if log.has_failed() => {
                let error = outcome.result.as_ref().map_or_else(Some, rejection);
                let verdict = self.judge(log, error, programs);
                match verdict {
                    Verdict::OnDisk => Observed {
                        epoch: LogEpoch::default(),
                        ..outcome
                    },
                    Verdict::Lost(error) => Observed::nothing(error),
                    Verdict::InDoubt => outcome,
                }
            }
            _ => outcome,
        }
    }

    #[cold]
    fn judge(&self, log: &Log, error: Option<&Error>, programs: &[Arc<Program>]) -> Verdict {
        if error.is_some_and(|error| *error == read_only(log)) {
            // It has not begun.
            return Verdict::OnDisk;
        }
        let mut lost = lock(&self.loss.lost);
        self.collect(log, &mut lost);
        if error.is_some() && lost.has_changed_catalog {
            return Verdict::InDoubt;
        }
        if programs.iter().any(|program| program.analysis.draws()) {
            return Verdict::InDoubt;
        }
        let tables = programs.iter().flat_map(|program| &program.tables);
        match lost.first_of(tables) {
            None => Verdict::OnDisk,
            Some(table) if programs.iter().all(|it| it.analysis.is_read_only()) => {
                Verdict::Lost(lost_table(log, table))
            }
            Some(_) => Verdict::InDoubt,
        }
    }

    /// The names of lost tables, in their order.
    pub fn lost_tables(&self) -> Vec<String> {
        let Some(log) = self.log().filter(|log| log.has_failed()) else {
            return Vec::new();
        };
        let mut lost = lock(&self.loss.lost);
        self.collect(log, &mut lost);
        let catalog = self.catalog();
        let names: BTreeSet<&str> = match lost.is_unknown {
            true => catalog.tables().map(|(name, _)| name).collect(),
            false => lost.tables.values().map(String::as_str).collect(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    /// Adds all to `lost` that was committed until now and is not known to be on disk.
    fn collect(&self, log: &Log, lost: &mut Lost) {
        let through = log.durable_through();
        let changes = lock(&self.loss.changes);
        let undurable = || changes.iter().filter(|change| change.epoch > through);
        undurable().for_each(|change| lost.add_change(change));
        // Entries may be of tables that such a change has removed.
        let present = self.catalog();
        let catalogs = || undurable().map(|change| &change.before).chain([&present]);
        let tables = catalogs().flat_map(|catalog| catalog.tables());
        let tables: BTreeMap<TableId, &Arc<Table>> =
            tables.map(|(_, table)| (table.id(), table)).collect();
        let (mut heap, mut logged) = (Heap::new(), LoggedCall::default());
        let mut add = |entry: &std::result::Result<Entry<'_>, NotAnEntry>| match entry {
            Ok(Entry::Commit { commit, .. }) => {
                heap.clear();
                let mut reader = Reader::new(commit);
                let table = |id| tables.get(&id).map(|table| &***table);
                let read = read_commit(&mut reader, table, &mut heap, |change, _| {
                    lost.add(change.table);
                    Ok(())
                });
                lost.is_unknown |= read.is_err();
            }
            // What it has changed is among the tables of its procedure.
            Ok(Entry::Command { call, .. }) => {
                let is_read = logged.read(call).is_ok();
                let name = logged.procedure();
                let mut procedures = catalogs().filter_map(|it| it.procedure(name)).peekable();
                lost.is_unknown |= !is_read || procedures.peek().is_none();
                for procedure in procedures {
                    let tables = procedure.program().tables.iter();
                    tables.for_each(|table| lost.add(table));
                }
            }
            // See above. An answer is in no table: it is given as long as its call is in doubt or
            // on disk. A call that has drawn a value is in doubt in any case.
            Ok(
                Entry::Statement { .. }
                | Entry::Outcome { .. }
                | Entry::Sequence { .. }
                | Entry::Block { .. },
            ) => {}
            Err(_) => lost.is_unknown = true,
        };
        log.take_lost(|entry| match &entry {
            Ok(Entry::Block { parts, .. }) => entry::parts(parts).for_each(|part| add(&part)),
            entry => add(entry),
        });
    }
}

/// What becomes of an outcome after a failed write.
enum Verdict {
    /// What it rests on is on disk.
    OnDisk,
    /// It has read a lost table.
    Lost(Error),
    /// It may be lost itself.
    InDoubt,
}

/// Why a transaction that has only read is not answered.
#[cold]
fn lost_table(log: &Log, table: &str) -> Error {
    let failure = log.refusal();
    let failure =
        failure.unwrap_or_else(|| Error::internal("the log has failed, and says not why"));
    let message = format!(
        "table \"{table}\" has changes that may be lost, because the log cannot be written: {}",
        failure.message()
    );
    Error::new(failure.state(), message).with_hint(
        "Tables without such changes can be read. Open the database again when the disk works: that shows what is on it.",
    )
}
