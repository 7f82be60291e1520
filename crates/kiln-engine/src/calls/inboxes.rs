//! Inboxes: bounded queues of calls, one for each worker.
//!
//! A call goes to a worker that sleeps, if there is one, or to the shorter of two queues. A worker
//! whose own inbox is empty takes calls from the others before it sleeps, so that no call waits
//! behind a long one while a worker has nothing to do.

use std::collections::VecDeque;

use kiln_platform::atomic::{AtomicBool, AtomicUsize, Ordering};
use kiln_platform::plain;
use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_procedure::{Arguments, Interrupt, Program};
use kiln_storage::error::Result;

use super::call::Statement;
use super::promise::Promise;
use crate::catalog::{Catalog, Procedure, check_current};
use crate::wait::wait;

/// What a job runs, resolved in the catalog of some version.
pub(crate) enum Work {
    Procedure(Arc<Procedure>),
    Statement {
        statement: Arc<dyn Statement>,
        program: Arc<Program>,
    },
}

impl Work {
    /// The program.
    #[inline]
    pub fn program(&self) -> &Arc<Program> {
        match self {
            Work::Procedure(procedure) => procedure.program(),
            Work::Statement { program, .. } => program,
        }
    }

    /// Resolves the work again in `catalog`, after a change. Returns whether it has another program
    /// now, to which the arguments must be bound.
    ///
    /// # Errors
    /// 42883 when the procedure was dropped; those of the statement's compilation.
    fn renew(&mut self, catalog: &Arc<Catalog>) -> Result<bool> {
        match self {
            Work::Procedure(procedure) => {
                let found = catalog.require_procedure(procedure.name())?;
                let is_other = !Arc::ptr_eq(found, procedure);
                *procedure = found.clone();
                Ok(is_other)
            }
            Work::Statement { statement, program } => {
                if check_current(program).is_ok() {
                    return Ok(false);
                }
                *program = statement.program(catalog)?;
                Ok(true)
            }
        }
    }
}

/// A call on its way. Its arguments are bound to the program of its work.
pub(crate) struct Job {
    pub work: Work,
    /// The version of the catalog that the work was resolved in.
    pub resolved_in: u64,
    pub arguments: Arguments,
    pub deadline_ns: Option<u64>,
    /// What may ask it to end before its time.
    pub interrupt: Option<Interrupt>,
    pub promise: Promise,
}

impl Job {
    /// Whether it was asked to end.
    #[inline]
    pub fn is_canceled(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_canceled)
    }

    /// Whether it must end before a worker runs it.
    fn is_overdue(&self, now_ns: u64) -> bool {
        self.is_canceled() || self.deadline_ns.is_some_and(|deadline| now_ns >= deadline)
    }

    /// Makes sure that the work is of `catalog`, which does not change while the job runs.
    ///
    /// # Errors
    /// Why the job cannot run in this catalog.
    #[inline]
    pub fn renew_in(&mut self, catalog: &Arc<Catalog>) -> Result<()> {
        if self.resolved_in == catalog.version() {
            return Ok(());
        }
        self.resolved_in = catalog.version();
        match self.work.renew(catalog)? {
            true => self.arguments.bind(self.work.program()),
            false => Ok(()),
        }
    }
}

struct Queue {
    jobs: VecDeque<Job>,
    /// No more calls: the worker ends when it has done those that are there.
    closed: bool,
    /// The worker waits, or is about to.
    is_sleeping: bool,
    /// The database has changed, which the worker has not been told yet.
    has_news: bool,
}

/// One worker's queue.
struct Inbox {
    queue: Mutex<Queue>,
    arrived: Condvar,
    room: Condvar,
    /// Calls that wait here, for looking without the mutex.
    length: AtomicUsize,
    /// Calls that the worker has taken and not ended.
    in_hand: AtomicUsize,
    /// [`Queue::is_sleeping`], for looking without the mutex.
    is_sleeping: AtomicBool,
}

impl Inbox {
    fn new() -> Inbox {
        Inbox {
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                closed: false,
                is_sleeping: false,
                has_news: false,
            }),
            arrived: Condvar::new(),
            room: Condvar::new(),
            length: AtomicUsize::new(0),
            in_hand: AtomicUsize::new(0),
            is_sleeping: AtomicBool::new(false),
        }
    }

    /// Calls that a new one would wait for.
    fn load(&self) -> usize {
        self.length.load(Ordering::Relaxed) + self.in_hand.load(Ordering::Relaxed)
    }

    fn set_sleeping(&self, queue: &mut Queue, is_sleeping: bool) {
        queue.is_sleeping = is_sleeping;
        self.is_sleeping.store(is_sleeping, Ordering::SeqCst);
    }
}

