//! CREATE TABLE.

use std::cell::RefCell;

use kiln_procedure::ProgramBuilder;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::{Check, Column, ColumnId, IndexDefinition, IndexKind, TableSchema};
use kiln_storage::sequence::SequenceDefinition;
use sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ConstraintCharacteristics, CreateTable,
    DeferrableInitial, ForeignKeyConstraint, Ident, IndexColumn, NullsDistinctOption,
    TableConstraint,
};

use super::super::{
    CatalogView, Compiler, Position, dml, fail, name_of, object_name, position_of,
    position_of_span, refuse_reserved, relation_name, types, unsupported,
};
use super::index::index_column_name;
use super::{names, partition, references, sequence};
use crate::parse::{self, IdentityColumn};

/// A CREATE TABLE that was checked.
pub struct TableDeclaration {
    /// The table.
    pub schema: TableSchema,
    /// Its indexes besides that of the primary key.
    pub indexes: Vec<IndexDefinition>,
    /// The sequences of SERIAL and identity columns.
    pub sequences: Vec<SequenceDefinition>,
}

/// A PRIMARY KEY or UNIQUE constraint.
pub(super) struct UniqueKey {
    pub columns: Vec<ColumnId>,
    name: Option<Ident>,
}

/// Constraints as written, before they are checked.
#[derive(Default)]
struct Constraints<'s> {
    primary_key: Option<UniqueKey>,
    unique: Vec<UniqueKey>,
    checks: Vec<(Option<&'s Ident>, &'s CheckConstraint)>,
    foreign_keys: Vec<(Option<&'s Ident>, Vec<ColumnId>, &'s ForeignKeyConstraint)>,
}

/// Checks CREATE TABLE. `Ok(None)` means that IF NOT EXISTS found the table.
///
/// # Errors
/// PostgreSQL's: 42P07 when the name is taken, 42701 for a column twice, 42P16 for two primary
/// keys, 42704 for an unknown type and so on; 0A000 for what is not supported.
pub fn create_table(
    statement: &parse::CreateTable,
    catalog: &dyn CatalogView,
) -> Result<Option<TableDeclaration>> {
    let parse::CreateTable {
        table: statement,
        identities,
    } = statement;
    let position = position_of(&statement.name);
    refuse_options(statement, position)?;
    let name = relation_name(&statement.name)?;
    if names::is_relation(catalog, &name) {
        if statement.if_not_exists {
            return Ok(None);
        }
        let message = format!("relation \"{name}\" already exists");
        return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
    }
    let mut schema = TableSchema {
        name,
        columns: Vec::new(),
        primary_key: Vec::new(),
        primary_key_name: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        partition_by: None,
    };
    for definition in &statement.columns {
        let column = declare_column(&schema.name, definition)?;
        if schema.column(&column.name).is_some() {
            let message = format!("column \"{}\" specified more than once", column.name);
            let position = position_of_span(definition.name.span);
            return Err(fail(SqlState::DUPLICATE_COLUMN, message, position));
        }
        schema.columns.push(column);
    }
    let sequences = declare_sequences(&mut schema, statement, identities, catalog)?;
    let constraints = collect_constraints(statement, &mut schema)?;
    check_defaults(&schema, statement, catalog)?;
    let indexes = declare_keys(&mut schema, &constraints, catalog, position)?;
    declare_checks(&mut schema, &constraints, catalog)?;
    let mut own_keys: Vec<UniqueKey> = constraints.unique;
    own_keys.extend(constraints.primary_key);
    for (name, columns, constraint) in constraints.foreign_keys {
        let taken = RefCell::new(constraint_names(&schema, &indexes));
        let key = references::foreign_key(
            &schema,
            &own_keys,
            columns,
            constraint,
            name,
            catalog,
            &|name| taken.borrow().iter().any(|known| known == name),
        )?;
        refuse_duplicate(&schema, &indexes, &key.name, position)?;
        schema.foreign_keys.push(key);
    }
    if let Some(expr) = &statement.partition_by {
        schema.partition_by = Some(partition::declared(&schema, expr)?);
        let keys = indexes.iter().filter(|index| index.unique);
        let keys = keys.map(|index| index.columns.as_slice());
        partition::check_keys(
            &schema,
            [schema.primary_key.as_slice()].into_iter().chain(keys),
        )?;
    }
    Ok(Some(TableDeclaration {
        schema,
        indexes,
        sequences,
    }))
}

