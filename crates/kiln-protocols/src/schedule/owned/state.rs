//! What the workers share: the partitions, and the rings between these and the workers.

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::sync::Mutex;
use kiln_platform::thread;
use kiln_storage::table::{Part, WORKERS_MAX};

use super::balance::Balance;
use super::partition::Partition;
use super::roles::Serving;
use super::slots::Slots;
use super::{Demand, IN_FLIGHT_MAX, PartitionTable};
use crate::factors::{Claims, Partitioning};
use crate::schedule::cache_padded::CachePadded;
use crate::schedule::in_flight::{Blocks, Solitude};
use crate::shared::locks::Naming;
use crate::shared::planning::Claim;
use crate::shared::ring::Ring;

/// What the workers share.
pub struct OwnedState<T> {
    pub(super) partitions: Box<[Partition<T>]>,
    /// By worker.
    pub(super) channels: Box<[WorkerChannels]>,
    pub(super) sequencer: Sequencer,
    /// The workers that exist and do not wait for their core slot, a bit each.
    pub(super) present: [AtomicU64; WORKERS_MAX / 64],
    pub(super) serving: Serving,
    /// How many of them look after partitions.
    pub(super) controllers: AtomicU32,
    /// The worker that keeps all others out, and one more; 0 is none.
    pub(super) alone: AtomicU32,
    /// When a transaction may ask for that.
    pub(super) solitude: Solitude,
    /// Transactions of several statements.
    pub(super) blocks: Blocks,
    pub(super) cores: usize,
    /// How many workers look after partitions, where that is found out.
    pub(super) balance: Option<Balance>,
    /// Which partition has which part of the data, where that is found out.
    pub(super) slots: Option<Slots>,
    /// Whether records have locks by column group.
    pub(super) by_group: bool,
}

/// Held to give a transaction its place in the order of all that come to several partitions at
/// once.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Sequencer(pub(super) Mutex<()>);

/// Where a worker and the partitions leave messages for each other.
#[repr(align(128))]
pub(super) struct WorkerChannels {
    /// By partition: what the worker asks for, and what it gives back.
    pub(super) requests: Box<[Ring]>,
    /// By partition: what was granted.
    pub(super) granted: Box<[Ring]>,
    /// 0 looks after no partition; else its number among those that do, and one more.
    pub(super) role: AtomicU32,
    /// Transactions that may have locks.
    pub(super) running: CachePadded<AtomicU32>,
    /// Transactions that have ended, where that is counted.
    pub(super) ended: CachePadded<AtomicU32>,
}

impl<T: PartitionTable> OwnedState<T> {
    /// For workers with numbers below [`WORKERS_MAX`], with so many partitions, as far as there may
    /// be.
    pub fn new(partitions: usize) -> OwnedState<T> {
        let count = partitions.clamp(1, T::PARTITIONS_MAX);
        let rings = |capacity| (0..count).map(|_| Ring::new(capacity)).collect();
        let tables = T::several(count).into_iter().enumerate();
        let partitions = tables.map(|(number, table)| Partition::new(number, count, table));
        let channels = (0..WORKERS_MAX).map(|_| WorkerChannels {
            // Two messages about a demand may be there: one about its withdrawal.
            requests: rings(2 * IN_FLIGHT_MAX),
            granted: rings(IN_FLIGHT_MAX),
            role: AtomicU32::new(0),
            running: CachePadded::default(),
            ended: CachePadded::default(),
        });
        let shared = OwnedState {
            partitions: partitions.collect(),
            channels: channels.collect(),
            sequencer: Sequencer::default(),
            present: [const { AtomicU64::new(0) }; WORKERS_MAX / 64],
            serving: Serving::default(),
            controllers: AtomicU32::new(0),
            alone: AtomicU32::new(0),
            solitude: Solitude::default(),
            blocks: Blocks::default(),
            cores: thread::available_cores(),
            balance: None,
            slots: None,
            by_group: false,
        };
        shared.name_memory();
        shared
    }

    /// Lets the workers find out how many partitions, and workers that look after them, there
    /// should be, at first `start`, from how many transactions end while so many do; `count` are
    /// compared.
    pub fn balanced(mut self, start: usize, count: u32) -> OwnedState<T> {
        let most = self.partitions.len() as u32;
        self.balance = Some(Balance::new(start as u32, most, count));
        self
    }

    /// Has records locked by column group if `claims` says so.
    pub fn claimed(mut self, claims: Claims) -> OwnedState<T> {
        self.by_group = claims == Claims::Columns;
        self
    }

