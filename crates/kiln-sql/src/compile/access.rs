//! Fields of rows, and elements and slices of arrays.

use kiln_procedure::ir::Arithmetic;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{AccessExpr, Expr, Ident, Subscript};

use super::bind::as_array;
use super::bound::{Bound, Kind, Operation};
use super::coerce::CastContext;
use super::constant::{call, operation};
use super::part::json_key;
use super::row_value;
use super::select::field_of_row;
use super::{
    Compiler, Position, fail, functions, name_of, operators, overload, position_of, unsupported,
};

impl Compiler<'_> {
    /// Subscripts and fields.
    pub(super) fn bind_access(&mut self, root: &Expr, chain: &[AccessExpr]) -> Result<Bound> {
        let position = position_of(root);
        let mut path: Vec<Ident> = match root {
            Expr::Identifier(ident) => vec![ident.clone()],
            Expr::CompoundIdentifier(idents) => idents.clone(),
            _ => Vec::new(),
        };
        let mut rest = chain;
        if !path.is_empty() {
            while let [AccessExpr::Dot(Expr::Identifier(ident)), after @ ..] = rest {
                path.push(ident.clone());
                rest = after;
            }
        }
        let of_row = match rest {
            [AccessExpr::Dot(Expr::Identifier(field)), after @ ..] if path.is_empty() => {
                let mut of_row = self.bind_field_of_call(root, field)?;
                if of_row.is_none() {
                    of_row = self.bind_field_of_column(root, field);
                }
                if of_row.is_some() {
                    rest = after;
                }
                of_row
            }
            _ => None,
        };
        let mut bound = if let Some(bound) = of_row {
            bound
        } else if path.is_empty() {
            self.bind(root)?
        } else {
            self.resolve(&path)?
        };
        for access in rest {
            bound = match access {
                AccessExpr::Dot(Expr::Identifier(field)) => {
                    row_value::field_named(&bound, &name_of(field), position)?
                }
                AccessExpr::Dot(_) => return Err(unsupported("a field of a value", position)),
                AccessExpr::Subscript(subscript) => {
                    self.bind_subscript(bound, subscript, position)?
                }
            };
        }
        Ok(bound)
    }

    /// `(column).field`, where the column is a row that a query in FROM gives.
    fn bind_field_of_column(&mut self, root: &Expr, field: &Ident) -> Option<Bound> {
        let mut column = root;
        while let Expr::Nested(inner) = column {
            column = inner;
        }
        let mut path: Vec<Ident> = match column {
            Expr::Identifier(ident) => vec![ident.clone()],
            Expr::CompoundIdentifier(idents) => idents.clone(),
            _ => return None,
        };
        let last = path.pop()?;
        let name = field_of_row(&name_of(&last), &name_of(field));
        let mut of_field = Ident::with_quote('"', name);
        of_field.span = last.span;
        path.push(of_field);
        self.resolve(&path).ok()
    }

    fn bind_subscript(
        &mut self,
        array: Bound,
        subscript: &Subscript,
        position: Position,
    ) -> Result<Bound> {
        if array.data_type == DataType::JSONB && !array.is_unknown() {
            return self.bind_json_subscript(array, subscript, position);
        }
        // Vectors count from 0, and so do the arguments of a trigger.
        let is_of_trigger = matches!(array.kind, Kind::Register(register)
            if self.counted_from_zero.contains(&register));
        let is_vector = is_of_trigger || matches!(array.data_type, DataType::Catalog(_));
        let array = as_array(array)?;
        let element = match &array.data_type {
            DataType::Array(element) if !array.is_unknown() => (**element).clone(),
            other => {
                return Err(fail(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "cannot subscript type {} because it does not support subscripting",
                        other.base_name()
                    ),
                    position,
                ));
            }
        };
        match subscript {
            Subscript::Index { index } => {
                let index = self.bind_as(index, &DataType::Integer, CastContext::Assignment)?;
                let index = match is_vector {
                    true => {
                        let one = Bound::integer(1);
                        operators::arithmetic(Arithmetic::Add, index, one, position)?
                    }
                    false => index,
                };
                Ok(operation(
                    Operation::Element,
                    vec![array, index],
                    element,
                    position,
                ))
            }
            Subscript::Slice {
                lower_bound,
                upper_bound,
                stride: None,
            } => {
                let mut bound_or = |bound: &Option<Expr>, open: i32| match bound {
                    Some(bound) => self.bind_as(bound, &DataType::Integer, CastContext::Assignment),
                    None => Ok(Bound::integer(open)),
                };
                let low = bound_or(lower_bound, 1)?;
                let high = bound_or(upper_bound, i32::MAX)?;
                let data_type = array.data_type.clone();
                let named = functions::array_slice();
                Ok(call(named, vec![array, low, high], data_type, position))
            }
            Subscript::Slice { .. } => Err(unsupported("a slice with a stride", position)),
        }
    }

    /// `j['key']` and `j[0]`: the value there, as `j #> ARRAY['key']` gives it.
    fn bind_json_subscript(
        &mut self,
        json: Bound,
        subscript: &Subscript,
        position: Position,
    ) -> Result<Bound> {
        let Subscript::Index { index } = subscript else {
            let message = "jsonb subscript does not support slices";
            return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
        };
        let (key, _) = json_key(self.bind(index)?)?;
        overload::bind("jsonb_extract_path", vec![json, key], position)
    }
}
