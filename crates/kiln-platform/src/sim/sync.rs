//! Blocking primitives: the real ones, which in a run never block the one real thread but suspend
//! the coroutine.
//!
//! The state of a lock is in the real lock; its waiters are in the run, by the lock's address. A
//! coroutine that finds the lock taken waits for its address. The holder that releases the lock
//! wakes one waiter, which then tries again. Taking and releasing are accesses to the lock's cache
//! line.
//!
//! `Arc` is the ordinary one: its counts are no scheduling points, and cost nothing.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync as real;
use std::sync::TryLockError;
use std::time::Duration;

pub use std::sync::{Arc, LockResult, PoisonError, TryLockResult, Weak};

use kiln_machine::AccessKind;

use super::control::quiet;
use super::runtime;
use super::space;
use super::state::Wait;

/// Something that is waited for by its address.
pub(super) struct AddressOf<T>(pub(super) T);

impl<T> AddressOf<T> {
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Waits until another coroutine wakes those that wait for `address`.
fn wait_for(what: &'static str, address: usize) {
    runtime::block(Wait::on_lock(what, address), None);
}

/// A mutual exclusion lock.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    /// Where waiters are noted; the content's address would do but for contents without size.
    mark: AddressOf<u8>,
    real: real::Mutex<T>,
}

/// The right to the content of a mutex; ends when dropped.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// There until the drop.
    real: Option<real::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            mark: AddressOf(0),
            real: real::Mutex::new(value),
        }
    }

    /// The content.
    ///
    /// # Errors
    /// When a thread panicked while it held the mutex.
    pub fn into_inner(self) -> LockResult<T> {
        self.real.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    fn guard<'a>(&'a self, real: real::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard {
            mutex: self,
            real: Some(real),
        }
    }

    /// Waits until no other thread holds the mutex, and takes it.
    ///
    /// # Errors
    /// When a thread panicked while it held the mutex.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        if !runtime::is_running() {
            return match self.real.lock() {
                Ok(guard) => Ok(self.guard(guard)),
                Err(poisoned) => Err(PoisonError::new(self.guard(poisoned.into_inner()))),
            };
        }
        loop {
            match self.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(TryLockError::WouldBlock) => wait_for("mutex", self.mark.address()),
            }
        }
    }

    /// Takes the mutex if no thread holds it.
    ///
    /// # Errors
    /// When a thread holds it, or when a thread panicked while it held the mutex.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        runtime::access(self.mark.address(), AccessKind::ReadModifyWrite);
        match self.real.try_lock() {
            Ok(guard) => Ok(self.guard(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Err(TryLockError::Poisoned(PoisonError::new(
                self.guard(poisoned.into_inner()),
            ))),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// The content, which no other thread can reach.
    ///
    /// # Errors
    /// When a thread panicked while it held the mutex.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.real.get_mut()
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl Default for AddressOf<u8> {
    fn default() -> Self {
        AddressOf(0)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.real.fmt(f)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.real.as_ref().expect("there until the drop")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.real.as_mut().expect("there until the drop")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        let Some(real) = self.real.take() else {
            return;
        };
        let address = self.mutex.mark.address();
        runtime::access(address, AccessKind::Store);
        drop(real);
        if runtime::is_running() {
            runtime::wake_one(address);
        }
    }
}

/// A lock that many may hold for reading or one for writing.
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    mark: AddressOf<u8>,
    real: real::RwLock<T>,
}

impl<T> RwLock<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock {
            mark: AddressOf(0),
            real: real::RwLock::new(value),
        }
    }
}

/// One of the two ways to hold a [`RwLock`].
macro_rules! read_or_write {
    ($guard:ident, $method:ident, $try_method:ident, $what:literal) => {
        #[doc = concat!("The right to a lock's content for ", $what, "; ends when dropped.")]
        pub struct $guard<'a, T: ?Sized> {
            lock: &'a RwLock<T>,
            /// There until the drop.
            real: Option<real::$guard<'a, T>>,
        }

        impl<T: ?Sized> RwLock<T> {
            #[doc = concat!("Waits until the lock is to be had for ", $what, ", and takes it.")]
            ///
            /// # Errors
            /// When a thread panicked while it held the lock for writing.
            pub fn $method(&self) -> LockResult<$guard<'_, T>> {
                let guard = |real| $guard {
                    lock: self,
                    real: Some(real),
                };
                if !runtime::is_running() {
                    return match self.real.$method() {
                        Ok(real) => Ok(guard(real)),
                        Err(poisoned) => Err(PoisonError::new(guard(poisoned.into_inner()))),
                    };
                }
                loop {
                    runtime::access(self.mark.address(), AccessKind::ReadModifyWrite);
                    match self.real.$try_method() {
                        Ok(real) => return Ok(guard(real)),
                        Err(TryLockError::Poisoned(poisoned)) => {
                            return Err(PoisonError::new(guard(poisoned.into_inner())));
                        }
                        Err(TryLockError::WouldBlock) => {
                            wait_for("read-write lock", self.mark.address());
                        }
                    }
                }
            }
        }

        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                self.real.as_ref().expect("there until the drop")
            }
        }

        impl<T: ?Sized> Drop for $guard<'_, T> {
            fn drop(&mut self) {
                let address = self.lock.mark.address();
                runtime::access(address, AccessKind::ReadModifyWrite);
                self.real = None;
                if runtime::is_running() {
                    runtime::wake_all(address);
                }
            }
        }
    };
}

