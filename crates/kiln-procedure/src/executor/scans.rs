//! Scans: the leaves of a range, one after the other, and the body for each of their records.

use kiln_storage::index::LeafBatch;
use kiln_storage::slot::Slot;
use kiln_storage::table::{Entry, IndexScan, RangeValues, Table};

use super::{Executor, Leave, Stopped};
use crate::access::{Access, KeptScan, SoughtScan, Visit};
use crate::code::{Label, Scan};
use crate::ir::Bound;
use crate::journey::ScanLevel;

impl<'a, A: Access> Executor<'a, A> {
    /// Runs `body` for each record in a range. [`Leave::Iteration`] says that it went to its end.
    #[inline(never)]
    pub(super) fn scan(&mut self, scan: &'a Scan, body: Label) -> Leave {
        self.scan_range(scan, body).unwrap_or(Leave::Stop)
    }

    fn scan_range(&mut self, scan: &'a Scan, body: Label) -> Result<Leave, Stopped> {
        let table: &'a Table = &scan.table;
        let index = &table.indexes()[scan.index];
        let range = &scan.range;
        let mut prefix = [Slot::NULL; kiln_storage::schema::KEY_COLUMNS_MAX];
        let prefix = &mut prefix[..range.prefix.len()];
        for (slot, register) in prefix.iter_mut().zip(&range.prefix) {
            *slot = self.get(*register);
        }
        let bound =
            |bound: &Option<Bound>| bound.map(|bound| (self.get(bound.value), bound.inclusive));
        let values = RangeValues {
            prefix,
            lower: bound(&range.lower),
            upper: bound(&range.upper),
        };
        let kept = match A::TRAVELS {
            true => KeptScan::No,
            false => {
                let sought = SoughtScan {
                    table,
                    index: scan.index,
                    range: values,
                    reverse: scan.reverse,
                    given: scan.given,
                };
                let kept = self.access.seek_scan(&sought, &self.frame.memory);
                self.noted(kept)?
            }
        };
        if let KeptScan::Known { .. } = kept {
            return self.scan_known(scan, body, kept, values);
        }
        if A::TRAVELS {
            let sought = self.access.seeks_range(table, scan.index, values.prefix);
            if let Err(stopped) = self.noted(sought) {
                return match self.leave_before(body - 1) {
                    Leave::Away => Ok(Leave::Away),
                    _ => Err(stopped),
                };
            }
            self.access.has_done();
        }
        let cursor = index.scan(&self.frame.memory.heap, values, scan.reverse);
        let Some(mut cursor) = self.noted(cursor)? else {
            return Ok(Leave::Iteration);
        };
        let begun = (self.access).begins_scan(table, scan.index, &cursor, scan.intent);
        self.noted(begun)?;
        let range = match self.access.history().is_some() {
            true => {
                self.records_operation(scan.op);
                self.record_range(table, scan.index, &mut cursor)
            }
            false => None,
        };
        if A::TRAVELS {
            return self.scan_from(scan, body, ScanLevel::new(body, cursor, range));
        }
        let mut leaves = Leaves {
            kept,
            cursor: Some(cursor),
        };
        self.visit_range(scan, &mut leaves, body, range)
    }

    /// As [`Executor::scan_range`], where the access knows the range's first leaves, or all of
    /// them.
    fn scan_known(
        &mut self,
        scan: &'a Scan,
        body: Label,
        kept: KeptScan,
        values: RangeValues<'_>,
    ) -> Result<Leave, Stopped> {
        let mut range = None;
        if self.access.history().is_some() {
            let index = &scan.table.indexes()[scan.index];
            let cursor = index.scan(&self.frame.memory.heap, values, scan.reverse);
            if let Some(mut cursor) = self.noted(cursor)? {
                self.records_operation(scan.op);
                range = self.record_range(&scan.table, scan.index, &mut cursor);
            }
        }
        let mut leaves = Leaves { kept, cursor: None };
        self.visit_range(scan, &mut leaves, body, range)
    }

