//! Backups and restorations on the simulated disk: the power goes in every operation, and each
//! operation fails. What a restoration takes for a backup is all of it, and what is opened after a
//! restoration is all of the database.

#![cfg(kiln_sim)]

mod simulation;

use std::path::Path;

use kiln_durability::backup::{back_up_closed, restore};
use kiln_durability::checkpoint::{Reader, Writer};
use kiln_durability::format::block::{HEADER_BYTES, bytes_of};
use kiln_durability::format::entry::{Entry, append_outcome};
use kiln_durability::format::{BlockHeader, Chain, segment_name};
use kiln_durability::recovery::{Replay, Scan, Start};
use kiln_durability::{CheckpointEntry, DataDirectory};
use kiln_platform::disk::{self, Directory};
use kiln_platform::sim::disk::{Disk, Fault, Options};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::TableId;
use simulation::{after_every_end, on};

const DATA: &str = "/data";
const BACKUP: &str = "/copies/backup";
const RESTORED: &str = "/restored";

const HOLDER: &str = "a test";
const SEGMENT: usize = 16 << 10;
const TABLE: TableId = TableId(1);

/// What is in a data directory: rows of its checkpoint, and keys of its log.
type Content = (Vec<Vec<u8>>, Vec<Vec<u8>>);

fn rows() -> Vec<Vec<u8>> {
    (1..9).map(|row| vec![row; 700]).collect()
}

fn keys() -> Vec<Vec<u8>> {
    (1..=6)
        .map(|epoch: u64| epoch.to_le_bytes().to_vec())
        .collect()
}

/// Makes a database with a checkpoint and two segments of a log, which goes on after it.
fn make() -> Result<()> {
    let data = DataDirectory::open(Path::new(DATA), HOLDER)?;
    let mut manifest = (*data.manifest()).clone();
    let mut chain = Chain::new(manifest.database);
    for segment in [1, 2] {
        let mut bytes = Vec::new();
        for epoch in segment * 3 - 2..=segment * 3 {
            let mut payload = Vec::new();
            append_outcome(&mut payload, epoch, &epoch.to_le_bytes(), &[7; 1_000]);
            let mut block = vec![0; bytes_of(payload.len())];
            block[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(&payload);
            let header = BlockHeader {
                epochs: (epoch, epoch),
                durable_through: epoch - 1,
                written_us: epoch as i64,
                ..BlockHeader::default()
            };
            chain.seal(&mut block, payload.len(), segment, header);
            bytes.extend(block);
        }
        bytes.resize(SEGMENT, 0);
        write(data.log(), &segment_name(segment), &bytes).expect("nothing fails");
    }
    let writer = Writer::create(data.checkpoints(), manifest.database, 1)?;
    writer.catalog("a catalog", |_| ())?;
    let mut file = writer.table(TABLE, 0, |_| ())?;
    for row in rows() {
        file.row(&row)?;
    }
    file.finish()?;
    let written = writer.finish()?;
    manifest.checkpoints.push(CheckpointEntry {
        number: 1,
        start_epoch: 1,
        end_epoch: 4,
        segment: 1,
        catalog: 1,
        written_us: 4,
        rows: written.rows,
        files: written.files,
    });
    data.publish(manifest)
}

fn write(directory: &Directory, name: &str, bytes: &[u8]) -> disk::Result<()> {
    let file = directory.create_file(name)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    directory.sync()
}

/// All that can be read in the data directory at `path`.
fn content(path: &str) -> Result<Content> {
    let data = DataDirectory::open_existing(Path::new(path), HOLDER)?;
    let manifest = data.manifest();
    let mut rows = Vec::new();
    for entry in &manifest.checkpoints {
        let reader = Reader::open(data.checkpoints(), manifest.database, entry.clone())?;
        assert_eq!(reader.catalog()?, "a catalog");
        let mut file = reader.table(TABLE, 0)?;
        while let Some(block) = file.next_block()? {
            rows.extend(block.map(<[u8]>::to_vec));
        }
    }
    let log = Directory::open(data.log().path()).expect("it was opened before");
    let start = Start::of(manifest.database, manifest.first_segment);
    let (mut replay, mut keys) = (Replay::new(Scan::open(log, start)?, 0), Vec::new());
    let mut add = |entry: &Entry<'_>| {
        if let Entry::Outcome { key, .. } = entry {
            keys.push(key.to_vec());
        }
        Ok(())
    };
    while replay.next_group(&mut add)?.is_some() {}
    Ok((rows, keys))
}

/// A disk with the database, all of it durable.
fn with_database() -> Disk {
    let disk = Disk::new(Options::new(1));
    on(&disk, 1, make).expect("nothing fails");
    disk
}

fn back_up() -> Result<()> {
    let copied = back_up_closed(Path::new(DATA), Path::new(BACKUP), HOLDER, &mut |_, _| {});
    copied.map(drop)
}

fn restore_backup() -> Result<()> {
    let (from, to) = (Path::new(BACKUP), Path::new(RESTORED));
    restore(from, to, None, HOLDER, &mut |_, _| {}).map(drop)
}

/// The files below a directory.
fn files_below(disk: &Disk, path: &str) -> Vec<String> {
    let names = disk.files().into_iter().map(|(name, _)| name);
    names.filter(|name| name.starts_with(path)).collect()
}

