//! Sockets that never block, and a poller that says when to try again.
//!
//! - [`Listener`]: accepts connections over TCP or on a Unix socket;
//! - [`Stream`]: one connection; reads and writes move what can be moved now;
//! - [`Poller`]: one thread waits in it for all its sockets; a [`Waker`] ends the wait from any
//!   thread;
//! - [`Error`]: what failed, where, and what the caller has to do about it.
//!
//! # Readiness
//!
//! An event tells of a *change*: bytes arrived, room for writing appeared, a connection waits. The
//! poller tells of a change once. So a caller that was told goes on until the socket answers `None`
//! ("would block"); only this answer makes sure that another event follows. A read or a write that
//! moved fewer bytes than it might have does not.
//!
//! An event may be spurious: the socket then answers `None`. [`Poller::wait`] may return without
//! any event before its time is up. A registered socket's first event tells of its state when it
//! was registered.
//!
//! | call | `None` means | an event follows when |
//! |---|---|---|
//! | [`Stream::read`] | no byte has arrived | bytes, the end, or a failure arrive |
//! | [`Stream::write`] | there is no room, or the connection is still being made | there is room, or the connection has failed |
//! | [`Listener::accept`] | no connection waits | one waits |
//!
//! # The end of a connection
//!
//! `Some(0)` from a read is the end of what the peer sends; the other direction goes on until
//! [`Stream::shutdown_write`]. A dropped stream ends both directions. A connection that breaks
//! loses the bytes that are on their way, in both directions: the next read or write fails with
//! [`Kind::Broken`], and the calls after it find an end or fail in the same way.
//!
//! # In a simulated run
//!
//! In a run that was given a `sim::net::Network`, all operations go to that network. In any other
//! run they fail. Outside of runs they are real in every build.

mod address;
mod error;
mod listener;
mod poller;
mod stream;

pub use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub use address::{Address, Peer};
pub use error::{Error, Kind, Operation, Result};
pub use listener::Listener;
pub use poller::{Event, Events, Poller, Token, Waker};
pub use stream::Stream;

pub(crate) use listener::BACKLOG;
pub(crate) use poller::WAKER_TOKEN;

/// Lets the process have `count` sockets and files at a time, as far as it may; returns how many it
/// may have then.
///
/// # Errors
/// The system's.
pub fn allow_descriptors(count: usize) -> std::io::Result<usize> {
    let allowed = crate::backend::net::allow_descriptors(count as u64)?;
    Ok(usize::try_from(allowed).unwrap_or(usize::MAX))
}

/// The addresses of a host, by its name or as text, for this port.
///
/// # Errors
/// The system's, when it knows no such host.
pub fn resolve(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    crate::backend::net::resolve(host, port)
}

/// The user as whom this process runs: a process that connects to it as that user could read its
/// files as well.
pub fn own_user() -> u32 {
    crate::backend::net::own_user()
}
