//! Literals of dates and times that pass: `'now'`, `'today'`, `'tomorrow'`, `'yesterday'`.

use kiln_procedure::ir::Arithmetic;
use kiln_storage::error::{Error, Result};
use kiln_storage::types::DataType;

use super::super::bound::{Bound, Builtin, Kind, Operation};
use super::super::constant::call;
use super::super::{Position, functions};
use super::{CastContext, coerce};

/// What a literal of a date or time says that another moment says otherwise: PostgreSQL reads it
/// when it makes a plan. Here it is read when its statement runs.
#[derive(Clone, Copy)]
pub(in super::super) enum RelativeMoment {
    Now,
    /// Midnight, so many days after today's.
    Midnight(i32),
}

impl RelativeMoment {
    /// What the literal `text` of type `target` says, if it is such a one.
    pub fn of(text: &str, target: &DataType) -> Option<RelativeMoment> {
        let is_time = match target {
            DataType::Date | DataType::Timestamp(_) | DataType::TimestampTz(_) => false,
            DataType::Time(_) => true,
            _ => return None,
        };
        match text.trim().to_ascii_lowercase().as_str() {
            "now" => Some(RelativeMoment::Now),
            "today" if !is_time => Some(RelativeMoment::Midnight(0)),
            "tomorrow" if !is_time => Some(RelativeMoment::Midnight(1)),
            "yesterday" if !is_time => Some(RelativeMoment::Midnight(-1)),
            _ => None,
        }
    }

    /// The moment, read with the clock of the transaction.
    ///
    /// # Errors
    /// None that a user can see.
    pub fn bind(self, position: Position) -> Result<Bound> {
        let (name, function) = functions::clock(functions::Now::Transaction);
        let clock = Operation::Call(Builtin {
            name,
            function,
            volatile: false,
        });
        let now = Kind::Operation(clock, Vec::new());
        let now = Bound::new(now, DataType::TIMESTAMPTZ, position);
        match self {
            RelativeMoment::Now => Ok(now),
            RelativeMoment::Midnight(days) => {
                let today = coerce(now, &DataType::Date, CastContext::Explicit)?;
                let days = Bound::integer(days);
                let add = Arithmetic::Add;
                match functions::date_operator(add, &DataType::Date, &DataType::Integer) {
                    Some((_, _, named, result)) => {
                        Ok(call(named, vec![today, days], result, position))
                    }
                    None => Err(Error::internal("days are added to dates")),
                }
            }
        }
    }
}
