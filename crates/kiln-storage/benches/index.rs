//! Nanoseconds per operation of both indexes: `cargo bench -p kiln-storage --bench index`.
//!
//! A number after `--` sets how many keys (default one million), a word picks the groups whose
//! name holds it (`hash u64`, `tree u128`, `queue`, `epoch`); `--quick` is a run of some seconds,
//! for checking that the benchmark works. Figures are the least and the median of the rounds: on
//! a busy machine the least is what the code needs.

use std::hint::black_box;
use std::ops::Bound;

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::index::{HashIndex, Insertion, Key, LeafBatch, Lookup, OrderedIndex};

/// How much is measured.
#[derive(Clone, Copy)]
struct Scale {
    keys: usize,
    rounds: usize,
}

/// Runs `body` on that many pinned threads, each with its number, and returns the nanoseconds
/// that an operation took on average on one thread; `operations` is the number per thread.
fn timed(
    threads: usize,
    operations: usize,
    body: impl Fn(usize, &Participant) + Send + Sync + 'static,
) -> f64 {
    let epochs = Epochs::new(threads);
    let body = Arc::new(body);
    let handles: Vec<_> = (0..threads)
        .map(|number| {
            let participant = epochs.register().expect("one slot per thread");
            let body = Arc::clone(&body);
            thread::spawn("bench", move || {
                thread::pin_to_core(number);
                participant.enter();
                let start = time::now_ns();
                body(number, &participant);
                let passed = time::now_ns() - start;
                participant.leave();
                passed
            })
            .expect("a thread")
        })
        .collect();
    let total: u64 = handles
        .into_iter()
        .map(|handle| handle.join().expect("a thread that ends"))
        .sum();
    total as f64 / (threads * operations) as f64
}

/// One line of the output.
fn report(what: &str, keys: &str, threads: usize, mut figures: Vec<f64>) {
    figures.sort_by(f64::total_cmp);
    let (least, median) = (figures[0], figures[figures.len() / 2]);
    println!("{what:<34} {keys:<5} {threads} {least:>8.1} {median:>8.1}");
}

fn permutation(seed: u64, length: usize) -> Arc<[u32]> {
    let mut order: Vec<u32> = (0..length as u32).collect();
    Random::from_seed(seed).shuffle(&mut order);
    order.into()
}

/// The part of a slice that is thread `number`'s.
fn part<T>(all: &[T], number: usize, threads: usize) -> &[T] {
    let length = all.len() / threads;
    &all[number * length..(number + 1) * length]
}

fn expect_inserted(insertion: Insertion) {
    assert!(matches!(insertion, Insertion::Inserted(_)));
}

