//! JSON made of SQL's values: `to_json`, `json_build_object`, `json_agg` and their kin.
//!
//! How a value becomes JSON follows from its type, so the compiler chooses; what is left to run is
//! a function of texts. A row is an object.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::Expr;

use super::bind::case;
use super::bound::{Bound, Kind};
use super::coerce::{CastContext, coerce, style_for, to_output_text, to_text};
use super::{Compiler, Position, fail, functions, row_value};

/// A function that makes JSON of its arguments, or an aggregate that does so of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maker {
    what: What,
    /// Whether it gives a JSONB.
    is_binary: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// One value.
    Value,
    /// A value that is an array.
    OfArray,
    /// A row.
    Row,
    Array,
    Object,
    /// The values of rows, as an array.
    Values,
    /// Keys and values of rows, as an object.
    Pairs,
}

impl Maker {
    /// The one of this name.
    pub(super) fn of(name: &str) -> Option<Maker> {
        let (what, is_binary) = match name {
            "to_json" => (What::Value, false),
            "to_jsonb" => (What::Value, true),
            "array_to_json" => (What::OfArray, false),
            "row_to_json" => (What::Row, false),
            "json_build_array" => (What::Array, false),
            "jsonb_build_array" => (What::Array, true),
            "json_build_object" => (What::Object, false),
            "jsonb_build_object" => (What::Object, true),
            "json_agg" => (What::Values, false),
            "jsonb_agg" => (What::Values, true),
            "json_object_agg" => (What::Pairs, false),
            "jsonb_object_agg" => (What::Pairs, true),
            _ => return None,
        };
        Some(Maker { what, is_binary })
    }

    /// Whether it is an aggregate.
    pub(super) fn is_aggregate(self) -> bool {
        matches!(self.what, What::Values | What::Pairs)
    }

    fn data_type(self) -> DataType {
        match self.is_binary {
            false => DataType::JSON,
            true => DataType::JSONB,
        }
    }

    /// What the aggregate gives for the array that was collected.
    pub(super) fn finish(self, collected: Bound, position: Position) -> Bound {
        let named = functions::listed(self.is_binary, self.what == What::Pairs);
        functions::direct(named, vec![collected], self.data_type(), position)
    }
}

#[cold]
fn undefined(name: &str, count: usize, position: Position) -> kiln_storage::error::Error {
    let message = format!("function {name} does not take {count} arguments");
    fail(SqlState::UNDEFINED_FUNCTION, message, position)
}

/// A value as JSON without blanks; NULL stays NULL.
fn json_value(bound: Bound) -> Result<Bound> {
    let position = bound.position;
    if bound.is_unknown() {
        let text = coerce(bound, &DataType::Text, CastContext::Implicit)?;
        return json_value(text);
    }
    let data_type = bound.data_type.clone();
    if data_type == DataType::JSON || data_type == DataType::JSONB {
        return Ok(bound.relabel(DataType::JSON));
    }
    if data_type.row().is_some() {
        return Ok(json_of_rows(bound));
    }
    let named = functions::json_of(&data_type);
    let text = to_output_text(bound)?;
    Ok(functions::direct(
        named,
        vec![text],
        DataType::JSON,
        position,
    ))
}

/// A row, or an array of rows, as JSON.
fn json_of_rows(bound: Bound) -> Bound {
    let position = bound.position;
    let described = Bound::text(bound.data_type.described());
    let style = style_for(&[&bound.data_type], position);
    let operands = vec![bound, described, style];
    functions::direct(functions::ROWS_TO_JSON, operands, DataType::JSON, position)
}

/// A key of an object, as a text.
fn json_key(bound: Bound) -> Result<Bound> {
    let position = bound.position;
    let is_scalar = bound.is_unknown()
        || bound.data_type.element().is_none()
            && bound.data_type != DataType::JSON
            && bound.data_type != DataType::JSONB;
    if !is_scalar || row_value::type_of(&bound).is_some() {
        let message = "key value must be scalar, not array, composite, or json";
        return Err(fail(SqlState::INVALID_PARAMETER_VALUE, message, position));
    }
    match bound.is_unknown() {
        true => coerce(bound, &DataType::Text, CastContext::Implicit),
        false => to_text(bound),
    }
}

