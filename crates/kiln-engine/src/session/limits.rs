//! When the statement of a session must end.

use std::time::Duration;

use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::{Interrupt, Program, interrupt};
use kiln_storage::error::{Error, Result, SqlState};

use crate::kernel::{EngineInner, PooledSlot, Refusal, SlotUser, WorkerSlot};
use crate::wait::deadline_after;

/// When the statement that runs must end.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    pub deadline_ns: Option<u64>,
    /// How long it waits for a slot, for a lock, or for a table that is being changed.
    pub lock_timeout: Option<Duration>,
    pub interrupt: &'a Interrupt,
}

impl Limits<'_> {
    /// Whether the statement may go on.
    pub fn check(self) -> Result<()> {
        if self.interrupt.is_canceled() {
            return Err(self.interrupt.error());
        }
        match self.deadline_ns {
            Some(deadline) if time::now_ns() >= deadline => Err(interrupt::timed_out()),
            _ => Ok(()),
        }
    }

    /// The error of a statement that ran out of its limits.
    pub fn exceeded(self) -> Error {
        match self.interrupt.is_canceled() {
            true => self.interrupt.error(),
            false => interrupt::timed_out(),
        }
    }

    /// A worker slot for the statement.
    pub fn slot(self, inner: &Arc<EngineInner>, session: u64) -> Result<PooledSlot> {
        let deadline_ns = self.wait_deadline();
        let slot = inner.slots.take(
            inner,
            SlotUser::Session(session),
            deadline_ns,
            Some(self.interrupt),
        );
        slot.map_err(|error| match self.check() {
            Err(error) => error,
            Ok(()) if is_over(deadline_ns) => lock_not_available(),
            Ok(()) => error,
        })
    }

    /// Goes on with the transaction of a block.
    pub fn resume(self, worker_slot: &mut WorkerSlot) -> Result<()> {
        worker_slot
            .resume(self.deadline_ns)
            .map_err(|refusal| self.refused(refusal))
    }

    /// The same limits, with a shorter wait for a table.
    pub fn lock_timeout_of_at_most(self, wait: Duration) -> Self {
        let lock_timeout = self.lock_timeout.map_or(wait, |given| given.min(wait));
        Limits {
            lock_timeout: Some(lock_timeout),
            ..self
        }
    }

    /// Waits until no change of the catalog waits for a table that the program uses; the worker
    /// slot is left, or stands aside.
    pub fn wait_for_tables(self, worker_slot: &WorkerSlot, program: &Program) -> Result<()> {
        let deadline_ns = self.wait_deadline();
        match worker_slot.wait_for_tables(program, deadline_ns, self.interrupt) {
            true => Ok(()),
            false => Err(self.check().err().unwrap_or_else(lock_not_available)),
        }
    }

    /// When a wait that begins now must end.
    pub fn wait_deadline(self) -> Option<u64> {
        let lock_ns = self.lock_timeout.map(deadline_after);
        self.deadline_ns.into_iter().chain(lock_ns).min()
    }

    /// The error of a statement that could not start.
    pub fn refused(self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Expired => self.exceeded(),
            other => other.error(),
        }
    }
}

fn is_over(deadline_ns: Option<u64>) -> bool {
    deadline_ns.is_some_and(|deadline_ns| time::now_ns() >= deadline_ns)
}

#[cold]
pub(super) fn lock_not_available() -> Error {
    let message = "canceling statement due to lock timeout";
    Error::new(SqlState::LOCK_NOT_AVAILABLE, message)
}
