//! A box whose content other threads may reach.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use kiln_platform::thread;

/// A box whose content others may use while it is moved: in turn, as its owner's messages say. If
/// the owner's thread panics it is not freed, as the others go on.
pub struct Lent<V>(NonNull<V>);

impl<V> Lent<V> {
    /// A box with this content.
    pub fn new(value: V) -> Lent<V> {
        Lent::of(Box::new(value))
    }

    /// The same box.
    pub fn of(content: Box<V>) -> Lent<V> {
        Lent(NonNull::from(Box::leak(content)))
    }

    /// For those to whom it is lent.
    pub fn as_ptr(&self) -> *mut V {
        self.0.as_ptr()
    }
}

impl<V: Default> Default for Lent<V> {
    fn default() -> Lent<V> {
        Lent::new(V::default())
    }
}

impl<V> Deref for Lent<V> {
    type Target = V;

    fn deref(&self) -> &V {
        // SAFETY: allocated in `new`; the owner uses it only while it is not lent.
        unsafe { self.0.as_ref() }
    }
}

impl<V> DerefMut for Lent<V> {
    fn deref_mut(&mut self) -> &mut V {
        // SAFETY: as above.
        unsafe { self.0.as_mut() }
    }
}

impl<V> Drop for Lent<V> {
    fn drop(&mut self) {
        if !thread::panicking() {
            // SAFETY: allocated in `new`, and no other thread has it any more.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

// SAFETY: it is a box.
unsafe impl<V: Send> Send for Lent<V> {}
// SAFETY: as above.
unsafe impl<V: Sync> Sync for Lent<V> {}
