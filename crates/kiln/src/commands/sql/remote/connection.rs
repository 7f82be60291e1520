//! A session with a server: its beginning, and statements one after the other.

use std::io::{self, Read, Write};

use kiln_platform::time;
use kiln_server::tls_end_point;
use kiln_wire::backend::TransactionStatus;
use kiln_wire::client::{Answer, Fields, Requests};
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

use super::socket::Socket;
use super::tls;
use super::url::{Encryption, Target};

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server has refused.
    Refused(Fields),
    /// The connection is over, or never was.
    Broken(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Broken(match error.kind() {
            io::ErrorKind::TimedOut => "the server did not answer in time".to_owned(),
            io::ErrorKind::UnexpectedEof => "the server has closed the connection".to_owned(),
            _ => error.to_string(),
        })
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Broken(message)
    }
}

/// A session with a server.
pub(super) struct Connection {
    socket: Socket,
    requests: Requests,
    received: Vec<u8>,
    /// Bytes of them that were read.
    read: usize,
    status: TransactionStatus,
    /// The server's version, as it says it.
    version: String,
    /// What it said at the beginning.
    notices: Vec<Fields>,
}

impl Connection {
    /// Connects, and begins a session.
    ///
    /// # Errors
    /// Why there is none.
    pub fn open(target: &Target) -> Result<Connection, Failure> {
        let deadline_ns = match target.timeout_s {
            0 => u64::MAX,
            timeout_s => time::now_ns() + timeout_s * 1_000_000_000,
        };
        let mut failure = Failure::Broken(format!("the host {} has no address", target.host));
        for address in target.addresses()? {
            let begun = Socket::connect(&address, deadline_ns)
                .map_err(Failure::from)
                .and_then(|socket| Connection::begin(socket, target));
            match begun {
                Ok(connection) => return Ok(connection),
                Err(Failure::Broken(message)) => failure = Failure::Broken(message),
                Err(refused) => return Err(refused),
            }
        }
        Err(failure)
    }

    fn begin(socket: Socket, target: &Target) -> Result<Connection, Failure> {
        let mut connection = Connection {
            socket,
            requests: Requests::default(),
            received: Vec::new(),
            read: 0,
            status: TransactionStatus::Idle,
            version: String::new(),
            notices: Vec::new(),
        };
        if target.encryption != Encryption::Disable && !target.host.starts_with('/') {
            connection.encrypt(target)?;
        }
        let mut parameters = vec![
            ("user", target.user.as_str()),
            ("database", target.database.as_str()),
            ("client_encoding", "UTF8"),
        ];
        let settings = target.settings.iter();
        parameters.extend(settings.map(|(name, value)| (name.as_str(), value.as_str())));
        connection.requests.startup(0, &parameters);
        connection.authenticate(target)?;
        connection.socket.wait_for_ever();
        Ok(connection)
    }

    fn encrypt(&mut self, target: &Target) -> Result<(), Failure> {
        self.requests.tls();
        self.send()?;
        let mut answer = [0];
        self.socket.read_exact(&mut answer)?;
        match &answer {
            b"S" => Ok(self.socket.encrypt(tls::connect(target)?)?),
            b"N" if target.encryption == Encryption::Prefer => Ok(()),
            b"N" => Err("the server offers no encryption".to_owned().into()),
            _ => Err("the server answers as none of PostgreSQL's kind"
                .to_owned()
                .into()),
        }
    }

