//! Words that other cores leave alone.

/// A word, or some, on cache lines of its own: many threads change it, or one does again and again.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub T);
