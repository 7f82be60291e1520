//! A worker: collects calls, helps with the stages, and tells how its calls have ended.

use std::collections::VecDeque;

use kiln_platform::random::Random;
use kiln_platform::schedule::point;
use kiln_platform::spin::Backoff;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::Frame;
use kiln_storage::epoch::Participant;

use super::StrifeState;
use super::analysis::Analyst;
use super::context::{Context, USED_BYTES, fetch_context};
use super::locks::{ClusterLocks, Mode};
use super::stages::Stage;
use crate::access::granted_locking::GrantedLocking;
use crate::batches::Step;
use crate::direct::Direct;
use crate::schedule::in_flight::{Home, Idle, Lent, Own, Pipelined, Single};
use crate::serve::Calls;
use crate::shared::planning::Footprint;

/// The planning and the PREPARE of one of so many calls are measured: all on virtual cores, where
/// reading the counter costs nothing.
const MEASURED_PERIOD: u32 = if cfg!(kiln_sim) { 1 } else { 32 };

/// Calls are asked for when those before them, by so many, are told how they have ended.
const TOLD_AHEAD: usize = 4;

/// A worker; see the module above.
pub struct Strife {
    /// The attempts, and the transactions of several statements.
    pub(super) direct: Direct<GrantedLocking<ClusterLocks>>,
    pub(super) shared: Arc<StrifeState>,
    pub(super) analyst: Analyst,
    pub(super) random: Random,
    pub(super) backoff: Backoff,
    /// What attempts hold beforehand: nothing.
    pub(super) nothing: Footprint,
    /// What attempts run in; a context gets the result. With a frame for each of hundreds they
    /// would run in memory that no cache has.
    pub(super) frame: Frame,
    /// Contexts that are in no batch.
    home: Home<Own<Context>, VecDeque<Own<Context>>>,
    /// Calls that are being labelled.
    added: Vec<Own<Context>>,
    /// Calls in the batch with the number `submitted_in`.
    submitted: Vec<Lent<Context>>,
    /// Memory for those that are left when others have been told.
    told: Vec<Lent<Context>>,
    submitted_in: u64,
    /// Its share of a batch: calls that it adds if all workers have as many.
    share: usize,
    /// The last batch for which it said that it was ready.
    ready_in: u64,
    /// Calls that it has drawn and not told the end of.
    in_flight: usize,
    /// The stage in which it found no item left.
    pub(super) exhausted: u64,
    /// Calls until one is measured.
    until_measured: u32,
    /// Whether it serves a single call.
    is_single: bool,
}

