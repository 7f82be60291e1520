//! What several protocols ask of their sets before they commit.

use kiln_platform::atomic::{Ordering, fence};
use kiln_procedure::AbortCause;
use kiln_storage::record::Tid;

use super::{Commit, Optimistic};

impl<C: Commit> Optimistic<C> {
    /// Whether all that was read is as it was, at one moment during this call; nothing is locked by
    /// the attempt.
    ///
    /// # Errors
    /// [`AbortCause::ReadValidation`] and [`AbortCause::Phantom`] when it is not.
    pub fn is_unchanged(&self) -> Result<(), AbortCause> {
        // Sequentially consistent: the attempt's own index insertions are visible before it looks at
        // what others did.
        fence(Ordering::SeqCst);
        // Acquire: the loads that are being validated are not moved behind these.
        let unchanged = |item: &super::Item<C::Note>| {
            item.record.tid().load(Ordering::Acquire) == item.observed
        };
        if !self.items.iter().all(unchanged) {
            return Err(AbortCause::ReadValidation);
        }
        match self.nodes.is_current() {
            true => Ok(()),
            false => Err(AbortCause::Phantom),
        }
    }

    /// The newest version that the attempt observed, or that its worker has written.
    pub fn newest(&self) -> Tid {
        let observed = self.items.iter().map(|item| Tid(item.observed).version());
        Tid(observed.fold(self.last.0, u64::max))
    }
}
