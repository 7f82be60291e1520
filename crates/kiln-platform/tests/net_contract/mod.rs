//! What listeners, streams and pollers promise on every network. Each function gets a way to
//! listen, which it may use several times.

#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeMap;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::net::{Address, Error, Event, Events, Kind, Listener, Poller, Stream, Token};
use kiln_platform::random::Random;
use kiln_platform::{thread, time};

/// How a test listens.
pub type Listen<'a> = &'a (dyn Fn() -> Listener + Sync);

/// Longer than anything takes that a test waits for, in nanoseconds; a test that waits for it
/// fails.
pub const LONG_NS: u64 = 60_000_000_000;

const LISTENER: Token = Token(0);

/// A connection with its poller, for a thread that has nothing else to do.
pub struct Connection {
    pub stream: Stream,
    poller: Poller,
    events: Events,
}

impl Connection {
    pub fn to(address: &Address) -> Connection {
        loop {
            match Stream::connect(address) {
                Ok(stream) => return Connection::of(stream),
                Err(error) if error.kind() == Kind::Exhausted => thread::sleep(1_000_000),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits until the connection is made.
    pub fn wait_connected(&mut self) {
        while self.stream.write(b"").expect("it is made").is_none() {
            self.wait();
        }
    }

    pub fn of(mut stream: Stream) -> Connection {
        let poller = Poller::new().expect("the system has descriptors");
        stream.register(&poller, Token(7)).expect("it is open");
        Connection {
            stream,
            poller,
            events: Events::with_capacity(4),
        }
    }

    pub fn wait(&mut self) -> Option<Event> {
        self.wait_for(LONG_NS)
    }

    pub fn wait_for(&mut self, timeout_ns: u64) -> Option<Event> {
        let waited = self.poller.wait(&mut self.events, Some(timeout_ns));
        waited.expect("the poller is open");
        self.events.iter().next().copied()
    }

    /// So that a run in which nothing follows is a deadlock.
    pub fn wait_without_end(&mut self) {
        let waited = self.poller.wait(&mut self.events, None);
        waited.expect("the poller is open");
    }

    /// Reads until the buffer is full or the end has come; how many bytes.
    pub fn read_all(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.stream.read(&mut buffer[filled..])? {
                Some(0) => break,
                Some(bytes) => filled += bytes,
                None => _ = self.wait(),
            }
        }
        Ok(filled)
    }

    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.stream.write(bytes)? {
                Some(taken) => bytes = &bytes[taken..],
                None => _ = self.wait(),
            }
        }
        Ok(())
    }
}

/// The next connection of a listener that is registered with no poller.
pub fn accept(listener: &mut Listener) -> Stream {
    let mut poller = Poller::new().expect("the system has descriptors");
    let mut events = Events::with_capacity(1);
    listener.register(&poller, LISTENER).expect("it is open");
    let stream = loop {
        match listener.accept() {
            Ok(Some((stream, _))) => break stream,
            Ok(None) => poller
                .wait(&mut events, Some(LONG_NS))
                .expect("the poller is open"),
            Err(error) => panic!("{error}"),
        }
    };
    listener.deregister(&poller).expect("it is registered");
    stream
}

/// A connection and its other end.
pub fn pair(listen: Listen<'_>) -> (Connection, Connection) {
    let mut listener = listen();
    let mut client = Connection::to(listener.local_address());
    let server = Connection::of(accept(&mut listener));
    client.wait_connected();
    (client, server)
}

/// Bytes that a seed determines.
pub fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::stream(seed, 0);
    (0..bytes).map(|_| random.next_u64() as u8).collect()
}

/// Sends back what its clients send; one thread, one poller.
pub struct Echo {
    listener: Listener,
    poller: Poller,
    sessions: BTreeMap<usize, Session>,
    next: usize,
    /// Sessions that have ended.
    pub ended: usize,
    /// Those of them that broke.
    pub broken: usize,
}

struct Session {
    stream: Stream,
    /// What is still to be sent back.
    pending: Vec<u8>,
    has_ended: bool,
}

impl Echo {
    pub fn new(mut listener: Listener) -> Echo {
        let poller = Poller::new().expect("the system has descriptors");
        listener.register(&poller, LISTENER).expect("it is open");
        Echo {
            listener,
            poller,
            sessions: BTreeMap::new(),
            next: 1,
            ended: 0,
            broken: 0,
        }
    }

