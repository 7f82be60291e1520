//! Rows as bytes, from their values and back again: those of an insertion.

mod rows;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::random::Random;
use kiln_storage::bytes::Reader;
use kiln_storage::error::{Error, SqlState};
use kiln_storage::journal::{Change, ChangeKind, Commit};
use kiln_storage::layout::Blob;
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::record::RecordRef;
use kiln_storage::redo::{append_row, read_row};
use kiln_storage::schema::{Column, ColumnId, ColumnSet, TableId, TableSchema};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::{EntryKey, Table};
use kiln_storage::types::{DataType, Decimal, Value};

use rows::{column, random_slot, same, types};

/// The words of a record before its row.
const HEADER_WORDS: usize = 2;

/// Before the row of an insertion: version and number of changes, and the change's form and table.
const BEFORE_ROW_BYTES: usize = 12 + 5;

fn table(columns: Vec<Column>, primary_key: Vec<ColumnId>) -> Table {
    let schema = TableSchema {
        name: "t".to_owned(),
        columns,
        primary_key,
        primary_key_name: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        partition_by: None,
    };
    Table::new(TableId(7), schema, 0, Vec::new()).expect("a row fits")
}

fn value_of(slot: Slot, data_type: &DataType, heap: &Heap) -> Value {
    if slot.is_null() {
        return Value::Null;
    }
    let number = slot.as_i64();
    match data_type {
        DataType::Boolean => Value::Boolean(slot.as_bool()),
        DataType::SmallInt => Value::SmallInt(number as i16),
        DataType::Integer => Value::Integer(number as i32),
        DataType::BigInt => Value::BigInt(number),
        DataType::Double => Value::Double(slot.as_f64()),
        DataType::Date => Value::Date(number as i32),
        DataType::Timestamp => Value::Timestamp(number),
        DataType::TimestampTz => Value::TimestampTz(number),
        DataType::Numeric { .. } => Value::Numeric(slot.as_decimal()),
        DataType::Bytea => Value::Bytea(heap.bytes(slot).to_vec()),
        DataType::Uuid => Value::Uuid(heap.bytes(slot).try_into().expect("16 bytes")),
        _ => Value::Text(heap.str(slot).to_owned()),
    }
}

/// What the insertion of a row with these values appends, and its key.
fn inserted(table: &Table, slots: &[Slot], number: i64, heap: &Heap) -> (Vec<u8>, EntryKey) {
    let layout = table.layout();
    let words = HEADER_WORDS + layout.words();
    let cell: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
    let row = &cell[HEADER_WORDS..];
    if let Some(access) = layout.row_number() {
        access.store(row, Slot::from_i64(number), heap);
    }
    for (access, slot) in layout.columns().iter().zip(slots) {
        access.store(row, *slot, heap);
    }
    // SAFETY: it is a record's header and a row of the table, this thread's own, and outlives the change.
    let change = unsafe {
        let record = RecordRef::from_address(cell.as_ptr().addr() as u64);
        let all = ColumnSet::first(slots.len());
        Change::new(table, record, ChangeKind::Insert, all, 1)
    };
    let key = change.key(&mut Heap::new());
    let mut bytes = Vec::new();
    let commit = Commit {
        epoch: LogEpoch(1),
        version: 1,
        changes: &[change],
    };
    commit.append(&mut bytes);
    for blob in layout.blobs(layout.spilling(), row) {
        // SAFETY: only this thread uses the row.
        unsafe { Blob::free(blob) };
    }
    (bytes.split_off(BEFORE_ROW_BYTES), key)
}

#[test]
fn rows_are_those_of_insertions_and_come_back_whatever_their_types() {
    let seed = 17;
    let mut random = Random::from_seed(seed);
    for round in 0..300 {
        let context = format!("seed {seed}, round {round}");
        // Also with more than 64 columns.
        let types = (0..1 + round % 5).flat_map(|_| types());
        let types = types.chain([DataType::TimestampTz]);
        let not_null_percent = [50.0, 100.0, 0.0][round % 3];
        let mut columns: Vec<Column> = types
            .map(|data_type| column(data_type, random.percent(not_null_percent)))
            .collect();
        random.shuffle(&mut columns);
        let at = random.below(columns.len());
        let is_key = |definition: &Column| {
            let data_type = &definition.data_type;
            round % 2 == 0 && !matches!(data_type, DataType::VarChar(_) | DataType::Text)
        };
        let key = match is_key(&columns[at]) {
            true => {
                columns[at].not_null = true;
                vec![ColumnId(at as u16)]
            }
            false => Vec::new(),
        };
        let table = table(columns.clone(), key);
        let mut heap = Heap::new();
        let slots: Vec<Slot> = columns
            .iter()
            .map(
                |definition| match !definition.not_null && random.percent(30.0) {
                    true => Slot::NULL,
                    false => random_slot(&definition.data_type, &mut random, &mut heap),
                },
            )
            .collect();
        let definitions = columns.iter().zip(&slots);
        let values: Vec<Value> = definitions
            .map(|(definition, slot)| value_of(*slot, &definition.data_type, &heap))
            .collect();
        let number = table.layout().row_number().map(|_| -5);
        let mut bytes = b"before".to_vec();
        append_row(&table, &values, number, &mut bytes).expect("they are of these types");
        let (expected, key) = inserted(&table, &slots, -5, &heap);
        assert_eq!(bytes[6..], expected, "{context}");
        assert_eq!(bytes[..6], *b"before");

        bytes.extend_from_slice(b"after");
        let mut reader = Reader::new(&bytes[6..]);
        let mut into = Heap::new();
        let mut found = None;
        let read = read_row(&table, &mut reader, &mut into, |row, into| {
            assert_eq!(
                (row.kind, &row.key),
                (ChangeKind::Insert, &key),
                "{context}"
            );
            assert_eq!(row.table.id(), table.id());
            for (at, (column, slot)) in row.values.iter().enumerate() {
                assert_eq!(column.index(), at);
                let data_type = &columns[at].data_type;
                let is_same = same(data_type, *slot, into, slots[at], &heap);
                assert!(is_same, "{context}, column {at} of type {data_type}");
            }
            found = Some(row.values.len());
            Ok(())
        });
        assert_eq!((read, found), (Ok(()), Some(columns.len())));
        assert_eq!(reader.rest(), b"after");
        assert_eq!(into.used_bytes(), 0, "what the heap got is gone");
    }
}

