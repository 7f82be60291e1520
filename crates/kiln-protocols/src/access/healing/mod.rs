//! Transaction healing: an attempt that read what has changed since is repaired at its commit, and
//! not repeated.
//!
//! Source: Wu, Chan and Tan, *Transaction Healing: Scaling Optimistic Concurrency Control on
//! Multicores*, SIGMOD 2016 (THEDB), §3–4.
//!
//! # The idea
//!
//! An attempt runs without locks ([`optimistic`](crate::shared::optimistic)) and keeps what it did
//! in an *access cache*: for each look-up the operation, its key and what it led to; for each
//! record the tid and copies of the columns that were read. At its end it locks what it wrote, in
//! one order, and compares what it read. A record with another tid whose copied columns are as they
//! were does no harm. Where they differ the attempt is *restored*, holding the locks it has by
//! then: the program runs again over the cache. A look-up with the key that it had asks no index, a
//! record that is as it was is not touched; what changed is read anew, what follows from it is
//! computed anew, a look-up whose key changed asks the index, and conditions decide again. Then the
//! commit goes on where it was.
//!
//! # Phases
//!
//! An attempt that no other one has disturbed commits as under Silo, and a procedure whose attempts
//! are hardly ever disturbed keeps nothing for a restoration (`undisturbed.rs`). For the rest:
//!
//! 1. **Read** (`copies.rs`, `cache.rs`), as above. Rows that the procedure inserts and does not
//!    look for stay out of the indexes (`late.rs`): under a stale key they would stand in the way
//!    of others.
//! 2. **Lock and validate** (`validate.rs`): the records of the write set are locked in the
//!    validation order, and each is compared as soon as it is locked; then those that were only
//!    read are compared, and one whose value differs again and again is locked as well. A lock
//!    above all that are held is waited for. One below, of a record that came in by a restoration,
//!    is tried a bounded number of times; then what lies above it is let go of, to be locked and
//!    compared once more, and the lock is waited for too.
//! 3. **Restore** (`restore.rs`) when a value differs, and back to 2, which passes what is locked.
//! 4. The nodes of gaps are compared; a change is restored as well. The rows of phase 1 are put
//!    into the indexes, the tids of the write set get their lock bits, and all that is not locked
//!    is compared once more: where another tid turns up, phase 2 finds out whether it matters.
//! 5. **Write**, and all locks are released.
//!
//! When the procedure raises, what it read is validated first, and restored where that fails: the
//! error is reported only if the program raises it on what is there.
//!
//! Closures and statements that come one by one have no program to run again: their attempts abort
//! where others are restored. So do calls that are treated as if their program had not been
//! analysed ([`HealingFactors::ad_hoc_percent`]; §4.8).
//!
//! With `+cu` (STO §6.1) updates whose old values no other operation looks at run in phase 5 on
//! what is there then: nothing of the record was read, so that there is nothing to restore.
//!
//! # Lock order
//!
//! Tables as they were created, and in a table by address: what references a table is younger than
//! it, so that a look-up whose key was read from another record mostly comes later in the order
//! (§4.5). The lock is the bit of `aux` of [`record_lock`](crate::shared::optimistic::record_lock).
//!
//! # Invariants
//!
//! - The tid of a record changes only while its lock in `aux` is held, but for the burying of a new
//!   record: one without a row is compared once more at the end, though it be locked.
//! - An attempt waits only for locks above all that it holds, and for none while others can find
//!   its new rows, which come locked.
//! - When all is locked, what was validated is as the present run of the program saw it.
//! - What the entries of a record that the attempt moves were made from is the version that its
//!   item names: that one does not advance any more.
//! - A copy is of the version that its item names.
//!
//! # Anomalies excluded
//!
//! Serializable, in real time: at the moment before the last comparison, which finds each tid that
//! is not locked as it was, all that the last run of the program read is as it was read. Of two
//! attempts that each read without a lock what the other writes, one sees the other's locked tid.
//! Phantoms are excluded by the node set.

mod access;
mod cache;
mod copies;
mod dependents;
mod late;
mod locks;
pub(crate) mod registration;
mod restore;
mod undisturbed;
mod validate;

