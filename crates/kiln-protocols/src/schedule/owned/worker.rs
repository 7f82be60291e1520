//! A worker, which owns partitions or not.

use kiln_platform::atomic::Ordering;
use kiln_platform::random::Random;
use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::{AbortCause, Arguments, Frame, Interrupt, Program};
use kiln_storage::epoch::Participant;

use super::limit::Limit;
use super::locks::{GrantedLocks, Held};
use super::travel::{Owners, Passenger, Stage, act};
use super::{
    ACT, Core, Demand, Division, IN_FLIGHT_MAX, PartitionTable, RELEASE, Shared, WITHDRAW,
};
use crate::access::two_phase_locking::TwoPhaseLocking;
use crate::canary::Canary;
use crate::phases::Phased;
use crate::schedule::direct::Direct;
use crate::schedule::in_flight::{Idle, Single};
use crate::scheduler::{Attempts, Scheduler};
use crate::serve::{Calls, Next};
use crate::shared::lent::Lent;
use crate::shared::recorder::Recorded;
use crate::shared::turns::WAIT_IN_TURN_NS;
use crate::{AnswerWriter, Observation, Outcome};

/// A call that has failed so often runs alone.
const FAILURES_MAX: u32 = 10;
/// So long the others may take to let a call be alone, in nanoseconds.
const ALONE_WAIT_NS: u64 = 5_000_000;

/// A call in flight, with what it demands of the partitions. Both stay where they are.
struct Context<T: PartitionTable> {
    /// Lent to owners of partitions, where these run it, while it waits.
    passenger: Lent<Passenger<T>>,
    demand: Lent<Demand>,
    /// The call's.
    deadline_ns: Option<u64>,
    /// The call's.
    ticket: u64,
    interrupt: Option<Interrupt>,
}

impl<T: PartitionTable> Context<T> {
    fn new(worker: u32) -> Context<T> {
        let mut demand = Lent::of(Demand::new(worker));
        let passenger = Lent::new(Passenger::default());
        demand.passenger = passenger.as_ptr().cast();
        Context {
            passenger,
            demand,
            deadline_ns: None,
            ticket: 0,
            interrupt: None,
        }
    }

    /// Whether its call's time is over; also while it is lent.
    fn is_expired(&self) -> bool {
        let interrupt = self.interrupt.as_ref();
        interrupt.is_some_and(Interrupt::is_canceled)
            || (self.deadline_ns).is_some_and(|deadline| time::now_ns() >= deadline)
    }
}

/// A worker; see the module above.
pub struct Owned<T: PartitionTable> {
    /// The attempts, and the transactions of several statements.
    pub(super) direct: Direct<TwoPhaseLocking<GrantedLocks<T>>>,
    shared: Arc<Shared<T>>,
    number: u32,
    /// Contexts without a call.
    pool: Vec<Context<T>>,
    /// Those whose locks are on their way.
    waiting: Vec<Context<T>>,
    /// Those that have run, and whose locks are not all given back.
    leaving: Vec<Context<T>>,
    /// Those that are planned next.
    retries: Vec<Context<T>>,
    /// Those that are planned when a transaction of several statements has ended, or some time
    /// later.
    parked: Vec<Context<T>>,
    /// How many may wait for locks when another call is drawn.
    limit: Limit,
    /// Transactions that may have locks.
    running: u32,
    /// How the locks should be divided, while it keeps all others out for that, and until when it
    /// does.
    division: Option<(Division, u64)>,
    /// Whether the last run was a call, and not a statement.
    was_call: bool,
}

// SAFETY: demands are used in turn.
unsafe impl<T: PartitionTable> Send for Owned<T> {}

impl<T: PartitionTable> Owned<T> {
    /// The worker that `participant` stands for.
    pub fn new(shared: Arc<Shared<T>>, participant: Participant, random: Random) -> Owned<T> {
        let number = participant.slot() as u32;
        let locks = GrantedLocks::new(shared.clone(), number);
        shared.come(number);
        let contexts = (0..IN_FLIGHT_MAX).map(|_| Context::new(number));
        Owned {
            direct: Direct::new(TwoPhaseLocking::new(participant, locks), random),
            shared,
            number,
            pool: contexts.collect(),
            waiting: Vec::with_capacity(IN_FLIGHT_MAX),
            leaving: Vec::with_capacity(IN_FLIGHT_MAX),
            retries: Vec::with_capacity(IN_FLIGHT_MAX),
            parked: Vec::with_capacity(IN_FLIGHT_MAX),
            limit: Limit::default(),
            running: 0,
            division: None,
            was_call: false,
        }
    }

