//! Rows hold what was stored in them, and keys sort as their values do.

mod rows;

use std::cmp::Ordering as Order;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::random::Random;
use kiln_storage::index::{ByteKey, Key};
use kiln_storage::key::{KeyFault, KeyField, KeyLayout, KeyWidth, PackedKey};
use kiln_storage::layout::{Blob, RowLayout, is_spilled, resolve};
use kiln_storage::schema::{Column, ColumnId, ColumnSet};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, DataType, Decimal, Number};

use rows::{column, is_bytes, is_key, random_slot, same, types};

#[test]
fn columns_hold_what_was_stored_and_leave_their_neighbours_alone() {
    let seed = 7;
    let mut random = Random::from_seed(seed);
    for round in 0..60 {
        let mut columns: Vec<Column> = types()
            .into_iter()
            .chain(types())
            .map(|data_type| column(data_type, random.percent(50.0)))
            .collect();
        random.shuffle(&mut columns);
        let layout = RowLayout::new(&columns, round % 2 == 0);
        let row: Vec<AtomicU64> = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
        let copy: Vec<AtomicU64> = (0..layout.words())
            .map(|_| AtomicU64::new(random.next_u64()))
            .collect();
        let mut heap = Heap::new();
        let mut expected = vec![None; columns.len()];
        if let Some(access) = layout.row_number() {
            access.store(&row, Slot::from_i64(-5), &heap);
        }
        for _ in 0..400 {
            let position = random.below(columns.len());
            let definition = &columns[position];
            let slot = match !definition.not_null && random.percent(20.0) {
                true => Slot::NULL,
                false => random_slot(&definition.data_type, &mut random, &mut heap),
            };
            let access = layout.column(ColumnId(position as u16));
            if expected[position].is_some()
                && let Some(blob) = access.blob(&row)
            {
                // SAFETY: only this thread uses the row.
                unsafe { Blob::free(blob) };
            }
            access.store(&row, slot, &heap);
            expected[position] = Some(slot);
        }
        let all: ColumnSet = (0..columns.len())
            .filter(|&position| expected[position].is_some())
            .map(|position| ColumnId(position as u16))
            .collect();
        layout.copy(all, &row, &copy);
        for from in [&row, &copy] {
            for column in all.iter() {
                let position = column.index();
                let mut loaded_heap = Heap::new();
                let mut loaded = layout.column(column).load(from, &mut loaded_heap);
                if is_spilled(loaded) {
                    // SAFETY: only this thread uses the row.
                    loaded = unsafe { resolve(loaded, &mut loaded_heap) };
                }
                let wanted = expected[position].expect("in the set");
                let data_type = &columns[position].data_type;
                assert!(
                    same(data_type, loaded, &loaded_heap, wanted, &heap),
                    "seed {seed}, round {round}, column {position} of type {data_type}"
                );
            }
        }
        if let Some(access) = layout.row_number() {
            assert_eq!(access.load(&row, &mut heap).as_i64(), -5);
        }
        for blob in layout.blobs(all, &row) {
            // SAFETY: only this thread uses the row.
            unsafe { Blob::free(blob) };
        }
    }
}

#[test]
fn torn_rows_give_values_and_no_faults() {
    let mut random = Random::from_seed(3);
    let columns: Vec<Column> = types()
        .into_iter()
        .map(|data_type| column(data_type, false))
        .collect();
    let layout = RowLayout::new(&columns, false);
    for _ in 0..2_000 {
        let row: Vec<AtomicU64> = (0..layout.words())
            .map(|_| AtomicU64::new(random.next_u64()))
            .collect();
        let mut heap = Heap::new();
        for access in layout.columns() {
            let slot = access.load(&row, &mut heap);
            if !slot.is_null() && !is_spilled(slot) {
                assert!(slot.span().1 <= u32::MAX as usize);
            }
        }
    }
}

fn compare(data_type: &DataType, a: Slot, b: Slot, heap: &Heap) -> Order {
    match (a.is_null(), b.is_null()) {
        (false, false) => match data_type {
            DataType::Numeric { .. } => heap.number(a).cmp(&heap.number(b)),
            DataType::Double | DataType::Catalog(CatalogType::Real) => {
                a.as_f64().partial_cmp(&b.as_f64()).expect("no NaN here")
            }
            data_type if is_bytes(data_type) => heap.bytes(a).cmp(heap.bytes(b)),
            _ => a.as_i64().cmp(&b.as_i64()),
        },
        (a, b) => a.cmp(&b),
    }
}

