//! Random conversations: each message is answered once, in its order, as the protocol says,
//! whatever came before it.

use std::time::Duration;

use kiln_platform::net::Peer;
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_server::authentication::Authentication;
use kiln_server::client::{Client, Progress, ServerState};
use kiln_server::session::RunsOn;
use kiln_sql::{Completions, Database, Options};
use kiln_wire::client::{Answer, Requests};
use kiln_wire::frontend::{Format, Limits, Target};

/// What a message is to be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Anything, and then ReadyForQuery.
    Text,
    /// ReadyForQuery, which ends what an error skips; the commit of the pipeline may fail.
    Sync,
    Parse,
    Bind,
    DescribeStatement,
    DescribePortal,
    Execute,
    Close,
    Nothing,
    /// An error that skips the rest of the pipeline.
    Malformed,
}

const TEXTS: &[&str] = &[
    "SELECT 1",
    "SELECT id, n FROM t ORDER BY id",
    "UPDATE t SET n = n + 1 WHERE id = 1; SELECT 2",
    "INSERT INTO t VALUES (1, 1)",
    "INSERT INTO t VALUES ($1, $2)",
    "SELECT n FROM t WHERE id = $1",
    "CALL bump(1)",
    "DO $$ BEGIN RAISE NOTICE 'so'; END $$",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "BEGIN; UPDATE t SET n = 0",
    "SELECT 1 / 0",
    "selec",
    "",
    " -- nothing",
    "CREATE TABLE u (id INTEGER PRIMARY KEY)",
    "DROP TABLE u",
    "SHOW transaction_isolation",
    "SET synchronous_commit = off",
    "EXPLAIN SELECT 1",
];

/// Appends a random message.
fn ask(requests: &mut Requests, random: &mut Random) -> Asked {
    let text = TEXTS[random.below(TEXTS.len())];
    let name = ["", "a", "b"][random.below(3)];
    let values = [Some(&b"7"[..]), None, Some(b"x")];
    match random.below(18) {
        0 | 1 => {
            requests.query(text);
            Asked::Text
        }
        2..=4 => {
            requests.parse(name, text, &[]);
            Asked::Parse
        }
        5..=7 => {
            let portal = ["", "p"][random.below(2)];
            let values = &values[..random.below(3)];
            requests.bind(portal, name, (Format::Text, values), Format::Binary);
            Asked::Bind
        }
        8 => {
            requests.describe(Target::Statement(name));
            Asked::DescribeStatement
        }
        9 => {
            requests.describe(Target::Portal(["", "p"][random.below(2)]));
            Asked::DescribePortal
        }
        10 | 11 => {
            requests.execute(["", "p"][random.below(2)], random.below(3) as u32);
            Asked::Execute
        }
        12 => match random.below(4) {
            0 => {
                requests.close(Target::Statement(name));
                Asked::Close
            }
            1 => {
                requests.flush();
                Asked::Nothing
            }
            2 => {
                requests.copy_done();
                Asked::Nothing
            }
            _ => {
                requests.raw(b'B', b"\0\0\0\0\0\x01\0\0\0\x09ab");
                Asked::Malformed
            }
        },
        _ => {
            requests.sync();
            Asked::Sync
        }
    }
}

