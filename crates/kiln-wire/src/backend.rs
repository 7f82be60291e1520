//! What a server answers, appended to one buffer: so a whole pipeline is answered with one write.

use kiln_storage::error::{Error, Position};

use crate::frontend::Format;

/// Whether a transaction block is open, as ReadyForQuery says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// None is.
    Idle,
    /// One is.
    Open,
    /// One is that has failed.
    Failed,
}

/// A column as RowDescription has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// The number of the table that it shows a column of, and the column's in it; zeros otherwise.
    pub origin: (u32, i16),
    /// The number of its type.
    pub type_oid: u32,
    /// The bytes of a value, or -1 where they vary.
    pub type_length: i16,
    /// What the type was declared with, or -1.
    pub type_modifier: i32,
    /// How its values are written.
    pub format: Format,
}

/// Severity of what is neither an answer nor the end of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The statement has failed.
    Error,
    /// The connection ends.
    Fatal,
}

/// Ways to authenticate that a client is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationStep<'a> {
    /// The client is who it says.
    Ok,
    /// It may choose among these mechanisms.
    Sasl(&'a [&'a str]),
    /// The server's part of an exchange.
    SaslContinue(&'a [u8]),
    /// The end of an exchange.
    SaslFinal(&'a [u8]),
}

/// Answers that were not sent yet.
#[derive(Debug, Default)]
pub struct Answers {
    bytes: Vec<u8>,
    /// Bytes at the start that were sent.
    sent: usize,
}

/// The memory that an idle connection's answers keep.
const KEPT_BYTES: usize = 1 << 10;

impl Answers {
    /// What is to be sent.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// How much there is to be sent.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether all was sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that so many bytes were sent.
    pub fn consume(&mut self, count: usize) {
        self.sent += count;
        debug_assert!(self.sent <= self.bytes.len(), "only what is there is sent");
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
        }
    }

    /// Forgets what was appended since there were so many bytes.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(self.sent + length);
    }

    /// Moves what another has to the end of this.
    pub fn append(&mut self, other: &mut Answers) {
        if self.is_empty() {
            std::mem::swap(self, other);
        } else {
            self.bytes.extend_from_slice(other.pending());
        }
        *other = Answers::default();
    }

    /// Appends a message whose body `write` appends.
    fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.begin(kind);
        write(&mut self.bytes);
        self.end(at);
    }

    fn begin(&mut self, kind: u8) -> usize {
        self.bytes.push(kind);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        at
    }

    /// Writes the length of the message that began at `at`.
    fn end(&mut self, at: usize) {
        let length = self.bytes.len() - at;
        // A value has at most a gibibyte, and so has a row.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// The answer to a request for encryption: one byte and no message. `S` goes on under it, `N`
    /// is no.
    pub fn encryption(&mut self, is_taken: bool) {
        self.bytes.push(if is_taken { b'S' } else { b'N' });
    }

    /// A step of authentication.
    pub fn authentication(&mut self, step: AuthenticationStep<'_>) {
        self.message(b'R', |bytes| match step {
            AuthenticationStep::Ok => put_i32(bytes, 0),
            AuthenticationStep::Sasl(mechanisms) => {
                put_i32(bytes, 10);
                for mechanism in mechanisms {
                    put_text(bytes, mechanism);
                }
                bytes.push(0);
            }
            AuthenticationStep::SaslContinue(data) => {
                put_i32(bytes, 11);
                bytes.extend_from_slice(data);
            }
            AuthenticationStep::SaslFinal(data) => {
                put_i32(bytes, 12);
                bytes.extend_from_slice(data);
            }
        });
    }

    /// That of the protocol's minor versions this is the newest here, and that these options are
    /// not known.
    pub fn negotiate_version<'a>(&mut self, minor: u16, unknown: impl Iterator<Item = &'a str>) {
        self.message(b'v', |bytes| {
            put_i32(bytes, 3 << 16 | i32::from(minor));
            let at = bytes.len();
            put_i32(bytes, 0);
            let mut count = 0;
            for option in unknown {
                put_text(bytes, option);
                count += 1;
            }
            bytes[at..at + 4].copy_from_slice(&i32::to_be_bytes(count));
        });
    }

    /// A setting that clients want to know of.
    pub fn parameter_status(&mut self, name: &str, value: &str) {
        self.message(b'S', |bytes| {
            put_text(bytes, name);
            put_text(bytes, value);
        });
    }

    /// What a cancellation has to name.
    pub fn backend_key_data(&mut self, process: u32, secret: &[u8]) {
        self.message(b'K', |bytes| {
            bytes.extend_from_slice(&process.to_be_bytes());
            bytes.extend_from_slice(secret);
        });
    }

    /// What a transaction of the session with this number has told on a channel to which the client
    /// listens.
    pub fn notification(&mut self, process: u32, channel: &str, payload: &str) {
        self.message(b'A', |bytes| {
            bytes.extend_from_slice(&process.to_be_bytes());
            put_text(bytes, channel);
            put_text(bytes, payload);
        });
    }

    /// The server waits for the next statement.
    pub fn ready(&mut self, status: TransactionStatus) {
        self.message(b'Z', |bytes| {
            bytes.push(match status {
                TransactionStatus::Idle => b'I',
                TransactionStatus::Open => b'T',
                TransactionStatus::Failed => b'E',
            });
        });
    }

    /// Parse is done.
    pub fn parse_complete(&mut self) {
        self.message(b'1', |_| {});
    }

    /// Bind is done.
    pub fn bind_complete(&mut self) {
        self.message(b'2', |_| {});
    }

    /// Close is done.
    pub fn close_complete(&mut self) {
        self.message(b'3', |_| {});
    }

    /// What was described has no rows.
    pub fn no_data(&mut self) {
        self.message(b'n', |_| {});
    }

    /// The row limit ended an execution.
    pub fn portal_suspended(&mut self) {
        self.message(b's', |_| {});
    }

    /// The text had no statement.
    pub fn empty_query(&mut self) {
        self.message(b'I', |_| {});
    }

    /// The types of a statement's parameters.
    pub fn parameter_description(&mut self, types: impl ExactSizeIterator<Item = u32>) {
        self.message(b't', |bytes| {
            put_count(bytes, types.len());
            types.for_each(|oid| bytes.extend_from_slice(&oid.to_be_bytes()));
        });
    }

    /// The columns of the rows that follow, or would.
    pub fn row_description<'a>(&mut self, fields: impl ExactSizeIterator<Item = Field<'a>>) {
        self.message(b'T', |bytes| {
            put_count(bytes, fields.len());
            for field in fields {
                put_text(bytes, field.name);
                bytes.extend_from_slice(&field.origin.0.to_be_bytes());
                bytes.extend_from_slice(&field.origin.1.to_be_bytes());
                bytes.extend_from_slice(&field.type_oid.to_be_bytes());
                bytes.extend_from_slice(&field.type_length.to_be_bytes());
                bytes.extend_from_slice(&field.type_modifier.to_be_bytes());
                put_format(bytes, field.format);
            }
        });
    }

    /// A row, whose values `write` appends one after the other.
    pub fn row(&mut self, columns: usize, write: impl FnOnce(&mut RowWriter<'_>)) {
        self.message(b'D', |bytes| {
            put_count(bytes, columns);
            let mut row = RowWriter {
                bytes,
                left: columns,
            };
            write(&mut row);
            debug_assert_eq!(row.left, 0, "a row has a value for each column");
        });
    }

    /// A statement is done.
    pub fn command_complete(&mut self, tag: &str) {
        self.message(b'C', |bytes| put_text(bytes, tag));
    }

    /// The client is to send COPY's data, of so many columns.
    pub fn copy_in(&mut self, format: Format, columns: usize) {
        self.copy(b'G', format, columns);
    }

    /// COPY's data follows, of so many columns.
    pub fn copy_out(&mut self, format: Format, columns: usize) {
        self.copy(b'H', format, columns);
    }

    fn copy(&mut self, kind: u8, format: Format, columns: usize) {
        self.message(kind, |bytes| {
            bytes.push(u8::from(format == Format::Binary));
            put_count(bytes, columns);
            (0..columns).for_each(|_| put_format(bytes, format));
        });
    }

    /// A piece of COPY's data.
    pub fn copy_data(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.message(b'd', write);
    }

    /// The end of COPY's data.
    pub fn copy_done(&mut self) {
        self.message(b'c', |_| {});
    }

    /// An error. Its place is counted in characters of `text`, the statement that it is about.
    pub fn error(&mut self, severity: Severity, error: &Error, text: Option<&str>) {
        let severity = match severity {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        };
        self.message(b'E', |bytes| {
            put_field(bytes, b'S', severity);
            put_field(bytes, b'V', severity);
            put_field(bytes, b'C', error.state().as_str());
            put_field(bytes, b'M', error.message());
            if let Some(detail) = error.detail() {
                put_field(bytes, b'D', detail);
            }
            if let Some(hint) = error.hint() {
                put_field(bytes, b'H', hint);
            }
            let place = text.zip(error.position());
            if let Some(place) = place.and_then(|(text, position)| characters_to(text, position)) {
                put_field(bytes, b'P', &place.to_string());
            }
            if let Some(context) = error.context() {
                put_field(bytes, b'W', context);
            }
            let subject = error.subject();
            for (field, name) in [
                (b's', &subject.schema),
                (b't', &subject.table),
                (b'c', &subject.column),
                (b'd', &subject.data_type),
                (b'n', &subject.constraint),
            ] {
                if let Some(name) = name {
                    put_field(bytes, field, name);
                }
            }
            bytes.push(0);
        });
    }

    /// A message below the level of an error, which is called `level` as in PostgreSQL.
    pub fn notice(&mut self, level: &str, state: &str, message: &str) {
        self.message(b'N', |bytes| {
            put_field(bytes, b'S', level);
            put_field(bytes, b'V', level);
            put_field(bytes, b'C', state);
            put_field(bytes, b'M', message);
            bytes.push(0);
        });
    }
}

