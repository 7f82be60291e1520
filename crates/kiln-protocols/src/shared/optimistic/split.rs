//! The second timestamp of a record (timestamp splitting, STO §6.2), for protocols that leave `aux`
//! free but for the claim.
//!
//! `aux` holds the version of the last write of a split column of the table
//! ([`Table::split`]), or 0 for none since the protocol was put in force; a protocol may keep
//! something else there that changes with each such write ([`Commit::SPLIT`]). An item that
//! observes such columns alone relies on it and not on the tid; so does one that observes no column
//! at all, but only that the row is there. Deletions, also of rows that are inserted again, and
//! moves of index entries advance it too, so that an attempt that found the record by a key
//! notices.
//!
//! [`LOCKED`] is its lock bit: set by who has locked the tid and is going to advance it, so that of
//! two attempts that each read what the other writes one sees the other. It is advanced before the
//! tid, so that the words of the version lie between. A deleted record keeps the bit for good.

use kiln_platform::atomic::Ordering;
use kiln_platform::spin;
use kiln_procedure::access::Visit;
use kiln_procedure::ir::Intent;
use kiln_procedure::{AbortCause, Handle};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnSet;
use kiln_storage::table::Table;

use super::{
    Commit, Item, LOCK_SPINS_MAX, NO_WRITE, Optimistic, UNOBSERVED, WHOLE, WriteKind, stable_tid,
};
use crate::canary::Canary;

/// The bit of `aux` that says that the attempt which has locked the tid will advance the second
/// timestamp.
pub const LOCKED: u64 = 1 << 62;

/// The second timestamp and its lock.
#[inline(always)]
fn split<C: Commit>(record: RecordRef) -> u64 {
    // Acquire pairs with the release in `advance`: the words read after this are at least those of
    // the version seen here.
    record.aux().load(Ordering::Acquire) & C::SPLIT
}

/// Stores the second timestamp of a record that is locked, and with it unlocks it.
#[inline]
pub(super) fn advance<C: Commit>(record: RecordRef, tid: Tid) {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    // The claim of another attempt may come and go meanwhile. Release: a reader that sees the
    // version sees the words installed before.
    while let Err(now) = word.compare_exchange_weak(
        seen,
        C::advanced(seen, tid),
        Ordering::Release,
        Ordering::Relaxed,
    ) {
        seen = now;
    }
}

impl<C: Commit> Optimistic<C> {
    /// Whether the second timestamp covers these columns.
    #[inline(always)]
    pub(super) fn is_covered(&self, table: &Table, columns: ColumnSet) -> bool {
        columns.is_empty() || self.splits && columns.difference(table.split()).is_empty()
    }

    /// As [`Optimistic::meet`], when only these columns are going to be observed.
    #[inline]
    pub(super) fn meet_columns(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: ColumnSet,
    ) -> Result<Visit, AbortCause> {
        if !self.observes_split {
            if observed.is_empty()
                && let Some(write) = self.written.get(record)
                && !self.writes[write as usize].removes()
            {
                let note = self.writes[write as usize].item;
                return Ok(Visit::Present(Handle { record, note }));
            }
            let visit = self.meet(table, record, intent)?;
            if self.defers
                && observed.is_empty()
                && let Visit::Present(handle) = visit
                && handle.note as usize == self.items.len() - 1
                && self.items[handle.note as usize].write == NO_WRITE
            {
                self.items[handle.note as usize].split = UNOBSERVED;
            }
            return Ok(visit);
        }
        if !self.is_covered(table, observed) {
            self.protocol.meets(table, record, observed);
            return self.meet(table, record, intent);
        }
        if let Some(write) = self.written.get(record) {
            let write = &self.writes[write as usize];
            return Ok(match write.removes() {
                true => Visit::Absent,
                false => Visit::Present(Handle {
                    record,
                    note: write.item,
                }),
            });
        }
        let is_recorded = self.recorder.log().is_some();
        let (mut tid, mut seen, mut noted) = (Tid(0), 0, None);
        let is_stable = spin::until(LOCK_SPINS_MAX, || {
            seen = split::<C>(record);
            // Acquire: pairs with the release in `install`.
            tid = Tid(record.tid().load(Ordering::Acquire));
            noted = self.protocol.observe_split(table, record, tid);
            let is_final = tid.is_dead() && !tid.is_locked();
            // An attempt that writes other columns does not matter. Histories call versions by the
            // tid, though, which must not be between two.
            let matters = seen & LOCKED != 0 || is_recorded && tid.is_locked();
            is_final || !matters && noted.is_some() && split::<C>(record) == seen
        });
        if tid.is_dead() {
            return Ok(Visit::Dead);
        }
        if tid.is_absent() {
            return self.meet(table, record, intent);
        }
        let (true, Some(noted)) = (is_stable, noted) else {
            return Err(AbortCause::ReadLock);
        };
        let note = self.items.len() as u32;
        self.items.push(Item {
            record,
            observed: tid.0 & !Tid::LOCKED,
            split: seen,
            note: noted,
            write: NO_WRITE,
            searched: self.writes.len() as u32,
        });
        Ok(Visit::Present(Handle { record, note }))
    }

    /// Has an item rely on the whole record from now on, besides on what it relied on so far.
    #[cold]
    pub(super) fn widen(&mut self, note: u32) -> Result<(), AbortCause> {
        let Item {
            record,
            observed,
            split,
            note: noted,
            write,
            searched,
        } = self.items[note as usize];
        let tid = stable_tid(record)?;
        if tid.is_absent() {
            return Err(AbortCause::ReadValidation);
        }
        self.items.push(Item {
            record,
            observed,
            split,
            note: noted,
            write,
            searched,
        });
        let item = &mut self.items[note as usize];
        item.observed = tid.0;
        item.split = WHOLE;
        C::rely_on_whole(&mut item.note, tid);
        Ok(())
    }

    /// Locks the second timestamp of the record of a write whose tid is locked, if it is going to
    /// be advanced.
    #[inline]
    pub(super) fn lock_split(&mut self, position: usize) {
        if !self.uses_split {
            return;
        }
        let write = &self.writes[position];
        // A new record was observed as absent, by its tid, if at all.
        let advances = match write.kind {
            WriteKind::Delete => true,
            WriteKind::Update => {
                let written = write.columns.union(write.pending);
                let is_split = self.splits && written.intersects(write.table().split());
                is_split && !Canary::GroupNotAdvanced.sings()
                    || write.comes_back
                    || self.claimed.contains(write.record)
            }
            WriteKind::Insert | WriteKind::Forget | WriteKind::Share | WriteKind::Lost => false,
        };
        if advances {
            // Relaxed: the fence before validation orders it, and that in `install` the new words.
            write.record.aux().fetch_or(LOCKED, Ordering::Relaxed);
            self.writes[position].locks_split = true;
        }
    }

    /// Releases what [`Optimistic::lock_split`] locked, without a change.
    #[inline]
    pub(super) fn unlock_split(&self, position: usize) {
        let write = &self.writes[position];
        if write.locks_split {
            // Release: as that of the tid, which follows.
            write.record.aux().fetch_and(!LOCKED, Ordering::Release);
        }
    }

    /// Whether an item that relies on the second timestamp may commit.
    #[inline(always)]
    pub fn is_split_current(&self, item: &Item<C::Note>) -> bool {
        let now = split::<C>(item.record);
        let is_same = now == item.split
            || now == item.split | LOCKED
                && (self.written.get(item.record))
                    .is_some_and(|write| self.writes[write as usize].locks_split);
        is_same && C::is_near(Tid(item.observed), item.record)
    }
}
