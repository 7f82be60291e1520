use kiln_platform::random::Random;
use kiln_storage::error::SqlState;

use super::*;

fn file(name: FileName, bytes: u64) -> FileEntry {
    FileEntry {
        name,
        bytes,
        checksum: bytes.wrapping_mul(0x0123_4567_89ab_cdef),
    }
}

fn table(table: u32, part: u32) -> FileName {
    FileName::Table {
        table: TableId(table),
        part,
    }
}

fn checkpoint(number: u64) -> CheckpointEntry {
    CheckpointEntry {
        number,
        start_epoch: number * 10,
        end_epoch: number * 10 + 3,
        segment: number + 4,
        catalog: 31,
        written_us: 1_763_886_736_000_000,
        rows: 2_000,
        files: vec![
            file(FileName::Catalog, 300),
            file(table(1, 0), 4_096),
            file(table(1, 1), 1 << 60),
            file(table(u32::MAX, u32::MAX), 0),
        ],
    }
}

fn manifest(checkpoints: u64) -> Manifest {
    Manifest {
        first_segment: 5,
        recovery: (checkpoints > 1).then_some(RecoveryRecord {
            rates: RecoveryRates {
                checkpoint_bytes_per_s: 91_000_000,
                log_bytes_per_s: u64::MAX,
            },
            estimated_us: 1_700_000,
            elapsed_us: 0,
        }),
        checkpoints: (1..=checkpoints).map(checkpoint).collect(),
        ..Manifest::new(DatabaseId(*b"sixteen bytes..."), -1)
    }
}

fn refused(bytes: &[u8]) -> Error {
    let path = Path::new("/data/MANIFEST");
    let error = Manifest::read(bytes, path).expect_err("it is not what was written");
    assert!(error.message().contains("/data/MANIFEST"), "{error}");
    assert!(error.hint().is_some(), "{error}");
    error
}

/// The bytes with the checksum that they should have.
fn with_checksum(content: &str) -> Vec<u8> {
    format!(
        "{content}checksum {:016x}\n",
        checksum([content.as_bytes()])
    )
    .into_bytes()
}

#[test]
fn manifests_are_read_as_they_were_written() {
    for checkpoints in 0..=2 {
        let written = manifest(checkpoints);
        let bytes = written.to_bytes().expect("it can be");
        let read = Manifest::read(&bytes, Path::new("MANIFEST"));
        assert_eq!(read, Ok(written));
    }
    let text = String::from_utf8(manifest(1).to_bytes().expect("it can be"));
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "kiln manifest 1\n\
         written-by {version}\n\
         database 7369787465656e2062797465732e2e2e\n\
         created -1\n\
         first-segment 5\n\
         checkpoint 1\n  \
           epochs 10 13\n  \
           segment 5\n  \
           catalog 31\n  \
           written 1763886736000000\n  \
           rows 2000\n  \
           file catalog 300 5555555555555414\n"
    );
    let text = text.expect("it is text");
    assert!(text.starts_with(&expected), "{text}");
    let line = "first-segment 5\nrecovery 91000000 18446744073709551615 1700000 0\ncheckpoint 1\n";
    assert!(manifest(2).to_string().contains(line));
}

#[test]
fn every_bit_counts() {
    let mut bytes = manifest(2).to_bytes().expect("it can be");
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(refused(&bytes).state(), SqlState::DATA_CORRUPTED);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    Manifest::read(&bytes, Path::new("MANIFEST")).expect("it is whole again");
}

#[test]
fn a_manifest_that_was_cut_off_is_none() {
    let bytes = manifest(2).to_bytes().expect("it can be");
    for length in 0..bytes.len() {
        refused(&bytes[..length]);
    }
    refused(&[&bytes[..], b"\n"].concat());
    refused(&[&bytes[..], &bytes[..]].concat());
}

