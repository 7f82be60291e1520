//! The operations: how records are found, and what is done to them through the access.

use kiln_history::WriteKind;
use kiln_storage::error::{Error, SqlState, Subject};
use kiln_storage::index::LeafBatch;
use kiln_storage::record::RecordRef;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, Found, Index, IndexScan, RangeValues, Table};

use super::journey::{Level, ScanLevel};
use super::{DEAD_RETRIES_MAX, Executor, Leave, Stopped};
use crate::access::{
    AbortCause, Access, Halt, Handle, Inserted, KeptScan, LookupSite, Recalled, Sought, SoughtScan,
    Stop, Visit,
};
use crate::analysis::Observed;
use crate::code::{
    Columns, Defer, Foreseen, Insert, Label, Lookup, PREFETCH_ITERATIONS_MAX, PREFETCH_PARTS_MAX,
    Prefetch, PrefetchedLookup, Scan,
};
use crate::frame::{self, Frame};
use crate::ir::*;

/// Where the leaves of a scan come from: from what the access knows, then from a cursor if there is
/// one.
struct Leaves<'i> {
    kept: KeptScan,
    cursor: Option<IndexScan<'i>>,
}

impl<'a, A: Access> Executor<'a, A> {
    /// The handle in a record register.
    #[inline(always)]
    pub(super) fn handle(&self, record: RecordReg) -> Handle {
        self.frame.records[record.0 as usize].expect("a verified program found this record")
    }

    #[inline(always)]
    pub(super) fn set_handle(&mut self, record: RecordReg, handle: Handle) {
        self.frame.records[record.0 as usize] = Some(handle);
    }

    /// What was asked for, or the note that it was not done.
    #[inline(always)]
    pub(super) fn noted<T, H: Into<Halt>>(&mut self, result: Result<T, H>) -> Result<T, Stopped> {
        match result {
            Ok(value) => Ok(value),
            Err(halt) => Err(self.halt(halt.into())),
        }
    }

