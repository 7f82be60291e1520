//! Locks that are two counters: how many transactions ask for a record exclusively, and how many
//! want to share it (VLL §2.1). They name no transaction, and no transaction can wait at them: the
//! scheduler that takes all of a transaction's locks before it runs knows in which order requests
//! were made.
//!
//! A counter belongs to an address, whatever record lives there. Requests are made and taken back
//! without looking at the record, so a transaction that waits need not keep it from being freed; a
//! record that is made where another transaction has a request cannot be locked, and its maker
//! starts again with another one.
//!
//! ```text
//!  63           50 49         36 35          18 17         0
//! ┌───────────────┬─────────────┬──────────────┬────────────┐
//! │ unplanned Cx  │ and Cs      │ exclusive Cx │ shared Cs  │
//! └───────────────┴─────────────┴──────────────┴────────────┘
//! ```
//!
//! The third and the fourth counter are ours. A transaction that runs may meet a record that it did
//! not plan, and makes new ones; it takes those only where no other has a request that is in its
//! way, and is counted twice. A scheduler that decides from plans alone that two transactions have
//! nothing in common looks whether one of those is in its way.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use super::{ByPlannedRecord, Locks, PlannedLocks, Step, Taken, TravellingLocks, soon};
use crate::shared::planning::{Claim, Planned};

const SHARED: u64 = 1;
const EXCLUSIVE: u64 = 1 << 18;
const UNPLANNED_SHARED: u64 = 1 << 36;
const UNPLANNED_EXCLUSIVE: u64 = 1 << 50;

/// What the transaction missed: another one has, or wants, what it did not plan.
const MISS: AbortCause = AbortCause::FootprintMiss;

/// Where the counters are.
pub trait Counters: Clone + Send + Sync {
    /// See [`Locks::NEW_AUX`].
    const NEW_AUX: Option<u64>;

    /// See [`Locks::GROUPS`].
    const GROUPS: bool = false;

    /// See [`Locks::by_group`].
    #[inline(always)]
    fn by_group(&self) -> bool {
        false
    }

    /// The counters for a record's address.
    fn word(&self, record: RecordRef) -> &AtomicU64;
}

/// Counters in the records' `aux` words.
#[derive(Clone, Copy, Debug, Default)]
pub struct BesideRecords;

impl Counters for BesideRecords {
    const NEW_AUX: Option<u64> = None;

    #[inline(always)]
    fn word(&self, record: RecordRef) -> &AtomicU64 {
        record.aux()
    }
}

#[inline(always)]
const fn weight(exclusive: bool) -> u64 {
    match exclusive {
        true => EXCLUSIVE,
        false => SHARED,
    }
}

/// What a lock counts for that was not planned.
#[inline(always)]
const fn unplanned(exclusive: bool) -> u64 {
    match exclusive {
        true => EXCLUSIVE + UNPLANNED_EXCLUSIVE,
        false => SHARED + UNPLANNED_SHARED,
    }
}

/// Whether a word counts no exclusive request, planned or not.
#[inline(always)]
const fn may_share(word: u64) -> bool {
    word % UNPLANNED_SHARED < EXCLUSIVE
}

/// Counts a planned request; returns whether it is granted at once, as no other request is in its
/// way. Requests of one transaction are made together, before those of the next.
#[inline(always)]
pub fn request(counters: &impl Counters, claim: Claim) -> bool {
    // Acquire pairs with the release of the former holder: its row is visible.
    let before =
        (counters.word(claim.record)).fetch_add(weight(claim.exclusive), Ordering::Acquire);
    match claim.exclusive {
        true => before == 0,
        false => may_share(before),
    }
}

/// Takes a planned request back, granted or not.
#[inline(always)]
pub fn withdraw(counters: &impl Counters, claim: Claim) {
    (counters.word(claim.record)).fetch_sub(weight(claim.exclusive), Ordering::Release);
}

/// Whether a lock that was not planned is in the way of a planned request, which those before it in
/// the queue are not.
#[inline(always)]
pub fn is_barred(counters: &impl Counters, claim: Claim) -> bool {
    // Acquire pairs with the release of the former holder.
    let word = counters.word(claim.record).load(Ordering::Acquire);
    match claim.exclusive {
        true => word >= UNPLANNED_SHARED,
        false => word >= UNPLANNED_EXCLUSIVE,
    }
}

/// How a held lock is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// As the request that was planned.
    Planned,
    /// As the shared request that was planned, and as an exclusive one that was not.
    Upgraded,
    /// As one that was not planned.
    Unplanned,
}

/// What a held lock is counted as; its planned request among that, or not.
#[inline(always)]
fn counts(held: Counted, exclusive: bool, with_planned: bool) -> u64 {
    let planned = u64::from(with_planned);
    match held {
        Counted::Planned => planned * weight(exclusive),
        Counted::Upgraded => planned * SHARED + unplanned(true),
        Counted::Unplanned => unplanned(exclusive),
    }
}

