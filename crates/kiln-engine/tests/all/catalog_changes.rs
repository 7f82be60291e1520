//! Changes of the catalog, alone and while calls run.

use crate::common::*;
use kiln_engine::{Arguments, Driver, Outcome, Procedure, Program, Protocol};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::error::{Error, SqlState};
use kiln_storage::schema::IndexKind;
use kiln_storage::types::Value;

#[test]
fn indexes_come_and_go_while_calls_run() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 8, 100);
        let stop = AtomicBool::new(false);
        let procedures = ["open", "shut", "transfer", "deposit", "total", "linger"];
        let handles = procedures.map(|name| engine.procedure(name).expect("it is there"));
        let [open, shut, transfer, ..] = &handles;
        thread::scope(|scope| {
            let changer = scope.spawn(|| {
                let _stop = SetOnDrop(&stop);
                let hash = |name| index(name, &[ID], true, IndexKind::Hash);
                for round in 0..40 {
                    let changed = engine.change_catalog(|change| {
                        let table = match round % 4 {
                            0 => change.add_index("account", hash("by_id"))?,
                            1 => {
                                let by_owner = index("by_owner", &[OWNER], false, ORDERED);
                                change.add_index("account", by_owner)?
                            }
                            2 => change.drop_index("account", "by_id")?,
                            _ => change.drop_index("account", "by_owner")?,
                        };
                        assert_eq!(change.stale_procedures().len(), procedures.len());
                        recompile(change, &table)?;
                        assert_eq!(change.stale_procedures().len(), 0);
                        Ok(table)
                    });
                    let table = changed.expect("calls are short");
                    let sizes: Vec<usize> =
                        table.indexes().iter().map(|index| index.len()).collect();
                    assert!(!sizes.is_empty());
                    thread::sleep(300_000);
                }
            });
            let run = |driver: &mut Driver| {
                let mut arguments = Arguments::new();
                let mut call = |driver: &mut Driver, handle, values: &[i64]| {
                    arguments.clear();
                    values.iter().for_each(|value| arguments.push_i64(*value));
                    match driver.call(handle, &mut arguments) {
                        Outcome::Committed => {}
                        Outcome::Rejected(error) => {
                            let expected = [SqlState::CHECK_VIOLATION, SqlState::UNIQUE_VIOLATION];
                            assert!(expected.contains(&error.state()), "{error}");
                        }
                        Outcome::Expired => panic!("there is no deadline"),
                    }
                };
                let mut round = 0;
                while !stop.load(Ordering::Acquire) {
                    round += 1;
                    let id = 100 + driver.position() as i64 * 10 + round % 10;
                    call(driver, open, &[id, 0]);
                    call(driver, transfer, &[round % 8, (round + 3) % 8, 1]);
                    call(driver, shut, &[id]);
                }
            };
            engine.drive(2, run).expect("there are worker slots");
            changer.join().expect("no panic");
        });
        assert_eq!(number(&engine, "total", &[]), 800, "{protocol}");
        // Under some protocols deleted rows go a moment later, and their entries after them.
        let counted = || {
            let memory = engine.memory();
            (memory[0].rows, memory[0].indexes[0].entries)
        };
        let start = time::now_ns();
        while counted() != (8, 8) && time::now_ns() - start < 5_000_000_000 {
            thread::sleep(1_000_000);
        }
        let memory = engine.memory();
        assert_eq!((memory[0].table.as_str(), memory[0].rows), ("account", 8));
        assert_eq!(memory[0].indexes.len(), 1, "what was added was dropped");
        assert_eq!(memory[0].indexes[0].entries, 8, "{protocol}");
    }
}

#[test]
fn a_new_index_has_the_rows_and_serves_lookups() {
    let engine = bank(small(Protocol::Silo), 1_000, 1);
    let result = engine.change_catalog(|change| {
        let by_owner = index("by_owner", &[OWNER], true, IndexKind::Hash);
        let table = change.add_index("account", by_owner)?;
        recompile(change, &table)?;
        assert_eq!(change.index_owner("by_owner"), Some("account"));
        let again = index("by_owner", &[OWNER], true, IndexKind::Hash);
        let error = change
            .add_index("account", again)
            .expect_err("the name is taken");
        assert_eq!(error.state(), SqlState::DUPLICATE_TABLE);
        Ok(table.indexes()[1].len())
    });
    assert_eq!(result, Ok(1_000));
    // The unique index holds for what comes later.
    let error = engine
        .transaction(|transaction| transaction.insert("account", (5_000_i64, "owner 7", 0_i64)))
        .expect_err("the owner is there");
    assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
    assert_eq!(error.constraint(), Some("by_owner"));
    let rebuilt = engine.change_catalog(|change| {
        let table = change.rebuild_index("account", "by_owner", ORDERED)?;
        recompile(change, &table)?;
        Ok(table)
    });
    assert!(rebuilt.expect("it is built anew").indexes()[1].is_ordered());
    let rows = engine.transaction(|transaction| {
        let range = kiln_engine::ScanRange::all()
            .from("owner 990")
            .to("owner 992");
        transaction.scan("account", Some("by_owner"), &range)
    });
    let ids: Vec<i64> = rows
        .expect("it runs")
        .iter()
        .map(|row| row.get("id").expect("BIGINT"))
        .collect();
    assert_eq!(ids, [990, 991, 992]);
}

