//! MOCC: optimistic concurrency control that locks hot records when it meets them.
//!
//! Source: Wang and Kimura, *Mostly-Optimistic Concurrency Control for Highly Contended Dynamic
//! Workloads on a Thousand Cores*, PVLDB 10, 2016; as the rival of STRIFE (SIGMOD 2020, §5.4) and
//! STO (PVLDB 13, 2020, §5.3).
//!
//! # The idea
//!
//! As in Silo, an attempt notes tids, and validates them at its end. But a record on which many
//! validations fail gets *hot* (`temperature.rs`), and hot records are locked when they are met,
//! shared or, where the analysis of the procedure says that the attempt will write, exclusively: no
//! other attempt can change them until this one ends, so these do not fail again. After a failure
//! the next attempt of the same transaction also locks the records on which the last one failed or
//! which it meant to write (its *retrospective* list, `retrospective.rs`), hot or not. The locks
//! are queues (`locks.rs`).
//!
//! The locks are an optimisation only. Whatever was read is validated, so an attempt may let go of
//! a lock whenever it wants to.
//!
//! # Lock order
//!
//! The canonical order is that of addresses. An attempt waits for a lock while all that it holds
//! lie below. Before that lock it takes those of the retrospective list that lie below it, so that
//! it does not come to want them later, out of order. (What is cold and not in the list is not
//! locked, and keeps no order.) A lock out of order is waited for a moment only; if another attempt
//! keeps it, the attempt lets go of what lies above, and then waits, in order again. So there is no
//! deadlock. Waits are bounded all the same, as a transaction of several statements may hold a lock
//! for as long as its client likes. At commit the write set is locked, each with a moment's wait.
//!
//! # Locks of cells
//!
//! A record of the list was met by an earlier attempt, which has left its epoch since. So its cell
//! may be free by now when it is locked, or another record's, or become one while the lock is held.
//! That does no harm: a cell that becomes a record keeps its `aux`, so that no lock is lost, and
//! the lock of a record that the attempt does not touch is only in the way of others.
//!
//! # Invariants
//!
//! - A tid that others can see changes, or is locked, only while its record's lock in `aux` is held
//!   exclusively by who does it; but a new record is buried by its own attempt without.
//! - Of the retrospective list, the attempt holds what lies below its highest lock, but for records
//!   that it found dead.
//! - Everything read is validated while the tids of the write set are locked.
//! - `aux` is 0 but for the claim of an attempt that moves a record's index entries, and the queue
//!   of a lock.
//!
//! # Anomalies excluded
//!
//! Serializable, in real time, for the same reasons as Silo.

mod locks;
pub(crate) mod registration;
mod retrospective;
mod temperature;

use kiln_platform::atomic::Ordering;
use kiln_platform::random::Random;
use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_procedure::AbortCause;
use kiln_procedure::ir::Intent;
use kiln_storage::epoch::Participant;
use kiln_storage::record::{RecordRef, Tid};

use crate::phases::Phase;
use crate::shared::core_slots::CoreSlots;
use crate::shared::locks::Alarms;
use crate::shared::optimistic::record_lock::Mode;
use crate::shared::optimistic::{Commit, Optimistic, stable_tid};
use locks::Locks;
use retrospective::Retrospective;
use temperature::{HOT, Temperatures};

/// The access of one worker; see the module's documentation.
pub type Mocc = Optimistic<MoccCommit>;

/// What the workers of MOCC share.
pub struct HotRecords {
    temperatures: Temperatures,
    alarms: Alarms,
}

impl HotRecords {
    /// For workers that share these core slots.
    pub fn new(core_slots: CoreSlots) -> HotRecords {
        HotRecords {
            temperatures: Temperatures::default(),
            alarms: Alarms::new(core_slots),
        }
    }
}

/// What MOCC does differently from other optimistic protocols.
pub struct MoccCommit {
    hot: Arc<HotRecords>,
    random: Random,
    locks: Locks,
    /// The period of the attempt's epoch.
    period: u32,
    retrospective: Retrospective,
}

impl Optimistic<MoccCommit> {
    /// An access for the worker that `participant` stands for; all workers have the same `hot`.
    pub fn sharing(participant: Participant, hot: Arc<HotRecords>) -> Mocc {
        let protocol = MoccCommit::new(hot, participant.slot() as u32);
        Optimistic::with(participant, protocol)
    }
}

