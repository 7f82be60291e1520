//! Threads: spawning, pinning, parking.

use std::cell::Cell;
use std::time::Duration;

pub use std::thread::{
    JoinHandle, ScopedJoinHandle, Thread, ThreadId, current, panicking, park, scope, yield_now,
};

/// Starts a named thread.
///
/// # Errors
/// The operating system's error when it cannot create another thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
}

/// Blocks this thread until it is unparked or `nanoseconds` have passed.
pub fn park_for(nanoseconds: u64) {
    std::thread::park_timeout(Duration::from_nanos(nanoseconds));
}

/// Sleeps for at least `nanoseconds`.
pub fn sleep(nanoseconds: u64) {
    std::thread::sleep(Duration::from_nanos(nanoseconds));
}

/// Waits `spins` spin hints long.
#[inline]
pub fn pause(spins: u64) {
    for _ in 0..spins {
        spin_hint();
    }
}

/// Tells the core that this is a spin loop.
#[inline(always)]
pub fn spin_hint() {
    std::hint::spin_loop();
}

/// The number of cores this process may run on; at least 1.
pub fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

thread_local! {
    static PINNED: Cell<Option<Pinned>> = const { Cell::new(None) };
}

/// How a thread is pinned.
#[derive(Clone, Copy)]
struct Pinned {
    /// The position that was asked for, and the one where it is.
    position: usize,
    present: usize,
    /// Where it might run before.
    allowed: Cores,
}

/// The position that the calling thread was pinned to with [`pin_to_core`], if it was.
pub fn pinned_core() -> Option<usize> {
    Some(PINNED.get()?.position)
}

/// Pins the calling thread to the `position`-th core that this process may run on, counted round
/// robin. Returns whether the operating system agreed; an unpinned thread is slower, not wrong.
pub fn pin_to_core(position: usize) -> bool {
    let before = PINNED.get().map(|pinned| pinned.allowed);
    let Some(allowed) = before.or_else(Cores::allowed) else {
        return false;
    };
    let is_pinned = allowed.pin_to(position);
    if is_pinned {
        PINNED.set(Some(Pinned {
            position,
            present: position,
            allowed,
        }));
    }
    is_pinned
}

/// Lets the calling thread, if it was pinned, run on this core for some time, or on its own again.
pub fn move_to_core(position: Option<usize>) {
    if let Some(pinned) = PINNED.get() {
        let present = position.unwrap_or(pinned.position);
        if present != pinned.present && pinned.allowed.pin_to(present) {
            PINNED.set(Some(Pinned { present, ..pinned }));
        }
    }
}

/// A set of cores.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
struct Cores(libc::cpu_set_t);

#[cfg(target_os = "linux")]
impl Cores {
    /// Where the calling thread may run.
    fn allowed() -> Option<Cores> {
        // SAFETY: `cpu_set_t` is plain data for which all zeroes is the empty set, and the call
        // gets its true size.
        unsafe {
            let mut allowed: libc::cpu_set_t = std::mem::zeroed();
            let size = std::mem::size_of::<libc::cpu_set_t>();
            (libc::sched_getaffinity(0, size, &mut allowed) == 0).then_some(Cores(allowed))
        }
    }

    /// Lets the calling thread run on the `position`-th of them only, counted round robin; whether
    /// the system agreed.
    fn pin_to(&self, position: usize) -> bool {
        // SAFETY: the numbers are below the size of the set; otherwise as above, and only the
        // calling thread is touched.
        unsafe {
            let count = libc::CPU_COUNT(&self.0) as usize;
            let mut cores =
                (0..libc::CPU_SETSIZE as usize).filter(|&core| libc::CPU_ISSET(core, &self.0));
            let Some(core) = position.checked_rem(count).and_then(|at| cores.nth(at)) else {
                return false;
            };
            let mut wanted: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut wanted);
            libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &wanted) == 0
        }
    }
}

/// Nothing, where threads are not pinned.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Copy)]
struct Cores;

#[cfg(not(target_os = "linux"))]
impl Cores {
    fn allowed() -> Option<Cores> {
        None
    }

    fn pin_to(&self, _: usize) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_moves_and_comes_back() {
        std::thread::spawn(|| {
            // SAFETY: asks where the thread runs, and touches nothing.
            let core = || unsafe { libc::sched_getcpu() };
            assert_eq!(pinned_core(), None);
            move_to_core(Some(1));
            assert_eq!(pinned_core(), None);
            let [first, second] = [0, 1].map(|position| pin_to_core(position).then(core));
            move_to_core(Some(0));
            assert_eq!((Some(core()), pinned_core()), (first, Some(1)));
            move_to_core(None);
            assert_eq!((Some(core()), pinned_core()), (second, Some(1)));
            // So many cores as before.
            assert_eq!(pin_to_core(0).then(core), first);
        })
        .join()
        .expect("the thread runs through");
    }
}
