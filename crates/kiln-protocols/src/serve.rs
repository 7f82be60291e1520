//! Serving: calls that a worker asks for itself, so that it can have several in flight.
//!
//! Under some protocols a transaction that cannot run yet is put aside, and its worker does
//! something else meanwhile. Such a *pipelined* worker is not handed one call after the other: it
//! asks for the next one whenever it has room, and says which has ended, in any order. Workers of
//! the other protocols are asked to run a call and return.
//!
//! # The end of it
//!
//! [`Worker::serve`](crate::Worker::serve) returns when it was told [`Next::Pause`], or found that
//! [`Calls::is_over`], and nothing of what it drew is in flight. A change of the catalog lets all
//! workers pause, and waits until each has returned. A protocol some of whose workers serve the
//! others keeps these inside until the others have drained; so all of them are told to pause at the
//! same time.
//!
//! A call may wait for a row of an open block, which lasts as long as its client thinks. A change
//! of the catalog need not wait for that: [`Calls::takes_back`] says so, and the worker hands such
//! calls back. It draws them anew when it serves again.

use kiln_platform::sync::Arc;
use kiln_procedure::{Arguments, Frame, Interrupt, Program};

use crate::{AnswerWriter, Outcome, broken_down};

/// What there is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A call; it is in the [`Call`].
    Call,
    /// No call at present.
    Nothing,
    /// No call any more: finish what is in flight, then return.
    Pause,
}

/// A call to be served. Its memory is used again for later ones.
#[derive(Debug, Default)]
pub struct Call {
    /// What is called; there once the call was drawn.
    pub program: Option<Arc<Program>>,
    /// The arguments, bound to the program.
    pub arguments: Arguments,
    /// When it must have ended, in nanoseconds of [`kiln_platform::time::now_ns`], if ever.
    pub deadline_ns: Option<u64>,
    /// Asks it to end before its time, where a client can.
    pub interrupt: Option<Interrupt>,
    /// What is reported with what it wrote, if it has an idempotency key.
    pub answer: Option<Arc<dyn AnswerWriter>>,
    /// What its drawer calls it.
    pub ticket: u64,
    /// Set by the worker: whether the history that is recorded has no room for another call.
    pub is_history_full: bool,
}

impl Call {
    /// Makes it a call of `program`. Programs are shared by all workers, so the count of their
    /// owners is left alone where the last call was of the same one.
    #[inline]
    pub fn set_program(&mut self, program: &Arc<Program>) {
        match &self.program {
            Some(known) if Arc::ptr_eq(known, program) => {}
            _ => self.program = Some(program.clone()),
        }
    }
}

/// Where a worker's calls come from, and where their outcomes go. One virtual call a call.
pub trait Calls {
    /// Puts the next call into `call`, if there is one. Not asked again after [`Next::Pause`].
    fn next(&mut self, call: &mut Call) -> Next;

    /// Whether there is no call any more, for workers that ask for none.
    fn is_over(&mut self) -> bool;

    /// Whether the calls that wait here wait for this worker alone: then it draws them whatever its
    /// role is.
    fn is_bound(&self) -> bool {
        false
    }

    /// Whether a call that was drawn, and waits for an open block, is to be handed back. Asked once
    /// the worker has no more calls to draw, when it has nothing else to do.
    fn takes_back(&mut self) -> bool {
        false
    }

    /// Takes back a call that was drawn and has left nothing in the database, after it has said
    /// that it [does](Calls::takes_back).
    fn take_back(&mut self, call: &mut Call) {
        unreachable!("call {} is not wanted back", call.ticket)
    }

    /// A call that was drawn has ended; its rows are in `frame`.
    fn ended(&mut self, call: &Call, outcome: Outcome, frame: &Frame);

    /// A worker broke down, and what has become of a call that was drawn is not known.
    #[cold]
    fn lost(&mut self, ticket: u64) {
        let call = Call {
            ticket,
            ..Call::default()
        };
        self.ended(&call, Outcome::Rejected(broken_down()), &Frame::new());
    }
}
