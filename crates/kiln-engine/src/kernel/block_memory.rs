//! The memory in which blocks keep what they need until they end, bounded over all sessions.
//!
//! Each session may have a megabyte by itself. What is more is counted in one place, so that ten
//! thousand sessions do not have ten thousand times what one of them may.

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};

/// Bytes that each session may keep by itself.
const FREE: usize = 1 << 20;
/// Bytes that all sessions may keep beyond that.
const SHARED_MAX: usize = 1 << 30;

/// The bytes that blocks of all sessions keep, beyond what each may by itself.
#[derive(Debug, Default)]
pub(crate) struct Budget(AtomicUsize);

/// What one session keeps; given back when it is dropped.
#[derive(Default)]
pub(crate) struct Kept {
    shared: Option<(Arc<Budget>, usize)>,
}

impl Kept {
    /// The session keeps so many bytes now.
    ///
    /// # Errors
    /// 53200 when all sessions together keep too many.
    pub fn reach(&mut self, budget: &Arc<Budget>, bytes: usize) -> Result<()> {
        let known = self.shared.as_ref().map_or(0, |(_, counted)| *counted);
        let more = bytes.saturating_sub(FREE).saturating_sub(known);
        if more == 0 {
            return Ok(());
        }
        // Relaxed, here and below: a sum.
        let grown = budget
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(more).filter(|used| *used <= SHARED_MAX)
            });
        if grown.is_err() {
            let message = "transaction blocks of all sessions keep too much until they end";
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message)
                .with_detail(format!("Together they may keep {} MiB.", SHARED_MAX >> 20))
                .with_hint("Try it again when others have ended, or in smaller blocks."));
        }
        let (_, counted) = self.shared.get_or_insert_with(|| (budget.clone(), 0));
        *counted += more;
        Ok(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some((budget, counted)) = &self.shared {
            budget.0.fetch_sub(*counted, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_what_is_more_than_each_may_have() {
        let budget = Arc::new(Budget::default());
        let used = || budget.0.load(Ordering::Relaxed);
        let (mut one, mut other) = (Kept::default(), Kept::default());
        one.reach(&budget, FREE).expect("it is its own");
        assert_eq!(used(), 0);
        one.reach(&budget, FREE + 10).expect("there is room");
        one.reach(&budget, FREE + 4).expect("it keeps less");
        one.reach(&budget, FREE + 15).expect("there is room");
        assert_eq!(used(), 15);
        let all = FREE + SHARED_MAX;
        let refused = other.reach(&budget, all).expect_err("it is too much");
        assert_eq!(refused.state(), SqlState::OUT_OF_MEMORY);
        other.reach(&budget, all - 15).expect("there is room");
        assert!(one.reach(&budget, FREE + 16).is_err());
        drop(one);
        other.reach(&budget, all).expect("there is room again");
        drop(other);
        assert_eq!(used(), 0);
    }
}
