//! Opening a data directory: what its files have kept becomes the database again.

mod blocks;
mod progress;

use std::fmt;
use std::path::Path;

use kiln_durability::checkpoint::Reader;
use kiln_durability::format::entry::{self, Entry};
use kiln_durability::log::{LogOptions, Position};
use kiln_durability::recovery::{End, Extent, GroupPosition, Replay, Scan, Start};
use kiln_durability::{
    CheckpointEntry, DataDirectory, Manifest, RecoveryRates, RecoveryRecord, damaged, damaged_in,
    disk_error,
};
use kiln_engine::{CallAnswer, CallReplay, CatalogStatement, Options, WrittenCatalog};
use kiln_platform::disk::Directory;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_storage::error::{Error, Result};
use kiln_storage::restore::Mismatch;

use super::rebuild::restore_catalog;
use super::{Database, design};
use blocks::Blocks;
use progress::Observed;
pub use progress::{RecoveryProgress, RecoveryStage};

/// What a recovery has done.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// The checkpoint with which it began, if there was one.
    pub checkpoint: Option<u64>,
    /// Rows of the checkpoint.
    pub rows: u64,
    /// Bytes of its files, and how long it took to restore them, in nanoseconds.
    pub checkpoint_bytes: u64,
    /// See there.
    pub checkpoint_ns: u64,
    /// Commits that were applied.
    pub commits: u64,
    /// How many of these were calls that were made again: see
    /// [`Logging::Commands`](kiln_engine::Logging::Commands).
    pub calls: u64,
    /// Changes of the catalog that were made again.
    pub statements: u64,
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// How long it took to replay these, in nanoseconds.
    pub log_ns: u64,
    /// How long it took to build the indexes besides the first of each table, in nanoseconds.
    pub indexes_ns: u64,
    /// How long all of it was estimated to take, from its bytes and the rates of former recoveries,
    /// in nanoseconds.
    pub estimated_ns: u64,
    /// How long all of it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// What is behind the end of the log and was never acknowledged, if anything is.
    pub cut: Option<String>,
    /// What the user should know of the directory, a sentence each.
    pub warnings: Vec<String>,
}

/// One line: what was read, and how long that took.
impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed_ns as f64 / 1e9;
        if let (None, 0, 0) = (self.checkpoint, self.commits, self.statements) {
            return write!(f, "The data directory is new or empty ({seconds:.3} s).");
        }
        f.write_str("Recovered ")?;
        if let Some(number) = self.checkpoint {
            write!(f, "{} rows of checkpoint {number}, and ", self.rows)?;
        }
        write!(f, "{} commits", self.commits)?;
        if self.calls > 0 {
            write!(f, " ({} of them calls that were made again)", self.calls)?;
        }
        write!(
            f,
            " and {} changes of the catalog of the log ({:.1} MB), in {seconds:.3} s",
            self.statements,
            self.log_bytes as f64 / 1e6
        )?;
        // What is quick says nothing of estimates.
        if self.is_measured() {
            write!(f, " (estimated {:.3} s)", self.estimated_ns as f64 / 1e9)?;
        }
        f.write_str(".")?;
        if let Some(cut) = &self.cut {
            write!(f, " What was not acknowledged was cut off: {cut}.")?;
        }
        Ok(())
    }
}

/// Bytes that have to be read before their rate says something.
const MEASURED_BYTES_MIN: u64 = 8 << 20;

impl Recovery {
    /// Whether it has read enough to tell how fast it was.
    fn is_measured(&self) -> bool {
        self.checkpoint_bytes.max(self.log_bytes) >= MEASURED_BYTES_MIN
    }

    /// How fast it was, where it has read enough; else how fast former ones were. Building indexes
    /// belongs to the rows, which came from the checkpoint and from the log.
    fn rates(&self, before: RecoveryRates) -> RecoveryRates {
        let indexes_ns_per_byte =
            self.indexes_ns as f64 / (self.checkpoint_bytes + self.log_bytes).max(1) as f64;
        let rate = |bytes: u64, nanoseconds: u64, before: u64| {
            if bytes < MEASURED_BYTES_MIN {
                return before;
            }
            let nanoseconds = nanoseconds as f64 + bytes as f64 * indexes_ns_per_byte;
            ((bytes as f64 * 1e9 / nanoseconds.max(1.0)) as u64).max(1)
        };
        RecoveryRates {
            checkpoint_bytes_per_s: rate(
                self.checkpoint_bytes,
                self.checkpoint_ns,
                before.checkpoint_bytes_per_s,
            ),
            log_bytes_per_s: rate(self.log_bytes, self.log_ns, before.log_bytes_per_s),
        }
    }
}

