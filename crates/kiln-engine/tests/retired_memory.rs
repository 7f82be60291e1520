//! Memory that is retired comes back although those are idle who retired it, and who keeps it is
//! named.

mod common;

use std::time::Duration;

use common::*;
use kiln_engine::{
    Arguments, Call, Configuration, Engine, Protocol, ProtocolOption, Session, SlotUser,
};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};

/// Waits until `done` says so.
fn until(what: &str, done: impl Fn() -> bool) {
    let latest = time::now_ns() + 10_000_000_000;
    while !done() {
        assert!(time::now_ns() < latest, "{what} does not come");
        thread::sleep(1_000_000);
    }
}

fn run(session: &mut Session, program: &Arc<kiln_engine::Program>, number: i64) {
    let mut arguments = Arguments::new();
    arguments.push_i64(number);
    session.run(program, &mut arguments).expect("it commits");
}

fn cells(engine: &Engine) -> usize {
    let table = engine.table("account").expect("it is there");
    table.slab().cells_in_use()
}

#[test]
fn an_idle_transaction_is_named_that_keeps_retired_memory() {
    for protocol in [
        Protocol::Silo,
        Protocol::Mvcc,
        Protocol::TwoPhaseLockingNoWait,
    ] {
        let engine = bank(small(protocol), 200, 1);
        until("an idle database", || engine.retired_memory().objects == 0);
        let mut block = engine.session().expect("a worker slot");
        let shut = Arc::new(shut(&engine.table("account").expect("it is there")));
        block.begin().expect("no block is open");
        run(&mut block, &shut, 199);
        let begun = time::now_ns();
        until("the next epoch", || {
            !engine.retired_memory().held_by.is_empty()
        });
        for id in 0..100 {
            engine.call("shut", (id,)).expect("it commits");
        }
        thread::sleep(60_000_000);
        let held = engine.retired_memory();
        assert!(held.objects >= 50 && held.bytes >= 50 * 24, "{held:?}");
        let [holder] = held.held_by[..] else {
            panic!("one transaction is open: {held:?}")
        };
        assert_eq!(holder.user, SlotUser::Session(block.number()));
        let open = Duration::from_nanos(time::now_ns() - begun + 50_000_000);
        assert!(holder.duration >= Duration::from_millis(50) && holder.duration <= open);
        block.commit().expect("it commits");
        until("all memory", || {
            engine.retired_memory().objects == 0 && cells(&engine) == 99
        });
    }
}

fn mvcc() -> impl Iterator<Item = Configuration> {
    let plain = Configuration::of(Protocol::Mvcc);
    let with = |all: Configuration, option| all.with(option).expect("it has the option");
    let options = [
        ProtocolOption::CommitTimeUpdates,
        ProtocolOption::TimestampSplitting,
    ];
    [plain, options.into_iter().fold(plain, with)].into_iter()
}

#[test]
fn what_a_snapshot_pinned_goes_although_its_last_writers_are_idle() {
    for protocol in mvcc() {
        let engine = bank(small(Protocol::Mvcc), 1_000, 1);
        engine.set_protocol(protocol).expect("nothing runs");
        let account = engine.table("account").expect("it is there");
        let (deposit, shut) = (Arc::new(deposit(&account)), Arc::new(shut(&account)));
        let mut sessions = [(); 2].map(|()| engine.session().expect("a worker slot"));
        // A call that writes nothing, with a snapshot.
        let snapshot = Call::new("spin", (i64::MAX,)).deadline(Duration::from_millis(400));
        let snapshot = engine.submit(snapshot).expect("there is room");
        thread::sleep(50_000_000);
        for id in 0..900 {
            let mut arguments = Arguments::new();
            arguments.push_i64(id);
            arguments.push_i64(1);
            sessions[0]
                .run(&deposit, &mut arguments)
                .expect("it commits");
            run(&mut sessions[1], &shut, id);
        }
        assert!(cells(&engine) >= 900, "the snapshot has them");
        snapshot.wait().expect("it expires");
        until("all memory", || cells(&engine) == 100);
        drop(sessions);
    }
}

#[test]
fn a_long_call_keeps_the_statements_of_others_waiting_once() {
    let engine = bank(small(Protocol::Mvcc), 100, 1);
    let total = Arc::new(total(&engine.table("account").expect("it is there")));
    let count = thread::available_cores().min(16) + 2;
    let mut sessions: Vec<Session> = (0..count)
        .map(|_| engine.session().expect("a worker slot"))
        .collect();
    let long = Call::new("spin", (i64::MAX,)).deadline(Duration::from_secs(4));
    let long = engine.submit(long).expect("there is room");
    thread::sleep(50_000_000);
    let begun = time::now_ns();
    for _ in 0..10 {
        for session in &mut sessions {
            let mut arguments = Arguments::new();
            session.run(&total, &mut arguments).expect("it commits");
        }
    }
    let taken_ms = (time::now_ns() - begun) / 1_000_000;
    assert!(taken_ms < 1_000, "{taken_ms} ms");
    engine.close();
    drop(long);
}
