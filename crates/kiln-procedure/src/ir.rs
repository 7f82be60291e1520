//! The procedure IR: operations on records over a register frame.
//!
//! A program is a tree of [`Step`]s. Control flow is structured (blocks, conditionals, loops), so
//! which step governs which is read off the tree. Scalar work is [`Instruction`]s on typed
//! registers; everything that touches a table is an *operation* with a number ([`OpId`]), by
//! which the analysis, the protocols and the statistics speak of it.
//!
//! Three kinds of names:
//!
//! - [`Reg`]: a register, one [`Slot`] of a fixed type. The first
//!   registers hold the parameters, then the constants; both are written before the first step.
//! - [`RecordReg`]: holds the handle of a record that an operation found. A key that was looked
//!   up once is not looked up again: later operations on the same key use the same handle.
//! - [`BufferId`]: a list of rows kept within one run (sorting, grouping, materialising).
//!
//! Rules for builders of programs (checked by [`verify`](crate::verify::verify)): a register is
//! written before it is read on every path; parameters and constants are never written; an
//! operation's handle is only used where the operation found its record.

use kiln_platform::sync::Arc;
use kiln_storage::error::{SqlState, Subject};
use kiln_storage::record::Words;
use kiln_storage::schema::{ColumnId, TableId};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{DataType, Representation, Value};

use crate::outside::{OutsideFunction, OutsideRows};

/// A register's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u16);

/// The number of a register that holds a record's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordReg(pub u16);

/// The number of a row buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u16);

/// The number of an operation: its position in [`Program::operations`](crate::Program).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u16);

/// The number of a protected region: see [`Step::Protect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u16);

/// A table's position in [`Program::tables`](crate::Program).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableRef(pub u16);

/// A sequence of steps.
pub type Block = Vec<Step>;

/// A builtin: computes one value from its arguments; may append to the heap; may raise. It is
/// called also when arguments are NULL.
pub type ScalarFunction = fn(&mut Heap, &[Slot]) -> kiln_storage::error::Result<Slot>;

/// Pure computation on registers. Except where said, a NULL operand makes the result NULL.
///
/// Integer results are checked against the width of their type and raise 22003; division by zero
/// raises 22012.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the sentence on a variant names its fields")]
pub enum Instruction {
    /// `target := source`, of any type.
    Move { target: Reg, source: Reg },
    /// `target := NULL`.
    SetNull { target: Reg },
    /// Integer `left op right`, checked against `width`.
    Integer {
        op: Arithmetic,
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
    /// DOUBLE PRECISION `left op right`.
    Double {
        op: Arithmetic,
        target: Reg,
        left: Reg,
        right: Reg,
    },
    /// Compares two registers of one class; the result is BOOLEAN.
    Compare {
        op: Comparison,
        class: Class,
        target: Reg,
        left: Reg,
        right: Reg,
    },
    /// `target := source IS NULL` (or IS NOT NULL when `negated`); never NULL.
    IsNull {
        target: Reg,
        source: Reg,
        negated: bool,
    },
    /// `target` says whether one of `sources` is NULL; never NULL.
    AnyNull { target: Reg, sources: Box<[Reg]> },
    /// Three-valued NOT.
    Not { target: Reg, source: Reg },
    /// Three-valued AND; both sides were computed.
    And { target: Reg, left: Reg, right: Reg },
    /// Three-valued OR; both sides were computed.
    Or { target: Reg, left: Reg, right: Reg },
    /// An integer as NUMERIC with scale 0.
    IntegerToDecimal { target: Reg, source: Reg },
    /// An integer as DOUBLE PRECISION.
    IntegerToDouble { target: Reg, source: Reg },
    /// Raises 22003 unless the integer fits `width`.
    CheckWidth {
        width: Width,
        target: Reg,
        source: Reg,
    },
    /// A NUMERIC rounded to `scale`, raising 22003 unless it fits `precision`.
    Rescale {
        target: Reg,
        source: Reg,
        precision: u16,
        scale: i16,
    },
    /// Concatenation of two texts.
    Concat { target: Reg, left: Reg, right: Reg },
    /// The element of `array` at `index` (from 1, as in SQL); NULL outside.
    Element { target: Reg, array: Reg, index: Reg },
    /// The number of elements as an integer.
    ArrayLength { target: Reg, array: Reg },
    /// A builtin function.
    Call {
        function: ScalarFunction,
        name: &'static str,
        target: Reg,
        arguments: Box<[Reg]>,
    },
    /// A function that asks the database around the program.
    Consult {
        function: Arc<dyn OutsideFunction>,
        target: Reg,
        arguments: Box<[Reg]>,
    },
    /// Raises `error` when `condition` is FALSE — or also when it is NULL, if `null_fails`.
    Require {
        condition: Reg,
        null_fails: bool,
        error: Box<Failure>,
    },
    /// Raises `error` when `source` is NULL (NOT NULL columns, STRICT).
    RequireNotNull { source: Reg, error: Box<Failure> },
}

/// `+ - * / %`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Addition.
    Add,
    /// Subtraction.
    Subtract,
    /// Multiplication.
    Multiply,
    /// Division; truncates towards zero for integers.
    Divide,
    /// Remainder with the dividend's sign.
    Remainder,
}

