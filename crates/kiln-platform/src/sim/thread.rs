//! Threads: in a run, coroutines; else real ones.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

#[path = "../std/thread.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "a part of it is only for the other backend; which part depends on the system"
)]
mod real;

use super::runtime;
use super::state::Wait;
use super::sync::AddressOf;

/// Whether the stack of this thread is being unwound. In a run one coroutine is at a time, and a
/// panic ends the run.
pub fn panicking() -> bool {
    std::thread::panicking()
}

/// How a thread ended: what it returned, or what it panicked with. In a run always the former,
/// because a panic ends the run.
type Ended<T> = Result<T, Box<dyn Any + Send + 'static>>;

/// A thread's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(Id);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Id {
    Real(std::thread::ThreadId),
    Virtual(u32),
}

/// A handle to a thread.
#[derive(Clone, Debug)]
pub struct Thread(Handle);

#[derive(Clone, Debug)]
enum Handle {
    Real(std::thread::Thread),
    Virtual(u32),
}

impl Thread {
    /// Its identity.
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Handle::Real(thread) => Id::Real(thread.id()),
            Handle::Virtual(number) => Id::Virtual(*number),
        })
    }

    /// Its name; virtual ones have theirs for reports alone.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Handle::Real(thread) => thread.name(),
            Handle::Virtual(_) => None,
        }
    }

    /// Ends its parking, or the next one at once.
    pub fn unpark(&self) {
        match &self.0 {
            Handle::Real(thread) => thread.unpark(),
            // A handle that outlived its run wakes no thread.
            Handle::Virtual(number) if runtime::is_running() => {
                runtime::with(|runtime| runtime.unpark(*number));
            }
            Handle::Virtual(_) => {}
        }
    }
}

/// The calling thread.
pub fn current() -> Thread {
    Thread(match runtime::is_running() {
        true => Handle::Virtual(runtime::with(|runtime| runtime.running())),
        false => Handle::Real(std::thread::current()),
    })
}

/// Blocks this thread until it is unparked.
pub fn park() {
    if runtime::is_running() {
        park_until(None);
    } else {
        std::thread::park();
    }
}

/// Blocks this thread until it is unparked or `nanoseconds` have passed.
pub fn park_for(nanoseconds: u64) {
    if runtime::is_running() {
        park_until(Some(runtime::after(nanoseconds)));
    } else {
        real::park_for(nanoseconds);
    }
}

fn park_until(deadline_ps: Option<u64>) {
    if !runtime::with(|runtime| runtime.take_token()) {
        let wait = Wait::alone("park");
        runtime::block(wait, deadline_ps);
    }
}

/// Sleeps for at least `nanoseconds`.
pub fn sleep(nanoseconds: u64) {
    if runtime::is_running() {
        runtime::sleep(nanoseconds);
    } else {
        std::thread::sleep(Duration::from_nanos(nanoseconds));
    }
}

/// Lets others run.
pub fn yield_now() {
    if runtime::is_running() {
        runtime::give_way();
    } else {
        std::thread::yield_now();
    }
}

/// Waits `spins` spin hints long.
pub fn pause(spins: u64) {
    if runtime::is_running() {
        if spins > 0 {
            runtime::back_off(u32::try_from(spins).unwrap_or(u32::MAX));
        }
    } else {
        real::pause(spins);
    }
}

/// Tells the core that this is a spin loop.
#[inline(always)]
pub fn spin_hint() {
    if runtime::is_running() {
        runtime::spin();
    } else {
        real::spin_hint();
    }
}

/// The number of cores: the run's, or those this process may run on; at least 1.
pub fn available_cores() -> usize {
    match runtime::is_running() {
        true => runtime::with(|runtime| runtime.cores()),
        false => real::available_cores(),
    }
}

/// Pins the calling thread to the `position`-th core, counted round robin.
pub fn pin_to_core(position: usize) -> bool {
    if runtime::is_running() {
        runtime::with(|runtime| runtime.pin(position));
        return true;
    }
    real::pin_to_core(position)
}

/// Lets the calling thread, if it was pinned, run on this core for some time, or on its own again:
/// coroutines stay where they are.
pub fn move_to_core(position: Option<usize>) {
    if !runtime::is_running() {
        real::move_to_core(position);
    }
}

/// The position that the calling thread was pinned to, if that is known: coroutines stay where they
/// are.
pub fn pinned_core() -> Option<usize> {
    match runtime::is_running() {
        true => None,
        false => real::pinned_core(),
    }
}

/// Where a coroutine puts what it returns.
struct Packet<T> {
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the coroutine writes the value before it ends, and the coroutine that joins it takes the
// value after that; both run on one real thread.
unsafe impl<T: Send> Send for Packet<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Packet<T> {}

/// A coroutine that can be waited for.
struct Started<T> {
    number: u32,
    packet: Arc<Packet<T>>,
}

impl<T> Started<T> {
    /// Starts a coroutine.
    ///
    /// # Safety
    /// What `body` refers to lives until the coroutine has ended.
    unsafe fn new<'a>(
        name: Option<&str>,
        body: impl FnOnce() -> T + 'a,
    ) -> std::io::Result<Started<T>>
    where
        T: 'a,
    {
        let packet = Arc::new(Packet {
            value: UnsafeCell::new(None),
        });
        let address = Arc::as_ptr(&packet).cast::<()>().addr();
        let inside = packet.clone();
        let run = move || {
            let value = body();
            // SAFETY: the joining coroutine reads only after this one has ended.
            unsafe { *inside.value.get() = Some(value) };
            drop(inside);
            // A waiting coroutine runs only after this one has ended or waits again.
            runtime::wake_all(address);
        };
        // SAFETY: the caller's promise is passed on.
        let number = unsafe { runtime::spawn(name, Box::new(run)) }?;
        Ok(Started { number, packet })
    }

