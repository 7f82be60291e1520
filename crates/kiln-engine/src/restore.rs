//! Restoring: what a log and checkpoints have kept is put back.

use kiln_durability::checkpoint::Block;
use kiln_platform::atomic::Ordering;
use kiln_platform::sync::{Mutex, lock};
use kiln_storage::bytes::Reader;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::redo::{self, ReadChange};
use kiln_storage::restore::{Crew, Ends, Mismatch};
use kiln_storage::schema::TableId;
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;

use crate::change::CatalogChange;
use crate::engine::Engine;

/// Puts commits and rows back into the tables of a catalog, while no transaction runs: with as many threads as the database has workers.
pub struct Restoration<'a> {
    crew: Crew<'a>,
    /// The tables in the order of their numbers.
    tables: Vec<(TableId, &'a Table)>,
}

/// The table with this number.
fn find<'a>(tables: &[(TableId, &'a Table)], id: TableId) -> Option<&'a Table> {
    let at = tables.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    Some(tables[at].1)
}

fn each_change(
    tables: &[(TableId, &Table)],
    commit: &[u8],
    heap: &mut Heap,
    each: impl FnMut(&ReadChange<'_>, &mut Heap) -> Result<()>,
) -> Result<()> {
    heap.clear();
    let table = |id| find(tables, id);
    redo::read_commit(&mut Reader::new(commit), table, heap, each).map(drop)
}

impl Restoration<'_> {
    /// Applies what commits wrote, which [`kiln_storage::redo`] has one after the other in `bytes`, up to these ends: to rows, and to the first
    /// index of each table.
    ///
    /// # Errors
    /// XX001 for bytes that are no commits of these tables, or that do not fit to the rows where that is refused.
    pub fn commits(&mut self, bytes: &[u8], ends: &Ends) -> Result<()> {
        let tables = &self.tables;
        self.crew.commits(|id| find(tables, id), bytes, ends)
    }

    /// As [`Restoration::commits`], to all indexes, after [`Engine::end_restoration`]: one thread applies them in the order in which they
    /// happened.
    ///
    /// # Errors
    /// As there; what does not fit is refused.
    pub fn whole_commits(&mut self, bytes: &[u8], ends: &Ends) -> Result<()> {
        let (tables, mut heap, mut start) = (&self.tables, Heap::new(), 0);
        self.crew.alone(|restorer| {
            for &(end, _) in ends {
                let commit = &bytes[start..end];
                each_change(tables, commit, &mut heap, |change, heap| {
                    restorer.unlink(change, heap)
                })?;
                each_change(tables, commit, &mut heap, |change, heap| {
                    restorer.change(change, heap, Mismatch::Refused)?;
                    restorer.link(change, heap)
                })?;
                start = end;
            }
            Ok(())
        })
    }

    /// Inserts the rows of the blocks of a checkpoint that `next` gives, each with the number of its table, until there are none. Returns
    /// how many rows these were. The threads call `next` one after the other.
    ///
    /// # Errors
    /// Those of `next`; XX001 when there is no such table, or it has no such row, or a row with its key.
    pub fn blocks(
        &mut self,
        next: impl FnMut(&mut Block) -> Result<Option<TableId>> + Send,
    ) -> Result<u64> {
        let (tables, next) = (&self.tables, Mutex::new(next));
        let counts = self.crew.run(|_, restorer| {
            let (mut heap, mut block, mut count) = (Heap::new(), Block::default(), 0);
            loop {
                let given = (lock(&next))(&mut block)?;
                let Some(id) = given else {
                    return Ok(count);
                };
                let table = find(tables, id).ok_or_else(|| {
                    let message = format!("the catalog has no table {}", id.0);
                    Error::new(SqlState::DATA_CORRUPTED, message)
                })?;
                for row in block.rows() {
                    let mut reader = Reader::new(row);
                    heap.clear();
                    let restored = redo::read_row(table, &mut reader, &mut heap, |change, heap| {
                        restorer.change(change, heap, Mismatch::Refused)
                    });
                    restored.map_err(|error| block.damage(error))?;
                    count += 1;
                }
            }
        })?;
        Ok(counts.into_iter().sum())
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
        let mut tables: Vec<_> = (catalog.tables())
            .map(|(_, table)| (table.id(), &**table))
            .collect();
        tables.sort_unstable_by_key(|(id, _)| *id);
        body(&mut Restoration {
            crew: Crew::new(&participant, inner.options.workers),
            tables,
        })
    }
}

impl CatalogChange<'_> {
    /// Builds all indexes but the first of each table anew, from that one, those of several tables at a time. The catalog keeps its
    /// number, as the statements of a log count on it.
    fn restore_indexes(&mut self) -> Result<()> {
        self.keep_version();
        let tables: Vec<_> = (self.catalog().tables())
            .filter(|(_, table)| table.indexes().len() > 1)
            .map(|(_, table)| table.clone())
            .collect();
        let maintenance = lock(&self.inner.maintenance);
        let threads = self.inner.options.workers.min(tables.len());
        let rest = Mutex::new(tables.iter());
        let built = Crew::new(&maintenance, threads).run(|_, restorer| {
            let mut built = Vec::new();
            loop {
                let next = lock(&rest).next();
                let Some(table) = next else {
                    return Ok(built);
                };
                built.push(table.with_restored_indexes(restorer.participant())?);
            }
        })?;
        drop(maintenance);
        let mut built: Vec<_> = built.into_iter().flatten().collect();
        // In the same order whatever thread built them.
        built.sort_unstable_by_key(Table::id);
        for table in built {
            let name = table.schema().name.clone();
            self.replace(&name, table);
        }
        Ok(())
    }
}
