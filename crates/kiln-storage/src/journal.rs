//! The journal: listeners hear of each commit what it wrote.
//!
//! A protocol reports each commit that wrote something once, to the [`Listener`] of the worker that
//! commits it. It does so inside the worker's window of a [log epoch](crate::log_epoch): nothing
//! can refuse the commit any more, the worker holds all records that it writes, and no other
//! transaction sees the writes yet. Protocols know this trait, and not its implementations.
//!
//! # The report
//!
//! A [`Commit`] has the log epoch, the version that all its records get, and its *net effect* as
//! [`Change`]s:
//!
//! - A record is named once, however often the transaction wrote to it: with the columns that it
//!   wrote and their final values. A row that it inserted and deleted again is left out; one that
//!   it deleted and inserted again is an update of all columns.
//! - A record whose key in the table's first index changes is two changes: the deletion of the old
//!   key, and the insertion of the whole row under the new one. So a key is deleted at most once
//!   and written at most once.
//! - Deletions come first. So rows may swap keys: a reader of the log applies the changes in their
//!   order.
//!
//! # The order of reports
//!
//! The changes of a key, in the order of (log epoch, version), are in the order of the transactions
//! that made them:
//!
//! - Log epochs follow the order of conflicting transactions ([`crate::log_epoch`]), so only
//!   versions in the same epoch are in question.
//! - The versions of a record only grow ([`crate::record`]).
//! - A key may go with one record and come back with another one, whose cell counts on its own.
//!   Protocols whose versions do not follow the order of transactions by themselves therefore take
//!   the version of a transaction that adds a key above [`Deletions::bound`] of its table. The
//!   transaction that deleted the key raised that in its window, before the key's entry went; the
//!   one that adds it reads that after its own entry came. Versions that are timestamps have the
//!   property: one that finds a gap where an entry went gets a later timestamp.
//! - The engine closes the log epoch where another protocol comes into force, whose versions may be
//!   smaller.
//!
//! # Commands
//!
//! A log may keep the calls of procedures, to be made again, in place of what they wrote (*command
//! logging*; healing App. C compares the two). That takes an order of all transactions that
//! conflict, also of one that has read what another one overwrites: so it is for protocols that
//! hold whatever they have read and written until they have committed. Each commit draws a number
//! from [`CommandOrder`] in its window, and [`Commit::order`] is that number; then (log epoch,
//! order) is an order in which the same calls reach the same tables.
//!
//! # Answers
//!
//! A call may have a key under which its answer is given again when the call is repeated. The
//! answer of one that wrote something is part of the report: a listener keeps it with the commit.
//! One that wrote nothing is not reported, and its answer is [noted](Listeners::note).
//!
//! # What is not reported
//!
//! Changes of the catalog, TRUNCATE among them, and rows that have lain in the tables since before
//! the listener came are not commits. They happen while no transaction runs, so that a listener can
//! take the state of the tables at the end of a log epoch instead. The bulk loader's batches are
//! transactions and are reported as such.

use std::ptr::{self, NonNull};
use std::slice;

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::sync::Arc;

use crate::log_epoch::{LogEpoch, LogEpochs};
use crate::record::RecordRef;
use crate::schema::{ColumnId, ColumnSet, KEY_COLUMNS_MAX};
use crate::slot::{Heap, Slot};
use crate::table::{EntryKey, Table};

/// Hears what one worker commits.
pub trait Listener: Send {
    /// The worker is about to install this commit. Every transaction that waits for one of the
    /// commit's records, or for the log epoch, waits for this call: it copies what it wants to
    /// keep, and neither waits nor fails.
    fn committed(&mut self, commit: &Commit<'_>);
}

/// Makes the listeners of a database: one for each worker.
pub trait Listeners: Send + Sync {
    /// The listener of the worker with this number. If an earlier worker had the same number, its
    /// listener is dropped by then.
    fn listener(&self, worker: usize) -> Box<dyn Listener>;

