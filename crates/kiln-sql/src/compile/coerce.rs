//! Conversions between types: which exist, in which context, and what computes them.

mod moment;
mod row;

use kiln_procedure::frame::{push_value, to_value};
use kiln_procedure::ir::{Class, Comparison, Width};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::datetime::depends_on_zone;
use kiln_storage::types::{CatalogType, DataType, Representation, Value};

use super::bound::{Bound, Builtin, Kind, Operation};
use super::constant::{call, operation};
use super::functions::cast::parse_value;
use super::functions::{self, cast, cast_array};
use super::types::same_base;
use super::{Position, fail, unsupported};
use crate::catalog::CatalogCall;
use crate::catalog::functions::{OBJECT_TO_OID, object_of_oid, object_of_text};
use moment::RelativeMoment;

/// In which way a value is converted; each admits what the one before does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// An operand or argument.
    Implicit,
    /// A value for a column of INSERT or UPDATE: too long text raises 22001.
    Assignment,
    /// PL/pgSQL's assignment to a variable: as an assignment to a column, but any type converts
    /// to any other through its text.
    Variable,
    /// CAST or `::`: too long text is cut.
    Explicit,
}

/// The weakest context in which `source` converts to `target` (lengths and the like aside).
pub(super) fn cast_context(source: &DataType, target: &DataType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use DataType::*;
    if same_base(source, target) {
        return Some(Implicit);
    }
    let rank = |data_type: &DataType| match data_type {
        SmallInt => Some(0),
        Integer => Some(1),
        BigInt => Some(2),
        Numeric { .. } => Some(3),
        Double => Some(4),
        _ => None,
    };
    if let (Some(from), Some(to)) = (rank(source), rank(target)) {
        return Some(if from < to { Implicit } else { Assignment });
    }
    if let Some(context) = catalog_cast_context(source, target) {
        return Some(context);
    }
    Some(match (source, target) {
        (source, target) if source.is_string() && target.is_string() => Implicit,
        (Date, Timestamp(_) | TimestampTz(_)) | (Timestamp(_), TimestampTz(_)) => Implicit,
        (Timestamp(_) | TimestampTz(_), Date | Time(_)) | (TimestampTz(_), Timestamp(_)) => {
            Assignment
        }
        (Time(_), Interval(_)) => Implicit,
        (Interval(_), Time(_)) => Assignment,
        (Integer, Boolean) | (Boolean, Integer) => Explicit,
        (Array(source), Array(target)) => cast_context(source, target)?,
        (Row(source), Row(target)) => row::converts(source, target).then_some(Implicit)?,
        (_, target) if target.is_string() => Assignment,
        (source, _) if source.is_string() => Explicit,
        _ => return None,
    })
}

/// The weakest context for conversions from and to the types of the catalogs that are not those of
/// texts.
fn catalog_cast_context(source: &DataType, target: &DataType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    let kind = |data_type: &DataType| match data_type {
        DataType::Catalog(catalog) => Some((*catalog, catalog.representation())),
        _ => None,
    };
    Some(match (kind(source), kind(target)) {
        (Some((CatalogType::Char, _)), None) if *target == DataType::Integer => Explicit,
        (None, Some((CatalogType::Char, _))) if *source == DataType::Integer => Explicit,
        (Some((_, Representation::Object)), Some((CatalogType::Oid, _)))
        | (Some((CatalogType::Oid, _)), Some((_, Representation::Object))) => Implicit,
        (Some((CatalogType::RegProc, _)), Some((CatalogType::RegProcedure, _)))
        | (Some((CatalogType::RegProcedure, _)), Some((CatalogType::RegProc, _))) => Implicit,
        (None, Some((CatalogType::Oid, _) | (_, Representation::Object)))
            if source.is_integer() =>
        {
            Implicit
        }
        (None, Some((CatalogType::RegClass, _))) if source.is_string() => Implicit,
        (Some((CatalogType::Oid, _)), None) if *target == DataType::BigInt => Implicit,
        (Some((CatalogType::Oid, _) | (_, Representation::Object)), None)
            if target.is_integer() =>
        {
            Assignment
        }
        (Some((CatalogType::Real, _)), None) if target.is_number() => match target {
            DataType::Double => Implicit,
            _ => Assignment,
        },
        (None, Some((CatalogType::Real, _))) if source.is_number() => match source {
            DataType::Double => Assignment,
            _ => Implicit,
        },
        (Some((_, Representation::Vector)), None) => {
            let (Some(from), Some(to)) = (source.element(), target.element()) else {
                return None;
            };
            cast_context(&from, &to)?
        }
        (None, Some((CatalogType::Xid, _))) if source.is_integer() => Explicit,
        (Some((from, _)), Some((to, _))) if from.is_json() && to.is_json() => Assignment,
        (Some((CatalogType::Jsonb, _)), None) if functions::from_jsonb(target).is_some() => {
            Explicit
        }
        _ => return None,
    })
}

