//! ORTHRUS: some workers only control concurrency, the others only run transactions.
//!
//! Source: K. Ren, J. M. Faleiro, D. J. Abadi, *Design principles for scaling multi-core OLTP under high
//! contention*, SIGMOD 2016, §3: partitioned functionality, planned access, asynchrony, forwarding.
//!
//! # The idea
//!
//! In other systems every thread does everything, so that the lock manager's data move between all cores.
//! Here the locks are partitioned over *concurrency-control* (CC) workers, and nobody else touches a
//! partition's lock table: it stays in one core's cache and needs no latches. *Execution* workers plan a
//! transaction, send what it wants to the first of its partitions, and go on with others; they hear from
//! the last one that all is granted. Then the transaction runs, on records that nobody else may touch.
//!
//! # Phases
//!
//! ```text
//!  execution worker          CC worker 1         CC worker 4        execution worker
//!  plan ── demand ─────────► take locks ──────► take locks ───────► run, commit
//!                              │ forwarded when all of one partition are granted │
//!                              ◄──────────── give back ─────────────────────────┘
//! ```
//!
//! A *demand* is a list of requests, sorted by partition. It visits its partitions in their order, and is
//! passed on when all locks of one are granted: Ncc + 1 messages instead of 2 Ncc (§3.3). Messages are
//! pointers to demands in rings with one producer and one consumer ([`ring`](crate::shared::ring)): one from each
//! worker to each partition, one back, and one from each partition to each later one.
//!
//! # Invariants
//!
//! - A demand belongs to whoever has the last message about it. Only while its locks are given back do
//!   several partitions have it, each its own requests of it.
//! - Requests of a demand enter the queues of one partition together. So no two transactions wait for each
//!   other in one partition, and across partitions all wait in one order: there are no deadlocks.
//! - A partition is used under its latch. In the steady state one CC worker takes it, again and again; it is there
//!   for changes of roles, for statements, and for a call when no worker has that role.
//! - Rings are never full: a worker has [`IN_FLIGHT_MAX`] demands, and each has one message in a ring at most.
//!
//! # Beyond the paper
//!
//! - *Records that were not planned* end the attempt, and are in the next plan. *New records* have a mark in `aux`
//!   until their transaction has ended, as no partition knows them; whoever meets one with its mark starts again.
//!   Gaps are guarded by the versions of index nodes (`access/two_phase_locking`).
//! - *Transactions of several statements* take what is free from the partitions themselves, and wait for nobody.
//! - *Few workers.* With a single one that serves, there is no CC worker; it looks after the partitions when it would
//!   wait. So do execution workers when the CC workers have not answered for long, as their cores run something else.
//! - *Starvation.* A call that has failed often runs while all others are kept out.
//!
//! # Which anomalies are excluded, and how
//!
//! All: as in strict two-phase locking nobody touches a record on which another has a conflicting lock, and all
//! locks are held to the end.

mod locks;
mod partition;
mod worker;

use std::cell::UnsafeCell;

use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kiln_platform::memory::{self, name_range};
use kiln_platform::spin::Spinner;
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::thread;
use kiln_storage::record::RecordRef;
use kiln_storage::table::WORKERS_MAX;

use partition::{Demand, LockTable};

use crate::shared::ring::Ring;

pub use worker::Orthrus;

/// Calls that a worker has in flight at most, which are still being given back included.
pub const IN_FLIGHT_MAX: usize = 8;

/// Partitions at most.
pub const PARTITIONS_MAX: usize = 32;

/// The lowest bit of a message: give the locks back.
const RELEASE: u64 = 1;

/// What the workers share.
pub struct Shared {
    partitions: Box<[Partition]>,
    /// By worker.
    desks: Box<[Desk]>,
    /// The workers that exist, a bit each.
    present: [AtomicU64; WORKERS_MAX / 64],
    /// The workers that serve, those that came first before the others.
    serving: Mutex<Vec<u32>>,
    /// How many of them have the role of concurrency control.
    controllers: AtomicU32,
    /// The worker that keeps all others out, and one more; 0 is nobody.
    alone: AtomicU32,
}

/// A part of the locks.
#[repr(align(128))]
struct Partition {
    latch: AtomicBool,
    core: UnsafeCell<Core>,
    /// By partition: demands that come from there.
    forwarded: Box<[Ring]>,
}

// SAFETY: the core is used under the latch.
unsafe impl Sync for Partition {}
// SAFETY: the core's pointers lead to demands, which may be used by any thread in its turn.
unsafe impl Send for Partition {}

/// What is used under a partition's latch.
struct Core {
    number: u16,
    table: LockTable,
}

