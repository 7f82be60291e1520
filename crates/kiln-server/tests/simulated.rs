//! The whole server on virtual cores with simulated clients and network: a run is a function of its seed.

#![cfg(kiln_sim)]

mod common;

use common::{Talk, database, serve};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sim::net::{Network, Options};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::thread;
use kiln_wire::client::Answer;
use kiln_wire::frontend::Format;

/// Clients increment a row over a network that splits, joins, delays and breaks; some of them by a statement alone, others in a
/// pipeline or a block. What was acknowledged is there, and no more than was asked for.
fn increments(seed: u64, is_rough: bool) -> (u64, u64) {
    const CLIENTS: u64 = 4;
    const CALLS: u64 = 5;
    let mut config = Config::new(Schedule::Random, seed);
    config.network = Some(Network::new(match is_rough {
        true => Options::rough(seed),
        false => Options::new(seed),
    }));
    let body = || {
        let database = database();
        database
            .execute(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0)",
            )
            .expect("it is right");
        let (server, address) = serve(&database, |_| {});
        let (asked, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (address, asked, acknowledged) = (&address, &asked, &acknowledged);
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
                        match (client + call) % 3 {
                            0 => drop(open.requests.query(text)),
                            1 => {
                                let none = (Format::Text, &[][..]);
                                (open.requests)
                                    .parse("", text, &[])
                                    .bind("", "", none, Format::Text)
                                    .execute("", 0)
                                    .sync();
                            }
                            _ => drop(open.requests.query(&format!("BEGIN; {text}; COMMIT"))),
                        }
                        asked.fetch_add(1, Ordering::Relaxed);
                        let Ok(answers) = open.ask() else {
                            continue;
                        };
                        let ends = |tag: &str| matches!(tag, "UPDATE 1" | "COMMIT");
                        let last = answers.iter().rev().nth(1);
                        let is_ended = matches!(answers.last(), Some(Answer::Ready(_)));
                        if is_ended
                            && matches!(last, Some(Answer::CommandComplete(tag)) if ends(tag))
                        {
                            acknowledged.fetch_add(1, Ordering::Relaxed);
                        }
                        if is_ended {
                            open.run("ROLLBACK");
                            talk = Some(open);
                        }
                    }
                });
            }
        });
        server.end();
        let rows = database.query("SELECT n FROM t", ()).expect("it is there");
        let n = rows.into_one::<(i32,)>().expect("it has a row").0 as u64;
        let (asked, acknowledged) = (asked.into_inner(), acknowledged.into_inner());
        assert!(
            acknowledged <= n && n <= asked,
            "{acknowledged} of {asked}, and {n} are there"
        );
        (asked, acknowledged)
    };
    match sim::run(&config, body) {
        Ok(run) => run.value,
        Err(failure) => panic!("seed {seed}: {failure}"),
    }
}

#[test]
fn what_was_acknowledged_is_there() {
    let (mut asked, mut acknowledged) = (0, 0);
    for seed in 0..20 {
        let counts = increments(seed, seed % 2 == 1);
        (asked, acknowledged) = (asked + counts.0, acknowledged + counts.1);
    }
    println!("{acknowledged} of {asked} were acknowledged");
    assert!(acknowledged > 100, "{acknowledged} of {asked}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(increments(7, true), increments(7, true));
}
