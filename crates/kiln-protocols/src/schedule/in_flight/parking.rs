//! Parking: calls that fail, or wait, because of a transaction of several statements.
//!
//! Such a transaction, a *block*, lasts as long as its client thinks. A call that wants one of its
//! rows cannot run before it ends: to try again at once is in vain, and so is to keep the others
//! out, as the block stays. So such a call is put aside, with nothing that others could wait for.
//! It is tried again when a block has ended, or after a pause, as it may have lost to another call,
//! or have looked too late to see the end of the block.

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::time;

/// A call that has failed so often while a block is open is parked.
pub(super) const FAILURES: u32 = 3;
/// The first pause. It doubles with each further failure, so often.
const PAUSE_NS: u64 = 20_000;
const DOUBLINGS: u32 = 9;

/// The blocks that workers have open, on cache lines of their own: each begin and end of one writes
/// there.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Blocks {
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
pub(super) struct Parked {
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
}
