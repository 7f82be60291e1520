//! Transactions written as Rust closures.

use std::ops::Bound;

use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::{AbortCause, Arguments, Program, Stop};
use kiln_storage::deferral::PendingCheck;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::ColumnId;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, FromRow, FromValue, Value};

use crate::calls::Rows;
use crate::catalog::{Catalog, RecordProgram, ScanShape, check_current};
use crate::channels::Outgoing;
use crate::errors;
use crate::kernel::{Repeated, WorkerSlot};
use crate::observed::Observed;
use crate::values::{IntoValues, fit, fits};

/// A row that a transaction read: values by the names of their columns.
#[derive(Clone, Debug)]
pub struct Row {
    columns: Arc<[(String, DataType)]>,
    values: Vec<Value>,
}

impl Row {
    /// The value of the column called `column`, as a Rust value.
    ///
    /// # Errors
    /// 42703 when there is no such column; 42804 when it does not convert; 22004 for NULL where
    /// the type is no [`Option`].
    pub fn get<T: FromValue>(&self, column: &str) -> Result<T> {
        let position = self.columns.iter().position(|(name, _)| name == column);
        let position = position.ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{column}\" does not exist"),
            )
        })?;
        T::from_value(self.values[position].clone())
    }

    /// The values, in the table's order of columns.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The whole row as a tuple.
    ///
    /// # Errors
    /// 42804 or 22004 when it does not convert.
    pub fn typed<T: FromRow>(self) -> Result<T> {
        T::from_row(self.values)
    }
}

/// Which rows a scan visits: those whose leading index columns equal the prefix, and whose next
/// one lies between the bounds, in the order of the index.
#[derive(Clone, Debug)]
pub struct ScanRange {
    prefix: Vec<Value>,
    lower: Bound<Value>,
    upper: Bound<Value>,
    reverse: bool,
    limit: usize,
}

impl ScanRange {
    /// All rows.
    pub fn all() -> ScanRange {
        ScanRange::prefix(())
    }

    /// The rows whose leading index columns equal `prefix`.
    pub fn prefix(prefix: impl IntoValues) -> ScanRange {
        ScanRange {
            prefix: prefix.into_values(),
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            reverse: false,
            limit: usize::MAX,
        }
    }

    /// Only those whose next index column is at least `value`.
    #[must_use]
    pub fn from(mut self, value: impl Into<Value>) -> ScanRange {
        self.lower = Bound::Included(value.into());
        self
    }

    /// Only those whose next index column is greater than `value`.
    #[must_use]
    pub fn after(mut self, value: impl Into<Value>) -> ScanRange {
        self.lower = Bound::Excluded(value.into());
        self
    }

    /// Only those whose next index column is at most `value`.
    #[must_use]
    pub fn to(mut self, value: impl Into<Value>) -> ScanRange {
        self.upper = Bound::Included(value.into());
        self
    }

    /// Only those whose next index column is less than `value`.
    #[must_use]
    pub fn before(mut self, value: impl Into<Value>) -> ScanRange {
        self.upper = Bound::Excluded(value.into());
        self
    }

    /// The greatest first.
    #[must_use]
    pub fn reverse(mut self) -> ScanRange {
        self.reverse = true;
        self
    }

    /// At most so many rows.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> ScanRange {
        self.limit = rows;
        self
    }
}

/// A transaction inside [`Engine::transaction`](crate::Engine::transaction): reads and writes
/// rows by table and key, and runs programs, with the guarantees of a procedure.
///
/// After any error the transaction cannot commit: hand the error on with `?`. What was read may
/// be out of date until the transaction commits; then it was all true at one moment.
pub struct Transaction<'a> {
    worker_slot: &'a mut WorkerSlot,
    arguments: Arguments,
    failure: Option<Failed>,
    /// Whether a transaction is open in the worker.
    open: bool,
    /// The checks of constraints that programs have left to its end, if the caller makes them.
    pending: Option<Vec<PendingCheck>>,
    /// What programs have told those that listen.
    sent: Outgoing,
}

/// Why the transaction cannot commit.
enum Failed {
    Conflict(AbortCause),
    Error(Error),
}

