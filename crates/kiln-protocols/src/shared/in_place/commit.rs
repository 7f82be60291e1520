//! Making the changes final, and reporting them.

use kiln_platform::atomic::Ordering;
use kiln_storage::journal::{Change as Reported, ChangeKind};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnSet;
use kiln_storage::table::Table;

use super::{Change, Entry, InPlace, Row, is_absent};
use crate::shared::links;
use crate::shared::report::{CommitWindow, all_columns};

impl InPlace {
    /// Makes the changes final with a tid above `newest` and all that is written, in the current
    /// epoch. The caller still holds its records.
    #[inline]
    pub fn commit(&mut self, newest: Tid) {
        self.commit_leaving(newest, |_, _, _| false);
    }

    /// As [`InPlace::commit`]; `leaves` says of a record that was updated whether another function
    /// stores the tid before the record is let go.
    #[inline(always)]
    pub fn commit_leaving(
        &mut self,
        newest: Tid,
        mut leaves: impl FnMut(&Table, RecordRef, Tid) -> bool,
    ) {
        if self.log.is_empty() {
            return;
        }
        let epoch = self.participant.epochs().current();
        // New records too: their cells may have had other records before.
        let version = |entry: &Entry| Tid(entry.record.tid().load(Ordering::Relaxed)).version();
        let written = self.log.iter().map(version).max().unwrap_or(0);
        let tid = newest.max(self.last).max(Tid(written)).next_in(epoch);
        let tid = match self.reporter.is_attached() {
            true => self.above_deletions(tid),
            false => tid,
        };
        self.last = tid;
        // Before the first entry moves and the first tid is stored, while the caller holds its
        // records: what others see is of its log epoch.
        let mut window = CommitWindow::none();
        if self.reporter.is_asked(&mut self.recorder) {
            window = self.reporter.open();
            self.report(&window, tid);
        }
        if !self.changes.is_empty() {
            for record in self.deleted.iter().filter(|record| is_absent(*record)) {
                self.changes.forget(record);
            }
            self.changes.commit(&self.participant, &mut self.recorder);
        }
        let mut removals = false;
        for entry in &self.log {
            match entry.change {
                Change::Update { columns, image } => {
                    if columns.intersects(entry.table().layout().spilling()) {
                        // SAFETY: the scratch is cleared only when the attempt has ended.
                        let image = unsafe { image.words() };
                        for blob in entry.table().layout().blobs(columns, image) {
                            links::retire_blob(blob, &self.participant);
                        }
                    }
                }
                Change::Delete => removals = true,
                Change::Insert | Change::Revive => {}
            }
            if matches!(entry.change, Change::Update { .. })
                && leaves(entry.table(), entry.record, tid)
            {
                continue;
            }
            let absent = entry.record.tid().load(Ordering::Relaxed) & Tid::ABSENT;
            // Release: a transaction that reads this tid sees the row that it belongs to.
            entry.record.tid().store(tid.0 | absent, Ordering::Release);
        }
        if removals {
            self.remove_deleted();
        }
        drop(window);
    }

    /// With a flaw on purpose: reports the commit when its records are others' already.
    #[inline(always)]
    pub fn report_late(&mut self) {
        self.reporter.send_late(self.last);
    }

    #[inline(never)]
    fn above_deletions(&mut self, tid: Tid) -> Tid {
        let entries = self.log.iter();
        let inserted = entries.filter(|entry| matches!(entry.change, Change::Insert));
        let inserted = inserted.map(Entry::table);
        self.reporter.above_deletions(inserted, &self.changes, tid)
    }

    /// Reports what is about to become final.
    #[inline(never)]
    fn report(&mut self, window: &CommitWindow, tid: Tid) {
        let InPlace {
            reporter,
            recorder,
            log,
            changes,
            rows,
            named,
            ..
        } = self;
        for entry in log.iter() {
            let columns = match entry.change {
                Change::Update { columns, .. } => columns,
                Change::Insert | Change::Delete | Change::Revive => ColumnSet::EMPTY,
            };
            match named.get(entry.record) {
                Some(row) => {
                    let row = &mut rows[row as usize];
                    row.columns = row.columns.union(columns);
                }
                None => {
                    named.insert(entry.record, rows.len() as u32);
                    rows.push(Row {
                        record: entry.record,
                        table: entry.table,
                        is_new: matches!(entry.change, Change::Insert),
                        columns,
                    });
                }
            }
        }
        named.clear();
        let order = (tid, false);
        for row in rows.drain(..) {
            // SAFETY: the engine keeps a table while a transaction that uses it runs.
            let table = unsafe { &*row.table };
            let former = Tid(row.record.tid().load(Ordering::Relaxed));
            // SAFETY: the caller holds the record, whose table is kept.
            let change = |kind, columns| unsafe {
                Reported::new(table, row.record, kind, columns, former.version())
            };
            // SAFETY: the report is sent below.
            unsafe {
                match (row.is_new, former.is_absent()) {
                    (true, true) => reporter.add_void(row.record, former.version()),
                    (true, false) => {
                        reporter.add(change(ChangeKind::Insert, all_columns(table)));
                    }
                    (false, true) => {
                        // The row may have had another key until it was deleted.
                        let key = changes.former_first_key(row.record);
                        let change = change(ChangeKind::Delete, ColumnSet::EMPTY);
                        reporter.add_deletion(change, key, order);
                    }
                    (false, false) => {
                        let change = || change(ChangeKind::Update, row.columns);
                        reporter.add_update(change, changes, order);
                    }
                }
            }
        }
        reporter.send(window, recorder, tid);
    }

    fn remove_deleted(&mut self) {
        for entry in &self.log {
            let tid = Tid(entry.record.tid().load(Ordering::Relaxed));
            // A record deleted twice in one attempt is removed once.
            if tid.is_absent() && !tid.is_dead() {
                entry
                    .record
                    .tid()
                    .store(tid.0 | Tid::DEAD, Ordering::Release);
                links::unlink(
                    entry.table(),
                    entry.record,
                    &mut self.heap,
                    &self.participant,
                    &mut self.recorder,
                );
                links::retire(entry.table(), entry.record, &self.participant);
            }
        }
        self.heap.clear();
    }
}
