//! CREATE INDEX.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::{beside, name_in_schema};
use kiln_storage::schema::{
    Column, ColumnId, Deferral, IndexDefinition, IndexKind, IndexMethod, TableSchema,
};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::{CreateIndex, Expr, Ident, IndexColumn, IndexType, ObjectName};

use super::super::{
    CatalogView, Position, fail, name_of, position_of, position_of_span, relation_name,
    unsupported, written_name,
};
use super::{index_expression, names, operator_class, parameters, partition};

/// A CREATE INDEX that was checked.
pub struct IndexDeclaration {
    /// The table.
    pub table: Arc<Table>,
    /// The index, over columns of the table and behind these those of `hidden`.
    pub definition: IndexDefinition,
    /// The operator class of each column of its key, where it is not the default of its type.
    pub classes: Vec<Option<String>>,
    /// The columns that the table gets for it.
    pub hidden: Vec<Column>,
}

impl IndexDeclaration {
    /// Whether it is to have entries for rows: of values that have an order, by which every index
    /// that has some is built.
    pub fn is_built(&self) -> bool {
        let IndexDeclaration {
            table,
            definition,
            hidden,
            ..
        } = self;
        let columns = &table.schema().columns;
        let mut key = definition.key_columns().iter();
        let has_order = key.all(|at| {
            let column = columns.get(at.index());
            let column = column.or_else(|| hidden.get(at.index() - columns.len()));
            column.is_none_or(|column| {
                let data_type = &column.data_type;
                let is_whole = matches!(data_type, DataType::Array(_) | DataType::Interval(_));
                !is_whole && *data_type != DataType::JSONB
            })
        });
        // A B-tree of others is refused when it is built.
        definition.method.is_built() && (has_order || definition.method == IndexMethod::BTree)
    }
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
    let method = method_of(statement, position)?;
    check_method(method, statement, position)?;
    let options = parameters::names_of_conditions(&statement.with);
    parameters::check_parameters(options, parameters::of_index(method))?;
    check_included(&statement.include, table.schema())?;
    let mut key = Key::of(table.schema(), method);
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
        classes,
        ..
    } = key;
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
        nulls_equal: statement.nulls_distinct == Some(false),
        deferral: Deferral::No,
        constraint: false,
        partial: statement.predicate.is_some(),
        method,
        kind: IndexKind::Ordered {
            partition_columns: 0,
        },
    };
    Ok(Some(IndexDeclaration {
        table,
        definition,
        classes,
        hidden,
    }))
}

fn refuse_options(statement: &CreateIndex, position: Position) -> Result<()> {
    match statement.alter_options.is_empty() {
        true => Ok(()),
        false => Err(unsupported("an option of an index", position)),
    }
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
    method: IndexMethod,
    columns: Vec<ColumnId>,
    /// The columns that the table lacks.
    hidden: Vec<Column>,
    /// What the declared columns are called.
    names: Vec<String>,
    /// Their operator classes.
    classes: Vec<Option<String>>,
}

impl<'t> Key<'t> {
    fn of(schema: &'t TableSchema, method: IndexMethod) -> Key<'t> {
        Key {
            schema,
            method,
            columns: Vec::new(),
            hidden: Vec::new(),
            names: Vec::new(),
            classes: Vec::new(),
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
        let class = operator_class::check(self.method, column, &data_type, position)?;
        check_order(self.method, column, position)?;
        self.classes.push(class);
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

/// The access method of an index.
///
/// # Errors
/// 42704 for one that is not known.
fn method_of(statement: &CreateIndex, position: Position) -> Result<IndexMethod> {
    let name = match &statement.using {
        None => return Ok(IndexMethod::default()),
        Some(IndexType::Custom(name)) => name_of(name),
        Some(other) => other.to_string().to_lowercase(),
    };
    let mut methods = IndexMethod::ALL.into_iter();
    methods.find(|method| method.name() == name).ok_or_else(|| {
        let message = format!("access method \"{name}\" does not exist");
        fail(SqlState::UNDEFINED_OBJECT, message, position)
    })
}

/// What the access method cannot do.
///
/// # Errors
/// 0A000.
fn check_method(method: IndexMethod, statement: &CreateIndex, position: Position) -> Result<()> {
    use IndexMethod::{BTree, Gin, Gist, SpGist};
    let refused = |what: &str| {
        let message = format!(
            "access method \"{}\" does not support {what}",
            method.name()
        );
        Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position))
    };
    if statement.unique && method != BTree {
        return refused("unique indexes");
    }
    if !statement.include.is_empty() && !matches!(method, BTree | Gist | SpGist) {
        return refused("included columns");
    }
    let takes_several = matches!(method, BTree | Gin | Gist | IndexMethod::Brin);
    if statement.columns.len() > 1 && !takes_several {
        return refused("multicolumn indexes");
    }
    Ok(())
}

/// # Errors
/// 0A000 for an order that the access method does not have.
fn check_order(method: IndexMethod, column: &IndexColumn, position: Position) -> Result<()> {
    let options = &column.column.options;
    let what = if method == IndexMethod::BTree {
        return Ok(());
    } else if options.sort.is_some() {
        "ASC/DESC"
    } else if options.nulls_first.is_some() {
        "NULLS FIRST/LAST"
    } else {
        return Ok(());
    };
    let message = format!(
        "access method \"{}\" does not support {what} options",
        method.name()
    );
    Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position))
}

/// The name of a constraint's column. ASC, DESC and NULLS FIRST say nothing here: an index is read
/// in either direction, and sorts that it does not serve are sorted.
pub(super) fn index_column_name(column: &IndexColumn) -> Result<String> {
    match &column.column.expr {
        Expr::Identifier(ident) => Ok(name_of(ident)),
        other => Err(unsupported("an index on an expression", position_of(other))),
    }
}
