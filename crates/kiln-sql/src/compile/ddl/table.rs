//! CREATE TABLE.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::{beside, name_in_schema};
use kiln_storage::schema::{
    Check, Column, ColumnId, Deferral, ForeignKey, IndexDefinition, IndexKind, IndexMethod,
    TableSchema,
};
use kiln_storage::sequence::{Identity, SequenceDefinition};
use sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, CreateTable, CreateTableOptions, Expr,
    ForeignKeyConstraint, Ident, IndexColumn, NullsDistinctOption, TableConstraint,
};

use super::super::bound::Bound;
use super::super::qualified::is_temporary;
use super::super::{
    CatalogView, DeclaredType, Position, column_type, fail, name_of, new_relation_name,
    object_name, position_of, position_of_span, refuse_reserved, scratch, unsupported,
};
use super::index::index_column_name;
use super::{generated, kept_default, names, parameters, partition, references, sequence};
use crate::parse::{self, IdentityColumn, SequenceOptions, SetColumns};

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
    /// NULLS NOT DISTINCT.
    pub nulls_equal: bool,
    pub deferral: Deferral,
    pub name: Option<Ident>,
}

/// A CHECK or REFERENCES constraint as written.
pub(super) struct Written<'s, C> {
    pub name: Option<&'s Ident>,
    pub constraint: &'s C,
    /// Whether the rows that there are satisfy it, or are to.
    pub is_valid: bool,
}

/// Constraints as written, before they are checked.
#[derive(Default)]
pub(super) struct Constraints<'s> {
    /// The lists of columns that ON DELETE SET NULL and SET DEFAULT set.
    pub set_columns: Vec<&'s SetColumns>,
    pub primary_key: Option<UniqueKey>,
    pub unique: Vec<UniqueKey>,
    pub checks: Vec<Written<'s, CheckConstraint>>,
    pub foreign_keys: Vec<(Vec<ColumnId>, Written<'s, ForeignKeyConstraint>)>,
}

/// Checks CREATE TABLE, in which each LIKE was replaced by what it stands for. `Ok(None)` means
/// that IF NOT EXISTS found the table.
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
        set_columns,
        likes: _,
    } = statement;
    let position = position_of(&statement.name);
    refuse_options(statement, position)?;
    let name = new_relation_name(catalog, &statement.name, statement.temporary)?;
    if names::is_relation(catalog, &name) {
        if statement.if_not_exists {
            return Ok(None);
        }
        let name = name_in_schema(&name);
        let message = format!("relation \"{name}\" already exists");
        return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
    }
    if statement.on_commit.is_some() && !is_temporary(catalog, &name) {
        let message = "ON COMMIT can only be used on temporary tables";
        return Err(fail(SqlState::INVALID_TABLE_DEFINITION, message, None));
    }
    let mut schema = TableSchema {
        name,
        columns: Vec::new(),
        primary_key: Vec::new(),
        primary_key_name: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    for definition in &statement.columns {
        let column = declare_column(name_in_schema(&schema.name), definition, catalog)?;
        if schema.column(&column.name).is_some() {
            let message = format!("column \"{}\" specified more than once", column.name);
            let position = position_of_span(definition.name.span);
            return Err(fail(SqlState::DUPLICATE_COLUMN, message, position));
        }
        schema.columns.push(column);
    }
    let sequences = declare_sequences(&mut schema, statement, identities, catalog)?;
    let constraints = collect_constraints(statement, &mut schema)?;
    generated::check(&schema, 0, catalog)?;
    for (definition, column) in statement.columns.iter().zip(&mut schema.columns) {
        check_default(definition, column, catalog)?;
    }
    let mut indexes = Vec::new();
    let table_name = schema.name.clone();
    let is_taken = |name: &str| names::is_relation(catalog, &beside(&table_name, name));
    if let Some(key) = &constraints.primary_key {
        let name = primary_key_name(&schema, key, &is_taken, position)?;
        match key.deferral.is_deferrable() {
            true => indexes.push(key_index(name.clone(), key)),
            false => schema.primary_key.clone_from(&key.columns),
        }
        schema.primary_key_name = Some(name);
    }
    declare_keys(&schema, &mut indexes, &constraints, &is_taken, position)?;
    for check in &constraints.checks {
        let check = declare_check(&schema, &indexes, check, catalog)?;
        schema.checks.push(check);
    }
    let mut own_keys: Vec<UniqueKey> = constraints.unique;
    own_keys.extend(constraints.primary_key);
    let set_columns: Vec<&SetColumns> = set_columns.iter().collect();
    for (columns, written) in constraints.foreign_keys {
        let written = (&written, set_columns.as_slice());
        let key = declare_reference(&schema, &indexes, &own_keys, columns, written, catalog)?;
        schema.foreign_keys.push(key);
    }
    if let Some(expr) = &statement.partition_by {
        schema.partition_by = Some(partition::declared(&schema, expr)?);
        let keys = indexes.iter().filter(|index| index.keeps_unique());
        let keys = keys.map(|index| index.columns.as_slice());
        partition::check_keys(
            &schema,
            [schema.primary_key.as_slice()].into_iter().chain(keys),
        )?;
        partition::check_actions(&schema)?;
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
        let name = &schema.columns[at].name;
        let own = identities.iter().filter(|it| name_of(&it.column) == *name);
        let own: Vec<_> = own.map(|it| (it.identity, &it.options)).collect();
        let table = schema.name.clone();
        let is_taken = |name: &str| {
            name == table
                || sequences.iter().any(|known| known.name == name)
                || names::is_relation(catalog, name)
        };
        let made = declare_sequence(schema, at, definition, &own, is_taken)?;
        sequences.extend(made);
    }
    Ok(sequences)
}