use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_procedure::ir::{Intent, OpId};
use kiln_procedure::{AbortCause, Program};
use kiln_storage::epoch::Participant;
use kiln_storage::index::NodeVersion;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::table::Table;

use crate::factors::{HealingFactors, Use};
use crate::shared::optimistic::{Commit, Item, Optimistic, stable_tid};
use crate::shared::record_map::RecordMap;
use cache::Cache;
use copies::{Copied, Copies};
use dependents::Part;
use late::Late;
use locks::Locks;
pub use locks::WaitingArray;
use restore::Counters;

/// How often an attempt waits for the tid of a record that another one installs, each time for as
/// long as others wait at all: an attempt that has all its locks installs many records one after
/// the other. It waits for no other attempt, so that others may wait for it with locks in hand.
const INSTALLS_AWAITED: u32 = 64;

/// The tid of a record once no attempt is installing it.
///
/// # Errors
/// [`AbortCause::ReadLock`] when that takes very long.
#[inline(always)]
fn installed_tid(record: RecordRef) -> Result<Tid, AbortCause> {
    match stable_tid(record) {
        Err(_) => await_install(record),
        tid => tid,
    }
}

#[cold]
fn await_install(record: RecordRef) -> Result<Tid, AbortCause> {
    for _ in 1..INSTALLS_AWAITED {
        // The installing worker may be without a core.
        thread::yield_now();
        if let Ok(tid) = stable_tid(record) {
            return Ok(tid);
        }
    }
    Err(AbortCause::ReadLock)
}

/// How healing uses the sets that optimistic protocols have in common.
pub struct HealingSets {
    /// The table of the record that is met next.
    table: *const Table,
    /// The look-up or scan under way.
    under_way: Option<OpId>,
    /// What the attempt has locked.
    locks: Locks,
}

impl Commit for HealingSets {
    type Note = Copied;

    #[inline(always)]
    fn observe(&mut self, record: RecordRef, _: Intent) -> Result<(Tid, Copied), AbortCause> {
        let copied = Copied::whole(self.table, self.under_way);
        Ok((installed_tid(record)?, copied))
    }

    #[inline(always)]
    fn observe_whole(copied: &mut Copied) {
        copied.rely_on_version();
    }

    #[inline(always)]
    fn adopt(&mut self, _: RecordRef) -> Copied {
        Copied::whole(self.table, None)
    }

    #[inline(always)]
    fn installed(&mut self, record: RecordRef) {
        self.locks.release(record);
    }

    fn commit(_: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        unreachable!("an attempt that heals commits by itself")
    }

    fn confirm(attempt: &mut Optimistic<Self>) -> Result<(), AbortCause> {
        attempt.is_unchanged()
    }

    #[inline(always)]
    fn end(&mut self) {
        self.locks.release_all();
    }
}

/// The access of one worker; see the module's documentation.
pub struct Healing {
    sets: Optimistic<HealingSets>,
    factors: HealingFactors,
    /// Whether the present attempt runs a program that may be run again.
    heals: bool,
    /// Whether it may be committed as it is, and keeps nothing for a restoration.
    is_calm: bool,
    /// Whether it keeps copies of the columns that it reads.
    copies_reads: bool,
    /// The look-up or scan that began last.
    last: Option<OpId>,
    /// Whether the present call is treated as if its program had not been analysed, and what is
    /// left of percents.
    is_ad_hoc: bool,
    ad_hoc_rest: u8,
    /// How often the program of this attempt was run again.
    round: u32,
    /// Whether this run has read something anew already.
    has_restored: bool,
    /// Whether the last run of the program, or of a part of it, came to its end.
    is_complete: bool,
    /// The position of the item whose record has changed, if that is why the commit failed.
    failed: Option<u32>,
    /// A part of the program that runs again.
    part: Part,
    /// Whether records that are only read are locked as well.
    locks_reads: bool,
    /// Whether the commit has found what a restoration can mend.
    asks: bool,
    /// Whether what the attempt read is known to be final.
    is_confirmed: bool,
    cache: Cache,
    /// The items of the run before this one, and the last one of each record.
    known: Vec<Item<Copied>>,
    known_by_record: RecordMap,
    copies: Copies,
    /// The items whose records are locked, in the validation order, with their ranks in it.
    order: Vec<(u64, u32)>,
    /// Where in it the first item is that was not found valid yet, when the lock phase was left
    /// there.
    left_at: Option<usize>,
    /// The other items, and those of records that have no row: a lock does not keep these from
    /// being buried.
    reads: Vec<u32>,
    /// The greatest rank in the validation order that the attempt has locked.
    highest: u64,
    /// Whether others can find new rows of the attempt: who waits for one of these may hold
    /// anything.
    has_linked: bool,
    /// The records that are locked or will be.
    met: RecordMap,
    /// The operation because of whose record the commit failed, if that is known.
    blames: Option<OpId>,
    late: Late,
    counters: Counters,
}

