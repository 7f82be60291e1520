//! Locking what was read and written in the validation order, and comparing it (§4.2.1, §4.5).

use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::spin::{self, Spinner};
use kiln_procedure::AbortCause;
use kiln_storage::record::{RecordRef, Tid};

use super::copies::Copied;
use super::restore::ROUNDS_MAX;
use super::{Healing, installed_tid};
use crate::canary::Canary;
use crate::factors::ValidationOrder;
use crate::phases::Phase;
use crate::shared::optimistic::record_lock::EXCLUSIVE;
use crate::shared::optimistic::{Item, LOCK_SPINS_MAX, WriteKind};
use crate::shared::recorder::Recorded;

/// The bits of an address that can differ.
const ADDRESS_BITS: u32 = 48;

/// A record's rank in the validation order: all attempts have the same.
fn rank(order: ValidationOrder, item: &Item<Copied>) -> u64 {
    let address = item.record.address() & ((1 << ADDRESS_BITS) - 1);
    let by_table = u64::from(item.note.table().id().0) << ADDRESS_BITS | address;
    match order {
        ValidationOrder::Tree => by_table,
        ValidationOrder::Address => address,
        ValidationOrder::Reversed => !by_table,
    }
}

/// How often a lock below another one is tried before what lies above it is given up: about twenty
/// microseconds, in which most commits end.
const TRIES_BELOW: u32 = 4 * LOCK_SPINS_MAX;

/// How often an attempt is restored because of records that were only read, or before it reports an
/// error, until it locks them. Others wait for them meanwhile, and mostly for nothing.
const TRIES_BEFORE_LOCKING: u32 = 4;

/// How often the records that are not locked are compared anew before they are locked too.
const COMPARISONS_MAX: u32 = 16;

/// So many records that are locked after one that is waited for are brought to this core meanwhile.
const OWNED_AHEAD: usize = 4;

/// Has this core own the line of a record that no worker has locked: to write it will take less
/// time then, in which others wait.
fn own_line(record: RecordRef) {
    let word = record.aux();
    // Relaxed, both: nothing is read or written by it.
    if word.load(Ordering::Relaxed) & EXCLUSIVE == 0 {
        word.fetch_or(0, Ordering::Relaxed);
    }
}

impl Healing {
    /// Phases 2 to 5. The attempt's sets are forgotten when it has committed.
    ///
    /// # Errors
    /// An [`AbortCause`]; [`Healing::asks`] says whether a restoration may mend it. No tid is
    /// locked then.
    pub(super) fn lock_and_write(&mut self, is_resumed: bool) -> Result<(), AbortCause> {
        for comparison in 0.. {
            self.sets.phases.enter(Phase::Lock);
            self.locks_reads |= comparison == COMPARISONS_MAX;
            match self.left_at.take() {
                Some(left_at) if is_resumed => self.lock_from(left_at)?,
                _ => self.lock()?,
            }
            point("healing.locked");
            self.sets.phases.enter(Phase::Validate);
            // Before others can see the new rows, so that the run that follows need not take them
            // back.
            self.compare_nodes()?;
            if !self.late.is_empty() {
                self.has_linked = true;
                self.link_late()?;
                point("healing.linked");
            }
            // From here on others see that these records are changing: those that only look, to
            // confirm an error, and those that compare what they have not locked.
            self.lock_own_tids();
            // Sequentially consistent: of two attempts that each insert into a gap that the other
            // relies on, or write what the other has read without a lock, one sees the other. It
            // also orders the reading of the epoch after the locks.
            fence(Ordering::SeqCst);
            let epoch = self.sets.participant.epochs().current();
            let is_as_read = self.is_as_read();
            if is_as_read && self.sets.nodes.is_current() {
                return self.install(self.sets.newest().next_in(epoch));
            }
            self.sets.unlock_tids();
            self.compare_nodes()?;
        }
        unreachable!("what is locked does not change")
    }

