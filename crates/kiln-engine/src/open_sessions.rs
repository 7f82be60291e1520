//! The sessions that are open, by number: whose they are, and what ends their statements and
//! themselves.
//!
//! Numbers are those that clients know as process numbers, so that they are positive and have 31
//! bits. A number comes again when all others have been given out, and never while its session is
//! open.

use std::collections::BTreeMap;

use kiln_platform::sync::{Condvar, Mutex, lock};
use kiln_platform::time;
use kiln_procedure::Interrupt;
use kiln_storage::error::{Error, Result, SqlState};

use crate::roles::Roles;
use crate::wait::wait_unless;

/// Numbers of no session that are kept for the warnings of one statement.
const MISSED_MAX: usize = 1_000;

/// What one session asks of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// That its statement ends (57014).
    Cancel,
    /// That it ends (57P01).
    Terminate,
}

/// The session that asks.
#[derive(Clone, Copy, Debug)]
pub struct Signaller<'a> {
    /// The number of its session.
    pub session: u64,
    /// Its role.
    pub role: &'a str,
}

/// A session that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// Its number.
    pub number: u64,
    /// The role that runs its statements.
    pub role: String,
    /// What its client calls itself.
    pub application: String,
    /// When it began, in microseconds since 1970.
    pub began_us: i64,
    /// Since when a transaction block is open, in microseconds since 1970.
    pub block_since_us: Option<i64>,
    /// Whether a statement runs.
    pub is_running: bool,
}

/// The open sessions of a database.
#[derive(Default)]
pub struct OpenSessions {
    table: Mutex<Table>,
    ended: Condvar,
}

#[derive(Default)]
struct Table {
    last: u64,
    sessions: BTreeMap<u64, Open>,
    /// For each session that has asked for them: numbers of no session.
    missed: BTreeMap<u64, Vec<i32>>,
}

struct Open {
    interrupt: Interrupt,
    began_us: i64,
    /// `None` for one that is shown to no other session.
    client: Option<Box<Client>>,
}

struct Client {
    role: Box<str>,
    application: String,
}

impl OpenSessions {
    /// A session opens; returns its number.
    pub(crate) fn begin(&self, interrupt: Interrupt) -> u64 {
        let mut table = lock(&self.table);
        let mut number = table.last;
        loop {
            number = number % u64::from(i32::MAX.unsigned_abs()) + 1;
            if !table.sessions.contains_key(&number) {
                break;
            }
        }
        table.last = number;
        let session = Open {
            interrupt,
            began_us: time::wall_clock_us(),
            client: None,
        };
        table.sessions.insert(number, session);
        number
    }

    /// A session has closed.
    pub(crate) fn end(&self, number: u64) {
        let mut table = lock(&self.table);
        table.sessions.remove(&number);
        table.missed.remove(&number);
        drop(table);
        self.ended.notify_all();
    }

    /// Shows a session to others, as one of this role, or hides it.
    pub(crate) fn show(&self, number: u64, role: Option<&str>) {
        if let Some(session) = lock(&self.table).sessions.get_mut(&number) {
            session.client = role.map(|role| {
                Box::new(Client {
                    role: role.into(),
                    application: String::new(),
                })
            });
        }
    }

    /// The client of a session calls itself so.
    pub(crate) fn rename(&self, number: u64, application: &str) {
        let mut table = lock(&self.table);
        let session = table.sessions.get_mut(&number);
        if let Some(client) = session.and_then(|session| session.client.as_mut()) {
            application.clone_into(&mut client.application);
        }
    }

    /// The sessions that are shown, by number; none of them with its block.
    pub(crate) fn listed(&self) -> Vec<ListedSession> {
        let table = lock(&self.table);
        let listed = table.sessions.iter().filter_map(|(number, session)| {
            let client = session.client.as_ref()?;
            Some(ListedSession {
                number: *number,
                role: client.role.to_string(),
                application: client.application.clone(),
                began_us: session.began_us,
                block_since_us: None,
                is_running: session.interrupt.is_running(),
            })
        });
        listed.collect()
    }

