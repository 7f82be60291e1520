//! Cascading deletes beside inserts of rows that refer to what is deleted, under many schedules of
//! virtual cores: no row is left that refers to nothing.

#![cfg(kiln_sim)]

use kiln_engine::Protocol;
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_sql::{Database, Options};

const SCHEMA: &str = "
CREATE TABLE customer (id INTEGER PRIMARY KEY);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer ON DELETE CASCADE);
CREATE INDEX sale_customer ON sale (customer);
CREATE TABLE line (id INTEGER PRIMARY KEY, sale INTEGER REFERENCES sale ON DELETE CASCADE,
    part_of INTEGER REFERENCES line ON DELETE CASCADE);
CREATE INDEX line_sale ON line (sale);
CREATE INDEX line_part_of ON line (part_of);
INSERT INTO customer VALUES (1);
INSERT INTO sale VALUES (1, 1);
INSERT INTO line VALUES (1, 1, NULL), (2, 1, 1);
CREATE PROCEDURE leave() LANGUAGE plpgsql AS $$
BEGIN DELETE FROM customer WHERE id = 1; END $$;
CREATE PROCEDURE add_sale() LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO sale VALUES (2, 1);
    INSERT INTO line VALUES (10, 2, NULL);
END $$;
CREATE PROCEDURE add_line() LANGUAGE plpgsql AS $$
BEGIN INSERT INTO line VALUES (20, 1, 2); END $$;";

const ORPHANS: &str = "
SELECT (SELECT count(*) FROM sale WHERE NOT EXISTS (SELECT 1 FROM customer WHERE customer.id = sale.customer))
     + (SELECT count(*) FROM line WHERE NOT EXISTS (SELECT 1 FROM sale WHERE sale.id = line.sale))
     + (SELECT count(*) FROM line WHERE part_of IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM line AS other WHERE other.id = line.part_of))
     + (SELECT count(*) FROM customer)";

/// Lets three clients call one procedure each; returns how many rows are left that should not be.
fn run(protocol: Protocol, schedule: Schedule, seed: u64) -> String {
    let body = || {
        let database = sim::quiet(|| {
            let options = Options::new().workers(2).protocol(protocol);
            let database = Database::open(options).expect("a database");
            database.execute(SCHEMA).expect("valid statements");
            Arc::new(database)
        });
        let call = |name: &'static str| {
            let database = database.clone();
            let body = move || {
                let reply = database.call(name, ()).expect("a call ends");
                // What would refer to nothing is rejected; all else commits.
                assert!(reply.is_committed() || name != "leave", "{reply:?}");
            };
            thread::spawn(name, body).expect("a thread")
        };
        for client in ["leave", "add_sale", "add_line"].map(call) {
            client.join().expect("no panic");
        }
        let left = sim::quiet(|| database.query(ORPHANS, ()));
        left.expect("a result").rows[0][0].to_string()
    };
    let config = Config::new(schedule, seed);
    sim::run(&config, body).expect("the run ends").value
}

#[test]
fn no_orphan_is_left_under_any_schedule() {
    for protocol in Protocol::serializable() {
        for seed in 1..=8 {
            let left = run(protocol, Schedule::Random, seed);
            assert_eq!(left, "0", "{protocol}, seed {seed}");
        }
    }
}
