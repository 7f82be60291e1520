//! Reclamation: chains are shortened, deleted records leave the indexes, memory comes back.
//!
//! A worker notes each version that it commits, and looks after the noted ones a few at a time,
//! between its transactions. What it does to a record, it does under the latch in the record's
//! `aux`:
//!
//! - *Folding.* Versions that all transactions are past, up to some node, are copied into the row,
//!   oldest first, and unlinked: the row is the inlined version again, and most records have no
//!   other.
//! - *Pruning.* A version between two others that no transaction wants, because no snapshot lies in
//!   its time, is unlinked; the next newer one gets the columns that only it had. So a chain has
//!   about as many nodes as there are snapshots under way, however long they run.
//! - *Burial.* A deleted record that all transactions are past leaves the indexes.
//!
//! # Why readers need no lock
//!
//! What is copied into the row is at most as old as every snapshot, so a reader finds the columns
//! that change in nodes, or in the row after all of them were copied: nodes are unlinked after
//! that, and readers go from newer to older. The other columns do not change. A writer's reads are
//! not protected like that; it looks at the tid afterwards (`Item::is_row_old_enough`).
//!
//! # Memory
//!
//! Nodes and blobs wait for their epoch, as all memory does. A snapshot that runs for long enters
//! each new epoch as it goes: it finds nodes anew in each operation. But it holds on to the
//! addresses of records, of those it has met and of those in the leaf of an index that it goes
//! through. So a record that left the indexes first waits, in a *grave*, until all snapshots that
//! were there have ended, and then for its epoch.
//!
//! # Idle workers
//!
//! A worker looks after its notes when it runs transactions. The notes of a worker that runs none
//! for some epochs go to the database's ticker ([`look_after_idle`]): else deleted rows would stay
//! in the indexes for as long as the session that deleted them is idle.

use std::collections::VecDeque;

use kiln_platform::atomic::{Ordering, fence};
use kiln_storage::epoch::{Participant, STALE_EPOCHS};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::TableId;
use kiln_storage::slot::Heap;
use kiln_storage::table::{Entry, Table};

use super::clock::Horizon;
use super::notes::{Grave, NOTHING_NOTED, Noted, Notes};
use super::version::{Head, LATCHED, NodeRef, WAITING, head, read_up_to, status};
use super::{Mvcc, MvccState};
use crate::canary::Canary;
use crate::shared::links;
use crate::shared::recorder::Recorder;

/// What became of a noted version.
enum Tidied {
    /// Nothing is left to do, or another note stands for it.
    Done,
    /// Another worker was at the record.
    Busy,
    /// A snapshot is in front of this timestamp.
    Waits(u64),
}

/// Noted versions before a worker looks after them.
const BATCH: usize = 16;
/// Notes of each kind that a worker looks after at a time, besides twice what it has noted since.
const LOOKED_AFTER_MIN: usize = 64;
/// Notes of each kind that the ticker looks after at a time.
const PORTION: usize = 1_024;
/// Attempts of a worker between two looks at what waits, when little is noted.
const PERIOD: u32 = 64;

impl Mvcc {
    fn notes(&mut self) -> &mut Notes {
        // SAFETY: this is the worker with the number, and it runs.
        unsafe { &mut *self.shared.notes[self.worker].notes.get() }
    }

    /// Notes a version that the attempt has just committed.
    #[inline]
    pub(super) fn note_version(&mut self, record: RecordRef, table: *const Table, wts: u64) {
        self.shared.notes[self.worker].show_noted(self.participant.epoch());
        self.notes().fresh.push_back(Noted { record, table, wts });
    }

    /// Gives a record back that is in no index, once no worker can have its address.
    pub(super) fn leave_grave(&mut self, table: &Table, record: RecordRef) {
        let stamp = self.shared.clock.now();
        let grave = Grave {
            record,
            table,
            stamp,
        };
        self.shared.notes[self.worker].show_noted(self.participant.epoch());
        let notes = self.notes();
        notes.graves.push_back(grave);
        notes.left += 1;
    }

    /// Looks after what was noted, if it is time; inside the attempt's epoch.
    #[inline]
    pub(super) fn reclaim(&mut self) {
        self.until_look = self.until_look.saturating_sub(1);
        let notes = self.notes();
        if notes.fresh.len() + notes.left >= BATCH || self.until_look == 0 {
            self.look_after();
        }
    }