/// Whether an operand converts to `target` without being asked to.
pub(super) fn converts_implicitly(bound: &Bound, target: &DataType) -> bool {
    bound.is_unknown() || cast_context(&bound.data_type, target) == Some(CastContext::Implicit)
}

/// Converts `bound` to `target`.
///
/// # Errors
/// 42846 when there is no such cast, 42804 when there is none in this context, 22P02 and the like
/// for a literal that cannot be read.
pub(super) fn coerce(bound: Bound, target: &DataType, context: CastContext) -> Result<Bound> {
    let position = bound.position;
    match bound.kind {
        Kind::Unknown(None) => return Ok(Bound::null(target.clone(), position)),
        Kind::Unknown(Some(text)) if is_object(target) => {
            return convert(Bound::text(text).at(position), target);
        }
        Kind::Unknown(Some(text)) if let Some(moment) = RelativeMoment::of(&text, target) => {
            let moment = moment.bind(position)?;
            return coerce(moment, target, CastContext::Explicit);
        }
        Kind::Unknown(Some(text)) => {
            let value = parse_value(&text, target).map_err(|error| located(error, position))?;
            if bound.data_type != STORED_LITERAL && depends_on_style(target, &text) {
                let literal = from_text(Bound::text(text).at(position), target)?;
                return Ok(apply_modifier(literal, target, context));
            }
            return Ok(apply_modifier(
                Bound::constant(value, without_length(target), position),
                target,
                context,
            ));
        }
        Kind::Parameter(parameter) => {
            let decided = parameter.decide(&without_length(target), position)?;
            return Ok(apply_modifier(decided, target, context));
        }
        Kind::Constant(Value::Null) if bound.data_type != *target => {
            check_context(&bound.data_type, target, context, position)?;
            return Ok(Bound::null(target.clone(), position));
        }
        _ => {}
    }
    if let Some(row) = row::convert(&bound, target, context)? {
        return Ok(row);
    }
    if bound.data_type == *target {
        return Ok(bound);
    }
    check_context(&bound.data_type, target, context, position)?;
    let converted = convert(bound, target)?;
    Ok(apply_modifier(converted, target, context))
}

/// The type of a literal of a stored expression, whose tree has no places. It is read in UTC: what
/// stores an expression refuses, in sessions of other zones, literals that would be another moment
/// there.
pub(super) const STORED_LITERAL: DataType = DataType::VarChar(None);

/// Whether a value converts to a type as an assignment converts.
pub(super) fn assigns(bound: &Bound, target: &DataType) -> bool {
    let context = cast_context(&bound.data_type, target);
    bound.is_unknown()
        || bound.data_type == *target
        || context.is_some_and(|context| context <= CastContext::Assignment)
}

/// The style of the session that runs the statement.
pub(super) fn session_style(position: Position) -> Bound {
    let (name, function) = functions::STYLE;
    let style = Operation::Call(Builtin {
        name,
        function,
        volatile: false,
    });
    Bound::new(
        Kind::Operation(style, Vec::new()),
        DataType::Bytea,
        position,
    )
}

/// The style for values of these types: that of the session where it matters.
pub(super) fn style_for(types: &[&DataType], position: Position) -> Bound {
    match types.iter().any(|data_type| has_style(data_type)) {
        true => session_style(position),
        false => Bound::constant(Value::Bytea(Vec::new()), DataType::Bytea, position),
    }
}

