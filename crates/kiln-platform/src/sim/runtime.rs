//! Coroutines, scheduling points, blocking and waking.
//!
//! A run has one real thread. It resumes the coroutine that the schedule names; the coroutine runs
//! until a scheduling point at which another is to run, notes which, and suspends itself. Everything
//! here is reached through two thread-local variables: the mode, which every access looks at, and
//! the address of the [`Runtime`].
//!
//! # Invariants
//!
//! - While a coroutine's own code runs, the thread allocates from the run's space; while code of this
//!   module runs, it does not ([`space::outside`]).
//! - No reference to the runtime lives across a switch: it is reached anew through its address.
//! - A coroutine is in exactly one place: running, ready (in `ready` or `turns`), or blocked.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr::null_mut;

use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, Yielder};
use kiln_machine::{AccessKind, Work as Cost};

use super::control::{Cause, Config, Schedule};
use super::machine::{Prices, cost_of};
use super::queue::{Ready, Turn, Turns};
use super::space::{self, LINE_BYTES, Space};
use crate::work::Work;

/// No run on this thread.
const OFF: u8 = 0;
/// A run; accesses are scheduling points.
const ACTIVE: u8 = 1;
/// A run that prepares something: only blocking switches, nothing is charged or traced.
const QUIET: u8 = 2;

thread_local! {
    static MODE: Cell<u8> = const { Cell::new(OFF) };
    static RUNTIME: Cell<*mut Runtime> = const { Cell::new(null_mut()) };
}