/// Opens the data directory at `path`, and the database in it, with these options. Tells the
/// observer how far it has come.
///
/// # Errors
/// Those of [`DataDirectory::open`] and of files that are damaged; the disk's.
pub(super) fn open(
    options: &Options,
    path: &Path,
    observer: &mut dyn FnMut(&RecoveryProgress),
) -> Result<Database> {
    let began_ns = time::now_ns();
    let holder = concat!("Kiln ", env!("CARGO_PKG_VERSION"));
    let directory = DataDirectory::open(path, holder)?;
    let mut warnings = directory.warnings().to_vec();
    let manifest = directory.manifest();
    let mut beginnings: Vec<_> = manifest.checkpoints.iter().map(Some).collect();
    if manifest.first_segment == Position::start(manifest.database).segment {
        // The whole log is there.
        beginnings.insert(0, None);
    }
    let threads = options.recovery_threads;
    let rates_before = manifest.recovery_rates(threads);
    let mut observed = Observed::new(observer, rates_before, began_ns);
    let (mut database, end, mut recovery) = loop {
        let beginning = beginnings.pop().flatten();
        match recover(options, &directory, &manifest, beginning, &mut observed) {
            Ok(recovered) => break recovered,
            Err(Failure::Checkpoint(error)) if !beginnings.is_empty() => {
                warnings.push(format!("an older checkpoint is used: {error}"));
            }
            Err(Failure::Checkpoint(error) | Failure::Other(error)) => return Err(error),
        }
    };
    let log = LogOptions::with_segments(options.log_segment_bytes);
    let rates = recovery.rates(rates_before);
    database
        .engine()
        .set_recovered(rates, recovery.checkpoint_bytes, recovery.log_bytes);
    recovery.elapsed_ns = time::now_ns() - began_ns;
    if recovery.is_measured()
        && let Err(error) = keep_record(&directory, rates.of_one_thread(threads), &recovery)
    {
        warnings.push(format!("how fast this recovery was is not kept: {error}"));
    }
    database.engine().log_to(directory, end.position, &log)?;
    recovery.cut = end.cut;
    recovery.warnings = warnings;
    recovery.elapsed_ns = time::now_ns() - began_ns;
    let shared = Arc::get_mut(&mut database.shared);
    shared.expect("no other handle was made").recovery = Some(recovery);
    Ok(database)
}

/// Keeps how fast one thread would have been in a recovery, for the estimate of the next one.
fn keep_record(directory: &DataDirectory, rates: RecoveryRates, recovery: &Recovery) -> Result<()> {
    let mut manifest = (*directory.manifest()).clone();
    manifest.recovery = Some(RecoveryRecord {
        rates,
        estimated_us: recovery.estimated_ns / 1_000,
        elapsed_us: recovery.elapsed_ns / 1_000,
    });
    directory.publish(manifest)
}

/// Why a recovery ends.
enum Failure {
    /// The checkpoint is damaged: an older one may not be.
    Checkpoint(Error),
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Other(error)
    }
}

/// Recovers the database from a checkpoint, or from nothing, and the log.
fn recover(
    options: &Options,
    directory: &DataDirectory,
    manifest: &Manifest,
    checkpoint: Option<&CheckpointEntry>,
    observed: &mut Observed<'_>,
) -> std::result::Result<(Database, End, Recovery), Failure> {
    let database = Database::open_empty(options.clone())?;
    let mut recovery = Recovery::default();
    let (checkpoint_bytes, log_bytes) = to_read(directory, manifest, checkpoint)?;
    observed.begin(time::now_ns(), checkpoint_bytes, log_bytes);
    let rates = manifest.recovery_rates(options.recovery_threads);
    let estimated_s = rates.seconds(checkpoint_bytes, log_bytes);
    recovery.estimated_ns = (estimated_s * 1e9) as u64;
    database.engine().begin_restoration();
    if let Some(checkpoint) = checkpoint {
        restore(
            &database,
            directory,
            manifest,
            checkpoint,
            &mut recovery,
            observed,
        )
        .map_err(Failure::Checkpoint)?;
    }
    observed.replays(time::now_ns());
    let end = replay(
        &database,
        directory,
        manifest,
        checkpoint,
        &mut recovery,
        observed,
    )?;
    Ok((database, end, recovery))
}

