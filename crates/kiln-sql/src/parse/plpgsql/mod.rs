//! PL/pgSQL: the syntax tree of function bodies and the parser that builds it.

mod ast;
mod command;
mod control;
mod cursor;
mod exception;
pub(super) mod parser;
mod raise;
mod sql;

pub use ast::{
    Block, CaseArm, Command, Declaration, ExitKind, ForRange, Handler, Into, Loop, Place, Raise,
    RaiseLevel, RaiseMessage, RaiseOption, RowSource, Statement, StatementKind, Target,
};
pub use cursor::{BoundCursor, CursorStep, ForCursor, Open, OpenSource, Towards};
