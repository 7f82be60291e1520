//! Servers on sockets of the machine: many clients, bad ones, and the end.

#![cfg(not(kiln_sim))]

mod common;

use common::{Talk, database, serve};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::thread;
use kiln_platform::time::now_ns;
use kiln_wire::client::Answer;

const MS: u64 = 1_000_000;

/// The state of the first error, if there is one.
fn state_of(answers: &[Answer]) -> Option<&str> {
    answers.iter().find_map(|answer| match answer {
        Answer::Error(fields) => Some(fields.get(b'C')),
        _ => None,
    })
}

#[test]
fn many_clients_take_seats_and_none_is_sold_twice() {
    const CLIENTS: usize = 40;
    const CALLS: usize = 50;
    let database = database();
    let (server, address) = serve(&database, |_| {});
    let mut first = Talk::begin(&address).expect("it is accepted");
    first.run("CREATE TABLE seats (id INTEGER PRIMARY KEY, free INTEGER CHECK (free >= 0)); INSERT INTO seats VALUES (1, 1500)");
    first.run("CREATE PROCEDURE buy(OUT rest INTEGER) LANGUAGE plpgsql AS $$ BEGIN UPDATE seats SET free = free - 1 WHERE id = 1 RETURNING free INTO rest; END $$");
    let sold: usize = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let address = &address;
                scope.spawn(move || {
                    let mut talk = Talk::begin(address).expect("it is accepted");
                    talk.requests.parse("buy", "CALL buy(NULL)", &[]);
                    let mut sold = 0;
                    for call in 0..CALLS {
                        // Some by themselves, some in a block, some behind each other in a
                        // pipeline.
                        if (client + call) % 5 == 0 {
                            let text =
                                "BEGIN; UPDATE seats SET free = free - 1 WHERE id = 1; COMMIT";
                            sold += usize::from(talk.run(text) == "COMMIT");
                            talk.run("ROLLBACK");
                            continue;
                        }
                        let format = kiln_wire::frontend::Format::Text;
                        (talk.requests)
                            .bind("", "buy", (format, &[]), format)
                            .execute("", 0)
                            .sync();
                        let answers = talk.ask().expect("the connection holds");
                        let state = state_of(&answers);
                        assert!(matches!(state, None | Some("23514")), "{state:?}");
                        sold += usize::from(state.is_none());
                    }
                    sold
                })
            })
            .collect();
        let sold = clients
            .into_iter()
            .map(|client| client.join().expect("it ends"));
        sold.sum()
    });
    assert_eq!(
        first.value("SELECT free FROM seats"),
        (1_500 - sold).to_string()
    );
    assert!(sold > 1_000, "{sold}");
    assert_eq!(server.accepted(), (CLIENTS as u64 + 1, 0));
}

#[test]
fn nonsense_ends_its_connection_alone() {
    let database = database();
    let (server, address) = serve(&database, |options| {
        options.connections_max = 20;
        options.startup_s = 1;
    });
    let mut well = Talk::begin(&address).expect("it is accepted");
    for (bytes, state) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "08P01"),
        (&[0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0], "08P01"),
        (&[0, 0, 0, 8, 0, 9, 0, 0], "0A000"),
        (&[0xff; 64], "08P01"),
    ] {
        let mut talk = Talk::connect(&address).expect("it is accepted");
        talk.send(bytes).expect("it goes out");
        let answers = talk.ask().expect("there is an end");
        assert_eq!(state_of(&answers), Some(state), "{bytes:?}");
    }
    for (bytes, state) in [
        (&b"Q\x40\0\0\0"[..], "54000"),
        (b"!!!!!!!!", "08P01"),
        (b"Q\0\0\0\x01", "08P01"),
    ] {
        let mut talk = Talk::begin(&address).expect("it is accepted");
        talk.send(bytes).expect("it goes out");
        let answers = talk.ask().expect("there is an end");
        assert_eq!(state_of(&answers), Some(state), "{bytes:?}");
        assert!(
            !matches!(answers.last(), Some(Answer::Ready(_))),
            "it is over"
        );
    }
    // One that says nothing, and one that goes within its startup message.
    let mut silent = Talk::connect(&address).expect("it is accepted");
    let mut half = Talk::connect(&address).expect("it is accepted");
    half.send(&[0, 0, 0]).expect("it goes out");
    drop(half);
    let answers = silent.ask().expect("there is an end");
    assert_eq!(
        state_of(&answers),
        Some("08P01"),
        "it was told that it took too long"
    );
    assert_eq!(well.value("SELECT 1"), "1");
    await_that(|| server.clients() == 1);
}

