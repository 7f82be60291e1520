//! Procedures run the same wherever their operations are done: under `dora` with rows of nearly
//! every partition in each loop, a run is left, and gone on with elsewhere, inside of scans in
//! scans, of loops over sorted and joined rows, and before each kind of operation.

use kiln::{Database, Options, Protocol};
use kiln_engine::BasisFactors;

const SCHEMA: &str = "
    CREATE TABLE item (id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, value BIGINT NOT NULL, code INTEGER UNIQUE);
    CREATE TABLE bucket (id INTEGER PRIMARY KEY, total BIGINT NOT NULL, name TEXT NOT NULL);
    CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
    CREATE INDEX item_bucket ON item (bucket);

    CREATE PROCEDURE fill(count INTEGER) LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1..count LOOP
            INSERT INTO item VALUES (i, i % 5, i * 3, 1000 + i);
        END LOOP;
        FOR i IN 0..4 LOOP
            INSERT INTO bucket VALUES (i, 0, 'bucket ' || i);
        END LOOP;
    END $$;

    -- A scan inside of a scan, of which the inner one is left early.
    CREATE PROCEDURE nested(least INTEGER) LANGUAGE plpgsql AS $$
    DECLARE
        outside RECORD;
        inside RECORD;
        seen INTEGER := 0;
    BEGIN
        FOR outside IN SELECT id FROM bucket WHERE id >= least LOOP
            FOR inside IN SELECT id, value FROM item WHERE bucket = outside.id LOOP
                seen := seen + 1;
                UPDATE bucket SET total = total + inside.value WHERE id = outside.id;
                EXIT WHEN seen % 7 = 0;
                CONTINUE WHEN inside.id % 2 = 0;
                UPDATE item SET value = value + 1 WHERE id = inside.id;
            END LOOP;
        END LOOP;
        INSERT INTO note VALUES (100 + least, 'seen ' || seen);
    END $$;

    -- Rows that are sorted first, and rows that are joined by a hash.
    CREATE PROCEDURE sorted() LANGUAGE plpgsql AS $$
    DECLARE
        one RECORD;
        place INTEGER := 0;
    BEGIN
        FOR one IN SELECT id, value FROM item ORDER BY value DESC, id LOOP
            place := place + 1;
            UPDATE item SET value = place WHERE id = one.id;
            IF place = 5 THEN
                DELETE FROM item WHERE id = one.id;
                INSERT INTO item VALUES (one.id, 4, 7, 2000 + one.id);
            END IF;
        END LOOP;
        FOR one IN SELECT a.id AS first, b.id AS second FROM item a JOIN item b ON a.value = b.value * 2 LOOP
            UPDATE item SET code = 5000 + one.first * 100 + one.second WHERE id = one.first;
            UPDATE bucket SET total = total + one.second WHERE id = one.first % 5;
        END LOOP;
    END $$;

    -- An insert that a row elsewhere is in the way of, handled in both ways.
    CREATE PROCEDURE upsert(key INTEGER, number INTEGER) LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO item VALUES (key, 1, 1, number) ON CONFLICT (id) DO UPDATE SET value = item.value + 1000;
        INSERT INTO item VALUES (key + 500, 2, 2, number + 9000) ON CONFLICT DO NOTHING;
    END $$;

    -- It raises after all that, and nothing is left of it.
    CREATE PROCEDURE rejected() LANGUAGE plpgsql AS $$
    DECLARE
        one RECORD;
    BEGIN
        FOR one IN SELECT id FROM item WHERE bucket = 3 LOOP
            UPDATE item SET value = 0, code = 70000 + one.id WHERE id = one.id;
            DELETE FROM bucket WHERE id = one.id % 5;
        END LOOP;
        RAISE EXCEPTION 'not this time';
    END $$;

    CREATE FUNCTION report() RETURNS TABLE (id INTEGER, name TEXT, number BIGINT, amount NUMERIC) LANGUAGE plpgsql AS $$
    BEGIN
        RETURN QUERY
            SELECT b.id, b.name, count(*), sum(i.value)
            FROM bucket b JOIN item i ON i.bucket = b.id
            GROUP BY b.id, b.name ORDER BY b.id DESC;
    END $$;
";

/// What is in the database after some calls, as texts.
fn run(options: Options) -> Vec<String> {
    let database = Database::open(options).expect("a database opens");
    database.execute(SCHEMA).expect("the schema is sound");
    let call = |name: &str| {
        let reply = database.call(name, ()).expect("it ends");
        assert_eq!(reply.is_committed(), name != "rejected", "{name}");
    };
    database.call("fill", (60,)).expect("rows");
    database.call("nested", (0,)).expect("it commits");
    call("sorted");
    database.call("upsert", (17, 1001)).expect("it commits");
    database.call("upsert", (70, 1070)).expect("it commits");
    call("rejected");
    database.call("nested", (2,)).expect("it commits");
    call("sorted");
    let mut texts = Vec::new();
    for query in [
        "SELECT id || ' ' || bucket || ' ' || value || ' ' || code FROM item ORDER BY id",
        "SELECT id || ' ' || total || ' ' || name FROM bucket ORDER BY id",
        "SELECT id || ' ' || text FROM note ORDER BY id",
        "SELECT id || ' ' || name || ' ' || number || ' ' || amount FROM report()",
        "SELECT count(DISTINCT bucket) || ' ' || max(code) FROM item WHERE value > 3",
    ] {
        let rows = database.query(query, ()).expect("a query");
        let rows = rows.into_rows::<(String,)>().expect("texts");
        texts.extend(rows.into_iter().map(|row| row.0));
    }
    texts
}

#[test]
fn runs_that_travel_do_the_same() {
    let expected = run(Options::new().workers(1).protocol(Protocol::Serial));
    assert!(expected.len() > 60);
    for partitions in [1, 2, 7, 64] {
        let mut factors = BasisFactors::default();
        factors.protocols.partitions = partitions;
        let options = Options::new().workers(3).protocol(Protocol::Dora);
        assert_eq!(
            run(options.basis_factors(factors)),
            expected,
            "{partitions} partitions"
        );
    }
}
