//! The database as users know it: SQL on top of the engine.
//!
//! | module | holds |
//! |---|---|
//! | `session`, `session_settings` | statements one after the other |
//! | `held`, `names` | what a session holds |
//! | `block`, `savepoints`, `constraints` | transaction blocks |
//! | `prepared`, `portal`, `values` | statements in stages: parse, describe, bind, execute, fetch |
//! | `transaction` | SQL within transactions that are Rust closures |
//! | `maintenance` | DISCARD, VACUUM, REINDEX, CLUSTER |
//! | `define` | statements that define, each to what runs it |
//! | `alter`, `enums`, `composites`, `domains`, `schemas`, `roles`, `extensions`, `comments` and others | what runs them |
//! | `tables`, `functions`, `sequences`, `views`, `triggers`, `indexes` | what runs those of tables and routines, and what these have |
//! | `types`, `dependents`, `follow`, `objects` | what depends on objects, how rows follow a table that changes, what statements say of objects |
//! | `definition` | a statement that defines, on its way into the catalog |
//! | `design` | the physical design that procedures' uses of indexes derive |
//! | `splits` | the split columns, from procedures and their calls |
//! | `statement`, `call`, `cache` | statements on data and calls, compiled and kept |
//! | `rows` | programs for rows that Rust code writes |
//! | `rebuild` | catalogs that were written down |
//! | `recovery` | a data directory becomes the database again |
//! | `settings` | SET and SHOW |
//! | `routine` | routines compiled for the catalog |
//! | `result`, `print` | results, and how psql prints them |
//! | `explain` | explanations |
//! | `panics` | panics of the compiler as errors |

mod alter;
mod backup;
mod block;
mod call;
mod comments;
mod composites;
mod constraints;
mod copy;
mod create_as;
mod define;
mod definition;
mod dependents;
mod design;
mod domains;
mod enums;
mod explain;
mod extensions;
mod follow;
mod functions;
mod held;
mod indexes;
mod like;
mod listening;
mod locks;
mod maintenance;
mod materialized;
mod named;
mod names;
mod objects;
mod ownership;
pub(crate) mod panics;
mod plan_cache;
mod portal;
mod prepared;
mod print;
mod rebuild;
mod recovery;
mod result;
mod role_settings;
mod roles;
mod routine;
mod rows;
mod savepoints;
mod schemas;
pub mod secret;
mod sequences;
mod session;
mod session_settings;
mod sessions;
mod settings;
mod splits;
mod statement;
mod stepped;
mod submission;
mod tables;
mod temporary;
mod transaction;
mod triggers;
mod types;
mod values;
mod views;

#[cfg(test)]
mod tests;

use std::time::Duration;

use kiln_engine::{
    Call, Completions, Engine, FIRST_ROLE, IntoValues, Metrics, Options, Refused, Reply,
    SubmitError, Ticket,
};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_storage::error::{Error, Result, SqlState};

pub use copy::Copying;
pub use portal::{Portal, Portion};
pub use prepared::{Column, Statement, StatementKind};
pub use recovery::{Recovery, RecoveryProgress, RecoveryStage};
pub use result::{Notice, ResultSet, StatementResult};
pub use session::Session;
pub use transaction::Transaction;
pub use values::parameter_value;

pub use crate::catalog::is_auxiliary;
use crate::server;
use plan_cache::PlanCache;
pub use plan_cache::StatementsKept;

/// Sessions that are kept for the next statement outside of one.
const IDLE_SESSIONS_MAX: usize = 4;

struct Shared {
    engine: Engine,
    idle: Mutex<Vec<Session>>,
    statements: Arc<PlanCache>,
    /// What was read from the data directory, if there is one.
    recovery: Option<Recovery>,
}

/// A main-memory SQL database. A handle is cheap to clone; the last one to go closes it.
///
/// ```
/// use kiln_sql::{Database, Options};
/// # fn main() -> kiln_storage::error::Result<()> {
/// let database = Database::open(Options::new().workers(1))?;
/// database.execute(
///     "CREATE TABLE account (id INTEGER PRIMARY KEY, balance NUMERIC(12, 2) NOT NULL);
///      INSERT INTO account VALUES (1, 100), (2, 50);",
/// )?;
/// let rows = database.query("SELECT id FROM account WHERE balance > $1 ORDER BY id", (60_i32,))?;
/// assert_eq!(rows.into_rows::<(i32,)>()?, [(1,)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

