//! ALTER COLUMN: default values, identities, NOT NULL, types.

use kiln_engine::CatalogChange;
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::{Column, ColumnId};
use kiln_storage::sequence::{Identity, Sequence, SequenceDefinition};
use sqlparser::ast::{Expr, Ident};

use super::super::result::Notice;
use super::super::sequences::identity_of;
use super::Alteration;
use crate::catalog::View;
use crate::compile::{ddl, unsupported};
use crate::parse::{ColumnChange, SequenceOptions};

impl<'s> Alteration<'s> {
    pub(super) fn alter_column(
        &mut self,
        change: &mut CatalogChange<'_>,
        ident: &Ident,
        altered: &'s ColumnChange,
    ) -> Result<()> {
        let id = self.draft.column(ident)?;
        match altered {
            ColumnChange::Default(expr) => self.set_default(change, id, expr.as_deref()),
            ColumnChange::AddIdentity(identity, options) => {
                self.add_identity(change, id, (*identity, options))
            }
            ColumnChange::SetIdentity(identity, options) => {
                let sequence = self.require_identity(change, id)?;
                alter_identity(change, &sequence, *identity, options)
            }
            ColumnChange::DropIdentity { if_exists } => self.drop_identity(change, id, *if_exists),
            ColumnChange::WithoutEffect => Ok(()),
            ColumnChange::DropExpression { if_exists } => self.drop_expression(id, *if_exists),
            ColumnChange::NotNull(not_null) => {
                if !not_null && self.identity(change, id).is_some() {
                    return Err(self.is_identity(id));
                }
                self.draft.set_not_null(id, *not_null)
            }
            ColumnChange::Type(data_type, using) => {
                self.check_not_viewed(change, id)?;
                self.check_not_in_trigger(id)?;
                let view = View::of(change.catalog());
                (self.draft).set_type(id, data_type, using.as_deref(), &view)?;
                self.widen_identity(change, id)
            }
        }
    }

    fn of(&self, id: ColumnId) -> (&str, &Column) {
        let schema = &self.draft.schema;
        (&schema.name, &schema.columns[id.index()])
    }

    /// Refuses another type for a column that a view uses.
    fn check_not_viewed(&self, change: &CatalogChange<'_>, id: ColumnId) -> Result<()> {
        let (table, column) = self.of(id);
        let mut views = change.catalog().views_of_column(table, &column.name);
        let Some(view) = views.next() else {
            return Ok(());
        };
        let message = "cannot alter type of a column used by a view or rule";
        let (view, column) = (&view.name, &column.name);
        let detail = format!("rule _RETURN on view {view} depends on column \"{column}\"");
        Err(Error::unsupported(message).with_detail(detail))
    }

    /// Refuses another type for a column that a trigger names.
    fn check_not_in_trigger(&self, id: ColumnId) -> Result<()> {
        let schema = &self.draft.schema;
        for trigger in &schema.triggers {
            if ddl::columns_of_trigger(schema, trigger)?.contains(&id) {
                let (table, column) = self.of(id);
                let message = "cannot alter type of a column used in a trigger definition";
                let (trigger, column) = (&trigger.name, &column.name);
                let detail =
                    format!("trigger {trigger} on table {table} depends on column \"{column}\"");
                return Err(Error::unsupported(message).with_detail(detail));
            }
        }
        Ok(())
    }

    /// The sequence of the column, if it is an identity column.
    fn identity(&self, change: &CatalogChange<'_>, id: ColumnId) -> Option<Arc<Sequence>> {
        let (table, column) = self.of(id);
        identity_of(change.catalog(), table, &column.name)
    }

    fn is_identity(&self, id: ColumnId) -> Error {
        let (table, column) = self.of(id);
        let name = &column.name;
        let message = format!("column \"{name}\" of relation \"{table}\" is an identity column");
        Error::new(SqlState::SYNTAX_ERROR, message)
    }

