//! The end of an attempt: its writes become visible, or everything is taken back.

use kiln_platform::atomic::{Ordering, fence};
use kiln_storage::layout::Blob;
use kiln_storage::record::Tid;
use kiln_storage::schema::ColumnSet;

use super::apart;
use super::{CLAIMED, Commit, Optimistic, Write, WriteKind};
use crate::shared::links;

impl<C: Commit> Optimistic<C> {
    /// Makes the writes visible with `tid`, which is above the versions that they replace. The tids of
    /// all written records are locked by this attempt, and are not afterwards.
    #[inline]
    pub fn install(&mut self, tid: Tid) {
        if self.recorder.log().is_some() {
            let kept = |write: &&Write| write.kind != WriteKind::Lost;
            let records = self.writes.iter().filter(kept).map(|write| write.record);
            self.recorder.install(records, tid);
        }
        if !self.changes.is_empty() {
            for write in &self.writes {
                if write.removes() {
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
                    if write.locks_apart {
                        apart::advance::<C>(record, tid);
                    } else {
                        let former = Tid(self.items[write.item as usize].observed);
                        self.protocol.replace(record, former, tid);
                    }
                    // Release: readers that see this tid see the words installed before.
                    record.tid().store(tid.0, Ordering::Release);
                }
                WriteKind::Delete | WriteKind::Forget => {
                    removals = true;
                    let dead = tid.0 | Tid::ABSENT | Tid::DEAD;
                    record.tid().store(dead, Ordering::Release);
                }
                WriteKind::Lost => free_image_blobs(write),
            }
        }
        if removals {
            self.remove_deleted();
        }
    }

    /// Takes deleted records out of the indexes and gives them back.
    fn remove_deleted(&mut self) {
        for write in &self.writes {
            if write.removes() {
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

    /// Takes everything back that others can see, as [`Access::roll_back`](kiln_procedure::Access::roll_back)
    /// does, and forgets it; the attempt goes on, in its epoch and with what its protocol holds.
    pub fn take_back(&mut self) {
        self.undo();
        self.forget();
    }

    /// Forgets what the attempt has done; its writes are installed or undone.
    #[inline(always)]
    fn forget(&mut self) {
        self.items.clear();
        self.writes.clear();
        self.written.clear();
        self.nodes.clear();
        self.scratch.clear();
        self.updates.clear();
        for record in self.claimed.drain(..) {
            // Release pairs with the acquire in `claim`: the moving entries are gone.
            record.aux().fetch_and(!CLAIMED, Ordering::Release);
        }
    }

    /// Forgets the attempt and leaves the epoch. Its writes are installed or undone.
    #[inline]
    pub fn finish(&mut self) {
        self.forget();
        self.protocol.end();
        self.participant.leave();
    }
}

/// Frees the blobs of an image that is not installed.
fn free_image_blobs(write: &Write) {
    if write.columns == ColumnSet::EMPTY {
        return;
    }
    for blob in write.table().layout().blobs(write.columns, write.image()) {
        // SAFETY: an image's blob is the attempt's own until it is installed.
        unsafe { Blob::free(blob) };
    }
}
