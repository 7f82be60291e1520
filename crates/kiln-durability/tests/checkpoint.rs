//! Files of checkpoints: what is read is what was written, or an error that says where it is not.

#![cfg(not(kiln_sim))]

mod common;

use common::{Temporary, read, write};
use kiln_durability::checkpoint::{
    BLOCK_BYTES_MAX, Reader, RowsReader, RowsWriter, Writer, Written,
};
use kiln_durability::format::DatabaseId;
use kiln_durability::{CheckpointEntry, FileEntry, FileName};
use kiln_platform::disk::Directory;
use kiln_platform::random::Random;
use kiln_platform::thread;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::TableId;

const DATABASE: DatabaseId = DatabaseId(*b"sixteen bytes...");
const CATALOG: &str = "catalog 1 version 3 next 2\nend\n";

fn table(table: u32, part: u32) -> FileName {
    FileName::Table {
        table: TableId(table),
        part,
    }
}

/// The bytes of a row, which tell it from others.
fn row(number: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (number * 37 + at * 11) as u8)
        .collect()
}

fn entry(number: u64, written: Written) -> CheckpointEntry {
    CheckpointEntry {
        number,
        start_epoch: 1,
        end_epoch: 2,
        segment: 1,
        catalog: 3,
        written_us: 4,
        rows: written.rows,
        files: written.files,
    }
}

/// A checkpoint with small files: the rows of each table by the table's number.
fn small(checkpoints: &Directory, database: DatabaseId, number: u64) -> CheckpointEntry {
    let writer = Writer::create(checkpoints, database, number).expect("it is new");
    writer.catalog(CATALOG, |_| ()).expect("there is room");
    for id in [1, 2] {
        let mut file = writer.table(TableId(id), 0, |_| ()).expect("it is new");
        for row in rows_of_small(id) {
            file.row(&row).expect("there is room");
        }
        file.finish().expect("the disk works");
    }
    entry(number, writer.finish().expect("it is complete"))
}

fn rows_of_small(table: u32) -> Vec<Vec<u8>> {
    (0..4)
        .map(|number| row(table as usize + number, number * 9))
        .collect()
}

/// The rows of a file up to its end or its first fault.
fn rows_of(
    checkpoints: &Directory,
    entry: &CheckpointEntry,
    name: FileName,
) -> (Vec<Vec<u8>>, Result<()>) {
    let mut found = Vec::new();
    let mut read = || {
        let reader = Reader::open(checkpoints, DATABASE, entry.clone())?;
        let FileName::Table { table, part } = name else {
            found.push(reader.catalog()?.into_bytes());
            return Ok(());
        };
        let mut file = reader.table(table, part)?;
        while let Some(rows) = file.next_block()? {
            found.extend(rows.map(<[u8]>::to_vec));
        }
        // After the end there is no more.
        assert!(file.next_block()?.is_none());
        Ok(())
    };
    let ended = read();
    (found, ended)
}

/// What a fault does: the file is refused, and the rows before the fault are the right ones.
/// Returns the error.
fn refused(
    checkpoints: &Directory,
    entry: &CheckpointEntry,
    name: FileName,
    expected: &[Vec<u8>],
    context: &str,
) -> Error {
    let (rows, ended) = rows_of(checkpoints, entry, name);
    let error = ended.expect_err(context);
    assert!(expected.starts_with(&rows), "{context}: {rows:?}");
    let shown = name.to_string();
    assert!(error.message().contains(&shown), "{context}: {error}");
    error
}

/// The entry with the present bytes of a file, so that only what is in the file can tell that they
/// are wrong.
fn with_present(
    checkpoints: &Directory,
    entry: &CheckpointEntry,
    name: FileName,
) -> CheckpointEntry {
    let mut entry = entry.clone();
    let directory = directory_of(checkpoints, entry.number);
    let bytes = read(&directory, &name.to_string());
    for file in &mut entry.files {
        if file.name == name {
            *file = FileEntry {
                name,
                bytes: bytes.len() as u64,
                checksum: checksum(&bytes),
            };
        }
    }
    entry
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut digest = crc64fast::Digest::new();
    digest.write(bytes);
    digest.sum64()
}

fn directory_of(checkpoints: &Directory, number: u64) -> Directory {
    let directory = checkpoints.subdirectory(&format!("{number:020}"));
    directory.expect("it was written")
}