    fn set_default(
        &mut self,
        change: &CatalogChange<'_>,
        id: ColumnId,
        expr: Option<&Expr>,
    ) -> Result<()> {
        if self.identity(change, id).is_some() {
            let error = self.is_identity(id);
            return Err(match expr {
                Some(_) => error,
                None => {
                    error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
                }
            });
        }
        if self.of(id).1.generated.is_some() {
            let (table, column) = self.of(id);
            let name = &column.name;
            let message =
                format!("column \"{name}\" of relation \"{table}\" is a generated column");
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            return Err(match expr {
                Some(_) => error,
                None => {
                    error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
                }
            });
        }
        let view = View::of(change.catalog());
        let default = expr.map(|expr| ddl::draft_default(&self.draft, id, expr, &view));
        self.draft.schema.columns[id.index()].default = default.transpose()?;
        Ok(())
    }

    fn drop_expression(&mut self, id: ColumnId, if_exists: bool) -> Result<()> {
        if self.draft.schema.columns[id.index()]
            .generated
            .take()
            .is_some()
        {
            return Ok(());
        }
        let (table, column) = self.of(id);
        let name = &column.name;
        let message =
            format!("column \"{name}\" of relation \"{table}\" is not a stored generated column");
        if if_exists {
            self.notices
                .push(Notice::new(format!("{message}, skipping")));
            return Ok(());
        }
        let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        Err(Error::new(state, message))
    }

    fn add_identity(
        &mut self,
        change: &mut CatalogChange<'_>,
        id: ColumnId,
        identity: (Identity, &SequenceOptions),
    ) -> Result<()> {
        let schema = &self.draft.schema;
        let column = &schema.columns[id.index()];
        let view = View::of(change.catalog());
        let made = ddl::added_identity(schema, column, identity, &view)?;
        let default = ddl::sequence_default(&made.name);
        change.create_sequence(made, None)?;
        self.draft.schema.columns[id.index()].default = Some(default);
        Ok(())
    }

    fn drop_identity(
        &mut self,
        change: &mut CatalogChange<'_>,
        id: ColumnId,
        if_exists: bool,
    ) -> Result<()> {
        if if_exists && self.identity(change, id).is_none() {
            let (table, column) = self.of(id);
            let name = &column.name;
            self.notices.push(Notice::new(format!(
                "column \"{name}\" of relation \"{table}\" is not an identity column, skipping"
            )));
            return Ok(());
        }
        let sequence = self.require_identity(change, id)?;
        self.draft.schema.columns[id.index()].default = None;
        change.drop_sequence(sequence.name())
    }

    fn require_identity(&self, change: &CatalogChange<'_>, id: ColumnId) -> Result<Arc<Sequence>> {
        self.identity(change, id).ok_or_else(|| {
            let (table, column) = self.of(id);
            let name = &column.name;
            let message =
                format!("column \"{name}\" of relation \"{table}\" is not an identity column");
            Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        })
    }

    /// The sequence of an identity column has the column's type.
    fn widen_identity(&self, change: &mut CatalogChange<'_>, id: ColumnId) -> Result<()> {
        let Some(sequence) = self.identity(change, id) else {
            return Ok(());
        };
        let (last, _) = change.sequence_state(sequence.name())?;
        let data_type = self.of(id).1.data_type.clone();
        let old = sequence.definition();
        let (new, _) = ddl::retyped_identity(old, last, data_type)?;
        change.alter_sequence(new, None)
    }
}

fn alter_identity(
    change: &mut CatalogChange<'_>,
    sequence: &Sequence,
    identity: Option<Identity>,
    options: &SequenceOptions,
) -> Result<()> {
    if options.name.is_some() || options.owned_by.is_some() || options.data_type.is_some() {
        return Err(unsupported("this option of an identity column", None));
    }
    let (last, _) = change.sequence_state(sequence.name())?;
    let old: &SequenceDefinition = sequence.definition();
    let (new, restart) = ddl::altered_identity(old, last, identity, options)?;
    change.alter_sequence(new, restart)
}
