//! A panic inside a transaction: each waiting caller hears of it, and no transaction runs any more
//! on records whose state is unknown.

use crate::common::*;
use kiln_engine::{Arguments, Call, Engine, Outcome, Procedure, ProgramBuilder, Protocol, Reply};
use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_procedure::ir::Instruction;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::DataType;

fn defective(_: &mut Heap, _: &[Slot]) -> Result<Slot> {
    panic!("a defect, on purpose");
}

/// How many are in the middle of [`defective_later`].
static IN_THE_MIDDLE: AtomicU32 = AtomicU32::new(0);

/// Panics when others have had the time to wait for what the transaction has.
fn defective_later(_: &mut Heap, _: &[Slot]) -> Result<Slot> {
    IN_THE_MIDDLE.fetch_add(1, Ordering::Relaxed);
    thread::sleep(30_000_000);
    panic!("a defect, on purpose, in the middle of a transaction");
}

type Function = fn(&mut Heap, &[Slot]) -> Result<Slot>;

fn call_function(builder: &mut ProgramBuilder, name: &'static str, function: Function) {
    let target = builder.register(DataType::BigInt);
    let arguments = [].into();
    builder.scalar(Instruction::Call {
        function,
        name,
        target,
        arguments,
    });
    builder.push(kiln_procedure::ir::Step::Emit {
        row: [target].into(),
    });
    builder.returns(vec![("value".to_owned(), DataType::BigInt)]);
}

fn create(engine: &Engine, builder: ProgramBuilder) {
    let program = Arc::new(builder.finish());
    let created = engine
        .change_catalog(|change| change.create_procedure(Procedure::new(program.clone()), false));
    created.expect("the name is free");
}

fn engine_with_a_defect() -> Engine {
    engine_with_a_defect_under(Protocol::TwoPhaseLockingNoWait)
}

/// With the procedures `defective`, which panics at once, and `defective_later`, which first writes
/// account 0.
fn engine_with_a_defect_under(protocol: Protocol) -> Engine {
    let engine = bank(small(protocol).ddl_wait_ms(500), 2, 0);
    let mut builder = ProgramBuilder::new("defective", []);
    call_function(&mut builder, "defective", defective);
    create(&engine, builder);
    let table = engine.table("account").expect("it is there");
    let mut builder = ProgramBuilder::new("defective_later", []);
    let zero = builder.constant(DataType::BigInt, 0_i64.into());
    add(&mut builder, &table, zero, zero);
    call_function(&mut builder, "defective_later", defective_later);
    create(&engine, builder);
    engine
}

fn nothing_runs(engine: &Engine) {
    let broken = SqlState::INTERNAL_ERROR;
    for _ in 0..4 {
        let error = engine
            .call("deposit", (0_i64, 1_i64))
            .expect_err("it is broken");
        assert_eq!(error.state(), broken, "{error}");
    }
    let error = engine.transaction(|_| Ok(())).expect_err("it is broken");
    assert_eq!(error.state(), broken, "{error}");
    engine.close();
}

#[test]
fn a_panicking_worker_answers_those_who_wait() {
    let engine = engine_with_a_defect();
    let tickets: Vec<_> = (0..20)
        .map(|at| {
            let name = if at == 3 { "defective" } else { "nothing" };
            engine.submit(Call::new(name, ())).expect("there is room")
        })
        .collect();
    let mut unknown = 0;
    for ticket in tickets {
        match ticket.wait() {
            Ok(reply) => assert!(reply.is_committed(), "{reply:?}"),
            Err(error) => {
                assert_eq!(error.state(), SqlState::INTERNAL_ERROR, "{error}");
                unknown += 1;
            }
        }
    }
    assert!(unknown >= 1);
    nothing_runs(&engine);
}

#[test]
fn a_panicking_driver_breaks_the_database() {
    let engine = engine_with_a_defect();
    let handle = engine.procedure("defective").expect("it is there");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut driver = engine.driver(0).expect("there is a worker slot");
        driver.call(&handle, &mut Arguments::new())
    }));
    assert!(caught.is_err());
    let mut driver = engine.driver(0).expect("there is a worker slot");
    let outcome = driver.call(&handle, &mut Arguments::new());
    assert!(matches!(outcome, Outcome::Rejected(_)), "{outcome:?}");
    nothing_runs(&engine);
}

#[test]
fn a_panic_inside_a_closures_program_breaks_the_database() {
    let engine = engine_with_a_defect();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        engine.transaction(|transaction| {
            transaction.update("account", (0_i64,), &[("balance", 1_i64.into())])?;
            transaction.call("defective", ())
        })
    }));
    assert!(caught.is_err());
    nothing_runs(&engine);
}

/// Who is in the middle of a transaction when its worker panics.
#[derive(Clone, Copy, Debug)]
enum Victim {
    /// A worker of the engine, for calls that were submitted.
    Worker,
    /// A driver, on the thread of its caller.
    Driver,
}

