//! Plain memory that goes from one thread to another, told to virtual cores.
//!
//! A virtual core sees atomics by itself. What a message, a queue or a latch hands over (a call
//! with its arguments, a demand for locks, a plan) is plain memory, whose lines move between the
//! caches all the same. The thread that writes it tells so here after it has written, and the
//! thread that receives it before it reads. Each line costs what the machine says beyond a hit in
//! the first-level cache, which the prices of the engine's [`work`](crate::work) contain. On real
//! cores all of this is nothing.

/// The calling thread reads these elements, which another thread may have written.
#[inline(always)]
pub fn reads<T>(memory: *const [T]) {
    #[cfg(kiln_sim)]
    crate::backend::plain::reads(memory);
    #[cfg(not(kiln_sim))]
    let _ = memory;
}

/// The calling thread writes these elements, which another thread will read.
#[inline(always)]
pub fn writes<T>(memory: *const [T]) {
    #[cfg(kiln_sim)]
    crate::backend::plain::writes(memory);
    #[cfg(not(kiln_sim))]
    let _ = memory;
}

/// As [`reads`], for one object.
#[inline(always)]
pub fn reads_one<T>(object: *const T) {
    reads(std::ptr::slice_from_raw_parts(object, 1));
}

/// As [`writes`], for one object.
#[inline(always)]
pub fn writes_one<T>(object: *const T) {
    writes(std::ptr::slice_from_raw_parts(object, 1));
}
