//! Indexes over expressions and parts of tables: which plans use them, under every protocol, for
//! rows of Rust code, and after a restart.

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_engine::Configuration;
use kiln_platform::thread;
use kiln_sql::{Database, Options, Value};

const SCHEMA: &str = "
CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT NOT NULL, height INTEGER, gone BOOLEAN NOT NULL DEFAULT false);
CREATE UNIQUE INDEX by_email ON person (lower(email)) WHERE NOT gone;
CREATE INDEX by_double ON person ((height * 2), id);
CREATE INDEX tall ON person (id) WHERE height >= 190;
CREATE INDEX by_name ON person (upper(email));
";

fn open() -> Database {
    let options = Options::new().workers(2).pin_workers(false);
    let database = Database::open(options).expect("a database opens");
    database.execute(SCHEMA).expect("the schema is sound");
    database
}

fn rows(database: &Database, query: &str) -> Vec<String> {
    let result = database.query(query, ()).expect("the query runs");
    let csv = result.to_csv();
    csv.lines().skip(1).map(str::to_owned).collect()
}

/// The index that a statement uses first.
fn index_of(database: &Database, statement: &str) -> String {
    let explain = format!("EXPLAIN (FORMAT JSON) {statement}");
    let plan = database.query(&explain, ()).expect("it is explained");
    let text = plan.to_csv();
    match text.split_once("Index Name\"\": \"\"") {
        Some((_, behind)) => behind.split('"').next().unwrap_or_default().to_owned(),
        None if text.contains("Seq Scan") => String::new(),
        None => panic!("{text}"),
    }
}

#[test]
fn plans_use_what_an_expression_or_a_predicate_allows() {
    let database = open();
    for (query, index) in [
        (
            "SELECT * FROM person WHERE lower(email) = 'a' AND NOT gone",
            "by_email",
        ),
        (
            "SELECT * FROM person WHERE NOT gone AND lower(email) IN ('a', 'b')",
            "by_email",
        ),
        (
            "DELETE FROM person WHERE NOT gone AND lower(email) = 'a'",
            "by_email",
        ),
        ("SELECT * FROM person WHERE lower(email) = 'a'", ""),
        ("SELECT * FROM person WHERE lower(email) = 'a' AND gone", ""),
        (
            "SELECT * FROM person p WHERE p.height * 2 = 360",
            "by_double",
        ),
        (
            "UPDATE person SET gone = true WHERE height * 2 > 360",
            "by_double",
        ),
        ("SELECT * FROM person WHERE 360 = 2 * height", ""),
        ("SELECT * FROM person WHERE height = 200", "tall"),
        (
            "SELECT * FROM person WHERE height > 189 AND id > 3",
            "person_pkey",
        ),
        ("SELECT * FROM person WHERE height > 190 AND id > 3", "tall"),
        ("SELECT * FROM person WHERE height >= 190 OR id = 3", ""),
        (
            "SELECT * FROM person ORDER BY upper(email) LIMIT 3",
            "by_name",
        ),
        ("SELECT * FROM person ORDER BY lower(email) LIMIT 3", ""),
    ] {
        assert_eq!(index_of(&database, query), index, "{query}");
    }
}

/// Each address belongs to one person at most who is not gone, however many ask for it at once.
#[test]
fn keys_are_unique_under_every_protocol() {
    for protocol in Configuration::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("a database opens");
        database.execute(SCHEMA).expect("the schema is sound");
        database
            .execute(
                "CREATE PROCEDURE enter(number INTEGER, address TEXT) LANGUAGE plpgsql AS $$
                 BEGIN
                     UPDATE person SET gone = true, height = height + 1 WHERE lower(email) = lower(address) AND NOT gone;
                     INSERT INTO person VALUES (number, address, number);
                 END $$;
                 CREATE PROCEDURE claim(number INTEGER, address TEXT) LANGUAGE plpgsql AS $$
                 BEGIN
                     INSERT INTO person VALUES (number, address, 0)
                         ON CONFLICT (lower(email)) WHERE NOT gone DO UPDATE SET height = person.height + 1;
                 END $$;",
            )
            .expect("it is SQL");
        thread::scope(|scope| {
            for worker in 0..3 {
                let database = &database;
                scope.spawn(move || {
                    for turn in 0..40 {
                        let number = turn * 3 + worker;
                        let address = ["Ann@x", "aNN@x", "bob@X", "BOB@x"][number as usize % 4];
                        let procedure = ["enter", "claim"][turn as usize % 2];
                        let reply = database.call(procedure, (number, address));
                        reply.expect("a call ends").rows().expect("it commits");
                    }
                });
            }
        });
        let live = "SELECT lower(email), count(*) FROM person WHERE NOT gone GROUP BY 1 ORDER BY 1";
        assert_eq!(rows(&database, live), ["ann@x,1", "bob@x,1"], "{protocol}");
        let entered = "SELECT count(*) >= 60 FROM person";
        assert_eq!(rows(&database, entered), ["t"], "{protocol}");
        // Read by each index, and by none.
        let wrong = "SELECT p.id FROM person p WHERE NOT EXISTS (SELECT FROM person q WHERE q.height * 2 = p.height * 2 AND q.id = p.id)
            OR (p.height >= 190 AND p.id NOT IN (SELECT id FROM person WHERE height >= 190))";
        assert_eq!(rows(&database, wrong), [""; 0], "{protocol}");
    }
}

