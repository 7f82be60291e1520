//! Tickets: how the outcome of one submitted call reaches the thread or task that wants it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kiln_durability::log::Log;
use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_storage::error::{Error, Result};
use kiln_storage::log_epoch::LogEpoch;

use super::completions::Delivery;
use super::reply::Reply;
use crate::errors::in_doubt;
use crate::observed::Observed;
use crate::wait::{deadline_after, wait};

/// The outcome of one call, or the place where it will be.
#[derive(Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    done: Condvar,
    /// Whether the outcome stays here for calls that repeat an idempotency key.
    is_kept: bool,
}

#[derive(Default)]
struct State {
    outcome: Option<Observed<Reply>>,
    wakers: Vec<Waker>,
    /// Queues that get a copy of the outcome.
    followers: Vec<Delivery>,
}

impl Pending {
    /// For a call without an idempotency key: one ticket takes the outcome.
    pub fn new() -> Pending {
        Pending::default()
    }

    /// For a call with an idempotency key: each ticket gets a copy of the outcome.
    pub fn kept() -> Pending {
        Pending {
            is_kept: true,
            ..Pending::default()
        }
    }

    /// Sets the outcome, unless it is set, and wakes the threads and tasks that wait for it.
    pub fn complete(&self, outcome: Observed<Reply>) {
        let (wakers, followers, copy);
        {
            let mut state = lock(&self.state);
            if state.outcome.is_some() {
                return;
            }
            wakers = std::mem::take(&mut state.wakers);
            followers = std::mem::take(&mut state.followers);
            copy = (!followers.is_empty()).then(|| outcome.clone());
            state.outcome = Some(outcome);
        }
        self.done.notify_all();
        wakers.into_iter().for_each(Waker::wake);
        if let Some(copy) = copy {
            for follower in followers {
                follower.deliver(copy.clone());
            }
        }
    }

    /// Sends a copy of the outcome to `delivery`, now or when the call has ended.
    pub fn follow(&self, delivery: Delivery) {
        let copy = {
            let mut state = lock(&self.state);
            match &state.outcome {
                Some(outcome) => outcome.clone(),
                None => return state.followers.push(delivery),
            }
        };
        delivery.deliver(copy);
    }

    /// A copy of the outcome that is kept, if the call has ended.
    pub fn outcome(&self) -> Option<Observed<Reply>> {
        lock(&self.state).outcome.clone()
    }

    /// The outcome for one ticket, if the call has ended.
    fn take(&self, state: &mut State) -> Option<Observed<Reply>> {
        match self.is_kept {
            true => state.outcome.clone(),
            false => state.outcome.take(),
        }
    }
}

/// The claim to the outcome of a submitted call: wait for it, ask whether it is there, or await
/// it. Dropping a ticket does not stop the call.
///
/// The outcome is a [`Reply`], or an error when the call could not be run: the procedure was
/// dropped meanwhile, or the database broke down. A ticket hands it out once.
pub struct Ticket {
    pending: Arc<Pending>,
    /// What has to keep all that the call has observed before the outcome is handed out.
    log: Option<Arc<Log>>,
}

impl Ticket {
    pub(crate) fn new(pending: Arc<Pending>, log: Option<Arc<Log>>) -> Ticket {
        Ticket { pending, log }
    }

    /// Blocks until the call has ended.
    ///
    /// # Errors
    /// Why it could not be run.
    pub fn wait(self) -> Result<Reply> {
        self.wait_observed().result
    }

    /// [`Ticket::wait`], and what the call has observed.
    pub fn wait_observed(self) -> Observed<Reply> {
        self.wait_until(None).unwrap_or_else(|| Observed {
            result: Err(Error::internal("a wait without deadline ended")),
            epoch: LogEpoch::default(),
        })
    }

    /// Blocks until the call has ended or `timeout` has passed; then `None`, and the call goes on.
    pub fn wait_for(&mut self, timeout: Duration) -> Option<Observed<Reply>> {
        self.wait_until(Some(deadline_after(timeout)))
    }

    fn wait_until(&self, deadline_ns: Option<u64>) -> Option<Observed<Reply>> {
        let mut state = lock(&self.pending.state);
        let observed = loop {
            if let Some(outcome) = &state.outcome {
                break outcome.epoch;
            }
            state = wait(&self.pending.done, state, deadline_ns)?;
        };
        drop(state);
        let durable = match &self.log {
            Some(log) => log.wait_until(observed, deadline_ns)?,
            None => Ok(()),
        };
        self.hand_out(durable)
    }

    /// The outcome, of which all is on disk, or will not be.
    fn hand_out(&self, durable: Result<()>) -> Option<Observed<Reply>> {
        let outcome = self.pending.take(&mut lock(&self.pending.state))?;
        Some(match durable {
            Ok(()) => outcome,
            Err(failure) => Observed {
                result: Err(in_doubt(failure)),
                epoch: outcome.epoch,
            },
        })
    }

    /// The outcome if the call has ended, and was not handed out before.
    pub fn try_wait(&mut self) -> Option<Observed<Reply>> {
        self.wait_until(Some(0))
    }
}

impl Future for Ticket {
    type Output = Result<Reply>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Reply>> {
        let mut state = lock(&self.pending.state);
        if let Some(outcome) = &state.outcome {
            let observed = outcome.epoch;
            drop(state);
            let polled = self.log.as_ref().map(|log| log.poll(observed, context));
            let durable = match polled {
                Some(Poll::Pending) => return Poll::Pending,
                Some(Poll::Ready(durable)) => durable,
                None => Ok(()),
            };
            // Another copy of the ticket's outcome may have been handed out: not of this one, which
            // is polled once more.
            return match self.hand_out(durable) {
                Some(outcome) => Poll::Ready(outcome.result),
                None => Poll::Pending,
            };
        }
        let waker = context.waker();
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        Poll::Pending
    }
}
