//! The locks that an attempt holds, and how it finds them again.

use std::collections::HashMap;

use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

use crate::shared::locks::{Locks, Step};
use crate::shared::planning::Claim;
use crate::shared::record_map::RecordMap;

/// A lock that the attempt holds.
#[derive(Clone, Copy)]
pub struct Held<H> {
    /// The record, or one that it covers, or the name of the lock on its unwritten columns.
    pub record: RecordRef,
    /// What the worker keeps with it.
    pub held: H,
    /// Or it is shared.
    pub exclusive: bool,
    /// The part of the data that the record belongs to, where locks are divided.
    pub part: Part,
}

/// The locks that an attempt holds.
pub struct HeldLocks<H> {
    /// All of them, in the order in which they were taken.
    pub all: Vec<Held<H>>,
    /// From a record to its lock.
    by_record: RecordMap,
    /// Of all locks, those before this one are in the map; the others are put there when it is
    /// asked.
    named: usize,
    /// The locks of whole tables.
    of_tables: Vec<u32>,
    /// Where records share locks, and this attempt was in its own way.
    sharing: Option<Box<Sharing>>,
}

/// Which of the locks are shared by several records.
#[derive(Default)]
struct Sharing {
    /// The last of the locks that are the same one.
    last: HashMap<u64, u32>,
    /// For each lock in the list the one before it that is the same one, or itself; for those that
    /// came later see `of`.
    previous: Vec<u32>,
}

impl Sharing {
    /// All that are this one.
    fn of(&self, shared: u64) -> impl Iterator<Item = u32> {
        let before = |note: &u32| {
            let previous = self.previous[*note as usize];
            (previous != *note).then_some(previous)
        };
        std::iter::successors(self.last.get(&shared).copied(), before)
    }
}

impl<H> Default for HeldLocks<H> {
    fn default() -> HeldLocks<H> {
        HeldLocks {
            all: Vec::new(),
            by_record: RecordMap::default(),
            named: 0,
            of_tables: Vec::new(),
            sharing: None,
        }
    }
}

impl<H: Copy> HeldLocks<H> {
    /// Takes a lock, or makes it exclusive, in whose way the attempt itself may be; see
    /// [`Locks::take_beside`].
    #[cold]
    pub fn take_beside<L: Locks<Held = H>>(
        &mut self,
        manager: &mut L,
        record: RecordRef,
        step: Step<H>,
        cause: AbortCause,
    ) -> Result<H, AbortCause> {
        let Some(shared) = manager.shared_lock(record) else {
            return Err(cause);
        };
        let sharing = self.sharing.get_or_insert_default();
        for lock in &self.all[sharing.previous.len()..] {
            let note = sharing.previous.len() as u32;
            let previous = manager.shared_lock(lock.record).map_or(note, |shared| {
                sharing.last.insert(shared, note).unwrap_or(note)
            });
            sharing.previous.push(previous);
        }
        let own = sharing.of(shared).map(|note| {
            let lock = &self.all[note as usize];
            (lock.held, lock.exclusive)
        });
        manager.take_beside(record, step, own, cause)
    }

    /// Forgets how locks that were let go are found.
    #[inline(always)]
    pub fn forget(&mut self) {
        self.by_record.clear();
        self.named = 0;
        if self.sharing.is_some() {
            self.sharing = None;
        }
        self.of_tables.clear();
    }

    /// Notes a lock that is held.
    #[inline(always)]
    pub fn hold<L: Locks>(&mut self, claim: Claim, held: H) -> u32 {
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

    /// Notes the lock of a new record, which no other transaction knows.
    #[inline(always)]
    pub fn hold_new<L: Locks>(&mut self, claim: Claim, held: H) -> u32 {
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
    pub fn find<L: Locks>(&mut self, claim: Claim) -> Option<u32> {
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
