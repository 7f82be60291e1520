//! What directories and files promise beyond one system call, where a disk that loses and fails can
//! show it.

#![cfg(kiln_sim)]

use std::path::Path;

use kiln_platform::disk::{AlignedBuffer, BLOCK_BYTES, Directory, DurableBy};
use kiln_platform::sim::disk::{Crash, DirectWrites, Disk, Fault, Moment, Options, Survivors};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::thread;

/// Runs `body` on the disk, as one process.
fn on<T: Send>(disk: &Disk, seed: u64, body: impl FnOnce() -> T + Send) -> T {
    let mut config = Config::new(Schedule::Random, seed);
    config.disk = Some(disk.clone());
    sim::run(&config, body).expect("the run ends").value
}

#[test]
fn a_directory_is_durable_when_it_has_been_made() {
    let path = Path::new("/a/b/c");
    let make = || Directory::create(path).map(|_| ());
    let survives = |disk: &Disk| {
        let left = disk.power_on(&Crash::new(Survivors::None), 1);
        on(&left, 1, || Directory::open(path).is_ok())
    };
    let disk = Disk::new(Options::new(1));
    on(&disk, 1, make).expect("nothing fails");
    assert!(survives(&disk));
    // A process is killed on the way, the next one makes the directory again, and then the power
    // goes.
    for operation in 1..=disk.operations() {
        for moment in [Moment::Before, Moment::Within, Moment::After] {
            let disk = Disk::new(Options::new(1));
            disk.crash_at_moment(operation, moment);
            on(&disk, 1, make).expect_err("the process is gone");
            let next = disk.restart(1);
            on(&next, 1, make).expect("nothing fails");
            assert!(survives(&next), "{operation} {moment:?}");
        }
    }
}

#[test]
fn of_syncs_beside_each_other_none_succeeds_after_one_that_failed() {
    for seed in 0..100 {
        let disk = Disk::new(Options::new(seed));
        let results = on(&disk, seed, || {
            let directory = Directory::create(Path::new("/data")).expect("it can be made");
            let file = directory.create_file("file").expect("it is new");
            file.write_at(0, b"new").expect("there is room");
            disk.inject(0, Fault::SyncKeepsCache);
            thread::scope(|scope| {
                let threads = [(); 3].map(|()| scope.spawn(|| file.sync()));
                threads.map(|thread| thread.join().expect("nothing panics"))
            })
        });
        assert!(
            results.iter().all(Result::is_err),
            "seed {seed}: {results:?}"
        );
    }
}

#[test]
fn a_write_of_nothing_proves_nothing_about_direct_writes() {
    let mut options = Options::new(1);
    options.direct_writes = DirectWrites::RefusedAtWriting;
    let durable_by = on(&Disk::new(options), 1, || {
        let directory = Directory::create(Path::new("/data")).expect("it can be made");
        directory.create_file("log").expect("it is new");
        let log = directory.open_log_file("log").expect("it is there");
        let mut buffer = AlignedBuffer::new(BLOCK_BYTES);
        log.write_durably(0, &buffer).expect("nothing to do");
        assert!(buffer.append(b"a record"));
        buffer.pad(BLOCK_BYTES);
        log.write_durably(0, &buffer).expect("it falls back");
        log.durable_by()
    });
    assert_eq!(durable_by, DurableBy::Sync);
}
