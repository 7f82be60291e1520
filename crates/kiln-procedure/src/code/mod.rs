//! The form in which the executor runs a program: flat code.
//!
//! The step tree of [`ir`](crate::ir) says what a procedure means; it is what is verified,
//! optimised, analysed and explained. Running it as it is would cost a call per block, a look at
//! every step's many fields and a way back out of the tree. So [`Code::of`] lowers it once, when
//! the program is finished:
//!
//! - Blocks become jumps: an `Op` has sixteen bytes, and the next one lies behind it.
//! - What belongs together is one op: a comparison and the jump that it decides, a look-up and
//!   the jump when nothing was found.
//! - What does not fit into sixteen bytes (the columns of a read, the key of a look-up) lies in
//!   tables of its own, with the table of the database at hand.
//! - A counting loop keeps its counter and bounds in hidden registers behind the program's own.
//!
//! Bodies of scans and of loops over buffers are run by a call, as their state (a cursor, a walk)
//! is no register's. The op of such a loop is followed by its body, which ends with
//! `Op::EndIteration`. A jump out of such bodies is an `Op::Unwind`, which says how many of them it
//! leaves. A protected region is run in the same way, as an error in it is caught where it began.
//!
//! ```text
//!  FOR i IN 1 .. n LOOP             0  CountFrom  i := 1, or to 4 when there is no iteration
//!    SELECT … WHERE k = keys[i];    1  Element    key := keys[i]
//!                                   2  Lookup     found := …
//!  END LOOP;                        3  CountOn    i := i + 1 and to 1, or on
//!                                   4  Return
//! ```
//!
//! Everything here is private to the executor: positions in the code mean nothing elsewhere.

mod lower;
mod updater;

use kiln_platform::sync::Arc;
use kiln_storage::record::Words;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::Table;

use crate::analysis::Observed;
use crate::ir::*;
pub(crate) use crate::ir::{PREFETCH_ITERATIONS_MAX, PREFETCH_PARTS_MAX};
use crate::outside::OutsideRows;

pub use updater::Updater;

/// A position in the code.
pub(crate) type Label = u32;

/// Which outcomes of a comparison make it true, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepts(u8);

impl Accepts {
    const LESS: u8 = 1;
    const EQUAL: u8 = 2;
    const GREATER: u8 = 4;

    /// What `op` accepts of two values that are not NULL.
    fn of(op: Comparison) -> Accepts {
        Accepts(match op {
            Comparison::Equal | Comparison::NotDistinct => Self::EQUAL,
            Comparison::NotEqual | Comparison::Distinct => Self::LESS | Self::GREATER,
            Comparison::Less => Self::LESS,
            Comparison::LessOrEqual => Self::LESS | Self::EQUAL,
            Comparison::Greater => Self::GREATER,
            Comparison::GreaterOrEqual => Self::GREATER | Self::EQUAL,
        })
    }

    /// Whether the comparison of two integers is true.
    #[inline(always)]
    pub(crate) fn accepts(self, left: i64, right: i64) -> bool {
        // Without a jump that depends on the values: -1, 0, 1 select the bits 0, 1, 2.
        let ordering = (left > right) as i8 - (left < right) as i8;
        self.0 >> (ordering + 1) & 1 != 0
    }
}

