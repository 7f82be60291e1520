//! Blocks that meet conflicts are run again, and their clients notice nothing unless what they have
//! seen is no longer true.

#![cfg(not(kiln_sim))]

use kiln_platform::random::Random;
use kiln_platform::thread;
use kiln_sql::{Database, Options, Protocol, Session};

fn open(options: Options) -> Database {
    let database = Database::open(options.workers(1).pin_workers(false));
    let database = database.expect("there is memory");
    let script = "CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER CHECK (stock >= 0));
        INSERT INTO item SELECT i, 10 FROM generate_series(1, 8) AS i;
        CREATE PROCEDURE take(i INTEGER) LANGUAGE plpgsql AS $$
            BEGIN UPDATE item SET stock = stock - 1 WHERE id = i; END $$;
        CREATE PROCEDURE restock(i INTEGER, n INTEGER, OUT rest INTEGER) LANGUAGE plpgsql AS $$
            BEGIN UPDATE item SET stock = n WHERE id = i RETURNING stock INTO rest; END $$";
    database.execute(script).expect("it is SQL");
    database
}

/// The tag of the last statement, or the state and the detail of its error.
fn run(session: &mut Session, text: &str) -> String {
    match session.execute(text) {
        Ok(results) => results.last().map_or(String::new(), |it| it.tag.clone()),
        Err(error) => format!("{} {}", error.state(), error.detail().unwrap_or_default()),
    }
}

fn stock(session: &mut Session, id: i32) -> i32 {
    let found = session.query(&format!("SELECT stock FROM item WHERE id = {id}"), ());
    let found = found.expect("it is there").into_one::<(i32,)>();
    found.expect("it is a number").0
}

#[test]
fn a_block_goes_on_when_all_that_its_client_has_seen_is_still_true() {
    let database = open(Options::new());
    let [mut one, mut other] = [(); 2].map(|()| database.session().expect("there is room"));
    for first in [
        "UPDATE item SET stock = stock - 1 WHERE id = 1",
        "CALL take(1)",
        "DO $$ BEGIN UPDATE item SET stock = stock - 1 WHERE id = 1; END $$",
        "CALL restock(1, (SELECT 3), NULL)",
        "SELECT count(*) FROM item WHERE id = 1 AND stock > 0",
        "UPDATE item SET stock = stock - 1 WHERE id = 1; SELECT now() - now()",
    ] {
        let before = stock(&mut other, 1);
        run(&mut one, "BEGIN");
        let tag = run(&mut one, first);
        assert!(
            !tag.contains(' ') || tag.starts_with("UPDATE") || tag.starts_with("SELECT"),
            "{tag}"
        );
        assert_eq!(
            run(&mut other, "UPDATE item SET stock = stock - 1 WHERE id = 1"),
            "UPDATE 1"
        );
        assert_eq!(
            run(&mut one, "UPDATE item SET stock = stock + 5 WHERE id = 2"),
            "UPDATE 1"
        );
        assert_eq!(run(&mut one, "COMMIT"), "COMMIT", "{first}");
        let expected = match first {
            _ if first.contains("restock") => 3,
            _ if first.contains("count") => before - 1,
            _ => before - 2,
        };
        assert_eq!(stock(&mut other, 1), expected, "{first}");
    }
    let replays = database.engine().replays();
    assert!(replays.replays >= 5, "{replays:?}");
    assert_eq!(replays.differing, 0);
}

