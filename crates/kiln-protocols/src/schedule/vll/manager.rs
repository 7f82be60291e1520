//! The lock manager as a thread of its own (VLL §2.2): it alone counts requests and takes them back, with
//! counters in an array, so that they stay in the cache of its core.
//!
//! A worker sends it the context of a transaction that asks for its locks, and gets it back when they are
//! granted; it runs the transaction, says to its caller how it ended, and sends the context again, for the
//! locks to be taken back. No transaction has more than one message on its way, so a mailbox with room for
//! each worker's contexts is never full.

use kiln_platform::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use kiln_platform::memory;
use kiln_platform::schedule::point;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, JoinHandle, Thread};
use kiln_platform::{spin, time};
use kiln_storage::record::RecordRef;
use kiln_storage::table::WORKERS_MAX;

use super::context::{Context, Stage};
use super::ledger::Ledger;
use super::queue::{Entered, Guest};
use super::{IN_FLIGHT_MAX, SharedVll};
use crate::shared::locks::counters::Counters;

/// Counters in an array, for records by the hash of their address. The paper has one element for each
/// record; here two records may share one, and then one of their transactions waits for the other in vain.
#[derive(Clone)]
pub struct CounterArray(Arc<[AtomicU64]>);

impl CounterArray {
    /// The number of elements as a power of two: one megabyte.
    const BITS: u32 = 17;
}

impl Default for CounterArray {
    fn default() -> CounterArray {
        let zero = |_| AtomicU64::new(0);
        CounterArray((0..1 << CounterArray::BITS).map(zero).collect())
    }
}

impl Counters for CounterArray {
    const NEW_AUX: Option<u64> = Some(0);

    #[inline(always)]
    fn word(&self, record: RecordRef) -> &AtomicU64 {
        &self.0[(memory::hash(record.address()) >> (64 - CounterArray::BITS)) as usize]
    }
}

/// What workers and the manager share.
pub(super) struct Manager<L: Ledger> {
    inbox: Mutex<Vec<Box<Context<L>>>>,
    length: AtomicUsize,
    /// Whether it may sleep for long.
    is_asleep: AtomicBool,
    stops: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl<L: Ledger> Manager<L> {
    pub fn new() -> Manager<L> {
        Manager {
            inbox: Mutex::new(Vec::with_capacity(WORKERS_MAX * IN_FLIGHT_MAX)),
            length: AtomicUsize::new(0),
            is_asleep: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            thread: Mutex::new(None),
        }
    }

    /// Sends the manager a context.
    pub fn send(&self, context: Box<Context<L>>) {
        let mut inbox = lock(&self.inbox);
        inbox.push(context);
        // Sequentially consistent, as the load below and both in `manage`: either the manager sees that
        // something has come before it sleeps, or this sees that it sleeps.
        self.length.store(inbox.len(), Ordering::SeqCst);
        drop(inbox);
        if self.is_asleep.load(Ordering::SeqCst) {
            self.wake();
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
    shared: Arc<SharedVll<L>>,
    thread: Option<JoinHandle<()>>,
}

impl<L: Ledger + Clone> ManagerThread<L> {
    /// Starts it. Where the system grants no thread the workers are their own managers.
    pub fn start(counters: L) -> ManagerThread<L> {
        let managed = Arc::new(SharedVll::managed(counters.clone()));
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
                shared: Arc::new(SharedVll::new(counters)),
                thread: None,
            },
        }
    }
}

impl<L: Ledger> ManagerThread<L> {
    /// What the workers share.
    pub fn shared(&self) -> &Arc<SharedVll<L>> {
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
fn manage<L: Ledger>(shared: &SharedVll<L>) {
    let Some(manager) = &shared.manager else {
        return;
    };
    let queue = &shared.queue;
    let mut batch = Vec::with_capacity(WORKERS_MAX * IN_FLIGHT_MAX);
    let mut idle = 0_u32;
    let give = |mut context: Box<Context<L>>, stage: Stage| {
        context.stage = stage;
        shared.send_home(context);
    };
    while !manager.stops.load(Ordering::Relaxed) {
        if manager.length.load(Ordering::SeqCst) > 0 {
            let mut inbox = lock(&manager.inbox);
            std::mem::swap(&mut *inbox, &mut batch);
            manager.length.store(0, Ordering::SeqCst);
            idle = 0;
        }
        for context in batch.drain(..) {
            match context.stage {
                Stage::Asks => match queue.enter(context, Guest::Any) {
                    Entered::Free(context) => give(context, Stage::Granted),
                    Entered::Blocked(_) => {}
                    Entered::Full(context) => give(context, Stage::Refused),
                },
                _ => {
                    let next = queue.leave(context.place);
                    point("vll.left");
                    give(context, Stage::Left);
                    if let Some(next) = next {
                        give(next, Stage::Granted);
                    }
                }
            }
        }
        while let Some(context) = queue.take_head() {
            give(context, Stage::Granted);
        }
        match idle {
            0..SPINS => spin::hint(),
            SPINS..YIELDS => thread::yield_now(),
            _ => {
                while let Some(context) = queue.take_expired(time::now_ns()) {
                    give(context, Stage::Expired);
                }
                // Whoever waits for somebody outside of the queue is looked at now and then.
                let is_long = idle > NAPS && queue.is_idle();
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
