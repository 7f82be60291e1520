//! Savepoints: what is done after one is undone, and what was done before it is kept, under every
//! protocol.

#![cfg(not(kiln_sim))]

use std::collections::BTreeMap;

use kiln_platform::random::Random;
use kiln_sql::{Database, Options, Protocol, Session};

fn open(options: Options) -> Database {
    let database = Database::open(options.workers(1).pin_workers(false));
    let database = database.expect("there is memory");
    let script = "CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER CHECK (stock >= 0));
        INSERT INTO item SELECT i, 10 FROM generate_series(1, 8) AS i";
    database.execute(script).expect("it is SQL");
    database
}

/// The tag of the last statement, or the state of its error.
fn run(session: &mut Session, text: &str) -> String {
    match session.execute(text) {
        Ok(results) => results.last().map_or(String::new(), |it| it.tag.clone()),
        Err(error) => error.state().to_string(),
    }
}

/// The only value of a query.
fn value(session: &mut Session, text: &str) -> String {
    let found = session.query(text, ()).expect("it is a query");
    found.rows[0][0].to_string()
}

/// Runs statements one after the other, each with what comes of it.
fn script(session: &mut Session, steps: &[(&str, &str)]) {
    for (text, expected) in steps {
        assert_eq!(run(session, text), *expected, "{text}");
    }
}

/// The stock of the first three items.
fn stock(session: &mut Session) -> Vec<i32> {
    let found = session.query("SELECT stock FROM item WHERE id <= 3 ORDER BY id", ());
    let rows = found.and_then(kiln_sql::ResultSet::into_rows::<(i32,)>);
    let rows = rows.expect("they are numbers");
    rows.into_iter().map(|(stock,)| stock).collect()
}

#[test]
fn what_comes_after_a_savepoint_is_undone_and_errors_with_it() {
    for protocol in Protocol::serializable() {
        let database = open(Options::new().protocol(protocol));
        let mut session = database.session().expect("there is room");
        script(
            &mut session,
            &[
                ("BEGIN", "BEGIN"),
                ("UPDATE item SET stock = 1 WHERE id = 1", "UPDATE 1"),
                ("SAVEPOINT a", "SAVEPOINT"),
                ("UPDATE item SET stock = 2 WHERE id = 2", "UPDATE 1"),
                ("SAVEPOINT b", "SAVEPOINT"),
                ("UPDATE item SET stock = 3 WHERE id = 3", "UPDATE 1"),
                ("INSERT INTO item VALUES (1, 1)", "23505"),
                ("SELECT 1", "25P02"),
                ("SAVEPOINT c", "25P02"),
                ("ROLLBACK TO b", "ROLLBACK"),
            ],
        );
        assert_eq!(stock(&mut session), [1, 2, 10], "{protocol}");
        script(
            &mut session,
            &[
                ("UPDATE item SET stock = -1 WHERE id = 3", "23514"),
                ("ROLLBACK TO SAVEPOINT b", "ROLLBACK"),
                ("INSERT INTO item VALUES (9, 9)", "INSERT 0 1"),
                ("RELEASE b", "RELEASE"),
                ("ROLLBACK WORK TO b", "3B001"),
                ("ROLLBACK TRANSACTION TO SAVEPOINT a", "ROLLBACK"),
                ("DELETE FROM item WHERE id = 8", "DELETE 1"),
                ("RELEASE SAVEPOINT a", "RELEASE"),
                ("COMMIT", "COMMIT"),
            ],
        );
        assert_eq!(stock(&mut session), [1, 10, 10], "{protocol}");
        assert_eq!(value(&mut session, "SELECT count(*) FROM item"), "7");
        // A block whose first statement comes after the savepoint, and one that fails for good.
        script(
            &mut session,
            &[
                ("BEGIN", "BEGIN"),
                ("SAVEPOINT a", "SAVEPOINT"),
                ("SELECT 1 / 0", "22012"),
                ("ROLLBACK TO a", "ROLLBACK"),
                ("UPDATE item SET stock = 5 WHERE id = 1", "UPDATE 1"),
                ("SELECT 1 / 0", "22012"),
                ("RELEASE a", "25P02"),
                ("COMMIT", "ROLLBACK"),
            ],
        );
        assert_eq!(stock(&mut session), [1, 10, 10], "{protocol}");
    }
}

