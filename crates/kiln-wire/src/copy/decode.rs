//! Rows read from COPY's data.

use std::ops::Range;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Style, Value};

use super::{Layout, Options, SIGNATURE};
use crate::format::{decode_binary, decode_text};

/// Bytes of a row: as many as a message may have by default.
const ROW_BYTES_MAX: usize = 64 << 20;

/// A column that is read.
#[derive(Debug)]
struct Column {
    name: String,
    data_type: DataType,
    is_not_null: bool,
    is_null_quoted: bool,
}

/// Reads rows from pieces of data. It keeps what it was given of a row that is not whole, and no
/// more.
#[derive(Debug)]
pub struct Decoder {
    options: Options,
    columns: Vec<Column>,
    /// What was received and is not used from `used` on.
    bytes: Vec<u8>,
    used: usize,
    /// Where the search for the end of the row goes on, and whether that is within quotes or behind
    /// an escape.
    searched: usize,
    is_quoted: bool,
    is_escaped: bool,
    /// Whether lines end with a carriage return too, when one was read.
    has_returns: Option<bool>,
    /// Whether what comes before the rows was read.
    has_started: bool,
    /// Whether the mark for the end of the data was read.
    has_ended: bool,
    /// Whether all data were received.
    is_whole: bool,
    /// In which line, from 1, the row begins that was read last, and the one after it; binary data
    /// have a row a line.
    line: u64,
    next_line: u64,
    style: Style<'static>,
}

impl Decoder {
    /// A decoder of rows with columns of these names and types.
    ///
    /// # Errors
    /// 42703 when the options name other columns.
    pub fn new(options: Options, columns: &[(&str, &DataType)]) -> Result<Decoder> {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let not_null = options.force_not_null.among(&names)?;
        let null = options.force_null.among(&names)?;
        let forced = not_null.into_iter().zip(null);
        let columns = columns.iter().zip(forced);
        let columns = columns.map(
            |((name, data_type), (is_not_null, is_null_quoted))| Column {
                name: (*name).to_owned(),
                data_type: (*data_type).clone(),
                is_not_null,
                is_null_quoted,
            },
        );
        Ok(Decoder {
            columns: columns.collect(),
            has_started: options.layout != Layout::Binary && !options.header,
            options,
            bytes: Vec::new(),
            used: 0,
            searched: 0,
            is_quoted: false,
            is_escaped: false,
            has_returns: None,
            has_ended: false,
            is_whole: false,
            line: 0,
            next_line: 1,
            style: Style::default(),
        })
    }

    /// Reads texts in the style of a session.
    pub fn in_style(self, style: Style<'static>) -> Decoder {
        Decoder { style, ..self }
    }

