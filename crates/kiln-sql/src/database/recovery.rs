//! Opening a data directory: what its files have kept becomes the database again.

use std::path::Path;

use kiln_durability::format::Chain;
use kiln_durability::format::entry::Entry;
use kiln_durability::log::{LogOptions, Position};
use kiln_durability::recovery::{End, Replay, Scan, Start};
use kiln_durability::{DataDirectory, damaged, disk_error};
use kiln_engine::CatalogStatement;
use kiln_platform::disk::Directory;
use kiln_platform::time;
use kiln_storage::error::Result;
use kiln_storage::restore::Mismatch;

use super::{Database, design};

/// What a recovery has done.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Commits that were applied.
    pub commits: u64,
    /// Changes of the catalog that were made again.
    pub statements: u64,
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// How long all of it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// What is behind the end of the log and was never acknowledged, if anything is.
    pub cut: Option<String>,
    /// What the user should know of the directory, a sentence each.
    pub warnings: Vec<String>,
}

/// Opens the data directory at `path` in a database that is empty, and has it keep what follows.
///
/// # Errors
/// Those of [`DataDirectory::open`] and of a log that is damaged; the disk's.
pub(super) fn open(database: &Database, path: &Path, options: &LogOptions) -> Result<Recovery> {
    let began_ns = time::now_ns();
    let holder = format!("process {}", std::process::id());
    let directory = DataDirectory::open(path, &holder)?;
    let mut recovery = Recovery {
        warnings: directory.warnings().to_vec(),
        ..Recovery::default()
    };
    let end = replay(database, &directory, &mut recovery)?;
    recovery.cut = end.cut;
    finish(database)?;
    database.engine().log_to(directory, end.position, options)?;
    recovery.elapsed_ns = time::now_ns() - began_ns;
    Ok(recovery)
}

/// Opens the log's directory once more: a handle belongs to one user.
fn log_of(directory: &DataDirectory) -> Result<Directory> {
    Directory::open(directory.log().path()).map_err(|error| disk_error(&error))
}

fn replay(database: &Database, directory: &DataDirectory, recovery: &mut Recovery) -> Result<End> {
    let manifest = directory.manifest();
    let is_whole = manifest.first_segment == Position::start(manifest.database).segment;
    let start = Start {
        database: manifest.database,
        segment: manifest.first_segment,
        chain: is_whole.then(|| Chain::new(manifest.database)),
    };
    let mut replay = Replay::new(Scan::open(log_of(directory)?, start)?, 0);
    let mut group = Group::default();
    while replay
        .next_group(|entry| group.add(database, entry, recovery))?
        .is_some()
    {
        group.apply(database, recovery)?;
    }
    recovery.log_bytes = replay.progress().0;
    replay.end()
}

/// Commits of a group that are not applied yet: those between two changes of the catalog.
#[derive(Default)]
struct Group {
    /// Where each one ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Group {
    fn add(
        &mut self,
        database: &Database,
        entry: &Entry<'_>,
        recovery: &mut Recovery,
    ) -> Result<()> {
        match entry {
            Entry::Commit { commit, .. } => {
                self.bytes.extend_from_slice(commit);
                self.ends.push(self.bytes.len());
            }
            Entry::Statement { text, .. } => {
                self.apply(database, recovery)?;
                let statement: CatalogStatement = text.parse()?;
                database.redo(&statement).map_err(|error| {
                    let message = format!(
                        "a change of the catalog cannot be made again: {}: {}",
                        statement.source.text,
                        error.message()
                    );
                    damaged(message)
                })?;
                recovery.statements += 1;
            }
            Entry::Outcome { .. } => {}
        }
        Ok(())
    }

    fn apply(&mut self, database: &Database, recovery: &mut Recovery) -> Result<()> {
        if self.ends.is_empty() {
            return Ok(());
        }
        database.engine().restore(|restoration| {
            let mut start = 0;
            for end in &self.ends {
                let commit = &self.bytes[start..*end];
                restoration.commit(commit, Mismatch::Refused)?;
                start = *end;
            }
            Ok(())
        })?;
        recovery.commits += self.ends.len() as u64;
        self.ends.clear();
        self.bytes.clear();
        Ok(())
    }
}

/// Builds what does not come from the log, and lets the protocol take the rows over.
fn finish(database: &Database) -> Result<()> {
    let engine = database.engine();
    engine.change_catalog(|change| {
        change.restore_indexes()?;
        design::recompile(change)
    })?;
    engine.set_protocol(engine.protocol())
}
