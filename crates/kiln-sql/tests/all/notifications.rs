//! LISTEN and NOTIFY: what transactions tell, to whom, and that they tell it once, when they have
//! committed.

#![cfg(not(kiln_sim))]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::files::temporary;
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_sql::{
    Call, Completions, Database, IdempotencyKey, Notification, Options, Protocol, Session, SqlState,
};

const SCRIPT: &str = "
CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
INSERT INTO counter VALUES (1, 0), (2, 0);
CREATE FUNCTION bump(fails BOOLEAN) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE v INTEGER;
BEGIN
    UPDATE counter SET n = n + 1 WHERE id = 1 RETURNING n INTO v;
    PERFORM pg_notify('counts', v::text);
    IF fails THEN RAISE EXCEPTION 'it fails'; END IF;
    RETURN v;
END $$;
CREATE PROCEDURE bumps(fails BOOLEAN) LANGUAGE plpgsql AS $$
BEGIN PERFORM bump(fails); END $$;
CREATE TABLE job (id INTEGER PRIMARY KEY, note TEXT);
CREATE FUNCTION tell() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    NOTIFY jobs;
    PERFORM pg_notify('jobs', TG_OP || ' ' || NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER tells AFTER INSERT OR UPDATE ON job FOR EACH ROW EXECUTE FUNCTION tell();
";

fn options() -> Options {
    Options::new().workers(2).pin_workers(false)
}

fn open(options: Options) -> Database {
    let database = Database::open(options).expect("there is memory");
    database.execute(SCRIPT).expect("it is SQL");
    database
}

fn session(database: &Database) -> Session {
    database.session().expect("there is room")
}

/// The tag of the last statement, or the state of its error.
fn run(session: &mut Session, text: &str) -> String {
    match session.execute(text) {
        Ok(results) => results.last().map_or(String::new(), |it| it.tag.clone()),
        Err(error) => error.state().as_str().to_owned(),
    }
}

/// What has come, as `channel payload`.
fn told(session: &mut Session) -> Vec<String> {
    texts(session.notifications())
}

fn texts(told: Vec<Notification>) -> Vec<String> {
    let told = told.into_iter();
    told.map(|it| format!("{} {}", it.channel, it.payload))
        .collect()
}

/// Waits for so many.
fn awaited(session: &mut Session, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < count {
        let more = session.await_notifications(Duration::from_secs(20));
        let more = more.expect("it takes what comes");
        assert!(!more.is_empty(), "{} of {count} have come", all.len());
        all.extend(texts(more));
    }
    all
}

#[test]
fn a_transaction_tells_what_it_has_committed() {
    let database = open(options());
    let [mut listener, mut sender] = [(); 2].map(|()| session(&database));
    run(&mut listener, "LISTEN jobs; LISTEN a; LISTEN \"B\"");
    for (script, last, heard) in [
        ("NOTIFY a", "NOTIFY", &["a "][..]),
        ("NOTIFY A, 'x''y'", "NOTIFY", &["a x'y"]),
        ("NOTIFY \"B\", $$1$$; NOTIFY b", "NOTIFY", &["B 1"]),
        ("SELECT pg_notify('a', NULL)", "SELECT 1", &["a "]),
        (
            "SELECT pg_notify('a', i::text) FROM generate_series(1, 3) i",
            "SELECT 3",
            &["a 1", "a 2", "a 3"],
        ),
        (
            "SELECT pg_notify('a', (i % 2)::text) FROM generate_series(1, 9) i",
            "SELECT 9",
            &["a 1", "a 0"],
        ),
        (
            "INSERT INTO job VALUES (1)",
            "INSERT 0 1",
            &["jobs ", "jobs INSERT 1"],
        ),
        ("INSERT INTO job VALUES (1)", "23505", &[]),
        (
            "INSERT INTO job VALUES (1) ON CONFLICT (id) DO UPDATE SET note = 'again'",
            "INSERT 0 1",
            &["jobs ", "jobs UPDATE 1"],
        ),
        (
            "SELECT CASE WHEN i = 2 THEN pg_notify('a', i::text) END FROM generate_series(1, 3) i",
            "SELECT 3",
            &["a 2"],
        ),
        (
            "SELECT 1 FROM (SELECT 1) x WHERE pg_notify('a', 'w') IS NULL",
            "SELECT 0",
            &["a w"],
        ),
        (
            "UPDATE job SET note = 'x' RETURNING pg_notify('a', note)",
            "UPDATE 1",
            &["a x", "jobs ", "jobs UPDATE 1"],
        ),
        ("SELECT pg_notify('a', '1'), 1 / (SELECT 0)", "22012", &[]),
        (
            "DO $$ BEGIN NOTIFY a, 'do'; PERFORM pg_notify('a', 'do'); END $$",
            "DO",
            &["a do"],
        ),
        (
            "DO $$ BEGIN EXECUTE 'NOTIFY a, ''step'''; PERFORM pg_notify('a', 'by step'); END $$",
            "DO",
            &["a step", "a by step"],
        ),
        // A part whose error is caught tells nothing, and what is around it does.
        (
            "DO $$ BEGIN NOTIFY a, '1';
                BEGIN NOTIFY a, '2'; NOTIFY a, '1'; PERFORM 1 / 0;
                EXCEPTION WHEN division_by_zero THEN NOTIFY a, '3'; END;
                NOTIFY a, '4'; END $$",
            "DO",
            &["a 1", "a 3", "a 4"],
        ),
        (
            "BEGIN; NOTIFY a, '1'; SELECT pg_notify('a', '2'); NOTIFY a, '1'; COMMIT",
            "COMMIT",
            &["a 1", "a 2"],
        ),
        ("BEGIN; NOTIFY a, '1'; ROLLBACK", "ROLLBACK", &[]),
        ("BEGIN; NOTIFY a, '1'; SELECT 1 / 0", "22012", &[]),
        (
            "ROLLBACK; BEGIN READ ONLY; NOTIFY a, 'r'; COMMIT",
            "COMMIT",
            &["a r"],
        ),
        (
            "BEGIN; NOTIFY a, '1'; SAVEPOINT s; NOTIFY a, '2'; ROLLBACK TO s; NOTIFY a, '3'; COMMIT",
            "COMMIT",
            &["a 1", "a 3"],
        ),
        (
            "BEGIN; SAVEPOINT s; NOTIFY a, '2'; ROLLBACK TO s; COMMIT",
            "COMMIT",
            &[],
        ),
        (
            "BEGIN; SAVEPOINT s; NOTIFY a, '2'; RELEASE s; COMMIT",
            "COMMIT",
            &["a 2"],
        ),
        (
            "BEGIN; NOTIFY a, 'before'; CREATE TABLE made (i INTEGER); NOTIFY a, 'behind'; COMMIT",
            "COMMIT",
            &["a before", "a behind"],
        ),
        (
            "PREPARE p AS SELECT pg_notify('a', $1); EXECUTE p('p')",
            "SELECT 1",
            &["a p"],
        ),
        ("SELECT pg_notify('', 'x')", "22023", &[]),
        ("SELECT pg_notify(NULL, 'x')", "22023", &[]),
        ("SELECT pg_notify(repeat('a', 64), 'x')", "22023", &[]),
        ("SELECT pg_notify('a', repeat('x', 8000))", "22023", &[]),
    ] {
        assert_eq!(run(&mut sender, script), last, "{script}");
        assert_eq!(told(&mut listener), heard, "{script}");
    }
    let longest = "SELECT pg_notify('a', repeat('x', 7999))";
    assert_eq!(run(&mut sender, longest), "SELECT 1");
    let heard = listener.notifications();
    assert_eq!(heard[0].payload.len(), 7_999);
    assert_eq!(heard[0].session, sender.number());
}

#[test]
fn a_session_listens_from_its_commit_on() {
    let database = open(options());
    let [mut one, mut other] = [(); 2].map(|()| session(&database));
    let listens = |session: &mut Session| {
        let rows = session.query("SELECT c FROM pg_listening_channels() c ORDER BY c", ());
        rows.expect("it is SQL").to_csv().replace('\n', " ")
    };
    run(&mut one, "BEGIN; LISTEN a");
    assert_eq!(listens(&mut one), "c ");
    run(&mut other, "NOTIFY a, 'early'");
    run(&mut one, "NOTIFY a, 'own'");
    run(&mut one, "COMMIT");
    assert_eq!(
        (listens(&mut one).as_str(), told(&mut one)),
        ("c a ", vec!["a own".to_owned()])
    );
    run(&mut one, "BEGIN; LISTEN b; ROLLBACK");
    run(
        &mut one,
        "BEGIN; LISTEN c; SAVEPOINT s; LISTEN d; UNLISTEN a; ROLLBACK TO s; COMMIT",
    );
    assert_eq!(listens(&mut one), "c a c ");
    // A block that has failed tells nothing and changes nothing.
    run(&mut one, "BEGIN; LISTEN e; NOTIFY a");
    assert_eq!(run(&mut one, "SELECT 1 / 0"), "22012");
    assert_eq!(run(&mut one, "COMMIT"), "ROLLBACK");
    assert_eq!(
        (listens(&mut one).as_str(), told(&mut one).len()),
        ("c a c ", 0)
    );
    // Within a block nothing is told.
    run(&mut one, "BEGIN");
    run(&mut other, "NOTIFY a, 'meanwhile'");
    assert!(told(&mut one).is_empty());
    let none = one.await_notifications(Duration::from_secs(100));
    assert_eq!(none.expect("it does not wait"), []);
    run(&mut one, "COMMIT");
    assert_eq!(told(&mut one), ["a meanwhile"]);
    // What has come on a channel is not told once the session listens no more.
    run(&mut other, "NOTIFY a, '1'; NOTIFY c, '2'");
    run(&mut one, "UNLISTEN a");
    assert_eq!(told(&mut one), ["c 2"]);
    run(&mut one, "LISTEN a; UNLISTEN *");
    run(&mut other, "NOTIFY a; NOTIFY c");
    assert_eq!(
        (listens(&mut one).as_str(), told(&mut one).len()),
        ("c ", 0)
    );
    run(&mut one, "LISTEN a; DISCARD ALL");
    assert_eq!(listens(&mut one), "c ");
    // A statement outside of a session leaves no listener.
    database.execute("LISTEN pooled").expect("it is SQL");
    let pooled = database.query("SELECT count(*)::int FROM pg_listening_channels()", ());
    let pooled = pooled.expect("it is SQL").into_one::<(i32,)>();
    assert_eq!(pooled.expect("it is a number"), (0,));
}

#[test]
fn a_session_is_woken() {
    let database = open(options());
    let [mut one, mut other] = [(); 2].map(|()| session(&database));
    let woken = Arc::new(AtomicUsize::new(0));
    run(&mut one, "LISTEN a");
    assert!(one.wants_wake() && !other.wants_wake());
    run(&mut other, "NOTIFY a, '1'");
    let counted = woken.clone();
    one.wake_by(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let count = || woken.load(Ordering::SeqCst);
    assert_eq!(count(), 1, "something is there");
    run(&mut other, "NOTIFY a, '2'; NOTIFY b");
    assert_eq!(count(), 1, "it was woken already");
    assert_eq!(told(&mut one), ["a 1", "a 2"]);
    run(&mut other, "NOTIFY b; NOTIFY a");
    assert_eq!(count(), 2);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            assert_eq!(told(&mut one), ["a "]);
            awaited(&mut one, 1)
        });
        thread::sleep(20_000_000);
        run(&mut other, "NOTIFY a, 'late'");
        assert_eq!(waiting.join().expect("it ends"), ["a late"]);
    });
}

