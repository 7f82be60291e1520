//! Statements that are submitted to the workers, for a thread that serves many sessions.

use std::time::Duration;

use kiln_engine::{Completion, Completions, Options, Protocol};
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::Value;

use super::super::{Database, Portal, Session};

const SCHEMA: &str = "
    CREATE TABLE counter (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
    INSERT INTO counter VALUES (1, 0), (2, 0);
    CREATE PROCEDURE add(which INTEGER, OUT now INTEGER) LANGUAGE plpgsql AS $$
    BEGIN UPDATE counter SET value = value + 1 WHERE id = which RETURNING value INTO now; END $$;
    CREATE PROCEDURE spin() LANGUAGE plpgsql AS $$
    BEGIN WHILE TRUE LOOP END LOOP; END $$;";

fn open(protocol: Protocol) -> Database {
    let options = Options::new().workers(2).pin_workers(false);
    let database = Database::open(options.protocol(protocol)).expect("the options are good");
    database.execute(SCHEMA).expect("the schema is sound");
    database
}

fn bound(session: &mut Session, sql: &str, values: &[Value]) -> Result<Portal> {
    let statement = session.parse(sql, &[])?;
    session.bind(&statement, values)
}

/// The next completion.
fn next(completions: &Completions) -> Completion {
    let mut ended = Vec::new();
    completions.wait(&mut ended, Duration::from_secs(20));
    assert_eq!(ended.len(), 1, "one statement is on its way");
    ended.remove(0)
}

/// Submits a portal and waits for its end.
fn run(session: &mut Session, portal: Portal) -> Result<Portal> {
    let completions = Completions::new(1);
    let mut portal = session.submit(portal, &completions, 7)?;
    let completion = next(&completions);
    assert_eq!(completion.token, 7);
    session.complete(&mut portal, completion.result)?;
    Ok(portal)
}

fn error_of(session: &mut Session, portal: Portal) -> Error {
    run(session, portal).expect_err("it cannot be done")
}

#[test]
fn one_thread_runs_the_statements_of_many_sessions() {
    const SESSIONS: usize = 500;
    const ROUNDS: usize = 6;
    for protocol in [
        Protocol::Silo,
        Protocol::Mvcc,
        Protocol::Serial,
        Protocol::Vll,
    ] {
        let database = open(protocol);
        let completions = Completions::new(SESSIONS);
        let mut sessions: Vec<Session> = (0..SESSIONS)
            .map(|_| database.session().expect("there is room"))
            .collect();
        let mut portals: Vec<Option<Portal>> = vec![None; SESSIONS];
        let submit = |session: &mut Session, number: usize, round: usize| {
            let (sql, values): (&str, &[Value]) = match (number + round) % 3 {
                0 => ("UPDATE counter SET value = value + 1 WHERE id = 1", &[]),
                1 => ("CALL add($1, NULL)", &[Value::Integer(2)]),
                _ => ("SELECT id, value FROM counter ORDER BY id", &[]),
            };
            let portal = bound(session, sql, values).expect("it is sound");
            assert!(session.can_submit(&portal));
            session.submit(portal, &completions, number as u64)
        };
        for (number, session) in sessions.iter_mut().enumerate() {
            portals[number] = Some(submit(session, number, 0).expect("there is room"));
        }
        let (mut rounds, mut ended) = (vec![0; SESSIONS], Vec::new());
        let mut left = SESSIONS * ROUNDS;
        while left > 0 {
            completions.wait(&mut ended, Duration::from_secs(20));
            assert!(!ended.is_empty(), "{protocol}: {left} are left");
            for completion in ended.drain(..) {
                let number = completion.token as usize;
                let session = &mut sessions[number];
                let mut portal = portals[number].take().expect("it was submitted");
                session
                    .complete(&mut portal, completion.result)
                    .expect("it works");
                let portion = portal.fetch(0).expect("it is finished");
                match (number + rounds[number]) % 3 {
                    0 => assert_eq!(portion.tag, "UPDATE 1"),
                    1 => assert_eq!((portion.tag.as_str(), portion.rows.len()), ("CALL", 1)),
                    _ => assert_eq!((portion.tag.as_str(), portion.rows.len()), ("SELECT 2", 2)),
                }
                left -= 1;
                rounds[number] += 1;
                if rounds[number] < ROUNDS {
                    let portal = submit(session, number, rounds[number]);
                    portals[number] = Some(portal.expect("there is room"));
                }
            }
        }
        let kinds = |kind: usize| {
            let all = (0..SESSIONS).flat_map(|number| (0..ROUNDS).map(move |round| number + round));
            all.filter(|sum| sum % 3 == kind).count() as i32
        };
        let values = database.query("SELECT value FROM counter ORDER BY id", ());
        let values = values.and_then(|rows| rows.into_rows::<(i32,)>());
        assert_eq!(values, Ok(vec![(kinds(0),), (kinds(1),)]), "{protocol}");
        let kept = database.statements_kept();
        assert!(
            kept.hits > 10 * kept.misses,
            "sessions share what is compiled: {kept:?}"
        );
    }
}

#[test]
fn errors_are_those_of_an_execution() {
    let database = open(Protocol::Silo);
    let mut session = database.session().expect("there is room");
    let division = bound(&mut session, "SELECT 1 / (value * 0) FROM counter", &[]);
    let error = error_of(&mut session, division.expect("it is sound"));
    assert_eq!(error.state().as_str(), "22012");
    assert!(error.position().is_some(), "{error}");
    let twice = bound(&mut session, "INSERT INTO counter VALUES (1, 1)", &[]);
    let error = error_of(&mut session, twice.expect("it is sound"));
    assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
    // What cannot be submitted is told apart, and is executed.
    for sql in [
        "BEGIN",
        "SET statement_timeout = 0",
        "SHOW statement_timeout",
        "CREATE TABLE t ()",
    ] {
        let portal = bound(&mut session, sql, &[]).expect("it is sound");
        assert!(!session.can_submit(&portal), "{sql}");
        let error = error_of(&mut session, portal);
        assert_eq!(
            error.state(),
            SqlState::FEATURE_NOT_SUPPORTED,
            "{sql}: {error}"
        );
    }
    session.execute("BEGIN").expect("no block is open");
    let portal = bound(&mut session, "SELECT 1", &[]).expect("it is sound");
    assert!(!session.can_submit(&portal));
    let error = error_of(&mut session, portal);
    assert_eq!(error.state(), SqlState::ACTIVE_SQL_TRANSACTION);
    session.execute("ROLLBACK").expect("a block is open");
    // A portal is executed once.
    let portal = bound(&mut session, "SELECT 1", &[]).expect("it is sound");
    let finished = run(&mut session, portal).expect("it runs");
    let error = error_of(&mut session, finished);
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
}

#[test]
fn a_session_has_one_statement_on_its_way() {
    let database = open(Protocol::Silo);
    let completions = Completions::new(4);
    let mut session = database.session().expect("there is room");
    let portal = bound(&mut session, "CALL add(1, NULL)", &[]).expect("it is sound");
    let mut first = session
        .submit(portal.clone(), &completions, 1)
        .expect("there is room");
    let second = session
        .submit(portal, &completions, 2)
        .expect_err("the first is on its way");
    assert_eq!(second.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    let executed = session
        .execute("SELECT 1")
        .expect_err("the first is on its way");
    assert_eq!(executed.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    let completion = next(&completions);
    session
        .complete(&mut first, completion.result)
        .expect("it works");
    session.execute("SELECT 1").expect("nothing is on its way");
    // One that goes leaves its statement to the worker.
    let portal = bound(&mut session, "CALL add(1, NULL)", &[]).expect("it is sound");
    session
        .submit(portal, &completions, 3)
        .expect("there is room");
    drop(session);
    assert!(next(&completions).result.expect("it ran").is_committed());
    let value = database.query("SELECT value FROM counter WHERE id = 1", ());
    assert_eq!(value.and_then(|rows| rows.into_one()), Ok((2,)));
}

#[test]
fn what_was_submitted_is_cancelled_and_runs_out_of_time() {
    for protocol in [Protocol::Silo, Protocol::Orthrus] {
        let database = open(protocol);
        let completions = Completions::new(8);
        let mut sessions: Vec<(Session, Portal)> = Vec::new();
        // Two run, and others wait behind them.
        for _ in 0..4 {
            let mut session = database.session().expect("there is room");
            let portal = bound(&mut session, "CALL spin()", &[]).expect("it is sound");
            let number = sessions.len() as u64;
            let portal = session
                .submit(portal, &completions, number)
                .expect("there is room");
            sessions.push((session, portal));
        }
        thread::sleep(20_000_000);
        for (session, _) in &sessions {
            assert!(session.cancel_handle().cancel(), "{protocol}");
        }
        let (mut ended, mut left) = (Vec::new(), sessions.len());
        while left > 0 {
            completions.wait(&mut ended, Duration::from_secs(20));
            assert!(!ended.is_empty(), "{protocol}: {left} are left");
            for completion in ended.drain(..) {
                let (session, portal) = &mut sessions[completion.token as usize];
                let error = session
                    .complete(portal, completion.result)
                    .expect_err("it has no end");
                assert_eq!(
                    error.state(),
                    SqlState::QUERY_CANCELED,
                    "{protocol}: {error}"
                );
                assert!(
                    error.message().contains("user request"),
                    "{protocol}: {error}"
                );
                left -= 1;
            }
        }
        let (session, _) = &mut sessions[0];
        session
            .execute("SET statement_timeout = '30ms'")
            .expect("it is a setting");
        let portal = bound(session, "CALL spin()", &[]).expect("it is sound");
        let error = error_of(session, portal);
        assert_eq!(
            error.state(),
            SqlState::QUERY_CANCELED,
            "{protocol}: {error}"
        );
        assert!(error.message().contains("timeout"), "{protocol}: {error}");
        let portal = bound(session, "CALL add(1, NULL)", &[]).expect("it is sound");
        run(session, portal).expect("that is over");
    }
}

/// All workers are busy with what has no end.
#[test]
fn what_waits_for_a_worker_is_cancelled_and_runs_out_of_time() {
    for protocol in [Protocol::Silo, Protocol::Orthrus] {
        let database = open(protocol);
        let completions = Completions::new(8);
        let mut busy: Vec<Session> = Vec::new();
        for _ in 0..2 {
            let mut session = database.session().expect("there is room");
            let portal = bound(&mut session, "CALL spin()", &[]).expect("it is sound");
            session
                .submit(portal, &completions, 0)
                .expect("there is room");
            busy.push(session);
        }
        thread::sleep(50_000_000);
        let mut session = database.session().expect("there is room");
        let submit = |session: &mut Session| {
            let portal = bound(session, "CALL add(1, NULL)", &[]).expect("it is sound");
            let queue = Completions::new(1);
            let portal = session.submit(portal, &queue, 1).expect("there is room");
            (portal, queue)
        };
        let (mut portal, queue) = submit(&mut session);
        assert!(session.cancel_handle().cancel());
        let error = session.complete(&mut portal, next(&queue).result);
        let error = error.expect_err("it was cancelled");
        assert!(
            error.message().contains("user request"),
            "{protocol}: {error}"
        );
        session
            .execute("SET statement_timeout = '30ms'")
            .expect("it is a setting");
        let (mut portal, queue) = submit(&mut session);
        let error = session.complete(&mut portal, next(&queue).result);
        let error = error.expect_err("its time is over");
        assert!(error.message().contains("timeout"), "{protocol}: {error}");
        assert_eq!(
            completions.outstanding(),
            2,
            "{protocol}: the others run on"
        );
        for session in &busy {
            assert!(session.cancel_handle().cancel());
        }
    }
}

#[test]
fn the_catalog_may_change_on_the_way() {
    let database = open(Protocol::Silo);
    let mut session = database.session().expect("there is room");
    let mut portal = |sql: &str| bound(&mut session, sql, &[]).expect("it is sound");
    let (all, one) = (
        portal("SELECT * FROM counter"),
        portal("SELECT value FROM counter"),
    );
    database
        .execute("CREATE INDEX by_value ON counter (value)")
        .expect("no block is open");
    run(&mut session, one.clone()).expect("it is compiled again");
    database
        .execute(
            "DROP PROCEDURE add; DROP TABLE counter;
             CREATE TABLE counter (value INTEGER, more INTEGER)",
        )
        .expect("no block is open");
    run(&mut session, one.clone()).expect("the column is there");
    let error = error_of(&mut session, all);
    assert_eq!(error.message(), "cached plan must not change result type");
    database
        .execute("DROP TABLE counter")
        .expect("no block is open");
    assert_eq!(
        error_of(&mut session, one).state(),
        SqlState::UNDEFINED_TABLE
    );
}

/// The memory of a table that is dropped does not wait until its statements are compiled again.
#[test]
fn statements_that_are_kept_keep_no_dropped_table() {
    let database = open(Protocol::Silo);
    let queried = database.query("SELECT value FROM counter WHERE id = 1", ());
    queried.expect("the table is there");
    let table = Arc::downgrade(&database.engine().table("counter").expect("it is there"));
    database
        .execute("DROP PROCEDURE add; DROP TABLE counter")
        .expect("no block is open");
    assert_eq!(database.statements_kept().entries, 0);
    for _ in 0..2_000 {
        if table.upgrade().is_none() {
            return;
        }
        // The worker slots let go of the former catalog when they run something.
        database.query("SELECT 1", ()).expect("it runs");
        database
            .call("spin_not", ())
            .expect_err("there is no such procedure");
        thread::sleep(1_000_000);
    }
    assert!(table.upgrade().is_none(), "the table is still there");
}
