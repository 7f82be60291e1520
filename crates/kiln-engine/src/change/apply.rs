//! Changes of the catalog in force.

use kiln_storage::error::Result;

use super::catalog_change::CatalogChange;
use crate::engine::Engine;
use crate::errors;
use crate::kernel::{Beside, CLOSING};

impl Engine {
    /// Changes the catalog. `change` runs while no transaction does; what it changed comes into
    /// force when it returns `Ok`, all at once, and not at all when it returns an error.
    ///
    /// Open blocks of sessions that wait for their clients stand aside, unless they have used a
    /// table that the change replaces or removes: then `change` runs **again** when these blocks
    /// are over, and its first result is forgotten. All others go on until then. Under `tictoc+ts`
    /// and `mvcc+ts` a change of the split columns of a table waits for every open block.
    ///
    /// Procedures that use a changed table ([`CatalogChange::stale_procedures`]) must be compiled
    /// again in the same change. Programs that others hold and that use one are refused with
    /// 55000 from then on, and blocks that began before and come to use one with 40001.
    ///
    /// # Errors
    /// Those of `change`; 55P03 when transactions that are in the way do not end within
    /// [`Options::ddl_wait_ms`](crate::Options::ddl_wait_ms), for instance because the caller has
    /// one open itself; 2BP01 when a procedure still uses a changed table; 57P01 when the database
    /// is closed.
    pub fn change_catalog<T>(
        &self,
        mut change: impl FnMut(&mut CatalogChange<'_>) -> Result<T>,
    ) -> Result<T> {
        let inner = self.inner();
        if inner.gate.state() & CLOSING != 0 {
            return Err(errors::closing());
        }
        inner.check_log_takes_changes()?;
        let deadline_ns = inner.change_deadline();
        // Tables whose blocks it waits for; barred until the change is over.
        let mut bars = Vec::new();
        let mut beside = Beside::Blocks;
        loop {
            let alone = inner.shut_gate_for_change(beside, deadline_ns)?;
            let mut catalog_change = CatalogChange::new(inner, inner.catalog());
            let result = change(&mut catalog_change);
            if !catalog_change.awaited().is_empty() {
                let bar = inner.blocks.bar(catalog_change.awaited().to_vec());
                drop(alone);
                if !bar.wait(None, deadline_ns) {
                    return Err(result.err().unwrap_or_else(|| catalog_change.in_use()));
                }
                bars.push(bar);
                continue;
            }
            let result = result?;
            let waits_for_all = catalog_change.splits_tables() && inner.common().orders_columns();
            if waits_for_all && beside == Beside::Blocks && !inner.gate.is_empty() {
                beside = Beside::Nothing;
                continue;
            }
            catalog_change.check_logged()?;
            let (catalog, replaced) = catalog_change.complete()?;
            let logged = inner.log_statement(&catalog);
            inner.put_in_force(&alone, catalog, replaced, logged);
            inner.await_durable(logged)?;
            inner.forget_change(logged);
            return Ok(result);
        }
    }

    /// Whether a change of the catalog waits for blocks that use the table called `name`.
    pub fn is_awaited(&self, name: &str) -> bool {
        let catalog = self.catalog();
        let id = catalog.table(name).map(|table| table.id());
        id.is_some_and(|id| self.inner().blocks.is_barred(id))
    }
}