#[test]
fn long_and_short_texts_come_back() {
    let definitions = vec![
        column(DataType::Text, true),
        column(DataType::Text, false),
        column(DataType::Bytea, true),
        column(DataType::Char(3), true),
    ];
    let table = table(definitions, Vec::new());
    for length in [0, 1, 22, 23, 24, 300, 70_000, 3_000_000] {
        let values = [
            Value::Text("x".repeat(length)),
            Value::Text("é".repeat(length)),
            Value::Bytea(vec![0; length]),
            Value::Text("€€€".to_owned()),
        ];
        let mut bytes = Vec::new();
        append_row(&table, &values, Some(i64::MAX), &mut bytes).expect("they fit");
        let (mut reader, mut heap) = (Reader::new(&bytes), Heap::new());
        let read = read_row(&table, &mut reader, &mut heap, |row, heap| {
            for (column, slot) in row.values {
                let data_type = &table.schema().columns[column.index()].data_type;
                assert!(value_of(*slot, data_type, heap) == values[column.index()]);
            }
            Ok(())
        });
        assert_eq!(read, Ok(()));
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            let mut reader = Reader::new(&bytes[..cut]);
            let read = read_row(&table, &mut reader, &mut heap, |_, _| Ok(()));
            let error = read.expect_err("bytes are missing");
            assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
        }
    }
}

#[test]
fn values_that_no_row_has_are_refused_and_leave_nothing() {
    let decimal =
        |mantissa, scale| Value::Numeric(Decimal::new(mantissa, scale).expect("it has few digits"));
    let text = |text: &str| Value::Text(text.to_owned());
    let cases = [
        (DataType::Integer, Value::SmallInt(1)),
        (DataType::Integer, Value::BigInt(1)),
        (DataType::Integer, Value::Null),
        (DataType::Date, Value::Integer(1)),
        (DataType::Timestamp, Value::TimestampTz(1)),
        (DataType::Boolean, text("t")),
        (DataType::numeric(4, 2), decimal(1, 1)),
        (DataType::numeric(4, 2), decimal(10_000, 2)),
        (DataType::numeric(12, 2), decimal(1, 3)),
        (DataType::NUMERIC, Value::Double(1.0)),
        (DataType::Char(2), text("abc")),
        (DataType::VarChar(Some(2)), text("éée")),
        (DataType::Text, text("a\0b")),
        (DataType::Text, Value::Bytea(b"abc".to_vec())),
        (DataType::Text, Value::Null),
        (DataType::Bytea, text("abc")),
        (DataType::Uuid, Value::Bytea(vec![0; 16])),
    ];
    let refused = |table: &Table, values: &[Value], number| -> Error {
        let mut bytes = b"before".to_vec();
        let error = append_row(table, values, number, &mut bytes);
        let error = error.expect_err("no row has these values");
        assert_eq!(error.state(), SqlState::INTERNAL_ERROR, "{error}");
        assert_eq!(bytes, b"before");
        error
    };
    for (data_type, value) in cases {
        let columns = vec![
            column(DataType::BigInt, true),
            column(data_type.clone(), true),
        ];
        let table = table(columns, Vec::new());
        let error = refused(&table, &[Value::BigInt(1), value], Some(1));
        assert!(error.message().contains(&data_type.to_string()), "{error}");
    }
    let columns = vec![column(DataType::BigInt, true)];
    let numbered = table(columns.clone(), Vec::new());
    let keyed = table(columns, vec![ColumnId(0)]);
    let value = || Value::BigInt(1);
    refused(&numbered, &[value()], None);
    refused(&keyed, &[value()], Some(1));
    refused(&keyed, &[value(), value()], None);
    refused(&keyed, &[], None);
}