    fn serve_calls(&mut self, calls: &mut dyn Calls) {
        self.was_call = true;
        let (mut is_over, mut has_turn) = (false, false);
        let mut idle = Idle::default();
        loop {
            let role = self.shared.desks[self.number as usize]
                .role
                .load(Ordering::Relaxed);
            // Then workers take turns, and one that has none has nothing in flight that others
            // could wait for: one call is drawn after the other. While its turn lasts the locks of
            // one are given back with the request for those of the next.
            let is_crowded = self.shared.controllers.load(Ordering::Relaxed) == 0;
            self.unpark();
            if is_over && !self.parked.is_empty() && calls.takes_back() {
                self.hand_back(calls);
            }
            let is_free = self.pool.len() + self.parked.len() == IN_FLIGHT_MAX;
            if is_free && (is_over || !is_crowded) && std::mem::take(&mut has_turn) {
                self.direct.give_way();
            }
            if is_over && self.pool.len() == IN_FLIGHT_MAX {
                self.give_up_division();
                return;
            }
            // A worker that has given its turn away waits for the next one when it has something to
            // do.
            let wants_turn = match has_turn {
                true => is_free && self.direct.is_turn_over(),
                false => self.running == 0 && !(is_over && self.retries.is_empty()),
            };
            if is_crowded && wants_turn {
                self.pass_turn();
                has_turn = true;
            }
            let mut has_done = self.run_granted(calls);
            has_done |= self.reap();
            has_done |= self.retry(calls);
            if !is_over && (is_free || !is_crowded || has_turn && self.may_follow()) {
                // Where owners run transactions, some have what these bring to do. A block whose
                // client thinks may have what all of them wait for, and not what the next one
                // wants.
                let has_room = !T::DEDICATED
                    || self.waiting.len() < self.limit.calls()
                    || idle.is_long()
                    || idle.has_spun() && self.shared.blocks.any_open();
                match role == 0 || !T::DEDICATED || calls.is_bound() {
                    true => has_done |= has_room && self.draw(calls, &mut is_over),
                    false => is_over = calls.is_over(),
                }
            }
            if role > 0 {
                has_done |= self.control(Some(role as usize - 1));
            }
            if role == 1 || self.division.is_some() {
                self.divide(role);
            }
            if (role == 0 || !T::DEDICATED)
                && !has_done
                && (idle.is_long() || self.shared.controllers.load(Ordering::Relaxed) == 0)
            {
                has_done |= self.control(None);
            }
            if (idle.has_spun() || !self.retries.is_empty()) && self.direct.is_broken() {
                return self.break_off(calls);
            }
            match has_done {
                true => idle = Idle::default(),
                false => {
                    if idle.has_spun() {
                        // A worker without room for a call draws none, and so is not told that
                        // there are none.
                        is_over = is_over || calls.is_over();
                        // Its turn is wanted, or its calls are, and a client that thinks may have
                        // what these wait for.
                        let is_in_vain = self.shared.blocks.any_open()
                            && (is_crowded && idle.has_lasted(WAIT_IN_TURN_NS)
                                || is_over && idle.is_long() && calls.takes_back());
                        self.withdraw(is_in_vain);
                    }
                    let is_free = self.pool.len() + self.parked.len() == IN_FLIGHT_MAX;
                    if is_free && std::mem::take(&mut has_turn) {
                        self.direct.give_way();
                    }
                    // A lock that is granted to a worker that sleeps serves no transaction, and
                    // neither does a message to an owner that sleeps.
                    let is_awaited = role > 0 || !self.waiting.is_empty();
                    match is_awaited && !is_crowded {
                        true => idle.turn_awake(),
                        false => idle.turn(),
                    }
                }
            }
        }
    }

    /// A worker broke down: gives up the calls whose end it has not told. Others may have what
    /// belongs to these, which therefore stays where it is.
    #[cold]
    fn break_off(&mut self, calls: &mut dyn Calls) {
        self.give_up_division();
        for context in &self.waiting {
            calls.lost(context.ticket);
        }
        // Those have run: this worker alone looks at how.
        let untold = |context: &&Context<T>| !context.passenger.flight.has_ended;
        for context in self.leaving.iter().filter(untold) {
            calls.lost(context.ticket);
        }
        for context in self.retries.drain(..).chain(self.parked.drain(..)) {
            calls.lost(context.ticket);
            self.pool.push(context);
        }
        self.direct.give_way();
    }

