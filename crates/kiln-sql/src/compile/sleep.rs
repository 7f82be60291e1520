//! `pg_sleep` and its like: the session sleeps before the statement runs, so that no worker does.

use kiln_storage::error::{Error, Result};
use kiln_storage::types::{CatalogType, DataType, Value};
use sqlparser::ast::Expr;

use super::bound::Bound;
use super::session_value::{Seconds, SessionValue};
use super::{Compiler, Position, unsupported};

/// Seconds from now to a time.
fn until(time: &str) -> String {
    format!(
        "CAST(extract(epoch FROM {time}) - extract(epoch FROM clock_timestamp()) AS double precision)"
    )
}

impl Compiler<'_> {
    /// Binds a call of a function that sleeps; `None` for any other.
    ///
    /// # Errors
    /// 0A000 within a routine, for each row, and where it is not known whether it is called; 42883
    /// for other arguments.
    pub(super) fn bind_sleep(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        position: Position,
    ) -> Result<Option<Bound>> {
        let (data_type, seconds): (_, fn(&Expr) -> String) = match name {
            "pg_sleep" => (DataType::Double, Expr::to_string),
            "pg_sleep_for" => (DataType::INTERVAL, |time| {
                until(&format!("clock_timestamp() + CAST(({time}) AS interval)"))
            }),
            "pg_sleep_until" => (DataType::TIMESTAMPTZ, |time| {
                until(&format!("CAST(({time}) AS timestamptz)"))
            }),
            _ => return Ok(None),
        };
        let bound = self.bind_known_arguments(name, arguments, &[data_type], position)?;
        let has_rows = (self.levels.last()).is_some_and(|level| !level.sources.is_empty());
        if has_rows {
            return Err(unsupported(format!("{name} for each row"), position));
        }
        let condition = self.output.as_ref().and_then(|output| output.refuses_rows);
        if let Some(place) = condition {
            return Err(unsupported(format!("{name} in {place}"), position));
        }
        let ([time], [bound]) = (arguments, bound.as_slice()) else {
            return Err(Error::internal("a sleep has one argument"));
        };
        let seconds = match bound.as_constant() {
            Some(Value::Null) => Seconds::Known(None),
            Some(Value::Double(seconds)) => Seconds::Known(Some(*seconds)),
            _ => Seconds::Computed(seconds(time)),
        };
        let value = SessionValue::Sleep(seconds);
        let slept = self.ask_session(value, name, position)?;
        Ok(Some(slept.relabel(DataType::Catalog(CatalogType::Void))))
    }
}