#[test]
fn a_failed_change_leaves_nothing() {
    let engine = bank(small(Protocol::Silo), 3, 100);
    let version = engine.catalog().version();
    let give_up = engine.change_catalog(|change| {
        change.create_table(account_schema("other"), 0, Vec::new())?;
        change.drop_procedure("spin")?;
        let by_owner = index("by_owner", &[OWNER], true, ORDERED);
        let table = change.add_index("account", by_owner)?;
        recompile(change, &table)?;
        Err::<(), Error>(Error::division_by_zero())
    });
    assert_eq!(
        give_up.expect_err("it gave up").state(),
        SqlState::DIVISION_BY_ZERO
    );
    // An index that cannot be built, and a change that forgets the procedures.
    let duplicates = engine.change_catalog(|change| {
        change.add_index("account", index("by_balance", &[BALANCE], true, ORDERED))
    });
    assert_eq!(
        duplicates.expect_err("equal balances").state(),
        SqlState::UNIQUE_VIOLATION
    );
    let forgetful = engine.change_catalog(|change| change.drop_table("account"));
    let error = forgetful.expect_err("procedures use it");
    assert_eq!(error.state(), SqlState::DEPENDENT_OBJECTS_STILL_EXIST);
    let catalog = engine.catalog();
    assert_eq!(catalog.version(), version);
    assert!(catalog.table("other").is_none());
    assert!(catalog.procedure("spin").is_some());
    assert_eq!(
        catalog
            .table("account")
            .expect("it is there")
            .indexes()
            .len(),
        1
    );
    assert_eq!(number(&engine, "deposit", &[0, 1]), 101);
    assert_eq!(number(&engine, "total", &[]), 301);
}

#[test]
fn a_panic_in_a_change_leaves_nothing() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        engine.change_catalog(|change| -> kiln_storage::error::Result<()> {
            change.drop_procedure("spin")?;
            panic!("on purpose");
        })
    }));
    assert!(caught.is_err());
    assert_eq!(number(&engine, "spin", &[3]), 3);
    engine.change_catalog(|_| Ok(())).expect("the gate is open");
}

#[test]
fn programs_of_a_former_shape_are_refused() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let old = engine.table("account").expect("it is there");
    let program = Arc::new(deposit(&old));
    let mut session = engine.session().expect("there is a worker slot");
    let mut arguments = Arguments::from_values(&[Value::BigInt(0), Value::BigInt(1)]);
    session
        .run(&program, &mut arguments)
        .expect("it is current");
    let truncated = engine.change_catalog(|change| {
        let table = change.truncate_table("account")?;
        recompile(change, &table)
    });
    truncated.expect("nothing runs");
    let error = session
        .run(&program, &mut arguments)
        .expect_err("the table was replaced");
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    // Compiled for the catalog at hand it runs, and finds the table empty.
    let result = session.run_with(
        |catalog, _| Ok(Arc::new(deposit(catalog.require_table("account")?))),
        &mut arguments,
    );
    assert_eq!(
        result.expect_err("no such row").state(),
        SqlState::NO_DATA_FOUND
    );
    assert_eq!(number(&engine, "total", &[]), 0);
}

#[test]
fn a_replaced_procedure_is_called_by_its_old_handle() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let handle = engine.procedure("spin").expect("it is there");
    let mut driver = engine.driver(0).expect("there is a worker slot");
    let mut arguments = Arguments::from_values(&[Value::BigInt(2)]);
    assert!(matches!(
        driver.call(&handle, &mut arguments),
        Outcome::Committed
    ));
    let replace = |program: Program| {
        let program = Arc::new(program);
        engine
            .change_catalog(|change| change.create_procedure(Procedure::new(program.clone()), true))
    };
    let mut builder = kiln_engine::ProgramBuilder::new("spin", []);
    builder.push(kiln_procedure::ir::Step::Emit { row: [].into() });
    replace(builder.finish()).expect("nothing runs");
    let state = match driver.call(&handle, &mut arguments) {
        Outcome::Rejected(error) => error.state(),
        outcome => panic!("ended as {outcome:?}"),
    };
    assert_eq!(
        state,
        SqlState::UNDEFINED_FUNCTION,
        "it takes no arguments any more"
    );
    arguments.clear();
    assert!(matches!(
        driver.call(&handle, &mut arguments),
        Outcome::Committed
    ));
    assert_eq!(driver.frame().rows().0, 1);
    engine
        .change_catalog(|change| change.drop_procedure("spin"))
        .expect("nothing uses it");
    match driver.call(&handle, &mut arguments) {
        Outcome::Rejected(error) => assert_eq!(error.state(), SqlState::UNDEFINED_FUNCTION),
        outcome => panic!("ended as {outcome:?}"),
    }
}

#[test]
fn dropped_tables_give_their_memory_back() {
    // Workers that run one call at a time, and those that have several in flight.
    for protocol in [
        Protocol::Silo,
        Protocol::Vll,
        Protocol::Orthrus,
        Protocol::Strife,
    ] {
        let engine = bank(small(protocol).epoch_ms(1), 100, 1);
        let table = Arc::downgrade(&engine.table("account").expect("it is there"));
        // Leave garbage in a session and in workers, which must not keep the table.
        engine
            .transaction(|transaction| transaction.delete("account", (1_i64,)))
            .expect("it runs");
        for account in 2..10_i64 {
            let reply = engine.call("shut", (account,)).expect("it runs");
            assert!(reply.is_committed());
        }
        let dropped = engine.change_catalog(|change| {
            assert!(
                change.stale_procedures().is_empty(),
                "nothing has changed yet"
            );
            change.drop_table("account")?;
            for procedure in change.stale_procedures() {
                change.drop_procedure(procedure.name())?;
            }
            Ok(())
        });
        dropped.expect("nothing runs");
        // No call comes, so that workers that sleep must see by themselves that it is gone.
        for _ in 0..1_000 {
            if table.strong_count() == 0 {
                break;
            }
            thread::sleep(10_000_000);
        }
        let holders = table.strong_count();
        assert_eq!(holders, 0, "the table is still held, under {protocol:?}");
    }
}