/// Threads that want what the victim has, until they are told that they cannot have it.
struct Neighbours {
    threads: Vec<(&'static str, thread::JoinHandle<()>)>,
}

fn is_broken(state: SqlState) -> bool {
    state == SqlState::INTERNAL_ERROR
}

impl Neighbours {
    fn start(engine: &Engine) -> Neighbours {
        let mut neighbours = Neighbours {
            threads: Vec::new(),
        };
        neighbours.add("driver", engine, |engine| {
            let handle = engine.procedure("deposit").expect("it is there");
            let mut driver = engine.driver(1).expect("there is a worker slot");
            loop {
                let mut arguments = Arguments::new();
                arguments.push_i64(0);
                arguments.push_i64(1);
                let call = || driver.call(&handle, &mut arguments);
                // Under strife it may be this worker that runs the defective call, as part of a
                // batch.
                let Ok(outcome) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call))
                else {
                    break;
                };
                match outcome {
                    Outcome::Committed => {}
                    Outcome::Rejected(error) => {
                        assert!(is_broken(error.state()), "{error}");
                        break;
                    }
                    Outcome::Expired => panic!("it has no deadline"),
                }
            }
        });
        neighbours.add("caller", engine, |engine| {
            loop {
                match engine.call("deposit", (0_i64, 1_i64)) {
                    Ok(reply) if reply.is_committed() => {}
                    Ok(Reply::Rejected(error)) | Err(error) => {
                        assert!(is_broken(error.state()), "{error}");
                        break;
                    }
                    Ok(reply) => panic!("it has no deadline: {reply:?}"),
                }
            }
        });
        neighbours.add("closure", engine, |engine| {
            loop {
                let written = engine.transaction(|transaction| {
                    transaction.update("account", (0_i64,), &[("balance", 1_i64.into())])
                });
                if let Err(error) = written {
                    assert!(is_broken(error.state()), "{error}");
                    break;
                }
            }
        });
        neighbours.add("session", engine, |engine| {
            let table = engine.table("account").expect("it is there");
            let deposit = Arc::new(deposit(&table));
            let mut session = engine.session().expect("there is a worker slot");
            let mut block = || {
                session.begin()?;
                let mut arguments = Arguments::new();
                arguments.push_i64(0);
                arguments.push_i64(1);
                let run = session.run(&deposit, &mut arguments);
                let ended = session.commit();
                run.and(ended)
            };
            loop {
                match block() {
                    Err(error) if is_broken(error.state()) => break,
                    Err(error) => {
                        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{error}")
                    }
                    Ok(_) => {}
                }
            }
        });
        neighbours
    }

    fn add(&mut self, name: &'static str, engine: &Engine, body: fn(&Engine)) {
        let engine = engine.clone();
        let thread = thread::spawn(name, move || body(&engine)).expect("there are threads");
        self.threads.push((name, thread));
    }

    /// Waits until all have been told; one that waits for ever fails the test.
    fn end(self, what: &str) {
        let latest = time::now_ns() + 20_000_000_000;
        for (name, thread) in self.threads {
            while !thread.is_finished() {
                assert!(time::now_ns() < latest, "{what}: the {name} waits for ever");
                thread::sleep(1_000_000);
            }
            assert!(thread.join().is_ok(), "{what}: the {name}");
        }
    }
}

/// Lets a worker panic while its neighbours wait for what it has.
fn break_down(protocol: Protocol, victim: Victim) {
    let what = format!("{protocol}, {victim:?}");
    let engine = engine_with_a_defect_under(protocol);
    let before = IN_THE_MIDDLE.load(Ordering::Relaxed);
    let breaks = {
        let engine = engine.clone();
        let body = move || match victim {
            Victim::Worker => {
                let ended = engine.call("defective_later", ());
                assert!(is_broken(ended.expect_err("it panics").state()));
            }
            Victim::Driver => {
                let handle = engine.procedure("defective_later").expect("it is there");
                let mut driver = engine.driver(0).expect("there is a worker slot");
                let call = || driver.call(&handle, &mut Arguments::new());
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
                // Under some protocols another worker has run it.
                if let Ok(outcome) = ended {
                    let Outcome::Rejected(error) = outcome else {
                        panic!("{outcome:?}");
                    };
                    assert!(is_broken(error.state()), "{error}");
                }
                // The driver stays, as that of a caller who goes on after a panic.
                std::mem::forget(driver);
            }
        };
        thread::spawn("breaks", body).expect("there are threads")
    };
    let latest = time::now_ns() + 10_000_000_000;
    while IN_THE_MIDDLE.load(Ordering::Relaxed) == before {
        assert!(time::now_ns() < latest, "{what}: it does not run");
        thread::sleep(100_000);
    }
    let mut neighbours = Neighbours::start(&engine);
    neighbours.threads.push(("one that breaks", breaks));
    neighbours.end(&what);
    let error = engine.change_catalog(|_| Ok(())).expect_err("it is broken");
    assert!(is_broken(error.state()), "{what}: {error}");
    nothing_runs(&engine);
}

/// A test for each family of protocols, and one that no protocol is left out.
macro_rules! families {
    ($($family:ident: $($protocol:ident),+;)+) => {
        $(#[test]
        fn $family() {
            for protocol in [$(Protocol::$protocol),+] {
                break_down(protocol, Victim::Worker);
                break_down(protocol, Victim::Driver);
            }
        })+

        #[test]
        fn every_protocol_is_of_a_family() {
            let known = [$($(Protocol::$protocol),+),+];
            for protocol in Protocol::serializable() {
                assert!(known.contains(&protocol), "{protocol}");
            }
        }
    };
}

families! {
    one_at_a_time: Serial;
    optimistic: Silo, Occ, TicToc, Hybrid, Mocc;
    healing: Healing;
    multiversion: Mvcc;
    locking: TwoPhaseLockingNoWait, TwoPhaseLockingWaitDie, TwoPhaseLockingWaitForGraph,
        TwoPhaseLockingDreadlocks;
    planned_locking: LockSorted, LockAtomic, PreNoWait, Partitioned;
    counted_locks: Vll, VllSca;
    counted_locks_with_a_manager: VllArrayed;
    range_locks: Vllr, VllrSca, RangeMap, RangeHierarchical;
    owned_locks: Orthrus, OrthrusShared, VllSingle;
    owned_data: Dora;
    batches: Strife;
}
