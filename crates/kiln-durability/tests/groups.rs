//! Logs that are read by groups.

#![cfg(not(kiln_sim))]

mod common;

use common::{Temporary, write};
use kiln_durability::format::block::{HEADER_BYTES, bytes_of};
use kiln_durability::format::entry::append_statement;
use kiln_durability::format::{BlockHeader, Chain, DatabaseId, segment_name};
use kiln_durability::log::Position;
use kiln_durability::recovery::{Groups, Replay, Scan, Start};
use kiln_platform::disk::Directory;

const DATABASE: DatabaseId = DatabaseId(*b"groups of blocks");

/// A block that continues the chain.
fn block(chain: &mut Chain, segment: u64, payload: &[u8], header: BlockHeader) -> Vec<u8> {
    let mut bytes = vec![0; bytes_of(payload.len())];
    bytes[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
    chain.seal(&mut bytes, payload.len(), segment, header);
    bytes
}

/// Writes a log with a group in two segments, and the first one's entry whole if both are read.
fn split_group(temporary: &Temporary) -> (Directory, Chain) {
    let directory = Directory::create(&temporary.0).expect("there is room");
    let mut entries = Vec::new();
    append_statement(&mut entries, 7, &"long ".repeat(2_000));
    let (one, other) = entries.split_at(6_000);
    let mut chain = Chain::new(DATABASE);
    for (segment, payload) in [(1, one), (2, other)] {
        let header = BlockHeader {
            epochs: (5, 9),
            goes_on: segment == 1,
            goes_back: segment == 2,
            ..BlockHeader::default()
        };
        let mut bytes = block(&mut chain, segment, payload, header);
        bytes.resize(bytes.len() + 8_192, 0);
        write(&directory, &segment_name(segment), &bytes);
    }
    (directory, chain)
}

fn scan(directory: &Directory, segment: u64) -> Scan {
    let directory = Directory::open(directory.path()).expect("it is there");
    Scan::open(directory, Start::of(DATABASE, segment)).expect("it is there")
}

#[test]
fn a_group_is_read_whole_with_the_places_of_its_blocks() {
    let temporary = Temporary::new("groups-whole");
    let (directory, chain) = split_group(&temporary);
    let mut groups = Groups::new(scan(&directory, 1));
    assert_eq!(groups.advance(), Ok(true));
    let places: Vec<_> = groups
        .blocks()
        .iter()
        .map(|it| (it.segment, it.offset))
        .collect();
    assert_eq!(places, [(1, 0), (2, 0)]);
    let entries = groups.entries().expect("it begins in the log");
    assert_eq!(
        entries
            .map(|entry| entry.expect("it is one").epoch())
            .collect::<Vec<_>>(),
        [7]
    );
    assert_eq!(
        (groups.position().chain, groups.position().epoch),
        (chain, 9)
    );
    assert_eq!(groups.advance(), Ok(false));
}

#[test]
fn a_log_of_which_only_the_end_of_a_group_is_left_goes_on_behind_it() {
    let temporary = Temporary::new("groups-end");
    let (directory, chain) = split_group(&temporary);
    directory
        .remove_file(&segment_name(1))
        .expect("it is there");
    let mut replay = Replay::new(scan(&directory, 2), 0);
    let mut entries = 0;
    while let Some(epoch) = replay
        .next_group(|_| {
            entries += 1;
            Ok(())
        })
        .expect("nothing is damaged")
    {
        assert_eq!(epoch, 9);
    }
    assert_eq!(entries, 0, "the group's beginning is not there");
    let end = replay.end().expect("the disk works");
    let expected = Position {
        chain,
        segment: 2,
        offset: 8_192,
        epoch: 9,
    };
    assert_eq!((end.position, end.cut), (expected, None));
}
