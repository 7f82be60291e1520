//! A flaw on purpose, to show that a test of what clients see would find it if we had made it. It
//! is compiled in by the feature `canaries` alone.

/// Whether replays of blocks compare nothing.
#[inline(always)]
pub(crate) fn forgets_to_compare() -> bool {
    #[cfg(feature = "canaries")]
    {
        released::FORGETS_TO_COMPARE.load(kiln_platform::atomic::Ordering::Relaxed)
    }
    #[cfg(not(feature = "canaries"))]
    {
        false
    }
}

#[cfg(feature = "canaries")]
pub use released::release;

#[cfg(feature = "canaries")]
mod released {
    use kiln_platform::atomic::{AtomicBool, Ordering};

    pub(super) static FORGETS_TO_COMPARE: AtomicBool = AtomicBool::new(false);

    /// Has replays of blocks compare nothing, or compare again. No transaction runs.
    pub fn release(forgets_to_compare: bool) {
        FORGETS_TO_COMPARE.store(forgets_to_compare, Ordering::SeqCst);
    }
}
