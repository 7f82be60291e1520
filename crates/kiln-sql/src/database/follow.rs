//! The table that comes of a draft: its rows in their layout, its indexes, and the rows that its
//! constraints ask about.

use std::collections::BTreeSet;

use kiln_engine::{Access, CatalogChange, NewRows, Object};
use kiln_storage::error::{Error, Result, SqlState, Subject};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{Check, ColumnId, ForeignKey, IndexDefinition, TableSchema};
use kiln_storage::types::Value;

use super::statement;
use crate::catalog::{View, base_of, is_auxiliary};
use crate::compile::ddl::Draft;
use crate::compile::{ddl, quote_identifier, sql_name};
use crate::parse::{self, SourceStatement};

/// Puts the table of the draft in the place of the one before it, and checks what its rows have to
/// satisfy.
pub(super) fn follow(change: &mut CatalogChange<'_>, draft: &mut Draft<'_>) -> Result<()> {
    draft.declare(&View::of(change.catalog()))?;
    let of_others = referring(change, draft)?;
    match draft.is_rewritten() {
        true => rewrite(change, draft)?,
        false => redeclare(change, draft)?,
    }
    for other in &of_others {
        change.alter_schema(&other.table, |schema| {
            schema.foreign_keys.clone_from(&other.keys);
        })?;
    }
    // What a recovery makes again was checked.
    if change.is_made_again() {
        return Ok(());
    }
    for name in &draft.unchecked {
        check_rows(change, &draft.schema.name, name)?;
    }
    for other in &of_others {
        for name in &other.unchecked {
            check_rows(change, &other.table, name)?;
        }
    }
    Ok(())
}

/// A table that refers to columns of the draft which are at another place, or have other values.
struct Referring {
    table: String,
    /// Its foreign keys as they are then.
    keys: Vec<ForeignKey>,
    /// Those whose rows are to be checked.
    unchecked: Vec<String>,
}

/// The other tables that have to follow.
fn referring(change: &CatalogChange<'_>, draft: &Draft<'_>) -> Result<Vec<Referring>> {
    let name = &draft.schema.name;
    let mut found = Vec::new();
    for other in change.catalog().referencing(name).filter(|it| it != name) {
        let Some(table) = change.catalog().table(other) else {
            continue;
        };
        let mut keys = table.schema().foreign_keys.clone();
        let (mut moves, mut unchecked) = (false, Vec::new());
        for key in keys.iter_mut().filter(|key| key.table == *name) {
            let mut is_converted = false;
            for column in &mut key.referenced {
                let after = draft.column_after(*column);
                let after = after.ok_or_else(|| Error::internal("a foreign key lost a column"))?;
                is_converted |= draft.is_converted(after);
                moves |= after != *column;
                *column = after;
            }
            if is_converted {
                ddl::check_reference_types(table.schema(), key, &draft.schema)?;
                unchecked.extend(key.is_valid.then(|| key.name.clone()));
            }
        }
        if moves || !unchecked.is_empty() {
            found.push(Referring {
                table: other.to_owned(),
                keys,
                unchecked,
            });
        }
    }
    Ok(found)
}

/// Declares the table in another way, and takes away and adds indexes.
fn redeclare(change: &mut CatalogChange<'_>, draft: &Draft<'_>) -> Result<()> {
    let (name, before) = (&draft.schema.name, draft.before());
    // One that goes may have its name taken by another in the same statement.
    let is_kept = |name: &str| {
        let mut indexes = before.indexes().iter().map(|index| index.definition());
        let index = indexes.find(|index| index.name == name);
        let mut kept = draft.indexes.iter();
        index.is_some_and(|index| kept.any(|kept| kept.name == name && kept.is_like(index)))
    };
    let mut gone = Vec::new();
    for index in before.indexes().iter().skip(1) {
        let index = index.definition();
        let base = match is_auxiliary(before, index) {
            true => base_of(index),
            false => &index.name,
        };
        let is_first = base == before.indexes()[0].definition().name;
        if !is_first && !is_kept(base) {
            gone.push(index.name.clone());
        }
    }
    for index in &gone {
        change.drop_index(name, index)?;
    }
    change.alter_schema(name, |schema| *schema = draft.schema.clone())?;
    for definition in &draft.indexes {
        let mut known = before.indexes().iter().map(|index| index.definition());
        if !known.any(|known| known.name == definition.name) || gone.contains(&definition.name) {
            change.add_index(name, definition.clone())?;
        }
    }
    Ok(())
}

