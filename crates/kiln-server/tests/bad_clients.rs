//! Clients that are slow, confused, forgetful or hostile: each is told why, or is gone, and others
//! notice nothing.

#![cfg(not(kiln_sim))]

mod common;

use common::{Talk, database, serve};
use kiln_platform::thread;
use kiln_platform::time::now_ns;
use kiln_wire::client::Answer;
use kiln_wire::frontend::Format;

const MS: u64 = 1_000_000;

/// The state of the first error, if there is one.
fn state_of(answers: &[Answer]) -> &str {
    let state = answers.iter().find_map(|answer| match answer {
        Answer::Error(fields) => Some(fields.get(b'C')),
        _ => None,
    });
    state.unwrap_or_default()
}

fn await_that(mut is_so: impl FnMut() -> bool) {
    let until_ns = now_ns() + 10_000 * MS;
    while !is_so() {
        assert!(now_ns() < until_ns, "it takes too long");
        thread::sleep(MS);
    }
}

#[test]
fn a_client_that_sends_a_byte_at_a_time_holds_no_other_client_up() {
    let database = database();
    let (server, address) = serve(&database, |options| options.startup_s = 1);
    let mut well = Talk::begin(&address).expect("it is accepted");
    let mut slow = Talk::begin(&address).expect("it is accepted");
    slow.requests.query("SELECT 7");
    for byte in slow.requests.take() {
        slow.send(&[byte]).expect("it goes out");
        thread::sleep(20 * MS);
        let began_ns = now_ns();
        assert_eq!(well.value("SELECT 1"), "1");
        assert!(now_ns() - began_ns < 1_000 * MS, "no lock is in its way");
    }
    let answers = slow.ask().expect("it is whole now");
    assert!(matches!(answers.last(), Some(Answer::Ready(_))));
    // The beginning of a session has a limit as a whole.
    let mut drips = Talk::connect(&address).expect("it is accepted");
    let parameters = [
        ("user", "kiln"),
        ("application_name", "a long name for a client"),
    ];
    drips.requests.startup(0, &parameters);
    for byte in drips.requests.take().into_iter().take(15) {
        thread::sleep(50 * MS);
        drips.send(&[byte]).expect("there is time");
    }
    assert_eq!(state_of(&drips.ask().expect("there is an end")), "08P01");
    drop(slow);
    await_that(|| server.clients() == 1);
}

#[test]
fn messages_that_do_not_fit_their_statement_are_refused() {
    let database = database();
    let (_server, address) = serve(&database, |_| {});
    let mut talk = Talk::begin(&address).expect("it is accepted");
    talk.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
    talk.requests.parse("none", "SELECT $1", &[99_999]).sync();
    assert_eq!(state_of(&talk.ask().expect("it holds")), "42704");
    let insert = "INSERT INTO t VALUES ($1, $2)";
    talk.requests.parse("insert", insert, &[23, 25]).sync();
    assert_eq!(state_of(&talk.ask().expect("it holds")), "");
    // Counts of formats, of values, and of formats of results.
    let bind = |formats: &[u16], values: &[&[u8]], results: &[u16]| {
        let mut body = b"\0insert\0".to_vec();
        let codes = |body: &mut Vec<u8>, codes: &[u16]| {
            body.extend_from_slice(&(codes.len() as u16).to_be_bytes());
            codes
                .iter()
                .for_each(|code| body.extend_from_slice(&code.to_be_bytes()));
        };
        codes(&mut body, formats);
        body.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            body.extend_from_slice(&(value.len() as u32).to_be_bytes());
            body.extend_from_slice(value);
        }
        codes(&mut body, results);
        body
    };
    let one: &[u8] = &[0, 0, 0, 1];
    for (body, state) in [
        (bind(&[], &[b"1"], &[]), "08P01"),
        (bind(&[], &[], &[]), "08P01"),
        (bind(&[], &[b"1", b"a", b"b"], &[]), "08P01"),
        (bind(&[0, 0, 0], &[b"1", b"a"], &[]), "08P01"),
        (bind(&[7], &[b"1", b"a"], &[]), "22023"),
        (bind(&[], &[b"1", b"a"], &[0, 0]), "08P01"),
        (bind(&[1, 0], &[b"1", b"a"], &[]), "22P03"),
        (bind(&[], &[b"one", b"a"], &[]), "22P02"),
        (bind(&[], &[b"1", b"\xff"], &[]), "22021"),
        (bind(&[1, 0], &[one, b"a"], &[]), ""),
    ] {
        talk.requests.raw(b'B', &body).execute("", 0).sync();
        let answers = talk.ask().expect("the connection holds");
        assert_eq!(state_of(&answers), state, "{body:?}");
        assert!(matches!(answers.last(), Some(Answer::Ready(_))), "{body:?}");
    }
    assert_eq!(talk.value("SELECT count(*) FROM t"), "1");
    for (portal, state) in [("nothing", "34000"), ("", "34000")] {
        talk.requests.execute(portal, 0).sync();
        assert_eq!(state_of(&talk.ask().expect("it holds")), state);
    }
}