/// A block that is run again tells what it has done at last, once.
#[test]
fn a_block_that_has_lost_tells_once() {
    let database = open(options());
    let [mut listener, mut one, mut other] = [(); 3].map(|()| session(&database));
    run(&mut listener, "LISTEN a");
    let start = "BEGIN; UPDATE counter SET n = n + 1 WHERE id = 1;
        SELECT pg_notify('a', n::text) FROM counter WHERE id = 1; SAVEPOINT s; NOTIFY a, 'no'; ROLLBACK TO s";
    assert_eq!(run(&mut one, start), "ROLLBACK");
    let rival = "UPDATE counter SET n = n + 10 WHERE id = 1";
    assert_eq!(run(&mut other, rival), "UPDATE 1");
    assert_eq!(run(&mut one, "COMMIT"), "COMMIT");
    assert!(database.engine().replays().replays > 0);
    assert_eq!(told(&mut listener), ["a 11"]);
}

/// Each commit tells its own number, and what was rolled back tells none.
#[test]
fn each_commit_tells_once_under_every_protocol() {
    const CLIENTS: usize = 4;
    const TURNS: usize = 40;
    for protocol in Protocol::serializable() {
        let database = open(options().protocol(protocol));
        let mut listener = session(&database);
        run(&mut listener, "LISTEN counts");
        let committed: usize = thread::scope(|scope| {
            let clients = (0..CLIENTS).map(|client| {
                let database = &database;
                scope.spawn(move || {
                    let mut session = session(database);
                    let committed = (0..TURNS).filter(|turn| {
                        let fails = turn % 5 == 4;
                        match (client + turn) % 4 {
                            0 => {
                                let reply = database.call("bumps", (fails,));
                                reply.expect("there is such a procedure").is_committed()
                            }
                            1 => run(&mut session, &format!("SELECT bump({fails})")) == "SELECT 1",
                            2 => {
                                let text = "BEGIN; UPDATE counter SET n = n + 1 WHERE id = 1;
                                    SELECT pg_notify('counts', n::text) FROM counter WHERE id = 1";
                                run(&mut session, text);
                                let end = if fails { "ROLLBACK" } else { "COMMIT" };
                                let ended = run(&mut session, end);
                                run(&mut session, "ROLLBACK");
                                ended == "COMMIT"
                            }
                            _ => {
                                let bumped = database.transaction(|transaction| {
                                    transaction.call("bumps", (fails,)).map(drop)
                                });
                                bumped.is_ok()
                            }
                        }
                    });
                    committed.count()
                })
            });
            let clients: Vec<_> = clients.collect();
            let committed = clients.into_iter().map(|it| it.join().expect("it ends"));
            committed.sum()
        });
        let mut told = awaited(&mut listener, committed);
        told.extend(texts(listener.notifications()));
        let each: BTreeSet<String> = (1..=committed).map(|n| format!("counts {n}")).collect();
        assert_eq!(told.len(), committed, "{protocol}");
        assert_eq!(
            told.into_iter().collect::<BTreeSet<_>>(),
            each,
            "{protocol}"
        );
    }
}

