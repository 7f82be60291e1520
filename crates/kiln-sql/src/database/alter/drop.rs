//! DROP COLUMN and DROP CONSTRAINT.

use kiln_engine::{CatalogChange, Commented};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ForeignKey};

use super::super::dependents::{self, Dependent};
use super::super::result::Notice;
use super::super::sequences;
use super::super::views;
use super::Alteration;
use crate::compile::{ddl, name_of, quote_identifier, short_name};
use crate::parse::DroppedPart;

impl Alteration<'_> {
    pub(super) fn drop_column(
        &mut self,
        change: &mut CatalogChange<'_>,
        dropped: &DroppedPart,
    ) -> Result<()> {
        let id = match self.draft.column(&dropped.name) {
            Ok(id) => id,
            Err(error) if dropped.if_exists => {
                self.skip(&error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let name = name_of(&dropped.name);
        let table = short_name(&self.draft.schema.name);
        let what = format!("column {} of table {table}", quote_identifier(&name));
        let mut depending: Vec<(Dependent, String)> = Vec::new();
        for key in self.references(change, |key| key.contains(&id)) {
            depending.push((key, what.clone()));
        }
        let generated = self.draft.generated_from(id)?;
        for column in generated.iter() {
            let dependent = Dependent::Column {
                table: self.draft.schema.name.clone(),
                name: self.draft.schema.columns[column.index()].name.clone(),
            };
            depending.push((dependent, what.clone()));
        }
        for trigger in &self.draft.schema.triggers {
            if ddl::columns_of_trigger(&self.draft.schema, trigger)?.contains(&id) {
                let dependent = Dependent::Trigger {
                    table: self.draft.schema.name.clone(),
                    name: trigger.name.clone(),
                };
                depending.push((dependent, what.clone()));
            }
        }
        let views = views::of_column(change.catalog(), &self.draft.schema.name, &name);
        depending.extend(views);
        let owned = self.owned_sequences(change, &name);
        for sequence in &owned {
            let defaults = sequences::dependents(change.catalog(), sequence, None).into_iter();
            let others = defaults.filter(|it| !self.is_default_of(it, id));
            depending.extend(others.map(|it| (it, format!("sequence {}", short_name(sequence)))));
        }
        self.cascade(change, &what, depending, dropped.cascade)?;
        let id = self.draft.column(&dropped.name)?;
        self.draft.drop_column(id)?;
        // Another column may get the name in the same statement.
        let column = Commented::Column(self.draft.schema.name.clone(), name.clone());
        change.comment(column, "");
        owned.iter().try_for_each(|name| change.drop_sequence(name))
    }

    pub(super) fn drop_constraint(
        &mut self,
        change: &mut CatalogChange<'_>,
        dropped: &DroppedPart,
    ) -> Result<()> {
        let (name, table) = (name_of(&dropped.name), self.draft.schema.name.clone());
        if !self.draft.drop_constraint(&name) {
            let on = name_in_schema(&table);
            let message = format!("constraint \"{name}\" of relation \"{on}\" does not exist");
            let error = Error::new(SqlState::UNDEFINED_OBJECT, message);
            if dropped.if_exists {
                self.skip(&error);
                return Ok(());
            }
            return Err(error);
        }
        let (quoted, table) = (quote_identifier(&name), short_name(&table));
        let what = format!("constraint {quoted} on table {table}");
        let without_key = self.references(change, |referenced| {
            let is_key = |key: &[ColumnId]| {
                key.len() == referenced.len() && key.iter().all(|it| referenced.contains(it))
            };
            !self.draft.unique_keys().any(is_key)
        });
        let depending = without_key.into_iter();
        let depending = depending
            .map(|it| (it, format!("index {quoted}")))
            .collect();
        self.cascade(change, &what, depending, dropped.cascade)
    }

    fn skip(&mut self, error: &Error) {
        let message = format!("{}, skipping", error.message());
        self.notices.push(Notice::new(message));
    }

    /// The foreign keys that refer to the table, by columns of which `is_meant` says yes; the
    /// columns are the draft's. Keys of the table itself are among them.
    fn references(
        &self,
        change: &CatalogChange<'_>,
        is_meant: impl Fn(&[ColumnId]) -> bool,
    ) -> Vec<Dependent> {
        let name = &self.draft.schema.name;
        let is_of_others = |key: &ForeignKey| {
            let columns = key.referenced.iter();
            let columns: Vec<ColumnId> = columns
                .filter_map(|column| self.draft.column_after(*column))
                .collect();
            is_meant(&columns)
        };
        let mut found = dependents::references(change, name, is_of_others);
        found.retain(|key| key.table() != name);
        let own = self.draft.schema.foreign_keys.iter();
        let own = own.filter(|key| key.table == *name && is_meant(&key.referenced));
        found.extend(own.map(|key| Dependent::Reference {
            table: name.clone(),
            constraint: key.name.clone(),
        }));
        found
    }

    fn owned_sequences(&self, change: &CatalogChange<'_>, column: &str) -> Vec<String> {
        let owned = change.catalog().owned_sequences(&self.draft.schema.name);
        let owned = owned.filter(|sequence| {
            let owner = sequence.definition().owner.as_ref();
            owner.is_some_and(|owner| owner.column == column)
        });
        owned.map(|sequence| sequence.name().to_owned()).collect()
    }

    /// Whether it is the default value of this column of the draft.
    fn is_default_of(&self, dependent: &Dependent, id: ColumnId) -> bool {
        let schema = &self.draft.schema;
        matches!(dependent, Dependent::Default { table, name, .. }
            if *table == schema.name && *name == schema.columns[id.index()].name)
    }

    /// Takes away what depends on what goes, or refuses.
    fn cascade(
        &mut self,
        change: &mut CatalogChange<'_>,
        what: &str,
        depending: Vec<(Dependent, String)>,
        cascade: bool,
    ) -> Result<()> {
        if !depending.is_empty() && !cascade {
            return Err(dependents::refusal(what, &depending));
        }
        let depending: Vec<Dependent> = depending.into_iter().map(|(it, _)| it).collect();
        for dependent in &depending {
            match dependent {
                Dependent::Reference { table, constraint } if *table == self.draft.schema.name => {
                    self.draft.drop_constraint(constraint);
                }
                Dependent::Default { table, name, .. } if *table == self.draft.schema.name => {
                    let columns = self.draft.schema.columns.iter_mut();
                    let own = columns.filter(|column| column.name == *name);
                    own.for_each(|column| column.default = None);
                }
                Dependent::Trigger { name, .. } => {
                    self.draft.schema.triggers.retain(|it| it.name != *name);
                }
                Dependent::Column { name, .. } => {
                    if let Some(column) = self.draft.schema.column(name) {
                        self.draft.drop_column(column)?;
                    }
                }
                other => other.remove(change)?,
            }
        }
        self.notices.extend(dependents::cascaded(&depending));
        Ok(())
    }
}
