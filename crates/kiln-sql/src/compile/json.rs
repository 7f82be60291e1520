//! JSON made of SQL's values: `to_json`, `json_build_object`, `json_agg` and their kin.
//!
//! How a value becomes JSON follows from its type, so the compiler chooses; what is left to run is
//! a function of texts. A name of a table among the arguments is its row, as an object.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, Ident};

use super::bind::case;
use super::bound::{Bound, Kind};
use super::coerce::{CastContext, coerce, to_output_text, to_text};
use super::scope::NamedColumn;
use super::{Compiler, Position, fail, functions, name_of, operators, unsupported};

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
    let named = functions::json_of(&data_type);
    let text = to_output_text(bound)?;
    Ok(functions::direct(
        named,
        vec![text],
        DataType::JSON,
        position,
    ))
}

/// A key of an object, as a text.
fn json_key(bound: Bound) -> Result<Bound> {
    let position = bound.position;
    let is_scalar = bound.is_unknown()
        || bound.data_type.element().is_none()
            && bound.data_type != DataType::JSON
            && bound.data_type != DataType::JSONB;
    if !is_scalar || matches!(bound.kind, Kind::Row(_)) {
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
            (What::Row, [one]) => match self.bind_json_row(one)? {
                Some(row) => row,
                None => {
                    let bound = self.bind(one)?;
                    let message = format!("function {name}({}) does not exist", bound.type_name());
                    return Err(fail(SqlState::UNDEFINED_FUNCTION, message, position));
                }
            },
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
                let (element, is_list) = match self.bind_json_row(one)? {
                    Some(row) => (row, true),
                    None => {
                        let bound = self.bind(one)?;
                        let is_list = matches!(bound.data_type, DataType::Array(_));
                        (json_value(bound)?, is_list)
                    }
                };
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
        match self.bind_json_row(argument)? {
            Some(row) => Ok(row),
            None => json_value(self.bind(argument)?),
        }
    }

    /// The object of a row that is written as `ROW(…)`, or as the name of a table; `None` for
    /// anything else.
    fn bind_json_row(&mut self, argument: &Expr) -> Result<Option<Bound>> {
        let position = super::position_of(argument);
        let columns = match argument {
            Expr::Nested(inner) => return self.bind_json_row(inner),
            Expr::Identifier(name) => return self.bind_json_source(name),
            Expr::Function(function) if super::object_name(&function.name)? == "row" => {
                let Kind::Row(items) = self.bind(argument)?.kind else {
                    return Err(unsupported("this row", position));
                };
                let named = |(number, item): (usize, Bound)| (format!("f{}", number + 1), item);
                items.into_iter().enumerate().map(named).collect()
            }
            Expr::Tuple(items) => {
                let mut columns = Vec::with_capacity(items.len());
                for (number, item) in items.iter().enumerate() {
                    columns.push((format!("f{}", number + 1), self.bind(item)?));
                }
                columns
            }
            _ => return Ok(None),
        };
        object_of(columns, position).map(Some)
    }

    /// The object of the row that an identifier names, if it is no column itself.
    fn bind_json_source(&mut self, name: &Ident) -> Result<Option<Bound>> {
        let position = super::position_of_span(name.span);
        if self.resolve(std::slice::from_ref(name)).is_ok() {
            return Ok(None);
        }
        let name = name_of(name);
        let Some(source) = self.row_named(&name) else {
            let Some(columns) = self.row_called(&name) else {
                return Ok(None);
            };
            let is_null =
                |column: &NamedColumn| matches!(column.bound.kind, Kind::Constant(Value::Null));
            // The row that the event of a trigger does not have.
            if columns.iter().all(is_null) {
                return Ok(Some(Bound::null(DataType::JSON, position)));
            }
            let columns = columns.into_iter();
            let columns = columns.map(|column| (column.name, column.bound)).collect();
            return object_of(columns, position).map(Some);
        };
        let columns = self.columns_of_row(source).into_iter();
        let columns = columns.map(|column| (column.name, column.bound)).collect();
        let object = object_of(columns, position)?;
        if !self.source(source).may_miss {
            return Ok(Some(object));
        }
        // A column that is never NULL in a row tells whether there is one.
        let table = self.source(source).table.clone();
        let certain = table.and_then(|table| {
            let mut columns = table.schema().columns.iter();
            columns.position(|column| column.not_null)
        });
        let Some(certain) = certain else {
            let what = "the row of an outer join as a value, where no column is NOT NULL";
            return Err(unsupported(what, position));
        };
        let certain = self.column_of(source, certain, position);
        let misses = operators::is_null(certain, false, position)?;
        let null = Bound::null(DataType::JSON, position);
        case(vec![(misses, null)], Some(object), position).map(Some)
    }
}

/// The object of a row.
fn object_of(columns: Vec<(String, Bound)>, position: Position) -> Result<Bound> {
    let mut members = Vec::with_capacity(columns.len() * 2);
    for (name, value) in columns {
        members.push(Bound::text(name));
        members.push(json_value(value)?);
    }
    let named = functions::json_of_row();
    Ok(functions::direct(named, members, DataType::JSON, position))
}
