//! Threads: spawning, pinning, parking.

use std::cell::Cell;
use std::time::Duration;

pub use std::thread::{
    JoinHandle, ScopedJoinHandle, Thread, ThreadId, current, park, scope, yield_now,
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
    /// What the thread was pinned to last.
    static PINNED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The position that the calling thread was pinned to with [`pin_to_core`], if it was.
pub fn pinned_core() -> Option<usize> {
    PINNED.get()
}

/// Pins the calling thread to the `position`-th core that this process may run on, counted round
/// robin. Returns whether the operating system agreed; an unpinned thread is slower, not wrong.
pub fn pin_to_core(position: usize) -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: `cpu_set_t` is plain data for which all zeroes is the empty set, and both calls
        // get its true size and only touch the calling thread.
        unsafe {
            let mut allowed: libc::cpu_set_t = std::mem::zeroed();
            let size = std::mem::size_of::<libc::cpu_set_t>();
            if libc::sched_getaffinity(0, size, &mut allowed) != 0 {
                return false;
            }
            let cores: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
                .filter(|&core| libc::CPU_ISSET(core, &allowed))
                .collect();
            if cores.is_empty() {
                return false;
            }
            let mut wanted: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cores[position % cores.len()], &mut wanted);
            let is_pinned = libc::sched_setaffinity(0, size, &wanted) == 0;
            if is_pinned {
                PINNED.set(Some(position));
            }
            is_pinned
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = position;
        false
    }
}
