//! Which columns of a record a transaction looks at.
//!
//! A protocol that keeps several timestamps per record notes those that cover what is observed
//! here, and none where nothing is: that the row is there is held by the write, or checked for
//! itself.

use kiln_storage::record::Words;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;

use super::Analysis;
use crate::ir::*;
use crate::names::for_each_step;
use crate::procedure::Procedure;

/// The columns that are observed of the records that a look-up, a scan or an insert finds: read,
/// or part of a key by which they were found or of an index entry that moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// When every update runs where it stands.
    pub at_once: ColumnSet,
    /// When those that can be are deferred to the commit.
    pub deferring: ColumnSet,
    /// The columns that are written, whenever that is.
    pub written: ColumnSet,
    /// Whether the records may be deleted.
    pub deletes: bool,
    /// Whether all that is done to the records are updates that can be deferred to the commit, and
    /// nothing of them is looked at: then it does not matter who else defers
    /// such updates of the same records to a commit, and when.
    pub is_deferred: bool,
    /// What of the records is read or written; the header always.
    pub touched: Words,
}

impl Observed {
    /// Every column of a table with so many.
    pub fn all(columns: usize) -> Observed {
        let all: ColumnSet = (0..columns as u16).map(ColumnId).collect();
        Observed {
            at_once: all,
            deferring: all,
            touched: Words::HEADER,
            ..Observed::default()
        }
    }

    /// What is observed with or without commit-time updates.
    #[inline(always)]
    pub fn columns(&self, deferring: bool) -> ColumnSet {
        match deferring {
            true => self.deferring,
            false => self.at_once,
        }
    }
}

/// The columns of indexes whose entries move when `changed` are written.
fn moved(table: &Table, changed: ColumnSet) -> ColumnSet {
    let indexes = table.indexes().iter();
    indexes
        .map(|index| index.columns())
        .filter(|columns| columns.intersects(changed))
        .fold(ColumnSet::EMPTY, ColumnSet::union)
}

/// The columns of an index by which a record was found, as far as they can change: a record keeps
/// its primary key for life. The IR does not demand that, but front ends do: the row goes and
/// another one comes. Otherwise a record could be found by its key, not be observed, and be
/// written under another key.
fn changeable(table: &Table, index: u16) -> ColumnSet {
    let primary: ColumnSet = table.schema().primary_key.iter().copied().collect();
    let columns = table.indexes()[index as usize].columns();
    columns
        .iter()
        .filter(|column| !primary.contains(*column))
        .collect()
}

/// Where columns are in a record.
fn touched(table: &Table, columns: ColumnSet) -> Words {
    let ranges = columns
        .iter()
        .map(|column| table.layout().column(column).byte_range());
    ranges.fold(Words::HEADER, Words::with_bytes)
}

/// What every operation that finds records observes of them.
pub(super) fn derive(procedure: &Procedure, analysis: &Analysis) -> Vec<Observed> {
    let none = Observed {
        touched: Words::HEADER,
        ..Observed::default()
    };
    let mut all = vec![none; procedure.operations.len()];
    let mut left = vec![true; procedure.operations.len()];
    for_each_step(&procedure.body, &mut |step| {
        let (op, table) = match step {
            Step::Lookup {
                op, table, index, ..
            }
            | Step::Scan {
                op, table, index, ..
            } => {
                let table = &procedure.tables[table.0 as usize];
                let columns = changeable(table, *index);
                let observed = &mut all[op.0 as usize];
                observed.at_once = observed.at_once.union(columns);
                observed.deferring = observed.deferring.union(columns);
                return;
            }
            Step::Read { op, table, .. }
            | Step::Update { op, table, .. }
            | Step::Delete { op, table, .. } => (*op, &procedure.tables[table.0 as usize]),
            _ => return,
        };
        let facts = analysis.operation(op);
        let (mut at_once, mut deferring, mut written) =
            (ColumnSet::EMPTY, ColumnSet::EMPTY, ColumnSet::EMPTY);
        match facts.kind {
            OperationKind::Read => {
                at_once = facts.columns_read;
                let unread = analysis
                    .deferrable()
                    .iter()
                    .flat_map(|update| &update.unread);
                let unread = unread
                    .filter(|(read, _)| *read == op)
                    .fold(ColumnSet::EMPTY, |all, (_, columns)| all.union(*columns));
                let observed = at_once.iter().filter(|column| !unread.contains(*column));
                deferring = observed.collect();
            }
            OperationKind::Update => {
                written = facts.columns_written;
                at_once = moved(table, written);
                deferring = at_once;
            }
            _ => {}
        }
        let is_deferred = match facts.kind {
            OperationKind::Read => deferring.is_empty(),
            OperationKind::Update => {
                let deferred = analysis.deferral_of(op);
                deferring.is_empty() && deferred.is_some_and(|left| left.columns == written)
            }
            _ => false,
        };
        let touched = touched(table, facts.columns_read.union(facts.columns_written));
        for finder in &facts.found_by {
            left[finder.0 as usize] &= is_deferred;
            let observed = &mut all[finder.0 as usize];
            observed.at_once = observed.at_once.union(at_once);
            observed.deferring = observed.deferring.union(deferring);
            observed.written = observed.written.union(written);
            observed.touched = observed.touched.union(touched);
            observed.deletes |= facts.kind == OperationKind::Delete;
        }
    });
    for (observed, is_deferred) in all.iter_mut().zip(left) {
        observed.is_deferred =
            is_deferred && !observed.written.is_empty() && observed.deferring.is_empty();
    }
    all
}
