//! Sessions that sleep, and sessions that end each other's statements or each other.

#![cfg(not(kiln_sim))]

use std::time::Duration;

use kiln_platform::{thread, time};
use kiln_sql::{Database, Options, Protocol, Session};

const MS: u64 = 1_000_000;
/// The longest that an answer to a request may take, on a machine that does much else.
const SOON_NS: u64 = 10_000 * MS;

fn open() -> Database {
    let options = Options::new().workers(1).pin_workers(false);
    let database = Database::open(options).expect("there is memory");
    let script = "CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER NOT NULL);
        INSERT INTO item SELECT i, 10 FROM generate_series(1, 8) AS i;
        CREATE ROLE one LOGIN; CREATE ROLE other LOGIN";
    database.execute(script).expect("it is SQL");
    database
}

fn session(database: &Database, role: &str) -> Session {
    database.session_as(role).expect("there is room")
}

/// The first value of the last statement, or the state of the error.
fn run(session: &mut Session, text: &str) -> String {
    match session.execute(text) {
        Ok(results) => {
            let rows = results.last().and_then(|result| result.result.as_ref());
            let row = rows.and_then(|rows| rows.rows.first());
            row.and_then(|row| row.first())
                .map_or_else(String::new, ToString::to_string)
        }
        Err(error) => error.state().to_string(),
    }
}

/// Runs a statement that takes as long as it is not ended, while `end` is done.
fn run_while(session: &mut Session, text: &str, end: impl FnOnce() + Send) -> String {
    let began_ns = time::now_ns();
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(50 * MS);
            end();
        });
        run(session, text)
    });
    assert!(time::now_ns() - began_ns < SOON_NS, "{text} ran on");
    outcome
}

#[test]
fn a_sleep_takes_its_time_and_ends_with_the_limits_of_its_statement() {
    let database = open();
    let mut session = database.session().expect("there is room");
    for text in [
        "SELECT pg_sleep(0.03)",
        "SELECT pg_sleep_for('30 milliseconds')",
        "SELECT pg_sleep_until(clock_timestamp() + interval '30 milliseconds')",
        "SELECT * FROM pg_sleep(0.03)",
        "PREPARE q AS SELECT pg_sleep($1); EXECUTE q(0.03)",
    ] {
        let began_ns = time::now_ns();
        assert_eq!(run(&mut session, text), "", "{text}");
        let took_ns = time::now_ns() - began_ns;
        assert!((30 * MS..SOON_NS).contains(&took_ns), "{text}: {took_ns}");
    }
    run(&mut session, "SET statement_timeout = 30");
    assert_eq!(run(&mut session, "SELECT pg_sleep(1000)"), "57014");
    run(&mut session, "RESET statement_timeout");
    let handle = session.cancel_handle();
    let cancel = || assert!(handle.cancel());
    assert_eq!(
        run_while(&mut session, "SELECT pg_sleep('infinity')", cancel),
        "57014"
    );
    assert_eq!(run(&mut session, "SELECT 1"), "1");
}

/// A block that sleeps holds what others may wait for: no longer than it may idle.
#[test]
fn a_block_sleeps_no_longer_than_it_may_idle() {
    for protocol in Protocol::serializable() {
        let database = open();
        (database.engine().set_protocol(protocol)).expect("no block is open");
        let mut session = database.session().expect("there is room");
        run(&mut session, "SET idle_in_transaction_session_timeout = 60");
        run(&mut session, "BEGIN; SELECT pg_sleep(0.1)");
        run(&mut session, "UPDATE item SET stock = 0 WHERE id = 1");
        assert_eq!(
            run(&mut session, "SELECT pg_sleep(0.01), 5"),
            "",
            "{protocol}"
        );
        assert_eq!(
            run(&mut session, "SELECT pg_sleep(1000)"),
            "25P03",
            "{protocol}"
        );
        assert_eq!(run(&mut session, "SELECT 1"), "25P02", "{protocol}");
        run(&mut session, "ROLLBACK");
        let stock = "SELECT stock FROM item WHERE id = 1";
        assert_eq!(run(&mut session, stock), "10", "{protocol}");
    }
}

#[test]
fn those_that_sleep_are_bounded_and_hold_up_no_worker() {
    let database = open();
    thread::scope(|scope| {
        let mut handles = Vec::new();
        for _ in 0..kiln_sql::SLEEPERS_MAX {
            let mut session = database.session().expect("there is room");
            handles.push(session.cancel_handle());
            scope.spawn(move || {
                // The one that asks whether there is a place may have the last one.
                let mut sleep = || run(&mut session, "SELECT pg_sleep(1000)");
                let outcome = std::iter::repeat_with(&mut sleep).find(|it| it != "53300");
                assert_eq!(outcome.as_deref(), Some("57014"));
            });
        }
        let mut session = database.session().expect("there is room");
        let until_ns = time::now_ns() + SOON_NS;
        while run(&mut session, "SELECT pg_sleep(0.0001)") != "53300" {
            assert!(time::now_ns() < until_ns, "not all sleep");
        }
        assert_eq!(
            run(&mut session, "SELECT stock FROM item WHERE id = 1"),
            "10"
        );
        let active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()";
        let sleeping = kiln_sql::SLEEPERS_MAX.to_string();
        assert_eq!(run(&mut session, active), sleeping);
        assert!(handles.iter().all(kiln_sql::CancelHandle::cancel));
    });
}

