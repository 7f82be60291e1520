//! The state of a run: its threads, who can run, and what each scheduling point does.

use std::fmt::Write;
use std::ptr::null_mut;

use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, Yielder};
use kiln_machine::{AccessKind, Work as Cost};

use super::control::{Cause, Config};
use super::disk::Disk;
use super::lines::Lines;
use super::machine::Prices;
use super::net::Network;
use super::queue::{Ready, RunQueue, Runnable};
use super::runtime;
use super::space::Space;

/// The choice to let the running thread go on.
pub(super) const STAY: u32 = u32::MAX;
/// The choice of no thread: the run is over.
const NOBODY: u32 = STAY - 1;

/// A stack of the run's space.
pub(super) struct Slot {
    low: usize,
    high: usize,
}

// SAFETY: the space put a guard page at the lowest addresses, and the stack is much larger than
// what corosensei asks for.
unsafe impl Stack for Slot {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.high).expect("a stack is not at address 0")
    }

    fn limit(&self) -> StackPointer {
        StackPointer::new(self.low).expect("a stack is not at address 0")
    }
}

/// What a coroutine is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Running or ready.
    Runnable,
    /// Waits to be woken, or for its deadline if it has one.
    Blocked,
    /// Its body has returned.
    Finished,
}

/// What a blocked coroutine waits for.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// A word or two for people: `mutex`, `join`.
    pub(super) what: &'static str,
    /// The object, or 0 when only the coroutine itself is known.
    pub(super) address: usize,
    /// Whether a real thread would spin for a while before it sleeps.
    pub(super) spins: bool,
}

impl Wait {
    /// For the thread itself to be woken, or its time to come.
    pub(super) const fn alone(what: &'static str) -> Wait {
        Wait {
            what,
            address: 0,
            spins: false,
        }
    }

    /// For the object at `address`.
    pub(super) const fn on(what: &'static str, address: usize) -> Wait {
        Wait {
            what,
            address,
            spins: false,
        }
    }

    /// For the lock at `address`.
    pub(super) const fn on_lock(what: &'static str, address: usize) -> Wait {
        Wait {
            what,
            address,
            spins: true,
        }
    }
}

/// A thread of a run.
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) coroutine: Option<Box<Coroutine<(), (), (), Slot>>>,
    pub(super) stack: usize,
    pub(super) yielder: *const Yielder<(), ()>,
    pub(super) state: State,
    wait: Wait,
    timed_out: bool,
    /// Counts changes of state, so that outdated entries of the run queue are known for what they
    /// are.
    pub(super) ticket: u32,
    /// Unparked before it parked.
    token: bool,
    clock_ps: u64,
    core: usize,
    /// The named point it passed last.
    point: &'static str,
}

/// Everything about one run.
pub(super) struct Runtime {
    pub(super) space: Box<Space>,
    prices: Prices,
    pub(super) least_time: bool,
    pub(super) threads: Vec<Thread>,
    pub(super) running: u32,
    pub(super) ready: Ready,
    /// Sleepers and waiters with a deadline; with least virtual time also the threads that are
    /// ready.
    run_queue: RunQueue,
    /// Threads that wait, and the addresses that they wait for, in the order in which they came.
    waiting: Vec<(usize, u32)>,
    quiet: u32,
    /// The one clock of the schedules without clocks.
    clock_ps: u64,
    cores: usize,
    pub(super) disk: Option<Disk>,
    pub(super) network: Option<Network>,
    script: Vec<(String, &'static str)>,
    script_at: usize,
    /// A thread became ready that may come before the running one.
    newly_ready: bool,
    steps: u64,
    steps_max: u64,
    accesses: u64,
    pub(super) switches: u64,
    trace: u64,
    pub(super) lines: Lines,
    pub(super) failure: Option<Cause>,
    pub(super) body_ended: bool,
}

impl Runtime {
    /// A run without coroutines.
    pub(super) fn new(config: &Config, space: Box<Space>, prices: Prices) -> Runtime {
        Runtime {
            space,
            least_time: matches!(prices, Prices::Machine(_)),
            prices,
            threads: Vec::new(),
            running: 0,
            ready: Ready::new(config.schedule, config.seed),
            run_queue: RunQueue::default(),
            waiting: Vec::new(),
            quiet: 0,
            clock_ps: 0,
            cores: config.cores,
            disk: config.disk.clone(),
            network: config.network.clone(),
            script: config.script.clone(),
            script_at: 0,
            newly_ready: false,
            steps: 0,
            steps_max: config.steps_max,
            accesses: 0,
            switches: 0,
            trace: 0x243f_6a88_85a3_08d3,
            lines: Lines::default(),
            failure: None,
            body_ended: false,
        }
    }