/// The sequences of SERIAL and identity columns, from which these have their default values.
fn declare_sequences(
    schema: &mut TableSchema,
    statement: &CreateTable,
    identities: &[IdentityColumn],
    catalog: &dyn CatalogView,
) -> Result<Vec<SequenceDefinition>> {
    let mut sequences: Vec<SequenceDefinition> = Vec::new();
    for (at, definition) in statement.columns.iter().enumerate() {
        let position = position_of_span(definition.name.span);
        let column = &schema.columns[at];
        let (table, name) = (&schema.name, &column.name);
        let refused = |what: &str| {
            let message = format!("{what} for column \"{name}\" of table \"{table}\"");
            fail(SqlState::SYNTAX_ERROR, message, position)
        };
        let mut own = identities.iter().filter(|it| name_of(&it.column) == *name);
        let identity = own.next().map(|it| (it.identity, &it.options));
        if own.next().is_some() {
            return Err(refused("multiple identity specifications"));
        }
        let is_serial = sequence::serial_type(&definition.data_type).is_some();
        if identity.is_none() && !is_serial {
            continue;
        }
        if identity.is_some() && (column.default.is_some() || is_serial) {
            return Err(refused("both default and identity specified"));
        }
        if column.default.is_some() {
            return Err(refused("multiple default values specified"));
        }
        let mut options = definition.options.iter();
        if options.any(|option| matches!(option.option, ColumnOption::Null)) {
            return Err(refused("conflicting NULL/NOT NULL declarations"));
        }
        let is_taken = |name: &str| {
            name == table
                || sequences.iter().any(|known| known.name == name)
                || names::is_relation(catalog, name)
        };
        let made = sequence::of_column(schema, column, identity, is_taken, position)?;
        let column = &mut schema.columns[at];
        column.not_null = true;
        column.default = Some(sequence::sequence_default(&made.name));
        sequences.push(made);
    }
    Ok(sequences)
}

fn refuse_options(statement: &CreateTable, position: Position) -> Result<()> {
    let refuse = |what: &str| Err(unsupported(what, position));
    if statement.query.is_some() {
        return refuse("CREATE TABLE AS");
    }
    if statement.like.is_some() {
        return refuse("LIKE in CREATE TABLE");
    }
    if statement.inherits.is_some() {
        return refuse("INHERITS");
    }
    if statement.partition_of.is_some() {
        return refuse("PARTITION OF");
    }
    if statement.on_commit.is_some() || statement.temporary {
        return refuse("a temporary table");
    }
    Ok(())
}

fn declare_column(table: &str, definition: &ColumnDef) -> Result<Column> {
    let position = position_of_span(definition.name.span);
    refuse_reserved(&definition.name)?;
    let name = name_of(&definition.name);
    let data_type = match sequence::serial_type(&definition.data_type) {
        Some(data_type) => data_type,
        None => types::data_type(&definition.data_type, position)?,
    };
    if !data_type.is_storable() {
        return Err(unsupported(
            format!("a column of type {data_type}"),
            position,
        ));
    }
    let (mut not_null, mut null, mut default) = (false, false, None);
    for option in &definition.options {
        match &option.option {
            ColumnOption::NotNull => not_null = true,
            ColumnOption::Null => null = true,
            ColumnOption::Default(_) if default.is_some() => {
                let message = format!(
                    "multiple default values specified for column \"{name}\" of table \"{table}\""
                );
                return Err(fail(SqlState::SYNTAX_ERROR, message, position));
            }
            ColumnOption::Default(expr) => default = Some(expr.to_string()),
            ColumnOption::PrimaryKey(_)
            | ColumnOption::Unique(_)
            | ColumnOption::Check(_)
            | ColumnOption::ForeignKey(_) => {}
            ColumnOption::Collation(collation) => {
                let known = object_name(collation)?;
                if !matches!(known.as_str(), "C" | "POSIX" | "default" | "ucs_basic") {
                    return Err(unsupported(format!("collation \"{known}\""), position)
                        .with_hint("Text is compared byte by byte, as in collation \"C\"."));
                }
            }
            ColumnOption::Generated { .. } | ColumnOption::Identity(_) => {
                return Err(unsupported("a generated column", position));
            }
            other => return Err(unsupported(format!("the column option {other}"), position)),
        }
    }
    if null && not_null {
        let message = format!("conflicting NULL/NOT NULL declarations for column \"{name}\"");
        return Err(fail(SqlState::SYNTAX_ERROR, message, position));
    }
    Ok(Column {
        name,
        data_type,
        not_null,
        default,
    })
}

