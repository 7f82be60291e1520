//! Sessions: what a client asks for, and what it is answered. They do no I/O: messages go in, and
//! answers are appended to a buffer.
//!
//! A session is on a poller's thread, which must not wait, or in a thread of its own. On the
//! poller's thread ([`RunsOn::Poller`]) it submits what workers can run and takes the outcome when
//! it comes ([`Session::complete`]); what may have to wait it leaves to a thread, which handles the
//! same message again ([`Step::Thread`]): until then the message has had no effect.

mod copy;
mod copy_file;
mod describe;
mod extended;
mod greeting;
mod simple;

use std::collections::HashMap;

use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_sql::{
    CancelHandle, Completions, DataType, Error, Notice, Portal, Portion, Reply, Result, SqlState,
    Statement, StatementKind,
};
use kiln_wire::backend::{Answers, Severity, TransactionStatus};
use kiln_wire::connection::Received;
use kiln_wire::frontend::{Format, Message};

use crate::monitor::Monitor;
use copy::CopyIn;

/// Bytes of answers from which on no further message is handled before they are sent.
pub const ANSWERS_BYTES_MAX: usize = 1 << 20;

/// The setting in which clients say what they are.
const APPLICATION_NAME: &str = "application_name";
/// Bytes of a text that is parsed on a poller's thread, where all other clients wait meanwhile.
const POLLED_TEXT_BYTES: usize = 8 << 10;

/// Bytes of notifications that are taken at a time.
const NOTIFIED_BYTES: usize = 64 << 10;

/// Where a message is handled.
#[derive(Clone, Copy)]
pub enum RunsOn<'a> {
    /// On a thread that serves others as well: outcomes of what it submits arrive in the queue
    /// under the number.
    Poller(&'a Arc<Completions>, u64),
    /// In a thread that may wait.
    Thread,
}

/// What comes after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next message.
    Next,
    /// The next Sync: what comes before is skipped.
    SkipToSync,
    /// The outcome of what was submitted.
    Submitted,
    /// The same message, in a thread.
    Thread,
    /// Nothing: the client has gone.
    End,
}

/// How the rows of a portal are wanted: in text if this is empty, in the only one, or each column
/// in its own.
type Formats = Box<[Format]>;

/// What was submitted.
struct Submitted {
    portal: Portal,
    /// `None` for a statement of the simple protocol.
    executed: Option<Executed>,
    /// Whether its outcome comes when it has ended, perhaps before it is durable.
    is_early: bool,
}

/// An Execute on its way.
struct Executed {
    name: String,
    row_limit: usize,
}

/// A client's session.
pub struct Session {
    sql: kiln_sql::Session,
    answers: Answers,
    /// How the rows of portals are wanted whose clients do not want text.
    formats: HashMap<String, Formats>,
    /// The COPY whose rows the client sends.
    copy_in: Option<Box<CopyIn>>,
    /// Whether the open block is that of a pipeline or of a text with several statements, and not
    /// the client's.
    is_implicit: bool,
    /// Whether all that the present text has run can be undone together.
    is_unit: bool,
    submitted: Option<Submitted>,
    /// Whether other messages wait behind the present one.
    is_followed: bool,
    /// Whether messages of the extended protocol have come, and no Sync behind them.
    is_in_pipeline: bool,
    /// What its statements are told to when they end.
    monitor: Arc<Monitor>,
    /// When the message came whose statement runs.
    began_ns: Option<u64>,
}

impl Session {
    /// A session of a client for which `sql` runs statements.
    pub fn new(sql: kiln_sql::Session, monitor: Arc<Monitor>) -> Session {
        Session {
            sql,
            monitor,
            began_ns: None,
            answers: Answers::default(),
            formats: HashMap::new(),
            copy_in: None,
            is_implicit: false,
            is_unit: false,
            submitted: None,
            is_followed: false,
            is_in_pipeline: false,
        }
    }

    /// Its number among the sessions of the database.
    pub fn number(&self) -> u64 {
        self.sql.number()
    }

