//! Statements that are cancelled from another thread, or run out of their time.

use kiln_engine::{Configuration, Options};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::error::{Result, SqlState};

use super::super::{Database, Session, StatementResult};

/// Joins without an index: hours, if nothing ends it.
const ENDLESS: &str = "SELECT count(*) FROM big AS a WHERE EXISTS \
                       (SELECT 1 FROM big AS b, big AS c WHERE a.x + b.x + c.x < 0)";

const DEFINITIONS: &str = "CREATE TABLE big (x INTEGER);
    INSERT INTO big SELECT * FROM generate_series(1, 10000);
    CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER);
    INSERT INTO account VALUES (1, 100), (2, 100);";

/// The longest that an answer to a request may take, on a machine that does much else.
const SOON_NS: u64 = 10_000_000_000;

fn open(protocol: Configuration) -> Database {
    let options = Options::new().workers(1).pin_workers(false);
    let database = Database::open(options.protocol(protocol)).expect("the options are good");
    database
        .execute(DEFINITIONS)
        .expect("the definitions are good");
    database
}

/// Runs a statement that is asked to end while it runs.
fn run_canceled(session: &mut Session, sql: &str) -> Result<Vec<StatementResult>> {
    let handle = session.cancel_handle();
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = is_over.clone();
    let asking = thread::spawn("cancel", move || {
        thread::sleep(30_000_000);
        // Relaxed: the thread that is joined waits for nothing else.
        while !handle.cancel() && !ended.load(Ordering::Relaxed) {
            thread::sleep(1_000_000);
        }
        time::now_ns()
    });
    let asking = asking.expect("a thread starts");
    let result = session.execute(sql);
    let ended = time::now_ns();
    is_over.store(true, Ordering::Relaxed);
    let asked = asking.join().expect("the other thread does not panic");
    assert!(
        ended < asked + SOON_NS,
        "{sql} ran on for {} ns",
        ended - asked
    );
    result
}

#[track_caller]
fn check_canceled(result: Result<Vec<StatementResult>>, message: &str) {
    let error = result.expect_err("the statement was to end");
    assert_eq!(error.state(), SqlState::QUERY_CANCELED);
    assert_eq!(error.message(), message);
}

const BY_REQUEST: &str = "canceling statement due to user request";
const BY_TIMEOUT: &str = "canceling statement due to statement timeout";

#[test]
fn a_running_statement_is_canceled_under_every_protocol() {
    for protocol in Configuration::serializable() {
        let database = open(protocol);
        let mut session = database.session().expect("a session is free");
        check_canceled(run_canceled(&mut session, ENDLESS), BY_REQUEST);
        let changing = "UPDATE account SET balance = 0 WHERE id = 1 AND EXISTS \
                        (SELECT 1 FROM big AS b, big AS c, big AS d WHERE b.x + c.x + d.x < 0)";
        check_canceled(run_canceled(&mut session, changing), BY_REQUEST);
        // The block fails, and what it had done is undone.
        session
            .execute("BEGIN; UPDATE account SET balance = 0 WHERE id = 2")
            .expect("nothing is in its way");
        check_canceled(run_canceled(&mut session, ENDLESS), BY_REQUEST);
        assert!(session.has_failed(), "{protocol}");
        let ended = session.execute("COMMIT").expect("a failed block ends");
        assert_eq!(ended[0].tag, "ROLLBACK");
        let left = session.query("SELECT count(*) FROM account WHERE balance = 100", ());
        let left = left.and_then(|rows| rows.into_one());
        assert_eq!(left, Ok((2_i64,)), "{protocol}");
    }
}

#[test]
fn few_calls_that_take_long_are_canceled_between_each_other() {
    let database = open(Configuration::default());
    let mut session = database.session().expect("a session is free");
    let hash = "crypt('secret', '$2a$08$abcdefghijklmnopqrstuu')";
    let hashes = [hash; 100].join(", ");
    let several = [
        // Fewer iterations than a loop has between two looks at the limits.
        "SELECT count(*) FROM big WHERE x <= 100 AND crypt(x::text, gen_salt('bf', 8)) = ''".into(),
        // No loop, and nothing but constants.
        format!("SELECT {hashes}"),
        "SELECT sum(length(regexp_replace(repeat('ab' || x, 200000), '(a)(b)', '\\2\\1', 'g'))) \
         FROM big WHERE x <= 100"
            .into(),
        "SELECT sum(length(repeat(x::text, 100000000))) FROM big WHERE x <= 100".into(),
    ];
    for sql in &several {
        check_canceled(run_canceled(&mut session, sql), BY_REQUEST);
    }
}

