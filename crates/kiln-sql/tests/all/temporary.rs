//! Temporary tables: one session's own, in no log and no checkpoint, invisible to other sessions.

#![cfg(not(kiln_sim))]

use std::time::Duration;

use kiln_engine::Completions;
use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::{thread, time};
use kiln_sql::{Database, Options, Protocol, Session, SqlState, Value};

fn open() -> Database {
    Database::open(Options::new().workers(2).pin_workers(false)).expect("it opens")
}

fn text(session: &mut Session, query: &str) -> String {
    session.query(query, ()).expect(query).to_csv()
}

fn state(session: &mut Session, statement: &str) -> SqlState {
    session.execute(statement).expect_err(statement).state()
}

#[test]
fn each_session_has_its_own() {
    let database = open();
    let mut one = database.session().expect("there is room");
    let mut other = database.session().expect("there is room");
    one.execute("CREATE TEMP TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
        .expect("it is right");
    assert_eq!(
        state(&mut other, "SELECT * FROM t"),
        SqlState::UNDEFINED_TABLE
    );
    other
        .execute("CREATE TEMP TABLE t (b TEXT); INSERT INTO t VALUES ('x'), ('y')")
        .expect("it is right");
    assert_eq!(text(&mut one, "SELECT * FROM t"), "a\n1\n");
    assert_eq!(text(&mut other, "SELECT * FROM t ORDER BY b"), "b\nx\ny\n");
    let own = text(
        &mut other,
        "SELECT count(*) FROM pg_class WHERE relpersistence = 't'",
    );
    assert_eq!(own, "count\n1\n");
    let schema = text(
        &mut one,
        "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()",
    );
    let schema = schema.lines().nth(1).expect("it has one").to_owned();
    let foreign = format!("SELECT * FROM {schema}.t");
    assert_eq!(text(&mut one, &foreign), "a\n1\n");
    assert_eq!(state(&mut other, &foreign), SqlState::UNDEFINED_TABLE);
    assert_eq!(database.engine().catalog().tables().count(), 0);
    // Prepared with the one, run with the other.
    let insert = one
        .parse("INSERT INTO t VALUES ($1)", &[])
        .expect("there is one");
    let mut portal = one.bind(&insert, &[Value::Integer(2)]).expect("it fits");
    one.execute_portal(&mut portal, 0).expect("it runs");
    assert_eq!(text(&mut one, "SELECT sum(a) FROM t"), "sum\n3\n");
}

#[test]
fn memory_of_a_session_that_is_gone_is_given_back() {
    for protocol in [Protocol::default(), Protocol::Mvcc, Protocol::Serial] {
        let options = Options::new().workers(1).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("it opens");
        let mut session = database.session().expect("there is room");
        session
            .execute(
                "CREATE TEMP TABLE t AS SELECT i, repeat('x', 100) AS r FROM generate_series(1, 1000) i;
                 CREATE INDEX t_i ON t (i);
                 ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 1;
                 TRUNCATE t;
                 INSERT INTO t VALUES (1, 'y');
                 CREATE TEMP TABLE u (a INTEGER PRIMARY KEY);
                 DROP TABLE u",
            )
            .expect("it is right");
        assert!(database.engine().temporary_tables() > 0);
        session
            .execute("BEGIN; INSERT INTO t VALUES (2)")
            .expect("it is right");
        drop(session);
        let until = time::now_ns() + 10_000_000_000;
        while database.engine().temporary_tables() > 0 {
            assert!(time::now_ns() < until, "{protocol}: they are still there");
            thread::sleep(10_000_000);
        }
    }
}

#[test]
fn a_directory_knows_nothing_of_them() {
    let temporary = TemporaryDirectory::new("kiln-temporary").expect("there is room");
    let open = || {
        let path = temporary.path().join("data");
        let options = Options::new().workers(2).pin_workers(false);
        Database::open(options.data_dir(Some(path))).expect("it opens")
    };
    {
        let database = open();
        let mut session = database.session().expect("there is room");
        session
            .execute(
                "CREATE TABLE before (a INTEGER);
                 CREATE TEMP TABLE t (id SERIAL PRIMARY KEY, a INTEGER);
                 INSERT INTO t (a) VALUES (1), (2), (3);
                 CREATE TABLE after (a INTEGER);
                 INSERT INTO after SELECT a FROM t;
                 UPDATE t SET a = a + 1;
                 BEGIN;
                 CREATE TEMP TABLE u AS SELECT a FROM t;
                 CREATE TABLE kept (a INTEGER PRIMARY KEY);
                 INSERT INTO kept SELECT a FROM u;
                 INSERT INTO u SELECT a FROM kept;
                 COMMIT;
                 BEGIN; INSERT INTO before VALUES (7); DELETE FROM t; COMMIT",
            )
            .expect("it is right");
        database.engine().checkpoint().expect("it is written");
        session
            .execute("CREATE TEMP VIEW v AS SELECT 1; INSERT INTO u VALUES (9); INSERT INTO before VALUES (8)")
            .expect("it is right");
        let written = database
            .engine()
            .written_catalog()
            .expect("it can be written");
        assert!(!written.to_string().contains("pg_temp"), "{written}");
    }
    for _ in 0..2 {
        let database = open();
        let mut session = database.session().expect("there is room");
        assert_eq!(
            text(&mut session, "SELECT a FROM before ORDER BY a"),
            "a\n7\n8\n"
        );
        assert_eq!(
            text(&mut session, "SELECT a FROM after ORDER BY a"),
            "a\n1\n2\n3\n"
        );
        assert_eq!(
            text(&mut session, "SELECT a FROM kept ORDER BY a"),
            "a\n2\n3\n4\n"
        );
        assert_eq!(database.engine().catalog().tables().count(), 3);
        session
            .execute("CREATE TEMP TABLE t (a INTEGER); CREATE TABLE IF NOT EXISTS again (a INTEGER); DROP TABLE again")
            .expect("it is right");
    }
}

/// A block that has used a table keeps definitions of it waiting, but not those of temporary
/// tables.
#[test]
fn definitions_wait_for_no_block() {
    let database = open();
    let mut holder = database.session().expect("there is room");
    holder
        .execute("CREATE TABLE p (a INTEGER); BEGIN; INSERT INTO p VALUES (1)")
        .expect("it is right");
    let mut session = database.session().expect("there is room");
    session.set_replay(true);
    let began = time::now_ns();
    session
        .execute(
            "BEGIN;
             CREATE TEMP TABLE t (a INTEGER);
             INSERT INTO t VALUES (1);
             CREATE INDEX i ON t (a);
             ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 2;
             COMMIT;
             DROP TABLE t",
        )
        .expect("it is right");
    assert!(
        time::now_ns() - began < 1_000_000_000,
        "it waited for a block"
    );
    holder.execute("COMMIT").expect("nothing was in its way");
}

/// A block with a temporary table loses against others, and is run again with all that it has made.
#[test]
fn a_replay_makes_them_again() {
    let database = open();
    database
        .execute("CREATE TABLE p (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO p VALUES (1, 0)")
        .expect("it is right");
    const THREADS: usize = 4;
    const ROUNDS: usize = 25;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let database = database.clone();
            scope.spawn(move || {
                let mut session = database.session().expect("there is room");
                for round in 0..ROUNDS {
                    session
                        .execute(
                            "BEGIN;
                             CREATE TEMP TABLE t (a INTEGER) ON COMMIT DROP;
                             INSERT INTO t VALUES (1), (2);
                             CREATE INDEX i ON t (a);
                             UPDATE p SET n = n + 1 WHERE id = 1;
                             ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 1;
                             INSERT INTO t VALUES (3, 1)",
                        )
                        .expect("it is run again after conflicts");
                    let sums = text(&mut session, "SELECT sum(a), sum(b), count(*) FROM t");
                    assert_eq!(sums, "sum,sum,count\n6,3,3\n", "round {round}");
                    session
                        .execute("COMMIT")
                        .expect("it is run again after conflicts");
                    assert_eq!(
                        state(&mut session, "SELECT * FROM t"),
                        SqlState::UNDEFINED_TABLE
                    );
                }
            });
        }
    });
    let mut session = database.session().expect("there is room");
    let all = format!("n\n{}\n", THREADS * ROUNDS);
    assert_eq!(text(&mut session, "SELECT n FROM p"), all);
}

