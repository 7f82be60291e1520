//! How calls end.

use kiln_storage::error::Error;

/// How a call ended. It never ends "please retry".
#[derive(Debug)]
pub enum Outcome {
    /// Its effects are there, all of them.
    Committed,
    /// The procedure raised an error; there are no effects.
    Rejected(Error),
    /// Its deadline passed; there are no effects.
    Expired,
}
