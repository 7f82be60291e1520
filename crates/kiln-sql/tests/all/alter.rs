//! ALTER TABLE beside transactions, and in what a crash leaves behind.

#![cfg(not(kiln_sim))]

use crate::files;
use std::path::Path;

use kiln_platform::atomic::{AtomicBool, AtomicUsize, Ordering};
use kiln_platform::thread;
use kiln_sql::{Call, Database, Logging, Protocol, Reply, SqlState};

use crate::image::Image;

fn rows(database: &Database, query: &str) -> String {
    match database.query(query, ()) {
        Ok(result) => result.to_csv(),
        // Not there yet, or not there any more.
        Err(error) => error.to_string(),
    }
}

/// Tables before they are altered.
const SCHEMA: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT UNIQUE, balance INTEGER NOT NULL, junk INTEGER);
CREATE TABLE note (about INTEGER REFERENCES account, text TEXT);
CREATE INDEX note_about ON note (about);
CREATE PROCEDURE pay(payer INTEGER, payee INTEGER, amount INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET balance = balance - amount WHERE id = payer;
    UPDATE account SET balance = balance + amount WHERE id = payee;
    INSERT INTO note (about, text) VALUES (payer, 'paid ' || amount);
END $$;
INSERT INTO account SELECT i, 'owner ' || i, 100, -i FROM generate_series(1, 40) i;
INSERT INTO note VALUES (1, 'first'), (NULL, 'about nothing');
";

/// Changes of them, and of rows between these.
const CHANGES: [&str; 26] = [
    "ALTER TABLE account ADD grade SMALLINT NOT NULL DEFAULT 3",
    "UPDATE account SET grade = id WHERE id < 10",
    "ALTER TABLE account DROP junk",
    "CALL pay(1, 2, 30)",
    "ALTER TABLE account ALTER balance TYPE NUMERIC(12, 2), ALTER owner TYPE VARCHAR(80) USING upper(owner)",
    "CALL pay(2, 3, 5)",
    "ALTER TABLE note ADD id SERIAL, ADD at TIMESTAMPTZ DEFAULT now()",
    "CALL pay(3, 4, 1)",
    "INSERT INTO note (about, text) VALUES (4, repeat('long ', 300)) RETURNING id",
    "ALTER TABLE note ADD PRIMARY KEY (id)",
    "DELETE FROM note WHERE id = 2",
    "ALTER TABLE account RENAME TO customer",
    "INSERT INTO customer (id, owner, balance) VALUES (100, 'new', 7)",
    "ALTER TABLE customer RENAME owner TO name",
    "ALTER TABLE customer ADD CHECK (balance > -1000), ALTER name SET NOT NULL",
    "UPDATE customer SET name = 'x' WHERE id = 5",
    "ALTER TABLE customer DROP CONSTRAINT account_pkey CASCADE",
    "INSERT INTO customer VALUES (100, 'same id', 7, 7)",
    "ALTER TABLE note DROP text, ADD seen INTEGER DEFAULT nextval('note_id_seq')",
    "UPDATE note SET seen = 0 WHERE id = 1",
    "INSERT INTO note (about) VALUES (9)",
    "ALTER TABLE customer ALTER grade DROP NOT NULL, ADD rank BIGINT GENERATED ALWAYS AS IDENTITY",
    "INSERT INTO customer (id, name, balance) VALUES (101, 'last', 0) RETURNING rank",
    "DELETE FROM customer WHERE id < 3",
    "ALTER SEQUENCE note_id_seq RENAME TO note_numbers",
    "INSERT INTO note (about) VALUES (10) RETURNING id, seen",
];

const QUERIES: [&str; 7] = [
    "SELECT * FROM account ORDER BY id",
    "SELECT * FROM customer ORDER BY id, balance, 2",
    "SELECT * FROM note ORDER BY about, 2, 3",
    "SELECT id FROM customer WHERE name = 'OWNER 7'",
    "SELECT id FROM account WHERE owner = 'OWNER 7'",
    "SELECT count(*) FROM note WHERE about = 1",
    "SELECT conname, convalidated FROM pg_constraint ORDER BY conname",
];

/// What can be seen of a database.
fn state(database: &Database) -> Vec<String> {
    let seen = QUERIES.map(|query| rows(database, query));
    let written = database.engine().written_catalog();
    let text = written.expect("only statements made it").to_string();
    // A crash leaves out values of sequences that were logged ahead.
    let text = text.lines().filter(|line| !line.contains("sequence"));
    let text: Vec<&str> = text.collect();
    seen.into_iter().chain([text.join("\n")]).collect()
}

/// Opens what a crash has left of a directory, under each of two protocols, and compares.
fn recover(image: &Image, path: &Path, protocols: [Protocol; 2], expected: &[String], what: &str) {
    for protocol in protocols {
        image.put(path);
        let options = files::options(path).protocol(protocol);
        let database = Database::open(options).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (found, wanted) in state(&database).iter().zip(expected) {
            // Of many rows the first lines tell enough.
            assert!(
                found == wanted,
                "{what}, {protocol}: {found:.300}\n, but it was {wanted:.300}"
            );
        }
    }
}

#[test]
fn altered_tables_are_recovered_at_every_moment() {
    let serializable: Vec<Protocol> = Protocol::serializable().collect();
    // Without a checkpoint, and with one after each of some statements.
    let checkpoints = [None, Some(3), Some(10), Some(20), None];
    for (round, checkpoint_at) in checkpoints.into_iter().enumerate() {
        let directory = files::temporary();
        let (path, copy) = (directory.path().join("data"), directory.path().join("copy"));
        // The last log has calls in place of what they wrote.
        let (protocol, logging) = match round + 1 == checkpoints.len() {
            true => (Protocol::Vll, Logging::Commands),
            false => (
                serializable[round * 5 % serializable.len()],
                Logging::Values,
            ),
        };
        let options = files::options(&path).protocol(protocol).logging(logging);
        let database = Database::open(options).expect("it is new");
        database.execute(SCHEMA).expect("the schema is made");
        for (at, change) in CHANGES.iter().enumerate() {
            (database.execute(change)).unwrap_or_else(|error| panic!("{change}: {error}"));
            if checkpoint_at == Some(at) {
                database.engine().checkpoint().expect("there is room");
            }
            // The log has written that its last block is on disk.
            thread::sleep(40_000_000);
            let next = serializable[(round * 7 + at) % serializable.len()];
            let expected = state(&database);
            recover(
                &Image::of(&path),
                &copy,
                [protocol, next],
                &expected,
                change,
            );
        }
    }
}

/// The rows that a checkpoint has not read yet when a change puts them into another layout are in
/// it all the same.
#[test]
fn tables_are_altered_while_checkpoints_are_written() {
    let directory = files::temporary();
    let (path, copy) = (directory.path().join("data"), directory.path().join("copy"));
    let database = Database::open(files::options(&path)).expect("it is new");
    database.execute(SCHEMA).expect("the schema is made");
    database
        .execute("INSERT INTO account SELECT i, 'owner ' || i, 100, -i FROM generate_series(41, 12000) i")
        .expect("it runs");
    for round in 0..6 {
        let is_written = AtomicBool::new(false);
        let mut altered = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                database.engine().checkpoint().expect("there is room");
                is_written.store(true, Ordering::Relaxed);
            });
            for change in [
                "ALTER TABLE account ADD extra INTEGER DEFAULT 1",
                "UPDATE account SET extra = id, balance = balance + 1 WHERE id % 7 = 0",
                "ALTER TABLE account ALTER extra TYPE BIGINT",
                "UPDATE account SET extra = extra + 1 WHERE id % 5 = 0",
                "ALTER TABLE account DROP extra, ALTER balance TYPE BIGINT USING balance + 1",
                "ALTER TABLE account ALTER balance TYPE INTEGER",
            ] {
                let was_written = is_written.load(Ordering::Relaxed);
                (database.execute(change)).unwrap_or_else(|error| panic!("{change}: {error}"));
                altered += usize::from(!was_written);
            }
        });
        assert!(altered > 0, "the checkpoint was over at once");
        thread::sleep(40_000_000);
        let expected = state(&database);
        let protocols = [Protocol::Silo, Protocol::Mvcc];
        let what = format!("round {round}");
        recover(&Image::of(&path), &copy, protocols, &expected, &what);
    }
}

