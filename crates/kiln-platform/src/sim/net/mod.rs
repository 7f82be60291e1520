//! Sockets: in a run, those of its simulated network; else the real ones.
//!
//! The control door of the network is [`Network`]; `docs/simulation.md` says what is simulated.
//!
//! | module | holds |
//! |---|---|
//! | [`door`] | the network as a test holds it: options, faults |
//! | [`state`] | all sockets, and what is on its way between them |
//! | [`connection`] | one end of a connection, and what each operation does to it |
//! | [`readiness`] | pollers, and the edges that they tell of |

mod connection;
mod door;
mod readiness;
#[path = "../../std/net.rs"]
mod real;
mod state;

/// What a test reaches as `sim::net`.
pub mod control {
    pub use super::door::{AcceptFault, Network, Options, Side};
}

use std::io;
use std::net::SocketAddr;
use std::path::Path;

pub(super) use door::Network;
// Limits are the machine's.
pub(crate) use real::{allow_descriptors, own_user, resolve};

use super::runtime;
use super::state::Wait;
use crate::net::{Address, Event, Peer};
use readiness::Waited;
use state::{Number, State};

/// What a run's thread asks of its network, for the trace.
#[derive(Clone, Copy)]
enum Request {
    Listen = 1,
    Accept,
    Connect,
    Read,
    Write,
    Shutdown,
    Register,
    Deregister,
    NewPoller,
    Wait,
    Wake,
    Close,
}

/// A socket of the machine, or of a run's network.
#[derive(Debug)]
enum Raw<T> {
    Real(T),
    Simulated(Handle),
}

/// An open socket or poller of a simulated network; dropping it closes it.
#[derive(Debug)]
struct Handle {
    network: Network,
    number: Number,
    /// The run that opened it.
    run: u64,
}

/// A poller.
#[derive(Debug)]
pub(crate) struct RawPoller(Raw<real::RawPoller>);

/// What ends its wait.
#[derive(Debug)]
pub(crate) struct RawWaker(RawWakerOf);

#[derive(Debug)]
enum RawWakerOf {
    Real(real::RawWaker),
    /// The waker of the poller with this number, in this run.
    Simulated(Network, Number, u64),
}

/// Room for events.
#[derive(Debug)]
pub(crate) struct RawEvents {
    real: real::RawEvents,
    events_max: usize,
}

/// A socket that accepts.
#[derive(Debug)]
pub(crate) struct RawListener(Raw<real::RawListener>);

/// A connected socket.
#[derive(Debug)]
pub(crate) struct RawStream(Raw<real::RawStream>);

/// The network of the run.
fn network_of_run() -> io::Result<Network> {
    let without = "this run has no network: Config::network is None";
    runtime::network().ok_or_else(|| io::Error::other(without))
}

/// A socket of the machine in a run, or one of a run outside of it.
fn is_elsewhere() -> io::Error {
    io::Error::other("a run uses the sockets of its own network alone, and nothing else uses those")
}

/// The running thread asks for something: a scheduling point, then the effect, at the run's present
/// time.
fn operate<T>(
    network: &Network,
    request: Request,
    number: Number,
    effect: impl FnOnce(&mut State) -> T,
) -> T {
    runtime::begin_operation();
    runtime::note((request as u64) << 32 | number);
    let now_ps = runtime::peek_ps();
    let value = network.with(|state| {
        state.advance(now_ps);
        effect(state)
    });
    network.wake_sleepers();
    value
}

/// Opens a socket or a poller in the run's network.
fn open(
    network: Network,
    request: Request,
    make: impl FnOnce(&mut State) -> io::Result<Number>,
) -> io::Result<Handle> {
    let (number, run) = operate(&network, request, 0, |state| {
        Ok::<_, io::Error>((make(state)?, state.run))
    })?;
    Ok(Handle {
        network,
        number,
        run,
    })
}

impl Handle {
    fn operate<T>(
        &self,
        request: Request,
        effect: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        if !runtime::is_running() {
            return Err(is_elsewhere());
        }
        operate(&self.network, request, self.number, |state| {
            match state.run == self.run {
                true => effect(state),
                false => Err(is_elsewhere()),
            }
        })
    }

