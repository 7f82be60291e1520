//! Changes of the catalog beside transaction blocks that wait for their clients: they wait for the
//! blocks that use what they change, and for no others.

use std::time::Duration;

use kiln::{Configuration, Database, Error, Options, Protocol, Reply, Session, SqlState, Value};
use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::{thread, time};

const SCHEMA: &str = "
    CREATE TABLE used (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
    CREATE TABLE other (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
    CREATE TABLE busy (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
    INSERT INTO used VALUES (1, 10), (2, 20);
    INSERT INTO other VALUES (1, 10), (2, 20);
    INSERT INTO busy VALUES (1, 0), (2, 0);
    CREATE PROCEDURE work(which INTEGER) LANGUAGE plpgsql AS $$
    BEGIN UPDATE busy SET value = value + 1 WHERE id = which; END $$;";

/// All serializable protocols, plain and with all their options.
fn configurations() -> impl Iterator<Item = Configuration> {
    Protocol::serializable().flat_map(|protocol| {
        let plain = Configuration::of(protocol);
        let all = protocol.options().iter().fold(plain, |all, option| {
            all.with(*option).expect("it is one of its options")
        });
        std::iter::once(plain).chain((all != plain).then_some(all))
    })
}

fn open(protocol: Configuration, ddl_wait_ms: u64) -> Database {
    let options = Options::new()
        .workers(2)
        .pin_workers(false)
        .ddl_wait_ms(ddl_wait_ms);
    let database = Database::open(options.protocol(protocol)).expect("a database opens");
    database.execute(SCHEMA).expect("the schema is sound");
    database
}

/// A session whose block has changed a row of `used` and waits for its client.
fn block(database: &Database) -> Session {
    let mut session = database.session().expect("a session is free");
    session
        .execute("BEGIN; UPDATE used SET value = value + 1 WHERE id = 1")
        .expect("no other transaction has the row");
    session
}

fn number(session: &mut Session, query: &str) -> Result<Option<Value>, Error> {
    let rows = session.query(query, ())?.rows;
    Ok(rows.first().and_then(|row| row.first()).cloned())
}

#[test]
fn a_change_goes_on_beside_a_block_that_uses_other_tables() {
    for protocol in configurations() {
        let database = open(protocol, 5_000);
        // Rows whose newest versions are young, and one that is gone.
        for statement in [
            "UPDATE other SET value = 30 WHERE id = 1",
            "INSERT INTO other VALUES (3, 30)",
            "DELETE FROM other WHERE id = 2",
        ] {
            database.execute(statement).expect("nothing conflicts");
        }
        let mut session = block(&database);
        for statement in [
            "CREATE TABLE later (id INTEGER PRIMARY KEY)",
            "CREATE INDEX other_value ON other (value)",
            "CREATE FUNCTION twice(x INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 2 * x'",
            "CREATE PROCEDURE change_other(x INTEGER) LANGUAGE plpgsql AS $$
             BEGIN UPDATE other SET value = x WHERE id = x; END $$",
            "TRUNCATE busy",
        ] {
            let done = database.execute(statement);
            done.unwrap_or_else(|error| panic!("{protocol}: {statement}: {error}"));
        }
        let twice = number(
            &mut session,
            "SELECT value + twice(1) FROM used WHERE id = 1",
        );
        assert_eq!(twice, Ok(Some(Value::Integer(13))), "{protocol}");
        let inserted = session.execute("INSERT INTO later VALUES (5)");
        inserted.unwrap_or_else(|error| panic!("{protocol}: {error}"));
        let later = number(&mut session, "SELECT id FROM later");
        assert_eq!(later, Ok(Some(Value::Integer(5))), "{protocol}");
        session.execute("COMMIT").expect("nothing conflicts");
        let committed = number(&mut session, "SELECT value FROM used WHERE id = 1");
        assert_eq!(committed, Ok(Some(Value::Integer(11))), "{protocol}");
        for (value, count) in [(10, 0), (20, 0), (30, 2)] {
            let query = format!("SELECT count(*) FROM other WHERE value = {value}");
            let found = number(&mut session, &query);
            assert_eq!(found, Ok(Some(Value::BigInt(count))), "{protocol}: {value}");
        }
        database
            .execute("DROP INDEX other_value")
            .expect("no block uses the table");
        database
            .execute("DROP TABLE used")
            .expect("no block uses it any more");
    }
}

#[test]
fn a_block_that_comes_to_a_table_changed_since_it_began_starts_again() {
    for protocol in configurations() {
        let database = open(protocol, 5_000);
        let mut session = block(&database);
        database
            .execute("TRUNCATE other")
            .expect("the block has not used it");
        let count = number(&mut session, "SELECT count(*) FROM other");
        assert_eq!(count, Ok(Some(Value::BigInt(0))), "{protocol}");
        session.execute("COMMIT").expect("nothing conflicts");
        let kept = number(&mut session, "SELECT value FROM used WHERE id = 1");
        assert_eq!(kept, Ok(Some(Value::Integer(11))), "{protocol}");
    }
}

#[test]
fn without_replay_a_block_that_comes_to_a_table_changed_since_it_began_is_refused() {
    for protocol in configurations() {
        let database = open(protocol, 5_000);
        let mut session = block(&database);
        session.set_replay(false);
        database
            .execute("TRUNCATE other")
            .expect("the block has not used it");
        let refused = number(&mut session, "SELECT count(*) FROM other");
        let error = refused.expect_err("it would see the table as it was not");
        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{protocol}");
        assert!(error.message().contains("\"other\""), "{error}");
        session.execute("ROLLBACK").expect("it has failed");
        session.execute("BEGIN").expect("no block is open");
        let count = number(&mut session, "SELECT count(*) FROM other");
        assert_eq!(count, Ok(Some(Value::BigInt(0))), "{protocol}");
        let undone = number(&mut session, "SELECT value FROM used WHERE id = 1");
        assert_eq!(undone, Ok(Some(Value::Integer(10))), "{protocol}");
        session.execute("COMMIT").expect("nothing conflicts");
    }
}

#[test]
fn a_change_waits_for_the_blocks_that_use_its_table_and_names_them() {
    for protocol in configurations() {
        let database = open(protocol, 50);
        let mut session = block(&database);
        for statement in [
            "DROP TABLE used",
            "TRUNCATE used",
            "CREATE INDEX used_value ON used (value)",
            "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES used)",
        ] {
            let error = database.execute(statement).expect_err("a block uses it");
            assert_eq!(
                error.state(),
                SqlState::LOCK_NOT_AVAILABLE,
                "{statement}: {error}"
            );
            assert!(error.message().contains("\"used\""), "{statement}: {error}");
            assert!(error.message().contains("session"), "{statement}: {error}");
        }
        session.execute("COMMIT").expect("nothing has changed");
        database
            .execute("CREATE INDEX used_value ON used (value)")
            .expect("no block uses it any more");
    }
}

#[test]
fn a_table_that_a_change_waits_for_is_barred_to_other_blocks() {
    for protocol in [
        Protocol::Silo,
        Protocol::TwoPhaseLockingNoWait,
        Protocol::Serial,
        Protocol::Vll,
    ] {
        let database = open(protocol.into(), 20_000);
        let mut first = block(&database);
        let (changed, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let created = database.execute("CREATE INDEX used_value ON used (value)");
                created.expect("the first block ends");
                changed.store(true, Ordering::SeqCst);
            });
            while !database.engine().is_awaited("used") {
                thread::sleep(200_000);
            }
            let second = scope.spawn(|| {
                let mut session = database.session().expect("a session is free");
                session.execute("BEGIN").expect("no block is open");
                let value = number(&mut session, "SELECT value FROM used WHERE id = 2");
                (
                    value,
                    ended.load(Ordering::SeqCst),
                    session.execute("COMMIT").is_ok(),
                )
            });
            thread::sleep(30_000_000);
            assert!(!changed.load(Ordering::SeqCst), "{protocol}");
            // The block that uses the table goes on, and so do calls.
            let own = number(&mut first, "SELECT value FROM used WHERE id = 1");
            assert_eq!(own, Ok(Some(Value::Integer(11))), "{protocol}");
            if protocol != Protocol::Serial {
                database
                    .execute("CALL work(1)")
                    .expect("it is another table");
                let mut session = database.session().expect("a session is free");
                let alone = number(&mut session, "SELECT value FROM used WHERE id = 2");
                assert_eq!(alone, Ok(Some(Value::Integer(20))), "{protocol}");
            }
            ended.store(true, Ordering::SeqCst);
            first.execute("COMMIT").expect("nothing conflicts");
            let (value, is_later, is_committed) = second.join().expect("no panic");
            assert_eq!(value, Ok(Some(Value::Integer(20))), "{protocol}");
            assert!(is_later && is_committed, "{protocol}");
        });
    }
}

