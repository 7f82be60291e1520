//! Restoring: what a log and checkpoints have kept is put back.

use kiln_durability::checkpoint::Block;
use kiln_platform::atomic::Ordering;
use kiln_platform::sync::{Mutex, lock};
use kiln_storage::bytes::{Reader, corrupt};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::CallAnswer;
use kiln_storage::redo::{self, KeyRoom, KeyedChange};
use kiln_storage::restore::{Crew, Ends, Intended, Mismatch, Restorer, Waiting};
use kiln_storage::schema::TableId;
use kiln_storage::sequence::{SequenceId, SequenceState};
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;

use crate::calls::{IdempotencyKey, read_answer};
use crate::change::CatalogChange;
use crate::engine::Engine;

/// Puts commits and rows back into the tables of a catalog, while no transaction runs.
pub struct Restoration<'a> {
    crew: Crew<'a>,
    tables: Tables<'a>,
}

/// Tables by their numbers.
struct Tables<'a> {
    /// In the order of these.
    all: Vec<(TableId, &'a Table)>,
    /// By the last digits of these, where tables have different ones: most databases have few
    /// tables.
    few: [Option<&'a Table>; FEW],
}

const FEW: usize = 64;

impl<'a> Tables<'a> {
    fn new(tables: impl Iterator<Item = &'a Table>) -> Tables<'a> {
        let mut all: Vec<_> = tables.map(|table| (table.id(), table)).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        let mut few = [None; FEW];
        all.iter()
            .for_each(|(id, table)| few[id.0 as usize % FEW] = Some(*table));
        Tables { all, few }
    }

    #[inline]
    fn find(&self, id: TableId) -> Option<&'a Table> {
        let found = self.few[id.0 as usize % FEW].filter(|table| table.id() == id);
        found.or_else(|| {
            let at = self.all.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            Some(self.all[at].1)
        })
    }

    fn each_change(
        &self,
        commit: &[u8],
        each: impl FnMut(KeyedChange<'a, '_>) -> Result<()>,
    ) -> Result<()> {
        let (table, mut room) = (|id| self.find(id), KeyRoom::default());
        redo::read_keys(&mut Reader::new(commit), table, &mut room, each).map(drop)
    }
}

/// Rows of a block that are inserted together.
const ROWS: usize = 64;

impl Restoration<'_> {
    /// Applies what commits wrote, which [`kiln_storage::redo`] has one after the other in `bytes`,
    /// up to these ends: to rows, and to the first index of each table.
    ///
    /// # Errors
    /// XX001 for bytes that are no commits of these tables, or that do not fit to the rows where
    /// that is refused; with the end of the first such commit.
    pub fn commits(
        &mut self,
        bytes: &[u8],
        ends: &Ends,
    ) -> std::result::Result<(), (usize, Error)> {
        let tables = &self.tables;
        self.crew.commits(|id| tables.find(id), bytes, ends)
    }

    /// As [`Restoration::commits`], to all indexes, after [`Engine::end_restoration`]: one thread
    /// applies them, up to the end of a log epoch.
    ///
    /// # Errors
    /// Those of [`Restoration::commits`]; a change that does not fit is refused.
    pub fn whole_commits(
        &mut self,
        bytes: &[u8],
        ends: &Ends,
    ) -> std::result::Result<(), (usize, Error)> {
        let (tables, mut heap, mut start) = (&self.tables, Heap::new(), 0);
        let mut waiting = Vec::new();
        self.crew.alone(|restorer| {
            for &(end, _) in ends {
                let commit = &bytes[start..end];
                let applied = whole_commit(tables, restorer, commit, &mut heap, &mut waiting);
                applied.map_err(|error| (end, error))?;
                start = end;
            }
            let linked = restorer.link_waiting(&mut waiting, |id| tables.find(id));
            linked.map_err(|error| (start, error))
        })
    }

    /// Inserts the rows of the blocks of a checkpoint that `next` gives, each with the number of
    /// its table, until there are none. Returns how many rows these were. The threads call `next`
    /// one after the other.
    ///
    /// # Errors
    /// Those of `next`; XX001 when there is no such table, or it has no such row, or a row with its
    /// key.
    pub fn blocks(
        &mut self,
        next: impl FnMut(&mut Block) -> Result<Option<TableId>> + Send,
    ) -> Result<u64> {
        let (tables, next) = (&self.tables, Mutex::new(next));
        let counts = self.crew.run(|_, restorer| {
            let (mut block, mut heap, mut count) = (Block::default(), Heap::new(), 0);
            loop {
                let given = (lock(&next))(&mut block)?;
                let Some(id) = given else {
                    return Ok(count);
                };
                let table = tables.find(id).ok_or_else(|| {
                    let message = format!("the catalog has no table {}", id.0);
                    Error::new(SqlState::DATA_CORRUPTED, message)
                })?;
                let restored = insert_rows(table, restorer, &block, &mut heap);
                count += restored.map_err(|error| block.damage(error))?;
            }
        });
        counts.into_iter().sum()
    }
}

