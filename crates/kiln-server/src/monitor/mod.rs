//! What a server counts of its clients and their statements, and what it writes into its log.
//!
//! Log lines are events of `tracing`, which the program that runs the server collects. A client
//! cannot fill a disk with them: what anybody can cause without a password is written some times in
//! a while, and counted in between.

mod durations;
mod sessions;
mod throttle;

use kiln_platform::counter::Counter;
use kiln_platform::net::Peer;
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::time;
use kiln_sql::parse::without_literals;
use kiln_sql::{Error, Portal, SqlState, Value};

pub use durations::{BOUNDS_NS, Durations, Histogram};
pub use sessions::{SessionInfo, SessionStates, Sessions};
use throttle::Throttle;

/// Characters of a statement in a log line.
const LOGGED_CHARACTERS: usize = 2_000;

/// What is worth a line in the log.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Logged {
    /// Statements that took so many nanoseconds or more.
    pub slow_ns: Option<u64>,
    /// Whether their lines have the statement as it was sent, with its literals and the values of
    /// its parameters. Otherwise each literal is a question mark.
    pub values: bool,
    /// Whether a thread looks after the database and tells of checkpoints, of what makes it
    /// read-only, of blocks and of what was left out.
    pub database: bool,
    /// Transaction blocks that have been open for so many nanoseconds.
    pub block_ns: Option<u64>,
}

/// Why a connection was refused, or ended before it began a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There were as many clients as there may be.
    TooManyClients,
    /// The system had no room for another one.
    NoResources,
    /// The role could not be proved, or is not there.
    Authentication,
    /// It came from another machine without TLS.
    NoEncryption,
    /// It began no session in time.
    Timeout,
    /// All else: no such database, or no message of the protocol.
    Other,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 6] = [
        Refusal::TooManyClients,
        Refusal::NoResources,
        Refusal::Authentication,
        Refusal::NoEncryption,
        Refusal::Timeout,
        Refusal::Other,
    ];

    /// A short name for metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::TooManyClients => "too_many_clients",
            Refusal::NoResources => "no_resources",
            Refusal::Authentication => "authentication",
            Refusal::NoEncryption => "no_encryption",
            Refusal::Timeout => "timeout",
            Refusal::Other => "other",
        }
    }
}

/// A statement that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Its command ([`Statement::command`](kiln_sql::Statement::command)).
    pub command: &'a str,
    /// The procedure that it called, if it was a CALL.
    pub procedure: Option<&'a str>,
    /// Its text.
    pub text: &'a str,
    /// The values of its parameters.
    pub values: &'a [Value],
}

impl<'a> From<&'a Portal> for Ended<'a> {
    fn from(portal: &'a Portal) -> Ended<'a> {
        let statement = portal.statement();
        Ended {
            command: statement.command(),
            procedure: statement.procedure(),
            text: statement.text(),
            values: portal.values(),
        }
    }
}

/// What a server counts and logs. One for all its threads: what they count here costs them less
/// than the message that they answer.
#[derive(Debug)]
pub struct Monitor {
    /// What is worth a line.
    pub logged: Logged,
    /// When the server was made, in microseconds since 1970.
    pub started_us: i64,
    /// Connections that were accepted.
    pub accepted: Counter,
    /// Connections that had a session.
    pub sessions_begun: Counter,
    /// Connections that ended because of a panic.
    pub panics: Counter,
    /// How long statements took.
    pub durations: Durations,
    /// The sessions.
    pub sessions: Sessions,
    refused: [Counter; Refusal::ALL.len()],
    /// Errors that clients were told of, by class of their SQLSTATE. Few classes, so that a list
    /// will do.
    errors: Mutex<Vec<(String, u64)>>,
    refusals: Throttle,
}

/// Classes of errors that are counted apart: `RAISE … USING ERRCODE` makes up as many as a client
/// likes.
const CLASSES_MAX: usize = 64;

impl Default for Monitor {
    fn default() -> Monitor {
        Monitor::new(Logged::default())
    }
}

impl Monitor {
    /// One that has counted nothing.
    pub fn new(logged: Logged) -> Monitor {
        Monitor {
            logged,
            started_us: time::wall_clock_us(),
            accepted: Counter::default(),
            sessions_begun: Counter::default(),
            panics: Counter::default(),
            durations: Durations::default(),
            sessions: Sessions::default(),
            refused: Default::default(),
            errors: Mutex::default(),
            refusals: Throttle::default(),
        }
    }

