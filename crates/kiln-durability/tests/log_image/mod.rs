//! Logs made by hand, block by block, for the tests of what reads them.

#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeMap;
use std::path::Path;

use kiln_durability::format::block::{self, ALIGNMENT, HEADER_BYTES};
use kiln_durability::format::entry::{self, Entry};
use kiln_durability::format::{BlockHeader, Chain, DatabaseId, segment_name};
use kiln_durability::log::Position;
use kiln_durability::recovery::{End, Replay, Scan, Start};
use kiln_platform::disk::{Directory, File, TemporaryDirectory};
use kiln_storage::error::Result;

pub const DATABASE: DatabaseId = DatabaseId(*b"tests of reading");

/// The segments of a log, in memory.
#[derive(Clone)]
pub struct LogImage {
    pub segments: BTreeMap<u64, Vec<u8>>,
    pub segment_bytes: usize,
    pub position: Position,
    /// The last block of the last whole group.
    pub covered: u64,
    pub blocks: Vec<Placed>,
}

/// A block of an image.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub segment: u64,
    pub offset: usize,
    pub bytes: usize,
    pub header: BlockHeader,
}

impl LogImage {
    pub fn new(segment_bytes: usize) -> LogImage {
        LogImage {
            segments: BTreeMap::from([(1, vec![0; segment_bytes])]),
            segment_bytes,
            position: Position::start(DATABASE),
            covered: 0,
            blocks: Vec::new(),
        }
    }

    /// What a log is that goes on after a recovery, in the segments that are there.
    pub fn go_on(&mut self, position: Position) {
        self.position = position;
        self.covered = position.chain.last;
        self.blocks
            .retain(|it| it.header.number <= position.chain.last);
    }

    /// Appends a group with one entry, whose key is its first log epoch, in blocks with payloads of
    /// at most `payload_max` bytes.
    pub fn group(&mut self, answer_bytes: usize, payload_max: usize) -> u64 {
        let epoch = self.position.epoch + 1;
        self.blocks_of(&payload(epoch, answer_bytes), payload_max);
        epoch
    }

    /// Appends a block without entries.
    pub fn cover(&mut self) {
        self.position.epoch -= 1;
        self.blocks_of(&[], 1);
    }

    fn blocks_of(&mut self, payload: &[u8], payload_max: usize) {
        self.position.epoch += 1;
        let mut rest = payload;
        loop {
            let mut room = self.segment_bytes - self.position.offset as usize;
            if room < ALIGNMENT {
                self.position.segment += 1;
                self.position.offset = 0;
                let bytes = self.segment_bytes;
                let segment = self.segments.entry(self.position.segment);
                segment.or_insert_with(|| vec![0; bytes]);
                room = bytes;
            }
            let length = rest.len().min(payload_max).min(room - HEADER_BYTES);
            let (now, later) = rest.split_at(length);
            rest = later;
            self.block(
                now,
                (!rest.is_empty(), later.len() + now.len() < payload.len()),
            );
            if rest.is_empty() {
                break;
            }
        }
        self.covered = self.position.chain.last;
    }

    fn block(&mut self, payload: &[u8], (goes_on, goes_back): (bool, bool)) {
        let mut bytes = vec![0; block::bytes_of(payload.len())];
        bytes[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
        let header = BlockHeader {
            epochs: (self.position.epoch, self.position.epoch),
            goes_on,
            goes_back,
            durable_through: self.covered,
            written_us: 1,
            ..BlockHeader::default()
        };
        let (segment, offset) = (self.position.segment, self.position.offset as usize);
        let chain = &mut self.position.chain;
        let header = chain.seal(&mut bytes, payload.len(), segment, header);
        let target = self.segments.get_mut(&segment).expect("it was made");
        target[offset..offset + bytes.len()].copy_from_slice(&bytes);
        self.position.offset += bytes.len() as u64;
        self.blocks.push(Placed {
            segment,
            offset,
            bytes: bytes.len(),
            header,
        });
    }

    /// The block at a place, if there is one.
    pub fn block_at(&self, segment: u64, at: usize) -> Option<Placed> {
        let mut blocks = self.blocks.iter();
        let found = blocks
            .find(|it| it.segment == segment && (it.offset..it.offset + it.bytes).contains(&at));
        found.copied()
    }

    /// The log epoch of the last whole group before a block.
    pub fn epoch_before(&self, block: &BlockHeader) -> u64 {
        let before = self.blocks.iter().map(|it| it.header);
        let before = before.filter(|it| it.number < block.number && !it.goes_on);
        before.map(|it| it.epochs.1).max().unwrap_or_default()
    }

    /// Whether a later block says that this one was on disk.
    pub fn is_promised(&self, block: u64) -> bool {
        let mut later = self.blocks.iter();
        later.any(|it| it.header.durable_through >= block)
    }

    /// A directory that has these segments.
    pub fn write(&self) -> Written {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let place = TemporaryDirectory::within(parent, "kiln-scan");
        let written = Written(place.expect("the test may write there"));
        for (number, bytes) in &self.segments {
            written.put(*number, bytes);
        }
        written
    }
}

/// A group's payload: an outcome whose key is the log epoch.
fn payload(epoch: u64, answer_bytes: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    let answer = vec![epoch as u8; answer_bytes];
    entry::append_outcome(&mut payload, epoch, &epoch.to_le_bytes(), &answer);
    payload
}

/// A log on disk.
pub struct Written(TemporaryDirectory);

impl Written {
    pub fn directory(&self) -> Directory {
        Directory::open(self.0.path()).expect("it is there")
    }

    pub fn open(&self, number: u64) -> File {
        let file = self.directory().open_file_to_write(&segment_name(number));
        file.expect("it is there")
    }

    /// Makes a segment, or replaces its content.
    pub fn put(&self, number: u64, bytes: &[u8]) {
        let directory = self.directory();
        let file = match directory.create_file(&segment_name(number)) {
            Ok(file) => file,
            Err(_) => self.open(number),
        };
        let put = file.set_len(0).and_then(|()| file.write_at(0, bytes));
        put.expect("there is room");
    }

    pub fn remove(&self, number: u64) {
        let removed = self.directory().remove_file(&segment_name(number));
        removed.expect("it is there");
    }

    /// The log epochs of the groups that are replayed, and where the log ends.
    pub fn replay(&self) -> Result<(Vec<u64>, End)> {
        self.replay_from(Start {
            database: DATABASE,
            segment: 1,
            chain: Some(Chain::new(DATABASE)),
        })
    }

    pub fn replay_from(&self, start: Start) -> Result<(Vec<u64>, End)> {
        let mut replay = Replay::new(Scan::open(self.directory(), start)?, 0);
        let mut epochs = Vec::new();
        let each = |epochs: &mut Vec<u64>, entry: &Entry<'_>| match entry {
            Entry::Outcome {
                epoch, key, answer, ..
            } => {
                assert_eq!(*key, epoch.to_le_bytes(), "the entry is what was written");
                assert!(answer.iter().all(|byte| *byte == *epoch as u8));
                epochs.push(*epoch);
            }
            other => panic!("{other:?} was never written"),
        };
        while replay
            .next_group(|entry| {
                each(&mut epochs, entry);
                Ok(())
            })?
            .is_some()
        {}
        Ok((epochs, replay.end()?))
    }
}
