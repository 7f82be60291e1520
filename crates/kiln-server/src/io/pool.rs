//! Threads that may wait: they handle what a poller's thread must not, such as statements of an open block, which may wait for a record.
//!
//! There are as many as are busy, up to a bound; one that has had nothing to do for a while ends.

use std::collections::VecDeque;
use std::time::Duration;

use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::thread;

/// What a thread of the pool does.
pub type Work = Box<dyn FnOnce() + Send>;

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// The threads.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    threads_max: usize,
    state: Mutex<State>,
    has_work: Condvar,
    has_ended: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    threads: usize,
    /// Those of the threads that wait for work.
    idle: usize,
    is_closed: bool,
}

impl Pool {
    /// At most so many threads; none at first.
    pub fn new(threads_max: usize) -> Pool {
        Pool {
            shared: Arc::new(Shared {
                threads_max: threads_max.max(1),
                state: Mutex::default(),
                has_work: Condvar::new(),
                has_ended: Condvar::new(),
            }),
        }
    }

    /// Has a thread do this, at once or when one is free. Who calls it bounds how much waits.
    ///
    /// # Errors
    /// The system's, when there is no thread and none can be started.
    pub fn run(&self, work: Work) -> std::io::Result<()> {
        let mut state = lock(&self.shared.state);
        state.work.push_back(work);
        if state.idle >= state.work.len() || state.threads >= self.shared.threads_max {
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
                state.work.pop_back();
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
        let mut state = lock(&self.state);
        loop {
            if let Some(work) = state.work.pop_front() {
                drop(state);
                work();
                state = lock(&self.state);
                continue;
            }
            if state.is_closed {
                break;
            }
            state.idle += 1;
            let waited = self.has_work.wait_timeout(state, IDLE);
            let (woken, timeout) = waited.unwrap_or_else(|poison| poison.into_inner());
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.work.is_empty() {
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
    use kiln_platform::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_work_is_done_by_few_threads() {
        let done = Arc::new(AtomicUsize::new(0));
        let pool = Pool::new(3);
        for _ in 0..100 {
            let done = done.clone();
            let work = move || {
                thread::sleep(100_000);
                done.fetch_add(1, Ordering::Relaxed);
            };
            pool.run(Box::new(work)).expect("there are threads");
        }
        assert!(lock(&pool.shared.state).threads <= 3);
        drop(pool);
        assert_eq!(done.load(Ordering::Relaxed), 100);
    }
}
