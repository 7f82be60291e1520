//! Slabs: fixed-size cells for the records of one table, handed out per worker.
//!
//! ```text
//!  Slab ── Chunks ──  small chunks (a table that stays small)   │ huge-page regions, carved
//!    │                [ 32 KiB ][ 64 KiB ][ 128 KiB ] …         │ [ 2 MiB … 64 MiB ] …
//!    └─ per slot: free list ─► cell ─► cell      bump ─►│·····│end of the slot's own chunk
//! ```
//!
//! A slot's free list, its chunk and its counters are touched by the owner of the slot alone, so
//! that allocating and freeing need no shared cache line; only the next chunk, twice as large as
//! the last, is taken under a mutex.
//!
//! A cell is freed to the slot of the participant that collects it, which may be another one than
//! it came from. So a slot keeps up to two *batches* of free cells and gives further ones to all: a
//! slot takes one of these before it takes a new chunk. Else the memory of a table would grow for
//! ever whose rows one worker inserts and another one deletes.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::UnsafeCell;
use std::fmt;
use std::ptr::{NonNull, null_mut};

use kiln_platform::atomic::{AtomicU64, AtomicUsize, Ordering, prefetch};
use kiln_platform::memory::{Region, name_range};
use kiln_platform::sync::{Mutex, lock};

use crate::epoch::Retired;

/// The operating system has no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("out of memory: the operating system grants no more")
    }
}

impl std::error::Error for OutOfMemory {}

/// Zeroed memory in chunks, never given back before the whole is dropped: small chunks come from
/// the allocator one by one, so that a small table stays small, and later ones are carved from
/// regions on huge pages.
pub(crate) struct Chunks {
    state: Mutex<ChunksState>,
    reserved: AtomicUsize,
}

struct ChunksState {
    regions: Vec<Region>,
    small: Vec<(NonNull<u8>, Layout)>,
    /// The part of the newest region that is not handed out yet.
    next: *mut u8,
    left: usize,
    /// Where each chunk starts and ends, to tell whose memory an address is.
    handed_out: Vec<(usize, usize)>,
    /// The same chunks, as they were handed out.
    chunks: Vec<(NonNull<u8>, usize)>,
}

// SAFETY: the pointers are to memory that the state owns, without thread affinity.
unsafe impl Send for ChunksState {}

impl Chunks {
    /// Chunks start at a multiple of this many bytes.
    pub(crate) const ALIGNMENT: usize = 128;
    /// Below this many bytes reserved, chunks come from the allocator.
    const SMALL_BYTES_MAX: usize = 1 << 20;
    const REGION_BYTES_MIN: usize = 2 << 20;
    const REGION_BYTES_MAX: usize = 64 << 20;

    pub(crate) fn new() -> Chunks {
        Chunks {
            state: Mutex::new(ChunksState {
                regions: Vec::new(),
                small: Vec::new(),
                next: null_mut(),
                left: 0,
                handed_out: Vec::new(),
                chunks: Vec::new(),
            }),
            reserved: AtomicUsize::new(0),
        }
    }

    /// A zeroed chunk of `bytes` bytes, aligned to [`Chunks::ALIGNMENT`].
    pub(crate) fn take(&self, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        let bytes = bytes.next_multiple_of(Self::ALIGNMENT);
        let mut state = lock(&self.state);
        let reserved = self.reserved.load(Ordering::Relaxed);
        if state.left < bytes && reserved + bytes <= Self::SMALL_BYTES_MAX {
            let layout =
                Layout::from_size_align(bytes, Self::ALIGNMENT).map_err(|_| OutOfMemory)?;
            // SAFETY: the size is not zero, because it is a positive multiple of the alignment.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(OutOfMemory)?;
            state.small.push((start, layout));
            state.chunks.push((start, bytes));
            state
                .handed_out
                .push((start.addr().get(), start.addr().get() + bytes));
            self.reserved.store(reserved + bytes, Ordering::Relaxed);
            return Ok(start);
        }
        if state.left < bytes {
            // As much again as there is already, so that the number of regions stays logarithmic
            // and a half-used one costs address space, not memory. What is left of the previous
            // region stays unused.
            let wanted = reserved
                .clamp(Self::REGION_BYTES_MIN, Self::REGION_BYTES_MAX)
                .max(bytes);
            let region = Region::map(wanted).map_err(|_| OutOfMemory)?;
            state.next = region.start().as_ptr();
            state.left = region.bytes();
            self.reserved
                .store(reserved + region.bytes(), Ordering::Relaxed);
            state.regions.push(region);
        }
        let start = NonNull::new(state.next).ok_or(OutOfMemory)?;
        // SAFETY: `left` bytes from `next` on are inside the newest region, and at least `bytes`.
        state.next = unsafe { state.next.add(bytes) };
        state.left -= bytes;
        state.chunks.push((start, bytes));
        state
            .handed_out
            .push((start.addr().get(), start.addr().get() + bytes));
        Ok(start)
    }