    pub fn address(&self) -> Address {
        self.listener.local_address().clone()
    }

    /// Serves until so many sessions have ended.
    pub fn serve(&mut self, sessions: usize) {
        let mut events = Events::with_capacity(7);
        while self.ended < sessions {
            let waited = self.poller.wait(&mut events, Some(LONG_NS));
            waited.expect("the poller is open");
            for event in &events {
                match event.token {
                    LISTENER => self.accept(),
                    Token(number) => self.move_on(number),
                }
            }
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok(Some((mut stream, _))) => {
                    let number = self.next;
                    self.next += 1;
                    let registered = stream.register(&self.poller, Token(number));
                    registered.expect("it is open");
                    let session = Session {
                        stream,
                        pending: Vec::new(),
                        has_ended: false,
                    };
                    self.sessions.insert(number, session);
                }
                Ok(None) => return,
                Err(error) if error.kind() == Kind::Aborted => {}
                Err(error) if error.kind() == Kind::Exhausted => thread::sleep(1_000_000),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn move_on(&mut self, number: usize) {
        let Some(session) = self.sessions.get_mut(&number) else {
            return;
        };
        match session.move_on() {
            Ok(false) => {}
            outcome => {
                self.sessions.remove(&number);
                self.ended += 1;
                self.broken += usize::from(outcome.is_err());
            }
        }
    }
}

impl Session {
    /// Reads and writes what can be; whether all is done.
    fn move_on(&mut self) -> Result<bool, Error> {
        /// Bytes that the server keeps for a client that does not read.
        const PENDING_MAX: usize = 1_000;
        let mut buffer = [0; 300];
        loop {
            let mut is_full = false;
            while !self.pending.is_empty() && !is_full {
                match self.stream.write(&self.pending)? {
                    Some(taken) => _ = self.pending.drain(..taken),
                    None => is_full = true,
                }
            }
            if self.has_ended {
                if self.pending.is_empty() {
                    self.stream.shutdown_write()?;
                }
                return Ok(self.pending.is_empty());
            }
            if self.pending.len() >= PENDING_MAX {
                return Ok(false);
            }
            match self.stream.read(&mut buffer)? {
                Some(0) => self.has_ended = true,
                Some(bytes) => self.pending.extend_from_slice(&buffer[..bytes]),
                None => return Ok(false),
            }
        }
    }
}

/// Clients beside each other get back what they sent, however small the queues are.
pub fn echo(listen: Listen<'_>, clients: usize, bytes: usize) {
    let mut echo = Echo::new(listen());
    let address = echo.address();
    thread::scope(|scope| {
        for client in 0..clients {
            let address = &address;
            scope.spawn(move || {
                let sent = content(client as u64, bytes);
                let mut connection = Connection::to(address);
                let mut random = Random::stream(1, client as u64);
                let mut received = vec![0; bytes];
                let (mut written, mut read) = (0, 0);
                let mut has_ended = false;
                while read < bytes {
                    let mut blocked = true;
                    if written < bytes {
                        let piece = 1 + random.next_u64() as usize % 5_000;
                        let until = bytes.min(written + piece);
                        let taken = connection.stream.write(&sent[written..until]);
                        if let Some(taken) = taken.expect("nothing breaks") {
                            written += taken;
                            blocked = false;
                        }
                    } else if !has_ended {
                        connection.stream.shutdown_write().expect("it is open");
                        has_ended = true;
                    }
                    let room = &mut received[read..];
                    if let Some(bytes) = connection.stream.read(room).expect("nothing breaks") {
                        assert!(bytes > 0, "an end after {read} bytes");
                        read += bytes;
                        blocked = false;
                    }
                    if blocked {
                        connection.wait();
                    }
                }
                assert!(received == sent, "client {client} got something else back");
                if !has_ended {
                    connection.stream.shutdown_write().expect("it is open");
                }
                assert_eq!(connection.read_all(&mut [0]), Ok(0), "an end follows");
            });
        }
        echo.serve(clients);
    });
    assert_eq!((echo.ended, echo.broken), (clients, 0));
}

/// One direction ends, and the other goes on.
pub fn half_close(listen: Listen<'_>) {
    let (mut client, mut server) = pair(listen);
    client.write_all(b"the last words").expect("it is open");
    client.stream.shutdown_write().expect("it is open");
    let mut words = [0; 100];
    assert_eq!(server.read_all(&mut words), Ok(14));
    assert_eq!(&words[..14], b"the last words");
    assert_eq!(server.stream.read(&mut words), Ok(Some(0)), "the end stays");
    let answer = content(1, 200_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(&answer).expect("the client reads on");
            server.stream.shutdown_write().expect("it is open");
        });
        let mut read = vec![0; answer.len() + 1];
        assert_eq!(client.read_all(&mut read), Ok(answer.len()));
        assert!(read[..answer.len()] == answer);
    });
    let error = client.stream.write(b"more").expect_err("it has ended");
    assert_eq!(error.kind(), Kind::Broken, "{error}");
}

