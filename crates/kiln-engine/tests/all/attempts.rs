//! What failed attempts leave for the next attempt of their transaction ends with the transaction:
//! the next transaction on the same worker slot starts as on a fresh one, and touches nothing of
//! the former one.

use std::time::Duration;

use crate::common::*;
use kiln_engine::{Arguments, Engine, Program, Protocol, Session};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::error::{Error, Result, SqlState};

/// Protocols under which two transactions of several statements can be open at once.
fn protocols() -> impl Iterator<Item = Protocol> {
    Protocol::serializable().filter(|protocol| !protocol.is_single_worker())
}

/// A bank in which no epoch ends by itself, so that a worker that compares epochs forgets nothing
/// by chance.
fn bank_of_one_epoch(protocol: Protocol) -> Engine {
    bank(small(protocol).epoch_ms(60_000), 2, 100)
}

fn deposit_of(engine: &Engine) -> Arc<Program> {
    Arc::new(deposit(&engine.table("account").expect("it is there")))
}

/// A session with an open block that has written account 0.
fn writer(engine: &Engine, deposit: &Arc<Program>) -> Session {
    let mut session = engine.session().expect("there is a worker slot");
    session.begin().expect("no block is open");
    let written = session.run(deposit, &mut arguments(&[0, 1]));
    written.expect("no other transaction is open");
    session
}

/// Opens a block in which nothing is done: a session takes a slot for its first program.
fn start(session: &mut Session) {
    session.begin().expect("no block is open");
    let ran = session.run(&Arc::new(nothing()), &mut arguments(&[]));
    ran.expect("it does nothing");
}

fn arguments(values: &[i64]) -> Arguments {
    let mut arguments = Arguments::new();
    values.iter().for_each(|value| arguments.push_i64(*value));
    arguments
}

fn drop_everything(engine: &Engine) -> Result<()> {
    engine.change_catalog(|change| {
        for name in ["transfer", "deposit", "linger", "open", "shut", "total"] {
            change.drop_procedure(name)?;
        }
        change.drop_table("account")
    })
}

fn own_error() -> Error {
    Error::new(SqlState::CHECK_VIOLATION, "the closure's own")
}

/// A closure that writes account 0, conflicts with `writer` once, and then ends with an error of
/// its own. It leaves its worker slot at the top of the pool.
fn conflict_once(engine: &Engine, writer: &mut Session, protocol: Protocol) {
    let mut attempts = 0;
    let result: Result<()> = engine.transaction(|transaction| {
        attempts += 1;
        if attempts > 1 {
            return Err(own_error());
        }
        let written = transaction.update("account", (0_i64,), &[("balance", 7_i64.into())]);
        // Under optimistic protocols the closure finds this at its commit.
        writer.commit().expect("it came first");
        written.map(drop)
    });
    assert_eq!(result, Err(own_error()), "{protocol}");
    assert_eq!(attempts, 2, "{protocol}");
}

/// Whether another transaction can write account 0 soon.
fn others_may_write(engine: &Engine) -> bool {
    let written = engine.transaction_within(Duration::from_millis(500), |other| {
        other.update("account", (0_i64,), &[("balance", 9_i64.into())])
    });
    match written {
        Ok(found) => found,
        Err(error) => {
            assert_eq!(error.state(), SqlState::QUERY_CANCELED, "{error}");
            false
        }
    }
}

#[test]
fn a_worker_slot_does_not_lock_what_its_former_transaction_met() {
    for protocol in protocols() {
        let engine = bank_of_one_epoch(protocol);
        let deposit = deposit_of(&engine);
        let mut first = writer(&engine, &deposit);
        conflict_once(&engine, &mut first, protocol);
        let mut next = engine.session().expect("there is a worker slot");
        start(&mut next);
        assert!(others_may_write(&engine), "{protocol}");
        next.roll_back().expect("a block is open");
    }
}

