//! Data directories: what was answered is there when the database is opened again.

#![cfg(not(kiln_sim))]

use std::path::Path;

use crate::files::temporary;
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::{thread, time};
use kiln_sql::{
    Call, Database, IdempotencyKey, Options, Protocol, Recovery, Reply, Session, SqlState,
};

fn options(directory: &TemporaryDirectory) -> Options {
    let path = directory.path().join("data");
    Options::new()
        .workers(2)
        .pin_workers(false)
        .log_segment_bytes(256 << 10)
        .data_dir(Some(path))
}

fn rows(database: &Database, query: &str) -> Vec<String> {
    let result = database.query(query, ()).expect("the query runs");
    let csv = result.to_csv();
    csv.lines().skip(1).map(str::to_owned).collect()
}

/// Tables of all kinds, with what becomes of rows.
const SCRIPT: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, balance NUMERIC(12, 2) NOT NULL, UNIQUE (owner));
CREATE TABLE note (about INTEGER, text TEXT);
CREATE INDEX note_about ON note (about);
CREATE FUNCTION pay(payer INTEGER, payee INTEGER, amount NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE left_over NUMERIC;
BEGIN
    UPDATE account SET balance = balance - amount WHERE id = payer RETURNING balance INTO left_over;
    IF left_over < 0 THEN RAISE EXCEPTION 'not enough'; END IF;
    UPDATE account SET balance = balance + amount WHERE id = payee;
    INSERT INTO note VALUES (payer, 'paid ' || amount);
    RETURN left_over;
END $$;
INSERT INTO account SELECT i, 'owner ' || i, 100 FROM generate_series(1, 50) i;
SELECT pay(1, 2, 30);
SELECT pay(2, 3, 99.5);
UPDATE account SET id = 1000 + id WHERE id > 40;
DELETE FROM account WHERE id = 7;
INSERT INTO account VALUES (7, NULL, 1);
UPDATE account SET owner = repeat('long ', 40) WHERE id = 8;
UPDATE note SET text = repeat('long ', 200) WHERE about = 1;
UPDATE account SET owner = 'x' WHERE id = 9;
UPDATE account SET owner = 'owner 9' WHERE id = 10;
UPDATE account SET owner = 'owner 10' WHERE id = 9;
CREATE TABLE gone (id INTEGER PRIMARY KEY);
INSERT INTO gone VALUES (1), (2);
TRUNCATE gone;
INSERT INTO gone VALUES (3);
CREATE TABLE dropped (id INTEGER PRIMARY KEY);
INSERT INTO dropped VALUES (1);
DROP TABLE dropped;
CREATE INDEX account_balance ON account (balance);
DELETE FROM note WHERE about = 2;
CREATE TABLE list (id INTEGER PRIMARY KEY, numbers INTEGER[], names VARCHAR(80)[] NOT NULL DEFAULT '{one,NULL}', sums NUMERIC(8, 2)[]);
INSERT INTO list (id, numbers, sums) SELECT i, ARRAY(SELECT x * 100 FROM generate_series(1, i) x), ARRAY[i, NULL] FROM generate_series(1, 20) i;
UPDATE list SET numbers[3] = -1, names = names || repeat('long ', 9)::varchar(80) WHERE id > 10;
UPDATE list SET numbers = NULL, sums = sums || 0.5 WHERE id = 5;
DELETE FROM list WHERE id = 6;
ALTER TABLE list ADD COLUMN days DATE[] DEFAULT '{2020-01-31}', ADD COLUMN at TIME DEFAULT '10:11:12.5', ALTER numbers TYPE BIGINT[];
CREATE INDEX list_at ON list (at);
CREATE TABLE computed (id INTEGER PRIMARY KEY, twice INTEGER GENERATED ALWAYS AS (id * 2) STORED, seen TEXT);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_WHEN = 'BEFORE' THEN
        NEW.seen := TG_OP;
        RETURN NEW;
    END IF;
    INSERT INTO note VALUES (100 + NEW.id, 'made');
    RETURN NULL;
END $$;
CREATE TRIGGER before BEFORE INSERT OR UPDATE ON computed FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER after AFTER INSERT ON computed FOR EACH ROW EXECUTE FUNCTION see();
INSERT INTO computed SELECT i FROM generate_series(1, 9) i;
ALTER TABLE computed ADD COLUMN thrice INTEGER GENERATED ALWAYS AS (id * 3) STORED;
UPDATE computed SET id = id + 10 WHERE id > 5;
CREATE TYPE spot AS (x INTEGER, name VARCHAR(80), tags TEXT[]);
CREATE TABLE placed (id INTEGER PRIMARY KEY, at spot, former spot[]);
CREATE FUNCTION moved(which INTEGER, by INTEGER) RETURNS spot LANGUAGE plpgsql AS $$
DECLARE here spot;
BEGIN
    SELECT (at).x, (at).name, (at).tags INTO here FROM placed WHERE id = which;
    here.x := here.x + by;
    UPDATE placed SET former = former || at, at = here WHERE id = which;
    RETURN here;
END $$;
INSERT INTO placed SELECT i, ROW(i, 'spot ' || i, ARRAY['a', NULL]), '{}' FROM generate_series(1, 9) i;
INSERT INTO placed VALUES (10, NULL, NULL), (11, ROW(NULL, repeat('long ', 9), NULL), NULL);
SELECT moved(3, 5);
SELECT moved(3, 5);
UPDATE placed SET at = ROW((at).x, repeat('long ', 15), (at).tags) WHERE id = 4;
DELETE FROM placed WHERE at = ROW(5, 'spot 5'::varchar, ARRAY['a', NULL])::spot;
";

const QUERIES: [&str; 11] = [
    "SELECT * FROM account ORDER BY id",
    "SELECT * FROM note ORDER BY about, text",
    "SELECT * FROM gone",
    "SELECT id FROM account WHERE owner = 'owner 9'",
    "SELECT id FROM account WHERE balance < 100 ORDER BY balance",
    "SELECT count(*) FROM note WHERE about = 1",
    "SELECT * FROM list ORDER BY id",
    "SELECT id FROM list WHERE at = '10:11:12.5' ORDER BY id",
    "SELECT * FROM computed ORDER BY id",
    "SELECT * FROM placed ORDER BY id",
    "SELECT at FROM placed ORDER BY at DESC",
];

fn all(database: &Database) -> Vec<Vec<String>> {
    QUERIES.map(|query| rows(database, query)).into()
}

#[test]
fn every_protocol_finds_again_what_another_has_answered() {
    let protocols: Vec<Protocol> = Protocol::ALL
        .into_iter()
        .filter(|protocol| protocol.is_serializable())
        .collect();
    for (position, protocol) in protocols.iter().enumerate() {
        let directory = temporary();
        let database = Database::open(options(&directory).protocol(*protocol)).expect("it is new");
        database.execute(SCRIPT).expect("the script runs");
        let before = all(&database);
        let catalog = database
            .engine()
            .written_catalog()
            .expect("it can be written");
        drop(database);
        // Twice: what the first one opens and adds nothing to is the same for the second.
        let next = protocols[(position + 1) % protocols.len()];
        for protocol in [*protocol, next] {
            let database =
                Database::open(options(&directory).protocol(protocol)).expect("it is there");
            assert_eq!(all(&database), before, "{protocol}");
            let again = database
                .engine()
                .written_catalog()
                .expect("it can be written");
            assert_eq!(again.to_string(), catalog.to_string(), "{protocol}");
        }
        let database = Database::open(options(&directory).protocol(next)).expect("it is there");
        database.execute("SELECT pay(3, 4, 50); CREATE TABLE later (id INTEGER PRIMARY KEY); INSERT INTO later VALUES (1); INSERT INTO note VALUES (5, 'new')").expect("it runs");
        let (before, later) = (all(&database), rows(&database, "SELECT * FROM later"));
        drop(database);
        let database = Database::open(options(&directory)).expect("it is there");
        assert_eq!(all(&database), before, "{next}");
        assert_eq!(rows(&database, "SELECT * FROM later"), later);
        let recovery = database.recovery().expect("it has a directory");
        assert!(
            recovery.commits > 10 && recovery.statements >= 9 && recovery.cut.is_none(),
            "{recovery:?}"
        );
    }
}

#[test]
fn a_directory_has_one_database_at_a_time() {
    let directory = temporary();
    let database = Database::open(options(&directory)).expect("it is new");
    let refused = Database::open(options(&directory)).expect_err("it is open");
    assert_eq!(refused.state(), SqlState::OBJECT_IN_USE, "{refused}");
    database.close();
    Database::open(options(&directory)).expect("it was closed");
}

/// Fills tables, and changes them while checkpoints are written.
#[test]
fn checkpoints_of_a_busy_database_are_recovered_under_every_protocol() {
    let protocols = Protocol::ALL.into_iter();
    for protocol in protocols.filter(|protocol| protocol.is_serializable()) {
        let directory = temporary();
        let options = options(&directory).protocol(protocol);
        let database = Database::open(options.clone()).expect("it is new");
        database.execute(SCRIPT).expect("the script runs");
        database
            .execute(
                "CREATE TABLE many (id INTEGER PRIMARY KEY, value INTEGER NOT NULL, text TEXT);
                 INSERT INTO many SELECT i, 0, 'row ' || i FROM generate_series(1, 3000) i;
                 CREATE INDEX many_value ON many (value);",
            )
            .expect("it runs");
        let stop = AtomicBool::new(false);
        let (reports, changed) = thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut changed = 0;
                let mut session = database.session().expect("there is room");
                while !stop.load(Ordering::Relaxed) {
                    changed += 1;
                    let id = changed * 97 % 3_000 + 1;
                    for statement in [
                        format!("UPDATE many SET value = value + 1 WHERE id = {id}"),
                        format!("DELETE FROM many WHERE id = {}", id % 3_000 + 1),
                        format!("INSERT INTO many VALUES ({}, 1, 'again')", id % 3_000 + 1),
                        "UPDATE account SET balance = balance - 1 WHERE id = 1".to_owned(),
                        "UPDATE account SET balance = balance + 1 WHERE id = 3".to_owned(),
                        format!("INSERT INTO note VALUES ({changed}, 'busy')"),
                        format!("CREATE TABLE t{changed} AS SELECT 1"),
                    ] {
                        // Not all of them exist.
                        let _ = session.run(&statement, ());
                    }
                    if changed % 10 == 0 {
                        let name = format!("many_{changed}");
                        let create = format!("CREATE UNIQUE INDEX {name} ON many (id, value)");
                        session.run(&create, ()).expect("it is unique");
                        session.run("TRUNCATE gone", ()).expect("it is there");
                        session
                            .run("INSERT INTO gone VALUES (1)", ())
                            .expect("it is empty");
                    }
                }
                changed
            });
            let mut reports = Vec::new();
            for _ in 0..4 {
                reports.push(database.engine().checkpoint());
            }
            stop.store(true, Ordering::Relaxed);
            (reports, worker.join().expect("it ends"))
        });
        for report in &reports {
            let report = report.as_ref().expect("it is written");
            assert!(report.rows > 2_900, "{report:?}");
        }
        println!("{protocol}: {changed} rounds, {:?}", reports[3]);
        database
            .execute("UPDATE many SET value = -1 WHERE id = 5")
            .expect("it runs");
        let queries = [
            "SELECT * FROM many ORDER BY id",
            "SELECT id FROM many WHERE value > 0 ORDER BY value, id",
        ];
        let of = |database: &Database| (all(database), queries.map(|query| rows(database, query)));
        let before = of(&database);
        drop(database);
        for threads in [1, 2, 3, 7] {
            let options = options.clone().recovery_threads(threads);
            let database = Database::open(options).expect("it is there");
            assert!(of(&database) == before, "{protocol}, {threads} threads");
            let recovery = database.recovery().expect("it has a directory");
            assert_eq!(recovery.checkpoint, Some(4), "{recovery:?}");
        }
    }
}

