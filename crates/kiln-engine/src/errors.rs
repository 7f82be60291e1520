//! The engine's own errors, each in one place.

use std::fmt;

use kiln_durability::log::Log;
use kiln_procedure::AbortCause;
use kiln_storage::error::{Error, SqlState};
use kiln_storage::qualified::name_in_schema;

#[cold]
pub(crate) fn closing() -> Error {
    Error::new(SqlState::ADMIN_SHUTDOWN, "the database is closed")
}

#[cold]
pub(crate) fn expired() -> Error {
    Error::new(SqlState::QUERY_CANCELED, "the deadline passed")
}

/// No worker slot for a driver.
#[cold]
pub(crate) fn no_worker_slot(limit: usize) -> Error {
    Error::new(
        SqlState::TOO_MANY_CONNECTIONS,
        format!("all {limit} workers that a database may have are in use"),
    )
    .with_hint("Drive it with fewer threads, or open it with fewer workers and session_slots.")
}

/// No slot came free in time. `longest` is the session whose open block has idled longest, and for
/// how many nanoseconds.
#[cold]
pub(crate) fn no_session_slot(limit: usize, longest: Option<(u64, u64)>) -> Error {
    let error = Error::new(
        SqlState::TOO_MANY_CONNECTIONS,
        format!("all {limit} worker slots of sessions are in use"),
    )
    .with_hint(
        "End open transaction blocks, lower idle_in_transaction_ms, or open the database with \
         more session_slots or a larger slot_wait_ms.",
    );
    match longest {
        Some((session, idle_ns)) => error.with_detail(format!(
            "Session {session} has idled longest in an open transaction block, for {:.1} s.",
            idle_ns as f64 / 1e9
        )),
        None => error,
    }
}

#[cold]
pub(crate) fn no_session(limit: usize) -> Error {
    Error::new(
        SqlState::TOO_MANY_CONNECTIONS,
        format!("all {limit} sessions are open"),
    )
    .with_hint("Close a session, or open the database with a larger sessions_max.")
}

#[cold]
pub(crate) fn conflict(cause: AbortCause) -> Error {
    Error::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to concurrent transactions",
    )
    .with_detail(format!("The conflict was found as {}.", cause.name()))
    .with_hint("The transaction was rolled back and can be started again.")
}

#[cold]
pub(crate) fn failed_transaction() -> Error {
    Error::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

#[cold]
pub(crate) fn changed_meanwhile(table: &str) -> Error {
    Error::new(
        SqlState::SERIALIZATION_FAILURE,
        format!("table \"{table}\" was changed after the transaction began"),
    )
    .with_hint("The transaction was rolled back and can be started again.")
}

/// A block that changes the catalog meets another change of it.
#[cold]
pub(crate) fn catalog_changed() -> Error {
    Error::new(
        SqlState::SERIALIZATION_FAILURE,
        "the catalog was changed after the transaction began, which changes it too",
    )
    .with_hint("The transaction was rolled back and can be started again.")
}

/// A block that was run again after a conflict is not what its client has seen.
#[cold]
pub(crate) fn seen_otherwise(number: usize, text: Option<&str>, differs: &str) -> Error {
    let what = match text {
        // Of a long statement its beginning tells which it is.
        Some(text) => {
            let text: String = text.chars().take(100).collect();
            format!("Statement {number} of the block ({text}) was run again: {differs}.")
        }
        None => format!("Statement {number} of the block was run again: {differs}."),
    };
    Error::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to concurrent transactions: results that the client has seen are no longer true",
    )
    .with_detail(what)
    .with_hint("The transaction was rolled back and can be started again.")
}

#[cold]
pub(crate) fn table_in_use(table: &str, user: impl fmt::Display) -> Error {
    Error::new(
        SqlState::LOCK_NOT_AVAILABLE,
        format!("table \"{table}\" is used by an open transaction of {user}"),
    )
    .with_hint("Commit or roll back that transaction, or wait longer with ddl_wait_ms.")
}

#[cold]
pub(crate) fn stale(program: &str) -> Error {
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("a table of \"{program}\" was changed or dropped since it was compiled"),
    )
    .with_hint("Compile it again.")
}

#[cold]
pub(crate) fn undefined_table(name: &str) -> Error {
    // Without a schema it was found nowhere along the search path.
    let name = name.strip_prefix('.').unwrap_or(name);
    Error::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{name}\" does not exist"),
    )
}

#[cold]
pub(crate) fn undefined_procedure(name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("procedure {name} does not exist"),
    )
}

#[cold]
pub(crate) fn undefined_column(table: &str, name: &str) -> Error {
    let table = name_in_schema(table);
    Error::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" of relation \"{table}\" does not exist"),
    )
}

#[cold]
pub(crate) fn undefined_index(name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("index \"{name}\" does not exist"),
    )
}

/// Why a transaction cannot begin that changes something.
#[cold]
pub(crate) fn read_only(log: &Log) -> Error {
    let failure = log.refusal();
    let failure = failure.unwrap_or_else(|| Error::internal("the log refuses, and says not why"));
    let message = format!(
        "the database is read-only, because its log takes no further changes: {}",
        failure.message()
    );
    Error::new(failure.state(), message)
        .with_hint("Mend the disk or make room on it, and open the database again.")
}

/// Why an answer is not given.
#[cold]
pub(crate) fn in_doubt(failure: Error) -> Error {
    if failure.state() == SqlState::ADMIN_SHUTDOWN {
        return failure;
    }
    let message = format!(
        "what the transaction has seen or done may be lost, because the log cannot be written: {}",
        failure.message()
    );
    Error::new(failure.state(), message)
        .with_hint("A restart shows what is on disk. Open the database again when the disk works.")
}

/// The error of a schema that there is not.
#[cold]
pub(crate) fn undefined_schema(name: &str) -> Error {
    let message = format!("schema \"{name}\" does not exist");
    Error::new(SqlState::INVALID_SCHEMA_NAME, message)
}
