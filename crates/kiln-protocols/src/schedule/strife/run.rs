//! The items of the stages: the analysis, clusters that run without locks, residuals that run with
//! locks.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::AbortCause;

use super::Strife;
use super::batch::Batch;
use super::context::USED_BYTES;
use super::locks::Mode;
use super::plan::Plan;
use super::stages::Stage;
use crate::phases::{Phase, Phased};
use crate::shared::planning::Demand;

/// Attempts of a residual while others run; and while a transaction of several statements is open,
/// which may have what it wants for long.
const ATTEMPTS: u32 = 64;
const ATTEMPTS_AMONG_STATEMENTS: u32 = 8;
/// One of so many attempts of a residual takes its locks as it meets its records: where it makes
/// one in a cell that its own plan names, for a record that is gone, its planned lock is in its
/// way.
const UNPLANNED_PERIOD: u32 = 4;
/// After so many attempts a residual does not wait longer, but as after the first: what it waits
/// for takes some microseconds.
const ATTEMPTS_GROWING: u32 = 6;
/// Attempts of one that failed then, while no others of its batch run, before it stays for the next
/// batch.
const LAST_ATTEMPTS: u32 = 3;

impl Strife {
    /// Does an item of the stage that is open, if there is one.
    pub(super) fn help(&mut self) -> bool {
        let Some((stage, item)) = self.shared.stages.take(&mut self.exhausted) else {
            return false;
        };
        let began = time::cycles();
        let transactions = match stage {
            Stage::Collect => unreachable!("it has no items"),
            Stage::Exclude | Stage::Spot | Stage::Fuse | Stage::Allocate => {
                self.analyse(stage, item)
            }
            Stage::ConflictFree => {
                self.run_clusters(item);
                return true;
            }
            Stage::Residual => self.run_residuals(item),
            Stage::Last => self.run_last(),
        };
        self.complete(stage, began, transactions);
        true
    }

    /// An item is done, which the worker began at this time of the counter, and which was about so
    /// many transactions.
    fn complete(&mut self, stage: Stage, began: u64, transactions: u64) {
        let worked = time::cycles().saturating_sub(began);
        let counts = self.direct.batches();
        counts.step_mut(stage.step()).add_work(worked, transactions);
        if let Some(between) = self.shared.stages.complete() {
            self.shared.advance(stage, between, counts);
        }
    }

    /// Does an item of the analysis; how many transactions it is about.
    fn analyse(&mut self, stage: Stage, item: u32) -> u64 {
        let phases = self.direct.access().phases();
        phases.start();
        phases.enter(Phase::Plan);
        let batch = &self.shared.batch;
        match stage {
            Stage::Exclude => self.analyst.exclude(batch, item),
            Stage::Spot => self.analyst.spot(batch, &mut self.random),
            Stage::Fuse => self.analyst.fuse(batch, item),
            _ => self.analyst.allocate(batch, item),
        }
        self.direct.access().phases().stop();
        // SAFETY: the worker has taken the item; all are of one size, but for the last one, and
        // SPOT has one about all.
        unsafe {
            match stage {
                Stage::Spot => batch.contexts().len() as u64,
                _ => batch.chunk(item).len() as u64,
            }
        }
    }

    /// The batch, without another owner: all workers would count those in one place.
    ///
    /// # Safety
    /// The worker outlives the reference.
    #[inline(always)]
    unsafe fn batch<'a>(&self) -> &'a Batch {
        // SAFETY: the worker is an owner of it.
        unsafe { &(*Arc::as_ptr(&self.shared)).batch }
    }

