//! `kiln data`, `kiln backup` and `kiln restore` as their users meet them.

#![cfg(not(kiln_sim))]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use kiln::{Database, Options};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::{thread, time};
use serde_json::Value;

/// Runs the command in a directory; the arguments are separated by single spaces.
fn kiln(directory: &TemporaryDirectory, arguments: &str) -> Output {
    run(directory, &arguments.split(' ').collect::<Vec<_>>())
}

fn run(directory: &TemporaryDirectory, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_kiln"))
        .args(arguments)
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .output();
    output.expect("the program starts")
}

/// What the command prints, when it ends with this code.
#[track_caller]
fn said(output: &Output, code: i32) -> String {
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    out + &err
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "there is no {part:?} in\n{text}");
    }
}

fn options(directory: &TemporaryDirectory) -> Options {
    Options::new()
        .workers(2)
        .pin_workers(false)
        .data_dir(Some(directory.path().join("shop")))
}

/// A directory with a data directory `shop`, whose database has one checkpoint and something after
/// it.
fn shop() -> TemporaryDirectory {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let directory = TemporaryDirectory::within(parent, "kiln-data").expect("there is room");
    let database = Database::open(options(&directory)).expect("it is new");
    let run = |sql: &str| drop(database.execute(sql).expect("it runs"));
    run("CREATE TABLE seats (id INTEGER PRIMARY KEY, free INTEGER)");
    run("INSERT INTO seats SELECT i, 40 FROM generate_series(1, 100) i");
    database.engine().checkpoint().expect("there is room");
    run("UPDATE seats SET free = 39 WHERE id <= 3; DELETE FROM seats WHERE id = 100");
    run("CREATE TABLE later (id INTEGER PRIMARY KEY); INSERT INTO later VALUES (1), (2)");
    directory
}

/// Flips a bit of a file.
fn flip(path: &Path, at: u64) {
    let parent = Directory::open(path.parent().expect("it is a file")).expect("it is there");
    let name = path.file_name().and_then(|name| name.to_str());
    let file = parent
        .open_file_to_write(name.expect("it is text"))
        .expect("it is there");
    let mut byte = [0];
    file.read_at(at, &mut byte).expect("it can be read");
    file.write_at(at, &[byte[0] ^ 16]).expect("there is room");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text.lines().last().unwrap_or_default()).expect("it is JSON")
}

#[test]
fn help_says_what_the_commands_do_and_need() {
    let shop = shop();
    let text = said(&kiln(&shop, "--help"), 0);
    assert_has(
        &text,
        &[
            "data  ",
            "Copy a database",
            "Make a data directory from a backup",
        ],
    );
    for (command, part) in [
        ("data", "Read all files that belong to a database"),
        ("data check", "No process may have the database"),
        ("data inspect", "What can be read of a damaged directory"),
        ("data status", "A process may have the database open"),
        ("backup", "Database::backup"),
        (
            "restore",
            "compared with its checksums before anything is made",
        ),
    ] {
        let text = said(&kiln(&shop, &format!("{command} --help")), 0);
        assert_has(&text.replace('\n', " "), &[part]);
    }
}

#[test]
fn a_data_directory_is_checked_and_damage_is_named() {
    let shop = shop();
    let text = said(&kiln(&shop, "data check shop"), 0);
    assert_has(
        &text,
        &[
            "1 checkpoint (2 files, 100 rows)",
            "1 segment",
            "All of it is what was written.",
        ],
    );
    let value = json(&said(&kiln(&shop, "data check shop --json"), 0));
    assert_eq!(
        (&value["is_whole"], &value["rows"]),
        (&true.into(), &100.into())
    );
    let catalog = "shop/checkpoints/00000000000000000001/catalog";
    flip(&shop.path().join(catalog), 70);
    flip(
        &shop.path().join("shop/log/00000000000000000001.log"),
        4_100,
    );
    let text = said(&kiln(&shop, "data check shop"), 1);
    assert_has(
        &text,
        &[catalog, "offset", "00000000000000000001.log at offset 4096"],
    );
    assert_has(&text, &["2 damages found", "restore", "from a backup"]);
    // What can be read is shown all the same.
    let text = said(&kiln(&shop, "data inspect shop --log --checkpoint 1"), 1);
    assert_has(
        &text,
        &[
            "statement  ",
            "CREATE TABLE seats",
            "Damaged: ",
            "table-1-0",
        ],
    );
    said(&kiln(&shop, "data status shop"), 0);
    flip(&shop.path().join("shop/MANIFEST"), 40);
    for command in [
        "data check shop",
        "data inspect shop",
        "data status shop",
        "backup shop b",
    ] {
        let text = said(&kiln(&shop, command), 1);
        assert_has(&text, &["MANIFEST is damaged"]);
    }
    for command in ["data check", "data inspect", "data status"] {
        let text = said(&kiln(&shop, &format!("{command} nowhere")), 1);
        assert_has(&text, &["nowhere", "No such file or directory"]);
        let text = said(&kiln(&shop, &format!("{command} .")), 1);
        assert_has(&text, &["no data directory of Kiln"]);
    }
}

