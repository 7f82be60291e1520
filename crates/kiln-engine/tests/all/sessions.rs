//! Sessions: programs alone and in transaction blocks.

use std::time::Duration;

use crate::common::*;
use kiln_engine::{
    Arguments, BasisFactors, Call, Ended, Engine, Program, Protocol, Reply, Session,
};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::error::{Result, SqlState};

fn arguments(values: &[i64]) -> Arguments {
    let mut arguments = Arguments::new();
    values.iter().for_each(|value| arguments.push_i64(*value));
    arguments
}

fn run(session: &mut Session, program: &Arc<Program>, values: &[i64]) -> Result<Option<i64>> {
    let rows = session
        .run(program, &mut arguments(values))?
        .typed::<(i64,)>()?;
    Ok(rows.first().map(|row| row.0))
}

fn state<T: std::fmt::Debug>(result: Result<T>) -> SqlState {
    result.expect_err("an error is expected").state()
}

fn programs_of(engine: &Engine) -> (Arc<Program>, Arc<Program>) {
    let table = engine.table("account").expect("it is there");
    (Arc::new(deposit(&table)), Arc::new(total(&table)))
}

#[test]
fn blocks_commit_and_roll_back() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 2, 100);
        let (deposit, total) = programs_of(&engine);
        let mut session = engine.session().expect("there is a worker slot");
        assert_eq!(run(&mut session, &deposit, &[0, 1]), Ok(Some(101)));
        session.begin().expect("no block is open");
        assert_eq!(state(session.begin()), SqlState::ACTIVE_SQL_TRANSACTION);
        assert_eq!(run(&mut session, &deposit, &[0, 1]), Ok(Some(102)));
        assert_eq!(run(&mut session, &deposit, &[1, 1]), Ok(Some(101)));
        assert_eq!(
            run(&mut session, &total, &[]),
            Ok(Some(203)),
            "own writes are seen"
        );
        assert_eq!(session.commit(), Ok(Ended::Committed));
        assert_eq!(state(session.commit()), SqlState::NO_ACTIVE_SQL_TRANSACTION);
        assert_eq!(
            state(session.roll_back()),
            SqlState::NO_ACTIVE_SQL_TRANSACTION
        );
        session.begin().expect("no block is open");
        assert_eq!(run(&mut session, &deposit, &[0, 50]), Ok(Some(152)));
        session.roll_back().expect("a block is open");
        assert_eq!(run(&mut session, &total, &[]), Ok(Some(203)), "{protocol}");
        // A session that goes away takes its block with it.
        session.begin().expect("no block is open");
        assert_eq!(run(&mut session, &deposit, &[0, 50]), Ok(Some(152)));
        drop(session);
        assert_eq!(number(&engine, "total", &[]), 203, "{protocol}");
    }
}

#[test]
fn after_an_error_only_the_end_is_accepted() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 2, 100);
        let (deposit, total) = programs_of(&engine);
        let mut session = engine.session().expect("there is a worker slot");
        for end in [Session::commit, |session: &mut Session| {
            session.roll_back().map(|()| Ended::RolledBack)
        }] {
            session.begin().expect("no block is open");
            assert_eq!(run(&mut session, &deposit, &[0, 7]), Ok(Some(107)));
            assert_eq!(
                state(run(&mut session, &deposit, &[9, 1])),
                SqlState::NO_DATA_FOUND
            );
            assert!(session.has_failed());
            // Others go on: the failed block holds nothing.
            assert_eq!(number(&engine, "deposit", &[1, 0]), 100);
            let failed = SqlState::IN_FAILED_SQL_TRANSACTION;
            assert_eq!(state(run(&mut session, &total, &[])), failed);
            assert_eq!(end(&mut session), Ok(Ended::RolledBack));
            assert!(!session.in_transaction());
        }
        // An error of the layer above fails the block too.
        session.begin().expect("no block is open");
        session.fail();
        assert_eq!(session.commit(), Ok(Ended::RolledBack));
        session.begin().expect("no block is open");
        let refused = session.run_with(
            |_, _| Err(kiln_storage::error::Error::division_by_zero()),
            &mut Arguments::new(),
        );
        assert_eq!(state(refused), SqlState::DIVISION_BY_ZERO);
        assert!(session.has_failed());
        session.roll_back().expect("the block waits for its end");
        assert_eq!(number(&engine, "total", &[]), 200, "{protocol}");
    }
}

