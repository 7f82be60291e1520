//! `--data` as users of the `kiln` command meet it: what survives, what is said, what is refused.

use crate::command;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use kiln::{Database, Options};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::{file, thread};

use crate::command::{assert_ends, err, kiln, kiln_reading, out};

fn temporary() -> TemporaryDirectory {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    TemporaryDirectory::within(parent, "kiln-command").expect("the test may write there")
}

fn word(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

fn sql(data: &Path, script: &str) -> Output {
    kiln(&["sql", "--csv", "--data", word(data), "-c", script])
}

/// The rows of a query, by a command of its own.
#[track_caller]
fn rows(data: &Path, query: &str) -> Vec<String> {
    let output = sql(data, query);
    assert_ends(&output, 0);
    out(&output).lines().skip(1).map(str::to_owned).collect()
}

/// Checks that a command ends with one error that has all these parts, and prints nothing else.
#[track_caller]
fn assert_refused(output: &Output, code: i32, parts: &[&str]) {
    assert_ends(output, code);
    let text = err(output);
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    let is_more = |line: &str| line.starts_with("HINT:  ") || line.starts_with("DETAIL:  ");
    let others = text.lines().filter(|line| !is_more(line)).count();
    assert!(others == 1 || code == 2, "{text}");
    assert_eq!(out(output), "");
}

/// The checksum of manifests.
fn crc_64_xz(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(u64::MAX, |sum, byte| {
        (0..8).fold(sum ^ u64::from(*byte), |sum, _| match sum & 1 {
            1 => (sum >> 1) ^ 0xc96c_5795_d787_0f42,
            _ => sum >> 1,
        })
    })
}

/// Flips a bit of a file.
fn flip(directory: &Path, name: &str, offset: u64) {
    let directory = Directory::open(directory).expect("it is there");
    let file = directory.open_file_to_write(name).expect("it is there");
    let mut byte = [0];
    file.read_at(offset, &mut byte).expect("it can be read");
    byte[0] ^= 4;
    file.write_at(offset, &byte).expect("it can be written");
}

fn names(directory: &Path) -> Vec<String> {
    let directory = Directory::open(directory).expect("it is there");
    let entries = directory.list().expect("it can be read").into_iter();
    let mut names: Vec<String> = entries.map(|entry| entry.name).collect();
    names.sort();
    names
}

#[test]
fn what_was_answered_survives_a_kill() {
    let temporary = temporary();
    let data = temporary.path().join("shop");
    let mut child = command::command(&["sql", "--csv", "--data", word(&data)])
        .args([
            "-c",
            "CREATE TABLE seats (id INTEGER PRIMARY KEY, free INTEGER)",
        ])
        .args(["-c", "INSERT INTO seats VALUES (1, 40), (2, 7)"])
        .args(["-c", "UPDATE seats SET free = free - 1 WHERE id = 1"])
        .args(["-c", "SELECT 'answered'"])
        // Until it is killed.
        .args(["-c", "SELECT count(*) FROM generate_series(1, 2000000000)"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines();
    let answered = lines.find(|line| line.as_ref().is_ok_and(|line| line == "answered"));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(answered.is_some());
    assert_eq!(
        rows(&data, "SELECT * FROM seats ORDER BY id"),
        ["1,39", "2,7"]
    );

    // What was read is one line on standard error, beside which results stay what they are.
    let output = kiln_reading(&["sql", "--data", word(&data)], "SELECT 1 AS one;\n");
    assert_ends(&output, 0);
    assert_eq!(err(&output).lines().count(), 1, "{}", err(&output));
    assert!(
        err(&output).starts_with("Recovered 2 commits"),
        "{}",
        err(&output)
    );
    assert!(out(&output).starts_with(" one "), "{}", out(&output));
}

#[test]
fn a_long_recovery_is_shown_with_its_estimate() {
    let temporary = temporary();
    let data = temporary.path().join("shop");
    let make = "CREATE TABLE wide (id INTEGER PRIMARY KEY, text TEXT);
        INSERT INTO wide SELECT i, repeat('x', 1000) FROM generate_series(1, 12000) i";
    assert_ends(&sql(&data, make), 0);
    for _ in 0..2 {
        let output = kiln(&["sql", "--data", word(&data), "-c", "SELECT 1"]);
        assert_ends(&output, 0);
        let text = err(&output);
        let last = text.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("Recovered ") && last.contains(" s (estimated "),
            "{text}"
        );
        let seconds = last.split("(estimated ").nth(1).unwrap_or_default();
        let seconds = seconds.trim_end_matches(" s).");
        assert!(
            seconds.parse::<f64>().is_ok_and(|it| it > 0.0),
            "{seconds}: {text}"
        );
        let output = kiln(&["data", "status", word(&data)]);
        assert!(
            out(&output).contains("Last recovery    "),
            "{}",
            out(&output)
        );
    }
}

#[test]
fn a_directory_of_something_else_is_refused_and_stays_as_it_is() {
    let temporary = temporary();
    let notes = temporary.path().join("notes.txt");
    file::write(&notes, b"mine").expect("it can be written");
    let refused = sql(temporary.path(), "SELECT 1");
    let parts = [
        word(temporary.path()),
        "notes.txt",
        "55000",
        "HINT:  Name an empty directory",
    ];
    assert_refused(&refused, 1, &parts);
    assert_refused(
        &sql(&notes, "SELECT 1"),
        1,
        &[word(&notes), "42809", "HINT:  Name a directory"],
    );
    let below = notes.join("below");
    assert_refused(
        &sql(&below, "SELECT 1"),
        1,
        &[word(&below), "42809", "HINT:  Name a directory"],
    );
    assert_eq!(names(temporary.path()), ["notes.txt"]);
}

#[test]
fn a_directory_without_permission_names_who_may() {
    let temporary = temporary();
    let closed = temporary.path().join("closed");
    Directory::create(&closed).expect("it can be made");
    let mode = |mode: &str| {
        let changed = Command::new("chmod").arg(mode).arg(&closed).status();
        assert!(changed.expect("the system has chmod").success());
    };
    mode("000");
    let is_barred = Directory::open(&closed).and_then(|it| it.list()).is_err();
    let refused = sql(&closed, "SELECT 1");
    mode("700");
    // The superuser may do anything.
    if is_barred {
        assert_refused(
            &refused,
            1,
            &[word(&closed), "42501", "HINT:  Run Kiln as the owner"],
        );
    }
}

#[test]
fn a_directory_that_is_open_names_the_process() {
    let temporary = temporary();
    let data = temporary.path().join("data");
    let options = Options::new()
        .workers(1)
        .pin_workers(false)
        .log_segment_bytes(256 << 10);
    let database = Database::open(options.data_dir(Some(data.clone()))).expect("it is new");
    let process = format!("held by process {}: Kiln ", std::process::id());
    assert_refused(
        &sql(&data, "SELECT 1"),
        1,
        &["LOCK", &process, "55006", "HINT:  End that process"],
    );
    database.close();
    assert_eq!(rows(&data, "SELECT 1"), ["1"]);
}

#[test]
fn damaged_and_newer_files_are_named_and_refused() {
    let temporary = temporary();
    let data = temporary.path().join("data");
    let script = "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1);
                  INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)";
    assert_ends(&sql(&data, script), 0);
    let manifest = data.join("MANIFEST");
    let whole = file::read_to_string(&manifest).expect("it is text");
    let content = whole.replacen("kiln manifest 1", "kiln manifest 9", 1);
    let content = &content[..content.find("checksum ").expect("it ends with one")];
    let newer = format!("{content}checksum {:016x}\n", crc_64_xz(content.as_bytes()));
    for (text, parts) in [
        (
            &whole[..40],
            &["MANIFEST is damaged", "XX001", "HINT:  Restore"][..],
        ),
        ("", &["MANIFEST is damaged", "XX001", "HINT:  Restore"]),
        (&newer, &["MANIFEST", "has format 9", "0A000", "HINT:  Use"]),
    ] {
        file::write(&manifest, text.as_bytes()).expect("it can be written");
        assert_refused(&sql(&data, "SELECT 1"), 1, parts);
    }
    file::write(&manifest, whole.as_bytes()).expect("it can be written");

    let (log, segment) = (data.join("log"), "00000000000000000001.log");
    // Its second block, whose successors say that it was on disk.
    flip(&log, segment, 4_096 + 80);
    assert_refused(&sql(&data, "SELECT 1"), 1, &[segment, "XX001", "HINT:  "]);
    flip(&log, segment, 4_096 + 80);
    assert_eq!(rows(&data, "SELECT * FROM t ORDER BY id"), ["1", "2", "3"]);

    let log = Directory::open(&log).expect("it is there");
    log.rename(segment, "elsewhere").expect("it is there");
    assert_refused(
        &sql(&data, "SELECT 1"),
        1,
        &["has lost its segment", segment, "XX001", "HINT:  "],
    );
    log.rename("elsewhere", segment).expect("it is there");
    assert_eq!(rows(&data, "SELECT count(*) FROM t"), ["3"]);
}

const SHORT: [&str; 10] = [
    "--protocol",
    "silo",
    "--threads",
    "2",
    "--repeat",
    "1",
    "--warmup",
    "0.1",
    "--reserve",
    "0",
];

#[test]
fn benchmarks_make_databases_of_their_own() {
    let temporary = temporary();
    let notes = temporary.path().join("notes.txt");
    file::write(&notes, b"mine").expect("it can be written");
    let bench = |data: &Path, others: &[&str]| {
        let words = ["bench", "hot", "--data", word(data)];
        kiln(&[&words[..], &SHORT, others].concat())
    };
    let parts = [
        word(temporary.path()),
        "notes.txt",
        "name a new directory with --data",
    ];
    assert_refused(&bench(temporary.path(), &[]), 1, &parts);
    assert_refused(
        &bench(&notes, &[]),
        1,
        &["notes.txt", "name a new directory with --data"],
    );
    assert_eq!(names(temporary.path()), ["notes.txt"]);
    let data = temporary.path().join("data");
    let refused = kiln(&[
        "bench",
        "hot",
        "--data",
        word(&data),
        "--protocol",
        "silo,none",
    ]);
    assert_refused(&refused, 2, &["none does not isolate", "--data"]);
    assert!(Directory::open(&data).is_err(), "nothing was made");
    let refused = kiln(&[
        "sql",
        "--data",
        word(&data),
        "--allow-unserializable",
        "--protocol",
        "none",
        "-c",
        "SELECT 1",
    ]);
    assert_refused(
        &refused,
        1,
        &[
            "none does not isolate",
            "22023",
            "HINT:  Choose a serializable protocol",
        ],
    );
}

/// A short benchmark in `data`; returns the row of its JSON.
fn bench(data: &Path, workload: &[&str]) -> serde_json::Value {
    let json = data.with_extension("json");
    let words = [
        "--seconds",
        "0.5",
        "--data",
        word(data),
        "--json",
        word(&json),
    ];
    let output = kiln(&[&["bench"], workload, &SHORT, &words].concat());
    assert_ends(&output, 0);
    let text = file::read_to_string(&json).expect("the result was written");
    let rows: serde_json::Value = serde_json::from_str(&text).expect("the result is JSON");
    rows[0].clone()
}

#[test]
fn what_a_benchmark_has_counted_is_on_disk() {
    let temporary = temporary();
    let data = temporary.path().join("hot");
    let row = bench(&data, &["hot"]);
    assert_eq!(row["synced"], true);
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{row:#}"));
    let committed = number(&row["committed_per_s"]) * 0.5;
    let log = &row["log"];
    assert!(
        committed > 0.0 && number(&log["entries"]) >= committed,
        "{row:#}"
    );
    assert!(
        number(&log["written_bytes"]) > number(&log["entry_bytes"]),
        "{row:#}"
    );
    for histogram in [&log["group_entries"], &log["write_ns"]] {
        let values = ["p50", "p90", "p99", "p999", "max"].map(|key| number(&histogram[key]));
        assert!(values[0] > 0.0 && values.is_sorted(), "{row:#}");
    }
    let kept = rows(&data.join("1"), "SELECT sum(count) FROM counters");
    let kept: f64 = kept[0].parse().expect("a number");
    assert!(kept >= committed, "{kept} of {committed} are there");
}

/// Calls that write nothing are acknowledged at once where nothing waits to be written.
#[test]
fn reads_of_a_benchmark_do_not_wait_for_the_log() {
    let temporary = temporary();
    let row = bench(&temporary.path().join("reads"), &["read-only"]);
    let p50 = row["latency_us"]["read_records"]["p50"].as_f64();
    assert!(p50.expect("a number") < 50_000.0, "{row:#}");
}

#[test]
fn a_benchmark_that_is_killed_leaves_whole_transactions() {
    let temporary = temporary();
    let data = temporary.path().join("tpcc");
    let words = [
        "bench",
        "tpcc",
        "--items",
        "1000",
        "--customers-per-district",
        "30",
    ];
    let endless = ["--seconds", "600", "--data", word(&data)];
    let mut child = command::command(&[&words[..], &SHORT, &endless].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines();
    let loaded = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("Loaded ")));
    thread::sleep(500_000_000);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(loaded.is_some());
    let query = "SELECT (SELECT sum(w_ytd) FROM warehouse) = (SELECT sum(d_ytd) FROM district),
                        (SELECT sum(o_ol_cnt) FROM orders) = (SELECT count(*) FROM order_line),
                        (SELECT sum(d_next_o_id - 1) FROM district) = (SELECT count(*) FROM orders),
                        (SELECT count(*) FROM history) > 300";
    assert_eq!(rows(&data.join("1"), query), ["t,t,t,t"]);
}

#[test]
fn a_log_keeps_commands_where_calls_have_an_order() {
    let temporary = temporary();
    let data = temporary.path().join("commands");
    let commands = ["--logging", "commands"];
    let short = [
        "bench",
        "hot",
        "--seconds",
        "0.2",
        "--warmup",
        "0",
        "--repeat",
        "1",
    ];
    let of = |protocol| ["--data", word(&data), "--protocol", protocol];
    let refused = kiln(&[&short[..], &of("silo"), &commands].concat());
    assert_refused(&refused, 2, &["silo cannot keep commands", "log values"]);
    let refused = kiln(&[&short[..], &commands].concat());
    assert_refused(&refused, 2, &["--data <DIR>"]);
    assert!(Directory::open(&data).is_err(), "nothing was made");
    assert_ends(&kiln(&[&short[..], &of("vll"), &commands].concat()), 0);
    let data = data.join("1");
    let output = kiln(&["data", "inspect", word(&data), "--log"]);
    assert_ends(&output, 0);
    assert!(out(&output).contains("(1): 1 change\n"), "{}", out(&output));
    let output = kiln(&["sql", "--data", word(&data), "-c", "SELECT 1"]);
    assert_ends(&output, 0);
    let recovered = err(&output);
    assert!(
        recovered.contains("of them calls that were made again"),
        "{recovered}"
    );
    let refused = kiln(
        &[
            &["sql", "--data", word(&data), "-c", "SELECT 1"],
            &commands[..],
        ]
        .concat(),
    );
    assert_refused(
        &refused,
        1,
        &["cannot keep commands", "22023", "HINT:  Log values"],
    );
}
