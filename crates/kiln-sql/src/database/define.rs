//! Statements that define, each to what runs it.

use kiln_storage::error::{Error, Result};

use super::definition::Definition;
use super::design;
use super::result::StatementResult;
use super::{
    alter, comments, composites, domains, enums, extensions, functions, indexes, materialized,
    role_settings, roles, schemas, sequences, tables, triggers, views,
};
use crate::parse::{Drop, DropKind, Statement as Tree};

/// DROP TABLE, DROP INDEX, DROP SEQUENCE, DROP VIEW, DROP TYPE and DROP DOMAIN.
fn drop(definition: &Definition<'_>, statement: &Drop) -> Result<StatementResult> {
    let tag = match statement.kind {
        DropKind::Table => "DROP TABLE",
        DropKind::Index => "DROP INDEX",
        DropKind::Sequence => "DROP SEQUENCE",
        DropKind::View => "DROP VIEW",
        DropKind::MaterializedView => "DROP MATERIALIZED VIEW",
        DropKind::Type => "DROP TYPE",
        DropKind::Domain => "DROP DOMAIN",
    };
    let mut result = StatementResult::of_tag(tag);
    result.notices = definition.change_catalog(|change| {
        let notices = match statement.kind {
            DropKind::Table => tables::drop_tables(change, statement)?,
            DropKind::Index => indexes::drop(change, statement)?,
            DropKind::Sequence => sequences::drop(change, statement)?,
            DropKind::View | DropKind::MaterializedView => views::drop(change, statement)?,
            DropKind::Type => enums::drop(change, statement)?,
            DropKind::Domain => domains::drop(change, statement)?,
        };
        design::derive(change)?;
        Ok(notices)
    })?;
    Ok(result)
}

impl Definition<'_> {
    /// Runs the statement, whose syntax tree is `tree`.
    ///
    /// # Errors
    /// PostgreSQL's; the catalog is as before then.
    pub fn run(&self, tree: &Tree) -> Result<StatementResult> {
        match tree {
            Tree::CreateTable(statement) => tables::create_table(self, statement),
            Tree::CreateSchema(statement) => schemas::create(self, statement),
            Tree::AlterSchema(statement) => schemas::alter(self, statement),
            Tree::DropSchema(statement) => schemas::drop(self, statement),
            Tree::Extension(statement) => extensions::run(self, statement),
            Tree::CreateSequence(statement) => sequences::create(self, statement),
            Tree::AlterSequence(statement) => sequences::alter(self, statement),
            Tree::CreateIndex(statement) => indexes::create(self, statement),
            Tree::CreateView(statement) => views::create(self, statement),
            Tree::CreateMaterializedView(statement) => materialized::create(self, statement),
            Tree::RefreshMaterializedView(statement) => materialized::refresh(self, statement),
            Tree::AlterView(statement) => views::alter_view(self, statement),
            Tree::CreateEnum(statement) => enums::create(self, statement),
            Tree::CreateComposite(statement) => composites::create(self, statement),
            Tree::AlterType(statement) => enums::alter(self, statement),
            Tree::CreateDomain(statement) => domains::create(self, statement),
            Tree::AlterDomain(statement) => domains::alter(self, statement),
            Tree::CreateTrigger(statement) => triggers::create(self, statement),
            Tree::DropTrigger(statement) => triggers::drop(self, statement),
            Tree::RenameTrigger(statement) => triggers::rename(self, statement),
            Tree::CreateFunction(statement) => functions::create_function(self, statement),
            Tree::AlterTable(statement) => alter::table(self, statement),
            Tree::AlterObject(statement) => alter::object(self, statement),
            Tree::Drop(statement) => drop(self, statement),
            Tree::DropFunction(statement) => functions::drop_function(self, statement),
            Tree::Truncate(statement) => tables::truncate(self, statement),
            Tree::Analyze(names) => tables::analyze(self, names),
            Tree::CreateRole(statement) => roles::create(self, statement),
            Tree::AlterRole(statement) => roles::alter(self, statement),
            Tree::RoleSetting(statement) => role_settings::change(self, statement),
            Tree::DropRole(statement) => roles::drop(self, statement),
            Tree::Owned(statement) => roles::owned(self, statement),
            Tree::Grant(statement) => roles::grant(self, statement),
            Tree::GrantRoles(statement) => roles::grant_roles(self, statement),
            Tree::DefaultPrivileges(statement) => roles::default_privileges(self, statement),
            Tree::Comment(statement) => comments::comment(self, statement),
            _ => Err(Error::internal("the statement is none that defines")),
        }
    }
}