    /// Keeps the answer of a call that has ended and wrote nothing, as if a commit of its own had
    /// it. Returns the log epoch that holds the answer, which was not closed before the answer was
    /// there, or `None` when the answer is not kept. The caller has no window open, and may be any
    /// thread.
    fn note(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch>;

    /// Keeps an answer once more that a checkpoint is to make independent of what was kept before.
    /// All answers that are kept so come in the order in which their calls have ended, and these
    /// have ended before those that are kept in another way meanwhile.
    fn note_again(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        self.note(answer)
    }
}

/// What a transaction did, as its worker's [`Listener`] hears it.
pub struct Commit<'a> {
    /// The log epoch.
    pub epoch: LogEpoch,
    /// The version that the written records get: greater than those that they had.
    pub version: u64,
    /// Where it is among the commits of its log epoch, by which the changes of a key are ordered:
    /// the version, or with [commands](CommandOrder) its number.
    pub order: u64,
    /// The net effect, deletions first; see the module's documentation. At least one.
    pub changes: &'a [Change],
    /// How the call is answered that this is the commit of, if it has a key.
    pub answer: Option<CallAnswer<'a>>,
    /// The call that this is the commit of, in a form that listeners need not know: there when it
    /// may be kept in place of the changes.
    pub command: Option<&'a [u8]>,
}

/// How a call is answered when it is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallAnswer<'a> {
    /// The call's key.
    pub key: &'a [u8],
    /// What it is answered, in a form that listeners need not know.
    pub bytes: &'a [u8],
}

/// What happened to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// There is a row where there was none: all columns.
    Insert,
    /// Some columns have other values.
    Update,
    /// There is none any more.
    Delete,
}

/// A change of one row, while it is reported.
pub struct Change {
    table: *const Table,
    record: RecordRef,
    kind: ChangeKind,
    columns: ColumnSet,
    former: u64,
    /// New values that are not in the row yet: of these columns, in as many words as a row has.
    imaged: ColumnSet,
    image: *const AtomicU64,
    /// The key, where it cannot be told from the values.
    key: Option<NonNull<EntryKey>>,
    is_moved_away: bool,
}

impl Change {
    /// A change of `record`, whose version is `former`, by which `columns` get the values that are
    /// in its row.
    ///
    /// # Safety
    /// Until the change is dropped the table and the record live, and the record's row is stable:
    /// the caller holds the record exclusively.
    #[inline(always)]
    pub unsafe fn new(
        table: &Table,
        record: RecordRef,
        kind: ChangeKind,
        columns: ColumnSet,
        former: u64,
    ) -> Change {
        Change {
            table,
            record,
            kind,
            columns,
            former,
            imaged: ColumnSet::EMPTY,
            image: ptr::null(),
            key: None,
            is_moved_away: false,
        }
    }

    /// With values of `columns` that are in `image` and not in the row.
    ///
    /// # Safety
    /// The image lives and is stable until the change is dropped, and was made for the table's
    /// layout. It holds all columns that an update wrote.
    #[inline(always)]
    #[must_use]
    pub unsafe fn imaged(mut self, columns: ColumnSet, image: &[AtomicU64]) -> Change {
        debug_assert_eq!(image.len(), self.table().layout().words());
        debug_assert!(self.kind == ChangeKind::Insert || columns == self.columns);
        (self.imaged, self.image) = (columns, image.as_ptr());
        self
    }

    /// With a key that the row does not have, or not any more.
    ///
    /// # Safety
    /// The key lives until the change is dropped.
    #[inline]
    #[must_use]
    pub unsafe fn keyed(mut self, key: &EntryKey) -> Change {
        self.key = Some(NonNull::from(key));
        self
    }

