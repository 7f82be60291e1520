//! What is done about deadlocks: whether a worker may wait for a lock, and when it gives up.

mod dreadlocks;
mod graph;
mod wait_die;

use kiln_procedure::AbortCause;

pub use dreadlocks::{Digests, Dreadlocks};
pub use graph::{WaitForGraph, WaitsFor};
pub use wait_die::WaitDie;

use super::request::Request;

/// One worker's side of a way to handle deadlocks.
pub trait DeadlockPolicy {
    /// Whether there is waiting at all.
    const WAITS: bool = true;
    /// Whether a request may wait only for younger ones; [`DeadlockPolicy::stamp`] is an age then.
    const BY_AGE: bool = false;
    /// Whether the one who waits wants to know for whom: then `watch`, `block`, `is_deadlocked` and
    /// `unblock` are called. Not with [`DeadlockPolicy::BY_AGE`], where requests come between those
    /// that wait.
    const WATCHES: bool = false;
    /// Whether another attempt may take a lock that is let go before the first waiter comes for it;
    /// see *Overtaking* in the module above. Not for an attempt that asks for several locks before
    /// it waits for any: that its requests stand in the same order in all queues would not help it.
    const OVERTAKES: bool = false;
    /// Why a request is refused that may not wait; exclusive ones and others.
    const REFUSED: [AbortCause; 2];

    /// A new transaction begins, whose attempts follow.
    fn begin_call(&mut self) {}

    /// An attempt begins.
    fn begin(&mut self) {}

    /// What requests of this attempt are marked with.
    fn stamp(&self) -> u64 {
        0
    }

    /// Forgets who was watched: the worker will wait with this request of its own. Called under the
    /// queue's latch.
    fn forget(&mut self, own: &Request) {
        let _ = own;
    }

    /// The worker will wait for this request, and others. Called under the queue's latch.
    fn watch(&mut self, request: &Request) {
        let _ = request;
    }

    /// The worker waits from now on for those watched; called without a latch.
    fn block(&mut self) {}

    /// Whether those watched wait for this worker in their core slot; `look` counts the looks.
    fn is_deadlocked(&mut self, look: u32) -> bool {
        let _ = look;
        false
    }

    /// The worker waits no longer.
    fn unblock(&mut self) {}
}

/// No waiting: a lock that cannot be had at once is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWait;

impl DeadlockPolicy for NoWait {
    const WAITS: bool = false;
    const REFUSED: [AbortCause; 2] = [AbortCause::ReadLock, AbortCause::WriteLock];
}

/// Waiting in the order of the requests, without overtaking: for schedulers that exclude deadlocks
/// by the order in which requests stand in the queues. Two sharers that both want the lock for
/// themselves are the exception.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patient;

impl DeadlockPolicy for Patient {
    const REFUSED: [AbortCause; 2] = [AbortCause::Deadlock; 2];
}

/// Waiting for one lock at a time, in an order of all locks that excludes deadlocks. Overtaking
/// does not change that: who overtakes waits only for locks that come later. An upgrade keeps no
/// order; so of two sharers that both want the lock for themselves the second is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ordered;

impl DeadlockPolicy for Ordered {
    const OVERTAKES: bool = true;
    const REFUSED: [AbortCause; 2] = [AbortCause::Deadlock; 2];
}
