//! The extended protocol: statements that are prepared, bound, described and run, in pipelines that
//! end with Sync.
//!
//! A pipeline is one transaction, as in PostgreSQL: all that is executed up to a Sync. An
//! Execute that comes alone before its Sync needs no block, and goes to a worker.

use kiln_sql::{Result, Value};
use kiln_wire::format;
use kiln_wire::frontend::{Bind, Execute, Format, Parse, Target, violation};

use super::{Executed, RunsOn, Session, Step};

impl Session {
    pub(super) fn parse(&mut self, parse: Parse<'_>, runs_on: RunsOn<'_>) -> Result<Step> {
        let declared: Vec<_> = parse
            .types()
            .map(|oid| match format::parameter_type(oid) {
                Ok(known) => Ok(known),
                Err(error) => {
                    let catalog = self.sql.catalog();
                    catalog.type_numbered(oid).map(Some).ok_or(error)
                }
            })
            .collect::<Result<_>>()?;
        let statement = match self.parse_at(parse.text, &declared, runs_on) {
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
        let style = self.sql.style();
        for (position, (value, data_type)) in bind.values().zip(types).enumerate() {
            let value = match (value, bind.formats.of(position)) {
                (None, _) => Value::Null,
                (Some(bytes), Format::Text) => format::decode_text(bytes, data_type, &style)?,
                (Some(bytes), Format::Binary) => format::decode_binary(bytes, data_type)?,
            };
            values.push(value);
        }
        let portal = self.sql.bind(&statement, &values)?;
        self.sql.keep_portal(bind.portal, portal)?;
        match bind.result_formats.len() {
            0 => drop(self.formats.remove(bind.portal)),
            count => {
                let formats = (0..count).map(|at| bind.result_formats.of(at)).collect();
                self.formats.insert(bind.portal.to_owned(), formats);
            }
        }
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
            Target::Portal(name) => {
                let statement = self.sql.kept_portal(name)?.statement().clone();
                let formats = self.formats_of(name);
                self.answer_columns(&statement, &formats);
            }
        }
        Ok(Step::Next)
    }

    pub(super) fn close(&mut self, target: Target<'_>) -> Result<Step> {
        // What is not there is closed.
        match target {
            Target::Statement(name) => drop(self.sql.forget_statement(name)),
            Target::Portal(name) => self.forget_portal(name),
        }
        self.answers.close_complete();
        Ok(Step::Next)
    }

    pub(super) fn execute(
        &mut self,
        execute: Execute<'_>,
        ends_pipeline: bool,
        runs_on: RunsOn<'_>,
    ) -> Result<Step> {
        let Execute {
            portal: name,
            row_limit,
        } = execute;
        let is_alone = ends_pipeline && !self.sql.in_transaction();
        let portal = self.sql.kept_portal(name)?;
        if let RunsOn::Poller(completions, token) = runs_on
            && !portal.is_finished()
        {
            if !(is_alone && self.sql.can_submit(portal)) {
                return Ok(Step::Thread);
            }
            let portal = self.sql.take_portal(name)?;
            let executed = Some(Executed {
                name: name.to_owned(),
                row_limit,
            });
            return self.submit(portal, executed, (completions, token));
        }
        if portal.statement().command() == "COPY" {
            let statement = portal.statement().clone();
            return self.copy(&statement, is_alone, None).map(|()| Step::Next);
        }
        let mut portal = self.sql.take_portal(name)?;
        let portion = self.run(&mut portal, is_alone, row_limit);
        if let Ok(portion) = &portion {
            let formats = self.formats_of(name);
            self.answer_portion(portal.statement(), &formats, portion);
        }
        self.sql.put_portal(name, portal);
        portion.map(|_| Step::Next)
    }

    /// The end of a pipeline, and of its transaction.
    pub(super) fn sync(&mut self, runs_on: RunsOn<'_>) -> Step {
        if self.is_implicit && matches!(runs_on, RunsOn::Poller(..)) {
            return Step::Thread;
        }
        if self.sql.has_failed() {
            self.abandon_implicitly();
        } else if let Err(error) = self.end_implicitly() {
            self.answer_error(&error);
        }
        if !self.sql.in_transaction() {
            self.sql.forget_portals();
            self.formats.clear();
        }
        self.ready();
        Step::Next
    }
}
