//! CREATE INDEX.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::{beside, name_in_schema};
use kiln_storage::schema::{Column, ColumnId, IndexDefinition, IndexKind, TableSchema};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::{CreateIndex, Expr, Ident, IndexColumn, IndexType, ObjectName};

use super::super::{
    CatalogView, Position, fail, name_of, object_name, position_of, position_of_span,
    relation_name, unsupported, written_name,
};
use super::{index_expression, names, parameters, partition};

/// A CREATE INDEX that was checked.
pub struct IndexDeclaration {
    /// The table.
    pub table: Arc<Table>,
    /// The index, over columns of the table and behind these those of `hidden`.
    pub definition: IndexDefinition,
    /// The columns that the table gets for it.
    pub hidden: Vec<Column>,
}

/// Checks CREATE INDEX. `Ok(None)` means that IF NOT EXISTS found the index.
///
/// # Errors
/// 42P01 without the table, 42703 without a column, 42P07 when the name is taken, 42P17 for an
/// expression that is not immutable, 0A000 for indexes that are not supported.
pub fn create_index(
    statement: &CreateIndex,
    catalog: &dyn CatalogView,
) -> Result<Option<IndexDeclaration>> {
    let position = position_of(&statement.table_name);
    let table_name = relation_name(catalog, &statement.table_name)?;
    let shown = written_name(&statement.table_name);
    let table = catalog.table(&table_name).ok_or_else(|| {
        if catalog.view(&table_name).is_some() {
            let message = format!("cannot create index on relation \"{shown}\"");
            return fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_detail("This operation is not supported for views.");
        }
        let message = format!("relation \"{shown}\" does not exist");
        fail(SqlState::UNDEFINED_TABLE, message, position)
    })?;
    refuse_options(statement, position)?;
    check_included(&statement.include, table.schema())?;
    let mut key = Key::of(table.schema());
    if let Some(predicate) = &statement.predicate {
        key.add_predicate(predicate, catalog)?;
    }
    for column in &statement.columns {
        key.add(column, catalog, position)?;
    }
    let Key {
        columns,
        hidden,
        names,
        ..
    } = key;
    check_access_method(statement, names.len(), position)?;
    if statement.unique {
        partition::check_keys(table.schema(), [columns.as_slice()].into_iter())?;
    }
    let name = match &statement.name {
        Some(name) => {
            let chosen = index_name(name)?;
            if names::is_relation(catalog, &beside(&table_name, &chosen)) {
                if statement.if_not_exists {
                    return Ok(None);
                }
                let message = format!("relation \"{chosen}\" already exists");
                return Err(fail(SqlState::DUPLICATE_TABLE, message, position_of(name)));
            }
            chosen
        }
        None => {
            let first = name_in_schema(&table_name);
            names::choose(first, Some(&names.join("_")), "idx", |name| {
                names::is_relation(catalog, &beside(&table_name, name))
            })
        }
    };
    let definition = IndexDefinition {
        name,
        columns,
        unique: statement.unique,
        constraint: false,
        partial: statement.predicate.is_some(),
        kind: IndexKind::Ordered {
            partition_columns: 0,
        },
    };
    Ok(Some(IndexDeclaration {
        table,
        definition,
        hidden,
    }))
}

fn refuse_options(statement: &CreateIndex, position: Position) -> Result<()> {
    if statement.nulls_distinct == Some(false) {
        return Err(unsupported("NULLS NOT DISTINCT", position));
    }
    if !statement.alter_options.is_empty() {
        return Err(unsupported("an option of an index", position));
    }
    let options = parameters::names_of_conditions(&statement.with);
    parameters::check_parameters(options, parameters::OF_INDEX)
}

/// The columns of INCLUDE have to be there. Rows are in memory, so that an index has nothing of
/// them.
fn check_included(included: &[Ident], schema: &TableSchema) -> Result<()> {
    let missing = included
        .iter()
        .find(|ident| schema.column(&name_of(ident)).is_none());
    match missing {
        None => Ok(()),
        Some(ident) => Err(fail(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{}\" does not exist", name_of(ident)),
            position_of_span(ident.span),
        )),
    }
}