/// A stack of the run's space.
struct Slot {
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
enum State {
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
}

struct Thread {
    name: String,
    coroutine: Option<Box<Coroutine<(), (), (), Slot>>>,
    stack: usize,
    yielder: *const Yielder<(), ()>,
    state: State,
    wait: Wait,
    timed_out: bool,
    /// Counts changes of state, so that outdated turns are known for what they are.
    ticket: u32,
    /// Unparked before it parked.
    token: bool,
    clock_ps: u64,
    core: usize,
    /// The named point it passed last.
    point: &'static str,
}

/// Everything about one run.
pub(super) struct Runtime {
    space: Box<Space>,
    prices: Prices,
    least_time: bool,
    threads: Vec<Thread>,
    running: u32,
    ready: Ready,
    /// Sleepers and waiters with a deadline; with least virtual time first also who is ready.
    turns: Turns,
    /// Who waits for which address, in the order in which they came.
    waiting: Vec<(usize, u32)>,
    quiet: u32,
    /// The one clock of the schedules without clocks.
    clock_ps: u64,
    cores: usize,
    script: Vec<(String, &'static str)>,
    script_at: usize,
    /// Somebody became ready who may come before the running one.
    newly_ready: bool,
    steps: u64,
    steps_max: u64,
    accesses: u64,
    switches: u64,
    trace: u64,
    /// Addresses of the lines, by their number.
    lines: Vec<usize>,
    /// Numbers of lines that are not in the space.
    lines_outside: HashMap<usize, u32, BuildHasherDefault<LineHasher>>,
    /// Names of memory: by start, the bytes and the name.
    names: BTreeMap<usize, (usize, String)>,
    failure: Option<Cause>,
    body_ended: bool,
}

/// Mixes a line's address; the standard hasher would be slower and differ between runs.
#[derive(Default)]
struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, value: usize) {
        let mixed = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Whether the calling code is part of a run.
#[inline(always)]
pub(super) fn is_running() -> bool {
    MODE.get() != OFF
}

/// A shared-memory access is about to happen.
#[inline(always)]
pub(super) fn access(address: usize, kind: AccessKind) {
    if MODE.get() == ACTIVE {
        access_slow(address, kind);
    }
}

#[inline(never)]
fn access_slow(address: usize, kind: AccessKind) {
    let before = space::enter(null_mut());
    let runtime = RUNTIME.get();
    // SAFETY: the mode says that there is a runtime; only this thread uses it, and the reference
    // ends before the switch.
    let next = unsafe { (*runtime).access(kind) };
    if next != STAY {
        switch(runtime, next);
    }
    // SAFETY: as above.
    unsafe { (*runtime).complete(address, kind) };
    space::enter(before);
}

/// The engine has computed something.
#[inline(always)]
pub(crate) fn charge(work: Work) {
    if MODE.get() == ACTIVE {
        charge_cost(cost_of(work));
    }
}

#[inline(never)]
fn charge_cost(cost: Cost) {
    with(|runtime| runtime.compute(cost));
}

/// A named point in the code.
#[inline(always)]
pub(crate) fn point(name: &'static str) {
    if MODE.get() == ACTIVE {
        point_slow(name);
    }
}

#[inline(never)]
fn point_slow(name: &'static str) {
    pass(|runtime| runtime.reach(name));
}

/// A fence; `full` when it orders stores before later loads.
#[inline(always)]
pub(super) fn fence(full: bool) {
    if MODE.get() == ACTIVE && full {
        pass(|runtime| {
            runtime.compute(Cost::Fence);
            runtime.step()
        });
    }
}

/// A hint that the running thread spins.
pub(super) fn spin() {
    if is_running() {
        pass(|runtime| runtime.give_way(Cost::Spin));
    }
}

/// The running thread waits so many spin hints, or yields when there are none.
pub(super) fn back_off(spins: u32) {
    let cost = match spins {
        0 => Cost::SystemCall,
        _ => Cost::Backoff { spins },
    };
    pass(|runtime| runtime.pause(cost));
}

/// The running thread leaves its core to others.
pub(super) fn give_way() {
    pass(|runtime| runtime.give_way(Cost::SystemCall));
}

/// The running thread sleeps.
pub(super) fn sleep(nanoseconds: u64) {
    let deadline = with(|runtime| runtime.after(nanoseconds));
    block(
        Wait {
            what: "sleep",
            address: 0,
        },
        Some(deadline),
    );
}

/// Reading the clock takes a moment; returns picoseconds.
pub(super) fn clock_ps() -> u64 {
    with(|runtime| {
        runtime.compute(Cost::Clock);
        runtime.now_ps()
    })
}

/// The time `nanoseconds` from now, in picoseconds.
pub(super) fn after(nanoseconds: u64) -> u64 {
    with(|runtime| runtime.after(nanoseconds))
}

/// A number that the run's seed determines.
pub(crate) fn draw() -> u64 {
    with(|runtime| runtime.ready.draw())
}

/// Calls `body` with the runtime; there is one, and `body` neither switches nor calls back.
pub(super) fn with<T>(body: impl FnOnce(&mut Runtime) -> T) -> T {
    let runtime = RUNTIME.get();
    assert!(!runtime.is_null(), "no run on this thread");
    // SAFETY: the runtime lives while the variable names it, only this thread uses it, and the
    // reference ends with the call.
    space::outside(|| body(unsafe { &mut *runtime }))
}

/// Calls `body`, which says who runs next, and lets that one run.
fn pass(body: impl FnOnce(&mut Runtime) -> u32) {
    let before = space::enter(null_mut());
    let runtime = RUNTIME.get();
    // SAFETY: as in `with`.
    let next = body(unsafe { &mut *runtime });
    if next != STAY {
        switch(runtime, next);
    }
    space::enter(before);
}

/// What chooses nobody else.
const STAY: u32 = u32::MAX;

/// Suspends the running coroutine in favour of `next`.
#[inline(always)]
fn switch(runtime: *mut Runtime, next: u32) {
    // SAFETY: as in `with`; no reference lives during the suspension.
    let yielder = unsafe {
        let running = (*runtime).running;
        (*runtime).running = next;
        (*runtime).switches += 1;
        (&(*runtime).threads)[running as usize].yielder
    };
    // SAFETY: the coroutine that runs here set its yielder when it started, and it lives on the
    // coroutine's stack until it ends.
    unsafe { (*yielder).suspend(()) };
}

/// Blocks the running coroutine until somebody wakes it, or until `deadline_ps`. Says whether it was
/// woken.
pub(super) fn block(wait: Wait, deadline_ps: Option<u64>) -> bool {
    let before = space::enter(null_mut());
    let runtime = RUNTIME.get();
    // SAFETY: as in `with`; the references end before the switch.
    unsafe {
        let me = (*runtime).running;
        let next = if std::thread::panicking() {
            (*runtime).fail(Cause::Panic {
                thread: (&(*runtime).threads)[me as usize].name.clone(),
                message: format!("it waits for a {} while it panics", wait.what),
            })
        } else {
            (*runtime).block(wait, deadline_ps)
        };
        if next != me {
            switch(runtime, next);
        }
        let woken = (*runtime).resumed(me);
        space::enter(before);
        woken
    }
}

/// Wakes one of those who wait for `address`.
pub(super) fn wake_one(address: usize) {
    with(|runtime| runtime.wake(address, false));
}

/// Wakes all who wait for `address`.
pub(super) fn wake_all(address: usize) {
    with(|runtime| runtime.wake(address, true));
}

/// Starts a coroutine that runs `body`. Returns its number.
///
/// # Errors
/// When there are too many.
///
/// # Safety
/// What `body` refers to lives until the coroutine has finished.
pub(super) unsafe fn spawn<'a>(
    name: Option<&str>,
    body: Box<dyn FnOnce() + 'a>,
) -> std::io::Result<u32> {
    let before = space::enter(null_mut());
    let runtime = RUNTIME.get();
    // SAFETY: as in `with`; the promise about `body` is passed on.
    let spawned = unsafe { (*runtime).spawn(name, body) };
    space::enter(before);
    spawned
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
            turns: Turns::default(),
            waiting: Vec::new(),
            quiet: 0,
            clock_ps: 0,
            cores: config.cores,
            script: config.script.clone(),
            script_at: 0,
            newly_ready: false,
            steps: 0,
            steps_max: config.steps_max,
            accesses: 0,
            switches: 0,
            trace: 0x243f_6a88_85a3_08d3,
            lines: Vec::new(),
            lines_outside: HashMap::default(),
            names: BTreeMap::new(),
            failure: None,
            body_ended: false,
        }
    }

    fn now_ps(&self) -> u64 {
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

    fn after(&self, nanoseconds: u64) -> u64 {
        self.now_ps()
            .saturating_add(nanoseconds.saturating_mul(1_000))
    }

    fn compute(&mut self, cost: Cost) {
        if self.quiet > 0 {
            // Loops that wait for a time must come to their end.
            self.set_now_ps(self.now_ps() + 1_000);
            return;
        }
        let core = self.threads[self.running as usize].core;
        let now = self.prices.work(core, cost, self.now_ps());
        self.set_now_ps(now);
    }

    /// The number of the line at `address`, in the order of first touch.
    #[inline(always)]
    fn line_number(&mut self, address: usize) -> u32 {
        if let Some(line) = self.space.line_of(address) {
            let name = self.space.name(line);
            if *name == 0 {
                self.lines.push(self.space.line_address(line));
                *self.space.name(line) = self.lines.len() as u32;
            }
            return *self.space.name(line) - 1;
        }
        let line = address / LINE_BYTES;
        *self.lines_outside.entry(line).or_insert_with(|| {
            self.lines.push(line * LINE_BYTES);
            self.lines.len() as u32 - 1
        })
    }

    /// An access begins: says who runs before it.
    #[inline(always)]
    fn access(&mut self, kind: AccessKind) -> u32 {
        if kind == AccessKind::Prefetch && !self.least_time {
            return STAY;
        }
        self.step()
    }

    /// It is the access's turn.
    #[inline(always)]
    fn complete(&mut self, address: usize, kind: AccessKind) {
        if kind == AccessKind::Prefetch && !self.least_time {
            return;
        }
        let line = self.line_number(address);
        self.accesses += 1;
        let event = u64::from(self.running) << 34 | u64::from(line) << 2 | kind as u64;
        self.trace = (self.trace ^ event)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23);
        if self.least_time {
            let thread = &mut self.threads[self.running as usize];
            thread.clock_ps = self.prices.access(thread.core, line, kind, thread.clock_ps);
        } else {
            self.clock_ps = self.prices.access(0, line, kind, self.clock_ps);
        }
    }

    /// A scheduling point at which the running coroutine can go on.
    #[inline(always)]
    fn step(&mut self) -> u32 {
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
        let mine = Turn {
            time_ps: thread.clock_ps,
            thread: me,
            ticket: thread.ticket,
        };
        while let Some(first) = self.turns.first() {
            if mine < first {
                return STAY;
            }
            if self.threads[first.thread as usize].ticket != first.ticket {
                self.turns.pop();
                continue;
            }
            if std::thread::panicking() {
                return STAY;
            }
            self.turns.replace_first(mine);
            self.take_turn(first);
            return first.thread;
        }
        STAY
    }

    /// A panicking coroutine runs its destructors without interruption: the state of the panic belongs to
    /// the one real thread.
    fn unless_panicking(&self, next: u32) -> u32 {
        if next == self.running || std::thread::panicking() {
            return STAY;
        }
        next
    }

    /// The first thread of `turns` is to run: if it was blocked, its deadline has come.
    fn take_turn(&mut self, turn: Turn) {
        let thread = &mut self.threads[turn.thread as usize];
        if thread.state == State::Blocked {
            thread.state = State::Runnable;
            thread.timed_out = true;
            thread.ticket += 1;
            thread.clock_ps = thread.clock_ps.max(turn.time_ps);
            self.waiting.retain(|(_, waiter)| *waiter != turn.thread);
        }
    }

    /// Without clocks of their own: makes those ready whose time has come.
    #[inline(always)]
    fn wake_sleepers(&mut self) {
        while let Some(first) = self.turns.first() {
            if first.time_ps > self.clock_ps {
                return;
            }
            self.turns.pop();
            if self.threads[first.thread as usize].ticket == first.ticket {
                self.take_turn(first);
                self.ready.threads.push(first.thread);
                self.newly_ready = true;
            }
        }
    }

    /// Whoever runs next, the running one included; somebody is ready.
    fn choose(&mut self) -> u32 {
        if let Some(held) = self.scripted() {
            return held;
        }
        self.ready.choose()
    }

    /// Whom the script wants to run, if that one is ready.
    fn scripted(&self) -> Option<u32> {
        let (name, _) = self.script.get(self.script_at)?;
        let wanted = |thread: &&u32| self.threads[**thread as usize].name == *name;
        self.ready.threads.iter().find(wanted).copied()
    }

    fn reach(&mut self, name: &'static str) -> u32 {
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
    fn give_way(&mut self, cost: Cost) -> u32 {
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
            // Whoever it waits for may be asleep.
            self.skip_to_sleeper();
        }
        let next = self.ready.choose_other(self.running);
        self.unless_panicking(next)
    }

    /// With clocks that stand still, the first of the others runs.
    fn give_way_quietly(&mut self) -> u32 {
        let me = self.running;
        let Some(first) = self.pop_turn() else {
            return STAY;
        };
        // Behind whoever runs now, or the two would wait for each other's clock.
        let thread = &mut self.threads[me as usize];
        thread.clock_ps = thread.clock_ps.max(first.time_ps);
        self.turns.push(Turn {
            time_ps: thread.clock_ps,
            thread: me,
            ticket: thread.ticket,
        });
        self.take_turn(first);
        self.unless_panicking(first.thread)
    }

    /// The running coroutine waits for as long as `cost` says and lets others run meanwhile.
    fn pause(&mut self, cost: Cost) -> u32 {
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
        let wait = Wait {
            what: "backoff",
            address: 0,
        };
        let next = self.block(wait, Some(until));
        if next == me { STAY } else { next }
    }

    /// Without clocks of their own: moves the clock on to the next sleeper's time.
    fn skip_to_sleeper(&mut self) {
        while let Some(first) = self.turns.first() {
            if self.threads[first.thread as usize].ticket != first.ticket {
                self.turns.pop();
                continue;
            }
            self.clock_ps = self.clock_ps.max(first.time_ps);
            self.wake_sleepers();
            return;
        }
    }

    /// The first turn that is not void.
    fn pop_turn(&mut self) -> Option<Turn> {
        loop {
            let first = self.turns.pop()?;
            if self.threads[first.thread as usize].ticket == first.ticket {
                return Some(first);
            }
        }
    }

    /// Blocks the running coroutine; says who runs next, possibly the same one.
    fn block(&mut self, wait: Wait, deadline_ps: Option<u64>) -> u32 {
        let me = self.running;
        let thread = &mut self.threads[me as usize];
        thread.state = State::Blocked;
        thread.wait = wait;
        thread.timed_out = false;
        thread.ticket += 1;
        if let Some(time_ps) = deadline_ps {
            self.turns.push(Turn {
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

    /// Who runs next when the running coroutine does not.
    fn next_runnable(&mut self) -> u32 {
        if self.least_time {
            if let Some(first) = self.pop_turn() {
                self.take_turn(first);
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
    fn resumed(&mut self, me: u32) -> bool {
        !std::mem::take(&mut self.threads[me as usize].timed_out)
    }

    fn wake(&mut self, address: usize, all: bool) {
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
        let now = self.now_ps().saturating_add(self.prices.wake_ps());
        let thread = &mut self.threads[number as usize];
        thread.state = State::Runnable;
        thread.ticket += 1;
        if self.least_time {
            thread.clock_ps = match self.quiet {
                0 => thread.clock_ps.max(now),
                _ => thread.clock_ps,
            };
            self.turns.push(Turn {
                time_ps: thread.clock_ps,
                thread: number,
                ticket: thread.ticket,
            });
        } else {
            self.ready.threads.push(number);
            self.newly_ready = true;
        }
    }

    unsafe fn spawn<'a>(
        &mut self,
        name: Option<&str>,
        body: Box<dyn FnOnce() + 'a>,
    ) -> std::io::Result<u32> {
        let number = self.threads.len() as u32;
        let (stack, low, high) = self.space.take_stack()?;
        let slot = Slot { low, high };
        let run_body = move |yielder: &Yielder<(), ()>, ()| enter(number, yielder, body);
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
            wait: Wait {
                what: "",
                address: 0,
            },
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
            self.turns.push(Turn {
                time_ps: clock_ps,
                thread: number,
                ticket: 0,
            });
        }
        Ok(number)
    }

    /// Ends the run; returns whom to switch to, which is nobody in particular.
    fn fail(&mut self, cause: Cause) -> u32 {
        self.failure.get_or_insert(cause);
        // Any other number than the running one's: the switch goes to the run's own loop.
        STAY - 1
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
                    if let Some(name) = self.name_of(thread.wait.address) {
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

    pub(super) fn name_range(&mut self, address: usize, bytes: usize, name: String) {
        self.names.insert(address, (bytes, name));
    }

    /// The registered name of `address`; of ranges within ranges, the one that starts last.
    pub(super) fn name_of(&self, address: usize) -> Option<String> {
        /// So many ranges may start between an object's start and the address.
        const SEARCHED_MAX: usize = 512;
        let before = self.names.range(..=address).rev().take(SEARCHED_MAX);
        let mut around = before.filter(|(start, (bytes, _))| address - **start < *bytes);
        around.next().map(|(_, (_, name))| name.clone())
    }

    pub(super) fn set_quiet(&mut self, quiet: bool) {
        match quiet {
            true => self.quiet += 1,
            false => self.quiet -= 1,
        }
        MODE.set(if self.quiet > 0 { QUIET } else { ACTIVE });
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

    /// Takes the running coroutine's token, if somebody has left one.
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
            .map(|(line, heat)| (self.lines[line as usize], heat))
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

    fn body_of(&mut self, number: u32) -> *mut Coroutine<(), (), (), Slot> {
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
        for address in std::mem::take(&mut self.lines) {
            if let Some(line) = self.space.line_of(address) {
                *self.space.name(line) = 0;
            }
        }
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

/// A coroutine's life.
fn enter(number: u32, yielder: &Yielder<(), ()>, body: Box<dyn FnOnce() + '_>) {
    let runtime = RUNTIME.get();
    // SAFETY: as in `with`; the reference to the space lives as long as the runtime.
    let space: *mut Space = unsafe {
        (&mut (*runtime).threads)[number as usize].yielder = yielder;
        &mut *(*runtime).space
    };
    space::enter(space);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    space::enter(null_mut());
    // SAFETY: as in `with`.
    let runtime = unsafe { &mut *runtime };
    let thread = &mut runtime.threads[number as usize];
    thread.state = State::Finished;
    thread.ticket += 1;
    if let Err(panic) = result {
        let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (_, Some(text)) => text.clone(),
            _ => "a panic without a message".to_owned(),
        };
        let thread = thread.name.clone();
        // The payload lies in the run's memory, which a failed run leaves as it is.
        std::mem::forget(panic);
        runtime.fail(Cause::Panic { thread, message });
        return;
    }
    if number == 0 {
        runtime.body_ended = true;
        return;
    }
    runtime.ready.remove(number);
    runtime.running = runtime.next_runnable();
}

/// Runs `body` as the first coroutine and everything that it starts, until it returns or the run
/// fails. The calling thread has no run yet, and it ends with this one.
pub(super) fn run(runtime: &mut Runtime, body: Box<dyn FnOnce() + '_>) {
    assert!(!is_running(), "a run inside of a run");
    let address: *mut Runtime = runtime;
    RUNTIME.set(address);
    MODE.set(ACTIVE);
    // SAFETY: `body` outlives this call, and the coroutine is not resumed after it.
    let spawned = unsafe { (*address).spawn(Some("main"), body) };
    if let Err(error) = spawned {
        let message = error.to_string();
        runtime.fail(Cause::Panic {
            thread: "main".to_owned(),
            message,
        });
    } else {
        loop {
            // SAFETY: the runtime lives during this call and only this thread uses it; coroutines
            // are boxed, so that starting others does not move the one that is resumed.
            unsafe {
                if (*address).failure.is_some() || (*address).body_ended {
                    break;
                }
                let number = (*address).running;
                let coroutine = (*address).body_of(number);
                if coroutine.is_null() {
                    unreachable!("coroutine {number} runs although it has ended");
                }
                (*coroutine).resume(());
                if (*coroutine).done() {
                    let thread = &mut (&mut (*address).threads)[number as usize];
                    let stack = thread.stack;
                    thread.coroutine = None;
                    (*address).space.give_stack(stack);
                }
            }
        }
    }
    MODE.set(OFF);
    RUNTIME.set(null_mut());
}

/// Whether the schedule has a clock for each core.
pub(super) const fn has_clocks(schedule: Schedule) -> bool {
    matches!(schedule, Schedule::LeastTime)
}
