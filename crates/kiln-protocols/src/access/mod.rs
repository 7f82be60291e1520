//! Accesses: how one attempt of a transaction touches records. One folder a protocol.

pub mod serial;
pub mod silo;
pub mod two_phase_locking;
