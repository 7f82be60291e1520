//! What all parts of a database share: the gate, the catalog, the worker slots, and the ticker that
//! looks after them.

mod open_blocks;
mod ticker;
mod trials;

use std::collections::BTreeMap;

use kiln_durability::DataDirectory;
use kiln_durability::log::Log;
use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Mutex, OnceLock, RwLock, Weak, lock};
use kiln_platform::time;
use kiln_procedure::Interrupt;
use kiln_protocols::{Common, Configuration, Observation};
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::Journal;
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};
use kiln_storage::schema::TableId;
use kiln_storage::sequence::SequenceLogs;
use kiln_storage::table::{Table, WORKERS_MAX};

use super::block_memory::Budget;
use super::blocks::Blocks;
use super::checkpoints::Kept;
use super::gate::{Alone, BROKEN, Beside, CLOSING, Gate};
use super::loss::Loss;
use super::refusal::Refusal;
use super::replays::ReplayCounts;
use super::slot_pool::SlotPool;
use super::slot_user::SlotUsers;
use super::tallies::Tallies;
use crate::calls::{Idempotency, Inboxes};
use crate::catalog::Catalog;
use crate::channels::Channels;
use crate::errors;
use crate::locks::Locks;
use crate::open_sessions::OpenSessions;
use crate::options::{Options, RESERVED};
use open_blocks::Watched;
pub(crate) use open_blocks::{BlockClock, WatchedSession};
pub(crate) use trials::SeesCatalog;
use trials::Untried;

/// What the engine's threads and all owners of a worker slot share.
pub(crate) struct EngineInner {
    pub options: Options,
    pub epochs: Epochs,
    pub log_epochs: LogEpochs,
    pub gate: Gate,
    /// The tables that open blocks use.
    pub blocks: Blocks,
    /// The engine's own part in the epochs: for changes of the catalog, and for freeing what
    /// former workers left behind.
    pub maintenance: Mutex<Participant>,
    /// Which transactions the participants of the worker slots run.
    pub users: SlotUsers,
    pub inboxes: Inboxes,
    /// The worker slots of sessions, transactions and loaders.
    pub slots: SlotPool,
    /// What clients have locked by name.
    pub locks: Arc<Locks>,
    pub open_sessions: Arc<OpenSessions>,
    /// Who listens to what.
    pub channels: Arc<Channels>,
    /// Sessions that wait for a time, or for the end of another one.
    pub sleepers: AtomicUsize,
    catalog: RwLock<Arc<Catalog>>,
    /// What the workers of the protocol in force share.
    common: Mutex<Arc<Common>>,
    /// The observer of what transactions do.
    observation: Mutex<Option<Observation>>,
    /// The listeners of what transactions commit.
    journal: Mutex<Option<Journal>>,
    /// What keeps commits, if something does: the journal's listeners are its own then.
    pub log: OnceLock<Arc<Log>>,
    /// Where sequences are logged.
    pub sequence_logs: SequenceLogs,
    /// Where that is.
    pub data_directory: Mutex<Option<Arc<DataDirectory>>>,
    /// What workers have counted.
    pub tallies: Tallies,
    pub replays: ReplayCounts,
    /// What open blocks keep.
    pub block_memory: Arc<Budget>,
    /// What may be lost, once the log has failed.
    pub loss: Loss,
    /// What a recovery would have to read.
    pub kept: Kept,
    /// Whether rows are being restored: then secondary indexes are not filled.
    pub restoring: AtomicBool,
    /// Held while a checkpoint is written.
    pub checkpointing: Mutex<()>,
    /// While one is: the tables of which it still needs the rows as they were before a change put
    /// them into another layout.
    pub rewritten: Mutex<Option<BTreeMap<TableId, Arc<Table>>>>,
    /// How many tables and sequences blocks have tried.
    pub tables_tried: AtomicU32,
    /// Tables that no block tries any more, or that were temporary, and that were not given up yet.
    untried: Mutex<Untried>,
    /// The temporary objects of sessions, and some of sessions that have ended.
    temporary_of: Mutex<Vec<Weak<dyn SeesCatalog>>>,
    /// The temporary tables of all sessions, and some that were freed since.
    temporary: Mutex<BTreeMap<TableId, Weak<Table>>>,
    next_stream: AtomicU64,
    /// Names that procedure handles were made for.
    handles: Mutex<Vec<Arc<str>>>,
    pub idempotency: Arc<Idempotency>,
    /// Sessions that are open.
    sessions_open: AtomicUsize,
    /// Sessions with an open block.
    watched: Mutex<Vec<Watched>>,
    pub stopping: AtomicBool,
}

