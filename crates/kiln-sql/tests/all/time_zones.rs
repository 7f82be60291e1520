//! Sessions in several time zones: they share compiled statements, and what they have stored stays.

#![cfg(not(kiln_sim))]

use crate::commands::options;
use crate::files::temporary;
use kiln_sql::{Database, Logging, Options, Protocol, Session};

const ZONES: [(&str, &str); 3] = [
    ("Europe/Berlin", "2024-07-01 14:00:00+02"),
    ("Asia/Kolkata", "2024-07-01 17:30:00+05:30"),
    ("UTC", "2024-07-01 12:00:00+00"),
];

fn session_in(database: &Database, zone: &str) -> Session {
    let mut session = database.session().expect("a session opens");
    let set = format!("SET timezone = '{zone}'");
    session.execute(&set).expect("it is a zone");
    session
}

fn text(session: &mut Session, query: &str) -> String {
    let found = session.query(query, ()).expect("the query runs");
    let csv = found.to_csv();
    csv.lines().skip(1).collect::<Vec<_>>().join("\n")
}

#[test]
fn sessions_of_several_zones_share_statements() {
    let database = Database::open(Options::new().workers(1)).expect("it opens");
    let query = "SELECT TIMESTAMPTZ '2024-07-01 12:00+00'::text";
    let function = "CREATE FUNCTION shown() RETURNS TEXT LANGUAGE sql AS \
         $$ SELECT TIMESTAMPTZ '2024-07-01 12:00+00'::text $$";
    database.execute(function).expect("it is made");
    let mut sessions = ZONES.map(|(zone, _)| session_in(&database, zone));
    for _ in 0..2 {
        for (session, (zone, shown)) in sessions.iter_mut().zip(ZONES) {
            assert_eq!(text(session, query), shown, "in {zone}");
            assert_eq!(text(session, "SELECT shown()"), shown, "in {zone}");
        }
    }
    // One session in one zone after the other, and back by the end of its block.
    let [session, ..] = &mut sessions;
    session
        .execute("BEGIN; SET LOCAL timezone = 'Asia/Kolkata'")
        .expect("it is set");
    assert_eq!(text(session, query), ZONES[1].1);
    session.execute("ROLLBACK").expect("it ends");
    assert_eq!(text(session, query), ZONES[0].1);
}

#[test]
fn what_a_call_has_stored_in_its_zone_is_there_after_a_restart() {
    let commands = Protocol::ALL.into_iter();
    let commands = commands.filter(|protocol| protocol.logs_commands()).take(3);
    let commands = commands.map(|protocol| (protocol, Logging::Commands));
    for (protocol, logging) in commands.chain([(Protocol::default(), Logging::Values)]) {
        let directory = temporary();
        let options = options(&directory, protocol, logging);
        let query = "SELECT zone || ' ' || written || ' ' || day FROM stored ORDER BY zone";
        let before = {
            let database = Database::open(options.clone()).expect("it opens");
            database
                .execute(
                    "CREATE TABLE stored (zone TEXT PRIMARY KEY, written TEXT, day DATE);
                     CREATE PROCEDURE store(zone TEXT, at TIMESTAMPTZ) LANGUAGE plpgsql AS $$
                     BEGIN INSERT INTO stored VALUES (zone, at::text, at); END $$",
                )
                .expect("they are made");
            for (zone, _) in ZONES {
                let mut session = session_in(&database, zone);
                let call = format!("CALL store('{zone}', '2024-07-01 20:00+00')");
                session.execute(&call).expect("it stores");
            }
            text(&mut session_in(&database, "UTC"), query)
        };
        assert!(
            before.contains("Asia/Kolkata 2024-07-02 01:30:00+05:30 2024-07-02"),
            "{before}"
        );
        let database = Database::open(options).expect("it is recovered");
        let after = text(&mut session_in(&database, "America/New_York"), query);
        assert_eq!(after, before, "under {protocol}");
    }
}

/// An index over digits keeps those of the default style. No query goes by it, whose session may want
/// others, so that all answers are right.
#[test]
fn an_index_over_digits_answers_for_every_style() {
    let database = Database::open(Options::new().workers(1)).expect("a database opens");
    database
        .execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, f DOUBLE PRECISION);
             CREATE INDEX digits ON t ((f::text));
             INSERT INTO t VALUES (1, 0.1), (2, 0.30000000000000004)",
        )
        .expect("the schema is sound");
    let mut session = session_in(&database, "UTC");
    let find = |digits: &str| format!("SELECT count(*) FROM t WHERE f::text = '{digits}'");
    let count = |session: &mut Session, digits: &str| text(session, &find(digits));
    let uses_index = |session: &mut Session| {
        let plan = text(session, &format!("EXPLAIN (FORMAT JSON) {}", find("0.1")));
        plan.contains("digits")
    };
    assert!(!uses_index(&mut session));
    for (setting, whole, cut) in [(1, "1", "0"), (0, "0", "1"), (-3, "0", "1"), (1, "1", "0")] {
        let set = format!("SET extra_float_digits = {setting}");
        session.execute(&set).expect("it is a setting");
        assert_eq!(
            count(&mut session, "0.30000000000000004"),
            whole,
            "{setting}"
        );
        assert_eq!(count(&mut session, "0.3"), cut, "{setting}");
        assert_eq!(count(&mut session, "0.1"), "1", "{setting}");
    }
    session
        .execute("SET extra_float_digits = 0; INSERT INTO t VALUES (3, 0.30000000000000004)")
        .expect("the row is new");
    assert_eq!(count(&mut session, "0.3"), "2");
    session.execute("RESET ALL").expect("they are settings");
    assert_eq!(count(&mut session, "0.30000000000000004"), "2");
}
