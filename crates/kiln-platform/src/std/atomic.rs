//! Atomic integers and pointers, fences and orderings.

pub use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Asks the processor to fetch the cache line at `address` soon; never faults.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; it does not dereference, so any address is allowed.
    unsafe {
        std::arch::x86_64::_mm_prefetch(address.cast(), std::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = address;
}

/// Asks the processor for memory that is no atomics, at most so many bytes of it.
#[inline(always)]
pub fn prefetch_plain<T>(memory: *const [T], bytes_max: usize) {
    let (start, bytes) = (memory.cast::<u8>(), memory.len() * size_of::<T>());
    for offset in (0..bytes.min(bytes_max)).step_by(64) {
        prefetch(start.wrapping_add(offset));
    }
}
