//! Looking at data directories: what is damaged is found, and nothing panics.

#![cfg(not(kiln_sim))]

use std::path::{Path, PathBuf};

use crate::files::{change, files, number, options, temporary};
use kiln_durability::DataDirectory;
use kiln_durability::inspect::{CheckReport, check, read_checkpoint, read_log, status};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::random::Random;
use kiln_sql::{Database, Result, SqlState};

/// A database with two checkpoints and something after them; all segments of its log but the last
/// are kept whole.
fn made(directory: &TemporaryDirectory) -> PathBuf {
    let path = directory.path().join("data");
    let database = Database::open(options(&path)).expect("it is new");
    let run = |sql: &str| drop(database.execute(sql).expect("it runs"));
    run("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)");
    run("INSERT INTO t SELECT i, repeat('text ', 20) FROM generate_series(1, 3000) i");
    database.engine().checkpoint().expect("there is room");
    run("UPDATE t SET text = 'other' WHERE id % 3 = 0");
    run("CREATE TABLE u (id INTEGER)");
    database.engine().checkpoint().expect("there is room");
    run("UPDATE t SET text = repeat('more ', 40) WHERE id % 2 = 0");
    run("INSERT INTO u VALUES (1)");
    path
}

fn checked(path: &Path) -> Result<CheckReport> {
    check(path, "a test", &mut |_, _| {})
}

/// Looks at a directory in all other ways. What they say is another matter.
fn look(path: &Path) {
    let status = status(path).map(|status| format!("{status:?}"));
    if let Ok(directory) = DataDirectory::open_existing(path, "a test") {
        let mut groups = 0;
        let log = read_log(&directory, &mut |_, _| {}, |_| {
            groups += 1;
            Ok(())
        });
        assert!(log.groups >= groups && status.is_ok());
        for checkpoint in &directory.manifest().checkpoints {
            let _ = read_checkpoint(&directory, checkpoint.number, &mut |_, _| {});
        }
    }
}

/// The files that the manifest names, with the bytes of each that count.
fn counting(path: &Path) -> Vec<(PathBuf, u64)> {
    let directory = DataDirectory::open_existing(path, "a test").expect("it is there");
    let mut last = None;
    let log = read_log(&directory, &mut |_, _| {}, |groups| {
        last = groups.blocks().last().copied();
        Ok(())
    });
    let last = last.expect("the log has blocks");
    assert_eq!(
        last.payload_bytes, 0,
        "the last block calls the one before it durable"
    );
    let mut found = Vec::new();
    for file in files(path) {
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .expect("it is text");
        let segment = log
            .segments
            .iter()
            .find(|it| name == format!("{:020}.log", it.number));
        let bytes = match segment {
            Some(it) if it.number == last.segment => last.offset,
            Some(it) => it.used_bytes,
            None if name.ends_with(".log") || name == "LOCK" => 0,
            None => change(&path.join(&file), |bytes| bytes).len() as u64,
        };
        found.push((file, bytes));
    }
    found.retain(|(_, bytes)| *bytes > 0);
    found
}

