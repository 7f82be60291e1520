//! The derived physical design.
//!
//! What procedures do decides how indexes are built; the schema need not say it. After each change
//! of the stored routines, all their uses of indexes are looked at:
//!
//! - A unique index whose whole key is looked up gets a hash index beside it, which answers in one
//!   step. It is an implementation detail: it has the index's name with `_hash` behind it, and
//!   catalogs shown to people leave it out ([`is_auxiliary`]).
//! - An ordered index all of whose scans fix its first n columns (n ≥ 1) is partitioned by them,
//!   so that scans of one prefix never meet inserts elsewhere (STO §4.5).
//!
//! Either can be turned off when the database is opened ([`kiln_engine::Options`]). Statements
//! outside of procedures never change the design. Which columns are split is
//! derived last (`splits`).

use std::collections::BTreeMap;

use kiln_engine::{Catalog, CatalogChange, IndexUse};
use kiln_platform::sync::Arc;
use kiln_storage::error::Result;
use kiln_storage::qualified::beside;
use kiln_storage::schema::{Deferral, IndexDefinition, IndexKind, IndexMethod, TableId};
use kiln_storage::table::{Index, Table};

use super::routine::recompile_routine;
use super::splits;
use crate::catalog::{HASH_SUFFIX, is_auxiliary};

/// Rounds of deriving and compiling; each may change which indexes the programs use.
const ROUNDS_MAX: usize = 4;

/// Compiles what the change left stale, and derives the design anew.
///
/// # Errors
/// 2BP01 when a routine cannot be without what the change drops.
pub(super) fn derive(change: &mut CatalogChange<'_>) -> Result<()> {
    #[cfg(test)]
    super::panics::planted::reach(super::panics::planted::Step::Derive);
    // No routine knows temporary objects.
    if change.is_temporary() {
        return Ok(());
    }
    recompile(change)?;
    for _ in 0..ROUNDS_MAX {
        if !derive_once(change)? {
            break;
        }
        recompile(change)?;
    }
    splits::derive(change)
}

/// Compiles the routines anew whose tables are others now, or whose compiler looked up what is
/// another thing now: missing tables that came, functions that were replaced.
pub(super) fn recompile(change: &mut CatalogChange<'_>) -> Result<()> {
    for stale in change.stale_procedures() {
        if let Some(source) = stale.source() {
            let fresh = recompile_routine(change.catalog(), source)?;
            change.create_procedure(fresh, true)?;
        }
    }
    Ok(())
}

/// What procedures do with one index.
#[derive(Clone, Copy, Default)]
struct Usage {
    /// Look-ups of a whole key.
    points: usize,
    /// The fewest columns that a scan fixes, when there is a scan.
    prefix: Option<usize>,
}

/// Brings every table's indexes in line with their uses; says whether that changed one.
fn derive_once(change: &mut CatalogChange<'_>) -> Result<bool> {
    let usage = usage(change.catalog());
    let options = change.design();
    let (hashes, partitions) = (options.hash_indexes, options.partitioned_indexes);
    let splits = options.split_indexes;
    let tables: Vec<Arc<Table>> = change
        .catalog()
        .tables()
        .map(|(_, table)| table.clone())
        .collect();
    let mut changed = false;
    for table in tables {
        let name = &table.schema().name;
        let hash_kind = match splits && table.schema().partition_column().is_some() {
            true => IndexKind::SplitHash,
            false => IndexKind::Hash,
        };
        for (position, index) in table.indexes().iter().enumerate() {
            let definition = index.definition();
            if definition.columns.is_empty() || is_auxiliary(&table, definition) {
                continue;
            }
            let own = usage
                .get(&(table.id(), position))
                .copied()
                .unwrap_or_default();
            let hash_name = format!("{}{HASH_SUFFIX}", definition.name);
            let hash = table.indexes().iter().position(|known| {
                known.definition().name == hash_name && known.definition().kind.is_hash()
            });
            let hashed = hash.and_then(|hash| usage.get(&(table.id(), hash)));
            let points = own.points + hashed.map_or(0, |usage| usage.points);
            if hashes && index.supports_lookup() && points > 0 && hash.is_none() {
                let taken = change.catalog().is_relation(&beside(name, &hash_name));
                if !taken {
                    change.add_index(
                        name,
                        IndexDefinition {
                            name: hash_name,
                            columns: definition.columns.clone(),
                            unique: true,
                            nulls_equal: definition.nulls_equal,
                            deferral: Deferral::No,
                            constraint: false,
                            partial: definition.partial,
                            method: IndexMethod::Hash,
                            kind: hash_kind,
                        },
                    )?;
                    changed = true;
                }
            } else if points == 0 && hash.is_some() {
                change.drop_index(name, &hash_name)?;
                changed = true;
            } else if let Some(hash) = hash
                && table.indexes()[hash].definition().kind != hash_kind
            {
                change.rebuild_index(name, &hash_name, hash_kind)?;
                changed = true;
            }
            let fixed = match own.prefix {
                Some(columns) if partitions => fixed_columns(index, columns),
                _ => 0,
            };
            let wanted = fixed.max(if splits {
                dividing_columns(&table, index)
            } else {
                0
            });
            if let IndexKind::Ordered { partition_columns } = definition.kind
                && partition_columns != wanted
            {
                let kind = IndexKind::Ordered {
                    partition_columns: wanted,
                };
                change.rebuild_index(name, &definition.name, kind)?;
                changed = true;
            }
        }
    }
    Ok(changed)
}

/// How many of the leading columns of an index tell the partitions of its table's rows from each
/// other, if any do.
fn dividing_columns(table: &Table, index: &Index) -> usize {
    let Some(column) = table.schema().partition_column() else {
        return 0;
    };
    let columns = &index.definition().columns;
    let position = columns.iter().position(|one| *one == column);
    // Only where it can be cut there, and cheaply: each prefix in use takes a leaf.
    match (position, index.key_layout().end_of(column)) {
        (Some(0), Some(_)) => 1,
        _ => 0,
    }
}

fn usage(catalog: &Catalog) -> BTreeMap<(TableId, usize), Usage> {
    let mut result: BTreeMap<(TableId, usize), Usage> = BTreeMap::new();
    for procedure in catalog.procedures() {
        for IndexUse {
            table,
            index,
            point,
            prefix_columns,
        } in procedure.index_uses()
        {
            let usage = result.entry((*table, usize::from(*index))).or_default();
            if *point {
                usage.points += 1;
            } else {
                let fewest = usage
                    .prefix
                    .map_or(*prefix_columns, |known| known.min(*prefix_columns));
                usage.prefix = Some(fewest);
            }
        }
    }
    result
}

/// How many of the first `columns` columns can partition an index: those of fixed width.
fn fixed_columns(index: &Index, columns: usize) -> usize {
    let declared = index.definition().columns.len();
    let mut count = columns.min(declared);
    while count > 0 && index.key_layout().prefix_bits(count) == 0 {
        count -= 1;
    }
    count
}
