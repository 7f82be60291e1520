//! Waits for a time, and for the end of another session: in the caller's thread, without a worker
//! slot of their own.

use std::time::Duration;

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::{thread, time};
use kiln_storage::error::{Error, Result, SqlState};

use super::state::Block;
use super::{Session, timed_out};
use crate::wait::deadline_after;

/// Sessions that wait for a time, or for the end of another one, at once. A server needs more
/// threads than these.
pub const SLEEPERS_MAX: usize = 48;
/// How long a session sleeps before it looks whether it is to end.
const LOOK_NS: u64 = 50_000_000;

/// The right to be one of those that sleep.
struct SleepPermit<'a>(&'a AtomicUsize);

impl<'a> SleepPermit<'a> {
    /// # Errors
    /// 53300 when all are taken.
    fn take(sleepers: &'a AtomicUsize) -> Result<SleepPermit<'a>> {
        let add = |count| (count < SLEEPERS_MAX).then_some(count + 1);
        // Relaxed, here and below: the count orders nothing.
        match sleepers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(SleepPermit(sleepers)),
            Err(_) => {
                let message = format!("too many sessions sleep: at most {SLEEPERS_MAX} do");
                Err(Error::new(SqlState::TOO_MANY_CONNECTIONS, message))
            }
        }
    }
}

impl Drop for SleepPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    /// Waits for so many seconds, as a part of the statement that runs; not at all unless they are
    /// more than 0. A block that has run something may wait as long as it may idle, and is rolled
    /// back then: others may wait for what it holds.
    ///
    /// # Errors
    /// 57014 when the statement was cancelled or its time is over; 57P01 when the session is to
    /// end; 25P03 for a block that has waited too long; 53300 when too many sessions wait; 25P02
    /// and 25P03 in a block that has failed.
    pub fn sleep(&mut self, seconds: f64) -> Result<()> {
        let (mut state, limits) = (self.state(), self.limits());
        state.check_not_failed()?;
        let longest = Duration::from_secs(u64::MAX >> 32);
        let time = match Duration::try_from_secs_f64(seconds.max(0.0)) {
            Ok(time) => time.min(longest),
            Err(_) => longest,
        };
        if time.is_zero() {
            return Ok(());
        }
        let inner = self.engine.inner();
        let _permit = SleepPermit::take(&inner.sleepers)?;
        let (ends_ns, block_ends_ns) = (deadline_after(time), state.wait_deadline());
        let stops_ns = limits.deadline_ns.into_iter().chain(block_ends_ns).min();
        let last_ns = stops_ns.map_or(ends_ns, |stops_ns| stops_ns.min(ends_ns));
        loop {
            inner.check_open()?;
            limits.check()?;
            let now_ns = time::now_ns();
            if now_ns >= ends_ns {
                break;
            }
            if block_ends_ns.is_some_and(|ends_ns| now_ns >= ends_ns) {
                state.abandon(Block::Failed);
                return Err(timed_out());
            }
            thread::sleep(last_ns.saturating_sub(now_ns).min(LOOK_NS));
        }
        state.idle_since_ns = time::now_ns();
        Ok(())
    }

    /// Waits until the session with this number has closed; `false` when it has not after
    /// `longest`. The wait ends as a [sleep](Session::sleep) does.
    ///
    /// # Errors
    /// Those of [`Session::sleep`].
    pub fn wait_for_end(&mut self, number: u64, longest: Duration) -> Result<bool> {
        let (mut state, limits) = (self.state(), self.limits());
        state.check_not_failed()?;
        let inner = self.engine.inner();
        let _permit = SleepPermit::take(&inner.sleepers)?;
        let (ends_ns, block_ends_ns) = (deadline_after(longest), state.wait_deadline());
        let stops_ns = limits.deadline_ns.into_iter().chain(block_ends_ns).min();
        let last_ns = stops_ns.map_or(ends_ns, |stops_ns| stops_ns.min(ends_ns));
        let has_ended = (inner.open_sessions).wait_for_end(number, last_ns, limits.interrupt);
        limits.check()?;
        let now_ns = time::now_ns();
        if !has_ended && now_ns < ends_ns && block_ends_ns.is_some_and(|end_ns| now_ns >= end_ns) {
            state.abandon(Block::Failed);
            return Err(timed_out());
        }
        state.idle_since_ns = now_ns;
        Ok(has_ended)
    }
}
