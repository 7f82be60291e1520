//! Partitions of the locks with owners: no other worker touches the locks of a partition, a worker
//! that wants some sends a message.
//!
//! What `orthrus`, `vll-single` and `dora` have in common. They differ in what a partition does
//! with its requests ([`PartitionTable`]), in whether the owner of a partition runs transactions as
//! well, and in whether transactions come to the owners to be run (`travel.rs`) or are run by the
//! worker that has drawn them.
//!
//! # Messages
//!
//! ```text
//!  worker            owner of partition 1   owner of partition 4        worker
//!  plan ── demand ─────────► take locks ──────► take locks ───────► run, commit
//!                              │ forwarded when all of one partition are granted │
//!                              ◄──────────── give back ─────────────────────────┘
//! ```
//!
//! A *demand* is a list of requests, sorted by partition. It visits its partitions in their order,
//! and is passed on when all locks of one are granted: Ncc + 1 messages instead of 2 Ncc (ORTHRUS
//! §3.3). Messages are pointers to demands in rings with one producer and one consumer
//! ([`ring`](crate::shared::ring)): one from each worker to each partition, one back, and one from
//! each partition to each later one, or, where transactions travel, to each.
//!
//! Under `vll-single` a demand does not visit one partition after the other. It is put into a ring
//! of each of its partitions at once, by the thread that holds the *sequencer*, and the last
//! partition that answers sends it on.
//!
//! # Invariants
//!
//! - A demand belongs to the thread that has the last message about it. Only while its locks are
//!   given back, or where it has come to all its partitions at once, do several partitions have it,
//!   each its own requests of it.
//! - Requests of a demand enter a partition together. So no two transactions wait for each other in
//!   one partition, and across partitions all wait in one order, of the partitions or of the
//!   sequencer: there are no deadlocks.
//! - A partition is used under its latch. In the steady state one worker takes it, again and again;
//!   it is there for changes of roles, for statements, and for times when its owner does not run.
//! - Rings are never full: a worker has [`IN_FLIGHT_MAX`] demands, and each has one message in a
//!   ring at most, or two when it is withdrawn. That one may be a plan or a transaction on its way,
//!   where these travel, or locks that come back: the latter follow when it has ended.
//! - A table that every partition has is locked as a whole: in one partition by who reads it, in
//!   all by who writes.
//!
//! # What else there is
//!
//! - *Records that were not planned* end the attempt, and are in the next plan. *New records* have
//!   a mark in `aux` until their transaction has ended, as no partition knows them; an attempt that
//!   meets one with its mark starts again. Gaps are guarded by the versions of index nodes
//!   (`access/two_phase_locking`).
//! - *Transactions of several statements* take what is free from the partitions themselves, and
//!   wait for none.
//! - *More workers than cores* have no owners: each worker looks after the partitions when it would
//!   wait.
//! - *Deadlines.* A demand whose call has no time left is withdrawn, unless owners are planning it
//!   still: its worker tells all its partitions, and the one where it waits sends it home. It is
//!   used again when all of them have heard of it.
//! - *How many owners there are* may be found out while they run (`balance.rs`), and which of them
//!   has which data (`slots.rs`).
//! - *Blocks that idle.* A call that fails again and again while a transaction of several
//!   statements is open is parked (`parking.rs`), and has nothing in the partitions meanwhile. With
//!   more workers than cores a demand that waits for longer than a millisecond meanwhile is
//!   withdrawn, and its call is parked: while it waits its worker keeps its turn.
//! - *Starvation.* A call that has failed often runs while all others are kept out.

mod balance;
mod demand;
mod inbox;
mod isolated;
mod limit;
mod locks;
pub(in crate::schedule) mod queues;
mod slots;
mod table;
mod travel;
mod worker;

use std::cell::UnsafeCell;
use std::collections::VecDeque;

use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::schedule::point;
use kiln_platform::spin::Spinner;
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::thread;
use kiln_storage::table::{Part, WORKERS_MAX};

use crate::canary::Canary;
use crate::factors::Partitioning;
use crate::schedule::parking::{Blocks, Solitude};
use crate::shared::planning::Claim;
use crate::shared::ring::Ring;

use balance::Balance;
use inbox::Inbox;
use slots::Slots;

pub use demand::{Demand, Request, Span};
pub use isolated::Isolated;
pub use table::LockTable;
pub use worker::Owned;