    /// Meets the record of an index entry, if the entry is the one that counts.
    #[inline(always)]
    pub(super) fn meet(
        &mut self,
        table: &Table,
        index: usize,
        entry: Entry,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Stopped> {
        let record = if entry.is_moving() || self.access.moves_entries() {
            let resolved = self.access.resolve(table, index, entry);
            match self.noted(resolved)? {
                Some(record) => record,
                None => return Ok(Visit::Absent),
            }
        } else {
            entry.record()
        };
        let visit = self.access.visit(table, record, intent, observed);
        self.noted(visit)
    }

    /// Meets the record that an index look-up finds, or guards its absence; says which.
    #[inline(never)]
    pub(super) fn lookup(&mut self, lookup: &Lookup) -> Result<bool, Stopped> {
        if !A::HAS_HANDLES {
            return self.lookup_sought(lookup);
        }
        match self.handle_ahead(lookup) {
            Some(handle) => {
                self.set_handle(lookup.record, handle);
                self.set(lookup.found, Slot::TRUE);
                Ok(true)
            }
            None => self.lookup_without_handle(lookup),
        }
    }

    /// The handle that the access has ready for a look-up.
    #[inline(always)]
    pub(super) fn handle_ahead(&mut self, lookup: &Lookup) -> Option<Handle> {
        let site = self.site(lookup)?;
        self.access.handle_at(site, &lookup.table, lookup.index)
    }

    #[inline(never)]
    fn lookup_without_handle(&mut self, lookup: &Lookup) -> Result<bool, Stopped> {
        self.lookup_sought(lookup)
    }

    #[inline(always)]
    fn lookup_sought(&mut self, lookup: &Lookup) -> Result<bool, Stopped> {
        match self.recall(lookup)? {
            None => {
                let is_there = self.lookup_foreseen(lookup);
                self.access.looked_up();
                is_there
            }
            Some(Recalled::Found(handle)) => {
                self.set_handle(lookup.record, handle);
                self.set(lookup.found, Slot::TRUE);
                Ok(true)
            }
            Some(Recalled::Absent(_) | Recalled::Missing) => {
                self.set(lookup.found, Slot::FALSE);
                Ok(false)
            }
        }
    }

    /// What the access knows of a look-up without an index.
    #[inline(always)]
    pub(super) fn recall(&mut self, lookup: &Lookup) -> Result<Option<Recalled>, Stopped> {
        let sought = Sought {
            op: lookup.op,
            table: &lookup.table,
            index: lookup.index,
            key: &lookup.key,
            intent: lookup.intent,
            observed: &lookup.observed,
            site: self.site(lookup),
            is_known: lookup.is_known,
        };
        let recalled = self.access.recall(&sought, &self.frame.memory);
        match self.noted(recalled)? {
            // Whatever depends on it does not run again.
            None if lookup.is_known => Err(self.stop(AbortCause::ReadValidation.into())),
            recalled => Ok(recalled),
        }
    }

    #[inline(always)]
    fn lookup_foreseen(&mut self, lookup: &Lookup) -> Result<bool, Stopped> {
        // Found by a prefetch, and nothing moves: without all that other look-ups need.
        if let Some(foreseen) = lookup.foreseen
            && let Some(entry) = self.sighted(foreseen)
            && !entry.is_moving()
            && !self.access.moves_entries()
        {
            let (record, observed) = (entry.record(), &lookup.observed);
            let visit = (self.access).visit(&lookup.table, record, lookup.intent, observed);
            if let Visit::Present(handle) = self.noted(visit)?
                && !lookup.table.indexes()[lookup.index].moves()
            {
                self.set_handle(lookup.record, handle);
                self.set(lookup.found, Slot::TRUE);
                return Ok(true);
            }
        }
        self.lookup_anew(lookup)
    }

    #[inline(never)]
    pub(super) fn lookup_anew(&mut self, lookup: &Lookup) -> Result<bool, Stopped> {
        let table = &*lookup.table;
        let index = &table.indexes()[lookup.index];
        for retries in 0_u32.. {
            if retries >= DEAD_RETRIES_MAX {
                if self.access.gives_up() {
                    break;
                }
                kiln_platform::thread::yield_now();
            }
            let begun = self.moment();
            let is_there = match find(&self.frame.memory, index, &lookup.key) {
                Found::Entry(entry) => {
                    let visit =
                        self.meet(table, lookup.index, entry, lookup.intent, &lookup.observed)?;
                    if index.moves() && !is_found(&self.frame.memory, index, &lookup.key, entry) {
                        // The record went on to another key before it was met.
                        kiln_platform::spin::hint();
                        continue;
                    }
                    match visit {
                        Visit::Present(handle) => {
                            self.set_handle(lookup.record, handle);
                            if begun.is_some() {
                                let key = |position: usize| lookup.key[position];
                                self.record_found(table, lookup.index, key, handle);
                            }
                            true
                        }
                        Visit::Absent => {
                            if let Some(begun) = begun {
                                let key = &lookup.key;
                                self.record_missing(table, lookup.index, key, begun, Some(entry));
                            }
                            false
                        }
                        Visit::Dead => {
                            kiln_platform::spin::hint();
                            continue;
                        }
                    }
                }
                Found::Missing(node) => {
                    let guarded = self.access.guard(table, lookup.index, node);
                    self.noted(guarded)?;
                    if let Some(begun) = begun {
                        self.record_missing(table, lookup.index, &lookup.key, begun, None);
                    }
                    false
                }
                Found::Never => false,
            };
            self.set(lookup.found, Slot::from_bool(is_there));
            return Ok(is_there);
        }
        Err(self.stop(AbortCause::KeyInTransit.into()))
    }

    #[inline(always)]
    fn site(&self, lookup: &Lookup) -> Option<LookupSite> {
        if let Some(given) = lookup.given {
            return LookupSite::of(given.ordinal, usize::from(given.iteration));
        }
        let foreseen = lookup.foreseen?;
        let (iteration, first) = (self.get(foreseen.iteration), self.get(foreseen.first));
        let iteration = iteration.as_i64().wrapping_sub(first.as_i64()) as usize;
        LookupSite::of(foreseen.ordinal?, iteration)
    }

    /// Makes the look-ups of a loop that does nothing else, in the order of its iterations, where
    /// its prefetch has done its work.
    #[inline(never)]
    pub(super) fn meet_all(&mut self, prefetch: &Prefetch, body: Label) -> Leave {
        let (first, last) = (self.get(prefetch.first), self.get(prefetch.last));
        match Slot::either_null(first, last) {
            true => Leave::Iteration,
            false => self.meet_from(prefetch, body, first.as_i64(), 0),
        }
    }

    /// As [`Executor::meet_all`], from this look-up of this iteration on.
    pub(super) fn meet_from(
        &mut self,
        prefetch: &Prefetch,
        body: Label,
        iteration: i64,
        lookup: usize,
    ) -> Leave {
        let (first, last) = (self.get(prefetch.first), self.get(prefetch.last));
        let (first, last) = (first.as_i64(), last.as_i64());
        let mut lookup = lookup;
        for iteration in iteration..=last {
            while let Some(prefetched) = prefetch.lookups.get(lookup) {
                if self.meet_foreseen(prefetched, iteration, first).is_err() {
                    if !A::TRAVELS || !matches!(self.halt, Some(Halt::Leaves)) {
                        return Leave::Stop;
                    }
                    if (iteration, lookup) == (first, 0) {
                        // Its records are asked for where it begins.
                        return self.leave_before(body - 1);
                    }
                    self.halt = None;
                    self.away_in(Level::Foreseen {
                        body,
                        iteration,
                        lookup,
                    });
                    return Leave::Away;
                }
                if A::TRAVELS {
                    self.access.has_done();
                }
                lookup += 1;
            }
            lookup = 0;
            self.frame.iterations_until_check -= 1;
            if self.frame.iterations_until_check == 0 && !self.is_within_limits() {
                return Leave::Stop;
            }
        }
        Leave::Iteration
    }

    /// Makes a look-up of an iteration of a loop whose iterations begin with `first`.
    #[inline(always)]
    fn meet_foreseen(
        &mut self,
        prefetched: &PrefetchedLookup,
        iteration: i64,
        first: i64,
    ) -> Result<(), Stopped> {
        let Some((lookup, ordinal)) = &prefetched.met else {
            return Ok(());
        };
        let at = iteration.wrapping_sub(first) as usize;
        if let Some(site) = LookupSite::of(*ordinal, at)
            && let Some(sighting) = self.frame.sightings[prefetched.first_sighting + at]
            && let Some(payload) = sighting.payload()
        {
            // SAFETY: the payload is of an index of a living table.
            let entry = unsafe { Entry::from_payload(payload) };
            if !entry.is_moving() {
                let (table, record) = (&*lookup.table, entry.record());
                let (intent, observed) = (lookup.intent, &lookup.observed);
                let memory = &self.frame.memory;
                let value_of =
                    |position: usize| Part::of(memory, &prefetched.key[position]).at(iteration);
                (self.access).seek_ahead(site, table, lookup.index, value_of);
                let visit = self.access.visit(table, record, intent, observed);
                if let Visit::Present(_) = self.noted(visit)? {
                    return Ok(());
                }
            }
        }
        self.meet_iteration(lookup, &prefetched.key, iteration)
    }

    /// Makes the look-up of one iteration of a loop as the loop would.
    #[inline(never)]
    fn meet_iteration(
        &mut self,
        lookup: &Lookup,
        key: &[PrefetchKey],
        iteration: i64,
    ) -> Result<(), Stopped> {
        for (register, part) in lookup.key.iter().zip(key) {
            let value = Part::of(&self.frame.memory, part).at(iteration);
            if !matches!(part, PrefetchKey::Register(_)) {
                self.set(*register, value);
            }
        }
        self.lookup(lookup).map(|_| ())
    }

    /// The entry that a prefetch found for this iteration, if it is certain that a look-up would
    /// find it.
    #[inline(always)]
    fn sighted(&self, foreseen: Foreseen) -> Option<Entry> {
        let (iteration, first) = (self.get(foreseen.iteration), self.get(foreseen.first));
        let iteration = iteration.as_i64().wrapping_sub(first.as_i64()) as usize;
        if iteration >= PREFETCH_ITERATIONS_MAX {
            return None;
        }
        let payload = self.frame.sightings[foreseen.first_sighting + iteration]?.payload()?;
        // SAFETY: the payload is of an index of a living table.
        Some(unsafe { Entry::from_payload(payload) })
    }

    #[inline(never)]
    pub(super) fn read(&mut self, read: &Columns) -> Result<(), Stopped> {
        let (handle, memory) = self.frame.record_and_memory(read.record);
        let done = self.access.read(&read.table, handle, &read.columns, memory);
        match done {
            Ok(()) => Ok(()),
            Err(halt) => {
                // No region catches the error of an update that was deferred to the commit.
                self.is_final |= matches!(halt, Halt::Stop(Stop::Raise(_)));
                Err(self.halt(halt))
            }
        }
    }

    #[inline(never)]
    pub(super) fn update(&mut self, update: &Columns) -> Result<(), Stopped> {
        let (handle, memory) = self.frame.record_and_memory(update.record);
        let done = self
            .access
            .update(&update.table, handle, &update.columns, memory);
        self.noted(done)
    }

    /// Leaves an update to the commit; says no when it must run as it stands.
    #[inline(never)]
    pub(super) fn defer(&mut self, defer: &Defer) -> Result<bool, Stopped> {
        let mut guard = defer.guard.iter();
        if guard.any(|register| self.get(*register).is_null()) {
            return Ok(false);
        }
        if !defer.indexed.is_empty() {
            let (handle, memory) = self.frame.record_and_memory(defer.record);
            let done = self
                .access
                .update(&defer.table, handle, &defer.indexed, memory);
            let handle = *handle;
            self.noted(done)?;
            if self.access.history().is_some() {
                let columns = defer.indexed.iter().copied();
                self.records_operation(defer.op);
                self.record_write(&defer.table, handle.record, WriteKind::Update, columns);
            }
        }
        let (handle, memory) = self.frame.record_and_memory(defer.record);
        let done = self.access.defer(
            &defer.table,
            handle,
            &defer.updater,
            &defer.operands,
            memory,
        );
        self.noted(done)?;
        Ok(true)
    }

    #[inline(never)]
    pub(super) fn delete(&mut self, table: TableRef, record: RecordReg) -> Result<(), Stopped> {
        let table = &*self.program.tables[table.0 as usize];
        let (handle, memory) = self.frame.record_and_memory(record);
        let done = self.access.delete(table, handle, memory);
        self.noted(done)
    }

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

    /// Inserts a record; says no when one is in its way, which is what the insert asked to be told.
    #[inline(never)]
    pub(super) fn insert(&mut self, insert: &Insert) -> Result<bool, Stopped> {
        let Insert {
            table,
            values,
            record,
            conflict,
            ..
        } = insert;
        let inserted = self.access.insert(table, values, &mut self.frame.memory);
        match self.noted(inserted)? {
            Inserted::New(handle) => {
                self.set_handle(*record, handle);
                if let Some(conflict) = conflict {
                    self.set(conflict.inserted, Slot::TRUE);
                }
                Ok(true)
            }
            Inserted::Exists { index, handle } => self.exists(insert, index, handle),
        }
    }

    /// What an insert does when a unique index has the key of its row for another one. Says whether
    /// the row was written all the same.
    #[cold]
    fn exists(&mut self, insert: &Insert, index: usize, handle: Handle) -> Result<bool, Stopped> {
        let Insert {
            table,
            values,
            record,
            conflict,
            ..
        } = insert;
        if self.access.history().is_some() {
            let columns = &table.indexes()[index].definition().columns;
            let key = |position: usize| values[columns[position].index()];
            self.record_found(table, index, key, handle);
        }
        match *conflict {
            Some(conflict) if conflict.index.is_none_or(|only| only as usize == index) => {
                self.set_handle(*record, handle);
                self.set(conflict.inserted, Slot::FALSE);
                return Ok(false);
            }
            Some(Conflict {
                index: Some(only),
                inserted,
            }) => {
                // The row is in the way of two others: as PostgreSQL, which looks at the index of
                // ON CONFLICT first, go on with the one that is caught.
                let columns = &table.indexes()[only as usize].definition().columns;
                let key = columns.iter().map(|column| values[column.index()]);
                let lookup = Lookup {
                    // Never asked for by itself: the access does not hear of it.
                    op: OpId(u16::MAX),
                    table: table.clone(),
                    index: only as usize,
                    key: key.collect(),
                    record: *record,
                    found: inserted,
                    intent: Intent::Write,
                    // Nothing is known of what follows: all of it is observed.
                    observed: Observed::all(table.schema().columns.len()),
                    foreseen: None,
                    given: None,
                    is_known: false,
                };
                if self.lookup_anew(&lookup)? {
                    self.set(inserted, Slot::FALSE);
                    return Ok(false);
                }
            }
            _ => {}
        }
        let memory = &self.frame.memory;
        let written = self.access.write_over(table, values, &handle, memory);
        if self.noted(written)? {
            self.set_handle(*record, handle);
            if let Some(conflict) = conflict {
                self.set(conflict.inserted, Slot::TRUE);
            }
            return Ok(true);
        }
        let slots = &self.frame.memory.slots;
        let error = unique_violation(table, index, &self.frame.memory, |column| {
            slots[values[column].0 as usize]
        });
        Err(self.stop(error.into()))
    }

    /// Keeps a record's handle in a register: the address in the lower word, the access's note in
    /// the upper one, shifted past the NULL flag.
    pub(super) fn save_record(&mut self, target: Reg, record: RecordReg) {
        let handle = self.handle(record);
        let note = (handle.note as u64) << 8;
        self.set(target, Slot::from_words(handle.record.address(), note));
    }

    /// The opposite.
    pub(super) fn restore_record(&mut self, record: RecordReg, source: Reg) {
        let (address, note) = self.get(source).words();
        let handle = Handle {
            // SAFETY: verified programs restore only what `SaveRecord` wrote in this run.
            record: unsafe { RecordRef::from_address(address) },
            note: (note >> 8) as u32,
        };
        self.set_handle(record, handle);
    }
}

/// Looks a key up. Apart from the rest of a look-up, as the code for all kinds of keys is large.
#[inline(never)]
fn find(memory: &Memory, index: &Index, key: &[Reg]) -> Found {
    let Memory { slots, heap, .. } = memory;
    index.get(heap, key.iter().map(|register| slots[register.0 as usize]))
}

/// Whether a look-up still leads to this entry.
fn is_found(memory: &Memory, index: &Index, key: &[Reg], entry: Entry) -> bool {
    matches!(find(memory, index, key), Found::Entry(now) if now == entry)
}

/// Where the part of a foreseen key comes from, as far as it is the same in all iterations.
#[derive(Clone, Copy)]
enum Part<'m> {
    Fixed(Slot),
    Iteration,
    /// The element at the iteration, from 1; NULL outside.
    Elements(&'m [Slot]),
}

impl<'m> Part<'m> {
    fn of(memory: &'m Memory, part: &PrefetchKey) -> Part<'m> {
        let slot = |register: Reg| memory.slots[register.0 as usize];
        match *part {
            PrefetchKey::Register(register) => Part::Fixed(slot(register)),
            PrefetchKey::Variable => Part::Iteration,
            PrefetchKey::Element(array) => Part::Elements(match slot(array) {
                array if array.is_null() => &[],
                array => memory.heap.array(array),
            }),
        }
    }

    #[inline(always)]
    fn at(self, iteration: i64) -> Slot {
        match self {
            Part::Fixed(slot) => slot,
            Part::Iteration => Slot::from_i64(iteration),
            // What is below 1 becomes a position that no array has.
            Part::Elements(elements) => {
                let element = elements.get((iteration as usize).wrapping_sub(1));
                element.copied().unwrap_or(Slot::NULL)
            }
        }
    }
}

/// The parts of a foreseen key.
fn parts<'m>(memory: &'m Memory, lookup: &PrefetchedLookup) -> [Part<'m>; PREFETCH_PARTS_MAX] {
    let mut parts = [Part::Iteration; PREFETCH_PARTS_MAX];
    for (target, part) in parts.iter_mut().zip(&lookup.key) {
        *target = Part::of(memory, part);
    }
    parts
}

/// The values of a foreseen key in one iteration.
struct IterationValues<'p, 'm> {
    parts: std::slice::Iter<'p, Part<'m>>,
    iteration: i64,
}

impl Iterator for IterationValues<'_, '_> {
    type Item = Slot;

