//! The thread that serves all connections: it waits for sockets, outcomes of workers and clients
//! that threads give back.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kiln_platform::atomic::{AtomicBool, AtomicUsize, Ordering};
use kiln_platform::net::{self, Event, Events, Listener, Peer, Stream, Token, Waker};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::time;
use kiln_sql::{
    CancelHandle, Completion, Completions, Error, LOCK_WAITERS_MAX, SLEEPERS_MAX, SqlState,
};

use super::ServerOptions;
use super::attend::{ATTEND_NS, AttendState, Attendance};
use super::connection::{Connection, RECEIVED_BYTES, Waits};
use super::pool::{Pool, ThreadLimits, Urgency};
use crate::client::{Client, ServerState};
use crate::monitor::{Refusal, SessionStates};
use crate::session::RunsOn;

/// Nanoseconds between two looks at what takes too long.
const LOOK_NS: u64 = 250_000_000;
/// Nanoseconds for which no client is accepted after the system had no room for one.
const PAUSE_NS: u64 = 100_000_000;
/// Clients that are accepted before others are served again.
const ACCEPTED_MAX: usize = 256;
/// Sockets with news that are looked at in one go.
const EVENTS_MAX: usize = 1_024;
/// Threads beside those that wait for locks which other clients hold, and those that sleep.
const SPARE_THREADS: usize = 16;

/// Connections that threads give back, under their numbers; `None` after a panic.
type Returned = Mutex<Vec<(u64, Option<Connection>)>>;
/// The numbers of connections for whose clients notifications have come.
type Notified = Mutex<Vec<u64>>;

/// A place for a connection.
enum Slot {
    Free,
    Here(Connection),
    /// In a thread; the connection's generation, and what cancels its statement.
    Away(u32, Option<CancelHandle>),
}

pub(super) struct Poller {
    sockets: net::Poller,
    listeners: Vec<Listener>,
    shared: Arc<ServerState>,
    options: ServerOptions,
    clients: Arc<AtomicUsize>,
    is_ending: Arc<AtomicBool>,
    connections: Vec<Slot>,
    /// How many connections are in threads.
    away: usize,
    /// Places of connections that are free.
    free: Vec<usize>,
    generation: u32,
    /// Connections that have yielded, and go on.
    yielded: VecDeque<usize>,
    completions: Arc<Completions>,
    returned: Arc<Returned>,
    notified: Arc<Notified>,
    pool: Pool,
    buffer: Box<[u8]>,
    /// When clients are accepted without an event that says so: others go first, or the system has
    /// no room now.
    accepts_ns: Option<u64>,
}

impl Poller {
    pub fn new(
        mut listeners: Vec<Listener>,
        shared: Arc<ServerState>,
        options: ServerOptions,
        clients: Arc<AtomicUsize>,
        is_ending: Arc<AtomicBool>,
    ) -> net::Result<Poller> {
        let sockets = net::Poller::new()?;
        for (position, listener) in listeners.iter_mut().enumerate() {
            listener.register(&sockets, Token(position))?;
        }
        let waker = sockets.waker();
        let completions = Completions::with_wake(options.connections_max, move || waker.wake());
        Ok(Poller {
            sockets,
            listeners,
            pool: Pool::new(ThreadLimits {
                next: shared.database.engine().options().session_slots,
                normal: (options.threads_max).max(LOCK_WAITERS_MAX + SLEEPERS_MAX + SPARE_THREADS),
            }),
            shared,
            options,
            clients,
            is_ending,
            connections: Vec::new(),
            away: 0,
            free: Vec::new(),
            generation: 0,
            yielded: VecDeque::new(),
            completions,
            returned: Arc::default(),
            notified: Arc::default(),
            buffer: vec![0; RECEIVED_BYTES].into_boxed_slice(),
            accepts_ns: None,
        })
    }

    pub fn waker(&self) -> Waker {
        self.sockets.waker()
    }