    /// The role that runs its statements.
    pub fn role(&self) -> &str {
        self.sql.role()
    }

    /// What its client calls itself.
    pub fn application(&self) -> String {
        self.sql.setting(APPLICATION_NAME).unwrap_or_default()
    }

    /// What is to be sent to the client.
    pub fn answers(&mut self) -> &mut Answers {
        &mut self.answers
    }

    /// What cancels its statements.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.sql.cancel_handle()
    }

    /// # Errors
    /// 57P01 when another session has ended it: that is the last word to its client.
    pub fn check_terminated(&self) -> Result<()> {
        self.sql.check_terminated()
    }

    /// Says that the next statement is waited for.
    pub fn ready(&mut self) {
        if self.check_terminated().is_err() {
            return;
        }
        for (name, value) in self.sql.changed_settings() {
            if name == APPLICATION_NAME {
                self.monitor
                    .sessions
                    .rename(self.sql.number(), value.clone());
            }
            if greeting::is_reported(name) {
                self.answers.parameter_status(name, &value);
            }
        }
        self.is_in_pipeline = false;
        self.tell_notifications();
        let status = match (self.sql.in_transaction(), self.sql.has_failed()) {
            (false, _) => TransactionStatus::Idle,
            (true, false) => TransactionStatus::Open,
            (true, true) => TransactionStatus::Failed,
        };
        self.answers.ready(status);
    }

    /// Tells the client what has come on the channels to which it listens: between its
    /// transactions, and as long as its answers are few.
    pub fn tell_notifications(&mut self) {
        if self.is_in_pipeline || self.is_copying() {
            return;
        }
        while self.answers.len() <= ANSWERS_BYTES_MAX {
            let told = self.sql.notifications_within(NOTIFIED_BYTES);
            if told.is_empty() {
                return;
            }
            for notification in told {
                let process = u32::try_from(notification.session).unwrap_or_default();
                let (channel, payload) = (&notification.channel, &notification.payload);
                self.answers.notification(process, channel, payload);
            }
        }
    }

    /// Whether something has come that the client was not told.
    pub fn has_notifications(&self) -> bool {
        self.sql.has_notifications()
    }

    /// Has `wake` called when something comes, if the client listens and nothing is called yet.
    pub fn wake_by(&mut self, wake: impl FnOnce() -> Box<dyn Fn() + Send + Sync>) {
        if self.sql.wants_wake() {
            self.sql.wake_by(wake());
        }
    }

    /// Handles one message.
    pub fn handle(&mut self, received: Received<'_>, runs_on: RunsOn<'_>) -> Step {
        if matches!(
            &received.message,
            Ok(Message::Query(_) | Message::Execute(_))
        ) {
            // The same message comes again when a thread handles it.
            self.began_ns.get_or_insert_with(time::now_ns);
        }
        let step = self.handle_message(received, runs_on);
        if !matches!(step, Step::Thread | Step::Submitted) && !self.is_copying() {
            self.began_ns = None;
        }
        step
    }

    fn handle_message(&mut self, received: Received<'_>, runs_on: RunsOn<'_>) -> Step {
        let Received {
            message,
            is_extended,
            ends_pipeline,
            is_followed,
        } = received;
        self.is_followed = is_followed;
        self.is_in_pipeline = is_extended;
        if self.is_copying() {
            return self.take_copy(message, runs_on);
        }
        let handled = match message {
            Ok(Message::Query(text)) => return self.query(text, runs_on),
            Ok(Message::Sync) => return self.sync(runs_on),
            Ok(Message::Terminate) => return Step::End,
            Ok(Message::Parse(parse)) => self.parse(parse, runs_on),
            Ok(Message::Bind(bind)) => self.bind(bind),
            Ok(Message::Describe(target)) => self.describe(target),
            Ok(Message::Close(target)) => self.close(target),
            Ok(Message::Execute(execute)) => self.execute(execute, ends_pipeline, runs_on),
            Ok(Message::Flush) => Ok(Step::Next),
            Ok(Message::FunctionCall) => {
                self.answer_error(&Error::unsupported("a call of a function by its number"));
                self.ready();
                return Step::Next;
            }
            Ok(Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_)) => Ok(Step::Next),
            Ok(Message::Password(_)) => Err(kiln_wire::frontend::violation(
                "a password was not asked for".to_owned(),
            )),
            Err(error) => Err(error),
        };
        match handled {
            Ok(step) => step,
            Err(error) => {
                self.fail(&error);
                if is_extended {
                    return Step::SkipToSync;
                }
                self.ready();
                Step::Next
            }
        }
    }

    /// Parses and analyses a statement; `None` when that must not be done here: it may take long,
    /// or it may wait.
    fn parse_at(
        &mut self,
        text: &str,
        declared: &[Option<DataType>],
        runs_on: RunsOn<'_>,
    ) -> Result<Option<Statement>> {
        match runs_on {
            RunsOn::Poller(..) if text.len() > POLLED_TEXT_BYTES => Ok(None),
            RunsOn::Poller(..) => Ok(self.sql.try_parse(text, declared)),
            RunsOn::Thread => self.sql.parse(text, declared).map(Some),
        }
    }

    /// Submits a portal to the workers. While other messages wait behind it, it need not be durable
    /// before they are handled: the client keeps the answers.
    fn submit(
        &mut self,
        portal: Portal,
        executed: Option<Executed>,
        (completions, token): (&Arc<Completions>, u64),
    ) -> Result<Step> {
        let is_early = self.is_followed && self.sql.is_synchronous();
        let portal = match is_early {
            true => self.sql.submit_early(portal, completions, token)?,
            false => self.sql.submit(portal, completions, token)?,
        };
        self.submitted = Some(Submitted {
            portal,
            executed,
            is_early,
        });
        Ok(Step::Submitted)
    }

    /// Whether the outcome of what was submitted comes before it is durable.
    pub fn is_early(&self) -> bool {
        (self.submitted.as_ref()).is_some_and(|submitted| submitted.is_early)
    }

    /// Takes the outcome of what was submitted.
    pub fn complete(&mut self, outcome: Result<Reply>) -> Step {
        let Some(Submitted {
            mut portal,
            executed,
            ..
        }) = self.submitted.take()
        else {
            return Step::Next;
        };
        let completed = self.sql.complete(&mut portal, outcome);
        self.end_statement(&portal, completed.as_ref().err());
        self.began_ns = None;
        let Some(Executed { name, row_limit }) = executed else {
            match completed {
                Ok(()) => self.answer_simple(&mut portal),
                Err(error) => self.answer_error(&error),
            }
            self.ready();
            return Step::Next;
        };
        let portion = completed.and_then(|()| portal.fetch(row_limit));
        if let Ok(portion) = &portion {
            let formats = self.formats_of(&name);
            self.answer_portion(portal.statement(), &formats, portion);
        }
        self.sql.put_portal(&name, portal);
        match portion {
            Ok(_) => Step::Next,
            Err(error) => {
                self.answer_error(&error);
                Step::SkipToSync
            }
        }
    }

    /// How the rows of a portal are wanted.
    fn formats_of(&self, portal: &str) -> Formats {
        self.formats.get(portal).cloned().unwrap_or_default()
    }

    /// Forgets a portal, if there is one of this name.
    fn forget_portal(&mut self, name: &str) {
        self.sql.forget_portal(name);
        self.formats.remove(name);
    }

    /// Rolls an open block back: the client has gone.
    pub fn end(&mut self) {
        self.sql.roll_back();
    }

    /// Whether a transaction block is open.
    pub fn in_transaction(&self) -> bool {
        self.sql.in_transaction()
    }

    /// Whether the open block holds a worker slot, or has failed and needs none.
    pub fn holds_slot(&self) -> bool {
        self.sql.holds_slot() || self.sql.has_failed()
    }

    /// Answers an error, which fails an open block.
    fn fail(&mut self, error: &Error) {
        self.sql.fail();
        self.answer_error(error);
    }

    fn answer_error(&mut self, error: &Error) {
        self.tell_error(error, None);
    }

    /// Answers an error, with its place in the text if that is given.
    fn tell_error(&mut self, error: &Error, text: Option<&str>) {
        if self.check_terminated().is_err() {
            return;
        }
        self.monitor.count_error(error);
        self.answers.error(Severity::Error, error, text);
    }

    /// A portal's statement has ended; one that comes behind it in the same message begins now.
    fn end_statement(&mut self, portal: &Portal, error: Option<&Error>) {
        if let Some(began_ns) = self.began_ns {
            let number = self.sql.number();
            let ended_ns = self
                .monitor
                .end_statement(number, &portal.into(), began_ns, error);
            self.began_ns = Some(ended_ns);
        }
    }

    fn answer_notices(&mut self, notices: &[Notice]) {
        for notice in notices {
            (self.answers).notice(notice.level, notice.state.as_str(), &notice.message);
        }
    }

    /// Appends notices, rows and the end of a portion.
    fn answer_portion(&mut self, statement: &Statement, formats: &[Format], portion: &Portion) {
        self.answer_notices(&portion.notices);
        let columns = statement.columns().unwrap_or_default();
        let types: Vec<&DataType> = columns.iter().map(|column| &column.data_type).collect();
        let style = self.sql.style();
        for row in &portion.rows {
            self.answer_row(&types, (formats, &style), row);
        }
        match portion.suspended {
            true => self.answers.portal_suspended(),
            false if statement.command().is_empty() => self.answers.empty_query(),
            false => self.answers.command_complete(&portion.tag),
        }
    }

    /// Opens a block that the client did not ask for, around statements that are one transaction.
    fn begin_implicitly(&mut self) -> Result<()> {
        if !self.sql.in_transaction() {
            self.sql.run("BEGIN", ())?;
            self.is_implicit = true;
        }
        Ok(())
    }

    /// Commits the block that the client did not ask for, if one is open.
    fn end_implicitly(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_implicit) && self.sql.in_transaction() {
            self.sql.run("COMMIT", ())?;
        }
        Ok(())
    }

    /// Rolls back the block that the client did not ask for, if one is open.
    fn abandon_implicitly(&mut self) {
        if std::mem::take(&mut self.is_implicit) {
            self.sql.roll_back();
        }
    }

    /// Runs a portal in this thread, or fetches from one that was run. Unless it is alone in its
    /// transaction, it runs in a block.
    fn run(&mut self, portal: &mut Portal, is_alone: bool, row_limit: usize) -> Result<Portion> {
        if portal.is_finished() {
            return portal.fetch(row_limit);
        }
        match portal.statement().kind() {
            StatementKind::Read | StatementKind::Write | StatementKind::Definition if !is_alone => {
                self.begin_implicitly()?;
            }
            // As in PostgreSQL: the block that is open is not the client's.
            StatementKind::TransactionControl
                if self.is_implicit && portal.statement().is_chained() =>
            {
                let command = portal.statement().command();
                let message = format!("{command} AND CHAIN can only be used in transaction blocks");
                return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
            }
            StatementKind::TransactionControl => {
                self.is_unit = false;
                let was_implicit = std::mem::take(&mut self.is_implicit);
                let command = portal.statement().command();
                if was_implicit && matches!(command, "BEGIN" | "START TRANSACTION") {
                    // The client's block begins with the statements before it, as in PostgreSQL.
                    return Ok(Portion {
                        tag: command.to_owned(),
                        ..Portion::default()
                    });
                }
            }
            StatementKind::Savepoint if self.is_implicit => {
                let command = portal.statement().command();
                let message = format!("{command} can only be used in transaction blocks");
                return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
            }
            _ => {}
        }
        let executed = self.sql.execute_portal(portal, row_limit);
        self.end_statement(portal, executed.as_ref().err());
        executed
    }
}
