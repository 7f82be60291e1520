//! The monotonic clock, the wall clock and the cycle counter.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// Nanoseconds since the first reading in this process; never goes back.
#[inline]
pub fn now_ns() -> u64 {
    origin().elapsed().as_nanos() as u64
}

/// Microseconds since 1970-01-01 00:00:00 UTC.
pub fn wall_clock_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_micros() as i64,
        Err(before) => -(before.duration().as_micros() as i64),
    }
}

/// A cheap counter for measuring short phases: about 10 ns a reading. Its unit is
/// [`cycles_per_us`].
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 processor has the instruction; it only reads a counter.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    now_ns()
}

/// How many [`cycles`] pass in a microsecond, measured once over about two milliseconds.
pub fn cycles_per_us() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (start, first) = (Instant::now(), cycles());
        while start.elapsed().as_micros() < 2_000 {
            std::hint::spin_loop();
        }
        let passed = cycles().wrapping_sub(first) as f64;
        passed / start.elapsed().as_secs_f64() / 1e6
    })
}
