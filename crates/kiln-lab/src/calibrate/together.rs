//! What two cores measure with each other.

use std::hint::black_box;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::{thread, time};

use super::lines::Lines;
use super::sample::Sample;

/// What it costs to get lines from another core, each per operation.
pub struct Together {
    /// Handing a flag over: the one sees what the other has stored, and stores in turn.
    pub ping_pong: Sample,
    /// One of both cores' atomic additions to the same word, while both make them as fast as they
    /// can.
    pub contended_atomic: Sample,
    /// A dependent load of a line that the other core has modified.
    pub modified: Sample,
    /// A dependent load of a line that only the other core has read.
    pub clean: Sample,
    /// A dependent atomic addition to a line that both cores have read.
    pub shared_atomic: Sample,
    /// A dependent atomic addition to a line that the other core has modified.
    pub modified_atomic: Sample,
}

/// A word alone in its cache line and the neighbour that is fetched with it.
#[repr(align(128))]
struct CachePadded(AtomicU64);

/// Two threads that take turns: each waits until the turn's number has its own parity.
struct Turns(CachePadded);

impl Turns {
    fn wait_for(&self, parity: u64) {
        // No spin hint: its fixed length would round what is measured up.
        while self.0.0.load(Ordering::Acquire) % 2 != parity {}
    }

    fn hand_over(&self) {
        self.0.0.fetch_add(1, Ordering::Release);
    }
}

/// Runs `first` and `second` on two cores at once and returns what they return. A panic of either
/// is passed on.
fn on_two_cores<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            thread::pin_to_core(0);
            first()
        });
        let second = scope.spawn(|| {
            thread::pin_to_core(1);
            second()
        });
        let passed_on = "a measuring thread does not panic";
        (
            first.join().expect(passed_on),
            second.join().expect(passed_on),
        )
    })
}

/// Takes a flag `times` times: waits until it says that it is the turn of `mine`, and hands it on.
fn play(flag: &AtomicU64, mine: u64, times: u64) {
    for turn in 0..times {
        let expected = 2 * turn + mine;
        while flag.load(Ordering::Acquire) != expected {}
        flag.store(expected + 1, Ordering::Release);
    }
}

fn ping_pong(rounds: usize) -> Sample {
    const TIMES: u64 = 20_000;
    let measured = (0..rounds).map(|_| {
        let flag = CachePadded(AtomicU64::new(0));
        let ((), elapsed) = on_two_cores(
            || play(&flag.0, 1, TIMES),
            || {
                play(&flag.0, 0, 1);
                while flag.0.load(Ordering::Acquire) != 2 {}
                let start = time::now_ns();
                for turn in 1..TIMES {
                    flag.0.store(2 * turn + 1, Ordering::Release);
                    let expected = 2 * turn + 2;
                    while flag.0.load(Ordering::Acquire) != expected {}
                }
                time::now_ns() - start
            },
        );
        elapsed as f64 / (2 * (TIMES - 1)) as f64
    });
    Sample::of(measured.collect())
}

fn contended_atomic(rounds: usize) -> Sample {
    const TIMES: u64 = 200_000;
    let measured = (0..rounds).map(|_| {
        let (word, ready) = (
            CachePadded(AtomicU64::new(0)),
            CachePadded(AtomicU64::new(0)),
        );
        // Both count until both are together at the end, so that neither ever has the word alone.
        let body = || {
            ready.0.fetch_add(1, Ordering::AcqRel);
            while ready.0.load(Ordering::Acquire) < 2 {}
            let start = time::now_ns();
            while word.0.fetch_add(1, Ordering::Relaxed) < TIMES {}
            time::now_ns() - start
        };
        let (first, second) = on_two_cores(body, body);
        first.max(second) as f64 / TIMES as f64
    });
    Sample::of(measured.collect())
}

/// What the owner of the lines does with them before the other core comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// It writes them.
    Write,
    /// It writes them, pushes them out of its private caches, and reads them back.
    Clean,
    /// It writes them, the other reads them, and then it reads them too: a reader may have been
    /// given what was modified for itself alone, and is not after another has read it.
    Share,
}

/// How long the second core takes for a line when the first had it before.
fn transfer(rounds: usize, before: Before, exclusively: bool) -> std::io::Result<Sample> {
    // 2,048 lines: fewer than fit any second-level cache.
    let lines = Lines::of(128 << 10)?;
    let elsewhere = Lines::of(8 << 20)?;
    let turns = Turns(CachePadded(AtomicU64::new(0)));
    let count = lines.count();
    let rounds = rounds as u64;
    let ((), measured) = on_two_cores(
        || {
            for round in 0..=rounds {
                turns.wait_for(0);
                lines.write_all(round);
                if before == Before::Clean {
                    black_box(elsewhere.read_all());
                    black_box(lines.read_all());
                }
                turns.hand_over();
                if before == Before::Share {
                    turns.wait_for(0);
                    black_box(lines.read_all());
                    turns.hand_over();
                }
            }
        },
        || {
            let mut measured = Vec::new();
            for _ in 0..=rounds {
                turns.wait_for(1);
                if before == Before::Share {
                    black_box(lines.chase(0, count));
                    turns.hand_over();
                    turns.wait_for(1);
                    black_box(lines.chase(0, count));
                }
                let start = time::now_ns();
                black_box(match exclusively {
                    true => lines.chase_exclusively(0, count),
                    false => lines.chase(0, count),
                });
                measured.push((time::now_ns() - start) as f64 / count as f64);
                turns.hand_over();
            }
            // The first round finds pages and caches untouched.
            measured.split_off(1)
        },
    );
    Ok(Sample::of(measured))
}

/// Measures with two threads, pinned to two cores.
///
/// # Errors
/// The operating system's error when the memory is not to be had.
pub(super) fn measure(rounds: usize) -> std::io::Result<Together> {
    Ok(Together {
        ping_pong: ping_pong(rounds),
        contended_atomic: contended_atomic(rounds),
        modified: transfer(rounds * 10, Before::Write, false)?,
        clean: transfer(rounds * 10, Before::Clean, false)?,
        shared_atomic: transfer(rounds * 10, Before::Share, true)?,
        modified_atomic: transfer(rounds * 10, Before::Write, true)?,
    })
}
