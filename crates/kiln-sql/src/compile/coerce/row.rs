//! Conversions of rows: field by field.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, RowType};

use super::super::bound::{Bound, Kind};
use super::super::constant::call;
use super::super::functions::ROW_TO_ROW;
use super::super::row_value::{self, pack};
use super::super::{Error, Position, fail};
use super::{CastContext, cast_context, coerce};

/// Whether rows of one type become rows of another one without being asked to: a record may be of
/// any type.
pub(super) fn converts(from: &RowType, to: &RowType) -> bool {
    from == to || from.is_record() || to.is_record()
}

/// Converts a row to another type of rows. `None` where it is no row, or that none.
///
/// # Errors
/// 42846 for other fields.
pub(super) fn convert(
    bound: &Bound,
    target: &DataType,
    context: CastContext,
) -> Result<Option<Bound>> {
    let (Some(from), DataType::Row(to)) = (row_value::type_of(bound), target) else {
        return Ok(None);
    };
    let position = bound.position;
    let is_written = matches!(bound.kind, Kind::Row(_));
    if from == to && !is_written {
        return Ok(Some(bound.clone().relabel(target.clone())));
    }
    if !converts(from, to) {
        return Ok(None);
    }
    let impossible = |detail: String| Err(cannot_cast(from, to, position).with_detail(detail));
    if from.fields().len() != to.fields().len() {
        let few = from.fields().len() < to.fields().len();
        let how = if few { "few" } else { "many" };
        return impossible(format!("Input has too {how} columns."));
    }
    if let Some(parts) = row_value::parts(bound) {
        let mut converted = Vec::with_capacity(parts.len());
        for (number, (part, field)) in parts.into_iter().zip(to.fields()).enumerate() {
            let (name, known) = (part.type_name(), part.is_unknown());
            let needed = cast_context(&part.data_type, &field.data_type);
            if !known && needed.is_none_or(|needed| needed > context) {
                return impossible(format!(
                    "Cannot cast type {name} to {} in column {}.",
                    field.data_type.base_name(),
                    number + 1
                ));
            }
            converted.push(coerce(part, &field.data_type, context)?);
        }
        return Ok(Some(pack(converted, to, position)));
    }
    let described = [from, to].map(|of| Bound::text(of.to_string()));
    let style = super::style_for(&[&bound.data_type, target], position);
    let operands = std::iter::once(bound.clone())
        .chain(described)
        .chain([style]);
    let operands = operands.collect();
    Ok(Some(call(ROW_TO_ROW, operands, target.clone(), position)))
}

#[cold]
fn cannot_cast(from: &Arc<RowType>, to: &Arc<RowType>, position: Position) -> Error {
    let message = format!("cannot cast type {} to {}", from.printed(), to.printed());
    fail(SqlState::CANNOT_COERCE, message, position)
}