    pub(super) fn now_ps(&self) -> u64 {
        match self.least_time {
            true => self.threads[self.running as usize].clock_ps,
            false => self.clock_ps,
        }
    }

    fn set_now_ps(&mut self, now: u64) {
        match self.least_time {
            true => self.threads[self.running as usize].clock_ps = now,
            false => self.clock_ps = now,
        }
    }

    pub(super) fn after(&self, nanoseconds: u64) -> u64 {
        self.now_ps()
            .saturating_add(nanoseconds.saturating_mul(1_000))
    }

    pub(super) fn compute(&mut self, cost: Cost) {
        if self.quiet > 0 {
            // Loops that wait for a time must come to their end.
            self.set_now_ps(self.now_ps() + 1_000);
            return;
        }
        let core = self.threads[self.running as usize].core;
        let now = self.prices.work(core, cost, self.now_ps());
        self.set_now_ps(now);
    }

    /// An access begins: returns the thread that runs before it.
    #[inline(always)]
    pub(super) fn access(&mut self, kind: AccessKind) -> u32 {
        if kind == AccessKind::Prefetch && !self.least_time {
            return STAY;
        }
        self.step()
    }

    /// It is the access's turn: asks for the line. Returns the thread that runs until the line is
    /// there, if that takes long.
    #[inline(always)]
    pub(super) fn complete(&mut self, address: usize, kind: AccessKind) -> u32 {
        if kind == AccessKind::Prefetch && !self.least_time {
            return STAY;
        }
        let line = self.note(address, kind);
        if !self.least_time {
            self.clock_ps = self.prices.access(0, line, kind, self.clock_ps);
            return STAY;
        }
        let thread = &self.threads[self.running as usize];
        let done = self.prices.access(thread.core, line, kind, thread.clock_ps);
        self.wait_until(done, kind)
    }

    /// As [`Runtime::complete`], for plain memory, where each core has a clock.
    pub(super) fn complete_plain(&mut self, address: usize, kind: AccessKind) -> u32 {
        let line = self.note(address, kind);
        let thread = &self.threads[self.running as usize];
        let done = self.prices.plain(thread.core, line, kind, thread.clock_ps);
        self.wait_until(done, kind)
    }

    /// Counts an access and adds it to the trace; the number of its line.
    #[inline(always)]
    fn note(&mut self, address: usize, kind: AccessKind) -> u32 {
        let line = self.lines.number(&mut self.space, address);
        self.accesses += 1;
        self.trace(u64::from(self.running) << 34 | u64::from(line) << 2 | kind as u64);
        line
    }

    /// Adds an event to the trace.
    #[inline(always)]
    pub(super) fn trace(&mut self, event: u64) {
        self.trace = (self.trace ^ event)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23);
    }

