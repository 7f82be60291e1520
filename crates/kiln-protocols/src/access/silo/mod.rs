//! Silo: optimistic concurrency control with epoch-based versions and no shared counter.
//!
//! Source: Tu et al., *Speedy Transactions in Multicore In-Memory Databases*, SOSP 2013 (the
//! commit protocol of §4.4, index nodes of §4.6); as the baseline OSTO in STO (PVLDB 13, 2020,
//! §2.1) with that paper's basis factors: bounded spinning instead of sorted write sets (§4.6
//! there), randomised backoff, hash indexes, aborts as return values.
//!
//! # The idea
//!
//! An attempt runs without locks ([`optimistic`](crate::shared::optimistic)). For each record it
//! meets it notes the tid; what it writes goes to a row image of its own. Commit has three phases:
//!
//! 1. **Lock** every record of the write set by setting the lock bit of its tid, which succeeds
//!    only if the tid is still the one observed; of a new record, whose tid no other transaction
//!    changes, by a store. A lock that is held is waited for with bounded spinning, so that
//!    deadlock resolves itself by an abort.
//! 2. **Validate**: the tid of each record only read is still the one observed and not locked;
//!    each index node relied on is unchanged. Between the phases lies the serialization point: a
//!    full fence and the reading of the global epoch.
//! 3. **Install**: copy the written columns from the image to the record and release the lock by
//!    storing the new tid: larger than every tid observed, in the epoch just read.
//!
//! # Invariants
//!
//! - The new tid is greater than the tid of everything read or overwritten, so tids of one record
//!   only grow, and a changed record never has an observed tid again.
//! - A raised error is reported only after the read set was validated
//!   ([`confirm`](kiln_procedure::Access::confirm)): until then an attempt may have seen a state
//!   that never was.
//! - `aux` is 0 but for the claim of an attempt that moves a record's index entries; with `+cu` or
//!   `+ts` it is the second timestamp besides.
//!
//! # Commit-time updates and timestamp splitting
//!
//! With `+cu` (STO §6.1) updates whose old values no operation observes are kept, and run between
//! phases 2 and 3, while the record is locked ([`optimistic`](crate::shared::optimistic)). With
//! `+ts` (§6.2) an operation that observes only split columns of the table notes the second
//! timestamp. A record that is written without having been observed as a whole is locked at
//! whatever version it has. OSTO has a timestamp, with a lock bit, for each group; here the lock of
//! the tid is taken for every write, as it is what protects the words, and that of the second
//! timestamp besides where it will be advanced. While no other worker disturbs a worker's attempts
//! these do neither ([`calms`](Optimistic::calms)).
//!
//! # Anomalies excluded
//!
//! Serializable: reads and writes appear to happen at the serialization point, as the write set
//! is locked and the read set unchanged there. Phantoms are excluded by the node set: an insert
//! changes the version of its leaf or bucket before the new entry can be seen.
//!
//! # To the commit
//!
//! In the papers' Silo an attempt runs to its commit, whatever it meets. Here it ends as soon as it
//! meets what will fail it, unless [`early_aborts`](Optimistic::early_aborts) is off.
//!
//! # Unchecked
//!
//! [`SiloUnchecked`] skips phase 2 and locks whatever versions there are (healing §5.1,
//! THEDB-SILO⁻): the peak that the protocol would reach without aborts. **It is not serializable**
//! and exists for measurement. Rows are still read and written one at a time, and indexes stay
//! intact. What else would fail waits, overwrites or is lost ([`Commit::VALIDATES`]).

pub(crate) mod registration;

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::spin::Spinner;
use kiln_procedure::AbortCause;
use kiln_procedure::ir::Intent;
use kiln_storage::record::{RecordRef, Tid};

use crate::phases::Phase;
use crate::shared::optimistic::{Commit, Optimistic, WriteKind, awaited_tid, stable_tid};

/// The access of one worker; see the module's documentation.
pub type Silo = Optimistic<SiloCommit<true>>;

/// The same without validation: an unsafe baseline.
pub type SiloUnchecked = Optimistic<SiloCommit<false>>;

/// What Silo does differently from other optimistic protocols.
#[derive(Default)]
pub struct SiloCommit<const VALIDATES: bool> {
    /// Whether a record that is being installed is waited for, however long that takes.
    pub waits: bool,
    /// Without validation: the positions of the writes, in the order in which their records are
    /// locked.
    order: Vec<u32>,
}

impl<const VALIDATES: bool> Commit for SiloCommit<VALIDATES> {
    type Note = ();
    const VALIDATES: bool = VALIDATES;

    #[inline(always)]
    fn observe(&mut self, record: RecordRef, _: Intent) -> Result<(Tid, ()), AbortCause> {
        match stable_tid(record) {
            Err(_) if !VALIDATES || self.waits => Ok((awaited_tid(record), ())),
            tid => Ok((tid?, ())),
        }
    }

    #[inline(always)]
    fn adopt(&mut self, _: RecordRef) {}

    #[inline(always)]
    fn commit(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        point("silo.executed");
        attempt.phases.enter(Phase::Lock);
        match VALIDATES {
            true => attempt.lock_tids()?,
            false => attempt.lock_present_tids(),
        }
        point("silo.locked");
        attempt.phases.enter(Phase::Validate);
        let tid = attempt.validate_locked()?;
        point("silo.validated");
        attempt.phases.enter(Phase::Install);
        attempt.run_updates()?;
        attempt.last = tid;
        attempt.install(tid);
        point("silo.installed");
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

impl<const VALIDATES: bool> Optimistic<SiloCommit<VALIDATES>> {
    /// Locks the tids of the write set as they are, and observes these. They are locked in the
    /// order of the records' addresses, as in Silo, so that a lock that is held can be waited for:
    /// its holder waits for none before it. What is written to a row that is gone, or that its
    /// inserter has not committed, is lost.
    fn lock_present_tids(&mut self) {
        let (order, writes) = (&mut self.protocol.order, &mut self.writes);
        order.clear();
        order.extend(0..writes.len() as u32);
        order.sort_unstable_by_key(|position| writes[*position as usize].record.address());
        for position in order {
            let write = &mut writes[*position as usize];
            let word = write.record.tid();
            let mut spinner = Spinner::default();
            loop {
                let seen = word.load(Ordering::Relaxed);
                if write.comes_too_soon_or_late(Tid(seen)) {
                    write.kind = WriteKind::Lost;
                    break;
                }
                // Acquire: what the previous holder installed is visible before this one
                // overwrites.
                let is_locked = !Tid(seen).is_locked()
                    && word
                        .compare_exchange(
                            seen,
                            seen | Tid::LOCKED,
                            Ordering::Acquire,
                            Ordering::Relaxed,
                        )
                        .is_ok();
                if is_locked {
                    self.items[write.item as usize].observed = seen;
                    break;
                }
                spinner.spin();
            }
        }
    }
}
