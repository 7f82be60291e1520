//! The whole server on virtual cores with simulated clients and network: a run is a function of its
//! seed.

#![cfg(kiln_sim)]

mod common;

use common::{Talk, database, serve};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::net::Address;
use kiln_platform::random::Random;
use kiln_platform::sim::disk::{Crash, Disk};
use kiln_platform::sim::net::{Network, Options};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::thread;
use kiln_sql::Database;
use kiln_wire::client::Answer;
use kiln_wire::frontend::Format;

const CLIENTS: u64 = 4;
const CALLS: u64 = 5;
const SETUP: &str =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0)";

/// Clients increment a row, some of them by a statement alone, others in pipelines or a block.
/// Returns how many increments were asked for; each that is acknowledged is told.
fn increment(address: &Address, acknowledged: impl Fn() + Sync) -> u64 {
    let asked = AtomicU64::new(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (asked, acknowledged) = (&asked, &acknowledged);
            scope.spawn(move || {
                let mut talk = None;
                for call in 0..CALLS {
                    // A connection may break at any time; then there is another one.
                    let mut open = match talk.take() {
                        Some(open) => open,
                        None => match Talk::begin(address) {
                            Ok(open) => open,
                            Err(_) => continue,
                        },
                    };
                    let text = "UPDATE t SET n = n + 1 WHERE id = 1";
                    let mut execute = || {
                        let none = (Format::Text, &[][..]);
                        let requests = open.requests.parse("", text, &[]);
                        let requests = requests.bind("", "", none, Format::Text);
                        requests.execute("", 0).sync();
                    };
                    let mut transactions = 1;
                    match (client + call) % 4 {
                        0 => drop(open.requests.query(text)),
                        1 => execute(),
                        2 => drop(open.requests.query(&format!("BEGIN; {text}; COMMIT"))),
                        // A pipeline of transactions.
                        _ => {
                            transactions = 3;
                            (0..transactions).for_each(|_| execute());
                        }
                    }
                    asked.fetch_add(transactions, Ordering::Relaxed);
                    let mut is_ended = true;
                    for _ in 0..transactions {
                        let answers = open.ask().unwrap_or_default();
                        is_ended &= matches!(answers.last(), Some(Answer::Ready(_)));
                        let ends = |tag: &str| matches!(tag, "UPDATE 1" | "COMMIT");
                        let last = answers.iter().rev().nth(1);
                        if is_ended
                            && matches!(last, Some(Answer::CommandComplete(tag)) if ends(tag))
                        {
                            acknowledged();
                        }
                    }
                    open.requests.query("ROLLBACK");
                    if is_ended && open.ask().is_ok() {
                        talk = Some(open);
                    }
                }
            });
        }
    });
    asked.into_inner()
}

/// How often the row was incremented.
fn incremented(database: &Database) -> u64 {
    let rows = database.query("SELECT n FROM t", ()).expect("it is there");
    rows.into_one::<(i32,)>().expect("it has a row").0 as u64
}

/// Runs on virtual cores, with this seed.
fn run<T: Send>(config: &Config, seed: u64, body: impl FnOnce() -> T + Send) -> T {
    match sim::run(config, body) {
        Ok(run) => run.value,
        Err(failure) => panic!("seed {seed}: {failure}"),
    }
}

/// Over a network that splits, joins, delays and breaks: what was acknowledged is there, and no
/// more than was asked for.
fn increments(seed: u64, is_rough: bool) -> (u64, u64) {
    let mut config = Config::new(Schedule::Random, seed);
    let mut options = match is_rough {
        true => Options::rough(seed),
        false => Options::new(seed),
    };
    if is_rough {
        options.reset_one_in = 300;
    }
    config.network = Some(Network::new(options));
    run(&config, seed, || {
        let database = database();
        database.execute(SETUP).expect("it is right");
        let (server, address) = serve(&database, |_| {});
        let acknowledged = AtomicU64::new(0);
        let asked = increment(&address, || {
            acknowledged.fetch_add(1, Ordering::Relaxed);
        });
        server.end();
        let n = incremented(&database);
        let acknowledged = acknowledged.into_inner();
        assert!(
            acknowledged <= n && n <= asked,
            "{acknowledged} of {asked}, and {n} are there"
        );
        (asked, acknowledged)
    })
}

fn data(disk: &Disk, seed: u64) -> Config {
    let mut config = Config::new(Schedule::Random, seed);
    config.network = Some(Network::new(Options::new(seed)));
    config.disk = Some(disk.clone());
    config
}

fn open_data() -> Database {
    let options = kiln_sql::Options::new()
        .workers(2)
        .pin_workers(false)
        .data_dir(Some("/data".into()));
    Database::open(options).expect("the disk is whole")
}

/// The power goes while clients increment the row, at several moments and in several ways. What was
/// acknowledged before is there when the server is started again, and a client finds it. Returns
/// how many crashes there were, and how many acknowledged increments they met.
fn crashes(seed: u64) -> (usize, u64) {
    let disk = Disk::new(kiln_platform::sim::disk::Options::new(seed));
    run(&data(&disk, seed), seed, || {
        open_data().execute(SETUP).expect("it is right");
    });
    disk.film();
    let filming = disk.clone();
    let (asked, acknowledged) = run(&data(&disk, seed), seed, move || {
        let database = open_data();
        let (server, address) = serve(&database, |_| {});
        // The moments of the film before which each increment was acknowledged.
        let frames = Mutex::new(Vec::new());
        let asked = increment(&address, || lock(&frames).push(filming.filmed()));
        server.end();
        (asked, lock(&frames).clone())
    });
    let film = disk.take_film();
    let mut random = Random::from_seed(seed);
    let mut met = 0;
    for crash in Crash::KINDS {
        let frame = random.below(film.len());
        let expected = acknowledged.iter().filter(|at| **at <= frame).count() as u64;
        let found = film[frame].disk.power_on(&crash, seed);
        let n = run(&data(&found, seed), seed, || {
            let database = open_data();
            let (server, address) = serve(&database, |_| {});
            let mut talk = Talk::begin(&address).expect("the network is whole");
            let seen = talk.answers("SELECT n FROM t").remove(0).0;
            drop(talk);
            server.end();
            assert_eq!(seen, incremented(&database).to_string());
            incremented(&database)
        });
        assert!(
            expected <= n && n <= asked,
            "seed {seed}, {crash} at {frame}: {expected} of {asked} were acknowledged, and {n} are there"
        );
        met += expected;
    }
    (Crash::KINDS.len(), met)
}

#[test]
fn what_was_acknowledged_outlives_the_power() {
    let (mut sum, mut met) = (0, 0);
    for seed in 0..10 {
        let (crashes, acknowledged) = crashes(seed);
        (sum, met) = (sum + crashes, met + acknowledged);
    }
    println!("{sum} crashes met {met} acknowledged increments");
    assert!(met > 5 * sum as u64 / 2, "{met}");
}

#[test]
fn what_was_acknowledged_is_there() {
    let (mut asked, mut acknowledged) = (0, 0);
    for seed in 0..20 {
        let counts = increments(seed, seed % 2 == 1);
        (asked, acknowledged) = (asked + counts.0, acknowledged + counts.1);
    }
    println!("{acknowledged} of {asked} were acknowledged");
    assert!(
        acknowledged > 150 && acknowledged < asked,
        "{acknowledged} of {asked}"
    );
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(increments(7, true), increments(7, true));
}