#[test]
fn a_copy_that_breaks_off_leaves_nothing() {
    let database = database();
    let (server, address) = serve(&database, |_| {});
    let mut well = Talk::begin(&address).expect("it is accepted");
    well.run("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    let rows: Vec<u8> = (0..1_000)
        .flat_map(|id| format!("{id}\n").into_bytes())
        .collect();
    // It vanishes between rows and within one, in both protocols and in a block.
    for (before, text) in [
        ("SELECT 1", "COPY t FROM STDIN"),
        ("BEGIN", "COPY t FROM STDIN"),
    ] {
        for length in [0, 1, 500, rows.len()] {
            let mut talk = Talk::begin(&address).expect("it is accepted");
            talk.run(before);
            talk.requests.query(text).copy_data(&rows[..length]);
            talk.flush().expect("it goes out");
            drop(talk);
            let mut talk = Talk::begin(&address).expect("it is accepted");
            talk.run(before);
            talk.requests.parse("", text, &[]);
            let text = Format::Text;
            talk.requests
                .bind("", "", (text, &[]), text)
                .execute("", 0)
                .copy_data(&rows[..length]);
            talk.flush().expect("it goes out");
            drop(talk);
        }
    }
    await_that(|| server.clients() == 1);
    assert_eq!(well.value("SELECT count(*) FROM t"), "0");
    // What is wrong is found in the middle; what follows is passed over.
    well.requests.query("COPY t FROM STDIN").copy_data(&rows);
    well.requests.copy_data(b"7\n").copy_data(&rows).copy_done();
    assert_eq!(state_of(&well.ask().expect("it holds")), "23505");
    assert_eq!(well.value("SELECT count(*) FROM t"), "0");
    // As in PostgreSQL, Flush and Sync may come by mistake.
    well.requests
        .query("COPY t FROM STDIN")
        .copy_data(b"1\n")
        .sync()
        .flush()
        .copy_data(b"2\n")
        .copy_done();
    let answers = well.ask().expect("the connection holds");
    assert_eq!(state_of(&answers), "");
    assert_eq!(well.value("SELECT count(*) FROM t"), "2");
}

#[test]
fn a_client_that_goes_within_a_commit_has_committed_or_not() {
    let database = database();
    let (server, address) = serve(&database, |_| {});
    let mut well = Talk::begin(&address).expect("it is accepted");
    well.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0)");
    for _ in 0..50 {
        let mut talk = Talk::begin(&address).expect("it is accepted");
        talk.run("BEGIN");
        talk.run("UPDATE t SET n = n + 1 WHERE id = 1");
        talk.requests.query("COMMIT");
        talk.flush().expect("it goes out");
    }
    await_that(|| server.clients() == 1);
    // What was received whole was run.
    assert_eq!(well.value("SELECT n FROM t"), "50");
    assert_eq!(well.run("UPDATE t SET n = 0 WHERE id = 1"), "UPDATE 1");
}

#[test]
fn a_cancellation_that_comes_too_late_does_nothing() {
    let database = database();
    let (_server, address) = serve(&database, |_| {});
    let mut talk = Talk::begin(&address).expect("it is accepted");
    let (number, secret) = talk.key.clone();
    for _ in 0..20 {
        assert_eq!(talk.value("SELECT 1"), "1");
        let mut other = Talk::connect(&address).expect("it connects");
        other.requests.cancel(number, &secret);
        assert_eq!(other.ask(), Ok(Vec::new()), "nothing is said to that");
        assert_eq!(talk.value("SELECT 2"), "2");
    }
    talk.run("BEGIN");
    let mut other = Talk::connect(&address).expect("it connects");
    other.requests.cancel(number, &secret);
    assert_eq!(other.ask(), Ok(Vec::new()));
    assert_eq!(talk.run("COMMIT"), "COMMIT");
}

/// Its answers wait within a bound, and it gets them all when it reads at last.
#[test]
fn a_client_that_never_reads_holds_no_other_client_up() {
    const QUERIES: usize = 300;
    let database = database();
    let (_server, address) = serve(&database, |_| {});
    let mut well = Talk::begin(&address).expect("it is accepted");
    let mut deaf = Talk::begin(&address).expect("it is accepted");
    for _ in 0..QUERIES {
        deaf.requests.query("SELECT repeat('x', 1000000)");
    }
    deaf.flush().expect("the questions are short");
    let began_ns = now_ns();
    for _ in 0..100 {
        assert_eq!(well.value("SELECT 1"), "1");
    }
    assert!(now_ns() - began_ns < 5_000 * MS, "no lock is in its way");
    for query in 0..QUERIES {
        let answers = deaf.ask().expect("the connection holds");
        let length = answers.iter().find_map(|answer| match answer {
            Answer::Row(values) => values[0].as_ref().map(Vec::len),
            _ => None,
        });
        assert_eq!(length, Some(1_000_000), "{query}");
    }
}

#[test]
fn twice_as_many_clients_as_there_is_room_for_are_told_so() {
    const ROOM: usize = 200;
    let database = database();
    let (server, address) = serve(&database, |options| options.connections_max = ROOM);
    let mut refused = 0;
    let mut clients: Vec<Talk> = Vec::new();
    for _ in 0..2 * ROOM {
        let mut talk = Talk::connect(&address).expect("it connects");
        talk.requests.startup(0, &[("user", "kiln")]);
        match talk.ask() {
            Ok(answers) if matches!(answers.last(), Some(Answer::Ready(_))) => clients.push(talk),
            Ok(answers) => {
                // One that speaks while the connection is closed may not hear the word.
                assert!(["53300", ""].contains(&state_of(&answers)), "{answers:?}");
                refused += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert_eq!((clients.len(), refused), (ROOM, ROOM));
    for talk in &mut clients {
        assert_eq!(talk.value("SELECT 1"), "1");
    }
    assert_eq!(server.accepted(), (ROOM as u64, ROOM as u64));
    clients.truncate(1);
    await_that(|| server.clients() == 1);
    assert_eq!(
        Talk::begin(&address)
            .expect("there is room")
            .value("SELECT 2"),
        "2"
    );
}
