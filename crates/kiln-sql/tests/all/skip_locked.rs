//! SKIP LOCKED and NOWAIT: rows that other transactions have locked by these are left out, or are
//! an error.

#![cfg(not(kiln_sim))]

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::thread;
use kiln_sql::{Database, Options, Protocol, Session};

/// The protocols under which an open block holds nothing that others wait for.
const PROTOCOLS: [Protocol; 4] = [
    Protocol::Silo,
    Protocol::Occ,
    Protocol::TicToc,
    Protocol::Mvcc,
];

fn open(protocol: Protocol) -> Database {
    let options = Options::new().workers(1).pin_workers(false);
    let database = Database::open(options.protocol(protocol)).expect("there is memory");
    let script = "CREATE TABLE job (id INTEGER PRIMARY KEY, rank INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'ready');
        INSERT INTO job SELECT i, 100 - i FROM generate_series(1, 9) AS i;
        CREATE TABLE part (job_id INTEGER, n TEXT, PRIMARY KEY (job_id, n));
        INSERT INTO part VALUES (1, 'a'), (1, 'b'), (2, 'a');
        CREATE TABLE keyless (a INTEGER);
        CREATE VIEW shown AS SELECT id FROM job";
    database.execute(script).expect("it is SQL");
    database
}

fn session(database: &Database) -> Session {
    database.session().expect("there is room")
}

/// The first column of the last statement's rows or its tag, or the state of its error.
fn run(session: &mut Session, text: &str) -> String {
    match session.execute(text) {
        Ok(results) => results.last().map_or(String::new(), |result| {
            let rows = result.result.as_ref().map(|rows| &rows.rows);
            let Some(rows) = rows else {
                return result.tag.clone();
            };
            let firsts = rows.iter().map(|row| row[0].to_string());
            firsts.collect::<Vec<_>>().join(" ")
        }),
        Err(error) => error.state().to_string(),
    }
}

const NEXT: &str =
    "SELECT id FROM job WHERE state = 'ready' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED";

#[test]
fn workers_of_a_queue_take_different_rows() {
    for protocol in PROTOCOLS {
        let database = open(protocol);
        let [mut one, mut two, mut three] = [(); 3].map(|()| session(&database));
        run(&mut one, "BEGIN");
        run(&mut two, "BEGIN");
        assert_eq!(run(&mut one, NEXT), "1 2", "{protocol}");
        assert_eq!(run(&mut two, NEXT), "3 4", "{protocol}");
        // The transaction's own locks are none to it.
        assert_eq!(run(&mut one, NEXT), "1 2", "{protocol}");
        let alone =
            "UPDATE job SET state = 'done' WHERE id = (SELECT id FROM job WHERE state = 'ready'
            ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id";
        assert_eq!(run(&mut three, alone), "5", "{protocol}");
        for (worker, ids) in [(&mut one, "1, 2"), (&mut two, "3, 4")] {
            let done = format!("UPDATE job SET state = 'done' WHERE id IN ({ids})");
            assert_eq!(run(worker, &done), "UPDATE 2", "{protocol}");
        }
        assert_eq!(run(&mut one, "COMMIT"), "COMMIT", "{protocol}");
        assert_eq!(run(&mut two, "COMMIT"), "COMMIT", "{protocol}");
        assert_eq!(run(&mut three, NEXT), "6 7", "{protocol}");
        assert!(database.engine().locks().is_empty(), "{protocol}");
    }
}

#[test]
fn a_row_is_free_again_when_its_transaction_ends_or_goes_back() {
    for protocol in PROTOCOLS {
        let database = open(protocol);
        let [mut one, mut two] = [(); 2].map(|()| session(&database));
        run(&mut one, "BEGIN");
        run(&mut one, NEXT);
        run(&mut one, "SAVEPOINT s");
        let more = "SELECT id FROM job WHERE id = 3 FOR UPDATE SKIP LOCKED";
        assert_eq!(run(&mut one, more), "3", "{protocol}");
        assert_eq!(run(&mut two, NEXT), "4 5", "{protocol}");
        run(&mut one, "ROLLBACK TO s");
        assert_eq!(run(&mut two, NEXT), "3 4", "{protocol}");
        run(&mut one, "ROLLBACK");
        assert_eq!(run(&mut two, NEXT), "1 2", "{protocol}");
        run(&mut one, "BEGIN");
        run(&mut one, NEXT);
        drop(one);
        assert_eq!(run(&mut two, NEXT), "1 2", "{protocol}");
    }
}

#[test]
fn rows_are_locked_within_the_limits_of_the_query() {
    let database = open(Protocol::Silo);
    let [mut one, mut two] = [(); 2].map(|()| session(&database));
    let locked = |session: &mut Session| {
        run(
            session,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'tuple' AND relation = 'job'::regclass",
        )
    };
    for (query, ids, count) in [
        // Its order has no index.
        ("SELECT id FROM job ORDER BY rank LIMIT 3", "9 8 7", "3"),
        (
            "SELECT id FROM job ORDER BY id OFFSET 2 LIMIT 2",
            "3 4",
            "4",
        ),
        (
            "SELECT id FROM job ORDER BY id DESC FETCH FIRST 2 ROWS ONLY",
            "9 8",
            "2",
        ),
        ("SELECT id FROM job WHERE rank < 94", "7 8 9", "3"),
        ("SELECT id FROM job LIMIT 0", "", "0"),
        (
            "SELECT 1 + id AS id FROM job AS j ORDER BY j.id LIMIT 1",
            "2",
            "1",
        ),
    ] {
        run(&mut one, "BEGIN");
        let statement = format!("{query} FOR UPDATE SKIP LOCKED");
        assert_eq!(run(&mut one, &statement), ids, "{query}");
        assert_eq!(locked(&mut two), count, "{query}");
        run(&mut one, "COMMIT");
    }
}