#[test]
fn workers_run_what_a_session_submits() {
    let database = open();
    let mut session = database.session().expect("there is room");
    session
        .execute("CREATE TEMP TABLE t (a INTEGER PRIMARY KEY)")
        .expect("it is right");
    let completions = Completions::new(10);
    let insert = session
        .parse("INSERT INTO t VALUES ($1)", &[])
        .expect("there is one");
    for a in 0..3 {
        let portal = session
            .bind(&insert, &[Value::Integer(a)])
            .expect("it fits");
        assert!(session.can_submit(&portal));
        let mut portal = session
            .submit(portal, &completions, 1)
            .expect("there is room");
        let mut ended = Vec::new();
        while ended.is_empty() {
            completions.wait(&mut ended, Duration::from_secs(1));
        }
        let outcome = ended.pop().expect("it has ended").result;
        session.complete(&mut portal, outcome).expect("it is right");
    }
    assert_eq!(text(&mut session, "SELECT sum(a) FROM t"), "sum\n3\n");
    session
        .execute("CREATE TEMP TABLE loses (a INTEGER) ON COMMIT DELETE ROWS")
        .expect("it is right");
    let insert = session
        .parse("INSERT INTO loses VALUES (1)", &[])
        .expect("there is one");
    let portal = session.bind(&insert, &[]).expect("it fits");
    assert!(
        !session.can_submit(&portal),
        "no session would empty the table"
    );
}

