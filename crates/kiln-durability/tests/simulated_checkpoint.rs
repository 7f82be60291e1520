//! Checkpoints on the simulated disk: a process writes one after the other and publishes each.
//! Wherever the power goes, and whatever fails, the manifest that the next process finds names
//! checkpoints of which every row can be read.

#![cfg(kiln_sim)]

mod simulation;

use std::path::Path;

use kiln_durability::checkpoint::{Reader, Writer};
use kiln_durability::{CHECKPOINTS_MAX, CheckpointEntry, DataDirectory, Manifest};
use kiln_platform::sim::disk::{Disk, Fault, Options};
use kiln_storage::error::Result;
use kiln_storage::schema::TableId;
use simulation::{after_every_end, on};

const CHECKPOINTS: usize = 3;

fn catalog(checkpoint: u64) -> String {
    format!("catalog 1 version {checkpoint} next 3\nend\n")
}

/// Rows that belong to one file of one checkpoint alone.
fn rows(checkpoint: u64, table: u32) -> Vec<Vec<u8>> {
    let row = |number: u64| {
        let seed = checkpoint * 100 + u64::from(table) * 10 + number;
        let length = seed * 613 % 3_000;
        (0..length).map(|at| (seed * 31 + at) as u8 | 1).collect()
    };
    (0..3).map(row).collect()
}

/// Writes the next checkpoint and publishes it.
fn write(data: &DataDirectory) -> Result<()> {
    let mut manifest = (*data.manifest()).clone();
    let number = (manifest.checkpoints.last()).map_or(1, |last| last.number + 1);
    let writer = Writer::create(data.checkpoints(), manifest.database, number)?;
    writer.catalog(&catalog(number), |_| ())?;
    for table in [1, 2] {
        let mut file = writer.table(TableId(table), 0, |_| ())?;
        for row in rows(number, table) {
            file.row(&row)?;
        }
        file.finish()?;
    }
    let written = writer.finish()?;
    manifest.checkpoints.push(CheckpointEntry {
        number,
        start_epoch: number,
        end_epoch: number,
        segment: 1,
        catalog: number,
        written_us: 0,
        rows: written.rows,
        files: written.files,
    });
    if manifest.checkpoints.len() > CHECKPOINTS_MAX {
        manifest.checkpoints.remove(0);
    }
    let published = data.publish(manifest);
    // After a failure, too: either manifest may be in effect then, and what both name has to stay.
    let removed = data.remove_leftovers();
    if published.is_err() {
        let again = Writer::create(data.checkpoints(), data.manifest().database, number);
        let _ = again.and_then(|writer| writer.catalog("another one", |_| ()));
    }
    published.and(removed)
}

/// Reads all checkpoints. What is wrong with one, if something is.
fn wrong_with(data: &DataDirectory) -> Result<Option<String>> {
    let manifest: &Manifest = &data.manifest();
    for entry in &manifest.checkpoints {
        let number = entry.number;
        let reader = Reader::open(data.checkpoints(), manifest.database, entry.clone())?;
        if reader.catalog()? != catalog(number) {
            return Ok(Some(format!("checkpoint {number} has another catalog")));
        }
        for (table, part) in reader.tables() {
            let mut file = reader.table(table, part)?;
            let mut found = Vec::new();
            while let Some(rows) = file.next_block()? {
                found.extend(rows.map(<[u8]>::to_vec));
            }
            if found != rows(number, table.0) {
                let table = table.0;
                return Ok(Some(format!(
                    "checkpoint {number}, table {table}: {found:?}"
                )));
            }
        }
    }
    Ok(None)
}

/// A process that opens the directory, removes leftovers, reads the checkpoints and writes some
/// more. How it ended, what was wrong, and the number of the last checkpoint that was published
/// while there was power.
fn process(disk: &Disk, seed: u64, checkpoints: usize) -> (Result<Option<String>>, u64) {
    on(disk, seed, || {
        let mut last = 0;
        let mut run = || {
            let data = DataDirectory::open(Path::new("/data"), "a test")?;
            data.remove_leftovers()?;
            if let Some(wrong) = wrong_with(&data)? {
                return Ok(Some(wrong));
            }
            let mut tell = || {
                if !disk.is_off() {
                    last = (data.manifest().checkpoints.last()).map_or(0, |it| it.number);
                }
            };
            tell();
            for _ in 0..checkpoints {
                write(&data)?;
                tell();
            }
            Ok(None)
        };
        (run(), last)
    })
}

/// Reads what is left, and writes one more checkpoint.
fn check(disk: &Disk, last: u64, context: &str) {
    let (ended, found) = process(disk, 77, 0);
    assert_eq!(ended, Ok(None), "{context}");
    assert!(
        found == last || found == last + 1,
        "{context}: {found} after {last}"
    );
    let (ended, next) = process(disk, 78, 1);
    assert_eq!((ended, next), (Ok(None), found + 1), "{context}");
    assert_eq!(process(disk, 79, 0), (Ok(None), next), "{context}");
}

fn operations() -> u64 {
    let whole = Disk::new(Options::new(1));
    assert_eq!(
        process(&whole, 1, CHECKPOINTS),
        (Ok(None), CHECKPOINTS as u64)
    );
    println!("{} operations", whole.operations());
    whole.operations()
}

#[test]
fn a_power_loss_leaves_checkpoints_that_can_be_read() {
    for operation in 1..=operations() {
        let disk = Disk::new(Options::new(operation));
        disk.crash_at(operation);
        let last = process(&disk, 1, CHECKPOINTS).1;
        assert!(disk.is_off(), "operation {operation} is never reached");
        after_every_end(&disk, operation, |found, end| {
            check(found, last, &format!("operation {operation}, {end}"));
        });
    }
}

#[test]
fn an_operation_that_fails_leaves_checkpoints_that_can_be_read() {
    for operation in 1..=operations() {
        for fault in Fault::ALL {
            let disk = Disk::new(Options::new(operation));
            disk.inject(operation, fault);
            let last = process(&disk, 1, CHECKPOINTS).1;
            let mut ends = 0;
            after_every_end(&disk, operation, |found, end| {
                ends += 1;
                // Restarted; all survives, none, any pieces: others differ in what they leave of
                // one file.
                if [1, 2, 3, 9].contains(&ends) {
                    check(
                        found,
                        last,
                        &format!("{fault:?} in operation {operation}, {end}"),
                    );
                }
            });
        }
    }
}
