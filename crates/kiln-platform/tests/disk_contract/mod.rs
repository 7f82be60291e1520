//! What a caller may rely on, on every file system and on the simulated disk.

use kiln_platform::disk::{AlignedBuffer, BLOCK_BYTES, Directory, DurableBy, Entry, Kind, Lock};

/// A part of the contract, checked in an empty directory.
pub type Part = fn(&Directory);

/// All parts of the contract, each in a directory of its own under `root`, which is empty.
pub const PARTS: [(&str, Part); 9] = [
    ("lengths", reads_and_writes_are_whole),
    ("entries", entries_come_and_go),
    ("refusals", refusals_have_their_kinds),
    ("parents", parents_are_made),
    ("rooms", room_is_filled_piece_by_piece),
    ("logs", durable_writes_are_read_back),
    ("locks", a_lock_has_one_holder),
    ("offsets", no_file_reaches_every_offset),
    ("poison", a_failed_change_is_the_last),
];

fn text(directory: &Directory, name: &str) -> String {
    let file = directory.open_file(name).expect("the file is there");
    let mut bytes = vec![0; file.len().expect("it has a length") as usize + 10];
    let read = file.read_at(0, &mut bytes).expect("it can be read");
    bytes.truncate(read);
    String::from_utf8(bytes).expect("the tests write text")
}

fn write(directory: &Directory, name: &str, content: &str) {
    let file = directory.create_file(name).expect("the file is new");
    let written = file.write_at(0, content.as_bytes());
    written.expect("it can be written");
    file.sync().expect("it can be synced");
}

fn names(directory: &Directory) -> Vec<String> {
    let entries = directory.list().expect("it can be listed");
    entries.into_iter().map(|entry| entry.name).collect()
}

fn reads_and_writes_are_whole(root: &Directory) {
    let file = root.create_file("file").expect("the file is new");
    assert!(file.is_empty().expect("it has a length"));
    file.write_at(3, b"defg").expect("it can be written");
    file.write_at(0, b"abc").expect("it can be written");
    let mut bytes = [b'-'; 9];
    assert_eq!(file.read_at(1, &mut bytes), Ok(6), "the file ends there");
    assert_eq!(&bytes, b"bcdefg---");
    assert_eq!(file.read_at(7, &mut bytes), Ok(0));
    assert_eq!(file.read_at(1_000_000, &mut bytes), Ok(0));

    file.set_len(5).expect("it can be cut");
    file.set_len(8).expect("it can grow");
    assert_eq!(file.len(), Ok(8));
    assert_eq!(file.read_at(0, &mut bytes), Ok(8));
    assert_eq!(&bytes[..8], b"abcde\0\0\0", "what was cut is gone");
    file.write_at(10_000, b"far").expect("it can be written");
    assert_eq!(file.len(), Ok(10_003));
    let mut all = vec![1; 10_003];
    assert_eq!(file.read_at(0, &mut all), Ok(10_003));
    assert!(all[8..10_000].iter().all(|byte| *byte == 0));
    file.sync().expect("it can be synced");

    let same = root.open_file_to_write("file").expect("it is there");
    same.write_at(0, b"A").expect("it can be written");
    let mut first = [0];
    assert_eq!(file.read_at(0, &mut first), Ok(1));
    assert_eq!(&first, b"A", "all handles see a write");
}

fn entries_come_and_go(root: &Directory) {
    write(root, "first", "1");
    write(root, "second", "22");
    let inner = root.create_subdirectory("inner").expect("it can be made");
    write(&inner, "deep", "333");
    root.sync().expect("it can be synced");
    let entry = |name: &str, is_directory, bytes| Entry {
        name: name.to_owned(),
        is_directory,
        bytes,
    };
    assert_eq!(
        root.list().expect("it can be listed"),
        [
            entry("first", false, 1),
            entry("inner", true, 0),
            entry("second", false, 2)
        ]
    );

    let held = root.open_file("second").expect("it is there");
    root.rename("first", "second").expect("it replaces");
    assert_eq!(names(root), ["inner", "second"]);
    assert_eq!(text(root, "second"), "1");
    assert_eq!(held.len(), Ok(2), "what was replaced lives with its handle");
    root.rename("second", "second").expect("it stays");
    root.rename("inner", "moved")
        .expect("directories have names, too");
    let inner = root.subdirectory("moved").expect("it is there");
    assert_eq!(text(&inner, "deep"), "333");

    inner.remove_file("deep").expect("it is there");
    root.remove_directory("moved").expect("it is empty");
    root.remove_file("second").expect("it is there");
    assert_eq!(names(root), [""; 0]);
    assert!(root.free_bytes().expect("it is known") > 0);
}

