//! What listeners hear of commits, and which log epoch those have to wait for who were told of one.

use crate::common::*;
use kiln_engine::{
    Arguments, Call, CallAnswer, ChangeKind, Commit, Configuration, Engine, Listener, Listeners,
    LogEpoch, Program, ProgramBuilder, Protocol, Transaction,
};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::{ColumnId, TableSchema};
use kiln_storage::slot::Heap;
use kiln_storage::types::{DataType, Value};

/// What all listeners of a database heard: a text for each change, by commit.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Told>>>);

/// A commit's log epoch and its changes.
type Told = (LogEpoch, Vec<String>);

impl Listeners for Heard {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(self.clone())
    }

    fn note(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        unreachable!("no call has a key: {answer:?}")
    }
}

impl Listener for Heard {
    fn committed(&mut self, commit: &Commit<'_>) {
        let mut heap = Heap::new();
        let kinds = commit.changes.iter().map(|change| change.kind());
        assert!(
            kinds.is_sorted_by_key(|kind| kind != ChangeKind::Delete),
            "deletions come first"
        );
        let changes = commit.changes.iter().map(|change| {
            let schema = change.table().schema();
            let key = change.key(&mut heap).to_bytes();
            let key = change.table().indexes()[0].key_layout().describe(&key);
            let key = match schema.primary_key.is_empty() {
                true => "a row".to_owned(),
                false => key,
            };
            let columns = schema.columns.iter().zip(0..);
            let written = columns.filter(|(_, at)| change.columns().contains(ColumnId(*at)));
            let values = written.map(|(column, at)| {
                let slot = change.value(ColumnId(at), &mut heap);
                let value = match column.data_type {
                    DataType::BigInt => slot.as_i64().to_string(),
                    _ => heap.str(slot).to_owned(),
                };
                format!(" {}={value}", column.name)
            });
            let values: String = values.collect();
            format!("{:?} {key}{values}", change.kind()).to_lowercase()
        });
        let mut changes: Vec<String> = changes.collect();
        changes.sort();
        lock(&self.0).push((commit.epoch, changes));
    }
}

impl Heard {
    fn listen_to(engine: &Engine) -> Heard {
        let heard = Heard::default();
        let attached = engine.attach_listeners(Arc::new(heard.clone()));
        attached.expect("the protocol isolates transactions");
        heard
    }

    /// What one commit changed, which is all that was heard since the last time.
    fn one(&self) -> Vec<String> {
        let mut commits = std::mem::take(&mut *lock(&self.0));
        assert!(commits.len() < 2, "one commit is told once: {commits:?}");
        commits.pop().map_or_else(Vec::new, |(_, changes)| changes)
    }

    fn newest(&self) -> LogEpoch {
        let commits = lock(&self.0);
        commits.iter().map(|(epoch, _)| *epoch).max().expect("one")
    }
}

/// `move(from, to)`: gives an account another number.
fn move_account(engine: &Engine) -> Arc<Program> {
    let parameters = ["from", "to"].map(|name| (name.to_owned(), DataType::BigInt));
    let mut builder = ProgramBuilder::new("move", parameters);
    let (from, to) = (builder.parameter(0), builder.parameter(1));
    let table = builder.table(&engine.table("account").expect("it is there"));
    let (record, _) = builder.lookup(table, 0, &[from], None);
    builder.update(table, record, &[(ID, to)], None);
    Arc::new(builder.finish())
}

