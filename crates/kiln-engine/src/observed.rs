//! What the outcome of a transaction rests on.

use kiln_storage::error::{Error, Result};
use kiln_storage::log_epoch::LogEpoch;

/// How a transaction ended, and what has to be durable before that may be told.
#[derive(Clone, Debug)]
pub struct Observed<T> {
    /// How it ended.
    pub result: Result<T>,
    /// The log epoch that was current when the transaction had ended: all that it read or wrote
    /// belongs to this epoch or an earlier one, also where it was rejected.
    pub epoch: LogEpoch,
}

impl<T> Observed<T> {
    /// An error that tells nothing of what is in the database.
    pub(crate) fn nothing(error: Error) -> Observed<T> {
        Observed {
            result: Err(error),
            epoch: LogEpoch::default(),
        }
    }
}
