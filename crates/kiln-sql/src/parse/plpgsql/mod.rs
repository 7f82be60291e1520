//! PL/pgSQL: the syntax tree of function bodies and the parser that builds it.

mod ast;
mod command;
mod control;
mod exception;
pub(super) mod parser;
mod raise;
mod sql;

pub use ast::{
    Block, CaseArm, Command, Declaration, ExitKind, ForRange, Handler, Into, Loop, Raise,
    RaiseLevel, RaiseMessage, RaiseOption, RowSource, Statement, StatementKind, Target,
};
