//! The kernel: what all doors of the database share ([`EngineInner`]), the gate, and the worker
//! slots on which transactions run. The doors are over it, and it names none of them.

mod block_memory;
mod blocks;
mod checkpoints;
mod gate;
mod inner;
mod log;
mod logged_call;
mod loss;
mod refusal;
mod replays;
mod slot_pool;
mod slot_user;
mod tallies;
mod token;
mod worker_slot;

pub(crate) use block_memory::{Budget, Kept};
pub(crate) use blocks::Bar;
pub use checkpoints::{CheckpointMetrics, CheckpointReport};
pub(crate) use gate::{Alone, BROKEN, Beside, CLOSING, NEVER};
pub(crate) use inner::{BlockClock, EngineInner, SeesCatalog, WatchedSession};
pub use log::ReadOnly;
pub(crate) use log::check_order;
pub use logged_call::LoggedCall;
pub(crate) use refusal::Refusal;
pub use replays::Replays;
pub(crate) use slot_pool::PooledSlot;
pub use slot_user::SlotUser;
pub(crate) use slot_user::SlotUsers;
pub(crate) use worker_slot::{ALONE_WAIT_NS, Repeated, WorkerSlot};