/// Whether values of a type are read or written otherwise in other styles, or become such values.
fn has_style(data_type: &DataType) -> bool {
    match data_type {
        DataType::TimestampTz(_) | DataType::Double | DataType::Catalog(CatalogType::Real) => true,
        DataType::Array(element) => has_style(element),
        DataType::Row(of) => of.fields().iter().any(|field| has_style(&field.data_type)),
        _ => false,
    }
}

/// Whether a literal of this type is another value in another style.
fn depends_on_style(target: &DataType, text: &str) -> bool {
    match target {
        DataType::TimestampTz(_) => depends_on_zone(text),
        DataType::Array(element) => has_zone(element),
        DataType::Row(of) => of.fields().iter().any(|field| has_zone(&field.data_type)),
        _ => false,
    }
}

fn has_zone(data_type: &DataType) -> bool {
    match data_type {
        DataType::TimestampTz(_) => true,
        DataType::Array(element) => has_zone(element),
        DataType::Row(of) => of.fields().iter().any(|field| has_zone(&field.data_type)),
        _ => false,
    }
}

/// A value as text, in the session's style.
fn in_style(named: cast::Named, bound: Bound) -> Bound {
    let position = bound.position;
    let operands = vec![bound, session_style(position)];
    call(named, operands, DataType::Text, position)
}

/// An array as it is printed.
fn array_to_text(bound: Bound) -> Bound {
    let position = bound.position;
    let element = bound.data_type.element().unwrap_or(DataType::Text);
    let style = style_for(&[&element], position);
    let operands = vec![bound, Bound::text(element.described()), style];
    call(
        cast_array::ARRAY_TO_TEXT,
        operands,
        DataType::Text,
        position,
    )
}

/// The type of a literal or parameter before its length is looked at.
pub(super) fn without_length(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Char(_) => DataType::Char(u32::MAX),
        DataType::Array(element) => DataType::array(without_length(element)),
        other => other.without_modifier(),
    }
}

pub(super) fn located(error: Error, position: Position) -> Error {
    match position {
        Some((line, column)) => error.or_at(kiln_storage::error::Position { line, column }),
        None => error,
    }
}

fn check_context(
    source: &DataType,
    target: &DataType,
    context: CastContext,
    position: Position,
) -> Result<()> {
    let needed = cast_context(source, target);
    match needed {
        Some(needed) if needed <= context => return Ok(()),
        // Through the text of the value.
        _ if context == CastContext::Variable => return Ok(()),
        _ => {}
    }
    if context == CastContext::Explicit {
        return Err(fail(
            SqlState::CANNOT_COERCE,
            format!(
                "cannot cast type {} to {}",
                source.base_name(),
                target.base_name()
            ),
            position,
        ));
    }
    Err(fail(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "a value of type {} is required but the expression is of type {}",
            target.base_name(),
            source.base_name()
        ),
        position,
    )
    .with_hint("You will need to rewrite or cast the expression."))
}