#[test]
fn a_conflict_in_a_block_is_told() {
    for protocol in Protocol::serializable().filter(|protocol| !protocol.is_single_worker()) {
        let engine = bank(small(protocol), 1, 0);
        let (deposit, total) = programs_of(&engine);
        let mut one = engine.session().expect("there is a worker slot");
        let mut two = engine.session().expect("there is a worker slot");
        one.begin().expect("no block is open");
        two.begin().expect("no block is open");
        let attempt = |session: &mut Session| {
            run(session, &total, &[])?;
            run(session, &deposit, &[0, 1])
        };
        let results = [attempt(&mut one), attempt(&mut two)];
        let ends = [one.commit(), two.commit()];
        let committed = ends
            .iter()
            .filter(|end| **end == Ok(Ended::Committed))
            .count();
        assert!(committed <= 1, "{protocol}: both read 0 and wrote 1");
        let conflicts = results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .chain(ends.iter().filter_map(|end| end.as_ref().err()));
        let mut told = 0;
        for error in conflicts {
            assert_eq!(
                error.state(),
                SqlState::SERIALIZATION_FAILURE,
                "{protocol}: {error}"
            );
            told += 1;
        }
        assert!(told >= 1, "{protocol}");
        assert_eq!(
            number(&engine, "total", &[]),
            committed as i64,
            "{protocol}"
        );
    }
}

#[test]
fn sessions_on_many_threads_lose_nothing() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 1, 0);
        let (deposit, _) = programs_of(&engine);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut session = engine.session().expect("there is a worker slot");
                    for round in 0..200 {
                        if round % 2 == 0 {
                            run(&mut session, &deposit, &[0, 1]).expect("repeated until it ends");
                            continue;
                        }
                        loop {
                            session.begin().expect("no block is open");
                            let result = run(&mut session, &deposit, &[0, 1]);
                            let end = session.commit();
                            if result.is_ok() && end == Ok(Ended::Committed) {
                                break;
                            }
                            let error = result.err().or(end.err()).expect("one of them failed");
                            assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
                        }
                    }
                });
            }
        });
        assert_eq!(number(&engine, "total", &[]), 4 * 200, "{protocol}");
    }
}

#[test]
fn sessions_are_bounded() {
    let engine = bank(small(Protocol::Silo).sessions_max(3), 1, 0);
    let mut sessions: Vec<Session> = (0..3)
        .map(|_| engine.session().expect("there is room"))
        .collect();
    assert_eq!(engine.sessions_open(), 3);
    assert_eq!(
        engine.session().err().expect("all are open").state(),
        SqlState::TOO_MANY_CONNECTIONS
    );
    sessions.pop();
    assert!(engine.session().is_ok());
    assert_eq!(engine.sessions_open(), 2);
}

#[test]
fn many_sessions_share_few_slots() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol).session_slots(2), 1, 0);
        let (deposit, total) = programs_of(&engine);
        let mut sessions: Vec<Session> = (0..300)
            .map(|_| engine.session().expect("sessions are no workers"))
            .collect();
        for session in &mut sessions {
            run(session, &deposit, &[0, 1]).expect("a slot is free");
        }
        // A block without a statement has no slot either.
        for session in &mut sessions {
            session.begin().expect("no block is open");
        }
        assert_eq!(run(&mut sessions[7], &total, &[]), Ok(Some(300)));
        for session in &mut sessions {
            assert_eq!(session.commit(), Ok(Ended::Committed), "{protocol}");
        }
    }
}