/// One step of the code. Where a sentence says nothing about NULL, a NULL operand makes the result
/// NULL, and a NULL condition counts as FALSE.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    // Registers.
    /// `target := source`.
    Move {
        target: Reg,
        source: Reg,
    },
    /// `target := NULL`.
    SetNull {
        target: Reg,
    },
    /// Integers: `target := left + right`, checked against `width`.
    Add {
        width: Width,
        target: Reg,
        left: Reg,
        right: Reg,
    },
    /// Integers: `target := left - right`, checked against `width`.
    Subtract {
        width: Width,
        target: Reg,
        left: Reg,
        right: Reg,
    },
    /// Integers: `target := left * right`, checked against `width`.
    Multiply {
        width: Width,
        target: Reg,
        left: Reg,
        right: Reg,
    },
    /// NUMERIC `left op right`.
    Decimal {
        op: Arithmetic,
        target: Reg,
        left: Reg,
        right: Reg,
    },
    /// `target` says whether the comparison of two integers is true.
    CompareIntegers {
        accepts: Accepts,
        target: Reg,
        left: Reg,
        right: Reg,
    },
    /// `target := source IS NULL`, or IS NOT NULL.
    IsNull {
        target: Reg,
        source: Reg,
        negated: bool,
    },
    /// The integer of `source`, which must fit `width`.
    CheckWidth {
        width: Width,
        target: Reg,
        source: Reg,
    },
    /// An integer as NUMERIC.
    IntegerToDecimal {
        target: Reg,
        source: Reg,
    },
    /// A NUMERIC rounded to `scale`, which must fit `precision`.
    Rescale {
        target: Reg,
        source: Reg,
        precision: u16,
        scale: i16,
    },
    /// The element of an array, NULL outside.
    Element {
        target: Reg,
        array: Reg,
        index: Reg,
    },
    /// Concatenation of two texts.
    Concat {
        target: Reg,
        left: Reg,
        right: Reg,
    },
    /// Calls a builtin, by the number of the call.
    Call {
        call: u32,
    },
    /// Any other instruction, by its number.
    Scalar {
        instruction: u32,
    },
    /// Puts constants into their registers that only what follows reads, by the number of their
    /// list.
    Constants {
        list: u32,
    },

    // Control.
    /// Goes on elsewhere.
    Jump {
        to: Label,
    },
    /// Goes on elsewhere when whether the condition is TRUE is `when`.
    JumpIf {
        when: bool,
        condition: Reg,
        to: Label,
    },
    /// Goes on elsewhere when whether the condition is FALSE is `when`.
    JumpIfFalse {
        when: bool,
        condition: Reg,
        to: Label,
    },
    /// Goes on elsewhere when whether a comparison of integers is TRUE is `when`.
    JumpIfIntegers {
        when: bool,
        accepts: Accepts,
        left: Reg,
        right: Reg,
        to: Label,
    },
    /// Goes on elsewhere when whether `source` is NULL is `when`.
    JumpIfNull {
        when: bool,
        source: Reg,
        to: Label,
    },
    /// Goes on elsewhere when whether one of some registers is NULL is `when`.
    JumpIfAnyNull {
        when: bool,
        registers: u32,
        to: Label,
    },
    /// Goes on where a table says for the integer in `source`, or behind for none that it has.
    Switch {
        source: Reg,
        table: u32,
    },
    /// Goes back to the start of a loop, having counted an iteration.
    Again {
        to: Label,
    },
    /// Starts a counting loop: the counter and its last value are `state` and the register behind,
    /// and the step is in the one behind these. Goes on elsewhere when there is no iteration.
    CountFrom {
        first: Reg,
        last: Reg,
        step: Reg,
        state: Reg,
        variable: Reg,
        reverse: bool,
        to: Label,
    },
    /// Goes back to the start of a counting loop if there is another iteration.
    CountOn {
        state: Reg,
        variable: Reg,
        reverse: bool,
        to: Label,
    },
    /// Starts a loop over an array: the array and the position of its next element are in `state`
    /// and the register behind. Goes on elsewhere when the array is empty.
    EachFrom {
        array: Reg,
        state: Reg,
        variable: Reg,
        to: Label,
    },
    /// Goes back to the start of a loop over an array if there is another element.
    EachOn {
        state: Reg,
        variable: Reg,
        to: Label,
    },
    /// Ends an iteration of a body that is run by a call.
    EndIteration,
    /// Leaves that many bodies that are run by calls, and goes on there.
    Unwind {
        bodies: u32,
        to: Label,
    },
    /// Ends the procedure.
    Return,
    /// Ends the procedure with an error.
    Raise {
        failure: u32,
    },
    /// Raises when the condition is FALSE, or also when it is NULL.
    Require {
        condition: Reg,
        null_fails: bool,
        failure: u32,
    },
    /// Raises when `source` is NULL.
    RequireNotNull {
        source: Reg,
        failure: u32,
    },
    /// Reports a NOTICE.
    Notice {
        notice: u32,
    },
    /// Tells the sessions that listen to a channel.
    Notify {
        channel: Reg,
        payload: Reg,
    },

    // Operations, by their number in the table of their kind.
    /// Looks a key up, and goes on elsewhere when nothing was found.
    Lookup {
        lookup: u32,
        to: Label,
    },
    /// Reads columns.
    Read {
        read: u32,
    },
    /// Writes columns.
    Update {
        update: u32,
    },
    /// Goes on elsewhere unless the attempt leaves updates to its commit.
    UnlessDeferring {
        to: Label,
    },
    /// Leaves an update to the commit and goes on elsewhere, or behind when that is not possible
    /// with these operands.
    Defer {
        defer: u32,
        to: Label,
    },
    /// Inserts a record.
    Insert {
        insert: u32,
    },
    /// Deletes a record.
    Delete {
        op: OpId,
        table: TableRef,
        record: RecordReg,
    },
    /// Runs the body behind it for each record in a range; `to` is behind the body.
    Scan {
        scan: u32,
        to: Label,
    },
    /// Asks for what a loop will touch.
    Prefetch {
        prefetch: u32,
    },
    /// Keeps a record's handle in a register.
    SaveRecord {
        target: Reg,
        record: RecordReg,
    },
    /// The opposite.
    RestoreRecord {
        record: RecordReg,
        source: Reg,
    },

    // Rows.
    /// What is done with a buffer without running a body, by its number.
    Rows {
        rows: u32,
    },
    /// Runs the body behind it for rows of a buffer; `to` is behind the body.
    ForBuffer {
        walk: u32,
        to: Label,
    },
    /// Appends a row to the result.
    Emit {
        row: u32,
    },

    // Errors that are caught.
    /// Runs the body behind it once, and catches its errors; `to` is behind the body.
    Protect {
        protect: u32,
        to: Label,
    },
    /// Notes how a change is taken back.
    NoteUndo {
        undo: u32,
    },
    /// What a caught error says.
    Diagnose {
        region: RegionId,
        item: DiagnosticItem,
        target: Reg,
    },
    /// Raises a caught error.
    RaiseAgain {
        region: RegionId,
    },

    // The same, of attempts that are observed: see [`Code::observed_ops`].
    LookupObserved {
        lookup: u32,
        to: Label,
    },
    ReadObserved {
        read: u32,
    },
    UpdateObserved {
        update: u32,
    },
    InsertObserved {
        insert: u32,
    },
    DeleteObserved {
        op: OpId,
        table: TableRef,
        record: RecordReg,
    },
}

