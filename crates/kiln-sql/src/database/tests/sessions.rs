//! Scripts, transaction blocks, parameters, calls.

use kiln_engine::{Call, Options, Protocol, Reply};
use kiln_storage::error::{Position, SqlState};
use kiln_storage::types::Value;

use super::super::Database;
use super::{check, open};

#[test]
fn blocks_begin_and_end() {
    check(
        "COMMIT;
         BEGIN ISOLATION LEVEL REPEATABLE READ;
         BEGIN;
         SELECT 1 AS one;
         CREATE TABLE t (id INTEGER);
         VACUUM;
         SELECT 2;
         COMMIT;
         CREATE TABLE t (id INTEGER PRIMARY KEY);
         BEGIN; INSERT INTO t VALUES (1); TRUNCATE t; INSERT INTO t VALUES (2); SELECT * FROM t; ROLLBACK;
         SELECT count(*) FROM t;
         BEGIN READ ONLY; INSERT INTO t VALUES (3); ROLLBACK;
         SET TIME ZONE 'UTC'; SET statement_timeout = '5s'; SHOW statement_timeout; SHOW timezone;
         SET datestyle = 'German';
         SET nonsense = 1;",
        "WARNING:  there is no transaction in progress
         COMMIT
         BEGIN
         WARNING:  there is already a transaction in progress
         BEGIN
         one
         1
         CREATE TABLE
         25001: VACUUM cannot run inside a transaction block
         25P02: current transaction is aborted, commands ignored until end of transaction block
         ROLLBACK
         CREATE TABLE
         BEGIN
         INSERT 0 1
         TRUNCATE TABLE
         INSERT 0 1
         id
         2
         ROLLBACK
         count
         0
         BEGIN
         25006: cannot execute INSERT in a read-only transaction
         ROLLBACK
         SET
         SET
         statement_timeout
         5s
         TimeZone
         UTC
         0A000: DateStyle = German is not supported
         42704: unrecognized configuration parameter \"nonsense\"",
    );
}

#[test]
fn errors_say_where() {
    let database = open();
    let place = |text: &str| {
        let error = database.execute(text).expect_err("it is refused");
        let Position { line, column } = error.position().expect("it has a place");
        (error.state().as_str().to_owned(), line, column)
    };
    database
        .execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        .expect("it is new");
    assert_eq!(
        place("SELECT 1;\n  SELECT\n nope FROM t"),
        ("42703".to_owned(), 3, 2)
    );
    assert_eq!(
        place("SELECT 1;\n\n  SELECT 1 / (id - id) FROM t, (SELECT 1) AS x; SELEC"),
        ("42601".to_owned(), 3, 49)
    );
    assert_eq!(
        place("INSERT INTO t VALUES (1);\n INSERT INTO t VALUES (1)"),
        ("23505".to_owned(), 2, 2)
    );
    assert_eq!(
        place("\n UPDATE t SET zip = 1"),
        ("42703".to_owned(), 2, 15)
    );
    let open_block = database.execute("BEGIN;\nINSERT INTO t VALUES (5)");
    let error = open_block.expect_err("the block must end within the script");
    assert_eq!(error.state(), SqlState::ACTIVE_SQL_TRANSACTION);
    let count = database
        .query("SELECT count(*) FROM t", ())
        .and_then(|rows| rows.into_one());
    assert_eq!(count, Ok((1_i64,)), "the open block was rolled back");
}

