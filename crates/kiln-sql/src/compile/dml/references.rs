//! REFERENCES, checked from both sides.
//!
//! A row that refers needs its referenced row; a row that is referred to must stay. Both questions
//! are asked in SQL (`EXISTS (SELECT …)`) and planned as any query, through an index where there
//! is one. PostgreSQL asks at the end of the statement (NO ACTION). So do we where the statement
//! itself can change the answer: its keys are kept in a buffer until it has changed all rows.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{BufferId, Failure, Reg, Step, TextSource};
use kiln_storage::error::{Result, SqlState, Subject};
use kiln_storage::schema::{ColumnId, ColumnSet, ForeignKey};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::super::scope::SourceId;
use super::super::{Compiler, Position, Typed};
use super::constraints::sentence;
use super::{names, quoted, stored_expression};

/// One REFERENCES constraint that a statement may violate.
pub(super) struct ReferenceCheck {
    side: Side,
    key: ForeignKey,
    /// The other table.
    other: Arc<Table>,
    /// The columns of the changed table.
    pub(super) columns: Vec<ColumnId>,
    /// Keys to look at when the statement has changed all its rows.
    deferred: Option<BufferId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The changed rows refer to others.
    Child,
    /// The changed rows may be referred to: by the rows with the old key.
    Parent {
        /// The key may still be there: another row may have taken it.
        may_remain: bool,
    },
}

impl ReferenceCheck {
    /// Whether the row's old key counts, and not its new one.
    pub(super) fn is_of_old_key(&self) -> bool {
        matches!(self.side, Side::Parent { .. })
    }
}

/// What a statement does to the rows of a table.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Insert,
    /// These columns get new values.
    Update(ColumnSet),
    Delete,
}

