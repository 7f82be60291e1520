//! How many cores work at once, while workers share core slots.
//!
//! Where all calls want one row, a second core brings little: the row's cache line travels for each
//! call, and each core waits for the other. Under some protocols both together do less than one of
//! them alone. So the number of cores that work is found by [trials](crate::shared::trials) of what
//! a call costs with half as many, and with twice as many, a window each, and less and less often
//! once that has converged. To let fewer in than there is room for is *concurrency restriction* (Dice
//! and Kogan, Euro-Par 2019) or *load control* (Heiss and Wagner, VLDB 1991); the first is about
//! one lock, the second about a whole system's conflicts, as here.
//!
//! A call that takes long would keep all others out that have their core slots on the same core. A
//! worker that waits for longer than for some slices lets all cores work, and nothing is tried for
//! a while.

use std::mem;

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering};
use kiln_platform::sync::{Mutex, lock};

use crate::shared::trials::Trials;

/// How long a window is at least. Trials on virtual cores take a millisecond.
const WINDOW_NS: u64 = if cfg!(kiln_sim) { 40_000 } else { 6_000_000 };
/// How long the holder of a core slot may need to see that its core rests, and the others to move:
/// that is in no window.
const CHANGE_NS: u64 = if cfg!(kiln_sim) { 10_000 } else { 2_000_000 };
/// How many calls a window has at least.
const CALLS_MIN: u64 = if cfg!(kiln_sim) { 8 } else { 512 };
/// One that takes so many times as long has found out nothing.
const WINDOWS_MAX: u64 = 64;
/// Twice as many cores have to bring more than one call for so many, and for what a comparison
/// wants besides; else they may as well rest.
const DOUBLING: u64 = 32;
/// For so long nothing is tried after a worker had to wait for a call that takes long.
const CALM_NS: u64 = if cfg!(kiln_sim) {
    1_000_000
} else {
    1_000_000_000
};
/// At most so many windows pass without a trial.
const PAUSE_MAX: u32 = 63;

/// The first so many cores work, the others rest.
#[repr(align(128))]
pub(super) struct Working {
    number: AtomicU32,
    cores: u32,
    /// When the present window is over, if it has had enough calls.
    ends_ns: AtomicU64,
    told: Told,
    window: Mutex<Window>,
}

/// Calls that have ended, as far as workers have told; on cache lines of its own.
#[repr(align(128))]
struct Told(AtomicU64);

struct Window {
    trials: Trials,
    since_ns: u64,
    /// What had been told when it began.
    calls: u64,
    /// Whether it has not begun, as fewer or more cores work than before.
    is_change: bool,
}

impl Working {
    /// Of so many cores, at first all.
    pub fn new(cores: usize) -> Working {
        let cores = cores as u32;
        Working {
            number: AtomicU32::new(cores),
            cores,
            ends_ns: AtomicU64::new(0),
            told: Told(AtomicU64::new(0)),
            window: Mutex::new(Window {
                trials: trials(cores),
                since_ns: 0,
                calls: 0,
                is_change: true,
            }),
        }
    }

    /// How many work.
    #[inline]
    pub fn number(&self) -> u32 {
        // Relaxed here and below: who sees it late works a little longer.
        self.number.load(Ordering::Relaxed)
    }

    /// Called under the lock under which workers wait for core slots.
    pub fn set_number(&self, number: u32) {
        self.number.store(number, Ordering::Relaxed);
    }

    /// A worker waits for a call that takes long: `change` is done, so that all cores work, unless
    /// they do.
    #[cold]
    pub fn let_all_work(&self, now_ns: u64, change: impl FnOnce(u32)) {
        let mut window = lock(&self.window);
        if self.number() < self.cores {
            change(self.cores);
            window.trials = trials(self.cores);
            window.is_change = true;
            self.ends_ns.store(now_ns + CALM_NS, Ordering::Relaxed);
        }
    }

    /// The core where the workers at home on this core have their core slots.
    pub fn working_core_of(&self, home: usize) -> usize {
        working_core(home, self.number())
    }

    pub fn rests(&self, core: usize) -> bool {
        core >= self.number() as usize
    }

    /// Adds this many ended calls, which were not told before; `change` is done where another
    /// number of cores is to work.
    pub fn tell(&self, calls: u64, now_ns: u64, change: impl FnOnce(u32)) {
        self.told.0.fetch_add(calls, Ordering::Relaxed);
        if now_ns >= self.ends_ns.load(Ordering::Relaxed) {
            self.end_window(now_ns, change);
        }
    }

    #[cold]
    fn end_window(&self, now_ns: u64, change: impl FnOnce(u32)) {
        let mut window = lock(&self.window);
        if now_ns < self.ends_ns.load(Ordering::Relaxed) {
            // Another worker was faster.
            return;
        }
        let told = self.told.0.load(Ordering::Relaxed);
        let (calls, took_ns) = (told - window.calls, now_ns - window.since_ns);
        // No worker took a core slot for some time, or hardly a call came to an end.
        let is_stale = took_ns > WINDOW_NS * WINDOWS_MAX;
        let mut next_ns = WINDOW_NS;
        if !mem::take(&mut window.is_change) && !is_stale {
            if calls < CALLS_MIN {
                self.ends_ns.store(now_ns + WINDOW_NS, Ordering::Relaxed);
                return;
            }
            // Picoseconds a call, and for each doubling so much more.
            let level = u64::from(window.trials.present());
            let cost = took_ns * 1_000 / calls * (DOUBLING + level) / DOUBLING;
            window.trials.end_window(cost);
            let number = self.cores.min(1 << window.trials.present());
            if number != self.number() {
                change(number);
                window.is_change = true;
                next_ns = CHANGE_NS;
            }
        }
        (window.since_ns, window.calls) = (now_ns, told);
        self.ends_ns.store(now_ns + next_ns, Ordering::Relaxed);
    }
}

/// The core where the workers at home on this core have their core slots while so many cores work.
pub(super) fn working_core(home: usize, number: u32) -> usize {
    home % number as usize
}

/// A search that begins with all of so many cores: with the first power of two that is no smaller.
fn trials(cores: u32) -> Trials {
    let all = cores.next_power_of_two().trailing_zeros();
    Trials::new(all, all, PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the last hundred windows had this number of cores at work, of calls that take
    /// the longer the more that differs from `best`.
    fn windows_at(working: &Working, now: &mut u64, best: u32) -> usize {
        let windows = 1_500;
        let mut at_best = 0;
        for window in 0..windows {
            let number = working.number();
            at_best += usize::from(number == best && window >= windows - 100);
            *now += WINDOW_NS;
            let share = u64::from(number.min(best) * 32 / number.max(best));
            working.tell(CALLS_MIN * share, *now, |number| working.set_number(number));
        }
        at_best
    }

    #[test]
    fn as_many_cores_work_as_is_best() {
        for (cores, best) in [(1, 1), (2, 2), (2, 1), (16, 1), (16, 4), (12, 4), (12, 12)] {
            let working = Working::new(cores);
            let mut now = WINDOW_NS * WINDOWS_MAX * 2;
            assert!(
                windows_at(&working, &mut now, best) > 85,
                "{best} of {cores}"
            );
            // And when that changes.
            assert!(
                windows_at(&working, &mut now, 1) > 85,
                "1 of {cores} after {best}"
            );
        }
    }

    #[test]
    fn nothing_is_tried_while_hardly_a_call_ends() {
        let working = Working::new(2);
        for window in 1..1_000 {
            working.tell(1, WINDOW_NS * window, |_| panic!("no window has enough"));
        }
    }
}