pub(crate) use demand::{RequestState, hash};

/// Calls that a worker has in flight at most, those whose locks are still being given back
/// included. See `limit.rs` for how many wait.
pub const IN_FLIGHT_MAX: usize = 8;

/// The lowest bit of a message: give the locks back.
const RELEASE: u64 = 1;
/// The next bit: let it not wait any more, if it waits here.
const WITHDRAW: u64 = 2;
/// The next bit: do what its transaction has to do here.
const ACT: u64 = 4;
/// What is no part of a demand's address.
const MARKS: u64 = RELEASE | WITHDRAW | ACT;

/// The locks of a partition, used by its owner alone.
pub trait PartitionTable: 'static {
    /// Whether workers that look after partitions run no transactions.
    const DEDICATED: bool;
    /// Partitions at most.
    const PARTITIONS_MAX: usize;

    /// Whether each partition has the locks of a part of the data. Else every one gives all locks,
    /// and a transaction asks one of them for all that it wants.
    const DIVIDED: bool = true;

    /// Whether transactions travel: the owner of a partition does all that they do with its
    /// records. Else the worker that has drawn one runs it.
    const OWNERS_RUN: bool = false;

    /// Whether a transaction comes to all its partitions at once, in one order of all transactions
    /// that come to several; each partition answers. Else it comes to one partition after the
    /// other. Only where the worker that drew a transaction runs it.
    const SEQUENCED: bool = false;

    /// Tables without locks for so many partitions.
    fn several(count: usize) -> Vec<Self>
    where
        Self: Sized;

    /// Asks for all locks of a span of a transaction; whether it is through at once: they are
    /// granted, or given up, as it was withdrawn or as a statement is in its way. Else it is handed
    /// to `granted` later, which gets others that are through now.
    ///
    /// # Safety
    /// The transaction waits, and this thread alone may use its demand, or, where it comes to all
    /// its partitions at once, the requests of the span; the caller owns the partition.
    unsafe fn acquire_span(
        &mut self,
        demand: *mut Demand,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool;

    /// Takes back all locks of a transaction's span, whose requests are among `requests`; `granted`
    /// gets each transaction that has all locks of its own span now.
    ///
    /// # Safety
    /// It has all that it asked for here; other partitions may do the same at the same time with
    /// other spans. The caller owns the partition.
    unsafe fn release_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    );

    /// As [`PartitionTable::release_span`] for a transaction that may have come here or not, if it
    /// waits for one of its locks; whether it does. Then it has none of them any more.
    ///
    /// # Safety
    /// As there.
    unsafe fn withdraw_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool;

    /// Takes a lock if no transaction has it or waits for it; whether it is taken. If not, the
    /// table does not know of it.
    ///
    /// # Safety
    /// The request has no demand, and stays where it is until it is given back; the caller alone
    /// uses it, and owns the partition.
    unsafe fn take_free(
        &mut self,
        request: *mut Request,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool;

    /// Makes a shared lock exclusive if no other transaction has it or waits for it; whether it is.
    ///
    /// # Safety
    /// The lock was taken by [`PartitionTable::take_free`]; the caller owns the partition.
    unsafe fn upgrade(&mut self, request: *mut Request) -> bool;

    /// Takes back a lock that was taken by [`PartitionTable::take_free`].
    ///
    /// # Safety
    /// As there.
    unsafe fn give_back(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand));
}

/// What the workers share.
pub struct Shared<T> {
    partitions: Box<[Partition<T>]>,
    /// By worker.
    desks: Box<[Desk]>,
    sequencer: Sequencer,
    /// The workers that exist and do not wait for their turn, a bit each.
    present: [AtomicU64; WORKERS_MAX / 64],
    serving: Serving,
    /// How many of them look after partitions.
    controllers: AtomicU32,
    /// The worker that keeps all others out, and one more; 0 is none.
    alone: AtomicU32,
    /// When a transaction may ask for that.
    solitude: Solitude,
    /// Transactions of several statements.
    blocks: Blocks,
    cores: usize,
    /// How many workers look after partitions, where that is found out.
    balance: Option<Balance>,
    /// Which partition has which part of the data, where that is found out.
    slots: Option<Slots>,
}

