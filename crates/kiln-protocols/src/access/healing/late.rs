//! Rows that stay out of the indexes until all is validated.
//!
//! The paper inserts in the read phase, and lets attempts share a record that is there for a key
//! without a row (§4.7.1). Its entries in other indexes would differ from attempt to attempt. So
//! rows that the procedure itself does not look for
//! ([`Analysis::inserts_late`](kiln_procedure::analysis::Analysis)) wait here instead, each in a
//! record that only its attempt knows, and come into the indexes when nothing can change any more
//! but by them. When one is refused then, or when the procedure raises, which may have come of a
//! row that would have been refused before, the program runs again and inserts where it stands.

use kiln_platform::spin;
use kiln_procedure::access::Inserted;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Stop};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{COLUMNS_MAX, ColumnId, TableId};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{EntryKey, Table};

use super::Healing;
use crate::shared::links::{self, Linked};
use crate::shared::optimistic::record_lock::EXCLUSIVE;
use crate::shared::optimistic::{LOCK_SPINS_MAX, WriteKind};

/// A row that is in no index yet.
struct Waiting {
    table: *const Table,
    record: RecordRef,
    number: i64,
    /// The position of its write.
    write: u32,
}

/// The rows of an attempt that wait for its commit.
pub(super) struct Late {
    /// Whether the program may insert late.
    pub is_allowed: bool,
    /// Whether the attempt inserts late.
    pub is_on: bool,
    waiting: Vec<Waiting>,
    /// Records of earlier runs of the attempt, to be used again.
    spare: Vec<(*const Table, RecordRef, i64)>,
    /// The columns of a row, to make its keys of.
    memory: Memory,
    /// The registers of those columns.
    registers: Vec<Reg>,
}

impl Default for Late {
    fn default() -> Late {
        Late {
            is_allowed: false,
            is_on: false,
            waiting: Vec::new(),
            spare: Vec::new(),
            memory: Memory::default(),
            registers: (0..COLUMNS_MAX as u16).map(Reg).collect(),
        }
    }
}

impl Late {
    /// Whether rows wait.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a record is in no use at present.
    pub fn is_spare(&self, record: RecordRef) -> bool {
        (self.spare.iter()).any(|&(_, spare, _)| spare == record)
    }

    /// Loads the columns of a row by which its indexes know it.
    fn load_keys(&mut self, table: &Table, record: RecordRef) {
        let Memory { slots, heap, .. } = &mut self.memory;
        heap.clear();
        slots.clear();
        slots.resize(table.schema().columns.len(), Slot::NULL);
        for column in table.indexed_columns().iter() {
            slots[column.index()] = table.column_value(column, table.row(record), heap);
        }
    }
}

impl Healing {
    /// Inserts a row that waits for the commit.
    pub(super) fn insert_late(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &Memory,
    ) -> Result<Inserted, Stop> {
        let spare = (self.late.spare.iter()).position(|&(of, _, _)| std::ptr::eq(of, table));
        let (record, number) = match spare {
            Some(spare) => {
                let (_, record, number) = self.late.spare.swap_remove(spare);
                let (layout, row) = (table.layout(), table.row(record));
                for blob in layout.blobs(layout.spilling(), row) {
                    links::retire_blob(blob, &self.sets.participant);
                }
                for (column, value) in values.iter().enumerate() {
                    let slot = memory.slots[value.0 as usize];
                    let access = layout.column(ColumnId(column as u16));
                    access.store(row, slot, &memory.heap);
                }
                (record, number)
            }
            None => {
                // Locked before others can find it, so that it can be written when they do.
                let (flags, aux) = (Tid::ABSENT, Some(EXCLUSIVE));
                let participant = &self.sets.participant;
                let made = links::create(table, values, memory, flags, aux, participant)?;
                self.sets.protocol.locks.note(made.0);
                made
            }
        };
        let handle = self.sets.enter_new(table, record);
        self.late.waiting.push(Waiting {
            table,
            record,
            number,
            write: self.sets.writes.len() as u32 - 1,
        });
        Ok(Inserted::New(handle))
    }

