//! Restoring: what a log and checkpoints have kept is put back.

use kiln_platform::sync::lock;
use kiln_storage::bytes::Reader;
use kiln_storage::error::Result;
use kiln_storage::redo;
use kiln_storage::restore::{Mismatch, Restorer};
use kiln_storage::slot::Heap;

use crate::catalog::Catalog;
use crate::change::CatalogChange;
use crate::engine::Engine;

/// Puts commits back into the tables of a catalog, while no transaction runs.
pub struct Restoration<'a> {
    restorer: Restorer<'a>,
    catalog: &'a Catalog,
    heap: Heap,
}

impl Restoration<'_> {
    /// Applies what a commit wrote, as [`kiln_storage::redo`] has it.
    ///
    /// # Errors
    /// XX001 for bytes that are no commit of these tables, or that does not fit to the rows where that is refused.
    pub fn commit(&mut self, bytes: &[u8], mismatch: Mismatch) -> Result<()> {
        let mut reader = Reader::new(bytes);
        self.heap.clear();
        let table = |id| self.catalog.table_by_id(id).map(|table| &**table);
        redo::read_commit(&mut reader, table, &mut self.heap, |change, heap| {
            self.restorer.change(change, heap, mismatch)
        })?;
        Ok(())
    }
}

impl Engine {
    /// Has `body` put commits back while no transaction runs. [`CatalogChange::restore_indexes`] is needed after the last one, and
    /// then [`Engine::set_protocol`], as the protocol has not seen the rows come.
    ///
    /// # Errors
    /// Those of `body`; 55P03 when running transactions do not end within [`Options::ddl_wait_ms`](crate::Options::ddl_wait_ms).
    pub fn restore<T>(&self, body: impl FnOnce(&mut Restoration<'_>) -> Result<T>) -> Result<T> {
        let inner = self.inner();
        let _alone = inner.shut_gate()?;
        let (participant, catalog) = (lock(&inner.maintenance), inner.catalog());
        body(&mut Restoration {
            restorer: Restorer::new(&participant),
            catalog: &catalog,
            heap: Heap::new(),
        })
    }
}

impl CatalogChange<'_> {
    /// Builds all indexes but the first of each table anew, from that one. The catalog keeps its number, as the statements of a log count on
    /// it.
    ///
    /// # Errors
    /// XX001 when rows that were restored violate a unique index.
    pub fn restore_indexes(&mut self) -> Result<()> {
        self.keep_version();
        let tables: Vec<_> = self.catalog().tables().map(|(_, it)| it.clone()).collect();
        for table in tables {
            if table.indexes().len() > 1 {
                let restored = table.with_restored_indexes(&lock(&self.inner.maintenance))?;
                self.replace(&table.schema().name, restored);
            }
        }
        Ok(())
    }
}
