//! Explanations of programs, and EXPLAIN.

mod json;

use std::fmt::Write;

use kiln_engine::{Arguments, Catalog, Procedure};
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::Program;
use kiln_storage::error::{Error, Result};
use kiln_storage::schema::IndexKind;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::prepared::{Column, Plan, Statement};
use super::result::{ResultSet, StatementResult};
use super::session::Session;
use super::statement::Shape;
use crate::catalog::is_auxiliary;
use crate::parse::{self, ExplainFormat, ExplainOptions, SourceStatement, Statement as Tree};

/// The column of an explanation.
pub(super) const COLUMN: &str = "QUERY PLAN";

/// The program's operations and what the analysis knows of them.
pub(super) fn text(program: &Program) -> String {
    kiln_procedure::explain::text(program)
}

/// As [`text()`], with the indexes that a stored procedure uses and how they are built.
pub(super) fn procedure(catalog: &Catalog, procedure: &Procedure) -> String {
    let mut out = text(procedure.program());
    let mut seen = Vec::new();
    for requirement in procedure.index_uses() {
        let found = (requirement.table, requirement.index);
        let table = catalog.table_by_id(requirement.table);
        let (Some(table), false) = (table, seen.contains(&found)) else {
            continue;
        };
        if seen.is_empty() {
            out.push_str("\nindexes\n");
        }
        seen.push(found);
        let _ = writeln!(out, "  {}", index(table, usize::from(requirement.index)));
    }
    out
}

/// An index and how it is built: `stock_pkey_hash on stock: hash (derived)`.
fn index(table: &Table, position: usize) -> String {
    let definition = table.indexes()[position].definition();
    let schema = table.schema();
    let built = match definition.kind {
        IndexKind::Hash if is_auxiliary(table, definition) => "hash (derived)".to_owned(),
        IndexKind::Hash => "hash".to_owned(),
        IndexKind::SplitHash => "hash, split as the rows are (derived)".to_owned(),
        IndexKind::Ordered {
            partition_columns: 0,
        } => "ordered".to_owned(),
        IndexKind::Ordered { partition_columns } => {
            let columns = definition.columns[..partition_columns].iter();
            let names: Vec<&str> = columns
                .map(|column| schema.columns[column.index()].name.as_str())
                .collect();
            format!("ordered, partitioned by {} (derived)", names.join(", "))
        }
    };
    format!("{} on {}: {built}", definition.name, schema.name)
}

/// The program's dependencies as a graph for Graphviz.
pub(super) fn dot(program: &Program) -> String {
    kiln_procedure::explain::dot(program)
}

/// The explanation of a program, as the options of its EXPLAIN ask for it.
pub(super) struct Explanation {
    pub options: ExplainOptions,
    body: Body,
}

enum Body {
    Text(String),
    Json(json::Explained),
}

/// What EXPLAIN ANALYZE has met.
struct Met {
    rows: u64,
    elapsed_ns: u64,
}

impl Explanation {
    /// That of a statement on data.
    pub fn of_program(program: &Program, options: ExplainOptions) -> Explanation {
        Explanation::new(program, options, || text(program))
    }

    /// That of a call of a stored procedure.
    pub fn of_procedure(
        catalog: &Catalog,
        called: &Procedure,
        options: ExplainOptions,
    ) -> Explanation {
        Explanation::new(called.program(), options, || procedure(catalog, called))
    }

    fn new(
        program: &Program,
        options: ExplainOptions,
        text: impl FnOnce() -> String,
    ) -> Explanation {
        let body = match options.format {
            ExplainFormat::Json => Body::Json(json::Explained::of(program)),
            ExplainFormat::Text => {
                let mut text = text();
                if options.verbose {
                    let updates = kiln_procedure::explain::updates(program);
                    if !updates.is_empty() {
                        text.push('\n');
                        text.push_str(&updates);
                    }
                }
                Body::Text(text)
            }
        };
        Explanation { options, body }
    }

