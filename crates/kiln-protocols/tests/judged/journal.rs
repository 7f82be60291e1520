//! A listener that keeps all that it hears, and what has to be true of it afterwards.

use std::collections::{BTreeMap, HashMap};

use kiln_history::{Event, History, LogReader, Object, Version};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_storage::bytes::Reader;
use kiln_storage::journal::{CallAnswer, ChangeKind, Commit, Journal, Listener, Listeners};
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};
use kiln_storage::redo::read_commit;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::{Table, WORKERS_MAX};

use super::answers::Answers;

/// What the error of a trial begins with whose listeners heard something wrong.
pub const JOURNAL: &str = "journal";

/// What the listeners of a trial heard.
#[derive(Default)]
pub struct Heard {
    commits: Mutex<Vec<Reported>>,
    /// The newest log epoch that was closed.
    closed: AtomicU64,
    pub answers: Answers,
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

    fn note(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        unreachable!("workers have no answers to note: {answer:?}")
    }
}

impl Listener for Ear {
    fn committed(&mut self, commit: &Commit<'_>) {
        // What is told is what a log would keep, read from there again.
        let (mut bytes, mut changes) = (Vec::new(), Vec::new());
        commit.append(&mut bytes);
        assert!(bytes.len() <= commit.bytes_max(), "the room is enough");
        let table_of = |id| {
            let tables = commit.changes.iter().map(|change| change.table());
            tables.into_iter().find(|table| table.id() == id)
        };
        let heap = &mut self.heap;
        let version = read_commit(&mut Reader::new(&bytes), table_of, heap, |read, heap| {
            let change = &commit.changes[changes.len()];
            let columns: ColumnSet = read.values.iter().map(|(column, _)| *column).collect();
            assert_eq!((read.kind, columns), (change.kind(), change.columns()));
            assert_eq!(read.key, change.key(heap), "the key is the row's");
            let values = read.values.iter();
            let values =
                values.map(|&(column, slot)| (column.0, bytes_of(read.table, column, slot, heap)));
            changes.push(Changed {
                object: change.record().address(),
                former: change.former(),
                kind: read.kind,
                key: read.key.to_bytes(),
                values: values.collect(),
            });
            Ok(())
        });
        assert_eq!(changes.len(), commit.changes.len());
        if let Some(answer) = &commit.answer {
            self.heard.answers.tell(answer);
        }
        self.commits.push(Reported {
            epoch: commit.epoch,
            version: version.expect("it was just appended"),
            is_late: commit.epoch.0 <= self.heard.closed.load(Ordering::Relaxed),
            changes,
        });
    }
}

/// A value, as bytes that no other value of the column has.
fn bytes_of(table: &Table, column: ColumnId, slot: Slot, heap: &Heap) -> Vec<u8> {
    if slot.is_null() {
        return Vec::new();
    }
    match slot.has_bytes(table.layout().byte_strings().contains(column)) {
        true => [&[1], heap.bytes(slot)].concat(),
        false => {
            let (low, high) = slot.words();
            [low.to_le_bytes(), high.to_le_bytes()].concat()
        }
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

    /// Whether what was heard is all that happened to the table, in an order that a log may have.
    /// The listeners are gone.
    pub fn check(&self, table: &Table, history: &History) -> Result<(), String> {
        let mut commits = lock(&self.commits);
        if let Some(late) = commits.iter().find(|commit| commit.is_late) {
            return Err(format!("{JOURNAL}: a commit of {} came late", late.epoch));
        }
        commits.sort_by_key(|commit| (commit.epoch, commit.version));
        let answers = self.answers.check();
        answers.map_err(|wrong| format!("{JOURNAL}: {wrong}"))?;
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
        let columns = (0..table.schema().columns.len() as u16).map(ColumnId);
        let values = columns.map(|column| {
            let mut heap = Heap::new();
            let slot = table.column_value(column, row, &mut heap);
            bytes_of(table, column, slot, &heap)
        });
        rows.insert(key.expect("keys are short").to_bytes(), values.collect());
    });
    rows
}

/// No commit has read or replaced a version of a later log epoch than its own: so what was
/// committed up to any of them is closed.
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