impl MoccCommit {
    fn new(hot: Arc<HotRecords>, worker: u32) -> MoccCommit {
        MoccCommit {
            random: Random::from_seed(u64::from(worker)),
            locks: Locks::new(hot.alarms.clone(), worker),
            hot,
            period: 0,
            retrospective: Retrospective::default(),
        }
    }

    /// The mode in which a record is locked when it is met, if it is.
    #[inline(always)]
    fn mode_when_met(&self, record: RecordRef, intent: Intent) -> Option<Mode> {
        let listed = self.retrospective.mode(record);
        if listed.is_none() && self.hot.temperatures.of(record, self.period) < HOT {
            return None;
        }
        listed.max(Some(match intent {
            Intent::Read => Mode::Shared,
            Intent::Write => Mode::Exclusive,
        }))
    }

    /// Locks a record before it is observed, and before it what the retrospective list has below.
    #[cold]
    fn lock(&mut self, record: RecordRef, mode: Mode) -> Result<(), AbortCause> {
        if record.address() <= self.locks.highest() {
            if self.locks.try_hold(record, mode) {
                return Ok(());
            }
            // Back to the canonical order, without the record's own lock in a lesser mode.
            self.locks.release_from(record.address());
        }
        while let Some((ahead, mode)) =
            (self.retrospective).next_between(self.locks.highest(), record.address())
        {
            self.locks.hold(ahead, mode)?;
            point("mocc.locked_ahead");
        }
        self.locks.hold(record, mode)
    }

    /// Locks a record at the commit.
    fn hold_to_write(&mut self, record: RecordRef) -> bool {
        self.locks.try_hold(record, Mode::Exclusive)
    }
}

impl Commit for MoccCommit {
    type Note = ();

    #[inline(always)]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.locks.begin_call(deadline_ns);
    }

    #[inline(always)]
    fn end_call(&mut self) {
        self.retrospective.clear();
    }

    #[inline(always)]
    fn begin(&mut self, participant: &Participant) {
        self.period = Temperatures::period(participant.epoch());
        self.retrospective.begin();
    }

    #[inline(always)]
    fn observe(&mut self, record: RecordRef, intent: Intent) -> Result<(Tid, ()), AbortCause> {
        let Some(mode) = self.mode_when_met(record, intent) else {
            return Ok((stable_tid(record)?, ()));
        };
        self.lock(record, mode)?;
        // No other attempt changes it while this one holds the lock, and what the last holder did
        // is visible.
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() {
            self.locks.release(record);
        }
        Ok((tid, ()))
    }

    #[inline(always)]
    fn adopt(&mut self, _: RecordRef) {}

    #[inline(always)]
    fn new_aux(&self) -> Option<u64> {
        None
    }

    fn commit(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        point("mocc.executed");
        let committed = attempt.try_commit();
        if committed.is_err() {
            // What is to be written will be locked at the next commit anyway.
            // The next attempt makes new records of its own.
            for write in attempt.writes.iter().filter(|write| !write.inserts()) {
                (attempt.protocol.retrospective).add(write.record, Mode::Exclusive);
            }
        }
        committed
    }

    fn confirm(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        attempt.phases.enter(Phase::Validate);
        attempt.is_unchanged()
    }

    #[inline(always)]
    fn end(&mut self) {
        self.locks.release_all();
    }

    #[cold]
    fn found_changed(&mut self, record: RecordRef) {
        (self.hot.temperatures).heat(record, self.period, &mut self.random);
        self.retrospective.add(record, Mode::Shared);
    }
}