impl Op {
    /// The op that does the same and tells a history.
    fn observed(self) -> Op {
        match self {
            Op::Lookup { lookup, to } => Op::LookupObserved { lookup, to },
            Op::Read { read } => Op::ReadObserved { read },
            Op::Update { update } => Op::UpdateObserved { update },
            Op::Insert { insert } => Op::InsertObserved { insert },
            Op::Delete { op, table, record } => Op::DeleteObserved { op, table, record },
            other => other,
        }
    }
}

const _: () = assert!(size_of::<Op>() <= 16);

/// A call of a builtin: the fields of [`Instruction::Call`], and what its time is measured by.
#[derive(Debug)]
pub(crate) struct Call {
    pub function: ScalarFunction,
    pub target: Reg,
    pub arguments: Box<[Reg]>,
    /// The registers among these that hold a stretch of the heap: how long they are says how long
    /// the call takes.
    pub stretches: Box<[Reg]>,
}

/// Where [`Op::Switch`] goes on for `least` and the integers behind it.
#[derive(Debug)]
pub(crate) struct Switch {
    pub least: i64,
    pub to: Vec<Label>,
}

/// A look-up: the fields of [`Step::Lookup`].
#[derive(Debug)]
pub(crate) struct Lookup {
    pub op: OpId,
    pub table: Arc<Table>,
    pub index: usize,
    pub key: Box<[Reg]>,
    pub record: RecordReg,
    pub found: Reg,
    pub intent: Intent,
    /// What is observed of the record.
    pub observed: Observed,
    /// Where a prefetch notes what it found for this look-up, if one does.
    pub foreseen: Option<Foreseen>,
    /// Its numbers, if it is outside of loops and arguments alone decide its key.
    pub given: Option<GivenLookup>,
    /// In a restoration: whether it gives what it gave
    /// ([`Restoration::changed`](crate::Restoration)).
    pub is_known: bool,
}

/// Where in [`Frame::sightings`](crate::Frame) a prefetch notes what it found for a look-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreseen {
    /// Where in the frame's sightings the first iteration is.
    pub first_sighting: usize,
    /// The number of the iteration, and of the first one.
    pub iteration: Reg,
    pub first: Reg,
    /// See [`PrefetchLookup::ordinal`].
    pub ordinal: Option<u16>,
}

/// A read or an update: the fields of [`Step::Read`] and [`Step::Update`].
#[derive(Debug)]
pub(crate) struct Columns {
    pub op: OpId,
    pub table: Arc<Table>,
    pub record: RecordReg,
    pub columns: Box<[(ColumnId, Reg)]>,
    /// As of [`Lookup::is_known`].
    pub is_known: bool,
}

/// An update that may be deferred to the commit.
#[derive(Debug)]
pub(crate) struct Defer {
    pub op: OpId,
    pub table: Arc<Table>,
    pub record: RecordReg,
    pub updater: Arc<Updater>,
    pub operands: Box<[Reg]>,
    /// None of these may be NULL.
    pub guard: Box<[Reg]>,
    /// Indexed columns, which are written at once.
    pub indexed: Box<[(ColumnId, Reg)]>,
}

/// An insert: the fields of [`Step::Insert`].
#[derive(Debug)]
pub(crate) struct Insert {
    pub op: OpId,
    pub table: Arc<Table>,
    pub values: Box<[Reg]>,
    pub record: RecordReg,
    pub conflict: Option<Conflict>,
}