/// The width of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// SMALLINT.
    Two,
    /// INTEGER.
    Four,
    /// BIGINT.
    Eight,
}

/// `= <> < <= > >=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
    /// IS DISTINCT FROM: NULLs are equal to each other; never NULL.
    Distinct,
    /// IS NOT DISTINCT FROM.
    NotDistinct,
}

/// How values of a type compare, and so also sort and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Integers, BOOLEAN, DATE, TIMESTAMP: the lower word as a signed integer.
    Integer,
    /// NUMERIC.
    Decimal,
    /// DOUBLE PRECISION; NaN equals itself and is greatest, as in PostgreSQL.
    Double,
    /// Text (C collation), BYTEA, UUID, named objects: bytes in memcmp order.
    Bytes,
    /// INTERVAL: by length, months as 30 days.
    Interval,
    /// JSONB: by what it says, as in PostgreSQL; numbers are the same whatever zeros they end with.
    Json,
    /// Rows: field by field, where NULL comes last and equals itself.
    Row,
    /// Arrays of such elements: element by element, where NULL comes last, and then by length.
    Integers,
    /// See [`Class::Integers`].
    Decimals,
    /// See [`Class::Integers`].
    Doubles,
    /// See [`Class::Integers`].
    Texts,
    /// See [`Class::Integers`].
    Intervals,
    /// See [`Class::Integers`].
    Rows,
}

impl Class {
    /// The class of a type's values; `None` where they do not compare.
    pub fn of(data_type: &DataType) -> Option<Class> {
        Some(match data_type {
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Boolean
            | DataType::Date
            | DataType::Timestamp(_)
            | DataType::TimestampTz(_)
            | DataType::Time(_)
            | DataType::Enum(_) => Class::Integer,
            DataType::Numeric { .. } => Class::Decimal,
            DataType::Double => Class::Double,
            DataType::Char(_)
            | DataType::VarChar(_)
            | DataType::Text
            | DataType::Bytea
            | DataType::Uuid => Class::Bytes,
            DataType::Interval(_) => Class::Interval,
            DataType::Row(of) => {
                let mut fields = of.fields().iter();
                // JSON has no operators, though texts do.
                let compare = fields.all(|field| {
                    let of = field.data_type.element();
                    of.as_ref().unwrap_or(&field.data_type) != &DataType::JSON
                        && Class::of(&field.data_type).is_some()
                });
                return compare.then_some(Class::Row);
            }
            DataType::Catalog(_) if *data_type == DataType::JSONB => Class::Json,
            DataType::Array(element) => return Class::of(element)?.of_arrays(),
            DataType::Catalog(catalog) => match catalog.representation() {
                Representation::Number => Class::Integer,
                Representation::Double => Class::Double,
                Representation::Text | Representation::Object => Class::Bytes,
                Representation::Vector => return None,
            },
        })
    }