#[test]
fn a_worker_slot_does_not_wait_for_what_its_former_transaction_met() {
    for protocol in protocols() {
        let engine = bank_of_one_epoch(protocol);
        let deposit = deposit_of(&engine);
        let mut first = writer(&engine, &deposit);
        conflict_once(&engine, &mut first, protocol);
        // It has the closure's worker slot, and lets it be, until the other session has another
        // one.
        let holder = engine.loader("account", &["id", "owner", "balance"]);
        first.begin().expect("its block has ended");
        let written = first.run(&deposit, &mut arguments(&[0, 1]));
        written.expect("no other transaction is open");
        drop(holder.expect("there is a worker slot"));
        let mut next = engine.session().expect("there is a worker slot");
        // The shortest of some, as the test may lose its core.
        let waits = (0..5).map(|_| {
            let began = time::now_ns();
            start(&mut next);
            let waited = Duration::from_nanos(time::now_ns() - began);
            next.roll_back().expect("a block is open");
            waited
        });
        let first_wait = waits.into_iter().next().expect("there are five");
        assert!(
            first_wait < Duration::from_millis(15),
            "{protocol}: {first_wait:?}"
        );
    }
}

/// Pessimistic attempts, and those that lock the records of their list, would keep the other
/// transaction out.
#[test]
fn a_worker_slot_starts_optimistically() {
    for protocol in [Protocol::Hybrid, Protocol::Mocc] {
        let engine = bank_of_one_epoch(protocol);
        let deposit = deposit_of(&engine);
        let mut first = writer(&engine, &deposit);
        conflict_once(&engine, &mut first, protocol);
        let mut next = engine.session().expect("there is a worker slot");
        next.begin().expect("no block is open");
        let written = next.run(&deposit, &mut arguments(&[0, 1]));
        written.expect("no other transaction is open");
        assert!(others_may_write(&engine), "{protocol}");
        next.roll_back().expect("a block is open");
    }
}

#[test]
fn a_session_does_not_touch_a_dropped_table_of_an_expired_closure() {
    for protocol in protocols() {
        let engine = bank(small(protocol).epoch_ms(1), 2, 100);
        let mut first = {
            let deposit = deposit_of(&engine);
            writer(&engine, &deposit)
        };
        let result = engine.transaction_within(Duration::from_millis(30), |transaction| {
            let found = transaction.update("account", (0_i64,), &[("balance", 7_i64.into())]);
            // Under optimistic protocols nothing conflicts before the commit; the writer goes on.
            if found.is_ok() {
                let _ = first.commit();
                return Err(own_error());
            }
            found
        });
        let state = result.expect_err("it has expired, or given up").state();
        assert!(
            matches!(state, SqlState::QUERY_CANCELED | SqlState::CHECK_VIOLATION),
            "{protocol}: {state:?}"
        );
        if first.in_transaction() {
            first.commit().expect("it came first");
        }
        drop_everything(&engine).expect("no transaction is open");
        // The other worker slots let go of the catalog that had the table, and its memory goes with
        // the epoch.
        start(&mut first);
        first.roll_back().expect("a block is open");
        let soon = time::now_ns() + 60_000_000;
        while time::now_ns() < soon {
            engine.call("nothing", ()).expect("it is there");
        }
        // The other worker slot first: the closure's is below it.
        start(&mut first);
        let mut next = engine.session().expect("there is a worker slot");
        start(&mut next);
        next.roll_back().expect("a block is open");
        first.roll_back().expect("a block is open");
    }
}

#[test]
fn a_closure_does_not_touch_a_table_that_is_dropped_between_its_attempts() {
    for protocol in protocols() {
        // The gate is shut for moments only: the second attempt may begin between two of them.
        let is_dropped = (1..500).any(|wait| is_dropped_between_attempts(protocol, wait % 16));
        assert!(is_dropped, "{protocol}");
    }
}

/// Whether the table went between the two attempts of a closure, the first of which lasts for so
/// long, and not after them.
fn is_dropped_between_attempts(protocol: Protocol, wait_ms: u64) -> bool {
    let engine = bank_of_one_epoch(protocol);
    let mut first = {
        let deposit = deposit_of(&engine);
        writer(&engine, &deposit)
    };
    let mut attempts = 0;
    let result = thread::scope(|scope| {
        let engine = &engine;
        engine.transaction(|transaction| {
            attempts += 1;
            let written = transaction.update("account", (0_i64,), &[("balance", 7_i64.into())]);
            if attempts == 1 {
                first.commit().expect("it came first");
                scope.spawn(move || drop_everything(engine).expect("attempts end"));
                thread::sleep(wait_ms * 1_000_000);
            }
            written
        })
    });
    assert_eq!(attempts, 2, "{protocol}");
    result.is_err_and(|error| {
        assert_eq!(error.state(), SqlState::UNDEFINED_TABLE, "{protocol}");
        true
    })
}
