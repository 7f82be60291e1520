//! Clients: from the first byte to the last. A client does no I/O: bytes that were received go in, and the bytes to be sent come out.

use kiln_platform::random::entropy;
use kiln_platform::sync::Arc;
use kiln_sql::{Database, Error, Reply, Result, SqlState};
use kiln_wire::backend::{Answers, AuthenticationStep, Severity};
use kiln_wire::connection::{Incoming, Input};
use kiln_wire::frontend::{CancelKey, Limits, Opening, Startup};

use crate::cancellation::Cancellations;
use crate::session::{Place, Session, Step};

/// The only database of a data directory, and its superuser.
const NAME: &str = "kiln";
/// The newest minor version of the protocol that is spoken here.
const MINOR: u16 = 2;
/// The minor version since which secrets of cancellations may be longer than four bytes.
const MINOR_LONG_SECRETS: u16 = 2;
/// Bytes of answers from which on no further message is handled before they are sent.
const ANSWERS_BYTES_MAX: usize = 1 << 20;
/// Messages that are handled before other clients have their turn.
const TURN_MESSAGES: usize = 200;

/// What clients of a server share.
pub struct Shared {
    /// What they ask.
    pub database: Database,
    /// What cancels their statements.
    pub cancellations: Cancellations,
    /// How long their messages may be.
    pub limits: Limits,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes from the client.
    Bytes,
    /// That its answers are sent, before it is handled further.
    Sending,
    /// Its next turn: others go first.
    Turn,
    /// The outcome of what was submitted.
    Outcome,
    /// A thread that may wait.
    Thread,
    /// Nothing: it is gone when its answers are sent.
    End,
}

/// A client.
pub struct Client {
    shared: Arc<Shared>,
    input: Input,
    /// Answers until there is a session.
    greeting: Answers,
    session: Option<Box<Session>>,
    /// The number under which its statements are cancelled, when there is a session.
    number: Option<u32>,
    has_ended: bool,
}

impl Client {
    /// One that has said nothing.
    pub fn new(shared: Arc<Shared>) -> Client {
        Client {
            input: Input::new(shared.limits),
            shared,
            greeting: Answers::default(),
            session: None,
            number: None,
            has_ended: false,
        }
    }

    /// A client that there is no room for: it is told so.
    pub fn refuse(error: &Error) -> Answers {
        let mut answers = Answers::default();
        answers.error(Severity::Fatal, error, None);
        answers
    }

    /// What it has sent.
    pub fn input(&mut self) -> &mut Input {
        &mut self.input
    }

    /// What is to be sent to it.
    pub fn answers(&mut self) -> &mut Answers {
        match &mut self.session {
            Some(session) => session.answers(),
            None => &mut self.greeting,
        }
    }

    /// Whether it is authenticated.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Whether it has a transaction block open.
    pub fn in_transaction(&self) -> bool {
        (self.session.as_ref()).is_some_and(|session| session.in_transaction())
    }

    /// Handles what was received, as far as it goes.
    pub fn advance(&mut self, place: Place<'_>) -> Progress {
        if self.has_ended {
            return Progress::End;
        }
        for _ in 0..TURN_MESSAGES {
            if self.answers().len() > ANSWERS_BYTES_MAX {
                return Progress::Sending;
            }
            let incoming = match self.input.take() {
                Ok(Some(incoming)) => incoming,
                Ok(None) => {
                    self.input.rest();
                    return Progress::Bytes;
                }
                Err(error) => return self.end(Some(&error)),
            };
            let step = match (incoming, &mut self.session) {
                (Incoming::Message(received), Some(session)) => session.handle(received, place),
                (Incoming::Opening(Opening::Tls | Opening::Gss), _) => {
                    self.greeting.encryption(false);
                    Step::Next
                }
                (Incoming::Opening(Opening::Cancel(key)), _) => {
                    let CancelKey { process, secret } = key;
                    self.shared.cancellations.cancel(process, secret);
                    Step::End
                }
                (Incoming::Opening(Opening::Startup(startup)), _) => {
                    match start(&self.shared, &startup, &mut self.greeting) {
                        Ok((number, session)) => {
                            self.number = Some(number);
                            self.session = Some(Box::new(session));
                            self.input.begin_session();
                            Step::Next
                        }
                        Err(error) => return self.end(Some(&error)),
                    }
                }
                (Incoming::Message(_), None) => {
                    let error = Error::internal("a message came before the session");
                    return self.end(Some(&error));
                }
            };
            if let Some(progress) = self.take_step(step) {
                return progress;
            }
        }
        Progress::Turn
    }

