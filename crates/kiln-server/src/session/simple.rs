//! The simple protocol: statements in one text.
//!
//! Several statements are one transaction, as in PostgreSQL, but that a definition is one of its own: what comes before it in the
//! text is committed first.

use kiln_sql::parse::{SourceStatement, script};
use kiln_sql::{Error, Result, SqlState};
use kiln_wire::backend::Severity;

use super::{Bound, Place, Session, Step, Submitted};

impl Session {
    /// Runs the statements of a text.
    pub(super) fn query(&mut self, text: &str, place: Place<'_>) -> Step {
        let sources = script(text);
        if sources.is_empty() {
            self.forget_unnamed();
            self.answers.empty_query();
            self.ready();
            return Step::Next;
        }
        if let Place::Poller(completions, token) = place {
            let [source] = sources[..] else {
                return Step::Thread;
            };
            // Those of a block may have to wait for a record.
            if self.sql.in_transaction() {
                return Step::Thread;
            }
            let bound = match self.bind_source(&source) {
                Ok(bound) if self.sql.can_submit(&bound.portal) => bound,
                Ok(_) => return Step::Thread,
                Err(error) => return self.refuse(&error, Some(text), &source),
            };
            let portal = bound.portal.clone();
            return match self.sql.submit(portal, completions, token) {
                Ok(portal) => {
                    self.forget_unnamed();
                    self.submitted = Some(Submitted {
                        bound: Bound { portal, ..bound },
                        executed: None,
                    });
                    Step::Submitted
                }
                Err(error) => self.refuse(&error, None, &source),
            };
        }
        self.forget_unnamed();
        let is_alone = sources.len() == 1;
        for source in &sources {
            let bound = match self.bind_source(source) {
                Ok(bound) => bound,
                Err(error) => {
                    self.abandon_implicitly();
                    return self.refuse(&error, Some(text), source);
                }
            };
            if let Err(error) = self.run_simple(bound, is_alone) {
                self.abandon_implicitly();
                return self.refuse(&error, None, source);
            }
        }
        if let Err(error) = self.end_implicitly() {
            self.answer_error(&error);
        }
        self.ready();
        Step::Next
    }

    /// A statement of the simple protocol drops the unnamed statement and the unnamed portal.
    fn forget_unnamed(&mut self) {
        self.statements.remove("");
        self.portals.remove("");
    }

    fn bind_source(&mut self, source: &SourceStatement<'_>) -> Result<Bound> {
        let statement = self.sql.parse(source.text, &[])?;
        let portal = self.sql.bind(&statement, &[])?;
        Ok(Bound {
            portal,
            formats: Box::default(),
        })
    }

    fn run_simple(&mut self, mut bound: Bound, is_alone: bool) -> Result<()> {
        let portion = self.run(&mut bound.portal, is_alone, 0)?;
        if bound.portal.statement().columns().is_some() {
            self.answer_columns(bound.portal.statement(), &[]);
        }
        self.answer_portion(&bound, &portion);
        Ok(())
    }

    /// The whole answer of a statement that a worker has run.
    pub(super) fn answer_simple(&mut self, bound: &mut Bound) {
        match bound.portal.fetch(0) {
            Ok(portion) => {
                if bound.portal.statement().columns().is_some() {
                    self.answer_columns(bound.portal.statement(), &[]);
                }
                self.answer_portion(bound, &portion);
            }
            Err(error) => self.answer_error(&error),
        }
    }

    /// Answers an error, which ends the text; with its place in the text if that is given.
    fn refuse(&mut self, error: &Error, text: Option<&str>, source: &SourceStatement<'_>) -> Step {
        // A failed block refuses a statement for no place in it.
        let text = text.filter(|_| error.state() != SqlState::IN_FAILED_SQL_TRANSACTION);
        let placed = within(error.clone(), source);
        self.answers.error(Severity::Error, &placed, text);
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
