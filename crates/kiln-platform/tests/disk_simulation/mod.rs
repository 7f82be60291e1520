//! What the tests of the simulated disk have in common.

#![allow(dead_code, reason = "no test uses all of it")]

use std::path::Path;

use kiln_platform::disk::Directory;
use kiln_platform::sim::disk::{Crash, DirectWrites, Disk, Options, Survivors};
use kiln_platform::sim::{self, Config, Schedule};

/// Where [`data`] is.
pub const DATA: &str = "/data";

/// A run on the disk.
pub fn config(disk: &Disk, seed: u64) -> Config {
    let mut config = Config::new(Schedule::Random, seed);
    config.disk = Some(disk.clone());
    config
}

/// An empty disk.
pub fn disk() -> Disk {
    Disk::new(Options::new(1))
}

/// Empty disks, one for each way in which a disk takes direct writes.
pub fn disks_by_direct_writes() -> impl Iterator<Item = (DirectWrites, Disk)> {
    let ways = [
        DirectWrites::Taken,
        DirectWrites::RefusedAtOpening,
        DirectWrites::RefusedAtWriting,
    ];
    ways.into_iter().map(|direct_writes| {
        let mut options = Options::new(1);
        options.direct_writes = direct_writes;
        (direct_writes, Disk::new(options))
    })
}

/// Runs `body` on the disk, as one process.
pub fn on<T: Send>(disk: &Disk, body: impl FnOnce() -> T + Send) -> T {
    on_with(disk, 1, body)
}

/// As [`on`], with the schedule of this seed.
pub fn on_with<T: Send>(disk: &Disk, seed: u64, body: impl FnOnce() -> T + Send) -> T {
    match sim::run(&config(disk, seed), body) {
        Ok(run) => run.value,
        Err(failure) => panic!("{failure}"),
    }
}

/// The directory that the tests work in.
pub fn data() -> Directory {
    Directory::create(Path::new(DATA)).expect("it can be made")
}

/// What a crash leaves.
pub fn after(disk: &Disk, survivors: Survivors, seed: u64) -> Disk {
    disk.power_on(&Crash::new(survivors), seed)
}

/// What processes read in a file of the tests' directory.
pub fn read(disk: &Disk, name: &str) -> Option<Vec<u8>> {
    disk.read(&format!("{DATA}/{name}")).ok()
}

/// A file that is durable, and of each kind of change one that is not.
pub fn changes(disk: &Disk) {
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

/// Which values the blocks of `piece` bytes of a file have, where each is of one value.
pub fn values(bytes: &[u8], piece: usize) -> Option<Vec<u8>> {
    let value = |piece: &[u8]| piece.iter().all(|byte| *byte == piece[0]).then(|| piece[0]);
    bytes.chunks(piece).map(value).collect()
}
