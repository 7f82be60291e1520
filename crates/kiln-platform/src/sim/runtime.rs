//! Coroutines, scheduling points, blocking and waking.
//!
//! A run has one real thread. It resumes the coroutine that the schedule names; the coroutine runs
//! until a scheduling point at which another is to run, notes which, and suspends itself.
//! Everything here is reached through two thread-local variables: the mode, which every access
//! looks at, and the address of the [`Runtime`].
//!
//! # Invariants
//!
//! - While a coroutine's own code runs, the thread allocates from the run's space; while code of
//!   this module runs, it does not ([`space::outside`]).
//! - No reference to the runtime lives across a switch: it is reached anew through its address.
//! - A coroutine is in exactly one place: running, ready (in `ready` or `run_queue`), or blocked.

use std::cell::Cell;
use std::ptr::null_mut;

use corosensei::Yielder;
use kiln_machine::{AccessKind, Work as Cost};

use super::control::{Cause, Schedule};
use super::disk::Disk;
use super::machine::cost_of;
use super::net::Network;
use super::space::{self, Space};
use super::state::{Runtime, STAY, State, Wait};
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
    let next = unsafe { (*runtime).complete(address, kind) };
    if next != STAY {
        switch(runtime, next);
    }
    space::enter(before);
}

/// Whether each core has a clock, and a machine says what accesses take.
#[inline(always)]
pub(super) fn has_machine() -> bool {
    // SAFETY: as in `access_slow`.
    MODE.get() == ACTIVE && unsafe { (*RUNTIME.get()).least_time }
}

/// The line at `address`, of plain memory, is about to be touched. There is a machine.
#[inline(never)]
pub(super) fn plain(address: usize, kind: AccessKind) {
    pass(|runtime| runtime.access(kind));
    pass(|runtime| runtime.complete_plain(address, kind));
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
    block(Wait::alone("sleep"), Some(deadline));
}

/// Reading the clock takes a moment; returns picoseconds.
pub(super) fn clock_ps() -> u64 {
    with(|runtime| {
        runtime.compute(Cost::Clock);
        runtime.now_ps()
    })
}

/// The clock, read from outside of the run, so to speak: it costs nothing.
pub(super) fn peek_ps() -> u64 {
    with(|runtime| runtime.now_ps())
}

/// The time `nanoseconds` from now, in picoseconds.
pub(super) fn after(nanoseconds: u64) -> u64 {
    with(|runtime| runtime.after(nanoseconds))
}

/// A number that the run's seed determines.
pub(crate) fn draw() -> u64 {
    with(|runtime| runtime.ready.draw())
}

/// The run's disk, if it has one.
pub(super) fn disk() -> Option<Disk> {
    with(|runtime| runtime.disk.clone())
}

/// The run's network, if it has one.
pub(super) fn network() -> Option<Network> {
    with(|runtime| runtime.network.clone())
}

/// A system call begins.
pub(super) fn begin_operation() {
    if MODE.get() == ACTIVE {
        pass(|runtime| {
            runtime.compute(Cost::SystemCall);
            runtime.step()
        });
    }
}

/// The running thread waits for something that takes so long; not in quiet parts, and not while it
/// panics.
pub(super) fn take_time(what: &'static str, nanoseconds: u64) {
    if MODE.get() == ACTIVE && !std::thread::panicking() {
        let deadline = with(|runtime| runtime.after(nanoseconds));
        block(Wait::alone(what), Some(deadline));
    }
}

/// Something happened that is no access, and belongs into the trace.
pub(super) fn note(event: u64) {
    with(|runtime| runtime.trace(event));
}

/// Calls `body` with the runtime; there is one, and `body` neither switches nor calls back.
pub(super) fn with<T>(body: impl FnOnce(&mut Runtime) -> T) -> T {
    let runtime = RUNTIME.get();
    assert!(!runtime.is_null(), "no run on this thread");
    // SAFETY: the runtime lives while the variable names it, only this thread uses it, and the
    // reference ends with the call.
    space::outside(|| body(unsafe { &mut *runtime }))
}

/// Calls `body`, which returns the thread that runs next, and switches to that thread.
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

/// Blocks the running coroutine until another one wakes it, or until `deadline_ps`. Says whether it
/// was woken.
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

/// Begins or ends a quiet part.
pub(super) fn set_quiet(quiet: bool) {
    let is_quiet = with(|runtime| runtime.set_quiet(quiet));
    MODE.set(if is_quiet { QUIET } else { ACTIVE });
}

/// Wakes one of the coroutines that wait for `address`.
pub(super) fn wake_one(address: usize) {
    with(|runtime| runtime.wake(address, false));
}

/// Wakes all coroutines that wait for `address`.
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

/// A coroutine's life.
pub(super) fn enter(number: u32, yielder: &Yielder<(), ()>, body: Box<dyn FnOnce() + '_>) {
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
