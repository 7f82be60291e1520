//! The memory of a run: where an object lies is a function of what was allocated and freed before,
//! and of nothing else.
//!
//! Which objects share a cache line, and which line an access meets, is part of what a run does.
//! With an ordinary allocator that would depend on what the process did earlier. So everything that
//! a run allocates comes from a *space* of its own, a range of addresses with a simple allocator,
//! and lines are named by their distance from the space's start.
//!
//! ```text
//!  space: [ stack | stack | stack … ][ heap: blocks in order of allocation ──► ]
//!  names: for each line of the space, its number in the order of first touch
//! ```
//!
//! A space whose objects have all been freed is used again by a later run; one that a run left
//! objects in (its result, or all of a failed run) waits until they are freed, if ever.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The addresses of one space.
const SPACE_BYTES: usize = 32 << 30;
/// Spaces in a process.
const SPACES_MAX: usize = 256;
/// Room for a coroutine's stack, its guard page included.
pub(super) const STACK_BYTES: usize = 2 << 20;
/// Stacks of a space.
pub(super) const STACKS_MAX: usize = 1_024;
const GUARD_BYTES: usize = 4_096;
const HEAP_START: usize = STACKS_MAX * STACK_BYTES;
/// Cache lines of a space.
const LINES: usize = SPACE_BYTES / LINE_BYTES;
/// The size of a cache line.
pub(super) const LINE_BYTES: usize = 64;

/// Blocks up to here are multiples of 16 bytes.
const FINE_BYTES_MAX: usize = 512;
/// Blocks up to here have four sizes between two powers of two, and free lists.
const BLOCK_BYTES_MAX: usize = 1 << 20;
const FINE_CLASSES: usize = FINE_BYTES_MAX / 16;
const CLASSES: usize = FINE_CLASSES + 4 * 11;
/// Larger blocks are multiples of this.
const LARGE_STEP: usize = 64 << 10;

/// Where the spaces begin; far above all addresses until they are mapped.
static BASE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Objects of each space that were freed outside of its run.
static FREED_OUTSIDE: [AtomicU64; SPACES_MAX] = [const { AtomicU64::new(0) }; SPACES_MAX];
static POOL: Mutex<Pool> = Mutex::new(Pool {
    mapped: 0,
    resting: Vec::new(),
});

thread_local! {
    /// The space that the running coroutine allocates from; null outside of coroutines.
    static CURRENT: Cell<*mut Space> = const { Cell::new(null_mut()) };
}

struct Pool {
    /// Spaces taken from the range so far.
    mapped: usize,
    /// Spaces whose run has ended.
    #[expect(clippy::vec_box, reason = "allocations go to a space by its address")]
    resting: Vec<Box<Space>>,
}

// SAFETY: a resting space has no user; its pointers lead into its own mapping.
unsafe impl Send for Pool {}

/// A range of addresses and its allocator. Used by one thread at a time.
pub(super) struct Space {
    number: usize,
    base: usize,
    /// Where the next new block goes.
    bump: usize,
    /// Memory from here on was never used, so it is zero.
    fresh: usize,
    /// Freed blocks by class; each holds the address of the next in its first word.
    free: [usize; CLASSES],
    /// Freed larger blocks: bytes and address.
    free_large: Vec<(usize, usize)>,
    /// Objects allocated, and objects freed by the run.
    allocated: u64,
    freed: u64,
    /// The numbers of lines, 0 for lines not touched yet.
    names: *mut u32,
    /// Whether a stack is in use, and whether its guard page is in place.
    stacks: Vec<bool>,
}

/// Where the spaces begin if the system has no objection: far from where it puts anything by
/// itself. With it addresses are the same in every process, as long as runs come one after the
/// other.
const WISHED_BASE: usize = 0x2000_0000_0000;

