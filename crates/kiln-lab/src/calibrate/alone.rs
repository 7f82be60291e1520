//! What one core measures by itself.

use std::hint::black_box;

use kiln_platform::atomic::{AtomicU64, Ordering, fence, prefetch};
use kiln_platform::{spin, thread, time};

use super::lines::Lines;
use super::sample::Sample;

/// Latencies and rates of one core, each per operation.
pub struct Alone {
    /// A four_cycles and an exclusive or that each wait for the one before: three cycles and one,
    /// on every x86 processor of the last fifteen years.
    pub four_cycles: Sample,
    /// A dependent load from the first-level cache.
    pub first_level: Sample,
    /// A dependent load from the second-level cache.
    pub second_level: Sample,
    /// A dependent load beyond the second-level cache, by the bytes that were chased through.
    pub sweep: Vec<(usize, Sample)>,
    /// A load from memory among sixteen that were prefetched together.
    pub memory_prefetched: Sample,
    /// A store to a line that the core owns.
    pub store: Sample,
    /// An atomic addition to a line that the core owns.
    pub atomic: Sample,
    /// Issuing a prefetch of a line that is there.
    pub prefetch: Sample,
    /// A full fence behind an empty store buffer.
    pub fence: Sample,
    /// A spin hint.
    pub spin: Sample,
    /// Reading the cycle counter.
    pub cycles: Sample,
    /// Reading the monotonic clock.
    pub clock: Sample,
    /// Yielding to the operating system.
    pub yielding: Sample,
}

/// How many lines one batch of prefetches has: as many as most cores can have on their way.
pub const BATCH: u64 = 16;
/// What is chased through beyond the second-level cache. The latency rises where the part of the
/// last-level cache that this program gets ends, which on a shared machine is before its size ends.
const SWEEP_BYTES: [usize; 8] = [
    4 << 20,
    8 << 20,
    16 << 20,
    32 << 20,
    64 << 20,
    128 << 20,
    MEMORY_BYTES,
    1 << 30,
];
/// What is chased through for the memory's latency: more than a last-level cache, and no more than
/// a database in use, since the time to translate addresses grows with it and is part of the
/// latency.
const MEMORY_BYTES: usize = 256 << 20;

impl Alone {
    /// A dependent load from the last-level cache: the sweep's first.
    pub fn last_level(&self) -> Sample {
        self.sweep[0].1
    }

    /// A dependent load from memory.
    pub fn memory(&self) -> Sample {
        let memory = self.sweep.iter().find(|(bytes, _)| *bytes == MEMORY_BYTES);
        memory.expect("the sweep includes it").1
    }
}

/// Chases through `bytes`, once through before it counts.
fn chase(bytes: usize, rounds: usize, steps: u64) -> std::io::Result<Sample> {
    let lines = Lines::of(bytes)?;
    let mut line = lines.chase(0, lines.count());
    Ok(Sample::measure(rounds, steps, || {
        line = lines.chase(line, steps);
    }))
}

/// Measures, on the core it is called on. `rounds` is how often each measurement is repeated.
///
/// # Errors
/// The operating system's error when the memory is not to be had.
pub(super) fn measure(rounds: usize) -> std::io::Result<Alone> {
    let word = AtomicU64::new(1);
    let operations = 100_000;
    let each = |body: &mut dyn FnMut()| Sample::measure(rounds, operations, body);
    let factor = black_box(3_u64);
    let four_cycles = each(&mut || {
        black_box((0..operations).fold(1_u64, |value, turn| value.wrapping_mul(factor) ^ turn));
    });
    let store = each(&mut || {
        for value in 0..operations {
            word.store(value, Ordering::Relaxed);
            // Without it a compiler may keep only the last store.
            black_box(&word);
        }
    });
    let atomic = each(&mut || {
        for _ in 0..operations {
            word.fetch_add(1, Ordering::Relaxed);
        }
    });
    let issue = each(&mut || {
        for _ in 0..operations {
            prefetch(black_box(&raw const word));
        }
    });
    let fenced = each(&mut || {
        for _ in 0..operations {
            fence(Ordering::SeqCst);
            // Without it a compiler may take several fences for one.
            black_box(&word);
        }
    });
    let hint = Sample::measure(rounds, operations / 10, || {
        for _ in 0..operations / 10 {
            spin::hint();
        }
    });
    let cycles = each(&mut || {
        for _ in 0..operations {
            black_box(time::cycles());
        }
    });
    let clock = Sample::measure(rounds, operations / 10, || {
        for _ in 0..operations / 10 {
            black_box(time::now_ns());
        }
    });
    let yielding = Sample::measure(rounds, operations / 100, || {
        for _ in 0..operations / 100 {
            thread::yield_now();
        }
    });
    let sweep: Vec<(usize, Sample)> = SWEEP_BYTES
        .into_iter()
        .map(|bytes| Ok((bytes, chase(bytes, rounds, operations)?)))
        .collect::<std::io::Result<_>>()?;
    let lines = Lines::of(MEMORY_BYTES)?;
    let mut line = 0;
    let batches = operations / BATCH;
    let memory_prefetched = Sample::measure(rounds, batches * BATCH, || {
        black_box(lines.read_prefetched(line, batches, BATCH));
        line = lines.chase(line, 1);
    });
    Ok(Alone {
        four_cycles,
        first_level: chase(16 << 10, rounds, operations)?,
        second_level: chase(1 << 20, rounds, operations)?,
        sweep,
        memory_prefetched,
        store,
        atomic,
        prefetch: issue,
        fence: fenced,
        spin: hint,
        cycles,
        clock,
        yielding,
    })
}
