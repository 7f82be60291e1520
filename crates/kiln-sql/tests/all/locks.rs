//! Advisory locks and LOCK TABLE among several sessions: who waits, how long, and what ends a lock.

#![cfg(not(kiln_sim))]

use std::time::Duration;

use kiln_platform::thread;
use kiln_platform::time;
use kiln_sql::{Database, Options, Protocol, Session};

fn open(options: Options) -> Database {
    let database = Database::open(options.workers(1).pin_workers(false));
    let database = database.expect("there is memory");
    let script = "CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER NOT NULL);
        INSERT INTO item SELECT i, 10 FROM generate_series(1, 8) AS i;
        CREATE TABLE other (id INTEGER PRIMARY KEY);
        CREATE ROLE reader LOGIN; GRANT SELECT ON item TO reader;
        CREATE ROLE writer LOGIN; GRANT INSERT ON item TO writer;
        CREATE ROLE eraser LOGIN; GRANT DELETE ON item TO eraser";
    database.execute(script).expect("it is SQL");
    database
}

fn session(database: &Database) -> Session {
    database.session().expect("there is room")
}

/// The first value of the last statement or its tag, or the state of its error.
fn run(session: &mut Session, text: &str) -> String {
    match session.execute(text) {
        Ok(results) => results.last().map_or(String::new(), |result| {
            let rows = result.result.as_ref().map(|rows| &rows.rows);
            match rows
                .and_then(|rows| rows.first())
                .and_then(|row| row.first())
            {
                Some(value) => value.to_string(),
                None => result.tag.clone(),
            }
        }),
        Err(error) => error.state().to_string(),
    }
}

/// Waits until so many sessions wait for locks.
fn until_waiting(database: &Database, count: usize) {
    let waits = || {
        let locks = database.engine().locks();
        locks
            .iter()
            .filter(|it| it.waits_since_us.is_some())
            .count()
    };
    while waits() != count {
        thread::sleep(1_000_000);
    }
}

#[test]
fn a_session_waits_until_another_gives_the_lock_back() {
    let database = open(Options::new());
    let mut one = session(&database);
    run(&mut one, "SELECT pg_advisory_lock(7)");
    let mut two = session(&database);
    assert_eq!(run(&mut two, "SELECT pg_try_advisory_lock(7)"), "f");
    assert_eq!(run(&mut two, "SELECT pg_try_advisory_lock_shared(7)"), "f");
    assert_eq!(run(&mut two, "SELECT pg_try_advisory_lock(7, 0)"), "t");
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(run(&mut two, "SELECT pg_advisory_lock(7)"), ""));
        until_waiting(&database, 1);
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart <= clock_timestamp() AND pid <> pg_backend_pid()";
        assert_eq!(run(&mut one, waiting), "1");
        assert_eq!(run(&mut one, "SELECT pg_advisory_unlock(7)"), "t");
    });
    assert_eq!(run(&mut one, "SELECT pg_try_advisory_lock(7)"), "f");
    assert_eq!(run(&mut two, "SELECT pg_advisory_unlock(7)"), "t");
    assert_eq!(run(&mut one, "SELECT pg_try_advisory_lock(7)"), "t");
}

#[test]
fn locks_end_with_their_session_and_their_transaction() {
    let database = open(Options::new());
    let mut one = session(&database);
    let mut two = session(&database);
    run(&mut two, "SELECT pg_advisory_lock(1)");
    for end in ["COMMIT", "ROLLBACK", "SELECT 1 / 0"] {
        run(&mut two, "BEGIN; SELECT pg_advisory_xact_lock(2)");
        assert_eq!(
            run(&mut one, "SELECT pg_try_advisory_xact_lock(2)"),
            "f",
            "{end}"
        );
        run(&mut two, end);
        assert_eq!(
            run(&mut one, "SELECT pg_try_advisory_xact_lock(2)"),
            "t",
            "{end}"
        );
        run(&mut two, "ROLLBACK");
    }
    run(&mut two, "BEGIN; SELECT pg_advisory_xact_lock(2)");
    assert_eq!(run(&mut one, "SELECT pg_try_advisory_lock(1)"), "f");
    drop(two);
    assert_eq!(run(&mut one, "SELECT pg_try_advisory_lock(1)"), "t");
    assert_eq!(run(&mut one, "SELECT pg_try_advisory_lock(2)"), "t");
    // A session of the database's own, which goes back to a pool, takes no lock with it.
    assert_eq!(
        database
            .query("SELECT pg_advisory_lock(3)", ())
            .map(|it| it.len()),
        Ok(1)
    );
    assert_eq!(run(&mut one, "SELECT pg_try_advisory_lock(3)"), "t");
}

