//! The commit protocol: take a timestamp, insert pending versions, validate, decide; and undo.

use kiln_history::WriteKind as Written;
use kiln_platform::atomic::Ordering;
use kiln_platform::spin::{self, Spinner};
use kiln_procedure::AbortCause;
use kiln_storage::journal::{Change, ChangeKind};
use kiln_storage::layout::Blob;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnSet;

use super::execute::take_node;
use super::version::{CLOSED, Head, LATCHED, NodeRef, WAITING, head, read_up_to, status};
use super::{Item, Mvcc, SPINS_MAX, Write, WriteKind};
use crate::canary::Canary;
use crate::shared::links;
use crate::shared::recorder::object;
use crate::shared::report::{CommitWindow, all_columns};

impl Mvcc {
    /// Phase 1: inserts a pending version over each version that the attempt has written over,
    /// which no other attempt can then. What was inserted is noted, for [`Mvcc::withdraw`].
    #[inline]
    pub(super) fn insert_versions(&mut self, timestamp: u64) -> Result<(), AbortCause> {
        for position in 0..self.writes.len() {
            let write = &self.writes[position];
            let in_place = match write.kind {
                WriteKind::Forget => true,
                WriteKind::Insert => self.predecessors(write.record).next().is_none(),
                _ => false,
            };
            match in_place {
                true => self.claim(position, timestamp)?,
                false => self.publish(position, timestamp)?,
            }
        }
        Ok(())
    }

    /// Claims a record that is new: its first version will be the inlined one.
    fn claim(&mut self, position: usize, timestamp: u64) -> Result<(), AbortCause> {
        let write = &mut self.writes[position];
        let record = write.record;
        let version = self.items[write.item as usize].version;
        if version >= timestamp {
            return Err(self.catch_up(version));
        }
        // Sequentially consistent, and then the look at `aux`: an attempt that validates that the
        // record is absent raises `aux` and then looks at the tid. One of the two sees the other.
        record
            .tid()
            .store(version | Tid::ABSENT | Tid::LOCKED, Ordering::SeqCst);
        write.published = true;
        match head(record.aux().load(Ordering::SeqCst)) {
            Head::Row(rts) if rts <= timestamp => Ok(()),
            Head::Row(_) => Err(AbortCause::WriteLock),
            Head::Chain(_) => unreachable!("nobody else writes a record that is not committed"),
        }
    }

