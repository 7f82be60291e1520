//! Errors name the objects that they are about, as PostgreSQL's do.

#![cfg(not(kiln_sim))]

use kiln_sql::{Database, Options};
use kiln_storage::error::Subject;

#[test]
fn errors_name_their_objects() {
    let database = Database::open(Options::new().workers(1).pin_workers(false)).expect("it opens");
    let script = "
        CREATE TABLE owner (id INTEGER PRIMARY KEY);
        CREATE TABLE thing (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            n INTEGER CONSTRAINT small CHECK (n < 10),
            owner INTEGER CONSTRAINT owned REFERENCES owner (id));
        INSERT INTO owner VALUES (1);
        INSERT INTO thing VALUES (1, 'a', 1, 1);
        CREATE TABLE twice (a INTEGER);
        INSERT INTO twice VALUES (1), (1);
        CREATE FUNCTION fail() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'no' USING SCHEMA = 's', TABLE = 't', COLUMN = 'c', DATATYPE = 'd', CONSTRAINT = 'n';
        END $$;";
    database.execute(script).expect("it runs");
    let thing = Subject::table("thing");
    let name = |name: &str| Some(name.to_owned());
    let raised = Subject {
        schema: name("s"),
        table: name("t"),
        column: name("c"),
        data_type: name("d"),
        constraint: name("n"),
    };
    let cases = [
        (
            "INSERT INTO thing VALUES (1, 'a', 1, 1)",
            thing.clone().with_constraint("thing_pkey"),
        ),
        (
            "INSERT INTO thing VALUES (2, NULL, 1, 1)",
            thing.clone().with_column("name"),
        ),
        (
            "UPDATE thing SET n = 11",
            thing.clone().with_constraint("small"),
        ),
        (
            "INSERT INTO thing VALUES (2, 'a', 1, 2)",
            thing.clone().with_constraint("owned"),
        ),
        ("DELETE FROM owner", thing.clone().with_constraint("owned")),
        (
            "CREATE UNIQUE INDEX by_a ON twice (a)",
            Subject::table("twice").with_constraint("by_a"),
        ),
        ("SELECT 'x'::INTEGER", Subject::default()),
        ("SELECT fail()", raised),
    ];
    for (statement, subject) in cases {
        let error = database.execute(statement).expect_err(statement);
        assert_eq!(*error.subject(), subject, "{statement}: {error}");
    }
}
