//! What binding makes: expressions, SELECTs and queries with names resolved, types known and
//! operators chosen, and walks over them.
//!
//! An expression holds subqueries, and a query holds expressions, so that these forms are one
//! recursion. They name nothing of the compiler that makes or emits them.

mod aggregate;
mod expression;
mod parameters;
mod query;
mod routine;
mod row_function;
mod select;
mod subquery;
mod window;

pub(crate) use aggregate::{AggregateCall, AggregateKind, Bits, Deviation};
pub(super) use expression::SESSION_STYLE;
pub use expression::SourceId;
pub(crate) use expression::{Bound, Builtin, Kind, LockRow, Operation};
pub(crate) use parameters::{OpenParameter, Parameters};
pub use parameters::{PARAMETERS_MAX, count};
pub(super) use query::rewrite_in_place;
pub(crate) use query::{
    Body, BoundQuery, OrderKey, Recursive, SetOperation, WithQuery, WithReference,
};
pub use query::{ColumnMeta, ColumnOrigin};
pub(crate) use routine::Callee;
pub(super) use routine::Shape;
pub use routine::{ResultKind, Routine, RoutineParameter};
pub(crate) use row_function::{RowFunction, RowFunctions};
pub(crate) use select::{FromItem, FullJoin, Grouping, ItemKind, Select};
pub(super) use select::{Output, conjuncts};
pub(crate) use subquery::{Subquery, SubqueryKind};
pub(crate) use window::{
    Definition, Frame, FrameBound, Offset, PlacedCall, Window, WindowCall, WindowFunction, Windowed,
};
