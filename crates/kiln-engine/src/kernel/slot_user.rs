//! Who runs transactions on a worker slot, for reports.

use std::fmt;

use kiln_platform::atomic::{AtomicU64, Ordering};

/// The user of a worker slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotUser {
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

impl fmt::Display for SlotUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotUser::Engine => f.write_str("the engine"),
            SlotUser::Worker(position) => write!(f, "worker {position}"),
            SlotUser::Driver(position) => write!(f, "driver {position}"),
            SlotUser::Session(number) => write!(f, "session {number}"),
            SlotUser::Closure => f.write_str("a closure or a loader"),
        }
    }
}

/// The users of the worker slots, by their participants' slots.
pub(crate) struct SlotUsers(Box<[AtomicU64]>);

impl SlotUsers {
    /// For participants in slots below this one; all are the engine's.
    pub fn new(slots: usize) -> SlotUsers {
        SlotUsers((0..slots).map(|_| AtomicU64::new(0)).collect())
    }

    /// Notes that the participant in this slot runs the transactions of `user`.
    pub fn set(&self, slot: usize, user: SlotUser) {
        let (kind, number) = match user {
            SlotUser::Engine => (0, 0),
            SlotUser::Worker(position) => (1, position as u64),
            SlotUser::Driver(position) => (2, position as u64),
            SlotUser::Session(number) => (3, number),
            SlotUser::Closure => (4, 0),
        };
        // Relaxed: for reports, which may be some moments old.
        self.0[slot].store(kind | number << 3, Ordering::Relaxed);
    }

    /// The user that runs the transactions of the participant in this slot.
    pub fn of(&self, slot: usize) -> SlotUser {
        let word = self.0[slot].load(Ordering::Relaxed);
        let number = word >> 3;
        match word & 7 {
            0 => SlotUser::Engine,
            1 => SlotUser::Worker(number as usize),
            2 => SlotUser::Driver(number as usize),
            3 => SlotUser::Session(number),
            _ => SlotUser::Closure,
        }
    }
}
