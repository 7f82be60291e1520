//! Statements in stages: parse, describe, bind, execute, fetch.

use kiln_storage::error::SqlState;
use kiln_storage::types::{DataType, Value};

use super::super::{Session, Statement, StatementKind};
use super::open;

const DEFINITIONS: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(5), n NUMERIC(6, 2), d DATE);
    INSERT INTO t VALUES (1, 'one', 1.5, '2024-01-01'), (2, 'two', 2.5, NULL), (3, 'three', 3, NULL);
    CREATE PROCEDURE add(k INTEGER, INOUT amount NUMERIC) LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE t SET n = n + amount WHERE id = k RETURNING n INTO amount;
    END $$;";

fn session() -> Session {
    let database = open();
    database
        .execute(DEFINITIONS)
        .expect("the definitions are good");
    database.session().expect("a session is free")
}

fn parse(session: &mut Session, sql: &str) -> Statement {
    let statement = session.parse(sql, &[]);
    statement.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[test]
fn a_statement_is_described_before_it_runs() {
    use StatementKind as Kind;
    let mut session = session();
    for (sql, command, kind, parameters, columns) in [
        ("", "", Kind::Empty, 0, None),
        (" -- nothing", "", Kind::Empty, 0, None),
        (
            "SELECT id, n FROM t WHERE id = $1",
            "SELECT",
            Kind::Read,
            1,
            Some(2),
        ),
        (
            "INSERT INTO t VALUES ($1, $2)",
            "INSERT",
            Kind::Write,
            2,
            None,
        ),
        (
            "UPDATE t SET n = $1 RETURNING id",
            "UPDATE",
            Kind::Write,
            1,
            Some(1),
        ),
        ("DELETE FROM t", "DELETE", Kind::Write, 0, None),
        ("CALL add($1, $2)", "CALL", Kind::Write, 2, Some(1)),
        ("DO $$ BEGIN NULL; END $$", "DO", Kind::Write, 0, None),
        ("BEGIN", "BEGIN", Kind::TransactionControl, 0, None),
        ("ROLLBACK", "ROLLBACK", Kind::TransactionControl, 0, None),
        ("SET application_name = 'x'", "SET", Kind::Utility, 0, None),
        ("SHOW timezone", "SHOW", Kind::Utility, 0, Some(1)),
        (
            "EXPLAIN SELECT $1::int",
            "EXPLAIN",
            Kind::Utility,
            1,
            Some(1),
        ),
        ("TRUNCATE t", "TRUNCATE TABLE", Kind::Write, 0, None),
        (
            "CREATE TABLE s (id INTEGER)",
            "CREATE TABLE",
            Kind::Definition,
            0,
            None,
        ),
        ("DROP TABLE t", "DROP TABLE", Kind::Definition, 0, None),
    ] {
        let statement = parse(&mut session, sql);
        let found = (
            statement.command(),
            statement.kind(),
            statement.parameters().len(),
            statement.columns().map(<[_]>::len),
        );
        assert_eq!(found, (command, kind, parameters, columns), "{sql}");
    }
    let statement = parse(
        &mut session,
        "SELECT n, name, id, n + 1 FROM t WHERE id > $1",
    );
    let columns = statement.columns().expect("it is a query");
    let origin = |index: usize| {
        let column = &columns[index];
        column
            .origin
            .map(|origin| (origin.column.0, origin.not_null))
    };
    assert_eq!(origin(0), Some((2, false)));
    assert_eq!(origin(1), Some((1, false)));
    assert_eq!(origin(2), Some((0, true)));
    assert_eq!(origin(3), None);
    assert_eq!(columns[0].data_type, DataType::numeric(6, 2));
}

#[test]
fn rows_are_fetched_in_portions_of_a_finished_result() {
    let mut session = session();
    let statement = parse(&mut session, "SELECT id FROM t WHERE id >= $1 ORDER BY id");
    let mut portal = session
        .bind(&statement, &[Value::Integer(1)])
        .expect("it is an integer");
    assert_eq!(
        portal.fetch(1).map_err(|error| error.state()),
        Err(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE)
    );
    let first = session.execute_portal(&mut portal, 2).expect("it runs");
    assert_eq!((first.rows.len(), first.suspended), (2, true));
    assert_eq!(first.tag, "SELECT 2");
    // What happens meanwhile is not seen.
    session.execute("DELETE FROM t").expect("it is a table");
    let second = session
        .execute_portal(&mut portal, 2)
        .expect("rows are left");
    assert_eq!(second.rows, [[Value::Integer(3)]]);
    assert_eq!((second.suspended, second.tag.as_str()), (false, "SELECT 1"));
    let none = portal.fetch(0).expect("it is at its end");
    assert_eq!((none.rows.len(), none.tag.as_str()), (0, "SELECT 0"));
    // The statement may be bound again, before and after.
    let mut again = session.bind(&statement, &["1".into()]).expect("it reads");
    let rows = session.execute_portal(&mut again, 0).expect("it runs");
    assert_eq!((rows.rows.len(), rows.suspended), (0, false));
}

#[test]
fn values_are_converted_to_the_types_of_the_parameters() {
    let mut session = session();
    let insert = parse(&mut session, "INSERT INTO t VALUES ($1, $2, $3, $4)");
    let good: [Value; 4] = [
        "7".into(),
        Value::Integer(12),
        "1e1".into(),
        "2024-02-29".into(),
    ];
    let mut portal = session.bind(&insert, &good).expect("all convert");
    session
        .execute_portal(&mut portal, 0)
        .expect("it is a new row");
    let rows = session.query("SELECT name, n::text, d::text FROM t WHERE id = 7", ());
    let row = rows.and_then(|rows| rows.into_one());
    let row = row.map(|(name, n, d): (String, String, String)| [name, n, d]);
    assert_eq!(
        row.map(|row| row.join(" ")),
        Ok("12 10.00 2024-02-29".to_owned())
    );
    let state = |session: &mut Session, values: &[Value]| {
        let bound = session.bind(&insert, values);
        bound.map(|_| ()).map_err(|error| error.state())
    };
    let null = || Value::Null;
    let wrong = [
        (vec![null(), null()], SqlState::PROTOCOL_VIOLATION),
        (
            vec!["x".into(), null(), null(), null()],
            SqlState::INVALID_TEXT_REPRESENTATION,
        ),
        (
            vec![Value::BigInt(1 << 40), null(), null(), null()],
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        ),
        (
            vec![Value::Boolean(true), null(), null(), null()],
            SqlState::DATATYPE_MISMATCH,
        ),
        (
            vec![null(), null(), null(), "2023-02-29".into()],
            SqlState::DATETIME_FIELD_OVERFLOW,
        ),
    ];
    for (values, expected) in wrong {
        assert_eq!(state(&mut session, &values), Err(expected), "{values:?}");
    }
    // A length is checked where the value is assigned, as the parameter's type has none.
    let long = session.run("UPDATE t SET name = $1", ("longer than five",));
    let state = long.map_err(|error| error.state());
    assert_eq!(
        state.map(|result| result.tag),
        Err(SqlState::STRING_DATA_RIGHT_TRUNCATION)
    );
}

#[test]
fn declared_types_are_kept() {
    let mut session = session();
    let declared = [Some(DataType::BigInt), None];
    let statement = session.parse("SELECT n FROM t WHERE id = $1 AND name = $2", &declared);
    let statement = statement.expect("bigint compares with integer");
    assert_eq!(statement.parameters(), [DataType::BigInt, DataType::Text]);
    let mut portal = session
        .bind(&statement, &[Value::BigInt(1 << 40), "one".into()])
        .expect("they fit");
    let none = session.execute_portal(&mut portal, 0).expect("it runs");
    assert_eq!(none.rows.len(), 0);
    let error = session.parse("SELECT id FROM t WHERE id = $1", &[Some(DataType::Date)]);
    assert_eq!(
        error.map(|_| ()).map_err(|e| e.state()),
        Err(SqlState::UNDEFINED_FUNCTION)
    );
    // One that is declared and not used is no mistake; one without a type is.
    let unused = session.parse("SELECT 1", &[Some(DataType::Date)]);
    assert_eq!(
        unused.map(|s| s.parameters().to_vec()),
        Ok(vec![DataType::Date])
    );
    let open = session.parse("SELECT $2", &[]);
    let state = open.map(|_| ()).map_err(|error| error.state());
    assert_eq!(state, Err(SqlState::INDETERMINATE_DATATYPE));
}

#[test]
fn statements_survive_changes_of_the_catalog() {
    let mut session = session();
    let by_name = parse(&mut session, "SELECT id FROM t WHERE name = $1");
    let all = parse(&mut session, "SELECT * FROM t WHERE id = $1");
    let call = parse(&mut session, "CALL add($1, $2)");
    let run = |session: &mut Session, statement: &Statement, values: &[Value]| {
        let mut portal = session.bind(statement, values)?;
        session.execute_portal(&mut portal, 0)
    };
    let one = run(&mut session, &by_name, &["one".into()]).expect("it runs");
    assert_eq!(one.rows.len(), 1);
    session
        .execute("CREATE INDEX by_name ON t (name)")
        .expect("it is new");
    let one = run(&mut session, &by_name, &["one".into()]).expect("it is compiled again");
    assert_eq!(one.rows.len(), 1);
    let sum = run(&mut session, &call, &["1".into(), "2".into()]).expect("it is called");
    assert_eq!(sum.rows[0][0].to_text().as_deref(), Some("3.50"));
    session
        .execute("DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(5))")
        .expect("nothing refers to it");
    let none = run(&mut session, &by_name, &["one".into()]).expect("its columns are the same");
    assert_eq!(none.rows.len(), 0);
    let changed = run(&mut session, &all, &["1".into()]).expect_err("there are fewer columns");
    assert_eq!(changed.state(), SqlState::FEATURE_NOT_SUPPORTED);
    assert_eq!(changed.message(), "cached plan must not change result type");
    let again = parse(&mut session, "SELECT * FROM t WHERE id = $1");
    assert_eq!(again.columns().map(<[_]>::len), Some(2));
    session
        .execute("DROP TABLE t")
        .expect("nothing refers to it");
    let gone = run(&mut session, &by_name, &["one".into()]).expect_err("there is no table");
    assert_eq!(gone.state(), SqlState::UNDEFINED_TABLE);
}

#[test]
fn an_error_of_any_stage_fails_the_block() {
    let mut session = session();
    let statement = parse(&mut session, "SELECT 1 / $1");
    let stages: [&dyn Fn(&mut Session) -> bool; 4] = [
        &|session| session.parse("SELEC", &[]).is_err(),
        &|session| session.parse("SELECT nothing", &[]).is_err(),
        &|session| session.bind(&statement, &["x".into()]).is_err(),
        &|session| {
            let portal = session.bind(&statement, &["0".into()]);
            let mut portal = portal.expect("it is a number");
            let failed = session.execute_portal(&mut portal, 0).is_err();
            failed && session.execute_portal(&mut portal, 0).is_err()
        },
    ];
    for stage in stages {
        session.execute("BEGIN").expect("no block is open");
        assert!(stage(&mut session) && session.has_failed());
        let refused = session
            .parse("SELECT 1", &[])
            .expect_err("the block has failed");
        assert_eq!(refused.state(), SqlState::IN_FAILED_SQL_TRANSACTION);
        let refused = session
            .bind(&statement, &["1".into()])
            .expect_err("as before");
        assert_eq!(refused.state(), SqlState::IN_FAILED_SQL_TRANSACTION);
        let end = parse(&mut session, "ROLLBACK");
        let mut portal = session.bind(&end, &[]).expect("it ends the block");
        let ended = session
            .execute_portal(&mut portal, 0)
            .expect("it ends the block");
        assert_eq!(ended.tag, "ROLLBACK");
    }
}

#[test]
fn calls_take_parameters() {
    let mut session = session();
    for (sql, values, expected) in [
        (
            "CALL add($1, $2)",
            vec!["1".into(), Value::Integer(1)],
            "2.50",
        ),
        (
            "CALL add(k => $2, amount => $1)",
            vec!["1".into(), "2".into()],
            "3.50",
        ),
        (
            "CALL add($1 + 1, $2 * 2)",
            vec!["2".into(), "2".into()],
            "7.00",
        ),
        ("CALL add(3, 1)", vec![], "8.00"),
    ] {
        let statement = parse(&mut session, sql);
        let mut portal = session.bind(&statement, &values).expect("they convert");
        let row = session
            .execute_portal(&mut portal, 0)
            .expect("it is called");
        assert_eq!(
            (row.rows[0][0].to_text().as_deref(), row.tag.as_str()),
            (Some(expected), "CALL"),
            "{sql}"
        );
    }
    let rows = session.query("EXPLAIN ANALYZE CALL add($1, $2)", (1, 0));
    assert!(rows.is_ok_and(|rows| rows.len() > 1));
}
