//! Bound calls of functions that give rows.

use kiln_storage::types::DataType;

use super::{Bound, Callee};

/// Functions side by side.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowFunctions {
    pub parts: Vec<RowFunction>,
    /// Whether a number of the row follows, from 1: WITH ORDINALITY.
    pub has_ordinality: bool,
}

/// A call that gives rows.
#[derive(Clone, Debug)]
pub(crate) enum RowFunction {
    /// The elements of an array, with the column's name where the function gives it one.
    Unnest(Bound, Option<Box<str>>),
    /// The integers from the first to the second, by a constant.
    Series(Bound, Bound, i64),
    /// A call of a user's function.
    Routine(Box<Callee>, Vec<Bound>),
    /// One row of one value.
    Value(Bound),
}

impl RowFunction {
    pub(in super::super) fn expressions(&self) -> Vec<&Bound> {
        match self {
            RowFunction::Unnest(bound, _) | RowFunction::Value(bound) => vec![bound],
            RowFunction::Series(first, last, _) => vec![first, last],
            RowFunction::Routine(_, arguments) => arguments.iter().collect(),
        }
    }

    pub(in super::super) fn expressions_mut(&mut self) -> Vec<&mut Bound> {
        match self {
            RowFunction::Unnest(bound, _) | RowFunction::Value(bound) => vec![bound],
            RowFunction::Series(first, last, _) => vec![first, last],
            RowFunction::Routine(_, arguments) => arguments.iter_mut().collect(),
        }
    }

    /// Whether the function itself is volatile.
    pub(in super::super) fn calls_volatile(&self) -> bool {
        matches!(self, RowFunction::Routine(callee, _) if callee.is_volatile())
    }

    /// Names and types of its columns; `name` is that of a function of one column.
    pub(in super::super) fn columns(&self, name: &str) -> Vec<(String, DataType)> {
        let one = |data_type: &DataType| vec![(name.to_owned(), data_type.clone())];
        match self {
            RowFunction::Unnest(array, own) => {
                let element = array.data_type.element();
                let name = own.as_deref().unwrap_or(name).to_owned();
                vec![(name, element.unwrap_or_else(|| array.data_type.clone()))]
            }
            RowFunction::Series(first, ..) => one(&first.data_type),
            RowFunction::Routine(callee, _) => callee.columns_in_from(name),
            RowFunction::Value(bound) => one(&bound.data_type),
        }
    }
}