    fn look_after(&mut self) {
        self.until_look = PERIOD;
        let Mvcc {
            shared,
            horizon,
            participant,
            heap,
            chain,
            worker,
            ..
        } = self;
        shared.clock.look(horizon);
        if Canary::PrunedTooEarly.sings() {
            horizon.forget_who_reads();
        }
        let mut tidier = Tidier {
            shared,
            horizon,
            participant,
            recorder: Recorder::default(),
            heap,
            chain,
            alone: false,
        };
        let cell = &shared.notes[*worker];
        // SAFETY: this is the worker with the number, and it runs.
        let notes = unsafe { &mut *cell.notes.get() };
        let noted = notes.fresh.len() + std::mem::take(&mut notes.left);
        let limit = 2 * noted + LOOKED_AFTER_MIN;
        tidier.look_after(notes, limit);
        cell.show_looked(notes, participant.epoch());
    }
}

/// Looks after everything that any worker has noted, or what concerns one table. No transaction
/// runs that has used it, or that reads a snapshot.
pub(super) fn settle(shared: &MvccState, participant: &Participant, only: Option<TableId>) {
    let mut notes = Notes::default();
    for cell in &shared.notes {
        // SAFETY: no worker runs.
        let noted = unsafe { &mut *cell.notes.get() };
        match only {
            None => notes.append(noted.take()),
            Some(table) => notes.append(noted.take_of(table)),
        }
        cell.show_looked(noted, participant.epochs().current());
    }
    assert!(!shared.clock.has_snapshots(), "a snapshot is open");
    // No snapshot may begin before the versions that stay.
    shared.clock.note_decided();
    let horizon = Horizon::alone();
    let (mut heap, mut chain) = (Heap::new(), Vec::new());
    let mut tidier = Tidier {
        shared,
        horizon: &horizon,
        participant,
        recorder: Recorder::default(),
        heap: &mut heap,
        chain: &mut chain,
        alone: true,
    };
    // A record may have waited for another one's sake, and those that are buried here leave graves;
    // no other worker is there, so twice is enough.
    for _ in 0..2 {
        tidier.look_after(&mut notes, usize::MAX);
    }
    assert!(
        notes.is_empty(),
        "a transaction runs that has used a table which settles"
    );
}

/// Takes over what idle workers have noted, and looks after a portion of it; `participant` is the
/// ticker's. Returns whether nothing is left that can be done now.
pub(super) fn look_after_idle(shared: &MvccState, participant: &Participant) -> bool {
    let own = &shared.notes[participant.slot()];
    let epochs = participant.epochs();
    let now = epochs.current();
    for worker in 0..shared.clock.workers() {
        let cell = &shared.notes[worker];
        let since = cell.since.load(Ordering::Relaxed);
        let is_idle = since != NOTHING_NOTED && since + STALE_EPOCHS < now;
        if !is_idle || worker == participant.slot() {
            continue;
        }
        let Some(seized) = epochs.seize(worker) else {
            continue;
        };
        // SAFETY: the worker's participant is seized.
        let notes = unsafe { &mut *cell.notes.get() }.take();
        cell.since.store(NOTHING_NOTED, Ordering::Relaxed);
        drop(seized);
        own.show_noted(now);
        // SAFETY: no worker has the ticker's number, and the caller alone uses the participant.
        unsafe { &mut *own.notes.get() }.append(notes);
    }
    if own.since.load(Ordering::Relaxed) == NOTHING_NOTED {
        return true;
    }
    participant.enter();
    let (mut heap, mut chain) = (Heap::new(), Vec::new());
    let mut horizon = Horizon::default();
    shared.clock.look(&mut horizon);
    let mut tidier = Tidier {
        shared,
        horizon: &horizon,
        participant,
        recorder: Recorder::default(),
        heap: &mut heap,
        chain: &mut chain,
        alone: false,
    };
    // SAFETY: as above.
    let notes = unsafe { &mut *own.notes.get() };
    let is_done = tidier.look_after(notes, PORTION);
    own.show_looked(notes, now);
    participant.leave();
    is_done
}

/// Shortens chains for one worker.
struct Tidier<'a> {
    shared: &'a MvccState,
    horizon: &'a Horizon,
    participant: &'a Participant,
    /// Records nothing: what goes from the indexes here was recorded by the transactions that
    /// deleted it.
    recorder: Recorder,
    heap: &'a mut Heap,
    /// The nodes of the chain at hand, from the newest on.
    chain: &'a mut Vec<NodeRef>,
    /// Whether no transaction runs.
    alone: bool,
}