/// Applies a commit to all indexes.
fn whole_commit(
    tables: &Tables<'_>,
    restorer: &Restorer<'_>,
    commit: &[u8],
    heap: &mut Heap,
    waiting: &mut Vec<Waiting>,
) -> Result<()> {
    tables.each_change(commit, |change| restorer.unlink(&change, heap, waiting))?;
    tables.each_change(commit, |change| {
        restorer.change(&change, heap, Mismatch::Refused)?;
        restorer.link(&change, heap, waiting)
    })
}

/// Inserts the rows of a block; returns how many there were.
fn insert_rows(
    table: &Table,
    restorer: &Restorer<'_>,
    block: &Block,
    heap: &mut Heap,
) -> Result<u64> {
    let (mut rows, mut count, mut room) = (Vec::with_capacity(ROWS), 0, KeyRoom::default());
    let mut bytes = block.rows().peekable();
    while let Some(row) = bytes.next() {
        rows.push(Intended {
            change: redo::read_keyed_row(table, &mut Reader::new(row), &mut room)?,
            mismatch: Mismatch::Refused,
            end: 0,
        });
        if rows.len() == ROWS || bytes.peek().is_none() {
            let inserted = restorer.changes(&rows, heap);
            inserted.map_err(|(_, error)| error)?;
            count += rows.len() as u64;
            rows.clear();
        }
    }
    Ok(count)
}

impl Engine {
    /// Remembers how a call ended in an earlier life of the database, from the
    /// [answer](kiln_storage::journal::CallAnswer) that listeners got then; at `ended_at_us`, in
    /// microseconds since 1970. A call that is made again with the key gets that outcome, for as
    /// long as if the database had not been closed. Answers are restored in the order in which
    /// listeners got them.
    ///
    /// # Errors
    /// XX001 when it is the answer of no call.
    pub fn restore_answer(&self, answer: &CallAnswer<'_>, ended_at_us: i64) -> Result<()> {
        let key = std::str::from_utf8(answer.key).ok();
        let key = key.and_then(|key| IdempotencyKey::new(key).ok());
        let key = key.ok_or_else(|| corrupt("no idempotency key has such bytes"))?;
        let answer = read_answer(answer.bytes)?;
        (self.inner().idempotency).restore(key, answer, ended_at_us);
        Ok(())
    }

    /// From here to [`Engine::end_restoration`] rows are restored, with [`Engine::restore`], and
    /// changes of the catalog leave indexes empty besides the first of each table: the rows of a
    /// fuzzy checkpoint may violate unique ones for a while.
    pub fn begin_restoration(&self) {
        // Relaxed: as in `EngineInner::is_restoring`.
        self.inner().restoring.store(true, Ordering::Relaxed);
    }

    /// All rows are there. `recompile` makes the procedures whose tables are others, once all
    /// indexes are built. Then the protocol takes the rows over.
    ///
    /// # Errors
    /// XX001 when rows violate a unique index; those of `recompile`; 55P03 as for
    /// [`Engine::change_catalog`].
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

    /// A log has kept that a sequence has got this far. One that is not there any more was changed
    /// or dropped later.
    pub fn restore_sequence(&self, id: SequenceId, state: SequenceState) {
        if let Some(sequence) = self.catalog().sequence_by_id(id) {
            sequence.restore(state);
        }
    }

    /// Has `body` put rows back while no transaction runs.
    ///
    /// # Errors
    /// Those of `body`; 55P03 when running transactions do not end within
    /// [`Options::ddl_wait_ms`](crate::Options::ddl_wait_ms).
    pub fn restore<T>(&self, body: impl FnOnce(&mut Restoration<'_>) -> Result<T>) -> Result<T> {
        let inner = self.inner();
        let _alone = inner.shut_gate()?;
        let (participant, catalog) = (lock(&inner.maintenance), inner.catalog());
        body(&mut Restoration {
            crew: Crew::new(&participant, inner.options.recovery_threads),
            tables: Tables::new(catalog.tables().map(|(_, table)| &**table)),
        })
    }
}

impl CatalogChange<'_> {
    /// Builds all indexes but the first of each table anew, from that one, those of several tables
    /// at a time. The catalog keeps its number, as the statements of a log count on it.
    fn restore_indexes(&mut self) -> Result<()> {
        self.keep_version();
        let tables: Vec<_> = (self.catalog().tables())
            .filter(|(_, table)| table.indexes().len() > 1)
            .map(|(_, table)| table.clone())
            .collect();
        let maintenance = lock(&self.inner.maintenance);
        let threads = self.inner.options.recovery_threads.min(tables.len());
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
        });
        let built: Result<Vec<Vec<Table>>> = built.into_iter().collect();
        let mut built: Vec<Table> = built?.into_iter().flatten().collect();
        drop(maintenance);
        // In the same order whatever thread built them.
        built.sort_unstable_by_key(Table::id);
        for table in built {
            let name = table.schema().name.clone();
            self.replace(&name, table);
        }
        Ok(())
    }
}
