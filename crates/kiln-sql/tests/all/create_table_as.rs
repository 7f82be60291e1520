//! CREATE TABLE … AS: the table and its rows are there together or not at all.

#![cfg(not(kiln_sim))]

use kiln_platform::disk::TemporaryDirectory;
use kiln_sql::{Database, Options};

fn open(temporary: &TemporaryDirectory) -> Database {
    let options = Options::new().workers(1).pin_workers(false);
    let options = options.data_dir(Some(temporary.path().join("data")));
    Database::open(options).expect("it opens")
}

fn text(database: &Database, query: &str) -> String {
    database.query(query, ()).expect(query).to_csv()
}

#[test]
fn rows_are_recovered_as_they_were() {
    let temporary = TemporaryDirectory::new("kiln-create-as").expect("there is room");
    let query = "SELECT count(*), sum(i), min(r), max(r), min(u::text) FROM again";
    let before = {
        let database = open(&temporary);
        database
            .execute(
                "CREATE TABLE src AS SELECT i, random() AS r, gen_random_uuid() AS u FROM generate_series(1, 100) i;
                 SELECT * INTO again FROM src WHERE i > 50;
                 CREATE TABLE like_it (LIKE src INCLUDING ALL);
                 CREATE TABLE no_rows AS SELECT * FROM src WITH NO DATA;
                 DELETE FROM src",
            )
            .expect("it is right");
        text(&database, query)
    };
    for _ in 0..2 {
        let database = open(&temporary);
        assert_eq!(text(&database, query), before);
        assert_eq!(text(&database, "SELECT count(*) FROM src"), "count\n0\n");
        assert_eq!(text(&database, "SELECT * FROM no_rows"), "i,r,u\n");
        database.engine().checkpoint().expect("it is written");
    }
}

#[test]
fn what_fails_leaves_nothing() {
    let database = Database::open(Options::new().workers(1)).expect("it opens");
    let divides = "CREATE TABLE t AS SELECT 1 / (i - 2) AS a FROM generate_series(1, 3) i";
    let failed = database.execute(divides).expect_err("it divides");
    assert_eq!(failed.state().as_str(), "22012");
    assert_eq!(database.engine().catalog().tables().count(), 0);
    let mut session = database.session().expect("a session");
    assert!(session.execute(divides).is_err());
    assert!(!session.in_transaction());
    session.execute("SELECT 1").expect("the session goes on");
}

#[test]
fn a_block_takes_it_along() {
    let database = Database::open(Options::new().workers(1)).expect("it opens");
    database
        .execute(
            "BEGIN; CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); ROLLBACK;
             BEGIN; CREATE TABLE u AS SELECT 1 AS a; INSERT INTO u VALUES (2); SELECT a INTO v FROM u WHERE a > 1; COMMIT",
        )
        .expect("it is right");
    assert_eq!(text(&database, "SELECT a FROM u ORDER BY a"), "a\n1\n2\n");
    assert_eq!(text(&database, "SELECT a FROM v"), "a\n2\n");
    assert!(database.query("SELECT * FROM t", ()).is_err());
}

#[test]
fn superusers_create() {
    let database = Database::open(Options::new().workers(1)).expect("it opens");
    database.execute("CREATE ROLE clerk LOGIN").expect("a role");
    let mut session = database.session_as("clerk").expect("its session");
    for statement in ["CREATE TABLE t AS SELECT 1 AS a", "SELECT 1 AS a INTO t"] {
        let refused = session.execute(statement).expect_err(statement);
        assert_eq!(refused.state().as_str(), "42501", "{statement}");
    }
}