    /// The class of arrays of elements of this class; `None` for arrays of arrays.
    pub fn of_arrays(self) -> Option<Class> {
        Some(match self {
            Class::Integer => Class::Integers,
            Class::Decimal => Class::Decimals,
            Class::Double => Class::Doubles,
            Class::Bytes => Class::Texts,
            Class::Interval => Class::Intervals,
            Class::Row => Class::Rows,
            _ => return None,
        })
    }

    /// The class of the elements; `None` where values of this class have none.
    pub fn of_elements(self) -> Option<Class> {
        Some(match self {
            Class::Integers => Class::Integer,
            Class::Decimals => Class::Decimal,
            Class::Doubles => Class::Double,
            Class::Texts => Class::Bytes,
            Class::Intervals => Class::Interval,
            Class::Rows => Class::Row,
            _ => return None,
        })
    }
}

/// An error that a step raises. The message may refer to registers.
#[derive(Clone, Debug)]
pub struct Failure {
    /// SQLSTATE.
    pub state: SqlState,
    /// The message; each `%` that [`Failure::arguments`] has a register for is replaced by its
    /// text, and `%%` by a percent sign. Without arguments the message is literal.
    pub message: String,
    /// Text registers for the message's placeholders; a NULL prints as `<NULL>`.
    pub arguments: Box<[Reg]>,
    /// DETAIL: literal, or a text register.
    pub detail: Option<TextSource>,
    /// HINT: literal, or a text register.
    pub hint: Option<TextSource>,
    /// The objects that the error is about.
    pub subject: Option<Box<Subject>>,
    /// Where in the procedure's source (line, column, from 1).
    pub position: Option<(u32, u32)>,
}

/// A text known when compiling, or computed.
#[derive(Clone, Debug)]
pub enum TextSource {
    /// Known.
    Literal(String),
    /// In a text register.
    Register(Reg),
}

/// One step of a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the sentence on a variant names its fields")]
pub enum Step {
    /// Computes.
    Scalar(Instruction),

    // Control.
    /// Runs `then` when `condition` is TRUE, else `otherwise`.
    If {
        condition: Reg,
        then: Block,
        otherwise: Block,
    },
    /// Repeats `body` until an [`Step::Exit`]; with `before`, first runs `before` and leaves the
    /// loop when `condition` is not TRUE.
    Loop {
        before: Block,
        condition: Option<Reg>,
        body: Block,
    },
    /// `variable` counts from `first` to `last` (both included) by `step` (a positive BIGINT
    /// register), downwards when `reverse`. The bounds are read once. NULL bounds raise 22004,
    /// a step below 1 raises 22023.
    ForRange {
        variable: Reg,
        first: Reg,
        last: Reg,
        step: Reg,
        reverse: bool,
        body: Block,
    },
    /// `variable` takes each element of `array`; a NULL array raises 22004.
    ForEach {
        variable: Reg,
        array: Reg,
        body: Block,
    },
    /// Leaves the innermost loop for `depth` 0, the one around it for 1, and so on. Every step
    /// with a `body` counts as a loop, scans and buffer loops too.
    Exit { depth: u16 },
    /// Goes on with the next iteration of that loop.
    Continue { depth: u16 },
    /// Ends the procedure successfully.
    Return,
    /// Ends the procedure with an error, unless a protected region around it catches that; its
    /// effects are undone.
    Raise { error: Box<Failure> },
    /// A *protected region*: runs `body` once. When the body raises an error that one of `handlers`
    /// names, what the body has written to tables is undone, `caught` is the number of the first
    /// such handler, from 1, and the procedure goes on behind this step; registers, buffers,
    /// results, notices and sequences stay as they are then. Otherwise `caught` is 0. What the
    /// error says stays with the region until it catches the next one ([`Step::Diagnose`],
    /// [`Step::RaiseAgain`]).
    ///
    /// Counts as a loop for [`Step::Exit`]. The body is followed by no next iteration, so that a
    /// [`Step::Continue`] leaves the region as well.
    Protect {
        region: RegionId,
        handlers: Box<[Box<[Condition]>]>,
        caught: Reg,
        body: Block,
    },
    /// Notes how a change is taken back that the region around makes: of an update before it, of
    /// all others behind them. [`ProgramBuilder::finish`](crate::ProgramBuilder::finish) puts these
    /// in.
    NoteUndo {
        table: TableRef,
        record: RecordReg,
        undo: Undo,
    },
    /// Sets `target`, of type TEXT, to what the error that `region` has caught says; an empty text
    /// where it says nothing.
    Diagnose {
        region: RegionId,
        item: DiagnosticItem,
        target: Reg,
    },
    /// Raises the error that `region` has caught, as it was.
    RaiseAgain { region: RegionId },
    /// Reports a NOTICE or a lower level to the client; `level` is PostgreSQL's name.
    Notice {
        level: &'static str,
        error: Box<Failure>,
    },
    /// Tells the sessions that listen to the channel, when the transaction has committed. An error
    /// that a protected region catches takes back what its body has told. Both are texts, and not
    /// NULL.
    Notify { channel: Reg, payload: Reg },