#[test]
fn another_protocol_takes_them_over() {
    let database = open();
    let mut session = database.session().expect("there is room");
    session
        .execute(
            "CREATE TEMP TABLE t (a INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0)",
        )
        .expect("it is right");
    let protocols = Protocol::ALL
        .iter()
        .filter(|protocol| protocol.is_serializable());
    let mut runs = 0;
    for protocol in protocols {
        if database.engine().set_protocol(*protocol).is_err() {
            continue;
        }
        runs += 1;
        session
            .execute(
                "UPDATE t SET n = n + 1;
                 BEGIN;
                 INSERT INTO t VALUES (2, 1);
                 CREATE INDEX i ON t (n);
                 UPDATE t SET n = n + 1 WHERE a = 1;
                 DELETE FROM t WHERE a = 2;
                 COMMIT;
                 DROP INDEX i",
            )
            .unwrap_or_else(|error| panic!("{protocol}: {error}"));
    }
    assert!(runs > 10, "{runs}");
    let twice = format!("a,n\n1,{}\n", 2 * runs);
    assert_eq!(text(&mut session, "SELECT * FROM t"), twice);
}

#[test]
fn roles_need_no_privilege_for_their_own() {
    let database = open();
    database
        .execute(
            "CREATE ROLE app LOGIN; CREATE TABLE p (a INTEGER); CREATE TABLE secret (a INTEGER);
             INSERT INTO p VALUES (1); GRANT SELECT ON p TO app",
        )
        .expect("it is right");
    let mut session = database.session_as("app").expect("there is room");
    session
        .execute(
            "CREATE TEMP TABLE t (id SERIAL, a INTEGER);
             INSERT INTO t (a) SELECT a FROM p;
             CREATE INDEX i ON t (a);
             CREATE TEMP TABLE u AS SELECT a FROM p;
             UPDATE t SET a = 2; TRUNCATE u; DROP TABLE u;
             CREATE TEMP VIEW seen AS SELECT * FROM p;
             CREATE TEMP VIEW hidden AS SELECT * FROM secret",
        )
        .expect("it is right");
    assert_eq!(text(&mut session, "SELECT * FROM t"), "id,a\n1,2\n");
    assert_eq!(text(&mut session, "SELECT * FROM seen"), "a\n1\n");
    for refused in [
        "CREATE TEMP TABLE v AS SELECT * FROM secret",
        "SELECT * FROM hidden",
        "INSERT INTO t (a) SELECT a FROM secret",
        "CREATE TABLE v (a INTEGER)",
        "DROP TABLE p",
    ] {
        assert_eq!(
            state(&mut session, refused),
            SqlState::INSUFFICIENT_PRIVILEGE,
            "{refused}"
        );
    }
}

#[test]
fn statements_outside_of_sessions_leave_none() {
    let database = open();
    database
        .execute("CREATE TEMP TABLE t (a INTEGER)")
        .expect("it is right");
    let failed = database.execute("SELECT * FROM t").expect_err("it is gone");
    assert_eq!(failed.state(), SqlState::UNDEFINED_TABLE);
}
