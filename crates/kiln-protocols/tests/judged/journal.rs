//! A listener that keeps all that it hears, and what has to be true of it afterwards.

use std::collections::{BTreeMap, HashMap};

use kiln_history::{Event, History, LogReader, Object, Version};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_storage::journal::{ChangeKind, Commit, Journal, Listener, Listeners};
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Heap;
use kiln_storage::table::{Table, WORKERS_MAX};

/// What the error of a trial begins with whose listeners heard something wrong.
pub const JOURNAL: &str = "journal";

/// What the listeners of a trial heard.
#[derive(Default)]
pub struct Heard {
    commits: Mutex<Vec<Reported>>,
    /// The newest log epoch that was closed.
    closed: AtomicU64,
}

struct Reported {
    epoch: LogEpoch,
    version: u64,
    /// Whether its epoch was closed already.
    is_late: bool,
    changes: Vec<Changed>,
}

struct Changed {
    object: u64,
    former: u64,
    kind: ChangeKind,
    key: Vec<u8>,
    /// The columns that were written, with their values.
    values: Vec<(u16, Vec<u8>)>,
}

/// One worker's listener: gives what it has heard away when it goes.
struct Ear {
    heard: Arc<Heard>,
    commits: Vec<Reported>,
    heap: Heap,
}

/// Listeners that tell the same.
struct Ears(Arc<Heard>);

impl Listeners for Ears {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(Ear {
            heard: self.0.clone(),
            commits: Vec::new(),
            heap: Heap::new(),
        })
    }
}

