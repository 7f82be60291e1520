//! Referential actions beside each other, after a restart, and in what `explain` prints.

#![cfg(not(kiln_sim))]

use crate::files::temporary;
use kiln_engine::Configuration;
use kiln_platform::thread;
use kiln_procedure::explain;
use kiln_sql::{Database, Options, SqlState};

/// Customers have orders, and these have lines and, if they are lucky, a note. Lines are a tree.
const SCHEMA: &str = "
CREATE TABLE customer (id INTEGER PRIMARY KEY);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer ON DELETE CASCADE ON UPDATE CASCADE);
CREATE INDEX sale_customer ON sale (customer);
CREATE TABLE line (id INTEGER PRIMARY KEY,
    sale INTEGER NOT NULL REFERENCES sale ON DELETE CASCADE,
    part_of INTEGER REFERENCES line ON DELETE CASCADE);
CREATE INDEX line_sale ON line (sale);
CREATE INDEX line_part_of ON line (part_of);
CREATE TABLE note (id INTEGER PRIMARY KEY, line INTEGER REFERENCES line ON DELETE SET NULL);
CREATE INDEX note_line ON note (line);
CREATE PROCEDURE order_it(number INTEGER, who INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO customer VALUES (who) ON CONFLICT DO NOTHING;
    INSERT INTO sale VALUES (number, who);
    INSERT INTO line VALUES (2 * number, number, NULL), (2 * number + 1, number, 2 * number);
    INSERT INTO note VALUES (number, 2 * number + 1);
END $$;
CREATE PROCEDURE add_line(number INTEGER, of_sale INTEGER, of_line INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO line VALUES (number, of_sale, of_line);
END $$;
CREATE PROCEDURE leave(who INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM customer WHERE id = who;
END $$;
CREATE PROCEDURE rename(old INTEGER, new INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE customer SET id = new WHERE id = old;
END $$;
CREATE PROCEDURE cancel(number INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sale WHERE id = number;
END $$;
";

/// Rows that refer to nothing.
const ORPHANS: [&str; 4] = [
    "SELECT count(*) FROM sale WHERE customer IS NULL
        OR NOT EXISTS (SELECT 1 FROM customer WHERE customer.id = sale.customer)",
    "SELECT count(*) FROM line WHERE NOT EXISTS (SELECT 1 FROM sale WHERE sale.id = line.sale)",
    "SELECT count(*) FROM line WHERE part_of IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM line AS other WHERE other.id = line.part_of)",
    "SELECT count(*) FROM note WHERE line IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM line WHERE line.id = note.line)",
];

fn rows(database: &Database, query: &str) -> Vec<String> {
    let result = database.query(query, ()).expect("the query runs");
    let csv = result.to_csv();
    csv.lines().skip(1).map(str::to_owned).collect()
}

/// Calls that create and remove what others are about to refer to.
fn work(database: &Database, worker: i32) {
    // A small generator is enough: the calls differ, and each worker has its own.
    let mut state = u32::try_from(worker).unwrap_or_default() * 7919 + 1;
    let mut below = |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i32::try_from((state >> 8) % limit).unwrap_or_default()
    };
    for turn in 0..60 {
        let (who, number) = (below(4), worker * 1_000 + turn);
        let reply = match below(6) {
            0 => database.call("leave", (who,)),
            1 => database.call("rename", (who, below(4))),
            2 => database.call("cancel", (below(3) * 1_000 + below(60),)),
            3 => {
                let sale = below(3) * 1_000 + below(60);
                database.call("add_line", (100_000 + number, sale, 2 * sale))
            }
            _ => database.call("order_it", (number, who)),
        };
        reply.expect("a call ends");
    }
}

#[test]
fn no_orphan_is_left_beside_cascades() {
    for protocol in Configuration::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("a database opens");
        database.execute(SCHEMA).expect("the schema is sound");
        thread::scope(|scope| {
            let workers: Vec<_> = (0..3)
                .map(|worker| {
                    let database = &database;
                    scope.spawn(move || work(database, worker))
                })
                .collect();
            for worker in workers {
                worker.join().expect("no panic");
            }
        });
        for orphans in ORPHANS {
            assert_eq!(rows(&database, orphans), ["0"], "{protocol}: {orphans}");
        }
        let ordered = rows(&database, "SELECT count(*) FROM note");
        assert_ne!(ordered, ["0"], "{protocol}: no order was ever made");
        for who in 0..4 {
            let reply = database.call("leave", (who,)).expect("a call ends");
            assert!(reply.is_committed(), "{protocol}");
        }
        for table in ["customer", "sale", "line"] {
            let left = rows(&database, &format!("SELECT count(*) FROM {table}"));
            assert_eq!(left, ["0"], "{protocol}: {table}");
        }
        assert_eq!(
            rows(
                &database,
                "SELECT count(*) FROM note WHERE line IS NOT NULL"
            ),
            ["0"],
            "{protocol}"
        );
    }
}

#[test]
fn rows_in_a_circle_come_to_an_end_under_every_protocol() {
    for protocol in Configuration::serializable() {
        let options = Options::new().workers(1).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("a database opens");
        database
            .execute(
                "CREATE TABLE node (id INTEGER PRIMARY KEY, up INTEGER REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE);
                 CREATE INDEX node_up ON node (up);
                 INSERT INTO node VALUES (1, 3), (2, 1), (3, 2), (4, 3), (5, 5), (6, NULL);
                 CREATE PROCEDURE remove(which INTEGER) LANGUAGE plpgsql AS $$
                 BEGIN DELETE FROM node WHERE id = which; END $$;
                 CREATE PROCEDURE rename(old INTEGER, new INTEGER) LANGUAGE plpgsql AS $$
                 BEGIN UPDATE node SET id = new WHERE id = old; END $$;",
            )
            .expect("the schema is sound");
        for (old, new) in [(2, 20), (5, 50)] {
            let reply = database.call("rename", (old, new)).expect("a call ends");
            assert!(reply.is_committed(), "{protocol}: {old}");
        }
        let nodes = "SELECT id, up FROM node ORDER BY id";
        assert_eq!(
            rows(&database, nodes),
            ["1,3", "3,20", "4,3", "6,", "20,1", "50,50"],
            "{protocol}"
        );
        for which in [50, 20] {
            let reply = database.call("remove", (which,)).expect("a call ends");
            assert!(reply.is_committed(), "{protocol}: {which}");
        }
        assert_eq!(rows(&database, nodes), ["6,"], "{protocol}");
    }
}

#[test]
fn actions_are_found_again_in_a_data_directory() {
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
                "CREATE TABLE p (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
                 CREATE TABLE c (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER,
                     FOREIGN KEY (a, b) REFERENCES p MATCH FULL ON DELETE CASCADE ON UPDATE RESTRICT);
                 CREATE TABLE d (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER,
                     FOREIGN KEY (a, b) REFERENCES p ON DELETE SET NULL (b) ON UPDATE SET DEFAULT);
                 INSERT INTO p VALUES (1, 1), (1, 2), (2, 1);
                 INSERT INTO c VALUES (1, 1, 1), (2, 2, 1);
                 INSERT INTO d VALUES (1, 1, 1), (2, 1, 2);
                 DELETE FROM p WHERE a = 1 AND b = 1;",
            )
            .expect("the script runs");
        let written = database.engine().written_catalog();
        written.expect("it can be written").to_string()
    };
    for action in [
        "full",
        "on-delete cascade on-update restrict",
        "on-delete set-null on-update set-default setting",
    ] {
        assert!(before.contains(action), "{action} is not in {before}");
    }
    // The first opening redoes the statements, the second reads the catalog of a checkpoint.
    for turn in 0..2 {
        let database = open();
        let written = database.engine().written_catalog();
        let written = written.expect("it can be written").to_string();
        assert_eq!(written, before, "opening {turn}");
        assert_eq!(rows(&database, "SELECT * FROM c"), ["2,2,1"]);
        let d = rows(&database, "SELECT * FROM d ORDER BY id");
        assert_eq!(d, ["1,1,", "2,1,2"]);
        let refused = database.execute("UPDATE p SET b = 7 WHERE a = 2");
        let refused = refused.expect_err("RESTRICT forbids it");
        assert_eq!(refused.state(), SqlState::FOREIGN_KEY_VIOLATION);
        if turn == 0 {
            database.engine().checkpoint().expect("the disk works");
        }
    }
}

#[test]
fn explain_shows_what_follows_from_a_delete() {
    let database = Database::open(Options::new().workers(1)).expect("a database opens");
    database.execute(SCHEMA).expect("the schema is sound");
    let catalog = database.engine().catalog();
    let leave = catalog.procedure("leave").expect("it was created");
    let text = explain::text(leave.program());
    for table in ["customer", "sale", "line", "note"] {
        assert!(text.contains(table), "{table} is not in\n{text}");
    }
    let order = catalog.procedure("order_it").expect("it was created");
    let text = explain::text(order.program());
    assert!(!text.contains("delete"), "an insert deletes in\n{text}");
}

#[test]
fn a_long_chain_ends_when_its_time_is_over() {
    let database = Database::open(Options::new().workers(1)).expect("a database opens");
    database
        .execute(
            "CREATE TABLE node (id INTEGER PRIMARY KEY, up INTEGER REFERENCES node ON DELETE CASCADE);
             CREATE INDEX node_up ON node (up);
             INSERT INTO node SELECT i, i - 1 FROM generate_series(1, 1) i WHERE false;
             INSERT INTO node VALUES (0, NULL);
             INSERT INTO node SELECT i, i - 1 FROM generate_series(1, 50000) i;",
        )
        .expect("the script runs");
    let mut session = database.session().expect("a session is free");
    session
        .execute("SET statement_timeout = '1ms'")
        .expect("it is a setting");
    let late = session.execute("DELETE FROM node WHERE id = 0");
    let late = late.expect_err("a millisecond is too short");
    assert_eq!(late.state(), SqlState::QUERY_CANCELED);
    session
        .execute("SET statement_timeout = 0")
        .expect("it is a setting");
    session
        .execute("DELETE FROM node WHERE id = 0")
        .expect("there is time");
    assert_eq!(rows(&database, "SELECT count(*) FROM node"), ["0"]);
}
