//! The life of a small database, step by step, each of which writes one group of its log at most;
//! and what can be seen of it after each.

#![allow(dead_code, reason = "no test uses all of it")]

use std::path::Path;

use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_sql::{Call, Database, IdempotencyKey, Options, Reply};

/// What happens to the database.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Sql(&'static str),
    /// The next of [`calls`].
    Call,
    Checkpoint,
}

/// Tables with a primary key, a unique index, and none of them; values of most types; NULLs;
/// updates of indexed columns and of keys; deletions; changes of the catalog between them; calls
/// with keys that are committed, rejected, and only read. The last step and one before it write
/// several blocks.
pub const LIFE: [Step; 24] = {
    use Step::{Call, Checkpoint, Sql};
    [
        Sql("CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT UNIQUE, balance NUMERIC(12, 2) NOT NULL)"),
        Sql("CREATE TABLE note (about INTEGER, text TEXT, at TIMESTAMP, flag BOOLEAN)"),
        Sql("CREATE INDEX note_about ON note (about)"),
        Sql("CREATE FUNCTION pay(payer INTEGER, payee INTEGER, amount NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql AS $$
            DECLARE left_over NUMERIC;
            BEGIN
                UPDATE account SET balance = balance - amount WHERE id = payer RETURNING balance INTO left_over;
                IF left_over < 0 THEN RAISE EXCEPTION 'not enough'; END IF;
                UPDATE account SET balance = balance + amount WHERE id = payee;
                INSERT INTO note VALUES (payer, 'paid ' || amount, NULL, TRUE);
                RETURN left_over;
            END $$"),
        Sql("INSERT INTO account SELECT i, 'owner ' || i, 100 FROM generate_series(1, 12) i"),
        Sql("INSERT INTO note VALUES (1, NULL, '2026-01-31 12:00:00', NULL), (NULL, 'about nothing', NULL, FALSE)"),
        Call,
        Checkpoint,
        Sql("UPDATE account SET id = 1000 + id WHERE id > 10"),
        Sql("DELETE FROM account WHERE id = 7"),
        Sql("INSERT INTO account VALUES (7, NULL, 0.5)"),
        Sql("CREATE TABLE later (id BIGINT PRIMARY KEY, bytes BYTEA, day DATE, ratio DOUBLE PRECISION)"),
        Sql("INSERT INTO later VALUES (1, '\\x00ff', '2026-02-28', 0.1), (-9000000000, NULL, NULL, '-Infinity')"),
        Call,
        Call,
        Sql("UPDATE note SET text = repeat('long ', 1100) WHERE about = 1"),
        Checkpoint,
        Sql("UPDATE account SET owner = 'x' WHERE id = 9"),
        Sql("UPDATE account SET owner = 'owner 9' WHERE id = 8"),
        Sql("DROP INDEX note_about"),
        Sql("CREATE UNIQUE INDEX later_day ON later (day, ratio)"),
        Sql("DELETE FROM note WHERE about IS NULL"),
        Call,
        Sql("UPDATE note SET text = repeat('wide ', 900 + about) WHERE about < 4"),
    ]
};

/// The calls of a life, in their order. The golden directories know their answers: what is here
/// stays.
pub fn calls() -> [Call; 4] {
    let pay = |name: &str, arguments: (i32, i32, &'static str)| {
        let key = IdempotencyKey::new(name).expect("it is short");
        Call::new("pay", arguments).idempotency_key(key)
    };
    [
        pay("pays", (3, 4, "20.5")),
        pay("is refused", (5, 6, "1000")),
        pay("pays itself", (1, 1, "3")),
        pay("pays later", (1, 9, "0.01")),
    ]
}

/// What of a database is compared.
const QUERIES: [&str; 7] = [
    "SELECT * FROM account ORDER BY id",
    "SELECT * FROM note ORDER BY about, text, at",
    "SELECT * FROM later ORDER BY id",
    "SELECT id FROM account WHERE owner = 'owner 9'",
    "SELECT owner, id FROM account WHERE owner > 'o' ORDER BY owner",
    "SELECT count(*) FROM note WHERE about = 1",
    "SELECT sum(balance) FROM account",
];

/// What can be seen of a database.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Of each query.
    pub rows: Vec<String>,
    pub catalog: String,
    /// The answers of the first [`calls`].
    pub replies: Vec<Reply>,
}

impl State {
    /// Of a database that has had this many calls.
    pub fn of(database: &Database, calls_had: usize) -> State {
        let rows = QUERIES.map(|query| match database.query(query, ()) {
            Ok(result) => result.to_csv(),
            // The table is not there yet.
            Err(error) => error.to_string(),
        });
        let catalog = database.engine().written_catalog();
        // They are not run again: the rows are what they were.
        let calls = calls().into_iter().take(calls_had);
        let replies = calls.map(|call| database.engine().execute(call).expect("it is known"));
        State {
            rows: rows.into(),
            catalog: catalog.expect("it can be written").to_string(),
            replies: replies.collect(),
        }
    }
}

/// What a database was after one of its steps.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The last block of its log.
    pub block: u64,
    pub calls: usize,
    pub state: State,
}

/// A directory for a data directory, in memory where the system has such a place: tests open
/// thousands, each with some syncs.
pub fn temporary() -> TemporaryDirectory {
    let in_memory = Path::new("/dev/shm");
    let parent = match Directory::open(in_memory) {
        Ok(_) => in_memory,
        Err(_) => Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    TemporaryDirectory::within(parent, "kiln-life").expect("the test may write there")
}

/// A database with small segments, and few threads.
pub fn options(path: &Path) -> Options {
    Options::new()
        .workers(1)
        .session_slots(2)
        .pin_workers(false)
        .log_segment_bytes(16 << 10)
        .data_dir(Some(path.to_owned()))
}

/// Lives a life in a new data directory at `path`, with only the last of its checkpoints. Returns
/// what the database was at the beginning and after each step.
pub fn live(path: &Path, checkpoints: usize) -> Vec<Moment> {
    let database = Database::open(options(path)).expect("it is new");
    let moment = |calls| Moment {
        block: database
            .engine()
            .log()
            .expect("it has one")
            .end()
            .chain
            .last,
        calls,
        state: State::of(&database, calls),
    };
    let mut moments = vec![moment(0)];
    let (mut calls, mut skipped) = (calls().into_iter(), 2 - checkpoints);
    for step in LIFE {
        match step {
            Step::Sql(statement) => drop(database.execute(statement).expect(statement)),
            Step::Call => {
                let call = calls.next().expect("there is one for each step");
                database.engine().execute(call).expect("it runs");
            }
            Step::Checkpoint if skipped > 0 => skipped -= 1,
            Step::Checkpoint => drop(database.engine().checkpoint().expect("there is room")),
        }
        moments.push(moment(4 - calls.len()));
    }
    moments
}
