//! `kiln serve` with PostgreSQL's own clients, psql and pgbench; where they are missing a word says
//! so.

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
        Server::start_with(data, &[])
    }

    fn start_with(data: &Path, arguments: &[&str]) -> Server {
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
            .args(arguments)
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

const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/ca.pem");
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/key.pem");

#[test]
fn psql_proves_who_it_is_and_is_encrypted() {
    if program("psql").is_none() {
        return println!("skipped: there is no psql");
    }
    let directory = temporary();
    let data = directory.path().join("data");
    let arguments = ["--tls-cert", CERTIFICATE, "--tls-key", KEY];
    let server = Server::start_with(&data, &arguments);
    let plain = |role: &str, password: &str, more: &str, text: &str| {
        let target =
            format!("user={role} password={password} dbname=kiln sslrootcert={AUTHORITY} {more}");
        server.psql(&["-d", &target, "-c", text])
    };
    // Before there is a password, with and without encryption; a fresh database asks for none.
    for mode in ["disable", "require", "verify-ca"] {
        let answer = plain("kiln", "", &format!("sslmode={mode}"), "SELECT 1");
        assert_eq!(answer, "1\n", "{mode}");
    }
    let script = "CREATE TABLE item (id INT PRIMARY KEY, stock INT); INSERT INTO item VALUES (1, 9);
        CREATE PROCEDURE take(OUT rest INT) LANGUAGE plpgsql SECURITY DEFINER AS
            $$ BEGIN UPDATE item SET stock = stock - 1 WHERE id = 1 RETURNING stock INTO rest; END $$;
        CREATE ROLE app LOGIN PASSWORD 'correct horse'";
    let answer = plain("kiln", "", "", script);
    assert!(answer.contains("no superuser has one"), "{answer}");
    let password = "'correct horse'";
    for more in [
        "sslmode=disable",
        "sslmode=require channel_binding=require",
        "host=localhost hostaddr=127.0.0.1 sslmode=verify-full channel_binding=require",
    ] {
        let answer = plain("app", password, more, "CALL take(NULL)");
        assert!(
            answer.parse::<i32>().is_err() && answer.trim().parse::<i32>().is_ok(),
            "{more}: {answer}"
        );
    }
    for (role, password, part) in [
        (
            "app",
            "'wrong horse'",
            "password authentication failed for user \"app\"",
        ),
        (
            "kiln",
            "x",
            "password authentication failed for user \"kiln\"",
        ),
        (
            "ada",
            "x",
            "password authentication failed for user \"ada\"",
        ),
    ] {
        for mode in ["disable", "require"] {
            let answer = plain(role, password, &format!("sslmode={mode}"), "SELECT 1");
            assert!(answer.contains(part), "{answer}");
        }
    }
    let answer = plain("app", password, "", "SELECT * FROM item");
    assert!(
        answer.contains("permission denied for table item"),
        "{answer}"
    );
    // A large answer and a large statement, both under encryption.
    let long = format!(
        "SELECT length('{}'), repeat('x', 3000000)",
        "y".repeat(100_000)
    );
    let answer = plain("app", password, "sslmode=require", &long);
    assert_eq!(answer.len(), "100000|\n".len() + 3_000_000);
    // It keeps the roles, and has a role change its own password.
    drop(server);
    let server = Server::start_with(&data, &["--auth", "password"]);
    let target = format!("user=app password={password} dbname=kiln");
    let change = [
        "-d",
        &target,
        "-c",
        "ALTER ROLE CURRENT_USER PASSWORD 'battery'",
    ];
    assert_eq!(server.psql(&change), "ALTER ROLE\n");
    assert!(
        server
            .psql(&change)
            .contains("password authentication failed")
    );
    let target = "user=app password=battery dbname=kiln sslmode=prefer";
    assert_eq!(server.psql(&["-d", target, "-c", "CALL take(NULL)"]), "5\n");
}

/// The descriptions of psql that are compared with those of PostgreSQL.
const DESCRIPTIONS: [&str; 31] = [
    "\\d",
    "\\d items",
    "\\d+ items",
    "\\d orders",
    "\\d lines",
    "\\d plain",
    "\\d items_pkey",
    "\\d orders_day",
    "\\dt",
    "\\dt public.*",
    "\\di",
    "\\dv",
    "\\ds",
    "\\dm",
    "\\df",
    "\\df+ total",
    "\\sf rows_of",
    "\\dn",
    "\\dn+",
    "\\du",
    "\\dT",
    "\\dp",
    "\\dp items",
    "\\dp free",
    "\\d numbered",
    "\\d free",
    "\\d numbered_id_seq",
    "\\d numbered_other_seq",
    "\\ds",
    "\\dD",
    "\\d nothing",
];

/// `\\d` and its kin print of the same tables what they print with PostgreSQL. What Kiln's SQL does
/// not have yet is refused by name.
#[test]
fn psql_describes_what_there_is() {
    let postgres = std::env::var("KILN_TEST_POSTGRES").unwrap_or_default();
    if program("psql").is_none() || postgres.is_empty() {
        return println!("skipped: there is no psql, or KILN_TEST_POSTGRES names no server");
    }
    let schema = include_str!("postgres/catalogs/schema.sql");
    let theirs = format!("kiln_describe_{}", std::process::id());
    let psql = |target: &str, arguments: &[&str]| {
        let output = Command::new(program("psql").expect("it was found before"))
            .args(["-X", "-q", "-d", target])
            .args(arguments)
            .output()
            .expect("it can be run");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("it prints text")
    };
    psql(&postgres, &["-c", &format!("CREATE DATABASE {theirs}")]);
    psql(&postgres, &["-c", "DROP ROLE IF EXISTS kiln_catalogs_shop"]);
    let target = format!("{postgres} dbname={theirs}");
    let directory = temporary();
    let server = Server::start(&directory.path().join("data"));
    let ours = format!("host=127.0.0.1 port={} user=kiln dbname=kiln", server.port);
    let made = psql(&ours, &["-c", schema]);
    assert_eq!(made, psql(&target, &["-c", schema]), "the schema is made");
    let mut differences = String::new();
    let mut refused = Vec::new();
    for description in DESCRIPTIONS {
        let (ours, theirs) = (
            psql(&ours, &["-c", description]),
            psql(&target, &["-c", description]),
        );
        if ours.contains("is not supported") {
            refused.push(description);
        } else if ours != theirs {
            differences += &format!("{description}\nKiln:\n{ours}\nPostgreSQL:\n{theirs}\n");
        }
    }
    psql(&postgres, &["-c", &format!("DROP DATABASE {theirs}")]);
    psql(&postgres, &["-c", "DROP ROLE IF EXISTS kiln_catalogs_shop"]);
    assert!(differences.is_empty(), "{differences}");
    println!("refused: {refused:?}");
}

/// `kiln sql --connect` there; what it prints on both channels, and whether it succeeded.
fn connected(url: &str, arguments: &[&str]) -> (String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_kiln"))
        .args(["sql", "--connect", url])
        .args(arguments)
        .env_remove("PGPASSWORD")
        .output()
        .expect("the command was built");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("it prints text");
    (text, output.status.success())
}

/// A script, and what it prints wherever it runs.
const SHELL: &str = "CREATE TABLE shell (id INT PRIMARY KEY, name TEXT, price NUMERIC(8, 2));
INSERT INTO shell VALUES (1, 'one', 1.5), (22, NULL, 20), (3, E'two\\nlines', NULL);
SELECT * FROM shell ORDER BY id;
BEGIN;
UPDATE shell SET name = 'é' WHERE id = 1 RETURNING id, name, now() = now() AS same;
ROLLBACK;
COPY (SELECT * FROM shell ORDER BY id) TO STDOUT;
DO $$ BEGIN RAISE NOTICE 'free: %', 7; END $$;
SELECT 1
  + nothing;
INSERT INTO shell VALUES (1);
COPY shell FROM STDIN;
DROP TABLE shell";
const SHELL_PRINTS: &str = r#"CREATE TABLE
INSERT 0 3
 id | name  | price~
----+-------+-------
  1 | one   |  1.50
  3 | two  +|~~~~~~
    | lines |~~~~~~
 22 |       | 20.00
(3 rows)

BEGIN
 id | name | same~
----+------+------
  1 | é    | t
(1 row)

UPDATE 1
ROLLBACK
1	one	1.50
3	two\nlines	\N
22	\N	20.00
COPY 3
DO
DROP TABLE
NOTICE:  free: 7
<command>:10:5: ERROR 42703: column "nothing" does not exist
    + nothing;
      ^
<command>:11:1: ERROR 23505: duplicate key value violates unique constraint "shell_pkey"
DETAIL:  Key (id)=(1) already exists.
<command>:12:1: ERROR 57014: COPY from stdin failed: there are no data in a statement
"#;

#[test]
fn the_shell_talks_to_servers_of_kiln_and_of_postgresql() {
    let directory = temporary();
    let data = directory.path().join("data");
    // The path of a socket is short.
    let sockets = TemporaryDirectory::within(Path::new("/tmp"), "kiln").expect("it is there");
    let sockets = sockets.path().to_str().expect("the path is text");
    let arguments = [
        "--tls-cert",
        CERTIFICATE,
        "--tls-key",
        KEY,
        "--socket-dir",
        sockets,
    ];
    let server = Server::start_with(&data, &arguments);
    let url = format!("postgresql://kiln@127.0.0.1:{}/kiln", server.port);
    let script = ["--continue-on-error", "-c", SHELL];
    // Blanks at the ends of lines.
    let prints = SHELL_PRINTS.replace('~', " ");
    assert_eq!(connected(&url, &script), (prints.clone(), false));
    let password = "ALTER ROLE kiln PASSWORD 'correct horse'";
    assert_eq!(connected(&url, &["-c", password]).0, "ALTER ROLE\n");
    let place = format!("kiln:correct%20horse@localhost:{}/kiln", server.port);
    for url in [
        format!("postgresql://{place}?sslmode=disable"),
        format!("postgresql://{place}"),
        format!("postgresql://{place}?sslmode=require&application_name=shell"),
        format!("postgresql://{place}?sslmode=verify-ca&sslrootcert={AUTHORITY}"),
        format!("postgresql://{place}?sslmode=verify-full&sslrootcert={AUTHORITY}"),
    ] {
        let query = ["--csv", "-c", "SELECT current_user AS who"];
        assert_eq!(connected(&url, &query).0, "who\nkiln\n", "{url}");
    }
    for (url, part) in [
        (url.clone(), "wants a password"),
        (
            url.replace("kiln@", "kiln:wrong@"),
            "password authentication failed for user \"kiln\"",
        ),
        (
            format!("postgresql://{place}?sslmode=verify-full&sslrootcert={CERTIFICATE}"),
            "certificate",
        ),
        (
            format!("postgresql://{place}?sslmode=verify-full"),
            "sslrootcert=FILE",
        ),
        (
            "postgresql://127.0.0.1:1".to_owned(),
            "cannot connect to 127.0.0.1:1",
        ),
        ("kiln".to_owned(), "begins with postgresql://"),
    ] {
        let (text, succeeded) = connected(&url, &["-c", "SELECT 1"]);
        assert!(text.contains(part) && !succeeded, "{url}: {text}");
    }
    drop(server);
    let Ok(postgres) = std::env::var("KILN_TEST_POSTGRES") else {
        return println!("skipped: there is no PostgreSQL to compare with");
    };
    let parameters = postgres.split(' ').collect::<Vec<_>>().join("&");
    let url = format!("postgresql://?{parameters}");
    assert_eq!(connected(&url, &script), (prints, false));
    assert!(connected(&url, &["-c", "\\d"]).1);
}

/// The disk behind a server fills up: what writes is refused, and what reads goes on.
#[test]
fn a_full_disk_refuses_writes_and_reads_go_on() {
    if program("psql").is_none() {
        return println!("skipped: there is no psql");
    }
    let directory = temporary();
    let data = directory.path();
    let mount = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).arg(data).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount("mount", &["-t", "tmpfs", "-o", "size=140m", "kiln-test"]) {
        return println!("skipped: no file system can be mounted");
    }
    let server = Server::start(&data.join("data"));
    let script =
        "CREATE TABLE item (id INT PRIMARY KEY, text TEXT); INSERT INTO item VALUES (1, 'x')";
    server.psql(&["-c", script]);
    // Until the log wants a third segment of 64 MiB.
    let full = (1..12).find_map(|round| {
        let fill = format!(
            "INSERT INTO item SELECT {round}0000 + i, repeat('x', 2000) FROM generate_series(1, 10000) AS i"
        );
        let told = server.psql(&["-v", "VERBOSITY=verbose", "-c", &fill]);
        told.contains("ERROR").then_some(told)
    });
    let full = full.unwrap_or_default();
    let reads = server.psql(&["-c", "SELECT text FROM item WHERE id = 1"]);
    let update = "UPDATE item SET text = 'y'";
    let writes = server.psql(&["-v", "VERBOSITY=verbose", "-c", update]);
    drop(server);
    assert!(mount("umount", &[]), "it is free again");
    assert!(full.contains("53100"), "{full}");
    assert_eq!(reads, "x\n");
    assert!(writes.contains("53100"), "{writes}");
}

#[test]
fn mistakes_are_named() {
    for (arguments, part) in [
        (&["--listen", "here"][..], "invalid socket address"),
        (&["--auth", "me"], "it is automatic, trust or password"),
        (&["--tls-cert", CERTIFICATE], "--tls-key"),
        (
            &["--tls-cert", CERTIFICATE, "--tls-key", "/nowhere"],
            "cannot read /nowhere",
        ),
        (
            &["--tls-cert", KEY, "--tls-key", KEY],
            "the file of the certificate has none",
        ),
        (
            &["--tls-cert", AUTHORITY, "--tls-key", KEY],
            "certificate and key",
        ),
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
