//! Committing an attempt that no other one has disturbed, as Silo does.
//!
//! Most attempts find everything as they read it, and no other attempt at what they write. For
//! these the locks that healing needs are for nothing: they lock the tids of what they write,
//! without waiting, compare what they read, and install. Whatever is in the way of that leads to
//! the phases of `validate.rs`. A procedure whose attempts are disturbed is not tried in this way
//! for some calls, eight times as many each time.
//!
//! An attempt of a procedure that is left alone also keeps nothing for a restoration, neither
//! copies nor look-ups, and its new rows come into the indexes where they are inserted. If it is
//! disturbed after all, the first restoration reads everything anew.
//!
//! # Beside those who heal
//!
//! The holder of a record's lock relies on its tid to stay. So an attempt that commits here locks
//! the tid first, and looks at the record's lock then: if another attempt has that, it gives the
//! tid back as it was. An attempt that takes a lock looks at the tid after that, and waits while it
//! is locked. These four accesses are sequentially consistent: one of the two sees the other. An
//! attempt that has locked a tid here waits for nothing but, for a moment, whether a row is there
//! that has the key of a new one.

use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_procedure::AbortCause;
use kiln_storage::record::Tid;

use super::Healing;
use crate::canary::Canary;
use crate::phases::Phase;
use crate::shared::optimistic::record_lock::EXCLUSIVE;
use crate::shared::optimistic::{NO_WRITE, WriteKind};

/// Whether the attempts of a procedure, or those without a program, are left alone by others.
#[derive(Clone, Copy)]
pub(super) struct Calm {
    /// So many attempts commit with locks before another one is tried without.
    wait: u32,
    /// How many that will be when one is disturbed.
    next: u32,
    /// So many attempts that no other worker disturbs keep what a restoration needs, before the
    /// next ones do without.
    keeps: u32,
}

impl Default for Calm {
    fn default() -> Calm {
        Calm {
            wait: 0,
            next: 1,
            keeps: 0,
        }
    }
}

impl Calm {
    /// The most attempts that commit with locks because one was disturbed.
    const WAIT_MAX: u32 = 1_024;
    /// How many times as many it is with each one that was disturbed. Undisturbed ones halve it:
    /// where one in four is disturbed, hardly any is tried.
    const GROWS: u32 = 8;

    /// How many undisturbed attempts it takes until they keep nothing. A restoration that has
    /// nothing to go by runs the whole procedure with the hot record locked: with three undisturbed
    /// attempts, one in four did so on SmallBank.
    const KEEPS_AFTER: u32 = 64;

    /// Whether the last attempts were not disturbed.
    #[inline(always)]
    pub fn is_calm(self) -> bool {
        self.keeps == 0
    }

    /// Whether an attempt is to be tried without locks.
    #[inline(always)]
    fn is_tried(&mut self) -> bool {
        let is_tried = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        is_tried
    }

    #[inline(always)]
    fn is_undisturbed(&mut self) {
        self.next = 1.max(self.next / 2);
        self.keeps = self.keeps.saturating_sub(1);
    }

    pub fn is_disturbed(&mut self) {
        self.wait = self.next;
        self.keeps = Self::KEEPS_AFTER;
        self.next = Self::WAIT_MAX.min(Self::GROWS * self.next);
    }
}

impl Healing {
    /// Commits an attempt unless another one disturbs it; returns whether it has committed.
    ///
    /// # Errors
    /// As [`Healing::lock_and_write`].
    pub(super) fn commit_undisturbed(&mut self) -> Result<bool, AbortCause> {
        if self.round > 0 || self.locks_reads || !self.counters.calm().is_tried() {
            return Ok(false);
        }
        let committed = self.try_undisturbed();
        match committed {
            Ok(true) => self.counters.calm().is_undisturbed(),
            _ => self.counters.calm().is_disturbed(),
        }
        committed
    }

