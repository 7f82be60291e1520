//! Changes of the catalog that are a part of a transaction block.
//!
//! A block with definitions has two lives. While its client sends statements it is *tried*:
//! definitions change a catalog of the block's own, and what the block runs is compiled for that. A
//! table in force that a definition changes is copied first, so that no other transaction sees the
//! change, or waits for it. When the block commits, the trial is rolled back, and the block is
//! *made*: alone, all its statements run again, on the catalog in force, and what they give is
//! compared with what the client has seen (`session/definitions.rs`).
//!
//! A definition looks at rows as they are when no transaction runs. Rows that the block has written
//! itself are not there yet. So a table that the block has written is *refilled* before it is
//! changed: another one takes its place, with the rows that the block sees. A log has that as a
//! statement that empties the table, and as commits of the rows.

use std::collections::BTreeMap;

use kiln_durability::format::entry::Parts;
use kiln_platform::sync::{Arc, lock};
use kiln_procedure::frame::push_value;
use kiln_procedure::ir::OperationKind;
use kiln_procedure::{Arguments, Program, Stop, packed};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::{Change, ChangeKind, Commit};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::{ColumnId, TableId};
use kiln_storage::sequence::Sequence;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::Table;
use kiln_storage::types::Value;

use super::alter::{NewColumn, NewRows};
use super::catalog_change::CatalogChange;
use super::definition::Definition;
use crate::catalog::{
    Catalog, CatalogStatement, CurrentCatalog, RecordProgram, ScanShape, SearchPath, Source,
    TableSplit,
};
use crate::errors;
use crate::kernel::WorkerSlot;

/// Rows of a table that is refilled, in one commit of the log.
const ROWS: usize = 1_024;
/// The version of a row that a table begins with.
const FIRST_VERSION: u64 = 1;

/// The transaction block of which a change is a part.
pub(crate) struct WithinBlock<'a> {
    pub worker_slot: &'a mut WorkerSlot,
    /// Tables that the block's present attempt has written.
    pub written: Vec<TableId>,
    /// Whether the block is tried, and not made.
    is_trial: bool,
    /// What the log will have of it.
    pub parts: Parts,
    /// Tables that were changed by one statement of the block and by a later one again, and, of a
    /// trial, all that it has made.
    pub former_tables: Vec<Arc<Table>>,
    /// Tables that must be the block's own, with the rows that it sees, before the present
    /// statement can be tried again.
    wanted: Vec<String>,
    /// As the last statement has left it.
    pub former: Arc<Catalog>,
    /// The sequences that the block's definitions have made when they were tried, and the present
    /// definition.
    pub sequences: TriedSequences,
    definition: (u64, u32),
    /// What the block has tried as another one.
    pub followers: Vec<(Arc<Sequence>, Arc<Sequence>)>,
    /// Whether the catalog's version is that of a statement that has ended.
    has_ended: bool,
}

/// Sequences that definitions of a block have made when they were tried, by the number of the
/// definition, and their place in it. They keep their values when the block is tried again, as no
/// transaction takes back what a sequence has given.
pub(crate) type TriedSequences = BTreeMap<(u64, u32), Arc<Sequence>>;

/// Why a definition was not made.
pub(crate) enum Refused {
    /// Open blocks use tables that it changes: see [`CatalogChange::awaited`].
    Awaits,
    /// The block has met a conflict.
    Conflict(Error),
    /// Its own reasons.
    Final(Error),
}

/// What a change goes back to when a statement fails.
struct Mark {
    catalog: Catalog,
    followers: usize,
    splits: usize,
    unwritten: usize,
    rewritten: usize,
}

impl<'a> WithinBlock<'a> {
    pub fn trial(worker_slot: &'a mut WorkerSlot, former: Arc<Catalog>) -> Self {
        WithinBlock {
            worker_slot,
            written: Vec::new(),
            is_trial: true,
            parts: Parts::default(),
            former_tables: Vec::new(),
            wanted: Vec::new(),
            former,
            sequences: TriedSequences::new(),
            definition: (0, 0),
            followers: Vec::new(),
            has_ended: false,
        }
    }

