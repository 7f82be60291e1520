//! Random serial executions of a tiny database are serializable; with one event changed they are
//! not.

mod common;

use std::collections::BTreeMap;

use common::{Tape, judge};
use kiln_checker::{Options, Order, check};
use kiln_history::{Event, History, LogReader, WriteKind};
use kiln_platform::random::Random;

const WORKERS: usize = 4;
const KEYS: u8 = 24;

/// A row: its object, its version, and what its columns hold.
#[derive(Clone)]
struct Row {
    object: u64,
    columns: [u32; 2],
}

/// What the tiny database holds: rows by key, and the last version of every object.
struct Database {
    random: Random,
    rows: BTreeMap<u8, Row>,
    versions: Vec<u64>,
    /// Objects without a row, to be used again.
    free: Vec<u64>,
    next: u64,
    value: u32,
}

impl Database {
    fn new(seed: u64) -> Database {
        Database {
            random: Random::from_seed(seed),
            rows: BTreeMap::new(),
            versions: vec![0],
            free: Vec::new(),
            next: 100,
            value: 0,
        }
    }

    fn fresh_value(&mut self) -> u32 {
        self.value += 1;
        self.value
    }

    /// Runs one transaction to its end, or to its roll-back.
    fn transaction(&mut self, tape: &mut Tape, worker: usize) {
        tape.begin(worker);
        let commits = !self.random.percent(15.0);
        let before = (self.rows.clone(), self.free.clone(), self.versions.clone());
        self.next += 1;
        let version = self.next;
        let mut installs: BTreeMap<u64, u64> = BTreeMap::new();
        let mut entries = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let key = self.random.below(KEYS.into()) as u8;
            let row = self.rows.get(&key).cloned();
            match (self.random.below(10), row) {
                (0..3, Some(row)) => {
                    let at = self.versions[row.object as usize];
                    let cells = [(0, row.columns[0]), (1, row.columns[1])];
                    let some = &cells[self.random.below(2)..];
                    tape.read(worker, row.object, at, some);
                }
                (3..5, Some(mut row)) => {
                    let column = self.random.below(2);
                    row.columns[column] = self.fresh_value();
                    let cells = [(column as u16, row.columns[column])];
                    tape.write(worker, row.object, WriteKind::Update, &cells);
                    installs.insert(row.object, self.versions[row.object as usize]);
                    self.rows.insert(key, row);
                }
                (5, Some(row)) => {
                    // Deletions and moves are last in a transaction of their own.
                    if !installs.is_empty() {
                        continue;
                    }
                    let from = tape.now();
                    let to = self.random.below(KEYS.into()) as u8;
                    self.rows.remove(&key);
                    let at = self.versions[row.object as usize];
                    if self.random.percent(50.0) && !self.rows.contains_key(&to) && to != key {
                        tape.write(
                            worker,
                            row.object,
                            WriteKind::Update,
                            &[(0, row.columns[0])],
                        );
                        entries.push((from, row.object, to, true));
                        self.rows.insert(to, row.clone());
                    } else {
                        tape.write(worker, row.object, WriteKind::Delete, &[]);
                        self.free.push(row.object);
                    }
                    entries.push((from, row.object, key, false));
                    installs.insert(row.object, at);
                    break;
                }
                (0..6, None) => {
                    let from = tape.now();
                    let object = self.free.pop().unwrap_or_else(|| {
                        self.versions.push(0);
                        self.versions.len() as u64 - 1
                    });
                    let columns = [self.fresh_value(), self.fresh_value()];
                    let cells = [(0, columns[0]), (1, columns[1])];
                    tape.write(worker, object, WriteKind::Insert, &cells);
                    installs.insert(object, self.versions[object as usize]);
                    entries.push((from, object, key, true));
                    self.rows.insert(key, Row { object, columns });
                    break;
                }
                _ => {
                    let (a, b) = (key, self.random.below(KEYS.into()) as u8);
                    self.scan(tape, worker, a.min(b), a.max(b));
                }
            }
        }
        if commits {
            for (from, object, key, added) in entries {
                match added {
                    true => tape.added(worker, object, &[key], from),
                    false => tape.removed(worker, object, &[key], from),
                }
            }
            for (object, previous) in installs {
                tape.install(worker, object, previous, version);
                self.versions[object as usize] = version;
            }
            tape.commit(worker);
        } else {
            let objects = self.versions.len();
            (self.rows, self.free, self.versions) = before;
            // Objects that were new stay so; no transaction will use them.
            self.versions.resize(objects, 0);
            match self.random.percent(50.0) {
                true => tape.abort(worker),
                false => tape.reject(worker),
            }
        }
    }

    fn scan(&mut self, tape: &mut Tape, worker: usize, low: u8, high: u8) {
        let reverse = self.random.percent(30.0);
        let stops = self.random.percent(30.0);
        let range = tape.range_begin(worker, &[low], &[high]);
        let mut rows: Vec<(u8, Row)> = self
            .rows
            .range(low..=high)
            .map(|(key, row)| (*key, row.clone()))
            .collect();
        if reverse {
            rows.reverse();
        }
        if stops && !rows.is_empty() {
            rows.truncate(1 + self.random.below(rows.len()));
        }
        for (_, row) in &rows {
            tape.met(worker, range, row.object);
            let at = self.versions[row.object as usize];
            tape.read(worker, row.object, at, &[(1, row.columns[1])]);
        }
        match rows.last() {
            Some((key, _)) if stops => tape.range_stop(worker, range, &[*key], reverse),
            _ => tape.range_end(worker, range),
        }
    }
}

