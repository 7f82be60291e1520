//! Settings of a session: what can be set, to which values, and until when.
//!
//! Many settings of PostgreSQL have one value here, which is what most clients ask for at their
//! start. That is taken, and what asks for something else is refused. A setting with a point in its
//! name that is not known belongs to the client, as in PostgreSQL.
//!
//! | module | holds |
//! |---|---|
//! | here | the values of a session, of its block, and of savepoints |
//! | `known` | the settings that there are |
//! | `planner` | those that are taken and have no effect |
//! | `values` | what a value may be, and how it is kept |
//! | `statements` | SET, RESET and SHOW |

mod known;
mod planner;
mod statements;
mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::Style;

use crate::parse::IsolationLevel;
use known::{LEVELS, known};
pub(super) use statements::{assignments, modes_of, show, show_all, shown, shown_columns};
use values::{checked, milliseconds};
pub(super) use values::{is_true, schemas_of, unknown, with_unit};

/// Whether the present transaction may only read.
pub(super) const READ_ONLY: &str = "transaction_read_only";

/// The isolation of the present transaction.
pub(super) const ISOLATION: &str = "transaction_isolation";

/// Whether the present transaction may be deferred.
pub(super) const DEFERRABLE: &str = "transaction_deferrable";

const DEFAULT_ISOLATION: &str = "default_transaction_isolation";

/// The settings that say as which role a session acts.
const ROLES: [&str; 2] = ["role", "session_authorization"];

/// The value of `role` that stands for the session's role.
pub(super) const NO_ROLE: &str = "none";

/// Settings of a client's own that a session may have.
const OWN_MAX: usize = 1_000;

/// Values that are not the defaults, by name.
type Values = BTreeMap<String, String>;

/// The settings of a session.
#[derive(Default)]
pub(super) struct Settings {
    /// What the session began with: RESET goes back to it.
    first: Values,
    now: Values,
    /// What holds after the open block; there once something was set in it.
    after: Option<Box<After>>,
    /// What the open block has said of itself.
    pub modes: Modes,
    /// Settings that have changed and that the client was not told of.
    untold: Vec<&'static str>,
}

/// What a transaction block is like.
#[derive(Clone, Copy, Default)]
pub(super) struct Modes {
    /// Whether it may only read, if it said so.
    pub reads_only: Option<bool>,
    /// Which isolation it has asked for, if it has.
    pub isolation: Option<IsolationLevel>,
    /// Whether a statement has looked at data: what PostgreSQL reads by then is decided.
    pub has_looked: bool,
}

/// What holds after a block.
#[derive(Clone)]
struct After {
    commit: Values,
    rollback: Values,
}

/// Settings at a savepoint.
pub(super) struct Saved {
    now: Values,
    after: Option<Box<After>>,
    modes: Modes,
}

/// How long a value holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Until the session ends.
    Session,
    /// Until the block ends.
    Block,
}

/// What SET asks for.
pub(super) struct Assignment {
    pub name: String,
    /// `None` for the default.
    pub value: Option<String>,
    pub scope: Scope,
}

/// Refuses what no session can have set.
///
/// # Errors
/// Those of [`Settings::set`].
pub(super) fn check(name: &str, value: &str) -> Result<()> {
    checked(name, value).map(drop)
}

/// A setting's name as PostgreSQL shows it.
pub(super) fn shown_name(name: &str) -> &str {
    known(name).map_or(name, |(_, shown, ..)| shown)
}

impl Settings {
    /// A setting's value; `None` for one that is not known.
    pub fn get(&self, name: &str) -> Option<&str> {
        let set = self.now.get(name).map(String::as_str);
        // Another isolation is taken, and not given.
        let set = set.filter(|_| name != DEFAULT_ISOLATION);
        set.or_else(|| known(name).map(|(_, _, default, ..)| *default))
    }

