//! Which columns of tables are split, and which have a lock of their own where
//! transactions claim records by column group: derived from what the stored procedures do with a
//! table, and the former from how often they were called.
//!
//! It is derived when the gate is shut anyway, with each statement that defines, and when ANALYZE
//! asks for it. A table's split changes
//!
//! - when a statement changes what procedures do with the table: until a thousand of their calls
//!   were counted ([`CALLS_MIN`]) all procedures weigh the same,
//! - and when its procedures were called so often that the counts say something, and by these
//!   counts another split is better by a tenth ([`groups::better`]).
//!
//! In the second case a statement that defines something else does not wait for blocks that use the
//! table: it leaves the split to the next one, and to ANALYZE, which waits.
//!
//! Else it stays, so that a database that was opened anew, and has counted nothing yet, goes on
//! with the split that its catalog was written with.
//!
//! Columns that have a lock of their own are those that no procedure writes. They follow from the
//! procedures alone, so that no catalog keeps them.

use kiln_engine::{Catalog, CatalogChange, Procedure};
use kiln_platform::sync::Arc;
use kiln_procedure::workload::groups::{self, Usage, Weighted};
use kiln_storage::error::Result;
use kiln_storage::schema::{ColumnSet, TableId};
use kiln_storage::table::Table;

/// With fewer calls of the procedures that use a table, all of these weigh the same.
const CALLS_MIN: u64 = 1_000;

/// Derives the splits of all tables, or makes those of the statement that is made again.
pub(super) fn derive(change: &mut CatalogChange<'_>) -> Result<()> {
    derive_unwritten(change)?;
    if change.redo_splits()? {
        return Ok(());
    }
    derive_all(change, false)
}

/// As [`derive`] for ANALYZE.
pub(super) fn analyse_all(change: &mut CatalogChange<'_>) -> Result<()> {
    match change.redo_splits()? {
        true => Ok(()),
        false => derive_all(change, true),
    }
}

/// Derives which columns of all tables have a lock of their own, if any have.
pub(super) fn derive_unwritten(change: &mut CatalogChange<'_>) -> Result<()> {
    if !change.claims_columns() {
        return Ok(());
    }
    let tables = change.catalog().tables();
    let tables: Vec<(String, Arc<Table>)> = tables
        .map(|(name, table)| (name.to_owned(), table.clone()))
        .collect();
    for (name, table) in tables {
        let columns = table.schema().columns.len();
        let derive = |programs: &[Weighted<'_>]| groups::unwritten(columns, programs, table.id());
        let unwritten = with_programs(change.catalog(), |_| 1.0, derive);
        change.set_unwritten(&name, unwritten)?;
    }
    Ok(())
}

fn derive_all(change: &mut CatalogChange<'_>, waits: bool) -> Result<()> {
    let names = change.catalog().tables().map(|(name, _)| name.to_owned());
    derive_of(change, &names.collect::<Vec<_>>(), waits)
}

/// Derives the splits of these tables, or makes those of the statement that is made again.
///
/// # Errors
/// 42P01.
pub(super) fn analyse(change: &mut CatalogChange<'_>, names: &[String]) -> Result<()> {
    match change.redo_splits()? {
        true => Ok(()),
        false => derive_of(change, names, true),
    }
}

/// `waits` says that a better split is worth waiting for blocks that use the table.
fn derive_of(change: &mut CatalogChange<'_>, names: &[String], waits: bool) -> Result<()> {
    for name in names {
        let table = change.catalog().require_table(name)?;
        let former = change.before().table(name);
        let (split, is_counted) = split(change.catalog(), table, change.before(), former);
        if waits || !is_counted || change.can_split_now(table.id()) {
            change.split_table(name, split)?;
        }
    }
    Ok(())
}

/// The columns of a table to be split, and whether that follows from calls alone; before the
/// change it was `former`, if it was there.
fn split(
    catalog: &Catalog,
    table: &Table,
    before: &Catalog,
    former: Option<&Arc<Table>>,
) -> (ColumnSet, bool) {
    let present = table.split();
    let columns = table.schema().columns.len();
    let usages = usages(catalog, table.id(), |_| 1.0);
    let calls = calls(catalog, table.id());
    if calls >= CALLS_MIN {
        // One more, so that a procedure never called yet is one rarely called.
        let counted = |procedure: &Procedure| procedure.calls() as f64 + 1.0;
        let usages = self::usages(catalog, table.id(), counted);
        return (groups::better(columns, present, usages), true);
    }
    let was_used = match former {
        Some(former) => self::usages(before, former.id(), |_| 1.0),
        None => Vec::new(),
    };
    let does = |usage: &Usage| (usage.procedure.clone(), usage.observed, usage.written);
    let split = match usages.iter().map(does).eq(was_used.iter().map(does)) {
        true => present,
        false => groups::best(columns, usages).split(),
    };
    (split, false)
}

/// What the procedures of a catalog do with a table.
fn usages(catalog: &Catalog, table: TableId, weight: impl Fn(&Procedure) -> f64) -> Vec<Usage> {
    with_programs(catalog, weight, |programs| {
        groups::usages(programs, table, true)
    })
}

/// Calls `body` with the programs of a catalog's procedures.
fn with_programs<R>(
    catalog: &Catalog,
    weight: impl Fn(&Procedure) -> f64,
    body: impl FnOnce(&[Weighted<'_>]) -> R,
) -> R {
    let procedures: Vec<&Arc<Procedure>> = catalog.procedures().collect();
    let weighted = |procedure: &&Arc<Procedure>| (procedure.program().clone(), weight(procedure));
    let programs: Vec<_> = procedures.iter().map(weighted).collect();
    let programs: Vec<Weighted<'_>> = programs
        .iter()
        .map(|(program, weight)| Weighted {
            program,
            weight: *weight,
        })
        .collect();
    body(&programs)
}

/// How often the procedures were called that use a table.
fn calls(catalog: &Catalog, table: TableId) -> u64 {
    let uses = |procedure: &&Arc<Procedure>| {
        let mut tables = procedure.program().tables.iter();
        tables.any(|used| used.id() == table)
    };
    let procedures = catalog.procedures().filter(uses);
    procedures.fold(0, |sum: u64, procedure| {
        sum.saturating_add(procedure.calls())
    })
}
