//! Waits of threads, until a deadline or until they are asked to end.

use std::time::Duration;

use kiln_platform::sync::{Condvar, MutexGuard};
use kiln_platform::time;
use kiln_procedure::Interrupt;

/// How long a client waits before it looks whether it was asked to end, in nanoseconds.
pub(crate) const LOOK_NS: u64 = 100_000_000;

/// The moment when `duration` from now has passed, in nanoseconds of the monotonic clock.
pub(crate) fn deadline_after(duration: Duration) -> u64 {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    time::now_ns().saturating_add(nanoseconds)
}

/// Waits on `condition`, at most until `deadline_ns`; `None` when that has passed.
pub(crate) fn wait<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline_ns: Option<u64>,
) -> Option<MutexGuard<'a, T>> {
    let Some(deadline) = deadline_ns else {
        return Some(
            condition
                .wait(guard)
                .unwrap_or_else(|poisoned| poisoned.into_inner()),
        );
    };
    let now = time::now_ns();
    if now >= deadline {
        return None;
    }
    let waited = condition.wait_timeout(guard, Duration::from_nanos(deadline - now));
    Some(waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0)
}

/// As [`wait`]; also `None` when `interrupt` asks for the end, for which it is woken now and then.
pub(crate) fn wait_unless<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline_ns: Option<u64>,
    interrupt: Option<&Interrupt>,
) -> Option<MutexGuard<'a, T>> {
    let Some(interrupt) = interrupt else {
        return wait(condition, guard, deadline_ns);
    };
    let now = time::now_ns();
    if interrupt.is_canceled() || deadline_ns.is_some_and(|deadline| now >= deadline) {
        return None;
    }
    let look = now + LOOK_NS;
    let until = deadline_ns.map_or(look, |deadline| deadline.min(look));
    wait(condition, guard, Some(until))
}
