//! Zeroed memory: what a run maps comes from its space.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use super::control;

/// The size of a huge page; regions are multiples of it.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Sets nothing aside: a run's memory has no page faults that its clock would see.
///
/// # Errors
/// None.
pub fn reserve(_bytes: usize) -> std::io::Result<()> {
    Ok(())
}

/// A hash of the address of something at least 16 bytes large, in the highest bits: the same in
/// every run of a seed, wherever the run's memory lies.
pub fn hash(address: u64) -> u64 {
    let offset = super::space::offset_in_space(address as usize) as u64;
    (offset >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Gives `bytes` bytes from `address` on a name in reports about cache lines.
pub fn name_range(address: usize, bytes: usize, name: impl FnOnce() -> String) {
    control::name_range(address, bytes, name);
}

/// A zeroed, page-aligned region of memory, returned when dropped.
///
/// Invariant: `start` points to `bytes` allocated bytes that belong to this region alone.
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a region is plain memory without thread affinity; the code that hands out parts of it
// decides how they are shared.
unsafe impl Send for Region {}
// SAFETY: as above; the region itself offers no access to its content.
unsafe impl Sync for Region {}

impl Region {
    /// At least `bytes` zeroed bytes, rounded up to whole huge pages and aligned to one.
    ///
    /// # Errors
    /// When the memory is not to be had.
    pub fn map(bytes: usize) -> std::io::Result<Region> {
        let bytes = bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
        let layout = layout(bytes)?;
        // SAFETY: the layout has a non-zero size.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        let start = start.ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Region { start, bytes })
    }

    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The size in bytes, a multiple of [`HUGE_PAGE_BYTES`].
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

fn layout(bytes: usize) -> std::io::Result<Layout> {
    Layout::from_size_align(bytes, HUGE_PAGE_BYTES).map_err(std::io::Error::other)
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Ok(layout) = layout(self.bytes) {
            // SAFETY: allocated in `map` with this very layout.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}
