//! The lock manager: locks on records, with or without waiting.
//!
//! Two kinds, behind one trait ([`Locks`]):
//!
//! - [`LockWords`]: a word beside the record that counts its holders and names none. No transaction
//!   can wait.
//! - [`QueuedLocks`]: each lock is a queue of requests. Where the queues are is a [`Placement`]:
//!   beside the record or in a hash table. What is done about deadlocks is a [`DeadlockPolicy`].
//!
//! # A queue
//!
//! ```text
//!  aux of the record, or a bucket's list
//!      │
//!      ▼
//!  [ holder ] ⇄ [ holder ] ⇄ [ waiter ] ⇄ [ waiter ]      a request is a cache line of its worker's pool
//!      └ describes the queue: its end, how many hold, how many wait, is an upgrade pending
//! ```
//!
//! - *Latch.* A queue is read and changed under its latch alone: a bit of `aux`, or a word of the
//!   bucket. It is held over straight-line code, and over one latch at a time. The exception:
//!   beside the record a lock that no other transaction wants is taken, and let go, by a
//!   compare-and-swap of the whole word.
//! - *Holders come first*, one exclusive or some shared ones.
//! - *Order.* A request gets the lock at once if it is in no holder's way, no request waits and no
//!   upgrade is pending; else it waits at the end of the queue, or, where the policy goes by age,
//!   before all waiters that are older. The first waiter gets the lock when it is in no holder's
//!   way any more, and with an exclusive one that is when no holder is left; shared ones behind it
//!   come with it. No request overtakes a waiter, but when a lock is let go; see below.
//! - *Upgrade.* A sharer that is alone becomes exclusive at once, even if others wait: they wait
//!   for it already. Else it waits as a holder, before all waiters, until it is alone; no request
//!   joins the sharers meanwhile. A second sharer that wants the same is refused at once, as the
//!   two would wait for each other ([`AbortCause::Deadlock`], or as the policy says).
//! - *Who wakes whom.* An attempt that releases a lock, gives up waiting or takes an upgrade back
//!   tells the requests which that lets in, by their `state`, and wakes the sleepers among them
//!   after it left the latch. Those behind one that *gave up* are told that they wait for others
//!   now.
//! - *Giving up.* Only the owner takes its request out of the queue, under the latch, and looks
//!   there first whether it has not got the lock meanwhile.
//!   first whether it has not got the lock meanwhile.
//!
//! # Overtaking
//!
//! A lock that is handed to its first waiter waits with it, if that one sleeps or its core runs
//! another thread; and the former holder, if it comes for the lock again, waits as well. That is a
//! convoy: each transaction takes a switch of threads, or at best the transfer of all that it
//! touches from one core to the other. So a lock is not handed over but let go. The first waiter is
//! told to come and look, and if it runs, it is there in a tenth of a microsecond. A faster worker
//! takes the lock before it.
//!
//! - *No waiter starves.* A waiter that was too late keeps away for a moment, which doubles, so
//!   that the faster one gets something done; and after `MISSES_MAX` times it *insists*: no request
//!   overtakes it any more, and the next holder that lets go hands the lock over. Only a worker
//!   that comes, and so runs, can miss a lock; one that does not run is in no other worker's way.
//! - *While the lock has no holder* its first waiter has been told to look, and has not looked yet.
//! - *By age* only those overtake that are younger than all who wait.
//! - *Who waits for whom changes* with each that overtakes. It matters only if that one comes to
//!   wait itself: so it tells those that it has overtaken before it waits (`own_up`), and they look
//!   whom they wait for now. One that never waits, as on a single hot row, tells none.
//! - *An upgrade* is handed over: the sharer has the lock, no request can come in between.
//! - *[`LockQueue::Fifo`]* leaves all of this out, to be measured: a lock is handed to its first
//!   waiter, as in the papers.
//!
//! # When a lock's entry vanishes
//!
//! With its last request, under the latch. Locks are known by the addresses of their records. A
//! record's cell is used for another one only when every attempt has left the epoch in which the
//! first was unlinked, and attempts leave the epoch after they have let all locks go. So a queue
//! never speaks of two records, and `aux` is 0 when no transaction runs.
//!
//! # What waiting must not do
//!
//! A waiting worker spins a little, yields its core some times, then sleeps until it is woken, so
//! that more workers than cores get on. It waits neither past the deadline of its call nor longer
//! than [`WAIT_MAX_NS`] for one lock ([`AbortCause::LockTimeout`]), whatever deadlocks the policy
//! misses. More workers than cores share core slots besides; a worker whose core slot others want
//! waits for a millisecond at most, as the lock holder may be a client that thinks. See
//! [`core_slots`](super::core_slots).