// SAFETY: only the thread that runs the access follows the table pointers inside, while the tables
// are kept.
unsafe impl Send for Healing {}

impl Healing {
    /// An access for the worker that `participant` stands for. With `defers`, updates
    /// are deferred to the commit where the program says that they can be.
    pub fn new(participant: Participant, factors: HealingFactors, defers: bool) -> Healing {
        let sets = HealingSets {
            table: std::ptr::null(),
            under_way: None,
            locks: Locks::default(),
        };
        let mut sets = Optimistic::with(participant, sets);
        sets.defers = defers;
        Healing {
            sets,
            factors,
            heals: false,
            is_calm: false,
            copies_reads: false,
            last: None,
            is_ad_hoc: false,
            ad_hoc_rest: 0,
            round: 0,
            has_restored: false,
            is_complete: false,
            failed: None,
            part: Part::default(),
            locks_reads: false,
            asks: false,
            is_confirmed: false,
            cache: Cache::default(),
            known: Vec::new(),
            known_by_record: RecordMap::default(),
            copies: Copies::default(),
            order: Vec::new(),
            left_at: None,
            reads: Vec::new(),
            highest: 0,
            has_linked: false,
            met: RecordMap::default(),
            blames: None,
            late: Late::default(),
            counters: Counters::default(),
        }
    }

    /// Whether restorations can have copies.
    fn keeps_copies(&self) -> bool {
        self.heals && self.factors.read_copies == Use::On
    }

    /// Has those that wait for its locks, and those that it waits for, wait in this room.
    pub fn sharing(mut self, waiting_array: Arc<WaitingArray>) -> Healing {
        self.sets.protocol.locks = Locks::sharing(waiting_array);
        self
    }

    /// The next calls of a procedure keep what a restoration needs, as if the last one had been
    /// disturbed: for tests.
    #[doc(hidden)]
    pub fn expect_disturbance(&mut self, program: &Program) {
        self.counters.runs(program);
        self.counters.calm().is_disturbed();
    }

    /// No operation is under way, and none was the last.
    #[inline(always)]
    fn rest(&mut self) {
        self.cache.end();
        self.sets.protocol.under_way = None;
        self.last = None;
    }

    /// Relies on a gap.
    #[inline]
    fn rely_on_node(&mut self, node: NodeVersion) -> Result<(), AbortCause> {
        self.cache.missed(node);
        match self.sets.nodes.guard(node) {
            // It will be found at the commit: of two versions of a node one is not the present one.
            Err(_) if self.heals => Ok(()),
            guarded => guarded,
        }
    }

    /// Commits, and forgets the attempt.
    ///
    /// # Errors
    /// An [`AbortCause`], also when an update deferred to the commit raises:
    /// [`take_raised`](Optimistic::take_raised) has its error then.
    fn commit_and_forget(&mut self) -> Result<(), AbortCause> {
        point("healing.executed");
        self.rest();
        let is_resumed = self.is_resumed();
        if !self.commit_undisturbed()? {
            self.lock_and_write(is_resumed)?;
        }
        self.forget();
        Ok(())
    }

    /// Forgets the attempt, whose sets are forgotten too.
    fn forget(&mut self) {
        self.rest();
        self.cache.clear();
        self.known.clear();
        self.known_by_record.clear();
        self.copies.clear();
        self.has_linked = false;
    }
}
