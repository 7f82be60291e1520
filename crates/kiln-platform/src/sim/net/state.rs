//! All sockets of a network, and what is on its way between them.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use super::super::queue::Dice;
use super::connection::End;
use super::door::{AcceptFault, Options, Side};
use super::readiness::{Edges, Poller, Registration};
use crate::net::{Address, Peer};

/// A socket or a poller; never used again in a run. Small enough to be no address of an object, as
/// threads wait for it by it.
pub(super) type Number = u64;

/// The user of all processes of a run.
const USER: u32 = 1_000;
/// Ports that the system chooses: for listeners, and for clients.
const LISTENER_PORTS: u16 = 20_000;
const CLIENT_PORTS: u16 = 40_000;
/// How long a connection waits that has found a full queue, in picoseconds, and how often it tries.
const KNOCK_AGAIN_PS: u64 = 1_000_000_000_000;
const KNOCKS_MAX: u32 = 6;

/// Everything about a network.
pub(super) struct State {
    pub(super) options: Options,
    pub(super) dice: Dice,
    /// Counts runs, so that a handle of an earlier one is known for what it is.
    pub(super) run: u64,
    pub(super) is_in_use: bool,
    /// The latest time of an operation, in picoseconds: cores' clocks differ.
    pub(super) now_ps: u64,
    next_number: Number,
    next_listener_port: u16,
    next_client_port: u16,
    /// What will happen, by its time and the order in which it was sent.
    coming: BTreeMap<(u64, u64), Arrival>,
    sent: u64,
    pub(super) sockets: BTreeMap<Number, Socket>,
    listeners: BTreeMap<Address, Number>,
    pub(super) pollers: BTreeMap<Number, Poller>,
    /// Pollers whose threads are to be woken.
    pub(super) woken: Vec<Number>,
    pub(super) connections: u64,
    pub(super) resets: BTreeMap<(u64, Side), u64>,
    pub(super) accept_faults: VecDeque<AcceptFault>,
}

/// An open socket.
pub(super) struct Socket {
    pub(super) role: Role,
    pub(super) registration: Option<Registration>,
    /// What its poller has not told of yet.
    pub(super) edges: Edges,
}

pub(super) enum Role {
    Listener(Listening),
    End(End),
}

/// A socket that listens.
pub(super) struct Listening {
    address: Address,
    /// The servers' ends of connections that wait.
    pub(super) queue: VecDeque<(Number, Peer)>,
}

/// What arrives at a socket.
pub(super) enum Arrival {
    /// A client asks for a connection.
    Knock {
        client: Number,
        address: Address,
        knocks: u32,
    },
    /// The client learns that it is connected.
    Connected { client: Number },
    /// The client learns that it is not.
    Refused { client: Number },
    Bytes {
        to: Number,
        from: Number,
        bytes: Vec<u8>,
    },
    /// The other end sends no more.
    End { to: Number },
    /// The other end is gone.
    Reset { to: Number },
    /// The other end has read so many bytes.
    Room { to: Number, bytes: usize },
}

