//! What all parts of a database share: the gate, the catalog, the worker slots, and the ticker that
//! looks after them.

use std::collections::BTreeMap;

use kiln_durability::DataDirectory;
use kiln_durability::log::Log;
use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Mutex, OnceLock, RwLock, Weak, lock};
use kiln_platform::{thread, time};
use kiln_procedure::Interrupt;
use kiln_protocols::{Common, Configuration, Observation};
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::Journal;
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};
use kiln_storage::schema::TableId;
use kiln_storage::sequence::SequenceLogs;
use kiln_storage::table::{Table, WORKERS_MAX};

use crate::blocks::Blocks;
use crate::call::Reply;
use crate::catalog::Catalog;
use crate::channels::Channels;
use crate::errors::{self, Refusal};
use crate::gate::{Alone, BROKEN, Beside, CLOSING, Gate, SHUT};
use crate::idempotency::Idempotency;
use crate::inbox::Inboxes;
use crate::journal::Observed;
use crate::keeper::Kept;
use crate::locks::Locks;
use crate::loss::Loss;
use crate::memory::SeatUsers;
use crate::metrics::Tallies;
use crate::open_sessions::{ListedSession, OpenSessions};
use crate::options::{Options, RESERVED};
use crate::session::{self, BlockClock, Budget, ReplayCounts, State};
use crate::slots::Slots;
use crate::temporary::Temporary;

/// What the engine's threads and all owners of a seat share.
pub(crate) struct Shared {
    pub options: Options,
    pub epochs: Epochs,
    pub log_epochs: LogEpochs,
    pub gate: Gate,
    /// The tables that open blocks use.
    pub blocks: Blocks,
    /// The engine's own part in the epochs: for changes of the catalog, and for freeing what
    /// former workers left behind.
    pub maintenance: Mutex<Participant>,
    /// Which transactions the participants of the seats run.
    pub users: SeatUsers,
    pub inboxes: Inboxes,
    /// The seats of sessions, transactions and loaders.
    pub slots: Slots,
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
    temporary_of: Mutex<Vec<Weak<Temporary>>>,
    /// The temporary tables of all sessions, and some that were freed since.
    temporary: Mutex<BTreeMap<TableId, Weak<Table>>>,
    next_stream: AtomicU64,
    /// Names that procedure handles were made for.
    handles: Mutex<Vec<Arc<str>>>,
    pub idempotency: Arc<Idempotency>,
    /// Sessions that are open.
    sessions_open: AtomicUsize,
    /// Sessions with an open block.
    watched: Mutex<Vec<WatchedSession>>,
    pub stopping: AtomicBool,
}

/// Tables that are to be given up while no statement runs.
#[derive(Default)]
struct Untried {
    tables: Vec<Arc<Table>>,
    /// When the ticker tries it next, and how long it has waited for that.
    next_try_ns: u64,
    pause_ns: u64,
}

/// A session with an open block, and since when it is open.
type WatchedSession = (Weak<Mutex<State>>, Arc<BlockClock>);

/// An unused seat is kept for so long.
const IDLE_SEAT_NS: u64 = 1_000_000_000;

