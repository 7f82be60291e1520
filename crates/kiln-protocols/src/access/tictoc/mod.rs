//! TicToc: optimistic concurrency control whose transactions find their timestamps in what they
//! read and wrote.
//!
//! Source: Yu, Pavlo, Sanchez, Devadas: *TicToc: Time Traveling Optimistic Concurrency Control*,
//! SIGMOD 2016; as the variant TSTO in STO (PVLDB 13, 2020, §2.3), which keeps full 64-bit
//! timestamps instead of the paper's delta encoding (its §3.6).
//!
//! # The idea
//!
//! A version of a record is valid from its write timestamp `wts` to its read timestamp `rts`.
//! Attempts run without locks ([`optimistic`](crate::shared::optimistic)) and note both. At its end
//! an attempt computes the earliest timestamp at which all that it read was valid and all that it
//! writes can begin: no earlier than the `wts` of what it read, later than the `rts` of what it
//! overwrites. Where a version that it read is valid up to then already, nothing else has to be
//! known of that record, even if another transaction has overwritten it since; elsewhere `rts` is
//! extended, if the version is still there. So a reader may be placed before a writer that
//! committed earlier in real time, where Silo aborts it.
//!
//! # Words
//!
//! `wts` is the version in the record's tid, `rts` is in `aux`, beside the claim bit (but see
//! below). `rts` is the greater of the two, so a record that another protocol or an insertion wrote
//! is as it should be with any `aux` that is not too large: `aux` is not 0 when no transaction
//! runs, and is swept when another protocol takes over.
//!
//! # Phases
//!
//! 1. **Lock** the write set, as Silo does.
//! 2. **Timestamp**: computed from the sets (`timestamp`).
//! 3. **Validate**: extend where needed, then, after a full fence, check that what was extended is
//!    as observed and not locked, and that no index node relied on has new entries.
//! 4. **Install** with the timestamp as the new version.
//!
//! # Invariants
//!
//! - `rts` of a version only grows, and is extended *before* the tid is looked at again; a writer
//!   reads it *after* it locked the tid. Of the two, one sees the other. An extension in vain does
//!   no harm.
//! - A writer's timestamp is later than the `rts` of the version that it replaces.
//! - Gaps have timestamps as well (`gaps.rs`); the paper has no ranges.
//!
//! # Commit-time updates
//!
//! With `+cu` (STO §6.1) a record of which nothing is observed is locked at whatever version it
//! has, and its updaters run between validation and installing. Its `rts` is read after the lock,
//! as for every write.
//!
//! # Timestamp splitting
//!
//! With `+ts` (STO §6.2) writes of the split columns of the table are counted in `aux`,
//! beside the `rts`, and have timestamps for all records of the table together (`times.rs`). What
//! observes only split columns relies on that count alone: it may come before or after any
//! write of the others.
//!
//! A read-only attempt that repeats one that failed begins with extending and copying what that one
//! had met (`kept.rs`).
//!
//! # Anomalies excluded
//!
//! Serializable in the order of the timestamps, and not strictly: that order need not be the order
//! of real time. A transaction may read what was overwritten before it began to commit, and in that
//! order come before transactions which its caller knows to be over. No transaction misses what one
//! before it *on the same record* wrote.

mod commit;
mod gaps;
mod kept;
pub(crate) mod registration;
mod times;