fn await_that(mut is_so: impl FnMut() -> bool) {
    let until_ns = now_ns() + 10_000_000_000;
    while !is_so() {
        assert!(now_ns() < until_ns, "it takes too long");
        thread::sleep(1_000_000);
    }
}

#[test]
fn there_is_room_for_so_many_and_again_when_some_have_gone() {
    let database = database();
    let (server, address) = serve(&database, |options| options.connections_max = 3);
    let mut clients: Vec<_> = (0..3)
        .map(|_| Talk::begin(&address).expect("it is accepted"))
        .collect();
    let mut fourth = Talk::connect(&address).expect("it connects");
    let answers = fourth.ask().expect("there is an end");
    assert_eq!(state_of(&answers), Some("53300"));
    clients.pop();
    await_that(|| server.clients() == 2);
    let mut next = Talk::begin(&address).expect("it is accepted");
    assert_eq!(next.value("SELECT 2"), "2");
    assert_eq!(server.accepted(), (4, 1));
}

#[test]
fn a_statement_is_cancelled_through_another_connection() {
    let database = database();
    let (_server, address) = serve(&database, |_| {});
    let mut slow = Talk::begin(&address).expect("it is accepted");
    let (number, secret) = slow.key.clone();
    slow.requests
        .query("SELECT count(*) FROM generate_series(1, 1000000000) AS g(i)");
    slow.flush().expect("it goes out");
    let mut wrong = Talk::connect(&address).expect("it connects");
    wrong.requests.cancel(number, &[0; 4]);
    assert_eq!(wrong.ask(), Ok(Vec::new()), "nothing is said to that");
    let has_ended = AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        let asks = scope.spawn(|| {
            let answers = slow.ask().expect("it is answered");
            has_ended.store(true, Ordering::Release);
            answers
        });
        // A request that comes before the statement does nothing.
        while !has_ended.load(Ordering::Acquire) {
            let mut other = Talk::connect(&address).expect("it connects");
            other.requests.cancel(number, &secret);
            assert_eq!(other.ask(), Ok(Vec::new()));
            thread::sleep(10_000_000);
        }
        asks.join().expect("it ends")
    });
    assert_eq!(state_of(&answers), Some("57014"));
    assert_eq!(slow.value("SELECT 3"), "3");
}

/// Whether the last words to a client are these.
fn is_terminated(answers: &[Answer]) -> bool {
    matches!(answers.last(), Some(Answer::Error(fields))
        if fields.get(b'C') == "57P01" && fields.get(b'S') == "FATAL")
}

