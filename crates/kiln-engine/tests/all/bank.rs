//! Drivers under every protocol: no money is lost and no increment, however many threads there
//! are, while the protocol changes under them, and while the catalog does.

use crate::common::*;
use kiln_engine::{Arguments, Outcome, Protocol};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::random::Random;
use kiln_platform::thread;
use kiln_storage::error::SqlState;

const ACCOUNTS: i64 = 20;
const OPENING: i64 = 1_000;

/// Transfers at random, with an audit now and then; returns how many were refused.
fn transfers(driver: &mut kiln_engine::Driver, engine: &kiln_engine::Engine, calls: u64) -> u64 {
    let transfer = engine.procedure("transfer").expect("it is there");
    let total = engine.procedure("total").expect("it is there");
    let mut random = Random::stream(7, driver.position() as u64);
    let mut arguments = Arguments::new();
    let mut refused = 0;
    for call in 0..calls {
        arguments.clear();
        if call % 50 == 0 {
            match driver.call(&total, &mut arguments) {
                Outcome::Committed => {
                    let values = driver.values(&total).expect("just called");
                    assert_eq!(
                        values,
                        [[(ACCOUNTS * OPENING).into()]],
                        "an audit in between"
                    );
                }
                outcome => panic!("an audit ended as {outcome:?}"),
            }
            continue;
        }
        arguments.push_i64(random.between(0, ACCOUNTS - 1));
        arguments.push_i64(random.between(0, ACCOUNTS - 1));
        arguments.push_i64(random.between(1, OPENING));
        match driver.call(&transfer, &mut arguments) {
            Outcome::Committed => {}
            Outcome::Rejected(error) => {
                assert_eq!(error.state(), SqlState::CHECK_VIOLATION, "{error}");
                refused += 1;
            }
            Outcome::Expired => panic!("there is no deadline"),
        }
    }
    refused
}

#[test]
fn money_is_conserved_under_every_protocol() {
    for protocol in Protocol::serializable() {
        for threads in [1, 2, 8] {
            let engine = bank(small(protocol), ACCOUNTS, OPENING);
            let calls = 4_000 / threads as u64;
            let run = |driver: &mut kiln_engine::Driver| {
                let refused = transfers(driver, &engine, calls);
                let statistics = driver.statistics();
                assert_eq!(statistics.rejected, refused);
                assert_eq!(statistics.committed, calls - refused);
                refused
            };
            let refused: u64 = engine
                .drive(threads, run)
                .expect("there are worker slots")
                .iter()
                .sum();
            assert!(
                refused > 0,
                "{protocol}: some transfers are larger than the balance"
            );
            assert_eq!(
                number(&engine, "total", &[]),
                ACCOUNTS * OPENING,
                "{protocol} {threads}"
            );
        }
    }
}

/// Sets of workers are words of 64 bits, and numbers of workers share words with others: the
/// highest ones must do, too.
#[test]
fn as_many_drivers_as_there_may_be_conserve_money() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol).session_slots(4), ACCOUNTS, OPENING);
        let run = |driver: &mut kiln_engine::Driver| {
            transfers(driver, &engine, 60);
        };
        engine.drive(240, run).expect("there are worker slots");
        let sum = number(&engine, "total", &[]);
        assert_eq!(sum, ACCOUNTS * OPENING, "{protocol}");
    }
}

#[test]
fn a_hot_counter_counts_every_call() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 1, 0);
        let deposit = engine.procedure("deposit").expect("it is there");
        let run = |driver: &mut kiln_engine::Driver| {
            let mut arguments = Arguments::new();
            for _ in 0..2_000 {
                arguments.clear();
                arguments.push_i64(0);
                arguments.push_i64(1);
                assert!(matches!(
                    driver.call(&deposit, &mut arguments),
                    Outcome::Committed
                ));
            }
        };
        engine.drive(4, run).expect("there are worker slots");
        assert_eq!(number(&engine, "total", &[]), 4 * 2_000, "{protocol}");
    }
}

