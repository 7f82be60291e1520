//! Which columns are split, in a database that runs.

use kiln::{Database, Options, SqlState};
use kiln_engine::{Arguments, Outcome, Procedure};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::{file, thread};
use kiln_procedure::explain;
use kiln_procedure::workload::groups::Weighted;
use kiln_workloads::{Totals, Workload};

/// Opens a database under `protocol` whose changes of the catalog wait for so long.
fn open(protocol: &str, ddl_wait_ms: u64) -> Database {
    let options = Options::new()
        .workers(2)
        .pin_workers(false)
        .ddl_wait_ms(ddl_wait_ms)
        .protocol(protocol.parse::<kiln::Configuration>().expect("a protocol"));
    Database::open(options).expect("a database opens")
}

/// The names of a table's columns that have a timestamp beside the record's.
fn split(database: &Database, table: &str) -> Vec<String> {
    let table = database.engine().table(table).expect("it is there");
    let columns = &table.schema().columns;
    let split = table.split();
    split
        .iter()
        .map(|column| columns[column.index()].name.clone())
        .collect()
}

/// A block reads `x`, which another transaction overwrites together with a column of `t`. That
/// column comes to be split, a third transaction reads it and `y`, and the block writes `y`:
/// it comes before the second transaction and after the third, which has read what the second
/// wrote.
#[test]
fn a_split_that_changes_beside_an_open_block_leaves_transactions_serializable() {
    for protocol in ["silo+cu+ts", "tictoc+ts", "tictoc+cu+ts"] {
        let database = open(protocol, 300);
        let run = |text: &str| database.execute(text).expect("the script is good");
        run("CREATE TABLE x (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
             CREATE TABLE y (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
             CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b INTEGER NOT NULL);
             INSERT INTO x VALUES (1, 0); INSERT INTO y VALUES (1, 0); INSERT INTO t VALUES (1, 0, 0);
             CREATE PROCEDURE w(OUT found INTEGER) LANGUAGE plpgsql AS $$
             BEGIN UPDATE t SET b = b + 1 WHERE id = 1 RETURNING a INTO found; END $$;
             CREATE PROCEDURE r(OUT found INTEGER) LANGUAGE plpgsql AS $$
             BEGIN SELECT a INTO found FROM t WHERE id = 1; END $$;");
        assert_eq!(split(&database, "t"), ["id", "a"]);
        // Timestamps of insertions are known up to a thousand alone.
        for _ in 0..2_500 {
            run("UPDATE x SET v = v + 1 WHERE id = 1");
        }
        let mut block = database.session().expect("a session is free");
        block
            .execute("BEGIN; SELECT v FROM x WHERE id = 1")
            .expect("no other transaction is open");
        run("BEGIN; UPDATE x SET v = v + 1 WHERE id = 1; UPDATE t SET b = 1 WHERE id = 1; COMMIT");
        // No procedure writes the table any more, so that all its columns are split from now
        // on.
        if let Err(error) = database.execute("DROP PROCEDURE w") {
            assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE, "{protocol}");
        }
        let both = "SELECT t.b, y.v FROM t, y WHERE t.id = 1 AND y.id = 1";
        let read = database.query(both, ()).expect("the query is good");
        assert_eq!(read.into_one::<(i32, i32)>(), Ok((1, 0)));
        let ended = block.execute("UPDATE y SET v = 1 WHERE id = 1; COMMIT");
        let error = ended.expect_err(protocol);
        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{protocol}");
    }
}

const SHOP: &str = "
    CREATE TABLE shop (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b INTEGER NOT NULL);
    INSERT INTO shop VALUES (1, 0, 0);
    CREATE PROCEDURE first(OUT found INTEGER) LANGUAGE plpgsql AS $$
    BEGIN UPDATE shop SET b = b + 1 WHERE id = 1 RETURNING a INTO found; END $$;
    CREATE PROCEDURE second(OUT found INTEGER) LANGUAGE plpgsql AS $$
    BEGIN UPDATE shop SET a = a + 1 WHERE id = 1 RETURNING b INTO found; END $$;";

