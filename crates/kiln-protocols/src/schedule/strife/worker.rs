//! A worker: collects calls, does the items of the stages, and tells how its calls have ended.

use std::collections::VecDeque;
use std::ptr::NonNull;

use kiln_platform::atomic::Ordering;
use kiln_platform::random::Random;
use kiln_platform::schedule::point;
use kiln_platform::spin::Backoff;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::time;
use kiln_procedure::{AbortCause, Arguments, Frame, Program};
use kiln_storage::epoch::Participant;

use super::Shared;
use super::analysis::Analyst;
use super::batch::{Batch, Context, Plan, USED_BYTES, fetch_context};
use super::locks::{ClusterLocks, Mode};
use super::stages::Stage;
use crate::access::two_phase_locking::TwoPhaseLocking;
use crate::batches::Step;
use crate::phases::{Phase, Phased};
use crate::schedule::direct::Direct;
use crate::schedule::in_flight::{Idle, Single};
use crate::scheduler::{Attempts, Scheduler};
use crate::serve::{Calls, Next};
use crate::shared::planning::{Demand, Footprint};
use crate::{AnswerWriter, Outcome};

/// So often a residual is tried while others run; and while a transaction of several statements is
/// open, which may have what it wants for long.
const ATTEMPTS: u32 = 64;
const ATTEMPTS_AMONG_STATEMENTS: u32 = 8;
/// One of so many attempts of a residual takes its locks as it meets its records: where it makes
/// one in a cell that its own plan names, for a record that is gone, its planned lock is in its
/// way.
const UNPLANNED_PERIOD: u32 = 4;
/// After so many attempts a residual does not wait longer, but as after the first: what it waits
/// for takes some microseconds.
const ATTEMPTS_GROWING: u32 = 6;
/// So often one of those that failed then is tried while no others of its batch run, before it
/// stays for the next one.
const LAST_ATTEMPTS: u32 = 3;
/// The planning and the PREPARE of one of so many calls are measured: all on virtual cores, where
/// reading the counter costs nothing.
const MEASURED_PERIOD: u32 = if cfg!(kiln_sim) { 1 } else { 32 };

/// Calls are asked for when those before them, by so many, are told how they have ended.
const TOLD_AHEAD: usize = 4;

/// A worker; see the module above.
pub struct Strife {
    /// The attempts, and the transactions of several statements.
    pub(super) direct: Direct<TwoPhaseLocking<ClusterLocks>>,
    shared: Arc<Shared>,
    analyst: Analyst,
    random: Random,
    backoff: Backoff,
    /// What attempts hold beforehand: nothing.
    nothing: Footprint,
    /// What attempts run in; a context gets the result. With a frame for each of hundreds they
    /// would run in memory that no cache has.
    frame: Frame,
    /// Contexts without a call.
    pool: Vec<NonNull<Context>>,
    /// Calls that are in no batch.
    waiting: VecDeque<NonNull<Context>>,
    /// Calls that come into a batch when a transaction of several statements has ended, or some
    /// time later.
    parked: Vec<NonNull<Context>>,
    /// Calls that are being labelled.
    added: Vec<NonNull<Context>>,
    /// Calls in the batch with the number `submitted_in`.
    submitted: Vec<NonNull<Context>>,
    submitted_in: u64,
    /// Its share of a batch: calls that it adds if all workers have as many.
    share: usize,
    /// The last batch for which it said that it was ready.
    ready_in: u64,
    /// Calls that it has drawn and not told the end of.
    in_flight: usize,
    /// The stage in which it found no item left.
    exhausted: u64,
    /// Calls until one is measured.
    until_measured: u32,
    /// Whether it serves.
    is_inside: bool,
    /// Whether it serves a single call.
    is_single: bool,
    /// Whether the last run was a call, and not a statement.
    was_call: bool,
}

// SAFETY: contexts are used in turn.
unsafe impl Send for Strife {}

