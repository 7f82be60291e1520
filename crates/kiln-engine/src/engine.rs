//! The engine: a handle of a database, and its threads. What can be done with it is said by each of
//! the modules that have a part of [`Engine`].

use kiln_durability::DataDirectory;
use kiln_durability::log::Log;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, JoinHandle};
use kiln_protocols::Configuration;
use kiln_protocols::batches::{Chosen as BatchChoices, Explained as ExplainedBatch};
use kiln_storage::epoch::Epochs;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::table::Table;

use crate::calls::ProcedureHandle;
use crate::catalog::{Catalog, WrittenCatalog};
use crate::kernel::{EngineInner, ReadOnly, check_order};
use crate::locks::ListedLock;
use crate::open_sessions::{ListedSession, OpenSessions};
use crate::options::Options;

/// The threads; closes the database when the last handle goes.
struct Owner {
    inner: Arc<EngineInner>,
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
    /// The engine whose threads are those that [`Engine::start`] starts.
    pub(crate) fn of(inner: Arc<EngineInner>) -> Engine {
        let threads = Mutex::default();
        Engine {
            owner: Arc::new(Owner { inner, threads }),
        }
    }

    /// Starts one of the engine's threads, which ends when the database is closed.
    ///
    /// # Errors
    /// 53000 when the system grants no more threads.
    pub(crate) fn start(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = thread::spawn(name, body).map_err(|error| {
            let message = format!("the system starts no further thread: {error}");
            Error::new(SqlState::INSUFFICIENT_RESOURCES, message)
        })?;
        lock(&self.owner.threads).push(thread);
        Ok(())
    }

    pub(crate) fn inner(&self) -> &Arc<EngineInner> {
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

    /// A handle to the procedure called `name`, for [`Driver::call`](crate::Driver::call).
    ///
    /// # Errors
    /// 42883 when there is none.
    pub fn procedure(&self, name: &str) -> Result<ProcedureHandle> {
        self.catalog().require_procedure(name)?;
        let (number, name) = self.inner().intern(name);
        Ok(ProcedureHandle { number, name })
    }

    /// The present catalog written down, so that it can be rebuilt. The row numbers in it are those
    /// of some moment meanwhile.
    ///
    /// # Errors
    /// As for [`Catalog::written`].
    pub fn written_catalog(&self) -> Result<WrittenCatalog> {
        self.catalog().written()
    }

    /// The epochs, for tests and reports.
    pub fn epochs(&self) -> &Epochs {
        &self.inner().epochs
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

    /// Goes over to another protocol, between transactions. Each worker slot changes its worker
    /// when it starts its next one.
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

    /// How many temporary tables take memory: those of open sessions, and others for a while after
    /// they are gone.
    pub fn temporary_tables(&self) -> usize {
        self.inner().temporary_tables()
    }

    /// Why the database takes no changes any more, if so: the disk has failed it. It stays so until
    /// it is opened again.
    pub fn read_only(&self) -> Option<ReadOnly> {
        let inner = self.inner();
        inner.read_only()
    }

    /// The log, if there is one.
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.inner().log()
    }

    /// The data directory, until the database is closed.
    pub fn data_directory(&self) -> Option<Arc<DataDirectory>> {
        lock(&self.inner().data_directory).clone()
    }

    /// Waits until all is on disk that was observed in log epochs up to this one; at once without a
    /// log. For callers of a [`Driver`](crate::Driver), whose outcomes do not wait.
    ///
    /// # Errors
    /// 53100 and 58030 when it will not be.
    pub fn await_durable(&self, observed: LogEpoch) -> Result<()> {
        self.inner().await_durable(observed)
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
