//! The log: what is committed, on disk before it is acknowledged.
//!
//! Each worker appends what it commits to a buffer (`buffers.rs`) of its own, inside its window of
//! the log epoch ([`kiln_storage::log_epoch`]). Whenever the disk is free one thread (`writer.rs`),
//! the log's own or one that waits for its commit, closes a log epoch, gathers what was committed
//! in the epochs up to it, and writes that as a *group*: one [block](crate::format::block), or
//! some, to the present segment (`segments.rs`). Then the *durable watermark* is this log epoch,
//! and what has waited for it goes on.
//!
//! # What to wait for
//!
//! A transaction may be acknowledged when the log epoch that was current after its end is on disk
//! ([`Log::wait`]), for then all is that it has observed. It needs to wait only for epochs of which
//! anything was appended: where nothing is under way a reader does not wait.
//!
//! # Failure
//!
//! The first failed write ends the log: it writes nothing any more, the watermark stays, and each
//! wait ends with the error. No write or sync is repeated. The log keeps the entries that are in
//! memory and not known to be on disk: from them the engine learns which tables these change
//! ([`Log::take_lost`]).
//!
//! That no *new* segment can be made is known a whole segment earlier: then the log
//! [takes](Log::refusal) no further changes and writes those that it has.

mod buffers;
mod segments;
mod statistics;
mod watermark;
mod writer;

use std::task::{Context, Poll};

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::disk::{AlignedBuffer, Directory};
use kiln_platform::sync::{Arc, Mutex, OnceLock, lock};
use kiln_platform::thread::{self, JoinHandle, Thread};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::{CallAnswer, Commit, Listener, Listeners};
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};
use kiln_storage::sequence::{SequenceId, SequenceState};

use crate::canary::Canary;
use crate::error::disk_error;
use crate::format::entry::{self, Entries, Entry, NotAnEntry, Parts};
use crate::format::{Chain, DatabaseId};
use buffers::{Buffers, Group};
use segments::{Segment, Segments};
use watermark::Watermark;
use writer::Writer;

pub use statistics::{Histogram, Statistics};
pub use watermark::Follower;

/// How a log is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogOptions {
    /// The length of a segment, in bytes (64 MiB); a multiple of 4,096.
    pub segment_bytes: u64,
    /// The bytes that may wait to be written (16 MiB); while there are more no transaction begins.
    /// At most a quarter of a segment, so that what was committed fits into the present one when no
    /// other can be made.
    pub pending_bytes_max: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions::with_segments(64 << 20)
    }
}

impl LogOptions {
    /// With segments of this length.
    pub fn with_segments(bytes: u64) -> LogOptions {
        LogOptions {
            segment_bytes: bytes,
            pending_bytes_max: bytes / 4,
        }
    }
}

/// Where a log is written on: after the last block that was read, or at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The chain up to there.
    pub chain: Chain,
    /// The segment.
    pub segment: u64,
    /// The offset in it.
    pub offset: u64,
    /// The last log epoch before.
    pub epoch: u64,
}

impl Position {
    /// The beginning of a database's log.
    pub fn start(database: DatabaseId) -> Position {
        Position {
            chain: Chain::new(database),
            segment: 1,
            offset: 0,
            epoch: 0,
        }
    }
}

/// A log that is written. Dropped, it writes what was committed and ends.
pub struct Log {
    inner: Arc<Inner>,
    segments: Arc<Segments>,
    writer: Arc<Mutex<Writer>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) struct Inner {
    epochs: LogEpochs,
    buffers: Arc<Buffers>,
    /// The worker whose windows entries have that no worker reports. Locked while it has one: any
    /// thread may append those.
    engine: Mutex<usize>,
    pending_bytes_max: u64,
    watermark: Watermark,
    alarm: Alarm,
    statistics: Mutex<Statistics>,
    /// The number of the segment in which the last group begins.
    segment: AtomicU64,
    /// After the last group that is on disk.
    end: Mutex<Position>,
    /// Whether a write has failed, or no further segment can be made.
    refuses: Arc<AtomicBool>,
    /// Whether a write has failed.
    has_failed: AtomicBool,
    /// After a failed write: entries that are not known to be on disk, until they are taken.
    lost: Mutex<Vec<Vec<u8>>>,
    is_closing: AtomicBool,
}

