//! Logs on the machine's disk: what is in them, and when threads that wait for it go on.

#![cfg(not(kiln_sim))]

use std::collections::BTreeSet;
use std::path::Path;
use std::task::{Context, Poll, Waker};

use kiln_durability::format::entry::{Entries, Entry};
use kiln_durability::format::{Chain, DatabaseId, block, segment_name};
use kiln_durability::log::{Log, LogOptions, Position};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::thread;
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};

const DATABASE: DatabaseId = DatabaseId(*b"tests of the log");

fn temporary() -> TemporaryDirectory {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    TemporaryDirectory::within(parent, "kiln-log").expect("the test may write there")
}

fn open(directory: &TemporaryDirectory, position: Position, segment_bytes: u64) -> Log {
    let log = Directory::open(directory.path()).expect("it is there");
    let options = LogOptions::with_segments(segment_bytes);
    Log::open(log, position, LogEpochs::new(4), (4, 0), &options).expect("it can be opened")
}

/// The entries of a log, each group's in the order of their keys, and where it goes on.
fn read(directory: &TemporaryDirectory) -> (Vec<Vec<u8>>, Position) {
    let directory = Directory::open(directory.path()).expect("it is there");
    let mut position = Position::start(DATABASE);
    let (mut keys, mut group) = (Vec::new(), Vec::new());
    for segment in 1.. {
        let Ok(file) = directory.open_file(&segment_name(segment)) else {
            break;
        };
        let mut bytes = vec![0; file.len().expect("it is a file") as usize];
        file.read_at(0, &mut bytes).expect("it can be read");
        let mut at = 0;
        while at < bytes.len() {
            let Ok(block) = position.chain.next(&bytes[at..], segment) else {
                break;
            };
            at += block.bytes();
            assert!(block.header.epochs.0 <= block.header.epochs.1);
            assert!(block.header.durable_through < block.header.number);
            group.extend_from_slice(block.payload);
            (position.segment, position.offset) = (segment, at as u64);
            position.epoch = block.header.epochs.1;
            if block.header.goes_on {
                continue;
            }
            for entry in Entries::new(&group) {
                match entry.expect("it is an entry") {
                    Entry::Outcome { epoch, key, .. } => {
                        assert!(epoch <= position.epoch);
                        assert!(epoch >= block.header.epochs.0);
                        keys.push(key.to_vec());
                    }
                    Entry::Statement { text, .. } => keys.push(text.as_bytes().to_vec()),
                    other => panic!("{other:?}"),
                }
            }
            group.clear();
        }
    }
    assert!(group.is_empty(), "the last group is whole");
    (keys, position)
}

