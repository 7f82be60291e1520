//! What clients send: messages, looked at where the bytes lie.
//!
//! A message is a type, a length and a body. A wrong length or an unknown type ends the connection,
//! since nothing says where the next message begins. A body that is not what its type asks for is
//! an error like any other: the next message is known.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::text::utf8;

/// How long messages may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message before the client is authenticated; PostgreSQL's bound.
    pub startup_bytes: usize,
    /// Bytes of a message after that, except the data of COPY.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            startup_bytes: 10_000,
            message_bytes: 64 << 20,
        }
    }
}

/// The first thing that a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening<'a> {
    /// It would like to go on under TLS.
    Tls,
    /// It would like to go on under GSSAPI's encryption.
    Gss,
    /// It wants the statement of another connection cancelled.
    Cancel(CancelKey<'a>),
    /// It begins a session.
    Startup(Startup<'a>),
}

/// What a cancellation is asked with: BackendKeyData of the connection that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelKey<'a> {
    /// The number of the connection.
    pub process: u32,
    /// Its secret: 4 bytes under version 3.0, up to 256 since 3.2.
    pub secret: &'a [u8],
}

/// A startup message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Startup<'a> {
    /// The minor version of protocol 3 that the client speaks.
    pub minor: u16,
    parameters: &'a [u8],
}

impl<'a> Startup<'a> {
    /// Names and values, in the order in which they were sent.
    pub fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut body = Body(self.parameters);
        // They were read once when the message was decoded.
        std::iter::from_fn(move || {
            let name = body.text().ok().filter(|name| !name.is_empty())?;
            Some((name, body.text().ok()?))
        })
    }

    /// The value of the first parameter with this name.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

