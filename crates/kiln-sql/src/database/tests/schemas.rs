//! Schemas: what is kept of them, who may use them, and how sessions with other paths share a
//! database.

use kiln_engine::Options;
use kiln_platform::disk::TemporaryDirectory;
use kiln_storage::error::{Result, SqlState};

use super::super::{Database, Session};
use super::open;

fn run(session: &mut Session, script: &str) {
    if let Err(error) = session.execute(script) {
        panic!("{script}: {error}");
    }
}

fn one(session: &mut Session, query: &str) -> Result<String> {
    session
        .query(query, ())
        .map(|rows| rows.rows[0][0].to_string())
}

const DEFINITIONS: &str = "
    CREATE SCHEMA shop;
    CREATE SCHEMA \"Old Shop\";
    COMMENT ON SCHEMA shop IS 'where things are sold';
    SET search_path = shop;
    CREATE SEQUENCE numbers START 7;
    CREATE TABLE item (id INTEGER PRIMARY KEY, n BIGINT DEFAULT nextval('numbers'), CHECK (n > 0));
    CREATE TABLE sale (item INTEGER REFERENCES item ON DELETE CASCADE, at SERIAL);
    CREATE INDEX sale_of ON sale (item);
    CREATE VIEW sold AS SELECT count(*) AS n FROM sale;
    CREATE FUNCTION sell(k INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
    DECLARE r item%ROWTYPE;
    BEGIN
        INSERT INTO sale (item) VALUES (k);
        SELECT * INTO r FROM item WHERE id = k;
        RETURN r.n;
    END $$;
    SET search_path = public;
    CREATE TABLE item (id TEXT PRIMARY KEY);
    CREATE TABLE \"shop.item\" (id BOOLEAN);
    CREATE TABLE \"Old Shop\".\"a.b\" (id INTEGER);
    INSERT INTO shop.item (id) VALUES (1), (2);
    INSERT INTO item VALUES ('of public');
    INSERT INTO \"shop.item\" VALUES (true);
    SELECT sell(2);
";

/// What there is after [`DEFINITIONS`], seen by a session with the default path.
fn check(session: &mut Session) {
    let checks = [
        ("SELECT id FROM item", "of public"),
        ("SELECT id FROM \"shop.item\"", "t"),
        ("SELECT n FROM shop.item WHERE id = 2", "8"),
        ("SELECT n FROM shop.sold", "1"),
        ("SELECT sell(1)", "7"),
        ("SELECT n FROM shop.sold", "2"),
        ("SELECT nextval('shop.numbers')", "9"),
        ("SELECT count(*) FROM \"Old Shop\".\"a.b\"", "0"),
        (
            "SELECT obj_description('shop'::regnamespace, 'pg_namespace')",
            "where things are sold",
        ),
        ("SELECT 'shop.sale_of'::regclass", "shop.sale_of"),
        (
            "SELECT '\"Old Shop\".\"a.b\"'::regclass",
            "\"Old Shop\".\"a.b\"",
        ),
    ];
    for (query, expected) in checks {
        assert_eq!(one(session, query).as_deref(), Ok(expected), "{query}");
    }
    run(session, "DELETE FROM shop.item WHERE id = 2");
    let left = one(session, "SELECT n FROM shop.sold");
    assert_eq!(left.as_deref(), Ok("1"));
}

#[test]
fn schemas_are_recovered() {
    let temporary = TemporaryDirectory::new("kiln-schemas").expect("there is room");
    let path = temporary.path().join("data");
    let options = || {
        let options = Options::new().workers(1).pin_workers(false);
        options.data_dir(Some(path.clone()))
    };
    for checkpoints in [false, true] {
        let database = Database::open(options()).expect("it opens");
        let mut session = database.session().expect("a session is free");
        run(&mut session, DEFINITIONS);
        if checkpoints {
            database.engine().checkpoint().expect("it is written");
        }
        drop(session);
        drop(database);
        let database = Database::open(options()).expect("it opens again");
        let mut session = database.session().expect("a session is free");
        check(&mut session);
        run(
            &mut session,
            "DROP FUNCTION sell; DROP SCHEMA shop CASCADE; DROP SCHEMA \"Old Shop\" CASCADE;
             DROP TABLE item, \"shop.item\"",
        );
    }
}

#[test]
fn a_catalog_with_schemas_is_rebuilt_from_its_text() {
    let database = open();
    let mut session = database.session().expect("a session is free");
    run(&mut session, DEFINITIONS);
    let written = database.engine().written_catalog();
    let text = written.expect("statements made it").to_string();
    let read = text.parse().expect("it was written");
    let again = Database::rebuild(Options::new().workers(1).pin_workers(false), &read);
    let again = again.expect("it can be rebuilt");
    let written = again.engine().written_catalog();
    assert_eq!(written.expect("statements made it").to_string(), text);
}

#[test]
fn a_name_with_a_dot_of_a_catalog_without_schemas_is_one_of_public() {
    let database = open();
    let mut session = database.session().expect("a session is free");
    run(
        &mut session,
        "CREATE TABLE \"a.b\" (id INTEGER PRIMARY KEY);
         CREATE TABLE c (id INTEGER REFERENCES \"a.b\")",
    );
    let written = database.engine().written_catalog();
    let text = written.expect("statements made it").to_string();
    assert!(text.contains("10:public.a.b"), "{text}");
    let former = text.replace("10:public.a.b", "3:a.b");
    let read = former.parse().expect("it was written so");
    let again = Database::rebuild(Options::new().workers(1).pin_workers(false), &read);
    let again = again.expect("it can be rebuilt");
    let written = again.engine().written_catalog();
    assert_eq!(written.expect("statements made it").to_string(), text);
}

#[test]
fn a_role_needs_usage_of_the_schema() {
    let database = open();
    let mut session = database.session().expect("a session is free");
    run(
        &mut session,
        "CREATE SCHEMA shop; CREATE TABLE shop.item (id INTEGER); CREATE ROLE clerk LOGIN;
         GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA shop TO clerk",
    );
    let mut clerk = database.session_as("clerk").expect("a session is free");
    let denied = clerk.execute("SELECT * FROM shop.item");
    let denied = denied.expect_err("USAGE was not granted");
    assert_eq!(denied.state(), SqlState::INSUFFICIENT_PRIVILEGE);
    assert_eq!(denied.message(), "permission denied for schema shop");
    run(&mut session, "GRANT USAGE ON SCHEMA shop TO clerk");
    run(
        &mut clerk,
        "SET search_path = shop; INSERT INTO item VALUES (1); SELECT * FROM item",
    );
    let usage = one(&mut clerk, "SELECT has_schema_privilege('shop', 'usage')");
    assert_eq!(usage.as_deref(), Ok("t"));
    let denied = clerk.execute("DELETE FROM item");
    let denied = denied.expect_err("DELETE was not granted");
    assert_eq!(denied.message(), "permission denied for table item");
    let denied = clerk.execute("CREATE TABLE shop.mine (id INTEGER)");
    assert_eq!(
        denied.expect_err("superusers define").state(),
        SqlState::INSUFFICIENT_PRIVILEGE
    );
    run(&mut session, "REVOKE USAGE ON SCHEMA shop FROM clerk");
    let denied = clerk.execute("SELECT * FROM item");
    assert!(denied.is_err(), "USAGE was taken away");
    run(
        &mut session,
        "REVOKE ALL ON ALL TABLES IN SCHEMA shop FROM clerk; DROP ROLE clerk",
    );
}

#[test]
fn sessions_with_other_paths_do_not_see_each_others_statements() {
    let database = open();
    let mut one_session = database.session().expect("a session is free");
    let mut other = database.session().expect("a session is free");
    run(
        &mut one_session,
        "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (v TEXT); CREATE TABLE b.t (v TEXT);
         INSERT INTO a.t VALUES ('a'); INSERT INTO b.t VALUES ('b'); SET search_path = a",
    );
    run(&mut other, "SET search_path = b");
    for _ in 0..3 {
        assert_eq!(one(&mut one_session, "SELECT v FROM t").as_deref(), Ok("a"));
        assert_eq!(one(&mut other, "SELECT v FROM t").as_deref(), Ok("b"));
    }
    // A statement that was parsed follows the path.
    let parsed = other.parse("SELECT v FROM t", &[]).expect("it is right");
    run(&mut other, "SET search_path = a");
    let mut portal = other.bind(&parsed, &[]).expect("it can be bound");
    let portion = other.execute_portal(&mut portal, 0).expect("it runs");
    assert_eq!(portion.rows[0][0].to_string(), "a");
    // One that a role's own schema is before `public` in.
    run(
        &mut one_session,
        "CREATE ROLE own LOGIN SUPERUSER; CREATE SCHEMA own; CREATE TABLE own.t (v TEXT);
         INSERT INTO own.t VALUES ('own')",
    );
    let mut own = database.session_as("own").expect("a session is free");
    assert_eq!(one(&mut own, "SELECT v FROM t").as_deref(), Ok("own"));
}

#[test]
fn a_view_keeps_what_it_reads() {
    let database = open();
    let mut session = database.session().expect("a session is free");
    run(
        &mut session,
        "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE b.t (v TEXT); INSERT INTO b.t VALUES ('b');
         SET search_path = a, b;
         CREATE VIEW seen AS SELECT v FROM t;
         CREATE TABLE a.t (w INTEGER, v INTEGER); INSERT INTO a.t VALUES (1, 2);
         SET search_path = public",
    );
    let seen = one(&mut session, "SELECT v FROM a.seen");
    assert_eq!(seen.as_deref(), Ok("b"));
    run(&mut session, "UPDATE a.seen SET v = 'changed'");
    let changed = one(&mut session, "SELECT v FROM b.t");
    assert_eq!(changed.as_deref(), Ok("changed"));
    let dropped = session.execute("DROP TABLE b.t");
    assert!(dropped.is_err(), "the view reads from it");
    run(&mut session, "DROP TABLE a.t");
    let seen = one(&mut session, "SELECT v FROM a.seen");
    assert_eq!(seen.as_deref(), Ok("changed"));
}
