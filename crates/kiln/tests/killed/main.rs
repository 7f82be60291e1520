//! Processes that are killed (SIGKILL) while clients are at work: what these were told is in the
//! data directory, and no call was run twice.
//!
//! A *life* is a process that recovers a data directory and lets clients work in it, while it
//! writes one checkpoint after the other. It is killed: at work, in a checkpoint, or in its
//! recovery. Then the directory is opened here, under another protocol. The database has to be
//! consistent, each call that was answered is answered in the same way when it is made again, and
//! nothing changes by that. Then all calls are made again that the process may have begun. Now each
//! key has had one call, and what these calls add up to is what the database has.

#![cfg(not(kiln_sim))]

mod traffic;
mod victim;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use kiln::{Configuration, Database, Loader, Options, Value};
use kiln_lab::audit::{AuditReport, audit, conditions};
use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::random::Random;
use kiln_platform::{thread, time};
use kiln_workloads::{RowSink, Totals, Workload};

use traffic::{CLIENTS, Calls, SEED, answer, in_flight, workload_of, workloads};
use victim::{Victim, Word};

/// When a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Work,
    Checkpoint,
    Recovery,
}

impl Moment {
    /// A recovery that is cut off is that of a process that was killed at work.
    const fn of(life: usize) -> Moment {
        match life % 3 {
            0 => Moment::Work,
            1 => Moment::Recovery,
            _ => Moment::Checkpoint,
        }
    }
}

/// The protocol of a life. All have their turn in lives that are killed at work or in checkpoints.
fn configuration_of(life: usize) -> Configuration {
    let recoveries_before = (life + 1) / 3;
    protocol((life - recoveries_before) * 11)
}

fn protocol(number: usize) -> Configuration {
    let all: Vec<Configuration> = Configuration::serializable().collect();
    all[number % all.len()]
}

fn options(path: &Path, protocol: Configuration) -> Options {
    Options::new()
        .workers(2)
        .session_slots(8)
        .pin_workers(false)
        .protocol(protocol)
        // Of two lives. Each checkpoint writes them again.
        .idempotency_capacity(8_192)
        .log_segment_bytes(64 << 10)
        .data_dir(Some(path.to_owned()))
}

/// What the clients of a life were told: by client, answers by turn.
struct Life {
    number: usize,
    answers: [BTreeMap<u64, String>; CLIENTS],
    /// Whether its calls are among the totals.
    is_counted: bool,
}

impl Life {
    /// Lives and dies. `opening_ns` is how long the last process took to recover, and then how long
    /// this one did.
    fn live(path: &Path, number: usize, random: &mut Random, opening_ns: &mut u64) -> Life {
        let mut life = Life {
            number,
            answers: Default::default(),
            is_counted: false,
        };
        let mut victim = Victim::start(path, number);
        let mut next = |life: &mut Life| {
            let word = victim.hear().expect("it ends when it is killed");
            life.note(&word);
            word
        };
        while next(&mut life) != Word::Opening {}
        let moment = Moment::of(number);
        let delay_ns = match moment {
            Moment::Recovery => *opening_ns,
            Moment::Work | Moment::Checkpoint => {
                let began_ns = time::now_ns();
                while next(&mut life) != Word::Open {}
                *opening_ns = time::now_ns() - began_ns;
                let calls = 50 + random.below(400);
                while life.calls() < calls {
                    next(&mut life);
                }
                if moment == Moment::Checkpoint {
                    while next(&mut life) != Word::Checkpoint {}
                }
                20_000_000
            }
        };
        thread::sleep(random.below(delay_ns.max(1) as usize) as u64);
        victim.kill();
        while let Some(word) = victim.hear() {
            life.note(&word);
        }
        let (calls, protocol) = (life.calls(), configuration_of(number));
        println!("life {number}, {protocol}: killed in {moment:?} after {calls} answers");
        life
    }

    fn note(&mut self, word: &Word) {
        if let Word::Answered {
            client,
            turn,
            answer,
        } = word
        {
            let former = self.answers[*client].insert(*turn, answer.clone());
            assert_eq!(former, None, "a call is answered once");
        }
    }

    fn calls(&self) -> usize {
        self.answers.iter().map(BTreeMap::len).sum()
    }
}

/// Makes the tables with their populations.
fn populate(path: &Path, workloads: &[Workload]) {
    let database = Database::open(options(path, protocol(0))).expect("the directory is new");
    for workload in workloads {
        for script in [
            workload.schema_sql(),
            workload.partitions_sql(),
            workload.procedures_sql(),
        ] {
            database.execute(script).expect("the script is right");
        }
        let mut sink = Sink {
            database: &database,
            loader: None,
        };
        workload.populate(SEED, &mut sink);
        sink.end();
    }
}

/// Loads a population.
struct Sink<'a> {
    database: &'a Database,
    loader: Option<Loader>,
}

impl Sink<'_> {
    fn end(&mut self) {
        if let Some(loader) = self.loader.take() {
            loader.finish().expect("the disk works");
        }
    }
}

