//! The rows that UPDATE and DELETE change.

use kiln_engine::View;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{RecordReg, Step, TableRef};
use kiln_storage::error::Result;
use kiln_storage::schema::ColumnId;
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::{Expr, Query, TableWithJoins};

use super::bound::{Body, Bound, ItemKind, SourceId};
use super::{Compiler, Position, unsupported};

/// A row that matched, inside the body of `Compiler::for_each_matching_row`.
#[derive(Clone, Copy, Debug)]
pub struct RowSource {
    /// What its columns are columns of.
    pub source: SourceId,
    /// By which they are named; it is in scope in the body. It is another one for a row that is
    /// changed by way of a view.
    pub named: SourceId,
    /// Its table.
    pub table: TableRef,
    /// Its record.
    pub record: RecordReg,
}

impl Compiler<'_> {
    /// Runs `body` for each row of `table` that satisfies `selection`. In the body the row is in
    /// scope under `alias`, as are those of `from` (the tables of UPDATE … FROM and DELETE …
    /// USING).
    ///
    /// With `materialise` all rows are found before the first iteration of `body`, so that what it
    /// writes does not change which rows are found. It is not needed when `body` changes no
    /// column of any index and inserts nothing; it costs nothing when the row is found by a
    /// unique key.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the condition; 0A000 for what is not supported.
    #[expect(clippy::too_many_arguments, reason = "the clauses of one statement")]
    pub(super) fn for_each_matching_row(
        &mut self,
        table: &Arc<Table>,
        view: Option<&TargetView>,
        alias: &str,
        from: &[TableWithJoins],
        selection: Option<&Expr>,
        materialise: bool,
        position: Position,
        body: &mut dyn FnMut(&mut Self, RowSource) -> Result<()>,
    ) -> Result<()> {
        let (query, target, named, names) =
            self.bind_target((table, view), alias, from, selection, position)?;
        let sources = query.sources();
        let Body::Select(mut select) = query.body else {
            return Ok(());
        };
        let reference = self.builder.table(table);
        let repeats = !from.is_empty() && !self.matches_once(&select, target);
        let primary_key = &table.schema().primary_key;
        if repeats && primary_key.is_empty() {
            return Err(unsupported(
                "a join that may match a row several times, of a table without a primary key",
                position,
            ));
        }
        // What is no table, and what is a copy, has only the columns that are asked for.
        for item in &select.items {
            let is_table = matches!(item.kind, ItemKind::Table(_)) && !repeats;
            if item.source != target && !is_table {
                let columns = 0..self.source(item.source).columns.len();
                let columns = columns.map(|column| self.column_of(item.source, column, None));
                select.outputs.extend(columns);
            }
        }
        // The target's record is what is wanted: it cannot be a copy of its columns.
        let plan = self.plan_for(&select, &[], false, Some(target));
        if !repeats && (plan.single || !materialise) {
            return self.emit_plan(&plan, &mut |compiler| {
                let Some((_, record)) = compiler.source(target).record else {
                    return Ok(());
                };
                let hidden = std::mem::take(&mut compiler.levels);
                compiler.levels.push(names.clone());
                let result = body(
                    compiler,
                    RowSource {
                        source: target,
                        named,
                        table: reference,
                        record,
                    },
                );
                compiler.levels = hidden;
                result
            });
        }
        let others: Vec<(SourceId, u16)> = sources
            .iter()
            .filter(|source| **source != target)
            .flat_map(|source| {
                let columns = self.source(*source).columns.len();
                (0..columns).map(|column| (*source, column as u16))
            })
            .collect();
        let buffer = self.builder.buffer(1 + others.len());
        self.builder.push(Step::BufferClear { buffer });
        // A row that is matched several times is changed once.
        let key: Vec<Bound> = primary_key
            .iter()
            .map(|column| self.column_of(target, column.index(), None))
            .collect();
        let seen = match repeats {
            true => Some(self.start_distinct(&key)?),
            false => None,
        };
        self.emit_plan(&plan, &mut |compiler| {
            let Some((_, record)) = compiler.source(target).record else {
                return Ok(());
            };
            let is_new = match &seen {
                Some((seen, classes)) => {
                    let key = compiler.emit_row(&key)?;
                    Some(compiler.push_distinct(*seen, classes, &key))
                }
                None => None,
            };
            compiler.open();
            let saved = compiler.builder.register(DataType::BigInt);
            compiler.builder.push(Step::SaveRecord {
                target: saved,
                record,
            });
            compiler.prefetch_columns(&others)?;
            let mut row = vec![saved];
            for (source, column) in &others {
                row.push(compiler.available_column(*source, *column)?);
            }
            compiler.builder.push(Step::BufferPush {
                buffer,
                row: row.into(),
            });
            let steps = compiler.close();
            match is_new {
                Some(condition) => compiler.builder.push(Step::If {
                    condition,
                    then: steps,
                    otherwise: Vec::new(),
                }),
                None => steps
                    .into_iter()
                    .for_each(|step| compiler.builder.push(step)),
            }
            Ok(())
        })?;
        let saved = self.builder.register(DataType::BigInt);
        let mut row = vec![saved];
        self.open_ir_loop();
        for (source, column) in &others {
            let data_type = self.source(*source).columns[*column as usize].1.clone();
            let register = self.builder.register(data_type);
            self.set_column(*source, *column as usize, register);
            row.push(register);
        }
        let record = self.builder.record();
        self.builder.push(Step::RestoreRecord {
            record,
            source: saved,
        });
        self.source_mut(target).record = Some((reference, record));
        let hidden = std::mem::take(&mut self.levels);
        self.levels.push(names);
        let result = body(
            self,
            RowSource {
                source: target,
                named,
                table: reference,
                record,
            },
        );
        self.levels = hidden;
        self.source_mut(target).record = None;
        let steps = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: row.into(),
            body: steps,
        });
        result
    }
}

/// A view, down to the table whose rows it shows.
pub(super) struct TargetView {
    /// The view that the statement names, the one that it reads from, and so on.
    pub layers: Vec<Layer>,
    /// The columns of the first one, and those of the table that they are.
    pub columns: Vec<(String, Option<ColumnId>)>,
    /// Whether a view asks about other rows than the one at hand, which a statement may have
    /// changed by then.
    pub has_subquery: bool,
}

/// One view.
pub(super) struct Layer {
    pub view: Arc<View>,
    pub query: Box<Query>,
    pub has_subquery: bool,
    /// What its query calls the rows of the table or view that it reads from.
    pub alias: String,
}
