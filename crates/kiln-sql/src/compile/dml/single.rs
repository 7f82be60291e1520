//! Programs that write one row by its primary key, for rows that come from Rust and not from SQL.
//! They check what SQL's statements check.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Failure, Instruction, Reg, Step, TextSource};
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::Result;
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::super::bound::Bound;
use super::super::domain::domain_of;
use super::super::rows::RowSource;
use super::super::{CatalogView, Compiler, unsupported};
use super::insert::Plan;
use super::references::Change;
use super::update::refuse_moving;
use super::{Returning, generated, shown_columns};

/// A program that inserts a row; its parameters are the columns that statements can name. With
/// `ignore_conflict` it emits whether it inserted, and else raises 23505 when a key is taken.
///
/// # Errors
/// Those of the constraints' expressions.
pub fn insert_program(
    catalog: &dyn CatalogView,
    table: &Arc<Table>,
    ignore_conflict: bool,
) -> Result<Program> {
    let columns: Vec<ColumnId> = shown_columns(table).collect();
    let mut compiler = start("insert into", catalog, table, &columns);
    let mut values: Vec<Reg> = (0..columns.len())
        .map(|position| compiler.builder.parameter(position))
        .collect();
    compiler.refuse_generated(table, &values);
    for (column, value) in table.schema().shown().iter().zip(&values) {
        if column.generated.is_none()
            && let Some(domain) = domain_of(column, catalog)?
        {
            compiler.check_domain(*value, &domain)?;
        }
    }
    for column in table.schema().hidden_columns() {
        let data_type = table.schema().columns[column.index()].data_type.clone();
        values.push(compiler.builder.constant(data_type, Value::Null));
    }
    let references = compiler.plan_references(table, Change::Insert, true)?;
    let mut plan = Plan::of_row(&mut compiler, table, references, ignore_conflict);
    if !ignore_conflict {
        compiler.insert_row(&mut plan, &values, None)?;
        compiler.finish_insert(&plan)?;
        return compiler.finish();
    }
    let flag = compiler.flag();
    compiler.insert_row(
        &mut plan,
        &values,
        Some(&mut |compiler: &mut Compiler<'_>, _| {
            compiler.raise_flag(flag);
            Ok(())
        }),
    )?;
    compiler.finish_insert(&plan)?;
    compiler.emit_flag(flag)
}

/// A program that updates `columns` of a row; its parameters are the primary key and the new
/// values. It emits whether there is such a row.
///
/// # Errors
/// 0A000 for a table without a primary key; those of the constraints' expressions.
pub fn update_program(
    catalog: &dyn CatalogView,
    table: &Arc<Table>,
    columns: &[ColumnId],
) -> Result<Program> {
    let key = primary_key(table)?;
    for column in columns {
        refuse_moving(table, *column, None)?;
        if table.schema().columns[column.index()].generated.is_some() {
            let message = |name: &str| format!("column \"{name}\" can only be updated to DEFAULT");
            return Err(generated::refusal(table, *column, message));
        }
    }
    let parameters: Vec<ColumnId> = key.iter().chain(columns).copied().collect();
    let mut compiler = start("update", catalog, table, &parameters);
    let changed: ColumnSet = columns.iter().copied().collect();
    let changed = generated::with_generated(table, changed)?;
    let references = compiler.plan_references(table, Change::Update(changed), true)?;
    let flag = compiler.flag();
    compiler.for_row_with_key(table, key.len(), &mut |compiler, row| {
        let values = columns.iter().enumerate().map(|(position, column)| {
            let register = compiler.builder.parameter(key.len() + position);
            let definition = &table.schema().columns[column.index()];
            let value = Bound::register(register, definition.data_type.clone(), None);
            Ok((*column, compiler.of_column(value, definition)?))
        });
        let values = values.collect::<Result<_>>()?;
        let returning = Returning {
            columns: Vec::new(),
        };
        let change = compiler.bind_change((table, None), row.source, values, returning)?;
        compiler.emit_change(table, row, &change, &references, None, |compiler| {
            compiler.raise_flag(flag);
            Ok(())
        })
    })?;
    compiler.finish_references(table, &references, None)?;
    compiler.emit_flag(flag)
}

