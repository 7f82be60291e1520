//! Bound subqueries of expressions.

use std::ops::Range;

use super::{Bound, BoundQuery};

/// A bound subquery of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Subquery {
    /// Tells it from others: a copy of it is the same.
    pub number: usize,
    pub kind: SubqueryKind,
    /// For [`SubqueryKind::Any`], the test of one row, which names the row's columns by slots.
    pub operand: Vec<Bound>,
    /// Those slots.
    pub slots: Vec<usize>,
    pub query: BoundQuery,
    /// The numbers of the row sources that belong to the query.
    pub own_sources: Range<u32>,
    /// The numbers of its slots.
    pub own_slots: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubqueryKind {
    /// The value of its only row, NULL without one.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// The values of all rows.
    Array,
    /// Whether the test holds for a row: TRUE, or NULL when it is unknown for one, or FALSE.
    Any,
}