/// Where a worker and the partitions leave messages for each other.
#[repr(align(128))]
struct Desk {
    /// By partition: what the worker asks for, and what it gives back.
    requests: Box<[Ring]>,
    /// By partition: what was granted.
    granted: Box<[Ring]>,
    /// 0 executes; else the number of a CC worker, and one more.
    role: AtomicU32,
    /// Transactions that may have locks.
    running: Apart,
}

/// A number that its owner writes again and again, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Apart(AtomicU32);

impl Shared {
    /// For workers with numbers below [`WORKERS_MAX`], with at most `controllers` that only control
    /// concurrency: as many partitions. With 0 a fifth of the cores, as the paper's best (16 of 80).
    pub fn new(controllers: usize) -> Shared {
        let wanted = match controllers {
            0 => thread::available_cores() / 5,
            wanted => wanted,
        };
        let count = wanted.clamp(1, PARTITIONS_MAX);
        let rings = |count: usize, capacity: usize| -> Box<[Ring]> {
            (0..count).map(|_| Ring::new(capacity)).collect()
        };
        let partitions = (0..count).map(|number| Partition {
            latch: AtomicBool::new(false),
            core: UnsafeCell::new(Core {
                number: number as u16,
                table: LockTable::new(),
            }),
            // Only from lower numbers.
            forwarded: rings(number, WORKERS_MAX * IN_FLIGHT_MAX),
        });
        let desks = (0..WORKERS_MAX).map(|_| Desk {
            requests: rings(count, IN_FLIGHT_MAX),
            granted: rings(count, IN_FLIGHT_MAX),
            role: AtomicU32::new(0),
            running: Apart::default(),
        });
        let shared = Shared {
            partitions: partitions.collect(),
            desks: desks.collect(),
            present: [const { AtomicU64::new(0) }; WORKERS_MAX / 64],
            serving: Mutex::new(Vec::new()),
            controllers: AtomicU32::new(0),
            alone: AtomicU32::new(0),
        };
        shared.name_memory();
        shared
    }

    /// Names what stays where it is in reports about cache lines.
    fn name_memory(&self) {
        fn name<T>(object: &T, name: impl Fn() -> String) {
            name_range(std::ptr::from_ref(object).addr(), size_of::<T>(), name);
        }
        for (number, partition) in self.partitions.iter().enumerate() {
            name(partition, || format!("partition[{number}]"));
            for (from, ring) in partition.forwarded.iter().enumerate() {
                name(ring, || format!("ring[{from} to {number}]"));
            }
        }
        for (worker, desk) in self.desks.iter().enumerate() {
            name(desk, || format!("desk[{worker}]"));
            for (partition, ring) in desk.requests.iter().enumerate() {
                name(ring, || format!("ring[worker {worker} to {partition}]"));
            }
            for (partition, ring) in desk.granted.iter().enumerate() {
                name(ring, || format!("ring[{partition} to worker {worker}]"));
            }
        }
    }

    /// The partition that has the lock of a record, by its address.
    #[inline]
    fn partition_of(&self, record: RecordRef) -> u16 {
        // Mixed once more, as the partitions' lock tables use the highest bits.
        let mixed = memory::hash(record.address()).wrapping_mul(0x2545_f491_4f6c_dd1d);
        (((mixed >> 32) * self.partitions.len() as u64) >> 32) as u16
    }

    /// Uses a partition, when nobody else does.
    fn with_partition_of<T>(
        &self,
        record: RecordRef,
        body: impl FnOnce(&Shared, &mut Core) -> T,
    ) -> T {
        let partition = &self.partitions[self.partition_of(record) as usize];
        let mut spinner = Spinner::default();
        while !partition.try_latch() {
            spinner.turn();
        }
        // SAFETY: under the latch.
        let result = body(self, unsafe { &mut *partition.core.get() });
        partition.unlatch();
        result
    }

    /// Works off the messages of a partition, unless somebody else does at this time. Whether there were any.
    fn work_off(&self, number: usize) -> bool {
        let partition = &self.partitions[number];
        if !partition.try_latch() {
            return false;
        }
        // SAFETY: under the latch.
        let core = unsafe { &mut *partition.core.get() };
        let mut has_done = false;
        for ring in &partition.forwarded {
            while let Some(message) = ring.pop() {
                self.handle(core, message);
                has_done = true;
            }
        }
        for (word, present) in self.present.iter().enumerate() {
            // Acquire pairs with the release in `come`.
            let mut left = present.load(Ordering::Acquire);
            while left != 0 {
                let worker = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                while let Some(message) = self.desks[worker].requests[number].pop() {
                    self.handle(core, message);
                    has_done = true;
                }
            }
        }
        partition.unlatch();
        has_done
    }

