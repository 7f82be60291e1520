//! On tiny histories the judge agrees with a search through all serial orders: it finds no cycle exactly
//! if some order of the transactions, run one after the other, reads what they read and leaves the
//! versions in the order in which they are.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Tape, judge};
use kiln_checker::Order;
use kiln_history::WriteKind;
use kiln_platform::random::Random;

const OBJECTS: u64 = 3;
/// Objects that are inserted or deleted by at most one transaction each, and found by ranges.
const ROWS: u64 = 3;
const COLUMNS: u16 = 2;

/// A transaction: everything is concurrent with everything.
#[derive(Clone, Default, Debug)]
struct Transaction {
    /// Object, position in its order of versions, columns.
    reads: Vec<(u64, usize, Vec<u16>)>,
    /// Object, columns.
    writes: BTreeMap<u64, BTreeSet<u16>>,
    /// Ranges of rows, with the rows that were met.
    ranges: Vec<(u64, u64, BTreeSet<u64>)>,
    /// Rows inserted (true) or deleted.
    rows: BTreeMap<u64, bool>,
}

#[derive(Clone, Debug)]
struct Tiny {
    transactions: Vec<Transaction>,
    /// Who wrote each object, in the order of its versions.
    orders: Vec<Vec<usize>>,
    /// Which rows were there at first.
    initial: BTreeSet<u64>,
}

/// A history in which anything may have been read.
fn draw(random: &mut Random) -> Tiny {
    let count = 2 + random.below(3);
    let mut transactions = vec![Transaction::default(); count];
    let mut orders = Vec::new();
    for object in 0..OBJECTS {
        let mut writers = Vec::new();
        for (number, transaction) in transactions.iter_mut().enumerate() {
            if random.percent(35.0) {
                let mut columns: BTreeSet<u16> = BTreeSet::new();
                columns.insert(random.below(COLUMNS.into()) as u16);
                if random.percent(30.0) {
                    columns.insert(random.below(COLUMNS.into()) as u16);
                }
                transaction.writes.insert(object, columns);
                writers.push(number);
            }
        }
        random.shuffle(&mut writers);
        orders.push(writers);
    }
    let mut initial = BTreeSet::new();
    let mut changed = BTreeSet::new();
    for row in 0..ROWS {
        let is_there = random.percent(50.0);
        if is_there {
            initial.insert(row);
        }
        if random.percent(60.0) {
            changed.insert(row);
            let by = random.below(count);
            transactions[by].rows.insert(row, !is_there);
        }
    }
    for transaction in &mut transactions {
        for object in 0..OBJECTS {
            if random.percent(40.0) {
                let version = random.below(orders[object as usize].len() + 1);
                let columns = (0..COLUMNS).filter(|_| random.percent(60.0)).collect();
                transaction.reads.push((object, version, columns));
            }
        }
        if random.percent(50.0) {
            let (a, b) = (random.below(3) as u64, random.below(3) as u64);
            let (low, high) = (a.min(b), a.max(b));
            let met = (low..=high)
                .filter(|row| {
                    if transaction.rows.contains_key(row) || !changed.contains(row) {
                        initial.contains(row)
                    } else {
                        random.percent(50.0)
                    }
                })
                .collect();
            transaction.ranges.push((low, high, met));
        }
    }
    Tiny {
        transactions,
        orders,
        initial,
    }
}

impl Tiny {
    /// The last writer of a column up to a version.
    fn writer(&self, object: u64, version: usize, column: u16) -> Option<usize> {
        let order = &self.orders[object as usize][..version];
        order
            .iter()
            .rev()
            .find(|writer| self.transactions[**writer].writes[&object].contains(&column))
            .copied()
    }

    /// Whether the transactions in this order read what they read, and write each column in the order
    /// of its versions.
    fn is_explained_by(&self, serial: &[usize]) -> bool {
        let mut last: BTreeMap<(u64, u16), usize> = BTreeMap::new();
        let mut rows = self.initial.clone();
        for number in serial {
            let transaction = &self.transactions[*number];
            for (object, version, columns) in &transaction.reads {
                let same = |column: &u16| {
                    self.writer(*object, *version, *column)
                        == last.get(&(*object, *column)).copied()
                };
                if !columns.iter().all(same) {
                    return false;
                }
            }
            for (low, high, met) in &transaction.ranges {
                let there: BTreeSet<u64> = rows.range(low..=high).copied().collect();
                if there != *met {
                    return false;
                }
            }
            for (object, columns) in &transaction.writes {
                let order = &self.orders[*object as usize];
                let version = order.iter().position(|writer| writer == number).unwrap();
                for column in columns {
                    let before = last.insert((*object, *column), *number);
                    if before != self.writer(*object, version, *column) {
                        return false;
                    }
                }
            }
            for (row, inserted) in &transaction.rows {
                match inserted {
                    true => rows.insert(*row),
                    false => rows.remove(row),
                };
            }
        }
        true
    }

