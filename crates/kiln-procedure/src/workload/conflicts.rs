//! Which statement can conflict with which: the static conflict matrix.
//!
//! A *statement* here is what one line of a procedure does to the records of one table. Two
//! statements, of one procedure or two, meet when both run at the same time on one record or range.
//! What happens then, for a protocol that observes timestamps:
//!
//! - [`ReadWrite`](ConflictKind::ReadWrite): one observes what the other changes. With a timestamp
//!   per record that is so whenever one of them touches a record that the other writes; commit-time
//!   updates shrink what is observed, and timestamp splitting says which columns a timestamp is
//!   about.
//! - [`WriteWrite`](ConflictKind::WriteWrite): both write, and neither observes what the other
//!   writes: they take turns at the record's lock and neither fails.
//! - [`Phantom`](ConflictKind::Phantom): one relies on a range or a missing key, the other inserts,
//!   deletes or moves records there.
//!
//! That two statements can conflict does not say that they do: their keys may never be equal.

use kiln_storage::schema::{ColumnSet, TableId};

use super::groups::{Grouping, Weighted};
use crate::ir::{OpId, OperationKind};

/// What one line of a procedure does to the records of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The procedure's name.
    pub procedure: String,
    /// The line, from 1; 0 when it is not known.
    pub line: u32,
    /// The table.
    pub table: TableId,
    /// Its operations.
    pub operations: Vec<OpId>,
    /// The columns that it observes when every update runs where it stands.
    pub observed: ColumnSet,
    /// Those that it observes when updates are deferred to the commit where they can be.
    pub observed_deferring: ColumnSet,
    /// The columns that it writes into existing records.
    pub written: ColumnSet,
    /// Whether it finds existing records.
    pub finds: bool,
    /// Whether it inserts records.
    pub inserts: bool,
    /// Whether it deletes records.
    pub deletes: bool,
    /// The columns by which it finds records, or misses them.
    pub keys: ColumnSet,
}

/// The kinds of conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConflictKind {
    /// One observes what the other changes.
    ReadWrite,
    /// Both write what neither observes.
    WriteWrite,
    /// One relies on a range or a missing key that the other changes.
    Phantom,
}

/// What becomes of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// It stays.
    Stays,
    /// They wait for each other, and neither fails.
    Waits,
    /// Commit-time updates remove it.
    CommitTimeUpdate,
    /// Timestamp splitting removes it.
    TimestampSplitting,
    /// Both together remove it.
    Both,
}

/// A pair of statements that may conflict.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The position of the statement that observes (or of one of both that write).
    pub one: usize,
    /// The position of the statement that writes.
    pub other: usize,
    /// How.
    pub kind: ConflictKind,
    /// The columns it is about: with a resolution, those that were in the way; none when only the
    /// common timestamp was.
    pub columns: ColumnSet,
    /// What becomes of it.
    pub resolution: Resolution,
}