#[test]
fn statements_of_others_are_cancelled_and_others_are_ended() {
    let database = open();
    let mut first = database.session().expect("there is room");
    let mut victim = session(&database, "one");
    let pid = victim.number();
    let cancel = || {
        let cancelled = run(&mut first, &format!("SELECT pg_cancel_backend({pid})"));
        assert_eq!(cancelled, "t");
    };
    assert_eq!(
        run_while(&mut victim, "SELECT pg_sleep(1000)", cancel),
        "57014"
    );
    let endless = "SELECT count(*) FROM generate_series(1, 1000000000000)";
    let cancel = || {
        let text =
            "SELECT bool_and(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE usename = 'one'";
        assert_eq!(run(&mut first, text), "t");
    };
    assert_eq!(run_while(&mut victim, endless, cancel), "57014");
    assert_eq!(run(&mut victim, "SELECT 1"), "1");
    // One that does nothing stays as it is.
    assert_eq!(
        run(&mut first, &format!("SELECT pg_cancel_backend({pid})")),
        "t"
    );
    assert_eq!(run(&mut victim, "SELECT 1"), "1");
    let terminate = || {
        let text = format!("SELECT pg_terminate_backend({pid}, 20)");
        let results = first.execute(&text).expect("a superuser may");
        let warning = format!("backend with PID {pid} did not terminate within 20 milliseconds");
        assert_eq!(results[0].notices[0].message, warning);
    };
    assert_eq!(run_while(&mut victim, endless, terminate), "57P01");
    assert_eq!(run(&mut victim, "SELECT 1"), "57P01", "it has ended");
    let text = format!("SELECT pg_terminate_backend({pid}, 60000)");
    assert_eq!(run_while(&mut first, &text, move || drop(victim)), "t");
    assert_eq!(run(&mut first, &text), "f", "there is none");
}

#[test]
fn a_role_ends_its_own_sessions_and_a_superuser_all() {
    let database = open();
    let mut superuser = database.session().expect("there is room");
    let mut one = session(&database, "one");
    let mut twin = session(&database, "one");
    let mut other = session(&database, "other");
    for function in ["pg_cancel_backend", "pg_terminate_backend"] {
        let text = |session: &Session| format!("SELECT {function}({})", session.number());
        assert_eq!(run(&mut one, &text(&other)), "42501");
        assert_eq!(run(&mut one, &text(&superuser)), "42501");
        assert_eq!(run(&mut one, &text(&twin)), "t");
        assert_eq!(run(&mut superuser, &text(&other)), "t");
    }
    assert_eq!(run(&mut one, "SELECT 1"), "1");
    for ended in [&mut twin, &mut other] {
        assert_eq!(run(ended, "SELECT 1"), "57P01");
        assert_eq!(run(ended, "BEGIN"), "57P01");
    }
    let known =
        "SELECT string_agg(DISTINCT usename || coalesce(state, '?'), ' ') FROM pg_stat_activity";
    assert_eq!(run(&mut one, known), "kiln? oneactive oneidle other?");
    assert_eq!(
        run(&mut one, "SELECT pg_terminate_backend(pg_backend_pid())"),
        "57P01"
    );
    assert_eq!(run(&mut one, "SELECT 1"), "57P01");
}

#[test]
fn a_session_of_the_pool_is_seen_while_it_runs_something() {
    let database = open();
    let count = || {
        let rows = database.query("SELECT count(*) FROM pg_stat_activity", ());
        rows.and_then(|rows| rows.into_one::<(i64,)>())
    };
    assert_eq!(count(), Ok((1,)));
    let mut session = database.session().expect("there is room");
    assert_eq!(
        run(&mut session, "SELECT count(*) FROM pg_stat_activity"),
        "1"
    );
    run(&mut session, "SET application_name = 'shop'; BEGIN");
    let text = "SELECT application_name || ' ' || state FROM pg_stat_activity WHERE xact_start <= clock_timestamp()";
    let seen = database
        .query(text, ())
        .and_then(|rows| rows.into_one::<(String,)>());
    assert_eq!(seen, Ok(("shop idle in transaction".to_owned(),)));
    let within = Duration::from_secs(1);
    assert!(database.transaction_within(within, |_| Ok(())).is_ok());
    assert_eq!(count(), Ok((2,)));
}
