//! Calls through the inboxes: outcomes, deadlines, overload, idempotency, and the end of the
//! database.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::common::*;
use kiln_engine::{Call, Engine, IdempotencyKey, Options, Protocol, Reply, SubmitError};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::error::SqlState;
use kiln_storage::types::Value;

/// A loop that no test waits for.
const FOREVER: i64 = i64::MAX;

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).expect("a short key")
}

#[test]
fn calls_commit_or_are_rejected_and_bad_ones_are_refused() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 2, 100);
        let reply = engine.call("deposit", (0_i64, 5_i64)).expect("it runs");
        let Reply::Committed(rows) = reply else {
            panic!("ended as {reply:?}")
        };
        assert_eq!(rows.columns()[0].0, "value");
        assert_eq!(rows.values(), [[Value::BigInt(105)]]);
        let reply = engine
            .call("transfer", (0_i64, 1_i64, 500_i64))
            .expect("it runs");
        let Reply::Rejected(error) = reply else {
            panic!("ended as {reply:?}")
        };
        assert_eq!(error.state(), SqlState::CHECK_VIOLATION);
        assert_eq!(
            number(&engine, "total", &[]),
            205,
            "the rejected call left nothing"
        );
        for (procedure, arguments, state) in [
            ("nonsense", vec![], SqlState::UNDEFINED_FUNCTION),
            (
                "deposit",
                vec![Value::BigInt(1)],
                SqlState::UNDEFINED_FUNCTION,
            ),
            (
                "deposit",
                vec!["x".into(), "1".into()],
                SqlState::INVALID_TEXT_REPRESENTATION,
            ),
            (
                "deposit",
                vec![true.into(), 1_i64.into()],
                SqlState::DATATYPE_MISMATCH,
            ),
        ] {
            let error = engine
                .call(procedure, arguments)
                .expect_err("it is refused");
            assert_eq!(error.state(), state, "{error}");
        }
    }
}

#[test]
fn many_callers_lose_no_call() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol).inbox_capacity(4), 1, 0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let reply = engine.call("deposit", (0_i64, 1_i64)).expect("it runs");
                        assert!(reply.is_committed());
                    }
                });
            }
        });
        assert_eq!(number(&engine, "total", &[]), 8 * 200, "{protocol}");
    }
}

#[test]
fn a_deadline_ends_a_long_loop_and_a_long_wait() {
    let engine = bank(Options::new().workers(1).pin_workers(false), 1, 0);
    let call =
        |milliseconds| Call::new("spin", (FOREVER,)).deadline(Duration::from_millis(milliseconds));
    let start = time::now_ns();
    let mut long = engine.submit(call(200)).expect("there is room");
    // This one waits behind the loop until its own deadline has passed, and does not run.
    let behind = Call::new("deposit", (0_i64, 1_i64)).deadline(Duration::from_millis(20));
    let behind = engine.submit(behind).expect("there is room");
    assert!(long.try_wait().is_none());
    assert_eq!(long.wait().expect("it ran"), Reply::Expired);
    assert_eq!(behind.wait().expect("it was looked at"), Reply::Expired);
    let passed_ms = (time::now_ns() - start) / 1_000_000;
    assert!((200..5_000).contains(&passed_ms), "after {passed_ms} ms");
    assert_eq!(number(&engine, "total", &[]), 0);
    assert_eq!(
        number(&engine, "spin", &[1_000]),
        1_000,
        "the worker goes on"
    );
}

