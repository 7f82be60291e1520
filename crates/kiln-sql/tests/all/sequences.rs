//! Sequences under every protocol, over conflicts, and over crashes: no value is given twice, and
//! none is drawn more often than it is asked for.

#![cfg(not(kiln_sim))]

use crate::files;
use std::collections::BTreeSet;

use kiln_engine::Configuration;
use kiln_platform::random::Random;
use kiln_platform::thread;
use kiln_sql::{
    Call, Database, IdempotencyKey, Logging, Options, Protocol, Reply, Session, SqlState, Value,
};

use crate::files::number;
use crate::image::Image;

fn open(configuration: Configuration) -> Database {
    let options = Options::new().workers(2).pin_workers(false);
    Database::open(options.protocol(configuration)).expect("the options are good")
}

/// The only number that a statement gives.
fn draw(session: &mut Session, sql: &str) -> i64 {
    let result = session.run(sql, ());
    let result = result
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
        .result;
    let rows = result.expect("it gives rows");
    rows.into_one::<(i64,)>().expect("it is a number").0
}

/// One row that all calls want, and keys that follow from a value of a sequence.
const SCHEMA: &str = "
CREATE TABLE hot (id INTEGER PRIMARY KEY, n BIGINT NOT NULL);
INSERT INTO hot SELECT i, 0 FROM generate_series(0, 3) i;
CREATE TABLE entry (id BIGSERIAL PRIMARY KEY, other BIGINT GENERATED ALWAYS AS IDENTITY, slot INTEGER NOT NULL);
CREATE SEQUENCE slots MINVALUE 0 START 0;
CREATE FUNCTION enter() RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    k INTEGER;
    made BIGINT;
BEGIN
    k := nextval('slots') % 4;
    UPDATE hot SET n = n + 1 WHERE id = k;
    INSERT INTO entry (slot) VALUES (k) RETURNING id INTO made;
    RETURN made;
END $$;
";

const CALLS: usize = 60;