#[test]
fn a_statement_waits_for_a_slot_and_is_told_who_has_it() {
    let options = small(Protocol::Silo).session_slots(2).slot_wait_ms(60);
    let engine = bank(options, 1, 0);
    let (_, total) = programs_of(&engine);
    let mut holders = [(); 2].map(|()| engine.session().expect("there is room"));
    for holder in &mut holders {
        holder.begin().expect("no block is open");
        assert_eq!(run(holder, &total, &[]), Ok(Some(0)));
        thread::sleep(5_000_000);
    }
    let mut third = engine.session().expect("there is room");
    let start = time::now_ns();
    let error = run(&mut third, &total, &[]).expect_err("both slots are used");
    assert!(time::now_ns() - start >= 60_000_000);
    assert_eq!(error.state(), SqlState::TOO_MANY_CONNECTIONS);
    let owner = format!("Session {} has idled longest", holders[0].number());
    assert!(
        error
            .detail()
            .is_some_and(|detail| detail.starts_with(&owner)),
        "{error:?}"
    );
    let error = engine.transaction(|_| Ok(())).expect_err("it needs a slot");
    assert_eq!(error.state(), SqlState::TOO_MANY_CONNECTIONS);
    // In a block it is an error like any other.
    third.begin().expect("no block is open");
    assert_eq!(
        state(run(&mut third, &total, &[])),
        SqlState::TOO_MANY_CONNECTIONS
    );
    assert!(third.has_failed());
    third.roll_back().expect("a block is open");
    // A statement timeout that ends earlier ends the wait.
    third.set_statement_timeout(Some(Duration::from_millis(10)));
    assert_eq!(
        state(run(&mut third, &total, &[])),
        SqlState::QUERY_CANCELED
    );
    third.set_statement_timeout(None);
    // Those that wait get the slot in their order.
    let [first, second] = holders;
    let order = kiln_platform::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..3 {
            let (engine, total, order) = (&engine, &total, &order);
            scope.spawn(move || {
                let mut session = engine.session().expect("there is room");
                // While it has the slot: afterwards the next one may be faster.
                let compile = |_: &Arc<kiln_engine::Catalog>, _: &mut Arguments| {
                    kiln_platform::sync::lock(order).push(number);
                    Ok(total.clone())
                };
                let rows = session.run_with(compile, &mut Arguments::new());
                assert!(rows.is_ok(), "{rows:?}");
            });
            thread::sleep(10_000_000);
        }
        drop(first);
    });
    assert_eq!(*kiln_platform::sync::lock(&order), [0, 1, 2]);
    drop(second);
    assert_eq!(run(&mut third, &total, &[]), Ok(Some(0)));
}

#[test]
fn closing_ends_the_wait_for_a_slot() {
    let engine = bank(small(Protocol::Silo).session_slots(1), 1, 0);
    let (_, total) = programs_of(&engine);
    let mut holder = engine.session().expect("there is room");
    holder.begin().expect("no block is open");
    assert_eq!(run(&mut holder, &total, &[]), Ok(Some(0)));
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut session = engine.session().expect("there is room");
            run(&mut session, &total, &[])
        });
        thread::sleep(30_000_000);
        engine.close();
        let waited = waits.join().expect("no panic");
        assert_eq!(state(waited), SqlState::ADMIN_SHUTDOWN);
    });
}

#[test]
fn a_block_that_idles_too_long_is_rolled_back() {
    // All at once, as most of the time nothing happens.
    thread::scope(|scope| {
        for protocol in Protocol::serializable() {
            scope.spawn(move || rolls_idle_blocks_back(protocol));
        }
    });
}

fn rolls_idle_blocks_back(protocol: Protocol) {
    const LIMIT_MS: u64 = 150;
    let options = small(protocol).idle_in_transaction_ms(LIMIT_MS);
    let options = options.ddl_wait_ms(20);
    let engine = bank(options, 1, 0);
    let (deposit, total) = programs_of(&engine);
    let mut session = engine.session().expect("there is a worker slot");
    session.begin().expect("no block is open");
    let before = time::now_ns();
    assert_eq!(run(&mut session, &deposit, &[0, 5]), Ok(Some(5)));
    // Meanwhile it keeps its table from changing. It would not change without its procedures
    // anyway.
    let change = || {
        let changed = engine.change_catalog(|change| change.truncate_table("account"));
        changed.map(drop).expect_err("procedures use it").state()
    };
    let start = time::now_ns();
    while change() == SqlState::LOCK_NOT_AVAILABLE {
        assert!(
            time::now_ns() - start < 10_000_000_000,
            "{protocol}: still not rolled back"
        );
    }
    let idled_ms = (time::now_ns() - before) / 1_000_000;
    assert!(idled_ms >= LIMIT_MS, "{protocol}: {idled_ms} ms");
    assert_eq!(change(), SqlState::DEPENDENT_OBJECTS_STILL_EXIST);
    assert_eq!(number(&engine, "total", &[]), 0, "{protocol}");
    let told = run(&mut session, &total, &[]).expect_err("it is told");
    assert_eq!(told.state().as_str(), "25P03");
    assert_eq!(
        state(run(&mut session, &total, &[])),
        SqlState::IN_FAILED_SQL_TRANSACTION
    );
    session.roll_back().expect("the block waits for its end");
    assert_eq!(run(&mut session, &total, &[]), Ok(Some(0)));
    // A commit that comes too late must not look like one.
    session.begin().expect("no block is open");
    assert_eq!(run(&mut session, &deposit, &[0, 5]), Ok(Some(5)));
    thread::sleep(600_000_000);
    assert_eq!(
        session.commit().expect_err("it is told").state().as_str(),
        "25P03"
    );
    assert_eq!(run(&mut session, &total, &[]), Ok(Some(0)));
}