    /// The start of the chunk that `address` is in, and how many bytes were handed out before it.
    pub(crate) fn chunk_of(&self, address: usize) -> Option<(usize, usize)> {
        let state = lock(&self.state);
        let mut before = 0;
        for &(start, end) in &state.handed_out {
            if (start..end).contains(&address) {
                return Some((start, before));
            }
            before += end - start;
        }
        None
    }

    /// All chunks, with their bytes.
    fn all(&self) -> Vec<(NonNull<u8>, usize)> {
        lock(&self.state).chunks.clone()
    }

    /// Bytes taken from the system, used or not.
    pub(crate) fn bytes_reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }
}

impl Drop for ChunksState {
    fn drop(&mut self) {
        for &(start, layout) in &self.small {
            // SAFETY: allocated in `take` with this layout, and handed back only here.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
    }
}

/// What one slot keeps for itself, on its own pair of cache lines.
#[repr(align(128))]
struct Local {
    cells: UnsafeCell<LocalCells>,
    /// Cells handed out minus cells freed through this slot; a cell may be freed through another
    /// slot than it came from, so single values may wrap and only the sum means something.
    in_use: AtomicUsize,
}

struct LocalCells {
    /// The most recently freed cell; each free cell holds the address of the next in its third
    /// word.
    free: *mut u8,
    /// The number of cells that it leads to.
    free_count: usize,
    /// A whole batch of free cells that were freed before these, or null.
    spare: *mut u8,
    bump: *mut u8,
    end: *mut u8,
    /// The bytes of the last chunk, 0 before the first.
    chunk_bytes: usize,
}

/// Fixed-size cells for one table.
///
/// Invariant: a slot's `cells` are accessed only by the one thread that owns the slot at the time.
pub struct Slab {
    stride: usize,
    cell_bytes: usize,
    /// Free cells of a batch.
    batch: usize,
    locals: Box<[Local]>,
    /// Batches of free cells that slots have too many of, by their first cells.
    batches: Mutex<Vec<FreeBatch>>,
    chunks: Chunks,
    name: Option<&'static str>,
}

/// The first of a batch of free cells.
struct FreeBatch(*mut u8);

// SAFETY: the cells are memory of the slab, without thread affinity.
unsafe impl Send for FreeBatch {}

// SAFETY: the raw pointers lead into `chunks`, which moves along.
unsafe impl Send for Slab {}
// SAFETY: the callers of `alloc` and `free` own the slot, so its cells have one user at a time, and
// handing a slot over synchronises (see `Epochs::register`); the rest is atomic or under a mutex.
unsafe impl Sync for Slab {}

impl Slab {
    const FIRST_CHUNK_BYTES: usize = 32 << 10;
    const CHUNK_BYTES_MAX: usize = 1 << 20;
    /// Bytes of the cells of a batch, if these are between eight and 512 cells.
    const BATCH_BYTES: usize = 32 << 10;
    /// The smallest cell: a free cell keeps its link in the third word, so that a record's header
    /// stays as it is.
    const CELL_BYTES_MIN: usize = 24;

    /// A slab of cells of `cell_bytes` bytes for the slots `0..slots`.
    ///
    /// # Panics
    /// When `cell_bytes` is no multiple of 8.
    pub fn new(cell_bytes: usize, slots: usize) -> Slab {
        assert!(
            cell_bytes.is_multiple_of(8),
            "a cell is a whole number of words, not {cell_bytes} bytes"
        );
        let stride = Self::stride_for(cell_bytes.max(Self::CELL_BYTES_MIN));
        // Zeroed by the system, page by page as slots come to be used: most slots of most tables
        // never are.
        let locals = Box::<[Local]>::new_zeroed_slice(slots);
        // SAFETY: pointers that are null, counts of 0 and an atomic 0 are what a slot begins with.
        let locals = unsafe { locals.assume_init() };
        Slab {
            stride,
            cell_bytes,
            batch: (Self::BATCH_BYTES / stride).clamp(8, 512),
            locals,
            batches: Mutex::default(),
            chunks: Chunks::new(),
            name: None,
        }
    }