    /// Puts the rows that wait into the indexes.
    ///
    /// # Errors
    /// An [`AbortCause`] when one cannot be there; [`Healing::asks`] says whether the program finds
    /// out why.
    pub(super) fn link_late(&mut self) -> Result<(), AbortCause> {
        // In the order in which they were inserted, which indexes like best.
        self.late.waiting.reverse();
        while let Some(waiting) = self.late.waiting.pop() {
            let Waiting {
                table,
                record,
                number,
                ..
            } = waiting;
            // SAFETY: the engine keeps a table while a transaction that uses it runs.
            let table = unsafe { &*table };
            self.late.load_keys(table, record);
            let registers = &self.late.registers[..table.schema().columns.len()];
            let memory = &self.late.memory;
            let linked = self.sets.link_new(table, record, registers, number, memory);
            let cause = match linked {
                Ok(Linked::All) => continue,
                Ok(Linked::Exists(_, other)) => {
                    // Another attempt that commits is about to decide whether there is a row.
                    let is_decided = || {
                        let tid = Tid(other.tid().load(kiln_platform::atomic::Ordering::Acquire));
                        !tid.is_locked() && !tid.is_absent()
                            || self.sets.written.get(other).is_some()
                    };
                    self.asks = spin::until(LOCK_SPINS_MAX, is_decided);
                    self.late.is_on &= !self.asks;
                    AbortCause::KeyInTransit
                }
                Err(Stop::Abort(AbortCause::Phantom)) => {
                    self.asks = true;
                    AbortCause::Phantom
                }
                Err(Stop::Abort(cause)) => cause,
                Err(Stop::Raise(_)) => {
                    self.asks = true;
                    self.late.is_on = false;
                    AbortCause::ReadValidation
                }
            };
            return Err(cause);
        }
        Ok(())
    }

    /// Whether no row that waits would be refused, as things are. What that relies on becomes a
    /// part of what is validated.
    pub(super) fn are_late_welcome(&mut self) -> bool {
        /// More rows than this are not compared with each other.
        const COMPARED_MAX: usize = 64;
        if self.late.waiting.len() > COMPARED_MAX {
            return false;
        }
        let mut keys: Vec<(*const Table, usize, EntryKey)> = Vec::new();
        for at in 0..self.late.waiting.len() {
            let Waiting {
                table,
                record,
                number,
                ..
            } = self.late.waiting[at];
            // SAFETY: as in `link_late`.
            let table_of = unsafe { &*table };
            self.late.load_keys(table_of, record);
            let Memory { slots, heap, .. } = &self.late.memory;
            for (position, index) in table_of.indexes().iter().enumerate() {
                if !index.definition().unique {
                    continue;
                }
                let key = index.entry_key(heap, |_, field| match field.column {
                    Some(column) => slots[column.index()],
                    None => Slot::from_i64(number),
                });
                let Ok(key) = key else { return false };
                if keys.iter().any(|known| {
                    std::ptr::eq(known.0, table) && known.1 == position && known.2 == key
                }) {
                    return false;
                }
                match index.guard_key(&key) {
                    Ok(node) if self.sets.nodes.guard(node).is_ok() => {}
                    _ => return false,
                }
                keys.push((table, position, key));
            }
        }
        true
    }

    /// Takes the rows that wait out of the attempt's writes, before these are taken back. No other
    /// attempt knows their records, which the next run uses again.
    pub(super) fn spare_late(&mut self) {
        self.spare_late_if(|_| true);
    }

    /// The same of the rows of one table. Whether there were any.
    pub(super) fn spare_late_of(&mut self, table: TableId) -> bool {
        self.spare_late_if(|of| of.id() == table)
    }

    fn spare_late_if(&mut self, is_meant: impl Fn(&Table) -> bool) -> bool {
        let Healing { late, sets, .. } = self;
        let rows = late.waiting.len();
        late.waiting.retain(|waiting| {
            // SAFETY: as in `link_late`.
            if !is_meant(unsafe { &*waiting.table }) {
                return true;
            }
            let write = &mut sets.writes[waiting.write as usize];
            write.kind = WriteKind::Lost;
            sets.items[write.item as usize].note.give_up();
            let spare = (waiting.table, waiting.record, waiting.number);
            late.spare.push(spare);
            false
        });
        late.waiting.len() < rows
    }

    /// Gives up the rows that wait, and the records that were to be used again.
    pub(super) fn drop_late(&mut self) {
        self.spare_late();
        for (table, record, _) in self.late.spare.drain(..) {
            // SAFETY: as in `link_late`.
            links::retire(unsafe { &*table }, record, &self.sets.participant);
        }
    }
}
