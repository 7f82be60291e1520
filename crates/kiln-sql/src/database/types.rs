//! Types of users by name, and what depends on one.

use kiln_engine::{Catalog, CatalogChange};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::{Column, ColumnId, TableSchema};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::ObjectName;

use super::alter;
use super::dependents::{self, Dependent};
use super::result::Notice;
use super::views;
use crate::catalog::is_auxiliary;
use crate::compile::ddl::{columns_of_generated, names_type};
use crate::compile::{
    fail, name_of, object_name, plain_type, position_of, quote_identifier, unsupported,
};
use crate::parse::type_of_text;

/// The type of PostgreSQL's own that has a name.
pub(super) fn plain(name: &str) -> Option<DataType> {
    let written = type_of_text(&quote_identifier(name)).ok()?;
    plain_type(&written, None).ok()
}

pub(super) fn undefined(name: &str, written: &ObjectName) -> Error {
    let message = format!("type \"{name}\" does not exist");
    fail(SqlState::UNDEFINED_OBJECT, message, position_of(written))
}

/// The name of an enum or a domain, all of which are in `public`.
///
/// # Errors
/// 0A000 for another schema that there is; 3F000.
pub(super) fn type_name(catalog: &Catalog, written: &ObjectName) -> Result<String> {
    if let [schema, _] = written.0.as_slice()
        && let Some(schema) = schema.as_ident().map(name_of)
        && catalog.has_schema(&schema)
        && schema != "public"
    {
        let what = "an enum or domain of another schema than public";
        return Err(unsupported(what, position_of(written)));
    }
    object_name(written)
}

/// What depends on types that go, each with that of which it does, once.
#[derive(Default)]
pub(super) struct Found {
    pub all: Vec<(Dependent, String)>,
}

/// A type that expressions and queries may name.
pub(super) struct NamedType<'a> {
    pub name: &'a str,
    /// Whether a column is of it, and goes for that reason.
    pub is_of: &'a dyn Fn(&Column) -> bool,
    /// Whether a column of a view that has this type is of it.
    pub shows: &'a dyn Fn(&DataType) -> bool,
}

impl Found {
    pub fn add(&mut self, it: Dependent, on: String) {
        if !self.all.iter().any(|(known, _)| *known == it) {
            self.all.push((it, on));
        }
    }

    /// Adds the columns that depend on a type, and the views that show them.
    pub fn add_columns(&mut self, catalog: &Catalog, on: &str, is_of: impl Fn(&Column) -> bool) {
        for (table, known) in catalog.tables() {
            let columns = known.schema().shown().iter();
            for column in columns.filter(|column| is_of(column)) {
                let (table, name) = (table.to_owned(), column.name.clone());
                let views = views::of_column(catalog, &table, &name);
                self.add(Dependent::Column { table, name }, on.to_owned());
                for (view, on) in views {
                    self.add(view, on);
                }
            }
        }
    }

    /// Adds what names a type: expressions of tables and views.
    ///
    /// # Errors
    /// 0A000 for an expression of which it is not known what it names.
    pub fn add_naming(&mut self, catalog: &Catalog, of: &NamedType<'_>, on: &str) -> Result<()> {
        let on = || on.to_owned();
        for (table, known) in catalog.tables() {
            let schema = known.schema();
            let table = || table.to_owned();
            for (at, column) in schema.shown().iter().enumerate() {
                if (of.is_of)(column) {
                    continue;
                }
                let names = |text: &Option<String>| match text {
                    Some(text) => names_type(text, of.name),
                    None => Ok(false),
                };
                let (table, name) = (table(), column.name.clone());
                if names(&column.generated)? {
                    self.add(Dependent::Column { table, name }, on());
                } else if names(&column.default)? {
                    let column = ColumnId(at as u16);
                    let default = Dependent::Default {
                        table,
                        column,
                        name,
                    };
                    self.add(default, on());
                }
            }
            for name in indexes_over(schema, known, of)? {
                let table = table();
                self.add(Dependent::Index { table, name }, on());
            }
            for check in &schema.checks {
                if names_type(&check.expression, of.name)? {
                    let (table, name) = (table(), check.name.clone());
                    self.add(Dependent::Check { table, name }, on());
                }
            }
            for trigger in &schema.triggers {
                if let Some(condition) = &trigger.condition
                    && names_type(condition, of.name)?
                {
                    let (table, name) = (table(), trigger.name.clone());
                    self.add(Dependent::Trigger { table, name }, on());
                }
            }
        }
        for view in catalog.views() {
            let mut columns = view.columns.iter();
            let shows = columns.any(|(_, data_type)| (of.shows)(data_type));
            if shows || view.names_type(of.name) {
                self.add(Dependent::of_view(catalog, view.name.clone()), on());
                for (reader, on) in views::readers(catalog, &view.name) {
                    self.add(reader, on);
                }
            }
        }
        Ok(())
    }
}

