//! Data directories whose checksums are right and whose content was never written. Whatever is in
//! them, they are refused as damaged, or become some database: no recovery panics or hangs, and
//! none calls it an error of its own.

#![cfg(not(kiln_sim))]

use std::panic;
use std::path::PathBuf;

use crate::image::Image;
use crate::life::{State, live, options, temporary};
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::random::Random;
use kiln_sql::{Database, SqlState};

/// Directories that are tried of each kind.
const ROUNDS: u64 = 300;

/// Panics of any thread since the first database was forged.
static PANICS: AtomicUsize = AtomicUsize::new(0);

struct Forger {
    directory: TemporaryDirectory,
    image: Image,
    refused: usize,
}

impl Forger {
    fn new(checkpoints: usize) -> Forger {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            report(panic);
        }));
        let directory = temporary();
        let path = directory.path().join("data");
        live(&path, checkpoints);
        Forger {
            image: Image::of(&path),
            directory,
            refused: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Opens what was forged, looks at it if it becomes a database, and closes it.
    fn check(&mut self, forged: &Image, context: &str) {
        let path = self.path();
        forged.put(&path);
        match Database::open(options(&path)) {
            Ok(database) => drop(State::of(&database, 0)),
            Err(error) => {
                self.refused += 1;
                assert_eq!(
                    error.state(),
                    SqlState::DATA_CORRUPTED,
                    "{context}: {error}"
                );
                let path = path.to_string_lossy();
                assert!(error.message().contains(&*path), "{context}: {error}");
            }
        }
        // Relaxed: the database is closed, and its threads have ended.
        let panics = PANICS.load(Ordering::Relaxed);
        assert_eq!(panics, 0, "{context}: a thread panicked");
    }
}

/// Changes some bytes, and leaves their number as it is.
fn change(bytes: &mut [u8], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] = random.next_u64() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
            _ => {
                let (from, length) = (random.below(bytes.len()), random.below(12));
                let piece = bytes[from..]
                    .iter()
                    .take(length)
                    .copied()
                    .collect::<Vec<_>>();
                bytes[at..]
                    .iter_mut()
                    .zip(piece)
                    .for_each(|(byte, other)| *byte = other);
            }
        }
    }
}

/// Changes a text, so that it stays one.
fn change_text(text: &str, random: &mut Random) -> String {
    const WORDS: [&str; 12] = [
        "0",
        "1",
        "7",
        "-1",
        "4294967295",
        "18446744073709551616",
        "table",
        "end",
        "'",
        " ",
        "\n",
        "é",
    ];
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len());
        let word = WORDS[random.below(WORDS.len())].chars();
        match random.below(4) {
            0 => drop(text.remove(at)),
            1 => drop(text.splice(at..at, word)),
            2 => drop(text.splice(at..at + 1, word)),
            _ => {
                let end = (at + random.below(30)).min(text.len());
                drop(text.splice(at..end, []));
            }
        }
    }
    text.into_iter().collect()
}

#[test]
fn a_log_that_was_never_written_so_is_refused_or_becomes_a_database() {
    for seed in 0..2 {
        let mut forger = Forger::new(seed as usize);
        let blocks = forger.image.blocks().into_iter().enumerate();
        let with_entries = blocks.filter(|(_, block)| block.payload_bytes > 0);
        let with_entries: Vec<usize> = with_entries.map(|(at, _)| at).collect();
        for round in 0..ROUNDS {
            let mut random = Random::stream(seed, round);
            let chosen = with_entries[random.below(with_entries.len())];
            let forged = forger.image.with_blocks(None, |at, _, payload| {
                if at == chosen {
                    change(payload, &mut random);
                }
            });
            forger.check(
                &forged,
                &format!("seed {seed}, round {round}, block {chosen}"),
            );
        }
        println!("{} of {ROUNDS} are refused", forger.refused);
    }
}

/// A number that is written in a file: small, or one of those beyond which there is nothing.
fn number(random: &mut Random, former: u64) -> u64 {
    match random.below(5) {
        0 => former.wrapping_sub(1),
        1 => former + 1,
        2 => random.below(40) as u64,
        3 => u64::MAX - random.below(3) as u64,
        _ => u64::MAX / 2 + random.below(3) as u64,
    }
}

