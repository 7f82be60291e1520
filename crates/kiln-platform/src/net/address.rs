//! Where a listener can be found, and who is at the other end of a connection.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a listener can be found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An address and a port of TCP.
    Tcp(SocketAddr),
    /// The file of a Unix socket.
    Unix(PathBuf),
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client of this address and port.
    Tcp(SocketAddr),
    /// A process of this machine.
    Unix {
        /// The user as whom it connected, where the system says so.
        user: Option<u32>,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) => address.fmt(f),
            Peer::Unix { user: Some(user) } => write!(f, "a process of user {user}"),
            Peer::Unix { user: None } => f.write_str("a process of this machine"),
        }
    }
}