    fn is_finished(&self) -> bool {
        runtime::with(|runtime| runtime.is_finished(self.number))
    }

    fn wait(&self) {
        let address = Arc::as_ptr(&self.packet).cast::<()>().addr();
        while !self.is_finished() {
            let wait = Wait::on("the end of a thread", address);
            runtime::block(wait, None);
        }
    }

    fn join(self) -> Ended<T> {
        self.wait();
        // SAFETY: the coroutine has ended, and this handle is the only one.
        let value = unsafe { (*self.packet.value.get()).take() };
        Ok(value.expect("a thread that ended in a run returned something"))
    }
}

/// The right to wait for a thread.
pub struct JoinHandle<T>(Join<T>);

enum Join<T> {
    Real(std::thread::JoinHandle<T>),
    Virtual(Started<T>),
}

impl<T> JoinHandle<T> {
    /// The thread.
    pub fn thread(&self) -> Thread {
        Thread(match &self.0 {
            Join::Real(handle) => Handle::Real(handle.thread().clone()),
            Join::Virtual(started) => Handle::Virtual(started.number),
        })
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Join::Real(handle) => handle.is_finished(),
            Join::Virtual(started) => started.is_finished(),
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// What it panicked with.
    pub fn join(self) -> Ended<T> {
        match self.0 {
            Join::Real(handle) => handle.join(),
            Join::Virtual(started) => started.join(),
        }
    }
}

/// Starts a named thread.
///
/// # Errors
/// When there are too many.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    if !runtime::is_running() {
        return real::spawn(name, body).map(|handle| JoinHandle(Join::Real(handle)));
    }
    // SAFETY: the body refers to nothing that ends.
    unsafe { Started::new(Some(name), body) }.map(|started| JoinHandle(Join::Virtual(started)))
}

/// Where threads that borrow are started; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    real: Option<&'scope std::thread::Scope<'scope, 'env>>,
    /// In a run: threads that have not ended.
    unfinished: Rc<AddressOf<Cell<usize>>>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

/// The right to wait for a thread of a scope.
pub struct ScopedJoinHandle<'scope, T>(ScopedJoin<'scope, T>);

enum ScopedJoin<'scope, T> {
    Real(std::thread::ScopedJoinHandle<'scope, T>),
    Virtual(Started<T>),
}

impl<T> ScopedJoinHandle<'_, T> {
    /// The thread.
    pub fn thread(&self) -> Thread {
        Thread(match &self.0 {
            ScopedJoin::Real(handle) => Handle::Real(handle.thread().clone()),
            ScopedJoin::Virtual(started) => Handle::Virtual(started.number),
        })
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            ScopedJoin::Real(handle) => handle.is_finished(),
            ScopedJoin::Virtual(started) => started.is_finished(),
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// What it panicked with.
    pub fn join(self) -> Ended<T> {
        match self.0 {
            ScopedJoin::Real(handle) => handle.join(),
            ScopedJoin::Virtual(started) => started.join(),
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread that ends before the scope does.
    ///
    /// # Panics
    /// When there are too many.
    pub fn spawn<T: Send + 'scope>(
        &'scope self,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        self.spawn_named(None, body)
    }

    fn spawn_named<T: Send + 'scope>(
        &'scope self,
        name: Option<&str>,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        if let Some(real) = self.real {
            return ScopedJoinHandle(ScopedJoin::Real(real.spawn(body)));
        }
        let unfinished = self.unfinished.clone();
        unfinished.0.set(unfinished.0.get() + 1);
        let counted = move || {
            let value = body();
            unfinished.0.set(unfinished.0.get() - 1);
            if unfinished.0.get() == 0 {
                runtime::wake_all(unfinished.address());
            }
            value
        };
        // SAFETY: the scope does not end before the coroutine has, and what the body refers to
        // outlives the scope. When the run fails, the coroutine is not resumed again.
        let started = unsafe { Started::new(name, counted) };
        let started = started.expect("room for another thread in the run");
        ScopedJoinHandle(ScopedJoin::Virtual(started))
    }
}

/// Calls `body` with a scope in which threads can be started that borrow from the caller, and
/// waits until all of them have ended.
pub fn scope<'env, T>(body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    let unfinished = || Rc::new(AddressOf(Cell::new(0)));
    if !runtime::is_running() {
        return std::thread::scope(|real| {
            let scope = Scope {
                // SAFETY: only the lifetime's name changes: the scope lives as long as its threads
                // do, which `std::thread::scope` waits for before it returns.
                #[expect(clippy::missing_transmute_annotations, reason = "lifetimes only")]
                real: Some(unsafe { std::mem::transmute(real) }),
                unfinished: unfinished(),
                scope: PhantomData,
            };
            body(&scope)
        });
    }
    let scope = Scope {
        real: None,
        unfinished: unfinished(),
        scope: PhantomData,
    };
    /// Waits also when the scope's body panics.
    struct AwaitAll<'a>(&'a AddressOf<Cell<usize>>);
    impl Drop for AwaitAll<'_> {
        fn drop(&mut self) {
            while self.0.0.get() > 0 {
                let wait = Wait::on("the threads of a scope", self.0.address());
                runtime::block(wait, None);
            }
        }
    }
    let _wait = AwaitAll(&scope.unfinished);
    body(&scope)
}
