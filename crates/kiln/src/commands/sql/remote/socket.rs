//! A socket that waits: bytes out and in, encrypted or not.

use std::io::{self, Read, Write};

use kiln_platform::net::{Address, Events, Poller, Stream, Token};
use kiln_platform::time;
use rustls::ClientConnection;

/// A connection to a server.
pub(super) struct Socket {
    raw: Raw,
    encrypted: Option<Box<ClientConnection>>,
}

/// The socket itself, as `std::io` wants one that blocks.
struct Raw {
    stream: Stream,
    poller: Poller,
    events: Events,
    /// When it is to be done with waiting.
    deadline_ns: Option<u64>,
}

impl Socket {
    /// Begins to connect; reads and writes wait until `deadline_ns` at the latest.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(address: &Address, deadline_ns: u64) -> io::Result<Socket> {
        let mut stream = Stream::connect(address).map_err(io::Error::other)?;
        let poller = Poller::new().map_err(io::Error::other)?;
        stream
            .register(&poller, Token(0))
            .map_err(io::Error::other)?;
        Ok(Socket {
            raw: Raw {
                stream,
                poller,
                events: Events::with_capacity(4),
                deadline_ns: Some(deadline_ns),
            },
            encrypted: None,
        })
    }

    /// From now on it waits for as long as it takes.
    pub fn wait_for_ever(&mut self) {
        self.raw.deadline_ns = None;
    }

    /// Encrypts all that follows.
    ///
    /// # Errors
    /// What is wrong with the server's certificate, and the system's.
    pub fn encrypt(&mut self, mut connection: ClientConnection) -> io::Result<()> {
        while connection.is_handshaking() {
            connection.complete_io(&mut self.raw)?;
        }
        self.encrypted = Some(Box::new(connection));
        Ok(())
    }

    /// The certificate of the server, if the connection is encrypted.
    pub fn certificate(&self) -> Option<&[u8]> {
        let certificates = self.encrypted.as_ref()?.peer_certificates()?;
        certificates.first().map(AsRef::as_ref)
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.encrypted {
            None => self.raw.read(buffer),
            Some(encrypted) => rustls::Stream::new(&mut **encrypted, &mut self.raw).read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encrypted {
            None => self.raw.write(bytes),
            Some(encrypted) => rustls::Stream::new(&mut **encrypted, &mut self.raw).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encrypted {
            None => Ok(()),
            Some(encrypted) => rustls::Stream::new(&mut **encrypted, &mut self.raw).flush(),
        }
    }
}

impl Raw {
    /// Tries until something was moved.
    fn until(
        &mut self,
        mut transfer: impl FnMut(&Stream) -> kiln_platform::net::Result<Option<usize>>,
    ) -> io::Result<usize> {
        loop {
            if let Some(count) = transfer(&self.stream).map_err(io::Error::other)? {
                return Ok(count);
            }
            let remaining_ns = self.deadline_ns.map(|deadline_ns| {
                let remaining_ns = deadline_ns.saturating_sub(time::now_ns());
                (remaining_ns > 0).then_some(remaining_ns)
            });
            let remaining_ns = match remaining_ns {
                Some(None) => return Err(io::ErrorKind::TimedOut.into()),
                Some(remaining_ns) => remaining_ns,
                None => None,
            };
            let waited = self.poller.wait(&mut self.events, remaining_ns);
            waited.map_err(io::Error::other)?;
        }
    }
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until(|stream| stream.read(buffer))
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
