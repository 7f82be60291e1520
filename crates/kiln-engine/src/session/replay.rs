//! Blocks that lose against other transactions are run again, and their clients do not notice.
//!
//! A client has seen the results of the block's statements, so the block cannot simply begin anew.
//! The session keeps what the block has run, and a digest of each result. After a conflict it rolls
//! back, runs the same statements with the same arguments and the same `now()` in a new
//! transaction, and compares. When all results are what the client has seen, the block is where it
//! was, and goes on. When one differs, the client gets an error (40001), as no other answer would
//! be true. A block that has lost several times is run again alone, as calls are, so that it does
//! not lose for ever.
//!
//! A statement draws the same values of sequences when it runs again (`kiln_storage::sequence`):
//! what it has drawn is kept with its arguments.
//!
//! A digest has 128 bits of two hashes with keys of their own: that another result has the same one
//! is not to be expected.
//!
//! A savepoint is a place in what the block has run. To roll back to it is to run all again up to
//! there: no protocol has to undo a part of a transaction.

use std::hash::{DefaultHasher, Hasher};
use std::mem::take;

use kiln_platform::random::{entropy, fresh_seed};
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_procedure::{Arguments, Program};
use kiln_storage::deferral::PendingCheck;
use kiln_storage::error::{Error, Result, SqlState};

use super::definitions::Own;
use super::limits::Limits;
use super::state::{Failure, State};
use crate::calls::{Rows, Statement, write_rows};
use crate::catalog::Catalog;
use crate::change::Definition;
use crate::kernel::{ALONE_WAIT_NS, Budget, EngineInner};
use crate::{canary, errors};

/// Replays of a block, for one statement or its commit, after which it is run alone.
const LOSSES_MAX: u32 = 5;
/// The longest pause before the second replay of a block, by two powers; it doubles with each
/// further one, so often at most.
const PAUSE_NS: u64 = 100_000;
const PAUSE_DOUBLINGS_MAX: u32 = 8;
/// Statements of a block that can be replayed.
const STATEMENTS_MAX: usize = 10_000;
/// Bytes of its arguments.
const BYTES_MAX: usize = 1 << 20;
/// And of those of a block with definitions, which must be run again.
const BYTES_WITH_DEFINITIONS_MAX: usize = 64 << 20;

/// What a block has run, and what its client has seen.
#[derive(Default)]
pub(super) struct Transcript {
    /// Whether blocks of the session are to be replayed.
    pub is_wanted: bool,
    entries: Vec<Entry>,
    /// Bytes of all arguments.
    bytes: usize,
    /// How many of the entries change the catalog.
    definitions: u32,
    /// Whether something was run that is not among the entries.
    is_lost: bool,
    /// Whether the block has a savepoint, so that it may go on after it has failed.
    pub has_savepoint: bool,
    /// Drawn when the first result is noted. Boxed, so that a session without blocks stays small.
    keys: Option<Box<Keys>>,
}

#[derive(Clone)]
pub(super) enum Entry {
    Statement(Ran),
    Definition(Defined),
    /// Of temporary objects.
    Temporary(Defined),
}

#[derive(Clone)]
pub(super) struct Ran {
    pub statement: Arc<dyn Statement>,
    pub arguments: Arguments,
    seen: Digest,
}

/// A definition, and its number in the block, which no other one has had.
#[derive(Clone)]
pub(super) struct Defined {
    pub number: u64,
    pub definition: Arc<dyn Definition>,
}

impl Entry {
    fn bytes(&self) -> usize {
        match self {
            Entry::Statement(ran) => ran.arguments.bytes(),
            Entry::Definition(defined) | Entry::Temporary(defined) => {
                defined.definition.source().text.len()
            }
        }
    }

    /// Its text, for messages.
    pub fn text(&self) -> Option<&str> {
        match self {
            Entry::Statement(ran) => ran.statement.text(),
            Entry::Definition(defined) | Entry::Temporary(defined) => {
                Some(&defined.definition.source().text)
            }
        }
    }
}

/// What identifies a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest(u64, u64);

/// The keys of the session's digests: a client that does not know them cannot make two results with
/// one digest.
#[derive(Clone, Copy)]
pub(super) struct Keys([[u8; 16]; 2]);

impl Keys {
    fn draw() -> Keys {
        let draw = || entropy().unwrap_or_else(|_| u128::from(fresh_seed()).to_le_bytes());
        Keys([draw(), draw()])
    }

