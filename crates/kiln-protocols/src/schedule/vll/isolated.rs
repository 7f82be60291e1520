//! The locking of a transaction without the transaction: for measurements.

use kiln_platform::sync::Arc;

use super::VllState;
use super::context::Context;
use super::queue::{Entered, Guest};
use crate::shared::locks::Locks;
use crate::shared::locks::counters::{Counted, CounterLocks, Counters};
use crate::shared::planning::{Claim, Demand};

/// One worker that takes locks and lets them go, as it does before and after each attempt.
pub struct Isolated<C: Counters + 'static> {
    shared: Arc<VllState<C>>,
    locks: CounterLocks<C>,
    context: Option<Box<Context<C>>>,
}

impl<C: Counters + 'static> Isolated<C> {
    /// A worker of its own, or with others.
    pub fn new(shared: Arc<VllState<C>>) -> Isolated<C> {
        Isolated {
            locks: CounterLocks::new(shared.queue.with_ledger(|ledger| ledger.clone()), true),
            shared,
            context: Some(Context::new(0)),
        }
    }

    /// Takes the locks of these records and lets them go. Whether they were to be had at once.
    pub fn lock_and_release(&mut self, claims: &[Claim]) -> bool {
        let Some(mut context) = self.context.take() else {
            unreachable!("it comes back each time")
        };
        context.plan.demand.clear();
        for &claim in claims {
            context.plan.demand.claim(claim);
        }
        context.plan.demand.arrange();
        let (context, is_free) = match self.shared.queue.enter(context, None, Guest::Any) {
            Entered::Free(context) => {
                for claim in context.plan.demand.iter() {
                    self.locks
                        .release(claim.record, Counted::Planned, claim.exclusive);
                }
                let next = self.shared.queue.leave(context.entry);
                debug_assert!(next.is_none(), "no transaction waits here");
                (context, true)
            }
            Entered::Blocked(entry) => match self.shared.queue.withdraw(entry) {
                Some(context) => (context, false),
                None => unreachable!("no worker runs transactions here"),
            },
            Entered::Full(context) | Entered::Barred(context) => (context, false),
        };
        self.context = Some(context);
        is_free
    }
}
