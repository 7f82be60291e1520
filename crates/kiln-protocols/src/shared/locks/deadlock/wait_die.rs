//! Wait-die: an older transaction waits for a younger one, and never the other way round.
//!
//! Source: ORTHRUS §4, after Rosenkrantz, Stearns and Lewis, *System Level Concurrency Control for
//! Distributed Database Systems*, TODS 3, 1978, and Yu et al., *Staring into the Abyss*, PVLDB
//! 8, 2014.
//!
//! Each waiter is older than all that it waits for, so there is no cycle. Waiters stand in the
//! order of their ages, the youngest first, as with Yu et al.: then a transaction may wait although
//! others wait that are older, and the lock goes from younger transactions to older ones. While a
//! transaction waits no new one joins the sharers, or an old writer would never get in between
//! them.
//!
//! A transaction keeps its age over its attempts. So it becomes the oldest one day, and does not
//! die any more.

use kiln_platform::time;
use kiln_procedure::AbortCause;

use super::DeadlockPolicy;
use crate::shared::workers::WORKER_BITS;

/// One worker's ages.
#[derive(Clone, Copy, Debug)]
pub struct WaitDie {
    worker: u32,
    born: u64,
}

impl WaitDie {
    /// For the worker with this number.
    pub fn new(worker: u32) -> WaitDie {
        assert!(worker < 1 << WORKER_BITS, "worker {worker}");
        WaitDie { worker, born: 0 }
    }
}

impl DeadlockPolicy for WaitDie {
    const BY_AGE: bool = true;
    const OVERTAKES: bool = true;
    const REFUSED: [AbortCause; 2] = [AbortCause::Died; 2];

    #[inline]
    fn begin_call(&mut self) {
        // The core's own counter: no other core shares it. About eighty nanoseconds count as one
        // moment. The worker's number in the low bits makes no two transactions of the same age.
        self.born = time::cycles() >> WORKER_BITS << WORKER_BITS | u64::from(self.worker);
    }

    #[inline(always)]
    fn stamp(&self) -> u64 {
        self.born
    }
}
