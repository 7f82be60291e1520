//! The engine: a database that knows tables and compiled procedures, but no SQL.
//!
//! An [`Engine`] holds the catalog, runs calls on its workers, and hands out sessions, drivers and
//! loaders, all under one protocol that can be changed while the database runs.
//!
//! | who | uses |
//! |---|---|
//! | applications that call procedures | [`Engine::call`], [`Engine::submit`], [`Ticket`] |
//! | one thread that serves many clients | [`Engine::submit_to`], [`Completions`] |
//! | Rust code with its own logic | [`Engine::transaction`], [`Transaction`] |
//! | interactive statements | [`Engine::session`], [`Session`] |
//! | benchmarks | [`Engine::drive`], [`Driver`] |
//! | bulk loading | [`Engine::loader`], [`Loader`] |
//! | listeners to what is committed | [`Engine::attach_listeners`], [`Engine::log_epochs`], [`Observed`] |
//! | histories for a judge | [`Engine::record_history`], [`Engine::take_history`] |
//! | data definition | [`Engine::change_catalog`], [`CatalogChange`] |
//! | a catalog as text | [`Catalog::written`], [`WrittenCatalog`], [`CatalogStatement`] |
//!
//! A thread that runs transactions owns a *seat*: a worker of the present protocol and a flag that
//! says whether a transaction runs on it. A session is no worker: it takes a seat from a pool
//! (a *worker slot*) for the time of a statement or of an open block. Changes of the catalog and of
//! the protocol shut the *gate*: they wait until no seat is busy, and then have the database for
//! themselves for a moment. The seat of an open block stands *aside* while its client thinks: a
//! change of the catalog waits for it only if the block has used a table that it changes.

mod alter;
mod answer;
mod backup;
mod blocks;
mod call;
pub mod canary;
mod catalog;
mod change;
mod channels;
mod checkpoint;
mod comments;
mod completion;
mod definition;
mod delivery;
mod driver;
mod durability;
mod engine;
mod enums;
mod errors;
mod extensions;
mod gate;
mod history;
mod idempotency;
mod inbox;
mod journal;
mod keeper;
mod loader;
mod locks;
mod lookups;
mod loss;
mod memberships;
mod memory;
mod metrics;
mod numbers;
mod open_sessions;
mod options;
mod records;
mod replay;
mod restore;
mod roles;
mod schemas;
mod seat;
mod sequences;
mod session;
mod shared;
mod slots;
mod statement;
mod still;
mod submit;
mod temporary;
mod text_form;
mod transaction;
mod values;
mod views;
mod within_block;
mod written;

pub use alter::{NewColumn, NewRows};
pub use call::{Call, IdempotencyKey, Refused, Reply, Rows, Statement, SubmitError};
pub use catalog::{Catalog, CurrentCatalog, IndexUse, Procedure, RowPrograms};
pub use change::CatalogChange;
pub use channels::{Listening, Mailbox, Notification};
pub use checkpoint::CheckpointReport;
pub use comments::{Commented, Comments};
pub use completion::{Completion, Completions, Ticket};
pub use definition::Definition;
pub use driver::{Answer, Asked, Caller, Driver, ProcedureHandle, Request};
pub use durability::ReadOnly;
pub use engine::Engine;
pub use journal::Observed;
pub use loader::{LoadReport, Loader};
pub use locks::{LOCK_WAITERS_MAX, ListedLock, LockMode, LockTarget, RowLocks};
pub use lookups::Lookups;
pub use memory::{EpochHolder, IndexMemory, RetiredMemory, SeatUser, TableMemory};
pub use metrics::{CheckpointMetrics, LogMetrics, Metrics, OpenBlock, TableMetrics};
pub use numbers::{FIRST_NUMBER, NumberedObject, ObjectNumbers};
pub use open_sessions::{ListedSession, OpenSessions, Signal, Signaller};
pub use options::{BasisFactors, DesignFactors, Logging, Options};
pub use replay::{CallReplay, LoggedCall};
pub use restore::Restoration;
pub use roles::{
    Access, FIRST_ROLE, Object, ObjectKind, PUBLIC, Privilege, Privileges, Role, Roles,
};
pub use schemas::SearchPath;
pub use session::{CancelHandle, Ended, LockScope, Replays, SLEEPERS_MAX, Savepoint, Session};
pub use statement::{CatalogStatement, Source, TableSplit};
pub use temporary::OnCommit;
pub use transaction::{Row, ScanRange, Transaction};
pub use values::IntoValues;
pub use views::{CheckOption, View, ViewRead};
pub use within_block::writes_permanent_rows;
pub use written::WrittenCatalog;

pub use kiln_durability::log::{Histogram as LogHistogram, Log, Statistics as LogStatistics};
pub use kiln_history::History;
pub use kiln_procedure::{AbortCause, Arguments, Frame, Program, ProgramBuilder};
pub use kiln_protocols::batches::{
    Chosen as BatchChoices, Clusters as BatchClusters, Explained as ExplainedBatch,
    ExplainedTransaction,
};
pub use kiln_protocols::factors;
pub use kiln_protocols::{Configuration, Counted, Outcome, Protocol, ProtocolOption, Statistics};
pub use kiln_storage::journal::{CallAnswer, Change, ChangeKind, Commit, Listener, Listeners};
pub use kiln_storage::log_epoch::{LogEpoch, LogEpochs};
