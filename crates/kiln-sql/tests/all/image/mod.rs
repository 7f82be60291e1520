//! Data directories in memory: the bytes of their files, and the blocks of their logs.

#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kiln_durability::Manifest;
use kiln_durability::checkpoint::{Reader, Writer};
use kiln_durability::format::block::HEADER_BYTES;
use kiln_durability::format::{BlockHeader, Chain, block, segment_number};
use kiln_platform::disk::{Directory, File};

/// All files of a data directory but its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// By their paths in the directory.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

/// A block of the log, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub segment: u64,
    pub offset: usize,
    /// Bytes of the file that it takes.
    pub bytes: usize,
    pub payload_bytes: usize,
    pub header: BlockHeader,
}

impl Placed {
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.bytes
    }
}

impl Image {
    /// What is in the directory at `path`.
    pub fn of(path: &Path) -> Image {
        let mut files = BTreeMap::new();
        read_all(path, Path::new(""), &mut files);
        files.remove(Path::new("LOCK"));
        Image { files }
    }

    /// Makes the directory at `path` have these files and no others. What is right already is not
    /// written.
    pub fn put(&self, path: &Path) {
        for part in ["log", "checkpoints"] {
            Directory::create(&path.join(part)).expect("the test may write there");
        }
        let mut found = BTreeMap::new();
        read_all(path, Path::new(""), &mut found);
        for name in found.keys() {
            if !self.files.contains_key(name) && name != Path::new("LOCK") {
                remove(&path.join(name));
            }
        }
        for (name, bytes) in &self.files {
            if found.get(name) != Some(bytes) {
                write(&path.join(name), bytes);
            }
        }
    }

    pub fn manifest(&self) -> Manifest {
        let bytes = &self.files[Path::new("MANIFEST")];
        Manifest::read(bytes, Path::new("MANIFEST")).expect("it is whole")
    }

    /// The segments of the log by their numbers.
    pub fn segments(&self) -> BTreeMap<u64, &Vec<u8>> {
        let numbered = self.files.iter().filter_map(|(path, bytes)| {
            let name = path.strip_prefix("log").ok()?.to_str()?;
            Some((segment_number(name)?, bytes))
        });
        numbered.collect()
    }

    /// The blocks of the log from the manifest's first segment on; the log is whole.
    pub fn blocks(&self) -> Vec<Placed> {
        let manifest = self.manifest();
        let mut blocks: Vec<Placed> = Vec::new();
        for (segment, bytes) in self.segments().range(manifest.first_segment..) {
            let mut offset = 0;
            while offset < bytes.len()
                && let Ok(read) = block::read(&bytes[offset..], manifest.database, *segment)
                && blocks
                    .last()
                    .is_none_or(|it| it.header.number + 1 == read.header.number)
            {
                blocks.push(Placed {
                    segment: *segment,
                    offset,
                    bytes: read.bytes(),
                    payload_bytes: read.payload.len(),
                    header: read.header,
                });
                offset += read.bytes();
            }
        }
        blocks
    }
}