    fn register(&self, poller: &RawPoller, token: usize) -> io::Result<()> {
        match &poller.0 {
            Raw::Simulated(poller) => self.operate(Request::Register, |state| {
                state.register(self.number, poller.number, token)
            }),
            Raw::Real(_) => Err(is_elsewhere()),
        }
    }

    fn deregister(&self) -> io::Result<()> {
        self.operate(Request::Deregister, |state| state.deregister(self.number))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // What an earlier run has left is gone already.
        if !runtime::is_running() {
            return;
        }
        operate(&self.network, Request::Close, self.number, |state| {
            if state.run == self.run {
                state.close(self.number);
            }
        });
    }
}

impl<T> Raw<T> {
    /// What to ask: the machine's socket, or the run's handle.
    fn real(&self) -> io::Result<Result<&T, &Handle>> {
        match self {
            Raw::Real(_) if runtime::is_running() => Err(is_elsewhere()),
            Raw::Real(real) => Ok(Ok(real)),
            Raw::Simulated(handle) => Ok(Err(handle)),
        }
    }
}

impl RawEvents {
    pub(crate) fn with_capacity(events_max: usize) -> RawEvents {
        RawEvents {
            real: real::RawEvents::with_capacity(events_max),
            events_max,
        }
    }
}

impl RawWaker {
    pub(crate) fn wake(&self) {
        match &self.0 {
            RawWakerOf::Real(waker) => waker.wake(),
            // A waker that outlived its run wakes no thread.
            RawWakerOf::Simulated(network, poller, run) if runtime::is_running() => {
                operate(network, Request::Wake, *poller, |state| {
                    if state.run == *run {
                        state.wake(*poller);
                    }
                });
            }
            RawWakerOf::Simulated(..) => {}
        }
    }
}

impl RawPoller {
    pub(crate) fn new() -> io::Result<(RawPoller, RawWaker)> {
        if !runtime::is_running() {
            let (poller, waker) = real::RawPoller::new()?;
            let waker = RawWaker(RawWakerOf::Real(waker));
            return Ok((RawPoller(Raw::Real(poller)), waker));
        }
        let handle = open(network_of_run()?, Request::NewPoller, |state| {
            Ok(state.new_poller())
        })?;
        let waker = RawWakerOf::Simulated(handle.network.clone(), handle.number, handle.run);
        Ok((RawPoller(Raw::Simulated(handle)), RawWaker(waker)))
    }

    pub(crate) fn wait(
        &mut self,
        events: &mut RawEvents,
        list: &mut Vec<Event>,
        timeout_ns: Option<u64>,
    ) -> io::Result<()> {
        let handle = match &mut self.0 {
            Raw::Real(_) if runtime::is_running() => return Err(is_elsewhere()),
            Raw::Real(real) => return real.wait(&mut events.real, list, timeout_ns),
            Raw::Simulated(handle) => handle,
        };
        handle.operate(Request::Wait, |state| {
            state.begin_wait(handle.number);
            Ok(())
        })?;
        let deadline_ps = timeout_ns.map_or(u64::MAX, runtime::after);
        loop {
            let now_ps = runtime::peek_ps();
            let waited = handle.network.with(|state| {
                state.advance(now_ps);
                state.wait(handle.number, events.events_max, deadline_ps)
            });
            // Other pollers may have become ready: no scheduling point is between this and the
            // sleep.
            handle.network.wake_sleepers();
            match waited {
                Waited::Over(found) => {
                    runtime::note(found.len() as u64);
                    list.extend_from_slice(&found);
                    return Ok(());
                }
                Waited::Sleep { until_ps } => {
                    let wait = Wait::on("the network", handle.number as usize);
                    let deadline_ps = (until_ps < u64::MAX).then_some(until_ps);
                    runtime::block(wait, deadline_ps);
                }
            }
        }
    }
}

impl RawListener {
    pub(crate) fn tcp(address: SocketAddr) -> io::Result<RawListener> {
        match runtime::is_running() {
            false => real::RawListener::tcp(address).map(|real| RawListener(Raw::Real(real))),
            true => RawListener::simulated(Address::Tcp(address)),
        }
    }

