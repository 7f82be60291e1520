//! MOCC: optimistic concurrency control that locks hot records when it meets them.
//!
//! Source: Wang and Kimura, *Mostly-Optimistic Concurrency Control for Highly Contended Dynamic
//! Workloads on a Thousand Cores*, PVLDB 10, 2016; as the rival of STRIFE (SIGMOD 2020, §5.4) and
//! STO (PVLDB 13, 2020, §5.3).
//!
//! # The idea
//!
//! As in Silo, an attempt notes tids, and validates them at its end. But a record on which many validations
//! fail gets *hot* (`temperature.rs`), and hot records are locked when they are met, shared or, where the
//! analysis of the procedure says that the attempt will write, exclusively: nobody can change
//! them until the attempt ends, so these do not fail again. After a failure the next attempt of the same
//! transaction also locks the records on which the last one failed or which it meant to write (its
//! *retrospective* list), hot or not.
//!
//! The locks are an optimisation only. Whatever was read is validated, so an attempt may let go of a lock
//! whenever it wants to.
//!
//! # Lock order
//!
//! The canonical order is that of addresses. An attempt waits for a lock while all that it holds lie below.
//! A lock out of order is only tried; if somebody else has it, the attempt lets go of what
//! lies above, and then waits, in order again. So there is no deadlock, and waits are bounded all the
//! same, as a transaction of several statements may hold a lock for as long as its client likes.
//! At commit the write set is locked with bounded spinning.
//!
//! # Invariants
//!
//! - A tid changes, or is locked, only while its record's lock in `aux` is held exclusively by who does
//!   it; but a new record is buried by its own attempt without.
//! - Everything read is validated while the tids of the write set are locked.
//!
//! # Anomalies excluded
//!
//! Serializable, in real time, for the same reasons as Silo.

pub(crate) mod registration;
mod temperature;

use kiln_platform::atomic::Ordering;
use kiln_platform::random::Random;
use kiln_platform::schedule::point;
use kiln_platform::spin::{self, Spinner};
use kiln_platform::sync::Arc;
use kiln_procedure::AbortCause;
use kiln_procedure::ir::Intent;
use kiln_storage::epoch::Participant;
use kiln_storage::record::{RecordRef, Tid};

pub use temperature::Temperatures;

use crate::phases::Phase;
use crate::shared::optimistic::record_lock::{Locks, Mode};
use crate::shared::optimistic::{Commit, LOCK_SPINS_MAX, Optimistic, stable_tid};
use crate::shared::record_map::RecordMap;
use temperature::HOT;

/// An attempt waits for a lock in order for so many turns, about a millisecond with what it yields.
const WAIT_TURNS_MAX: u32 = 1 << 14;

/// The access of one worker; see the module's documentation.
pub type Mocc = Optimistic<MoccCommit>;

/// What MOCC does differently from other optimistic protocols.
pub struct MoccCommit {
    temperatures: Arc<Temperatures>,
    random: Random,
    locks: Locks,
    /// The period of the attempt's epoch.
    period: u32,
    /// The records that the transaction's earlier attempts failed on or meant to write. Between
    /// attempts they may have become others: they are locked when they are met again, and not before.
    retrospective: RecordMap,
}

impl Optimistic<MoccCommit> {
    /// An access for the worker that `participant` stands for; all workers have the same `temperatures`.
    pub fn sharing(participant: Participant, temperatures: Arc<Temperatures>) -> Mocc {
        let protocol = MoccCommit {
            temperatures,
            random: Random::from_seed(participant.slot() as u64),
            locks: Locks::default(),
            period: 0,
            retrospective: RecordMap::default(),
        };
        Optimistic::with(participant, protocol)
    }
}

impl MoccCommit {
    /// Remembers to lock a record in the next attempt.
    fn remember(&mut self, record: RecordRef) {
        if self.retrospective.get(record).is_none() {
            self.retrospective.insert(record, 0);
        }
    }

    /// Whether a record is locked when it is met.
    #[inline(always)]
    fn is_locked_when_met(&self, record: RecordRef) -> bool {
        self.temperatures.of(record, self.period) >= HOT || self.retrospective.get(record).is_some()
    }

    /// Locks a record before it is observed.
    #[cold]
    fn lock(&mut self, record: RecordRef, intent: Intent) -> Result<(), AbortCause> {
        let (mode, cause) = match intent {
            Intent::Read => (Mode::Shared, AbortCause::ReadLock),
            Intent::Write => (Mode::Exclusive, AbortCause::WriteLock),
        };
        let is_in_order = record.address() > self.locks.highest();
        if !is_in_order {
            if spin::until(LOCK_SPINS_MAX, || self.locks.try_hold(record, mode)) {
                return Ok(());
            }
            // Back to the canonical order, without the record's own lock in a lesser mode.
            self.locks.release_from(record.address());
        }
        let mut spinner = Spinner::default();
        for _ in 0..WAIT_TURNS_MAX {
            if self.locks.try_hold(record, mode) {
                return Ok(());
            }
            spinner.turn();
        }
        Err(cause)
    }
}