/// Puts the rows into another layout. Sequences of which default values draw go on from states that
/// a recovery knows.
fn rewrite(change: &mut CatalogChange<'_>, draft: &Draft<'_>) -> Result<()> {
    let (mut rows, sequences) = compiled(change, draft)?;
    if !sequences.is_empty() {
        renew(change, &sequences)?;
        (rows, _) = compiled(change, draft)?;
    }
    change.rewrite_table(rows)?;
    renew(change, &sequences)
}

/// How the rows follow, and the names of the sequences from which they draw.
fn compiled(change: &CatalogChange<'_>, draft: &Draft<'_>) -> Result<(NewRows, Vec<String>)> {
    let view = View::of(change.catalog());
    let rows = draft.rows(&view)?;
    let (sequences, catalog) = (view.sequences(), change.catalog());
    let mut accesses = view.into_accesses().to_vec().into_iter();
    if accesses.any(|Access { object, .. }| object == Object::sequence("")) {
        let feature = "a sequence that is not named by a literal, for rows that there are,";
        return Err(Error::unsupported(format!("{feature} is not supported")));
    }
    let draws = |name: &String| catalog.sequence(name).is_some();
    Ok((rows, sequences.into_iter().filter(draws).collect()))
}

/// Has each of the sequences go on as another one.
fn renew(change: &mut CatalogChange<'_>, sequences: &[String]) -> Result<()> {
    for name in sequences {
        let known = change.catalog().sequence(name);
        if let Some(definition) = known.map(|it| it.definition().clone()) {
            change.alter_sequence(definition, None)?;
        }
    }
    Ok(())
}

/// Checks the rows of a table against a constraint of it.
fn check_rows(change: &mut CatalogChange<'_>, table: &str, constraint: &str) -> Result<()> {
    let schema = change.catalog().require_table(table)?.schema().clone();
    if let Some(check) = schema.checks.iter().find(|it| it.name == constraint) {
        return check_condition(change, &schema, check);
    }
    if let Some(key) = schema.foreign_keys.iter().find(|it| it.name == constraint) {
        return check_references(change, &schema, key);
    }
    let table = change.catalog().require_table(table)?.clone();
    let mut indexes = table.indexes().iter().map(|index| index.definition());
    match indexes.find(|it| it.deferral.is_deferrable() && it.name == constraint) {
        Some(index) => check_unique(change, &schema, index),
        None => Ok(()),
    }
}

/// No two rows have the same key, of a constraint that is DEFERRABLE.
fn check_unique(
    change: &mut CatalogChange<'_>,
    schema: &TableSchema,
    index: &IndexDefinition,
) -> Result<()> {
    let names = index.columns.iter();
    let names = names.map(|column| quote_identifier(&schema.columns[column.index()].name));
    let names: Vec<String> = names.collect();
    let list = names.join(", ");
    let there = match index.nulls_equal {
        true => "true".to_owned(),
        false => {
            let tests = names.iter().map(|name| format!("{name} IS NOT NULL"));
            tests.collect::<Vec<_>>().join(" AND ")
        }
    };
    let query = format!(
        "SELECT {list} FROM {} WHERE {there} GROUP BY {list} HAVING count(*) > 1 LIMIT 1",
        sql_name(&schema.name),
    );
    let Some(values) = first_row(change, &query)? else {
        return Ok(());
    };
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    let message = format!("could not create unique index \"{}\"", index.name);
    let detail = format!("Key ({list})=({}) is duplicated.", values.join(", "));
    let subject = Subject::table(&schema.name).with_constraint(&index.name);
    Err(Error::new(SqlState::UNIQUE_VIOLATION, message)
        .with_detail(detail)
        .about(subject))
}

fn check_condition(
    change: &mut CatalogChange<'_>,
    schema: &TableSchema,
    check: &Check,
) -> Result<()> {
    let (table, name) = (name_in_schema(&schema.name), &check.name);
    let query = format!(
        "SELECT 1 FROM {} WHERE NOT ({}) LIMIT 1",
        sql_name(&schema.name),
        check.expression
    );
    match first_row(change, &query)? {
        None => Ok(()),
        Some(_) => {
            let message = format!(
                "check constraint \"{name}\" of relation \"{table}\" is violated by some row"
            );
            let subject = Subject::table(&schema.name).with_constraint(name);
            Err(Error::new(SqlState::CHECK_VIOLATION, message).about(subject))
        }
    }
}

