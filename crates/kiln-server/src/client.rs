//! Clients: from the first byte to the last. A client does no I/O: bytes that were received go in,
//! and the bytes to be sent come out.

use kiln_platform::net::Peer;
use kiln_platform::random::entropy;
use kiln_platform::sync::Arc;
use kiln_sql::secret::Hash;
use kiln_sql::{CancelHandle, Database, Error, LogEpoch, Reply, Result, SqlState};
use kiln_wire::backend::{Answers, AuthenticationStep, Severity};
use kiln_wire::connection::{Incoming, Input};
use kiln_wire::frontend::{CancelKey, Limits, Message, Opening, Startup, violation};

use crate::authentication::{self, Authentication, Exchange};
use crate::cancellation::Cancellations;
use crate::monitor::{Monitor, Refusal, SessionInfo, refusal_of};
use crate::session::{ANSWERS_BYTES_MAX, RunsOn, Session, Step};

/// The only database of a data directory.
const NAME: &str = "kiln";
/// The newest minor version of the protocol that is spoken here.
const MINOR: u16 = 2;
/// The minor version since which secrets of cancellations may be longer than four bytes.
const MINOR_LONG_SECRETS: u16 = 2;
/// Messages that are handled before it yields to other clients.
const MESSAGES_BEFORE_YIELD: usize = 200;

/// What clients of a server share.
pub struct ServerState {
    /// What they ask.
    pub database: Database,
    /// What cancels their statements.
    pub cancellations: Cancellations,
    /// How long their messages may be.
    pub limits: Limits,
    /// Which of them must prove who they are.
    pub authentication: Authentication,
    /// What a client without a role sees is made of this; no client knows it.
    pub pretended: Hash,
    /// What is counted of them, and logged.
    pub monitor: Arc<Monitor>,
    /// Whether connections can be encrypted.
    pub encryption: Option<Encryption>,
}

/// What clients are told of encryption.
pub struct Encryption {
    /// What an authentication is bound to.
    pub end_point: Option<Box<[u8]>>,
    /// Whether those from other machines must use it.
    pub is_required: bool,
}

impl ServerState {
    /// What the clients of a server of this database share.
    ///
    /// # Errors
    /// 58030 when the system gives no random numbers.
    pub fn new(
        database: Database,
        limits: Limits,
        authentication: Authentication,
    ) -> Result<ServerState> {
        Ok(ServerState {
            database,
            cancellations: Cancellations::default(),
            limits,
            authentication,
            pretended: random()?,
            monitor: Arc::default(),
            encryption: None,
        })
    }
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes from the client.
    Bytes,
    /// That its answers are sent, before it is handled further.
    Sending,
    /// To be handled again: others go first.
    Yield,
    /// The outcome of what was submitted.
    Outcome,
    /// A thread that may wait.
    Thread,
    /// That its answers are sent, and the connection is encrypted from then on.
    Encryption,
    /// Nothing: it is gone when its answers are sent.
    End,
}

/// A client.
pub struct Client {
    shared: Arc<ServerState>,
    input: Input,
    /// Where it comes from.
    peer: Peer,
    /// Answers until there is a session.
    greeting: Answers,
    /// What it has asked for, while it proves who it is.
    asked: Option<Box<Asked>>,
    session: Option<Box<Session>>,
    /// The number under which its statements are cancelled, when there is a session.
    number: Option<u32>,
    /// Whether its connection is encrypted.
    is_encrypted: bool,
    /// What has to be on disk before answers may be sent, while the client's pipeline goes on; and
    /// the bytes of answers that were there before.
    rests_on: Option<(LogEpoch, usize)>,
    /// Whether the outcome that comes next says that it is.
    awaits_disk: bool,
    has_ended: bool,
}

/// What a client has asked for in its startup message.
struct Asked {
    role: String,
    minor: u16,
    /// Names and values.
    parameters: Vec<(String, String)>,
    exchange: Option<Exchange>,
}

impl Client {
    /// One that has said nothing.
    pub fn new(shared: Arc<ServerState>, peer: Peer) -> Client {
        Client {
            input: Input::new(shared.limits),
            shared,
            peer,
            asked: None,
            greeting: Answers::default(),
            session: None,
            number: None,
            is_encrypted: false,
            rests_on: None,
            awaits_disk: false,
            has_ended: false,
        }
    }

