//! Reading logs: whole ones, those that a crash has left, and those that the disk has changed.
//!
//! What is read is never anything that was not written. A log of which something is missing that a
//! later block says was on disk is refused; what no block says that of is cut off.

#![cfg(not(kiln_sim))]

mod log_image;

use kiln_durability::format::block::ALIGNMENT;
use kiln_durability::format::{BlockHeader, Chain, DatabaseId, segment_name};
use kiln_durability::recovery::Start;
use kiln_storage::error::SqlState;

use log_image::{DATABASE, LogImage, Placed, Written};

/// Segments of four pages.
const SEGMENT: usize = 4 * ALIGNMENT;

/// Two segments and a part of the third: groups of one block and of several, over the ends of
/// segments; then zeros.
fn small() -> LogImage {
    let mut image = LogImage::new(SEGMENT);
    for answer in [10, 100, 9_000, 20, 3_000, 30] {
        image.group(answer, 5_000);
    }
    image.cover();
    image.group(40, 5_000);
    assert_eq!(image.position.segment, 3);
    assert!(image.position.offset + (ALIGNMENT as u64) <= SEGMENT as u64);
    image
}

fn all_of(image: &LogImage) -> Vec<u64> {
    (1..=image.position.epoch).collect()
}

/// Checks what is read of a log one of whose blocks is not what was written.
fn check_damaged(image: &LogImage, written: &Written, block: &BlockHeader, context: &str) {
    check_lost(
        image,
        written,
        block,
        image.is_promised(block.number),
        context,
    );
}

/// As [`check_damaged`], where only some blocks are left behind it.
fn check_lost(
    image: &LogImage,
    written: &Written,
    block: &BlockHeader,
    is_promised: bool,
    context: &str,
) {
    match written.replay() {
        Ok((epochs, end)) => {
            assert!(!is_promised, "{context}: it was promised");
            let last = image.epoch_before(block);
            assert_eq!(epochs, (1..=last).collect::<Vec<_>>(), "{context}");
            assert_eq!(end.position.epoch, last, "{context}");
        }
        Err(error) => {
            assert!(is_promised, "{context}: {error}");
            assert_eq!(
                error.state(),
                SqlState::DATA_CORRUPTED,
                "{context}: {error}"
            );
            assert!(error.hint().is_some(), "{context}: {error}");
        }
    }
}

#[test]
fn a_log_is_read_whole_and_goes_on_where_it_ended() {
    let mut image = LogImage::new(SEGMENT);
    let mut written = image.write();
    for round in 0..60 {
        let (epochs, end) = written.replay().expect("it is whole");
        assert_eq!(epochs, all_of(&image), "round {round}");
        assert_eq!(end.position, image.position, "round {round}");
        assert_eq!(end.cut, None, "round {round}");
        image.go_on(end.position);
        image.group(round * 977 % 12_000, 5_000);
        if round % 7 == 0 {
            image.cover();
        }
        written = image.write();
    }
    assert!(image.position.segment > 10);
    let progress = {
        let start = Start {
            database: DATABASE,
            segment: 1,
            chain: Some(Chain::new(DATABASE)),
        };
        let mut scan = kiln_durability::recovery::Scan::open(written.directory(), start);
        let scan = scan.as_mut().expect("it is whole");
        while scan.next(&mut Vec::new()).expect("it is whole").is_some() {}
        scan.progress()
    };
    let before = (image.position.segment - 1) * SEGMENT as u64;
    let all = image.segments.len() * SEGMENT;
    assert_eq!(progress, (before + image.position.offset, all as u64));
}

