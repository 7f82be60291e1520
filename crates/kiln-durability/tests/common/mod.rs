//! What the tests of data directories have in common.

#![allow(dead_code, reason = "no test uses all of it")]

use std::path::{Path, PathBuf};

use kiln_durability::{CheckpointEntry, Manifest};
use kiln_platform::disk::{Directory, Kind};

/// A path below which a test may write, and which is gone after it.
pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(name: &str) -> Temporary {
        let name = format!("kiln-durability-{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        remove(&path);
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a directory and all that is in it, if it is there.
pub fn remove(path: &Path) {
    let parent = path.parent().expect("tests do not remove the root");
    let name = path.file_name().and_then(|name| name.to_str());
    let parent = Directory::open(parent).expect("it is there");
    remove_in(&parent, name.expect("tests have plain names"));
}

fn remove_in(parent: &Directory, name: &str) {
    match parent.subdirectory(name) {
        Ok(directory) => {
            for entry in directory.list().expect("it can be read") {
                match entry.is_directory {
                    true => remove_in(&directory, &entry.name),
                    false => directory.remove_file(&entry.name).expect("it is there"),
                }
            }
            parent.remove_directory(name).expect("it is empty");
        }
        Err(error) if *error.kind() == Kind::NotADirectory => {
            parent.remove_file(name).expect("it is there");
        }
        Err(error) => assert_eq!(*error.kind(), Kind::NotFound, "{error}"),
    }
}

/// The bytes of a file.
pub fn read(directory: &Directory, name: &str) -> Vec<u8> {
    let file = directory.open_file(name).expect("it is there");
    let mut bytes = vec![0; file.len().expect("it is known") as usize];
    assert_eq!(file.read_at(0, &mut bytes), Ok(bytes.len()));
    bytes
}

/// Makes a file, or replaces what is in it.
pub fn write(directory: &Directory, name: &str, bytes: &[u8]) {
    let file = match directory.open_file_to_write(name) {
        Ok(file) => file,
        Err(_) => directory.create_file(name).expect("it is new"),
    };
    // Not emptied first: some file systems write a file to the disk that was.
    file.write_at(0, bytes)
        .and_then(|()| file.set_len(bytes.len() as u64))
        .expect("there is room");
}

/// A manifest that goes on from another one, with one more checkpoint, which has no files.
pub fn next(manifest: &Manifest) -> Manifest {
    let mut next = manifest.clone();
    let number = (next.checkpoints.last()).map_or(1, |checkpoint| checkpoint.number + 1);
    next.checkpoints.push(CheckpointEntry {
        number,
        start_epoch: number * 100,
        end_epoch: number * 100 + 7,
        segment: number,
        catalog: number,
        written_us: number as i64,
        rows: 0,
        files: Vec::new(),
    });
    if next.checkpoints.len() > 2 {
        next.checkpoints.remove(0);
    }
    next.first_segment = next.checkpoints[0].segment;
    next
}
