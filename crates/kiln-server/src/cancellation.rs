//! Cancellations: clients cancel a statement through another connection, which names the first
//! one's number and secret.

use std::collections::HashMap;

use kiln_platform::sync::{Mutex, lock};
use kiln_sql::CancelHandle;

/// What cancels the statements of a server's sessions, by their numbers.
#[derive(Default)]
pub struct Cancellations {
    sessions: Mutex<HashMap<u32, Cancelled>>,
}

/// A session's secret, and what cancels its statements.
type Cancelled = (Box<[u8]>, CancelHandle);

impl Cancellations {
    /// Keeps what cancels the statements of the session with this number, until
    /// [`Cancellations::forget`].
    pub fn register(&self, number: u32, secret: Box<[u8]>, handle: CancelHandle) {
        lock(&self.sessions).insert(number, (secret, handle));
    }

    /// The session has ended.
    pub fn forget(&self, number: u32) {
        lock(&self.sessions).remove(&number);
    }

    /// Cancels the statement that the session runs, if the secret is its own. Returns whether one
    /// was running.
    pub fn cancel(&self, number: u32, secret: &[u8]) -> bool {
        let sessions = lock(&self.sessions);
        let session = sessions.get(&number);
        session.is_some_and(|(known, handle)| is_same(known, secret) && handle.cancel())
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        lock(&self.sessions).len()
    }
}

/// Whether two secrets are the same, in a time that does not depend on where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    let difference = pairs.fold(0, |difference, (one, other)| difference | (one ^ other));
    one.len() == other.len() && difference == 0
}
