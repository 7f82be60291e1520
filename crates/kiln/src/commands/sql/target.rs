//! What runs a shell's statements: a database of its own, or a server.

use std::path::PathBuf;

use kiln_sql::parse::SourceStatement;
use kiln_sql::{Notification, Options, Session, StatementResult, Style};
use kiln_storage::error::Error;
use kiln_wire::backend::TransactionStatus;

use super::describe;
use super::remote::Remote;
use crate::commands::database;

/// What runs the statements.
pub(super) enum Target {
    /// A session on a database of its own, which lives as long as the session.
    Own {
        session: Box<Session>,
        /// The data directory, if there is one.
        data: Option<PathBuf>,
    },
    /// A session with a server.
    Server(Box<Remote>),
}

impl Target {
    /// A database with these options: a new one, or the one that is kept in their data directory.
    ///
    /// # Errors
    /// Why there is no database.
    pub fn open(options: Options, quiet: bool) -> Result<Target, String> {
        let data = options.data_dir.clone();
        let database = database::open(options.workers(1), quiet)?;
        let session = database
            .session()
            .map_err(|error| format!("cannot open a session: {error:#}"))?;
        Ok(Target::Own {
            session: Box::new(session),
            data,
        })
    }

    /// The server that a URL names.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect(url: &str) -> Result<Target, String> {
        Ok(Target::Server(Box::new(Remote::connect(url)?)))
    }

    /// Where the data is, in words.
    pub fn place(&self) -> String {
        match self {
            Target::Own {
                data: Some(path), ..
            } => format!("a database in {}", path.display()),
            Target::Own { data: None, .. } => {
                "a database in memory, gone when you leave".to_owned()
            }
            Target::Server(server) => server.place().to_owned(),
        }
    }

    /// Runs one statement of a script.
    ///
    /// # Errors
    /// PostgreSQL's, with line and column in the script; a server's connection may be over as well
    /// (08006).
    pub fn execute(&mut self, statement: &SourceStatement<'_>) -> Result<StatementResult, Error> {
        match self {
            Target::Own { session, .. } => session.execute_statement(statement),
            Target::Server(server) => server.execute(statement),
        }
    }

    /// How the session writes values that are no texts yet.
    pub fn style(&self) -> Style<'static> {
        match self {
            Target::Own { session, .. } => session.style(),
            // It sends texts.
            Target::Server(_) => Style::default(),
        }
    }

    /// Takes what has come on the channels to which the session listens.
    pub fn notifications(&mut self) -> Vec<Notification> {
        match self {
            Target::Own { session, .. } => session.notifications(),
            Target::Server(server) => server.notifications(),
        }
    }

    /// Whether a transaction block is open, and whether it has failed.
    pub fn status(&self) -> TransactionStatus {
        match self {
            Target::Own { session, .. } => match (session.in_transaction(), session.has_failed()) {
                (_, true) => TransactionStatus::Failed,
                (true, false) => TransactionStatus::Open,
                (false, false) => TransactionStatus::Idle,
            },
            Target::Server(server) => server.status(),
        }
    }

    /// All tables, or one.
    ///
    /// # Errors
    /// That there is no such table, and a server's.
    pub fn describe(&mut self, table: Option<&str>) -> Result<String, String> {
        match (self, table) {
            (Target::Own { session, .. }, None) => Ok(describe::tables(&session.catalog())),
            (Target::Own { session, .. }, Some(name)) => describe::table(&session.catalog(), name),
            (Target::Server(server), None) => server.tables(),
            (Target::Server(server), Some(name)) => server.table(name),
        }
    }

    /// Functions and procedures; those called `name` when one is given.
    ///
    /// # Errors
    /// A server's.
    pub fn functions(&mut self, name: Option<&str>) -> Result<String, String> {
        match self {
            Target::Own { session, .. } => Ok(describe::functions(&session.catalog(), name)),
            Target::Server(server) => server.functions(name),
        }
    }
}