    #[inline(always)]
    fn next(&mut self) -> Option<Slot> {
        self.parts.next().map(|part| part.at(self.iteration))
    }
}

/// The values of a foreseen key in the iterations from `first` on.
#[inline(always)]
fn iteration_values<'p, 'm>(
    parts: &'p [Part<'m>],
    first: i64,
) -> impl Fn(usize) -> IterationValues<'p, 'm> {
    move |at| IterationValues {
        parts: parts.iter(),
        iteration: first + at as i64,
    }
}

/// Asks for the index entries and records of the iterations of a loop, and notes what it finds.
/// `is_run_soon`: see [`Remembering::is_run_soon`](crate::access::Remembering::is_run_soon).
pub(super) fn prefetch(frame: &mut Frame, prefetch: &Prefetch, is_run_soon: bool) {
    let Frame {
        memory,
        prefetch_keys: keys,
        sightings,
        ..
    } = frame;
    let memory = &*memory;
    let bound = |register: Reg| memory.slots[register.0 as usize];
    let (first, last) = (bound(prefetch.first), bound(prefetch.last));
    if Slot::either_null(first, last) {
        return;
    }
    let (first, last) = (first.as_i64(), last.as_i64());
    let iterations = last.saturating_sub(first).saturating_add(1);
    let iterations = iterations.clamp(0, PREFETCH_ITERATIONS_MAX as i64) as usize;
    keys.clear();
    for lookup in &prefetch.lookups {
        let index = &lookup.table.indexes()[lookup.index];
        let parts = parts(memory, lookup);
        let parts = &parts[..lookup.key.len()];
        index.prefetch_each(
            &memory.heap,
            iterations,
            iteration_values(parts, first),
            keys,
        );
    }
    for (number, lookup) in prefetch.lookups.iter().enumerate() {
        let index = &lookup.table.indexes()[lookup.index];
        let keys = &keys[number * iterations..][..iterations];
        let sightings = &mut sightings[lookup.first_sighting..][..iterations];
        let parts = parts(memory, lookup);
        let parts = &parts[..lookup.key.len()];
        index.sight_each(
            &memory.heap,
            keys,
            iteration_values(parts, first),
            |at, sighting| {
                sightings[at] = sighting;
                let Some(sighting) = sighting else { return };
                // SAFETY: the payload is of an index of a living table.
                let entry = unsafe { Entry::from_payload(sighting.seen_payload()) };
                let record = entry.record();
                let touched = match is_run_soon {
                    true => lookup.touched_by_all,
                    false => lookup.touched,
                };
                record.fetch(touched.lines_at(record));
            },
        );
    }
}

