//! Hybrid: a transaction's first attempt is optimistic, those after it lock.
//!
//! Source: THEDB-HYBRID of healing (SIGMOD 2016, §5), after Herlihy, *Apologizing versus Asking
//! Permission*, TODS 15, 1990, and Yu and Dias, *Analysis of Hybrid Concurrency Control Schemes*,
//! TSE 18, 1992; its 2PL does not wait (THEDB-2PL).
//!
//! # The idea
//!
//! Both kinds of attempt run at the same time, over the same sets
//! ([`optimistic`](crate::shared::optimistic)): a record is noted with its tid when it is met, and
//! writes are buffered. A *pessimistic* attempt also takes the record's lock in `aux` when it meets
//! it, shared or, where the analysis of the procedure says that it will write, exclusive, and fails
//! if it cannot have it at once. So what it has met stays as it is until its end.
//!
//! # Commit, of both kinds
//!
//! 1. **Lock** the write set in `aux`, exclusively, as far as that is not done yet: an optimistic
//!    commit has to respect the locks of those that share a record. Then lock the tids.
//! 2. **Validate**: each tid read as observed and not locked, index nodes too. Of what a
//!    pessimistic attempt has met nothing can have changed, but gaps have no locks.
//! 3. **Install**, and let go.
//!
//! # Invariants
//!
//! - A tid changes, or is locked, only while its record's lock in `aux` is held exclusively by who
//!   does it. New records are made with the lock.
//! - A pessimistic attempt holds the lock of each record that it met until it ends.
//!
//! # Lock order
//!
//! None. Pessimistic attempts do not wait, optimistic commits wait for a bounded number of spins.
//!
//! # Anomalies excluded
//!
//! Serializable, in real time. For each attempt there is a moment, when its tids are locked, at
//! which all that it read is as it was: for the optimistic kind by validation, for the pessimistic
//! one because it has the locks. Of two attempts that each read what the other writes, an
//! optimistic one sees the other's locked tid or fails to get a lock. Phantoms are excluded by the
//! node set.

pub(crate) mod registration;

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::spin;
use kiln_procedure::AbortCause;
use kiln_procedure::ir::Intent;
use kiln_storage::record::{RecordRef, Tid};

use crate::canary::Canary;
use crate::phases::Phase;
use crate::shared::optimistic::record_lock::{EXCLUSIVE, Locks, Mode};
use crate::shared::optimistic::{Commit, LOCK_SPINS_MAX, Optimistic, stable_tid};

/// The access of one worker; see the module's documentation.
pub type Hybrid = Optimistic<HybridCommit>;

/// What the hybrid does differently from other optimistic protocols.
#[derive(Default)]
pub struct HybridCommit {
    /// Whether this attempt locks what it meets.
    is_pessimistic: bool,
    locks: Locks,
}

impl HybridCommit {
    /// Meets a record under its lock.
    fn lock(&mut self, record: RecordRef, intent: Intent) -> Result<Tid, AbortCause> {
        let (mode, cause) = match intent {
            Intent::Read => (Mode::Shared, AbortCause::ReadLock),
            Intent::Write => (Mode::Exclusive, AbortCause::WriteLock),
        };
        if !self.locks.try_hold(record, mode) {
            return Err(cause);
        }
        // No other attempt changes it from now on, and what the last holder did is visible.
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() {
            self.locks.release(record);
        }
        Ok(tid)
    }
}

impl HybridCommit {
    /// Locks a record at the commit, with bounded spinning.
    fn hold_to_write(&mut self, record: RecordRef) -> bool {
        spin::until(LOCK_SPINS_MAX, || {
            self.locks.try_hold(record, Mode::Exclusive)
        })
    }
}

impl Commit for HybridCommit {
    type Note = ();

    #[inline(always)]
    fn prepare(&mut self, failures: u32) {
        self.is_pessimistic = failures > 0;
    }

    #[inline(always)]
    fn observe(&mut self, record: RecordRef, intent: Intent) -> Result<(Tid, ()), AbortCause> {
        let tid = match self.is_pessimistic {
            true => self.lock(record, intent)?,
            false => stable_tid(record)?,
        };
        Ok((tid, ()))
    }

    #[inline(always)]
    fn adopt(&mut self, record: RecordRef) {
        self.locks.note(record, Mode::Exclusive);
    }

    #[inline(always)]
    fn new_aux(&self) -> Option<u64> {
        Some(EXCLUSIVE)
    }

    fn commit(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        point("hybrid.executed");
        attempt.phases.enter(Phase::Lock);
        match Canary::SharersIgnored.sings() && !attempt.protocol.is_pessimistic {
            true => attempt.lock_tids()?,
            false => attempt.lock_write_set(HybridCommit::hold_to_write)?,
        }
        point("hybrid.locked");
        attempt.phases.enter(Phase::Validate);
        let tid = attempt.validate_locked()?;
        point("hybrid.validated");
        attempt.phases.enter(Phase::Install);
        attempt.last = tid;
        attempt.install(tid);
        point("hybrid.installed");
        attempt.finish();
        Ok(())
    }

    fn confirm(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        attempt.phases.enter(Phase::Validate);
        attempt.is_unchanged()
    }

    #[inline(always)]
    fn end(&mut self) {
        self.locks.release_all();
    }
}
