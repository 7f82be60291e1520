//! A main-memory, multicore, serializable SQL database for hot data: rows that many transactions
//! want at once.
//!
//! Tables and procedures are written in PostgreSQL's SQL and PL/pgSQL. A procedure call is a
//! serializable transaction that ends *committed*, *rejected* (the procedure raised) or *expired*
//! (its deadline passed), and never "please retry".
//!
//! ```
//! use kiln::{Database, Options, Reply};
//!
//! # fn main() -> kiln::Result<()> {
//! let database = Database::open(Options::new())?;
//! database.execute(
//!     "CREATE TABLE account (id INTEGER PRIMARY KEY, balance NUMERIC(12, 2) NOT NULL);
//!      INSERT INTO account VALUES (1, 100), (2, 50);
//!
//!      CREATE PROCEDURE transfer(source INTEGER, target INTEGER, amount NUMERIC)
//!      LANGUAGE plpgsql AS $$
//!      DECLARE
//!          left_over NUMERIC;
//!      BEGIN
//!          UPDATE account SET balance = balance - amount WHERE id = source
//!              RETURNING balance INTO left_over;
//!          IF left_over < 0 THEN
//!              RAISE EXCEPTION 'insufficient funds';
//!          END IF;
//!          UPDATE account SET balance = balance + amount WHERE id = target;
//!      END
//!      $$;",
//! )?;
//! assert!(database.call("transfer", (1, 2, 30))?.is_committed());
//! assert!(matches!(database.call("transfer", (1, 2, 500))?, Reply::Rejected(_)));
//! let rows = database.query("SELECT balance::text FROM account ORDER BY id", ())?;
//! assert_eq!(rows.into_rows::<(String,)>()?, [("70.00".to_string(),), ("80.00".to_string(),)]);
//! # Ok(())
//! # }
//! ```
//!
//! The [`guide`] goes through the library chapter by chapter.
//!
//! | to | use |
//! |---|---|
//! | define tables and procedures, run scripts | [`Database::execute`] |
//! | keep the database in a directory | [`Options::data_dir`], [`Database::recovery`], [`Database::open_with_progress`] |
//! | query | [`Database::query`] |
//! | call a procedure | [`Database::call`]; without waiting, with a deadline or an idempotency key: [`Database::submit`] |
//! | submit the calls of many clients from one thread | [`Database::submit_to`], [`Completions`] |
//! | write the logic of a transaction in Rust | [`Database::transaction`] |
//! | have transactions of several statements | [`Database::session`] |
//! | hear of what transactions tell by NOTIFY and `pg_notify` | [`Session::notifications`], [`Session::await_notifications`], [`Session::wake_by`] |
//! | load many rows | [`Engine::loader`] of [`Database::engine`] |
//! | write the catalog down, and rebuild it | [`Engine::written_catalog`], [`Database::rebuild`] |
//! | read what it has counted, and how it stands | [`Database::metrics`] |
//! | learn why a database takes no changes any more | [`Engine::read_only`] |
//! | copy a database that is kept in a directory, and make a directory of a copy | [`Database::backup`], [`Database::restore`] |
//! | choose a protocol and its options | [`Options::protocol`], [`Configuration`] |
//! | change the protocol of a running database | [`Engine::set_protocol`] |

pub mod guide;

pub use kiln_engine::{
    AbortCause, CatalogStatement, CheckpointMetrics, Configuration, Counted, Engine, EpochHolder,
    LoadReport, Loader, LogMetrics, Metrics, OpenBlock, ProtocolOption, ReadOnly, RetiredMemory,
    Row, Rows, ScanRange, SlotUser, Statistics, TableMemory, TableMetrics, TableSplit,
    WrittenCatalog,
};
pub use kiln_sql::{
    BackupReport, Call, CancelHandle, Column, ColumnOrigin, Completion, Completions, DataType,
    Database, Decimal, Error, FromRow, FromValue, IdempotencyKey, Interval, IntoValues, Logging,
    Notice, Notification, Number, Options, Portal, Portion, Protocol, Recovery, RecoveryProgress,
    RecoveryStage, Refused, Reply, RestoreReport, Result, ResultSet, Session, SqlState, Statement,
    StatementKind, StatementResult, SubmitError, Ticket, Transaction, Value, parameter_value,
};

/// The quick start of the README, so that it keeps compiling.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