impl Image {
    /// The same with other payloads of the log, in blocks as if they had been written so: they have
    /// as many pages as before. The first block has the number after `before`, if that is said.
    pub fn with_blocks(
        &self,
        before: Option<u64>,
        mut change: impl FnMut(usize, &mut BlockHeader, &mut Vec<u8>),
    ) -> Image {
        let (mut image, mut chain) = (self.clone(), None);
        let database = self.manifest().database;
        for (at, placed) in self.blocks().iter().enumerate() {
            let segment = image.files.get_mut(&segment_path(placed.segment));
            let target = &mut segment.expect("it is there")[placed.range()];
            let read = block::read(target, database, placed.segment).expect("it is whole");
            let chain = chain.get_or_insert(Chain {
                database,
                last: before.unwrap_or(read.header.number - 1),
                checksum: read.before,
            });
            let (mut header, mut payload) = (placed.header, read.payload.to_vec());
            change(at, &mut header, &mut payload);
            target[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(&payload);
            chain.seal(target, payload.len(), placed.segment, header);
        }
        image
    }

    /// The same with another catalog and other rows in the newest checkpoint, as if they had been
    /// written so. Uses the directory at `path`, and leaves it with what is returned.
    pub fn with_rows(
        &self,
        path: &Path,
        change_catalog: impl FnOnce(String) -> String,
        mut change_row: impl FnMut(&mut Vec<u8>),
    ) -> Image {
        self.put(path);
        let mut manifest = self.manifest();
        let checkpoints = Directory::open(&path.join("checkpoints")).expect("it is there");
        let entry = manifest
            .checkpoints
            .last_mut()
            .expect("it has a checkpoint");
        let reader = Reader::open(&checkpoints, manifest.database, entry.clone());
        let reader = reader.expect("it is whole");
        let catalog = change_catalog(reader.catalog().expect("it is whole"));
        let mut tables = Vec::new();
        for (table, part) in reader.tables() {
            let mut rows = Vec::new();
            let mut file = reader.table(table, part).expect("it is whole");
            while let Some(block) = file.next_block().expect("it is whole") {
                rows.extend(block.map(<[u8]>::to_vec));
            }
            rows.iter_mut().for_each(&mut change_row);
            tables.push((table, part, rows));
        }
        let directory = checkpoints.path().join(format!("{:020}", entry.number));
        for file in &entry.files {
            remove(&directory.join(file.name.to_string()));
        }
        let writer = Writer::create(&checkpoints, manifest.database, entry.number);
        let writer = writer.expect("there is room");
        writer.catalog(&catalog, |_| ()).expect("there is room");
        for (table, part, rows) in tables {
            let mut file = writer.table(table, part, |_| ()).expect("there is room");
            for row in rows {
                file.row(&row).expect("there is room");
            }
            file.finish().expect("there is room");
        }
        entry.files = writer.finish().expect("there is room").files;
        let bytes = manifest.to_bytes().expect("it can be");
        write(&path.join("MANIFEST"), &bytes);
        Image::of(path)
    }
}

pub fn segment_path(number: u64) -> PathBuf {
    Path::new("log").join(kiln_durability::format::segment_name(number))
}

fn read_all(root: &Path, below: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let directory = Directory::open(&root.join(below)).expect("it is there");
    for entry in directory.list().expect("it can be read") {
        let name = below.join(&entry.name);
        if entry.is_directory {
            read_all(root, &name, files);
            continue;
        }
        let file = directory.open_file(&entry.name).expect("it is there");
        let mut bytes = vec![0; entry.bytes as usize];
        assert_eq!(file.read_at(0, &mut bytes), Ok(bytes.len()));
        files.insert(name, bytes);
    }
}

/// The directory of a file, and the file's name in it.
fn place(path: &Path) -> (&Path, &str) {
    let name = path.file_name().and_then(|name| name.to_str());
    let parent = path.parent().expect("it is a file");
    (parent, name.expect("it is text"))
}

/// Opens a file that is there.
pub fn open(path: &Path) -> File {
    let (parent, name) = place(path);
    let directory = Directory::open(parent).expect("it is there");
    directory.open_file_to_write(name).expect("it is there")
}

/// Makes a file with these bytes, or gives them to the one that is there.
pub fn write(path: &Path, bytes: &[u8]) {
    let (parent, name) = place(path);
    let directory = Directory::create(parent).expect("the test may write there");
    let file = match directory.open_file_to_write(name) {
        Ok(file) => file,
        Err(_) => directory.create_file(name).expect("it is new"),
    };
    // Not emptied first: some file systems write a file to the disk that was.
    file.write_at(0, bytes)
        .and_then(|()| file.set_len(bytes.len() as u64))
        .expect("there is room");
}

pub fn remove(path: &Path) {
    let (parent, name) = place(path);
    let directory = Directory::open(parent).expect("it is there");
    directory.remove_file(name).expect("it is there");
}
