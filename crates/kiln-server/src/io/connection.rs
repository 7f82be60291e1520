//! A client's socket and where the client is: with the poller, in a thread, or at a worker.

use kiln_platform::net::{Error, Stream};
use kiln_sql::CancelHandle;
use std::io;

use crate::client::{Client, Progress};
use crate::session::RunsOn;

use super::tls::{Encrypted, Tls};

/// Bytes that are received at a time.
pub(super) const RECEIVED_BYTES: usize = 64 << 10;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// That something is received, or can be sent.
    Socket,
    /// To be handled again: others go first.
    Yield,
    /// The outcome of what was submitted.
    Outcome,
    /// A thread that handles a message, or that is to.
    Thread,
    /// Nothing: the connection is over.
    Nothing,
}

/// A connection.
pub(super) struct Connection {
    pub stream: Stream,
    /// There while it is encrypted.
    encrypted: Option<Encrypted>,
    /// Tells it from others that had its place before.
    pub generation: u32,
    /// `None` after a panic.
    pub client: Option<Box<Client>>,
    pub waits: Waits,
    /// Whether there may be something to be received.
    pub is_readable: bool,
    /// Whether the client sends no more, or has gone.
    is_at_end: bool,
    /// Whether nothing can be sent to it any more.
    is_broken: bool,
    /// Whether it is over when its answers are sent.
    is_ending: bool,
    /// When it began.
    pub since_ns: u64,
    /// When it had news last.
    pub active_ns: u64,
}

impl Connection {
    pub fn new(stream: Stream, generation: u32, client: Client, now_ns: u64) -> Connection {
        Connection {
            stream,
            encrypted: None,
            generation,
            client: Some(Box::new(client)),
            waits: Waits::Socket,
            is_readable: true,
            is_at_end: false,
            is_broken: false,
            is_ending: false,
            since_ns: now_ns,
            active_ns: 0,
        }
    }

    /// Whether its client has a transaction block open.
    pub fn in_transaction(&self) -> bool {
        (self.client.as_ref()).is_some_and(|client| client.in_transaction())
    }

    /// Whether its client holds a worker slot.
    pub fn holds_slot(&self) -> bool {
        (self.client.as_ref()).is_some_and(|client| client.holds_slot())
    }

    /// What cancels its client's statements, if it has a session.
    pub fn cancel_handle(&self) -> Option<CancelHandle> {
        self.client.as_ref()?.cancel_handle()
    }

    /// Why it ends now, if another session has ended its client's, which has nothing under way.
    pub fn termination(&self) -> Option<kiln_sql::Error> {
        match self.waits {
            Waits::Socket if !self.is_ending => self.client.as_ref()?.termination(),
            _ => None,
        }
    }

    /// Whether answers wait to be sent.
    pub fn has_answers(&mut self) -> bool {
        (self.client.as_mut()).is_some_and(|client| !client.answers().is_empty())
    }

    /// Whether its client has not begun a session.
    pub fn is_starting(&self) -> bool {
        (self.client.as_ref()).is_some_and(|client| !client.has_session())
    }

    /// Receives, handles and sends as far as that goes.
    pub fn serve(&mut self, runs_on: RunsOn<'_>, tls: Option<&Tls>, buffer: &mut [u8]) {
        let Some(mut client) = self.client.take() else {
            return;
        };
        self.waits = loop {
            if self.is_broken {
                break Waits::Nothing;
            }
            let received = self.receive(&mut client, buffer);
            let progress = match self.is_ending {
                true => Progress::End,
                false => client.advance(runs_on),
            };
            self.send(&mut client);
            if self.is_broken && progress != Progress::Outcome {
                break Waits::Nothing;
            }
            match progress {
                Progress::Bytes if self.is_at_end && self.is_sent(&mut client) => {
                    break Waits::Nothing;
                }
                Progress::Bytes if received && self.is_readable => {}
                Progress::Bytes => break Waits::Socket,
                Progress::Sending if client.answers().is_empty() => break Waits::Yield,
                Progress::Encryption => match tls.map(Tls::accept) {
                    // A letter has been sent, for which there is always room.
                    Some(Ok(encrypted)) if client.answers().is_empty() => {
                        self.encrypted = Some(encrypted);
                    }
                    _ => break Waits::Nothing,
                },
                Progress::Sending => break Waits::Socket,
                Progress::Yield => break Waits::Yield,
                Progress::Outcome => break Waits::Outcome,
                Progress::Thread => break Waits::Thread,
                Progress::End => {
                    self.is_ending = true;
                    break match self.is_sent(&mut client) {
                        true => {
                            self.close();
                            Waits::Nothing
                        }
                        false => Waits::Socket,
                    };
                }
            }
        };
        self.client = Some(client);
    }

    /// Receives what there is and there is room for. Returns whether anything was.
    fn receive(&mut self, client: &mut Client, buffer: &mut [u8]) -> bool {
        let mut received = false;
        while self.is_readable && !self.is_at_end {
            let room = client.input().room().min(buffer.len());
            if room == 0 {
                break;
            }
            let read = match &mut self.encrypted {
                None => self
                    .stream
                    .read(&mut buffer[..room])
                    .map_err(io::Error::other),
                Some(encrypted) => encrypted.read(&self.stream, &mut buffer[..room]),
            };
            match read {
                Ok(Some(0)) | Err(_) => self.is_at_end = true,
                Ok(Some(count)) => {
                    client.input().receive(&buffer[..count]);
                    received = true;
                }
                Ok(None) => self.is_readable = false,
            }
        }
        received
    }

    /// Sends what there is and the system takes.
    fn send(&mut self, client: &mut Client) {
        if !client.may_answer() {
            return;
        }
        let answers = client.answers();
        while !answers.is_empty() {
            let written = match &mut self.encrypted {
                None => self
                    .stream
                    .write(answers.pending())
                    .map_err(io::Error::other),
                Some(encrypted) => encrypted.write(&self.stream, answers.pending()),
            };
            match written {
                Ok(Some(count)) if count > 0 => answers.consume(count),
                Ok(_) => return,
                Err(_) => {
                    self.is_broken = true;
                    return;
                }
            }
        }
        if let Some(encrypted) = &mut self.encrypted {
            self.is_broken |= encrypted.flush(&self.stream).is_err();
        }
    }

    /// Whether the system has taken all answers.
    fn is_sent(&self, client: &mut Client) -> bool {
        let waits = (self.encrypted.as_ref()).is_some_and(Encrypted::has_waiting);
        client.answers().is_empty() && !waits
    }

    /// Ends the encryption in good order.
    fn close(&mut self) {
        if let Some(encrypted) = &mut self.encrypted {
            encrypted.close(&self.stream);
        }
    }

    /// Tells the client, if it is here, why its session ends, and ends it.
    pub fn end(&mut self, error: &kiln_sql::Error) {
        if let Some(mut client) = self.client.take() {
            client.end(Some(error));
            self.is_ending = true;
            self.send(&mut client);
            self.close();
            self.client = Some(client);
        }
        self.waits = Waits::Nothing;
    }

    /// Sends a last word to a client that there is no room for.
    pub fn refuse(stream: &Stream, error: &kiln_sql::Error) -> Result<(), Error> {
        let answers = Client::refuse(error);
        stream.write(answers.pending())?;
        stream.shutdown_write()
    }
}