/// Each of two procedures writes the column that the other reads: what the one that is called more
/// often writes is in the base.
#[test]
fn calls_decide_which_columns_are_split() {
    for (often, rarely, expected) in [("first", "second", "a"), ("second", "first", "b")] {
        let database = open("silo+cu+ts", 1_000);
        database.execute(SHOP).expect("the script is good");
        let before = split(&database, "shop");
        let call = |name: &str| {
            let reply = database.call(name, ()).expect("it is there");
            assert!(matches!(reply, kiln::Reply::Committed(_)), "{reply:?}");
        };
        call(rarely);
        (0..1_000).for_each(|_| call(often));
        assert_eq!(split(&database, "shop"), before, "no definition was made");
        database
            .execute("CREATE TABLE elsewhere (id INTEGER PRIMARY KEY)")
            .expect("no block is open");
        let after = split(&database, "shop");
        assert!(after.contains(&expected.to_owned()), "{often}: {after:?}");
        let other = if expected == "a" { "b" } else { "a" };
        assert!(!after.contains(&other.to_owned()), "{often}: {after:?}");
    }
}

/// A better split is worth no wait to a definition of something else; ANALYZE waits for it.
#[test]
fn a_definition_of_something_else_does_not_wait_for_a_better_split() {
    for protocol in ["silo+cu+ts", "tictoc+ts", "mvcc+cu+ts"] {
        let database = open(protocol, 50);
        database.execute(SHOP).expect("the script is good");
        let before = split(&database, "shop");
        let often = if before == ["a"] { "second" } else { "first" };
        for _ in 0..1_000 {
            database.call(often, ()).expect("it is there");
        }
        let mut block = database.session().expect("a session is free");
        block
            .execute("BEGIN; SELECT a FROM shop")
            .expect("no other transaction is open");
        database
            .execute("CREATE TABLE elsewhere (id INTEGER PRIMARY KEY)")
            .unwrap_or_else(|error| panic!("{protocol}: {error}"));
        assert_eq!(split(&database, "shop"), before, "{protocol}");
        let error = database
            .execute("ANALYZE")
            .expect_err("a block uses the table");
        assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE, "{error}");
        block
            .execute("COMMIT")
            .expect("no transaction is in the way");
        database.execute("ANALYZE").expect("no block is open");
        assert_ne!(split(&database, "shop"), before, "{protocol}");
    }
}

/// Whatever way calls take, those that commit are counted, and no others.
#[test]
fn calls_are_counted_under_every_protocol() {
    for protocol in kiln::Protocol::serializable() {
        let database = open(&protocol.to_string(), 1_000);
        database.execute(SHOP).expect("the script is good");
        database
            .execute(
                "CREATE PROCEDURE third() LANGUAGE plpgsql AS $$
                 BEGIN UPDATE shop SET a = 1 WHERE id = 1; RAISE EXCEPTION 'no'; END $$",
            )
            .expect("it is sound");
        let calls = |name: &str| {
            let catalog = database.engine().catalog();
            catalog.procedure(name).expect("it is there").calls()
        };
        let handle = database.engine().procedure("first").expect("it is there");
        let mut driver = database.engine().driver(0).expect("a worker slot is free");
        for _ in 0..5 {
            database.call("first", ()).expect("it is there");
            database.execute("CALL first(NULL)").expect("it is sound");
            let outcome = driver.call(&handle, &mut Arguments::new());
            assert!(matches!(outcome, Outcome::Committed), "{protocol}");
            database.call("third", ()).expect("it is there");
            let error = database.execute("CALL third()").expect_err("it raises");
            assert_eq!(error.message(), "no", "{protocol}");
        }
        drop(driver);
        assert_eq!((calls("first"), calls("third")), (15, 0), "{protocol}");
    }
}