pub mod counters;
pub mod deadlock;
pub mod fresh;
mod placement;
pub mod planned;
mod queue;
mod request;
mod waiting;
mod word;

#[cfg(test)]
mod model;

use kiln_platform::schedule::point;
use kiln_platform::spin::Spinner;
use kiln_platform::time;
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

use deadlock::{DeadlockPolicy, Digests, WaitsFor};
use queue::Upgrade;
use request::Pool;

use super::core_slots::CoreSlots;
use super::planning::Claim;
use crate::factors::LockQueue;
use planned::CriticalSection;

pub use placement::{BesideBits, BesideRecord, ByGroup, LockTable, Placement};
pub use request::{Request, RequestRef};
pub use waiting::{Alarms, WAIT_MAX_NS};
pub use word::LockWords;

/// A lock that was taken: at once, or as soon as [`Locks::wait`] has returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Taken<H> {
    /// It is held.
    Now(H),
    /// It is waited for: [`Locks::wait`] follows, with nothing of this lock's in between.
    Later(H),
}

/// What is done with a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<H> {
    /// It is taken.
    Take {
        /// Or it is shared.
        exclusive: bool,
    },
    /// It is taken exclusively, of a record that no other attempt can reach yet.
    TakeNew,
    /// It is held shared, and made exclusive.
    Upgrade(H),
}

/// Tries again for a moment to take what statements of an open transaction do not wait for. Where
/// locks are taken back after their transaction's caller knows how it ended, its next statement may
/// come before they are.
pub fn soon<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    /// What a worker needs to get its core back, and take some locks back.
    const MOMENT_NS: u64 = 2_000_000;
    let mut latest = None;
    let mut spinner = Spinner::default();
    loop {
        let taken = attempt();
        if taken.is_some() {
            return taken;
        }
        let now = time::now_ns();
        if now >= *latest.get_or_insert(now + MOMENT_NS) {
            return None;
        }
        spinner.spin();
    }
}

/// One worker's door to the locks.
pub trait Locks {
    /// What the worker keeps with each lock that it holds.
    type Held: Copy;

    /// The `aux` word that a new record is made with, before [`Locks::take_new`]; or none, and it
    /// has what its cell had last.
    const NEW_AUX: Option<u64>;

