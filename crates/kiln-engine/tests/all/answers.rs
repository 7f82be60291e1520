//! Answers of calls with idempotency keys: listeners get each once, with what the call wrote, and a
//! database that is opened again gives them without running a call.

use std::collections::BTreeMap;

use crate::common::*;
use kiln_engine::{
    Call, CallAnswer, Commit, Completions, Configuration, Engine, IdempotencyKey, Listener,
    Listeners, LogEpoch, LogEpochs, Observed, Protocol, Reply,
};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::{thread, time};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::slot::Heap;
use kiln_storage::types::Value;

/// An account after a commit: its number and its balance.
type Account = (i64, i64);

/// Something with or without an answer that listeners got.
#[derive(Clone)]
struct Told {
    epoch: LogEpoch,
    answer: Option<(String, Vec<u8>)>,
    /// What was written; nothing of a note.
    written: Vec<Account>,
}

/// What all listeners of a database got.
#[derive(Clone)]
struct Heard {
    told: Arc<Mutex<Vec<Told>>>,
    epochs: LogEpochs,
    /// Whether notes are refused.
    refuses: bool,
}

fn owned(answer: &CallAnswer<'_>) -> (String, Vec<u8>) {
    let key = std::str::from_utf8(answer.key).expect("keys are texts");
    (key.to_owned(), answer.bytes.to_vec())
}

impl Listeners for Heard {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(self.clone())
    }

    fn note(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        if self.refuses {
            return None;
        }
        let mut told = lock(&self.told);
        let epoch = self.epochs.current();
        told.push(Told {
            epoch,
            answer: Some(owned(answer)),
            written: Vec::new(),
        });
        Some(epoch)
    }
}

impl Listener for Heard {
    fn committed(&mut self, commit: &Commit<'_>) {
        let mut heap = Heap::new();
        let written = commit.changes.iter().map(|change| {
            let mut column = |column| change.value(column, &mut heap).as_i64();
            let id = column(ID);
            match change.columns().contains(BALANCE) {
                true => (id, column(BALANCE)),
                false => (id, -1),
            }
        });
        let told = Told {
            epoch: commit.epoch,
            answer: commit.answer.as_ref().map(owned),
            written: written.collect(),
        };
        lock(&self.told).push(told);
    }
}

impl Heard {
    fn listen_to(engine: &Engine) -> Heard {
        Heard::attach(engine, false)
    }

    fn attach(engine: &Engine, refuses: bool) -> Heard {
        let heard = Heard {
            told: Arc::default(),
            epochs: engine.log_epochs().clone(),
            refuses,
        };
        let attached = engine.attach_listeners(Arc::new(heard.clone()));
        attached.expect("the protocol isolates transactions");
        heard
    }

    /// What was told with answers, by their keys, and how often.
    fn answers(&self) -> BTreeMap<String, Vec<Told>> {
        let mut answers = BTreeMap::<_, Vec<Told>>::new();
        for told in &*lock(&self.told) {
            if let Some((key, _)) = &told.answer {
                answers.entry(key.clone()).or_default().push(told.clone());
            }
        }
        answers
    }
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).expect("it is short")
}

const ACCOUNTS: i64 = 6;
const BALANCE_FIRST: i64 = 100;
const KEYS: u64 = 48;
const CLIENTS: u64 = 3;

/// What the call with a number does.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Transfer(i64, i64, i64),
    Deposit(i64),
    Open(i64),
    Total,
    Nothing,
}

impl Kind {
    fn of(number: u64) -> Kind {
        let id = (number * 7 % ACCOUNTS as u64) as i64;
        let other = (id + 1 + (number % 5) as i64) % ACCOUNTS;
        match number % 8 {
            0 | 1 => Kind::Transfer(id, other, 3),
            // There is never so much.
            2 => Kind::Transfer(id, other, 1 << 40),
            3 | 4 => Kind::Deposit(id),
            5 => Kind::Open(ACCOUNTS + number as i64 / 16),
            6 => Kind::Total,
            _ => Kind::Nothing,
        }
    }

