//! What everybody in a database shares: the gate, the catalog, the pool of seats, and the ticker
//! that looks after them.

use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Mutex, RwLock, Weak, lock};
use kiln_platform::{thread, time};
use kiln_protocols::{Common, Configuration, Observation};
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::table::WORKERS_MAX;

use crate::catalog::Catalog;
use crate::errors;
use crate::gate::{Alone, CLOSING, Gate};
use crate::idempotency::Idempotency;
use crate::inbox::Inbox;
use crate::memory::{SeatUser, SeatUsers};
use crate::options::{Options, RESERVED};
use crate::seat::Seat;
use crate::session::{self, State};

/// What the engine's threads and everybody with a seat share.
pub(crate) struct Shared {
    pub options: Options,
    pub epochs: Epochs,
    pub gate: Gate,
    /// The engine's own part in the epochs: for changes of the catalog, and for freeing what
    /// former workers left behind.
    pub maintenance: Mutex<Participant>,
    /// Who the participants of the seats are.
    pub users: SeatUsers,
    pub inboxes: Vec<Inbox>,
    /// Whose turn it is to get a call.
    pub turn: AtomicUsize,
    catalog: RwLock<Arc<Catalog>>,
    /// What the workers of the protocol in force share.
    common: Mutex<Arc<Common>>,
    /// Who observes what transactions do.
    observation: Mutex<Option<Observation>>,
    next_table_id: AtomicU32,
    next_stream: AtomicU64,
    /// Names that procedure handles were made for.
    handles: Mutex<Vec<Arc<str>>>,
    pub idempotency: Arc<Idempotency>,
    pool: Mutex<Pool>,
    sessions: Mutex<Vec<Weak<Mutex<State>>>>,
    stopping: AtomicBool,
}

/// Seats of sessions, transactions and loaders.
#[derive(Default)]
struct Pool {
    /// Seats in use.
    used: usize,
    /// Seats that wait for the next use, and since when in nanoseconds.
    idle: Vec<(Seat, u64)>,
    closed: bool,
}

/// A seat of the pool; goes back when this is dropped.
pub(crate) struct PooledSeat {
    inner: Arc<Shared>,
    /// There until this is dropped.
    seat: Option<Seat>,
}

impl std::ops::Deref for PooledSeat {
    type Target = Seat;

    fn deref(&self) -> &Seat {
        self.seat.as_ref().expect("there until the drop")
    }
}

impl std::ops::DerefMut for PooledSeat {
    fn deref_mut(&mut self) -> &mut Seat {
        self.seat.as_mut().expect("there until the drop")
    }
}

impl Drop for PooledSeat {
    fn drop(&mut self) {
        let seat = self.seat.take();
        let mut pool = lock(&self.inner.pool);
        pool.used -= 1;
        match seat {
            Some(seat) if !pool.closed && seat.is_at_rest() => {
                pool.idle.push((seat, time::now_ns()));
            }
            seat => {
                // Outside the lock: ending a worker takes a moment.
                drop(pool);
                drop(seat);
            }
        }
    }
}

/// An unused seat is kept for so long.
const IDLE_SEAT_NS: u64 = 1_000_000_000;

impl Shared {
    /// An empty database; its threads are not started.
    pub fn new(options: Options) -> Shared {
        let epochs = Epochs::new(WORKERS_MAX);
        let maintenance = epochs
            .register()
            .expect("the first participant finds a place");
        let inboxes = (0..options.workers)
            .map(|_| Inbox::new(options.inbox_capacity))
            .collect();
        let idempotency = Idempotency::new(options.idempotency_capacity, options.idempotency_age_s);
        Shared {
            common: Mutex::new(Arc::new(Common::with_factors(
                options.protocol,
                options.basis_factors.protocols,
            ))),
            observation: Mutex::new(options.record_history.map(Observation::new)),
            gate: Gate::new(WORKERS_MAX - RESERVED),
            maintenance: Mutex::new(maintenance),
            users: SeatUsers::new(WORKERS_MAX),
            inboxes,
            turn: AtomicUsize::new(0),
            catalog: RwLock::default(),
            next_table_id: AtomicU32::new(1),
            next_stream: AtomicU64::new(0),
            handles: Mutex::default(),
            idempotency: Arc::new(idempotency),
            pool: Mutex::default(),
            sessions: Mutex::default(),
            stopping: AtomicBool::new(false),
            epochs,
            options,
        }
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }

    /// Puts the next catalog into force; no transaction runs.
    pub fn set_catalog(&self, catalog: Catalog) {
        let mut current = self
            .catalog
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        *current = Arc::new(catalog);
    }

    /// What the workers of the protocol in force share.
    pub fn common(&self) -> Arc<Common> {
        lock(&self.common).clone()
    }

    /// Puts another protocol into force; no transaction runs.
    pub fn set_protocol(&self, configuration: Configuration) {
        let former = std::mem::replace(
            &mut *lock(&self.common),
            Arc::new(Common::with_factors(
                configuration,
                self.options.basis_factors.protocols,
            )),
        );
        let next = self.common();
        for (_, entry) in self.catalog().tables() {
            former.clear_aux(&entry.table);
            next.prepare(&entry.table);
        }
    }

    pub fn observation(&self) -> Option<Observation> {
        lock(&self.observation).clone()
    }

    /// Puts another observation into force, and returns the last one; no transaction runs.
    pub fn set_observation(&self, observation: Option<Observation>) -> Option<Observation> {
        std::mem::replace(&mut *lock(&self.observation), observation)
    }

