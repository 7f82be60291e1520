//! Calls that begin under one protocol and run under another: the protocol is switched while they
//! wait.

use std::time::Duration;

use crate::common::*;
use kiln_engine::{
    Answer, Arguments, Asked, Call, Caller, Catalog, Completions, Driver, Engine, Options, Outcome,
    ProcedureHandle, Program, Protocol, Reply, Request, Session, Statement,
};
use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::error::{Result, SqlState};

/// A protocol whose workers have several calls in flight.
const PIPELINED: Protocol = Protocol::Vll;
/// Protocols whose workers have one: a call that meets a row of an open block tries again and
/// again, or waits for the row's lock.
const ONE_CALL_AT_A_TIME: [Protocol; 4] = [
    Protocol::Silo,
    Protocol::TwoPhaseLockingNoWait,
    Protocol::TwoPhaseLockingWaitDie,
    Protocol::LockSorted,
];

/// The row that the open transaction has, and another one.
const TAKEN: i64 = 0;
const FREE: i64 = 1;

fn open(protocol: Protocol) -> Engine {
    let options = Options::new()
        .workers(1)
        .pin_workers(false)
        .ddl_wait_ms(2_000)
        .protocol(protocol);
    bank(options, 2, 0)
}

fn numbers(values: &[i64]) -> Arguments {
    let mut arguments = Arguments::new();
    values.iter().for_each(|value| arguments.push_i64(*value));
    arguments
}

/// Makes `count` calls, each second of which wants the row that is taken, and notes how each has
/// ended. It pauses when it is told to.
struct Depositor<'a> {
    deposit: &'a ProcedureHandle,
    outcomes: Vec<Vec<Outcome>>,
    asked: usize,
    may_pause: &'a AtomicBool,
    /// Questions that it has answered: none while the gate keeps its worker from asking.
    questions: &'a AtomicU64,
}

impl<'a> Depositor<'a> {
    fn new(
        deposit: &'a ProcedureHandle,
        count: usize,
        may_pause: &'a AtomicBool,
        questions: &'a AtomicU64,
    ) -> Depositor<'a> {
        Depositor {
            deposit,
            outcomes: (0..count).map(|_| Vec::new()).collect(),
            asked: 0,
            may_pause,
            questions,
        }
    }

    /// Drives until it has paused, and returns how each of the calls has ended, once.
    fn drive(mut self, driver: &mut Driver) -> Vec<Outcome> {
        driver.drive(&mut self);
        let outcomes = self.outcomes.into_iter().enumerate();
        let outcomes = outcomes.map(|(ticket, mut outcomes)| {
            assert_eq!(outcomes.len(), 1, "call {ticket}: {outcomes:?}");
            outcomes.remove(0)
        });
        outcomes.collect()
    }
}

impl Caller for Depositor<'_> {
    fn next(&mut self, request: &mut Request) -> Asked<'_> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        if self.asked == self.outcomes.len() {
            return match self.may_pause.load(Ordering::Acquire) {
                true => Asked::Pause,
                false => Asked::Nothing,
            };
        }
        request.ticket = self.asked as u64;
        request.arguments.push_i64([TAKEN, FREE][self.asked % 2]);
        request.arguments.push_i64(1);
        self.asked += 1;
        Asked::Call(self.deposit)
    }

    fn is_over(&mut self) -> bool {
        self.asked == self.outcomes.len() && self.may_pause.load(Ordering::Acquire)
    }

    fn ended(&mut self, ticket: u64, outcome: Outcome, _: &Answer<'_>) {
        self.outcomes[ticket as usize].push(outcome);
    }
}

/// A session whose block has changed the row and waits for its client.
fn block(engine: &Engine) -> Session {
    let mut session = engine.session().expect("there is a worker slot");
    session.begin().expect("no block is open");
    let table = engine.table("account").expect("it is there");
    let deposited = session.run(&Arc::new(deposit(&table)), &mut numbers(&[TAKEN, 1]));
    deposited.expect("the row is free");
    session
}

fn create_table(engine: &Engine, name: &str) -> Result<()> {
    engine.change_catalog(|change| {
        let table = change.create_table(account_schema(name), 0, Vec::new());
        table.map(|_| ())
    })
}

/// As a statement that a session can submit, and cancel.
struct Deposit;

impl Statement for Deposit {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        Ok(Arc::new(deposit(catalog.require_table("account")?)))
    }
}

/// The first call after a switch comes to a worker that still has the worker slot of the former
/// protocol.
#[test]
fn the_first_call_after_a_switch_holds_up_no_change_and_can_be_cancelled() {
    for protocol in ONE_CALL_AT_A_TIME {
        for cancels in [false, true] {
            let engine = open(PIPELINED);
            engine.set_protocol(protocol).expect("nothing runs");
            let mut block = block(&engine);
            let mut caller = engine.session().expect("there is a worker slot");
            let completions = Completions::new(1);
            caller.begin_statement();
            let arguments = numbers(&[TAKEN, 10]);
            let told = (&completions, 0);
            (caller.submit(Arc::new(Deposit), arguments, told, false)).expect("there is room");
            thread::sleep(20_000_000);
            let created = create_table(&engine, "later");
            created.unwrap_or_else(|error| panic!("{protocol}: {error}"));
            if cancels {
                caller.cancel_handle().cancel();
            } else {
                // An optimistic call may have overtaken it.
                let _ = block.commit();
            }
            let mut ended = Vec::new();
            completions.wait(&mut ended, Duration::from_secs(5));
            let ended = ended.pop().map(|completion| completion.result);
            match ended {
                Some(Ok(Reply::Committed(_))) => {}
                Some(Ok(Reply::Expired)) if cancels => {}
                _ => panic!("{protocol}, cancels: {cancels}: {ended:?}"),
            }
        }
    }
}

