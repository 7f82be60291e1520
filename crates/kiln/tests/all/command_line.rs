//! The `kiln` command as its users meet it: output, errors, exit codes.

use std::path::{Path, PathBuf};

use kiln_platform::file;
use kiln_workloads::Workload;

use crate::command::{assert_ends, err, kiln, kiln_reading, out};

/// A path for a file of this test run.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn help_and_version_name_the_commands() {
    let help = kiln(&["--help"]);
    assert_ends(&help, 0);
    for word in ["bench", "sql", "explain"] {
        assert!(out(&help).contains(word), "{word}");
    }
    let version = kiln(&["--version"]);
    assert_ends(&version, 0);
    assert_eq!(
        out(&version),
        format!("kiln {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn mistakes_in_arguments_end_with_exit_code_2_and_what_is_possible() {
    for (arguments, part) in [
        (&["bench", "tpcd"][..], "possible values: tpcc, smallbank"),
        (&["bench", "tpcc", "--threads", "0"], "1..="),
        (
            &["bench", "tpcc", "--protocol", "hope"],
            "possible values: serial, ",
        ),
        (
            &["bench", "tpcc", "--theta", "1"],
            "tpcc has no option \"theta\"",
        ),
        (&["bench", "smallbank", "--theta", "x"], "theta is \"x\""),
        (&["bench", "tpcc", "--nonsense"], "--nonsense"),
        (
            &[
                "bench",
                "tpcc",
                "--protocol",
                "silo,occ",
                "--cc-threads",
                "1",
            ],
            "--cc-threads is an option of orthrus, orthrus-shared, and the protocols asked for are silo, occ",
        ),
        (
            &[
                "bench",
                "tpcc",
                "--protocol",
                "orthrus-shared,silo",
                "--partitioning",
                "balanced",
            ],
            "--partitioning is an option of orthrus, vll-single, dora, and the protocols asked for are orthrus-shared, silo",
        ),
        (
            &[
                "bench",
                "tpcc",
                "--protocol",
                "silo",
                "--access-cache",
                "off",
            ],
            "--access-cache is an option of healing",
        ),
        (
            &[
                "bench",
                "tpcc",
                "--protocol",
                "2pl-no-wait,lock-atomic",
                "--lock-queue",
                "fifo",
            ],
            "--lock-queue is an option of 2pl-wait-die, 2pl-wait-for-graph, 2pl-dreadlocks, lock-sorted, and the protocols asked for are 2pl-no-wait, lock-atomic",
        ),
        (
            &[
                "bench",
                "tpcc",
                "--protocol",
                "lock-sorted,strife",
                "--claims",
                "columns",
            ],
            "claims by column group are there for lock-sorted, ",
        ),
        (
            &["bench", "tpcc", "--protocol", "tictoc+cu+sweeps"],
            "tictoc has the option \"+sweeps\" behind \"+ts\" alone",
        ),
        (&["explain", "--workload", "tpcd"], "tpcd"),
        (&["fly"], "fly"),
        (&["serve", "--connections", "0"], "--connections"),
    ] {
        let output = kiln(arguments);
        assert_ends(&output, 2);
        assert!(
            err(&output).contains(part),
            "{arguments:?}: {}",
            err(&output)
        );
        assert_eq!(out(&output), "", "{arguments:?}");
    }
}

#[test]
fn the_list_names_workloads_options_and_protocols() {
    let list = kiln(&["bench", "--list"]);
    assert_ends(&list, 0);
    for part in [
        "tpcc",
        "smallbank",
        "--warehouses 1",
        "--theta 0",
        "silo",
        "2pl-no-wait",
    ] {
        assert!(out(&list).contains(part), "{part}");
    }
}

#[test]
fn an_unwritable_result_is_refused_before_the_run() {
    let path = scratch("no such directory").join("result.json");
    let output = kiln(&["bench", "tpcc", "--json", &path.display().to_string()]);
    assert_ends(&output, 1);
    assert_eq!(err(&output).lines().count(), 1, "{}", err(&output));
    assert!(
        err(&output).contains("no such directory"),
        "{}",
        err(&output)
    );
    assert_eq!(out(&output), "", "nothing was run");
}

/// A short benchmark; returns the rows of its JSON.
fn bench(name: &str, arguments: &[&str]) -> Vec<serde_json::Value> {
    let path = scratch(&format!("{name}.json"));
    let path = path.display().to_string();
    let common = [
        "--warmup",
        "0.1",
        "--seconds",
        "0.3",
        "--repeat",
        "2",
        "--json",
        &path,
    ];
    let output = kiln(&[&["bench"], arguments, &common].concat());
    assert_ends(&output, 0);
    for part in ["committed/s", "p99.9", "Audit: passed", "execute", "Loaded"] {
        assert!(out(&output).contains(part), "{part}: {}", out(&output));
    }
    let text = file::read_to_string(Path::new(&path)).expect("the result was written");
    let rows = serde_json::from_str::<serde_json::Value>(&text).expect("the result is JSON");
    rows.as_array()
        .expect("the result is a list of rows")
        .clone()
}

#[track_caller]
fn check_row(row: &serde_json::Value, workload: &str, procedures: &[&str]) {
    assert_eq!(row["workload"], workload);
    assert_eq!(row["audit"], "passed", "{row:#}");
    assert!(row["committed_per_s"].as_f64().expect("a number") > 0.0);
    assert!(row["aborts_per_commit"].as_f64().expect("a number") >= 0.0);
    assert_eq!(
        row["committed_per_s_runs"]
            .as_array()
            .expect("a list")
            .len(),
        2
    );
    for key in ["cpu", "cores", "os", "date"] {
        assert!(!row["machine"][key].is_null(), "{key}");
    }
    // Two rows can be compared when they agree in these.
    for key in [
        "threads",
        "seconds",
        "warmup_seconds",
        "repeat",
        "seed",
        "reserve_mib",
    ] {
        assert!(row[key].is_number(), "{key}");
    }
    for key in [
        "backoff",
        "indexes",
        "batch-size",
        "partitioning",
        "validation-order",
    ] {
        assert!(row["basis_factors"][key].is_string(), "{key}");
    }
    assert_eq!(row["build"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(row["build"]["records_histories"].is_boolean());
    for procedure in procedures {
        let latency = &row["latency_us"][procedure];
        let value = |key: &str| {
            latency[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {row:#}"))
        };
        assert!(value("p50") > 0.0);
        for pair in ["p50", "p95", "p99", "p999"].windows(2) {
            assert!(value(pair[0]) <= value(pair[1]), "{procedure}: {latency}");
        }
    }
}

#[test]
fn tpcc_runs_under_every_protocol_and_passes_its_audit() {
    let scale = ["tpcc", "--items", "1000", "--customers-per-district", "30"];
    let rows = bench(
        "tpcc",
        &[&scale[..], &["--warehouses", "2", "--threads", "1,2"]].concat(),
    );
    let points: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["protocol"].as_str().unwrap_or("?"),
                row["threads"].as_u64().unwrap_or(0),
            )
        })
        .collect();
    assert_eq!(
        points,
        [
            ("silo+cu+ts", 1),
            ("silo+cu+ts", 2),
            ("serial", 1),
            ("2pl-no-wait", 1),
            ("2pl-no-wait", 2)
        ]
    );
    for row in &rows {
        assert_eq!(row["warehouses"], 2);
        check_row(row, "tpcc", &["new_order", "payment"]);
    }
}

/// The small form of each workload, by its options on the command line.
#[test]
fn every_workload_is_benched_and_passes_its_audit() {
    for workload in Workload::all() {
        let name = workload.name();
        // SmallBank's hot set is another choice than its skew.
        let options = workload.small().options().into_iter();
        let options = options.filter(|option| option.name != "hot-percent");
        let flags = options.map(|option| format!("--{}={}", option.name, option.value));
        let words = [name, "--protocol=silo", "--threads=2", "--reserve=0"];
        let words: Vec<String> = words.map(str::to_owned).into_iter().chain(flags).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let rows = bench(&format!("every-{name}"), &words);
        assert_eq!(rows.len(), 1, "{name}");
        for row in &rows {
            check_row(row, name, &[]);
        }
    }
}

#[test]
fn more_threads_than_cores_work_and_are_called_oversubscribed() {
    let threads = (kiln_platform::thread::available_cores() * 2).to_string();
    let options = [
        "--theta",
        "0.9",
        "--protocol",
        "silo,2pl-no-wait",
        "--threads",
        &threads,
    ];
    let rows = bench(
        "smallbank",
        &[&["smallbank", "--accounts", "1000"], &options[..]].concat(),
    );
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(row["oversubscribed"], true);
        assert!(row["warehouses"].is_null());
        check_row(row, "smallbank", &["balance", "send_payment"]);
    }
}

#[test]
fn scripts_print_as_their_golden_files_say() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut checked = 0;
    for path in file::list(&scripts).expect("the scripts can be listed") {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let format = match extension {
            Some("csv") => Some("--csv"),
            Some("txt") => None,
            _ => continue,
        };
        let expected = file::read_to_string(&path).expect("a golden file can be read");
        let script = path.with_extension("sql").display().to_string();
        let mut arguments = vec!["sql", "--continue-on-error", "-f", &script];
        arguments.extend(format);
        let output = kiln(&arguments);
        assert_eq!(
            out(&output),
            expected,
            "{}: {}",
            path.display(),
            err(&output)
        );
        checked += 1;
    }
    assert!(checked >= 2, "only {checked} golden files were found");
}

