//! What commits wrote, as bytes and back again.

#[cfg(not(kiln_sim))]
mod counted;
mod rows;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::random::Random;
use kiln_storage::bytes::Reader;
use kiln_storage::error::SqlState;
use kiln_storage::journal::{Change, ChangeKind, Commit};
use kiln_storage::layout::Blob;
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::record::RecordRef;
use kiln_storage::redo::read_commit;
use kiln_storage::schema::{Column, ColumnId, ColumnSet, TableId, TableSchema};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::{EntryKey, Table};
use kiln_storage::types::{DataType, Decimal};

use rows::{column, is_bytes, is_key, random_slot, same, types};

fn table(id: u32, columns: Vec<Column>, primary_key: Vec<ColumnId>) -> Table {
    let schema = TableSchema {
        name: format!("t{id}"),
        columns,
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

/// A record, and a row beside it, with random values, those of some types and short ones in the
/// key.
struct Row {
    cell: Box<[AtomicU64]>,
    image: Box<[AtomicU64]>,
    heap: Heap,
    /// What is in the record's row, and in the image.
    values: [Vec<Slot>; 2],
}

/// The words of a record before its row.
const HEADER_WORDS: usize = 2;

impl Row {
    fn random(table: &Table, random: &mut Random) -> Row {
        let (layout, mut heap) = (table.layout(), Heap::new());
        let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let cell: Box<[AtomicU64]> = words(HEADER_WORDS + layout.words());
        let image: Box<[AtomicU64]> = words(layout.words());
        if let Some(access) = layout.row_number() {
            access.store(&cell[HEADER_WORDS..], Slot::from_i64(-5), &heap);
        }
        let values = [&cell[HEADER_WORDS..], &image[..]].map(|row| {
            let columns = table.schema().columns.iter().zip(layout.columns());
            let values = columns.map(|(definition, access)| {
                let slot = match !definition.not_null && random.percent(30.0) {
                    true => Slot::NULL,
                    false => random_slot(&definition.data_type, random, &mut heap),
                };
                // Also over what was there before, which a NULL leaves.
                if random.percent(50.0) && !definition.not_null && !is_bytes(&definition.data_type)
                {
                    let former = random_slot(&definition.data_type, random, &mut heap);
                    access.store(row, former, &heap);
                }
                access.store(row, slot, &heap);
                slot
            });
            values.collect()
        });
        Row {
            cell,
            image,
            heap,
            values,
        }
    }

    fn record(&self) -> RecordRef {
        // SAFETY: it is a record's header and a row of the table, and lives as long as this.
        unsafe { RecordRef::from_address(self.cell.as_ptr().addr() as u64) }
    }

    fn free(self, table: &Table) {
        let layout = table.layout();
        for row in [&self.cell[HEADER_WORDS..], &self.image[..]] {
            for blob in layout.blobs(layout.spilling(), row) {
                // SAFETY: only this thread uses the row.
                unsafe { Blob::free(blob) };
            }
        }
    }
}

/// What a value takes in the set of an update, written down apart from the code.
fn appended(column: &Column, slot: Slot, heap: &Heap) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !column.not_null {
        bytes.push(u8::from(!slot.is_null()));
    }
    if slot.is_null() {
        return bytes;
    }
    let (low, high) = slot.words();
    let length = match &column.data_type {
        DataType::Numeric { .. } if slot.is_long_in_heap() => {
            let value = heap.bytes(slot);
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&6_u64.to_le_bytes());
            bytes.extend_from_slice(value);
            return bytes;
        }
        data_type if is_bytes(data_type) => {
            let value = heap.bytes(slot);
            bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
            bytes.extend_from_slice(value);
            return bytes;
        }
        DataType::Boolean => 1,
        DataType::SmallInt => 2,
        DataType::Integer | DataType::Date => 4,
        DataType::Numeric {
            precision_scale: Some((..=9, _)),
        } => 4,
        DataType::Numeric {
            precision_scale: Some((..=18, _)),
        } => 8,
        DataType::Numeric { .. } => 16,
        _ => 8,
    };
    let words: Vec<u8> = [low.to_le_bytes(), high.to_le_bytes()].concat();
    bytes.extend_from_slice(&words[..length]);
    bytes
}