#[test]
fn the_first_calls_of_a_driver_after_a_switch_hold_up_no_change() {
    for protocol in ONE_CALL_AT_A_TIME {
        let engine = open(PIPELINED);
        let handle = engine.procedure("deposit").expect("it is there");
        let mut driver = engine.driver(0).expect("there is a worker slot");
        engine.set_protocol(protocol).expect("nothing runs");
        let mut block = block(&engine);
        let (may_pause, questions) = (AtomicBool::new(true), AtomicU64::new(0));
        thread::scope(|scope| {
            let depositor = Depositor::new(&handle, 4, &may_pause, &questions);
            let driver = scope.spawn(|| depositor.drive(&mut driver));
            thread::sleep(20_000_000);
            let created = create_table(&engine, "later");
            let _ = block.commit();
            created.unwrap_or_else(|error| panic!("{protocol}: {error}"));
            let outcomes = driver.join().expect("no panic");
            let committed = |outcome: &Outcome| matches!(outcome, Outcome::Committed);
            assert!(outcomes.iter().all(committed), "{protocol}: {outcomes:?}");
        });
    }
}

/// The calls wait for a transaction that keeps the protocol from being switched, are handed back
/// each time that the switch is tried, and the transaction ends when they have been.
#[test]
fn calls_that_were_handed_back_run_once_under_the_next_protocol() {
    const CALLS: usize = 4;
    /// A driver that has asked for no call for so long waits for the gate, mostly.
    const SILENCE_NS: u64 = 1_200_000;
    let wait_for = |flag: &AtomicBool| {
        while !flag.load(Ordering::Acquire) {
            thread::park_for(20_000);
        }
    };
    for protocol in ONE_CALL_AT_A_TIME {
        let engine = open(PIPELINED);
        let handle = engine.procedure("deposit").expect("it is there");
        let mut driver = engine.driver(0).expect("there is a worker slot");
        let (has_row, may_end) = (AtomicBool::new(false), AtomicBool::new(false));
        let (has_switched, questions) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let _stop = (SetOnDrop(&may_end), SetOnDrop(&has_switched));
            let transaction = scope.spawn(|| {
                engine.transaction(|transaction| {
                    transaction.call("deposit", (TAKEN, 1_i64))?;
                    has_row.store(true, Ordering::Release);
                    wait_for(&may_end);
                    Ok(())
                })
            });
            wait_for(&has_row);
            let depositor = Depositor::new(&handle, CALLS, &has_switched, &questions);
            let drives = scope.spawn(|| depositor.drive(&mut driver));
            let submit = |_| engine.submit(Call::new("deposit", (TAKEN, 1_i64)));
            let tickets: Vec<_> = (0..CALLS).map(submit).collect();
            thread::sleep(10_000_000);
            let switches = scope.spawn(|| engine.set_protocol(protocol));
            let (mut known, mut since_ns) = (0, time::now_ns());
            while time::now_ns() - since_ns < SILENCE_NS {
                thread::park_for(50_000);
                let now = questions.load(Ordering::Relaxed);
                if now != known {
                    (known, since_ns) = (now, time::now_ns());
                }
            }
            may_end.store(true, Ordering::Release);
            (transaction.join().expect("no panic")).expect("it commits");
            (switches.join().expect("no panic")).expect("the transaction has ended");
            has_switched.store(true, Ordering::Release);
            for ticket in tickets {
                let reply = ticket.expect("there is room").wait().expect("it runs");
                assert!(reply.is_committed(), "{protocol}: {reply:?}");
            }
            let outcomes = drives.join().expect("no panic");
            let committed = |outcome: &Outcome| matches!(outcome, Outcome::Committed);
            assert!(outcomes.iter().all(committed), "{protocol}: {outcomes:?}");
        });
        assert_eq!(engine.protocol(), protocol);
        let sum = number(&engine, "total", &[]);
        assert_eq!(sum, 1 + 2 * CALLS as i64, "{protocol}");
    }
}

/// A driver that has calls handed back when the database is closed cannot make them any more.
#[test]
fn calls_of_a_driver_that_wait_for_a_block_end_when_the_database_is_closed() {
    for protocol in [Protocol::Vll, Protocol::Strife, Protocol::Dora] {
        let engine = open(protocol);
        let handle = engine.procedure("deposit").expect("it is there");
        let mut driver = engine.driver(0).expect("there is a worker slot");
        let mut block = block(&engine);
        let (may_pause, questions) = (AtomicBool::new(true), AtomicU64::new(0));
        let outcomes = thread::scope(|scope| {
            let depositor = Depositor::new(&handle, 8, &may_pause, &questions);
            let drives = scope.spawn(|| depositor.drive(&mut driver));
            thread::sleep(20_000_000);
            engine.close();
            let patience_ns = time::now_ns() + 5_000_000_000;
            while !drives.is_finished() && time::now_ns() < patience_ns {
                thread::park_for(1_000_000);
            }
            let has_ended = drives.is_finished();
            block.roll_back().expect("a block is open");
            assert!(has_ended, "{protocol}: its calls wait for the block");
            drives.join().expect("no panic")
        });
        for (call, outcome) in outcomes.iter().enumerate() {
            match outcome {
                Outcome::Rejected(error) if call % 2 == 0 => {
                    assert_eq!(error.state(), SqlState::ADMIN_SHUTDOWN, "{protocol}");
                }
                Outcome::Committed if call % 2 == 1 => {}
                _ => panic!("{protocol}: call {call}: {outcome:?}"),
            }
        }
    }
}
