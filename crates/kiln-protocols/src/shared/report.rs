//! Reporting: what a commit wrote, once a commit, at the door through which a protocol installs it.
//!
//! Each of the doors ([`Optimistic::install`](super::optimistic::Optimistic::install),
//! [`InPlace::commit_leaving`](super::in_place::InPlace::commit_leaving), and that of `mvcc`) does
//! the same:
//!
//! 1. unless there is nothing to report, opens the worker's window of the log epoch
//!    ([`Reporter::open`]). Nothing can refuse the commit any more, all records that it writes are
//!    held, and no other transaction has seen anything of it;
//! 2. adds what it writes, a row at a time, and sends it: to the recorder of the history, if the
//!    run is observed, and to the worker's listener, if there is one;
//! 3. installs, and takes index entries away;
//! 4. closes the window.
//!
//! The reporter is the worker's, also where attempts travel: who commits reports.
//!
//! The answer of a call that has a key goes with the report, and so does the call itself where it
//! may be kept in place of what it wrote. Schedulers have both written once an attempt has run to
//! its end, before the access commits it ([`Reporter::set_call`]): outside of the window, and the
//! answer from the rows of the attempt that commits.

use std::ptr;

use kiln_history::Version;
use kiln_platform::sync::Arc;
use kiln_procedure::{Arguments, Frame, Program};
use kiln_storage::bytes::append_string;
use kiln_storage::journal::{CallAnswer, Change, Commit, Journal, Listener};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnSet;
use kiln_storage::table::{EntryKey, Table};

use super::index_changes::IndexChanges;
use super::recorder::{Recorder, object};
use crate::answer::AnswerWriter;
use crate::canary::Canary;

/// A worker's part in a journal, if there is one.
#[derive(Default)]
pub struct Reporter {
    attached: Option<Attached>,
    /// The report that is being made, deletions first.
    changes: Vec<Change>,
    deletions: usize,
    /// Records that get a version and have no row, before or after: where they are, and their
    /// former version.
    void: Vec<(RecordRef, u64)>,
    /// Who has written the answer of the attempt that is being committed, if its call has a key and
    /// there is a listener.
    answering: Option<Arc<dyn AnswerWriter>>,
    answer: Vec<u8>,
    /// The call of the attempt that is being committed, if it may be kept in place of what it
    /// wrote; else empty.
    command: Vec<u8>,
}

/// Memory of an answer or a call is used again up to this size.
const BYTES_KEPT_MAX: usize = 64 << 10;

struct Attached {
    /// Not shared: behind an `Arc` so that a [`CommitWindow`] can point to it while the listener is
    /// told.
    target: Arc<Target>,
    listener: Box<dyn Listener>,
}

/// Where a worker reports.
struct Target {
    journal: Journal,
    worker: usize,
}

// SAFETY: the changes point to records, rows and images of the attempt that is being reported;
// there are none outside of a report, and a report is made by one thread.
unsafe impl Send for Reporter {}

/// A worker's window of a log epoch; closed when this is dropped, also by a panic.
pub struct CommitWindow {
    /// Null without a listener.
    target: *const Target,
    epoch: LogEpoch,
}

impl CommitWindow {
    /// No window: there is nothing to report.
    #[inline(always)]
    pub fn none() -> CommitWindow {
        CommitWindow {
            target: ptr::null(),
            epoch: LogEpoch(0),
        }
    }
}

impl Drop for CommitWindow {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the target is the worker's, and is not exchanged while the worker commits.
        if let Some(target) = unsafe { self.target.as_ref() } {
            target.journal.epochs().leave(target.worker);
        }
    }
}

impl Attached {
    fn enter(&self) -> CommitWindow {
        let Target { journal, worker } = &*self.target;
        CommitWindow {
            target: Arc::as_ptr(&self.target),
            epoch: journal.epochs().enter(*worker),
        }
    }
}

impl Reporter {
    /// Reports the commits of the worker with this number to a listener of `journal` from now on,
    /// or to none. No transaction is open.
    pub fn attach(&mut self, journal: Option<&Journal>, worker: usize) {
        // The former listener goes before the next one of the same worker comes.
        self.attached = None;
        self.attached = journal.map(|journal| {
            journal.epochs().join(worker);
            Attached {
                target: Arc::new(Target {
                    journal: journal.clone(),
                    worker,
                }),
                listener: journal.listeners().listener(worker),
            }
        });
    }

