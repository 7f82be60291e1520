//! Running a closure as a transaction.

use std::time::Duration;

use kiln_storage::error::Result;

use super::transaction::Transaction;
use crate::channels::Outgoing;
use crate::engine::Engine;
use crate::kernel::SlotUser;
use crate::observed::Observed;
use crate::wait::deadline_after;

impl Engine {
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
        let worker_slot =
            self.inner()
                .slots
                .take(self.inner(), SlotUser::Closure, deadline_ns, None);
        let mut sent = Outgoing::default();
        let outcome = match worker_slot {
            Ok(mut worker_slot) => {
                Transaction::run_to_end(&mut worker_slot, deadline_ns, &mut sent, body)
            }
            Err(error) => Observed::nothing(error),
        };
        let outcome = self.inner().acknowledged(outcome);
        if outcome.result.is_ok() {
            let rests_on = (outcome.epoch, true);
            self.inner().channels.announce(0, sent, rests_on);
        }
        outcome
    }
}
