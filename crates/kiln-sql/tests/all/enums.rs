//! Enums: kept by the log, by checkpoints and with answers; seen by statements that are older than
//! their labels.

#![cfg(not(kiln_sim))]

use kiln_platform::disk::TemporaryDirectory;
use kiln_sql::{Database, Options, Value};

const SCHEMA: &str = "
    CREATE TYPE \"Mood\" AS ENUM ('sad', 'it''s ok', 'end');
    CREATE TABLE day (id INT PRIMARY KEY, mood \"Mood\" DEFAULT 'end', all_of \"Mood\"[]);
    CREATE INDEX day_mood ON day (mood);
    CREATE VIEW moods AS SELECT id, mood FROM day;
    CREATE FUNCTION next_of(m \"Mood\") RETURNS \"Mood\" LANGUAGE plpgsql AS
        $$ BEGIN RETURN (enum_range(m, NULL))[2]; END $$;
    INSERT INTO day VALUES (1, 'sad', '{sad,end}'), (2, 'it''s ok', NULL), (3, DEFAULT, '{}');
    COMMENT ON TYPE \"Mood\" IS 'how it is'";

fn options() -> Options {
    Options::new().workers(1).pin_workers(false)
}

/// The rows in the order of their moods, and what the catalogs say.
fn all(database: &Database) -> String {
    let queries = [
        "SELECT id, mood, all_of, next_of(mood) FROM day ORDER BY mood, id",
        "SELECT id FROM day WHERE mood >= 'it''s ok' ORDER BY mood DESC, id",
        "SELECT * FROM moods WHERE mood <> 'sad' ORDER BY id",
        "SELECT t.oid, t.typname, e.oid AS label, e.enumlabel, e.enumsortorder FROM pg_type t
            JOIN pg_enum e ON e.enumtypid = t.oid ORDER BY e.enumsortorder",
        "SELECT obj_description('\"Mood\"'::regtype, 'pg_type')",
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef",
    ];
    let results = queries.map(|query| database.query(query, ()).expect(query).to_csv());
    results.concat()
}

#[test]
fn enums_are_kept_by_the_log_and_by_checkpoints() {
    let temporary = TemporaryDirectory::new("kiln-enums").expect("there is room");
    let open = || {
        let data = temporary.path().join("data");
        Database::open(options().data_dir(Some(data))).expect("it opens")
    };
    let reopened = |database: Database| {
        let before = all(&database);
        drop(database);
        let database = open();
        assert_eq!(all(&database), before);
        database
    };
    let database = open();
    database.execute(SCHEMA).expect("it is right");
    let database = reopened(database);
    database
        .execute(
            "ALTER TYPE \"Mood\" ADD VALUE 'fine' BEFORE 'end';
             ALTER TYPE \"Mood\" RENAME VALUE 'end' TO 'best';
             INSERT INTO day VALUES (4, 'fine', '{fine}'), (5, DEFAULT, NULL)",
        )
        .expect("it is right");
    let database = reopened(database);
    database.engine().checkpoint().expect("it is written");
    let database = reopened(database);
    database
        .execute(
            "BEGIN;
             ALTER TYPE \"Mood\" ADD VALUE 'worst' BEFORE 'sad';
             UPDATE day SET mood = 'worst' WHERE id = 2;
             CREATE TYPE size AS ENUM ('s', 'm');
             CREATE TABLE shirt (size size);
             INSERT INTO shirt VALUES ('m'), ('s');
             COMMIT",
        )
        .expect("it is right");
    let shirts = |database: &Database| {
        let rows = database.query("SELECT size FROM shirt ORDER BY size", ());
        rows.expect("it is right").to_csv()
    };
    assert_eq!(shirts(&database), "size\ns\nm\n");
    let database = reopened(database);
    assert_eq!(shirts(&database), "size\ns\nm\n");
    database.engine().checkpoint().expect("it is written");
    database
        .execute("DROP TYPE \"Mood\" CASCADE; DROP FUNCTION IF EXISTS next_of")
        .expect("it is right");
    drop(database);
    let database = open();
    let rows = database.query("SELECT * FROM day ORDER BY id", ());
    assert_eq!(rows.expect("it is right").to_csv(), "id\n1\n2\n3\n4\n5\n");
    assert!(database.query("SELECT NULL::\"Mood\"", ()).is_err());
}

#[test]
fn a_statement_knows_labels_that_are_younger_than_itself() {
    let database = Database::open(options()).expect("it opens");
    database.execute(SCHEMA).expect("it is right");
    let mut session = database.session().expect("a session");
    let insert = "INSERT INTO day (id, mood, all_of) VALUES ($1, $2, $3) RETURNING mood";
    let insert = session.parse(insert, &[]).expect("it is right");
    let mut put = |id: i32, mood: &str| {
        let values = [
            Value::Integer(id),
            Value::from(mood),
            Value::Array(vec![Value::from(mood)]),
        ];
        let mut portal = session.bind(&insert, &values)?;
        let portion = session.execute_portal(&mut portal, 0)?;
        Ok::<String, kiln_sql::Error>(portion.rows[0][0].to_string())
    };
    assert_eq!(put(7, "sad").as_deref(), Ok("sad"));
    let refused = put(8, "fine").expect_err("it is no label");
    assert_eq!(refused.state().as_str(), "22P02");
    database
        .execute("ALTER TYPE \"Mood\" ADD VALUE 'fine' AFTER 'sad'")
        .expect("it is right");
    assert_eq!(put(8, "fine").as_deref(), Ok("fine"));
    database
        .execute("ALTER TYPE \"Mood\" RENAME VALUE 'fine' TO 'good'")
        .expect("it is right");
    assert_eq!(put(9, "good").as_deref(), Ok("good"));
    let refused = put(10, "fine").expect_err("it is no label any more");
    assert_eq!(refused.state().as_str(), "22P02");
}

#[test]
fn superusers_define_types() {
    let database = Database::open(options()).expect("it opens");
    database.execute(SCHEMA).expect("it is right");
    database
        .execute("CREATE ROLE clerk LOGIN; GRANT SELECT, INSERT ON day TO clerk")
        .expect("it is right");
    let mut session = database.session_as("clerk").expect("there is such a role");
    session
        .execute("INSERT INTO day VALUES (8, 'sad'::\"Mood\")")
        .expect("all may use a type");
    for statement in [
        "CREATE TYPE size AS ENUM ('s')",
        "ALTER TYPE \"Mood\" ADD VALUE 'x'",
        "DROP TYPE \"Mood\" CASCADE",
    ] {
        let refused = session.execute(statement).expect_err(statement);
        assert_eq!(refused.state().as_str(), "42501", "{statement}");
    }
}

#[test]
fn other_names_that_texts_would_not_know_are_refused() {
    let database = Database::open(options()).expect("it opens");
    database
        .execute(
            "CREATE TYPE mood AS ENUM ('sad', 'ok');
             CREATE TABLE day (m mood DEFAULT 'ok'::mood CHECK (m <> 'sad'));
             CREATE VIEW bad AS SELECT m FROM day WHERE m = 'sad'::mood",
        )
        .expect("it is right");
    for statement in [
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'low'",
        "ALTER TYPE mood RENAME TO temper",
    ] {
        let refused = database.execute(statement).expect_err(statement);
        assert_eq!(refused.state().as_str(), "0A000", "{statement}");
    }
    database
        .execute(
            "DROP VIEW bad; ALTER TABLE day DROP CONSTRAINT day_m_check;
             ALTER TYPE mood RENAME VALUE 'sad' TO 'low';
             ALTER TYPE mood RENAME TO temper;
             INSERT INTO day VALUES (DEFAULT)",
        )
        .expect("nothing names them any more");
}

#[test]
fn types_are_found_by_their_numbers() {
    let database = Database::open(options()).expect("it opens");
    database.execute(SCHEMA).expect("it is right");
    let number = |text: &str| {
        let query = format!("SELECT '{text}'::regtype::oid::bigint");
        let rows = database.query(&query, ()).expect("it is right");
        rows.into_one::<(i64,)>().expect("it is a number").0 as u32
    };
    let catalog = database.engine().catalog();
    let found = |text: &str| catalog.type_numbered(number(text)).map(|it| it.to_string());
    assert_eq!(found("\"Mood\"").as_deref(), Some("\"Mood\""));
    assert_eq!(found("\"Mood\"[]").as_deref(), Some("\"Mood\"[]"));
    assert_eq!(found("day"), None);
}
