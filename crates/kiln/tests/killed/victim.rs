//! The process that is killed: the test runs itself once more, and reads from its output what
//! clients were told.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use kiln::{Completions, Database, Reply, Result};
use kiln_platform::thread;

use crate::traffic::{CLIENTS, Calls, answer, in_flight, workloads};
use crate::{configuration_of, options};

/// Where the process finds its directory, and the number of its life.
const DIRECTORY: &str = "KILN_KILLED_DIRECTORY";
const LIFE: &str = "KILN_KILLED_LIFE";
/// Between two checkpoints.
const PAUSE_NS: u64 = 30_000_000;

/// What a victim says.
#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    /// It recovers the database from now on.
    Opening,
    /// Clients are at work from now on.
    Open,
    /// It writes a checkpoint from now on.
    Checkpoint,
    /// A client was told this.
    Answered {
        client: usize,
        turn: u64,
        answer: String,
    },
}

impl Word {
    fn parse(line: &str) -> Option<Word> {
        Some(match line {
            "opening" => Word::Opening,
            "open" => Word::Open,
            "checkpoint" => Word::Checkpoint,
            _ => {
                let mut parts = line.strip_prefix("answered ")?.splitn(3, ' ');
                Word::Answered {
                    client: parts.next()?.parse().ok()?,
                    turn: parts.next()?.parse().ok()?,
                    answer: parts.next()?.to_owned(),
                }
            }
        })
    }
}

/// The life of the process. It does nothing where the tests are simply run.
#[test]
fn works_until_it_is_killed() {
    let Some(path) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        return;
    };
    let life = std::env::var(LIFE).ok();
    let life: usize = life
        .and_then(|life| life.parse().ok())
        .expect("the test says which life it is");
    say("opening");
    let database = Database::open(options(&path, configuration_of(life))).expect("it opens");
    say("open");
    let workloads = &workloads();
    thread::scope(|scope| {
        let database = &database;
        for client in 0..CLIENTS {
            let calls = Calls::new(workloads, database.engine(), life, client);
            scope.spawn(move || match in_flight(client) {
                1 => one_by_one(database, client, calls),
                room => through_a_queue(database, client, calls, room),
            });
        }
        scope.spawn(|| {
            while say("checkpoint") {
                database.engine().checkpoint().expect("the disk works");
                thread::sleep(PAUSE_NS);
            }
        });
    });
}

/// Says a line; false when the test is gone.
fn say(line: &str) -> bool {
    let mut output = std::io::stdout().lock();
    // The harness has begun a line.
    let said = output.write_all(format!("\n{line}\n").as_bytes());
    said.and_then(|()| output.flush()).is_ok()
}

fn say_answer(client: usize, turn: u64, reply: Result<Reply>) -> bool {
    let reply = reply.expect("the call runs");
    say(&format!("answered {client} {turn} {}", answer(&reply)))
}

/// A client that waits for each of its calls.
fn one_by_one(database: &Database, client: usize, mut calls: Calls<'_>) {
    loop {
        let keyed = calls.draw();
        if !say_answer(client, keyed.turn, database.engine().execute(keyed.call)) {
            return;
        }
    }
}

/// A client that has several on their way.
fn through_a_queue(database: &Database, client: usize, mut calls: Calls<'_>, room: usize) {
    let completions = Completions::new(room);
    let mut ended = Vec::new();
    loop {
        while completions.outstanding() < room {
            let keyed = calls.draw();
            let submitted = database.submit_to(keyed.call, &completions, keyed.turn);
            submitted.expect("the inboxes have room");
        }
        completions.wait(&mut ended, Duration::from_secs(1));
        for completion in ended.drain(..) {
            if !say_answer(client, completion.token, completion.result) {
                return;
            }
        }
    }
}

/// The process as the test has it. It ends with the test.
pub struct Victim {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Victim {
    pub fn start(path: &Path, life: usize) -> Victim {
        let program = std::env::current_exe().expect("the test has a file");
        let mut process = Command::new(program)
            .args([
                "--exact",
                "victim::works_until_it_is_killed",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(DIRECTORY, path)
            .env(LIFE, life.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test runs once more");
        let output = process.stdout.take().expect("it is a pipe");
        Victim {
            process,
            lines: BufReader::new(output),
        }
    }

    /// The next word; `None` when the process is dead.
    pub fn hear(&mut self) -> Option<Word> {
        loop {
            let mut line = Vec::new();
            let read = self.lines.read_until(b'\n', &mut line);
            read.expect("a pipe can be read");
            // The last line of a process may be cut off.
            let line = line.strip_suffix(b"\n")?;
            let word = std::str::from_utf8(line).ok().and_then(Word::parse);
            if word.is_some() {
                return word;
            }
        }
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.process.kill().expect("it may be killed");
        let status = self.process.wait().expect("it is a child");
        assert_eq!(status.code(), None, "it has ended before it was killed");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Where the test fails. Else it is dead already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
