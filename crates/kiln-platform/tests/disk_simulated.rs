//! The simulated disk: the contract of every file system holds on it, and beyond that it does what it was told to do:
//! crashes, faults, damage, and time.

#![cfg(kiln_sim)]

mod disk_contract;

use std::collections::BTreeSet;
use std::path::Path;

use kiln_platform::disk::{AlignedBuffer, BLOCK_BYTES, Directory, DurableBy, Error, File, Kind};
use kiln_platform::sim::disk::{
    Crash, Damage, DirectWrites, Disk, Entries, Fault, Moment, Options, Survivors, Tail,
};
use kiln_platform::sim::{self, Cause, Config, Schedule};
use kiln_platform::sync::Mutex;
use kiln_platform::{thread, time};

const DATA: &str = "/data";

fn config(disk: &Disk, seed: u64) -> Config {
    let mut config = Config::new(Schedule::Random, seed);
    config.disk = Some(disk.clone());
    config
}

fn disk() -> Disk {
    Disk::new(Options::new(1))
}

/// Runs `body` on the disk, as one process.
fn on<T: Send>(disk: &Disk, body: impl FnOnce() -> T + Send) -> T {
    on_with(disk, 1, body)
}

fn on_with<T: Send>(disk: &Disk, seed: u64, body: impl FnOnce() -> T + Send) -> T {
    match sim::run(&config(disk, seed), body) {
        Ok(run) => run.value,
        Err(failure) => panic!("{failure}"),
    }
}

fn data() -> Directory {
    Directory::create(Path::new(DATA)).expect("it can be made")
}

/// What a crash leaves.
fn after(disk: &Disk, survivors: Survivors, seed: u64) -> Disk {
    disk.power_on(&Crash::new(survivors), seed)
}

fn read(disk: &Disk, name: &str) -> Option<Vec<u8>> {
    disk.read(&format!("{DATA}/{name}")).ok()
}

#[test]
fn the_contract_holds() {
    for direct_writes in [
        DirectWrites::Taken,
        DirectWrites::RefusedAtOpening,
        DirectWrites::RefusedAtWriting,
    ] {
        let mut options = Options::new(1);
        options.direct_writes = direct_writes;
        let disk = Disk::new(options);
        on(&disk, || {
            for (name, part) in disk_contract::PARTS {
                part(&Directory::create(&Path::new("/contract").join(name)).expect("it is new"));
            }
        });
        // Some short reads and writes, and some interruptions: what the contract hides from callers.
        let disk = after(&disk, Survivors::None, 1);
        disk.inject_at_random(3, &[Fault::Short]);
        on(&disk, || {
            for (name, part) in disk_contract::PARTS {
                part(&Directory::create(&Path::new("/short").join(name)).expect("it is new"));
            }
        });
    }
}

#[test]
fn a_run_without_a_disk_has_no_files_and_the_machine_has_no_simulated_ones() {
    let run = sim::run(&Config::new(Schedule::Random, 1), || {
        Directory::open(Path::new("/")).expect_err("there is no disk")
    });
    let error = run.expect("nothing panics").value;
    assert_eq!(*error.kind(), Kind::Failed);
    assert!(error.to_string().contains("Config::disk"), "{error}");

    let disk = disk();
    let left = on(&disk, || data().create_file("file").expect("it is new"));
    let outside = left.write_at(0, b"x").expect_err("the run is over");
    assert_eq!(*outside.kind(), Kind::Failed);
    let real = Directory::open(Path::new("/")).expect("every machine has one");
    let inside = on(&disk, || {
        let again = left.len().expect_err("its process has ended");
        (real.list().expect_err("a run has its own files"), again)
    });
    assert_eq!(*inside.0.kind(), Kind::Failed);
    assert_eq!(*inside.1.kind(), Kind::Failed);
}