#[test]
fn settings_and_cursors_are_as_they_were() {
    let database = open(Options::new());
    let mut session = database.session().expect("there is room");
    script(
        &mut session,
        &[
            ("BEGIN", "BEGIN"),
            ("SET application_name = 'one'", "SET"),
            (
                "DECLARE c CURSOR FOR SELECT id FROM item ORDER BY id",
                "DECLARE CURSOR",
            ),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("SET LOCAL application_name = 'two'", "SET"),
            ("SET statement_timeout = 5", "SET"),
            ("DECLARE d CURSOR FOR SELECT 1", "DECLARE CURSOR"),
            ("FETCH 2 FROM c", "FETCH 2"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("FETCH d", "34000"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("FETCH 2 FROM c", "FETCH 2"),
            ("SAVEPOINT b", "SAVEPOINT"),
            ("DECLARE e CURSOR FOR SELECT 1", "DECLARE CURSOR"),
            ("RELEASE b", "RELEASE"),
            ("FETCH e", "FETCH 1"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("FETCH e", "34000"),
            ("ROLLBACK TO a", "ROLLBACK"),
        ],
    );
    assert_eq!(value(&mut session, "SHOW application_name"), "one");
    assert_eq!(value(&mut session, "SHOW statement_timeout"), "0");
    assert_eq!(run(&mut session, "COMMIT"), "COMMIT");
    assert_eq!(value(&mut session, "SHOW application_name"), "one");
    for text in ["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"] {
        assert_eq!(run(&mut session, text), "25P01", "{text}");
    }
}

/// What others have changed meanwhile does not matter unless the client has seen it.
#[test]
fn a_roll_back_tells_a_client_when_what_it_has_seen_is_no_longer_true() {
    let database = open(Options::new());
    let [mut one, mut other] = [(); 2].map(|()| database.session().expect("there is room"));
    for (seen, comes) in [
        ("UPDATE item SET stock = stock - 1 WHERE id = 1", "ROLLBACK"),
        ("SELECT stock FROM item WHERE id = 1", "40001"),
    ] {
        for failing in [false, true] {
            run(&mut one, "BEGIN");
            run(&mut one, seen);
            run(&mut one, "SAVEPOINT a");
            if failing {
                run(&mut one, "SELECT 1 / 0");
            }
            let changed = run(&mut other, "UPDATE item SET stock = stock - 1 WHERE id = 1");
            assert_eq!(changed, "UPDATE 1");
            assert_eq!(run(&mut one, "ROLLBACK TO a"), comes, "{seen}");
            let ends = if comes == "ROLLBACK" {
                "COMMIT"
            } else {
                "ROLLBACK"
            };
            assert_eq!(run(&mut one, "COMMIT"), ends);
        }
    }
    assert_eq!(value(&mut one, "SELECT stock FROM item WHERE id = 1"), "4");
}

#[test]
fn a_block_that_is_too_long_to_be_kept_cannot_go_back() {
    let database = open(Options::new());
    let mut session = database.session().expect("there is room");
    run(&mut session, "BEGIN");
    run(&mut session, "SAVEPOINT first");
    run(&mut session, "UPDATE item SET stock = 3 WHERE id = 2");
    run(&mut session, "SAVEPOINT a");
    let update = session.parse("UPDATE item SET stock = stock + 1 WHERE id = 1", &[]);
    let update = update.expect("it is SQL");
    for _ in 0..10_001 {
        let mut portal = session.bind(&update, &[]).expect("it has no parameters");
        session.execute_portal(&mut portal, 0).expect("it is alone");
    }
    run(&mut session, "SAVEPOINT late");
    for name in ["late", "a"] {
        assert_eq!(run(&mut session, &format!("ROLLBACK TO {name}")), "0A000");
    }
    // Before the first statement there is nothing to be run again.
    assert_eq!(run(&mut session, "ROLLBACK TO first"), "ROLLBACK");
    assert_eq!(
        run(&mut session, "UPDATE item SET stock = 4 WHERE id = 3"),
        "UPDATE 1"
    );
    assert_eq!(run(&mut session, "COMMIT"), "COMMIT");
    assert_eq!(stock(&mut session), [10, 10, 4]);
    assert_eq!(
        value(&mut session, "SELECT stock FROM item WHERE id = 1"),
        "10"
    );
    run(&mut session, "BEGIN");
    for _ in 0..10_000 {
        run(&mut session, "SAVEPOINT a");
    }
    assert_eq!(run(&mut session, "SAVEPOINT a"), "54000");
}

/// Random blocks against a model that copies all rows at each savepoint.
#[test]
fn random_blocks_end_as_a_model_says() {
    type Rows = BTreeMap<i64, i64>;
    for protocol in Protocol::serializable() {
        let mut random = Random::from_seed(7);
        let mut below = |bound: usize| random.below(bound);
        let database = open(Options::new().protocol(protocol));
        let mut session = database.session().expect("there is room");
        let mut rows: Rows = (1..=8).map(|id| (id, 10)).collect();
        for _ in 0..40 {
            run(&mut session, "BEGIN");
            let (mut now, mut saved, mut has_failed) = (rows.clone(), Vec::<Rows>::new(), false);
            for _ in 0..12 {
                let id = below(10) as i64;
                let (text, expected) = match below(8) {
                    0 => {
                        let name = format!("s{}", saved.len());
                        if !has_failed {
                            saved.push(now.clone());
                        }
                        (format!("SAVEPOINT {name}"), "SAVEPOINT")
                    }
                    1 if !saved.is_empty() => {
                        let at = below(saved.len());
                        saved.truncate(at + 1);
                        now.clone_from(&saved[at]);
                        has_failed = false;
                        (format!("ROLLBACK TO s{at}"), "ROLLBACK")
                    }
                    2 if !saved.is_empty() => {
                        let at = below(saved.len());
                        if !has_failed {
                            saved.truncate(at);
                        }
                        (format!("RELEASE s{at}"), "RELEASE")
                    }
                    3 => {
                        let is_new = !has_failed && !now.contains_key(&id);
                        if is_new {
                            now.insert(id, 1);
                        }
                        has_failed |= !is_new;
                        let expected = if is_new { "INSERT 0 1" } else { "" };
                        (format!("INSERT INTO item VALUES ({id}, 1)"), expected)
                    }
                    4 => {
                        let count = usize::from(!has_failed && now.remove(&id).is_some());
                        let expected = ["DELETE 0", "DELETE 1"][count];
                        (format!("DELETE FROM item WHERE id = {id}"), expected)
                    }
                    _ => {
                        let count = usize::from(!has_failed && now.contains_key(&id));
                        if !has_failed {
                            now.entry(id).and_modify(|stock| *stock += 3);
                        }
                        let expected = ["UPDATE 0", "UPDATE 1"][count];
                        let text = format!("UPDATE item SET stock = stock + 3 WHERE id = {id}");
                        (text, expected)
                    }
                };
                let ended = run(&mut session, &text);
                let is_error = has_failed;
                assert!(
                    ended == expected || is_error && ["23505", "25P02"].contains(&ended.as_str()),
                    "{protocol}: {text}: {ended}, and not {expected}"
                );
            }
            if run(&mut session, "COMMIT") == "COMMIT" {
                assert!(!has_failed);
                rows = now;
            }
            let found = session.query("SELECT id::bigint, stock::bigint FROM item", ());
            let found = found.and_then(kiln_sql::ResultSet::into_rows);
            let found: Vec<(i64, i64)> = found.expect("they are numbers");
            assert_eq!(found.into_iter().collect::<Rows>(), rows, "{protocol}");
        }
    }
}
