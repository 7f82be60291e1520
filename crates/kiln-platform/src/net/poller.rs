//! One thread waits for many sockets, and other threads can wake it.

use std::io;
use std::slice;

use super::error::{Error, Operation, Result};
use crate::atomic::{AtomicU32, Ordering};
use crate::backend::net::{RawEvents, RawPoller, RawWaker};
use crate::sync::Arc;

/// What the caller calls a socket; events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub usize);

/// The poller's own token, for its wakers.
pub(crate) const WAKER_TOKEN: usize = usize::MAX;

/// What has happened to a socket since its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The socket.
    pub token: Token,
    /// A read may find bytes, an end or an error; a listener may find a connection.
    pub readable: bool,
    /// A write may find room, or an error.
    pub writable: bool,
    /// The peer sends no more, or the connection is broken: reads come to an end after what has
    /// arrived.
    pub closed: bool,
}

/// Room for the events of one wait.
#[derive(Debug)]
pub struct Events {
    raw: RawEvents,
    list: Vec<Event>,
}

impl Events {
    /// Room for at most `events_max` events a wait, and at least one; a wake-up may take the place
    /// of one.
    pub fn with_capacity(events_max: usize) -> Events {
        let events_max = events_max.max(1);
        Events {
            raw: RawEvents::with_capacity(events_max),
            list: Vec::with_capacity(events_max),
        }
    }

    /// The events of the last wait.
    pub fn iter(&self) -> slice::Iter<'_, Event> {
        self.list.iter()
    }

    /// Whether the last wait brought no event.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many events the last wait brought.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = &'a Event;
    type IntoIter = slice::Iter<'a, Event>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The poller's thread is at work and looks at what was left for it before it sleeps.
const AWAKE: u32 = 0;
/// The poller's thread sleeps, or is about to: only the system can wake it.
const ASLEEP: u32 = 1;
/// A waker was used since the last wait ended: the next wait does not sleep.
const WOKEN: u32 = 2;

/// Waits for the sockets that are registered with it. One thread at a time waits.
#[derive(Debug)]
pub struct Poller {
    pub(super) raw: RawPoller,
    shared: Arc<Shared>,
}

/// What a poller and its wakers share.
#[derive(Debug)]
struct Shared {
    state: AtomicU32,
    raw: RawWaker,
}

/// Ends a poller's wait, from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Shared>);

impl Poller {
    /// A poller without sockets.
    ///
    /// # Errors
    /// The system's, when it is out of descriptors.
    pub fn new() -> Result<Poller> {
        match RawPoller::new() {
            Ok((raw, waker)) => Ok(Poller {
                raw,
                shared: Arc::new(Shared {
                    state: AtomicU32::new(AWAKE),
                    raw: waker,
                }),
            }),
            Err(error) => Err(Error::new(Operation::Register, "a poller", &error)),
        }
    }

    /// What ends this poller's wait.
    pub fn waker(&self) -> Waker {
        Waker(self.shared.clone())
    }

    /// Waits until something happens to a registered socket, a waker is used, or `timeout_ns`
    /// nanoseconds have passed (without: for ever), and replaces `events` with what has happened.
    /// May return early without events; the system may round the time up to a millisecond.
    ///
    /// What a thread did before [`Waker::wake`] is visible to the waiting thread after the wait
    /// that it ended.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&mut self, events: &mut Events, timeout_ns: Option<u64>) -> Result<()> {
        events.list.clear();
        let state = &self.shared.state;
        // Relaxed on success: nothing is handed to a waker. On failure a waker has come between the
        // last wait and this one, and the exchange below acquires what it left.
        let fell_asleep =
            state.compare_exchange(AWAKE, ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
        let timeout_ns = match fell_asleep {
            Ok(_) => timeout_ns,
            Err(_) => Some(0),
        };
        let waited = self.raw.wait(&mut events.raw, &mut events.list, timeout_ns);
        // Acquire: pairs with the Release of each waker whose WOKEN it replaces, so that what those
        // threads left is seen by the caller. A waker that comes later finds AWAKE and stops the
        // next wait from sleeping.
        state.swap(AWAKE, Ordering::Acquire);
        match waited {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(Error::new(Operation::Wait, "a poller", &error)),
        }
    }

    /// Refuses the poller's own token.
    pub(super) fn check(&self, token: Token) -> io::Result<()> {
        match token.0 {
            WAKER_TOKEN => Err(io::Error::other("the largest token is the poller's own")),
            _ => Ok(()),
        }
    }
}

impl Waker {
    /// Ends the poller's wait, or lets the next one end at once. Only the first wake of a sleeping
    /// poller calls the system.
    pub fn wake(&self) {
        // Always a read-modify-write, also where the poller was woken already: it reads the newest
        // state, so either the poller's swap comes later and sees what this thread left, or this
        // one finds AWAKE. Release: pairs with that swap; a later waker's swap continues the
        // release sequence.
        if self.0.state.swap(WOKEN, Ordering::Release) == ASLEEP {
            self.0.raw.wake();
        }
    }
}