fn collect_constraints<'s>(
    statement: &'s CreateTable,
    schema: &mut TableSchema,
) -> Result<Constraints<'s>> {
    let mut constraints = Constraints::default();
    for (position, definition) in statement.columns.iter().enumerate() {
        let column = ColumnId(position as u16);
        for option in &definition.options {
            let name = option.name.as_ref();
            match &option.option {
                ColumnOption::PrimaryKey(key) => {
                    check_characteristics(&key.characteristics)?;
                    set_primary_key(&mut constraints, schema, vec![column], name)?;
                }
                ColumnOption::Unique(key) => {
                    check_characteristics(&key.characteristics)?;
                    constraints.unique.push(UniqueKey {
                        columns: vec![column],
                        name: name.cloned(),
                    });
                }
                ColumnOption::Check(check) => {
                    constraints
                        .checks
                        .push((name.or(check.name.as_ref()), check));
                }
                ColumnOption::ForeignKey(key) => {
                    check_characteristics(&key.characteristics)?;
                    let name = name.or(key.name.as_ref());
                    constraints.foreign_keys.push((name, vec![column], key));
                }
                _ => {}
            }
        }
    }
    for constraint in &statement.constraints {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                check_characteristics(&key.characteristics)?;
                let columns = key_columns(schema, &key.columns)?;
                set_primary_key(&mut constraints, schema, columns, key.name.as_ref())?;
            }
            TableConstraint::Unique(key) => {
                check_characteristics(&key.characteristics)?;
                if key.nulls_distinct == NullsDistinctOption::NotDistinct {
                    return Err(unsupported("NULLS NOT DISTINCT", position_of(constraint)));
                }
                let columns = key_columns(schema, &key.columns)?;
                constraints.unique.push(UniqueKey {
                    columns,
                    name: key.name.clone(),
                });
            }
            TableConstraint::Check(check) => {
                constraints.checks.push((check.name.as_ref(), check));
            }
            TableConstraint::ForeignKey(key) => {
                check_characteristics(&key.characteristics)?;
                let mut columns = Vec::new();
                for ident in &key.columns {
                    columns.push(column_called(
                        schema,
                        ident,
                        "referenced in foreign key constraint ",
                    )?);
                }
                constraints
                    .foreign_keys
                    .push((key.name.as_ref(), columns, key));
            }
            TableConstraint::Exclude(_) => {
                return Err(unsupported(
                    "an EXCLUDE constraint",
                    position_of(constraint),
                ));
            }
            _ => {
                return Err(unsupported(
                    "this table constraint",
                    position_of(constraint),
                ));
            }
        }
    }
    Ok(constraints)
}

/// Constraints are checked with each statement: what is to be checked at COMMIT is refused.
fn check_characteristics(characteristics: &Option<ConstraintCharacteristics>) -> Result<()> {
    match characteristics {
        Some(characteristics)
            if characteristics.deferrable == Some(true)
                || characteristics.initially == Some(DeferrableInitial::Deferred)
                || characteristics.enforced == Some(false) =>
        {
            Err(unsupported(
                "a constraint that is DEFERRABLE or NOT ENFORCED",
                None,
            ))
        }
        _ => Ok(()),
    }
}