impl Strife {
    /// The worker that `participant` stands for; with `leaves_updates` updates of records that a
    /// batch only adds to are left to the commit.
    pub fn new(
        shared: Arc<Shared>,
        participant: Participant,
        mut random: Random,
        leaves_updates: bool,
    ) -> Strife {
        let locks = ClusterLocks::new(shared.clone(), leaves_updates);
        let mut stream = || Random::from_seed(random.next_u64());
        let (own, waits) = (stream(), stream());
        let mut nothing = Footprint::default();
        nothing.clear();
        Strife {
            direct: Direct::new(TwoPhaseLocking::new(participant, locks), random),
            shared,
            analyst: Analyst::default(),
            random: own,
            backoff: Backoff::new(waits),
            nothing,
            frame: Frame::new(),
            pool: Vec::new(),
            waiting: VecDeque::new(),
            parked: Vec::new(),
            added: Vec::new(),
            submitted: Vec::new(),
            submitted_in: 0,
            share: 0,
            ready_in: 0,
            in_flight: 0,
            exhausted: 0,
            until_measured: MEASURED_PERIOD,
            is_inside: false,
            is_single: false,
            was_call: false,
        }
    }

    /// A worker broke down, and no batch ends any more: gives up the calls whose end it has not
    /// told. Others may run them at this time, so their contexts are never freed.
    #[cold]
    fn break_off(&mut self, calls: &mut dyn Calls) {
        let own = self
            .waiting
            .iter()
            .chain(&self.added)
            .chain(&self.submitted)
            .chain(&self.parked);
        for context in own {
            // SAFETY: the context is there, and no worker writes to its ticket before it is drawn
            // anew.
            let ticket = unsafe { (&raw const (*context.as_ptr()).flight.call.ticket).read() };
            calls.lost(ticket);
        }
        self.waiting.clear();
        self.added.clear();
        self.submitted.clear();
        self.parked.clear();
        self.in_flight = 0;
        self.direct.give_way();
    }

    /// No other worker counts on it from now on.
    fn go(&mut self) {
        self.shared.go(std::mem::take(&mut self.ready_in));
    }

    /// Lets another worker have the core, if there are more of them than cores: between two batches
    /// no worker waits for this one. So those that are inside fill the batches, with as many calls
    /// as without the others.
    #[inline]
    fn pass_turn(&mut self) {
        if self.direct.is_turn_over() {
            self.go();
            // The next worker has use for them while they are in the core's cache.
            self.shared.spare.leave(&mut self.pool);
            self.direct.leave_turn();
            self.direct.enter_turn();
            self.shared.spare.take(&mut self.pool);
            self.shared.come();
        }
    }

    /// As [`Strife::pass_turn`] until one of its calls may go on, which are all parked, or they are
    /// handed back.
    #[cold]
    fn stay_away(&mut self, calls: &mut dyn Calls) {
        self.go();
        self.direct.give_way();
        let mut idle = Idle::default();
        while self.waiting.is_empty() && !self.parked.is_empty() && !self.direct.is_broken() {
            idle.turn();
            self.unpark();
            if calls.takes_back() {
                self.hand_back(calls);
            }
        }
        // SAFETY: they are in no batch.
        let deadline = |at: &NonNull<Context>| unsafe { at.as_ref() }.flight.call.deadline_ns;
        let deadlines = self.waiting.iter().filter_map(deadline);
        self.direct.enter_turn_until(deadlines.min());
        self.shared.come();
    }

    /// Has those come into a batch again that are parked, when there is a reason to.
    #[inline]
    fn unpark(&mut self) {
        if !self.parked.is_empty() {
            let (blocks, now_ns) = (&self.shared.blocks, time::now_ns());
            let may_go_on = |context: &mut NonNull<Context>| {
                // SAFETY: it is in no batch.
                unsafe { context.as_ref() }.flight.may_go_on(blocks, now_ns)
            };
            self.waiting.extend(self.parked.extract_if(.., may_go_on));
        }
    }

    /// Hands the calls back that are parked.
    #[cold]
    fn hand_back(&mut self, calls: &mut dyn Calls) {
        while let Some(mut context) = self.parked.pop() {
            // SAFETY: it is in no batch.
            unsafe { context.as_mut() }.flight.hand_back(calls);
            self.in_flight -= 1;
            self.pool.push(context);
        }
    }

