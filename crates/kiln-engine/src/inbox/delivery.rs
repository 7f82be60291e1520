//! Delivery: a worker's life. It takes calls from the inboxes, runs them and completes them.

use std::collections::VecDeque;
use std::slice;

use kiln_durability::canary::Canary;
use kiln_platform::sync::Arc;
use kiln_procedure::{Frame, Program};
use kiln_protocols::{Call, Calls, Next, Outcome};
use kiln_storage::error::Result;
use kiln_storage::log_epoch::LogEpoch;

use crate::calls::{Inboxes, Job, Promise, Reply, Rows, Woken, Work};
use crate::catalog::Catalog;
use crate::channels::Outgoing;
use crate::kernel::{EngineInner, Refusal, WorkerSlot};
use crate::observed::Observed;

/// Closes the worker's inbox when the worker ends, for whatever reason.
struct Watch<'a> {
    inboxes: &'a Inboxes,
    position: usize,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // Outside the inbox's mutex: each dropped promise wakes a thread.
        drop::<VecDeque<Job>>(self.inboxes.abandon(self.position));
    }
}

/// The life of the worker at `position`.
pub(crate) fn work(inboxes: &Inboxes, position: usize, mut worker_slot: WorkerSlot) {
    worker_slot.drain();
    let _watch = Watch { inboxes, position };
    let mut delivery = Delivery {
        inboxes,
        position,
        next: VecDeque::new(),
        delivered: Vec::new(),
        in_flight: 0,
        catalog: worker_slot.catalog().clone(),
        inner: worker_slot.inner().clone(),
    };
    while let Some(woken) = inboxes.next(position) {
        match woken {
            Woken::Call(job) if worker_slot.is_pipelined() => {
                delivery.next.push_back(job);
                delivery.serve(&mut worker_slot);
            }
            Woken::Call(job) => {
                run(&mut worker_slot, job);
                inboxes.ended(position);
            }
            Woken::News => {
                worker_slot.look();
                delivery.catalog = worker_slot.catalog().clone();
            }
        }
    }
}

/// Runs one call on a worker slot and completes it.
fn run(worker_slot: &mut WorkerSlot, mut job: Job) {
    if job.is_canceled() {
        let (result, epoch) = (Ok(Reply::Expired), worker_slot.observed());
        return job.promise.keep(Observed { result, epoch });
    }
    if job.interrupt.is_some() {
        worker_slot.limit(None, job.interrupt.as_ref());
    }
    let result = match worker_slot.enter(job.deadline_ns) {
        Ok(()) => {
            let result = job.renew_in(worker_slot.catalog()).map(|()| {
                let program = job.work.program();
                let answer = job.promise.answer();
                let outcome =
                    worker_slot.call(program, &job.arguments, job.deadline_ns, answer.as_ref());
                reply(outcome, &job.work, worker_slot.frame())
            });
            worker_slot.leave();
            result
        }
        Err(refusal) => refused(refusal),
    };
    if job.interrupt.is_some() {
        worker_slot.limit(None, None);
    }
    let is_read_only = job.work.program().analysis.is_read_only();
    let epoch = match Canary::ReaderNotAwaited.sings() && is_read_only {
        true => LogEpoch::default(),
        false => worker_slot.observed(),
    };
    let outcome = Observed { result, epoch };
    let outcome = outcome_for_caller(
        &job.promise,
        worker_slot.inner(),
        job.work.program(),
        outcome,
    );
    job.promise.keep(outcome);
}

/// Decides what has to be on disk before the outcome is told, of a call that has run this
/// program, and announces what it tells those that listen.
#[inline(always)]
fn outcome_for_caller(
    promise: &Promise,
    inner: &EngineInner,
    program: &Arc<Program>,
    outcome: Observed<Reply>,
) -> Observed<Reply> {
    let mut outcome = match promise.waits() {
        true => inner.outcome_for_client(outcome, slice::from_ref(program), Reply::rejection),
        false => outcome,
    };
    if let Ok(Reply::Committed(rows)) = &mut outcome.result
        && !rows.notifications.is_empty()
    {
        let sent = Outgoing::of(std::mem::take(&mut rows.notifications));
        let rests_on = (outcome.epoch, promise.waits());
        inner.channels.announce(promise.session(), sent, rests_on);
    }
    outcome
}

/// The outcome of a call that could not begin.
fn refused(refusal: Refusal) -> Result<Reply> {
    match refusal {
        Refusal::Expired => Ok(Reply::Expired),
        refusal => Err(refusal.error()),
    }
}

/// The reply to a call whose rows are in `frame`.
fn reply(outcome: Outcome, work: &Work, frame: &Frame) -> Reply {
    match outcome {
        Outcome::Committed => Reply::Committed(Rows::take(frame, work.program())),
        Outcome::Rejected(error) => Reply::Rejected(error),
        Outcome::Expired => Reply::Expired,
    }
}

