//! Inboxes: bounded queues of calls, one for each worker, and the workers' loop.

use std::collections::VecDeque;

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_procedure::{Arguments, Frame};
use kiln_protocols::{Call, Calls, Next, Outcome};
use kiln_storage::error::{Error, Result};

use crate::call::{IdempotencyKey, Reply, Rows};
use crate::catalog::{Catalog, Procedure};
use crate::errors::Refusal;
use crate::gate::wait;
use crate::idempotency::Idempotency;
use crate::seat::Seat;
use crate::shared::Shared;
use crate::ticket::Desk;

/// A call on its way.
pub(crate) struct Job {
    pub procedure: String,
    pub arguments: Arguments,
    pub deadline_ns: Option<u64>,
    pub promise: Promise,
}

/// The duty to put an outcome down. Dropped without one, it puts down an error.
pub(crate) struct Promise {
    pub desk: Arc<Desk>,
    pub key: Option<IdempotencyKey>,
    pub idempotency: Arc<Idempotency>,
    pub kept: bool,
}

impl Promise {
    pub fn keep(mut self, result: Result<Reply>) {
        self.put_down(result);
    }

    fn put_down(&mut self, result: Result<Reply>) {
        self.kept = true;
        if let Some(key) = &self.key {
            self.idempotency.ended(key, &result);
        }
        self.desk.complete(result);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.kept {
            self.put_down(Err(Error::internal("the worker of this call broke down")));
        }
    }
}

struct Queue {
    jobs: VecDeque<Job>,
    /// No more calls: the worker ends when it has done those that are there.
    closed: bool,
    sleeping: bool,
}

/// One worker's queue.
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    arrived: Condvar,
    room: Condvar,
    capacity: usize,
    /// Calls waiting, for choosing the shorter queue.
    length: AtomicUsize,
}

/// What became of a call that was offered to an inbox.
pub(crate) enum Offer {
    Taken,
    Full(Job),
    Closed(Job),
}

impl Inbox {
    pub fn new(capacity: usize) -> Inbox {
        Inbox {
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                closed: false,
                sleeping: false,
            }),
            arrived: Condvar::new(),
            room: Condvar::new(),
            capacity,
            length: AtomicUsize::new(0),
        }
    }

    pub fn length(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Puts a call into the queue if there is room.
    pub fn offer(&self, job: Job) -> Offer {
        let mut queue = lock(&self.queue);
        if queue.closed {
            return Offer::Closed(job);
        }
        if queue.jobs.len() >= self.capacity {
            return Offer::Full(job);
        }
        queue.jobs.push_back(job);
        self.length.store(queue.jobs.len(), Ordering::Relaxed);
        if queue.sleeping {
            self.arrived.notify_one();
        }
        Offer::Taken
    }

    /// Waits until there is room or `deadline_ns` has passed (`false`).
    pub fn wait_for_room(&self, deadline_ns: Option<u64>) -> bool {
        let mut queue = lock(&self.queue);
        while queue.jobs.len() >= self.capacity && !queue.closed {
            queue = match wait(&self.room, queue, deadline_ns) {
                Some(queue) => queue,
                None => return false,
            };
        }
        true
    }

    /// Takes no further calls.
    pub fn close(&self) {
        lock(&self.queue).closed = true;
        self.arrived.notify_all();
        self.room.notify_all();
    }

    /// The next call, if there is one.
    fn try_next(&self) -> Option<Job> {
        if self.length() == 0 {
            return None;
        }
        let mut queue = lock(&self.queue);
        let job = queue.jobs.pop_front();
        self.length.store(queue.jobs.len(), Ordering::Relaxed);
        if job.is_some() && queue.jobs.len() + 1 == self.capacity {
            self.room.notify_all();
        }
        job
    }

    /// The next call; `None` when the inbox is closed and empty.
    fn next(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                self.length.store(queue.jobs.len(), Ordering::Relaxed);
                if queue.jobs.len() + 1 == self.capacity {
                    self.room.notify_all();
                }
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue.sleeping = true;
            queue = (self.arrived.wait(queue)).unwrap_or_else(|poisoned| poisoned.into_inner());
            queue.sleeping = false;
        }
    }
}

/// Closes the inbox and drops what is in it when its worker ends, for whatever reason.
struct Watch<'a>(&'a Inbox);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.close();
        let left = std::mem::take(&mut lock(&self.0.queue).jobs);
        // Outside the lock: each dropped promise wakes somebody.
        drop(left);
    }
}

