//! Durability: a log that keeps what is committed, and the acknowledgement that waits for it.
//!
//! Every answer that leaves the database waits until all is on disk that its transaction has
//! observed ([`Shared::await_durable`]): results, rejections and reads alike. Tickets and queues of
//! completions hold outcomes back; sessions, closures, loaders and changes of the catalog wait in
//! the thread of their caller.

use std::fmt;

use kiln_durability::log::{Log, LogOptions, Position};
use kiln_durability::{DataDirectory, disk_error};
use kiln_platform::disk::Directory;
use kiln_platform::sync::{Arc, Weak, lock};
use kiln_procedure::Program;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::Journal;
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::sequence::{SequenceId, SequenceLog, SequenceState};
use kiln_storage::table::WORKERS_MAX;

use crate::catalog::Catalog;
use crate::change::CatalogChange;
use crate::engine::Engine;
use crate::errors;
use crate::journal::{Observed, check_order};
use crate::options::Logging;
use crate::shared::Shared;

/// Why a database takes no changes any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOnly {
    /// 58030 when a write of the log has failed; 53100 when the log has no room to go on.
    pub reason: Error,
    /// The tables with changes that may be lost: transactions that use one are refused. Empty while
    /// all that was committed is on disk, or will be.
    pub lost_tables: Vec<String>,
}

/// One line.
impl fmt::Display for ReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "read-only: {} (SQLSTATE {})",
            self.reason.message(),
            self.reason.state()
        )?;
        match self.lost_tables.as_slice() {
            [] => Ok(()),
            tables => write!(f, "; changes may be lost of {}", tables.join(", ")),
        }
    }
}

impl Engine {
    /// Why the database takes no changes any more, if so: the disk has failed it. It stays so until
    /// it is opened again.
    pub fn read_only(&self) -> Option<ReadOnly> {
        let inner = self.inner();
        inner.read_only()
    }

    /// Logs each commit and each change of the catalog from now on, in the log of `directory` after
    /// `position`, until the database is closed. What is in the tables already is not logged: it is
    /// what a recovery of the same directory has put there.
    ///
    /// # Errors
    /// 22023 under a protocol that is not serializable; 55000 when there is a log or when there are
    /// listeners already; those of [`Log::open`]; 55P03 when running transactions do not end in
    /// time.
    pub fn log_to(
        &self,
        directory: DataDirectory,
        position: Position,
        options: &LogOptions,
    ) -> Result<()> {
        let segments = Directory::open(directory.log().path());
        let segments = segments.map_err(|error| disk_error(&error))?;
        let inner = self.inner();
        let alone = inner.shut_gate()?;
        check_order(inner.common().configuration())?;
        if inner.journal().is_some() {
            let message = "commits of this database have listeners already";
            return Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                message,
            ));
        }
        // No transaction commits on the maintenance's participant: entries that no worker reports
        // get its windows.
        let workers = (WORKERS_MAX, lock(&inner.maintenance).slot());
        let epochs = inner.log_epochs.clone();
        let log = Arc::new(Log::open(segments, position, epochs, workers, options)?);
        let journal = Journal::new(inner.log_epochs.clone(), log.listeners());
        let journal = match inner.options.logging {
            Logging::Values => journal,
            Logging::Commands => journal.with_commands(),
        };
        inner.channels.keep_with(&log);
        if inner.log.set(log).is_err() {
            return Err(Error::internal("a database has two logs"));
        }
        if let Some(log) = inner.log() {
            let log = Arc::downgrade(log);
            inner.sequence_logs.set(Arc::new(LogOfSequences(log)));
        }
        *lock(&inner.data_directory) = Some(Arc::new(directory));
        inner.set_journal(Some(journal));
        alone.announce_change();
        drop(alone);
        self.start_keeper()
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

/// Keeps how far sequences have got in the log. A sequence may outlive that.
struct LogOfSequences(Weak<Log>);

impl SequenceLog for LogOfSequences {
    fn keep(&self, sequence: SequenceId, state: SequenceState) -> Result<()> {
        let log = self.0.upgrade().ok_or_else(errors::closing)?;
        if log.refuses() {
            return Err(read_only(&log));
        }
        log.append_sequence(sequence, state);
        Ok(())
    }
}

impl Shared {
    /// As [`Engine::read_only`].
    pub fn read_only(&self) -> Option<ReadOnly> {
        let log = self.log().filter(|log| log.refuses())?;
        Some(ReadOnly {
            reason: log.refusal()?,
            lost_tables: self.lost_tables(),
        })
    }

    #[inline(always)]
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.log.get()
    }

    /// Waits until all is on disk that was observed in log epochs up to this one.
    ///
    /// # Errors
    /// 53100 and 58030 when it will not be.
    pub fn await_durable(&self, observed: LogEpoch) -> Result<()> {
        match self.log() {
            Some(log) => log.wait(observed).map_err(in_doubt),
            None => Ok(()),
        }
    }

    /// As [`Shared::await_durable`]: the outcome when it may be told.
    pub fn acknowledged<T>(&self, outcome: Observed<T>) -> Observed<T> {
        let Observed { result, epoch } = outcome;
        let result = self.await_durable(epoch).and(result);
        Observed { result, epoch }
    }

    /// Checks that a program may run: one that changes something needs a log that takes it.
    ///
    /// # Errors
    /// 53100 and 58030.
    #[inline(always)]
    pub fn check_log(&self, program: &Program) -> Result<()> {
        match self.log() {
            Some(log)
                if log.refuses()
                    && (!program.analysis.is_read_only() || program.analysis.advances()) =>
            {
                Err(read_only(log))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the log takes changes.
    ///
    /// # Errors
    /// 53100 and 58030.
    pub fn check_log_takes_changes(&self) -> Result<()> {
        match self.log() {
            Some(log) if log.refuses() => Err(read_only(log)),
            _ => Ok(()),
        }
    }

    /// Logs the statement that has made this catalog; no transaction runs. Returns the log epoch to
    /// wait for.
    pub fn log_statement(&self, catalog: &Catalog) -> LogEpoch {
        match (self.log(), catalog.statement()) {
            (Some(log), Some(statement)) => log.append_statement(&statement.to_string()),
            _ => LogEpoch::default(),
        }
    }

    /// Checks that a change of the catalog can be logged.
    ///
    /// # Errors
    /// 55000 for one that no statement makes.
    pub fn check_logged(&self, change: &CatalogChange<'_>) -> Result<()> {
        if self.log().is_some() && !change.is_statement() {
            let message = "a database with a log can only be changed by statements";
            let error = Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
            return Err(error.with_hint("Use CREATE, ALTER and DROP in place of Rust code."));
        }
        Ok(())
    }
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