/// The sequence of the column at a position, if it is SERIAL or has an identity; the column has its
/// default value from there.
pub(super) fn declare_sequence(
    schema: &mut TableSchema,
    at: usize,
    definition: &ColumnDef,
    identities: &[(Identity, &SequenceOptions)],
    is_taken: impl Fn(&str) -> bool,
) -> Result<Option<SequenceDefinition>> {
    let position = position_of_span(definition.name.span);
    let column = &schema.columns[at];
    let (table, name) = (name_in_schema(&schema.name), &column.name);
    let refused = |what: &str| {
        let message = format!("{what} for column \"{name}\" of table \"{table}\"");
        fail(SqlState::SYNTAX_ERROR, message, position)
    };
    if identities.len() > 1 {
        return Err(refused("multiple identity specifications"));
    }
    if column.generated.is_some() && !identities.is_empty() {
        return Err(refused("both identity and generation expression specified"));
    }
    let identity = identities.first().copied();
    let is_serial = sequence::serial_type(&definition.data_type).is_some();
    if identity.is_none() && !is_serial {
        return Ok(None);
    }
    if identity.is_some() && (column.default.is_some() || is_serial) {
        return Err(refused("both default and identity specified"));
    }
    if column.generated.is_some() {
        return Err(refused("both default and generation expression specified"));
    }
    if column.default.is_some() {
        return Err(refused("multiple default values specified"));
    }
    let mut options = definition.options.iter();
    if options.any(|option| matches!(option.option, ColumnOption::Null)) {
        return Err(refused("conflicting NULL/NOT NULL declarations"));
    }
    let made = sequence::of_column(schema, column, identity, is_taken, position)?;
    let column = &mut schema.columns[at];
    column.not_null = true;
    column.default = Some(sequence::sequence_default(&made.name));
    Ok(Some(made))
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
    if let CreateTableOptions::With(options) = &statement.table_options {
        let names = parameters::names_of_options(options);
        parameters::check_parameters(names, parameters::OF_TABLE)?;
    }
    Ok(())
}

/// Names that PostgreSQL keeps for columns that each of its tables has.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"];