/// The statements of some procedures, in their order, table by table.
pub fn statements(programs: &[Weighted<'_>]) -> Vec<Statement> {
    let mut all: Vec<Statement> = Vec::new();
    for Weighted { program, .. } in programs {
        for (position, operation) in program.operations.iter().enumerate() {
            let op = OpId(position as u16);
            let facts = program.analysis.operation(op);
            let line = operation.position.map_or(0, |(line, _)| line);
            let known = all.iter().position(|statement| {
                statement.procedure == program.name
                    && statement.line == line
                    && statement.table == operation.table
            });
            let at = known.unwrap_or_else(|| {
                all.push(Statement {
                    procedure: program.name.clone(),
                    line,
                    table: operation.table,
                    operations: Vec::new(),
                    observed: ColumnSet::EMPTY,
                    observed_deferring: ColumnSet::EMPTY,
                    written: ColumnSet::EMPTY,
                    finds: false,
                    inserts: false,
                    deletes: false,
                    keys: ColumnSet::EMPTY,
                });
                all.len() - 1
            });
            let statement = &mut all[at];
            statement.operations.push(op);
            match operation.kind {
                OperationKind::Lookup | OperationKind::Scan => {
                    statement.finds = true;
                    statement.keys = statement.keys.union(facts.key_columns);
                }
                OperationKind::Read => {
                    let unread = program.analysis.deferrable().iter();
                    let unread = unread.flat_map(|update| &update.unread);
                    let unread = unread
                        .filter(|(read, _)| *read == op)
                        .fold(ColumnSet::EMPTY, |all, (_, columns)| all.union(*columns));
                    let kept = facts.columns_read.difference(unread);
                    statement.finds = true;
                    statement.observed = statement.observed.union(facts.columns_read);
                    statement.observed_deferring = statement.observed_deferring.union(kept);
                }
                OperationKind::Update => {
                    statement.finds = true;
                    statement.written = statement.written.union(facts.columns_written);
                    // Entries move with the old key.
                    statement.observed = statement.observed.union(facts.key_columns);
                    let deferring = statement.observed_deferring.union(facts.key_columns);
                    statement.observed_deferring = deferring;
                }
                OperationKind::Insert => statement.inserts = true,
                OperationKind::Delete => {
                    statement.finds = true;
                    statement.deletes = true;
                }
            }
        }
    }
    all.sort_by_key(|statement| statement.table);
    all
}

/// All pairs of statements that may conflict. `grouping` gives a table's column groups.
pub fn conflicts<'g>(
    statements: &[Statement],
    grouping: impl Fn(TableId) -> Option<&'g Grouping>,
) -> Vec<Conflict> {
    let mut found = Vec::new();
    for (one, reader) in statements.iter().enumerate() {
        for (other, writer) in statements.iter().enumerate() {
            if reader.table == writer.table {
                let grouping = grouping(reader.table);
                found.extend(read_write((one, reader), (other, writer), grouping));
                found.extend(write_write((one, reader), (other, writer)));
                found.extend(phantom((one, reader), (other, writer)));
            }
        }
    }
    found
}

fn read_write(
    (one, reader): (usize, &Statement),
    (other, writer): (usize, &Statement),
    grouping: Option<&Grouping>,
) -> Option<Conflict> {
    if !reader.finds || writer.written.is_empty() {
        return None;
    }
    let at_once = reader.observed.intersection(writer.written);
    let deferring = reader.observed_deferring.intersection(writer.written);
    let meet = |observed: ColumnSet| match grouping {
        Some(grouping) => grouping.meet(observed, writer.written),
        None => !observed.is_empty(),
    };
    let (columns, resolution) = if !deferring.is_empty() {
        (deferring, Resolution::Stays)
    } else if reader.observed_deferring.is_empty() && !reader.observed.is_empty() {
        // Nothing is observed any more.
        (at_once, Resolution::CommitTimeUpdate)
    } else if reader.observed.is_empty() {
        // It writes blindly, or looks only whether the row is there: no column was in the way.
        if one == other || !reader.written.is_empty() {
            return None;
        }
        (at_once, Resolution::TimestampSplitting)
    } else {
        match (at_once.is_empty(), meet(reader.observed_deferring)) {
            (_, true) => (at_once, Resolution::Stays),
            (true, false) => (at_once, Resolution::TimestampSplitting),
            (false, false) => (at_once, Resolution::Both),
        }
    };
    Some(Conflict {
        one,
        other,
        kind: ConflictKind::ReadWrite,
        columns,
        resolution,
    })
}

fn write_write(
    (one, first): (usize, &Statement),
    (other, second): (usize, &Statement),
) -> Option<Conflict> {
    let columns = first.written.intersection(second.written);
    let blind = |statement: &Statement, by: &Statement| !statement.observed.intersects(by.written);
    let is_one =
        one <= other && !columns.is_empty() && blind(first, second) && blind(second, first);
    is_one.then_some(Conflict {
        one,
        other,
        kind: ConflictKind::WriteWrite,
        columns,
        resolution: Resolution::Waits,
    })
}

fn phantom(
    (one, reader): (usize, &Statement),
    (other, writer): (usize, &Statement),
) -> Option<Conflict> {
    let moves = reader.keys.intersection(writer.written);
    let comes_and_goes = writer.inserts || writer.deletes;
    let columns = match comes_and_goes {
        true => reader.keys,
        false => moves,
    };
    let relies = reader.finds && (comes_and_goes || !moves.is_empty());
    relies.then_some(Conflict {
        one,
        other,
        kind: ConflictKind::Phantom,
        columns,
        resolution: Resolution::Stays,
    })
}
