//! Transactions written as closures.

use std::time::Duration;

use crate::common::*;
use kiln_engine::{Arguments, Engine, Protocol, ScanRange, Transaction};
use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::thread;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::Value;

/// Moves money as an application would.
fn transfer_by_hand(
    transaction: &mut Transaction<'_>,
    source: i64,
    target: i64,
    amount: i64,
) -> Result<()> {
    let balance = |transaction: &mut Transaction<'_>, id: i64| -> Result<i64> {
        let row = transaction.get("account", (id,))?;
        row.ok_or_else(|| Error::new(SqlState::NO_DATA_FOUND, "no such account"))?
            .get("balance")
    };
    let rest = balance(transaction, source)? - amount;
    assert!(transaction.update("account", (source,), &[("balance", rest.into())])?);
    let sum = balance(transaction, target)? + amount;
    assert!(transaction.update("account", (target,), &[("balance", sum.into())])?);
    if rest < 0 {
        return Err(Error::new(SqlState::CHECK_VIOLATION, "insufficient funds"));
    }
    Ok(())
}

#[test]
fn money_is_conserved_by_closures_under_every_protocol() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 5, 100);
        thread::scope(|scope| {
            for thread in 0..4_i64 {
                let engine = &engine;
                scope.spawn(move || {
                    let mut refused = 0;
                    for round in 0..300_i64 {
                        let (source, target) = ((thread + round) % 5, (round * 3) % 5);
                        let result = engine.transaction(|transaction| {
                            transfer_by_hand(transaction, source, target, 40)
                        });
                        if let Err(error) = result {
                            assert_eq!(error.state(), SqlState::CHECK_VIOLATION, "{error}");
                            refused += 1;
                        }
                    }
                    refused
                });
            }
        });
        assert_eq!(number(&engine, "total", &[]), 500, "{protocol}");
    }
}

/// Under protocols whose lock of a hot row is hardly ever free.
#[test]
fn a_closure_gets_through_among_calls() {
    for protocol in [
        Protocol::Vll,
        Protocol::VllSca,
        Protocol::VllArrayed,
        Protocol::Vllr,
        Protocol::VllrSca,
        Protocol::RangeMap,
        Protocol::RangeHierarchical,
        Protocol::Strife,
    ] {
        let engine = bank(small(protocol), 1, 0);
        let deposit = engine.procedure("deposit").expect("it is there");
        let done = AtomicBool::new(false);
        let calls = AtomicU64::new(0);
        thread::scope(|scope| {
            for position in 0..3 {
                let (engine, deposit, done, calls) = (&engine, &deposit, &done, &calls);
                scope.spawn(move || {
                    let mut driver = engine.driver(position).expect("there is a worker slot");
                    let mut arguments = Arguments::new();
                    while !done.load(Ordering::Relaxed) {
                        arguments.clear();
                        arguments.push_i64(0);
                        arguments.push_i64(1);
                        driver.call(deposit, &mut arguments);
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..100 {
                let result = engine.transaction(|transaction| {
                    let row = transaction.get("account", (0_i64,))?.expect("it is there");
                    let balance: i64 = row.get("balance")?;
                    transaction.update("account", (0_i64,), &[("balance", (balance + 1).into())])
                });
                assert!(result.expect("it gets through"));
            }
            done.store(true, Ordering::Relaxed);
        });
        let made = calls.load(Ordering::Relaxed) as i64;
        assert_eq!(number(&engine, "total", &[]), made + 100, "{protocol}");
    }
}

#[test]
fn a_closure_runs_again_after_a_conflict() {
    for protocol in Protocol::serializable().filter(|protocol| !protocol.is_single_worker()) {
        let engine = bank(small(protocol), 1, 0);
        let (mut attempts, mut other_committed) = (0, false);
        let result = engine.transaction(|transaction| {
            attempts += 1;
            let row = transaction.get("account", (0_i64,))?.expect("it is there");
            let balance: i64 = row.get("balance")?;
            if attempts == 1 {
                // Another transaction writes between our read and our write. Under locking it is
                // the other one that fails, so this one must give up by itself.
                let other = engine.transaction_within(Duration::from_millis(50), |other| {
                    other.update("account", (0_i64,), &[("balance", 10_i64.into())])
                });
                match other {
                    Err(error) => assert_eq!(error.state(), SqlState::QUERY_CANCELED),
                    Ok(found) => other_committed = found,
                }
            }
            transaction.update("account", (0_i64,), &[("balance", (balance + 1).into())])?;
            Ok(balance)
        });
        let (before, expected) = match other_committed {
            true => (10, 2),
            false => (0, 1),
        };
        assert_eq!(result, Ok(before), "{protocol}");
        assert_eq!(attempts, expected, "{protocol}");
        assert_eq!(number(&engine, "total", &[]), before + 1, "{protocol}");
    }
}

#[test]
fn an_error_undoes_everything_and_cannot_be_hidden() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 2, 100);
        let result: Result<()> = engine.transaction(|transaction| {
            transaction.insert("account", (7_i64, "new", 1_i64))?;
            Err(Error::division_by_zero())
        });
        assert_eq!(
            result.expect_err("it gave up").state(),
            SqlState::DIVISION_BY_ZERO
        );
        let result = engine.transaction(|transaction| {
            transaction.update("account", (0_i64,), &[("balance", 0_i64.into())])?;
            let swallowed = transaction.insert("account", (1_i64, "taken", 1_i64));
            assert_eq!(
                swallowed.expect_err("it is there").state(),
                SqlState::UNIQUE_VIOLATION
            );
            let later = transaction
                .get("account", (0_i64,))
                .expect_err("the transaction failed");
            assert_eq!(later.state(), SqlState::IN_FAILED_SQL_TRANSACTION);
            Ok(())
        });
        let error = result.expect_err("a failed transaction does not commit");
        assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
        assert_eq!(number(&engine, "total", &[]), 200, "{protocol}");
        // A panic in the closure undoes the transaction as well, and the database goes on.
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            engine.transaction(|transaction| -> Result<()> {
                transaction.update("account", (0_i64,), &[("balance", 0_i64.into())])?;
                panic!("on purpose");
            })
        }));
        assert!(caught.is_err());
        assert_eq!(number(&engine, "total", &[]), 200, "{protocol}");
        engine
            .change_catalog(|_| Ok(()))
            .expect("no transaction is left open");
    }
}