    /// Links the pending version of a write in front of the version observed, or of the newest one
    /// where nothing was observed.
    fn publish(&mut self, position: usize, timestamp: u64) -> Result<(), AbortCause> {
        let write = &self.writes[position];
        let (record, kind) = (write.record, write.kind);
        let item = write.item;
        let observed = self.items[item as usize].version;
        let relies = &self.items[item as usize];
        let any_version = kind == WriteKind::Update && (relies.is_unobserved || relies.is_split());
        if observed >= timestamp {
            return Err(self.catch_up(observed));
        }
        let node = match write.node {
            Some(node) => node,
            None => {
                let links = self.predecessors(record).count();
                let node = take_node(&self.shared.pools, 2 * links, &self.participant)
                    .map_err(|_| AbortCause::WriteLock)?;
                if kind == WriteKind::Insert {
                    node.set_links(self.predecessors(record), links);
                }
                node
            }
        };
        let write = &mut self.writes[position];
        write.node = Some(node);
        node.set_wts(timestamp);
        node.set_columns(match kind {
            // The image has what is pending before others may read it.
            WriteKind::Update => write.columns.union(write.pending),
            _ => Default::default(),
        });
        node.set_status(status::PENDING | write.marks(self.splits));
        let mut spinner = Spinner::default();
        let mut waited = 0;
        loop {
            let aux = record.aux().load(Ordering::SeqCst);
            if aux & LATCHED != 0 {
                spinner.spin();
                continue;
            }
            let (below, replaced) = match head(aux) {
                Head::Row(rts) => {
                    let tid = Tid(record.tid().load(Ordering::SeqCst));
                    let is_replaced = match any_version {
                        true => !tid.is_absent() && tid.version() < timestamp,
                        false => tid.version() == observed,
                    };
                    if !is_replaced || tid.is_dead() || tid.is_locked() {
                        return Err(AbortCause::ReadValidation);
                    }
                    if rts > timestamp && !Canary::ReadTimestampIgnored.sings() {
                        return Err(AbortCause::WriteLock);
                    }
                    node.set_next(None);
                    node.read_until().store(rts, Ordering::Relaxed);
                    (None, tid.version())
                }
                Head::Chain(newest) => {
                    // Every write here relies on the version that it replaces: it keeps the columns
                    // that it does not write. So there is no place for it below a newer one.
                    let state = newest.status() & status::STATE;
                    if state == status::ABORTED {
                        spinner.spin();
                        continue;
                    }
                    if state == status::PENDING {
                        // An attempt that waits has the greater timestamp.
                        if any_version && newest.wts() < timestamp && waited < SPINS_MAX {
                            waited += 1;
                            spin::hint();
                            continue;
                        }
                        return Err(AbortCause::WriteLock);
                    }
                    let is_replaced = match any_version {
                        true => !newest.is_absent() && newest.wts() < timestamp,
                        false => newest.wts() == observed,
                    };
                    if !is_replaced {
                        return Err(AbortCause::ReadValidation);
                    }
                    let rts = newest.read_until().load(Ordering::SeqCst);
                    if rts > timestamp && !Canary::ReadTimestampIgnored.sings() {
                        return Err(AbortCause::WriteLock);
                    }
                    node.set_next(Some(newest));
                    node.read_until().store(rts, Ordering::Relaxed);
                    (Some(newest), newest.wts())
                }
            };
            // Sequentially consistent: the node's content is there for who finds it, and see below.
            let linked = record.aux().compare_exchange(
                aux,
                node.address() | aux & WAITING,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
            if linked.is_err() {
                spinner.spin();
                continue;
            }
            self.writes[position].published = true;
            if any_version {
                let met = &self.items[item as usize];
                if met.is_split() && !self.is_unmarked_down_from(below, met) {
                    return Err(AbortCause::ReadValidation);
                }
                self.rely_on(item, replaced, below);
            }
            if let Some(below) = below {
                // An attempt that validates a read of the version below raises its timestamp and
                // then looks whether it is the newest still: either it finds this node, or this
                // finds its timestamp.
                let rts = below.read_until().load(Ordering::SeqCst);
                if rts > timestamp && !Canary::ReadTimestampIgnored.sings() {
                    return Err(AbortCause::WriteLock);
                }
                node.read_until().fetch_max(rts, Ordering::SeqCst);
            }
            return Ok(());
        }
    }

    /// Phase 2: checks that what was read is what a transaction at `timestamp` has to read, and
    /// keeps it so.
    #[inline]
    pub(super) fn validate(&mut self, timestamp: u64) -> Result<(), AbortCause> {
        for position in 0..self.items.len() {
            let item = &self.items[position];
            if item.version >= timestamp {
                return Err(self.catch_up(item.version));
            }
            let own = self
                .written
                .get(item.record)
                .map(|write| &self.writes[write as usize]);
            let published = own.is_some_and(|write| write.published);
            match published {
                // Its version replaces the one that the first item met.
                true => {
                    let first = own.expect("just found").item as usize;
                    if self.items[first].version != item.version
                        && !(item.is_split()
                            && self.is_unmarked_down_from(own.and_then(Write::below), item))
                    {
                        return Err(AbortCause::ReadValidation);
                    }
                }
                false if self.splits && item.is_split() => self.validate_split(item, timestamp)?,
                false => validate_read(item, timestamp)?,
            }
        }
        // The timestamp's counter hands on what others have inserted before theirs.
        if !self.nodes.is_current() {
            return Err(AbortCause::Phantom);
        }
        Ok(())
    }

    /// Phase 3: decides. Nothing can fail any more.
    #[inline]
    pub(super) fn install(&mut self, timestamp: u64) {
        // Behind the timestamp and the validation, and before the first version is decided: others
        // that meet one wait for its decision, and are of this log epoch or a later one.
        let mut window = CommitWindow::none();
        if self.reporter.is_asked(&mut self.recorder) && !self.writes.is_empty() {
            self.record_removals_and_touches();
            window = self.reporter.open();
            self.report(&window, timestamp);
        }
        if !self.takeovers.is_empty() {
            self.take_over();
        }
        for position in 0..self.writes.len() {
            let write = &self.writes[position];
            let record = write.record;
            match (write.kind, write.node) {
                (WriteKind::Forget, _) => {
                    let dead = timestamp | Tid::ABSENT | Tid::DEAD;
                    record.tid().store(dead, Ordering::Release);
                }
                // Release: a reader that sees the version sees the row.
                (_, None) => record.tid().store(timestamp, Ordering::Release),
                (kind, Some(node)) => {
                    // It keeps its marks.
                    let marks = node.status() & !status::STATE;
                    debug_assert_eq!(marks & !status::SPLIT, kind.node_kind());
                    node.set_status(status::COMMITTED | marks);
                    let table = write.table;
                    self.note_version(record, table, timestamp);
                }
            }
        }
        drop(window);
        self.reporter.send_late(Tid(timestamp));
    }

    /// Records what becomes of the entries of deleted records, and which others lose a key.
    #[cold]
    #[inline(never)]
    fn record_removals_and_touches(&mut self) {
        if self.recorder.log().is_none() {
            return;
        }
        for position in 0..self.writes.len() {
            let write = &self.writes[position];
            let (table, record, kind) = (write.table(), write.record, write.kind);
            if kind == WriteKind::Delete {
                self.record_removals(table, record);
            }
            if kind == WriteKind::Touch
                && let Some(log) = self.recorder.log()
            {
                log.write(object(record), Written::Delete, [].into_iter());
            }
        }
    }

    /// Reports what is about to be decided. A timestamp is above those of the transactions that
    /// deleted a key which this one adds: it was taken after the new record's entry had come, and
    /// theirs before the former entry went.
    #[inline(never)]
    fn report(&mut self, window: &CommitWindow, timestamp: u64) {
        let Mvcc {
            reporter,
            recorder,
            writes,
            items,
            ..
        } = self;
        let tid = Tid(timestamp);
        for write in writes.iter() {
            let (table, record) = (write.table(), write.record);
            let former = items[write.item as usize].version;
            // SAFETY: the record's newest version is the attempt's own pending one, so that no
            // worker folds another one into its row; or the record is new. The engine keeps the
            // table.
            let change =
                |kind, columns| unsafe { Change::new(table, record, kind, columns, former) };
            // SAFETY: the report is sent below; an image is the attempt's own until others see its
            // version decided.
            unsafe {
                match (write.kind, write.node) {
                    (WriteKind::Update, Some(node)) => {
                        let image = node.image(table.layout().words());
                        let change = change(ChangeKind::Update, write.columns);
                        reporter.add(change.imaged(write.columns, image));
                    }
                    (WriteKind::Update, None) => {}
                    (WriteKind::Insert, _) => {
                        reporter.add(change(ChangeKind::Insert, all_columns(table)));
                    }
                    // A record's keys never change, so those in its row are those of all its
                    // versions.
                    (WriteKind::Delete, _) => {
                        let change = change(ChangeKind::Delete, ColumnSet::EMPTY);
                        reporter.add_deletion(change, None, (tid, true));
                    }
                    (WriteKind::Forget | WriteKind::Touch, _) => {
                        reporter.add_void(record, former);
                    }
                }
            }
        }
        reporter.send(window, recorder, tid);
    }

    /// Takes pending versions back, after a failed commit.
    #[cold]
    pub(super) fn withdraw(&mut self) {
        for position in 0..self.writes.len() {
            let write = &mut self.writes[position];
            if !std::mem::take(&mut write.published) {
                continue;
            }
            let record = write.record;
            let in_place = write.kind == WriteKind::Forget
                || (write.kind == WriteKind::Insert && write.node.is_none());
            if in_place {
                let version = self.items[write.item as usize].version;
                let absent = version | Tid::ABSENT;
                record.tid().store(absent, Ordering::Release);
                continue;
            }
            let node = write.node.take().expect("a published write has a node");
            unlink_pending(record, node);
            let table = write.table();
            if write.kind == WriteKind::Update {
                free_image_blobs(table, write, node);
            }
            write.columns = Default::default();
            self.shared.pools.retire(node, &self.participant);
        }
    }

    /// Takes everything back; no version is pending.
    #[cold]
    pub(super) fn undo(&mut self) {
        self.takeovers.clear();
        for position in 0..self.writes.len() {
            let write = &self.writes[position];
            let (table, record, kind) = (write.table(), write.record, write.kind);
            if let Some(node) = write.node {
                free_image_blobs(table, write, node);
                self.shared.pools.give_back(node, &self.participant);
            }
            if matches!(kind, WriteKind::Insert | WriteKind::Forget) {
                self.discard(table, record);
            }
        }
    }

    /// Takes out of the indexes what the attempt inserted and deleted itself.
    #[cold]
    pub(super) fn remove_forgotten(&mut self) {
        for position in 0..self.writes.len() {
            let write = &self.writes[position];
            if write.kind == WriteKind::Forget {
                let (table, record) = (write.table(), write.record);
                links::unlink(
                    table,
                    record,
                    &mut self.heap,
                    &self.participant,
                    &mut self.recorder,
                );
                self.leave_grave(table, record);
            }
        }
    }
}

/// Frees what the image of an update points to; no transaction has read it.
fn free_image_blobs(table: &kiln_storage::table::Table, write: &Write, node: NodeRef) {
    let layout = table.layout();
    for blob in layout.blobs(write.columns, node.image(layout.words())) {
        // SAFETY: an image's blob is the attempt's own until the node is committed.
        unsafe { Blob::free(blob) };
    }
}

/// Takes a pending version out of its chain, of which it is the first. No other worker changes
/// `aux` while it is.
fn unlink_pending(record: RecordRef, node: NodeRef) {
    let kind = node.status() & !status::STATE;
    node.set_status(status::ABORTED | kind);
    // A reader that raises it from now on finds it closed, and looks again when the node is gone.
    let rts = node.read_until().swap(CLOSED, Ordering::SeqCst);
    let waiting = record.aux().load(Ordering::Relaxed) & WAITING;
    let aux = match node.next() {
        Some(below) => {
            below.read_until().fetch_max(rts, Ordering::SeqCst);
            below.address() | waiting
        }
        None => read_up_to(rts),
    };
    record.aux().store(aux, Ordering::SeqCst);
}

/// Makes sure that `item` is what a transaction at `timestamp` reads of its record, now and later.
#[inline]
fn validate_read(item: &Item, timestamp: u64) -> Result<(), AbortCause> {
    let record = item.record;
    let mut result = Err(AbortCause::ReadLock);
    spin::until(SPINS_MAX, || match try_validate(item, record, timestamp) {
        Some(validated) => {
            result = validated;
            true
        }
        None => false,
    });
    result
}

/// One look at a record; `None` when it is worth another.
#[inline]
fn try_validate(item: &Item, record: RecordRef, timestamp: u64) -> Option<Result<(), AbortCause>> {
    let aux = record.aux().load(Ordering::SeqCst);
    let newest = match head(aux) {
        Head::Row(rts) => {
            if rts < timestamp {
                let raised = record.aux().compare_exchange(
                    aux,
                    read_up_to(timestamp),
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                );
                raised.ok()?;
            }
            // After `aux` was raised, or found to be: see `claim`.
            let tid = Tid(record.tid().load(Ordering::SeqCst));
            if tid.version() != item.version || tid.is_dead() {
                return Some(Err(AbortCause::ReadValidation));
            }
            if tid.is_locked() {
                // Another transaction's new record, whose timestamp is not known here.
                return None;
            }
            return Some(Ok(()));
        }
        Head::Chain(newest) => newest,
    };
    let state = newest.status() & status::STATE;
    if state == status::ABORTED || aux & LATCHED != 0 {
        return None;
    }
    if newest.wts() < timestamp && state == status::PENDING {
        // It may yet be what is to be read. An attempt that waits has the greater timestamp, so no
        // circle of attempts waits.
        if Canary::PendingVersionIgnored.sings() {
            return Some(Ok(()));
        }
        return None;
    }
    let is_last = newest.wts() < timestamp;
    // What is to be read: the newest one, or the first below that is older than the timestamp.
    let mut node = Some(newest);
    while let Some(newer) = node
        && newer.wts() >= timestamp
    {
        node = newer.next();
    }
    let version = match node {
        Some(node) => node.wts(),
        None => {
            let tid = Tid(record.tid().load(Ordering::SeqCst));
            if tid.is_locked() {
                return None;
            }
            tid.version()
        }
    };
    if version != item.version {
        return Some(Err(AbortCause::ReadValidation));
    }
    // No version can be inserted below a committed one any more. Otherwise the newest committed
    // version is the one that was read, and is kept so.
    if is_last || state == status::PENDING {
        let read_until = newest.read_until();
        let mut known = read_until.load(Ordering::SeqCst);
        while known < timestamp {
            let raised =
                read_until.compare_exchange(known, timestamp, Ordering::SeqCst, Ordering::SeqCst);
            match raised {
                Ok(_) => break,
                Err(now) => known = now,
            }
        }
        // `CLOSED` is greater than any timestamp: then `aux` is about to change.
        if known == CLOSED || record.aux().load(Ordering::SeqCst) & !WAITING != aux & !WAITING {
            return None;
        }
    }
    Some(Ok(()))
}
