//! Materialized views, indexes that are declared only and NULLs that are equal: what is left of
//! them after a restart.

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_sql::{Database, Options, SqlState};

fn rows(database: &Database, query: &str) -> Vec<String> {
    let result = database.query(query, ()).expect("the query runs");
    let csv = result.to_csv();
    csv.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn they_are_found_again_in_a_data_directory() {
    let directory = temporary();
    let open = || {
        let path = directory.path().join("data");
        let options = Options::new().workers(1).pin_workers(false);
        Database::open(options.data_dir(Some(path))).expect("the directory is sound")
    };
    let before = {
        let database = open();
        database
            .execute(
                "CREATE TABLE item (id INTEGER PRIMARY KEY, doc JSONB, tags TEXT[], code INTEGER);
                 INSERT INTO item VALUES (1, '{\"a\": 1}', '{x}', NULL), (2, NULL, NULL, 7);
                 CREATE INDEX item_doc ON item USING gin (doc jsonb_path_ops, tags);
                 CREATE INDEX item_a ON item USING gin ((doc -> 'a')) WHERE id > 0;
                 ALTER TABLE item ADD COLUMN more TEXT;
                 CREATE INDEX item_code ON item USING hash (code);
                 CREATE UNIQUE INDEX item_key ON item (code) NULLS NOT DISTINCT;
                 CREATE MATERIALIZED VIEW kept AS SELECT id, code FROM item;
                 CREATE UNIQUE INDEX ON kept (id);
                 INSERT INTO item VALUES (3, '[]', '{}', 8);
                 REFRESH MATERIALIZED VIEW CONCURRENTLY kept;
                 INSERT INTO item VALUES (4, '[]', '{}', 9);
                 CREATE MATERIALIZED VIEW open AS SELECT max(id) AS last FROM kept WITH NO DATA;
                 CREATE MATERIALIZED VIEW late AS SELECT 1 AS a WITH NO DATA;
                 REFRESH MATERIALIZED VIEW late;
                 ALTER MATERIALIZED VIEW late RENAME TO early;
                 CREATE MATERIALIZED VIEW gone AS SELECT 1 AS a;
                 DROP MATERIALIZED VIEW gone;",
            )
            .expect("the script runs");
        let written = database.engine().written_catalog();
        written.expect("it can be written").to_string()
    };
    for shown in [
        " nulls-equal ",
        " using gin ",
        "unbuilt index",
        " missing\n",
    ] {
        assert!(before.contains(shown), "no {shown} in {before}");
    }
    // The first opening redoes the statements, the others read the catalog of a checkpoint.
    for turn in 0..3 {
        let database = open();
        let written = database.engine().written_catalog();
        let written = written.expect("it can be written").to_string();
        assert_eq!(written, before, "opening {turn}");
        assert_eq!(
            rows(&database, "SELECT id, code FROM kept ORDER BY id"),
            ["1,", "2,7", "3,8"]
        );
        assert_eq!(rows(&database, "SELECT a FROM early"), ["1"]);
        assert_eq!(rows(&database, "SELECT id FROM item WHERE code = 9"), ["4"]);
        let refused = database.query("SELECT last FROM open", ());
        let refused = refused.expect_err("it was never run");
        assert_eq!(refused.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
        let refused = database.execute("INSERT INTO item (id) VALUES (9)");
        let refused = refused.expect_err("there is a NULL already");
        assert_eq!(refused.state(), SqlState::UNIQUE_VIOLATION);
        database.engine().checkpoint().expect("the disk works");
    }
    let rebuilt = Database::rebuild(
        Options::new().workers(1),
        &before.parse().expect("it was written"),
    );
    let rebuilt = rebuilt.expect("it is a catalog");
    let written = rebuilt.engine().written_catalog();
    let written = written.expect("it can be written").to_string();
    assert!(written.contains("unbuilt index"), "{written}");
}
