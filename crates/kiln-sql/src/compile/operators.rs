//! Binary operators: which one the operands' types choose.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Arithmetic, Class, Comparison, Width};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{CatalogType, DataType, Representation, RowType, Value};

use super::arrays;
use super::bound::{Bound, Kind, Operation};
use super::category::{category, is_preferred, no_operator};
use super::coerce::{CastContext, cast_context, coerce, session_style, to_text};
use super::constant::{call, operation};
use super::functions;
use super::functions::cast;
use super::overload;
use super::row_value;
use super::types::same_base;
use super::{Position, fail, unsupported};

#[cold]
fn not_unique(symbol: &str, left: &Bound, right: &Bound, position: Position) -> Error {
    fail(
        SqlState::AMBIGUOUS_FUNCTION,
        format!(
            "operator is not unique: {} {symbol} {}",
            left.type_name(),
            right.type_name()
        ),
        position,
    )
    .with_hint(
        "Could not choose a best candidate operator. You might need to add explicit type casts.",
    )
}

const fn symbol_of(operator: Arithmetic) -> &'static str {
    match operator {
        Arithmetic::Add => "+",
        Arithmetic::Subtract => "-",
        Arithmetic::Multiply => "*",
        Arithmetic::Divide => "/",
        Arithmetic::Remainder => "%",
    }
}