#[test]
fn synchronous_commit_is_a_setting_of_a_session() {
    let directory = temporary();
    let database = Database::open(options(&directory)).expect("it is new");
    let mut session = database.session().expect("there is room");
    let shown = |session: &mut Session| {
        let shown = session
            .query("SHOW synchronous_commit", ())
            .expect("it is known");
        shown.into_one::<(String,)>().expect("it has a value").0
    };
    assert_eq!(shown(&mut session), "on");
    for (value, is) in [
        ("off", "off"),
        ("local", "local"),
        ("FALSE", "off"),
        ("'on'", "on"),
    ] {
        let set = format!("SET synchronous_commit = {value}");
        session.run(&set, ()).expect("it is a value");
        assert_eq!(shown(&mut session), is, "{value}");
    }
    let refused = session.run("SET synchronous_commit = perhaps", ());
    let refused = refused.expect_err("it is no value");
    assert_eq!(refused.state(), SqlState::INVALID_PARAMETER_VALUE);
    // What one session does not wait for, another one that reads it does.
    session
        .run("CREATE TABLE t (id INTEGER PRIMARY KEY)", ())
        .expect("it is new");
    session
        .run("SET synchronous_commit = off", ())
        .expect("it is a value");
    for id in 0..200 {
        session
            .run(&format!("INSERT INTO t VALUES ({id})"), ())
            .expect("it is new");
        let seen = database
            .query("SELECT count(*) FROM t", ())
            .expect("it runs");
        assert_eq!(seen.into_one::<(i64,)>().expect("one row"), (id + 1,));
        let log = database.engine().log().expect("there is one");
        assert!(
            log.is_durable(log.newest()),
            "the reader waited for what it has seen"
        );
    }
}

