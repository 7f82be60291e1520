//! What a transaction does to a row costs the same, however many rows it has changed before.

#![cfg(not(kiln_sim))]

use kiln_engine::Configuration;
use kiln_platform::time::now_ns;
use kiln_sql::{Database, Options};

/// How many rows a transaction changes.
const ROWS: u32 = 10_000;
/// The time for all of it: some fifty times what it takes, and less than it took when each change
/// looked at all earlier ones.
const NS_MAX: u64 = 5_000_000_000;

/// A block moves, deletes and inserts again all rows of a table with several unique keys.
#[test]
fn rows_cost_the_same_in_large_transactions() {
    let statements = [
        "INSERT INTO t SELECT g, g, g FROM generate_series(1, {n}) g",
        "UPDATE t SET k = k + 1",
        "UPDATE t SET u = u + 1000000",
        "UPDATE t SET id = id + 1000000",
        "BEGIN; DELETE FROM t; INSERT INTO t SELECT g, g, g FROM generate_series(1, {n}) g; COMMIT",
        "BEGIN; DELETE FROM t; INSERT INTO t SELECT g, g, g FROM generate_series(1, {n}) g; COMMIT",
        "BEGIN; UPDATE t SET u = u + 1000000; UPDATE t SET u = u + 1000000; DELETE FROM t;
         INSERT INTO t SELECT g, g, g FROM generate_series(1, {n}) g; DELETE FROM t; ROLLBACK",
        "DELETE FROM t",
    ];
    for protocol in Configuration::serializable() {
        let options = Options::new().workers(1).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("it opens");
        let table = "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, u INTEGER UNIQUE)";
        database.execute(table).expect("it runs");
        let began_ns = now_ns();
        for statement in statements {
            let statement = statement.replace("{n}", &ROWS.to_string());
            database.execute(&statement).expect("it runs");
            let taken_ns = now_ns() - began_ns;
            assert!(
                taken_ns < NS_MAX,
                "{protocol}: {taken_ns} ns up to {statement}"
            );
        }
    }
}
