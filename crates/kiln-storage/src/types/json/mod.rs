//! JSON and JSONB.
//!
//! A JSON value is the text that was written. A JSONB value is a canonical text, the one that
//! PostgreSQL prints: members of an object are unique and ordered by length and then bytes,
//! numbers are written out, and blanks follow commas and colons alone.
//!
//! `serde_json` would keep neither the members of an object that have one key nor the texts of
//! numbers, unless each level were read again; both can be seen in SQL.

mod canonical;
mod compare;
mod error;
pub mod path;
mod reader;
mod write;

pub use canonical::{canonical, normal_number};
pub use compare::{compare, compare_texts, contains, normal_form};
pub use reader::{Json, Node, read, unescape};
pub use write::{pretty, quote, without_nulls, write};

#[cfg(test)]
mod tests;
