//! A client in a thread that may wait.
//!
//! The thread handles the message for which it was asked. Then it *attends* the client: it waits a
//! moment for what comes next, so that the statements of a block, or those of a client that is
//! alone, need no way through the poller. It gives the client back when that is silent, and when
//! other clients wait for a thread.

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::net::{self, Events, Token};
use kiln_platform::sync::Arc;
use kiln_platform::time;

use super::connection::{Connection, RECEIVED_BYTES, Waits};
use super::tls::Tls;
use crate::session::RunsOn;

/// Nanoseconds for which a thread waits for the next message: what systems wait at least, when they
/// are asked to.
pub(super) const ATTEND_NS: u64 = 1_000_000;

/// What a thread keeps for the clients that it attends.
#[derive(Default)]
pub(super) struct AttendState {
    /// What it waits with, and for what has happened; there once it has waited.
    sockets: Option<(net::Poller, Events)>,
    buffer: Vec<u8>,
}

/// How a client is attended.
pub(super) struct Attendance {
    pub tls: Option<Tls>,
    /// Whether it goes on without a block: the client is alone.
    pub is_alone: bool,
    /// Whether the server ends.
    pub is_ending: Arc<AtomicBool>,
}

impl Attendance {
    /// Serves a connection, which is registered with no poller, until it waits for what does not
    /// come at once. `is_wanted` says whether other clients wait for a thread.
    pub fn attend(
        &self,
        connection: &mut Connection,
        attend_state: &mut AttendState,
        is_wanted: impl Fn() -> bool,
    ) {
        attend_state.buffer.resize(RECEIVED_BYTES, 0);
        let mut stays = self.is_alone;
        let mut is_registered = false;
        loop {
            connection.serve(RunsOn::Thread, self.tls.as_ref(), &mut attend_state.buffer);
            stays |= connection.in_transaction();
            let waits = connection.waits;
            let goes_on = match waits {
                Waits::Thread => true,
                Waits::Yield | Waits::Socket => stays && !is_wanted() && !self.is_ending(),
                Waits::Outcome | Waits::Nothing => false,
            };
            if !goes_on {
                break;
            }
            if waits == Waits::Socket {
                is_registered = is_registered || attend_state.register(connection);
                if !is_registered || !attend_state.wait_for(connection) {
                    break;
                }
            }
        }
        if is_registered {
            attend_state.deregister(connection);
        }
    }

    fn is_ending(&self) -> bool {
        // Relaxed: the client is given back within a moment in any case.
        self.is_ending.load(Ordering::Relaxed)
    }
}

impl AttendState {
    fn register(&mut self, connection: &mut Connection) -> bool {
        if self.sockets.is_none() {
            let sockets = net::Poller::new().ok();
            self.sockets = sockets.map(|sockets| (sockets, Events::with_capacity(1)));
        }
        match &self.sockets {
            Some((sockets, _)) => connection.stream.register(sockets, Token(0)).is_ok(),
            None => false,
        }
    }

    /// Waits until something was received, or can be sent again. Returns whether it came in time.
    fn wait_for(&mut self, connection: &mut Connection) -> bool {
        let Some((sockets, events)) = &mut self.sockets else {
            return false;
        };
        let ends_ns = time::now_ns() + ATTEND_NS;
        // The first event tells of the state at the registration, which is no news.
        let sends = connection.has_answers();
        loop {
            let remaining_ns = ends_ns.saturating_sub(time::now_ns());
            if remaining_ns == 0 || sockets.wait(events, Some(remaining_ns)).is_err() {
                return false;
            }
            for event in events.iter() {
                connection.is_readable |= event.readable || event.closed;
                if connection.is_readable || (sends && event.writable) {
                    return true;
                }
            }
        }
    }

    fn deregister(&mut self, connection: &mut Connection) {
        if let Some((sockets, _)) = &self.sockets {
            // One that fails belongs to no poller, and is registered with the next one or given up.
            let _ = connection.stream.deregister(sockets);
        }
    }
}
