//! The commit protocol's own phase: validation. What lies before and after it is shared.

use kiln_platform::atomic::{Ordering, fence};
use kiln_procedure::AbortCause;
use kiln_storage::record::Tid;

use super::SiloCommit;
use crate::canary::Canary;
use crate::shared::optimistic::{NO_WRITE, Optimistic};

impl<const VALIDATES: bool> Optimistic<SiloCommit<VALIDATES>> {
    /// Phase 2: checks that all that was read is as it was, and chooses the tid. On failure the
    /// locks are released.
    #[inline]
    pub(super) fn validate(&mut self) -> Result<Tid, AbortCause> {
        // Sequentially consistent: every lock (and every index insertion) of this attempt is
        // visible before it looks at what others did. Of two attempts that each read what the
        // other writes, one sees the other. It also orders the reading of the epoch.
        fence(Ordering::SeqCst);
        let epoch = self.participant.epochs().current();
        if !VALIDATES {
            return Ok(self.newest().next_in(epoch));
        }
        let mut newest = self.last;
        for item in &self.items {
            newest = newest.max(Tid(Tid(item.observed).version()));
            // Acquire: the loads that are being validated are not moved behind this one.
            let now = item.record.tid().load(Ordering::Acquire);
            if now == item.observed {
                continue;
            }
            if Canary::ReadValidationSkipped.sings() {
                continue;
            }
            let own = (now == item.observed | Tid::LOCKED || Canary::LockedAtAnyVersion.sings())
                && (item.write != NO_WRITE || self.written.get(item.record).is_some());
            if !own {
                self.unlock_tids();
                return Err(AbortCause::ReadValidation);
            }
        }
        if !self.nodes.is_current() {
            self.unlock_tids();
            return Err(AbortCause::Phantom);
        }
        if Canary::VersionReused.sings() {
            return Ok(newest);
        }
        Ok(newest.next_in(epoch))
    }
}
