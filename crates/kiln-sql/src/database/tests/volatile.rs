//! What is volatile is computed as often as it is written: once for each row, and not twice for
//! one.

use kiln_engine::{Configuration, Options, Reply};

use super::super::Database;
use super::{check, open, transcript};

const SCHEMA: &str = "
    CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER);
    INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40);
    CREATE TABLE calls (n INTEGER);
    CREATE FUNCTION tick(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO calls VALUES (x); RETURN x; END $$;
    CREATE FUNCTION chance() RETURNS DOUBLE PRECISION LANGUAGE plpgsql AS $$
    BEGIN RETURN random(); END $$;
    CREATE FUNCTION fixed() RETURNS INTEGER LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN 2; END $$;";

/// Runs a query on [`SCHEMA`] and compares its only value.
#[track_caller]
fn gives(query: &str, expected: &str) {
    let all = transcript(&format!("{SCHEMA}{query}"));
    assert_eq!(all.lines().last(), Some(expected), "{query}: {all}");
}

/// How often `tick` was called by a statement.
#[track_caller]
fn calls(statement: &str, expected: usize) {
    gives(
        &format!("{statement}; SELECT count(*) FROM calls"),
        &expected.to_string(),
    );
}

#[test]
fn conditions_are_for_each_row() {
    for volatile in ["random()", "chance()"] {
        gives(
            &format!(
                "SELECT count(*) BETWEEN 1 AND 999 FROM generate_series(1, 1000) WHERE {volatile} < 0.5"
            ),
            "t",
        );
        gives(
            &format!(
                "SELECT count(*) BETWEEN 1 AND 999 FROM generate_series(1, 100) x, generate_series(1, 10) y
                 WHERE {volatile} < 0.5 AND x > 0"
            ),
            "t",
        );
        gives(
            &format!(
                "SELECT count(DISTINCT y) FROM generate_series(1, 1) x
                 LEFT JOIN generate_series(1, 100) y ON {volatile} < 0.5 AND y > 0"
            )
            .replace("count(DISTINCT y)", "count(DISTINCT y) BETWEEN 1 AND 99"),
            "t",
        );
        gives(
            &format!(
                "SELECT count(*) BETWEEN 1 AND 999 FROM generate_series(1, 1000)
                 WHERE {volatile} BETWEEN 0.25 AND 0.75"
            ),
            "t",
        );
    }
    gives(
        "UPDATE t SET b = 0 WHERE random() < 2; SELECT sum(b) FROM t",
        "0",
    );
    // What a statement computes once it computes once, volatile or not.
    gives(
        "SELECT count(*) IN (0, 1000) FROM generate_series(1, 1000) WHERE (SELECT random()) < 0.5",
        "t",
    );
}

#[test]
fn rows_have_values_of_their_own() {
    gives(
        "SELECT count(DISTINCT r) FROM (SELECT random() r FROM t) s",
        "4",
    );
    gives(
        "SELECT count(DISTINCT r) FROM (SELECT chance() r FROM t) s",
        "4",
    );
    gives(
        "SELECT count(DISTINCT r) FROM (SELECT (SELECT random()) r FROM t) s",
        "1",
    );
    gives(
        "SELECT count(DISTINCT r) FROM (SELECT (SELECT random() + 0 * a) r FROM t) s",
        "4",
    );
    // A function in FROM is called once, whichever source leads.
    gives("SELECT count(DISTINCT f) FROM t, chance() f", "1");
    gives("SELECT count(DISTINCT f) FROM chance() f, t", "1");
    calls("SELECT * FROM tick(1) f, t", 1);
}

#[test]
fn order_and_groups_name_the_output() {
    for order in ["1", "r", "random()"] {
        gives(
            &format!(
                "CREATE FUNCTION sorted() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
                 DECLARE
                     row RECORD;
                     last DOUBLE PRECISION := -1;
                 BEGIN
                     FOR row IN SELECT random() AS r FROM generate_series(1, 50) ORDER BY {order} LOOP
                         IF row.r < last THEN RETURN false; END IF;
                         last := row.r;
                     END LOOP;
                     RETURN true;
                 END $$;
                 SELECT sorted()"
            ),
            "t",
        );
    }
    gives(
        "SELECT count(*) FROM (SELECT DISTINCT random() AS r FROM t ORDER BY random()) s",
        "4",
    );
    gives(
        "SELECT count(DISTINCT r) FROM (SELECT random() AS r, count(*) FROM t GROUP BY random()) s",
        "4",
    );
    gives("SELECT sum(random()) = sum(random()) FROM t", "f");
}

#[test]
fn expressions_compute_an_operand_once() {
    for expression in [
        "tick(5) BETWEEN 1 AND 9",
        "tick(5) NOT BETWEEN 6 AND 9",
        "nullif(tick(5), 4)",
        "coalesce(tick(5), 4)",
        "greatest(tick(5), 4)",
        "CASE tick(5) WHEN 1 THEN 1 WHEN 5 THEN 2 WHEN 6 THEN 3 END",
        "tick(5) IN (1, 2, 5)",
        "tick(5) NOT IN (1, 2, 3)",
        "(tick(5), 1) IN ((1, 1), (5, 2), (6, 3))",
        "(tick(5), 1) < (5, 2)",
        "tick(5) IN (SELECT a FROM t)",
        "tick(5) > ANY (SELECT a FROM t)",
        "tick(5) = ANY (ARRAY[1, 2, 5])",
    ] {
        calls(&format!("SELECT {expression}"), 1);
    }
    calls("SELECT EXISTS (SELECT tick(5)), EXISTS (SELECT 1 / 0)", 0);
    calls("SELECT tick(5), tick(5)", 2);
    calls("INSERT INTO t VALUES (tick(5), 1)", 1);
}

#[test]
fn queries_of_with_run_once() {
    gives(
        "WITH q AS (SELECT random() r) SELECT a.r = b.r FROM q a, q b",
        "t",
    );
    gives(
        "WITH q AS (SELECT random() r FROM t), p AS (SELECT r FROM q)
         SELECT count(*) FROM q a JOIN p b ON a.r = b.r",
        "4",
    );
    gives(
        "WITH q AS (SELECT random() r) SELECT count(DISTINCT (SELECT r FROM q)) FROM t",
        "1",
    );
    calls(
        "WITH q AS (SELECT tick(1) r) SELECT a.r + b.r FROM q a, q b",
        1,
    );
    calls("WITH q AS (SELECT tick(1) r) SELECT r FROM q", 1);
    // As in PostgreSQL, what nothing names does not run.
    calls("WITH q AS (SELECT tick(1) r) SELECT 1", 0);
    gives("WITH q AS (SELECT 1 / 0) SELECT 1", "1");
    // It is of the row around when it names that.
    check(
        &format!(
            "{SCHEMA}
             SELECT a, (WITH q AS (SELECT t.b AS v, random() r)
                        SELECT (SELECT max(v) FROM q) + (SELECT count(*) FROM q x, q y WHERE x.r = y.r))
             FROM t ORDER BY a"
        ),
        "CREATE TABLE
         INSERT 0 4
         CREATE TABLE
         CREATE FUNCTION
         CREATE FUNCTION
         CREATE FUNCTION
         a,?column?
         1,11
         2,21
         3,31
         4,41",
    );
}

#[test]
fn what_cannot_run_as_written_is_refused() {
    let database = open();
    database.execute(SCHEMA).expect("the schema is good");
    for (statement, feature) in [
        (
            "SELECT tick(4), (SELECT count(*) FROM calls)",
            "a call of tick by a statement that reads what the function writes",
        ),
        (
            "SELECT f FROM tick(4) f, calls",
            "a call of tick by a statement that reads what the function writes",
        ),
        (
            "INSERT INTO t VALUES (tick(7), (SELECT count(*) FROM calls))",
            "a call of tick by a statement that reads what the function writes",
        ),
        (
            "DO $$ DECLARE x BIGINT; BEGIN x := tick(7) + (SELECT count(*) FROM calls); END $$",
            "a call of tick by a statement that reads what the function writes",
        ),
        (
            "INSERT INTO t VALUES (9, 9) RETURNING (SELECT count(*) FROM t)",
            "a subquery on the changed table in RETURNING",
        ),
        (
            "INSERT INTO t VALUES (8, 8), (1, 1) ON CONFLICT (a) DO UPDATE SET b = (SELECT count(*) FROM t)",
            "a subquery on the changed table in ON CONFLICT with several rows",
        ),
    ] {
        let error = database.execute(statement).expect_err(statement);
        assert_eq!(error.state().as_str(), "0A000", "{statement}");
        let message = format!("{feature} is not supported");
        assert_eq!(error.message(), message, "{statement}");
    }
    let rows = database.query("SELECT count(*), sum(b) FROM t", ());
    assert_eq!(rows.expect("it is a query").to_csv(), "count,sum\n4,100\n");
}

#[test]
fn what_is_shared_inside_a_subquery_stays_there() {
    gives(
        "SELECT count(*) FROM t WHERE coalesce(nullif(a > 9, false), a IN (
             SELECT s.a FROM chance() c JOIN t s ON c < 2
             WHERE (SELECT random() + s.b) NOT BETWEEN 50 AND 60)) IN (SELECT true FROM t)",
        "4",
    );
}

