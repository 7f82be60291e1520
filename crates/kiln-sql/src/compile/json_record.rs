//! Rows out of JSON objects: `json_to_record`, `json_to_recordset` and their kin in FROM.
//!
//! A column is an array with a value for each object, cast to an array of the column's type; the
//! arrays stand side by side, as those of other functions that give rows.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{self, Expr, TableAlias};

use super::bound::{Bound, RowFunction};
use super::coerce::{CastContext, coerce};
use super::from::CallInFrom;
use super::functions;
use super::{Compiler, Position, fail, name_of, relation_name, types, unsupported};

/// One of these functions.
#[derive(Clone, Copy)]
pub(super) struct RecordFunction {
    name: &'static str,
    is_binary: bool,
    /// Whether its first argument says which columns there are, and not its alias.
    is_populated: bool,
}

impl RecordFunction {
    /// The one of this name.
    pub(super) fn of(name: &str) -> Option<RecordFunction> {
        const ALL: [&str; 8] = [
            "json_to_record",
            "json_to_recordset",
            "json_populate_record",
            "json_populate_recordset",
            "jsonb_to_record",
            "jsonb_to_recordset",
            "jsonb_populate_record",
            "jsonb_populate_recordset",
        ];
        let name = ALL.into_iter().find(|known| *known == name)?;
        Some(RecordFunction {
            name,
            is_binary: name.starts_with("jsonb"),
            is_populated: name.contains("populate"),
        })
    }

    /// Whether its alias has its columns with their types.
    pub(super) fn has_typed_alias(self) -> bool {
        !self.is_populated
    }

    fn json(self) -> DataType {
        match self.is_binary {
            false => DataType::JSON,
            true => DataType::JSONB,
        }
    }

    /// The values of a column in all objects.
    fn column(
        self,
        json: Bound,
        (name, data_type): (&str, &DataType),
        position: Position,
    ) -> Result<Bound> {
        if let DataType::Array(_) = data_type {
            let what = format!("a column of type {data_type} out of a JSON object");
            return Err(unsupported(what, position));
        }
        let is_json = matches!(data_type, DataType::Catalog(catalog) if catalog.is_json());
        let texts = DataType::array(DataType::Text);
        let operands = vec![
            json,
            Bound::text(name),
            Bound::text(self.name),
            Bound::boolean(is_json),
        ];
        let texts = functions::direct(functions::JSON_FIELDS, operands, texts, position);
        let plain = DataType::array(data_type.without_modifier());
        let values = coerce(texts, &plain, CastContext::Explicit)?;
        let exact = DataType::array(data_type.clone());
        coerce(values, &exact, CastContext::Assignment)
    }
}

impl Compiler<'_> {
    /// The columns of such a call.
    ///
    /// # Errors
    /// 42601 without a list of columns where one is needed, 0A000 where a record is given whose
    /// fields are the defaults.
    pub(super) fn bind_json_record(
        &mut self,
        function: RecordFunction,
        call: &CallInFrom<'_>,
    ) -> Result<Vec<RowFunction>> {
        let position = call.position;
        let mut arguments = call.arguments.iter().map(|(_, argument)| *argument);
        let columns = match function.is_populated {
            true => self.columns_of_base(arguments.next(), position)?,
            false => self.columns_of_alias(call.alias, position)?,
        };
        let (Some(json), None) = (arguments.next(), arguments.next()) else {
            let message = format!(
                "function {} does not exist with so many arguments",
                call.name
            );
            return Err(fail(SqlState::UNDEFINED_FUNCTION, message, position));
        };
        let json = coerce(self.bind(json)?, &function.json(), CastContext::Implicit)?;
        let each = columns.into_iter().map(|(name, data_type)| {
            let column = function.column(json.clone(), (&name, &data_type), position)?;
            Ok(RowFunction::Unnest(column, Some(name.into())))
        });
        each.collect()
    }

    /// The columns of an alias with types.
    fn columns_of_alias(
        &self,
        alias: Option<&TableAlias>,
        position: Position,
    ) -> Result<Vec<(String, DataType)>> {
        let columns = alias.map_or(&[][..], |alias| &alias.columns);
        let mut typed = Vec::with_capacity(columns.len());
        for column in columns {
            if let Some(written) = &column.data_type {
                let data_type = types::data_type(written, self.catalog, position)?;
                let name = name_of(&column.name);
                if typed.iter().any(|(known, _)| *known == name) {
                    let message = format!("column name \"{name}\" specified more than once");
                    return Err(fail(SqlState::DUPLICATE_COLUMN, message, position));
                }
                typed.push((name, data_type));
            }
        }
        if typed.is_empty() || typed.len() < columns.len() {
            let message = "a column definition list is required for functions returning \"record\"";
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        }
        Ok(typed)
    }

    /// The columns of the table, or of the composite type, of which `NULL::name` is a row.
    fn columns_of_base(
        &mut self,
        base: Option<&Expr>,
        position: Position,
    ) -> Result<Vec<(String, DataType)>> {
        let named = match base {
            Some(Expr::Cast {
                expr,
                data_type: ast::DataType::Custom(name, modifiers),
                ..
            }) if modifiers.is_empty() => {
                let is_null =
                    matches!(&**expr, Expr::Value(value) if value.value == ast::Value::Null);
                is_null.then_some(name)
            }
            _ => None,
        };
        let Some(named) = named else {
            let what = "a record other than NULL::table, from which the other fields come,";
            return Err(unsupported(what, position));
        };
        if let Some(written) = base_type(base)
            && let Ok(DataType::Row(of)) = types::data_type(written, self.catalog, position)
        {
            let fields = of.fields().iter();
            let each = fields.map(|field| (field.name.clone(), field.data_type.clone()));
            return Ok(each.collect());
        }
        let name = relation_name(self.catalog, named)?;
        let Some(table) = self.catalog.table(&name) else {
            let message = format!("type \"{name}\" does not exist");
            return Err(fail(SqlState::UNDEFINED_OBJECT, message, position));
        };
        let columns = table.schema().shown().iter();
        let each = columns.map(|column| (column.name.clone(), column.data_type.clone()));
        Ok(each.collect())
    }
}

/// The type of a cast.
fn base_type(base: Option<&Expr>) -> Option<&ast::DataType> {
    match base {
        Some(Expr::Cast { data_type, .. }) => Some(data_type),
        _ => None,
    }
}