fn bench_hash<K: Key>(name: &str, key: fn(u64) -> K, threads: usize, scale: Scale) {
    let keys = scale.keys;
    let order = permutation(1, keys);
    let mut figures: [Vec<f64>; 6] = Default::default();
    for _ in 0..scale.rounds {
        for (figure, capacity) in [(0, 0), (1, keys)] {
            let index = Arc::new(HashIndex::<K>::with_capacity(capacity));
            let (shared, keys_order) = (Arc::clone(&index), Arc::clone(&order));
            figures[figure].push(timed(
                threads,
                keys / threads,
                move |number, participant| {
                    for &number in part(&keys_order, number, threads) {
                        let payload = u64::from(number) + 1;
                        expect_inserted(shared.insert(
                            &key(u64::from(number)),
                            payload,
                            participant,
                        ));
                    }
                },
            ));
            if capacity == 0 {
                continue;
            }
            for (figure, offset) in [(2, 0), (3, keys as u64)] {
                let (shared, keys_order) = (Arc::clone(&index), permutation(2, keys));
                figures[figure].push(timed(threads, keys / threads, move |number, _| {
                    for &number in part(&keys_order, number, threads) {
                        let found = shared.get(&key(u64::from(number) + offset));
                        assert_eq!(matches!(black_box(found), Lookup::Found(_)), offset == 0);
                    }
                }));
            }
            // Each key depends on the payload before it, so that nothing overlaps.
            let shared = Arc::clone(&index);
            figures[4].push(timed(threads, keys / threads, move |number, _| {
                let mut next = number as u64;
                for _ in 0..keys / threads {
                    let Lookup::Found(payload) = shared.get(&key(next)) else {
                        panic!("{next} was inserted");
                    };
                    next = (payload.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % keys as u64;
                }
            }));
            let (shared, keys_order) = (Arc::clone(&index), permutation(3, keys));
            figures[5].push(timed(
                threads,
                keys / threads,
                move |number, participant| {
                    for &number in part(&keys_order, number, threads) {
                        let payload = u64::from(number) + 1;
                        assert!(shared.remove(&key(u64::from(number)), payload, participant));
                    }
                },
            ));
        }
    }
    let names = [
        "hash insert, growing from nothing",
        "hash insert, created large enough",
        "hash get, random",
        "hash get, missing",
        "hash get, each after the last",
        "hash remove, random",
    ];
    for (what, figures) in names.into_iter().zip(figures) {
        report(what, name, threads, figures);
    }
}

fn bench_ordered<K: Key>(name: &str, key: fn(u64) -> K, threads: usize, scale: Scale) {
    const SCAN: usize = 20;
    let keys = scale.keys;
    let order = permutation(1, keys);
    let mut figures: [Vec<f64>; 9] = Default::default();
    for _ in 0..scale.rounds {
        // Each thread appends to a range of its own, as districts do.
        let appended = Arc::new(OrderedIndex::<K>::new());
        let shared = Arc::clone(&appended);
        figures[0].push(timed(
            threads,
            keys / threads,
            move |number, participant| {
                let first = (number * keys / threads) as u64;
                for number in first..first + (keys / threads) as u64 {
                    expect_inserted(shared.insert(&key(number), number + 1, participant));
                }
            },
        ));
        let index = Arc::new(OrderedIndex::<K>::new());
        let (shared, keys_order) = (Arc::clone(&index), Arc::clone(&order));
        figures[1].push(timed(
            threads,
            keys / threads,
            move |number, participant| {
                for &number in part(&keys_order, number, threads) {
                    let payload = u64::from(number) + 1;
                    expect_inserted(shared.insert(&key(u64::from(number)), payload, participant));
                }
            },
        ));
        for (figure, index) in [(2, &appended), (3, &index)] {
            let (shared, keys_order) = (Arc::clone(index), permutation(2, keys));
            figures[figure].push(timed(threads, keys / threads, move |number, _| {
                for &number in part(&keys_order, number, threads) {
                    let found = shared.get(&key(u64::from(number)));
                    assert!(matches!(black_box(found), Lookup::Found(_)));
                }
            }));
        }
        let shared = Arc::clone(&index);
        figures[4].push(timed(threads, keys / threads, move |number, _| {
            let mut next = number as u64;
            for _ in 0..keys / threads {
                let Lookup::Found(payload) = shared.get(&key(next)) else {
                    panic!("{next} was inserted");
                };
                next = (payload.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % keys as u64;
            }
        }));
        let scans = [(5, &appended, false), (6, &index, false), (7, &index, true)];
        for (figure, index, reverse) in scans {
            let (shared, starts) = (Arc::clone(index), permutation(4, keys - SCAN));
            let operations = keys / 5 / threads;
            figures[figure].push(timed(threads, operations, move |number, _| {
                let mut batch = LeafBatch::new();
                for &start in &part(&starts, number, threads)[..operations] {
                    let start = u64::from(start);
                    let mut cursor = shared.cursor(
                        Bound::Included(key(start)),
                        Bound::Excluded(key(start + SCAN as u64)),
                        reverse,
                    );
                    let mut found = 0;
                    while cursor.next_leaf(&mut batch) {
                        found += black_box(batch.payloads()).len();
                    }
                    assert_eq!(found, SCAN);
                }
            }));
        }
        let (shared, keys_order) = (Arc::clone(&index), permutation(3, keys));
        figures[8].push(timed(
            threads,
            keys / threads,
            move |number, participant| {
                for &number in part(&keys_order, number, threads) {
                    let payload = u64::from(number) + 1;
                    assert!(shared.remove(&key(u64::from(number)), payload, participant));
                }
            },
        ));
    }
    let names = [
        "tree insert, append",
        "tree insert, random",
        "tree get, random, after append",
        "tree get, random, after random",
        "tree get, each after the last",
        "tree scan of 20, after append",
        "tree scan of 20, after random",
        "tree reverse scan of 20",
        "tree remove, random",
    ];
    for (what, figures) in names.into_iter().zip(figures) {
        report(what, name, threads, figures);
    }
}

/// The least of each district is removed and a new greatest inserted: TPC-C's new_order.
fn bench_queue(threads: usize, scale: Scale) {
    let mut figures = Vec::new();
    for _ in 0..scale.rounds {
        let index = Arc::new(OrderedIndex::<u64>::with_prefix_bits(24));
        let shared = Arc::clone(&index);
        let operations = scale.keys / threads;
        figures.push(timed(threads, operations, move |number, participant| {
            let mut batch = LeafBatch::new();
            let district = |order: usize| (number * 10 + order % 10) as u64;
            for order in 0..operations {
                let prefix = district(order) << 40;
                let order = order as u64 / 10;
                expect_inserted(shared.insert(&(prefix | order), order + 1, participant));
                if order < 900 {
                    continue;
                }
                let (lower, upper) = (Bound::Included(prefix), Bound::Excluded(prefix + (1 << 40)));
                let mut cursor = shared.cursor(lower, upper, false);
                while cursor.next_leaf(&mut batch) && batch.count == 0 {}
                let least = batch.payloads[0];
                assert_eq!(least, order - 899);
                assert!(shared.remove(&(prefix | (least - 1)), least, participant));
            }
        }));
    }
    report("tree queue: insert, min, remove", "u64", threads, figures);
}

fn bench_epochs(threads: usize, scale: Scale) {
    let mut figures = Vec::new();
    for _ in 0..scale.rounds {
        let operations = scale.keys * 4;
        figures.push(timed(threads, operations, move |_, participant| {
            for _ in 0..operations {
                black_box(participant.enter());
                participant.leave();
            }
        }));
    }
    report("epoch enter and leave", "", threads, figures);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let keys = arguments.iter().find_map(|argument| argument.parse().ok());
    let scale = Scale {
        keys: keys.unwrap_or(if quick { 20_000 } else { 1_000_000 }),
        rounds: if quick { 1 } else { 5 },
    };
    let picked = |group: &str| {
        let mut words = arguments[1..]
            .iter()
            .filter(|word| !word.starts_with('-') && word.parse::<usize>().is_err())
            .peekable();
        words.peek().is_none() || words.any(|word| group.contains(word.as_str()))
    };
    println!(
        "{:<34} {:<5} T    least   median   (ns each; {} keys, {} rounds)",
        "operation", "keys", scale.keys, scale.rounds
    );
    for threads in [1, 2] {
        let wide = |number| u128::from(number) << 40;
        if picked("hash u64") {
            bench_hash::<u64>("u64", |number| number, threads, scale);
        }
        if picked("tree u64") {
            bench_ordered::<u64>("u64", |number| number, threads, scale);
        }
        if picked("hash u128") {
            bench_hash::<u128>("u128", wide, threads, scale);
        }
        if picked("tree u128") {
            bench_ordered::<u128>("u128", wide, threads, scale);
        }
        if picked("queue") {
            bench_queue(threads, scale);
        }
        if picked("epoch") {
            bench_epochs(threads, scale);
        }
    }
}
