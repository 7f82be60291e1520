//! Values that the session knows, and no program: the role, and settings. A statement gets them as
//! parameters behind its own.

use kiln_engine::{LockMode, LockScope};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{Expr, Value as Literal};

use super::bound::Bound;
use super::coerce::{CastContext, coerce};
use super::{Compiler, Position, fail};

/// What a session gives a statement before it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionValue {
    /// The role with whose privileges it runs.
    Role,
    /// The role of the session, which SET ROLE leaves as it is.
    SessionRole,
    /// The session's number.
    Number,
    /// All settings: their names, values, and what they are for, one after the other.
    Settings,
    /// All sessions, seven texts for each.
    Sessions,
    /// Its prepared statements, five texts for each.
    Statements,
    /// Its cursors and portals, five texts for each.
    Portals,
    /// All locks that sessions hold and wait for, eight texts for each.
    Locks,
    /// The channels to which it listens.
    Channels,
    /// How full the fullest mailbox of a session is that listens.
    QueueUsage,
    /// The number of the session, for a statement that locks rows.
    RowLocks,
    /// A function of advisory locks.
    Advisory(AdvisoryCall),
    /// `pg_sleep`.
    Sleep(Seconds),
    /// `pg_terminate_backend` of the session whose number the first expression gives, which waits
    /// for its end as many milliseconds as the second says.
    Terminate([String; 2]),
    /// `current_setting(name, missing_ok)`.
    Setting {
        /// The setting.
        name: Operand,
        /// Whether NULL is the value of a setting that is not known.
        missing_ok: bool,
    },
    /// `set_config(name, value, is_local)`, which gives the new value.
    Set {
        /// The setting.
        name: Operand,
        /// Its new value; NULL for its default.
        value: Operand,
        /// Whether it holds until the transaction ends.
        is_local: bool,
    },
}

/// For how many seconds a session sleeps.
#[derive(Clone, Debug, PartialEq)]
pub enum Seconds {
    /// For so many, or NULL.
    Known(Option<f64>),
    /// For what this expression gives.
    Computed(String),
}

/// An argument of a function of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A text, or NULL.
    Text(Option<String>),
    /// The parameter with this number, from 1.
    Parameter(usize),
}

impl SessionValue {
    /// Its type.
    pub fn data_type(&self) -> DataType {
        match self {
            SessionValue::Number => DataType::Integer,
            SessionValue::RowLocks => DataType::BigInt,
            SessionValue::QueueUsage => DataType::Double,
            SessionValue::Advisory(call) if call.is_told() => DataType::Boolean,
            SessionValue::Terminate(_) => DataType::Boolean,
            SessionValue::Role | SessionValue::SessionRole => DataType::NAME,
            SessionValue::Settings
            | SessionValue::Sessions
            | SessionValue::Statements
            | SessionValue::Portals
            | SessionValue::Channels
            | SessionValue::Locks => DataType::array(DataType::Text),
            _ => DataType::Text,
        }
    }
}

/// The session's values of a statement.
#[derive(Debug, Default)]
pub(crate) struct SessionValues {
    /// Parameters that the statement has by itself.
    pub own: usize,
    /// Those that were given room behind them.
    pub reserved: usize,
    /// Those that were asked for.
    pub asked: Vec<SessionValue>,
}

