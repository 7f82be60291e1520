//! Cancelling what runs, from another thread: one atomic word.

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, SqlState};

/// Nothing runs that could be cancelled.
const IDLE: u32 = 0;
/// A statement runs.
const RUNNING: u32 = 1;
/// The statement that runs is to end.
const CANCELED: u32 = 2;
/// So are all that begin.
const OVER: u32 = 3;

/// Says whether a statement is to end before its time. Clones are handles of one word, which the
/// thread that runs the statement looks at where it looks at its limits.
///
/// The word passes no data to or from the statement, so that all accesses are relaxed; a thread
/// that runs sees the change soon, and one that waits looks again after a tenth of a second.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    word: Arc<AtomicU32>,
}

impl Interrupt {
    /// Nothing runs.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// A statement begins.
    pub fn begin(&self) {
        self.set(RUNNING);
    }

    /// The statement has ended: what comes now is too late.
    pub fn end(&self) {
        self.set(IDLE);
    }

    fn set(&self, word: u32) {
        let set = |now| (now != OVER).then_some(word);
        let _ = (self.word).fetch_update(Ordering::Relaxed, Ordering::Relaxed, set);
    }

    /// Asks the statement that runs to end, and each that begins later: no client waits for them
    /// any more.
    pub fn end_all(&self) {
        self.word.store(OVER, Ordering::Relaxed);
    }

    /// Asks the statement that runs to end; false when none does.
    pub fn cancel(&self) -> bool {
        let asked =
            self.word
                .compare_exchange(RUNNING, CANCELED, Ordering::Relaxed, Ordering::Relaxed);
        matches!(asked, Ok(_) | Err(CANCELED | OVER))
    }

    /// Whether the statement was asked to end.
    #[inline(always)]
    pub fn is_canceled(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= CANCELED
    }

    /// Whether each statement that begins is to end as well.
    pub fn is_over(&self) -> bool {
        self.word.load(Ordering::Relaxed) == OVER
    }

    /// Whether a statement runs.
    pub fn is_running(&self) -> bool {
        matches!(self.word.load(Ordering::Relaxed), RUNNING | CANCELED)
    }

    /// The error of a statement that was asked to end.
    #[cold]
    pub fn error(&self) -> Error {
        match self.is_over() {
            true => terminated(),
            false => canceled(),
        }
    }
}

/// The error of a statement that was asked to end.
#[cold]
fn canceled() -> Error {
    Error::new(
        SqlState::QUERY_CANCELED,
        "canceling statement due to user request",
    )
}

/// The error of a session that is to end, and of all that it runs.
#[cold]
pub fn terminated() -> Error {
    Error::new(
        SqlState::ADMIN_SHUTDOWN,
        "terminating connection due to administrator command",
    )
}

/// The error of a statement whose time is over.
#[cold]
pub fn timed_out() -> Error {
    Error::new(
        SqlState::QUERY_CANCELED,
        "canceling statement due to statement timeout",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_is_canceled() {
        let interrupt = Interrupt::new();
        assert!(!interrupt.cancel());
        interrupt.begin();
        assert!(
            !interrupt.is_canceled(),
            "the request came before the statement"
        );
        let other = interrupt.clone();
        assert!(other.cancel() && other.cancel());
        assert!(interrupt.is_canceled());
        interrupt.end();
        assert!(!interrupt.is_canceled() && !other.cancel());
        assert!(!interrupt.is_over());
        assert_eq!(interrupt.error().state(), SqlState::QUERY_CANCELED);
        other.end_all();
        interrupt.begin();
        assert!(interrupt.is_canceled() && other.cancel());
        interrupt.end();
        assert!(interrupt.is_canceled() && interrupt.is_over());
        assert_eq!(interrupt.error().state(), SqlState::ADMIN_SHUTDOWN);
    }
}