    /// The value that a setting was given.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.now.get(name).map(String::as_str)
    }

    /// Whether a setting was given a value.
    pub fn is_set(&self, name: &str) -> bool {
        self.now.contains_key(name)
    }

    /// Whether a setting is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some("on")
    }

    /// A setting that is a time.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        let milliseconds = self.get(name).and_then(milliseconds)?;
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// How texts are written and read, as [`Style::bytes_of`] has it; `None` for the default.
    pub fn style(&self) -> Option<Vec<u8>> {
        if self.now.is_empty() {
            return None;
        }
        let zone = self.get("timezone").unwrap_or("UTC");
        let digits = self
            .get("extra_float_digits")
            .and_then(|it| it.parse().ok());
        let digits = digits.unwrap_or(1).min(1);
        let is_default = zone == "UTC" && digits == 1;
        (!is_default).then(|| Style::bytes_of(zone, digits))
    }

    /// Whether texts are written in another style than the default.
    pub fn has_style(&self) -> bool {
        self.style().is_some()
    }

    /// Whether messages of this level are sent.
    pub fn sends(&self, level: &str) -> bool {
        let rank = |level: &str| {
            LEVELS
                .iter()
                .position(|known| known.eq_ignore_ascii_case(level))
        };
        let least = self.now.get("client_min_messages");
        least.is_none_or(|least| rank(level) >= rank(least) || level.eq_ignore_ascii_case("info"))
    }

    /// Whether nothing was set.
    pub fn is_fresh(&self) -> bool {
        self.now.is_empty() && self.first.is_empty()
    }

    /// Begins with a value to which RESET goes back.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn begin_with(&mut self, name: &str, value: &str) -> Result<()> {
        if let Some(value) = checked(name, value)? {
            self.first.insert(name.to_owned(), value.clone());
            self.now.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// Gives a setting a value, or `None` for what it began with.
    ///
    /// # Errors
    /// 42704 for an unknown setting, 55P02 for one that cannot be changed, 22023 for a value that
    /// is none, 0A000 for one that is not supported, 53400 for too many.
    pub fn set(&mut self, assignment: Assignment, in_block: bool) -> Result<()> {
        let Assignment { name, value, scope } = assignment;
        let value = match value {
            Some(value) => checked(&name, &value)?,
            None => match known(&name) {
                None if !self.now.contains_key(&name) => return Err(unknown(&name)),
                _ => self.first.get(&name).cloned(),
            },
        };
        match name.as_str() {
            READ_ONLY => {
                let reads_only = value.map(|value| value == "on");
                self.modes.reads_only = reads_only;
                return Ok(());
            }
            ISOLATION => {
                self.modes.isolation = value.as_deref().and_then(IsolationLevel::of);
                return Ok(());
            }
            _ => {}
        }
        if self.now.len() >= OWN_MAX && !self.now.contains_key(&name) {
            let message = format!("a session has at most {OWN_MAX} settings");
            return Err(Error::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, message));
        }
        if in_block && self.after.is_none() {
            self.after = Some(Box::new(After {
                commit: self.now.clone(),
                rollback: self.now.clone(),
            }));
        }
        if let Some(after) = &mut self.after
            && scope == Scope::Session
        {
            put(&mut after.commit, &name, value.as_deref());
        }
        put(&mut self.now, &name, value.as_deref());
        if let Some((name, ..)) = known(&name) {
            self.untold.push(name);
        }
        Ok(())
    }

    /// Goes back to what the session began with, as RESET ALL does: roles stay.
    pub fn reset_all(&mut self, in_block: bool) {
        let names = self.now.keys().filter(|name| !ROLES.contains(&&***name));
        self.reset(names.cloned().collect(), in_block);
    }

    /// Goes back to the role that opened the session.
    pub fn reset_roles(&mut self) {
        self.reset(ROLES.map(str::to_owned).into(), false);
    }

    fn reset(&mut self, names: Vec<String>, in_block: bool) {
        for name in names {
            let assignment = Assignment {
                name,
                value: None,
                scope: Scope::Session,
            };
            // Each is there.
            let _ = self.set(assignment, in_block);
        }
    }

    /// The block is over. Says whether settings have changed.
    pub fn end_block(&mut self, is_committed: bool) -> bool {
        self.modes = Modes::default();
        let Some(after) = self.after.take() else {
            return false;
        };
        let After { commit, rollback } = *after;
        self.replace(if is_committed { commit } else { rollback });
        true
    }

    /// As they are now.
    pub fn save(&self) -> Saved {
        Saved {
            now: self.now.clone(),
            after: self.after.clone(),
            modes: self.modes,
        }
    }

    /// As they were.
    pub fn restore(&mut self, saved: &Saved) {
        self.replace(saved.now.clone());
        self.after = saved.after.clone();
        self.release(saved);
        self.modes.isolation = saved.modes.isolation;
    }

    /// A savepoint is over: whether the block may only read holds within it.
    pub fn release(&mut self, saved: &Saved) {
        self.modes.reads_only = saved.modes.reads_only;
    }

    /// A block begins.
    pub fn begin_block(&mut self) {
        self.modes = Modes {
            reads_only: Some(self.is_on("default_transaction_read_only")),
            ..Modes::default()
        };
    }

    /// Which isolation the open block has asked for.
    pub fn isolation(&self) -> IsolationLevel {
        let of_block = self.modes.isolation;
        of_block.unwrap_or_else(|| self.default_isolation())
    }

    /// Which isolation blocks ask for that do not say so.
    pub fn default_isolation(&self) -> IsolationLevel {
        let of_session = self.given(DEFAULT_ISOLATION).and_then(IsolationLevel::of);
        // What PostgreSQL begins with.
        of_session.unwrap_or(IsolationLevel::ReadCommitted)
    }

    fn replace(&mut self, values: Values) {
        let before = std::mem::replace(&mut self.now, values);
        for (name, ..) in known::all() {
            if before.get(*name) != self.now.get(*name) {
                self.untold.push(name);
            }
        }
    }

    /// Settings that have changed since this was asked last, as PostgreSQL writes their names.
    pub fn changed(&mut self) -> Vec<(&'static str, String)> {
        let mut names = std::mem::take(&mut self.untold);
        names.sort_unstable();
        names.dedup();
        let shown = |name: &str| known(name).map_or("", |(_, shown, ..)| *shown);
        let names = names.into_iter();
        names
            .map(|name| (shown(name), self.get(name).unwrap_or_default().to_owned()))
            .collect()
    }

    /// All settings that there are, each with its value and what it is for.
    pub fn all(&self) -> Vec<[String; 3]> {
        let known = known::all().map(|(name, shown, _, _, description)| {
            let value = self.get(name).unwrap_or_default();
            [*shown, value, *description].map(str::to_owned)
        });
        let own = self.now.iter().filter(|(name, _)| known_is_none(name));
        let own =
            own.map(|(name, value)| [name.clone(), value.clone(), "Of the client.".to_owned()]);
        known.chain(own).collect()
    }
}

fn known_is_none(name: &str) -> bool {
    known(name).is_none()
}

fn put(values: &mut Values, name: &str, value: Option<&str>) {
    match value {
        Some(value) => drop(values.insert(name.to_owned(), value.to_owned())),
        None => drop(values.remove(name)),
    }
}