impl Compiler<'_> {
    /// The constraints that `change` may violate. `single` says that the statement changes one row
    /// at most.
    pub(super) fn plan_references(
        &mut self,
        table: &Arc<Table>,
        change: Change,
        single: bool,
    ) -> Result<Vec<ReferenceCheck>> {
        let mut checks = Vec::new();
        let touches = |columns: &[ColumnId]| match change {
            Change::Insert | Change::Delete => true,
            Change::Update(changed) => columns.iter().any(|column| changed.contains(*column)),
        };
        let name = &table.schema().name;
        if !matches!(change, Change::Delete) {
            for key in &table.schema().foreign_keys {
                if touches(&key.columns) {
                    let other = self.table(&key.table, None)?;
                    let columns = key.columns.clone();
                    let deferred = (other.id() == table.id() && !single)
                        .then(|| self.key_buffer(columns.len()));
                    let key = key.clone();
                    checks.push(ReferenceCheck {
                        side: Side::Child,
                        key,
                        other,
                        columns,
                        deferred,
                    });
                }
            }
        }
        if !matches!(change, Change::Insert) {
            for other in self.catalog.referencing(name) {
                for key in &other.schema().foreign_keys {
                    if key.table != *name || !touches(&key.referenced) {
                        continue;
                    }
                    let may_remain = matches!(change, Change::Update(_));
                    let columns = key.referenced.clone();
                    let deferred = (!single && (may_remain || other.id() == table.id()))
                        .then(|| self.key_buffer(columns.len()));
                    checks.push(ReferenceCheck {
                        side: Side::Parent { may_remain },
                        key: key.clone(),
                        other: other.clone(),
                        columns,
                        deferred,
                    });
                }
            }
        }
        Ok(checks)
    }

    fn key_buffer(&mut self, width: usize) -> BufferId {
        let buffer = self.builder.buffer(width);
        self.builder.push(Step::BufferClear { buffer });
        buffer
    }

    /// The values of the check's columns in the row `source`, as they are now.
    pub(super) fn reference_key(
        &mut self,
        check: &ReferenceCheck,
        source: SourceId,
    ) -> Result<Vec<Reg>> {
        check
            .columns
            .iter()
            .map(|column| self.column(source, *column))
            .collect()
    }

    /// Checks the key of one changed row, or keeps it for [`Compiler::finish_references`].
    pub(super) fn check_reference(
        &mut self,
        table: &Arc<Table>,
        check: &ReferenceCheck,
        key: &[Reg],
        position: Position,
    ) -> Result<()> {
        match check.deferred {
            Some(buffer) => {
                self.builder.push(Step::BufferPush {
                    buffer,
                    row: key.into(),
                });
                Ok(())
            }
            None => self.emit_reference(table, check, key, position),
        }
    }

    /// Checks what was kept, after the statement's last row.
    pub(super) fn finish_references(
        &mut self,
        table: &Arc<Table>,
        checks: &[ReferenceCheck],
        position: Position,
    ) -> Result<()> {
        for check in checks {
            let Some(buffer) = check.deferred else {
                continue;
            };
            let columns = check.columns.iter();
            let types: Vec<DataType> = columns
                .map(|column| table.schema().columns[column.index()].data_type.clone())
                .collect();
            let row: Vec<Reg> = types
                .into_iter()
                .map(|data_type| self.builder.register(data_type))
                .collect();
            self.open_ir_loop();
            let result = self.emit_reference(table, check, &row, position);
            let body = self.close_ir_loop();
            self.builder.push(Step::ForBuffer {
                buffer,
                matching: Box::default(),
                row: row.into(),
                body,
            });
            result?;
        }
        Ok(())
    }

    fn emit_reference(
        &mut self,
        table: &Arc<Table>,
        check: &ReferenceCheck,
        key: &[Reg],
        position: Position,
    ) -> Result<()> {
        let holds = match check.side {
            Side::Child => format!(
                "{}EXISTS ({})",
                self.null_tests(table, &check.columns, key),
                select(&check.other, &check.key.referenced)
            ),
            Side::Parent { may_remain } => {
                let mut text = format!(
                    "{}NOT EXISTS ({})",
                    self.null_tests(table, &check.columns, key),
                    select(&check.other, &check.key.columns)
                );
                if may_remain {
                    text.push_str(&format!(" OR EXISTS ({})", select(table, &check.columns)));
                }
                text
            }
        };
        let expr = stored_expression(&holds)?;
        let columns = &table.schema().columns;
        let typed = key
            .iter()
            .zip(&check.columns)
            .map(|(register, column)| Typed {
                register: *register,
                data_type: columns[column.index()].data_type.clone(),
            });
        let typed: Vec<Typed> = typed.collect();
        // A constraint looks at other rows whatever the statement's role may read.
        let holds = self.isolated(|compiler| {
            compiler.set_positional(typed.clone());
            compiler.unrestricted(|compiler| compiler.condition(&expr, "REFERENCES"))
        })?;
        self.unless(holds, |compiler| {
            let mut texts = Vec::new();
            for Typed {
                register,
                data_type,
            } in &typed
            {
                texts.push(compiler.shown(*register, data_type)?);
            }
            let list = compiler.joined(texts);
            let (own, other) = (&table.schema().name, &check.other.schema().name);
            let constraint = &check.key.name;
            let columns = names(table, &check.columns);
            let (message, ending) = match check.side {
                Side::Child => (
                    format!(
                        "insert or update on table \"{own}\" violates foreign key constraint \
                         \"{constraint}\""
                    ),
                    format!(") is not present in table \"{other}\"."),
                ),
                Side::Parent { .. } => (
                    format!(
                        "update or delete on table \"{own}\" violates foreign key constraint \
                         \"{constraint}\" on table \"{other}\""
                    ),
                    format!(") is still referenced from table \"{other}\"."),
                ),
            };
            let text = |compiler: &mut Self, text: String| {
                compiler.builder.constant(DataType::Text, Value::Text(text))
            };
            let (beginning, ending) = (
                text(compiler, format!("Key ({columns})=(")),
                text(compiler, ending),
            );
            let detail = compiler.builtin("sentence", sentence, vec![beginning, list, ending]);
            // The table that refers to the other one has the constraint.
            let referring = match check.side {
                Side::Child => own,
                Side::Parent { .. } => other,
            };
            let subject = Subject::table(referring).with_constraint(constraint);
            compiler.raise(Failure {
                state: SqlState::FOREIGN_KEY_VIOLATION,
                message,
                arguments: Box::default(),
                detail: Some(TextSource::Register(detail)),
                hint: None,
                subject: Some(Box::new(subject)),
                position,
            });
            Ok(())
        })
    }

    /// A key with a NULL refers to nothing: `$1 IS NULL OR ` for each column that may be NULL.
    fn null_tests(&self, table: &Table, columns: &[ColumnId], key: &[Reg]) -> String {
        let mut text = String::new();
        for (number, (column, register)) in columns.iter().zip(key).enumerate() {
            let known = self.builder.constant_value(*register);
            let nullable = !table.schema().columns[column.index()].not_null;
            if nullable && known.is_none_or(Value::is_null) {
                text.push_str(&format!("${} IS NULL OR ", number + 1));
            }
        }
        text
    }
}

/// The query for rows whose columns equal the parameters.
fn select(table: &Table, columns: &[ColumnId]) -> String {
    let tests = columns.iter().enumerate().map(|(number, column)| {
        format!(
            "{} = ${}",
            quoted(&table.schema().columns[column.index()].name),
            number + 1
        )
    });
    let tests: Vec<String> = tests.collect();
    format!(
        "SELECT 1 FROM {} WHERE {}",
        quoted(&table.schema().name),
        tests.join(" AND ")
    )
}