/// Converts to the base type of `target`; length, precision and scale are not looked at.
fn convert(bound: Bound, target: &DataType) -> Result<Bound> {
    use DataType::*;
    let position = bound.position;
    let source = bound.data_type.clone();
    if same_base(&source, target) {
        return Ok(bound);
    }
    if let Some(converted) = convert_catalog(&bound, target)? {
        return Ok(converted);
    }
    let to = |call_of, data_type| Ok(call(call_of, vec![bound.clone()], data_type, position));
    let step = |step, data_type| Ok(operation(step, vec![bound.clone()], data_type, position));
    match (&source, target) {
        (SmallInt, Integer | BigInt) | (Integer, BigInt) => Ok(widen(bound, target.clone())),
        (Integer | BigInt, SmallInt) => step(Operation::CheckWidth(Width::Two), SmallInt),
        (BigInt, Integer) => step(Operation::CheckWidth(Width::Four), Integer),
        (SmallInt | Integer | BigInt, Numeric { .. }) => {
            step(Operation::IntegerToDecimal, DataType::NUMERIC)
        }
        (SmallInt | Integer | BigInt, Double) => step(Operation::IntegerToDouble, Double),
        (Numeric { .. }, SmallInt) => to(cast::DECIMAL_TO_SMALLINT, SmallInt),
        (Numeric { .. }, Integer) => to(cast::DECIMAL_TO_INTEGER, Integer),
        (Numeric { .. }, BigInt) => to(cast::DECIMAL_TO_BIGINT, BigInt),
        (Numeric { .. }, Double) => to(cast::DECIMAL_TO_DOUBLE, Double),
        (Double, SmallInt) => to(cast::DOUBLE_TO_SMALLINT, SmallInt),
        (Double, Integer) => to(cast::DOUBLE_TO_INTEGER, Integer),
        (Double, BigInt) => to(cast::DOUBLE_TO_BIGINT, BigInt),
        (Double, Numeric { .. }) => to(cast::DOUBLE_TO_DECIMAL, DataType::NUMERIC),
        (Boolean, Integer) => Ok(call(
            cast::BOOLEAN_TO_INTEGER,
            vec![bound],
            Integer,
            position,
        )),
        (Integer, Boolean) => {
            let zero = Bound::integer(0);
            let compare = Operation::Compare(Comparison::NotEqual, Class::Integer);
            Ok(operation(compare, vec![bound, zero], Boolean, position))
        }
        (from, to) if let Some(named) = cast_array::between_zones(from, to) => {
            let operands = vec![bound, session_style(position)];
            Ok(call(named, operands, to.without_modifier(), position))
        }
        (Date, Timestamp(_)) => to(cast::DATE_TO_TIMESTAMP, target.without_modifier()),
        (Timestamp(_), Date) => to(cast::TIMESTAMP_TO_DATE, Date),
        (Timestamp(_), Time(_)) => to(cast::TIMESTAMP_TO_TIME, DataType::TIME),
        (Time(_), Interval(_)) => to(cast::TIME_TO_INTERVAL, DataType::INTERVAL),
        (Interval(_), Time(_)) => to(cast::INTERVAL_TO_TIME, DataType::TIME),
        (source, target) if source.is_string() && target.is_string() => Ok(bound),
        (_, target) if target.is_string() => to_text(bound),
        (source, _) if source.is_string() => from_text(bound, target),
        (Array(from), Array(to)) => {
            let base = without_length(target);
            let is_number = |data_type: &DataType| matches!(data_type, Catalog(catalog) if catalog.representation() == Representation::Number);
            let widens = matches!(
                (&**from, &**to),
                (SmallInt, Integer | BigInt) | (Integer, BigInt)
            ) || is_number(to) && from.is_integer()
                || is_number(from) && **to == BigInt;
            let free = widens
                || (from.is_string()
                    && matches!(**to, Text | VarChar(None) | Catalog(CatalogType::Name)));
            if free {
                return Ok(retype(bound, base));
            }
            match (&**from, &**to) {
                (SmallInt | Integer | BigInt, Numeric { .. }) => Ok(call(
                    cast::INTEGERS_TO_DECIMALS,
                    vec![bound],
                    base,
                    position,
                )),
                (BigInt, Integer) | (BigInt | Integer, SmallInt) => {
                    let limit = if **to == Integer {
                        i32::MAX
                    } else {
                        i32::from(i16::MAX)
                    };
                    let arguments = vec![bound, Bound::integer(limit)];
                    Ok(call(cast::NARROW_INTEGERS, arguments, base, position))
                }
                _ if cast_array::elements_convert(from, to) => {
                    let names = [from, to].map(|element| Bound::text(element.described()));
                    let style = style_for(&[from, to], position);
                    let operands = std::iter::once(bound).chain(names).chain([style]).collect();
                    Ok(call(cast_array::ARRAY_TO_ARRAY, operands, base, position))
                }
                _ => Err(unsupported(
                    format!("a cast from {source} to {target}"),
                    position,
                )),
            }
        }
        _ => {
            // PL/pgSQL converts what has no cast through its text.
            let text = to_output_text(bound)?;
            from_text(text, target)
        }
    }
}

/// Whether a type is one of those whose values name objects.
fn is_object(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Catalog(catalog) if catalog.representation() == Representation::Object)
}

