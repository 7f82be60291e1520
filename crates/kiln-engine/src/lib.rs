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
//! | module | holds, and takes from those above it |
//! |---|---|
//! | `errors`, `options`, `values`, `wait`, `observed` | what all others use |
//! | `roles`, `memberships`, `locks`, `channels`, `open_sessions` | what sessions ask of each other |
//! | `catalog` | the objects of a database, and their form as text |
//! | `calls` | calls, their queues, and how outcomes get back |
//! | `kernel` | the gate, worker slots, worker slots, and what all doors share |
//! | `engine` | the handle of a database |
//! | `change` | changes of the catalog |
//! | `session`, `closure`, `driver`, `loader`, `inbox` | the doors |
//! | `durability` | the log, checkpoints, backups, recovery |
//! | `journal`, `history`, `memory`, `metrics` | listeners and reports |
//! | `open` | opening an engine |
//!
//! A thread that runs transactions owns a *worker slot*: a worker of the present protocol and a
//! flag that says whether a transaction runs on it. A session is no worker: it takes a worker slot
//! from a pool for the time of a statement or of an open block. Changes of the catalog and of the
//! protocol shut the *gate*: they wait until no worker slot is busy, and then have the database for
//! themselves for a moment. The worker slot of an open block stands *aside* while its client
//! thinks: a change of the catalog waits for it only if the block has used a table that it changes.

mod calls;
pub mod canary;
mod catalog;
mod change;
mod channels;
mod closure;
mod driver;
mod durability;
mod engine;
mod errors;
mod history;
mod inbox;
mod journal;
mod kernel;
mod loader;
mod locks;
mod memberships;
mod memory;
mod metrics;
mod observed;
mod open;
mod open_sessions;
mod options;
mod roles;
mod session;
mod values;
mod wait;

pub use calls::{
    Call, Completion, Completions, IdempotencyKey, ProcedureHandle, Refused, Reply, Rows,
    Statement, SubmitError, Ticket,
};
pub use catalog::{
    Catalog, CatalogStatement, CheckOption, Commented, Comments, CurrentCatalog, Domain,
    FIRST_NUMBER, IndexUse, Lookups, NumberedObject, ObjectNumbers, OnCommit, Procedure,
    RowPrograms, SearchPath, Source, TableSplit, View, ViewRead, ViewRows, WrittenCatalog,
};
pub use change::{CatalogChange, Definition, NewColumn, NewRows, writes_permanent_rows};
pub use channels::{Listening, Mailbox, Notification};
pub use closure::{Row, ScanRange, Transaction};
pub use driver::{Answer, Asked, Caller, Driver, Request};
pub use durability::{CallReplay, Restoration};
pub use engine::Engine;
pub use kernel::{CheckpointMetrics, CheckpointReport, LoggedCall, ReadOnly, Replays, SlotUser};
pub use loader::{LoadReport, Loader};
pub use locks::{LOCK_WAITERS_MAX, ListedLock, LockMode, LockTarget, RowLocks};
pub use memory::{EpochHolder, IndexMemory, RetiredMemory, TableMemory};
pub use metrics::{LogMetrics, Metrics, OpenBlock, TableMetrics};
pub use observed::Observed;
pub use open_sessions::{ListedSession, OpenSessions, Signal, Signaller};
pub use options::{BasisFactors, DesignFactors, Logging, Options};
pub use roles::{
    Access, FIRST_ROLE, Object, ObjectKind, PUBLIC, Privilege, Privileges, Role, RoleSettings,
    Roles,
};
pub use session::{CancelHandle, Ended, LockScope, SLEEPERS_MAX, Savepoint, Session};
pub use values::IntoValues;

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
