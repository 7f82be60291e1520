//! The sessions, their clients, and what they do.

use std::collections::HashMap;

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Mutex, lock};

/// The client of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// The role as which the client has begun it.
    pub role: String,
    /// What the client calls itself (`application_name`).
    pub application: String,
    /// Where the client is.
    pub client: String,
}

/// The sessions of a server by their numbers, and how many do what.
#[derive(Debug, Default)]
pub struct Sessions {
    known: Mutex<HashMap<u64, SessionInfo>>,
    starting: AtomicUsize,
    idle: AtomicUsize,
    in_block: AtomicUsize,
    active: AtomicUsize,
}

/// How many clients are in which state, as of some moment in the last quarter of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStates {
    /// They have begun no session yet.
    pub starting: usize,
    /// They have asked for nothing, and have no block open.
    pub idle: usize,
    /// They have asked for nothing, and have a block open.
    pub in_block: usize,
    /// They wait for an answer.
    pub active: usize,
}

impl Sessions {
    /// A session has begun.
    pub fn begin(&self, number: u64, info: SessionInfo) {
        lock(&self.known).insert(number, info);
    }

    /// A session's client calls itself so from now on.
    pub fn rename(&self, number: u64, application: String) {
        if let Some(info) = lock(&self.known).get_mut(&number) {
            info.application = application;
        }
    }

    /// A session has ended.
    pub fn end(&self, number: u64) {
        lock(&self.known).remove(&number);
    }

    /// The client of the session with this number.
    pub fn get(&self, number: u64) -> Option<SessionInfo> {
        lock(&self.known).get(&number).cloned()
    }

    /// Notes how many clients are in which state.
    pub fn set_states(&self, states: SessionStates) {
        // Relaxed: for reports.
        self.starting.store(states.starting, Ordering::Relaxed);
        self.idle.store(states.idle, Ordering::Relaxed);
        self.in_block.store(states.in_block, Ordering::Relaxed);
        self.active.store(states.active, Ordering::Relaxed);
    }

    /// How many clients are in which state.
    pub fn states(&self) -> SessionStates {
        SessionStates {
            starting: self.starting.load(Ordering::Relaxed),
            idle: self.idle.load(Ordering::Relaxed),
            in_block: self.in_block.load(Ordering::Relaxed),
            active: self.active.load(Ordering::Relaxed),
        }
    }
}
