//! Memory for direct I/O.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// The unit of direct I/O and of [`AlignedBuffer`]s, in bytes: no smaller than the sectors of
/// today's devices.
pub const BLOCK_BYTES: usize = 4_096;

/// A buffer of fixed capacity whose address is a multiple of [`BLOCK_BYTES`]; filled from its
/// start.
///
/// ```
/// use kiln_platform::disk::{AlignedBuffer, BLOCK_BYTES};
///
/// let mut buffer = AlignedBuffer::new(2 * BLOCK_BYTES);
/// assert!(buffer.append(b"a record"));
/// buffer.pad(BLOCK_BYTES);
/// assert_eq!(buffer.len(), BLOCK_BYTES);
/// ```
pub struct AlignedBuffer {
    start: NonNull<u8>,
    capacity: usize,
    len: usize,
}

// SAFETY: the buffer owns its memory, which holds plain bytes.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; a shared buffer is only read.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// An empty buffer for `capacity` bytes, rounded up to whole blocks; at least one.
    ///
    /// # Panics
    /// When no address space has that many bytes.
    pub fn new(capacity: usize) -> AlignedBuffer {
        let layout = layout(capacity.max(1));
        // SAFETY: the layout has a size above 0.
        let start = unsafe { alloc_zeroed(layout) };
        AlignedBuffer {
            start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)),
            capacity: layout.size(),
            len: 0,
        }
    }

    /// How many bytes there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many bytes it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes can still be appended.
    pub fn remaining(&self) -> usize {
        self.capacity - self.len
    }

    /// Appends `bytes`, if there is room for all of them; says whether there was.
    #[must_use]
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.remaining() {
            return false;
        }
        let end = self.len + bytes.len();
        self.memory()[end - bytes.len()..end].copy_from_slice(bytes);
        self.len = end;
        true
    }

    /// Appends zeros until the length is a multiple of `block` bytes.
    ///
    /// # Panics
    /// When `block` is 0 or there is no room. There always is for a `block` that divides the
    /// capacity.
    pub fn pad(&mut self, block: usize) {
        let end = self.len.next_multiple_of(block);
        let (len, capacity) = (self.len, self.capacity);
        assert!(
            end <= capacity,
            "{len} bytes padded to {end} in a buffer of {capacity}"
        );
        self.memory()[len..end].fill(0);
        self.len = end;
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// What it holds.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the memory has `capacity` bytes, all initialised, and `len` is no more than that.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// What it holds, to be changed: checksums are known last and stand first.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let len = self.len;
        &mut self.memory()[..len]
    }

    fn memory(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; `&mut self` is the only way to it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity) }
    }
}

fn layout(capacity: usize) -> Layout {
    let bytes = capacity.checked_next_multiple_of(BLOCK_BYTES);
    bytes
        .and_then(|bytes| Layout::from_size_align(bytes, BLOCK_BYTES).ok())
        .unwrap_or_else(|| panic!("no buffer can have {capacity} bytes"))
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and nothing refers to it any more.
        unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) };
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} of {} bytes)", self.len, self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_holds_what_was_appended_and_pads_with_zeros() {
        let mut buffer = AlignedBuffer::new(BLOCK_BYTES + 1);
        assert_eq!(buffer.capacity(), 2 * BLOCK_BYTES);
        assert!(
            buffer
                .as_slice()
                .as_ptr()
                .addr()
                .is_multiple_of(BLOCK_BYTES)
        );
        assert!(buffer.append(&[7; 5_000]));
        assert!(!buffer.append(&[8; 4_000]), "there is no room for 9,000");
        assert_eq!(buffer.len(), 5_000);
        buffer.clear();
        assert!(buffer.is_empty());
        assert!(buffer.append(b"short"));
        buffer.pad(BLOCK_BYTES);
        assert_eq!(buffer.len(), BLOCK_BYTES);
        assert_eq!(&buffer.as_slice()[..5], b"short");
        assert!(
            buffer.as_slice()[5..].iter().all(|byte| *byte == 0),
            "what was there before does not show in the padding"
        );
        buffer.pad(BLOCK_BYTES);
        assert_eq!(buffer.len(), BLOCK_BYTES, "a whole block stays as it is");
        buffer.as_mut_slice()[0] = b'S';
        assert_eq!(buffer.as_slice()[0], b'S');
    }
}
