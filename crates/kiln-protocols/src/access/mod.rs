//! Accesses: how one attempt of a transaction touches records. One folder a protocol, or a kind
//! of locking that several schedulers use.

pub mod granted_locking;
pub mod healing;
pub mod hybrid;
pub mod mocc;
pub mod mvcc;
pub mod none;
pub mod occ;
pub mod partition_locking;
pub mod planned_locking;
pub mod range_locking;
pub mod serial;
pub mod silo;
pub mod tictoc;
pub mod two_phase_locking;
