//! The durable watermark: the log epoch up to which all commits are on disk, and who waits for it.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Condvar, Mutex, MutexGuard, lock};
use kiln_platform::time;
use kiln_storage::error::{Error, Result, SqlState};

/// Is told when log epochs are on disk, by the log's thread: it must not block.
pub trait Follower: Send + Sync {
    /// All commits of log epochs up to `through` are on disk. With a failure no others ever will
    /// be.
    fn durable(self: Arc<Self>, through: u64, failure: Option<&Error>);
}

/// The watermark.
#[derive(Default)]
pub(super) struct Watermark {
    through: AtomicU64,
    /// The last log epoch that is waited for.
    wanted: AtomicU64,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    failure: Option<Error>,
    /// Whether the log has ended.
    is_closed: bool,
    /// Threads that wait for `changed`.
    threads: usize,
    /// Tasks, and the log epochs that they wait for.
    tasks: Vec<(u64, Waker)>,
    followers: Vec<(u64, Arc<dyn Follower>)>,
}

impl Waiting {
    /// Why nothing becomes durable any more, if so.
    fn end(&self) -> Option<Error> {
        let closed = || Error::new(SqlState::ADMIN_SHUTDOWN, "the database is closed");
        self.failure.clone().or_else(|| self.is_closed.then(closed))
    }
}

impl Watermark {
    /// At this log epoch.
    pub fn new(through: u64) -> Watermark {
        Watermark {
            through: AtomicU64::new(through),
            ..Watermark::default()
        }
    }

    /// The log epoch up to which all is on disk.
    #[inline(always)]
    pub fn through(&self) -> u64 {
        // Acquire pairs with the release in `advance`.
        self.through.load(Ordering::Acquire)
    }

    /// The last log epoch that is waited for.
    pub fn wanted(&self) -> u64 {
        // Sequentially consistent: see `Alarm`.
        self.wanted.load(Ordering::SeqCst)
    }

    /// Has the log write groups up to this log epoch as soon as it can.
    pub fn want(&self, epoch: u64) {
        self.wanted.fetch_max(epoch, Ordering::SeqCst);
    }

    /// Why nothing becomes durable any more, if something has failed.
    pub fn failure(&self) -> Option<Error> {
        lock(&self.waiting).failure.clone()
    }

    /// All log epochs up to `through` are on disk: releases what has waited for them.
    pub fn advance(&self, through: u64) {
        self.through.store(through, Ordering::Release);
        self.release(lock(&self.waiting), through);
    }

    /// Nothing will become durable any more: the first failure is final.
    pub fn fail(&self, error: Error) {
        let mut waiting = lock(&self.waiting);
        waiting.failure.get_or_insert(error);
        self.release(waiting, u64::MAX);
    }

    /// The log has ended, and nothing becomes durable any more.
    pub fn close(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.is_closed = true;
        self.release(waiting, u64::MAX);
    }

    /// Releases what waits for log epochs up to this one.
    fn release(&self, mut waiting: MutexGuard<'_, Waiting>, up_to: u64) {
        let tasks = take_up_to(&mut waiting.tasks, up_to);
        let followers = take_up_to(&mut waiting.followers, up_to);
        let failure = (!followers.is_empty()).then(|| waiting.end()).flatten();
        if waiting.threads > 0 {
            self.changed.notify_all();
        }
        drop(waiting);
        tasks.into_iter().for_each(|(_, task)| task.wake());
        let through = self.through();
        for (_, follower) in followers {
            follower.durable(through, failure.as_ref());
        }
    }

    /// Waits until this log epoch is on disk; `None` when `deadline_ns` has passed before.
    ///
    /// # Errors
    /// What has failed, when the log epoch will not be on disk.
    pub fn wait(&self, epoch: u64, deadline_ns: Option<u64>) -> Option<Result<()>> {
        let mut waiting = lock(&self.waiting);
        loop {
            if self.through() >= epoch {
                return Some(Ok(()));
            }
            if let Some(error) = waiting.end() {
                return Some(Err(error));
            }
            waiting.threads += 1;
            let remaining_ns = deadline_ns.map(|deadline| deadline.saturating_sub(time::now_ns()));
            waiting = match remaining_ns {
                None => (self.changed.wait(waiting)).unwrap_or_else(|poison| poison.into_inner()),
                Some(remaining_ns) => {
                    let timeout = Duration::from_nanos(remaining_ns);
                    let waited = self.changed.wait_timeout(waiting, timeout);
                    waited.unwrap_or_else(|poison| poison.into_inner()).0
                }
            };
            waiting.threads -= 1;
            if remaining_ns == Some(0) {
                return None;
            }
        }
    }

    /// As [`Watermark::wait`], for a task.
    pub fn poll(&self, epoch: u64, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut waiting = lock(&self.waiting);
        if self.through() >= epoch {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = waiting.end() {
            return Poll::Ready(Err(error));
        }
        let waker = context.waker();
        let known = (waiting.tasks.iter_mut()).find(|(_, known)| known.will_wake(waker));
        match known {
            // One task may wait for several: it is woken for the first, and asks again.
            Some((known_epoch, _)) => *known_epoch = epoch.min(*known_epoch),
            None => waiting.tasks.push((epoch, waker.clone())),
        }
        Poll::Pending
    }

    /// Tells the follower when this log epoch is on disk, or will not be; perhaps at once.
    pub fn follow(&self, epoch: u64, follower: Arc<dyn Follower>) {
        let mut waiting = lock(&self.waiting);
        let failure = waiting.end();
        if self.through() < epoch && failure.is_none() {
            return waiting.followers.push((epoch, follower));
        }
        drop(waiting);
        follower.durable(self.through(), failure.as_ref());
    }
}

/// Takes those out that wait for log epochs up to this one.
fn take_up_to<T>(waiting: &mut Vec<(u64, T)>, up_to: u64) -> Vec<(u64, T)> {
    let mut taken = Vec::new();
    let mut at = 0;
    while at < waiting.len() {
        match waiting[at].0 <= up_to {
            true => taken.push(waiting.swap_remove(at)),
            false => at += 1,
        }
    }
    taken
}
