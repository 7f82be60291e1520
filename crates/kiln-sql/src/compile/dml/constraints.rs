//! NOT NULL and CHECK of a new row.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Failure, Instruction, Reg, ScalarFunction, Step, TextSource};
use kiln_storage::error::{Result, SqlState, Subject};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::super::bound::{Bound, SourceId};
use super::super::coerce::to_output_text;
use super::super::{Compiler, Position};
use super::{names, shown_columns, stored_expression};

/// The most arguments of a builtin.
const ARGUMENTS_MAX: usize = kiln_procedure::executor::ARGUMENTS_MAX;

/// Values longer than this are cut in messages, as in PostgreSQL.
const SHOWN_BYTES_MAX: usize = 64;

/// What must hold for a new row, bound to the row's source.
pub(super) struct RowChecks {
    not_null: Vec<ColumnId>,
    /// Name and condition.
    checks: Vec<(String, Bound)>,
}

impl RowChecks {
    /// The columns that the conditions look at.
    pub(super) fn columns(&self) -> Vec<(SourceId, u16)> {
        self.checks
            .iter()
            .flat_map(|(_, condition)| condition.columns())
            .collect()
    }
}

impl Compiler<'_> {
    /// The checks that a change of the columns `changed` of the row `source` calls for.
    pub(super) fn bind_checks(
        &mut self,
        table: &Arc<Table>,
        source: SourceId,
        changed: ColumnSet,
    ) -> Result<RowChecks> {
        let schema = table.schema();
        let not_null = changed
            .iter()
            .filter(|column| schema.columns[column.index()].not_null)
            .collect();
        let mut checks = Vec::new();
        for check in &schema.checks {
            let expr = stored_expression(&check.expression)?;
            let condition = self.named_as_table(table, source, |compiler| {
                compiler.bind_condition(&expr, "CHECK")
            })?;
            let touched = condition
                .columns()
                .iter()
                .any(|(_, column)| changed.contains(ColumnId(*column)));
            if touched || changed.len() == schema.columns.len() {
                checks.push((check.name.clone(), condition));
            }
        }
        Ok(RowChecks { not_null, checks })
    }

    /// Checks a row whose new values are at hand.
    pub(super) fn emit_checks(
        &mut self,
        table: &Arc<Table>,
        source: SourceId,
        checks: &RowChecks,
        position: Position,
    ) -> Result<()> {
        self.emit_not_null(table, source, &checks.not_null, position)?;
        for (name, condition) in &checks.checks {
            let condition = self.emit(condition)?;
            self.unless(condition, |compiler| {
                let detail = compiler.failing_row(table, source)?;
                let mut error = failure(
                    SqlState::CHECK_VIOLATION,
                    format!(
                        "new row for relation \"{}\" violates check constraint \"{name}\"",
                        name_in_schema(&table.schema().name)
                    ),
                    detail,
                    position,
                );
                let subject = Subject::table(&table.schema().name).with_constraint(name);
                error.subject = Some(Box::new(subject));
                // NULL passes a CHECK.
                let error = Box::new(error);
                compiler.builder.scalar(Instruction::Require {
                    condition,
                    null_fails: false,
                    error,
                });
                Ok(())
            })?;
        }
        Ok(())
    }

    /// One test for all columns; only a row that fails is looked at column by column.
    fn emit_not_null(
        &mut self,
        table: &Arc<Table>,
        source: SourceId,
        columns: &[ColumnId],
        position: Position,
    ) -> Result<()> {
        let mut tested = Vec::new();
        for column in columns {
            let register = self.column(source, *column)?;
            let known = self.builder.constant_value(register);
            if known.is_none_or(Value::is_null) {
                tested.push((*column, register));
            }
        }
        for chunk in tested.chunks(ARGUMENTS_MAX) {
            let registers: Vec<Reg> = chunk.iter().map(|(_, register)| *register).collect();
            let any_null = self.builder.register(DataType::Boolean);
            self.builder.scalar(match registers.as_slice() {
                [source] => Instruction::IsNull {
                    target: any_null,
                    source: *source,
                    negated: false,
                },
                _ => Instruction::AnyNull {
                    target: any_null,
                    sources: registers.into(),
                },
            });
            self.when(any_null, |compiler| {
                let detail = compiler.failing_row(table, source)?;
                for (column, register) in chunk {
                    let schema = table.schema();
                    let name = &schema.columns[column.index()].name;
                    let message = format!(
                        "null value in column \"{name}\" of relation \"{}\" violates not-null constraint",
                        name_in_schema(&schema.name)
                    );
                    let mut error = failure(SqlState::NOT_NULL_VIOLATION, message, detail, position);
                    error.subject = Some(Box::new(Subject::table(&schema.name).with_column(name)));
                    let error = Box::new(error);
                    compiler
                        .builder
                        .scalar(Instruction::RequireNotNull { source: *register, error });
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The text `Failing row contains (…).` for a row. Columns that are not at hand are left out,
    /// as PostgreSQL leaves out those that the user may not see: reading them for a message would
    /// count as a read of the procedure.
    pub(super) fn failing_row(&mut self, table: &Arc<Table>, source: SourceId) -> Result<Reg> {
        let (mut columns, mut texts) = (Vec::new(), Vec::new());
        for column in shown_columns(table) {
            let Some(register) = self.find_available(source, column.0) else {
                continue;
            };
            let data_type = &table.schema().columns[column.index()].data_type;
            texts.push(self.shown(register, data_type)?);
            columns.push(column);
        }
        let list = match columns.len() == table.schema().shown().len() {
            true => String::new(),
            false => format!("({}) = ", names(table, &columns)),
        };
        let beginning = Value::Text(format!("Failing row contains {list}("));
        let beginning = self.builder.constant(DataType::Text, beginning);
        let ending = self
            .builder
            .constant(DataType::Text, Value::Text(").".to_owned()));
        let values = self.joined(texts);
        Ok(self.builtin("sentence", sentence, vec![beginning, values, ending]))
    }

    /// A value as messages show it.
    pub(super) fn shown(&mut self, register: Reg, data_type: &DataType) -> Result<Reg> {
        let text = to_output_text(Bound::register(register, data_type.clone(), None))?;
        let text = self.emit(&text)?;
        Ok(self.builtin("shown_value", shown_value, vec![text]))
    }

    /// Texts with commas between them.
    pub(super) fn joined(&mut self, mut texts: Vec<Reg>) -> Reg {
        while texts.len() > 1 {
            texts = texts
                .chunks(ARGUMENTS_MAX)
                .map(|chunk| self.builtin("comma_list", comma_list, chunk.to_vec()))
                .collect();
        }
        match texts.first() {
            Some(text) => *text,
            None => self
                .builder
                .constant(DataType::Text, Value::Text(String::new())),
        }
    }

    /// Calls a builtin that gives a text.
    pub(super) fn builtin(
        &mut self,
        name: &'static str,
        function: ScalarFunction,
        arguments: Vec<Reg>,
    ) -> Reg {
        let target = self.builder.register(DataType::Text);
        let arguments = arguments.into();
        self.builder.scalar(Instruction::Call {
            function,
            name,
            target,
            arguments,
        });
        target
    }

    /// Appends a step that raises.
    pub(in super::super) fn raise(&mut self, error: Failure) {
        self.builder.push(Step::Raise {
            error: Box::new(error),
        });
    }
}

/// An error with its detail in a register.
pub(super) fn failure(
    state: SqlState,
    message: String,
    detail: Reg,
    position: Position,
) -> Failure {
    Failure {
        state,
        message,
        arguments: Box::default(),
        detail: Some(TextSource::Register(detail)),
        hint: None,
        subject: None,
        position,
    }
}

/// `null` for NULL, and long values cut.
fn shown_value(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let value = arguments[0];
    if value.is_null() {
        return Ok(heap.push_str("null"));
    }
    let text = heap.str(value);
    if text.len() <= SHOWN_BYTES_MAX {
        return Ok(value);
    }
    let cut = format!("{}...", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)]);
    Ok(heap.push_str(&cut))
}

fn comma_list(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let texts: Vec<&str> = arguments.iter().map(|slot| heap.str(*slot)).collect();
    let list = texts.join(", ");
    Ok(heap.push_str(&list))
}

/// Texts put together.
pub(super) fn sentence(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let text: String = arguments.iter().map(|slot| heap.str(*slot)).collect();
    Ok(heap.push_str(&text))
}