    /// Whether all that it has in flight are locks that are being given back, and its turn lasts.
    #[inline]
    fn may_follow(&mut self) -> bool {
        self.waiting.is_empty() && self.retries.is_empty() && !self.direct.is_turn_over()
    }

    /// Waits for its turn, after it has left the one that it had. Nothing of it is in flight but
    /// what is parked, and no owner looks for messages from it.
    #[cold]
    fn pass_turn(&mut self) {
        self.direct.leave_turn();
        self.shared.go(self.number);
        let waiting = self.parked.iter().chain(&self.retries);
        let deadlines = waiting.filter_map(|context| context.deadline_ns);
        self.direct.enter_turn_until(deadlines.min());
        self.shared.appear(self.number);
    }

    /// Does what the controller with this number has to do, or all of them; whether there was
    /// anything.
    fn control(&mut self, controller: Option<usize>) -> bool {
        let Owned {
            direct,
            shared,
            running,
            ..
        } = self;
        let (is_outside, mut has_entered) = (*running == 0, false);
        let act = |shared: &Shared<T>, core: &mut Core<T>, demand: *mut Demand| {
            if is_outside && !std::mem::replace(&mut has_entered, true) {
                direct.access().enter_epoch();
            }
            // SAFETY: what is ready in a partition was sent to be run there; this worker's contexts
            // are of this type, and so are all that share it.
            unsafe { act(shared, core, direct, demand) }
        };
        let has_done = match controller {
            Some(controller) => shared.control(controller, Some(act)),
            None => shared.control_all(Some(act)),
        };
        if has_entered {
            direct.access().leave_epoch();
        }
        has_done
    }

    /// Divides the locks anew, if it is time for that: in several turns, as those who have locks
    /// need partitions that are looked after.
    fn divide(&mut self, role: u32) {
        let shared = &self.shared;
        let Some((division, limit)) = self.division else {
            let Some(division) = shared.other_division() else {
                return;
            };
            // Sequentially consistent, as in `enter`.
            let own = self.number + 1;
            let exchanged =
                shared
                    .alone
                    .compare_exchange(0, own, Ordering::SeqCst, Ordering::Relaxed);
            if exchanged.is_ok() {
                self.division = Some((division, time::now_ns() + ALONE_WAIT_NS));
            }
            return;
        };
        let is_in_use = self.running > 0 || !shared.is_alone(self.number);
        if !is_in_use || matches!(division, Division::Slots) && Canary::DividedInUse.sings() {
            point("owned.divided");
            shared.divide(division);
            self.give_up_division();
        } else if role != 1 || time::now_ns() >= limit {
            // A client of a block is thinking; there is another count.
            self.give_up_division();
        }
    }

    /// Lets the others in again.
    fn give_up_division(&mut self) {
        if self.division.take().is_some() {
            self.shared.alone.store(0, Ordering::Release);
        }
    }

    /// Withdraws demands that wait although the time of their calls is over, as the lock holder may
    /// be a client that thinks; or all demands, where a wait is in vain. Their calls are parked
    /// then.
    fn withdraw(&mut self, is_in_vain: bool) {
        for context in &self.waiting {
            if !context.demand.may_be_withdrawn() || !is_in_vain && !context.is_expired() {
                continue;
            }
            let demand = &context.demand;
            demand.withdraw();
            let message = std::ptr::from_ref::<Demand>(demand) as u64 | WITHDRAW;
            for span in &demand.spans {
                self.send(span.partition, message);
            }
        }
    }

    /// Draws a call, if there is one and room for it, and asks for its locks.
    fn draw(&mut self, calls: &mut dyn Calls, is_over: &mut bool) -> bool {
        let Some(mut context) = self.pool.pop() else {
            return false;
        };
        let passenger = &mut *context.passenger;
        if T::OWNERS_RUN {
            // What it does is recorded in its own history.
            let recorder = &mut passenger.parked.done.recorder;
            std::mem::swap(self.direct.access().recorder(), recorder);
        }
        let next = (passenger.flight).draw(calls, &mut self.direct);
        if T::OWNERS_RUN {
            let recorder = &mut passenger.parked.done.recorder;
            std::mem::swap(self.direct.access().recorder(), recorder);
        }
        match next {
            Next::Call => {
                let call = &passenger.flight.call;
                (context.deadline_ns, context.ticket) = (call.deadline_ns, call.ticket);
                context.interrupt.clone_from(&call.interrupt);
                self.start(context, calls)
            }
            none => {
                *is_over = none == Next::Pause;
                self.pool.push(context);
                false
            }
        }
    }

