//! Calls of procedures, and how they end.

use std::fmt;
use std::time::Duration;

use kiln_platform::sync::Arc;
use kiln_procedure::{Arguments, Interrupt, Program};
use kiln_storage::error::{Error, Result, SqlState};

use super::handle::ProcedureHandle;
use crate::catalog::Catalog;
use crate::values::IntoValues;

/// A statement of a layer above that a call may run in place of a stored procedure.
///
/// The engine asks for its program when the call is submitted, and again on a worker's thread when
/// the catalog has changed since.
pub trait Statement: Send + Sync {
    /// The program that runs the statement in this catalog.
    ///
    /// # Errors
    /// Why there is none, for instance because a table was dropped.
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>>;

    /// Its text, for messages.
    fn text(&self) -> Option<&str> {
        None
    }
}

/// What a call runs.
#[derive(Clone)]
pub(crate) enum Target {
    Named(Arc<str>),
    Statement(Arc<dyn Statement>),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Named(name) => f.write_str(name),
            Target::Statement(_) => f.write_str("a statement"),
        }
    }
}

/// A call of a stored procedure, or of a statement, to be submitted.
///
/// ```
/// use std::time::Duration;
/// use kiln_engine::{Call, IdempotencyKey};
/// # fn main() -> kiln_storage::error::Result<()> {
/// let call = Call::new("transfer", (1, 2, 100_i64))
///     .deadline(Duration::from_millis(50))
///     .idempotency_key(IdempotencyKey::new("order 4711")?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) target: Target,
    pub(crate) arguments: Arguments,
    pub(crate) deadline: Option<Duration>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) is_synchronous: bool,
    pub(crate) is_early: bool,
    /// The number of the session that makes it; 0 for none.
    pub(crate) session: u64,
}

impl Call {
    /// A call of the procedure called `procedure`.
    pub fn new(procedure: impl AsRef<str>, arguments: impl IntoValues) -> Call {
        let arguments = Arguments::from_values(&arguments.into_values());
        Call::to(Target::Named(procedure.as_ref().into()), arguments)
    }

    /// A call of the procedure that `procedure` names, for callers that make many.
    pub fn of(procedure: &ProcedureHandle, arguments: Arguments) -> Call {
        Call::to(Target::Named(procedure.name.clone()), arguments)
    }

    /// A call that runs `statement` as a transaction of its own.
    pub fn statement(statement: Arc<dyn Statement>, arguments: Arguments) -> Call {
        Call::to(Target::Statement(statement), arguments)
    }

    fn to(target: Target, arguments: Arguments) -> Call {
        Call {
            target,
            arguments,
            deadline: None,
            key: None,
            interrupt: None,
            is_synchronous: true,
            is_early: false,
            session: 0,
        }
    }

    /// Has the outcome wait until what it rests on is on disk (the default), or not. A call that
    /// does not wait may be lost when the database crashes after its outcome was told.
    #[must_use]
    pub fn synchronous_commit(mut self, is_synchronous: bool) -> Call {
        self.is_synchronous = is_synchronous;
        self
    }

    /// Has the outcome arrive in [`Completions`](crate::Completions) as soon as the call has ended.
    /// The receiver keeps it from the client until what the
    /// [completion](crate::Completion::observed) rests on is on disk
    /// ([`Engine::is_durable`](crate::Engine::is_durable)).
    #[must_use]
    pub(crate) fn early(mut self, is_early: bool) -> Call {
        self.is_early = is_early;
        self
    }

    /// A session makes the call, which is known by this number to those that hear of it.
    #[must_use]
    pub(crate) fn of_session(mut self, number: u64) -> Call {
        self.session = number;
        self
    }

    /// Lets another thread ask the call to end before its time; it ends as [`Reply::Expired`] then.
    /// One that waits in a queue ends some milliseconds later.
    #[must_use]
    pub(crate) fn interrupt(mut self, interrupt: &Interrupt) -> Call {
        self.interrupt = Some(interrupt.clone());
        self
    }

    /// Bounds the time from now to the call's end: waiting in the queue, repeated attempts, and
    /// loops inside the procedure. When it has passed the call ends as
    /// [`Reply::Expired`](crate::Reply::Expired).
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Call {
        self.deadline = Some(deadline);
        self
    }

    /// Names the call, so that a second one with the same key is not executed again but gets the
    /// first one's outcome. A key goes with one procedure and its arguments. Only calls that
    /// committed or were rejected are remembered, and only for a while (see
    /// [`Options`](crate::Options)); one that expired left no effects and may be repeated.
    #[must_use]
    pub fn idempotency_key(mut self, key: IdempotencyKey) -> Call {
        self.key = Some(key);
        self
    }
}

/// A name for a call that its caller chose, at most 128 bytes long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The longest key in bytes.
    pub const BYTES_MAX: usize = 128;

    /// The key that reads `key`.
    ///
    /// # Errors
    /// 22023 when it is empty or too long.
    pub fn new(key: impl Into<String>) -> Result<IdempotencyKey> {
        let key = key.into();
        if key.is_empty() || key.len() > IdempotencyKey::BYTES_MAX {
            let (length, limit) = (key.len(), IdempotencyKey::BYTES_MAX);
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("an idempotency key has 1 to {limit} bytes, not {length}"),
            ));
        }
        Ok(IdempotencyKey(key))
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A call that was not accepted, and why.
#[derive(Debug)]
pub struct Refused {
    /// The call, to be submitted again.
    pub call: Call,
    /// Why.
    pub error: SubmitError,
}

/// Why a call was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitError {
    /// All inboxes are full, or the queue of completions is; the same call may be accepted later.
    /// Nothing was done.
    Overloaded,
    /// There is no such procedure, it does not take these arguments, the key belongs to another
    /// call, or the database is closed. Nothing was done.
    Refused(Error),
}

impl From<Error> for SubmitError {
    fn from(error: Error) -> SubmitError {
        SubmitError::Refused(error)
    }
}

impl From<SubmitError> for Error {
    fn from(error: SubmitError) -> Error {
        match error {
            SubmitError::Overloaded => Error::new(
                SqlState::CONFIGURATION_LIMIT_EXCEEDED,
                "all workers have as many calls waiting as they may",
            )
            .with_hint("Submit it later, or open the database with a larger inbox_capacity."),
            SubmitError::Refused(error) => error,
        }
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for SubmitError {}