/// An error with the system's number.
pub(super) fn error(number: libc::c_int) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl State {
    pub(super) fn new(options: Options) -> State {
        State {
            dice: Dice::new(options.seed),
            options,
            run: 0,
            is_in_use: false,
            now_ps: 0,
            next_number: 1,
            next_listener_port: LISTENER_PORTS,
            next_client_port: CLIENT_PORTS,
            coming: BTreeMap::new(),
            sent: 0,
            sockets: BTreeMap::new(),
            listeners: BTreeMap::new(),
            pollers: BTreeMap::new(),
            woken: Vec::new(),
            connections: 0,
            resets: BTreeMap::new(),
            accept_faults: VecDeque::new(),
        }
    }

    /// Forgets the last run; faults that are still to come stay.
    pub(super) fn begin_run(&mut self) {
        let next = State::new(self.options.clone());
        let before = std::mem::replace(self, next);
        self.run = before.run + 1;
        self.is_in_use = true;
        self.resets = before.resets;
        self.accept_faults = before.accept_faults;
    }

    pub(super) fn new_number(&mut self) -> Number {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Whether something happens that happens once in so many times.
    pub(super) fn chance(&mut self, one_in: u32) -> bool {
        one_in > 0 && self.dice.below(one_in as usize) == 0
    }

    /// How long something takes from end to end, in picoseconds.
    pub(super) fn latency_ps(&mut self) -> u64 {
        let (least, most) = self.options.latency_ns;
        let range = most.saturating_sub(least) as usize;
        (least + self.dice.below(range + 1) as u64) * 1_000
    }

    /// When the next arrival is; none: never.
    pub(super) fn next_ps(&self) -> u64 {
        self.coming
            .first_key_value()
            .map_or(u64::MAX, |((at, _), _)| *at)
    }

    /// Lets `arrival` happen at `at_ps`. Threads that sleep because of one of `concerned` are
    /// woken, to sleep until then.
    pub(super) fn send(&mut self, at_ps: u64, arrival: Arrival, concerned: [Number; 2]) {
        self.sent += 1;
        self.coming.insert((at_ps, self.sent), arrival);
        for number in concerned {
            let socket = self.sockets.get(&number);
            if let Some(registration) = socket.and_then(|socket| socket.registration) {
                self.rouse(registration.poller, at_ps);
            }
        }
    }

    /// Lets happen what was to happen until now, each at its time: what follows from it may have
    /// happened by now as well.
    pub(super) fn advance(&mut self, now_ps: u64) {
        let now_ps = self.now_ps.max(now_ps);
        while let Some(first) = self.coming.first_entry()
            && first.key().0 <= now_ps
        {
            self.now_ps = first.key().0;
            match first.remove() {
                Arrival::Knock {
                    client,
                    address,
                    knocks,
                } => self.knock(client, &address, knocks),
                Arrival::Connected { client } => self.connected(client),
                Arrival::Refused { client } => self.fail(client, libc::ECONNREFUSED),
                Arrival::Bytes { to, from, bytes } => self.bytes_arrive(to, from, &bytes),
                Arrival::End { to } => self.end_arrives(to),
                Arrival::Reset { to } => self.fail(to, libc::ECONNRESET),
                Arrival::Room { to, bytes } => self.room_arrives(to, bytes),
            }
        }
        self.now_ps = now_ps;
    }

    /// A socket that listens at `address`, or where a listener of all addresses would be found.
    fn listener_at(&self, address: &Address) -> Option<Number> {
        let everywhere = match address {
            Address::Tcp(tcp) => {
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, tcp.port()));
                self.listeners.get(&Address::Tcp(any))
            }
            Address::Unix(_) => None,
        };
        self.listeners.get(address).or(everywhere).copied()
    }

    pub(super) fn listen(&mut self, address: &Address) -> io::Result<Number> {
        let mut address = address.clone();
        if let Address::Tcp(tcp) = &mut address
            && tcp.port() == 0
        {
            tcp.set_port(self.next_listener_port);
            self.next_listener_port += 1;
        }
        if self.listener_at(&address).is_some() {
            return Err(error(libc::EADDRINUSE));
        }
        let number = self.new_number();
        self.listeners.insert(address.clone(), number);
        self.add(
            number,
            Role::Listener(Listening {
                address,
                queue: VecDeque::new(),
            }),
        );
        Ok(number)
    }

    fn add(&mut self, number: Number, role: Role) {
        let socket = Socket {
            role,
            registration: None,
            edges: Edges::default(),
        };
        self.sockets.insert(number, socket);
    }

    /// The address of a listener over TCP.
    pub(super) fn port_of(&self, listener: Number) -> Option<SocketAddr> {
        match &self.sockets.get(&listener)?.role {
            Role::Listener(listening) => match listening.address {
                Address::Tcp(address) => Some(address),
                Address::Unix(_) => None,
            },
            Role::End(_) => None,
        }
    }

    fn queue_of(&mut self, listener: Number) -> Option<&mut VecDeque<(Number, Peer)>> {
        match &mut self.sockets.get_mut(&listener)?.role {
            Role::Listener(listening) => Some(&mut listening.queue),
            Role::End(_) => None,
        }
    }

    pub(super) fn accept(&mut self, listener: Number) -> io::Result<(Number, Peer)> {
        let queue = self.queue_of(listener).ok_or_else(|| error(libc::EBADF))?;
        if queue.is_empty() {
            return Err(error(libc::EAGAIN));
        }
        match self.accept_faults.pop_front() {
            Some(AcceptFault::ProcessOutOfDescriptors) => return Err(error(libc::EMFILE)),
            Some(AcceptFault::SystemOutOfDescriptors) => return Err(error(libc::ENFILE)),
            Some(AcceptFault::Aborted) => {
                let gone = self.queue_of(listener).and_then(VecDeque::pop_front);
                if let Some((number, _)) = gone {
                    self.abandon(number);
                }
                return Err(error(libc::ECONNABORTED));
            }
            None => {}
        }
        let waiting = self.queue_of(listener).and_then(VecDeque::pop_front);
        waiting.ok_or_else(|| error(libc::EAGAIN))
    }

    /// Begins a connection; over a Unix socket it is made at once.
    pub(super) fn connect(&mut self, address: &Address) -> io::Result<Number> {
        let over_tcp = matches!(address, Address::Tcp(_));
        if !over_tcp {
            let listener = self
                .listener_at(address)
                .ok_or_else(|| error(libc::ECONNREFUSED))?;
            if self.is_full(listener) {
                return Err(error(libc::EAGAIN));
            }
        }
        let client = self.new_number();
        let connection = self.connections;
        self.connections += 1;
        let end = End::new(connection, Side::Client, self.options.queue_bytes);
        self.add(client, Role::End(end));
        match over_tcp {
            true => self.send_knock(client, address.clone(), 1, 0),
            false => self.knock(client, address, 1),
        }
        Ok(client)
    }

    fn send_knock(&mut self, client: Number, address: Address, knocks: u32, later_ps: u64) {
        let at_ps = self.now_ps + later_ps + self.latency_ps();
        let concerned = [client, self.listener_at(&address).unwrap_or(0)];
        let knock = Arrival::Knock {
            client,
            address,
            knocks,
        };
        self.send(at_ps, knock, concerned);
    }

    fn is_full(&mut self, listener: Number) -> bool {
        let most = self.options.listen_queue;
        self.queue_of(listener)
            .is_some_and(|queue| queue.len() >= most)
    }

    fn knock(&mut self, client: Number, address: &Address, knocks: u32) {
        let Some(connection) = self.end(client).map(|end| end.connection) else {
            return;
        };
        let Some(listener) = self.listener_at(address) else {
            let at_ps = self.now_ps + self.latency_ps();
            return self.send(at_ps, Arrival::Refused { client }, [client, 0]);
        };
        if self.is_full(listener) {
            return match knocks {
                KNOCKS_MAX => self.fail(client, libc::ETIMEDOUT),
                _ => self.send_knock(client, address.clone(), knocks + 1, KNOCK_AGAIN_PS),
            };
        }
        let server = self.new_number();
        let mut end = End::new(connection, Side::Server, self.options.queue_bytes);
        end.other = client;
        end.is_connected = true;
        self.add(server, Role::End(end));
        let peer = match address {
            Address::Unix(_) => Peer::Unix { user: Some(USER) },
            Address::Tcp(_) => {
                let port = self.next_client_port;
                self.next_client_port = port.checked_add(1).unwrap_or(CLIENT_PORTS);
                Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            }
        };
        if let Some(queue) = self.queue_of(listener) {
            queue.push_back((server, peer));
        }
        self.edge(listener, Edges::READABLE);
        if let Some(end) = self.end(client) {
            end.other = server;
        }
        match address {
            Address::Unix(_) => self.connected(client),
            Address::Tcp(_) => {
                let at_ps = self.now_ps + self.latency_ps();
                self.follow(client, at_ps);
                self.send(at_ps, Arrival::Connected { client }, [client, 0]);
            }
        }
    }

    /// Closes a socket or a poller.
    pub(super) fn close(&mut self, number: Number) {
        if self.pollers.remove(&number).is_some() {
            for socket in self.sockets.values_mut() {
                let poller = socket.registration.map(|registration| registration.poller);
                if poller == Some(number) {
                    socket.registration = None;
                }
            }
            return;
        }
        match self.sockets.get_mut(&number).map(|socket| &mut socket.role) {
            Some(Role::Listener(listening)) => {
                let address = listening.address.clone();
                let waiting = std::mem::take(&mut listening.queue);
                self.listeners.remove(&address);
                self.sockets.remove(&number);
                for (server, _) in waiting {
                    self.abandon(server);
                }
            }
            Some(Role::End(_)) => self.close_end(number),
            None => {}
        }
    }

    pub(super) fn end(&mut self, number: Number) -> Option<&mut End> {
        match &mut self.sockets.get_mut(&number)?.role {
            Role::End(end) => Some(end),
            Role::Listener(_) => None,
        }
    }

    /// Breaks all connections.
    pub(super) fn cut_all(&mut self) {
        let numbers: Vec<Number> = self.sockets.keys().copied().collect();
        for number in numbers {
            self.fail(number, libc::ECONNRESET);
        }
    }
}