    /// Phase 5.
    ///
    /// # Errors
    /// When an update that was deferred to the commit raises; no tid is locked then.
    pub(super) fn install(&mut self, tid: Tid) -> Result<(), AbortCause> {
        point("healing.validated");
        self.sets.phases.enter(Phase::Install);
        self.sets.run_updates()?;
        let tid = self.sets.above_deletions(tid);
        self.sets.last = tid;
        // All is locked that will be, so that what is only read need not be locked any longer.
        if self.order.len() > self.sets.writes.len() {
            for &(_, position) in &self.order {
                let record = self.sets.items[position as usize].record;
                if self.sets.written.get(record).is_none() {
                    self.sets.protocol.locks.release(record);
                }
            }
        }
        self.sets.install(tid);
        point("healing.installed");
        self.drop_late();
        self.sets.protocol.locks.release_all();
        self.sets.finish();
        Ok(())
    }

    /// Whether all records that are not locked, or have no row yet, are as they were observed, and
    /// no attempt is changing them.
    fn is_as_read(&self) -> bool {
        // Acquire: what this one reads of a record is not moved behind the comparison.
        let is_as_read = |&position: &u32| {
            let item = &self.sets.items[position as usize];
            item.record.tid().load(Ordering::Acquire) == item.observed
                || self.is_ignored(position as usize)
        };
        self.reads.iter().all(is_as_read) || Canary::ReadValidationSkipped.sings()
    }

    /// Whether validation skips a record that came in by a restoration, and lies before what was
    /// validated already: a flaw.
    #[inline(always)]
    fn is_ignored(&self, position: usize) -> bool {
        Canary::EarlierElementIgnored.sings() && {
            let item = &self.sets.items[position];
            let rank = rank(self.factors.validation_order, item);
            let is_before = rank < self.highest || self.has_linked;
            let is_written = self.sets.written.get(item.record).is_some();
            self.round > 0 && is_before && !is_written
        }
    }

    /// Locks the tids of the write set, whose locks the attempt has. Other attempts change them
    /// only if they locked one before they saw that, and give it back.
    fn lock_own_tids(&mut self) {
        for write in &self.sets.writes {
            let observed = self.sets.items[write.item as usize].observed;
            let locked = observed | Tid::LOCKED;
            let word = write.record.tid();
            match write.kind {
                WriteKind::Lost => {}
                WriteKind::Insert | WriteKind::Forget => word.store(locked, Ordering::Relaxed),
                WriteKind::Update | WriteKind::Delete | WriteKind::Share => {
                    let mut spinner = Spinner::default();
                    // Relaxed: the lock has made visible what was installed before, and the fences
                    // that follow order the rest.
                    while let Err(now) = word.compare_exchange(
                        observed,
                        locked,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    ) {
                        let now = now & !Tid::LOCKED;
                        assert_eq!(now, observed, "a record changed under its lock");
                        spinner.spin();
                    }
                }
            }
        }
    }

    fn compare_nodes(&mut self) -> Result<(), AbortCause> {
        match self.sets.nodes.is_current() {
            true => Ok(()),
            false => {
                self.asks = true;
                Err(AbortCause::Phantom)
            }
        }
    }

    /// Locks what was written, and what was read if reads are locked, in the validation order;
    /// compares each record that was read with what was observed.
    ///
    /// # Errors
    /// [`AbortCause::ReadValidation`] when a value differs: [`Healing::asks`] is set.
    /// [`AbortCause::WriteLock`] when a lock is not to be had while others can find the attempt's
    /// new rows, [`AbortCause::ReadLock`] when another attempt is changing a record for too long.
    pub(super) fn lock(&mut self) -> Result<(), AbortCause> {
        self.sort();
        self.lock_from(0)
    }

