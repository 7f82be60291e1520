//! Data directories on the simulated disk: the power goes in every operation, and each operation
//! fails. What the next process opens is the directory with the old manifest or the new one, and
//! never an error.

#![cfg(kiln_sim)]

mod common;
mod simulation;

use std::path::Path;

use common::next;
use kiln_durability::{DataDirectory, Manifest};
use kiln_platform::sim::disk::{Disk, Fault, Options};
use kiln_storage::error::{Error, Result, SqlState};
use simulation::{after_every_end, on};

const MANIFESTS: usize = 3;

/// What a process has told others before the power went.
#[derive(Clone, Debug, Default)]
struct Told {
    /// The manifest that it opened, or published since.
    durable: Option<Manifest>,
    /// The one that it was about to publish.
    tried: Option<Manifest>,
}

impl Told {
    /// Whether the next process may find this manifest.
    fn allows(&self, found: &Manifest) -> bool {
        match &self.durable {
            // The directory was still to be made.
            None => found.checkpoints.is_empty(),
            Some(durable) => durable == found || self.tried.as_ref() == Some(found),
        }
    }
}

/// A process that opens the directory, makes it if it is not there, and publishes manifests.
fn process(disk: &Disk, seed: u64, manifests: usize) -> (Result<()>, Told) {
    on(disk, seed, || {
        let mut told = Told::default();
        let mut run = || {
            let data = DataDirectory::open(Path::new("/above/data"), "a test")?;
            if !disk.is_off() {
                told.durable = Some((*data.manifest()).clone());
            }
            for _ in 0..manifests {
                let manifest = next(&data.manifest());
                told.tried = Some(manifest.clone());
                data.publish(manifest.clone())?;
                if !disk.is_off() {
                    told.durable = Some(manifest);
                }
                data.remove_leftovers()?;
            }
            Ok(())
        };
        (run(), told)
    })
}

/// Opens what is left, twice. What is wrong with it, if something is.
fn wrong_with(disk: &Disk, told: &Told) -> Option<String> {
    let mut told = told.clone();
    for seed in [77, 78] {
        let (ended, opened) = process(disk, seed, 0);
        if let Err(error) = ended {
            return Some(error.to_string());
        }
        let found = opened.durable.as_ref().expect("it was opened");
        if !told.allows(found) {
            return Some(format!("{found:?} was found after {told:?}"));
        }
        told = opened;
    }
    None
}

#[test]
fn a_power_loss_leaves_the_old_manifest_or_the_new_one() {
    let whole = Disk::new(Options::new(1));
    process(&whole, 1, MANIFESTS).0.expect("nothing fails");
    println!("{} operations", whole.operations());
    for operation in 1..=whole.operations() {
        for seed in 0..2 {
            let disk = Disk::new(Options::new(operation * 31 + seed));
            disk.crash_at(operation);
            let told = process(&disk, 1, MANIFESTS).1;
            assert!(disk.is_off(), "operation {operation} is never reached");
            after_every_end(&disk, seed, |found, end| {
                let wrong = wrong_with(found, &told);
                assert_eq!(wrong, None, "operation {operation}, seed {seed}, {end}");
            });
        }
    }
}

#[test]
fn a_power_loss_while_the_next_process_opens_leaves_the_same() {
    let whole = Disk::new(Options::new(1));
    process(&whole, 1, 1).0.expect("nothing fails");
    for first in 1..=whole.operations() {
        let disk = Disk::new(Options::new(first));
        disk.crash_at(first);
        let told = process(&disk, 1, 1).1;
        let mut left = Vec::new();
        after_every_end(&disk, first, |found, end| {
            left.push((found.copy(), end.to_owned()))
        });
        for (found, end) in left.iter().take(3) {
            let opened = found.copy();
            process(&opened, 2, 0).0.expect("it can be opened");
            // With the last number the process ends before the power goes.
            for second in 1..=opened.operations() + 1 {
                let found = found.copy();
                found.crash_at(second);
                let again = process(&found, 2, 0).1;
                let told = match again.durable {
                    Some(_) => &again,
                    None => &told,
                };
                after_every_end(&found, second, |left, again| {
                    let wrong = wrong_with(left, told);
                    assert_eq!(wrong, None, "{first} ({end}), {second} ({again})");
                });
            }
        }
    }
}

#[test]
fn an_operation_that_fails_leaves_the_old_manifest_or_the_new_one() {
    let whole = Disk::new(Options::new(1));
    process(&whole, 1, MANIFESTS).0.expect("nothing fails");
    for operation in 1..=whole.operations() {
        for fault in Fault::ALL {
            let disk = Disk::new(Options::new(operation));
            disk.inject(operation, fault);
            let told = process(&disk, 1, MANIFESTS).1;
            after_every_end(&disk, operation, |found, end| {
                let wrong = wrong_with(found, &told);
                assert_eq!(wrong, None, "{fault:?} in operation {operation}, {end}");
            });
        }
    }
}

#[test]
fn a_publication_that_found_no_room_can_be_repeated() {
    let open = || DataDirectory::open(Path::new("/above/data"), "a test");
    let whole = Disk::new(Options::new(1));
    on(&whole, 1, || open().map(|_| ())).expect("nothing fails");
    let before = whole.operations();
    on(&whole, 1, || {
        let data = open()?;
        data.publish(next(&data.manifest()))
    })
    .expect("nothing fails");
    let mut refused = 0;
    for operation in 1..=whole.operations() - before {
        let disk = Disk::new(Options::new(operation));
        on(&disk, 1, || open().map(|_| ())).expect("nothing fails");
        disk.inject(disk.operations() + operation, Fault::Full);
        let published = on(&disk, 2, || {
            let data = open()?;
            let manifest = next(&data.manifest());
            if let Err(error) = data.publish(manifest.clone()) {
                assert_eq!(error.state(), SqlState::DISK_FULL, "{error}");
                assert!(error.hint().is_some());
                refused += 1;
                data.publish(manifest.clone())?;
            }
            data.remove_leftovers()?;
            Ok::<Manifest, Error>(manifest)
        });
        // Where there was no room for the lock the directory was not opened.
        let Ok(durable) = published else { continue };
        let told = Told {
            durable: Some(durable),
            tried: None,
        };
        after_every_end(&disk, operation, |found, end| {
            let wrong = wrong_with(found, &told);
            assert_eq!(wrong, None, "no room in operation {operation}, {end}");
        });
    }
    assert!(refused >= 2, "{refused} publications found no room");
}