pub(super) const fn comparison_symbol(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal | Comparison::NotDistinct | Comparison::Distinct => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

fn width_of(data_type: &DataType) -> Width {
    match data_type {
        DataType::SmallInt => Width::Two,
        DataType::Integer => Width::Four,
        _ => Width::Eight,
    }
}

/// The wider of two number types.
fn wider(left: &DataType, right: &DataType) -> DataType {
    let rank = |data_type: &DataType| match data_type {
        DataType::SmallInt => 0,
        DataType::Integer => 1,
        DataType::BigInt => 2,
        DataType::Numeric { .. } => 3,
        _ => 4,
    };
    if rank(left) >= rank(right) {
        left.without_modifier()
    } else {
        right.without_modifier()
    }
}

/// `left + right` and its kin.
///
/// # Errors
/// 42883 or 42725 when there is no such operator or no best one; 22P02 and the like when a literal
/// cannot be read as the type that the other operand asks for.
pub(super) fn arithmetic(
    operator: Arithmetic,
    left: Bound,
    right: Bound,
    position: Position,
) -> Result<Bound> {
    let symbol = symbol_of(operator);
    if is_jsonb(&left) || is_jsonb(&right) {
        return by_symbol(symbol, left, right, position);
    }
    let (left, right) = match (left.is_unknown(), right.is_unknown()) {
        (true, true) => return Err(not_unique(symbol, &left, &right, position)),
        (true, false) => {
            let data_type = open_operand(operator, &right, false);
            let Some(data_type) = data_type else {
                return Err(no_open_operator(operator, &left, &right, position));
            };
            (coerce(left, &data_type, CastContext::Implicit)?, right)
        }
        (false, true) => {
            let data_type = open_operand(operator, &left, true);
            let Some(data_type) = data_type else {
                return Err(no_open_operator(operator, &left, &right, position));
            };
            let right = coerce(right, &data_type, CastContext::Implicit)?;
            (left, right)
        }
        (false, false) => (left, right),
    };
    let is_real = |bound: &Bound| bound.data_type == DataType::REAL;
    let of_reals = is_real(&left) && is_real(&right);
    if of_reals && operator == Arithmetic::Remainder {
        return Err(no_operator(symbol, &left, &right, position));
    }
    let double = |bound: Bound| match bound.data_type {
        DataType::Catalog(CatalogType::Real) => {
            coerce(bound, &DataType::Double, CastContext::Implicit)
        }
        _ => Ok(bound),
    };
    let (left, right) = (double(left)?, double(right)?);
    if left.data_type.is_number() && right.data_type.is_number() {
        let result = numbers(operator, left, right, position)?;
        // A double is exact enough for its rounding to be that of the operation on REALs.
        return match of_reals {
            true => coerce(result, &DataType::REAL, CastContext::Assignment),
            false => Ok(result),
        };
    }
    if let Some((left_type, right_type, named, result)) =
        functions::date_operator(operator, &left.data_type, &right.data_type)
    {
        let left = coerce(left, &left_type, CastContext::Implicit)?;
        let right = coerce(right, &right_type, CastContext::Implicit)?;
        let mut operands = vec![left, right];
        // The hours of the days that an interval has.
        if matches!(result, DataType::TimestampTz(_)) {
            operands.push(session_style(position));
        }
        return Ok(call(named, operands, result, position));
    }
    // A time and a date, an interval or a time with time zone can be added, and a time becomes an
    // interval by itself.
    let is_time = |bound: &Bound| matches!(bound.data_type, DataType::Time(_));
    let of_times = is_time(&left) && is_time(&right);
    if of_times && operator == Arithmetic::Add {
        return Err(not_unique(symbol, &left, &right, position));
    }
    Err(no_operator(symbol, &left, &right, position))
}

fn is_jsonb(bound: &Bound) -> bool {
    !bound.is_unknown() && bound.data_type == DataType::JSONB
}

/// An operator that is a builtin with its symbol for a name.
///
/// # Errors
/// 42883 when there is none for these operands, 42725 when there are several.
pub(super) fn by_symbol(
    symbol: &str,
    left: Bound,
    right: Bound,
    position: Position,
) -> Result<Bound> {
    let operands = (left.clone(), right.clone());
    overload::bind(symbol, vec![left, right], position).map_err(|error| match error.state() {
        SqlState::UNDEFINED_FUNCTION => no_operator(symbol, &operands.0, &operands.1, position),
        SqlState::AMBIGUOUS_FUNCTION => not_unique(symbol, &operands.0, &operands.1, position),
        _ => error,
    })
}

/// The error of an operator with one operand whose type is open.
#[cold]
fn no_open_operator(
    operator: Arithmetic,
    left: &Bound,
    right: &Bound,
    position: Position,
) -> Error {
    let symbol = symbol_of(operator);
    let is_date = |bound: &Bound| !bound.is_unknown() && bound.data_type == DataType::Date;
    // Days, a time and an interval can be added to a date.
    match operator {
        Arithmetic::Add if is_date(left) || is_date(right) => {
            not_unique(symbol, left, right, position)
        }
        _ => no_operator(symbol, left, right, position),
    }
}

/// The type of a literal beside an operand of a known type.
fn open_operand(operator: Arithmetic, known: &Bound, is_right: bool) -> Option<DataType> {
    match &known.data_type {
        number if number.is_number() || *number == DataType::REAL => {
            Some(number.without_modifier())
        }
        DataType::Timestamp(_) | DataType::TimestampTz(_) => match operator {
            Arithmetic::Add => Some(DataType::INTERVAL),
            // The same type is assumed first: a difference of two timestamps.
            Arithmetic::Subtract => Some(known.data_type.without_modifier()),
            _ => None,
        },
        DataType::Date => match operator {
            Arithmetic::Subtract => Some(DataType::Date),
            _ => None,
        },
        DataType::Time(_) => match operator {
            Arithmetic::Add => Some(DataType::INTERVAL),
            Arithmetic::Subtract => Some(DataType::TIME),
            _ => None,
        },
        DataType::Interval(_) => match operator {
            Arithmetic::Add | Arithmetic::Subtract => Some(DataType::INTERVAL),
            Arithmetic::Multiply => Some(DataType::Double),
            Arithmetic::Divide if is_right => Some(DataType::Double),
            _ => None,
        },
        _ => None,
    }
}

fn numbers(operator: Arithmetic, left: Bound, right: Bound, position: Position) -> Result<Bound> {
    let data_type = wider(&left.data_type, &right.data_type);
    if matches!(data_type, DataType::Double) && operator == Arithmetic::Remainder {
        return Err(no_operator("%", &left, &right, position));
    }
    // All integers are one class: what is narrower needs no instruction.
    let left = coerce(left, &data_type, CastContext::Implicit)?;
    let right = coerce(right, &data_type, CastContext::Implicit)?;
    let instruction = match &data_type {
        DataType::Numeric { .. } => Operation::Decimal(operator),
        DataType::Double => Operation::Double(operator),
        integer => Operation::Integer(operator, width_of(integer)),
    };
    Ok(operation(
        instruction,
        vec![left, right],
        data_type,
        position,
    ))
}

/// `-operand`.
///
/// # Errors
/// As [`arithmetic`].
pub(super) fn negate(operand: Bound, position: Position) -> Result<Bound> {
    let zero = match &operand.data_type {
        // An interval would do as well as a number.
        _ if operand.is_unknown() => {
            let message = "operator is not unique: - unknown";
            let hint = "Could not choose a best candidate operator. You might need to add explicit \
                        type casts.";
            return Err(fail(SqlState::AMBIGUOUS_FUNCTION, message, position).with_hint(hint));
        }
        DataType::SmallInt => Value::SmallInt(0),
        DataType::Integer => Value::Integer(0),
        DataType::BigInt => Value::BigInt(0),
        DataType::Numeric { .. } => Value::Numeric(kiln_storage::types::Decimal::ZERO),
        DataType::Double | DataType::Catalog(CatalogType::Real) => {
            let named = functions::double_negate();
            let data_type = operand.data_type.clone();
            return Ok(call(named, vec![operand], data_type, position));
        }
        DataType::Interval(_) => {
            let named = functions::interval_negate();
            return Ok(call(named, vec![operand], DataType::INTERVAL, position));
        }
        other => {
            return Err(no_unary("-", other.base_name(), position));
        }
    };
    let zero = Bound::constant(zero, operand.data_type.without_modifier(), position);
    numbers(Arithmetic::Subtract, zero, operand, position)
}

/// The error for an operator that there is not for its only operand.
pub(super) fn no_unary(symbol: &str, operand: &str, position: Position) -> Error {
    let message = format!("operator does not exist: {symbol} {operand}");
    fail(SqlState::UNDEFINED_FUNCTION, message, position).with_hint(
        "No operator matches the given name and argument type. You might need to add an explicit \
         type cast.",
    )
}

/// Brings two operands of a comparison to one type.
///
/// # Errors
/// 42883 when they have none in common.
pub(super) fn comparable(
    symbol: &str,
    left: Bound,
    right: Bound,
    position: Position,
) -> Result<(Bound, Bound)> {
    let target = match (left.is_unknown(), right.is_unknown()) {
        (true, true) => DataType::Text,
        // The known side stays as it is.
        (true, false) => {
            let target = literal_type(&right.data_type);
            return Ok((coerce(left, &target, CastContext::Implicit)?, right));
        }
        (false, true) => {
            let target = literal_type(&left.data_type);
            let right = coerce(right, &target, CastContext::Implicit)?;
            return Ok((left, right));
        }
        (false, false) => {
            let (from, to) = (&left.data_type, &right.data_type);
            if same_base(from, to) {
                return Ok((left, right));
            }
            let is_real = |data_type: &DataType| *data_type == DataType::REAL;
            if from.is_number() && to.is_number() {
                wider(from, to)
            } else if is_real(from) && to.is_number() || from.is_number() && is_real(to) {
                DataType::Double
            } else if from.is_string() && to.is_string() {
                // CHAR is held without the blanks that conversion to TEXT would take off, and
                // beside it VARCHAR counts as CHAR.
                let trimmed = |bound: Bound| -> Result<Bound> {
                    let trimmed = overload::bind("rtrim", vec![bound], position)?;
                    Ok(trimmed.relabel(DataType::Char(u32::MAX)))
                };
                return match (from, to) {
                    (DataType::VarChar(_), DataType::Char(_)) => Ok((trimmed(left)?, right)),
                    (DataType::Char(_), DataType::VarChar(_)) => Ok((left, trimmed(right)?)),
                    _ => Ok((left, right)),
                };
            } else if category(from) == category(to)
                && cast_context(from, to) == Some(CastContext::Implicit)
            {
                if is_preferred(to) || cast_context(to, from) != Some(CastContext::Implicit) {
                    to.clone()
                } else {
                    from.clone()
                }
            } else if category(from) == category(to)
                && cast_context(to, from) == Some(CastContext::Implicit)
            {
                from.clone()
            } else {
                return Err(no_operator(symbol, &left, &right, position));
            }
        }
    };
    let beside = |bound: Bound| match (&bound.data_type, &target) {
        (DataType::Date, DataType::Timestamp(_) | DataType::TimestampTz(_)) => {
            Ok(date_beside(bound, &target))
        }
        _ => coerce(bound, &target, CastContext::Implicit),
    };
    Ok((beside(left)?, beside(right)?))
}

/// A date to be compared with timestamps: it may be one that no timestamp is.
fn date_beside(bound: Bound, target: &DataType) -> Bound {
    let position = bound.position;
    let target = target.without_modifier();
    match target {
        DataType::Timestamp(_) => call(cast::DATE_AS_TIMESTAMP, vec![bound], target, position),
        _ => {
            let operands = vec![bound, session_style(position)];
            call(cast::DATE_AS_TIMESTAMPTZ, operands, target, position)
        }
    }
}

/// The type that a literal takes beside an operand of `data_type`: lengths do not cut it.
fn literal_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Char(_) => DataType::Char(u32::MAX),
        // VARCHAR has no operators of its own.
        DataType::VarChar(_) => DataType::Text,
        other => other.without_modifier(),
    }
}