    /// A new transaction begins, whose attempts follow; it ends at `deadline_ns`, of
    /// [`kiln_platform::time::now_ns`], if at all.
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        let _ = deadline_ns;
    }

    /// An attempt begins; no lock is held.
    #[inline(always)]
    fn begin(&mut self) {}

    /// Takes the lock of a record on which the worker has none.
    ///
    /// # Errors
    /// Why the attempt fails instead; then there is no lock.
    fn take(&mut self, record: RecordRef, exclusive: bool)
    -> Result<Taken<Self::Held>, AbortCause>;

    /// Whether locks are where the parts of the data are, so that claims have to say their records'
    /// parts.
    const DIVIDED: bool = false;

    /// Whether a lock covers all that is in a partition: then a record whose part is
    /// [covered](Locks::covers) needs none. Such locks are exclusive.
    const COARSE: bool = false;

    /// Whether attempts travel: what is done with records is done by the owner of their partition.
    const TRAVELS: bool = false;

    /// The partition of a part of the data, if attempts travel and this one is not there.
    #[inline(always)]
    fn elsewhere(&self, _part: Part) -> Option<u16> {
        None
    }

    /// As [`Locks::take`], for locks that are where the parts of the data are.
    ///
    /// # Errors
    /// As there.
    #[inline(always)]
    fn take_claim(&mut self, claim: Claim) -> Result<Taken<Self::Held>, AbortCause> {
        self.take(claim.record, claim.exclusive)
    }

    /// Whether locks that are held cover the records of a part; asked where they are coarse.
    #[inline(always)]
    fn covers(&self, _part: Part, _exclusive: bool) -> bool {
        false
    }

    /// As [`Locks::admits`], for a record that is covered.
    ///
    /// # Errors
    /// As there.
    #[inline(always)]
    fn admits_covered(&self, _record: RecordRef) -> Result<(), AbortCause> {
        Ok(())
    }

    /// Takes the exclusive lock of a record that no other transaction can reach yet.
    ///
    /// # Errors
    /// Why the attempt fails instead: another transaction locks addresses, whatever lives there,
    /// and has this one.
    fn take_new(&mut self, record: RecordRef) -> Result<Self::Held, AbortCause>;

    /// Which lock a record has, where it may share that with others: of records that are counted
    /// together, or with one that is gone and had the same cell.
    fn shared_lock(&self, _record: RecordRef) -> Option<u64> {
        None
    }

    /// Takes a lock, or makes it exclusive, which could not be done: with `cause`, for an attempt
    /// whose own locks may be what is in the way. `own` are all that it holds with the same [shared
    /// lock](Locks::shared_lock), and whether exclusively.
    ///
    /// # Errors
    /// As when it was tried first.
    #[cold]
    fn take_beside(
        &mut self,
        record: RecordRef,
        step: Step<Self::Held>,
        own: impl Iterator<Item = (Self::Held, bool)>,
        cause: AbortCause,
    ) -> Result<Self::Held, AbortCause> {
        let _ = (record, step, own);
        Err(cause)
    }

    /// Makes a shared lock exclusive.
    ///
    /// # Errors
    /// Why the attempt fails instead; then the lock is still shared.
    fn upgrade(
        &mut self,
        record: RecordRef,
        held: Self::Held,
    ) -> Result<Taken<Self::Held>, AbortCause>;

    /// Waits for a lock, or an upgrade, that was [`Taken::Later`].
    ///
    /// # Errors
    /// Why the attempt fails instead. Then there is no lock; or after an upgrade it is still
    /// shared.
    fn wait(&mut self, record: RecordRef, held: Self::Held) -> Result<(), AbortCause>;

    /// Lets a lock go that is held in this mode.
    fn release(&mut self, record: RecordRef, held: Self::Held, exclusive: bool);

    /// All that the attempt noted is let go; so what it took besides goes as well.
    #[inline(always)]
    fn released_all(&mut self) {}

    /// Whether a record whose lock is held may be touched now; asked where locks are planned.
    ///
    /// # Errors
    /// Why the attempt fails instead: the record's maker has not ended, and has no lock of it.
    #[inline(always)]
    fn admits(&self, _record: RecordRef, _held: Self::Held) -> Result<(), AbortCause> {
        Ok(())
    }

    /// Whether the attempt has what it may touch already, and takes no lock: [`Locks::is_granted`]
    /// says what that is, and nothing is let go.
    #[inline(always)]
    fn has_grant(&self) -> bool {
        false
    }

    /// Whether the attempt may touch a record; asked where it has a grant.
    ///
    /// # Errors
    /// Why it fails instead.
    #[inline(always)]
    fn is_granted(&self, _record: RecordRef, _exclusive: bool) -> Result<(), AbortCause> {
        Ok(())
    }

    /// Whether attempts that have a grant ever leave updates to their commit (STO §6.1), and
    /// several of them may be granted the same record for that; asked once.
    fn leaves_updates(&self) -> bool {
        false
    }

    /// Whether the attempt leaves updates to its commit.
    #[inline(always)]
    fn defers(&self) -> bool {
        false
    }

    /// Whether all who have a grant of the record only defer updates of it to their commits.
    #[inline(always)]
    fn is_deferred(&self, _record: RecordRef) -> bool {
        false
    }

    /// Takes the lock of a record that [is deferred](Locks::is_deferred): taken in the order of
    /// addresses, for the time of a commit.
    ///
    /// # Errors
    /// Why the attempt fails instead.
    fn take_deferred(&mut self, _record: RecordRef) -> Result<(), AbortCause> {
        unreachable!("asked only where updates are deferred to the commit")
    }

    /// Lets go of it.
    fn release_deferred(&mut self, _record: RecordRef) {}

    /// Whether records may have locks by [column group](super::planning::groups): see
    /// [`Locks::by_group`].
    const GROUPS: bool = false;

    /// Whether they have, and records are the names of their locks; asked where locks are planned.
    #[inline(always)]
    fn by_group(&self) -> bool {
        false
    }

    /// Whether a transaction's locks are taken all together before it runs: by [`Locks::take_all`],
    /// once. What it meets beyond is taken only if that needs no wait.
    const PLANNED: bool = false;

    /// Whether planned records are named in the order of their addresses, and not in any.
    const ORDERED: bool = true;

    /// Takes the locks of records, each named once, and in order where that is [asked
    /// for](Locks::ORDERED); `hold` gets each that is held.
    ///
    /// # Errors
    /// Why the attempt fails instead; what `hold` got is held all the same.
    fn take_all(
        &mut self,
        _claims: impl Iterator<Item = Claim>,
        _hold: impl FnMut(Claim, Self::Held),
    ) -> Result<(), AbortCause>
    where
        Self: Sized,
    {
        unreachable!("asked only of locks that are planned")
    }
}

