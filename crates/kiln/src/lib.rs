//! A main-memory, multicore, serializable database for hot data.
