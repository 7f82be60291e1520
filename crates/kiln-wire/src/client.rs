//! The client's side: what it sends, and what it reads of the answers. For programs that talk to a
//! server, tests among them.

use kiln_storage::error::Result;

use crate::backend::TransactionStatus;
use crate::frontend::{Format, Target, violation};

/// What a client has to send.
#[derive(Debug, Default)]
pub struct Requests {
    bytes: Vec<u8>,
}

impl Requests {
    /// What was appended since the last time.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> &mut Requests {
        self.bytes.push(kind);
        self.framed(write)
    }

    fn framed(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Requests {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(&mut self.bytes);
        let length = (self.bytes.len() - at) as u32;
        self.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
        self
    }

    /// Begins a session under protocol 3 with this minor version.
    pub fn startup(&mut self, minor: u16, parameters: &[(&str, &str)]) -> &mut Requests {
        self.framed(|bytes| {
            bytes.extend_from_slice(&(3 << 16 | u32::from(minor)).to_be_bytes());
            for (name, value) in parameters {
                put_text(bytes, name);
                put_text(bytes, value);
            }
            bytes.push(0);
        })
    }

    /// Asks for TLS.
    pub fn tls(&mut self) -> &mut Requests {
        self.framed(|bytes| bytes.extend_from_slice(&80_877_103_u32.to_be_bytes()))
    }

    /// Asks for the statement of another connection to be cancelled.
    pub fn cancel(&mut self, process: u32, secret: &[u8]) -> &mut Requests {
        self.framed(|bytes| {
            bytes.extend_from_slice(&80_877_102_u32.to_be_bytes());
            bytes.extend_from_slice(&process.to_be_bytes());
            bytes.extend_from_slice(secret);
        })
    }

    /// What authentication asked for.
    pub fn password(&mut self, data: &[u8]) -> &mut Requests {
        self.message(b'p', |bytes| bytes.extend_from_slice(data))
    }

    /// Statements in one text.
    pub fn query(&mut self, text: &str) -> &mut Requests {
        self.message(b'Q', |bytes| put_text(bytes, text))
    }

    /// A statement to be prepared, with the types of its first parameters.
    pub fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> &mut Requests {
        self.message(b'P', |bytes| {
            put_text(bytes, name);
            put_text(bytes, text);
            put_count(bytes, types.len());
            for oid in types {
                bytes.extend_from_slice(&oid.to_be_bytes());
            }
        })
    }

    /// A statement to be bound to values, which are all written in one format.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        (format, values): (Format, &[Option<&[u8]>]),
        result_format: Format,
    ) -> &mut Requests {
        let code = |format| u16::from(format == Format::Binary).to_be_bytes();
        self.message(b'B', |bytes| {
            put_text(bytes, portal);
            put_text(bytes, statement);
            put_count(bytes, 1);
            bytes.extend_from_slice(&code(format));
            put_count(bytes, values.len());
            for value in values {
                let length = value.map_or(-1, |value| value.len() as i32);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(value.unwrap_or_default());
            }
            put_count(bytes, 1);
            bytes.extend_from_slice(&code(result_format));
        })
    }

    /// Asks what a statement or a portal has.
    pub fn describe(&mut self, target: Target<'_>) -> &mut Requests {
        self.message(b'D', |bytes| put_target(bytes, target))
    }

    /// Gives up a statement or a portal.
    pub fn close(&mut self, target: Target<'_>) -> &mut Requests {
        self.message(b'C', |bytes| put_target(bytes, target))
    }

    /// Runs a portal, for so many rows or, with 0, for all.
    pub fn execute(&mut self, portal: &str, row_limit: u32) -> &mut Requests {
        self.message(b'E', |bytes| {
            put_text(bytes, portal);
            bytes.extend_from_slice(&row_limit.to_be_bytes());
        })
    }

    /// Wants the answers so far.
    pub fn flush(&mut self) -> &mut Requests {
        self.message(b'H', |_| {})
    }

    /// Ends a pipeline.
    pub fn sync(&mut self) -> &mut Requests {
        self.message(b'S', |_| {})
    }

    /// A piece of COPY's data.
    pub fn copy_data(&mut self, data: &[u8]) -> &mut Requests {
        self.message(b'd', |bytes| bytes.extend_from_slice(data))
    }

    /// The end of COPY's data.
    pub fn copy_done(&mut self) -> &mut Requests {
        self.message(b'c', |_| {})
    }

    /// Gives COPY up.
    pub fn copy_fail(&mut self, reason: &str) -> &mut Requests {
        self.message(b'f', |bytes| put_text(bytes, reason))
    }

    /// A message of this type with any body.
    pub fn raw(&mut self, kind: u8, body: &[u8]) -> &mut Requests {
        self.message(kind, |bytes| bytes.extend_from_slice(body))
    }

    /// Goes.
    pub fn terminate(&mut self) -> &mut Requests {
        self.message(b'X', |_| {})
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend_from_slice(&(count as u16).to_be_bytes());
}