/// ANALYZE does it at once, for all tables or for those named; calls of blocks count when the block
/// has committed.
#[test]
fn analyze_splits_anew() {
    let database = open("silo+cu+ts", 1_000);
    database.execute(SHOP).expect("the script is good");
    let run = |text: &str| database.execute(text).expect("the statement is good");
    run("CREATE TABLE elsewhere (id INTEGER PRIMARY KEY)");
    let calls = |name: &str| {
        let catalog = database.engine().catalog();
        catalog.procedure(name).expect("it is there").calls()
    };
    let block = |calls: usize, end: &str| {
        run(&format!(
            "BEGIN; {} {end}",
            "CALL first(NULL);".repeat(calls)
        ));
    };
    block(30, "ROLLBACK");
    assert_eq!((calls("first"), calls("second")), (0, 0));
    (0..50).for_each(|_| block(30, "COMMIT"));
    run("CALL second(NULL)");
    // What statements call within expressions, and what is rejected, is no call of its own.
    run("SELECT 1; DO $$ BEGIN NULL; END $$");
    assert_eq!((calls("first"), calls("second")), (1_500, 1));

    let before = split(&database, "shop");
    run("ANALYZE elsewhere");
    assert_eq!(split(&database, "shop"), before);
    let version = database.engine().catalog().version();
    run("ANALYZE elsewhere, shop");
    let counted = split(&database, "shop");
    assert_ne!(counted, before, "then all weighed the same");
    assert!(counted.contains(&"a".to_owned()), "{counted:?}");
    assert!(!counted.contains(&"b".to_owned()), "{counted:?}");
    assert_eq!(database.engine().catalog().version(), version + 1);

    // About as many of both: neither split is better by a tenth.
    (0..1_500).for_each(|_| run("CALL second(NULL)").clear());
    run("ANALYZE");
    assert_eq!(split(&database, "shop"), counted);
    // Who replaces a procedure does not change how often clients call it.
    run(
        "CREATE OR REPLACE PROCEDURE second(OUT found INTEGER) LANGUAGE plpgsql AS $$
         BEGIN UPDATE shop SET a = a + 2 WHERE id = 1 RETURNING b INTO found; END $$",
    );
    assert_eq!(calls("second"), 1_501);
    run("DROP PROCEDURE second");
    for (text, state) in [
        ("ANALYZE nothing", SqlState::UNDEFINED_TABLE),
        ("ANALYZE nothing (a)", SqlState::UNDEFINED_TABLE),
        ("ANALYZE shop,", SqlState::SYNTAX_ERROR),
        ("ANALYZE shop elsewhere", SqlState::SYNTAX_ERROR),
        ("BEGIN; ANALYZE", SqlState::ACTIVE_SQL_TRANSACTION),
    ] {
        let error = database.execute(text).expect_err(text);
        assert_eq!(error.state(), state, "{text}");
    }
}

/// A split is kept with the catalog, and the calls that it came from are not: what is rebuilt goes
/// on with it. A statement that is made again splits tables as it did, whatever was called since.
#[test]
fn splits_are_kept_and_calls_are_not() {
    let options = || Options::new().workers(1).pin_workers(false);
    let database = Database::open(options()).expect("a database opens");
    let again = Database::open(options()).expect("a database opens");
    let run = |text: &str| {
        let mut session = database.session().expect("a session is free");
        for source in kiln_sql::parse::script(text) {
            let before = database.engine().catalog().version();
            session.execute_statement(&source).expect(source.text);
            let catalog = database.engine().catalog();
            if catalog.version() != before {
                let statement = catalog.statement().expect("a statement made it");
                let kept = statement.to_string().parse().expect("it was written");
                again.redo(&kept).expect("it is the next one");
            }
        }
    };
    run(&SHOP.replace("INSERT INTO shop VALUES (1, 0, 0);", ""));
    run(
        "CREATE PROCEDURE other(OUT found INTEGER) LANGUAGE plpgsql AS $$
         BEGIN SELECT a INTO found FROM shop WHERE id = 2; END $$",
    );
    let equal = split(&database, "shop");
    let often = if equal.contains(&"a".to_owned()) {
        "second"
    } else {
        "first"
    };
    let catalog = database.engine().catalog();
    catalog
        .procedure(often)
        .expect("it is there")
        .assume_calls(1_000_000);
    run("ANALYZE");
    let counted = split(&database, "shop");
    assert_ne!(counted, equal, "{often}");
    run("TRUNCATE shop; CREATE INDEX shop_id ON shop (id)");
    assert_eq!(split(&database, "shop"), counted);
    assert_eq!(split(&again, "shop"), counted);

    let text = database
        .engine()
        .written_catalog()
        .expect("it is SQL")
        .to_string();
    let written = text.parse().expect("it was written");
    let rebuilt = Database::rebuild(options(), &written).expect("it can be rebuilt");
    assert_eq!(split(&rebuilt, "shop"), counted);
    assert_eq!(
        rebuilt
            .engine()
            .written_catalog()
            .expect("it is SQL")
            .to_string(),
        text
    );
    // Nothing was counted here, and nothing that procedures do with the table changes.
    for statement in ["ANALYZE", "CREATE TABLE elsewhere (id INTEGER PRIMARY KEY)"] {
        rebuilt.execute(statement).expect(statement);
        assert_eq!(split(&rebuilt, "shop"), counted, "{statement}");
    }
}

