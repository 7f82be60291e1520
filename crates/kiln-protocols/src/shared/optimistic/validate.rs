//! What several protocols ask of their sets before they commit.

use kiln_platform::atomic::{Ordering, fence};
use kiln_procedure::AbortCause;
use kiln_storage::record::Tid;

use super::{Commit, NO_WRITE, Optimistic};
use crate::canary::Canary;

impl<C: Commit> Optimistic<C> {
    /// Checks that all that was read is as it was, while the tids of the write set are locked, and
    /// chooses a tid above everything observed, in the present epoch. On failure the tids are
    /// unlocked.
    ///
    /// # Errors
    /// [`AbortCause::ReadValidation`] and [`AbortCause::Phantom`].
    #[inline]
    pub fn validate_locked(&mut self) -> Result<Tid, AbortCause> {
        // Sequentially consistent: every lock (and every index insertion) of this attempt is
        // visible before it looks at what others did. Of two attempts that each read what the
        // other writes, one sees the other. It also orders the reading of the epoch.
        fence(Ordering::SeqCst);
        let epoch = self.participant.epochs().current();
        if !C::VALIDATES {
            return Ok(self.newest().next_in(epoch));
        }
        let mut newest = self.last;
        // Whether only the second timestamp of a record is as it was.
        let mut is_spared = false;
        for item in &self.items {
            newest = newest.max(Tid(Tid(item.observed).version()));
            if item.is_split() {
                if self.is_split_current(item) || Canary::ReadValidationSkipped.sings() {
                    let now = Tid(item.record.tid().load(Ordering::Relaxed));
                    is_spared |= now.version() != Tid(item.observed).version();
                    continue;
                }
                self.protocol.found_changed(item.record);
                self.unlock_tids();
                return Err(AbortCause::ReadValidation);
            }
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
                self.protocol.found_changed(item.record);
                self.unlock_tids();
                return Err(AbortCause::ReadValidation);
            }
        }
        if is_spared {
            self.calm.is_disturbed();
        }
        if !self.nodes.is_current() {
            self.unlock_tids();
            return Err(AbortCause::Phantom);
        }
        if self.is_doomed {
            self.unlock_tids();
            return Err(AbortCause::KeyInTransit);
        }
        if Canary::VersionReused.sings() {
            return Ok(newest);
        }
        Ok(self.above_deletions(newest.next_in(epoch)))
    }

    /// Whether all that was read is as it was, at one moment during this call; nothing is locked by
    /// the attempt.
    ///
    /// # Errors
    /// [`AbortCause::ReadValidation`] and [`AbortCause::Phantom`] when it is not.
    pub fn is_unchanged(&self) -> Result<(), AbortCause> {
        // Sequentially consistent: the attempt's own index insertions are visible before it looks
        // at what others did.
        fence(Ordering::SeqCst);
        // Acquire: the loads that are being validated are not moved behind these.
        let unchanged = |item: &super::Item<C::Note>| match item.is_split() {
            true => self.is_split_current(item),
            false => item.record.tid().load(Ordering::Acquire) == item.observed,
        };
        if !self.items.iter().all(unchanged) {
            return Err(AbortCause::ReadValidation);
        }
        if self.is_doomed {
            return Err(AbortCause::KeyInTransit);
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