    /// Sends a signal to the session with this number; `false` when there is none, which
    /// [`OpenSessions::take_missed`] tells then.
    ///
    /// # Errors
    /// 42501 for a session of another role, unless a superuser asks; what the signal does to the
    /// session that asks, if it is its own.
    pub fn signal(
        &self,
        signal: Signal,
        number: i32,
        by: Signaller<'_>,
        roles: &Roles,
    ) -> Result<bool> {
        let mut table = lock(&self.table);
        let known = u64::try_from(number).ok();
        let session = known.and_then(|number| table.sessions.get(&number));
        let shown = session.and_then(|session| Some((session, session.client.as_ref()?)));
        let Some((session, client)) = shown else {
            let missed = table.missed.entry(by.session).or_default();
            if missed.len() < MISSED_MAX {
                missed.push(number);
            }
            return Ok(false);
        };
        check_may_signal(signal, by.role, &client.role, roles)?;
        match signal {
            Signal::Cancel => drop(session.interrupt.cancel()),
            Signal::Terminate => session.interrupt.end_all(),
        }
        match known == Some(by.session) {
            true => Err(session.interrupt.error()),
            false => Ok(true),
        }
    }

    /// The numbers of no session that a session has sent signals to since this was asked last.
    pub fn take_missed(&self, session: u64) -> Vec<i32> {
        lock(&self.table)
            .missed
            .remove(&session)
            .unwrap_or_default()
    }

    /// Waits until the session with this number has closed; `false` when it has not in time.
    pub(crate) fn wait_for_end(
        &self,
        number: u64,
        deadline_ns: u64,
        interrupt: &Interrupt,
    ) -> bool {
        let mut table = lock(&self.table);
        while table.sessions.contains_key(&number) {
            match wait_unless(&self.ended, table, Some(deadline_ns), Some(interrupt)) {
                Some(woken) => table = woken,
                None => return false,
            }
        }
        true
    }
}

/// # Errors
/// 42501.
fn check_may_signal(signal: Signal, by: &str, role: &str, roles: &Roles) -> Result<()> {
    let is_superuser = |role| roles.get(role).is_some_and(|role| role.is_superuser);
    if is_superuser(by) || (by == role && !is_superuser(role)) {
        return Ok(());
    }
    let message = match (signal, is_superuser(role)) {
        (Signal::Cancel, true) => "must be a superuser to cancel superuser query",
        (Signal::Terminate, true) => "must be a superuser to terminate superuser process",
        (Signal::Cancel, false) => {
            "must be a member of the role whose query is being canceled or member of pg_signal_backend"
        }
        (Signal::Terminate, false) => {
            "must be a member of the role whose process is being terminated or member of pg_signal_backend"
        }
    };
    Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_again_when_its_session_has_closed() {
        let sessions = OpenSessions::default();
        assert_eq!(sessions.begin(Interrupt::new()), 1);
        lock(&sessions.table).last = u64::from(i32::MAX.unsigned_abs()) - 1;
        assert_eq!(sessions.begin(Interrupt::new()), 0x7fff_ffff);
        assert_eq!(sessions.begin(Interrupt::new()), 2, "1 is taken");
        sessions.end(1);
        lock(&sessions.table).last = u64::from(i32::MAX.unsigned_abs());
        assert_eq!(sessions.begin(Interrupt::new()), 1);
    }

    #[test]
    fn a_session_that_is_hidden_gets_no_signal() {
        let sessions = OpenSessions::default();
        let interrupt = Interrupt::new();
        let number = sessions.begin(interrupt.clone());
        let pid = i32::try_from(number).expect("it has 31 bits");
        let by = Signaller {
            session: 77,
            role: crate::FIRST_ROLE,
        };
        let roles = Roles::default();
        let send = || sessions.signal(Signal::Terminate, pid, by, &roles);
        assert_eq!(send(), Ok(false));
        assert_eq!(sessions.take_missed(77), [pid]);
        sessions.show(number, Some(crate::FIRST_ROLE));
        assert_eq!(send(), Ok(true));
        assert!(interrupt.is_over() && sessions.take_missed(77).is_empty());
    }
}