fn history(seed: u64, transactions: usize) -> History {
    let mut database = Database::new(seed);
    let mut tape = Tape::new(WORKERS);
    for _ in 0..transactions {
        let worker = database.random.below(WORKERS);
        database.transaction(&mut tape, worker);
    }
    tape.history()
}

#[test]
fn serial_executions_are_serializable() {
    for seed in 0..300 {
        let report = judge(&history(seed, 200), Order::Strict);
        assert!(report.is_serializable(), "seed {seed}: {report}");
    }
    // Long enough that trees of entries have several levels.
    let report = judge(&history(1_000, 20_000), Order::Strict);
    assert!(report.is_serializable(), "{report}");
}

/// A change of one event that no serial execution explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mutation {
    UnknownVersion,
    OtherValue,
    ForgottenEntry,
    OtherPrevious,
    OtherVersion,
    UndoneCommit,
    ForgottenInstall,
}

/// The places at which a history can be changed: the log, the word, and how.
fn places(history: &History) -> Vec<(usize, usize, Mutation)> {
    let mut places = Vec::new();
    for (worker, words) in history.logs.iter().enumerate() {
        let mut reader = LogReader::new(words);
        let mut attempt: Vec<(usize, Mutation)> = Vec::new();
        let mut is_stopped = false;
        let mut written = Vec::new();
        let mut installs = false;
        loop {
            let at = reader.position();
            let Some(event) = reader.next() else { break };
            match event.unwrap() {
                Event::Begin { .. } => {
                    attempt.clear();
                    written.clear();
                    (is_stopped, installs) = (false, false);
                }
                Event::Read { object, cells, .. }
                    if !written.contains(&object) && !cells.is_empty() =>
                {
                    attempt.push((at, Mutation::OtherValue));
                    attempt.push((at, Mutation::UnknownVersion));
                }
                Event::Met { .. } => attempt.push((at, Mutation::ForgottenEntry)),
                Event::RangeEnd { stopped_at, .. } => is_stopped |= !stopped_at.is_empty(),
                Event::Write { object, .. } => written.push(object),
                Event::Install { previous, .. } => {
                    installs = true;
                    // What was there at first is learned from the first installation.
                    if previous.0 != 0 {
                        attempt.push((at, Mutation::OtherPrevious));
                    }
                    attempt.push((at, Mutation::OtherVersion));
                    attempt.push((at, Mutation::ForgottenInstall));
                }
                Event::Commit { .. } | Event::Reject { .. } => {
                    if installs {
                        attempt.push((at, Mutation::UndoneCommit));
                    }
                    let counts = |mutation: Mutation| {
                        // Where a scan stopped may be the entry that is forgotten.
                        mutation != Mutation::ForgottenEntry || !is_stopped
                    };
                    let all = attempt.drain(..).filter(|(_, mutation)| counts(*mutation));
                    places.extend(all.map(|(at, mutation)| (worker, at, mutation)));
                }
                _ => {}
            }
        }
    }
    places
}