#[test]
fn rows_are_found_written_and_removed() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 10, 5);
        let work = engine.transaction(|transaction| {
            assert!(transaction.get("account", (77_i64,))?.is_none());
            assert!(!transaction.update("account", (77_i64,), &[("balance", 1_i64.into())])?);
            assert!(!transaction.delete("account", (77_i64,))?);
            assert!(transaction.insert_if_absent("account", (77_i64, "late", 8_i64))?);
            assert!(!transaction.insert_if_absent("account", (77_i64, "later", 9_i64))?);
            assert!(transaction.delete("account", (3_i64,))?);
            transaction.insert("account", (3_i64, "again", 6_i64))?;
            let row = transaction
                .get("account", (77_i64,))?
                .expect("just inserted");
            assert_eq!(
                row.typed::<(i64, String, i64)>()?,
                (77, "late".to_owned(), 8)
            );
            let deposit = transaction.call("deposit", (77_i64, 2_i64))?;
            assert_eq!(deposit.values(), [[Value::BigInt(10)]]);
            Ok(())
        });
        assert_eq!(work, Ok(()), "{protocol}");
        assert_eq!(number(&engine, "total", &[]), 9 * 5 + 6 + 10, "{protocol}");
    }
}

#[test]
fn scans_keep_to_their_range() {
    let engine = bank(small(Protocol::Silo), 20, 5);
    let ids = |range: &ScanRange| -> Vec<i64> {
        let rows = engine.transaction(|transaction| transaction.scan("account", None, range));
        let rows = rows.expect("it runs");
        rows.iter()
            .map(|row| row.get("id").expect("BIGINT"))
            .collect()
    };
    assert_eq!(ids(&ScanRange::all()), (0..20).collect::<Vec<_>>());
    assert_eq!(ids(&ScanRange::all().from(3_i64).to(5_i64)), [3, 4, 5]);
    assert_eq!(ids(&ScanRange::all().after(3_i64).before(5_i64)), [4]);
    assert_eq!(ids(&ScanRange::all().reverse().limit(2)), [19, 18]);
    assert_eq!(
        ids(&ScanRange::all().reverse().before(5_i64).limit(3)),
        [4, 3, 2]
    );
    assert_eq!(ids(&ScanRange::prefix((7_i64,))), [7]);
    assert_eq!(ids(&ScanRange::all().limit(0)), [0_i64; 0]);
    assert_eq!(ids(&ScanRange::all().after(19_i64)), [0_i64; 0]);
}

