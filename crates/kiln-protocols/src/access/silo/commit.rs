//! The commit protocol: lock, validate, install; and its counterpart, undo.

use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::spin;
use kiln_procedure::AbortCause;
use kiln_storage::layout::Blob;
use kiln_storage::record::Tid;
use kiln_storage::schema::ColumnSet;

use super::{LOCK_SPINS_MAX, NO_WRITE, Silo, WriteKind};
use crate::canary::Canary;
use crate::shared::links;

/// Freed objects per transaction at most: garbage leaves as fast as it comes, in small portions.
const COLLECT_MAX: usize = 8;

impl Silo {
    /// Phase 1: locks the write set. On failure, what was locked is released.
    #[inline]
    pub(super) fn lock(&mut self) -> Result<(), AbortCause> {
        if Canary::InstalledWithoutLocks.sings() {
            return Ok(());
        }
        for position in 0..self.writes.len() {
            let write = &self.writes[position];
            let observed = self.items[write.item as usize].observed;
            let word = write.record.tid();
            let mut seen = observed;
            // Acquire: what the previous holder installed is visible before this one overwrites.
            let try_lock = || {
                let locked = word.compare_exchange(
                    observed,
                    observed | Tid::LOCKED,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                seen = locked.err().unwrap_or(observed);
                // Only an aborting holder leaves the tid as it was; another tid is final.
                seen != observed | Tid::LOCKED
            };
            spin::until(LOCK_SPINS_MAX, try_lock);
            if Canary::LockedAtAnyVersion.sings()
                && Tid(seen).0 == Tid(seen).version()
                && word
                    .compare_exchange(
                        seen,
                        seen | Tid::LOCKED,
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                continue;
            }
            if seen != observed {
                self.unlock(position);
                return Err(match Tid(seen).is_locked() {
                    true => AbortCause::WriteLock,
                    false => AbortCause::ReadValidation,
                });
            }
        }
        Ok(())
    }

    /// Releases the first `count` locks without a change.
    fn unlock(&mut self, count: usize) {
        for write in &self.writes[..count] {
            let observed = self.items[write.item as usize].observed;
            write.record.tid().store(observed, Ordering::Release);
        }
    }

    /// Phase 2: checks that all that was read is as it was, and chooses the tid. On failure the
    /// locks are released.
    #[inline]
    pub(super) fn validate(&mut self) -> Result<Tid, AbortCause> {
        // Sequentially consistent: every lock (and every index insertion) of this attempt is
        // visible before it looks at what others did. Of two attempts that each read what the
        // other writes, one sees the other. It also orders the reading of the epoch.
        fence(Ordering::SeqCst);
        let epoch = self.participant.epochs().current();
        let mut newest = self.last;
        for item in &self.items {
            newest = newest.max(Tid(Tid(item.observed).version()));
            // Acquire: the loads that are being validated are not moved behind this one.
            let now = item.record.tid().load(Ordering::Acquire);
            if now == item.observed {
                continue;
            }
            if Canary::ReadValidationSkipped.sings() {
                continue;
            }
            let own = (now == item.observed | Tid::LOCKED || Canary::LockedAtAnyVersion.sings())
                && (item.write != NO_WRITE || self.written.get(item.record).is_some());
            if !own {
                self.unlock(self.writes.len());
                return Err(AbortCause::ReadValidation);
            }
        }
        if !self.nodes.is_current() {
            self.unlock(self.writes.len());
            return Err(AbortCause::Phantom);
        }
        if Canary::VersionReused.sings() {
            return Ok(newest);
        }
        Ok(newest.next_in(epoch))
    }

    /// Whether all that was read is as it was; nothing is locked.
    pub(super) fn validate_reads(&mut self) -> Result<(), AbortCause> {
        fence(Ordering::SeqCst);
        let unchanged =
            |item: &super::Item| item.record.tid().load(Ordering::Acquire) == item.observed;
        if !self.items.iter().all(unchanged) {
            return Err(AbortCause::ReadValidation);
        }
        if !self.nodes.is_current() {
            return Err(AbortCause::Phantom);
        }
        Ok(())
    }

    /// Phase 3: makes the writes visible.
    #[inline]
    pub(super) fn install(&mut self, tid: Tid) {
        self.last = tid;
        if self.recorder.log().is_some() {
            let records = self.writes.iter().map(|write| write.record);
            self.recorder.install(records, tid);
        }
        if !self.changes.is_empty() {
            for write in &self.writes {
                if matches!(write.kind, WriteKind::Delete | WriteKind::Forget) {
                    self.changes.forget(write.record);
                }
            }
            self.changes.commit(&self.participant, &mut self.recorder);
        }
        // Release pairs with the acquire fence of readers: whoever sees a word stored below finds
        // the lock bit set above, or a newer tid.
        fence(Ordering::Release);
        let mut removals = false;
        for write in &self.writes {
            let (table, record) = (write.table(), write.record);
            match write.kind {
                WriteKind::Update | WriteKind::Insert => {
                    if !write.columns.is_empty() {
                        let (layout, row) = (table.layout(), table.row(record));
                        for blob in layout.blobs(write.columns, row) {
                            links::retire_blob(blob, &self.participant);
                        }
                        layout.copy(write.columns, write.image(), row);
                    }
                    // Release: readers that see this tid see the words installed before.
                    record.tid().store(tid.0, Ordering::Release);
                }
                WriteKind::Delete | WriteKind::Forget => {
                    removals = true;
                    let dead = tid.0 | Tid::ABSENT | Tid::DEAD;
                    record.tid().store(dead, Ordering::Release);
                }
            }
        }
        if removals {
            self.remove_deleted();
        }
    }

    /// Takes deleted records out of the indexes and gives them back.
    fn remove_deleted(&mut self) {
        for write in &self.writes {
            if matches!(write.kind, WriteKind::Delete | WriteKind::Forget) {
                let table = write.table();
                links::unlink(
                    table,
                    write.record,
                    &mut self.heap,
                    &self.participant,
                    &mut self.recorder,
                );
                links::retire(table, write.record, &self.participant);
                free_image_blobs(write);
            }
        }
        self.heap.clear();
    }

    /// Takes everything back; no lock is held.
    #[cold]
    pub(super) fn undo(&mut self) {
        self.changes
            .roll_back(&self.participant, &mut self.recorder);
        for write in &self.writes {
            free_image_blobs(write);
            if matches!(write.kind, WriteKind::Insert | WriteKind::Forget) {
                // Whoever observed the absent record fails now, and looks for its successor.
                links::bury(write.record);
                let table = write.table();
                links::unlink(
                    table,
                    write.record,
                    &mut self.heap,
                    &self.participant,
                    &mut self.recorder,
                );
                links::retire(table, write.record, &self.participant);
            }
        }
        self.heap.clear();
    }

    /// Forgets the attempt and leaves the epoch.
    #[inline]
    pub(super) fn finish(&mut self) {
        self.items.clear();
        self.writes.clear();
        self.written.clear();
        self.nodes.clear();
        self.scratch.clear();
        for record in self.claimed.drain(..) {
            // Release pairs with the acquire in `claim`: the moving entries are gone.
            record.aux().store(0, Ordering::Release);
        }
        self.participant.leave();
        if self.participant.waiting() > 0 {
            self.participant.collect(COLLECT_MAX);
        }
    }
}

/// Frees the blobs of an image that is not installed.
fn free_image_blobs(write: &super::Write) {
    if write.columns == ColumnSet::EMPTY {
        return;
    }
    for blob in write.table().layout().blobs(write.columns, write.image()) {
        // SAFETY: an image's blob is the attempt's own until it is installed.
        unsafe { Blob::free(blob) };
    }
}
