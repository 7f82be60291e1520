//! Partitions with one lock each: what is in a partition is used by one transaction at a time.
//!
//! Sources: H-Store (Kallman et al., PVLDB 1, 2008) as ORTHRUS §4.3 (Partitioned-store), STRIFE
//! §5.4 (PartCC), healing §5 (THEDB-DT) and VLL §3.1 compare with it.
//!
//! # The idea
//!
//! Where each transaction touches one part of the data, and others touch others, there is nothing
//! to be locked but the part: one lock instead of one for each record. Inside, a transaction runs
//! as if it were alone. One that touches several partitions takes the locks of all of them, and
//! keeps all others out of each.
//!
//! # Phases
//!
//! | phase | where |
//! |---|---|
//! | plan: a reconnaissance finds which partitions the call will touch | `shared/planning` |
//! | take their locks, in their order | [`PartitionLocks::take_all`] |
//! | run in place, with an undo log | `access/partition_locking` |
//! | commit or undo, let go | there |
//!
//! # Invariants
//!
//! - Who touches a record holds the lock of its partition, from before until the end of the
//!   transaction. A record's partition follows from its row
//!   ([`part_of`](kiln_storage::table::Table::part_of)), and is asked when it is met.
//! - Rows of a table that every partition has are read with any lock, and written with all.
//! - A record that its transaction inserts may be of a partition that it does not have: it is
//!   marked until the end ([`fresh`]), and an attempt that meets the mark starts again.
//! - Gaps are guarded by the versions of index nodes, as indexes are not divided.
//!
//! # Order of locks
//!
//! A planned transaction waits for partitions in the order of their numbers, before it has done
//! anything. Whatever was not planned is taken only if it is free, else the attempt ends and the
//! next plan has it. Transactions of several statements take what is free as they meet it; one that
//! is repeated takes what its last attempt met, in order, before it starts. So no workers wait in a
//! circle.
//!
//! # Which anomalies are excluded, and how
//!
//! All: two transactions that have a record in common have a partition in common, and are there one
//! after the other.

pub(crate) mod registration;

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

use super::in_flight::Idle;
use crate::shared::core_slots::{CoreSlots, WAIT_IN_CORE_SLOT_NS};
use crate::shared::locks::{
    ByPartition, CoveringLocks, Locks, PlannedLocks, Taken, TravellingLocks, WAIT_MAX_NS, fresh,
};
use crate::shared::planning::Claim;

/// Partitions at most.
pub const PARTITIONS_MAX: usize = 4096;

/// What the transaction missed: another one has what it did not plan.
const MISS: AbortCause = AbortCause::FootprintMiss;

/// What the workers share: the locks.
pub struct PartitionedState {
    partitions: Box<[Partition]>,
}

/// The lock of a partition, on cache lines of its own.
#[repr(align(128))]
struct Partition {
    /// The worker that has it, and one more; 0 is none.
    owner: AtomicU32,
}

impl PartitionedState {
    /// With so many partitions; with 0 twice as many as there are cores.
    pub fn new(partitions: usize) -> PartitionedState {
        let count = match partitions {
            0 => thread::available_cores() * 2,
            wanted => wanted,
        };
        let partitions = (0..count.clamp(1, PARTITIONS_MAX)).map(|_| Partition {
            owner: AtomicU32::new(0),
        });
        let shared = PartitionedState {
            partitions: partitions.collect(),
        };
        for (number, partition) in shared.partitions.iter().enumerate() {
            let address = std::ptr::from_ref(partition).addr();
            name_range(address, size_of::<Partition>(), || {
                format!("partition[{number}]")
            });
        }
        shared
    }
}

/// How a lock is held.
#[derive(Clone, Copy)]
pub enum Held {
    /// Of this partition.
    Partition(u16),
    /// Of all that were free when a table was written that every partition has.
    Rest,
    /// The record is the transaction's own.
    New,
}

/// A worker's side of the locks.
pub struct PartitionLocks {
    shared: Arc<PartitionedState>,
    core_slots: CoreSlots,
    worker: u32,
    deadline_ns: Option<u64>,
    /// The partitions that it has.
    held: Vec<u16>,
    /// The same, by partition.
    is_held: Box<[bool]>,
    /// What is being taken: each partition with a claim that is in it.
    wanted: Vec<(u16, Claim)>,
}

impl PartitionLocks {
    /// For the worker with this number, which no other worker has that uses the same locks, and
    /// which shares these core slots.
    pub fn new(
        shared: Arc<PartitionedState>,
        core_slots: CoreSlots,
        worker: u32,
    ) -> PartitionLocks {
        let count = shared.partitions.len();
        PartitionLocks {
            shared,
            core_slots,
            worker,
            deadline_ns: None,
            held: Vec::with_capacity(count),
            is_held: vec![false; count].into(),
            wanted: Vec::with_capacity(count),
        }
    }

    fn count(&self) -> usize {
        self.shared.partitions.len()
    }