    fn digest(&self, rows: &Rows) -> Digest {
        let mut bytes = Vec::new();
        write_rows(rows, &mut bytes);
        // What is checked at COMMIT is a part of what the statement did.
        for PendingCheck { check, keys } in &rows.pending {
            check.append_to(&mut bytes);
            for value in keys.iter().flatten() {
                value.append_to(&mut bytes);
            }
        }
        let [first, second] = self.0.map(|key| {
            let mut hasher = DefaultHasher::new();
            hasher.write(&key);
            hasher.write(&bytes);
            hasher.finish()
        });
        Digest(first, second)
    }
}

impl Transcript {
    /// The block is over.
    pub fn clear(&mut self) {
        self.entries = Vec::new();
        self.definitions = 0;
        self.bytes = 0;
        self.is_lost = false;
        self.has_savepoint = false;
    }

    /// Whether the block is to be replayed, and can be as far as it has come.
    pub fn is_whole(&self) -> bool {
        self.is_wanted && !self.is_lost
    }

    /// How many statements the block has run; `None` when they are not kept.
    pub fn len(&self) -> Option<usize> {
        (!self.is_lost).then_some(self.entries.len())
    }

    /// Forgets the statements behind the first `count`, a length that it had before.
    ///
    /// # Errors
    /// 0A000 when the first ones are not kept.
    pub fn truncate(&mut self, count: Option<usize>) -> Result<usize> {
        if count == Some(0) {
            self.is_lost = false;
        }
        let Some(count) = count.filter(|_| !self.is_lost) else {
            let message =
                "ROLLBACK TO SAVEPOINT is not supported in this block: its statements are not kept";
            let detail = format!(
                "It has more than {STATEMENTS_MAX} of them, parameters of more than {BYTES_MAX} bytes, or EXPLAIN ANALYZE."
            );
            return Err(Error::unsupported(message).with_detail(detail));
        };
        for entry in self.entries.drain(count..) {
            self.bytes -= entry.bytes();
            self.definitions -= u32::from(matches!(entry, Entry::Definition(_)));
        }
        Ok(count)
    }

    /// Something was run that cannot be run again in the same way.
    fn lose(&mut self) {
        self.entries = Vec::new();
        self.bytes = 0;
        self.is_lost = true;
    }

    /// A statement has run.
    ///
    /// # Errors
    /// 54000 and 53200 for one of a block with definitions that cannot be kept.
    fn note(
        &mut self,
        statement: &Arc<dyn Statement>,
        arguments: Arguments,
        rows: &Rows,
        (own, budget): (&mut Option<Box<Own>>, &Arc<Budget>),
    ) -> Result<()> {
        let seen = self.keys().digest(rows);
        let ran = Ran {
            statement: statement.clone(),
            arguments,
            seen,
        };
        self.keep(Entry::Statement(ran), own, budget)
    }

    /// Something was run.
    ///
    /// # Errors
    /// 54000 in a block with definitions that has too much of it, 53200 when all sessions together
    /// have.
    pub(super) fn keep(
        &mut self,
        entry: Entry,
        own: &mut Option<Box<Own>>,
        budget: &Arc<Budget>,
    ) -> Result<()> {
        let has_definitions = self.has_definitions();
        let bytes_max = match has_definitions {
            true => BYTES_WITH_DEFINITIONS_MAX,
            false => BYTES_MAX,
        };
        self.bytes += entry.bytes();
        if self.bytes > BYTES_MAX && self.bytes <= bytes_max {
            let own = own.get_or_insert_default();
            own.kept.reach(budget, self.bytes)?;
        }
        if self.entries.len() < STATEMENTS_MAX && self.bytes <= bytes_max {
            self.definitions += u32::from(matches!(entry, Entry::Definition(_)));
            self.entries.push(entry);
            return Ok(());
        }
        self.lose();
        match has_definitions {
            true => Err(too_much_to_define()),
            false => Ok(()),
        }
    }

    /// Whether the block has changed the catalog.
    pub fn has_definitions(&self) -> bool {
        self.definitions > 0
    }

    /// What the block has run.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The keys of its digests.
    pub(super) fn keys(&mut self) -> Keys {
        **self.keys.get_or_insert_with(|| Box::new(Keys::draw()))
    }

    /// Checks that all that the block has run is kept, as it is with definitions.
    ///
    /// # Errors
    /// 54000.
    pub(super) fn check_kept(&self) -> Result<()> {
        match self.is_lost {
            true => Err(too_much_to_define()),
            false => Ok(()),
        }
    }
}

