//! The syntax tree of a function body.

use super::cursor::{BoundCursor, CursorStep, ForCursor, Open};
use crate::parse::{Call, Expression, TypeReference};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Condition, DiagnosticItem};
use kiln_storage::error::{Position, SqlState};
use sqlparser::ast::{Ident, Query};

/// `[<<label>>] [DECLARE …] BEGIN … [EXCEPTION …] END`.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its first token, the label's included.
    pub position: Position,
    /// Its label.
    pub label: Option<Ident>,
    /// Its variables; each default may use those before it.
    pub declarations: Vec<Declaration>,
    /// Its statements.
    pub body: Vec<Statement>,
    /// What catches the errors of its statements.
    pub handlers: Vec<Handler>,
}

impl Block {
    /// Its statements, and those of each handler.
    pub fn lists(&self) -> impl Iterator<Item = &[Statement]> {
        let handlers = self.handlers.iter();
        let handlers = handlers.map(|handler| handler.body.as_slice());
        std::iter::once(self.body.as_slice()).chain(handlers)
    }
}

/// `WHEN condition [OR …] THEN …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// Which errors it catches; never empty.
    pub conditions: Vec<Condition>,
    /// What it does about them.
    pub body: Vec<Statement>,
}

/// `name [CONSTANT] type [NOT NULL] [:= default]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The name.
    pub position: Position,
    /// The variable.
    pub name: Ident,
    /// Assignments to it are errors.
    pub constant: bool,
    /// Its type.
    pub data_type: TypeReference,
    /// Null is an error.
    pub not_null: bool,
    /// Its first value; null where there is none.
    pub default: Option<Expression>,
    /// Its query, if it is a cursor that has one.
    pub cursor: Option<Arc<BoundCursor>>,
}

/// A statement of PL/pgSQL.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its first token, a loop's label included.
    pub position: Position,
    /// What it does.
    pub kind: StatementKind,
}

/// What a [`Statement`] does.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// A block inside the body.
    Block(Block),
    /// `target := value`.
    Assign {
        /// What is written.
        target: Target,
        /// The value.
        value: Expression,
    },
    /// A query whose first row goes to INTO's targets.
    Select {
        /// The query, without its INTO.
        query: Box<Query>,
        /// Where the row goes.
        into: Into,
    },
    /// What cannot be executed: PostgreSQL takes it, and reports this error when it is reached.
    Unexecutable(kiln_storage::error::Error),
    /// INSERT, UPDATE or DELETE.
    Data {
        /// [`Insert`](crate::parse::Statement::Insert), [`Update`](crate::parse::Statement::Update)
        /// or [`Delete`](crate::parse::Statement::Delete), without INTO.
        statement: Box<crate::parse::Statement>,
        /// Where the row of RETURNING goes. There is no INTO without RETURNING, and no RETURNING
        /// without INTO.
        into: Option<Into>,
    },
    /// `PERFORM …`: the query `SELECT …`, whose rows are dropped.
    Perform(Box<Query>),
    /// `CALL procedure(…)`.
    Call(Call),
    /// `EXECUTE command [INTO …] [USING …]`.
    Execute {
        /// The command's text, and the values of its parameters.
        command: Box<Command>,
        /// Where the first row goes.
        into: Option<Into>,
    },
    /// A command that takes no values, as it is written: CREATE, ALTER, GRANT, SET and the like.
    Utility(String),
    /// `COMMIT` or `ROLLBACK`, after which the next transaction begins.
    EndTransaction {
        /// COMMIT.
        commits: bool,
    },
    /// `OPEN`.
    Open(Box<Open>),
    /// `FETCH` or `MOVE`.
    CursorStep(Box<CursorStep>),
    /// `CLOSE` of what a variable names.
    CloseCursor(Target),
    /// `FOR record IN cursor`.
    ForCursor(Box<ForCursor>),
    /// `IF … ELSIF … ELSE`.
    If {
        /// Conditions and what they guard, in order; never empty.
        branches: Vec<(Expression, Vec<Statement>)>,
        /// ELSE; empty where there is none.
        otherwise: Vec<Statement>,
    },
    /// `CASE`.
    Case {
        /// The value that the arms are compared with; `None` for the searched form, whose arms
        /// are conditions.
        operand: Option<Expression>,
        /// The WHEN arms; never empty.
        arms: Vec<CaseArm>,
        /// ELSE. Without one, a value that no arm takes is an error (20000).
        otherwise: Option<Vec<Statement>>,
    },
    /// `LOOP`.
    Loop(Loop),
    /// `WHILE`.
    While {
        /// Goes on while this is true.
        condition: Expression,
        /// What is repeated.
        body: Loop,
    },
    /// `FOR i IN from..to`.
    ForRange(Box<ForRange>),
    /// `FOR targets IN rows`.
    ForQuery {
        /// What each row is written to: one record, or one variable for each column.
        targets: Vec<Target>,
        /// The rows.
        rows: RowSource,
        /// What is repeated.
        body: Loop,
    },
    /// `FOREACH target IN ARRAY array`.
    ForEach {
        /// What each element is written to.
        target: Target,
        /// The array.
        array: Expression,
        /// What is repeated.
        body: Loop,
    },
    /// `EXIT` or `CONTINUE`. The parser has checked that the loop or block exists.
    Exit {
        /// Which of the two.
        kind: ExitKind,
        /// The loop or block that is meant; the innermost loop where none is named.
        label: Option<Ident>,
        /// Only when this is true.
        condition: Option<Expression>,
    },
    /// `RETURN [value]`.
    Return(Option<Expression>),
    /// `RETURN NEXT [value]`: without a value, the row of the output arguments.
    ReturnNext(Option<Expression>),
    /// `RETURN QUERY rows`.
    ReturnQuery(RowSource),
    /// `RAISE`.
    Raise(Raise),
    /// `ASSERT condition [, message]`.
    Assert {
        /// Must be true.
        condition: Expression,
        /// What the error (P0004) says otherwise.
        message: Option<Expression>,
    },
    /// `GET [CURRENT] DIAGNOSTICS target = ROW_COUNT, …`.
    GetRowCount(Vec<Target>),
    /// `GET STACKED DIAGNOSTICS target = item, …`.
    GetStacked(Vec<(Target, DiagnosticItem)>),
    /// `NULL`: nothing.
    Null,
}

