//! Strings and bytes: pattern matching, character functions, and text in and out of BYTEA and
//! UUID. Positions and lengths count characters, as in PostgreSQL with UTF-8.

mod binary;

pub use binary::{format_bytea, format_bytea_escape, format_uuid, parse_bytea, parse_uuid};
