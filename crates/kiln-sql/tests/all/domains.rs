//! Domains: kept by the log and by checkpoints; what was compiled before follows their changes;
//! their checks hold under every protocol.

#![cfg(not(kiln_sim))]

use kiln_engine::Configuration;
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::thread;
use kiln_sql::{Database, Options, Value};

const SCHEMA: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE DOMAIN \"Good\" AS mood CHECK (VALUE <> 'sad') NOT NULL DEFAULT 'ok';
    CREATE DOMAIN email AS text COLLATE \"C\" CHECK (VALUE ~ '@') CONSTRAINT \"s h\" CHECK (length(VALUE) < 9);
    CREATE DOMAIN work_email AS email DEFAULT 'me@work';
    CREATE DOMAIN cents AS numeric(10, 2) CHECK (VALUE >= 0);
    CREATE TABLE person (id INT PRIMARY KEY, at work_email, has cents DEFAULT 0, feels \"Good\", all_of email);
    CREATE INDEX person_has ON person (has);
    CREATE VIEW people AS SELECT id, 'x@y'::email AS mail FROM person;
    CREATE FUNCTION mail_of(who email) RETURNS email LANGUAGE plpgsql AS $$
        DECLARE v email := who; BEGIN v := v || '!'; RETURN v; END $$;
    INSERT INTO person (id) VALUES (1), (2);
    COMMENT ON DOMAIN email IS 'where mail goes';
    COMMENT ON CONSTRAINT \"s h\" ON DOMAIN email IS 'short'";

fn options() -> Options {
    Options::new().workers(1).pin_workers(false)
}

fn state_of(database: &Database, statement: &str) -> String {
    let refused = database.execute(statement).expect_err(statement);
    refused.state().as_str().to_owned()
}

/// What the catalogs say, and what the checks refuse.
fn all(database: &Database) -> String {
    let queries = [
        "SELECT * FROM person ORDER BY id",
        "SELECT oid, typname, typbasetype::regtype, typnotnull, typdefault, typcollation, typarray
            FROM pg_type WHERE typtype = 'd' AND oid > 16383 ORDER BY oid",
        "SELECT oid, conname, convalidated, contypid::regtype, pg_get_constraintdef(oid)
            FROM pg_constraint WHERE contypid > 16383 ORDER BY oid",
        "SELECT column_name, domain_name FROM information_schema.columns
            WHERE table_name = 'person' ORDER BY ordinal_position",
        "SELECT obj_description('email'::regtype, 'pg_type'), mail_of('a@b'), (SELECT mail FROM people LIMIT 1)",
    ];
    let results = queries.map(|query| database.query(query, ()).expect(query).to_csv());
    let refused = [
        "INSERT INTO person (id, at) VALUES (9, 'nothing')",
        "INSERT INTO person (id, at) VALUES (9, 'much@too.long')",
        "INSERT INTO person (id, has) VALUES (9, -1)",
        "INSERT INTO person (id, feels) VALUES (9, 'sad')",
        "INSERT INTO person (id, feels) VALUES (9, NULL)",
        "UPDATE person SET has = has - 1",
        "SELECT mail_of('a@b.c.de')",
        "SELECT mail_of('ab')",
    ];
    let refused = refused.map(|statement| state_of(database, statement));
    format!("{}{}", results.concat(), refused.join(" "))
}

#[test]
fn domains_are_kept_by_the_log_and_by_checkpoints() {
    let temporary = TemporaryDirectory::new("kiln-domains").expect("there is room");
    let open = || {
        let data = temporary.path().join("data");
        Database::open(options().data_dir(Some(data))).expect("it opens")
    };
    let reopened = |database: Database| {
        let before = all(&database);
        assert!(
            before.ends_with("23514 23514 23514 23514 23502 23514 23514 23514"),
            "{before}"
        );
        drop(database);
        let database = open();
        assert_eq!(all(&database), before);
        database
    };
    let database = open();
    database.execute(SCHEMA).expect("it is right");
    let database = reopened(database);
    database
        .execute(
            "ALTER DOMAIN email ADD CONSTRAINT dots CHECK (VALUE NOT LIKE '%..%') NOT VALID;
             ALTER DOMAIN email VALIDATE CONSTRAINT dots;
             ALTER DOMAIN email ADD CHECK (VALUE <> '') NOT VALID;
             ALTER DOMAIN email RENAME CONSTRAINT dots TO \"No Dots\";
             ALTER DOMAIN cents SET DEFAULT 5;
             ALTER TABLE person ALTER has DROP DEFAULT;
             ALTER TYPE mood ADD VALUE 'best';
             INSERT INTO person (id, feels) VALUES (3, 'best')",
        )
        .expect("it is right");
    let database = reopened(database);
    database.engine().checkpoint().expect("it is written");
    let database = reopened(database);
    database
        .execute(
            "BEGIN;
             ALTER DOMAIN cents RENAME TO \"Euro Cents\";
             CREATE DOMAIN gone AS integer;
             CREATE TABLE goes (a gone);
             DROP DOMAIN gone CASCADE;
             ALTER TABLE person ALTER all_of TYPE work_email;
             INSERT INTO person (id) VALUES (4);
             COMMIT",
        )
        .expect("it is right");
    let database = reopened(database);
    let rows = database.query("SELECT has, all_of FROM person WHERE id = 4", ());
    assert_eq!(
        rows.expect("it is right").to_csv(),
        "has,all_of\n5.00,me@work\n"
    );
    database.engine().checkpoint().expect("it is written");
    reopened(database);
}

#[test]
fn statements_and_procedures_follow_what_a_domain_becomes() {
    let database = Database::open(options()).expect("it opens");
    database
        .execute(
            "CREATE DOMAIN d AS integer CHECK (VALUE > 0);
             CREATE TABLE t (a d);
             CREATE PROCEDURE put(v INT) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (v); END $$;
             CREATE PROCEDURE keep(v d) LANGUAGE plpgsql AS $$ DECLARE w d; BEGIN w := v; END $$;
             CREATE FUNCTION cast_of(v INT) RETURNS INT LANGUAGE sql AS 'SELECT v::d'",
        )
        .expect("it is right");
    let mut session = database.session().expect("a session");
    let insert = session
        .parse("INSERT INTO t VALUES ($1)", &[])
        .expect("it is right");
    let mut tried = |value: i32| {
        let mut states = Vec::new();
        let mut portal = session.bind(&insert, &[Value::Integer(value)]);
        let inserted = match &mut portal {
            Ok(portal) => session.execute_portal(portal, 0).map(drop),
            Err(error) => Err(error.clone()),
        };
        states.push(inserted.err());
        for statement in [
            format!("CALL put({value})"),
            format!("CALL keep({value})"),
            format!("SELECT cast_of({value})"),
        ] {
            states.push(session.execute(&statement).err());
        }
        let states = states.into_iter();
        let states = states
            .map(|error| error.map_or("00000".to_owned(), |it| it.state().as_str().to_owned()));
        states.collect::<Vec<_>>().join(" ")
    };
    let all_are = |state: &str| [state; 4].join(" ");
    assert_eq!(tried(1), all_are("00000"));
    assert_eq!(tried(0), all_are("23514"));
    let change = |statement: &str| drop(database.execute(statement).expect(statement));
    change("ALTER DOMAIN d DROP CONSTRAINT d_check");
    assert_eq!(tried(0), all_are("00000"));
    change("ALTER DOMAIN d ADD CONSTRAINT small CHECK (VALUE < 5)");
    assert_eq!(tried(5), all_are("23514"));
    assert_eq!(tried(4), all_are("00000"));
    change("BEGIN; ALTER DOMAIN d DROP CONSTRAINT small; ROLLBACK");
    assert_eq!(tried(5), all_are("23514"));
    change("ALTER DOMAIN d RENAME CONSTRAINT small TO little");
    let refused = database
        .execute("INSERT INTO t VALUES (5)")
        .expect_err("it is too large");
    assert!(refused.message().contains("\"little\""), "{refused}");
    assert_eq!(refused.subject().constraint.as_deref(), Some("little"));
    assert_eq!(refused.subject().data_type.as_deref(), Some("d"));
    // A domain that a header names cannot be renamed; its column alone can follow.
    let refused = database
        .execute("ALTER DOMAIN d RENAME TO e")
        .expect_err("it is named");
    assert_eq!(refused.state().as_str(), "0A000");
    change("DROP FUNCTION cast_of; DROP PROCEDURE keep; ALTER DOMAIN d RENAME TO e");
    assert_eq!(state_of(&database, "CALL put(5)"), "23514");
    change("CALL put(3)");
    change("ALTER DOMAIN e DROP CONSTRAINT little; CALL put(50)");
}

#[test]
fn checks_of_a_domain_hold_under_every_protocol() {
    for configuration in Configuration::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(configuration)).expect("it opens");
        database
            .execute(
                "CREATE DOMAIN cents AS numeric(10, 2) CHECK (VALUE >= 0);
                 CREATE TABLE account (id INT PRIMARY KEY, balance cents NOT NULL, spent INT NOT NULL);
                 CREATE PROCEDURE spend(who INT, amount NUMERIC) LANGUAGE plpgsql AS $$ BEGIN
                     UPDATE account SET balance = balance - amount, spent = spent + 1 WHERE id = who;
                 END $$;
                 INSERT INTO account SELECT i, 20, 0 FROM generate_series(1, 4) i",
            )
            .expect("it is right");
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for number in 0..4 {
                let (database, done) = (&database, &done);
                scope.spawn(move || {
                    for turn in 0..60 {
                        let call = format!("CALL spend({}, 1)", (turn + number) % 4 + 1);
                        match database.execute(&call) {
                            Ok(_) => drop(done.fetch_add(1, Ordering::Relaxed)),
                            Err(error) => assert_eq!(error.state().as_str(), "23514", "{error}"),
                        }
                    }
                });
            }
        });
        let done = done.load(Ordering::Relaxed);
        let rows = database.query(
            "SELECT sum(balance), sum(spent), min(balance) FROM account",
            (),
        );
        let rows = rows.expect("it is right").to_csv();
        // There were 80 to spend, and 240 tries.
        assert_eq!(done, 80, "{configuration}");
        assert_eq!(rows, "sum,sum,min\n0.00,80,0.00\n", "{configuration}");
    }
}

#[test]
fn what_rust_code_writes_is_checked_too() {
    let database = Database::open(options()).expect("it opens");
    database
        .execute(
            "CREATE DOMAIN d AS integer CHECK (VALUE > 0);
             CREATE TABLE t (id INT PRIMARY KEY, a d)",
        )
        .expect("it is right");
    let put = |id: i32, value: i32| {
        database.transaction(|transaction| transaction.insert("t", (id, value)))
    };
    put(1, 1).expect("it is positive");
    let refused = put(2, 0).expect_err("it is not");
    assert_eq!(refused.state().as_str(), "23514");
}
