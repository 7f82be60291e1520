//! What the kernel asks of the log: that outcomes wait for it, and that it takes changes.

use std::fmt;

use kiln_durability::log::Log;
use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_protocols::Configuration;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::log_epoch::LogEpoch;

use super::inner::EngineInner;
use crate::catalog::Catalog;
use crate::errors::{in_doubt, read_only};
use crate::observed::Observed;

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

impl EngineInner {
    /// Why the database takes no changes any more, if so.
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

    /// As [`EngineInner::await_durable`]: the outcome when it may be told.
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
}

/// Checks that commits have an order in which listeners can hear of them.
///
/// # Errors
/// 22023.
pub(crate) fn check_order(configuration: Configuration) -> Result<()> {
    if configuration.protocol.is_serializable() {
        return Ok(());
    }
    let message = format!(
        "{configuration} does not isolate transactions, so that there is no order in which a log or \
         another listener could hear of them"
    );
    Err(
        Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(
            "Choose a serializable protocol, or a database without data directory and listeners.",
        ),
    )
}
