//! PostgreSQL as the oracle: the snippets, the server that answers them, Kiln's answers, and what
//! is compared.

#![allow(
    dead_code,
    reason = "each test that includes this module uses a part of it"
)]

pub mod corpus;
pub mod harness;
pub mod kiln;
pub mod outcome;
pub mod random;
pub mod server;