/// What one change appends in a commit, behind version and number.
fn bytes_of(change: Change) -> Vec<u8> {
    let (changes, mut bytes) = ([change], Vec::new());
    let commit = Commit {
        epoch: LogEpoch(1),
        version: 0x0102,
        order: 0x0102,
        changes: &changes,
        answer: None,
        command: None,
    };
    commit.append(&mut bytes);
    assert!(bytes.len() <= commit.bytes_max(), "{} bytes", bytes.len());
    // With the room that was named nothing is allocated; with less than what it takes nothing is
    // appended.
    let mut buffer = Vec::with_capacity(3 + commit.bytes_max());
    buffer.extend([7; 3]);
    let room = buffer.capacity();
    assert!(commit.append_within(&mut buffer));
    assert_eq!((&buffer[3..], buffer.capacity()), (&bytes[..], room));
    for capacity in [0, 5, 20, bytes.len() - 1, bytes.len()] {
        let mut buffer = Vec::with_capacity(capacity);
        let is_appended = commit.append_within(&mut buffer);
        assert_eq!((is_appended, buffer.len()), (false, 0), "{capacity} bytes");
    }
    assert_eq!(bytes[..12], [2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    bytes.split_off(12)
}

/// Reads what [`bytes_of`] returned, and says what was in it.
fn read(
    table: &Table,
    bytes: &[u8],
    heap: &mut Heap,
) -> (ChangeKind, EntryKey, Vec<(ColumnId, Slot)>) {
    let commit = [&[2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], bytes].concat();
    let mut reader = Reader::new(&commit);
    let (mut change, mut kept) = (None, Heap::new());
    let of_number = |id: TableId| (id == table.id()).then_some(table);
    let version = read_commit(&mut reader, of_number, heap, |read, heap| {
        let values = read.values.iter().map(|&(column, slot)| {
            let data_type = &table.schema().columns[column.index()].data_type;
            // What is in the heap goes with the change.
            let slot = match slot.has_bytes(is_bytes(data_type)) {
                true => kept.push_copy(slot, heap),
                false => slot,
            };
            (column, slot)
        });
        change = Some((read.kind, read.key.clone(), values.collect::<Vec<_>>()));
        Ok(())
    });
    assert_eq!(version.expect("it was appended"), 0x0102);
    assert!(reader.rest().is_empty());
    *heap = kept;
    change.expect("one change")
}

fn set_of(random: &mut Random, columns: usize) -> ColumnSet {
    let all = (0..columns as u16).map(ColumnId);
    all.filter(|_| random.percent(30.0)).collect()
}

#[test]
fn changes_come_back_as_they_were_whatever_their_types() {
    let seed = 11;
    let mut random = Random::from_seed(seed);
    for round in 0..150 {
        // Also with more than 64 columns.
        let copies = 1 + round % 4;
        let types = (0..copies).flat_map(|_| types());
        let not_null_percent = [50.0, 100.0, 0.0][round % 3];
        let mut columns: Vec<Column> = types
            .map(|data_type| column(data_type, random.percent(not_null_percent)))
            .collect();
        random.shuffle(&mut columns);
        let mut key = Vec::new();
        for (at, definition) in columns.iter_mut().enumerate() {
            let is_short = match definition.data_type {
                DataType::VarChar(_) | DataType::Text => false,
                // Its key has room for all digits, but for nothing else.
                DataType::NUMERIC => round % 4 == 1,
                _ => is_key(&definition.data_type),
            };
            if key.len() < round % 4 && is_short {
                definition.not_null = true;
                key.push(ColumnId(at as u16));
            }
        }
        key.reverse();
        let table = table(round as u32, columns.clone(), key);
        let row = Row::random(&table, &mut random);
        let key_columns = table.indexes()[0].columns();
        let all = ColumnSet::first(columns.len());
        let context = format!("seed {seed}, round {round}");
        let check = |change: Change, expected: &dyn Fn(ColumnId) -> Slot| {
            let (kind, written) = (change.kind(), change.columns());
            let key = change.key(&mut Heap::new());
            let bytes = bytes_of(change);
            let mut heap = Heap::new();
            let (read_kind, read_key, values) = read(&table, &bytes, &mut heap);
            assert_eq!((read_kind, read_key), (kind, key), "{context}");
            let read_columns: Vec<ColumnId> = values.iter().map(|(column, _)| *column).collect();
            assert_eq!(
                read_columns,
                written.iter().collect::<Vec<_>>(),
                "{context}"
            );
            for (column, slot) in values {
                let data_type = &columns[column.index()].data_type;
                let wanted = expected(column);
                assert!(
                    same(data_type, slot, &heap, wanted, &row.heap),
                    "{context}, {kind:?}, {column:?} of type {data_type}: {slot:?}, {wanted:?}"
                );
            }
            bytes
        };
        let in_row = |column: ColumnId| row.values[0][column.index()];
        let in_image = |column: ColumnId| row.values[1][column.index()];
        // SAFETY: record and image are this thread's own, and outlive the changes.
        let new = |kind, columns| unsafe { Change::new(&table, row.record(), kind, columns, 1) };
        // SAFETY: as above; the image is made for the table's layout.
        let imaged = |change: Change, columns| unsafe { change.imaged(columns, &row.image) };

        let whole = check(new(ChangeKind::Insert, all), &in_row);
        // An image that holds no column does not count.
        let mixed = set_of(&mut random, columns.len()).difference(key_columns);
        let from_both = |column: ColumnId| match mixed.contains(column) {
            true => in_image(column),
            false => in_row(column),
        };
        check(imaged(new(ChangeKind::Insert, all), mixed), &from_both);
        // Column by column the bytes are those of the row as words, but for what a NULL leaves.
        if columns.iter().all(|definition| definition.not_null) {
            let same_row = Row {
                cell: Box::new([]),
                image: row.cell[HEADER_WORDS..]
                    .iter()
                    .map(|word| AtomicU64::new(word.load(kiln_platform::atomic::Ordering::Relaxed)))
                    .collect(),
                heap: Heap::new(),
                values: [Vec::new(), Vec::new()],
            };
            // SAFETY: as above.
            let change = unsafe { new(ChangeKind::Insert, all).imaged(mixed, &same_row.image) };
            assert_eq!(bytes_of(change), whole, "{context}");
        }

        let written = set_of(&mut random, columns.len()).difference(key_columns);
        check(new(ChangeKind::Update, written), &in_row);
        let bytes = check(imaged(new(ChangeKind::Update, written), written), &in_image);
        let mut tail = Vec::new();
        let [low, high] = written.to_words();
        let set = [low.to_le_bytes(), high.to_le_bytes()].concat();
        tail.extend_from_slice(&set[..columns.len().div_ceil(8)]);
        for column in written.iter() {
            let definition = &columns[column.index()];
            tail.extend(appended(definition, in_image(column), &row.heap));
        }
        assert!(bytes.ends_with(&tail), "{context}");

        check(new(ChangeKind::Delete, ColumnSet::EMPTY), &in_row);
        let former = Row::random(&table, &mut random);
        // SAFETY: as above.
        let change = unsafe {
            Change::new(
                &table,
                former.record(),
                ChangeKind::Delete,
                ColumnSet::EMPTY,
                1,
            )
        };
        let key = change.key(&mut Heap::new());
        // SAFETY: the key outlives the change.
        check(
            unsafe { new(ChangeKind::Delete, ColumnSet::EMPTY).keyed(&key) },
            &in_row,
        );
        former.free(&table);
        row.free(&table);
    }
}

/// The form on disk: a change of this test is a change of it.
#[test]
fn the_bytes_are_these() {
    let definitions = vec![
        column(DataType::SmallInt, true),
        column(DataType::BigInt, false),
        column(DataType::Boolean, true),
        column(DataType::Integer, true),
        column(DataType::numeric(12, 2), true),
        column(DataType::Text, true),
        column(DataType::NUMERIC, true),
    ];
    let table = table(258, definitions, vec![ColumnId(5), ColumnId(0)]);
    let words = HEADER_WORDS + table.layout().words();
    let cell: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
    let mut heap = Heap::new();
    let decimal = |mantissa, scale| {
        Slot::from_decimal(Decimal::new(mantissa, scale).expect("it has few digits"))
    };
    let values = [
        Slot::from_i64(-2),
        Slot::NULL,
        Slot::TRUE,
        Slot::from_i64(0x0102_0304),
        decimal(-1, 2),
        heap.push_str("abc"),
        decimal(5, 3),
    ];
    for (access, value) in table.layout().columns().iter().zip(values) {
        access.store(&cell[HEADER_WORDS..], value, &heap);
    }
    // SAFETY: the record is this thread's own, and outlives the changes.
    let change = |kind, columns: &[u16]| unsafe {
        let record = RecordRef::from_address(cell.as_ptr().addr() as u64);
        let columns = columns.iter().map(|column| ColumnId(*column)).collect();
        Change::new(&table, record, kind, columns, 1)
    };
    let smallint = [0xfe, 0xff];
    let text = [3, 0, 0, 0, b'a', b'b', b'c'];
    let (minus_one, null) = ([0xff; 8], [0; 8]);
    let number = [[5, 0, 0, 0, 0, 0, 0, 0], [0, 3, 0, 0, 0, 0, 0, 0]].concat();
    let inserted = [
        &[0, 2, 1, 0, 0],
        &null[..],
        &minus_one,
        &number,
        &[4, 3, 2, 1],
        &smallint,
        &[1],
        &[1],
        &text,
    ];
    let bytes = bytes_of(change(ChangeKind::Insert, &[0, 1, 2, 3, 4, 5, 6]));
    assert_eq!(bytes, inserted.concat());
    let updated = [
        &[1, 2, 1, 0, 0],
        &smallint[..],
        &text,
        &[0b1110],
        &[0],
        &[1],
        &[4, 3, 2, 1],
    ];
    let bytes = bytes_of(change(ChangeKind::Update, &[1, 2, 3]));
    assert_eq!(bytes, updated.concat());
    let deleted = [&[2, 2, 1, 0, 0], &smallint[..], &text];
    assert_eq!(bytes_of(change(ChangeKind::Delete, &[])), deleted.concat());
}

#[test]
fn damaged_bytes_are_refused_or_mean_something_else_and_nothing_breaks() {
    let seed = 13;
    let mut random = Random::from_seed(seed);
    let columns: Vec<Column> = types()
        .into_iter()
        .map(|data_type| column(data_type, random.percent(50.0)))
        .chain([column(DataType::BigInt, true)])
        .collect();
    let key = vec![ColumnId(columns.len() as u16 - 1)];
    let table = table(1, columns.clone(), key);
    let of_number = |id: TableId| (id == table.id()).then_some(&table);
    let mut refused = 0;
    for round in 0..40 {
        let row = Row::random(&table, &mut random);
        let kinds = [ChangeKind::Insert, ChangeKind::Update, ChangeKind::Delete];
        let changes = kinds.map(|kind| {
            let columns = match kind {
                ChangeKind::Insert => ColumnSet::first(columns.len()),
                ChangeKind::Update => set_of(&mut random, columns.len()),
                ChangeKind::Delete => ColumnSet::EMPTY,
            };
            // SAFETY: the record is this thread's own, and outlives the changes.
            unsafe { Change::new(&table, row.record(), kind, columns, 1) }
        });
        let commit = Commit {
            epoch: LogEpoch(1),
            version: 1,
            order: 1,
            changes: &changes,
            answer: None,
            command: None,
        };
        let mut bytes = Vec::new();
        commit.append(&mut bytes);
        let mut heap = Heap::new();
        let mut read = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            read_commit(&mut reader, of_number, &mut heap, |change, heap| {
                for &(column, slot) in change.values {
                    // Each value can be kept in its column, and be printed.
                    let data_type = &columns[column.index()].data_type;
                    assert!(!slot.is_null() || !columns[column.index()].not_null);
                    match data_type {
                        DataType::Numeric { .. } => {
                            assert!(!slot.as_decimal().to_string().is_empty());
                        }
                        _ if slot.is_null() || !is_bytes(data_type) => {}
                        DataType::Uuid | DataType::Interval(_) => {
                            assert_eq!(heap.bytes(slot).len(), 16)
                        }
                        DataType::Bytea | DataType::Row(_) => {
                            assert!(heap.bytes(slot).len() < bytes.len())
                        }
                        DataType::Array(_) => assert!(heap.unpack_array(slot).is_ok()),
                        _ => assert!(!heap.str(slot).contains('\0')),
                    }
                }
                Ok(())
            })
        };
        for length in 0..bytes.len() {
            let error = read(&bytes[..length]).expect_err("some bytes are missing");
            assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
        }
        for _ in 0..2_000 {
            let mut bytes = bytes.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.next_u64() as u8;
            }
            if let Err(error) = read(&bytes) {
                assert_eq!(
                    error.state(),
                    SqlState::DATA_CORRUPTED,
                    "seed {seed}, {round}"
                );
                refused += 1;
            }
        }
        row.free(&table);
    }
    assert!(refused > 10_000, "{refused} of 80000 are refused");
}