fn refusals_have_their_kinds(root: &Directory) {
    write(root, "file", "x");
    root.create_subdirectory("full")
        .and_then(|full| full.create_file("inside"))
        .expect("it can be made");
    let kind = |error: kiln_platform::disk::Error| error.kind().clone();

    let missing = [
        root.open_file("none").map(|_| ()).map_err(kind),
        root.open_file_to_write("none").map(|_| ()).map_err(kind),
        root.open_log_file("none").map(|_| ()).map_err(kind),
        root.subdirectory("none").map(|_| ()).map_err(kind),
        root.rename("none", "other").map_err(kind),
        root.remove_file("none").map_err(kind),
        root.remove_directory("none").map_err(kind),
    ];
    assert!(
        missing.iter().all(|found| *found == Err(Kind::NotFound)),
        "{missing:?}"
    );
    let directories = [
        root.open_file("full").map(|_| ()).map_err(kind),
        root.open_file_to_write("full").map(|_| ()).map_err(kind),
        root.open_log_file("full").map(|_| ()).map_err(kind),
        root.remove_file("full").map_err(kind),
        root.rename("file", "full").map_err(kind),
    ];
    assert!(
        directories
            .iter()
            .all(|found| *found == Err(Kind::IsADirectory)),
        "{directories:?}"
    );
    let files = [
        root.subdirectory("file").map(|_| ()).map_err(kind),
        root.create_subdirectory("file").map(|_| ()).map_err(kind),
        root.remove_directory("file").map_err(kind),
        root.rename("full", "file").map_err(kind),
        Directory::create(&root.path().join("file/below"))
            .map(|_| ())
            .map_err(kind),
    ];
    assert!(
        files.iter().all(|found| *found == Err(Kind::NotADirectory)),
        "{files:?}"
    );
    let there = root.create_file("file").expect_err("it is there");
    assert_eq!(*there.kind(), Kind::Exists);
    assert_eq!(there.path(), root.path().join("file"));
    assert!(there.to_string().starts_with("cannot create "), "{there}");
    let full = root
        .remove_directory("full")
        .expect_err("it holds something");
    assert_eq!(*full.kind(), Kind::Failed);
    for name in ["", ".", "..", "a/b", "/", "a\0"] {
        let error = root.create_file(name).expect_err("no name");
        assert!(error.to_string().contains("does not name"), "{error}");
    }
    root.create_file("new")
        .expect("none of this broke the directory");
}

fn parents_are_made(root: &Directory) {
    let path = root.path().join("a/b/c");
    for _ in 0..2 {
        let directory = Directory::create(&path).expect("it can be made");
        assert_eq!(directory.path(), path);
        assert_eq!(names(&directory), [""; 0]);
    }
    assert_eq!(names(root), ["a"]);
    root.is_volatile().expect("it is known");
}

fn room_is_filled_piece_by_piece(root: &Directory) {
    const BYTES: u64 = (2 << 20) + 5_000;
    let file = root.create_file("segment").expect("the file is new");
    file.write_at(0, b"head").expect("it can be written");
    let mut allocation = file.allocate(BYTES).expect("there is room");
    assert_eq!(allocation.remaining(), BYTES - 4);
    assert_eq!(allocation.step(), Ok(false));
    assert_eq!(file.len(), Ok((1 << 20) + 4), "one piece is written");

    let mut rest = file.allocate(BYTES).expect("another thread goes on");
    let mut steps = 1;
    while !rest.step().expect("there is room") {
        steps += 1;
    }
    assert_eq!(steps, 2);
    assert_eq!(rest.step(), Ok(true), "nothing is left");
    file.sync().expect("it can be synced");
    assert_eq!(file.len(), Ok(BYTES));
    let mut bytes = vec![1; BYTES as usize];
    assert_eq!(file.read_at(0, &mut bytes), Ok(BYTES as usize));
    assert_eq!(&bytes[..4], b"head");
    assert!(bytes[4..].iter().all(|byte| *byte == 0));
    let mut shorter = file.allocate(10).expect("nothing to do");
    assert_eq!(shorter.step(), Ok(true));
    assert_eq!(file.len(), Ok(BYTES), "an allocation never cuts");
}

fn durable_writes_are_read_back(root: &Directory) {
    let file = root.create_file("log").expect("the file is new");
    let mut allocation = file.allocate(64 << 10).expect("there is room");
    while !allocation.step().expect("there is room") {}
    file.sync().expect("it can be synced");
    root.sync().expect("it can be synced");

    let log = root.open_log_file("log").expect("it is there");
    let block = log.block_bytes();
    assert!(block.is_multiple_of(BLOCK_BYTES));
    let mut buffer = AlignedBuffer::new(3 * block);
    for (at, blocks) in [(0, 1), (1, 3), (4, 2)] {
        buffer.clear();
        assert!(buffer.append(format!("at {at}").as_bytes()));
        assert!(buffer.append(&vec![b'.'; (blocks - 1) * block]));
        buffer.pad(block);
        assert_eq!(buffer.len(), blocks * block);
        log.write_durably((at * block) as u64, &buffer)
            .expect("it can be written");
    }
    assert!(matches!(
        log.durable_by(),
        DurableBy::DirectWrite | DurableBy::Sync
    ));
    let mut start = [0; 4];
    for (block_number, expected) in [(0, b"at 0"), (1, b"at 1"), (4, b"at 4")] {
        let offset = (block_number * block) as u64;
        assert_eq!(file.read_at(offset, &mut start), Ok(4));
        assert_eq!(&start, expected);
    }
    assert_eq!(
        file.len(),
        Ok(64 << 10),
        "an overwrite leaves the length alone"
    );
}