#[test]
fn what_was_waited_for_is_read_back_and_the_log_goes_on() {
    const CLIENTS: u64 = 4;
    const CALLS: u64 = 60;
    let directory = temporary();
    let mut position = Position::start(DATABASE);
    let mut expected = BTreeSet::new();
    for life in 0..3 {
        let log = open(&directory, position, 256 << 10);
        let waited = AtomicU64::new(0);
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (log, waited) = (&log, &waited);
                scope.spawn(move || {
                    for call in 0..CALLS {
                        let key = format!("{life}/{client}/{call}");
                        let answer = vec![b'x'; (call * 97 % 3_000) as usize];
                        let epoch = log.append_outcome(key.as_bytes(), &answer);
                        log.wait(epoch).expect("the disk works");
                        assert!(log.durable_through() >= epoch);
                        waited.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let keys = (0..CLIENTS).flat_map(|client| {
            (0..CALLS).map(move |call| format!("{life}/{client}/{call}").into_bytes())
        });
        expected.extend(keys);
        let statistics = log.statistics();
        assert_eq!(statistics.entries, CLIENTS * CALLS);
        assert!(statistics.group_entries.count() <= CLIENTS * CALLS);
        log.close().expect("the disk works");
        drop(log);
        let (keys, end) = read(&directory);
        assert_eq!(keys.iter().cloned().collect::<BTreeSet<_>>(), expected);
        assert_eq!(keys.len(), expected.len(), "nothing is there twice");
        assert!(end.segment > 1, "it went on to another segment");
        position = end;
    }
}

#[test]
fn an_entry_longer_than_blocks_and_segments_is_split() {
    let directory = temporary();
    let log = open(&directory, Position::start(DATABASE), 256 << 10);
    let long = vec![7; 3 * block::PAYLOAD_MAX / 2];
    log.append_outcome(b"long", &long);
    let epoch = log.append_statement("DROP TABLE t");
    let last = log.append_outcome(b"after", b"");
    assert!(epoch < last);
    log.wait(last).expect("the disk works");
    let statistics = log.statistics();
    assert!(statistics.written_bytes > long.len() as u64);
    drop(log);
    let keys = read(&directory).0;
    let expected: Vec<Vec<u8>> = ["long", "DROP TABLE t", "after"].map(Vec::from).into();
    assert_eq!(keys, expected);
}

#[test]
fn what_nobody_waits_for_is_written_soon_and_readers_wait_for_nothing() {
    let directory = temporary();
    let log = open(&directory, Position::start(DATABASE), 256 << 10);
    // Nothing was appended: epochs that pass have nothing to wait for.
    assert!(log.is_durable(LogEpoch(1_000)));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(log.poll(LogEpoch(1_000), &mut context), Poll::Ready(Ok(())));
    let epoch = log.append_outcome(b"key", b"answer");
    while log.durable_through() < epoch {
        thread::sleep(1_000_000);
    }
    // And then a block without entries, which says that the first one is on disk.
    while read(&directory).1.chain.last < 2 {
        thread::sleep(1_000_000);
    }
    drop(log);
    assert_eq!(read(&directory).1.chain, {
        let end = read(&directory).1;
        Chain {
            last: 2,
            ..end.chain
        }
    });
}

#[test]
fn a_log_that_goes_on_says_that_what_was_read_is_on_disk() {
    let directory = temporary();
    let log = open(&directory, Position::start(DATABASE), 256 << 10);
    log.append_outcome(b"key", b"answer");
    drop(log);
    let end = read(&directory).1;
    let log = open(&directory, end, 256 << 10);
    drop(log);
    // Whether the last block was followed by another one before is not known: the process may have
    // been killed.
    assert_eq!(read(&directory).1.chain.last, end.chain.last + 1);
}

#[test]
fn what_a_log_could_not_write_is_handed_over_once() {
    let directory = temporary();
    let log = open(&directory, Position::start(DATABASE), 64 << 10);
    let lost = || {
        let mut keys = Vec::new();
        log.take_lost(|entry| match entry {
            Ok(Entry::Outcome { key, .. }) => keys.push(String::from_utf8_lossy(key).into_owned()),
            other => panic!("{other:?}"),
        });
        keys
    };
    // No third segment can be made, and the second one is filled up.
    let third = directory.path().join(segment_name(3));
    Directory::create(&third).expect("it can be made");
    let mut next = 0;
    let mut append = || {
        next += 1;
        let epoch = log.append_outcome(format!("{next}").as_bytes(), &[1; 4_000]);
        (next, log.wait(epoch))
    };
    let first_lost = loop {
        let (number, written) = append();
        match written {
            Ok(()) => assert!(lost().is_empty()),
            Err(_) => break number,
        }
    };
    assert!(log.has_failed());
    assert_eq!(lost(), [first_lost.to_string()]);
    assert!(lost().is_empty());
    let (after, written) = append();
    written.expect_err("it writes nothing any more");
    append().1.expect_err("it writes nothing any more");
    assert_eq!(lost(), [after.to_string(), (after + 1).to_string()]);
    // What is lost does not keep transactions from beginning.
    assert!(!log.is_congested());
}

#[test]
fn a_log_that_cannot_write_says_so_to_all_that_wait() {
    let directory = temporary();
    let log = open(&directory, Position::start(DATABASE), 64 << 10);
    // No segment can be made any more where the directory is gone.
    let second = directory.path().join(segment_name(3));
    Directory::create(&second).expect("it can be made");
    let mut refused = None;
    for call in 0..1_000 {
        let epoch = log.append_outcome(format!("{call}").as_bytes(), &[1; 4_000]);
        if let Err(error) = log.wait(epoch) {
            refused = Some(error);
            break;
        }
    }
    let error = refused.expect("two segments have no room for all of it");
    assert_eq!(
        log.refusal().map(|it| it.to_string()),
        Some(error.to_string())
    );
    assert!(log.close().is_err());
}