/// A program that deletes a row; its parameters are the primary key. It emits whether there was
/// such a row.
///
/// # Errors
/// 0A000 for a table without a primary key.
pub fn delete_program(catalog: &dyn CatalogView, table: &Arc<Table>) -> Result<Program> {
    let key = primary_key(table)?;
    let mut compiler = start("delete from", catalog, table, &key);
    let references = compiler.plan_references(table, Change::Delete, true)?;
    let flag = compiler.flag();
    compiler.for_row_with_key(table, key.len(), &mut |compiler, row| {
        compiler.emit_delete(table, row, &references, None, |compiler| {
            compiler.raise_flag(flag);
            Ok(())
        })
    })?;
    compiler.finish_references(table, &references, None)?;
    compiler.emit_flag(flag)
}

fn primary_key(table: &Table) -> Result<Vec<ColumnId>> {
    let key = &table.schema().primary_key;
    if key.is_empty() {
        let name = &table.schema().name;
        return Err(unsupported(
            format!("a row of \"{name}\", which has no primary key,"),
            None,
        ));
    }
    Ok(key.clone())
}

/// A compiler whose parameters are columns of `table`.
fn start<'a>(
    what: &str,
    catalog: &'a dyn CatalogView,
    table: &Table,
    parameters: &[ColumnId],
) -> Compiler<'a> {
    #[cfg(test)]
    crate::database::panics::planted::reach(crate::database::panics::planted::Step::Bind);
    let schema = table.schema();
    let parameters: Vec<(String, DataType)> = parameters
        .iter()
        .map(|column| {
            let column = &schema.columns[column.index()];
            (column.name.clone(), column.data_type.clone())
        })
        .collect();
    Compiler::new(
        ProgramBuilder::new(&format!("{what} {}", schema.name), parameters),
        catalog,
    )
}

impl Compiler<'_> {
    /// Raises where a row gives a generated column a value.
    fn refuse_generated(&mut self, table: &Table, values: &[Reg]) {
        let generated = generated::generated_columns(table);
        for column in generated.iter().take_while(|it| it.index() < values.len()) {
            let message =
                |name: &str| format!("cannot insert a non-DEFAULT value into column \"{name}\"");
            let error = generated::refusal(table, column, message);
            let condition = self.builder.register(DataType::Boolean);
            self.builder.scalar(Instruction::IsNull {
                target: condition,
                source: values[column.index()],
                negated: false,
            });
            let detail = error
                .detail()
                .map(|text| TextSource::Literal(text.to_owned()));
            let error = Box::new(Failure {
                state: error.state(),
                message: error.message().to_owned(),
                arguments: Box::default(),
                detail,
                hint: None,
                subject: None,
                position: None,
            });
            self.builder.scalar(Instruction::Require {
                condition,
                null_fails: true,
                error,
            });
        }
    }

    /// A new flag that is down.
    fn flag(&mut self) -> Reg {
        let target = self.builder.register(DataType::Boolean);
        let source = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(false));
        self.builder.scalar(Instruction::Move { target, source });
        target
    }

    fn raise_flag(&mut self, target: Reg) {
        let source = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(true));
        self.builder.scalar(Instruction::Move { target, source });
    }

    fn emit_flag(mut self, flag: Reg) -> Result<Program> {
        self.builder.push(Step::Emit { row: [flag].into() });
        self.builder
            .returns(vec![("done".to_owned(), DataType::Boolean)]);
        self.finish()
    }

    /// Runs `body` for the row whose primary key is in the first `width` parameters.
    fn for_row_with_key(
        &mut self,
        table: &Arc<Table>,
        width: usize,
        body: &mut dyn FnMut(&mut Self, RowSource) -> Result<()>,
    ) -> Result<()> {
        let reference = self.builder.table(table);
        let primary = &table.schema().primary_key;
        // A hash index over the same columns answers in one step.
        let hashed = table.indexes().iter().position(|index| {
            let definition = index.definition();
            definition.kind.is_hash() && index.supports_lookup() && definition.columns == *primary
        });
        let index = hashed.unwrap_or(0) as u16;
        let key: Vec<Reg> = (0..width)
            .map(|position| self.builder.parameter(position))
            .collect();
        let (record, found) = self.builder.lookup(reference, index, &key, None);
        self.when(found, |compiler| {
            let name = name_in_schema(&table.schema().name).to_owned();
            let source = compiler.declare_record_row(table, &name, record, None);
            body(
                compiler,
                RowSource {
                    source,
                    named: source,
                    table: reference,
                    record,
                },
            )
        })
    }
}
