use super::*;
use crate::{Clock, Log, Version};

fn history() -> History {
    let clock = Clock::new();
    let mut log = Log::new(clock.clone(), 1 << 10);
    log.begin(1, clock.now());
    log.read(Object(8), Version(3), [].into_iter());
    log.commit();
    History {
        protocol: "silo".to_owned(),
        workload: "anomalies".to_owned(),
        procedures: vec!["read".to_owned(), "write".to_owned()],
        causes: vec!["read validation".to_owned()],
        tables: vec![TableNames {
            name: "account".to_owned(),
            columns: vec!["id".to_owned(), "balance".to_owned()],
            indexes: vec!["account_pkey".to_owned()],
        }],
        objects: vec![ObjectName {
            object: Object(8),
            table: 0,
            name: "account[3]".to_owned(),
        }],
        logs: vec![log.take_words(), Vec::new(), (0..20_000).collect()],
    }
}

fn bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    history().write_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_written_is_read() {
    assert_eq!(History::read_from(&mut &*bytes()).unwrap(), history());
    let empty = History::default();
    let mut bytes = Vec::new();
    empty.write_to(&mut bytes).unwrap();
    assert_eq!(History::read_from(&mut &*bytes).unwrap(), empty);
}

#[test]
fn every_file_that_is_cut_off_is_found_out() {
    let bytes = bytes();
    let lengths = (0..700).chain((700..bytes.len()).step_by(997));
    for length in lengths {
        let error = History::read_from(&mut &bytes[..length]).unwrap_err();
        match error {
            FileError::CutOff { at, .. } => assert!(at <= length as u64),
            FileError::NotAHistory => assert!(length < MAGIC.len()),
            _ => panic!("cut off at {length}: {error}"),
        }
    }
}

#[test]
fn every_damaged_byte_is_found_out() {
    let bytes = bytes();
    let positions = (0..700).chain((700..bytes.len()).step_by(997));
    for position in positions {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x41;
        let error = History::read_from(&mut &*damaged).unwrap_err();
        let message = error.to_string();
        match position {
            0..8 => assert!(matches!(error, FileError::NotAHistory), "{message}"),
            8..12 => assert!(matches!(error, FileError::UnknownVersion(_)), "{message}"),
            _ => assert!(
                matches!(
                    error,
                    FileError::Checksum { .. }
                        | FileError::Malformed { .. }
                        | FileError::CutOff { .. }
                ),
                "{message}"
            ),
        }
    }
}

#[test]
fn absurd_lengths_are_refused_without_their_memory() {
    for (content, reason) in [
        (&[0xff, 0xff, 0xff, 0xff][..], "longer than its section"),
        (&[1, 0, 0, 0, 0xff], "not UTF-8"),
        (&[0, 0], "ends within a field"),
        (&[0; 24], "follows its fields"),
    ] {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        write_section(&mut bytes, NAMES, content).unwrap();
        let error = History::read_from(&mut &*bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&section_head(NAMES, u64::MAX));
    let error = History::read_from(&mut &*bytes).unwrap_err().to_string();
    assert!(error.contains("absurd"), "{error}");
}

#[test]
fn what_follows_the_end_is_refused() {
    let mut bytes = bytes();
    bytes.push(0);
    let error = History::read_from(&mut &*bytes).unwrap_err().to_string();
    assert!(error.contains("something follows the end"), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = History::load(Path::new("/no/such/history")).unwrap_err();
    assert!(error.to_string().contains("/no/such/history"), "{error}");
}