fn run(engine: &Engine, body: impl Fn(&mut Transaction<'_>) -> Result<()>) {
    engine.transaction(body).expect("it commits");
}

fn row(id: i64, owner: &str, balance: i64) -> [Value; 3] {
    [
        Value::BigInt(id),
        Value::Text(owner.to_owned()),
        Value::BigInt(balance),
    ]
}

#[test]
fn a_commit_is_told_by_its_net_effect() {
    for configuration in Configuration::serializable() {
        let options = small(configuration.protocol).protocol(configuration);
        let engine = bank(options, 3, 100);
        let heard = Heard::listen_to(&engine);
        let insert =
            |txn: &mut Transaction<'_>, values: [Value; 3]| txn.insert("account", values.to_vec());
        let update = |txn: &mut Transaction<'_>, id: i64, column: &str, value: Value| {
            txn.update("account", (id,), &[(column, value)]).map(|_| ())
        };

        run(&engine, |txn| {
            update(txn, 1, "balance", Value::BigInt(5))?;
            update(txn, 1, "owner", Value::Text("ann".to_owned()))?;
            update(txn, 1, "balance", Value::BigInt(6))
        });
        let updated = "update 1 owner=ann balance=6".to_owned();
        assert_eq!(heard.one(), [updated], "{configuration}");

        run(&engine, |txn| {
            insert(txn, row(7, "bob", 1))?;
            update(txn, 7, "balance", Value::BigInt(2))?;
            update(txn, 2, "balance", Value::BigInt(3))?;
            txn.delete("account", (2,)).map(|_| ())
        });
        let expected = ["delete 2", "insert 7 id=7 owner=bob balance=2"];
        assert_eq!(heard.one(), expected, "{configuration}");

        run(&engine, |txn| {
            insert(txn, row(8, "carl", 1))?;
            txn.delete("account", (8,)).map(|_| ())
        });
        assert!(heard.one().is_empty(), "{configuration}");

        run(&engine, |txn| {
            txn.delete("account", (7,))?;
            insert(txn, row(7, "dora", 4))
        });
        let again = heard.one();
        // Under `mvcc` another record takes its place.
        let as_update = ["update 7 id=7 owner=dora balance=4"];
        let as_insertion = ["delete 7", "insert 7 id=7 owner=dora balance=4"];
        assert!(
            again == as_update || again == as_insertion,
            "{configuration}: {again:?}"
        );

        if !configuration.looks_at_columns() {
            let program = move_account(&engine);
            let shift = |txn: &mut Transaction<'_>, from: i64, to: i64| {
                let mut arguments = Arguments::new();
                arguments.push_i64(from);
                arguments.push_i64(to);
                txn.run(&program, &mut arguments).map(|_| ())
            };
            run(&engine, |txn| {
                shift(txn, 0, 9)?;
                update(txn, 9, "balance", Value::BigInt(11))?;
                insert(txn, row(0, "eve", 5))
            });
            let expected = [
                "delete 0",
                "insert 0 id=0 owner=eve balance=5",
                "insert 9 id=9 owner=owner 0 balance=11",
            ];
            assert_eq!(heard.one(), expected, "{configuration}");

            run(&engine, |txn| {
                shift(txn, 1, 5)?;
                shift(txn, 7, 1)?;
                shift(txn, 5, 7)
            });
            let expected = [
                "delete 1",
                "delete 7",
                "insert 1 id=1 owner=dora balance=4",
                "insert 7 id=7 owner=ann balance=6",
            ];
            assert_eq!(heard.one(), expected, "{configuration}");

            run(&engine, |txn| {
                shift(txn, 1, 6)?;
                txn.delete("account", (6,)).map(|_| ())
            });
            assert_eq!(heard.one(), ["delete 1"], "{configuration}");
        }

        let rejected = engine.transaction(|txn| {
            insert(txn, row(70, "frank", 1))?;
            insert(txn, row(7, "frank", 1))
        });
        let error = rejected.expect_err("there is one already");
        assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
        assert!(heard.one().is_empty(), "{configuration}");
    }
}

#[test]
fn rows_without_a_key_are_told_by_their_number() {
    for protocol in [Protocol::Silo, Protocol::Mvcc, Protocol::Serial] {
        let engine = bank(small(protocol), 0, 0);
        let created = engine.change_catalog(|change| {
            let schema = TableSchema {
                primary_key: Vec::new(),
                ..account_schema("note")
            };
            change.create_table(schema, 0, Vec::new()).map(|_| ())
        });
        created.expect("the name is free");
        let heard = Heard::listen_to(&engine);
        let loaded = engine.load("note", &["id", "owner", "balance"], [row(1, "ann", 2)]);
        let loaded = loaded.expect("it is new");
        assert!(heard.newest() <= loaded.observed);
        let expected = ["insert a row id=1 owner=ann balance=2"];
        assert_eq!(heard.one(), expected, "{protocol}");
    }
}

