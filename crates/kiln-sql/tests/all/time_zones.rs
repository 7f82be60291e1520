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
