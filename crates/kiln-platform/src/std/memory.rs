//! Zeroed memory straight from the operating system, on huge pages where it grants them.
//!
//! An interpreter (Miri) has neither mappings nor huge pages; there the allocator stands in.

use std::ptr::NonNull;
use std::sync::Mutex;

/// The size of a huge page; regions are multiples of it.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What [`reserve`] has set aside and no region holds: ranges of start and bytes, by start.
static RESERVED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Sets `bytes` of zeroed memory aside, already backed by pages, for the regions mapped next.
///
/// The first touch of a page costs a fault and its zeroing, on virtual machines several times as
/// much as the writes that follow; a benchmark, or a service with a known size, takes that at its
/// start. What a dropped region held goes back to what is set aside, so that a series of databases
/// pays once. When less than `bytes` is left in one piece, another call replaces what is left.
///
/// # Errors
/// The operating system's error when the memory is not to be had; nothing is set aside then.
pub fn reserve(bytes: usize) -> std::io::Result<()> {
    let bytes = bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
    let outdated = {
        let mut reserved = lock_reserved();
        if reserved.iter().any(|&(_, left)| left >= bytes) {
            return Ok(());
        }
        std::mem::take(&mut *reserved)
    };
    for (start, bytes) in outdated {
        if let Some(start) = NonNull::new(start as *mut u8) {
            let is_reserved = false;
            drop(Region {
                start,
                bytes,
                is_reserved,
            });
        }
    }
    let region = Region::map_new(bytes)?;
    #[cfg(all(target_os = "linux", not(miri)))]
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
    give_back(region.start.as_ptr() as usize, region.bytes);
    std::mem::forget(region);
    Ok(())
}

fn lock_reserved() -> std::sync::MutexGuard<'static, Vec<(usize, usize)>> {
    RESERVED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A hash of the address of something at least 16 bytes large, in the highest bits. On virtual
/// cores it is the same in every run of a seed, wherever the run's memory lies.
#[inline(always)]
pub fn hash(address: u64) -> u64 {
    // The multiplication (Knuth's, by the golden ratio) spreads the strides of slabs.
    (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Gives `bytes` bytes from `address` on a name in reports about cache lines, which virtual cores
/// make; nothing on real ones.
#[inline(always)]
pub fn name_range(address: usize, bytes: usize, name: impl FnOnce() -> String) {
    let _ = (address, bytes, name);
}

/// Takes `bytes`, a multiple of the huge page, from what is set aside.
fn take_reserved(bytes: usize) -> Option<Region> {
    let mut reserved = lock_reserved();
    let position = reserved.iter().position(|&(_, left)| left >= bytes)?;
    let (start, left) = reserved[position];
    if left == bytes {
        reserved.remove(position);
    } else {
        reserved[position] = (start + bytes, left - bytes);
    }
    let start = NonNull::new(start as *mut u8)?;
    Some(Region {
        start,
        bytes,
        is_reserved: true,
    })
}

/// Adds zeroed memory to what is set aside, in one piece with what it borders on.
fn give_back(start: usize, bytes: usize) {
    let mut reserved = lock_reserved();
    let at = reserved.partition_point(|&(other, _)| other < start);
    reserved.insert(at, (start, bytes));
    for position in [at, at.saturating_sub(1)] {
        if let (Some(&(start, bytes)), Some(&(next, more))) =
            (reserved.get(position), reserved.get(position + 1))
            && start + bytes == next
        {
            reserved[position].1 += more;
            reserved.remove(position + 1);
        }
    }
}

/// A zeroed, page-aligned region of memory, returned to the system when dropped.
///
/// Invariant: `start` points to `bytes` mapped, readable and writable bytes; no other region maps
/// them.
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
    /// Whether it goes back to what is set aside.
    is_reserved: bool,
}

// SAFETY: a region is plain memory without thread affinity; the code that hands out parts of it
// decides how they are shared.
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
        #[cfg(all(unix, not(miri)))]
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
            Ok(Region {
                start,
                bytes,
                is_reserved: false,
            })
        }
        #[cfg(any(not(unix), miri))]
        {
            let layout = std::alloc::Layout::from_size_align(bytes, HUGE_PAGE_BYTES)
                .map_err(std::io::Error::other)?;
            // SAFETY: the layout has a non-zero size.
            let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
                .ok_or(std::io::ErrorKind::OutOfMemory)?;
            Ok(Region {
                start,
                bytes,
                is_reserved: false,
            })
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
        if self.is_reserved {
            // SAFETY: by the type's invariant the range is mapped, writable and ours alone.
            unsafe { self.start.as_ptr().write_bytes(0, self.bytes) };
            give_back(self.start.as_ptr() as usize, self.bytes);
            return;
        }
        #[cfg(all(unix, not(miri)))]
        // SAFETY: by the type's invariant the range is mapped and ours alone.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
        #[cfg(any(not(unix), miri))]
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
        drop(region);
        goes_back_zeroed_and_in_one_piece();
    }

    // Not a test of its own: what is set aside belongs to the process, and tests run side by side.
    fn goes_back_zeroed_and_in_one_piece() {
        reserve(8 << 20).expect("8 MiB are to be had");
        let regions = [(); 3].map(|()| Region::map(2 << 20).expect("set aside"));
        let starts = regions.each_ref().map(|region| region.start().as_ptr());
        // SAFETY: the region is ours.
        unsafe { starts[1].write(7) };
        assert!(regions.iter().all(|region| region.is_reserved));
        let [first, second, third] = regions;
        drop((second, first, third));
        reserve(8 << 20).expect("still there, so nothing to do");
        let whole = Region::map(8 << 20).expect("set aside");
        assert!(whole.is_reserved);
        assert_eq!(whole.start().as_ptr(), starts[0]);
        // SAFETY: the region is ours.
        assert_eq!(unsafe { starts[1].read() }, 0);
    }
}
