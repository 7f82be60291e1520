//! The order of what a client sends: one opening, then messages, of which an error skips those up
//! to the next Sync.
//!
//! [`Input`] keeps the bytes that were received and not used, within bounds: the code that reads
//! from a socket asks for [`Input::room`] first. It hands out one message at a time, and the next
//! one when the session has answered.

use kiln_storage::error::{Error, Result};

use crate::frontend::{Frame, Limits, Message, Opening};

/// Bytes that are kept of a pipeline whose first messages are not answered yet.
const PIPELINE_BYTES: usize = 256 << 10;
/// The memory that an idle connection keeps.
const KEPT_BYTES: usize = 1 << 10;

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before its startup message.
    Opening,
    /// Before it is authenticated.
    Authentication,
    /// It sends statements.
    Session,
    /// It sends data of COPY.
    Copy,
}

/// What a client has sent.
#[derive(Debug, PartialEq)]
pub enum Incoming<'a> {
    /// Before a session.
    Opening(Opening<'a>),
    /// In a session.
    Message(Received<'a>),
}

/// A message of a session.
#[derive(Debug, PartialEq)]
pub struct Received<'a> {
    /// What it says.
    ///
    /// # Errors
    /// 08P01 and 22021 for a malformed one.
    pub message: Result<Message<'a>>,
    /// Whether the message is of the extended protocol: then its error skips all messages before
    /// the next Sync.
    pub is_extended: bool,
    /// Whether a Sync was received that comes next, but for what neither runs nor prepares
    /// anything: then an Execute is all that its transaction does.
    pub ends_pipeline: bool,
    /// Whether anything was received behind it, and behind the Sync that ends its pipeline.
    pub is_followed: bool,
}

/// What a client has sent and its session has not used.
#[derive(Debug)]
pub struct Input {
    bytes: Vec<u8>,
    /// Bytes at the start that were used, and that were before the last message.
    used: usize,
    before: usize,
    limits: Limits,
    phase: Phase,
    /// Whether messages are skipped up to the next Sync.
    skips: bool,
}

impl Input {
    /// The input of a connection that begins.
    pub fn new(limits: Limits) -> Input {
        Input {
            bytes: Vec::new(),
            used: 0,
            before: 0,
            limits,
            phase: Phase::Opening,
            skips: false,
        }
    }

    /// How many bytes may be received now. None while so many wait that the session should answer
    /// first.
    pub fn room(&self) -> usize {
        let waiting = self.bytes.len() - self.used;
        let bound = match self.phase {
            Phase::Opening | Phase::Authentication => self.limits.startup_bytes + 5,
            Phase::Session | Phase::Copy => match self.first_length() {
                Some(length) if length <= self.limits.message_bytes => {
                    PIPELINE_BYTES.max(length + 5)
                }
                _ => PIPELINE_BYTES,
            },
        };
        bound.saturating_sub(waiting)
    }

    /// How long the first waiting message says that its body is.
    fn first_length(&self) -> Option<usize> {
        let header = self.bytes[self.used..].first_chunk::<5>()?;
        let [_, length @ ..] = *header;
        usize::try_from(u32::from_be_bytes(length).checked_sub(4)?).ok()
    }

    /// Takes bytes that were received: at most as many as there is [room](Input::room) for.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.used > 0 {
            self.bytes.drain(..self.used);
            (self.used, self.before) = (0, 0);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Gives memory back when nothing waits.
    pub fn rest(&mut self) {
        if self.used == self.bytes.len() {
            (self.used, self.before) = (0, 0);
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
        }
    }

    /// Whether anything was received that was not used.
    pub fn has_waiting(&self) -> bool {
        self.used < self.bytes.len()
    }

    /// Forgets what waits: bytes from before encryption belong to no client that is known.
    pub fn forget(&mut self) {
        self.bytes = Vec::new();
        (self.used, self.before) = (0, 0);
    }

    /// The startup message is there: the client authenticates itself.
    pub fn begin_authentication(&mut self) {
        self.phase = Phase::Authentication;
    }

    /// The client is authenticated.
    pub fn begin_session(&mut self) {
        self.phase = Phase::Session;
    }

    /// COPY's data follows, or is over.
    pub fn copies(&mut self, is_copying: bool) {
        self.phase = match is_copying {
            true => Phase::Copy,
            false => Phase::Session,
        };
    }

    /// Skips messages up to the next Sync: one of the extended protocol has failed.
    pub fn skip_to_sync(&mut self) {
        self.skips = true;
    }

