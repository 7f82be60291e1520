//! Logs on the simulated disk: what a recovery has read is on disk when it ends.

#![cfg(kiln_sim)]

mod simulation;

use std::path::Path;

use kiln_durability::format::DatabaseId;
use kiln_durability::log::{Log, LogOptions, Position};
use kiln_durability::recovery::{Groups, Scan, Start};
use kiln_platform::disk::Directory;
use kiln_platform::sim::disk::{Crash, DirectWrites, Disk, Fault, Options, Survivors};
use kiln_storage::log_epoch::LogEpochs;
use simulation::on;

const DATABASE: DatabaseId = DatabaseId(*b"on a sick disk  ");

fn directory() -> Directory {
    Directory::create(Path::new("/log")).expect("there is room")
}

/// Writes keys, of which only the last may fail: its first sync does.
fn write(disk: &Disk) {
    on(disk, 1, || {
        let (start, epochs) = (Position::start(DATABASE), LogEpochs::new(1));
        let options = LogOptions::with_segments(64 << 10);
        let log = Log::open(directory(), start, epochs, (1, 0), &options).expect("there is room");
        log.wait(log.append_outcome(b"kept", b""))
            .expect("it works");
        // The next operation but one is the sync of the group: it is written before.
        disk.inject(disk.operations() + 2, Fault::SyncKeepsCache);
        let waited = log.wait(log.append_outcome(b"doubtful", &[b'x'; 20_000]));
        waited.expect_err("a sync has failed");
    });
}

/// How many groups are found.
fn recover(disk: &Disk) -> u64 {
    on(disk, 2, || {
        let directory = Directory::open(Path::new("/log")).expect("it is there");
        let scan = Scan::open(directory, Start::of(DATABASE, 1)).expect("it is there");
        let (mut groups, mut found) = (Groups::new(scan), 0);
        while groups.advance().expect("it is whole") {
            found += 1;
        }
        groups.end().expect("the disk works by now");
        found
    })
}

#[test]
fn what_a_recovery_has_read_stays_although_a_sync_had_failed_before() {
    let mut doubtful = 0;
    for seed in 0..40 {
        let mut options = Options::new(seed);
        options.direct_writes = DirectWrites::RefusedAtOpening;
        let disk = Disk::new(options);
        write(&disk);
        // The process was killed, and the cache has what the disk has not.
        let restarted = disk.restart(seed);
        let found = recover(&restarted);
        let left = restarted.power_on(&Crash::new(Survivors::None), seed);
        assert_eq!(recover(&left), found, "seed {seed}");
        doubtful += found - 1;
    }
    assert!(
        doubtful > 0,
        "the failed sync leaves the group in the cache"
    );
}