    /// Divides the data over the partitions in this way.
    pub fn divided(mut self, partitioning: Partitioning) -> OwnedState<T> {
        if let Partitioning::Balanced { claims } = partitioning {
            self.slots = Some(Slots::new(self.partitions(), claims));
        }
        self
    }

    /// Names what stays where it is in reports about cache lines.
    pub(super) fn name_memory(&self) {
        fn name<O>(object: &O, name: impl Fn() -> String) {
            name_range(std::ptr::from_ref(object).addr(), size_of::<O>(), name);
        }
        for (number, partition) in self.partitions.iter().enumerate() {
            name(partition, || format!("partition[{number}]"));
            if let Some(ring) = &partition.sequenced {
                ring.name_memory(|| format!("ring[sequencer to {number}]"));
            }
            for (from, ring) in partition.forwarded.iter().enumerate() {
                ring.name_memory(|| format!("ring[{from} to {number}]"));
            }
        }
        for (worker, channels) in self.channels.iter().enumerate() {
            name(channels, || format!("channels[{worker}]"));
            for (partition, ring) in channels.requests.iter().enumerate() {
                ring.name_memory(|| format!("ring[worker {worker} to {partition}]"));
            }
            for (partition, ring) in channels.granted.iter().enumerate() {
                ring.name_memory(|| format!("ring[{partition} to worker {worker}]"));
            }
        }
    }

    /// The partitions in which a claim is a lock: all, for a table that every partition has and
    /// that is written.
    pub(super) fn partitions_of(&self, claim: Claim) -> std::ops::Range<usize> {
        let count = match T::Naming::BY_PART {
            true => self.partitions(),
            false => 1,
        };
        if claim.part.is_replicated() && claim.exclusive {
            return 0..count;
        }
        let partition = match T::Naming::BY_PART {
            true => self.partition_of(claim.part),
            false => 0,
        };
        partition..partition + 1
    }

    /// The partition of a part of the data. It does not change while a transaction may have locks.
    #[inline(always)]
    pub(super) fn partition_of(&self, part: Part) -> usize {
        match &self.slots {
            Some(slots) => slots.partition(part),
            None => part.partition(self.partitions()),
        }
    }

    /// Makes what a call asks for of the claims of its plan, which `planner` has made.
    pub(super) fn demand(&self, planner: u32, claims: &[Claim], demand: &mut Demand) {
        let partitions = self.partitions();
        if let Some(slots) = &self.slots {
            slots.count(planner, claims);
        }
        let own = (demand.home as usize % partitions) as u16;
        if T::OWNERS_RUN {
            let first = first_part(claims);
            demand.first_stop = first.map_or(own, |part| self.partition_of(part) as u16);
        }
        match T::Naming::BY_PART {
            true => demand.set(claims, partitions, |part| self.partition_of(part)),
            false => demand.set_in(claims, own),
        }
    }

    /// The workers that may have sent something.
    #[inline]
    pub(super) fn present(&self) -> impl Iterator<Item = usize> {
        self.present.iter().enumerate().flat_map(|(word, present)| {
            // Acquire pairs with the release in `appear`.
            let mut left = present.load(Ordering::Acquire);
            std::iter::from_fn(move || {
                let next = (left != 0).then(|| word * 64 + left.trailing_zeros() as usize);
                left &= left.wrapping_sub(1);
                next
            })
        })
    }

    /// A worker comes into being.
    pub(super) fn come(&self, worker: u32) {
        self.appear(worker);
        if let Some(slots) = &self.slots {
            slots.come(worker);
        }
    }

    /// A worker may send messages from now on.
    pub(super) fn appear(&self, worker: u32) {
        let bit = 1 << (worker % 64);
        // Release pairs with the acquire in `work_off`: the rings are as the last owner left them.
        self.present[worker as usize / 64].fetch_or(bit, Ordering::Release);
    }

    /// A worker goes, or is away for some time; nothing of it is in flight.
    pub(super) fn go(&self, worker: u32) {
        let bit = 1 << (worker % 64);
        self.present[worker as usize / 64].fetch_and(!bit, Ordering::Release);
    }
}

/// The part of the data that the first record belongs to which a transaction will meet, as far as
/// its plan knows.
fn first_part(claims: &[Claim]) -> Option<Part> {
    let divided = claims.iter().filter(|claim| !claim.part.is_replicated());
    let first = divided.min_by_key(|claim| claim.finding)?;
    Some(first.part)
}
