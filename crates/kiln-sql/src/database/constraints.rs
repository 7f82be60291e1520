//! Constraints that a block checks when it commits, or when it is told to: SET CONSTRAINTS.
//!
//! The statements of a block leave the keys of deferred constraints to the session (`kiln_engine`'s
//! `session/constraints.rs`, and `compile/dml/deferred.rs` for how programs find them). They are
//! checked by programs that run as statements of the block.

use std::collections::HashSet;

use kiln_engine::{Arguments, Catalog};
use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_storage::deferral::{DeferredCheck, PendingCheck};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{name_in_schema, schema_of};
use kiln_storage::schema::Deferral;
use kiln_storage::table::Table;
use kiln_storage::types::Value;

use super::panics::caught;
use super::result::{Notice, StatementResult};
use super::session::Session;
use crate::catalog::{View, relation_of};
use crate::compile::dml::deferred_check_program;
use crate::compile::row_name;
use crate::parse::{DropKind, SetConstraints, Statement as Tree};

/// The check of keys that were left to the end of a transaction.
pub(super) struct Check(DeferredCheck);

/// The keys of one check: the values of each column, each key once.
#[derive(Default)]
struct Keys {
    columns: Vec<Vec<Value>>,
    seen: HashSet<Vec<u8>>,
}

impl Keys {
    fn add(&mut self, key: Vec<Value>) {
        let mut bytes = Vec::new();
        key.iter().for_each(|value| value.append_to(&mut bytes));
        if self.seen.insert(bytes) {
            self.columns.resize(key.len(), Vec::new());
            for (column, value) in self.columns.iter_mut().zip(key) {
                column.push(value);
            }
        }
    }

    fn into_arguments(self) -> Arguments {
        let columns = self.columns.into_iter().map(Value::Array);
        Arguments::from_values(&columns.collect::<Vec<Value>>())
    }
}

impl Check {
    /// The checks of all that is pending, in the order in which it was left, with the arguments of
    /// their programs.
    pub fn all(pending: Vec<PendingCheck>) -> Vec<(Check, Arguments)> {
        let mut checks: Vec<(DeferredCheck, Keys)> = Vec::new();
        for PendingCheck { check, keys } in pending {
            let at = match checks.iter().position(|(known, _)| *known == check) {
                Some(at) => at,
                None => {
                    checks.push((check, Keys::default()));
                    checks.len() - 1
                }
            };
            keys.into_iter().for_each(|key| checks[at].1.add(key));
        }
        let checks = checks.into_iter();
        checks
            .map(|(check, keys)| (Check(check), keys.into_arguments()))
            .collect()
    }
}

impl kiln_engine::Statement for Check {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        let view = View::of(catalog);
        let program = caught(|| deferred_check_program(&view, &self.0))?;
        Ok(Arc::new(program))
    }

    fn text(&self) -> Option<&str> {
        Some(&self.0.constraint)
    }
}

impl Session {
    /// SET CONSTRAINTS. What does not wait any more is checked at once.
    pub(super) fn set_constraints(&mut self, set: &SetConstraints) -> Result<StatementResult> {
        let named = self.deferrable_constraints(set)?;
        let result = StatementResult::of_tag("SET CONSTRAINTS");
        if !self.session.in_transaction() {
            let message = "SET CONSTRAINTS can only be used in transaction blocks";
            let state = SqlState::NO_ACTIVE_SQL_TRANSACTION;
            return Ok(result.with_notice(Notice::of_transaction(state, message)));
        }
        let modes = self.session.constraint_modes().unwrap_or_default();
        let mut modes = Arc::unwrap_or_clone(modes);
        match set.names.is_empty() {
            true => modes.set_all(set.is_deferred),
            false => {
                for (table, name) in &named {
                    modes.set(table, name, set.is_deferred);
                }
            }
        }
        self.session.set_constraint_modes(Some(Arc::new(modes)));
        if !set.is_deferred {
            self.check_pending(|check| {
                let is_it = |(table, name): &(String, String)| {
                    *table == check.table && *name == check.constraint
                };
                set.names.is_empty() || named.iter().any(is_it)
            })?;
        }
        Ok(result)
    }

    /// The constraints that a SET CONSTRAINTS names, each by its table and name.
    ///
    /// # Errors
    /// 42704 where there is none, 42809 for one that is not deferrable.
    fn deferrable_constraints(&self, set: &SetConstraints) -> Result<Vec<(String, String)>> {
        let catalog = self.session.catalog();
        let mut named = Vec::new();
        for written in &set.names {
            let name = row_name(written)?;
            let within = match written.0.len() {
                1 => None,
                _ => Some(relation_of(&catalog, written)?),
            };
            let within = within.as_deref().map(schema_of);
            let mut is_known = false;
            for (qualified, table) in catalog.tables() {
                if within.is_some_and(|schema| schema_of(qualified) != schema) {
                    continue;
                }
                match deferral_of(table, &name) {
                    Some(deferral) if deferral.is_deferrable() => {
                        named.push((table.schema().name.clone(), name.clone()));
                    }
                    None => continue,
                    _ => {
                        let message = format!("constraint \"{name}\" is not deferrable");
                        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
                    }
                }
                is_known = true;
            }
            if !is_known {
                let message = format!("constraint \"{name}\" does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
        }
        Ok(named)
    }

    /// Checks what the block has left of which this is true.
    ///
    /// # Errors
    /// 23503, 23505, and those of a statement of the block; it has failed then.
    pub(super) fn check_pending(
        &mut self,
        which: impl FnMut(&DeferredCheck) -> bool,
    ) -> Result<()> {
        for (check, mut arguments) in Check::all(self.session.take_pending(which)) {
            let check: Arc<dyn kiln_engine::Statement> = Arc::new(check);
            self.session.run_statement(&check, &mut arguments)?;
        }
        Ok(())
    }

    /// Refuses to change a table whose constraints wait to be checked.
    ///
    /// # Errors
    /// 55006.
    pub(super) fn refuse_pending(&self, tree: &Tree) -> Result<()> {
        let (command, names) = match tree {
            Tree::AlterTable(alter) => ("ALTER TABLE", std::slice::from_ref(&alter.name)),
            Tree::Drop(drop) if drop.kind == DropKind::Table => {
                ("DROP TABLE", drop.names.as_slice())
            }
            _ => return Ok(()),
        };
        if !self.session.has_pending(|_| true) {
            return Ok(());
        }
        let seen = self.seen();
        for name in names {
            let name = relation_of(&seen, name)?;
            let is_of = |check: &DeferredCheck| check.table == name || check.referenced == name;
            if self.session.has_pending(is_of) {
                let name = name_in_schema(&name);
                let message =
                    format!("cannot {command} \"{name}\" because it has pending trigger events");
                let hint = "Check its constraints before, with SET CONSTRAINTS ALL IMMEDIATE.";
                return Err(Error::new(SqlState::OBJECT_IN_USE, message).with_hint(hint));
            }
        }
        Ok(())
    }
}

/// When the constraint of this name is checked, if the table has one.
fn deferral_of(table: &Table, name: &str) -> Option<Deferral> {
    let schema = table.schema();
    if let Some(key) = schema.foreign_keys.iter().find(|key| key.name == name) {
        return Some(key.deferral);
    }
    let mut indexes = table.indexes().iter().map(|index| index.definition());
    if let Some(index) = indexes.find(|index| index.constraint && index.name == name) {
        return Some(index.deferral);
    }
    let mut checks = schema.checks.iter();
    checks
        .any(|check| check.name == name)
        .then_some(Deferral::No)
}