impl Compiler<'_> {
    /// Binds a call that the session answers; `None` for any other.
    ///
    /// # Errors
    /// 0A000 within a routine, and for an argument that is no text and no parameter; 42883 for a
    /// wrong number of them.
    pub(super) fn bind_session_value(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        position: Position,
    ) -> Result<Option<Bound>> {
        let value = match (name, arguments) {
            ("current_user" | "current_role" | "user", []) => SessionValue::Role,
            ("session_user", []) => SessionValue::SessionRole,
            ("pg_backend_pid", []) => SessionValue::Number,
            ("pg_notification_queue_usage", []) => SessionValue::QueueUsage,
            ("current_setting", [name]) => SessionValue::Setting {
                name: self.operand(name, position)?,
                missing_ok: false,
            },
            ("current_setting", [name, missing_ok]) => SessionValue::Setting {
                name: self.operand(name, position)?,
                missing_ok: flag(missing_ok, position)?,
            },
            ("set_config", [name, value, is_local]) => SessionValue::Set {
                name: self.operand(name, position)?,
                value: self.operand(value, position)?,
                is_local: flag(is_local, position)?,
            },
            _ => {
                if let Some(bound) = self.bind_sleep(name, arguments, position)? {
                    return Ok(Some(bound));
                }
                if let Some(bound) = self.bind_signal(name, arguments, position)? {
                    return Ok(Some(bound));
                }
                if let Some(bound) = self.bind_notify(name, arguments, position)? {
                    return Ok(Some(bound));
                }
                return self.bind_advisory(name, arguments, position);
            }
        };
        self.ask_session(value, name, position).map(Some)
    }

    /// Binds the arguments of a function, which are of these types.
    ///
    /// # Errors
    /// 42883 for others, or another number of them.
    pub(super) fn bind_arguments_of(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        types: &[DataType],
        position: Position,
    ) -> Result<Vec<Bound>> {
        let mut bound = Vec::with_capacity(arguments.len());
        for argument in arguments {
            bound.push(self.bind(argument)?);
        }
        let given: Vec<String> = bound.iter().map(Bound::type_name).collect();
        let no_function = || {
            let message = format!("function {name}({}) does not exist", given.join(", "));
            fail(SqlState::UNDEFINED_FUNCTION, message, position)
        };
        if bound.len() != types.len() {
            return Err(no_function());
        }
        let bound = bound.into_iter().zip(types).map(|(bound, data_type)| {
            let is_literal = bound.is_unknown();
            let bound = coerce(bound, data_type, CastContext::Implicit);
            bound.map_err(|error| if is_literal { error } else { no_function() })
        });
        bound.collect()
    }

    /// [`Compiler::bind_arguments_of`] a function that the session calls before the statement runs.
    ///
    /// # Errors
    /// As there, and 0A000 for arguments that differ from row to row.
    pub(super) fn bind_known_arguments(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        types: &[DataType],
        position: Position,
    ) -> Result<Vec<Bound>> {
        let bound = self.bind_arguments_of(name, arguments, types, position)?;
        match bound.iter().all(|bound| bound.sources().is_empty()) {
            true => Ok(bound),
            false => Err(computed(position)),
        }
    }

    /// What the session says.
    ///
    /// # Errors
    /// 0A000 within a routine.
    pub(super) fn ask_session(
        &mut self,
        value: SessionValue,
        name: &str,
        position: Position,
    ) -> Result<Bound> {
        let Some(values) = &mut self.session_values else {
            let message = format!("{name} within a function is not supported");
            return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
        };
        let data_type = value.data_type();
        let at = values.asked.len();
        values.asked.push(value);
        if at >= values.reserved {
            // The statement is compiled again, with room for it.
            return Ok(Bound::null(data_type, position));
        }
        let number = values.own + at + 1;
        let bound = self.positional.reference(number, position);
        let missing = || Error::internal("a value of the session has no parameter");
        bound.ok_or_else(missing)
    }

    fn operand(&mut self, expr: &Expr, position: Position) -> Result<Operand> {
        match expr {
            Expr::Nested(inner) => self.operand(inner, position),
            Expr::Cast { expr, .. } => self.operand(expr, position),
            Expr::Value(value) => match &value.value {
                Literal::Placeholder(written) => {
                    let bound = self.bind(expr)?;
                    coerce(bound, &DataType::Text, CastContext::Implicit)?;
                    let number = written.trim_start_matches('$').parse();
                    number
                        .map(Operand::Parameter)
                        .map_err(|_| computed(position))
                }
                Literal::Null => Ok(Operand::Text(None)),
                other => match other.clone().into_string() {
                    Some(text) => Ok(Operand::Text(Some(text))),
                    None => Err(computed(position)),
                },
            },
            _ => Err(computed(position)),
        }
    }
}

fn flag(expr: &Expr, position: Position) -> Result<bool> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Boolean(flag) => Ok(*flag),
            other => match other.clone().into_string().as_deref() {
                Some("t" | "true" | "on" | "1") => Ok(true),
                Some("f" | "false" | "off" | "0") => Ok(false),
                _ => Err(computed(position)),
            },
        },
        _ => Err(computed(position)),
    }
}

#[cold]
fn computed(position: Position) -> Error {
    let message = "an argument of a function of the session that is computed is not supported";
    let error = fail(SqlState::FEATURE_NOT_SUPPORTED, message, position);
    error.with_hint("Give a text or a parameter.")
}

/// A call of one of the functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisoryCall {
    /// What it does.
    pub action: AdvisoryAction,
    /// How the lock is held.
    pub mode: LockMode,
    /// What it is held by.
    pub scope: LockScope,
    /// One key of 64 bits, or two of 32, or none where all locks are meant.
    pub keys: Vec<Key>,
}

/// What a function of advisory locks does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisoryAction {
    /// Takes the lock, and waits for it.
    Take,
    /// Takes the lock if it is free.
    TryTake,
    /// Gives the lock back.
    GiveBack,
    /// Gives all locks of the session back.
    GiveBackAll,
}

/// A key of an advisory lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A number, or NULL.
    Known(Option<i64>),
    /// The parameter with this number, from 1.
    Parameter(usize),
    /// What this expression gives.
    Computed(String),
}

impl AdvisoryCall {
    /// Whether it says how it went.
    pub(super) fn is_told(&self) -> bool {
        matches!(
            self.action,
            AdvisoryAction::TryTake | AdvisoryAction::GiveBack
        )
    }
}