    /// Reads up to the first ReadyForQuery, and proves who the client is when the server wants
    /// that.
    fn authenticate(&mut self, target: &Target) -> Result<(), Failure> {
        let mut exchange = None;
        self.send()?;
        loop {
            match self.answer()? {
                Answer::Authentication(0, _) => {}
                Answer::Authentication(10, mechanisms) => {
                    let password = target.password.as_deref().ok_or_else(|| {
                        "the server wants a password: it belongs into the URL or into PGPASSWORD".to_owned()
                    })?;
                    let (mechanism, scram) = self.scram(&mechanisms, password)?;
                    self.requests.password(&initial(mechanism, scram.message()));
                    exchange = Some(scram);
                    self.send()?;
                }
                Answer::Authentication(11, data) => {
                    let scram = exchange.as_mut().ok_or_else(out_of_turn)?;
                    scram.update(&data)?;
                    self.requests.password(scram.message());
                    self.send()?;
                }
                Answer::Authentication(12, data) => {
                    // The server proves that it knows the password as well.
                    exchange.as_mut().ok_or_else(out_of_turn)?.finish(&data)?;
                }
                Answer::Authentication(kind, _) => {
                    let message =
                        format!("authentication {kind} is not supported: use SCRAM-SHA-256");
                    return Err(message.into());
                }
                Answer::ParameterStatus(name, value) if name == "server_version" => {
                    self.version = value;
                }
                Answer::Error(fields) => return Err(Failure::Refused(fields)),
                Answer::Notice(fields) => self.notices.push(fields),
                Answer::Ready(status) => {
                    self.status = status;
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// The mechanism, of those that the server offers, and the client's part of it.
    fn scram(
        &self,
        offered: &[u8],
        password: &str,
    ) -> Result<(&'static str, ScramSha256), Failure> {
        let offers = |mechanism: &str| {
            let mut offered = offered.split(|byte| *byte == 0);
            offered.any(|it| it == mechanism.as_bytes())
        };
        let certificate = self.socket.certificate();
        let end_point = certificate.and_then(tls_end_point);
        let (mechanism, binding) = match (end_point, certificate) {
            (Some(end_point), _) if offers(SCRAM_SHA_256_PLUS) => {
                let binding = ChannelBinding::tls_server_end_point(end_point.into());
                (SCRAM_SHA_256_PLUS, binding)
            }
            // It could be bound, and the server does not offer that.
            (Some(_), _) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            (None, _) => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        if !offers(mechanism) {
            return Err("the server offers no SCRAM-SHA-256".to_owned().into());
        }
        Ok((mechanism, ScramSha256::new(password.as_bytes(), binding)))
    }

    /// The server's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What a transaction block is like.
    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    /// What the server has said at the beginning.
    pub fn notices(&mut self) -> Vec<Fields> {
        std::mem::take(&mut self.notices)
    }

    /// Runs a text, and hands out what the server answers up to the next ReadyForQuery.
    ///
    /// # Errors
    /// That the connection is over.
    pub fn run(&mut self, text: &str) -> Result<Vec<Answer>, Failure> {
        self.requests.query(text);
        self.send()?;
        let mut answers = Vec::new();
        loop {
            match self.answer()? {
                Answer::Ready(status) => {
                    self.status = status;
                    return Ok(answers);
                }
                Answer::CopyIn(..) => {
                    self.requests.copy_fail("there are no data in a statement");
                    self.send()?;
                }
                answer => {
                    let is_last =
                        matches!(&answer, Answer::Error(fields) if fields.get(b'S') == "FATAL");
                    answers.push(answer);
                    if is_last {
                        return Ok(answers);
                    }
                }
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let bytes = self.requests.take();
        self.socket.write_all(&bytes)?;
        self.socket.flush()
    }

    /// The next answer.
    fn answer(&mut self) -> Result<Answer, Failure> {
        loop {
            let split = Answer::split(&self.received[self.read..]);
            if let Some((answer, length)) = split.map_err(|error| error.message().to_owned())? {
                self.read += length;
                return Ok(answer);
            }
            self.received.drain(..std::mem::take(&mut self.read));
            let at = self.received.len();
            self.received.resize(at + READ_BYTES, 0);
            let count = self.socket.read(&mut self.received[at..]);
            self.received.truncate(at + *count.as_ref().unwrap_or(&0));
            if count? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.requests.terminate();
        // It may be over.
        let _ = self.send();
    }
}

fn out_of_turn() -> String {
    "the server goes on with an authentication that it has not begun".to_owned()
}

/// The first answer to an authentication: the mechanism, and its first message.
fn initial(mechanism: &str, message: &[u8]) -> Vec<u8> {
    let mut data = mechanism.as_bytes().to_vec();
    data.push(0);
    data.extend_from_slice(&(message.len() as u32).to_be_bytes());
    data.extend_from_slice(message);
    data
}
