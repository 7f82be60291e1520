//! A worker, which owns partitions or not: draws calls, plans them, and asks for their locks.

use kiln_platform::atomic::Ordering;
use kiln_platform::random::Random;
use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_procedure::Frame;
use kiln_storage::epoch::Participant;

use super::context::{Context, Leaving, Waiting};
use super::limit::Limit;
use super::locks::GrantedLocks;
use super::messages::ACT;
use super::partition::Core;
use super::roles::Division;
use super::travel::{Owners, Stage, act};
use super::{Demand, IN_FLIGHT_MAX, OwnedState, PartitionTable};
use crate::Observation;
use crate::access::planned_locking::PlannedLocking;
use crate::direct::Direct;
use crate::phases::Phased;
use crate::schedule::in_flight::{Home, Idle, Pipelined, Single};
use crate::serve::Calls;
use crate::shared::core_slots::WAIT_IN_CORE_SLOT_NS;
use crate::shared::recorder::Recorded;

/// A worker; see the module above.
pub struct Owned<T: PartitionTable> {
    /// The attempts, and the transactions of several statements.
    pub(super) direct: Direct<PlannedLocking<GrantedLocks<T>>>,
    pub(super) shared: Arc<OwnedState<T>>,
    pub(super) number: u32,
    /// Contexts of which no partition knows.
    pub(super) home: Home<Context<T>>,
    /// Those whose locks are on their way.
    pub(super) waiting: Vec<Waiting<T>>,
    /// Those that have run, and whose locks are not all given back.
    pub(super) leaving: Vec<Leaving<T>>,
    /// How many may wait for locks when another call is drawn.
    pub(super) limit: Limit,
    /// Transactions that may have locks.
    pub(super) running: u32,
    /// How the locks should be divided, while it keeps all others out for that, and until when it
    /// does.
    pub(super) division: Option<(Division, u64)>,
}

// SAFETY: demands are used in turn.
unsafe impl<T: PartitionTable> Send for Owned<T> {}

impl<T: PartitionTable> Owned<T> {
    /// The worker that `participant` stands for.
    pub fn new(shared: Arc<OwnedState<T>>, participant: Participant, random: Random) -> Owned<T> {
        let number = participant.slot() as u32;
        let locks = GrantedLocks::new(shared.clone(), number);
        shared.come(number);
        let contexts = (0..IN_FLIGHT_MAX).map(|_| Context::new(number)).collect();
        Owned {
            direct: Direct::new(PlannedLocking::new(participant, locks), random),
            shared,
            number,
            home: Home::new(contexts),
            waiting: Vec::with_capacity(IN_FLIGHT_MAX),
            leaving: Vec::with_capacity(IN_FLIGHT_MAX),
            limit: Limit::default(),
            running: 0,
            division: None,
        }
    }

