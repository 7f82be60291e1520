//! Solitude: a call that fails again and again keeps all others out, and runs alone.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::time;

/// A call that has failed so often asks to be alone.
const FAILURES: u32 = 10;

/// When a call may ask to be alone: not for some time after others were held up for that in vain,
/// by whichever call. Each time that takes twice as long.
#[derive(Default)]
pub(crate) struct Solitude {
    pause_ns: AtomicU64,
    not_before_ns: AtomicU64,
}

/// The first of these times, and the longest: a call that does starve is helped in the end.
const SOLITUDE_NS: u64 = 50_000_000;
const SOLITUDE_MAX_NS: u64 = 1_600_000_000;

impl Solitude {
    /// How long the others may take until a worker is alone, in nanoseconds.
    pub const WAIT_NS: u64 = 5_000_000;

    /// Whether a call that has failed so often may ask now.
    pub fn may_ask(&self, failures: u32) -> bool {
        // Relaxed, here and below: two that ask at the same time hold the others up for twice as
        // long, once.
        failures >= FAILURES && time::now_ns() >= self.not_before_ns.load(Ordering::Relaxed)
    }

    /// A call has asked, and was alone or not.
    pub fn asked(&self, was_alone: bool) {
        let pause_ns = match was_alone {
            true => 0,
            false => {
                let pause_ns = self.pause_ns.load(Ordering::Relaxed) * 2;
                pause_ns.clamp(SOLITUDE_NS, SOLITUDE_MAX_NS)
            }
        };
        self.pause_ns.store(pause_ns, Ordering::Relaxed);
        let not_before_ns = time::now_ns() + pause_ns;
        self.not_before_ns.store(not_before_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_in_vain_keeps_all_from_asking_for_twice_as_long() {
        let solitude = Solitude::default();
        assert!(!solitude.may_ask(FAILURES - 1) && solitude.may_ask(FAILURES));
        let mut last_ns = 0;
        for _ in 0..10 {
            solitude.asked(false);
            assert!(!solitude.may_ask(FAILURES));
            let pause_ns = solitude.pause_ns.load(Ordering::Relaxed);
            assert!(pause_ns == SOLITUDE_MAX_NS || pause_ns >= 2 * last_ns);
            last_ns = pause_ns;
        }
        assert_eq!(last_ns, SOLITUDE_MAX_NS);
        solitude.asked(true);
        assert!(solitude.may_ask(FAILURES));
    }
}
