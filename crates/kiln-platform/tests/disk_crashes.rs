//! What crashes leave of the simulated disk.

#![cfg(kiln_sim)]

mod disk_simulation;

use std::collections::BTreeSet;

use disk_simulation::{DATA, after, changes, data, disk, disks_by_direct_writes, on, read, values};
use kiln_platform::disk::{AlignedBuffer, BLOCK_BYTES, Directory, DurableBy, File};
use kiln_platform::sim::disk::{
    Crash, DirectWrites, Disk, Entries, Moment, Options, Survivors, Tail,
};

#[test]
fn nothing_but_what_was_synced_survives_the_worst_crash() {
    let disk = disk();
    changes(&disk);
    assert_eq!(disk.unsynced(), 3);
    let found = after(&disk, Survivors::None, 1);
    assert_eq!(found.unsynced(), 0);
    assert_eq!(
        found.files(),
        [
            ("/data/durable".to_owned(), 5_000),
            ("/data/old".to_owned(), 0)
        ]
    );
    assert_eq!(read(&found, "durable"), Some(vec![1; 5_000]));

    let found = after(&disk, Survivors::All, 1);
    assert_eq!(found.files(), disk.files());
    assert_eq!(found.files().len(), 3);
    assert_eq!(read(&found, "durable"), read(&disk, "durable"));
}

#[test]
fn a_file_that_was_synced_is_lost_with_its_directory_and_a_directory_keeps_no_data() {
    let disk = disk();
    on(&disk, || {
        let data = data();
        let file = data.create_file("file").expect("it is new");
        file.write_at(0, b"synced").expect("there is room");
        file.sync().expect("the disk works");
        let other = data.create_subdirectory("other").expect("it can be made");
        let file = other.create_file("file").expect("it is new");
        file.write_at(0, b"not synced").expect("there is room");
        other.sync().expect("the disk works");
    });
    // `create_subdirectory` synced the parent, and that made the file's entry durable as well.
    let found = after(&disk, Survivors::None, 1);
    assert_eq!(read(&found, "file"), Some(b"synced".to_vec()));
    assert_eq!(read(&found, "other/file"), Some(Vec::new()));

    on(&disk, || {
        let file = data().create_file("later").expect("it is new");
        file.write_at(0, b"synced").expect("there is room");
        file.sync().expect("the disk works");
    });
    assert_eq!(read(&after(&disk, Survivors::None, 1), "later"), None);
}

