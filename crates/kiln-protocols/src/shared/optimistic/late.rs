//! Attempts that run to their commit although they will fail there: without [early
//! aborts](Optimistic::early_aborts), as Silo does it, and THEDB-SILO after it (*Transaction
//! Healing* §5).
//!
//! | what an attempt meets | what it does |
//! |---|---|
//! | a record that another one installs | waits until that is over |
//! | a record that has changed since it was met | reads the present version; what was observed first stays in the read set, and fails validation |
//! | an index node that has changed since it was relied on | goes on; the older version stays in the node set |
//! | another attempt's uncommitted insert of its primary key | shares that record: whichever commits first has it (healing §4.7.1) |
//! | the same of another unique key, or of a record that is not offered or that a third attempt shares under other keys | goes on with a record that is in no index, and fails at its commit |
//! | a row that leaves the indexes, under a key that it inserts | tries again |
//!
//! A row that has changed, or that is in no index, gets no other entries: its keys may be of
//! several versions. An update of indexed columns that meets another one of the same row, or of the
//! same key, ends its attempt all the same: the indexes have one moving entry for a key.
//!
//! # A record that several attempts insert
//!
//! It is in the indexes since the first of them has put it there, the *owner*, which takes it out
//! again if it fails and no other attempt has committed it. All lock it by a compare-and-swap from
//! the absent tid that they have observed, so one of them installs. The others find another tid
//! then, whether they lock, validate or bury.
//!
//! The owner *offers* its record ([`OFFERED`]) when it is in all indexes and in the owner's write
//! set, absent: from then on another attempt may have it. It does so only if no entry of the record
//! replaces one that the owner has vacated: such an entry goes back when the owner fails, whichever
//! attempt has committed the record.

use kiln_history::EntryChange;
use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::spin::Spinner;
use kiln_procedure::access::{Inserted, Visit};
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Handle, Stop};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{COLUMNS_MAX, ColumnId, ColumnSet};
use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::execute::{load_mixed, resolve_all};
use super::{Commit, Optimistic, WHOLE, WriteKind, awaited_tid};
use crate::shared::links;

/// The bit of a new record's `aux` that says that others may insert over it. It is there until the
/// attempt that has put the record into the indexes ends.
const OFFERED: u64 = 1 << 62;

/// What an insert has met under one of its keys.
enum Collision {
    /// A row, or what the attempt itself has done.
    None,
    /// Another attempt's insert, which it shares.
    Shared(Handle),
    /// Another attempt's insert: its own record is in no index.
    Private(Handle),
    /// A record that leaves the indexes.
    Leaving,
}

impl<C: Commit> Optimistic<C> {
    /// Whether a record is in the version that the attempt observed, and in the indexes.
    #[cold]
    pub(super) fn is_as_observed(&self, handle: Handle) -> bool {
        // Acquire: as in `load`, what was read before is of this version.
        fence(Ordering::Acquire);
        let tid = handle.record.tid().load(Ordering::Relaxed);
        tid == self.items[handle.note as usize].observed && !Tid(tid).is_dead()
    }

    /// Fails as a record has changed since it was met, or reads the columns as they are now: what
    /// was observed of it first stays in the read set, and fails validation.
    #[cold]
    #[inline(never)]
    pub(super) fn load_changed(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        if self.early_aborts {
            self.protocol.found_changed(handle.record);
            return Err(AbortCause::ReadValidation);
        }
        // Its version counts from now on, if it has not so far.
        self.items[handle.note as usize].split = WHOLE;
        let (layout, row) = (table.layout(), table.row(handle.record));
        let (image, written) = match self.write_of(*handle) {
            Some(write) if !self.writes[write].columns.is_empty() => {
                (self.writes[write].image(), self.writes[write].columns)
            }
            _ => (row, ColumnSet::EMPTY),
        };
        loop {
            // Dead or alive, the words of a version are there until the epoch is over.
            let version = awaited_tid(handle.record);
            let spilled = load_mixed(layout, (row, image, written), columns, memory);
            // Acquire: as in `load`.
            fence(Ordering::Acquire);
            if handle.record.tid().load(Ordering::Relaxed) == version.0 {
                if spilled.is_any() {
                    // SAFETY: as in `load`.
                    unsafe { resolve_all(columns, memory) };
                }
                return Ok(());
            }
        }
    }

