//! On tiny histories the judge agrees with a search through all serial orders: it finds no cycle
//! exactly if some order of the transactions, run one after the other, reads what they read and
//! leaves the versions in the order in which they are.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Tape, judge};
use kiln_checker::Order;
use kiln_history::WriteKind;
use kiln_platform::random::Random;

const OBJECTS: u64 = 3;
/// Objects that are inserted and deleted, each time by another transaction, and found by ranges.
const ROWS: u64 = 3;
const COLUMNS: u16 = 2;

/// A transaction: everything is concurrent with everything.
#[derive(Clone, Default, Debug)]
struct Transaction {
    /// Object, position in its order of versions, columns.
    reads: Vec<(u64, usize, Vec<u16>)>,
    /// Object, columns.
    writes: BTreeMap<u64, BTreeSet<u16>>,
    /// Ranges of rows, with the rows that were met and the positions of their versions.
    ranges: Vec<(u64, u64, BTreeMap<u64, usize>)>,
}

#[derive(Clone, Debug)]
struct Tiny {
    transactions: Vec<Transaction>,
    /// Who wrote each object, in the order of its versions.
    orders: Vec<Vec<usize>>,
    /// Which rows were there at first.
    initial: BTreeSet<u64>,
    /// Who inserted or deleted each row, in the order of its versions.
    changes: Vec<Vec<usize>>,
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
    let mut changes = Vec::new();
    for row in 0..ROWS {
        if random.percent(50.0) {
            initial.insert(row);
        }
        let mut changers: Vec<usize> = (0..count).collect();
        random.shuffle(&mut changers);
        changers.truncate([0, 1, 1, 2, 2, 3][random.below(6)]);
        changes.push(changers);
    }
    for (number, transaction) in transactions.iter_mut().enumerate() {
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
            let is_own = |row: u64| changes[row as usize].contains(&number);
            // What a range meets of rows that others change too is not compared with the reader's
            // own changes.
            if (low..=high).any(|row| is_own(row) && changes[row as usize].len() > 1) {
                continue;
            }
            let mut met = BTreeMap::new();
            for row in low..=high {
                let versions = if is_own(row) {
                    1
                } else {
                    changes[row as usize].len() + 1
                };
                let exists = |version: &usize| initial.contains(&row) == version.is_multiple_of(2);
                let existing: Vec<usize> = (0..versions).filter(exists).collect();
                let must_be_met = existing.len() == versions;
                if !existing.is_empty() && (must_be_met || random.percent(40.0)) {
                    met.insert(row, existing[random.below(existing.len())]);
                }
            }
            transaction.ranges.push((low, high, met));
        }
    }
    Tiny {
        transactions,
        orders,
        initial,
        changes,
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

    /// Whether the transactions in this order read what they read, and write each column in the
    /// order of its versions.
    fn is_explained_by(&self, serial: &[usize]) -> bool {
        let mut last: BTreeMap<(u64, u16), usize> = BTreeMap::new();
        let mut rows = [0; ROWS as usize];
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
                let there = (*low..=*high).filter(|row| self.exists(*row, rows[*row as usize]));
                let there: BTreeMap<u64, usize> =
                    there.map(|row| (row, rows[row as usize])).collect();
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
            for (changers, version) in self.changes.iter().zip(&mut rows) {
                if let Some(position) = changers.iter().position(|changer| changer == number) {
                    if position != *version {
                        return false;
                    }
                    *version += 1;
                }
            }
        }
        true
    }

    /// Whether a row exists in a version.
    fn exists(&self, row: u64, version: usize) -> bool {
        self.initial.contains(&row) == version.is_multiple_of(2)
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
            for (row, version) in *met {
                tape.met(*worker, *range, row_name(*row));
                tape.read(*worker, row_name(*row), 1 + *version as u64, &[]);
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
            for (row, changers) in self.changes.iter().enumerate() {
                let Some(before) = changers.iter().position(|changer| *changer == worker) else {
                    continue;
                };
                let (name, key) = (row_name(row as u64), [row as u8]);
                match self.exists(row as u64, before) {
                    false => {
                        tape.write(worker, name, WriteKind::Insert, &[(0, 7)]);
                        tape.added(worker, name, &key, early);
                    }
                    true => {
                        tape.write(worker, name, WriteKind::Delete, &[]);
                        tape.removed(worker, name, &key, early);
                    }
                }
                tape.install(worker, name, 1 + before as u64, 2 + before as u64);
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