#[test]
fn each_value_is_drawn_once_under_every_protocol() {
    for configuration in Configuration::serializable() {
        let database = open(configuration);
        database.execute(SCHEMA).expect("the schema is made");
        let given = thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|position| {
                    let database = &database;
                    scope.spawn(move || match position {
                        0 => (0..CALLS)
                            .map(|_| called(database, Call::new("enter", ())))
                            .collect::<Vec<i64>>(),
                        1 => {
                            let mut session = database.session().expect("one is free");
                            let enter = |_| draw(&mut session, "SELECT enter()");
                            (0..CALLS).map(enter).collect()
                        }
                        _ => {
                            let mut session = database.session().expect("one is free");
                            let mut given = Vec::new();
                            for _ in 0..CALLS {
                                in_block(&mut session, &mut given);
                            }
                            given
                        }
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            let joined = joined.map(|given| given.expect("no thread panics"));
            joined.flatten().collect::<Vec<i64>>()
        });
        let calls = 3 * CALLS as i64;
        let distinct: BTreeSet<i64> = given.iter().copied().collect();
        assert_eq!(
            distinct.len(),
            given.len(),
            "{configuration}: one was given twice"
        );
        for (query, expected) in [
            ("SELECT count(*) FROM entry", calls),
            ("SELECT count(DISTINCT other) FROM entry", calls),
            ("SELECT sum(n)::BIGINT FROM hot", calls),
            // Attempts that failed have drawn nothing that the next one was not given.
            ("SELECT last_value + 1 FROM slots", calls),
            ("SELECT last_value FROM entry_id_seq", calls),
            ("SELECT last_value FROM entry_other_seq", calls),
            ("SELECT max(id) FROM entry", calls),
        ] {
            assert_eq!(
                number(&database, query),
                expected,
                "{configuration}: {query}"
            );
        }
        let stored = database.query("SELECT id FROM entry", ()).expect("it runs");
        let stored: BTreeSet<i64> = stored
            .into_rows::<(i64,)>()
            .expect("they are numbers")
            .into_iter()
            .map(|(id,)| id)
            .collect();
        assert_eq!(stored, distinct, "{configuration}");
    }
}

fn called(database: &Database, call: Call) -> i64 {
    match database.engine().execute(call).expect("it is accepted") {
        Reply::Committed(rows) => match rows.values()[0][0] {
            Value::BigInt(number) => number,
            ref other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// A block of statements. It may be replayed, and draws nothing more then.
fn in_block(session: &mut Session, given: &mut Vec<i64>) {
    session.execute("BEGIN").expect("a block begins");
    let made = draw(session, "SELECT enter()");
    assert_eq!(draw(session, "SELECT currval('entry_id_seq')"), made);
    session
        .execute("COMMIT")
        .expect("a block is replayed, not refused");
    assert_eq!(draw(session, "SELECT currval('entry_id_seq')"), made);
    given.push(made);
}

#[test]
fn a_block_that_is_replayed_draws_the_same_values() {
    let database = open(Protocol::Silo.into());
    database.execute(SCHEMA).expect("the schema is made");
    let mut one = database.session().expect("one is free");
    draw(&mut one, "SELECT nextval('slots')");
    let mut other = database.session().expect("one is free");
    one.execute("BEGIN").expect("a block begins");
    assert_eq!(draw(&mut one, "SELECT currval('slots')"), 0);
    assert_eq!(draw(&mut one, "SELECT nextval('slots')"), 1);
    one.execute("UPDATE hot SET n = n + 1 WHERE id = 0; SELECT setval('slots', 50)")
        .expect("it runs");
    assert_eq!(draw(&mut one, "SELECT nextval('slots')"), 51);
    other
        .execute("UPDATE hot SET n = n + 10 WHERE id = 0")
        .expect("it runs");
    assert_eq!(draw(&mut other, "SELECT nextval('slots')"), 52);
    let before = database.engine().replays().replays;
    assert_eq!(draw(&mut one, "SELECT lastval()"), 51);
    one.execute("COMMIT").expect("it is replayed");
    assert_eq!(database.engine().replays().replays, before + 1);
    assert_eq!(number(&database, "SELECT n FROM hot WHERE id = 0"), 11);
    assert_eq!(draw(&mut one, "SELECT currval('slots')"), 51);
    assert_eq!(draw(&mut other, "SELECT nextval('slots')"), 53);
}

#[test]
fn a_call_with_a_key_has_one_answer() {
    let database = open(Protocol::default().into());
    database.execute(SCHEMA).expect("the schema is made");
    let key = || IdempotencyKey::new("order 1").expect("it is one");
    let call = || Call::new("enter", ()).idempotency_key(key());
    assert_eq!(called(&database, call()), called(&database, call()));
    assert_eq!(number(&database, "SELECT last_value FROM entry_id_seq"), 1);
}

#[test]
fn nothing_is_drawn_where_nothing_may_be_changed() {
    let database = open(Protocol::default().into());
    database.execute(SCHEMA).expect("the schema is made");
    let mut session = database.session().expect("one is free");
    draw(&mut session, "SELECT nextval('slots')");
    for sql in ["SELECT nextval('slots')", "SELECT setval('slots', 5)"] {
        session.execute("BEGIN READ ONLY").expect("a block begins");
        assert_eq!(draw(&mut session, "SELECT currval('slots')"), 0);
        let error = session.execute(sql).expect_err("it changes a sequence");
        assert_eq!(error.state(), SqlState::READ_ONLY_SQL_TRANSACTION, "{sql}");
        session.execute("ROLLBACK").expect("a block ends");
    }
    assert_eq!(draw(&mut session, "SELECT nextval('slots')"), 1);
}

#[test]
fn updates_left_to_the_commit_draw_once() {
    for configuration in Configuration::serializable() {
        let database = open(configuration);
        database.execute(SCHEMA).expect("the schema is made");
        let mut session = database.session().expect("one is free");
        for round in 1..=5 {
            session
                .execute("UPDATE hot SET n = nextval('slots') + 0 * n WHERE id = 2")
                .expect("it runs");
            let n = number(&database, "SELECT n FROM hot WHERE id = 2");
            assert_eq!(n, round - 1, "{configuration}");
        }
    }
}

/// The rest of a life is lost: the files are taken while the database is open, as a kill leaves
/// them.
#[test]
fn no_value_is_given_twice_over_crashes() {
    for (seed, protocol) in Protocol::serializable().enumerate() {
        let mut random = Random::from_seed(seed as u64);
        let directory = files::temporary();
        let mut told = BTreeSet::new();
        let mut last = 0;
        let mut image: Option<Image> = None;
        for life in 0..4 {
            let path = directory.path().join(format!("life-{life}"));
            if let Some(image) = &image {
                image.put(&path);
            }
            let options = files::options(&path).protocol(protocol);
            let database = Database::open(options).expect("it can be recovered");
            if image.is_none() {
                database.execute(SCHEMA).expect("the schema is made");
            }
            let mut session = database.session().expect("one is free");
            for _ in 0..random.below(6) + 1 {
                let count = random.below(80) + 1;
                for _ in 0..count {
                    let value = match random.below(3) {
                        0 => draw(&mut session, "SELECT nextval('entry_id_seq')"),
                        1 => draw(&mut session, "SELECT enter()"),
                        _ => draw(
                            &mut session,
                            "INSERT INTO entry (slot) VALUES (1) RETURNING id",
                        ),
                    };
                    assert!(told.insert(value), "{protocol}: {value} was given before");
                    assert!(value > last, "{protocol}: {value} comes after {last}");
                    last = value;
                }
                match random.below(4) {
                    0 => drop(database.engine().checkpoint().expect("it is written")),
                    // What comes of them depends on how far the sequence has got.
                    1 => drop(
                        session
                            .execute("ALTER SEQUENCE entry_id_seq CACHE 1")
                            .expect("it runs"),
                    ),
                    2 => {
                        last += 1_000;
                        let sql = format!("SELECT setval('entry_id_seq', {last})");
                        session.execute(&sql).expect("it runs");
                    }
                    _ => {}
                }
            }
            // The log has written that its last block is on disk, and nothing more.
            thread::sleep(60_000_000);
            image = Some(Image::of(&path));
        }
    }
}

#[test]
fn a_database_that_is_closed_goes_on_with_the_next_value() {
    let directory = files::temporary();
    let path = directory.path().join("data");
    for life in 0..3 {
        let database = Database::open(files::options(&path)).expect("it opens");
        if life == 0 {
            database.execute(SCHEMA).expect("the schema is made");
        }
        let mut session = database.session().expect("one is free");
        for step in 1..=5 {
            let value = draw(&mut session, "SELECT nextval('entry_id_seq')");
            assert_eq!(value, 5 * life + step);
        }
        if life == 1 {
            database.engine().checkpoint().expect("it is written");
        }
        drop(session);
        let catalog = || database.engine().written_catalog().expect("it is written");
        database.close();
        let before = catalog().to_string();
        drop(database);
        let again = Database::open(files::options(&path)).expect("it opens");
        let after = again.engine().written_catalog().expect("it is written");
        assert_eq!(after.to_string(), before);
    }
}

#[test]
fn definitions_of_sequences_are_made_again() {
    let directory = files::temporary();
    let path = directory.path().join("data");
    let database = Database::open(files::options(&path)).expect("it opens");
    database
        .execute(
            "CREATE SEQUENCE s START 5 INCREMENT 3 MAXVALUE 1000 CYCLE CACHE 4;
             SELECT nextval('s');
             ALTER SEQUENCE s INCREMENT -1;
             SELECT nextval('s');
             CREATE TABLE t (id SERIAL PRIMARY KEY, a INTEGER NOT NULL);
             ALTER TABLE t ALTER COLUMN a ADD GENERATED BY DEFAULT AS IDENTITY (START 100);
             INSERT INTO t DEFAULT VALUES;
             ALTER TABLE t ALTER COLUMN a SET GENERATED ALWAYS SET INCREMENT BY 7;
             INSERT INTO t DEFAULT VALUES;
             TRUNCATE t RESTART IDENTITY;
             INSERT INTO t DEFAULT VALUES;
             INSERT INTO t DEFAULT VALUES;
             CREATE SEQUENCE gone; SELECT nextval('gone'); DROP SEQUENCE gone;
             CREATE SEQUENCE gone START 70; SELECT nextval('gone');
             CREATE ROLE clerk; GRANT USAGE ON SEQUENCE s TO clerk; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO clerk;",
        )
        .expect("the script runs");
    let image = Image::of(&path);
    let shown = |database: &Database| {
        let query = "SELECT sequencename, start_value, min_value, max_value, increment_by, cycle, cache_size FROM pg_sequences ORDER BY 1";
        let sequences = database.query(query, ()).expect("it runs").to_csv();
        let rows = database.query("SELECT * FROM t ORDER BY id", ());
        sequences + &rows.expect("it runs").to_csv()
    };
    let before = shown(&database);
    let copy = directory.path().join("copy");
    image.put(&copy);
    let recovered = Database::open(files::options(&copy)).expect("it is recovered");
    assert_eq!(shown(&recovered), before);
    let mut session = recovered.session().expect("one is free");
    // Down to the least value all may have been given.
    assert_eq!(draw(&mut session, "SELECT nextval('s')"), 1_000);
    assert!(draw(&mut session, "SELECT nextval('gone')") > 70);
    assert!(draw(&mut session, "INSERT INTO t DEFAULT VALUES RETURNING a") > 107);
    let roles = recovered.engine().catalog();
    let privileges = roles.roles().grantees(&kiln_engine::Object::sequence("s"));
    assert!(privileges.is_some_and(|it| it.contains_key("clerk")));
}

#[test]
fn calls_that_draw_are_logged_by_what_they_wrote() {
    for protocol in Protocol::ALL.into_iter().filter(|it| it.logs_commands()) {
        let directory = files::temporary();
        let path = directory.path().join("data");
        let options = || {
            let options = files::options(&path).protocol(protocol);
            options.logging(Logging::Commands)
        };
        let database = Database::open(options()).expect("it opens");
        database.execute(SCHEMA).expect("the schema is made");
        for _ in 0..50 {
            called(&database, Call::new("enter", ()));
        }
        let rows = |database: &Database| {
            let rows = database.query("SELECT id, other, slot FROM entry ORDER BY id", ());
            rows.expect("it runs").to_csv()
        };
        let before = rows(&database);
        let copy = directory.path().join("copy");
        Image::of(&path).put(&copy);
        let recovered = Database::open(files::options(&copy)).expect("it is recovered");
        assert_eq!(rows(&recovered), before, "{protocol}");
        assert!(
            called(&recovered, Call::new("enter", ())) > 50,
            "{protocol}"
        );
    }
}
