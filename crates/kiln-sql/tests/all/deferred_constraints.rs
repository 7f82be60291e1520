//! Foreign keys and unique keys that are checked when their transaction ends: beside other transactions, in blocks
//! that are run again, in closures, and after a recovery. What PostgreSQL says about each statement
//! is in the corpus (`deferred_constraints.sql`, `deferrable_unique.sql`).

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::random::Random;
use kiln_platform::thread;
use kiln_sql::{Database, Error, Options, Protocol, Session, SqlState};

const TABLES: &str = "
CREATE TABLE p (id INTEGER PRIMARY KEY);
CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX c_p ON c (p);
CREATE PROCEDURE pair(k INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO c VALUES (k, k);
    INSERT INTO p VALUES (k);
END $$;";

fn open(protocol: Protocol) -> Database {
    let options = Options::new().workers(2).pin_workers(false);
    let database = Database::open(options.protocol(protocol)).expect("it opens");
    database.execute(TABLES).expect("it runs");
    database
}

fn orphans(database: &Database) -> i64 {
    let query = "SELECT count(*) FROM c WHERE p IS NOT NULL AND NOT EXISTS (SELECT 1 FROM p WHERE p.id = c.p)";
    let rows = database.query(query, ()).expect("it runs");
    let (count,): (i64,) = rows.into_one().expect("one number");
    count
}

/// Runs the statements of a block, and gives the block up after an error.
fn block(session: &mut Session, statements: &[String]) -> Result<(), Error> {
    let ran = (statements.iter()).try_for_each(|statement| session.execute(statement).map(drop));
    if ran.is_err() && session.in_transaction() {
        session.execute("ROLLBACK").expect("it rolls back");
    }
    ran
}

/// Clients add and remove rows on both sides, some of them only on one: no row refers to nothing
/// when they have ended.
#[test]
fn deferred_keys_hold_beside_other_transactions() {
    const KEYS: u32 = 6;
    const ROUNDS: u32 = 60;
    for protocol in Protocol::serializable() {
        let database = open(protocol);
        let (committed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for client in 0..3 {
                let (database, committed, refused) = (&database, &committed, &refused);
                scope.spawn(move || {
                    let mut random = Random::from_seed(client);
                    let mut session = database.session().expect("it opens");
                    for _ in 0..ROUNDS {
                        let key = random.below(KEYS as usize);
                        let child = format!("INSERT INTO c VALUES ({key}, {key})");
                        let parent = format!("INSERT INTO p VALUES ({key})");
                        let statements: Vec<String> = match random.below(6) {
                            0 => vec!["BEGIN".to_owned(), child, parent, "COMMIT".to_owned()],
                            1 => vec![
                                "BEGIN".to_owned(),
                                format!("DELETE FROM p WHERE id = {key}"),
                                format!("DELETE FROM c WHERE p = {key}"),
                                "COMMIT".to_owned(),
                            ],
                            2 => vec![format!("CALL pair({key})")],
                            3 => vec!["BEGIN".to_owned(), child, "COMMIT".to_owned()],
                            4 => vec![format!("DELETE FROM p WHERE id = {key}")],
                            _ => vec![
                                "BEGIN".to_owned(),
                                format!("DELETE FROM p WHERE id = {key}"),
                                "SET CONSTRAINTS ALL IMMEDIATE".to_owned(),
                                "COMMIT".to_owned(),
                            ],
                        };
                        match block(&mut session, &statements) {
                            Ok(()) => committed.fetch_add(1, Ordering::Relaxed),
                            Err(error) if error.state() == SqlState::FOREIGN_KEY_VIOLATION => {
                                refused.fetch_add(1, Ordering::Relaxed)
                            }
                            Err(error)
                                if [
                                    SqlState::UNIQUE_VIOLATION,
                                    SqlState::SERIALIZATION_FAILURE,
                                ]
                                .contains(&error.state()) =>
                            {
                                0
                            }
                            Err(error) => panic!("{protocol}: {error}: {statements:?}"),
                        };
                    }
                });
            }
        });
        assert_eq!(orphans(&database), 0, "{protocol}");
        let counts = [&committed, &refused].map(|count| count.load(Ordering::Relaxed));
        assert!(
            counts.iter().all(|count| *count > 0),
            "{protocol}: {counts:?}"
        );
    }
}