    /// As [`Healing::lock`], where what comes before a position in the order is locked and valid.
    fn lock_from(&mut self, first: usize) -> Result<(), AbortCause> {
        for at in first..self.order.len() {
            let (rank, position) = self.order[at];
            let record = self.sets.items[position as usize].record;
            if !self.sets.protocol.locks.holds(record) {
                self.lock_record(position, rank, at + 1)?;
            }
            if !self.is_valid(position as usize)? {
                self.asks = true;
                (self.failed, self.left_at) = (Some(position), Some(at));
                return Err(AbortCause::ReadValidation);
            }
        }
        for at in 0..self.reads.len() {
            let position = self.reads[at];
            if self.is_ignored(position as usize) || self.is_valid(position as usize)? {
                continue;
            }
            let item = &self.sets.items[position as usize];
            let rank = rank(self.factors.validation_order, item);
            // So that it is as the next run finds it; not at once, as others would wait for all of
            // that run.
            if self.round >= TRIES_BEFORE_LOCKING {
                self.lock_record(position, rank, self.order.len())?;
            }
            self.failed = Some(position);
            self.asks = true;
            return Err(AbortCause::ReadValidation);
        }
        Ok(())
    }

    /// Sorts out which records will be locked, in which order, and lets go of those that only a
    /// former run of the program has met.
    fn sort(&mut self) {
        self.order.clear();
        self.reads.clear();
        self.left_at = None;
        self.highest = 0;
        let order = self.factors.validation_order;
        for (item, position) in self.sets.items.iter().zip(0..) {
            if item.note.is_void() {
                continue;
            }
            let is_held = self.sets.protocol.locks.holds(item.record);
            let is_written = self.sets.written.get(item.record).is_some();
            if !is_held && !is_written && !self.locks_reads {
                self.reads.push(position);
                continue;
            }
            // The attempt that has put a record into the indexes may bury it again, even if another
            // one has locked it, and a third one may get its key then.
            if !is_written && Tid(item.observed).is_absent() {
                self.reads.push(position);
            }
            let rank = rank(order, item);
            self.order.push((rank, position));
            if is_held && !self.is_unknown(item.record) {
                self.highest = self.highest.max(rank);
            }
        }
        self.order.sort_unstable();
        if self.round > 0 {
            self.met.clear();
            for &(_, position) in &self.order {
                let record = self.sets.items[position as usize].record;
                if !self.met.replace(record, position) {
                    self.met.insert(record, position);
                }
            }
            let (met, late) = (&self.met, &self.late);
            let keeps = |record| met.get(record).is_some() || late.is_spare(record);
            self.sets.protocol.locks.release_unless(keeps);
        }
    }

    /// Whether no other attempt can know a record, so that it does not matter in which order it is
    /// locked.
    fn is_unknown(&self, record: RecordRef) -> bool {
        self.late.is_on && {
            let write = self.sets.written.get(record);
            write.is_some_and(|write| self.sets.writes[write as usize].inserts())
        }
    }

    /// Locks the record of an item. A lock above all that are held is waited for. For one below it
    /// is tried for a while; then the attempt lets go of what lies above, which it locks and
    /// compares once more, and waits too. Those from `rest` on in the order are locked next.
    fn lock_record(&mut self, position: u32, rank: u64, rest: usize) -> Result<(), AbortCause> {
        let record = self.sets.items[position as usize].record;
        let locks = &mut self.sets.protocol.locks;
        if rank < self.highest || self.has_linked {
            if spin::until(TRIES_BELOW, || locks.try_hold(record)) {
                return Ok(());
            }
            if self.has_linked {
                // Others may wait for the new rows. The run that follows takes them back and tries
                // again.
                self.blames = self.sets.items[position as usize].note.op();
                self.asks = true;
                return Err(AbortCause::WriteLock);
            }
            self.let_go_above(rank);
        }
        // Its holder waits for greater ranks only, and not for this attempt.
        let Healing { sets, order, .. } = self;
        let epochs = sets.participant.epochs();
        let (items, locks) = (&sets.items, &mut sets.protocol.locks);
        let meanwhile = || {
            let next = order[rest..].iter().take(OWNED_AHEAD);
            next.for_each(|(_, position)| own_line(items[*position as usize].record));
        };
        if !locks.hold(record, meanwhile, || epochs.is_broken()) {
            return Err(AbortCause::LockTimeout);
        }
        self.highest = rank;
        Ok(())
    }