    /// The running coroutine's access is complete at `done_ps`; returns the thread that runs until
    /// then, if that takes long.
    #[inline(always)]
    fn wait_until(&mut self, done_ps: u64, kind: AccessKind) -> u32 {
        /// Longer than an access that the core's own caches serve.
        const LONG_PS: u64 = 15_000;
        let thread = &mut self.threads[self.running as usize];
        let takes_ps = done_ps - thread.clock_ps;
        thread.clock_ps = done_ps;
        // A value is what is in the line when it arrives. The core that has the line meanwhile goes
        // on: a lock that it releases before is not seen held.
        let waits = matches!(kind, AccessKind::Load | AccessKind::ReadModifyWrite);
        match waits && takes_ps > LONG_PS {
            true => self.step(),
            false => STAY,
        }
    }

    /// A scheduling point at which the running coroutine can go on.
    #[inline(always)]
    pub(super) fn step(&mut self) -> u32 {
        self.steps += 1;
        if self.steps > self.steps_max {
            return self.too_long();
        }
        if self.least_time {
            return self.step_by_time();
        }
        self.wake_sleepers();
        let change = self.ready.step(self.running) | std::mem::take(&mut self.newly_ready);
        if !change && self.script_at == self.script.len() {
            return STAY;
        }
        let next = self.choose();
        self.unless_panicking(next)
    }

    #[inline(always)]
    fn step_by_time(&mut self) -> u32 {
        let me = self.running;
        let thread = &self.threads[me as usize];
        let mine = Runnable {
            time_ps: thread.clock_ps,
            thread: me,
            ticket: thread.ticket,
        };
        while let Some(first) = self.run_queue.first() {
            if mine < first {
                return STAY;
            }
            if self.threads[first.thread as usize].ticket != first.ticket {
                self.run_queue.pop();
                continue;
            }
            if std::thread::panicking() {
                return STAY;
            }
            self.run_queue.replace_first(mine);
            self.take_runnable(first);
            return first.thread;
        }
        STAY
    }

    /// A panicking coroutine runs its destructors without interruption: the state of the panic
    /// belongs to the one real thread.
    fn unless_panicking(&self, next: u32) -> u32 {
        if next == self.running || std::thread::panicking() {
            return STAY;
        }
        next
    }

    /// The first thread of `run_queue` is to run: if it was blocked, its deadline has come.
    fn take_runnable(&mut self, runnable: Runnable) {
        let thread = &mut self.threads[runnable.thread as usize];
        if thread.state == State::Blocked {
            thread.state = State::Runnable;
            thread.timed_out = true;
            thread.ticket += 1;
            thread.clock_ps = thread.clock_ps.max(runnable.time_ps);
            self.waiting
                .retain(|(_, waiter)| *waiter != runnable.thread);
        }
    }

    /// Without clocks of their own: makes those ready whose time has come.
    #[inline(always)]
    fn wake_sleepers(&mut self) {
        while let Some(first) = self.run_queue.first() {
            if first.time_ps > self.clock_ps {
                return;
            }
            self.run_queue.pop();
            if self.threads[first.thread as usize].ticket == first.ticket {
                self.take_runnable(first);
                self.ready.threads.push(first.thread);
                self.newly_ready = true;
            }
        }
    }

    /// The thread that runs next, the running one included; at least one is ready.
    fn choose(&mut self) -> u32 {
        if let Some(held) = self.scripted() {
            return held;
        }
        self.ready.choose()
    }

    /// The thread that the script wants to run, if that one is ready.
    fn scripted(&self) -> Option<u32> {
        let (name, _) = self.script.get(self.script_at)?;
        let wanted = |thread: &&u32| self.threads[**thread as usize].name == *name;
        self.ready.threads.iter().find(wanted).copied()
    }

    pub(super) fn reach(&mut self, name: &'static str) -> u32 {
        let thread = &mut self.threads[self.running as usize];
        thread.point = name;
        if let Some((wanted, point)) = self.script.get(self.script_at)
            && *wanted == thread.name
            && *point == name
        {
            self.script_at += 1;
        }
        self.step()
    }

