//! Conversations without sockets: what a client sends, and what it is answered, on the thread that serves all and in one that may wait.

use std::time::Duration;

use kiln_platform::net::Peer;
use kiln_platform::sync::Arc;
use kiln_server::authentication::Authentication;
use kiln_server::client::{Client, Progress, Shared};
use kiln_server::session::Place;
use kiln_sql::{Completions, Database, Options};
use kiln_wire::backend::TransactionStatus::{self, Failed, Idle, Open};
use kiln_wire::client::{Answer, Requests};
use kiln_wire::frontend::{Format, Limits, Target};

/// A client, and whether what may wait is all that threads do for it.
struct Talk {
    client: Client,
    completions: Arc<Completions>,
    is_polled: bool,
    requests: Requests,
}

fn shared() -> Arc<Shared> {
    let database = Database::open(Options::new().workers(1)).expect("there is memory");
    let shared = Shared::new(database, Limits::default(), Authentication::Automatic);
    Arc::new(shared.expect("there is randomness"))
}

impl Talk {
    fn new(shared: &Arc<Shared>, is_polled: bool) -> Talk {
        let mut talk = Talk {
            client: Client::new(shared.clone(), Peer::Unix { user: None }),
            completions: Completions::new(10),
            is_polled,
            requests: Requests::default(),
        };
        talk.requests
            .startup(0, &[("user", "kiln"), ("application_name", "test")]);
        let greeting = talk.ask();
        assert_eq!(
            greeting.first(),
            Some(&Answer::Authentication(0, Vec::new()))
        );
        assert_eq!(greeting.last(), Some(&Answer::Ready(Idle)));
        talk
    }

    /// Sends what was asked, and reads all answers.
    fn ask(&mut self) -> Vec<Answer> {
        let bytes = self.requests.take();
        // In pieces: none of them may matter.
        for piece in bytes.chunks(7) {
            self.client.input().receive(piece);
        }
        let mut place = self.place();
        loop {
            match self.client.advance(place) {
                Progress::Bytes | Progress::End => break,
                Progress::Turn => {}
                Progress::Sending => panic!("there are few answers"),
                Progress::Encryption => panic!("there is none"),
                Progress::Thread => {
                    assert!(self.is_polled, "a thread needs no other one");
                    place = Place::Thread;
                    continue;
                }
                Progress::Outcome => {
                    let mut ended = Vec::new();
                    self.completions.wait(&mut ended, Duration::from_secs(5));
                    for completion in ended {
                        self.client.complete(completion.result);
                    }
                }
            }
            place = self.place();
        }
        let answers = self.client.answers();
        let (mut read, mut at) = (Vec::new(), 0);
        while let Some((answer, length)) =
            Answer::split(&answers.pending()[at..]).expect("it is one")
        {
            read.push(answer);
            at += length;
        }
        assert_eq!(at, answers.len(), "answers are whole");
        answers.consume(at);
        read
    }

    fn place(&self) -> Place<'static> {
        match self.is_polled {
            // The queue lives as long as the test.
            true => Place::Poller(Box::leak(Box::new(self.completions.clone())), 7),
            false => Place::Thread,
        }
    }

    fn query(&mut self, text: &str) -> Vec<String> {
        self.requests.query(text);
        self.ask().iter().map(line).collect()
    }
}

/// An answer in a few words.
fn line(answer: &Answer) -> String {
    match answer {
        Answer::Row(values) => {
            let values = values.iter().map(|value| match value {
                None => "NULL".to_owned(),
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            });
            values.collect::<Vec<_>>().join("|")
        }
        Answer::RowDescription(columns) => {
            let names = columns.iter().map(|(name, _, _)| name.as_str());
            format!("[{}]", names.collect::<Vec<_>>().join(", "))
        }
        Answer::CommandComplete(tag) => tag.clone(),
        Answer::Error(fields) => match fields.get(b'P') {
            "" => format!("{}: {}", fields.get(b'C'), fields.get(b'M')),
            place => format!("{} at {place}: {}", fields.get(b'C'), fields.get(b'M')),
        },
        Answer::Notice(fields) => format!("{}: {}", fields.get(b'S'), fields.get(b'M')),
        Answer::Ready(status) => format!("{status:?}"),
        other => format!("{other:?}"),
    }
}