fn bump_as(database: &Database, key: IdempotencyKey) {
    let call = Call::new("bumps", (false,)).idempotency_key(key);
    let ticket = database.submit(call).expect("there is room");
    assert!(ticket.wait().expect("it is known").is_committed());
}

/// With a log notifications come when their commits are on disk, also those of calls that no thread
/// waits for; and a call that is repeated tells nothing.
#[test]
fn a_call_that_is_repeated_tells_once() {
    let directory = temporary();
    let options = options().data_dir(Some(directory.path().join("data")));
    let database = open(options.clone());
    let mut listener = session(&database);
    run(&mut listener, "LISTEN counts; LISTEN a");
    for _ in 0..3 {
        let key = IdempotencyKey::new("one").expect("it is short");
        bump_as(&database, key);
    }
    assert_eq!(awaited(&mut listener, 1), ["counts 1"]);
    // The one that submits is told of its own with the outcome.
    let completions = Completions::new(10);
    for turn in 0..20 {
        let text = format!("SELECT pg_notify('a', '{turn}'), bump(false)");
        let statement = listener.parse(&text, &[]).expect("it is SQL");
        let portal = listener
            .bind(&statement, &[])
            .expect("it has no parameters");
        let portal = listener.submit(portal, &completions, turn);
        let mut portal = portal.expect("there is room");
        let mut ended = Vec::new();
        completions.wait(&mut ended, Duration::from_secs(20));
        let ended = ended.pop().expect("it ends");
        listener
            .complete(&mut portal, ended.result)
            .expect("it commits");
        let expected = [format!("a {turn}"), format!("counts {}", turn + 2)];
        assert_eq!(told(&mut listener), expected);
    }
    drop((listener, database));
    // What a recovery does again is no news.
    let database = Database::open(options).expect("it is whole");
    let mut listener = session(&database);
    run(&mut listener, "LISTEN counts; LISTEN a");
    let key = IdempotencyKey::new("one").expect("it is short");
    bump_as(&database, key);
    assert_eq!(told(&mut listener), [""; 0]);
}

