//! What sessions know of each other, and how they end each other's statements; and sessions that
//! sleep.

use std::time::Duration;

use kiln_engine::{Signal, Signaller};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::prepared::Statement;
use super::result::Notice;
use super::session::Session;
use crate::compile::Seconds;

impl Session {
    /// Shows the session to others, or hides it while nothing uses it.
    pub(super) fn show(&self, is_shown: bool) {
        self.session.show_as(is_shown.then_some(&*self.role));
    }

    /// Sleeps; NULL, and it does not sleep, when the time is NULL.
    pub(super) fn sleep(
        &mut self,
        seconds: &Seconds,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Value> {
        let seconds = match seconds {
            Seconds::Known(seconds) => *seconds,
            Seconds::Computed(seconds) => {
                match self.computed(seconds, &DataType::Double, statement, values)? {
                    Value::Double(seconds) => Some(seconds),
                    _ => None,
                }
            }
        };
        let Some(seconds) = seconds else {
            return Ok(Value::Null);
        };
        self.session.sleep(seconds)?;
        Ok(Value::Text(String::new()))
    }

    /// `pg_terminate_backend` with a time for which it waits.
    ///
    /// # Errors
    /// 22003 for a time below 0; 42501; 57P01 when the session is this one.
    pub(super) fn terminate(
        &mut self,
        [number, timeout]: &[String; 2],
        statement: &Statement,
        values: &[Value],
    ) -> Result<Value> {
        let number = self.computed(number, &DataType::Integer, statement, values)?;
        let timeout = self.computed(timeout, &DataType::BigInt, statement, values)?;
        let (Value::Integer(number), Value::BigInt(timeout_ms)) = (number, timeout) else {
            return Ok(Value::Null);
        };
        let Ok(longest_ms) = u64::try_from(timeout_ms) else {
            let message = "\"timeout\" must not be negative";
            return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        };
        let by = Signaller {
            session: self.session.number(),
            role: self.acting_role(),
        };
        let (catalog, engine) = (self.session.catalog(), self.session.engine());
        let sessions = engine.open_sessions();
        let is_sent = sessions.signal(Signal::Terminate, number, by, catalog.roles())?;
        if !is_sent || longest_ms == 0 {
            return Ok(Value::Boolean(is_sent));
        }
        let session = u64::try_from(number).unwrap_or_default();
        let longest = Duration::from_millis(longest_ms);
        let has_ended = self.session.wait_for_end(session, longest)?;
        if !has_ended {
            let message = format!(
                "backend with PID {number} did not terminate within {longest_ms} milliseconds"
            );
            self.warn(&message);
        }
        Ok(Value::Boolean(has_ended))
    }

    /// Warns of signals that the statement has sent to no session.
    pub(super) fn warn_of_missed(&mut self) {
        let sessions = self.session.engine().open_sessions();
        for number in sessions.take_missed(self.session.number()) {
            self.warn(&format!("PID {number} is not a PostgreSQL backend process"));
        }
    }

    fn warn(&mut self, message: &str) {
        let warnings = self.warnings.get_or_insert_default();
        warnings.0.push(Notice::warning(message));
    }

    /// The sessions, for `pg_stat_activity`: seven texts for each.
    pub(super) fn listed_sessions(&self) -> Result<Vec<String>> {
        let catalog = self.session.catalog();
        let own = catalog.roles().require(self.acting_role())?;
        let sessions = self.session.engine().sessions();
        let rows = sessions.into_iter().map(|session| {
            let is_known = own.is_superuser || session.role == own.name;
            let state = match (session.is_running, session.block_since_us) {
                (true, _) => "active",
                (false, Some(_)) => "idle in transaction",
                (false, None) => "idle",
            };
            [
                session.number.to_string(),
                session.role,
                session.application,
                state.to_owned(),
                session.began_us.to_string(),
                session
                    .block_since_us
                    .map_or_else(String::new, |since_us| since_us.to_string()),
                is_known.to_string(),
            ]
        });
        Ok(rows.flatten().collect())
    }
}
