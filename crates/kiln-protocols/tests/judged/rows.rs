//! The table of trials, and its first rows.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::Arc;
use kiln_procedure::{Arguments, ProgramBuilder};
use kiln_protocols::{Outcome, Worker};
use kiln_storage::schema::*;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

pub const ID: ColumnId = ColumnId(0);
pub(super) const CODE: ColumnId = ColumnId(1);
pub(super) const LEFT: ColumnId = ColumnId(2);
pub(super) const RIGHT: ColumnId = ColumnId(3);
pub const NOTE: ColumnId = ColumnId(4);

/// Positions of the table's indexes.
pub(super) const BY_ID: u16 = 0;
pub(super) const BY_CODE: u16 = 1;
pub(super) const BY_LEFT: u16 = 2;
pub(super) const BY_ID_HASHED: u16 = 3;
pub(super) const BY_CODE_HASHED: u16 = 4;

pub fn table() -> Arc<Table> {
    let column = |name: &str, data_type: DataType| Column {
        name: name.to_owned(),
        data_type,
        not_null: true,
        default: None,
        domain: None,
        generated: None,
    };
    let schema = TableSchema {
        name: "item".to_owned(),
        columns: vec![
            column("id", DataType::Integer),
            column("code", DataType::Integer),
            column("left", DataType::BigInt),
            column("right", DataType::BigInt),
            column("note", DataType::Text),
        ],
        primary_key: vec![ID],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    let ordered = IndexKind::Ordered {
        partition_columns: 0,
    };
    let index = |name: &str, columns, unique, kind| IndexDefinition {
        name: name.to_owned(),
        columns,
        unique,
        constraint: false,
        partial: false,
        nulls_equal: false,
        deferral: Default::default(),
        method: IndexMethod::BTree,
        kind,
    };
    let indexes = vec![
        index("item_code", vec![CODE], true, ordered),
        index("item_left", vec![LEFT], false, ordered),
        index("item_hash", vec![ID], true, IndexKind::Hash),
        index("item_code_hash", vec![CODE], true, IndexKind::Hash),
    ];
    Arc::new(Table::new(TableId(1), schema, 0, indexes).expect("a table like others"))
}

/// Each row of so many.
pub fn populate(table: &Arc<Table>, worker: &mut Worker, keys: usize, every: usize) {
    let mut b = ProgramBuilder::new("populate", [("id".to_owned(), DataType::Integer)]);
    let items = b.table(table);
    let zero = b.constant(DataType::BigInt, Value::BigInt(0));
    let note = b.constant(DataType::Text, Value::Text("first".to_owned()));
    let id = b.parameter(0);
    b.insert(items, &[id, id, zero, zero, note], None, None);
    let program = Arc::new(b.finish());
    for id in (0..keys as i32).step_by(every) {
        let mut arguments = Arguments::from_values(&[Value::Integer(id)]);
        arguments.bind(&program).expect("one number");
        let outcome = worker.call(&program, &arguments, None);
        assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
    }
}

/// Every index has the same records, which are there to stay, each under its row's key.
pub(super) fn check_indexes(table: &Table) {
    let records = |index: &kiln_storage::table::Index| {
        let mut records = Vec::new();
        index.for_each(|record| records.push(record.address()));
        records.sort_unstable();
        records
    };
    let all = records(&table.indexes()[0]);
    let mut heap = kiln_storage::slot::Heap::new();
    for index in table.indexes() {
        assert_eq!(records(index), all, "{}", index.definition().name);
        index.for_each(|record| {
            let tid = record.tid().load(Ordering::Acquire);
            assert_eq!(
                tid >> 61,
                0,
                "a record is locked, absent or dead at the end"
            );
            let key = table.entry_key_of(index, table.row(record), &mut heap);
            let found = index.find_key(&key.expect("keys are short"));
            let found = found.expect("there is an entry under the row's key");
            assert!(!found.is_moving() && found.record() == record);
        });
    }
}
