//! For who runs the server: metrics and health over HTTP, on an address of their own, and what the
//! log tells of the database.
//!
//! | path | answers |
//! |---|---|
//! | `/metrics` | all that is counted, in Prometheus' text format |
//! | `/healthz` | 200 while the server serves; 503 and why while it is read-only, broken, or draining |
//!
//! One thread of its own does that, so that neither clients nor workers wait for it, nor it for
//! them. A connection has some seconds and some kilobytes for one request; there are few at a time.

mod http;
mod page;
mod report;
mod watch;

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::net::{self, Events, Listener, Poller, Stream, Token, Waker};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, JoinHandle};
use kiln_platform::time;
use kiln_sql::Database;

use crate::monitor::Monitor;
use http::{REQUEST_BYTES_MAX, Received, Response};
use watch::Watch;

/// Connections at a time; a further one is closed.
const CONNECTIONS_MAX: usize = 32;
/// Nanoseconds that a connection has from its beginning to its end.
const CONNECTION_NS: u64 = 5_000_000_000;
/// Nanoseconds between two looks at the database, and at connections that take too long.
const LOOK_NS: u64 = 250_000_000;
/// Nanoseconds for which no connection is accepted after the system had no room for one.
const PAUSE_NS: u64 = 100_000_000;
/// The listener's token; those of connections are their places.
const LISTENER: Token = Token(CONNECTIONS_MAX);

/// What the answers are about.
pub(crate) struct Subject {
    /// What is served.
    pub database: Database,
    /// What is counted of its clients.
    pub monitor: Arc<Monitor>,
    /// Whether the server ends.
    pub is_ending: Arc<AtomicBool>,
}

impl Subject {
    fn answer(&self, path: &str) -> Response {
        // Acquire pairs with the release in `Server::end`.
        let is_ending = self.is_ending.load(Ordering::Acquire);
        match path {
            "/metrics" => Response {
                status: 200,
                content_type: page::CONTENT_TYPE,
                body: report::page(&self.database, &self.monitor, is_ending),
            },
            "/healthz" => match report::ailment(&self.database, is_ending) {
                None => Response::text(200, "ok"),
                Some(why) => Response::text(503, &why),
            },
            "/" => Response::text(200, "/metrics\n/healthz"),
            _ => Response::text(404, "there are /metrics and /healthz"),
        }
    }
}

