//! Blocking primitives for the slow path, never taken by a transaction's record accesses.

pub use std::sync::{
    Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
    Weak,
};

/// Locks `mutex`, also when a thread panicked while holding it.
///
/// The engine's own invariants are re-established before any panic can leave a critical section,
/// so a poisoned mutex carries no broken state.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