/// What a shared lock that an attempt holds counts for in addition when it is made exclusive, and
/// how it is held then. A planned request stays as it is, for the one who takes it back.
#[inline(always)]
const fn upgraded(held: Counted) -> (u64, Counted) {
    match held {
        Counted::Unplanned => (
            unplanned(true).wrapping_sub(unplanned(false)),
            Counted::Unplanned,
        ),
        _ => (unplanned(true), Counted::Upgraded),
    }
}

/// One worker's side of locks that count; see the module's documentation.
pub struct CounterLocks<C> {
    counters: C,
    /// Whether planned requests are taken back when their locks are let go; else the scheduler that
    /// made them takes them back.
    takes_back: bool,
    /// Whether the attempt has several statements, which take what is free.
    has_statements: bool,
}

impl<C: Counters> CounterLocks<C> {
    /// A side of the locks that are counted here, which takes back what was planned, or not.
    pub fn new(counters: C, takes_back: bool) -> CounterLocks<C> {
        CounterLocks {
            counters,
            takes_back,
            has_statements: false,
        }
    }

    /// Takes a lock that was not planned, if no request is in the way.
    fn take_free(&self, record: RecordRef, exclusive: bool) -> bool {
        let word = self.counters.word(record);
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let is_free = match exclusive {
                true => seen == 0,
                false => may_share(seen),
            };
            if !is_free {
                return false;
            }
            let taken = seen + unplanned(exclusive);
            // Acquire: as in `request`.
            match word.compare_exchange_weak(seen, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes a lock that was not planned, if no request is in the way; statements wait for a
    /// moment.
    fn take_soon(&self, record: RecordRef, exclusive: bool) -> bool {
        match self.has_statements {
            true => soon(|| self.take_free(record, exclusive).then_some(())).is_some(),
            false => self.take_free(record, exclusive),
        }
    }
}

impl<C: Counters> Locks for CounterLocks<C> {
    type Held = Counted;
    type Naming = ByPlannedRecord;
    const NEW_AUX: Option<u64> = C::NEW_AUX;
    const GROUPS: bool = C::GROUPS;

    #[inline(always)]
    fn by_group(&self) -> bool {
        self.counters.by_group()
    }

    fn begin(&mut self) {
        self.has_statements = false;
    }

    fn take(&mut self, record: RecordRef, exclusive: bool) -> Result<Taken<Counted>, AbortCause> {
        match self.take_free(record, exclusive) {
            true => Ok(Taken::Now(Counted::Unplanned)),
            false => Err(MISS),
        }
    }

    #[inline]
    fn take_new(&mut self, record: RecordRef) -> Result<Counted, AbortCause> {
        // Relaxed: no other worker has done anything to the record that its maker has to see; and
        // if another request is there, the maker gives up.
        let word = self.counters.word(record);
        match word.compare_exchange(0, unplanned(true), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Ok(Counted::Unplanned),
            Err(_) => Err(MISS),
        }
    }

    fn shared_lock(&self, record: RecordRef) -> Option<u64> {
        Some(std::ptr::from_ref(self.counters.word(record)).addr() as u64)
    }

    /// A plan names addresses: one in it may be that of a record that is gone by now, and its maker
    /// get that very cell. And where records share a counter, so do those of one attempt. It would
    /// meet them again and again, if it gave up each time.
    #[cold]
    fn take_beside(
        &mut self,
        record: RecordRef,
        step: Step<Counted>,
        own: impl Iterator<Item = (Counted, bool)>,
        cause: AbortCause,
    ) -> Result<Counted, AbortCause> {
        let (mut counted, mut is_exclusive) = (0, false);
        for (held, exclusive) in own {
            counted += counts(held, exclusive, true);
            is_exclusive |= exclusive;
        }
        let (more, result) = match step {
            Step::Take { exclusive } if counted == 0 => {
                return match self.take_soon(record, exclusive) {
                    true => Ok(Counted::Unplanned),
                    false => Err(cause),
                };
            }
            Step::Take { exclusive } => (unplanned(exclusive), Counted::Unplanned),
            Step::TakeNew => (unplanned(true), Counted::Unplanned),
            Step::Upgrade(held) => upgraded(held),
        };
        let is_shared = step == Step::Take { exclusive: false };
        let word = self.counters.word(record);
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            // No other attempt gets anything that is counted there while an exclusive lock is held.
            let is_own = is_exclusive || seen == counted;
            let is_free = is_own || is_shared && may_share(seen);
            if !is_free {
                return Err(cause);
            }
            // Acquire: as in `request`.
            let taken = seen.wrapping_add(more);
            match word.compare_exchange_weak(seen, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(result),
                Err(now) => seen = now,
            }
        }
    }

    fn upgrade(&mut self, record: RecordRef, held: Counted) -> Result<Taken<Counted>, AbortCause> {
        let own = counts(held, false, true);
        let (more, held) = upgraded(held);
        // Acquire pairs with the releases of those who shared it: they have read before this one
        // writes.
        let upgraded = (self.counters.word(record)).compare_exchange(
            own,
            own.wrapping_add(more),
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        upgraded.map(|_| Taken::Now(held)).map_err(|_| MISS)
    }

    fn wait(&mut self, _: RecordRef, _: Counted) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline(always)]
    fn release(&mut self, record: RecordRef, held: Counted, exclusive: bool) {
        let own = counts(held, exclusive, self.takes_back);
        if own > 0 {
            // Release pairs with the acquisitions above, and in `request` and `is_barred`.
            self.counters.word(record).fetch_sub(own, Ordering::Release);
        }
    }
}

impl<C: Counters> PlannedLocks for CounterLocks<C> {
    fn planned() -> Planned {
        Planned {
            is_in_any_order: true,
            ..Planned::default()
        }
    }