/// An event says that the peer has ended its direction, or is gone.
pub fn closed(listen: Listen<'_>) {
    for gone in [false, true] {
        let (client, mut server) = pair(listen);
        match gone {
            true => drop(client.stream),
            false => client.stream.shutdown_write().expect("it is open"),
        }
        while !server.wait().is_some_and(|event| event.closed) {}
        assert_eq!(server.stream.read(&mut [0]), Ok(Some(0)));
    }
}

/// A stream that is dropped before all was read breaks the connection.
pub fn broken(listen: Listen<'_>) {
    let (mut client, mut server) = pair(listen);
    client.write_all(b"unread").expect("it is open");
    assert_eq!(server.read_all(&mut [0]), Ok(1));
    // Until the rest has arrived.
    thread::sleep(50_000_000);
    drop(server);
    let error = client.read_all(&mut [0]).expect_err("it is broken");
    assert_eq!(error.kind(), Kind::Broken, "{error}");
    let after = client.stream.write(b"more").expect_err("it is broken");
    assert_eq!(after.kind(), Kind::Broken, "{after}");
}

/// Where no listener is, none answers.
pub fn refused(listen: Listen<'_>) {
    let listener = listen();
    let address = listener.local_address().clone();
    drop(listener);
    let read = Stream::connect(&address).and_then(|stream| {
        let mut connection = Connection::of(stream);
        connection.read_all(&mut [0])
    });
    let error = read.expect_err("no listener is there");
    assert_eq!(error.kind(), Kind::Refused, "{error}");
}