#[test]
fn nothing_is_read_that_was_not_written_whichever_byte_is_another_one() {
    let image = small();
    let written = image.write();
    for (number, bytes) in &image.segments {
        let file = written.open(*number);
        for at in 0..bytes.len() {
            // All of the head of each page, which is where blocks are looked for, and some of the
            // rest. That each bit of a block counts is tested where blocks are.
            if at % ALIGNMENT >= 96 && at % 37 != 0 {
                continue;
            }
            let context = format!("byte {at} of segment {number}");
            let put = file.write_at(at as u64, &[bytes[at] ^ 1 << (at % 8)]);
            put.expect("there is room");
            match image.block_at(*number, at) {
                Some(block) => check_damaged(&image, &written, &block.header, &context),
                None => {
                    let (epochs, end) = written.replay().expect("no block is damaged");
                    assert_eq!(epochs, all_of(&image), "{context}");
                    assert_eq!(end.position, image.position, "{context}");
                }
            }
            file.write_at(at as u64, &bytes[at..=at])
                .expect("there is room");
        }
    }
}

#[test]
fn a_file_that_ends_early_is_a_torn_end_or_damage() {
    let image = small();
    for (number, bytes) in &image.segments {
        for length in (0..bytes.len()).step_by(512) {
            let mut zeros = bytes[..length].to_vec();
            zeros.resize(bytes.len(), 0);
            for torn in [&bytes[..length], &zeros] {
                let mut torn_image = image.clone();
                torn_image.segments.insert(*number, torn.to_vec());
                let written = torn_image.write();
                let context = format!("segment {number} after {length} bytes");
                let mut in_segment = image.blocks.iter().filter(|it| it.segment == *number);
                // The zeros at the end of a block are not missed where there are zeros in their
                // place.
                let first_changed = in_segment.find(|it| {
                    let block = it.offset..it.offset + it.bytes;
                    torn.get(block.clone()) != Some(&bytes[block])
                });
                match first_changed {
                    Some(block) => {
                        let mut left = image.blocks.iter().filter(|it| it.segment > *number);
                        let promised =
                            left.any(|it| it.header.durable_through >= block.header.number);
                        check_lost(&image, &written, &block.header, promised, &context);
                    }
                    None => {
                        let (epochs, _) = written.replay().expect("all blocks are whole");
                        assert_eq!(epochs, all_of(&image), "{context}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_group_without_its_last_block_is_cut_off_whole() {
    let mut image = LogImage::new(SEGMENT);
    image.group(10, 5_000);
    let end = image.position;
    image.group(14_000, 3_000);
    assert!(image.position.segment > 1, "it goes on in the next segment");
    for torn in image.blocks.iter().skip(1) {
        let mut cut = image.clone();
        for block in image
            .blocks
            .iter()
            .filter(|it| it.header.number >= torn.header.number)
        {
            erase(&mut cut, block);
        }
        let (epochs, found) = cut.write().replay().expect("it was not promised");
        assert_eq!((epochs, found.position), (vec![1], end), "{torn:?}");
        let is_begun = torn.header.number > 2;
        assert_eq!(found.cut.is_some(), is_begun, "{torn:?}: {:?}", found.cut);
    }
}

fn erase(image: &mut LogImage, block: &Placed) {
    let segment = image.segments.get_mut(&block.segment).expect("it is there");
    segment[block.offset..block.offset + block.bytes].fill(0);
}

/// A group that was cut off stays behind the log's end, and the log goes on over it, with blocks
/// that may be torn in turn.
#[test]
fn what_was_cut_off_never_counts_again() {
    for sizes in [
        [14_000, 10],
        [14_000, 7_000],
        [25_000, 14_000],
        [25_000, 3_000],
    ] {
        let mut image = LogImage::new(SEGMENT);
        image.group(10, 5_000);
        image.group(sizes[0], 3_000);
        let last = *image.blocks.last().expect("it has blocks");
        erase(&mut image, &last);
        let (_, end) = image.write().replay().expect("it was not promised");
        image.go_on(end.position);
        let before = image.clone();
        image.group(sizes[1], 3_000);
        // Each prefix of the new group's writes, also by halves of a block.
        let writes = image.blocks[before.blocks.len()..].to_vec();
        for done in 0..=writes.len() * 2 {
            let mut torn = before.clone();
            for (at, block) in writes.iter().enumerate() {
                let is_whole = done >= 2 * at + 2;
                let bytes = match is_whole {
                    true => block.bytes,
                    false if done == 2 * at + 1 => block.bytes - 512,
                    false => 0,
                };
                let range = block.offset..block.offset + bytes;
                let new = image.segments[&block.segment][range.clone()].to_vec();
                let empty = || vec![0; SEGMENT];
                let target = torn.segments.entry(block.segment).or_insert_with(empty);
                target[range].copy_from_slice(&new);
            }
            let (epochs, found) = torn.write().replay().expect("nothing was promised");
            // A block that ends in zeros is whole without its last sector.
            if found.position != before.position {
                assert_eq!((epochs, found.position), (vec![1, 2], image.position));
                assert!(done + 1 >= writes.len() * 2, "{sizes:?}: {done}");
            } else {
                assert_eq!(epochs, [1], "{sizes:?}: {done}");
            }
        }
        image.group(10, 3_000);
        image.group(10, 3_000);
        let (epochs, found) = image.write().replay().expect("it is whole");
        assert_eq!((epochs, found.position), (vec![1, 2, 3, 4], image.position));
    }
}

#[test]
fn segments_that_are_used_again_hold_nothing_of_their_former_lives() {
    let mut image = LogImage::new(SEGMENT);
    while image.position.segment < 3 {
        image.group(1_000, 5_000);
    }
    // Files of segments 1 and 2 come back as 3 and 4; the blocks of 3 replace a part of what is
    // there.
    let mut again = image.clone();
    for (old, new) in [(1, 3), (2, 4)] {
        let stale = image.segments[&old].clone();
        again.segments.insert(new, stale);
    }
    for block in image.blocks.iter().filter(|it| it.segment == 3) {
        let range = block.offset..block.offset + block.bytes;
        let bytes = image.segments[&3][range.clone()].to_vec();
        again.segments.get_mut(&3).expect("it is there")[range].copy_from_slice(&bytes);
    }
    // The log's beginning is gone with them, and its first block is believed.
    again.segments.retain(|number, _| *number > 2);
    let written = again.write();
    let start = Start {
        database: DATABASE,
        segment: 3,
        chain: None,
    };
    let (epochs, end) = written.replay_from(start).expect("it is whole");
    let first = image.blocks.iter().find(|it| it.segment == 3);
    let first = first.expect("it has blocks").header.epochs.0;
    assert_eq!(epochs, (first..=image.position.epoch).collect::<Vec<_>>());
    assert_eq!((end.position, end.cut), (image.position, None));
}

#[test]
fn a_log_whose_beginning_was_removed_within_a_group_begins_with_the_next_one() {
    let mut image = LogImage::new(SEGMENT);
    for answer in [10, 14_000, 20, 9_000] {
        image.group(answer, 3_000);
    }
    let first = image.blocks.iter().find(|it| it.segment == 2);
    assert!(first.expect("it has blocks").header.goes_back);
    let start = Start {
        database: DATABASE,
        segment: 2,
        chain: None,
    };
    let written = image.write();
    written.remove(1);
    let (epochs, end) = written.replay_from(start).expect("it is whole");
    assert_eq!((epochs, end.position), (vec![3, 4], image.position));
}

#[test]
fn segments_that_are_missing_or_have_each_others_names_are_damage() {
    let image = small();
    let refused = |written: &Written, what: &str| {
        let error = written.replay().map(|(epochs, _)| epochs).expect_err(what);
        assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{what}: {error}");
        assert!(error.hint().is_some(), "{what}: {error}");
        error.to_string()
    };
    for missing in [1, 2] {
        let written = image.write();
        written.remove(missing);
        let message = refused(&written, "a segment is missing");
        assert!(message.contains(&segment_name(missing)), "{message}");
    }
    for (left, right) in [(1, 2), (1, 3), (2, 3)] {
        let written = image.write();
        written.put(left, &image.segments[&right]);
        written.put(right, &image.segments[&left]);
        refused(&written, "segments have been swapped");
    }
    // A segment has the content of another one, and its own is nowhere.
    for (from, to) in [(2, 1), (3, 1), (3, 2), (1, 2)] {
        let written = image.write();
        written.put(to, &image.segments[&from]);
        refused(&written, "a segment is there twice");
    }
    // The last one and the one that was made ahead.
    let mut ahead = image.clone();
    ahead.segments.insert(4, vec![0; SEGMENT]);
    let written = ahead.write();
    written.replay().expect("it is whole");
    written.put(3, &ahead.segments[&4]);
    written.put(4, &ahead.segments[&3]);
    let message = refused(&written, "the last segment has another name");
    assert!(message.contains(&segment_name(4)), "{message}");
    written.remove(3);
    refused(
        &written,
        "the last segment has another name, and its own is gone",
    );
    // Two segments alone.
    let mut image = LogImage::new(SEGMENT);
    while image.position.segment < 2 {
        image.group(1_000, 5_000);
    }
    let written = image.write();
    written.put(1, &image.segments[&2]);
    written.put(2, &image.segments[&1]);
    refused(&written, "segments have been swapped");
    // The last one may not have been written yet.
    let written = image.write();
    written.remove(2);
    let (epochs, end) = written.replay().expect("nothing promises what is gone");
    assert_eq!(epochs.len() as u64, image.position.epoch - 1);
    assert_eq!(end.position.segment, 1);
}

#[test]
fn an_empty_directory_is_the_beginning_of_a_log() {
    let mut image = LogImage::new(SEGMENT);
    for _ in 0..2 {
        let (epochs, end) = image.write().replay().expect("there is nothing");
        assert_eq!((epochs, end.position), (vec![], image.position));
        assert_eq!(end.cut, None);
        image.segments.clear();
    }
    let start = Start {
        database: DATABASE,
        segment: 7,
        chain: None,
    };
    let error = image.write().replay_from(start).expect_err("it is missing");
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
    // The first block of a log whose beginning was removed is known to have been on disk.
    image.segments.insert(7, vec![0; SEGMENT]);
    let error = image.write().replay_from(start).expect_err("it is missing");
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
}

#[test]
fn blocks_of_another_database_are_no_part_of_it() {
    let image = small();
    let written = image.write();
    let database = DatabaseId(*b"another database");
    let start = Start {
        database,
        segment: 1,
        chain: Some(Chain::new(database)),
    };
    let error = written
        .replay_from(start)
        .expect_err("they are not its own");
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
    assert!(error.to_string().contains("of another database"), "{error}");
}

/// Gives a block the version that a later Kiln writes.
fn make_newer(image: &mut LogImage, block: &Placed) {
    let segment = image.segments.get_mut(&block.segment).expect("it is there");
    let bytes = &mut segment[block.offset..block.offset + block.bytes];
    bytes[8] += 1;
    let length = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes")) as usize;
    let mut digest = crc64fast::Digest::new();
    digest.write(&bytes[..88]);
    digest.write(&bytes[96..96 + length]);
    bytes[88..96].copy_from_slice(&digest.sum64().to_le_bytes());
}

#[test]
fn a_log_that_a_newer_version_has_gone_on_with_is_refused() {
    let image = small();
    for block in &image.blocks {
        let mut newer = image.clone();
        for later in image
            .blocks
            .iter()
            .filter(|it| it.header.number >= block.header.number)
        {
            make_newer(&mut newer, later);
        }
        let error = newer.write().replay().expect_err("it is newer");
        assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED, "{error}");
        assert!(error.to_string().contains("format 2"), "{error}");
    }
}