fn mutate(history: &mut History, (worker, at, mutation): (usize, usize, Mutation)) {
    let words = &mut history.logs[worker];
    match mutation {
        // A version that no transaction installed.
        Mutation::UnknownVersion => words[at + 2] += 1 << 40,
        Mutation::OtherValue => words[at + 3] ^= 0x8000_0000,
        Mutation::ForgottenEntry => {
            words.drain(at..at + 2);
        }
        Mutation::OtherPrevious => words[at + 2] += 1,
        Mutation::OtherVersion => words[at + 3] = words[at + 2],
        // An abort's kind is one more than a commit's.
        Mutation::UndoneCommit => words[at] += 1,
        Mutation::ForgottenInstall => {
            words.drain(at..at + 4);
        }
    }
}

#[test]
fn executions_with_one_event_changed_are_not() {
    let mut tried: BTreeMap<Mutation, u32> = BTreeMap::new();
    for seed in 0..2_000 {
        let original = history(seed, 60);
        let places = places(&original);
        let mut random = Random::from_seed(seed);
        let place = places[random.below(places.len())];
        let mut changed = original.clone();
        mutate(&mut changed, place);
        let report = judge(&changed, Order::Strict);
        assert!(!report.is_serializable(), "seed {seed}: {place:?}");
        *tried.entry(place.2).or_default() += 1;
    }
    assert_eq!(tried.len(), 7, "{tried:?}");
}

#[test]
fn damaged_logs_are_errors_or_judged_but_never_a_panic() {
    let mut errors = 0;
    for seed in 0..3_000 {
        let mut damaged = history(seed % 50, 60);
        let mut random = Random::from_seed(seed);
        for _ in 0..1 + random.below(3) {
            let words = &mut damaged.logs[random.below(WORKERS)];
            let at = random.below(words.len());
            match random.below(6) {
                0 => words.truncate(at),
                1 => drop(words.remove(at)),
                2 => words[at] = random.next_u64(),
                3 => words[at] ^= 1 << random.below(64),
                4 => words[at] = u64::MAX,
                _ => words.insert(at, random.next_u64() & 0xff),
            }
        }
        for order in [Order::Serializable, Order::Strict] {
            let options = Options {
                order,
                threads: 1,
                ..Options::default()
            };
            match check(&damaged, &options) {
                Ok(report) => drop(report.to_string()),
                Err(error) => {
                    assert!(
                        error.to_string().starts_with("the log of worker "),
                        "{error}"
                    );
                    errors += 1;
                }
            }
        }
    }
    assert!(errors > 1_000, "{errors}");
}

#[test]
fn an_old_version_with_its_own_values_is_out_of_date() {
    // The whole read is replaced by what another one saw in an earlier version of the object.
    let mut tried = 0;
    for seed in 0..1_000 {
        let mut changed = history(seed, 80);
        let mut reads: BTreeMap<u64, Vec<(u64, usize, usize, u64)>> = BTreeMap::new();
        for (worker, words) in changed.logs.iter().enumerate() {
            let mut reader = LogReader::new(words);
            let mut candidates = Vec::new();
            let mut writes = false;
            loop {
                let at = reader.position();
                let Some(event) = reader.next() else { break };
                match event.unwrap() {
                    Event::Begin { .. } => {
                        candidates.clear();
                        writes = false;
                    }
                    Event::Read {
                        object,
                        version,
                        cells: [cell],
                    } => candidates.push((object.0, version.0, at, *cell)),
                    Event::Write { .. } => writes = true,
                    Event::Commit { .. } if !writes => {
                        for (object, version, at, cell) in candidates.drain(..) {
                            let of_object = reads.entry(object).or_default();
                            of_object.push((version, worker, at, cell));
                        }
                    }
                    _ => {}
                }
            }
        }
        let pair = reads.values().find_map(|reads| {
            let oldest = reads.iter().min()?;
            let newer = reads.iter().find(|read| read.3 != oldest.3)?;
            Some((*oldest, *newer))
        });
        let Some((old, (_, worker, at, _))) = pair else {
            continue;
        };
        changed.logs[worker][at + 2] = old.0;
        changed.logs[worker][at + 3] = old.3;
        let report = judge(&changed, Order::Strict);
        assert!(!report.is_serializable(), "seed {seed}");
        tried += 1;
    }
    assert!(tried > 300, "{tried} histories had two versions to swap");
}