    /// Takes the outcome of what was submitted.
    pub fn complete(&mut self, outcome: Result<Reply>) {
        if let Some(session) = &mut self.session {
            let step = session.complete(outcome);
            self.take_step(step);
        }
    }

    fn take_step(&mut self, step: Step) -> Option<Progress> {
        match step {
            Step::Next => None,
            Step::SkipToSync => {
                self.input.skip_to_sync();
                None
            }
            Step::Submitted => Some(Progress::Outcome),
            Step::Thread => {
                self.input.put_back();
                Some(Progress::Thread)
            }
            Step::End => Some(self.end(None)),
        }
    }

    /// Ends the session, with an error if that is why.
    pub fn end(&mut self, error: Option<&Error>) -> Progress {
        if let Some(error) = error {
            self.answers().error(Severity::Fatal, error, None);
        }
        self.has_ended = true;
        Progress::End
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.cancellations.forget(number);
        }
        if let Some(session) = &mut self.session {
            session.end();
        }
    }
}

/// Begins a session as a startup message asks for it, and greets the client.
fn start(shared: &Shared, startup: &Startup<'_>, greeting: &mut Answers) -> Result<(u32, Session)> {
    let unknown = || startup.parameters().map(|(name, _)| name);
    let unknown = || unknown().filter(|name| name.starts_with("_pq_."));
    if startup.minor > MINOR || unknown().next().is_some() {
        greeting.negotiate_version(startup.minor.min(MINOR), unknown());
    }
    let user = startup.parameter("user").ok_or_else(|| {
        let message = "no PostgreSQL user name specified in startup packet";
        Error::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message)
    })?;
    if user != NAME {
        let message = format!("role \"{user}\" does not exist");
        let error = Error::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message);
        return Err(error.with_hint(format!("The only role is {NAME}.")));
    }
    let database = startup.parameter("database").unwrap_or(user);
    if database != NAME {
        let message = format!("database \"{database}\" does not exist");
        let error = Error::new(SqlState::INVALID_CATALOG_NAME, message);
        return Err(error.with_hint(format!("The only database is {NAME}.")));
    }
    if startup
        .parameter("replication")
        .is_some_and(|it| it != "false")
    {
        return Err(Error::unsupported("a connection for replication"));
    }
    let mut session = Session::new(&shared.database)?;
    let secret_bytes = if startup.minor < MINOR_LONG_SECRETS {
        4
    } else {
        32
    };
    let secret = secret(secret_bytes)?;
    let number = (shared.cancellations).register(secret.clone(), session.cancel_handle());
    let answers = session.answers();
    answers.append(greeting);
    answers.authentication(AuthenticationStep::Ok);
    session.begin(startup.parameters());
    session.answers().backend_key_data(number, &secret);
    session.ready();
    Ok((number, session))
}

/// Bytes that no other client can guess.
fn secret(count: usize) -> Result<Box<[u8]>> {
    let bytes: [u8; 32] = entropy().map_err(|error| {
        let message = format!("the system gives no random numbers: {error}");
        Error::new(SqlState::IO_ERROR, message)
    })?;
    Ok(bytes[..count.min(bytes.len())].into())
}