#[test]
fn a_script_stops_at_its_first_error_unless_told_to_go_on() {
    let script = "SELECT 1 AS one;\nSELECT 1 / 0;\nSELECT 2 AS two;\n";
    let output = kiln_reading(&["sql", "--csv"], script);
    assert_ends(&output, 1);
    assert_eq!(out(&output), "one\n1\n");
    assert!(err(&output).starts_with("<stdin>:2:"), "{}", err(&output));
    assert!(err(&output).contains("22012"), "{}", err(&output));
    let output = kiln_reading(&["sql", "--csv", "--continue-on-error"], script);
    assert_ends(&output, 1);
    assert_eq!(out(&output), "one\n1\ntwo\n2\n");
}

#[test]
fn a_protocol_that_does_not_serialize_runs_only_where_it_is_allowed() {
    let statement = ["-c", "SELECT 1 AS one", "--csv"];
    let sql = |options: &[&str]| kiln(&[&["sql"], options, &statement].concat());
    for protocol in ["none", "silo-unchecked", "occ-unchecked"] {
        let refused = sql(&["--protocol", protocol]);
        assert_ends(&refused, 1);
        assert_eq!(out(&refused), "");
        for word in [protocol, "does not serialize", "--allow-unserializable"] {
            assert!(err(&refused).contains(word), "{word}: {}", err(&refused));
        }
        let allowed = sql(&["--protocol", protocol, "--allow-unserializable"]);
        assert_ends(&allowed, 0);
        assert_eq!(out(&allowed), "one\n1\n");
    }
    assert_ends(&sql(&["--protocol", "2pl-no-wait"]), 0);
}

