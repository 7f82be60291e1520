//! Promises: the duty to complete a call.

use kiln_platform::sync::Arc;
use kiln_protocols::{AnswerWriter, broken_down};
use kiln_storage::error::Error;

use super::completions::Delivery;
use super::idempotency::{Idempotency, KeyedCall};
use super::reply::Reply;
use super::ticket::Pending;
use crate::observed::Observed;

/// Where a call's outcome goes.
pub(crate) enum Recipient {
    Ticket(Arc<Pending>),
    Queue(Delivery),
}

/// The duty to complete a call. A promise that is dropped completes it with an error.
pub(crate) struct Promise {
    /// There until the call is completed.
    recipient: Option<Recipient>,
    /// Whether the outcome waits until what it rests on is on disk.
    waits: bool,
    /// The number of the session that has made the call; 0 for none.
    session: u64,
    keyed: Option<(Arc<KeyedCall>, Arc<Idempotency>)>,
}

impl Promise {
    pub fn new(
        recipient: Recipient,
        waits: bool,
        session: u64,
        keyed: Option<(Arc<KeyedCall>, Arc<Idempotency>)>,
    ) -> Promise {
        Promise {
            recipient: Some(recipient),
            waits,
            session,
            keyed,
        }
    }

    /// The number of the session that has made the call; 0 for none.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// Whether the outcome waits until what it rests on is on disk.
    #[inline(always)]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// What is reported with what the call wrote, if it has a key.
    pub fn answer(&self) -> Option<Arc<dyn AnswerWriter>> {
        let (call, _) = self.keyed.as_ref()?;
        Some(call.clone())
    }

    /// Completes the call.
    pub fn keep(mut self, outcome: Observed<Reply>) {
        self.complete(outcome);
    }

    /// Gives the call up before any worker had it: its queue is told nothing, calls that repeat
    /// its key are.
    pub fn withdraw(mut self, error: Error) {
        if matches!(self.recipient, Some(Recipient::Queue(_))) {
            self.recipient = None;
        } else {
            self.complete(Observed::nothing(error));
        }
    }

    fn complete(&mut self, mut outcome: Observed<Reply>) {
        if let Some((call, idempotency)) = &self.keyed {
            idempotency.ended(call, &mut outcome);
        }
        match self.recipient.take() {
            Some(Recipient::Ticket(pending)) => pending.complete(outcome),
            Some(Recipient::Queue(delivery)) => delivery.deliver(outcome),
            None => {}
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if self.recipient.is_some() {
            self.complete(Observed::nothing(broken_down()));
        }
    }
}
