//! The locks that an attempt holds, and how it finds them again.

use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

use crate::shared::locks::Locks;
use crate::shared::planning::Claim;
use crate::shared::record_map::RecordMap;

/// A lock that the attempt holds.
#[derive(Clone, Copy)]
pub(super) struct Held<H> {
    pub(super) record: RecordRef,
    pub(super) held: H,
    pub(super) exclusive: bool,
    pub(super) part: Part,
}

/// The locks that an attempt holds.
pub(super) struct HeldLocks<H> {
    pub(super) all: Vec<Held<H>>,
    /// From a record to its lock.
    pub(super) by_record: RecordMap,
    /// Of all locks, those before this one are in the map; the others are put there when it is asked.
    pub(super) named: usize,
    /// The locks of whole tables.
    pub(super) of_tables: Vec<u32>,
}

impl<H> Default for HeldLocks<H> {
    fn default() -> HeldLocks<H> {
        HeldLocks {
            all: Vec::new(),
            by_record: RecordMap::default(),
            named: 0,
            of_tables: Vec::new(),
        }
    }
}

impl<H: Copy> HeldLocks<H> {
    /// All of them: their records, and whether exclusively.
    pub(super) fn own(&self) -> impl Iterator<Item = (RecordRef, H, bool)> {
        let locks = self.all.iter();
        locks.map(|lock| (lock.record, lock.held, lock.exclusive))
    }

    /// Notes a lock that is held.
    #[inline(always)]
    pub(super) fn hold<L: Locks>(&mut self, claim: Claim, held: H) -> u32 {
        let note = self.all.len() as u32;
        self.push(claim, held);
        if L::COARSE || !L::DIVIDED {
            // It is known by what it covers; or named when a record is asked for.
        } else if claim.part.is_replicated() {
            self.of_tables.push(note);
        } else {
            self.name::<L>(claim.record, note);
        }
        note
    }

    /// Notes the lock of a new record, which nobody else knows.
    #[inline(always)]
    pub(super) fn hold_new<L: Locks>(&mut self, claim: Claim, held: H) -> u32 {
        let note = self.all.len() as u32;
        self.push(claim, held);
        if L::DIVIDED {
            self.name::<L>(claim.record, note);
        }
        note
    }

    #[inline(always)]
    fn push(&mut self, claim: Claim, held: H) {
        self.all.push(Held {
            record: claim.record,
            held,
            exclusive: claim.exclusive,
            part: claim.part,
        });
    }

    #[inline(always)]
    fn name<L: Locks>(&mut self, record: RecordRef, note: u32) {
        // A new record may be where one was that is planned: its own lock is the one that counts.
        if !L::PLANNED || !self.by_record.replace(record, note) {
            self.by_record.insert(record, note);
        }
    }

    /// The lock of a record, or of its whole table.
    #[inline(always)]
    pub(super) fn find<L: Locks>(&mut self, claim: Claim) -> Option<u32> {
        if !L::DIVIDED {
            while let Some(lock) = self.all.get(self.named) {
                self.name::<L>(lock.record, self.named as u32);
                self.named += 1;
            }
            return self.by_record.get(claim.record);
        }
        let found = self.by_record.get(claim.record);
        match found {
            // Its cell may have had a row of another part when the lock was planned.
            Some(note) if self.all[note as usize].part == claim.part => Some(note),
            None if L::COARSE || !claim.part.is_replicated() => None,
            _ => self.find_among_all(claim),
        }
    }

    /// The lock of a record that was planned with several parts, or of its whole table.
    fn find_among_all(&self, claim: Claim) -> Option<u32> {
        let is_its = |lock: &Held<H>| {
            lock.part == claim.part && (lock.part.is_replicated() || lock.record == claim.record)
        };
        if claim.part.is_replicated() {
            let mut tables = self.of_tables.iter().copied();
            return tables.find(|note| is_its(&self.all[*note as usize]));
        }
        let position = self.all.iter().position(is_its)?;
        Some(position as u32)
    }
}