/// The workers that serve, those that came first before the others, with the roles that they have.
/// On cache lines of its own: what lies beside it in [`Shared`] is looked at again and again.
#[derive(Default)]
#[repr(align(128))]
struct Serving(Mutex<Vec<(u32, u32)>>);

/// Held to give a transaction its place in the order of all that come to several partitions at
/// once.
#[derive(Default)]
#[repr(align(128))]
struct Sequencer(Mutex<()>);

/// Another division of the locks.
#[derive(Clone, Copy)]
enum Division {
    /// So many partitions.
    Number(u32),
    /// The better assignment of the slots.
    Slots,
}

/// A part of the locks.
#[repr(align(128))]
struct Partition<T> {
    latch: AtomicBool,
    /// Whether something is ready that no worker has run.
    has_ready: AtomicBool,
    core: UnsafeCell<Core<T>>,
    /// By partition: demands that come from there.
    forwarded: Box<[Ring]>,
    /// Demands of several partitions in the order of all, where they come to all at once; who puts
    /// one in holds the sequencer.
    sequenced: Option<Ring>,
}

// SAFETY: the core is used under the latch.
unsafe impl<T> Sync for Partition<T> {}
// SAFETY: the core's pointers lead to demands, which may be used by any thread in its turn.
unsafe impl<T> Send for Partition<T> {}

/// What is used under a partition's latch.
struct Core<T> {
    number: u16,
    table: T,
    /// Transactions that have something to do here, where they travel.
    ready: VecDeque<*mut Demand>,
}

/// Runs what is ready in a partition, whose latch the caller has.
type Act<T> = fn(&Shared<T>, &mut Core<T>, *mut Demand);

/// For who cannot run what is ready, and leaves it to others.
const fn nobody<T>() -> Option<Act<T>> {
    None
}

/// Where a worker and the partitions leave messages for each other.
#[repr(align(128))]
struct Desk {
    /// By partition: what the worker asks for, and what it gives back.
    requests: Box<[Ring]>,
    /// By partition: what was granted.
    granted: Box<[Ring]>,
    /// 0 looks after no partition; else its number among those that do, and one more.
    role: AtomicU32,
    /// Transactions that may have locks.
    running: Apart,
    /// Transactions that have ended, where that is counted.
    ended: Apart,
}

/// A number that its owner writes again and again, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Apart(pub AtomicU32);

impl<T: PartitionTable> Shared<T> {
    /// For workers with numbers below [`WORKERS_MAX`], with so many partitions, as far as there may
    /// be.
    pub fn new(partitions: usize) -> Shared<T> {
        let count = partitions.clamp(1, T::PARTITIONS_MAX);
        let rings = |count: usize, capacity: usize| -> Box<[Ring]> {
            (0..count).map(|_| Ring::new(capacity)).collect()
        };
        let tables = T::several(count).into_iter().enumerate();
        let partitions = tables.map(|(number, table)| Partition {
            latch: AtomicBool::new(false),
            has_ready: AtomicBool::new(false),
            core: UnsafeCell::new(Core {
                number: number as u16,
                table,
                ready: VecDeque::new(),
            }),
            // Only from lower numbers, or, where transactions travel, from all.
            forwarded: rings(
                if T::OWNERS_RUN { count } else { number },
                WORKERS_MAX * IN_FLIGHT_MAX,
            ),
            sequenced: T::SEQUENCED.then(|| Ring::new(WORKERS_MAX * IN_FLIGHT_MAX)),
        });
        let desks = (0..WORKERS_MAX).map(|_| Desk {
            // Two messages about a demand may be there: one about its withdrawal.
            requests: rings(count, 2 * IN_FLIGHT_MAX),
            granted: rings(count, IN_FLIGHT_MAX),
            role: AtomicU32::new(0),
            running: Apart::default(),
            ended: Apart::default(),
        });
        let shared = Shared {
            partitions: partitions.collect(),
            desks: desks.collect(),
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
        };
        shared.name_memory();
        shared
    }

    /// Lets the workers find out how many partitions, and workers that look after them, there
    /// should be, at first `start`, from how many transactions end while so many do; `count` are
    /// compared.
    pub fn balanced(mut self, start: usize, count: u32) -> Shared<T> {
        let most = self.partitions.len() as u32;
        self.balance = Some(Balance::new(start as u32, most, count));
        self
    }