/// `left <comparison> right`.
///
/// # Errors
/// 42883 when the types do not compare.
pub(super) fn compare(
    comparison: Comparison,
    left: Bound,
    right: Bound,
    position: Position,
) -> Result<Bound> {
    let symbol = comparison_symbol(comparison);
    if let (Kind::Row(_), Kind::Row(_)) = (&left.kind, &right.kind) {
        return compare_rows(comparison, left, right, position);
    }
    if let (Some(one), Some(other)) = (row_value::type_of(&left), row_value::type_of(&right)) {
        let (one, other) = (one.clone(), other.clone());
        return compare_values(comparison, (left, &one), (right, &other), position);
    }
    let (left, right) = comparable(symbol, left, right, position)?;
    match left.data_type {
        DataType::JSONB => {
            let named = functions::compare_jsonb(comparison);
            return Ok(call(named, vec![left, right], DataType::Boolean, position));
        }
        DataType::JSON => return Err(no_operator(symbol, &left, &right, position)),
        _ => {}
    }
    let (left, right) = (numbered(left)?, numbered(right)?);
    let Some(class) = Class::of(&left.data_type) else {
        return Err(no_operator(symbol, &left, &right, position));
    };
    let compare = Operation::Compare(comparison, class);
    Ok(operation(
        compare,
        vec![left, right],
        DataType::Boolean,
        position,
    ))
}

