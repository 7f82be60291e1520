//! One connection.

use std::fmt;
use std::io;

use super::address::{Address, Peer};
use super::error::{Error, Operation, Result};
use super::poller::{Poller, Token};
use crate::backend::net::RawStream;

/// One connection. Dropping it ends both directions; if bytes have arrived that were not read, the
/// peer is told that the connection is broken.
#[derive(Debug)]
pub struct Stream {
    raw: RawStream,
    far: Far,
}

/// The other end, as errors name it.
#[derive(Debug)]
enum Far {
    Client(Peer),
    Listener(Address),
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Far::Client(peer) => peer.fmt(f),
            Far::Listener(address) => address.fmt(f),
        }
    }
}

impl Stream {
    /// Begins to connect to a listener. Reads and writes answer `None` until the connection is
    /// made, and fail if it cannot be made; an event tells of both.
    ///
    /// # Errors
    /// The system's, if it finds out at once.
    pub fn connect(address: &Address) -> Result<Stream> {
        match RawStream::connect(address) {
            Ok(raw) => Ok(Stream {
                raw,
                far: Far::Listener(address.clone()),
            }),
            Err(error) => Err(Error::new(Operation::Connect, address, &error)),
        }
    }

    pub(super) fn accepted(raw: RawStream, peer: Peer) -> Stream {
        Stream {
            raw,
            far: Far::Client(peer),
        }
    }

    /// Reads what has arrived, as far as it fits, and says how many bytes. `Some(0)`: the peer
    /// sends no more, or `buffer` is empty. `None`: nothing has arrived.
    ///
    /// # Errors
    /// The system's; [`Kind::Broken`](super::Kind::Broken) when the connection is no more,
    /// [`Kind::Refused`](super::Kind::Refused) when it was never made.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>> {
        self.unless_it_blocks(Operation::Read, || self.raw.read(buffer))
    }

    /// Hands over as many of `bytes` as there is room for, and says how many. `None`: there is no
    /// room.
    ///
    /// # Errors
    /// As [`Stream::read`]'s. Bytes that were taken may be lost nevertheless.
    pub fn write(&self, bytes: &[u8]) -> Result<Option<usize>> {
        self.unless_it_blocks(Operation::Write, || self.raw.write(bytes))
    }

    /// Ends the outgoing direction: the peer reads what was written, then the end.
    ///
    /// # Errors
    /// The system's; [`Kind::Broken`](super::Kind::Broken) when there is no connection, or not yet.
    pub fn shutdown_write(&self) -> Result<()> {
        self.raw
            .shutdown_write()
            .map_err(|error| Error::new(Operation::Shutdown, &self.far, &error))
    }

    /// Lets `poller` tell of what happens to the connection, under `token`. A stream belongs to at
    /// most one poller at a time.
    ///
    /// # Errors
    /// The system's.
    pub fn register(&mut self, poller: &Poller, token: Token) -> Result<()> {
        let registered = poller.check(token);
        registered
            .and_then(|()| self.raw.register(&poller.raw, token.0))
            .map_err(|error| Error::new(Operation::Register, &self.far, &error))
    }

    /// Ends that; events that the poller has handed out already stay.
    ///
    /// # Errors
    /// The system's.
    pub fn deregister(&mut self, poller: &Poller) -> Result<()> {
        self.raw
            .deregister(&poller.raw)
            .map_err(|error| Error::new(Operation::Register, &self.far, &error))
    }

    fn unless_it_blocks(
        &self,
        operation: Operation,
        mut transfer: impl FnMut() -> io::Result<usize>,
    ) -> Result<Option<usize>> {
        loop {
            match transfer() {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::new(operation, &self.far, &error)),
            }
        }
    }
}
