//! Data directories of tests, and the files in them.

#![allow(dead_code, reason = "no test uses all of it")]

use std::path::{Path, PathBuf};

use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_sql::{Database, Options};

/// A directory that goes with the test.
pub fn temporary() -> TemporaryDirectory {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    TemporaryDirectory::within(parent, "kiln-sql").expect("the test may write there")
}

pub fn options(path: &Path) -> Options {
    Options::new()
        .workers(2)
        .pin_workers(false)
        .log_segment_bytes(256 << 10)
        .data_dir(Some(path.to_owned()))
}

pub fn number(database: &Database, query: &str) -> i64 {
    let result = database.query(query, ()).expect("the query runs");
    result.into_one::<(i64,)>().expect("it is a number").0
}

/// The files below a directory, by their paths in it.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let directory = Directory::open(root).expect("it is there");
    for entry in directory.list().expect("it can be read") {
        let name = PathBuf::from(&entry.name);
        match entry.is_directory {
            true => found.extend(files(&root.join(&name)).into_iter().map(|it| name.join(it))),
            false => found.push(name),
        }
    }
    found
}

/// Changes a file; the function gets its bytes and returns those that are to be in it.
pub fn change(path: &Path, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let parent = path.parent().expect("it is a file");
    let name = path.file_name().and_then(|name| name.to_str());
    let directory = Directory::open(parent).expect("it is there");
    let file = directory.open_file_to_write(name.expect("it is text"));
    let file = file.expect("it is there");
    let mut bytes = vec![0; file.len().expect("it is known") as usize];
    file.read_at(0, &mut bytes).expect("it can be read");
    let changed = change(bytes.clone());
    file.write_at(0, &changed).expect("there is room");
    file.set_len(changed.len() as u64).expect("there is room");
    bytes
}