/// Clients swap the places of rows, add rows and take them away: no two rows have one key when they
/// have ended.
#[test]
fn deferrable_unique_keys_hold_beside_other_transactions() {
    const ROUNDS: u32 = 60;
    for protocol in Protocol::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("it opens");
        let tables = "
            CREATE TABLE item (id INTEGER PRIMARY KEY, place INTEGER UNIQUE DEFERRABLE INITIALLY DEFERRED);
            CREATE TABLE line (id INTEGER PRIMARY KEY DEFERRABLE);
            INSERT INTO item VALUES (1, 1), (2, 2), (3, 3), (4, 4);
            INSERT INTO line VALUES (1), (2), (3)";
        database.execute(tables).expect("it runs");
        let (committed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for client in 0..3 {
                let (database, committed, refused) = (&database, &committed, &refused);
                scope.spawn(move || {
                    let mut random = Random::from_seed(client);
                    let mut session = database.session().expect("it opens");
                    for _ in 0..ROUNDS {
                        let (one, other) = (1 + random.below(4), 1 + random.below(4));
                        let id = 5 + random.below(4);
                        let statements: Vec<String> = match random.below(6) {
                            0 => vec![
                                "BEGIN".to_owned(),
                                format!("UPDATE item SET place = {other} WHERE place = {one}"),
                                format!("UPDATE item SET place = {one} WHERE place = {other} AND id <> {one}"),
                                "COMMIT".to_owned(),
                            ],
                            1 => vec![format!(
                                "UPDATE item SET place = CASE place WHEN {one} THEN {other} WHEN {other} THEN {one} ELSE place END"
                            )],
                            2 => vec![format!("INSERT INTO item VALUES ({id}, {id})")],
                            3 => vec![
                                "BEGIN".to_owned(),
                                format!("INSERT INTO item VALUES ({id}, {one})"),
                                "COMMIT".to_owned(),
                            ],
                            4 => vec!["UPDATE line SET id = 1 + id % 4".to_owned()],
                            _ => vec![format!("INSERT INTO line VALUES ({one})")],
                        };
                        match block(&mut session, &statements) {
                            Ok(()) => committed.fetch_add(1, Ordering::Relaxed),
                            Err(error) if error.state() == SqlState::UNIQUE_VIOLATION => {
                                refused.fetch_add(1, Ordering::Relaxed)
                            }
                            Err(error) if error.state() == SqlState::SERIALIZATION_FAILURE => 0,
                            Err(error) => panic!("{protocol}: {error}: {statements:?}"),
                        };
                    }
                });
            }
        });
        for (table, key) in [("item", "place"), ("line", "id")] {
            let query = format!("SELECT {key} FROM {table} GROUP BY {key} HAVING count(*) > 1");
            let rows = database.query(&query, ()).expect("it runs");
            assert_eq!(rows.to_csv(), format!("{key}\n"), "{protocol}");
        }
        let counts = [&committed, &refused].map(|count| count.load(Ordering::Relaxed));
        assert!(
            counts.iter().all(|count| *count > 0),
            "{protocol}: {counts:?}"
        );
    }
}

/// A block that is run again is checked as it is at last.
#[test]
fn a_block_that_is_run_again_is_checked_at_its_end() {
    for protocol in Protocol::serializable() {
        let database = open(protocol);
        let mut session = database.session().expect("it opens");
        let script =
            "CREATE TABLE n (id INTEGER PRIMARY KEY, k INTEGER); INSERT INTO n VALUES (1, 5);
                      INSERT INTO p VALUES (5)";
        session.execute(script).expect("it runs");
        // Nothing that its client sees tells which key it adds.
        session
            .execute("BEGIN; INSERT INTO c SELECT 1, k FROM n")
            .expect("it runs");
        let other = thread::scope(|scope| {
            let changed = scope.spawn(|| {
                let mut other = database.session().expect("it opens");
                other.execute("SET lock_timeout = 100").expect("it is set");
                other
                    .execute("SET statement_timeout = 100")
                    .expect("it is set");
                other.execute("UPDATE n SET k = 6").map(drop)
            });
            changed.join().expect("it ends")
        });
        let ended = session.execute("COMMIT").map(drop);
        if session.in_transaction() {
            session.execute("ROLLBACK").expect("it rolls back");
        }
        assert_eq!(orphans(&database), 0, "{protocol}: {other:?}, {ended:?}");
        // What is pending belongs to the attempt that commits: with another key it is not the one
        // that was seen.
        if let (Ok(()), Err(error)) = (&other, &ended) {
            let expected = [
                SqlState::SERIALIZATION_FAILURE,
                SqlState::FOREIGN_KEY_VIOLATION,
            ];
            assert!(expected.contains(&error.state()), "{protocol}: {error}");
        }
    }
}