    /// Takes the lock of a partition, which it does not have, if no other worker has it.
    #[inline]
    fn try_take(&mut self, partition: u16) -> bool {
        let owner = &self.shared.partitions[partition as usize].owner;
        // Acquire pairs with the release in `let_go`: what the last owner did is there.
        let is_taken = owner.load(Ordering::Relaxed) == 0
            && owner
                .compare_exchange(0, self.worker + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if is_taken {
            self.is_held[partition as usize] = true;
            self.held.push(partition);
        }
        is_taken
    }

    /// Takes the lock of a partition, and waits for it: not past the deadline, and not for ever, as
    /// its owner may be a block whose client thinks. Where other workers want this one's core slot
    /// it waits for a millisecond.
    fn take_in_turn(&mut self, partition: u16) -> Result<(), AbortCause> {
        if self.try_take(partition) {
            return Ok(());
        }
        point("partitioned.waits");
        let (mut idle, mut limit) = (Idle::default(), None);
        while !self.try_take(partition) {
            if idle.has_spun() {
                let now = time::now_ns();
                let limit = *limit.get_or_insert_with(|| {
                    let deadline = self.deadline_ns.unwrap_or(u64::MAX);
                    deadline.min(now + WAIT_MAX_NS)
                });
                if now >= limit {
                    return Err(AbortCause::LockTimeout);
                }
                if idle.has_lasted(WAIT_IN_CORE_SLOT_NS) && self.core_slots.is_awaited(self.worker)
                {
                    return Err(AbortCause::GaveWay);
                }
            }
            idle.pause();
        }
        Ok(())
    }

    #[inline]
    fn let_go(&mut self, partition: u16) {
        self.is_held[partition as usize] = false;
        // Release pairs with the acquire in `try_take`.
        self.shared.partitions[partition as usize]
            .owner
            .store(0, Ordering::Release);
    }

    /// Lets all go that it still has.
    fn let_all_go(&mut self) {
        while let Some(partition) = self.held.pop() {
            if self.is_held[partition as usize] {
                self.let_go(partition);
            }
        }
    }

    /// Lists the partitions of some claims, each once and in order.
    fn list_wanted(&mut self, claims: impl Iterator<Item = Claim>) {
        let count = self.count();
        self.wanted.clear();
        let mut table = None;
        for claim in claims {
            if !claim.part.is_replicated() {
                let partition = claim.part.partition(count) as u16;
                self.wanted.push((partition, claim));
            } else if claim.exclusive || table.is_none() {
                table = Some(claim);
            }
        }
        match table {
            Some(claim) if claim.exclusive => {
                self.wanted.clear();
                let all = (0..count).map(|partition| (partition as u16, claim));
                self.wanted.extend(all);
            }
            // Any will do.
            Some(claim) if self.wanted.is_empty() => {
                let own = self.worker as usize % count;
                self.wanted.push((own as u16, claim));
            }
            _ => {
                self.wanted
                    .sort_unstable_by_key(|(partition, _)| *partition);
                self.wanted.dedup_by_key(|(partition, _)| *partition);
            }
        }
    }
}

impl Locks for PartitionLocks {
    type Held = Held;
    type Naming = ByPartition;
    const NEW_AUX: Option<u64> = Some(fresh::FRESH);

    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.deadline_ns = deadline_ns;
    }

    fn take(&mut self, _: RecordRef, _: bool) -> Result<Taken<Held>, AbortCause> {
        unreachable!("locks are taken with the part of the data that they are in")
    }

    /// Takes the lock of a partition that was not planned, or all that are left, if no worker has
    /// to be waited for.
    #[cold]
    fn take_claim(&mut self, claim: Claim) -> Result<Taken<Held>, AbortCause> {
        let count = self.count();
        if claim.part.is_replicated() && claim.exclusive {
            for partition in 0..count as u16 {
                if !self.is_held[partition as usize] && !self.try_take(partition) {
                    // What it took is let go with all else.
                    return Err(MISS);
                }
            }
            return Ok(Taken::Now(Held::Rest));
        }
        let partition = match claim.part.is_replicated() {
            true => self.worker as usize % count,
            false => claim.part.partition(count),
        } as u16;
        match self.try_take(partition) {
            true => Ok(Taken::Now(Held::Partition(partition))),
            false => Err(MISS),
        }
    }

    #[inline(always)]
    fn take_new(&mut self, _: RecordRef) -> Result<Held, AbortCause> {
        Ok(Held::New)
    }

    fn upgrade(&mut self, _: RecordRef, _: Held) -> Result<Taken<Held>, AbortCause> {
        unreachable!("locks of partitions are exclusive")
    }

    fn wait(&mut self, _: RecordRef, _: Held) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline]
    fn release(&mut self, record: RecordRef, held: Held, _: bool) {
        match held {
            Held::New => fresh::finish(record),
            Held::Partition(partition) => {
                if self.is_held[partition as usize] {
                    self.let_go(partition);
                }
            }
            Held::Rest => self.let_all_go(),
        }
    }

    fn released_all(&mut self) {
        self.let_all_go();
    }
}

impl PlannedLocks for PartitionLocks {
    #[inline(always)]
    fn admits(&self, record: RecordRef, held: Held) -> Result<(), AbortCause> {
        match held {
            Held::New => Ok(()),
            Held::Partition(_) | Held::Rest => fresh::admit(record),
        }
    }

    fn take_all(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        mut hold: impl FnMut(Claim, Held),
    ) -> Result<(), AbortCause> {
        self.list_wanted(claims);
        for at in 0..self.wanted.len() {
            let (partition, claim) = self.wanted[at];
            self.take_in_turn(partition)?;
            point("partitioned.taken");
            hold(claim, Held::Partition(partition));
        }
        Ok(())
    }
}

impl CoveringLocks for PartitionLocks {
    #[inline(always)]
    fn covers(&self, part: Part, exclusive: bool) -> bool {
        match (part.is_replicated(), exclusive) {
            (false, _) => self.is_held[part.partition(self.count())],
            (true, false) => !self.held.is_empty(),
            (true, true) => self.held.len() == self.count(),
        }
    }

    #[inline(always)]
    fn admits_covered(&self, record: RecordRef) -> Result<(), AbortCause> {
        fresh::admit(record)
    }
}

impl TravellingLocks for PartitionLocks {}
