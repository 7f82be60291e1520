//! Blocks that change the catalog: they are tried while their client sends statements, and made
//! when they commit.
//!
//! See [`crate::within_block`] for what a change does that is a part of a block.

use std::collections::BTreeSet;

use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_procedure::{Program, Stop};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::{CallAnswer, Commit, Journal, Listener, Listeners};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::schema::TableId;
use kiln_storage::sequence::{Sequence, SequenceId, SequenceState, SessionSequences};
use kiln_storage::table::Table;

use super::channels::Announcement;
use super::constraints::Constraints;
use super::limits::Limits;
use super::replay::{Defined, Entry, GAVE_ANOTHER, Keys, Ran};
use super::state::{Failure, State};
use crate::catalog::{Catalog, check_current};
use crate::change::{
    CatalogChange, Definition, Refused, Temporary, TriedSequences, Unchanged, WithinBlock,
    tables_written,
};
use crate::channels::Outgoing;
use crate::errors;
use crate::kernel::{Alone, Bar, Beside, EngineInner, Kept, Refusal};

/// Bytes of refilled tables that an entry of the log may have.
const ENTRY_BYTES_MAX: usize = 1 << 30;
/// How often a block is made anew that meets conflicts.
const CONFLICTS_MAX: u32 = 100;

/// What a block tries.
pub(crate) struct Trial {
    /// The version of the catalog in force from which it began.
    version: u64,
    catalog: Arc<Catalog>,
    /// All that it has made, but for those in the catalog.
    former_tables: Vec<Arc<Table>>,
}

/// What belongs to a block alone.
#[derive(Default)]
pub(crate) struct Own {
    /// Tables that the open attempt has written.
    pub(super) written: Vec<TableId>,
    /// What the open attempt tries, if it changes the catalog.
    trial: Option<Trial>,
    /// The definitions and sequences that the block has tried, in all its attempts.
    definitions: u64,
    pub(super) sequences: TriedSequences,
    /// What it has left to check when it commits.
    pub(super) constraints: Constraints,
    /// How the session writes texts; `None` is the default.
    pub(super) style: Option<Arc<[u8]>>,
    /// What it does when it has committed.
    pub(super) announcement: Announcement,
    /// What of its memory all sessions share.
    pub(super) kept: Kept,
}

impl Trial {
    fn of(catalog: &Arc<Catalog>) -> Trial {
        Trial {
            version: catalog.version(),
            catalog: catalog.clone(),
            former_tables: Vec::new(),
        }
    }

    /// The tables that are its own.
    fn tables(self) -> Vec<Arc<Table>> {
        let mut tables = self.former_tables;
        tables.extend(self.catalog.tables().map(|(_, table)| table.clone()));
        tables.retain(|table| table.id().0 >= TableId::TRIALS_FROM);
        tables
    }
}

/// Why a block was not made.
enum Unmade {
    /// Open blocks use these tables.
    Awaits(Vec<TableId>, Error),
    Conflict(Error),
    Final(Error),
}

impl From<Refusal> for Unmade {
    fn from(refusal: Refusal) -> Unmade {
        Unmade::Final(refusal.error())
    }
}

impl State {
    /// The catalog that the block tries, if it changes it.
    pub(super) fn tried_catalog(&self) -> Option<Arc<Catalog>> {
        Some(self.trial()?.catalog.clone())
    }

    /// The catalog for which the block's statements are compiled.
    ///
    /// # Errors
    /// A conflict, when the block tries a change of a catalog that is not in force any more.
    pub(super) fn block_catalog(&mut self) -> std::result::Result<Arc<Catalog>, Failure> {
        let in_force = self.worker_slot().catalog().clone();
        let Some(trial) = self.trial() else {
            return Ok(in_force);
        };
        match trial.version == in_force.version() {
            true => Ok(trial.catalog.clone()),
            false => Err(Failure::Conflict(errors::catalog_changed())),
        }
    }

    /// Notes what a program of the open attempt has written.
    pub(super) fn note_written(&mut self, program: &Program) {
        for table in tables_written(program) {
            let own = self.own.get_or_insert_default();
            if !own.written.contains(&table) {
                own.written.push(table);
            }
        }
    }

    /// Another attempt begins.
    pub(super) fn forget_written(&mut self) {
        if let Some(own) = &mut self.own {
            own.written.clear();
        }
    }

    /// The number of a definition of the block.
    pub(super) fn next_definition(&mut self) -> u64 {
        let own = self.own.get_or_insert_default();
        own.definitions += 1;
        own.definitions
    }