    /// Starts the next of those that failed; whether it came anywhere.
    fn retry(&mut self, calls: &mut dyn Calls) -> bool {
        match self.retries.pop() {
            Some(context)
                if context.passenger.flight.failures >= FAILURES_MAX
                    && self.shared.solitude.may_ask() =>
            {
                self.run_alone(context, calls)
            }
            Some(context) => self.start(context, calls),
            None => false,
        }
    }

    /// Has those tried again that are parked, when there is a reason to.
    #[inline]
    fn unpark(&mut self) {
        if !self.parked.is_empty() {
            let (blocks, now_ns) = (&self.shared.blocks, time::now_ns());
            let may_go_on =
                |context: &mut Context<T>| context.passenger.flight.may_go_on(blocks, now_ns);
            self.retries.extend(self.parked.extract_if(.., may_go_on));
        }
    }

    /// Hands the calls back that are parked.
    #[cold]
    fn hand_back(&mut self, calls: &mut dyn Calls) {
        while let Some(mut context) = self.parked.pop() {
            context.passenger.flight.hand_back(calls);
            self.pool.push(context);
        }
    }

    /// Plans a transaction and asks for its locks; false when it may not start now.
    fn start(&mut self, mut context: Context<T>, calls: &mut dyn Calls) -> bool {
        if context.passenger.flight.is_expired() {
            context.passenger.flight.outcome = Some(Outcome::Expired);
            context.passenger.flight.tell(&mut self.direct, calls);
            self.pool.push(context);
            return true;
        }
        if T::OWNERS_RUN && self.running > 0 && self.direct.access().is_epoch_over() {
            self.retries.push(context);
            return false;
        }
        if !self.shared.enter(self.number, self.running + 1) {
            self.retries.push(context);
            return false;
        }
        self.running += 1;
        if T::OWNERS_RUN && self.running == 1 {
            self.direct.access().enter_epoch();
        }
        context.passenger.flight.look(&self.shared.blocks);
        match T::OWNERS_RUN {
            true => self.set_out(context),
            false => self.plan(context, calls),
        }
        true
    }

    /// Plans a transaction that this worker will run, and asks for its locks.
    fn plan(&mut self, mut context: Context<T>, calls: &mut dyn Calls) {
        let passenger = &mut *context.passenger;
        passenger
            .flight
            .plan(&mut self.direct, &mut passenger.footprint);
        point("owned.planned");
        let demand = &mut *context.demand;
        self.shared
            .demand(self.number, context.passenger.footprint.claims(), demand);
        match demand.spans.as_slice() {
            // It has nothing to lock: it may read what is not there, and insert.
            [] => self.run_one(context, calls),
            [_, _, ..] if T::SEQUENCED => {
                let demand: *mut Demand = demand;
                self.waiting.push(context);
                // SAFETY: what is lent stays where it is, and was not sent anywhere.
                unsafe { self.shared.sequence(demand) }
            }
            [first, ..] => {
                let first = first.partition;
                let message = std::ptr::from_mut::<Demand>(demand) as u64;
                self.waiting.push(context);
                self.send(first, message);
            }
        }
    }

    /// Sends a transaction to the owner of the first records that its arguments name, who begins to
    /// plan it. One that names none is planned here.
    fn set_out(&mut self, mut context: Context<T>) {
        let whereabouts = Owners::of_none(&self.shared);
        let access = self.direct.access();
        let epoch = access.epoch();
        context.demand.begin_plan();
        let passenger = &mut *context.passenger;
        let next = passenger.plan(access.phases(), whereabouts, Some(epoch));
        let demand = &mut *context.demand;
        let (to, what) = match next {
            Some(partition) => (partition, ACT),
            None => {
                point("owned.planned");
                passenger.stage = Stage::Planned;
                let claims = passenger.footprint.claims();
                self.shared.demand(self.number, claims, demand);
                match demand.spans.as_slice() {
                    [] => (demand.first_stop, ACT),
                    [first, ..] => (first.partition, 0),
                }
            }
        };
        let message = std::ptr::from_mut::<Demand>(demand) as u64 | what;
        self.waiting.push(context);
        self.send(to, message);
    }

