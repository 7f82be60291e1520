//! Durability: a log that keeps what is committed, and the acknowledgement that waits for it.
//!
//! Every answer that leaves the database waits until all is on disk that its transaction has
//! observed ([`Engine::await_durable`](crate::Engine::await_durable)): results, rejections and
//! reads alike. Tickets and queues of completions hold outcomes back; sessions, closures, loaders
//! and changes of the catalog wait in the thread of their caller.

mod backup;
mod checkpoint;
mod checkpointer;
mod log_to;
mod replay;
mod restore;

pub use replay::CallReplay;
pub use restore::Restoration;
