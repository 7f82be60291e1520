//! Submitting: the way of a call from its caller into an inbox.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result};
use kiln_storage::log_epoch::LogEpoch;

use crate::calls::{
    Admission, Call, Completions, Delivery, Job, Pending, Promise, Recipient, Refused, Reply, Rows,
    SubmitError, Target, Ticket, Unplaced, Work,
};
use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::errors;
use crate::observed::Observed;
use crate::values::IntoValues;
use crate::wait::deadline_after;

/// Where the outcome shall go.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    Ticket,
    Queue(&'a Arc<Completions>, u64),
}

/// What became of a call that was offered.
enum Offered {
    /// A worker will run it, or a queue will be told.
    Accepted(Option<Ticket>),
    /// All inboxes are full; this one was tried first.
    Full(Call, usize),
    Refused(Call, Error),
}

impl Target {
    fn resolve(&self, catalog: &Arc<Catalog>) -> Result<Work> {
        match self {
            Target::Named(name) => {
                let procedure = catalog.require_procedure(name)?;
                Ok(Work::Procedure(procedure.clone()))
            }
            Target::Statement(statement) => Ok(Work::Statement {
                statement: statement.clone(),
                program: statement.program(catalog)?,
            }),
        }
    }

    /// What an idempotency key is kept for.
    fn name(&self) -> Result<&Arc<str>> {
        match self {
            Target::Named(name) => Ok(name),
            Target::Statement(_) => Err(Error::unsupported(
                "an idempotency key goes with the call of a procedure, not with a statement",
            )),
        }
    }
}

impl Engine {
    /// Calls a stored procedure and waits for its end. Waits too when all inboxes are full.
    ///
    /// # Errors
    /// 42883 when there is no such procedure or it takes other arguments, 42804 and its like for
    /// arguments that do not convert, 57P01 when the database is closed. What the procedure
    /// raises is no error but [`Reply::Rejected`].
    pub fn call(&self, procedure: &str, arguments: impl IntoValues) -> Result<Reply> {
        self.execute(Call::new(procedure, arguments))
    }

    /// [`Engine::call`] for a call with a deadline or an idempotency key.
    ///
    /// # Errors
    /// Those of [`Engine::call`], and 22023 when the key belongs to another call.
    pub fn execute(&self, call: Call) -> Result<Reply> {
        self.execute_observed(call).result
    }

    /// [`Engine::execute`], and what the call has observed.
    pub fn execute_observed(&self, mut call: Call) -> Observed<Reply> {
        let deadline_ns = call.deadline.map(deadline_after);
        loop {
            let inbox;
            (call, inbox) = match self.offer(call, deadline_ns, Wanted::Ticket) {
                Offered::Accepted(Some(ticket)) => return ticket.wait_observed(),
                Offered::Accepted(None) => return Observed::nothing(no_ticket()),
                Offered::Refused(_, error) => return Observed::nothing(error),
                Offered::Full(call, inbox) => (call, inbox),
            };
            if !self.inner().inboxes.wait_for_room(inbox, deadline_ns) {
                return Observed {
                    result: Ok(Reply::Expired),
                    epoch: self.log_epochs().current(),
                };
            }
        }
    }

    /// Submits a call; the ticket says how it ended.
    ///
    /// # Errors
    /// [`SubmitError::Overloaded`] when all inboxes are full; else those of [`Engine::execute`].
    pub fn submit(&self, call: Call) -> std::result::Result<Ticket, SubmitError> {
        let deadline_ns = call.deadline.map(deadline_after);
        match self.offer(call, deadline_ns, Wanted::Ticket) {
            Offered::Accepted(Some(ticket)) => Ok(ticket),
            Offered::Accepted(None) => Err(no_ticket().into()),
            Offered::Full(..) => Err(SubmitError::Overloaded),
            Offered::Refused(_, error) => Err(error.into()),
        }
    }

    /// Submits a call whose outcome arrives in `completions` under `token`.
    ///
    /// # Errors
    /// The call, with [`SubmitError::Overloaded`] when all inboxes or `completions` are full; else
    /// with the errors of [`Engine::execute`]. Nothing arrives in `completions` then.
    // The call comes back to be submitted again; boxing it would cost an allocation.
    #[allow(clippy::result_large_err)]
    pub fn submit_to(
        &self,
        call: Call,
        completions: &Arc<Completions>,
        token: u64,
    ) -> std::result::Result<(), Refused> {
        if let Some(log) = self.log()
            && let Err(error) = completions.keep_with(log)
        {
            let error = error.into();
            return Err(Refused { call, error });
        }
        if !completions.reserve() {
            let error = SubmitError::Overloaded;
            return Err(Refused { call, error });
        }
        let deadline_ns = call.deadline.map(deadline_after);
        let (call, error) = match self.offer(call, deadline_ns, Wanted::Queue(completions, token)) {
            Offered::Accepted(_) => return Ok(()),
            Offered::Full(call, _) => (call, SubmitError::Overloaded),
            Offered::Refused(call, error) => (call, error.into()),
        };
        completions.release();
        Err(Refused { call, error })
    }