#[test]
fn a_data_directory_is_shown() {
    let shop = shop();
    let text = said(&kiln(&shop, "data inspect shop"), 0);
    assert_has(
        &text,
        &[
            "Database ",
            "Checkpoints:",
            "number",
            "100",
            "Log: ",
            "segment",
        ],
    );
    let text = said(&kiln(&shop, "data inspect shop --log"), 0);
    assert_has(
        &text,
        &[
            "  CREATE TABLE seats (id INTEGER PRIMARY KEY, free INTEGER)\n",
            "seats: 100 inserted",
            "seats: 3 updated",
            "seats: 1 deleted",
            "later: 2 inserted",
            "durable through block ",
        ],
    );
    let text = said(&kiln(&shop, "data inspect shop --log --limit 1"), 0);
    assert_has(&text, &["CREATE TABLE seats"]);
    assert!(!text.contains("100 inserted"), "{text}");
    let text = said(
        &kiln(&shop, "data inspect shop --log --from-epoch 1000000"),
        0,
    );
    assert!(!text.contains("CREATE TABLE"), "{text}");
    let text = said(&kiln(&shop, "data inspect shop --checkpoint 1"), 0);
    assert_has(
        &text,
        &[
            "Files of checkpoint 1",
            "catalog",
            "table-1-0",
            "seats",
            "100",
        ],
    );
    let text = said(&kiln(&shop, "data inspect shop --checkpoint 9"), 1);
    assert_has(&text, &["has checkpoints 1, not 9"]);
    let text = said(&kiln(&shop, "data inspect shop --log --json"), 0);
    let lines: Vec<Value> = (text.lines())
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    let (last, groups) = lines.split_last().expect("there are groups");
    assert_eq!(last["groups"], groups.len());
    assert!(
        groups
            .iter()
            .any(|it| it["entries"][0]["changes"]["later"]["inserted"] == 2)
    );
    let text = said(&kiln(&shop, "data status shop"), 0);
    assert_has(
        &text,
        &[
            "In use           no",
            "1, of 20",
            "Recovery         about 0.0 s",
        ],
    );
    let value = json(&said(&kiln(&shop, "data status shop --json"), 0));
    assert_eq!(value["checkpoints"][0]["rows"], 100);
}

#[test]
fn a_database_that_is_open_has_a_status_and_is_otherwise_left_alone() {
    let shop = shop();
    let database = Database::open(options(&shop)).expect("it is there");
    let holder = format!("process {}", std::process::id());
    let text = said(&kiln(&shop, "data status shop"), 0);
    assert_has(&text, &["In use           by ", &holder]);
    for command in ["data check shop", "data inspect shop", "backup shop copy"] {
        let text = said(&kiln(&shop, command), 1);
        assert_has(&text, &["SQLSTATE 55006", &holder]);
    }
    database
        .execute("INSERT INTO later VALUES (3)")
        .expect("it runs");
}