#[test]
fn sessions_are_ended_whatever_they_do() {
    let database = database();
    let (server, address) = serve(&database, |_| {});
    let mut first = Talk::begin(&address).expect("it is accepted");
    first.run("CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER)");
    first.run("INSERT INTO item VALUES (1, 10)");
    let endless = "SELECT count(*) FROM generate_series(1, 1000000000000) AS a(i)";
    let change = "BEGIN; UPDATE item SET stock = 0 WHERE id = 1";
    for (before, text) in [
        ("", ""),
        ("", endless),
        ("", "SELECT pg_sleep(1000)"),
        ("BEGIN", endless),
        (change, ""),
        (change, "SELECT pg_sleep(1000)"),
        ("", "COPY item FROM STDIN"),
    ] {
        let mut victim = Talk::begin(&address).expect("it is accepted");
        let pid = victim.key.0;
        assert_eq!(victim.value("SELECT pg_backend_pid()"), pid.to_string());
        victim.run(before);
        if !text.is_empty() {
            victim.requests.query(text);
            victim.flush().expect("it goes out");
            thread::sleep(50 * MS);
        }
        let ended = first.value(&format!("SELECT pg_terminate_backend({pid}, 20000)"));
        assert_eq!(ended, "t", "{before}; {text}");
        let answers = victim.ask().expect("there is an end");
        assert!(is_terminated(&answers), "{before}; {text}: {answers:?}");
        assert_eq!(first.value("SELECT stock FROM item"), "10");
    }
    let mut own = Talk::begin(&address).expect("it is accepted");
    own.requests
        .query("SELECT pg_terminate_backend(pg_backend_pid())");
    own.flush().expect("it goes out");
    assert!(is_terminated(&own.ask().expect("there is an end")));
    await_that(|| server.clients() == 1);
}

#[test]
fn a_client_that_vanishes_leaves_nothing_behind() {
    let database = database();
    let (server, address) = serve(&database, |_| {});
    let mut stays = Talk::begin(&address).expect("it is accepted");
    stays.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0)");
    for length in 0..120 {
        let mut talk = Talk::begin(&address).expect("it is accepted");
        talk.requests
            .query("BEGIN; UPDATE t SET n = n + 1 WHERE id = 1");
        talk.requests.query("UPDATE t SET n = n + 1 WHERE id = 1");
        let bytes = talk.requests.take();
        // It goes within its messages, and never commits.
        talk.send(&bytes[..length.min(bytes.len())])
            .expect("it goes out");
        drop(talk);
    }
    await_that(|| server.clients() == 1);
    assert_eq!(
        stays.run("UPDATE t SET n = n + 100 WHERE id = 1"),
        "UPDATE 1"
    );
    assert_eq!(stays.value("SELECT n FROM t"), "100");
}

#[test]
fn a_server_ends_when_clients_have_ended_what_they_have_begun() {
    let database = database();
    let (server, address) = serve(&database, |options| options.drain_s = 30);
    let mut idle = Talk::begin(&address).expect("it is accepted");
    let mut busy = Talk::begin(&address).expect("it is accepted");
    busy.run("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    busy.run("BEGIN");
    assert_eq!(busy.run("INSERT INTO t VALUES (1)"), "INSERT 0 1");
    thread::scope(|scope| {
        scope.spawn(|| server.end());
        let answers = idle.ask().expect("there is an end");
        assert_eq!(state_of(&answers), Some("57P01"));
        assert_eq!(busy.run("INSERT INTO t VALUES (2)"), "INSERT 0 1");
        assert_eq!(busy.run("COMMIT"), "COMMIT");
        let answers = busy.ask().expect("there is an end");
        assert_eq!(state_of(&answers), Some("57P01"));
    });
    assert!(Talk::begin(&address).is_err() || server.clients() == 0);
    let rows = database
        .query("SELECT id FROM t", ())
        .expect("the database is open");
    assert_eq!(rows.len(), 2);
}

/// When the time to end is over, statements that would run on are cancelled: those that workers
/// run, those of blocks, and that of a client which is served by a thread of its own.
#[test]
fn a_server_ends_though_statements_do_not() {
    let database = database();
    let (server, address) = serve(&database, |options| options.drain_s = 1);
    let mut talks = ["", "BEGIN", "", "BEGIN", ""].map(|first| {
        let mut talk = Talk::begin(&address).expect("it is accepted");
        talk.run(first);
        let endless = "SELECT count(*) FROM generate_series(1, 1000000000000) AS a(i)";
        talk.requests.query(endless);
        talk.flush().expect("it goes out");
        talk
    });
    thread::sleep(100 * MS);
    let began_ns = now_ns();
    server.end();
    drop(database);
    let took_ns = now_ns() - began_ns;
    assert!(took_ns < 5_000 * MS, "it took {} ms", took_ns / MS);
    for talk in &mut talks {
        // The end of the connection, with or without a last word.
        let _ = talk.ask();
    }
}

/// Blocks that hold all slots end although the statements of others wait for a slot in all threads.
#[test]
fn blocks_end_while_all_threads_wait_for_slots() {
    const CLIENTS: usize = 8;
    let options = kiln_sql::Options::new()
        .workers(2)
        .pin_workers(false)
        .session_slots(2)
        .slot_wait_ms(10_000);
    let database = kiln_sql::Database::open(options).expect("there is memory");
    let (_server, address) = serve(&database, |options| options.threads_max = 2);
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|_| Talk::begin(&address).expect("it is accepted"))
        .collect();
    clients[0].run("CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER)");
    clients[0].run("INSERT INTO item SELECT i, 0 FROM generate_series(1, 8) AS i");
    let began_ns = now_ns();
    thread::scope(|scope| {
        for (id, mut client) in (1..).zip(clients) {
            scope.spawn(move || {
                for _ in 0..20 {
                    client.run("BEGIN");
                    let text = format!("UPDATE item SET stock = stock + 1 WHERE id = {id}");
                    assert_eq!(client.run(&text), "UPDATE 1");
                    assert_eq!(client.run("COMMIT"), "COMMIT");
                }
            });
        }
    });
    let took_ns = now_ns() - began_ns;
    assert!(took_ns < 5_000_000_000, "it took {took_ns} ns");
}

