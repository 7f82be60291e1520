//! Restoring: what a log and checkpoints have kept is put back.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::lock;
use kiln_storage::bytes::Reader;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::redo::{self, ReadChange};
use kiln_storage::restore::{Mismatch, Restorer, Waiting};
use kiln_storage::schema::TableId;
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;

use crate::catalog::Catalog;
use crate::change::CatalogChange;
use crate::engine::Engine;

/// Puts commits back into the tables of a catalog, while no transaction runs.
pub struct Restoration<'a> {
    restorer: Restorer<'a>,
    catalog: &'a Catalog,
    /// Tables that were looked up, by the last digits of their numbers.
    known: [Option<&'a Table>; KNOWN],
    heap: Heap,
    /// Rows that wait for the end of a log epoch.
    waiting: Vec<Waiting>,
}

/// Tables whose numbers differ by less are looked up once.
const KNOWN: usize = 64;

/// The table with this number.
fn find<'a>(
    catalog: &'a Catalog,
    known: &mut [Option<&'a Table>; KNOWN],
    id: TableId,
) -> Option<&'a Table> {
    let known = &mut known[id.0 as usize % KNOWN];
    if known.is_none_or(|table| table.id() != id) {
        *known = catalog.table_by_id(id).map(|table| &**table);
    }
    *known
}

impl Restoration<'_> {
    /// Applies what a commit wrote, as [`kiln_storage::redo`] has it: to rows, and to the first index of each table.
    ///
    /// # Errors
    /// XX001 for bytes that are no commit of these tables, or that does not fit to the rows where that is refused.
    pub fn commit(&mut self, bytes: &[u8], mismatch: Mismatch) -> Result<()> {
        self.read(bytes, |restorer, change, heap| {
            restorer.change(change, heap, mismatch)
        })
    }

    /// As [`Restoration::commit`], to all indexes, after [`Engine::end_restoration`]. [`Restoration::end_epochs`] comes after the last commit of a
    /// log epoch.
    ///
    /// # Errors
    /// XX001 for bytes that are no commit of these tables, or that does not fit to the rows.
    pub fn whole_commit(&mut self, bytes: &[u8]) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.read(bytes, |restorer, change, heap| {
            restorer.unlink(change, heap, &mut waiting)
        })?;
        self.read(bytes, |restorer, change, heap| {
            restorer.change(change, heap, Mismatch::Refused)?;
            restorer.link(change, heap, &mut waiting)
        })?;
        self.waiting = waiting;
        Ok(())
    }

    /// All commits of their log epochs were applied.
    ///
    /// # Errors
    /// XX001 when rows violate a unique index.
    pub fn end_epochs(&mut self) -> Result<()> {
        let find = |id| self.catalog.table_by_id(id).map(|table| &**table);
        self.restorer.link_waiting(&mut self.waiting, find)
    }

    fn read(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&Restorer<'_>, &ReadChange<'_>, &mut Heap) -> Result<()>,
    ) -> Result<()> {
        let mut reader = Reader::new(bytes);
        self.heap.clear();
        let table = |id| find(self.catalog, &mut self.known, id);
        redo::read_commit(&mut reader, table, &mut self.heap, |change, heap| {
            each(&self.restorer, change, heap)
        })?;
        Ok(())
    }

    /// Inserts a row of a checkpoint into the table with this number.
    ///
    /// # Errors
    /// XX001 when there is no such table, or it has no such row, or a row with its key.
    pub fn row(&mut self, table: TableId, bytes: &[u8]) -> Result<()> {
        let found = find(self.catalog, &mut self.known, table).ok_or_else(|| {
            let message = format!("the catalog has no table {}", table.0);
            Error::new(SqlState::DATA_CORRUPTED, message)
        })?;
        let mut reader = Reader::new(bytes);
        self.heap.clear();
        redo::read_row(found, &mut reader, &mut self.heap, |change, heap| {
            self.restorer.change(change, heap, Mismatch::Refused)
        })
    }
}

impl Engine {
    /// From here to [`Engine::end_restoration`] rows are restored, with [`Engine::restore`], and changes of the catalog leave indexes
    /// empty besides the first of each table: the rows of a fuzzy checkpoint may violate unique ones for a while.
    pub fn begin_restoration(&self) {
        // Relaxed: as in `Shared::is_restoring`.
        self.inner().restoring.store(true, Ordering::Relaxed);
    }

    /// All rows are there. `recompile` makes the procedures whose tables are others, once all indexes are built. Then the protocol takes the
    /// rows over.
    ///
    /// # Errors
    /// XX001 when rows violate a unique index; those of `recompile`; 55P03 as for [`Engine::change_catalog`].
    pub fn end_restoration(
        &self,
        recompile: impl Fn(&mut CatalogChange<'_>) -> Result<()>,
    ) -> Result<()> {
        self.inner().restoring.store(false, Ordering::Relaxed);
        self.change_catalog(|change| {
            change.restore_indexes()?;
            recompile(change)
        })?;
        self.set_protocol(self.protocol())
    }

    /// Has `body` put rows back while no transaction runs.
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
            known: [None; KNOWN],
            heap: Heap::new(),
            waiting: Vec::new(),
        })
    }
}

impl CatalogChange<'_> {
    /// Builds all indexes but the first of each table anew, from that one. The catalog keeps its number, as the statements of a log count on
    /// it.
    fn restore_indexes(&mut self) -> Result<()> {
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