    /// The running coroutine spins or yields.
    pub(super) fn give_way(&mut self, cost: Cost) -> u32 {
        self.steps += 1;
        if self.steps > self.steps_max {
            return self.too_long();
        }
        self.compute(cost);
        if std::thread::panicking() {
            return STAY;
        }
        if self.least_time {
            if self.quiet > 0 {
                return self.give_way_quietly();
            }
            return self.step_by_time();
        }
        self.wake_sleepers();
        if self.ready.threads.len() == 1 && self.quiet > 0 {
            // The thread that it waits for may be asleep.
            self.skip_to_sleeper();
        }
        let next = self.ready.choose_other(self.running);
        self.unless_panicking(next)
    }

    /// With clocks that stand still, the first of the others runs.
    fn give_way_quietly(&mut self) -> u32 {
        let me = self.running;
        let Some(first) = self.pop_runnable() else {
            return STAY;
        };
        // Behind the thread that runs now, or the two would wait for each other's clock.
        let thread = &mut self.threads[me as usize];
        thread.clock_ps = thread.clock_ps.max(first.time_ps);
        self.run_queue.push(Runnable {
            time_ps: thread.clock_ps,
            thread: me,
            ticket: thread.ticket,
        });
        self.take_runnable(first);
        self.unless_panicking(first.thread)
    }

    /// The running coroutine waits for as long as `cost` says and lets others run meanwhile.
    pub(super) fn pause(&mut self, cost: Cost) -> u32 {
        if self.least_time || self.quiet > 0 {
            return self.give_way(cost);
        }
        let until = self.prices.work(0, cost, self.clock_ps);
        self.steps += 1;
        if self.steps > self.steps_max {
            return self.too_long();
        }
        if std::thread::panicking() {
            return STAY;
        }
        let me = self.running;
        let wait = Wait::alone("backoff");
        let next = self.block(wait, Some(until));
        if next == me { STAY } else { next }
    }

    /// Without clocks of their own: moves the clock on to the next sleeper's time.
    fn skip_to_sleeper(&mut self) {
        while let Some(first) = self.run_queue.first() {
            if self.threads[first.thread as usize].ticket != first.ticket {
                self.run_queue.pop();
                continue;
            }
            self.clock_ps = self.clock_ps.max(first.time_ps);
            self.wake_sleepers();
            return;
        }
    }

    /// The first entry of the run queue that is not void.
    fn pop_runnable(&mut self) -> Option<Runnable> {
        loop {
            let first = self.run_queue.pop()?;
            if self.threads[first.thread as usize].ticket == first.ticket {
                return Some(first);
            }
        }
    }

    /// Blocks the running coroutine; returns the thread that runs next, possibly the same one.
    pub(super) fn block(&mut self, wait: Wait, deadline_ps: Option<u64>) -> u32 {
        let me = self.running;
        let thread = &mut self.threads[me as usize];
        thread.state = State::Blocked;
        thread.wait = wait;
        thread.timed_out = false;
        thread.ticket += 1;
        if let Some(time_ps) = deadline_ps {
            self.run_queue.push(Runnable {
                time_ps,
                thread: me,
                ticket: thread.ticket,
            });
        }
        if wait.address != 0 {
            self.waiting.push((wait.address, me));
        }
        self.ready.remove(me);
        self.next_runnable()
    }

    /// The thread that runs next when the running coroutine does not.
    pub(super) fn next_runnable(&mut self) -> u32 {
        if self.least_time {
            if let Some(first) = self.pop_runnable() {
                self.take_runnable(first);
                return first.thread;
            }
        } else {
            self.wake_sleepers();
            if self.ready.threads.is_empty() {
                self.skip_to_sleeper();
            }
            if !self.ready.threads.is_empty() {
                return self.choose();
            }
        }
        let waits = self.all_waits();
        self.fail(Cause::Deadlock { waits })
    }

    /// After a suspension: whether the coroutine was woken, not timed out.
    pub(super) fn resumed(&mut self, me: u32) -> bool {
        !std::mem::take(&mut self.threads[me as usize].timed_out)
    }

