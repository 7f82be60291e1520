//! One run: workers that call procedures in a closed loop for a while.
//!
//! All workers start together, and none of them waits for anything while it runs: a worker draws a
//! call, makes it, records how long it took, and looks at one word to see which stage the run is
//! in. Under protocols that put calls aside it draws others meanwhile. What is recorded costs two
//! clock readings and one counter of a histogram; nothing is allocated.

use std::collections::VecDeque;

use kiln_engine::{
    Answer, Asked, Caller, Driver, Log, LogEpoch, Outcome, ProcedureHandle, Request,
};
use kiln_platform::atomic::{AtomicU64, AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::{spin, thread, time};
use kiln_procedure::frame::to_value;
use kiln_storage::error::{Error, Result};
use kiln_storage::types::{DataType, Value};
use kiln_workloads::{Call, Terminal, Workload};

use crate::figures::RunFigures;

/// The stages of a run, as the word that the workers watch holds them.
const ASSEMBLE: u64 = 0;
const WARM_UP: u64 = 1;
const MEASURE: u64 = 2;
const STOP: u64 = 3;

/// How long a run lasts, and what its workers call.
pub(crate) struct Run<'a> {
    pub(crate) workload: &'a Workload,
    /// The procedures' handles, in the workload's order.
    pub(crate) handles: &'a [ProcedureHandle],
    /// The types of the columns of their results.
    pub(crate) columns: &'a [Vec<DataType>],
    pub(crate) warmup_ns: u64,
    pub(crate) measured_ns: u64,
    /// Whether calls may be rejected for reasons that the workload does not provoke: under
    /// baselines that do not serialize they are.
    pub(crate) any_rejection: bool,
}

/// What the threads of a run share.
pub(crate) struct RunState {
    stage: AtomicU64,
    ready: AtomicUsize,
    /// The first call that ended as no call of the workload should.
    failure: Mutex<Option<Error>>,
}

impl RunState {
    /// Goes from one stage to the next, unless a worker stopped the run.
    fn enter(&self, from: u64, to: u64) {
        // Release pairs with the acquire of the workers that wait for the start.
        let _ = self
            .stage
            .compare_exchange(from, to, Ordering::Release, Ordering::Relaxed);
    }

    /// Announces a thread that is ready, and waits until all are.
    pub(crate) fn assemble(&self) {
        self.ready.fetch_add(1, Ordering::Release);
        let mut spinner = spin::Spinner::default();
        while self.stage.load(Ordering::Acquire) == ASSEMBLE {
            spinner.spin();
        }
    }

    /// Whether calls that end now are measured.
    pub(crate) fn is_measuring(&self) -> bool {
        // Relaxed: the word orders nothing but the counting of calls.
        self.stage.load(Ordering::Relaxed) == MEASURE
    }

    /// Whether the run is over.
    pub(crate) fn is_over(&self) -> bool {
        // Relaxed: as in `is_measuring`.
        self.stage.load(Ordering::Relaxed) == STOP
    }

    /// Sleeps unless a worker gave up.
    fn sleep(&self, nanoseconds: u64, heartbeat: &mut impl FnMut()) {
        /// The time between two heartbeats.
        const SLICE_NS: u64 = 50_000_000;
        let end = time::now_ns() + nanoseconds;
        loop {
            let left = end.saturating_sub(time::now_ns());
            // Relaxed: the failure itself is behind a lock.
            if left == 0 || self.stage.load(Ordering::Relaxed) == STOP {
                return;
            }
            thread::sleep(left.min(SLICE_NS));
            heartbeat();
        }
    }
}