    /// Whether there is a listener.
    #[inline(always)]
    pub fn is_attached(&self) -> bool {
        self.attached.is_some()
    }

    /// The attempt that is committed next is of a call of `program` with these arguments, which has
    /// run to its end in `frame`, and has this answer if it has a key. Without a listener nothing
    /// is written. [`Reporter::forget_call`] has to follow.
    #[inline]
    pub fn set_call(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        frame: &Frame,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) {
        let Some(attached) = &self.attached else {
            return;
        };
        if let Some(commands) = attached.target.journal.commands()
            && !commands.is_paused()
            && is_command(program)
        {
            append_string(&mut self.command, program.name.as_bytes());
            arguments.append_to(&mut self.command);
        }
        if let Some(writer) = answer {
            self.set_answer(writer, program, frame);
        }
    }

    #[cold]
    fn set_answer(&mut self, writer: &Arc<dyn AnswerWriter>, program: &Program, frame: &Frame) {
        self.answer.clear();
        writer.write(program, frame, &mut self.answer);
        self.answering = Some(writer.clone());
    }

    /// The attempt for which a call was set has ended.
    #[inline]
    pub fn forget_call(&mut self) {
        if !self.command.is_empty() {
            clear(&mut self.command);
        }
        if self.answering.is_some() {
            self.forget_answer();
        }
    }

    #[cold]
    fn forget_answer(&mut self) {
        self.answering = None;
        clear(&mut self.answer);
    }

    /// Opens the worker's window, if there is a listener.
    #[inline]
    pub fn open(&self) -> CommitWindow {
        match &self.attached {
            Some(attached) if !Canary::LogEpochAfterUnlocking.sings() => attached.enter(),
            _ => CommitWindow::none(),
        }
    }

    /// Whether a commit has to be reported: to a listener, or for a history.
    #[inline(always)]
    pub fn is_asked(&self, recorder: &mut Recorder) -> bool {
        self.is_attached() || recorder.log().is_some()
    }