/// An object by its number, by which objects compare.
fn numbered(bound: Bound) -> Result<Bound> {
    match bound.data_type {
        DataType::Catalog(catalog) if catalog.representation() == Representation::Object => {
            coerce(bound, &DataType::OID, CastContext::Implicit)
        }
        _ => Ok(bound),
    }
}

/// `(a, b) = (c, d)` and the like, column by column.
fn compare_rows(
    comparison: Comparison,
    left: Bound,
    right: Bound,
    position: Position,
) -> Result<Bound> {
    let (Kind::Row(left), Kind::Row(right)) = (left.kind, right.kind) else {
        return Err(unsupported(
            "a comparison of a row with something else",
            position,
        ));
    };
    if left.len() != right.len() || left.is_empty() {
        return Err(fail(
            SqlState::SYNTAX_ERROR,
            "unequal number of entries in row expressions",
            position,
        ));
    }
    let pairs: Vec<(Bound, Bound)> = left.into_iter().zip(right).collect();
    let each = |comparison: Comparison, pairs: &[(Bound, Bound)]| -> Result<Vec<Bound>> {
        pairs
            .iter()
            .map(|(left, right)| compare(comparison, left.clone(), right.clone(), position))
            .collect()
    };
    match comparison {
        Comparison::Equal | Comparison::NotDistinct => Ok(all(each(comparison, &pairs)?)),
        Comparison::NotEqual | Comparison::Distinct => Ok(any(each(comparison, &pairs)?)),
        _ => {
            // a < c OR (a = c AND (b < d OR …)), with the given comparison at the end.
            let strict = match comparison {
                Comparison::Less | Comparison::LessOrEqual => Comparison::Less,
                _ => Comparison::Greater,
            };
            let mut result: Option<Bound> = None;
            for (left, right) in pairs.into_iter().rev() {
                result = Some(match result {
                    None => compare(comparison, left, right, position)?,
                    Some(rest) => {
                        let first = compare(strict, left.clone(), right.clone(), position)?;
                        let same = compare(Comparison::Equal, left, right, position)?;
                        any(vec![first, all(vec![same, rest])])
                    }
                });
            }
            result.ok_or_else(|| Error::internal("a row without columns"))
        }
    }
}

