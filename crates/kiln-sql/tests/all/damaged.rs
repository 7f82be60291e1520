//! Damage: bits that the disk has changed, files that are cut off, longer, missing or others. A
//! data directory is refused with the name of a file that is damaged; or the database is what it
//! was; or it is what it was before a tail of its log that nothing promises to have been on disk.
//! It is never anything else.

#![cfg(not(kiln_sim))]

use crate::image;
use std::path::{Path, PathBuf};

use crate::image::{Image, Placed, segment_path};
use crate::life::{Moment, State, live, options, temporary};
use kiln_durability::format::block::HEADER_BYTES;
use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::random::Random;
use kiln_sql::{Database, Error, SqlState};

/// A database that was closed, or whose process was killed, and what it was after each of its
/// steps.
struct Case {
    name: String,
    /// Where its files are, one of them damaged at a time.
    directory: TemporaryDirectory,
    image: Image,
    blocks: Vec<Placed>,
    moments: Vec<Moment>,
    /// The segment in which a recovery begins.
    first: u64,
}

/// What opening a damaged directory has to come to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Refused,
    /// The database is what it was after this step.
    Moment(usize),
}

impl Case {
    fn of(name: String, image: Image, moments: Vec<Moment>) -> Case {
        let manifest = image.manifest();
        let newest = manifest.checkpoints.last();
        let case = Case {
            directory: temporary(),
            blocks: image.blocks(),
            first: newest.map_or(manifest.first_segment, |it| it.segment),
            name,
            image,
            moments,
        };
        case.image.put(&case.path());
        case
    }