/// Maps `bytes` of zeroed address space without a claim on memory, at `wish` if nothing is there (0
/// for anywhere).
fn map(wish: usize, bytes: usize, protection: libc::c_int) -> std::io::Result<usize> {
    // SAFETY: an anonymous mapping, the address of which is only a hint, touches nothing that is
    // there already.
    let start = unsafe {
        libc::mmap(
            wish as *mut libc::c_void,
            bytes,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    Ok(start as usize)
}

impl Space {
    /// A space without objects. Called outside of coroutines.
    ///
    /// # Errors
    /// The operating system's when it grants no more addresses, or all spaces are in use.
    pub(super) fn take() -> std::io::Result<Box<Space>> {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = pool.resting.iter().position(|space| space.is_empty()) {
            let mut space = pool.resting.swap_remove(at);
            space.start_anew();
            return Ok(space);
        }
        if pool.mapped == SPACES_MAX {
            return Err(std::io::Error::other(
                "too many runs have left objects behind; start a new process",
            ));
        }
        if pool.mapped == 0 {
            // One range for all, so that one comparison tells whether an address is in a space.
            let bytes = (SPACES_MAX + 1) * SPACE_BYTES;
            let range = map(WISHED_BASE, bytes, libc::PROT_NONE)?;
            BASE.store(range.next_multiple_of(SPACE_BYTES), Ordering::Relaxed);
        }
        let number = pool.mapped;
        let base = BASE.load(Ordering::Relaxed) + number * SPACE_BYTES;
        // SAFETY: the range is part of the mapping above, and no run uses it yet.
        let opened = unsafe {
            libc::mprotect(
                base as *mut libc::c_void,
                SPACE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        if opened != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: as above; the advice changes no content.
        unsafe {
            libc::madvise(
                (base + HEAP_START) as *mut libc::c_void,
                SPACE_BYTES - HEAP_START,
                libc::MADV_HUGEPAGE,
            );
        }
        let names = map(0, LINES * 4, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: as above.
        unsafe { libc::madvise(names as *mut libc::c_void, LINES * 4, libc::MADV_HUGEPAGE) };
        let names = names as *mut u32;
        pool.mapped += 1;
        Ok(Box::new(Space {
            number,
            base,
            bump: base + HEAP_START,
            fresh: base + HEAP_START,
            free: [0; CLASSES],
            free_large: Vec::new(),
            allocated: 0,
            freed: 0,
            names,
            stacks: Vec::new(),
        }))
    }

    /// Puts a space aside whose run has ended.
    pub(super) fn rest(self: Box<Space>) {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        pool.resting.push(self);
    }

    fn is_empty(&self) -> bool {
        self.allocated == self.freed + FREED_OUTSIDE[self.number].load(Ordering::Acquire)
    }

    fn start_anew(&mut self) {
        self.fresh = self.fresh.max(self.bump);
        self.bump = self.base + HEAP_START;
        self.free = [0; CLASSES];
        self.free_large.clear();
        (self.allocated, self.freed) = (0, 0);
        FREED_OUTSIDE[self.number].store(0, Ordering::Relaxed);
        self.stacks.fill(false);
    }

    /// The line's position in the space, if the address is in it.
    #[inline(always)]
    pub(super) fn line_of(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.base);
        (offset < SPACE_BYTES).then_some(offset / LINE_BYTES)
    }

    /// The address of the line at this position.
    pub(super) fn line_address(&self, line: usize) -> usize {
        self.base + line * LINE_BYTES
    }

    /// The cell that holds the number of the line at this position; 0 means none.
    #[inline(always)]
    pub(super) fn name(&mut self, line: usize) -> &mut u32 {
        debug_assert!(line < LINES);
        // SAFETY: `names` has a cell for each line of the space, and `&mut self` is the only way.
        unsafe { &mut *self.names.add(line) }
    }

    /// Takes a free stack: its number, its lowest and its highest address.
    pub(super) fn take_stack(&mut self) -> std::io::Result<(usize, usize, usize)> {
        let free = self.stacks.iter().position(|used| !used);
        let number = free.unwrap_or(self.stacks.len());
        if number == STACKS_MAX {
            return Err(std::io::Error::other("too many threads in one run"));
        }
        let low = self.base + number * STACK_BYTES;
        if number == self.stacks.len() {
            // SAFETY: the lowest page of a stack that was never in use.
            let guarded =
                unsafe { libc::mprotect(low as *mut libc::c_void, GUARD_BYTES, libc::PROT_NONE) };
            if guarded != 0 {
                return Err(std::io::Error::last_os_error());
            }
            self.stacks.push(true);
        } else {
            self.stacks[number] = true;
        }
        Ok((number, low, low + STACK_BYTES))
    }

    /// Gives a stack back that nothing runs on.
    pub(super) fn give_stack(&mut self, number: usize) {
        self.stacks[number] = false;
    }

    /// The block size for a request, and its class if it has one.
    fn block(layout: Layout) -> (usize, Option<usize>) {
        let align = layout.align();
        let bytes = layout.size().max(16).next_multiple_of(align.max(16));
        if align > 128 || bytes > BLOCK_BYTES_MAX {
            return (bytes.next_multiple_of(LARGE_STEP.max(align)), None);
        }
        if bytes <= FINE_BYTES_MAX {
            return (bytes, Some(bytes / 16 - 1));
        }
        // Between 2^k (excluded) and 2^(k+1) there are four sizes, each a multiple of 128.
        let power = (bytes - 1).ilog2();
        let step = 1_usize << (power - 2);
        let block = bytes.next_multiple_of(step);
        let quarter = (block - (1 << power)) / step - 1;
        (
            block,
            Some(FINE_CLASSES + (power as usize - 9) * 4 + quarter),
        )
    }

    fn allocate(&mut self, layout: Layout, zeroed: bool) -> *mut u8 {
        let (bytes, class) = Self::block(layout);
        self.allocated += 1;
        let recycled = match class {
            Some(class) => {
                let block = self.free[class];
                if block != 0 {
                    // SAFETY: a free block has at least one word, and no allocation uses it.
                    self.free[class] = unsafe { *(block as *const usize) };
                }
                block
            }
            None => {
                let fits = |&(free, address): &(usize, usize)| {
                    free == bytes && address.is_multiple_of(layout.align())
                };
                match self.free_large.iter().rposition(fits) {
                    Some(at) => self.free_large.swap_remove(at).1,
                    None => 0,
                }
            }
        };
        let (start, clean) = if recycled != 0 {
            (recycled, false)
        } else {
            // Blocks of whole lines start on one, so that their content is packed as it was meant.
            let align = match bytes {
                _ if bytes.is_multiple_of(128) => 128,
                _ if bytes.is_multiple_of(64) => 64,
                _ => 16,
            };
            let start = self.bump.next_multiple_of(align.max(layout.align()));
            if start + bytes > self.base + SPACE_BYTES {
                self.allocated -= 1;
                return null_mut();
            }
            self.bump = start + bytes;
            (start, start >= self.fresh)
        };
        if zeroed && !clean {
            // SAFETY: the block is at least as large as the request, and belongs to this allocation
            // alone.
            unsafe { std::ptr::write_bytes(start as *mut u8, 0, layout.size()) };
        }
        start as *mut u8
    }

    fn release(&mut self, block: *mut u8, layout: Layout) {
        let (bytes, class) = Self::block(layout);
        self.freed += 1;
        match class {
            Some(class) => {
                // SAFETY: the block is free now and at least a word.
                unsafe { *block.cast::<usize>() = self.free[class] };
                self.free[class] = block as usize;
            }
            None => {
                let entry = (bytes, block as usize);
                outside(|| self.free_large.push(entry));
            }
        }
    }
}

/// Makes `space` the one that this thread allocates from; null for none. Returns what it was.
#[inline(always)]
pub(super) fn enter(space: *mut Space) -> *mut Space {
    CURRENT.replace(space)
}

/// Runs `body` with the ordinary allocator.
#[inline(always)]
pub(super) fn outside<T>(body: impl FnOnce() -> T) -> T {
    let before = enter(null_mut());
    let result = body();
    enter(before);
    result
}

/// The allocator of programs built for virtual cores: runs have memory of their own.
pub struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Where in its space an address is; one outside of all spaces as it is.
pub(super) fn offset_in_space(address: usize) -> usize {
    let offset = address.wrapping_sub(BASE.load(Ordering::Relaxed));
    match offset < SPACES_MAX * SPACE_BYTES {
        true => offset % SPACE_BYTES,
        false => address,
    }
}

/// The number of the space that the address is in, if any.
#[inline(always)]
fn space_number(address: usize) -> Option<usize> {
    let offset = address.wrapping_sub(BASE.load(Ordering::Relaxed));
    (offset < SPACES_MAX * SPACE_BYTES).then_some(offset / SPACE_BYTES)
}

// SAFETY: blocks are disjoint, large and aligned enough (see `Space::block` and `allocate`), and
// stay valid until they are freed; what is not in a space belongs to the system's allocator.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let space = CURRENT.get();
        if space.is_null() {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.alloc(layout) };
        }
        // SAFETY: the current space lives while its run does and is used by this thread alone.
        unsafe { (*space).allocate(layout, false) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let space = CURRENT.get();
        if space.is_null() {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: as in `alloc`.
        unsafe { (*space).allocate(layout, true) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(number) = space_number(block as usize) else {
            // SAFETY: what is in no space came from the system's allocator.
            return unsafe { System.dealloc(block, layout) };
        };
        let space = CURRENT.get();
        // SAFETY: as in `alloc`.
        if !space.is_null() && unsafe { (*space).number } == number {
            // SAFETY: as in `alloc`.
            unsafe { (*space).release(block, layout) };
        } else {
            // Only counted: the block is used again when the whole space is.
            FREED_OUTSIDE[number].fetch_add(1, Ordering::Release);
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if space_number(block as usize).is_none() {
            // SAFETY: what is in no space came from the system's allocator.
            return unsafe { System.realloc(block, layout, bytes) };
        }
        // SAFETY: the caller promises that `bytes` makes a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        if Space::block(wanted) == Space::block(layout) {
            return block;
        }
        // SAFETY: the new block is as large as asked for, or null.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(block, moved, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_what_was_asked_for_and_classes_do_not_mix() {
        let mut sizes = std::collections::BTreeMap::new();
        for bytes in 1..=BLOCK_BYTES_MAX {
            if bytes > 5_000 && !bytes.is_multiple_of(97) && !bytes.is_power_of_two() {
                continue;
            }
            for align in [1, 8, 16, 64, 128] {
                let layout = Layout::from_size_align(bytes, align).expect("a layout");
                let (block, class) = Space::block(layout);
                let class = class.unwrap_or_else(|| panic!("{bytes} bytes have no class"));
                assert!(class < CLASSES, "{bytes} bytes are in class {class}");
                assert!(block >= bytes && block.is_multiple_of(align));
                assert_eq!(*sizes.entry(class).or_insert(block), block, "class {class}");
            }
        }
    }
}
