//! PostgreSQL as the oracle: the snippets, the server that answers them, and what is compared.

pub mod corpus;
pub mod outcome;
pub mod server;