/// How a worker's sleep ended.
enum Slept {
    Awake,
    News,
    Closed,
}

/// The inboxes of all workers.
pub(crate) struct Inboxes {
    inboxes: Box<[Inbox]>,
    capacity: usize,
    /// The inbox to look at first.
    next: AtomicUsize,
    /// Workers that sleep. A worker counts itself before it looks for work for the last time, and
    /// a submitter looks at the count after it has put a call down; both are sequentially
    /// consistent, so one of the two sees the other.
    sleeping: AtomicUsize,
}

/// Why a worker wakes.
// Nearly always a call; boxing it would cost every call an allocation.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Woken {
    /// For this call.
    Call(Job),
    /// No call is there, and the database has changed since the worker fell asleep.
    News,
}

/// Why no inbox took a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unplaced {
    /// All are full; this one was tried first.
    Full(usize),
    /// All are closed.
    Closed,
}

impl Inboxes {
    /// Inboxes for `workers` workers, in each of which `capacity` calls may wait.
    pub fn new(workers: usize, capacity: usize) -> Inboxes {
        Inboxes {
            inboxes: (0..workers).map(|_| Inbox::new()).collect(),
            capacity,
            next: AtomicUsize::new(0),
            sleeping: AtomicUsize::new(0),
        }
    }

    /// The inbox to try first: a sleeping worker's, or the shorter of two that come next.
    fn choose(&self) -> usize {
        let count = self.inboxes.len();
        if self.sleeping.load(Ordering::Relaxed) > 0 {
            let mut inboxes = self.inboxes.iter();
            let asleep = inboxes.position(|inbox| inbox.is_sleeping.load(Ordering::Relaxed));
            if let Some(position) = asleep {
                return position;
            }
        }
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let (a, b) = (ticket % count, (ticket + 1) % count);
        match self.inboxes[b].load() < self.inboxes[a].load() {
            true => b,
            false => a,
        }
    }

    /// Puts a call into an inbox that has room.
    ///
    /// # Errors
    /// The call, and why no inbox took it.
    // The call comes back to be offered again; boxing it would cost every call an allocation.
    #[allow(clippy::result_large_err)]
    pub fn offer(&self, job: Job) -> std::result::Result<(), (Job, Unplaced)> {
        let first = self.choose();
        let mut closed = 0;
        for step in 0..self.inboxes.len() {
            let inbox = &self.inboxes[(first + step) % self.inboxes.len()];
            let mut queue = lock(&inbox.queue);
            if queue.closed {
                closed += 1;
                continue;
            }
            if queue.jobs.len() >= self.capacity {
                continue;
            }
            job.arguments.note_writes();
            queue.jobs.push_back(job);
            if let Some(job) = queue.jobs.back() {
                plain::writes_one(job);
            }
            inbox.length.store(queue.jobs.len(), Ordering::SeqCst);
            let wakes_its_worker = queue.is_sleeping;
            drop(queue);
            match wakes_its_worker {
                true => inbox.arrived.notify_one(),
                false if self.sleeping.load(Ordering::SeqCst) > 0 => self.wake_one(),
                false => {}
            }
            return Ok(());
        }
        let why = match closed == self.inboxes.len() {
            true => Unplaced::Closed,
            false => Unplaced::Full(first),
        };
        Err((job, why))
    }

    /// Wakes a worker that sleeps, to take a call from another worker's inbox.
    #[cold]
    fn wake_one(&self) {
        for inbox in &self.inboxes {
            if inbox.is_sleeping.load(Ordering::SeqCst) {
                // Under the mutex, so that the worker is not between its last look and its wait.
                let queue = lock(&inbox.queue);
                if queue.is_sleeping {
                    inbox.arrived.notify_one();
                    return;
                }
            }
        }
    }

    /// Waits until there is room in the inbox at `position`, or `deadline_ns` has passed (`false`).
    pub fn wait_for_room(&self, position: usize, deadline_ns: Option<u64>) -> bool {
        let inbox = &self.inboxes[position];
        let mut queue = lock(&inbox.queue);
        while queue.jobs.len() >= self.capacity && !queue.closed {
            queue = match wait(&inbox.room, queue, deadline_ns) {
                Some(queue) => queue,
                None => return false,
            };
        }
        true
    }