#[test]
fn a_block_keeps_its_locks_while_it_is_run_again() {
    for protocol in Protocol::serializable() {
        let database = open(Options::new().protocol(protocol));
        let mut one = session(&database);
        let mut two = session(&database);
        run(&mut one, "BEGIN");
        assert_eq!(
            run(&mut one, "SELECT pg_try_advisory_xact_lock(5)"),
            "t",
            "{protocol}"
        );
        run(&mut one, "UPDATE item SET stock = stock - 1 WHERE id = 1");
        // Where the first block holds nothing that this waits for, the first one is run again.
        run(&mut two, "SET statement_timeout = 50");
        run(&mut two, "UPDATE item SET stock = stock - 1 WHERE id = 1");
        assert_eq!(database.engine().locks().len(), 1, "{protocol}");
        assert_eq!(run(&mut one, "COMMIT"), "COMMIT", "{protocol}");
        assert!(database.engine().locks().is_empty(), "{protocol}");
    }
}

#[test]
fn a_wait_obeys_timeouts_and_cancellation() {
    let database = open(Options::new());
    let mut one = session(&database);
    run(
        &mut one,
        "SELECT pg_advisory_lock(7); BEGIN; LOCK TABLE item",
    );
    let mut two = session(&database);
    run(&mut two, "SET lock_timeout = 30");
    assert_eq!(run(&mut two, "SELECT pg_advisory_lock(7)"), "55P03");
    run(&mut two, "BEGIN");
    assert_eq!(
        run(&mut two, "LOCK TABLE item IN ACCESS SHARE MODE"),
        "55P03"
    );
    run(
        &mut two,
        "ROLLBACK; SET lock_timeout = 0; SET statement_timeout = 30",
    );
    assert_eq!(run(&mut two, "SELECT pg_advisory_lock(7)"), "57014");
    run(&mut two, "SET statement_timeout = 0");
    let handle = two.cancel_handle();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(run(&mut two, "SELECT pg_advisory_lock(7)"), "57014"));
        until_waiting(&database, 1);
        assert!(handle.cancel());
    });
    assert_eq!(database.engine().locks().len(), 2);
}

#[test]
fn an_open_block_waits_no_longer_than_it_may_idle() {
    let database = open(Options::new());
    let mut one = session(&database);
    run(&mut one, "SELECT pg_advisory_lock(7)");
    let mut two = session(&database);
    run(
        &mut two,
        "SET idle_in_transaction_session_timeout = 50; BEGIN",
    );
    run(&mut two, "UPDATE item SET stock = 1 WHERE id = 1");
    let begun_ns = time::now_ns();
    assert_eq!(run(&mut two, "SELECT pg_advisory_lock(7)"), "55P03");
    assert!(time::now_ns() - begun_ns < Duration::from_secs(20).as_nanos() as u64);
}

#[test]
fn a_block_that_idles_too_long_keeps_no_lock() {
    let database = open(Options::new());
    let mut one = session(&database);
    run(
        &mut one,
        "SET idle_in_transaction_session_timeout = 50; BEGIN; LOCK TABLE item; SELECT pg_advisory_lock(7)",
    );
    let held = || database.engine().locks().len();
    assert_eq!(held(), 2);
    while held() == 2 {
        thread::sleep(1_000_000);
    }
    assert_eq!(run(&mut one, "LOCK TABLE other"), "25P03");
    assert_eq!(run(&mut one, "LOCK TABLE other"), "25P02");
    assert_eq!(run(&mut one, "ROLLBACK"), "ROLLBACK");
    assert_eq!(run(&mut one, "SELECT pg_advisory_unlock(7)"), "t");
}

#[test]
fn a_deadlock_is_found() {
    let database = open(Options::new());
    let mut one = session(&database);
    let mut two = session(&database);
    run(&mut one, "SELECT pg_advisory_lock(1)");
    run(&mut two, "BEGIN; LOCK TABLE item IN SHARE MODE");
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(run(&mut two, "SELECT pg_advisory_xact_lock(1)"), "");
            run(&mut two, "COMMIT");
        });
        until_waiting(&database, 1);
        let error = one.execute("BEGIN; LOCK TABLE other; LOCK TABLE item");
        let error = error.expect_err("each waits for the other");
        assert_eq!(error.state().as_str(), "40P01");
        let detail = error.detail().unwrap_or_default();
        assert!(
            detail.contains("waits for AccessExclusiveLock on relation"),
            "{detail}"
        );
        assert!(
            detail.contains("waits for ExclusiveLock on advisory lock [1]"),
            "{detail}"
        );
        // Its session keeps what it holds beyond the block.
        run(&mut one, "ROLLBACK");
        assert_eq!(run(&mut one, "SELECT pg_advisory_unlock(1)"), "t");
    });
}