    /// As [`Slab::new`], with a name for its memory in reports about cache lines.
    pub fn named(cell_bytes: usize, slots: usize, name: &'static str) -> Slab {
        Slab {
            name: Some(name),
            ..Slab::new(cell_bytes, slots)
        }
    }

    /// The distance between cells. Whole cache lines, or else whole headers, where rounding up
    /// costs less than two percent: the 16-byte header then never straddles two lines, and
    /// the memory of records stays close to the bytes of their values.
    fn stride_for(cell_bytes: usize) -> usize {
        for alignment in [64, 16] {
            let rounded = cell_bytes.next_multiple_of(alignment);
            if (rounded - cell_bytes) * 50 < cell_bytes {
                return rounded;
            }
        }
        cell_bytes
    }

    /// The address of the cell that `address` is in, used or not, if it is in the slab's memory.
    /// For reports: it searches.
    pub fn cell_at(&self, address: usize) -> Option<usize> {
        let (start, _) = self.chunks.chunk_of(address)?;
        Some(start + (address - start) / self.stride * self.stride)
    }

    /// The size of a cell as asked for, in bytes.
    pub fn cell_bytes(&self) -> usize {
        self.cell_bytes
    }

    /// The memory a cell takes with its padding, in bytes.
    pub fn cell_stride(&self) -> usize {
        self.stride
    }

    /// A cell, aligned to 8 bytes. A fresh one is zeroed; a recycled one keeps the words that it
    /// had when it was freed, except the third: a record's header, the first two, outlives the
    /// record.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system grants no further chunk.
    ///
    /// # Safety
    /// The caller owns `slot` (see [`Participant::slot`](crate::epoch::Participant::slot)): no
    /// other thread uses this slab with it at the same time.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline]
    pub unsafe fn alloc(&self, slot: usize) -> Result<NonNull<u8>, OutOfMemory> {
        let local = &self.locals[slot];
        // SAFETY: the caller owns the slot, and no reference outlives this call.
        let cells = unsafe { &mut *local.cells.get() };
        if cells.free.is_null() && !self.has_cells(cells) {
            self.refill(cells)?;
        }
        let cell = if let Some(cell) = NonNull::new(cells.free) {
            // SAFETY: a free cell is ours alone; its third word was set in `free`.
            cells.free = unsafe { Self::link(cell).load(Ordering::Relaxed) } as *mut u8;
            cells.free_count -= 1;
            // The next allocation reads the link of that cell, probably long out of the cache.
            prefetch(cells.free);
            cell
        } else {
            let cell = cells.bump;
            // SAFETY: between `bump` and `end` there is a whole number of cells, and at least one.
            cells.bump = unsafe { cell.add(self.stride) };
            // SAFETY: inside a chunk, so not null.
            unsafe { NonNull::new_unchecked(cell) }
        };
        // Written by the owner only; atomic because `cells_in_use` reads it.
        let in_use = local.in_use.load(Ordering::Relaxed);
        local
            .in_use
            .store(in_use.wrapping_add(1), Ordering::Relaxed);
        Ok(cell)
    }

    /// Whether the slot, without free cells at hand, has put a batch of them aside, which is at
    /// hand then, or has cells that were never used.
    #[inline]
    fn has_cells(&self, cells: &mut LocalCells) -> bool {
        if !cells.spare.is_null() {
            cells.free = std::mem::replace(&mut cells.spare, null_mut());
            cells.free_count = self.batch;
            return true;
        }
        cells.bump != cells.end
    }

    /// Gets cells that are free for all, or a new chunk.
    #[cold]
    fn refill(&self, cells: &mut LocalCells) -> Result<(), OutOfMemory> {
        if let Some(FreeBatch(first)) = lock(&self.batches).pop() {
            cells.free = first;
            cells.free_count = self.batch;
            return Ok(());
        }
        let bytes = match cells.chunk_bytes {
            0 => Self::FIRST_CHUNK_BYTES.max(self.stride.next_multiple_of(64)),
            last => (last * 2).min(Self::CHUNK_BYTES_MAX).max(last),
        };
        let chunk = self.chunks.take(bytes)?;
        if let Some(name) = self.name {
            name_range(chunk.addr().get(), bytes, || name.to_owned());
        }
        // SAFETY: the chunk is new and this slot's, and aligned. A page that is read before it is
        // written costs the system two faults, and the first thing that users do to a record is to
        // read its tid.
        unsafe { chunk.cast::<AtomicU64>().as_ref() }.store(0, Ordering::Relaxed);
        cells.chunk_bytes = bytes;
        cells.bump = chunk.as_ptr();
        // SAFETY: at most `bytes` from the start of a chunk of that size.
        cells.end = unsafe { chunk.as_ptr().add(bytes / self.stride * self.stride) };
        Ok(())
    }