    fn is_serializable(&self) -> bool {
        let mut serial: Vec<usize> = (0..self.transactions.len()).collect();
        self.search(&mut serial, 0)
    }

    fn search(&self, serial: &mut [usize], fixed: usize) -> bool {
        if fixed == serial.len() {
            return self.is_explained_by(serial);
        }
        (fixed..serial.len()).any(|next| {
            serial.swap(fixed, next);
            let found = self.search(serial, fixed + 1);
            serial.swap(fixed, next);
            found
        })
    }

    /// The same as the protocols would have recorded it.
    fn tape(&self) -> Tape {
        let object_name = |object: u64| 1 + object;
        let row_name = |row: u64| 10 + row;
        let print = |writer: Option<usize>, object: u64, column: u16| match writer {
            Some(writer) => 1_000 + 100 * writer as u32 + 10 * object as u32 + u32::from(column),
            None => 10 * object as u32 + u32::from(column),
        };
        let mut tape = Tape::new(self.transactions.len());
        let early = tape.now();
        let mut ranges = Vec::new();
        for (worker, transaction) in self.transactions.iter().enumerate() {
            tape.begin(worker);
            for (low, high, met) in &transaction.ranges {
                let range = tape.range_begin(worker, &[*low as u8], &[*high as u8]);
                ranges.push((worker, range, met));
            }
        }
        for (worker, range, met) in &ranges {
            for row in *met {
                tape.met(*worker, *range, row_name(*row));
                // A row that was there at first is read in its first version.
                let version = if self.initial.contains(row) { 1 } else { 2 };
                tape.read(*worker, row_name(*row), version, &[]);
            }
        }
        for (worker, transaction) in self.transactions.iter().enumerate() {
            for (object, version, columns) in &transaction.reads {
                let cell = |column: &u16| {
                    let writer = self.writer(*object, *version, *column);
                    (*column, print(writer, *object, *column))
                };
                let cells: Vec<(u16, u32)> = columns.iter().map(cell).collect();
                tape.read(worker, object_name(*object), 1 + *version as u64, &cells);
            }
            for (object, columns) in &transaction.writes {
                let cell = |column: &u16| (*column, print(Some(worker), *object, *column));
                let cells: Vec<(u16, u32)> = columns.iter().map(cell).collect();
                let order = &self.orders[*object as usize];
                let before = 1 + order.iter().position(|w| *w == worker).unwrap() as u64;
                let versions = (before, before + 1);
                tape.update(worker, object_name(*object), versions, &cells);
            }
            for (row, inserted) in &transaction.rows {
                let name = row_name(*row);
                match inserted {
                    true => {
                        tape.write(worker, name, WriteKind::Insert, &[(0, 7)]);
                        tape.added(worker, name, &[*row as u8], early);
                    }
                    false => {
                        tape.write(worker, name, WriteKind::Delete, &[]);
                        tape.removed(worker, name, &[*row as u8], early);
                    }
                }
                tape.install(worker, name, 1, 2);
            }
        }
        for (worker, range, _) in ranges {
            tape.range_end(worker, range);
        }
        for worker in 0..self.transactions.len() {
            tape.commit(worker);
        }
        tape
    }
}

#[test]
fn the_judge_agrees_with_a_search_through_all_orders() {
    let (mut serializable, mut not) = (0, 0);
    for seed in 0..6_000 {
        let tiny = draw(&mut Random::from_seed(seed));
        let expected = tiny.is_serializable();
        // All are concurrent: real time adds nothing.
        for order in [Order::Serializable, Order::Strict] {
            let report = judge(&tiny.tape().history(), order);
            assert_eq!(
                report.is_serializable(),
                expected,
                "seed {seed}: {tiny:?}\n{report}"
            );
        }
        match expected {
            true => serializable += 1,
            false => not += 1,
        }
    }
    assert!(
        serializable > 1_000 && not > 1_000,
        "{serializable} serializable, {not} not"
    );
}