    /// With this many checkpoints: as it was closed, and without the last block, which promises the
    /// one before.
    fn both(checkpoints: usize) -> [Case; 2] {
        let directory = temporary();
        let path = directory.path().join("data");
        let moments = live(&path, checkpoints);
        let closed = Image::of(&path);
        let mut killed = closed.clone();
        let blocks = closed.blocks();
        let last = blocks.iter().rev().take_while(|it| it.payload_bytes == 0);
        for block in last {
            let segment = killed.files.get_mut(&segment_path(block.segment));
            segment.expect("it is there")[block.range()].fill(0);
        }
        [("closed", closed), ("killed", killed)].map(|(end, image)| {
            let name = format!("{checkpoints} checkpoints, {end}");
            Case::of(name, image, moments.clone())
        })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// What the database is when its log ends after this block.
    fn moment_at(&self, block: u64) -> usize {
        // The last group of a step: it may have others behind it, which are empty.
        let ends = self
            .blocks
            .iter()
            .filter(|it| it.payload_bytes > 0 && !it.header.goes_on);
        let ends: Vec<u64> = ends.map(|it| it.header.number).collect();
        let is_there = |moment: &Moment| {
            let of_step = ends.iter().rev().find(|end| **end <= moment.block);
            of_step.is_none_or(|end| *end <= block)
        };
        self.moments
            .iter()
            .rposition(is_there)
            .expect("the first one is there")
    }

    /// What opening comes to when only these blocks are left of the log.
    fn when_left(&self, is_left: impl Fn(&Placed) -> bool) -> Expected {
        let read = || self.blocks.iter().filter(|it| it.segment >= self.first);
        let Some(lost) = read().find(|it| !is_left(it)) else {
            return Expected::Moment(self.moments.len() - 1);
        };
        let lost = lost.header.number;
        let mut left = read().filter(|it| is_left(it));
        let is_promised = left.any(|it| it.header.durable_through >= lost);
        let before = read().rfind(|it| it.header.number < lost && !it.header.goes_on);
        // A checkpoint needs the log up to its end.
        let manifest = self.image.manifest();
        let is_needed = manifest.checkpoints.last().is_some_and(|checkpoint| {
            before.is_none_or(|it| !checkpoint.is_covered_by(it.header.epochs.1))
        });
        match is_promised || is_needed {
            true => Expected::Refused,
            false => Expected::Moment(self.moment_at(before.map_or(0, |it| it.header.number))),
        }
    }

    /// What opening comes to when a byte of a file is another one.
    fn when_changed(&self, file: &Path, at: usize) -> Expected {
        if file == Path::new("MANIFEST") {
            return Expected::Refused;
        }
        // An older checkpoint and a longer part of the log give the same database.
        self.when_left(|it| segment_path(it.segment) != file || !it.range().contains(&at))
    }

    /// Whether the log has blocks in this segment.
    fn has_blocks(&self, segment: u64) -> bool {
        self.blocks.iter().any(|it| it.segment == segment)
    }

    /// The files of the checkpoint with which a recovery begins.
    fn is_of_newest(&self, file: &Path) -> bool {
        let manifest = self.image.manifest();
        let newest = manifest.checkpoints.last();
        newest.is_some_and(|it| file.starts_with(format!("checkpoints/{:020}", it.number)))
    }

    /// Opens the directory, in which these files are damaged, checks what comes of it, and makes it
    /// whole again.
    fn check(&self, files: &[&Path], expected: Expected, goes_on: bool, context: &str) {
        let path = self.path();
        let context = format!("{}: {files:?}: {context}", self.name);
        match Database::open(options(&path)) {
            Err(error) => {
                assert_eq!(expected, Expected::Refused, "{context}: {error}");
                check_refusal(&error, &path, files, &context);
                let mut left = Image::of(&path);
                for file in files {
                    let whole = &self.image.files[*file];
                    left.files.insert(file.to_path_buf(), whole.clone());
                }
                assert!(left == self.image, "{context}: other files were changed");
            }
            Ok(database) => {
                let Expected::Moment(expected) = expected else {
                    panic!("{context}: it was not refused");
                };
                let moment = &self.moments[expected];
                let state = State::of(&database, moment.calls);
                assert_eq!(state, moment.state, "{context}, after step {expected}");
                let warnings = &database.recovery().expect("it has a directory").warnings;
                let is_named = |file: &Path| {
                    let name = file.to_string_lossy();
                    warnings.iter().any(|it| it.contains(&*name))
                };
                let mut newest = files
                    .iter()
                    .filter(|file| self.is_of_newest(file))
                    .peekable();
                let is_newest = newest.peek().is_some();
                let is_warned = newest.any(|file| is_named(file));
                assert_eq!(is_warned, is_newest, "{context}: {warnings:?}");
                if goes_on {
                    self.go_on(database, moment, &context);
                }
            }
        }
        self.image.put(&path);
    }

    /// Writes something, and opens the database again.
    fn go_on(&self, database: Database, moment: &Moment, context: &str) {
        let more = "CREATE TABLE more (id INTEGER PRIMARY KEY); INSERT INTO more VALUES (1), (2)";
        database
            .execute(more)
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        drop(database);
        let again = Database::open(options(&self.path()));
        let again = again.unwrap_or_else(|error| panic!("{context}: {error}"));
        let sum = again.query("SELECT sum(id) FROM more", ()).expect(context);
        assert_eq!(sum.into_one::<(i64,)>(), Ok((3,)), "{context}");
        let state = State::of(&again, moment.calls);
        assert_eq!(state.rows, moment.state.rows, "{context}");
        assert_eq!(state.replies, moment.state.replies, "{context}");
    }

    /// Flips a bit of a file.
    fn check_bit(&self, file: &Path, at: usize, bit: usize) {
        let target = image::open(&self.path().join(file));
        let byte = self.image.files[file][at] ^ 1 << bit;
        target.write_at(at as u64, &[byte]).expect("there is room");
        drop(target);
        let expected = self.when_changed(file, at);
        self.check(&[file], expected, false, &format!("bit {bit} of byte {at}"));
    }

    /// Gives a file other bytes.
    fn check_bytes(
        &self,
        file: &Path,
        bytes: &[u8],
        expected: Expected,
        goes_on: bool,
        context: &str,
    ) {
        image::write(&self.path().join(file), bytes);
        self.check(&[file], expected, goes_on, context);
    }

    /// What opening comes to without this file.
    fn when_missing(&self, file: &Path) -> Expected {
        match file == Path::new("MANIFEST") {
            true => Expected::Refused,
            false => self.when_left(|it| segment_path(it.segment) != file),
        }
    }

    fn whole(&self) -> Expected {
        Expected::Moment(self.moments.len() - 1)
    }
}

/// Checks that a refusal says where the damage is, and what can be done.
fn check_refusal(error: &Error, path: &Path, files: &[&Path], context: &str) {
    assert_eq!(
        error.state(),
        SqlState::DATA_CORRUPTED,
        "{context}: {error}"
    );
    let message = error.message();
    // The manifest, the log, or the checkpoints. A manifest of another database is as good as the
    // files that do not fit to it.
    let is_named = |file: &&Path| {
        let part = file.iter().next().expect("it has a name");
        message.contains(&*part.to_string_lossy())
    };
    let is_named = files.iter().any(is_named) || message.contains("of another database");
    let is_named = is_named && message.contains(&*path.to_string_lossy());
    assert!(is_named, "{context}: {message}");
    assert!(error.hint().is_some(), "{context}: {message}");
}

fn cases() -> impl Iterator<Item = Case> {
    (0..=2).flat_map(Case::both)
}

impl Case {
    /// Its files. Only their logs tell a database that was closed from one that was killed.
    fn files(&self) -> impl Iterator<Item = (&PathBuf, &Vec<u8>)> {
        let files = self.image.files.iter();
        files.filter(|(file, _)| file.starts_with("log") || self.name.ends_with("closed"))
    }

