//! Parking: calls that fail, or wait, because of a transaction of several statements.
//!
//! Such a transaction, a *block*, lasts as long as its client thinks. A call that wants one of its
//! rows cannot run before it ends: to try again at once is in vain, and so is to keep the others
//! out, as the block stays. So such a call is put aside, with nothing that others could wait for.
//! It is tried again when a block has ended, or after a pause, as it may have lost to another call,
//! or have looked too late to see the end of the block.

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering};
use kiln_platform::time;

/// A call that has failed so often while a block is open is parked.
pub const FAILURES: u32 = 3;
/// The first pause. It doubles with each further failure, so often.
const PAUSE_NS: u64 = 20_000;
const DOUBLINGS: u32 = 9;

/// The blocks that workers have open, on cache lines of their own: each begin and end of one writes
/// there.
#[derive(Default)]
#[repr(align(128))]
pub struct Blocks {
    open: AtomicU32,
    ended: AtomicU32,
}

impl Blocks {
    /// A block begins.
    pub fn open(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// A block has ended, and let go what it had.
    pub fn close(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        // Release pairs with the acquire in `ended`: who sees the end finds its locks free.
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// Whether one seems to be open.
    #[inline(always)]
    pub fn any_open(&self) -> bool {
        // Relaxed: a call that sees it late fails once more, or is parked for a pause.
        self.open.load(Ordering::Relaxed) > 0
    }

    /// How many have ended.
    #[inline(always)]
    pub fn ended(&self) -> u32 {
        self.ended.load(Ordering::Acquire)
    }
}

/// Until when a call is parked.
#[derive(Clone, Copy, Default)]
pub struct Parked {
    until_ns: u64,
    /// How many blocks had ended before its last attempt.
    ended: u32,
}

impl Parked {
    /// An attempt begins, and meets what it meets from now on.
    #[inline]
    pub fn look(&mut self, blocks: &Blocks) {
        self.ended = blocks.ended();
    }

    /// Parks a call that has failed so often, the last time in an attempt that began with a
    /// [`Parked::look`]; whether it is to be parked.
    pub fn park(&mut self, failures: u32, blocks: &Blocks) -> bool {
        let is_parked = failures >= FAILURES && blocks.any_open();
        if is_parked {
            self.pause(failures);
        }
        is_parked
    }

    /// As [`Parked::park`], of one that is known to want what a block has.
    pub fn pause(&mut self, failures: u32) {
        let pause_ns = PAUSE_NS << failures.saturating_sub(FAILURES).min(DOUBLINGS);
        self.until_ns = time::now_ns() + pause_ns;
    }

    /// Whether there is a reason to try again.
    pub fn is_over(&self, blocks: &Blocks, now_ns: u64) -> bool {
        now_ns >= self.until_ns || blocks.ended() != self.ended
    }
}

/// When a call may ask to be alone: not for some time after others were held up for that in vain,
/// by whichever call. Each time that takes twice as long.
#[derive(Default)]
pub struct Solitude {
    pause_ns: AtomicU64,
    not_before_ns: AtomicU64,
}

/// The first of these times, and the longest: a call that does starve is helped in the end.
const SOLITUDE_NS: u64 = 50_000_000;
const SOLITUDE_MAX_NS: u64 = 1_600_000_000;

impl Solitude {
    /// Whether a call may ask now.
    pub fn may_ask(&self) -> bool {
        // Relaxed, here and below: two that ask at the same time hold the others up for twice as
        // long, once.
        time::now_ns() >= self.not_before_ns.load(Ordering::Relaxed)
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
    fn a_call_is_parked_until_a_block_ends() {
        let (blocks, mut parked) = (Blocks::default(), Parked::default());
        assert!(!parked.park(FAILURES, &blocks), "it has lost to calls");
        blocks.open();
        blocks.open();
        parked.look(&blocks);
        assert!(!parked.park(FAILURES - 1, &blocks));
        assert!(parked.park(FAILURES, &blocks));
        let began_ns = parked.until_ns - PAUSE_NS;
        assert!(!parked.is_over(&blocks, began_ns));
        assert!(parked.is_over(&blocks, parked.until_ns));
        blocks.close();
        assert!(blocks.any_open() && parked.is_over(&blocks, began_ns));
    }

    #[test]
    fn an_end_that_comes_before_the_call_is_parked_is_seen() {
        let (blocks, mut parked) = (Blocks::default(), Parked::default());
        blocks.open();
        blocks.open();
        parked.look(&blocks);
        blocks.close();
        assert!(parked.park(FAILURES, &blocks) && parked.is_over(&blocks, 0));
    }

    #[test]
    fn who_asks_in_vain_keeps_all_from_asking_for_twice_as_long() {
        let solitude = Solitude::default();
        assert!(solitude.may_ask());
        let mut last_ns = 0;
        for _ in 0..10 {
            solitude.asked(false);
            assert!(!solitude.may_ask());
            let pause_ns = solitude.pause_ns.load(Ordering::Relaxed);
            assert!(pause_ns == SOLITUDE_MAX_NS || pause_ns >= 2 * last_ns);
            last_ns = pause_ns;
        }
        assert_eq!(last_ns, SOLITUDE_MAX_NS);
        solitude.asked(true);
        assert!(solitude.may_ask());
    }
}