    fn try_undisturbed(&mut self) -> Result<bool, AbortCause> {
        self.order.clear();
        self.sets.phases.enter(Phase::Validate);
        // Where others are about, a look first, so that they are not disturbed in their turn.
        let is_looked_at = !self.counters.calm().is_calm();
        if is_looked_at && (self.as_first_read(false).is_none() || !self.sets.nodes.is_current()) {
            return Ok(false);
        }
        self.sets.phases.enter(Phase::Lock);
        if !self.lock_free_tids() {
            return Ok(false);
        }
        point("healing.tids_locked");
        if !self.late.is_empty() {
            // No other attempt has a row of the same key now, if the key was made of what is
            // locked.
            self.has_linked = true;
            if let Err(cause) = self.link_late() {
                self.unlock_tids_but_of_dead();
                return Err(cause);
            }
            point("healing.linked");
        }
        self.sets.phases.enter(Phase::Validate);
        // Sequentially consistent: as in `lock_and_write`.
        fence(Ordering::SeqCst);
        let epoch = self.sets.participant.epochs().current();
        if let Some(newest) = self.as_first_read(true)
            && self.sets.nodes.is_current()
        {
            return self.install(newest.next_in(epoch)).map(|()| true);
        }
        self.sets.unlock_tids();
        if self.has_linked {
            // Others may wait for the new rows: the run that follows takes them back.
            self.asks = true;
            return Err(AbortCause::ReadValidation);
        }
        Ok(false)
    }

    /// Gives the tids of the write set back, but for those of new records that were buried, as
    /// their rows were refused.
    #[cold]
    fn unlock_tids_but_of_dead(&self) {
        for write in &self.sets.writes {
            let observed = self.sets.items[write.item as usize].observed;
            // No other attempt changes a tid that is locked.
            if write.record.tid().load(Ordering::Relaxed) == observed | Tid::LOCKED {
                write.record.tid().store(observed, Ordering::Release);
            }
        }
    }

    /// The newest version that was met or that the worker has written, if all that was met has the
    /// tid with which it was met, but for the lock bits of the attempt's own writes if these are
    /// locked.
    #[inline(always)]
    fn as_first_read(&self, is_locked: bool) -> Option<Tid> {
        let mut newest = self.sets.last.0;
        for item in &self.sets.items {
            newest = newest.max(Tid(item.observed).version());
            // Acquire: what was read of a record is not moved behind the comparison.
            let now = item.record.tid().load(Ordering::Acquire);
            let is_own = || {
                is_locked
                    && now == item.observed | Tid::LOCKED
                    && (item.write != NO_WRITE || self.sets.written.get(item.record).is_some())
            };
            let is_as_read = !item.note.is_stale() && (now == item.observed || is_own());
            if !is_as_read && !Canary::ReadValidationSkipped.sings() {
                return None;
            }
        }
        Some(Tid(newest))
    }

    /// Locks the tids of the write set, if no other attempt has changed the records, or has a lock
    /// of them.
    #[inline(always)]
    fn lock_free_tids(&mut self) -> bool {
        for (position, write) in self.sets.writes.iter().enumerate() {
            let observed = self.sets.items[write.item as usize].observed;
            let word = write.record.tid();
            match write.kind {
                WriteKind::Lost => continue,
                WriteKind::Insert | WriteKind::Forget => {
                    // No other attempt changes it: others compare it once more at the end, though
                    // they have the record's lock. The fence before the comparison orders it.
                    word.store(observed | Tid::LOCKED, Ordering::Relaxed);
                    continue;
                }
                WriteKind::Update | WriteKind::Delete | WriteKind::Share => {}
            }
            // Sequentially consistent, both: see the module's documentation.
            let locked = word.compare_exchange(
                observed,
                observed | Tid::LOCKED,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
            let is_free = || {
                write.record.aux().load(Ordering::SeqCst) & EXCLUSIVE == 0
                    || Canary::LockOfHealerIgnored.sings()
            };
            if locked.is_err() || !is_free() {
                let end = position + usize::from(locked.is_ok());
                self.sets.unlock(end);
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_disturbed_again_and_again_is_seldom_tried() {
        let mut calm = Calm::default();
        let tried = |calm: &mut Calm, is_disturbed: bool| {
            let tries = (0..10_000).filter(|_| {
                let is_tried = calm.is_tried();
                match (is_tried, is_disturbed) {
                    (true, true) => calm.is_disturbed(),
                    (true, false) => calm.is_undisturbed(),
                    _ => {}
                }
                is_tried
            });
            tries.count()
        };
        assert_eq!(tried(&mut calm, false), 10_000);
        assert!(calm.is_calm());
        assert_eq!(tried(&mut calm, true), 14);
        assert!(!calm.is_calm());
        assert!(tried(&mut calm, false) > 8_000);
        assert!(calm.is_calm());
    }
}
