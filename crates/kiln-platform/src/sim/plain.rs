//! Plain memory that goes from one thread to another; see the module of the same name.
//!
//! It is charged where each core has a clock. The other schedules look for interleavings, and what
//! is said here is no scheduling point for them: plain memory has one user at a time.

use kiln_machine::AccessKind;

use super::runtime;
use super::space::LINE_BYTES;

fn touch<T>(memory: *const [T], bytes_max: usize, kind: AccessKind) {
    let bytes = (memory.len() * size_of::<T>()).min(bytes_max);
    let start = memory.cast::<u8>().addr();
    if bytes == 0 || !runtime::has_machine() {
        return;
    }
    for line in start / LINE_BYTES..=(start + bytes - 1) / LINE_BYTES {
        runtime::plain(line * LINE_BYTES, kind);
    }
}

#[inline(always)]
pub(crate) fn reads<T>(memory: *const [T]) {
    touch(memory, usize::MAX, AccessKind::Load);
}

#[inline(always)]
pub(crate) fn writes<T>(memory: *const [T]) {
    touch(memory, usize::MAX, AccessKind::Store);
}

#[inline(always)]
pub(crate) fn prefetch<T>(memory: *const [T], bytes_max: usize) {
    touch(memory, bytes_max, AccessKind::Prefetch);
}