    fn call(self) -> Call {
        match self {
            Kind::Transfer(from, to, amount) => Call::new("transfer", (from, to, amount)),
            Kind::Deposit(id) => Call::new("deposit", (id, 1_i64)),
            Kind::Open(id) => Call::new("open", (id, 1_i64)),
            Kind::Total => Call::new("total", ()),
            Kind::Nothing => Call::new("nothing", ()),
        }
    }

    /// Whether what a call has written, which was answered like this, can be that.
    fn fits(self, reply: &Reply, written: &[Account]) -> bool {
        let ids: Vec<i64> = written.iter().map(|(id, _)| *id).collect();
        match (self, reply) {
            (_, Reply::Expired) => false,
            (_, Reply::Rejected(_)) | (Kind::Total | Kind::Nothing, _) => written.is_empty(),
            (Kind::Transfer(from, to, _), _) => ids == [from, to] || ids == [to, from],
            // It emits the new balance.
            (Kind::Deposit(id), Reply::Committed(rows)) => {
                written
                    .iter()
                    .all(|account| rows.values() == [[Value::BigInt(account.1)]] && account.0 == id)
                    && written.len() == 1
            }
            (Kind::Open(id), _) => written == [(id, 1)],
        }
    }
}

/// Makes a call in one of the ways in which it can be submitted.
fn make(engine: &Engine, call: Call, way: u64) -> Observed<Reply> {
    match way % 3 {
        0 => engine.execute_observed(call),
        1 => {
            let ticket = engine.submit(call).expect("there is room");
            ticket.wait_observed()
        }
        _ => {
            let queue = Completions::new(1);
            let submitted = engine.submit_to(call, &queue, 1);
            submitted.expect("there is room");
            let mut ended = Vec::new();
            while ended.is_empty() {
                queue.wait(&mut ended, std::time::Duration::from_secs(1));
            }
            let completion = ended.remove(0);
            Observed {
                result: completion.result,
                epoch: completion.observed,
            }
        }
    }
}

/// All serializable protocols, with each of their options.
fn configurations() -> Vec<Configuration> {
    let mut all = Vec::new();
    for protocol in Protocol::serializable() {
        let plain = Configuration::of(protocol);
        all.push(plain);
        let with = |option: &kiln_engine::ProtocolOption| plain.with(*option);
        all.extend(protocol.options().iter().filter_map(|it| with(it).ok()));
    }
    all.push(Configuration::DEFAULT);
    all
}

#[test]
fn each_answer_is_kept_once_with_what_its_call_wrote() {
    for configuration in configurations() {
        let options = small(configuration.protocol).protocol(configuration);
        let engine = &bank(options, ACCOUNTS, BALANCE_FIRST);
        let heard = Heard::listen_to(engine);
        let is_over = &AtomicBool::new(false);
        let replies = thread::scope(|scope| {
            let _over = SetOnDrop(is_over);
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    engine.log_epochs().close();
                    thread::yield_now();
                }
            });
            let clients = (0..CLIENTS).map(|client| {
                scope.spawn(move || {
                    let mut replies = BTreeMap::new();
                    for turn in 0..KEYS {
                        // All clients make all calls, at other times.
                        let number = (turn * 5 + client * 2) % KEYS;
                        let call = Kind::of(number).call();
                        let call = call.idempotency_key(key(&format!("call {number}")));
                        replies.insert(number, make(engine, call, turn + client));
                        // Calls without keys, in between.
                        if turn % 4 == 0 {
                            let deposited = engine.call("deposit", (number as i64 % 2, 1_i64));
                            assert!(deposited.expect("it runs").is_committed());
                        }
                    }
                    replies
                })
            });
            let clients: Vec<_> = clients.collect();
            let clients = clients.into_iter();
            clients
                .map(|client| client.join().expect("it ends"))
                .collect::<Vec<_>>()
        });

        let answers = heard.answers();
        assert_eq!(answers.len() as u64, KEYS, "{configuration}");
        for number in 0..KEYS {
            let told = &answers[&format!("call {number}")];
            let [told] = &told[..] else {
                panic!("{configuration}: call {number} has {} answers", told.len())
            };
            let kind = Kind::of(number);
            let reply = replies[0][&number].result.as_ref().expect("it ran");
            assert!(
                kind.fits(reply, &told.written),
                "{configuration}: {kind:?} was answered {reply:?} and has written {:?}",
                told.written
            );
            for client in &replies {
                let observed = &client[&number];
                assert_eq!(observed.result.as_ref(), Ok(reply), "{configuration}");
                assert!(observed.epoch >= told.epoch, "{configuration}: {kind:?}");
            }
        }
        let unkeyed = lock(&heard.told)
            .iter()
            .filter(|told| told.answer.is_none())
            .count();
        assert_eq!(
            unkeyed as u64,
            CLIENTS * KEYS.div_ceil(4),
            "{configuration}"
        );
        answered_again(&heard, &replies[0]);
    }
}

