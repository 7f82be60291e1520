//! Transaction blocks that change the catalog: tried while their clients send statements, made when
//! they commit, and recovered as a whole.

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::thread;
use kiln_sql::{Database, Options, Protocol, Session, SqlState};

fn options(protocol: Protocol) -> Options {
    Options::new()
        .workers(2)
        .pin_workers(false)
        .protocol(protocol)
}

fn kept(directory: &TemporaryDirectory, protocol: Protocol) -> Options {
    options(protocol).data_dir(Some(directory.path().join("data")))
}

fn protocols() -> impl Iterator<Item = Protocol> {
    Protocol::serializable()
}

fn shown(database: &Database, query: &str) -> String {
    let rows = database.query(query, ());
    rows.unwrap_or_else(|error| panic!("{query}: {error}"))
        .to_csv()
}

/// Runs a script that has no error.
fn run(session: &mut Session, script: &str) {
    let ran = session.execute(script);
    ran.unwrap_or_else(|error| panic!("{script}: {error}"));
}

/// A table of the block is changed after it was written, and tables in force are.
const MIGRATION: &str = "
BEGIN;
CREATE TABLE item (id SERIAL PRIMARY KEY, name TEXT UNIQUE, stock INTEGER NOT NULL);
INSERT INTO item (name, stock) SELECT 'item ' || i, i FROM generate_series(1, 50) i;
CREATE INDEX item_stock ON item (stock);
ALTER TABLE item ADD COLUMN price NUMERIC(8, 2) DEFAULT 1.50;
UPDATE item SET price = stock WHERE id % 2 = 0;
DELETE FROM item WHERE id > 40;
CREATE TABLE sale (item INTEGER REFERENCES item, number INTEGER, at TIMESTAMP WITH TIME ZONE DEFAULT now());
INSERT INTO sale (item, number) SELECT id, id FROM item WHERE stock < 10;
UPDATE account SET balance = balance + 1;
ALTER TABLE account ADD COLUMN note TEXT;
UPDATE account SET note = 'moved' WHERE id = 3;
ALTER TABLE account DROP COLUMN old;
DROP TABLE gone;
CREATE PROCEDURE sell(which INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE item SET stock = stock - 1 WHERE id = which;
    INSERT INTO sale (item, number) VALUES (which, 0);
END $$;
CALL sell(7);
";

const BEFORE: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, old INTEGER, balance INTEGER NOT NULL);
CREATE TABLE gone (x INTEGER);
CREATE TABLE unkeyed (x INTEGER, y TEXT);
INSERT INTO account SELECT i, i, 100 FROM generate_series(1, 20) i;
INSERT INTO gone VALUES (1);
INSERT INTO unkeyed VALUES (1, 'one'), (2, 'two');
CREATE PROCEDURE deposit(which INTEGER, amount INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET balance = balance + amount WHERE id = which;
END $$;
";

const QUERIES: [&str; 5] = [
    "SELECT * FROM item ORDER BY id",
    "SELECT item, number FROM sale ORDER BY item, number",
    "SELECT * FROM account ORDER BY id",
    "SELECT id FROM item WHERE stock < 5 ORDER BY stock",
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'i', 'S') AND relname !~ '^pg_' ORDER BY 1",
];

fn all(database: &Database) -> Vec<String> {
    QUERIES.iter().map(|query| shown(database, query)).collect()
}

#[test]
fn a_block_makes_what_it_has_tried() {
    let mut expected = None;
    for protocol in protocols() {
        let database = Database::open(options(protocol)).expect("it opens");
        let mut session = database.session().expect("there is room");
        run(&mut session, BEFORE);
        run(&mut session, MIGRATION);
        let own: Vec<String> = QUERIES
            .iter()
            .map(|query| session.query(query, ()).expect(query).to_csv())
            .collect();
        if protocol == Protocol::Silo {
            // Others see nothing of it, and do not wait.
            let (gone, old) = ("SELECT count(*) FROM gone", "SELECT sum(old) FROM account");
            assert_eq!(shown(&database, gone), "count\n1\n");
            assert_eq!(shown(&database, old), "sum\n210\n");
            let error = database.query("SELECT * FROM item", ());
            let error = error.expect_err("it is not there");
            assert_eq!(error.state(), SqlState::UNDEFINED_TABLE, "{error}");
        }
        run(&mut session, "COMMIT");
        assert_eq!(all(&database), own, "{protocol}");
        // Sequences go on where the block has left them.
        run(
            &mut session,
            "INSERT INTO item (name, stock) VALUES ('new', 0)",
        );
        assert_eq!(
            shown(&database, "SELECT id FROM item WHERE name = 'new'"),
            "id\n51\n"
        );
        database
            .call("sell", (8_i32,))
            .expect("it runs")
            .rows()
            .expect("it commits");
        database
            .call("deposit", (3_i32, 5_i32))
            .expect("it runs")
            .rows()
            .expect("it commits");
        let now = all(&database);
        assert_eq!(
            expected.get_or_insert_with(|| now.clone()),
            &now,
            "{protocol}"
        );
    }
}

