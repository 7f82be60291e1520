//! The stages that a batch goes through, each made of items that any worker does.
//!
//! A stage ends when all its items are done, and not when all workers have arrived: so no worker
//! waits for one that does not run, has no calls, or has a transaction of several statements open,
//! unless that one is in the middle of an item. Workers that serve look for items; the worker that
//! does the last item of a stage opens the next one.
//!
//! ```text
//!  63    52 51   48 47            24 23           0
//! ┌────────┬───────┬────────────────┬──────────────┐
//! │ number │ stage │ items it has   │ next item    │   the ticket: an item is taken by counting it up
//! └────────┴───────┴────────────────┴──────────────┘
//! ```
//!
//! # Invariants
//!
//! - An item is taken by counting the ticket up, which says all that there is to know of the stage:
//!   a worker that has taken one has an item of the stage that is open, and it stays open until the
//!   item is done. How many items there are was beside the ticket once; then a worker took an item
//!   of a stage that was done already, as the next one had more.
//! - A worker that has found no item left does not look at the ticket again before another stage is
//!   open: it looks at a word that says which stage that is, and changes as rarely. It is written
//!   before the ticket, so that it is never behind: after it, a slow worker could write it when
//!   others have opened the stage after the next. So workers that wait do not take the ticket's
//!   cache line away from those that work.
//! - What was done in a stage is visible in those after it: each worker counts its item with
//!   release and acquire, the last one has acquired all, and opens the next stage by a release of
//!   the ticket, which takers acquire.

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering};
use kiln_platform::memory::name_range;

use crate::batches::Step;
use crate::schedule::cache_padded::CachePadded;

/// What is being done with the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// Workers add calls to it, with the labels of their records (PREPARE).
    Collect,
    /// An item is a chunk of the batch: what it reads is not left to commits. Of batches in which
    /// something is.
    Exclude,
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
    const ALL: [Stage; 8] = [
        Stage::Collect,
        Stage::Exclude,
        Stage::Spot,
        Stage::Fuse,
        Stage::Allocate,
        Stage::ConflictFree,
        Stage::Residual,
        Stage::Last,
    ];

    /// Whether locks in the records mean nothing meanwhile: labels are there instead, and
    /// transactions run that look at no locks.
    pub fn is_without_locks(self) -> bool {
        matches!(
            self,
            Stage::Exclude | Stage::Spot | Stage::Fuse | Stage::Allocate | Stage::ConflictFree
        )
    }

    /// The step that its time is counted as.
    pub fn step(self) -> Step {
        match self {
            Stage::Collect => Step::Collect,
            Stage::Exclude => Step::Exclude,
            Stage::Spot => Step::Spot,
            Stage::Fuse => Step::Fuse,
            Stage::Allocate => Step::Allocate,
            Stage::ConflictFree => Step::ConflictFree,
            Stage::Residual => Step::Residual,
            Stage::Last => Step::Last,
        }
    }
}

/// The time between two stages, when no worker can take an item: the one that has done the last
/// item of a stage has it until it opens the next, and with it all that the batch consists of.
#[must_use = "no stage is open until it is"]
pub(super) struct Between(());

impl Between {
    /// The time after a batch was collected.
    ///
    /// # Safety
    /// The batch is collected, no worker adds to it any more, and the caller has the lock under
    /// which they would.
    pub unsafe fn after_collection() -> Between {
        Between(())
    }
}

/// Items of a stage at most.
pub(super) const ITEMS_MAX: u32 = 1 << 24;

const ITEMS_SHIFT: u32 = 24;
const STAGE_SHIFT: u32 = 48;
const NUMBER_SHIFT: u32 = 52;
/// Numbers of stages that a ticket tells apart: it is one behind at most.
const NUMBERS: u64 = 1 << (64 - NUMBER_SHIFT);

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Stages {
    /// How many stages were opened, above; the stage that is open in the lowest bits.
    opened: CachePadded<AtomicU64>,
    ticket: CachePadded<AtomicU64>,
    done: CachePadded<AtomicU32>,
}

/// The bits of the stage in [`Stages::opened`].
const STAGE_BITS: u32 = 4;

