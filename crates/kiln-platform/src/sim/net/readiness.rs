//! Pollers, and the edges that they tell of, as epoll does with edges: a change queues the socket
//! with its poller; the poller tells of what is still true when its thread looks.

use std::collections::VecDeque;
use std::io;

use super::state::{Number, Role, State, error};
use crate::net::{Event, Token};

/// Changes of a socket, or what is true of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Edges {
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) closed: bool,
}

impl Edges {
    pub(super) const READABLE: Edges = Edges {
        readable: true,
        writable: false,
        closed: false,
    };
    pub(super) const WRITABLE: Edges = Edges {
        readable: false,
        writable: true,
        closed: false,
    };
    pub(super) const ALL: Edges = Edges {
        readable: true,
        writable: true,
        closed: true,
    };

    fn and(self, other: Edges) -> Edges {
        Edges {
            readable: self.readable && other.readable,
            writable: self.writable && other.writable,
            closed: self.closed && other.closed,
        }
    }

    fn or(self, other: Edges) -> Edges {
        Edges {
            readable: self.readable || other.readable,
            writable: self.writable || other.writable,
            closed: self.closed || other.closed,
        }
    }

    fn with_token(self, token: usize) -> Event {
        Event {
            token: Token(token),
            readable: self.readable,
            writable: self.writable,
            closed: self.closed,
        }
    }
}

/// A socket's place in a poller.
#[derive(Clone, Copy)]
pub(super) struct Registration {
    pub(super) poller: Number,
    token: usize,
}

/// A poller.
#[derive(Default)]
pub(super) struct Poller {
    /// Sockets with edges, in the order of their first; some may be closed, or elsewhere now.
    ready: VecDeque<Number>,
    is_woken: bool,
    /// When its thread looks again by itself; none while no thread sleeps in it.
    sleeps_until_ps: Option<u64>,
}

/// What a thread in a poller does next.
pub(super) enum Waited {
    /// It returns with these events.
    Over(Vec<Event>),
    /// It sleeps, and looks again then at the latest.
    Sleep { until_ps: u64 },
}

impl State {
    pub(super) fn new_poller(&mut self) -> Number {
        let number = self.new_number();
        self.pollers.insert(number, Poller::default());
        number
    }

    pub(super) fn register(
        &mut self,
        number: Number,
        poller: Number,
        token: usize,
    ) -> io::Result<()> {
        if !self.pollers.contains_key(&poller) {
            return Err(error(libc::EBADF));
        }
        let socket = self.sockets.get_mut(&number);
        let socket = socket.ok_or_else(|| error(libc::EBADF))?;
        if socket.registration.is_some() {
            return Err(error(libc::EEXIST));
        }
        socket.registration = Some(Registration { poller, token });
        let levels = self.levels(number);
        self.edge(number, levels);
        Ok(())
    }

    pub(super) fn deregister(&mut self, number: Number) -> io::Result<()> {
        let socket = self.sockets.get_mut(&number);
        let socket = socket.ok_or_else(|| error(libc::EBADF))?;
        socket.edges = Edges::default();
        match socket.registration.take() {
            Some(registration) => {
                if let Some(poller) = self.pollers.get_mut(&registration.poller) {
                    poller.ready.retain(|ready| *ready != number);
                }
                Ok(())
            }
            None => Err(error(libc::ENOENT)),
        }
    }

    /// What is true of a socket now.
    fn levels(&self, number: Number) -> Edges {
        match self.sockets.get(&number).map(|socket| &socket.role) {
            Some(Role::End(end)) => end.levels(),
            Some(Role::Listener(listening)) => Edges {
                readable: !listening.queue.is_empty(),
                ..Edges::default()
            },
            None => Edges::default(),
        }
    }

    /// Something happens to a socket.
    pub(super) fn edge(&mut self, number: Number, edges: Edges) {
        if edges == Edges::default() {
            return;
        }
        let Some(socket) = self.sockets.get_mut(&number) else {
            return;
        };
        let Some(registration) = socket.registration else {
            return;
        };
        let was_queued = socket.edges != Edges::default();
        socket.edges = socket.edges.or(edges);
        if !was_queued && let Some(poller) = self.pollers.get_mut(&registration.poller) {
            poller.ready.push_back(number);
        }
        self.rouse(registration.poller, 0);
    }

    /// Lets the thread in the poller look again, if it sleeps beyond `at_ps`.
    pub(super) fn rouse(&mut self, number: Number, at_ps: u64) {
        if let Some(poller) = self.pollers.get_mut(&number)
            && poller.sleeps_until_ps.is_some_and(|until| until > at_ps)
        {
            poller.sleeps_until_ps = None;
            self.woken.push(number);
        }
    }

    /// A waker is used.
    pub(super) fn wake(&mut self, number: Number) {
        if let Some(poller) = self.pollers.get_mut(&number) {
            poller.is_woken = true;
        }
        self.rouse(number, 0);
    }

    /// A thread begins to wait. Sometimes a signal interrupts it at once, or an event comes without
    /// a reason.
    pub(super) fn begin_wait(&mut self, number: Number) {
        if !self.chance(self.options.spurious_one_in) {
            return;
        }
        let of_poller = |(socket, of): (&Number, &super::state::Socket)| {
            let is_here = of.registration.is_some_and(|of| of.poller == number);
            is_here.then_some(*socket)
        };
        let registered: Vec<Number> = self.sockets.iter().filter_map(of_poller).collect();
        let drawn = self.dice.below(registered.len() + 1);
        match registered.get(drawn) {
            Some(socket) => self.edge(*socket, Edges::ALL),
            None => self.wake(number),
        }
    }

    /// A thread waits: what it has found, or how long it may sleep.
    pub(super) fn wait(&mut self, number: Number, events_max: usize, deadline_ps: u64) -> Waited {
        let mut events = Vec::new();
        while events.len() < events_max
            && let Some(socket) = self
                .pollers
                .get_mut(&number)
                .and_then(|p| p.ready.pop_front())
        {
            events.extend(self.take_event(socket));
        }
        let until_ps = deadline_ps.min(self.next_ps());
        let is_late = deadline_ps <= self.now_ps;
        let Some(poller) = self.pollers.get_mut(&number) else {
            return Waited::Over(events);
        };
        let was_woken = std::mem::take(&mut poller.is_woken);
        poller.sleeps_until_ps = None;
        if was_woken || is_late || !events.is_empty() {
            return Waited::Over(events);
        }
        poller.sleeps_until_ps = Some(until_ps);
        Waited::Sleep { until_ps }
    }

    /// The event of a socket that was queued, unless what it was queued for is over.
    fn take_event(&mut self, number: Number) -> Option<Event> {
        let levels = self.levels(number);
        let (tells_all, tells_outdated) = (
            self.dice.below(2) == 0,
            self.chance(self.options.spurious_one_in),
        );
        let socket = self.sockets.get_mut(&number)?;
        let edges = std::mem::take(&mut socket.edges);
        let token = socket.registration?.token;
        let told = edges.and(levels);
        if told == Edges::default() {
            return tells_outdated.then(|| edges.with_token(token));
        }
        // Systems tell of all that is true, or of the change alone.
        Some(if tells_all { levels } else { told }.with_token(token))
    }
}
