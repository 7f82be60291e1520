//! OCC: what was read *and* what is written is locked in one order, then validated, then written.
//!
//! Source: Kung and Robinson, *On Optimistic Methods for Concurrency Control*, TODS 6, 1981, as the
//! baseline THEDB-OCC of healing (SIGMOD 2016, §2.1, §4.1, §5), with Silo's epochs in the
//! versions instead of a shared counter, as there.
//!
//! # The idea
//!
//! An attempt runs without locks ([`optimistic`](crate::shared::optimistic)). At its end
//! come three phases:
//!
//! 1. **Lock and validate**: the records of the read and write set, in the order of their
//!    addresses. Each is compared with what was observed as soon as it is locked, so that an
//!    attempt in vain ends before it has locked much. A lock that is held is waited for; the order
//!    excludes deadlock.
//! 2. The tids of the write set get their lock bits, for those that do not look at `aux`: readers
//!    that still run, and attempts that only confirm an error. Then the **index nodes** relied on
//!    are compared, and records that have no row once more.
//! 3. **Write**: the images are copied and new tids stored; all locks are released.
//!
//! Silo locks the write set alone, and all of it before it validates anything. So `occ` pays
//! for each record that it only read with two atomic operations, and under contention wastes less.
//!
//! With `+cu` (STO §6.1) a record of which nothing was observed but that it is there may have any
//! version when it is locked, and its updaters run before the write phase.
//!
//! # Lock order
//!
//! Records by address. The lock is a bit of `aux`; only the holder of that lock sets the lock bit
//! of the tid, for the time of the writing, and no transaction waits while it is set.
//!
//! # Invariants
//!
//! - The tid of a record changes only while its lock in `aux` is held, but for the burying of a new
//!   record by its own attempt: then another transaction may get its key. So a transaction that
//!   observed its absence looks again when all is locked.
//! - A raised error is reported only after the read set was validated.
//!
//! # Anomalies excluded
//!
//! Serializable, in real time: at the moment when all is locked and validated, all that was read is
//! as it was, and no transaction changes it before the locks are released. Phantoms are excluded by
//! the node set.
//!
//! # Unchecked
//!
//! [`OccUnchecked`] locks, compares nothing and writes (healing §5.1, THEDB-OCC⁻). **It is not
//! serializable** and exists for measurement. Rows are still read and written one at a time, and
//! indexes stay intact. What else would fail waits, overwrites or is lost ([`Commit::VALIDATES`]).

pub(crate) mod registration;

use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::spin::Spinner;
use kiln_procedure::AbortCause;
use kiln_procedure::ir::Intent;
use kiln_storage::record::{RecordRef, Tid};

use crate::canary::Canary;
use crate::phases::Phase;
use crate::shared::optimistic::record_lock::{self, Mode};
use crate::shared::optimistic::{Commit, Optimistic, WriteKind, awaited_tid, stable_tid};

/// The access of one worker; see the module's documentation.
pub type Occ = Optimistic<OccCommit<true>>;

/// The same without validation: an unsafe baseline.
pub type OccUnchecked = Optimistic<OccCommit<false>>;

/// What OCC does differently from other optimistic protocols.
#[derive(Default)]
pub struct OccCommit<const VALIDATES: bool> {
    /// The positions of the items, in the order in which their records are locked.
    order: Vec<u32>,
    /// The locked records, each once.
    locked: Vec<RecordRef>,
}

impl<const VALIDATES: bool> Commit for OccCommit<VALIDATES> {
    type Note = ();
    const VALIDATES: bool = VALIDATES;

    #[inline(always)]
    fn observe(&mut self, record: RecordRef, _: Intent) -> Result<(Tid, ()), AbortCause> {
        match VALIDATES {
            true => Ok((stable_tid(record)?, ())),
            false => Ok((awaited_tid(record), ())),
        }
    }

    #[inline(always)]
    fn adopt(&mut self, _: RecordRef) {}