fn check_order<K: PackedKey>(layout: &KeyLayout, columns: &[Column], random: &mut Random) {
    let mut heap = Heap::new();
    let mut rows = Vec::new();
    while rows.len() < 300 {
        let row: Vec<Slot> = columns
            .iter()
            .map(|column| match !column.not_null && random.percent(15.0) {
                true => Slot::NULL,
                false => random_slot(&column.data_type, random, &mut heap),
            })
            .collect();
        let key = layout.entry::<K>(&heap, |_, field| {
            row[field.column.expect("columns only").index()]
        });
        match key {
            Ok(key) => rows.push((key, row)),
            Err(fault) => {
                assert_eq!(fault, KeyFault::TooLong);
                rows.push((K::MAX, Vec::new()));
            }
        }
    }
    rows.retain(|(_, row)| !row.is_empty());
    assert!(!rows.is_empty());
    for (a_key, a) in &rows {
        for (b_key, b) in &rows {
            let by_value = columns
                .iter()
                .enumerate()
                .map(|(position, column)| {
                    compare(&column.data_type, a[position], b[position], &heap)
                })
                .find(|order| order.is_ne())
                .unwrap_or(Order::Equal);
            assert_eq!(a_key.cmp(b_key), by_value, "{columns:?}");
        }
        if a.iter().all(|slot| !slot.is_null()) {
            let point = layout.point::<K>(&heap, a.iter().copied());
            assert_eq!(point, Ok(*a_key));
        }
        let first = || a[..1].iter().copied();
        if !a[0].is_null() {
            let low = layout
                .prefix::<K>(&heap, first(), false)
                .expect("it fitted before");
            let high = layout
                .prefix::<K>(&heap, first(), true)
                .expect("it fitted before");
            assert!(low <= *a_key && *a_key <= high);
        }
    }
}

#[test]
fn keys_sort_as_their_values_do() {
    let mut random = Random::from_seed(11);
    for round in 0..80 {
        let mut types = types();
        types.retain(is_key);
        random.shuffle(&mut types);
        let columns: Vec<Column> = types
            .into_iter()
            .take(1 + round % 4)
            .map(|data_type| column(data_type, random.percent(60.0)))
            .collect();
        let ids: Vec<ColumnId> = (0..columns.len()).map(|at| ColumnId(at as u16)).collect();
        let layout = KeyLayout::new(&columns, &ids, &[], false, (true, ids.len()));
        match layout.width() {
            KeyWidth::Word => check_order::<u64>(&layout, &columns, &mut random),
            KeyWidth::DoubleWord => check_order::<u128>(&layout, &columns, &mut random),
            KeyWidth::Bytes64 => check_order::<ByteKey<8>>(&layout, &columns, &mut random),
            KeyWidth::Bytes256 => check_order::<ByteKey<32>>(&layout, &columns, &mut random),
        }
    }
}

#[test]
fn keys_of_numbers_of_every_size_sort_as_they_do() {
    let texts = [
        "-Infinity",
        "-1e131000",
        "-3e60000",
        "-1.5e49151",
        "-1e49150",
        "-1000000000000000000000000000000000000000000000000001",
        "-1e50",
        "-12345678901234567890123456789012345678.5",
        "-12345678901234567890123456789012345678",
        "-1",
        "-1e-70",
        "-1e-16383",
        "0",
        "1e-16383",
        "1e-70",
        "0.999999999999999999999999999999999999999",
        "1",
        "1.00000000000000000000000000000000000000000001",
        "1.1",
        "12345678901234567890123456789012345678",
        "12345678901234567890123456789012345678.5",
        "12345678901234567890123456789012345679",
        "1e50",
        "1000000000000000000000000000000000000000000000000001",
        "1e49150",
        "1.5e49151",
        "3e60000",
        "1e131000",
        "Infinity",
        "NaN",
    ];
    for precision_scale in [None, Some((1000, 0))] {
        let columns = [column(DataType::Numeric { precision_scale }, true)];
        let layout = KeyLayout::new(&columns, &[ColumnId(0)], &[], false, (true, 1));
        let mut heap = Heap::new();
        let key = |number: &Number, heap: &mut Heap| {
            let slot = heap.push_number(number);
            let key = layout.point::<ByteKey<32>>(heap, [slot].into_iter());
            key.expect("256 bytes are enough")
        };
        let mut keys = Vec::new();
        for text in texts {
            let number: Number = text.parse().expect("a number");
            let found = key(&number, &mut heap);
            // Zeros behind the point do not count.
            if number.scale().is_some_and(|scale| scale < 10_000) {
                let more = number.try_add(&"0e-100".parse().expect("a zero"));
                assert_eq!(key(&more.expect("it fits"), &mut heap), found, "{text}");
            }
            keys.push(found);
        }
        assert!(keys.is_sorted_by(|one, other| one < other));
    }
}