/// `left <comparison> right` of rows of which one is a value: NULL fields are equal to each other,
/// and after all others.
fn compare_values(
    comparison: Comparison,
    (left, one): (Bound, &Arc<RowType>),
    (right, other): (Bound, &Arc<RowType>),
    position: Position,
) -> Result<Bound> {
    if one.fields().len() != other.fields().len() {
        let message = "cannot compare record types with different numbers of columns";
        return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
    }
    let pairs = one.fields().iter().zip(other.fields()).enumerate();
    for (number, (one, other)) in pairs {
        let (one, other) = (&one.data_type, &other.data_type);
        if !same_base(one, other) {
            let message = format!(
                "cannot compare dissimilar column types {} and {} at record column {}",
                one.base_name(),
                other.base_name(),
                number + 1
            );
            return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
        }
        if Class::of(one).is_none() || *one == DataType::JSON {
            let what = match comparison {
                Comparison::Equal
                | Comparison::NotEqual
                | Comparison::Distinct
                | Comparison::NotDistinct => "an equality operator",
                _ => "a comparison function",
            };
            let message = format!("could not identify {what} for type {one}");
            return Err(fail(SqlState::UNDEFINED_FUNCTION, message, position));
        }
    }
    let negated = match comparison {
        Comparison::Equal | Comparison::NotDistinct => Some(false),
        Comparison::NotEqual | Comparison::Distinct => Some(true),
        _ => None,
    };
    // Rows that are made here need not be made to be compared.
    if let Some(negated) = negated
        && let (Some(left), Some(right)) = (row_value::parts(&left), row_value::parts(&right))
    {
        let pairs = left.into_iter().zip(right);
        let tests = pairs.map(|(left, right)| match negated {
            true => compare(Comparison::Distinct, left, right, position),
            false => compare(Comparison::NotDistinct, left, right, position),
        });
        let tests = tests.collect::<Result<Vec<Bound>>>()?;
        return Ok(match negated {
            true => any(tests),
            false => all(tests),
        });
    }
    let compare = Operation::Compare(comparison, Class::Row);
    let operands = vec![left, right];
    Ok(operation(compare, operands, DataType::Boolean, position))
}

/// The conjunction; constants are left out where they decide nothing.
pub(super) fn all(operands: Vec<Bound>) -> Bound {
    connect(operands, true)
}

/// The disjunction.
pub(super) fn any(operands: Vec<Bound>) -> Bound {
    connect(operands, false)
}

