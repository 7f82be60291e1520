//! A bound on log lines of one kind.

use kiln_platform::sync::{Mutex, lock};

/// Nanoseconds in which so many lines are written.
const WINDOW_NS: u64 = 10_000_000_000;
const LINES_MAX: u32 = 10;

/// Admits some lines in each window of time, and counts those that it does not.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// When the window ends.
    until_ns: u64,
    admitted: u32,
    skipped: u64,
}

impl Throttle {
    /// Whether a line may be written.
    pub fn admits(&self, now_ns: u64) -> bool {
        let mut state = lock(&self.0);
        if now_ns >= state.until_ns {
            (state.until_ns, state.admitted) = (now_ns + WINDOW_NS, 0);
        }
        match state.admitted < LINES_MAX {
            true => {
                state.admitted += 1;
                true
            }
            false => {
                state.skipped += 1;
                false
            }
        }
    }

    /// How many lines were not written since this was asked last; 0 as long as the window lasts.
    pub fn take_skipped(&self, now_ns: u64) -> u64 {
        let mut state = lock(&self.0);
        match now_ns >= state.until_ns {
            true => std::mem::take(&mut state.skipped),
            false => 0,
        }
    }
}

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_lines_become_few_and_none_is_forgotten() {
        let throttle = Throttle::default();
        let mut written = 0;
        for now_ns in (0..10_000).map(|line| line * 1_000_000) {
            written += u64::from(throttle.admits(now_ns));
            written += throttle.take_skipped(now_ns).min(1);
        }
        assert_eq!(written, u64::from(LINES_MAX));
        assert_eq!(throttle.take_skipped(2 * WINDOW_NS), 10_000 - written);
        assert_eq!(throttle.take_skipped(2 * WINDOW_NS), 0);
        assert!(throttle.admits(2 * WINDOW_NS));
    }
}