#[cold]
fn too_much_to_define() -> Error {
    let message = "the transaction block does too much to change the catalog as well";
    let detail = format!(
        "It is made when it commits, and until then its statements are kept: at most {STATEMENTS_MAX}, with parameters of {BYTES_MAX} bytes before the first definition and of {BYTES_WITH_DEFINITIONS_MAX} in all, and no EXPLAIN ANALYZE."
    );
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        .with_detail(detail)
        .with_hint("Make the definitions in a block of their own, or outside of one.")
}

impl State {
    /// Runs a statement in the open block, which is replayed when that meets a conflict.
    pub(super) fn run_statement(
        &mut self,
        inner: &Arc<EngineInner>,
        statement: &Arc<dyn Statement>,
        arguments: &mut Arguments,
        limits: Limits<'_>,
    ) -> Result<Rows> {
        self.hand_surroundings(arguments);
        if self.transcript.is_lost {
            let compile = |catalog: &Arc<Catalog>, _: &mut Arguments| statement.program(catalog);
            let run = self.run_open(compile, arguments, limits, false);
            let rows = run.map_err(|failure| self.lose(failure))?;
            return self.keep_pending(rows, inner);
        }
        let mut given = arguments.clone();
        given.keep_draws(self.sequences());
        let run = |state: &mut State, is_alone| {
            let mut arguments = given.clone();
            let compile = |catalog: &Arc<Catalog>, _: &mut Arguments| statement.program(catalog);
            state.run_open(compile, &mut arguments, limits, is_alone)
        };
        let rows = self.persist(inner, limits, run)?;
        given.release_draws();
        let shared = (&mut self.own, &inner.block_memory);
        self.transcript.note(statement, given, &rows, shared)?;
        self.keep_pending(rows, inner)
    }

    /// Runs a program in the open block, which cannot be replayed from then on; up to then it can.
    pub(super) fn run_once(
        &mut self,
        inner: &Arc<EngineInner>,
        mut compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
        limits: Limits<'_>,
    ) -> Result<Rows> {
        if self.transcript.has_definitions() {
            return Err(too_much_to_define());
        }
        self.transcript.lose();
        self.hand_surroundings(arguments);
        let style = self.style();
        let compile = |catalog: &Arc<Catalog>, arguments: &mut Arguments| {
            let program = compile(catalog, arguments)?;
            arguments.set_style(style.as_ref());
            Ok(program)
        };
        let run = self.run_open(compile, arguments, limits, false);
        let rows = run.map_err(|failure| self.lose(failure))?;
        self.keep_pending(rows, inner)
    }

    /// The error of a block that fails.
    fn lose(&mut self, failure: Failure) -> Error {
        self.has_lost = matches!(failure, Failure::Conflict(_));
        failure.error()
    }

    /// Commits the open block, which is replayed when that meets a conflict.
    pub(super) fn commit(&mut self, inner: &Arc<EngineInner>, limits: Limits<'_>) -> Result<()> {
        let committed = self.persist(inner, limits, |state, _| {
            state.has_attempt = false;
            let committed = state.worker_slot().commit();
            committed.map_err(|cause| Failure::Conflict(errors::conflict(cause)))
        });
        self.worker_slot().limit(None, None);
        committed
    }