    /// The rows of EXPLAIN: one for each line of a text.
    fn shown(&self, met: Option<&Met>) -> StatementResult {
        let rows = match &self.body {
            Body::Json(explained) => vec![explained.written(met, self.options)],
            Body::Text(text) => {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                if let Some(met) = met {
                    lines.push(format!("Rows: {}", met.rows));
                    if self.options.timing || self.options.summary {
                        lines.push(format!(
                            "Execution Time: {} ms",
                            milliseconds(met.elapsed_ns)
                        ));
                    }
                }
                lines
            }
        };
        let rows = rows.into_iter().map(|line| vec![Value::Text(line)]);
        StatementResult {
            tag: "EXPLAIN".to_owned(),
            result: Some(ResultSet {
                columns: vec![(COLUMN.to_owned(), data_type(self.options.format))],
                rows: rows.collect(),
            }),
            notices: Vec::new(),
        }
    }
}

/// The column of EXPLAIN.
pub(super) fn column(format: ExplainFormat) -> Column {
    Column {
        data_type: data_type(format),
        ..Column::of_text(COLUMN)
    }
}

fn data_type(format: ExplainFormat) -> DataType {
    match format {
        ExplainFormat::Text => DataType::Text,
        ExplainFormat::Json => DataType::JSON,
    }
}

fn milliseconds(elapsed_ns: u64) -> String {
    format!("{:.3}", elapsed_ns as f64 / 1e6)
}

impl Session {
    /// EXPLAIN.
    pub(super) fn explain(
        &mut self,
        explain: &parse::Explain,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        if let Tree::Execute(execute) = &*explain.statement {
            return self.explain_execute(explain, execute, statement, values);
        }
        let Plan::Explain(plan) = statement.plan(&self.session.catalog())? else {
            return Err(planned_otherwise());
        };
        let met = match plan.explanation.options.analyze {
            true => Some(self.analyze(statement, values)?),
            false => None,
        };
        Ok(plan.explanation.shown(met.as_ref()))
    }

    /// Runs the statement that is explained.
    fn analyze(&mut self, statement: &Statement, values: &[Value]) -> Result<Met> {
        let begun_ns = time::now_ns();
        let Plan::Explain(plan) = statement.plan(&self.session.catalog())? else {
            return Err(planned_otherwise());
        };
        let rows = match &plan.analyzed {
            Plan::Call(call) => self.call_rows(statement, call, values)?.len(),
            _ => {
                let mut arguments = self.arguments(statement, values)?;
                let mut counts = false;
                let compile = |catalog: &Arc<Catalog>, _: &mut Arguments| {
                    let Plan::Explain(plan) = statement.plan(catalog)? else {
                        return Err(planned_otherwise());
                    };
                    let (program, shape) = plan.analyzed.clone().data()?;
                    counts = matches!(shape, Shape::Count(_));
                    Ok(program)
                };
                let rows = self.session.run_with(compile, &mut arguments)?;
                match (counts, rows.values().first().and_then(|row| row.first())) {
                    (true, Some(Value::BigInt(count))) => usize::try_from(*count).unwrap_or(0),
                    _ => rows.len(),
                }
            }
        };
        Ok(Met {
            rows: rows as u64,
            elapsed_ns: time::now_ns().saturating_sub(begun_ns),
        })
    }

    /// EXPLAIN EXECUTE: what explains the statement that was prepared, with the values for it.
    fn explain_execute(
        &mut self,
        explain: &parse::Explain,
        execute: &parse::Execute,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        let tree = Tree::Execute(Box::new(execute.clone()));
        let execution = self.rewritten(statement, tree)?;
        self.authorize(&execution)?;
        let (prepared, values) = self.execute_as(execute, &execution, values)?;
        let Some(tree) = prepared.tree() else {
            return Err(Error::unsupported("EXPLAIN EXECUTE of the empty statement"));
        };
        let explain = parse::Explain {
            written: explain.written.clone(),
            statement: Box::new((**tree).clone()),
        };
        let explained = self.rewritten(&prepared, Tree::Explain(explain.clone()))?;
        self.authorize(&explained)?;
        self.check_writable(&explained)?;
        self.explain(&explain, &explained, &values)
    }

    /// A statement of the same text and parameters with another tree.
    pub(super) fn rewritten(&self, statement: &Statement, tree: Tree) -> Result<Statement> {
        let position = statement.position();
        let source = SourceStatement {
            text: statement.text(),
            line: position.line,
            column: position.column,
        };
        let parameters = statement.parameters().iter().cloned().map(Some).collect();
        let path = self.path();
        Statement::analyse(
            Arc::new(tree),
            &source,
            parameters,
            &self.session.catalog(),
            &path,
        )
    }
}

#[cold]
fn planned_otherwise() -> Error {
    Error::internal("an EXPLAIN was planned as something else")
}