/// The values of a row, one after the other.
pub struct RowWriter<'a> {
    bytes: &'a mut Vec<u8>,
    left: usize,
}

impl RowWriter<'_> {
    /// NULL.
    pub fn null(&mut self) {
        self.left -= 1;
        put_i32(self.bytes, -1);
    }

    /// A value, which `write` appends.
    pub fn value(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.left -= 1;
        let at = self.bytes.len();
        put_i32(self.bytes, 0);
        write(self.bytes);
        let length = i32::try_from(self.bytes.len() - at - 4).unwrap_or(i32::MAX);
        self.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

fn put_i32(bytes: &mut Vec<u8>, value: i32) {
    bytes.extend_from_slice(&value.to_be_bytes());
}

/// A count of columns or parameters: statements have at most 65,535.
fn put_count(bytes: &mut Vec<u8>, count: usize) {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&count.to_be_bytes());
}

fn put_format(bytes: &mut Vec<u8>, format: Format) {
    bytes.extend_from_slice(&u16::from(format == Format::Binary).to_be_bytes());
}

/// A text up to its NUL. One of its own would end it.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let text = text.split('\0').next().unwrap_or_default();
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

fn put_field(bytes: &mut Vec<u8>, field: u8, text: &str) {
    bytes.push(field);
    put_text(bytes, text);
}