/// Converts from and to the types of the catalogs; `None` where the ways of the others do.
fn convert_catalog(bound: &Bound, target: &DataType) -> Result<Option<Bound>> {
    let position = bound.position;
    let source = &bound.data_type;
    let to = |named, data_type: &DataType| {
        Ok(Some(call(
            named,
            vec![bound.clone()],
            data_type.clone(),
            position,
        )))
    };
    let ask = |of: Option<CatalogCall>, operand: Bound, data_type: &DataType| {
        let call = of.ok_or_else(|| Error::internal(format!("no value of {data_type} is made")))?;
        let kind = Kind::Operation(Operation::Consult(call), vec![operand]);
        Ok(Some(Bound::new(kind, data_type.clone(), position)))
    };
    if let DataType::Catalog(own) = source {
        if *own == CatalogType::Jsonb
            && let Some((named, data_type)) = functions::from_jsonb(target)
        {
            return to(named, &data_type);
        }
        match (own.representation(), target) {
            (Representation::Object, DataType::Catalog(CatalogType::Oid)) => {
                return ask(Some(OBJECT_TO_OID), bound.clone(), target);
            }
            (Representation::Object, target) if target.is_string() => {
                return to(cast::OBJECT_TO_TEXT, &DataType::Text);
            }
            (Representation::Object, _) => {
                let oid = ask(Some(OBJECT_TO_OID), bound.clone(), &DataType::OID)?;
                return oid.map(|oid| convert(oid, target)).transpose();
            }
            (Representation::Text, DataType::Integer) if *own == CatalogType::Char => {
                return to(cast::CHAR_TO_INTEGER, target);
            }
            (Representation::Number, DataType::BigInt) => {
                return Ok(Some(retype(bound.clone(), DataType::BigInt)));
            }
            (Representation::Number, DataType::Integer) => {
                return to(cast::OID_TO_INTEGER, target);
            }
            (Representation::Double, DataType::Double) => {
                return Ok(Some(retype(bound.clone(), DataType::Double)));
            }
            (Representation::Double, DataType::Numeric { .. }) => {
                return to(cast::REAL_TO_DECIMAL, &DataType::NUMERIC);
            }
            (Representation::Double, target) if target.is_number() => {
                return convert(retype(bound.clone(), DataType::Double), target).map(Some);
            }
            (Representation::Vector, DataType::Array(_)) => {
                let own = DataType::array(source.element().unwrap_or(DataType::SmallInt));
                return convert(retype(bound.clone(), own), target).map(Some);
            }
            _ => {}
        }
    }
    let DataType::Catalog(wanted) = target else {
        return Ok(None);
    };
    match wanted.representation() {
        Representation::Text if *wanted == CatalogType::Char && *source == DataType::Integer => {
            to(cast::INTEGER_TO_CHAR, target)
        }
        Representation::Number if source.is_integer() => to(cast::INTEGER_TO_OID, target),
        Representation::Object if source.is_string() => {
            let text = convert(bound.clone(), &DataType::Text)?;
            ask(object_of_text(*wanted), text, target)
        }
        Representation::Object => {
            let oid = convert(bound.clone(), &DataType::OID)?;
            ask(object_of_oid(*wanted), oid, target)
        }
        Representation::Text if source.is_string() => match wanted {
            CatalogType::Name => to(cast::TEXT_TO_NAME, target),
            CatalogType::Char => to(cast::TEXT_TO_CHAR, target),
            CatalogType::Json => to(functions::TEXT_TO_JSON, target),
            CatalogType::Jsonb => to(functions::TEXT_TO_JSONB, target),
            CatalogType::JsonPath => to(functions::TEXT_TO_JSONPATH, target),
            _ => to(cast::TEXT_AS_IT_IS, target),
        },
        Representation::Double if matches!(source, DataType::Numeric { .. }) => {
            to(cast::DECIMAL_TO_REAL, target)
        }
        Representation::Double if source.is_number() => {
            let double = convert(bound.clone(), &DataType::Double)?;
            Ok(Some(call(
                cast::DOUBLE_TO_REAL,
                vec![double],
                target.clone(),
                position,
            )))
        }
        _ => Ok(None),
    }
}

/// A constant keeps its value under the other type; anything else its slot.
fn widen(bound: Bound, data_type: DataType) -> Bound {
    let Bound { kind, position, .. } = bound;
    let kind = match kind {
        Kind::Constant(value) => {
            let number = match value {
                Value::SmallInt(value) => i64::from(value),
                Value::Integer(value) => i64::from(value),
                Value::BigInt(value) => value,
                other => return Bound::constant(other, data_type, position),
            };
            Kind::Constant(match data_type {
                DataType::Integer => Value::Integer(number as i32),
                _ => Value::BigInt(number),
            })
        }
        other => other,
    };
    Bound::new(kind, data_type, position)
}

