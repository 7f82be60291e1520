//! Conversations without sockets: what a client sends, and what it is answered, on the thread that
//! serves all and in one that may wait.

use std::time::Duration;

use kiln_platform::net::Peer;
use kiln_platform::sync::Arc;
use kiln_server::authentication::Authentication;
use kiln_server::client::{Client, Progress, ServerState};
use kiln_server::session::RunsOn;
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

fn shared() -> Arc<ServerState> {
    let database = Database::open(Options::new().workers(1)).expect("there is memory");
    let shared = ServerState::new(database, Limits::default(), Authentication::Automatic);
    Arc::new(shared.expect("there is randomness"))
}

impl Talk {
    fn new(shared: &Arc<ServerState>, is_polled: bool) -> Talk {
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
        let mut runs_on = self.runs_on();
        loop {
            match self.client.advance(runs_on) {
                Progress::Bytes | Progress::End => break,
                Progress::Yield => {}
                Progress::Sending => panic!("there are few answers"),
                Progress::Encryption => panic!("there is none"),
                Progress::Thread => {
                    assert!(self.is_polled, "a thread needs no other one");
                    runs_on = RunsOn::Thread;
                    continue;
                }
                Progress::Outcome => {
                    let mut ended = Vec::new();
                    self.completions.wait(&mut ended, Duration::from_secs(5));
                    for completion in ended {
                        self.client.complete(completion.result, completion.observed);
                    }
                }
            }
            runs_on = self.runs_on();
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

    fn runs_on(&self) -> RunsOn<'static> {
        match self.is_polled {
            // The queue lives as long as the test.
            true => RunsOn::Poller(Box::leak(Box::new(self.completions.clone())), 7),
            false => RunsOn::Thread,
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
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0");
        assert!(talk.query("SELECT * FROM u")[0].starts_with("42P01"));
        talk.query("INSERT INTO t VALUES (1); CREATE TABLE u (id INTEGER PRIMARY KEY)");
        assert_eq!(talk.query("SELECT count(*) FROM t, u")[1], "0");
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
        (&[("user", "kiln"), ("TimeZone", "Nowhere")], "22023"),
        (
            &[("user", "kiln"), ("options", "-c extra_float_digits=99")],
            "22023",
        ),
        (
            &[("user", "kiln"), ("options", "-c server_version=5")],
            "55P02",
        ),
        (&[("user", "kiln"), ("options", "-c role=nosuch")], "22023"),
    ] {
        let mut client = Client::new(shared.clone(), Peer::Unix { user: None });
        let bytes = Requests::default().startup(0, parameters).take();
        client.input().receive(&bytes);
        assert_eq!(client.advance(RunsOn::Thread), Progress::End);
        let mut pending = client.answers().pending();
        let answer = loop {
            let (answer, length) = Answer::split(pending)
                .expect("it is one")
                .expect("it is whole");
            if !matches!(answer, Answer::Authentication(..)) {
                break answer;
            }
            pending = &pending[length..];
        };
        let Answer::Error(fields) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!((fields.get(b'S'), fields.get(b'C')), ("FATAL", state));
    }
    let mut client = Client::new(shared, Peer::Unix { user: None });
    client.input().receive(&Requests::default().tls().take());
    assert_eq!(client.advance(RunsOn::Thread), Progress::Bytes);
    assert_eq!(client.answers().pending(), b"N");
    client.answers().consume(1);
    let newer = Requests::default()
        .startup(9, &[("user", "kiln"), ("_pq_.new", "1")])
        .take();
    client.input().receive(&newer);
    assert_eq!(client.advance(RunsOn::Thread), Progress::Bytes);
    let (answer, _) = Answer::split(client.answers().pending())
        .expect("it is one")
        .expect("it is whole");
    assert_eq!(answer, Answer::NegotiateVersion(2, 1));
}

/// The data of COPY among answers.
fn data(answers: &[Answer]) -> Vec<u8> {
    let data = answers.iter().filter_map(|answer| match answer {
        Answer::CopyData(data) => Some(data.as_slice()),
        _ => None,
    });
    data.collect::<Vec<_>>().concat()
}

#[test]
fn rows_are_copied_in_and_out() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC(8,2))");
        talk.requests.query("COPY t FROM STDIN");
        for piece in ["1\tone\t1.5\n2\t", "\\N\t2", "5.00\n"] {
            talk.requests.copy_data(piece.as_bytes());
        }
        talk.requests.copy_done();
        let copied: Vec<String> = talk.ask().iter().map(line).collect();
        assert_eq!(copied, ["CopyIn(Text, 3)", "COPY 2", "Idle"]);
        talk.requests.query("COPY t TO STDOUT");
        let answers = talk.ask();
        assert_eq!(data(&answers), b"1\tone\t1.50\n2\t\\N\t25.00\n");
        assert_eq!(line(&answers[answers.len() - 2]), "COPY 2");
        // In binary and back, within one text and its transaction.
        talk.requests
            .query("COPY (SELECT id + 10, name FROM t ORDER BY id) TO STDOUT (FORMAT binary)");
        let rows = data(&talk.ask());
        talk.requests
            .query("DELETE FROM t; COPY t (id, name) FROM STDIN WITH BINARY; SELECT id, name, price FROM t ORDER BY id");
        talk.requests.copy_data(&rows).copy_done();
        let answered: Vec<String> = talk.ask().iter().map(line).collect();
        let expected = [
            "DELETE 2",
            "CopyIn(Binary, 2)",
            "COPY 2",
            "[id, name, price]",
            "11|one|NULL",
            "12|NULL|NULL",
            "SELECT 2",
            "Idle",
        ];
        assert_eq!(answered, expected);
    });
}

