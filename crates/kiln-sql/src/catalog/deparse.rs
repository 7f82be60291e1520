//! Definitions as SQL: what `pg_get_constraintdef` and its like print.

use kiln_engine::View;
use kiln_storage::schema::{ColumnId, IndexDefinition, TableSchema, is_call};

use super::expression;
use super::expression::{check, printed_default};
use super::pretty::pretty;
use super::snapshot::{
    ConstraintEntry, ConstraintKind, IndexEntry, RoutineEntry, RoutineFacts, RoutineResult,
    Snapshot, TableEntry, has_default,
};
use crate::compile::ddl::{index_expression_name, predicate_text};
use crate::compile::{quote_identifier, sql_name, stored_expression};
use crate::parse::{RoutineKind, Volatility};

/// The names of columns, with commas between them.
pub(super) fn column_list(schema: &TableSchema, columns: &[ColumnId]) -> String {
    let names = columns
        .iter()
        .map(|column| quote_identifier(&schema.columns[column.index()].name));
    names.collect::<Vec<_>>().join(", ")
}

/// What follows the name in ADD CONSTRAINT.
pub(super) fn constraint(
    snapshot: &Snapshot,
    table: &TableEntry,
    constraint: &ConstraintEntry,
) -> String {
    let schema = table.schema();
    let key = |word: &str, at: &usize| {
        let IndexDefinition {
            columns,
            nulls_equal,
            deferral,
            ..
        } = &table.indexes[*at].definition;
        let nulls = if *nulls_equal {
            " NULLS NOT DISTINCT"
        } else {
            ""
        };
        let list = column_list(schema, columns);
        format!("{word}{nulls} ({list}){}", deferral.clause())
    };
    let text = match &constraint.kind {
        ConstraintKind::Check(text) => format!("CHECK ({})", expression::check(schema, text)),
        ConstraintKind::Primary(at) => key("PRIMARY KEY", at),
        ConstraintKind::Unique(at) => key("UNIQUE", at),
        ConstraintKind::ForeignKey(foreign) => {
            let referenced = snapshot.table(&foreign.table);
            let referenced =
                referenced.map(|table| column_list(table.schema(), &foreign.referenced));
            format!(
                "FOREIGN KEY ({}) REFERENCES {}({}){}",
                column_list(schema, &foreign.columns),
                snapshot.shown(&foreign.table),
                referenced.unwrap_or_default(),
                foreign.clauses(&schema.columns, quote_identifier)
            )
        }
    };
    text + validity(constraint)
}

/// What stands behind a constraint that rows may violate.
fn validity(constraint: &ConstraintEntry) -> &'static str {
    match constraint.is_valid {
        true => "",
        false => " NOT VALID",
    }
}

/// The same for people.
pub(super) fn pretty_constraint(
    snapshot: &Snapshot,
    table: &TableEntry,
    entry: &ConstraintEntry,
) -> String {
    match &entry.kind {
        ConstraintKind::Check(text) => {
            let condition = pretty(&expression::check(table.schema(), text));
            format!("CHECK ({condition}){}", validity(entry))
        }
        _ => constraint(snapshot, table, entry),
    }
}

/// CREATE INDEX for people: without the schema where that is not needed.
pub(super) fn pretty_index(table: &TableEntry, entry: &IndexEntry) -> String {
    created_index(table, entry, quote_identifier(table.name()), &pretty)
}

/// CREATE INDEX.
pub(super) fn index(table: &TableEntry, index: &IndexEntry) -> String {
    created_index(table, index, sql_name(table.qualified()), &str::to_owned)
}

fn created_index(
    table: &TableEntry,
    index: &IndexEntry,
    on: String,
    print: &dyn Fn(&str) -> String,
) -> String {
    let definition = &index.definition;
    let unique = if definition.keeps_unique() {
        "UNIQUE "
    } else {
        ""
    };
    let columns = definition.key_columns().iter();
    let columns = columns.enumerate().map(|(at, column)| {
        let key = index_key(table, *column, print);
        match index.classes.get(at) {
            Some(Some(class)) => format!("{key} {class}"),
            _ => key,
        }
    });
    let nulls = match definition.nulls_equal {
        true => " NULLS NOT DISTINCT",
        false => "",
    };
    let predicate = index_predicate(table, index);
    let predicate = predicate.map(|text| format!(" WHERE {}", print(&text)));
    format!(
        "CREATE {unique}INDEX {} ON {} USING {} ({}){nulls}{}",
        quote_identifier(&definition.name),
        on,
        definition.method.name(),
        columns.collect::<Vec<_>>().join(", "),
        predicate.unwrap_or_default()
    )
}

/// A column of an index, or an expression.
pub(super) fn index_key(
    table: &TableEntry,
    column: ColumnId,
    print: &dyn Fn(&str) -> String,
) -> String {
    let schema = table.schema();
    let definition = &schema.columns[column.index()];
    let Some(text) = definition
        .generated
        .as_ref()
        .filter(|_| definition.is_hidden())
    else {
        return quote_identifier(&definition.name);
    };
    let text = print(&expression::check(schema, text));
    match is_call(&text) {
        true => text,
        false => format!("({text})"),
    }
}

