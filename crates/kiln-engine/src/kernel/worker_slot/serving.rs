//! Serving: a worker that has several calls in flight.

use kiln_durability::log::Log;
use kiln_procedure::Frame;
use kiln_protocols::{Call, Calls, Next, Outcome, Worker};

use super::WorkerSlot;
use super::calls::count;
use crate::kernel::inner::EngineInner;

impl WorkerSlot {
    /// Whether the worker has several calls in flight when it serves; the worker slot is entered.
    #[inline(always)]
    pub fn is_pipelined(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::is_pipelined)
    }

    /// Lets the worker serve calls until there are no more, or until the gate is shut or its state
    /// changes: leave then, and enter again for what is left. The worker slot is entered all the
    /// while, and its worker is [pipelined](WorkerSlot::is_pipelined): any other would not end a
    /// call that waits for a block when a change of the catalog waits for the call.
    pub fn serve(&mut self, calls: &mut dyn Calls) {
        debug_assert!(self.is_pipelined());
        let inner = self.inner.clone();
        let mut gated = Gated {
            inner: &inner,
            log: inner.log().map(|log| &**log),
            known: self.known,
            worker_slot: self.number,
            has_paused: false,
            calls,
        };
        self.inside(|worker| worker.serve(&mut gated));
    }
}

/// Calls that pause when another thread wants the database alone, and when it has changed.
struct Gated<'a> {
    inner: &'a EngineInner,
    log: Option<&'a Log>,
    /// The gate's state that the worker slot entered in: open.
    known: u64,
    worker_slot: usize,
    /// Whether the worker was told to pause for the gate's sake.
    has_paused: bool,
    calls: &'a mut dyn Calls,
}

impl Gated<'_> {
    /// Whether the worker has to leave.
    #[inline(always)]
    fn is_interrupted(&mut self) -> bool {
        // It has to leave although the gate may be open again: until it does it draws no calls.
        self.has_paused |= self.inner.gate.state() != self.known;
        // Also where the log has to catch up: outside it waits for that.
        self.has_paused |= self.log.is_some_and(Log::is_congested);
        self.has_paused
    }
}

impl Calls for Gated<'_> {
    fn next(&mut self, call: &mut Call) -> Next {
        loop {
            if self.is_interrupted() {
                return Next::Pause;
            }
            let next = self.calls.next(call);
            let (Next::Call, Some(program)) = (&next, &call.program) else {
                return next;
            };
            match self.inner.check_log(program) {
                Ok(()) => return next,
                Err(error) => {
                    let outcome = Outcome::Rejected(error);
                    self.calls.ended(call, outcome, &Frame::new());
                }
            }
        }
    }

    fn is_over(&mut self) -> bool {
        self.is_interrupted() || self.calls.is_over()
    }

    fn is_bound(&self) -> bool {
        self.calls.is_bound()
    }

    fn takes_back(&mut self) -> bool {
        self.is_interrupted()
    }

    fn take_back(&mut self, call: &mut Call) {
        self.calls.take_back(call);
    }

    fn ended(&mut self, call: &Call, outcome: Outcome, frame: &Frame) {
        if let (Outcome::Committed, Some(program)) = (&outcome, &call.program) {
            count(self.worker_slot, program);
        }
        self.calls.ended(call, outcome, frame);
    }

    fn lost(&mut self, ticket: u64) {
        self.calls.lost(ticket);
    }
}
