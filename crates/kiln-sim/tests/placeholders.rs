//! Two transactions insert the same key under `silo` without early aborts: the second shares the
//! record that the first has put into the indexes, and the order is forced at the protocol's phase
//! boundaries.

#![cfg(kiln_sim)]

use kiln_engine::factors::Use;
use kiln_engine::{Arguments, BasisFactors, Outcome, Protocol};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::thread;
use kiln_sql::{Database, Options};
use kiln_storage::error::SqlState;
use kiln_storage::types::Value;

/// Lets the threads t1 and t2 insert item 1 with the codes 1 and 2, in the order that the script
/// says. Returns who has committed, and the items as each index has them.
fn insert_twice(script: &[(&str, &'static str)]) -> ([bool; 2], [Vec<String>; 2]) {
    let mut config = Config::new(Schedule::Random, 1);
    let steps = script.iter();
    config.script = steps
        .map(|(thread, point)| ((*thread).to_owned(), *point))
        .collect();
    let body = || {
        let database = sim::quiet(|| {
            let mut factors = BasisFactors::default();
            factors.protocols.early_aborts = Use::Off;
            let options = Options::new().workers(1).protocol(Protocol::Silo);
            let database = Database::open(options.basis_factors(factors)).expect("a database");
            let script = "CREATE TABLE item (id INTEGER PRIMARY KEY, code INTEGER NOT NULL UNIQUE);
                 CREATE PROCEDURE add(code INTEGER) LANGUAGE plpgsql AS $$
                 BEGIN
                     INSERT INTO item VALUES (1, code);
                 END
                 $$;";
            database.execute(script).expect("valid statements");
            database
        });
        let add = |name: &str, code: i32| {
            let engine = database.engine().clone();
            let body = move || {
                let procedure = engine.procedure("add").expect("the procedure");
                let mut driver = engine.driver(0).expect("a worker slot");
                let mut arguments = Arguments::from_values(&[Value::Integer(code)]);
                match driver.call(&procedure, &mut arguments) {
                    Outcome::Committed => true,
                    Outcome::Rejected(error) => {
                        assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
                        false
                    }
                    Outcome::Expired => panic!("no call has a limit"),
                }
            };
            thread::spawn(name, body).expect("a thread")
        };
        let committed = [add("t1", 1), add("t2", 2)].map(|thread| thread.join().expect("no panic"));
        let items = sim::quiet(|| {
            ["id = 1", "code >= 1"].map(|condition| {
                let query = format!("SELECT id, code FROM item WHERE {condition}");
                let result = database.query(&query, ()).expect("a result");
                let rows = result.rows.iter();
                rows.map(|row| format!("{} {}", row[0], row[1])).collect()
            })
        });
        (committed, items)
    };
    sim::run(&config, body).expect("the run ends").value
}

/// The first has offered its record, and the second commits its row there at once.
#[test]
fn a_row_committed_in_a_placeholder_stays_when_its_owner_fails() {
    let script = [("t1", "silo.offered"), ("t2", "silo.installed")];
    let (committed, items) = insert_twice(&script);
    assert_eq!(committed, [false, true]);
    assert_eq!(items, [["1 2"], ["1 2"]]);
}

/// The second shares the record, and its owner commits first.
#[test]
fn an_owner_that_commits_first_has_its_row() {
    let script = [
        ("t1", "silo.offered"),
        ("t2", "silo.executed"),
        ("t1", "silo.installed"),
    ];
    let (committed, items) = insert_twice(&script);
    assert_eq!(committed, [true, false]);
    assert_eq!(items, [["1 1"], ["1 1"]]);
}