    /// The next leaf of a scan, guarded; says no at the end of its range.
    #[inline(always)]
    fn next_leaf(
        &mut self,
        scan: &Scan,
        leaves: &mut Leaves<'_>,
        batch: &mut LeafBatch,
        is_recorded: bool,
    ) -> Result<bool, Stopped> {
        if let KeptScan::Known { scan: number, leaf } = &mut leaves.kept {
            if self.access.recall_leaf(leaf, batch) {
                return Ok(true);
            }
            leaves.cursor = self.access.rest_of_scan(*number);
            leaves.kept = KeptScan::No;
            if let Some(cursor) = &mut leaves.cursor
                && is_recorded
            {
                cursor.keep_keys();
            }
        }
        let Some(cursor) = &mut leaves.cursor else {
            return Ok(false);
        };
        if !cursor.next_leaf(batch) {
            return Ok(false);
        }
        let guarded = self.access.guard(&scan.table, scan.index, batch.version);
        self.noted(guarded)?;
        if let KeptScan::Noted(number) = leaves.kept
            && !self.access.has_read(number, batch)
        {
            leaves.kept = KeptScan::No;
        }
        if batch.count > 1 {
            // The records' cache misses overlap instead of following each other.
            for payload in batch.payloads() {
                let address = *payload as *const u8;
                kiln_platform::atomic::prefetch(address);
                kiln_platform::atomic::prefetch(address.wrapping_add(64));
            }
        }
        Ok(true)
    }

    /// Runs `body` for each record in the range of `leaves`. The scan has the number `range` in the
    /// history, if the attempt is observed.
    #[inline(always)]
    fn visit_range(
        &mut self,
        scan: &Scan,
        leaves: &mut Leaves<'_>,
        body: Label,
        range: Option<u32>,
    ) -> Result<Leave, Stopped> {
        let mut left_at = None;
        let left = self.visit_leaves(scan, leaves, body, range, &mut left_at);
        if let Some(range) = range {
            self.records_operation(scan.op);
            self.record_range_end(range, left_at.as_deref(), scan.reverse);
        }
        if let KeptScan::Noted(number) = leaves.kept {
            match left {
                Ok(Leave::Iteration) => self.access.has_scanned(number, None),
                Ok(_) => self.access.has_scanned(number, leaves.cursor.take()),
                Err(_) => {}
            }
        }
        left
    }

    /// When it leaves early, an observed one leaves the key at which it did in `left_at`.
    #[inline(always)]
    fn visit_leaves(
        &mut self,
        scan: &Scan,
        leaves: &mut Leaves<'_>,
        body: Label,
        range: Option<u32>,
        left_at: &mut Option<Vec<u8>>,
    ) -> Result<Leave, Stopped> {
        let table = &*scan.table;
        let mut batch = LeafBatch::default();
        while self.next_leaf(scan, leaves, &mut batch, range.is_some())? {
            for position in 0..batch.count {
                // SAFETY: the payload is of an index of a living table.
                let entry = unsafe { Entry::from_payload(batch.payloads[position]) };
                self.access.scans(scan.op);
                // A dead record's key is guarded by the leaf's version, as any gap is.
                let visit = self.meet(table, scan.index, entry, scan.intent, &scan.observed)?;
                let mut key = None;
                if let Some(range) = range {
                    self.records_operation(scan.op);
                    // A scan meets no entry of a known leaf that has gone since, with its record.
                    if leaves.cursor.is_some() || !matches!(visit, Visit::Dead) {
                        self.record_met(range, (table, scan.index), entry, visit);
                    }
                    key = Some(match &leaves.cursor {
                        Some(cursor) => cursor.key(position),
                        None => self.key_of_known(table, scan.index, entry),
                    });
                }
                let Visit::Present(handle) = visit else {
                    continue;
                };
                self.set_handle(scan.record, handle);
                if let Some(leave) = self.iteration(body) {
                    *left_at = key;
                    return Ok(leave);
                }
            }
        }
        Ok(Leave::Iteration)
    }
}

/// Where the leaves of a scan come from: from what the access knows, then from a cursor if there is
/// one.
pub(super) struct Leaves<'i> {
    kept: KeptScan,
    cursor: Option<IndexScan<'i>>,
}