/// The split of each table, as one line.
fn splits(database: &Database) -> String {
    let catalog = database.engine().catalog();
    let lines = catalog.tables().map(|(name, table)| {
        let split = match table.split().len() {
            0 => "–".to_owned(),
            all if all == table.schema().columns.len() => "all".to_owned(),
            _ => self::split(database, name).join(", "),
        };
        format!("  {name}: {split}\n")
    });
    lines.collect()
}

/// What `kiln explain --tables` says of them says the same.
fn check_explained(database: &Database) {
    let catalog = database.engine().catalog();
    let procedures: Vec<_> = catalog.procedures().collect();
    let weighted = |procedure: &&Arc<Procedure>| (procedure.program().clone(), 1.0);
    let programs: Vec<_> = procedures.iter().map(weighted).collect();
    let programs: Vec<Weighted<'_>> = programs
        .iter()
        .map(|(program, weight)| Weighted {
            program,
            weight: *weight,
        })
        .collect();
    let text = explain::tables(&programs);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for section in text.split("\n\n") {
        let (name, _) = section.split_once(':').expect("a table's name");
        let table = catalog.table(name).expect("there is such a table");
        let columns = split(database, name);
        match columns.len() {
            0 => assert!(!section.contains("  base"), "{section}"),
            all if all == table.schema().columns.len() => {
                assert!(words(section).contains("base 0 % 0 % –"), "{section}");
            }
            _ => assert!(words(section).contains(&columns.join(", ")), "{section}"),
        }
    }
}

