//! Interleavings of two transactions, forced at the protocols' phase boundaries: both read and
//! write the same counter, and the second to come must notice.

#![cfg(kiln_sim)]

use kiln_engine::{Arguments, Outcome, Protocol};
use kiln_platform::sim::{self, Config, Failure, Schedule};
use kiln_platform::thread;
use kiln_procedure::AbortCause;
use kiln_sql::{Database, Options};

/// Lets two threads, t1 and t2, add to the counter once each in the order that the script says.
/// Returns the counter's value and the failed attempts of each by cause.
fn add_twice(
    protocol: Protocol,
    script: &[(&str, &'static str)],
) -> Result<(i64, [Vec<AbortCause>; 2]), Failure> {
    let mut config = Config::new(Schedule::Random, 1);
    let steps = script.iter();
    config.script = steps
        .map(|(thread, point)| ((*thread).to_owned(), *point))
        .collect();
    let body = || {
        let database = sim::quiet(|| {
            let options = Options::new().workers(1).protocol(protocol);
            let database = Database::open(options).expect("a database");
            let script = "CREATE TABLE counter (id INTEGER PRIMARY KEY, value BIGINT NOT NULL);
                 INSERT INTO counter VALUES (1, 0);
                 CREATE PROCEDURE add() LANGUAGE plpgsql AS $$
                 BEGIN
                     UPDATE counter SET value = value + 1 WHERE id = 1;
                 END
                 $$;";
            database.execute(script).expect("valid statements");
            database
        });
        let add = |name: &str| {
            let engine = database.engine().clone();
            let body = move || {
                let procedure = engine.procedure("add").expect("the procedure");
                let mut driver = engine.driver(0).expect("a worker slot");
                let outcome = driver.call(&procedure, &mut Arguments::new());
                assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
                let counts = driver.statistics().aborts;
                let causes = AbortCause::ALL.into_iter();
                causes
                    .flat_map(|cause| vec![cause; counts[cause.number()] as usize])
                    .collect::<Vec<_>>()
            };
            thread::spawn(name, body).expect("a thread")
        };
        let aborts = [add("t1"), add("t2")].map(|thread| thread.join().expect("no panic"));
        let value = sim::quiet(|| database.query("SELECT value FROM counter", ()));
        let value = value.expect("a result").rows[0][0].to_string();
        (value.parse::<i64>().expect("a number"), aborts)
    };
    sim::run(&config, body).map(|run| run.value)
}

#[test]
fn silo_notices_what_came_between_reading_and_locking() {
    // t1 has read; t2 does it all; t1 must read again.
    let script = [
        ("t1", "silo.executed"),
        ("t2", "silo.installed"),
        ("t1", "silo.installed"),
    ];
    let (value, aborts) = add_twice(Protocol::Silo, &script).expect("the run ends");
    assert_eq!(value, 2);
    assert_eq!(aborts, [vec![AbortCause::ReadValidation], Vec::new()]);
}

#[test]
fn silo_without_overlap_aborts_nobody() {
    let script = [
        ("t1", "silo.installed"),
        ("t2", "silo.executed"),
        ("t2", "silo.installed"),
    ];
    let (value, aborts) = add_twice(Protocol::Silo, &script).expect("the run ends");
    assert_eq!((value, aborts), (2, [Vec::new(), Vec::new()]));
}

#[test]
fn two_phase_locking_refuses_a_record_that_is_locked() {
    // t1 holds the lock until t2 has met it and given up at least once.
    let script = [("t1", "2pl.executed"), ("t2", "2pl.released")];
    let (value, aborts) = add_twice(Protocol::TwoPhaseLockingNoWait, &script).expect("ends");
    assert_eq!(value, 2);
    assert!(aborts[0].is_empty(), "{aborts:?}");
    assert!(!aborts[1].is_empty(), "{aborts:?}");
}

#[test]
fn a_point_that_is_never_reached_is_told() {
    let script = [("t1", "silo.installed"), ("t1", "2pl.released")];
    let failure = add_twice(Protocol::Silo, &script).expect_err("never reached");
    assert_eq!(
        failure.to_string(),
        "seed 1: the run ended before t1 reached 2pl.released"
    );
}
