//! PostgreSQL's SQL and PL/pgSQL, compiled to the procedure IR.

pub mod parse;