pub(super) fn declare_column(
    table: &str,
    definition: &ColumnDef,
    catalog: &dyn CatalogView,
) -> Result<Column> {
    let position = position_of_span(definition.name.span);
    refuse_reserved(&definition.name)?;
    let name = name_of(&definition.name);
    if SYSTEM_COLUMNS.contains(&name.as_str()) {
        let message = format!("column name \"{name}\" conflicts with a system column name");
        return Err(fail(SqlState::DUPLICATE_COLUMN, message, position));
    }
    let DeclaredType { data_type, domain } = match sequence::serial_type(&definition.data_type) {
        Some(data_type) => DeclaredType {
            data_type,
            domain: None,
        },
        None => column_type(&definition.data_type, catalog, position)?,
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
            ColumnOption::Generated {
                generation_expr: Some(_),
                ..
            } => {}
            other => return Err(unsupported(format!("the column option {other}"), position)),
        }
    }
    if null && not_null {
        let message = format!(
            "conflicting NULL/NOT NULL declarations for column \"{name}\" of table \"{table}\""
        );
        return Err(fail(SqlState::SYNTAX_ERROR, message, position));
    }
    let generated = generated::written(table, definition)?;
    if generated.is_some() && default.is_some() {
        let message = format!(
            "both default and generation expression specified for column \"{name}\" of table \"{table}\""
        );
        return Err(fail(SqlState::SYNTAX_ERROR, message, position));
    }
    Ok(Column {
        name,
        data_type,
        domain: domain.map(|domain| domain.name.clone()),
        not_null,
        default,
        generated: generated.map(Expr::to_string),
    })
}

fn collect_constraints<'s>(
    statement: &'s CreateTable,
    schema: &mut TableSchema,
) -> Result<Constraints<'s>> {
    let mut constraints = Constraints::default();
    for (position, definition) in statement.columns.iter().enumerate() {
        constraints.add_of_column(schema, ColumnId(position as u16), definition)?;
    }
    for constraint in &statement.constraints {
        constraints.add(schema, constraint, true)?;
    }
    Ok(constraints)
}

impl<'s> Constraints<'s> {
    /// Adds those of a column.
    pub fn add_of_column(
        &mut self,
        schema: &mut TableSchema,
        column: ColumnId,
        definition: &'s ColumnDef,
    ) -> Result<()> {
        for option in &definition.options {
            let name = option.name.as_ref();
            match &option.option {
                ColumnOption::PrimaryKey(key) => {
                    let deferral = references::deferral(&key.characteristics)?;
                    self.set_primary_key(schema, vec![column], deferral, name)?;
                }
                ColumnOption::Unique(key) => {
                    self.unique.push(UniqueKey {
                        columns: vec![column],
                        nulls_equal: key.nulls_distinct == NullsDistinctOption::NotDistinct,
                        deferral: references::deferral(&key.characteristics)?,
                        name: name.cloned(),
                    });
                }
                ColumnOption::Check(check) => self.checks.push(Written {
                    name: name.or(check.name.as_ref()),
                    constraint: check,
                    is_valid: true,
                }),
                ColumnOption::ForeignKey(key) => {
                    let written = Written {
                        name: name.or(key.name.as_ref()),
                        constraint: key,
                        is_valid: true,
                    };
                    self.foreign_keys.push((vec![column], written));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a constraint of a table.
    pub fn add(
        &mut self,
        schema: &mut TableSchema,
        constraint: &'s TableConstraint,
        is_valid: bool,
    ) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let columns = key_columns(schema, &key.columns, "primary key")?;
                let deferral = references::deferral(&key.characteristics)?;
                self.set_primary_key(schema, columns, deferral, key.name.as_ref())
            }
            TableConstraint::Unique(key) => {
                let columns = key_columns(schema, &key.columns, "unique")?;
                self.unique.push(UniqueKey {
                    columns,
                    nulls_equal: key.nulls_distinct == NullsDistinctOption::NotDistinct,
                    deferral: references::deferral(&key.characteristics)?,
                    name: key.name.clone(),
                });
                Ok(())
            }
            TableConstraint::Check(check) => {
                self.checks.push(Written {
                    name: check.name.as_ref(),
                    constraint: check,
                    is_valid,
                });
                Ok(())
            }
            TableConstraint::ForeignKey(key) => {
                let mut columns = Vec::new();
                for ident in &key.columns {
                    let what = "referenced in foreign key constraint ";
                    columns.push(column_called(schema, ident, what)?);
                }
                let written = Written {
                    name: key.name.as_ref(),
                    constraint: key,
                    is_valid,
                };
                self.foreign_keys.push((columns, written));
                Ok(())
            }
            TableConstraint::Exclude(_) => Err(unsupported(
                "an EXCLUDE constraint",
                position_of(constraint),
            )),
            _ => Err(unsupported(
                "this table constraint",
                position_of(constraint),
            )),
        }
    }

    fn set_primary_key(
        &mut self,
        schema: &mut TableSchema,
        columns: Vec<ColumnId>,
        deferral: Deferral,
        name: Option<&Ident>,
    ) -> Result<()> {
        let has_one = !schema.primary_key.is_empty() || schema.primary_key_name.is_some();
        if has_one || self.primary_key.is_some() {
            let message = format!(
                "multiple primary keys for table \"{}\" are not allowed",
                name_in_schema(&schema.name)
            );
            let position = name.and_then(|name| position_of_span(name.span));
            return Err(fail(SqlState::INVALID_TABLE_DEFINITION, message, position));
        }
        for column in &columns {
            schema.columns[column.index()].not_null = true;
        }
        self.primary_key = Some(UniqueKey {
            columns,
            nulls_equal: false,
            deferral,
            name: name.cloned(),
        });
        Ok(())
    }
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

fn key_columns(schema: &TableSchema, columns: &[IndexColumn], kind: &str) -> Result<Vec<ColumnId>> {
    let mut result: Vec<ColumnId> = Vec::with_capacity(columns.len());
    for column in columns {
        let position = position_of(&column.column.expr);
        let name = index_column_name(column)?;
        let found = schema.column(&name).ok_or_else(|| {
            let message = format!("column \"{name}\" named in key does not exist");
            fail(SqlState::UNDEFINED_COLUMN, message, position)
        })?;
        if result.contains(&found) {
            let message = format!("column \"{name}\" appears twice in {kind} constraint");
            return Err(fail(SqlState::DUPLICATE_COLUMN, message, position));
        }
        result.push(found);
    }
    Ok(result)
}

/// Checks the default value that a column's definition gives, and has the column keep it.
pub(super) fn check_default(
    definition: &ColumnDef,
    column: &mut Column,
    catalog: &dyn CatalogView,
) -> Result<()> {
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
            compiler.for_column(bound, column, "default expression")?;
            column.default = Some(kept_default(expr, &column.data_type, catalog)?);
        }
    }
    Ok(())
}