#[test]
fn parameters_have_their_values_types() {
    let database = open();
    database
        .execute("CREATE TABLE t (id SMALLINT PRIMARY KEY, d DATE, n NUMERIC(6, 2), s TEXT)")
        .expect("it is new");
    let mut session = database.session().expect("a session is free");
    let insert = "INSERT INTO t VALUES ($1, $2, $3, $4)";
    for (id, date) in [(1, Some("2024-05-06")), (2, None)] {
        let result = session.run(insert, (id, date, 2.5, "it's $1"));
        assert_eq!(result.map(|result| result.tag), Ok("INSERT 0 1".to_owned()));
    }
    let rows = session.query("SELECT id, s, n::text FROM t WHERE d = $1", ("2024-05-06",));
    let rows = rows.and_then(|rows| rows.into_rows());
    assert_eq!(
        rows,
        Ok(vec![(1_i16, "it's $1".to_owned(), "2.50".to_owned())])
    );
    let rows = session.query(
        "SELECT id FROM t WHERE d IS NOT DISTINCT FROM $1",
        [Value::Null],
    );
    assert_eq!(rows.and_then(|rows| rows.into_one()), Ok((2_i16,)));
    let error = session
        .query("SELECT $3", (1, 2))
        .expect_err("there are two parameters");
    assert_eq!(error.state(), SqlState::UNDEFINED_PARAMETER);
    let error = session
        .query("SELECT 1; SELECT 2", (1,))
        .expect_err("that is two");
    assert_eq!(error.state(), SqlState::SYNTAX_ERROR);
    // The plan is compiled anew when the catalog changed.
    database
        .execute("DROP TABLE t; CREATE TABLE t (id TEXT)")
        .expect("it can be replaced");
    let rows = session.query("SELECT id FROM t WHERE id = $1", ("x",));
    assert_eq!(rows.map(|rows| rows.len()), Ok(0));
    let error = session
        .run(insert, (1, "2024-05-06", 2.5, "x"))
        .expect_err("fewer columns");
    assert_eq!(error.state(), SqlState::SYNTAX_ERROR);
}

const ACCOUNTS: &str = "
    CREATE TABLE account (id INTEGER PRIMARY KEY, balance NUMERIC(12, 2) NOT NULL CHECK (balance >= 0));
    INSERT INTO account SELECT generate_series, 100 FROM generate_series(1, 10);
    CREATE PROCEDURE transfer(source INTEGER, target INTEGER, amount NUMERIC, OUT left_over NUMERIC)
    LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE account SET balance = balance - amount WHERE id = source RETURNING balance INTO left_over;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'no account %', source USING ERRCODE = 'BK404', HINT = 'Open one.';
      END IF;
      UPDATE account SET balance = balance + amount WHERE id = target;
      RAISE NOTICE 'moved %', amount;
    END $$;";

#[test]
fn procedures_are_called_from_sql_and_from_rust() {
    check(
        &format!(
            "{ACCOUNTS}
             CALL transfer(1, 2, 30.5, NULL);
             CALL transfer(source => 2, amount => (SELECT count(*) FROM account), target => 1, left_over => NULL);
             CALL transfer(1, 2, 1000, NULL);
             CALL transfer(99, 2, 1, NULL);
             CALL transfer(1, 2);
             CALL transfer(1, 'two', 1, NULL);
             CALL transfer(1, true, 1, NULL);
             BEGIN; CALL transfer(3, 4, 1 + 1, NULL); ROLLBACK;
             DO $$ BEGIN RAISE WARNING 'careful'; END $$;
             SELECT * FROM account WHERE balance <> 100 ORDER BY id;"
        ),
        "CREATE TABLE
         INSERT 0 10
         CREATE PROCEDURE
         NOTICE:  moved 30.5
         left_over
         69.50
         NOTICE:  moved 10
         left_over
         120.50
         23514: new row for relation \"account\" violates check constraint \"account_balance_check\" / Failing row contains (1, -920.50).
         BK404: no account 99
         42883: procedure transfer(integer, integer) does not exist
         22P02: invalid input syntax for type integer: \"two\"
         42883: procedure transfer(integer, boolean, integer, unknown) does not exist
         BEGIN
         NOTICE:  moved 2
         left_over
         98.00
         ROLLBACK
         WARNING:  careful
         DO
         id,balance
         1,79.50
         2,120.50",
    );
}