fn connect(operands: Vec<Bound>, is_and: bool) -> Bound {
    let position = operands.first().and_then(|first| first.position);
    let mut parts = Vec::with_capacity(operands.len());
    for operand in operands {
        match operand.kind {
            Kind::And(inner) if is_and => parts.extend(inner),
            Kind::Or(inner) if !is_and => parts.extend(inner),
            Kind::Constant(Value::Boolean(value)) if value == is_and => {}
            // The later operands do not count after this one.
            Kind::Constant(Value::Boolean(value)) => {
                if parts.is_empty() {
                    return Bound::constant(Value::Boolean(value), DataType::Boolean, position);
                }
                parts.push(operand);
                break;
            }
            _ => parts.push(operand),
        }
    }
    if parts.len() == 1 {
        return parts.swap_remove(0);
    }
    if parts.is_empty() {
        return Bound::constant(Value::Boolean(is_and), DataType::Boolean, position);
    }
    if parts.iter().all(Bound::is_null_literal) {
        return Bound::null(DataType::Boolean, position);
    }
    let kind = if is_and {
        Kind::And(parts)
    } else {
        Kind::Or(parts)
    };
    Bound::new(kind, DataType::Boolean, position)
}

/// NOT.
pub(super) fn not(operand: Bound) -> Bound {
    let position = operand.position;
    operation(Operation::Not, vec![operand], DataType::Boolean, position)
}

/// `operand IS NULL`, or IS NOT NULL.
pub(super) fn is_null(operand: Bound, negated: bool, position: Position) -> Result<Bound> {
    match operand.kind {
        Kind::Unknown(text) => Ok(Bound::constant(
            Value::Boolean(text.is_none() != negated),
            DataType::Boolean,
            position,
        )),
        Kind::Parameter(parameter) => {
            parameter.leave_undecided(position);
            Ok(Bound::null(DataType::Boolean, position))
        }
        Kind::Row(columns) => {
            let each: Result<Vec<Bound>> = columns
                .into_iter()
                .map(|column| is_null_value(column, negated, position))
                .collect();
            Ok(all(each?))
        }
        _ if row_value::type_of(&operand).is_some() => match row_value::parts(&operand) {
            Some(parts) => {
                let each: Result<Vec<Bound>> = parts
                    .into_iter()
                    .map(|part| is_null_value(part, negated, position))
                    .collect();
                Ok(all(each?))
            }
            None => {
                let named = match negated {
                    true => functions::ROW_IS_NOT_NULL,
                    false => functions::ROW_IS_NULL,
                };
                Ok(call(named, vec![operand], DataType::Boolean, position))
            }
        },
        _ => is_null_value(operand, negated, position),
    }
}

/// Whether the value itself is NULL: a row of NULLs is not.
fn is_null_value(operand: Bound, negated: bool, position: Position) -> Result<Bound> {
    if operand.is_unknown() {
        return is_null(operand, negated, position);
    }
    let test = Operation::IsNull { negated };
    Ok(operation(test, vec![operand], DataType::Boolean, position))
}

