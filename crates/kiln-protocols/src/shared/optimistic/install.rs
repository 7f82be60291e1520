//! The end of an attempt: its writes become visible, or everything is taken back.

use kiln_platform::atomic::{Ordering, fence};
use kiln_storage::journal::{Change, ChangeKind};
use kiln_storage::layout::Blob;
use kiln_storage::record::Tid;
use kiln_storage::schema::ColumnSet;

use super::late;
use super::split;
use super::{CLAIMED, Commit, Optimistic, Write, WriteKind};
use crate::shared::links;
use crate::shared::report::{CommitWindow, all_columns};

impl<C: Commit> Optimistic<C> {
    /// Makes the writes visible with `tid`, which is above the versions that they replace. The tids
    /// of all written records are locked by this attempt, and are not afterwards.
    #[inline]
    pub fn install(&mut self, tid: Tid) {
        // Before the first entry moves and the first tid is stored: what others see is of its log
        // epoch.
        let mut window = CommitWindow::none();
        if self.reporter.is_asked(&mut self.recorder) && !self.writes.is_empty() {
            window = self.reporter.open();
            self.report(&window, tid);
        }
        if !self.changes.is_empty() {
            for write in &self.writes {
                if write.removes() {
                    self.changes.forget(write.record);
                }
            }
            self.changes.commit(&self.participant, &mut self.recorder);
        }
        // Release pairs with the acquire fence of readers: a reader that sees a word stored below
        // finds the lock bit set above, or a newer tid.
        fence(Ordering::Release);
        let mut removals = false;
        for write in &self.writes {
            let (table, record) = (write.table(), write.record);
            match write.kind {
                WriteKind::Update | WriteKind::Insert | WriteKind::Share => {
                    if !write.columns.is_empty() {
                        let (layout, row) = (table.layout(), table.row(record));
                        for blob in layout.blobs(write.columns, row) {
                            links::retire_blob(blob, &self.participant);
                        }
                        layout.copy(write.columns, write.image(), row);
                    }
                    if write.locks_split {
                        split::advance::<C>(record, tid);
                    } else {
                        let former = Tid(self.items[write.item as usize].observed);
                        self.protocol.replace(record, former, tid);
                    }
                    // Release: readers that see this tid see the words installed before.
                    record.tid().store(tid.0, Ordering::Release);
                    self.protocol.installed(record);
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
        drop(window);
        self.reporter.send_late(tid);
    }

    /// Reports what is about to be installed.
    #[inline(never)]
    fn report(&mut self, window: &CommitWindow, tid: Tid) {
        let Optimistic {
            reporter,
            recorder,
            changes,
            writes,
            ..
        } = self;
        let order = (tid, C::FOLLOWS);
        for write in writes.iter() {
            // Locked, and so as it was observed.
            let former = Tid(write.record.tid().load(Ordering::Relaxed)).version();
            // SAFETY: the attempt has locked the record, whose table the engine keeps, until it is
            // installed.
            let change = |kind, columns| unsafe {
                Change::new(write.table(), write.record, kind, columns, former)
            };
            let imaged = |change: Change| match write.columns.is_empty() {
                true => change,
                // SAFETY: as above; the image is the attempt's own until it ends.
                false => unsafe { change.imaged(write.columns, write.image()) },
            };
            // SAFETY: the report is sent below.
            unsafe {
                match write.kind {
                    WriteKind::Update => {
                        let change = || imaged(change(ChangeKind::Update, write.columns));
                        reporter.add_update(change, changes, order);
                    }
                    WriteKind::Insert | WriteKind::Share => {
                        let columns = all_columns(write.table());
                        reporter.add(imaged(change(ChangeKind::Insert, columns)));
                    }
                    // The row's key is the former one: the row was not written yet.
                    WriteKind::Delete => reporter.add_deletion(
                        change(ChangeKind::Delete, ColumnSet::EMPTY),
                        None,
                        order,
                    ),
                    WriteKind::Forget => reporter.add_void(write.record, former),
                    WriteKind::Lost => {}
                }
            }
        }
        reporter.send(window, recorder, tid);
    }

    /// `tid`, or a greater one that the journal's order of the keys needs that the attempt adds.
    /// What it writes is locked.
    #[inline(always)]
    pub fn above_deletions(&mut self, tid: Tid) -> Tid {
        match self.reporter.is_attached() && !C::FOLLOWS {
            true => self.find_above_deletions(tid),
            false => tid,
        }
    }

    #[inline(never)]
    fn find_above_deletions(&mut self, tid: Tid) -> Tid {
        let Optimistic {
            reporter,
            changes,
            writes,
            ..
        } = self;
        let is_insert = |write: &&Write| matches!(write.kind, WriteKind::Insert | WriteKind::Share);
        let inserted = writes.iter().filter(is_insert);
        let inserted = inserted.map(Write::table);
        reporter.above_deletions(inserted, changes, tid)
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
                if !self.early_aborts
                    && !late::bury(write.record, self.items[write.item as usize].observed)
                {
                    // Another attempt has committed its row there.
                    continue;
                }
                // An attempt that observed the absent record fails now, and looks for its
                // successor.
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

    /// Takes everything back that others can see, as
    /// [`Access::roll_back`](kiln_procedure::Access::roll_back) does, and forgets it; the attempt
    /// goes on, in its epoch and with what its protocol holds.
    pub fn take_back(&mut self) {
        self.undo();
        self.forget();
    }

    /// Forgets what the attempt has done; its writes are installed or undone.
    #[inline(always)]
    fn forget(&mut self) {
        if !self.early_aborts {
            self.withdraw_offers();
        }
        self.items.clear();
        self.writes.clear();
        self.written.clear();
        self.nodes.clear();
        self.scratch.clear();
        self.updates.clear();
        self.is_doomed = false;
        for record in self.claimed.iter() {
            // Release pairs with the acquire in `claim`: the moving entries are gone.
            record.aux().fetch_and(!CLAIMED, Ordering::Release);
        }
        self.claimed.clear();
        self.changes.end(&self.participant);
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
