//! The access of a reconnaissance that collects ranges: that of records, which is told of all that
//! happens, and besides what each look-up, scan and change asks for.

use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, Planning, Recalled, Recording, Remembering, Scanning, Sought,
    Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Halt, Handle, Stop};
use kiln_storage::index::NodeVersion;
use kiln_storage::layout::is_spilled;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::{COLUMNS_MAX, ColumnId, ColumnSet};
use kiln_storage::slot::{Heap, Memory, Slot};
use kiln_storage::table::{Entry, Index, IndexScan, Table};

use super::claim::RangeClaim;
use super::plan::{Naming, RangePlan};
use crate::canary::Canary;
use crate::shared::planning::Demand;
use crate::shared::planning::reconnaissance::Reconnaissance;

/// See the module's documentation.
pub struct RangeReconnaissance<'a, N> {
    records: Reconnaissance<'a>,
    plan: &'a mut RangePlan<N>,
    /// For the keys of records.
    heap: &'a mut Heap,
}

impl<'a, N: Naming> RangeReconnaissance<'a, N> {
    /// Collects into `plan`, over an access that follows the procedure.
    pub fn new(
        records: Reconnaissance<'a>,
        plan: &'a mut RangePlan<N>,
        heap: &'a mut Heap,
    ) -> Self {
        RangeReconnaissance {
            records,
            plan,
            heap,
        }
    }

    fn claim(
        &mut self,
        table: &Table,
        space: usize,
        points: (u128, u128),
        exclusive: bool,
    ) -> Result<(), AbortCause> {
        charge(Work::Record);
        match (self.plan).claim(RangeClaim::new(table, space, points, exclusive)) {
            true => Ok(()),
            // The caller does not hear of it.
            false => Err(AbortCause::FootprintMiss),
        }
    }

    /// The keys of a record, of whose row others may be writing.
    fn claim_keys(&mut self, table: &Table, record: RecordRef) -> Result<(), AbortCause> {
        for (position, space) in table.key_spaces().iter().enumerate() {
            let index = &table.indexes()[space.index];
            self.heap.clear();
            let point = key_of(table, index, record, self.heap, |_| None);
            if let Some(point) = point {
                self.claim(table, position, (point, point), true)?;
            }
        }
        Ok(())
    }
}

/// The key that an index has for a row that others may be writing, when it gets those values that
/// `written` gives; none where that is outside of the row.
fn key_of(
    table: &Table,
    index: &Index,
    record: RecordRef,
    heap: &mut Heap,
    written: impl Fn(ColumnId) -> Option<Slot>,
) -> Option<u128> {
    let row = table.row(record);
    let mut values = [Slot::NULL; COLUMNS_MAX + 1];
    for (value, field) in values.iter_mut().zip(index.key_layout().fields()) {
        *value = match (field.column, table.layout().row_number()) {
            (Some(column), _) => match written(column) {
                Some(slot) => slot,
                None => table.layout().column(column).load(row, heap),
            },
            (None, Some(number)) => number.load(row, heap),
            (None, None) => return None,
        };
        // No reader may follow its pointer.
        if is_spilled(*value) {
            return None;
        }
    }
    index.entry_lead(heap, |at, _| values[at])
}

impl<N: Naming> Access for RangeReconnaissance<'_, N> {
    fn begin(&mut self) {
        self.records.begin();
    }

    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        // In the only space of its table it was found by the key that is locked.
        if intent == Intent::Write && table.key_spaces().len() > 1 {
            self.claim_keys(table, record)?;
        }
        self.records.visit(table, record, intent, observed)
    }

    fn guard(&mut self, table: &Table, index: usize, node: NodeVersion) -> Result<(), AbortCause> {
        self.records.guard(table, index, node)
    }

    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.records.read(table, handle, columns, memory)
    }

    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        let changed: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        if table.indexed_columns().intersects(changed) && !Reconnaissance::is_new(handle) {
            let Memory { slots, heap, .. } = &mut *memory;
            for (position, space) in table.key_spaces().iter().enumerate() {
                let index = &table.indexes()[space.index];
                if !index.columns().intersects(changed) {
                    continue;
                }
                let written = |column: ColumnId| {
                    let update = columns.iter().find(|(updated, _)| *updated == column);
                    update.map(|(_, register)| slots[register.0 as usize])
                };
                if let Some(point) = key_of(table, index, handle.record, heap, written) {
                    self.claim(table, position, (point, point), true)?;
                }
            }
        }
        self.records.update(table, handle, columns, memory)
    }

    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        for (position, space) in table.key_spaces().iter().enumerate() {
            let index = &table.indexes()[space.index];
            let mut fields = index.key_layout().fields().iter();
            // A number that the row gets when it is made is in no key before.
            if fields.any(|field| field.column.is_none()) {
                continue;
            }
            let point = index.entry_lead(&memory.heap, |_, field| match field.column {
                Some(column) => memory.slots[values[column.index()].0 as usize],
                None => Slot::NULL,
            });
            if let Some(point) = point {
                self.claim(table, position, (point, point), true)?;
            }
        }
        self.records.insert(table, values, memory)
    }

    fn delete(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.records.delete(table, handle, memory)
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.records.bring_back(table, handle, values, memory)
    }

    fn moves_entries(&self) -> bool {
        self.records.moves_entries()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        self.records.resolve(table, index, entry)
    }

    fn commit(&mut self) -> Result<(), Stop> {
        self.records.commit()
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        self.records.confirm()
    }

    fn roll_back(&mut self) {
        self.records.roll_back();
    }
}

impl<N: Naming> Remembering for RangeReconnaissance<'_, N> {
    #[inline]
    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        let index = &sought.table.indexes()[sought.index];
        let values = sought.key.iter();
        let values = values.map(|register| memory.slots[register.0 as usize]);
        if let Some(point) = index.point_lead(&memory.heap, values) {
            let space = sought.table.key_space_of(sought.index);
            let exclusive = sought.intent == Intent::Write;
            self.claim(sought.table, space, (point, point), exclusive)?;
        }
        self.records.recall(sought, memory)
    }

    #[inline]
    fn looked_up(&mut self) {
        self.records.looked_up();
    }
}

impl<N: Naming> Scanning for RangeReconnaissance<'_, N> {
    fn begins_scan(
        &mut self,
        table: &Table,
        index: usize,
        scan: &IndexScan<'_>,
        intent: Intent,
    ) -> Result<(), AbortCause> {
        let Some(points) = scan.leads() else {
            return Ok(());
        };
        if Canary::RangeNotLocked.sings() && intent == Intent::Read {
            return Ok(());
        }
        let space = table.key_space_of(index);
        self.claim(table, space, points, intent == Intent::Write)
    }
}

impl<N: Naming> Planning for RangeReconnaissance<'_, N> {}
impl<N: Naming> Travelling for RangeReconnaissance<'_, N> {}
impl<N: Naming> Deferring for RangeReconnaissance<'_, N> {}
impl<N: Naming> Recording for RangeReconnaissance<'_, N> {}
impl<N: Naming> Flawed for RangeReconnaissance<'_, N> {}