    /// A run has one user, so that the file's access rights mean nothing in it.
    pub(crate) fn unix(path: &Path, mode: u32) -> io::Result<RawListener> {
        match runtime::is_running() {
            false => real::RawListener::unix(path, mode).map(|real| RawListener(Raw::Real(real))),
            true => RawListener::simulated(Address::Unix(path.to_owned())),
        }
    }

    fn simulated(address: Address) -> io::Result<RawListener> {
        let listen = |state: &mut State| state.listen(&address);
        let handle = open(network_of_run()?, Request::Listen, listen)?;
        Ok(RawListener(Raw::Simulated(handle)))
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        match self.0.real()? {
            Ok(real) => real.local_address(),
            Err(handle) => handle
                .network
                .with(|state| state.port_of(handle.number))
                .ok_or_else(|| io::Error::other("it is a path")),
        }
    }

    pub(crate) fn accept(&self) -> io::Result<(RawStream, Peer)> {
        match self.0.real()? {
            Ok(real) => {
                let (stream, peer) = real.accept()?;
                Ok((RawStream(Raw::Real(stream)), peer))
            }
            Err(handle) => {
                let (number, peer) =
                    handle.operate(Request::Accept, |state| state.accept(handle.number))?;
                let handle = Handle {
                    network: handle.network.clone(),
                    number,
                    run: handle.run,
                };
                Ok((RawStream(Raw::Simulated(handle)), peer))
            }
        }
    }

    pub(crate) fn register(&mut self, poller: &RawPoller, token: usize) -> io::Result<()> {
        match (&mut self.0, &poller.0) {
            (Raw::Real(real), Raw::Real(poller)) => real.register(poller, token),
            (Raw::Simulated(handle), _) => handle.register(poller, token),
            (Raw::Real(_), Raw::Simulated(_)) => Err(is_elsewhere()),
        }
    }

    pub(crate) fn deregister(&mut self, poller: &RawPoller) -> io::Result<()> {
        match (&mut self.0, &poller.0) {
            (Raw::Real(real), Raw::Real(poller)) => real.deregister(poller),
            (Raw::Simulated(handle), _) => handle.deregister(),
            (Raw::Real(_), Raw::Simulated(_)) => Err(is_elsewhere()),
        }
    }
}

impl RawStream {
    pub(crate) fn connect(address: &Address) -> io::Result<RawStream> {
        if !runtime::is_running() {
            return real::RawStream::connect(address).map(|real| RawStream(Raw::Real(real)));
        }
        let connect = |state: &mut State| state.connect(address);
        let handle = open(network_of_run()?, Request::Connect, connect)?;
        Ok(RawStream(Raw::Simulated(handle)))
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.real()? {
            Ok(real) => real.read(buffer),
            Err(handle) => {
                let read = handle.operate(Request::Read, |state| state.read(handle.number, buffer));
                note_transfer(&read);
                read
            }
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.real()? {
            Ok(real) => real.write(bytes),
            Err(handle) => {
                let written =
                    handle.operate(Request::Write, |state| state.write(handle.number, bytes));
                note_transfer(&written);
                written
            }
        }
    }

    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.shutdown_write(),
            Err(handle) => handle.operate(Request::Shutdown, |state| {
                state.shutdown_write(handle.number)
            }),
        }
    }

    pub(crate) fn register(&mut self, poller: &RawPoller, token: usize) -> io::Result<()> {
        match (&mut self.0, &poller.0) {
            (Raw::Real(real), Raw::Real(poller)) => real.register(poller, token),
            (Raw::Simulated(handle), _) => handle.register(poller, token),
            (Raw::Real(_), Raw::Simulated(_)) => Err(is_elsewhere()),
        }
    }

    pub(crate) fn deregister(&mut self, poller: &RawPoller) -> io::Result<()> {
        match (&mut self.0, &poller.0) {
            (Raw::Real(real), Raw::Real(poller)) => real.deregister(poller),
            (Raw::Simulated(handle), _) => handle.deregister(),
            (Raw::Real(_), Raw::Simulated(_)) => Err(is_elsewhere()),
        }
    }
}

/// What a read or a write moved belongs into the trace.
fn note_transfer(moved: &io::Result<usize>) {
    if runtime::is_running() {
        runtime::note(moved.as_ref().map_or(u64::MAX, |bytes| *bytes as u64));
    }
}
