//! Calls submitted by one thread for many clients: queues of completions, statements in place of
//! procedures, and workers that take over from each other.

use std::time::Duration;

use crate::common::*;
use kiln_engine::{
    Arguments, Call, Catalog, Completion, Completions, IdempotencyKey, Options, Program, Protocol,
    Reply, Statement, SubmitError,
};
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_storage::error::{Result, SqlState};

const SOON: Duration = Duration::from_secs(20);
const FOREVER: i64 = i64::MAX;

fn numbers(values: &[i64]) -> Arguments {
    let mut arguments = Arguments::new();
    values.iter().for_each(|value| arguments.push_i64(*value));
    arguments
}

/// Waits until `count` completions have arrived.
fn collect(completions: &Completions, count: usize) -> Vec<Completion> {
    let (mut all, mut some) = (Vec::new(), Vec::new());
    while all.len() < count {
        completions.wait(&mut some, SOON);
        assert!(!some.is_empty(), "{} of {count} arrived", all.len());
        all.append(&mut some);
    }
    all
}

#[test]
fn one_thread_serves_many_clients() {
    let (clients, rounds) = (500_u64, 8);
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol).inbox_capacity(64), 1, 0);
        let deposit = engine.procedure("deposit").expect("it is there");
        let completions = Completions::new(clients as usize);
        let mut left = vec![rounds; clients as usize];
        let mut ready: Vec<u64> = (0..clients).rev().collect();
        let (mut ended, mut some) = (0, Vec::new());
        while ended < clients * rounds {
            while let Some(client) = ready.pop() {
                let call = Call::of(&deposit, numbers(&[0, 1]));
                if let Err(refused) = engine.submit_to(call, &completions, client) {
                    assert_eq!(refused.error, SubmitError::Overloaded);
                    ready.push(client);
                    break;
                }
            }
            completions.wait(&mut some, SOON);
            assert!(!some.is_empty(), "{protocol}: {ended} have ended");
            for completion in some.drain(..) {
                let reply = completion.result.expect("it runs");
                assert!(reply.is_committed(), "{protocol}: {reply:?}");
                ended += 1;
                let left = &mut left[completion.token as usize];
                *left -= 1;
                if *left > 0 {
                    ready.push(completion.token);
                }
            }
        }
        assert!(left.iter().all(|left| *left == 0));
        assert_eq!(completions.outstanding(), 0);
        assert_eq!(
            number(&engine, "total", &[]),
            (clients * rounds) as i64,
            "{protocol}"
        );
    }
}

