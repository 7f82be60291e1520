//! Tickets: the claim to a submitted call's outcome.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::time;
use kiln_storage::error::{Error, Result};
use kiln_storage::log_epoch::LogEpoch;

use crate::call::Reply;
use crate::gate::wait;
use crate::journal::Observed;

#[derive(Default)]
struct Outcome {
    /// With the log epoch up to which the call has observed what is there.
    result: Option<(Result<Reply>, LogEpoch)>,
    wakers: Vec<Waker>,
}

/// Where a call's outcome is put down, once.
#[derive(Default)]
pub(crate) struct Desk {
    outcome: Mutex<Outcome>,
    done: Condvar,
}

impl Desk {
    /// Puts the outcome down, unless there is one.
    pub fn complete(&self, result: Result<Reply>, observed: LogEpoch) {
        let wakers = {
            let mut outcome = lock(&self.outcome);
            if outcome.result.is_none() {
                outcome.result = Some((result, observed));
            }
            std::mem::take(&mut outcome.wakers)
        };
        self.done.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The claim to the outcome of a submitted call: wait for it, ask whether it is there, or await
/// it. Dropping a ticket does not stop the call.
///
/// The outcome is a [`Reply`], or an error when the call could not be run: the procedure was
/// dropped meanwhile, or the database broke down.
pub struct Ticket {
    desk: Arc<Desk>,
}

impl Ticket {
    pub(crate) fn new(desk: Arc<Desk>) -> Ticket {
        Ticket { desk }
    }

    /// A ticket whose outcome is there.
    pub(crate) fn ready(result: Result<Reply>, observed: LogEpoch) -> Ticket {
        let desk = Arc::new(Desk::default());
        desk.complete(result, observed);
        Ticket { desk }
    }

    /// Blocks until the call has ended.
    ///
    /// # Errors
    /// Why it could not be run.
    pub fn wait(self) -> Result<Reply> {
        self.wait_observed().result
    }

    /// [`Ticket::wait`], and what the call has observed.
    pub fn wait_observed(&self) -> Observed<Reply> {
        let mut outcome = lock(&self.desk.outcome);
        loop {
            if let Some((result, observed)) = &outcome.result {
                return Observed {
                    result: result.clone(),
                    epoch: *observed,
                };
            }
            let Some(waited) = wait(&self.desk.done, outcome, None) else {
                return Observed {
                    result: Err(Error::internal("a wait without deadline ended")),
                    epoch: LogEpoch::default(),
                };
            };
            outcome = waited;
        }
    }

    /// Blocks until the call has ended or `timeout` has passed; then `None`, and the call goes on.
    pub fn wait_for(&self, timeout: Duration) -> Option<Result<Reply>> {
        let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline = time::now_ns().saturating_add(nanoseconds);
        let mut outcome = lock(&self.desk.outcome);
        loop {
            if let Some((result, _)) = &outcome.result {
                return Some(result.clone());
            }
            outcome = wait(&self.desk.done, outcome, Some(deadline))?;
        }
    }

    /// The outcome if the call has ended.
    pub fn try_wait(&self) -> Option<Result<Reply>> {
        let outcome = lock(&self.desk.outcome);
        outcome.result.as_ref().map(|(result, _)| result.clone())
    }

    /// The log epoch up to which the call has observed what is in the database, if it has ended.
    pub fn observed(&self) -> Option<LogEpoch> {
        let outcome = lock(&self.desk.outcome);
        outcome.result.as_ref().map(|(_, observed)| *observed)
    }
}

impl Future for Ticket {
    type Output = Result<Reply>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Reply>> {
        let mut outcome = lock(&self.desk.outcome);
        if let Some((result, _)) = &outcome.result {
            return Poll::Ready(result.clone());
        }
        if !outcome
            .wakers
            .iter()
            .any(|waker| waker.will_wake(context.waker()))
        {
            outcome.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}