impl Commit for MoccCommit {
    type Note = ();

    #[inline(always)]
    fn end_call(&mut self) {
        self.retrospective.clear();
    }

    #[inline(always)]
    fn begin(&mut self, participant: &Participant) {
        self.period = Temperatures::period(participant.epoch());
    }

    #[inline(always)]
    fn observe(&mut self, record: RecordRef, intent: Intent) -> Result<(Tid, ()), AbortCause> {
        if !self.is_locked_when_met(record) {
            return Ok((stable_tid(record)?, ()));
        }
        self.lock(record, intent)?;
        // Nobody else changes it while the lock is held, and what the last one did is visible.
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() {
            self.locks.release(record);
        }
        Ok((tid, ()))
    }

    #[inline(always)]
    fn adopt(&mut self, _: RecordRef) {}

    fn commit(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        point("mocc.executed");
        let committed = attempt.try_commit();
        if committed.is_err() {
            // What is to be written will be locked at the next commit anyway.
            for write in &attempt.writes {
                attempt.protocol.remember(write.record);
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
        self.temperatures
            .heat(record, self.period, &mut self.random);
        self.remember(record);
    }
}

impl Optimistic<MoccCommit> {
    #[inline(always)]
    fn try_commit(&mut self) -> Result<(), AbortCause> {
        self.phases.enter(Phase::Lock);
        self.lock_write_set(|protocol| &mut protocol.locks)?;
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
    use crate::shared::optimistic::record_lock::EXCLUSIVE;
    use kiln_platform::atomic::AtomicU64;
    use std::ptr::NonNull;

    /// Two records by their headers, the first at the lower address.
    fn records(headers: &[AtomicU64; 4]) -> [RecordRef; 2] {
        // SAFETY: a record is a header of two words and, here, no row; the headers outlive the test.
        [0, 2].map(|at| unsafe { RecordRef::from_cell(NonNull::from(&headers[at]).cast()) })
    }

    fn protocol(temperatures: &Arc<Temperatures>) -> MoccCommit {
        MoccCommit {
            temperatures: temperatures.clone(),
            random: Random::from_seed(1),
            locks: Locks::default(),
            period: 3,
            retrospective: RecordMap::default(),
        }
    }

    #[test]
    fn hot_records_are_locked_and_in_vain_only_in_order() {
        let headers = [const { AtomicU64::new(0) }; 4];
        let [low, high] = records(&headers);
        let temperatures = Arc::new(Temperatures::default());
        let (mut first, mut second) = (protocol(&temperatures), protocol(&temperatures));
        let aux = |record: RecordRef| record.aux().load(Ordering::Relaxed);

        first.observe(low, Intent::Write).expect("it is free");
        assert_eq!(aux(low), 0, "it is cold");

        for _ in 0..1_000 {
            for record in [low, high] {
                first.found_changed(record);
            }
        }
        first.observe(low, Intent::Write).expect("it is free");
        assert_eq!(aux(low), EXCLUSIVE, "it is hot");
        second.observe(high, Intent::Read).expect("it is free");
        assert_eq!(aux(high), 1, "shared");
        // Out of order, and held by the first for ever: the second lets go of what lies above.
        let waited = second.observe(low, Intent::Read);
        assert!(matches!(waited, Err(AbortCause::ReadLock)), "{waited:?}");
        assert_eq!(aux(high), 0);
        first.end();
        second.observe(low, Intent::Read).expect("it is free again");
        assert_eq!(aux(low), 1);
        second.end();
        assert_eq!((aux(low), aux(high)), (0, 0));
    }

    #[test]
    fn what_an_attempt_failed_on_is_locked_by_the_next() {
        let headers = [const { AtomicU64::new(0) }; 4];
        let [record, _] = records(&headers);
        let mut protocol = protocol(&Arc::default());
        protocol.found_changed(record);
        protocol.observe(record, Intent::Read).expect("it is free");
        assert_eq!(record.aux().load(Ordering::Relaxed), 1);
        protocol.end();
        // Another transaction does not care.
        protocol.end_call();
        protocol.observe(record, Intent::Read).expect("it is free");
        assert_eq!(record.aux().load(Ordering::Relaxed), 0);
    }
}
