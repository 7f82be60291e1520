//! What a protocol offers to the executor: how one attempt of a transaction touches records.
//!
//! The executor finds records in the indexes by itself and tells the access about every record
//! it meets ([`Access::visit`]) and about every gap that it relied on ([`Access::guard`]). The
//! access decides what that means: nothing (`serial`), an entry in a read set (optimistic
//! protocols), a lock (pessimistic ones).
//!
//! One attempt: `begin`, any of the middle methods, then `commit` or `roll_back`. After a method
//! returned [`Stop::Abort`] the executor calls `roll_back`; it does so too when the procedure
//! raised, after [`Access::confirm`] said that what it had read was consistent.

use kiln_history::{Log, Version};
use kiln_platform::atomic::Ordering;
use kiln_storage::error::Error;
use kiln_storage::index::{LeafBatch, NodeVersion};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, IndexScan, RangeValues, Table};

use crate::analysis::Observed;
use crate::arguments::Arguments;
use crate::code::PREFETCH_TURNS_MAX;
use crate::ir::{Intent, OpId, Reg};
use crate::optimise::ORDINALS_MAX;
use crate::program::Program;
use crate::restoration::Restoration;
use crate::updater::Updater;

/// Why an attempt failed and must be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AbortCause {
    /// A record that was read has changed since.
    ReadValidation,
    /// A record was inserted into a range that was read.
    Phantom,
    /// A record to be read was locked by a writer.
    ReadLock,
    /// A record to be written was locked by another transaction.
    WriteLock,
    /// Another transaction inserts, deletes or moves a record with the same key.
    KeyInTransit,
    /// The transactions that it would wait for wait for it.
    Deadlock,
    /// A lock was held by an older transaction, and the younger one does not wait.
    Died,
    /// A lock was not to be had in the time that the call, or any wait, may take.
    LockTimeout,
    /// The attempt met a record that was not in its plan, and could not have it.
    FootprintMiss,
    /// The attempt waited for a lock in a turn that other workers wanted, with more workers than
    /// cores.
    GaveWay,
}

impl AbortCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [AbortCause; 10] = [
        AbortCause::ReadValidation,
        AbortCause::Phantom,
        AbortCause::ReadLock,
        AbortCause::WriteLock,
        AbortCause::KeyInTransit,
        AbortCause::Deadlock,
        AbortCause::Died,
        AbortCause::LockTimeout,
        AbortCause::FootprintMiss,
        AbortCause::GaveWay,
    ];

    /// Its number: its position in [`AbortCause::ALL`].
    #[inline]
    pub fn number(self) -> usize {
        let position = AbortCause::ALL.iter().position(|known| *known == self);
        position.expect("every cause is listed")
    }

    /// A short name for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            AbortCause::ReadValidation => "read_validation",
            AbortCause::Phantom => "phantom",
            AbortCause::ReadLock => "read_lock",
            AbortCause::WriteLock => "write_lock",
            AbortCause::KeyInTransit => "key_in_transit",
            AbortCause::Deadlock => "deadlock",
            AbortCause::Died => "died",
            AbortCause::LockTimeout => "lock_timeout",
            AbortCause::FootprintMiss => "footprint_miss",
            AbortCause::GaveWay => "gave_way",
        }
    }
}

/// Why an attempt stopped before its end.
#[derive(Debug)]
pub enum Stop {
    /// It must be repeated.
    Abort(AbortCause),
    /// The procedure raised an error; repeating it would raise it again.
    Raise(Error),
}

impl From<AbortCause> for Stop {
    #[inline(always)]
    fn from(cause: AbortCause) -> Stop {
        Stop::Abort(cause)
    }
}

impl From<Error> for Stop {
    #[inline(always)]
    fn from(error: Error) -> Stop {
        Stop::Raise(error)
    }
}

/// A record as an attempt knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The record.
    pub record: RecordRef,
    /// The access's own note about it, such as its position in the read set.
    pub note: u32,
}

/// What an access found when it met a record.
#[derive(Clone, Copy, Debug)]
pub enum Visit {
    /// There is a row.
    Present(Handle),
    /// There is none, and the access guards that.
    Absent,
    /// The record is leaving the indexes: look the key up again.
    Dead,
}

/// What an insert did.
#[derive(Clone, Copy, Debug)]
pub enum Inserted {
    /// The new record.
    New(Handle),
    /// Nothing: a row with the same key stands in the way.
    Exists {
        /// The unique index that has the key; its position in the table.
        index: usize,
        /// The row.
        handle: Handle,
    },
}