impl<'a> Transaction<'a> {
    /// Runs `body` as a transaction on `worker_slot` until it commits, returns an error, or the
    /// deadline has passed.
    pub(crate) fn run_to_end<T>(
        worker_slot: &mut WorkerSlot,
        deadline_ns: Option<u64>,
        sent: &mut Outgoing,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Observed<T> {
        let repeated = Repeated(worker_slot);
        loop {
            if deadline_ns.is_some_and(|deadline| time::now_ns() >= deadline) {
                return Observed::nothing(errors::expired());
            }
            let worker_slot = &mut *repeated.0;
            if let Err(refusal) = worker_slot.enter(deadline_ns) {
                return Observed::nothing(refusal.error());
            }
            let mut attempt = Entered { worker_slot };
            match attempt.once(&mut body, sent) {
                Attempt::Done(result) => return attempt.worker_slot.outcome_for_client(result),
                // Outside the gate, so that the wait delays no thread that wants the database
                // alone.
                Attempt::Conflict => {}
            }
            drop(attempt);
            repeated.0.back_off(deadline_ns);
        }
    }

    /// The catalog; it does not change before the transaction has ended.
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.worker_slot.catalog()
    }

    /// Runs a program.
    ///
    /// # Errors
    /// What it raises, those of [`Arguments::bind`], 55000 when a table of it was changed since
    /// it was compiled, 40001 for a conflict (which starts the closure again).
    pub fn run(&mut self, program: &Arc<Program>, arguments: &mut Arguments) -> Result<Rows> {
        match &self.failure {
            Some(Failed::Conflict(cause)) => return Err(errors::conflict(*cause)),
            Some(Failed::Error(_)) => return Err(errors::failed_transaction()),
            None => {}
        }
        if self.pending.is_some() && !program.deferred.is_empty() {
            arguments.defer_constraints(Arc::default);
        }
        let ready = check_current(program).and_then(|()| arguments.bind(program));
        if let Err(error) = ready {
            return Err(self.fail(error));
        }
        match self.worker_slot.run(program, arguments) {
            Ok(()) => {
                let mut rows = self.worker_slot.rows(program);
                let sent = std::mem::take(&mut rows.notifications);
                let kept = self.sent.extend(sent);
                kept.map_err(|error| self.fail(error))?;
                if let Some(pending) = &mut self.pending {
                    pending.append(&mut rows.pending);
                }
                Ok(rows)
            }
            Err(Stop::Abort(cause)) => {
                self.failure = Some(Failed::Conflict(cause));
                Err(errors::conflict(cause))
            }
            Err(Stop::Raise(error)) => Err(self.fail(error)),
        }
    }

    /// Has later programs leave the checks of deferred constraints to the end of the transaction,
    /// where the caller makes them ([`Transaction::take_pending`]); else each program makes its own
    /// at its end.
    pub fn leave_checks(&mut self) {
        self.pending.get_or_insert_default();
    }

    /// Takes the checks that programs have left: they are the caller's now.
    pub fn take_pending(&mut self) -> Vec<PendingCheck> {
        self.pending.as_mut().map_or_else(Vec::new, std::mem::take)
    }

    fn fail(&mut self, error: Error) -> Error {
        self.failure.get_or_insert(Failed::Error(error.clone()));
        error
    }

    /// Calls a stored procedure as a part of this transaction.
    ///
    /// # Errors
    /// 42883 when there is none, and those of [`Transaction::run`].
    pub fn call(&mut self, procedure: &str, arguments: impl IntoValues) -> Result<Rows> {
        let found = self
            .worker_slot
            .catalog()
            .require_procedure(procedure)
            .cloned();
        let found = found.map_err(|error| self.fail(error))?;
        let mut arguments = Arguments::from_values(&arguments.into_values());
        self.run(found.program(), &mut arguments)
    }

    /// The row with this primary key, if there is one.
    ///
    /// # Errors
    /// 42P01 when there is no such table; 42P10 when the key has another number of columns; those
    /// of [`Transaction::run`].
    pub fn get(&mut self, table: &str, key: impl IntoValues) -> Result<Option<Row>> {
        let key = key.into_values();
        let rows = self.record(table, RecordProgram::Get, |table| key_of(table, &key))?;
        Ok(typed_rows(rows).pop())
    }

    /// Inserts a row; there is a value for each column, in the table's order.
    ///
    /// # Errors
    /// 23505 when a key is taken, 23502 for a NULL that is refused, 22001 and 22003 for values
    /// that do not fit, and those of [`Transaction::get`].
    pub fn insert(&mut self, table: &str, values: impl IntoValues) -> Result<()> {
        let values = values.into_values();
        let what = RecordProgram::Insert {
            ignore_conflict: false,
        };
        self.record(table, what, |table| row_of(table, &values))?;
        Ok(())
    }

