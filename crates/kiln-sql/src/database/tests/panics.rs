//! Panics while a statement is parsed or compiled, planted at each step and behind each door.

use kiln_storage::error::{Error, SqlState};

use super::super::Session;
use super::super::panics::planted::{Step, is_waiting, plant};
use super::{Database, open};

/// A way to give a statement to the database.
type Door = fn(&Database, &mut Session, &str) -> Result<(), Error>;

const DOORS: &[(&str, Door)] = &[
    ("Database::execute", |database, _, sql| {
        database.execute(sql).map(drop)
    }),
    ("Database::query", |database, _, sql| {
        database.query(sql, ()).map(drop)
    }),
    ("Database::query with a parameter", |database, _, sql| {
        let sql = format!("{sql} WHERE $1 = 1");
        database.query(&sql, (1,)).map(drop)
    }),
    ("Session::execute", |_, session, sql| {
        session.execute(sql).map(drop)
    }),
    ("Session::run", |_, session, sql| {
        session.run(sql, ()).map(drop)
    }),
    ("Database::transaction", |database, _, sql| {
        database.transaction(|transaction| transaction.execute(sql, ()).map(drop))
    }),
];

fn filled() -> Database {
    let database = open();
    database
        .execute(
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER);
             INSERT INTO t VALUES (1, 10), (2, 20);
             CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
             BEGIN RETURN (SELECT sum(b) FROM t WHERE a <= x); END $$;
             CREATE PROCEDURE p(x INTEGER) LANGUAGE plpgsql AS $$
             BEGIN UPDATE t SET b = b + 1 WHERE a = x; END $$;",
        )
        .expect("the schema is good");
    database
}

/// What the database holds: rows and what can be called.
fn content(database: &Database) -> String {
    let rows = database
        .query("SELECT a, b, f(a) FROM t ORDER BY a", ())
        .expect("the table is there");
    let catalog = database.engine().catalog();
    let tables = catalog.tables().map(|(name, table)| {
        let indexes = table.indexes().iter();
        let indexes: Vec<_> = indexes.map(|index| &index.definition().name).collect();
        format!("{name} {indexes:?}")
    });
    let procedures = catalog
        .procedures()
        .map(|known| format!("{} {:?}", known.name(), known.source()));
    let names: Vec<String> = tables.chain(procedures).collect();
    format!("{}{names:?}", rows.to_csv())
}

#[track_caller]
fn is_defect(error: &Error, step: Step, sql: &str) {
    assert_eq!(error.state(), SqlState::INTERNAL_ERROR, "{error}");
    assert!(error.message().contains(&format!("{step:?}")), "{error}");
    let detail = error.detail().unwrap_or_default();
    assert!(detail.contains(sql), "{detail}");
    let hint = error.hint().unwrap_or_default();
    assert!(hint.contains("report"), "{hint}");
}

#[test]
fn statements_on_data_fail_alone() {
    for (name, door) in DOORS {
        for step in [Step::Parse, Step::Bind, Step::Plan, Step::Finish] {
            let database = filled();
            let mut session = database.session().expect("a session is free");
            let before = content(&database);
            let sql = "INSERT INTO t SELECT a + 10, b FROM t";
            plant(step);
            let error = door(&database, &mut session, sql).expect_err(name);
            assert!(!is_waiting(), "{name} comes to {step:?}");
            is_defect(&error, step, sql);
            assert_eq!(content(&database), before, "{name}, {step:?}");
            door(&database, &mut session, sql).expect("the same statement compiles now");
            assert_ne!(content(&database), before, "{name}, {step:?}");
        }
    }
}

#[test]
fn definitions_are_complete_or_not_there() {
    let statements = [
        ("CREATE TABLE u (a INTEGER)", Step::Derive),
        ("CREATE INDEX i ON t (b)", Step::Derive),
        ("ALTER TABLE t SET REPLICATED", Step::Derive),
        ("TRUNCATE t", Step::Derive),
        ("DROP FUNCTION f", Step::Derive),
        (
            "CREATE FUNCTION g() RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
            Step::Finish,
        ),
        (
            "CREATE OR REPLACE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
            Step::Derive,
        ),
    ];
    for (sql, step) in statements {
        let database = filled();
        let mut other = database.session().expect("a session is free");
        let before = content(&database);
        for step in [Step::Parse, step] {
            plant(step);
            let error = database.execute(sql).expect_err(sql);
            assert!(!is_waiting(), "{sql} comes to {step:?}");
            is_defect(&error, step, sql);
            assert_eq!(content(&database), before, "{sql}");
            other
                .execute("CALL p(1); UPDATE t SET b = b - 1 WHERE a = 1")
                .expect(sql);
        }
        database
            .execute(sql)
            .expect("the same statement compiles now");
    }
}

#[test]
fn a_block_fails_and_ends() {
    let database = filled();
    let mut session = database.session().expect("a session is free");
    for sql in [
        "DELETE FROM t",
        "DO $$ BEGIN DELETE FROM t; END $$",
        "EXPLAIN DELETE FROM t",
    ] {
        let before = content(&database);
        session
            .execute("BEGIN; UPDATE t SET b = 0")
            .expect("it is a block");
        plant(Step::Finish);
        is_defect(&session.execute(sql).expect_err(sql), Step::Finish, sql);
        assert!(session.has_failed(), "{sql}");
        session.execute("ROLLBACK").expect("it ends");
        assert_eq!(content(&database), before, "{sql}");
    }
    plant(Step::Bind);
    let call = "CALL p((SELECT 1))";
    is_defect(&session.execute(call).expect_err(call), Step::Bind, call);
    session
        .execute(call)
        .expect("the same statement compiles now");
}

#[test]
fn rows_of_rust_code_fail_alone() {
    let database = filled();
    let before = content(&database);
    plant(Step::Bind);
    let insert =
        |database: &Database| database.transaction(|transaction| transaction.insert("t", (7, 70)));
    let error = insert(&database).expect_err("a panic was planted");
    assert_eq!(error.state(), SqlState::INTERNAL_ERROR);
    assert_eq!(content(&database), before);
    insert(&database).expect("the same row is inserted now");
}