fn set_primary_key(
    constraints: &mut Constraints<'_>,
    schema: &mut TableSchema,
    columns: Vec<ColumnId>,
    name: Option<&Ident>,
) -> Result<()> {
    if constraints.primary_key.is_some() {
        let message = format!(
            "multiple primary keys for table \"{}\" are not allowed",
            schema.name
        );
        let position = name.and_then(|name| position_of_span(name.span));
        return Err(fail(SqlState::INVALID_TABLE_DEFINITION, message, position));
    }
    for column in &columns {
        schema.columns[column.index()].not_null = true;
    }
    schema.primary_key = columns.clone();
    constraints.primary_key = Some(UniqueKey {
        columns,
        name: name.cloned(),
    });
    Ok(())
}

pub(super) fn column_called(schema: &TableSchema, ident: &Ident, what: &str) -> Result<ColumnId> {
    let name = name_of(ident);
    schema.column(&name).ok_or_else(|| {
        let message = format!("column \"{name}\" {what}does not exist");
        fail(
            SqlState::UNDEFINED_COLUMN,
            message,
            position_of_span(ident.span),
        )
    })
}

fn key_columns(schema: &TableSchema, columns: &[IndexColumn]) -> Result<Vec<ColumnId>> {
    let mut result: Vec<ColumnId> = Vec::with_capacity(columns.len());
    for column in columns {
        let position = position_of(&column.column.expr);
        let name = index_column_name(column, position)?;
        let found = schema.column(&name).ok_or_else(|| {
            let message = format!("column \"{name}\" named in key does not exist");
            fail(SqlState::UNDEFINED_COLUMN, message, position)
        })?;
        if result.contains(&found) {
            let message = format!("column \"{name}\" appears twice in a key");
            return Err(fail(SqlState::DUPLICATE_COLUMN, message, position));
        }
        result.push(found);
    }
    Ok(result)
}

/// A compiler whose steps are thrown away: binding tells what is wrong with an expression.
pub(super) fn scratch(catalog: &dyn CatalogView) -> Compiler<'_> {
    Compiler::new(ProgramBuilder::new("", []), catalog)
}

fn check_defaults(
    schema: &TableSchema,
    statement: &CreateTable,
    catalog: &dyn CatalogView,
) -> Result<()> {
    for (definition, column) in statement.columns.iter().zip(&schema.columns) {
        for option in &definition.options {
            if let ColumnOption::Default(expr) = &option.option {
                let mut compiler = scratch(catalog);
                let bound = compiler.bind(expr).map_err(|error| {
                    // No row is in scope, so a name can only be meant for a column.
                    if error.state() == SqlState::UNDEFINED_COLUMN {
                        unsupported("a column reference in DEFAULT", position_of(expr))
                    } else {
                        error
                    }
                })?;
                dml::for_column(bound, column, "default expression")?;
            }
        }
    }
    Ok(())
}

fn declare_keys(
    schema: &mut TableSchema,
    constraints: &Constraints<'_>,
    catalog: &dyn CatalogView,
    position: Position,
) -> Result<Vec<IndexDefinition>> {
    let mut indexes: Vec<IndexDefinition> = Vec::new();
    let primary = match &constraints.primary_key {
        Some(key) => Some(primary_key_name(schema, key, catalog, position)?),
        None => None,
    };
    schema.primary_key_name.clone_from(&primary);
    for key in &constraints.unique {
        let same = |known: &IndexDefinition| known.columns == key.columns;
        if key.name.is_none() && (schema.primary_key == key.columns || indexes.iter().any(same)) {
            continue;
        }
        let list: Vec<&str> = key
            .columns
            .iter()
            .map(|column| schema.columns[column.index()].name.as_str())
            .collect();
        let name = match &key.name {
            Some(name) => {
                let name = name_of(name);
                let taken = name == schema.name
                    || Some(&name) == primary.as_ref()
                    || indexes.iter().any(|known| known.name == name)
                    || names::is_relation(catalog, &name);
                if taken {
                    let message = format!("relation \"{name}\" already exists");
                    return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
                }
                name
            }
            None => names::choose(&schema.name, Some(&list.join("_")), "key", |name| {
                Some(name) == primary.as_deref()
                    || indexes.iter().any(|known| known.name == name)
                    || names::is_relation(catalog, name)
            }),
        };
        indexes.push(IndexDefinition {
            name,
            columns: key.columns.clone(),
            unique: true,
            constraint: true,
            kind: IndexKind::Ordered {
                partition_columns: 0,
            },
        });
    }
    Ok(indexes)
}