#[test]
fn the_answer_is_that_of_the_attempt_that_commits() {
    const CALLS: u64 = 60;
    for configuration in configurations() {
        let options = small(configuration.protocol).protocol(configuration);
        let engine = &bank(options, 1, 0);
        let heard = Heard::listen_to(engine);
        thread::scope(|scope| {
            for client in 0..2 {
                scope.spawn(move || {
                    for number in 0..CALLS {
                        let call = Call::new("linger", (0_i64, 1_i64, 2_000_i64));
                        let call = call.idempotency_key(key(&format!("{client}/{number}")));
                        let reply = engine.execute(call);
                        assert!(reply.expect("it runs").is_committed());
                    }
                });
            }
        });
        let again = bank(small(Protocol::Silo), 0, 0);
        for (name, told) in heard.answers() {
            let [told] = &told[..] else {
                panic!("{configuration}: {name} has {} answers", told.len())
            };
            let (_, bytes) = told.answer.as_ref().expect("it has one");
            let answer = CallAnswer {
                key: name.as_bytes(),
                bytes,
            };
            let restored = again.restore_answer(&answer, time::wall_clock_us());
            restored.expect("it is an answer");
            let call = Call::new("linger", (0_i64, 1_i64, 2_000_i64)).idempotency_key(key(&name));
            let rows = again.execute(call).and_then(Reply::rows);
            let rows = rows.expect("it is known");
            let balance = told.written[0].1;
            assert_eq!(rows.values(), [[Value::BigInt(balance)]], "{configuration}");
        }
    }
}

/// A database in which no call would end in the same way gives all answers.
fn answered_again(heard: &Heard, replies: &BTreeMap<u64, Observed<Reply>>) {
    let engine = bank(small(Protocol::Silo), 0, 0);
    for told in &*lock(&heard.told) {
        if let Some((key, bytes)) = &told.answer {
            let key = key.as_bytes();
            let restored = engine.restore_answer(&CallAnswer { key, bytes }, time::wall_clock_us());
            restored.expect("it is an answer");
        }
    }
    let again = Heard::listen_to(&engine);
    for (number, reply) in replies {
        let kind = Kind::of(*number);
        let call = kind.call().idempotency_key(key(&format!("call {number}")));
        let answered = make(&engine, call, *number);
        assert_eq!(answered.epoch, LogEpoch::default());
        assert_eq!(answered.result.as_ref(), reply.result.as_ref(), "{kind:?}");
        let other = Call::new("spin", (1_i64,)).idempotency_key(key(&format!("call {number}")));
        let error = engine.execute(other).expect_err("it is another call's");
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
    }
    assert!(lock(&again.told).is_empty(), "nothing ran");
    assert_eq!(number(&engine, "open", 1), 0);
}

/// Runs `open(id, 1)` without a key; 0 rows.
fn number(engine: &Engine, procedure: &str, id: i64) -> usize {
    let reply = engine.call(procedure, (id, 1_i64)).expect("it runs");
    reply.rows().expect("it commits").len()
}