    // Operations.
    /// Asks for what the loop that follows will touch, for `first` to `last` of its variable. Put
    /// in by the optimiser after everything else; changes nothing. With `meets_all` the loop does
    /// nothing but these look-ups, and no step asks what it found: they are made here, and the loop
    /// is not run (in a reconnaissance).
    Prefetch {
        first: Reg,
        last: Reg,
        lookups: Box<[PrefetchLookup]>,
        meets_all: bool,
    },
    /// Finds the record whose `index` columns equal `key` (a unique index, all its columns).
    /// Sets `found`, and `record` when there is one. A NULL in the key finds nothing.
    Lookup {
        op: OpId,
        table: TableRef,
        index: u16,
        key: Box<[Reg]>,
        record: RecordReg,
        found: Reg,
        intent: Intent,
    },
    /// Runs `body` for each record in a range of an ordered index, in its order.
    Scan {
        op: OpId,
        table: TableRef,
        index: u16,
        range: Box<Range>,
        reverse: bool,
        record: RecordReg,
        intent: Intent,
        body: Block,
    },
    /// Reads columns of a record, this transaction's own changes included.
    Read {
        op: OpId,
        table: TableRef,
        record: RecordReg,
        columns: Box<[(ColumnId, Reg)]>,
    },
    /// Writes columns of a record, not of its primary key where protocols may leave updates to the
    /// commit or split timestamps (front ends delete and insert). The registers hold values that
    /// fit their columns (length, precision, NOT NULL were checked by steps before). Raises 23505
    /// when a unique index refuses.
    Update {
        op: OpId,
        table: TableRef,
        record: RecordReg,
        columns: Box<[(ColumnId, Reg)]>,
    },
    /// Inserts a record with `values` for all columns in table order. When a unique index has its
    /// key already: without `conflict` raises 23505; else see [`Conflict`]. Sets `record` to the
    /// new record.
    Insert {
        op: OpId,
        table: TableRef,
        values: Box<[Reg]>,
        record: RecordReg,
        conflict: Option<Conflict>,
    },
    /// Deletes a record.
    Delete {
        op: OpId,
        table: TableRef,
        record: RecordReg,
    },

