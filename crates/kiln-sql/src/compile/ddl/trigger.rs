//! CREATE TRIGGER.

use std::collections::BTreeSet;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, TableSchema, Trigger, TriggerEvent, TriggerTime};
use kiln_storage::table::Table;
use sqlparser::ast::Expr;

use super::super::bound::{Bound, Kind, ResultKind, Routine, SourceId};
use super::super::expression::named_columns;
use super::super::{
    CatalogView, fail, name_of, object_name, position_of, position_of_span, scratch,
};
use crate::parse::CreateTrigger;

/// The trigger that a statement creates for a table.
///
/// # Errors
/// PostgreSQL's: 42703 and 42701 for columns of UPDATE OF, 42883 for a function that there is not,
/// 42P17 for one that is not for triggers, and for a condition that looks at what is not there;
/// 0A000 for what is not supported.
pub fn create_trigger(
    statement: &CreateTrigger,
    table: &Table,
    catalog: &dyn CatalogView,
) -> Result<Trigger> {
    let schema = table.schema();
    let mut columns = Vec::new();
    for ident in &statement.columns {
        let (name, position) = (name_of(ident), position_of_span(ident.span));
        let Some(column) = schema.column(&name) else {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                name_in_schema(&schema.name)
            );
            return Err(fail(SqlState::UNDEFINED_COLUMN, message, None));
        };
        if columns.contains(&column) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(fail(SqlState::DUPLICATE_COLUMN, message, position));
        }
        columns.push(column);
    }
    let condition = statement.condition.as_ref().map(|it| &it.expr);
    if let Some(expr) = condition {
        check_condition(statement, schema, expr, catalog)?;
    }
    let function = object_name(&statement.function)?;
    check_function(&function, catalog)?;
    let mut events = statement.events.clone();
    events.sort_unstable();
    Ok(Trigger {
        name: name_of(&statement.name),
        time: statement.time,
        events,
        columns,
        condition: condition.map(Expr::to_string),
        function,
        arguments: statement.arguments.clone(),
        is_enabled: true,
    })
}

fn check_function(name: &str, catalog: &dyn CatalogView) -> Result<()> {
    let definition = catalog.routine(name);
    let routine = definition.map(|it| Routine::of(catalog, &it)).transpose()?;
    match routine {
        Some(routine) if routine.result == ResultKind::Trigger => Ok(()),
        Some(routine) if routine.inputs().is_empty() => {
            let message = format!("function {name} must return type trigger");
            Err(fail(SqlState::INVALID_OBJECT_DEFINITION, message, None))
        }
        _ => {
            let message = format!("function {name}() does not exist");
            Err(Error::new(SqlState::UNDEFINED_FUNCTION, message))
        }
    }
}

fn check_condition(
    statement: &CreateTrigger,
    schema: &TableSchema,
    expr: &Expr,
    catalog: &dyn CatalogView,
) -> Result<()> {
    let mut compiler = scratch(catalog);
    let mut row = |name: &str| {
        let columns = schema.shown().iter().map(|column| {
            let register = compiler.builder.register(column.data_type.clone());
            (column.name.clone(), column.data_type.clone(), register)
        });
        let columns: Vec<_> = columns.collect();
        compiler.declare_register_row(name, &columns, None)
    };
    let (old, new) = (row("old"), row("new"));
    compiler.push_rows_of(&[old, new], "trigger WHEN conditions");
    let bound = compiler.bind_condition(expr, "WHEN")?;
    let position = position_of(expr);
    if bound.any(|part| matches!(part.kind, Kind::Subquery(_))) {
        let message = "cannot use subquery in trigger WHEN condition";
        return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
    }
    let invalid = |message: &str| Err(fail(SqlState::INVALID_OBJECT_DEFINITION, message, position));
    let is_named = |bound: &Bound, row: SourceId| bound.sources().contains(&row);
    if statement.events.contains(&TriggerEvent::Insert) && is_named(&bound, old) {
        return invalid("INSERT trigger's WHEN condition cannot reference OLD values");
    }
    if statement.events.contains(&TriggerEvent::Delete) && is_named(&bound, new) {
        return invalid("DELETE trigger's WHEN condition cannot reference NEW values");
    }
    if statement.time == TriggerTime::Before {
        let mut columns = bound.columns().into_iter();
        let generated = columns.find(|(row, column)| {
            *row == new && schema.columns[usize::from(*column)].generated.is_some()
        });
        if let Some((_, column)) = generated {
            let name = &schema.columns[usize::from(column)].name;
            let message = "BEFORE trigger's WHEN condition cannot reference NEW generated columns";
            let error = fail(SqlState::INVALID_OBJECT_DEFINITION, message, position);
            return Err(error.with_detail(format!("Column \"{name}\" is a generated column.")));
        }
    }
    Ok(())
}

/// The columns that a trigger depends on: those of UPDATE OF, and those that its condition names.
pub fn columns_of_trigger(schema: &TableSchema, trigger: &Trigger) -> Result<BTreeSet<ColumnId>> {
    let mut columns: BTreeSet<ColumnId> = trigger.columns.iter().copied().collect();
    if let Some(text) = &trigger.condition {
        let expr = super::super::stored_expression(text)?;
        columns.extend(named_columns(&expr, schema)?.iter());
    }
    Ok(columns)
}

/// The error for a trigger that a table does not have.
#[cold]
pub fn missing_trigger(name: &str, table: &str) -> Error {
    let table = name_in_schema(table);
    let message = format!("trigger \"{name}\" for table \"{table}\" does not exist");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}