    /// Whether all is on disk that was observed in log epochs up to this one; always without a log.
    /// If not, the log writes it as soon as it can.
    pub fn is_durable(&self, observed: LogEpoch) -> bool {
        self.log().is_none_or(|log| log.is_durable(observed))
    }

    /// Tells `completions`, by a completion under `token` without rows, when all is on disk that
    /// was observed in log epochs up to this one, or why it will not be.
    ///
    /// # Errors
    /// [`SubmitError::Overloaded`] when `completions` is full; 55000 when it belongs to another
    /// database.
    pub fn tell_durable(
        &self,
        observed: LogEpoch,
        completions: &Arc<Completions>,
        token: u64,
    ) -> std::result::Result<(), SubmitError> {
        if let Some(log) = self.log() {
            completions.keep_with(log)?;
        }
        if !completions.reserve() {
            return Err(SubmitError::Overloaded);
        }
        let delivery = Delivery {
            queue: completions.clone(),
            token,
            waits: true,
        };
        delivery.deliver(Observed {
            result: Ok(Reply::Committed(Rows::of(
                Arc::new([]),
                Vec::new(),
                Vec::new(),
            ))),
            epoch: observed,
        });
        Ok(())
    }

    fn offer(&self, mut call: Call, deadline_ns: Option<u64>, wanted: Wanted<'_>) -> Offered {
        let inner = self.inner();
        let catalog = inner.catalog();
        let work = match call.target.resolve(&catalog) {
            Ok(work) => work,
            Err(error) => return Offered::Refused(call, error),
        };
        // Keys are compared with the arguments as they were given.
        let given = call.key.is_some().then(|| call.arguments.clone());
        if let Err(error) = call.arguments.bind(work.program()) {
            return Offered::Refused(call, error);
        }
        let waits = call.is_synchronous;
        let is_held = waits && !call.is_early;
        let delivery = |queue: &Arc<Completions>, token| Delivery {
            queue: queue.clone(),
            token,
            waits: is_held,
        };
        let ticket_for = |pending| Ticket::new(pending, inner.log().filter(|_| waits).cloned());
        let (mut follows, mut keyed) = (None, None);
        let (recipient, ticket) = match (wanted, &call.key, &given) {
            (Wanted::Queue(queue, token), None, _) => {
                (Recipient::Queue(delivery(queue, token)), None)
            }
            (Wanted::Ticket, None, _) => {
                let pending = Arc::new(Pending::new());
                let ticket = ticket_for(pending.clone());
                (Recipient::Ticket(pending), Some(ticket))
            }
            (_, Some(key), given) => {
                let pending = Arc::new(Pending::kept());
                let admitted = call.target.name().and_then(|name| {
                    let given = given.as_ref().unwrap_or(&call.arguments);
                    inner.idempotency.admit(key, name, given, &pending)
                });
                let pending = match admitted {
                    Ok(Admission::First(first)) => {
                        keyed = Some((first, inner.idempotency.clone()));
                        pending
                    }
                    Ok(Admission::Repeated(known)) => known,
                    Err(error) => return Offered::Refused(call, error),
                };
                let ticket = match wanted {
                    Wanted::Ticket => Some(ticket_for(pending.clone())),
                    Wanted::Queue(queue, token) => {
                        follows = Some((pending.clone(), delivery(queue, token)));
                        None
                    }
                };
                if keyed.is_none() {
                    follow(follows);
                    return Offered::Accepted(ticket);
                }
                (Recipient::Ticket(pending), ticket)
            }
        };
        let job = Job {
            work,
            resolved_in: catalog.version(),
            arguments: std::mem::take(&mut call.arguments),
            deadline_ns,
            interrupt: call.interrupt.clone(),
            promise: Promise::new(recipient, waits, call.session, keyed),
        };
        let (job, unplaced) = match inner.inboxes.offer(job) {
            Ok(()) => {
                follow(follows);
                return Offered::Accepted(ticket);
            }
            Err(returned) => returned,
        };
        call.arguments = given.unwrap_or(job.arguments);
        match unplaced {
            Unplaced::Full(inbox) => {
                job.promise.withdraw(SubmitError::Overloaded.into());
                Offered::Full(call, inbox)
            }
            Unplaced::Closed => {
                job.promise.withdraw(errors::closing());
                Offered::Refused(call, errors::closing())
            }
        }
    }
}

fn no_ticket() -> Error {
    Error::internal("a call was accepted without a ticket")
}

/// Lets a queue have a copy of an outcome that an idempotency key keeps.
fn follow(follows: Option<(Arc<Pending>, Delivery)>) {
    if let Some((pending, delivery)) = follows {
        pending.follow(delivery);
    }
}