    /// Lets others insert over a record that the attempt has put into all indexes, and has
    /// observed.
    #[cold]
    pub(super) fn offer(&self, record: RecordRef) {
        if self.changes.is_empty() {
            // Release pairs with the acquire in `collide`: the entries are there. The owner has
            // read the tid before.
            record.aux().fetch_or(OFFERED, Ordering::Release);
            point("silo.offered");
        }
    }

    /// The attempt ends: its new records are offered no more.
    #[cold]
    pub(super) fn withdraw_offers(&self) {
        for write in self.writes.iter().filter(|write| write.inserts()) {
            write.record.aux().fetch_and(!OFFERED, Ordering::Relaxed);
        }
    }

    /// Inserts the new `record`, which is in no index, as one of its keys is another record's;
    /// `None` inside as in `try_add`, and `None` where an attempt with early aborts does no
    /// different.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_late(
        &mut self,
        table: &Table,
        record: RecordRef,
        met: (usize, RecordRef),
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Option<Option<Inserted>>, Stop> {
        let inserted = match self.collide(table, record, met, values, memory) {
            Ok(Collision::None) => return Ok(None),
            Ok(Collision::Private(handle)) => return Ok(Some(Some(Inserted::New(handle)))),
            Ok(Collision::Shared(handle)) => Ok(Some(Some(Inserted::New(handle)))),
            Ok(Collision::Leaving) => Ok(Some(None)),
            Err(stop) => Err(stop),
        };
        links::retire(table, record, &self.participant);
        inserted
    }

    /// What to do about `other`, which the index at this position has for a key of the new
    /// `record`, which is in no index.
    #[cold]
    fn collide(
        &mut self,
        table: &Table,
        record: RecordRef,
        (index, other): (usize, RecordRef),
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Collision, Stop> {
        if self.written.get(other).is_some() {
            return Ok(Collision::None);
        }
        match self.meet(table, other, Intent::Write)? {
            Visit::Present(_) => return Ok(Collision::None),
            Visit::Dead => return Ok(Collision::Leaving),
            Visit::Absent => {}
        }
        // What was just met.
        let note = self.items.len() as u32 - 1;
        let handle = Handle {
            record: other,
            note,
        };
        let mut columns = [(ColumnId(0), Reg(0)); COLUMNS_MAX];
        let columns = &mut columns[..values.len()];
        for ((place, value), column) in columns.iter_mut().zip(values).zip(0..) {
            *place = (ColumnId(column), *value);
        }
        let is_offered = other.aux().load(Ordering::Acquire) & OFFERED != 0;
        let is_shared = match index {
            0 if is_offered => self.share_entries(table, handle, columns, memory),
            _ => Err(AbortCause::KeyInTransit.into()),
        };
        match is_shared {
            Ok(None) => {
                self.write_for(table, handle, WriteKind::Share);
                self.keep(table, &handle, columns, memory);
                Ok(Collision::Shared(handle))
            }
            Err(Stop::Raise(error)) => Err(Stop::Raise(error)),
            Ok(Some(_)) | Err(Stop::Abort(_)) => {
                self.is_doomed = true;
                Ok(Collision::Private(self.enter_new(table, record)))
            }
        }
    }

    /// Gives an offered record entries under the keys of the new row, as in an update.
    fn share_entries(
        &mut self,
        table: &Table,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<Option<(usize, RecordRef)>, Stop> {
        // A history has the entries of transactions that commit, and the owner may fail: these are
        // added by each that shares them. No range that was read until now without meeting the
        // record has them.
        if let Some(begun) = self.recorder.now() {
            for position in 0..table.indexes().len() {
                let (key, _) = self.keys(table, position, handle, &[], memory)?;
                let (place, change) = ((table, position), EntryChange::Added);
                (self.recorder).entry(place, change, handle.record, begun, &key);
            }
        }
        let all = columns.iter().map(|&(column, _)| column).collect();
        self.move_entries(table, handle, columns, all, memory)
    }
}

/// Buries a record that the attempt has inserted, with this tid, unless another attempt has
/// committed its own row there; says whether it did.
#[cold]
pub(super) fn bury(record: RecordRef, observed: u64) -> bool {
    let dead = Tid(observed).version() | Tid::ABSENT | Tid::DEAD;
    let mut spinner = Spinner::default();
    loop {
        // Release: as in `links::bury`.
        let buried =
            (record.tid()).compare_exchange(observed, dead, Ordering::Release, Ordering::Relaxed);
        match buried {
            Ok(_) => return true,
            // Its holder commits, or fails and restores it; it waits for nothing that this attempt
            // has.
            Err(now) if now == observed | Tid::LOCKED => spinner.spin(),
            Err(_) => return false,
        }
    }
}