/// The bytes of the checkpoint and of the log that are to be read.
fn to_read(
    directory: &DataDirectory,
    manifest: &Manifest,
    checkpoint: Option<&CheckpointEntry>,
) -> Result<(u64, u64)> {
    let segment = checkpoint.map_or(manifest.first_segment, |it| it.segment);
    let extent = Extent::find(directory.log(), manifest.database, segment)?;
    let checkpoint_bytes = checkpoint.map_or(0, CheckpointEntry::bytes);
    Ok((checkpoint_bytes, extent.bytes_from(segment)))
}

/// Puts catalog and rows of a checkpoint into the database.
fn restore(
    database: &Database,
    directory: &DataDirectory,
    manifest: &Manifest,
    checkpoint: &CheckpointEntry,
    recovery: &mut Recovery,
    observed: &mut Observed<'_>,
) -> Result<()> {
    let began_ns = time::now_ns();
    let engine = database.engine();
    let checkpoints = directory.checkpoints();
    let reader = Reader::open(checkpoints, manifest.database, checkpoint.clone())?;
    let catalog = reader.catalog()?;
    let restored = (catalog.parse()).and_then(|it: WrittenCatalog| restore_catalog(engine, &it));
    restored.map_err(|error| reader.damage_of_catalog(error))?;
    let mut blocks = Blocks::of(&reader, engine.options().recovery_threads);
    while blocks.go_on() {
        recovery.rows +=
            engine.restore(|restoration| restoration.blocks(|block| blocks.next(block)))?;
        observed.restored(time::now_ns(), blocks.bytes_read());
    }
    recovery.checkpoint = Some(checkpoint.number);
    recovery.checkpoint_bytes = checkpoint.bytes();
    recovery.checkpoint_ns = time::now_ns() - began_ns;
    Ok(())
}

/// Opens the log's directory once more: a handle belongs to one user.
fn log_of(directory: &DataDirectory) -> Result<Directory> {
    Directory::open(directory.log().path()).map_err(|error| disk_error(&error))
}

/// Replays the log over what the checkpoint has restored.
fn replay(
    database: &Database,
    directory: &DataDirectory,
    manifest: &Manifest,
    checkpoint: Option<&CheckpointEntry>,
    recovery: &mut Recovery,
    observed: &mut Observed<'_>,
) -> Result<End> {
    let segment = checkpoint.map_or(manifest.first_segment, |it| it.segment);
    let start = Start::of(manifest.database, segment);
    let (from, fuzzy_to) = checkpoint.map_or((0, 0), |it| (it.start_epoch, it.end_epoch));
    let began_ns = time::now_ns();
    let mut replay = Replay::new(Scan::open(log_of(directory)?, start)?, from);
    let mut redo = Redo {
        database,
        fuzzy_to,
        recovery,
        pending: Vec::new(),
        bytes: Vec::new(),
        groups: Vec::new(),
        failure: None,
        calls: None,
        began_us: time::wall_clock_us(),
    };
    while (replay.next_group(|entry| redo.add(entry)))
        .map_err(|error| redo.damage(&replay, error))?
        .is_some()
    {
        redo.groups
            .push((redo.bytes.len(), replay.group_position()));
        if redo.bytes.len() >= BATCH_BYTES {
            redo.apply().map_err(|error| redo.damage(&replay, error))?;
            observed.replayed(time::now_ns(), replay.progress().0);
        }
    }
    redo.apply().map_err(|error| redo.damage(&replay, error))?;
    let indexes_began_ns = time::now_ns();
    observed.builds_indexes(indexes_began_ns);
    let ended = redo.end();
    ended.map_err(|error| damaged_in(directory.path().display(), error))?;
    recovery.log_bytes = replay.progress().0;
    recovery.log_ns = indexes_began_ns - began_ns;
    recovery.indexes_ns = time::now_ns() - indexes_began_ns;
    let mut end = replay.end()?;
    if checkpoint.is_some_and(|it| !it.is_covered_by(end.position.epoch)) {
        let log = directory.log().path().display();
        let message = format!("{log} ends before all that checkpoint needs of it");
        return Err(damaged(message).with_hint("Restore the data directory from a backup."));
    }
    end.position.epoch = end.position.epoch.max(fuzzy_to);
    Ok(end)
}

/// Bytes of commits that are applied together, unless a change of the catalog or a call is between
/// them: short groups are worth several threads then.
const BATCH_BYTES: usize = 8 << 20;