impl EngineInner {
    /// An empty database; its threads are not started.
    pub fn new(options: Options) -> EngineInner {
        let epochs = Epochs::new(WORKERS_MAX);
        let maintenance = epochs
            .register()
            .expect("the first participant finds a place");
        let inboxes = Inboxes::new(options.workers, options.inbox_capacity);
        let slot_wait_ns = options.slot_wait_ms.saturating_mul(1_000_000);
        let idempotency = Idempotency::new(options.idempotency_capacity, options.idempotency_age_s);
        let catalog = RwLock::<Arc<Catalog>>::default();
        let current = catalog
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let locks = current.current().row_locks().locks.clone();
        let open_sessions = current.current().open_sessions().clone();
        drop(current);
        EngineInner {
            common: Mutex::new(Arc::new(Common::with_factors(
                options.protocol,
                options.basis_factors.protocols,
            ))),
            observation: Mutex::new(options.record_history.map(Observation::new)),
            journal: Mutex::default(),
            log: OnceLock::new(),
            sequence_logs: SequenceLogs::default(),
            data_directory: Mutex::default(),
            tallies: Tallies::default(),
            replays: ReplayCounts::default(),
            block_memory: Arc::default(),
            loss: Loss::default(),
            kept: Kept::default(),
            restoring: AtomicBool::new(false),
            checkpointing: Mutex::default(),
            rewritten: Mutex::default(),
            log_epochs: LogEpochs::new(WORKERS_MAX),
            gate: Gate::new(WORKERS_MAX - RESERVED),
            blocks: Blocks::new(WORKERS_MAX - RESERVED),
            maintenance: Mutex::new(maintenance),
            users: SlotUsers::new(WORKERS_MAX),
            inboxes,
            slots: SlotPool::new(options.session_slots, slot_wait_ns),
            locks,
            open_sessions,
            channels: Arc::default(),
            sleepers: AtomicUsize::new(0),
            catalog,
            next_stream: AtomicU64::new(0),
            tables_tried: AtomicU32::new(0),
            untried: Mutex::default(),
            temporary_of: Mutex::default(),
            temporary: Mutex::default(),
            handles: Mutex::default(),
            idempotency: Arc::new(idempotency),
            sessions_open: AtomicUsize::new(0),
            watched: Mutex::default(),
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
    pub fn set_catalog(&self, catalog: Arc<Catalog>) {
        let mut current = self
            .catalog
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        catalog.current().set(&catalog);
        *current = catalog;
        drop(current);
        let sessions = lock(&self.temporary_of);
        let sessions = sessions.iter().filter_map(Weak::upgrade);
        sessions.for_each(|session| session.forget_seen());
    }

    /// Puts a changed catalog into force that was logged in this epoch, and lets go of the tables
    /// that it has replaced.
    pub fn put_in_force(
        &self,
        alone: &Alone<'_>,
        catalog: Catalog,
        replaced: Vec<Arc<Table>>,
        logged: LogEpoch,
    ) {
        let catalog = Arc::new(catalog);
        self.note_change(logged, self.catalog(), catalog.clone());
        self.set_catalog(catalog);
        if !replaced.is_empty() {
            self.common().tables_changed();
        }
        self.retire_tables(replaced);
        alone.announce_change();
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
        let prepare = |table: &Arc<Table>| {
            former.clear_aux(table);
            next.prepare(table);
        };
        self.catalog()
            .tables()
            .for_each(|(_, table)| prepare(table));
        let temporary = lock(&self.temporary);
        temporary
            .values()
            .filter_map(Weak::upgrade)
            .for_each(|table| prepare(&table));
        // Versions may be smaller from now on than those that the former protocol gave to other
        // records of the same keys.
        self.log_epochs.close();
    }

    pub fn observation(&self) -> Option<Observation> {
        lock(&self.observation).clone()
    }

    /// Puts another observation into force, and returns the last one; no transaction runs.
    pub fn set_observation(&self, observation: Option<Observation>) -> Option<Observation> {
        std::mem::replace(&mut *lock(&self.observation), observation)
    }

    pub fn journal(&self) -> Option<Journal> {
        lock(&self.journal).clone()
    }

    /// Puts another journal into force, or none; no transaction runs.
    pub fn set_journal(&self, journal: Option<Journal>) {
        let listeners = journal.as_ref().map(Journal::listeners);
        self.idempotency.note_to(listeners.cloned());
        *lock(&self.journal) = journal;
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

    /// A change has put the rows of these tables into another layout.
    pub fn keep_rewritten(&self, tables: &[Arc<Table>]) {
        if let Some(kept) = &mut *lock(&self.rewritten) {
            kept.extend(tables.iter().map(|table| (table.id(), table.clone())));
        }
    }

    pub fn is_restoring(&self) -> bool {
        // Relaxed: read under the gate's locks, and written before any of them.
        self.restoring.load(Ordering::Relaxed)
    }

    pub fn next_stream(&self) -> u64 {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }

    /// Refuses new work when the database is being closed.
    ///
    /// # Errors
    /// 57P01.
    pub fn check_open(&self) -> Result<()> {
        match self.gate.state() & CLOSING {
            0 => Ok(()),
            _ => Err(errors::closing()),
        }
    }

    /// Counts a session that opens, and gives it its number.
    ///
    /// # Errors
    /// 53300 when too many are open, 57P01 when the database is closed.
    pub fn begin_session(&self, interrupt: &Interrupt) -> Result<u64> {
        self.check_open()?;
        let limit = self.options.sessions_max;
        // Relaxed: the count orders nothing.
        let counted =
            self.sessions_open
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                    (open < limit).then_some(open + 1)
                });
        match counted {
            Ok(_) => Ok(self.open_sessions.begin(interrupt.clone())),
            Err(_) => Err(errors::no_session(limit)),
        }
    }

    /// A session that was counted has closed.
    pub fn end_session(&self, number: u64) {
        self.channels.end(number);
        self.open_sessions.end(number);
        self.sessions_open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sessions that are open.
    pub fn sessions_open(&self) -> usize {
        self.sessions_open.load(Ordering::Relaxed)
    }

    /// The time until which a change of the database waits for transactions, if it begins now.
    pub fn change_deadline(&self) -> u64 {
        let wait_ns = self.options.ddl_wait_ms.saturating_mul(1_000_000);
        time::now_ns().saturating_add(wait_ns)
    }

    /// Keeps transactions out, once those that are open have ended. The rows are up to date then.
    ///
    /// # Errors
    /// 55P03 when they do not end in time.
    pub fn shut_gate(&self) -> Result<Alone<'_>> {
        self.shut_gate_until(Beside::Nothing, self.change_deadline())
    }

    /// Keeps transactions out for a change of tables. Open blocks stand aside, if `beside` lets
    /// them: then the rows of a table are not up to date before [`EngineInner::settle_table`].
    ///
    /// # Errors
    /// 55P03 when the others do not end until `deadline_ns`.
    pub fn shut_gate_for_change(&self, beside: Beside, deadline_ns: u64) -> Result<Alone<'_>> {
        self.shut_gate_until(beside, deadline_ns)
    }

    /// Brings the rows of a table up to date that no open block has used; the gate is shut.
    pub fn settle_table(&self, table: TableId) {
        self.common().settle_table(&lock(&self.maintenance), table);
    }

    fn shut_gate_until(&self, beside: Beside, deadline_ns: u64) -> Result<Alone<'_>> {
        let alone = self.gate.shut(beside, deadline_ns).ok_or_else(|| {
            let block = self.longest_open_block().map_or(String::new(), |(session, idle_ns)| {
                let seconds = idle_ns as f64 / 1e9;
                format!("; session {session} has idled in a transaction for {seconds:.1} s")
            });
            Error::new(
                SqlState::LOCK_NOT_AVAILABLE,
                format!(
                    "transactions are still running that keep the database from being changed{block}"
                ),
            )
            .with_hint("Commit or roll back open transactions, or wait longer with ddl_wait_ms.")
        })?;
        if self.gate.state() & BROKEN != 0 {
            return Err(Refusal::Broken.error());
        }
        if beside == Beside::Nothing {
            self.common().settle(&lock(&self.maintenance));
        }
        self.give_up_untried();
        Ok(alone)
    }
}
