//! The simulated network as a test holds it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::queue::Dice;
use super::super::runtime;
use super::super::space;
use super::state::State;

/// How a simulated network is made. One in 0 means never.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Determines what the network draws: how long things take, where bytes are split, what fails.
    pub seed: u64,
    /// Bytes of one direction of a connection that were written and not read yet. At least 1.
    pub queue_bytes: usize,
    /// The shortest and the longest time from one end to the other, in nanoseconds.
    pub latency_ns: (u64, u64),
    /// The most bytes that travel together; how many is drawn.
    pub segment_bytes_max: usize,
    /// One segment in so many is lost and sent again: it and those behind it arrive later.
    pub lost_one_in: u32,
    /// How much later, in nanoseconds.
    pub retransmission_ns: u64,
    /// One read or write in so many moves fewer bytes than it might.
    pub short_one_in: u32,
    /// One wait in so many ends at once, without events or with one for which there is no reason;
    /// so do events that have become outdated before they were told of.
    pub spurious_one_in: u32,
    /// One segment in so many breaks its connection.
    pub reset_one_in: u32,
    /// Connections that may wait at a listener. A connection that finds the queue full tries again
    /// after a second.
    pub listen_queue: usize,
}

impl Options {
    /// A network without faults: 64 KiB a direction, 10 to 200 µs, segments of at most 1,448 bytes.
    pub fn new(seed: u64) -> Options {
        Options {
            seed,
            queue_bytes: 64 << 10,
            latency_ns: (10_000, 200_000),
            segment_bytes_max: 1_448,
            lost_one_in: 0,
            retransmission_ns: 200_000_000,
            short_one_in: 0,
            spurious_one_in: 0,
            reset_one_in: 0,
            listen_queue: crate::net::BACKLOG as usize,
        }
    }

    /// A network that does all that may happen to a connection that does not break: small queues,
    /// short reads and writes, spurious events, losses. The seed determines how small and how
    /// often.
    pub fn rough(seed: u64) -> Options {
        let mut dice = Dice::new(seed);
        let queue_bytes = 1 << (4 + dice.below(12));
        Options {
            queue_bytes,
            latency_ns: (0, 1 << (10 + dice.below(14))),
            segment_bytes_max: 1 + dice.below(queue_bytes),
            lost_one_in: 20 + dice.below(200) as u32,
            short_one_in: 1 + dice.below(10) as u32,
            spurious_one_in: 2 + dice.below(10) as u32,
            listen_queue: 1 + dice.below(16),
            ..Options::new(seed)
        }
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The one that connected.
    Client,
    /// The one that was accepted.
    Server,
}

/// Why accepting a connection fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptFault {
    /// The process has no descriptor left (EMFILE); the connection waits on.
    ProcessOutOfDescriptors,
    /// The system has none left (ENFILE); the connection waits on.
    SystemOutOfDescriptors,
    /// The connection was given up while it waited (ECONNABORTED); it is gone.
    Aborted,
}

/// A simulated network, given to a run with [`Config::network`]. All sockets of the run are
/// connected by it; none outlives the run.
///
/// A clone is the same network.
///
/// ```
/// use kiln_platform::net::{Listener, SocketAddr, Stream};
/// use kiln_platform::sim::{self, net::{Network, Options}};
/// use kiln_platform::thread;
///
/// let mut config = sim::Config::new(sim::Schedule::Random, 1);
/// config.network = Some(Network::new(Options::new(1)));
/// let run = sim::run(&config, || {
///     let listener = Listener::tcp(SocketAddr::from(([127, 0, 0, 1], 5432)))?;
///     let client = Stream::connect(listener.local_address())?;
///     assert_eq!(client.write(b"too early")?, None);
///     thread::sleep(1_000_000);
///     let (server, _) = listener.accept()?.expect("it has arrived");
///     assert_eq!(client.write(b"hello")?, Some(5));
///     thread::sleep(1_000_000);
///     server.read(&mut [0; 10])
/// });
/// assert_eq!(run.expect("nothing panics").value, Ok(Some(5)));
/// ```
///
/// [`Config::network`]: super::super::control::Config::network
#[derive(Clone)]
pub struct Network(Arc<Mutex<State>>);

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({} connections)", self.connections())
    }
}

impl Network {
    /// A network without sockets.
    pub fn new(options: Options) -> Network {
        space::outside(|| Network(Arc::new(Mutex::new(State::new(options)))))
    }

    /// Calls `body` with the state, outside of a run's memory; `body` does not switch threads.
    pub(super) fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        space::outside(|| body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Wakes the threads in pollers that have something to do.
    pub(super) fn wake_sleepers(&self) {
        while let Some(poller) = self.with(|state| state.woken.pop()) {
            runtime::wake_all(poller as usize);
        }
    }

    /// How many connections have been begun in the run, or in the last one. They are numbered in
    /// that order, from 0.
    pub fn connections(&self) -> u64 {
        self.with(|state| state.connections)
    }

    /// Breaks all connections, as the end of the process at their other ends does. Bytes on their
    /// way are lost. Listeners stay.
    pub fn cut_all(&self) {
        self.with(State::cut_all);
        if runtime::is_running() {
            self.wake_sleepers();
        }
    }

    /// Breaks connection number `connection` when `byte` bytes that `from` wrote have arrived at
    /// the other end.
    pub fn reset_at(&self, connection: u64, from: Side, byte: u64) {
        self.with(|state| state.resets.insert((connection, from), byte));
    }

    /// Lets the next `count` calls of accept that find a connection fail.
    pub fn fail_accepts(&self, count: usize, fault: AcceptFault) {
        self.with(|state| {
            state
                .accept_faults
                .extend(std::iter::repeat_n(fault, count));
        });
    }

    /// A run begins: without sockets, and with the seed's first draw.
    ///
    /// # Errors
    /// When another run has the network.
    pub(crate) fn begin_run(&self) -> Result<InUse<'_>, String> {
        self.with(|state| {
            if std::mem::replace(&mut state.is_in_use, true) {
                return Err("another run has the network".to_owned());
            }
            state.begin_run();
            Ok(())
        })?;
        Ok(InUse(self))
    }
}

/// A run has the network until this is dropped.
pub(crate) struct InUse<'a>(&'a Network);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.is_in_use = false);
    }
}