#[test]
fn each_change_can_be_the_one_that_is_lost() {
    let disk = disk();
    changes(&disk);
    let found: BTreeSet<Vec<(String, u64)>> = (0..disk.unsynced())
        .map(|number| after(&disk, Survivors::AllBut(number), 1).files())
        .collect();
    let files = |files: [(&str, u64); 3]| {
        Vec::from(files.map(|(name, bytes)| (format!("{DATA}/{name}"), bytes)))
    };
    let expected = BTreeSet::from([
        files([("durable", 5_000), ("new", 0), ("unsynced", 0)]),
        files([("durable", 9_000), ("old", 0), ("unsynced", 0)]),
        files([("durable", 9_000), ("new", 0), ("unsynced", 0)])[..2].to_vec(),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn a_torn_write_leaves_any_pieces_of_it() {
    let disk = disk();
    on(&disk, || {
        let data = data();
        let file = data.create_file("file").expect("it is new");
        file.write_at(0, &[1; 16_384]).expect("there is room");
        file.sync().expect("the disk works");
        data.sync().expect("the disk works");
        file.write_at(0, &[2; 16_384]).expect("there is room");
    });
    for piece_bytes in [512, 4_096] {
        let mut found = BTreeSet::new();
        for seed in 0..200 {
            let torn = after(&disk, Survivors::Torn { piece_bytes }, seed);
            let bytes = read(&torn, "file").expect("its entry is durable");
            let values = values(&bytes, piece_bytes).expect("pieces are whole");
            found.insert(values);
        }
        assert!(found.contains(&vec![1; 16_384 / piece_bytes]));
        assert!(found.contains(&vec![2; 16_384 / piece_bytes]));
        // Of the four pages all sixteen subsets, of the sectors many.
        let expected = if piece_bytes == 4_096 { 16 } else { 50 };
        assert!(
            found.len() >= expected,
            "{piece_bytes}: {} ways",
            found.len()
        );
    }
    let whole: BTreeSet<_> = (0..20)
        .map(|seed| read(&after(&disk, Survivors::Any, seed), "file"))
        .collect();
    assert_eq!(whole.len(), 2, "whole writes survive or not");
}

#[test]
fn a_file_that_grew_has_any_length_and_zeros_or_garbage_where_data_is_missing() {
    let disk = disk();
    on(&disk, || {
        let data = data();
        let file = data.create_file("file").expect("it is new");
        file.write_at(0, &[1; 700]).expect("there is room");
        file.sync().expect("the disk works");
        data.sync().expect("the disk works");
        for turn in 1..4 {
            file.write_at(700 * turn, &[1; 700]).expect("there is room");
        }
    });
    let crash = |survivors, tail| Crash {
        survivors,
        entries: Entries::InOrder,
        tail,
    };
    let zeros = disk.power_on(&crash(Survivors::Lengths, Tail::Zeros), 1);
    let bytes = read(&zeros, "file").expect("its entry is durable");
    assert_eq!(bytes.len(), 2_800);
    assert!(bytes[..700].iter().all(|byte| *byte == 1));
    assert!(bytes[700..].iter().all(|byte| *byte == 0));

    let garbage = disk.power_on(&crash(Survivors::Lengths, Tail::Garbage), 1);
    let bytes = read(&garbage, "file").expect("its entry is durable");
    assert!(
        bytes[..700].iter().all(|byte| *byte == 1),
        "never below the old end"
    );
    let different: BTreeSet<u8> = bytes[700..].iter().copied().collect();
    assert!(different.len() > 100, "{} values", different.len());

    let lengths: BTreeSet<usize> = (0..100)
        .filter_map(|seed| {
            read(
                &after(&disk, Survivors::Torn { piece_bytes: 512 }, seed),
                "file",
            )
        })
        .map(|bytes| bytes.len())
        .collect();
    assert_eq!(lengths, BTreeSet::from([700, 1_400, 2_100, 2_800]));
}

#[test]
fn entries_survive_in_order_or_in_any() {
    let disk = disk();
    on(&disk, || {
        let data = data();
        for name in ["a", "b", "c"] {
            data.create_file(name).expect("it is new");
        }
        data.rename("c", "d").expect("it is there");
    });
    let ways = |entries| -> BTreeSet<String> {
        let crash = |seed| {
            let crash = Crash {
                survivors: Survivors::Any,
                entries,
                tail: Tail::Zeros,
            };
            let found = disk.power_on(&crash, seed).files().into_iter();
            found
                .map(|(path, _)| path.replace("/data/", ""))
                .collect::<String>()
        };
        (0..200).map(crash).collect()
    };
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(ways(Entries::InOrder), text(&["", "a", "ab", "abc", "abd"]));
    // A file is never under both of its names.
    let any = text(&[
        "", "a", "b", "c", "d", "ab", "ac", "ad", "bc", "bd", "abc", "abd",
    ]);
    assert_eq!(ways(Entries::Any), any);
}

/// A file of two blocks, allocated and durable.
fn allocate(data: &Directory) -> AlignedBuffer {
    let file = data.create_file("log").expect("it is new");
    let mut allocation = file
        .allocate(2 * BLOCK_BYTES as u64)
        .expect("there is room");
    while !allocation.step().expect("there is room") {}
    file.sync().expect("the disk works");
    data.sync().expect("the disk works");
    let mut buffer = AlignedBuffer::new(2 * BLOCK_BYTES);
    assert!(buffer.append(&[1; 2 * BLOCK_BYTES]));
    buffer
}

#[test]
fn a_durable_write_survives_when_it_has_returned_and_is_torn_before() {
    for (direct_writes, disk) in disks_by_direct_writes() {
        let (durable_by, operation) = on(&disk, || {
            let data = data();
            let buffer = allocate(&data);
            let log = data.open_log_file("log").expect("it is there");
            let before = disk.operations();
            log.write_durably(0, &buffer).expect("the disk works");
            (log.durable_by(), before + 1)
        });
        let is_direct = direct_writes == DirectWrites::Taken;
        assert_eq!(durable_by == DurableBy::DirectWrite, is_direct);
        let found = after(&disk, Survivors::None, 1);
        assert_eq!(read(&found, "log"), Some(vec![1; 2 * BLOCK_BYTES]));
        if !is_direct {
            continue;
        }
        let mut found = BTreeSet::new();
        for moment in Moment::ALL {
            let disk = Disk::new(Options::new(1));
            disk.crash_at_moment(operation, moment);
            on(&disk, || {
                let data = data();
                let buffer = allocate(&data);
                let log = data.open_log_file("log").expect("it is there");
                let error = log.write_durably(0, &buffer).expect_err("the power goes");
                assert!(error.to_string().contains("the machine is off"), "{error}");
            });
            assert_eq!(disk.power_cut().map(|cut| cut.operation), Some(operation));
            for seed in 0..50 {
                let torn = after(&disk, Survivors::Torn { piece_bytes: 512 }, seed);
                let bytes = read(&torn, "log").expect("its entry is durable");
                let values = values(&bytes, 512).expect("sectors are whole");
                match moment {
                    Moment::Before => assert_eq!(values, [0; 16]),
                    Moment::After => assert_eq!(values, [1; 16]),
                    Moment::Within => _ = found.insert(values),
                }
            }
        }
        assert!(found.len() > 10, "{} ways to tear it", found.len());
    }
}

#[test]
fn a_durable_write_brings_the_length_along_and_no_other_data() {
    let block = BLOCK_BYTES as u64;
    let with_log = |prepare: fn(&File), at: u64| {
        let disk = disk();
        on(&disk, || {
            let data = data();
            let file = data.create_file("log").expect("it is new");
            file.write_at(0, &[5; 3 * BLOCK_BYTES])
                .expect("there is room");
            file.sync().expect("the disk works");
            data.sync().expect("the disk works");
            prepare(&file);
            let mut buffer = AlignedBuffer::new(BLOCK_BYTES);
            assert!(buffer.append(&[1; BLOCK_BYTES]));
            let log = data.open_log_file("log").expect("it is there");
            log.write_durably(at * block, &buffer)
                .expect("there is room");
        });
        disk
    };
    let blocks = |disk: &Disk| {
        let bytes = read(disk, "log").expect("its entry is durable");
        values(&bytes, BLOCK_BYTES).expect("blocks are whole")
    };
    // The file was made longer and written elsewhere, without a sync.
    let disk = with_log(
        |file| {
            file.set_len(5 * BLOCK_BYTES as u64).expect("it can grow");
            let beside = file.write_at(4 * BLOCK_BYTES as u64, &[9; BLOCK_BYTES]);
            beside.expect("there is room");
        },
        0,
    );
    assert_eq!(blocks(&after(&disk, Survivors::None, 1)), [1, 5, 5, 0, 0]);
    assert_eq!(blocks(&after(&disk, Survivors::All, 1)), [1, 5, 5, 0, 9]);
    // It was cut and made longer: what was cut off does not come back.
    let disk = with_log(
        |file| {
            file.set_len(BLOCK_BYTES as u64).expect("it can be cut");
            file.set_len(3 * BLOCK_BYTES as u64).expect("it can grow");
        },
        1,
    );
    assert_eq!(blocks(&after(&disk, Survivors::None, 1)), [5, 1, 0]);
    // What the cache held of the same block is older.
    let disk = with_log(
        |file| {
            file.write_at(0, &[9; 2 * BLOCK_BYTES])
                .expect("there is room");
        },
        0,
    );
    for crash in Crash::KINDS {
        for seed in 0..20 {
            assert_eq!(blocks(&disk.power_on(&crash, seed))[0], 1, "{crash}");
        }
    }
}

#[test]
fn what_a_killed_process_wrote_is_read_by_the_next_one_and_not_durable() {
    let disk = disk();
    on(&disk, || {
        let data = data();
        data.sync().expect("the disk works");
        let _lock = data.lock("LOCK", "the first").expect("it is free");
        let file = data.create_file("file").expect("it is new");
        file.write_at(0, b"in the cache").expect("there is room");
        data.sync().expect("the disk works");
        std::mem::forget((_lock, file));
    });
    let next = disk.restart(1);
    on(&next, || {
        let data = data();
        let _lock = data
            .lock("LOCK", "the next")
            .expect("locks go with processes");
        let file = data.open_file("file").expect("it is there");
        assert_eq!(file.len(), Ok(12));
    });
    assert_eq!(
        read(&after(&next, Survivors::None, 1), "file"),
        Some(Vec::new())
    );
    on(&next, || {
        let file = data().open_file("file").expect("it is there");
        file.sync()
            .expect("another handle syncs what the first one wrote");
    });
    let found = after(&next, Survivors::None, 1);
    assert_eq!(read(&found, "file"), Some(b"in the cache".to_vec()));
}