    /// Adds an insertion or an update.
    ///
    /// # Safety
    /// As for [`Change::new`], until the report is sent.
    #[inline(always)]
    pub unsafe fn add(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Adds the deletion of a row by a transaction with this version, under the key that the row
    /// has, or else `key`. `follows` says that versions follow the order of transactions by
    /// themselves.
    ///
    /// # Safety
    /// As for [`Change::new`] and [`Change::keyed`], until the report is sent.
    #[inline(never)]
    pub unsafe fn add_deletion(
        &mut self,
        change: Change,
        key: Option<&EntryKey>,
        (tid, follows): (Tid, bool),
    ) {
        if let Some(attached) = &self.attached
            && !follows
        {
            let deletions = attached.target.journal.deletions();
            deletions.raise(change.table(), tid.version());
        }
        self.changes.push(match key {
            // SAFETY: as of the caller.
            Some(key) => unsafe { change.keyed(key) },
            None => change,
        });
        // Deletions come first, in any order.
        let last = self.changes.len() - 1;
        self.changes.swap(self.deletions, last);
        self.deletions += 1;
    }

    /// Adds an update of a row that may have got another key: then it is a deletion and an
    /// insertion.
    ///
    /// # Safety
    /// As for [`Change::new`], until the report is sent. Until then `changes` stay as they are.
    #[inline(always)]
    pub unsafe fn add_update(
        &mut self,
        change: impl Fn() -> Change,
        changes: &IndexChanges,
        order: (Tid, bool),
    ) {
        // SAFETY: as of the caller.
        unsafe {
            // Made where it will lie, and not before it is known which of the two it is.
            match changes.is_empty() {
                true => self.add(change()),
                false => self.add_moved(change(), changes, order),
            }
        }
    }

    /// # Safety
    /// As for [`Reporter::add_update`].
    #[inline(never)]
    unsafe fn add_moved(&mut self, change: Change, changes: &IndexChanges, order: (Tid, bool)) {
        let former_key = match Canary::KeyChangeAsUpdate.sings() {
            true => None,
            false => changes.former_first_key(change.record()),
        };
        // SAFETY: as of the caller.
        unsafe {
            let Some(key) = former_key else {
                return self.add(change);
            };
            let (leaving, arriving) = change.split();
            self.add_deletion(leaving, Some(key), order);
            self.add(arriving);
        }
    }

    /// Adds a record that gets a new version although there is no row, before or after.
    pub fn add_void(&mut self, record: RecordRef, former: u64) {
        self.void.push((record, former));
    }

    /// Tells the recorder what was added, and the listener, inside its window.
    pub fn send(&mut self, window: &CommitWindow, recorder: &mut Recorder, tid: Tid) {
        if let Some(log) = recorder.log() {
            let remaining = self.changes.iter().filter(|it| !it.is_moved_away());
            let rows = remaining.map(|change| (change.record(), change.former()));
            for (record, former) in rows.chain(self.void.iter().copied()) {
                log.install(object(record), Version(former), Version(tid.version()));
            }
        }
        if Canary::LogEpochAfterUnlocking.sings() {
            // In `send_late`.
            return;
        }
        self.tell(window.epoch, tid);
    }

    /// With a flaw on purpose: the epoch is read when the records are others' already.
    #[inline(always)]
    pub fn send_late(&mut self, tid: Tid) {
        if Canary::LogEpochAfterUnlocking.sings()
            && let Some(attached) = &self.attached
        {
            let window = attached.enter();
            self.tell(window.epoch, tid);
        }
    }

    fn tell(&mut self, epoch: LogEpoch, tid: Tid) {
        if Canary::WriteLeftOut.sings() && self.changes.len() > 1 {
            self.changes.pop();
        }
        if self.attached.is_some() {
            // Rows of temporary tables are their session's own.
            (self.changes).retain(|change| change.table().id().is_durable());
        }
        if let Some(attached) = &mut self.attached
            && !self.changes.is_empty()
        {
            let writer = self.answering.as_deref();
            let commands = attached.target.journal.commands();
            attached.listener.committed(&Commit {
                epoch,
                version: tid.version(),
                order: match commands {
                    Some(_) if Canary::CommandsUnordered.sings() => 0,
                    Some(commands) => commands.draw(),
                    None => tid.version(),
                },
                changes: &self.changes,
                command: (!self.command.is_empty()).then_some(&self.command),
                answer: writer.map(|writer| CallAnswer {
                    key: writer.key(),
                    bytes: &self.answer,
                }),
            });
            if let Some(writer) = writer {
                writer.reported();
            }
        }
        self.changes.clear();
        self.deletions = 0;
        self.void.clear();
    }

    /// `tid`, or a greater one that is above the versions of all transactions that deleted one of
    /// the keys that an attempt adds: to the tables into which it has `inserted` rows, and where it
    /// has moved others. Their entries are there.
    #[inline(never)]
    pub fn above_deletions<'a>(
        &self,
        inserted: impl Iterator<Item = &'a Table>,
        changes: &'a IndexChanges,
        tid: Tid,
    ) -> Tid {
        let Some(attached) = &self.attached else {
            return tid;
        };
        if Canary::DeletionForgotten.sings() {
            return tid;
        }
        let deletions = attached.target.journal.deletions();
        let mut tid = tid;
        // A loop inserts into one table many times.
        let mut last = ptr::null();
        for table in inserted {
            if !ptr::eq(table, last) {
                last = table;
                tid = Tid(tid.0.max(deletions.bound(table) + 1));
            }
        }
        let moved = changes.first_tables().map(|table| deletions.bound(table));
        Tid(moved.fold(tid.0, |tid, bound| tid.max(bound + 1)))
    }
}

/// Whether a log may keep calls of the program in place of what they write: it is a procedure of
/// the catalog, and gives the same when it is called again.
fn is_command(program: &Program) -> bool {
    program.calls.get().is_some() && program.analysis.is_deterministic()
}

fn clear(bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.shrink_to(BYTES_KEPT_MAX);
}

/// All columns of a table.
#[inline]
pub fn all_columns(table: &Table) -> ColumnSet {
    table.layout().all()
}
