//! The kernel: what all doors of the database share ([`Shared`]), the gate, and the seats on which
//! transactions run. The doors are over it, and it names none of them.

mod block_memory;
mod blocks;
mod checkpoints;
mod gate;
mod log;
mod logged_call;
mod loss;
mod refusal;
mod replays;
mod seat;
mod seat_user;
mod shared;
mod slots;
mod tallies;
mod token;

pub(crate) use block_memory::{Budget, Kept};
pub(crate) use blocks::Bar;
pub use checkpoints::{CheckpointMetrics, CheckpointReport};
pub(crate) use gate::{Alone, BROKEN, Beside, CLOSING, NEVER};
pub use log::ReadOnly;
pub(crate) use log::check_order;
pub use logged_call::LoggedCall;
pub(crate) use refusal::Refusal;
pub use replays::Replays;
pub(crate) use seat::{ALONE_WAIT_NS, Repeated, Seat};
pub use seat_user::SeatUser;
pub(crate) use seat_user::SeatUsers;
pub(crate) use shared::{BlockClock, SeesCatalog, Shared, WatchedSession};
pub(crate) use slots::PooledSeat;
