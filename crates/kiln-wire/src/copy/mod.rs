//! COPY's data: rows as text, as CSV and in binary, of which the client sends pieces that end
//! anywhere.
//!
//! | format | a row | NULL |
//! |---|---|---|
//! | text | a line; columns between tabs; `\b \f \n \r \t \v`, `\` and three octal or two hexadecimal digits, `\` before anything else for itself | `\N` |
//! | csv | a line, but for line ends within quotes; columns between commas; a quote within quotes is doubled | nothing, without quotes |
//! | binary | number of columns 2; each with its length 4 and its bytes | the length -1 |
//!
//! Binary data begins with `PGCOPY\n`, 0xff, `\r\n`, 0, flags 4 and the length of an extension 4,
//! and ends with a number of columns of -1. Source: PostgreSQL's manual, COPY, "File Formats".

mod decode;
mod encode;
mod options;

pub use decode::Decoder;
pub use encode::Encoder;
pub use options::{Columns, Layout, Options};

/// How binary data begin.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

#[cfg(test)]
mod tests;