    fn send(&self, partition: u16, message: u64) {
        let ring = &self.shared.desks[self.number as usize].requests[partition as usize];
        let has_room = ring.push(message);
        assert!(has_room, "a ring has room for all demands of a worker");
    }

    /// Runs the transactions that have their locks.
    fn run_granted(&mut self, calls: &mut dyn Calls) -> bool {
        let mut has_done = false;
        for partition in 0..self.shared.partitions() {
            while let Some(message) =
                self.shared.desks[self.number as usize].granted[partition].pop()
            {
                has_done = true;
                let waiting = self.waiting.iter();
                let address =
                    |context: &Context<T>| std::ptr::from_ref::<Demand>(&context.demand) as u64;
                let position = waiting.map(address).position(|one| one == message);
                let position = position.expect("an answer is about a demand that waits");
                let mut context = self.waiting.swap_remove(position);
                // SAFETY: with the message the demand is this thread's again.
                unsafe { Demand::note_reads(&raw const *context.demand) };
                self.limit.granted(context.demand.has_waited);
                point("owned.granted");
                if T::OWNERS_RUN && context.demand.has_run {
                    self.tell(&mut context, calls);
                    self.leaving.push(context);
                } else if context.demand.stage < context.demand.spans.len() {
                    let flight = &mut context.passenger.flight;
                    let cause = match context.demand.is_withdrawn() {
                        true if flight.is_expired() => {
                            flight.outcome = Some(Outcome::Expired);
                            AbortCause::LockTimeout
                        }
                        true => {
                            flight.give_up();
                            AbortCause::GaveWay
                        }
                        // A statement has what it wants.
                        false => {
                            flight.failures += 1;
                            AbortCause::LockTimeout
                        }
                    };
                    self.direct.counters().count_abort(cause);
                    self.leave(context, calls);
                } else {
                    self.run_one(context, calls);
                }
            }
        }
        has_done
    }

    /// Makes an attempt with the locks that were granted.
    fn run_one(&mut self, mut context: Context<T>, calls: &mut dyn Calls) {
        let passenger = &mut *context.passenger;
        passenger
            .flight
            .attempt(&mut self.direct, &passenger.footprint, Held::Granted);
        self.leave(context, calls);
    }

    /// Tells how a call has ended, if it has.
    fn tell(&mut self, context: &mut Context<T>, calls: &mut dyn Calls) {
        let flight = &mut context.passenger.flight;
        flight.tell(&mut self.direct, calls);
        if flight.has_ended {
            self.shared.count_ended(self.number);
        }
    }

    /// Tells how a call has ended, if it has, and gives back what was granted.
    fn leave(&mut self, mut context: Context<T>, calls: &mut dyn Calls) {
        self.tell(&mut context, calls);
        let demand = &mut context.demand;
        // Those at which a withdrawn one did not wait any more, or never arrived, have nothing of
        // it.
        let held = demand.held(T::SEQUENCED);
        // Relaxed: the messages synchronize. Some may still answer that they have heard of a
        // withdrawal.
        demand
            .holds
            .0
            .fetch_add(held.count_ones(), Ordering::Relaxed);
        let message = std::ptr::from_mut::<Demand>(demand) as u64 | RELEASE;
        let spans = demand.spans.as_ptr();
        self.leaving.push(context);
        for at in (0..u64::BITS as usize).filter(|at| held >> at & 1 != 0) {
            // SAFETY: the demand stays where it is, and no thread changes its spans before all is
            // given back; the counter cannot be 0 before the last message of this loop.
            self.send(unsafe { (*spans.add(at)).partition }, message);
        }
    }

    /// Takes contexts whose locks are all given back for others, or for their next attempt.
    fn reap(&mut self) -> bool {
        let mut has_done = false;
        let mut at = 0;
        while at < self.leaving.len() {
            // Acquire pairs with the release in `handle`: no partition looks at the demand any
            // more.
            if self.leaving[at].demand.holds.0.load(Ordering::Acquire) > 0 {
                at += 1;
                continue;
            }
            has_done = true;
            let mut context = self.leaving.swap_remove(at);
            self.running -= 1;
            if T::OWNERS_RUN && self.running == 0 {
                self.direct.access().leave_epoch();
            }
            self.shared.leave(self.number, self.running);
            let flight = &mut context.passenger.flight;
            if flight.has_ended {
                self.pool.push(context);
            } else if flight.park(&self.shared.blocks) {
                self.parked.push(context);
            } else {
                self.retries.push(context);
            }
        }
        has_done
    }

