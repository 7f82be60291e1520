//! Locks that are two counters: how many transactions ask for a record exclusively, and how many want to
//! share it (VLL §2.1). They name nobody, and nobody can wait at them: in which order requests were made
//! is known elsewhere, by whoever takes all of a transaction's locks before it runs.
//!
//! A counter belongs to an address, whatever record lives there. Requests are made and taken back without
//! looking at the record, so a transaction that waits need not keep it from being freed; a record that is
//! made where somebody else has a request cannot be locked, and its maker starts again with another one.
//!
//! ```text
//!  63           50 49         36 35          18 17         0
//! ┌───────────────┬─────────────┬──────────────┬────────────┐
//! │ unplanned Cx  │ and Cs      │ exclusive Cx │ shared Cs  │
//! └───────────────┴─────────────┴──────────────┴────────────┘
//! ```
//!
//! The third and the fourth counter are ours. A transaction that runs may meet a record that it did not plan, and makes
//! new ones; it takes those only where no other has a request that is in its way, and is counted twice. Whoever decides
//! from plans alone that two transactions have nothing in common looks whether one of those is in its way.

use std::ptr;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use super::{Locks, Taken, soon};
use crate::shared::planning::Claim;

const SHARED: u64 = 1;
const EXCLUSIVE: u64 = 1 << 18;
const UNPLANNED_SHARED: u64 = 1 << 36;
const UNPLANNED_EXCLUSIVE: u64 = 1 << 50;

/// What the transaction missed: somebody else has, or wants, what it did not plan.
const MISS: AbortCause = AbortCause::FootprintMiss;

/// Where the counters are.
pub trait Counters: Clone + Send + Sync {
    /// See [`Locks::NEW_AUX`].
    const NEW_AUX: Option<u64>;

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

/// Counts a planned request; whether it is granted at once, as nobody has one that is in its way. Requests
/// of one transaction are made together, before those of the next.
#[inline(always)]
pub fn request(counters: &impl Counters, claim: Claim) -> bool {
    // Acquire pairs with the release of whoever let go: its row is visible.
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

/// Whether a lock that was not planned is in the way of a planned request, which those before it in the queue are not.
#[inline(always)]
pub fn is_barred(counters: &impl Counters, claim: Claim) -> bool {
    // Acquire pairs with the release of whoever let go.
    let word = counters.word(claim.record).load(Ordering::Acquire);
    match claim.exclusive {
        true => word >= UNPLANNED_SHARED,
        false => word >= UNPLANNED_EXCLUSIVE,
    }
}

/// How a lock is counted that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// As the request that was planned.
    Planned,
    /// As the shared request that was planned, and as an exclusive one that was not.
    Upgraded,
    /// As one that was not planned.
    Unplanned,
}

/// What a lock that somebody holds is counted as; its planned request among that, or not.
#[inline(always)]
fn counts(held: Counted, exclusive: bool, with_planned: bool) -> u64 {
    let planned = u64::from(with_planned);
    match held {
        Counted::Planned => planned * weight(exclusive),
        Counted::Upgraded => planned * SHARED + unplanned(true),
        Counted::Unplanned => unplanned(exclusive),
    }
}

/// One worker's side of locks that count; see the module's documentation.
pub struct CounterLocks<C> {
    counters: C,
    /// Whether planned requests are taken back when their locks are let go; else whoever made them does.
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

    /// Takes a lock that was not planned, if nobody is in the way.
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

