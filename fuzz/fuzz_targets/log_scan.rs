//! Any segments are read as a log, or refused as damaged, and nothing panics.
//!
//! The input is two segments; or with an odd first byte it is the payloads of blocks, whose
//! checksums are right.

#![no_main]

use std::cell::LazyCell;

use kiln_durability::format::block::{HEADER_BYTES, bytes_of};
use kiln_durability::format::entry::{self, Entry};
use kiln_durability::format::{BlockHeader, Chain, DatabaseId, segment_name};
use kiln_durability::recovery::{Replay, Scan, Start};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use libfuzzer_sys::fuzz_target;

const DATABASE: DatabaseId = DatabaseId(*b"sixteen bytes...");

thread_local! {
    static PLACE: LazyCell<TemporaryDirectory> = LazyCell::new(|| {
        TemporaryDirectory::new("kiln-fuzz").expect("there is room")
    });
}

/// Blocks with these payloads, which end with a zero each. The first byte of each has what its
/// header says.
fn sealed(payloads: &[u8]) -> Vec<u8> {
    let (mut segment, mut chain) = (Vec::new(), Chain::new(DATABASE));
    for payload in payloads.split_inclusive(|byte| *byte == 0) {
        let (says, payload) = payload.split_first().expect("a piece has its end at least");
        let mut block = vec![0; bytes_of(payload.len())];
        block[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
        let header = BlockHeader {
            epochs: (u64::from(says >> 4), u64::from(says >> 3)),
            goes_on: says & 1 != 0,
            goes_back: says & 2 != 0,
            durable_through: u64::from(says >> 2),
            ..BlockHeader::default()
        };
        chain.seal(&mut block, payload.len(), 1, header);
        segment.extend(block);
    }
    segment
}

fuzz_target!(|bytes: &[u8]| {
    let segments = match bytes.split_first() {
        Some((kind, payloads)) if kind % 2 == 1 => [sealed(payloads), Vec::new()],
        Some((_, bytes)) => {
            let (one, other) = bytes.split_at(bytes.len() / 2 / 4096 * 4096);
            [one.to_vec(), other.to_vec()]
        }
        None => return,
    };
    PLACE.with(|place| {
        let directory = Directory::open(place.path()).expect("it is there");
        for (number, bytes) in (1..).zip(&segments) {
            let name = segment_name(number);
            let file = directory.open_file_to_write(&name);
            let file = file
                .or_else(|_| directory.create_file(&name))
                .expect("there is room");
            let written = file.set_len(0).and_then(|()| file.write_at(0, bytes));
            written.expect("there is room");
        }
        let start = Start::of(DATABASE, 1);
        let Ok(scan) = Scan::open(directory, start) else {
            return;
        };
        let mut replay = Replay::new(scan, 0);
        let mut entries = 0_usize;
        let mut each = |entry: &Entry<'_>| {
            entries += 1;
            if let Entry::Block { parts, .. } = entry {
                entries += entry::parts(parts).flatten().count();
            }
            Ok(())
        };
        while let Ok(Some(_)) = replay.next_group(&mut each) {}
        assert!(entries <= bytes.len());
    });
});