/// Runs a conversation on both kinds of threads.
fn both(conversation: impl Fn(Talk)) {
    for is_polled in [false, true] {
        let shared = shared();
        conversation(Talk::new(&shared, is_polled));
        assert_eq!(shared.cancellations.sessions(), 0);
    }
}

#[test]
fn texts_are_answered_statement_by_statement() {
    both(|mut talk| {
        assert_eq!(talk.query(""), ["EmptyQuery", "Idle"]);
        assert_eq!(talk.query(" ; -- ping"), ["EmptyQuery", "Idle"]);
        let made = talk.query("CREATE TABLE seat (id INTEGER PRIMARY KEY, free INTEGER)");
        assert_eq!(made, ["CREATE TABLE", "Idle"]);
        let two = talk.query("INSERT INTO seat VALUES (1, 40); SELECT free, NULL AS no FROM seat");
        assert_eq!(
            two,
            ["INSERT 0 1", "[free, no]", "40|NULL", "SELECT 1", "Idle"]
        );
        let one = talk.query("UPDATE seat SET free = free - 1 WHERE id = 1 RETURNING free");
        assert_eq!(one, ["[free]", "39", "UPDATE 1", "Idle"]);
        let wrong = talk.query("SELECT free FROM seats");
        assert_eq!(wrong.len(), 2);
        assert!(wrong[0].starts_with("42P01 at 18: "), "{wrong:?}");
        let wrong = talk.query("SELECT 1;\n SELECT nothing");
        assert!(wrong[3].starts_with("42703 at 19: "), "{wrong:?}");
        let failed = talk.query("SELECT 1 / (free - 39) FROM seat");
        assert!(failed[0].starts_with("22012: "), "{failed:?}");
    });
}

#[test]
fn several_statements_are_one_transaction() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        let failed = talk.query("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)");
        assert_eq!(failed[0], "INSERT 0 1");
        assert!(failed[1].starts_with("23505: "), "{failed:?}");
        assert_eq!(failed[2], "Idle");
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0");
        talk.query("INSERT INTO t VALUES (1); CREATE TABLE u (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)");
        assert_eq!(
            talk.query("SELECT count(*) FROM t")[1],
            "1",
            "a definition commits"
        );
        let begun = talk.query("INSERT INTO t VALUES (2); BEGIN; INSERT INTO t VALUES (3)");
        assert_eq!(begun, ["INSERT 0 1", "BEGIN", "INSERT 0 1", "Open"]);
        assert_eq!(talk.query("ROLLBACK"), ["ROLLBACK", "Idle"]);
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "1");
    });
}

#[test]
fn a_block_is_open_until_its_end_and_fails_with_its_statements() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        assert_eq!(talk.query("BEGIN"), ["BEGIN", "Open"]);
        assert_eq!(
            talk.query("INSERT INTO t VALUES (1)"),
            ["INSERT 0 1", "Open"]
        );
        let failed = talk.query("SELECT x");
        assert_eq!(failed[1], "Failed");
        let refused = talk.query("SELECT 1");
        assert!(refused[0].starts_with("25P02: "), "{refused:?}");
        assert_eq!(talk.query("COMMIT"), ["ROLLBACK", "Idle"]);
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0");
        let warned = talk.query("COMMIT");
        assert_eq!(warned[0], "WARNING: there is no transaction in progress");
        talk.query("BEGIN");
        // What the protocol refuses fails the block as well.
        talk.requests.describe(Target::Statement("none")).sync();
        let refused: Vec<_> = talk.ask().iter().map(line).collect();
        assert_eq!(refused[1], format!("{:?}", Failed));
    });
}

