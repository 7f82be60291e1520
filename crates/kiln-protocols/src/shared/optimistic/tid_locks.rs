//! Locking the write set by the lock bits of its tids.

use kiln_platform::atomic::Ordering;
use kiln_platform::spin::{self, Spinner};
use kiln_procedure::AbortCause;
use kiln_storage::record::{RecordRef, Tid};

use super::{Commit, LOCK_SPINS_MAX, Optimistic, WHOLE, WriteKind};
use crate::canary::Canary;

impl<C: Commit> Optimistic<C> {
    /// Locks the tids of the write set as they were observed. On failure, what was locked is
    /// released.
    ///
    /// # Errors
    /// [`AbortCause::ReadValidation`] when a record has changed, [`AbortCause::WriteLock`] when
    /// another attempt holds one for too long.
    #[inline]
    pub fn lock_tids(&mut self) -> Result<(), AbortCause> {
        if Canary::InstalledWithoutLocks.sings() {
            return Ok(());
        }
        if self.sorts_locks {
            return self.lock_sorted_tids();
        }
        for position in 0..self.writes.len() {
            let write = &self.writes[position];
            if self.items[write.item as usize].split != WHOLE {
                if let Err(cause) = self.lock_at_any_version(position) {
                    self.unlock(position);
                    return Err(cause);
                }
                self.lock_split(position);
                continue;
            }
            let observed = self.items[write.item as usize].observed;
            let word = write.record.tid();
            if matches!(write.kind, WriteKind::Insert | WriteKind::Forget)
                && (self.early_aborts || Canary::PlaceholderTaken.sings())
            {
                // No other attempt changes the tid of a new record, but others read it when they
                // validate; the fence before this attempt validates pairs with theirs.
                word.store(observed | Tid::LOCKED, Ordering::Relaxed);
                continue;
            }
            let mut seen = observed;
            // Acquire: what the previous holder installed is visible before this one overwrites.
            let try_lock = || {
                let locked = word.compare_exchange(
                    observed,
                    observed | Tid::LOCKED,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                seen = locked.err().unwrap_or(observed);
                // Only an aborting holder leaves the tid as it was; another tid is final.
                seen != observed | Tid::LOCKED
            };
            spin::until(LOCK_SPINS_MAX, try_lock);
            if Canary::LockedAtAnyVersion.sings()
                && Tid(seen).0 == Tid(seen).version()
                && word
                    .compare_exchange(
                        seen,
                        seen | Tid::LOCKED,
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                continue;
            }
            if seen != observed {
                self.protocol.found_changed(write.record);
                self.unlock(position);
                return Err(match Tid(seen).is_locked() {
                    true => AbortCause::WriteLock,
                    false => AbortCause::ReadValidation,
                });
            }
            self.lock_split(position);
        }
        Ok(())
    }

    /// Locks the tid of a record that the attempt writes and has not observed as a whole: whatever
    /// its version is, as long as there is a row.
    fn lock_at_any_version(&mut self, position: usize) -> Result<(), AbortCause> {
        let write = &self.writes[position];
        let word = write.record.tid();
        let mut seen = 0;
        let is_locked = spin::until(LOCK_SPINS_MAX, || {
            seen = word.load(Ordering::Relaxed);
            let is_gone = Tid(seen).is_dead() || Tid(seen).is_absent();
            // Acquire: what the previous holder installed is visible before this one looks at it.
            is_gone
                || !Tid(seen).is_locked()
                    && word
                        .compare_exchange(
                            seen,
                            seen | Tid::LOCKED,
                            Ordering::Acquire,
                            Ordering::Relaxed,
                        )
                        .is_ok()
        });
        if !is_locked {
            return Err(AbortCause::WriteLock);
        }
        if Tid(seen).is_dead() || Tid(seen).is_absent() {
            return Err(AbortCause::ReadValidation);
        }
        let item = write.item as usize;
        if !C::is_near(Tid(self.items[item].observed), write.record) {
            // Release: as in `unlock`.
            word.store(seen, Ordering::Release);
            return Err(AbortCause::ReadValidation);
        }
        self.rely_on(item, Tid(seen));
        Ok(())
    }

    /// Has the item at this position rely on the tid that its record has now that the attempt has
    /// locked it. What was observed of the record so far, that it is there and has the key by which
    /// it was found, is as true of this version: it may have been deleted and inserted again
    /// meanwhile.
    #[inline(always)]
    pub fn rely_on(&mut self, position: usize, tid: Tid) {
        let item = &mut self.items[position];
        if tid.0 != item.observed {
            let former = Tid(std::mem::replace(&mut item.observed, tid.0));
            self.calm.is_disturbed();
            self.recorder.read_moves(item.record, former, tid);
        }
    }

    /// As [`Optimistic::lock_tids`], but in the order of the records' addresses, so that a lock
    /// that is held can be waited for: its holder waits for none before it in that order.
    #[cold]
    fn lock_sorted_tids(&mut self) -> Result<(), AbortCause> {
        let mut order: Vec<usize> = (0..self.writes.len()).collect();
        order.sort_unstable_by_key(|position| self.writes[*position].record.address());
        for (place, position) in order.iter().enumerate() {
            let write = &self.writes[*position];
            let observed = self.items[write.item as usize].observed;
            let mut spinner = Spinner::default();
            loop {
                // Acquire: as in `lock_tids`.
                let locked = write.record.tid().compare_exchange(
                    observed,
                    observed | Tid::LOCKED,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                match locked {
                    Ok(_) => break,
                    Err(seen) if seen == observed | Tid::LOCKED => spinner.spin(),
                    Err(_) => {
                        for position in &order[..place] {
                            let write = &self.writes[*position];
                            let observed = self.items[write.item as usize].observed;
                            write.record.tid().store(observed, Ordering::Release);
                        }
                        return Err(AbortCause::ReadValidation);
                    }
                }
            }
        }
        Ok(())
    }

    /// Locks the tids of the write set, which no other attempt may change as this one holds the
    /// records in another way. They are as they were observed.
    pub fn lock_held_tids(&mut self) {
        for write in self
            .writes
            .iter()
            .filter(|write| write.kind != WriteKind::Lost)
        {
            let observed = self.items[write.item as usize].observed;
            // The release fence in `install` orders it before the new words.
            (write.record.tid()).store(observed | Tid::LOCKED, Ordering::Relaxed);
        }
    }

    /// Locks the write set exclusively in `aux` by `hold`, which waits a little where others hold a
    /// record and then says no, and after that its tids, as they were observed. On failure no tid
    /// is locked; the locks in `aux` stay until the attempt ends.
    ///
    /// # Errors
    /// [`AbortCause::ReadValidation`] when a record has changed, [`AbortCause::WriteLock`] when
    /// others hold one for too long.
    pub fn lock_write_set(
        &mut self,
        hold: impl Fn(&mut C, RecordRef) -> bool,
    ) -> Result<(), AbortCause> {
        for write in &self.writes {
            // Waiting is bounded, as the record's holder may be waiting for one of this attempt's.
            if !hold(&mut self.protocol, write.record) {
                return Err(AbortCause::WriteLock);
            }
            // An attempt that changes it holds the lock; what the last holder did is visible.
            let now = write.record.tid().load(Ordering::Relaxed);
            if now != self.items[write.item as usize].observed {
                self.protocol.found_changed(write.record);
                return Err(AbortCause::ReadValidation);
            }
        }
        self.lock_held_tids();
        Ok(())
    }

    /// Releases the locks of the whole write set without a change.
    pub fn unlock_tids(&mut self) {
        self.unlock(self.writes.len());
    }

    /// Releases the first `count` locks without a change.
    pub fn unlock(&mut self, count: usize) {
        for (position, write) in self.writes[..count].iter().enumerate() {
            if write.kind == WriteKind::Lost {
                continue;
            }
            self.unlock_split(position);
            let observed = self.items[write.item as usize].observed;
            write.record.tid().store(observed, Ordering::Release);
        }
    }
}