    // Rows kept within a run.
    /// Keeps a record's handle in a register (only for buffers), to be used after a scan.
    SaveRecord { target: Reg, record: RecordReg },
    /// The opposite.
    RestoreRecord { record: RecordReg, source: Reg },
    /// Empties a buffer.
    BufferClear { buffer: BufferId },
    /// Empties a buffer, and fills it with rows that are no table's.
    BufferFill {
        buffer: BufferId,
        rows: Arc<dyn OutsideRows>,
        arguments: Box<[Reg]>,
    },
    /// Appends a row; all rows of a buffer have the same width.
    BufferPush { buffer: BufferId, row: Box<[Reg]> },
    /// Appends a row unless an equal one is there (NULLs are equal); sets `added`. `classes` has
    /// one entry a column.
    BufferPushDistinct {
        buffer: BufferId,
        row: Box<[Reg]>,
        classes: Box<[Class]>,
        added: Reg,
    },
    /// Sorts the rows, stably.
    BufferSort {
        buffer: BufferId,
        by: Box<[SortKey]>,
    },
    /// Sets `target` to the number of rows (BIGINT).
    BufferCount { buffer: BufferId, target: Reg },
    /// Sets `row` to the columns of the row at the position `at` (BIGINT, from 1), or to NULLs
    /// where there is none. The columns hold values, no records.
    BufferRow {
        buffer: BufferId,
        at: Reg,
        row: Box<[Reg]>,
    },
    /// Runs `body` for each row with its columns in `row`; with `matching`, only for the rows that
    /// have all of these values, which are taken once, before the first iteration. Rows come in the
    /// order of the buffer.
    ForBuffer {
        buffer: BufferId,
        matching: Box<[Match]>,
        row: Box<[Reg]>,
        body: Block,
    },
    /// Appends a row to the procedure's result.
    Emit { row: Box<[Reg]> },
}

/// Which errors a handler of a [`Step::Protect`] catches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All but canceled queries (57014) and failed assertions (P0004).
    Others,
    /// Those of this state; of a state that ends with `000`, those of its class.
    State(SqlState),
}

impl Condition {
    /// Whether it catches errors of `state`.
    pub fn catches(self, state: SqlState) -> bool {
        match self {
            Condition::Others => {
                state != SqlState::QUERY_CANCELED && state != SqlState::ASSERT_FAILURE
            }
            Condition::State(named) => {
                named == state || named.is_category() && named.class() == state.class()
            }
        }
    }
}

/// What [`Step::Diagnose`] asks of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in GET STACKED DIAGNOSTICS")]
pub enum DiagnosticItem {
    ReturnedSqlState,
    MessageText,
    Detail,
    Hint,
    Context,
    ColumnName,
    ConstraintName,
    DataTypeName,
    TableName,
    SchemaName,
}

/// How a change is taken back: [`Step::NoteUndo`].
#[derive(Clone, Debug)]
pub enum Undo {
    /// The columns of the record get these values.
    Update(Box<[(ColumnId, Reg)]>),
    /// The record is deleted.
    Insert,
    /// The row is there again, with these values for all columns in table order.
    Delete(Box<[Reg]>),
}

impl Undo {
    /// The registers that it takes values from.
    pub fn registers(&self) -> impl Iterator<Item = &Reg> {
        let (columns, values): (&[(ColumnId, Reg)], &[Reg]) = match self {
            Undo::Update(columns) => (columns, &[]),
            Undo::Insert => (&[], &[]),
            Undo::Delete(values) => (&[], values),
        };
        columns.iter().map(|(_, register)| register).chain(values)
    }

    /// The same, to be changed.
    pub fn registers_mut(&mut self) -> impl Iterator<Item = &mut Reg> {
        let (columns, values): (&mut [(ColumnId, Reg)], &mut [Reg]) = match self {
            Undo::Update(columns) => (columns, &mut []),
            Undo::Insert => (&mut [], &mut []),
            Undo::Delete(values) => (&mut [], values),
        };
        let columns = columns.iter_mut().map(|(_, register)| register);
        columns.chain(values.iter_mut())
    }
}

/// A look-up that a loop will make in each iteration.
#[derive(Clone, Debug)]
pub struct PrefetchLookup {
    /// The look-up.
    pub op: OpId,
    /// Whether nothing can make the look-up of an iteration another one than is foreseen here: then
    /// what is found in advance need not be looked up again, as long as it holds.
    pub is_certain: bool,
    /// Its number among those whose keys nothing but the procedure's arguments and the iteration
    /// decide, in a loop that is run once: an attempt that has made such a look-up before need not
    /// compare keys. That of a reconnaissance has the number of the procedure's own.
    pub ordinal: Option<u16>,
    /// The table.
    pub table: TableRef,
    /// The index, as of [`Step::Lookup`].
    pub index: u16,
    /// How its key follows from the loop's variable.
    pub key: Box<[PrefetchKey]>,
    /// What of the record the program will touch.
    pub touched: Words,
    /// The same; in a reconnaissance also the words that the procedure itself will touch.
    pub touched_by_all: Words,
}