    /// The answers to a client that there is no room for.
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

    /// Whether its next message waits for no worker slot, and others may wait for the one that it
    /// holds.
    pub fn holds_slot(&self) -> bool {
        (self.session.as_ref()).is_some_and(|session| session.holds_slot())
    }

    /// Has `wake` called when notifications come for it, if it listens and nothing is called yet.
    pub fn wake_by(&mut self, wake: impl FnOnce() -> Box<dyn Fn() + Send + Sync>) {
        if let Some(session) = &mut self.session {
            session.wake_by(wake);
        }
    }

    /// Whether notifications have come that it was not told.
    pub fn has_notifications(&self) -> bool {
        (self.session.as_ref()).is_some_and(|session| session.has_notifications())
    }

    /// What cancels its statements, if it has a session.
    pub fn cancel_handle(&self) -> Option<CancelHandle> {
        Some(self.session.as_ref()?.cancel_handle())
    }

    /// Why its session is to end, if another one has ended it.
    pub fn termination(&self) -> Option<Error> {
        self.session.as_ref()?.check_terminated().err()
    }

    /// Whether its answers may be sent: what they rest on is on disk.
    pub fn may_answer(&self) -> bool {
        self.rests_on.is_none()
    }

    /// Handles what was received, as far as it goes.
    pub fn advance(&mut self, runs_on: RunsOn<'_>) -> Progress {
        let progress = self.handle(runs_on);
        match self.rests_on {
            Some((epoch, _)) if progress != Progress::Outcome => {
                self.go_on_when_durable(epoch, progress, runs_on)
            }
            _ => progress,
        }
    }

    /// Goes on when all is on disk that the answers rest on.
    fn go_on_when_durable(
        &mut self,
        epoch: LogEpoch,
        progress: Progress,
        runs_on: RunsOn<'_>,
    ) -> Progress {
        let engine = self.shared.database.engine();
        if engine.is_durable(epoch) {
            self.rests_on = None;
            return progress;
        }
        let RunsOn::Poller(completions, token) = runs_on else {
            // In a thread outcomes are durable when they come.
            return progress;
        };
        match engine.tell_durable(epoch, completions, token) {
            Ok(()) => {
                self.awaits_disk = true;
                Progress::Outcome
            }
            Err(_) => Progress::Yield,
        }
    }