    /// Adds calls to the batch that is collected; whether there were any.
    fn gather(&mut self, calls: &mut dyn Calls, is_over: &mut bool) -> bool {
        if self.shared.stages.now() != Stage::Collect {
            return false;
        }
        let number = self.shared.batch.number();
        let is_ready = self.ready_in == number;
        // Those who are inside need the lock to leave.
        if self.shared.is_closing() {
            return false;
        }
        if !self.submitted.is_empty()
            && (self.submitted_in != number || is_ready && self.submitted.len() >= self.most())
        {
            return false;
        }
        if self.shared.is_full() {
            return false;
        }
        if self.waiting.is_empty() && !self.draw(calls, is_over) {
            if !is_ready {
                self.ready_in = number;
                self.shared.ready(number);
            }
            return false;
        }
        let Some(round) = self.shared.enter() else {
            return false;
        };
        self.share = round.share;
        let mut room = 0;
        while self.submitted.len() + self.added.len() < self.most() && !self.shared.is_closing() {
            if room == 0 {
                room = self.shared.take_room(&round);
            }
            if room == 0 || self.waiting.is_empty() && !self.draw(calls, is_over) {
                break;
            }
            if let Some(context) = self.waiting.pop_front()
                && self.prepare(context, round.number, calls)
            {
                room -= 1;
            }
        }
        self.shared.give_room_back(room);
        let is_ready = std::mem::replace(&mut self.ready_in, round.number) == round.number;
        self.submitted_in = round.number;
        point("strife.labelled");
        self.shared
            .leave(&mut self.added, &mut self.submitted, !is_ready);
        // There was no room for these.
        self.waiting.extend(self.added.drain(..));
        true
    }

    /// Calls that it adds to a batch at most: a bit more than its share, as others may be late. Not
    /// much more: where the calls of a worker have something in common, such as a warehouse, they
    /// are a cluster, and the largest one is waited for.
    fn most(&self) -> usize {
        self.share + self.share.div_ceil(8)
    }

    /// Draws a call, if there is one.
    fn draw(&mut self, calls: &mut dyn Calls, is_over: &mut bool) -> bool {
        if *is_over {
            return false;
        }
        let mut context = match self.pool.pop() {
            Some(context) => {
                self.fetch_pool();
                context
            }
            None => NonNull::from(Box::leak(Box::new(Context::new()))),
        };
        // SAFETY: it is in no batch.
        let own = unsafe { context.as_mut() };
        match own.flight.draw(calls, &mut self.direct) {
            Next::Call => {
                own.is_planned = false;
                self.in_flight += 1;
                self.waiting.push_back(context);
                true
            }
            none => {
                *is_over = none == Next::Pause;
                self.pool.push(context);
                false
            }
        }
    }

    /// Asks for the memory of the contexts that come next.
    #[inline]
    fn fetch_pool(&self) {
        if let [.., far, near] = self.pool.as_slice() {
            fetch_context(*far, USED_BYTES);
            // SAFETY: contexts of the pool are in no batch.
            unsafe { near.as_ref() }.fetch_room();
        }
    }

    /// Draws a call for the next batch and plans it, while others are busy with what is left of
    /// this one.
    fn draw_ahead(&mut self, calls: &mut dyn Calls, is_over: &mut bool) -> bool {
        if self.shared.stages.now() == Stage::Collect
            || self.waiting.len() >= self.most()
            || self.direct.is_turn_over()
            || !self.draw(calls, is_over)
        {
            return false;
        }
        if let Some(context) = self.waiting.back_mut() {
            // SAFETY: it is in no batch.
            let own = unsafe { context.as_mut() };
            let began = Self::clock(&mut self.until_measured);
            own.flight.plan(&mut self.direct, &mut own.footprint);
            own.is_planned = true;
            self.count(Step::Plan, began);
        }
        true
    }

