//! Databases whose disk fails: what is refused from then on, what goes on, and what is there after
//! a restart.

#![cfg(kiln_sim)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use kiln_engine::{Call, Completions, Configuration, Logging, Reply};
use kiln_platform::disk::Directory;
use kiln_platform::sim::disk::{self, DirectWrites, Disk, Fault};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::thread;
use kiln_sql::{Database, Error, Options, Result, SqlState};

const SEGMENT_BYTES: u64 = 16 << 10;
/// Longer than the log waits before it writes by itself, and than the next segment takes to be
/// made.
const REST_NS: u64 = 1_000_000_000;

const SCHEMA: &str = "
    CREATE TABLE whole (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
    CREATE TABLE hit (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
    CREATE TABLE blocked (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
    CREATE TABLE going (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
    INSERT INTO whole VALUES (1, 10), (2, 20);
    INSERT INTO hit VALUES (1, 10);
    INSERT INTO blocked VALUES (1, 10);
    CREATE FUNCTION read_whole() RETURNS INTEGER LANGUAGE plpgsql AS $$
    DECLARE found INTEGER;
    BEGIN SELECT sum(v) INTO found FROM whole; RETURN found; END $$;
    CREATE FUNCTION read_hit() RETURNS INTEGER LANGUAGE plpgsql AS $$
    DECLARE found INTEGER;
    BEGIN SELECT sum(v) INTO found FROM hit; RETURN found; END $$;
    CREATE PROCEDURE write_hit() LANGUAGE plpgsql AS $$
    BEGIN UPDATE hit SET v = v + 1 WHERE id = 1; END $$;
    CREATE PROCEDURE write_whole() LANGUAGE plpgsql AS $$
    BEGIN UPDATE whole SET v = v + 1 WHERE id = 1; END $$;";

fn options(protocol: Configuration) -> Options {
    let logging = match protocol.protocol.logs_commands() {
        true => Logging::Commands,
        false => Logging::Values,
    };
    Options::new()
        .workers(2)
        .session_slots(4)
        .logging(logging)
        .pin_workers(false)
        .protocol(protocol)
        .log_segment_bytes(SEGMENT_BYTES)
        .data_dir(Some(PathBuf::from("/data")))
}

/// Runs `body` as one process, with the database on the disk. What it returns is copied out of the
/// run's memory.
fn with_database<T: Clone + Send>(
    disk: &Disk,
    protocol: Configuration,
    seed: u64,
    body: impl FnOnce(&Database) -> T + Send,
) -> T {
    let mut config = Config::new(Schedule::Random, seed);
    config.disk = Some(disk.clone());
    let run = sim::run(&config, || {
        let database = Database::open(options(protocol)).expect("the disk works");
        body(&database)
    });
    match run {
        Ok(run) => run.value.clone(),
        Err(failure) => panic!("{protocol}: {failure}"),
    }
}

/// A disk with the schema, on which the log writes directly or through the cache.
fn prepared(direct: DirectWrites, protocol: Configuration) -> Disk {
    let mut options = disk::Options::new(1);
    options.direct_writes = direct;
    options.capacity_bytes = 4 << 20;
    let disk = Disk::new(options);
    with_database(&disk, protocol, 1, |database| {
        database.execute(SCHEMA).expect("the disk works");
    });
    disk
}

/// The next operation to which the fault can happen fails: of the log, which has nothing else to
/// do.
fn fail_next(disk: &Disk, fault: Fault) {
    thread::sleep(REST_NS);
    disk.inject(disk.operations(), fault);
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T>, state: SqlState, parts: &[&str]) {
    let error = result.expect_err("it is refused");
    assert_eq!(error.state(), state, "{error:#}");
    for part in parts {
        assert!(error.to_string().contains(part), "no {part:?} in {error:#}");
    }
}

/// How a call ends by each way that calls go.
fn call_by_all_ways(database: &Database, name: &'static str) -> Vec<Result<Reply>> {
    let completions = Completions::new(1);
    let mut ended = Vec::new();
    let submitted = database.submit_to(Call::new(name, ()), &completions, 1);
    submitted.expect("the queue is empty");
    completions.wait(&mut ended, Duration::from_secs(10));
    let ended = ended.pop().expect("it ends");
    vec![database.call(name, ()), ended.result]
}

fn sum(database: &Database, table: &str) -> Result<i64> {
    let sum = database.query(&format!("SELECT sum(v) FROM {table}"), ())?;
    Ok(sum.into_one::<(i64,)>()?.0)
}

/// The sum by a closure.
fn sum_by_closure(database: &Database, table: &str) -> Result<i64> {
    database.transaction(|transaction| {
        let sum = transaction.query(&format!("SELECT sum(v) FROM {table}"), ())?;
        Ok(sum.into_one::<(i64,)>()?.0)
    })
}

/// What is answered, and what is not, after a write of the log that changed `hit` has failed.
fn check_after_failure(database: &Database, failed: SqlState) {
    for _ in 0..2 {
        // What is on disk is read.
        assert_eq!(sum(database, "whole"), Ok(30));
        assert_eq!(sum_by_closure(database, "whole"), Ok(30));
        for reply in call_by_all_ways(database, "read_whole") {
            let rows = reply.and_then(Reply::rows).expect("it only reads");
            assert_eq!(rows.typed::<(i32,)>(), Ok(vec![(30,)]));
        }
        database.query("SELECT 1", ()).expect("it reads nothing");
        // What may be lost is not shown.
        let parts = ["\"hit\"", "may be lost", "cannot be written"];
        assert_refused(sum(database, "hit"), failed, &parts);
        assert_refused(sum_by_closure(database, "hit"), failed, &parts);
        for reply in call_by_all_ways(database, "read_hit") {
            assert_refused(reply, failed, &parts);
        }
        let both = database.query("SELECT count(*) FROM whole, hit", ());
        assert_refused(both, failed, &parts);
        // Nothing is changed.
        let parts = ["the database is read-only", "takes no further changes"];
        for table in ["whole", "hit"] {
            let inserted = database.execute(&format!("INSERT INTO {table} VALUES (9, 9)"));
            assert_refused(inserted, failed, &parts);
        }
        for name in ["write_hit", "write_whole"] {
            for reply in call_by_all_ways(database, name) {
                assert_refused(reply.and_then(Reply::rows), failed, &parts);
            }
        }
        let made = database.execute("CREATE TABLE another (id INTEGER PRIMARY KEY)");
        assert_refused(made, failed, &parts);
        assert_refused(database.engine().checkpoint(), failed, &parts);
    }
    // So in blocks.
    let mut session = database.session().expect("there is room");
    let mut run = |sql: &str| session.execute(sql).map(drop);
    run("BEGIN; SELECT v FROM whole; COMMIT").expect("it reads what is on disk");
    let read = run("BEGIN; SELECT v FROM whole; SELECT v FROM hit");
    assert_refused(read, failed, &["\"hit\"", "may be lost"]);
    run("ROLLBACK; SELECT v FROM whole").expect("it reads what is on disk");
    // Answers that do not wait for the disk are not held up by it.
    run("SET synchronous_commit = off; SELECT v FROM hit").expect("it does not wait");
}

#[test]
fn reads_of_what_is_on_disk_go_on_after_a_failed_write() {
    let ways = [
        (DirectWrites::Taken, Fault::Write, SqlState::IO_ERROR),
        (DirectWrites::Taken, Fault::Full, SqlState::DISK_FULL),
        (
            DirectWrites::RefusedAtOpening,
            Fault::SyncKeepsCache,
            SqlState::IO_ERROR,
        ),
        (
            DirectWrites::RefusedAtOpening,
            Fault::SyncLosesCache,
            SqlState::IO_ERROR,
        ),
    ];
    for (number, protocol) in Configuration::serializable().enumerate() {
        let (direct, fault, failed) = ways[number % ways.len()];
        let disk = prepared(direct, protocol);
        with_database(&disk, protocol, 2, |database| {
            let is_single = protocol.is_single_worker();
            let mut block = database.session().expect("there is room");
            if !is_single {
                let write = "BEGIN; SELECT v FROM going; UPDATE blocked SET v = v + 1";
                block.execute(write).expect("the disk works");
            }
            fail_next(&disk, fault);
            // A statement or a call: some logs keep calls.
            let written = match number % 3 {
                0 => {
                    let written = database.execute("UPDATE hit SET v = v + 1 WHERE id = 1");
                    written.map(drop)
                }
                _ => database.call("write_hit", ()).map(drop),
            };
            assert_refused(written, failed, &["may be lost"]);
            check_after_failure(database, failed);
            let read_only = database.engine().read_only().expect("it is");
            assert_eq!(read_only.reason.state(), failed);
            assert_eq!(read_only.lost_tables, ["hit"]);
            if !is_single {
                // A transaction that had written before can only be in doubt.
                assert_refused(block.execute("COMMIT"), failed, &["may be lost"]);
                let read = sum(database, "blocked");
                assert_refused(read, failed, &["\"blocked\"", "may be lost"]);
                let read_only = database.engine().read_only().expect("it is");
                assert_eq!(read_only.lost_tables, ["blocked", "hit"]);
            }
            assert_eq!(sum(database, "whole"), Ok(30));
        });
        let disk = disk.restart(3);
        with_database(&disk, protocol, 3, |database| {
            assert_eq!(database.engine().read_only(), None);
            assert_eq!(sum(database, "whole"), Ok(30));
            let hit = sum(database, "hit").expect("the disk works");
            assert!([10, 11].contains(&hit), "{hit}");
            assert_eq!(sum(database, "blocked"), Ok(10));
            database
                .execute("UPDATE hit SET v = 0")
                .expect("the disk works");
        });
    }
}

/// A change of the catalog that is not on disk hides the tables that it changes, and what they were
/// called.
#[test]
fn a_lost_change_of_the_catalog_counts_for_its_tables() {
    let protocol = Configuration::DEFAULT;
    let disk = prepared(DirectWrites::Taken, protocol);
    for (statement, refused) in [
        ("DROP TABLE blocked", "blocked"),
        ("TRUNCATE blocked", "blocked"),
        (
            "CREATE TABLE added (id INTEGER PRIMARY KEY, v INTEGER)",
            "added",
        ),
        ("CREATE INDEX of_blocked ON blocked (v)", "blocked"),
    ] {
        let disk = disk.copy();
        with_database(&disk, protocol, 2, |database| {
            fail_next(&disk, Fault::Write);
            let changed = database.execute(statement);
            assert_refused(changed, SqlState::IO_ERROR, &["may be lost"]);
            let read = sum(database, refused);
            assert_refused(read, SqlState::IO_ERROR, &["may be lost"]);
            assert_eq!(sum(database, "whole"), Ok(30), "{statement}");
            let read_only = database.engine().read_only().expect("it is");
            assert_eq!(read_only.lost_tables, [refused], "{statement}");
        });
    }
}

/// Rows of a table that was dropped before the log failed are of no table that can be read.
#[test]
fn changes_of_a_table_that_is_gone_are_understood() {
    let protocol = Configuration::DEFAULT;
    let disk = prepared(DirectWrites::Taken, protocol);
    with_database(&disk, protocol, 2, |database| {
        fail_next(&disk, Fault::Write);
        let mut session = database.session().expect("there is room");
        // In one group.
        let script = "SET synchronous_commit = off; UPDATE blocked SET v = 11; DROP TABLE blocked";
        let dropped = session.execute(script);
        assert_refused(dropped, SqlState::IO_ERROR, &["may be lost"]);
        assert_eq!(sum(database, "whole"), Ok(30));
        let read_only = database.engine().read_only().expect("it is");
        assert_eq!(read_only.lost_tables, ["blocked"]);
    });
}

/// No segment can be made any more: what was committed is on disk all the same.
#[test]
fn all_is_read_where_the_log_has_no_room() {
    for protocol in Configuration::serializable() {
        let disk = prepared(DirectWrites::Taken, protocol);
        let written = with_database(&disk, protocol, 2, |database| {
            // The segment after the one that is written is made by now, and no other will be.
            thread::sleep(REST_NS);
            let filler = Directory::create(Path::new("/filler")).expect("the disk works");
            let free = filler.free_bytes().expect("the disk works");
            let file = filler.create_file("filler").expect("there is room");
            let zeros = vec![0; free as usize - 4_096];
            file.write_at(0, &zeros).expect("there is room");
            let mut written = 0;
            let refused = loop {
                let inserted =
                    database.execute(&format!("INSERT INTO hit VALUES (10 + {written}, 1)"));
                match inserted {
                    Ok(_) => written += 1,
                    Err(error) => break error,
                }
                assert!(written < 1_000, "there is no room for all of it");
            };
            let parts = ["the database is read-only", "takes no further changes"];
            assert_refused(Err::<(), Error>(refused), SqlState::DISK_FULL, &parts);
            // There is room again, and nothing is taken up by itself.
            drop(file);
            filler.remove_file("filler").expect("the disk works");
            thread::sleep(REST_NS);
            for table in ["hit", "whole"] {
                let inserted = database.execute(&format!("INSERT INTO {table} VALUES (9, 9)"));
                assert_refused(inserted, SqlState::DISK_FULL, &parts);
            }
            assert_eq!(sum(database, "hit"), Ok(10 + written));
            assert_eq!(sum_by_closure(database, "hit"), Ok(10 + written));
            for reply in call_by_all_ways(database, "read_hit") {
                assert!(reply.is_ok_and(|reply| reply.is_committed()));
            }
            let read_only = database.engine().read_only().expect("it is");
            assert_eq!(read_only.reason.state(), SqlState::DISK_FULL);
            assert!(read_only.lost_tables.is_empty());
            written
        });
        with_database(&disk.restart(3), protocol, 3, |database| {
            assert_eq!(sum(database, "hit"), Ok(10 + written));
            database
                .execute("INSERT INTO hit VALUES (9, 9)")
                .expect("there is room");
        });
    }
}