read_or_write!(RwLockReadGuard, read, try_read, "reading");
read_or_write!(RwLockWriteGuard, write, try_write, "writing");

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.real.as_mut().expect("there until the drop")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.real.fmt(f)
    }
}

/// Whether a wait ended because its time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time was up.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// A condition to wait for while a mutex is released.
#[derive(Debug, Default)]
pub struct Condvar {
    real: real::Condvar,
}

impl Condvar {
    /// A condition that no thread waits for.
    pub const fn new() -> Condvar {
        Condvar {
            real: real::Condvar::new(),
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Releases the mutex, waits for a notification, and takes the mutex again.
    ///
    /// # Errors
    /// When a thread panicked while it held the mutex.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.wait_until(guard, None)
            .map(|(guard, _)| guard)
            .map_err(|poisoned| PoisonError::new(poisoned.into_inner().0))
    }

    /// [`Condvar::wait`], at most for `duration`.
    ///
    /// # Errors
    /// When a thread panicked while it held the mutex.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        self.wait_until(guard, Some(duration))
    }

    fn wait_until<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Option<Duration>,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let mutex = guard.mutex;
        if !runtime::is_running() {
            let real = guard.real.take().expect("there until the drop");
            let (waited, timed_out) = match duration {
                None => (self.real.wait(real), false),
                Some(duration) => match self.real.wait_timeout(real, duration) {
                    Ok((real, result)) => (Ok(real), result.timed_out()),
                    Err(poisoned) => {
                        let (real, result) = poisoned.into_inner();
                        (Err(PoisonError::new(real)), result.timed_out())
                    }
                },
            };
            let timed_out = WaitTimeoutResult(timed_out);
            return match waited {
                Ok(real) => Ok((mutex.guard(real), timed_out)),
                Err(poisoned) => {
                    let guard = mutex.guard(poisoned.into_inner());
                    Err(PoisonError::new((guard, timed_out)))
                }
            };
        }
        let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos());
        let deadline =
            duration.map(|duration| runtime::after(nanoseconds(duration).unwrap_or(u64::MAX)));
        // Released and waiting in one step: no other thread runs in between, so no notification is
        // missed.
        let mark = mutex.mark.address();
        runtime::access(mark, AccessKind::Store);
        guard.real = None;
        runtime::wake_one(mark);
        drop(guard);
        let wait = Wait::on("condition", self.address());
        let woken = runtime::block(wait, deadline);
        let timed_out = WaitTimeoutResult(!woken);
        match mutex.lock() {
            Ok(guard) => Ok((guard, timed_out)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), timed_out))),
        }
    }

    /// Wakes one of those who wait.
    pub fn notify_one(&self) {
        if runtime::is_running() {
            runtime::wake_one(self.address());
        } else {
            self.real.notify_one();
        }
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        if runtime::is_running() {
            runtime::wake_all(self.address());
        } else {
            self.real.notify_all();
        }
    }
}

/// Runs an initialiser: without interruption, so that no thread finds the cell half-way, and
/// outside of the run's memory, because a static outlives the run.
fn initialise<T>(body: impl FnOnce() -> T) -> T {
    quiet(|| space::outside(body))
}

/// A value that is written once.
#[derive(Debug)]
pub struct OnceLock<T>(real::OnceLock<T>);

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        OnceLock(real::OnceLock::from(value))
    }
}

impl<T> OnceLock<T> {
    /// A cell without a value.
    pub const fn new() -> OnceLock<T> {
        OnceLock(real::OnceLock::new())
    }

    fn touch(&self) {
        runtime::access(std::ptr::from_ref(self).addr(), AccessKind::Load);
    }

    /// The value, if it is there.
    pub fn get(&self) -> Option<&T> {
        self.touch();
        self.0.get()
    }

    /// Writes the value if none is there.
    ///
    /// # Errors
    /// The value given, when another is there.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.touch();
        self.0.set(value)
    }

    /// The value; `make` makes it when there is none, and must not wait for another thread.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.touch();
        self.0.get_or_init(|| initialise(make))
    }
}

/// A value that is made when it is needed first.
pub struct LazyLock<T, F = fn() -> T>(real::OnceLock<T>, F);

impl<T, F: Fn() -> T> LazyLock<T, F> {
    /// A value that `make` makes, which must not wait for anybody.
    pub const fn new(make: F) -> LazyLock<T, F> {
        LazyLock(real::OnceLock::new(), make)
    }
}

impl<T, F: Fn() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.get_or_init(|| initialise(&self.1))
    }
}

/// Locks `mutex`, also when a thread panicked while holding it.
///
/// The engine's own invariants are re-established before any panic can leave a critical section,
/// so a poisoned mutex carries no broken state.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
