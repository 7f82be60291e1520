//! Updates that change keys: the entries of a record move in its indexes.

use kiln_procedure::executor::unique_violation;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Stop};
use kiln_storage::error::Error;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{EntryKey, Table};

use super::{InPlace, is_deleted};
use crate::shared::index_changes::{Changed, Touched};

/// The most fields of a key.
const MAX_FIELDS: usize = kiln_storage::schema::COLUMNS_MAX + 1;

impl InPlace {
    /// Moves the entries of a record held exclusively whose keys change when `columns` are written.
    /// Returns the record in the way, and the index, when a unique index refuses.
    ///
    /// # Errors
    /// As [`InPlace::update`].
    #[cold]
    pub(super) fn move_entries(
        &mut self,
        table: &Table,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        changed: ColumnSet,
        memory: &mut Memory,
        mut noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<Option<(usize, RecordRef)>, Stop> {
        for (position, index) in table.indexes().iter().enumerate() {
            if !index.columns().intersects(changed) {
                continue;
            }
            let old = table.entry_key_of(index, table.row(record), &mut memory.heap)?;
            let new = InPlace::new_key(table, position, record, columns, memory)?;
            // A record that comes back from its deletion may have lost its key meanwhile.
            if old == new && self.changes.is_empty() {
                continue;
            }
            let deleted = &self.deleted;
            let moved = self.changes.change(
                table,
                position,
                record,
                (Some(old), new),
                &self.participant,
                &mut self.recorder,
                |other| is_deleted(deleted, other),
                &mut noted,
            )?;
            if let Changed::Taken(other) = moved {
                let update = (columns, changed);
                self.move_back(table, record, update, position, memory, noted)?;
                return Ok(Some((position, other)));
            }
        }
        Ok(None)
    }

    /// Moves the entries of a record back that an update has moved in the indexes before the one
    /// that refuses it.
    fn move_back(
        &mut self,
        table: &Table,
        record: RecordRef,
        (columns, changed): (&[(ColumnId, Reg)], ColumnSet),
        refusing: usize,
        memory: &mut Memory,
        mut noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        for (position, index) in table.indexes()[..refusing].iter().enumerate() {
            if !index.columns().intersects(changed) {
                continue;
            }
            let old = table.entry_key_of(index, table.row(record), &mut memory.heap)?;
            let new = InPlace::new_key(table, position, record, columns, memory)?;
            if old == new {
                continue;
            }
            let deleted = &self.deleted;
            let moved = self.changes.change(
                table,
                position,
                record,
                (Some(new), old),
                &self.participant,
                &mut self.recorder,
                |other| is_deleted(deleted, other),
                &mut noted,
            )?;
            if let Changed::Taken(_) = moved {
                return Err(AbortCause::KeyInTransit.into());
            }
        }
        Ok(())
    }

    /// The key that a record held exclusively has in the index at `position` when `columns` are
    /// written.
    ///
    /// # Errors
    /// 54000 when the key is too long.
    pub fn new_key(
        table: &Table,
        position: usize,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<EntryKey, Error> {
        let (index, row) = (&table.indexes()[position], table.row(record));
        let mut present = [Slot::NULL; MAX_FIELDS];
        for (slot, field) in present.iter_mut().zip(index.key_layout().fields()) {
            *slot = table.field_value(field, row, &mut memory.heap);
        }
        index.entry_key(&memory.heap, |field_position, field| {
            let update = columns
                .iter()
                .find(|(column, _)| Some(*column) == field.column);
            update.map_or(present[field_position], |(_, register)| {
                memory.slots[register.0 as usize]
            })
        })
    }
}

/// 23505 for an update of `record` that a unique index refuses.
#[cold]
pub fn refused_update(
    table: &Table,
    index: usize,
    record: RecordRef,
    columns: &[(ColumnId, Reg)],
    memory: &mut Memory,
) -> Stop {
    let mut values = vec![Slot::NULL; table.schema().columns.len()];
    for &column in &table.indexes()[index].definition().columns {
        let update = columns.iter().find(|(updated, _)| *updated == column);
        values[column.index()] = match update {
            Some((_, register)) => memory.slots[register.0 as usize],
            None => table.column_value(column, table.row(record), &mut memory.heap),
        };
    }
    unique_violation(table, index, memory, |column| values[column]).into()
}
