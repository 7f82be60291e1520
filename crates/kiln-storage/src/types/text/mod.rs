//! Strings and bytes: pattern matching, character functions, and text in and out of BYTEA and
//! UUID. Positions and lengths count characters, as in PostgreSQL with UTF-8; letter case is that
//! of the C collation, which knows ASCII only.

mod binary;
mod encoding;
mod function;
mod like;

pub use binary::{
    decode, encode, format_bytea, format_bytea_escape, format_uuid, parse_bytea, parse_uuid,
};
pub use encoding::{Encoding, not_utf8, utf8};
pub use function::{
    Side, ascii, character_length, chr, initcap, left, lower, overlay, pad_left, pad_right,
    position, repeat, replace, reverse, right, split_part, starts_with, substring, translate, trim,
    upper,
};
pub use like::LikePattern;