#[test]
fn closures_are_checked_at_their_end() {
    let database = open(Protocol::default());
    let both = database.transaction(|transaction| {
        transaction.execute("INSERT INTO c VALUES (1, 1)", ())?;
        transaction.call("pair", (2,))?;
        transaction.execute("INSERT INTO p VALUES (1)", ())
    });
    both.expect("all keys are there");
    let error = database
        .transaction(|transaction| transaction.execute("INSERT INTO c VALUES (3, 3)", ()))
        .expect_err("its key is not there");
    assert_eq!(error.state(), SqlState::FOREIGN_KEY_VIOLATION);
    let rows = database.query("SELECT id FROM c ORDER BY id", ());
    assert_eq!(rows.expect("it runs").to_csv(), "id\n1\n2\n");
}

/// An engine without SQL above it runs nothing whose checks it could not make.
#[test]
fn an_engine_does_not_commit_what_is_left_unchecked() {
    let database = open(Protocol::default());
    let engine = database.engine();
    let mut session = engine.session().expect("it opens");
    session.begin().expect("it begins");
    let catalog = engine.catalog();
    let pair = catalog.require_procedure("pair").expect("it is there");
    let mut arguments = kiln_engine::Arguments::from_values(&[1.into()]);
    session
        .run(pair.program(), &mut arguments)
        .expect("it runs");
    assert!(session.has_pending(|check| check.table == "c"));
    assert_eq!(
        session
            .commit()
            .expect_err("it is refused")
            .state()
            .as_str(),
        "XX000"
    );
    assert_eq!(orphans(&database), 0);
}

#[test]
fn deferrable_constraints_are_recovered() {
    let directory = temporary();
    let open = || {
        let options = Options::new().workers(1).pin_workers(false);
        let options = options.data_dir(Some(directory.path().join("data")));
        Database::open(options).expect("it opens")
    };
    let database = open();
    database.execute(TABLES).expect("it runs");
    let later = "CREATE TABLE d (p INTEGER CONSTRAINT later REFERENCES p DEFERRABLE);
                 CREATE TABLE e (a INTEGER CONSTRAINT first PRIMARY KEY DEFERRABLE,
                                 b INTEGER CONSTRAINT second UNIQUE INITIALLY DEFERRED);
                 INSERT INTO e VALUES (1, 1), (2, 2); UPDATE e SET a = a + 1, b = 3 - b;
                 INSERT INTO p VALUES (1)";
    database.execute(later).expect("it runs");
    let mut session = database.session().expect("it opens");
    session
        .execute("BEGIN; INSERT INTO c VALUES (1, 2); INSERT INTO p VALUES (2); COMMIT")
        .expect("it commits");
    session
        .execute("BEGIN; INSERT INTO c VALUES (2, 3)")
        .expect("it is checked later");
    drop(session);
    drop(database);
    for _ in 0..2 {
        let database = open();
        let query = "SELECT conname, condeferrable, condeferred FROM pg_constraint WHERE condeferrable ORDER BY 1";
        let rows = database.query(query, ()).expect("it runs").to_csv();
        assert_eq!(
            rows,
            "conname,condeferrable,condeferred\nc_p_fkey,t,t\nfirst,t,f\nlater,t,f\nsecond,t,t\n"
        );
        let rows = database.query("SELECT a, b FROM e ORDER BY a", ());
        assert_eq!(rows.expect("it runs").to_csv(), "a,b\n2,2\n3,1\n");
        for taken in ["(2, 5)", "(5, 2)"] {
            let insert = format!("INSERT INTO e VALUES {taken}");
            let error = database.execute(&insert).expect_err("its key is taken");
            assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
        }
        let rows = database.query("SELECT id, p FROM c", ()).expect("it runs");
        assert_eq!(rows.to_csv(), "id,p\n1,2\n");
        database.engine().checkpoint().expect("it is written");
    }
}