#[test]
fn a_copy_that_fails_leaves_nothing_and_the_session_goes_on() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL)");
        for (data, state, context) in [
            ("1\ta\n1\tb\n", "23505", "COPY t, line 2"),
            ("1\ta\nx\tb\n", "22P02", "COPY t, line 2, column id"),
            ("1\ta\n2\n", "22P04", "COPY t, line 2"),
            ("1\t\\N\n", "23502", "COPY t, line 1"),
        ] {
            talk.requests.query("COPY t FROM STDIN");
            talk.requests
                .copy_data(data.as_bytes())
                .copy_data(b"7\tz\n")
                .copy_done();
            let answers = talk.ask();
            let Answer::Error(fields) = &answers[1] else {
                panic!("{answers:?}");
            };
            assert_eq!((fields.get(b'C'), fields.get(b'W')), (state, context));
            assert_eq!(line(&answers[2]), "Idle");
            assert_eq!(answers.len(), 3);
            assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0");
        }
        talk.query("BEGIN");
        talk.requests.query("COPY t FROM STDIN");
        talk.requests.copy_data(b"1\ta\n").copy_fail("no more");
        let failed: Vec<String> = talk.ask().iter().map(line).collect();
        assert_eq!(failed[1], "57014: COPY from stdin failed: no more");
        assert_eq!(failed[2], "Failed");
        assert_eq!(talk.query("ROLLBACK"), ["ROLLBACK", "Idle"]);
        talk.requests.query("COPY t FROM STDIN");
        talk.requests.query("SELECT 1");
        let confused: Vec<String> = talk.ask().iter().map(line).collect();
        assert!(confused[1].starts_with("08P01: "), "{confused:?}");
        for (text, state) in [
            ("COPY nothing FROM STDIN", "42P01"),
            ("COPY t (id, colour) FROM STDIN", "42703"),
            ("COPY t (id, id) FROM STDIN", "42701"),
            ("COPY t TO PROGRAM 'sh'", "0A000"),
            ("COPY t FROM STDIN (FORMAT xml)", "22023"),
            ("COPY t FROM STDOUT", "42601"),
            ("COPY (DELETE FROM t) TO STDOUT", "0A000"),
            ("COPY (SELECT 1) FROM STDIN", "42601"),
        ] {
            let refused = talk.query(text);
            assert!(refused[0].starts_with(state), "{text}: {refused:?}");
        }
    });
}