    #[inline]
    fn handle(&self, core: &mut Core, message: u64) {
        let demand = (message & !RELEASE) as *mut Demand;
        let number = core.number;
        // SAFETY: a message is about a demand that waits for its answer, at an address that stays; the
        // caller has the partition's latch.
        unsafe {
            if message & RELEASE == 0 {
                if core.table.acquire_span(demand) {
                    self.advance(number, demand);
                }
            } else {
                let mut granted = |demand| self.advance(number, demand);
                core.table.release_span(demand, number, &mut granted);
            }
        }
    }

    /// A demand has all its locks of a partition, whose latch the caller has: it goes on to the next one, or
    /// back to its worker.
    fn advance(&self, from: u16, demand: *mut Demand) {
        // SAFETY: the demand is the caller's until the message is sent.
        let (next, home) = unsafe {
            let demand = &mut *demand;
            demand.stage += 1;
            (demand.spans.get(demand.stage).copied(), demand.home)
        };
        let ring = match next {
            Some(span) => &self.partitions[span.partition as usize].forwarded[from as usize],
            None => &self.desks[home as usize].granted[from as usize],
        };
        let has_room = ring.push(demand as u64);
        assert!(has_room, "a ring has room for all demands");
    }

    /// A worker comes into being.
    fn come(&self, worker: u32) {
        let bit = 1 << (worker % 64);
        // Release pairs with the acquire in `work_off`: the rings are as the last owner left them.
        self.present[worker as usize / 64].fetch_or(bit, Ordering::Release);
    }

    /// A worker goes; nothing of it is in flight.
    fn go(&self, worker: u32) {
        let bit = 1 << (worker % 64);
        self.present[worker as usize / 64].fetch_and(!bit, Ordering::Release);
    }

    /// A worker begins to serve, or ends: the roles are given anew. Those that came first control concurrency;
    /// at least one executes.
    fn serve(&self, worker: u32, begins: bool) {
        let mut serving = lock(&self.serving);
        match begins {
            true => serving.push(worker),
            false => {
                serving.retain(|one| *one != worker);
                self.desks[worker as usize].role.store(0, Ordering::Relaxed);
            }
        }
        let controllers = self.partitions.len().min(serving.len().saturating_sub(1));
        for (position, worker) in serving.iter().enumerate() {
            let role = match position < controllers {
                true => position as u32 + 1,
                false => 0,
            };
            // Relaxed: of two that take themselves for the controller of a partition one waits for its latch.
            self.desks[*worker as usize]
                .role
                .store(role, Ordering::Relaxed);
        }
        self.controllers
            .store(controllers as u32, Ordering::Relaxed);
    }

    /// Does what the controller with this number has to do; whether there was anything.
    fn control(&self, controller: usize) -> bool {
        let controllers = (self.controllers.load(Ordering::Relaxed) as usize).max(1);
        let mut has_done = false;
        for partition in (controller..self.partitions.len()).step_by(controllers) {
            has_done |= self.work_off(partition);
        }
        has_done
    }

    /// Looks after all partitions, for who would wait else.
    fn control_all(&self) -> bool {
        let mut has_done = false;
        for partition in 0..self.partitions.len() {
            has_done |= self.work_off(partition);
        }
        has_done
    }

    /// A worker has `running` transactions that may have locks, one more than before; false when somebody keeps
    /// all others out, and then it has not.
    fn enter(&self, worker: u32, running: u32) -> bool {
        let desk = &self.desks[worker as usize];
        // Sequentially consistent, as in `is_alone`: of two workers that write first and then read, one at
        // least sees what the other wrote.
        desk.running.0.store(running, Ordering::SeqCst);
        let alone = self.alone.load(Ordering::SeqCst);
        let may_enter = alone == 0 || alone == worker + 1;
        if !may_enter {
            desk.running.0.store(running - 1, Ordering::Release);
        }
        may_enter
    }

    /// A worker has `running` transactions that may have locks, one less than before.
    fn leave(&self, worker: u32, running: u32) {
        // Release pairs with the loads in `is_alone`.
        self.desks[worker as usize]
            .running
            .0
            .store(running, Ordering::Release);
    }

    /// Whether no worker but this one, which keeps the others out, has a transaction that may have locks.
    fn is_alone(&self, worker: u32) -> bool {
        let others = self.desks.iter().enumerate();
        others
            .filter(|(number, _)| *number != worker as usize)
            .all(|(_, desk)| desk.running.0.load(Ordering::SeqCst) == 0)
    }
}

impl Partition {
    #[inline]
    fn try_latch(&self) -> bool {
        // Acquire pairs with the release in `unlatch`.
        !self.latch.load(Ordering::Relaxed) && !self.latch.swap(true, Ordering::Acquire)
    }

    #[inline]
    fn unlatch(&self) {
        self.latch.store(false, Ordering::Release);
    }
}