    /// Goes on with what it has in flight, and with what partitions have to do, until `is_done`.
    fn go_on(&mut self, calls: &mut dyn Calls, mut is_done: impl FnMut(&mut Owned<T>) -> bool) {
        let mut idle = Idle::default();
        while !is_done(self) && !self.direct.is_broken() {
            let mut has_done = self.run_granted(calls);
            has_done |= self.reap();
            has_done |= self.control(None);
            match has_done {
                true => idle = Idle::default(),
                false => {
                    self.withdraw(false);
                    idle.turn();
                }
            }
        }
    }

    /// Runs a transaction that keeps failing while all others are kept out. Whether that was to be
    /// had.
    #[cold]
    fn run_alone(&mut self, context: Context<T>, calls: &mut dyn Calls) -> bool {
        let own = self.number + 1;
        let alone = &self.shared.alone;
        if alone
            .compare_exchange(0, own, Ordering::SeqCst, Ordering::Relaxed)
            .is_err()
        {
            self.retries.push(context);
            return false;
        }
        let limit = time::now_ns() + ALONE_WAIT_NS;
        let mut is_alone = false;
        self.go_on(calls, |worker| {
            is_alone = worker.running == 0 && worker.shared.is_alone(worker.number);
            is_alone || time::now_ns() >= limit
        });
        self.shared.solitude.asked(is_alone);
        if !is_alone {
            // A client of a block is thinking; the call goes on among the others.
            self.shared.alone.store(0, Ordering::Release);
            self.retries.push(context);
            return false;
        }
        // Whatever else failed waits until this one has ended.
        let others = std::mem::take(&mut self.retries);
        let parked = std::mem::take(&mut self.parked);
        let mut next = Some(context);
        while let Some(context) = next.take() {
            self.start(context, calls);
            self.go_on(calls, |worker| worker.running == 0);
            if self.direct.is_broken() {
                break;
            }
            next = self.retries.pop().or_else(|| self.parked.pop());
        }
        self.retries.extend(others);
        self.parked.extend(parked);
        self.shared.alone.store(0, Ordering::Release);
        true
    }

    fn close(&mut self) {
        self.shared.blocks.close();
        self.running -= 1;
        self.shared.leave(self.number, self.running);
    }
}

impl<T: PartitionTable> Scheduler for Owned<T> {
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
        single.serve_with(|single| self.serve_calls(single))
    }

    fn is_pipelined(&self) -> bool {
        true
    }

    fn serve(&mut self, calls: &mut dyn Calls) {
        self.shared.serve(self.number, true);
        self.serve_calls(calls);
        self.shared.serve(self.number, false);
    }

    fn begin(&mut self) -> bool {
        self.was_call = false;
        let mut idle = Idle::default();
        while !self.shared.enter(self.number, self.running + 1) {
            if self.direct.is_broken() {
                return false;
            }
            idle.turn();
        }
        self.running += 1;
        self.shared.blocks.open();
        self.direct.begin()
    }

    fn commit(&mut self) -> Result<(), AbortCause> {
        let result = self.direct.commit();
        self.close();
        result
    }

    fn roll_back(&mut self) {
        self.direct.roll_back();
        self.close();
    }

    fn frame(&self) -> &Frame {
        match self.pool.last() {
            Some(context) if self.was_call => &context.passenger.flight.frame,
            _ => self.direct.frame(),
        }
    }

    fn observe(&mut self, observation: Option<&Observation>) {
        self.direct.observe(observation);
        if T::OWNERS_RUN {
            for context in &mut self.pool {
                context.passenger.parked.done.recorder.observe(observation);
            }
        }
    }

    fn is_history_full(&mut self) -> bool {
        let mut contexts = self.pool.iter_mut();
        self.direct.is_history_full()
            || T::OWNERS_RUN
                && contexts.any(|context| context.passenger.parked.done.recorder.is_full())
    }
}

impl<T: PartitionTable> Drop for Owned<T> {
    fn drop(&mut self) {
        // Only when a worker broke down: partitions may still have pointers to these.
        let in_flight = self.waiting.drain(..).chain(self.leaving.drain(..));
        in_flight.for_each(std::mem::forget);
        self.shared.go(self.number);
    }
}