    /// One byte in how many of those like this one is tried by default: those that mean most, and
    /// that are refused soonest.
    fn tried_in(&self, file: &Path, at: usize) -> usize {
        let is_here =
            |block: &&Placed| segment_path(block.segment) == file && block.range().contains(&at);
        match self.blocks.iter().find(is_here) {
            Some(block) if at - block.offset < HEADER_BYTES => 12,
            Some(block) if at - block.offset < HEADER_BYTES + block.payload_bytes => 101,
            _ if file.starts_with("log") => 1_499,
            _ if file.starts_with("checkpoints") => 41,
            _ => 1,
        }
    }
}

#[test]
fn a_database_is_what_it_was_or_refused_whichever_bit_is_another_one() {
    let seed = 11;
    let mut random = Random::from_seed(seed);
    for case in cases() {
        let mut tried = 0;
        for (file, bytes) in case.files() {
            for at in 0..bytes.len() {
                if random.below(2 * case.tried_in(file, at)) == 0 {
                    tried += 1;
                    case.check_bit(file, at, random.below(8));
                }
            }
        }
        println!("{}: {tried} bits with seed {seed}", case.name);
    }
}

/// All bits of the manifest, of checkpoints, and of what was written of the log; of the zeros
/// between and behind its blocks a bit of each sixteenth byte. Takes minutes.
#[test]
#[ignore = "as above with all bits, for changes of a format"]
fn a_database_is_what_it_was_or_refused_with_each_bit_another_one() {
    for case in cases() {
        for (file, bytes) in case.files() {
            let mut flipped = 0;
            for at in 0..bytes.len() {
                let is_written = |it: &Placed| {
                    let written =
                        it.range().start..it.range().start + HEADER_BYTES + it.payload_bytes;
                    segment_path(it.segment) == *file && written.contains(&at)
                };
                let is_log = file.starts_with("log");
                match !is_log || case.blocks.iter().any(is_written) {
                    true => (0..8).for_each(|bit| case.check_bit(file, at, bit)),
                    false if at % 16 == 0 => case.check_bit(file, at, at / 16 % 8),
                    false => continue,
                }
                flipped += 1;
            }
            println!("{}: {}: {flipped} bytes", case.name, file.display());
        }
    }
}

#[test]
fn a_file_that_ends_early_is_a_torn_end_or_damage() {
    for case in cases() {
        for (file, bytes) in case.files() {
            let is_log = file.starts_with("log");
            let step = if is_log { 512 } else { 97 };
            for length in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
                let expected = match is_log {
                    true => case.when_left(|it| {
                        segment_path(it.segment) != *file || it.range().end <= length
                    }),
                    false => case.when_changed(file, length),
                };
                let context = format!("{length} bytes of {}", bytes.len());
                let goes_on = expected != case.whole() || length == 0;
                case.check_bytes(file, &bytes[..length], expected, goes_on, &context);
            }
        }
    }
}