/// `left || right`.
///
/// # Errors
/// 42883 when neither side is text, bytes or an array.
pub(super) fn concatenate(left: Bound, right: Bound, position: Position) -> Result<Bound> {
    let is_array =
        |bound: &Bound| !bound.is_unknown() && matches!(bound.data_type, DataType::Array(_));
    let is_text = |bound: &Bound| bound.is_unknown() || bound.data_type.is_string();
    let is_json = |bound: &Bound| is_jsonb(bound) || bound.is_unknown();
    if is_json(&left) && is_json(&right) && (is_jsonb(&left) || is_jsonb(&right)) {
        return by_symbol("||", left, right, position);
    }
    if is_array(&left) || is_array(&right) {
        return arrays::concatenate(left, right, position);
    }
    let is_bytea =
        |bound: &Bound| !bound.is_unknown() && matches!(bound.data_type, DataType::Bytea);
    if is_bytea(&left) && (is_bytea(&right) || right.is_unknown())
        || is_bytea(&right) && left.is_unknown()
    {
        let left = coerce(left, &DataType::Bytea, CastContext::Implicit)?;
        let right = coerce(right, &DataType::Bytea, CastContext::Implicit)?;
        let named = functions::bytea_concat();
        return Ok(call(named, vec![left, right], DataType::Bytea, position));
    }
    if !is_text(&left) && !is_text(&right) {
        return Err(no_operator("||", &left, &right, position));
    }
    let as_text = |bound: Bound| {
        if bound.is_unknown() {
            return coerce(bound, &DataType::Text, CastContext::Implicit);
        }
        to_text(bound)
    };
    let (left, right) = (as_text(left)?, as_text(right)?);
    Ok(operation(
        Operation::Concat,
        vec![left, right],
        DataType::Text,
        position,
    ))
}

/// Whether values of a type are numbers, those of REAL too.
pub(super) fn is_number(data_type: &DataType) -> bool {
    data_type.is_number() || *data_type == DataType::Catalog(CatalogType::Real)
}

/// `left ^ right`.
///
/// # Errors
/// 42883 when an operand is no number.
pub(super) fn power(left: Bound, right: Bound, position: Position) -> Result<Bound> {
    let number = |bound: &Bound| bound.is_unknown() || is_number(&bound.data_type);
    if !number(&left) || !number(&right) {
        return Err(no_operator("^", &left, &right, position));
    }
    let is_numeric =
        |bound: &Bound| !bound.is_unknown() && matches!(bound.data_type, DataType::Numeric { .. });
    let is_double = |bound: &Bound| {
        let real = DataType::Catalog(CatalogType::Real);
        !bound.is_unknown() && (bound.data_type == DataType::Double || bound.data_type == real)
    };
    let is_decimal =
        (is_numeric(&left) || is_numeric(&right)) && !is_double(&left) && !is_double(&right);
    let data_type = if is_decimal {
        DataType::NUMERIC
    } else {
        DataType::Double
    };
    let left = coerce(left, &data_type, CastContext::Implicit)?;
    let right = coerce(right, &data_type, CastContext::Implicit)?;
    Ok(call(
        functions::power(is_decimal),
        vec![left, right],
        data_type,
        position,
    ))
}

/// `& | # << >>` on integers.
///
/// # Errors
/// 42883 when an operand is no integer.
pub(super) fn bitwise(
    symbol: &'static str,
    left: Bound,
    right: Bound,
    position: Position,
) -> Result<Bound> {
    let is_integer = |bound: &Bound| !bound.is_unknown() && bound.data_type.is_integer();
    let shifts = matches!(symbol, "<<" | ">>");
    let data_type = match (is_integer(&left), is_integer(&right)) {
        (true, true) if shifts => left.data_type.clone(),
        (true, true) => wider(&left.data_type, &right.data_type),
        (true, false) if right.is_unknown() => left.data_type.clone(),
        (false, true) if left.is_unknown() => right.data_type.clone(),
        _ => return Err(no_operator(symbol, &left, &right, position)),
    };
    let bytes = match data_type {
        DataType::SmallInt => 2,
        DataType::Integer => 4,
        _ => 8,
    };
    let left = coerce(left, &data_type, CastContext::Implicit)?;
    let right_type = if shifts {
        DataType::Integer
    } else {
        data_type.clone()
    };
    let right = coerce(right, &right_type, CastContext::Implicit).map_err(|_| {
        fail(
            SqlState::UNDEFINED_FUNCTION,
            format!(
                "operator does not exist: {} {symbol} bigint",
                data_type.base_name()
            ),
            position,
        )
    })?;
    match functions::integer_operator(symbol, bytes) {
        Some(named) => Ok(call(named, vec![left, right], data_type, position)),
        None => Err(unsupported(format!("operator {symbol}"), position)),
    }
}