#[test]
fn copied_rows_are_computed_and_fire_triggers() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER, twice INTEGER GENERATED ALWAYS AS (id * 2) STORED, name TEXT)");
        talk.requests.query("COPY t FROM STDIN");
        talk.requests.copy_data(b"1\tone\n2\ttwo\n").copy_done();
        let copied: Vec<String> = talk.ask().iter().map(line).collect();
        assert_eq!(copied, ["CopyIn(Text, 2)", "COPY 2", "Idle"]);
        talk.requests.query("COPY t TO STDOUT");
        assert_eq!(data(&talk.ask()), b"1\tone\n2\ttwo\n");
        talk.requests
            .query("COPY (SELECT twice FROM t ORDER BY id) TO STDOUT");
        assert_eq!(data(&talk.ask()), b"2\n4\n");
        // A row that a trigger keeps away is not counted.
        talk.query(
            "CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF NEW.id % 2 = 0 THEN RETURN NULL; END IF;
                 NEW.name := upper(NEW.name);
                 RETURN NEW;
             END $$;
             CREATE TRIGGER odd BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION odd()",
        );
        talk.requests.query("COPY t FROM STDIN");
        talk.requests
            .copy_data(b"3\tthree\n4\tfour\n5\tfive\n")
            .copy_done();
        let copied: Vec<String> = talk.ask().iter().map(line).collect();
        assert_eq!(copied, ["CopyIn(Text, 2)", "COPY 2", "Idle"]);
        talk.requests
            .query("COPY (SELECT twice, name FROM t WHERE id > 2 ORDER BY id) TO STDOUT");
        assert_eq!(data(&talk.ask()), b"6\tTHREE\n10\tFIVE\n");
        for text in ["COPY t (id, twice) FROM STDIN", "COPY t (twice) TO STDOUT"] {
            let refused = talk.query(text);
            assert!(refused[0].starts_with("42P10"), "{text}: {refused:?}");
        }
    });
}

/// psycopg 3 wants it so.
#[test]
fn what_precedes_binary_rows_comes_with_the_first_of_them() {
    both(|mut talk| {
        for (query, messages) in [
            ("SELECT 1 UNION ALL SELECT 2", 3),
            ("SELECT 1 WHERE FALSE", 1),
        ] {
            let text = format!("COPY ({query}) TO STDOUT (FORMAT binary)");
            talk.requests.query(&text);
            let pieces = talk.ask();
            let pieces = pieces.iter().filter_map(|answer| match answer {
                Answer::CopyData(piece) => Some(piece.as_slice()),
                _ => None,
            });
            let pieces: Vec<&[u8]> = pieces.collect();
            assert_eq!(pieces.len(), messages, "{pieces:?}");
            assert!(pieces[0].starts_with(b"PGCOPY\n\xff\r\n\0"));
            assert!(pieces[0].len() > 19, "something follows");
        }
        talk.requests
            .query("COPY (SELECT 1 AS a) TO STDOUT (FORMAT csv, HEADER)");
        let answers = talk.ask();
        assert_eq!(answers[1], Answer::CopyData(b"a\n".to_vec()));
    });
}

#[test]
fn rows_are_copied_in_the_extended_protocol() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        let requests = &mut talk.requests;
        requests.parse("", "COPY t FROM STDIN", &[]).bind(
            "",
            "",
            (Format::Text, &[]),
            Format::Text,
        );
        // Drivers send a Sync before they know that rows are asked for.
        requests.describe(Target::Portal("")).execute("", 0).sync();
        requests.copy_data(b"1\n2\n").copy_done().sync();
        let copied: Vec<String> = talk.ask().iter().map(line).collect();
        let expected = [
            "ParseComplete",
            "BindComplete",
            "NoData",
            "CopyIn(Text, 1)",
            "COPY 2",
            "Idle",
        ];
        assert_eq!(copied, expected);
        let requests = &mut talk.requests;
        requests
            .parse("", "COPY t FROM STDIN", &[])
            .bind("", "", (Format::Text, &[]), Format::Text)
            .execute("", 0)
            .sync();
        requests
            .copy_data(b"3\nx\n")
            .copy_data(b"4\n")
            .copy_done()
            .sync();
        let failed: Vec<String> = talk.ask().iter().map(line).collect();
        assert!(failed[3].starts_with("22P02"), "{failed:?}");
        assert_eq!(failed[4..], ["Idle"]);
        let requests = &mut talk.requests;
        requests
            .parse("", "COPY t TO STDOUT", &[])
            .bind("", "", (Format::Text, &[]), Format::Text)
            .execute("", 0)
            .sync();
        assert_eq!(data(&talk.ask()), b"1\n2\n");
    });
}