    fn trial(&self) -> Option<&Trial> {
        self.own.as_ref()?.trial.as_ref()
    }

    /// The attempt is over: what it has tried is forgotten.
    pub(super) fn give_up_trial(&mut self) {
        self.forget_written();
        if let Some(trial) = self.own.as_mut().and_then(|own| own.trial.take()) {
            let inner = self.worker_slot().inner().clone();
            // Nothing may refer to the tables, nor hold the gate up for them.
            let worker_slot = self.worker_slot();
            worker_slot.end_transaction();
            worker_slot.step_aside();
            inner.end_trial(trial.tables());
            // Without a limit it waits until the gate is open.
            let _ = worker_slot.resume(None);
        }
    }

    /// Changes the catalog of the block.
    pub(super) fn try_definition(
        &mut self,
        inner: &Arc<EngineInner>,
        definition: &Arc<dyn Definition>,
        limits: Limits<'_>,
    ) -> Result<()> {
        self.transcript.check_kept()?;
        inner.check_log_takes_changes()?;
        let defined = Defined {
            number: self.next_definition(),
            definition: definition.clone(),
        };
        self.persist(inner, limits, |state, _| {
            state.try_once(inner, &defined, limits)
        })?;
        let entry = Entry::Definition(defined);
        (self.transcript).keep(entry, &mut self.own, &inner.block_memory)
    }

    /// As [`State::try_definition`], in the attempt that is open.
    pub(super) fn try_once(
        &mut self,
        inner: &Arc<EngineInner>,
        defined: &Defined,
        limits: Limits<'_>,
    ) -> std::result::Result<(), Failure> {
        let deadline_ns = deadline(inner, limits);
        let mut bars: Vec<Bar<'_>> = Vec::new();
        loop {
            limits.check().map_err(Failure::Final)?;
            limits.resume(self.worker_slot()).map_err(Failure::Final)?;
            if let Some(refusal) = self.worker_slot().interruption() {
                return Err(Failure::Final(refusal.error()));
            }
            self.worker_slot().step_aside();
            let alone = inner.shut_gate_for_change(Beside::Blocks, deadline_ns);
            let alone = alone.map_err(Failure::Final)?;
            self.worker_slot().resume_alone(&alone);
            let former = self.block_catalog()?;
            let own = self.own.get_or_insert_default();
            let written = own.written.clone();
            let sequences = std::mem::take(&mut own.sequences);
            let worker_slot = self
                .worker_slot
                .as_mut()
                .expect("an open block has a worker slot");
            let number = worker_slot.number();
            let mut change = CatalogChange::new(inner, former.clone());
            let mut block = WithinBlock::trial(worker_slot, former.clone());
            (block.written, block.sequences) = (written, sequences);
            change.block = Some(block);
            let applied = change.apply(defined.number, &*defined.definition);
            let awaited = change.awaited.clone();
            let in_use = match awaited.is_empty() {
                true => errors::catalog_changed(),
                false => change.in_use(),
            };
            let Some(block) = change.block.take() else {
                return Err(Failure::Final(Error::internal("a change left its block")));
            };
            let (catalog, written) = (block.former, block.written);
            let former_tables = block.former_tables;
            let own = self.own.get_or_insert_default();
            own.sequences = block.sequences;
            drop(alone);
            match applied {
                Ok(()) => {
                    own.written = written;
                    let trial = own.trial.get_or_insert_with(|| Trial::of(&former));
                    self.version = catalog.version();
                    trial.catalog = catalog;
                    trial.former_tables.extend(former_tables);
                    return Ok(());
                }
                Err(Refused::Awaits) => {
                    self.worker_slot().step_aside();
                    let bar = inner.blocks.bar(awaited);
                    if !bar.wait(Some(number), deadline_ns) {
                        return Err(Failure::Final(in_use));
                    }
                    bars.push(bar);
                }
                Err(Refused::Conflict(error)) => return Err(Failure::Conflict(error)),
                Err(Refused::Final(error)) => return Err(Failure::Final(error)),
            }
        }
    }