    /// Handles messages.
    fn handle(&mut self, runs_on: RunsOn<'_>) -> Progress {
        if self.has_ended {
            return Progress::End;
        }
        for _ in 0..MESSAGES_BEFORE_YIELD {
            if let Some(error) = self.termination() {
                return self.end(Some(&error));
            }
            if self.answers().len() > ANSWERS_BYTES_MAX {
                return Progress::Sending;
            }
            let incoming = match self.input.take() {
                Ok(Some(incoming)) => incoming,
                Ok(None) => {
                    self.input.rest();
                    if let Some(session) = &mut self.session {
                        session.tell_notifications();
                    }
                    return match self.answers().len() > ANSWERS_BYTES_MAX {
                        true => Progress::Sending,
                        false => Progress::Bytes,
                    };
                }
                Err(error) if self.session.is_none() => return self.refuse_role(None, &error),
                Err(error) => return self.end(Some(&error)),
            };
            let step = match (incoming, &mut self.session) {
                (Incoming::Message(received), Some(session)) => session.handle(received, runs_on),
                (Incoming::Opening(Opening::Tls), _)
                    if self.shared.encryption.is_some() && !self.is_encrypted =>
                {
                    // What came behind the request came before it was answered, and is not the
                    // client's perhaps.
                    if self.input.has_waiting() {
                        let message = "received unencrypted data after SSL request".to_owned();
                        return self.refuse_role(None, &violation(message));
                    }
                    self.greeting.encryption(true);
                    self.is_encrypted = true;
                    return Progress::Encryption;
                }
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
                    let asked = match ask(&startup, &mut self.greeting) {
                        Ok(asked) => Box::new(asked),
                        Err(error) => return self.refuse_role(None, &error),
                    };
                    let role = asked.role.clone();
                    match self.begin(asked) {
                        Ok(step) => step,
                        Err(error) => return self.refuse_role(Some(&role), &error),
                    }
                }
                (Incoming::Message(received), None) => {
                    let proved = match received.message {
                        Ok(Message::Password(body)) => match &mut self.asked {
                            Some(asked) => asked.take(body, &mut self.greeting),
                            None => Err(Error::internal("a message came before the startup")),
                        },
                        Ok(Message::Terminate) => return self.end(None),
                        Ok(_) => Err(violation("expected SASL response".to_owned())),
                        Err(error) => Err(error),
                    };
                    let role = self.asked.as_ref().map(|asked| asked.role.clone());
                    let proved = match (proved, self.asked.take()) {
                        (Ok(true), Some(asked)) => self.start(*asked),
                        (Ok(_), asked) => {
                            self.asked = asked;
                            Ok(Step::Next)
                        }
                        (Err(error), _) => Err(error),
                    };
                    match proved {
                        Ok(step) => step,
                        Err(error) => return self.refuse_role(role.as_deref(), &error),
                    }
                }
            };
            if let Some(progress) = self.take_step(step) {
                return progress;
            }
        }
        Progress::Yield
    }

    /// Takes the outcome of what was submitted.
    pub fn complete(&mut self, outcome: Result<Reply>, observed: LogEpoch) {
        if std::mem::take(&mut self.awaits_disk) {
            let rested_on = self.rests_on.take();
            if let (Err(error), Some((_, answered))) = (outcome, rested_on) {
                // What was done may be lost, and the answers say that it is not.
                self.answers().truncate(answered);
                self.end(Some(&error));
            }
            return;
        }
        if let Some(session) = &mut self.session {
            if session.is_early() {
                let (epoch, answered) = match self.rests_on {
                    Some((epoch, answered)) => (epoch.max(observed), answered),
                    None => (observed, session.answers().len()),
                };
                self.rests_on = Some((epoch, answered));
            }
            let step = session.complete(outcome);
            self.take_step(step);
        }
    }

    fn take_step(&mut self, step: Step) -> Option<Progress> {
        if let Some(session) = &self.session {
            self.input.copies(session.is_copying());
        }
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

    /// Ends a connection that gets no session.
    fn refuse_role(&mut self, role: Option<&str>, error: &Error) -> Progress {
        let refusal = match self.lacks_encryption() {
            true => Refusal::NoEncryption,
            false => refusal_of(error),
        };
        let monitor = &self.shared.monitor;
        monitor.refuse(refusal, Some(&self.peer), role, error.message());
        self.end(Some(error))
    }

    /// Whether it comes from another machine, whose clients must use TLS, without it.
    fn lacks_encryption(&self) -> bool {
        let encryption = self.shared.encryption.as_ref();
        encryption.is_some_and(|it| it.is_required)
            && !self.is_encrypted
            && !authentication::is_local(&self.peer)
    }

    /// Where it comes from.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Ends the session, with an error if that is why.
    pub fn end(&mut self, error: Option<&Error>) -> Progress {
        if let Some(error) = error {
            self.answers().error(Severity::Fatal, error, None);
            self.shared.monitor.count_error(error);
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
            self.shared.monitor.sessions.end(session.number());
        }
    }
}

/// What a startup message asks for.
///
/// # Errors
/// 28000 without a role, 3D000 for another database, 0A000 for replication.
fn ask(startup: &Startup<'_>, greeting: &mut Answers) -> Result<Asked> {
    let unknown = || startup.parameters().map(|(name, _)| name);
    let unknown = || unknown().filter(|name| name.starts_with("_pq_."));
    if startup.minor > MINOR || unknown().next().is_some() {
        greeting.negotiate_version(startup.minor.min(MINOR), unknown());
    }
    let role = startup.parameter("user").ok_or_else(|| {
        let message = "no PostgreSQL user name specified in startup packet";
        Error::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message)
    })?;
    if startup
        .parameter("replication")
        .is_some_and(|it| it != "false")
    {
        return Err(Error::unsupported("a connection for replication"));
    }
    let parameters = startup.parameters();
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(Asked {
        role: role.to_owned(),
        minor: startup.minor,
        parameters: parameters.collect(),
        exchange: None,
    })
}

