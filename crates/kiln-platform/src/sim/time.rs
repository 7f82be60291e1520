//! The clocks: in a run, what the model says has passed; else the real ones.

#[path = "../std/time.rs"]
mod real;

use super::runtime;

/// What the wall clock shows when a run starts: 2026-01-01 00:00:00 UTC, in microseconds.
const RUN_STARTS_US: i64 = 1_767_225_600_000_000;

/// Nanoseconds since the run's start, or since the first reading in this process; never goes back.
#[inline]
pub fn now_ns() -> u64 {
    match runtime::is_running() {
        true => runtime::clock_ps() / 1_000,
        false => real::now_ns(),
    }
}

/// Microseconds since 1970-01-01 00:00:00 UTC; every run starts at the same time of 2026.
pub fn wall_clock_us() -> i64 {
    match runtime::is_running() {
        true => RUN_STARTS_US + (runtime::clock_ps() / 1_000_000) as i64,
        false => real::wall_clock_us(),
    }
}

/// A counter for measuring short phases; in a run, picoseconds, and reading it costs nothing. Its
/// unit is [`cycles_per_us`].
#[inline(always)]
pub fn cycles() -> u64 {
    match runtime::is_running() {
        true => runtime::peek_ps(),
        false => real::cycles(),
    }
}

/// How many [`cycles`] pass in a microsecond.
pub fn cycles_per_us() -> f64 {
    match runtime::is_running() {
        true => 1e6,
        false => real::cycles_per_us(),
    }
}
