//! Completion: how a submitted call's outcome reaches the thread that wants it, through a
//! [`Ticket`] of its own or through a queue of [`Completions`] that many calls share.

use std::collections::VecDeque;
use std::time::Duration;

use kiln_durability::log::{Follower, Log};
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, lock};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::log_epoch::LogEpoch;

use super::reply::Reply;
use crate::errors::in_doubt;
use crate::observed::Observed;
use crate::wait::{deadline_after, wait};

/// A call's end, as a queue of [`Completions`] tells it.
#[derive(Debug)]
pub struct Completion {
    /// What the submitter called the call.
    pub token: u64,
    /// The outcome, or why the call could not be run.
    pub result: Result<Reply>,
    /// The log epoch that was current when the call had ended: what has to be durable before the
    /// outcome may be told to a client that was promised durability.
    pub observed: LogEpoch,
}

/// Where the outcomes of many calls arrive, for one thread that serves many clients: it submits
/// calls with [`Engine::submit_to`](crate::Engine::submit_to) and takes what has ended, in the
/// order of the ends, without a thread or an allocation for each call.
///
/// The queue is bounded: it accepts calls while fewer than its capacity are on their way or wait
/// here to be taken.
pub struct Completions {
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// Calls accepted whose completions were not taken yet.
    outstanding: AtomicUsize,
    capacity: usize,
    /// Called when the queue is no longer empty.
    wake: Option<Box<dyn Fn() + Send + Sync>>,
    /// The log of the database whose calls arrive here, if it has one.
    log: OnceLock<Arc<Log>>,
}

#[derive(Default)]
struct Queue {
    completions: Vec<Completion>,
    /// What has ended and rests on what is not on disk yet, in the order of the ends.
    held: VecDeque<Completion>,
    /// Whether a thread sleeps in [`Completions::wait`].
    is_awaited: bool,
}

impl Completions {
    /// A queue for at most `capacity` calls at a time, whose owner calls [`Completions::wait`].
    pub fn new(capacity: usize) -> Arc<Completions> {
        Completions::with(capacity, None)
    }

    /// A queue whose owner sleeps elsewhere, for instance in a poll of sockets: `wake` is called on
    /// a worker's thread whenever the queue stops being empty. It must not block.
    pub fn with_wake(capacity: usize, wake: impl Fn() + Send + Sync + 'static) -> Arc<Completions> {
        Completions::with(capacity, Some(Box::new(wake)))
    }

    fn with(capacity: usize, wake: Option<Box<dyn Fn() + Send + Sync>>) -> Arc<Completions> {
        Arc::new(Completions {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            outstanding: AtomicUsize::new(0),
            capacity,
            wake,
            log: OnceLock::new(),
        })
    }

    /// Takes what has ended, without waiting. `into` is cleared first.
    pub fn take(&self, into: &mut Vec<Completion>) {
        into.clear();
        std::mem::swap(&mut lock(&self.queue).completions, into);
        self.outstanding.fetch_sub(into.len(), Ordering::Relaxed);
    }

    /// Takes what has ended; waits for at most `timeout` when nothing has. `into` is cleared first
    /// and stays empty when the time has passed.
    pub fn wait(&self, into: &mut Vec<Completion>, timeout: Duration) {
        let deadline_ns = deadline_after(timeout);
        into.clear();
        let mut queue = lock(&self.queue);
        while queue.completions.is_empty() {
            queue.is_awaited = true;
            match wait(&self.arrived, queue, Some(deadline_ns)) {
                Some(waited) => queue = waited,
                None => {
                    lock(&self.queue).is_awaited = false;
                    return;
                }
            }
        }
        queue.is_awaited = false;
        std::mem::swap(&mut queue.completions, into);
        drop(queue);
        self.outstanding.fetch_sub(into.len(), Ordering::Relaxed);
    }

    /// Calls that were accepted, and whose completions were not taken yet.
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Relaxed)
    }

    /// Makes room for one call's completion; false when the queue is at its capacity.
    pub(crate) fn reserve(&self) -> bool {
        // Relaxed: the count orders nothing; the queue's mutex hands the completions over.
        let reserved =
            self.outstanding
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                    (count < self.capacity).then_some(count + 1)
                });
        reserved.is_ok()
    }

    /// Gives back what [`Completions::reserve`] made: the call was not accepted.
    pub(crate) fn release(&self) {
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
    }

    /// Has calls of a database with this log arrive here, and with no other one.
    ///
    /// # Errors
    /// 55000 when calls of another database with a log do.
    pub(crate) fn keep_with(&self, log: &Arc<Log>) -> Result<()> {
        match Arc::ptr_eq(self.log.get_or_init(|| log.clone()), log) {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "a queue of completions belongs to the first database with a log whose calls it took",
            )),
        }
    }

    fn push(self: Arc<Self>, completion: Completion, waits: bool) {
        let mut queue = lock(&self.queue);
        if let (true, Some(log)) = (waits, self.log.get()) {
            let observed = completion.observed;
            let is_first = queue.held.is_empty();
            // Behind others that are held it is released with them: one look at the watermark for
            // all of them.
            if !is_first || !log.is_durable(observed) {
                queue.held.push_back(completion);
                drop(queue);
                if is_first {
                    log.follow(observed, self.clone());
                }
                return;
            }
        }
        let was_empty = queue.completions.is_empty();
        queue.completions.push(completion);
        self.announce(queue, was_empty);
    }

    /// Wakes the owner of the queue, which was empty or was not.
    fn announce(&self, mut queue: MutexGuard<'_, Queue>, was_empty: bool) {
        let is_awaited = std::mem::take(&mut queue.is_awaited);
        drop(queue);
        if is_awaited {
            self.arrived.notify_one();
        }
        if let (true, Some(wake)) = (was_empty, &self.wake) {
            wake();
        }
    }
}