impl Asked {
    /// Takes what the client says to prove who it is. Returns whether it has.
    ///
    /// # Errors
    /// 28P01 when it cannot, 08P01 for what says nothing about that.
    fn take(&mut self, body: &[u8], greeting: &mut Answers) -> Result<bool> {
        let Some(exchange) = &mut self.exchange else {
            return Err(violation("a password was not asked for".to_owned()));
        };
        match exchange.take(body)? {
            authentication::Reply::Continue(data) => {
                greeting.authentication(AuthenticationStep::SaslContinue(data.as_bytes()));
                Ok(false)
            }
            authentication::Reply::Proved(data) => {
                greeting.authentication(AuthenticationStep::SaslFinal(data.as_bytes()));
                Ok(true)
            }
        }
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Client {
    /// Begins the session, or has the client prove first who it is.
    fn begin(&mut self, mut asked: Box<Asked>) -> Result<Step> {
        if self.lacks_encryption() {
            let message = "connections from other machines must be encrypted";
            let error = Error::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message);
            return Err(error.with_hint("Connect with sslmode=require."));
        }
        let encryption = self.shared.encryption.as_ref();
        let catalog = self.shared.database.engine().catalog();
        let roles = catalog.roles();
        if self.shared.authentication.trusts(&self.peer, roles) {
            return self.start(*asked);
        }
        let binding = encryption.filter(|_| self.is_encrypted);
        let binding = binding.and_then(|encryption| encryption.end_point.clone());
        let exchange = Exchange::new(&asked.role, roles, &self.shared.pretended, binding);
        (self.greeting).authentication(AuthenticationStep::Sasl(exchange.mechanisms()));
        asked.exchange = Some(exchange);
        self.asked = Some(asked);
        self.input.begin_authentication();
        Ok(Step::Next)
    }

    /// Begins the session, and greets the client.
    fn start(&mut self, asked: Asked) -> Result<Step> {
        let database = &self.shared.database;
        let role = &asked.role;
        let refused = |message: String| {
            Err(Error::new(
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                message,
            ))
        };
        match database.engine().catalog().roles().get(role) {
            None => return refused(format!("role \"{role}\" does not exist")),
            Some(known) if !known.can_login => {
                return refused(format!("role \"{role}\" is not permitted to log in"));
            }
            Some(_) => {}
        }
        // Many drivers ask for a database of the role's name when they are told nothing else.
        let name = asked.parameter("database").unwrap_or(role);
        if name != NAME && name != role {
            let message = format!("database \"{name}\" does not exist");
            let error = Error::new(SqlState::INVALID_CATALOG_NAME, message);
            return Err(error.with_hint(format!("The only database is {NAME}.")));
        }
        let mut session = Session::new(database.session_as(role)?, self.shared.monitor.clone());
        let answers = session.answers();
        answers.append(&mut self.greeting);
        answers.authentication(AuthenticationStep::Ok);
        let parameters = asked.parameters.iter();
        let parameters = parameters.map(|(name, value)| (name.as_str(), value.as_str()));
        if let Err(error) = session.begin(parameters) {
            self.greeting.append(session.answers());
            return Err(error);
        }
        let secret: Box<[u8]> = match asked.minor < MINOR_LONG_SECRETS {
            true => Box::new(random::<4>()?),
            false => Box::new(random::<32>()?),
        };
        let cancels = session.cancel_handle();
        let number = u32::try_from(session.number())
            .map_err(|_| Error::internal("the number of a session has more than 31 bits"))?;
        (self.shared.cancellations).register(number, secret.clone(), cancels);
        session.answers().backend_key_data(number, &secret);
        session.ready();
        let info = SessionInfo {
            role: session.role().to_owned(),
            application: session.application(),
            client: self.peer.to_string(),
        };
        self.shared.monitor.begin_session(session.number(), info);
        self.number = Some(number);
        self.session = Some(Box::new(session));
        self.input.begin_session();
        Ok(Step::Next)
    }
}

/// Bytes that no attacker can guess.
fn random<const N: usize>() -> Result<[u8; N]> {
    entropy().map_err(|error| {
        let message = format!("the system gives no random numbers: {error}");
        Error::new(SqlState::IO_ERROR, message)
    })
}