/// The same slot under another type; constants are given the other type's value.
fn retype(bound: Bound, data_type: DataType) -> Bound {
    let Bound {
        kind,
        data_type: source,
        position,
    } = bound;
    let kind = match kind {
        Kind::Constant(value) => {
            let mut heap = kiln_storage::slot::Heap::new();
            let slot = push_value(&mut heap, &value);
            debug_assert_ne!(source, data_type);
            Kind::Constant(to_value(&heap, slot, &data_type))
        }
        other => other,
    };
    Bound::new(kind, data_type, position)
}

/// The value as CAST makes it TEXT: as it is printed, but `true` and `false` in full and CHAR
/// without its padding.
pub(super) fn to_text(bound: Bound) -> Result<Bound> {
    let position = bound.position;
    let function = match &bound.data_type {
        DataType::Char(_) | DataType::VarChar(_) | DataType::Text => {
            return Ok(bound.relabel(DataType::Text));
        }
        DataType::SmallInt | DataType::Integer | DataType::BigInt => cast::INTEGER_TO_TEXT,
        DataType::Numeric { .. } => cast::DECIMAL_TO_TEXT,
        DataType::Double => return Ok(in_style(cast::DOUBLE_TO_TEXT, bound)),
        DataType::Boolean => cast::BOOLEAN_TO_TEXT,
        DataType::Date => cast::DATE_TO_TEXT,
        DataType::Timestamp(_) => cast::TIMESTAMP_TO_TEXT,
        DataType::TimestampTz(_) => return Ok(in_style(cast::TIMESTAMPTZ_TO_TEXT, bound)),
        DataType::Time(_) => cast::TIME_TO_TEXT,
        DataType::Uuid => cast::UUID_TO_TEXT,
        DataType::Bytea => cast::BYTEA_TO_TEXT,
        DataType::Interval(_) => cast::INTERVAL_TO_TEXT,
        DataType::Enum(of) => {
            let operands = vec![bound.clone(), Bound::text(of.to_string())];
            let named = functions::ENUM_TO_TEXT;
            return Ok(call(named, operands, DataType::Text, position));
        }
        DataType::Catalog(catalog) => match catalog.representation() {
            Representation::Number => cast::INTEGER_TO_TEXT,
            Representation::Text => return Ok(bound.relabel(DataType::Text)),
            Representation::Double => return Ok(in_style(cast::REAL_TO_TEXT, bound)),
            Representation::Vector => cast::VECTOR_TO_TEXT,
            Representation::Object => cast::OBJECT_TO_TEXT,
        },
        DataType::Row(of) => {
            let style = style_for(&[&bound.data_type], position);
            let operands = vec![bound.clone(), Bound::text(of.to_string()), style];
            let named = functions::ROW_TO_TEXT;
            return Ok(call(named, operands, DataType::Text, position));
        }
        DataType::Array(element) => match &**element {
            DataType::SmallInt | DataType::Integer | DataType::BigInt => cast::INTEGERS_TO_TEXT,
            DataType::Numeric { .. } => cast::DECIMALS_TO_TEXT,
            DataType::Boolean => cast::BOOLEANS_TO_TEXT,
            DataType::VarChar(_) | DataType::Text => cast::TEXTS_TO_TEXT,
            DataType::Date => cast::DATES_TO_TEXT,
            DataType::Timestamp(_) => cast::TIMESTAMPS_TO_TEXT,
            DataType::Catalog(element) => match element.representation() {
                Representation::Number => cast::INTEGERS_TO_TEXT,
                Representation::Text => cast::TEXTS_TO_TEXT,
                Representation::Double => return Ok(array_to_text(bound)),
                Representation::Object => cast::OBJECTS_TO_TEXT,
                Representation::Vector => {
                    let message = format!("a cast from {element:?} arrays to text");
                    return Err(unsupported(message, position));
                }
            },
            _ => return Ok(array_to_text(bound)),
        },
    };
    Ok(call(function, vec![bound], DataType::Text, position))
}

