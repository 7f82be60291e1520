//! Metrics and health over HTTP, while clients are served.

#![cfg(not(kiln_sim))]

mod common;

use common::exposition::{self, Page};
use common::{Talk, database, serve};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::net::{Address, Error, Events, Kind, Poller, Stream, Token};
use kiln_platform::thread;
use kiln_platform::time::now_ns;
use kiln_server::{Server, ServerOptions};
use kiln_sql::{Database, Options};

fn with_admin(options: &mut ServerOptions) {
    options.admin = Some("127.0.0.1:0".parse().expect("an address"));
}

fn admin_of(server: &Server) -> Address {
    server.admin_address().expect("it answers").clone()
}

/// Sends bytes, and returns all that comes until the connection ends.
fn exchange(address: &Address, request: &[u8]) -> String {
    let all = try_exchange(address, request).expect("the connection holds");
    String::from_utf8(all).expect("it is text")
}

fn try_exchange(address: &Address, request: &[u8]) -> Result<Vec<u8>, Error> {
    let mut stream = Stream::connect(address)?;
    let mut poller = Poller::new()?;
    let mut events = Events::with_capacity(4);
    stream.register(&poller, Token(1))?;
    let until_ns = now_ns() + 20_000_000_000;
    let (mut sent, mut received, mut buffer) = (0, Vec::new(), [0; 4_096]);
    while now_ns() < until_ns {
        if sent < request.len() {
            if let Some(count) = stream.write(&request[sent..])? {
                sent += count;
                continue;
            }
        } else {
            match stream.read(&mut buffer) {
                Ok(Some(0)) => return Ok(received),
                Ok(Some(count)) => {
                    received.extend_from_slice(&buffer[..count]);
                    continue;
                }
                Ok(None) => {}
                Err(error) if error.kind() == Kind::Broken => return Ok(received),
                Err(error) => return Err(error),
            }
        }
        poller.wait(&mut events, Some(1_000_000_000))?;
    }
    panic!("no end came");
}