#[test]
fn settings_hold_as_long_as_they_were_set_for() {
    both(|mut talk| {
        let shown = |talk: &mut Talk, name: &str| talk.query(&format!("SHOW {name}"))[1].clone();
        assert_eq!(shown(&mut talk, "application_name"), "test");
        let set = talk.query("SET application_name = 'shop'");
        assert_eq!(set[0], "SET");
        assert!(
            set[1].starts_with("ParameterStatus(\"application_name\", \"shop\")"),
            "{set:?}"
        );
        talk.query("BEGIN");
        talk.query("SET LOCAL statement_timeout = '90s'; SET application_name = 'undone'");
        assert_eq!(shown(&mut talk, "statement_timeout"), "90s");
        talk.query("ROLLBACK");
        assert_eq!(shown(&mut talk, "statement_timeout"), "0");
        assert_eq!(shown(&mut talk, "application_name"), "shop");
        talk.query("BEGIN; SET LOCAL lock_timeout = 5; SET statement_timeout = 1500; COMMIT");
        assert_eq!(shown(&mut talk, "statement_timeout"), "1500ms");
        assert_eq!(shown(&mut talk, "lock_timeout"), "0");
        let outside = talk.query("SET LOCAL lock_timeout = 5");
        assert!(outside[0].starts_with("WARNING: SET LOCAL"), "{outside:?}");
        assert_eq!(
            shown(&mut talk, "transaction isolation level"),
            "serializable"
        );
        talk.query("SET app.user_id = '42'");
        let found = talk.query("SELECT current_setting('app.user_id'), current_setting('app.none', true), current_user");
        assert_eq!(found[1], "42|NULL|kiln");
        let set = talk.query("SELECT set_config('app.user_id', '43', false)");
        assert_eq!(set[1], "43");
        assert_eq!(shown(&mut talk, "app.user_id"), "43");
        assert!(talk.query("SHOW ALL").len() > 40);
        talk.query("DISCARD ALL");
        assert_eq!(shown(&mut talk, "application_name"), "test");
        assert_eq!(shown(&mut talk, "statement_timeout"), "0");
        for (text, state) in [
            ("SHOW app.user_id", "42704"),
            ("SET colour = 'red'", "42704"),
            ("SET server_version = '9'", "55P02"),
            ("SET statement_timeout = 'long'", "22023"),
            ("SET extra_float_digits = 9", "22023"),
            ("SET client_encoding = 'latin1'", "0A000"),
            ("SELECT set_config('search_path', 'a,,b', false)", "22023"),
            ("SET kiln.protocol = 'best'", "22023"),
            ("SELECT current_setting('app.none')", "42704"),
            (
                "SELECT current_setting(name) FROM (SELECT 'x' AS name) AS s",
                "0A000",
            ),
        ] {
            let refused = talk.query(text);
            assert!(
                refused[0].starts_with(state) || refused[1].starts_with(state),
                "{text}: {refused:?}"
            );
        }
        assert_eq!(talk.query("SET kiln.protocol = 'tictoc'"), ["SET", "Idle"]);
        assert_eq!(shown(&mut talk, "kiln.protocol"), "tictoc");
    });
}

#[test]
fn transactions_that_only_read_write_nothing() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        talk.query("BEGIN READ ONLY");
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0");
        let refused = talk.query("INSERT INTO t VALUES (1)");
        assert_eq!(
            refused[0],
            "25006: cannot execute INSERT in a read-only transaction"
        );
        talk.query("ROLLBACK");
        assert_eq!(talk.query("INSERT INTO t VALUES (1)")[0], "INSERT 0 1");
        talk.query("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
        assert!(talk.query("DELETE FROM t")[0].starts_with("25006"));
        talk.query("BEGIN READ WRITE");
        assert_eq!(talk.query("DELETE FROM t")[0], "DELETE 1");
        talk.query("COMMIT; SET default_transaction_read_only = off");
        assert_eq!(talk.query("INSERT INTO t VALUES (1)")[0], "INSERT 0 1");
    });
}

