//! Triggers beside each other under every protocol, for rows that Rust code writes, for other
//! roles, and after a restart.

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_engine::Configuration;
use kiln_platform::thread;
use kiln_sql::{Database, Options, Value};

/// Each change of an account counts its version, is noted, and is a part of one sum over all
/// accounts, which is hot.
const SCHEMA: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, version INTEGER NOT NULL DEFAULT 0);
CREATE TABLE audit (account INTEGER, version INTEGER, before INTEGER, after INTEGER, PRIMARY KEY (account, version));
CREATE TABLE counter (id INTEGER PRIMARY KEY, changes INTEGER NOT NULL, sum INTEGER NOT NULL);
INSERT INTO counter VALUES (1, 0, 0);
CREATE FUNCTION count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    IF NEW.balance < 0 THEN RETURN NULL; END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE counter SET sum = sum + NEW.balance WHERE id = 1;
        RETURN NULL;
    END IF;
    INSERT INTO audit VALUES (NEW.id, NEW.version, OLD.balance, NEW.balance);
    UPDATE counter SET changes = changes + 1, sum = sum + NEW.balance - OLD.balance WHERE id = 1;
    RETURN NULL;
END $$;
CREATE TRIGGER version BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION count_version();
CREATE TRIGGER noted AFTER INSERT OR UPDATE ON account FOR EACH ROW EXECUTE FUNCTION note();
CREATE PROCEDURE move(payer INTEGER, payee INTEGER, amount INTEGER, OUT moved BOOLEAN) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET balance = balance - amount WHERE id = payer;
    moved := FOUND;
    IF moved THEN
        UPDATE account SET balance = balance + amount WHERE id = payee;
    END IF;
END $$;
INSERT INTO account SELECT i, 20 FROM generate_series(1, 4) i;
";

fn rows(database: &Database, query: &str) -> Vec<String> {
    let result = database.query(query, ()).expect("the query runs");
    let csv = result.to_csv();
    csv.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn triggers_keep_count_under_every_protocol() {
    for protocol in Configuration::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("a database opens");
        database.execute(SCHEMA).expect("the schema is sound");
        let moved: usize = thread::scope(|scope| {
            let workers: Vec<_> = (0..3)
                .map(|worker: i32| {
                    let database = &database;
                    scope.spawn(move || {
                        let mut moved = 0;
                        for turn in 0..60 {
                            let payer = (turn * 7 + worker) % 4 + 1;
                            let arguments = (payer, payer % 4 + 1, turn % 5 + 3);
                            let reply = database.call("move", arguments).expect("a call ends");
                            let rows = reply.rows().expect("it commits");
                            moved += usize::from(rows.values()[0][0] == Value::Boolean(true));
                        }
                        moved
                    })
                })
                .collect();
            let counts = workers.into_iter().map(|it| it.join().expect("no panic"));
            counts.sum()
        });
        assert!(moved > 0, "{protocol}: no amount was ever moved");
        let changes = (2 * moved).to_string();
        let count = |query: &str| rows(&database, query).concat();
        assert_eq!(count("SELECT count(*) FROM audit"), changes, "{protocol}");
        assert_eq!(count("SELECT changes FROM counter"), changes, "{protocol}");
        assert_eq!(
            count("SELECT sum(version) FROM account"),
            changes,
            "{protocol}"
        );
        assert_eq!(count("SELECT sum FROM counter"), "80", "{protocol}");
        assert_eq!(
            count("SELECT sum(balance) FROM account"),
            "80",
            "{protocol}"
        );
        assert_eq!(
            count("SELECT count(*) FROM account WHERE balance < 0"),
            "0",
            "{protocol}"
        );
        // The versions of an account follow each other, from its first balance to its last.
        let broken = "SELECT count(*) FROM audit one LEFT JOIN audit last
            ON last.account = one.account AND last.version = one.version - 1
            WHERE one.before <> coalesce(last.after, 20) OR (last.account IS NULL AND one.version > 1)";
        assert_eq!(count(broken), "0", "{protocol}");
        let other = "SELECT count(*) FROM account a JOIN audit x ON x.account = a.id AND x.version = a.version
            WHERE x.after <> a.balance";
        assert_eq!(count(other), "0", "{protocol}");
    }
}