/// What is no TLS behind the request for it, or came before the answer, ends its connection alone.
#[test]
fn nonsense_under_encryption_ends_its_connection_alone() {
    let database = database();
    let files = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln/tests/tls");
    let read = |name: &str| {
        let text = kiln_platform::file::read_to_string(&files.join(name));
        text.expect("it is there").into_bytes()
    };
    let tls = kiln_server::Tls::new(&read("certificate.pem"), &read("key.pem"));
    let tls = tls.expect("they belong together");
    let (server, address) = serve(&database, |options| {
        options.tls = Some(tls);
        options.startup_s = 1;
    });
    let mut well = Talk::begin(&address).expect("it is accepted");
    let startup = kiln_wire::client::Requests::default()
        .startup(0, &[("user", "kiln")])
        .take();
    for after in [
        &b""[..],
        &[0; 100],
        b"\x16\x03\x01\xff\xff",
        &startup,
        &[0x16; 70_000],
    ] {
        let mut talk = Talk::connect(&address).expect("it is accepted");
        talk.requests.tls();
        talk.flush().expect("it goes out");
        assert_eq!(talk.byte().expect("it is answered"), Some(b'S'));
        // The server may have gone before all of it has gone out.
        let _ = talk.send(after);
        while let Ok(Some(_)) = talk.byte() {}
    }
    let mut early = Talk::connect(&address).expect("it is accepted");
    early.requests.tls();
    let mut bytes = early.requests.take();
    bytes.extend_from_slice(&startup);
    early.send(&bytes).expect("it goes out");
    let answers = early.ask().expect("there is an end");
    assert_eq!(state_of(&answers), Some("08P01"));
    assert_eq!(well.value("SELECT 1"), "1");
    await_that(|| server.clients() == 1);
}