/// The splits of all workloads: as they are created, and when a fixed series of calls has run.
#[test]
fn golden_splits() {
    let mut text = String::new();
    for workload in Workload::all().into_iter().map(Workload::small) {
        let database = kiln_lab::loaded(&workload, 1, 0).expect("it loads");
        let engine = database.engine();
        let before = splits(&database);
        check_explained(&database);
        text += &format!("{}\n{before}", workload.name());
        let handles: Vec<_> = workload
            .procedures()
            .iter()
            .map(|procedure| engine.procedure(procedure.name).expect("it is there"))
            .collect();
        let mut driver = engine.driver(0).expect("a worker slot is free");
        let mut terminals = workload.terminals(1, 1);
        for _ in 0..5_000 {
            let mut arguments = Arguments::new();
            let call = terminals[0].next(&mut arguments);
            let handle = &handles[call.procedure.0];
            match driver.call(handle, &mut arguments) {
                Outcome::Committed => {
                    let rows = driver.values(handle).expect("it was the last call");
                    terminals[0].committed(call, &rows);
                }
                Outcome::Rejected(error) => {
                    let expected = workload.expected_rejections();
                    assert!(expected.contains(&error.state().as_str()), "{error}");
                }
                Outcome::Expired => unreachable!("no call has a deadline"),
            }
        }
        database.execute("ANALYZE").expect("no block is open");
        check_explained(&database);
        let after = splits(&database);
        let calls = match before == after {
            true => "the same\n".to_owned(),
            false => format!("\n{after}"),
        };
        text += &format!("  after 5000 calls: {calls}\n");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/splits.txt");
    if std::env::var_os("KILN_UPDATE_GOLDEN").is_some() {
        file::write(path.as_ref(), text.as_bytes()).expect("the golden file is writable");
    }
    let expected = file::read_to_string(path.as_ref()).expect("the golden file exists");
    assert!(expected == text, "expected\n{expected}\nbut is\n{text}");
}

/// Calls of TPC-C and blocks of queries beside splits that change all the time: each is
/// serializable, and the books balance.
#[test]
fn transactions_beside_analyze_are_serializable() {
    const CALLS: u64 = 4_000;
    const ROUNDS: u32 = 16;
    for protocol in ["silo+cu+ts", "tictoc+cu+ts", "mvcc+cu+ts"] {
        let workload = Workload::by_name("tpcc").expect("it is there").small();
        let database = kiln_lab::loaded(&workload, 1, 0).expect("it loads");
        let engine = database.engine();
        let configuration: kiln::Configuration = protocol.parse().expect("a protocol");
        engine.set_protocol(configuration).expect("nothing runs");
        engine.record_history(32 << 20).expect("there is memory");
        let procedures = workload.procedures().iter();
        let handles: Vec<_> = procedures
            .map(|procedure| engine.procedure(procedure.name).expect("it is there"))
            .collect();
        let (totals, ended) = (Mutex::new(Totals::new(handles.len())), AtomicU64::new(0));
        let changed = AtomicU64::new(0);
        thread::scope(|scope| {
            for (worker, mut terminal) in workload.terminals(1, 2).into_iter().enumerate() {
                let (totals, ended, changed) = (&totals, &ended, &changed);
                let (workload, handles) = (&workload, &handles);
                let mut driver = engine.driver(worker).expect("a worker slot is free");
                scope.spawn(move || {
                    let mut calls = 0;
                    while calls < CALLS || changed.load(Ordering::Relaxed) < u64::from(ROUNDS) {
                        if driver.is_history_full() {
                            break;
                        }
                        calls += 1;
                        let mut arguments = Arguments::new();
                        let call = terminal.next(&mut arguments);
                        let handle = &handles[call.procedure.0];
                        match driver.call(handle, &mut arguments) {
                            Outcome::Committed => {
                                let rows = driver.values(handle).expect("the last call");
                                terminal.committed(call, &rows);
                            }
                            Outcome::Rejected(error) => {
                                let expected = workload.expected_rejections();
                                assert!(expected.contains(&error.state().as_str()), "{error}");
                            }
                            Outcome::Expired => unreachable!("no call has a deadline"),
                        }
                    }
                    lock(totals).merge(terminal.totals());
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }
            scope.spawn(|| {
                let mut session = database.session().expect("a session is free");
                while ended.load(Ordering::Relaxed) < 2 {
                    for text in [
                        "BEGIN; SELECT sum(w_ytd) FROM warehouse",
                        "SELECT sum(d_tax), sum(d_ytd) FROM district",
                        "SELECT c_last, c_balance FROM customer WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
                        "COMMIT",
                    ] {
                        if let Err(error) = session.execute(text) {
                            assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{error}");
                            session.execute("ROLLBACK").expect("no error");
                            break;
                        }
                    }
                }
            });
            scope.spawn(|| {
                // Each procedure in its turn is called more often by far than all others.
                let mut before = splits(&database);
                let mut differences = 0;
                for round in 0..ROUNDS {
                    let catalog = engine.catalog();
                    let names = ["payment", "new_order", "delivery", "order_status"];
                    let name = names[round as usize % names.len()];
                    let procedure = catalog.procedure(name).expect("it is there");
                    procedure.assume_calls(10_000 << (3 * round));
                    if let Err(error) = database.execute("ANALYZE") {
                        assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE, "{error}");
                    }
                    let after = splits(&database);
                    differences += u64::from(after != before);
                    before = after;
                    changed.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(10_000_000);
                }
                assert!(differences >= 3, "{protocol}: {differences} splits changed");
            });
        });
        let history = engine.take_history().expect("it is complete");
        engine
            .set_protocol(kiln::Protocol::default())
            .expect("nothing runs");
        let totals = lock(&totals).clone();
        let audit = kiln_lab::audit::audit(&database, &workload, 1, &totals).expect("it runs");
        assert!(audit.passed(), "{protocol}: {:?}", audit.violations);
        let options = kiln_checker::Options {
            order: match configuration.is_strict() {
                true => kiln_checker::Order::Strict,
                false => kiln_checker::Order::Serializable,
            },
            ..kiln_checker::Options::default()
        };
        let report = kiln_checker::check(&history, &options).expect("it can be judged");
        assert!(report.is_serializable(), "{protocol}: {report}");
    }
}