impl Database {
    /// Opens a database: an empty one that ends with the process, or with [`Options::data_dir`] the
    /// one that is kept there.
    ///
    /// ```
    /// # use kiln_platform::disk::TemporaryDirectory;
    /// use kiln_sql::{Database, Options};
    /// # fn main() -> kiln_storage::error::Result<()> {
    /// # let temporary = TemporaryDirectory::new("kiln-example").expect("there is room");
    /// # let directory = temporary.path().join("shop");
    /// let options = Options::new().workers(1).data_dir(Some(directory));
    /// let database = Database::open(options.clone())?;
    /// database.execute("CREATE TABLE seats (id INTEGER PRIMARY KEY, free INTEGER); INSERT INTO seats VALUES (1, 40)")?;
    /// drop(database);
    /// let database = Database::open(options)?;
    /// let free = database.query("SELECT free FROM seats", ())?;
    /// assert_eq!(free.into_one::<(i32,)>()?, (40,));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 22023 for options that make no sense. With a data directory: 55006 when another process has
    /// it open; 55000 for a directory of something else; XX001 when its files are damaged; 0A000
    /// when a newer Kiln has written it; 53100, 58030 and their like for what the disk refuses.
    pub fn open(options: Options) -> Result<Database> {
        Database::open_with_progress(options, |_| {})
    }

    /// [`Database::open`] that tells how far it has come: about ten times a second, from a tenth of
    /// a second on, while it recovers what is in the data directory. The observer runs on this
    /// thread, and the recovery waits for it.
    ///
    /// ```
    /// # use kiln_platform::disk::TemporaryDirectory;
    /// use kiln_sql::{Database, Options};
    /// # fn main() -> kiln_storage::error::Result<()> {
    /// # let temporary = TemporaryDirectory::new("kiln-example").expect("there is room");
    /// # let directory = temporary.path().join("shop");
    /// let options = Options::new().workers(1).data_dir(Some(directory));
    /// let database = Database::open_with_progress(options, |progress| {
    ///     let read = progress.checkpoint_bytes + progress.log_bytes;
    ///     let all = progress.checkpoint_bytes_all + progress.log_bytes_all;
    ///     eprintln!("{read} of {all} bytes, about {:.0} s left", progress.remaining_s);
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn open_with_progress(
        mut options: Options,
        mut observer: impl FnMut(&RecoveryProgress),
    ) -> Result<Database> {
        let Some(path) = options.data_dir.take() else {
            return Database::open_empty(options);
        };
        recovery::open(&options, &path, &mut observer)
    }

    fn open_empty(options: Options) -> Result<Database> {
        // From now on, if this is the first one.
        server::started_us();
        let engine = Engine::open(options)?;
        engine.change_catalog(|change| {
            change.set_row_programs(Arc::new(rows::CheckedRows));
            Ok(())
        })?;
        Ok(Database {
            shared: Arc::new(Shared {
                engine,
                idle: Mutex::default(),
                statements: Arc::default(),
                recovery: None,
            }),
        })
    }