    /// The counter of cycles, if the call that comes is one that is measured.
    #[inline]
    fn clock(until_measured: &mut u32) -> Option<u64> {
        *until_measured -= 1;
        (*until_measured == 0).then(|| {
            *until_measured = MEASURED_PERIOD;
            time::cycles()
        })
    }

    /// Counts what a call took, if it is measured; the counter as it is now.
    #[inline]
    fn count(&mut self, step: Step, began: Option<u64>) -> Option<u64> {
        let began = began?;
        let now = time::cycles();
        let step = self.direct.batches().step_mut(step);
        step.add_work(now.saturating_sub(began), 1);
        Some(now)
    }

    /// Plans a call and labels what it will write; false if it has expired.
    fn prepare(
        &mut self,
        mut context: NonNull<Context>,
        number: u64,
        calls: &mut dyn Calls,
    ) -> bool {
        // SAFETY: it is in no batch.
        let own = unsafe { context.as_mut() };
        if own.flight.is_expired() {
            own.flight.outcome = Some(Outcome::Expired);
            self.end(context, calls);
            return false;
        }
        own.flight.look(&self.shared.blocks);
        let mut began = Self::clock(&mut self.until_measured);
        if !std::mem::replace(&mut own.is_planned, true) {
            own.flight.plan(&mut self.direct, &mut own.footprint);
            began = self.count(Step::Plan, began);
        }
        self.analyst.prepare(&self.shared.batch, number, own);
        self.count(Step::Prepare, began);
        self.added.push(context);
        true
    }

    /// Tells how the worker's calls have ended: when their batch is done, or, of those that need no
    /// locks, when the conflict-free stage is. Whether there were any.
    fn tell(&mut self, calls: &mut dyn Calls) -> bool {
        if self.submitted.is_empty() {
            return false;
        }
        let is_done = self.shared.batch.number() != self.submitted_in;
        // Acquire inside pairs with the opening of the stage: how they have ended is visible.
        if !is_done && !matches!(self.shared.stages.now(), Stage::Residual | Stage::Last) {
            return false;
        }
        let mut submitted = std::mem::take(&mut self.submitted);
        let (before, mut kept) = (submitted.len(), 0);
        for position in 0..before {
            if let Some(&later) = submitted.get(position + TOLD_AHEAD) {
                fetch_context(later, USED_BYTES);
            }
            let context = submitted[position];
            // SAFETY: in these stages no worker changes it, or uses a transaction of which it is
            // false.
            let has_ended = is_done || unsafe { !(*context.as_ptr()).is_residual };
            if has_ended {
                self.end(context, calls);
            } else {
                submitted[kept] = context;
                kept += 1;
            }
        }
        submitted.truncate(kept);
        self.submitted = submitted;
        kept < before
    }

    /// Tells how a call has ended, or keeps it for the next batch.
    fn end(&mut self, mut context: NonNull<Context>, calls: &mut dyn Calls) {
        // SAFETY: it is in no batch any more.
        let own = unsafe { context.as_mut() };
        own.flight.tell(&mut self.direct, calls);
        if own.flight.has_ended {
            self.in_flight -= 1;
            self.pool.push(context);
        } else {
            own.is_planned = false;
            match own.flight.park(&self.shared.blocks) {
                true => self.parked.push(context),
                false => self.waiting.push_back(context),
            }
        }
    }