fn put_target(bytes: &mut Vec<u8>, target: Target<'_>) {
    let (kind, name) = match target {
        Target::Statement(name) => (b'S', name),
        Target::Portal(name) => (b'P', name),
    };
    bytes.push(kind);
    put_text(bytes, name);
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A step of authentication: its number and its data; 0 is the end.
    Authentication(u32, Vec<u8>),
    /// BackendKeyData.
    KeyData(u32, Vec<u8>),
    /// A setting.
    ParameterStatus(String, String),
    /// The newest minor version that the server speaks, and how many options it does not know.
    NegotiateVersion(u32, u32),
    /// ReadyForQuery.
    Ready(TransactionStatus),
    /// ParseComplete.
    ParseComplete,
    /// BindComplete.
    BindComplete,
    /// CloseComplete.
    CloseComplete,
    /// NoData.
    NoData,
    /// PortalSuspended.
    PortalSuspended,
    /// EmptyQueryResponse.
    EmptyQuery,
    /// The types of parameters.
    ParameterDescription(Vec<u32>),
    /// The columns' names, types and formats.
    RowDescription(Vec<(String, u32, Format)>),
    /// A row's values.
    Row(Vec<Option<Vec<u8>>>),
    /// The tag of a statement that is done.
    CommandComplete(String),
    /// COPY's data is wanted, in so many columns.
    CopyIn(Format, usize),
    /// COPY's data follows, in so many columns.
    CopyOut(Format, usize),
    /// A piece of COPY's data.
    CopyData(Vec<u8>),
    /// The end of COPY's data.
    CopyDone,
    /// An error's fields.
    Error(Fields),
    /// A notice's fields.
    Notice(Fields),
    /// Another session's word to those that listen: its number, the channel, the word.
    Notification(u32, String, String),
}

/// The fields of an error or a notice, by their letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<(u8, String)>);

impl Fields {
    /// A field's text; empty if it is not there.
    pub fn get(&self, field: u8) -> &str {
        let field = self.0.iter().find(|(known, _)| *known == field);
        field.map_or("", |(_, text)| text)
    }
}

impl Answer {
    /// The answer at the start of `bytes`, and how many bytes it has; `None` as long as it is not
    /// there as a whole.
    ///
    /// # Errors
    /// 08P01 for what no server says.
    pub fn split(bytes: &[u8]) -> Result<Option<(Answer, usize)>> {
        let Some((&kind, rest)) = bytes.split_first() else {
            return Ok(None);
        };
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        let length = length.checked_sub(4).ok_or_else(wrong)?;
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let mut body = Body(body);
        let answer = Answer::read(kind, &mut body).filter(|_| body.0.is_empty());
        let answer = answer.ok_or_else(|| {
            violation(format!(
                "the server sent a malformed message of type {kind}"
            ))
        })?;
        Ok(Some((answer, 5 + length)))
    }

    fn read(kind: u8, body: &mut Body<'_>) -> Option<Answer> {
        Some(match kind {
            b'R' => Answer::Authentication(body.u32()?, body.rest()),
            b'K' => Answer::KeyData(body.u32()?, body.rest()),
            b'S' => Answer::ParameterStatus(body.text()?, body.text()?),
            b'v' => {
                let (version, count) = (body.u32()?, body.u32()?);
                for _ in 0..count {
                    body.text()?;
                }
                Answer::NegotiateVersion(version & 0xffff, count)
            }
            b'Z' => Answer::Ready(match body.bytes(1)? {
                b"I" => TransactionStatus::Idle,
                b"T" => TransactionStatus::Open,
                b"E" => TransactionStatus::Failed,
                _ => return None,
            }),
            b'1' => Answer::ParseComplete,
            b'2' => Answer::BindComplete,
            b'3' => Answer::CloseComplete,
            b'n' => Answer::NoData,
            b's' => Answer::PortalSuspended,
            b'I' => Answer::EmptyQuery,
            b't' => {
                let count = body.u16()?;
                Answer::ParameterDescription((0..count).map(|_| body.u32()).collect::<Option<_>>()?)
            }
            b'T' => {
                let count = body.u16()?;
                let mut columns = Vec::new();
                for _ in 0..count {
                    let name = body.text()?;
                    body.bytes(6)?;
                    let oid = body.u32()?;
                    body.bytes(6)?;
                    columns.push((name, oid, body.format()?));
                }
                Answer::RowDescription(columns)
            }
            b'D' => {
                let count = body.u16()?;
                let mut values = Vec::new();
                for _ in 0..count {
                    values.push(match body.u32()? as i32 {
                        -1 => None,
                        length => Some(body.bytes(usize::try_from(length).ok()?)?.to_vec()),
                    });
                }
                Answer::Row(values)
            }
            b'C' => Answer::CommandComplete(body.text()?),
            b'G' | b'H' => {
                let format = match body.bytes(1)? {
                    [0] => Format::Text,
                    _ => Format::Binary,
                };
                let columns = usize::from(body.u16()?);
                body.bytes(2 * columns)?;
                match kind {
                    b'G' => Answer::CopyIn(format, columns),
                    _ => Answer::CopyOut(format, columns),
                }
            }
            b'd' => Answer::CopyData(body.rest()),
            b'c' => Answer::CopyDone,
            b'E' => Answer::Error(body.fields()?),
            b'N' => Answer::Notice(body.fields()?),
            b'A' => Answer::Notification(body.u32()?, body.text()?, body.text()?),
            _ => return None,
        })
    }
}

fn wrong() -> kiln_storage::error::Error {
    violation("the server sent a message of an impossible length".to_owned())
}

struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }

    fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    fn u16(&mut self) -> Option<u16> {
        let (word, rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*word))
    }

    fn format(&mut self) -> Option<Format> {
        match self.u16()? {
            0 => Some(Format::Text),
            1 => Some(Format::Binary),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.bytes(end)?;
        self.bytes(1)?;
        String::from_utf8(text.to_vec()).ok()
    }

    fn fields(&mut self) -> Option<Fields> {
        let mut fields = Vec::new();
        loop {
            match self.bytes(1)? {
                [0] => return Some(Fields(fields)),
                [field] => fields.push((*field, self.text()?)),
                _ => return None,
            }
        }
    }
}