    /// What opening its data directory has read, if it has one.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.shared.recovery.as_ref()
    }

    /// The engine below, for drivers, loaders and the like.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// What the database has counted since it was opened, and how it stands; see
    /// [`Engine::metrics`].
    pub fn metrics(&self) -> Metrics {
        self.engine().metrics()
    }

    /// A session of its own, with transaction blocks, for the first role: a superuser.
    ///
    /// # Errors
    /// 53300 when all sessions are in use, 57P01 when the database is closed.
    pub fn session(&self) -> Result<Session> {
        self.session_as(FIRST_ROLE)
    }

    /// A session of its own for a role, which may do what it was granted. Its password is the
    /// caller's affair.
    ///
    /// # Errors
    /// 42704 when there is no such role, and as [`Database::session`].
    pub fn session_as(&self, role: &str) -> Result<Session> {
        self.engine().catalog().roles().require(role)?;
        let statements = self.shared.statements.clone();
        let session = self.shared.engine.session()?;
        Ok(Session::new(session, statements, role))
    }

    /// Runs the statements of a script up to the first that fails. Each is a transaction of its
    /// own, or a part of the one between BEGIN and COMMIT, which the script must end.
    ///
    /// # Errors
    /// That statement's, with line and column in the script; 25001 when the script ends inside of
    /// a transaction block, which is then rolled back.
    pub fn execute(&self, script: &str) -> Result<Vec<StatementResult>> {
        self.with_session(|session| {
            let results = session.execute(script)?;
            if session.in_transaction() {
                return Err(Error::new(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "the script ended inside of a transaction block, which was rolled back",
                )
                .with_hint("End it with COMMIT, or use a session."));
            }
            Ok(results)
        })
    }

    /// Runs one statement with the values of its parameters `$1`, `$2`, … and returns its rows.
    ///
    /// # Errors
    /// PostgreSQL's, with line and column in the text.
    pub fn query(&self, sql: &str, parameters: impl IntoValues) -> Result<ResultSet> {
        self.with_session(|session| session.query(sql, parameters))
    }

    fn with_session<T>(&self, body: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let idle = lock(&self.shared.idle).pop();
        let mut session = match idle {
            Some(session) => session,
            None => self.session()?,
        };
        session.show(true);
        let result = body(&mut session);
        session.roll_back();
        let mut idle = lock(&self.shared.idle);
        if session.is_fresh() && idle.len() < IDLE_SESSIONS_MAX {
            session.show(false);
            idle.push(session);
        }
        result
    }

    /// Calls a stored procedure or function with values for its input parameters, and waits for
    /// its end. The call never ends "please retry".
    ///
    /// # Errors
    /// 42883 when there is no such procedure or it takes other arguments, 42804 for an argument
    /// that does not convert. What the procedure raises is [`Reply::Rejected`].
    pub fn call(&self, procedure: &str, arguments: impl IntoValues) -> Result<Reply> {
        self.shared.engine.call(procedure, arguments)
    }

    /// Submits a call, which may have a deadline and an idempotency key, without waiting for it.
    ///
    /// # Errors
    /// [`SubmitError::Overloaded`] when too many calls wait; else those of [`Database::call`].
    pub fn submit(&self, call: Call) -> std::result::Result<Ticket, SubmitError> {
        self.shared.engine.submit(call)
    }

    /// Submits a call whose outcome arrives in `completions` under `token`, for a thread that
    /// serves many clients.
    ///
    /// # Errors
    /// The call, with [`SubmitError::Overloaded`] when too many calls wait; else with the errors of
    /// [`Database::call`].
    // The call comes back to be submitted again; boxing it would cost an allocation.
    #[allow(clippy::result_large_err)]
    pub fn submit_to(
        &self,
        call: Call,
        completions: &Arc<Completions>,
        token: u64,
    ) -> std::result::Result<(), Refused> {
        self.shared.engine.submit_to(call, completions, token)
    }

    /// Runs a Rust closure as a transaction: it commits when the closure returns `Ok`, and has no
    /// effects when it returns an error. After a conflict the closure **runs again**.
    ///
    /// # Errors
    /// Those of the closure; 53300 and 57P01 as for [`Database::session`].
    pub fn transaction<T>(
        &self,
        mut body: impl FnMut(&mut Transaction<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let statements = &self.shared.statements;
        self.shared
            .engine
            .transaction(|inner| Transaction::run_in(inner, statements, &mut body))
    }

    /// [`Database::transaction`] that is not started again when `limit` has passed.
    ///
    /// # Errors
    /// As there, and 57014 when the time was not enough.
    pub fn transaction_within<T>(
        &self,
        limit: Duration,
        mut body: impl FnMut(&mut Transaction<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let statements = &self.shared.statements;
        self.shared.engine.transaction_within(limit, |inner| {
            Transaction::run_in(inner, statements, &mut body)
        })
    }

    /// The operations of a stored procedure: what each reads and writes, what feeds it, and
    /// whether its records follow from the arguments; and the indexes that it uses.
    ///
    /// # Errors
    /// 42883.
    pub fn explain(&self, procedure: &str) -> Result<String> {
        let catalog = self.shared.engine.catalog();
        let procedure = catalog.require_procedure(procedure)?;
        Ok(explain::procedure(&catalog, procedure))
    }

    /// The dependencies between a procedure's operations as a graph for Graphviz.
    ///
    /// # Errors
    /// 42883.
    pub fn explain_dot(&self, procedure: &str) -> Result<String> {
        let catalog = self.shared.engine.catalog();
        Ok(explain::dot(
            catalog.require_procedure(procedure)?.program(),
        ))
    }

    /// How the cache of compiled statements is used, which all sessions share.
    pub fn statements_kept(&self) -> StatementsKept {
        self.shared.statements.kept()
    }

    /// Closes the database: what was accepted is finished, nothing new is. Dropping the last
    /// handle does the same.
    pub fn close(&self) {
        lock(&self.shared.idle).clear();
        self.shared.engine.close();
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Database")
            .field(&self.shared.engine)
            .finish()
    }
}
