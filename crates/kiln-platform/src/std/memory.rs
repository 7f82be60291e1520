//! Zeroed memory straight from the operating system, on huge pages where it grants them.

use std::ptr::NonNull;

/// The size of a huge page; regions are multiples of it.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A zeroed, page-aligned region of memory, returned to the system when dropped.
///
/// Invariant: `start` points to `bytes` mapped, readable and writable bytes that nobody else maps.
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a region is plain memory without thread affinity; whoever hands out parts of it decides
// how they are shared.
unsafe impl Send for Region {}
// SAFETY: as above; the region itself offers no access to its content.
unsafe impl Sync for Region {}

impl Region {
    /// Maps at least `bytes` zeroed bytes, rounded up to whole huge pages and aligned to one.
    ///
    /// # Errors
    /// The operating system's error when the memory is not to be had.
    pub fn map(bytes: usize) -> std::io::Result<Region> {
        let bytes = bytes.max(1).div_ceil(HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES;
        #[cfg(unix)]
        {
            // One page more than asked for, so that an aligned start exists; the slack is unmapped.
            let mapped = bytes + HUGE_PAGE_BYTES;
            // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no
            // existing memory.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    mapped,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if base == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            let address = base as usize;
            let aligned = address.next_multiple_of(HUGE_PAGE_BYTES);
            let (head, tail) = (aligned - address, address + mapped - (aligned + bytes));
            // SAFETY: both ranges lie inside the mapping just made and outside the part kept.
            unsafe {
                if head > 0 {
                    libc::munmap(base, head);
                }
                if tail > 0 {
                    libc::munmap((aligned + bytes) as *mut libc::c_void, tail);
                }
                #[cfg(target_os = "linux")]
                libc::madvise(aligned as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE);
            }
            let start = NonNull::new(aligned as *mut u8).expect("a mapping is never at address 0");
            Ok(Region { start, bytes })
        }
        #[cfg(not(unix))]
        {
            let layout = std::alloc::Layout::from_size_align(bytes, HUGE_PAGE_BYTES)
                .map_err(std::io::Error::other)?;
            // SAFETY: the layout has a non-zero size.
            let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
                .ok_or(std::io::ErrorKind::OutOfMemory)?;
            Ok(Region { start, bytes })
        }
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

impl Drop for Region {
    fn drop(&mut self) {
        #[cfg(unix)]
        // SAFETY: by the type's invariant the range is mapped and ours alone.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
        #[cfg(not(unix))]
        // SAFETY: allocated in `map` with this very layout.
        unsafe {
            let layout = std::alloc::Layout::from_size_align_unchecked(self.bytes, HUGE_PAGE_BYTES);
            std::alloc::dealloc(self.start.as_ptr(), layout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_aligned_zeroed_and_writable() {
        let region = Region::map(3 << 20).expect("3 MiB are to be had");
        assert_eq!(region.bytes(), 4 << 20);
        assert_eq!(region.start().as_ptr() as usize % HUGE_PAGE_BYTES, 0);
        // SAFETY: the region is ours, and initialised to zero by the system.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(region.start().as_ptr(), region.bytes()) };
        assert!(bytes.iter().step_by(4096).all(|&byte| byte == 0));
        bytes[region.bytes() - 1] = 7;
        assert_eq!(bytes[region.bytes() - 1], 7);
    }
}
