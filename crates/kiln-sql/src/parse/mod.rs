//! From text to syntax trees.
//!
//! [`script()`] splits a script into statements, [`statement()`] parses one of them. Expressions,
//! queries and statements on data are parsed by `sqlparser` and keep its trees; PL/pgSQL and the
//! headers of functions are parsed here, over the same tokens. Nothing is resolved: a name is a
//! name, be it a variable, a column or a mistake.
//!
//! Three things hold for every input. Errors carry line and column of the script, inside function
//! bodies too. Unquoted identifiers are in lower case in every tree, so that later stages compare
//! names as they are. And no input makes the parser panic or overflow its stack.

mod alter;
mod comment;
mod conflict;
mod copy;
mod create_as;
mod cursor;
mod dialect;
mod domain;
mod drop;
mod explain;
mod extension;
mod frame;
mod from_clause;
mod function;
mod inheritance;
mod lexer;
mod like;
mod lock;
mod locking;
mod maintenance;
mod materialized;
mod merge;
mod notify;
pub mod plpgsql;
mod position;
mod prepare;
mod reserved;
mod role;
mod role_setting;
mod scanner;
mod schema;
mod script;
mod sequence;
mod special_call;
mod statement;
mod subscript;
mod table_command;
mod tokens;
mod transaction;
mod traversal;
mod trigger;
mod type_definition;
mod types;
mod unicode;
mod variadic;
mod view;

#[cfg(test)]
mod tests;

pub use alter::{
    AddedColumn, AddedConstraint, AlterObject, AlterTable, AlteredObject, DroppedPart, NewName,
    ObjectChange, TableAction, renamed_routine,
};
pub use comment::{Comment, CommentedObject, RelationKind};
pub use conflict::conflict_target;
pub use copy::{Copied, Copy};
pub use create_as::CreateTableAs;
pub use cursor::{Declare, Direction, Fetch};
pub use domain::{AlterDomain, CreateDomain, DomainChange, DomainCheck};
pub use drop::{Drop, DropFunction, DropKind, RoutineSignature};
pub use explain::{Explain, ExplainFormat, ExplainOptions, WrittenOption};
pub use extension::ExtensionStatement;
pub(crate) use frame::Exclusion;
pub(crate) use from_clause::{grouped_by, is_rows_from, using_alias};
pub use function::{
    Argument, ArgumentMode, Body, FunctionDefinition, FunctionHeader, FunctionSource, ResultColumn,
    Returns, Volatility, function_header, function_source,
};
pub use kiln_storage::error::Position;
pub use like::{Included, Like};
pub use lock::LockTable;
pub use maintenance::{Reorder, Vacuum};
pub use materialized::{CreateMaterializedView, RefreshMaterializedView, empties, refill, refills};
pub use merge::{is_merge_of_postgres, merged_row};
pub use notify::Notify;
pub use position::position_of;
pub use prepare::{Execute, Part, Prepare};
pub use reserved::{is_quoted_when_printed, is_reserved};
pub use role::{
    DefaultPrivileges, DropRole, Grant, GrantObjects, GrantRoles, Owned, RoleDefinition, RoleName,
};
pub use role_setting::{RoleSetting, SettingChange};
pub use schema::{AlterSchema, CreateSchema, DropSchema, SchemaChange};
pub use script::{SourceStatement, highest_placeholder, is_complete, script, without_literals};
pub use sequence::{
    AlterSequence, ColumnChange, CreateSequence, CreateTable, IdentityColumn, Overriding,
    SequenceOptions, SetColumns, is_overriding_list, overriding,
};
pub use sqlparser;
pub use statement::{Call, CallArgument, Discarded, RoutineKind, Statement, change_of, statement};
pub use subscript::{Subscript, subscript};
pub(crate) use tokens::ALL_FIELDS;
pub use tokens::Expression;
pub use transaction::{Begin, IsolationLevel, SetConstraints, SetTransaction, TransactionMode};
pub(crate) use traversal::Traversal;
pub use trigger::{CreateTrigger, DropTrigger, RenameTrigger, SwitchedTrigger, WhichTrigger};
pub use type_definition::{AlterType, CreateComposite, CreateEnum, TypeChange};
pub use types::{TypeKind, TypeReference, type_of_text};
pub(crate) use variadic::behind_variadic;
pub use view::{AlterView, CreateView, Star, stored_query};