impl Optimistic<MoccCommit> {
    #[inline(always)]
    fn try_commit(&mut self) -> Result<(), AbortCause> {
        self.phases.enter(Phase::Lock);
        self.lock_write_set(MoccCommit::hold_to_write)?;
        point("mocc.locked");
        self.phases.enter(Phase::Validate);
        let tid = self.validate_locked()?;
        point("mocc.validated");
        self.phases.enter(Phase::Install);
        self.last = tid;
        self.install(tid);
        point("mocc.installed");
        self.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::optimistic::CLAIMED;
    use kiln_platform::atomic::AtomicU64;
    use std::ptr::NonNull;

    /// Records by their headers, at rising addresses.
    fn records<const N: usize>(headers: &[[AtomicU64; 2]; N]) -> [RecordRef; N] {
        // SAFETY: a record is a header of two words and, here, no row; the headers outlive the
        // test.
        std::array::from_fn(|at| unsafe {
            RecordRef::from_cell(NonNull::from(&headers[at]).cast())
        })
    }

    fn headers<const N: usize>() -> [[AtomicU64; 2]; N] {
        [const { [const { AtomicU64::new(0) }; 2] }; N]
    }

    /// Two workers that give up at once.
    fn protocols() -> [MoccCommit; 2] {
        let hot = Arc::new(HotRecords::new(CoreSlots::default()));
        [0, 1].map(|worker| {
            let mut protocol = MoccCommit::new(hot.clone(), worker);
            protocol.period = 3;
            protocol.begin_call(Some(1));
            protocol
        })
    }

    fn is_locked(record: RecordRef) -> bool {
        record.aux().load(Ordering::Relaxed) & !CLAIMED != 0
    }

    #[test]
    fn hot_records_are_locked_and_in_vain_only_in_order() {
        let headers = headers();
        let [low, high] = records(&headers);
        let [mut first, mut second] = protocols();

        first.observe(low, Intent::Write).expect("it is free");
        assert!(!is_locked(low), "it is cold");

        for _ in 0..1_000 {
            for record in [low, high] {
                first.found_changed(record);
            }
        }
        first.observe(low, Intent::Write).expect("it is free");
        assert!(is_locked(low), "it is hot");
        second.observe(high, Intent::Read).expect("it is free");
        assert!(is_locked(high));
        // Out of order, and held by the first for ever: the second lets go of what lies above.
        let waited = second.observe(low, Intent::Read);
        assert!(matches!(waited, Err(AbortCause::LockTimeout)), "{waited:?}");
        assert!(!is_locked(high));
        first.end();
        second.observe(low, Intent::Read).expect("it is free again");
        first.observe(low, Intent::Read).expect("it is shared");
        first.end();
        assert!(is_locked(low));
        second.end();
        assert!(!is_locked(low) && !is_locked(high));
    }

    #[test]
    fn a_claim_that_comes_and_goes_keeps_the_lock_and_is_kept() {
        let headers = headers();
        let [record] = records(&headers);
        let [mut first, mut second] = protocols();
        let aux = record.aux();
        for protocol in [&mut first, &mut second] {
            protocol.retrospective.add(record, Mode::Shared);
            protocol.retrospective.begin();
        }
        first.observe(record, Intent::Read).expect("it is free");
        aux.fetch_or(CLAIMED, Ordering::Relaxed);
        second.observe(record, Intent::Read).expect("it is shared");
        first.end();
        aux.fetch_and(!CLAIMED, Ordering::Relaxed);
        assert!(is_locked(record));
        aux.fetch_or(CLAIMED, Ordering::Relaxed);
        second.end();
        assert_eq!(aux.load(Ordering::Relaxed), CLAIMED);
    }

    #[test]
    fn what_an_attempt_failed_on_is_locked_by_the_next() {
        let headers = headers();
        let [record] = records(&headers);
        let [mut protocol, _] = protocols();
        protocol.found_changed(record);
        protocol.retrospective.begin();
        protocol.observe(record, Intent::Read).expect("it is free");
        assert!(is_locked(record));
        protocol.end();
        // Another transaction does not care.
        protocol.end_call();
        protocol.observe(record, Intent::Read).expect("it is free");
        assert!(!is_locked(record));
    }

    #[test]
    fn the_list_is_locked_ahead_below_what_is_met() {
        let headers = headers();
        let [low, mid, high, highest] = records(&headers);
        let [mut protocol, _] = protocols();
        for record in [highest, mid, low, mid] {
            protocol.retrospective.add(record, Mode::Shared);
        }
        protocol.retrospective.add(low, Mode::Exclusive);
        protocol.retrospective.begin();
        assert_eq!(protocol.retrospective.mode(low), Some(Mode::Exclusive));
        assert_eq!(protocol.retrospective.mode(mid), Some(Mode::Shared));
        protocol.observe(high, Intent::Read).expect("it is free");
        assert!(!is_locked(low), "what is met is cold");
        protocol.observe(mid, Intent::Read).expect("it is free");
        assert_eq!(
            [low, mid, high, highest].map(is_locked),
            [true, true, false, false]
        );
        protocol.end();
        assert!(![low, mid, high, highest].into_iter().any(is_locked));
    }
}
