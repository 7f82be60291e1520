//! Makes a history of ten million operations, judges it, and says how long that took and how much
//! memory it needed.
//!
//! ```text
//! cargo run --release -p kiln-checker --example ten_million [-- OPERATIONS [THREADS]]
//! ```
//!
//! The history is that of a serial execution by eight workers: transactions read and change random
//! rows of a million, one in four inserts or deletes a row, and one in four reads a range of twenty
//! rows.

use std::path::Path;

use kiln_checker::{Options, check};
use kiln_history::{Cell, Clock, EntryChange, History, IndexId, Log, Object, Version, WriteKind};
use kiln_platform::random::Random;
use kiln_platform::{file, time};

const WORKERS: usize = 8;
const ROWS: usize = 1_000_000;
const INDEX: IndexId = IndexId { table: 0, index: 0 };

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| match arguments.next() {
        Some(text) => text
            .parse()
            .map_err(|_| format!("\"{text}\" is not a number")),
        None => Ok(default),
    };
    let operations = number(10_000_000)?;
    let mut options = Options::default();
    options.threads = number(options.threads as u64)? as usize;

    let begin = time::now_ns();
    let (history, made) = generate(operations);
    println!(
        "{made} operations in {} MiB of logs, made in {:.1} s",
        history.log_bytes() >> 20,
        seconds_since(begin)
    );
    let before = memory_mib("VmRSS").unwrap_or(0);
    // From here on the peak counts anew, where the system can do that.
    let _ = file::write(Path::new("/proc/self/clear_refs"), b"5");
    let (begin, processor_before) = (time::now_ns(), processor_seconds());
    let report = check(&history, &options).map_err(|error| error.to_string())?;
    let seconds = seconds_since(begin);
    println!("{report}");
    println!(
        "judged in {seconds:.1} s by {} threads: {:.1} million operations/s",
        options.threads,
        made as f64 / seconds / 1e6
    );
    if let (Some(before), Some(after)) = (processor_before, processor_seconds()) {
        println!("processor time: {:.1} s", after - before);
    }
    match memory_mib("VmHWM") {
        Some(peak) => {
            let own = peak.saturating_sub(before);
            println!(
                "memory: {peak} MiB at most, {own} MiB of it besides the logs and what made them: {} \
                 bytes per operation",
                (own << 20) / made
            );
        }
        None => println!("memory: not known on this system"),
    }
    match report.is_serializable() {
        true => Ok(()),
        false => Err("a serial execution was judged not to be serializable".to_owned()),
    }
}

fn seconds_since(begin: u64) -> f64 {
    (time::now_ns() - begin) as f64 / 1e9
}

/// The processor time that this process has used.
fn processor_seconds() -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let statistics = file::read_to_string(Path::new("/proc/self/stat")).ok()?;
    // The name in parentheses may contain anything; eleven fields lie between it and the two.
    let (_, fields) = statistics.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let sum: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(sum / TICKS_PER_SECOND)
}

/// A figure of this process's memory, in MiB.
fn memory_mib(name: &str) -> Option<u64> {
    let status = file::read_to_string(Path::new("/proc/self/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib >> 10)
}

/// The rows of the database whose execution is made up.
struct Rows {
    versions: Vec<u64>,
    prints: Vec<u32>,
    is_there: Vec<bool>,
}

/// A history of about so many reads, writes and ranges, and how many they are exactly.
fn generate(operations: u64) -> (History, u64) {
    let clock = Clock::new();
    let mut logs: Vec<Log> = (0..WORKERS)
        .map(|_| Log::new(clock.clone(), usize::MAX))
        .collect();
    let mut random = Random::from_seed(1);
    let mut rows = Rows {
        versions: vec![1; ROWS],
        prints: vec![0; ROWS],
        is_there: vec![true; ROWS],
    };
    let mut made = 0;
    let mut version = 1;
    while made < operations {
        let log = &mut logs[random.below(WORKERS)];
        version += 1;
        log.begin(0, clock.now());
        made += transaction(log, &mut rows, &mut random, version);
        log.commit();
    }
    let history = History {
        protocol: "serial".to_owned(),
        workload: "made up".to_owned(),
        procedures: vec!["transaction".to_owned()],
        logs: logs.iter_mut().map(Log::take_words).collect(),
        ..History::default()
    };
    (history, made)
}

fn transaction(log: &mut Log, rows: &mut Rows, random: &mut Random, version: u64) -> u64 {
    let mut made = 0;
    let mut written: Vec<usize> = Vec::new();
    for _ in 0..6 {
        let row = random.below(ROWS);
        if written.contains(&row) {
            continue;
        }
        made += read(log, rows, row);
        if rows.is_there[row] && random.percent(50.0) {
            rows.prints[row] = version as u32;
            let cell = Cell {
                column: 1,
                print: version as u32,
            };
            log.write(object(row), WriteKind::Update, [cell].into_iter());
            written.push(row);
            made += 1;
        }
    }
    let kind = random.below(4);
    if kind == 0 {
        let row = random.below(ROWS);
        if !written.contains(&row) {
            let from = log.now();
            let change = match rows.is_there[row] {
                true => {
                    log.write(object(row), WriteKind::Delete, [].into_iter());
                    EntryChange::Removed
                }
                false => {
                    rows.prints[row] = version as u32;
                    let cell = |column| Cell {
                        column,
                        print: version as u32,
                    };
                    let cells = [cell(0), cell(1)];
                    log.write(object(row), WriteKind::Insert, cells.into_iter());
                    EntryChange::Added
                }
            };
            rows.is_there[row] = !rows.is_there[row];
            log.entry(INDEX, change, object(row), from, &key(row));
            written.push(row);
            made += 1;
        }
    } else if kind == 1 {
        let first = random.below(ROWS - 20);
        let range = log.range_begin(INDEX, &key(first), &key(first + 19));
        made += 1;
        for row in first..first + 20 {
            if rows.is_there[row] && !written.contains(&row) {
                log.met(range, object(row));
                made += read(log, rows, row);
            } else if rows.is_there[row] {
                log.met(range, object(row));
            }
        }
        log.range_end(range, &[], false);
    }
    for row in written {
        log.install(object(row), Version(rows.versions[row]), Version(version));
        rows.versions[row] = version;
    }
    made
}

fn read(log: &mut Log, rows: &Rows, row: usize) -> u64 {
    let at = Version(rows.versions[row]);
    match rows.is_there[row] {
        true => {
            let cell = Cell {
                column: 1,
                print: rows.prints[row],
            };
            log.read(object(row), at, [cell].into_iter());
        }
        false => log.read_absent(object(row), at),
    }
    1
}

fn object(row: usize) -> Object {
    Object(0x7f00_0000_0000 + 64 * row as u64)
}

fn key(row: usize) -> [u8; 8] {
    (row as u64).to_be_bytes()
}