#[test]
fn what_no_kiln_writes_is_refused_whatever_its_checksum() {
    let whole = manifest(2).to_string();
    let changes = [
        ("kiln manifest 1", "kiln manifest 0", "no format 0"),
        ("kiln manifest 1", "kiln manifest 01", "line 1"),
        ("kiln manifest", "a manifest", "line 1"),
        ("written-by", "written by", "line 2"),
        ("database 73", "database 7", "line 3"),
        ("database 73", "database G3", "line 3"),
        ("6e20", "6E20", "line 3"),
        ("created -1", "created +1", "line 4"),
        ("created -1", "created 9223372036854775808", "line 4"),
        ("first-segment 5\n", "", "line 5"),
        ("first-segment 5", "first-segment 6", "needs segment 5"),
        ("first-segment 5", "first-segment 5 ", "line 5"),
        ("recovery 91000000", "recovery 0", "never ends"),
        ("recovery 91000000", "recovery", "line 6"),
        ("recovery 91000000", "recovery 091000000", "line 6"),
        ("1700000 0", "1700000 0 0", "line 6"),
        ("1700000 0", "1700000 -1", "line 6"),
        ("checkpoint 1", "checkpoint 2", "order"),
        ("checkpoint 1", "checkpoint 1\r", "line 7"),
        ("epochs 10 13", "epochs 15 13", "starts after its end"),
        ("epochs 10 13", "epochs 10", "line 8"),
        ("  rows 2000", "  rows", "line 12"),
        ("file catalog", "file catalogue", "line 13"),
        ("file catalog", "file table-1-0", "table-1-0 twice"),
        ("file table-1-0", "file table-01-0", "line 14"),
        ("file table-1-0", "file table-1-../0", "line 14"),
        ("file table-1-1 ", "file table-1-1 1 ", "line 15"),
        (
            "file catalog ",
            "file table-9-9 9223372036854775807 0000000000000000\n  file catalog ",
            "more bytes",
        ),
    ];
    for (from, to, fault) in changes {
        let changed = whole.replacen(from, to, 1);
        assert_ne!(changed, whole, "{from}");
        let error = refused(&with_checksum(&changed));
        assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
        assert!(error.message().contains(fault), "{from} → {to}: {error}");
    }
    let third = checkpoint(3);
    let mut many = manifest(2);
    many.checkpoints.push(third);
    assert!(many.to_bytes().is_err());
    refused(&with_checksum(&many.to_string()));
    refused(&with_checksum("kiln manifest 1\n"));
    refused(&with_checksum(""));
    let mut not_text = b"kiln manifest 1\n\xFF\n".to_vec();
    let sum = checksum([&not_text[..]]);
    not_text.extend(format!("checksum {sum:016x}\n").bytes());
    refused(&not_text);
}

#[test]
fn a_manifest_of_a_later_kiln_says_so() {
    let content = "kiln manifest 2\nwritten-by 9.9.0\nof which nothing is known\n";
    let error = refused(&with_checksum(content));
    assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
    assert!(error.message().contains("format 2"), "{error}");
    assert!(error.detail().is_some_and(|it| it.contains("Kiln 9.9.0")));
}

#[test]
fn mutations_never_pass_for_another_manifest_and_never_panic() {
    let whole = manifest(2).to_string();
    let words: Vec<&str> = whole.split_inclusive([' ', '\n']).collect();
    // All but the version of the Kiln that wrote it, which is any word.
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().filter(|line| !line.starts_with("written-by"));
        let lines = lines.filter(|line| !line.starts_with("checksum"));
        lines.map(str::to_owned).collect()
    };
    for seed in 0..20_000 {
        let mut random = Random::from_seed(seed);
        let mut changed: Vec<&str> = words.clone();
        for _ in 0..random.between(1, 3) {
            let (at, other) = (random.below(changed.len()), random.below(words.len()));
            match random.below(3) {
                0 => changed[at] = words[other],
                1 => changed.insert(at, words[other]),
                _ => _ = changed.remove(at),
            }
        }
        // With the right checksum: what is read then has to be what is written again.
        let bytes = with_checksum(&changed.concat());
        if let Ok(read) = Manifest::read(&bytes, Path::new("MANIFEST")) {
            let again = read.to_bytes().expect("it was read");
            assert_eq!(lines(&again), lines(&bytes), "seed {seed}");
        }
        let mut bytes = manifest(2).to_bytes().expect("it can be");
        for _ in 0..random.between(1, 4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.next_u64() as u8,
                1 => bytes.insert(at, random.next_u64() as u8),
                _ => _ = bytes.remove(at),
            }
        }
        if let Ok(read) = Manifest::read(&bytes, Path::new("MANIFEST")) {
            assert_eq!(read, manifest(2), "seed {seed}");
        }
    }
}

#[test]
fn numbers_that_no_database_comes_to_are_refused() {
    let whole = String::from_utf8(manifest(2).to_bytes().expect("it can be")).expect("it is text");
    let content = &whole[..whole.rfind("checksum").expect("it has one")];
    for line in [
        "first-segment 5",
        "checkpoint 2",
        "  epochs 10",
        "  segment 6",
    ] {
        assert!(content.contains(line), "{line}");
        let (name, _) = line.rsplit_once(' ').expect("a name and a number");
        let changed = content.replacen(line, &format!("{name} {}", u64::MAX), 1);
        let error = refused(&with_checksum(&changed));
        assert!(error.message().contains(name.trim_start()), "{error}");
    }
}
