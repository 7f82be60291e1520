//! The last pass: operands have the types that their steps expect.

use kiln_storage::schema::ColumnId;
use kiln_storage::types::DataType;

use super::alike::{assignable, same_family};
use super::meanings::{Content, Meanings};
use super::{Path, block_names};
use crate::ir::*;
use crate::names::{step_blocks, step_name};
use crate::procedure::Procedure;

/// Checks the types of all operands; numbers are known to be in range.
pub(super) fn verify(procedure: &Procedure, meanings: Meanings) -> Result<(), String> {
    Types {
        procedure,
        path: Path::default(),
        meanings,
    }
    .block("body", &procedure.body)
}

/// Whether integers of this many bits are whole values of the type.
fn holds_width(data_type: &DataType, width: Width) -> bool {
    match data_type {
        DataType::SmallInt => width == Width::Two,
        DataType::Integer | DataType::Date => width != Width::Eight,
        DataType::BigInt
        | DataType::Timestamp(_)
        | DataType::TimestampTz(_)
        | DataType::Time(_)
        | DataType::Enum(_) => true,
        _ => false,
    }
}

struct Types<'a> {
    procedure: &'a Procedure,
    path: Path,
    meanings: Meanings,
}

impl Types<'_> {
    fn block(&mut self, name: &'static str, steps: &[Step]) -> Result<(), String> {
        self.path.enter(name);
        for (position, step) in steps.iter().enumerate() {
            self.path.at(position);
            self.step(step)
                .map_err(|rule| format!("{} ({}): {rule}", self.path, step_name(step)))?;
            for (name, inner) in block_names(step).into_iter().zip(step_blocks(step)) {
                self.block(name, inner)?;
            }
        }
        self.path.leave();
        Ok(())
    }

    fn type_of(&self, register: Reg) -> &DataType {
        &self.procedure.registers[register.0 as usize]
    }

    fn expect(
        &self,
        register: Reg,
        expected: &str,
        holds: impl Fn(&DataType) -> bool,
    ) -> Result<(), String> {
        let data_type = self.type_of(register);
        if holds(data_type) {
            return Ok(());
        }
        Err(format!(
            "register {} is {data_type}, expected {expected}",
            register.0
        ))
    }

    fn class(&self, register: Reg, class: Class) -> Result<(), String> {
        self.expect(register, &format!("the class {class:?}"), |data_type| {
            Class::of(data_type) == Some(class)
        })
    }

    fn boolean(&self, register: Reg) -> Result<(), String> {
        self.expect(register, "boolean", |data_type| {
            *data_type == DataType::Boolean
        })
    }

    fn integer(&self, register: Reg) -> Result<(), String> {
        self.expect(register, "an integer", DataType::is_integer)
    }

    /// An operand of integer arithmetic: an integer, or a date or timestamp moved by one.
    fn countable(&self, register: Reg) -> Result<(), String> {
        self.expect(register, "an integer", |data_type| {
            Class::of(data_type) == Some(Class::Integer) && *data_type != DataType::Boolean
        })
    }

    fn width(&self, register: Reg, width: Width) -> Result<(), String> {
        self.expect(
            register,
            &format!("room for {width:?} bytes"),
            |data_type| holds_width(data_type, width),
        )
    }

    /// `from` may be moved to `to`.
    fn moves(&self, from: Reg, to: &DataType) -> Result<(), String> {
        self.expect(from, &format!("what fits {to}"), |data_type| {
            assignable(data_type, to)
        })
    }

    fn failure(&self, failure: &Failure) -> Result<(), String> {
        for argument in &failure.arguments {
            self.expect(*argument, "text", DataType::is_string)?;
        }
        for text in [&failure.detail, &failure.hint] {
            if let Some(TextSource::Register(register)) = text {
                self.expect(*register, "text", DataType::is_string)?;
            }
        }
        Ok(())
    }

    /// What rows have in a column.
    fn column_type(&self, table: TableRef, column: ColumnId) -> &DataType {
        let schema = self.procedure.tables[table.0 as usize].schema();
        schema.columns[column.index()].data_type.in_rows()
    }

    /// The values of a change that may be taken back fit their columns.
    fn undo(&self, table: TableRef, undo: &Undo) -> Result<(), String> {
        let columns = self.procedure.tables[table.0 as usize]
            .schema()
            .columns
            .len();
        match undo {
            Undo::Update(columns) => columns.iter().try_for_each(|(column, register)| {
                self.moves(*register, self.column_type(table, *column))
            }),
            Undo::Insert => Ok(()),
            Undo::Delete(values) if values.len() != columns => {
                Err(format!("{} values for {columns} columns", values.len()))
            }
            Undo::Delete(values) => {
                (0..)
                    .map(ColumnId)
                    .zip(values)
                    .try_for_each(|(column, register)| {
                        self.moves(*register, self.column_type(table, column))
                    })
            }
        }
    }

    fn step(&self, step: &Step) -> Result<(), String> {
        match step {
            // Put in after verification, from registers that were verified.
            Step::Prefetch { .. } => Ok(()),
            Step::Scalar(instruction) => self.instruction(instruction),
            Step::If { condition, .. } => self.boolean(*condition),
            Step::Loop { condition, .. } => {
                condition.map_or(Ok(()), |register| self.boolean(register))
            }
            Step::ForRange {
                variable,
                first,
                last,
                step,
                ..
            } => {
                self.integer(*variable)?;
                self.integer(*step)?;
                self.moves(*first, self.type_of(*variable))?;
                self.moves(*last, self.type_of(*variable))
            }
            Step::ForEach {
                variable, array, ..
            } => {
                let expected = format!("an array of {}", self.type_of(*variable));
                self.expect(*array, &expected, |data_type| {
                    let element = data_type.element();
                    element.is_some_and(|element| assignable(&element, self.type_of(*variable)))
                })
            }
            Step::Exit { .. } | Step::Continue { .. } | Step::Return => Ok(()),
            Step::RaiseAgain { .. } => Ok(()),
            Step::Protect { caught, .. } => self.width(*caught, Width::Eight),
            Step::Diagnose { target, .. } => self.expect(*target, "text", DataType::is_string),
            Step::NoteUndo { table, undo, .. } => self.undo(*table, undo),
            Step::Raise { error } | Step::Notice { error, .. } => self.failure(error),
            Step::Notify { channel, payload } => {
                self.expect(*channel, "text", DataType::is_string)?;
                self.expect(*payload, "text", DataType::is_string)
            }
            Step::Lookup {
                table,
                index,
                key,
                found,
                ..
            } => {
                self.boolean(*found)?;
                let index = &self.procedure.tables[table.0 as usize].indexes()[*index as usize];
                for (register, column) in key.iter().zip(&index.definition().columns) {
                    self.compares(*register, *table, *column)?;
                }
                Ok(())
            }
            Step::Scan {
                table,
                index,
                range,
                ..
            } => {
                let index = &self.procedure.tables[table.0 as usize].indexes()[*index as usize];
                let columns = &index.definition().columns;
                for (register, column) in range.prefix.iter().zip(columns) {
                    self.compares(*register, *table, *column)?;
                }
                for bound in [range.lower, range.upper].into_iter().flatten() {
                    self.compares(bound.value, *table, columns[range.prefix.len()])?;
                }
                Ok(())
            }
            Step::Read { table, columns, .. } => {
                for (column, register) in columns {
                    let (from, to) = (self.column_type(*table, *column), self.type_of(*register));
                    if !assignable(from, to) {
                        let (column, register) = (column.0, register.0);
                        return Err(format!(
                            "column {column} is {from}, its register {register} is {to}"
                        ));
                    }
                }
                Ok(())
            }
            Step::Update { table, columns, .. } => {
                for (column, register) in columns {
                    self.moves(*register, self.column_type(*table, *column))?;
                }
                Ok(())
            }
            Step::Insert {
                table,
                values,
                conflict,
                ..
            } => {
                for (column, register) in values.iter().enumerate() {
                    self.moves(*register, self.column_type(*table, ColumnId(column as u16)))?;
                }
                conflict.map_or(Ok(()), |conflict| self.boolean(conflict.inserted))
            }
            Step::Delete { .. } | Step::BufferClear { .. } | Step::BufferFill { .. } => Ok(()),
            Step::SaveRecord { record, .. } => match self.meanings.records[record.0 as usize] {
                Some(_) => Ok(()),
                None => Err(format!("record {} is never found", record.0)),
            },
            Step::RestoreRecord { source, .. } => {
                match self.meanings.registers[source.0 as usize] {
                    Some(Content::Handle(_)) => Ok(()),
                    _ => Err(format!("register {} holds no saved record", source.0)),
                }
            }
            Step::BufferPush { .. } => Ok(()),
            Step::BufferPushDistinct {
                row,
                classes,
                added,
                ..
            } => {
                self.boolean(*added)?;
                for (register, class) in row.iter().zip(classes) {
                    if self.meanings.registers[register.0 as usize] != Some(Content::Value) {
                        return Err("a handle among distinct values".to_owned());
                    }
                    self.class(*register, *class)?;
                }
                Ok(())
            }
            Step::BufferSort { buffer, by } => by
                .iter()
                .try_for_each(|key| self.column_class(*buffer, key.column, key.class)),
            Step::BufferCount { target, .. } => self.width(*target, Width::Eight),
            Step::ForBuffer {
                buffer,
                matching,
                row,
                ..
            } => {
                for one in matching {
                    self.column_class(*buffer, one.column, one.class)?;
                    self.class(one.value, one.class)?;
                }
                self.columns_of_row(*buffer, row)
            }
            Step::BufferRow { buffer, at, row } => {
                self.width(*at, Width::Eight)?;
                let columns = &self.meanings.columns[buffer.0 as usize];
                if columns
                    .iter()
                    .any(|(content, _)| matches!(content, Some(Content::Handle(_))))
                {
                    return Err(format!("a row of buffer {} has a handle", buffer.0));
                }
                self.columns_of_row(*buffer, row)
            }
            Step::Emit { row } => {
                for (register, (_, data_type)) in row.iter().zip(&*self.procedure.result.columns) {
                    self.moves(*register, data_type)?;
                }
                Ok(())
            }
        }
    }

    /// The registers hold what a row of the buffer has.
    fn columns_of_row(&self, buffer: BufferId, row: &[Reg]) -> Result<(), String> {
        for (column, register) in row.iter().enumerate() {
            let (content, data_type) = &self.meanings.columns[buffer.0 as usize][column];
            if let (Some(Content::Value), Some(pushed)) = (content, data_type)
                && !assignable(pushed, self.type_of(*register))
            {
                let (register, data_type) = (register.0, self.type_of(*register));
                return Err(format!(
                    "column {column} holds {pushed}, register {register} is {data_type}"
                ));
            }
        }
        Ok(())
    }

    /// A buffer's column holds values that compare as `class`.
    fn column_class(&self, buffer: BufferId, column: u16, class: Class) -> Result<(), String> {
        match &self.meanings.columns[buffer.0 as usize][column as usize] {
            // Nothing is ever pushed there.
            (None, _) | (_, None) => Ok(()),
            (Some(Content::Value), Some(data_type)) if Class::of(data_type) == Some(class) => {
                Ok(())
            }
            _ => Err(format!("column {column} is not {class:?}")),
        }
    }

    /// `register` may be compared with a column in an index.
    fn compares(&self, register: Reg, table: TableRef, column: ColumnId) -> Result<(), String> {
        let column_type = self.column_type(table, column);
        self.expect(
            register,
            &format!("what compares with {column_type}"),
            |data_type| same_family(data_type, column_type),
        )
    }

    fn instruction(&self, instruction: &Instruction) -> Result<(), String> {
        use Instruction as I;
        match instruction {
            I::Move { target, source } => self.moves(*source, self.type_of(*target)),
            I::SetNull { .. } | I::Call { .. } | I::Consult { .. } => Ok(()),
            I::Integer {
                width,
                target,
                left,
                right,
                ..
            } => {
                self.countable(*left)?;
                self.countable(*right)?;
                self.width(*target, *width)
            }
            I::Decimal {
                target,
                left,
                right,
                ..
            } => [target, left, right]
                .into_iter()
                .try_for_each(|register| self.class(*register, Class::Decimal)),
            I::Double {
                target,
                left,
                right,
                ..
            } => [target, left, right]
                .into_iter()
                .try_for_each(|register| self.class(*register, Class::Double)),
            I::Compare {
                class,
                target,
                left,
                right,
                ..
            } => {
                self.class(*left, *class)?;
                self.class(*right, *class)?;
                self.boolean(*target)
            }
            I::IsNull { target, .. } | I::AnyNull { target, .. } => self.boolean(*target),
            I::Not { target, source } => {
                self.boolean(*source)?;
                self.boolean(*target)
            }
            I::And {
                target,
                left,
                right,
            }
            | I::Or {
                target,
                left,
                right,
            } => [target, left, right]
                .into_iter()
                .try_for_each(|register| self.boolean(*register)),
            I::IntegerToDecimal { target, source } => {
                self.integer(*source)?;
                self.class(*target, Class::Decimal)
            }
            I::IntegerToDouble { target, source } => {
                self.integer(*source)?;
                self.class(*target, Class::Double)
            }
            I::CheckWidth {
                width,
                target,
                source,
            } => {
                self.countable(*source)?;
                self.width(*target, *width)
            }
            I::Rescale {
                target,
                source,
                precision,
                scale,
            } => {
                self.class(*source, Class::Decimal)?;
                if !(1..=1000).contains(precision) || !(-1000..=1000).contains(scale) {
                    return Err(format!("precision {precision} and scale {scale}"));
                }
                self.class(*target, Class::Decimal)
            }
            I::Concat {
                target,
                left,
                right,
            } => {
                let all_text = [target, left, right]
                    .into_iter()
                    .all(|register| self.type_of(*register).is_string());
                if all_text {
                    return Ok(());
                }
                let bytes = |data_type: &DataType| *data_type == DataType::Bytea;
                [target, left, right]
                    .into_iter()
                    .try_for_each(|register| self.expect(*register, "text", bytes))
            }
            I::Element {
                target,
                array,
                index,
            } => {
                self.integer(*index)?;
                let expected = format!("an array of {}", self.type_of(*target));
                self.expect(*array, &expected, |data_type| {
                    let element = data_type.element();
                    element.is_some_and(|element| assignable(&element, self.type_of(*target)))
                })
            }
            I::ArrayLength { target, array } => {
                self.expect(*array, "an array", |data_type| {
                    data_type.element().is_some()
                })?;
                self.integer(*target)
            }
            I::Require {
                condition, error, ..
            } => {
                self.boolean(*condition)?;
                self.failure(error)
            }
            I::RequireNotNull { error, .. } => self.failure(error),
        }
    }
}