/// The numbers of a look-up that is made once at most, with a key that arguments alone decide:
/// those of an iteration of a loop, which no loop of the program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenLookup {
    /// See [`PrefetchLookup::ordinal`].
    pub ordinal: u16,
    /// The iteration.
    pub iteration: u16,
}

/// A part of a [`PrefetchLookup`]'s key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchKey {
    /// A register that the loop does not write.
    Register(Reg),
    /// The loop's variable.
    Variable,
    /// The element of an array at the loop's variable.
    Element(Reg),
}

/// Whether the records that an operation finds will be written by this transaction: pessimistic
/// protocols take the stronger lock at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Only read, as far as is known.
    Read,
    /// Written later through the same handle.
    Write,
}

/// A range of an ordered index: the leading columns equal `prefix`, and the next column lies
/// between `lower` and `upper`. A NULL in any of them makes the range empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Registers for the leading key columns.
    pub prefix: Box<[Reg]>,
    /// The lower bound on the next key column.
    pub lower: Option<Bound>,
    /// The upper bound on the next key column.
    pub upper: Option<Bound>,
}

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Where the bound's value is.
    pub value: Reg,
    /// Whether the value itself is in the range.
    pub inclusive: bool,
}

/// What an insert does when a unique index has its key already.
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    /// Only conflicts on this index are caught, others raise; `None` catches all.
    pub index: Option<u16>,
    /// Set to TRUE when the record was inserted, to FALSE when an existing one stood in the way;
    /// then the insert's `record` is that one.
    pub inserted: Reg,
}

/// One key of a sort.
#[derive(Clone, Copy, Debug)]
pub struct SortKey {
    /// The column of the buffer.
    pub column: u16,
    /// How it compares.
    pub class: Class,
    /// Greatest first.
    pub descending: bool,
    /// NULLs before everything else.
    pub nulls_first: bool,
}

/// A condition on the rows of a buffer: the column equals the value, as `=` in SQL means it, so
/// that a NULL on either side matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The column of the buffer.
    pub column: u16,
    /// The register that it must equal.
    pub value: Reg,
    /// How the two compare.
    pub class: Class,
}

/// The most columns that a loop over a buffer can match; front ends test further ones in the body.
pub const MATCHES_MAX: usize = 16;

/// What is known of an operation apart from its steps; see
/// [`Program::operations`](crate::Program).
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it does.
    pub kind: OperationKind,
    /// On which table.
    pub table: TableId,
    /// The source position of its statement (line, column, from 1).
    pub position: Option<(u32, u32)>,
}

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A look-up of one key.
    Lookup,
    /// A range or full scan.
    Scan,
    /// Reading columns.
    Read,
    /// Writing columns.
    Update,
    /// Inserting a record.
    Insert,
    /// Deleting a record.
    Delete,
}

/// A constant and the register that holds it.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The register; written once, before the first step.
    pub register: Reg,
    /// The value.
    pub value: Value,
}

/// A set of operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpSet(Vec<u64>);

impl OpSet {
    pub(crate) fn insert(&mut self, op: OpId) {
        let word = op.0 as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (op.0 % 64);
    }

    /// Whether the operation is in it.
    #[inline]
    pub fn contains(&self, op: OpId) -> bool {
        let word = self.0.get(op.0 as usize / 64);
        word.is_some_and(|word| word >> (op.0 % 64) & 1 != 0)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// The most arguments of a builtin; front ends combine longer lists.
pub const ARGUMENTS_MAX: usize = 16;

/// Iterations of a loop that are prefetched at most: more would push each other out of the cache.
pub(crate) const PREFETCH_ITERATIONS_MAX: usize = 24;

/// Parts of a foreseen key at most; a look-up with more is not foreseen.
pub(crate) const PREFETCH_PARTS_MAX: usize = 8;