#[test]
fn rows_of_rust_code_have_keys() {
    let database = open();
    database
        .transaction(|transaction| {
            transaction.insert("person", (1, "Ann", 195, false))?;
            transaction.insert("person", (2, "Bob", 150, false))?;
            assert!(transaction.update("person", (2,), &[("height", Value::Integer(200))])?);
            let row = transaction.get("person", (1,))?.expect("the row is there");
            assert_eq!(row.values().len(), 4);
            Ok(())
        })
        .expect("it commits");
    let tall = "SELECT id FROM person WHERE height >= 190 ORDER BY id";
    assert_eq!(rows(&database, tall), ["1", "2"]);
    let double = "SELECT id FROM person WHERE height * 2 = 400";
    assert_eq!(rows(&database, double), ["2"]);
    let again =
        database.transaction(|transaction| transaction.insert("person", (3, "ANN", 1, false)));
    let error = again.expect_err("the address is taken");
    assert_eq!(error.state().to_string(), "23505");
    let loaded = database.engine().loader("person", &["id"]);
    let error = loaded.err().expect("keys would not be computed");
    assert_eq!(error.state().to_string(), "0A000");
}

#[test]
fn indexes_are_there_after_a_restart() {
    let directory = temporary();
    let reopened = || {
        let path = directory.path().join("data");
        let options = Options::new().workers(1).pin_workers(false);
        Database::open(options.data_dir(Some(path))).expect("the directory opens")
    };
    let steps = [
        SCHEMA,
        "INSERT INTO person VALUES (1, 'Ann', 195, false), (2, 'ANN', 10, true), (3, 'bob', 20, false)",
        "DROP INDEX by_name",
        "CREATE UNIQUE INDEX sum ON person ((height + id))",
        "ALTER TABLE person ADD COLUMN more TEXT DEFAULT 'm'",
        "CHECKPOINT",
        "CREATE INDEX later ON person (more, lower(email)) WHERE more IS NOT NULL",
        "BEGIN; CREATE INDEX block ON person (length(email)); UPDATE person SET email = 'bobby' WHERE id = 3; COMMIT",
        "ALTER TABLE person ALTER COLUMN height TYPE BIGINT",
    ];
    for step in steps {
        let database = reopened();
        match step {
            "CHECKPOINT" => drop(database.engine().checkpoint().expect("there is room")),
            step => drop(database.execute(step).expect("the step is SQL")),
        }
        database.close();
    }
    let database = reopened();
    for (query, index, found) in [
        (
            "SELECT id FROM person WHERE lower(email) = 'ann' AND NOT gone",
            "by_email",
            "1",
        ),
        (
            "SELECT id FROM person WHERE height * 2 = 40",
            "by_double",
            "3",
        ),
        ("SELECT id FROM person WHERE height + id = 23", "sum", "3"),
        (
            "SELECT id FROM person WHERE more = 'm' AND lower(email) = 'bobby'",
            "later",
            "3",
        ),
        (
            "SELECT id FROM person WHERE length(email) = 5",
            "block",
            "3",
        ),
        ("SELECT id FROM person WHERE height > 190", "tall", "1"),
    ] {
        assert_eq!(index_of(&database, query), index, "{query}");
        assert_eq!(rows(&database, query), [found], "{query}");
    }
    let refused = database.execute("UPDATE person SET gone = false WHERE id = 2");
    let error = refused.expect_err("the address is taken");
    assert_eq!(error.state().to_string(), "23505");
    assert_eq!(
        rows(&database, "SELECT * FROM person WHERE id = 3"),
        ["3,bobby,20,f,m"]
    );
}

#[test]
fn several_indexes_go_in_a_block() {
    let database = open();
    let mut session = database.session().expect("there is room");
    for statement in [
        "BEGIN",
        "INSERT INTO person VALUES (1, 'Ann', 195, false)",
        "DROP INDEX by_double, tall, by_name",
        "INSERT INTO person VALUES (2, 'bob', 20, false)",
        "DROP INDEX by_email",
        "INSERT INTO person VALUES (3, 'ANN', 195, false)",
        "COMMIT",
    ] {
        session.execute(statement).expect("the block goes on");
    }
    assert_eq!(rows(&database, "SELECT count(*) FROM person"), ["3"]);
    let left = "SELECT indexname FROM pg_indexes WHERE tablename = 'person'";
    assert_eq!(rows(&database, left), ["person_pkey"]);
}
