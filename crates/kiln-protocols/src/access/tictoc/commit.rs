//! The commit: the timestamp, and validation at it.

use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_procedure::{AbortCause, Access};
use kiln_storage::record::Tid;

use super::GroupTimes;
use super::TicTocCommit;
use super::gaps::Gaps;
use super::times::BY_RECORD;
use crate::canary::Canary;
use crate::shared::optimistic::{Item, NO_WRITE, Optimistic};

/// The `wts` of what an item relies on; of split columns, the attempt has noted them all
/// together.
#[inline(always)]
fn written_at(item: &Item<u64>) -> u64 {
    match item.is_split() {
        true => 0,
        false => Tid(item.observed).version(),
    }
}

/// Up to when what an item relies on is known to be valid.
#[inline(always)]
fn valid_until(item: &Item<u64>) -> u64 {
    item.note & !BY_RECORD
}

impl Optimistic<TicTocCommit> {
    /// Phase 2: the earliest timestamp at which all that was read is valid and all that is written
    /// may begin. The write set is locked, and a sequentially consistent fence lies between.
    #[inline]
    pub(super) fn timestamp(&self) -> u64 {
        let mut timestamp = self.newest_read();
        for write in &self.writes {
            let version = Tid(self.items[write.item as usize].observed).version();
            let rts = self.protocol.read_until(write.record, version);
            timestamp = timestamp.max(rts + 1);
            if write.locks_split
                && let Some(times) = &self.protocol.times
            {
                timestamp = timestamp.max(times.read_split(write.table()) + 1);
            }
        }
        let TicTocCommit {
            gaps,
            relied,
            filled,
            ..
        } = &self.protocol;
        if *relied | *filled != 0 && !Canary::GapsWithoutTime.sings() {
            timestamp = timestamp.max(gaps.earliest(*relied, *filled));
        }
        timestamp
    }

    /// The latest `wts` of all that was read.
    #[inline]
    pub(super) fn newest_read(&self) -> u64 {
        let earliest = self.protocol.split_since;
        self.items.iter().map(written_at).fold(earliest, u64::max)
    }

    /// Whether the attempt writes the record that this item observed.
    #[inline]
    fn is_own(&self, item: &Item<u64>) -> bool {
        item.write != NO_WRITE || self.written.get(item.record).is_some()
    }

    /// Phase 3: makes all that was read valid at `timestamp`, if that can be. `locked` says whether
    /// the attempt has locked its write set, and is about to install it.
    #[inline]
    pub(super) fn validate(&mut self, timestamp: u64, locked: bool) -> Result<(), AbortCause> {
        for item in &self.items {
            if valid_until(item) >= timestamp {
                continue;
            }
            let now = item.record.tid().load(Ordering::Relaxed);
            let extends = match item.is_split() {
                true => item.note & BY_RECORD != 0 && item.write == NO_WRITE,
                false if now == item.observed => true,
                // Its own.
                false if locked && now == item.observed | Tid::LOCKED && self.is_own(item) => false,
                // In vain: each further extension would take a cache line from others.
                false if !Canary::ReadValidationSkipped.sings() => {
                    return Err(AbortCause::ReadValidation);
                }
                false => false,
            };
            if extends && !Canary::NotExtended.sings() {
                (self.protocol).extend(item.record, Tid(now).version(), timestamp);
            }
        }
        if let Some(times) = &self.protocol.times
            && !Canary::NotExtended.sings()
        {
            times.extend_split(self.protocol.split, timestamp);
        }
        let TicTocCommit {
            gaps,
            relied,
            filled,
            ..
        } = &self.protocol;
        // Entries that will be taken back have only shown that there was room for them.
        let relied = match locked {
            true => *relied,
            false => *relied | *filled,
        };
        gaps.relied(relied, timestamp);
        point("tictoc.extended");
        // Sequentially consistent: the extensions are visible before the tids and nodes are looked
        // at. Pairs with the fence between a writer's locks (or an inserter's entries) and its
        // timestamp.
        fence(Ordering::SeqCst);
        for item in &self.items {
            // Valid up to then already, whatever has become of the record.
            if valid_until(item) >= timestamp {
                continue;
            }
            if item.is_split() {
                if self.is_split_current(item) || Canary::ReadValidationSkipped.sings() {
                    continue;
                }
                return Err(AbortCause::ReadValidation);
            }
            // Acquire: the loads that are being validated are not moved behind this one.
            let now = item.record.tid().load(Ordering::Acquire);
            let is_as_observed = now == item.observed
                || locked && now == item.observed | Tid::LOCKED && self.is_own(item)
                || Canary::ReadValidationSkipped.sings();
            if !is_as_observed {
                return Err(AbortCause::ReadValidation);
            }
        }
        match self.nodes.is_current() {
            true => Ok(()),
            false => Err(AbortCause::Phantom),
        }
    }

    /// Notes in which tables split columns are written, or records inserted, at `timestamp`,
    /// before they are.
    #[inline]
    pub(super) fn write_split(&mut self, timestamp: u64) {
        let Some(times) = &self.protocol.times else {
            return;
        };
        let (mut written, mut inserted) = (0, 0);
        for write in &self.writes {
            if write.locks_split {
                written |= GroupTimes::mask(write.table());
            } else if write.inserts() {
                inserted |= GroupTimes::mask(write.table());
            }
        }
        times.write_split(written, inserted, timestamp);
    }

    /// Notes which indexes lose entries at `timestamp`, before they do.
    #[inline]
    pub(super) fn leave_gaps(&mut self, timestamp: u64) {
        let mut left = match self.moves_entries() {
            true => self.protocol.filled,
            false => 0,
        };
        for write in &self.writes {
            if write.removes() {
                left |= Gaps::mask_of_all(write.table());
            }
        }
        self.protocol.gaps.left(left, timestamp);
    }
}