    /// Divides the data over the partitions in this way.
    pub fn divided(mut self, partitioning: Partitioning) -> Shared<T> {
        if let Partitioning::Balanced { claims } = partitioning {
            self.slots = Some(Slots::new(self.partitions(), claims));
        }
        self
    }

    /// Names what stays where it is in reports about cache lines.
    fn name_memory(&self) {
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
        for (worker, desk) in self.desks.iter().enumerate() {
            name(desk, || format!("desk[{worker}]"));
            for (partition, ring) in desk.requests.iter().enumerate() {
                ring.name_memory(|| format!("ring[worker {worker} to {partition}]"));
            }
            for (partition, ring) in desk.granted.iter().enumerate() {
                ring.name_memory(|| format!("ring[{partition} to worker {worker}]"));
            }
        }
    }

    /// The partitions in which a claim is a lock: all, for a table that every partition has and
    /// that is written.
    fn partitions_of(&self, claim: Claim) -> std::ops::Range<usize> {
        let count = match T::DIVIDED {
            true => self.partitions(),
            false => 1,
        };
        if claim.part.is_replicated() && claim.exclusive {
            return 0..count;
        }
        let partition = match T::DIVIDED {
            true => self.partition_of(claim.part),
            false => 0,
        };
        partition..partition + 1
    }

    /// The partition of a part of the data. It does not change while a transaction may have locks.
    #[inline(always)]
    fn partition_of(&self, part: Part) -> usize {
        match &self.slots {
            Some(slots) => slots.partition(part),
            None => part.partition(self.partitions()),
        }
    }

    /// Makes what a call asks for of the claims of its plan, which `planner` has made.
    fn demand(&self, planner: u32, claims: &[Claim], demand: &mut Demand) {
        let partitions = self.partitions();
        if let Some(slots) = &self.slots {
            slots.count(planner, claims);
        }
        let own = (demand.home as usize % partitions) as u16;
        if T::OWNERS_RUN {
            let first = first_part(claims);
            demand.first_stop = first.map_or(own, |part| self.partition_of(part) as u16);
        }
        match T::DIVIDED {
            true => demand.set(claims, partitions, |part| self.partition_of(part)),
            false => demand.set_in(claims, own),
        }
    }

    /// Uses a partition, when no other thread does.
    fn with_partition<R>(
        &self,
        number: u16,
        body: impl FnOnce(&Shared<T>, &mut Core<T>) -> R,
    ) -> R {
        let partition = &self.partitions[number as usize];
        let mut spinner = Spinner::default();
        while !partition.try_latch() {
            spinner.turn();
        }
        let _latched = Latched(partition);
        // SAFETY: under the latch.
        body(self, unsafe { &mut *partition.core.get() })
    }

    /// Works off the messages of a partition, unless another thread does at this time, and runs
    /// what is ready there, if the caller does that. Whether there was anything.
    fn work_off(
        &self,
        number: usize,
        act: &mut Option<impl FnMut(&Shared<T>, &mut Core<T>, *mut Demand)>,
    ) -> bool {
        let partition = &self.partitions[number];
        if !partition.try_latch() {
            return false;
        }
        let _latched = Latched(partition);
        // SAFETY: under the latch.
        let core = unsafe { &mut *partition.core.get() };
        let mut inbox = Inbox::default();
        let mut handle = |message| self.handle(core, message);
        for ring in partition.sequenced.iter().chain(&partition.forwarded) {
            inbox.look(ring, &mut handle);
        }
        for worker in self.present() {
            inbox.look(&self.desks[worker].requests[number], &mut handle);
        }
        let mut has_done = inbox.finish(&mut handle);
        if T::OWNERS_RUN
            && let Some(act) = act
        {
            while let Some(demand) = core.ready.pop_front() {
                act(self, core, demand);
                has_done = true;
            }
        }
        // Relaxed, written under the latch: who sees it late comes again.
        let has_ready = !core.ready.is_empty();
        if partition.has_ready.load(Ordering::Relaxed) != has_ready {
            partition.has_ready.store(has_ready, Ordering::Relaxed);
        }
        has_done
    }