    pub(super) fn wake(&mut self, address: usize, all: bool) {
        loop {
            let count = self.waiting.iter().filter(|(on, _)| *on == address).count();
            if count == 0 {
                return;
            }
            let pick = if all { 0 } else { self.ready.pick(count) };
            let of_address = |(_, (on, _)): &(usize, &(usize, u32))| *on == address;
            let found = self.waiting.iter().enumerate().filter(of_address).nth(pick);
            let Some((at, _)) = found else { return };
            let (_, thread) = self.waiting.remove(at);
            self.make_runnable(thread);
            if !all {
                return;
            }
        }
    }

    fn make_runnable(&mut self, number: u32) {
        let spins = self.threads[number as usize].wait.spins;
        let now = self.now_ps().saturating_add(self.prices.wake_ps(spins));
        let thread = &mut self.threads[number as usize];
        thread.state = State::Runnable;
        thread.ticket += 1;
        if self.least_time {
            thread.clock_ps = match self.quiet {
                0 => thread.clock_ps.max(now),
                _ => thread.clock_ps,
            };
            self.run_queue.push(Runnable {
                time_ps: thread.clock_ps,
                thread: number,
                ticket: thread.ticket,
            });
        } else {
            self.ready.threads.push(number);
            self.newly_ready = true;
        }
    }

