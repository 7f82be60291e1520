//! What optimistic protocols share: an attempt that runs without changing a record, on what it
//! noted of the records that it met and on private images of what it writes.
//!
//! # The idea
//!
//! For each record that it meets the attempt notes the tid, and whatever else the protocol wants to
//! know at its commit ([`Item`]). What it writes goes to a row image of its own ([`Write`]). New
//! records stand in all indexes at once, but *absent*; a record whose indexed columns change gets
//! moving entries ([`IndexChanges`]). At the end the protocol decides whether what was noted may
//! commit, and with which tid, and [`Optimistic::install`] makes the images visible.
//!
//! A protocol is a [`Commit`]: how a record is observed, how an attempt commits, and how it is
//! confirmed. The rest is here:
//!
//! - `sets.rs`: [`Item`], [`Write`];
//! - `execute.rs`: meeting, reading, buffering;
//! - `keys.rs`: insertions, and updates of indexed columns;
//! - `late.rs`: attempts that run to their commit although they will fail there;
//! - `tid_locks.rs`, `validate.rs`: what several protocols do at their commit;
//! - `updates.rs`: updates deferred to the commit;
//! - `split.rs`: a second timestamp in `aux`, for protocols that leave it free;
//! - `calm.rs`: doing without these two while others do not disturb;
//! - `record_lock.rs`: a lock in `aux`, for those that need one beside that of the tid;
//! - `install.rs`: making the writes visible, undoing, and the end of an attempt.
//!
//! # Invariants
//!
//! - A record's words change only while its tid's lock bit is set (or before any index has it), by
//!   the attempt that set it.
//! - A tid is replaced by a greater one only, so a changed record never has an observed tid again.
//! - An inserted record is *absent* with the version that its cell had last, and stands in all
//!   indexes from the moment of the insert; an attempt that meets it observes its absence and fails
//!   when it commits first.
//! - A deleted record becomes *absent and dead* when it is installed and is unlinked afterwards; a
//!   dead record's tid never changes again, so that an attempt that observed it before fails.
//! - An attempt that moves a record's index entries has claimed the record ([`CLAIMED`]) until it
//!   ends, so that every moving entry of a record is the same attempt's.
//! - The highest bit of `aux` is the claim; the others are the protocol's.

mod access;
mod calm;
mod execute;
mod install;
mod keys;
mod late;
pub mod record_lock;
mod sets;
pub mod split;
mod tid_locks;
mod updates;
mod validate;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::spin::{self, Spinner};
use kiln_procedure::AbortCause;
use kiln_procedure::ir::{Intent, Reg};
use kiln_storage::epoch::Participant;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;

pub use sets::{Item, NO_WRITE, UNOBSERVED, WHOLE, Write, WriteKind};

use calm::Calm;

use crate::phases::Phases;
use crate::shared::index_changes::IndexChanges;
use crate::shared::node_set::NodeSet;
use crate::shared::record_map::RecordMap;
use crate::shared::record_set::RecordSet;
use crate::shared::recorder::Recorder;
use crate::shared::report::Reporter;
use crate::shared::scratch::Scratch;
use crate::shared::updates::Updates;

/// How often a lock that is held is looked at again before the attempt gives up: about four
/// microseconds, several times what an install takes.
pub const LOCK_SPINS_MAX: u32 = 128;

/// The bit of a record's `aux` that says that an attempt is moving the record's index entries.
pub const CLAIMED: u64 = 1 << 63;

/// An optimistic protocol: what it does differently from the others.
pub trait Commit: Sized {
    /// What an item notes of its record besides the tid.
    type Note: Copy;

    /// Whether commits validate what was read, and inserts that their keys are free. Where they do
    /// not, execution does not fail because of others: it waits for those that install, reads what
    /// has changed anew, writes a row whose key is taken over the row that has it, and loses what
    /// comes too late. The indexes stay intact all the same, as an attempt that changes a record's
    /// entries claims the record first; two that do so are the one conflict that is left.
    const VALIDATES: bool = true;

    /// Whether versions follow the order of transactions also where a key goes with one record and
    /// comes back with another one. Where they do not, [`Optimistic::above_deletions`] sees to it.
    const FOLLOWS: bool = false;

    /// Hears, before an attempt starts, how many of the same transaction have failed.
    #[inline(always)]
    fn prepare(&mut self, _failures: u32) {}

    /// A transaction begins, whose attempts follow; it ends at `deadline_ns`, of
    /// [`kiln_platform::time::now_ns`], if at all.
    #[inline(always)]
    fn begin_call(&mut self, _deadline_ns: Option<u64>) {}