/// More clients wait for a lock than may, with few threads: its holder goes on, and those that were
/// let in get it one after the other.
#[test]
fn clients_that_wait_for_a_lock_do_not_hold_up_its_holder() {
    const CLIENTS: usize = 60;
    let database = database();
    let (_server, address) = serve(&database, |options| options.threads_max = 2);
    let mut holder = Talk::begin(&address).expect("it is accepted");
    holder.run("SELECT pg_advisory_lock(1)");
    let waiting = || {
        let locks = database.engine().locks();
        locks
            .iter()
            .filter(|it| it.waits_since_us.is_some())
            .count()
    };
    let states: Vec<String> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut talk = Talk::begin(&address).expect("it is accepted");
                    let state = talk.run("SELECT pg_advisory_lock(1)");
                    talk.run("SELECT pg_advisory_unlock(1)");
                    state
                })
            })
            .collect();
        while waiting() < kiln_sql::LOCK_WAITERS_MAX {
            thread::sleep(MS);
        }
        assert_eq!(
            holder.value("SELECT count(*) FROM pg_locks WHERE granted"),
            "1"
        );
        assert_eq!(holder.value("SELECT pg_advisory_unlock(1)"), "t");
        let ended = clients
            .into_iter()
            .map(|client| client.join().expect("it ends"));
        ended.collect()
    });
    let refused = states.iter().filter(|state| **state == "53300").count();
    let served = states.iter().filter(|state| **state == "SELECT 1").count();
    assert_eq!(refused + served, CLIENTS, "{states:?}");
    assert!(served >= kiln_sql::LOCK_WAITERS_MAX, "{served}");
}

#[test]
fn a_superuser_copies_files_of_the_server() {
    let database = database();
    let (_server, address) = serve(&database, |_| {});
    let mut talk = Talk::begin(&address).expect("it is accepted");
    let temporary =
        kiln_platform::disk::TemporaryDirectory::new("kiln-copy").expect("there is room");
    let path = |name: &str| temporary.path().join(name).display().to_string();
    let (file, csv) = (path("rows"), path("rows.csv"));
    talk.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
    talk.run("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) AS i");
    assert_eq!(talk.run(&format!("COPY t TO '{file}'")), "COPY 5000");
    let few = format!("COPY (SELECT 1 AS a, 'b,c' AS b) TO '{csv}' (FORMAT csv, HEADER)");
    assert_eq!(talk.run(&format!("COPY t TO '{csv}'; {few}")), "COPY 1");
    talk.run("CREATE TABLE u (a INTEGER, b TEXT)");
    let back = format!("COPY u FROM '{csv}' (FORMAT csv, HEADER)");
    assert_eq!(
        talk.run(&back),
        "COPY 1",
        "what the file had before is gone"
    );
    assert_eq!(talk.value("SELECT a || b FROM u"), "1b,c");
    talk.run("DELETE FROM t");
    assert_eq!(
        talk.run(&format!("BEGIN; COPY t FROM '{file}'")),
        "COPY 5000"
    );
    talk.run("ROLLBACK");
    assert_eq!(talk.value("SELECT count(*) FROM t"), "0");
    assert_eq!(talk.run(&format!("COPY t FROM '{file}'")), "COPY 5000");
    assert_eq!(
        talk.value("SELECT sum(id * length(name)) FROM t"),
        "1250250000"
    );
    let directory = temporary.path().display().to_string();
    let pipe = path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("the command is there").success());
    for (text, state) in [
        // Without waiting for its other end.
        (format!("COPY t FROM '{pipe}'"), "58030"),
        (format!("COPY t TO '{pipe}'"), "58030"),
        (format!("COPY t FROM '{file}'"), "23505"),
        (format!("COPY t FROM '{file}.none'"), "58P01"),
        (format!("COPY t FROM '{file}/none'"), "42809"),
        (format!("COPY t FROM '{directory}'"), "42809"),
        ("COPY t FROM '/'".to_owned(), "42809"),
        ("COPY t FROM ''".to_owned(), "58P01"),
        ("COPY t FROM 'rows'".to_owned(), "0A000"),
        (format!("COPY t TO '{directory}'"), "42809"),
        (format!("COPY t TO '{directory}/none/rows'"), "58P01"),
        ("COPY t TO 'rows'".to_owned(), "42602"),
        ("COPY t TO ''".to_owned(), "42602"),
        ("COPY t FROM PROGRAM 'cat'".to_owned(), "0A000"),
    ] {
        talk.requests.query(&text);
        let answers = talk.ask().expect("the connection holds");
        assert_eq!(state_of(&answers), Some(state), "{text}");
    }
    assert_eq!(talk.value("SELECT count(*) FROM t"), "5000");
    talk.run("CREATE ROLE clerk LOGIN; GRANT SELECT, INSERT ON t TO clerk");
    let mut clerk = Talk::begin_as(&address, "clerk").expect("it is accepted");
    for text in [
        format!("COPY t TO '{file}'"),
        format!("COPY t FROM '{file}'"),
    ] {
        clerk.requests.query(&text);
        let answers = clerk.ask().expect("the connection holds");
        assert_eq!(state_of(&answers), Some("42501"), "{text}");
    }
}

