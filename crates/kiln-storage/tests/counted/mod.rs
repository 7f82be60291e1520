//! An allocator that counts the bytes of each thread.

#![allow(dead_code, reason = "no test uses all of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated and not freed, and the most there were of them.
    static BYTES: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(bytes: isize) {
    // During a thread's end there is no cell any more, and nothing to count.
    let _ = BYTES.try_with(|counted| {
        let (now, peak) = counted.get();
        let now = now + bytes;
        counted.set((now, peak.max(now)));
    });
}

// SAFETY: every method hands its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `body` returns, and the most bytes that it had allocated at a time.
pub fn peak_bytes<T>(body: impl FnOnce() -> T) -> (T, usize) {
    let before = BYTES.with(|counted| {
        let (now, _) = counted.get();
        counted.set((now, now));
        now
    });
    let value = body();
    let (_, peak) = BYTES.get();
    (value, (peak - before) as usize)
}

/// The bytes that this thread has allocated and not freed.
pub fn live_bytes() -> isize {
    BYTES.get().0
}