#[test]
fn blocks_that_were_never_numbered_so_are_refused_or_become_a_log() {
    for checkpoints in [0, 2] {
        let mut forger = Forger::new(checkpoints);
        let blocks = forger.image.blocks().len();
        for round in 0..ROUNDS {
            let mut random = Random::stream(5, round);
            let chosen = random.below(blocks);
            let before = match random.below(8) {
                0 => Some(u64::MAX - blocks as u64 - random.below(2) as u64),
                _ => None,
            };
            let forged = forger.image.with_blocks(before, |at, header, _| {
                if at != chosen {
                    return;
                }
                match random.below(4) {
                    0 => header.epochs.0 = number(&mut random, header.epochs.0),
                    1 => header.epochs.1 = number(&mut random, header.epochs.1),
                    2 => header.durable_through = number(&mut random, header.durable_through),
                    _ => header.goes_on = !header.goes_on,
                }
            });
            let context = format!("{checkpoints} checkpoints, round {round}, block {chosen}");
            forger.check(&forged, &context);
        }
        println!("{} of {ROUNDS} are refused", forger.refused);
    }
}

#[test]
fn a_manifest_that_was_never_written_so_is_refused_or_becomes_one() {
    let mut forger = Forger::new(2);
    for round in 0..ROUNDS {
        let mut random = Random::stream(6, round);
        let mut manifest = forger.image.manifest();
        for _ in 0..=random.below(2) {
            let (field, which) = (random.below(9), random.below(manifest.checkpoints.len()));
            let checkpoint = &mut manifest.checkpoints[which];
            let file = random.below(checkpoint.files.len());
            let mut number = |former: u64| number(&mut random, former);
            match field {
                0 => manifest.first_segment = number(manifest.first_segment),
                1 => checkpoint.number = number(checkpoint.number),
                2 => checkpoint.start_epoch = number(checkpoint.start_epoch),
                3 => checkpoint.end_epoch = number(checkpoint.end_epoch),
                4 => checkpoint.segment = number(checkpoint.segment),
                5 => checkpoint.catalog = number(checkpoint.catalog),
                6 => checkpoint.rows = number(checkpoint.rows),
                7 => checkpoint.files[file].bytes = number(checkpoint.files[file].bytes),
                _ => drop(checkpoint.files.swap_remove(file)),
            }
            if manifest.checkpoints.iter().any(|it| it.files.is_empty()) {
                break;
            }
        }
        // One that no database can have is refused before it is written.
        let Ok(bytes) = manifest.to_bytes() else {
            continue;
        };
        let mut forged = forger.image.clone();
        forged.files.insert(PathBuf::from("MANIFEST"), bytes);
        forger.check(&forged, &format!("round {round}"));
    }
    println!("{} of {ROUNDS} are refused", forger.refused);
}

#[test]
fn rows_of_a_checkpoint_that_were_never_written_so_are_refused_or_become_rows() {
    let mut forger = Forger::new(1);
    let entry = forger
        .image
        .manifest()
        .checkpoints
        .pop()
        .expect("it has one");
    let whole = forger.image.clone();
    for round in 0..ROUNDS {
        let mut random = Random::stream(3, round);
        let mut left = random.below(entry.rows as usize);
        let forged = whole.with_rows(
            &forger.path(),
            |catalog| catalog,
            |row| {
                if left == 0 {
                    change(row, &mut random);
                }
                left = left.wrapping_sub(1);
            },
        );
        forger.check(&forged, &format!("round {round}"));
    }
    println!("{} of {ROUNDS} are refused", forger.refused);
}

#[test]
fn a_catalog_that_was_never_written_so_is_refused_or_becomes_one() {
    let mut forger = Forger::new(1);
    let whole = forger.image.clone();
    for round in 0..ROUNDS {
        let mut random = Random::stream(4, round);
        let path = forger.path();
        let forged = whole.with_rows(&path, |text| change_text(&text, &mut random), |_| {});
        forger.check(&forged, &format!("round {round}"));
    }
    println!("{} of {ROUNDS} are refused", forger.refused);
}

/// The first change of the first commit of a group is of no table. The groups after it are applied
/// with it, and are not blamed.
#[test]
fn damage_of_a_commit_names_the_group_of_the_commit() {
    /// Of a payload that begins with a commit: where the table of its first change is.
    const TABLE: std::ops::Range<usize> = 26..30;
    let forger = Forger::new(0);
    let path = forger.path();
    let is_commit = |payload: &[u8]| payload.get(4) == Some(&1) && payload.len() > TABLE.end;
    let mut tried = 0;
    for (chosen, block) in forger.image.blocks().iter().enumerate() {
        let mut is_forged = false;
        let forged = forger.image.with_blocks(None, |at, header, payload| {
            if at == chosen && !header.goes_back && is_commit(payload) {
                payload[TABLE].fill(0xff);
                is_forged = true;
            }
        });
        if !is_forged {
            continue;
        }
        tried += 1;
        forged.put(&path);
        for threads in [1, 3] {
            let opened = Database::open(options(&path).recovery_threads(threads));
            let error = opened.map(drop).expect_err("there is no such table");
            let place = format!("offset {}", block.offset);
            let names_it = error.message().contains(&place);
            assert!(names_it, "block {chosen} at {place}: {error}");
        }
    }
    assert!(tried > 3, "{tried}");
}
