//! Logs of commands: calls that are made again reach the tables that they had reached.

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::random::Random;
use kiln_platform::thread;
use kiln_sql::{
    Call, Database, IdempotencyKey, Logging, Options, Protocol, Recovery, Reply, SqlState,
};

pub(crate) fn options(
    directory: &TemporaryDirectory,
    protocol: Protocol,
    logging: Logging,
) -> Options {
    Options::new()
        .workers(2)
        .pin_workers(false)
        .protocol(protocol)
        .logging(logging)
        .log_segment_bytes(64 << 10)
        .data_dir(Some(directory.path().join("data")))
}

fn protocols() -> impl Iterator<Item = Protocol> {
    let all = Protocol::ALL.into_iter();
    all.filter(|protocol| protocol.logs_commands())
}

/// What each call writes depends on what it reads, and so on the order of calls.
const SCHEMA: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, value BIGINT NOT NULL, owner TEXT UNIQUE);
CREATE TABLE sale (number INTEGER PRIMARY KEY, buyer INTEGER NOT NULL, price NUMERIC(10, 2) NOT NULL);
CREATE TABLE counter (id INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE note (about INTEGER, text TEXT, at TIMESTAMP WITH TIME ZONE);
CREATE INDEX account_value ON account (value);
CREATE INDEX sale_buyer ON sale (buyer);
CREATE INDEX note_about ON note (about);
INSERT INTO account SELECT i, i, 'owner ' || i FROM generate_series(0, 19) i;
INSERT INTO counter VALUES (1, 1);

CREATE PROCEDURE mix(target INTEGER, source INTEGER, k BIGINT) LANGUAGE plpgsql AS $$
DECLARE x BIGINT;
BEGIN
    SELECT value INTO x FROM account WHERE id = source;
    UPDATE account SET value = (value * 3 + x + k) % 1000003 WHERE id = target;
END $$;
CREATE PROCEDURE sell(buyer INTEGER, price NUMERIC) LANGUAGE plpgsql AS $$
DECLARE mine INTEGER;
BEGIN
    UPDATE counter SET next = next + 1 WHERE id = 1 RETURNING next INTO mine;
    INSERT INTO sale VALUES (mine, buyer, price * mine);
    IF mine % 7 = 0 THEN RAISE EXCEPTION 'number % is never sold', mine; END IF;
END $$;
CREATE PROCEDURE forget(who INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sale WHERE buyer = who;
END $$;
CREATE PROCEDURE total(target INTEGER, low BIGINT, high BIGINT) LANGUAGE plpgsql AS $$
DECLARE s BIGINT; n BIGINT;
BEGIN
    SELECT coalesce(sum(value), 0) INTO s FROM account WHERE value BETWEEN low AND high;
    SELECT count(*) INTO n FROM sale WHERE buyer < 5;
    UPDATE account SET value = (s + n) % 1000003 WHERE id = target;
END $$;
CREATE PROCEDURE exchange(one INTEGER, other INTEGER, parts INTEGER[]) LANGUAGE plpgsql AS $$
DECLARE a TEXT; b TEXT; part INTEGER;
BEGIN
    SELECT owner INTO a FROM account WHERE id = one;
    SELECT owner INTO b FROM account WHERE id = other;
    UPDATE account SET owner = NULL WHERE id = one;
    UPDATE account SET owner = a WHERE id = other;
    UPDATE account SET owner = b WHERE id = one;
    FOREACH part IN ARRAY parts LOOP
        UPDATE account SET value = value + part WHERE id = one;
    END LOOP;
END $$;
CREATE PROCEDURE remark(about INTEGER, text TEXT) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO note VALUES (about, text, NULL);
END $$;
CREATE PROCEDURE stamp(target INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE note SET at = now() WHERE about = target;
END $$;
";

const QUERIES: [&str; 7] = [
    "SELECT * FROM account ORDER BY id",
    "SELECT id FROM account WHERE value >= 0 ORDER BY value, id",
    "SELECT id FROM account WHERE owner >= '' ORDER BY owner",
    "SELECT * FROM sale ORDER BY number",
    "SELECT number FROM sale WHERE buyer >= 0 ORDER BY buyer, number",
    "SELECT * FROM counter",
    "SELECT * FROM note ORDER BY about, text, at",
];

fn all(database: &Database) -> Vec<String> {
    QUERIES
        .map(|query| {
            let rows = database.query(query, ());
            rows.unwrap_or_else(|error| panic!("{query}: {error}"))
                .to_csv()
        })
        .into()
}

fn call(random: &mut Random) -> Call {
    let mut account = || random.below(20) as i32;
    let (one, other) = (account(), account());
    let number = random.below(1_000) as i64;
    match random.below(12) {
        0..=3 => Call::new("mix", (one, other, number)),
        4..=6 => Call::new("sell", (one, "1.25")),
        7 => Call::new("forget", (one,)),
        8 => Call::new("total", (one, number * 10, number * 900)),
        9 => Call::new("exchange", (one, other, vec![1_i32, -3, number as i32])),
        10 => Call::new("remark", (one, "so")),
        _ => Call::new("stamp", (one,)),
    }
}

/// Statements, which are logged by their values in between.
fn statement(random: &mut Random) -> String {
    let (one, number) = (random.below(20), random.below(1_000));
    match random.below(4) {
        0 => format!("UPDATE account SET value = value + {number} WHERE id = {one}"),
        1 => format!("UPDATE account SET value = {number} WHERE value < {number}"),
        2 => format!("INSERT INTO note VALUES ({one}, 'statement', NULL)"),
        _ => format!("DELETE FROM note WHERE about = {one}"),
    }
}

/// Calls and statements of three clients, changes of the catalog, and checkpoints of that number.
fn work(database: &Database, seed: u64, checkpoints: usize) {
    thread::scope(|scope| {
        for client in 0..3 {
            scope.spawn(move || {
                let mut random = Random::from_seed(seed * 10 + client);
                let mut session = database.session().expect("there is room");
                for _ in 0..150 {
                    if random.below(10) > 0 {
                        let reply = database.engine().execute(call(&mut random));
                        let reply = reply.expect("it is taken");
                        if let Reply::Rejected(error) = reply {
                            let state = error.state();
                            assert_eq!(state, SqlState::RAISE_EXCEPTION, "{error}");
                        }
                        continue;
                    }
                    let is_block = random.below(2) == 0;
                    let statements = (0..1 + random.below(3)).map(|_| statement(&mut random));
                    let mut statements: Vec<String> = statements.collect();
                    if is_block {
                        statements.insert(0, "BEGIN".to_owned());
                        statements.push("COMMIT".to_owned());
                    }
                    for statement in statements {
                        // A block may lose against a call, and is rolled back then.
                        let _ = session.run(&statement, ());
                    }
                }
            });
        }
        scope.spawn(move || {
            for turn in 0..3 {
                let name = format!("extra_{seed}_{turn}");
                let statement = format!("CREATE INDEX {name} ON account (value, id)");
                database.execute(&statement).expect("it is new");
                if turn > 0 {
                    let former = format!("DROP INDEX extra_{seed}_{}", turn - 1);
                    database.execute(&former).expect("it is there");
                }
            }
        });
        scope.spawn(move || {
            for _ in 0..checkpoints {
                database.engine().checkpoint().expect("it is written");
                thread::sleep(2_000_000);
            }
        });
    });
}

/// Opens the directory under another protocol, compares, and gives what the recovery has done.
fn reopen(directory: &TemporaryDirectory, next: Protocol, before: &[String]) -> Recovery {
    let options = options(directory, next, Logging::Values);
    let database = Database::open(options).expect("it is there");
    assert_eq!(database.engine().protocol(), next);
    for (query, (now, then)) in QUERIES.iter().zip(all(&database).iter().zip(before)) {
        assert_eq!(now, then, "{next}: {query}");
    }
    database.recovery().expect("it has a directory").clone()
}

#[test]
fn calls_that_are_made_again_reach_the_same_tables() {
    for (seed, protocol) in protocols().enumerate() {
        for checkpoints in [0, 3] {
            let directory = temporary();
            let open = || Database::open(options(&directory, protocol, Logging::Commands));
            let database = open().expect("it is new");
            database.execute(SCHEMA).expect("the schema is right");
            work(&database, seed as u64, checkpoints);
            let before = all(&database);
            drop(database);
            let recovery = reopen(&directory, Protocol::Silo, &before);
            println!("{protocol}: {recovery}");
            if checkpoints == 0 {
                assert!(recovery.calls > 150, "{protocol}: {recovery:?}");
                assert!(recovery.commits - recovery.calls > 30, "{recovery:?}");
            }
            // Goes on, with values before and calls after.
            let database = open().expect("it is there");
            work(&database, 100 + seed as u64, checkpoints);
            let before = all(&database);
            drop(database);
            let recovery = reopen(&directory, Protocol::Vll, &before);
            assert!(checkpoints > 0 || recovery.calls > 300, "{recovery:?}");
        }
    }
}

#[test]
fn an_older_checkpoint_and_the_calls_after_it_are_enough() {
    let directory = temporary();
    let options = options(&directory, Protocol::VllSca, Logging::Commands);
    let database = Database::open(options).expect("it is new");
    database.execute(SCHEMA).expect("the schema is right");
    for seed in 0..2 {
        work(&database, seed, 0);
        database.engine().checkpoint().expect("it is written");
    }
    work(&database, 2, 0);
    let before = all(&database);
    let data = database.engine().data_directory().expect("it has one");
    let newest = data.checkpoints().path().join(format!("{:020}", 2));
    drop((data, database));
    let newest = Directory::open(&newest).expect("it is there");
    let files = newest.list().expect("it can be read");
    let file = files.first().expect("it has files");
    newest.remove_file(&file.name).expect("it can be damaged");
    let recovery = reopen(&directory, Protocol::Mvcc, &before);
    assert_eq!(recovery.checkpoint, Some(1), "{recovery:?}");
    assert_eq!(recovery.warnings.len(), 1, "{recovery:?}");
    assert!(recovery.calls > 250, "{recovery:?}");
}

#[test]
fn a_key_is_answered_once_and_its_call_made_again() {
    let directory = temporary();
    let open = |logging| Database::open(options(&directory, Protocol::Vll, logging));
    let database = open(Logging::Commands).expect("it is new");
    database.execute(SCHEMA).expect("the schema is right");
    let key = IdempotencyKey::new("one sale").expect("it is short");
    let call = || Call::new("sell", (1_i32, "2.5")).idempotency_key(key.clone());
    let reply = database.engine().execute(call()).expect("it runs");
    let before = all(&database);
    drop(database);
    for logging in Logging::ALL {
        let database = open(logging).expect("it is there");
        let again = database.engine().execute(call()).expect("it is known");
        assert_eq!(again, reply);
        assert_eq!(all(&database), before);
        assert_eq!(database.recovery().map(|it| it.calls), Some(1));
    }
}

#[test]
fn protocols_that_log_values_go_on_behind_calls() {
    let directory = temporary();
    let database = Database::open(options(&directory, Protocol::Vll, Logging::Commands));
    let database = database.expect("it is new");
    database.execute(SCHEMA).expect("the schema is right");
    work(&database, 1, 0);
    drop(database);
    for (seed, protocol) in (2..).zip(Protocol::serializable()) {
        let database = Database::open(options(&directory, protocol, Logging::Values));
        let database = database.expect("it is there");
        work(&database, seed, 0);
        let before = all(&database);
        drop(database);
        let recovery = reopen(&directory, Protocol::Silo, &before);
        assert!(recovery.calls > 150, "{protocol}: {recovery:?}");
    }
}

#[test]
fn protocols_without_an_order_before_the_run_log_no_commands() {
    let directory = temporary();
    for protocol in Protocol::serializable().filter(|protocol| !protocol.logs_commands()) {
        let options = options(&directory, protocol, Logging::Commands);
        let error = Database::open(options).expect_err("it has no order");
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
        assert!(
            error.hint().is_some_and(|hint| hint.contains("vll")),
            "{error}"
        );
    }
    let options = options(&directory, Protocol::Serial, Logging::Commands);
    let database = Database::open(options).expect("it is new");
    let refused = database.engine().set_protocol(Protocol::Silo);
    let error = refused.expect_err("the log has commands");
    assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE, "{error}");
    let changed = database.engine().set_protocol(Protocol::VllSca);
    changed.expect("it has an order, too");
}