/// What wakes the log's thread.
///
/// Either the thread that wants something sees that the log's sleeps, or the log's sees what it
/// wants: each writes its word and then reads the other's, all of it sequentially consistent.
#[derive(Default)]
struct Alarm {
    is_asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Alarm {
    /// Sleeps, for these nanoseconds at most, unless there is something to do. Called by the log's
    /// thread.
    fn sleep(&self, nanoseconds: u64, has_work: impl Fn() -> bool) {
        self.thread.get_or_init(thread::current);
        self.is_asleep.store(true, Ordering::SeqCst);
        if !has_work() {
            thread::park_for(nanoseconds);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    fn ring(&self) {
        if self.is_asleep.load(Ordering::SeqCst)
            && self.is_asleep.swap(false, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

impl Log {
    /// Writes a log on in `directory` at `position`, and starts its threads. Entries that no worker
    /// reports get the windows of the worker called `engine`, which commits nothing; all workers'
    /// numbers are below `workers`. No window is open, and the next epoch is after the position's.
    ///
    /// # Errors
    /// 53100 and 58030 when the first segment cannot be made; 53000 when the system grants no more
    /// threads.
    pub fn open(
        directory: Directory,
        position: Position,
        epochs: LogEpochs,
        (workers, engine): (usize, usize),
        options: &LogOptions,
    ) -> Result<Log> {
        epochs.start_after(LogEpoch(position.epoch));
        let to_error = |error| disk_error(&error);
        segments::make(
            &directory,
            position.segment,
            options.segment_bytes,
            None,
            || true,
            || {},
        )
        .map_err(to_error)?;
        let segment = Segment::open(&directory, position.segment).map_err(to_error)?;
        let no_thread = |error: std::io::Error| {
            Error::new(
                SqlState::INSUFFICIENT_RESOURCES,
                format!("the system starts no further thread: {error}"),
            )
        };
        let refuses = Arc::new(AtomicBool::new(false));
        let started = Segments::start(
            directory,
            options.segment_bytes,
            position.segment,
            refuses.clone(),
        );
        let segments = Arc::new(started.map_err(no_thread)?);
        let buffers = Arc::new(Buffers::new(workers));
        epochs.join(engine);
        buffers.join(engine);
        let inner = Arc::new(Inner {
            epochs,
            buffers,
            engine: Mutex::new(engine),
            pending_bytes_max: options.pending_bytes_max,
            watermark: Watermark::new(position.epoch),
            alarm: Alarm::default(),
            statistics: Mutex::default(),
            segment: AtomicU64::new(position.segment),
            end: Mutex::new(position),
            refuses,
            has_failed: AtomicBool::new(false),
            lost: Mutex::default(),
            is_closing: AtomicBool::new(false),
        });
        let writer = Writer {
            inner: inner.clone(),
            segments: segments.clone(),
            segment,
            offset: position.offset,
            chain: position.chain,
            covered: position.chain.last,
            block: AlignedBuffer::new(1 << 20),
            through: position.epoch,
            gathers_since_ns: 0,
            // The last block that was read may be without one behind it that calls it durable, and
            // is promised from now on.
            uncovered_since_ns: u64::from(position.chain.last > 0),
            group: Group::default(),
            has_ended: false,
        };
        let writer = Arc::new(Mutex::new(writer));
        let (written, of_thread) = (writer.clone(), inner.clone());
        let run = move || writer::run(&written, &of_thread);
        let thread = thread::spawn("kiln-log", run).map_err(no_thread)?;
        Ok(Log {
            inner,
            segments,
            writer,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The listeners that a journal is to have.
    pub fn listeners(&self) -> Arc<dyn Listeners> {
        self.inner.clone()
    }

    /// The log epoch up to which all commits are on disk.
    pub fn durable_through(&self) -> LogEpoch {
        LogEpoch(self.inner.watermark.through())
    }

    /// The log epoch up to which all is on disk that was observed before this call: no bound where
    /// no entry waits to be written. It changes when [`Log::durable_through`] does, or when the
    /// next entry is appended.
    pub fn acknowledges_through(&self) -> LogEpoch {
        // What was observed was appended before, and so is found. In this order: the watermark only
        // grows.
        let newest = self.inner.buffers.newest();
        let through = self.inner.watermark.through();
        LogEpoch(if newest <= through { u64::MAX } else { through })
    }

    /// What has to be on disk before a transaction is acknowledged that has observed epochs up to
    /// this one; `None` when it is.
    fn awaited(&self, observed: LogEpoch) -> Option<u64> {
        let through = self.inner.watermark.through();
        if observed.0 <= through {
            return None;
        }
        // What it has observed was appended before, and so is found.
        let awaited = observed.0.min(self.inner.buffers.newest());
        (awaited > through).then_some(awaited)
    }

    /// As [`Log::awaited`], and has the log's thread write it as soon as the disk is free.
    fn wanted(&self, observed: LogEpoch) -> Option<u64> {
        let awaited = self.awaited(observed)?;
        self.inner.watermark.want(awaited);
        self.inner.alarm.ring();
        Some(awaited)
    }

    /// Waits until all is on disk that a transaction has observed, which has observed log epochs up
    /// to this one.
    ///
    /// # Errors
    /// 53100 and 58030 when it will not be: it is in memory, and may or may not be found after a
    /// restart.
    pub fn wait(&self, observed: LogEpoch) -> Result<()> {
        let waited = self.wait_until(observed, None);
        waited.unwrap_or_else(|| Err(Error::internal("a wait without deadline ended")))
    }

    /// As [`Log::wait`], until `deadline_ns` at most: `None` when it has passed.
    pub fn wait_until(&self, observed: LogEpoch, deadline_ns: Option<u64>) -> Option<Result<()>> {
        // One that has a deadline does not wait for the disk beyond it.
        if deadline_ns.is_none() && self.awaited(observed).is_some() {
            writer::lead(&self.writer);
        }
        match self.wanted(observed) {
            None => Some(Ok(())),
            Some(awaited) => self.inner.watermark.wait(awaited, deadline_ns),
        }
    }

    /// As [`Log::wait`], for a task.
    pub fn poll(&self, observed: LogEpoch, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.wanted(observed) {
            None => Poll::Ready(Ok(())),
            Some(awaited) => self.inner.watermark.poll(awaited, context),
        }
    }

    /// Whether all is on disk that was observed in log epochs up to this one. If not, the log
    /// writes it as soon as it can.
    pub fn is_durable(&self, observed: LogEpoch) -> bool {
        self.wanted(observed).is_none()
    }

    /// Tells the follower when all is on disk that was observed in log epochs up to this one.
    pub fn follow(&self, observed: LogEpoch, follower: Arc<dyn Follower>) {
        let awaited = self.wanted(observed).unwrap_or_default();
        self.inner.watermark.follow(awaited, follower);
    }

    /// Appends a change of the catalog. No transaction runs: all that was committed comes before
    /// it, and all that will be after it. Returns its log epoch, which is its own.
    pub fn append_statement(&self, text: &str) -> LogEpoch {
        self.inner.epochs.close();
        let epoch = (self.inner).append(|bytes, epoch| entry::append_statement(bytes, epoch, text));
        self.inner.epochs.close();
        epoch
    }

    /// Appends a transaction block that has changed the catalog, as [`Log::append_statement`] a
    /// statement.
    pub fn append_block(&self, parts: &Parts) -> LogEpoch {
        self.inner.epochs.close();
        let epoch = (self.inner).append(|bytes, epoch| entry::append_block(bytes, epoch, parts));
        self.inner.epochs.close();
        epoch
    }

    /// Appends how a call ended that wrote nothing. Returns its log epoch.
    pub fn append_outcome(&self, key: &[u8], answer: &[u8]) -> LogEpoch {
        (self.inner).append(|bytes, epoch| entry::append_outcome(bytes, epoch, key, answer))
    }

    /// Appends how far a sequence has got. Returns its log epoch: what is committed with a value
    /// that is drawn later is of this one or a later one.
    pub fn append_sequence(&self, id: SequenceId, state: SequenceState) -> LogEpoch {
        if Canary::SequencesNotLogged.sings() {
            return self.newest();
        }
        (self.inner).append(|bytes, epoch| entry::append_sequence(bytes, epoch, id, state))
    }

    /// Whether more bytes wait to be written than may: then no transaction should begin.
    #[inline(always)]
    pub fn is_congested(&self) -> bool {
        self.inner.buffers.pending() > self.inner.pending_bytes_max
    }

    /// Waits until the log is no longer [congested](Log::is_congested), or `deadline_ns` has
    /// passed; false then.
    #[cold]
    pub fn wait_for_room(&self, deadline_ns: Option<u64>) -> bool {
        while self.is_congested() {
            // The group that is gathering: its bytes are free when it is written.
            let gathering = LogEpoch(self.inner.watermark.through() + 1);
            if let Some(Err(_)) = self.wait_until(gathering, deadline_ns) {
                return true;
            }
            if deadline_ns.is_some_and(|deadline| kiln_platform::time::now_ns() >= deadline) {
                return false;
            }
            thread::yield_now();
        }
        true
    }

    /// Whether the log takes no further changes; [`Log::refusal`] says why.
    #[inline(always)]
    pub fn refuses(&self) -> bool {
        // Relaxed: a change that begins meanwhile ends with the error when it waits.
        self.inner.refuses.load(Ordering::Relaxed)
    }

    /// Why the log takes no further changes, if it does not: 58030 after a failed write, 53100 when
    /// no further segment can be made.
    pub fn refusal(&self) -> Option<Error> {
        let failure = self.inner.watermark.failure();
        failure.or_else(|| self.segments.failure().map(|error| disk_error(&error)))
    }

    /// Whether a write has failed: what was not on disk by then never will be.
    #[inline(always)]
    pub fn has_failed(&self) -> bool {
        // Acquire pairs with the release in the writer: the entries that it could not write are
        // among the lost ones.
        self.inner.has_failed.load(Ordering::Acquire)
    }

    /// After a failed write: gives `each` the entries that are in memory and not known to be on
    /// disk, each of them once. All that the caller has observed is among those that were given to
    /// one of its calls or to an earlier one. Does nothing before.
    pub fn take_lost(&self, mut each: impl FnMut(std::result::Result<Entry<'_>, NotAnEntry>)) {
        if !self.has_failed() {
            return;
        }
        let mut lost = lock(&self.inner.lost);
        self.inner.gather_lost(&mut lost);
        for piece in lost.drain(..) {
            Entries::new(&piece).for_each(&mut each);
        }
    }

    /// Gives up the files of the segments before this one, which is or comes before the one that is
    /// written: the manifest says that no recovery reads them any more.
    pub fn retire_before(&self, segment: u64) {
        self.segments.retire_before(segment);
    }

    /// The last log epoch of which anything was appended.
    pub fn newest(&self) -> LogEpoch {
        LogEpoch(self.inner.buffers.newest())
    }

    /// The segment in which the group begins that is written, or was last. All that is of a log
    /// epoch that is not closed yet goes into this one or later ones.
    pub fn segment(&self) -> u64 {
        // Acquire pairs with the release in the writer: a log epoch that is read after this was not
        // closed before.
        self.inner.segment.load(Ordering::Acquire)
    }

    /// Bytes written so far, with headers and padding.
    pub fn written_bytes(&self) -> u64 {
        lock(&self.inner.statistics).written_bytes
    }

    /// Where the last group ends that is on disk. What a transaction wrote that was
    /// [waited](Log::wait) for is before that.
    pub fn end(&self) -> Position {
        *lock(&self.inner.end)
    }

    /// What was written so far.
    pub fn statistics(&self) -> Statistics {
        lock(&self.inner.statistics).clone()
    }

    /// Writes what was committed, and ends. What is appended after that is lost.
    ///
    /// # Errors
    /// What has failed, now or before.
    pub fn close(&self) -> Result<()> {
        let thread = lock(&self.thread).take();
        // Release pairs with the acquire in the writer: what was committed before is written.
        self.inner.is_closing.store(true, Ordering::Release);
        if let Some(thread) = thread {
            thread.thread().unpark();
            if thread.join().is_err() {
                return Err(Error::internal("the log's thread panicked"));
            }
        }
        self.inner.watermark.failure().map_or(Ok(()), Err)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The failure was reported to all that waited.
        let _ = self.close();
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("durable_through", &self.durable_through())
            .field("segment", &self.segment())
            .finish()
    }
}

impl Inner {
    fn append(&self, append: impl FnOnce(&mut Vec<u8>, u64)) -> LogEpoch {
        let engine = lock(&self.engine);
        let epoch = self.epochs.enter(*engine);
        (self.buffers).append(*engine, epoch.0, |bytes| append(bytes, epoch.0));
        self.epochs.leave(*engine);
        epoch
    }

    /// Appends an answer. Not once the log takes no changes any more: what it has left room for is
    /// what was committed.
    fn append_answer(
        &self,
        answer: &CallAnswer<'_>,
        append: fn(&mut Vec<u8>, u64, &[u8], &[u8]),
    ) -> Option<LogEpoch> {
        let CallAnswer { key, bytes: answer } = *answer;
        let is_taken = !self.refuses.load(Ordering::Relaxed);
        is_taken.then(|| self.append(|bytes, epoch| append(bytes, epoch, key, answer)))
    }

    /// Moves what has been appended to the entries that are lost.
    fn gather_lost(&self, lost: &mut Vec<Vec<u8>>) {
        let mut group = Group::default();
        let through = self.epochs.close().0;
        self.buffers.take(through, &mut group);
        self.lose(group, lost);
    }

    /// Moves a group to the entries that are lost. Its bytes wait for the disk no more.
    fn lose(&self, mut group: Group, lost: &mut Vec<Vec<u8>>) {
        lost.append(&mut group.pieces);
        self.buffers.recycle(&mut group);
    }
}

impl Listeners for Inner {
    fn listener(&self, worker: usize) -> Box<dyn Listener> {
        self.buffers.join(worker);
        Box::new(WorkerListener {
            buffers: self.buffers.clone(),
            worker,
        })
    }

    fn note(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        self.append_answer(answer, entry::append_outcome)
    }

    fn note_again(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        self.append_answer(answer, entry::append_repeated_outcome)
    }
}

/// Appends what a worker commits.
struct WorkerListener {
    buffers: Arc<Buffers>,
    worker: usize,
}

impl Listener for WorkerListener {
    #[inline]
    fn committed(&mut self, commit: &Commit<'_>) {
        self.buffers.append_commit(self.worker, commit);
    }
}

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use super::*;

    const MOMENT_NS: u64 = 20_000_000;

    #[test]
    fn an_entry_that_a_thread_appends_beside_another_one_keeps_its_window() {
        let epochs = &LogEpochs::new(1);
        epochs.join(0);
        let inner = &Inner {
            epochs: epochs.clone(),
            buffers: Arc::new(Buffers::new(1)),
            engine: Mutex::new(0),
            pending_bytes_max: u64::MAX,
            watermark: Watermark::new(0),
            alarm: Alarm::default(),
            statistics: Mutex::default(),
            segment: AtomicU64::new(1),
            end: Mutex::new(Position::start(DatabaseId::default())),
            refuses: Arc::default(),
            has_failed: AtomicBool::new(false),
            lost: Mutex::default(),
            is_closing: AtomicBool::new(false),
        };
        let closed = &AtomicU64::new(0);
        thread::scope(|scope| {
            inner.append(|_, _| {
                scope.spawn(move || {
                    inner.append(|_, epoch| {
                        scope.spawn(move || closed.store(epochs.close().0, Ordering::Release));
                        thread::sleep(MOMENT_NS);
                        let closed = closed.load(Ordering::Acquire);
                        assert!(
                            closed < epoch,
                            "{epoch} is closed before the entry is there"
                        );
                    });
                });
                // The other one begins before this one is done.
                thread::sleep(MOMENT_NS);
            });
        });
        assert_eq!(closed.load(Ordering::Acquire), 1);
    }
}