#[test]
fn tables_are_locked_against_each_other_and_not_against_statements() {
    let database = open(Options::new());
    let mut one = session(&database);
    let mut two = session(&database);
    run(&mut one, "BEGIN; LOCK TABLE item IN SHARE MODE");
    assert_eq!(
        run(&mut two, "UPDATE item SET stock = 7 WHERE id = 2"),
        "UPDATE 1"
    );
    run(&mut two, "BEGIN");
    assert_eq!(
        run(&mut two, "LOCK TABLE item IN SHARE MODE NOWAIT"),
        "LOCK TABLE"
    );
    assert_eq!(
        run(&mut two, "LOCK TABLE item IN ROW SHARE MODE NOWAIT"),
        "LOCK TABLE"
    );
    assert_eq!(
        run(&mut two, "LOCK TABLE item IN ROW EXCLUSIVE MODE NOWAIT"),
        "55P03"
    );
    run(&mut two, "ROLLBACK");
    run(&mut one, "COMMIT; BEGIN");
    // A table keeps its lock under another name.
    run(&mut two, "BEGIN; LOCK TABLE other");
    run(
        &mut one,
        "ALTER TABLE item RENAME TO thing; LOCK TABLE thing; COMMIT",
    );
    assert_eq!(
        run(&mut one, "BEGIN; LOCK TABLE thing NOWAIT"),
        "LOCK TABLE"
    );
    assert_eq!(run(&mut two, "LOCK TABLE thing NOWAIT"), "55P03");
}

#[test]
fn who_may_lock_a_table() {
    let database = open(Options::new());
    let may = |role: &str, mode: &str| {
        let mut session = database.session_as(role).expect("there is room");
        run(&mut session, "BEGIN");
        run(&mut session, &format!("LOCK TABLE item IN {mode} MODE")) == "LOCK TABLE"
    };
    let modes = [
        "ACCESS SHARE",
        "ROW SHARE",
        "ROW EXCLUSIVE",
        "SHARE",
        "ACCESS EXCLUSIVE",
    ];
    let of = |role: &str| modes.map(|mode| may(role, mode));
    assert_eq!(of("reader"), [true, false, false, false, false]);
    assert_eq!(of("writer"), [false, false, true, false, false]);
    assert_eq!(of("eraser"), [false, true, true, true, true]);
}

#[test]
fn what_was_not_held_is_a_warning() {
    let database = open(Options::new());
    let mut session = session(&database);
    let results = session.execute("SELECT pg_advisory_unlock(1), pg_advisory_unlock_shared(1, 2)");
    let notices = results.expect("it is SQL").remove(0).notices;
    let messages: Vec<&str> = notices
        .iter()
        .map(|notice| notice.message.as_str())
        .collect();
    let expected = [
        "you don't own a lock of type ExclusiveLock",
        "you don't own a lock of type ShareLock",
    ];
    assert_eq!(messages, expected);
    let parameter = session.query("SELECT pg_try_advisory_lock($1), $1 + 1", (41_i64,));
    assert_eq!(
        parameter.map(|rows| rows.rows[0][1].to_string()),
        Ok("42".to_owned())
    );
    assert_eq!(run(&mut session, "SELECT pg_advisory_unlock(41)"), "t");
    let computed = session.query(
        "SELECT pg_try_advisory_lock(length($2), $1)",
        (1_i32, "four"),
    );
    assert!(computed.is_ok(), "{computed:?}");
    assert_eq!(run(&mut session, "SELECT pg_advisory_unlock(4, 1)"), "t");
}

#[test]
fn a_session_has_a_bound_of_locks() {
    let database = open(Options::new());
    let mut session = session(&database);
    run(&mut session, "BEGIN");
    let lock = session
        .parse("SELECT pg_advisory_xact_lock_shared($1)", &[])
        .expect("it is SQL");
    let mut taken = 0;
    let state = loop {
        let mut portal = session
            .bind(&lock, &[(taken % 100).into()])
            .expect("a number");
        match session.execute_portal(&mut portal, 0) {
            Ok(_) => taken += 1,
            Err(error) => break error.state(),
        }
    };
    assert_eq!((taken, state.as_str()), (10_000, "53200"));
    assert!(database.engine().locks().is_empty());
}