/// A path into JSON is data: none overflows a stack, and none holds a worker for long.
#[test]
fn paths_that_ask_for_too_much_end_with_an_error() {
    let database = open(Configuration::default());
    let mut session = database.session().expect("a session is free");
    let paths = [
        (
            "'1' || repeat('+1', 100000)",
            SqlState::STATEMENT_TOO_COMPLEX,
        ),
        (
            "'$' || repeat('.type()', 100000)",
            SqlState::STATEMENT_TOO_COMPLEX,
        ),
        // Each `**` takes all levels below, of each of which the next one does.
        (
            "'$' || repeat('.**', 400)",
            SqlState::PROGRAM_LIMIT_EXCEEDED,
        ),
    ];
    for (path, state) in paths {
        let sql = format!(
            "SELECT jsonb_path_query_array((repeat('[', 50) || repeat(']', 50))::jsonb, ({path})::jsonpath)"
        );
        let refused = session.execute(&sql).expect_err(path);
        assert_eq!(refused.state(), state, "{path}: {refused}");
    }
    // As many steps as there may be.
    for path in ["'1' || repeat('+1', 190)", "'$' || repeat('.type()', 500)"] {
        let sql = format!("SELECT jsonb_path_query_first('1', ({path})::jsonpath)");
        session
            .execute(&sql)
            .expect("its steps are within the limit");
    }
}

#[test]
fn a_request_without_a_statement_does_nothing() {
    let database = open(Configuration::default());
    let mut session = database.session().expect("a session is free");
    let handle = session.cancel_handle();
    assert!(!handle.cancel());
    let count = session.query("SELECT count(*) FROM account", ());
    assert_eq!(count.and_then(|rows| rows.into_one()), Ok((2_i64,)));
    session.execute("BEGIN").expect("no block is open");
    assert!(!handle.cancel(), "the block is idle");
    let count = session.query("SELECT count(*) FROM account", ());
    assert_eq!(count.and_then(|rows| rows.into_one()), Ok((2_i64,)));
    drop(session);
    assert!(!handle.cancel());
}

#[test]
fn a_statement_that_waits_for_a_block_is_canceled_or_done() {
    for protocol in Configuration::serializable() {
        let database = open(protocol);
        let mut waiting = database.session().expect("a session is free");
        let mut holder = database.session().expect("a session is free");
        holder
            .execute("BEGIN; UPDATE account SET balance = 50 WHERE id = 1")
            .expect("nothing is in its way");
        for sql in [
            "UPDATE account SET balance = balance + 1 WHERE id = 1",
            "BEGIN; UPDATE account SET balance = balance + 1 WHERE id = 1",
        ] {
            let name = protocol.to_string();
            let result = run_canceled(&mut waiting, sql);
            let state = result.map_err(|error| error.state());
            let in_block = waiting.in_transaction();
            match state {
                // Nothing made it wait, as under the optimistic protocols: then it is done.
                Ok(_) => {}
                Err(SqlState::QUERY_CANCELED) => {}
                // What does not wait for locks gives up the block at once.
                Err(SqlState::SERIALIZATION_FAILURE) if in_block => {}
                Err(state) => panic!("{name}: {state}"),
            }
            waiting.roll_back();
        }
        // Under a protocol that locks, and one that runs one transaction at a time, it does wait.
        let committed = holder.execute("COMMIT");
        let waits = ["serial", "2pl-wait-for-graph", "vll", "orthrus", "dora"];
        if waits.contains(&protocol.to_string().as_str()) {
            assert!(committed.is_ok(), "{protocol}: {committed:?}");
            let rows = waiting.query("SELECT balance FROM account WHERE id = 1", ());
            let balance = rows.and_then(|rows| rows.into_one());
            assert_eq!(
                balance,
                Ok((50,)),
                "{protocol}: the cancelled update left something"
            );
        }
    }
}

#[test]
fn a_timeout_ends_a_statement_while_it_runs() {
    let database = open(Configuration::default());
    let mut session = database.session().expect("a session is free");
    session
        .execute("SET statement_timeout = '30ms'")
        .expect("it is a setting");
    check_canceled(session.execute(ENDLESS), BY_TIMEOUT);
    session.execute("BEGIN").expect("no block is open");
    check_canceled(session.execute(ENDLESS), BY_TIMEOUT);
    assert!(session.has_failed());
    session.roll_back();
    // Each statement has its own time.
    let many = "BEGIN; SELECT 1; SELECT 2; COMMIT";
    for _ in 0..20 {
        session.execute(many).expect("each is short");
    }
}

#[test]
fn a_call_that_runs_long_is_canceled() {
    let database = open(Configuration::default());
    let mut session = database.session().expect("a session is free");
    session
        .execute(
            "CREATE PROCEDURE spin(n INTEGER) LANGUAGE plpgsql AS $$
             DECLARE i INTEGER := 0;
             BEGIN
                 UPDATE account SET balance = 0 WHERE id = 1;
                 WHILE i < n LOOP i := i + 1 - 1; END LOOP;
             END $$",
        )
        .expect("it is new");
    check_canceled(run_canceled(&mut session, "CALL spin(10)"), BY_REQUEST);
    // The argument is computed by a program of its own.
    let computed = "CALL spin((SELECT max(x) FROM big))";
    check_canceled(run_canceled(&mut session, computed), BY_REQUEST);
    let left = session.query("SELECT balance FROM account WHERE id = 1", ());
    assert_eq!(left.and_then(|rows| rows.into_one()), Ok((100,)));
}