impl Compiler<'_> {
    /// Binds a call of a function that makes JSON of its arguments.
    ///
    /// # Errors
    /// 42883 for a wrong number of arguments, 22023 for keys that cannot be.
    pub(super) fn bind_json(
        &mut self,
        maker: Maker,
        name: &str,
        arguments: &[&Expr],
        position: Position,
    ) -> Result<Bound> {
        let data_type = maker.data_type();
        let made = match (maker.what, arguments) {
            (What::Value, [one]) => self.bind_json_value(one)?,
            (What::OfArray, [one]) => {
                let bound = self.bind(one)?;
                if bound.is_unknown() || bound.data_type.element().is_none() {
                    let message = format!("function {name}({}) does not exist", bound.type_name());
                    return Err(fail(SqlState::UNDEFINED_FUNCTION, message, position));
                }
                json_value(bound)?
            }
            (What::Row, [one]) => {
                let bound = self.bind(one)?;
                if row_value::type_of(&bound).is_none() {
                    let message = format!("function {name}({}) does not exist", bound.type_name());
                    return Err(fail(SqlState::UNDEFINED_FUNCTION, message, position));
                }
                self.json_of(bound)?
            }
            (What::Array, each) => {
                let values: Result<Vec<Bound>> =
                    each.iter().map(|one| self.bind_json_value(one)).collect();
                let named = functions::build_array(maker.is_binary);
                return Ok(functions::direct(named, values?, data_type, position));
            }
            (What::Object, each) if each.len() % 2 == 1 => {
                let message = "argument list must have even number of elements";
                return Err(
                    fail(SqlState::INVALID_PARAMETER_VALUE, message, position).with_hint(format!(
                        "The arguments of {name}() must consist of alternating keys and values."
                    )),
                );
            }
            (What::Object, each) => {
                let mut members = Vec::with_capacity(each.len());
                for pair in each.chunks_exact(2) {
                    members.extend(self.bind_json_pair(pair[0], pair[1])?);
                }
                let named = functions::build_object(maker.is_binary);
                return Ok(functions::direct(named, members, data_type, position));
            }
            _ => return Err(undefined(name, arguments.len(), position)),
        };
        coerce(made, &data_type, CastContext::Explicit)
    }

    /// What an aggregate collects of a row.
    ///
    /// # Errors
    /// As [`Compiler::bind_json`].
    pub(super) fn bind_json_element(
        &mut self,
        maker: Maker,
        name: &str,
        arguments: &[&Expr],
        position: Position,
    ) -> Result<Bound> {
        match (maker.what, arguments) {
            (What::Values, [one]) => {
                let bound = self.bind(one)?;
                let is_list = matches!(bound.data_type, DataType::Array(_) | DataType::Row(_));
                let element = self.json_of(bound)?;
                Ok(match is_list {
                    true => {
                        let named = functions::on_a_line();
                        functions::direct(named, vec![element], DataType::JSON, position)
                    }
                    false => element,
                })
            }
            (What::Pairs, [key, value]) => {
                let pair = self.bind_json_pair(key, value)?;
                let named = functions::pair();
                Ok(functions::direct(
                    named,
                    pair.into(),
                    DataType::JSON,
                    position,
                ))
            }
            _ => Err(undefined(name, arguments.len(), position)),
        }
    }

    fn bind_json_pair(&mut self, key: &Expr, value: &Expr) -> Result<[Bound; 2]> {
        let key = json_key(self.bind(key)?)?;
        Ok([key, self.bind_json_value(value)?])
    }

    /// An argument as JSON.
    fn bind_json_value(&mut self, argument: &Expr) -> Result<Bound> {
        let bound = self.bind(argument)?;
        self.json_of(bound)
    }

    /// A value as JSON: a row is an object.
    fn json_of(&mut self, bound: Bound) -> Result<Bound> {
        let position = bound.position;
        let Some(of) = row_value::type_of(&bound).cloned() else {
            return json_value(bound);
        };
        match bound.kind {
            Kind::Constant(Value::Null) => Ok(Bound::null(DataType::JSON, position)),
            // A row that there may not be.
            Kind::Case {
                branches,
                otherwise,
            } => {
                let mut converted = Vec::with_capacity(branches.len());
                for (condition, row) in branches {
                    converted.push((condition, self.json_of(row)?));
                }
                let otherwise = otherwise.map(|row| self.json_of(*row)).transpose()?;
                case(converted, otherwise, position)
            }
            _ if row_value::parts(&bound).is_some() => {
                let mut members = Vec::with_capacity(of.fields().len() * 2);
                for (name, value) in row_value::fields(&bound, position)? {
                    members.push(Bound::text(name));
                    members.push(self.json_of(value)?);
                }
                let named = functions::json_of_row();
                Ok(functions::direct(named, members, DataType::JSON, position))
            }
            _ => Ok(json_of_rows(bound)),
        }
    }
}
