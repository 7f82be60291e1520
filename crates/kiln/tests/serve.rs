//! `kiln serve` with PostgreSQL's own clients, psql and pgbench; where they are missing a word says so.

#![cfg(not(kiln_sim))]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::thread;

/// A server in a process of its own.
struct Server {
    process: Child,
    port: String,
}

impl Server {
    /// Serves the directory on a port that the system chooses.
    fn start(data: &Path) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_kiln"))
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--workers",
                "2",
                "--data",
            ])
            .arg(data)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let stderr = process.stderr.take().expect("it is a pipe");
        let mut lines = BufReader::new(stderr).lines();
        let line = loop {
            let line = lines.next().expect("it listens").expect("it is text");
            if let Some(address) = line.strip_prefix("Listening on ") {
                break address.to_owned();
            }
        };
        // What it says later is read, so that it never waits to say it.
        let reader = thread::spawn("reader", move || lines.for_each(drop));
        reader.expect("there is room for a thread");
        let (_, port) = line.rsplit_once(':').expect("an address has a port");
        Server {
            process,
            port: port.to_owned(),
        }
    }

    /// Runs a client of PostgreSQL; what it prints on both channels.
    fn client(&self, name: &str, arguments: &[&str]) -> String {
        let output = Command::new(program(name).expect("it was found before"))
            .args(["-h", "127.0.0.1", "-U", "kiln", "-p", &self.port])
            .args(arguments)
            .env("PGCONNECT_TIMEOUT", "10")
            .output()
            .expect("it can be run");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).expect("it prints text")
    }

    fn psql(&self, arguments: &[&str]) -> String {
        self.client("psql", &[&["-X", "-A", "-t"], arguments].concat())
    }

    /// Sends a signal, and waits for the end.
    fn signal(mut self, signal: &str) -> ExitStatus {
        let number = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &number]).status();
        assert!(sent.expect("it can be run").success());
        self.process.wait().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where a program of PostgreSQL is: on the path, or where Debian has it.
fn program(name: &str) -> Option<String> {
    let is_there = |path: &str| {
        let version = Command::new(path).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let versions = (14..30).rev();
    let places = versions.map(|version| format!("/usr/lib/postgresql/{version}/bin/{name}"));
    std::iter::once(name.to_owned())
        .chain(places)
        .find(|path| is_there(path))
}

fn temporary() -> TemporaryDirectory {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    TemporaryDirectory::within(parent, "kiln-serve").expect("the test may write there")
}

#[test]
fn psql_and_pgbench_work_and_what_they_did_is_kept() {
    let (Some(_), Some(_)) = (program("psql"), program("pgbench")) else {
        return println!("skipped: there is no psql or no pgbench");
    };
    let directory = temporary();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    let script = "CREATE TABLE seats (event INT PRIMARY KEY, free INT NOT NULL, sold INT NOT NULL);
        INSERT INTO seats VALUES (1, 1000000, 0);
        SELECT free, sold, NULL FROM seats";
    let expected = "CREATE TABLE\nINSERT 0 1\n1000000|0|\n";
    assert_eq!(server.psql(&["-c", script]), expected);
    let wrong = server.psql(&["-c", "SELECT fre FROM seats"]);
    assert!(
        wrong.contains("LINE 1: SELECT fre FROM seats\n               ^"),
        "{wrong}"
    );
    let block = [
        "-c",
        "BEGIN",
        "-c",
        "UPDATE seats SET free = 7",
        "-c",
        "ROLLBACK",
    ];
    assert_eq!(server.psql(&block), "BEGIN\nUPDATE 1\nROLLBACK\n");
    let mut done = 0_u64;
    let update = directory.path().join("update.sql");
    let text = "UPDATE seats SET free = free - 1, sold = sold + 1 WHERE event = 1;\n";
    let file = kiln_platform::disk::Directory::open(directory.path()).expect("it is there");
    let file = file.create_file("update.sql").expect("there is room");
    file.write_at(0, text.as_bytes()).expect("there is room");
    let update = update.to_str().expect("the path is text");
    for mode in ["simple", "extended", "prepared"] {
        let report = server.client(
            "pgbench",
            &[
                "-n", "-f", update, "-M", mode, "-c", "8", "-j", "2", "-t", "100", "kiln",
            ],
        );
        assert!(report.contains("processed: 800/800"), "{report}");
        done += 800;
    }
    let seats = || format!("{}|{done}\n", 1_000_000 - done);
    let query = ["-c", "SELECT free, sold FROM seats"];
    assert_eq!(server.psql(&query), seats());
    let stranger = server.client("psql", &["-U", "ada", "-c", "SELECT 1"]);
    assert!(
        stranger.contains("role \"ada\" does not exist"),
        "{stranger}"
    );
    assert!(server.signal("-TERM").success());
    let server = Server::start(&data);
    assert_eq!(server.psql(&query), seats());
    server.psql(&["-c", "UPDATE seats SET free = 1 WHERE event = 1"]);
    server.signal("-KILL");
    let server = Server::start(&data);
    assert_eq!(server.psql(&query), format!("1|{done}\n"));
}

#[test]
fn mistakes_are_named() {
    for (arguments, part) in [
        (
            &["--listen", "0.0.0.0:5432"][..],
            "can be reached from other machines",
        ),
        (&["--listen", "here"], "invalid socket address"),
        (&["--protocol", "none"], "does not serialize transactions"),
        (&["--data", "/dev/null"], "cannot open a database"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_kiln"))
            .arg("serve")
            .args(arguments)
            .output()
            .expect("the command was built");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
    let directory = temporary();
    let server = Server::start(&directory.path().join("data"));
    let output = Command::new(env!("CARGO_BIN_EXE_kiln"))
        .args(["serve", "--listen", &format!("127.0.0.1:{}", server.port)])
        .output()
        .expect("the command was built");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("Another server runs there"), "{stderr}");
}