/// What a length or a count says that was damaged must not decide how much memory is asked for.
/// Runs on virtual cores have an allocator of their own.
#[cfg(not(kiln_sim))]
#[test]
fn damaged_bytes_take_no_more_memory_than_a_small_multiple_of_their_length() {
    /// Byte strings are copied to a heap that grows by doubling.
    const MULTIPLE: usize = 4;
    /// The values of one change: at most one for each column of the table.
    const LEAST_BYTES: usize = 8 << 10;
    let seed = 17;
    let mut random = Random::from_seed(seed);
    let columns: Vec<Column> = types()
        .into_iter()
        .map(|data_type| column(data_type, random.percent(50.0)))
        .chain([column(DataType::BigInt, true)])
        .collect();
    let key = vec![ColumnId(columns.len() as u16 - 1)];
    let table = table(1, columns.clone(), key);
    let of_number = |id: TableId| (id == table.id()).then_some(&table);
    let mut refused = 0;
    for round in 0..20 {
        let row = Row::random(&table, &mut random);
        let all = ColumnSet::first(columns.len());
        // SAFETY: the record is this thread's own, and outlives the change.
        let change = |kind, columns| unsafe { Change::new(&table, row.record(), kind, columns, 1) };
        let changes = [
            change(ChangeKind::Update, set_of(&mut random, columns.len())),
            change(ChangeKind::Insert, all),
            change(ChangeKind::Delete, ColumnSet::EMPTY),
        ];
        let mut whole = Vec::new();
        let commit = Commit {
            epoch: LogEpoch(1),
            version: 1,
            order: 1,
            changes: &changes,
            answer: None,
            command: None,
        };
        commit.append(&mut whole);
        for _ in 0..1_000 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(2) {
                let at = random.below(bytes.len() - 4);
                match random.below(4) {
                    // Lengths and counts have four bytes: as much as one can say, or a little too
                    // much.
                    0 => bytes[at..at + 4].fill(0xff),
                    1 => bytes[at + 1] ^= 1 << random.below(8),
                    2 => _ = bytes.drain(at..at + 1 + random.below(3)),
                    _ => bytes[at..at + 4].copy_from_slice(&random.next_u64().to_le_bytes()[..4]),
                }
            }
            let (result, peak_bytes) = counted::peak_bytes(|| {
                let mut reader = Reader::new(&bytes);
                read_commit(&mut reader, of_number, &mut Heap::new(), |_, _| Ok(()))
            });
            refused += usize::from(result.is_err());
            let most_bytes = LEAST_BYTES + MULTIPLE * bytes.len();
            assert!(
                peak_bytes <= most_bytes,
                "seed {seed}, round {round}: {peak_bytes} for {} bytes: {result:?}",
                bytes.len()
            );
        }
        row.free(&table);
    }
    assert!(refused > 5_000, "{refused} of 20000 are refused");
}