/// The value as it is printed: as [`to_text`], but `t` and `f`, and CHAR with its padding.
pub(super) fn to_output_text(bound: Bound) -> Result<Bound> {
    let position = bound.position;
    if bound.is_unknown() {
        return coerce(bound, &DataType::Text, CastContext::Implicit);
    }
    match bound.data_type {
        DataType::Boolean => Ok(call(
            cast::BOOLEAN_TO_LETTER,
            vec![bound],
            DataType::Text,
            position,
        )),
        DataType::Char(length) => Ok(padded(bound, length)),
        _ => to_text(bound),
    }
}

/// A CHAR(n) with its padding, as TEXT.
pub(super) fn padded(bound: Bound, length: u32) -> Bound {
    let position = bound.position;
    if length == u32::MAX {
        return bound.relabel(DataType::Text);
    }
    let length = Bound::integer(i32::try_from(length).unwrap_or(i32::MAX));
    call(cast::PAD, vec![bound, length], DataType::Text, position)
}

fn from_text(bound: Bound, target: &DataType) -> Result<Bound> {
    let position = bound.position;
    let function = match target {
        DataType::SmallInt => cast::TEXT_TO_SMALLINT,
        DataType::Integer => cast::TEXT_TO_INTEGER,
        DataType::BigInt => cast::TEXT_TO_BIGINT,
        DataType::Numeric { .. } => cast::TEXT_TO_DECIMAL,
        DataType::Double => cast::TEXT_TO_DOUBLE,
        DataType::Boolean => cast::TEXT_TO_BOOLEAN,
        DataType::Date => cast::TEXT_TO_DATE,
        DataType::Timestamp(_) => cast::TEXT_TO_TIMESTAMP,
        DataType::TimestampTz(_) => {
            let operands = vec![bound, session_style(position)];
            let named = cast::TEXT_TO_TIMESTAMPTZ;
            return Ok(call(named, operands, target.without_modifier(), position));
        }
        DataType::Time(_) => cast::TEXT_TO_TIME,
        DataType::Uuid => cast::TEXT_TO_UUID,
        DataType::Bytea => cast::TEXT_TO_BYTEA,
        DataType::Interval(_) => cast::TEXT_TO_INTERVAL,
        DataType::Char(_) | DataType::VarChar(_) | DataType::Text => {
            return Ok(bound.relabel(DataType::Text));
        }
        DataType::Enum(of) => {
            let operands = vec![bound, Bound::text(of.to_string())];
            let named = functions::TEXT_TO_ENUM;
            return Ok(call(named, operands, target.clone(), position));
        }
        DataType::Row(of) => {
            let style = style_for(&[target], position);
            let operands = vec![bound, Bound::text(of.to_string()), style];
            let named = functions::TEXT_TO_ROW;
            return Ok(call(named, operands, target.clone(), position));
        }
        DataType::Catalog(catalog) => match catalog {
            CatalogType::Oid | CatalogType::Xid => cast::TEXT_TO_OID,
            CatalogType::Real => cast::TEXT_TO_REAL,
            CatalogType::Json => functions::TEXT_TO_JSON,
            CatalogType::Jsonb => functions::TEXT_TO_JSONB,
            CatalogType::JsonPath => functions::TEXT_TO_JSONPATH,
            CatalogType::Int2Vector => cast::TEXT_TO_INT2VECTOR,
            CatalogType::OidVector => cast::TEXT_TO_OIDVECTOR,
            _ => return Ok(bound.relabel(target.clone())),
        },
        DataType::Array(element) => match **element {
            DataType::Catalog(CatalogType::Oid) => cast::TEXT_TO_OIDS,
            DataType::Catalog(CatalogType::Name) => cast::TEXT_TO_NAMES,
            DataType::Catalog(element) if element.representation() == Representation::Text => {
                cast::TEXT_TO_TEXTS
            }
            DataType::SmallInt => cast::TEXT_TO_SMALLINTS,
            DataType::Integer => cast::TEXT_TO_INTEGERS,
            DataType::BigInt => cast::TEXT_TO_BIGINTS,
            DataType::Numeric { .. } => cast::TEXT_TO_DECIMALS,
            DataType::Double => cast::TEXT_TO_DOUBLES,
            DataType::Boolean => cast::TEXT_TO_BOOLEANS,
            DataType::Text | DataType::VarChar(_) => cast::TEXT_TO_TEXTS,
            ref element => {
                let element = without_length(element);
                let style = style_for(&[&element], position);
                let operands = vec![bound, Bound::text(element.described()), style];
                let data_type = DataType::array(element);
                return Ok(call(
                    cast_array::TEXT_TO_ARRAY,
                    operands,
                    data_type,
                    position,
                ));
            }
        },
    };
    Ok(call(
        function,
        vec![bound],
        target.without_modifier(),
        position,
    ))
}