/// The key of an index that is being declared.
struct Key<'t> {
    schema: &'t TableSchema,
    columns: Vec<ColumnId>,
    /// The columns that the table lacks.
    hidden: Vec<Column>,
    /// What the declared columns are called.
    names: Vec<String>,
}

impl<'t> Key<'t> {
    fn of(schema: &'t TableSchema) -> Key<'t> {
        Key {
            schema,
            columns: Vec::new(),
            hidden: Vec::new(),
            names: Vec::new(),
        }
    }

    fn add_predicate(&mut self, predicate: &Expr, catalog: &dyn CatalogView) -> Result<()> {
        let predicate = without_nesting(predicate);
        index_expression::check_predicate(self.schema, predicate, catalog)?;
        let text = index_expression::predicate_column(predicate);
        self.add_hidden(DataType::Boolean, text);
        Ok(())
    }

    fn add(
        &mut self,
        column: &IndexColumn,
        catalog: &dyn CatalogView,
        position: Position,
    ) -> Result<()> {
        let expr = without_nesting(&column.column.expr);
        let (data_type, name) = match expr {
            Expr::Identifier(ident) => {
                let found = column_called(self.schema, ident, expr)?;
                if self.columns.contains(&found) {
                    return Err(unsupported("a column twice in an index", position_of(expr)));
                }
                self.columns.push(found);
                let found = &self.schema.columns[found.index()];
                (found.data_type.clone(), found.name.clone())
            }
            _ => {
                index_expression::check_form(&column.column.expr)?;
                let data_type = index_expression::check(self.schema, expr, catalog)?;
                self.add_hidden(data_type.clone(), expr.to_string());
                (data_type, index_expression::name(expr))
            }
        };
        check_operator_class(column, &data_type, position)?;
        let mut numbered = name.clone();
        let mut number = 0;
        while self.names.contains(&numbered) {
            number += 1;
            numbered = format!("{name}{number}");
        }
        self.names.push(numbered);
        Ok(())
    }

    /// Adds a hidden column: one that holds the same already, or another one.
    fn add_hidden(&mut self, data_type: DataType, text: String) {
        let hidden = Column::hidden(data_type, text);
        let mut known = self.schema.columns.iter().chain(&self.hidden);
        let at = known.position(|known| known.is_hidden() && known.generated == hidden.generated);
        let count = self.schema.columns.len() + self.hidden.len();
        if at.is_none() {
            self.hidden.push(hidden);
        }
        self.columns.push(ColumnId(at.unwrap_or(count) as u16));
    }
}

fn without_nesting(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => without_nesting(inner),
        other => other,
    }
}

fn column_called(schema: &TableSchema, ident: &Ident, expr: &Expr) -> Result<ColumnId> {
    let name = name_of(ident);
    schema.column(&name).ok_or_else(|| {
        let message = format!("column \"{name}\" does not exist");
        fail(SqlState::UNDEFINED_COLUMN, message, position_of(expr))
    })
}

/// The name of a new index, which goes into the schema of its table.
fn index_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [part] => match part.as_ident() {
            Some(ident) => Ok(name_of(ident)),
            None => Err(unsupported(
                "a function as part of a name",
                position_of(name),
            )),
        },
        parts => {
            let dot = parts.first().and_then(|part| part.as_ident());
            let position = dot.and_then(|ident| super::super::position_of_span(ident.span));
            Err(fail(
                SqlState::SYNTAX_ERROR,
                "syntax error at or near \".\"",
                position,
            ))
        }
    }
}

