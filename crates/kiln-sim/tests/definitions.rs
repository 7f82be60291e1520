//! A transaction block that changes the catalog beside calls of the table that it changes, and
//! beside another such block, under many schedules of virtual cores: no deposit is lost, and of a
//! block all is there or nothing.

#![cfg(kiln_sim)]

use kiln_engine::Protocol;
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_sql::{Database, Options, SqlState};

const SCHEMA: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
INSERT INTO account VALUES (1, 0), (2, 0);
CREATE PROCEDURE deposit(which INTEGER) LANGUAGE plpgsql AS $$
BEGIN UPDATE account SET balance = balance + 1 WHERE id = which; END $$;";

const DEPOSITS: u64 = 6;

/// What two blocks do, each with a table of its own.
fn block(name: &str) -> String {
    format!(
        "BEGIN;
         CREATE TABLE {name} (x SERIAL PRIMARY KEY, y INTEGER);
         INSERT INTO {name} (y) VALUES (1), (2);
         UPDATE account SET balance = balance + 10 WHERE id = 1;
         ALTER TABLE account ADD COLUMN {name} INTEGER DEFAULT 3;
         CREATE INDEX {name}_y ON {name} (y);
         INSERT INTO {name} (y) VALUES (3);
         UPDATE account SET balance = balance + 10 WHERE id = 2;
         COMMIT"
    )
}

/// Lets two clients make deposits, and two others change the catalog; returns what is not as it
/// should be.
fn run(protocol: Protocol, schedule: Schedule, seed: u64) -> Vec<String> {
    let body = || {
        let database = sim::quiet(|| {
            let options = Options::new().workers(2).protocol(protocol);
            let database = Database::open(options).expect("a database");
            database.execute(SCHEMA).expect("valid statements");
            Arc::new(database)
        });
        let made = Arc::new(AtomicU64::new(0));
        let deposits = [1, 2].map(|which: i32| {
            let database = database.clone();
            let body = move || {
                for _ in 0..DEPOSITS {
                    let reply = database.call("deposit", (which,)).expect("a call ends");
                    assert!(reply.is_committed(), "{reply:?}");
                }
            };
            thread::spawn("deposit", body).expect("a thread")
        });
        let blocks = ["one", "two"].map(|name| {
            let (database, made) = (database.clone(), made.clone());
            let body = move || {
                let mut session = database.session().expect("there is room");
                match session.execute(&block(name)) {
                    Ok(_) => {
                        made.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => {
                        // It has lost, or has waited for the other one for too long.
                        let lost = [
                            SqlState::SERIALIZATION_FAILURE,
                            SqlState::LOCK_NOT_AVAILABLE,
                        ];
                        assert!(lost.contains(&error.state()), "{error}");
                        session.roll_back();
                    }
                }
            };
            thread::spawn("block", body).expect("a thread")
        });
        for client in deposits.into_iter().chain(blocks) {
            client.join().expect("no panic");
        }
        let made = made.load(Ordering::Relaxed);
        let columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'account'::regclass AND attname IN ('one', 'two')";
        let tables = "SELECT count(*) FROM pg_tables WHERE tablename IN ('one', 'two')";
        let sum = "SELECT sum(balance) FROM account";
        let expected = [
            (columns, made),
            (tables, made),
            (sum, 2 * DEPOSITS + 20 * made),
        ];
        let differs = |(query, expected): (&str, u64)| {
            let found = sim::quiet(|| database.query(query, ())).expect("a result");
            let found = found.rows[0][0].to_string();
            (found != expected.to_string())
                .then(|| format!("{query} gives {found}, and not {expected}"))
        };
        expected.into_iter().filter_map(differs).collect()
    };
    let config = Config::new(schedule, seed);
    sim::run(&config, body).expect("the run ends").value
}

#[test]
fn blocks_that_change_the_catalog_are_whole_under_any_schedule() {
    for protocol in Protocol::serializable() {
        for seed in 1..=4 {
            let differing = run(protocol, Schedule::Random, seed);
            assert!(
                differing.is_empty(),
                "{protocol}, seed {seed}: {differing:?}"
            );
        }
    }
}
