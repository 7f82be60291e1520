//! The token of protocols that run one transaction at a time.

use std::collections::VecDeque;

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_procedure::Interrupt;

use crate::wait::wait_unless;

/// Held by the one worker slot that runs a transaction, under protocols without concurrency
/// control. A mutex that can be held across calls, with one atomic access to take it and one to let
/// go. Waiters get it in the order in which they came.
#[derive(Default)]
pub(crate) struct Token {
    /// 0: free, 1: taken, 2: taken and another worker slot may wait.
    word: AtomicU32,
    /// Wakes each waiter; the one that has waited longest is first.
    line: Mutex<VecDeque<Arc<Condvar>>>,
}

impl Token {
    #[inline(always)]
    pub fn try_take(&self) -> bool {
        // Acquire pairs with the release in `give`: the transaction before comes before.
        let taken = self
            .word
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// False when `deadline_ns` has passed or `interrupt` has asked for the end before it could be
    /// had.
    pub fn take(&self, deadline_ns: Option<u64>, interrupt: Option<&Interrupt>) -> bool {
        self.try_take() || self.wait(deadline_ns, interrupt)
    }

    #[cold]
    fn wait(&self, deadline_ns: Option<u64>, interrupt: Option<&Interrupt>) -> bool {
        let own = Arc::new(Condvar::new());
        let is_own = |other: &Arc<Condvar>| Arc::ptr_eq(other, &own);
        let mut line = lock(&self.line);
        line.push_back(own.clone());
        loop {
            if line.front().is_some_and(is_own) && self.word.swap(2, Ordering::Acquire) == 0 {
                line.pop_front();
                return true;
            }
            line = match wait_unless(&own, line, deadline_ns, interrupt) {
                Some(line) => line,
                None => break,
            };
        }
        let mut line = lock(&self.line);
        line.retain(|other| !is_own(other));
        // Perhaps the token came free for this one.
        if let Some(first) = line.front() {
            first.notify_one();
        }
        false
    }

    #[inline(always)]
    pub fn give(&self) {
        if self.word.swap(0, Ordering::Release) == 2 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // The worker slot that set the word to 2 holds the mutex until it waits.
        if let Some(first) = lock(&self.line).front() {
            first.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::thread;

    use super::*;
    use crate::wait::LOOK_NS;

    /// A waiter that looks for a cancel now and then keeps its place.
    #[test]
    fn the_token_goes_to_those_who_wait_in_their_order() {
        const WAITERS: usize = 6;
        let (token, order) = (Token::default(), Mutex::new(Vec::new()));
        assert!(token.take(None, None));
        let length = || lock(&token.line).len();
        let until = |expected: usize| {
            while length() != expected {
                thread::sleep(100_000)
            }
        };
        thread::scope(|scope| {
            for waiter in 0..WAITERS {
                let (token, order) = (&token, &order);
                scope.spawn(move || {
                    let interrupt = Interrupt::new();
                    interrupt.begin();
                    assert!(token.take(None, (waiter % 2 == 0).then_some(&interrupt)));
                    lock(order).push(waiter);
                    token.give();
                });
                until(waiter + 1);
            }
            let gone = Interrupt::new();
            gone.begin();
            gone.cancel();
            assert!(!token.take(None, Some(&gone)));
            assert!(!token.take(Some(0), None));
            assert_eq!(length(), WAITERS, "who gives up leaves the line");
            // So long that those who look have looked.
            thread::sleep(2 * LOOK_NS);
            token.give();
        });
        assert!(lock(&order).iter().copied().eq(0..WAITERS));
        assert!(token.take(Some(0), None));
    }
}
