//! Timestamp splitting (STO §6.2): what observes only split columns, and who writes them. What
//! is said of them for a whole table is in `groups.rs`.
//!
//! The chain is one for all columns: a node has those that its transaction changed, and is marked
//! if some of them are split. Such an item relies on that no marked version comes between the
//! version that it met and the attempt's timestamp. It does not care for others, pending or
//! committed: it reads past a pending one, and if the attempt writes the record, its version goes
//! in front of whichever is the newest then.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::spin;
use kiln_procedure::AbortCause;
use kiln_procedure::Handle;
use kiln_procedure::access::Visit;
use kiln_procedure::ir::Reg;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;

use super::groups::{Groups, Mask};
use super::version::{CLOSED, Head, LATCHED, NodeRef, WAITING, head, read_up_to, status};
use super::{Item, Mvcc, SPINS_MAX, Write, WriteKind};
use crate::canary::Canary;

/// Marks an [`Item`] that relies on all columns.
pub(super) const WHOLE: u8 = u8::MAX;

/// Whether a version of this status writes split columns, or the record is not there in it.
#[inline(always)]
fn is_marked(status: u64) -> bool {
    status & (status::SPLIT | status::ABSENT) != 0
}

impl Item {
    /// Whether it relies on split columns alone.
    #[inline(always)]
    pub(super) fn is_split(&self) -> bool {
        self.split != WHOLE
    }
}

impl Write {
    /// The version below the pending one; `None` stands for the row.
    #[inline(always)]
    pub(super) fn below(&self) -> Option<NodeRef> {
        self.node.and_then(NodeRef::next)
    }

    /// Whether it writes split columns, or takes the record away.
    #[inline(always)]
    fn changes_split(&self) -> bool {
        let split = self.table().split();
        match self.kind {
            _ if split.is_empty() || Canary::GroupNotAdvanced.sings() => false,
            WriteKind::Update => self.columns.union(self.pending).intersects(split),
            WriteKind::Delete => true,
            // No transaction has observed columns of a record that is not there.
            WriteKind::Insert | WriteKind::Forget | WriteKind::Touch => false,
        }
    }

    /// What its node is besides pending or committed.
    #[inline(always)]
    pub(super) fn marks(&self, splits: bool) -> u64 {
        match splits && self.changes_split() {
            true => self.kind.node_kind() | status::SPLIT,
            false => self.kind.node_kind(),
        }
    }
}

impl Mvcc {
    /// Whether an item may rely on split columns alone if these are observed.
    #[inline(always)]
    pub(super) fn is_covered(&self, table: &Table, observed: ColumnSet) -> bool {
        // Asked in this order, as without timestamp splitting the table need not be looked at.
        self.splits && {
            let split = table.split();
            !split.is_empty() && observed.difference(split).is_empty()
        }
    }

    /// Meets a record of which only split columns are going to be observed.
    #[inline(never)]
    pub(super) fn meet_split(
        &mut self,
        table: &Table,
        record: RecordRef,
    ) -> Result<Visit, AbortCause> {
        if let Some(visit) = self.meet_again(record) {
            return Ok(visit);
        }
        let visit = match below_pending(record) {
            Some(item) => {
                let note = self.items.len() as u32;
                self.items.push(item);
                Visit::Present(Handle { record, note })
            }
            None => self.meet(record)?,
        };
        if let Visit::Present(handle) = visit {
            self.items[handle.note as usize].split = Groups::number(table);
        }
        Ok(visit)
    }

    /// Has an item that relies on split columns rely on all, if others are read that are not
    /// `written` by the attempt.
    #[inline(never)]
    pub(super) fn widen_split(
        &mut self,
        table: &Table,
        note: u32,
        columns: &[(ColumnId, Reg)],
        written: ColumnSet,
    ) {
        let read: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        let others = read.difference(written).difference(table.split());
        if !others.is_empty() {
            self.items[note as usize].split = WHOLE;
        }
    }

    /// Whether the row still has what the item observes, after it was read.
    #[inline(always)]
    pub(super) fn has_kept_split(&self, item: &Item) -> bool {
        item.is_split() && (self.shared.groups).is_written_before(item.split, item.version)
    }

    /// Counts the attempt among those who are about to write split columns, before it takes a
    /// timestamp.
    #[inline(never)]
    pub(super) fn enter_groups(&mut self) -> Mask {
        let written = self.writes.iter().filter(|write| write.changes_split());
        let mask = written.fold(0, |mask: Mask, write| {
            mask | 1 << Groups::number(write.table())
        });
        if mask != 0 {
            self.counted = self.shared.groups.enter(mask);
            point("mvcc.counted");
        }
        mask
    }

