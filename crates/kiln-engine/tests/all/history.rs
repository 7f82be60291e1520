//! Histories of what an engine ran: from all its workers, with names, and judged.

#![cfg(feature = "history")]

use crate::common::*;
use kiln_engine::{Arguments, Engine, History, Protocol};
use kiln_history::{Event, LogReader};
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_storage::error::SqlState;
use kiln_storage::types::Value;

/// Calls, closures and drivers at the same time.
fn work(engine: &Engine) {
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..150_i64 {
                let (source, target) = (round % 5, (round * 3) % 5);
                // Refused when money is short.
                let _ = engine.call("transfer", (source, target, 40_i64));
            }
        });
        scope.spawn(|| {
            for round in 0..150_i64 {
                let moved = engine.transaction(|transaction| {
                    if transaction.get("account", (10 + round % 3,))?.is_some() {
                        transaction.delete("account", (10 + round % 3,))?;
                    } else {
                        let row = (10 + round % 3, "somebody", 0_i64);
                        transaction.insert("account", row)?;
                    }
                    Ok(())
                });
                moved.expect("the closure finds nothing wrong");
            }
        });
        scope.spawn(|| {
            let total = engine.procedure("total").expect("it is there");
            let drive = |driver: &mut kiln_engine::Driver| {
                for _ in 0..100 {
                    driver.call(&total, &mut Arguments::new());
                    assert!(!driver.is_history_full());
                }
            };
            engine.drive(2, drive).expect("there are worker slots");
        });
    });
}

fn judge(history: &History) -> kiln_checker::Report {
    let report = kiln_checker::check(history, &kiln_checker::Options::default());
    report.expect("a history of our own makes sense")
}

#[test]
fn a_history_has_everything_that_all_workers_did() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 5, 100);
        engine.record_history(64 << 20).expect("nothing runs");
        work(&engine);
        let history = engine.take_history().expect("nothing runs any more");
        assert_eq!(history.protocol, protocol.name());
        let report = judge(&history);
        assert!(report.is_serializable(), "{protocol}: {report}");
        assert_eq!(report.transactions, 150 + 150 + 200, "{protocol}");
        for name in ["transfer", "total", "transaction"] {
            assert!(history.procedures.iter().any(|known| known == name));
        }
        let table = engine.table("account").expect("it is there").id().0;
        let names = &history.tables[table as usize];
        assert_eq!(names.name, "account");
        assert_eq!(names.columns, ["id", "owner", "balance"]);
        assert_eq!(names.indexes[0], "account_pkey");
        for id in [0, 4, 10, 11, 12] {
            let name = format!("account[{id}]");
            assert!(
                history.objects.iter().any(|object| object.name == name),
                "{protocol}: {name} in {:?}",
                history.objects
            );
        }
        // The engine no longer records.
        work(&engine);
        assert_eq!(engine.take_history().expect("nothing runs").log_bytes(), 0);
    }
}

#[test]
fn a_history_goes_on_under_another_protocol() {
    let engine = bank(small(Protocol::Silo), 5, 100);
    engine.record_history(64 << 20).expect("nothing runs");
    work(&engine);
    for protocol in [Protocol::TwoPhaseLockingNoWait, Protocol::Serial] {
        engine.set_protocol(protocol).expect("nothing runs");
        work(&engine);
    }
    let history = engine.take_history().expect("nothing runs any more");
    let report = judge(&history);
    assert!(report.is_serializable(), "{report}");
    assert_eq!(report.transactions, 3 * 500);
}

#[test]
fn recording_from_the_start_has_the_loading_too() {
    let options = small(Protocol::Silo).record_history(Some(64 << 20));
    let engine = bank(options, 5, 100);
    let refused = engine.call("open", (3_i64, 1_i64)).expect("it runs");
    let refused = refused.rows().expect_err("the account is there");
    assert_eq!(refused.state(), SqlState::UNIQUE_VIOLATION);
    let mut session = engine.session().expect("there is a worker slot");
    session.begin().expect("no block is open");
    session.roll_back().expect("a block is open");
    drop(session);
    let history = engine.take_history().expect("nothing runs any more");
    let report = judge(&history);
    assert!(report.is_serializable(), "{report}");
    assert_eq!((report.transactions, report.rejected), (2, 1));
    let inserted = history.logs.iter().flat_map(|log| LogReader::new(log));
    let inserted = inserted.filter(|event| matches!(event, Ok(Event::Install { .. })));
    assert_eq!(inserted.count(), 5);
}

/// A block that is rolled back has shown what nothing has confirmed: the history has it among those
/// that told nothing, unless it was consistent.
#[test]
fn a_block_that_is_rolled_back_need_not_have_read_a_state() {
    for protocol in [Protocol::Silo, Protocol::TicToc, Protocol::Occ] {
        let engine = bank(small(protocol), 5, 100);
        engine.record_history(64 << 20).expect("nothing runs");
        let deposit = Arc::new(deposit(&engine.table("account").expect("it is there")));
        for is_disturbed in [false, true] {
            let mut session = engine.session().expect("there is room");
            session.begin().expect("no block is open");
            for id in [1_i64, 2] {
                let mut arguments = Arguments::from_values(&[Value::BigInt(id), Value::BigInt(1)]);
                session
                    .run(&deposit, &mut arguments)
                    .expect("it has no conflict yet");
                if is_disturbed && id == 1 {
                    let moved = engine.call("transfer", (1_i64, 2_i64, 40_i64));
                    moved.expect("it runs").rows().expect("there is money");
                }
            }
            session.roll_back().expect("a block is open");
        }
        let history = engine.take_history().expect("nothing runs any more");
        let report = judge(&history);
        assert!(report.is_serializable(), "{protocol}: {report}");
        assert_eq!((report.transactions, report.rejected), (2, 1), "{protocol}");
    }
}

#[test]
fn a_full_history_says_so() {
    let engine = bank(small(Protocol::Silo), 5, 100);
    engine.record_history(4_000).expect("nothing runs");
    let deposit = engine.procedure("deposit").expect("it is there");
    let calls = engine.drive(1, |driver| {
        let mut calls = 0;
        while !driver.is_history_full() {
            let mut arguments = Arguments::from_values(&[Value::BigInt(1), Value::BigInt(2)]);
            driver.call(&deposit, &mut arguments);
            calls += 1;
        }
        calls
    });
    let calls = calls.expect("there is a worker slot")[0];
    assert!((10..100).contains(&calls), "{calls}");
    let history = engine.take_history().expect("nothing runs");
    assert_eq!(judge(&history).transactions, calls);
}