    fn commit(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        point("occ.executed");
        attempt.phases.enter(Phase::Lock);
        attempt.lock()?;
        point("occ.locked");
        attempt.phases.enter(Phase::Validate);
        let tid = attempt.choose()?;
        point("occ.validated");
        attempt.phases.enter(Phase::Install);
        if let Err(cause) = attempt.run_updates() {
            attempt.protocol.unlock();
            return Err(cause);
        }
        attempt.last = tid;
        attempt.install(tid);
        point("occ.installed");
        attempt.protocol.unlock();
        attempt.finish();
        Ok(())
    }

    fn confirm(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        attempt.phases.enter(Phase::Validate);
        match VALIDATES {
            true => attempt.is_unchanged(),
            false => Ok(()),
        }
    }
}

impl<const VALIDATES: bool> OccCommit<VALIDATES> {
    fn unlock(&mut self) {
        for record in self.locked.drain(..) {
            record_lock::release(record, Mode::Exclusive);
        }
    }
}

impl<const VALIDATES: bool> Optimistic<OccCommit<VALIDATES>> {
    /// Phase 1: locks what was read and written, and compares it with what was observed. On failure
    /// the locks are released.
    fn lock(&mut self) -> Result<(), AbortCause> {
        let OccCommit { order, .. } = &mut self.protocol;
        order.clear();
        order.extend(0..self.items.len() as u32);
        order.sort_unstable_by_key(|&item| self.items[item as usize].record.address());
        for at in 0..self.items.len() {
            let OccCommit { order, locked } = &mut self.protocol;
            let position = order[at] as usize;
            let item = &mut self.items[position];
            if locked.last() != Some(&item.record) {
                // The holder waits for greater addresses only, and not for this attempt.
                let mut spinner = Spinner::default();
                while !record_lock::try_lock(item.record) {
                    if self.participant.epochs().is_broken() {
                        self.protocol.unlock();
                        return Err(AbortCause::LockTimeout);
                    }
                    spinner.spin();
                }
                locked.push(item.record);
            }
            // No other attempt installs while this one holds the lock, whose acquisition has made
            // visible what was installed before.
            let now = Tid(item.record.tid().load(Ordering::Relaxed));
            if !VALIDATES {
                item.observed = now.0;
            } else if item.is_unobserved()
                && self.written.get(item.record).is_some()
                && !now.is_absent()
            {
                self.rely_on(position, now);
            } else if now.0 != item.observed && !Canary::ReadValidationSkipped.sings() {
                self.protocol.unlock();
                return Err(AbortCause::ReadValidation);
            }
        }
        if !VALIDATES {
            for write in &mut self.writes {
                let present = Tid(self.items[write.item as usize].observed);
                if write.comes_too_soon_or_late(present) {
                    write.kind = WriteKind::Lost;
                }
            }
        }
        Ok(())
    }

    /// Whether records in which the attempt relies on there being no row are as they were observed.
    ///
    /// The attempt that has put a record into the indexes may bury it, even if another one has
    /// locked it. A third one may get its key then, read what this attempt has not locked yet, and
    /// commit. So these are compared once more when all is locked.
    fn is_still_absent(&self) -> bool {
        self.items.iter().all(|item| {
            !Tid(item.observed).is_absent()
                || self.written.get(item.record).is_some()
                // Acquire: as in the validation of other protocols.
                || item.record.tid().load(Ordering::Acquire) == item.observed
        })
    }

    /// Phase 2: locks the tids, compares the index nodes, and chooses the tid. On failure the locks
    /// are released.
    fn choose(&mut self) -> Result<Tid, AbortCause> {
        // From here on a transaction that only looks, to confirm an error, sees that these records
        // are changing.
        self.lock_held_tids();
        // Sequentially consistent: of two attempts that each insert into a gap that the other
        // relies on, one sees the other's insertion. It also orders the reading of the epoch after
        // the locks.
        fence(Ordering::SeqCst);
        let epoch = self.participant.epochs().current();
        let failure = if !VALIDATES {
            None
        } else if !self.nodes.is_current() {
            Some(AbortCause::Phantom)
        } else if !self.is_still_absent() {
            Some(AbortCause::ReadValidation)
        } else {
            None
        };
        if let Some(cause) = failure {
            self.unlock_tids();
            self.protocol.unlock();
            return Err(cause);
        }
        let tid = self.newest().next_in(epoch);
        Ok(self.above_deletions(tid))
    }
}