    /// Inserts a row unless a unique key of it is taken; returns whether it did.
    ///
    /// # Errors
    /// Those of [`Transaction::insert`], but for 23505.
    pub fn insert_if_absent(&mut self, table: &str, values: impl IntoValues) -> Result<bool> {
        let values = values.into_values();
        let what = RecordProgram::Insert {
            ignore_conflict: true,
        };
        let rows = self.record(table, what, |table| row_of(table, &values))?;
        Ok(flag(&rows))
    }

    /// Updates columns of the row with this primary key; returns whether there is one.
    ///
    /// # Errors
    /// 42703 for an unknown column, and those of [`Transaction::insert`].
    pub fn update(
        &mut self,
        table: &str,
        key: impl IntoValues,
        columns: &[(&str, Value)],
    ) -> Result<bool> {
        let key = key.into_values();
        let found = self.table(table)?;
        let named: Result<Vec<ColumnId>> = columns
            .iter()
            .map(|(name, _)| {
                let column = found.schema().column(name);
                column.ok_or_else(|| errors::undefined_column(table, name))
            })
            .collect();
        let named = named.map_err(|error| self.fail(error))?;
        let mut sorted = named.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = &found.schema().columns[pair[0].index()].name;
            let message = format!("multiple assignments to same column \"{name}\"");
            return Err(self.fail(Error::new(SqlState::SYNTAX_ERROR, message)));
        }
        let program = RecordProgram::Update(named.clone());
        let rows = self.record(table, program, |table| {
            let mut values = key_of(table, &key)?;
            for (column, (_, value)) in named.iter().zip(columns) {
                let definition = &table.schema().columns[column.index()];
                values.push(fit(value, definition, &table.schema().name)?);
            }
            Ok(values)
        })?;
        Ok(flag(&rows))
    }

    /// Deletes the row with this primary key; returns whether there was one.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn delete(&mut self, table: &str, key: impl IntoValues) -> Result<bool> {
        let key = key.into_values();
        let rows = self.record(table, RecordProgram::Delete, |table| key_of(table, &key))?;
        Ok(flag(&rows))
    }

    /// The rows of a range of an ordered index; `None` is the primary key's.
    ///
    /// # Errors
    /// 42704 when there is no such index, 0A000 when it is not ordered, and those of
    /// [`Transaction::get`].
    pub fn scan(
        &mut self,
        table: &str,
        index: Option<&str>,
        range: &ScanRange,
    ) -> Result<Vec<Row>> {
        if range.limit == 0 {
            return Ok(Vec::new());
        }
        let found = self.table(table)?;
        let shape = shape_of(&found, index, range).map_err(|error| self.fail(error))?;
        let rows = self.record(table, RecordProgram::Scan(shape), |_| {
            let mut values = range.prefix.clone();
            for bound in [&range.lower, &range.upper] {
                if let Bound::Included(value) | Bound::Excluded(value) = bound {
                    values.push(value.clone());
                }
            }
            values.push(Value::BigInt(
                i64::try_from(range.limit).unwrap_or(i64::MAX),
            ));
            Ok(values)
        })?;
        Ok(typed_rows(rows))
    }

    fn table(&mut self, name: &str) -> Result<Arc<Table>> {
        let found = self.worker_slot.catalog().require_table(name).cloned();
        found.map_err(|error| self.fail(error))
    }

    /// Runs the program that does `what` to a table, with the values that `values` gives.
    fn record(
        &mut self,
        table: &str,
        what: RecordProgram,
        values: impl FnOnce(&Table) -> Result<Vec<Value>>,
    ) -> Result<Rows> {
        let found = self.table(table)?;
        let ready = self.worker_slot.catalog().record_program(&found, what);
        let ready = ready.and_then(|program| Ok((program, values(&found)?)));
        let (program, values) = ready.map_err(|error| self.fail(error))?;
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.clear();
        values.iter().for_each(|value| arguments.push(value));
        let result = self.run(&program, &mut arguments);
        self.arguments = arguments;
        result
    }
}

/// A worker slot that is entered until this is dropped.
struct Entered<'a> {
    worker_slot: &'a mut WorkerSlot,
}

enum Attempt<T> {
    Done(Result<T>),
    Conflict,
}