    /// Takes a piece of the data.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.has_ended {
            return;
        }
        self.bytes.drain(..self.used);
        self.searched -= self.used;
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// All data were received: what is left is the last row, if it is one.
    pub fn finish(&mut self) {
        self.is_whole = true;
    }

    /// The line in which the row begins that was read last, or that an error is about.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next row into `values`; says no when it is not whole, or there is none.
    ///
    /// # Errors
    /// 22P04 for data that are not as they should be, 22021 for what is no text, 22P02 and its like
    /// for a value that is none of its type, 54000 for a row that is too long.
    pub fn next(&mut self, values: &mut Vec<Value>) -> Result<bool> {
        values.clear();
        if self.has_ended {
            return Ok(false);
        }
        let read = match self.options.layout {
            Layout::Binary => self.next_binary(values),
            Layout::Text | Layout::Csv => self.next_line(values),
        }?;
        if !read && self.bytes.len() - self.used > ROW_BYTES_MAX {
            self.line = self.next_line;
            let message = format!("a row of COPY has more than {ROW_BYTES_MAX} bytes");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(read)
    }

    fn next_line(&mut self, values: &mut Vec<Value>) -> Result<bool> {
        loop {
            let Some(line) = self.take_line()? else {
                return Ok(false);
            };
            let (line, style) = (&self.bytes[line], &self.style);
            if line == b"\\." {
                self.has_ended = true;
                return Ok(false);
            }
            let mut fields = Fields {
                options: &self.options,
                line,
                at: 0,
                has_next: true,
            };
            if std::mem::replace(&mut self.has_started, true) {
                fields.read(&self.columns, |column, text| {
                    let value = text.map(|text| {
                        let decoded = decode_text(text, &column.data_type, style);
                        decoded.map_err(|error| of_column(error, column))
                    });
                    values.push(value.transpose()?.unwrap_or(Value::Null));
                    Ok(())
                })?;
                return Ok(true);
            }
            if self.options.matches_header {
                fields.read(&self.columns, |column, name| {
                    if name == Some(column.name.as_bytes()) {
                        return Ok(());
                    }
                    let name = String::from_utf8_lossy(name.unwrap_or(b"NULL"));
                    Err(malformed(format!(
                        "column name mismatch in header line: got \"{name}\", expected \"{}\"",
                        column.name
                    )))
                })?;
            }
        }
    }

    /// Where the next line is, without its end.
    fn take_line(&mut self) -> Result<Option<Range<usize>>> {
        let is_csv = self.options.layout == Layout::Csv;
        let Options { quote, escape, .. } = self.options;
        let mut end = None;
        while let Some(byte) = self.bytes.get(self.searched) {
            self.searched += 1;
            match *byte {
                b'\n' if !self.is_quoted && !self.is_escaped => {
                    end = Some(self.searched - 1);
                    break;
                }
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if !is_csv => self.is_escaped = true,
                // What is escaped with itself is the end of quotes and their beginning.
                byte if is_csv && byte == quote => self.is_quoted = !self.is_quoted,
                byte if is_csv && self.is_quoted && byte == escape => self.is_escaped = true,
                _ => {}
            }
        }
        let start = self.used;
        if end.is_none() && (!self.is_whole || start == self.bytes.len()) {
            return Ok(None);
        }
        self.line = self.next_line;
        if std::mem::take(&mut self.is_quoted) {
            return Err(malformed("unterminated CSV quoted field".to_owned()));
        }
        self.is_escaped = false;
        let mut line = start..end.unwrap_or(self.bytes.len());
        let ends = self.bytes[line.clone()].iter();
        self.next_line += 1 + ends.filter(|byte| **byte == b'\n').count() as u64;
        self.used = self.searched;
        let has_return = self.bytes[line.clone()].last() == Some(&b'\r');
        let has_returns = match end {
            Some(_) => *self.has_returns.get_or_insert(has_return),
            // The last line may end without any.
            None => self.has_returns == Some(true) && has_return,
        };
        match (has_returns, has_return) {
            (true, true) => line.end -= 1,
            (false, false) => {}
            (true, false) => {
                let error = malformed("literal newline found in data".to_owned());
                return Err(error.with_hint("Use \"\\n\" to represent newline."));
            }
            (false, true) => {
                let error = malformed("literal carriage return found in data".to_owned());
                return Err(error.with_hint("Use \"\\r\" to represent carriage return."));
            }
        }
        Ok(Some(line))
    }

    fn next_binary(&mut self, values: &mut Vec<Value>) -> Result<bool> {
        if !self.has_started && !self.start_binary()? {
            return Ok(false);
        }
        let mut reader = Reader(&self.bytes[self.used..]);
        if self.is_whole && reader.0.is_empty() {
            return Ok(false);
        }
        let read = reader.row(&self.columns, values);
        let left = reader.0.len();
        let Some(outcome) = read else {
            values.clear();
            return match self.is_whole {
                true => Err(malformed("unexpected EOF in COPY data".to_owned())),
                false => Ok(false),
            };
        };
        self.line = self.next_line;
        let is_row = outcome?;
        self.has_ended = !is_row;
        self.next_line += 1;
        self.used = self.bytes.len() - left;
        self.searched = self.used;
        Ok(is_row)
    }

    /// Reads what comes before binary rows, if it is there.
    fn start_binary(&mut self) -> Result<bool> {
        let refused = |what| {
            Err(malformed(format!(
                "COPY file signature not recognized{what}"
            )))
        };
        let known = self.bytes.len().min(SIGNATURE.len());
        if self.bytes[..known] != SIGNATURE[..known] {
            return refused("");
        }
        let mut reader = Reader(&self.bytes[known..]);
        let Some((flags, extension)) = reader.i32().zip(reader.i32()) else {
            return match self.is_whole {
                true => refused(": it ends too early"),
                false => Ok(false),
            };
        };
        // PostgreSQL's bits from 16 on change the meaning of what follows.
        if flags as u32 >> 16 != 0 {
            return Err(malformed(
                "unrecognized critical flags in COPY file header".to_owned(),
            ));
        }
        let length = usize::try_from(extension).ok();
        let Some(length) = length.filter(|length| *length <= ROW_BYTES_MAX) else {
            return Err(malformed("invalid COPY file header".to_owned()));
        };
        if reader.0.len() < length {
            return Ok(false);
        }
        self.used = SIGNATURE.len() + 8 + length;
        self.searched = self.used;
        self.has_started = true;
        Ok(true)
    }
}

/// The columns of a line, one after the other.
struct Fields<'a> {
    options: &'a Options,
    line: &'a [u8],
    at: usize,
    /// Whether another one follows, which may be empty.
    has_next: bool,
}