/// A worker's life.
pub(crate) fn work(inbox: &Inbox, mut seat: Seat) {
    seat.drain();
    let _watch = Watch(inbox);
    let mut delivery = Delivery {
        inbox,
        next: None,
        delivered: Vec::new(),
        in_flight: 0,
        catalog: seat.catalog().clone(),
    };
    while let Some(job) = inbox.next() {
        if seat.is_pipelined() {
            delivery.next = Some(job);
            delivery.serve(&mut seat);
            continue;
        }
        let Job {
            procedure,
            mut arguments,
            deadline_ns,
            promise,
        } = job;
        let result = run(&mut seat, &procedure, &mut arguments, deadline_ns);
        promise.keep(result);
    }
}

/// Runs a call by the procedure's name on a seat.
pub(crate) fn run(
    seat: &mut Seat,
    procedure: &str,
    arguments: &mut Arguments,
    deadline_ns: Option<u64>,
) -> Result<Reply> {
    match seat.enter(deadline_ns) {
        Ok(()) => {}
        Err(Refusal::Expired) => return Ok(Reply::Expired),
        Err(refusal) => return Err(refusal.error()),
    }
    let ready = seat.catalog().require_procedure(procedure).cloned();
    let ready = ready.and_then(|found| arguments.bind(found.program()).map(|()| found));
    let result = ready.map(|found| {
        let outcome = seat.call(found.program(), arguments, deadline_ns);
        reply(outcome, &found, seat.frame())
    });
    seat.leave();
    result
}

/// The reply to a call of `procedure` whose rows are in `frame`.
fn reply(outcome: Outcome, procedure: &Procedure, frame: &Frame) -> Reply {
    match outcome {
        Outcome::Committed => {
            let columns = procedure.columns().clone();
            Reply::Committed(Rows::take(frame, procedure.program(), columns))
        }
        Outcome::Rejected(error) => Reply::Rejected(error),
        Outcome::Expired => Reply::Expired,
    }
}

/// An inbox as a worker sees it that has several calls in flight.
struct Delivery<'a> {
    inbox: &'a Inbox,
    /// The call that the worker was woken for.
    next: Option<Job>,
    /// The calls in flight by their tickets.
    delivered: Vec<Option<(Promise, Arc<Procedure>)>>,
    in_flight: usize,
    /// Current while the worker serves.
    catalog: Arc<Catalog>,
}

impl Delivery<'_> {
    /// Serves until the inbox is empty and all calls have ended.
    fn serve(&mut self, seat: &mut Seat) {
        while let Some(job) = &self.next {
            if let Err(refusal) = seat.enter(job.deadline_ns) {
                let result = match refusal {
                    Refusal::Expired => Ok(Reply::Expired),
                    refusal => Err(refusal.error()),
                };
                if let Some(job) = self.next.take() {
                    job.promise.keep(result);
                }
                return;
            }
            self.catalog = seat.catalog().clone();
            seat.serve(self);
            seat.leave();
            if self.next.is_none() {
                self.next = self.inbox.try_next();
            }
        }
    }
}

impl Calls for Delivery<'_> {
    fn next(&mut self, call: &mut Call) -> Next {
        while let Some(job) = self.next.take().or_else(|| self.inbox.try_next()) {
            let found = self.catalog.require_procedure(&job.procedure).cloned();
            call.arguments = job.arguments;
            let ready = found.and_then(|found| {
                call.arguments.bind(found.program())?;
                Ok(found)
            });
            let found = match ready {
                Ok(found) => found,
                Err(error) => {
                    job.promise.keep(Err(error));
                    continue;
                }
            };
            let free = self.delivered.iter().position(Option::is_none);
            let ticket = free.unwrap_or_else(|| {
                self.delivered.push(None);
                self.delivered.len() - 1
            });
            call.set_program(found.program());
            (call.deadline_ns, call.ticket) = (job.deadline_ns, ticket as u64);
            self.delivered[ticket] = Some((job.promise, found));
            self.in_flight += 1;
            return Next::Call;
        }
        match self.is_over() {
            true => Next::Pause,
            false => Next::Nothing,
        }
    }

    /// The worker sleeps outside of the gate, and not when it has nothing to do.
    fn is_over(&mut self) -> bool {
        self.next.is_none() && self.in_flight == 0 && self.inbox.length() == 0
    }

    /// Nobody else looks into this inbox.
    fn is_bound(&self) -> bool {
        true
    }

    fn ended(&mut self, ticket: u64, outcome: Outcome, frame: &Frame) {
        let delivered = self.delivered.get_mut(ticket as usize);
        let (promise, procedure) = delivered
            .and_then(Option::take)
            .expect("a call ends that was drawn, once");
        self.in_flight -= 1;
        promise.keep(Ok(reply(outcome, &procedure, frame)));
    }
}

impl Shared {
    /// The inbox to try first: the shorter of two that come next in turn.
    pub(crate) fn next_inbox(&self) -> usize {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let (a, b) = (turn % self.inboxes.len(), (turn + 1) % self.inboxes.len());
        if self.inboxes[b].length() < self.inboxes[a].length() {
            b
        } else {
            a
        }
    }
}
