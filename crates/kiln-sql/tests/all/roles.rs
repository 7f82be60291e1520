//! Roles, and what they may do.

#![cfg(not(kiln_sim))]

use crate::image::Image;
use kiln_platform::disk::TemporaryDirectory;
use kiln_sql::{Database, Options, Session, Value};

const SHOP: &str = "
    CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER NOT NULL);
    CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER REFERENCES item);
    INSERT INTO item VALUES (1, 10);
    CREATE PROCEDURE sell(i INTEGER, OUT rest INTEGER) LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN UPDATE item SET stock = stock - 1 WHERE id = i RETURNING stock INTO rest; END $$;
    CREATE PROCEDURE peek(i INTEGER, OUT rest INTEGER) LANGUAGE plpgsql AS $$
        BEGIN SELECT stock INTO rest FROM item WHERE id = i; END $$;
    CREATE FUNCTION stock_of(i INTEGER) RETURNS INTEGER LANGUAGE sql SECURITY DEFINER AS $$
        SELECT stock FROM item WHERE id = i $$;
    CREATE FUNCTION twice(i INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
        BEGIN RETURN 2 * stock_of(i); END $$;
    CREATE ROLE app LOGIN;
";

fn open(options: Options) -> Database {
    Database::open(options.workers(1).pin_workers(false)).expect("there is room")
}

fn shop() -> (Database, Session, Session) {
    let database = open(Options::new());
    database.execute(SHOP).expect("it is SQL");
    let superuser = database.session().expect("there is room");
    let app = database.session_as("app").expect("there is such a role");
    (database, superuser, app)
}

/// The tag of the last statement, or the state and message of the error.
fn run(session: &mut Session, text: &str) -> String {
    match session.execute(text) {
        Ok(results) => results.last().map_or(String::new(), |it| it.tag.clone()),
        Err(error) => format!("{} {}", error.state(), error.message()),
    }
}

#[test]
fn a_fresh_role_may_call_and_nothing_else() {
    let (_database, _superuser, mut app) = shop();
    for (text, expected) in [
        ("CALL sell(1, NULL)", "CALL"),
        ("SELECT stock_of(1)", "SELECT 1"),
        ("SELECT twice(1)", "SELECT 1"),
        ("SELECT 1", "SELECT 1"),
        (
            "CALL peek(1, NULL)",
            "42501 permission denied for table item",
        ),
        ("TABLE item", "42501 permission denied for table item"),
        (
            "SELECT 1 FROM item",
            "42501 permission denied for table item",
        ),
        (
            "SELECT (SELECT count(*) FROM item)",
            "42501 permission denied for table item",
        ),
        (
            "WITH i AS (SELECT * FROM item) SELECT 1 FROM i",
            "42501 permission denied for table item",
        ),
        (
            "INSERT INTO item VALUES (2, 1)",
            "42501 permission denied for table item",
        ),
        (
            "UPDATE item SET stock = 0",
            "42501 permission denied for table item",
        ),
        ("DELETE FROM item", "42501 permission denied for table item"),
        ("TRUNCATE item", "42501 permission denied for table item"),
        (
            "EXPLAIN SELECT * FROM item",
            "42501 permission denied for table item",
        ),
        (
            "DO $$ BEGIN DELETE FROM item; END $$",
            "42501 permission denied for table item",
        ),
        (
            "CREATE TABLE mine (id INTEGER)",
            "42501 permission denied for schema public",
        ),
        (
            "CREATE FUNCTION f() RETURNS INTEGER LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*)::int FROM item'",
            "42501 permission denied for schema public",
        ),
        ("DROP TABLE item", "42501 must be owner of table item"),
        (
            "GRANT SELECT ON item TO app",
            "42501 permission denied for table item",
        ),
        (
            "CREATE ROLE other",
            "42501 permission denied to create role",
        ),
        (
            "ALTER ROLE app SUPERUSER",
            "42501 permission denied to alter role",
        ),
        (
            "ALTER ROLE kiln PASSWORD 'mine'",
            "42501 permission denied to alter role",
        ),
        ("ALTER ROLE app PASSWORD 'mine'", "ALTER ROLE"),
        ("ALTER USER CURRENT_USER PASSWORD 'mine'", "ALTER ROLE"),
        ("DROP ROLE app", "42501 permission denied to drop role"),
    ] {
        assert_eq!(run(&mut app, text), expected, "{text}");
    }
    // In a block an error fails it.
    assert_eq!(run(&mut app, "BEGIN; CALL sell(1, NULL)"), "CALL");
    let denied = "42501 permission denied for table item";
    assert_eq!(run(&mut app, "TABLE item"), denied);
    assert_eq!(run(&mut app, "COMMIT"), "ROLLBACK");
}

#[test]
fn each_privilege_allows_its_own() {
    let (_database, mut superuser, mut app) = shop();
    let denied = "42501 permission denied for table item";
    let statements = [
        ("SELECT", "SELECT 1 FROM item"),
        ("INSERT", "INSERT INTO item VALUES (7, 1)"),
        ("UPDATE", "UPDATE item SET stock = 5"),
        ("DELETE", "DELETE FROM item"),
        ("TRUNCATE", "TRUNCATE item CASCADE"),
    ];
    for (granted, _) in statements {
        let text = format!("GRANT {granted} ON item TO app; GRANT TRUNCATE ON sale TO app");
        assert_eq!(run(&mut superuser, &text), "GRANT");
        for (privilege, text) in statements {
            let answer = run(&mut app, text);
            let expected = match (privilege == granted, granted) {
                // CASCADE empties other tables as well.
                (true, "TRUNCATE") => "42501 must be superuser to run TRUNCATE TABLE",
                (true, _) => privilege,
                (false, _) if privilege == "TRUNCATE" => {
                    "42501 must be superuser to run TRUNCATE TABLE"
                }
                (false, _) => denied,
            };
            assert!(
                answer.starts_with(expected),
                "{granted} granted, {text}: {answer}"
            );
        }
        let text = format!("REVOKE {granted} ON TABLE item FROM app");
        assert_eq!(run(&mut superuser, &text), "REVOKE");
    }
    // Rows that are read have to be readable.
    run(
        &mut superuser,
        "GRANT INSERT, UPDATE, DELETE ON item TO app",
    );
    for text in [
        "UPDATE item SET stock = stock + 1",
        "UPDATE item SET stock = 1 WHERE id = 1",
        "UPDATE item SET stock = 1 RETURNING stock",
        "DELETE FROM item WHERE stock > 3",
        "DELETE FROM item RETURNING id",
        "INSERT INTO item VALUES (1, 1) RETURNING stock",
        "INSERT INTO item VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET stock = 1",
        "INSERT INTO item SELECT id + 10, stock FROM item",
    ] {
        assert_eq!(run(&mut app, text), denied, "{text}");
    }
    // A reference is checked for who inserts, whatever it may read.
    run(
        &mut superuser,
        "GRANT INSERT ON sale TO app; INSERT INTO item VALUES (3, 3)",
    );
    assert_eq!(
        run(&mut app, "INSERT INTO sale VALUES (1, 3)"),
        "INSERT 0 1"
    );
}

#[test]
fn privileges_reach_prepared_statements_and_open_sessions() {
    let (database, mut superuser, mut app) = shop();
    let parsed = app.parse("SELECT stock FROM item WHERE id = $1", &[]);
    let parsed = parsed.expect("describing a statement needs no privilege");
    let execute = |app: &mut Session| {
        let mut portal = app.bind(&parsed, &[Value::Integer(1)]).expect("it binds");
        let executed = app.execute_portal(&mut portal, 0);
        executed.map_or_else(|error| error.state().to_string(), |portion| portion.tag)
    };
    assert_eq!(execute(&mut app), "42501");
    run(
        &mut superuser,
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC",
    );
    assert_eq!(execute(&mut app), "SELECT 1");
    run(&mut superuser, "REVOKE ALL ON item FROM public");
    assert_eq!(execute(&mut app), "42501");
    run(
        &mut superuser,
        "REVOKE EXECUTE ON FUNCTION stock_of(integer) FROM PUBLIC",
    );
    let denied = "42501 permission denied for routine stock_of";
    assert_eq!(run(&mut app, "SELECT stock_of(1)"), denied);
    // Its caller's rights are asked for, at each level.
    assert_eq!(run(&mut app, "SELECT twice(1)"), denied);
    run(&mut superuser, "GRANT EXECUTE ON FUNCTION stock_of TO app");
    assert_eq!(run(&mut app, "SELECT twice(1)"), "SELECT 1");
    run(&mut superuser, "REVOKE ALL ON PROCEDURE sell FROM PUBLIC");
    let denied = "42501 permission denied for routine sell";
    assert_eq!(run(&mut app, "CALL sell(1, NULL)"), denied);
    // Gone roles run nothing.
    run(
        &mut superuser,
        "REVOKE ALL ON ALL ROUTINES IN SCHEMA public FROM app",
    );
    assert_eq!(run(&mut superuser, "DROP ROLE app"), "DROP ROLE");
    assert_eq!(
        run(&mut app, "SELECT 1"),
        "42704 role \"app\" does not exist"
    );
    assert!(database.session_as("app").is_err());
}

#[test]
fn roles_are_defined_as_in_postgresql() {
    let (database, mut superuser, _) = shop();
    for (text, expected) in [
        ("CREATE ROLE app", "42710 role \"app\" already exists"),
        ("CREATE ROLE pg_x", "42939 role name \"pg_x\" is reserved"),
        (
            "CREATE ROLE public",
            "42939 role name \"public\" is reserved",
        ),
        (
            "CREATE ROLE x LOGIN NOLOGIN",
            "42601 conflicting or redundant options",
        ),
        (
            "CREATE ROLE \"Two words\" WITH SUPERUSER NOLOGIN ENCRYPTED PASSWORD 'it''s'",
            "CREATE ROLE",
        ),
        ("CREATE USER u", "CREATE ROLE"),
        (
            "ALTER ROLE nobody LOGIN",
            "42704 role \"nobody\" does not exist",
        ),
        ("ALTER ROLE u PASSWORD NULL", "ALTER ROLE"),
        (
            "ALTER ROLE kiln NOSUPERUSER",
            "0A000 role \"kiln\" is always a superuser that may connect",
        ),
        ("DROP ROLE kiln", "55006 current user cannot be dropped"),
        ("DROP ROLE IF EXISTS nobody, u", "DROP ROLE"),
        ("DROP ROLE nobody", "42704 role \"nobody\" does not exist"),
        (
            "GRANT SELECT ON item TO nobody",
            "42704 role \"nobody\" does not exist",
        ),
        (
            "GRANT SELECT ON nothing TO app",
            "42P01 relation \"nothing\" does not exist",
        ),
        (
            "GRANT EXECUTE ON item TO app",
            "0LP01 invalid privilege type EXECUTE for relation",
        ),
        (
            "GRANT SELECT ON FUNCTION twice TO app",
            "0LP01 invalid privilege type SELECT for function",
        ),
        ("GRANT REFERENCES ON item TO app", "GRANT"),
        ("DROP ROLE app", "DROP ROLE"),
        ("CREATE ROLE app", "CREATE ROLE"),
        ("GRANT USAGE ON SCHEMA public TO app", "GRANT"),
        ("GRANT SELECT, INSERT ON item, sale TO app, PUBLIC", "GRANT"),
        (
            "DROP ROLE app",
            "2BP01 role \"app\" cannot be dropped because some objects depend on it",
        ),
        ("DROP TABLE sale, item CASCADE", "DROP TABLE"),
        (
            "DROP ROLE app",
            "2BP01 role \"app\" cannot be dropped because some objects depend on it",
        ),
        ("REVOKE ALL ON SCHEMA public FROM app", "REVOKE"),
        ("DROP ROLE app", "DROP ROLE"),
    ] {
        assert!(
            run(&mut superuser, text).starts_with(expected),
            "{text}: {}",
            run(&mut superuser, text)
        );
    }
    let catalog = database.engine().catalog();
    let role = catalog.roles().require("Two words").expect("it is there");
    let secret = role.secret.as_deref().expect("it has a password");
    assert!(
        secret.parse::<kiln_sql::secret::Secret>().is_ok(),
        "{secret}"
    );
}

#[test]
fn owners_survive() {
    let temporary = TemporaryDirectory::new("kiln-owners").expect("there is room");
    let directory = temporary.path().join("shop");
    let options = Options::new().data_dir(Some(directory));
    {
        let database = open(options.clone());
        database.execute(SHOP).expect("it is SQL");
        let text = "GRANT CREATE ON SCHEMA public TO app; CREATE SCHEMA AUTHORIZATION app; \
                    CREATE ROLE other; CREATE TABLE given (id INTEGER PRIMARY KEY); \
                    ALTER TABLE given OWNER TO other";
        database.execute(text).expect("it is SQL");
        let mut app = database.session_as("app").expect("there is such a role");
        let text = "CREATE TABLE mine (id SERIAL PRIMARY KEY, v INTEGER); \
                    CREATE DOMAIN whole AS INTEGER CHECK (VALUE >= 0); \
                    CREATE TYPE mood AS ENUM ('sad', 'glad'); \
                    CREATE TABLE app.other (id INTEGER PRIMARY KEY, m mood); \
                    CREATE VIEW stocks AS SELECT * FROM item; \
                    CREATE FUNCTION all_stocks() RETURNS BIGINT LANGUAGE sql SECURITY DEFINER AS \
                        'SELECT count(*) FROM item'; \
                    INSERT INTO mine (v) VALUES (1); \
                    BEGIN; CREATE TABLE of_block (id INTEGER PRIMARY KEY); COMMIT; \
                    ALTER TABLE mine RENAME TO still_mine; CREATE TABLE gone (id INTEGER); \
                    DROP TABLE gone";
        assert_eq!(run(&mut app, text), "DROP TABLE");
    }
    for round in 0..3 {
        let database = open(options.clone());
        let mut app = database.session_as("app").expect("there is such a role");
        for (text, expected) in [
            ("UPDATE still_mine SET v = v + 1", "UPDATE 1"),
            ("INSERT INTO app.other VALUES (1, 'sad')", "INSERT 0 1"),
            ("DELETE FROM app.other", "DELETE 1"),
            ("ALTER TABLE of_block ADD COLUMN v INTEGER", "ALTER TABLE"),
            ("ALTER TABLE of_block DROP COLUMN v", "ALTER TABLE"),
            (
                "ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'",
                "ALTER TYPE",
            ),
            (
                "ALTER TYPE mood RENAME VALUE 'happy' TO 'glad'",
                "ALTER TYPE",
            ),
            ("ALTER DOMAIN whole SET NOT NULL", "ALTER DOMAIN"),
            ("TABLE stocks", "42501 permission denied for table item"),
            (
                "SELECT all_stocks()",
                "42501 permission denied for table item",
            ),
            ("DROP TABLE given", "42501 must be owner of table given"),
            (
                "SELECT * FROM given",
                "42501 permission denied for table given",
            ),
        ] {
            assert_eq!(run(&mut app, text), expected, "round {round}: {text}");
        }
        let mut superuser = database.session().expect("there is room");
        let denied = "42501 permission denied for table item";
        assert_eq!(run(&mut superuser, "SELECT all_stocks()"), denied);
        let used = run(&mut superuser, "DROP ROLE app");
        assert!(used.starts_with("2BP01"), "{used}");
        // The second time it comes out of a checkpoint.
        let report = database.engine().checkpoint();
        report.expect("it is written");
    }
}

#[test]
fn roles_and_privileges_survive_without_a_password_on_disk() {
    let temporary = TemporaryDirectory::new("kiln-roles").expect("there is room");
    let directory = temporary.path().join("shop");
    let options = Options::new().data_dir(Some(directory.clone()));
    let secret_of = |database: &Database| {
        let catalog = database.engine().catalog();
        catalog
            .roles()
            .require("app")
            .expect("it is there")
            .secret
            .clone()
    };
    let secret = {
        let database = open(options.clone());
        database.execute(SHOP).expect("it is SQL");
        let text = "ALTER ROLE app PASSWORD 'correct horse'; GRANT SELECT, UPDATE ON item TO app; \
                    REVOKE EXECUTE ON PROCEDURE sell FROM PUBLIC; CREATE ROLE idle NOLOGIN; \
                    GRANT idle TO app; ALTER ROLE app SET lock_timeout TO '3s'; \
                    ALTER ROLE CURRENT_USER SET search_path TO shop, public; \
                    ALTER ROLE ALL SET statement_timeout TO '9s'; ALTER ROLE idle SET timezone TO 'UTC'; \
                    ALTER ROLE idle RESET ALL";
        database.execute(text).expect("it is SQL");
        secret_of(&database)
    };
    for round in 0..3 {
        let database = open(options.clone());
        assert_eq!(secret_of(&database), secret, "round {round}");
        let mut app = database.session_as("app").expect("there is such a role");
        assert_eq!(
            run(&mut app, "UPDATE item SET stock = stock + 1"),
            "UPDATE 1"
        );
        assert_eq!(app.begin_as_role(), []);
        let shown = ["lock_timeout", "statement_timeout", "search_path"];
        let shown = shown.map(|name| app.setting(name).expect("it is known"));
        let expected = ["3s", "9s", "\"$user\", public"];
        assert_eq!(shown, expected, "round {round}");
        let roles = database.engine().catalog().roles().clone();
        assert!(roles.roles_of("app").contains("idle"), "round {round}");
        let first = roles.settings_of("kiln");
        let path = first.get("search_path").map(String::as_str);
        assert_eq!(path, Some("shop, public"), "round {round}");
        assert_eq!(roles.settings().count(), 3, "round {round}");
        let denied = "42501 permission denied for routine sell";
        assert_eq!(run(&mut app, "CALL sell(1, NULL)"), denied);
        // The second time it comes out of a checkpoint.
        let report = database.engine().checkpoint();
        report.expect("it is written");
    }
    let password = b"correct horse";
    for (name, bytes) in Image::of(&directory).files {
        let mut windows = bytes.windows(password.len());
        assert!(
            !windows.any(|window| window == password),
            "{}",
            name.display()
        );
    }
}

#[test]
fn sequences_are_for_who_was_granted_them() {
    let (_database, mut superuser, mut app) = shop();
    let schema = "CREATE SEQUENCE s; CREATE TABLE t (id SERIAL, v INTEGER);
        CREATE TABLE u (id INTEGER GENERATED ALWAYS AS IDENTITY, v INTEGER);
        GRANT INSERT ON t, u TO app";
    superuser.execute(schema).expect("it is SQL");
    let refused = "42501 permission denied for sequence s";
    for text in [
        "SELECT nextval('s')",
        "SELECT currval('s')",
        "SELECT setval('s', 5)",
        "SELECT * FROM s",
    ] {
        assert_eq!(run(&mut app, text), refused, "{text}");
    }
    let of_serial = "42501 permission denied for sequence t_id_seq";
    assert_eq!(run(&mut app, "INSERT INTO t (v) VALUES (1)"), of_serial);
    assert_eq!(run(&mut app, "INSERT INTO u (v) VALUES (1)"), "INSERT 0 1");
    let computed = "SELECT nextval(v.name) FROM (VALUES ('s'), ('s')) v (name)";
    run(&mut superuser, "GRANT USAGE ON SEQUENCE s, t_id_seq TO app");
    assert!(run(&mut app, computed).starts_with("42501"));
    assert_eq!(run(&mut superuser, computed), "SELECT 2");
    assert_eq!(
        run(&mut app, "SELECT nextval('s'), currval('s')"),
        "SELECT 1"
    );
    assert_eq!(run(&mut app, "INSERT INTO t (v) VALUES (1)"), "INSERT 0 1");
    assert_eq!(run(&mut app, "SELECT setval('s', 5)"), refused);
    assert_eq!(run(&mut app, "SELECT last_value FROM s"), refused);
    run(
        &mut superuser,
        "REVOKE ALL ON SEQUENCE s FROM app; GRANT UPDATE, SELECT ON SEQUENCE s TO app",
    );
    for text in [
        "SELECT setval('s', 5)",
        "SELECT nextval('s')",
        "SELECT last_value FROM s",
    ] {
        assert_eq!(run(&mut app, text), "SELECT 1", "{text}");
    }
    assert!(run(&mut app, "ALTER SEQUENCE s RESTART").starts_with("42501"));
    run(
        &mut superuser,
        "REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM app",
    );
    assert_eq!(run(&mut app, "SELECT nextval('s')"), refused);
    let wrong = "GRANT INSERT ON SEQUENCE s TO app";
    assert_eq!(
        run(&mut superuser, wrong),
        "0LP01 invalid privilege type INSERT for sequence"
    );
}