    /// The next message, if it was received as a whole.
    ///
    /// # Errors
    /// 08P01, 54000 and 0A000 for what ends the connection.
    pub fn take(&mut self) -> Result<Option<Incoming<'_>>> {
        if self.phase == Phase::Opening {
            let limit = self.limits.startup_bytes;
            let waiting = &self.bytes[self.used..];
            let Some((opening, length)) = Opening::split(waiting, limit)? else {
                return Ok(None);
            };
            self.used += length;
            return Ok(Some(Incoming::Opening(opening)));
        }
        let limit = match self.phase {
            Phase::Authentication => self.limits.startup_bytes,
            _ => self.limits.message_bytes,
        };
        loop {
            // The length is looked at again below: a frame that is handed out borrows the bytes.
            let Some(frame) = Frame::split(&self.bytes[self.used..], limit)? else {
                return Ok(None);
            };
            let (kind, length) = (frame.kind, frame.bytes());
            if !self.is_skipped(kind) {
                break;
            }
            self.used += length;
        }
        let (taken, after) = {
            let waiting = &self.bytes[self.used..];
            let frame = Frame::split(waiting, limit)?;
            let frame = frame.ok_or_else(|| Error::internal("a frame has gone"))?;
            self.before = self.used;
            self.used += frame.bytes();
            (frame, &waiting[frame.bytes()..])
        };
        let behind_sync = match taken.kind {
            b'E' => behind_sync(after, limit),
            _ => None,
        };
        Ok(Some(Incoming::Message(Received {
            message: taken.message(),
            is_extended: b"PBDECH".contains(&taken.kind),
            ends_pipeline: behind_sync.is_some(),
            is_followed: !behind_sync.unwrap_or(after).is_empty(),
        })))
    }

    /// Puts the message back that was taken last, to be taken again. Nothing was received since.
    pub fn put_back(&mut self) {
        self.used = self.before;
    }

    /// Whether a message of this type goes by without an effect.
    fn is_skipped(&mut self, kind: u8) -> bool {
        if matches!(kind, b'S' | b'X') && self.phase != Phase::Copy {
            self.skips = false;
        }
        match (self.phase, kind) {
            // Both mean nothing within the data, and clients send them before they know of an
            // error.
            (Phase::Copy, b'H' | b'S') => true,
            // What is left of data after an error.
            (Phase::Session, b'd' | b'c' | b'f') => true,
            _ => self.skips,
        }
    }
}

/// What is behind the Sync, if that is the first message which runs, prepares or asks for anything.
fn behind_sync(mut bytes: &[u8], limit: usize) -> Option<&[u8]> {
    while let Ok(Some(frame)) = Frame::split(bytes, limit) {
        let after = &bytes[frame.bytes()..];
        match frame.kind {
            b'S' => return Some(after),
            b'C' | b'D' => bytes = after,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::Execute;
    use kiln_storage::error::SqlState;

    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn session() -> Input {
        let mut input = Input::new(Limits::default());
        input.begin_session();
        input
    }

    fn next(input: &mut Input) -> Option<(Message<'_>, bool)> {
        match input.take().expect("there are frames") {
            Some(Incoming::Message(it)) => Some((it.message.expect("it is one"), it.ends_pipeline)),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    }

    const EXECUTE: Message<'_> = Message::Execute(Execute {
        portal: "",
        row_limit: 0,
    });

    #[test]
    fn an_error_skips_what_comes_before_the_sync() {
        let mut input = session();
        for (kind, body) in [
            (b'Q', &b"select 1\0"[..]),
            (b'E', b"\0\0\0\0\0"),
            (b'E', b"\0\0\0\0\0"),
            (b'H', b""),
            (b'S', b""),
            (b'E', b"\0\0\0\0\0"),
            (b'C', b"Pa\0"),
            (b'S', b""),
        ] {
            input.receive(&frame(kind, body));
        }
        assert_eq!(next(&mut input), Some((Message::Query("select 1"), false)));
        assert_eq!(next(&mut input), Some((EXECUTE, false)));
        input.skip_to_sync();
        assert_eq!(next(&mut input), Some((Message::Sync, false)));
        assert_eq!(next(&mut input), Some((EXECUTE, true)));
        input.put_back();
        assert_eq!(next(&mut input), Some((EXECUTE, true)));
    }

    #[test]
    fn bytes_are_taken_within_bounds() {
        let mut input = Input::new(Limits::default());
        assert_eq!(input.room(), 10_005);
        input.receive(&[0, 0, 1]);
        assert_eq!(input.room(), 10_002);
        assert_eq!(input.take(), Ok(None));
        let mut input = session();
        let long = frame(b'Q', &vec![b'x'; 1 << 20]);
        input.receive(&long[..100]);
        assert_eq!(input.room(), long.len() - 100);
        assert_eq!(input.take(), Ok(None));
        input.receive(&long[100..]);
        assert_eq!(input.room(), 0);
        let mut input = session();
        input.receive(b"Q\x7f\0\0\0");
        let refused = input.take().map_err(|error| error.state());
        assert_eq!(refused, Err(SqlState::PROGRAM_LIMIT_EXCEEDED));
    }

    #[test]
    fn what_is_left_of_data_is_skipped_after_copy() {
        let mut input = session();
        input.copies(true);
        for (kind, body) in [
            (b'd', &b"1\n"[..]),
            (b'H', b""),
            (b'd', b"2\n"),
            (b'c', b""),
        ] {
            input.receive(&frame(kind, body));
        }
        input.receive(&frame(b'S', b""));
        assert_eq!(next(&mut input), Some((Message::CopyData(b"1\n"), false)));
        input.copies(false);
        assert_eq!(next(&mut input), Some((Message::Flush, false)));
        assert_eq!(next(&mut input), Some((Message::Sync, false)));
        assert!(!input.has_waiting());
    }
}