    /// The workers that may have sent something.
    #[inline]
    fn present(&self) -> impl Iterator<Item = usize> {
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

    /// Whether there seems to be something to do in a partition. Where there is not, its latch
    /// stays in the caches that have it.
    #[inline]
    fn seems_wanted(&self, number: usize) -> bool {
        let partition = &self.partitions[number];
        // Relaxed: a hint.
        partition.has_ready.load(Ordering::Relaxed)
            || (partition.sequenced.iter())
                .chain(&partition.forwarded)
                .any(Ring::seems_filled)
            || (self.present()).any(|worker| self.desks[worker].requests[number].seems_filled())
    }

    #[inline]
    fn handle(&self, core: &mut Core<T>, message: u64) {
        let demand = (message & !MARKS) as *mut Demand;
        if T::OWNERS_RUN && message & ACT != 0 {
            return core.ready.push_back(demand);
        }
        let number = core.number;
        let mut granted = |demand| self.advance(number, demand);
        // SAFETY: a message is about a demand that waits for its answer, at an address that stays;
        // the caller has the partition's latch. Of a demand that is elsewhere at this time only
        // those fields are touched that no thread changes.
        unsafe {
            Demand::note_reads(demand);
            let (requests, spans) = ((*demand).first, &(*demand).spans);
            let own = spans.iter().find(|span| span.partition == number);
            let span = *own.expect("a demand is known where it goes");
            if message & (RELEASE | WITHDRAW) == 0 {
                if (*demand).is_withdrawn() {
                    (*demand).give_up();
                    granted(demand);
                } else if core.table.acquire_span(demand, span, &mut granted) {
                    granted(demand);
                }
                return;
            }
            if message & RELEASE != 0 {
                if T::OWNERS_RUN {
                    Demand::install(demand, span);
                }
                core.table.release_span(requests, span, &mut granted);
            } else if core.table.withdraw_span(requests, span, &mut granted) {
                (*demand).give_up();
                granted(demand);
            }
            // Release pairs with the acquire of the worker that uses the demand again.
            (*demand).holds.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// A demand has all its locks of a partition, whose latch the caller has: it goes on to the
    /// next one, or back to its worker, as it does if it was given up.
    fn advance(&self, from: u16, demand: *mut Demand) {
        if T::SEQUENCED {
            return self.answer(from, demand);
        }
        // SAFETY: the demand is the caller's until the message is sent.
        if unsafe { (*demand).is_given_up() } {
            return self.send_home(from, demand);
        }
        // SAFETY: as above.
        let (next, home) = unsafe {
            Demand::note_progress(demand);
            let demand = &mut *demand;
            demand.stage += 1;
            (demand.spans.get(demand.stage).copied(), demand.home)
        };
        let Some(span) = next else {
            if T::OWNERS_RUN {
                // SAFETY: as above.
                let first_stop = unsafe { (*demand).first_stop };
                return self.pass_on(from, first_stop, demand, ACT);
            }
            return self.send(&self.desks[home as usize].granted[from as usize], demand);
        };
        self.send(
            &self.partitions[span.partition as usize].forwarded[from as usize],
            demand,
        );
    }

    /// As [`Shared::advance`], of a demand that has come to all its partitions: the last one that
    /// answers sends it home.
    fn answer(&self, from: u16, demand: *mut Demand) {
        // SAFETY: the demand waits for the answer of this partition; behind the last answer it is
        // the caller's.
        unsafe {
            // Acquire and release: the last partition knows what all have done.
            if (*demand).awaited.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            if !(*demand).is_given_up() {
                (*demand).stage = (*demand).spans.len();
                Demand::note_progress(demand);
            }
        }
        self.send_home(from, demand);
    }

    /// Gives a demand of several partitions its place in the order of all, and so in the queues of
    /// its partitions.
    ///
    /// # Safety
    /// The demand is the caller's, and was not sent anywhere.
    unsafe fn sequence(&self, demand: *mut Demand) {
        // SAFETY: the demand is the caller's. Its spans stay as they are until the last partition
        // has answered, which it cannot before the demand has come there.
        let (spans, count) = unsafe { ((*demand).spans.as_ptr(), (*demand).spans.len()) };
        let mut order = Some(lock(&self.sequencer.0));
        for at in 0..count {
            // SAFETY: as above.
            let partition = unsafe { (*spans.add(at)).partition };
            let ring = &self.partitions[partition as usize].sequenced;
            let ring = ring.as_ref().expect("transactions are sequenced");
            self.send(ring, demand);
            if Canary::OutOfSequence.sings() {
                drop(order.take());
                point("owned.sequencing");
                order = Some(lock(&self.sequencer.0));
            }
        }
        drop(order);
    }

    /// Asks for the locks of a demand that was made in a partition, whose latch the caller has.
    /// Whether it has them all and its transaction begins there; else it is sent on.
    ///
    /// # Safety
    /// The demand is the caller's, and its passenger's plan is made.
    unsafe fn ask(&self, core: &mut Core<T>, demand: *mut Demand) -> bool {
        let number = core.number;
        // SAFETY: the demand is the caller's; once it is sent on it is not touched any more.
        unsafe {
            let (spans, first_stop) = (&(*demand).spans, (*demand).first_stop);
            let is_single = spans.len() <= 1 && first_stop == number;
            match spans.first().copied() {
                None if is_single => return true,
                None => self.pass_on(number, first_stop, demand, ACT),
                Some(first) if first.partition != number => {
                    self.pass_on(number, first.partition, demand, 0);
                }
                Some(first) => {
                    let mut granted = |demand| self.advance(number, demand);
                    if core.table.acquire_span(demand, first, &mut granted) {
                        if is_single && !(*demand).is_given_up() {
                            (*demand).stage = 1;
                            return true;
                        }
                        granted(demand);
                    }
                }
            }
        }
        false
    }

    /// Sends a demand from a partition, whose latch the caller has, to any other one, or itself.
    fn pass_on(&self, from: u16, to: u16, demand: *mut Demand, what: u64) {
        let ring = &self.partitions[to as usize].forwarded[from as usize];
        let has_room = ring.push(demand as u64 | what);
        assert!(has_room, "a ring has room for all demands");
    }

    /// Sends a demand back to its worker, from the partition at which it ends.
    fn send_home(&self, from: u16, demand: *mut Demand) {
        // SAFETY: the demand is the caller's until the message is sent.
        let home = unsafe { (*demand).home };
        self.send(&self.desks[home as usize].granted[from as usize], demand);
    }

    fn send(&self, ring: &Ring, demand: *mut Demand) {
        let has_room = ring.push(demand as u64);
        assert!(has_room, "a ring has room for all demands");
    }

    /// A worker comes into being.
    fn come(&self, worker: u32) {
        self.appear(worker);
        if let Some(slots) = &self.slots {
            slots.come(worker);
        }
    }

    /// A worker may send messages from now on.
    fn appear(&self, worker: u32) {
        let bit = 1 << (worker % 64);
        // Release pairs with the acquire in `work_off`: the rings are as the last owner left them.
        self.present[worker as usize / 64].fetch_or(bit, Ordering::Release);
    }

    /// A worker goes, or is away for some time; nothing of it is in flight.
    fn go(&self, worker: u32) {
        let bit = 1 << (worker % 64);
        self.present[worker as usize / 64].fetch_and(!bit, Ordering::Release);
    }

    /// A worker begins to serve, or ends: the roles are given anew. Those that came first look
    /// after partitions; where they do nothing else, at least one is left.
    fn serve(&self, worker: u32, begins: bool) {
        let mut serving = lock(&self.serving.0);
        match begins {
            true => serving.push((worker, 0)),
            false => {
                serving.retain(|(one, _)| *one != worker);
                self.desks[worker as usize].role.store(0, Ordering::Relaxed);
            }
        }
        self.give_roles(&mut serving);
    }

    /// Gives the workers that serve their roles.
    fn give_roles(&self, serving: &mut [(u32, u32)]) {
        let most = match T::DEDICATED {
            true => serving.len().saturating_sub(1),
            false => serving.len(),
        };
        // Of more workers than cores some do not run when they are wanted: then each looks after
        // all partitions when it would wait.
        let controllers = match serving.len() > self.cores {
            true => 0,
            false => self.partitions().min(most),
        };
        for (position, (worker, known)) in serving.iter_mut().enumerate() {
            let role = match position < controllers {
                true => position as u32 + 1,
                false => 0,
            };
            // Many workers begin at a time, and looking at all desks would take each of them longer
            // than to begin.
            if *known != role {
                *known = role;
                // Relaxed: of two that take themselves for the controller of a partition one waits
                // for its latch.
                self.desks[*worker as usize]
                    .role
                    .store(role, Ordering::Relaxed);
            }
        }
        let controllers = controllers as u32;
        if self.controllers.load(Ordering::Relaxed) != controllers {
            self.controllers.store(controllers, Ordering::Relaxed);
        }
    }

    /// Partitions that are in use: a prefix of them. It does not change while a transaction may
    /// have locks.
    #[inline]
    fn partitions(&self) -> usize {
        match &self.balance {
            Some(balance) => balance.number() as usize,
            None => self.partitions.len(),
        }
    }

    /// How the locks should be divided now, if it is otherwise than they are; for one worker that
    /// looks often.
    fn other_division(&self) -> Option<Division> {
        let count_ended = || {
            let counts = self.desks.iter();
            counts
                .map(|desk| desk.ended.0.load(Ordering::Relaxed))
                .fold(0, u32::wrapping_add)
        };
        let balance = self.balance.as_ref();
        if let Some(number) = balance.and_then(|balance| balance.look(count_ended)) {
            return Some(Division::Number(number));
        }
        let slots = self.slots.as_ref()?;
        slots.look(self.partitions()).then_some(Division::Slots)
    }

    /// Divides the locks anew, while the caller keeps all others out and no transaction has a lock.
    fn divide(&self, division: Division) {
        match (division, &self.balance, &self.slots) {
            (Division::Number(number), Some(balance), slots) => {
                balance.adopt(number);
                if let Some(slots) = slots {
                    slots.divide(number as usize);
                }
                self.give_roles(&mut lock(&self.serving.0));
            }
            (Division::Slots, _, Some(slots)) => slots.adopt(),
            _ => {}
        }
    }

    /// Counts a transaction of a worker that has ended, where that is wanted.
    #[inline]
    fn count_ended(&self, worker: u32) {
        if self.balance.is_some() {
            let ended = &self.desks[worker as usize].ended.0;
            // Relaxed, and no atomic addition: the worker alone writes it.
            ended.store(
                ended.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
        }
    }

    /// Does what the controller with this number has to do; whether there was anything.
    fn control(
        &self,
        controller: usize,
        mut act: Option<impl FnMut(&Shared<T>, &mut Core<T>, *mut Demand)>,
    ) -> bool {
        let controllers = (self.controllers.load(Ordering::Relaxed) as usize).max(1);
        let mut has_done = false;
        // Numbers that divide data mostly begin with 1: with as many workers as partitions, that
        // one is the first worker's.
        let controller = match T::OWNERS_RUN {
            true => (controller + 1) % controllers,
            false => controller,
        };
        for partition in (controller..self.partitions()).step_by(controllers) {
            has_done |= self.work_off(partition, &mut act);
        }
        has_done
    }

    /// Looks after all partitions, for who would wait else.
    fn control_all(
        &self,
        mut act: Option<impl FnMut(&Shared<T>, &mut Core<T>, *mut Demand)>,
    ) -> bool {
        let mut has_done = false;
        for partition in 0..self.partitions() {
            has_done |= self.seems_wanted(partition) && self.work_off(partition, &mut act);
        }
        has_done
    }

    /// A worker has `running` transactions that may have locks, one more than before; false when
    /// another worker keeps all others out, and then it has not.
    fn enter(&self, worker: u32, running: u32) -> bool {
        let desk = &self.desks[worker as usize];
        // Sequentially consistent, as in `is_alone`: of two workers that write first and then read,
        // one at least sees what the other wrote.
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

    /// Whether no worker but this one, which keeps the others out, has a transaction that may have
    /// locks.
    fn is_alone(&self, worker: u32) -> bool {
        let others = self.desks.iter().enumerate();
        others
            .filter(|(number, _)| *number != worker as usize)
            .all(|(_, desk)| desk.running.0.load(Ordering::SeqCst) == 0)
    }
}

/// The part of the data that the first record belongs to which a transaction will meet, as far as
/// its plan knows.
fn first_part(claims: &[Claim]) -> Option<Part> {
    let divided = claims.iter().filter(|claim| !claim.part.is_replicated());
    let first = divided.min_by_key(|claim| claim.finding)?;
    Some(first.part)
}

/// A partition whose latch the thread has; lets go when dropped, also when a transaction panics
/// that the thread runs there.
struct Latched<'a, T>(&'a Partition<T>);

impl<T> Drop for Latched<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlatch();
    }
}

impl<T> Partition<T> {
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