    /// Does something in the open block: again, after a replay, as long as that meets conflicts.
    pub(super) fn persist<T>(
        &mut self,
        inner: &Arc<EngineInner>,
        limits: Limits<'_>,
        mut run: impl FnMut(&mut State, bool) -> std::result::Result<T, Failure>,
    ) -> Result<T> {
        let mut result = run(self, false);
        let mut losses = 0;
        loop {
            let conflict = match result {
                Ok(value) => return Ok(value),
                Err(Failure::Conflict(error)) => error,
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Barred(program)) => {
                    self.begin_after_change(&program, limits)?;
                    inner.replays.count(false);
                    let replayed = self.replay(limits, false, inner);
                    result = replayed.and_then(|()| run(self, false));
                    continue;
                }
            };
            if !self.transcript.is_whole() {
                inner.replays.note_refused();
                return Err(self.lose(Failure::Conflict(conflict)));
            }
            limits.check()?;
            losses += 1;
            self.restart(limits, losses)?;
            self.worker_slot()
                .limit(limits.deadline_ns, Some(limits.interrupt));
            let number = self.worker_slot().number();
            // Definitions shut the gate themselves.
            let alone = match losses > LOSSES_MAX && !self.transcript.has_definitions() {
                true => inner.gate.shut_around(number, ALONE_WAIT_NS),
                false => None,
            };
            inner.replays.count(alone.is_some());
            let is_alone = alone.is_some();
            result = match self.replay(limits, is_alone, inner) {
                Ok(()) => run(self, is_alone),
                Err(failure) => Err(failure),
            };
        }
    }

    /// Runs all again that the block has run up to a savepoint, in an attempt that is new if
    /// `is_new` says so.
    pub(super) fn run_up_to_savepoint(
        &mut self,
        inner: &Arc<EngineInner>,
        limits: Limits<'_>,
        is_new: bool,
    ) -> Result<()> {
        if !is_new {
            limits.resume(self.worker_slot())?;
            self.leave_attempt();
            self.begin_attempt(limits)?;
            (self.worker_slot()).limit(limits.deadline_ns, Some(limits.interrupt));
        }
        let mut has_run = false;
        self.persist(inner, limits, |state, is_alone| {
            // After a conflict all was run again already.
            match std::mem::replace(&mut has_run, true) {
                false => state.replay(limits, is_alone, inner),
                true => Ok(()),
            }
        })?;
        self.has_lost = false;
        Ok(())
    }

    /// Rolls the attempt back, and leaves the gate, so that a wait holds no other transaction up.
    pub(super) fn leave_attempt(&mut self) {
        self.roll_back_attempt();
        let worker_slot = self.worker_slot();
        worker_slot.forget_tables();
        worker_slot.leave();
    }

    /// Rolls the attempt back, and begins the next one, the `losses`-th.
    fn restart(&mut self, limits: Limits<'_>, losses: u32) -> Result<()> {
        self.leave_attempt();
        self.worker_slot().back_off(limits.deadline_ns);
        if losses > 1 {
            // Two blocks that wait in vain for each other lose at one time, and would begin at one
            // time for ever.
            let span_ns = PAUSE_NS << losses.min(PAUSE_DOUBLINGS_MAX);
            let pause_ns = fresh_seed() % span_ns;
            let remaining_ns = limits.deadline_ns.map_or(u64::MAX, |deadline_ns| {
                deadline_ns.saturating_sub(time::now_ns())
            });
            thread::park_for(pause_ns.min(remaining_ns));
        }
        self.begin_attempt(limits)
    }

    /// Runs all again that the block has run, and compares.
    fn replay(
        &mut self,
        limits: Limits<'_>,
        is_alone: bool,
        inner: &Arc<EngineInner>,
    ) -> std::result::Result<(), Failure> {
        let keys = self.transcript.keys();
        let entries = take(&mut self.transcript.entries);
        let mut again = entries.iter().enumerate();
        let replayed = again.try_for_each(|(position, entry)| {
            let ran = match entry {
                Entry::Statement(ran) => {
                    let mut arguments = ran.arguments.clone();
                    let compile =
                        |catalog: &Arc<Catalog>, _: &mut Arguments| ran.statement.program(catalog);
                    let rows = self.run_open(compile, &mut arguments, limits, is_alone);
                    rows.map(|rows| ran.was_seen(&keys, &rows))
                }
                Entry::Definition(defined) => self.try_once(inner, defined, limits).map(|()| true),
                Entry::Temporary(defined) => {
                    let made = self.define_temporary_once(inner, defined, limits, is_alone);
                    made.map(|()| true)
                }
            };
            let differs = match ran {
                Ok(true) => return Ok(()),
                Ok(false) => GAVE_ANOTHER.to_owned(),
                Err(Failure::Final(error)) => {
                    limits.check().map_err(Failure::Final)?;
                    format!("it failed: {}", error.message())
                }
                Err(again) => return Err(again),
            };
            inner.replays.note_differing();
            self.has_lost = true;
            let error = errors::seen_otherwise(position + 1, entry.text(), &differs);
            Err(Failure::Final(error))
        });
        self.transcript.entries = entries;
        replayed
    }
}

impl Ran {
    /// Whether the client has seen these rows.
    pub fn was_seen(&self, keys: &Keys, rows: &Rows) -> bool {
        canary::forgets_to_compare() || keys.digest(rows) == self.seen
    }
}

/// Why a block cannot go on whose client has seen another result.
pub(super) const GAVE_ANOTHER: &str = "it gave another result";