/// The indexes of the UNIQUE constraints, besides those that there are; `is_taken` says which names
/// relations have.
pub(super) fn declare_keys(
    schema: &TableSchema,
    indexes: &mut Vec<IndexDefinition>,
    constraints: &Constraints<'_>,
    is_taken: &dyn Fn(&str) -> bool,
    position: Position,
) -> Result<()> {
    let primary = schema.primary_key_name.clone();
    let declared = indexes.len();
    for key in &constraints.unique {
        let same = |known: &IndexDefinition| {
            known.columns == key.columns
                && known.nulls_equal == key.nulls_equal
                && known.deferral == key.deferral
        };
        let is_primary = (constraints.primary_key.as_ref()).is_some_and(|primary| {
            let is_same = primary.columns == key.columns && primary.deferral == key.deferral;
            is_same && !key.nulls_equal
        });
        if key.name.is_none() && (is_primary || indexes[declared..].iter().any(same)) {
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
                let taken = name == name_in_schema(&schema.name)
                    || Some(&name) == primary.as_ref()
                    || indexes.iter().any(|known| known.name == name)
                    || is_taken(&name);
                if taken {
                    let message = format!("relation \"{name}\" already exists");
                    return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
                }
                name
            }
            None => names::choose(
                name_in_schema(&schema.name),
                Some(&list.join("_")),
                "key",
                |name| {
                    Some(name) == primary.as_deref()
                        || indexes.iter().any(|known| known.name == name)
                        || is_taken(name)
                },
            ),
        };
        indexes.push(key_index(name, key));
    }
    Ok(())
}

/// The index of a key.
pub(super) fn key_index(name: String, key: &UniqueKey) -> IndexDefinition {
    IndexDefinition {
        name,
        columns: key.columns.clone(),
        unique: !key.deferral.is_deferrable(),
        constraint: true,
        partial: false,
        nulls_equal: key.nulls_equal,
        deferral: key.deferral,
        method: IndexMethod::BTree,
        kind: IndexKind::Ordered {
            partition_columns: 0,
        },
    }
}

