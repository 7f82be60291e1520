//! The catalog of a log: says what the numbers of tables in it mean.

use std::collections::BTreeMap;

use kiln::{Database, Options, Result};
use kiln_durability::DataDirectory;
use kiln_durability::checkpoint::Reader;
use kiln_durability::format::entry::Entry;
use kiln_durability::log::Position;
use kiln_storage::bytes;
use kiln_storage::journal::ChangeKind;
use kiln_storage::redo::read_commit;
use kiln_storage::schema::TableId;
use kiln_storage::sequence::SequenceId;
use kiln_storage::slot::Heap;

/// A database without rows whose catalog follows that of a log.
pub struct FollowedCatalog {
    /// `None` where the catalog is not known.
    database: Option<Database>,
    /// The log epoch of the catalog; entries before it are not understood.
    from: u64,
}

impl FollowedCatalog {
    /// Before the first entry of the log.
    pub fn of(directory: &DataDirectory) -> FollowedCatalog {
        let manifest = directory.manifest();
        let is_whole = manifest.first_segment == Position::start(manifest.database).segment;
        let checkpoint = manifest.checkpoints.first().filter(|_| !is_whole);
        let (found, from) = match checkpoint {
            None => (Database::open(options()), 0),
            Some(checkpoint) => (at(directory, checkpoint.number), checkpoint.start_epoch),
        };
        let database = found.ok();
        if let Some(database) = &database {
            database.engine().begin_restoration();
        }
        FollowedCatalog { database, from }
    }

    /// Makes a change of the catalog, and forgets the catalog where that fails.
    pub fn follow(&mut self, entry: &Entry<'_>) {
        if let (Entry::Statement { epoch, text }, Some(database)) = (entry, &self.database)
            && *epoch >= self.from
            && text.parse().and_then(|it| database.redo(&it)).is_err()
        {
            self.database = None;
        }
    }

    /// The changes of a commit by table: insertions, updates, deletions. `None` where the catalog
    /// is not known.
    pub fn changes(&self, epoch: u64, commit: &[u8]) -> Option<BTreeMap<String, [u64; 3]>> {
        let database = self.database.as_ref().filter(|_| epoch >= self.from)?;
        let catalog = database.engine().catalog();
        let mut changes = BTreeMap::<String, [u64; 3]>::new();
        let table = |id| catalog.table_by_id(id).map(|table| &**table);
        let mut reader = bytes::Reader::new(commit);
        let read = read_commit(&mut reader, table, &mut Heap::new(), |change, _| {
            let kind = match change.kind {
                ChangeKind::Insert => 0,
                ChangeKind::Update => 1,
                ChangeKind::Delete => 2,
            };
            let name = change.table.schema().name.to_string();
            changes.entry(name).or_default()[kind] += 1;
            Ok(())
        });
        read.ok().map(|_| changes)
    }

    /// The name of a sequence, where it is known.
    pub fn sequence(&self, id: SequenceId) -> Option<String> {
        let catalog = self.database.as_ref()?.engine().catalog();
        let sequence = catalog.sequence_by_id(id)?;
        Some(sequence.name().to_owned())
    }
}

fn options() -> Options {
    Options::new().workers(1).pin_workers(false)
}

/// A database without rows, with the catalog of a checkpoint.
fn at(directory: &DataDirectory, number: u64) -> Result<Database> {
    let manifest = directory.manifest();
    let mut checkpoints = manifest.checkpoints.iter();
    let entry = checkpoints.find(|it| it.number == number).cloned();
    let entry = entry.ok_or_else(|| kiln::Error::internal("the checkpoint is not there"))?;
    let reader = Reader::open(directory.checkpoints(), manifest.database, entry)?;
    Database::rebuild(options(), &reader.catalog()?.parse()?)
}

/// The names of the tables of a checkpoint, by their numbers; `None` when its catalog cannot be
/// read.
pub fn table_names(directory: &DataDirectory, number: u64) -> Option<BTreeMap<TableId, String>> {
    let database = at(directory, number).ok()?;
    let catalog = database.engine().catalog();
    let tables = catalog.tables();
    Some(
        tables
            .map(|(_, table)| (table.id(), table.schema().name.to_string()))
            .collect(),
    )
}