    /// Takes out the calls that were cancelled while they waited, or whose time is over. All
    /// workers may be busy with long calls meanwhile.
    pub fn take_overdue(&self, now_ns: u64) -> Vec<Job> {
        let mut overdue = Vec::new();
        for inbox in &self.inboxes {
            // Relaxed: a call that is missed here is looked at the next time.
            if inbox.length.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut queue = lock(&inbox.queue);
            if !queue.jobs.iter().any(|job| job.is_overdue(now_ns)) {
                continue;
            }
            for job in std::mem::take(&mut queue.jobs) {
                match job.is_overdue(now_ns) {
                    true => overdue.push(job),
                    false => queue.jobs.push_back(job),
                }
            }
            inbox.length.store(queue.jobs.len(), Ordering::Relaxed);
            inbox.room.notify_all();
        }
        overdue
    }

    /// Takes no further calls.
    pub fn close(&self) {
        for inbox in &self.inboxes {
            lock(&inbox.queue).closed = true;
            inbox.arrived.notify_all();
            inbox.room.notify_all();
        }
    }

    /// Takes the next call of the inbox at `position`.
    fn pop(&self, position: usize) -> Option<Job> {
        let inbox = &self.inboxes[position];
        let mut queue = lock(&inbox.queue);
        plain::reads_one(queue.jobs.front()?);
        let job = queue.jobs.pop_front()?;
        job.arguments.note_reads();
        inbox.length.store(queue.jobs.len(), Ordering::Relaxed);
        if queue.jobs.len() + 1 == self.capacity {
            inbox.room.notify_all();
        }
        Some(job)
    }

    /// Takes the next call for the worker at `position`: of its own inbox, or of another. If calls
    /// are left, it wakes another worker that sleeps: those who offered them may all have woken
    /// this one, and the call that it has taken may be a long one.
    pub fn take(&self, position: usize) -> Option<Job> {
        let count = self.inboxes.len();
        for step in 0..count {
            let from = (position + step) % count;
            // Sequentially consistent: see `sleeping`.
            if self.inboxes[from].length.load(Ordering::SeqCst) > 0
                && let Some(job) = self.pop(from)
            {
                self.inboxes[position]
                    .in_hand
                    .fetch_add(1, Ordering::Relaxed);
                // Relaxed: a worker that is about to sleep looks at the inboxes itself.
                if self.sleeping.load(Ordering::Relaxed) > 0 && self.has_calls() {
                    self.wake_one();
                }
                return Some(job);
            }
        }
        None
    }

    /// Whether [`Inboxes::take`] may find a call.
    pub fn has_calls(&self) -> bool {
        let mut inboxes = self.inboxes.iter();
        inboxes.any(|inbox| inbox.length.load(Ordering::Relaxed) > 0)
    }

    /// The worker at `position` has ended a call that it had taken.
    pub fn ended(&self, position: usize) {
        self.inboxes[position]
            .in_hand
            .fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits for the next call, or for news; `None` when the inboxes are closed and empty.
    pub fn next(&self, position: usize) -> Option<Woken> {
        loop {
            if let Some(job) = self.take(position) {
                return Some(Woken::Call(job));
            }
            match self.sleep(position) {
                Slept::Awake => {}
                Slept::News => return Some(Woken::News),
                Slept::Closed => return self.take(position).map(Woken::Call),
            }
        }
    }

    /// Wakes the workers that sleep to look at the database, which has changed. Those that run
    /// calls look before each call, and are told when they fall asleep.
    pub fn tell_news(&self) {
        for inbox in &self.inboxes {
            let mut queue = lock(&inbox.queue);
            queue.has_news = true;
            if queue.is_sleeping {
                inbox.arrived.notify_one();
            }
        }
    }

    /// Sleeps until a call comes, or news.
    fn sleep(&self, position: usize) -> Slept {
        let inbox = &self.inboxes[position];
        let mut queue = lock(&inbox.queue);
        if queue.closed {
            return Slept::Closed;
        }
        if std::mem::take(&mut queue.has_news) {
            return Slept::News;
        }
        inbox.set_sleeping(&mut queue, true);
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        // The last look comes after the count above.
        let others = self.inboxes.iter();
        let mut lengths = others.map(|inbox| inbox.length.load(Ordering::SeqCst));
        if lengths.all(|length| length == 0) {
            let woken = wait(&inbox.arrived, queue, None);
            queue = woken.unwrap_or_else(|| lock(&inbox.queue));
        }
        inbox.set_sleeping(&mut queue, false);
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
        Slept::Awake
    }

    /// Closes the inbox of a worker that ends, and gives out the calls that are left there.
    pub fn abandon(&self, position: usize) -> VecDeque<Job> {
        let inbox = &self.inboxes[position];
        let mut queue = lock(&inbox.queue);
        queue.closed = true;
        inbox.room.notify_all();
        inbox.length.store(0, Ordering::Relaxed);
        std::mem::take(&mut queue.jobs)
    }
}