#[test]
fn a_block_that_is_rolled_back_leaves_nothing() {
    for protocol in protocols() {
        let database = Database::open(options(protocol)).expect("it opens");
        let mut session = database.session().expect("there is room");
        run(&mut session, BEFORE);
        let before = database
            .engine()
            .written_catalog()
            .expect("it can be written")
            .to_string();
        for end in [
            "ROLLBACK",
            "SELECT 1 / 0",
            "DROP TABLE account; DROP TABLE account",
        ] {
            run(&mut session, MIGRATION);
            let _ = session.execute(end);
            if session.in_transaction() {
                run(&mut session, "ROLLBACK");
            }
            let after = database
                .engine()
                .written_catalog()
                .expect("it can be written");
            assert_eq!(after.to_string(), before, "{protocol}: {end}");
            let sum = shown(
                &database,
                "SELECT sum(balance), sum(old), count(*) FROM account",
            );
            assert_eq!(sum, "sum,sum,count\n2000,210,20\n", "{protocol}: {end}");
        }
    }
}

#[test]
fn a_savepoint_undoes_definitions() {
    for protocol in protocols() {
        let database = Database::open(options(protocol)).expect("it opens");
        let mut session = database.session().expect("there is room");
        run(&mut session, BEFORE);
        run(
            &mut session,
            "BEGIN;
             CREATE TABLE one (id SERIAL, x INTEGER);
             INSERT INTO one (x) VALUES (1);
             SAVEPOINT s;
             CREATE TABLE two (x INTEGER);
             INSERT INTO one (x) VALUES (2);
             ALTER TABLE one ADD COLUMN y INTEGER DEFAULT 5;
             UPDATE account SET balance = 0;
             ROLLBACK TO s;
             INSERT INTO one (x) VALUES (3);
             CREATE TABLE two (z INTEGER);
             COMMIT",
        );
        assert_eq!(
            shown(&database, "SELECT x FROM one ORDER BY id"),
            "x\n1\n3\n",
            "{protocol}"
        );
        assert_eq!(shown(&database, "SELECT z FROM two"), "z\n");
        assert_eq!(
            shown(&database, "SELECT sum(balance) FROM account"),
            "sum\n2000\n"
        );
    }
}

#[test]
fn a_block_is_recovered_as_a_whole() {
    for protocol in [
        Protocol::Silo,
        Protocol::Mvcc,
        Protocol::TwoPhaseLockingNoWait,
    ] {
        for checkpoints in [false, true] {
            let directory = temporary();
            let database = Database::open(kept(&directory, protocol)).expect("it is new");
            let mut session = database.session().expect("there is room");
            run(&mut session, BEFORE);
            if checkpoints {
                database.engine().checkpoint().expect("it is written");
            }
            run(&mut session, MIGRATION);
            run(
                &mut session,
                "INSERT INTO unkeyed VALUES (3, 'three'); ALTER TABLE unkeyed ADD z INTEGER DEFAULT 9; DELETE FROM unkeyed WHERE x = 1; COMMIT",
            );
            database
                .call("sell", (8_i32,))
                .expect("it runs")
                .rows()
                .expect("it commits");
            run(&mut session, "INSERT INTO unkeyed VALUES (4, 'four')");
            let unkeyed = "SELECT * FROM unkeyed ORDER BY x";
            let (before, rows) = (all(&database), shown(&database, unkeyed));
            let catalog = database
                .engine()
                .written_catalog()
                .expect("it can be written");
            drop((session, database));
            let database = Database::open(kept(&directory, protocol)).expect("it is there");
            assert_eq!(all(&database), before, "{protocol}");
            assert_eq!(shown(&database, unkeyed), rows, "{protocol}");
            let recovered = database
                .engine()
                .written_catalog()
                .expect("it can be written");
            assert_eq!(recovered.to_string(), catalog.to_string(), "{protocol}");
            database
                .execute("INSERT INTO item (name, stock) VALUES ('new', 0)")
                .expect("the sequence goes on");
            if checkpoints {
                database.engine().checkpoint().expect("it is written");
                let before = all(&database);
                drop(database);
                let database = Database::open(kept(&directory, protocol)).expect("it is there");
                assert_eq!(all(&database), before, "{protocol}");
            }
        }
    }
}

