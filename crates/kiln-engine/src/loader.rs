//! Bulk loading: rows in transactions of many.

use kiln_platform::sync::Arc;
use kiln_procedure::{Arguments, Program, Stop};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::schema::{Trigger, TriggerEvent};
use kiln_storage::table::Table;
use kiln_storage::types::Value;

use crate::catalog::RecordProgram;
use crate::engine::Engine;
use crate::errors;
use crate::kernel::{PooledSlot, Refusal, Repeated, SlotUser, WorkerSlot};
use crate::values::{fit, fits};

/// Rows in one transaction.
const BATCH_ROWS: usize = 256;

/// Loads rows into one table, in transactions of 256 rows; several threads may load at once,
/// each with a loader of its own.
///
/// Types, lengths, NOT NULL and unique keys are checked; CHECK and REFERENCES constraints and the
/// checks of domains are not: the rows are trusted to satisfy them. Columns that are not named become NULL.
pub struct Loader {
    worker_slot: PooledSlot,
    /// Keeps the database open.
    _engine: Engine,
    table: Arc<Table>,
    /// For each column of the table, the position of its value in the rows given.
    sources: Vec<Option<usize>>,
    width: usize,
    batch: Vec<Arguments>,
    filled: usize,
    loaded: u64,
}

/// What a loader did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// Rows that are in the table now.
    pub rows: u64,
    /// The log epoch that was current when the last of them was committed.
    pub observed: LogEpoch,
}

impl Loader {
    pub(crate) fn new(
        engine: Engine,
        worker_slot: PooledSlot,
        table: Arc<Table>,
        columns: &[&str],
    ) -> Result<Loader> {
        let schema = table.schema();
        if schema.columns.iter().any(|it| it.generated.is_some()) {
            let table = &schema.name;
            let message = format!(
                "a loader for table \"{table}\", which has a generated column or an index over expressions, is \
                 not supported"
            );
            return Err(Error::unsupported(message).with_hint("Use INSERT or COPY."));
        }
        let mut indexes = table.indexes().iter().map(|index| index.definition());
        if indexes.any(|index| index.deferral.is_deferrable()) {
            let table = &schema.name;
            let message = format!(
                "a loader for table \"{table}\", which has a unique key that is DEFERRABLE, is not \
                 supported"
            );
            return Err(Error::unsupported(message).with_hint("Use INSERT or COPY."));
        }
        let inserts = |it: &Trigger| it.is_enabled && it.events.contains(&TriggerEvent::Insert);
        if schema.triggers.iter().any(inserts) {
            let table = &schema.name;
            let message =
                format!("a loader for table \"{table}\", which has a trigger, is not supported");
            return Err(Error::unsupported(message).with_hint("Use INSERT or COPY."));
        }
        let mut sources = vec![None; schema.columns.len()];
        for (position, name) in columns.iter().enumerate() {
            let column = schema.column(name);
            let column = column.ok_or_else(|| errors::undefined_column(&schema.name, name))?;
            if sources[column.index()].replace(position).is_some() {
                return Err(Error::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" specified more than once"),
                ));
            }
        }
        Ok(Loader {
            worker_slot,
            _engine: engine,
            sources,
            width: columns.len(),
            batch: Vec::new(),
            filled: 0,
            loaded: 0,
            table,
        })
    }

    /// Adds a row, with a value for each of the columns named; the values are only lent.
    ///
    /// # Errors
    /// 23502, 22001, 22003, 42804 and their like for a row that does not fit, which is left out;
    /// when the row fills a batch, the errors of [`Loader::finish`].
    pub fn row(&mut self, values: &[Value]) -> Result<()> {
        let schema = self.table.schema();
        if values.len() != self.width {
            let (expected, given) = (self.width, values.len());
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "a row of \"{}\" needs {expected} values, not {given}",
                    schema.name
                ),
            ));
        }
        if self.filled == self.batch.len() {
            self.batch.push(Arguments::new());
        }
        let arguments = &mut self.batch[self.filled];
        arguments.clear();
        for (source, column) in self.sources.iter().zip(&schema.columns) {
            let value = source.map_or(&Value::Null, |source| &values[source]);
            if fits(value, column) {
                arguments.push(value);
            } else {
                arguments.push(&fit(value, column, &schema.name)?);
            }
        }
        self.filled += 1;
        if self.filled == BATCH_ROWS {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Loads the rows that wait for their batch to be full.
    ///
    /// # Errors
    /// Those of [`Loader::finish`].
    pub fn flush(&mut self) -> Result<()> {
        if self.filled == 0 {
            return Ok(());
        }
        let batch = &mut self.batch[..std::mem::take(&mut self.filled)];
        let repeated = Repeated(&mut self.worker_slot);
        loop {
            let worker_slot = &mut *repeated.0;
            worker_slot.enter(None).map_err(Refusal::error)?;
            let result = current_program(worker_slot, &mut self.table)
                .and_then(|program| insert_all(worker_slot, &program, batch, self.loaded));
            worker_slot.leave();
            if result? {
                self.loaded += batch.len() as u64;
                return Ok(());
            }
            worker_slot.back_off(None);
        }
    }

    /// Loads what is left and ends the loader.
    ///
    /// # Errors
    /// 23505 when a key is taken, 54000 for a key that is too long, 53200 when memory is short,
    /// 42P01 when the table was dropped: the rows of that batch are not loaded, those of earlier
    /// ones stay.
    pub fn finish(mut self) -> Result<LoadReport> {
        self.flush()?;
        let observed = self.worker_slot.observed();
        self.worker_slot.inner().await_durable(observed)?;
        Ok(LoadReport {
            rows: self.loaded,
            observed,
        })
    }
}