#[test]
fn one_run_at_a_time_has_a_disk() {
    let disk = disk();
    let (again, inner) = (config(&disk, 2), disk.clone());
    let refused = on(&disk, move || {
        assert!(!inner.is_off());
        // A run inside of a run is not possible: another real thread tries.
        std::thread::spawn(move || sim::run(&again, || ()).map(|_| ()).unwrap_err())
            .join()
            .expect("it does not panic")
    });
    let Cause::NotStarted(why) = refused.cause else {
        panic!("{refused}");
    };
    assert!(why.contains("another run has the disk"), "{why}");
    on(&disk, || ());
}

/// A file that is durable, and of each kind of change one that is not.
fn changes(disk: &Disk) {
    on(disk, || {
        let data = data();
        let durable = data.create_file("durable").expect("it is new");
        durable.write_at(0, &[1; 5_000]).expect("there is room");
        durable.sync().expect("the disk works");
        data.create_file("old").expect("it is new");
        data.sync().expect("the disk works");
        durable.write_at(1_000, &[2; 8_000]).expect("there is room");
        data.rename("old", "new").expect("it is there");
        data.create_file("unsynced").expect("it is new");
    });
}

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

/// Which values the blocks of `piece` bytes of a file have, where each is of one value.
fn values(bytes: &[u8], piece: usize) -> Option<Vec<u8>> {
    let value = |piece: &[u8]| piece.iter().all(|byte| *byte == piece[0]).then(|| piece[0]);
    bytes.chunks(piece).map(value).collect()
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
    for direct_writes in [
        DirectWrites::Taken,
        DirectWrites::RefusedAtOpening,
        DirectWrites::RefusedAtWriting,
    ] {
        let mut options = Options::new(1);
        options.direct_writes = direct_writes;
        let disk = Disk::new(options);
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
fn a_disk_without_power_takes_nothing_and_tells_when_it_went() {
    let disk = disk();
    let operation = on(&disk, || {
        data().create_file("first").expect("it is new");
        disk.operations() + 3
    });
    disk.crash_at_moment(operation, Moment::After);
    let (acknowledged, ended_ns) = on(&disk, || {
        let directory = Directory::open(Path::new(DATA)).expect("it is there");
        let acknowledged = Mutex::new(0);
        thread::scope(|scope| {
            for name in ["a", "b", "c"] {
                let (directory, acknowledged) = (&directory, &acknowledged);
                let disk = &disk;
                scope.spawn(move || {
                    let made = directory.create_file(name);
                    if made.is_ok() && !disk.is_off() {
                        *acknowledged.lock().expect("nobody panics") += 1;
                    }
                });
            }
        });
        let acknowledged = *acknowledged.lock().expect("nobody panics");
        let off: Error = directory.sync().expect_err("the power is gone");
        assert_eq!(*off.kind(), Kind::Failed);
        (acknowledged, time::now_ns())
    });
    let cut = disk.power_cut().expect("the power is gone");
    assert_eq!(cut.operation, operation);
    assert!(0 < cut.virtual_ns && cut.virtual_ns < ended_ns);
    assert!(acknowledged < 3);
    let before = disk.operations();
    on(&disk, || Directory::open(Path::new(DATA)).expect_err("off"));
    assert_eq!(disk.operations(), before, "without power nothing begins");
    let found = after(&disk, Survivors::All, 1);
    on(&found, || {
        Directory::open(Path::new(DATA)).expect("it is there")
    });
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

#[test]
fn operations_take_time_and_block_only_their_thread() {
    let mut options = Options::new(1);
    options.timing.operation_ns = 1_000;
    options.timing.sync_ns = 5_000_000;
    options.timing.bytes_per_s = 1_000_000;
    let disk = Disk::new(options);
    on(&disk, || {
        let file = data().create_file("file").expect("it is new");
        let begun_ns = time::now_ns();
        file.write_at(0, &[1; 3_000]).expect("there is room");
        let written_ns = time::now_ns();
        assert!(
            (1_000..100_000).contains(&(written_ns - begun_ns)),
            "the cache is fast"
        );
        let turns = thread::scope(|scope| {
            let syncing = scope.spawn(|| file.sync().expect("the disk works"));
            let mut turns = 0;
            while !syncing.is_finished() {
                turns += 1;
                thread::sleep(100_000);
            }
            turns
        });
        // Five milliseconds, and three for 3,000 bytes.
        let synced_ns = time::now_ns() - written_ns;
        assert!(
            (8_000_000..8_300_000).contains(&synced_ns),
            "{synced_ns} ns"
        );
        assert!(turns > 50, "another thread had {turns} turns");
        let again_ns = time::now_ns();
        sim::quiet(|| file.sync().expect("the disk works"));
        assert!(
            time::now_ns() - again_ns < 10_000,
            "quiet parts take no time"
        );
    });
}

/// A few threads that share files, and meet faults.
fn mixture() -> Result<u64, Error> {
    let data = Directory::create(Path::new(DATA))?;
    let log = data.create_file("shared")?;
    let failures = Mutex::new(0);
    thread::scope(|scope| {
        for number in 0..3_u64 {
            let (data, log, failures) = (&data, &log, &failures);
            scope.spawn(move || {
                let count = |failed: bool| *failures.lock().expect("no panic") += u64::from(failed);
                for turn in 0..8 {
                    let at = (number + 3 * turn) * 1_000;
                    count(log.write_at(at, &[number as u8; 1_000]).is_err());
                    count(log.sync().is_err());
                    match data.create_file(&format!("{number}-{turn}")) {
                        Ok(file) => count(file.write_at(0, b"some").is_err()),
                        Err(_) => count(true),
                    }
                    if turn % 3 == number {
                        count(data.sync().is_err());
                    }
                }
            });
        }
    });
    let failures = *failures.lock().expect("no panic");
    Ok(failures ^ time::now_ns())
}

#[test]
fn the_same_seed_gives_the_same_operations_crash_and_remains() {
    for schedule in [
        Schedule::Random,
        Schedule::Pct {
            depth: 3,
            steps: 500,
        },
        Schedule::LeastTime,
    ] {
        let run = |seed| {
            let disk = Disk::new(Options::new(seed));
            disk.inject_at_random(20, &Fault::ALL);
            disk.crash_at(40 + seed);
            let mut config = Config::new(schedule, seed);
            config.disk = Some(disk.clone());
            let run = sim::run(&config, mixture).expect("the run ends");
            let found = disk.power_on(&Crash::KINDS[seed as usize % Crash::KINDS.len()], seed);
            let mut contents = Vec::new();
            for (path, _) in found.files() {
                contents.push((found.read(&path).expect("it is there"), path));
            }
            (run.value, run.report, disk.power_cut(), contents)
        };
        let first: Vec<_> = (0..12).map(run).collect();
        let second: Vec<_> = (0..12).map(run).collect();
        assert_eq!(first, second);
        assert!(first.iter().filter(|(_, _, cut, _)| cut.is_some()).count() > 6);
    }
    // What is written is part of the trace, and so is what fails.
    let hash = |byte, fault: Option<Fault>| {
        let disk = disk();
        fault.into_iter().for_each(|fault| disk.inject(1, fault));
        let run = sim::run(&config(&disk, 1), || {
            let file = data().create_file("file").expect("it is new");
            let _ = file.write_at(0, &[byte]);
        });
        run.expect("nothing panics").report.trace_hash
    };
    assert_eq!(hash(1, None), hash(1, None));
    assert_ne!(hash(1, None), hash(2, None));
    assert_ne!(hash(1, None), hash(1, Some(Fault::Write)));
}

fn made(data: &Directory) -> File {
    let file = data.create_file("file").expect("it is new");
    file.write_at(0, &[1; 10_000]).expect("there is room");
    file.sync().expect("the disk works");
    data.sync().expect("the disk works");
    file
}

#[test]
fn faults_come_when_they_are_told_to_once() {
    for (fault, kind) in [
        (Fault::Write, Kind::Failed),
        (Fault::Full, Kind::Full),
        (Fault::Read, Kind::Failed),
        (Fault::SyncKeepsCache, Kind::Failed),
        (Fault::SyncLosesCache, Kind::Failed),
    ] {
        let disk = disk();
        on(&disk, || {
            let data = data();
            let file = made(&data);
            disk.inject(disk.operations() + 1, fault);
            let mut bytes = [0; 100];
            let results = [
                file.read_at(0, &mut bytes).map(|_| ()),
                file.write_at(0, &[2; 10_000]),
                file.sync(),
            ];
            let failed: Vec<&Error> = results.iter().filter_map(|r| r.as_ref().err()).collect();
            assert_eq!(*failed[0].kind(), kind, "{fault:?}");
            match fault {
                Fault::Read => file.sync().expect("a failed read poisons nothing"),
                _ => assert_eq!(file.sync().as_ref(), Err(failed[0]), "it stays poisoned"),
            }
            let other = data.open_file_to_write("file").expect("it is there");
            other.write_at(0, b"x").expect("the fault has passed");
            other.sync().expect("the fault has passed");
        });
    }
    let disk = disk();
    on(&disk, || {
        let data = data();
        let file = made(&data);
        disk.inject(1, Fault::Interrupted);
        file.write_at(0, b"x")
            .expect("an interrupted write is repeated");
        disk.inject(1, Fault::Short);
        let mut bytes = [0; 10_000];
        assert_eq!(file.read_at(0, &mut bytes), Ok(10_000));
        disk.inject(1, Fault::Short);
        file.write_at(0, &[3; 10_000])
            .expect("a short write is continued");
        assert_eq!(file.read_at(0, &mut bytes), Ok(10_000));
        assert_eq!(bytes, [3; 10_000]);
        disk.inject(1, Fault::Interrupted);
        let before = disk.operations();
        let first = file.sync().expect_err("a sync is never repeated");
        assert_eq!(disk.operations(), before + 1);
        assert_eq!(file.sync(), Err(first));
    });
}

#[test]
fn after_a_failed_sync_a_second_one_succeeds_and_has_written_nothing() {
    for (fault, cached) in [(Fault::SyncKeepsCache, 2), (Fault::SyncLosesCache, 1)] {
        let mut lost = 0;
        for seed in 0..20 {
            let disk = Disk::new(Options::new(seed));
            on(&disk, || {
                let data = data();
                let file = made(&data);
                file.write_at(0, &[2; 4_096]).expect("there is room");
                disk.inject(1, fault);
                file.sync().expect_err("the disk fails");
            });
            let left = read(&disk, "file").expect("it is there");
            on(&disk, || {
                let again = data().open_file_to_write("file").expect("it is there");
                again.sync().expect("the system has forgotten the failure");
            });
            let durable = read(&after(&disk, Survivors::None, 1), "file").expect("it is there");
            if durable[0] == 1 {
                lost += 1;
                assert_eq!(left[0], cached, "{fault:?}");
                assert_eq!(
                    read(&after(&disk, Survivors::All, 1), "file"),
                    Some(durable)
                );
            }
        }
        assert!((5..15).contains(&lost), "{lost} of 20 were lost");
    }
}

#[test]
fn no_thread_that_shares_a_file_takes_another_ones_failed_sync_for_its_own_success() {
    const BYTES: u64 = 512;
    let mut refused = 0;
    for seed in 0..60 {
        let disk = Disk::new(Options::new(seed));
        let acknowledged = on_with(&disk, seed, || {
            let data = data();
            let file = data.create_file("file").expect("it is new");
            data.sync().expect("the disk works");
            disk.inject(disk.operations() + seed, Fault::SyncKeepsCache);
            let acknowledged = Mutex::new(Vec::new());
            thread::scope(|scope| {
                for thread in 0..3 {
                    let (file, acknowledged) = (&file, &acknowledged);
                    scope.spawn(move || {
                        for place in (thread..24).step_by(3) {
                            let written = file.write_at(place * BYTES, &[1; BYTES as usize]);
                            if written.and_then(|()| file.sync()).is_ok() {
                                acknowledged.lock().expect("no panic").push(place);
                            }
                        }
                    });
                }
            });
            let acknowledged = acknowledged.lock().expect("no panic");
            acknowledged.clone()
        });
        refused += 24 - acknowledged.len();
        let bytes = read(&after(&disk, Survivors::None, 1), "file").expect("it is durable");
        for place in acknowledged {
            let start = (place * BYTES) as usize;
            let found = bytes.get(start..start + BYTES as usize);
            assert_eq!(
                found,
                Some(&[1; BYTES as usize][..]),
                "seed {seed}, {place}"
            );
        }
    }
    assert!(refused > 300, "{refused} writes were refused");
}

#[test]
fn a_full_disk_has_room_again_when_files_are_gone() {
    let mut options = Options::new(1);
    options.capacity_bytes = 40_960;
    let disk = Disk::new(options);
    on(&disk, || {
        let data = data();
        assert_eq!(data.free_bytes(), Ok(40_960));
        let file = data.create_file("first").expect("it is new");
        file.write_at(0, &[1; 5_000]).expect("there is room");
        assert_eq!(data.free_bytes(), Ok(32_768));
        let second = data.create_file("second").expect("it is new");
        let full = second.write_at(0, &[2; 40_000]).expect_err("no room");
        assert_eq!(*full.kind(), Kind::Full);
        assert_eq!(second.len(), Ok(32_768), "as much as there was room for");
        data.remove_file("second").expect("it is there");
        assert_eq!(data.free_bytes(), Ok(0), "a handle keeps it");
        drop(second);
        assert_eq!(data.free_bytes(), Ok(32_768));
        let third = data.create_file("third").expect("it is new");
        let full = third.allocate(32_769).map(|_| ()).expect_err("no room");
        assert_eq!(*full.kind(), Kind::Full);
        file.write_at(0, &[3; 5_000])
            .expect("an overwrite takes no room");
        file.set_len(0).expect("it can be cut");
        assert_eq!(data.free_bytes(), Ok(40_960));
    });
}

#[test]
fn each_damage_does_what_it_says() {
    let disk = disk();
    let (size, other) = (2 * BLOCK_BYTES as u64 + 100, format!("{DATA}/other"));
    on(&disk, || {
        let data = data();
        for (name, first) in [("file", 1), ("other", 5)] {
            let file = data.create_file(name).expect("it is new");
            for turn in 0..2 {
                for block in 0..3 {
                    let bytes = match block {
                        2 => 100,
                        _ => BLOCK_BYTES,
                    };
                    let content = vec![first + block as u8 + 10 * turn; bytes];
                    let offset = block * BLOCK_BYTES;
                    file.write_at(offset as u64, &content)
                        .expect("there is room");
                }
                file.sync().expect("the disk works");
            }
        }
        data.sync().expect("the disk works");
    });
    let path = format!("{DATA}/file");
    let damaged = |damage: Damage| {
        let copy = disk.copy();
        let changed = copy.damage(&damage).expect("the place is there");
        let bytes = copy.read(&path).expect("it is there");
        assert_eq!(bytes.len() as u64, size, "{damage}");
        assert_eq!(changed, bytes != disk.read(&path).expect("it is there"));
        assert_eq!(
            read(&after(&copy, Survivors::None, 1), "file"),
            Some(bytes.clone())
        );
        // The first bytes of the blocks, and a byte of the last one.
        [
            bytes[0],
            bytes[BLOCK_BYTES],
            bytes[2 * BLOCK_BYTES],
            bytes[2 * BLOCK_BYTES + 99],
        ]
    };
    let path = path.clone();
    let swapped = |first, second| Damage::SwappedBlocks {
        path: path.clone(),
        first,
        second,
    };
    let bit = Damage::FlippedBit {
        path: path.clone(),
        offset: size - 1,
        bit: 7,
    };
    assert_eq!(damaged(bit), [11, 12, 13, 13 ^ 128]);
    assert_eq!(damaged(swapped(0, 1)), [12, 11, 13, 13]);
    assert_eq!(damaged(swapped(0, 2)), [13, 12, 11, 11]);
    assert_eq!(damaged(swapped(1, 1)), [11, 12, 13, 13]);
    let stale = Damage::StaleBlock {
        path: path.clone(),
        block: 1,
    };
    assert_eq!(damaged(stale), [11, 2, 13, 13]);
    let duplicated = Damage::DuplicatedBlock {
        from: other,
        from_block: 1,
        path: path.clone(),
        block: 0,
    };
    assert_eq!(damaged(duplicated), [16, 12, 13, 13]);
    for wrong in [
        swapped(0, 3),
        Damage::StaleBlock {
            path: "/none".to_owned(),
            block: 0,
        },
    ] {
        disk.damage(&wrong).expect_err("there is no such place");
    }

    let mut kinds = BTreeSet::new();
    for seed in 0..60 {
        let copy = disk.copy();
        let damage = copy.damage_at_random(seed, |path| path.ends_with("/file"));
        let damage = damage.expect("there is content");
        assert_eq!(damage.path(), path);
        assert_ne!(read(&copy, "file"), read(&disk, "file"), "{damage}");
        assert_eq!(read(&copy, "other"), read(&disk, "other"), "{damage}");
        kinds.insert(damage.to_string().split(' ').next().map(str::to_owned));
    }
    assert!(kinds.len() >= 3, "{kinds:?}");
    assert_eq!(disk.damage_at_random(1, |path| path == "/none"), None);

    disk.overwrite(&path, 3, b"from outside")
        .expect("it is there");
    let bytes = read(&after(&disk, Survivors::None, 1), "file").expect("it is there");
    assert_eq!(&bytes[2..16], b"\x0bfrom outside\x0b");
}

#[test]
fn a_disk_goes_to_the_machine_and_back() {
    let disk = disk();
    changes(&disk);
    on(&disk, || {
        let inner = data().create_subdirectory("inner").expect("it is new");
        inner.create_file("deep").expect("it is new");
    });
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let directory = directory.join(format!("kiln-disk-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    disk.export(&directory).expect("the test may write there");
    let back = Disk::import(&directory, Options::new(1)).expect("it is there");
    std::fs::remove_dir_all(&directory).expect("it is there");
    assert_eq!(back.files(), disk.files());
    assert_eq!(back.unsynced(), 0);
    let found = after(&back, Survivors::None, 1);
    assert_eq!(found.files(), disk.files());
    for (path, _) in disk.files() {
        assert_eq!(found.read(&path).ok(), disk.read(&path).ok());
    }
}

#[test]
fn memory_is_bounded_by_what_is_stored() {
    let mut options = Options::new(1);
    options.cached_bytes_max = 100_000;
    let disk = Disk::new(options);
    on(&disk, || {
        let data = data();
        let file = data.create_file("file").expect("it is new");
        for turn in 0..1_000_u64 {
            file.write_at(0, &[turn as u8; 1_000])
                .expect("there is room");
        }
        file.set_len(1 << 40).expect("a hole takes nothing");
        file.set_len(1_000).expect("it can be cut");
        for turn in 0..100 {
            let name = format!("{turn}");
            let passing = data.create_file(&name).expect("it is new");
            passing.write_at(0, &[1; 1_000]).expect("there is room");
            data.remove_file(&name).expect("it is there");
            drop(passing);
            data.sync().expect("the disk works");
        }
    });
    assert!(disk.unsynced() <= 102, "{} changes wait", disk.unsynced());
    assert_eq!(disk.files().len(), 1);
}
