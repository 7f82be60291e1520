//! Runs on the simulated disk: the contract of every file system holds, operations take time, the
//! power goes, and a seed repeats all of it.

#![cfg(kiln_sim)]

mod disk_contract;
mod disk_simulation;

use std::path::Path;

use disk_simulation::{DATA, after, config, data, disk, disks_by_direct_writes, on};
use kiln_platform::disk::{Directory, Error, Kind};
use kiln_platform::sim::disk::{Crash, Disk, Fault, Moment, Options, Survivors};
use kiln_platform::sim::{self, Cause, Config, Schedule};
use kiln_platform::sync::Mutex;
use kiln_platform::{thread, time};

#[test]
fn the_contract_holds() {
    for (_, disk) in disks_by_direct_writes() {
        on(&disk, || {
            for (name, part) in disk_contract::PARTS {
                part(&Directory::create(&Path::new("/contract").join(name)).expect("it is new"));
            }
        });
        // Some short reads and writes, and some interruptions: what the contract hides from
        // callers.
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
                        *acknowledged.lock().expect("no thread panics") += 1;
                    }
                });
            }
        });
        let acknowledged = *acknowledged.lock().expect("no thread panics");
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