#[test]
fn modes_and_tables_of_a_clause() {
    let database = open(Protocol::Silo);
    let [mut one, mut two] = [(); 2].map(|()| session(&database));
    let count =
        |session: &mut Session, rest: &str| run(session, &format!("SELECT id FROM job {rest}"));
    run(&mut one, "BEGIN");
    assert_eq!(count(&mut one, "WHERE id < 3 FOR SHARE SKIP LOCKED"), "1 2");
    assert_eq!(
        count(&mut two, "WHERE id < 4 FOR KEY SHARE SKIP LOCKED"),
        "1 2 3"
    );
    assert_eq!(count(&mut two, "WHERE id < 4 FOR UPDATE SKIP LOCKED"), "3");
    run(&mut one, "ROLLBACK; BEGIN");
    let joined = "JOIN part ON job_id = id WHERE n = 'a' ORDER BY id";
    assert_eq!(
        count(
            &mut one,
            &format!("{joined} FOR UPDATE OF part SKIP LOCKED")
        ),
        "1 2"
    );
    assert_eq!(
        count(&mut two, &format!("{joined} FOR UPDATE OF job SKIP LOCKED")),
        "1 2"
    );
    assert_eq!(
        count(&mut two, &format!("{joined} FOR UPDATE SKIP LOCKED")),
        ""
    );
    let outer = "LEFT JOIN part ON job_id = id AND n = 'b' WHERE id < 4 ORDER BY id";
    assert_eq!(
        count(&mut two, &format!("{outer} FOR UPDATE SKIP LOCKED")),
        "1 2 3"
    );
    run(&mut one, "ROLLBACK");
}

#[test]
fn nowait_is_an_error_where_another_has_the_row() {
    for protocol in PROTOCOLS {
        let database = open(protocol);
        let [mut one, mut two] = [(); 2].map(|()| session(&database));
        run(&mut one, "BEGIN");
        let row = "SELECT id FROM job WHERE id = 1 FOR UPDATE NOWAIT";
        assert_eq!(run(&mut one, row), "1", "{protocol}");
        let error = two.execute(row).expect_err("it is locked");
        assert_eq!(error.state().as_str(), "55P03", "{protocol}");
        let message = "could not obtain lock on row in relation \"job\"";
        assert_eq!(error.message(), message, "{protocol}");
        assert_eq!(
            run(
                &mut two,
                "SELECT id FROM job WHERE id = 2 FOR UPDATE NOWAIT"
            ),
            "2"
        );
        run(&mut one, "COMMIT");
        assert_eq!(run(&mut two, row), "1", "{protocol}");
    }
}

#[test]
fn what_cannot_be_left_out_is_refused_by_name() {
    let database = open(Protocol::Silo);
    let mut session = session(&database);
    for query in [
        "SELECT a FROM keyless FOR UPDATE SKIP LOCKED",
        "SELECT count(*) FROM job FOR UPDATE SKIP LOCKED",
        "SELECT * FROM (SELECT id FROM job LIMIT 1) AS j FOR UPDATE SKIP LOCKED",
        "CREATE FUNCTION f() RETURNS INTEGER LANGUAGE sql AS 'SELECT id FROM job FOR UPDATE SKIP LOCKED'",
    ] {
        assert_eq!(run(&mut session, query), "0A000", "{query}");
    }
    for protocol in Protocol::serializable().filter(|it| !PROTOCOLS.contains(it)) {
        let database = open(protocol);
        let error = database.query(NEXT, ()).expect_err("it would wait");
        assert_eq!(error.state().as_str(), "0A000", "{protocol}");
        assert!(error.message().contains(&protocol.to_string()), "{error}");
    }
}

/// Workers take jobs until there is none: each job is done once, whatever the workers meet.
#[test]
fn a_queue_is_worked_off_once() {
    const JOBS: usize = 120;
    for protocol in PROTOCOLS {
        let database = open(protocol);
        let fill = format!(
            "DELETE FROM job; INSERT INTO job SELECT i, 0 FROM generate_series(1, {JOBS}) AS i"
        );
        database.execute(&fill).expect("it is SQL");
        let done = AtomicUsize::new(0);
        let lost = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut session = session(&database);
                    loop {
                        run(&mut session, "BEGIN");
                        let id = run(&mut session, NEXT);
                        if id.is_empty() {
                            run(&mut session, "ROLLBACK");
                            break;
                        }
                        let ids = id.replace(' ', ", ");
                        let update = format!(
                            "UPDATE job SET state = 'done', rank = rank + 1 WHERE id IN ({ids})"
                        );
                        run(&mut session, &update);
                        match run(&mut session, "COMMIT").as_str() {
                            "COMMIT" => done.fetch_add(id.split(' ').count(), Ordering::Relaxed),
                            _ => lost.fetch_add(1, Ordering::Relaxed),
                        };
                        run(&mut session, "ROLLBACK");
                    }
                });
            }
        });
        let ranks = "SELECT count(*), min(rank), max(rank) FROM job WHERE state = 'done'";
        let ranks = database
            .query(ranks, ())
            .and_then(|rows| rows.into_one::<(i64, i32, i32)>());
        assert_eq!(ranks, Ok((JOBS as i64, 1, 1)), "{protocol}");
        assert_eq!(done.load(Ordering::Relaxed), JOBS, "{protocol}");
        println!("{protocol}: {} blocks lost", lost.load(Ordering::Relaxed));
        assert!(database.engine().locks().is_empty(), "{protocol}");
    }
}