    /// Takes a cell back, to be handed out again by the same slot.
    ///
    /// # Safety
    /// The caller owns `slot`, `cell` came from [`Slab::alloc`] of this slab and is freed once, and
    /// no thread can reach it any more: its grace period is over.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline]
    pub unsafe fn free(&self, slot: usize, cell: NonNull<u8>) {
        let local = &self.locals[slot];
        // SAFETY: the caller owns the slot, and no reference outlives this call.
        let cells = unsafe { &mut *local.cells.get() };
        // SAFETY: the cell is at least three words and ours again.
        unsafe { Self::link(cell).store(cells.free as u64, Ordering::Relaxed) };
        cells.free = cell.as_ptr();
        cells.free_count += 1;
        if cells.free_count == self.batch {
            self.put_aside(cells);
        }
        let in_use = local.in_use.load(Ordering::Relaxed);
        local
            .in_use
            .store(in_use.wrapping_sub(1), Ordering::Relaxed);
    }

    /// Puts the batch of free cells that the slot has at hand aside, for all if there is one
    /// already.
    #[cold]
    fn put_aside(&self, cells: &mut LocalCells) {
        let batch = std::mem::replace(&mut cells.free, null_mut());
        cells.free_count = 0;
        let former = std::mem::replace(&mut cells.spare, batch);
        if !former.is_null() {
            lock(&self.batches).push(FreeBatch(former));
        }
    }

    /// The object to hand to [`Participant::retire`](crate::epoch::Participant::retire) so that
    /// `cell` returns to this slab after its grace period. The slab must live until then
    /// ([`Epochs::retire_owner`](crate::epoch::Epochs::retire_owner)).
    #[inline]
    pub fn retired(&self, cell: NonNull<u8>) -> Retired {
        unsafe fn reclaim(context: *const (), cell: NonNull<u8>, slot: usize) {
            // SAFETY: the context is the slab that `retired` was called on, which the caller of
            // `retire` keeps alive; the collecting participant owns its slot, and the grace period
            // is over.
            unsafe { (*context.cast::<Slab>()).free(slot, cell) }
        }
        Retired {
            pointer: cell,
            reclaim,
            context: std::ptr::from_ref(self).cast(),
            bytes: self.stride,
        }
    }

    /// Calls `each` with all cells, used or not, some of them never used yet. For a caller that has
    /// the database alone: it takes time, and the slab takes no further chunk meanwhile.
    pub fn for_each_cell(&self, mut each: impl FnMut(NonNull<u8>)) {
        for (start, bytes) in self.chunks.all() {
            // What is left at the end of a chunk is less than a cell.
            for position in 0..bytes / self.stride {
                // SAFETY: whole cells from the start of the chunk on are inside of it.
                each(unsafe { start.add(position * self.stride) });
            }
        }
    }

    /// Bytes taken from the system for cells, used or not.
    pub fn bytes_reserved(&self) -> usize {
        self.chunks.bytes_reserved()
    }

    /// Cells handed out and not freed; retired cells count until they are collected. Exact when
    /// no other thread allocates or frees.
    pub fn cells_in_use(&self) -> usize {
        self.locals
            .iter()
            .map(|local| local.in_use.load(Ordering::Relaxed))
            .fold(0, usize::wrapping_add)
    }

    /// The word in which a free cell keeps the address of the next one.
    ///
    /// # Safety
    /// `cell` is a cell of a slab, thus at least three aligned words.
    #[inline]
    unsafe fn link<'a>(cell: NonNull<u8>) -> &'a AtomicU64 {
        // SAFETY: the caller passes a cell, which has three aligned words; every word of a cell is
        // only ever accessed atomically.
        unsafe { cell.cast::<AtomicU64>().add(2).as_ref() }
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Slab")
            .field("cell_bytes", &self.cell_bytes)
            .field("cell_stride", &self.stride)
            .field("cells_in_use", &self.cells_in_use())
            .field("bytes_reserved", &self.bytes_reserved())
            .finish()
    }
}