impl Entered<'_> {
    /// Makes an attempt; what it has told those that listen is in `sent` when it has committed.
    fn once<T>(
        &mut self,
        body: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
        sent: &mut Outgoing,
    ) -> Attempt<T> {
        if let Err(refusal) = self.worker_slot.begin() {
            return Attempt::Done(Err(refusal.error()));
        }
        let mut transaction = Transaction {
            worker_slot: self.worker_slot,
            arguments: Arguments::new(),
            failure: None,
            open: true,
            pending: None,
            sent: Outgoing::default(),
        };
        let result = body(&mut transaction);
        match (transaction.failure.take(), result) {
            (Some(Failed::Conflict(_)), _) => Attempt::Conflict,
            (Some(Failed::Error(error)), Ok(_)) => Attempt::Done(Err(error)),
            (Some(Failed::Error(_)), Err(error)) => Attempt::Done(Err(error)),
            (None, Ok(_)) if transaction.pending.iter().flatten().next().is_some() => {
                Attempt::Done(Err(Error::internal("constraints were left unchecked")))
            }
            (None, Ok(value)) => {
                transaction.open = false;
                match transaction.worker_slot.commit() {
                    Ok(()) => {
                        *sent = std::mem::take(&mut transaction.sent);
                        Attempt::Done(Ok(value))
                    }
                    Err(_) => Attempt::Conflict,
                }
            }
            // The closure's own decision; it counts only if what it read was true.
            (None, Err(error)) => match transaction.worker_slot.confirm() {
                Ok(()) => Attempt::Done(Err(error)),
                Err(_) => Attempt::Conflict,
            },
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.worker_slot.leave();
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Also when the closure panicked.
        if self.open {
            self.worker_slot.roll_back();
        }
    }
}

fn typed_rows(rows: Rows) -> Vec<Row> {
    let columns: Arc<[(String, DataType)]> = rows.columns().into();
    let values = rows.into_values().into_iter();
    values
        .map(|values| Row {
            columns: columns.clone(),
            values,
        })
        .collect()
}

fn flag(rows: &Rows) -> bool {
    matches!(rows.values(), [row] if row.first() == Some(&Value::Boolean(true)))
}

fn wrong_number(what: &str, table: &Table, expected: usize, given: usize) -> Error {
    Error::new(
        SqlState::INVALID_COLUMN_REFERENCE,
        format!(
            "{what} of \"{}\" has {expected} columns, but {given} values were given",
            table.schema().name
        ),
    )
}

/// A key's values; one with a NULL finds nothing.
fn key_of(table: &Table, key: &[Value]) -> Result<Vec<Value>> {
    let columns = &table.schema().primary_key;
    // Without a primary key there is no program either, which says so.
    if !columns.is_empty() && columns.len() != key.len() {
        return Err(wrong_number(
            "the primary key",
            table,
            columns.len(),
            key.len(),
        ));
    }
    Ok(key.to_vec())
}

/// A whole row's values as they are stored.
fn row_of(table: &Table, values: &[Value]) -> Result<Vec<Value>> {
    let schema = table.schema();
    let columns = schema.shown();
    if columns.len() != values.len() {
        return Err(wrong_number("a row", table, columns.len(), values.len()));
    }
    let values = values.iter().zip(columns);
    values
        .map(|(value, column)| match fits(value, column) {
            true => Ok(value.clone()),
            false => fit(value, column, &schema.name),
        })
        .collect()
}

fn shape_of(table: &Table, index: Option<&str>, range: &ScanRange) -> Result<ScanShape> {
    let position = match index {
        None => 0,
        Some(name) => {
            let mut indexes = table.indexes().iter();
            let position = indexes.position(|index| index.definition().name == name);
            position.ok_or_else(|| errors::undefined_index(name))?
        }
    };
    let index = &table.indexes()[position];
    let columns = index.definition().columns.len();
    if !index.is_ordered() {
        return Err(Error::unsupported(format!(
            "index \"{}\" is not ordered and cannot be scanned",
            index.definition().name
        )));
    }
    let side = |bound: &Bound<Value>| match bound {
        Bound::Unbounded => None,
        Bound::Included(_) => Some(true),
        Bound::Excluded(_) => Some(false),
    };
    let (lower, upper) = (side(&range.lower), side(&range.upper));
    let bounded = usize::from(lower.is_some() || upper.is_some());
    if range.prefix.len() + bounded > columns {
        let name = format!("index \"{}\"", index.definition().name);
        return Err(wrong_number(
            &name,
            table,
            columns,
            range.prefix.len() + bounded,
        ));
    }
    let (prefix, reverse) = (range.prefix.len(), range.reverse);
    Ok(ScanShape {
        index: position as u16,
        prefix,
        lower,
        upper,
        reverse,
        whole: false,
    })
}
