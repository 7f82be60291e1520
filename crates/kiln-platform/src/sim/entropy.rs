//! The system's randomness, which a run must not see.
//!
//! The standard library seeds the hasher of its maps with it, once for each thread. A map with
//! another seed iterates in another order, and is dropped in another order: then blocks are freed
//! in another order, and what is allocated next lies elsewhere. So programs built for virtual cores
//! bring the C library's function for it along: in a run, which has a thread of its own, it gives
//! always the same bytes, and outside of runs those of the system.

use super::queue::Dice;
use super::runtime;

/// The C library's function of this name.
///
/// # Safety
/// `buffer` points to `bytes` writable bytes.
// SAFETY: it has the type and the meaning that C libraries give to this name.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(
    buffer: *mut libc::c_void,
    bytes: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    if !runtime::is_running() {
        // SAFETY: the caller's promise is passed on.
        return unsafe { libc::syscall(libc::SYS_getrandom, buffer, bytes, flags) }
            as libc::ssize_t;
    }
    let mut dice = Dice::new(0);
    for at in 0..bytes {
        // SAFETY: within the caller's bytes.
        unsafe { *buffer.cast::<u8>().add(at) = dice.next() as u8 };
    }
    bytes as libc::ssize_t
}
