//! Threads that may wait: they handle what a poller's thread must not, such as statements of an
//! open block, which may wait for a record.
//!
//! A statement may wait for a worker slot, and the blocks that hold the slots end by statements as
//! well. So the pool has two queues with a bound each on the threads that serve it: work that waits
//! for a slot never keeps [`Urgency::Next`] work waiting. There are as many threads as are busy;
//! one that has had nothing to do for a while ends.

use std::collections::VecDeque;
use std::time::Duration;

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::thread;

use super::attend::AttendState;

/// What a thread of the pool does: with what it keeps for clients, and what says whether other work
/// waits for a thread.
pub type Work = Box<dyn FnOnce(&mut AttendState, &dyn Fn() -> bool) + Send>;

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// Which work is done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Work of a client that holds a worker slot: others may wait for the slot.
    Next,
    /// All other work.
    Normal,
}

/// How many threads there are at most for work of each urgency.
#[derive(Clone, Copy, Debug)]
pub struct ThreadLimits {
    /// As many as there are worker slots: then the holder of each can go on.
    pub next: usize,
    pub normal: usize,
}

/// The threads.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    limits: ThreadLimits,
    state: Mutex<State>,
    /// How much work waits for a thread.
    waiting: AtomicUsize,
    has_work: Condvar,
    has_ended: Condvar,
}

#[derive(Default)]
struct State {
    next: Queue,
    normal: Queue,
    threads: usize,
    is_closed: bool,
}

/// Work of one urgency.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    /// Threads that do such work now.
    busy: usize,
}

impl Queue {
    /// How much of what waits may be done now.
    fn ready(&self, limit: usize) -> usize {
        self.waiting.len().min(limit.saturating_sub(self.busy))
    }
}

impl State {
    fn queue(&mut self, urgency: Urgency) -> &mut Queue {
        match urgency {
            Urgency::Next => &mut self.next,
            Urgency::Normal => &mut self.normal,
        }
    }

    /// How much of what waits may be done now.
    fn ready(&self, limits: ThreadLimits) -> usize {
        self.next.ready(limits.next) + self.normal.ready(limits.normal)
    }

    /// Threads that wait for work or come for some.
    fn free(&self) -> usize {
        self.threads - self.next.busy - self.normal.busy
    }

    /// The next work, whose thread is busy from now on.
    fn take(&mut self, limits: ThreadLimits) -> Option<(Urgency, Work)> {
        for (urgency, limit) in [
            (Urgency::Next, limits.next),
            (Urgency::Normal, limits.normal),
        ] {
            let queue = self.queue(urgency);
            if queue.ready(limit) > 0
                && let Some(work) = queue.waiting.pop_front()
            {
                queue.busy += 1;
                return Some((urgency, work));
            }
        }
        None
    }
}

impl Pool {
    /// No thread at first.
    pub fn new(limits: ThreadLimits) -> Pool {
        Pool {
            shared: Arc::new(Shared {
                limits: ThreadLimits {
                    next: limits.next.max(1),
                    normal: limits.normal.max(1),
                },
                state: Mutex::default(),
                waiting: AtomicUsize::new(0),
                has_work: Condvar::new(),
                has_ended: Condvar::new(),
            }),
        }
    }

    /// Has a thread do this, at once or when one may. The caller bounds how much waits.
    ///
    /// # Errors
    /// The system's, when there is no thread and none can be started.
    pub fn run(&self, urgency: Urgency, work: Work) -> std::io::Result<()> {
        let mut state = lock(&self.shared.state);
        state.queue(urgency).waiting.push_back(work);
        self.shared.waiting.fetch_add(1, Ordering::Relaxed);
        if state.free() >= state.ready(self.shared.limits) {
            drop(state);
            self.shared.has_work.notify_one();
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let shared = self.shared.clone();
        let Err(error) = thread::spawn("kiln-session", move || shared.serve()) else {
            return Ok(());
        };
        let mut state = lock(&self.shared.state);
        state.threads -= 1;
        match state.threads {
            0 => {
                state.queue(urgency).waiting.pop_back();
                self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
                Err(error)
            }
            // The others will come to it.
            _ => Ok(()),
        }
    }
}

impl Drop for Pool {
    /// Waits until all is done that was to be done.
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.is_closed = true;
        self.shared.has_work.notify_all();
        while state.threads > 0 {
            let waited = self.shared.has_ended.wait(state);
            state = waited.unwrap_or_else(|poison| poison.into_inner());
        }
    }
}

impl Shared {
    fn serve(&self) {
        let mut attend_state = AttendState::default();
        // Relaxed: a thread that sees it late gives its client back late.
        let is_wanted = || self.waiting.load(Ordering::Relaxed) > 0;
        let mut state = lock(&self.state);
        loop {
            if let Some((urgency, work)) = state.take(self.limits) {
                drop(state);
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                work(&mut attend_state, &is_wanted);
                state = lock(&self.state);
                state.queue(urgency).busy -= 1;
                continue;
            }
            if state.is_closed {
                break;
            }
            let waited = self.has_work.wait_timeout(state, IDLE);
            let (woken, timeout) = waited.unwrap_or_else(|poison| poison.into_inner());
            state = woken;
            if timeout.timed_out() && state.ready(self.limits) == 0 {
                break;
            }
        }
        state.threads -= 1;
        drop(state);
        self.has_ended.notify_all();
    }
}

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use super::*;
    use kiln_platform::atomic::AtomicBool;

    #[test]
    fn all_work_is_done_by_few_threads() {
        let done = Arc::new(AtomicUsize::new(0));
        let pool = Pool::new(ThreadLimits { next: 1, normal: 2 });
        for number in 0..100 {
            let done = done.clone();
            let work = move |_: &mut AttendState, _: &dyn Fn() -> bool| {
                thread::sleep(100_000);
                done.fetch_add(1, Ordering::Relaxed);
            };
            let urgency = match number % 2 {
                0 => Urgency::Next,
                _ => Urgency::Normal,
            };
            (pool.run(urgency, Box::new(work))).expect("there are threads");
        }
        assert!(lock(&pool.shared.state).threads <= 3);
        drop(pool);
        assert_eq!(done.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn urgent_work_is_done_while_all_other_work_waits_for_it() {
        let pool = Pool::new(ThreadLimits { next: 1, normal: 3 });
        let is_open = Arc::new(AtomicBool::new(false));
        for _ in 0..10 {
            let is_open = is_open.clone();
            let work = move |_: &mut AttendState, _: &dyn Fn() -> bool| {
                while !is_open.load(Ordering::Relaxed) {
                    thread::sleep(100_000);
                }
            };
            (pool.run(Urgency::Normal, Box::new(work))).expect("there are threads");
        }
        let opens = is_open.clone();
        let work =
            move |_: &mut AttendState, _: &dyn Fn() -> bool| opens.store(true, Ordering::Relaxed);
        (pool.run(Urgency::Next, Box::new(work))).expect("there are threads");
        drop(pool);
        assert!(is_open.load(Ordering::Relaxed));
    }
}
