//! Data directories: what was answered is there when the database is opened again.

#![cfg(not(kiln_sim))]

use std::path::Path;

use kiln_platform::disk::TemporaryDirectory;
use kiln_sql::{Database, Options, Protocol, SqlState};

fn temporary() -> TemporaryDirectory {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    TemporaryDirectory::within(parent, "kiln-durable").expect("the test may write there")
}

fn options(directory: &TemporaryDirectory) -> Options {
    let path = directory.path().join("data");
    Options::new()
        .workers(2)
        .pin_workers(false)
        .log_segment_bytes(256 << 10)
        .data_dir(Some(path))
}

fn rows(database: &Database, query: &str) -> Vec<String> {
    let result = database.query(query, ()).expect("the query runs");
    let csv = result.to_csv();
    csv.lines().skip(1).map(str::to_owned).collect()
}

/// Tables of all kinds, with what becomes of rows.
const SCRIPT: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, balance NUMERIC(12, 2) NOT NULL, UNIQUE (owner));
CREATE TABLE note (about INTEGER, text TEXT);
CREATE INDEX note_about ON note (about);
CREATE FUNCTION pay(payer INTEGER, payee INTEGER, amount NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE left_over NUMERIC;
BEGIN
    UPDATE account SET balance = balance - amount WHERE id = payer RETURNING balance INTO left_over;
    IF left_over < 0 THEN RAISE EXCEPTION 'not enough'; END IF;
    UPDATE account SET balance = balance + amount WHERE id = payee;
    INSERT INTO note VALUES (payer, 'paid ' || amount);
    RETURN left_over;
END $$;
INSERT INTO account SELECT i, 'owner ' || i, 100 FROM generate_series(1, 50) i;
SELECT pay(1, 2, 30);
SELECT pay(2, 3, 99.5);
UPDATE account SET id = 1000 + id WHERE id > 40;
DELETE FROM account WHERE id = 7;
INSERT INTO account VALUES (7, NULL, 1);
UPDATE account SET owner = repeat('long ', 40) WHERE id = 8;
UPDATE note SET text = repeat('long ', 200) WHERE about = 1;
UPDATE account SET owner = 'x' WHERE id = 9;
UPDATE account SET owner = 'owner 9' WHERE id = 10;
UPDATE account SET owner = 'owner 10' WHERE id = 9;
CREATE TABLE gone (id INTEGER PRIMARY KEY);
INSERT INTO gone VALUES (1), (2);
TRUNCATE gone;
INSERT INTO gone VALUES (3);
CREATE TABLE dropped (id INTEGER PRIMARY KEY);
INSERT INTO dropped VALUES (1);
DROP TABLE dropped;
CREATE INDEX account_balance ON account (balance);
DELETE FROM note WHERE about = 2;
";

const QUERIES: [&str; 6] = [
    "SELECT * FROM account ORDER BY id",
    "SELECT * FROM note ORDER BY about, text",
    "SELECT * FROM gone",
    "SELECT id FROM account WHERE owner = 'owner 9'",
    "SELECT id FROM account WHERE balance < 100 ORDER BY balance",
    "SELECT count(*) FROM note WHERE about = 1",
];

fn all(database: &Database) -> Vec<Vec<String>> {
    QUERIES.map(|query| rows(database, query)).into()
}

#[test]
fn every_protocol_finds_again_what_another_has_answered() {
    let protocols: Vec<Protocol> = Protocol::ALL
        .into_iter()
        .filter(|protocol| protocol.is_serializable())
        .collect();
    for (position, protocol) in protocols.iter().enumerate() {
        let directory = temporary();
        let database = Database::open(options(&directory).protocol(*protocol)).expect("it is new");
        database.execute(SCRIPT).expect("the script runs");
        let before = all(&database);
        let catalog = database
            .engine()
            .written_catalog()
            .expect("it can be written");
        drop(database);
        // Twice: what the first one opens and adds nothing to is the same for the second.
        let next = protocols[(position + 1) % protocols.len()];
        for protocol in [*protocol, next] {
            let database =
                Database::open(options(&directory).protocol(protocol)).expect("it is there");
            assert_eq!(all(&database), before, "{protocol}");
            let again = database
                .engine()
                .written_catalog()
                .expect("it can be written");
            assert_eq!(again.to_string(), catalog.to_string(), "{protocol}");
        }
        let database = Database::open(options(&directory).protocol(next)).expect("it is there");
        database.execute("SELECT pay(3, 4, 50); CREATE TABLE later (id INTEGER PRIMARY KEY); INSERT INTO later VALUES (1); INSERT INTO note VALUES (5, 'new')").expect("it runs");
        let (before, later) = (all(&database), rows(&database, "SELECT * FROM later"));
        drop(database);
        let database = Database::open(options(&directory)).expect("it is there");
        assert_eq!(all(&database), before, "{next}");
        assert_eq!(rows(&database, "SELECT * FROM later"), later);
        let recovery = database.recovery().expect("it has a directory");
        assert!(
            recovery.commits > 10 && recovery.statements >= 9 && recovery.cut.is_none(),
            "{recovery:?}"
        );
    }
}

#[test]
fn a_directory_has_one_database_at_a_time() {
    let directory = temporary();
    let database = Database::open(options(&directory)).expect("it is new");
    let refused = Database::open(options(&directory)).expect_err("it is open");
    assert_eq!(refused.state(), SqlState::OBJECT_IN_USE, "{refused}");
    database.close();
    Database::open(options(&directory)).expect("it was closed");
}
