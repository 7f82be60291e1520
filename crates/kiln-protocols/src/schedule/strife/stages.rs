//! The stages that a batch goes through, each made of items that any worker does.
//!
//! A stage ends when all its items are done, and not when all workers have arrived: so nobody waits for a worker that
//! does not run, has no calls, or has a transaction of several statements open, unless it is in the middle of an item. Whoever
//! serves looks for items; whoever does the last item of a stage opens the next one.
//!
//! ```text
//!  63   52 51   48 47            24 23           0
//! ┌───────┬───────┬────────────────┬──────────────┐
//! │   0   │ stage │ items it has   │ next item    │   the ticket: an item is taken by counting it up
//! └───────┴───────┴────────────────┴──────────────┘
//! ```
//!
//! # Invariants
//!
//! - An item is taken by a compare-and-swap of the whole ticket, which says all that there is to know of the stage: who has
//!   taken one has an item of the stage that is open, and it stays open until the item is done. How many items there are was
//!   beside the ticket once; then somebody took an item of a stage that was done already, as the next one had more.
//! - What was done in a stage is visible in those after it: each worker counts its item with release and acquire, the
//!   last one has acquired all, and opens the next stage by a release of the ticket, which takers acquire.

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering};
use kiln_platform::memory::name_range;

/// What is being done with the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// Workers add calls to it, with the labels of their records (PREPARE).
    Collect,
    /// One item: special clusters are found by sampling.
    Spot,
    /// An item is a chunk of the batch: its data nodes are united. Ends with MERGE.
    Fuse,
    /// An item is a chunk of the batch: its transactions get into the queues.
    Allocate,
    /// An item is a cluster, or some small ones: its transactions run.
    ConflictFree,
    /// An item is a transaction that runs with locks.
    Residual,
    /// One item: what has failed often runs, one after the other.
    Last,
}

impl Stage {
    const ALL: [Stage; 7] = [
        Stage::Collect,
        Stage::Spot,
        Stage::Fuse,
        Stage::Allocate,
        Stage::ConflictFree,
        Stage::Residual,
        Stage::Last,
    ];

    /// Whether locks in the records mean nothing meanwhile: labels are there instead, and transactions run that look at
    /// no locks.
    pub fn is_without_locks(self) -> bool {
        matches!(
            self,
            Stage::Spot | Stage::Fuse | Stage::Allocate | Stage::ConflictFree
        )
    }
}

/// Items of a stage at most.
pub(super) const ITEMS_MAX: u32 = 1 << 24;

const ITEMS_SHIFT: u32 = 24;
const STAGE_SHIFT: u32 = 48;

/// See the module's documentation.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Stages {
    ticket: AtomicU64,
    done: Done,
}

/// On cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Done(AtomicU32);

fn stage_of(ticket: u64) -> Stage {
    Stage::ALL[(ticket >> STAGE_SHIFT) as usize]
}

fn items_of(ticket: u64) -> u32 {
    (ticket >> ITEMS_SHIFT) as u32 % ITEMS_MAX
}

impl Stages {
    /// Names its memory in reports about cache lines.
    pub fn name_memory(&self) {
        let address = std::ptr::from_ref(self).addr();
        name_range(address, size_of::<Stages>(), || "strife.stages".to_owned());
    }

    /// The stage that is open; it may end at once, unless somebody sees to it that it does not.
    #[inline]
    pub fn now(&self) -> Stage {
        // Acquire pairs with the release in `open`: what was done before is visible.
        stage_of(self.ticket.load(Ordering::Acquire))
    }

    /// Takes an item of the stage that is open, if one is left. The caller says when it is done.
    #[inline]
    pub fn take(&self) -> Option<(Stage, u32)> {
        // Acquire, here and below: as in `now`.
        let mut ticket = self.ticket.load(Ordering::Acquire);
        loop {
            let next = ticket as u32 % ITEMS_MAX;
            if next >= items_of(ticket) {
                return None;
            }
            match self.ticket.compare_exchange_weak(
                ticket,
                ticket + 1,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some((stage_of(ticket), next)),
                Err(now) => ticket = now,
            }
        }
    }

    /// An item is done; whether it was the last of its stage. Then the caller opens the next one.
    #[inline]
    #[must_use]
    pub fn complete(&self) -> bool {
        // Relaxed: the caller has seen the ticket, which keeps the number until this.
        let items = items_of(self.ticket.load(Ordering::Relaxed));
        // Release hands on what was done; acquire gathers what the others did, for who opens the next stage.
        self.done.0.fetch_add(1, Ordering::AcqRel) + 1 == items
    }

    /// Opens a stage with so many items. All items of the one before are done, and the caller alone opens a stage.
    pub fn open(&self, stage: Stage, items: u32) {
        debug_assert!(items < ITEMS_MAX);
        // Relaxed: the ticket publishes it.
        self.done.0.store(0, Ordering::Relaxed);
        let ticket = (stage as u64) << STAGE_SHIFT | u64::from(items) << ITEMS_SHIFT;
        // Release pairs with the acquires above.
        self.ticket.store(ticket, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::thread;

    use super::*;

    /// Several workers go through stages whose items add to a number that each next stage checks.
    fn run(stages_max: u32) {
        let stages = Stages::default();
        let (sum, opened) = (AtomicU32::new(0), AtomicU32::new(1));
        stages.open(Stage::Fuse, 1);
        thread::scope(|scope| {
            for _ in 0..3 {
                let (stages, sum, opened) = (&stages, &sum, &opened);
                scope.spawn(move || {
                    let mut idle = 0;
                    while stages.now() != Stage::Collect && idle < 1_000_000 {
                        let Some((_, item)) = stages.take() else {
                            idle += 1;
                            thread::yield_now();
                            continue;
                        };
                        idle = 0;
                        // Relaxed: whoever opens a stage has seen all items of those before.
                        sum.fetch_add(item + 1, Ordering::Relaxed);
                        if stages.complete() {
                            let count = opened.fetch_add(1, Ordering::Relaxed);
                            // Stage number n has n items.
                            let expected = (1..=count).map(|items| items * (items + 1) / 2).sum();
                            assert_eq!(sum.load(Ordering::Relaxed), expected);
                            match count == stages_max {
                                true => stages.open(Stage::Collect, 0),
                                false => stages.open(Stage::Allocate, count + 1),
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(opened.load(Ordering::Relaxed), stages_max + 1);
    }

    #[cfg(not(kiln_sim))]
    #[test]
    fn a_stage_is_done_before_the_next_one_begins() {
        run(if cfg!(miri) { 4 } else { 60 });
    }

    #[cfg(kiln_sim)]
    #[test]
    fn a_stage_is_done_before_the_next_one_begins_under_many_schedules() {
        use kiln_platform::sim::{self, Config, Schedule};
        for seed in 0..500 {
            let schedule = match seed % 2 {
                0 => Schedule::Random,
                _ => Schedule::Pct {
                    depth: 3,
                    steps: 300,
                },
            };
            let run = sim::run(&Config::new(schedule, seed), || run(4));
            run.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        }
    }
}
