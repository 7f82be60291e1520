//! Nanoseconds that a value of one sequence takes: `cargo bench -p kiln-storage --bench sequence`.
//!
//! A number after `--` sets how many values each thread draws (default five million). `word` draws
//! from the sequence alone; `call` as a call of a session does, with what it keeps for a further
//! attempt. Figures are those of the fastest of three rounds.

use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::sequence::{
    Draws, Sequence, SequenceDefinition, SequenceId, SequenceLogs, SessionSequences,
};
use kiln_storage::types::DataType;

fn sequence(cache: i64) -> Sequence {
    let definition = SequenceDefinition {
        name: "s".to_owned(),
        data_type: DataType::BigInt,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cache,
        cycle: false,
        owner: None,
    };
    Sequence::new(SequenceId(1), definition, SequenceLogs::default())
}

/// Nanoseconds for each value that a thread draws with `draw`, of the fastest round.
fn fastest(
    threads: usize,
    values: usize,
    cache: i64,
    draw: impl Fn(&Sequence, usize) + Sync,
) -> f64 {
    let round = |_| {
        let sequence = &sequence(cache);
        let draw = &draw;
        let took_ns: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|number| {
                    scope.spawn(move || {
                        thread::pin_to_core(number);
                        let start_ns = time::now_ns();
                        draw(sequence, values);
                        time::now_ns() - start_ns
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|took| took.expect("no thread panics")).sum()
        });
        took_ns as f64 / (threads * values) as f64
    };
    (0..3).map(round).fold(f64::INFINITY, f64::min)
}

fn main() {
    let given = std::env::args().find_map(|argument| argument.parse().ok());
    let values: usize = given.unwrap_or(5_000_000);
    for threads in [1, 2] {
        for cache in [1, 100] {
            let word = fastest(threads, values, cache, |sequence, values| {
                let mut drawn = 0;
                while drawn < values {
                    drawn += sequence.draw().expect("there is a value").count as usize;
                }
            });
            let call = fastest(threads, values, cache, |sequence, values| {
                let session = Arc::new(SessionSequences::default());
                for _ in 0..values {
                    let draws = Draws::of(Some(session.clone()));
                    draws.next(sequence).expect("there is a value");
                }
            });
            println!(
                "{threads} threads, CACHE {cache}: word {word:.1} ns, call {call:.1} ns a value; \
                 {:.1} million values a second of calls",
                threads as f64 * 1e3 / call
            );
        }
    }
}