#[test]
fn calls_go_on_beside_alter_table() {
    for protocol in Protocol::serializable() {
        let options = kiln_sql::Options::new()
            .workers(2)
            .pin_workers(false)
            .protocol(protocol);
        let database = Database::open(options).expect("the options are good");
        database.execute(SCHEMA).expect("the schema is made");
        let (is_over, paid) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            for thread in 0..2 {
                let (database, is_over, paid) = (&database, &is_over, &paid);
                scope.spawn(move || {
                    let mut turn = thread;
                    while !is_over.load(Ordering::Relaxed) {
                        turn += 1;
                        let (payer, payee) = (turn % 5 + 1, (turn * 3) % 7 + 6);
                        match database
                            .engine()
                            .execute(Call::new("pay", (payer, payee, 1)))
                        {
                            Ok(Reply::Committed(_)) => drop(paid.fetch_add(1, Ordering::Relaxed)),
                            // The table has another name for a moment.
                            Ok(Reply::Rejected(error)) => {
                                assert_eq!(error.state(), SqlState::UNDEFINED_TABLE, "{error}");
                            }
                            other => panic!("{protocol}: {other:?}"),
                        }
                    }
                });
            }
            for round in 0..3 {
                for change in [
                    "ALTER TABLE account ADD extra INTEGER NOT NULL DEFAULT 1, ADD CHECK (extra > 0)",
                    "ALTER TABLE account ALTER balance TYPE BIGINT",
                    "ALTER TABLE note ADD id SERIAL PRIMARY KEY",
                    "ALTER TABLE account RENAME TO customer",
                    "ALTER TABLE customer RENAME TO account",
                    "ALTER TABLE account DROP CONSTRAINT account_owner_key, DROP extra",
                    "ALTER TABLE note DROP id",
                    "ALTER TABLE account ADD CONSTRAINT account_owner_key UNIQUE (owner), ALTER balance TYPE INTEGER",
                ] {
                    (database.execute(change))
                        .unwrap_or_else(|error| panic!("{protocol}, {round}: {change}: {error}"));
                    thread::sleep(2_000_000);
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let paid = paid.load(Ordering::Relaxed);
        assert!(paid > 0, "{protocol}");
        let sum = rows(&database, "SELECT sum(balance) FROM account");
        assert_eq!(sum, "sum\n4000\n", "{protocol}");
        let notes = rows(&database, "SELECT count(*) FROM note");
        assert_eq!(notes, format!("count\n{}\n", paid + 2), "{protocol}");
    }
}

/// What clients and roles know of objects goes on under other names.
#[test]
fn objects_keep_numbers_and_privileges_under_other_names() {
    let options = kiln_sql::Options::new().workers(1).pin_workers(false);
    let database = Database::open(options).expect("the options are good");
    database
        .execute(
            "CREATE TABLE t (a SERIAL PRIMARY KEY, b INTEGER DEFAULT 7 CHECK (b > 0));
             CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
             CREATE ROLE clerk;
             GRANT SELECT ON t TO clerk; GRANT USAGE ON SEQUENCE t_a_seq TO clerk;
             REVOKE EXECUTE ON FUNCTION f FROM PUBLIC; GRANT EXECUTE ON FUNCTION f TO clerk;",
        )
        .expect("the script runs");
    let numbers = || {
        let queries = [
            "SELECT oid FROM pg_class WHERE relnamespace = 2200 ORDER BY oid",
            "SELECT oid FROM pg_constraint ORDER BY oid",
            "SELECT oid FROM pg_attrdef ORDER BY oid",
            "SELECT oid FROM pg_proc WHERE pronamespace = 2200",
            "SELECT oid FROM pg_type WHERE typnamespace = 2200 ORDER BY oid",
        ];
        queries.map(|query| rows(&database, query))
    };
    let before = numbers();
    database
        .execute(
            "ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME b TO c; ALTER INDEX t_pkey RENAME TO key;
             ALTER TABLE u RENAME CONSTRAINT t_b_check TO above; ALTER SEQUENCE t_a_seq RENAME TO s; ALTER FUNCTION f RENAME TO g;
             ALTER TABLE u ALTER c TYPE BIGINT;",
        )
        .expect("the script runs");
    assert_eq!(numbers(), before);
    let allowed = "SELECT has_table_privilege('clerk', 'u', 'select'), has_sequence_privilege('clerk', 's', 'usage'), \
                   has_function_privilege('clerk', 'g()', 'execute')";
    let allowed = rows(&database, allowed);
    assert!(allowed.ends_with("t,t,t\n"), "{allowed}");
    // Another table of the former name has none of that.
    database
        .execute("CREATE TABLE t (a INTEGER)")
        .expect("the name is free");
    let allowed = rows(
        &database,
        "SELECT has_table_privilege('clerk', 't', 'select')",
    );
    assert!(allowed.ends_with("\nf\n"), "{allowed}");
}

/// A header that names the type of a column is as much a user of the column as PostgreSQL's is of a
/// type.
#[test]
fn a_header_keeps_its_column() {
    let options = kiln_sql::Options::new().workers(1).pin_workers(false);
    let database = Database::open(options).expect("the options are good");
    database
        .execute(
            "CREATE TABLE t (a INTEGER, b INTEGER);
             CREATE FUNCTION f(x t.a%TYPE) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$;",
        )
        .expect("the script runs");
    let error = database
        .execute("ALTER TABLE t DROP a")
        .expect_err("f has it");
    assert_eq!(error.state(), SqlState::DEPENDENT_OBJECTS_STILL_EXIST);
    database
        .execute("ALTER TABLE t DROP b; DROP FUNCTION f; ALTER TABLE t DROP a")
        .expect("nothing keeps it");
}