    /// Counts and logs a connection that gets no session.
    pub fn refuse(&self, refusal: Refusal, peer: Option<&Peer>, role: Option<&str>, why: &str) {
        self.refused[refusal as usize].add_shared(1);
        if !self.refusals.admits(time::now_ns()) {
            return;
        }
        let peer = peer.map(Peer::to_string);
        tracing::warn!(
            cause = refusal.name(),
            client = peer,
            role,
            "connection refused: {why}"
        );
    }

    /// Logs how many refusals were not logged, once in a while.
    pub fn log_skipped(&self) {
        let skipped = self.refusals.take_skipped(time::now_ns());
        if skipped > 0 {
            tracing::warn!(skipped, "further connections were refused");
        }
    }

    /// How many connections were refused for this reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize].get()
    }

    /// A client has begun the session with this number.
    pub fn begin_session(&self, number: u64, info: SessionInfo) {
        self.sessions_begun.add_shared(1);
        self.sessions.begin(number, info);
    }

    /// Counts an error that a client is told of.
    pub fn count_error(&self, error: &Error) {
        let (state, mut errors) = (error.state(), lock(&self.errors));
        if let Some((_, count)) = errors.iter_mut().find(|(known, _)| known == state.class()) {
            *count += 1;
            return;
        }
        let class = match errors.len() < CLASSES_MAX {
            true => state.class(),
            false => "other",
        };
        match errors.iter_mut().find(|(known, _)| known == class) {
            Some((_, count)) => *count += 1,
            None => errors.push((class.to_owned(), 1)),
        }
    }

    /// How many errors clients were told of, by class of their SQLSTATE, in the order of the
    /// classes.
    pub fn errors(&self) -> Vec<(String, u64)> {
        let mut errors = lock(&self.errors).clone();
        errors.sort();
        errors
    }

    /// Notes that a statement of a session has ended, which began then. Returns the time.
    pub fn end_statement(
        &self,
        session: u64,
        ended: &Ended<'_>,
        began_ns: u64,
        error: Option<&Error>,
    ) -> u64 {
        let now_ns = time::now_ns();
        let elapsed_ns = now_ns.saturating_sub(began_ns);
        (self.durations).add(ended.command, ended.procedure, elapsed_ns);
        if self
            .logged
            .slow_ns
            .is_some_and(|slow_ns| elapsed_ns >= slow_ns)
        {
            self.log_slow(session, ended, elapsed_ns, error);
        }
        now_ns
    }

    #[cold]
    fn log_slow(&self, session: u64, ended: &Ended<'_>, elapsed_ns: u64, error: Option<&Error>) {
        let text = ended.text;
        // A password is in no log.
        let shows_values = self.logged.values && !ended.command.ends_with("ROLE");
        let statement = match shows_values {
            true => shortened(text),
            false => shortened(&without_literals(text)),
        };
        let values = shows_values.then(|| shortened(&format!("{:?}", ended.values)));
        let who = self.sessions.get(session).unwrap_or_default();
        tracing::warn!(
            duration_ms = elapsed_ns as f64 / 1e6,
            session,
            role = who.role,
            application = who.application,
            client = who.client,
            sqlstate = error.map(|error| error.state().to_string()),
            parameters = values,
            statement,
            "slow statement"
        );
    }
}

/// The class of refusals that an error which ends a connection before its session belongs to.
pub fn refusal_of(error: &Error) -> Refusal {
    match error.state() {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            Refusal::Authentication
        }
        SqlState::TOO_MANY_CONNECTIONS => Refusal::TooManyClients,
        _ => Refusal::Other,
    }
}

/// Not more of a text than is good for a line.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LOGGED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_class_and_made_up_classes_together() {
        let monitor = Monitor::default();
        let error = |state: &str| {
            Error::new(
                SqlState::parse(state).expect("it is a state"),
                String::new(),
            )
        };
        for number in 0..100 {
            monitor.count_error(&error(&format!("Z{}001", (b'0' + number % 10) as char)));
            monitor.count_error(&error(&format!("{number:02}001")));
        }
        let errors = monitor.errors();
        assert_eq!(errors.len(), CLASSES_MAX + 1);
        assert_eq!(errors.iter().map(|(_, count)| count).sum::<u64>(), 200);
        assert!(
            errors
                .iter()
                .any(|(class, count)| class == "other" && *count > 30)
        );
    }

    #[test]
    fn lines_stay_short() {
        assert_eq!(shortened("SELECT"), "SELECT");
        let long = shortened(&"ä".repeat(3 * LOGGED_CHARACTERS));
        assert_eq!(long.chars().count(), LOGGED_CHARACTERS + 1);
    }
}