impl Strife {
    /// The worker that `participant` stands for; with `leaves_updates` updates of records that a
    /// batch only adds to are deferred to the commit.
    pub fn new(
        shared: Arc<StrifeState>,
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
            direct: Direct::new(GrantedLocking::new(participant, locks), random),
            shared,
            analyst: Analyst::default(),
            random: own,
            backoff: Backoff::new(waits),
            nothing,
            frame: Frame::new(),
            home: Home::new(Vec::new()),
            added: Vec::new(),
            submitted: Vec::new(),
            told: Vec::new(),
            submitted_in: 0,
            share: 0,
            ready_in: 0,
            in_flight: 0,
            exhausted: 0,
            until_measured: MEASURED_PERIOD,
            is_single: false,
        }
    }

    /// A worker broke down, and no batch ends any more: gives up the calls whose end it has not
    /// told. Others may run those of the batch at this time, whose contexts stay lent.
    #[cold]
    fn break_off(&mut self, calls: &mut dyn Calls) {
        let home = &mut self.home;
        let own = home.ready.drain(..).chain(home.parked.drain(..));
        for context in own.chain(self.added.drain(..)) {
            calls.lost(context.flight.call.ticket);
            home.pool.push(context);
        }
        for context in self.submitted.drain(..) {
            // SAFETY: the context is there, and no worker writes to its ticket before it is drawn
            // anew.
            let ticket = unsafe { (&raw const (*context.as_ptr()).flight.call.ticket).read() };
            calls.lost(ticket);
        }
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
    fn pass_core_slot(&mut self) {
        if self.direct.is_core_slot_over() {
            self.go();
            // The next worker has use for them while they are in the core's cache.
            self.shared.spare.leave(&mut self.home.pool);
            self.direct.leave_core_slot();
            self.direct.enter_core_slot();
            self.shared.spare.take(&mut self.home.pool);
            self.shared.come();
        }
    }

    /// As [`Strife::pass_core_slot`] until one of its calls may go on, which are all parked, or
    /// they are handed back.
    #[cold]
    fn stay_away(&mut self, calls: &mut dyn Calls) {
        self.go();
        self.direct.give_way();
        let mut idle = Idle::default();
        let waits = |home: &Home<_, VecDeque<_>>| home.ready.is_empty() && !home.parked.is_empty();
        while waits(&self.home) && !self.direct.is_broken() {
            idle.pause();
            self.home.unpark(&self.shared.blocks);
            self.hand_back(calls);
        }
        let deadline = |context: &Own<Context>| context.flight.call.deadline_ns;
        let deadlines = self.home.ready.iter().filter_map(deadline);
        self.direct.enter_core_slot_until(deadlines.min());
        self.shared.come();
    }

    /// Hands the calls back that are parked, if their drawer wants that.
    fn hand_back(&mut self, calls: &mut dyn Calls) {
        let in_flight = &mut self.in_flight;
        self.home.hand_back(calls, |_| *in_flight -= 1);
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
        if self.home.ready.is_empty() && !self.draw(calls, is_over) {
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
            if room == 0 || self.home.ready.is_empty() && !self.draw(calls, is_over) {
                break;
            }
            if let Some(context) = self.home.ready.pop_front()
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
        self.home.ready.extend(self.added.drain(..));
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
        let context = match self.home.pool.pop() {
            Some(context) => {
                self.fetch_pool();
                context
            }
            None => Own::new(Context::new()),
        };
        let direct = &mut self.direct;
        let draw = |context: &mut Own<Context>| context.flight.draw(calls, direct);
        let Some(mut context) = self.home.draw(context, is_over, draw) else {
            return false;
        };
        context.is_planned = false;
        self.in_flight += 1;
        self.home.ready.push_back(context);
        true
    }

    /// Asks for the memory of the contexts that come next.
    #[inline]
    fn fetch_pool(&self) {
        if let [.., far, near] = self.home.pool.as_slice() {
            fetch_context(far.as_ptr(), USED_BYTES);
            near.fetch_room();
        }
    }

    /// Draws a call for the next batch and plans it, while others are busy with what is left of
    /// this one.
    fn draw_ahead(&mut self, calls: &mut dyn Calls, is_over: &mut bool) -> bool {
        if self.shared.stages.now() == Stage::Collect
            || self.home.ready.len() >= self.most()
            || self.direct.is_core_slot_over()
            || !self.draw(calls, is_over)
        {
            return false;
        }
        if let Some(context) = self.home.ready.back_mut() {
            let own = &mut **context;
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
    fn prepare(&mut self, mut context: Own<Context>, number: u64, calls: &mut dyn Calls) -> bool {
        if context.flight.expires() {
            self.end(context, calls);
            return false;
        }
        let own = &mut *context;
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
        let empty = std::mem::take(&mut self.told);
        let mut submitted = std::mem::replace(&mut self.submitted, empty);
        let before = submitted.len();
        let mut left = submitted.drain(..);
        while let Some(context) = left.next() {
            if let Some(later) = left.as_slice().get(TOLD_AHEAD - 1) {
                fetch_context(later.as_ptr(), USED_BYTES);
            }
            // SAFETY: in these stages no worker changes it, or uses a transaction of which it is
            // false.
            let has_ended = is_done || unsafe { !(*context.as_ptr()).is_residual };
            match has_ended {
                // SAFETY: the batch is done, or no stage that is left uses the transaction; the
                // stage's opening shows what was done to it.
                true => self.end(unsafe { context.returned() }, calls),
                false => self.submitted.push(context),
            }
        }
        drop(left);
        self.told = submitted;
        self.submitted.len() < before
    }

    /// Tells how a call has ended, or keeps it for the next batch.
    fn end(&mut self, mut context: Own<Context>, calls: &mut dyn Calls) {
        context.flight.tell(&mut self.direct, calls);
        match context.flight.has_ended {
            true => self.in_flight -= 1,
            false => context.is_planned = false,
        }
        self.home.keep(context, &self.shared.blocks);
    }
}

impl Pipelined for Strife {
    type Access = GrantedLocking<ClusterLocks>;

    fn direct(&self) -> &Direct<Self::Access> {
        &self.direct
    }

    fn direct_mut(&mut self) -> &mut Direct<Self::Access> {
        &mut self.direct
    }

    fn forget_former(&mut self) {
        self.home.forget_programs();
    }

    fn call_frame(&self) -> Option<&Frame> {
        self.home.frame()
    }

    fn serve_calls(&mut self, calls: &mut dyn Calls) {
        self.direct.enter_core_slot();
        self.shared.spare.take(&mut self.home.pool);
        self.shared.come();
        self.home.was_call = true;
        let mut is_over = false;
        let mut idle = Idle::default();
        loop {
            let mut has_done = self.help() || self.tell(calls);
            self.home.unpark(&self.shared.blocks);
            if is_over {
                self.hand_back(calls);
            }
            if !has_done {
                // A caller that waits for a single call reads its rows where the pool has its
                // context.
                if self.in_flight == self.home.parked.len() && !is_over && !self.is_single {
                    self.pass_core_slot();
                }
                if self.in_flight == self.home.parked.len() && is_over && self.in_flight > 0 {
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
                    idle.pause();
                }
            }
        }
        self.go();
        self.direct.give_way();
    }

    fn serve_one(&mut self, call: &mut Single<'_>) {
        self.is_single = true;
        self.serve_calls(call);
        self.is_single = false;
    }

    fn open_statements(&mut self) -> bool {
        self.home.was_call = false;
        self.shared.open_statements()
    }

    fn begin_statements(&mut self) {
        self.direct.access().manager().mode = Mode::Locking;
        self.direct.begin();
    }

    fn close_statements(&mut self) {
        self.shared.close_statements();
    }
}
