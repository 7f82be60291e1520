//! What a session has set, and what its statements are given of that.

use std::time::Duration;

use kiln_engine::{Configuration, writes_permanent_rows};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{Style, Value};

use super::locks;
use super::prepared::{Plan, Statement, StatementKind};
use super::result::{Notice, StatementResult};
use super::session::Session;
use super::settings::{self, Assignment, DEFERRABLE, ISOLATION, NO_ROLE, READ_ONLY, Scope};
use crate::compile::{Operand, SessionValue};
use crate::parse::IsolationLevel;

impl Session {
    /// Begins with a setting that a client has asked for when it connected: RESET goes back to it.
    ///
    /// # Errors
    /// Those of SET.
    pub fn begin_with(&mut self, name: &str, value: &str) -> Result<()> {
        let name = name.to_lowercase();
        self.check_role(&Assignment {
            name: name.clone(),
            value: Some(value.to_owned()),
            scope: Scope::Session,
        })?;
        self.settings.begin_with(&name, value)?;
        self.apply_settings();
        Ok(())
    }

    /// The value of a setting, as SHOW shows it.
    ///
    /// # Errors
    /// 42704 for an unknown one.
    pub fn setting(&self, name: &str) -> Result<String> {
        let known = match name {
            "session_authorization" => Some(self.session_role().to_owned()),
            "is_superuser" => {
                let catalog = self.session.catalog();
                let role = catalog.roles().get(self.acting_role());
                let is_superuser = role.is_some_and(|role| role.is_superuser);
                Some(if is_superuser { "on" } else { "off" }.to_owned())
            }
            "kiln.protocol" => Some(self.session.engine().protocol().to_string()),
            "transaction_read_only" => {
                Some(if self.is_read_only() { "on" } else { "off" }.to_owned())
            }
            "idle_in_transaction_session_timeout" if !self.settings.is_set(name) => {
                let idle_ms = self.session.engine().options().idle_in_transaction_ms;
                Some(settings::with_unit(idle_ms))
            }
            _ => self.settings.get(name).map(str::to_owned),
        };
        known.ok_or_else(|| settings::unknown(name))
    }

    /// Settings that have changed since this was asked last, with their values.
    pub fn changed_settings(&mut self) -> Vec<(&'static str, String)> {
        self.settings.changed()
    }