impl Run<'_> {
    /// Makes the run: `drivers` and `terminals` go together, one of each for a worker. `heartbeat`
    /// is called every now and then meanwhile.
    ///
    /// # Errors
    /// The error of a call that was rejected for a reason that the workload does not know.
    pub(crate) fn make(
        &self,
        drivers: Vec<Driver>,
        terminals: Vec<Terminal>,
        heartbeat: impl FnMut(),
    ) -> Result<RunFigures> {
        assert_eq!(
            drivers.len(),
            terminals.len(),
            "a driver and a terminal for each worker"
        );
        let pairs = drivers.into_iter().zip(terminals).collect();
        let work = |shared: &RunState, position, (driver, terminal)| {
            self.work(shared, position, driver, terminal)
        };
        self.conduct(pairs, work, heartbeat)
    }

    /// Makes a run of which each thread does `work` with its part, from the assembly to the stop.
    pub(crate) fn conduct<P: Send>(
        &self,
        parts: Vec<P>,
        work: impl Fn(&RunState, usize, P) -> RunFigures + Sync,
        mut heartbeat: impl FnMut(),
    ) -> Result<RunFigures> {
        let threads = parts.len();
        let shared = RunState {
            stage: AtomicU64::new(ASSEMBLE),
            ready: AtomicUsize::new(0),
            failure: Mutex::new(None),
        };
        let mut sum = RunFigures::new(self.workload.procedures().len());
        thread::scope(|scope| {
            let (shared, work) = (&shared, &work);
            let parts = parts.into_iter().enumerate();
            let running: Vec<_> = parts
                .map(|(position, part)| scope.spawn(move || work(shared, position, part)))
                .collect();
            // Acquire pairs with the release of each thread's announcement; relaxed would do, as
            // nothing but the count is read.
            while shared.ready.load(Ordering::Acquire) < threads {
                thread::yield_now();
            }
            shared.enter(ASSEMBLE, WARM_UP);
            shared.sleep(self.warmup_ns, &mut heartbeat);
            let begin = time::now_ns();
            shared.enter(WARM_UP, MEASURE);
            shared.sleep(self.measured_ns, &mut heartbeat);
            shared.enter(MEASURE, STOP);
            sum.seconds = (time::now_ns() - begin) as f64 / 1e9;
            for thread in running {
                match thread.join() {
                    Ok(figures) => sum.add(&figures),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        match lock(&shared.failure).take() {
            Some(error) => Err(error),
            None => Ok(sum),
        }
    }

    /// One worker, from its first call to its last.
    fn work(
        &self,
        shared: &RunState,
        position: usize,
        mut driver: Driver,
        terminal: Terminal,
    ) -> RunFigures {
        let mut figures = RunFigures::new(self.workload.procedures().len());
        figures.pinned = thread::pin_to_core(position);
        let mut caller = TerminalCaller {
            run: self,
            shared,
            terminal,
            figures,
            calls: Vec::new(),
            free: Vec::new(),
            rows: ResultRows::default(),
            is_measuring: false,
            has_given_up: false,
            held: driver.log().map(|log| Held::new(log.clone())),
        };
        shared.assemble();
        loop {
            driver.drive(&mut caller);
            if caller.is_measuring || caller.is_done() {
                break;
            }
            // The calls that cross the line belong to the warm-up.
            caller.is_measuring = true;
            driver.reset_statistics();
        }
        if caller.is_measuring {
            caller.figures.statistics = driver.statistics();
        }
        caller.await_durable();
        caller.figures.totals = caller.terminal.totals().clone();
        caller.figures
    }

    /// Whether a rejection is none of those that the workload provokes; then the run ends.
    #[cold]
    pub(crate) fn is_unexpected(&self, shared: &RunState, call: Call, error: Error) -> bool {
        if self.any_rejection {
            return false;
        }
        if self
            .workload
            .expected_rejections()
            .contains(&error.state().as_str())
        {
            return false;
        }
        let name = self.workload.procedures()[call.procedure.0].name;
        let error = error.with_hint(format!(
            "{name} was rejected for a reason that the workload does not provoke: the run is void."
        ));
        lock(&shared.failure).get_or_insert(error);
        shared.stage.store(STOP, Ordering::Release);
        true
    }
}

/// A worker's terminal in a run, and its calls in flight.
struct TerminalCaller<'a> {
    run: &'a Run<'a>,
    shared: &'a RunState,
    terminal: Terminal,
    figures: RunFigures,
    /// By ticket: a call in flight, and when it was asked for.
    calls: Vec<Option<(Call, u64)>>,
    /// Tickets of no call.
    free: Vec<u64>,
    rows: ResultRows,
    is_measuring: bool,
    has_given_up: bool,
    /// Calls that wait for the database's log, if it has one: such a call has ended for its client
    /// when it is on disk.
    held: Option<Held>,
}

/// Calls that have ended for the worker and are not acknowledged yet.
struct Held {
    log: Arc<Log>,
    /// The oldest first.
    calls: VecDeque<HeldCall>,
    /// How far the log was when the calls were looked at; `None` when one has come since that may
    /// be on disk already.
    looked_through: Option<LogEpoch>,
}

struct HeldCall {
    procedure: usize,
    asked_ns: u64,
    observed: LogEpoch,
}

impl Held {
    fn new(log: Arc<Log>) -> Held {
        Held {
            log,
            calls: VecDeque::new(),
            looked_through: None,
        }
    }

    #[inline]
    fn push(&mut self, call: HeldCall) {
        // Calls behind one that waits are looked at when the log has gone on.
        if self.calls.is_empty() {
            self.looked_through = None;
        }
        self.calls.push_back(call);
    }

    /// Takes the calls that are on disk by now.
    #[inline]
    fn release(&mut self, mut ended: impl FnMut(&HeldCall)) {
        if self.calls.is_empty() {
            return;
        }
        // What all workers have appended is looked at once for each group that is written, and not
        // for each call.
        let durable = Some(self.log.durable_through());
        if durable == self.looked_through {
            return;
        }
        self.looked_through = durable;
        let through = self.log.acknowledges_through();
        while let Some(call) = self.calls.front() {
            if call.observed > through {
                break;
            }
            ended(call);
            self.calls.pop_front();
        }
    }

    /// Waits until all of them are on disk.
    fn await_all(&mut self, mut ended: impl FnMut(&HeldCall)) -> Result<()> {
        while let Some(call) = self.calls.pop_front() {
            self.log.wait(call.observed)?;
            ended(&call);
        }
        Ok(())
    }
}

/// Counts the latency of a call that is acknowledged at `end_ns`.
fn acknowledge(figures: &mut RunFigures, call: &HeldCall, end_ns: u64) {
    let latency_ns = &mut figures.procedures[call.procedure].latency_ns;
    latency_ns.saturating_record(end_ns - call.asked_ns);
}

impl TerminalCaller<'_> {
    /// Records the latencies of calls that are on disk by now.
    #[inline]
    fn release(&mut self, now_ns: u64) {
        if let Some(held) = &mut self.held {
            held.release(|call| acknowledge(&mut self.figures, call, now_ns));
        }
    }

    /// Waits until all calls are on disk that have ended.
    fn await_durable(&mut self) {
        if let Some(held) = &mut self.held {
            let figures = &mut self.figures;
            let awaited = held.await_all(|call| acknowledge(figures, call, time::now_ns()));
            if let Err(error) = awaited {
                lock(&self.shared.failure).get_or_insert(error);
            }
        }
    }

    /// Whether the run is over.
    #[inline]
    fn is_done(&self) -> bool {
        self.has_given_up || self.shared.is_over()
    }

    /// Tells the terminal how its call ended.
    #[inline]
    fn tell_terminal(&mut self, call: Call, outcome: Outcome, answer: &Answer<'_>) {
        match outcome {
            Outcome::Committed => {
                let number = call.procedure.0;
                let rows = match self.run.workload.procedures()[number].rows_wanted {
                    true => self.rows.of(answer, &self.run.columns[number]),
                    false => &[],
                };
                self.terminal.committed(call, rows);
            }
            Outcome::Rejected(error) => {
                self.has_given_up |= self.run.is_unexpected(self.shared, call, error);
            }
            Outcome::Expired => {}
        }
    }
}

impl Caller for TerminalCaller<'_> {
    #[inline]
    fn next(&mut self, request: &mut Request) -> Asked<'_> {
        if self.is_over() {
            return Asked::Pause;
        }
        let call = self.terminal.next(&mut request.arguments);
        request.ticket = self.free.pop().unwrap_or_else(|| {
            self.calls.push(None);
            self.calls.len() as u64 - 1
        });
        let handle = &self.run.handles[call.procedure.0];
        self.calls[request.ticket as usize] = Some((call, time::now_ns()));
        Asked::Call(handle)
    }

    #[inline]
    fn is_over(&mut self) -> bool {
        // Relaxed: as in `is_done`.
        let stage = self.shared.stage.load(Ordering::Relaxed);
        self.has_given_up || stage == STOP || stage == MEASURE && !self.is_measuring
    }

    #[inline]
    fn ended(&mut self, ticket: u64, outcome: Outcome, answer: &Answer<'_>) {
        let end = time::now_ns();
        let ended = self.calls[ticket as usize].take();
        let (call, begin) = ended.expect("a call ends that was made, once");
        self.free.push(ticket);
        // Relaxed: as in `is_done`.
        let stage = self.shared.stage.load(Ordering::Relaxed);
        if stage == MEASURE && self.is_measuring {
            let figures = &mut self.figures.procedures[call.procedure.0];
            match &outcome {
                Outcome::Committed => figures.committed += 1,
                Outcome::Rejected(_) => figures.rejected += 1,
                Outcome::Expired => figures.expired += 1,
            }
            if !matches!(outcome, Outcome::Expired) {
                let asked = call.queued_ns().unwrap_or(begin).min(begin);
                match &mut self.held {
                    None => figures.latency_ns.saturating_record(end - asked),
                    Some(held) => held.push(HeldCall {
                        procedure: call.procedure.0,
                        asked_ns: asked,
                        observed: answer.observed(),
                    }),
                }
            }
        }
        self.release(end);
        self.tell_terminal(call, outcome, answer);
    }
}

/// The result rows of a call, in memory that is used again.
#[derive(Default)]
struct ResultRows(Vec<Vec<Value>>);

impl ResultRows {
    /// The rows of a call.
    fn of(&mut self, answer: &Answer<'_>, columns: &[DataType]) -> &[Vec<Value>] {
        let (count, slots) = answer.frame().rows();
        let heap = answer.frame().heap();
        if self.0.len() < count {
            self.0.resize_with(count, Vec::new);
        }
        for (row, slots) in self
            .0
            .iter_mut()
            .zip(slots.chunks_exact(columns.len().max(1)))
        {
            row.clear();
            let typed = slots.iter().zip(columns);
            row.extend(typed.map(|(slot, data_type)| to_value(heap, *slot, data_type)));
        }
        &self.0[..count]
    }
}
