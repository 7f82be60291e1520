//! Data directories on the machine's file system: what is opened, what is made, and what is
//! refused.

#![cfg(not(kiln_sim))]

mod common;

use std::path::Path;

use common::{Temporary, next, read, write};
use kiln_durability::DataDirectory;
use kiln_platform::disk::Directory;
use kiln_storage::error::{Error, SqlState};

fn open(path: &Path) -> DataDirectory {
    DataDirectory::open(path, "a test").expect("it can be opened")
}

/// Why the directory is refused; the message names it.
fn refused(path: &Path) -> Error {
    let error = DataDirectory::open(path, "a test").expect_err("it is to be refused");
    let shown = path.display().to_string();
    assert!(error.message().contains(&shown), "{error}");
    println!("{error}\n  {:?}\n  {:?}", error.detail(), error.hint());
    error
}

#[test]
fn a_new_directory_is_made_and_found_again() {
    let temporary = Temporary::new("new");
    let path = temporary.0.join("above/data");
    let first = open(&path);
    let manifest = first.manifest();
    assert_eq!((manifest.first_segment, manifest.checkpoints.len()), (1, 0));
    assert_eq!(first.path(), path);
    assert!(first.log().list().expect("it is there").is_empty());
    drop(first);
    assert_eq!(open(&path).manifest(), manifest);
    // An empty directory that is there is as good.
    let other = temporary.0.join("other");
    Directory::create(&other).expect("it is new");
    assert_ne!(open(&other).manifest().database, manifest.database);
}

#[test]
fn what_was_published_is_found_again() {
    let temporary = Temporary::new("published");
    let data = open(&temporary.0);
    for _ in 0..4 {
        let manifest = next(&data.manifest());
        data.publish(manifest.clone()).expect("it can be");
        assert_eq!(*data.manifest(), manifest);
    }
    let manifest = data.manifest();
    let mut impossible = next(&manifest);
    impossible.checkpoints[0].number = 99;
    let error = data.publish(impossible).expect_err("out of order");
    assert_eq!(error.state(), SqlState::INTERNAL_ERROR);
    let mut foreign = next(&manifest);
    foreign.database.0[3] ^= 1;
    let error = data.publish(foreign).expect_err("of another database");
    assert_eq!(error.state(), SqlState::INTERNAL_ERROR);
    drop(data);
    assert_eq!(open(&temporary.0).manifest(), manifest);
}

#[test]
fn a_directory_that_is_open_is_refused_with_the_name_of_its_holder() {
    let temporary = Temporary::new("locked");
    let holder = "kiln serve on port 5432";
    let data = DataDirectory::open(&temporary.0, holder).expect("it is new");
    let error = refused(&temporary.0);
    assert_eq!(error.state(), SqlState::OBJECT_IN_USE);
    let process = format!("process {}: {holder}", std::process::id());
    assert!(error.message().contains(&process), "{error}");
    drop(data);
    open(&temporary.0);
}

#[test]
fn a_directory_of_something_else_is_refused_and_stays_as_it_is() {
    let temporary = Temporary::new("foreign");
    let root = Directory::create(&temporary.0).expect("it is new");
    write(&root, "thesis.tex", b"years of work");
    let error = refused(&temporary.0);
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert!(error.message().contains("thesis.tex"), "{error}");
    assert_eq!(root.list().map(|entries| entries.len()), Ok(1));
    root.remove_file("thesis.tex").expect("it is there");
    root.create_subdirectory("lost+found").expect("it is new");
    let hint = refused(&temporary.0).hint().map(str::to_owned);
    assert!(hint.is_some_and(|hint| hint.contains("mount point")));
    root.remove_directory("lost+found").expect("it is there");
    // A file of the name of a directory is not Kiln's.
    write(&root, "log", b"lines");
    refused(&temporary.0);
}

#[test]
fn a_creation_that_was_interrupted_begins_anew() {
    let temporary = Temporary::new("interrupted");
    let root = Directory::create(&temporary.0).expect("it is new");
    write(&root, "LOCK", b"process 1: an older one");
    write(&root, "MANIFEST.new", b"kiln manif");
    root.create_subdirectory("log").expect("it is new");
    let data = open(&temporary.0);
    assert!(data.checkpoints().list().expect("it is there").is_empty());
    let names = root.list().expect("it is there").into_iter();
    let names: Vec<_> = names.map(|entry| entry.name).collect();
    assert_eq!(names, ["LOCK", "MANIFEST", "checkpoints", "log"]);
}