/// Checks what the next process finds after a backup: `is_taken` when it was there before the power
/// went.
fn check_backup(disk: &Disk, is_taken: bool, context: &str) {
    let whole = on(disk, 3, || content(DATA));
    assert_eq!(whole, Ok((rows(), keys())), "{context}: the database");
    match on(disk, 4, restore_backup) {
        Ok(()) => {
            let restored = on(disk, 5, || content(RESTORED));
            assert_eq!(restored, Ok((rows(), keys())), "{context}: restored");
        }
        Err(error) => {
            assert!(!is_taken, "{context}: {error}");
            let left = files_below(disk, RESTORED);
            assert!(left.is_empty(), "{context}: {left:?} were left by {error}");
        }
    }
}

/// Operations of a process on a disk that it opens as it is, which nothing fails.
fn operations(disk: &Disk, process: fn() -> Result<()>) -> u64 {
    let (disk, before) = (disk.copy(), disk.operations());
    on(&disk, 2, process).expect("nothing fails");
    println!("{} operations", disk.operations() - before);
    disk.operations() - before
}

/// Runs a process on a copy of the disk after `prepare`, which is told the number of the operation
/// that is chosen.
fn run(
    disk: &Disk,
    operation: u64,
    process: fn() -> Result<()>,
    prepare: impl FnOnce(&Disk, u64),
) -> (Disk, Result<()>) {
    let disk = disk.copy();
    prepare(&disk, disk.operations() + operation);
    let done = on(&disk, 2, process);
    (disk, done)
}

#[test]
fn a_power_loss_leaves_a_whole_backup_or_none() {
    let before = with_database();
    for operation in 1..=operations(&before, back_up) {
        let (disk, _) = run(&before, operation, back_up, Disk::crash_at);
        assert!(disk.is_off(), "operation {operation} is never reached");
        after_every_end(&disk, operation, |found, end| {
            check_backup(found, false, &format!("operation {operation}, {end}"));
        });
    }
    // And when it goes after the end.
    let (disk, taken) = run(&before, 0, back_up, |_, _| {});
    taken.expect("nothing fails");
    after_every_end(&disk, 1, |found, end| check_backup(found, true, end));
}

#[test]
fn a_backup_that_fails_leaves_no_file() {
    let before = with_database();
    for operation in 1..=operations(&before, back_up) {
        for fault in Fault::ALL {
            let (disk, taken) = run(&before, operation, back_up, |disk, at| {
                disk.inject(at, fault)
            });
            let context = format!("{fault:?} in operation {operation}");
            if let Err(error) = &taken {
                let state = error.state();
                let is_of_disk = [SqlState::IO_ERROR, SqlState::DISK_FULL].contains(&state);
                assert!(is_of_disk, "{context}: {error}");
                let left = files_below(&disk, BACKUP);
                assert!(left.is_empty(), "{context}: {left:?} were left by {error}");
            }
            let mut ends = 0;
            after_every_end(&disk, operation, |found, end| {
                ends += 1;
                // Restarted; all survives, none, any pieces: others differ in what they leave of
                // one file.
                if [1, 2, 3, 9].contains(&ends) {
                    check_backup(found, taken.is_ok(), &format!("{context}, {end}"));
                }
            });
        }
    }
}

/// Checks what the next process finds after a restoration: `is_made` when it was there before the
/// power went.
fn check_restored(disk: &Disk, is_made: bool, context: &str) {
    match on(disk, 3, || content(RESTORED)) {
        Ok(found) => assert_eq!(found, (rows(), keys()), "{context}"),
        Err(error) => {
            assert!(!is_made, "{context}: {error}");
            let refused = [SqlState::UNDEFINED_FILE, SqlState::DATA_CORRUPTED];
            assert!(refused.contains(&error.state()), "{context}: {error}");
        }
    }
}

#[test]
fn a_power_loss_leaves_a_whole_restored_database_or_none() {
    let before = with_database();
    on(&before, 2, back_up).expect("nothing fails");
    for operation in 1..=operations(&before, restore_backup) {
        let (disk, _) = run(&before, operation, restore_backup, Disk::crash_at);
        assert!(disk.is_off(), "operation {operation} is never reached");
        after_every_end(&disk, operation, |found, end| {
            check_restored(found, false, &format!("operation {operation}, {end}"));
        });
    }
    let (disk, made) = run(&before, 0, restore_backup, |_, _| {});
    made.expect("nothing fails");
    after_every_end(&disk, 1, |found, end| check_restored(found, true, end));
}

#[test]
fn a_restoration_that_fails_leaves_no_file() {
    let before = with_database();
    on(&before, 2, back_up).expect("nothing fails");
    for operation in 1..=operations(&before, restore_backup) {
        for fault in Fault::ALL {
            let fail = |disk: &Disk, at| disk.inject(at, fault);
            let (disk, made) = run(&before, operation, restore_backup, fail);
            let context = format!("{fault:?} in operation {operation}");
            if let Err(error) = &made {
                let left = files_below(&disk, RESTORED);
                assert!(left.is_empty(), "{context}: {left:?} were left by {error}");
            }
            let mut ends = 0;
            after_every_end(&disk, operation, |found, end| {
                ends += 1;
                if [1, 2, 3, 9].contains(&ends) {
                    check_restored(found, made.is_ok(), &format!("{context}, {end}"));
                }
            });
        }
    }
}
