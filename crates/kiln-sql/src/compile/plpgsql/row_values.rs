//! Rows as values in bodies: what a row-valued expression gives to a row's fields, and a call's
//! columns as one value.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Instruction, Reg};
use kiln_storage::error::Result;
use kiln_storage::slot::row::Form;
use kiln_storage::types::{DataType, RowType, Value};
use sqlparser::ast::Expr;

use super::super::bound::Bound;
use super::super::coerce::{CastContext, coerce};
use super::super::query::OutputColumn;
use super::super::{Compiler, functions, row_value};

impl Compiler<'_> {
    /// Computes the fields of a row-valued expression; `None` for any other.
    ///
    /// # Errors
    /// Those of the expression.
    pub(super) fn row_columns(&mut self, expr: &Expr) -> Result<Option<Vec<OutputColumn>>> {
        let bound = self.bind(expr)?;
        if row_value::type_of(&bound).is_none() {
            return Ok(None);
        }
        let position = bound.position;
        let row = match row_value::parts(&bound).is_some() {
            true => bound,
            false => self.share(bound),
        };
        let (mut names, mut fields) = (Vec::new(), Vec::new());
        for (name, field) in row_value::fields(&row, position)? {
            names.push(name);
            fields.push(match field.is_unknown() {
                true => coerce(field, &DataType::Text, CastContext::Implicit)?,
                false => field,
            });
        }
        let all: Vec<&Bound> = fields.iter().collect();
        let values = self.alone(&all, |compiler| compiler.emit_all(&fields))?;
        let columns = names
            .into_iter()
            .zip(values)
            .map(|(name, value)| OutputColumn {
                name,
                data_type: value.data_type,
                register: value.register,
            });
        Ok(Some(columns.collect()))
    }

    /// The fields of a row in a register.
    pub(super) fn columns_of_value(&mut self, row: Reg, of: &Arc<RowType>) -> Vec<OutputColumn> {
        let (name, function) = functions::ROW_FIELD;
        let fields = of.fields().iter().enumerate().map(|(number, field)| {
            let number = i32::try_from(number).unwrap_or(i32::MAX);
            let number = self
                .builder
                .constant(DataType::Integer, Value::Integer(number));
            let target = self.builder.register(field.data_type.clone());
            self.builder.scalar(Instruction::Call {
                function,
                name,
                target,
                arguments: [row, number].into(),
            });
            OutputColumn {
                name: field.name.clone(),
                data_type: field.data_type.clone(),
                register: target,
            }
        });
        fields.collect()
    }

    /// Makes one value of the columns that a call gives; NULL where all are.
    pub(super) fn pack_columns(&mut self, columns: &[Reg], of: &RowType, target: Reg) {
        let (name, function) = functions::ROW_UNLESS_NULL;
        let letters = Value::Text(Form::letters(of));
        let letters = self.builder.constant(DataType::Text, letters);
        let arguments = std::iter::once(letters).chain(columns.iter().copied());
        self.builder.scalar(Instruction::Call {
            function,
            name,
            target,
            arguments: arguments.collect(),
        });
    }
}