fn a_lock_has_one_holder(root: &Directory) {
    let lock = root.lock("LOCK", "the first test").expect("it is free");
    assert_eq!(lock.path(), root.path().join("LOCK"));
    let again = Directory::open(root.path()).expect("it is there");
    let refused = again.lock("LOCK", "the second test").expect_err("held");
    let holder = again.lock_holder("LOCK").expect("it can be read");
    assert!(holder.is_some_and(|holder| holder.ends_with(": the first test")));
    assert_eq!(again.lock_holder("ANOTHER"), Ok(None));
    let Kind::Locked { holder } = refused.kind() else {
        panic!("{refused}");
    };
    assert!(
        holder.starts_with("process ") && holder.ends_with(": the first test"),
        "{holder}"
    );
    assert!(refused.to_string().contains("the first test"), "{refused}");
    let other = root.lock("OTHER", "another name").expect("it is free");
    a_holder_remarks(&again, &lock);
    drop((lock, other));
    let remark = again.lock_remark("LOCK").expect("it can be read");
    assert_eq!(remark.as_deref(), Some("it is well"));
    let long = "x".repeat(5_000);
    assert_eq!(root.lock_holder("LOCK"), Ok(None));
    let lock = again.lock("LOCK", &long).expect("it is free");
    root.lock("LOCK", "third").expect_err("held");
    drop(lock);
    let _lock = again.lock("LOCK", "short").expect("it is free");
    let refused = root.lock("LOCK", "fourth").expect_err("held");
    let text = refused.to_string();
    assert!(text.ends_with(": short"), "former holders are gone: {text}");
    assert_eq!(root.lock_remark("LOCK"), Ok(None));
}

fn a_holder_remarks(root: &Directory, lock: &Lock) {
    let said = || {
        let holder = root.lock_holder("LOCK").expect("it can be read");
        assert!(holder.is_some_and(|holder| holder.ends_with(": the first test")));
        root.lock_remark("LOCK").expect("it can be read")
    };
    assert_eq!(said(), None);
    assert_eq!(root.lock_remark("ANOTHER"), Ok(None));
    lock.remark(&"x".repeat(5_000)).expect("there is room");
    assert!(said().is_some_and(|remark| remark.len() > 3_000));
    lock.remark("one line\nand another").expect("there is room");
    assert_eq!(said().as_deref(), Some("one line and another"));
    lock.remark("it is well").expect("there is room");
    assert_eq!(said().as_deref(), Some("it is well"));
}

fn no_file_reaches_every_offset(root: &Directory) {
    let file = root.create_file("read").expect("the file is new");
    for (at, far) in [u64::MAX, u64::MAX - 5, 1 << 63].into_iter().enumerate() {
        assert_eq!(file.read_at(far, &mut [0; 10]), Ok(0), "it ends before");
        let file = |kind| {
            let made = root.create_file(&format!("{kind} {at}"));
            made.expect("the file is new")
        };
        let refused = [
            file("write").write_at(far, b"0123456789"),
            file("length").set_len(far),
            file("room").allocate(far).map(|_| ()),
        ];
        for refused in refused {
            let error = refused.expect_err("too long");
            assert_eq!(*error.kind(), Kind::Full, "{error}");
        }
    }
}

fn a_failed_change_is_the_last(root: &Directory) {
    write(root, "file", "content");
    let file = root.open_file("file").expect("it is there");
    file.sync().expect("nothing has failed");
    let first = file
        .write_at(0, b"x")
        .expect_err("it was opened to be read");
    assert_eq!(*first.kind(), Kind::Failed);
    assert_eq!(file.sync(), Err(first.clone()));
    assert_eq!(file.write_at(100, b"y"), Err(first.clone()));
    assert_eq!(file.set_len(0), Err(first.clone()));
    assert_eq!(file.allocate(100).map(|_| ()), Err(first));
    let mut bytes = [0; 7];
    assert_eq!(file.read_at(0, &mut bytes), Ok(7), "reading goes on");
    assert_eq!(&bytes, b"content");
    let other = root.open_file_to_write("file").expect("it is there");
    other
        .write_at(0, b"C")
        .expect("the poison is the handle's own");
}
