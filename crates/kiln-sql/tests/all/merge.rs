//! MERGE under every protocol: in procedures that run beside each other, in blocks, and after a
//! restart.

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_engine::Configuration;
use kiln_platform::thread;
use kiln_sql::{Database, Options};

/// Words are counted by MERGE; one that has come up five times moves to another table.
const SCHEMA: &str = "
CREATE TABLE words (word INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n > 0));
CREATE TABLE often (word INTEGER PRIMARY KEY, times INTEGER NOT NULL);
CREATE TABLE noted (word INTEGER, kind TEXT, id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO noted (word, kind) VALUES (coalesce(NEW.word, OLD.word), TG_OP);
    RETURN NULL;
END $$;
CREATE TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON words FOR EACH ROW EXECUTE FUNCTION note();
CREATE PROCEDURE read_words(one INTEGER, other INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    MERGE INTO words AS w USING (VALUES (one), (other)) AS s (word) ON w.word = s.word
        WHEN MATCHED AND n < 4 THEN UPDATE SET n = n + 1
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED THEN INSERT VALUES (s.word, 1);
    MERGE INTO often USING (
            SELECT x.word FROM (VALUES (one), (other)) AS x (word)
            WHERE NOT EXISTS (SELECT FROM words w WHERE w.word = x.word)) AS s
        ON often.word = s.word
        WHEN MATCHED THEN UPDATE SET times = times + 1
        WHEN NOT MATCHED THEN INSERT VALUES (s.word, 1);
END $$;
";

const WORKERS: i32 = 3;
const CALLS: i32 = 60;

fn number(database: &Database, query: &str) -> String {
    let result = database.query(query, ()).expect("the query runs");
    result.to_csv().lines().skip(1).collect()
}

/// What holds after all calls, whatever their order was.
fn check(database: &Database, protocol: &Configuration) {
    let read = (WORKERS * CALLS * 2).to_string();
    let all = "SELECT (SELECT coalesce(sum(n), 0) FROM words) + (SELECT coalesce(sum(times), 0) * 5 FROM often)";
    assert_eq!(number(database, all), read, "{protocol}");
    let noted = "SELECT count(*) FROM noted";
    assert_eq!(number(database, noted), read, "{protocol}");
    let deleted = "SELECT count(*) = (SELECT coalesce(sum(times), 0) FROM often) FROM noted WHERE kind = 'DELETE'";
    assert_eq!(number(database, deleted), "t", "{protocol}");
    let moved = "SELECT count(*) > 0 FROM often";
    assert_eq!(number(database, moved), "t", "{protocol}");
}

#[test]
fn merges_beside_each_other_count_all_under_every_protocol() {
    for protocol in Configuration::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("a database opens");
        database.execute(SCHEMA).expect("the schema is sound");
        thread::scope(|scope| {
            for worker in 0..WORKERS {
                let database = &database;
                scope.spawn(move || {
                    for turn in 0..CALLS {
                        let one = (turn * 7 + worker) % 5;
                        let call = database.call("read_words", (one, 5 + turn % 3));
                        call.expect("a call ends").rows().expect("it commits");
                    }
                });
            }
        });
        check(&database, &protocol);
    }
}

#[test]
fn blocks_merge_under_every_protocol() {
    for protocol in Configuration::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("a database opens");
        database
            .execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER); INSERT INTO t VALUES (1, 1), (2, 2)")
            .expect("the schema is sound");
        let mut session = database.session().expect("a session is free");
        let merge = |k: i32| {
            format!(
                "MERGE INTO t USING generate_series({k}, {k} + 1) AS s (k) ON id = k
                 WHEN MATCHED THEN UPDATE SET v = v * 10 WHEN NOT MATCHED THEN INSERT VALUES (k, 0)"
            )
        };
        let mut run = |sql: &str| {
            let results = session.execute(sql);
            results.map(|results| results.last().map(|it| it.tag.clone()).unwrap_or_default())
        };
        run("BEGIN").expect("a block begins");
        assert_eq!(run(&merge(2)).expect("it merges"), "MERGE 2", "{protocol}");
        assert_eq!(run(&merge(2)).expect("it merges"), "MERGE 2", "{protocol}");
        run("ROLLBACK").expect("the block ends");
        run("BEGIN").expect("a block begins");
        assert_eq!(run(&merge(1)).expect("it merges"), "MERGE 2", "{protocol}");
        run("COMMIT").expect("the block ends");
        let twice =
            run("MERGE INTO t USING (VALUES (1), (1)) AS s (k) ON id = k WHEN MATCHED THEN DELETE");
        let error = twice.expect_err("a row is deleted twice");
        assert_eq!(error.state().as_str(), "21000", "{protocol}");
        let rows = "SELECT string_agg(id || ':' || v, ' ' ORDER BY id) FROM t";
        assert_eq!(number(&database, rows), "1:10 2:20", "{protocol}");
    }
}

#[test]
fn merged_rows_are_there_after_a_restart() {
    let directory = temporary();
    let open = || {
        let options = Options::new().workers(1).pin_workers(false);
        Database::open(options.data_dir(Some(directory.path().join("data"))))
            .expect("a database opens")
    };
    let database = open();
    database.execute(SCHEMA).expect("the schema is sound");
    for turn in 0..7 {
        let call = database.call("read_words", (1, 2 + turn % 2));
        call.expect("a call ends").rows().expect("it commits");
    }
    drop(database);
    let database = open();
    let rows = "SELECT string_agg(word || ':' || n, ' ' ORDER BY word) FROM words";
    assert_eq!(number(&database, rows), "1:2 2:4 3:3");
    assert_eq!(number(&database, "SELECT times FROM often"), "1");
}
