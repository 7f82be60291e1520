//! Which columns timestamp splitting keeps apart, in a database that runs.

use kiln::{Database, Options, SqlState};

/// Opens a database under `protocol` whose changes of the catalog wait for so long.
fn open(protocol: &str, ddl_wait_ms: u64) -> Database {
    let options = Options::new()
        .workers(2)
        .pin_workers(false)
        .ddl_wait_ms(ddl_wait_ms)
        .protocol(protocol.parse::<kiln::Configuration>().expect("a protocol"));
    Database::open(options).expect("a database opens")
}

/// The names of a table's columns that have a timestamp beside the record's.
fn apart(database: &Database, table: &str) -> Vec<String> {
    let table = database.engine().table(table).expect("it is there");
    let columns = &table.schema().columns;
    let split = table.split();
    split
        .iter()
        .map(|column| columns[column.index()].name.clone())
        .collect()
}

/// A block reads `x`, which another transaction overwrites together with a column of `t`. That column comes to be
/// kept apart, a third transaction reads it and `y`, and the block writes `y`: it comes before the second transaction
/// and after the third, which has read what the second wrote.
#[test]
fn a_split_that_changes_beside_an_open_block_leaves_transactions_serializable() {
    for protocol in ["silo+cu+ts", "tictoc+ts", "tictoc+cu+ts"] {
        let database = open(protocol, 300);
        let run = |text: &str| database.execute(text).expect("the script is good");
        run("CREATE TABLE x (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
             CREATE TABLE y (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
             CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b INTEGER NOT NULL);
             INSERT INTO x VALUES (1, 0); INSERT INTO y VALUES (1, 0); INSERT INTO t VALUES (1, 0, 0);
             CREATE PROCEDURE w(OUT found INTEGER) LANGUAGE plpgsql AS $$
             BEGIN UPDATE t SET b = b + 1 WHERE id = 1 RETURNING a INTO found; END $$;
             CREATE PROCEDURE r(OUT found INTEGER) LANGUAGE plpgsql AS $$
             BEGIN SELECT a INTO found FROM t WHERE id = 1; END $$;");
        assert_eq!(apart(&database, "t"), ["id", "a"]);
        // Timestamps of insertions are known up to a thousand alone.
        for _ in 0..2_500 {
            run("UPDATE x SET v = v + 1 WHERE id = 1");
        }
        let mut block = database.session().expect("a session is free");
        block
            .execute("BEGIN; SELECT v FROM x WHERE id = 1")
            .expect("no other transaction is open");
        run("BEGIN; UPDATE x SET v = v + 1 WHERE id = 1; UPDATE t SET b = 1 WHERE id = 1; COMMIT");
        // No procedure writes the table any more, so that all its columns are kept apart from now on.
        if let Err(error) = database.execute("DROP PROCEDURE w") {
            assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE, "{protocol}");
        }
        let both = "SELECT t.b, y.v FROM t, y WHERE t.id = 1 AND y.id = 1";
        let read = database.query(both, ()).expect("the query is good");
        assert_eq!(read.into_one::<(i32, i32)>(), Ok((1, 0)));
        let ended = block.execute("UPDATE y SET v = 1 WHERE id = 1; COMMIT");
        let error = ended.expect_err(protocol);
        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{protocol}");
    }
}
