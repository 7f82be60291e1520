//! Attaching the log that keeps what is committed.

use kiln_durability::log::{Log, LogOptions, Position};
use kiln_durability::{DataDirectory, disk_error};
use kiln_platform::disk::Directory;
use kiln_platform::sync::{Arc, Weak, lock};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::Journal;
use kiln_storage::sequence::{SequenceId, SequenceLog, SequenceState};
use kiln_storage::table::WORKERS_MAX;

use super::checkpointer;
use crate::engine::Engine;
use crate::errors;
use crate::kernel::check_order;
use crate::options::Logging;

impl Engine {
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
        let shared = inner.clone();
        self.start("kiln-checkpoint", move || checkpointer::keep(&shared))
    }
}

/// Keeps how far sequences have got in the log. A sequence may outlive that.
struct LogOfSequences(Weak<Log>);

impl SequenceLog for LogOfSequences {
    fn keep(&self, sequence: SequenceId, state: SequenceState) -> Result<()> {
        let log = self.0.upgrade().ok_or_else(errors::closing)?;
        if log.refuses() {
            return Err(errors::read_only(&log));
        }
        log.append_sequence(sequence, state);
        Ok(())
    }
}