    /// Makes the open block, and commits it. Returns the log epoch that has to be on disk for that.
    pub(super) fn make(
        &mut self,
        inner: &Arc<EngineInner>,
        limits: Limits<'_>,
    ) -> Result<LogEpoch> {
        inner.check_log_takes_changes()?;
        self.leave_attempt();
        let deadline_ns = deadline(inner, limits);
        let mut bars: Vec<Bar<'_>> = Vec::new();
        // Another block may have the token, or timestamps of
        // columns that are split in another way.
        let is_last = self.worker_slot().is_single() || inner.common().orders_columns();
        let mut beside = match is_last {
            true => Beside::Nothing,
            false => Beside::Blocks,
        };
        let mut conflicts = 0;
        loop {
            limits.check()?;
            let alone = inner.shut_gate_for_change(beside, deadline_ns)?;
            let made = self.make_alone(inner, &alone, limits);
            drop(alone);
            match made {
                Ok(logged) => return Ok(logged),
                Err(Unmade::Awaits(tables, in_use)) => {
                    let bar = inner.blocks.bar(tables);
                    if !bar.wait(None, deadline_ns) {
                        return Err(in_use);
                    }
                    bars.push(bar);
                }
                Err(Unmade::Conflict(error)) => {
                    conflicts += 1;
                    if conflicts > CONFLICTS_MAX {
                        self.has_lost = true;
                        return Err(error);
                    }
                    // Blocks that stand aside may be in its way.
                    beside = Beside::Nothing;
                }
                Err(Unmade::Final(error)) => return Err(error),
            }
        }
    }

    fn make_alone(
        &mut self,
        inner: &Arc<EngineInner>,
        alone: &Alone<'_>,
        limits: Limits<'_>,
    ) -> std::result::Result<LogEpoch, Unmade> {
        let began_us = self.clock.as_ref().and_then(|clock| clock.open_block());
        let began_us = began_us.map_or(0, |(_, began_us)| began_us);
        let worker_slot = self.worker_slot();
        worker_slot.enter_alone(alone)?;
        let heard = Heard::default();
        if inner.log().is_some() {
            worker_slot.listen(Some(&Journal::new(
                inner.log_epochs.clone(),
                Arc::new(heard.clone()),
            )));
        }
        let made = match worker_slot.begin_since(began_us) {
            Ok(()) => {
                worker_slot.limit(limits.deadline_ns, Some(limits.interrupt));
                self.make_begun(inner, alone, limits, &heard)
            }
            Err(refusal) => Err(refusal.into()),
        };
        let worker_slot = self.worker_slot();
        worker_slot.limit(None, None);
        worker_slot.end_transaction();
        worker_slot.listen(None);
        worker_slot.forget_tables();
        worker_slot.leave();
        made
    }

    fn make_begun(
        &mut self,
        inner: &Arc<EngineInner>,
        alone: &Alone<'_>,
        limits: Limits<'_>,
        heard: &Heard,
    ) -> std::result::Result<LogEpoch, Unmade> {
        let keys = self.transcript.keys();
        let sequences = self.sequences().clone();
        let entries = self.transcript.entries().to_vec();
        self.give_up_temporary();
        let temporary = self.temporary.clone();
        let worker_slot = self
            .worker_slot
            .as_mut()
            .expect("an open block has a worker slot");
        let before = inner.catalog();
        let mut change = CatalogChange::new(inner, before.clone());
        let tried = self.own.as_ref();
        let tried = tried.map(|it| it.sequences.clone());
        let mut block = WithinBlock::made(worker_slot, before.clone());
        block.sequences = tried.unwrap_or_default();
        change.block = Some(block);
        let mut remade = Remade {
            change,
            catalog: before,
            temporary,
            keys,
            sequences,
            followed: 0,
            sent: Outgoing::default(),
        };
        for (position, entry) in entries.iter().enumerate() {
            let run = remade.run(entry);
            let run = run.map_err(|unmade| match unmade {
                Unmade::Final(_) if let Err(error) = limits.check() => Unmade::Final(error),
                Unmade::Final(error) => {
                    inner.replays.note_differing();
                    self.has_lost = true;
                    let differs = error.message().to_owned();
                    Unmade::Final(errors::seen_otherwise(position + 1, entry.text(), &differs))
                }
                unmade => unmade,
            });
            if let Err(unmade) = run {
                remade.abandon();
                return Err(unmade);
            }
        }
        let sent = std::mem::take(&mut remade.sent);
        let logged = remade.commit(alone, heard)?;
        self.own.get_or_insert_default().announcement.sent = sent;
        Ok(logged)
    }
}

/// A block that is being made.
struct Remade<'a> {
    change: CatalogChange<'a>,
    /// As the last definition has left it.
    catalog: Arc<Catalog>,
    /// Of the block's session.
    temporary: Option<Arc<Temporary>>,
    keys: Keys,
    sequences: Arc<SessionSequences>,
    /// How many of the sequences that it has made the session knows in place of those that were
    /// tried.
    followed: usize,
    /// What it tells those that listen.
    sent: Outgoing,
}

