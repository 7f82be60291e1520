//! The content of a simulated disk from outside: damage, overwriting, and the way to the machine
//! and back.

#![cfg(kiln_sim)]

mod disk_simulation;

use std::collections::BTreeSet;
use std::path::Path;

use disk_simulation::{DATA, after, changes, data, disk, on, read};
use kiln_platform::disk::BLOCK_BYTES;
use kiln_platform::sim::disk::{Damage, Disk, Options, Survivors};

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