#[test]
fn a_client_is_told_when_what_it_has_seen_is_no_longer_true() {
    let database = open(Options::new());
    let [mut one, mut other] = [(); 2].map(|()| database.session().expect("there is room"));
    let replaced = "was run again: it gave another result.";
    for (seen, between, detail) in [
        (
            "UPDATE item SET stock = stock - 1 WHERE id = 1 RETURNING stock",
            "UPDATE item SET stock = stock - 1 WHERE id = 1",
            replaced,
        ),
        (
            "SELECT stock FROM item WHERE id = 1",
            "UPDATE item SET stock = stock - 1 WHERE id = 1",
            replaced,
        ),
        (
            "SELECT id FROM item WHERE stock > 100",
            "UPDATE item SET stock = 200 WHERE id = 7",
            replaced,
        ),
        (
            "UPDATE item SET stock = stock - 1 WHERE id = 5",
            "DELETE FROM item WHERE id = 5",
            replaced,
        ),
        (
            "UPDATE item SET stock = stock - 6 WHERE id = 6",
            "UPDATE item SET stock = stock - 6 WHERE id = 6",
            "was run again: it failed: new row for relation \"item\" violates check constraint",
        ),
        (
            "DO $$ DECLARE n INTEGER; BEGIN SELECT stock INTO n FROM item WHERE id = 4; RAISE NOTICE '%', n; END $$",
            "UPDATE item SET stock = stock - 6 WHERE id = 4",
            replaced,
        ),
        (
            "CALL restock(3, (SELECT stock FROM item WHERE id = 3), NULL)",
            "UPDATE item SET stock = stock - 6 WHERE id = 3",
            replaced,
        ),
    ] {
        run(&mut one, "BEGIN");
        run(&mut one, seen);
        run(&mut other, between);
        run(&mut one, "UPDATE item SET stock = stock + 1 WHERE id = 2");
        let answer = run(&mut one, "COMMIT");
        assert!(
            answer.starts_with("40001 Statement 1 of the block ("),
            "{seen}: {answer}"
        );
        assert!(answer.contains(detail), "{seen}: {answer}");
        assert!(!one.in_transaction());
    }
    // Nothing of these blocks is there.
    assert_eq!(stock(&mut other, 2), 10);
    assert_eq!(database.engine().replays().differing, 7);
}

#[test]
fn a_replay_can_be_turned_off_and_is_bounded() {
    let database = open(Options::new());
    let [mut one, mut other] = [(); 2].map(|()| database.session().expect("there is room"));
    let conflict = |one: &mut Session, other: &mut Session, more: &str| {
        run(one, "BEGIN; UPDATE item SET stock = stock + 1 WHERE id = 1");
        run(one, more);
        run(other, "UPDATE item SET stock = stock + 1 WHERE id = 1");
        run(one, "COMMIT")
    };
    assert_eq!(conflict(&mut one, &mut other, ""), "COMMIT");
    let long = format!("SELECT '{}'", "x".repeat(2 << 20));
    assert_eq!(
        conflict(&mut one, &mut other, &long),
        "COMMIT",
        "a text is no argument"
    );
    one.set_replay(false);
    assert!(conflict(&mut one, &mut other, "").starts_with("40001 The conflict was found as"));
    one.set_replay(true);
    assert_eq!(conflict(&mut one, &mut other, ""), "COMMIT");
    let wide = "x".repeat(600 << 10);
    run(
        &mut one,
        "BEGIN; UPDATE item SET stock = stock + 1 WHERE id = 1",
    );
    for _ in 0..2 {
        let length = one.query("SELECT length($1::text)", (wide.as_str(),));
        assert!(length.is_ok());
    }
    run(&mut other, "UPDATE item SET stock = stock + 1 WHERE id = 1");
    assert!(run(&mut one, "COMMIT").starts_with("40001 The conflict"));
    // A statement's time holds for its replays as well.
    run(&mut one, "SET statement_timeout = '1h'");
    assert_eq!(conflict(&mut one, &mut other, ""), "COMMIT");
}

/// Blocks that change rows in any order, under each protocol: none of them is told to try again,
/// and none is lost.
#[test]
fn blocks_that_show_nothing_never_have_to_be_tried_again() {
    const THREADS: usize = 4;
    const BLOCKS: usize = 30;
    let seed = 1;
    println!("seed {seed}");
    for protocol in Protocol::ALL {
        if !protocol.is_serializable() {
            continue;
        }
        let database = open(Options::new().protocol(protocol));
        thread::scope(|scope| {
            for number in 0..THREADS {
                let database = &database;
                scope.spawn(move || {
                    let mut random = Random::stream(seed, number as u64);
                    let mut session = database.session().expect("there is room");
                    for _ in 0..BLOCKS {
                        run(&mut session, "BEGIN");
                        for _ in 0..3 {
                            let id = 1 + random.below(4);
                            let text = format!("UPDATE item SET stock = stock + 1 WHERE id = {id}");
                            assert_eq!(run(&mut session, &text), "UPDATE 1", "{protocol}");
                        }
                        assert_eq!(run(&mut session, "COMMIT"), "COMMIT", "{protocol}");
                    }
                });
            }
        });
        let sum = database.query("SELECT sum(stock) FROM item", ());
        let (sum,) = sum
            .expect("it runs")
            .into_one::<(i64,)>()
            .expect("it is a number");
        assert_eq!(sum, 80 + 3 * (THREADS * BLOCKS) as i64, "{protocol}");
        println!("{protocol}: {:?}", database.engine().replays());
    }
}