    pub fn made(worker_slot: &'a mut WorkerSlot, former: Arc<Catalog>) -> Self {
        WithinBlock {
            is_trial: false,
            ..WithinBlock::trial(worker_slot, former)
        }
    }

    /// The block's present attempt has run a program.
    pub fn note_written(&mut self, program: &Program) {
        for table in tables_written(program) {
            if !self.written.contains(&table) {
                self.written.push(table);
            }
        }
    }

    /// The catalog before the present statement.
    pub fn former(&self) -> &Catalog {
        &self.former
    }
}

/// Whether a program writes rows that are not temporary.
pub fn writes_permanent_rows(program: &Program) -> bool {
    tables_written(program).any(|table| table.is_durable())
}

/// The tables that a program writes.
pub(crate) fn tables_written(program: &Program) -> impl Iterator<Item = TableId> {
    let operations = program.operations.iter();
    let writes = |kind| {
        let reads = [
            OperationKind::Lookup,
            OperationKind::Scan,
            OperationKind::Read,
        ];
        !reads.contains(&kind)
    };
    operations
        .filter(move |operation| writes(operation.kind))
        .map(|operation| operation.table)
}

impl CatalogChange<'_> {
    /// Whether it is tried by a block, and will not come into force.
    pub(crate) fn is_trial(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.is_trial)
    }

    /// The worker slot of the block of which it is a part.
    pub(crate) fn own_worker_slot(&self) -> Option<usize> {
        self.block.as_ref().map(|block| block.worker_slot.number())
    }

    /// A number for a table that is tried.
    pub(crate) fn tried_table_id(&self) -> Option<TableId> {
        (self.is_trial()).then(|| self.inner.unlogged_table_id())
    }

    /// Checks that a table which is to be looked at, or `is_changed`, has the rows that the block
    /// sees, and is not another one's in a trial.
    ///
    /// # Errors
    /// When it is not so yet: the statement is tried again after that.
    pub(crate) fn want_own(&mut self, id: TableId, name: &str, is_changed: bool) -> Result<()> {
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        let is_foreign = block.is_trial && is_changed && id.0 < TableId::TRIALS_FROM;
        if !is_foreign && !block.written.contains(&id) {
            return Ok(());
        }
        block.wanted.push(name.to_owned());
        Err(Error::internal("a table is not the block's own yet"))
    }

    /// Makes a change that a statement of the block defines, or none of it. `number` is that of the
    /// definition in its block.
    pub(crate) fn apply(
        &mut self,
        number: u64,
        definition: &dyn Definition,
    ) -> std::result::Result<(), Refused> {
        loop {
            self.begin_statement();
            if let Some(block) = &mut self.block {
                block.definition = (number, 0);
            }
            let mark = self.mark();
            self.source = Some(definition.source().clone());
            let defined = definition.define(self);
            if !self.awaited.is_empty() {
                return Err(Refused::Awaits);
            }
            let wanted = self.take_wanted();
            match defined {
                Ok(()) if wanted.is_empty() => {
                    return self.end_statement(None).map_err(Refused::Final);
                }
                Err(error) if wanted.is_empty() => return Err(Refused::Final(error)),
                _ => {}
            }
            self.go_back(mark);
            for name in wanted {
                self.begin_statement();
                self.refill(&name)?;
            }
        }
    }

    /// A sequence that a definition makes, which knows what the definition has made when it was
    /// tried before.
    pub(crate) fn as_tried(&mut self, mut made: Sequence) -> Arc<Sequence> {
        let Some(block) = &mut self.block else {
            return Arc::new(made);
        };
        let key = block.definition;
        block.definition.1 += 1;
        let tried = block.sequences.get(&key).cloned();
        if let Some(tried) = &tried {
            made = made.tried_before(tried, block.is_trial);
        }
        let made = Arc::new(made);
        match block.is_trial {
            true => {
                block.sequences.insert(key, made.clone());
            }
            false => {
                let followed = tried.map(|tried| (tried, made.clone()));
                block.followers.extend(followed);
            }
        }
        made
    }

    fn take_wanted(&mut self) -> Vec<String> {
        let block = self.block.as_mut();
        block.map_or_else(Vec::new, |block| std::mem::take(&mut block.wanted))
    }

    fn begin_statement(&mut self) {
        let Some(block) = &mut self.block else {
            return;
        };
        if std::mem::take(&mut block.has_ended) {
            self.catalog.version += 1;
        }
        self.moment_us = None;
    }

    fn mark(&self) -> Mark {
        let block = self.block.as_ref();
        Mark {
            followers: block.map_or(0, |block| block.followers.len()),
            catalog: self.catalog.copied(),
            splits: self.splits.len(),
            unwritten: self.unwritten.len(),
            rewritten: self.rewritten.len(),
        }
    }

    fn go_back(&mut self, mark: Mark) {
        self.catalog = mark.catalog;
        if let Some(block) = &mut self.block {
            block.followers.truncate(mark.followers);
        }
        self.splits.truncate(mark.splits);
        self.unwritten.truncate(mark.unwritten);
        self.rewritten.truncate(mark.rewritten);
    }

    /// A statement of the block was made: the log will have it, as one that has emptied a table if
    /// it has `refilled` one.
    fn end_statement(&mut self, refilled: Option<String>) -> Result<()> {
        self.check_procedures_unless(refilled.is_some())?;
        self.number_objects()?;
        let source = self.source.take();
        let former = self.snapshot();
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        let tables = block.former.tables().map(|(_, table)| table);
        let is_there = |table: &Arc<Table>| {
            let mut now = former.tables();
            now.any(|(_, other)| Arc::ptr_eq(other, table))
        };
        let gone = tables.filter(|table| !is_there(table)).cloned();
        block.former_tables.extend(gone);
        if !block.is_trial {
            let splits = self.splits.iter();
            let splits = splits.filter(|(table, _)| former.table_by_id(table.id()).is_some());
            let splits = splits.map(|(table, columns)| TableSplit {
                table: table.id(),
                columns: *columns,
            });
            let statement = CatalogStatement {
                version: former.version(),
                first_table_id: block.former.next_table_id(),
                design: self.design,
                splits: splits.collect(),
                moment_us: self.moment_us,
                owner: self.owner.clone(),
                refilled,
                source: source.ok_or_else(|| Error::internal("a statement says something"))?,
            };
            block.parts.statement(&statement.to_string());
        }
        (block.former, block.has_ended) = (former, true);
        Ok(())
    }

    /// While a table is refilled procedures use the former one: the statement for which it is
    /// compiles them.
    fn check_procedures_unless(&self, is_refilling: bool) -> Result<()> {
        match is_refilling {
            true => Ok(()),
            false => self.check_procedures(),
        }
    }

    /// The catalog as it is now, for programs of the block.
    pub(crate) fn snapshot(&self) -> Arc<Catalog> {
        let mut catalog = self.catalog.copied();
        let current = Arc::new(CurrentCatalog::beside(&catalog.current));
        catalog.current = current.clone();
        let catalog = Arc::new(catalog);
        current.set(&catalog);
        catalog
    }

    /// Puts a table with the rows that the block sees in a table's place.
    fn refill(&mut self, name: &str) -> std::result::Result<(), Refused> {
        let old = self.catalog.require_table(name).map_err(Refused::Final)?;
        let old = old.clone();
        let mut fresh = self.emptied(&old, false).map_err(Refused::Final)?;
        let is_written = self.wrote(old.id());
        match is_written {
            true => self.append_seen(&old, &fresh)?,
            false => self.append_copied(&old, &fresh).map_err(Refused::Final)?,
        }
        for index in old.indexes().iter().skip(1) {
            let definition = index.definition().clone();
            let indexed = fresh.with_index(definition, &lock(&self.inner.maintenance));
            fresh = indexed.map_err(Refused::Final)?;
        }
        self.inner.common().prepare(&fresh);
        let fresh = self.replace(name, fresh);
        self.rewritten.push(old.clone());
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        block.written.retain(|written| *written != old.id());
        self.source = Some(Arc::new(Source {
            text: format!("-- the block's rows of {name}"),
            line: 1,
            column: 1,
            path: SearchPath::default(),
        }));
        self.end_statement(Some(name.to_owned()))
            .map_err(Refused::Final)?;
        if !self.is_trial() {
            self.log_rows(&fresh);
        }
        Ok(())
    }

    fn wrote(&self, table: TableId) -> bool {
        let block = self.block.as_ref();
        block.is_some_and(|block| block.written.contains(&table))
    }

    /// Copies the rows of a table that the block has not written.
    fn append_copied(&mut self, old: &Table, fresh: &Table) -> Result<()> {
        let columns = (0..old.schema().columns.len() as u16).map(ColumnId);
        let rows = NewRows {
            schema: old.schema().clone(),
            indexes: Vec::new(),
            columns: columns.map(NewColumn::Kept).collect(),
            program: None,
            arguments: Vec::new(),
        };
        let moment_us = self.moment_us();
        self.fill(old, fresh, &rows, moment_us)
    }

    /// Appends the rows of a table as the block sees them: its attempt reads them.
    fn append_seen(&mut self, old: &Arc<Table>, fresh: &Table) -> std::result::Result<(), Refused> {
        let all = RecordProgram::Scan(ScanShape {
            index: 0,
            prefix: 0,
            lower: None,
            upper: None,
            reverse: false,
            whole: true,
        });
        let program = self.catalog.record_program(old, all);
        let program = program.map_err(Refused::Final)?;
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        let mut arguments = Arguments::from_values(&[Value::BigInt(i64::MAX)]);
        arguments.bind(&program).map_err(Refused::Final)?;
        block
            .worker_slot
            .run(&program, &arguments)
            .map_err(|stop| match stop {
                Stop::Abort(cause) => Refused::Conflict(errors::conflict(cause)),
                Stop::Raise(error) => Refused::Final(error),
            })?;
        let seen = block.worker_slot.rows(&program);
        let maintenance = lock(&self.inner.maintenance);
        let (mut heap, mut slots) = (Heap::new(), Vec::<Slot>::new());
        for values in seen.values() {
            heap.clear();
            slots.clear();
            let values = values.iter().zip(&old.schema().columns);
            slots.extend(values.map(|(value, column)| {
                let slot = push_value(&mut heap, value);
                packed::for_row(&mut heap, slot, &column.data_type)
            }));
            let appended = fresh.append_row(&slots, None, &mut heap, &maintenance);
            appended.map_err(Refused::Final)?;
        }
        Ok(())
    }

    /// Has the log keep the rows of a table that no other thread knows yet.
    fn log_rows(&mut self, fresh: &Table) {
        let mut records: Vec<RecordRef> = Vec::new();
        fresh.indexes()[0].for_each(|record| records.push(record));
        let Some(block) = &mut self.block else {
            return;
        };
        for records in records.chunks(ROWS) {
            let columns = fresh.layout().all();
            // SAFETY: table and records live until the change is made, and no other thread knows
            // them.
            let change = |record: &RecordRef| unsafe {
                Change::new(fresh, *record, ChangeKind::Insert, columns, 0)
            };
            let changes: Vec<Change> = records.iter().map(change).collect();
            let commit = Commit {
                epoch: LogEpoch::default(),
                version: FIRST_VERSION,
                order: FIRST_VERSION,
                changes: &changes,
                answer: None,
                command: None,
            };
            block.parts.commit(|bytes| commit.append(bytes));
        }
    }

    /// Puts an empty table in a table's place, as a block has done that has refilled it: commits
    /// with the rows follow.
    ///
    /// # Errors
    /// 42P01; those of [`Table::new`].
    pub fn empty_table(&mut self, name: &str) -> Result<()> {
        let known = self.catalog.require_table(name);
        let old = known
            .map_err(|error| Error::new(SqlState::DATA_CORRUPTED, error.message().to_owned()))?;
        let old = old.clone();
        let emptied = self.emptied(&old, true)?;
        self.replace(name, emptied);
        Ok(())
    }
}