/// Checks the answers against what was asked.
fn check(asked: &[Asked], answers: &[Answer], context: &str) {
    let is_notice = |answer: &&Answer| !matches!(answer, Answer::Notice(_));
    let mut answers = answers.iter().filter(is_notice).peekable();
    let mut skips = false;
    for (position, asked) in asked.iter().enumerate() {
        let context = format!("{context}, message {position}, {asked:?}");
        if skips && *asked != Asked::Sync {
            continue;
        }
        let mut next = || {
            answers
                .next()
                .unwrap_or_else(|| panic!("{context}: no answer"))
        };
        match asked {
            Asked::Nothing => {}
            Asked::Text => while !matches!(next(), Answer::Ready(_)) {},
            Asked::Sync => {
                skips = false;
                let mut answer = next();
                if matches!(answer, Answer::Error(_)) {
                    answer = next();
                }
                assert!(matches!(answer, Answer::Ready(_)), "{context}: {answer:?}");
            }
            _ => {
                let mut answer = next();
                if let (Asked::DescribeStatement, Answer::ParameterDescription(_)) = (asked, answer)
                {
                    answer = next();
                }
                while let (Asked::Execute, Answer::Row(_)) = (asked, answer) {
                    answer = next();
                }
                skips = matches!(answer, Answer::Error(_));
                let is_right = match asked {
                    Asked::Parse => *answer == Answer::ParseComplete,
                    Asked::Bind => *answer == Answer::BindComplete,
                    Asked::Close => *answer == Answer::CloseComplete,
                    Asked::DescribeStatement | Asked::DescribePortal => {
                        matches!(answer, Answer::RowDescription(_) | Answer::NoData)
                    }
                    Asked::Execute => matches!(
                        answer,
                        Answer::CommandComplete(_) | Answer::EmptyQuery | Answer::PortalSuspended
                    ),
                    _ => false,
                };
                assert!(is_right || skips, "{context}: {answer:?}");
            }
        }
    }
    assert_eq!(answers.next(), None, "{context}: one answer too many");
}

fn converse(shared: &Arc<ServerState>, completions: &Arc<Completions>, seed: u64) {
    let mut random = Random::from_seed(seed);
    let mut client = Client::new(shared.clone(), Peer::Unix { user: None });
    let mut requests = Requests::default();
    requests.startup(0, &[("user", "kiln")]);
    let mut asked: Vec<Asked> = (0..30).map(|_| ask(&mut requests, &mut random)).collect();
    requests.sync();
    asked.push(Asked::Sync);
    let (bytes, mut sent) = (requests.take(), 0);
    let mut runs_on = RunsOn::Poller(completions, 0);
    loop {
        let progress = client.advance(runs_on);
        runs_on = RunsOn::Poller(completions, 0);
        match progress {
            Progress::Bytes if sent == bytes.len() => break,
            Progress::Bytes => {
                let room = client.input().room().min(bytes.len() - sent);
                let length = 1 + random.below(room.min(90));
                client.input().receive(&bytes[sent..sent + length]);
                sent += length;
            }
            Progress::Thread => runs_on = RunsOn::Thread,
            Progress::Outcome => {
                let mut ended = Vec::new();
                completions.wait(&mut ended, Duration::from_secs(5));
                for completion in ended {
                    client.complete(completion.result, completion.observed);
                }
            }
            Progress::Yield => {}
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    let (mut answers, mut at) = (Vec::new(), 0);
    let pending = client.answers().pending();
    while let Some((answer, length)) = Answer::split(&pending[at..]).expect("it is one") {
        answers.push(answer);
        at += length;
    }
    assert_eq!(at, pending.len(), "seed {seed}: answers are whole");
    let greeting = answers
        .iter()
        .position(|answer| matches!(answer, Answer::Ready(_)));
    let greeting = greeting.expect("it was greeted") + 1;
    check(&asked, &answers[greeting..], &format!("seed {seed}"));
}

#[test]
fn each_message_is_answered_once() {
    let database = Database::open(Options::new().workers(1)).expect("there is memory");
    let shared = ServerState::new(database, Limits::default(), Authentication::Automatic);
    let shared = Arc::new(shared.expect("there is randomness"));
    (shared.database)
        .execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER);
             INSERT INTO t VALUES (1, 0), (2, 0), (3, 0);
             CREATE PROCEDURE bump(which INTEGER) LANGUAGE plpgsql AS $$
             BEGIN UPDATE t SET n = n + 1 WHERE id = which; END $$",
        )
        .expect("it is right");
    let completions = Completions::new(10);
    for seed in 0..1_000 {
        converse(&shared, &completions, seed);
    }
    assert_eq!(shared.cancellations.sessions(), 0);
}
