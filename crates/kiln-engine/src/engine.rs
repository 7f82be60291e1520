//! The engine: everything together.

use std::time::Duration;

use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, JoinHandle};
use kiln_protocols::Configuration;
use kiln_protocols::batches::{Chosen as BatchChoices, Explained as ExplainedBatch};
use kiln_storage::epoch::Epochs;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::Value;

use crate::catalog::Catalog;
use crate::change::CatalogChange;
use crate::channels::Outgoing;
use crate::completion::deadline_after;
use crate::delivery;
use crate::driver::{Driver, ProcedureHandle};
use crate::errors;
use crate::gate::{Beside, CLOSING};
use crate::journal::{Observed, check_order};
use crate::keeper;
use crate::loader::{LoadReport, Loader};
use crate::locks::ListedLock;
use crate::memory::{RetiredMemory, SeatUser, TableMemory};
use crate::open_sessions::{ListedSession, OpenSessions};
use crate::options::{Options, RESERVED};
use crate::seat::Seat;
use crate::session::{Replays, Session};
use crate::shared::Shared;
use crate::transaction::Transaction;

#[cold]
fn no_thread(error: std::io::Error) -> Error {
    let message = format!("the system starts no further thread: {error}");
    Error::new(SqlState::INSUFFICIENT_RESOURCES, message)
}

/// The threads; closes the database when the last handle goes.
struct Owner {
    inner: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Owner {
    fn close(&self) {
        self.inner.begin_end();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            thread.thread().unpark();
            // A worker may drop the last handle itself; it cannot wait for itself.
            if thread.thread().id() != thread::current().id() {
                // A panicked worker has told those who waited for it already.
                let _ = thread.join();
            }
        }
        self.inner.finish_end();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.close();
    }
}

/// A database without SQL: tables, compiled procedures, workers. A handle is cheap to clone; the
/// last one to go closes the database.
#[derive(Clone)]
pub struct Engine {
    owner: Arc<Owner>,
}

