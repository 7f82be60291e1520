//! The lock manager as a thread of its own (VLL §2.2): it alone counts requests and takes them
//! back, with counters in an array, so that they stay in the cache of its core.
//!
//! A worker sends it the context of a transaction that asks for its locks, and gets it back when
//! they are granted; it runs the transaction, says to its caller how it ended, and sends the
//! context again, for the locks to be taken back. No transaction has more than one message on its
//! way, so a mailbox with room for each worker's contexts is never full.
//!
//! Where the workers take all cores the thread would take one from them with each message that a
//! worker sends it, and its answer would come after two switches. There it sleeps, and the manager
//! is a *role*, which one worker has at a time: a worker takes it to let its transaction leave, and
//! when it waits for the answer to what it has asked. Then it does what the thread does elsewhere,
//! for all who have sent something. A worker that only waits for others to leave does not take it:
//! each of them lets the next one in on its own core.

use kiln_platform::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use kiln_platform::plain;
use kiln_platform::schedule::point;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, JoinHandle, Thread};
use kiln_platform::{spin, time};
use kiln_storage::record::RecordRef;
use kiln_storage::table::WORKERS_MAX;

use super::context::{Context, Stage};
use super::ledger::Ledger;
use super::queue::{Entered, Guest};
use super::{IN_FLIGHT_MAX, VllState};
use crate::shared::core_slots::CoreSlots;
use crate::shared::locks::counters::{BesideRecords, Counters};
use crate::shared::planning::groups;

/// Counters in an array, for records by the hash of their address. The paper has one element for
/// each record; here two records may share one, and then one of their transactions waits for the
/// other in vain.
#[derive(Clone)]
pub struct CounterArray {
    counters: Arc<[AtomicU64]>,
    /// See [`CounterArray::grouped`].
    by_group: bool,
}

impl CounterArray {
    /// The number of elements as a power of two: one megabyte.
    const BITS: u32 = 17;

    /// The same with counters for column groups as well, or without. All workers that use the same
    /// counters make the same choice.
    #[must_use]
    pub fn grouped(mut self, by_group: bool) -> CounterArray {
        self.by_group = by_group;
        self
    }
}

impl Default for CounterArray {
    fn default() -> CounterArray {
        let zero = |_| AtomicU64::new(0);
        CounterArray {
            counters: (0..1 << CounterArray::BITS).map(zero).collect(),
            by_group: false,
        }
    }
}

impl Counters for CounterArray {
    const NEW_AUX: Option<u64> = Some(0);
    const GROUPS: bool = true;

    #[inline(always)]
    fn by_group(&self) -> bool {
        self.by_group
    }

    #[inline(always)]
    fn word(&self, record: RecordRef) -> &AtomicU64 {
        &self.counters[(groups::hash(record.address()) >> (64 - CounterArray::BITS)) as usize]
    }
}

/// The counters of a record's own lock are beside it, and those of the one on its [unwritten
/// columns](groups) in an array.
#[derive(Clone)]
pub struct BesideByGroup(pub CounterArray);

impl Counters for BesideByGroup {
    const NEW_AUX: Option<u64> = BesideRecords::NEW_AUX;
    const GROUPS: bool = true;

    #[inline(always)]
    fn by_group(&self) -> bool {
        true
    }

    #[inline(always)]
    fn word(&self, record: RecordRef) -> &AtomicU64 {
        match groups::is_unwritten(record) {
            true => self.0.word(record),
            false => record.aux(),
        }
    }
}