    /// A timestamp to commit at, after all that was read of the split columns that the attempt
    /// writes.
    #[inline(never)]
    pub(super) fn take_timestamp_after_readers(&mut self) -> u64 {
        let mask = self.enter_groups();
        let mut timestamp = self.take_timestamp();
        if mask != 0 {
            let groups = &self.shared.groups;
            let read = groups.read_until(mask);
            if read >= timestamp {
                self.shared.clock.raise(read);
                timestamp = self.shared.clock.begin_commit(self.worker);
            }
            groups.write(mask, timestamp);
        }
        timestamp
    }

    /// The attempt is not about to write split columns any more.
    #[inline(never)]
    pub(super) fn leave_groups(&mut self) {
        self.shared.groups.leave(std::mem::take(&mut self.counted));
    }

    /// Whether no version writes split columns from `from` on down to the version that the item
    /// met, which no transaction can change any more; `None` stands for the row.
    #[inline(never)]
    pub(super) fn is_unmarked_down_from(&self, from: Option<NodeRef>, item: &Item) -> bool {
        let mut node = from;
        while let Some(this) = node {
            if this.wts() <= item.version {
                return true;
            }
            if is_marked(this.status()) {
                return false;
            }
            node = this.next();
        }
        let tid = Tid(item.record.tid().load(Ordering::SeqCst));
        // What was folded into the row has left no mark.
        tid.version() <= item.version || self.has_kept_split(item)
    }

    /// Makes sure that a transaction at `timestamp` reads of split columns what the item met, now
    /// and later.
    #[inline(never)]
    pub(super) fn validate_split(&self, item: &Item, timestamp: u64) -> Result<(), AbortCause> {
        let held = self.shared.groups.hold(item.split, timestamp);
        point("mvcc.held");
        if held && self.has_kept_split(item) {
            return Ok(());
        }
        let mut result = Err(AbortCause::ReadLock);
        spin::until(SPINS_MAX, || {
            match self.try_validate_split(item, timestamp, held) {
                Some(validated) => {
                    result = validated;
                    true
                }
                None => false,
            }
        });
        result
    }

    /// One look at a record; `None` when it is worth another. Where no writer is `held` off, the
    /// record's `rts` is raised.
    fn try_validate_split(
        &self,
        item: &Item,
        timestamp: u64,
        held: bool,
    ) -> Option<Result<(), AbortCause>> {
        let record = item.record;
        let aux = record.aux().load(Ordering::SeqCst);
        let newest = match head(aux) {
            Head::Row(rts) => {
                if !held && rts < timestamp {
                    let raised = record.aux().compare_exchange(
                        aux,
                        read_up_to(timestamp),
                        Ordering::SeqCst,
                        Ordering::Relaxed,
                    );
                    raised.ok()?;
                }
                // After `aux` was raised, or found to be.
                return Some(match self.is_unmarked_down_from(None, item) {
                    true => Ok(()),
                    false => Err(AbortCause::ReadValidation),
                });
            }
            Head::Chain(newest) => newest,
        };
        let state = newest.status() & status::STATE;
        if state == status::ABORTED || aux & LATCHED != 0 {
            return None;
        }
        let mut from = Some(newest);
        if state == status::PENDING {
            if newest.wts() < timestamp && is_marked(newest.status()) {
                // An attempt that waits has the greater timestamp.
                return None;
            }
            from = newest.next();
        }
        while let Some(newer) = from
            && newer.wts() >= timestamp
        {
            from = newer.next();
        }
        if !self.is_unmarked_down_from(from, item) {
            return Some(Err(AbortCause::ReadValidation));
        }
        // No version can be inserted below a committed one any more.
        if !held && (state == status::PENDING || newest.wts() < timestamp) {
            let known = newest.read_until().fetch_max(timestamp, Ordering::SeqCst);
            // `CLOSED` is greater than any timestamp: then `aux` is about to change.
            if known == CLOSED || record.aux().load(Ordering::SeqCst) & !WAITING != aux & !WAITING {
                return None;
            }
        }
        Some(Ok(()))
    }
}

/// The version below the newest one, if that is pending and writes no split columns.
fn below_pending(record: RecordRef) -> Option<Item> {
    // Acquire pairs with the releases of those who link nodes and unlink them.
    let Head::Chain(newest) = head(record.aux().load(Ordering::Acquire)) else {
        return None;
    };
    let status = newest.status();
    let is_passed = status & status::STATE == status::PENDING
        && status & status::LINKS == 0
        && !is_marked(status);
    if !is_passed {
        return None;
    }
    // Whatever becomes of the pending version meanwhile, what is below it is decided.
    match newest.next() {
        Some(below) => {
            let is_there =
                below.status() & status::STATE == status::COMMITTED && !below.is_absent();
            is_there.then(|| Item::new(record, below.wts(), Some(below), false))
        }
        None => {
            // Acquire pairs with the release that ends a change of the row.
            let tid = Tid(record.tid().load(Ordering::Acquire));
            let is_there = !tid.is_locked() && !tid.is_absent() && !tid.is_dead();
            is_there.then(|| Item::new(record, tid.version(), None, false))
        }
    }
}