impl Listener for Ear {
    fn committed(&mut self, commit: &Commit<'_>) {
        let heap = &mut self.heap;
        let changes = commit.changes.iter().map(|change| {
            let columns = (0..change.table().schema().columns.len() as u16).map(ColumnId);
            let written = columns.filter(|column| change.columns().contains(*column));
            let values = written.map(|column| {
                let mut bytes = Vec::new();
                change.append(column, &mut bytes);
                (column.0, bytes)
            });
            let values: Vec<(u16, Vec<u8>)> = values.collect();
            let mut row = Vec::new();
            if change.append_row(&mut row) {
                let words = row.chunks_exact(8);
                let words = words.map(|word| word.try_into().expect("eight bytes"));
                let row: Vec<AtomicU64> = words
                    .map(|word| AtomicU64::new(u64::from_le_bytes(word)))
                    .collect();
                for (column, expected) in &values {
                    let mut bytes = Vec::new();
                    let access = change.table().layout().column(ColumnId(*column));
                    // SAFETY: the row is this one's own, and no byte string lies elsewhere.
                    unsafe { access.append(&row, &mut bytes) };
                    assert_eq!(&bytes, expected, "the row has what the columns have");
                }
            }
            Changed {
                object: change.record().address(),
                former: change.former(),
                kind: change.kind(),
                key: change.key(heap).to_bytes(),
                values,
            }
        });
        let changes = changes.collect();
        self.commits.push(Reported {
            epoch: commit.epoch,
            version: commit.version,
            is_late: commit.epoch.0 <= self.heard.closed.load(Ordering::Relaxed),
            changes,
        });
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        lock(&self.heard.commits).append(&mut self.commits);
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

impl Heard {
    /// A journal whose listeners tell this one.
    pub fn journal(self: &Arc<Heard>) -> Journal {
        Journal::new(LogEpochs::new(WORKERS_MAX), Arc::new(Ears(self.clone())))
    }

    /// Closes a log epoch.
    pub fn close(&self, journal: &Journal) {
        let closed = journal.epochs().close();
        self.closed.store(closed.0, Ordering::Relaxed);
    }

    /// Whether what was heard is all that happened to the table, in an order that a log may have. The listeners are
    /// gone.
    pub fn check(&self, table: &Table, history: &History) -> Result<(), String> {
        let mut commits = lock(&self.commits);
        if let Some(late) = commits.iter().find(|commit| commit.is_late) {
            return Err(format!("{JOURNAL}: a commit of {} came late", late.epoch));
        }
        commits.sort_by_key(|commit| (commit.epoch, commit.version));
        let replayed = replay(&commits)?;
        let present = rows_of(table);
        if replayed != present {
            return Err(format!(
                "{JOURNAL}: replayed there are\n{replayed:?}\nand in the table\n{present:?}"
            ));
        }
        check_closure(&commits, history)
    }
}

/// Applies commits in their order. Each change finds what it has to find.
fn replay(commits: &[Reported]) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for commit in commits {
        let mut has_inserted = false;
        for change in &commit.changes {
            let wrong = |what: &str| {
                let Reported { epoch, version, .. } = commit;
                let key = &change.key;
                Err(format!("{JOURNAL}: {what} {key:?} at ({epoch}, {version})"))
            };
            let values = change.values.iter().map(|(_, bytes)| bytes.clone());
            match (change.kind, rows.get_mut(&change.key)) {
                (ChangeKind::Insert, None) => {
                    rows.insert(change.key.clone(), values.collect());
                    has_inserted = true;
                }
                (ChangeKind::Insert, Some(_)) => return wrong("inserts once more"),
                (ChangeKind::Update, Some(row)) => {
                    for (column, bytes) in &change.values {
                        row[*column as usize] = bytes.clone();
                    }
                    has_inserted = true;
                }
                (ChangeKind::Delete, Some(_)) if has_inserted => return wrong("deletes late"),
                (ChangeKind::Delete, Some(_)) => {
                    rows.remove(&change.key);
                }
                (_, None) => return wrong("changes what is not there,"),
            }
        }
    }
    Ok(rows)
}

fn rows_of(table: &Table) -> Rows {
    let mut rows = Rows::new();
    let index = &table.indexes()[0];
    index.for_each(|record| {
        let row = table.row(record);
        let key = table.entry_key_of(index, row, &mut Heap::new());
        let values = table.layout().columns().iter().map(|access| {
            let mut bytes = Vec::new();
            // SAFETY: no transaction runs, so the row is stable and has its blobs.
            unsafe { access.append(row, &mut bytes) };
            bytes
        });
        rows.insert(key.expect("keys are short").to_bytes(), values.collect());
    });
    rows
}

/// No commit has read or replaced a version of a later log epoch than its own: so what was committed up to any of
/// them is closed.
fn check_closure(commits: &[Reported], history: &History) -> Result<(), String> {
    let mut written = HashMap::new();
    for commit in commits {
        for change in &commit.changes {
            written.insert((change.object, commit.version), commit.epoch);
        }
    }
    let follows = |epoch: LogEpoch, (object, version): (u64, u64), how: &str| match written
        .get(&(object, version))
    {
        Some(writer) if *writer > epoch => Err(format!(
            "{JOURNAL}: a commit of {epoch} {how} what one of {writer} wrote"
        )),
        _ => Ok(()),
    };
    for commit in commits {
        for change in &commit.changes {
            follows(commit.epoch, (change.object, change.former), "replaced")?;
        }
    }
    for log in &history.logs {
        let (mut read, mut epoch) = (Vec::new(), None);
        for event in LogReader::new(log).map_while(Result::ok) {
            match event {
                Event::Begin { .. } => {
                    read.clear();
                    epoch = None;
                }
                Event::Read {
                    object: Object(object),
                    version: Version(version),
                    ..
                }
                | Event::ReadAbsent {
                    object: Object(object),
                    version: Version(version),
                    as_of: false,
                } => read.push((object, version)),
                Event::Install {
                    object: Object(object),
                    version: Version(version),
                    ..
                } => epoch = epoch.or(written.get(&(object, version)).copied()),
                Event::Commit { .. } => {
                    for &version in &read {
                        follows(epoch.unwrap_or(LogEpoch(u64::MAX)), version, "read")?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}
