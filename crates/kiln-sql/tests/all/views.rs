//! Views: what they cost, who may use them, and what is left of them after a restart.

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_engine::Configuration;
use kiln_procedure::explain;
use kiln_sql::{Database, Options, SqlState};

fn open() -> Database {
    Database::open(Options::new().workers(1)).expect("a database opens")
}

fn rows(database: &Database, query: &str) -> Vec<String> {
    let result = database.query(query, ()).expect("the query runs");
    let csv = result.to_csv();
    csv.lines().skip(1).map(str::to_owned).collect()
}

const SCHEMA: &str = "
CREATE TABLE item (id INTEGER PRIMARY KEY, kind INTEGER, price INTEGER NOT NULL);
CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO kind VALUES (1, 'one'), (2, 'two');
INSERT INTO item SELECT i, 1 + i % 2, i * 10 FROM generate_series(1, 50) i;
CREATE VIEW named AS SELECT item.id, item.price, kind.name FROM item JOIN kind ON kind.id = item.kind;
CREATE VIEW cheap AS SELECT id, price AS costs FROM item WHERE price < 300;
CREATE VIEW cheaper AS SELECT id, costs FROM cheap WHERE costs < 200 WITH CHECK OPTION;
";

#[test]
fn a_look_up_by_key_through_a_view_is_one() {
    let database = open();
    database.execute(SCHEMA).expect("the schema is sound");
    for procedure in [
        "CREATE PROCEDURE of_view(which INTEGER, OUT found TEXT) LANGUAGE plpgsql AS $$
         BEGIN SELECT name INTO found FROM named WHERE id = which; END $$;",
        "CREATE PROCEDURE of_tables(which INTEGER, OUT found TEXT) LANGUAGE plpgsql AS $$
         BEGIN SELECT kind.name INTO found FROM item JOIN kind ON kind.id = item.kind WHERE item.id = which; END $$;",
        "CREATE PROCEDURE raise_price(which INTEGER) LANGUAGE plpgsql AS $$
         BEGIN UPDATE cheaper SET costs = costs + 1 WHERE id = which; END $$;",
    ] {
        database.execute(procedure).expect("the procedure is sound");
    }
    let catalog = database.engine().catalog();
    let listing = |name: &str| {
        let procedure = catalog.procedure(name).expect("it was created");
        let text = explain::text(procedure.program());
        text.replace("of_view", "of").replace("of_tables", "of")
    };
    assert_eq!(listing("of_view"), listing("of_tables"));
    assert!(!listing("of_view").contains("scan"));
    let update = listing("raise_price");
    assert!(!update.contains("scan"), "{update}");
}

#[test]
fn views_are_used_under_every_protocol() {
    for protocol in Configuration::serializable() {
        let options = Options::new().workers(1).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("a database opens");
        database.execute(SCHEMA).expect("the schema is sound");
        database
            .execute(
                "CREATE PROCEDURE change(which INTEGER) LANGUAGE plpgsql AS $$
                 BEGIN
                   UPDATE cheaper SET costs = costs + 15 WHERE id = which;
                   DELETE FROM cheap WHERE id = which + 1;
                   INSERT INTO cheaper VALUES (100 + which, 7);
                 END $$;",
            )
            .expect("the procedure is sound");
        let reply = database.call("change", (1,)).expect("a call ends");
        assert!(reply.is_committed(), "{protocol}: {reply:?}");
        let refused = database.call("change", (19,)).expect("a call ends");
        assert!(!refused.is_committed(), "{protocol}");
        assert_eq!(
            rows(
                &database,
                "SELECT * FROM cheaper WHERE id IN (1, 2, 19, 101) ORDER BY id"
            ),
            ["1,25", "19,190", "101,7"],
            "{protocol}"
        );
    }
}

#[test]
fn roles_need_the_view_and_not_its_tables() {
    let database = open();
    database.execute(SCHEMA).expect("the schema is sound");
    database
        .execute(
            "CREATE ROLE reader LOGIN; CREATE ROLE writer LOGIN;
             GRANT SELECT ON named TO reader;
             GRANT SELECT, UPDATE, INSERT ON cheaper TO writer;",
        )
        .expect("roles are made");
    let denied = |role: &str, statement: &str| {
        let mut session = database.session_as(role).expect("it may connect");
        let refused = session.execute(statement).expect_err(statement);
        assert_eq!(
            refused.state(),
            SqlState::INSUFFICIENT_PRIVILEGE,
            "{statement}"
        );
    };
    let allowed = |role: &str, statement: &str| {
        let mut session = database.session_as(role).expect("it may connect");
        session
            .execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    };
    allowed("reader", "SELECT name FROM named WHERE id = 1");
    denied("reader", "SELECT id FROM item");
    denied("reader", "SELECT id FROM cheap");
    denied("reader", "DROP VIEW named");
    allowed("writer", "UPDATE cheaper SET costs = 1 WHERE id = 1");
    allowed("writer", "INSERT INTO cheaper VALUES (90, 1)");
    denied("writer", "DELETE FROM cheaper WHERE id = 1");
    denied("writer", "UPDATE cheap SET costs = 1");
    database
        .execute("ALTER VIEW named RENAME TO called")
        .expect("it is renamed");
    allowed("reader", "SELECT name FROM called WHERE id = 1");
    database
        .execute("DROP VIEW called; CREATE VIEW called AS SELECT 1 AS name")
        .expect("it is made anew");
    denied("reader", "SELECT name FROM called");
}

#[test]
fn views_are_found_again_in_a_data_directory() {
    let directory = temporary();
    let open = || {
        let path = directory.path().join("data");
        let options = Options::new().workers(1).pin_workers(false);
        Database::open(options.data_dir(Some(path))).expect("the directory is sound")
    };
    let before = {
        let database = open();
        database.execute(SCHEMA).expect("the schema is sound");
        database
            .execute(
                "CREATE VIEW all_of AS SELECT *, id + 1 AS next FROM kind;
                 CREATE ROLE reader; GRANT SELECT ON all_of TO reader;
                 CREATE VIEW gone AS SELECT 1 AS a; DROP VIEW gone;
                 CREATE VIEW old AS SELECT 1 AS a; ALTER VIEW old RENAME TO young;
                 CREATE OR REPLACE VIEW young AS SELECT 2 AS a, 'it''s' AS b;
                 CREATE FUNCTION sum_of() RETURNS BIGINT LANGUAGE plpgsql AS $$
                 BEGIN RETURN (SELECT sum(costs) FROM cheaper); END $$;",
            )
            .expect("the script runs");
        let written = database.engine().written_catalog();
        written.expect("it can be written").to_string()
    };
    assert!(before.contains("view 7:cheaper cascaded"), "{before}");
    // The first opening redoes the statements, the others read the catalog of a checkpoint.
    for turn in 0..3 {
        let database = open();
        let written = database.engine().written_catalog();
        let written = written.expect("it can be written").to_string();
        assert_eq!(written, before, "opening {turn}");
        assert_eq!(
            rows(&database, "SELECT * FROM all_of"),
            ["1,one,2", "2,two,3"]
        );
        assert_eq!(rows(&database, "SELECT * FROM young"), ["2,it's"]);
        assert_eq!(rows(&database, "SELECT sum_of()"), ["1900"]);
        database.engine().checkpoint().expect("the disk works");
    }
    let rebuilt = Database::rebuild(
        Options::new().workers(1),
        &before.parse().expect("it was written"),
    );
    let rebuilt = rebuilt.expect("it is a catalog");
    let written = rebuilt.engine().written_catalog();
    assert_eq!(written.expect("it can be written").to_string(), before);
}