#[test]
fn a_file_that_is_missing_is_damage_unless_nothing_promises_it() {
    for case in cases() {
        for (file, _) in case.files() {
            image::remove(&case.path().join(file));
            case.check(&[file], case.when_missing(file), true, "it is missing");
        }
    }
}

#[test]
fn a_file_that_is_longer_is_damage_unless_it_is_of_the_log() {
    let mut random = Random::from_seed(12);
    for case in cases() {
        for (file, bytes) in case.files() {
            let expected = match file.starts_with("log") {
                true => case.whole(),
                false => case.when_changed(file, 0),
            };
            for more in [1, 4_096, 20_000] {
                let mut longer = bytes.clone();
                longer.resize(bytes.len() + more, 0);
                let check = |longer: &[u8], what: &str| {
                    let context = format!("{more} bytes more, {what}");
                    case.check_bytes(file, longer, expected, more == 4_096, &context);
                };
                check(&longer, "zeros");
                let garbage = longer[bytes.len()..].iter_mut();
                garbage.for_each(|byte| *byte = random.next_u64() as u8);
                check(&longer, "anything");
                // As if a block began there.
                let begin = bytes.len()..longer.len().min(bytes.len() + 8);
                longer[begin.clone()].copy_from_slice(&b"KILNBLOK"[..begin.len()]);
                check(&longer, "a block's beginning");
            }
        }
    }
}

/// Whether both are segments, or both files of checkpoints.
fn are_alike(one: &Path, other: &Path) -> bool {
    one.parent().is_some_and(|it| it != Path::new("")) && one.iter().next() == other.iter().next()
}

#[test]
fn files_that_have_each_others_names_are_damage() {
    for case in cases() {
        let files: Vec<&PathBuf> = case.files().map(|(file, _)| file).collect();
        for (at, one) in files.iter().enumerate() {
            for other in files[at + 1..].iter().filter(|other| are_alike(one, other)) {
                let bytes = [*one, *other].map(|file| &case.image.files[file]);
                if bytes[0] == bytes[1] {
                    continue;
                }
                image::write(&case.path().join(one), bytes[1]);
                image::write(&case.path().join(other), bytes[0]);
                let expected = case.when_swapped(one, other);
                case.check(&[one, other], expected, true, "they are swapped");
            }
        }
    }
}

impl Case {
    fn when_swapped(&self, one: &Path, other: &Path) -> Expected {
        let segments = self.image.segments();
        let number = |file: &Path| {
            segments
                .keys()
                .find(|it| segment_path(**it) == file)
                .copied()
        };
        let (Some(one), Some(other)) = (number(one), number(other)) else {
            let manifest = self.image.manifest();
            let is_last = manifest.checkpoints.len() == 1 || one.parent() != other.parent();
            return match is_last && manifest.first_segment > 1 {
                true => Expected::Refused,
                false => self.whole(),
            };
        };
        match [one, other].map(|it| it >= self.first && self.has_blocks(it)) {
            [false, false] => self.whole(),
            // What the other file has is taken for an older life of it.
            [false, true] if one < self.first => self.when_left(|it| it.segment != other),
            _ => Expected::Refused,
        }
    }
}

#[test]
fn a_file_of_another_database_is_damage() {
    for (case, foreign) in cases().zip(cases()) {
        for (file, bytes) in case.files() {
            let Some(other) = foreign
                .image
                .files
                .get(file)
                .filter(|other| *other != bytes)
            else {
                continue;
            };
            let segments = case.image.segments();
            let number = segments.keys().find(|it| segment_path(**it) == *file);
            let expected = match number {
                None if file == Path::new("MANIFEST") => Expected::Refused,
                None => case.whole(),
                Some(number) if *number < case.first => case.whole(),
                Some(number) if foreign.has_blocks(*number) => Expected::Refused,
                Some(_) => case.when_missing(file),
            };
            case.check_bytes(file, other, expected, true, "it is of another database");
        }
    }
}
