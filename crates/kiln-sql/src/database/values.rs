//! Values of parameters, converted to the types that the statement's analysis found.

use kiln_procedure::arguments;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Number, Style, Value};

/// Converts a client's value to the type of a parameter: numbers without loss, texts by reading
/// them as PostgreSQL reads a literal of the type, and anything to a text by printing it. A value
/// for an enum stays as it is.
///
/// ```
/// use kiln_sql::{DataType, Value, parameter_value};
/// let date = parameter_value(Value::from("2024-05-06"), &DataType::Date);
/// assert_eq!(date.map(|date| date.to_text()), Ok(Some("2024-05-06".to_owned())));
/// assert!(parameter_value(Value::from("x"), &DataType::Integer).is_err());
/// ```
///
/// # Errors
/// 42804 for a type that does not convert, 22P02, 22003 and their like for values that do not fit.
pub fn parameter_value(value: Value, data_type: &DataType) -> Result<Value> {
    value_in(value, data_type, &Style::default())
}

/// [`parameter_value`] in the style of its session.
fn value_in(value: Value, data_type: &DataType, style: &Style<'_>) -> Result<Value> {
    // The labels of an enum may be others when the statement runs: a text is read then.
    if data_type.enumeration().is_some() {
        return Ok(value);
    }
    let value = match value {
        Value::Text(_) | Value::Null => value,
        other if data_type.is_string() => Value::Text(other.to_text_in(style).unwrap_or_default()),
        Value::Numeric(number) if data_type.is_integer() => whole(&number.into())?,
        Value::LongNumeric(number) if data_type.is_integer() => whole(&number)?,
        Value::Double(number) if data_type.is_integer() => whole(&Number::from_f64(number)?)?,
        other => other,
    };
    arguments::convert_in(value, data_type, style)
}

/// A value of EXECUTE for a parameter: as in an assignment, integers take the nearest number.
///
/// # Errors
/// 22003 for what is no number.
pub(super) fn rounded(value: Value, data_type: &DataType) -> Result<Value> {
    if !data_type.is_integer() {
        return Ok(value);
    }
    Ok(match value {
        Value::Numeric(number) => Value::LongNumeric(Box::new(Number::from(number).round(0)?)),
        Value::LongNumeric(number) => Value::LongNumeric(Box::new(number.round(0)?)),
        Value::Double(number) => Value::Double(number.round_ties_even()),
        other => other,
    })
}

/// A number without a fraction as an integer.
fn whole(number: &Number) -> Result<Value> {
    let text = number.normalize().to_string();
    text.parse().map(Value::BigInt).map_err(|_| {
        Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{text} is no integer in range"),
        )
    })
}

/// Converts the values of all parameters.
///
/// # Errors
/// 08P01 for a wrong number of values, and those of [`parameter_value`].
pub(super) fn bind(types: &[DataType], values: &[Value], style: &Style<'_>) -> Result<Vec<Value>> {
    if types.len() != values.len() {
        return Err(Error::new(
            SqlState::PROTOCOL_VIOLATION,
            format!(
                "{} values were given, but the statement has {} parameters",
                values.len(),
                types.len()
            ),
        ));
    }
    let pairs = types.iter().zip(values).enumerate();
    let converted = pairs.map(|(index, (data_type, value))| {
        value_in(value.clone(), data_type, style).map_err(|error| {
            error.with_detail(format!("This is the value of ${}, {data_type}.", index + 1))
        })
    });
    converted.collect()
}
