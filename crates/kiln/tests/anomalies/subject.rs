//! The databases that the scripts are run against.

use kiln::{Configuration, Database, Error, Options, Protocol, Session, SqlState};
use kiln_engine::BasisFactors;

/// A database that claims to run transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The database under this protocol.
    Protocol(Configuration),
    /// Deliberately wrong, so that the scripts can be seen to fail: every statement is a
    /// transaction of its own whatever its block says, and what was done stays done after ROLLBACK.
    WithoutBlocks,
}

impl Subject {
    /// An empty database.
    pub fn open(self) -> Database {
        let protocol = match self {
            Subject::Protocol(protocol) => protocol,
            Subject::WithoutBlocks => Protocol::Silo.into(),
        };
        // Where the data are divided by chance, transcripts would be as well.
        let mut factors = BasisFactors::default();
        factors.protocols.partitions = 1;
        // A transaction is never given up because a step takes its time.
        let options = Options::new()
            .workers(1)
            .pin_workers(false)
            .idle_in_transaction_ms(0)
            .basis_factors(factors)
            .protocol(protocol);
        Database::open(options).expect("the options are good")
    }

    /// Whether transactions claim to happen in the order of real time.
    pub fn is_strict(self) -> bool {
        match self {
            Subject::Protocol(configuration) => configuration.is_strict(),
            Subject::WithoutBlocks => true,
        }
    }

    /// A session. A transaction that loses is not replayed in it: the transcripts show what the
    /// protocol decides, and a replay would wait for scripts that never go on.
    pub fn connect(self, database: &Database) -> Client {
        let mut session = database.session().expect("a session is free");
        session.set_replay(false);
        Client {
            session,
            has_blocks: self != Subject::WithoutBlocks,
        }
    }
}

/// A session that answers in text.
pub struct Client {
    session: Session,
    has_blocks: bool,
}

/// What a statement answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The rows of a query or of RETURNING, with commas between the columns.
    Rows(Vec<String>),
    /// The command tag of another statement.
    Done(String),
    /// The SQLSTATE of an error, and what else is said about it.
    Refused { state: SqlState, detail: String },
}

impl Answer {
    /// The rows, if there are some.
    pub fn rows(&self) -> Option<&[String]> {
        match self {
            Answer::Rows(rows) => Some(rows),
            _ => None,
        }
    }

    /// Whether two runs cannot be told apart by their answers. Details of errors do not count: they
    /// may name what only one protocol has.
    pub fn agrees_with(&self, other: &Answer) -> bool {
        match (self, other) {
            (Answer::Refused { state, .. }, Answer::Refused { state: same, .. }) => state == same,
            _ => self == other,
        }
    }
}

impl Client {
    /// Runs one statement.
    pub fn run(&mut self, sql: &str) -> Answer {
        if !self.has_blocks && ["BEGIN", "COMMIT", "ROLLBACK"].contains(&sql) {
            return Answer::Done(sql.to_owned());
        }
        match self.session.run(sql, ()) {
            Ok(done) => match done.result {
                // The first line has the names of the columns.
                Some(rows) => {
                    Answer::Rows(rows.to_csv().lines().skip(1).map(str::to_owned).collect())
                }
                None => Answer::Done(done.tag),
            },
            Err(error) => Answer::Refused {
                state: error.state(),
                detail: detail_of(&error),
            },
        }
    }
}

fn detail_of(error: &Error) -> String {
    error.detail().unwrap_or(error.message()).to_owned()
}