fn stage_of(ticket: u64) -> Stage {
    Stage::ALL[(ticket >> STAGE_SHIFT) as usize % (1 << STAGE_BITS)]
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

    /// The stage that is open; it may end at once, unless the caller keeps it from ending.
    #[inline]
    pub fn now(&self) -> Stage {
        // Acquire pairs with the release in `open`: what was done before is visible.
        let opened = self.opened.0.load(Ordering::Acquire);
        Stage::ALL[(opened % (1 << STAGE_BITS)) as usize]
    }

    /// Takes an item of the stage that is open, if one is left. The caller says when it is done,
    /// and keeps `exhausted`, where it is noted when the stage has no item left.
    #[inline]
    pub fn take(&self, exhausted: &mut u64) -> Option<(Stage, u32)> {
        // Before the ticket: if another stage is opened in between, its number differs from the one
        // that is noted. Acquire: as in `now`.
        let opened = self.opened.0.load(Ordering::Acquire);
        if opened == *exhausted {
            return None;
        }
        // Acquire pairs with the release in `open`. What it adds to a ticket without items left is
        // lost or counted beyond them, once for each worker and stage.
        let ticket = self.ticket.0.fetch_add(1, Ordering::Acquire);
        let item = ticket as u32 % ITEMS_MAX;
        if item < items_of(ticket) {
            return Some((stage_of(ticket), item));
        }
        // Else the ticket of the stage that is announced is about to come.
        if ticket >> NUMBER_SHIFT == (opened >> STAGE_BITS) % NUMBERS {
            *exhausted = opened;
        }
        None
    }

    /// An item is done, which the caller has taken. If it was the last of its stage, the caller
    /// opens the next one.
    #[inline]
    #[must_use]
    pub fn complete(&self) -> Option<Between> {
        // Relaxed: the caller has seen the ticket, which keeps the number until this.
        let items = items_of(self.ticket.0.load(Ordering::Relaxed));
        // Release hands on what was done; acquire gathers what the others did, for who opens the
        // next stage.
        let is_last = self.done.0.fetch_add(1, Ordering::AcqRel) + 1 == items;
        is_last.then_some(Between(()))
    }

    /// Opens a stage with so many items.
    pub fn open(&self, _: Between, stage: Stage, items: u32) {
        debug_assert!(items < ITEMS_MAX);
        // Relaxed: the ticket publishes it.
        self.done.0.store(0, Ordering::Relaxed);
        let number = (self.opened.0.load(Ordering::Relaxed) >> STAGE_BITS) + 1;
        // Release, here and below, pairs with the acquires above.
        let opened = number << STAGE_BITS | stage as u64;
        self.opened.0.store(opened, Ordering::Release);
        let ticket = (number % NUMBERS) << NUMBER_SHIFT
            | (stage as u64) << STAGE_SHIFT
            | u64::from(items) << ITEMS_SHIFT;
        self.ticket.0.store(ticket, Ordering::Release);
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
        stages.open(Between(()), Stage::Fuse, 1);
        thread::scope(|scope| {
            for _ in 0..3 {
                let (stages, sum, opened) = (&stages, &sum, &opened);
                scope.spawn(move || {
                    let (mut idle, mut exhausted) = (0, 0);
                    while stages.now() != Stage::Collect && idle < 1_000_000 {
                        let Some((_, item)) = stages.take(&mut exhausted) else {
                            idle += 1;
                            thread::yield_now();
                            continue;
                        };
                        idle = 0;
                        // Relaxed: the worker that opens a stage has seen all items of those
                        // before.
                        sum.fetch_add(item + 1, Ordering::Relaxed);
                        if let Some(between) = stages.complete() {
                            let count = opened.fetch_add(1, Ordering::Relaxed);
                            // Stage number n has n items.
                            let expected = (1..=count).map(|items| items * (items + 1) / 2).sum();
                            assert_eq!(sum.load(Ordering::Relaxed), expected);
                            match count == stages_max {
                                true => stages.open(between, Stage::Collect, 0),
                                false => stages.open(between, Stage::Allocate, count + 1),
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