#[test]
fn statements_are_prepared_in_sql_and_by_messages_alike() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
        assert_eq!(
            talk.query("PREPARE put (int, text) AS INSERT INTO t VALUES ($1, $2)")[0],
            "PREPARE"
        );
        assert_eq!(talk.query("EXECUTE put (1 + 1, 'two')")[0], "INSERT 0 1");
        assert_eq!(talk.query("EXECUTE put ('3', NULL)")[0], "INSERT 0 1");
        talk.query("PREPARE get AS SELECT name FROM t WHERE id = $1");
        assert_eq!(
            talk.query("EXECUTE get (2)"),
            ["[name]", "two", "SELECT 1", "Idle"]
        );
        let requests = &mut talk.requests;
        requests
            .bind("", "get", (Format::Text, &[Some(b"2")]), Format::Text)
            .describe(Target::Portal(""))
            .execute("", 0)
            .sync();
        let answered: Vec<String> = talk.ask().iter().map(line).collect();
        assert_eq!(answered[2], "two");
        talk.requests.parse("drop", "SELECT 1", &[]).sync();
        talk.ask();
        assert_eq!(talk.query("DEALLOCATE drop"), ["DEALLOCATE", "Idle"]);
        for (text, state) in [
            ("PREPARE get AS SELECT 1", "42P05"),
            ("EXECUTE none", "26000"),
            ("EXECUTE get", "42601"),
            ("EXECUTE get ('x')", "22P02"),
            ("DEALLOCATE none", "26000"),
            ("PREPARE p AS CREATE TABLE u (id INT)", "42601"),
        ] {
            let refused = talk.query(text);
            assert!(refused[0].starts_with(state), "{text}: {refused:?}");
        }
        assert_eq!(talk.query("DEALLOCATE ALL")[0], "DEALLOCATE ALL");
        assert!(talk.query("EXECUTE get (2)")[0].starts_with("26000"));
    });
}

#[test]
fn cursors_go_forward_and_back_until_their_block_ends() {
    both(|mut talk| {
        talk.query("BEGIN");
        let declared =
            talk.query("DECLARE c CURSOR FOR SELECT i FROM generate_series(1, 5) AS g(i)");
        assert_eq!(declared, ["DECLARE CURSOR", "Open"]);
        let rows = |talk: &mut Talk, which: &str| {
            let answers = talk.query(&format!("FETCH {which} c"));
            let rows = &answers[1..answers.len() - 2];
            rows.join(" ")
        };
        for (which, expected) in [
            ("FROM", "1"),
            ("2 FROM", "2 3"),
            ("PRIOR FROM", "2"),
            ("ABSOLUTE -1 IN", "5"),
            ("FORWARD 1 FROM", ""),
            ("BACKWARD 2 FROM", "5 4"),
            ("RELATIVE -2 FROM", "2"),
            ("FORWARD 0 FROM", "2"),
            ("ALL FROM", "3 4 5"),
            ("BACKWARD ALL FROM", "5 4 3 2 1"),
            ("FIRST FROM", "1"),
            ("LAST FROM", "5"),
        ] {
            assert_eq!(rows(&mut talk, which), expected, "FETCH {which}");
        }
        assert_eq!(talk.query("MOVE BACKWARD 3 IN c"), ["MOVE 3", "Open"]);
        talk.requests.describe(Target::Portal("c")).sync();
        let described: Vec<String> = talk.ask().iter().map(line).collect();
        assert_eq!(described, ["[i]", "Open"]);
        let requests = &mut talk.requests;
        requests.parse("", "FETCH FORWARD 2 FROM c", &[]).bind(
            "",
            "",
            (Format::Text, &[]),
            Format::Binary,
        );
        requests.describe(Target::Portal("")).execute("", 0).sync();
        let fetched = talk.ask();
        assert_eq!(line(&fetched[2]), "[i]");
        assert_eq!(fetched[3], Answer::Row(vec![Some(vec![0, 0, 0, 3])]));
        talk.query("DECLARE d NO SCROLL CURSOR WITH HOLD FOR SELECT 7 AS n");
        talk.query("COMMIT");
        assert!(talk.query("FETCH c")[0].starts_with("34000"));
        assert_eq!(talk.query("FETCH d"), ["[n]", "7", "FETCH 1", "Idle"]);
        assert!(talk.query("FETCH PRIOR FROM d")[0].starts_with("55000"));
        assert_eq!(talk.query("CLOSE d"), ["CLOSE CURSOR", "Idle"]);
        for (text, state) in [
            ("DECLARE c CURSOR FOR SELECT 1", "25P01"),
            ("CLOSE c", "34000"),
            ("FETCH sideways c", "42601"),
            ("DECLARE c BINARY CURSOR FOR SELECT 1", "0A000"),
        ] {
            let refused = talk.query(text);
            assert!(refused[0].starts_with(state), "{text}: {refused:?}");
        }
        assert_eq!(talk.query("CLOSE ALL")[0], "CLOSE CURSOR ALL");
    });
}