    /// What of it is free: for transactions of several statements, which do not wait.
    fn take_all(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        mut hold: impl FnMut(Claim, Counted),
    ) -> Result<(), AbortCause> {
        self.has_statements = true;
        for claim in claims {
            if self.take_free(claim.record, claim.exclusive) {
                hold(claim, Counted::Unplanned);
            }
        }
        Ok(())
    }
}

impl<C: Counters> TravellingLocks for CounterLocks<C> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::vll::CounterArray;
    use crate::shared::planning::Findings;
    use kiln_storage::table::Part;

    #[test]
    fn a_cell_that_was_planned_when_it_was_another_record_is_locked_for_a_new_one() {
        let counters = CounterArray::default();
        // SAFETY: this test never follows the address.
        let record = unsafe { RecordRef::from_address(64) };
        let claim = |exclusive| Claim {
            record,
            exclusive,
            is_deferred: false,
            part: Part::default(),
            finding: Findings::NO_FINDING,
        };
        for exclusive in [false, true] {
            let mut locks = CounterLocks::new(counters.clone(), true);
            let own = [(Counted::Planned, exclusive)];
            assert!(request(&counters, claim(exclusive)));
            let refused = locks.take_new(record).expect_err("a request is there");
            let mut beside = || locks.take_beside(record, Step::TakeNew, own.into_iter(), refused);
            let held = beside().expect("the request is its own");
            assert!(!request(&counters, claim(false)) && is_barred(&counters, claim(false)));
            let again = beside();
            assert_eq!(again.is_ok(), exclusive, "another one waits, or shares it");
            locks.release(record, held, true);
            if let Ok(held) = again {
                locks.release(record, held, true);
            }
            withdraw(&counters, claim(false));
            locks.release(record, Counted::Planned, exclusive);
            assert!(locks.take_new(record).is_ok(), "nothing is left there");
            locks.release(record, Counted::Unplanned, true);
        }
    }

    #[test]
    fn an_attempt_is_not_in_its_own_way_where_records_share_a_counter() {
        let counters = CounterArray::default();
        // SAFETY: the test only compares addresses.
        let record = |number: u64| unsafe { RecordRef::from_address(number * 16) };
        let first = record(1);
        let shares = |other: &RecordRef| std::ptr::eq(counters.word(first), counters.word(*other));
        let second = (2..).map(record).find(shares).expect("few counters");
        let steps = |exclusive| Step::Take { exclusive };
        for (holds, wants) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut locks = CounterLocks::new(counters.clone(), true);
            let mut stranger = CounterLocks::new(counters.clone(), true);
            let Ok(Taken::Now(held)) = locks.take(first, holds) else {
                panic!("it is free");
            };
            let own = [(held, holds)];
            let beside = locks.take_beside(second, steps(wants), own.into_iter(), MISS);
            let beside = beside.expect("all that is counted there is its own");
            let is_shared = !holds && !wants;
            assert_eq!(stranger.take(second, false).is_ok(), is_shared);
            if is_shared {
                let own = || [(held, false), (beside, false)].into_iter();
                let upgrade = Step::Upgrade(held);
                let refused = locks.take_beside(first, upgrade, own(), MISS);
                assert_eq!(refused, Err(MISS), "a stranger shares it");
                stranger.release(second, Counted::Unplanned, false);
                let upgraded = locks.take_beside(first, upgrade, own(), MISS);
                let upgraded = upgraded.expect("no stranger shares it");
                assert!(stranger.take(second, false).is_err());
                locks.release(first, upgraded, true);
            } else {
                locks.release(first, held, holds);
            }
            locks.release(second, beside, wants);
            assert!(stranger.take(first, true).is_ok(), "nothing is left there");
            stranger.release(first, Counted::Unplanned, true);
        }
    }
}