impl Engine {
    /// Opens an empty database and starts its threads.
    ///
    /// # Errors
    /// 22023 for options that make no sense, for a data directory, and for a protocol that they do
    /// not allow, 53000 when the system grants no more threads.
    pub fn open(options: Options) -> Result<Engine> {
        options.validate()?;
        if options.data_dir.is_some() {
            let message = "an engine by itself keeps no data directory";
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint("Open a Database with it, or leave data_dir out."));
        }
        if options.reserve_bytes > 0 {
            kiln_platform::memory::reserve(options.reserve_bytes).map_err(|error| {
                let bytes = options.reserve_bytes;
                let message = format!("cannot set {bytes} bytes of memory aside: {error}");
                Error::new(SqlState::OUT_OF_MEMORY, message)
                    .with_hint("Lower reserve_bytes, or leave it at 0.")
            })?;
        }
        let inner = Arc::new(Shared::new(options));
        let address = Arc::as_ptr(&inner).addr();
        kiln_platform::memory::name_range(address, size_of::<Shared>(), || "engine".to_owned());
        inner.gate.name_memory();
        let owner = Arc::new(Owner {
            inner: inner.clone(),
            threads: Mutex::default(),
        });
        // From here on an error drops the owner, which ends the threads started so far.
        let ticker = inner.clone();
        let thread = thread::spawn("kiln-epochs", move || ticker.tick()).map_err(no_thread)?;
        lock(&owner.threads).push(thread);
        for position in 0..inner.options.workers {
            let seat = Seat::new(&inner, SeatUser::Worker(position))
                .expect("the options leave seats for all workers");
            let shared = inner.clone();
            let body = move || {
                if shared.options.pin_workers {
                    thread::pin_to_core(position);
                }
                delivery::work(&shared.inboxes, position, seat);
            };
            let thread = thread::spawn(&format!("kiln-{position}"), body).map_err(no_thread)?;
            lock(&owner.threads).push(thread);
        }
        Ok(Engine { owner })
    }

    /// Starts the thread that writes checkpoints.
    pub(crate) fn start_keeper(&self) -> Result<()> {
        let inner = self.inner().clone();
        let thread = thread::spawn("kiln-keeper", move || keeper::keep(&inner));
        lock(&self.owner.threads).push(thread.map_err(no_thread)?);
        Ok(())
    }

    pub(crate) fn inner(&self) -> &Arc<Shared> {
        &self.owner.inner
    }

    /// Closes the database: no new calls and transactions are accepted (57P01), the calls that
    /// were accepted are finished, the engine's threads end. Sessions with an open transaction
    /// can only roll it back. Called by dropping the last handle, too.
    pub fn close(&self) {
        self.owner.close();
    }

    /// The settings it was opened with; the protocol may have changed since.
    pub fn options(&self) -> &Options {
        &self.inner().options
    }

    /// The catalog as it is now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner().catalog()
    }

    /// The table called `name`.
    ///
    /// # Errors
    /// 42P01.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.catalog().require_table(name).cloned()
    }

    /// The epochs, for tests and reports.
    pub fn epochs(&self) -> &Epochs {
        &self.inner().epochs
    }

    /// Changes the catalog. `change` runs while no transaction does; what it changed comes into
    /// force when it returns `Ok`, all at once, and not at all when it returns an error.
    ///
    /// Open blocks of sessions that wait for their clients stand aside, unless they have used a
    /// table that the change replaces or removes: then `change` runs **again** when these blocks
    /// are over, and its first result is forgotten. All others go on until then. Under `tictoc+ts`
    /// and `mvcc+ts` a change of the columns that a table keeps apart waits for every open block.
    ///
    /// Procedures that use a changed table ([`CatalogChange::stale_procedures`]) must be compiled
    /// again in the same change. Programs that others hold and that use one are refused with
    /// 55000 from then on, and blocks that began before and come to use one with 40001.
    ///
    /// # Errors
    /// Those of `change`; 55P03 when transactions that are in the way do not end within
    /// [`Options::ddl_wait_ms`], for instance because the caller has one open itself; 2BP01 when
    /// a procedure still uses a changed table; 57P01 when the database is closed.
    pub fn change_catalog<T>(
        &self,
        mut change: impl FnMut(&mut CatalogChange<'_>) -> Result<T>,
    ) -> Result<T> {
        let inner = self.inner();
        if inner.gate.state() & CLOSING != 0 {
            return Err(errors::closing());
        }
        inner.check_log_takes_changes()?;
        let deadline_ns = inner.change_deadline();
        // Tables whose blocks it waits for; barred until the change is over.
        let mut bars = Vec::new();
        let mut beside = Beside::Blocks;
        loop {
            let alone = inner.shut_gate_for_change(beside, deadline_ns)?;
            let mut catalog_change = CatalogChange::new(inner, inner.catalog());
            let result = change(&mut catalog_change);
            if !catalog_change.awaited().is_empty() {
                let bar = inner.blocks.bar(catalog_change.awaited().to_vec());
                drop(alone);
                if !bar.wait(None, deadline_ns) {
                    return Err(result.err().unwrap_or_else(|| catalog_change.in_use()));
                }
                bars.push(bar);
                continue;
            }
            let result = result?;
            let waits_for_all = catalog_change.splits_tables() && inner.common().orders_columns();
            if waits_for_all && beside == Beside::Blocks && !inner.gate.is_empty() {
                beside = Beside::Nothing;
                continue;
            }
            inner.check_logged(&catalog_change)?;
            let (catalog, replaced) = catalog_change.complete()?;
            let logged = inner.log_statement(&catalog);
            inner.put_in_force(&alone, catalog, replaced, logged);
            inner.await_durable(logged)?;
            inner.forget_change(logged);
            return Ok(result);
        }
    }

    /// Whether a change of the catalog waits for blocks that use the table called `name`.
    pub fn is_awaited(&self, name: &str) -> bool {
        let catalog = self.catalog();
        let id = catalog.table(name).map(|table| table.id());
        id.is_some_and(|id| self.inner().blocks.is_barred(id))
    }

    /// What sessions have locked by name, and what they wait for
    /// ([`Session::lock`](crate::Session::lock)).
    pub fn locks(&self) -> Vec<ListedLock> {
        self.inner().locks.listed()
    }

    /// The sessions that are shown to others, by number.
    pub fn sessions(&self) -> Vec<ListedSession> {
        self.inner().listed_sessions()
    }

    /// What sessions that are open may ask of each other.
    pub fn open_sessions(&self) -> &OpenSessions {
        &self.inner().open_sessions
    }

    /// How full the mailbox is of the session that listens and has most to take, from 0 to 1; that
    /// of one that is full is ended.
    pub fn notification_usage(&self) -> f64 {
        self.inner().channels.usage()
    }

    /// The protocol in force, with its options.
    pub fn protocol(&self) -> Configuration {
        self.inner().common().configuration()
    }

    /// Goes over to another protocol, between transactions. Each seat changes its worker when it
    /// starts its next one.
    ///
    /// # Errors
    /// 55P03 when running transactions do not end within [`Options::ddl_wait_ms`]; 22023 when the
    /// protocol does not have the database's basis factors, is not serializable while listeners
    /// hear of commits ([`Engine::attach_listeners`]), or serializes nothing and
    /// [`Options::allow_unserializable`] is not set.
    pub fn set_protocol(&self, protocol: impl Into<Configuration>) -> Result<()> {
        let protocol = protocol.into();
        self.inner().options.validate_protocol(protocol)?;
        let alone = self.inner().shut_gate()?;
        if self.inner().journal().is_some() {
            check_order(protocol)?;
        }
        self.inner().set_protocol(protocol);
        alone.announce_change();
        Ok(())
    }

    /// Asks for a batch of calls to be explained, where the protocol in force batches them
    /// ([`Protocol::explains_batches`](crate::Protocol::explains_batches));
    /// [`Engine::explained_batch`] has it later.
    pub fn explain_batch(&self) {
        self.inner().common().explain_batch();
    }

    /// What became of the batch that [`Engine::explain_batch`] asked for, if there was one since.
    pub fn explained_batch(&self) -> Option<ExplainedBatch> {
        self.inner().common().explained_batch()
    }

    /// What the next batch of calls is analysed with, where the protocol in force batches them.
    pub fn batches_chosen(&self) -> Option<BatchChoices> {
        self.inner().common().batches_chosen()
    }

    /// A handle to the procedure called `name`, for [`Driver::call`].
    ///
    /// # Errors
    /// 42883 when there is none.
    pub fn procedure(&self, name: &str) -> Result<ProcedureHandle> {
        self.catalog().require_procedure(name)?;
        let (number, name) = self.inner().intern(name);
        Ok(ProcedureHandle { number, name })
    }

    /// A driver for the calling thread; `position` is what it says of itself.
    ///
    /// # Errors
    /// 53300 when all seats are taken.
    pub fn driver(&self, position: usize) -> Result<Driver> {
        let seat = Seat::new(self.inner(), SeatUser::Driver(position));
        seat.map(|seat| Driver::new(seat, position))
            .ok_or_else(|| errors::no_seat(WORKERS_MAX - RESERVED))
    }

    /// Runs `body` on each of `threads` threads, each with a driver of its own and, as the
    /// workers, pinned to a core, and returns what they returned, by position.
    ///
    /// # Errors
    /// 22023 for no thread at all, 53300 when there are not as many seats.
    ///
    /// # Panics
    /// When `body` does.
    pub fn drive<T: Send>(
        &self,
        threads: usize,
        body: impl Fn(&mut Driver) -> T + Sync,
    ) -> Result<Vec<T>> {
        if threads == 0 {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "at least one thread is needed to drive a database, not 0",
            ));
        }
        let drivers: Result<Vec<Driver>> = (0..threads).map(|at| self.driver(at)).collect();
        let (drivers, body, pin) = (drivers?, &body, self.options().pin_workers);
        Ok(thread::scope(|scope| {
            let handles: Vec<_> = drivers
                .into_iter()
                .map(|mut driver| {
                    scope.spawn(move || {
                        if pin {
                            thread::pin_to_core(driver.position());
                        }
                        body(&mut driver)
                    })
                })
                .collect();
            let joined = handles.into_iter().map(|handle| handle.join());
            joined
                .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        }))
    }

    /// A session for the calling thread.
    ///
    /// # Errors
    /// 53300 when [`Options::sessions_max`] sessions are open, 57P01 when the database is closed.
    pub fn session(&self) -> Result<Session> {
        Session::open(self.clone())
    }

    /// How often blocks of sessions were replayed after conflicts.
    pub fn replays(&self) -> Replays {
        self.inner().replays.read()
    }

    /// How many temporary tables take memory: those of open sessions, and others for a while after
    /// they are gone.
    pub fn temporary_tables(&self) -> usize {
        self.inner().temporary_tables()
    }

    /// The number of open sessions.
    pub fn sessions_open(&self) -> usize {
        self.inner().sessions_open()
    }

    /// Runs a Rust closure as a transaction: it commits when the closure returns `Ok`, and has
    /// no effects when it returns an error.
    ///
    /// After a conflict the closure **runs again**, from the start, as often as it takes: it
    /// should have no effects but through the transaction. What it reads may be out of date until
    /// the transaction commits; it must not loop until it reads a certain value.
    ///
    /// # Errors
    /// Those of the closure; 53300 and 57P01 as for [`Engine::session`].
    pub fn transaction<T>(&self, body: impl FnMut(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        self.run_transaction(None, body).result
    }

    /// [`Engine::transaction`] that is not started again when `limit` has passed.
    ///
    /// # Errors
    /// Those of [`Engine::transaction`], and 57014 when the limit has passed.
    pub fn transaction_within<T>(
        &self,
        limit: Duration,
        body: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.run_transaction(Some(deadline_after(limit)), body)
            .result
    }

    /// [`Engine::transaction`], or [`Engine::transaction_within`] a limit, and what the transaction
    /// has observed.
    pub fn transaction_observed<T>(
        &self,
        limit: Option<Duration>,
        body: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Observed<T> {
        self.run_transaction(limit.map(deadline_after), body)
    }

    fn run_transaction<T>(
        &self,
        deadline_ns: Option<u64>,
        body: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Observed<T> {
        let seat = self
            .inner()
            .slots
            .take(self.inner(), SeatUser::Closure, deadline_ns, None);
        let mut sent = Outgoing::default();
        let outcome = match seat {
            Ok(mut seat) => Transaction::run_to_end(&mut seat, deadline_ns, &mut sent, body),
            Err(error) => Observed::nothing(error),
        };
        let outcome = self.inner().acknowledged(outcome);
        if outcome.result.is_ok() {
            let rests_on = (outcome.epoch, true);
            self.inner().channels.announce(0, sent, rests_on);
        }
        outcome
    }

    /// A loader of rows into the table called `table`, with values for these columns.
    ///
    /// # Errors
    /// 42P01, 42703, 42701; 53300 and 57P01 as for [`Engine::session`].
    pub fn loader(&self, table: &str, columns: &[&str]) -> Result<Loader> {
        let table = self.table(table)?;
        let seat = self
            .inner()
            .slots
            .take(self.inner(), SeatUser::Closure, None, None)?;
        Loader::new(self.clone(), seat, table, columns)
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

    /// The memory that transactions have retired and that is not free yet, and the participants
    /// that keep it from being freed. A moment's figure, at any time: transactions go on meanwhile.
    pub fn retired_memory(&self) -> RetiredMemory {
        let inner = self.inner();
        RetiredMemory::of(&inner.epochs, &inner.users)
    }

    /// The memory of all tables, by name. Transactions go on meanwhile, so that figures may differ
    /// by what they change.
    pub fn memory(&self) -> Vec<TableMemory> {
        let catalog = self.catalog();
        let tables = catalog.tables();
        tables.map(|(_, table)| TableMemory::of(table)).collect()
    }

    /// The bytes that the values of all rows take, as if each were stored alone, and by table: for
    /// measurements. No transaction runs meanwhile, however long that takes; [`Engine::memory`]
    /// delays no transaction.
    ///
    /// # Errors
    /// 55P03 when running transactions do not end within [`Options::ddl_wait_ms`].
    pub fn raw_bytes(&self) -> Result<Vec<(String, usize)>> {
        let _alone = self.inner().shut_gate()?;
        let catalog = self.catalog();
        let bytes = |(name, table): (&str, &Arc<Table>)| (name.to_owned(), table.raw_bytes());
        Ok(catalog.tables().map(bytes).collect())
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("protocol", &self.protocol())
            .field("workers", &self.options().workers)
            .field("catalog_version", &self.catalog().version())
            .finish()
    }
}