const _: () = {
    const fn goes_to_other_threads<T: Send>() {}
    goes_to_other_threads::<RowsReader>();
    goes_to_other_threads::<RowsWriter<'_, fn(u64)>>();
    goes_to_other_threads::<&Reader>();
    goes_to_other_threads::<&Writer>();
};

#[test]
fn rows_are_read_as_they_were_written() {
    let temporary = Temporary::new("rows");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let full = BLOCK_BYTES_MAX - 4;
    let lengths: [Vec<usize>; 5] = [
        vec![],
        vec![0],
        vec![full, full, 1, full - 5, 0, 0],
        vec![3, 3 * BLOCK_BYTES_MAX, 5, full + 1],
        (0..60_000).map(|number| number % 97).collect(),
    ];
    let files: Vec<Vec<Vec<u8>>> = lengths
        .iter()
        .map(|lengths| {
            let rows = lengths.iter().enumerate();
            rows.map(|(number, length)| row(number, *length)).collect()
        })
        .collect();
    let writer = Writer::create(&checkpoints, DATABASE, 7).expect("it is new");
    let mut paced = 0;
    writer
        .catalog(CATALOG, |bytes| paced += bytes)
        .expect("there is room");
    let write_file = |part: usize| {
        let mut paced = 0;
        let pace = |bytes| paced += bytes;
        let mut file = writer.table(TableId(9), part as u32, pace)?;
        for row in &files[part] {
            file.row(row)?;
        }
        file.finish()?;
        Ok::<u64, Error>(paced)
    };
    thread::scope(|scope| {
        let handles: Vec<_> = (0..files.len())
            .map(|part| scope.spawn(move || write_file(part)))
            .collect();
        for handle in handles {
            paced += handle.join().expect("no panic").expect("there is room");
        }
    });
    let entry = entry(7, writer.finish().expect("all files are finished"));
    let rows: usize = lengths.iter().map(Vec::len).sum();
    let bytes: u64 = entry.files.iter().map(|file| file.bytes).sum();
    assert_eq!((entry.rows, paced), (rows as u64, bytes));
    let reader = Reader::open(&checkpoints, DATABASE, entry.clone()).expect("it is there");
    assert_eq!(reader.catalog().as_deref(), Ok(CATALOG));
    let tables: Vec<_> = reader.tables().collect();
    let expected: Vec<_> = (0..5).map(|part| (TableId(9), part)).collect();
    assert_eq!(tables, expected);
    for (part, expected) in files.iter().enumerate() {
        let (rows, ended) = rows_of(&checkpoints, &entry, table(9, part as u32));
        ended.expect("it is whole");
        assert!(rows == *expected, "part {part}");
    }
}

/// The form on disk: a change of this test is a change of it.
#[test]
fn the_bytes_are_these() {
    // The check value of CRC-64/XZ.
    assert_eq!(checksum(b"123456789"), 0x995d_c9bb_df19_39fa);
    let temporary = Temporary::new("these");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let writer = Writer::create(&checkpoints, DATABASE, 0x0102).expect("it is new");
    writer.catalog("text", |_| ()).expect("there is room");
    let mut file = writer.table(TableId(3), 4, |_| ()).expect("it is new");
    file.row(b"abc").expect("there is room");
    file.row(b"").expect("there is room");
    file.finish().expect("the disk works");
    writer.finish().expect("it is complete");
    let sealed = |before: &[u8], bytes: Vec<u8>| {
        let sum = checksum(&[before, &bytes].concat()).to_le_bytes();
        [&bytes[..], &sum].concat()
    };
    let file = |kind: u8, table: u8, part: u8, rows: u8, payload: &[u8]| {
        let header = [
            &b"KILNCHKP\x01\0\0\0"[..],
            &[kind, 0, 0, 0],
            b"sixteen bytes...",
            &[2, 1, 0, 0, 0, 0, 0, 0],
            &[table, 0, 0, 0, part, 0, 0, 0],
        ];
        let header = sealed(b"", header.concat());
        let of_file = &header[48..];
        let block = |kind: &[u8; 4], number: u8, payload: &[u8]| {
            let head = [
                &kind[..],
                &[payload.len() as u8, 0, 0, 0],
                &[number, 0, 0, 0, 0, 0, 0, 0],
                &[rows, 0, 0, 0, 0, 0, 0, 0],
                &checksum(payload).to_le_bytes(),
            ];
            [&sealed(of_file, head.concat()), payload].concat()
        };
        [
            header.clone(),
            block(b"ROWS", 1, payload),
            block(b"LAST", 2, b""),
        ]
        .concat()
    };
    let directory = directory_of(&checkpoints, 0x0102);
    let catalog = file(1, 0, 0, 1, b"\x04\0\0\0text");
    assert_eq!(read(&directory, "catalog"), catalog);
    let rows = file(2, 3, 4, 2, b"\x03\0\0\0abc\0\0\0\0");
    assert_eq!(read(&directory, "table-3-4"), rows);
}