/// What the constraint and the index of the primary key are called.
pub(super) fn primary_key_name(
    schema: &TableSchema,
    key: &UniqueKey,
    is_taken: &dyn Fn(&str) -> bool,
    position: Position,
) -> Result<String> {
    let is_taken = |name: &str| name == name_in_schema(&schema.name) || is_taken(name);
    let Some(name) = &key.name else {
        return Ok(names::choose(
            name_in_schema(&schema.name),
            None,
            "pkey",
            is_taken,
        ));
    };
    let name = name_of(name);
    if is_taken(&name) {
        let message = format!("relation \"{name}\" already exists");
        return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
    }
    Ok(name)
}

/// The names of a table's constraints.
pub(super) fn constraint_names(schema: &TableSchema, indexes: &[IndexDefinition]) -> Vec<String> {
    let checks = schema.checks.iter().map(|check| check.name.clone());
    let keys = schema.foreign_keys.iter().map(|key| key.name.clone());
    let indexes = indexes.iter().filter(|index| index.constraint);
    let indexes = indexes.map(|index| index.name.clone());
    let primary = schema.primary_key_name.clone();
    checks.chain(keys).chain(indexes).chain(primary).collect()
}

pub(super) fn refuse_duplicate(
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
            name_in_schema(&schema.name)
        );
        return Err(fail(SqlState::DUPLICATE_OBJECT, message, position));
    }
    Ok(())
}

/// Checks a REFERENCES constraint of the table, whose unique keys are `own_keys`.
pub(super) fn declare_reference(
    schema: &TableSchema,
    indexes: &[IndexDefinition],
    own_keys: &[UniqueKey],
    columns: Vec<ColumnId>,
    (written, set_columns): (&Written<'_, ForeignKeyConstraint>, &[&SetColumns]),
    catalog: &dyn CatalogView,
) -> Result<ForeignKey> {
    let taken = constraint_names(schema, indexes);
    let mut key = references::foreign_key(
        schema,
        own_keys,
        columns,
        (written.constraint, set_columns),
        written.name,
        catalog,
        &|name| taken.iter().any(|known| known == name),
    )?;
    key.is_valid = written.is_valid;
    let position = position_of(&written.constraint.foreign_table);
    refuse_duplicate(schema, indexes, &key.name, position)?;
    Ok(key)
}

/// A condition over the columns of a table, bound where they are in registers.
pub(super) fn bind_check(
    schema: &TableSchema,
    expr: &Expr,
    catalog: &dyn CatalogView,
) -> Result<Bound> {
    let mut compiler = scratch(catalog);
    let columns: Vec<_> = schema
        .columns
        .iter()
        .map(|column| {
            let register = compiler.builder.register(column.data_type.clone());
            (column.name.clone(), column.data_type.clone(), register)
        })
        .collect();
    let source =
        compiler.declare_register_row(name_in_schema(&schema.name), &columns, position_of(expr));
    compiler.push_rows(&[source]);
    compiler.bind_condition(expr, "CHECK")
}

/// Checks a CHECK constraint. PostgreSQL names a condition on one column after it.
pub(super) fn declare_check(
    schema: &TableSchema,
    indexes: &[IndexDefinition],
    written: &Written<'_, CheckConstraint>,
    catalog: &dyn CatalogView,
) -> Result<Check> {
    let check = written.constraint;
    let position = position_of(&*check.expr);
    if check.enforced == Some(false) {
        return Err(unsupported("a CHECK that is NOT ENFORCED", position));
    }
    if check.expr.to_string().to_lowercase().contains("(select") {
        return Err(unsupported("a subquery in a CHECK constraint", position));
    }
    let bound = bind_check(schema, &check.expr, catalog)?;
    let mentioned = bound.columns();
    let column = match mentioned.as_slice() {
        [(_, column)] => Some(schema.columns[usize::from(*column)].name.clone()),
        _ => None,
    };
    let taken = constraint_names(schema, indexes);
    let name = match written.name {
        Some(name) => {
            let name = name_of(name);
            refuse_duplicate(schema, indexes, &name, position)?;
            name
        }
        None => names::choose(
            name_in_schema(&schema.name),
            column.as_deref(),
            "check",
            |name| taken.iter().any(|known| known == name),
        ),
    };
    Ok(Check {
        name,
        expression: check.expr.to_string(),
        is_valid: written.is_valid,
    })
}