/// Not where one transaction runs at a time.
#[test]
fn a_call_that_waits_for_a_block_is_not_in_the_way_of_a_change() {
    for protocol in configurations() {
        if protocol.protocol == Protocol::Serial {
            continue;
        }
        let database = open(protocol, 9_000);
        database
            .execute(
                "CREATE PROCEDURE touch() LANGUAGE plpgsql AS $$
                 BEGIN UPDATE used SET value = value + 100 WHERE id = 1; END $$",
            )
            .expect("it is sound");
        let mut session = block(&database);
        thread::scope(|scope| {
            // In sessions, and by workers that may have several calls in flight.
            let touches: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| database.execute("CALL touch()").map(|_| ())))
                .chain((0..3).map(|_| {
                    scope.spawn(|| match database.call("touch", ())? {
                        Reply::Committed(_) => Ok(()),
                        other => panic!("{other:?}"),
                    })
                }))
                .collect();
            thread::sleep(20_000_000);
            for statement in [
                "CREATE TABLE later (id INTEGER PRIMARY KEY)",
                // The calls that wait are compiled anew.
                "CREATE OR REPLACE PROCEDURE touch() LANGUAGE plpgsql AS $$
                 BEGIN UPDATE used SET value = value + 1000 WHERE id = 1; END $$",
            ] {
                let done = database.execute(statement);
                done.unwrap_or_else(|error| panic!("{protocol}: {error}"));
            }
            // Optimists have committed; then it is the block that fails.
            let is_committed = session.execute("COMMIT").is_ok();
            for touch in touches {
                touch.join().expect("no panic").expect("the row comes free");
            }
            let value = number(&mut session, "SELECT value FROM used WHERE id = 1");
            let Ok(Some(Value::Integer(value))) = value else {
                panic!("{protocol}: {value:?}")
            };
            // Five calls, each as the procedure was or as it is.
            let added = value - if is_committed { 11 } else { 10 };
            let is_sum = (0..=5).any(|new| added == 100 * (5 - new) + 1_000 * new);
            assert!(is_sum, "{protocol}: {value}");
        });
    }
}