/// The names of an index's columns.
pub(super) fn index_columns(table: &TableEntry, index: &IndexEntry) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in index.definition.key_columns() {
        let column = &table.schema().columns[column.index()];
        let name = match &column.generated {
            Some(text) if column.is_hidden() => match stored_expression(text) {
                Ok(expr) => index_expression_name(&expr),
                Err(_) => "expr".to_owned(),
            },
            _ => column.name.clone(),
        };
        let (mut numbered, mut number) = (name.clone(), 0);
        while names.contains(&numbered) {
            number += 1;
            numbered = format!("{name}{number}");
        }
        names.push(numbered);
    }
    names
}

/// The expressions of an index, with commas between them.
pub(super) fn index_expressions(table: &TableEntry, index: &IndexEntry) -> Option<String> {
    let schema = table.schema();
    let columns = index.definition.key_columns().iter();
    let hidden = columns.map(|column| &schema.columns[column.index()]);
    let texts = hidden.filter(|column| column.is_hidden());
    let texts = texts.filter_map(|column| column.generated.as_ref());
    let texts: Vec<String> = texts.map(|text| expression::check(schema, text)).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The predicate of a partial index.
pub(super) fn index_predicate(table: &TableEntry, index: &IndexEntry) -> Option<String> {
    let schema = table.schema();
    let column = &schema.columns[index.definition.predicate()?.index()];
    let text = predicate_text(column.generated.as_deref()?)?;
    Some(expression::check(schema, text))
}

/// The query of a view, as it was written but for each `*`.
pub(super) fn view(view: &View) -> String {
    format!("{};", view.query)
}

/// The arguments of a routine, as its header lists them.
pub(super) fn arguments(facts: &RoutineFacts, with_defaults: bool) -> String {
    let listed = facts
        .arguments
        .iter()
        .filter(|argument| argument.mode != 't');
    let listed = listed.map(|argument| {
        let mode = match (argument.mode, facts.kind) {
            ('i', RoutineKind::Procedure) => "IN ",
            ('o', _) => "OUT ",
            ('b', _) => "INOUT ",
            ('v', _) => "VARIADIC ",
            _ => "",
        };
        let name = match argument.name.as_str() {
            "" => String::new(),
            name => format!("{} ", quote_identifier(name)),
        };
        let default = argument.default.as_ref().filter(|_| with_defaults);
        let default = default.map(|default| format!(" DEFAULT {default}"));
        format!(
            "{mode}{name}{}{}",
            argument.printed,
            default.unwrap_or_default()
        )
    });
    listed.collect::<Vec<_>>().join(", ")
}

/// What a function returns; `None` for a procedure.
pub(super) fn result(facts: &RoutineFacts) -> Option<String> {
    if facts.kind == RoutineKind::Procedure {
        return None;
    }
    let columns = facts
        .arguments
        .iter()
        .filter(|argument| argument.mode == 't');
    let columns: Vec<String> = columns
        .map(|column| format!("{} {}", quote_identifier(&column.name), column.printed))
        .collect();
    if !columns.is_empty() {
        return Some(format!("TABLE({})", columns.join(", ")));
    }
    let set = if facts.is_set { "SETOF " } else { "" };
    Some(match &facts.result {
        RoutineResult::Of(_, printed) => format!("{set}{printed}"),
        RoutineResult::RowOf(table) => format!("{set}{}", quote_identifier(table)),
    })
}

/// CREATE OR REPLACE FUNCTION or PROCEDURE.
pub(super) fn routine(routine: &RoutineEntry, facts: &RoutineFacts) -> String {
    let header = &facts.source.header;
    let kind = match facts.kind {
        RoutineKind::Function => "FUNCTION",
        RoutineKind::Procedure => "PROCEDURE",
    };
    let mut text = format!(
        "CREATE OR REPLACE {kind} public.{}({})\n",
        quote_identifier(&routine.name),
        arguments(facts, true)
    );
    if let Some(result) = result(facts) {
        text += &format!(" RETURNS {result}\n");
    }
    text += &format!(" LANGUAGE {}\n", facts.source.language);
    let volatility = match header.volatility {
        Volatility::Immutable => " IMMUTABLE",
        Volatility::Stable => " STABLE",
        Volatility::Volatile => "",
    };
    let strict = if header.strict { " STRICT" } else { "" };
    let definer = if header.is_definer {
        " SECURITY DEFINER"
    } else {
        ""
    };
    let attributes = format!("{volatility}{strict}{definer}");
    if !attributes.is_empty() {
        text += &format!("{attributes}\n");
    }
    // The mark that ends the body must not stand in it.
    let word = kind.to_lowercase();
    let mut mark = format!("${word}$");
    while facts.source.body.contains(&mark) {
        mark.insert(1, 'x');
    }
    text + &format!("AS {mark}{}{mark}\n", facts.source.body)
}

/// The default value of a column, counted from 0, or what it is computed from; `None` where it has
/// none, or NULL.
pub(super) fn column_default(table: &TableEntry, column: usize) -> Option<String> {
    let column = &table.schema().columns[column];
    if let Some(generated) = &column.generated {
        return Some(check(table.schema(), generated));
    }
    let text = column.default.as_ref().filter(|_| has_default(column))?;
    Some(match stored_expression(text) {
        Ok(expr) => printed_default(&expr, &column.data_type),
        Err(_) => text.clone(),
    })
}
