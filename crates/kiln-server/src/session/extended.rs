//! The extended protocol: statements that are prepared, bound, described and run, in pipelines that end with Sync.
//!
//! A pipeline is one transaction, as in PostgreSQL: all that is executed up to a Sync, but that a definition is one of its own. An
//! Execute that comes alone before its Sync needs no block, and goes to a worker.

use kiln_sql::{Error, Result, SqlState, Value};
use kiln_wire::format;
use kiln_wire::frontend::{Bind, Execute, Format, Parse, Target, violation};

use super::describe::answer_fields;
use super::{Bound, Executed, Place, Session, Step};

/// Portals that a session may have at a time.
const PORTALS_MAX: usize = 10_000;

impl Session {
    pub(super) fn parse(&mut self, parse: Parse<'_>, place: Place<'_>) -> Result<Step> {
        let declared: Vec<_> = parse
            .types()
            .map(format::parameter_type)
            .collect::<Result<_>>()?;
        let statement = match self.parse_at(parse.text, &declared, place) {
            Ok(Some(statement)) => statement,
            Ok(None) => return Ok(Step::Thread),
            Err(error) => {
                self.sql.fail();
                self.tell_error(&error, Some(parse.text));
                return Ok(Step::SkipToSync);
            }
        };
        self.sql.keep_statement(parse.name, statement)?;
        self.answers.parse_complete();
        Ok(Step::Next)
    }

    pub(super) fn bind(&mut self, bind: Bind<'_>) -> Result<Step> {
        let statement = self.sql.kept_statement(bind.statement)?.clone();
        let types = statement.parameters();
        if bind.values().len() != types.len() {
            return Err(violation(format!(
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                bind.values().len(),
                bind.statement,
                types.len()
            )));
        }
        let columns = statement.columns().map_or(0, <[_]>::len);
        bind.result_formats.check(columns, "result column")?;
        let mut values = Vec::with_capacity(types.len());
        for (position, (value, data_type)) in bind.values().zip(types).enumerate() {
            let value = match (value, bind.formats.of(position)) {
                (None, _) => Value::Null,
                (Some(bytes), Format::Text) => format::decode_text(bytes, data_type)?,
                (Some(bytes), Format::Binary) => format::decode_binary(bytes, data_type)?,
            };
            values.push(value);
        }
        if !bind.portal.is_empty() {
            if self.portals.contains_key(bind.portal) {
                let message = format!("cursor \"{}\" already exists", bind.portal);
                return Err(Error::new(SqlState::DUPLICATE_CURSOR, message));
            }
            if self.portals.len() >= PORTALS_MAX {
                let message = format!("a session has at most {PORTALS_MAX} portals");
                return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
        }
        let portal = self.sql.bind(&statement, &values)?;
        let formats = match bind.result_formats.len() {
            0 => Box::default(),
            count => (0..count).map(|at| bind.result_formats.of(at)).collect(),
        };
        let bound = Bound { portal, formats };
        self.portals.insert(bind.portal.to_owned(), bound);
        self.answers.bind_complete();
        Ok(Step::Next)
    }

    pub(super) fn describe(&mut self, target: Target<'_>) -> Result<Step> {
        match target {
            Target::Statement(name) => {
                let statement = self.sql.kept_statement(name)?.clone();
                self.answer_parameters(&statement);
                self.answer_columns(&statement, &[]);
            }
            Target::Portal(name) if self.portals.contains_key(name) => {
                let (name, bound) = self.take_portal(name)?;
                self.answer_columns(bound.portal.statement(), &bound.formats);
                self.portals.insert(name, bound);
            }
            // A cursor is a portal that SQL has made.
            Target::Portal(name) => {
                let columns = self.sql.cursor_columns(name)?;
                answer_fields(&mut self.answers, columns, &[]);
            }
        }
        Ok(Step::Next)
    }

    pub(super) fn close(&mut self, target: Target<'_>) -> Result<Step> {
        // What is not there is closed.
        match target {
            Target::Statement(name) => drop(self.sql.forget_statement(name)),
            Target::Portal(name) if self.portals.remove(name).is_some() => {}
            Target::Portal(name) => drop(self.sql.close_cursor(name)),
        }
        self.answers.close_complete();
        Ok(Step::Next)
    }

    pub(super) fn execute(
        &mut self,
        execute: Execute<'_>,
        ends_pipeline: bool,
        place: Place<'_>,
    ) -> Result<Step> {
        let Execute {
            portal: name,
            row_limit,
        } = execute;
        let is_alone = ends_pipeline && !self.sql.in_transaction();
        let (name, mut bound) = self.take_portal(name)?;
        if let Place::Poller(completions, token) = place
            && !bound.portal.is_finished()
        {
            if !(is_alone && self.sql.can_submit(&bound.portal)) {
                self.portals.insert(name, bound);
                return Ok(Step::Thread);
            }
            // An error drops the portal, as one of its execution does.
            let executed = Some(Executed { name, row_limit });
            return self.submit(bound, executed, (completions, token));
        }
        if bound.portal.statement().command() == "COPY" {
            let statement = bound.portal.statement().clone();
            return self.copy(&statement, is_alone, None).map(|()| Step::Next);
        }
        let portion = self.run(&mut bound.portal, is_alone, row_limit);
        if let Ok(portion) = &portion {
            self.answer_portion(&bound, portion);
        }
        self.portals.insert(name, bound);
        portion.map(|_| Step::Next)
    }

    /// Appends what an execution gives that a worker has ended.
    pub(super) fn answer_execution(&mut self, bound: &mut Bound, row_limit: usize) -> Result<()> {
        let portion = bound.portal.fetch(row_limit)?;
        self.answer_portion(bound, &portion);
        Ok(())
    }

    /// The end of a pipeline, and of its transaction.
    pub(super) fn sync(&mut self, place: Place<'_>) -> Step {
        if self.is_implicit && matches!(place, Place::Poller(..)) {
            return Step::Thread;
        }
        if self.sql.has_failed() {
            self.abandon_implicitly();
        } else if let Err(error) = self.end_implicitly() {
            self.answer_error(&error);
        }
        if !self.sql.in_transaction() {
            self.portals.clear();
        }
        self.ready();
        Step::Next
    }

    fn take_portal(&mut self, name: &str) -> Result<(String, Bound)> {
        self.portals.remove_entry(name).ok_or_else(|| {
            let message = format!("portal \"{name}\" does not exist");
            Error::new(SqlState::INVALID_CURSOR_NAME, message)
        })
    }
}