/// The status and the body of what is at a path.
fn get(address: &Address, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: kiln\r\n\r\n");
    let answer = exchange(address, request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").expect("there is a head");
    let length = format!("Content-Length: {}", body.len());
    assert!(head.lines().any(|line| line == length), "{head}");
    let status = head.split(' ').nth(1).expect("there is a status");
    (status.parse().expect("it is a number"), body.to_owned())
}

fn scrape(address: &Address) -> Page {
    let (status, body) = get(address, "/metrics");
    assert_eq!(status, 200);
    exposition::read(&body)
}

fn await_that(mut is_so: impl FnMut() -> bool) {
    let until_ns = now_ns() + 10_000_000_000;
    while !is_so() {
        assert!(now_ns() < until_ns, "it takes too long");
        thread::sleep(10_000_000);
    }
}

/// What a client saw.
#[derive(Debug, Default)]
struct Seen {
    calls: u64,
    sold: u64,
    sold_out: u64,
    inserted: u64,
    duplicates: u64,
    mistakes: u64,
    blocks: u64,
}

fn act(address: &Address, client: u64) -> Seen {
    let mut talk = Talk::begin(address).expect("it is accepted");
    let mut seen = Seen::default();
    for turn in 0..50 {
        seen.calls += 1;
        match talk.run("CALL buy(NULL)").as_str() {
            "CALL" => seen.sold += 1,
            "P0001" => seen.sold_out += 1,
            other => panic!("{other}"),
        }
        match talk
            .run(&format!(
                "INSERT INTO buyer VALUES ({})",
                (client + turn) % 60
            ))
            .as_str()
        {
            "INSERT 0 1" => seen.inserted += 1,
            "23505" => seen.duplicates += 1,
            other => panic!("{other}"),
        }
        if turn % 10 == 0 {
            assert_eq!(talk.run("SELEC 1"), "42601");
            seen.mistakes += 1;
            let text = "BEGIN; UPDATE seat SET sold = sold + 1 WHERE id = 2; COMMIT";
            assert_eq!(talk.run(text), "COMMIT");
            seen.blocks += 1;
        }
    }
    seen
}

#[test]
fn counters_equal_what_clients_saw() {
    const CLIENTS: u64 = 8;
    let database = database();
    let (server, address) = serve(&database, with_admin);
    let admin = admin_of(&server);
    let mut first = Talk::begin(&address).expect("it is accepted");
    first.run(
        "CREATE TABLE seat (id INTEGER PRIMARY KEY, sold INTEGER NOT NULL); INSERT INTO seat VALUES (1, 0), (2, 0); \
         CREATE TABLE buyer (id INTEGER PRIMARY KEY)",
    );
    first.run(
        "CREATE PROCEDURE buy(OUT number INTEGER) LANGUAGE plpgsql AS $$ BEGIN \
         UPDATE seat SET sold = sold + 1 WHERE id = 1 RETURNING sold INTO number; \
         IF number > 300 THEN RAISE EXCEPTION 'sold out'; END IF; END $$",
    );
    let before = scrape(&admin);
    let is_over = AtomicBool::new(false);
    let all = thread::scope(|scope| {
        let scraper = scope.spawn(|| {
            let (mut last, mut pages) = (scrape(&admin), 0);
            while !is_over.load(Ordering::Acquire) {
                let next = scrape(&admin);
                next.check_grew_from(&last);
                (last, pages) = (next, pages + 1);
            }
            pages
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn({
                    let address = &address;
                    move || act(address, client)
                })
            })
            .collect();
        let mut all = Seen::default();
        for client in clients {
            let seen = client.join().expect("it ends");
            all.calls += seen.calls;
            all.sold += seen.sold;
            all.sold_out += seen.sold_out;
            all.inserted += seen.inserted;
            all.duplicates += seen.duplicates;
            all.mistakes += seen.mistakes;
            all.blocks += seen.blocks;
        }
        is_over.store(true, Ordering::Release);
        assert!(scraper.join().expect("it ends") > 0);
        all
    });
    assert!(
        all.sold == 300 && all.sold_out > 0 && all.duplicates > 0,
        "{all:?}"
    );
    let after = scrape(&admin);
    after.check_grew_from(&before);
    let grew = |name: &str, labels: &[(&str, &str)]| {
        (after.get(name, labels) - before.get(name, labels)) as u64
    };
    let committed = all.sold + all.inserted + all.blocks;
    assert_eq!(
        grew("kiln_transactions_total", &[("outcome", "committed")]),
        committed
    );
    let rejected = all.sold_out + all.duplicates;
    assert_eq!(
        grew("kiln_transactions_total", &[("outcome", "rejected")]),
        rejected
    );
    assert_eq!(
        grew("kiln_rejections_total", &[("class", "P0")]),
        all.sold_out
    );
    assert_eq!(
        grew("kiln_rejections_total", &[("class", "23")]),
        all.duplicates
    );
    assert_eq!(grew("kiln_errors_total", &[("class", "P0")]), all.sold_out);
    assert_eq!(
        grew("kiln_errors_total", &[("class", "23")]),
        all.duplicates
    );
    assert_eq!(grew("kiln_errors_total", &[("class", "42")]), all.mistakes);
    assert_eq!(grew("kiln_calls_total", &[("procedure", "buy")]), all.sold);
    let procedure = [("procedure", "buy")];
    assert_eq!(
        grew("kiln_call_duration_seconds_count", &procedure),
        all.calls
    );
    for (command, count) in [
        ("CALL", all.calls),
        ("INSERT", all.inserted + all.duplicates),
        ("UPDATE", all.blocks),
        ("COMMIT", all.blocks),
    ] {
        let labels = [("command", command)];
        assert_eq!(
            grew("kiln_statement_duration_seconds_count", &labels),
            count,
            "{command}"
        );
    }
    assert_eq!(grew("kiln_connections_accepted_total", &[]), CLIENTS);
    assert_eq!(grew("kiln_sessions_begun_total", &[]), CLIENTS);
    assert_eq!(after.get("kiln_table_records", &[("table", "seat")]), 2.0);
    assert!(after.get("process_resident_memory_bytes", &[]) > 1e6);
    await_that(|| scrape(&admin).get("kiln_sessions", &[("state", "idle")]) == 1.0);
    drop(server);
}

#[test]
fn the_oldest_block_is_shown_with_its_owner() {
    let database = database();
    let (server, address) = serve(&database, with_admin);
    let admin = admin_of(&server);
    let mut talk = Talk::begin(&address).expect("it is accepted");
    talk.run("CREATE TABLE seat (id INTEGER PRIMARY KEY)");
    talk.run("SET application_name = 'till \"7\"'");
    assert_eq!(
        scrape(&admin).get("kiln_oldest_block_age_seconds", &[]),
        0.0
    );
    talk.run("BEGIN");
    talk.run("INSERT INTO seat VALUES (1)");
    await_that(|| {
        let page = scrape(&admin);
        page.get("kiln_oldest_block_age_seconds", &[]) > 0.1
            && page.get("kiln_sessions", &[("state", "in_block")]) == 1.0
    });
    let page = scrape(&admin);
    let mut infos = page.metrics.keys();
    let info = infos.find(|(name, _)| name == "kiln_oldest_block_info");
    let labels = &info.expect("there is a block").1;
    let value = |name: &str| {
        labels
            .iter()
            .find(|(label, _)| label == name)
            .map(|it| it.1.as_str())
    };
    assert_eq!(value("role"), Some("kiln"));
    assert_eq!(value("application"), Some("till \"7\""));
    assert!(
        value("client").is_some_and(|it| it.starts_with("127.0.0.1:")),
        "{labels:?}"
    );
    talk.run("COMMIT");
    assert_eq!(
        scrape(&admin).get("kiln_oldest_block_age_seconds", &[]),
        0.0
    );
}

#[test]
fn garbage_harms_nothing() {
    let database = database();
    let (server, address) = serve(&database, with_admin);
    let admin = admin_of(&server);
    for (request, status) in [
        (
            &b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"[..],
            "405",
        ),
        (b"GET /nothing HTTP/1.1\r\n\r\n", "404"),
        (b"\0\0\0\x08\x04\xd2\x16\x2f\r\n\r\n", "400"),
        (&[b'x'; 20_000], "431"),
    ] {
        let answer = exchange(&admin, request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let head = exchange(&admin, b"HEAD /healthz HTTP/1.1\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    // More connections than it has room for, which say nothing: they end, and others are answered
    // then.
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(Stream::connect(&admin).expect("it connects"));
    }
    let request = b"GET /healthz HTTP/1.1\r\n\r\n";
    await_that(|| {
        try_exchange(&admin, request).is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200 "))
    });
    let mut talk = Talk::begin(&address).expect("clients are served meanwhile");
    assert_eq!(talk.value("SELECT 1"), "1");
    drop(silent);
}

#[test]
fn a_server_that_ends_says_so_until_it_has() {
    let database = database();
    let (server, address) = serve(&database, |options| {
        with_admin(options);
        options.drain_s = 2;
    });
    let admin = admin_of(&server);
    assert_eq!(get(&admin, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(scrape(&admin).get("kiln_healthy", &[]), 1.0);
    let mut talk = Talk::begin(&address).expect("it is accepted");
    talk.run("BEGIN");
    thread::scope(|scope| {
        let ending = scope.spawn(|| server.end());
        await_that(|| get(&admin, "/healthz").0 == 503);
        let (_, why) = get(&admin, "/healthz");
        assert!(why.contains("draining"), "{why}");
        assert_eq!(scrape(&admin).get("kiln_healthy", &[]), 0.0);
        ending.join().expect("it ends");
    });
    assert!(try_exchange(&admin, b"GET / HTTP/1.1\r\n\r\n").is_err());
}

#[test]
fn refused_connections_are_counted_by_cause() {
    let database = database();
    let (server, address) = serve(&database, |options| {
        with_admin(options);
        (options.connections_max, options.startup_s) = (2, 1);
    });
    let admin = admin_of(&server);
    let mut silent = Talk::connect(&address).expect("it connects");
    let mut stranger = Talk::connect(&address).expect("it connects");
    let mut third = Talk::connect(&address).expect("it connects");
    third.ask().expect("there is an end");
    stranger.requests.startup(0, &[("user", "ada")]);
    stranger.ask().expect("there is an end");
    silent.ask().expect("there is an end");
    let mut nonsense = Talk::connect(&address).expect("it connects");
    nonsense.send(&[0xff; 64]).expect("it goes out");
    nonsense.ask().expect("there is an end");
    let page = scrape(&admin);
    for (cause, count) in [
        ("too_many_clients", 1.0),
        ("authentication", 1.0),
        ("timeout", 1.0),
        ("other", 1.0),
        ("no_encryption", 0.0),
    ] {
        let labels = [("cause", cause)];
        assert_eq!(
            page.get("kiln_connections_refused_total", &labels),
            count,
            "{cause}"
        );
    }
    assert_eq!(page.get("kiln_authentication_failures_total", &[]), 1.0);
}

#[test]
fn a_log_is_shown_and_that_it_takes_no_more() {
    let parent = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let directory = TemporaryDirectory::within(parent, "kiln-admin").expect("there is room");
    let data = directory.path().join("data");
    let options = Options::new()
        .workers(1)
        .data_dir(Some(data.clone()))
        .log_segment_bytes(16 << 10);
    let database = Database::open(options).expect("it is new");
    let (server, address) = serve(&database, with_admin);
    let admin = admin_of(&server);
    let mut talk = Talk::begin(&address).expect("it is accepted");
    talk.run("CREATE TABLE later (id INTEGER PRIMARY KEY)");
    let report = database.engine().checkpoint().expect("there is room");
    let page = scrape(&admin);
    let written = [("outcome", "written")];
    assert_eq!(page.get("kiln_checkpoints_total", &written), 1.0);
    let took_s = report.elapsed_ns as f64 / 1e9;
    assert_eq!(page.get("kiln_checkpoint_duration_seconds", &[]), took_s);
    assert!((0.0..60.0).contains(&page.get("kiln_checkpoint_age_seconds", &[])));
    assert_eq!(page.get("kiln_read_only", &[]), 0.0);
    // No file can be made in the place of a directory. The next segments are made already, or being
    // made.
    let log = Directory::open(&data.join("log")).expect("it is there");
    let last = log.list().expect("it can be read").len() + 2;
    let place = format!("{last:020}.log");
    log.create_subdirectory(&place).expect("nothing is there");
    let mut inserted = 0;
    while talk.run(&format!("INSERT INTO later VALUES ({inserted})")) == "INSERT 0 1" {
        inserted += 1;
        assert!(inserted < 2_000, "the segments have no room for all of it");
    }
    let after = scrape(&admin);
    after.check_grew_from(&page);
    let grew = |name: &str| after.get(name, &[]) - page.get(name, &[]);
    assert!(grew("kiln_log_entries_total") >= f64::from(inserted));
    let groups = grew("kiln_log_group_entries_count");
    assert!(groups > 0.0 && grew("kiln_log_sync_duration_seconds_count") >= groups);
    assert!(grew("kiln_log_written_bytes_total") > grew("kiln_log_entry_bytes_total"));
    assert_eq!(after.get("kiln_read_only", &[]), 1.0);
    let (status, why) = get(&admin, "/healthz");
    assert!(
        status == 503 && why.contains("read-only") && why.contains(&place),
        "{why}"
    );
    assert_eq!(
        talk.value("SELECT count(*) FROM later"),
        inserted.to_string()
    );
}