/// A look-up, as the access hears of it before an index is asked.
#[derive(Clone, Copy)]
pub struct Sought<'a> {
    /// The operation.
    pub op: OpId,
    /// The table.
    pub table: &'a Table,
    /// The position of the index.
    pub index: usize,
    /// The registers with the values of the index's columns.
    pub key: &'a [Reg],
    /// What will be done with the record.
    pub intent: Intent,
    /// As in [`Access::visit_for`].
    pub observed: &'a Observed,
    /// The place among all look-ups that arguments decide, if it is one.
    pub place: Option<Place>,
    /// Whether it is made again in a restoration only for the handle: what it led to in the run
    /// before it leads to now, and nothing of that is looked at.
    pub is_known: bool,
}

/// How an attempt that has stopped goes on.
#[derive(Clone, Copy, Debug)]
pub enum GoesOn<'p> {
    /// It does not.
    No,
    /// The program runs again from its beginning.
    Again,
    /// A part of it runs again, over the frame as the last run has left it, which came to its end.
    Restored(&'p Restoration),
}

/// Which of the look-ups it is that nothing but a call's arguments decides: the same place has the
/// same key in the procedure and in its reconnaissance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u16);

impl Place {
    /// In a turn, from 0, of the loop around the look-up with this ordinal
    /// ([`PrefetchLookup::ordinal`](crate::ir::PrefetchLookup)); `None` where what is met is not
    /// kept.
    #[inline(always)]
    pub(crate) fn of(ordinal: u16, turn: usize) -> Option<Place> {
        (turn < Place::TURNS).then_some(Place(ordinal << Place::TURN_BITS | turn as u16))
    }

    /// The place with this number.
    #[inline(always)]
    pub fn of_number(number: u16) -> Place {
        Place(number)
    }

    /// Its number: below [`Place::MAX`].
    #[inline(always)]
    pub fn number(self) -> usize {
        self.0 as usize
    }

    /// The look-up.
    #[inline(always)]
    pub fn ordinal(self) -> usize {
        usize::from(self.0 >> Place::TURN_BITS)
    }

    /// The turn.
    #[inline(always)]
    pub fn turn(self) -> usize {
        usize::from(self.0) & (Place::STRIDE - 1)
    }

    /// The number of turns of which the records met are kept.
    pub const TURNS: usize = PREFETCH_TURNS_MAX;
    const TURN_BITS: u32 = 5;
    /// The distance of two ordinals in numbers.
    pub const STRIDE: usize = 1 << Place::TURN_BITS;
    /// Places have smaller numbers.
    pub const MAX: usize = ORDINALS_MAX as usize * Place::STRIDE;
}

const _: () = assert!(Place::TURNS <= Place::STRIDE);

/// A scan, as the access hears of it before the index is asked.
#[derive(Clone, Copy)]
pub struct SoughtScan<'a> {
    /// The table.
    pub table: &'a Table,
    /// The position of the index.
    pub index: usize,
    /// The range.
    pub range: RangeValues<'a>,
    /// Whether it goes from the range's end to its begin.
    pub reverse: bool,
}

/// What an access does about a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptScan {
    /// Nothing.
    No,
    /// It keeps the leaves that the scan reads, and gave it this number.
    Noted(u16),
    /// It knows the first leaves, or all of them, and has guarded them.
    Known {
        /// The scan's number.
        scan: u16,
        /// The next leaf's number.
        leaf: u16,
    },
}

/// What an access knows of a look-up without asking the index.
#[derive(Clone, Copy, Debug)]
pub enum Recalled {
    /// There is a row, which the access has met.
    Found(Handle),
    /// There is a record without a row, and the access guards that.
    Absent(RecordRef),
    /// There is no record, and the access guards that.
    Missing,
}

/// How one attempt of a transaction touches records; see the module's documentation.
pub trait Access {
    /// Whether the thread that runs an attempt may change between two operations; see
    /// [`Access::leaves`].
    const TRAVELS: bool = false;

    /// Asked after a method has returned an [`AbortCause`], where attempts travel: whether it did
    /// so because the operation belongs to another thread. Then the attempt is not over: the
    /// executor leaves off before the operation, which is begun anew by
    /// [`Executor::resume`](crate::Executor::resume).
    #[inline(always)]
    fn leaves(&mut self) -> bool {
        false
    }

