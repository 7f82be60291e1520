//! Any bytes are read as a commit, or refused as damaged, and nothing panics: each value that is
//! read can be kept in its column.
//!
//! Table 1 has columns of all types and a primary key of two of them, table 2 none.

#![no_main]

#[path = "../../crates/kiln-storage/tests/rows/mod.rs"]
#[allow(dead_code, reason = "the tests of the storage use all of it")]
mod rows;

use std::cell::LazyCell;

use kiln_storage::bytes::Reader;
use kiln_storage::error::SqlState;
use kiln_storage::redo::read_commit;
use kiln_storage::schema::{Column, ColumnId, TableId, TableSchema};
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use libfuzzer_sys::fuzz_target;
use rows::{column, is_bytes, types};

thread_local! {
    static TABLES: LazyCell<[Table; 2]> = LazyCell::new(|| {
        // Integers, and the last column, a text.
        let key = vec![ColumnId(2), ColumnId(types().len() as u16)];
        [table(1, key), table(2, Vec::new())]
    });
}

fn table(id: u32, primary_key: Vec<ColumnId>) -> Table {
    let columns = types().into_iter().enumerate();
    let columns = columns.map(|(at, data_type)| column(data_type, at % 3 == 2));
    let schema = TableSchema {
        name: format!("t{id}"),
        columns: columns
            .chain([column(DataType::VarChar(Some(16)), true)])
            .collect(),
        primary_key,
        primary_key_name: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    Table::new(TableId(id), schema, 0, Vec::new()).expect("a row fits")
}

fn check(column: &Column, slot: kiln_storage::slot::Slot, heap: &Heap) {
    assert!(!slot.is_null() || !column.not_null);
    match &column.data_type {
        _ if slot.is_null() => {}
        DataType::Numeric { .. } => assert!(!slot.as_decimal().to_string().is_empty()),
        DataType::Uuid => assert_eq!(heap.bytes(slot).len(), 16),
        DataType::Bytea => _ = heap.bytes(slot),
        data_type if is_bytes(data_type) => assert!(!heap.str(slot).contains('\0')),
        _ => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    TABLES.with(|tables| {
        let of_number = |id: TableId| tables.iter().find(|table| table.id() == id);
        let (mut reader, mut heap) = (Reader::new(bytes), Heap::new());
        let read = read_commit(&mut reader, of_number, &mut heap, |change, heap| {
            for (number, slot) in change.values {
                check(&change.table.schema().columns[number.index()], *slot, heap);
            }
            Ok(())
        });
        if let Err(error) = read {
            assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{error}");
        }
    });
});