/// Rows go from one table to another, deleted here and inserted there, while changes of the one are
/// tried in vain: they bring its rows up to date, and leave the table as it is. A block that reads
/// both tables, with time between, sees each row in one of them.
#[test]
fn a_block_sees_one_moment_of_tables_that_changes_left_alone() {
    const ROWS: i64 = 16;
    const DURATION_NS: u64 = 300_000_000;
    let is_tried = |protocol: &Configuration| {
        let name = protocol.to_string();
        name.starts_with("mvcc") || ["silo", "2pl-no-wait", "healing"].contains(&name.as_str())
    };
    for protocol in configurations().filter(is_tried) {
        let database = open(protocol, 200);
        let rows = (0..ROWS).map(|id| format!("({id}, 10)"));
        let rows: Vec<String> = rows.collect();
        let script = format!(
            "CREATE TABLE left_side (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
             CREATE TABLE right_side (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
             INSERT INTO left_side VALUES {};
             INSERT INTO right_side VALUES (100, 10), (101, 10)",
            rows.join(", ")
        );
        database.execute(&script).expect("it is sound");
        let until = time::now_ns() + DURATION_NS;
        let (read, lost, tried) = thread::scope(|scope| {
            scope.spawn(|| {
                let mut session = database.session().expect("a session is free");
                let sides = ["left_side", "right_side"];
                let moves = (0..2).flat_map(|from| (0..ROWS).map(move |id| (from, id)));
                for (from, id) in moves.cycle() {
                    if time::now_ns() >= until {
                        break;
                    }
                    let (from, to) = (sides[from], sides[1 - from]);
                    // What fails is undone; a later round moves the row.
                    let _ = session.execute(&format!(
                        "BEGIN; INSERT INTO {to} SELECT id, value FROM {from} WHERE id = {id};
                         DELETE FROM {from} WHERE id = {id}; COMMIT"
                    ));
                    if session.in_transaction() {
                        session.execute("ROLLBACK").expect("a block is open");
                    }
                }
            });
            let changes = scope.spawn(|| {
                let mut tried = 0;
                while time::now_ns() < until {
                    let create = "CREATE UNIQUE INDEX right_value ON right_side (value)";
                    let error = database.execute(create).expect_err("rows are alike");
                    tried += i64::from(error.state() == SqlState::UNIQUE_VIOLATION);
                    thread::sleep(2_000_000);
                }
                tried
            });
            let mut session = database.session().expect("a session is free");
            let (mut read, mut lost) = (0_u64, 0_u64);
            while time::now_ns() < until {
                let idle_ns = (read + lost) % 4 * 500_000;
                let mut sum = || -> Result<i64, Error> {
                    session.execute("BEGIN")?;
                    let left = number(&mut session, "SELECT count(*) FROM left_side")?;
                    thread::sleep(idle_ns);
                    let right = number(&mut session, "SELECT count(*) FROM right_side")?;
                    session.execute("COMMIT")?;
                    match (left, right) {
                        (Some(Value::BigInt(left)), Some(Value::BigInt(right))) => Ok(left + right),
                        other => panic!("{other:?}"),
                    }
                };
                match sum() {
                    Ok(sum) => {
                        assert_eq!(sum, ROWS + 2, "{protocol}");
                        read += 1;
                    }
                    Err(error) => {
                        let state = error.state();
                        assert_eq!(
                            state,
                            SqlState::SERIALIZATION_FAILURE,
                            "{protocol}: {error}"
                        );
                        session.execute("ROLLBACK").expect("the block has failed");
                        lost += 1;
                    }
                }
            }
            (read, lost, changes.join().expect("no panic"))
        });
        println!("{protocol}: {read} blocks, {lost} began again, {tried} changes in vain");
        assert!(read > 0 && tried > 0, "{protocol}");
    }
}

/// Calls that end in `duration_ns`, and nanoseconds that the longest took.
fn calls(database: &Database, duration_ns: u64) -> (u64, u64) {
    let (calls, longest) = (AtomicU64::new(0), AtomicU64::new(0));
    let until = time::now_ns() + duration_ns;
    thread::scope(|scope| {
        for which in 1..=2 {
            let (calls, longest) = (&calls, &longest);
            scope.spawn(move || {
                let call = format!("CALL work({which})");
                let mut session = database.session().expect("a session is free");
                while time::now_ns() < until {
                    let begin = time::now_ns();
                    session.execute(&call).expect("it always works");
                    longest.fetch_max(time::now_ns() - begin, Ordering::Relaxed);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (calls.into_inner(), longest.into_inner())
}

/// Half a second each, of which a gate that stays shut while a change waits would leave nothing.
#[test]
fn others_go_on_while_a_change_waits_for_an_idle_block() {
    const DURATION_NS: u64 = 500_000_000;
    for protocol in [
        Protocol::Silo,
        Protocol::TwoPhaseLockingNoWait,
        Protocol::Mvcc,
        Protocol::Vll,
    ] {
        let database = open(protocol.into(), 700);
        let mut session = block(&database);
        let (before, _) = calls(&database, DURATION_NS);
        let (beside, longest_ns) = thread::scope(|scope| {
            let change = scope.spawn(|| database.execute("DROP TABLE used"));
            let beside = calls(&database, DURATION_NS);
            let error = change
                .join()
                .expect("no panic")
                .expect_err("a block uses it");
            assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE, "{error}");
            beside
        });
        println!("{protocol}: {before} calls before, {beside} beside, longest {longest_ns} ns");
        assert!(
            beside > before / 3,
            "{protocol}: {before} before, {beside} beside"
        );
        session.execute("COMMIT").expect("nothing has changed");
        // A question about memory holds no transaction up, and is not held up.
        let mut session = block(&database);
        let memory = database.engine().memory();
        assert!(
            memory
                .iter()
                .any(|table| table.table == "used" && table.rows == 2)
        );
        session.execute("ROLLBACK").expect("a block is open");
    }
}

/// A block reads `used`, which another transaction overwrites that has found no row of `other` with
/// some value. The index by which it looked gets another place among the table's, a third
/// transaction inserts such a row and reads `busy`, and the block writes `busy`: it comes before
/// the second transaction and after the third, which comes after the second.
#[test]
fn a_gap_is_remembered_when_its_index_gets_another_place() {
    for protocol in ["tictoc", "tictoc+cu+ts", "silo"] {
        let database = open(protocol.parse().expect("a protocol"), 9_000);
        let run = |text: &str| database.execute(text).expect("the script is good");
        run(
            "CREATE TABLE third (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
             CREATE INDEX third_a ON third (a); CREATE INDEX third_b ON third (b);
             DROP PROCEDURE work",
        );
        for _ in 0..50 {
            run("UPDATE used SET value = value + 1 WHERE id = 1");
        }
        let mut block = database.session().expect("a session is free");
        let begun = block.execute("BEGIN; SELECT value FROM used WHERE id = 1");
        begun.expect("no other transaction is open");
        run(
            "BEGIN; UPDATE used SET value = 0 WHERE id = 1; SELECT id FROM third WHERE b = 7; COMMIT",
        );
        run("DROP INDEX third_a");
        run("INSERT INTO third SELECT 2, value, 7 FROM busy WHERE id = 1");
        let ended = block.execute("UPDATE busy SET value = 1 WHERE id = 1; COMMIT");
        let error = ended.expect_err(protocol);
        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{protocol}");
    }
}

/// A transaction that meets a block again and again, and waits where calls wait, leaves nothing
/// behind there.
#[test]
fn a_call_follows_a_transaction_that_has_waited_in_vain_for_a_block() {
    // Under `partitioned` the other rows may be in the partition of the block's.
    let is_coarse =
        |it: &Configuration| it.is_single_worker() || it.protocol == Protocol::Partitioned;
    for protocol in configurations().filter(|it| !is_coarse(it)) {
        let options = Options::new()
            .workers(1)
            .session_slots(2)
            .pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("a database opens");
        database.execute(SCHEMA).expect("the schema is sound");
        let mut holder = block(&database);
        // The closure has the other slot, and then the statements have it.
        let update = "UPDATE used SET value = value + 1 WHERE id = 1";
        let limit = Duration::from_millis(100);
        let _ = database.transaction_within(limit, |transaction| transaction.execute(update, ()));
        let mut session = database.session().expect("a session is free");
        session
            .execute("SET statement_timeout = '5s'")
            .expect("it is known");
        for round in 1..=3 {
            for id in 1..=2 {
                let update = format!("UPDATE other SET value = value + 1 WHERE id = {id}");
                let done = session.execute(&update);
                done.unwrap_or_else(|error| panic!("{protocol}, round {round}: {error}"));
            }
        }
        // Optimistic protocols let the closure commit, and the block fails then.
        let _ = holder.execute("COMMIT");
    }
}

/// The change waits for calls, these for a block, and that for the change's table. Not where one
/// transaction runs at a time.
#[test]
fn a_block_that_waits_for_a_change_lets_go_what_calls_wait_for() {
    for protocol in configurations() {
        if protocol.protocol == Protocol::Serial {
            continue;
        }
        let database = &open(protocol, 30_000);
        database
            .execute(
                "CREATE PROCEDURE both_tables(which INTEGER) LANGUAGE plpgsql AS $$
                 BEGIN UPDATE busy SET value = value + 1 WHERE id = 1;
                 UPDATE used SET value = value + 1 WHERE id = which; END $$",
            )
            .expect("it is sound");
        let mut first = block(database);
        thread::scope(|scope| {
            let change = scope.spawn(|| {
                let begun_ns = time::now_ns();
                let created = database.execute("CREATE INDEX used_value ON used (value)");
                created.map(|_| time::now_ns() - begun_ns)
            });
            while !database.engine().is_awaited("used") {
                thread::sleep(200_000);
            }
            let second = scope.spawn(|| {
                let mut session = database.session().expect("a session is free");
                session.execute("BEGIN; UPDATE busy SET value = value + 1 WHERE id = 1")?;
                let value = number(&mut session, "SELECT value FROM used WHERE id = 2")?;
                session.execute("COMMIT").map(|_| value)
            });
            // So long that it has come to the table that is barred.
            thread::sleep(5_000_000);
            let calls: Vec<_> = (0..6)
                .map(|number| (1 + 2 * (number % 2),))
                .map(|arguments| scope.spawn(move || database.call("both_tables", arguments)))
                .collect();
            thread::sleep(5_000_000);
            first.execute("COMMIT").expect("nothing conflicts");
            let waited_ns = change.join().expect("no panic");
            let waited_ns = waited_ns.unwrap_or_else(|error| panic!("{protocol}: {error}"));
            assert!(waited_ns < 5_000_000_000, "{protocol}: {waited_ns} ns");
            let value = second.join().expect("no panic");
            assert_eq!(value, Ok(Some(Value::Integer(20))), "{protocol}");
            for call in calls {
                let reply = call.join().expect("no panic");
                assert!(
                    matches!(reply, Ok(Reply::Committed(_))),
                    "{protocol}: {reply:?}"
                );
            }
        });
        let mut session = database.session().expect("a session is free");
        let sum = number(&mut session, "SELECT sum(value) FROM busy");
        assert_eq!(sum, Ok(Some(Value::BigInt(7))), "{protocol}");
    }
}
