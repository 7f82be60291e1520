//! PostgreSQL's frontend/backend protocol, version 3, as a state machine without I/O: bytes in,
//! requests out; answers in, bytes out.
//!
//! - [`frontend`] decodes what clients send, within limits, and says what it may not be;
//! - [`backend`] encodes what a server answers;
//! - [`client`] is the other side: what clients send, and how they read answers;
//! - [`connection`] is the order of both: startup, authentication, statements, what an error skips;
//! - [`format`](mod@format) has the text and binary formats of values;
//! - [`copy`] has the formats of COPY's data: text, CSV, binary.
//!
//! The messages are those of PostgreSQL's manual, "Message Formats" (chapter 55.7 of version 17),
//! and are our own for these reasons. The types of the crate `pgwire` 0.42 need 140 other crates
//! and tokio; a Parse without its count of types or a Bind that ends within a value makes its
//! decoder panic, text that is not UTF-8 is replaced silently, and each Bind allocates its names
//! and values (64 ns a message of a prepared statement's three). Here a message is looked at where
//! the bytes lie.

pub mod backend;
pub mod client;
pub mod connection;
pub mod copy;
pub mod format;
pub mod frontend;