#[test]
fn checkpoints_are_written_when_the_log_has_grown_and_bound_it() {
    let directory = temporary();
    let options = options(&directory).checkpoint_log_bytes(1 << 20);
    let database = Database::open(options.clone()).expect("it is new");
    database
        .execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, number INTEGER, text TEXT);
             INSERT INTO t SELECT i, 0, repeat('x', 1000) FROM generate_series(1, 100) i;",
        )
        .expect("it runs");
    let mut rounds = 0;
    let engine = database.engine();
    let (log, data) = (engine.log().expect("there is one"), engine.data_directory());
    let data = data.expect("it has one");
    // The log begins later and later.
    let began = time::now_ns();
    let is_late = || time::now_ns() - began > 60_000_000_000;
    while data.manifest().first_segment < 8 && !is_late() {
        rounds += 1;
        let update = "UPDATE t SET number = number + 1, text = repeat('y', 1000)";
        database.execute(update).expect("it runs");
    }
    let first = data.manifest().first_segment;
    assert!(first >= 8, "the log begins with segment {first}");
    // And its files go, but for those that are used again.
    let segments = || data.log().list().expect("it can be read").len() as u64;
    let needed = log.segment() - first + 4;
    while segments() > needed && !is_late() {
        thread::sleep(10_000_000);
    }
    assert!(
        segments() <= needed,
        "{} segments, {needed} needed",
        segments()
    );
    let last = database.engine().last_checkpoint().expect("there was one");
    let report = last.expect("it could be written");
    assert!(report.rows == 100, "{report:?}");
    let estimate_s = database
        .engine()
        .recovery_estimate_s()
        .expect("it has a directory");
    assert!(estimate_s > 0.0 && estimate_s < 1.0, "{estimate_s}");
    drop(data);
    drop(database);
    let database = Database::open(options).expect("it is there");
    let query = "SELECT count(*), min(number), max(number), min(text) = repeat('y', 1000) FROM t";
    assert_eq!(rows(&database, query), [format!("100,{rounds},{rounds},t")]);
    let recovery = database.recovery().expect("it has a directory");
    assert!(recovery.checkpoint >= Some(2), "{recovery:?}");
}