#[test]
fn a_call_waits_for_a_block_until_its_deadline_at_most() {
    thread::scope(|scope| {
        for protocol in Protocol::serializable().filter(|protocol| !protocol.is_single_worker()) {
            scope.spawn(move || waits_for_a_block(protocol));
        }
    });
}

fn waits_for_a_block(protocol: Protocol) {
    let engine = bank(small(protocol), 2, 0);
    let (deposit, _) = programs_of(&engine);
    let mut session = engine.session().expect("there is a worker slot");
    session.begin().expect("no block is open");
    assert_eq!(run(&mut session, &deposit, &[0, 5]), Ok(Some(5)));
    let start = time::now_ns();
    let deposit = |account: i64| {
        let call = Call::new("deposit", (account, 1_i64)).deadline(Duration::from_millis(100));
        engine.submit(call).expect("there is room")
    };
    let tickets: Vec<_> = [0, 1, 0].map(deposit).into();
    let mut deposited = 0;
    for ticket in tickets {
        match ticket.wait().expect("it was looked at") {
            // Writes of blocks may be hidden until they commit.
            Reply::Committed(_) => deposited += 1,
            reply => assert_eq!(reply, Reply::Expired, "{protocol}"),
        }
    }
    let passed_ms = (time::now_ns() - start) / 1_000_000;
    assert!(passed_ms < 5_000, "{protocol}: after {passed_ms} ms");
    if session.commit().is_ok() {
        deposited += 5;
    }
    assert_eq!(number(&engine, "total", &[]), deposited, "{protocol}");
    let reply = engine.call("deposit", (0_i64, 1_i64));
    assert!(reply.expect("it runs").is_committed(), "{protocol}");
}

#[test]
fn a_statement_timeout_ends_a_loop() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let mut session = engine.session().expect("there is a worker slot");
    session.set_statement_timeout(Some(Duration::from_millis(50)));
    let spin = Arc::new(spin());
    assert_eq!(
        state(run(&mut session, &spin, &[i64::MAX])),
        SqlState::QUERY_CANCELED
    );
    assert_eq!(run(&mut session, &spin, &[10]), Ok(Some(10)));
}

#[test]
fn closing_interrupts_a_block() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let (deposit, _) = programs_of(&engine);
    let mut session = engine.session().expect("there is a worker slot");
    session.begin().expect("no block is open");
    assert_eq!(run(&mut session, &deposit, &[0, 5]), Ok(Some(5)));
    engine.close();
    assert_eq!(
        state(run(&mut session, &deposit, &[0, 5])),
        SqlState::ADMIN_SHUTDOWN
    );
    assert_eq!(session.commit(), Ok(Ended::RolledBack));
    assert_eq!(
        state(run(&mut session, &deposit, &[0, 5])),
        SqlState::ADMIN_SHUTDOWN
    );
    assert_eq!(state(session.begin()), SqlState::ADMIN_SHUTDOWN);
}

#[test]
fn rows_are_those_of_the_call_where_batches_are_full_and_turns_end() {
    let sessions = 12;
    let mut options = small(Protocol::Strife);
    let mut factors = BasisFactors::default();
    factors.protocols.batches.size = 1;
    options = options.basis_factors(factors);
    let engine = bank(options, sessions, 100);
    let (deposit, _) = programs_of(&engine);
    thread::scope(|scope| {
        for number in 0..sessions {
            let (engine, deposit) = (&engine, &deposit);
            scope.spawn(move || {
                let mut session = engine.session().expect("there is a worker slot");
                let first = number * 1_000_000;
                let mut balance = 100 + first;
                let outcome = run(&mut session, deposit, &[number, first]);
                assert_eq!(outcome, Ok(Some(balance)));
                for _ in 0..2_000 {
                    balance += 1;
                    let outcome = run(&mut session, deposit, &[number, 1]);
                    assert_eq!(outcome, Ok(Some(balance)), "session {number}");
                }
            });
        }
    });
}
