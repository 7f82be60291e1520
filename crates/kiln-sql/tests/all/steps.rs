//! Bodies that run step by step: beside other transactions, in blocks, within limits, and after a
//! restart. What PostgreSQL says about each statement is in the corpus (`plpgsql_steps.sql`).

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_platform::thread;
use kiln_sql::{Database, Error, Options, Protocol, Reply, Session, SqlState};

fn open(protocol: Protocol) -> Database {
    let options = Options::new().workers(2).pin_workers(false);
    Database::open(options.protocol(protocol)).expect("it opens")
}

fn session(database: &Database) -> Session {
    database.session().expect("it opens")
}

fn number(database: &Database, query: &str) -> i64 {
    let rows = database.query(query, ()).expect("it runs");
    let (number,): (i64,) = rows.into_one().expect("one number");
    number
}

fn state(result: Result<impl Sized, Error>) -> SqlState {
    match result {
        Ok(_) => panic!("it must fail"),
        Err(error) => error.state(),
    }
}

/// Transfers by EXECUTE, from several sessions, in their own blocks and in those of clients: what
/// is there stays as much.
#[test]
fn money_is_conserved_under_every_protocol() {
    for protocol in Protocol::serializable() {
        let database = open(protocol);
        let setup = "
            CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL);
            INSERT INTO account SELECT i, 100 FROM generate_series(1, 4) AS g(i);
            CREATE PROCEDURE transfer(source INTEGER, target INTEGER) LANGUAGE plpgsql AS $$
            DECLARE
                amount BIGINT;
            BEGIN
                EXECUTE 'SELECT balance / 10 FROM account WHERE id = $1' INTO amount USING source;
                UPDATE account SET balance = balance - amount WHERE id = source;
                EXECUTE 'UPDATE account SET balance = balance + $1 WHERE id = $2' USING amount, target;
            END $$;";
        database.execute(setup).expect("it runs");
        thread::scope(|scope| {
            for client in 0..3_u32 {
                let database = &database;
                scope.spawn(move || {
                    let mut session = session(database);
                    for round in 0..15 {
                        let source = (client + round) % 4 + 1;
                        let target = (source + round) % 4 + 1;
                        let call = format!("CALL transfer({source}, {target})");
                        let text = match round % 3 {
                            0 => format!("BEGIN; {call}; COMMIT"),
                            _ => call,
                        };
                        match session.execute(&text) {
                            Ok(_) => {}
                            Err(error) if error.state() == SqlState::SERIALIZATION_FAILURE => {
                                session.roll_back();
                            }
                            Err(error) => panic!("{protocol:?}: {error}"),
                        }
                    }
                });
            }
        });
        let sum = "SELECT sum(balance)::BIGINT FROM account";
        assert_eq!(number(&database, sum), 400, "{protocol:?}");
    }
}

/// What is committed in a body stays, whatever becomes of the rest of it, also after a restart.
#[test]
fn what_a_body_has_committed_is_found_again() {
    let directory = temporary();
    let options = || Options::new().workers(1).pin_workers(false);
    let open =
        || Database::open(options().data_dir(Some(directory.path().to_owned()))).expect("it opens");
    let database = open();
    let setup = "
        CREATE TABLE t (a INTEGER PRIMARY KEY);
        CREATE PROCEDURE fill(n INTEGER) LANGUAGE plpgsql AS $$
        BEGIN
            FOR i IN 1..n LOOP
                INSERT INTO t VALUES (i);
                IF i % 3 = 0 THEN COMMIT; END IF;
            END LOOP;
            CREATE TABLE never (a INTEGER);
            INSERT INTO t VALUES (1);
        END $$;";
    database.execute(setup).expect("it runs");
    let mut client = session(&database);
    assert_eq!(
        state(client.execute("CALL fill(8)")),
        SqlState::UNIQUE_VIOLATION
    );
    assert!(!client.in_transaction());
    drop(client);
    drop(database);
    let database = open();
    assert_eq!(number(&database, "SELECT count(*) FROM t"), 6);
    let mut client = session(&database);
    assert_eq!(
        state(client.execute("SELECT * FROM never")),
        SqlState::UNDEFINED_TABLE
    );
    client
        .execute("CALL fill(0)")
        .expect_err("the row is there");
    client
        .execute("DELETE FROM t; CALL fill(0)")
        .expect("it runs");
    assert_eq!(number(&database, "SELECT count(*) FROM never"), 0);
}

#[test]
fn limits_end_a_body() {
    let database = open(Protocol::default());
    let mut client = session(&database);
    let endless = "DO $$ BEGIN LOOP EXECUTE 'SELECT 1'; END LOOP; END $$";
    client
        .execute("SET statement_timeout = '200ms'")
        .expect("it runs");
    assert_eq!(state(client.execute(endless)), SqlState::QUERY_CANCELED);
    client.execute("RESET statement_timeout").expect("it runs");
    let handle = client.cancel_handle();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(200_000_000);
            handle.cancel();
        });
        assert_eq!(state(client.execute(endless)), SqlState::QUERY_CANCELED);
    });
    let again = "
        CREATE PROCEDURE again() LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'CALL again()'; END $$;
        CREATE PROCEDURE once_more() LANGUAGE plpgsql AS $$ BEGIN CALL once_more(); COMMIT; END $$";
    client.execute(again).expect("it runs");
    assert_eq!(
        state(client.execute("CALL again()")),
        SqlState::STATEMENT_TOO_COMPLEX
    );
    assert_eq!(
        state(client.execute("CALL once_more()")),
        SqlState::STATEMENT_TOO_COMPLEX
    );
    client
        .execute("DO $$ BEGIN EXECUTE 'SELECT 1'; END $$")
        .expect("the session goes on");
}

