//! The simple protocol: statements in one text.
//!
//! Several statements are one transaction, as in PostgreSQL.

use kiln_sql::parse::{SourceStatement, script};
use kiln_sql::{Error, Portal, Portion, Result, SqlState, Statement};

use super::{POLLED_TEXT_BYTES, RunsOn, Session, Step};

/// How often a text is tried of which others were always faster.
const ATTEMPTS_MAX: u32 = 1_000;

/// Why the rest of a text is not run.
struct Refused {
    error: Error,
    /// The statement that failed; behind the last one for the end of the transaction.
    at: usize,
    /// Whether the error may have a place in the text.
    is_of_text: bool,
}

impl Session {
    /// Runs the statements of a text.
    pub(super) fn query(&mut self, text: &str, runs_on: RunsOn<'_>) -> Step {
        if matches!(runs_on, RunsOn::Poller(..)) && text.len() > POLLED_TEXT_BYTES {
            return Step::Thread;
        }
        let sources = script(text);
        if sources.is_empty() {
            self.forget_unnamed();
            self.answers.empty_query();
            self.ready();
            return Step::Next;
        }
        if let RunsOn::Poller(completions, token) = runs_on {
            let [source] = sources[..] else {
                return Step::Thread;
            };
            // Those of a block may have to wait for a record.
            if self.sql.in_transaction() {
                return Step::Thread;
            }
            let portal = match self.bind_source(&source, runs_on) {
                Ok(Some(portal)) if self.sql.can_submit(&portal) => portal,
                Ok(_) => return Step::Thread,
                Err(error) => return self.refuse(&error, Some(text), &source),
            };
            return match self.submit(portal, None, (completions, token)) {
                Ok(step) => {
                    self.forget_unnamed();
                    step
                }
                Err(error) => self.refuse(&error, None, &source),
            };
        }
        self.forget_unnamed();
        let answered = self.answers.len();
        let is_within = self.sql.in_transaction();
        for attempt in 1.. {
            self.is_unit = !is_within;
            let refused = match self.run_text(text, &sources, 0) {
                Ok(true) => break,
                Ok(false) => return Step::Next,
                Err(refused) => refused,
            };
            self.abandon_implicitly();
            // The client has received nothing of it, so it need not know that other transactions
            // were faster.
            if self.is_unit && self.sql.has_lost() && attempt < ATTEMPTS_MAX {
                self.answers.truncate(answered);
                continue;
            }
            return self.give_up(text, &sources, refused);
        }
        self.ready();
        Step::Next
    }

    /// Goes on with a text from this statement of it: the one before has ended.
    pub(super) fn go_on(&mut self, text: &str, next: usize) -> Step {
        let sources = script(text);
        match self.run_text(text, &sources, next) {
            Ok(true) => self.ready(),
            Ok(false) => {}
            Err(refused) => {
                self.abandon_implicitly();
                return self.give_up(text, &sources, refused);
            }
        }
        Step::Next
    }

    /// Answers why the rest of a text is not run.
    fn give_up(&mut self, text: &str, sources: &[SourceStatement<'_>], refused: Refused) -> Step {
        let Refused {
            error,
            at,
            is_of_text,
        } = refused;
        match sources.get(at) {
            Some(source) => self.refuse(&error, is_of_text.then_some(text), source),
            None => {
                self.answer_error(&error);
                self.ready();
                Step::Next
            }
        }
    }

    /// Runs the statements of a text from `first` on in this thread, and what they are a
    /// transaction of to its end. Says no when rows of a COPY are to come before the text goes on.
    fn run_text(
        &mut self,
        text: &str,
        sources: &[SourceStatement<'_>],
        first: usize,
    ) -> std::result::Result<bool, Refused> {
        let is_alone = sources.len() == 1;
        for (at, source) in sources.iter().enumerate().skip(first) {
            let refused = |is_of_text| {
                move |error| Refused {
                    error,
                    at,
                    is_of_text,
                }
            };
            let portal = self.bind_source(source, RunsOn::Thread);
            let Some(portal) = portal.map_err(refused(true))? else {
                continue;
            };
            let statement = portal.statement();
            if statement.command() == "COPY" {
                let copied = self.copy(&statement.clone(), is_alone, Some((text, at + 1)));
                copied.map_err(refused(false))?;
                if self.is_copying() {
                    return Ok(false);
                }
                continue;
            }
            (self.run_simple(portal, is_alone)).map_err(refused(false))?;
        }
        let ended = self.end_implicitly().map_err(|error| Refused {
            error,
            at: sources.len(),
            is_of_text: false,
        });
        ended.map(|()| true)
    }

    /// A statement of the simple protocol drops the unnamed statement and the unnamed portal.
    fn forget_unnamed(&mut self) {
        self.sql.forget_statement("");
        self.forget_portal("");
    }

    /// `None` when that must not be done here.
    fn bind_source(
        &mut self,
        source: &SourceStatement<'_>,
        runs_on: RunsOn<'_>,
    ) -> Result<Option<Portal>> {
        let Some(statement) = self.parse_at(source.text, &[], runs_on)? else {
            return Ok(None);
        };
        self.sql.bind(&statement, &[]).map(Some)
    }

    fn run_simple(&mut self, mut portal: Portal, is_alone: bool) -> Result<()> {
        let portion = self.run(&mut portal, is_alone, 0)?;
        self.answer_whole(portal.statement(), &portion);
        Ok(())
    }

    /// The whole answer of a statement that a worker has run.
    pub(super) fn answer_simple(&mut self, portal: &mut Portal) {
        match portal.fetch(0) {
            Ok(portion) => self.answer_whole(portal.statement(), &portion),
            Err(error) => self.answer_error(&error),
        }
    }

    fn answer_whole(&mut self, statement: &Statement, portion: &Portion) {
        if statement.columns().is_some() {
            self.answer_columns(statement, &[]);
        }
        self.answer_portion(statement, &[], portion);
    }

    /// Answers an error, which ends the text; with its place in the text if that is given.
    fn refuse(&mut self, error: &Error, text: Option<&str>, source: &SourceStatement<'_>) -> Step {
        // A failed block refuses a statement for no place in it.
        let text = text.filter(|_| error.state() != SqlState::IN_FAILED_SQL_TRANSACTION);
        let placed = within(error.clone(), source);
        self.tell_error(&placed, text);
        self.ready();
        Step::Next
    }
}

/// The error with its place in the text of which the statement is a part.
fn within(error: Error, source: &SourceStatement<'_>) -> Error {
    let Some(position) = error.position() else {
        return error;
    };
    let column = match position.line {
        1 => position.column + source.column - 1,
        _ => position.column,
    };
    error.at(position.line + source.line - 1, column)
}