/// USING btree, hash and brin are taken; what an index is built of is our own decision, and every
/// index serves ranges.
fn check_access_method(statement: &CreateIndex, columns: usize, position: Position) -> Result<()> {
    match &statement.using {
        None | Some(IndexType::BTree) => Ok(()),
        Some(IndexType::Hash) if statement.unique => Err(unsupported(
            "a unique index with access method \"hash\"",
            position,
        )
        .with_hint(
            "Leave USING out: look-ups of whole keys are hashed where procedures make them.",
        )),
        Some(IndexType::Hash) if columns > 1 => Err(unsupported(
            "a multicolumn index with access method \"hash\"",
            position,
        )),
        Some(IndexType::Hash) => Ok(()),
        Some(IndexType::BRIN) if statement.unique => Err(fail(
            SqlState::FEATURE_NOT_SUPPORTED,
            "access method \"brin\" does not support unique indexes",
            position,
        )),
        Some(IndexType::BRIN) => Ok(()),
        Some(IndexType::Custom(name))
            if !matches!(name_of(name).as_str(), "gin" | "gist" | "spgist" | "brin") =>
        {
            let message = format!("access method \"{}\" does not exist", name_of(name));
            Err(fail(SqlState::UNDEFINED_OBJECT, message, position))
        }
        Some(other) => {
            let name = other.to_string().to_lowercase();
            Err(unsupported(format!("access method \"{name}\""), position))
        }
    }
}

/// PostgreSQL's operator classes of ordered indexes: a type, and the classes that order its values.
/// Those called `pattern` compare bytes, as all do here.
const OPERATOR_CLASSES: [(&str, &[&str]); 18] = [
    ("array", &["array_ops"]),
    ("bigint", &["int8_ops"]),
    ("boolean", &["bool_ops"]),
    ("bytea", &["bytea_ops"]),
    ("character", &["bpchar_ops", "bpchar_pattern_ops"]),
    ("character varying", TEXT_CLASSES),
    ("date", &["date_ops"]),
    ("double precision", &["float8_ops"]),
    ("integer", &["int4_ops"]),
    ("interval", &["interval_ops"]),
    ("numeric", &["numeric_ops"]),
    ("real", &["float4_ops"]),
    ("smallint", &["int2_ops"]),
    ("text", TEXT_CLASSES),
    ("time without time zone", &["time_ops"]),
    ("timestamp with time zone", &["timestamptz_ops"]),
    ("timestamp without time zone", &["timestamp_ops"]),
    ("uuid", &["uuid_ops"]),
];
const TEXT_CLASSES: &[&str] = &[
    "text_ops",
    "text_pattern_ops",
    "varchar_ops",
    "varchar_pattern_ops",
];

/// # Errors
/// 42704 for an operator class that is not known, 42804 for one of another type.
fn check_operator_class(
    column: &IndexColumn,
    data_type: &DataType,
    position: Position,
) -> Result<()> {
    let Some(class) = &column.operator_class else {
        return Ok(());
    };
    let class = object_name(class)?;
    let mut classes = OPERATOR_CLASSES.iter();
    if !classes.any(|(_, classes)| classes.contains(&class.as_str())) {
        let message =
            format!("operator class \"{class}\" does not exist for access method \"btree\"");
        return Err(fail(SqlState::UNDEFINED_OBJECT, message, position));
    }
    let type_name = data_type.base_name();
    let of_type = match data_type {
        DataType::Array(_) => "array",
        _ => type_name,
    };
    let mut classes = OPERATOR_CLASSES.iter();
    let fits =
        |(known, classes): &(&str, &[&str])| *known == of_type && classes.contains(&class.as_str());
    match classes.any(fits) {
        true => Ok(()),
        false => {
            let message =
                format!("operator class \"{class}\" does not accept data type {type_name}");
            Err(fail(SqlState::DATATYPE_MISMATCH, message, position))
        }
    }
}

/// The name of a constraint's column. ASC, DESC and NULLS FIRST say nothing here: an index is read
/// in either direction, and sorts that it does not serve are sorted.
pub(super) fn index_column_name(column: &IndexColumn) -> Result<String> {
    match &column.column.expr {
        Expr::Identifier(ident) => Ok(name_of(ident)),
        other => Err(unsupported("an index on an expression", position_of(other))),
    }
}
