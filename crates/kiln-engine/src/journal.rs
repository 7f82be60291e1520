//! Listeners, which hear what each transaction wrote, and the log epochs that order the reports.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::{Journal, Listeners};
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};

use crate::engine::Engine;
use crate::kernel::check_order;

impl Engine {
    /// The log epochs of all that is committed. [`LogEpochs::current`], read after a transaction
    /// has ended, is an upper bound of what it has observed.
    pub fn log_epochs(&self) -> &LogEpochs {
        &self.inner().log_epochs
    }

    /// Has `listeners` hear of each commit, from the log epoch returned on: of all transactions,
    /// those of the loader included. Who listened so far does not any more.
    ///
    /// What is in the tables already is not told, and neither are changes of the catalog, TRUNCATE
    /// among them: they happen while no transaction runs, so that the state of the tables at the
    /// end of a log epoch can be taken instead. With TRUNCATE and indexes that are built no rows
    /// are told; what is loaded is.
    ///
    /// # Errors
    /// 22023 under a protocol that is not serializable; 55000 when there is a [log](Engine::log);
    /// 55P03 when running transactions do not end within
    /// [`Options::ddl_wait_ms`](crate::Options::ddl_wait_ms).
    pub fn attach_listeners(&self, listeners: Arc<dyn Listeners>) -> Result<LogEpoch> {
        self.exchange_journal(Some(listeners))
    }

    /// Detaches the listeners: none hears of later commits. Each worker drops its listener when it
    /// notices.
    ///
    /// # Errors
    /// 55P03 as for [`Engine::attach_listeners`].
    pub fn detach_listeners(&self) -> Result<()> {
        self.exchange_journal(None).map(|_| ())
    }

    fn exchange_journal(&self, listeners: Option<Arc<dyn Listeners>>) -> Result<LogEpoch> {
        let inner = self.inner();
        let alone = inner.shut_gate()?;
        if inner.log().is_some() {
            let message = "the log listens to the commits of this database";
            return Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                message,
            ));
        }
        let journal = listeners.map(|it| Journal::new(inner.log_epochs.clone(), it));
        if journal.is_some() {
            check_order(inner.common().configuration())?;
        }
        inner.set_journal(journal);
        // No listener noted earlier deletions; what is inserted from now on is of a later epoch.
        inner.log_epochs.close();
        alone.announce_change();
        Ok(inner.log_epochs.current())
    }
}