#[test]
fn each_way_out_tells_an_epoch_that_covers_what_was_observed() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 2, 100);
        let heard = Heard::listen_to(&engine);
        let table = engine.table("account").expect("it is there");
        let deposit = Arc::new(deposit(&table));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _over = SetOnDrop(&is_over);
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    engine.log_epochs().close();
                    thread::yield_now();
                }
            });
            let mut arguments = Arguments::new();
            let mut bind = || {
                arguments.clear();
                arguments.push_i64(0);
                arguments.push_i64(1);
                std::mem::take(&mut arguments)
            };
            for _ in 0..50 {
                // After each, all that was heard is what it has observed: this is the only client.
                let deposited = engine.execute_observed(Call::new("deposit", (0_i64, 1_i64)));
                assert!(deposited.result.expect("it runs").is_committed());
                assert!(heard.newest() <= deposited.epoch, "{protocol}: call");

                let refused =
                    engine.execute_observed(Call::new("transfer", (0_i64, 1_i64, 1_i64 << 40)));
                assert!(!refused.result.expect("it runs").is_committed());
                assert!(heard.newest() <= refused.epoch, "{protocol}: rejection");

                let ticket = engine.submit(Call::new("deposit", (0_i64, 1_i64)));
                let ticket = ticket.expect("there is room");
                let observed = ticket.wait_observed().epoch;
                assert!(heard.newest() <= observed, "{protocol}: ticket");

                let read = engine.transaction_observed(None, |txn| txn.get("account", (0,)));
                assert!(read.result.expect("it commits").is_some());
                assert!(heard.newest() <= read.epoch, "{protocol}: closure");

                let mut session = engine.session().expect("there is a worker slot");
                session.run(&deposit, &mut bind()).expect("it commits");
                assert!(heard.newest() <= session.observed(), "{protocol}: program");
                session.begin().expect("no block is open");
                session.run(&deposit, &mut bind()).expect("it runs");
                session.commit().expect("no other session is open");
                assert!(heard.newest() <= session.observed(), "{protocol}: block");
                drop(session);

                let mut driver = engine.driver(0).expect("there is a worker slot");
                let handle = engine.procedure("deposit").expect("it is there");
                driver.call(&handle, &mut bind());
                assert!(heard.newest() <= driver.observed(), "{protocol}: driver");
            }
        });
        assert_eq!(lock(&heard.0).len(), 50 * 5, "{protocol}");
    }
}

#[test]
fn listeners_come_and_go_and_need_an_order() {
    let engine = bank(small(Protocol::None).allow_unserializable(true), 1, 100);
    let refused = engine.attach_listeners(Arc::new(Heard::default()));
    let error = refused.expect_err("there is no order");
    assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
    assert!(
        error.to_string().contains("none does not isolate"),
        "{error}"
    );
    engine
        .set_protocol(Protocol::Mvcc)
        .expect("no listener is attached");

    let heard = Heard::listen_to(&engine);
    let add = || {
        let reply = engine.call("deposit", (0_i64, 1_i64)).expect("it runs");
        assert!(reply.is_committed());
    };
    add();
    assert_eq!(heard.one(), ["update 0 balance=101"]);
    let error = engine.set_protocol(Protocol::SiloUnchecked);
    let error = error.expect_err("a listener is attached");
    assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);

    // Its versions may be smaller than those before.
    let before = engine.log_epochs().current();
    engine.set_protocol(Protocol::Silo).expect("it isolates");
    assert!(engine.log_epochs().current() > before);
    add();
    assert_eq!(heard.one(), ["update 0 balance=102"]);

    let others = Heard::listen_to(&engine);
    add();
    assert!(heard.one().is_empty());
    assert_eq!(others.one(), ["update 0 balance=103"]);
    engine.detach_listeners().expect("nothing runs");
    add();
    assert!(others.one().is_empty());
}

/// Breaks down at its first commit.
struct Defective;

impl Listeners for Defective {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(Defective)
    }

    fn note(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        unreachable!("no call has a key: {answer:?}")
    }
}

impl Listener for Defective {
    fn committed(&mut self, _: &Commit<'_>) {
        panic!("a defect, on purpose");
    }
}

#[test]
fn a_worker_that_panics_in_its_window_holds_up_no_epoch() {
    for protocol in [
        Protocol::Silo,
        Protocol::Mvcc,
        Protocol::TwoPhaseLockingNoWait,
    ] {
        let engine = bank(small(protocol).ddl_wait_ms(500), 1, 100);
        let attached = engine.attach_listeners(Arc::new(Defective));
        attached.expect("the protocol isolates transactions");
        let broken = engine.call("deposit", (0_i64, 1_i64));
        assert!(broken.is_err(), "{protocol}");
        let closed = engine.log_epochs().close();
        assert!(closed < engine.log_epochs().current());
        engine.close();
    }
}
