//! What a failed operation on a socket tells its caller.

use std::fmt;
use std::io;

/// What an operation on a socket gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation: what was tried, on what, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    operation: Operation,
    subject: String,
    kind: Kind,
    words: String,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Making a listener.
    Listen,
    /// Accepting a connection.
    Accept,
    /// Connecting to a listener.
    Connect,
    /// Asking for a socket's own address.
    Inspect,
    /// Reading from a connection.
    Read,
    /// Writing to a connection.
    Write,
    /// Ending the outgoing direction of a connection.
    Shutdown,
    /// Making a poller, registering a socket with it, or removing one from it.
    Register,
    /// Waiting for events.
    Wait,
}

/// What a failure means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A process listens at the address already, or a file that is no socket has the path
    /// (EADDRINUSE).
    InUse,
    /// No listener is there: connection refused, or no such path (ECONNREFUSED, ENOENT).
    Refused,
    /// Not permitted (EACCES, EPERM, EROFS).
    Denied,
    /// The connection is no more: reset, or not answered for too long (ECONNRESET, EPIPE,
    /// ETIMEDOUT). Drop the stream.
    Broken,
    /// One connection failed before it was accepted (ECONNABORTED, or an error of the network).
    /// Accept the next one.
    Aborted,
    /// The process or the system is out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM),
    /// or the listener's queue is full (EAGAIN of a connect). Pause, then try again: no event says
    /// when.
    Exhausted,
    /// Anything else.
    Failed,
}

impl Error {
    /// The system's `error` in `operation` on `subject`.
    pub(super) fn new(
        operation: Operation,
        subject: impl fmt::Display,
        error: &io::Error,
    ) -> Error {
        Error {
            operation,
            subject: subject.to_string(),
            kind: kind_of(operation, error),
            words: error.to_string(),
        }
    }

    /// What was tried.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// What the failure means.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

fn kind_of(operation: Operation, error: &io::Error) -> Kind {
    let Some(number) = error.raw_os_error() else {
        return match error.kind() {
            io::ErrorKind::AddrInUse => Kind::InUse,
            _ => Kind::Failed,
        };
    };
    match number {
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => Kind::Exhausted,
        libc::EAGAIN => Kind::Exhausted,
        libc::EADDRINUSE => Kind::InUse,
        // A listener hands errors of the network on that one connection has met.
        libc::ECONNABORTED
        | libc::ECONNRESET
        | libc::EPERM
        | libc::EPROTO
        | libc::ENETDOWN
        | libc::ENETUNREACH
        | libc::EHOSTDOWN
        | libc::EHOSTUNREACH
        | libc::ENOPROTOOPT
        | libc::ETIMEDOUT
            if operation == Operation::Accept =>
        {
            Kind::Aborted
        }
        // Of a listener it is the directory that is missing.
        libc::ENOENT if operation == Operation::Listen => Kind::Failed,
        libc::ECONNREFUSED | libc::ENOENT => Kind::Refused,
        libc::EACCES | libc::EPERM | libc::EROFS => Kind::Denied,
        libc::ECONNRESET
        | libc::ECONNABORTED
        | libc::EPIPE
        | libc::ENOTCONN
        | libc::ETIMEDOUT
        | libc::ENETDOWN
        | libc::ENETUNREACH
        | libc::EHOSTDOWN
        | libc::EHOSTUNREACH => Kind::Broken,
        _ => Kind::Failed,
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Listen => "listen on",
            Operation::Accept => "accept a connection on",
            Operation::Connect => "connect to",
            Operation::Inspect => "inspect",
            Operation::Read => "read from",
            Operation::Write => "write to",
            Operation::Shutdown => "end the writing to",
            Operation::Register => "register",
            Operation::Wait => "wait for events of",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, subject) = (self.operation, &self.subject);
        write!(f, "cannot {operation} {subject}: {}", self.words)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_the_systems_numbers_and_from_what_was_tried() {
        use Operation as O;
        let cases = [
            (O::Listen, libc::EADDRINUSE, Kind::InUse),
            (O::Listen, libc::EACCES, Kind::Denied),
            (O::Listen, libc::EINVAL, Kind::Failed),
            (O::Listen, libc::ENOENT, Kind::Failed),
            (O::Accept, libc::EMFILE, Kind::Exhausted),
            (O::Accept, libc::ENFILE, Kind::Exhausted),
            (O::Accept, libc::ENOBUFS, Kind::Exhausted),
            (O::Accept, libc::ENOMEM, Kind::Exhausted),
            (O::Accept, libc::ECONNABORTED, Kind::Aborted),
            (O::Accept, libc::EPERM, Kind::Aborted),
            (O::Accept, libc::EBADF, Kind::Failed),
            (O::Connect, libc::ECONNREFUSED, Kind::Refused),
            (O::Connect, libc::ENOENT, Kind::Refused),
            (O::Connect, libc::EAGAIN, Kind::Exhausted),
            (O::Connect, libc::EPERM, Kind::Denied),
            (O::Read, libc::ECONNRESET, Kind::Broken),
            (O::Read, libc::ETIMEDOUT, Kind::Broken),
            (O::Write, libc::EPIPE, Kind::Broken),
        ];
        for (operation, number, kind) in cases {
            let system = io::Error::from_raw_os_error(number);
            let error = Error::new(operation, "there", &system);
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(
                error.to_string(),
                format!("cannot {operation} there: {system}")
            );
        }
    }
}
