//! PostgreSQL's SQL and PL/pgSQL, compiled to the procedure IR, and the database that runs it.
//!
//! | module | holds |
//! |---|---|
//! | [`parse`] | text to syntax trees |
//! | [`compile`] | syntax trees to programs |
//! | [`database`] | [`Database`] and [`Session`]: scripts, definitions, results |

mod catalog;
pub mod compile;
pub mod database;
pub mod parse;
mod server;

pub use compile::ColumnOrigin;
pub use database::secret;
pub use database::{
    Column, Copying, Database, Notice, Portal, Portion, Recovery, RecoveryProgress, RecoveryStage,
    ResultSet, Session, Statement, StatementKind, StatementResult, StatementsKept, Transaction,
    parameter_value,
};
pub use kiln_durability::backup::{BackupReport, RestoreReport};
pub use kiln_engine::canary;
pub use kiln_engine::{
    AbortCause, Access, Call, CancelHandle, CatalogStatement, CheckpointMetrics, Completion,
    Completions, Configuration, Counted, FIRST_ROLE, IdempotencyKey, IntoValues, LOCK_WAITERS_MAX,
    LogEpoch, LogHistogram, LogMetrics, Logging, Metrics, Notification, Object, ObjectKind,
    OpenBlock, Options, PUBLIC, Privilege, Privileges, Protocol, ReadOnly, Refused, Reply, Role,
    Roles, SLEEPERS_MAX, SubmitError, TableMetrics, Ticket, WrittenCatalog,
};
pub use kiln_storage::error::{Error, Result, SqlState};
pub use kiln_storage::types::{
    DataType, Decimal, FromRow, FromValue, Interval, Number, Style, Value,
};
