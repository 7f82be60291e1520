//! The contexts of a worker that are at home: no other thread has them.

use std::collections::VecDeque;
use std::ops::DerefMut;

use kiln_platform::time;
use kiln_procedure::Frame;

use super::{Blocks, InFlight, Solitude};
use crate::serve::{Calls, Next};

/// A context: a call in flight, with what its scheduler keeps of it.
pub(crate) trait Carrier {
    /// What the call's plans consist of.
    type Claim;

    /// The call.
    fn flight(&self) -> &InFlight<Self::Claim>;

    /// The same, to be changed.
    fn flight_mut(&mut self) -> &mut InFlight<Self::Claim>;
}

impl<C: Carrier + 'static, P: DerefMut<Target = C>> Carrier for P {
    type Claim = C::Claim;

    #[inline(always)]
    fn flight(&self) -> &InFlight<C::Claim> {
        (**self).flight()
    }

    #[inline(always)]
    fn flight_mut(&mut self) -> &mut InFlight<C::Claim> {
        (**self).flight_mut()
    }
}

/// The order in which contexts are planned that wait for it.
pub(crate) trait Order<C>: Extend<C> {
    /// None, with room for so many.
    fn with_room(count: usize) -> Self;

    /// Adds one.
    fn add(&mut self, context: C);
}

/// The last one comes first: what has just failed is in the core's cache.
impl<C> Order<C> for Vec<C> {
    fn with_room(count: usize) -> Vec<C> {
        Vec::with_capacity(count)
    }

    fn add(&mut self, context: C) {
        self.push(context);
    }
}

/// The first one comes first.
impl<C> Order<C> for VecDeque<C> {
    fn with_room(count: usize) -> VecDeque<C> {
        VecDeque::with_capacity(count)
    }

    fn add(&mut self, context: C) {
        self.push_back(context);
    }
}

/// Contexts of one worker, by what becomes of them next.
pub(crate) struct Home<C, O = Vec<C>> {
    /// Without a call.
    pub pool: Vec<C>,
    /// Planned next.
    pub ready: O,
    /// Planned when a transaction of several statements has ended, or some time later.
    pub parked: Vec<C>,
    /// Whether the worker's last run was a call, and not a statement.
    pub was_call: bool,
}

impl<C: Carrier, O: Order<C>> Home<C, O> {
    /// With these contexts, which have no call.
    pub fn new(pool: Vec<C>) -> Home<C, O> {
        Home {
            parked: Vec::with_capacity(pool.len()),
            ready: O::with_room(pool.len()),
            pool,
            was_call: false,
        }
    }

    /// Has `draw` draw a call into a context of the pool; `is_over` becomes true when there will be
    /// no more. Without a call the context stays in the pool.
    #[inline]
    pub fn draw(
        &mut self,
        mut context: C,
        is_over: &mut bool,
        draw: impl FnOnce(&mut C) -> Next,
    ) -> Option<C> {
        match draw(&mut context) {
            Next::Call => Some(context),
            none => {
                *is_over = none == Next::Pause;
                self.pool.push(context);
                None
            }
        }
    }

    /// Keeps a context that has come home: its call has ended, waits for a transaction of several
    /// statements, or is planned anew.
    #[inline]
    pub fn keep(&mut self, mut context: C, blocks: &Blocks) {
        let flight = context.flight_mut();
        if flight.has_ended {
            self.pool.push(context);
        } else if flight.park(blocks) {
            self.parked.push(context);
        } else {
            self.ready.add(context);
        }
    }

    /// The contexts without a call let go of the programs of their last ones.
    pub fn forget_programs(&mut self) {
        for context in &mut self.pool {
            context.flight_mut().forget_program();
        }
    }

    /// Has those planned again that are parked, when there is a reason to.
    #[inline]
    pub fn unpark(&mut self, blocks: &Blocks) {
        if !self.parked.is_empty() {
            let now_ns = time::now_ns();
            let may_go_on = |context: &mut C| C::flight(context).may_go_on(blocks, now_ns);
            self.ready.extend(self.parked.extract_if(.., may_go_on));
        }
    }

    /// Hands the calls back that are parked, if their drawer wants that; `ended` is told of each.
    /// Asked when no more calls are drawn.
    #[inline]
    pub fn hand_back(&mut self, calls: &mut dyn Calls, ended: impl FnMut(&InFlight<C::Claim>)) {
        if !self.parked.is_empty() && calls.takes_back() {
            self.hand_all_back(calls, ended);
        }
    }

    #[cold]
    fn hand_all_back(&mut self, calls: &mut dyn Calls, mut ended: impl FnMut(&InFlight<C::Claim>)) {
        while let Some(mut context) = self.parked.pop() {
            let flight = context.flight_mut();
            ended(flight);
            flight.hand_back(calls);
            self.pool.push(context);
        }
    }

    /// When the first of the calls ends that wait here, if ever.
    pub fn deadline_ns<'a>(&'a self) -> Option<u64>
    where
        C: 'a,
        &'a O: IntoIterator<Item = &'a C>,
    {
        let waiting = self.ready.into_iter().chain(&self.parked);
        waiting
            .filter_map(|context| context.flight().call.deadline_ns)
            .min()
    }

    /// The memory of the last run, if that was a call.
    pub fn frame(&self) -> Option<&Frame> {
        let last = self.pool.last().filter(|_| self.was_call);
        last.map(|context| &context.flight().frame)
    }
}