    /// Runs clusters without locks, one transaction after the other: those of the item that the
    /// worker has taken, and of others that it takes before it is done with the last, so that their
    /// memory is asked for in time. Then the stage has no more.
    fn run_clusters(&mut self, item: u32) {
        // SAFETY: as long as the worker.
        let batch = unsafe { self.batch() };
        // SAFETY: the worker has taken an item.
        let plan = unsafe { batch.plan() };
        if plan.is_alone {
            let began = time::cycles();
            self.run_free(batch, 0, Mode::Alone);
            return self.complete(Stage::ConflictFree, began, 1);
        }
        // The last items are for the worker that is free first.
        let takes_ahead =
            |item: u32| u64::from(batch.items_of(plan) - item) >= 2 * plan.shown.workers;
        let mut takes = takes_ahead(item);
        let mut queues = Queues::new(batch);
        queues.enter_item(plan, item);
        let mut began = time::cycles();
        // What runs next comes first. Each step of a transaction's approach asks for what the step
        // after it looks at.
        let mut approaching: [Option<Run>; APPROACH] = [None; APPROACH];
        // Items that are not done. As long as there is one the stage is open, and what is taken is
        // of it.
        let mut items = 1;
        let mut count = 0;
        while items > 0 {
            if takes
                && queues.is_empty()
                && let Some((_, item)) = self.shared.stages.take(&mut self.exhausted)
            {
                queues.enter_item(plan, item);
                takes = takes_ahead(item);
                items += 1;
            }
            let last = queues.next();
            // SAFETY: the worker has taken the clusters, here and below.
            unsafe {
                if let Some(run) = last {
                    batch.fetch(run.at, USED_BYTES);
                }
                if let Some(run) = approaching[APPROACH - 1] {
                    batch.context(run.at).flight.fetch();
                }
                if let Some(run) = approaching[APPROACH - 2] {
                    batch.context(run.at).flight.fetch_records();
                }
            }
            if let Some(Run { at, mode, is_last }) = approaching[0] {
                self.run_free(batch, at, mode);
                count += 1;
                if is_last {
                    items -= 1;
                    self.complete(Stage::ConflictFree, began, count);
                    (began, count) = (time::cycles(), 0);
                }
            }
            approaching.rotate_left(1);
            approaching[APPROACH - 1] = last;
        }
    }

    /// One attempt without locks; if it fails, the transaction is a residual.
    fn run_free(&mut self, batch: &Batch, at: u32, mode: Mode) {
        point("strife.free");
        if !self.attempt(batch, at, mode) {
            // SAFETY: the worker has taken the cluster.
            unsafe { batch.context(at) }.is_residual = true;
            batch.residuals.push(at);
        }
    }

    /// One attempt; whether the transaction has ended.
    fn attempt(&mut self, batch: &Batch, at: u32, mode: Mode) -> bool {
        self.direct.access().manager().mode = mode;
        // SAFETY: the worker has taken the item that the transaction belongs to.
        let context = unsafe { batch.context(at) };
        let flight = &mut context.flight;
        flight.attempt_in(&mut self.frame, &mut self.direct, &self.nothing, ());
        flight.outcome.is_some()
    }

    /// One attempt with the locks of the plan, which are taken before it begins; whether the
    /// transaction has ended.
    fn attempt_planned(&mut self, batch: &Batch, at: u32, waits: bool) -> bool {
        // SAFETY: the worker has taken the item that the transaction belongs to.
        let context = unsafe { batch.context(at) };
        if !context.flight.missed().is_empty() {
            context.plan_missed();
        }
        let (flight, footprint) = (&mut context.flight, &context.footprint);
        // One after the other they would be waited for under the locks before them.
        flight.fetch_records();
        footprint.note_reads();
        let access = self.direct.access();
        access.phases().start();
        access.phases().enter(Phase::Lock);
        access.manager().mode = Mode::Locking;
        let is_locked = access.manager().take_planned(footprint.claims(), waits);
        access.phases().stop();
        if !is_locked {
            flight.failures += 1;
            let cause = match waits {
                true => AbortCause::LockTimeout,
                false => AbortCause::WriteLock,
            };
            self.direct.counters().count_abort(cause);
            return false;
        }
        point("strife.locked");
        flight.attempt_in(&mut self.frame, &mut self.direct, footprint, ());
        flight.outcome.is_some()
    }