#[test]
fn a_full_inbox_refuses_or_lets_wait() {
    let engine = bank(
        Options::new()
            .workers(1)
            .pin_workers(false)
            .inbox_capacity(3),
        1,
        0,
    );
    let busy = Call::new("spin", (FOREVER,)).deadline(Duration::from_millis(300));
    let busy = engine.submit(busy).expect("there is room");
    let mut tickets = Vec::new();
    let refused = loop {
        assert!(tickets.len() <= 4, "three wait and one may run");
        match engine.submit(Call::new("deposit", (0_i64, 1_i64))) {
            Ok(ticket) => tickets.push(ticket),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, SubmitError::Overloaded);
    let error = kiln_storage::error::Error::from(refused);
    assert_eq!(error.state(), SqlState::CONFIGURATION_LIMIT_EXCEEDED);
    // A call waits for room, but not beyond its deadline.
    let call = Call::new("deposit", (0_i64, 1_i64)).deadline(Duration::from_millis(10));
    assert_eq!(
        engine.execute(call).expect("nothing is wrong"),
        Reply::Expired
    );
    let reply = engine
        .call("deposit", (0_i64, 1_i64))
        .expect("it waits and runs");
    assert!(reply.is_committed());
    assert_eq!(busy.wait().expect("it ran"), Reply::Expired);
    let accepted = tickets.len() as i64;
    for ticket in tickets {
        assert!(ticket.wait().expect("it ran").is_committed());
    }
    assert_eq!(number(&engine, "total", &[]), accepted + 1);
}

#[test]
fn a_key_is_good_for_one_call() {
    let engine = bank(small(Protocol::Silo).idempotency_capacity(2), 2, 100);
    let deposit = |id: i64, amount: i64, name: &str| {
        Call::new("deposit", (id, amount)).idempotency_key(key(name))
    };
    let first = engine.execute(deposit(0, 5, "a")).expect("it runs");
    let second = engine.execute(deposit(0, 5, "a")).expect("it is known");
    assert_eq!(first, second);
    assert_eq!(
        number(&engine, "total", &[]),
        205,
        "the second one did not run"
    );
    for other in [
        deposit(0, 6, "a"),
        Call::new("shut", (0_i64,)).idempotency_key(key("a")),
    ] {
        let error = engine
            .execute(other)
            .expect_err("the key belongs to another call");
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE, "{error}");
    }
    // A rejection is an outcome.
    let refused = || Call::new("transfer", (0_i64, 1_i64, 500_i64)).idempotency_key(key("b"));
    let first = engine.execute(refused()).expect("it runs");
    assert!(matches!(first, Reply::Rejected(_)), "{first:?}");
    assert!(
        engine
            .call("deposit", (0_i64, 1_000_i64))
            .expect("it runs")
            .is_committed()
    );
    assert_eq!(engine.execute(refused()).expect("it is known"), first);
    // With two outcomes kept, a third one pushes the oldest out.
    assert!(
        engine
            .execute(deposit(1, 1, "c"))
            .expect("it runs")
            .is_committed()
    );
    let before = number(&engine, "total", &[]);
    assert!(
        engine
            .execute(deposit(0, 5, "a"))
            .expect("it runs anew")
            .is_committed()
    );
    assert_eq!(number(&engine, "total", &[]), before + 5);
    assert!(IdempotencyKey::new("").is_err());
    assert!(IdempotencyKey::new("x".repeat(129)).is_err());
}

#[test]
fn a_repeated_call_waits_for_the_first() {
    let engine = bank(Options::new().workers(2).pin_workers(false), 1, 0);
    let call = || Call::new("spin", (3_000_000_i64,)).idempotency_key(key("once"));
    let first = engine.submit(call()).expect("there is room");
    let again: Vec<_> = (0..3)
        .map(|_| engine.submit(call()).expect("there is room"))
        .collect();
    let first = first.wait().expect("it ran");
    assert!(first.is_committed());
    for ticket in again {
        assert_eq!(ticket.wait().expect("it ran"), first);
    }
    // One that expired left nothing, so its key is free.
    let expiring = Call::new("spin", (FOREVER,))
        .deadline(Duration::from_millis(20))
        .idempotency_key(key("expires"));
    assert_eq!(engine.execute(expiring).expect("it ran"), Reply::Expired);
    let other = Call::new("deposit", (0_i64, 1_i64)).idempotency_key(key("expires"));
    assert!(engine.execute(other).expect("it runs").is_committed());
}

#[test]
fn keys_are_forgotten_with_age() {
    let engine = bank(small(Protocol::Silo).idempotency_age_s(0), 1, 0);
    let call = || Call::new("deposit", (0_i64, 1_i64)).idempotency_key(key("a"));
    for expected in [1, 2] {
        assert!(engine.execute(call()).expect("it runs").is_committed());
        thread::sleep(1_000_000);
        assert_eq!(number(&engine, "total", &[]), expected);
    }
    let engine = bank(small(Protocol::Silo).idempotency_capacity(0), 1, 0);
    let error = engine.execute(call()).expect_err("keys are refused");
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_ticket_is_a_future() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let mut ticket = engine
        .submit(Call::new("spin", (2_000_000_i64,)))
        .expect("there is room");
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut pending = 0;
    let reply = loop {
        match Pin::new(&mut ticket).poll(&mut context) {
            Poll::Ready(result) => break result.expect("it ran"),
            Poll::Pending => {
                pending += 1;
                thread::park();
            }
        }
    };
    assert!(reply.is_committed());
    assert!(pending > 0, "two million turns take longer than one poll");
}