/// What is done with the entries of a log.
///
/// Rows of a fuzzy checkpoint and of the log entries from its time are of different moments, so
/// that nothing can be called on them: commits are put into rows, and indexes are built in the end.
/// The first call that a log has comes when that is over. From then on the database is a whole one
/// after each commit.
struct Redo<'a> {
    database: &'a Database,
    /// The last log epoch whose commits the checkpoint may have.
    fuzzy_to: u64,
    recovery: &'a mut Recovery,
    /// Commits that are not applied yet, those of some groups between two changes of the catalog or
    /// calls: where each one ends in `bytes`, and what changes are that do not fit to the rows.
    pending: Vec<(usize, Mismatch)>,
    bytes: Vec<u8>,
    /// Where the commits of each group end there, and where the group is; the last group may not be
    /// there yet.
    groups: Vec<(usize, Option<GroupPosition>)>,
    /// Where the commit ends there that could not be applied, and why.
    failure: Option<(usize, Error)>,
    /// There since the first call.
    calls: Option<CallReplay>,
    /// When the replay began, in microseconds since 1970.
    began_us: i64,
}

impl Redo<'_> {
    fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        match *entry {
            Entry::Commit { epoch, commit } => {
                let mismatch = match epoch <= self.fuzzy_to {
                    true => Mismatch::Ignored,
                    false => Mismatch::Refused,
                };
                self.bytes.extend_from_slice(commit);
                self.pending.push((self.bytes.len(), mismatch));
            }
            Entry::Command {
                epoch,
                changes,
                call,
                ..
            } => {
                if epoch <= self.fuzzy_to {
                    let message =
                        "the log has a call from the time in which a checkpoint was written";
                    return Err(damaged(message));
                }
                self.apply()?;
                self.calls()?.call(call, changes)?;
                self.recovery.commits += 1;
                self.recovery.calls += 1;
            }
            Entry::Statement { text, .. } => {
                self.apply()?;
                let statement: CatalogStatement = text.parse()?;
                self.database.redo(&statement).map_err(|error| {
                    let message = format!(
                        "a change of the catalog cannot be made again: {}: {}",
                        statement.source.text,
                        error.message()
                    );
                    Error::new(error.state(), message)
                })?;
                self.recovery.statements += 1;
            }
            // The log has no clock: an outcome is remembered for as long from now on as if the call
            // had just ended. Of two calls whose outcomes a checkpoint has repeated, or has not,
            // the one has ended first that comes first.
            Entry::Outcome {
                key,
                answer: bytes,
                is_repeated,
                ..
            } => {
                let answer = CallAnswer { key, bytes };
                let ended_at_us = self.began_us - i64::from(is_repeated);
                (self.database.engine()).restore_answer(&answer, ended_at_us)?;
            }
            Entry::Sequence { id, state, .. } => {
                self.database.engine().restore_sequence(id, state);
            }
            Entry::Block { parts, .. } => {
                for part in entry::parts(parts) {
                    let part = part.map_err(|_| {
                        damaged("a transaction block has something that is no entry")
                    })?;
                    self.add(&part)?;
                    // Rows of one part may be those that the next one changes.
                    self.apply()?;
                }
            }
        }
        Ok(())
    }

    /// Applies what is pending.
    fn apply(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (bytes, ends) = (&self.bytes, &self.pending);
        let is_whole = self.calls.is_some();
        let mut failure = None;
        let applied = self.database.engine().restore(|restoration| {
            let applied = match is_whole {
                true => restoration.whole_commits(bytes, ends),
                false => restoration.commits(bytes, ends),
            };
            applied.map_err(|(end, error)| {
                failure = Some((end, error.clone()));
                error
            })
        });
        self.failure = failure;
        applied?;
        self.recovery.commits += self.pending.len() as u64;
        self.pending.clear();
        self.bytes.clear();
        self.groups.clear();
        Ok(())
    }

    /// The error for what ended the replay: that of a commit names the group of the commit, which
    /// others may have followed.
    fn damage(&mut self, replay: &Replay, error: Error) -> Error {
        let Some((end, error)) = self.failure.take() else {
            return error;
        };
        let group = self.groups.iter().find(|(of_group, _)| end <= *of_group);
        match group {
            Some((_, Some(place))) => replay.damage_at(*place, error),
            _ => replay.damage(error),
        }
    }

    fn calls(&mut self) -> Result<&mut CallReplay> {
        let engine = self.database.engine();
        if self.calls.is_none() {
            engine.end_restoration(design::recompile)?;
            self.calls = Some(engine.replay_calls()?);
        }
        (self.calls.as_mut()).ok_or_else(|| Error::internal("there are calls"))
    }

    /// All entries were added.
    fn end(self) -> Result<()> {
        match self.calls {
            Some(calls) => calls.end(),
            None => self.database.engine().end_restoration(design::recompile),
        }
    }
}
