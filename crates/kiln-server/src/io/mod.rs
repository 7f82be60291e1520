//! Sockets and threads around clients: accepting them, moving their bytes, and ending in good
//! order.

mod attend;
mod connection;
mod poller;
mod pool;
mod tls;

use kiln_platform::atomic::{AtomicBool, AtomicUsize, Ordering};
use kiln_platform::net::{self, Address, Listener, SocketAddr, Waker};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, JoinHandle};
use kiln_sql::{Database, Error, Result, SqlState};
use kiln_wire::frontend::Limits;

use crate::admin::{Admin, Subject};
use crate::authentication::Authentication;
use crate::client::{Encryption, ServerState};
use crate::monitor::{Logged, Monitor, Refusal};
use poller::Poller;
pub use tls::{Tls, tls_end_point};

/// How a server is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Where it listens.
    pub listen: Vec<Address>,
    /// Clients at a time (10,000); others are told that there are too many (53300).
    pub connections_max: usize,
    /// Threads for what may have to wait for a worker slot or a definition (64). Blocks that hold
    /// slots have further ones.
    pub threads_max: usize,
    /// Seconds that a client has to begin its session (10).
    pub startup_s: u64,
    /// Seconds that clients have to end what they have begun when the server ends (10).
    pub drain_s: u64,
    /// How long messages may be.
    pub limits: Limits,
    /// Which clients must prove who they are.
    pub authentication: Authentication,
    /// With what connections are encrypted, if clients ask for that.
    pub tls: Option<Tls>,
    /// Whether clients from other machines must ask for it.
    pub tls_required: bool,
    /// Where metrics and health are answered over HTTP, to all who ask; nowhere without one.
    pub admin: Option<SocketAddr>,
    /// What is worth a line in the log.
    pub logged: Logged,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            listen: Vec::new(),
            connections_max: 10_000,
            threads_max: 64,
            startup_s: 10,
            drain_s: 10,
            limits: Limits::default(),
            authentication: Authentication::default(),
            tls: None,
            tls_required: false,
            admin: None,
            logged: Logged::default(),
        }
    }
}

/// A server that runs. Dropped, it ends: statements that run are ended in good order.
pub struct Server {
    addresses: Vec<Address>,
    admin: Option<Admin>,
    admin_address: Option<Address>,
    clients: Arc<AtomicUsize>,
    monitor: Arc<Monitor>,
    is_ending: Arc<AtomicBool>,
    waker: Waker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Server {
    /// Listens, and serves the database from now on.
    ///
    /// # Errors
    /// 58030 for an address that cannot be listened on, with its name; 53000 when the system gives
    /// no thread.
    pub fn start(database: Database, options: ServerOptions) -> Result<Server> {
        let mut listeners = Vec::new();
        for address in &options.listen {
            let listener = match address {
                Address::Tcp(address) => Listener::tcp(*address),
                Address::Unix(path) => Listener::unix(path, 0o777),
            };
            listeners.push(listener.map_err(|error| cannot_listen(address, &error))?);
        }
        let addresses = listeners
            .iter()
            .map(|it| it.local_address().clone())
            .collect();
        let admin_listener = match options.admin {
            None => None,
            Some(address) => Some(
                Listener::tcp(address)
                    .map_err(|error| cannot_listen(&Address::Tcp(address), &error))?,
            ),
        };
        let admin_address = admin_listener.as_ref().map(|it| it.local_address().clone());
        let mut shared = ServerState::new(database, options.limits, options.authentication)?;
        let monitor = Arc::new(Monitor::new(options.logged));
        shared.monitor = monitor.clone();
        shared.encryption = options.tls.as_ref().map(|tls| Encryption {
            end_point: tls.end_point().map(Box::from),
            is_required: options.tls_required,
        });
        let shared = Arc::new(shared);
        let clients = Arc::new(AtomicUsize::new(0));
        let is_ending = Arc::new(AtomicBool::new(false));
        let subject = Subject {
            database: shared.database.clone(),
            monitor: monitor.clone(),
            is_ending: is_ending.clone(),
        };
        let has_admin = admin_listener.is_some() || options.logged.database;
        let (counted, ending) = (clients.clone(), is_ending.clone());
        let poller = Poller::new(listeners, shared, options, counted, ending).map_err(system)?;
        let waker = poller.waker();
        let admin = match has_admin {
            true => Some(Admin::start(subject, admin_listener).map_err(no_thread)?),
            false => None,
        };
        let thread = thread::spawn("kiln-server", move || poller.run()).map_err(no_thread)?;
        Ok(Server {
            addresses,
            admin,
            admin_address,
            clients,
            monitor,
            is_ending,
            waker,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Where it listens; with the port that the system chose where 0 was asked for.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where metrics and health are answered.
    pub fn admin_address(&self) -> Option<&Address> {
        self.admin_address.as_ref()
    }

    /// What was counted of its clients and their statements.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// How many clients were accepted, and how many were refused because there were too many.
    pub fn accepted(&self) -> (u64, u64) {
        let refused = self.monitor.refused(Refusal::TooManyClients);
        (self.monitor.accepted.get(), refused)
    }

    /// Ends: takes no further client, says so where it answers for its health, lets those end their
    /// statements and blocks for a time, then ends the rest, and returns.
    pub fn end(&self) {
        // Release pairs with the acquire in the poller.
        self.is_ending.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic there has been reported, and there is nothing to be done.
            let _ = thread.join();
        }
        if let Some(admin) = &self.admin {
            admin.end();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn cannot_listen(address: &Address, failure: &net::Error) -> Error {
    let message = format!("cannot listen on {address}: {failure}");
    let error = Error::new(SqlState::IO_ERROR, message);
    match failure.kind() {
        net::Kind::InUse => error
            .with_hint("Another server runs there, PostgreSQL perhaps. Choose another address."),
        _ => error,
    }
}

fn no_thread(error: std::io::Error) -> Error {
    let message = format!("the system starts no further thread: {error}");
    Error::new(SqlState::INSUFFICIENT_RESOURCES, message)
}

fn system(error: net::Error) -> Error {
    Error::new(SqlState::IO_ERROR, error.to_string())
}
