//! The operations: how records are found, and what is done to them through the access.

use kiln_history::WriteKind;
use kiln_storage::error::{Error, SqlState, Subject};
use kiln_storage::record::RecordRef;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, Found, Index, Table};
use kiln_storage::types::{Style, format_value_in};

use super::{DEAD_RETRIES_MAX, Executor, Stopped};
use crate::access::{
    AbortCause, Access, Halt, Handle, Inserted, LookupSite, Recalled, Sought, Stop, Visit,
};
use crate::analysis::Observed;
use crate::code::{Columns, Defer, Insert, Lookup};
use crate::frame;
use crate::ir::*;

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
    let style = memory.heap.style().cloned();
    let style = Style::read(style.as_deref().unwrap_or_default());
    for column in definition.key_columns() {
        let column_definition = &schema.columns[column.index()];
        names.push(column_definition.label().into_owned());
        let value = frame::to_value(
            &memory.heap,
            value(column.index()),
            &column_definition.data_type,
        );
        values.push(match value {
            // One that is equal to others: NULLS NOT DISTINCT.
            kiln_storage::types::Value::Null => "null".to_owned(),
            value => format_value_in(&value, &column_definition.data_type, &style),
        });
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
