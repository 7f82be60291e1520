//! Rows that come back into tables from what commits wrote.

mod counted;

use std::collections::BTreeMap;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::random::Random;
use kiln_storage::bytes::Reader;
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::journal::{Change, ChangeKind, Commit};
use kiln_storage::layout::Blob;
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::redo::{KeyRoom, read_keys};
use kiln_storage::restore::{Crew, Mismatch, Restorer, Waiting};
use kiln_storage::schema::*;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::{Found, Table};
use kiln_storage::types::DataType;

/// The words of a record before its row.
const HEADER_WORDS: usize = 2;
const KEYS: i64 = 40;

/// `id`, a unique `number`, and two texts, of which one is always outside the row when it is long.
fn table(has_key: bool) -> Table {
    let column = |name: &str, data_type: DataType, not_null: bool| Column {
        name: name.to_owned(),
        data_type,
        not_null,
        default: None,
        domain: None,
        generated: None,
    };
    let schema = TableSchema {
        name: "t".to_owned(),
        columns: vec![
            column("id", DataType::BigInt, true),
            column("number", DataType::BigInt, true),
            column("short", DataType::VarChar(Some(10)), false),
            column("long", DataType::Text, false),
        ],
        primary_key: if has_key {
            vec![ColumnId(0)]
        } else {
            Vec::new()
        },
        primary_key_name: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    let unique = IndexDefinition {
        name: "t_number".to_owned(),
        columns: vec![ColumnId(1)],
        unique: true,
        constraint: true,
        partial: false,
        nulls_equal: false,
        deferral: Default::default(),
        method: IndexMethod::BTree,
        kind: IndexKind::Hash,
    };
    Table::new(TableId(3), schema, 0, vec![unique]).expect("a row fits")
}

/// A row as it should be: `id`, `number` and the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model(i64, i64, Option<String>, Option<String>);

impl Model {
    fn random(id: i64, random: &mut Random) -> Model {
        let text = |random: &mut Random, length_max: usize| {
            let length = random.below(length_max + 1);
            (!random.percent(20.0)).then(|| "x".repeat(length))
        };
        let (short, long) = (text(random, 10), text(random, 400));
        // No two rows have the same one.
        Model(id, id + KEYS * random.below(9) as i64, short, long)
    }

    fn slots(&self, heap: &mut Heap) -> [Slot; 4] {
        let mut text = |text: &Option<String>| match text {
            Some(text) => heap.push_str(text),
            None => Slot::NULL,
        };
        let (short, long) = (text(&self.2), text(&self.3));
        [Slot::from_i64(self.0), Slot::from_i64(self.1), short, long]
    }

    fn read(table: &Table, record: RecordRef) -> Model {
        let mut heap = Heap::new();
        let row = table.row(record);
        let slots = [0, 1, 2, 3].map(|at| table.column_value(ColumnId(at), row, &mut heap));
        let text = |slot: Slot| (!slot.is_null()).then(|| heap.str(slot).to_owned());
        let [id, number, short, long] = slots;
        Model(id.as_i64(), number.as_i64(), text(short), text(long))
    }
}

/// What a commit with one change appends.
fn commit(table: &Table, row_number: i64, model: &Model, kind: ChangeKind) -> Vec<u8> {
    let (layout, mut heap) = (table.layout(), Heap::new());
    let words = HEADER_WORDS + layout.words();
    let cell: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
    let row = &cell[HEADER_WORDS..];
    if let Some(access) = layout.row_number() {
        access.store(row, Slot::from_i64(row_number), &heap);
    }
    let slots = model.slots(&mut heap);
    for (access, slot) in layout.columns().iter().zip(slots) {
        access.store(row, slot, &heap);
    }
    let columns = match kind {
        ChangeKind::Insert => layout.all(),
        ChangeKind::Update => [1, 2, 3].into_iter().map(ColumnId).collect(),
        ChangeKind::Delete => ColumnSet::EMPTY,
    };
    // SAFETY: the record is this thread's own, and outlives the change.
    let change = unsafe {
        let record = RecordRef::from_address(cell.as_ptr().addr() as u64);
        Change::new(table, record, kind, columns, 1)
    };
    let mut bytes = Vec::new();
    let commit = Commit {
        epoch: LogEpoch(1),
        version: 1,
        order: 1,
        changes: &[change],
        answer: None,
        command: None,
    };
    commit.append(&mut bytes);
    for blob in layout.blobs(layout.spilling(), row) {
        // SAFETY: only this thread uses the row.
        unsafe { Blob::free(blob) };
    }
    bytes
}

fn apply(
    table: &Table,
    participant: &Participant,
    bytes: &[u8],
    mismatch: Mismatch,
) -> Result<u64> {
    let restorer = Restorer::new(participant);
    let mut heap = Heap::new();
    let of = |id| (id == table.id()).then_some(table);
    read_keys(
        &mut Reader::new(bytes),
        of,
        &mut KeyRoom::default(),
        |change| restorer.change(&change, &mut heap, mismatch),
    )
}

fn rows(table: &Table) -> BTreeMap<i64, Model> {
    let mut rows = BTreeMap::new();
    table.indexes()[0].for_each(|record| {
        let tid = Tid(record.tid().load(kiln_platform::atomic::Ordering::Relaxed));
        assert!(
            tid.version() > 0 && tid.0 == tid.version(),
            "{tid:?} is a row's"
        );
        assert_eq!(
            record.aux().load(kiln_platform::atomic::Ordering::Relaxed),
            0
        );
        let model = Model::read(table, record);
        assert_eq!(rows.insert(model.0, model), None, "a key is there once");
    });
    rows
}

/// Changes that fit and others, under both rules; returns how many were refused.
fn change_at_random(has_key: bool, mismatch: Mismatch, seed: u64) -> usize {
    let context = format!("key {has_key}, {mismatch:?}, seed {seed}");
    let mut random = Random::from_seed(seed);
    let participant = Epochs::new(1).register().expect("the only participant");
    let table = table(has_key);
    let mut expected = BTreeMap::<i64, Model>::new();
    let mut refused = 0;
    for _ in 0..3_000 {
        let model = Model::random(random.between(0, KEYS - 1), &mut random);
        let kinds = [ChangeKind::Insert, ChangeKind::Update, ChangeKind::Delete];
        let kind = kinds[random.below(3)];
        let bytes = commit(&table, model.0, &model, kind);
        let applied = apply(&table, &participant, &bytes, mismatch);
        let is_there = expected.contains_key(&model.0);
        if mismatch == Mismatch::Refused && is_there == (kind == ChangeKind::Insert) {
            let error = applied.expect_err("it does not fit");
            assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{context}");
            refused += 1;
            continue;
        }
        applied.expect("it fits, or does not have to");
        match kind {
            ChangeKind::Delete => drop(expected.remove(&model.0)),
            ChangeKind::Update if !is_there => {}
            _ => drop(expected.insert(model.0, model)),
        }
    }
    assert_eq!(rows(&table), expected, "{context}");
    // A cell that a row leaves is used again.
    assert_eq!(table.slab().cells_in_use(), expected.len(), "{context}");
    if !has_key {
        // The numbers are those of the first arena, and the next one is a new one.
        let next = table.next_row_number(0);
        assert!(
            expected.keys().all(|number| *number < next),
            "{context}: {next}"
        );
    }
    let restored = table.with_restored_indexes(&participant);
    let restored = restored.expect("numbers are unique");
    table.supersede(Some(&restored));
    for number in 0..10 * KEYS {
        let values = [Slot::from_i64(number)].into_iter();
        let found = match restored.indexes()[1].get(&Heap::new(), values) {
            Found::Entry(entry) => Some(Model::read(&restored, entry.record())),
            _ => None,
        };
        let wanted = expected.values().find(|model| model.1 == number);
        assert_eq!(found.as_ref(), wanted, "{context}: {number}");
    }
    assert_eq!(rows(&restored), expected, "{context}");
    refused
}

#[test]
fn rows_come_back_as_they_were_and_leave_no_memory_behind() {
    for has_key in [true, false] {
        for mismatch in [Mismatch::Refused, Mismatch::Ignored] {
            let before = counted::live_bytes();
            let refused = change_at_random(has_key, mismatch, 17);
            assert_eq!(counted::live_bytes(), before, "key {has_key}, {mismatch:?}");
            assert_eq!(refused > 500, mismatch == Mismatch::Refused, "{refused}");
        }
    }
}

#[test]
fn rows_that_are_not_unique_where_they_have_to_be_are_damage() {
    let participant = Epochs::new(1).register().expect("the only participant");
    let table = table(true);
    for id in 0..2 {
        let bytes = commit(&table, 0, &Model(id, 7, None, None), ChangeKind::Insert);
        // For a moment this may be so: another change of the same log epoch may mend it.
        let applied = apply(&table, &participant, &bytes, Mismatch::Refused);
        applied.expect("the key is new");
    }
    let restored = table.with_restored_indexes(&participant).map(|_| ());
    let error = restored.expect_err("two rows have the same number");
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{error}");
    assert!(error.message().contains("t_number"), "{error}");
}

/// One commit of all these changes.
fn together(commits: &[Vec<u8>]) -> Vec<u8> {
    let head = 8 + 4;
    let mut bytes = commits[0][..8].to_vec();
    bytes.extend((commits.len() as u32).to_le_bytes());
    commits.iter().for_each(|it| bytes.extend(&it[head..]));
    bytes
}

/// Batches of commits of several rows each, applied by so many threads.
fn change_together(has_key: bool, mismatch: Mismatch, threads: usize, seed: u64) {
    let context = format!("key {has_key}, {mismatch:?}, {threads} threads, seed {seed}");
    let mut random = Random::from_seed(seed);
    let epochs = Epochs::new(threads);
    let participant = epochs.register().expect("there is room");
    let mut crew = Crew::new(&participant, threads);
    assert_eq!(crew.threads(), threads);
    let table = table(has_key);
    let of = |id| (id == table.id()).then_some(&table);
    let mut expected = BTreeMap::<i64, Model>::new();
    for _ in 0..4 {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        while bytes.len() < 120_000 {
            let changes: Vec<Vec<u8>> = (0..random.between(1, 6))
                .map(|_| {
                    let model = Model::random(random.between(0, KEYS - 1), &mut random);
                    let is_there = expected.contains_key(&model.0);
                    let kind = match (mismatch, random.below(4)) {
                        (Mismatch::Refused, _) if !is_there => ChangeKind::Insert,
                        (Mismatch::Ignored, 0) => ChangeKind::Insert,
                        (_, 1) => ChangeKind::Delete,
                        _ => ChangeKind::Update,
                    };
                    let change = commit(&table, model.0, &model, kind);
                    match kind {
                        ChangeKind::Delete => drop(expected.remove(&model.0)),
                        ChangeKind::Update if !is_there => {}
                        _ => drop(expected.insert(model.0, model)),
                    }
                    change
                })
                .collect();
            bytes.extend(together(&changes));
            ends.push((bytes.len(), mismatch));
        }
        let applied = crew.commits(of, &bytes, &ends);
        applied.expect("it fits, or does not have to");
        assert_eq!(rows(&table), expected, "{context}");
        assert_eq!(table.slab().cells_in_use(), expected.len(), "{context}");
    }
    // One that does not fit, in the middle of others that do not change.
    let Some(there) = expected.values().next() else {
        panic!("{context}: no row is left");
    };
    let update = commit(&table, there.0, there, ChangeKind::Update);
    let insert = commit(&table, there.0, there, ChangeKind::Insert);
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for number in 0..1_000 {
        bytes.extend(if number == 500 { &insert } else { &update });
        ends.push((bytes.len(), Mismatch::Refused));
    }
    let (at, refused) = crew.commits(of, &bytes, &ends).expect_err("it is there");
    assert_eq!(at, ends[500].0, "{context}");
    assert_eq!(refused.state(), SqlState::DATA_CORRUPTED, "{context}");
    let last = bytes.len() - 1;
    ends.last_mut().expect("there are some").0 = last;
    let cut = crew.commits(of, &bytes[..last], &ends);
    let cut = cut.expect_err("the last one is cut off");
    assert_eq!(cut.1.state(), SqlState::DATA_CORRUPTED, "{context}");
}

#[test]
fn commits_of_many_rows_are_applied_whole_by_any_number_of_threads() {
    for has_key in [true, false] {
        for mismatch in [Mismatch::Refused, Mismatch::Ignored] {
            for threads in [1, 2, 3, 7] {
                change_together(has_key, mismatch, threads, 11 + threads as u64);
            }
        }
    }
}

#[test]
fn commits_of_a_log_epoch_may_take_a_unique_value_before_the_one_that_gives_it_up() {
    let participant = Epochs::new(1).register().expect("the only participant");
    let restorer = Restorer::new(&participant);
    let first = table(true);
    let table = &first;
    let (mut heap, mut waiting) = (Heap::new(), Vec::new());
    let mut whole = |id: i64, number: i64, kind: ChangeKind, waiting: &mut Vec<Waiting>| {
        let bytes = commit(table, 0, &Model(id, number, None, None), kind);
        let of = |id| (id == table.id()).then_some(table);
        for pass in 0..2 {
            let (mut reader, mut room) = (Reader::new(&bytes), KeyRoom::default());
            read_keys(&mut reader, of, &mut room, |change| {
                if pass == 0 {
                    return restorer.unlink(&change, &mut heap, waiting);
                }
                restorer.change(&change, &mut heap, Mismatch::Refused)?;
                restorer.link(&change, &mut heap, waiting)
            })
            .expect("it fits");
        }
    };
    let owner = |number: i64| {
        let values = [Slot::from_i64(number)].into_iter();
        match table.indexes()[1].get(&Heap::new(), values) {
            Found::Entry(entry) => Some(Model::read(table, entry.record()).0),
            _ => None,
        }
    };
    use ChangeKind::{Delete, Insert, Update};
    whole(1, 7, Insert, &mut waiting);
    whole(2, 8, Insert, &mut waiting);
    // One takes 8, and moves on to 9; another one takes 8, which its former owner gives up in the
    // end.
    whole(1, 8, Update, &mut waiting);
    whole(1, 9, Update, &mut waiting);
    whole(3, 8, Insert, &mut waiting);
    assert_eq!((owner(7), owner(8), owner(9)), (None, Some(2), Some(1)));
    whole(2, 0, Delete, &mut waiting);
    let find = |id| (id == table.id()).then_some(table);
    let linked = restorer.link_waiting(&mut waiting, find);
    linked.expect("each number has one row");
    assert_eq!((owner(7), owner(8), owner(9)), (None, Some(3), Some(1)));
    whole(4, 8, Insert, &mut waiting);
    let linked = restorer.link_waiting(&mut waiting, find);
    let error = linked.expect_err("two rows have the same number");
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{error}");
}