impl Remade<'_> {
    /// Runs again what the block has run, and compares.
    fn run(&mut self, entry: &Entry) -> std::result::Result<(), Unmade> {
        match entry {
            Entry::Definition(Defined { number, definition }) => {
                let applied = self.change.apply(*number, &**definition);
                applied.map_err(|refused| match refused {
                    Refused::Awaits => {
                        Unmade::Awaits(self.change.awaited.clone(), self.change.in_use())
                    }
                    Refused::Conflict(error) => Unmade::Conflict(error),
                    Refused::Final(error) => Unmade::Final(error),
                })?;
                if let Some(block) = &mut self.change.block {
                    self.catalog = block.former.clone();
                    let new = block.followers.iter().skip(self.followed);
                    new.for_each(|(tried, made)| self.sequences.follow(tried, made));
                    self.followed = block.followers.len();
                }
                Ok(())
            }
            Entry::Temporary(defined) => self.define_temporary(defined),
            Entry::Statement(ran) => self.run_statement(ran),
        }
    }

    fn define_temporary(&mut self, defined: &Defined) -> std::result::Result<(), Unmade> {
        let (Some(block), Some(temporary)) = (&mut self.change.block, &self.temporary) else {
            return Err(Unmade::Final(Error::internal("a change left its block")));
        };
        let (inner, written) = (self.change.inner, std::mem::take(&mut block.written));
        let mut within = WithinBlock::trial(&mut *block.worker_slot, self.catalog.clone());
        (within.written, within.sequences) = (written, std::mem::take(&mut block.sequences));
        let definition = (defined.number, &*defined.definition);
        let (changed, within) = temporary.define(inner, &self.catalog, within, definition, true);
        let (written, sequences) = (within.written, within.sequences);
        (block.written, block.sequences) = (written, sequences);
        changed.map_err(|unchanged| match unchanged {
            Unchanged::Final(error) => Unmade::Final(error),
            Unchanged::Conflict(error) => Unmade::Conflict(error),
            Unchanged::MustBeAlone => Unmade::Final(Error::internal("a block is made alone")),
        })
    }

    fn run_statement(&mut self, ran: &Ran) -> std::result::Result<(), Unmade> {
        let seen = self.temporary.as_ref().map(|it| it.over(&self.catalog));
        let program = (ran.statement).program(seen.as_ref().unwrap_or(&self.catalog));
        let program = program.map_err(Unmade::Final)?;
        check_current(&program).map_err(Unmade::Final)?;
        let tables: Vec<TableId> = program.tables.iter().map(|table| table.id()).collect();
        let inner = self.change.inner;
        if let Some((id, user)) = inner.blocks.user_of(&tables, self.change.own_worker_slot()) {
            let table = self.catalog.table_by_id(id);
            let name = table.map_or("", |table| &table.schema().name);
            return Err(Unmade::Awaits(tables, errors::table_in_use(name, user)));
        }
        let mut arguments = ran.arguments.clone();
        if program.analysis.draws() {
            arguments.set_session(&self.sequences);
        }
        if !program.deferred.is_empty() {
            arguments.defer_constraints(Arc::default);
        }
        arguments.bind(&program).map_err(Unmade::Final)?;
        let Some(block) = &mut self.change.block else {
            return Err(Unmade::Final(Error::internal("a change left its block")));
        };
        match block.worker_slot.run(&program, &arguments) {
            Ok(()) => {}
            Err(Stop::Abort(cause)) => return Err(Unmade::Conflict(errors::conflict(cause))),
            Err(Stop::Raise(error)) => return Err(Unmade::Final(error)),
        }
        block.note_written(&program);
        let mut rows = block.worker_slot.rows(&program);
        let sent = std::mem::take(&mut rows.notifications);
        self.sent.extend(sent).map_err(Unmade::Final)?;
        match ran.was_seen(&self.keys, &rows) {
            true => Ok(()),
            false => Err(Unmade::Final(Error::internal(GAVE_ANOTHER))),
        }
    }

    /// Checks that what the log will have of it is one entry.
    fn check_size(&self) -> Result<()> {
        let block = self.change.block.as_ref();
        match block.is_some_and(|block| block.parts.bytes() > ENTRY_BYTES_MAX) {
            true => {
                let message =
                    "tables that the transaction block has written and then changed are too large";
                let detail =
                    format!("The log keeps at most {ENTRY_BYTES_MAX} bytes of their rows.");
                let error = Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
                Err(error.with_detail(detail))
            }
            false => Ok(()),
        }
    }

    /// How far the sequences have got that it has made or changed.
    fn give_up_ranges(&self) -> Result<Vec<(SequenceId, SequenceState)>> {
        let CatalogChange {
            before, catalog, ..
        } = &self.change;
        let block = self.change.block.iter();
        for (_, made) in block.flat_map(|block| &block.followers) {
            made.follow_tried()?;
        }
        let is_new = |sequence: &&Arc<Sequence>| {
            let known = before.sequence(sequence.name());
            known.is_none_or(|known| !Arc::ptr_eq(known, sequence))
        };
        let new = catalog.sequences().filter(is_new);
        new.map(|sequence| Ok((sequence.id(), sequence.give_up_range()?)))
            .collect()
    }

    /// Undoes all. The tables that it has made go when nothing refers to them any more, as others
    /// do.
    fn abandon(mut self) {
        let CatalogChange {
            inner,
            before,
            catalog,
            block,
            ..
        } = &mut self.change;
        let Some(block) = block else {
            return;
        };
        let followers = block.followers.iter().take(self.followed).rev();
        followers.for_each(|(tried, made)| self.sequences.follow(made, tried));
        // After a commit that has failed there is nothing left to be undone.
        block.worker_slot.roll_back();
        block.worker_slot.end_transaction();
        let mut made = std::mem::take(&mut block.former_tables);
        made.extend(block.former.tables().map(|(_, table)| table.clone()));
        made.extend(catalog.tables().map(|(_, table)| table.clone()));
        let is_known = |table: &Arc<Table>| {
            let mut known = before.tables();
            known.any(|(_, other)| Arc::ptr_eq(other, table))
        };
        made.retain(|table| !is_known(table));
        made.sort_unstable_by_key(Arc::as_ptr);
        made.dedup_by(|one, other| Arc::ptr_eq(one, other));
        made.iter().for_each(|table| table.supersede(None));
        inner.retire_tables(made);
    }

    /// Commits what it has written, and puts its catalog into force, as one entry of the log.
    fn commit(mut self, alone: &Alone<'_>, heard: &Heard) -> std::result::Result<LogEpoch, Unmade> {
        let states = match self.check_size().and_then(|()| self.give_up_ranges()) {
            Ok(states) => states,
            Err(error) => {
                self.abandon();
                return Err(Unmade::Final(error));
            }
        };
        let (inner, change) = (self.change.inner, &mut self.change);
        heard.keep_of(change.catalog.tables().map(|(_, table)| table.id()));
        if let Some(block) = &mut change.block
            && let Err(cause) = block.worker_slot.commit()
        {
            self.abandon();
            return Err(Unmade::Conflict(errors::conflict(cause)));
        }
        let Some(block) = change.block.take() else {
            return Err(Unmade::Final(Error::internal("a change left its block")));
        };
        // It refers to tables that go.
        block.worker_slot.end_transaction();
        let mut parts = block.parts;
        let written = heard.take();
        if !written.is_empty() {
            parts.commit(|bytes| bytes.extend_from_slice(&written));
        }
        for (sequence, state) in states {
            parts.sequence(sequence, state);
        }
        let log = inner.log();
        let logged = log.map_or(LogEpoch::default(), |log| log.append_block(&parts));
        let (catalog, mut replaced) = self.change.put_in_force();
        for table in block.former_tables {
            if !replaced.iter().any(|known| Arc::ptr_eq(known, &table)) {
                table.supersede(catalog.table_by_id(table.id()).map(|table| &**table));
                replaced.push(table);
            }
        }
        inner.put_in_force(alone, catalog, replaced, logged);
        Ok(logged)
    }
}

/// What the block has written, as its worker reports it.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Written>>);

#[derive(Default)]
struct Written {
    /// Tables of the catalog that comes into force: what is written to others is in their
    /// successors.
    tables: BTreeSet<TableId>,
    bytes: Vec<u8>,
}

impl Heard {
    fn keep_of(&self, tables: impl Iterator<Item = TableId>) {
        lock(&self.0).tables = tables.collect();
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0).bytes)
    }
}

impl Listeners for Heard {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(self.clone())
    }

    fn note(&self, _: &CallAnswer<'_>) -> Option<LogEpoch> {
        None
    }
}

impl Listener for Heard {
    fn committed(&mut self, commit: &Commit<'_>) {
        let Written { tables, bytes } = &mut *lock(&self.0);
        commit.append_of(bytes, |table| tables.contains(&table.id()));
    }
}

/// Until when a change waits that begins now.
pub(super) fn deadline(inner: &EngineInner, limits: Limits<'_>) -> u64 {
    let deadline_ns = inner.change_deadline();
    limits
        .deadline_ns
        .map_or(deadline_ns, |limit_ns| limit_ns.min(deadline_ns))
}
