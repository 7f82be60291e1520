//! Megabytes of commits that threads put back into tables in a second: `cargo bench -p kiln-storage
//! --bench replay`.
//!
//! Numbers after `--` set how many commits (default 100,000), and with how many threads (default 1
//! and 2). `order` is like TPC-C's New-Order: ten changes of stock and ten new rows; `update`
//! changes one column of one row. Figures are those of the fastest of three rounds.

use kiln_platform::atomic::AtomicU64;
use kiln_platform::random::Random;
use kiln_platform::time;
use kiln_storage::bytes::Reader;
use kiln_storage::epoch::Epochs;
use kiln_storage::journal::{Change, ChangeKind, Commit};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::record::RecordRef;
use kiln_storage::redo::read_commit;
use kiln_storage::restore::{Crew, Mismatch};
use kiln_storage::schema::{Column, ColumnId, ColumnSet, TableId, TableSchema};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;

const STOCK: i64 = 1_000_000;
const CHANGES: usize = 20;

fn table(id: u32, types: &[DataType], key_columns: u16) -> Table {
    let columns = types.iter().map(|data_type| Column {
        name: "c".to_owned(),
        data_type: data_type.clone(),
        not_null: true,
        default: None,
        domain: None,
        generated: None,
    });
    let schema = TableSchema {
        name: format!("t{id}"),
        columns: columns.collect(),
        primary_key: (0..key_columns).map(ColumnId).collect(),
        primary_key_name: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    Table::new(TableId(id), schema, 0, Vec::new()).expect("a row fits")
}

fn stock() -> Table {
    use DataType::{BigInt, Integer, SmallInt};
    table(
        0,
        &[Integer, Integer, SmallInt, BigInt, SmallInt, SmallInt],
        2,
    )
}

fn line() -> Table {
    use DataType::{BigInt, Char, Integer, SmallInt};
    let types = [
        Integer,
        Integer,
        Integer,
        Integer,
        Integer,
        SmallInt,
        BigInt,
        Char(24),
    ];
    table(1, &types, 4)
}

/// The memory of a record that commits are made from.
struct Cell(Vec<AtomicU64>);

impl Cell {
    fn new(table: &Table, integers: &[i64]) -> Cell {
        let words = 2 + table.layout().words();
        let cell = Cell((0..words).map(|_| AtomicU64::new(0)).collect());
        let mut heap = Heap::new();
        let text = heap.push_str("abcdefghijklmnopqrstuvwx");
        for (at, access) in table.layout().columns().iter().enumerate() {
            let value = integers
                .get(at)
                .map_or(text, |value| Slot::from_i64(*value));
            access.store(&cell.0[2..], value, &heap);
        }
        cell
    }

    fn change(&self, table: &Table, kind: ChangeKind, columns: ColumnSet) -> Change {
        // SAFETY: the record is a table's row with a header, and outlives the change, which only
        // this thread has.
        unsafe {
            let record = RecordRef::from_address(self.0.as_ptr().addr() as u64);
            Change::new(table, record, kind, columns, 1)
        }
    }
}

fn append(changes: &[Change], bytes: &mut Vec<u8>) {
    let commit = Commit {
        epoch: LogEpoch(1),
        version: 1,
        order: 1,
        changes,
        answer: None,
        command: None,
    };
    commit.append(bytes);
}

/// Rows of stock, and commits of both kinds.
fn commits(kind: &str, count: i64, (stock, line): (&Table, &Table)) -> Vec<u8> {
    let (mut random, mut bytes) = (Random::from_seed(1), Vec::new());
    let columns = |range: std::ops::Range<u16>| range.map(ColumnId).collect();
    for number in 0..count {
        let of_stock = |random: &mut Random| {
            let item = random.between(0, STOCK - 1);
            Cell::new(stock, &[1, item, number & 63, number, 1, 2])
        };
        if kind == "update" {
            let cell = of_stock(&mut random);
            let change = cell.change(stock, ChangeKind::Update, columns(3..4));
            append(&[change], &mut bytes);
            continue;
        }
        let mut cells: Vec<Cell> = (0..CHANGES / 2).map(|_| of_stock(&mut random)).collect();
        let lines = (0..CHANGES as i64 / 2)
            .map(|at| Cell::new(line, &[1, number % 10, number, at, at * 7, 5, 1_000 + at]));
        cells.extend(lines);
        let changes = cells.iter().enumerate().map(|(at, cell)| match at {
            ..10 => cell.change(stock, ChangeKind::Update, columns(2..6)),
            _ => cell.change(line, ChangeKind::Insert, line.layout().all()),
        });
        append(&changes.collect::<Vec<_>>(), &mut bytes);
    }
    bytes
}

/// Bytes of commits that are put back together, as a recovery does it.
const BATCH_BYTES: usize = 8 << 20;

/// Nanoseconds that it takes to put all commits of these bytes back.
fn replay(bytes: &[u8], tables: &[Table; 2], epochs: &Epochs, threads: usize) -> u64 {
    let table = |id: TableId| tables.get(id.0 as usize);
    let mut ends = Vec::new();
    let (mut reader, mut heap) = (Reader::new(bytes), Heap::new());
    while !reader.rest().is_empty() {
        let read = read_commit(&mut reader, table, &mut heap, |_, _| Ok(()));
        read.expect("it was appended");
        ends.push(bytes.len() - reader.rest().len());
    }
    let participant = epochs.register().expect("there is room");
    let mut crew = Crew::new(&participant, threads);
    assert_eq!(crew.threads(), threads);
    let mut rest = &ends[..];
    let (mut start, mut batch) = (0, Vec::new());
    let began_ns = time::now_ns();
    while !rest.is_empty() {
        let count = rest.partition_point(|end| end - start < BATCH_BYTES) + 1;
        let (now, later) = rest.split_at(count.min(rest.len()));
        batch.clear();
        batch.extend(now.iter().map(|end| (end - start, Mismatch::Refused)));
        let end = now[now.len() - 1];
        crew.commits(table, &bytes[start..end], &batch)
            .expect("it fits");
        (start, rest) = (end, later);
    }
    time::now_ns() - began_ns
}

fn main() {
    let numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    let count = numbers.first().map_or(100_000, |count| *count as i64);
    let threads: &[usize] = if numbers.len() > 1 {
        &numbers[1..]
    } else {
        &[1, 2]
    };
    for kind in ["order", "update"] {
        for &threads in threads {
            measure(kind, count, threads);
        }
    }
}

fn measure(kind: &str, count: i64, threads: usize) {
    let mut fastest_ns = u64::MAX;
    let mut length = 0;
    for _ in 0..3 {
        let tables = [stock(), line()];
        let epochs = Epochs::new(threads);
        let mut rows = Vec::new();
        for item in 0..STOCK {
            let cell = Cell::new(&tables[0], &[1, item, 0, 0, 0, 0]);
            let all = tables[0].layout().all();
            append(
                &[cell.change(&tables[0], ChangeKind::Insert, all)],
                &mut rows,
            );
        }
        replay(&rows, &tables, &epochs, threads);
        let bytes = commits(kind, count, (&tables[0], &tables[1]));
        length = bytes.len();
        fastest_ns = fastest_ns.min(replay(&bytes, &tables, &epochs, threads));
    }
    let (bytes, ns) = (length as f64, fastest_ns as f64);
    let per_commit = (bytes / count as f64, ns / count as f64);
    println!(
        "{kind:<8} {threads} threads {:>6.0} MB/s {:>6.0} bytes and {:>7.0} ns a commit",
        bytes * 1e3 / ns,
        per_commit.0,
        per_commit.1
    );
}