    /// Starts a coroutine that runs `body`; see [`runtime::spawn`](super::runtime::spawn).
    ///
    /// # Safety
    /// As for [`runtime::spawn`](super::runtime::spawn).
    pub(super) unsafe fn spawn<'a>(
        &mut self,
        name: Option<&str>,
        body: Box<dyn FnOnce() + 'a>,
    ) -> std::io::Result<u32> {
        let number = self.threads.len() as u32;
        let (stack, low, high) = self.space.take_stack()?;
        let slot = Slot { low, high };
        let run_body = move |yielder: &Yielder<(), ()>, ()| runtime::enter(number, yielder, body);
        // SAFETY: the caller promises that the body's references outlive the coroutine.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(slot, run_body) };
        let (clock_ps, core) = match self.threads.get(self.running as usize) {
            Some(parent) => (parent.clock_ps, parent.core),
            None => (0, 0),
        };
        self.threads.push(Thread {
            name: name.map_or_else(|| format!("thread {number}"), str::to_owned),
            coroutine: Some(Box::new(coroutine)),
            stack,
            yielder: std::ptr::null(),
            state: State::Runnable,
            wait: Wait::alone(""),
            timed_out: false,
            ticket: 0,
            token: false,
            clock_ps,
            core,
            point: "",
        });
        self.ready.thread_started();
        if !self.least_time {
            self.ready.threads.push(number);
            self.newly_ready = true;
        } else if number > 0 {
            self.run_queue.push(Runnable {
                time_ps: clock_ps,
                thread: number,
                ticket: 0,
            });
        }
        Ok(number)
    }

    /// Ends the run; returns the choice of no thread.
    pub(super) fn fail(&mut self, cause: Cause) -> u32 {
        self.failure.get_or_insert(cause);
        // A thread that switches to no other goes back to the run's own loop.
        NOBODY
    }

    #[cold]
    fn too_long(&mut self) -> u32 {
        if std::thread::panicking() {
            return STAY;
        }
        let waits = self.all_waits();
        let steps = self.steps_max;
        self.fail(Cause::TooLong { steps, waits })
    }

    /// What every coroutine is doing, for people.
    fn all_waits(&self) -> Vec<String> {
        let unfinished = self.threads.iter().filter(|t| t.state != State::Finished);
        let describe = |thread: &Thread| {
            let mut text = thread.name.clone();
            match thread.state {
                State::Blocked if thread.wait.address == 0 => {
                    let _ = write!(text, " is in {}", thread.wait.what);
                }
                State::Blocked => {
                    let _ = write!(text, " waits for {}", thread.wait.what);
                    if let Some(name) = self.lines.name_of(thread.wait.address) {
                        let _ = write!(text, " {name}");
                    }
                }
                _ => text.push_str(" can run"),
            }
            if !thread.point.is_empty() {
                let _ = write!(text, ", after {}", thread.point);
            }
            text
        };
        unfinished.map(describe).collect()
    }

    /// Begins or ends a quiet part. Says whether the run is quiet now.
    pub(super) fn set_quiet(&mut self, quiet: bool) -> bool {
        match quiet {
            true => self.quiet += 1,
            false => self.quiet -= 1,
        }
        self.quiet > 0
    }

    pub(super) fn pin(&mut self, position: usize) {
        self.threads[self.running as usize].core = position % self.cores;
    }

    pub(super) fn cores(&self) -> usize {
        self.cores
    }

    pub(super) fn running(&self) -> u32 {
        self.running
    }

    pub(super) fn is_finished(&self, thread: u32) -> bool {
        self.threads[thread as usize].state == State::Finished
    }

    /// Takes the running coroutine's token, if another thread has left one.
    pub(super) fn take_token(&mut self) -> bool {
        std::mem::take(&mut self.threads[self.running as usize].token)
    }

    /// Wakes `thread` if it is parked, or leaves it a token.
    pub(super) fn unpark(&mut self, number: u32) {
        let Some(thread) = self.threads.get_mut(number as usize) else {
            return;
        };
        if thread.state == State::Blocked && thread.wait.what == "park" {
            self.make_runnable(number);
        } else {
            thread.token = true;
        }
    }

    pub(super) fn prices(&mut self) -> &mut Prices {
        &mut self.prices
    }

    /// The lines that were contended most, as addresses.
    pub(super) fn hottest(&self, count: usize) -> Vec<(usize, kiln_machine::LineHeat)> {
        let lines = self.prices.hottest(count).into_iter();
        lines
            .map(|(line, heat)| (self.lines.address(line), heat))
            .collect()
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            trace_hash: self.trace,
            accesses: self.accesses,
            steps: self.steps,
            switches: self.switches,
            lines: self.lines.len(),
            virtual_ps: match self.least_time {
                true => self.threads.iter().map(|t| t.clock_ps).max().unwrap_or(0),
                false => self.clock_ps,
            },
            threads: self.threads.len(),
            unfinished: self
                .threads
                .iter()
                .filter(|thread| thread.state != State::Finished)
                .count(),
        }
    }

    pub(super) fn body_of(&mut self, number: u32) -> *mut Coroutine<(), (), (), Slot> {
        match &mut self.threads[number as usize].coroutine {
            Some(coroutine) => &mut **coroutine,
            None => null_mut(),
        }
    }

    /// Why the run failed.
    pub(super) fn take_failure(&mut self) -> Option<Cause> {
        let unmet = self.script.get(self.script_at);
        let unmet = unmet.map(|(thread, point)| Cause::Script {
            thread: thread.clone(),
            point: (*point).to_owned(),
        });
        self.failure.take().or(unmet)
    }

    /// Forgets the lines' numbers and gives the space back.
    pub(super) fn end(mut self) {
        for thread in &mut self.threads {
            if let Some(coroutine) = thread.coroutine.take()
                && !coroutine.done()
            {
                // Its stack is not unwound: what it holds belongs to a run that has ended.
                std::mem::forget(coroutine);
            }
        }
        self.lines.forget(&mut self.space);
        self.space.rest();
    }
}

/// What a run counted.
pub(super) struct Counts {
    pub(super) trace_hash: u64,
    pub(super) accesses: u64,
    pub(super) steps: u64,
    pub(super) switches: u64,
    pub(super) lines: usize,
    pub(super) virtual_ps: u64,
    pub(super) threads: usize,
    pub(super) unfinished: usize,
}
