//! Why a transaction cannot start.

use kiln_protocols::{Outcome, broken_down};
use kiln_storage::error::Error;

use crate::errors::{closing, expired};

/// Why a worker slot may not start a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The database is being closed.
    Closing,
    /// A thread panicked inside a transaction.
    Broken,
    /// The deadline passed while waiting.
    Expired,
}

impl Refusal {
    #[cold]
    pub fn error(self) -> Error {
        match self {
            Refusal::Closing => closing(),
            Refusal::Broken => broken_down(),
            Refusal::Expired => expired(),
        }
    }

    #[cold]
    pub fn outcome(self) -> Outcome {
        match self {
            Refusal::Expired => Outcome::Expired,
            refusal => Outcome::Rejected(refusal.error()),
        }
    }
}
