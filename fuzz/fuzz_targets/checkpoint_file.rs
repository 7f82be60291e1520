//! Any file is read as one of a checkpoint, or refused with its path, and nothing panics.
//!
//! The input is the file; or with an odd first byte it is blocks, whose checksums are made right:
//! of each the 24 bytes before the checksums, and as much of a payload as these say.

#![no_main]

use std::cell::LazyCell;

use kiln_durability::checkpoint::Reader;
use kiln_durability::format::DatabaseId;
use kiln_durability::{CheckpointEntry, FileEntry, FileName};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use libfuzzer_sys::fuzz_target;

const DATABASE: DatabaseId = DatabaseId(*b"sixteen bytes...");

thread_local! {
    static PLACE: LazyCell<TemporaryDirectory> = LazyCell::new(|| {
        TemporaryDirectory::new("kiln-fuzz").expect("there is room")
    });
}

fn checksum(pieces: &[&[u8]]) -> u64 {
    let mut digest = crc64fast::Digest::new();
    pieces.iter().for_each(|piece| digest.write(piece));
    digest.sum64()
}

/// The header of the file `catalog` of checkpoint 1.
fn header() -> Vec<u8> {
    let mut header = b"KILNCHKP".to_vec();
    header.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    header.extend(DATABASE.0);
    header.extend(1_u64.to_le_bytes());
    header.extend([0; 8]);
    let sum = checksum(&[&header]);
    header.extend(sum.to_le_bytes());
    header
}

fn sealed(mut rest: &[u8]) -> Vec<u8> {
    let mut file = header();
    let of_file: [u8; 8] = *file.last_chunk().expect("it has a checksum");
    while let Some((fields, after)) = rest.split_first_chunk::<24>() {
        let length = u32::from_le_bytes([fields[4], fields[5], fields[6], fields[7]]);
        let (payload, after) = after.split_at(after.len().min(length as usize));
        let of_payload = checksum(&[payload]).to_le_bytes();
        file.extend_from_slice(fields);
        file.extend_from_slice(&of_payload);
        let sum = checksum(&[&of_file, fields, &of_payload]);
        file.extend_from_slice(&sum.to_le_bytes());
        file.extend_from_slice(payload);
        rest = after;
    }
    file
}

fuzz_target!(|bytes: &[u8]| {
    let file = match bytes.split_first() {
        Some((kind, blocks)) if kind % 2 == 1 => sealed(blocks),
        Some((_, file)) => file.to_vec(),
        None => return,
    };
    PLACE.with(|place| {
        let root = Directory::open(place.path()).expect("it is there");
        let directory = root
            .create_subdirectory("00000000000000000001")
            .expect("there is room");
        let target = directory.open_file_to_write("catalog");
        let target = target
            .or_else(|_| directory.create_file("catalog"))
            .expect("there is room");
        target
            .set_len(0)
            .and_then(|()| target.write_at(0, &file))
            .expect("there is room");
        let entry = CheckpointEntry {
            number: 1,
            start_epoch: 1,
            end_epoch: 1,
            segment: 1,
            catalog: 1,
            written_us: 0,
            rows: 0,
            files: vec![FileEntry {
                name: FileName::Catalog,
                bytes: file.len() as u64,
                checksum: checksum(&[&file]),
            }],
        };
        let reader = Reader::open(&root, DATABASE, entry).expect("the directory is there");
        match reader.catalog() {
            Ok(text) => assert!(text.len() < file.len()),
            Err(error) => assert!(error.message().contains("catalog"), "{error}"),
        }
    });
});