#[test]
fn rows_of_rust_code_fire_triggers() {
    let database = Database::open(Options::new().workers(1).pin_workers(false)).expect("it opens");
    database.execute(SCHEMA).expect("the schema is sound");
    database
        .execute(
            "CREATE TABLE gone (id INTEGER);
             CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 INSERT INTO gone VALUES (OLD.id);
                 IF OLD.id = 1 THEN RETURN NULL; END IF;
                 RETURN OLD;
             END $$;
             CREATE TRIGGER kept BEFORE DELETE ON account FOR EACH ROW EXECUTE FUNCTION keep();",
        )
        .expect("it is SQL");
    database
        .transaction(|transaction| {
            transaction.insert("account", (9, 5, 0))?;
            assert!(transaction.update("account", (9,), &[("balance", Value::Integer(7))])?);
            assert!(!transaction.update("account", (9,), &[("balance", Value::Integer(-1))])?);
            assert!(!transaction.delete("account", (1,))?);
            assert!(transaction.delete("account", (2,))?);
            Ok(())
        })
        .expect("it commits");
    assert_eq!(rows(&database, "TABLE audit"), ["9,1,5,7"]);
    assert_eq!(
        rows(&database, "SELECT changes, sum FROM counter"),
        ["1,87"]
    );
    assert_eq!(
        rows(&database, "SELECT id FROM gone ORDER BY id"),
        ["1", "2"]
    );
    assert_eq!(
        rows(&database, "SELECT id FROM account ORDER BY id"),
        ["1", "3", "4", "9"]
    );
    let loaded = database.engine().loader("account", &["id"]);
    let error = loaded.err().expect("triggers would not fire");
    assert_eq!(error.state().to_string(), "0A000");
}

#[test]
fn the_role_of_the_statement_needs_what_the_function_does() {
    let database = Database::open(Options::new().workers(1).pin_workers(false)).expect("it opens");
    database.execute(SCHEMA).expect("the schema is sound");
    let setup = "CREATE ROLE app LOGIN; GRANT INSERT ON account TO app;";
    database.execute(setup).expect("it is SQL");
    let mut app = database.session_as("app").expect("there is such a role");
    let refused = app.execute("INSERT INTO account VALUES (10, 1)");
    let error = refused.expect_err("the function writes what is not for the role");
    assert_eq!(error.message(), "permission denied for table audit");
    database
        .execute("GRANT SELECT, UPDATE ON counter TO app; GRANT INSERT ON audit TO app;")
        .expect("it is SQL");
    app.execute("INSERT INTO account VALUES (10, 1)")
        .expect("all is granted");
    database
        .execute(
            "REVOKE ALL ON counter FROM app;
             CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
             BEGIN
                 UPDATE counter SET sum = sum + NEW.balance;
                 RETURN NULL;
             END $$;",
        )
        .expect("it is SQL");
    app.execute("INSERT INTO account VALUES (11, 1)")
        .expect("the function may do it");
    assert_eq!(rows(&database, "SELECT sum FROM counter"), ["82"]);
}

#[test]
fn triggers_are_there_after_a_restart() {
    let directory = temporary();
    let options = || {
        let path = directory.path().join("data");
        Options::new()
            .workers(1)
            .pin_workers(false)
            .data_dir(Some(path))
    };
    let database = Database::open(options()).expect("it is new");
    database.execute(SCHEMA).expect("the schema is sound");
    database
        .execute(
            "CALL move(1, 2, 5, NULL);
             ALTER TABLE account ADD COLUMN twice INTEGER GENERATED ALWAYS AS (balance * 2) STORED;
             CREATE TRIGGER off BEFORE INSERT ON account FOR EACH ROW WHEN (NEW.balance > 5) EXECUTE FUNCTION note('a b', 2);
             ALTER TABLE account DISABLE TRIGGER off;
             ALTER TRIGGER off ON account RENAME TO \"Off\";",
        )
        .expect("it is SQL");
    let catalog = database.engine().written_catalog().expect("it is written");
    let audit = rows(&database, "TABLE audit");
    drop(database);
    let database = Database::open(options()).expect("it is there");
    let again = database.engine().written_catalog().expect("it is written");
    assert_eq!(again.to_string(), catalog.to_string());
    // What the triggers did then is not done again.
    assert_eq!(rows(&database, "TABLE audit"), audit);
    database
        .execute("CALL move(2, 1, 5, NULL)")
        .expect("it is SQL");
    let expected = ["1,1,20,15", "1,2,15,20", "2,1,20,25", "2,2,25,20"];
    let query = "SELECT * FROM audit ORDER BY account, version";
    assert_eq!(rows(&database, query), expected);
    let query = "SELECT id, balance, twice FROM account ORDER BY id LIMIT 2";
    assert_eq!(rows(&database, query), ["1,20,40", "2,20,40"]);
}