#[test]
fn closing_finishes_what_was_accepted() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 1, 0);
        let mut driver = engine.driver(0).expect("there is a worker slot");
        let deposit = engine.procedure("deposit").expect("it is there");
        let table = engine.table("account").expect("it is there");
        let tickets: Vec<_> = (0..500)
            .map(|_| {
                engine
                    .submit(Call::new("deposit", (0_i64, 1_i64)))
                    .expect("there is room")
            })
            .collect();
        engine.close();
        for mut ticket in tickets {
            let result = ticket.try_wait().expect("closing waits for the calls");
            assert!(result.result.expect("it ran").is_committed());
        }
        let mut heap = kiln_storage::slot::Heap::new();
        table.indexes()[0].for_each(|record| {
            let balance = table.column_value(BALANCE, table.row(record), &mut heap);
            assert_eq!(balance.as_i64(), 500);
        });
        // Afterwards everything is refused, by one error.
        let closed = SqlState::ADMIN_SHUTDOWN;
        let error = engine
            .call("deposit", (0_i64, 1_i64))
            .expect_err("it is closed");
        assert_eq!(error.state(), closed);
        assert_eq!(
            engine.session().err().expect("it is closed").state(),
            closed
        );
        let error = engine.change_catalog(|_| Ok(())).expect_err("it is closed");
        assert_eq!(error.state(), closed);
        let error = engine.transaction(|_| Ok(())).expect_err("it is closed");
        assert_eq!(error.state(), closed);
        let mut arguments = kiln_engine::Arguments::new();
        match driver.call(&deposit, &mut arguments) {
            kiln_engine::Outcome::Rejected(error) => assert_eq!(error.state(), closed),
            outcome => panic!("ended as {outcome:?}"),
        }
        engine.close();
    }
}

#[test]
fn callers_that_wait_for_room_hear_of_the_end() {
    let engine = bank(
        Options::new()
            .workers(1)
            .pin_workers(false)
            .inbox_capacity(1),
        1,
        0,
    );
    let busy = Call::new("spin", (FOREVER,)).deadline(Duration::from_millis(100));
    let busy = engine.submit(busy).expect("there is room");
    let mut ended = 0;
    thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| engine.call("deposit", (0_i64, 1_i64))))
            .collect();
        thread::sleep(30_000_000);
        engine.close();
        for caller in callers {
            match caller.join().expect("no panic") {
                Ok(reply) => {
                    assert!(reply.is_committed(), "{reply:?}");
                    ended += 1;
                }
                Err(error) => assert_eq!(error.state(), SqlState::ADMIN_SHUTDOWN),
            }
        }
    });
    assert_eq!(busy.wait().expect("it ran"), Reply::Expired);
    assert!(ended <= 2, "at most those that were in the inbox ran");
}

#[test]
fn protocols_that_do_not_serialize_are_refused_unless_they_are_allowed() {
    let unsafe_ones = || Protocol::ALL.into_iter().filter(|it| !it.is_serializable());
    assert!(unsafe_ones().count() > 0);
    let engine = Engine::open(Options::new().workers(1)).expect("the defaults are allowed");
    let before = engine.protocol();
    for protocol in unsafe_ones() {
        let options = Options::new().workers(1).protocol(protocol);
        let refused = Engine::open(options.clone()).expect_err("it is refused");
        let refused_later = engine.set_protocol(protocol).expect_err("it is refused");
        for error in [refused, refused_later] {
            assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
            assert!(error.message().contains(protocol.name()), "{error}");
            let hint = error.hint().expect("it says what to do");
            assert!(hint.contains("allow_unserializable"), "{hint}");
        }
        assert_eq!(engine.protocol(), before);
        let allowed = Engine::open(options.allow_unserializable(true)).expect("it is allowed");
        assert_eq!(allowed.protocol(), protocol);
        allowed.set_protocol(Protocol::Silo).expect("nothing runs");
        allowed.set_protocol(protocol).expect("it is still allowed");
    }
}

#[test]
fn options_without_sense_are_refused() {
    for options in [
        Options::new().workers(0),
        Options::new().workers(200).session_slots(100),
        Options::new().session_slots(0),
        Options::new().sessions_max(0),
        Options::new().slot_wait_ms(0),
        Options::new().workers(usize::MAX),
        Options::new().inbox_capacity(0),
        Options::new().epoch_ms(0),
    ] {
        let error = Engine::open(options).expect_err("it is refused");
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE, "{error}");
        assert!(error.hint().is_some());
    }
}