#[test]
fn mistakes_are_told_by_their_state() {
    let engine = bank(small(Protocol::Silo), 2, 5);
    let state = |body: &dyn Fn(&mut Transaction<'_>) -> Result<()>| {
        engine
            .transaction(|transaction| body(transaction))
            .expect_err("a mistake")
            .state()
    };
    type Mistake = (SqlState, Box<dyn Fn(&mut Transaction<'_>) -> Result<()>>);
    let mistakes: [Mistake; 9] = [
        (
            SqlState::UNDEFINED_TABLE,
            Box::new(|t| t.get("nonsense", (1_i64,)).map(drop)),
        ),
        (
            SqlState::INVALID_COLUMN_REFERENCE,
            Box::new(|t| t.get("account", ()).map(drop)),
        ),
        (
            SqlState::UNDEFINED_COLUMN,
            Box::new(|t| {
                t.update("account", (1_i64,), &[("x", Value::Null)])
                    .map(drop)
            }),
        ),
        (
            SqlState::NOT_NULL_VIOLATION,
            Box::new(|t| {
                t.update("account", (1_i64,), &[("owner", Value::Null)])
                    .map(drop)
            }),
        ),
        (
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            Box::new(|t| t.insert("account", (9_i64, "x".repeat(21), 0_i64))),
        ),
        (
            SqlState::DATATYPE_MISMATCH,
            Box::new(|t| t.insert("account", (9_i64, "x", true))),
        ),
        (
            SqlState::INVALID_COLUMN_REFERENCE,
            Box::new(|t| t.insert("account", (9_i64,))),
        ),
        (
            SqlState::UNDEFINED_OBJECT,
            Box::new(|t| t.scan("account", Some("x"), &ScanRange::all()).map(drop)),
        ),
        (
            SqlState::UNDEFINED_FUNCTION,
            Box::new(|t| t.call("nonsense", ()).map(drop)),
        ),
    ];
    for (expected, mistake) in &mistakes {
        assert_eq!(state(mistake.as_ref()), *expected);
    }
    assert_eq!(number(&engine, "total", &[]), 10);
}

#[test]
fn constraints_that_the_engine_cannot_check_are_not_passed_by() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let created = engine.change_catalog(|change| {
        let mut schema = account_schema("checked");
        schema.checks.push(kiln_storage::schema::Check {
            name: "checked_balance_check".to_owned(),
            expression: "balance >= 0".to_owned(),
            is_valid: true,
        });
        change.create_table(schema, 0, Vec::new())
    });
    created.expect("the name is free");
    let insert = |engine: &Engine| {
        engine.transaction(|transaction| transaction.insert("checked", (1_i64, "x", -1_i64)))
    };
    let error = insert(&engine).expect_err("no program checks the row");
    assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
    assert!(
        engine
            .transaction(|t| t.get("checked", (1_i64,)))
            .expect("reading is fine")
            .is_none()
    );
}

#[test]
fn a_transaction_ends_with_its_time() {
    let engine = bank(small(Protocol::TwoPhaseLockingNoWait), 1, 0);
    let result = engine.transaction(|transaction| {
        transaction.update("account", (0_i64,), &[("balance", 1_i64.into())])?;
        let other = engine.transaction_within(Duration::from_millis(20), |other| {
            other.get("account", (0_i64,))
        });
        assert_eq!(
            other.expect_err("it is locked").state(),
            SqlState::QUERY_CANCELED
        );
        Ok(())
    });
    assert_eq!(result, Ok(()));
}