/// The log finds no room for its next segment. What it has written is read; the status says why
/// nothing is changed, also when the process is gone, until the database is opened again.
#[test]
fn a_database_without_room_says_so_and_goes_on_when_it_is_opened_again() {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let shop = TemporaryDirectory::within(parent, "kiln-data").expect("there is room");
    let options = || options(&shop).log_segment_bytes(16 << 10);
    let database = Database::open(options()).expect("it is new");
    let script = "CREATE TABLE later (id INTEGER PRIMARY KEY)";
    database.execute(script).expect("it runs");
    assert_eq!(database.engine().read_only(), None);
    let log = Directory::open(&shop.path().join("shop/log")).expect("it is there");
    let mut later = 1;
    // No file can be made in the place of a directory. The next segments are made already, or being
    // made.
    let last = log.list().expect("it can be read").len() + 2;
    let place = format!("{last:020}.log");
    log.create_subdirectory(&place).expect("nothing is there");
    let refused = loop {
        let inserted = database.execute(&format!("INSERT INTO later VALUES ({later})"));
        match inserted {
            Ok(_) => later += 1,
            Err(error) => break error,
        }
        assert!(later < 1_000, "the segments have no room for all of it");
    };
    let text = format!("{refused:#}");
    assert_has(&text, &["the database is read-only", &place, "HINT:  "]);
    let count = "SELECT count(*) FROM later";
    let counted = |database: &Database| {
        let counted = database.query(count, ()).expect("it only reads");
        counted.into_one::<(i64,)>().expect("one row").0
    };
    assert_eq!(counted(&database), later - 1);
    let read_only = database.engine().read_only().expect("it is");
    assert!(read_only.lost_tables.is_empty());
    let said_of = |state: &str| {
        let text = said(&kiln(&shop, "data status shop"), 0);
        text.contains(state)
            .then(|| assert_has(&text, &["read-only: ", &place, ", since 20"]))
    };
    // Within a tenth of a second.
    while said_of("State            ").is_none() {
        thread::sleep(10_000_000);
    }
    let value = json(&said(&kiln(&shop, "data status shop --json"), 0));
    assert!(value["remark"].is_string() && value["holder"].is_string());
    database.close();
    assert!(said_of("When last open   ").is_some());

    // Room alone does not help a process that runs; another one takes it.
    log.remove_directory(&place).expect("it is empty");
    let database = Database::open(options()).expect("it is there");
    assert_eq!(counted(&database), later - 1);
    let insert = format!("INSERT INTO later VALUES ({later})");
    database.execute(&insert).expect("there is room");
    let value = json(&said(&kiln(&shop, "data status shop --json"), 0));
    assert!(value["remark"].is_null());
}

#[test]
fn a_database_is_backed_up_and_restored_to_a_time() {
    let shop = shop();
    let database = Database::open(options(&shop)).expect("it is there");
    thread::sleep(2_000_000);
    let between = kiln_durability::moment_text(time::wall_clock_us());
    thread::sleep(2_000_000);
    database
        .execute("INSERT INTO later VALUES (3)")
        .expect("it runs");
    drop(database);
    let text = said(&kiln(&shop, "backup shop copies/monday"), 0);
    assert_has(
        &text,
        &[
            "Copied database ",
            "checkpoint 1 with 100 rows",
            "Taken at 20",
        ],
    );
    let text = said(&kiln(&shop, "backup shop copies/monday"), 1);
    assert_has(
        &text,
        &["copies/monday is not empty", "Name an empty directory"],
    );
    let text = said(&kiln(&shop, "restore copies/monday again"), 0);
    assert_has(
        &text,
        &["Restored database ", "written to its log until 20"],
    );
    let text = said(
        &run(
            &shop,
            &["restore", "copies/monday", "before", "--to", &between],
        ),
        0,
    );
    assert_has(&text, &["Left out: "]);
    for (name, rows) in [("again", "3\n"), ("before", "2\n")] {
        let query = [
            "sql",
            "--data",
            name,
            "--csv",
            "-c",
            "SELECT count(*) FROM later",
        ];
        let output = run(&shop, &query);
        assert_has(&said(&output, 0), &[rows]);
        said(&kiln(&shop, &format!("data check {name}")), 0);
    }
    for (to, part) in [
        ("2020-01-01", "the earliest possible time is 20"),
        ("2120-01-01T00:00:00Z", "was taken at 20"),
    ] {
        let text = said(
            &kiln(&shop, &format!("restore copies/monday other --to {to}")),
            1,
        );
        assert_has(&text, &[part]);
    }
    let text = said(&kiln(&shop, "restore copies/monday other --to noon"), 2);
    assert_has(&text, &["noon"]);
    let text = said(&kiln(&shop, "restore shop other"), 1);
    assert_has(&text, &["shop is no backup"]);
    flip(
        &shop
            .path()
            .join("copies/monday/log/00000000000000000001.log"),
        5_000,
    );
    let text = said(&kiln(&shop, "restore copies/monday other"), 1);
    assert_has(
        &text,
        &[
            "copies/monday/log/00000000000000000001.log is damaged",
            "another backup",
        ],
    );
    assert!(
        Directory::open(&shop.path().join("other")).is_err(),
        "nothing is left"
    );
}