/// A message of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Statements in one text.
    Query(&'a str),
    /// A statement to be prepared.
    Parse(Parse<'a>),
    /// A statement to be bound to values.
    Bind(Bind<'a>),
    /// What has a statement or a portal?
    Describe(Target<'a>),
    /// A portal to be run.
    Execute(Execute<'a>),
    /// A statement or a portal that is not needed any more.
    Close(Target<'a>),
    /// All answers so far are wanted now.
    Flush,
    /// The end of a pipeline.
    Sync,
    /// Data of COPY.
    CopyData(&'a [u8]),
    /// The end of COPY's data.
    CopyDone,
    /// The client gives COPY up, for this reason.
    CopyFail(&'a str),
    /// A call of a function by its number, which no client of this century sends.
    FunctionCall,
    /// What authentication asked for: a password, or a step of SASL.
    Password(&'a [u8]),
    /// The client goes.
    Terminate,
}

/// A statement to be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// What it will be called; empty for the unnamed statement.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    types: &'a [u8],
}

impl<'a> Parse<'a> {
    /// The types of the first parameters, as numbers of PostgreSQL's types; 0 where one is to be
    /// inferred.
    pub fn types(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        let (types, _) = self.types.as_chunks::<4>();
        types.iter().map(|oid| u32::from_be_bytes(*oid))
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As people write it.
    #[default]
    Text,
    /// As PostgreSQL's `send` functions do.
    Binary,
}

/// The formats of several values: none for text, one for all, or one for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats<'a>(&'a [u8]);

impl Formats<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// Whether there is none: then all is text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The format of the value at a position.
    pub fn of(&self, position: usize) -> Format {
        let at = if self.len() == 1 { 0 } else { position };
        match self.0.get(2 * at + 1) {
            Some(1) => Format::Binary,
            _ => Format::Text,
        }
    }

    /// Checks that these are formats for `count` values.
    ///
    /// # Errors
    /// 08P01 for another number of formats.
    pub fn check(&self, count: usize, what: &str) -> Result<()> {
        let formats = self.len();
        match formats <= 1 || formats == count {
            true => Ok(()),
            false => Err(violation(format!(
                "bind message has {formats} {what} formats but {count} {what}s"
            ))),
        }
    }
}

/// A statement to be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// What the portal will be called; empty for the unnamed portal.
    pub portal: &'a str,
    /// The statement.
    pub statement: &'a str,
    /// How the values are written.
    pub formats: Formats<'a>,
    /// How the rows are wanted.
    pub result_formats: Formats<'a>,
    count: u16,
    values: &'a [u8],
}

impl<'a> Bind<'a> {
    /// The values; `None` for NULL.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut body = Body(self.values);
        // The values were read once when the message was decoded.
        (0..self.count).map(move |_| body.value().ok().flatten())
    }
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A statement with this name.
    Statement(&'a str),
    /// A portal with this name.
    Portal(&'a str),
}

/// A portal to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The portal.
    pub portal: &'a str,
    /// How many rows at most; 0 for all.
    pub row_limit: usize,
}

/// A message in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The type.
    pub kind: u8,
    /// What the length covers.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The bytes of the whole message.
    pub fn bytes(&self) -> usize {
        self.body.len() + 5
    }

    /// The frame at the start of `bytes`; `None` as long as it is not there as a whole.
    ///
    /// # Errors
    /// 08P01 for what is no frame, and 54000 for one that is too long: nothing can be read after
    /// it.
    pub fn split(bytes: &'a [u8], limit: usize) -> Result<Option<Frame<'a>>> {
        let Some((&kind, rest)) = bytes.split_first() else {
            return Ok(None);
        };
        if !b"QPBDECHSdcfFpX".contains(&kind) {
            return Err(violation(format!("invalid frontend message type {kind}")));
        }
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let Some(length) = body_length(*length) else {
            return Err(violation("invalid message length".to_owned()));
        };
        if length > limit {
            return Err(too_long(length, limit));
        }
        Ok(rest.get(..length).map(|body| Frame { kind, body }))
    }

    /// What the message says.
    ///
    /// # Errors
    /// 08P01 for a body that its type does not have, 22021 for text that is not UTF-8.
    pub fn message(&self) -> Result<Message<'a>> {
        let mut body = Body(self.body);
        let message = match self.kind {
            b'Q' => Message::Query(body.text()?),
            b'P' => Message::Parse(Parse {
                name: body.text()?,
                text: body.text()?,
                types: body.counted(4)?,
            }),
            b'B' => {
                let (portal, statement) = (body.text()?, body.text()?);
                let formats = body.formats()?;
                let count = body.count()?;
                let values = body.0;
                for _ in 0..count {
                    body.value()?;
                }
                let values = &values[..values.len() - body.0.len()];
                formats.check(usize::from(count), "parameter")?;
                Message::Bind(Bind {
                    portal,
                    statement,
                    formats,
                    result_formats: body.formats()?,
                    count,
                    values,
                })
            }
            b'D' => Message::Describe(body.target()?),
            b'C' => Message::Close(body.target()?),
            b'E' => Message::Execute(Execute {
                portal: body.text()?,
                // Below 1 is without a limit, as in PostgreSQL.
                row_limit: i32::from_be_bytes(body.array()?).max(0) as usize,
            }),
            b'H' => Message::Flush,
            b'S' => Message::Sync,
            b'd' => return Ok(Message::CopyData(self.body)),
            b'c' => Message::CopyDone,
            b'f' => Message::CopyFail(body.text()?),
            b'F' => return Ok(Message::FunctionCall),
            b'p' => return Ok(Message::Password(self.body)),
            _ => Message::Terminate,
        };
        match body.0.is_empty() {
            true => Ok(message),
            false => Err(malformed()),
        }
    }
}

/// The number in a startup message's place of the version that asks for TLS.
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const CANCEL: u32 = 80_877_102;

impl<'a> Opening<'a> {
    /// The first message at the start of `bytes`, and how many bytes it has; `None` as long as it
    /// is not there as a whole.
    ///
    /// # Errors
    /// 08P01 for what no client of PostgreSQL says, 0A000 for another major version.
    pub fn split(bytes: &'a [u8], limit: usize) -> Result<Option<(Opening<'a>, usize)>> {
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = body_length(*length).filter(|length| (4..=limit).contains(length));
        let Some(length) = length else {
            return Err(violation("invalid length of startup packet".to_owned()));
        };
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let mut body = Body(body);
        let version = u32::from_be_bytes(body.array()?);
        let opening = match version {
            TLS => Opening::Tls,
            GSS => Opening::Gss,
            CANCEL => {
                let process = u32::from_be_bytes(body.array()?);
                let secret = std::mem::take(&mut body.0);
                if !(4..=256).contains(&secret.len()) {
                    return Err(violation(
                        "invalid length of cancel request packet".to_owned(),
                    ));
                }
                Opening::Cancel(CancelKey { process, secret })
            }
            _ if version >> 16 == 3 => {
                let parameters = body.0;
                while !body.text().map_err(|_| layout())?.is_empty() {
                    body.text().map_err(|_| layout())?;
                }
                Opening::Startup(Startup {
                    minor: version as u16,
                    parameters,
                })
            }
            _ => {
                let message = format!(
                    "unsupported frontend protocol {}.{}: server supports 3.0 to 3.2",
                    version >> 16,
                    version & 0xffff
                );
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        };
        match body.0.is_empty() {
            true => Ok(Some((opening, 4 + length))),
            false => Err(layout()),
        }
    }
}

/// How long the body is behind a length, which counts itself.
fn body_length(length: [u8; 4]) -> Option<usize> {
    u32::from_be_bytes(length)
        .checked_sub(4)
        .filter(|length| *length <= i32::MAX as u32)
        .map(|length| length as usize)
}

/// What is left of a body.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A text up to its NUL.
    fn text(&mut self) -> Result<&'a str> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = self.bytes(end.ok_or_else(malformed)?)?;
        self.0 = &self.0[1..];
        utf8(text)
    }

    fn count(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// As many things of this size as a count says.
    fn counted(&mut self, size: usize) -> Result<&'a [u8]> {
        let count = usize::from(self.count()?);
        self.bytes(count * size)
    }

    fn formats(&mut self) -> Result<Formats<'a>> {
        let formats = self.counted(2)?;
        let (codes, _) = formats.as_chunks::<2>();
        for code in codes {
            if !matches!(code, [0, 0 | 1]) {
                let code = i16::from_be_bytes(*code);
                let message = format!("unsupported format code: {code}");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        Ok(Formats(formats))
    }

    fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match i32::from_be_bytes(self.array()?) {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| malformed())?;
                self.bytes(length).map(Some)
            }
        }
    }

    fn target(&mut self) -> Result<Target<'a>> {
        match self.array::<1>()? {
            [b'S'] => Ok(Target::Statement(self.text()?)),
            [b'P'] => Ok(Target::Portal(self.text()?)),
            _ => Err(malformed()),
        }
    }
}

/// 08P01.
#[cold]
pub fn violation(message: String) -> Error {
    Error::new(SqlState::PROTOCOL_VIOLATION, message)
}

#[cold]
fn malformed() -> Error {
    violation("invalid message format".to_owned())
}

#[cold]
fn layout() -> Error {
    violation("invalid startup packet layout: expected terminator as last byte".to_owned())
}

#[cold]
fn too_long(length: usize, limit: usize) -> Error {
    let message = format!("a message of {length} bytes is longer than {limit}");
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    /// The state of what a whole frame is refused with.
    fn refusal(kind: u8, body: &[u8]) -> String {
        let bytes = frame(kind, body);
        let split = Frame::split(&bytes, 1_000).expect("it is a frame");
        let message = split.expect("it is whole").message();
        message.expect_err("it is malformed").state().to_string()
    }

    #[test]
    fn a_bind_has_its_values_and_formats() {
        let body = b"p\0s\0\0\x02\0\0\0\x01\0\x02\0\0\0\x0212\xff\xff\xff\xff\0\x01\0\x01";
        let bytes = frame(b'B', body);
        let split = Frame::split(&bytes, 1_000).expect("it is a frame");
        let Ok(Message::Bind(bind)) = split.expect("it is whole").message() else {
            panic!("it is a bind");
        };
        assert_eq!((bind.portal, bind.statement), ("p", "s"));
        assert_eq!(bind.values().collect::<Vec<_>>(), [Some(&b"12"[..]), None]);
        let formats = [bind.formats.of(0), bind.formats.of(1)];
        assert_eq!(formats, [Format::Text, Format::Binary]);
        assert_eq!(bind.result_formats.of(7), Format::Binary, "one for all");
    }

    #[test]
    fn what_is_malformed_is_refused_by_name() {
        for (kind, body) in [
            (b'Q', &b"select 1"[..]),
            (b'Q', b"select 1\0more\0"),
            (b'P', b"a\0select 1\0"),
            (b'P', b"a\0select 1\0\0\x02\0\0\0\x17"),
            (b'B', b"\0\0\0\0\0\x01\0\0\0\x09ab"),
            (b'B', b"\0\0\0\x02\0\0\0\0\0\x01\0\0\0\0\0\0"),
            (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
            (b'D', b"Xa\0"),
            (b'E', b"a\0\0\0\0"),
            (b'S', b"x"),
            (b'C', b""),
        ] {
            assert_eq!(
                refusal(kind, body),
                "08P01",
                "{} {body:?}",
                char::from(kind)
            );
        }
        assert_eq!(refusal(b'B', b"\0\0\0\x01\0\x02\0\0\0\0"), "22023");
        assert_eq!(refusal(b'Q', b"\xff\0"), "22021");
    }

    #[test]
    fn a_frame_is_whole_or_awaited_or_refused_before_its_bytes_are_there() {
        let bytes = frame(b'Q', b"select 1\0");
        for end in 0..bytes.len() {
            assert_eq!(Frame::split(&bytes[..end], 1_000), Ok(None));
        }
        assert!(Frame::split(&bytes, 1_000).is_ok_and(|frame| frame.is_some()));
        fn refused(bytes: &[u8]) -> std::result::Result<Option<Frame<'_>>, SqlState> {
            Frame::split(bytes, 1_000).map_err(|error| error.state())
        }
        assert_eq!(
            refused(b"Q\x40\0\0\0"),
            Err(SqlState::PROGRAM_LIMIT_EXCEEDED)
        );
        assert_eq!(
            refused(b"Q\xff\xff\xff\xff"),
            Err(SqlState::PROTOCOL_VIOLATION)
        );
        assert_eq!(refused(b"Q\0\0\0\x03"), Err(SqlState::PROTOCOL_VIOLATION));
        assert_eq!(
            refused(b"GET / HTTP/1.1"),
            Err(SqlState::PROTOCOL_VIOLATION)
        );
    }

    #[test]
    fn the_first_message_says_what_the_client_wants() {
        let mut bytes = vec![0, 0, 0, 0, 0, 3, 0, 2];
        bytes.extend_from_slice(b"user\0ada\0database\0kiln\0\0");
        bytes[3] = bytes.len() as u8;
        let whole = Opening::split(&bytes, 1_000);
        let Ok(Some((Opening::Startup(startup), length))) = whole else {
            panic!("it is a startup message");
        };
        assert_eq!((startup.minor, length), (2, bytes.len()));
        assert_eq!(startup.parameter("database"), Some("kiln"));
        assert_eq!(startup.parameters().count(), 2);
        for end in 0..bytes.len() {
            assert_eq!(Opening::split(&bytes[..end], 1_000), Ok(None));
        }
        type Split<'a> = std::result::Result<Option<(Opening<'a>, usize)>, SqlState>;
        fn state(bytes: &[u8]) -> Split<'_> {
            Opening::split(bytes, 1_000).map_err(|error| error.state())
        }
        assert_eq!(
            state(&[0, 0, 0, 8, 4, 210, 22, 47]),
            Ok(Some((Opening::Tls, 8)))
        );
        let cancel = [0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 0, 7, 1, 2, 3, 4];
        let secret = &[1, 2, 3, 4];
        let key = CancelKey { process: 7, secret };
        assert_eq!(state(&cancel), Ok(Some((Opening::Cancel(key), 16))));
        let violation = Err(SqlState::PROTOCOL_VIOLATION);
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            &[0x16, 3, 1, 2, 0],
            &[0, 0, 0, 4],
            &[0, 0, 0, 12, 0, 3, 0, 0, b'u', 0, b'x', b'y'],
            &[0, 0, 0, 10, 0, 3, 0, 0, 0, 0],
        ] {
            assert_eq!(state(bytes), violation, "{bytes:?}");
        }
        let second = [0, 0, 0, 8, 0, 2, 0, 0];
        assert_eq!(state(&second), Err(SqlState::FEATURE_NOT_SUPPORTED));
    }
}
