//! `kiln check` as people run it.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use kiln_platform::{file, thread, time};

/// No run takes as long: what was checked before one that hangs is told, and so which one it is.
const PATIENCE_S: u64 = 300;

fn kiln(arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kiln"))
        .arg("check")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let stdout = collect(child.stdout.take().expect("it is a pipe"));
    let stderr = collect(child.stderr.take().expect("it is a pipe"));
    let latest = time::now_ns() + PATIENCE_S * 1_000_000_000;
    let (status, hung) = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break (status, false);
        }
        if time::now_ns() > latest {
            child.kill().expect("it can be killed");
            break (child.wait().expect("it has ended"), true);
        }
        thread::sleep(10_000_000);
    };
    let output = Output {
        status,
        stdout: stdout.join().expect("it is read"),
        stderr: stderr.join().expect("it is read"),
    };
    assert!(
        !hung,
        "still running after {PATIENCE_S} s; so far:\n{}{}",
        self::stdout(&output),
        self::stderr(&output)
    );
    output
}

/// Reads all that a program prints, in a thread.
fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    let read = move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("a pipe is read");
        bytes
    };
    thread::spawn("output", read).expect("a thread starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn every_protocol_is_serializable_on_anomalies() {
    let output = kiln(&["--seconds", "0.2", "--threads", "3", "--keys", "6"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    for protocol in [
        "serial, 1 thread",
        "silo, 3 threads",
        "silo+cu+ts, 3 threads",
        "2pl-no-wait, 3 threads",
    ] {
        assert!(
            text.contains(&format!("anomalies under {protocol}")),
            "{text}"
        );
    }
    let protocols = kiln::Configuration::serializable().count();
    let matches = |line: &str| text.matches(line).count();
    assert_eq!(matches("serializable: yes ("), protocols, "{text}");
    assert_eq!(matches("audit: passed"), protocols, "{text}");
}

#[test]
fn a_run_ends_when_a_log_is_full() {
    let output = kiln(&[
        "smallbank",
        "--accounts",
        "10",
        "--protocol",
        "silo",
        "--threads",
        "2",
        "--seconds",
        "600",
        "--limit-mb",
        "1",
    ]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(
        text.contains("The run ended early: a log was full"),
        "{text}"
    );
}

#[test]
fn a_history_that_takes_too_much_memory_is_refused() {
    let path = scratch("large.history");
    let path_text = path.display().to_string();
    let output = kiln(&[
        "--protocol",
        "serial",
        "--seconds",
        "0.3",
        "--save",
        &path_text,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = kiln(&["--history", &path_text, "--memory-mb", "4"]);
    let text = stderr(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("takes more memory than"), "{text}");
    assert!(text.contains("more with --memory-mb"), "{text}");
}

#[test]
fn a_history_is_kept_and_judged_again() {
    let path = scratch("kept.history");
    let path_text = path.display().to_string();
    let output = kiln(&[
        "--protocol",
        "silo",
        "--seconds",
        "0.1",
        "--threads",
        "2",
        "--save",
        &path_text,
    ]);
    let first = stdout(&output);
    assert!(output.status.success(), "{first}{}", stderr(&output));
    let output = kiln(&["--history", &path_text]);
    let second = stdout(&output);
    assert!(output.status.success(), "{second}{}", stderr(&output));
    let verdict = |text: &str| {
        let line = text.lines().find(|line| line.contains("serializable: yes"));
        line.map(str::to_owned)
    };
    assert!(verdict(&first).is_some());
    assert_eq!(verdict(&first), verdict(&second));
    assert!(
        second.starts_with("anomalies under silo, from "),
        "{second}"
    );

    // One version of one read becomes another: its checksum is right, but it is not what happened.
    let mut history = kiln_history::History::load(&path).unwrap();
    let mut changed = false;
    for words in &mut history.logs {
        let mut reader = kiln_history::LogReader::new(words);
        let mut last = None;
        let mut in_attempt = None;
        loop {
            let at = reader.position();
            match reader.next() {
                None => break,
                Some(Ok(kiln_history::Event::Begin { .. })) => in_attempt = None,
                Some(Ok(kiln_history::Event::Read { .. })) => in_attempt = in_attempt.or(Some(at)),
                Some(Ok(kiln_history::Event::Commit { .. })) => last = last.or(in_attempt),
                Some(_) => {}
            }
        }
        if let Some(at) = last {
            words[at + 2] += 1 << 50;
            changed = true;
        }
    }
    assert!(changed);
    history.save(&path).unwrap();
    let output = kiln(&["--history", &path_text]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("serializable: no ("), "{text}");
    assert!(text.contains("unknown version"), "{text}");
}

#[test]
fn files_that_are_no_histories_are_one_clear_error() {
    let text_file = scratch("no.history");
    file::write(&text_file, b"SELECT 1;\n").unwrap();
    let missing = scratch("missing.history");
    for (path, message) in [
        (&text_file, "not a history file"),
        (&missing, "No such file or directory"),
    ] {
        let output = kiln(&["--history", &path.display().to_string()]);
        assert_eq!(output.status.code(), Some(1));
        let text = stderr(&output);
        assert!(text.contains(message), "{text}");
        assert!(text.contains(&path.display().to_string()), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    for (arguments, message) in [
        (&["--threads", "0"][..], "1..="),
        (&["--protocol", "hope"], "possible values: serial"),
        (&["tpcd"], "possible values: tpcc"),
        (
            &["--history", "x", "--keys", "3"],
            "do not go together with --history",
        ),
    ] {
        let output = kiln(arguments);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}