/// Calls change a table while a block copies it, waits, and commits: none of their changes is lost,
/// and the block commits only where what it has shown is still true.
#[test]
fn calls_go_on_beside_a_block_that_changes_their_table() {
    for protocol in protocols() {
        let database = Database::open(options(protocol)).expect("it opens");
        database.execute(BEFORE).expect("the schema is right");
        let (stop, deposits) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut refusals, mut last) = (Vec::new(), None);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let which = (deposits.load(Ordering::Relaxed) % 20) as i32 + 1;
                    let reply = database.call("deposit", (which, 1_i32)).expect("it runs");
                    reply.rows().expect("it commits");
                    deposits.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut session = database.session().expect("there is room");
            for round in 0..10 {
                let name = format!("c{round}");
                let defined = session.execute(&format!(
                    "BEGIN;
                     ALTER TABLE account ADD COLUMN {name} INTEGER DEFAULT {round};
                     UPDATE account SET {name} = {name} + 1 WHERE id = 1;
                     CREATE TABLE log_{name} (x INTEGER);
                     COMMIT"
                ));
                refusals.extend(defined.err());
                session.roll_back();
            }
            if protocol == Protocol::Silo {
                // What it shows is not true any more when it commits.
                let began = session.execute(
                    "BEGIN; CREATE TABLE shown (x INTEGER); SELECT sum(balance) FROM account",
                );
                let before = deposits.load(Ordering::Relaxed);
                while deposits.load(Ordering::Relaxed) < before + 2 {
                    thread::sleep(1_000_000);
                }
                last = Some(began.and_then(|_| session.execute("COMMIT")));
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(refusals.is_empty(), "{protocol}: {refusals:?}");
        if let Some(last) = last {
            let error = last.expect_err("deposits were made");
            assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{error}");
        }
        let sum = shown(&database, "SELECT sum(balance) FROM account");
        let deposits = deposits.load(Ordering::Relaxed);
        assert_eq!(sum, format!("sum\n{}\n", 2_000 + deposits), "{protocol}");
        assert_eq!(
            shown(&database, "SELECT c9 FROM account WHERE id < 3 ORDER BY id"),
            "c9\n10\n9\n"
        );
    }
}

#[test]
fn two_blocks_that_define_one_name_do_not_both_commit() {
    let database = Database::open(options(Protocol::Silo)).expect("it opens");
    let mut sessions: Vec<Session> = (0..2)
        .map(|_| database.session().expect("there is room"))
        .collect();
    for session in &mut sessions {
        run(
            session,
            "BEGIN; CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1)",
        );
    }
    run(&mut sessions[0], "COMMIT");
    let error = sessions[1].execute("COMMIT").expect_err("it is there");
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{error}");
    assert!(
        error.to_string().contains("already exists")
            || error
                .detail()
                .is_some_and(|it| it.contains("already exists")),
        "{error}"
    );
    assert_eq!(shown(&database, "SELECT x FROM t"), "x\n1\n");
}

/// A block that changes the catalog loses against calls, and is tried again with its definitions.
#[test]
fn a_block_with_definitions_is_tried_again_after_a_conflict() {
    for protocol in protocols() {
        let database = Database::open(options(protocol)).expect("it opens");
        database.execute(BEFORE).expect("the schema is right");
        let (stop, deposits) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut made = 0_u64;
        let mut refusals = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let reply = database.call("deposit", (1_i32, 1_i32)).expect("it runs");
                    reply.rows().expect("it commits");
                    deposits.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut session = database.session().expect("there is room");
            for round in 0..8 {
                let defined = session.execute(&format!(
                    "BEGIN;
                     UPDATE account SET balance = balance + 1 WHERE id = 1;
                     CREATE TABLE t{round} (x SERIAL, y INTEGER);
                     INSERT INTO t{round} (y) VALUES (7), (8);
                     UPDATE account SET balance = balance + 1 WHERE id = 1;
                     INSERT INTO t{round} (y) VALUES (9);
                     COMMIT"
                ));
                match defined {
                    Ok(_) => made += 1,
                    // It has lost, or has waited for too long on a machine that is busy.
                    Err(error)
                        if error.state() == SqlState::SERIALIZATION_FAILURE
                            || error.state() == SqlState::LOCK_NOT_AVAILABLE => {}
                    Err(error) => refusals.push(error),
                }
                session.roll_back();
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(refusals.is_empty(), "{protocol}: {refusals:?}");
        assert!(made > 0, "{protocol}");
        let sum = shown(&database, "SELECT sum(balance) FROM account");
        let all = 2_000 + deposits.load(Ordering::Relaxed) + 2 * made;
        assert_eq!(sum, format!("sum\n{all}\n"), "{protocol}");
        let tables = "SELECT count(*) FROM pg_tables WHERE tablename ~ '^t[0-9]+$'";
        assert_eq!(
            shown(&database, tables),
            format!("count\n{made}\n"),
            "{protocol}"
        );
    }
}

/// All others wait while a block is made, so that its time is bounded as that of a statement.
#[test]
fn a_block_that_is_made_for_too_long_ends() {
    let database = Database::open(options(Protocol::Silo)).expect("it opens");
    let mut session = database.session().expect("there is room");
    run(
        &mut session,
        "BEGIN;
         CREATE TABLE t (x INTEGER);
         DO $$ DECLARE i INTEGER := 0; BEGIN WHILE i < 50000000 LOOP i := i + 1; END LOOP; END $$;
         SET statement_timeout = '20ms'",
    );
    let error = session.execute("COMMIT").expect_err("it takes longer");
    assert_eq!(error.state(), SqlState::QUERY_CANCELED, "{error}");
    let error = database.query("SELECT * FROM t", ());
    let error = error.expect_err("nothing was made");
    assert_eq!(error.state(), SqlState::UNDEFINED_TABLE, "{error}");
    run(
        &mut session,
        "RESET statement_timeout; CREATE TABLE t (x INTEGER)",
    );
}