#[test]
fn a_call_that_expires_or_is_not_kept_leaves_its_key_free() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let heard = Heard::attach(&engine, true);
    let refused = || Call::new("transfer", (0_i64, 0_i64, 5_i64)).idempotency_key(key("a"));
    let deposit = |name: &str| Call::new("deposit", (0_i64, 9_i64)).idempotency_key(key(name));
    let reply = engine.execute(refused()).expect("it runs");
    assert!(matches!(reply, Reply::Rejected(_)), "{reply:?}");
    // The key is free for another call.
    assert!(
        engine
            .execute(deposit("a"))
            .expect("it runs")
            .is_committed()
    );
    assert!(engine.execute(refused()).is_err(), "and now it is not");
    let expires = Call::new("spin", (i64::MAX,)).deadline(std::time::Duration::from_millis(5));
    let expired = engine.execute(expires.idempotency_key(key("b")));
    assert_eq!(expired.expect("it runs"), Reply::Expired);
    assert!(
        engine
            .execute(deposit("b"))
            .expect("it runs")
            .is_committed()
    );
    let keys: Vec<String> = heard.answers().into_keys().collect();
    assert_eq!(keys, ["a", "b"]);
}

#[test]
fn restored_answers_are_forgotten_in_the_order_of_their_calls() {
    const SECOND_US: i64 = 1_000_000;
    let engine = bank(small(Protocol::Silo), 1, 0);
    let heard = Heard::listen_to(&engine);
    for name in ["a", "b", "c", "d"] {
        let call = Call::new("deposit", (0_i64, 1_i64)).idempotency_key(key(name));
        engine.execute(call).expect("it runs");
    }
    let answers = heard.answers();
    let open = || {
        let options = small(Protocol::Silo);
        bank(
            options.idempotency_capacity(2).idempotency_age_s(60),
            1,
            1_000,
        )
    };
    let restore = |engine: &Engine, name: &str, answer: &str, seconds_ago: i64| -> Result<()> {
        let (_, bytes) = answers[answer][0].answer.as_ref().expect("it has one");
        let answer = CallAnswer {
            key: name.as_bytes(),
            bytes,
        };
        engine.restore_answer(&answer, time::wall_clock_us() - seconds_ago * SECOND_US)
    };
    let deposit = |engine: &Engine, name: &str| -> i64 {
        let call = Call::new("deposit", (0_i64, 1_i64)).idempotency_key(key(name));
        let rows = engine.execute(call).and_then(Reply::rows);
        rows.and_then(|rows| rows.typed::<(i64,)>())
            .expect("it commits")[0]
            .0
    };

    let engine = open();
    restore(&engine, "a", "a", 61).expect("it is an answer");
    assert_eq!(deposit(&engine, "a"), 1_001, "it was too old");

    let engine = open();
    for (name, seconds_ago) in [("a", 3), ("c", 1), ("b", 2)] {
        restore(&engine, name, name, seconds_ago).expect("it is an answer");
    }
    assert_eq!((deposit(&engine, "b"), deposit(&engine, "c")), (2, 3));
    assert_eq!(deposit(&engine, "d"), 1_001, "it was never there");
    assert_eq!(deposit(&engine, "b"), 1_002, "the oldest of three goes");

    // The key was used again after the first answer had been forgotten.
    let engine = open();
    for (answer, seconds_ago) in [("a", 3), ("b", 2), ("c", 2), ("a", 9)] {
        restore(&engine, "again", answer, seconds_ago).expect("it is an answer");
    }
    restore(&engine, "d", "d", 1).expect("it is an answer");
    assert_eq!((deposit(&engine, "again"), deposit(&engine, "d")), (3, 4));
    // A call that runs keeps its key.
    assert_eq!(deposit(&engine, "x"), 1_001);
    restore(&engine, "x", "a", 5).expect("it is an answer");
    assert_eq!(deposit(&engine, "x"), 1_001);

    for (name, bytes) in [(&b"\xFF"[..], None), (b"", None), (b"a", Some(&b"\0"[..]))] {
        let (_, whole) = answers["a"][0].answer.as_ref().expect("it has one");
        let answer = CallAnswer {
            key: name,
            bytes: bytes.unwrap_or(whole),
        };
        let error = engine
            .restore_answer(&answer, 0)
            .expect_err("it is damaged");
        assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
    }
}
