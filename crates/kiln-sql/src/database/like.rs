//! LIKE in CREATE TABLE: the columns of another table or view, and what goes with them.
//!
//! What LIKE stands for is written as the elements of a CREATE TABLE, which take its place in the
//! statement.

use std::fmt::Write;

use kiln_engine::{Catalog, CatalogChange, Commented, NumberedObject};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{beside, name_in_schema, schema_of};
use kiln_storage::schema::{ColumnId, IndexDefinition, TableSchema};
use kiln_storage::sequence::Identity;
use kiln_storage::table::Table;

use super::indexes;
use crate::catalog::{View, is_auxiliary, relation_of};
use crate::compile::ddl;
use crate::compile::{fail, position_of, sql_name, written_name};
use crate::parse::{self, CreateTable, Included, Like, SourceStatement, Statement as Tree};

/// A CREATE TABLE without LIKE, and what follows when the table is there.
pub(super) struct Expanded {
    pub table: CreateTable,
    /// The tables whose indexes and comments it gets.
    from: Vec<(Arc<Table>, Included)>,
}

/// The statement with what each LIKE in it stands for; `None` for one without LIKE, or that IF NOT
/// EXISTS skips.
///
/// # Errors
/// 42P01 and 42809 for what has no columns to take.
pub(super) fn expanded(statement: &CreateTable, catalog: &Catalog) -> Result<Option<Expanded>> {
    let is_taken = |name: &str| catalog.table(name).is_some() || catalog.view(name).is_some();
    let is_skipped =
        statement.table.if_not_exists && is_taken(&relation_of(catalog, &statement.table.name)?);
    if statement.likes.is_empty() || is_skipped {
        return Ok(None);
    }
    let mut expanded = Expanded {
        table: statement.clone(),
        from: Vec::new(),
    };
    // The last one first: places count the columns that are written.
    for like in statement.likes.iter().rev() {
        let elements = elements(catalog, like, &mut expanded)?;
        let text = format!("CREATE TABLE elements ({})", elements.join(", "));
        let Tree::CreateTable(parsed) = parse::statement(&SourceStatement::from(text.as_str()))?
        else {
            return Err(Error::internal("LIKE stands for elements of a table"));
        };
        let table = &mut expanded.table;
        let columns = parsed.table.columns;
        table
            .table
            .columns
            .splice(like.before..like.before, columns);
        table.table.constraints.extend(parsed.table.constraints);
        table.identities.extend(parsed.identities);
    }
    expanded.from.reverse();
    Ok(Some(expanded))
}

/// What a LIKE stands for.
fn elements(catalog: &Catalog, like: &Like, expanded: &mut Expanded) -> Result<Vec<String>> {
    let name = relation_of(catalog, &like.relation)?;
    if let Some(view) = catalog.view(&name) {
        let columns = view.columns.iter();
        let columns = columns.map(|(name, data_type)| format!("{} {data_type}", quoted(name)));
        return Ok(columns.collect());
    }
    let Some(table) = catalog.table(&name) else {
        let position = position_of(&like.relation);
        if catalog.sequence(&name).is_some() {
            let message = format!(
                "\"{}\" is not a table, view or composite type",
                name_in_schema(&name)
            );
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
        }
        let name = written_name(&like.relation);
        let message = format!("relation \"{name}\" does not exist");
        return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
    };
    let schema = table.schema();
    let mut elements = Vec::new();
    for column in schema.shown() {
        let data_type = match &column.domain {
            Some(domain) => format!("public.{}", quoted(domain)),
            None => column.data_type.to_string(),
        };
        let mut element = format!("{} {data_type}", quoted(&column.name));
        if column.not_null {
            element.push_str(" NOT NULL");
        }
        if let Some(generated) = column
            .generated
            .as_ref()
            .filter(|_| like.included.generated)
        {
            let _ = write!(element, " GENERATED ALWAYS AS ({generated}) STORED");
        }
        match identity_of(catalog, &name, &column.name) {
            Some(identity) if like.included.identity => element.push_str(&identity),
            Some(_) => {}
            None => {
                if let Some(default) = column.default.as_ref().filter(|_| like.included.defaults) {
                    let _ = write!(element, " DEFAULT {default}");
                }
            }
        }
        elements.push(element);
    }
    if like.included.constraints {
        for check in &schema.checks {
            let (name, expression) = (quoted(&check.name), &check.expression);
            elements.push(format!("CONSTRAINT {name} CHECK ({expression})"));
        }
    }
    if like.included.indexes {
        let keys = declared(table).filter(|index| index.constraint);
        for key in keys {
            let is_primary = match schema.primary_key.is_empty() {
                true => schema.primary_key_name.as_ref() == Some(&key.name),
                false => key.columns == schema.primary_key,
            };
            let kind = match (is_primary, key.nulls_equal) {
                (true, _) => "PRIMARY KEY",
                (_, true) => "UNIQUE NULLS NOT DISTINCT",
                _ => "UNIQUE",
            };
            let (list, deferral) = (column_list(table, &key.columns), key.deferral.clause());
            elements.push(format!("{kind} ({list}){deferral}"));
        }
    }
    expanded.from.push((table.clone(), like.included));
    Ok(elements)
}