    /// Runs calls until there are no more and all have ended, as a worker of which the others know.
    fn serve_known(&mut self, calls: &mut dyn Calls) {
        self.home.was_call = true;
        let (mut is_over, mut has_core_slot) = (false, false);
        let mut idle = Idle::default();
        loop {
            let role = self.shared.channels[self.number as usize]
                .role
                .load(Ordering::Relaxed);
            // Then workers share core slots, and one that has none has nothing in flight that
            // others could wait for: one call is drawn after the other. While its core slot lasts
            // the locks of one are given back with the request for those of the next.
            let is_crowded = self.shared.controllers.load(Ordering::Relaxed) == 0;
            self.home.unpark(&self.shared.blocks);
            if is_over {
                self.home.hand_back(calls, |_| ());
            }
            let is_free = self.is_free();
            if is_free && (is_over || !is_crowded) && std::mem::take(&mut has_core_slot) {
                self.direct.give_way();
            }
            if is_over && self.home.pool.len() == IN_FLIGHT_MAX {
                self.give_up_division();
                return;
            }
            // A worker that has given its core slot away waits for the next one when it has
            // something to do.
            let wants_core_slot = match has_core_slot {
                true => is_free && self.direct.is_core_slot_over(),
                false => self.running == 0 && !(is_over && self.home.ready.is_empty()),
            };
            if is_crowded && wants_core_slot {
                self.pass_core_slot();
                has_core_slot = true;
            }
            let mut has_done = self.run_granted(calls);
            has_done |= self.reap();
            has_done |= self.retry(calls);
            if !is_over && (is_free || !is_crowded || has_core_slot && self.may_follow()) {
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
            if (idle.has_spun() || !self.home.ready.is_empty()) && self.direct.is_broken() {
                return self.break_off(calls);
            }
            match has_done {
                true => idle = Idle::default(),
                false => {
                    if idle.has_spun() {
                        // A worker without room for a call draws none, and so is not told that
                        // there are none.
                        is_over = is_over || calls.is_over();
                        // Its core slot is wanted, or its calls are, and a client that thinks may
                        // have what these wait for.
                        let is_in_vain = self.shared.blocks.any_open()
                            && (is_crowded && idle.has_lasted(WAIT_IN_CORE_SLOT_NS)
                                || is_over && idle.is_long() && calls.takes_back());
                        self.withdraw(is_in_vain);
                    }
                    if self.is_free() && std::mem::take(&mut has_core_slot) {
                        self.direct.give_way();
                    }
                    // A lock that is granted to a worker that sleeps serves no transaction, and
                    // neither does a message to an owner that sleeps.
                    let is_awaited = role > 0 || !self.waiting.is_empty();
                    match is_awaited && !is_crowded {
                        true => idle.pause_awake(),
                        false => idle.pause(),
                    }
                }
            }
        }
    }

    /// Whether no partition knows of any of its contexts, and none is planned next.
    fn is_free(&self) -> bool {
        self.home.pool.len() + self.home.parked.len() == IN_FLIGHT_MAX
    }

    /// A worker broke down: gives up the calls whose end it has not told. Others may have what
    /// belongs to these, which therefore stays where it is.
    #[cold]
    fn break_off(&mut self, calls: &mut dyn Calls) {
        self.give_up_division();
        for waiting in &self.waiting {
            calls.lost(waiting.ticket());
        }
        let untold = |leaving: &&Leaving<T>| !leaving.flight().has_ended;
        for leaving in self.leaving.iter().filter(untold) {
            calls.lost(leaving.ticket());
        }
        let home = &mut self.home;
        for context in home.ready.drain(..).chain(home.parked.drain(..)) {
            calls.lost(context.ticket());
            home.pool.push(context);
        }
        self.direct.give_way();
    }

    /// Whether all that it has in flight are locks that are being given back, and its core slot
    /// lasts.
    #[inline]
    fn may_follow(&mut self) -> bool {
        self.waiting.is_empty() && self.home.ready.is_empty() && !self.direct.is_core_slot_over()
    }

    /// Waits for its core slot, after it has left the one that it had. Nothing of it is in flight
    /// but what is parked, and no owner looks for messages from it.
    #[cold]
    fn pass_core_slot(&mut self) {
        self.direct.leave_core_slot();
        self.shared.go(self.number);
        self.direct.enter_core_slot_until(self.home.deadline_ns());
        self.shared.appear(self.number);
    }

    /// Does what the controller with this number has to do, or all of them; whether there was
    /// anything.
    pub(super) fn control(&mut self, controller: Option<usize>) -> bool {
        let Owned {
            direct,
            shared,
            running,
            ..
        } = self;
        let (is_outside, mut has_entered) = (*running == 0, false);
        let act = |shared: &OwnedState<T>, core: &mut Core<T>, demand: *mut Demand| {
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

    /// Draws a call, if there is one and room for it, and asks for its locks.
    fn draw(&mut self, calls: &mut dyn Calls, is_over: &mut bool) -> bool {
        let Some(context) = self.home.pool.pop() else {
            return false;
        };
        let direct = &mut self.direct;
        let drawn = self.home.draw(context, is_over, |context| {
            if !T::OWNERS_RUN {
                return context.passenger.flight.draw(calls, direct);
            }
            // What it does is recorded in its own history.
            let passenger = &mut *context.passenger;
            let recorder = &mut passenger.parked.done.recorder;
            std::mem::swap(direct.access().recorder(), recorder);
            let next = passenger.flight.draw(calls, direct);
            std::mem::swap(direct.access().recorder(), recorder);
            next
        });
        let Some(mut context) = drawn else {
            return false;
        };
        context.note_call();
        self.start(context, calls)
    }

    /// Starts the next of those that failed; whether it came anywhere.
    fn retry(&mut self, calls: &mut dyn Calls) -> bool {
        match self.home.next(&self.shared.solitude) {
            Some((context, true)) => self.run_alone(context, calls),
            Some((context, false)) => self.start(context, calls),
            None => false,
        }
    }

    /// Plans a transaction and asks for its locks; false when it may not start now.
    pub(super) fn start(&mut self, mut context: Context<T>, calls: &mut dyn Calls) -> bool {
        if context.passenger.flight.expires() {
            context.passenger.flight.tell(&mut self.direct, calls);
            self.home.pool.push(context);
            return true;
        }
        if T::OWNERS_RUN && self.running > 0 && self.direct.access().is_epoch_over() {
            self.home.ready.push(context);
            return false;
        }
        if !self.shared.enter(self.number, self.running + 1) {
            self.home.ready.push(context);
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
        let claims = context.passenger.footprint.claims();
        self.shared.demand(self.number, claims, &mut context.demand);
        match context.demand.spans.as_slice() {
            // It has nothing to lock: it may read what is not there, and insert.
            [] => self.run_one(context, calls),
            [_, _, ..] if T::SEQUENCED => {
                let demand = self.ask(context);
                // SAFETY: what is lent stays where it is, and was not sent anywhere.
                unsafe { self.shared.sequence(demand) }
            }
            [first, ..] => {
                let first = first.partition;
                let demand = self.ask(context);
                self.send(first, demand as u64);
            }
        }
    }

    /// Lends a context to the partitions; the caller sends its demand there.
    fn ask(&mut self, context: Context<T>) -> *mut Demand {
        let (waiting, demand) = context.ask();
        self.waiting.push(waiting);
        demand
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
        let demand = self.ask(context);
        self.send(to, demand as u64 | what);
    }

    /// Sends a message to a partition.
    pub(super) fn send(&self, partition: u16, message: u64) {
        let ring = &self.shared.channels[self.number as usize].requests[partition as usize];
        let has_room = ring.push(message);
        assert!(has_room, "a ring has room for all demands of a worker");
    }
}

impl<T: PartitionTable> Pipelined for Owned<T> {
    type Access = PlannedLocking<GrantedLocks<T>>;

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
        self.shared.serve(self.number, true);
        self.serve_known(calls);
        self.shared.serve(self.number, false);
    }

    fn serve_one(&mut self, call: &mut Single<'_>) {
        self.serve_known(call);
    }

    fn open_statements(&mut self) -> bool {
        self.home.was_call = false;
        let may = self.shared.enter(self.number, self.running + 1);
        if may {
            self.running += 1;
            self.shared.blocks.open();
        }
        may
    }

    fn close_statements(&mut self) {
        self.shared.blocks.close();
        self.running -= 1;
        self.shared.leave(self.number, self.running);
    }

    fn observe_all(&mut self, observation: Option<&Observation>) {
        self.direct.observe(observation);
        if T::OWNERS_RUN {
            for context in &mut self.home.pool {
                context.passenger.parked.done.recorder.observe(observation);
            }
        }
    }

    fn is_any_history_full(&mut self) -> bool {
        let mut contexts = self.home.pool.iter_mut();
        self.direct.is_history_full()
            || T::OWNERS_RUN
                && contexts.any(|context| context.passenger.parked.done.recorder.is_full())
    }
}

impl<T: PartitionTable> Drop for Owned<T> {
    fn drop(&mut self) {
        self.shared.go(self.number);
    }
}