/// No second listener gets an address, until the first is gone.
pub fn in_use(listen_at: &dyn Fn(&Address) -> Result<Listener, Error>, address: &Address) {
    let listener = listen_at(address).expect("it is free");
    let address = listener.local_address().clone();
    let error = listen_at(&address).expect_err("it is taken");
    assert_eq!(error.kind(), Kind::InUse, "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    let mut client = Connection::to(&address);
    drop(listener);
    assert!(client.read_all(&mut [0]).is_err(), "it was never accepted");
    drop(listen_at(&address).expect("it is free again"));
}

/// A socket's state when it is registered counts as a change.
pub fn registered_late(listen: Listen<'_>) {
    let mut listener = listen();
    let mut client = Connection::to(listener.local_address());
    client.write_all(b"early").expect("it is open");
    client.stream.shutdown_write().expect("it is open");
    let server = accept(&mut listener);
    // Until it has arrived.
    thread::sleep(100_000_000);
    let mut server = Connection::of(server);
    loop {
        if let Some(event) = server.wait() {
            assert!(event.readable && event.writable, "{event:?}");
            break;
        }
    }
    assert_eq!(server.read_all(&mut [0; 10]), Ok(5));
}

/// An event is not repeated unless something new happens. Each message is one byte, so that it
/// arrives at once.
pub fn edges(listen: Listen<'_>) {
    let (mut client, mut server) = pair(listen);
    client.write_all(b"1").expect("it is open");
    while !server.wait().is_some_and(|event| event.readable) {}
    let quiet = |server: &mut Connection| {
        let (poller, events) = (&mut server.poller, &mut server.events);
        poller.wait(events, Some(20_000_000)).expect("it is open");
        events.iter().copied().collect::<Vec<Event>>()
    };
    assert_eq!(quiet(&mut server), []);
    client.write_all(b"2").expect("it is open");
    while !server.wait().is_some_and(|event| event.readable) {}
    assert_eq!(server.read_all(&mut [0; 2]), Ok(2));
    assert_eq!(quiet(&mut server), []);
    // A stream that has left its poller is silent.
    let poller = &server.poller;
    server.stream.deregister(poller).expect("it is registered");
    client.write_all(b"3").expect("it is open");
    assert_eq!(quiet(&mut server), []);
    server
        .stream
        .register(&server.poller, Token(9))
        .expect("it is open");
    loop {
        if let Some(event) = server.wait() {
            assert_eq!((event.token, event.readable), (Token(9), true));
            break;
        }
    }
}

/// A wait without a time-out ends when a thread has left something and woken the poller; no wake-up
/// is lost.
pub fn wakers(producers: u64, each: u64) {
    let mut poller = Poller::new().expect("the system has descriptors");
    let mut events = Events::with_capacity(1);
    // Relaxed: the wake-up itself must carry the count to the other thread.
    let produced = AtomicU64::new(0);
    thread::scope(|scope| {
        for producer in 0..producers {
            let waker = poller.waker();
            let produced = &produced;
            scope.spawn(move || {
                for number in 0..each {
                    produced.fetch_add(1, Ordering::Relaxed);
                    waker.wake();
                    if number % 4 == 0 {
                        thread::sleep(producer * 1_000);
                    }
                }
            });
        }
        while produced.load(Ordering::Relaxed) < producers * each {
            // Without a time-out: a lost wake-up is a deadlock.
            poller.wait(&mut events, None).expect("it is open");
            assert!(events.is_empty());
        }
    });
    // Woken before it waits.
    poller.waker().wake();
    poller.waker().wake();
    poller.wait(&mut events, None).expect("it is open");
}

/// Without events a wait takes its time, and none when it has none.
pub fn time_outs() {
    let mut poller = Poller::new().expect("the system has descriptors");
    let mut events = Events::with_capacity(1);
    for timeout_ns in [0, 1, 3_000_000] {
        let begin = time::now_ns();
        let mut left = timeout_ns;
        loop {
            poller.wait(&mut events, Some(left)).expect("it is open");
            assert!(events.is_empty());
            let passed = time::now_ns() - begin;
            if passed >= timeout_ns {
                break;
            }
            left = timeout_ns - passed;
        }
    }
}

/// Many connections in one poller, both ends, with room for few events: each gets its own bytes.
pub fn many(listen: Listen<'_>, connections: usize) {
    let mut listener = listen();
    let mut poller = Poller::new().expect("the system has descriptors");
    let mut events = Events::with_capacity(16);
    listener.register(&poller, LISTENER).expect("it is open");
    let mut clients = Vec::new();
    let mut servers: Vec<Stream> = Vec::new();
    let mut is_done = vec![false; connections];
    let mut done = 0;
    while done < connections {
        // A few at a time, so that no queue of a listener overflows.
        while clients.len() < connections && clients.len() < servers.len() + 64 {
            let mut stream =
                Stream::connect(listener.local_address()).expect("the system has descriptors");
            stream
                .register(&poller, Token(1 + clients.len()))
                .expect("it is open");
            clients.push((stream, false, Vec::new()));
        }
        poller.wait(&mut events, Some(LONG_NS)).expect("it is open");
        assert!(events.len() <= 16);
        for event in &events {
            match event.token {
                LISTENER => {
                    while let Some((mut stream, _)) = listener.accept().expect("it is open") {
                        let token = Token(1 + connections + servers.len());
                        stream.register(&poller, token).expect("it is open");
                        servers.push(stream);
                    }
                }
                Token(number) if number > connections => {
                    // Bytes are few enough for one read and one write.
                    let stream = &servers[number - connections - 1];
                    let mut bytes = [0; 8];
                    while let Some(read) = stream.read(&mut bytes).expect("nothing breaks") {
                        if read == 0 {
                            break;
                        }
                        let taken = stream.write(&bytes[..read]).expect("nothing breaks");
                        assert_eq!(taken, Some(read));
                    }
                }
                Token(number) => {
                    let (stream, has_written, received) = &mut clients[number - 1];
                    let sent = (number as u64).to_le_bytes();
                    if !*has_written && let Some(taken) = stream.write(&sent).expect("it is open") {
                        assert_eq!(taken, 8);
                        *has_written = true;
                    }
                    let mut bytes = [0; 8];
                    while let Some(read) = stream.read(&mut bytes).expect("nothing breaks") {
                        received.extend_from_slice(&bytes[..read]);
                    }
                    if received.len() == 8 && !is_done[number - 1] {
                        assert_eq!(received[..], sent);
                        is_done[number - 1] = true;
                        done += 1;
                    }
                }
            }
        }
    }
}