/// Copies a directory as a crash would leave it: what is acknowledged is in its files.
fn copy(from: &Path, to: &Path) {
    let (from, to) = (Directory::open(from), Directory::create(to));
    let (from, to) = (
        from.expect("it is there"),
        to.expect("the test may write there"),
    );
    for entry in from.list().expect("it can be read") {
        let name = entry.name.as_str();
        if entry.is_directory {
            copy(&from.path().join(name), &to.path().join(name));
            continue;
        }
        let mut bytes = vec![0; entry.bytes as usize];
        let file = from.open_file(name).expect("it is there");
        let read = file.read_at(0, &mut bytes).expect("it can be read");
        let copied = to
            .create_file(name)
            .and_then(|file| file.write_at(0, &bytes[..read]));
        copied.expect("there is room");
    }
}

#[test]
fn calls_with_keys_are_answered_after_a_crash_and_not_run_again() {
    // With checkpoints the part of the log goes in which the answers were first.
    for (protocol, checkpoints) in [
        (Protocol::Silo, 0),
        (Protocol::TwoPhaseLockingNoWait, 1),
        (Protocol::Strife, 4),
    ] {
        let (directory, crashed) = (temporary(), temporary());
        let database = Database::open(options(&directory).protocol(protocol)).expect("it is new");
        database.execute(SCRIPT).expect("the script runs");
        let total = "CREATE FUNCTION total() RETURNS NUMERIC LANGUAGE plpgsql STABLE AS $$ DECLARE s NUMERIC; \
             BEGIN SELECT sum(balance) INTO s FROM account; RETURN s; END $$";
        database.execute(total).expect("it compiles");
        let calls = || {
            let key = |name: &str| IdempotencyKey::new(name).expect("it is short");
            [
                Call::new("pay", (3_i32, 4_i32, "20.5")).idempotency_key(key("pays")),
                Call::new("pay", (5_i32, 6_i32, "1000")).idempotency_key(key("is refused")),
                Call::new("total", ()).idempotency_key(key("reads")),
            ]
        };
        let engine = database.engine();
        let replies = calls().map(|call| engine.execute(call).expect("it runs"));
        assert!(replies[0].is_committed() && replies[2].is_committed());
        assert!(matches!(replies[1], Reply::Rejected(_)));
        database
            .execute("UPDATE account SET balance = balance + 1")
            .expect("it runs");
        for _ in 0..checkpoints {
            engine.checkpoint().expect("it is written");
            let fill = "UPDATE note SET text = repeat('x', 1000000)";
            database.execute(fill).expect("it runs");
        }
        let data = engine.data_directory().expect("it has one");
        assert_eq!(data.manifest().first_segment > 1, checkpoints > 1);
        drop(data);
        let before = all(&database);
        copy(directory.path(), crashed.path());
        drop(database);
        for directory in [&directory, &crashed] {
            let database = Database::open(options(directory)).expect("it is there");
            let engine = database.engine();
            let again = calls().map(|call| engine.execute(call).expect("it is known"));
            assert_eq!(again, replies, "{protocol}");
            assert_eq!(all(&database), before, "{protocol}");
        }
    }
}

