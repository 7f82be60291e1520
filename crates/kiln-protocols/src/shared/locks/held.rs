//! The locks that an attempt holds, and how it finds them again.

use std::collections::HashMap;

use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;
use kiln_storage::table::{Part, Table};

use super::{Locks, Step};
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
    pub fn hold<N: Naming>(&mut self, claim: Claim, held: H) -> u32 {
        let note = self.push(claim, held);
        N::name(self, claim, note);
        note
    }

    /// Notes the lock of a new record, which no other transaction knows.
    #[inline(always)]
    pub fn hold_new<N: Naming>(&mut self, claim: Claim, held: H) -> u32 {
        let note = self.push(claim, held);
        N::name_new(self, claim, note);
        note
    }

    /// The lock of a record, or of its whole table.
    #[inline(always)]
    pub fn find<N: Naming>(&mut self, claim: Claim) -> Option<u32> {
        N::find(self, claim)
    }

    #[inline(always)]
    fn push(&mut self, claim: Claim, held: H) -> u32 {
        let note = self.all.len() as u32;
        self.all.push(Held {
            record: claim.record,
            held,
            exclusive: claim.exclusive,
            part: claim.part,
        });
        note
    }

    /// Names a lock by its record. A new record may be where one was that is planned: its own lock
    /// is the one that counts.
    #[inline(always)]
    fn rename(&mut self, record: RecordRef, note: u32) {
        if !self.by_record.replace(record, note) {
            self.by_record.insert(record, note);
        }
    }

    /// The lock of a record, after those that have no names yet have got them.
    #[inline(always)]
    fn find_named(
        &mut self,
        record: RecordRef,
        name: impl Fn(&mut HeldLocks<H>, RecordRef, u32),
    ) -> Option<u32> {
        while let Some(lock) = self.all.get(self.named) {
            let (record, note) = (lock.record, self.named as u32);
            name(self, record, note);
            self.named += 1;
        }
        self.by_record.get(record)
    }

    /// The lock of a record of a part. Its cell may have had a row of another part when the lock
    /// was planned: it is looked for among all then, and also where it may be that of the whole table.
    #[inline(always)]
    fn find_of_part(&self, claim: Claim, of_table: bool) -> Option<u32> {
        match self.by_record.get(claim.record) {
            Some(note) if self.all[note as usize].part == claim.part => Some(note),
            None if !of_table => None,
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

/// How an attempt knows the locks that it holds.
pub trait Naming {
    /// Whether claims say the part of the data that their records belong to. A lock may be that of
    /// a whole table then, and the record of a lock in another part than when it was planned.
    const BY_PART: bool = false;

    /// A claim on a record of `table`.
    #[inline(always)]
    fn claim(table: &Table, record: RecordRef, exclusive: bool) -> Claim {
        Claim::new(table, record, exclusive, Self::BY_PART)
    }

    /// Names the lock at `note`, which a claim was granted.
    fn name<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim, note: u32);

    /// Names the lock of a new record.
    fn name_new<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim, note: u32);

    /// The lock that a claim asks for.
    fn find<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim) -> Option<u32>;
}

/// By their records, each of which is locked when it is met.
pub struct ByRecord;

impl Naming for ByRecord {
    /// It is named when one is asked for.
    #[inline(always)]
    fn name<H: Copy>(_: &mut HeldLocks<H>, _: Claim, _: u32) {}

    #[inline(always)]
    fn name_new<H: Copy>(_: &mut HeldLocks<H>, _: Claim, _: u32) {}

    #[inline(always)]
    fn find<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim) -> Option<u32> {
        locks.find_named(claim.record, |locks, record, note| {
            locks.by_record.insert(record, note);
        })
    }
}

/// By their records, which were planned.
pub struct ByPlannedRecord;

impl Naming for ByPlannedRecord {
    /// It is named when one is asked for.
    #[inline(always)]
    fn name<H: Copy>(_: &mut HeldLocks<H>, _: Claim, _: u32) {}

    #[inline(always)]
    fn name_new<H: Copy>(_: &mut HeldLocks<H>, _: Claim, _: u32) {}

    #[inline(always)]
    fn find<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim) -> Option<u32> {
        locks.find_named(claim.record, HeldLocks::rename)
    }
}

/// By their planned records and the parts of the data that these belong to; a table that every
/// partition has is locked as a whole.
pub struct ByPart;

impl Naming for ByPart {
    const BY_PART: bool = true;

    #[inline(always)]
    fn name<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim, note: u32) {
        match claim.part.is_replicated() {
            true => locks.of_tables.push(note),
            false => locks.rename(claim.record, note),
        }
    }

    #[inline(always)]
    fn name_new<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim, note: u32) {
        locks.rename(claim.record, note);
    }

    #[inline(always)]
    fn find<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim) -> Option<u32> {
        locks.find_of_part(claim, claim.part.is_replicated())
    }
}

/// By the partitions that they cover: only those of new records have names.
pub struct ByPartition;

impl Naming for ByPartition {
    const BY_PART: bool = true;

    #[inline(always)]
    fn name<H: Copy>(_: &mut HeldLocks<H>, _: Claim, _: u32) {}

    #[inline(always)]
    fn name_new<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim, note: u32) {
        locks.rename(claim.record, note);
    }

    #[inline(always)]
    fn find<H: Copy>(locks: &mut HeldLocks<H>, claim: Claim) -> Option<u32> {
        locks.find_of_part(claim, false)
    }
}