#[test]
fn values_outside_a_column_make_no_key() {
    let columns = [
        column(DataType::SmallInt, true),
        column(DataType::numeric(6, 2), true),
    ];
    let layout = KeyLayout::new(&columns, &[ColumnId(0), ColumnId(1)], &[], false, (true, 2));
    assert_eq!(layout.width(), KeyWidth::Word);
    let heap = Heap::new();
    let decimal = |text: &str| Slot::from_decimal(Decimal::parse(text).expect("a number"));
    let point = |first: i64, second: &str| {
        layout.point::<u64>(&heap, [Slot::from_i64(first), decimal(second)].into_iter())
    };
    assert!(point(32767, "-9999.99").is_ok());
    assert_eq!(point(32768, "1"), Err(KeyFault::Above));
    assert_eq!(point(-32769, "1"), Err(KeyFault::Below));
    assert_eq!(point(1, "1.005"), Err(KeyFault::Between));
    assert_eq!(point(1, "1.500"), point(1, "1.5"));
    let null = layout.point::<u64>(&heap, [Slot::NULL, decimal("1")].into_iter());
    assert_eq!(null, Err(KeyFault::Null));
    assert_eq!(
        layout.prefix::<u64>(&heap, std::iter::empty(), true),
        Ok(u64::MAX)
    );
    assert_eq!(u64::MIN, <u64 as Key>::MIN);
}

#[test]
fn keys_are_described_by_their_values() {
    let column = |data_type: DataType, not_null| Column {
        name: "c".to_owned(),
        data_type,
        not_null,
        default: None,
        domain: None,
        generated: None,
    };
    let numeric = DataType::Numeric {
        precision_scale: Some((6, 2)),
    };
    let columns = [
        column(DataType::Integer, true),
        column(numeric, false),
        column(DataType::VarChar(Some(20)), true),
        column(DataType::Bytea, true),
        column(DataType::Double, true),
    ];
    let mut heap = Heap::new();
    let slots = [
        Slot::from_i64(-7),
        Slot::NULL,
        heap.push_str("abc"),
        heap.push_bytes(&[1, 0, 2]),
        Slot::from_f64(-2.5),
    ];
    let amount = Slot::from_decimal(Decimal::new(-1_250, 2).expect("a small number"));
    let describe = |of: &[u16], slots: &[Slot], trimmed: bool| {
        let of: Vec<ColumnId> = of.iter().map(|column| ColumnId(*column)).collect();
        let layout = KeyLayout::new(&columns, &of, &[], false, (true, of.len()));
        let value = |position: usize, _: &KeyField| slots[position];
        let mut bytes = Vec::new();
        match layout.width() {
            KeyWidth::Word => {
                (layout.entry::<u64>(&heap, value).expect("it fits")).append_bytes(&mut bytes)
            }
            KeyWidth::DoubleWord => {
                (layout.entry::<u128>(&heap, value).expect("it fits")).append_bytes(&mut bytes)
            }
            KeyWidth::Bytes64 => {
                let key = layout.entry::<ByteKey<8>>(&heap, value);
                key.expect("it fits").append_bytes(&mut bytes);
            }
            KeyWidth::Bytes256 => {
                let key = layout.entry::<ByteKey<32>>(&heap, value);
                key.expect("it fits").append_bytes(&mut bytes);
            }
        }
        while trimmed && bytes.last() == Some(&0) {
            bytes.pop();
        }
        layout.describe(&bytes)
    };
    for trimmed in [false, true] {
        assert_eq!(describe(&[0], &slots[..1], trimmed), "-7");
        assert_eq!(
            describe(&[0, 1], &[slots[0], amount], trimmed),
            "-7, -12.50"
        );
        assert_eq!(describe(&[0, 1], &slots[..2], trimmed), "-7, NULL");
        assert_eq!(
            describe(&[0, 1, 2, 3, 4], &slots, trimmed),
            "-7, NULL, abc, \\x010002, -2.5"
        );
        assert_eq!(describe(&[4], &slots[4..], trimmed), "-2.5");
    }
}