impl RowSink for Sink<'_> {
    fn table(&mut self, name: &str, columns: &[&str], _rows_expected: u64) {
        self.end();
        let loader = self.database.engine().loader(name, columns);
        self.loader = Some(loader.expect("the table is there"));
    }

    fn row(&mut self, values: &[Value]) {
        let loader = self.loader.as_mut().expect("a table comes first");
        loader.row(values).expect("the row fits");
    }
}

/// A data directory over the lives of its processes.
struct Directory<'a> {
    path: &'a Path,
    workloads: [Workload; 3],
    /// What all calls add up to that were ever made, by workload.
    totals: [Totals; 3],
    /// Those that were looked at last, and those that were not yet.
    lives: Vec<Life>,
}

impl Directory<'_> {
    /// Opens the directory after its process was killed, and looks whether all is there.
    fn look(&mut self, protocol: Configuration) {
        let checked = run_kiln(self.path, "check");
        assert!(checked.contains("All of it is what was written."));
        let (workloads, totals) = (&self.workloads, &mut self.totals);
        let database = Database::open(options(self.path, protocol)).expect("it opens");
        for workload in workloads {
            assert_passed(&conditions(&database, workload).expect("the audit runs"));
        }
        let before = figures(&database, workloads);
        let execute = |call| {
            let reply = database.engine().execute(call);
            reply.expect("it runs, or has run")
        };
        let mut again = Vec::new();
        for life in &mut self.lives {
            for (client, answers) in life.answers.iter_mut().enumerate() {
                let mut calls = Calls::new(workloads, database.engine(), life.number, client);
                // A client begins a call when another one was answered.
                let more = if life.is_counted {
                    0
                } else {
                    in_flight(client)
                };
                let mut unanswered = Vec::new();
                for _ in 0..answers.len() + more {
                    let keyed = calls.draw();
                    let Some(told) = answers.get(&keyed.turn) else {
                        unanswered.push(keyed);
                        continue;
                    };
                    let reply = execute(keyed.call);
                    let what = format!("life {}, client {client}, {}", life.number, keyed.turn);
                    assert_eq!(answer(&reply), *told, "{what}");
                    calls.count(keyed.drawn, &reply);
                }
                assert_eq!(
                    unanswered.len(),
                    more,
                    "no call was answered that was not begun"
                );
                again.push((client, life.is_counted, answers, calls, unanswered));
            }
            life.is_counted = true;
        }
        assert_eq!(
            figures(&database, workloads),
            before,
            "no call was run twice"
        );
        for (client, is_counted, answers, mut calls, unanswered) in again {
            for keyed in unanswered {
                let reply = execute(keyed.call);
                answers.insert(keyed.turn, answer(&reply));
                calls.count(keyed.drawn, &reply);
            }
            if !is_counted {
                totals[workload_of(client)].merge(calls.totals());
            }
        }
        for (workload, totals) in workloads.iter().zip(totals) {
            let audited = audit(&database, workload, SEED, totals);
            assert_passed(&audited.expect("the audit runs"));
        }
        // However few the victims have come to write.
        database.engine().checkpoint().expect("the disk works");
        // The keys of earlier ones are forgotten one day.
        let looked_at = self.lives.len().saturating_sub(2);
        self.lives.drain(..looked_at);
    }
}

/// What the closing checks of all workloads look at.
fn figures(database: &Database, workloads: &[Workload]) -> Vec<Vec<Vec<Value>>> {
    let checks = workloads
        .iter()
        .flat_map(|workload| workload.closing_checks(SEED, &Totals::default()));
    checks
        .map(|check| database.query(check.sql, ()).expect("the query runs").rows)
        .collect()
}

#[track_caller]
fn assert_passed(report: &AuditReport) {
    assert!(report.passed(), "{:#?}", report.violations);
}

/// What `kiln data` says of the directory.
fn run_kiln(path: &Path, command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kiln"))
        .args(["data", command])
        .arg(path)
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    said
}

fn kill_and_look(lives: usize) {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let temporary = TemporaryDirectory::within(parent, "kiln-killed").expect("there is room");
    let path = temporary.path().join("data");
    let mut directory = Directory {
        path: &path,
        workloads: workloads(),
        totals: Default::default(),
        lives: Vec::new(),
    };
    populate(&path, &directory.workloads);
    let mut random = Random::from_seed(SEED);
    let mut opening_ns = 0;
    for number in 0..lives {
        let life = Life::live(&path, number, &mut random, &mut opening_ns);
        directory.lives.push(life);
        if Moment::of(number) != Moment::Work || number + 1 == lives {
            directory.look(protocol(number * 11 + 17));
        }
    }
    let status = run_kiln(&path, "status");
    assert!(status.contains("Checkpoints      2, "), "{status}");
    let inspected = run_kiln(&path, "inspect");
    assert!(
        !inspected.contains("its log begins with segment 1."),
        "{inspected}"
    );
}

#[test]
fn what_processes_had_answered_that_were_killed_is_there_and_is_answered_once() {
    kill_and_look(3);
}

#[test]
#[ignore = "takes minutes: run it with --ignored after changes to the log, to checkpoints or to recovery"]
fn what_fifty_processes_had_answered_that_were_killed_is_there_and_is_answered_once() {
    kill_and_look(50);
}