impl Follower for Completions {
    /// Hands over what was held, once a group, as far as it is on disk.
    fn durable(self: Arc<Self>, through: u64, failure: Option<&Error>) {
        let Some(log) = self.log.get() else {
            return;
        };
        let mut queue = lock(&self.queue);
        let was_empty = queue.completions.is_empty();
        let mut next = None;
        while let Some(mut completion) = queue.held.pop_front() {
            if completion.observed.0 > through && !log.is_durable(completion.observed) {
                match failure {
                    Some(failure) => completion.result = Err(in_doubt(failure.clone())),
                    None => {
                        // What was held meanwhile is of one group, mostly: that of the last one.
                        // Which may have observed less than the first one, or nothing, as an error
                        // does.
                        let last = queue.held.back().map(|last| last.observed);
                        next = last.max(Some(completion.observed));
                        queue.held.push_front(completion);
                        break;
                    }
                }
            }
            queue.completions.push(completion);
        }
        let was_empty = was_empty && !queue.completions.is_empty();
        self.announce(queue, was_empty);
        if let Some(observed) = next {
            log.follow(observed, self.clone());
        }
    }
}

impl std::fmt::Debug for Completions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completions")
            .field("outstanding", &self.outstanding())
            .field("capacity", &self.capacity)
            .finish()
    }
}

/// One call's way into a queue of completions, in which room is reserved.
pub(crate) struct Delivery {
    pub queue: Arc<Completions>,
    pub token: u64,
    /// Whether the outcome waits until what it rests on is on disk.
    pub waits: bool,
}

impl Delivery {
    pub fn deliver(self, outcome: Observed<Reply>) {
        let completion = Completion {
            token: self.token,
            result: outcome.result,
            observed: outcome.epoch,
        };
        self.queue.push(completion, self.waits);
    }
}

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use kiln_durability::format::DatabaseId;
    use kiln_durability::log::{LogOptions, Position};
    use kiln_platform::disk::{Directory, TemporaryDirectory};
    use kiln_storage::log_epoch::LogEpochs;

    use super::*;

    /// Two workers end calls at the same time. The one that has observed more comes first: the
    /// other one's call is on disk already.
    #[test]
    fn what_is_on_disk_waits_behind_what_is_not() {
        let directory = TemporaryDirectory::new("kiln-completions").expect("there is room");
        let segments = Directory::open(directory.path()).expect("it is there");
        let epochs = LogEpochs::new(2);
        let position = Position::start(DatabaseId(*b"some completions"));
        let options = LogOptions::with_segments(16 << 10);
        let log = Log::open(segments, position, epochs.clone(), (2, 0), &options);
        let log = Arc::new(log.expect("the directory is new"));
        let completions = Completions::new(2);
        completions.keep_with(&log).expect("it has no other log");
        let end = |observed: LogEpoch| {
            assert!(completions.reserve());
            let delivery = Delivery {
                queue: completions.clone(),
                token: observed.0,
                waits: true,
            };
            delivery.deliver(Observed {
                result: Ok(Reply::Expired),
                epoch: observed,
            });
        };
        let first = log.append_outcome(b"first", b"answer");
        log.wait(first).expect("the disk works");
        // The log cannot close the epoch of the second entry before the window is closed.
        epochs.join(1);
        epochs.enter(1);
        let second = log.append_outcome(b"second", b"answer");
        end(second);
        end(first);
        completions.clone().durable(first.0, None);
        let mut ended = Vec::new();
        completions.take(&mut ended);
        assert!(ended.is_empty(), "{ended:?}");
        epochs.leave(1);
        while ended.len() < 2 {
            let mut more = Vec::new();
            completions.wait(&mut more, Duration::from_secs(10));
            assert!(!more.is_empty());
            ended.append(&mut more);
        }
        let tokens: Vec<u64> = ended.iter().map(|completion| completion.token).collect();
        assert_eq!(tokens, [second.0, first.0]);
    }
}