/// The number of the character at a position, counted from 1; `None` for one that the text does not
/// have.
fn characters_to(text: &str, position: Position) -> Option<usize> {
    let lines = usize::try_from(position.line.checked_sub(1)?).ok()?;
    let before: usize = text
        .split_inclusive('\n')
        .take(lines)
        .map(|line| line.chars().count())
        .sum();
    let place = before + usize::try_from(position.column).ok()?;
    (place > 0 && place <= text.chars().count() + 1).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_storage::error::SqlState;

    #[test]
    fn a_row_has_its_values_behind_their_lengths() {
        let mut answers = Answers::default();
        answers.row(2, |row| {
            row.value(|bytes| bytes.extend_from_slice(b"42"));
            row.null();
        });
        let expected = b"D\0\0\0\x10\0\x02\0\0\0\x0242\xff\xff\xff\xff";
        assert_eq!(answers.pending(), expected);
        answers.consume(5);
        assert_eq!(answers.len(), expected.len() - 5);
        answers.consume(expected.len() - 5);
        assert!(answers.is_empty());
    }

    #[test]
    fn an_error_says_where_it_is_in_characters() {
        let mut answers = Answers::default();
        let error = Error::new(SqlState::SYNTAX_ERROR, "no").at(2, 3);
        answers.error(Severity::Error, &error, Some("séléct\n  x"));
        let text = String::from_utf8_lossy(answers.pending()).into_owned();
        assert!(text.contains("C42601\0Mno\0P10\0\0"), "{text:?}");
        answers.consume(answers.len());
        answers.error(Severity::Fatal, &error, None);
        let text = String::from_utf8_lossy(answers.pending()).into_owned();
        assert!(
            text.contains("SFATAL\0VFATAL\0") && !text.contains('P'),
            "{text:?}"
        );
    }
}