#[test]
fn rust_calls_and_closures_see_the_same_database() {
    for protocol in Protocol::serializable() {
        let options = Options::new()
            .workers(1)
            .pin_workers(false)
            .protocol(protocol);
        let database = Database::open(options).expect("the options are good");
        database.execute(ACCOUNTS).expect("the script is good");
        let reply = database
            .call("transfer", (1, 2, 25))
            .expect("the arguments are good");
        match reply {
            Reply::Committed(rows) => {
                assert_eq!(
                    rows.typed::<(String,)>().map_err(|error| error.state()),
                    Err(SqlState::DATATYPE_MISMATCH)
                );
            }
            other => panic!("{other:?}"),
        }
        match database
            .call("transfer", (77, 2, 25))
            .expect("the arguments are good")
        {
            Reply::Rejected(error) => assert_eq!(
                (error.message(), error.hint()),
                ("no account 77", Some("Open one."))
            ),
            other => panic!("{other:?}"),
        }
        assert!(database.call("transfer", (1, 2)).is_err());
        let ticket = database
            .submit(Call::new("transfer", (2, 3, 5)))
            .expect("there is room");
        assert!(
            ticket
                .wait()
                .expect("the procedure is there")
                .is_committed()
        );
        let total = database.transaction(|tx| {
            tx.execute(
                "UPDATE account SET balance = balance + $1 WHERE id = $2",
                (1, 10),
            )?;
            tx.call("transfer", (10, 9, 101))?;
            let row = tx.get("account", (9,))?;
            assert!(row.is_some());
            tx.query("SELECT sum(balance)::text FROM account", ())?
                .into_one::<(String,)>()
        });
        assert_eq!(total, Ok(("1001.00".to_owned(),)));
        let undone: kiln_storage::error::Result<()> = database.transaction(|tx| {
            tx.execute("DELETE FROM account", ())?;
            Err(kiln_storage::error::Error::new(
                SqlState::RAISE_EXCEPTION,
                "no",
            ))
        });
        assert!(undone.is_err());
        let explained = database
            .explain("transfer")
            .expect("there is such a procedure");
        assert!(explained.contains("update account"), "{explained}");
        assert!(
            database
                .explain_dot("transfer")
                .is_ok_and(|dot| dot.starts_with("digraph"))
        );
        assert!(database.explain("nothing").is_err());
        let explain =
            "EXPLAIN (ANALYZE, TIMING off, SUMMARY off) SELECT * FROM account WHERE id = 3";
        let rows = database.query(explain, ());
        let rows = rows.expect("it can be explained").to_csv();
        assert!(
            rows.contains("lookup account") && rows.ends_with("Rows: 1\n"),
            "{rows}"
        );
        let count = database
            .query("SELECT count(*) FROM account", ())
            .and_then(|rows| rows.into_one());
        assert_eq!(count, Ok((10_i64,)));
        database.close();
        assert!(database.query("SELECT 1", ()).is_err());
    }
}

#[test]
fn results_convert_by_name_and_by_row() {
    let database = open();
    let rows = database
        .query(
            "SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL ORDER BY 1",
            (),
        )
        .expect("the query is good");
    assert_eq!(rows.get::<i32>(1, "a"), Ok(2));
    assert_eq!(rows.get::<Option<String>>(1, "b"), Ok(None));
    let states = [
        rows.get::<i32>(0, "c").map_err(|error| error.state()),
        rows.get::<i32>(5, "a").map_err(|error| error.state()),
        rows.get::<i32>(0, "b").map_err(|error| error.state()),
    ];
    assert_eq!(
        states,
        [
            Err(SqlState::UNDEFINED_COLUMN),
            Err(SqlState::NO_DATA),
            Err(SqlState::DATATYPE_MISMATCH)
        ]
    );
    assert_eq!(
        rows.clone()
            .into_one::<(i32, String)>()
            .map_err(|error| error.state()),
        Err(SqlState::CARDINALITY_VIOLATION)
    );
    assert_eq!(
        rows.into_rows::<(i32, Option<String>)>(),
        Ok(vec![(1, Some("x".to_owned())), (2, None)])
    );
}
