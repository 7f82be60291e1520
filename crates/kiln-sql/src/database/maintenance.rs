//! Statements that look after a session, its tables or the database: DISCARD, VACUUM, CHECKPOINT,
//! REINDEX and CLUSTER.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;

use super::names::Names;
use super::prepared::Statement;
use super::result::StatementResult;
use super::session::Session;
use crate::catalog::relation_of;
use crate::compile::{object_name, undefined_schema};
use crate::parse::{self, Discarded, Reorder, SourceStatement, Vacuum};

impl Session {
    /// DISCARD.
    pub(super) fn discard(&mut self, what: Discarded) -> Result<StatementResult> {
        Ok(StatementResult::of_tag(match what {
            Discarded::All => {
                if self.session.in_transaction() {
                    let message = "DISCARD ALL cannot run inside a transaction block";
                    return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
                }
                self.names = Names::default();
                self.settings.reset_all(false);
                self.settings.reset_roles();
                self.apply_settings();
                self.drop_temporary()?;
                self.session.forget_sequences();
                self.session.unlock_all();
                self.unlisten(None)?;
                "DISCARD ALL"
            }
            // Plans are made anew when the catalog changes.
            Discarded::Plans => "DISCARD PLANS",
            Discarded::Sequences => {
                self.session.forget_sequences();
                "DISCARD SEQUENCES"
            }
            Discarded::Temporary => {
                self.drop_temporary()?;
                "DISCARD TEMP"
            }
        }))
    }

    /// VACUUM: versions that no transaction sees any more are reused without it, and tables are
    /// analysed when that is asked for.
    pub(super) fn vacuum(&mut self, vacuum: &Vacuum) -> Result<StatementResult> {
        if self.session.in_transaction() {
            let message = "VACUUM cannot run inside a transaction block";
            return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        let catalog = self.seen();
        for table in &vacuum.tables {
            let name = relation_of(&catalog, table)?;
            catalog.require_table(&name)?;
        }
        if vacuum.analyze {
            let names: Vec<String> = vacuum.tables.iter().map(ToString::to_string).collect();
            let text = format!("ANALYZE {}", names.join(", "));
            let source = SourceStatement::from(text.trim());
            let analyze = parse::statement(&source)?;
            let statement = Statement::analyse(
                Arc::new(analyze.clone()),
                &source,
                Vec::new(),
                &catalog,
                catalog.path(),
            )?;
            self.define(&analyze, &statement)?;
        }
        Ok(StatementResult::of_tag("VACUUM"))
    }

    /// CHECKPOINT: where the database is durable, writes a checkpoint.
    pub(super) fn checkpoint(&mut self) -> Result<StatementResult> {
        let catalog = self.session.catalog();
        if !catalog.roles().require(self.acting_role())?.is_superuser {
            let message = "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT";
            return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        if self.session.engine().data_directory().is_some() {
            // It waits for blocks that idle, as this one would.
            if self.session.in_transaction() {
                return Err(Error::unsupported(
                    "CHECKPOINT in a transaction block is not supported",
                ));
            }
            self.session.engine().checkpoint()?;
        }
        Ok(StatementResult::of_tag("CHECKPOINT"))
    }

    /// REINDEX and CLUSTER: what they name is there.
    pub(super) fn reorder(&self, reorder: &Reorder) -> Result<StatementResult> {
        let catalog = self.seen();
        if let Some(schema) = &reorder.schema {
            let name = object_name(schema)?;
            if !catalog.has_schema(&name) {
                return Err(undefined_schema(&name));
            }
        }
        if let Some(table) = &reorder.table {
            catalog.require_table(&relation_of(&catalog, table)?)?;
        }
        if let Some(index) = &reorder.index {
            let name = relation_of(&catalog, index)?;
            if catalog.index_owner(&name).is_none() {
                let index = name_in_schema(&name);
                return Err(match &reorder.table {
                    None => {
                        let message = format!("relation \"{index}\" does not exist");
                        Error::new(SqlState::UNDEFINED_TABLE, message)
                    }
                    Some(table) => {
                        let table = relation_of(&catalog, table)?;
                        let table = name_in_schema(&table);
                        let message =
                            format!("index \"{index}\" for table \"{table}\" does not exist");
                        Error::new(SqlState::UNDEFINED_OBJECT, message)
                    }
                });
            }
        }
        Ok(StatementResult::of_tag(reorder.command))
    }
}
