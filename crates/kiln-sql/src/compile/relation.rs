//! Relations of the system as sources of rows.
//!
//! The first time that a statement asks for a relation, its rows fill a buffer, which the statement
//! then reads as often as it has to.

use kiln_procedure::ir::{Class, Comparison, MATCHES_MAX, Match, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use sqlparser::ast::ObjectName;

use super::bound::Bound;
use super::path::{Restriction, restriction};
use super::plan::PlanStep;
use super::produce::RowSink;
use super::{Compiler, Position, SessionValue, fail, name_of, position_of};
use crate::catalog::Relation;

impl<'a> Compiler<'a> {
    /// The relation of the system that a name means, if it means one. A name without a schema is
    /// looked for among those of `pg_catalog` before all tables.
    ///
    /// # Errors
    /// 42P01 for another name in a schema of the system.
    pub(super) fn system_relation(&self, name: &ObjectName) -> Result<Option<&'static Relation>> {
        let parts = name.0.iter().map(|part| part.as_ident().map(name_of));
        let Some(parts) = parts.collect::<Option<Vec<String>>>() else {
            return Ok(None);
        };
        let (schema, name_alone) = match parts.as_slice() {
            [name] if !self.is_with_name(name) => return Ok(Relation::find("pg_catalog", name)),
            [schema, name] | [_, schema, name] => (schema.as_str(), name.as_str()),
            _ => return Ok(None),
        };
        match (schema, Relation::find(schema, name_alone)) {
            (_, Some(relation)) => Ok(Some(relation)),
            ("information_schema" | "pg_catalog", None) => Err(fail(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{schema}.{name_alone}\" does not exist"),
                position_of(name),
            )),
            _ => Ok(None),
        }
    }

    /// What a relation asks the session for.
    ///
    /// # Errors
    /// 0A000 within a routine.
    pub(super) fn session_of(
        &mut self,
        relation: &'static Relation,
        position: Position,
    ) -> Result<Option<Bound>> {
        if !relation.is_of_session() {
            return Ok(None);
        }
        let value = match relation.name {
            "pg_settings" => SessionValue::Settings,
            "pg_prepared_statements" => SessionValue::Statements,
            "pg_cursors" => SessionValue::Portals,
            "pg_locks" => SessionValue::Locks,
            _ => SessionValue::Sessions,
        };
        self.ask_session(value, relation.name, position).map(Some)
    }

    /// Runs `body` for the rows of a relation that can satisfy the filters of the step.
    pub(super) fn emit_relation(
        &mut self,
        step: &PlanStep,
        relation: &'static Relation,
        session: Option<&Bound>,
        body: RowSink<'_, 'a>,
    ) -> Result<()> {
        let rows = relation.over(self.current_catalog()?);
        let arguments: Box<[Reg]> = match session {
            Some(session) => [self.emit(session)?].into(),
            None => Box::default(),
        };
        let buffer = match self.kept_relation(relation) {
            Some((done, buffer)) => {
                self.open();
                self.builder.push(Step::BufferFill {
                    buffer,
                    rows,
                    arguments,
                });
                self.set_truth(done, true);
                let otherwise = self.close();
                self.builder.push(Step::If {
                    condition: done,
                    then: Vec::new(),
                    otherwise,
                });
                buffer
            }
            None => {
                let buffer = self.builder.buffer(relation.columns.len());
                self.builder.push(Step::BufferFill {
                    buffer,
                    rows,
                    arguments,
                });
                buffer
            }
        };
        let matching = self.matching(step)?;
        let row: Vec<Reg> = relation
            .columns
            .iter()
            .map(|column| self.builder.register(column.data_type.clone()))
            .collect();
        self.open_ir_loop();
        for (column, register) in row.iter().enumerate() {
            self.set_column(step.source, column, *register);
        }
        let result = body(self);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching,
            row: row.into(),
            body,
        });
        result
    }

    /// The filters of a step by which its rows are found: columns that equal what is there already.
    fn matching(&mut self, step: &PlanStep) -> Result<Box<[Match]>> {
        let is_there = |value: &Bound| {
            let sources = value.sources();
            !value.is_volatile()
                && !value.is_lazy()
                && match step.buffered {
                    true => sources.is_empty(),
                    false => !sources.contains(&step.source),
                }
        };
        let found: Vec<(u16, Class, Bound)> = step
            .filters
            .iter()
            .filter_map(
                |filter| match restriction(step.source, 0, filter, &is_there)? {
                    Restriction {
                        comparison: Comparison::Equal,
                        column,
                        class,
                        value,
                        ..
                    } => Some((column, class, value.clone())),
                    _ => None,
                },
            )
            .take(MATCHES_MAX)
            .collect();
        let mut matching = Vec::with_capacity(found.len());
        for (column, class, value) in found {
            matching.push(Match {
                column,
                value: self.emit(&value)?,
                class,
            });
        }
        Ok(matching.into())
    }
}
