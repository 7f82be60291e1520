//! What lies in a cache line, in words.

use kiln_procedure::frame::to_value;
use kiln_sql::Database;
use kiln_storage::record::{HEADER_BYTES, RecordRef};
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;
use kiln_storage::types::format_value;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// The name of the line at `address`: the record, by table and key, and the part of it, or the
/// index, or what the memory was named when it was taken.
pub(crate) fn of_line(database: &Database, address: usize) -> String {
    let catalog = database.engine().catalog();
    for (_, table) in catalog.tables() {
        if let Some(name) = in_table(table, address) {
            return name;
        }
        for index in table.indexes() {
            if let Some(part) = index.part_at(address) {
                return format!("index {}: {part}", index.definition().name);
            }
        }
    }
    // A named object may begin within the line.
    let words = (address..address + LINE_BYTES).step_by(8);
    words
        .into_iter()
        .find_map(kiln_platform::sim::name_of)
        .unwrap_or_else(|| "unnamed".to_owned())
}

/// The name of the line if it belongs to a record of the table.
fn in_table(table: &Table, address: usize) -> Option<String> {
    let stride = table.slab().cell_stride();
    // A line may hold the end of one record and the beginning of the next: the header is what is
    // hot.
    let cells = [address, address + LINE_BYTES - 1];
    let cells = cells.map(|address| table.slab().cell_at(address));
    let with_header = |cell: &usize| (address..address + LINE_BYTES).contains(cell);
    let cell = cells.into_iter().flatten().find(with_header);
    let cell = cell.or(cells[0])?;
    let part = if with_header(&cell) {
        "header".to_owned()
    } else {
        let from = address.saturating_sub(cell + HEADER_BYTES);
        let to = (address + LINE_BYTES).min(cell + stride) - cell - HEADER_BYTES;
        columns(table, from, to)
    };
    Some(format!(
        "{}[{}].{part}",
        table.schema().name,
        key(table, cell)
    ))
}

/// The primary key of the record in a cell, its columns separated by commas.
fn key(table: &Table, cell: usize) -> String {
    let Some(cell) = std::ptr::NonNull::new(cell as *mut u8) else {
        return String::new();
    };
    // SAFETY: the cell is one of the table's slab, and the table lives.
    let record = unsafe { RecordRef::from_cell(cell) };
    let schema = table.schema();
    let mut heap = Heap::new();
    let columns = schema.primary_key.iter().map(|column| {
        let slot = table.column_value(*column, table.row(record), &mut heap);
        let data_type = &schema.columns[column.index()].data_type;
        format_value(&to_value(&heap, slot, data_type), data_type)
    });
    columns.collect::<Vec<_>>().join(",")
}

/// The columns of a row that lie between two distances from its start.
fn columns(table: &Table, from: usize, to: usize) -> String {
    let schema = table.schema();
    let within = schema.columns.iter().enumerate().filter(|(number, _)| {
        let column = kiln_storage::schema::ColumnId(*number as u16);
        let (start, end) = table.layout().column(column).byte_range();
        start < to && end > from
    });
    let names: Vec<&str> = within.map(|(_, column)| &*column.name).collect();
    names.join("+")
}