    /// The transaction is over: what its attempts left for later ones is forgotten.
    #[inline(always)]
    fn end_call(&mut self) {}

    /// An attempt starts and has entered the epoch.
    #[inline(always)]
    fn begin(&mut self, _participant: &Participant) {}

    /// Hears, after it has begun, that the attempt will only read.
    #[inline(always)]
    fn begin_read_only(&mut self) {}

    /// The attempt meets a record as a whole, and is about to read these columns.
    #[inline(always)]
    fn meets(&mut self, _: &Table, _record: RecordRef, _columns: ColumnSet) {}

    /// A row that has columns of a record as they are in the version that the attempt observed of
    /// it. Without one the record itself is read.
    #[inline(always)]
    fn row_kept(
        &self,
        _record: RecordRef,
        _observed: u64,
        _columns: &[(ColumnId, Reg)],
    ) -> Option<&[AtomicU64]> {
        None
    }

    /// Looks at a record that the attempt meets: its tid while no attempt installs it, and the
    /// note. A dead record is not kept: nothing that this takes for the sake of the attempt stays
    /// with it.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    fn observe(
        &mut self,
        record: RecordRef,
        intent: Intent,
    ) -> Result<(Tid, Self::Note), AbortCause>;

    /// The bits of `aux` that are the second timestamp and its lock ([`split`]).
    const SPLIT: u64 = !CLAIMED;

    /// The note of a record of which only the second timestamp is relied on ([`split`]), which is
    /// the same before and after this; `tid` is the record's between. Without one it has to be
    /// looked at again.
    #[inline(always)]
    fn observe_split(&mut self, _: &Table, record: RecordRef, _tid: Tid) -> Option<Self::Note> {
        Some(self.adopt(record))
    }

    /// An item that relied on the second timestamp relies on its record's tid from now on.
    #[inline(always)]
    fn rely_on_whole(_note: &mut Self::Note, _tid: Tid) {}

    /// `aux`, which was `aux`, when the second timestamp advances to `tid`: unlocked, and the claim
    /// as it was.
    #[inline(always)]
    fn advanced(aux: u64, tid: Tid) -> u64 {
        aux & CLAIMED | tid.version()
    }

    /// Whether a second timestamp that is the same as when the record was met, at this version,
    /// says that it was not advanced since.
    #[inline(always)]
    fn is_near(_former: Tid, _record: RecordRef) -> bool {
        true
    }

    /// A record that the attempt has locked at version `former` is about to get that of `tid`, and
    /// keeps its second timestamp.
    #[inline(always)]
    fn replace(&self, _record: RecordRef, _former: Tid, _tid: Tid) {}

    /// A record is installed, and others see it: a lock that the protocol has besides the tid's is
    /// let go of, while the record's line is at hand.
    #[inline(always)]
    fn installed(&mut self, _record: RecordRef) {}

    /// An updater reads the record of this note before the commit: from now on its version counts,
    /// whatever else of the record does.
    #[inline(always)]
    fn observe_whole(_note: &mut Self::Note) {}

    /// The note of a record that the attempt has inserted, whose `aux` is [`Commit::new_aux`].
    fn adopt(&mut self, record: RecordRef) -> Self::Note;

    /// The `aux` that a new record has from before others can meet it; or none, and it has what its
    /// cell had last.
    #[inline(always)]
    fn new_aux(&self) -> Option<u64> {
        Some(0)
    }

    /// Commits the attempt: locks what it needs, validates, chooses a tid, calls
    /// [`Optimistic::install`] and [`Optimistic::finish`].
    ///
    /// # Errors
    /// An [`AbortCause`]; no tid is locked then.
    fn commit(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause>;

    /// Whether what the attempt has read is consistent and final; nothing stays locked.
    ///
    /// # Errors
    /// An [`AbortCause`] when it is not.
    fn confirm(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause>;

    /// The attempt is over, its writes are installed or undone: what it still holds is let go. It
    /// is still in its epoch.
    #[inline(always)]
    fn end(&mut self) {}

    /// A record that the attempt read or means to write has changed, and the attempt will fail.
    #[inline(always)]
    fn found_changed(&mut self, _record: RecordRef) {}

    /// The attempt relies on a gap in the index at this position.
    #[inline(always)]
    fn relies_on_gap(&mut self, _table: &Table, _index: usize) {}

    /// The attempt puts an entry into the index at this position.
    #[inline(always)]
    fn adds_entry(&mut self, _table: &Table, _index: usize) {}

    /// The attempt has found a record that is not there yet, and relies on that.
    #[inline(always)]
    fn met_absent(&mut self, _table: &Table) {}
}

/// The access of one worker, of any optimistic protocol; see the module's documentation.
pub struct Optimistic<C: Commit> {
    /// The protocol's own part.
    pub protocol: C,
    /// The worker's part in the epochs.
    pub participant: Participant,
    /// The records that the attempt met, in that order; a record that was met twice is there twice.
    pub items: Vec<Item<C::Note>>,
    /// The records that the attempt writes, each once.
    pub writes: Vec<Write>,
    /// From a record to its write.
    pub written: RecordMap,
    /// The gaps that the attempt relies on.
    pub nodes: NodeSet,
    /// The newest tid of this worker, for protocols whose workers' tids only grow.
    pub last: Tid,
    /// The execution-time breakdown.
    pub phases: Phases,
    /// Whether tids are locked in the order of the records' addresses, and waited for
    /// ([`DeadlockAvoidance::Sort`](crate::factors::DeadlockAvoidance::Sort)).
    pub sorts_locks: bool,
    /// Whether updates are deferred to the commit where the program says that they can be.
    pub defers: bool,
    /// Whether items may rely on the second timestamp, and writes advance it ([`split`]).
    pub uses_split: bool,
    /// Whether that covers the split columns of tables.
    pub splits: bool,
    /// Whether attempts observe second timestamps and leave updates to their commit only while
    /// others disturb them (`calm.rs`).
    pub calms: bool,
    /// Whether an attempt ends as soon as it meets what will fail its commit. Else it goes on as
    /// far as it can (`late.rs`).
    pub early_aborts: bool,
    /// Without early aborts: whether the attempt must not commit, though all that it has observed
    /// may be as it was.
    is_doomed: bool,
    /// As `defers`, for the present attempt.
    is_deferring: bool,
    /// As `uses_split`, for what the present attempt observes.
    observes_split: bool,
    calm: Calm,
    updates: Updates,
    recorder: Recorder,
    reporter: Reporter,
    changes: IndexChanges,
    /// The records whose entries the attempt moves.
    claimed: RecordSet,
    scratch: Scratch,
    /// For keys computed outside a procedure's own memory.
    heap: Heap,
}

// SAFETY: the table pointers inside are only followed by the thread that runs the access, while the
// tables are kept.
unsafe impl<C: Commit + Send> Send for Optimistic<C> {}

impl<C: Commit> Optimistic<C> {
    /// An access of `protocol` for the worker that `participant` stands for.
    pub fn with(participant: Participant, protocol: C) -> Optimistic<C> {
        Optimistic {
            protocol,
            participant,
            items: Vec::new(),
            writes: Vec::new(),
            written: RecordMap::default(),
            nodes: NodeSet::default(),
            last: Tid(0),
            phases: Phases::default(),
            sorts_locks: false,
            defers: false,
            uses_split: false,
            splits: false,
            calms: false,
            early_aborts: true,
            is_doomed: false,
            is_deferring: false,
            observes_split: false,
            calm: Calm::default(),
            updates: Updates::default(),
            recorder: Recorder::default(),
            reporter: Reporter::default(),
            changes: IndexChanges::default(),
            claimed: RecordSet::default(),
            scratch: Scratch::default(),
            heap: Heap::new(),
        }
    }
}

impl<C: Commit + Default> Optimistic<C> {
    /// An access for the worker that `participant` stands for.
    pub fn new(participant: Participant) -> Optimistic<C> {
        Optimistic::with(participant, C::default())
    }
}

/// The tid of a record once no attempt is installing it.
///
/// # Errors
/// [`AbortCause::ReadLock`] when that takes too long.
#[inline(always)]
pub fn stable_tid(record: RecordRef) -> Result<Tid, AbortCause> {
    // Acquire pairs with the release store of the new tid in `install`: the words read
    // after this are at least those of the version seen here.
    let mut tid = Tid(record.tid().load(Ordering::Acquire));
    if tid.is_locked() {
        spin::until(LOCK_SPINS_MAX, || {
            tid = Tid(record.tid().load(Ordering::Acquire));
            !tid.is_locked()
        });
    }
    match tid.is_locked() {
        true => Err(AbortCause::ReadLock),
        false => Ok(tid),
    }
}

/// As [`stable_tid`], for attempts that do not fail. They hold no tid meanwhile, and attempts that
/// hold one install.
#[inline(always)]
pub fn awaited_tid(record: RecordRef) -> Tid {
    let mut spinner = Spinner::default();
    loop {
        match stable_tid(record) {
            Ok(tid) => return tid,
            Err(_) => spinner.spin(),
        }
    }
}
