//! Replay of calls: what a log with commands has kept is done again.

use std::collections::HashMap;
use std::fmt;

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::Arc;
use kiln_protocols::{Configuration, Outcome, Protocol};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::{CallAnswer, Commit, Listener, Listeners};
use kiln_storage::log_epoch::LogEpoch;

use crate::calls::ProcedureHandle;
use crate::driver::Driver;
use crate::engine::Engine;
use crate::kernel::LoggedCall;

/// Makes calls again, one after the other, in the order of their commits. The database has all its
/// indexes, and no user yet.
pub struct CallReplay {
    engine: Engine,
    driver: Driver,
    protocol: Configuration,
    procedures: HashMap<String, ProcedureHandle>,
    call: LoggedCall,
    counter: Counter,
}

/// Counts the changes of commits; clones count together.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Listeners for Counter {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(self.clone())
    }

    fn note(&self, _: &CallAnswer<'_>) -> Option<LogEpoch> {
        None
    }
}

impl Listener for Counter {
    fn committed(&mut self, commit: &Commit<'_>) {
        // Relaxed: the thread that reads it makes the call.
        self.0.fetch_add(commit.changes.len(), Ordering::Relaxed);
    }
}

impl Engine {
    /// Makes calls again, after [`Engine::end_restoration`] and until [`CallReplay::end`]: under
    /// `serial`, as one comes after the other.
    ///
    /// # Errors
    /// 53300 when there is no worker slot; those of [`Engine::set_protocol`] and
    /// [`Engine::attach_listeners`].
    pub fn replay_calls(&self) -> Result<CallReplay> {
        let protocol = self.protocol();
        self.set_protocol(Protocol::Serial)?;
        let counter = Counter::default();
        self.attach_listeners(Arc::new(counter.clone()))?;
        Ok(CallReplay {
            engine: self.clone(),
            driver: self.driver(0)?,
            protocol,
            procedures: HashMap::new(),
            call: LoggedCall::default(),
            counter,
        })
    }
}

impl CallReplay {
    /// Makes a call again that has committed and made so many changes.
    ///
    /// # Errors
    /// XX001 for bytes that are no call, and for a call that ends in another way than before.
    pub fn call(&mut self, bytes: &[u8], changes: u32) -> Result<()> {
        self.call.read(bytes)?;
        let (name, arguments) = self.call.parts();
        let procedure = match self.procedures.get(name) {
            Some(known) => known,
            None => {
                let handle = self.engine.procedure(name);
                let handle = handle.map_err(|error| diverged(name, &error.message()))?;
                self.procedures.entry(name.clone()).or_insert(handle)
            }
        };
        self.counter.0.store(0, Ordering::Relaxed);
        match self.driver.call(procedure, arguments) {
            Outcome::Committed => {}
            Outcome::Rejected(error) => return Err(diverged(name, &error.message())),
            Outcome::Expired => return Err(diverged(name, &"it has expired")),
        }
        let made = self.counter.0.load(Ordering::Relaxed);
        match made == changes as usize {
            true => Ok(()),
            false => {
                let what = format!("it makes {made} changes, and has made {changes}");
                Err(diverged(name, &what))
            }
        }
    }

    /// All calls were made: the protocol that was in force is again.
    ///
    /// # Errors
    /// 55P03 as for [`Engine::change_catalog`].
    pub fn end(self) -> Result<()> {
        drop(self.driver);
        self.engine.detach_listeners()?;
        self.engine.set_protocol(self.protocol)
    }
}

/// A call is not what it was: the rows that it meets are others, or its procedure.
#[cold]
fn diverged(procedure: &str, what: &dyn fmt::Display) -> Error {
    let message = format!(
        "a call of {procedure} that has committed ends otherwise when it is made again: {what}"
    );
    Error::new(SqlState::DATA_CORRUPTED, message)
        .with_hint("The log is damaged, or of a Kiln whose procedures do something else. Restore the data directory from a backup.")
}
