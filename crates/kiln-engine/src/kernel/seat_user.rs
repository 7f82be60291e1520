//! Who runs transactions on a seat, for reports.

use std::fmt;

use kiln_platform::atomic::{AtomicU64, Ordering};

/// The user of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeatUser {
    /// The engine itself.
    Engine,
    /// The worker thread at this position.
    Worker(usize),
    /// The driver at this position.
    Driver(usize),
    /// The session with this number ([`Session::number`](crate::Session::number)).
    Session(u64),
    /// A closure that runs as a transaction, or a loader.
    Closure,
}

impl fmt::Display for SeatUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeatUser::Engine => f.write_str("the engine"),
            SeatUser::Worker(position) => write!(f, "worker {position}"),
            SeatUser::Driver(position) => write!(f, "driver {position}"),
            SeatUser::Session(number) => write!(f, "session {number}"),
            SeatUser::Closure => f.write_str("a closure or a loader"),
        }
    }
}

/// The users of the seats, by their participants' slots.
pub(crate) struct SeatUsers(Box<[AtomicU64]>);

impl SeatUsers {
    /// For participants in slots below this one; all are the engine's.
    pub fn new(slots: usize) -> SeatUsers {
        SeatUsers((0..slots).map(|_| AtomicU64::new(0)).collect())
    }

    /// Notes that the participant in this slot runs the transactions of `user`.
    pub fn set(&self, slot: usize, user: SeatUser) {
        let (kind, number) = match user {
            SeatUser::Engine => (0, 0),
            SeatUser::Worker(position) => (1, position as u64),
            SeatUser::Driver(position) => (2, position as u64),
            SeatUser::Session(number) => (3, number),
            SeatUser::Closure => (4, 0),
        };
        // Relaxed: for reports, which may be some moments old.
        self.0[slot].store(kind | number << 3, Ordering::Relaxed);
    }

    /// The user that runs the transactions of the participant in this slot.
    pub fn of(&self, slot: usize) -> SeatUser {
        let word = self.0[slot].load(Ordering::Relaxed);
        let number = word >> 3;
        match word & 7 {
            0 => SeatUser::Engine,
            1 => SeatUser::Worker(number as usize),
            2 => SeatUser::Driver(number as usize),
            3 => SeatUser::Session(number),
            _ => SeatUser::Closure,
        }
    }
}