#[test]
fn declared_stable_functions_still_find_keys() {
    gives("SELECT b FROM t WHERE a = fixed()", "20");
    let database = open();
    database.execute(SCHEMA).expect("the schema is good");
    let plan = database.query("EXPLAIN SELECT b FROM t WHERE a = fixed()", ());
    let plan = plan.expect("it is explained").to_csv();
    assert!(plan.contains("lookup"), "{plan}");
}

#[test]
fn random_keys_are_found_under_every_protocol() {
    for configuration in Configuration::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(configuration)).expect("it opens");
        database
            .execute(
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL);
                 INSERT INTO t SELECT g, 0 FROM generate_series(0, 7) g;
                 CREATE PROCEDURE any_row() LANGUAGE plpgsql AS $$
                 DECLARE key INTEGER := floor(random() * 8);
                 BEGIN
                     UPDATE t SET b = b + 1 WHERE a = key;
                     IF NOT FOUND THEN RAISE EXCEPTION 'no row %', key; END IF;
                 END $$;",
            )
            .expect("the schema is good");
        for _ in 0..40 {
            let reply = database.call("any_row", ()).expect("it is there");
            assert!(
                matches!(reply, Reply::Committed(..)),
                "{configuration}: {reply:?}"
            );
        }
        let rows = database.query("SELECT sum(b), count(*) FROM t WHERE b >= 0", ());
        let rows = rows.expect("it is a query").to_csv();
        assert_eq!(rows, "sum,count\n40,8\n", "{configuration}");
    }
}