/// What the workers that use the same locks share: each has the parts that its way of locking
/// needs.
#[derive(Clone)]
pub struct LockingState {
    /// Wakes those that wait.
    pub alarms: Alarms,
    /// For locks that are not beside the records.
    pub table: LockTable,
    /// For [`deadlock::WaitForGraph`].
    pub waits_for: WaitsFor,
    /// For [`deadlock::Dreadlocks`].
    pub digests: Digests,
    /// For [`planned::Atomic`].
    pub section: CriticalSection,
}

impl LockingState {
    /// For workers with numbers below [`kiln_storage::table::WORKERS_MAX`], which share these core
    /// slots.
    pub fn new(core_slots: CoreSlots) -> LockingState {
        LockingState {
            alarms: Alarms::new(core_slots),
            table: LockTable::new(LockTable::BUCKETS),
            waits_for: WaitsFor::default(),
            digests: Digests::default(),
            section: CriticalSection::default(),
        }
    }

    /// Locks that are queues, for the worker with this number.
    pub(crate) fn queued<P: Placement, H: DeadlockPolicy>(
        &self,
        placement: P,
        policy: H,
        number: u32,
    ) -> QueuedLocks<P, H> {
        QueuedLocks::new(placement, policy, self.alarms.clone(), number)
    }
}

/// Room for so many locks taken before others: who takes more at once allocates.
const OVERTAKEN_USUAL: usize = 64;

/// One worker's side of locks that are queues.
pub struct QueuedLocks<P, H> {
    placement: P,
    policy: H,
    pool: Pool,
    alarms: Alarms,
    deadline_ns: Option<u64>,
    /// Whether a lock that is let go may be taken before its first waiter comes for it.
    overtakes: bool,
    /// The locks that the attempt has taken before others that wait, who have not been told yet.
    overtaken: Vec<(RecordRef, RequestRef)>,
}

impl<P: Placement, H: DeadlockPolicy> QueuedLocks<P, H> {
    /// For the worker with this number, which no other worker has that uses the same `placement` or
    /// `alarms`.
    pub fn new(placement: P, policy: H, alarms: Alarms, worker: u32) -> QueuedLocks<P, H> {
        QueuedLocks {
            placement,
            policy,
            pool: Pool::new(worker),
            alarms,
            deadline_ns: None,
            overtakes: H::OVERTAKES,
            overtaken: Vec::with_capacity(OVERTAKEN_USUAL),
        }
    }

    /// The same with this choice of who gets a lock that is let go. All workers that use the same
    /// locks make the same one.
    #[must_use]
    pub fn handed_on(mut self, queue: LockQueue) -> QueuedLocks<P, H> {
        self.overtakes = H::OVERTAKES && queue == LockQueue::Overtaking;
        self
    }

    /// Whether a lock that was [`Taken::Later`] is there by now; the caller need not wait for it
    /// then. An attempt that asks for several locks before it waits for any uses a policy that
    /// watches no other attempt.
    #[inline]
    pub fn is_granted(&self, request: RequestRef) -> bool {
        request.is_granted()
    }

    /// Gives up a lock, or an upgrade, that was [`Taken::Later`], unless it is there by now;
    /// whether it is.
    pub fn leave(&mut self, record: RecordRef, request: RequestRef) -> bool {
        self.give_up(record, request, AbortCause::LockTimeout)
            .is_ok()
    }

    /// Gives up a lock that was [`Taken::Later`] without having waited for it.
    pub fn abandon(&mut self, record: RecordRef, request: RequestRef) {
        if self.leave(record, request) {
            self.release(record, request, request.is_exclusive());
        }
    }

