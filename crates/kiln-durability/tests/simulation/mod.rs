//! Runs on a simulated disk, and what crashes leave of it.

#![allow(dead_code, reason = "no test uses all of it")]

use kiln_platform::sim::disk::{Crash, Disk, Survivors};
use kiln_platform::sim::{self, Config, Schedule};

/// Runs `body` on the disk, as one process.
pub fn on<T: Send>(disk: &Disk, seed: u64, body: impl FnOnce() -> T + Send) -> T {
    let mut config = Config::new(Schedule::Random, seed);
    config.disk = Some(disk.clone());
    match sim::run(&config, body) {
        Ok(run) => run.value,
        Err(failure) => panic!("{failure}"),
    }
}

/// Hands over what each kind of crash leaves, and each change alone that is lost, and what a
/// process finds after one that was killed.
pub fn after_every_end(disk: &Disk, seed: u64, mut each: impl FnMut(&Disk, &str)) {
    each(&disk.restart(seed), "restarted");
    let single = (0..disk.unsynced()).map(|number| Crash::new(Survivors::AllBut(number)));
    for crash in Crash::KINDS.into_iter().chain(single) {
        each(&disk.power_on(&crash, seed), &crash.to_string());
    }
}