impl Shared {
    /// An empty database; its threads are not started.
    pub fn new(options: Options) -> Shared {
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
        Shared {
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
            users: SeatUsers::new(WORKERS_MAX),
            inboxes,
            slots: Slots::new(options.session_slots, slot_wait_ns),
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
        sessions.for_each(|temporary| temporary.forget_seen());
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

    /// Lets the reaper look after a session until its block has ended.
    pub fn watch(&self, session: Weak<Mutex<State>>, clock: Arc<BlockClock>) {
        lock(&self.watched).push((session, clock));
    }

    /// The session whose open block has idled longest, and for how many nanoseconds.
    pub fn longest_open_block(&self) -> Option<(u64, u64)> {
        let watched = lock(&self.watched).clone();
        let idle = watched.iter();
        let idle = idle.filter_map(|(session, _)| session::idle_block(session));
        let (number, since_ns) = idle.min_by_key(|&(_, since_ns)| since_ns)?;
        Some((number, time::now_ns().saturating_sub(since_ns)))
    }

    /// The sessions that are shown to others, by number.
    pub fn listed_sessions(&self) -> Vec<ListedSession> {
        let watched = lock(&self.watched).clone();
        let blocks = watched.iter().filter_map(|(_, clock)| clock.open_block());
        let blocks: BTreeMap<u64, i64> = blocks.collect();
        let mut listed = self.open_sessions.listed();
        for session in &mut listed {
            session.block_since_us = blocks.get(&session.number).copied();
        }
        listed
    }

    /// The session whose open block began first, and when, in microseconds since 1970.
    pub fn oldest_block(&self) -> Option<(u64, i64)> {
        let watched = lock(&self.watched).clone();
        let open = watched.iter().filter_map(|(_, clock)| clock.open_block());
        open.min_by_key(|&(_, began_us)| began_us)
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
    /// them: then the rows of a table are not up to date before [`Shared::settle_table`].
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

    /// Lets go of tables that blocks have tried. No statement runs.
    fn give_up_untried(&self) {
        let untried = std::mem::take(&mut *lock(&self.untried));
        self.retire_tables(untried.tables);
    }

    /// A number for a table or sequence that is in no log.
    pub fn unlogged_table_id(&self) -> TableId {
        // Relaxed: each number is given once, until there are no others.
        let number = self.tables_tried.fetch_add(1, Ordering::Relaxed);
        TableId(number | TableId::TRIALS_FROM)
    }

    /// A session has temporary objects.
    pub fn know_session(&self, temporary: &Arc<Temporary>) {
        let mut known = lock(&self.temporary_of);
        if known.len() == known.capacity() {
            known.retain(|known| known.strong_count() > 0);
        }
        known.push(Arc::downgrade(temporary));
    }

    /// Sessions have these temporary tables.
    pub fn know_temporary<'a>(&self, tables: impl Iterator<Item = &'a Arc<Table>>) {
        let mut known = lock(&self.temporary);
        for table in tables {
            if known.insert(table.id(), Arc::downgrade(table)).is_none()
                && known.len().is_multiple_of(64)
            {
                known.retain(|_, table| table.strong_count() > 0);
            }
        }
    }

    /// How many temporary tables take memory.
    pub fn temporary_tables(&self) -> usize {
        let known = lock(&self.temporary);
        let tables = known.values().filter(|table| table.strong_count() > 0);
        tables.count()
    }

    /// Sessions do not have these temporary tables any more: they go as soon as no statement runs,
    /// but that is not waited for.
    pub fn give_up_temporary(&self, tables: Vec<Arc<Table>>) {
        lock(&self.untried).tables.extend(tables);
    }

    /// Tries to let go of them, and waits for longer each time before it tries that again.
    fn try_to_give_up_untried(&self, now_ns: u64) {
        let mut untried = lock(&self.untried);
        if untried.tables.is_empty() || now_ns < untried.next_try_ns {
            return;
        }
        let pause_ns = (2 * untried.pause_ns).clamp(LOOK_NS, UNTRIED_PAUSE_MAX_NS);
        (untried.pause_ns, untried.next_try_ns) = (pause_ns, now_ns + pause_ns);
        drop(untried);
        drop(self.shut_gate_until(Beside::Blocks, now_ns + TRIAL_ENDS_NS));
    }

    /// Lets go of tables that are not in force any more; the gate is shut, and no open block has
    /// used them.
    pub fn retire_tables(&self, tables: Vec<Arc<Table>>) {
        for table in tables {
            self.settle_table(table.id());
            // Garbage of former transactions may still refer to the table's memory.
            self.epochs.retire_owner(Box::new(table));
        }
    }

    /// A block tries these tables no more: they go as soon as no statement runs, at the latest with
    /// the next change.
    pub fn end_trial(&self, tables: Vec<Arc<Table>>) {
        if tables.is_empty() {
            return;
        }
        for table in &tables {
            table.supersede(None);
        }
        lock(&self.untried).tables.extend(tables);
        let until_ns = time::now_ns() + TRIAL_ENDS_NS;
        drop(self.shut_gate_until(Beside::Blocks, until_ns));
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
                self.slots.drop_idle(now.saturating_sub(IDLE_SEAT_NS));
                self.try_to_give_up_untried(now);
                self.reap_blocks(now);
                self.end_overdue(now);
            }
        }
    }

    /// Frees what idle workers and sessions have left, and former ones: in portions, between which
    /// others have the participant, and for at most so long, because epochs stand still meanwhile.
    fn free_retired(&self, limit_ns: u64) {
        let until = time::now_ns().saturating_add(limit_ns);
        self.epochs.take_over_idle();
        loop {
            let maintenance = lock(&self.maintenance);
            // Under the lock: a thread that changes tables or the protocol settles under it first.
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
        self.inboxes.close();
        self.stopping.store(true, Ordering::Release);
    }

    /// Gives back what is left when the threads have ended.
    pub fn finish_end(&self) {
        self.slots.close();
        // A session may still have a transaction open; then what it has read stays as it is.
        if let Some(_alone) = self.gate.shut(Beside::Nothing, 0)
            && self.gate.state() & BROKEN == 0
        {
            self.common().settle(&lock(&self.maintenance));
        }
        // Two epochs later no participant can hold what the workers left, while the tables are
        // there.
        for _ in 0..3 {
            self.epochs.advance();
        }
        lock(&self.maintenance).collect(usize::MAX);
        if let Some(log) = self.log() {
            // The next opening goes on with the next value, unless the log takes no more.
            for sequence in self.catalog().sequences() {
                let _ = sequence.settle();
            }
            // What has failed was told to all that waited.
            let _ = log.close();
        }
        // Another process may have it now.
        *lock(&self.data_directory) = None;
    }

    /// Ends the calls that were cancelled in an inbox, or whose time is over.
    fn end_overdue(&self, now_ns: u64) {
        for job in self.inboxes.take_overdue(now_ns) {
            job.promise.keep(Observed {
                result: Ok(Reply::Expired),
                epoch: self.log_epochs.current(),
            });
        }
    }

    fn reap_blocks(&self, now_ns: u64) {
        // A roll-back waits while the gate is shut, and the epochs would wait with it.
        if self.gate.state() & SHUT != 0 {
            return;
        }
        // Outside the mutex: rolling back takes a moment.
        let watched = lock(&self.watched).clone();
        let stays = watched.iter();
        let stays = stays.map(|(session, _)| session::reap(session, now_ns));
        let stays: Vec<bool> = stays.collect();
        // The others have only added some behind these meanwhile.
        let mut stays = stays.into_iter();
        lock(&self.watched).retain(|_| stays.next().unwrap_or(true));
    }
}

/// How often the ticker looks at idle seats and transactions.
const LOOK_NS: u64 = 50_000_000;
/// How long a block that no longer tries tables waits for a moment in which no statement runs, in
/// nanoseconds.
const TRIAL_ENDS_NS: u64 = 20_000_000;
/// The longest pause before the ticker tries again to let go of tables while no statement runs.
const UNTRIED_PAUSE_MAX_NS: u64 = 2_000_000_000;
/// Objects that the ticker frees at a time.
const COLLECT_MAX: usize = 4_096;