    #[cold]
    fn refused(exclusive: bool) -> AbortCause {
        H::REFUSED[usize::from(exclusive)]
    }
}

impl<P: Placement, H: DeadlockPolicy> Locks for QueuedLocks<P, H> {
    type Held = RequestRef;
    const NEW_AUX: Option<u64> = Some(0);
    const GROUPS: bool = P::GROUPS;

    #[inline(always)]
    fn by_group(&self) -> bool {
        self.placement.by_group()
    }

    #[inline]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.deadline_ns = deadline_ns;
        self.policy.begin_call();
    }

    #[inline(always)]
    fn begin(&mut self) {
        self.policy.begin();
    }

    #[inline]
    fn take(
        &mut self,
        record: RecordRef,
        exclusive: bool,
    ) -> Result<Taken<RequestRef>, AbortCause> {
        let stamp = self.policy.stamp();
        let request = self.pool.take(record.address(), exclusive, stamp);
        if self.placement.take_alone(record, request) {
            return Ok(Taken::Now(request));
        }
        let (policy, overtaken) = (&mut self.policy, &mut self.overtaken);
        let overtakes = H::OVERTAKES && self.overtakes;
        let taken = self.placement.latched(record, |latched| {
            let queue = &mut latched.0;
            if queue.is_free_for(exclusive) {
                queue.join(request);
                return Some(Taken::Now(request));
            }
            if overtakes && queue.may_overtake(stamp, H::BY_AGE) {
                queue.overtake(request);
                if H::WATCHES {
                    overtaken.push((record, request));
                }
                return Some(Taken::Now(request));
            }
            if !H::WAITS || H::BY_AGE && !queue.may_wait_by_age(stamp, exclusive) {
                return None;
            }
            queue.line_up(request, H::BY_AGE);
            if H::WATCHES {
                policy.forget(&request);
                queue.each_predecessor(request, |ahead| policy.watch(&ahead));
            }
            Some(Taken::Later(request))
        });
        if let Some(Taken::Later(_)) = taken {
            point("locks.lined-up");
        }
        taken.ok_or_else(|| {
            self.pool.put(request);
            Self::refused(exclusive)
        })
    }

    #[inline]
    fn take_new(&mut self, record: RecordRef) -> Result<RequestRef, AbortCause> {
        let stamp = self.policy.stamp();
        let request = self.pool.take(record.address(), true, stamp);
        if !self.placement.take_alone(record, request) {
            self.placement
                .latched(record, |latched| latched.0.join(request));
        }
        Ok(request)
    }

    #[inline]
    fn upgrade(
        &mut self,
        record: RecordRef,
        request: RequestRef,
    ) -> Result<Taken<RequestRef>, AbortCause> {
        let policy = &mut self.policy;
        let taken = self.placement.latched(record, |latched| {
            let queue = &mut latched.0;
            let is_refused = !queue.is_alone(request)
                && (!H::WAITS || H::BY_AGE && !queue.may_upgrade_by_age(request));
            if is_refused {
                return None;
            }
            match queue.upgrade(request) {
                Upgrade::Granted => Some(Taken::Now(request)),
                Upgrade::Crossed => None,
                Upgrade::Pending => {
                    if H::WATCHES {
                        policy.forget(&request);
                        queue.each_predecessor(request, |ahead| policy.watch(&ahead));
                    }
                    Some(Taken::Later(request))
                }
            }
        });
        if let Some(Taken::Later(_)) = taken {
            point("locks.upgrade-pending");
        }
        taken.ok_or_else(|| Self::refused(true))
    }

    #[cold]
    fn wait(&mut self, record: RecordRef, request: RequestRef) -> Result<(), AbortCause> {
        self.wait_for(record, request)
    }

    #[inline]
    fn release(&mut self, record: RecordRef, request: RequestRef, _: bool) {
        if !self.placement.release_alone(record, request) {
            let sleepers = self.placement.latched(record, |latched| {
                (latched.0).release(request, H::OVERTAKES && self.overtakes);
                latched.0.sleepers
            });
            if !sleepers.is_empty() {
                self.alarms.wake(sleepers);
            }
            if H::WATCHES && !self.overtaken.is_empty() {
                self.overtaken
                    .retain(|(_, overtaking)| *overtaking != request);
            }
        }
        self.pool.put(request);
    }
}
