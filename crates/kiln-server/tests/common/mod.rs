//! Clients over sockets, of the machine or simulated, that wait for what they want.

#![allow(dead_code, reason = "no test uses all of it")]

pub mod exposition;

use kiln_platform::net::{Address, Error, Events, Kind, Poller, Stream, Token};
use kiln_server::{Server, ServerOptions};
use kiln_sql::{Database, Options};
use kiln_wire::client::{Answer, Requests};

/// Nanoseconds after which a test gives up waiting.
const PATIENCE_NS: u64 = 20_000_000_000;

/// A client on a socket.
pub struct Talk {
    stream: Stream,
    poller: Poller,
    events: Events,
    received: Vec<u8>,
    pub requests: Requests,
    /// The number and the secret of its session.
    pub key: (u32, Vec<u8>),
}

/// A server of this database on a port that the system chooses, and its address.
pub fn serve(database: &Database, change: impl FnOnce(&mut ServerOptions)) -> (Server, Address) {
    let mut options = ServerOptions::default();
    options.listen = vec![Address::Tcp("127.0.0.1:0".parse().expect("an address"))];
    change(&mut options);
    let server = Server::start(database.clone(), options).expect("the port is free");
    let address = server.addresses()[0].clone();
    (server, address)
}

/// A database in memory.
pub fn database() -> Database {
    let options = Options::new().workers(2).pin_workers(false);
    Database::open(options).expect("there is memory")
}

impl Talk {
    /// Connects, and says nothing.
    pub fn connect(address: &Address) -> Result<Talk, Error> {
        let mut stream = Stream::connect(address)?;
        let poller = Poller::new()?;
        stream.register(&poller, Token(1))?;
        Ok(Talk {
            stream,
            poller,
            events: Events::with_capacity(8),
            received: Vec::new(),
            requests: Requests::default(),
            key: (0, Vec::new()),
        })
    }

    /// Connects and begins a session.
    pub fn begin(address: &Address) -> Result<Talk, Error> {
        Talk::begin_as(address, "kiln")
    }

    /// Connects and begins a session of a role.
    pub fn begin_as(address: &Address, role: &str) -> Result<Talk, Error> {
        let mut talk = Talk::connect(address)?;
        talk.requests.startup(0, &[("user", role)]);
        for answer in talk.ask()? {
            if let Answer::KeyData(number, secret) = answer {
                talk.key = (number, secret);
            }
        }
        Ok(talk)
    }

    fn wait(&mut self) -> Result<(), Error> {
        self.poller.wait(&mut self.events, Some(PATIENCE_NS))
    }

    /// Sends bytes.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.stream.write(bytes)? {
                Some(count) => bytes = &bytes[count..],
                None => self.wait()?,
            }
        }
        Ok(())
    }

    /// Sends what was asked.
    pub fn flush(&mut self) -> Result<(), Error> {
        let bytes = self.requests.take();
        self.send(&bytes)
    }

    /// The next answer; `None` at the end of the connection.
    pub fn answer(&mut self) -> Result<Option<Answer>, Error> {
        loop {
            let split = Answer::split(&self.received).expect("the server speaks the protocol");
            if let Some((answer, length)) = split {
                self.received.drain(..length);
                return Ok(Some(answer));
            }
            let mut buffer = [0; 4_096];
            match self.stream.read(&mut buffer) {
                Ok(Some(0)) => return Ok(None),
                Ok(Some(count)) => self.received.extend_from_slice(&buffer[..count]),
                Ok(None) => self.wait()?,
                Err(error) if error.kind() == Kind::Broken => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next byte; `None` at the end of the connection.
    pub fn byte(&mut self) -> Result<Option<u8>, Error> {
        let mut byte = [0];
        loop {
            match self.stream.read(&mut byte)? {
                Some(0) => return Ok(None),
                Some(_) => return Ok(Some(byte[0])),
                None => self.wait()?,
            }
        }
    }

    /// Sends what was asked, and reads answers up to ReadyForQuery or the end of the connection.
    pub fn ask(&mut self) -> Result<Vec<Answer>, Error> {
        self.flush()?;
        let mut answers = Vec::new();
        while let Some(answer) = self.answer()? {
            let is_ready = matches!(answer, Answer::Ready(_));
            answers.push(answer);
            if is_ready {
                break;
            }
        }
        Ok(answers)
    }

    /// Runs a text; the last tag or the state of the error.
    pub fn run(&mut self, text: &str) -> String {
        self.requests.query(text);
        let answers = self.ask().expect("the connection holds");
        let last = answers.iter().rev().find_map(|answer| match answer {
            Answer::CommandComplete(tag) => Some(tag.clone()),
            Answer::Error(fields) => Some(fields.get(b'C').to_owned()),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// The value of each statement's row, empty if there is none, and its tag.
    pub fn answers(&mut self, text: &str) -> Vec<(String, String)> {
        self.requests.query(text);
        let (mut found, mut row) = (Vec::new(), String::new());
        for answer in self.ask().expect("the connection holds") {
            match answer {
                Answer::Row(values) => {
                    let value = values.first().cloned().flatten().unwrap_or_default();
                    row = String::from_utf8(value).expect("it is text");
                }
                Answer::CommandComplete(tag) => found.push((std::mem::take(&mut row), tag)),
                _ => {}
            }
        }
        found
    }

    /// The only value of a text's row, empty if there is none; or the state of the error.
    pub fn shown(&mut self, text: &str) -> String {
        self.requests.query(text);
        let answers = self.ask().expect("the connection holds");
        let found = answers.iter().find_map(|answer| match answer {
            Answer::Row(values) => values.first().cloned().flatten(),
            Answer::Error(fields) => Some(fields.get(b'C').as_bytes().to_vec()),
            _ => None,
        });
        String::from_utf8(found.unwrap_or_default()).expect("it is text")
    }

    /// The only value of a text's only row.
    pub fn value(&mut self, text: &str) -> String {
        self.requests.query(text);
        let answers = self.ask().expect("the connection holds");
        let value = answers.iter().find_map(|answer| match answer {
            Answer::Row(values) => values.first().cloned().flatten(),
            _ => None,
        });
        String::from_utf8(value.unwrap_or_default()).expect("it is text")
    }
}