/// A checkpoint writes the answers again that are remembered, and the oldest is forgotten first all
/// the same.
#[test]
fn answers_are_forgotten_in_the_order_of_their_calls_after_a_checkpoint() {
    let directory = temporary();
    let options = || options(&directory).idempotency_capacity(4);
    let pay = |database: &Database, name: &str| {
        let key = IdempotencyKey::new(name).expect("it is short");
        let call = Call::new("pay", (1_i32, 2_i32, "1")).idempotency_key(key);
        let reply = database.engine().execute(call).expect("it runs");
        reply.rows().expect("there is enough")
    };
    let database = Database::open(options()).expect("it is new");
    database.execute(SCRIPT).expect("the script runs");
    let told = ["d", "c", "b"].map(|name| (name, pay(&database, name)));
    database.engine().checkpoint().expect("it is written");
    let last = pay(&database, "a");
    drop(database);
    let database = Database::open(options()).expect("it is there");
    pay(&database, "new");
    for (name, rows) in told.iter().skip(1).chain([&("a", last)]) {
        assert_eq!(pay(&database, name), *rows, "{name} is remembered");
    }
    assert_ne!(pay(&database, "d"), told[0].1, "the oldest is forgotten");
}

/// Fills a table with this many rows of about 1,000 bytes, after those that are there.
fn fill(database: &Database, rows: u32) {
    let insert = format!(
        "INSERT INTO wide SELECT s.last + i, i % 97, repeat('x', 1000)
         FROM generate_series(1, {rows}) i, (SELECT coalesce(max(id), 0) AS last FROM wide) s"
    );
    database.execute(&insert).expect("it runs");
}