#[test]
fn a_queue_of_completions_is_bounded_and_wakes_its_owner() {
    let engine = bank(Options::new().workers(1).pin_workers(false), 1, 0);
    let woken = Arc::new(AtomicUsize::new(0));
    let counter = woken.clone();
    let completions = Completions::with_wake(2, move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let spin = || Call::new("spin", (FOREVER,)).deadline(Duration::from_millis(50));
    engine
        .submit_to(spin(), &completions, 1)
        .expect("there is room");
    engine
        .submit_to(spin(), &completions, 2)
        .expect("there is room");
    let refused = engine
        .submit_to(spin(), &completions, 3)
        .expect_err("it is full");
    assert_eq!(refused.error, SubmitError::Overloaded);
    let unknown = Call::new("unknown", ());
    let mut tokens: Vec<u64> = collect(&completions, 2)
        .into_iter()
        .map(|completion| {
            assert_eq!(completion.result.expect("it ran"), Reply::Expired);
            completion.token
        })
        .collect();
    tokens.sort_unstable();
    assert_eq!(tokens, [1, 2]);
    assert!((1..=2).contains(&woken.load(Ordering::SeqCst)));
    // What is refused leaves no trace.
    let refused = engine
        .submit_to(unknown, &completions, 4)
        .expect_err("there is none");
    assert!(matches!(refused.error, SubmitError::Refused(_)));
    assert_eq!(completions.outstanding(), 0);
    let mut none = Vec::new();
    completions.wait(&mut none, Duration::from_millis(1));
    assert!(none.is_empty());
}

#[test]
fn a_key_is_repeated_through_queues_and_tickets_alike() {
    let engine = bank(Options::new().workers(2).pin_workers(false), 1, 0);
    let completions = Completions::new(10);
    let call = || {
        let key = IdempotencyKey::new("once").expect("it is short");
        Call::new("deposit", (0_i64, 5_i64)).idempotency_key(key)
    };
    for token in 0..3 {
        engine
            .submit_to(call(), &completions, token)
            .expect("there is room");
    }
    let first = engine.execute(call()).expect("it ran");
    assert!(first.is_committed());
    for completion in collect(&completions, 3) {
        assert_eq!(completion.result.expect("it ran"), first);
    }
    engine
        .submit_to(call(), &completions, 9)
        .expect("there is room");
    assert_eq!(
        collect(&completions, 1)[0].result.clone().expect("it ran"),
        first
    );
    assert_eq!(number(&engine, "total", &[]), 5);
    let statement = Call::statement(Arc::new(Deposit::default()), numbers(&[0, 1]));
    let keyed = statement.idempotency_key(IdempotencyKey::new("two").expect("it is short"));
    let error = engine
        .execute(keyed)
        .expect_err("a key goes with a procedure");
    assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
}

/// A statement of a layer above: it counts how often it is compiled.
#[derive(Default)]
struct Deposit {
    compiled: AtomicUsize,
}

impl Statement for Deposit {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        self.compiled.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(deposit(catalog.require_table("account")?)))
    }
}

#[test]
fn a_statement_is_compiled_again_after_a_change() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol).workers(1), 1, 0);
        let statement = Arc::new(Deposit::default());
        let call = || Call::statement(statement.clone(), numbers(&[0, 1]));
        let reply = engine.execute(call()).expect("it runs");
        let rows = reply.rows().expect("it committed").typed::<(i64,)>();
        assert_eq!(rows.expect("one number"), [(1,)]);
        assert_eq!(statement.compiled.load(Ordering::SeqCst), 1);
        // Behind a long call waits one that was compiled before the change.
        let busy = Call::new("spin", (FOREVER,)).deadline(Duration::from_millis(100));
        let busy = engine.submit(busy).expect("there is room");
        let waits = engine.submit(call()).expect("there is room");
        engine
            .change_catalog(|change| {
                let by_balance = index("by_balance", &[BALANCE], false, ORDERED);
                let table = change.add_index("account", by_balance)?;
                recompile(change, &table)
            })
            .expect("it changes when the long call has ended");
        assert_eq!(busy.wait().expect("it ran"), Reply::Expired);
        let reply = waits.wait().expect("it runs in the new catalog");
        assert!(reply.is_committed(), "{protocol}: {reply:?}");
        assert_eq!(number(&engine, "total", &[]), 2, "{protocol}");
    }
}

#[test]
fn no_call_waits_behind_a_long_one_while_a_worker_is_free() {
    // Not those whose workers own partitions, nor strife, whose batches end as a whole.
    for protocol in [
        Protocol::Silo,
        Protocol::Mvcc,
        Protocol::TwoPhaseLockingWaitDie,
        Protocol::LockSorted,
        Protocol::Vll,
    ] {
        let engine = bank(small(protocol).workers(2), 1, 0);
        let busy = Call::new("spin", (FOREVER,)).deadline(Duration::from_millis(400));
        let busy = engine.submit(busy).expect("there is room");
        let start = time::now_ns();
        let tickets: Vec<_> = (0..50)
            .map(|_| {
                engine
                    .submit(Call::new("nothing", ()))
                    .expect("there is room")
            })
            .collect();
        for ticket in tickets {
            assert!(ticket.wait().expect("it runs").is_committed());
        }
        let passed_ms = (time::now_ns() - start) / 1_000_000;
        assert_eq!(busy.wait().expect("it ran"), Reply::Expired);
        assert!(passed_ms < 300, "{protocol}: after {passed_ms} ms");
    }
}