    /// Runs the transactions of an item with locks, while others run; how many they are. What fails
    /// often is one of the last.
    fn run_residuals(&mut self, item: u32) -> u64 {
        // SAFETY: as long as the worker.
        let batch = unsafe { self.batch() };
        // SAFETY: the worker has taken an item.
        let plan = unsafe { batch.plan() };
        let attempts = match plan.is_among_statements {
            true => ATTEMPTS_AMONG_STATEMENTS,
            false => ATTEMPTS,
        };
        let positions = batch.residuals_of(plan, item);
        for position in positions.clone() {
            let at = batch.residuals.get(position);
            if !self.try_often(batch, at, attempts, !plan.is_among_statements) {
                batch.lasts.push(at);
            }
        }
        positions.len() as u64
    }

    /// Runs those that failed often, while no others of the batch run. What fails now because of a
    /// transaction of several statements stays for the next batch. How many they are.
    #[cold]
    fn run_last(&mut self) -> u64 {
        // SAFETY: as long as the worker.
        let batch = unsafe { self.batch() };
        for position in 0..batch.lasts.length() {
            self.try_often(batch, batch.lasts.get(position), LAST_ATTEMPTS, false);
        }
        u64::from(batch.lasts.length())
    }

    /// Attempts with locks, so many at most. They wait for locks if that `waits`: where a
    /// transaction of several statements may hold one, its client decides for how long.
    fn try_often(&mut self, batch: &Batch, at: u32, attempts: u32, waits: bool) -> bool {
        for attempt in 0..attempts {
            if attempt % ATTEMPTS_GROWING == 0 {
                self.backoff.reset();
            }
            point("strife.residual");
            let has_ended = match attempt % UNPLANNED_PERIOD == UNPLANNED_PERIOD - 1 {
                true => self.attempt(batch, at, Mode::Locking),
                false => self.attempt_planned(batch, at, waits),
            };
            if has_ended {
                return true;
            }
            self.backoff.wait(None);
        }
        false
    }
}

/// Steps between the moment when the memory of a transaction is asked for and its run: its context,
/// what that refers to, the records, and one for these to come.
const APPROACH: usize = 4;

/// A transaction that is about to run without locks.
#[derive(Clone, Copy)]
struct Run {
    at: u32,
    mode: Mode,
    /// Whether it is the last one of its item.
    is_last: bool,
}

/// The transactions of items of the conflict-free stage, in the order in which they run.
struct Queues<'a> {
    batch: &'a Batch,
    /// The small clusters whose turn has not come, by their positions.
    small: std::ops::Range<u32>,
    /// The next transaction of the present cluster, by its number plus one; 0 is none.
    next: u32,
    mode: Mode,
}

impl<'a> Queues<'a> {
    fn new(batch: &'a Batch) -> Queues<'a> {
        Queues {
            batch,
            small: 0..0,
            next: 0,
            mode: Mode::Alone,
        }
    }

    /// Whether there is no transaction left of the last item.
    fn is_empty(&self) -> bool {
        self.next == 0 && self.small.is_empty()
    }

    /// Goes on to an item, which the worker has taken. All have transactions.
    fn enter_item(&mut self, plan: &Plan, item: u32) {
        match plan.large.get(item as usize) {
            Some(&(special, _)) => self.enter(special),
            None => self.small = self.batch.small_of(plan, item),
        }
    }

    fn enter(&mut self, cluster: u32) {
        let batch = self.batch;
        self.mode = Mode::Cluster {
            root: batch.forest.find(cluster),
            number: batch.number(),
        };
        // Relaxed: appended to in an earlier stage; no other worker takes this cluster.
        self.next = batch.queue(cluster).swap(0, Ordering::Relaxed) as u32;
    }
}

impl Iterator for Queues<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        while self.next == 0 {
            let position = self.small.next()?;
            self.enter(self.batch.small.get(position));
        }
        let at = self.next - 1;
        // SAFETY: the worker that made this has taken the cluster.
        self.next = unsafe { self.batch.next_of(at) };
        Some(Run {
            at,
            mode: self.mode,
            is_last: self.is_empty(),
        })
    }
}
