//! Recording: what one worker's attempts did, when they are observed.
//!
//! Accesses record what they install and what they do to the indexes, schedulers how attempts begin
//! and end, the executor the rest. While no observer is attached none of it happens, and it costs
//! hardly anything.

use std::cell::UnsafeCell;
use std::collections::HashMap;

use kiln_history::{Clock, EntryChange, IndexId, Log, Moment, Object, Version};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_storage::journal::Journal;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::table::{EntryKey, Table};

use super::report::Reporter;

/// Whether workers can be observed at all: the feature `history` is there.
pub const RECORDS_HISTORIES: bool = cfg!(feature = "history");

/// The record as histories name it.
#[inline]
pub fn object(record: RecordRef) -> Object {
    Object(record.address())
}

/// An index as histories name it.
#[inline]
pub fn index_id(table: &Table, index: usize) -> IndexId {
    IndexId {
        table: table.id().0,
        index: index as u16,
    }
}

/// The observation of a run: what the logs of all its workers have in common. Clones observe the
/// same run.
#[derive(Clone)]
#[cfg_attr(not(feature = "history"), expect(dead_code))]
pub struct Observation {
    clock: Clock,
    limit_bytes: usize,
    shared: Arc<Mutex<Observed>>,
}

#[derive(Default)]
struct Observed {
    procedures: Vec<String>,
    logs: Vec<Arc<LogCell>>,
}

/// The log of a worker, which the worker writes and the observation takes.
struct LogCell(UnsafeCell<Log>);

// SAFETY: the log inside is used by one thread at a time: by the worker's while it runs a
// transaction, and by the caller of `Observation::take_logs` while none runs.
unsafe impl Sync for LogCell {}

impl Observation {
    /// An observation whose workers keep at most about `limit_bytes` each.
    pub fn new(limit_bytes: usize) -> Observation {
        Observation {
            clock: Clock::new(),
            limit_bytes,
            shared: Arc::default(),
        }
    }

    /// Whether the two observe the same run.
    pub fn is(&self, other: &Observation) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn number(&self, procedure: &str) -> u32 {
        let procedures = &mut lock(&self.shared).procedures;
        let known = procedures.iter().position(|known| known == procedure);
        let number = known.unwrap_or_else(|| {
            procedures.push(procedure.to_owned());
            procedures.len() - 1
        });
        number as u32
    }

    /// The names of the procedures, by the numbers that the logs use.
    pub fn procedures(&self) -> Vec<String> {
        lock(&self.shared).procedures.clone()
    }

    /// The logs' words, a log for each worker that was ever observed; the logs are empty
    /// afterwards.
    ///
    /// # Safety
    /// No observed worker runs a transaction, and what they did before happened before this.
    pub unsafe fn take_logs(&self) -> Vec<Vec<u64>> {
        let shared = lock(&self.shared);
        let logs = shared.logs.iter();
        // SAFETY: the caller promises that no observed worker runs a transaction, so no worker uses
        // the logs now.
        logs.map(|log| unsafe { &mut *log.0.get() }.take_words())
            .collect()
    }
}

/// A worker's part in an observation, if it is observed.
#[derive(Default)]
pub struct Recorder {
    #[cfg(feature = "history")]
    observed: Option<Box<Worker>>,
}

struct Worker {
    observation: Observation,
    log: Arc<LogCell>,
    /// The numbers of the procedures that this worker has run.
    numbers: HashMap<String, u32>,
    /// Whether the log was full at the end of the last attempt.
    is_full: bool,
}

impl Recorder {
    /// Records for `observation` from now on, or nothing.
    #[cfg_attr(not(feature = "history"), expect(unused_variables))]
    pub fn observe(&mut self, observation: Option<&Observation>) {
        #[cfg(feature = "history")]
        {
            self.observed = observation.map(|observation| {
                let log = Log::new(observation.clock.clone(), observation.limit_bytes);
                let log = Arc::new(LogCell(UnsafeCell::new(log)));
                lock(&observation.shared).logs.push(log.clone());
                Box::new(Worker {
                    observation: observation.clone(),
                    log,
                    numbers: HashMap::new(),
                    is_full: false,
                })
            });
        }
    }