#[test]
fn accounts_come_and_go_under_every_protocol() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 0, 0);
        let open = engine.procedure("open").expect("it is there");
        let shut = engine.procedure("shut").expect("it is there");
        let run = |driver: &mut kiln_engine::Driver| {
            let mut random = Random::stream(3, driver.position() as u64);
            let mut arguments = Arguments::new();
            let (mut opened, mut taken) = (0, 0);
            for _ in 0..3_000 {
                arguments.clear();
                arguments.push_i64(random.between(0, 7));
                if random.percent(50.0) {
                    arguments.push_i64(1);
                    match driver.call(&open, &mut arguments) {
                        Outcome::Committed => opened += 1,
                        Outcome::Rejected(error) => {
                            assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION, "{error}");
                            taken += 1;
                        }
                        Outcome::Expired => panic!("there is no deadline"),
                    }
                } else {
                    assert!(matches!(
                        driver.call(&shut, &mut arguments),
                        Outcome::Committed
                    ));
                }
            }
            (opened, taken)
        };
        let counts = engine.drive(4, run).expect("there are worker slots");
        assert!(
            counts
                .iter()
                .all(|(opened, taken)| *opened > 0 && *taken > 0),
            "{counts:?}"
        );
        let left = number(&engine, "total", &[]);
        assert!((0..=8).contains(&left), "{protocol}: {left} accounts of 8");
    }
}

#[test]
fn the_protocol_changes_under_running_drivers() {
    let engine = bank(small(Protocol::Silo), ACCOUNTS, OPENING);
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _finished = SetOnDrop(&finished);
            let protocols: Vec<Protocol> = Protocol::serializable().collect();
            for protocol in (0..4).flat_map(|_| &protocols).copied() {
                engine.set_protocol(protocol).expect("calls are short");
                assert_eq!(engine.protocol(), protocol);
                thread::sleep(500_000);
            }
        });
        let run = |driver: &mut kiln_engine::Driver| {
            let mut refused = 0;
            while !finished.load(Ordering::Acquire) {
                refused += transfers(driver, &engine, 100);
            }
            // Counted over all the workers that the driver had.
            assert_eq!(driver.statistics().rejected, refused);
            assert!(refused > 0);
        };
        engine.drive(3, run).expect("there are worker slots");
    });
    assert_eq!(number(&engine, "total", &[]), ACCOUNTS * OPENING);
}

#[test]
fn a_driver_reports_bad_calls_and_goes_on() {
    let engine = bank(small(Protocol::Silo), 2, 100);
    let error = engine
        .procedure("nonsense")
        .expect_err("there is no such procedure");
    assert_eq!(error.state(), SqlState::UNDEFINED_FUNCTION);
    let deposit = engine.procedure("deposit").expect("it is there");
    let mut driver = engine.driver(0).expect("there is a worker slot");
    let rejected = |outcome: Outcome| match outcome {
        Outcome::Rejected(error) => error.state(),
        outcome => panic!("ended as {outcome:?}"),
    };
    let mut arguments = Arguments::new();
    assert_eq!(
        rejected(driver.call(&deposit, &mut arguments)),
        SqlState::UNDEFINED_FUNCTION
    );
    arguments.push_text("x");
    arguments.push_i64(1);
    let state = rejected(driver.call(&deposit, &mut arguments));
    assert_eq!(state, SqlState::INVALID_TEXT_REPRESENTATION);
    arguments.clear();
    arguments.push_i64(99);
    arguments.push_i64(1);
    assert_eq!(
        rejected(driver.call(&deposit, &mut arguments)),
        SqlState::NO_DATA_FOUND
    );
    arguments.clear();
    arguments.push_i64(1);
    arguments.push_text("5");
    // Bound twice: the second time what the first one converted.
    for expected in [105, 110] {
        assert!(matches!(
            driver.call(&deposit, &mut arguments),
            Outcome::Committed
        ));
        assert_eq!(
            driver.values(&deposit).expect("just called"),
            [[(expected as i64).into()]]
        );
    }
    let error = engine.drive(0, |_| ()).expect_err("no threads, no run");
    assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
    let error = engine
        .drive(1_000, |_| ())
        .expect_err("more threads than worker slots");
    assert_eq!(error.state(), SqlState::TOO_MANY_CONNECTIONS);
}