impl<C: Carrier> Home<C> {
    /// The next of those that are planned anew, and whether it has failed so often that all others
    /// are to be kept out.
    #[inline]
    pub fn next(&mut self, solitude: &Solitude) -> Option<(C, bool)> {
        let context = self.ready.pop()?;
        let wants_solitude = solitude.may_ask(context.flight().failures);
        Some((context, wants_solitude))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;
    use crate::serve::Call;

    struct Context(InFlight);

    impl Carrier for Context {
        type Claim = crate::shared::planning::Claim;

        fn flight(&self) -> &InFlight {
            &self.0
        }

        fn flight_mut(&mut self) -> &mut InFlight {
            &mut self.0
        }
    }

    /// A context whose call has failed so often, before any block that ends from now on.
    fn failed(ticket: u64, failures: u32, blocks: &Blocks) -> Context {
        let mut context = Context(InFlight::default());
        context.0.call.ticket = ticket;
        context.0.failures = failures;
        context.0.look(blocks);
        context
    }

    fn tickets<'a>(contexts: impl IntoIterator<Item = &'a Context>) -> Vec<u64> {
        let tickets = contexts.into_iter().map(|context| context.0.call.ticket);
        tickets.collect()
    }

    #[test]
    fn a_context_that_comes_home_is_kept_by_what_becomes_of_its_call() {
        let blocks = Blocks::default();
        let mut home = Home::<Context>::new(Vec::new());
        let mut ended = failed(1, 0, &blocks);
        ended.0.has_ended = true;
        home.keep(ended, &blocks);
        // No block is open that it may have lost to.
        home.keep(failed(2, 20, &blocks), &blocks);
        blocks.open();
        home.keep(failed(3, 1, &blocks), &blocks);
        home.keep(failed(4, 20, &blocks), &blocks);
        assert_eq!(tickets(&home.pool), [1]);
        assert_eq!(tickets(&home.ready), [2, 3]);
        assert_eq!(tickets(&home.parked), [4]);
        blocks.close();
        home.unpark(&blocks);
        assert_eq!(
            (tickets(&home.ready), home.parked.len()),
            (vec![2, 3, 4], 0)
        );
    }

    #[test]
    fn the_order_is_that_of_the_collection() {
        let blocks = Blocks::default();
        let (mut last, mut first) = (
            Home::<Context>::new(Vec::new()),
            Home::<Context, VecDeque<Context>>::new(Vec::new()),
        );
        for ticket in [1, 2] {
            last.keep(failed(ticket, 1, &blocks), &blocks);
            first.keep(failed(ticket, 1, &blocks), &blocks);
        }
        let ticket = |context: Option<Context>| context.map(|context| context.0.call.ticket);
        let next = last.next(&Solitude::default());
        assert_eq!(ticket(next.map(|(context, _)| context)), Some(2));
        assert_eq!(ticket(first.ready.pop_front()), Some(1));
    }

    #[test]
    fn a_call_that_fails_again_and_again_wants_to_be_alone() {
        let (blocks, solitude) = (Blocks::default(), Solitude::default());
        let mut home = Home::<Context>::new(Vec::new());
        for failures in [1, 100] {
            home.keep(failed(0, failures, &blocks), &blocks);
        }
        let mut wants = || home.next(&solitude).map(|(_, wants)| wants);
        assert_eq!([wants(), wants(), wants()], [Some(true), Some(false), None]);
    }

    /// Wants calls back, or not.
    struct Drawer {
        wants_back: bool,
        back: Vec<u64>,
    }

    impl Calls for Drawer {
        fn next(&mut self, _: &mut Call) -> Next {
            Next::Pause
        }

        fn is_over(&mut self) -> bool {
            true
        }

        fn takes_back(&mut self) -> bool {
            self.wants_back
        }

        fn take_back(&mut self, call: &mut Call) {
            self.back.push(call.ticket);
        }

        fn ended(&mut self, _: &Call, _: Outcome, _: &Frame) {
            unreachable!("no call was run")
        }
    }

    #[test]
    fn calls_that_are_parked_are_handed_back_when_that_is_wanted() {
        let blocks = Blocks::default();
        blocks.open();
        let mut home = Home::<Context>::new(Vec::new());
        home.keep(failed(7, 20, &blocks), &blocks);
        let (mut drawer, mut ended) = (
            Drawer {
                wants_back: false,
                back: Vec::new(),
            },
            Vec::new(),
        );
        home.hand_back(&mut drawer, |flight| ended.push(flight.call.ticket));
        assert_eq!((drawer.back.len(), home.parked.len()), (0, 1));
        drawer.wants_back = true;
        home.hand_back(&mut drawer, |flight| ended.push(flight.call.ticket));
        assert_eq!((drawer.back, ended), (vec![7], vec![7]));
        assert_eq!((tickets(&home.pool), home.parked.len()), (vec![7], 0));
    }

    #[test]
    fn without_a_call_a_context_stays_in_the_pool() {
        let blocks = Blocks::default();
        let mut home = Home::<Context>::new(vec![failed(3, 0, &blocks)]);
        let mut is_over = false;
        for (next, expected) in [(Next::Nothing, false), (Next::Pause, true)] {
            let context = home.pool.pop().expect("it stays there");
            assert!(home.draw(context, &mut is_over, |_| next).is_none());
            assert_eq!((is_over, home.pool.len()), (expected, 1));
        }
        let context = home.pool.pop().expect("it stays there");
        let drawn = home.draw(context, &mut is_over, |_| Next::Call);
        assert!(drawn.is_some() && home.pool.is_empty());
    }
}