#[test]
fn a_check_reads_everything_and_finds_no_damage_where_there_is_none() {
    let directory = temporary();
    let path = made(&directory);
    let report = checked(&path).expect("it is there");
    assert!(report.damages.is_empty(), "{report:?}");
    assert_eq!(
        (report.checkpoints, report.files, report.rows),
        (2, 5, 6_000)
    );
    let counted: u64 = counting(&path).iter().map(|(_, bytes)| bytes).sum();
    assert!(
        report.bytes > 300_000 && report.bytes < counted + 8192,
        "{report:?} {counted}"
    );
    assert!(report.entries >= 4 && report.segments >= 2, "{report:?}");
    look(&path);
    // It has changed nothing.
    let database = Database::open(options(&path)).expect("it is there");
    assert_eq!(
        number(&database, "SELECT count(*) FROM t WHERE text LIKE 'more%'"),
        1500
    );
    let error = checked(&path).expect_err("it is open");
    assert_eq!(error.state(), SqlState::OBJECT_IN_USE);
    let found = status(&path).expect("it may be open");
    let holder = found.holder.expect("it is open");
    assert!(holder.contains(&std::process::id().to_string()), "{holder}");
    assert_eq!(found.manifest.checkpoints.len(), 2);
    drop(database);
    let found = status(&path).expect("it is there");
    assert_eq!(found.holder, None);
    let end = found.end.expect("the log has blocks");
    assert!(found.replay_bytes >= end.offset && found.replay_bytes <= found.log_bytes);
    let log = DataDirectory::open_existing(&path, "a test").expect("it is closed");
    let log = read_log(&log, &mut |_, _| {}, |_| Ok(()));
    assert_eq!(log.end.map(|end| end.offset), Some(end.offset));
    // What is no database stays as it is.
    let nowhere = directory.path().join("nowhere");
    assert_eq!(
        checked(&nowhere).map(drop).map_err(|it| it.state()),
        Err(SqlState::UNDEFINED_FILE)
    );
    assert!(status(&nowhere).is_err() && Directory::open(&nowhere).is_err());
    assert!(checked(directory.path()).is_err());
}

#[test]
fn a_check_finds_flipped_bits() {
    let directory = temporary();
    let path = made(&directory);
    let counting = counting(&path);
    let mut random = Random::from_seed(7);
    for round in 0..40 {
        for (file, bytes) in &counting {
            let (at, bit) = (random.below(*bytes as usize), random.below(8));
            let flipped = path.join(file);
            let flip = |mut bytes: Vec<u8>| {
                bytes[at] ^= 1 << bit;
                bytes
            };
            change(&flipped, flip);
            let report = checked(&path).expect("damage is reported");
            let place = format!(
                "round {round}: bit {bit} of byte {at} of {}",
                file.display()
            );
            assert!(!report.damages.is_empty(), "{place}: {report:?}");
            for damage in &report.damages {
                assert!(damage.hint().is_some(), "{place}: {damage}");
            }
            look(&path);
            change(&flipped, flip);
        }
    }
    let report = checked(&path).expect("it is there");
    assert!(report.damages.is_empty(), "{report:?}");
}

#[test]
fn a_check_finds_files_that_are_cut_off_or_missing() {
    let directory = temporary();
    let path = made(&directory);
    let counting = counting(&path);
    let mut random = Random::from_seed(8);
    // A crash leaves a log without its last blocks as well.
    let segments = counting.iter().filter(|(file, _)| file.starts_with("log"));
    let last = segments.map(|(file, _)| file.clone()).max();
    for (file, bytes) in &counting {
        let place = path.join(file);
        let whole = change(&place, |bytes| bytes);
        for length in [0, *bytes as usize - 1, random.below(*bytes as usize)] {
            change(&place, |mut bytes| {
                bytes.truncate(length);
                bytes
            });
            let report = checked(&path).expect("damage is reported");
            let is_found = !report.damages.is_empty();
            assert!(
                is_found || Some(file) == last.as_ref(),
                "{file:?} with {length} bytes: {report:?}"
            );
            look(&path);
        }
        let parent = Directory::open(place.parent().expect("it is a file")).expect("it is there");
        let name = place
            .file_name()
            .and_then(|name| name.to_str())
            .expect("it is text");
        parent.remove_file(name).expect("it is there");
        match checked(&path) {
            Ok(report) => {
                let is_found = !report.damages.is_empty();
                assert!(
                    is_found || Some(file) == last.as_ref(),
                    "{file:?}: {report:?}"
                );
            }
            // Without a manifest there is no database.
            Err(error) => assert_eq!(name, "MANIFEST", "{error}"),
        }
        look(&path);
        parent.create_file(name).expect("it is gone");
        change(&place, |_| whole.clone());
    }
    let report = checked(&path).expect("it is there");
    assert!(report.damages.is_empty(), "{report:?}");
}
