//! Zeroed memory straight from the operating system, on huge pages where it grants them.

use std::ptr::NonNull;
use std::sync::Mutex;

/// The size of a huge page; regions are multiples of it.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What [`reserve`] has set aside and [`Region::map`] has not taken yet: start and bytes.
static RESERVED: Mutex<(usize, usize)> = Mutex::new((0, 0));

/// Sets `bytes` of zeroed memory aside, already backed by pages, for the regions mapped next.
///
/// The first touch of a page costs a fault and its zeroing, on virtual machines several times as
/// much as the writes that follow; a benchmark, or a service with a known size, takes that at its
/// start. A second call replaces what is left of the first.
///
/// # Errors
/// The operating system's error when the memory is not to be had; nothing is set aside then.
pub fn reserve(bytes: usize) -> std::io::Result<()> {
    let region = Region::map_new(bytes)?;
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the range is the region just mapped. Populating only touches its pages.
        let populated = unsafe {
            libc::madvise(
                region.start.as_ptr().cast(),
                region.bytes,
                libc::MADV_POPULATE_WRITE,
            )
        };
        if populated != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOMEM) {
            return Err(std::io::Error::last_os_error());
        }
    }
    let mut reserved = RESERVED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let (start, left) = *reserved;
    if let Some(start) = NonNull::new(start as *mut u8) {
        // What was left of an earlier reservation goes back to the system.
        drop(Region { start, bytes: left });
    }
    *reserved = (region.start.as_ptr() as usize, region.bytes);
    std::mem::forget(region);
    Ok(())
}

/// Takes `bytes`, a multiple of the huge page, from what is set aside.
fn take_reserved(bytes: usize) -> Option<Region> {
    let mut reserved = RESERVED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let (start, left) = *reserved;
    if left < bytes {
        return None;
    }
    let rest = if left == bytes { 0 } else { start + bytes };
    *reserved = (rest, left - bytes);
    NonNull::new(start as *mut u8).map(|start| Region { start, bytes })
}

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
    /// At least `bytes` zeroed bytes, rounded up to whole huge pages and aligned to one: from what
    /// [`reserve`] has set aside, or newly mapped.
    ///
    /// # Errors
    /// The operating system's error when the memory is not to be had.
    pub fn map(bytes: usize) -> std::io::Result<Region> {
        let rounded = bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
        take_reserved(rounded).map_or_else(|| Region::map_new(rounded), Ok)
    }

    fn map_new(bytes: usize) -> std::io::Result<Region> {
        let bytes = bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
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