impl Fields<'_> {
    /// Gives each column's text, `None` for NULL.
    fn read<'c>(
        &mut self,
        columns: &'c [Column],
        mut take: impl FnMut(&'c Column, Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let mut plain = Vec::new();
        if columns.is_empty() && self.line.is_empty() {
            return Ok(());
        }
        for column in columns {
            if !self.has_next {
                let name = &column.name;
                return Err(malformed(format!("missing data for column \"{name}\"")));
            }
            plain.clear();
            let is_null = match self.options.layout {
                Layout::Csv => {
                    let is_quoted = self.csv(&mut plain);
                    let may_be_null = match is_quoted {
                        true => column.is_null_quoted,
                        false => !column.is_not_null,
                    };
                    may_be_null && plain == self.options.null.as_bytes()
                }
                _ => self.text(&mut plain)?,
            };
            take(column, (!is_null).then_some(&plain))?;
        }
        match self.has_next {
            true => Err(malformed(
                "extra data after last expected column".to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.line.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    /// Reads a column of CSV; says whether any of it is within quotes.
    fn csv(&mut self, plain: &mut Vec<u8>) -> bool {
        let Options {
            delimiter,
            quote,
            escape,
            ..
        } = *self.options;
        let mut was_quoted = false;
        self.has_next = false;
        while let Some(byte) = self.byte() {
            if byte == delimiter {
                self.has_next = true;
                break;
            }
            if byte != quote {
                plain.push(byte);
                continue;
            }
            was_quoted = true;
            while let Some(byte) = self.byte() {
                let next = self.line.get(self.at).copied();
                if byte == escape && (next == Some(quote) || next == Some(escape)) {
                    plain.extend(next);
                    self.at += 1;
                } else if byte == quote {
                    break;
                } else {
                    plain.push(byte);
                }
            }
        }
        was_quoted
    }

    /// Reads a column of text; says whether it is NULL.
    fn text(&mut self, plain: &mut Vec<u8>) -> Result<bool> {
        let start = self.at;
        let mut end = self.line.len();
        self.has_next = false;
        while let Some(byte) = self.byte() {
            if byte == self.options.delimiter {
                (end, self.has_next) = (self.at - 1, true);
                break;
            }
            if byte != b'\\' {
                plain.push(byte);
                continue;
            }
            let Some(letter) = self.byte() else {
                // A backslash at the end of the data stands for itself.
                plain.push(b'\\');
                break;
            };
            plain.push(match letter {
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0b,
                b'0'..=b'7' => self.digits(letter - b'0', 8, 2),
                b'x' if self.digit(16).is_some() => self.digits(0, 16, 2),
                other => other,
            });
        }
        Ok(&self.line[start..end] == self.options.null.as_bytes())
    }

    /// The digit that comes next, if one does.
    fn digit(&self, radix: u32) -> Option<u8> {
        let digit = char::from(*self.line.get(self.at)?).to_digit(radix)?;
        Some(digit as u8)
    }

    /// A byte of some digits more.
    fn digits(&mut self, first: u8, radix: u8, most: usize) -> u8 {
        let mut byte = first;
        for _ in 0..most {
            let Some(digit) = self.digit(radix.into()) else {
                break;
            };
            self.at += 1;
            byte = byte.wrapping_mul(radix).wrapping_add(digit);
        }
        byte
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn i16(&mut self) -> Option<i16> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i16::from_be_bytes(*bytes))
    }

    fn i32(&mut self) -> Option<i32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_be_bytes(*bytes))
    }

    /// Reads a row; `None` when it is not whole, and no for the end of the rows.
    fn row(&mut self, columns: &[Column], values: &mut Vec<Value>) -> Option<Result<bool>> {
        let count = self.i16()?;
        if count == -1 {
            return Some(Ok(false));
        }
        if usize::try_from(count) != Ok(columns.len()) {
            let expected = columns.len();
            let message = format!("row field count is {count}, expected {expected}");
            return Some(Err(malformed(message)));
        }
        for column in columns {
            let length = self.i32()?;
            if length == -1 {
                values.push(Value::Null);
                continue;
            }
            let length = usize::try_from(length).ok();
            let Some(length) = length.filter(|length| *length <= ROW_BYTES_MAX) else {
                return Some(Err(malformed("invalid field size".to_owned())));
            };
            let (bytes, rest) = self.0.split_at_checked(length)?;
            self.0 = rest;
            match decode_binary(bytes, &column.data_type) {
                Ok(value) => values.push(value),
                Err(error) => return Some(Err(of_column(error, column))),
            }
        }
        Some(Ok(true))
    }
}

fn of_column(error: Error, column: &Column) -> Error {
    error.with_context(format!("column {}", column.name))
}

#[cold]
fn malformed(message: String) -> Error {
    Error::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}