    /// The number and the one allocation of a name that a procedure handle is made for.
    pub fn intern(&self, name: &str) -> (usize, Arc<str>) {
        let mut handles = lock(&self.handles);
        let known = handles.iter().position(|handle| **handle == *name);
        let number = known.unwrap_or_else(|| {
            handles.push(name.into());
            handles.len() - 1
        });
        (number, handles[number].clone())
    }

    pub fn next_table_id(&self) -> u32 {
        self.next_table_id.fetch_add(1, Ordering::Relaxed)
    }

    pub fn next_stream(&self) -> u64 {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets the reaper look after a session.
    pub fn watch(&self, session: Weak<Mutex<State>>) {
        lock(&self.sessions).push(session);
    }

    /// A seat for a session or its like.
    pub fn take_seat(self: &Arc<Shared>) -> Result<PooledSeat> {
        let mut pool = lock(&self.pool);
        if pool.closed {
            return Err(errors::closing());
        }
        if pool.used >= self.options.sessions_max {
            return Err(errors::no_seat(self.options.sessions_max));
        }
        let seat = match pool.idle.pop() {
            Some((seat, _)) => seat,
            None => Seat::new(self, SeatUser::Session)
                .ok_or_else(|| errors::no_seat(WORKERS_MAX - RESERVED))?,
        };
        pool.used += 1;
        Ok(PooledSeat {
            inner: self.clone(),
            seat: Some(seat),
        })
    }

    /// Keeps transactions out, once those that run have ended. The rows are up to date then.
    pub fn shut_gate(&self) -> Result<Alone<'_>> {
        let wait_ns = self.options.ddl_wait_ms.saturating_mul(1_000_000);
        let alone = self.gate.shut(wait_ns).ok_or_else(|| {
            Error::new(
                SqlState::LOCK_NOT_AVAILABLE,
                "transactions are still running that keep the database from being changed",
            )
            .with_hint("Commit or roll back open transactions, or wait longer with ddl_wait_ms.")
        })?;
        self.common().settle(&lock(&self.maintenance));
        Ok(alone)
    }

    /// The ticker's life: epochs, idle seats, idle transactions.
    pub fn tick(&self) {
        let epoch_ns = self.options.epoch_ms.saturating_mul(1_000_000);
        let mut next_look = time::now_ns();
        while !self.stopping.load(Ordering::Acquire) {
            thread::park_for(epoch_ns);
            self.epochs.advance();
            self.free_retired(epoch_ns);
            let now = time::now_ns();
            if now >= next_look {
                next_look = now + LOOK_NS;
                self.drop_idle_seats(now.saturating_sub(IDLE_SEAT_NS));
                self.reap_sessions(now);
            }
        }
    }

    /// Frees what idle workers and sessions have left, and former ones: in portions, between which others have the
    /// participant, and for at most so long, because epochs stand still meanwhile.
    fn free_retired(&self, limit_ns: u64) {
        let until = time::now_ns().saturating_add(limit_ns);
        self.epochs.take_over_idle();
        loop {
            let maintenance = lock(&self.maintenance);
            // Under the lock: whoever changes tables or the protocol settles under it first.
            let looked_after = self.common().look_after_idle(&maintenance);
            let freed = maintenance.collect(COLLECT_MAX);
            drop(maintenance);
            let is_done = looked_after && freed < COLLECT_MAX;
            if is_done || time::now_ns() >= until || self.stopping.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Accepts nothing new, and lets the threads end when they have done what was accepted.
    pub fn begin_end(&self) {
        self.gate.set(CLOSING);
        self.inboxes.iter().for_each(Inbox::close);
        self.stopping.store(true, Ordering::Release);
    }

    /// Gives back what is left when the threads have ended.
    pub fn finish_end(&self) {
        // Idle seats refer to the shared state, so they would keep it alive.
        let idle = {
            let mut pool = lock(&self.pool);
            pool.closed = true;
            std::mem::take(&mut pool.idle)
        };
        drop(idle);
        // A session may still have a transaction open; then what it has read stays as it is.
        if let Some(_alone) = self.gate.shut(0) {
            self.common().settle(&lock(&self.maintenance));
        }
        // Two epochs later nobody can hold what the workers left, while the tables are there.
        for _ in 0..3 {
            self.epochs.advance();
        }
        lock(&self.maintenance).collect(usize::MAX);
    }

    fn drop_idle_seats(&self, unused_since_ns: u64) {
        let mut old = Vec::new();
        {
            let mut pool = lock(&self.pool);
            let mut at = 0;
            while at < pool.idle.len() {
                if pool.idle[at].1 < unused_since_ns {
                    old.push(pool.idle.swap_remove(at));
                } else {
                    at += 1;
                }
            }
        }
        drop(old);
    }

    fn reap_sessions(&self, now_ns: u64) {
        let limit_ns = self
            .options
            .idle_in_transaction_ms
            .saturating_mul(1_000_000);
        let before = if limit_ns == 0 {
            0
        } else {
            now_ns.saturating_sub(limit_ns)
        };
        lock(&self.sessions).retain(|session| session::reap(session, before));
    }
}

/// How often the ticker looks at idle seats and transactions.
const LOOK_NS: u64 = 50_000_000;
/// Objects that the ticker frees at a time.
const COLLECT_MAX: usize = 4_096;
