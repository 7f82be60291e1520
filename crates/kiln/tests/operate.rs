//! What who runs a server goes by: settings, the log, health; in processes of their own.

#![cfg(not(kiln_sim))]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::{file, thread, time};
use serde_json::Value;

fn kiln() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KILN_")) {
        command.env_remove(name);
    }
    command
}

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = kiln();
    command.args(arguments).envs(variables.iter().copied());
    command.output().expect("the command was built")
}

fn stdout(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

fn stderr(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn temporary() -> TemporaryDirectory {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    TemporaryDirectory::within(parent, "kiln-operate").expect("the test may write there")
}

/// A server in a process of its own, with what it says.
struct Server {
    process: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let mut process = kiln()
            .args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let stderr = process.stderr.take().expect("it is a pipe");
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = lines.clone();
        let reader = thread::spawn("reader", move || {
            for line in BufReader::new(stderr).lines() {
                lock(&kept).push(line.expect("it is text"));
            }
        });
        reader.expect("there is room for a thread");
        Server { process, lines }
    }

    fn lines(&self) -> Vec<String> {
        lock(&self.lines).clone()
    }

    /// The first line with this part, once there is one.
    fn line(&self, part: &str) -> String {
        let until_ns = time::now_ns() + 30_000_000_000;
        loop {
            if let Some(line) = self.lines().into_iter().find(|line| line.contains(part)) {
                return line;
            }
            assert!(
                time::now_ns() < until_ns,
                "no {part} in {:#?}",
                self.lines()
            );
            thread::sleep(10_000_000);
        }
    }

    /// What stands behind this in the line that has it, up to a quotation mark.
    fn behind(&self, part: &str) -> String {
        let line = self.line(part);
        let (_, behind) = line.split_once(part).expect("it has it");
        behind.split('"').next().unwrap_or_default().to_owned()
    }

    fn psql(&self, role: &str, password: &str, text: &str) -> String {
        let address = self.behind("Listening on ");
        let (host, port) = address.rsplit_once(':').expect("it has a port");
        let output = Command::new("psql")
            .args([
                "-X", "-A", "-t", "-h", host, "-p", port, "-U", role, "-c", text,
            ])
            .args(["-d", "kiln"])
            .env("PGPASSWORD", password)
            .env("PGAPPNAME", "till")
            .output()
            .expect("it is there");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    fn end(&mut self) -> ExitStatus {
        let number = self.process.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &number]).status();
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

fn has_psql() -> bool {
    let version = Command::new("psql").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

#[test]
fn config_says_where_each_value_is_from() {
    let directory = temporary();
    let data = directory.path().join("data");
    let path = directory.path().display().to_string();
    let text = "# ours\nconnections = 5\nlog_slow = \"1s\"\ndrain = \"1s\"\n";
    kiln_platform::disk::Directory::create(&data).expect("there is room");
    file::write(&data.join("kiln.toml"), text.as_bytes()).expect("there is room");
    let data = data.display().to_string();
    let arguments = ["config", "--json", "--data", &data, "--drain", "3s"];
    let variables = [
        ("KILN_LOG_SLOW", "2s"),
        ("KILN_DRAIN", "2s"),
        ("KILN_TLS_KEY", ""),
    ];
    let all: Value =
        serde_json::from_str(&stdout(&run(&arguments, &variables))).expect("it is JSON");
    let of = |name: &str| {
        let mut settings = all.as_array().expect("it is a list").iter();
        settings
            .find(|it| it["name"] == name)
            .expect("it is there")
            .clone()
    };
    for (name, value, source) in [
        ("connections", Value::from(5), "file"),
        ("log_slow", Value::from("2s"), "environment"),
        ("drain", Value::from("3s"), "flag"),
        ("data", Value::from(data.as_str()), "flag"),
        ("auth", Value::from("automatic"), "default"),
        ("tls_key", Value::Null, "default"),
        ("listen", Value::from(vec!["127.0.0.1:5432"]), "default"),
    ] {
        let setting = of(name);
        assert_eq!(
            (&setting["value"], &setting["source"]),
            (&value, &Value::from(source)),
            "{name}"
        );
        assert!(
            setting["description"]
                .as_str()
                .is_some_and(|it| it.ends_with('.')),
            "{name}"
        );
    }
    assert_eq!(of("connections")["line"], 2);
    let text = stdout(&run(&["config", "--data", &data], &[]));
    let line = text
        .lines()
        .find(|line| line.starts_with("connections = 5 "));
    assert!(
        line.is_some_and(|line| line.ends_with("kiln.toml:2")),
        "{text}"
    );
    // A server with it makes its database beside the file.
    let server = Server::start(&["--data", &data]);
    server.line("Data directory");
    drop(server);
    // A file with a mistake.
    let wrong = format!("{path}/wrong.toml");
    file::write(
        Path::new(&wrong),
        b"listen = \"127.0.0.1:0\"\nlog_slwo = \"1s\"\n",
    )
    .expect("there is room");
    for command in ["config", "serve"] {
        let why = stderr(&run(&[command, "--config", &wrong], &[]));
        assert!(
            why.contains(&format!(
                "{wrong}:2: there is no setting log_slwo; the nearest is log_slow"
            )),
            "{why}"
        );
    }
    let initial = stdout(&run(&["config", "--init"], &[]));
    assert!(initial.contains("\n# connections = 10000\n"), "{initial}");
}

#[test]
fn the_log_is_json_and_tells_what_matters() {
    let directory = temporary();
    let data = directory.path().join("data").display().to_string();
    let mut server = Server::start(&[
        "--data",
        &data,
        "--admin",
        "127.0.0.1:0",
        "--log-format",
        "json",
        "--log-slow",
        "10ms",
        "--log-block",
        "100ms",
    ]);
    let admin = server.behind("Metrics and health on http://");
    let health = run(&["health", &admin], &[]);
    assert_eq!(stdout(&health), "ok\n");
    if has_psql() {
        server.psql("kiln", "", "CREATE ROLE app LOGIN PASSWORD 'right horse'");
        for _ in 0..30 {
            let answer = server.psql("app", "wrong horse", "SELECT 1");
            assert!(
                answer.contains("password authentication failed"),
                "{answer}"
            );
        }
        let big = "SELECT count(*), 'a secret' FROM generate_series(1, 10000000)";
        assert_eq!(
            server.psql("app", "right horse", big),
            "10000000|a secret\n"
        );
        let slow: Value = serde_json::from_str(&server.line("slow statement")).expect("it is JSON");
        assert_eq!(
            slow["statement"],
            "SELECT count(*), ? FROM generate_series(?, ?)"
        );
        assert_eq!(
            (&slow["role"], &slow["application"]),
            (&"app".into(), &"till".into())
        );
        assert!(
            slow["duration_ms"].as_f64().is_some_and(|ms| ms >= 10.0),
            "{slow}"
        );
        let block = "BEGIN; SELECT count(*) FROM generate_series(1, 100000000); COMMIT";
        server.psql("app", "right horse", block);
        server.line("has been open for long");
    } else {
        println!("without psql: what clients do is not tried");
    }
    assert!(server.end().success());
    let lines = server.lines();
    for line in &lines {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        assert!(
            event["timestamp"].is_string() && event["message"].is_string(),
            "{line}"
        );
        assert!(
            ["ERROR", "WARN", "INFO"].contains(&event["level"].as_str().unwrap_or_default()),
            "{line}"
        );
    }
    let all = lines.join("\n");
    for part in [
        "\"message\":\"starting\"",
        "The data directory is new",
        "SIGTERM: clients end",
        "the server has ended",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert!(!all.contains("horse") && !all.contains("a secret"), "{all}");
    if has_psql() {
        let refused = lines
            .iter()
            .filter(|line| line.contains("connection refused"))
            .count();
        assert_eq!(refused, 10, "{all}");
    }
    let gone = run(&["health", &admin, "--timeout", "2"], &[]);
    assert!(stderr(&gone).contains("no answer"));
}

#[test]
fn text_lines_have_the_address_at_their_start() {
    let mut server = Server::start(&["--admin", "127.0.0.1:0"]);
    assert!(
        server
            .line("Listening on ")
            .starts_with("Listening on 127.0.0.1:")
    );
    assert!(server.line("Nothing is kept").contains("--data DIR"));
    assert!(server.line("starting").contains(" INFO "));
    assert!(server.end().success());
    let mut quiet = Server::start(&["--quiet", "--admin", "127.0.0.1:0"]);
    thread::sleep(500_000_000);
    assert!(quiet.end().success());
    assert_eq!(quiet.lines(), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn the_service_manager_is_told() {
    let directory = temporary();
    let socket = directory.path().join("notify");
    let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.bind(sys.argv[1])\nprint('bound', flush=True)\nfor _ in range(2): print(s.recv(100).decode(), flush=True)";
    let listener = Command::new("python3")
        .args(["-c", script])
        .arg(&socket)
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut listener) = listener else {
        return println!("skipped: there is no python3");
    };
    let mut told = BufReader::new(listener.stdout.take().expect("it is a pipe")).lines();
    let mut next = || told.next().expect("it is told").expect("it is text");
    assert_eq!(next(), "bound");
    let mut process = kiln()
        .args(["serve", "--listen", "127.0.0.1:0", "--quiet"])
        .env("NOTIFY_SOCKET", &socket)
        .spawn()
        .expect("the command was built");
    assert_eq!(next(), "READY=1");
    let number = process.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &number]).status();
    assert!(sent.expect("it can be run").success());
    assert_eq!(next(), "STOPPING=1");
    assert!(process.wait().expect("it ends").success());
    assert!(listener.wait().expect("it ends").success());
}