use kiln_platform::atomic::{AtomicU64, Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_procedure::AbortCause;
use kiln_procedure::ir::{Intent, Reg};
use kiln_storage::epoch::Participant;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;

pub use gaps::Gaps;
pub use times::GroupTimes;

use self::kept::Kept;
use crate::canary::Canary;
use crate::phases::Phase;
use crate::shared::optimistic::{Commit, Optimistic, stable_tid};

/// The access of one worker; see the module's documentation.
pub type TicToc = Optimistic<TicTocCommit>;

/// What TicToc does differently from other optimistic protocols.
pub struct TicTocCommit {
    gaps: Arc<Gaps>,
    /// The timestamps of column groups, with timestamp splitting.
    times: Option<Arc<GroupTimes>>,
    /// The stripes of the indexes in which the attempt relies on gaps.
    relied: gaps::Mask,
    /// The stripes of the indexes into which it puts entries.
    filled: gaps::Mask,
    /// The tables of which it relies on split columns, and rarely written.
    split: gaps::Mask,
    /// When any such columns were written, at the latest.
    split_since: u64,
    /// What a read-only attempt leaves to the one that repeats it.
    kept: Kept,
    /// Whether read-only attempts that are repeated begin with a sweep over that.
    sweeps: bool,
    /// What the attempt reads is extended up to then at once; 0 if it waits for the commit.
    reserves_until: u64,
}

impl Optimistic<TicTocCommit> {
    /// An access for the worker that `participant` stands for; all workers have the same `gaps`
    /// and, with timestamp splitting, `times`.
    pub fn sharing(
        participant: Participant,
        gaps: Arc<Gaps>,
        times: Option<Arc<GroupTimes>>,
    ) -> TicToc {
        let splits = times.is_some();
        let protocol = TicTocCommit {
            gaps,
            times,
            relied: 0,
            filled: 0,
            split: 0,
            split_since: 0,
            kept: Kept::default(),
            sweeps: false,
            reserves_until: 0,
        };
        let mut access = Optimistic::with(participant, protocol);
        access.splits = splits;
        access.uses_split = splits;
        access
    }

    /// The same, whose read-only attempts begin with a sweep when they are repeated, if there is
    /// timestamp splitting.
    #[must_use]
    pub fn sweeping(mut self, sweeps: bool) -> TicToc {
        self.protocol.sweeps = sweeps;
        self
    }
}

impl TicTocCommit {
    /// The `rts` of a record that has this version.
    #[inline(always)]
    fn read_until(&self, record: RecordRef, version: u64) -> u64 {
        match &self.times {
            None => times::extended(record).max(version),
            Some(times) => times.of(record, version),
        }
    }

    /// Extends the `rts` of a record that has this version.
    #[inline(always)]
    fn extend(&self, record: RecordRef, version: u64, timestamp: u64) {
        match &self.times {
            None => times::extend(record, timestamp),
            Some(times) => times.extend(record, version, timestamp),
        }
    }
}

impl Commit for TicTocCommit {
    /// The `rts` of what was observed, and with timestamp splitting whose it is.
    type Note = u64;
    // See `left` in `gaps.rs`: who finds a gap where an entry was, or fills it, commits later.
    const FOLLOWS: bool = true;

    #[inline(always)]
    fn prepare(&mut self, _: u32) {
        self.kept.begin_again();
    }

    #[inline(always)]
    fn end_call(&mut self) {
        self.kept.end_call();
    }

    #[inline]
    fn begin_read_only(&mut self) {
        if let (Some(times), true) = (&self.times, self.sweeps) {
            self.kept.note();
            self.reserves_until = self.kept.sweep(times);
        }
    }

    #[inline(always)]
    fn meets(&mut self, table: &Table, record: RecordRef, columns: ColumnSet) {
        self.kept.meets(table, record, columns);
    }

    #[inline(always)]
    fn row_kept(
        &self,
        record: RecordRef,
        observed: u64,
        columns: &[(ColumnId, Reg)],
    ) -> Option<&[AtomicU64]> {
        let columns = columns.iter().map(|&(column, _)| column);
        self.kept.row(record, observed, columns)
    }

    #[inline(always)]
    fn observe(&mut self, record: RecordRef, _: Intent) -> Result<(Tid, u64), AbortCause> {
        if self.reserves_until != 0
            && let Some(kept) = self.kept.version(record)
        {
            return Ok(kept);
        }
        let mut tid = stable_tid(record)?;
        loop {
            // Nothing is known of the absence of a row beyond the record's stay in the indexes, so
            // it is always validated.
            let mut rts = match tid.is_absent() {
                true => 0,
                false => self.read_until(record, tid.version()),
            };
            if rts < self.reserves_until && !tid.is_absent() {
                self.extend(record, tid.version(), self.reserves_until);
                // Sequentially consistent: as in `validate`.
                fence(Ordering::SeqCst);
                rts = self.reserves_until;
            }
            // The version was there when its `rts` was read, as it is there before and after.
            if record.tid().load(Ordering::Acquire) == tid.0 {
                return Ok((tid, rts));
            }
            tid = stable_tid(record)?;
        }
    }

    #[inline(always)]
    fn adopt(&mut self, record: RecordRef) -> u64 {
        Tid(record.tid().load(Ordering::Relaxed)).version()
    }

    const SPLIT: u64 = times::SPLIT;

    #[inline(always)]
    fn observe_split(&mut self, table: &Table, record: RecordRef, tid: Tid) -> Option<u64> {
        let times = self.times.as_ref().expect("columns are split");
        // Who has locked the record may have written these columns, and be about to say so in its
        // tid.
        let (since, until) = match times.written_split(table) {
            None if tid.is_locked() => return None,
            None => (
                tid.version(),
                times.of(record, tid.version()) | times::BY_RECORD,
            ),
            Some(latest) => {
                self.split |= GroupTimes::mask(table);
                let since = match tid.is_locked() {
                    true => latest,
                    false => latest.min(tid.version()),
                };
                (since, times.read_split(table))
            }
        };
        if !Canary::GroupWithoutTime.sings() {
            self.split_since = self.split_since.max(since);
        }
        Some(until)
    }

    #[inline(always)]
    fn rely_on_whole(note: &mut u64, tid: Tid) {
        *note = tid.version();
    }

    #[inline(always)]
    fn advanced(aux: u64, _: Tid) -> u64 {
        times::advanced(aux)
    }

    #[inline(always)]
    fn is_near(former: Tid, record: RecordRef) -> bool {
        // Relaxed: behind the acquire of the second timestamp, or of the lock.
        times::is_near(former, Tid(record.tid().load(Ordering::Relaxed)))
    }

    #[inline(always)]
    fn replace(&self, record: RecordRef, former: Tid, tid: Tid) {
        if let Some(times) = &self.times {
            times.carry_over(record, former.version(), tid.version());
        }
    }

    #[inline(always)]
    fn commit(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        point("tictoc.executed");
        attempt.phases.enter(Phase::Lock);
        attempt.lock_tids()?;
        point("tictoc.locked");
        attempt.phases.enter(Phase::Validate);
        // Sequentially consistent: every lock and every index insertion of this attempt is visible
        // before it reads the `rts` of what it overwrites and the timestamps of gaps.
        fence(Ordering::SeqCst);
        let timestamp = attempt.timestamp();
        if let Err(cause) = attempt.validate(timestamp, true) {
            attempt.unlock_tids();
            return Err(cause);
        }
        point("tictoc.validated");
        attempt.phases.enter(Phase::Install);
        attempt.run_updates()?;
        attempt.leave_gaps(timestamp);
        attempt.write_split(timestamp);
        attempt.install(Tid(timestamp));
        point("tictoc.installed");
        attempt.finish();
        Ok(())
    }

    fn confirm(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        attempt.phases.enter(Phase::Validate);
        // As a transaction that has only read; what it meant to write is not locked.
        let timestamp = attempt.newest_read();
        let TicTocCommit {
            gaps,
            relied,
            filled,
            ..
        } = &attempt.protocol;
        // That there was room for an entry says that no other was there.
        let timestamp = timestamp.max(gaps.earliest(*relied | *filled, 0));
        attempt.validate(timestamp, false)
    }

    #[inline(always)]
    fn end(&mut self) {
        (self.relied, self.filled) = (0, 0);
        (self.split, self.split_since) = (0, 0);
        self.reserves_until = 0;
        self.kept.end();
    }

    #[inline(always)]
    fn relies_on_gap(&mut self, table: &Table, index: usize) {
        self.relied |= Gaps::mask(table, index);
    }

    #[inline(always)]
    fn adds_entry(&mut self, table: &Table, index: usize) {
        self.filled |= Gaps::mask(table, index);
    }

    #[cold]
    fn met_absent(&mut self, table: &Table) {
        // The record stands where another one may have been, and may leave again: the attempt comes
        // after the one that left, and before the one that comes then.
        self.relied |= Gaps::mask_of_all(table);
    }
}
