//! Lists that all workers append to.

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::memory::name_range;

use crate::schedule::cache_padded::CachePadded;

/// A list that all workers append to. What is in it is read in a later stage.
pub(super) struct List {
    slots: Box<[AtomicU32]>,
    length: CachePadded<AtomicU32>,
}

impl List {
    /// With room for so many values.
    pub fn new(capacity: u32) -> List {
        List {
            slots: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
            length: CachePadded::default(),
        }
    }

    /// Names its memory in reports about cache lines.
    pub fn name_memory(&self, called: &str) {
        let (start, bytes) = (self.slots.as_ptr().addr(), size_of_val(&*self.slots));
        name_range(start, bytes, || format!("strife.{called}"));
    }

    // Relaxed, in all of these: the tickets of the stages lie between.

    /// Appends a value; there is room for all transactions of a batch.
    #[inline]
    pub fn push(&self, value: u32) {
        let at = self.length.0.fetch_add(1, Ordering::Relaxed);
        self.slots[at as usize].store(value, Ordering::Relaxed);
    }

    /// Appends values; there is room as in [`List::push`].
    #[inline]
    pub fn append(&self, values: &[u32]) {
        if values.is_empty() {
            return;
        }
        let at = self
            .length
            .0
            .fetch_add(values.len() as u32, Ordering::Relaxed) as usize;
        for (slot, value) in self.slots[at..].iter().zip(values) {
            slot.store(*value, Ordering::Relaxed);
        }
    }

    #[inline]
    pub fn get(&self, at: u32) -> u32 {
        self.slots[at as usize].load(Ordering::Relaxed)
    }

    #[inline]
    pub fn length(&self) -> u32 {
        self.length.0.load(Ordering::Relaxed)
    }

    pub fn clear(&self) {
        self.length.0.store(0, Ordering::Relaxed);
    }
}
