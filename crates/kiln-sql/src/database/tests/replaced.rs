//! Procedures that are replaced while they are called: arguments go to the parameters that they
//! were meant for.

use kiln_engine::{Completions, Options};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::{thread, time};
use kiln_storage::error::SqlState;
use kiln_storage::types::Value;

use super::super::{Database, Session};

const TABLE: &str = "CREATE TABLE pair (low INTEGER, high INTEGER)";
/// The same procedure with its parameters in two orders.
const ONE: &str = "DROP PROCEDURE IF EXISTS note;
    CREATE PROCEDURE note(low INTEGER, high INTEGER) LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO pair (low, high) VALUES (low, high); END $$";
const OTHER: &str = "DROP PROCEDURE IF EXISTS note;
    CREATE PROCEDURE note(high INTEGER, low INTEGER) LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO pair (low, high) VALUES (low, high); END $$";
const DURATION_NS: u64 = 700_000_000;

/// Calls the procedure in a way while another thread replaces it; what went wrong is an error that
/// a client may meet then, or nothing.
fn calls(mut call: impl FnMut(&mut Session, i32) -> Result<(), SqlState>) {
    let database = Database::open(Options::new().workers(1).pin_workers(false)).expect("it opens");
    database.execute(TABLE).expect("it is sound");
    database.execute(ONE).expect("it is sound");
    let ended = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                for version in [OTHER, ONE] {
                    database.execute(version).expect("both are sound");
                }
            }
        });
        let mut session = database.session().expect("there is room");
        let until = time::now_ns() + DURATION_NS;
        let (mut done, mut number) = (0, 0);
        while time::now_ns() < until {
            number += 1;
            match call(&mut session, number) {
                Ok(()) => done += 1,
                // Between the two there is none.
                Err(SqlState::UNDEFINED_FUNCTION | SqlState::SERIALIZATION_FAILURE) => {}
                Err(state) => {
                    ended.store(true, Ordering::Relaxed);
                    panic!("{state}");
                }
            }
        }
        ended.store(true, Ordering::Relaxed);
        done
    });
    assert!(done > 0, "all calls met the moment without a procedure");
    let query = "SELECT count(*) FILTER (WHERE high = low + 1000000), count(*) FROM pair";
    let counts = database.execute(query).expect("it is sound");
    let rows = &counts
        .last()
        .and_then(|result| result.result.as_ref())
        .expect("a query")
        .rows;
    assert_eq!(rows[0], [Value::BigInt(done), Value::BigInt(done)]);
}

#[test]
fn arguments_at_hand_reach_the_parameters_that_they_name() {
    calls(|session, number| {
        let call = format!("CALL note(low => {number}, high => {})", number + 1_000_000);
        session
            .execute(&call)
            .map(|_| ())
            .map_err(|error| error.state())
    });
}

#[test]
fn arguments_that_are_computed_reach_the_parameters_that_they_name() {
    calls(|session, number| {
        let call = format!("CALL note(low => abs({number}), high => abs({number}) + 1000000)");
        session
            .execute(&call)
            .map(|_| ())
            .map_err(|error| error.state())
    });
}

#[test]
fn arguments_that_were_submitted_reach_the_parameters_that_they_name() {
    let completions = Completions::new(1);
    calls(|session, number| {
        let call = format!("CALL note(low => {number}, high => {})", number + 1_000_000);
        let ended = (|| {
            let statement = session.parse(&call, &[])?;
            let portal = session.bind(&statement, &[])?;
            let mut portal = session.submit(portal, &completions, 1)?;
            let mut ended = Vec::new();
            completions.wait(&mut ended, std::time::Duration::from_secs(20));
            session.complete(&mut portal, ended.remove(0).result)
        })();
        ended.map_err(|error: kiln_storage::error::Error| error.state())
    });
}