    #[cold]
    fn let_go_above(&mut self, rank: u64) {
        for at in 0..self.order.len() {
            let (other, position) = self.order[at];
            let record = self.sets.items[position as usize].record;
            if other > rank && !self.is_unknown(record) {
                self.sets.protocol.locks.release(record);
            }
        }
        self.counters.let_go += 1;
        point("healing.let_go");
    }

    /// Whether a record is to the attempt as it was. If its tid is another all the same, the
    /// attempt relies on that one from now on.
    ///
    /// # Errors
    /// [`AbortCause::ReadLock`] when another attempt is changing it for too long.
    #[inline]
    fn is_valid(&mut self, position: usize) -> Result<bool, AbortCause> {
        if Canary::ReadValidationSkipped.sings() {
            return Ok(true);
        }
        let item = &self.sets.items[position];
        // Sequentially consistent, after a lock was taken: see `undisturbed.rs`. Else an acquire
        // would do, as in `stable_tid`.
        let now = Tid(item.record.tid().load(Ordering::SeqCst));
        if now.0 == item.observed {
            return Ok(!item.note.is_stale());
        }
        let now = installed_tid(item.record)?;
        Ok(self.is_false_alarm(position, now))
    }

    /// Whether another tid does no harm: the columns that were read are as they were (§4.5).
    #[inline(never)]
    fn is_false_alarm(&mut self, position: usize, now: Tid) -> bool {
        let Item {
            record,
            observed,
            note: copied,
            ..
        } = self.sets.items[position];
        let is_moved = || {
            let write = self.sets.written.get(record);
            write.is_some_and(|write| self.sets.writes[write as usize].moves())
        };
        if Tid(observed).is_absent()
            || now.is_absent()
            || now.is_locked()
            || !self.copies.cover(&copied, copied.table().row(record))
            || is_moved()
        {
            return false;
        }
        // Acquire: as in `copy`, what was compared is of the version seen before and after.
        fence(Ordering::Acquire);
        if record.tid().load(Ordering::Relaxed) != now.0 {
            return false;
        }
        self.sets.items[position].observed = now.0;
        let recorder = self.sets.recorder();
        recorder.read_moves(record, Tid(observed), now);
        true
    }

    /// Whether an attempt that raised has run on what is there, all of it at one moment. `None`: a
    /// restoration finds out.
    pub(super) fn decide_raise(&mut self) -> Option<Result<(), AbortCause>> {
        let is_welcome = self.late.is_empty() || self.are_late_welcome();
        // Updates that are left need the locks of their records.
        let is_done = !self.sets.has_deferred_updates();
        if is_welcome && is_done && self.sets.is_unchanged().is_ok() {
            return Some(Ok(()));
        }
        if is_welcome && is_done && self.round < TRIES_BEFORE_LOCKING {
            return None;
        }
        self.sets.phases.enter(Phase::Lock);
        self.locks_reads = true;
        let locked = self.lock().and_then(|()| {
            // As before a commit: an attempt that has filled a gap is seen, or sees the locks.
            fence(Ordering::SeqCst);
            self.compare_nodes()
        });
        match locked {
            Err(_) if std::mem::take(&mut self.asks) && self.round < ROUNDS_MAX => None,
            // Not of what was read too early do the rows have keys that are taken.
            Ok(()) if !is_welcome => {
                self.late.is_on = false;
                None
            }
            Ok(()) => {
                // One that comes before in the program may raise itself: its error is the first
                // then. The tids stay as they are, as nothing will be installed.
                self.sets.raise_of_deferred_updates();
                Some(Ok(()))
            }
            failed => Some(failed),
        }
    }
}