/// No listener stalls those that tell: it is ended when it takes nothing.
#[test]
fn a_listener_that_takes_nothing_is_ended() {
    let database = open(options());
    let [mut idle, mut busy, mut sender] = [(); 3].map(|()| session(&database));
    run(&mut idle, "LISTEN a");
    run(&mut busy, "LISTEN a");
    let usage = |session: &mut Session| {
        let usage = session.query("SELECT pg_notification_queue_usage()", ());
        let usage = usage.expect("it is SQL").into_one::<(f64,)>();
        usage.expect("it is a number").0
    };
    assert!(usage(&mut sender).abs() < f64::EPSILON);
    let many = "SELECT pg_notify('a', i || repeat('x', 7000)) FROM generate_series(1, 1000) i";
    for turn in 1..=3 {
        assert_eq!(run(&mut sender, many), "SELECT 1000");
        assert_eq!(told(&mut busy).len(), 1_000);
        assert!(turn == 3 || (usage(&mut sender) - 0.42 * f64::from(turn)).abs() < 0.02);
    }
    assert_eq!(run(&mut idle, "SELECT 1"), "54000");
    let ended = idle.await_notifications(Duration::from_secs(100));
    let ended = ended.expect_err("it is ended");
    assert_eq!(ended.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    drop(idle);
    assert!(usage(&mut sender).abs() < f64::EPSILON);
    assert_eq!(run(&mut busy, "NOTIFY a"), "NOTIFY");
    assert_eq!(told(&mut busy), ["a "]);
}

#[test]
fn a_transaction_tells_so_much() {
    let database = open(options());
    let mut sender = session(&database);
    let many = |from: usize, to: usize| {
        format!(
            "SELECT pg_notify('a', i || repeat('x', 7900)) FROM generate_series({from}, {to}) i"
        )
    };
    assert_eq!(run(&mut sender, &many(1, 10_000)), "54000");
    assert_eq!(run(&mut sender, "BEGIN"), "BEGIN");
    assert_eq!(run(&mut sender, &many(1, 5_000)), "SELECT 5000");
    assert_eq!(
        run(&mut sender, &many(1, 5_000)),
        "SELECT 5000",
        "they are the same"
    );
    assert_eq!(run(&mut sender, &many(5_001, 10_000)), "54000");
    assert_eq!(run(&mut sender, "COMMIT"), "ROLLBACK");
    let listens = (0..10_001).map(|channel| format!("LISTEN c{channel};"));
    let listens: String = listens.collect();
    assert_eq!(run(&mut sender, &listens), "54000");
    assert_eq!(run(&mut sender, "UNLISTEN *; LISTEN again"), "LISTEN");
}