    /// How the session's client writes and reads texts.
    pub fn style(&self) -> Style<'static> {
        match self.settings.style() {
            Some(style) => Style::read(&style).without_name(),
            None => Style::default(),
        }
    }

    /// Whether nothing was set or named, so that another client may go on with the session.
    pub(super) fn is_fresh(&self) -> bool {
        self.settings.is_fresh()
            && self.names.is_empty()
            && !self.has_temporary()
            && !self.session.holds_locks()
            && self.mailbox().is_none()
            && self.check_terminated().is_ok()
    }

    /// SET, of a form that is called `of_block` where it is about the open block.
    pub(super) fn set(
        &mut self,
        assignments: Vec<Assignment>,
        of_block: &str,
    ) -> Result<StatementResult> {
        let mut result = StatementResult::of_tag("SET");
        for assignment in assignments {
            if assignment.scope == Scope::Block && !self.session.in_transaction() {
                let message = format!("{of_block} can only be used in transaction blocks");
                let state = SqlState::NO_ACTIVE_SQL_TRANSACTION;
                result = result.with_notice(Notice::of_transaction(state, &message));
                continue;
            }
            self.assign(assignment)?;
        }
        Ok(result)
    }

    /// Gives a setting a value.
    pub(super) fn assign(&mut self, assignment: Assignment) -> Result<()> {
        if assignment.name == "kiln.protocol" {
            return self.change_protocol(assignment.value.as_deref());
        }
        self.check_role(&assignment)?;
        let in_block = self.session.in_transaction();
        if matches!(assignment.name.as_str(), READ_ONLY | ISOLATION | DEFERRABLE) {
            self.check_mode(&assignment)?;
            // Otherwise they are about the transaction that SET is.
            if in_block {
                let scope = Scope::Block;
                self.settings.set(
                    Assignment {
                        scope,
                        ..assignment
                    },
                    true,
                )?;
            }
            return Ok(());
        }
        let changes_session_role = assignment.name == "session_authorization";
        let scope = assignment.scope;
        self.settings.set(assignment, in_block)?;
        if changes_session_role {
            let no_role = Assignment {
                name: "role".to_owned(),
                value: Some(NO_ROLE.to_owned()),
                scope,
            };
            self.settings.set(no_role, in_block)?;
        }
        self.apply_settings();
        Ok(())
    }

    /// Refuses to change what the open block is like once that is too late.
    ///
    /// # Errors
    /// 25001; 22023 for a value that is none.
    fn check_mode(&self, assignment: &Assignment) -> Result<()> {
        let Assignment { name, value, .. } = assignment;
        let level = self.settings.default_isolation().name();
        let value = match value.as_deref() {
            Some(value) => value,
            None if name == ISOLATION => level,
            None => "off",
        };
        settings::check(name, value)?;
        let is_within = !self.savepoints.is_empty();
        let has_looked = self.settings.modes.has_looked;
        let refused = match name.as_str() {
            _ if !self.session.in_transaction() => None,
            READ_ONLY if settings::is_true(value) || !self.is_read_only() => None,
            READ_ONLY if is_within => {
                Some("cannot set transaction read-write mode inside a read-only transaction")
            }
            READ_ONLY => {
                has_looked.then_some("transaction read-write mode must be set before any query")
            }
            ISOLATION
                if IsolationLevel::of(&value.to_lowercase()) == Some(self.settings.isolation()) =>
            {
                None
            }
            ISOLATION if has_looked => {
                Some("SET TRANSACTION ISOLATION LEVEL must be called before any query")
            }
            ISOLATION => is_within.then_some(
                "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction",
            ),
            _ if is_within => {
                Some("SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction")
            }
            _ => has_looked
                .then_some("SET TRANSACTION [NOT] DEFERRABLE must be called before any query"),
        };
        match refused {
            Some(message) => Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message)),
            None => Ok(()),
        }
    }

    /// Refuses roles that the session may not act as.
    ///
    /// # Errors
    /// 22023 where there is no such role, 42501 where the session's role is neither it, nor for SET
    /// ROLE a member of it, nor a superuser.
    fn check_role(&self, assignment: &Assignment) -> Result<()> {
        let name = assignment.name.as_str();
        let (by, wanted) = match (name, assignment.value.as_deref()) {
            ("role", Some(role)) if role != NO_ROLE => (self.session_role(), role),
            ("session_authorization", Some(role)) => (self.role(), role),
            _ => return Ok(()),
        };
        let catalog = self.session.catalog();
        let roles = catalog.roles();
        if roles.get(wanted).is_none() {
            let message = format!("role \"{wanted}\" does not exist");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let is_member = name == "role" && roles.roles_of(by).contains(wanted);
        if by == wanted || is_member || roles.require(by)?.is_superuser {
            return Ok(());
        }
        let what = match name {
            "role" => format!("role \"{wanted}\""),
            _ => "session authorization".to_owned(),
        };
        let message = format!("permission denied to set {what}");
        Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
    }

    /// Does what the settings say that are done below.
    pub(super) fn apply_settings(&mut self) {
        let (settings, session) = (&self.settings, &mut self.session);
        session.set_statement_timeout(settings.duration("statement_timeout"));
        session.set_lock_timeout(settings.duration("lock_timeout"));
        let idle = "idle_in_transaction_session_timeout";
        session.set_idle_timeout(match settings.is_set(idle) {
            true => settings.duration(idle),
            false => match session.engine().options().idle_in_transaction_ms {
                0 => None,
                idle_ms => Some(Duration::from_millis(idle_ms)),
            },
        });
        // Without replicas all but `off` mean the same.
        session.set_synchronous_commit(settings.get("synchronous_commit") != Some("off"));
        session.set_replay(settings.is_on("kiln.replay"));
        session.rename(settings.get("application_name").unwrap_or_default());
        session.set_style(settings.style());
    }

    /// Has all transactions of the database run under another protocol.
    pub(super) fn change_protocol(&mut self, protocol: Option<&str>) -> Result<()> {
        let catalog = self.session.catalog();
        if !catalog.roles().require(self.acting_role())?.is_superuser {
            let message = "permission denied to set parameter \"kiln.protocol\"";
            let error = Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message);
            return Err(error.with_hint("It is the protocol of the whole database."));
        }
        if self.session.in_transaction() {
            let message = "kiln.protocol cannot be set inside a transaction block";
            return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        let engine = self.session.engine();
        let configuration = match protocol {
            Some(name) => name.parse::<Configuration>().map_err(|error| {
                let message = format!("invalid value for parameter \"kiln.protocol\": {error}");
                Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
            })?,
            None => engine.options().protocol,
        };
        engine.set_protocol(configuration)
    }

    /// Whether the open block may only read, or the next statement.
    pub(super) fn is_read_only(&self) -> bool {
        let of_block = self.settings.modes.reads_only;
        of_block.unwrap_or_else(|| self.settings.is_on("default_transaction_read_only"))
    }

    /// # Errors
    /// 25006 for a statement that may write where that is not allowed.
    pub(super) fn check_writable(&self, statement: &Statement) -> Result<()> {
        let writes = matches!(
            statement.kind(),
            StatementKind::Write | StatementKind::Definition
        );
        match writes && !(self.is_read_only() && self.writes_temporary_alone(statement)) {
            true => self.check_may_write(statement.command()),
            false => Ok(()),
        }
    }

    /// Whether a statement writes rows of temporary tables and nothing else.
    fn writes_temporary_alone(&self, statement: &Statement) -> bool {
        let plan = statement.plan(&self.session.catalog());
        matches!(plan, Ok(Plan::Data(data))
            if !data.program.analysis.advances() && !writes_permanent_rows(&data.program))
    }

    /// Refuses a command that writes, where the transaction may only read.
    ///
    /// # Errors
    /// 25006.
    pub(super) fn check_may_write(&self, command: &str) -> Result<()> {
        if !self.is_read_only() {
            return Ok(());
        }
        let message = format!("cannot execute {command} in a read-only transaction");
        Err(Error::new(SqlState::READ_ONLY_SQL_TRANSACTION, message))
    }

    /// A result with the messages that the client wants to see.
    pub(super) fn audible(&self, mut result: StatementResult) -> StatementResult {
        let settings = &self.settings;
        (result.notices).retain(|notice| settings.sends(notice.level));
        result
    }

    /// What the session gives a statement.
    pub(super) fn session_value(
        &mut self,
        value: &SessionValue,
        values: &[Value],
    ) -> Result<Value> {
        let text = |operand: &Operand| match operand {
            Operand::Text(text) => text.clone(),
            Operand::Parameter(number) => match values.get(number - 1) {
                Some(Value::Text(text)) => Some(text.clone()),
                _ => None,
            },
        };
        let listed =
            |texts: Vec<String>| Value::Array(texts.into_iter().map(Value::Text).collect());
        Ok(match value {
            SessionValue::Role => Value::Text(self.acting_role().to_owned()),
            SessionValue::SessionRole => Value::Text(self.session_role().to_owned()),
            SessionValue::Number => {
                Value::Integer(i32::try_from(self.session.number()).unwrap_or(i32::MAX))
            }
            SessionValue::Settings => {
                let settings = self.settings.all().into_iter().flatten();
                Value::Array(settings.map(Value::Text).collect())
            }
            SessionValue::Sessions => listed(self.listed_sessions()?),
            SessionValue::Statements => listed(self.names.listed_statements()),
            SessionValue::Channels => listed(self.listening_channels()),
            SessionValue::QueueUsage => Value::Double(self.session.engine().notification_usage()),
            SessionValue::Portals => listed(self.names.listed_portals()),
            SessionValue::RowLocks => Value::BigInt(self.session.locks_rows()?.cast_signed()),
            SessionValue::Locks => listed(locks::listed(&self.session.engine().locks())),
            SessionValue::Advisory(_) | SessionValue::Sleep(_) | SessionValue::Terminate(_) => {
                return Err(Error::internal("what is computed needs its statement"));
            }
            SessionValue::Setting { name, missing_ok } => match text(name) {
                None => Value::Null,
                Some(name) => match self.setting(&name.to_lowercase()) {
                    Ok(value) => Value::Text(value),
                    Err(_) if *missing_ok => Value::Null,
                    Err(error) => return Err(error),
                },
            },
            SessionValue::Set {
                name,
                value,
                is_local,
            } => {
                let Some(name) = text(name) else {
                    let message = "SET requires parameter name";
                    return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
                };
                let name = name.to_lowercase();
                let scope = if *is_local {
                    Scope::Block
                } else {
                    Scope::Session
                };
                // Outside of a block the statement is one, which ends at once.
                if !*is_local || self.session.in_transaction() {
                    self.assign(Assignment {
                        name: name.clone(),
                        value: text(value),
                        scope,
                    })?;
                    Value::Text(self.setting(&name)?)
                } else {
                    text(value).map_or(Value::Null, Value::Text)
                }
            }
        })
    }
}

impl Session {
    /// Begins with the settings of its role, to which RESET goes back. Those that no session can
    /// have any more are left out, and told.
    pub fn begin_as_role(&mut self) -> Vec<Notice> {
        let catalog = self.session.catalog();
        let settings = catalog.roles().settings_of(self.role());
        let mut notices = Vec::new();
        for (name, value) in settings {
            if let Err(error) = self.begin_with(&name, &value) {
                let message = format!("a setting of the role is left out: {}", error.message());
                notices.push(Notice::warning(&message));
            }
        }
        notices
    }
}