    /// An update by which the row gets another key, as the deletion of the former one, which is
    /// still to be [named](Change::keyed), and the insertion under the new one.
    #[must_use]
    pub fn split(self) -> (Change, Change) {
        let leaving = Change {
            kind: ChangeKind::Delete,
            columns: ColumnSet::EMPTY,
            imaged: ColumnSet::EMPTY,
            image: ptr::null(),
            key: None,
            is_moved_away: true,
            ..self
        };
        let arriving = Change {
            kind: ChangeKind::Insert,
            columns: self.table().layout().all(),
            ..self
        };
        (leaving, arriving)
    }

    /// The row's table.
    #[inline(always)]
    pub fn table(&self) -> &Table {
        // SAFETY: the caller of `new` keeps the table alive until the change is dropped.
        unsafe { &*self.table }
    }

    /// The row's record.
    #[inline(always)]
    pub fn record(&self) -> RecordRef {
        self.record
    }

    /// What happened to the row.
    #[inline(always)]
    pub fn kind(&self) -> ChangeKind {
        self.kind
    }

    /// The columns that were written: all of an insertion, none of a deletion.
    #[inline(always)]
    pub fn columns(&self) -> ColumnSet {
        self.columns
    }

    /// The version that the record had.
    #[inline]
    pub fn former(&self) -> u64 {
        self.former
    }

    /// Whether this is the deletion of the key of a record that goes on under another one.
    #[inline]
    pub fn is_moved_away(&self) -> bool {
        self.is_moved_away
    }

    /// The row's key in the table's first index, which its insertion, its changes and its deletion
    /// have in common: the primary key, or the hidden row number. `heap` is only used for the time
    /// of the call.
    #[inline]
    pub fn key(&self, heap: &mut Heap) -> EntryKey {
        if let Some(key) = self.former_key() {
            return key.clone();
        }
        let index = &self.table().indexes()[0];
        let mark = heap.mark();
        let mut values = [Slot::NULL; KEY_COLUMNS_MAX];
        for (slot, field) in values.iter_mut().zip(index.key_layout().fields()) {
            *slot = match field.column {
                Some(column) => self.value(column, heap),
                None => Slot::from_i64(self.row_number().unwrap_or_default()),
            };
        }
        let key = index.entry_key(heap, |position, _| values[position]);
        heap.release(mark);
        key.expect("the row has an entry in the index, or had one")
    }

    /// The number of a row whose table has no primary key.
    #[inline]
    pub fn row_number(&self) -> Option<i64> {
        let access = self.table().layout().row_number()?;
        Some(access.load_integer(self.table().row(self.record)))
    }

    /// The key that the row does not have, or not any more.
    #[inline(always)]
    pub(crate) fn former_key(&self) -> Option<&EntryKey> {
        // SAFETY: the caller of `keyed` keeps the key alive until the change is dropped.
        self.key.map(|key| unsafe { key.as_ref() })
    }

    /// Whether there are new values that are not in the row yet.
    #[inline(always)]
    pub(crate) fn is_imaged(&self) -> bool {
        !self.image.is_null()
    }

    /// New values that are not in the row yet: of which columns, and the words in which they lie.
    #[inline(always)]
    pub(crate) fn image(&self) -> (ColumnSet, &[AtomicU64]) {
        if !self.is_imaged() {
            return (ColumnSet::EMPTY, &[]);
        }
        let words = self.table().layout().words();
        // SAFETY: the caller of `imaged` keeps the image alive and stable until the change is
        // dropped, and it has as many words as a row of this table's layout.
        (self.imaged, unsafe {
            slice::from_raw_parts(self.image, words)
        })
    }

    /// The words in which the new value of a column lies, for
    /// [`ColumnAccess`](crate::layout::ColumnAccess).
    #[inline(always)]
    pub fn words(&self, column: ColumnId) -> &[AtomicU64] {
        match self.image() {
            (imaged, image) if imaged.contains(column) => image,
            _ => self.table().row(self.record),
        }
    }

    /// The value of a column after the commit: of one that was written, or of the key.
    #[inline]
    pub fn value(&self, column: ColumnId, heap: &mut Heap) -> Slot {
        self.table().column_value(column, self.words(column), heap)
    }
}