/// What workers and the manager share.
pub(super) struct Manager<L: Ledger> {
    inbox: Mutex<Vec<Box<Context<L>>>>,
    length: AtomicUsize,
    /// Held by the worker or thread that is the manager, with what it has taken from the inbox.
    role: Mutex<Vec<Box<Context<L>>>>,
    core_slots: CoreSlots,
    /// Whether it may sleep for long.
    is_asleep: AtomicBool,
    stops: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl<L: Ledger> Manager<L> {
    /// Of workers that share `core_slots`.
    pub fn new(core_slots: CoreSlots) -> Manager<L> {
        let contexts = || Mutex::new(Vec::with_capacity(WORKERS_MAX * IN_FLIGHT_MAX));
        Manager {
            inbox: contexts(),
            length: AtomicUsize::new(0),
            role: contexts(),
            core_slots,
            is_asleep: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            thread: Mutex::new(None),
        }
    }

    /// Sends the manager a context.
    pub fn send(&self, context: Box<Context<L>>) {
        plain::writes_one(&raw const context.stage);
        let mut inbox = lock(&self.inbox);
        inbox.push(context);
        plain::writes(&raw const inbox[inbox.len() - 1..]);
        // Sequentially consistent, as the load below and both in `manage`: either the manager sees
        // that something has come before it sleeps, or this sees that it sleeps.
        self.length.store(inbox.len(), Ordering::SeqCst);
        drop(inbox);
        // Workers that come or go meanwhile leave it to a thread that sleeps for `SLEEP_NS` at
        // most.
        if self.has_core() && self.is_asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Whether its thread has a core that no worker wants.
    #[inline]
    pub fn has_core(&self) -> bool {
        self.core_slots.has_core_to_spare()
    }

    /// Does what there is to do, unless another thread is the manager; returns whether all that was
    /// sent before is taken.
    pub fn work(&self, shared: &VllState<L>) -> bool {
        // Relaxed: the caller sees what it has sent itself.
        if self.length.load(Ordering::Relaxed) == 0 && !shared.queue.head_waits() {
            return true;
        }
        match self.role.try_lock() {
            Ok(mut batch) => {
                self.work_off(shared, &mut batch);
                true
            }
            Err(_) => false,
        }
    }

    /// As [`Manager::work`], for a transaction that has run first of all; if another thread is the
    /// manager, the transaction is sent to it.
    pub fn end(&self, context: Box<Context<L>>, shared: &VllState<L>) -> bool {
        match self.role.try_lock() {
            Ok(mut batch) => {
                Manager::leave(context, shared);
                self.work_off(shared, &mut batch);
                true
            }
            Err(_) => {
                self.send(context);
                false
            }
        }
    }

    /// Takes all that wait past their deadline out of the queue.
    pub fn expire(&self, shared: &VllState<L>) {
        while let Some(context) = shared.queue.take_expired(time::now_ns()) {
            shared.give(context, Stage::Expired);
        }
    }

    /// As the manager, with an empty `batch`: answers all messages, and grants what there is to
    /// grant; whether there was anything.
    fn work_off(&self, shared: &VllState<L>, batch: &mut Vec<Box<Context<L>>>) -> bool {
        let mut has_done = false;
        if self.length.load(Ordering::SeqCst) > 0 {
            let mut inbox = lock(&self.inbox);
            std::mem::swap(&mut *inbox, batch);
            self.length.store(0, Ordering::SeqCst);
            has_done = true;
        }
        plain::reads(batch.as_slice());
        for context in batch.drain(..) {
            plain::reads_one(&raw const context.stage);
            match context.stage {
                Stage::Asks => match shared.queue.enter(context, None, Guest::Any) {
                    Entered::Free(context) => shared.give(context, Stage::Granted),
                    Entered::Blocked(_) => {}
                    Entered::Full(context) => shared.give(context, Stage::Refused),
                    Entered::Barred(context) => shared.give(context, Stage::Barred),
                },
                _ => Manager::leave(context, shared),
            }
        }
        while let Some(context) = shared.queue.take_head() {
            shared.answer(context);
            has_done = true;
        }
        has_done
    }

    /// A transaction has run.
    fn leave(context: Box<Context<L>>, shared: &VllState<L>) {
        let next = shared.queue.leave(context.entry);
        point("vll.left");
        shared.give(context, Stage::Done);
        if let Some(next) = next {
            shared.answer(next);
        }
    }

    #[cold]
    fn wake(&self) {
        if let Some(thread) = &*lock(&self.thread) {
            thread.unpark();
        }
    }
}

/// The manager's thread; it ends when this is dropped.
pub struct ManagerThread<L: Ledger> {
    shared: Arc<VllState<L>>,
    thread: Option<JoinHandle<()>>,
}

impl<L: Ledger + Clone> ManagerThread<L> {
    /// Starts it, for workers that share `core_slots`. Where the system grants no thread the
    /// workers are their own managers.
    pub fn start(counters: L, core_slots: CoreSlots) -> ManagerThread<L> {
        let managed = Arc::new(VllState::managed(counters.clone(), core_slots));
        let shared = managed.clone();
        let started = thread::spawn("kiln-locks", move || manage(&shared));
        match started {
            Ok(thread) => {
                if let Some(manager) = &managed.manager {
                    *lock(&manager.thread) = Some(thread.thread().clone());
                }
                ManagerThread {
                    shared: managed,
                    thread: Some(thread),
                }
            }
            Err(_) => ManagerThread {
                shared: Arc::new(VllState::new(counters)),
                thread: None,
            },
        }
    }
}

impl<L: Ledger> ManagerThread<L> {
    /// What the workers share.
    pub fn shared(&self) -> &Arc<VllState<L>> {
        &self.shared
    }
}

impl<L: Ledger> Drop for ManagerThread<L> {
    fn drop(&mut self) {
        if let Some(manager) = &self.shared.manager {
            manager.stops.store(true, Ordering::SeqCst);
            manager.wake();
        }
        if let Some(thread) = self.thread.take() {
            // If it panicked, its workers have found out.
            let _ = thread.join();
        }
    }
}

/// Rounds without anything to do: spinning, then yielding, then short sleeps, then long ones.
const SPINS: u32 = 64;
const YIELDS: u32 = 256;
const NAPS: u32 = 300;
const NAP_NS: u64 = 50_000;
const SLEEP_NS: u64 = 10_000_000;

/// The manager's life.
fn manage<L: Ledger>(shared: &VllState<L>) {
    let Some(manager) = &shared.manager else {
        return;
    };
    let mut idle = 0_u32;
    while !manager.stops.load(Ordering::Relaxed) {
        let has_core = manager.has_core();
        if has_core && manager.work_off(shared, &mut lock(&manager.role)) {
            idle = 0;
        }
        match idle {
            _ if !has_core => thread::park_for(SLEEP_NS),
            0..SPINS => spin::hint(),
            SPINS..YIELDS => thread::yield_now(),
            _ => {
                manager.expire(shared);
                // A transaction that waits for one outside of the queue is looked at now and then.
                let is_long = idle > NAPS && shared.queue.is_idle();
                manager.is_asleep.store(true, Ordering::SeqCst);
                if manager.length.load(Ordering::SeqCst) == 0
                    && !manager.stops.load(Ordering::SeqCst)
                {
                    thread::park_for(if is_long { SLEEP_NS } else { NAP_NS });
                }
                manager.is_asleep.store(false, Ordering::SeqCst);
            }
        }
        idle = idle.saturating_add(1);
    }
}
