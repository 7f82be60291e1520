//! Rows written as COPY's data.

use kiln_storage::error::Result;
use kiln_storage::types::{DataType, Style, Value};

use super::{Layout, Options, SIGNATURE};
use crate::format::{encode_binary, encode_text};

/// Writes rows.
#[derive(Debug)]
pub struct Encoder {
    options: Options,
    /// Columns whose values have quotes always.
    quoted: Vec<bool>,
    /// A value without quotes and escapes.
    plain: Vec<u8>,
    style: Style<'static>,
}

impl Encoder {
    /// An encoder of rows with columns of these names.
    ///
    /// # Errors
    /// 42703 when the options name other columns.
    pub fn new(options: Options, columns: &[&str]) -> Result<Encoder> {
        Ok(Encoder {
            quoted: options.force_quote.among(columns)?,
            options,
            plain: Vec::new(),
            style: Style::default(),
        })
    }

    /// Writes texts in the style of a session.
    pub fn in_style(self, style: Style<'static>) -> Encoder {
        Encoder { style, ..self }
    }

    /// Appends what comes before the rows, which may be nothing.
    pub fn start(&mut self, columns: &[&str], bytes: &mut Vec<u8>) {
        match self.options.layout {
            Layout::Binary => {
                bytes.extend_from_slice(SIGNATURE);
                bytes.extend_from_slice(&[0; 8]);
            }
            Layout::Text | Layout::Csv if self.options.header => {
                for (column, name) in columns.iter().enumerate() {
                    self.plain.clear();
                    self.plain.extend_from_slice(name.as_bytes());
                    self.delimit(column, bytes);
                    self.put(false, columns.len() == 1, bytes);
                }
                bytes.push(b'\n');
            }
            Layout::Text | Layout::Csv => {}
        }
    }

    /// Appends a row of values of these types.
    pub fn row(&mut self, values: &[Value], types: &[&DataType], bytes: &mut Vec<u8>) {
        if self.options.layout == Layout::Binary {
            bytes.extend_from_slice(&(values.len() as i16).to_be_bytes());
            for (value, data_type) in values.iter().zip(types) {
                let at = bytes.len();
                bytes.extend_from_slice(&(-1_i32).to_be_bytes());
                if !value.is_null() {
                    encode_binary(value, data_type, bytes);
                    let length = (bytes.len() - at - 4) as i32;
                    bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
                }
            }
            return;
        }
        for (column, (value, data_type)) in values.iter().zip(types).enumerate() {
            self.delimit(column, bytes);
            if value.is_null() {
                bytes.extend_from_slice(self.options.null.as_bytes());
                continue;
            }
            self.plain.clear();
            encode_text(value, data_type, &self.style, &mut self.plain);
            let is_quoted = self.quoted.get(column).copied().unwrap_or_default();
            self.put(is_quoted, values.len() == 1, bytes);
        }
        bytes.push(b'\n');
    }

    /// Appends what comes after the rows, which may be nothing.
    pub fn end(&self, bytes: &mut Vec<u8>) {
        if self.options.layout == Layout::Binary {
            bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        }
    }

    fn delimit(&self, column: usize, bytes: &mut Vec<u8>) {
        if column > 0 {
            bytes.push(self.options.delimiter);
        }
    }

    /// Appends the plain value with the quotes or escapes that it needs.
    fn put(&self, is_quoted: bool, is_alone: bool, bytes: &mut Vec<u8>) {
        let Options {
            delimiter,
            null,
            quote,
            escape,
            ..
        } = &self.options;
        if self.options.layout == Layout::Csv {
            let is_special = |byte: &u8| [*delimiter, *quote, b'\n', b'\r'].contains(byte);
            // Alone on its line it would be the end of the data.
            let is_end = is_alone && self.plain == b"\\.";
            let is_null = self.plain == null.as_bytes();
            if !(is_quoted || is_null || is_end || self.plain.iter().any(is_special)) {
                return bytes.extend_from_slice(&self.plain);
            }
            bytes.push(*quote);
            for byte in &self.plain {
                if byte == quote || byte == escape {
                    bytes.push(*escape);
                }
                bytes.push(*byte);
            }
            return bytes.push(*quote);
        }
        for byte in &self.plain {
            let letter = match byte {
                0x08 => b'b',
                0x0c => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x0b => b'v',
                b'\\' => b'\\',
                byte if byte == delimiter => *byte,
                byte => {
                    bytes.push(*byte);
                    continue;
                }
            };
            bytes.extend_from_slice(&[b'\\', letter]);
        }
    }
}