#[test]
fn every_bit_of_a_file_counts() {
    let temporary = Temporary::new("bits");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let whole = small(&checkpoints, DATABASE, 1);
    let directory = directory_of(&checkpoints, 1);
    let files = [
        (FileName::Catalog, vec![CATALOG.as_bytes().to_vec()]),
        (table(1, 0), rows_of_small(1)),
    ];
    for (name, expected) in files {
        let file = directory.open_file_to_write(&name.to_string());
        let file = file.expect("it was written");
        let mut bytes = read(&directory, &name.to_string());
        println!("{name}: {} bytes", bytes.len());
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            file.write_at(0, &bytes).expect("there is room");
            for entry in [&whole, &with_present(&checkpoints, &whole, name)] {
                let context = format!("{name}, bit {bit}");
                let error = refused(&checkpoints, entry, name, &expected, &context);
                assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{error}");
                let in_block = bit / 8 >= 56;
                assert_eq!(
                    error.message().contains("block"),
                    in_block,
                    "{bit}: {error}"
                );
                assert_eq!(
                    error.message().contains("offset"),
                    in_block,
                    "{bit}: {error}"
                );
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        file.write_at(0, &bytes).expect("there is room");
        let (rows, ended) = rows_of(&checkpoints, &whole, name);
        assert_eq!((rows, ended), (expected, Ok(())));
    }
}

#[test]
fn a_file_that_was_cut_off_or_goes_on_is_refused() {
    let temporary = Temporary::new("cut");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let writer = Writer::create(&checkpoints, DATABASE, 1).expect("it is new");
    writer.catalog(CATALOG, |_| ()).expect("there is room");
    let mut file = writer.table(TableId(1), 0, |_| ()).expect("it is new");
    // Three blocks.
    let rows = [row(1, 100), row(2, BLOCK_BYTES_MAX), row(3, 5)];
    for row in &rows {
        file.row(row).expect("there is room");
    }
    file.finish().expect("the disk works");
    let whole = entry(1, writer.finish().expect("it is complete"));
    let directory = directory_of(&checkpoints, 1);
    for name in [FileName::Catalog, table(1, 0)] {
        let expected = match name {
            FileName::Catalog => &[CATALOG.as_bytes().to_vec()][..],
            FileName::Table { .. } => &rows,
        };
        let shown = name.to_string();
        let file = directory.open_file_to_write(&shown).expect("it is there");
        let bytes = read(&directory, &shown);
        let ends = (1..6).map(|bytes_off| bytes.len() - bytes_off);
        // The middle of the long row is all alike.
        let lengths = (0..bytes.len()).step_by(64);
        let lengths = lengths.filter(|at| *at < 2_000 || *at > bytes.len() - 2_000);
        for length in lengths.chain(ends) {
            file.set_len(length as u64).expect("it gets shorter");
            for entry in [&whole, &with_present(&checkpoints, &whole, name)] {
                let context = format!("{name}, {length} bytes");
                let error = refused(&checkpoints, entry, name, expected, &context);
                assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
            }
            // What was cut off is zeros, as of a file whose length alone got to the disk.
            file.set_len(bytes.len() as u64).expect("there is room");
            let entry = with_present(&checkpoints, &whole, name);
            refused(&checkpoints, &entry, name, expected, "zeros");
            file.write_at(0, &bytes).expect("there is room");
        }
        file.write_at(bytes.len() as u64, &[0])
            .expect("there is room");
        refused(&checkpoints, &whole, name, expected, "a byte more");
        let entry = with_present(&checkpoints, &whole, name);
        let error = refused(&checkpoints, &entry, name, expected, "a byte more");
        let said = "bytes follow the last block";
        assert!(error.message().contains(said), "{error}");
    }
    // Before memory is asked for: the long row.
    let file = directory.open_file_to_write("table-1-0");
    let file = file.expect("it is there");
    file.set_len(BLOCK_BYTES_MAX as u64 / 2)
        .expect("it gets shorter");
    let entry = with_present(&checkpoints, &whole, table(1, 0));
    let error = refused(&checkpoints, &entry, table(1, 0), &rows, "half of it");
    assert!(error.message().contains("bytes are cut off"), "{error}");
}

#[test]
fn a_file_in_the_place_of_another_one_is_refused() {
    let temporary = Temporary::new("swapped");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let [first, _, _] = [1, 2, 3].map(|number| {
        let database = if number == 3 {
            DatabaseId([3; 16])
        } else {
            DATABASE
        };
        small(&checkpoints, database, number)
    });
    let directories = [1, 2, 3].map(|number| directory_of(&checkpoints, number));
    let name = table(1, 0);
    let whole = read(&directories[0], "table-1-0");
    let others = [
        ("table 2", read(&directories[0], "table-2-0")),
        ("a catalog", read(&directories[0], "catalog")),
        ("checkpoint 2", read(&directories[1], "table-1-0")),
        ("another database", read(&directories[2], "table-1-0")),
    ];
    for (said, other) in others {
        write(&directories[0], "table-1-0", &other);
        let entry = with_present(&checkpoints, &first, name);
        let error = refused(&checkpoints, &entry, name, &[], said);
        assert!(error.message().contains(said), "{error}");
        // Its blocks after the right header.
        let mixed = [&whole[..56], &other[56..]].concat();
        write(&directories[0], "table-1-0", &mixed);
        let entry = with_present(&checkpoints, &first, name);
        let error = refused(&checkpoints, &entry, name, &[], said);
        assert!(error.message().contains("block 1 at offset 56"), "{error}");
    }
    // Another attempt at the same checkpoint has written other rows: the manifest knows.
    directories[0]
        .remove_file("table-1-0")
        .expect("it is there");
    let again = Writer::create(&checkpoints, DATABASE, 1).expect("it can be opened");
    let mut file = again.table(TableId(1), 0, |_| ()).expect("it is new");
    for mut row in rows_of_small(1) {
        row.reverse();
        file.row(&row).expect("there is room");
    }
    file.finish().expect("the disk works");
    let (_, ended) = rows_of(&checkpoints, &first, name);
    let error = ended.expect_err("another attempt");
    assert!(error.message().contains("in the manifest"), "{error}");
}

#[test]
fn blocks_that_are_missing_repeated_or_out_of_order_are_found() {
    let temporary = Temporary::new("blocks");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let writer = Writer::create(&checkpoints, DATABASE, 1).expect("it is new");
    writer.catalog(CATALOG, |_| ()).expect("there is room");
    let mut file = writer.table(TableId(1), 0, |_| ()).expect("it is new");
    let rows: Vec<_> = (0..3).map(|number| row(number, BLOCK_BYTES_MAX)).collect();
    for row in &rows {
        file.row(row).expect("there is room");
    }
    file.finish().expect("the disk works");
    let whole = entry(1, writer.finish().expect("it is complete"));
    let directory = directory_of(&checkpoints, 1);
    let bytes = read(&directory, "table-1-0");
    let block = 40 + 4 + BLOCK_BYTES_MAX;
    let blocks: Vec<&[u8]> = bytes[56..].chunks(block).collect();
    assert_eq!(blocks.len(), 4);
    for order in [
        &[0, 1, 3][..],
        &[1, 0, 2, 3],
        &[0, 0, 1, 2, 3],
        &[0, 1, 2],
        &[0, 1, 2, 3, 3],
        &[3],
        &[3, 0, 1, 2],
        &[],
    ] {
        let changed: Vec<&[u8]> = order.iter().map(|at| blocks[*at]).collect();
        write(
            &directory,
            "table-1-0",
            &[&bytes[..56], &changed.concat()].concat(),
        );
        let entry = with_present(&checkpoints, &whole, table(1, 0));
        let context = format!("{order:?}");
        let error = refused(&checkpoints, &entry, table(1, 0), &rows, &context);
        println!("{order:?}: {error}");
    }
    // A last block that is right by itself, and counts other rows.
    let mut last = blocks[3].to_vec();
    last[16] += 1;
    let sum = checksum(&[&bytes[48..56], &last[..32]].concat());
    last[32..40].copy_from_slice(&sum.to_le_bytes());
    let head = &bytes[..bytes.len() - 40];
    write(&directory, "table-1-0", &[head, &last].concat());
    let entry = with_present(&checkpoints, &whole, table(1, 0));
    let error = refused(&checkpoints, &entry, table(1, 0), &rows, "other rows");
    assert!(error.message().contains("3 of 4 rows"), "{error}");
}

#[test]
fn what_is_missing_or_newer_says_so() {
    let temporary = Temporary::new("missing");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let whole = small(&checkpoints, DATABASE, 1);
    let directory = directory_of(&checkpoints, 1);
    let mut bytes = read(&directory, "table-1-0");
    bytes[8] = 2;
    let sum = checksum(&bytes[..48]);
    bytes[48..56].copy_from_slice(&sum.to_le_bytes());
    write(&directory, "table-1-0", &bytes);
    let error = refused(&checkpoints, &whole, table(1, 0), &[], "newer");
    assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
    assert!(error.message().contains("format 2"), "{error}");
    let error = refused(&checkpoints, &whole, table(1, 1), &[], "not named");
    assert!(error.message().contains("does not name it"), "{error}");
    directory.remove_file("table-1-0").expect("it is there");
    let error = refused(&checkpoints, &whole, table(1, 0), &[], "removed");
    assert!(error.message().contains("is missing"), "{error}");
    let mut other = whole.clone();
    other.number = 9;
    let error = Reader::open(&checkpoints, DATABASE, other).expect_err("there is none");
    assert!(error.message().contains("00000000000000000009 is missing"));
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
}

#[test]
fn a_checkpoint_without_all_its_files_is_not_complete() {
    let temporary = Temporary::new("incomplete");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let writer = Writer::create(&checkpoints, DATABASE, 1).expect("it is new");
    let error = writer.finish().expect_err("there is no catalog");
    assert_eq!(error.state(), SqlState::INTERNAL_ERROR);
    let writer = Writer::create(&checkpoints, DATABASE, 1).expect("nothing is in the way");
    writer.catalog(CATALOG, |_| ()).expect("there is room");
    let mut file = writer.table(TableId(1), 0, |_| ()).expect("it is new");
    file.row(b"lost").expect("there is room");
    drop(file);
    let error = writer.finish().expect_err("a file is not finished");
    assert!(error.message().contains("1 of 2 files"), "{error}");
    // What it left is not written over: a manifest could name it.
    let again = Writer::create(&checkpoints, DATABASE, 1).expect("it can be opened");
    let error = again.catalog(CATALOG, |_| ()).expect_err("it is there");
    assert!(error.message().contains("catalog"), "{error}");
}

#[test]
fn mutations_are_found_and_never_panic() {
    let temporary = Temporary::new("mutations");
    let checkpoints = Directory::create(&temporary.0).expect("it is new");
    let whole = small(&checkpoints, DATABASE, 1);
    let directory = directory_of(&checkpoints, 1);
    let (name, expected) = (table(1, 0), rows_of_small(1));
    let bytes = read(&directory, "table-1-0");
    for seed in 0..3_000 {
        let mut random = Random::from_seed(seed);
        let mut changed = bytes.clone();
        for _ in 0..random.between(1, 5) {
            let at = random.below(changed.len());
            match random.below(4) {
                0 => changed[at] = random.next_u64() as u8,
                1 => changed.insert(at, random.next_u64() as u8),
                2 => _ = changed.remove(at),
                _ => changed[at..].fill(random.next_u64() as u8),
            }
            if random.percent(50.0) && changed.len() >= 96 {
                // A block's header that says something else, with the right checksum.
                let sum = checksum(&[&changed[48..56], &changed[56..88]].concat());
                changed[88..96].copy_from_slice(&sum.to_le_bytes());
            }
        }
        if changed != bytes {
            write(&directory, "table-1-0", &changed);
            let entry = with_present(&checkpoints, &whole, name);
            let context = format!("seed {seed}");
            refused(&checkpoints, &entry, name, &expected, &context);
        }
    }
}