/// The identity of a column, as it is declared.
fn identity_of(catalog: &Catalog, table: &str, column: &str) -> Option<String> {
    let mut owned = catalog.owned_sequences(table);
    owned.find_map(|sequence| {
        let definition = sequence.definition();
        let owner = definition.owner.as_ref()?;
        let identity = owner.identity.filter(|_| owner.column == column)?;
        let when = match identity {
            Identity::Always => "ALWAYS",
            Identity::ByDefault => "BY DEFAULT",
        };
        let (increment, min, max) = (definition.increment, definition.min, definition.max);
        let (start, cache) = (definition.start, definition.cache);
        let cycle = if definition.cycle {
            "CYCLE"
        } else {
            "NO CYCLE"
        };
        Some(format!(
            " GENERATED {when} AS IDENTITY (INCREMENT {increment} MINVALUE {min} MAXVALUE {max} \
             START {start} CACHE {cache} {cycle})"
        ))
    })
}

/// The indexes that a user has declared.
fn declared(table: &Table) -> impl Iterator<Item = &IndexDefinition> {
    let indexes = table.indexes().iter().map(|index| index.definition());
    let unbuilt = table.schema().unbuilt.iter();
    let indexes = indexes.chain(unbuilt.map(|index| &index.definition));
    indexes.filter(|index| !index.columns.is_empty() && !is_auxiliary(table, index))
}

fn column_list(table: &Table, columns: &[ColumnId]) -> String {
    let columns = columns.iter();
    let names = columns.map(|column| quoted(&table.schema().columns[column.index()].name));
    names.collect::<Vec<_>>().join(", ")
}

/// What follows the table in CREATE INDEX.
fn key_text(schema: &TableSchema, index: &IndexDefinition) -> String {
    let mut unbuilt = schema.unbuilt.iter();
    let unbuilt = unbuilt.find(|known| known.definition.name == index.name);
    let class = |at: usize| unbuilt.and_then(|index| index.classes.get(at)?.as_ref());
    let text = |(at, column): (usize, &ColumnId)| {
        let column = &schema.columns[column.index()];
        let key = match &column.generated {
            Some(text) if column.is_hidden() => format!("({text})"),
            _ => quoted(&column.name),
        };
        match class(at) {
            Some(class) => format!("{key} {class}"),
            None => key,
        }
    };
    let keys: Vec<String> = index.key_columns().iter().enumerate().map(text).collect();
    let predicate = index.predicate().map(|it| &schema.columns[it.index()]);
    let predicate = predicate.and_then(|column| ddl::predicate_text(column.generated.as_deref()?));
    let predicate = predicate.map_or(String::new(), |text| format!(" WHERE {text}"));
    let nulls = if index.nulls_equal {
        " NULLS NOT DISTINCT"
    } else {
        ""
    };
    let method = index.method.name();
    format!("USING {method} ({}){nulls}{predicate}", keys.join(", "))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Expanded {
    /// Gives the table that was created the indexes and comments of those that it is like.
    pub fn follow(&self, change: &mut CatalogChange<'_>, name: &str) -> Result<()> {
        for (from, included) in &self.from {
            if included.indexes {
                for index in declared(from).filter(|index| !index.constraint) {
                    let unique = if index.unique { "UNIQUE " } else { "" };
                    let (on, key) = (sql_name(name), key_text(from.schema(), index));
                    add_index(change, &format!("CREATE {unique}INDEX ON {on} {key}"))?;
                }
            }
            if included.comments {
                say(change, from, name, *included)?;
            }
        }
        Ok(())
    }
}

fn add_index(change: &mut CatalogChange<'_>, text: &str) -> Result<()> {
    let Tree::CreateIndex(statement) = parse::statement(&SourceStatement::from(text))? else {
        return Err(Error::internal("an index was declared as something else"));
    };
    let declaration = ddl::create_index(&statement, &View::of(change.catalog()))?;
    match declaration {
        Some(declaration) => indexes::add(change, declaration),
        None => Ok(()),
    }
}

/// Says of a table's columns, constraints and indexes what is said of those that they are like.
fn say(change: &mut CatalogChange<'_>, from: &Table, name: &str, included: Included) -> Result<()> {
    let table = change.catalog().require_table(name)?.clone();
    let like = &from.schema().name;
    let index_like = |wanted: &str| {
        let original = declared(from).find(|index| index.name == wanted)?;
        let key = key_text(from.schema(), original);
        let mut own = declared(&table);
        own.find(|index| {
            let is_same = index.unique == original.unique && index.deferral == original.deferral;
            is_same
                && index.constraint == original.constraint
                && key_text(table.schema(), index) == key
        })
    };
    let mut said = Vec::new();
    for (on, text) in change.catalog().comments().iter() {
        let to = match on {
            Commented::Column(of, column) if of == like => {
                Some(Commented::Column(name.to_owned(), column.clone()))
            }
            Commented::Object(NumberedObject::Constraint(of, constraint)) if of == like => {
                let is_check = included.constraints
                    && (from.schema().checks.iter()).any(|check| check.name == *constraint);
                let own = match is_check {
                    true => Some(constraint.clone()),
                    false => (index_like(constraint).filter(|_| included.indexes))
                        .map(|index| index.name.clone()),
                };
                own.map(|own| Commented::Object(NumberedObject::Constraint(name.to_owned(), own)))
            }
            Commented::Object(NumberedObject::Index(index))
                if included.indexes && schema_of(index) == schema_of(like) =>
            {
                index_like(name_in_schema(index)).map(|index| {
                    Commented::Object(NumberedObject::Index(beside(name, &index.name)))
                })
            }
            _ => None,
        };
        said.extend(to.map(|to| (to, text.to_owned())));
    }
    for (on, text) in said {
        change.comment(on, &text);
    }
    Ok(())
}
