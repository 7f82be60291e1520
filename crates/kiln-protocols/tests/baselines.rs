//! The unsafe baselines do what they exist for, and no more: they are not serializable, which the
//! judge sees, and still break neither memory nor indexes.

#![cfg(feature = "history")]

mod judged;

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_procedure::ir::Step;
use kiln_procedure::{Arguments, Program, ProgramBuilder};
use kiln_protocols::{Common, Observation, Outcome, Protocol, Worker};
use kiln_storage::epoch::Epochs;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

use judged::{Extras, NO_HISTORY, NOTE, Trial, populate, raise, table};

/// Seeds of a protocol's trials. `KILN_SEEDS=FIRST..END` asks for others.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("KILN_SEEDS").ok();
    let bounds = asked.as_deref().and_then(|asked| asked.split_once(".."));
    match bounds {
        Some((first, end)) => {
            let number = |text: &str| text.parse().expect("KILN_SEEDS is FIRST..END");
            number(first)..number(end)
        }
        None if cfg!(kiln_sim) => 0..400,
        None => 0..20,
    }
}

#[test]
fn the_judge_sees_that_baselines_are_unsafe_and_they_come_through() {
    let unsafe_ones = Protocol::ALL.into_iter().filter(|it| !it.is_serializable());
    for protocol in unsafe_ones {
        let (mut serializable, mut anomalies, mut histories_broken) = (0, 0, 0);
        for seed in seeds() {
            let trial = Trial {
                protocol: protocol.into(),
                workers: 2 + seed % 4,
                cores: 2 + seed % 4,
                calls: if cfg!(kiln_sim) { 12 } else { 500 },
                keys: 4 + (seed % 5) as usize,
                limit_ns: None,
                extras: Extras {
                    loops: false,
                    texts: true,
                    deletions: true,
                    primary_keys: true,
                    through_keys: false,
                    chains: false,
                    mix: Default::default(),
                },
                healing: Default::default(),
                lock_queue: Default::default(),
                claims: Default::default(),
                early_aborts: Default::default(),
                deadlock_avoidance: Default::default(),
                listens: false,
                blocks: false,
                seed,
            };
            match trial.judge() {
                Ok((report, _)) if report.is_serializable() => serializable += 1,
                Ok(_) => anomalies += 1,
                Err(error) if error.starts_with(NO_HISTORY) => histories_broken += 1,
                Err(error) => panic!("{trial:?}: {error}"),
            }
        }
        println!(
            "{protocol}: {serializable} trials serializable, {anomalies} with anomalies, \
             {histories_broken} without a sensible history"
        );
        assert!(anomalies > 0, "{protocol} looks serializable");
    }
}

/// Writes the text of the first row, or reads it; then it fails, if it is to be rolled back.
fn of_text(table: &Arc<Table>, writes: bool, rolls_back: bool) -> Arc<Program> {
    let mut b = ProgramBuilder::new("of_text", [("note".to_owned(), DataType::Text)]);
    let items = b.table(table);
    let first = b.constant(DataType::Integer, Value::Integer(0));
    let (item, _) = b.lookup(items, 0, &[first], None);
    match writes {
        true => b.update(items, item, &[(NOTE, b.parameter(0))], None),
        false => {
            let row = b.read(items, item, &[NOTE], None).into();
            b.push(Step::Emit { row });
            b.returns([("note".to_owned(), DataType::Text)].into());
        }
    }
    if rolls_back {
        b.push(raise());
    }
    Arc::new(b.finish())
}

/// A text is of one writer, however many write it and take it back: short ones lie in the row, and
/// long ones elsewhere.
#[test]
fn without_concurrency_control_texts_are_whole() {
    const CALLS: u64 = if cfg!(kiln_sim) { 100 } else { 30_000 };
    for (rolls_back, is_recorded) in [(false, false), (true, false), (false, true), (true, true)] {
        let table = table();
        let epochs = Epochs::new(WORKERS_MAX);
        let common = Arc::new(Common::new(Protocol::None));
        let observation = Observation::new(256 << 20);
        let worker = |seed: u64| {
            let participant = epochs.register().expect("a slot is free");
            let mut worker = Worker::new(&common, participant, Random::from_seed(seed));
            worker.observe(is_recorded.then_some(&observation));
            worker
        };
        populate(&table, &mut worker(0), 1, 1);
        let reads = &of_text(&table, false, false);
        let writes = &of_text(&table, true, rolls_back);
        let write = |mut worker: Worker, letter: &str| {
            for length in 0..CALLS {
                let text = letter.repeat(length as usize * 37 % 80);
                let mut arguments = Arguments::from_values(&[Value::Text(text)]);
                arguments.bind(writes).expect("one text");
                let outcome = worker.call(writes, &arguments, None);
                assert_eq!(matches!(outcome, Outcome::Rejected(_)), rolls_back);
            }
        };
        let read = |mut worker: Worker| {
            let mut arguments = Arguments::from_values(&[Value::Null]);
            arguments.bind(reads).expect("one text");
            for _ in 0..CALLS {
                let outcome = worker.call(reads, &arguments, None);
                assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
                let frame = worker.frame();
                let (_, slots) = frame.rows();
                let text = frame.heap().bytes(slots[0]);
                let is_whole = text == b"first" || text.windows(2).all(|pair| pair[0] == pair[1]);
                assert!(is_whole, "{} is of several writers", text.escape_ascii());
            }
        };
        let (write, read) = (&write, &read);
        thread::scope(|scope| {
            for (seed, letter) in (1..).zip(["a", "b"]) {
                let worker = worker(seed);
                scope.spawn(move || write(worker, letter));
            }
            let worker = worker(3);
            scope.spawn(move || read(worker));
        });
    }
}