impl Tidier<'_> {
    /// Looks after at most `limit` notes of each kind. Returns whether there were no more for which
    /// it is time.
    fn look_after(&mut self, notes: &mut Notes, limit: usize) -> bool {
        let mut is_done = notes.fresh.len() <= limit;
        // Graves first, as the horizon was looked for after these were buried.
        let mut left = limit;
        while let Some(grave) = notes.graves.front() {
            if !self.horizon.is_older_than_snapshots(grave.stamp) {
                break;
            }
            // SAFETY: the engine settles before it changes tables.
            links::retire(unsafe { &*grave.table }, grave.record, self.participant);
            notes.graves.pop_front();
            left -= 1;
            if left == 0 {
                is_done = false;
                break;
            }
        }
        for _ in 0..notes.fresh.len().min(limit) {
            let Some(noted) = notes.fresh.pop_front() else {
                break;
            };
            match self.tidy(noted, false, &mut notes.graves) {
                Tidied::Done => {}
                Tidied::Busy => notes.fresh.push_back(noted),
                Tidied::Waits(wts) => notes.waiting.push_back(Noted { wts, ..noted }),
            }
        }
        let mut has_waited = notes.waiting.len() <= limit;
        for _ in 0..notes.waiting.len().min(limit) {
            // In about the order of their timestamps: behind the first in vain there is little to
            // do.
            let Some(noted) = notes.waiting.front().copied() else {
                break;
            };
            if !self.horizon.has_passed(noted.wts) {
                has_waited = true;
                break;
            }
            notes.waiting.pop_front();
            match self.tidy(noted, true, &mut notes.graves) {
                Tidied::Done => {}
                Tidied::Busy => notes.waiting.push_back(noted),
                Tidied::Waits(wts) => notes.waiting.push_back(Noted { wts, ..noted }),
            }
        }
        is_done && has_waited
    }

    /// Shortens the chain of a record for a version that was noted.
    fn tidy(&mut self, noted: Noted, waited: bool, graves: &mut VecDeque<Grave>) -> Tidied {
        let Noted { record, table, wts } = noted;
        // The versions of a cell only grow, over all records that it holds: if the row has this
        // version or a newer one, the note is settled, and the cell may hold any record. Acquire:
        // else what is read below is of this record, which stays in its epoch.
        if Tid(record.tid().load(Ordering::Acquire)).version() >= wts {
            return Tidied::Done;
        }
        let aux = record.aux().load(Ordering::Acquire);
        let Head::Chain(newest) = head(aux) else {
            return Tidied::Done;
        };
        if aux & LATCHED != 0 || newest.status() & status::STATE != status::COMMITTED {
            return Tidied::Busy;
        }
        let others = aux & WAITING != 0 && !waited && !self.alone;
        let single = newest.next().is_none();
        if single && !self.horizon.has_passed(newest.wts()) {
            if others || waited {
                return match waited {
                    true => Tidied::Waits(newest.wts()),
                    false => Tidied::Done,
                };
            }
            // Release keeps what the node's linking published.
            let flagged = record.aux().compare_exchange(
                aux,
                aux | WAITING,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            return match flagged {
                Ok(_) => Tidied::Waits(newest.wts()),
                Err(_) => Tidied::Busy,
            };
        }
        if single && others {
            // The attempt that waits for the record folds it.
            return Tidied::Done;
        }
        // Acquire: the last one's changes are there. No worker links a node or raises a timestamp
        // meanwhile.
        let latched =
            record
                .aux()
                .compare_exchange(aux, aux | LATCHED, Ordering::AcqRel, Ordering::Relaxed);
        if latched.is_err() {
            return Tidied::Busy;
        }
        // SAFETY: the engine settles before it changes tables.
        let table = unsafe { &*table };
        self.chain.clear();
        let mut node = Some(newest);
        while let Some(this) = node {
            self.chain.push(this);
            node = this.next();
        }
        if !others {
            self.fold(table, record);
        }
        self.prune(table);
        let Some(&first) = self.chain.first() else {
            let tid = Tid(record.tid().load(Ordering::Relaxed));
            let rts = newest.read_until().load(Ordering::SeqCst).max(newest.wts());
            let aux = match tid.is_dead() {
                true => 0,
                false => read_up_to(rts),
            };
            if tid.is_dead() {
                let recorder = &mut self.recorder;
                links::unlink(table, record, self.heap, self.participant, recorder);
                graves.push_back(Grave {
                    record,
                    table,
                    stamp: self.shared.clock.now(),
                });
            }
            // Release: who finds the record without nodes finds all in the row.
            record.aux().store(aux, Ordering::SeqCst);
            self.shared.pools.retire(newest, self.participant);
            return Tidied::Done;
        };
        let oldest = self.chain.last().expect("there is a first").wts();
        let flags = match others {
            true => aux & WAITING,
            false => WAITING,
        };
        record
            .aux()
            .store(first.address() | flags, Ordering::SeqCst);
        if first != newest {
            self.shared.pools.retire(newest, self.participant);
        }
        match others {
            true => Tidied::Done,
            false => Tidied::Waits(oldest),
        }
    }

    /// Copies the versions that all transactions are past into the row, and takes them off the
    /// chain; the newest is left to the caller to retire, as its timestamp is still needed.
    fn fold(&mut self, table: &Table, record: RecordRef) {
        let newest = self.chain[0];
        let Some(first) = self
            .chain
            .iter()
            .position(|node| self.horizon.has_passed(node.wts()))
        else {
            return;
        };
        let (layout, row) = (table.layout(), table.row(record));
        let tid = record.tid().load(Ordering::Relaxed);
        record.tid().store(tid | Tid::LOCKED, Ordering::Relaxed);
        // Release pairs with the acquire fence of readers: a reader that sees a word stored below
        // finds the lock bit set above, or a newer version.
        fence(Ordering::Release);
        for position in (first..self.chain.len()).rev() {
            let node = self.chain[position];
            for (index, _) in node.links() {
                self.unmark(table, record, index);
            }
            if !node.is_absent() && !node.columns().is_empty() {
                for blob in layout.blobs(node.columns(), row) {
                    links::retire_blob(blob, self.participant);
                }
                layout.copy(node.columns(), node.image(layout.words()), row);
            }
        }
        let last = self.chain[first];
        let flags = match (last.is_absent(), first) {
            (false, _) => 0,
            (true, 0) => Tid::ABSENT | Tid::DEAD,
            (true, _) => Tid::ABSENT,
        };
        // Release: readers that see this version see its words.
        record.tid().store(last.wts() | flags, Ordering::Release);
        if first > 0 {
            self.chain[first - 1].set_next(None);
        }
        for node in self.chain.drain(first..) {
            if node != newest {
                self.shared.pools.retire(node, self.participant);
            }
        }
    }

    /// The entry that a record took over is like any other from now on.
    fn unmark(&mut self, table: &Table, record: RecordRef, index: usize) {
        let mark = self.heap.mark();
        let index = &table.indexes()[index];
        // The key was short enough when the entry was made, and the record's keys do not change.
        if let Ok(key) = table.entry_key_of(index, table.row(record), self.heap) {
            index.replace_key(&key, Entry::moving(record), Entry::of(record));
        }
        self.heap.release(mark);
    }

    /// Takes versions off the chain that no snapshot wants. A newest one that is replaced is left
    /// to the caller to retire.
    fn prune(&mut self, table: &Table) {
        let layout = table.layout();
        let Some(&newest) = self.chain.first() else {
            return;
        };
        let mut position = 1;
        while position < self.chain.len() {
            let (newer, node) = (self.chain[position - 1], self.chain[position]);
            let kept =
                node.status() & status::LINKS != 0 || self.horizon.wants(node.wts(), newer.wts());
            if kept {
                position += 1;
                continue;
            }
            let words = layout.words();
            let only_here = match newer.is_absent() {
                true => Default::default(),
                false => without(node.columns(), newer.columns()),
            };
            if only_here.is_empty() {
                // Release pairs with the acquire in `next`.
                newer.set_next(node.next());
            } else {
                let Ok(merged) = self.shared.pools.take(words, self.participant) else {
                    position += 1;
                    continue;
                };
                let image = merged.image(words);
                layout.copy(only_here, node.image(words), image);
                layout.copy(newer.columns(), newer.image(words), image);
                merged.set_wts(newer.wts());
                merged.set_columns(node.columns().union(newer.columns()));
                merged.set_next(node.next());
                let rts = newer.read_until().load(Ordering::SeqCst);
                merged.read_until().store(rts, Ordering::Relaxed);
                // What was between the versions below and the merged one is in it.
                merged.set_status(newer.status() | node.status() & status::SPLIT);
                self.chain[position - 1] = merged;
                if position >= 2 {
                    self.chain[position - 2].set_next(Some(merged));
                    self.shared.pools.retire(newer, self.participant);
                } else if newer != newest {
                    // Merged a moment ago, and seen by no reader.
                    self.shared.pools.give_back(newer, self.participant);
                }
            }
            let gone = without(node.columns(), only_here);
            if !node.is_absent() {
                for blob in layout.blobs(gone, node.image(words)) {
                    links::retire_blob(blob, self.participant);
                }
            }
            self.chain.remove(position);
            self.shared.pools.retire(node, self.participant);
        }
    }
}

/// The columns of one set that are not in another.
fn without(
    columns: kiln_storage::schema::ColumnSet,
    others: kiln_storage::schema::ColumnSet,
) -> kiln_storage::schema::ColumnSet {
    columns
        .iter()
        .filter(|column| !others.contains(*column))
        .collect()
}