#[test]
fn files_and_statements_share_a_database_in_their_order() {
    let path = scratch("order.sql");
    file::write(&path, b"INSERT INTO t VALUES (2);\n").expect("a scratch file can be written");
    let path = path.display().to_string();
    let output = kiln(&[
        "sql",
        "-c",
        "CREATE TABLE t (id INTEGER PRIMARY KEY)",
        "-f",
        &path,
        "--csv",
        "-c",
        "SELECT * FROM t",
    ]);
    assert_ends(&output, 0);
    assert_eq!(out(&output), "id\n2\n");
}

#[test]
fn missing_files_are_one_clear_error() {
    for arguments in [
        &["sql", "-f", "nowhere.sql"][..],
        &["explain", "-f", "nowhere.sql", "p"],
    ] {
        let output = kiln(arguments);
        assert_ends(&output, 1);
        assert_eq!(err(&output).lines().count(), 1, "{}", err(&output));
        assert!(err(&output).contains("nowhere.sql"), "{}", err(&output));
    }
}

#[test]
fn syntax_errors_point_at_their_line_and_column() {
    let output = kiln_reading(&["sql"], "\n  SELEKT 1;\n");
    assert_ends(&output, 1);
    let text = err(&output);
    assert!(text.starts_with("<stdin>:2:3: ERROR 42601: "), "{text}");
    assert!(text.contains("\n    SELEKT 1;\n    ^\n"), "{text}");
}

#[test]
fn the_catalog_is_described() {
    let script = "CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL UNIQUE,
        balance NUMERIC(12, 2) DEFAULT 0 CHECK (balance >= 0));
    CREATE PROCEDURE pay(payer INTEGER, OUT rest NUMERIC) LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE account SET balance = balance - 1 WHERE id = payer RETURNING balance INTO rest;
    END $$;
\\d
\\d account
\\df
\\d nothing
";
    let output = kiln_reading(&["sql", "-q", "--continue-on-error"], script);
    assert_ends(&output, 1);
    for part in [
        "account",
        "numeric(12,2)",
        "not null",
        "PRIMARY KEY",
        "CHECK",
        "pay",
        "payer",
    ] {
        assert!(out(&output).contains(part), "{part}: {}", out(&output));
    }
    assert!(
        err(&output).contains("there is no table \"nothing\""),
        "{}",
        err(&output)
    );
}

#[test]
fn notices_go_to_standard_error() {
    let script = "DO $$ BEGIN RAISE NOTICE 'seen %', 7; END $$;";
    let output = kiln_reading(&["sql", "-q"], script);
    assert_ends(&output, 0);
    assert_eq!(
        (out(&output).as_str(), err(&output).as_str()),
        ("", "NOTICE:  seen 7\n")
    );
}

#[test]
fn bundled_procedures_are_explained_by_name() {
    let output = kiln(&["explain", "payment"]);
    assert_ends(&output, 0);
    for part in ["payment(", "footprint", "update warehouse", "w_ytd"] {
        assert!(out(&output).contains(part), "{part}: {}", out(&output));
    }
    let graph = kiln(&["explain", "--dot", "--workload", "smallbank", "balance"]);
    assert_ends(&graph, 0);
    assert!(out(&graph).starts_with("digraph"), "{}", out(&graph));
    let unknown = kiln(&["explain", "paiment"]);
    assert_ends(&unknown, 1);
    for part in ["paiment", "new_order", "send_payment"] {
        assert!(err(&unknown).contains(part), "{part}: {}", err(&unknown));
    }
}