    #[inline(always)]
    fn observed(&mut self) -> Option<&mut Worker> {
        #[cfg(feature = "history")]
        {
            self.observed.as_deref_mut()
        }
        #[cfg(not(feature = "history"))]
        {
            None
        }
    }

    /// The log, if the worker is observed.
    #[inline(always)]
    pub fn log(&mut self) -> Option<&mut Log> {
        // SAFETY: the recorder is the worker's, which has it mutably while it runs a transaction;
        // the observation takes the log only while none runs.
        self.observed()
            .map(|worker| unsafe { &mut *worker.log.0.get() })
    }

    /// The present moment, if the worker is observed.
    #[inline(always)]
    pub fn now(&mut self) -> Option<Moment> {
        self.log().map(|log| log.now())
    }

    /// Whether the log had no room for another call when the last attempt ended. May be asked
    /// outside of transactions, when the log itself is not to be touched.
    pub fn is_full(&mut self) -> bool {
        self.observed().is_some_and(|worker| worker.is_full)
    }

    /// Records how an attempt ended.
    #[cold]
    #[inline(never)]
    pub fn end(&mut self, record: impl FnOnce(&mut Log)) {
        let Some(log) = self.log() else { return };
        record(log);
        let is_full = log.is_full();
        if let Some(worker) = self.observed() {
            worker.is_full = is_full;
        }
    }

    /// Records that an attempt of `procedure` begins.
    #[cold]
    #[inline(never)]
    pub fn begin(&mut self, procedure: &str, invoked: Moment) {
        let Some(worker) = self.observed() else {
            return;
        };
        let number = match worker.numbers.get(procedure) {
            Some(&number) => number,
            None => {
                let number = worker.observation.number(procedure);
                worker.numbers.insert(procedure.to_owned(), number);
                number
            }
        };
        if let Some(log) = self.log() {
            log.begin(number, invoked);
        }
    }

    /// Records that an entry came or went in a window that ends now.
    #[cold]
    #[inline(never)]
    pub fn entry(
        &mut self,
        (table, index): (&Table, usize),
        change: EntryChange,
        record: RecordRef,
        from: Moment,
        key: &EntryKey,
    ) {
        if let Some(log) = self.log() {
            let key = key.to_bytes();
            log.entry(index_id(table, index), change, object(record), from, &key);
        }
    }

    /// Records that a key was found to have no entry between `from` and now.
    #[cold]
    #[inline(never)]
    pub fn missing(&mut self, (table, index): (&Table, usize), from: Moment, key: &EntryKey) {
        if let Some(log) = self.log() {
            log.point(index_id(table, index), &key.to_bytes(), from, &[]);
        }
    }

    /// Records that an entry goes some time from now on, when no snapshot has it any more.
    #[cold]
    #[inline(never)]
    pub fn entry_goes(
        &mut self,
        (table, index): (&Table, usize),
        record: RecordRef,
        key: &EntryKey,
    ) {
        if let Some(log) = self.log() {
            log.entry_goes(index_id(table, index), object(record), &key.to_bytes());
        }
    }

    /// Records that what was read of `record` with the tid `former` is relied on as it is with
    /// `tid`.
    #[cold]
    #[inline(never)]
    pub fn read_moves(&mut self, record: RecordRef, former: Tid, tid: Tid) {
        if let Some(log) = self.log() {
            let (former, version) = (Version(former.version()), Version(tid.version()));
            log.read_moves(object(record), former, version);
        }
    }
}

/// What has a recorder, and reports its commits.
pub trait Recorded {
    /// The recorder.
    fn recorder(&mut self) -> &mut Recorder;

    /// Reports commits to a listener of this journal from now on, or to none; see
    /// [`Reporter::attach`](super::report::Reporter::attach).
    fn attach(&mut self, journal: Option<&Journal>);

    /// What reports, if it can.
    fn reporter(&mut self) -> Option<&mut Reporter>;
}