fn check_references(
    change: &mut CatalogChange<'_>,
    schema: &TableSchema,
    key: &ForeignKey,
) -> Result<()> {
    if key.match_full {
        refuse_half_null(change, schema, key)?;
    }
    let other = change.catalog().require_table(&key.table)?.clone();
    let name_in = |schema: &TableSchema, column: &ColumnId| {
        quote_identifier(&schema.columns[column.index()].name)
    };
    let own = key.columns.iter().map(|column| name_in(schema, column));
    let own: Vec<String> = own.collect();
    let theirs = (key.referenced.iter()).map(|column| name_in(other.schema(), column));
    let theirs: Vec<String> = theirs.collect();
    let pairs = own.iter().zip(&theirs);
    let equal = pairs.map(|(own, other)| format!("referenced.{other} = referring.{own}"));
    let there = own.iter().map(|own| format!("referring.{own} IS NOT NULL"));
    let shown = own.iter().map(|own| format!("referring.{own}"));
    let query = format!(
        "SELECT {} FROM {} referring WHERE {} AND NOT EXISTS (SELECT 1 FROM {} referenced WHERE {}) LIMIT 1",
        shown.collect::<Vec<_>>().join(", "),
        sql_name(&schema.name),
        there.collect::<Vec<_>>().join(" AND "),
        sql_name(&key.table),
        equal.collect::<Vec<_>>().join(" AND "),
    );
    let Some(values) = first_row(change, &query)? else {
        return Ok(());
    };
    let (table, name) = (name_in_schema(&schema.name), &key.name);
    let message =
        format!("insert or update on table \"{table}\" violates foreign key constraint \"{name}\"");
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    let detail = format!(
        "Key ({})=({}) is not present in table \"{}\".",
        own.join(", "),
        values.join(", "),
        name_in_schema(&key.table)
    );
    let subject = Subject::table(&schema.name).with_constraint(name);
    Err(Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
        .with_detail(detail)
        .about(subject))
}

/// MATCH FULL: a key is NULL in all columns or in none.
fn refuse_half_null(
    change: &mut CatalogChange<'_>,
    schema: &TableSchema,
    key: &ForeignKey,
) -> Result<()> {
    let tests = |test: &str| {
        let names = key.columns.iter();
        let names = names.map(|column| quote_identifier(&schema.columns[column.index()].name));
        let tests: Vec<String> = names.map(|name| format!("{name} IS {test}")).collect();
        tests.join(" AND ")
    };
    let query = format!(
        "SELECT 1 FROM {} WHERE NOT ({}) AND NOT ({}) LIMIT 1",
        sql_name(&schema.name),
        tests("NULL"),
        tests("NOT NULL")
    );
    if first_row(change, &query)?.is_none() {
        return Ok(());
    }
    let (table, name) = (name_in_schema(&schema.name), &key.name);
    let message =
        format!("insert or update on table \"{table}\" violates foreign key constraint \"{name}\"");
    Err(Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
        .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.")
        .about(Subject::table(&schema.name).with_constraint(name)))
}

/// The first row that a query finds.
pub(super) fn first_row(change: &mut CatalogChange<'_>, query: &str) -> Result<Option<Vec<Value>>> {
    let tree = parse::statement(&SourceStatement::from(query))?;
    let prepared = statement::compile(change.catalog(), &tree, &[])?;
    Ok(change.read(&prepared.program)?.into_iter().next())
}

/// Takes indexes of tables away, and from the rows of each table at once the columns that they
/// alone need.
pub(super) fn remove_indexes(
    change: &mut CatalogChange<'_>,
    gone: &[(String, String)],
) -> Result<()> {
    let tables: BTreeSet<&String> = gone.iter().map(|(table, _)| table).collect();
    for name in tables {
        let table = change.catalog().require_table(name)?.clone();
        let mut draft = Draft::of(&table, |index| is_auxiliary(&table, index));
        let indexes = gone.iter().filter(|(of, _)| of == name);
        indexes.for_each(|(_, index)| draft.drop_index(index));
        follow(change, &mut draft)?;
    }
    Ok(())
}
