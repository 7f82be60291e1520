//! The same random operations on the machine's disk and on the simulated one give the same results.

#![cfg(kiln_sim)]

use std::collections::BTreeMap;
use std::path::Path;

use kiln_platform::disk::{AlignedBuffer, BLOCK_BYTES, Directory, File, Kind, LogFile, Result};
use kiln_platform::random::Random;
use kiln_platform::sim::disk::{Disk, Options};
use kiln_platform::sim::{self, Config, Schedule};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// How names of locks end. The length of such a file is that of the process's number.
const LOCK: &str = ".lock";
const OPERATIONS: usize = 600;
/// Offsets and lengths: small enough to meet each other, large enough for some blocks.
const BYTES_MAX: u64 = 20_000;

/// What an operation gave, without what differs between machines: paths, and the system's words.
fn shown<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => match error.kind() {
            Kind::Locked { .. } => "locked".to_owned(),
            kind => format!("{kind:?} in {:?}", error.operation()),
        },
    }
}

/// As [`shown`], of something that is kept.
fn keep<T>(result: Result<T>, keep: impl FnOnce(T)) -> String {
    shown(result.map(keep))
}

/// The sum of some bytes.
fn digest(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Makes random operations below `root`, and says what came of each.
fn work(root: &Path, seed: u64) -> Vec<String> {
    let mut random = Random::stream(seed, 1);
    let root = Directory::create(root).expect("it can be made");
    let mut directories = vec![root];
    let mut files: BTreeMap<usize, File> = BTreeMap::new();
    let mut logs: BTreeMap<usize, LogFile> = BTreeMap::new();
    let mut locks = BTreeMap::new();
    let mut results = Vec::new();
    let mut below = |bound: u64| random.below(bound as usize) as u64;
    for number in 0..OPERATIONS {
        let at = below(directories.len() as u64) as usize;
        let directory = &directories[at];
        let name = NAMES[below(4) as usize];
        let other = NAMES[below(4) as usize];
        let renamed = [name, other].map(|name| directory.path().join(name));
        let file = files
            .values()
            .nth(below(files.len().max(1) as u64) as usize);
        let (offset, bytes) = (below(BYTES_MAX), below(BYTES_MAX));
        let operation = below(22);
        let result = match (operation, file) {
            (0 | 1, _) => keep(directory.create_file(name), |file| {
                files.insert(number, file);
            }),
            (2, _) => keep(directory.open_file(name), |file| {
                files.insert(number, file);
            }),
            (3, _) => keep(directory.open_file_to_write(name), |file| {
                files.insert(number, file);
            }),
            (4..=7, Some(file)) => {
                let content: Vec<u8> = (0..bytes).map(|at| (number as u64 + at) as u8).collect();
                shown(file.write_at(offset, &content))
            }
            (8..=10, Some(file)) => {
                let mut content = vec![0; bytes as usize];
                shown(
                    file.read_at(offset, &mut content)
                        .map(|read| (read, digest(&content))),
                )
            }
            (11, Some(file)) => shown(file.set_len(offset)),
            (12, Some(file)) => shown(file.sync()),
            (13, Some(file)) => shown(file.allocate(bytes).and_then(|mut allocation| {
                let remaining = allocation.remaining();
                while !allocation.step()? {}
                Ok(remaining)
            })),
            (14, _) => shown(directory.rename(name, other)),
            (15, _) => shown(directory.remove_file(name)),
            (16, _) => shown(directory.sync()),
            (17, _) => keep(directory.create_subdirectory(name), |made| {
                if directories.len() < 3 {
                    directories.push(made);
                }
            }),
            (18, _) => shown(directory.remove_directory(name)),
            (19, _) => keep(directory.open_log_file(name), |log| {
                logs.insert(number, log);
            }),
            (20, _) => match logs.values().next_back() {
                Some(log) => {
                    let mut buffer = AlignedBuffer::new(2 * BLOCK_BYTES);
                    let bytes = (1 + number % 2) * BLOCK_BYTES;
                    assert!(buffer.append(&vec![number as u8; bytes]));
                    let block = offset / BLOCK_BYTES as u64;
                    shown(log.write_durably(block * BLOCK_BYTES as u64, &buffer))
                }
                None => String::new(),
            },
            (21, _) if locks.contains_key(&(at, name)) => {
                locks.remove(&(at, name));
                "unlocked".to_owned()
            }
            (21, _) => {
                let lock = directory.lock(&format!("{name}{LOCK}"), "test");
                keep(lock, |lock| _ = locks.insert((at, name), lock))
            }
            _ => String::new(),
        };
        if files.len() > 6 {
            files.pop_first();
        }
        // The machine finds what is in a directory by its path: one whose name is another one's is
        // given up.
        let lost = |directory: &Directory| renamed.contains(&directory.path().to_owned());
        if matches!(operation, 14 | 18) && result == "()" && directories.iter().any(lost) {
            directories.truncate(1);
            locks.clear();
        }
        let seen = |directory: &Directory| {
            let mut entries = directory.list()?;
            entries
                .iter_mut()
                .filter(|entry| entry.name.ends_with(LOCK))
                .for_each(|entry| entry.bytes = 0);
            Ok(entries)
        };
        let seen = directories.iter().map(|directory| shown(seen(directory)));
        let lengths: Vec<String> = files.values().map(|file| shown(file.len())).collect();
        results.push(format!(
            "{number}: operation {operation} on {at}/{name}, {other}, {offset}, {bytes}: {result}; {}; {}",
            seen.collect::<String>(),
            lengths.join(" ")
        ));
    }
    results
}

#[test]
fn the_simulated_disk_does_what_the_machines_does() {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let parent = parent.join(format!("kiln-differential-{}", std::process::id()));
    for seed in 0..8 {
        let _ = std::fs::remove_dir_all(&parent);
        let real = work(&parent, seed);
        let disk = Disk::new(Options::new(seed));
        let mut config = Config::new(Schedule::Random, seed);
        config.disk = Some(disk);
        let simulated = sim::run(&config, || work(Path::new("/data"), seed));
        let simulated = match simulated {
            Ok(run) => run.value,
            Err(failure) => panic!("{failure}"),
        };
        for (real, simulated) in real.iter().zip(&simulated) {
            assert_eq!(real, simulated, "seed {seed}");
        }
    }
    let _ = std::fs::remove_dir_all(&parent);
}