/// What the constraint and the index of the primary key are called.
fn primary_key_name(
    schema: &TableSchema,
    key: &UniqueKey,
    catalog: &dyn CatalogView,
    position: Position,
) -> Result<String> {
    let is_taken = |name: &str| name == schema.name || names::is_relation(catalog, name);
    let Some(name) = &key.name else {
        return Ok(names::choose(&schema.name, None, "pkey", is_taken));
    };
    let name = name_of(name);
    if is_taken(&name) {
        let message = format!("relation \"{name}\" already exists");
        return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
    }
    Ok(name)
}

fn constraint_names(schema: &TableSchema, indexes: &[IndexDefinition]) -> Vec<String> {
    let checks = schema.checks.iter().map(|check| check.name.clone());
    let keys = schema.foreign_keys.iter().map(|key| key.name.clone());
    let indexes = indexes.iter().map(|index| index.name.clone());
    let primary = schema.primary_key_name.clone();
    checks.chain(keys).chain(indexes).chain(primary).collect()
}

fn refuse_duplicate(
    schema: &TableSchema,
    indexes: &[IndexDefinition],
    name: &str,
    position: Position,
) -> Result<()> {
    if constraint_names(schema, indexes)
        .iter()
        .any(|known| known == name)
    {
        let message = format!(
            "constraint \"{name}\" for relation \"{}\" already exists",
            schema.name
        );
        return Err(fail(SqlState::DUPLICATE_OBJECT, message, position));
    }
    Ok(())
}

/// Binds each CHECK over a table of its columns. PostgreSQL names a condition on one column after
/// it.
fn declare_checks(
    schema: &mut TableSchema,
    constraints: &Constraints<'_>,
    catalog: &dyn CatalogView,
) -> Result<()> {
    for (name, check) in &constraints.checks {
        let position = position_of(&*check.expr);
        if check.enforced == Some(false) {
            return Err(unsupported("a CHECK that is NOT ENFORCED", position));
        }
        if check.expr.to_string().to_lowercase().contains("(select") {
            return Err(unsupported("a subquery in a CHECK constraint", position));
        }
        let mut compiler = scratch(catalog);
        let columns: Vec<_> = schema
            .columns
            .iter()
            .map(|column| {
                let register = compiler.builder.register(column.data_type.clone());
                (column.name.clone(), column.data_type.clone(), register)
            })
            .collect();
        let source = compiler.declare_register_row(&schema.name, &columns, position);
        compiler.push_rows(&[source]);
        let bound = compiler.bind_condition(&check.expr, "CHECK")?;
        let mentioned = bound.columns();
        let column = match mentioned.as_slice() {
            [(_, column)] => Some(schema.columns[usize::from(*column)].name.clone()),
            _ => None,
        };
        let taken = constraint_names(schema, &[]);
        let name = match name {
            Some(name) => {
                let name = name_of(name);
                refuse_duplicate(schema, &[], &name, position)?;
                name
            }
            None => names::choose(&schema.name, column.as_deref(), "check", |name| {
                taken.iter().any(|known| known == name)
            }),
        };
        schema.checks.push(Check {
            name,
            expression: check.expr.to_string(),
        });
    }
    Ok(())
}
