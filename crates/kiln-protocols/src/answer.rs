//! Answers: what is kept of a call that has an idempotency key, so that it is answered and not run
//! when it is made again.

use std::fmt::Debug;

use kiln_procedure::{Frame, Program};

/// Writes down how a call is answered that has a key. What it has written goes to the listener of
/// the worker that commits the call, in the report of what the call wrote
/// ([`kiln_storage::journal`]).
pub trait AnswerWriter: Debug + Send + Sync {
    /// The call's key.
    fn key(&self) -> &[u8];

    /// Appends the answer to `target`: an attempt of the call has run `program` to its end, its
    /// rows are in `frame`, and it is about to commit. It may fail to, and then there is another
    /// one.
    fn write(&self, program: &Program, frame: &Frame, target: &mut Vec<u8>);

    /// The listener has the answer: the call commits. Not called for one that writes nothing.
    fn reported(&self);
}
