//! `\d` and `\df`: what the catalog holds.

use kiln_engine::{Catalog, View};
use kiln_sql::ResultSet;
use kiln_sql::compile::ddl::predicate_text;
use kiln_sql::database::is_auxiliary;
use kiln_storage::schema::{ColumnId, IndexKind, Partitioning, TableSchema};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

/// A result with text columns, under a title.
fn listing<const N: usize>(title: &str, headings: [&str; N], rows: Vec<[String; N]>) -> String {
    let result = ResultSet {
        columns: headings
            .map(|heading| (heading.to_owned(), DataType::Text))
            .to_vec(),
        rows: rows
            .into_iter()
            .map(|row| row.map(Value::Text).to_vec())
            .collect(),
    };
    format!("{title}\n{}\n", result.to_table())
}

/// All tables and views.
pub(super) fn tables(catalog: &Catalog) -> String {
    let rows = catalog.tables().map(|(name, table)| {
        let schema = table.schema();
        let indexes = table.indexes().iter().map(|index| index.definition());
        let indexes = indexes.filter(|index| !is_auxiliary(table, index)).count();
        [
            name.to_owned(),
            schema.shown().len().to_string(),
            indexes.to_string(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let views = catalog
        .views()
        .map(|view| [view.name.clone(), view.columns.len().to_string()]);
    let views: Vec<_> = views.collect();
    let tables = match rows.is_empty() {
        true => "There is no table yet.\n".to_owned(),
        false => listing("Tables", ["Name", "Columns", "Indexes"], rows),
    };
    match views.is_empty() {
        true => tables,
        false => tables + &listing("Views", ["Name", "Columns"], views),
    }
}

/// One table.
///
/// # Errors
/// That there is no such table.
pub(super) fn table(catalog: &Catalog, name: &str) -> Result<String, String> {
    let folded = match name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    {
        Some(quoted) => quoted.to_owned(),
        None => name.to_lowercase(),
    };
    if let Some(view) = catalog.view(&folded) {
        return Ok(described_view(view));
    }
    let table = catalog
        .table(&folded)
        .ok_or_else(|| format!("there is no table \"{folded}\"; \\d lists those that there are"))?;
    let schema = table.schema();
    let columns = schema.shown().iter().map(|column| {
        [
            column.name.clone(),
            column.data_type.to_string(),
            if column.not_null { "not null" } else { "" }.to_owned(),
            match &column.generated {
                Some(expression) => format!("generated always as ({expression}) stored"),
                None => column.default.clone().unwrap_or_default(),
            },
        ]
    });
    let headings = ["Column", "Type", "Nullable", "Default"];
    let mut text = listing(&format!("Table \"{folded}\""), headings, columns.collect());
    // The number of rows of a description says nothing.
    if let Some(end) = text.rfind('(') {
        text.truncate(end);
    }
    text += &constraints(table, schema);
    let referencing: Vec<&str> = catalog.referencing(&folded).collect();
    if !referencing.is_empty() {
        text += &format!("Referenced by: {}\n", referencing.join(", "));
    }
    Ok(text)
}

fn described_view(view: &View) -> String {
    let columns = view.columns.iter();
    let columns = columns.map(|(name, data_type)| [name.clone(), data_type.to_string()]);
    let title = format!("View \"{}\"", view.name);
    let mut text = listing(&title, ["Column", "Type"], columns.collect());
    // The number of rows of a description says nothing.
    if let Some(end) = text.rfind('(') {
        text.truncate(end);
    }
    text + &format!("View definition:\n{};\n", view.query)
}

fn names(schema: &TableSchema, columns: &[ColumnId]) -> String {
    let names = columns
        .iter()
        .map(|column| schema.columns[column.index()].label());
    names.collect::<Vec<_>>().join(", ")
}

fn constraints(table: &Table, schema: &TableSchema) -> String {
    let mut text = String::new();
    let definitions = table.indexes().iter().map(|index| index.definition());
    for (position, index) in definitions
        .filter(|index| !is_auxiliary(table, index))
        .enumerate()
    {
        if position == 0 {
            text += "Indexes:\n";
        }
        let columns = names(schema, index.key_columns());
        let predicate = index
            .predicate()
            .map(|column| &schema.columns[column.index()]);
        let predicate = predicate.and_then(|column| predicate_text(column.generated.as_deref()?));
        let predicate = predicate.map_or(String::new(), |text| format!(" WHERE {text}"));
        let is_primary = match schema.primary_key.is_empty() {
            true => schema.primary_key_name.as_ref() == Some(&index.name),
            false => index.columns == schema.primary_key,
        };
        let what = match (
            is_primary && index.constraint,
            index.constraint,
            index.unique,
        ) {
            (true, ..) => "PRIMARY KEY, ",
            (_, true, _) => "UNIQUE CONSTRAINT, ",
            (_, _, true) => "UNIQUE, ",
            _ => "",
        };
        let kind = match index.kind {
            IndexKind::Hash => "hash".to_owned(),
            IndexKind::SplitHash => "hash, split as the rows are".to_owned(),
            IndexKind::Ordered {
                partition_columns: 0,
            } => "ordered".to_owned(),
            IndexKind::Ordered { partition_columns } => {
                let prefix = names(schema, &index.columns[..partition_columns]);
                format!("ordered, partitioned by ({prefix})")
            }
        };
        text += &format!(
            "    \"{}\" {what}{kind} ({columns}){predicate}{}\n",
            index.name,
            index.deferral.clause()
        );
    }
    match schema.partition_by {
        Some(Partitioning::Column(column)) => {
            text += &format!("Partition key: HASH ({})\n", names(schema, &[column]));
        }
        Some(Partitioning::Replicated) => text += "Replicated: every partition has all rows\n",
        None => {}
    }
    let split: Vec<ColumnId> = table.split().iter().collect();
    if !split.is_empty() {
        text += &format!("Kept apart under +ts: {}\n", names(schema, &split));
    }
    if !schema.checks.is_empty() {
        text += "Check constraints:\n";
    }
    for check in &schema.checks {
        let validity = if check.is_valid { "" } else { " NOT VALID" };
        text += &format!(
            "    \"{}\" CHECK ({}){validity}\n",
            check.name, check.expression
        );
    }
    if !schema.foreign_keys.is_empty() {
        text += "Foreign-key constraints:\n";
    }
    for key in &schema.foreign_keys {
        text += &format!(
            "    \"{}\" FOREIGN KEY ({}) REFERENCES {}{}\n",
            key.name,
            names(schema, &key.columns),
            key.table,
            key.clauses(&schema.columns, str::to_owned)
        );
    }
    text
}

/// Functions and procedures; those called `name` when one is given.
pub(super) fn functions(catalog: &Catalog, name: Option<&str>) -> String {
    let found = catalog
        .procedures()
        .filter(|procedure| name.is_none_or(|name| procedure.name() == name.to_lowercase()));
    let rows = found.map(|procedure| {
        let arguments = procedure.program().parameters.iter().map(|parameter| {
            format!("{} {}", parameter.name, parameter.data_type)
                .trim()
                .to_owned()
        });
        let results = procedure
            .columns()
            .iter()
            .map(|(name, data_type)| format!("{name} {data_type}").trim().to_owned());
        [
            procedure.name().to_owned(),
            arguments.collect::<Vec<_>>().join(", "),
            results.collect::<Vec<_>>().join(", "),
        ]
    });
    let rows: Vec<_> = rows.collect();
    match rows.is_empty() {
        true => "There is no such function or procedure.\n".to_owned(),
        false => listing(
            "Functions and procedures",
            ["Name", "Arguments", "Results"],
            rows,
        ),
    }
}
