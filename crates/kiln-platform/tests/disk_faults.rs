//! Errors of the simulated disk, and a disk that is full.

#![cfg(kiln_sim)]

mod disk_simulation;

use disk_simulation::{after, data, disk, on, on_with, read};
use kiln_platform::disk::{Directory, Error, File, Kind};
use kiln_platform::sim::disk::{Disk, Fault, Options, Survivors};
use kiln_platform::sync::Mutex;
use kiln_platform::thread;

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
