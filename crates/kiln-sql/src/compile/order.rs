//! Which values can be told apart, and put in order.

use kiln_procedure::ir::Class;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;

use super::{Position, fail, unsupported};

/// What a clause asks of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Which are the same.
    Equality,
    /// Which comes first.
    Order,
}

/// How values of a type compare in a clause.
///
/// # Errors
/// 42883 for JSON, which has no operators; 0A000 for types whose values do not compare.
pub(super) fn class_in(
    clause: &str,
    needs: Needs,
    data_type: &DataType,
    position: Position,
) -> Result<Class> {
    let base = match data_type {
        DataType::Array(element) => element,
        other => other,
    };
    match *base {
        DataType::JSON => {
            let needed = match needs {
                Needs::Equality => "equality",
                Needs::Order => "ordering",
            };
            let message = format!("could not identify an {needed} operator for type json");
            let error = fail(SqlState::UNDEFINED_FUNCTION, message, position);
            Err(match needs {
                Needs::Equality => error,
                Needs::Order => {
                    error.with_hint("Use an explicit ordering operator or modify the query.")
                }
            })
        }
        _ => Class::of(data_type)
            .ok_or_else(|| unsupported(format!("{clause} of {data_type}"), position)),
    }
}