const WIDE: &str = "CREATE TABLE wide (id INTEGER PRIMARY KEY, number INTEGER, text TEXT);
                    CREATE INDEX wide_number ON wide (number);";

#[test]
fn a_recovery_is_estimated_from_former_ones_and_tells_how_far_it_is() {
    let directory = temporary();
    let options = options(&directory).log_segment_bytes(4 << 20);
    let database = Database::open(options.clone()).expect("it is new");
    database.execute(WIDE).expect("it runs");
    (0..6).for_each(|_| fill(&database, 2_000));
    database.engine().checkpoint().expect("it is written");
    (0..6).for_each(|_| fill(&database, 2_000));
    drop(database);
    let mut recoveries: Vec<Recovery> = Vec::new();
    // A machine that does other things as well may be slow once.
    for _ in 0..6 {
        let mut told = Vec::new();
        let database = Database::open_with_progress(options.clone(), |it| told.push(*it));
        let database = database.expect("it is there");
        let recovery = database.recovery().expect("it has a directory").clone();
        assert_eq!(rows(&database, "SELECT count(*) FROM wide"), ["24000"]);
        let data = database.engine().data_directory().expect("it has one");
        let kept = data.manifest().recovery.expect("it is measured");
        assert_eq!(kept.estimated_us, recovery.estimated_ns / 1_000);
        let shown = recovery.to_string();
        assert!(shown.contains(" s (estimated "), "{shown}");
        // It would be the same again.
        let again_s = (database.engine().recovery_estimate_s()).expect("it has a directory");
        let kept = kept.rates.with_threads(options.recovery_threads);
        let kept_s = kept.seconds(recovery.checkpoint_bytes, recovery.log_bytes);
        assert!((again_s / kept_s - 1.0).abs() < 0.1, "{again_s} {kept_s}");
        for progress in told {
            assert_eq!(progress.checkpoint_bytes_all, recovery.checkpoint_bytes);
            assert_eq!(progress.log_bytes_all, recovery.log_bytes);
            assert!(progress.checkpoint_bytes <= progress.checkpoint_bytes_all);
            assert!(progress.log_bytes <= progress.log_bytes_all);
        }
        recoveries.push(recovery);
    }
    let ratio = |it: &Recovery| it.elapsed_ns as f64 / it.estimated_ns as f64;
    let ratios: Vec<f64> = recoveries.iter().map(ratio).collect();
    // The first one knew nothing of the machine.
    let is_near = |ratio: &f64| (1.0 / 3.0..3.0).contains(ratio);
    assert!(ratios[1..].iter().any(is_near), "{ratios:?}");
}

#[test]
fn a_checkpoint_counts_the_log_from_the_start_of_its_segment() {
    let directory = temporary();
    let options = options(&directory).log_segment_bytes(64 << 20);
    let threads = options.recovery_threads;
    let database = Database::open(options).expect("it is new");
    database.execute(WIDE).expect("it runs");
    fill(&database, 2_000);
    let report = database.engine().checkpoint().expect("it is written");
    let data = database.engine().data_directory().expect("it has one");
    let status = kiln_durability::inspect::status(data.path()).expect("it is there");
    assert!(status.replay_bytes > 2_000_000, "{status:?}");
    let rates = data.manifest().recovery_rates(threads);
    let expected_s = rates.seconds(report.bytes, status.replay_bytes);
    let estimate_s = report.recovery_estimate_s;
    // But for a block that says that the last one is on disk.
    assert!(
        (estimate_s / expected_s - 1.0).abs() < 0.05,
        "{estimate_s} {expected_s}"
    );
}
