//! Types, schema, records, indexes and epochs.
