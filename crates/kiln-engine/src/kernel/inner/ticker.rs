//! The ticker, which looks after what time passes for; and the end of a database.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::lock;
use kiln_platform::{thread, time};

use super::EngineInner;
use crate::calls::Reply;
use crate::kernel::gate::{BROKEN, Beside, CLOSING, NEVER, SHUT};
use crate::observed::Observed;

/// An unused worker slot is kept for so long.
const IDLE_SLOT_NS: u64 = 1_000_000_000;
/// How often the ticker looks at idle worker slots and transactions.
pub(super) const LOOK_NS: u64 = 50_000_000;
/// Objects that the ticker frees at a time.
const COLLECT_MAX: usize = 4_096;

impl EngineInner {
    /// The ticker's life: epochs, idle worker slots, idle transactions.
    pub fn tick(&self) {
        let epoch_ns = self.options.epoch_ms.saturating_mul(1_000_000);
        let mut next_look = time::now_ns();
        // The database may have changed before this thread ran for the first time.
        let mut told = NEVER;
        while !self.stopping.load(Ordering::Acquire) {
            thread::park_for(epoch_ns);
            self.epochs.advance();
            self.free_retired(epoch_ns);
            let state = self.gate.state();
            if state != told && state & SHUT == 0 {
                told = state;
                self.inboxes.tell_news();
            }
            let now = time::now_ns();
            if now >= next_look {
                next_look = now + LOOK_NS;
                self.slots.drop_idle(now.saturating_sub(IDLE_SLOT_NS));
                self.try_to_give_up_untried(now);
                self.reap_blocks(now);
                self.end_overdue(now);
            }
        }
    }

    /// Frees what idle workers and sessions have left, and former ones: in portions, between which
    /// others have the participant, and for at most so long, because epochs stand still meanwhile.
    fn free_retired(&self, limit_ns: u64) {
        let until = time::now_ns().saturating_add(limit_ns);
        self.epochs.take_over_idle();
        loop {
            let maintenance = lock(&self.maintenance);
            // Under the lock: a thread that changes tables or the protocol settles under it first.
            let looked_after = self.common().look_after_idle(&maintenance);
            let freed = maintenance.collect(COLLECT_MAX);
            drop(maintenance);
            let is_done = looked_after && freed < COLLECT_MAX;
            if is_done || time::now_ns() >= until || self.stopping.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Accepts nothing new, and lets the threads end when they have done what was accepted.
    pub fn begin_end(&self) {
        self.gate.set(CLOSING);
        self.inboxes.close();
        self.stopping.store(true, Ordering::Release);
    }

    /// Gives back what is left when the threads have ended.
    pub fn finish_end(&self) {
        self.slots.close();
        // A session may still have a transaction open; then what it has read stays as it is.
        if let Some(_alone) = self.gate.shut(Beside::Nothing, 0)
            && self.gate.state() & BROKEN == 0
        {
            self.common().settle(&lock(&self.maintenance));
        }
        // Two epochs later no participant can hold what the workers left, while the tables are
        // there.
        for _ in 0..3 {
            self.epochs.advance();
        }
        lock(&self.maintenance).collect(usize::MAX);
        if let Some(log) = self.log() {
            // The next opening goes on with the next value, unless the log takes no more.
            for sequence in self.catalog().sequences() {
                let _ = sequence.give_up_range();
            }
            // What has failed was told to all that waited.
            let _ = log.close();
        }
        // Another process may have it now.
        *lock(&self.data_directory) = None;
    }

    /// Ends the calls that were cancelled in an inbox, or whose time is over.
    fn end_overdue(&self, now_ns: u64) {
        for job in self.inboxes.take_overdue(now_ns) {
            job.promise.keep(Observed {
                result: Ok(Reply::Expired),
                epoch: self.log_epochs.current(),
            });
        }
    }
}