#[test]
fn portals_that_messages_have_bound_are_cursors_as_well() {
    both(|mut talk| {
        talk.query("BEGIN");
        let requests = &mut talk.requests;
        let text = "SELECT i FROM generate_series(1, 9) AS g(i)";
        requests.parse("", text, &[]);
        for portal in ["p", "q"] {
            requests.bind(portal, "", (Format::Text, &[]), Format::Binary);
        }
        requests.execute("p", 2).sync();
        let rows: Vec<String> = talk.ask().iter().map(line).collect();
        assert_eq!(rows[5..], ["PortalSuspended", "Open"]);
        assert_eq!(talk.query("MOVE FORWARD 3 IN p"), ["MOVE 3", "Open"]);
        assert_eq!(talk.query("FETCH 2 FROM p")[1..3], ["6", "7"]);
        // One that was never executed, and what is left, in the format of the portal.
        assert_eq!(talk.query("FETCH 1 FROM q")[1], "1");
        talk.requests.execute("q", 1).execute("p", 0).sync();
        let rows = talk.ask();
        assert_eq!(rows[0], Answer::Row(vec![Some(vec![0, 0, 0, 2])]));
        assert_eq!(rows[2], Answer::Row(vec![Some(vec![0, 0, 0, 8])]));
        assert_eq!(line(&rows[4]), "SELECT 2");
        assert_eq!(talk.query("CLOSE q"), ["CLOSE CURSOR", "Open"]);
        assert!(talk.query("FETCH PRIOR FROM p")[0].starts_with("55000"));
        talk.query("ROLLBACK");
        // Portals of messages are gone with the Sync behind their transaction.
        talk.requests.sync();
        talk.ask();
        assert!(talk.query("FETCH p")[0].starts_with("34000"));
        // And the other way round.
        talk.query("BEGIN");
        talk.query("DECLARE c CURSOR FOR SELECT i FROM generate_series(1, 3) AS g(i)");
        talk.requests.execute("c", 2).execute("c", 0).sync();
        let rows: Vec<String> = talk.ask().iter().map(line).collect();
        assert_eq!(rows, ["1", "2", "PortalSuspended", "3", "SELECT 1", "Open"]);
        assert_eq!(talk.query("FETCH FIRST FROM c")[1], "1");
        talk.query("COMMIT");
    });
}

#[test]
fn only_a_clients_own_block_is_chained() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        for end in ["COMMIT", "ROLLBACK"] {
            let refused = talk.query(&format!("INSERT INTO t VALUES (1); {end} AND CHAIN"));
            assert!(refused[1].starts_with("25P01"), "{refused:?}");
            assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0", "{end}");
        }
        let kept = talk.query("BEGIN; INSERT INTO t VALUES (2); COMMIT AND CHAIN");
        assert_eq!(kept, ["BEGIN", "INSERT 0 1", "COMMIT", "Open"]);
        assert_eq!(talk.query("ROLLBACK"), ["ROLLBACK", "Idle"]);
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "1");
    });
}

#[test]
fn savepoints_are_those_of_the_clients_own_block() {
    both(|mut talk| {
        talk.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        let refused = talk.query("INSERT INTO t VALUES (1); SAVEPOINT a");
        assert!(refused[1].starts_with("25P01"), "{refused:?}");
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0");
        assert!(talk.query("SAVEPOINT a")[0].starts_with("25P01"));
        talk.query("BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE NOT DEFERRABLE");
        assert_eq!(
            talk.query("SAVEPOINT a; INSERT INTO t VALUES (1)")[1],
            "INSERT 0 1"
        );
        assert_eq!(talk.query("INSERT INTO t VALUES (1)")[1], "Failed");
        assert_eq!(talk.query("ROLLBACK TO a"), ["ROLLBACK", "Open"]);
        assert_eq!(talk.query("COMMIT"), ["COMMIT", "Idle"]);
        assert_eq!(talk.query("SELECT count(*) FROM t")[1], "0");
    });
}

#[test]
fn a_pool_gives_its_connection_back_clean() {
    both(|mut talk| {
        let reset = "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;";
        let answered = talk.query(reset);
        assert_eq!(answered.last().map(String::as_str), Some("Idle"));
        assert!(
            !answered.iter().any(|line| line.starts_with('4')),
            "{answered:?}"
        );
        assert_eq!(talk.query("VACUUM ANALYZE")[0], "VACUUM");
    });
}