/// Where the rows of a loop or of `RETURN QUERY` come from.
#[derive(Clone, Debug, PartialEq)]
pub enum RowSource {
    /// A query.
    Query(Box<Query>),
    /// The RETURNING clause of an [`Insert`](crate::parse::Statement::Insert),
    /// [`Update`](crate::parse::Statement::Update) or [`Delete`](crate::parse::Statement::Delete),
    /// which has one.
    Data(Box<crate::parse::Statement>),
    /// `EXECUTE command [USING …]`.
    Execute(Box<Command>),
}

/// A command whose text is computed when it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The text.
    pub text: Expression,
    /// The values of `$1`, `$2`, … in it.
    pub using: Vec<Expression>,
}

/// What an assignment writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its first token.
    pub position: Position,
    /// The variable's name, perhaps after a block's or the function's, and perhaps a field after
    /// it. Never empty.
    pub path: Vec<Ident>,
    /// The steps from there to the part that is written; none for the whole.
    pub places: Vec<Place>,
}

/// A step to a part of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A field, behind a subscript.
    Field(Ident),
    /// An element of an array, or the place of a key in JSON.
    Element(Box<Expression>),
    /// A slice of an array.
    Slice(Box<[Option<Expression>; 2]>),
}

/// `INTO [STRICT] targets`.
#[derive(Clone, Debug, PartialEq)]
pub struct Into {
    /// The INTO keyword.
    pub position: Position,
    /// No row (P0002) and more than one row (P0003) are errors.
    pub strict: bool,
    /// One record, or one variable for each column. Never empty, and without subscripts.
    pub targets: Vec<Target>,
}

/// An arm of CASE.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseArm {
    /// The values, or the one condition of the searched form; never empty.
    pub values: Vec<Expression>,
    /// What it guards.
    pub body: Vec<Statement>,
}

/// The part that all loops share.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Its label.
    pub label: Option<Ident>,
    /// What is repeated.
    pub body: Vec<Statement>,
}

/// `FOR variable IN [REVERSE] from..to [BY step]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ForRange {
    /// An integer that the loop declares.
    pub variable: Ident,
    /// Counts down.
    pub reverse: bool,
    /// The first value.
    pub from: Expression,
    /// The last value.
    pub to: Expression,
    /// The distance of successive values, 1 where there is none.
    pub step: Option<Expression>,
    /// What is repeated.
    pub body: Loop,
}

/// Which way EXIT and CONTINUE go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// Leaves the loop or block.
    Exit,
    /// Begins the loop's next round.
    Continue,
}

/// `RAISE [level] … [USING …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Raise {
    /// How grave it is.
    pub level: RaiseLevel,
    /// What is raised.
    pub message: RaiseMessage,
    /// What USING sets, each with its place; no option twice.
    pub options: Vec<(RaiseOption, Expression)>,
}

/// The level of a [`Raise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseLevel {
    /// `DEBUG`
    Debug,
    /// `LOG`
    Log,
    /// `INFO`
    Info,
    /// `NOTICE`
    Notice,
    /// `WARNING`
    Warning,
    /// `EXCEPTION`, and where none is written: the transaction is rejected.
    Exception,
}

/// What a [`Raise`] raises.
#[derive(Clone, Debug, PartialEq)]
pub enum RaiseMessage {
    /// `RAISE;`, in a handler: the error that was caught. Elsewhere, running it is an error
    /// (0Z002).
    Again,
    /// `'format', arguments`: each `%` of the format stands for an argument and `%%` for a percent
    /// sign. The parser has checked that there are as many arguments as signs.
    Format {
        /// The format.
        format: String,
        /// The arguments.
        arguments: Vec<Expression>,
    },
    /// The state of a condition name or of `SQLSTATE '…'`, which is the message as well, as it was
    /// written.
    Condition {
        /// The state.
        state: SqlState,
        /// The name or the state's characters.
        name: String,
    },
    /// Nothing but options.
    Options,
}

/// An option of RAISE … USING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOption {
    /// `MESSAGE`
    Message,
    /// `DETAIL`
    Detail,
    /// `HINT`
    Hint,
    /// `ERRCODE`: a state or a condition name.
    ErrorCode,
    /// `COLUMN`
    Column,
    /// `CONSTRAINT`
    Constraint,
    /// `DATATYPE`
    DataType,
    /// `TABLE`
    Table,
    /// `SCHEMA`
    Schema,
}