#[test]
fn statements_are_prepared_bound_described_and_run() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(9)); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
        let values = [Some(&b"1"[..])];
        (talk.requests)
            .parse(
                "s",
                "SELECT id, name FROM t WHERE id >= $1 ORDER BY id",
                &[],
            )
            .describe(Target::Statement("s"))
            .bind("", "s", (Format::Text, &values), Format::Text)
            .describe(Target::Portal(""))
            .execute("", 2)
            .execute("", 0)
            .sync();
        let answers: Vec<_> = talk.ask().iter().map(line).collect();
        let expected = [
            "ParseComplete",
            "ParameterDescription([23])",
            "[id, name]",
            "BindComplete",
            "[id, name]",
            "1|a",
            "2|b",
            "PortalSuspended",
            "3|c",
            "SELECT 1",
            "Idle",
        ];
        assert_eq!(answers, expected);
        (talk.requests)
            .bind("", "s", (Format::Text, &values), Format::Text)
            .execute("", 0)
            .sync();
        assert_eq!(talk.ask().len(), 6);
        // The portal is gone with its transaction, the statement stays.
        talk.requests.execute("", 0).sync();
        let refused: Vec<_> = talk.ask().iter().map(line).collect();
        assert!(refused[0].starts_with("34000: "), "{refused:?}");
        talk.requests.parse("s", "SELECT 1", &[]).sync();
        let refused: Vec<_> = talk.ask().iter().map(line).collect();
        assert!(refused[0].starts_with("42P05: "), "{refused:?}");
    });
}

#[test]
fn a_pipeline_is_one_transaction_and_an_error_skips_its_rest() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        talk.requests.parse("i", "INSERT INTO t VALUES ($1)", &[]);
        for id in [1_u8, 2, 1, 3] {
            let text = [b'0' + id];
            let values = [Some(&text[..])];
            (talk.requests)
                .bind("", "i", (Format::Text, &values), Format::Text)
                .execute("", 0);
        }
        talk.requests.sync();
        let answers: Vec<_> = talk.ask().iter().map(line).collect();
        assert_eq!(
            answers[..3],
            ["ParseComplete", "BindComplete", "INSERT 0 1"]
        );
        assert!(answers[6].starts_with("23505: "), "{answers:?}");
        assert_eq!(answers[7..], ["Idle"]);
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0");
        for id in [1_u8, 2] {
            let text = [b'0' + id];
            let values = [Some(&text[..])];
            (talk.requests)
                .bind("", "i", (Format::Text, &values), Format::Text)
                .execute("", 0);
        }
        let unfinished: Vec<_> = talk.requests.flush().take();
        talk.client.input().receive(&unfinished);
        assert_eq!(talk.ask().len(), 4, "answers come before the sync");
        talk.requests.sync();
        assert_eq!(talk.ask(), [Answer::Ready(Idle)]);
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "2");
    });
}

#[test]
fn a_client_that_goes_leaves_no_block_behind() {
    let shared = shared();
    let mut one = Talk::new(&shared, true);
    one.query("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)");
    let open: TransactionStatus = Open;
    assert_eq!(one.query("BEGIN; DELETE FROM t")[2], format!("{open:?}"));
    drop(one);
    let mut other = Talk::new(&shared, true);
    assert_eq!(other.query("SELECT count(*) FROM t")[1], "1");
}

#[test]
fn strangers_are_refused_with_a_reason() {
    let shared = shared();
    for (parameters, state) in [
        (&[("user", "ada")][..], "28000"),
        (&[("user", "kiln"), ("database", "shop")], "3D000"),
        (&[("user", "kiln"), ("replication", "true")], "0A000"),
        (&[], "28000"),
    ] {
        let mut client = Client::new(shared.clone(), Peer::Unix { user: None });
        let bytes = Requests::default().startup(0, parameters).take();
        client.input().receive(&bytes);
        assert_eq!(client.advance(Place::Thread), Progress::End);
        let (answer, _) = Answer::split(client.answers().pending())
            .expect("it is one")
            .expect("it is whole");
        let Answer::Error(fields) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!((fields.get(b'S'), fields.get(b'C')), ("FATAL", state));
    }
    let mut client = Client::new(shared, Peer::Unix { user: None });
    client.input().receive(&Requests::default().tls().take());
    assert_eq!(client.advance(Place::Thread), Progress::Bytes);
    assert_eq!(client.answers().pending(), b"N");
    client.answers().consume(1);
    let newer = Requests::default()
        .startup(9, &[("user", "kiln"), ("_pq_.new", "1")])
        .take();
    client.input().receive(&newer);
    assert_eq!(client.advance(Place::Thread), Progress::Bytes);
    let (answer, _) = Answer::split(client.answers().pending())
        .expect("it is one")
        .expect("it is whole");
    assert_eq!(answer, Answer::NegotiateVersion(2, 1));
}