/// A scan: the fields of [`Step::Scan`] but for its body.
#[derive(Debug)]
pub(crate) struct Scan {
    pub op: OpId,
    pub table: Arc<Table>,
    pub index: usize,
    pub range: Range,
    pub reverse: bool,
    /// Its number, if arguments alone decide its range.
    pub given: Option<u16>,
    pub record: RecordReg,
    pub intent: Intent,
    /// What is observed of the records.
    pub observed: Observed,
}

/// What a loop will touch: the fields of [`Step::Prefetch`].
#[derive(Debug)]
pub(crate) struct Prefetch {
    pub first: Reg,
    pub last: Reg,
    pub lookups: Box<[PrefetchedLookup]>,
}

impl Prefetch {
    /// Whether the look-ups are made where they are prefetched.
    #[inline(always)]
    pub(crate) fn meets_all(&self) -> bool {
        self.lookups[0].met.is_some()
    }
}

/// A look-up of a loop: the fields of [`PrefetchLookup`].
#[derive(Debug)]
pub(crate) struct PrefetchedLookup {
    pub table: Arc<Table>,
    pub index: usize,
    pub key: Box<[PrefetchKey]>,
    pub touched: Words,
    pub touched_by_all: Words,
    /// Where in the frame's sightings the first iteration is.
    pub first_sighting: usize,
    /// The look-up itself with its ordinal, if it is made here for all iterations.
    pub met: Option<(Lookup, u16)>,
}

/// A protected region: the fields of [`Step::Protect`] but for its body.
#[derive(Debug)]
pub(crate) struct Protect {
    pub region: RegionId,
    pub handlers: Box<[Box<[Condition]>]>,
    pub caught: Reg,
}

/// How a change is taken back.
#[derive(Debug)]
pub(crate) struct NotedUndo {
    pub table: Arc<Table>,
    pub record: RecordReg,
    /// The registers are where the old values are when the change is noted.
    pub undo: Undo,
    /// The registers where they are put when it is taken back: no loop around the region uses
    /// these.
    pub back: Undo,
}

/// What is done with a buffer without running a body.
#[derive(Debug)]
pub(crate) enum Rows {
    Clear {
        buffer: BufferId,
    },
    Fill {
        buffer: BufferId,
        rows: Arc<dyn OutsideRows>,
        arguments: Box<[Reg]>,
    },
    Push {
        buffer: BufferId,
        row: Box<[Reg]>,
    },
    PushDistinct {
        buffer: BufferId,
        row: Box<[Reg]>,
        classes: Box<[Class]>,
        added: Reg,
    },
    Sort {
        buffer: BufferId,
        width: usize,
        by: Box<[SortKey]>,
    },
    Count {
        buffer: BufferId,
        width: usize,
        target: Reg,
    },
    At {
        buffer: BufferId,
        at: Reg,
        row: Box<[Reg]>,
    },
}

/// A loop over the rows of a buffer: the fields of [`Step::ForBuffer`] but for its body.
#[derive(Debug)]
pub(crate) struct Walk {
    pub buffer: BufferId,
    pub width: usize,
    pub matching: Box<[Match]>,
    pub row: Box<[Reg]>,
}

/// A program in the form in which the executor runs it; see the [module](self).
#[derive(Debug, Default)]
pub struct Code {
    pub(crate) ops: Vec<Op>,
    /// The same ops for attempts that are observed, so that the others need not ask at each whether
    /// they are.
    pub(crate) observed_ops: Vec<Op>,
    /// The program's registers and the hidden ones.
    pub(crate) registers: usize,
    /// Constants that fit into their register, by stretches of registers: the first one's number,
    /// and what they hold.
    pub(crate) constants: Vec<(usize, Vec<Slot>)>,
    /// Constants whose bytes are in `constant_bytes`.
    pub(crate) byte_constants: Vec<(Reg, Slot)>,
    pub(crate) constant_bytes: Heap,
    /// Constants that are put together for each run.
    pub(crate) other_constants: Vec<Constant>,
    /// Constants of [`Op::Constants`].
    pub(crate) rare_constants: Vec<Vec<Constant>>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) calls: Vec<Call>,
    pub(crate) register_lists: Vec<Box<[Reg]>>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) notices: Vec<(&'static str, Failure)>,
    pub(crate) lookups: Vec<Lookup>,
    pub(crate) reads: Vec<Columns>,
    pub(crate) updates: Vec<Columns>,
    pub(crate) defers: Vec<Defer>,
    pub(crate) inserts: Vec<Insert>,
    pub(crate) scans: Vec<Scan>,
    pub(crate) prefetches: Vec<Prefetch>,
    /// Sightings that the frame keeps for what prefetches find.
    pub(crate) sightings: usize,
    pub(crate) rows: Vec<Rows>,
    pub(crate) walks: Vec<Walk>,
    pub(crate) protects: Vec<Protect>,
    pub(crate) undos: Vec<NotedUndo>,
    pub(crate) emits: Vec<Box<[Reg]>>,
}