/// The inboxes as a worker sees them that has several calls in flight.
struct Delivery<'a> {
    inboxes: &'a Inboxes,
    position: usize,
    /// The calls to run first: the one that the worker was woken for, and those that were handed
    /// back.
    next: VecDeque<Job>,
    /// The calls in flight by their tickets.
    delivered: Vec<Option<(Promise, Work)>>,
    in_flight: usize,
    /// Current while the worker serves.
    catalog: Arc<Catalog>,
    inner: Arc<EngineInner>,
}

impl Delivery<'_> {
    /// Serves until the inboxes are empty and all calls have ended.
    fn serve(&mut self, worker_slot: &mut WorkerSlot) {
        while let Some(job) = self.next.pop_front() {
            if let Err(refusal) = worker_slot.enter(job.deadline_ns) {
                self.end(job.promise, job.work.program(), refused(refusal));
                continue;
            }
            if !worker_slot.is_pipelined() {
                // The protocol was switched since the job was taken.
                worker_slot.leave();
                run(worker_slot, job);
                self.inboxes.ended(self.position);
                continue;
            }
            self.next.push_front(job);
            self.catalog = worker_slot.catalog().clone();
            worker_slot.serve(self);
            worker_slot.leave();
            if self.next.is_empty() {
                self.next.extend(self.inboxes.take(self.position));
            }
        }
    }

    /// Completes a call of this program that was taken.
    fn end(&self, promise: Promise, program: &Arc<Program>, result: Result<Reply>) {
        self.inboxes.ended(self.position);
        let epoch = self.inner.log_epochs.current();
        let outcome =
            outcome_for_caller(&promise, &self.inner, program, Observed { result, epoch });
        promise.keep(outcome);
    }

    /// What is known of a call in flight, which is so no more.
    fn land(&mut self, ticket: u64) -> (Promise, Work) {
        self.in_flight -= 1;
        let delivered = self.delivered.get_mut(ticket as usize);
        delivered
            .and_then(Option::take)
            .expect("a call ends that was drawn, once")
    }

    /// Takes the next call that can run in the present catalog.
    fn draw(&mut self) -> Option<Job> {
        loop {
            let job = self.next.pop_front();
            let mut job = job.or_else(|| self.inboxes.take(self.position))?;
            if job.is_canceled() {
                self.end(job.promise, job.work.program(), Ok(Reply::Expired));
                continue;
            }
            match job.renew_in(&self.catalog) {
                Ok(()) => return Some(job),
                Err(error) => self.end(job.promise, job.work.program(), Err(error)),
            }
        }
    }
}

impl Calls for Delivery<'_> {
    fn next(&mut self, call: &mut Call) -> Next {
        let Some(job) = self.draw() else {
            return match self.is_over() {
                true => Next::Pause,
                false => Next::Nothing,
            };
        };
        let free = self.delivered.iter().position(Option::is_none);
        let ticket = free.unwrap_or_else(|| {
            self.delivered.push(None);
            self.delivered.len() - 1
        });
        call.set_program(job.work.program());
        call.arguments = job.arguments;
        call.interrupt = job.interrupt;
        call.answer = job.promise.answer();
        (call.deadline_ns, call.ticket) = (job.deadline_ns, ticket as u64);
        self.delivered[ticket] = Some((job.promise, job.work));
        self.in_flight += 1;
        Next::Call
    }

    /// The worker sleeps outside of the gate, and not when it has nothing to do.
    fn is_over(&mut self) -> bool {
        self.next.is_empty() && self.in_flight == 0 && !self.inboxes.has_calls()
    }

    /// A worker that sleeps is woken for the calls of its inbox.
    fn is_bound(&self) -> bool {
        true
    }

    fn take_back(&mut self, call: &mut Call) {
        let (promise, work) = self.land(call.ticket);
        self.next.push_back(Job {
            work,
            resolved_in: self.catalog.version(),
            arguments: std::mem::take(&mut call.arguments),
            deadline_ns: call.deadline_ns,
            interrupt: call.interrupt.take(),
            promise,
        });
    }

    fn ended(&mut self, call: &Call, outcome: Outcome, frame: &Frame) {
        let (promise, work) = self.land(call.ticket);
        let reply = reply(outcome, &work, frame);
        self.end(promise, work.program(), Ok(reply));
    }

    fn lost(&mut self, ticket: u64) {
        let delivered = self.delivered.get_mut(ticket as usize);
        if let Some((promise, _)) = delivered.and_then(Option::take) {
            self.in_flight -= 1;
            self.inboxes.ended(self.position);
            // The promise says so when it is dropped.
            drop(promise);
        }
    }
}
