//! Types, schema, records, indexes and epochs.

pub mod error;
pub mod types;