/// The journal of a database: its listeners, and what their order rests on. A cheap handle; clones
/// are the same journal.
#[derive(Clone)]
pub struct Journal {
    epochs: LogEpochs,
    listeners: Arc<dyn Listeners>,
    deletions: Arc<Deletions>,
    commands: Option<Arc<CommandOrder>>,
}

impl Journal {
    /// A journal in these log epochs.
    pub fn new(epochs: LogEpochs, listeners: Arc<dyn Listeners>) -> Journal {
        Journal {
            epochs,
            listeners,
            deletions: Arc::new(Deletions::new()),
            commands: None,
        }
    }

    /// With commands: its listeners are told which calls the commits are of.
    #[must_use]
    pub fn with_commands(mut self) -> Journal {
        self.commands = Some(Arc::default());
        self
    }

    /// The order of its commits, if its listeners are told of calls.
    #[inline]
    pub fn commands(&self) -> Option<&Arc<CommandOrder>> {
        self.commands.as_ref()
    }

    /// The log epochs of its commits.
    pub fn epochs(&self) -> &LogEpochs {
        &self.epochs
    }

    /// The listeners that hear the commits.
    pub fn listeners(&self) -> &Arc<dyn Listeners> {
        &self.listeners
    }

    /// What was deleted while it was in force.
    pub fn deletions(&self) -> &Deletions {
        &self.deletions
    }

    /// Whether the two are the same journal.
    pub fn is(&self, other: &Journal) -> bool {
        Arc::ptr_eq(&self.deletions, &other.deletions)
    }
}

/// The order of commits that are made again from their calls; see the [module](self).
#[derive(Default)]
#[repr(align(128))]
pub struct CommandOrder {
    next: AtomicU64,
    is_paused: AtomicBool,
}

impl CommandOrder {
    /// The number of a commit, whose transaction is in its window and holds all that it has read
    /// and written.
    #[inline]
    pub fn draw(&self) -> u64 {
        // Relaxed: of two transactions that conflict the second draws after it has what the first
        // one held, and the numbers of one counter are in the order in which they were drawn.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether only changes are wanted at present.
    #[inline]
    pub fn is_paused(&self) -> bool {
        // Relaxed: the gate is shut when it changes.
        self.is_paused.load(Ordering::Relaxed)
    }

    /// Has commits reported without their calls, as while rows are read that are not of one moment,
    /// or with them again. No transaction runs.
    pub fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
    }
}

/// By stripes of tables, a bound of the versions of all transactions that deleted keys.
pub struct Deletions {
    stripes: Box<[Stripe]>,
}

/// A cache line of its own, so that a worker that reads it does not wait for one that deletes from
/// another table.
#[derive(Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

impl Deletions {
    /// Tables that share a stripe only get greater versions than they need.
    const STRIPES: usize = 64;

    /// Bounds are one below a multiple of this, so that few deletions have to raise one.
    const STEP: u64 = 64;

    fn new() -> Deletions {
        Deletions {
            stripes: (0..Self::STRIPES).map(|_| Stripe::default()).collect(),
        }
    }

    #[inline]
    fn stripe(&self, table: &Table) -> &AtomicU64 {
        &self.stripes[table.id().0 as usize % Self::STRIPES].0
    }

    /// Notes that a transaction with this version deletes a key of the table. Called before the
    /// key's entry goes.
    #[inline]
    pub fn raise(&self, table: &Table, version: u64) {
        let (stripe, bound) = (self.stripe(table), version | (Self::STEP - 1));
        if stripe.load(Ordering::Relaxed) < bound {
            // Release pairs with the acquire in `bound`, although the index orders the two already:
            // the entry goes after this, and comes before that.
            stripe.fetch_max(bound, Ordering::Release);
        }
    }

    /// The version above which a transaction has to stay that has added an entry for a key of the
    /// table.
    #[inline]
    pub fn bound(&self, table: &Table) -> u64 {
        self.stripe(table).load(Ordering::Acquire)
    }
}