    /// Hears that an operation is done, or a record that a scan has come to met, where attempts
    /// travel.
    #[inline(always)]
    fn has_done(&mut self) {}

    /// Hears, before an attempt starts, how many of the same transaction have failed.
    #[inline(always)]
    fn prepare(&mut self, _failures: u32) {}

    /// A new transaction begins, a call or one of several statements, whose attempts follow: those
    /// that repeat one that failed included. It ends at `deadline_ns`, of
    /// `kiln_platform::time::now_ns`, if at all.
    #[inline(always)]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        let _ = deadline_ns;
    }

    /// The transaction that [`Access::begin_call`] announced is over: committed, rejected, expired,
    /// given up, or abandoned by its client. What its attempts left for later attempts is forgotten
    /// here, records' addresses above all: the tables that these belong to may go next.
    #[inline(always)]
    fn end_call(&mut self) {}

    /// Starts an attempt.
    fn begin(&mut self);

    /// Starts an attempt that writes nothing, whatever its arguments.
    #[inline]
    fn begin_read_only(&mut self) {
        self.begin();
    }

    /// Hears, after an attempt has begun, what it will run: an access that decides beforehand takes
    /// its locks here.
    ///
    /// # Errors
    /// An [`AbortCause`] when they are not to be had; `roll_back` follows.
    #[inline(always)]
    fn plan(&mut self, _program: &Program, _arguments: &Arguments) -> Result<(), AbortCause> {
        Ok(())
    }

    /// Hears, after an attempt has begun, that its statements will come one by one: an access that
    /// decides beforehand takes here what the last attempt of the same transaction had.
    #[inline(always)]
    fn plan_statements(&mut self) {}

    /// Hears that the attempt has stopped, and says whether it goes on all the same: then the
    /// program is run again, or a part of it, as a part of the same attempt, over what the access
    /// has kept of the last run ([`Access::recall`]). What the last run has raised or emitted never
    /// was. Asked of attempts that run one program, after [`Access::plan`].
    #[inline(always)]
    fn goes_on<'p>(&mut self, _program: &'p Program, _stop: &Stop) -> GoesOn<'p> {
        GoesOn::No
    }

    /// Whether the access knows of most look-ups already ([`Access::recall`]), so that nothing need
    /// be fetched ahead of them.
    #[inline(always)]
    fn recalls(&self) -> bool {
        false
    }

    /// Whether the procedure of which this is a reconnaissance runs right after it: then its
    /// prefetches ask for all that the procedure will touch.
    #[inline(always)]
    fn is_run_soon(&self) -> bool {
        true
    }

    /// Hears of a look-up before an index is asked, and says what is known of it already. Otherwise
    /// the index is asked, and what follows until [`Access::looked_up`] is what comes of it.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    #[inline(always)]
    fn recall(
        &mut self,
        _sought: &Sought<'_>,
        _memory: &Memory,
    ) -> Result<Option<Recalled>, AbortCause> {
        Ok(None)
    }

    /// The look-up that [`Access::recall`] heard of is over.
    #[inline(always)]
    fn looked_up(&mut self) {}

    /// Hears of a scan before the index is asked, and says what it does about it: of one that it
    /// knows [`Access::recall_leaf`] gives the leaves, and [`Access::rest_of_scan`] says where to
    /// go on; of one that it keeps [`Access::has_read`] and [`Access::has_scanned`] hear. Not asked
    /// where attempts travel.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    #[inline(always)]
    fn seek_scan(
        &mut self,
        _sought: &SoughtScan<'_>,
        _memory: &Memory,
    ) -> Result<KeptScan, AbortCause> {
        Ok(KeptScan::No)
    }

    /// The leaf with this number of a known scan, and the next one's number; false when there is no
    /// such leaf.
    #[inline(always)]
    fn recall_leaf(&mut self, _leaf: &mut u16, _batch: &mut LeafBatch) -> bool {
        false
    }

    /// Where a scan goes on behind the leaves that are known; `None` if these were all.
    #[inline(always)]
    fn rest_of_scan(&mut self, _scan: u16) -> Option<IndexScan<'static>> {
        None
    }

    /// A scan that is kept has read a leaf. Says no when it is not kept any more.
    #[inline(always)]
    fn has_read(&mut self, _scan: u16, _batch: &LeafBatch) -> bool {
        false
    }

    /// A scan that is kept is over: at the end of its range, or where `rest` goes on.
    #[inline(always)]
    fn has_scanned(&mut self, _scan: u16, _rest: Option<IndexScan<'_>>) {}

    /// What is met next is met by the scan `op`.
    #[inline(always)]
    fn scans(&mut self, _op: OpId) {}

    /// Hears that a range of an index is about to be looked through whose leading columns have
    /// these values, where attempts travel: the operation may belong to another thread.
    ///
    /// # Errors
    /// When it does ([`Access::leaves`]).
    #[inline(always)]
    fn seeks_range(
        &mut self,
        _table: &Table,
        _index: usize,
        _prefix: &[Slot],
    ) -> Result<(), AbortCause> {
        Ok(())
    }

    /// Hears of a scan before the index is asked: of the index at a position of the table, with
    /// what will be done with the records.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    #[inline(always)]
    fn begins_scan(
        &mut self,
        _table: &Table,
        _index: usize,
        _scan: &IndexScan<'_>,
        _intent: Intent,
    ) -> Result<(), AbortCause> {
        Ok(())
    }

    /// Meets a record found in an index, before anything else is done with it.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
    ) -> Result<Visit, AbortCause>;

    /// Relies on the node having no more entries in the searched range than it had.
    ///
    /// # Errors
    /// An [`AbortCause`] when that is known to be false already.
    fn guard(&mut self, node: NodeVersion) -> Result<(), AbortCause>;

    /// As [`Access::guard`], for a node of the index at this position of the table.
    ///
    /// # Errors
    /// Those of [`Access::guard`].
    #[inline(always)]
    fn guard_in(
        &mut self,
        _table: &Table,
        _index: usize,
        node: NodeVersion,
    ) -> Result<(), AbortCause> {
        self.guard(node)
    }

    /// Reads columns into registers, this attempt's own writes included. All columns of one call
    /// belong to one version.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause>;

    /// Writes columns.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met, 23505 when a unique index refuses.
    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Stop>;

    /// Inserts a row with `values` for all columns.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met; 54000 when a key is too long; 53200 when memory
    /// is short.
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Stop>;

    /// Whether a look-up gives up when what it meets stays dead for long: the transaction that
    /// takes the record out of the index is without a core.
    #[inline(always)]
    fn gives_up(&self) -> bool {
        true
    }

    /// Hears of an insert that would raise 23505, as the row behind `handle` has a unique key of
    /// its row. Whether the access has written the values over that row instead, which only a
    /// baseline that checks nothing does.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    #[inline(always)]
    fn write_over(
        &mut self,
        _table: &Table,
        _values: &[Reg],
        _handle: &Handle,
        _memory: &Memory,
    ) -> Result<bool, Stop> {
        Ok(false)
    }

    /// Deletes a record.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    fn delete(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        memory: &mut Memory,
    ) -> Result<(), Stop>;

    /// Brings a row back that this attempt has deleted through `handle`, with `values` for all
    /// columns and the row number that it had. All handles of the row work on it again. The keys
    /// are the attempt's own still: whatever it has inserted under them since is deleted.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met; 53200 when memory is short.
    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Stop>;

    /// With a flaw on purpose: whether a protected region that has caught an error forgets to take
    /// its last change back.
    #[inline(always)]
    fn forgets_change(&mut self) -> bool {
        false
    }

    /// Whether this attempt has moved entries of any index: then [`Access::resolve`] is asked
    /// about every entry, else only about moving ones.
    fn moves_entries(&self) -> bool;

    /// The record that this attempt finds at an index entry; `None` when it has moved it away.
    ///
    /// # Errors
    /// [`AbortCause::KeyInTransit`] when another attempt is moving a record there.
    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause>;

    /// Makes everything visible at once, or nothing.
    ///
    /// # Errors
    /// An [`AbortCause`]; `roll_back` follows.
    fn commit(&mut self) -> Result<(), AbortCause>;

    /// Whether what was read so far is consistent and final: asked before a raised error is
    /// reported, so that no error comes from a state that never was.
    ///
    /// # Errors
    /// An [`AbortCause`] when it is not; `roll_back` follows either way.
    fn confirm(&mut self) -> Result<(), AbortCause>;

    /// Undoes everything.
    fn roll_back(&mut self);

    /// As [`Access::visit`], for a caller that knows which columns of the record the attempt will
    /// observe through the handle: those whose values it reads, or that are part of the key by
    /// which the record was found and can change. With none it relies only on the row being there.
    ///
    /// # Errors
    /// As [`Access::visit`].
    #[inline(always)]
    fn visit_observing(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        _observed: ColumnSet,
    ) -> Result<Visit, AbortCause> {
        self.visit(table, record, intent)
    }

    /// As [`Access::visit_observing`], for a caller that knows all that the procedure does to the
    /// record through the handle.
    ///
    /// # Errors
    /// As [`Access::visit`].
    #[inline(always)]
    fn visit_for(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, AbortCause> {
        let observed = observed.columns(self.defers());
        self.visit_observing(table, record, intent, observed)
    }

    /// Hears of the key of a look-up before [`Access::visit_ahead`]: `value_of` gives the values of
    /// the index's columns.
    #[inline(always)]
    fn seek_ahead(&mut self, _table: &Table, _index: usize, _value_of: impl Fn(usize) -> Slot) {}

    /// As [`Access::visit_for`], in a reconnaissance that makes the look-ups of a loop ahead: of
    /// the record that the procedure's look-up at this place will find.
    ///
    /// # Errors
    /// As [`Access::visit`].
    #[inline(always)]
    fn visit_ahead(
        &mut self,
        _place: Place,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, AbortCause> {
        self.visit_for(table, record, intent, observed)
    }

    /// Whether this attempt leaves updates to its commit (STO §6.1): then [`Access::defer`] is
    /// called where the program says that an update can be left, and [`Access::update`] otherwise.
    #[inline(always)]
    fn defers(&self) -> bool {
        false
    }

    /// Updates run where they stand in this attempt: it has more statements than those that are
    /// known.
    fn defer_nothing(&mut self) {}

    /// Leaves an update to the commit, where `updater` is run on the record as it is then, with the
    /// operands that are in these registers now. The program, and with it the updater, is kept
    /// until the attempt has ended.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    fn defer(
        &mut self,
        _table: &Table,
        _handle: &mut Handle,
        _updater: &Updater,
        _operands: &[Reg],
        _memory: &mut Memory,
    ) -> Result<(), Stop> {
        unreachable!("asked only of accesses that defer")
    }

    /// The error that stands behind the abort that [`Access::read`] just returned, if one does: an
    /// update left to the commit was run early, and raised.
    fn raised(&mut self) -> Option<Error> {
        None
    }

    /// As [`Access::commit`], which may also find that an update left to the commit raises.
    ///
    /// # Errors
    /// Those of [`Access::commit`], or the error; [`Access::confirm_raise`] and `roll_back` follow.
    #[inline(always)]
    fn commit_or_raise(&mut self) -> Result<(), Stop> {
        Ok(self.commit()?)
    }

    /// As [`Access::confirm`], when the attempt raised `error`. Gives the error to be reported: an
    /// update left to the commit that came before may raise one itself.
    ///
    /// # Errors
    /// Those of [`Access::confirm`].
    #[inline]
    fn confirm_raise(&mut self, error: Error) -> Result<Error, AbortCause> {
        self.confirm().map(|()| error)
    }

    /// Where the attempt's history goes, if it is observed: the executor records there what the
    /// attempt met, read and wrote, and the access what it installed.
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        None
    }

    /// The version that a read through `handle` relies on; for histories.
    fn version_of(&self, handle: &Handle) -> Version {
        Version(Tid(handle.record.tid().load(Ordering::Relaxed)).version())
    }

    /// In a snapshot from before `record` took over its key in the index at `index`: the record
    /// that it had it from; for histories.
    fn former_holder(&self, table: &Table, index: usize, record: RecordRef) -> Option<RecordRef> {
        let _ = (table, index, record);
        None
    }

    /// The timestamp of the snapshot that the attempt reads, if it does; for histories.
    fn snapshot(&self) -> Option<Version> {
        None
    }

    /// The version that the attempt relied on when it last met `record` and found no row there; for
    /// histories.
    fn version_met(&self, record: RecordRef) -> Version {
        Version(Tid(record.tid().load(Ordering::Relaxed)).version())
    }

    /// The version in which a record is dead that the attempt has met so, whatever it relied on
    /// when it met the record before; for histories.
    fn version_dead(&self, record: RecordRef) -> Version {
        self.version_met(record)
    }
}