/// The program that inserts into the table as it is now.
fn current_program(worker_slot: &WorkerSlot, table: &mut Arc<Table>) -> Result<Arc<Program>> {
    if table.is_superseded() {
        let now = worker_slot.catalog().table_by_id(table.id()).cloned();
        *table = now.ok_or_else(|| errors::undefined_table(&table.schema().name))?;
    }
    worker_slot
        .catalog()
        .record_program(table, RecordProgram::Load)
}

/// Inserts the rows in one transaction; `false` when it met a conflict and was rolled back.
fn insert_all(
    worker_slot: &mut WorkerSlot,
    program: &Arc<Program>,
    rows: &mut [Arguments],
    before: u64,
) -> Result<bool> {
    worker_slot.inner().check_log(program)?;
    for arguments in &mut *rows {
        arguments.bind(program)?;
    }
    worker_slot.begin().map_err(Refusal::error)?;
    for (position, arguments) in rows.iter().enumerate() {
        match worker_slot.run(program, arguments) {
            Ok(()) => {}
            Err(Stop::Abort(_)) => {
                worker_slot.roll_back();
                return Ok(false);
            }
            Err(Stop::Raise(error)) => {
                worker_slot.roll_back();
                let number = before + position as u64 + 1;
                return Err(match error.detail() {
                    Some(detail) => {
                        let detail = format!("{detail} This is row {number} of the load.");
                        error.with_detail(detail)
                    }
                    None => error.with_detail(format!("This is row {number} of the load.")),
                });
            }
        }
    }
    Ok(worker_slot.commit().is_ok())
}

impl Engine {
    /// A loader of rows into the table called `table`, with values for these columns.
    ///
    /// # Errors
    /// 42P01, 42703, 42701; 53300 and 57P01 as for [`Engine::session`].
    pub fn loader(&self, table: &str, columns: &[&str]) -> Result<Loader> {
        let table = self.table(table)?;
        let worker_slot = self
            .inner()
            .slots
            .take(self.inner(), SlotUser::Closure, None, None)?;
        Loader::new(self.clone(), worker_slot, table, columns)
    }

    /// Loads rows into the table called `table`; see [`Loader`].
    ///
    /// # Errors
    /// Those of [`Engine::loader`], [`Loader::row`] and [`Loader::finish`].
    pub fn load<R: AsRef<[Value]>>(
        &self,
        table: &str,
        columns: &[&str],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<LoadReport> {
        let mut loader = self.loader(table, columns)?;
        for row in rows {
            loader.row(row.as_ref())?;
        }
        loader.finish()
    }
}