/// Applies length, or precision and scale, of `target` to a value of its base type.
fn apply_modifier(bound: Bound, target: &DataType, context: CastContext) -> Bound {
    let position = bound.position;
    if bound.data_type == *target {
        return bound;
    }
    let length_call = |bound: Bound, explicit, assignment, length: u32| {
        let function = if context == CastContext::Explicit {
            explicit
        } else {
            assignment
        };
        let length = Bound::integer(i32::try_from(length).unwrap_or(i32::MAX));
        call(function, vec![bound, length], target.clone(), position)
    };
    match (&bound.data_type, target) {
        (
            DataType::Numeric {
                precision_scale: Some((from_precision, from_scale)),
            },
            DataType::Numeric {
                precision_scale: Some((precision, scale)),
            },
        ) if from_scale == scale && from_precision <= precision => bound.relabel(target.clone()),
        (
            _,
            DataType::Numeric {
                precision_scale: Some((precision, scale)),
            },
        ) => {
            let (precision, scale) = (*precision, *scale);
            let rescale = Operation::Rescale { precision, scale };
            operation(rescale, vec![bound], target.clone(), position)
        }
        (DataType::Char(from), DataType::Char(length)) if from <= length => {
            bound.relabel(target.clone())
        }
        (_, DataType::Char(length)) => {
            length_call(bound, cast::CHAR_EXPLICIT, cast::CHAR_ASSIGNMENT, *length)
        }
        (DataType::Char(from) | DataType::VarChar(Some(from)), DataType::VarChar(Some(length)))
            if from <= length =>
        {
            bound.relabel(target.clone())
        }
        (_, DataType::VarChar(Some(length))) => length_call(
            bound,
            cast::VARCHAR_EXPLICIT,
            cast::VARCHAR_ASSIGNMENT,
            *length,
        ),
        (from, to) if let Some(digits) = to.digits_of_seconds() => {
            match from.digits_of_seconds().is_some_and(|it| it <= digits) {
                true => bound.relabel(target.clone()),
                false => {
                    let round = match to {
                        DataType::Interval(_) => cast::ROUND_INTERVAL,
                        _ => cast::ROUND_SECONDS,
                    };
                    let operands = vec![bound, Bound::integer(digits.into())];
                    call(round, operands, target.clone(), position)
                }
            }
        }
        (_, DataType::Array(element)) if **element != without_length(element) => {
            let named = match context {
                CastContext::Explicit => cast_array::ARRAY_EXPLICIT,
                _ => cast_array::ARRAY_ASSIGNMENT,
            };
            let operands = vec![bound, Bound::text(element.described())];
            call(named, operands, target.clone(), position)
        }
        _ => bound.relabel(target.clone()),
    }
}

/// COALESCE over bound operands of one type.
pub(super) fn coalesce(
    arguments: Vec<Bound>,
    data_type: DataType,
    position: Position,
) -> Result<Bound> {
    let arguments: Result<Vec<Bound>> = arguments
        .into_iter()
        .map(|argument| coerce(argument, &data_type, CastContext::Implicit))
        .collect();
    let mut kept = Vec::new();
    for argument in arguments? {
        if argument.is_null_literal() {
            continue;
        }
        let decides = argument.as_constant().is_some();
        kept.push(argument);
        if decides {
            break;
        }
    }
    if kept.len() < 2 {
        let only = kept
            .pop()
            .unwrap_or_else(|| Bound::null(data_type, position));
        return Ok(Bound { position, ..only });
    }
    Ok(Bound::new(Kind::Coalesce(kept), data_type, position))
}