/// The indexes of a table over expressions that name a type, or are of it. Those over a column of
/// the type go with that.
fn indexes_over(schema: &TableSchema, table: &Table, of: &NamedType<'_>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for hidden in schema.hidden_columns() {
        let column = &schema.columns[hidden.index()];
        let text = column.generated.as_deref().unwrap_or_default();
        let sources = columns_of_generated(schema, hidden)?;
        let goes = sources
            .iter()
            .any(|from| (of.is_of)(&schema.columns[from.index()]));
        if goes || !((of.is_of)(column) || names_type(text, of.name)?) {
            continue;
        }
        let indexes = table.indexes().iter().map(|index| index.definition());
        let unbuilt = table.schema().unbuilt.iter();
        let indexes = indexes.chain(unbuilt.map(|index| &index.definition));
        let over =
            indexes.filter(|index| index.columns.contains(&hidden) && !is_auxiliary(table, index));
        found.extend(over.map(|index| index.name.clone()));
    }
    Ok(found)
}

impl Found {
    /// Removes what depends on types, and says so.
    ///
    /// # Errors
    /// 2BP01 without `cascade`: `what` cannot be dropped then.
    pub fn remove(
        self,
        change: &mut CatalogChange<'_>,
        what: &str,
        cascade: bool,
    ) -> Result<Option<Notice>> {
        if !self.all.is_empty() && !cascade {
            return Err(dependents::refusal(what, &self.all));
        }
        let depending: Vec<Dependent> = self.all.into_iter().map(|(it, _)| it).collect();
        let notice = dependents::cascaded(&depending);
        remove(change, &depending)?;
        Ok(notice)
    }
}

/// Removes what depends on a type: views first, as they read the columns.
fn remove(change: &mut CatalogChange<'_>, depending: &[Dependent]) -> Result<()> {
    let is_view =
        |it: &&Dependent| matches!(it, Dependent::View(_) | Dependent::MaterializedView(_));
    for view in depending.iter().filter(is_view) {
        view.remove(change)?;
    }
    let is_domain = |it: &&Dependent| matches!(it, Dependent::Domain(_));
    let (domains, others): (Vec<&Dependent>, Vec<&Dependent>) =
        (depending.iter().filter(|it| !is_view(it))).partition(is_domain);
    // Domains go when nothing is of them any more.
    for dependent in others.into_iter().chain(domains) {
        match dependent {
            Dependent::Column { table, name } => alter::drop_column(change, table, name)?,
            Dependent::Check { table, name } => {
                let is_there =
                    |schema: &TableSchema| schema.checks.iter().any(|check| check.name == *name);
                // It has gone with a column where it names one of the type.
                if is_there(change.catalog().require_table(table)?.schema()) {
                    dependent.remove(change)?;
                }
            }
            Dependent::Default { table, name, .. } => {
                // Columns before it may have gone.
                let schema = change.catalog().require_table(table)?.schema();
                if let Some(column) = schema.column(name) {
                    change.alter_schema(table, |schema| {
                        schema.columns[column.index()].default = None;
                    })?;
                }
            }
            other => other.remove(change)?,
        }
    }
    Ok(())
}
