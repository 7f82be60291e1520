//! Cancellations: clients cancel a statement through another connection, which names the first one's number and secret.

use std::collections::HashMap;

use kiln_platform::sync::{Mutex, lock};
use kiln_sql::CancelHandle;

/// What cancels the statements of a server's sessions.
#[derive(Default)]
pub struct Cancellations {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last number that was given out.
    last: u32,
    sessions: HashMap<u32, (Box<[u8]>, CancelHandle)>,
}

impl Cancellations {
    /// Keeps what cancels a session's statements, until [`Cancellations::forget`]. Returns the session's number.
    pub fn register(&self, secret: Box<[u8]>, handle: CancelHandle) -> u32 {
        let mut state = lock(&self.state);
        loop {
            // Positive, for clients that take it for a signed number of a process.
            state.last = (state.last + 1) % (1 << 31);
            let number = state.last;
            if number != 0 && !state.sessions.contains_key(&number) {
                state.sessions.insert(number, (secret, handle));
                return number;
            }
        }
    }

    /// The session has ended.
    pub fn forget(&self, number: u32) {
        lock(&self.state).sessions.remove(&number);
    }

    /// Cancels the statement that the session runs, if the secret is its own. Returns whether one was running.
    pub fn cancel(&self, number: u32, secret: &[u8]) -> bool {
        let state = lock(&self.state);
        let session = state.sessions.get(&number);
        session.is_some_and(|(known, handle)| is_same(known, secret) && handle.cancel())
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        lock(&self.state).sessions.len()
    }
}

/// Whether two secrets are the same, in a time that does not depend on where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    let difference = pairs.fold(0, |difference, (one, other)| difference | (one ^ other));
    one.len() == other.len() && difference == 0
}