    /// Takes the lock of a new record, if this is all that is counted there.
    #[inline]
    fn count_new(&self, record: RecordRef, own: u64) -> bool {
        let taken = own + unplanned(true);
        // Relaxed: nobody has done anything to the record that this one's maker has to see; and if another
        // request is there, the maker gives up.
        let word = self.counters.word(record);
        word.compare_exchange(own, taken, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

impl<C: Counters> Locks for CounterLocks<C> {
    type Held = Counted;
    const NEW_AUX: Option<u64> = C::NEW_AUX;
    const PLANNED: bool = true;
    const ORDERED: bool = false;

    fn begin(&mut self) {
        self.has_statements = false;
    }

    fn take(&mut self, record: RecordRef, exclusive: bool) -> Result<Taken<Counted>, AbortCause> {
        let is_taken = match self.has_statements {
            true => soon(|| self.take_free(record, exclusive).then_some(())).is_some(),
            false => self.take_free(record, exclusive),
        };
        match is_taken {
            true => Ok(Taken::Now(Counted::Unplanned)),
            false => Err(MISS),
        }
    }

    #[inline]
    fn take_new(&mut self, record: RecordRef) -> Result<Counted, AbortCause> {
        match self.count_new(record, 0) {
            true => Ok(Counted::Unplanned),
            false => Err(MISS),
        }
    }

    /// A plan names addresses. One in it may be that of a record that is gone by now, and its maker get that very cell: again and
    /// again, if it gave up each time.
    #[cold]
    fn take_new_beside(
        &mut self,
        record: RecordRef,
        own: impl Iterator<Item = (RecordRef, Counted, bool)>,
        cause: AbortCause,
    ) -> Result<Counted, AbortCause> {
        let word = self.counters.word(record);
        let same = own.filter(|(other, ..)| ptr::eq(self.counters.word(*other), word));
        let counts = same.map(|(_, held, exclusive)| counts(held, exclusive, true));
        match self.count_new(record, counts.sum()) {
            true => Ok(Counted::Unplanned),
            false => Err(cause),
        }
    }

    fn upgrade(&mut self, record: RecordRef, held: Counted) -> Result<Taken<Counted>, AbortCause> {
        let (own, next, held) = match held {
            Counted::Unplanned => (unplanned(false), unplanned(true), Counted::Unplanned),
            // The planned request stays as it is, for whoever takes it back.
            _ => (SHARED, SHARED + unplanned(true), Counted::Upgraded),
        };
        // Acquire pairs with the releases of those who shared it: they have read before this one writes.
        let upgraded = (self.counters.word(record)).compare_exchange(
            own,
            next,
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

    /// What of it is free: for transactions of several statements, which do not wait.
    fn take_all(
        &mut self,
        claims: &[Claim],
        mut hold: impl FnMut(Claim, Counted),
    ) -> Result<(), AbortCause> {
        self.has_statements = true;
        for &claim in claims {
            if self.take_free(claim.record, claim.exclusive) {
                hold(claim, Counted::Unplanned);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::vll::CounterArray;
    use crate::shared::planning::Findings;
    use kiln_storage::table::Part;

    #[test]
    fn a_cell_that_was_planned_when_it_was_another_record_is_locked_for_a_new_one() {
        let counters = CounterArray::default();
        // SAFETY: nobody follows it here.
        let record = unsafe { RecordRef::from_address(64) };
        let claim = |exclusive| Claim {
            record,
            exclusive,
            is_left: false,
            part: Part::default(),
            finding: Findings::NO_FINDING,
        };
        for exclusive in [false, true] {
            let mut locks = CounterLocks::new(counters.clone(), true);
            let own = [(record, Counted::Planned, exclusive)];
            assert!(request(&counters, claim(exclusive)));
            let refused = locks.take_new(record).expect_err("a request is there");
            let taken = locks.take_new_beside(record, own.into_iter(), refused);
            let held = taken.expect("the request is its own");
            assert!(!request(&counters, claim(false)) && is_barred(&counters, claim(false)));
            locks.release(record, held, true);
            let again = locks.take_new_beside(record, own.into_iter(), refused);
            assert_eq!(again, Err(refused), "another one asks for it");
            withdraw(&counters, claim(false));
            locks.release(record, Counted::Planned, exclusive);
            assert!(locks.take_new(record).is_ok(), "nothing is left there");
            locks.release(record, Counted::Unplanned, true);
        }
    }
}