/// The texts of the notifications among answers, and whether ReadyForQuery comes behind all of
/// them.
fn notified(answers: &[Answer]) -> Vec<&str> {
    let told = answers.iter().filter_map(|answer| match answer {
        Answer::Notification(_, _, payload) => Some(payload.as_str()),
        _ => None,
    });
    let last = answers.last();
    assert!(matches!(last, Some(Answer::Ready(_))), "{last:?}");
    told.collect()
}

#[test]
fn a_client_that_listens_is_told_between_its_transactions() {
    let database = database();
    let (_server, address) = serve(&database, |_| {});
    let [mut listener, mut sender] = [(); 2].map(|()| Talk::begin(&address).expect("it connects"));
    assert_eq!(listener.run("LISTEN a"), "LISTEN");
    // While it idles it is told at once.
    let waited_ns = (0..5).map(|turn| {
        let began_ns = now_ns();
        assert_eq!(sender.run(&format!("NOTIFY a, '{turn}'")), "NOTIFY");
        let answer = listener.answer().expect("the connection holds");
        let expected = Answer::Notification(sender.key.0, "a".to_owned(), turn.to_string());
        assert_eq!(answer, Some(expected));
        now_ns() - began_ns
    });
    let waited_ns = waited_ns.min().unwrap_or_default();
    assert!(waited_ns < 100 * MS, "{waited_ns} ns");
    let ask = |listener: &mut Talk, text: &str| {
        listener.requests.query(text);
        listener.ask().expect("the connection holds")
    };
    // Not within a block, and at its end in order.
    assert!(notified(&ask(&mut listener, "BEGIN")).is_empty());
    sender.run("BEGIN; NOTIFY a, '1'; NOTIFY a, '2'; COMMIT");
    sender.run("SELECT pg_notify('a', '3')");
    assert!(notified(&ask(&mut listener, "SELECT 1")).is_empty());
    assert!(notified(&ask(&mut listener, "SELECT 1 / 0")).is_empty());
    assert_eq!(notified(&ask(&mut listener, "ROLLBACK")), ["1", "2", "3"]);
    // Nor within a pipeline.
    listener.requests.parse("", "SELECT 1", &[]).flush();
    listener.flush().expect("it goes out");
    let parsed = listener.answer().expect("the connection holds");
    assert_eq!(parsed, Some(Answer::ParseComplete));
    sender.run("NOTIFY a, 'behind'");
    thread::sleep(20 * MS);
    let format = kiln_wire::frontend::Format::Text;
    listener
        .requests
        .bind("", "", (format, &[]), format)
        .execute("", 0)
        .sync();
    let answers = listener.ask().expect("the connection holds");
    assert_eq!(answers.first(), Some(&Answer::BindComplete));
    assert_eq!(notified(&answers), ["behind"]);
    // Its own come with the statement.
    for text in ["SELECT pg_notify('a', 'own')", "NOTIFY a, 'own'"] {
        assert_eq!(notified(&ask(&mut listener, text)), ["own"]);
    }
    // A text is one transaction.
    assert!(notified(&ask(&mut listener, "NOTIFY a, 'undone'; SELECT 1 / 0")).is_empty());
    assert_eq!(
        notified(&ask(&mut listener, "NOTIFY a, 'x'; NOTIFY a, 'x'")),
        ["x"]
    );
    assert!(notified(&ask(&mut listener, "UNLISTEN *; NOTIFY a")).is_empty());
}

