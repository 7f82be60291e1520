//! Why an attempt ends before its commit, and why an operation is not done.

use kiln_storage::error::Error;

/// Why an attempt failed and must be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AbortCause {
    /// A record that was read has changed since.
    ReadValidation,
    /// A record was inserted into a range that was read.
    Phantom,
    /// A record to be read was locked by a writer.
    ReadLock,
    /// A record to be written was locked by another transaction.
    WriteLock,
    /// Another transaction inserts, deletes or moves a record with the same key.
    KeyInTransit,
    /// The transactions that it would wait for wait for it.
    Deadlock,
    /// A lock was held by an older transaction, and the younger one does not wait.
    Died,
    /// A lock was not to be had in the time that the call, or any wait, may take.
    LockTimeout,
    /// The attempt met a record that was not in its plan, and could not have it.
    FootprintMiss,
    /// The attempt waited for a lock in a core slot that other workers wanted, with more workers
    /// than cores.
    GaveWay,
}

impl AbortCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [AbortCause; 10] = [
        AbortCause::ReadValidation,
        AbortCause::Phantom,
        AbortCause::ReadLock,
        AbortCause::WriteLock,
        AbortCause::KeyInTransit,
        AbortCause::Deadlock,
        AbortCause::Died,
        AbortCause::LockTimeout,
        AbortCause::FootprintMiss,
        AbortCause::GaveWay,
    ];

    /// Its number: its position in [`AbortCause::ALL`].
    #[inline]
    pub fn number(self) -> usize {
        let position = AbortCause::ALL.iter().position(|known| *known == self);
        position.expect("every cause is listed")
    }

    /// A short name for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            AbortCause::ReadValidation => "read_validation",
            AbortCause::Phantom => "phantom",
            AbortCause::ReadLock => "read_lock",
            AbortCause::WriteLock => "write_lock",
            AbortCause::KeyInTransit => "key_in_transit",
            AbortCause::Deadlock => "deadlock",
            AbortCause::Died => "died",
            AbortCause::LockTimeout => "lock_timeout",
            AbortCause::FootprintMiss => "footprint_miss",
            AbortCause::GaveWay => "gave_way",
        }
    }
}

/// Why an attempt stopped before its end.
#[derive(Debug)]
pub enum Stop {
    /// It must be repeated.
    Abort(AbortCause),
    /// The procedure raised an error; repeating it would raise it again.
    Raise(Error),
}

impl From<AbortCause> for Stop {
    #[inline(always)]
    fn from(cause: AbortCause) -> Stop {
        Stop::Abort(cause)
    }
}

impl From<Error> for Stop {
    #[inline(always)]
    fn from(error: Error) -> Stop {
        Stop::Raise(error)
    }
}

/// Why an operation was not done.
#[derive(Debug)]
pub enum Halt {
    /// The attempt stops.
    Stop(Stop),
    /// The operation belongs to another thread, and the attempt travels there. It is not over: the
    /// executor leaves off before the operation, which is begun anew by
    /// [`Executor::resume`](crate::Executor::resume).
    Leaves,
}

impl From<Stop> for Halt {
    #[inline(always)]
    fn from(stop: Stop) -> Halt {
        Halt::Stop(stop)
    }
}

impl From<AbortCause> for Halt {
    #[inline(always)]
    fn from(cause: AbortCause) -> Halt {
        Halt::Stop(Stop::Abort(cause))
    }
}

impl From<Error> for Halt {
    #[inline(always)]
    fn from(error: Error) -> Halt {
        Halt::Stop(Stop::Raise(error))
    }
}
