//! The anomalies that serializability excludes, step by step: those of Adya's thesis (*Weak
//! Consistency: A Generalized Theory and Optimistic Implementations for Distributed Transactions*,
//! MIT 1999), the cases that Kleppmann's Hermitage tries on databases, and a few that only engines
//! with indexes and constraints can have.
//!
//! Each script of `scripts/anomalies/` runs through sessions of the database under every protocol.
//! A protocol is free to make a transaction wait or to abort it when it likes. Whatever it does,
//! the anomaly must not happen, and the transactions that committed must have got the answers, and
//! left the rows, that they would have got and left one after the other; that is tried out in every
//! order. What happened exactly is compared with `scripts/anomalies/golden/PROTOCOL.txt`, so that
//! no protocol changes its ways unnoticed. After a change that is meant:
//!
//! ```text
//! cargo test -p kiln --test anomalies -- --ignored rewrite_golden_files
//! ```

mod runner;
mod script;
mod sessions;
mod subject;
mod transcript;

use std::path::{Path, PathBuf};

use kiln::Configuration;
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::{file, thread};

use runner::run;
use script::Script;
use subject::Subject;
use transcript::{difference, transcript};

/// Fewer scripts than this mean that files were lost.
const SCRIPTS_MIN: usize = 20;

/// Adya's names that must all have a script.
const ANOMALIES: [&str; 11] = [
    "G0", "G1a", "G1b", "G1c", "OTV", "PMP", "P4", "G-single", "G-update", "G2-item", "G2",
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/anomalies")
}

fn golden(protocol: Configuration) -> PathBuf {
    directory().join("golden").join(format!("{protocol}.txt"))
}

fn scripts() -> Vec<Script> {
    let mut scripts = Vec::new();
    for path in file::list(&directory()).expect("the scripts are beside the tests") {
        if path
            .extension()
            .is_none_or(|extension| extension != "script")
        {
            continue;
        }
        let text = file::read_to_string(&path).expect("the script can be read");
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        match Script::parse(&name, &text) {
            Ok(script) => scripts.push(script),
            Err(mistake) => panic!("{}:{mistake}", path.display()),
        }
    }
    assert!(scripts.len() >= SCRIPTS_MIN, "{} scripts", scripts.len());
    scripts
}

/// Protocols tried at the same time: most of the time a script pauses to see which session waits.
const AT_ONCE: usize = 6;

/// Runs all scripts under every protocol: what happened, and what should not have.
fn run_all() -> Vec<(Configuration, String, Vec<String>)> {
    let protocols: Vec<Configuration> = Configuration::serializable().collect();
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(protocol) = protocols.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (text, complaints) = run_under(*protocol);
                    lock(&results).push((*protocol, text, complaints));
                }
            });
        }
    });
    results.into_inner().expect("no thread panicked")
}

/// Runs all scripts under a protocol.
fn run_under(protocol: Configuration) -> (String, Vec<String>) {
    let (mut text, mut complaints) = (String::new(), Vec::new());
    for script in scripts() {
        match run(&script, Subject::Protocol(protocol)) {
            Ok(run) => {
                let happened = transcript(&script, &run);
                for complaint in run.complaints(&script) {
                    complaints.push(format!("{protocol}: {complaint}\n{happened}"));
                }
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&happened);
            }
            Err(failure) => complaints.push(format!("{protocol}: {}: {failure}", script.name)),
        }
    }
    (text, complaints)
}

#[test]
fn no_protocol_lets_an_anomaly_happen() {
    let mut failures = Vec::new();
    for (protocol, text, complaints) in run_all() {
        failures.extend(complaints);
        let path = golden(protocol);
        let expected = file::read_to_string(&path).unwrap_or_default();
        if let Some(difference) = difference(&expected, &text) {
            failures.push(format!("{}: {difference}", path.display()));
        }
    }
    assert!(
        failures.is_empty(),
        "{}\n\nIf a protocol is meant to behave otherwise now, or is new: \
         cargo test -p kiln --test anomalies -- --ignored rewrite_golden_files",
        failures.join("\n\n")
    );
}

#[test]
#[ignore = "rewrites the golden files; run it after a change that is meant"]
fn rewrite_golden_files() {
    for (protocol, text, complaints) in run_all() {
        assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
        file::write(&golden(protocol), text.as_bytes()).expect("the file can be written");
    }
}

#[test]
fn every_anomaly_has_a_script() {
    let scripts = scripts();
    for name in ANOMALIES {
        assert!(
            scripts.iter().any(|script| script.anomaly == name),
            "{name}"
        );
    }
}

/// Each script is able to fail: it does so when statements are transactions of their own.
#[test]
fn every_anomaly_happens_without_transactions() {
    let mut missed = Vec::new();
    for script in scripts() {
        let run = run(&script, Subject::WithoutBlocks).expect("nothing waits");
        let happened = transcript(&script, &run);
        if run.anomaly(&script).is_none() {
            missed.push(format!("the anomaly did not happen:\n{happened}"));
        }
        if run.order.is_some() {
            missed.push(format!("a serial order was found for it:\n{happened}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// A script whose anomaly is what serial execution does, and one that wants too many commits.
#[test]
fn wrong_expectations_are_reported() {
    let text = "title: Nothing wrong\nanomaly: none\ncommits at least: 3\nsetup:\n  \
                CREATE TABLE item (id INTEGER PRIMARY KEY);\nsteps:\n  t1: INSERT INTO item VALUES (1)\n  \
                t2: BEGIN\n  t2: SELECT id FROM item -> seen\n  t2: COMMIT\n\
                final: SELECT id FROM item\nanomaly when: t2 committed and seen = 1\n";
    let script = Script::parse("wrong", text).expect("the text is a script");
    for protocol in Configuration::serializable() {
        let run = run(&script, Subject::Protocol(protocol)).expect("nothing waits");
        let complaints = run.complaints(&script);
        assert_eq!(complaints.len(), 2, "{protocol}: {complaints:?}");
        assert!(complaints[0].starts_with("none happened"), "{complaints:?}");
        assert!(
            complaints[1].starts_with("2 transactions committed"),
            "{complaints:?}"
        );
        let happened = transcript(&script, &run);
        let golden = happened.replace("    1\n", "    2\n");
        assert!(difference(&golden, &happened).is_some(), "{happened}");
    }
}