#[test]
fn a_listener_that_does_not_read_is_ended_and_stalls_no_sender() {
    let database = database();
    let (server, address) = serve(&database, |_| {});
    let [mut idle, mut busy, mut sender] =
        [(); 3].map(|()| Talk::begin(&address).expect("it connects"));
    idle.run("LISTEN a");
    busy.run("LISTEN a");
    // More than a mailbox, the server's answers and the sockets have room for.
    let many = "SELECT pg_notify('a', i || repeat('x', 7000)) FROM generate_series(1, 1000) i";
    for turn in 0..10 {
        assert_eq!(sender.run(many), "SELECT 1000", "turn {turn}");
        let mut heard = 0;
        while heard < 1_000 {
            let answer = busy.answer().expect("the connection holds");
            heard += usize::from(matches!(answer, Some(Answer::Notification(..))));
        }
    }
    let mut told = 0;
    let last = loop {
        match idle.answer().expect("there is an end") {
            Some(Answer::Notification(..)) => told += 1,
            Some(Answer::Error(fields)) => break fields,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((last.get(b'C'), last.get(b'S')), ("54000", "FATAL"));
    assert!(told < 10_000, "{told}");
    await_that(|| server.clients() == 2);
    assert_eq!(busy.run("UNLISTEN *"), "UNLISTEN");
}

#[test]
fn sessions_begin_with_the_settings_of_their_role() {
    let database = database();
    let (server, address) = serve(&database, |_| {});
    let mut first = Talk::begin(&address).expect("it is accepted");
    first.run("CREATE ROLE clerk LOGIN");
    first.run("ALTER ROLE clerk SET lock_timeout TO '1s'");
    first.run("ALTER ROLE clerk SET search_path TO shop, public");
    first.run("ALTER DATABASE kiln SET lock_timeout TO '2s'");
    first.run("ALTER ROLE ALL SET statement_timeout TO '7s'");
    let mut clerk = Talk::begin_as(&address, "clerk").expect("it is accepted");
    assert_eq!(clerk.value("SHOW lock_timeout"), "1s");
    assert_eq!(clerk.value("SHOW search_path"), "shop, public");
    assert_eq!(clerk.value("SHOW statement_timeout"), "7s");
    clerk.run("SET lock_timeout TO '3s'");
    assert_eq!(clerk.value("SHOW lock_timeout"), "3s");
    clerk.run("RESET lock_timeout");
    assert_eq!(clerk.value("SHOW lock_timeout"), "1s");
    // A role may set its own, and not those of others.
    assert_eq!(
        clerk.run("ALTER ROLE CURRENT_USER SET application_name TO 'till'"),
        "ALTER ROLE"
    );
    assert_eq!(clerk.run("ALTER ROLE kiln SET timezone TO 'UTC'"), "42501");
    assert_eq!(
        clerk.run("ALTER DATABASE kiln SET timezone TO 'UTC'"),
        "42501"
    );
    let mut clerk = Talk::begin_as(&address, "clerk").expect("it is accepted");
    assert_eq!(clerk.value("SHOW application_name"), "till");
    let mut other = Talk::begin(&address).expect("it is accepted");
    assert_eq!(other.value("SHOW lock_timeout"), "2s");
    assert_eq!(other.run("ALTER ROLE ALL RESET ALL"), "ALTER ROLE");
    let mut other = Talk::begin(&address).expect("it is accepted");
    assert_eq!(other.value("SHOW statement_timeout"), "0");
    // What the client asks for goes before.
    let mut asking = Talk::connect(&address).expect("it is accepted");
    let parameters = [("user", "clerk"), ("lock_timeout", "4s")];
    asking.requests.startup(0, &parameters);
    asking.ask().expect("it is accepted");
    assert_eq!(asking.value("SHOW lock_timeout"), "4s");
    drop(server);
}