/// Forgets what a prefetch found in an earlier run: its loop may look for other keys now.
pub(super) fn forget_sightings(frame: &mut Frame, prefetch: &Prefetch) {
    for lookup in &prefetch.lookups {
        frame.sightings[lookup.first_sighting..][..PREFETCH_ITERATIONS_MAX].fill(None);
    }
}

/// PostgreSQL's error for a key that is there already; `value` gives the new row's columns.
#[cold]
pub fn unique_violation(
    table: &Table,
    index: usize,
    memory: &Memory,
    value: impl Fn(usize) -> Slot,
) -> Error {
    let definition = table.indexes()[index].definition();
    let schema = table.schema();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in definition.key_columns() {
        let column_definition = &schema.columns[column.index()];
        names.push(column_definition.label().into_owned());
        let value = frame::to_value(
            &memory.heap,
            value(column.index()),
            &column_definition.data_type,
        );
        values.push(kiln_storage::types::format_value(
            &value,
            &column_definition.data_type,
        ));
    }
    Error::new(
        SqlState::UNIQUE_VIOLATION,
        format!(
            "duplicate key value violates unique constraint \"{}\"",
            definition.name
        ),
    )
    .with_detail(format!(
        "Key ({})=({}) already exists.",
        names.join(", "),
        values.join(", ")
    ))
    .about(Subject::table(&schema.name).with_constraint(&definition.name))
}
