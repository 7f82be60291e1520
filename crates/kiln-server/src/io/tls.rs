//! TLS over a connection's socket (rustls).

use std::io::{self, Read, Write};

use kiln_platform::net::Stream;
use kiln_platform::sync::Arc;
use kiln_sql::{Error, Result, SqlState};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// Bytes that wait for the socket, encrypted, at most.
const BUFFERED_BYTES: usize = 64 << 10;

/// A server's certificate and key.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// What clients bind an authentication to (`tls-server-end-point`, RFC 5929, section 4); `None`
    /// for a certificate for which the RFC names no hash function.
    end_point: Option<Box<[u8]>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// With the certificate, and those of its issuers if they are needed, and the private key; each
    /// as PEM.
    ///
    /// # Errors
    /// F0000 for what is not that, or does not belong together.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Tls> {
        let chain: std::result::Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificates).collect();
        let chain =
            chain.map_err(|error| refused(format!("the certificate is no PEM: {error}")))?;
        let Some(first) = chain.first() else {
            return Err(refused("the file of the certificate has none".to_owned()));
        };
        let end_point = tls_end_point(first);
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| refused(format!("the file of the key has no private key: {error}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| refused(format!("certificate and key: {error}")))?;
        Ok(Tls {
            config: Arc::new(config),
            end_point,
        })
    }

    /// What clients bind an authentication to.
    pub fn end_point(&self) -> Option<&[u8]> {
        self.end_point.as_deref()
    }

    /// The server's side of a connection that begins.
    ///
    /// # Errors
    /// XX000 for what rustls refuses.
    pub(super) fn accept(&self) -> Result<Encrypted> {
        let accepted = ServerConnection::new(self.config.clone());
        let mut connection = accepted.map_err(|error| Error::internal(error.to_string()))?;
        connection.set_buffer_limit(Some(BUFFERED_BYTES));
        Ok(Encrypted(Box::new(connection)))
    }
}

fn refused(message: String) -> Error {
    Error::new(SqlState::CONFIG_FILE_ERROR, message)
}

/// What an authentication is bound to under TLS with this certificate (`tls-server-end-point`): its
/// hash, with the function of its signature; SHA-256 in place of MD5 and SHA-1. `None` for a
/// signature for which RFC 5929 names no function.
pub fn tls_end_point(certificate: &[u8]) -> Option<Box<[u8]>> {
    // Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OBJECT
    // IDENTIFIER, … }, … }
    let (whole, _) = element(certificate, 0x30)?;
    let (_, rest) = element(whole, 0x30)?;
    let (algorithm, _) = element(rest, 0x30)?;
    let (identifier, _) = element(algorithm, 0x06)?;
    /// 1.2.840.113549.1.1, RSA, and 1.2.840.10045.4, ECDSA.
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let bits = match (identifier.strip_prefix(RSA), identifier.strip_prefix(ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => 256,
        (Some([12]), _) | (_, Some([3, 3])) => 384,
        (Some([13]), _) | (_, Some([3, 4])) => 512,
        _ => return None,
    };
    Some(match bits {
        256 => Sha256::digest(certificate)[..].into(),
        384 => Sha384::digest(certificate)[..].into(),
        _ => Sha512::digest(certificate)[..].into(),
    })
}

/// The content of a DER element with this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    if *found != tag {
        return None;
    }
    let (length, rest) = match length & 0x7f {
        short if length & 0x80 == 0 => (usize::from(short), rest),
        count @ 1..=4 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(count))?;
            let length = bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// A connection under TLS.
pub(super) struct Encrypted(Box<ServerConnection>);

impl Encrypted {
    /// Receives plaintext; `None` when there is none now, and `Some(0)` at the end. As
    /// [`Stream::read`].
    pub fn read(&mut self, stream: &Stream, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.0.reader().read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without TLS's own: what came before it is whole messages or nothing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) => return Err(error),
            }
            match self.0.read_tls(&mut Socket(stream)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
            if let Err(error) = self.0.process_new_packets() {
                // The alert that says why.
                let _ = self.0.write_tls(&mut Socket(stream));
                return Err(io::Error::other(error));
            }
        }
    }

    /// Sends plaintext as far as there is room, and what waits; returns how much plaintext it took,
    /// `None` when nothing now. As [`Stream::write`].
    pub fn write(&mut self, stream: &Stream, bytes: &[u8]) -> io::Result<Option<usize>> {
        self.flush(stream)?;
        let count = self.0.writer().write(bytes)?;
        self.flush(stream)?;
        Ok((count > 0).then_some(count))
    }

    /// Sends what waits, handshakes included, as far as the socket takes it.
    pub fn flush(&mut self, stream: &Stream) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(&mut Socket(stream)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether something waits for the socket.
    pub fn has_waiting(&self) -> bool {
        self.0.wants_write()
    }

    /// Says that nothing follows.
    pub fn close(&mut self, stream: &Stream) {
        self.0.send_close_notify();
        // The client may have gone.
        let _ = self.flush(stream);
    }
}

/// The socket as rustls wants it.
struct Socket<'a>(&'a Stream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer).map_err(io::Error::other)? {
            Some(count) => Ok(count),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes).map_err(io::Error::other)? {
            Some(count) => Ok(count),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
