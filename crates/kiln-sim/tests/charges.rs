//! What a virtual core computes is charged wherever it is computed.

#![cfg(kiln_sim)]

use kiln_engine::{Arguments, Configuration, Outcome};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::time;
use kiln_procedure::AbortCause;
use kiln_sql::{Database, Options};

/// Calls of a procedure that computes for long what it adds to a counter.
const CALLS: u64 = 200;
/// Additions of one call.
const ADDITIONS: usize = 60;

/// The virtual nanoseconds that one core takes for the calls.
fn takes_ns(configuration: &str) -> u64 {
    let configuration: Configuration = configuration.parse().expect("a configuration");
    let mut config = Config::new(Schedule::LeastTime, 1);
    config.cores = 1;
    let body = || {
        let database = sim::quiet(|| {
            let options = Options::new().workers(1).protocol(configuration);
            let database = Database::open(options).expect("a database");
            let sum = "value".to_owned() + &" + amount".repeat(ADDITIONS);
            let script = format!(
                "CREATE TABLE counter (id INTEGER PRIMARY KEY, value BIGINT NOT NULL);
                 INSERT INTO counter VALUES (1, 0);
                 CREATE PROCEDURE add(amount BIGINT) LANGUAGE plpgsql AS $$
                 BEGIN
                     UPDATE counter SET value = {sum} WHERE id = 1;
                 END
                 $$;"
            );
            database.execute(&script).expect("valid statements");
            database
        });
        let procedure = database.engine().procedure("add").expect("the procedure");
        let mut driver = database.engine().driver(0).expect("a worker slot");
        let began = time::now_ns();
        for _ in 0..CALLS {
            let mut arguments = Arguments::new();
            arguments.push_i64(1);
            let outcome = driver.call(&procedure, &mut arguments);
            assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
        }
        let ended = time::now_ns();
        assert_eq!(driver.statistics().aborts, [0; AbortCause::ALL.len()]);
        ended - began
    };
    sim::run(&config, body).expect("the run ends").value
}

/// Each addition is a step, in the procedure or in the program that the commit runs.
#[test]
fn an_update_takes_as_long_at_commit_as_at_once() {
    let mut cheaper = Vec::new();
    for (plain, deferring) in [
        ("silo", "silo+cu"),
        ("occ", "occ+cu"),
        ("tictoc", "tictoc+cu"),
        ("mvcc", "mvcc+cu"),
        ("healing", "healing+cu"),
        ("strife", "strife+cu"),
    ] {
        let (at_once, at_commit) = (takes_ns(plain), takes_ns(deferring));
        if at_commit * 10 <= at_once * 9 {
            cheaper.push(format!(
                "{plain} takes {at_once} ns, {deferring} {at_commit} ns"
            ));
        }
    }
    assert!(cheaper.is_empty(), "{cheaper:#?}");
}