    /// Serves until the server ends.
    pub fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut ended = Vec::new();
        let (mut looked_ns, mut ends_ns) = (time::now_ns(), None);
        loop {
            let pause_ns = match (self.yielded.is_empty(), self.accepts_ns) {
                (false, _) => 0,
                (true, Some(accepts_ns)) => accepts_ns.saturating_sub(time::now_ns()).min(LOOK_NS),
                (true, None) => LOOK_NS,
            };
            // What fails now fails again, and is no reason to end: clients are served when the
            // system can again.
            if self.sockets.wait(&mut events, Some(pause_ns)).is_err() {
                kiln_platform::thread::sleep(PAUSE_NS);
            }
            let is_alone = events.len() == 1
                && self.away == 0
                && self.yielded.is_empty()
                && self.completions.outstanding() == 0;
            for event in events.iter() {
                let Token(token) = event.token;
                match token.checked_sub(self.listeners_registered()) {
                    None => self.accept(token),
                    Some(position) => self.take_news(position, event, is_alone),
                }
            }
            self.take_outcomes(&mut ended);
            self.take_returned();
            self.take_notified();
            for _ in 0..self.yielded.len() {
                if let Some(position) = self.yielded.pop_front() {
                    self.serve(position);
                }
            }
            let now_ns = time::now_ns();
            if self
                .accepts_ns
                .is_some_and(|accepts_ns| now_ns >= accepts_ns)
            {
                self.accepts_ns = None;
                (0..self.listeners.len()).for_each(|listener| self.accept(listener));
            }
            if now_ns >= looked_ns + LOOK_NS {
                looked_ns = now_ns;
                self.look(now_ns);
            }
            // Acquire pairs with the release in `Server::end`.
            if self.is_ending.load(Ordering::Acquire) {
                let ends_ns = *ends_ns.get_or_insert_with(|| {
                    self.listeners.clear();
                    now_ns + self.options.drain_s * 1_000_000_000
                });
                if self.drain(now_ns >= ends_ns) {
                    return;
                }
            }
        }
    }

    /// Serves a connection that something has happened to. One whose client asks again at once,
    /// while no other client asks for anything, goes to a thread.
    fn take_news(&mut self, position: usize, event: &Event, is_alone: bool) {
        let Some(Slot::Here(connection)) = self.connections.get_mut(position) else {
            return;
        };
        connection.is_readable |= event.readable || event.closed;
        if connection.waits != Waits::Socket {
            return;
        }
        if is_alone && !connection.is_starting() {
            let now_ns = time::now_ns();
            let active_ns = std::mem::replace(&mut connection.active_ns, now_ns);
            if now_ns - active_ns < ATTEND_NS {
                return self.hand_over(position, true);
            }
        }
        self.serve(position);
    }

    /// Accepts clients, some at a time.
    fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPTED_MAX {
            let Some(from) = self.listeners.get(listener) else {
                return;
            };
            match from.accept() {
                Ok(Some((stream, peer))) => self.admit(stream, peer),
                Ok(None) => return,
                Err(error) if error.kind() == net::Kind::Aborted => {}
                Err(error) => {
                    let (monitor, why) = (&self.shared.monitor, error.to_string());
                    monitor.refuse(Refusal::NoResources, None, None, &why);
                    self.accepts_ns = Some(time::now_ns() + PAUSE_NS);
                    return;
                }
            }
        }
        // The listener tells of clients once, and there may be more.
        self.accepts_ns.get_or_insert_with(time::now_ns);
    }

    fn admit(&mut self, mut stream: Stream, peer: Peer) {
        let clients = self.connections.len() - self.free.len();
        if clients >= self.options.connections_max {
            let error = Error::new(
                SqlState::TOO_MANY_CONNECTIONS,
                format!("sorry, too many clients already: there are {clients}"),
            );
            let (monitor, why) = (&self.shared.monitor, error.message());
            monitor.refuse(Refusal::TooManyClients, Some(&peer), None, why);
            // The client may have gone.
            let _ = Connection::refuse(&stream, &error);
            return;
        }
        let position = self.free.pop().unwrap_or_else(|| {
            self.connections.push(Slot::Free);
            self.connections.len() - 1
        });
        let token = Token(self.listeners_registered() + position);
        if let Err(error) = stream.register(&self.sockets, token) {
            let (monitor, why) = (&self.shared.monitor, error.to_string());
            monitor.refuse(Refusal::NoResources, Some(&peer), None, &why);
            self.free.push(position);
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        let client = Client::new(self.shared.clone(), peer);
        let now_ns = time::now_ns();
        let connection = Connection::new(stream, self.generation, client, now_ns);
        self.connections[position] = Slot::Here(connection);
        self.shared.monitor.accepted.add(1);
        self.clients.fetch_add(1, Ordering::Relaxed);
        self.serve(position);
    }

    /// How many tokens are those of listeners.
    fn listeners_registered(&self) -> usize {
        self.options.listen.len()
    }

    /// Serves a connection as far as it goes, and sees to what it waits for.
    fn serve(&mut self, position: usize) {
        let Some(Slot::Here(connection)) = self.connections.get_mut(position) else {
            return;
        };
        let number = number_of(position, connection.generation);
        let runs_on = RunsOn::Poller(&self.completions, number);
        let (tls, buffer) = (self.options.tls.as_ref(), &mut self.buffer);
        let served = catch_unwind(AssertUnwindSafe(|| connection.serve(runs_on, tls, buffer)));
        if served.is_err() {
            // A panic has been reported; its client went with it, and the others go on.
            self.shared.monitor.panics.add_shared(1);
            connection.waits = Waits::Nothing;
        }
        self.see_to(position);
    }

    /// Sees to what a connection waits for that was served.
    fn see_to(&mut self, position: usize) {
        let Some(Slot::Here(connection)) = self.connections.get_mut(position) else {
            return;
        };
        if let Some(client) = &mut connection.client {
            let number = number_of(position, connection.generation);
            let (notified, waker) = (&self.notified, &self.sockets);
            client.wake_by(|| {
                let (notified, waker) = (notified.clone(), waker.waker());
                Box::new(move || {
                    lock(&notified).push(number);
                    waker.wake();
                })
            });
        }
        match connection.waits {
            Waits::Socket | Waits::Outcome => {}
            Waits::Yield => self.yielded.push_back(position),
            Waits::Thread => self.hand_over(position, false),
            Waits::Nothing => self.remove(position),
        }
    }

    /// Has a thread handle the client's next message, and attend it.
    fn hand_over(&mut self, position: usize, is_alone: bool) {
        let place = &mut self.connections[position];
        let mut connection = match std::mem::replace(place, Slot::Free) {
            Slot::Here(connection) => connection,
            other => {
                *place = other;
                return;
            }
        };
        *place = Slot::Away(connection.generation, connection.cancel_handle());
        self.away += 1;
        let number = number_of(position, connection.generation);
        // One that fails is refused by the next poller, and given up.
        let _ = connection.stream.deregister(&self.sockets);
        let (returned, waker) = (self.returned.clone(), self.sockets.waker());
        let monitor = self.shared.monitor.clone();
        let urgency = match connection.holds_slot() {
            true => Urgency::Next,
            false => Urgency::Normal,
        };
        let attendance = Attendance {
            tls: self.options.tls.clone(),
            is_alone,
            is_ending: self.is_ending.clone(),
        };
        let work = move |attend_state: &mut AttendState, is_wanted: &dyn Fn() -> bool| {
            let attended = catch_unwind(AssertUnwindSafe(|| {
                attendance.attend(&mut connection, attend_state, is_wanted);
                connection
            }));
            // A panic has been reported; its client is gone, and no other client.
            monitor.panics.add_shared(u64::from(attended.is_err()));
            lock(&returned).push((number, attended.ok()));
            waker.wake();
        };
        if self.pool.run(urgency, Box::new(work)).is_err() {
            // The work is dropped, and the connection with it.
            lock(&self.returned).push((number, None));
        }
    }

    /// Gives outcomes to their clients.
    fn take_outcomes(&mut self, ended: &mut Vec<Completion>) {
        self.completions.take(ended);
        for completion in ended.drain(..) {
            let Some(position) = self.position_of(completion.token) else {
                continue;
            };
            if let Slot::Here(connection) = &mut self.connections[position]
                && let Some(client) = &mut connection.client
            {
                let completed =
                    AssertUnwindSafe(|| client.complete(completion.result, completion.observed));
                match catch_unwind(completed) {
                    Ok(()) => self.serve(position),
                    // As in `serve`.
                    Err(_) => {
                        self.shared.monitor.panics.add_shared(1);
                        self.remove(position);
                    }
                }
            }
        }
    }

    /// Takes connections back from threads.
    fn take_returned(&mut self) {
        let returned = std::mem::take(&mut *lock(&self.returned));
        for (number, connection) in returned {
            self.away -= 1;
            let Some(position) = self.position_of(number) else {
                continue;
            };
            let token = Token(self.listeners_registered() + position);
            let connection = connection.and_then(|mut connection| {
                let registered = connection.stream.register(&self.sockets, token);
                registered.is_ok().then_some(connection)
            });
            match connection {
                // The poller tells of what has come meanwhile.
                Some(connection) => {
                    self.connections[position] = Slot::Here(connection);
                    self.see_to(position);
                    self.tell(position);
                }
                None => self.remove(position),
            }
        }
    }

    /// Serves the clients for which notifications have come. One that is in a thread is told when
    /// it is back.
    fn take_notified(&mut self) {
        let notified = std::mem::take(&mut *lock(&self.notified));
        for number in notified {
            if let Some(position) = self.position_of(number) {
                self.tell(position);
            }
        }
    }

    /// Serves a connection whose client asks for nothing, if notifications have come for it.
    fn tell(&mut self, position: usize) {
        if let Some(Slot::Here(connection)) = self.connections.get(position)
            && connection.waits == Waits::Socket
            && (connection.client.as_ref()).is_some_and(|client| client.has_notifications())
        {
            self.serve(position);
        }
    }

    /// The place of the connection with this number, unless another one has it by now.
    fn position_of(&self, number: u64) -> Option<usize> {
        let position = (number & u64::from(u32::MAX)) as usize;
        let generation = match self.connections.get(position)? {
            Slot::Here(connection) => connection.generation,
            Slot::Away(generation, _) => *generation,
            Slot::Free => return None,
        };
        (number_of(position, generation) == number).then_some(position)
    }

    fn remove(&mut self, position: usize) {
        // A stream that is dropped is closed, and not waited for any more.
        let removed = std::mem::replace(&mut self.connections[position], Slot::Free);
        if !matches!(removed, Slot::Free) {
            self.free.push(position);
            self.clients.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Looks at what takes too long.
    fn look(&mut self, now_ns: u64) {
        let limit_ns = self.options.startup_s * 1_000_000_000;
        let mut states = SessionStates::default();
        for position in 0..self.connections.len() {
            let connection = match &mut self.connections[position] {
                Slot::Free => continue,
                Slot::Away(..) => {
                    states.active += 1;
                    continue;
                }
                Slot::Here(connection) => connection,
            };
            if connection.is_starting() && now_ns >= connection.since_ns + limit_ns {
                let error = Error::new(
                    SqlState::PROTOCOL_VIOLATION,
                    format!("no session was begun in {} s", self.options.startup_s),
                );
                let peer = connection.client.as_ref().map(|client| *client.peer());
                let (monitor, why) = (&self.shared.monitor, error.message());
                monitor.refuse(Refusal::Timeout, peer.as_ref(), None, why);
                connection.end(&error);
                self.remove(position);
                continue;
            }
            if let Some(error) = connection.termination() {
                connection.end(&error);
                self.remove(position);
                continue;
            }
            let count = match (&connection.client, connection.waits) {
                (Some(client), _) if !client.has_session() => &mut states.starting,
                (Some(client), Waits::Socket) if client.in_transaction() => &mut states.in_block,
                (Some(_), Waits::Socket) => &mut states.idle,
                _ => &mut states.active,
            };
            *count += 1;
        }
        self.shared.monitor.sessions.set_states(states);
    }

    /// Ends clients that have nothing under way, or all when it has lasted too long. Returns
    /// whether none is left.
    fn drain(&mut self, is_over: bool) -> bool {
        let error = Error::new(
            SqlState::ADMIN_SHUTDOWN,
            "terminating connection due to administrator command",
        );
        let mut is_empty = true;
        for position in 0..self.connections.len() {
            let connection = match &mut self.connections[position] {
                Slot::Here(connection) => connection,
                Slot::Away(_, cancel) if is_over => {
                    if let Some(cancel) = cancel {
                        cancel.end_all();
                    }
                    // The pool waits for its thread.
                    self.remove(position);
                    continue;
                }
                Slot::Away(..) => {
                    is_empty = false;
                    continue;
                }
                Slot::Free => continue,
            };
            let is_idle = match (&connection.client, connection.waits) {
                (Some(client), Waits::Socket) => !client.in_transaction(),
                _ => false,
            };
            if is_idle || is_over {
                // A worker may have its statement.
                if let Some(cancel) = connection.cancel_handle() {
                    cancel.end_all();
                }
                connection.end(&error);
                self.remove(position);
            } else {
                is_empty = false;
            }
        }
        is_empty
    }
}

/// The number under which outcomes and clients come back.
fn number_of(position: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | position as u64
}