/// The thread; it ends when this is dropped.
pub(crate) struct Admin {
    has_ended: Arc<AtomicBool>,
    waker: Waker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Admin {
    /// Answers at the listener, if there is one, and looks after the database.
    ///
    /// # Errors
    /// The system's.
    pub fn start(subject: Subject, listener: Option<Listener>) -> std::io::Result<Admin> {
        let sockets = Poller::new().map_err(std::io::Error::other)?;
        let waker = sockets.waker();
        let has_ended = Arc::new(AtomicBool::new(false));
        let mut service = Service {
            watch: Watch::new(&subject),
            subject,
            sockets,
            listener: None,
            connections: std::array::from_fn(|_| None),
            accepts_ns: None,
            has_ended: has_ended.clone(),
        };
        if let Some(mut listener) = listener {
            let registered = listener.register(&service.sockets, LISTENER);
            registered.map_err(std::io::Error::other)?;
            service.listener = Some(listener);
        }
        let thread = thread::spawn("kiln-admin", move || service.run())?;
        Ok(Admin {
            has_ended,
            waker,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Answers no more.
    pub fn end(&self) {
        // Release pairs with the acquire in the thread.
        self.has_ended.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic there has been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.end();
    }
}

struct Service {
    subject: Subject,
    watch: Watch,
    sockets: Poller,
    listener: Option<Listener>,
    connections: [Option<Connection>; CONNECTIONS_MAX],
    /// When connections are accepted without an event that says so.
    accepts_ns: Option<u64>,
    has_ended: Arc<AtomicBool>,
}

struct Connection {
    stream: Stream,
    since_ns: u64,
    received: Vec<u8>,
    /// What is to be sent, once the request was read, and how much of it was.
    answer: Option<(Vec<u8>, usize)>,
}

impl Service {
    fn run(mut self) {
        let mut events = Events::with_capacity(CONNECTIONS_MAX);
        let mut looked_ns = 0;
        // Acquire pairs with the release in `Admin::end`.
        while !self.has_ended.load(Ordering::Acquire) {
            // What fails now fails again: no client is answered until the system can again.
            if self.sockets.wait(&mut events, Some(LOOK_NS)).is_err() {
                thread::sleep(PAUSE_NS);
            }
            for event in events.iter() {
                match event.token {
                    LISTENER => self.accept(),
                    Token(position) => self.serve(position),
                }
            }
            let now_ns = time::now_ns();
            if self
                .accepts_ns
                .is_some_and(|accepts_ns| now_ns >= accepts_ns)
            {
                self.accepts_ns = None;
                self.accept();
            }
            if now_ns >= looked_ns + LOOK_NS {
                looked_ns = now_ns;
                self.end_overdue(now_ns);
                self.watch.look(&self.subject);
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..CONNECTIONS_MAX {
            let Some(listener) = &self.listener else {
                return;
            };
            match listener.accept() {
                Ok(Some((stream, _))) => self.admit(stream),
                Ok(None) => return,
                Err(error) if error.kind() == net::Kind::Aborted => {}
                Err(_) => {
                    self.accepts_ns = Some(time::now_ns() + PAUSE_NS);
                    return;
                }
            }
        }
        // The listener tells of connections once, and there may be more.
        self.accepts_ns.get_or_insert_with(time::now_ns);
    }

    fn admit(&mut self, mut stream: Stream) {
        let Some(position) = self.connections.iter().position(Option::is_none) else {
            return;
        };
        if stream.register(&self.sockets, Token(position)).is_err() {
            return;
        }
        self.connections[position] = Some(Connection {
            stream,
            since_ns: time::now_ns(),
            received: Vec::new(),
            answer: None,
        });
        self.serve(position);
    }

    fn serve(&mut self, position: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(position)
            && !connection.serve(&self.subject)
        {
            self.connections[position] = None;
        }
    }

    fn end_overdue(&mut self, now_ns: u64) {
        for connection in &mut self.connections {
            let is_overdue = |it: &mut Connection| now_ns >= it.since_ns + CONNECTION_NS;
            connection.take_if(is_overdue);
        }
    }
}

impl Connection {
    /// Receives, answers and sends as far as that goes. Says no when the connection is over.
    fn serve(&mut self, subject: &Subject) -> bool {
        while self.answer.is_none() {
            let mut buffer = [0; 1024];
            match self.stream.read(&mut buffer) {
                Ok(Some(0)) | Err(_) => return false,
                Ok(None) => return true,
                Ok(Some(count)) => self.received.extend_from_slice(&buffer[..count]),
            }
            debug_assert!(self.received.len() <= REQUEST_BYTES_MAX + buffer.len());
            let answer = match http::read(&self.received) {
                Received::Part => continue,
                Received::Request { path, is_head } => subject.answer(path).to_bytes(is_head),
                Received::Refused(response) => response.to_bytes(false),
            };
            self.answer = Some((answer, 0));
        }
        self.send()
    }

    /// Sends what the system takes; then waits for the client to end, so that it gets all of it.
    fn send(&mut self) -> bool {
        let Some((answer, sent)) = &mut self.answer else {
            return true;
        };
        while *sent < answer.len() {
            match self.stream.write(&answer[*sent..]) {
                Ok(Some(count)) if count > 0 => *sent += count,
                Ok(_) => return true,
                Err(_) => return false,
            }
            if *sent == answer.len() && self.stream.shutdown_write().is_err() {
                return false;
            }
        }
        // What comes behind the request is read and forgotten: else the client may be told that the
        // connection broke.
        let mut buffer = [0; 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(Some(0)) | Err(_) => return false,
                Ok(Some(_)) => {}
                Ok(None) => return true,
            }
        }
    }
}