    /// Does an item of the stage that is open, if there is one.
    fn help(&mut self) -> bool {
        let Some((stage, item)) = self.shared.stages.take(&mut self.exhausted) else {
            return false;
        };
        let began = time::cycles();
        let transactions = match stage {
            Stage::Collect => unreachable!("it has no items"),
            Stage::Settle | Stage::Spot | Stage::Fuse | Stage::Allocate => {
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
        if self.shared.stages.complete() {
            self.shared.advance(stage, counts);
        }
    }

    /// Does an item of the analysis; how many transactions it is about.
    fn analyse(&mut self, stage: Stage, item: u32) -> u64 {
        let phases = self.direct.access().phases();
        phases.start();
        phases.enter(Phase::Plan);
        let batch = &self.shared.batch;
        match stage {
            Stage::Settle => self.analyst.settle(batch, item),
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

impl Scheduler for Strife {
    fn attempts(&mut self) -> &mut dyn Attempts {
        &mut self.direct
    }

    fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome> {
        let interrupt = self.direct.interrupt();
        let single = Single::new(program, arguments, deadline_ns, patience_ns, interrupt);
        let single = single.answered(answer);
        single.serve_with(|single| {
            self.is_single = true;
            self.serve(single);
            self.is_single = false;
        })
    }

    fn is_pipelined(&self) -> bool {
        true
    }

    fn serve(&mut self, calls: &mut dyn Calls) {
        self.direct.enter_turn();
        self.shared.spare.take(&mut self.pool);
        self.shared.come();
        (self.is_inside, self.was_call) = (true, true);
        let mut is_over = false;
        let mut idle = Idle::default();
        loop {
            let mut has_done = self.help() || self.tell(calls);
            self.unpark();
            if is_over && !self.parked.is_empty() && calls.takes_back() {
                self.hand_back(calls);
            }
            if !has_done {
                // A caller that waits for a single call reads its rows where the pool has its
                // context.
                if self.in_flight == self.parked.len() && !is_over && !self.is_single {
                    self.pass_turn();
                }
                if self.in_flight == self.parked.len() && is_over && self.in_flight > 0 {
                    self.stay_away(calls);
                }
                has_done = self.gather(calls, &mut is_over) || self.draw_ahead(calls, &mut is_over);
            }
            if is_over && self.in_flight == 0 {
                break;
            }
            match has_done {
                true => idle = Idle::default(),
                false => {
                    if idle.has_spun() {
                        self.shared.look_at_time();
                        if self.direct.is_broken() {
                            return self.break_off(calls);
                        }
                    }
                    idle.turn();
                }
            }
        }
        self.go();
        self.is_inside = false;
        self.direct.give_way();
    }

    fn begin(&mut self) -> bool {
        self.was_call = false;
        let mut idle = Idle::default();
        while !self.shared.open_statements() {
            if self.direct.is_broken() {
                return false;
            }
            idle.turn();
        }
        self.direct.access().manager().mode = Mode::Locking;
        self.direct.begin()
    }

    fn commit(&mut self) -> Result<(), AbortCause> {
        let result = self.direct.commit();
        self.shared.close_statements();
        result
    }

    fn roll_back(&mut self) {
        self.direct.roll_back();
        self.shared.close_statements();
    }

    fn frame(&self) -> &Frame {
        match self.pool.last() {
            // SAFETY: contexts of the pool are in no batch.
            Some(context) if self.was_call => unsafe { &context.as_ref().flight.frame },
            _ => self.direct.frame(),
        }
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

/// Contexts without a call that workers have left while they are outside of their turn.
#[derive(Default)]
pub(super) struct Spare(Mutex<Vec<Vec<NonNull<Context>>>>);

// SAFETY: contexts that are here belong to no worker, and any thread may use them.
unsafe impl Send for Spare {}
// SAFETY: as above, behind a mutex.
unsafe impl Sync for Spare {}

impl Spare {
    fn leave(&self, pool: &mut Vec<NonNull<Context>>) {
        if !pool.is_empty() {
            lock(&self.0).push(std::mem::take(pool));
        }
    }

    /// Those that were left last, for who has none.
    fn take(&self, pool: &mut Vec<NonNull<Context>>) {
        if pool.is_empty() {
            *pool = lock(&self.0).pop().unwrap_or_default();
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        for context in lock(&self.0).drain(..).flatten() {
            // SAFETY: as for those of a worker's pool, below.
            drop(unsafe { Box::from_raw(context.as_ptr()) });
        }
    }
}

impl Drop for Strife {
    fn drop(&mut self) {
        if self.is_inside {
            // A worker broke down: others may have its contexts.
            return;
        }
        for context in self.pool.drain(..) {
            // SAFETY: it was leaked when it was made, and no other worker has it.
            drop(unsafe { Box::from_raw(context.as_ptr()) });
        }
    }
}
