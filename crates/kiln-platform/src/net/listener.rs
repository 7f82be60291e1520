//! What accepts connections.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::address::{Address, Peer};
use super::error::{Error, Operation, Result};
use super::poller::{Poller, Token};
use super::stream::Stream;
use crate::backend::net::RawListener;

/// Connections that may wait to be accepted.
pub(crate) const BACKLOG: i32 = 4_096;

/// Accepts connections at an address. Dropping it resets the connections that wait, and removes the
/// file of its Unix socket.
#[derive(Debug)]
pub struct Listener {
    raw: RawListener,
    address: Address,
}

impl Listener {
    /// Listens over TCP; port 0 lets the system choose one. An address whose last listener has
    /// ended can be used again at once.
    ///
    /// # Errors
    /// The system's; [`Kind::InUse`](super::Kind::InUse) when a process listens there.
    pub fn tcp(address: SocketAddr) -> Result<Listener> {
        let asked = Address::Tcp(address);
        RawListener::tcp(address)
            .and_then(|raw| {
                let address = Address::Tcp(raw.local_address()?);
                Ok(Listener { raw, address })
            })
            .map_err(|error| Error::new(Operation::Listen, asked, &error))
    }

    /// Listens on a Unix socket whose file is made at `path` with the access rights `mode`. A
    /// socket's file on which no process listens any more is replaced.
    ///
    /// Two processes that replace the same file at the same time may both succeed; then only one of
    /// them is reached.
    ///
    /// # Errors
    /// The system's; [`Kind::InUse`](super::Kind::InUse) when a process listens there, or when the
    /// file is no socket.
    pub fn unix(path: &Path, mode: u32) -> Result<Listener> {
        let address = Address::Unix(path.to_owned());
        match RawListener::unix(path, mode) {
            Ok(raw) => Ok(Listener { raw, address }),
            Err(error) => Err(Error::new(Operation::Listen, address, &error)),
        }
    }

    /// Where clients find it; the port is the one that the system chose.
    pub fn local_address(&self) -> &Address {
        &self.address
    }

    /// The connection that has waited longest; `None` if none waits. A connection over TCP sends
    /// small writes at once (TCP_NODELAY), and notices after some hours that its peer is gone
    /// (SO_KEEPALIVE).
    ///
    /// # Errors
    /// - [`Kind::Exhausted`](super::Kind::Exhausted): the connection waits on. Pause, then accept
    ///   again: no event follows.
    /// - [`Kind::Aborted`](super::Kind::Aborted): the connection is gone. Accept the next one.
    /// - All others: the listener cannot be used any more.
    pub fn accept(&self) -> Result<Option<(Stream, Peer)>> {
        loop {
            match self.raw.accept() {
                Ok((raw, peer)) => return Ok(Some((Stream::accepted(raw, peer), peer))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::new(Operation::Accept, &self.address, &error)),
            }
        }
    }

    /// Lets `poller` tell of connections that wait, under `token`. A listener belongs to at most
    /// one poller at a time.
    ///
    /// # Errors
    /// The system's.
    pub fn register(&mut self, poller: &Poller, token: Token) -> Result<()> {
        let registered = poller.check(token);
        registered
            .and_then(|()| self.raw.register(&poller.raw, token.0))
            .map_err(|error| Error::new(Operation::Register, &self.address, &error))
    }

    /// Ends that; events that the poller has handed out already stay.
    ///
    /// # Errors
    /// The system's.
    pub fn deregister(&mut self, poller: &Poller) -> Result<()> {
        self.raw
            .deregister(&poller.raw)
            .map_err(|error| Error::new(Operation::Register, &self.address, &error))
    }
}