#[test]
fn who_may_not_do_something_may_not_by_a_body() {
    let database = open(Protocol::default());
    let setup = "
        CREATE ROLE guest;
        CREATE TABLE secret (a INTEGER);
        CREATE PROCEDURE look() LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT a FROM secret'; END $$;
        CREATE PROCEDURE peek() LANGUAGE plpgsql AS $$ BEGIN PERFORM a FROM secret; COMMIT; END $$;
        CREATE PROCEDURE make() LANGUAGE plpgsql AS $$ BEGIN CREATE ROLE other; END $$;";
    database.execute(setup).expect("it runs");
    let mut guest = database.session_as("guest").expect("it opens");
    for text in [
        "CALL look()",
        "CALL peek()",
        "CALL make()",
        "DO $$ BEGIN EXECUTE 'SELECT a FROM secret'; END $$",
    ] {
        assert_eq!(
            state(guest.execute(text)),
            SqlState::INSUFFICIENT_PRIVILEGE,
            "{text}"
        );
    }
    let nested = "REVOKE EXECUTE ON PROCEDURE peek() FROM PUBLIC";
    database.execute(nested).expect("it runs");
    let text = "DO $$ BEGIN CALL peek(); COMMIT; END $$";
    let error = guest.execute(text).map(drop).expect_err("it may not call");
    assert!(error.message().ends_with("peek"), "{error}");
    let nested = "GRANT EXECUTE ON PROCEDURE peek() TO PUBLIC";
    database.execute(nested).expect("it runs");
    database
        .execute("GRANT SELECT ON secret TO guest")
        .expect("it runs");
    guest.execute("CALL look(); CALL peek()").expect("it runs");
}

#[test]
fn what_may_only_read_does_not_write_by_a_body() {
    let database = open(Protocol::default());
    database
        .execute("CREATE TABLE t (a INTEGER)")
        .expect("it runs");
    let mut client = session(&database);
    for command in [
        "INSERT INTO t VALUES (1)",
        "EXECUTE 'INSERT INTO t VALUES (1)'",
    ] {
        let text = format!("DO $$ BEGIN SET TRANSACTION READ ONLY; {command}; COMMIT; END $$");
        assert_eq!(
            state(client.execute(&text)),
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "{text}"
        );
    }
    assert_eq!(number(&database, "SELECT count(*) FROM t"), 0);
}

/// Everything but a statement of its own is told who can run such a routine.
#[test]
fn other_callers_are_refused_by_name() {
    let database = open(Protocol::default());
    let setup = "
        CREATE TABLE t (a INTEGER PRIMARY KEY);
        CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1'; RETURN 1; END $$;
        CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;";
    database.execute(setup).expect("it runs");
    let mut client = session(&database);
    for text in [
        "SELECT f() + 1",
        "SELECT f() FROM t",
        "INSERT INTO t SELECT f()",
        "CREATE PROCEDURE q() LANGUAGE plpgsql AS $$ BEGIN CALL p(); END $$",
        "CREATE PROCEDURE q() LANGUAGE plpgsql AS $$ BEGIN PERFORM f(); END $$",
        "CREATE FUNCTION g() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'x'; RETURN NEW; END $$",
        "CREATE FUNCTION g() RETURNS VOID SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'x'; END $$",
    ] {
        assert_eq!(
            state(client.execute(text)),
            SqlState::FEATURE_NOT_SUPPORTED,
            "{text}"
        );
    }
    let reply = database.call("p", ()).expect("it is answered");
    assert!(
        matches!(&reply, Reply::Rejected(error) if error.state() == SqlState::FEATURE_NOT_SUPPORTED),
        "{reply:?}"
    );
    // A statement with values, prepared once, goes through changes of the function.
    let statement = client.parse("SELECT f()", &[]).expect("it is known");
    let mut portal = client.bind(&statement, &[]).expect("it has no values");
    assert_eq!(
        client
            .execute_portal(&mut portal, 0)
            .expect("it runs")
            .rows
            .len(),
        1
    );
    let plain = "CREATE OR REPLACE FUNCTION f() RETURNS INTEGER LANGUAGE sql AS 'SELECT 2'";
    client.execute(plain).expect("it runs");
    let mut portal = client.bind(&statement, &[]).expect("it has no values");
    let rows = client.execute_portal(&mut portal, 0).expect("it runs").rows;
    assert_eq!(rows, vec![vec![kiln_sql::Value::Integer(2)]]);
}