#[test]
fn a_log_without_a_manifest_is_no_interrupted_creation() {
    let temporary = Temporary::new("headless");
    let data = open(&temporary.0);
    write(data.log(), "00000000000000000001.log", b"blocks");
    drop(data);
    let root = Directory::open(&temporary.0).expect("it is there");
    root.remove_file("MANIFEST").expect("it is there");
    let error = refused(&temporary.0);
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
    assert!(error.hint().is_some());
}

#[test]
fn a_manifest_that_is_damaged_cut_off_or_newer_is_refused() {
    let temporary = Temporary::new("damaged");
    drop(open(&temporary.0));
    let root = Directory::open(&temporary.0).expect("it is there");
    let whole = read(&root, "MANIFEST");
    let mut damaged = whole.clone();
    damaged[30] ^= 4;
    for bytes in [&damaged[..], &whole[..40], &[], &[0; 4_096]] {
        write(&root, "MANIFEST", bytes);
        let error = refused(&temporary.0);
        assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
        assert!(error.message().contains("MANIFEST is damaged"), "{error}");
    }
    let file = root.open_file_to_write("MANIFEST").expect("it is there");
    file.set_len(1 << 40).expect("holes take no room");
    let error = refused(&temporary.0);
    assert!(error.message().contains("no manifest has"), "{error}");
    write(&root, "MANIFEST", &whole);
    drop(open(&temporary.0));
    root.remove_directory("log").expect("it is empty");
    let error = refused(&temporary.0);
    assert!(error.message().contains("no directory log"), "{error}");
}

#[test]
fn what_cannot_be_a_directory_or_is_not_permitted_is_refused() {
    let temporary = Temporary::new("file");
    let root = Directory::create(&temporary.0).expect("it is new");
    write(&root, "file", b"");
    for path in ["file", "file/below"] {
        let error = DataDirectory::open(&temporary.0.join(path), "a test");
        let error = error.expect_err("there is a file");
        assert_eq!(error.state(), SqlState::WRONG_OBJECT_TYPE, "{error}");
        assert!(error.message().contains("/file"), "{error}");
        assert!(error.hint().is_some());
    }
    // Where not even root makes a directory.
    if cfg!(target_os = "linux") {
        let error = refused(Path::new("/sys/kiln"));
        assert_eq!(error.state(), SqlState::INSUFFICIENT_PRIVILEGE);
    }
}

#[test]
fn what_the_manifest_does_not_name_is_removed_and_what_it_names_stays() {
    let temporary = Temporary::new("leftovers");
    let data = open(&temporary.0);
    data.publish(next(&data.manifest())).expect("it can be");
    let root = Directory::open(&temporary.0).expect("it is there");
    write(&root, "MANIFEST.new", b"never published");
    for name in ["00000000000000000001", "00000000000000000002", "3", "old"] {
        let directory = data.checkpoints().create_subdirectory(name);
        let directory = directory.expect("it is new");
        write(&directory, "catalog", b"text");
        write(&directory, "table-1-0", b"rows");
    }
    let name = "00000000000000000004";
    let with_more = data.checkpoints().create_subdirectory(name);
    let with_more = with_more.expect("it is new");
    write(&with_more, "catalog", b"text");
    write(&with_more, "notes", b"of a user");
    write(data.checkpoints(), "00000000000000000005", b"a file");
    data.remove_leftovers().expect("the disk works");
    let names = |directory: &Directory| -> Vec<String> {
        let entries = directory.list().expect("it is there").into_iter();
        entries.map(|entry| entry.name).collect()
    };
    assert_eq!(
        names(data.checkpoints()),
        [
            "00000000000000000001",
            "00000000000000000004",
            "00000000000000000005",
            "3",
            "old"
        ]
    );
    assert_eq!(names(&with_more), ["notes"]);
    assert!(!names(&root).contains(&"MANIFEST.new".to_owned()));
}

#[test]
fn a_directory_in_memory_is_opened_with_a_warning() {
    let memory = Path::new("/dev/shm");
    if !Directory::open(memory).is_ok_and(|found| found.is_volatile() == Ok(true)) {
        println!("skipped: /dev/shm is no tmpfs here");
        return;
    }
    let path = memory.join(format!("kiln-durability-{}", std::process::id()));
    let warnings = open(&path).warnings().to_vec();
    common::remove(&path);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("tmpfs"), "{warnings:?}");
}
